/* integer.cuh - the operations of core/scalar_ops.h for integers, whose arithmetic wraps. For T_u8
 * and T_u16, which are only moved, it defines only the operations that copies need. */
#ifndef INTEGER_CUH
#define INTEGER_CUH

#define T_INTEGER

#if defined T_i64
#define T           int64_t
#define BITS        uint64_t
#define SIGNED      int64_t
#define TYPED(name) name##_i64
#elif defined T_i32
#define T           int32_t
#define BITS        uint32_t
#define SIGNED      int32_t
#define TYPED(name) name##_i32
#elif defined T_u64
#define T           uint64_t
#define BITS        uint64_t
#define SIGNED      int64_t
#define TYPED(name) name##_u64
#elif defined T_u8
#define MOVES
#define T           uint8_t
#define BITS        uint8_t
#define TYPED(name) name##_u8
#else
#define MOVES
#define T           uint16_t
#define BITS        uint16_t
#define TYPED(name) name##_u16
#endif

/* The greatest number; with a minus sign in front, the least. */
struct extreme {
    __device__ inline operator T() const { return (T)(~(BITS)0 >> (T(-1) < T(1))); }
    __device__ inline T operator-() const { return (T)~T(*this); }
};

#define K(c)          ((T)(c))
#define SEL(c, a, b)  ((c) ? (a) : (b))
#define INF           extreme()
#define AS_BITS(x)    ((BITS)(x))
#define AS_T(b)       ((T)(b))
#define FMA(a, b, c)  AS_T(AS_BITS(a) * AS_BITS(b) + AS_BITS(c))
#define ABS(x)        AS_T(SEL((x) < T(1), 0 - AS_BITS(x), AS_BITS(x)))
#define MINIMUM(a, b) SEL((b) < (a), b, a)
#define MAXIMUM(a, b) SEL((a) < (b), b, a)
#define FN(f)         TYPED(f)
#ifndef MOVES
#include "integer.h"
#endif

#endif
