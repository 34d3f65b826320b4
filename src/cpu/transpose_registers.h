/* transpose_registers.h - transposes tiles of LANES x LANES elements in registers. Template. */
#ifndef TRANSPOSE_REGISTERS_H
#define TRANSPOSE_REGISTERS_H

#include "vector.h"

/* The source of lane l when bit h of the row number and of the lane number are exchanged. FIRST_ROW is for
 * the row whose bit is 0, SECOND_ROW for the other. Lanes of the second row count from VECTOR_LANES. */
#define FIRST_ROW(l, h)     ((l) & (h) ? VECTOR_LANES + (l) - (h) : (l))
#define SECOND_ROW(l, h)    (((l) & (h) ? VECTOR_LANES + (l) : (l) + (h)) % (2 * VECTOR_LANES))
#define EACH_2(lane, h, n)  lane(n, h), lane((n) + 1, h)
#define EACH_4(lane, h, n)  EACH_2(lane, h, n), EACH_2(lane, h, (n) + 2)
#define EACH_8(lane, h, n)  EACH_4(lane, h, n), EACH_4(lane, h, (n) + 4)
#define EACH_16(lane, h, n) EACH_8(lane, h, n), EACH_8(lane, h, (n) + 8)
#define EACH_OF_(count)     EACH_##count
#define EACH_OF(count)      EACH_OF_(count)
#define EXCHANGE(lane, h)   __builtin_shufflevector(a, b, EACH_OF(VECTOR_LANES)(lane, h, 0))
/* Exchanges bit h of the row and bit h of the lane. */
#define EXCHANGE_BIT(v, h)                                                                                   \
    _Pragma("GCC unroll 16") for (int i = 0; i < LANES && h < LANES; i++)                                    \
    {                                                                                                        \
        if (i & h) continue;                                                                                 \
        const V a = v[i], b = v[i + h];                                                                      \
        v[i] = EXCHANGE(FIRST_ROW, h);                                                                       \
        v[i + h] = EXCHANGE(SECOND_ROW, h);                                                                  \
    }

/* Stores element e of row i at to + e * down + i, for LANES rows of LANES elements. */
static inline void transpose_tile(T *to, int64_t down, const T *const row[])
{
    V v[VECTOR_LANES];
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++) v[i] = *(const V_unaligned *)row[i];
    EXCHANGE_BIT(v, 8)
    EXCHANGE_BIT(v, 4)
    EXCHANGE_BIT(v, 2)
    EXCHANGE_BIT(v, 1)
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++) *(V_unaligned *)(to + i * down) = v[i];
}

#endif
