/* scalar_ops.h - the macros in which the formulas of ops.def are written, for one element
 * type.
 *
 *   T, BITS          the element type, and the unsigned integer type of its size
 *   K(c), INF        the constant c as T; infinity
 *   SEL(c, a, b)     a if c holds, else b; conditions are combined by & and |
 *   FMA, SQRT, ABS, FLOOR, RINT    RINT rounds to the nearest integer, ties to even
 *   MINIMUM, MAXIMUM IEEE 754-2019: NaN if an operand is NaN, and -0 < +0
 *   INVERSE(x)       1 / x, for 2^-100 < |x| < 2^100
 *   FN(f)            function f of core/vmath.h; FN(exp) is exp_f32 or exp_f64
 *   MAP(name, x)     the formula of a row of one operand
 *   AS_BITS, AS_T    the bits of a T, and back
 *   TYPED(name)      a name with the type as suffix
 *   START(s)         the start of a reduction
 *   SELDOM(c)        before a block that changes nothing if c is false. A machine with branches
 *                    may skip the block.
 *   AGAIN(c)         before a block that is repeated while c holds for any element, and may run
 *                    once too often
 *
 * Integers have no SQRT, no MAP, and only the functions of integer.h. START(INF) is their largest
 * number, START(-INF) their smallest. Arithmetic must wrap: compile with -fwrapv. All formulas are
 * correctly rounded and have no branches: compile without contraction.
 *
 * C: define T_f32 or T_f64 (for integers T_i64 or T_u64), and FN_DECL if functions are not to be
 * static inline. Include this file last, because of its macros. For the other type undefine T_f32,
 * define T_f64 and include it again. C++: do the same, or define neither; then the macros work in
 * templates over T = float or double, where FN(exp) is overloaded. For CUDA define FN_DECL as
 * static __device__ inline. Vector types: define T_f32 or T_f64 and all macros except MINIMUM,
 * MAXIMUM and MAP, and include vmath.h instead. */
#include <duet/duet.h>
#include <math.h>
#include <string.h>

#ifndef FN_DECL
#define FN_DECL static inline
#endif

#undef T
#undef BITS
#undef FMA
#undef SQRT
#undef ABS
#undef FN
#undef TYPED
#undef K
#undef INF
#undef SEL
#undef MINIMUM
#undef MAXIMUM
#undef MAP
#undef RINT
#undef FLOOR
#undef INVERSE
#undef SELDOM
#undef AGAIN
#undef AS_BITS
#undef AS_T
#undef FORMULA_NEW
#undef FORMULA_INTEGERS
#undef START
#undef LEAST
#undef MOST

#define K(c)          ((T)(c))
#define START(s)      (s)
#define INF           K(INFINITY)
#define SEL(c, a, b)  ((c) ? (a) : (b))
#define MINIMUM(a, b) FN(minimum)(a, b)
#define MAXIMUM(a, b) FN(maximum)(a, b)
#define MAP(name, x)  FN(map_##name)(x)
#define RINT(x)       FN(rint)(x)
#define FLOOR(x)      FN(floor)(x)
#define AGAIN(c)      while (c)
#ifdef __CUDA_ARCH__
#define SELDOM(c)  if (c)
#define INVERSE(x) FN(inverse)(x)
#else
#define SELDOM(c)
#define INVERSE(x) (K(1) / (x))
#endif

#define AS_BITS(x) FN(as_bits)(x)
#define AS_T(b)    FN(as_t)(b)

#if defined T_f32
#define T            float
#define BITS         uint32_t
#define FMA(a, b, c) fmaf(a, b, c)
#define SQRT(x)      sqrtf(x)
#define ABS(x)       fabsf(x)
#ifdef FORMULA_OVERLOADED
#define FN(f)       f##_any
#define TYPED(name) name##_any_f32
#define FORMULA_NEW
#else
#define FN(f)       f##_f32
#define TYPED(name) name##_f32
#ifndef FORMULA_F32
#define FORMULA_F32
#define FORMULA_NEW
#endif
#endif

#elif defined T_f64
#define T            double
#define BITS         uint64_t
#define FMA(a, b, c) fma(a, b, c)
#define SQRT(x)      sqrt(x)
#define ABS(x)       fabs(x)
#ifdef FORMULA_OVERLOADED
#define FN(f)       f##_any
#define TYPED(name) name##_any_f64
#define FORMULA_NEW
#else
#define FN(f)       f##_f64
#define TYPED(name) name##_f64
#ifndef FORMULA_F64
#define FORMULA_F64
#define FORMULA_NEW
#endif
#endif

#elif defined T_i64 || defined T_u64
#define FORMULA_INTEGERS
#undef INF
#undef MINIMUM
#undef MAXIMUM
#undef MAP
#undef INVERSE
#undef AS_BITS
#undef AS_T
#undef START
#define BITS          uint64_t
#define START_TO_1(s) ((s) < 0 ? LEAST : (s) > 0)
#define START(s)      ((T)((s) > 1 ? MOST : START_TO_1(s)))
#define INF           INFINITY
#define FMA(a, b, c)  ((a) * (b) + (c))
#define ABS(x)        ((x) < 1 ? -(x) : (x))
#define MINIMUM(a, b) ((a) < (b) ? (a) : (b))
#define MAXIMUM(a, b) ((a) > (b) ? (a) : (b))
#define AS_BITS(x)    ((BITS)(x))
#define AS_T(b)       ((T)(b))
#ifdef T_i64
#define T     int64_t
#define FN(f) f##_i64
#define LEAST INT64_MIN
#define MOST  INT64_MAX
#ifndef FORMULA_I64
#define FORMULA_I64
#include "integer.h"
#endif
#else
#define T     uint64_t
#define FN(f) f##_u64
#define LEAST ((uint64_t)0)
#define MOST  UINT64_MAX
#ifndef FORMULA_U64
#define FORMULA_U64
#include "integer.h"
#endif
#endif

#elif defined __cplusplus
#ifndef FORMULA_TEMPLATES
#define FORMULA_OVERLOADED
#define T_f32
#include "scalar_ops.h"
#undef T_f32
#define T_f64
#include "scalar_ops.h"
#undef T_f64
#undef FORMULA_OVERLOADED
#endif
#undef T
#undef BITS
#undef FMA
#undef SQRT
#undef ABS
#undef FN
#undef TYPED
#ifndef FORMULA_TEMPLATES
#define FORMULA_TEMPLATES
template <class T> struct formula_bits;
template <> struct formula_bits<float> {
    typedef uint32_t type;
};
template <> struct formula_bits<double> {
    typedef uint64_t type;
};
#endif
#define BITS         typename formula_bits<T>::type
#define FMA(a, b, c) FN(fma)(a, b, c)
#define SQRT(x)      FN(sqrt)(x)
#define ABS(x)       FN(abs)(x)
#define FN(f)        f##_any

#else
#error "define T_f32, T_f64, T_i64 or T_u64"
#endif

#ifdef FORMULA_NEW
#undef FORMULA_NEW
FN_DECL BITS FN(as_bits)(T x)
{
    BITS b;
    memcpy(&b, &x, sizeof b);
    return b;
}

FN_DECL T FN(as_t)(BITS b)
{
    T x;
    memcpy(&x, &b, sizeof x);
    return x;
}

#ifdef __CUDA_ARCH__
/* Correctly rounded as 1 / x is, by the same steps, but without the checks for very large and very
 * small x. */
FN_DECL T FN(inverse)(T x)
{
#ifdef T_f32
    T y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return FMA(y, FMA(-x, y, K(1)), y);
#else
    return K(1) / x;
#endif
}
#endif

/* If a == b, both are zeros or both have the same bits. */
FN_DECL T FN(minimum)(T a, T b)
{
    T least = SEL(a < b, a, b); /* NaN if b is NaN */
    return SEL(a == b, AS_T(AS_BITS(a) | AS_BITS(b)), SEL(a != a, a, least));
}

FN_DECL T FN(maximum)(T a, T b)
{
    T most = SEL(a > b, a, b);
    return SEL(a == b, AS_T(AS_BITS(a) & AS_BITS(b)), SEL(a != a, a, most));
}

#ifdef FORMULA_OVERLOADED
FN_DECL T FN(fma)(T a, T b, T c) { return FMA(a, b, c); }
FN_DECL T FN(sqrt)(T x) { return SQRT(x); }
FN_DECL T FN(abs)(T x) { return ABS(x); }
#endif

#include "vmath.h"

#define DUET_MAP1(name, formula, ...)                                                                        \
    FN_DECL T FN(map_##name)(T x) { return formula; }
#include <duet/ops.def>
#endif
