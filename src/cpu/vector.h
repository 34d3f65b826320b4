/* vector.h - formulas of ops.def over V, a SIMD register of elements of type T.
 * Template.
 *
 * For a row `name` of ops.def this header defines V vec_name(V x, V y, V z), or the functions that
 * a reduction needs. The macros of core/scalar_ops.h, in
 * which formulas are written, have vector meanings while these functions are compiled. At the end
 * they have scalar meanings again. Functions called through FN have no vector form: such a row
 * compiles, but must not be run as vectors. */
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
/* MM(name) is the intrinsic of that name for vectors of this size and floating-point elements.
 * Integer types use it to move bits. */
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
typedef V V_unaligned __attribute__((aligned(sizeof(T)), may_alias));

/* A register with the same number in every lane. An initialiser keeps the bits of NaN. */
#define COPIES_1(x)     x
#define COPIES_2(x)     COPIES_1(x), COPIES_1(x)
#define COPIES_4(x)     COPIES_2(x), COPIES_2(x)
#define COPIES_8(x)     COPIES_4(x), COPIES_4(x)
#define COPIES_16(x)    COPIES_8(x), COPIES_8(x)
#define COPIES_(n, x)   COPIES_##n(x)
#define COPIES_OF(n, x) COPIES_(n, x)
#if VECTOR_BYTES == 64 && defined T_f32
#define VECTOR_LANES 16
#elif VECTOR_BYTES == 64 || (VECTOR_BYTES == 32 && defined T_f32)
#define VECTOR_LANES 8
#elif VECTOR_BYTES == 32 || defined T_f32
#define VECTOR_LANES 4
#else
#define VECTOR_LANES 2
#endif
INLINE V spread(T x) { return (V){ COPIES_OF(VECTOR_LANES, x) }; }

/* ---- operations for which compilers do not find the best instruction ---- */

INLINE V choose(lanes c, V a, V b) { return (V)((c & (lanes)a) | (~c & (lanes)b)); }

/* Hides the value of v from the compiler. For 16-byte vectors gcc 12 has an internal error (in
 * gimple_expand_vec_cond_expr) where it knows the result of a comparison on some paths only. */
#if defined __SSE2__ && VECTOR_BYTES == 16
#define HIDE_VALUE(v) __asm__("" : "+x"(v))
#else
#define HIDE_VALUE(v)
#endif

#ifdef FORMULA_INTEGERS
INLINE V v_min(V a, V b) { return choose(a < b, a, b); }
INLINE V v_max(V a, V b) { return choose(a > b, a, b); }
INLINE V multiply_add(V a, V b, V c) { return a * b + c; }
#elif defined __SSE2__
INLINE V v_sqrt(V x) { return (V)MM(sqrt)(x); }
/* If neither operand is less, min returns the second one: for zeros of both signs, and for NaN.
 * Combining both orders gives -0 and NaN. */
INLINE V v_min(V a, V b) { return (V)((lanes)MM(min)(a, b) | (lanes)MM(min)(b, a)); }
#if VECTOR_BYTES == 64
/* vrange orders +0 above -0, but does not propagate NaN. */
INLINE V v_max(V a, V b)
{
    return (V)MM(mask_add)(MM(range)(a, b, 5), PASTE(MM(cmp), mask)(a, b, _CMP_UNORD_Q), a, b);
}
#else
INLINE V v_max(V a, V b)
{
    return (V)(((lanes)MM(max)(a, b) & (lanes)MM(max)(b, a)) | (lanes)((a != a) | (b != b)));
}
#endif
#else
INLINE V v_sqrt(V x)
{
    for (int i = 0; i < LANES; i++) x[i] = SQRT(x[i]);
    return x;
}
INLINE V v_min(V a, V b)
{
    return choose(a == b, (V)((lanes)a | (lanes)b), choose(a != a, a, choose(a < b, a, b)));
}
INLINE V v_max(V a, V b)
{
    return choose(a == b, (V)((lanes)a & (lanes)b), choose(a != a, a, choose(a > b, a, b)));
}
#endif

#ifndef FORMULA_INTEGERS
/* All numbers of at least 2^23 (f32) or 2^52 (f64) are integers. */
INLINE V v_rint(V x)
{
    const V integers_from = spread(sizeof(T) == 4 ? (T)0x1p23 : (T)0x1p52),
            a = (V)((lanes)x & ~((lanes){ 0 } + SIGN_BIT)), n = (a + integers_from) - integers_from;
    return choose(a < integers_from, (V)((lanes)n | ((lanes)x & ((lanes){ 0 } + SIGN_BIT))), x);
}
INLINE V v_floor(V x)
{
    const V n = v_rint(x);
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

/* The index of a PLACE1 state is -1 until an element was seen. */
#ifdef T_u64
INLINE lanes is_absent(V index) { return (lanes)index < 0; }
#else
INLINE lanes is_absent(V index) { return index < spread(0); }
#endif

/* ---- loads and stores of the first n lanes of a register ---- */

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

/* ---- one-operand operators by their scalar formulas, for the macro MAP ---- */

#ifndef FORMULA_INTEGERS
#define ROW1(name, formula, ulp, ...)                                                                        \
    __attribute__((noinline, unused)) static V each_##name(V x)                                              \
    {                                                                                                        \
        T in[24 * LANES];                                                                                    \
        memcpy(in, &x, sizeof x);                                                                            \
        if (BY_LOOP(ulp)) interp_functions[OP_##name].tail(in);                                              \
        else                                                                                                 \
            for (int i = 0; i < LANES; i++) in[i] = MAP(name, in[i]);                                        \
        memcpy(&x, in, sizeof x);                                                                            \
        return x;                                                                                            \
    }
#include "typed_ops.def"
#endif

/* ---- wrapping to a narrower type, for WRAP ---- */

#ifdef FORMULA_INTEGERS
INLINE V v_truncate(V x, int bits, bool sign)
{
    const V all = spread((T)(UINT64_MAX >> (64 - bits))), top = spread((T)((uint64_t)sign << (bits - 1)));
    return ((x & all) ^ top) - top;
}
INLINE V v_is_true(V x) { return choose(x != spread(0), spread(1), spread(0)); }

#define DUET_INTEGER(NAME, name, type)                                                                       \
    INLINE V vec_wrap_##name(V x, V y, V z)                                                                  \
    {                                                                                                        \
        if (DUET_##NAME == DUET_BOOL) return v_is_true(x);                                                   \
        return v_truncate(x, 8 * sizeof(type), (type)-1 < (type)1);                                          \
    }
#define DUET_NARROW DUET_INTEGER
#define DUET_DTYPE(...)
#include <duet/dtype.def>
#endif

/* ---- the formulas ---- */

__attribute__((unused)) static V no_vector_form(V x, ...) { return x; }
INLINE V spread_constant(T x) { return spread(x); }

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
#define K(c)         spread_constant(c)
#define INF          K(INFINITY)
#define SEL(c, a, b) choose(c, a, b)
#define FMA(a, b, c) multiply_add(a, b, c)
#define SQRT(x)      v_sqrt(x)
#ifdef FORMULA_INTEGERS
#define ABS(x) choose((x) < K(1), -(x), x)
#else
#define ABS(x) ((V)((lanes)(x) & ~((lanes){ 0 } + SIGN_BIT)))
#endif
#define MINIMUM(a, b) v_min(a, b)
#define MAXIMUM(a, b) v_max(a, b)
#define MAP(name, x)  each_##name(x)
#define RINT(x)       v_rint(x)
#define FLOOR(x)      v_floor(x)
#define FN(f)         no_vector_form
#define AS_BITS(x)    ((lanes)(x))
#define AS_T(b)       ((V)(b))

#define ROW1(name, formula, ...)                                                                             \
    INLINE V vec_##name(V x, V y, V z) { return formula; }
#define ROW2 ROW1
#define ROW3 ROW1
#define REDUCE_ROW1(name, start, take, join, ...)                                                            \
    INLINE void vec_##name(V *p, V row, V x, V y)                                                            \
    {                                                                                                        \
        const V a __attribute__((unused)) = *p;                                                              \
        *p = take;                                                                                           \
    }                                                                                                        \
    INLINE void vec_join_##name(V *p, const V *q)                                                            \
    {                                                                                                        \
        const V a __attribute__((unused)) = *p, b = *q;                                                      \
        *p = join;                                                                                           \
    }
#define REDUCE_ROW2 REDUCE_ROW1
/* States of MOMENT1 are (a1, a2, a3, a0). */
#define MOMENT_DO(...)                                                                                       \
    V a1 = p[0], a2 = p[1], a3 = p[2];                                                                       \
    __VA_ARGS__;                                                                                             \
    p[0] = a1;                                                                                               \
    p[1] = a2;                                                                                               \
    p[2] = a3;
#define MOMENT_ROW1(name, take, close, join, ...)                                                            \
    INLINE void vec_##name(V *p, V row, V x, V y){ MOMENT_DO(take) } INLINE void vec_close_##name(V *p)      \
    {                                                                                                        \
        const V a0 = p[3];                                                                                   \
        MOMENT_DO(close)                                                                                     \
    }                                                                                                        \
    INLINE void vec_join_##name(V *p, const V *q)                                                            \
    {                                                                                                        \
        const V b1 = q[0], b2 = q[1], b3 = q[2], b0 = q[3];                                                  \
        V a0 = p[3];                                                                                         \
        MOMENT_DO(join)                                                                                      \
        p[3] = a0;                                                                                           \
    }
/* States of PLACE1 are (element, low part, high part of its index); low < 0: no element seen yet. */
#define PLACE_ROW1(name, better, ...)                                                                        \
    INLINE void vec_##name(V *p, V row, V x, V y)                                                            \
    {                                                                                                        \
        const V a = p[0], index = p[1];                                                                      \
        const lanes c = is_absent(index) | ((a == a) & ((x != x) | (better)));                               \
        p[0] = SEL(c, x, a);                                                                                 \
        p[1] = SEL(c, row, index);                                                                           \
    }                                                                                                        \
    INLINE void vec_join_##name(V *p, const V *q)                                                            \
    {                                                                                                        \
        const V a = p[0], low = p[1], high = p[2], x = q[0], x_low = q[1], x_high = q[2];                    \
        const lanes before = (x_high < high) | ((x_high == high) & (x_low < low)), nan = x != x;             \
        const lanes wins = (a == a) & (nan | (better)), ties = (nan & (a != a)) | (x == a);                  \
        const lanes c = ~is_absent(x_low) & (is_absent(low) | wins | (ties & before));                       \
        p[0] = SEL(c, x, a);                                                                                 \
        p[1] = SEL(c, x_low, low);                                                                           \
        p[2] = SEL(c, x_high, high);                                                                         \
    }
#include "typed_ops.def"

/* The same for states that have an element. In `take`, SEL only selects the first one. */
#undef SEL
#define SEL(c, a, b) (a)
#define MOMENT_ROW1(name, take, ...)                                                                         \
    INLINE void vec_more_##name(V *p, V row, V x, V y) { MOMENT_DO(take) }
#include "typed_ops.def"
#undef SEL
#define SEL(c, a, b) choose(c, a, b)

INLINE V vec_move(V x, V y, V z) { return x; }

#include "scalar_ops.h" /* restores the scalar meanings */

#endif
