/* vector.h - a SIMD register, V, of one element type, and the formulas of the rows over it. A template.
 *
 * For a row `name` of ops.def this makes V vec_name(V x, V y, V z), or what reductions take; of fused.def, vec_fused_name. The words of
 * core/formula.h mean vectors while those are compiled, and scalars again at the end. Functions (FN) have no vector form: a row that
 * calls one compiles, but may not be run as a vector. */
#ifndef VECTOR_H
#define VECTOR_H

#include "interp_functions.h"
#include "ops.h"
#include "simd_registers.h"
#include <stdbool.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif

#if VECTOR_BYTES == 64
#define MM_(name) _mm512_##name
#elif VECTOR_BYTES == 32
#define MM_(name) _mm256_##name
#else
#define MM_(name) _mm_##name
#endif
/* The intrinsic for V, or for a vector of its size: of floating point, as are its operands, F and its elements; which moves any bits. */
#ifdef T_f32
#define MM(name) PASTE(MM_(name), ps)
#define SIGN_BIT INT32_MIN
typedef float scalar;
#else
#define MM(name) PASTE(MM_(name), pd)
#define SIGN_BIT INT64_MIN
typedef double scalar;
#endif
typedef scalar F __attribute__((vector_size(VECTOR_BYTES)));
#define LANES ((int64_t)(VECTOR_BYTES / sizeof(T)))
typedef V V_anywhere __attribute__((aligned(sizeof(T)), may_alias));

/* The same number in every lane, its bits kept. */
#define TWICE_1(x)    x
#define TWICE_2(x)    TWICE_1(x), TWICE_1(x)
#define TWICE_4(x)    TWICE_2(x), TWICE_2(x)
#define TWICE_8(x)    TWICE_4(x), TWICE_4(x)
#define TWICE_16(x)   TWICE_8(x), TWICE_8(x)
#define ALL_(n, x)    TWICE_##n(x)
#define ALL_OF_(n, x) ALL_(n, x)
#if VECTOR_BYTES == 64 && defined T_f32
#define VECTOR_LANES 16
#elif VECTOR_BYTES == 64 || (VECTOR_BYTES == 32 && defined T_f32)
#define VECTOR_LANES 8
#elif VECTOR_BYTES == 32 || defined T_f32
#define VECTOR_LANES 4
#else
#define VECTOR_LANES 2
#endif
INLINE V spread(T x) { return (V){ ALL_OF_(VECTOR_LANES, x) }; }

/* ---- words for which compilers do not find the instruction ---- */

INLINE V choose(lanes c, V a, V b) { return (V)((c & (lanes)a) | (~c & (lanes)b)); }

#ifdef FORMULA_INTEGERS
INLINE V vec_least(V a, V b) { return choose(a < b, a, b); }
INLINE V vec_most(V a, V b) { return choose(a > b, a, b); }
INLINE V multiply_add(V a, V b, V c) { return a * b + c; }
#elif defined __SSE2__
INLINE V vec_root(V x) { return (V)MM(sqrt)(x); }
/* Where neither operand is less, the instructions give the second one: either may come out where both are zeros or one is NaN. */
INLINE V vec_least(V a, V b) { return (V)((lanes)MM(min)(a, b) | (lanes)MM(min)(b, a)); }
#if VECTOR_BYTES == 64
/* vrange has +0 above -0, but loses a NaN. */
INLINE V vec_most(V a, V b)
{
    return (V)MM(mask_add)(MM(range)(a, b, 5), PASTE(MM(cmp), mask)(a, b, _CMP_UNORD_Q), a, b);
}
#else
INLINE V vec_most(V a, V b)
{
    return (V)(((lanes)MM(max)(a, b) & (lanes)MM(max)(b, a)) | (lanes)((a != a) | (b != b)));
}
#endif
#else
INLINE V vec_root(V x)
{
    for (int i = 0; i < LANES; i++) x[i] = SQRT(x[i]);
    return x;
}
INLINE V vec_least(V a, V b)
{
    return choose(a == b, (V)((lanes)a | (lanes)b), choose(a != a, a, choose(a < b, a, b)));
}
INLINE V vec_most(V a, V b)
{
    return choose(a == b, (V)((lanes)a & (lanes)b), choose(a != a, a, choose(a > b, a, b)));
}
#endif

#ifndef FORMULA_INTEGERS
/* From 2^23, or 2^52, on every number is whole. */
INLINE V vec_rint(V x)
{
    const V whole = spread(sizeof(T) == 4 ? (T)0x1p23 : (T)0x1p52),
            a = (V)((lanes)x & ~((lanes){ 0 } + SIGN_BIT)), n = (a + whole) - whole;
    return choose(a < whole, (V)((lanes)n | ((lanes)x & ((lanes){ 0 } + SIGN_BIT))), x);
}
INLINE V vec_below(V x)
{
    const V n = vec_rint(x);
    return choose(n > x, n - spread(1), n);
}
#endif

#ifdef FORMULA_INTEGERS
#elif VECTOR_BYTES > 16
INLINE V multiply_add(V a, V b, V c) { return (V)MM(fmadd)(a, b, c); }
#else
__attribute__((noinline, unused)) static V multiply_add(V a, V b, V c)
{
    for (int i = 0; i < LANES; i++) c[i] = FMA(a[i], b[i], c[i]);
    return c;
}
#endif

/* A place is -1 where nothing has been seen. */
#ifdef T_u64
INLINE lanes is_absent(V place) { return (lanes)place < 0; }
#else
INLINE lanes is_absent(V place) { return place < spread(0); }
#endif

/* ---- the first n lanes of a register, in memory ---- */

#if defined __AVX512F__
typedef uint32_t mask;
INLINE mask first_lanes(int64_t n) { return (1u << n) - 1; }
INLINE V load_some(const T *p, mask m) { return (V)MM(maskz_loadu)((__mmask16)m, p); }
INLINE void store_some(T *p, mask m, V v) { MM(mask_storeu)(p, (__mmask16)m, (F)v); }
#elif VECTOR_BYTES == 32
typedef lanes mask;
INLINE mask first_lanes(int64_t n)
{
    lanes at = { 0 };
    for (int i = 0; i < LANES; i++) at[i] = i < n ? -1 : 0;
    return at;
}
INLINE V load_some(const T *p, mask m) { return (V)MM(maskload)((const scalar *)p, (__m256i)m); }
INLINE void store_some(T *p, mask m, V v) { MM(maskstore)((scalar *)p, (__m256i)m, (F)v); }
#else
typedef int64_t mask;
INLINE mask first_lanes(int64_t n) { return n; }
INLINE V load_some(const T *p, mask m)
{
    V v = { 0 };
    for (int i = 0; i < LANES; i++)
        if (i < m) v[i] = p[i];
    return v;
}
INLINE void store_some(T *p, mask m, V v)
{
    for (int i = 0; i < LANES; i++)
        if (i < m) p[i] = v[i];
}
#endif

/* ---- one-operand rows by their scalar formulas, for MAP ---- */

#ifndef FORMULA_INTEGERS
#define ROW1(name, formula, ulp, ...)                                                                        \
    __attribute__((noinline, unused)) static V each_##name(V x)                                              \
    {                                                                                                        \
        T in[24 * LANES];                                                                                    \
        memcpy(in, &x, sizeof x);                                                                            \
        if (BY_LOOP(ulp)) tile_loops[OP_##name].tail(in);                                                    \
        else                                                                                                 \
            for (int i = 0; i < LANES; i++) in[i] = MAP(name, in[i]);                                        \
        memcpy(&x, in, sizeof x);                                                                            \
        return x;                                                                                            \
    }
#include "typed_ops.def"
#endif

/* ---- within a narrower type, for WRAP ---- */

#ifdef FORMULA_INTEGERS
INLINE V vec_within(V x, int bits, bool sign)
{
    const V all = spread((T)(UINT64_MAX >> (64 - bits))), top = spread((T)((uint64_t)sign << (bits - 1)));
    return ((x & all) ^ top) - top;
}
INLINE V vec_truth(V x) { return choose(x != spread(0), spread(1), spread(0)); }

#define DUET_INTEGER(NAME, name, type)                                                                       \
    INLINE V vec_wrap_##name(V x, V y, V z)                                                                  \
    {                                                                                                        \
        return (void)y, (void)z,                                                                             \
               DUET_##NAME == DUET_BOOL ? vec_truth(x)                                                       \
                                        : vec_within(x, 8 * sizeof(type), (type)-1 < (type)1);               \
    }
#define DUET_NARROW DUET_INTEGER
#define DUET_DTYPE(...)
#include <duet/dtype.def>
#endif

/* ---- the formulas ---- */

__attribute__((unused)) static V no_vector(V x, ...) { return x; }
INLINE V number_spread(T x) { return spread(x); }

#undef T
#undef BITS
#undef K
#undef INF
#undef SEL
#undef FMA
#undef SQRT
#undef ABS
#undef MINIMUM
#undef MAXIMUM
#undef MAP
#undef RINT
#undef FLOOR
#undef FN
#undef AS_BITS
#undef AS_T
#define T            V
#define BITS         lanes
#define K(c)         number_spread(c)
#define INF          K(INFINITY)
#define SEL(c, a, b) choose(c, a, b)
#define FMA(a, b, c) multiply_add(a, b, c)
#define SQRT(x)      vec_root(x)
#ifdef FORMULA_INTEGERS
#define ABS(x) choose((x) < K(1), -(x), x)
#else
#define ABS(x) ((V)((lanes)(x) & ~((lanes){ 0 } + SIGN_BIT)))
#endif
#define MINIMUM(a, b) vec_least(a, b)
#define MAXIMUM(a, b) vec_most(a, b)
#define MAP(name, x)  each_##name(x)
#define RINT(x)       vec_rint(x)
#define FLOOR(x)      vec_below(x)
#define FN(f)         no_vector
#define AS_BITS(x)    ((lanes)(x))
#define AS_T(b)       ((V)(b))

#define ROW1(name, formula, ...)                                                                             \
    INLINE V vec_##name(V x, V y, V z) { return (void)x, (void)y, (void)z, formula; }
#define ROW2 ROW1
#define ROW3 ROW1
#define REDUCE_ROW1(name, start, take, join, ...)                                                            \
    INLINE void vec_##name(V *p, V *p1, V *p2, V row, V x, V y)                                              \
    {                                                                                                        \
        const V a = *p;                                                                                      \
        (void)a, (void)p1, (void)p2, (void)row, (void)x, (void)y;                                            \
        *p = take;                                                                                           \
    }                                                                                                        \
    INLINE void vec_join_##name(V *p, V *p1, V *p2, V b, V b1, V b2)                                         \
    {                                                                                                        \
        const V a = *p;                                                                                      \
        (void)p1, (void)p2, (void)b1, (void)b2;                                                              \
        *p = join;                                                                                           \
    }
#define REDUCE_ROW2 REDUCE_ROW1
#define MOMENT_ROW1(name, take, join, ...)                                                                   \
    INLINE void vec_##name(V *p0, V *p1, V *p2, V row, V x, V y)                                             \
    {                                                                                                        \
        V a0 = *p0, a1 = *p1, a2 = *p2;                                                                      \
        (void)row, (void)y;                                                                                  \
        take;                                                                                                \
        *p0 = a0, *p1 = a1, *p2 = a2;                                                                        \
    }                                                                                                        \
    INLINE void vec_join_##name(V *p0, V *p1, V *p2, V b0, V b1, V b2)                                       \
    {                                                                                                        \
        V a0 = *p0, a1 = *p1, a2 = *p2;                                                                      \
        join;                                                                                                \
        *p0 = a0, *p1 = a1, *p2 = a2;                                                                        \
    }
/* Places are joined as (element, low, high part of its index); low < 0: none yet. */
#define PLACE_ROW1(name, better, ...)                                                                        \
    INLINE void vec_##name(V *p, V *place, V *p2, V row, V x, V y)                                           \
    {                                                                                                        \
        const V a = *p;                                                                                      \
        (void)p2, (void)y;                                                                                   \
        const lanes c = is_absent(*place) | ((a == a) & ((x != x) | (better)));                              \
        *p = SEL(c, x, a), *place = SEL(c, row, *place);                                                     \
    }                                                                                                        \
    INLINE void vec_join_##name(V *p, V *low, V *high, V x, V x_low, V x_high)                               \
    {                                                                                                        \
        const V a = *p;                                                                                      \
        const lanes before = (x_high < *high) | ((x_high == *high) & (x_low < *low)), nan = x != x;          \
        const lanes wins = (a == a) & (nan | (better)), ties = (nan & (a != a)) | (x == a);                  \
        const lanes c = ~is_absent(x_low) & (is_absent(*low) | wins | (ties & before));                      \
        *p = SEL(c, x, a), *low = SEL(c, x_low, *low), *high = SEL(c, x_high, *high);                        \
    }
#include "typed_ops.def"
#ifndef FORMULA_INTEGERS
#define DUET_FUSED(name, pattern, formula, doc)                                                              \
    INLINE V vec_fused_##name(V x, V y, V z, V s, V r)                                                       \
    {                                                                                                        \
        return (void)x, (void)y, (void)z, (void)s, (void)r, formula;                                         \
    }
#include "fused.def"
#endif
INLINE V vec_move(V x, V y, V z) { return (void)y, (void)z, x; }

#include "scalar_ops.h" /* the words of scalars again */

#endif
