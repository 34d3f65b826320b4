/* vmath.h - mathematical functions in the macros of scalar_ops.h, for every machine and type. This
 * file has what the families of functions share.
 *
 * Only + - * / FMA, comparisons, selections and bit operations are used. All of these are exact or
 * correctly rounded, so every machine gives the same bits (except for the bits of a NaN). There are
 * no branches, and no loops except in fmod, so that compilers can vectorise.
 *
 * docs/accuracy.md lists the errors. tools/fit_vmath.sollya computes the coefficients. */

#ifdef T_f32
#define VM_DIGITS   23 /* bits of the fraction */
#define VM_TOP      31 /* index of the sign bit */
#define VM_BIAS     127
#define VM_SIGN     0x80000000u
#define VM_EXPONENT 0x7f800000u
/* x + ROUND has x, rounded to an integer, in its low bits. The bits above them are not zero. */
#define VM_ROUND   0x1.8p23
#define VM_ULP_1   0x1p23   /* all numbers >= ULP_1 are integers; all >= 2 * ULP_1 are even integers */
#define VM_NORMAL  0x1p-126 /* the smallest normal number */
#define VM_TINY    0x1p-26  /* if |x| is below this, f(x) = x for functions like x + x^2 / 2 */
#define VM_FAR     20.0     /* 1 + exp(-FAR) == 1 */
#define VM_EXP_MAX 104.0    /* exp(-EXP_MAX) == 0 */
#define VM_LIFT    64       /* 2^(n + LIFT) is normal for every 2^n <= 1 */
#define VM_LOWER   0x1p-64  /* 2^(n + LIFT) * LOWER is 2^n */
#define VM_LOG2_E  0x1.715476p0
#define VM_LN2_HI  0x1.62e4p-1 /* has few bits, so its product with an exponent is exact */
#define VM_LN2_LO  0x1.7f7d1cp-20
/* (exp(r) - 1 - r) / r^2 for |r| <= 0.3467 */
#define VM_EXP(r) VM_P5(r, 0x1.fffffep-2, 0x1.5554bp-3, 0x1.555716p-5, 0x1.12279ep-7, 0x1.6b7376p-10)

#else
#define VM_DIGITS   52
#define VM_TOP      63
#define VM_BIAS     1023
#define VM_SIGN     0x8000000000000000u
#define VM_EXPONENT 0x7ff0000000000000u
#define VM_ROUND    0x1.8p52
#define VM_ULP_1    0x1p52
#define VM_NORMAL   0x1p-1022
#define VM_TINY     0x1p-54
#define VM_FAR      40.0
#define VM_EXP_MAX  746.0
#define VM_LIFT     512
#define VM_LOWER    0x1p-512
#define VM_LOG2_E   0x1.71547652b82fep0
#define VM_LN2_HI   0x1.62e42fefa4p-1
#define VM_LN2_LO   -0x1.8432a1b0e2634p-43
#define VM_EXP(r)                                                                                            \
    VM_P10(r, 0x1.0000000000005p-1, 0x1.555555555553bp-3, 0x1.5555555552101p-5, 0x1.1111111118834p-7,        \
           0x1.6c16c17f336cp-10, 0x1.a01a0177f3ca6p-13, 0x1.a019a6914c09ap-16, 0x1.71de80fa36f19p-19,        \
           0x1.28a2a1b3c047fp-22, 0x1.ae77aa5a5b9e6p-26)
#endif

/* Polynomials by Horner's rule; the first coefficient is the constant. */
#define VM_P1(x, c)       K(c)
#define VM_P2(x, c, ...)  FMA(VM_P1(x, __VA_ARGS__), x, K(c))
#define VM_P3(x, c, ...)  FMA(VM_P2(x, __VA_ARGS__), x, K(c))
#define VM_P4(x, c, ...)  FMA(VM_P3(x, __VA_ARGS__), x, K(c))
#define VM_P5(x, c, ...)  FMA(VM_P4(x, __VA_ARGS__), x, K(c))
#define VM_P6(x, c, ...)  FMA(VM_P5(x, __VA_ARGS__), x, K(c))
#define VM_P7(x, c, ...)  FMA(VM_P6(x, __VA_ARGS__), x, K(c))
#define VM_P8(x, c, ...)  FMA(VM_P7(x, __VA_ARGS__), x, K(c))
#define VM_P9(x, c, ...)  FMA(VM_P8(x, __VA_ARGS__), x, K(c))
#define VM_P10(x, c, ...) FMA(VM_P9(x, __VA_ARGS__), x, K(c))
#define VM_P11(x, c, ...) FMA(VM_P10(x, __VA_ARGS__), x, K(c))
#define VM_P12(x, c, ...) FMA(VM_P11(x, __VA_ARGS__), x, K(c))
#define VM_P13(x, c, ...) FMA(VM_P12(x, __VA_ARGS__), x, K(c))
#define VM_P14(x, c, ...) FMA(VM_P13(x, __VA_ARGS__), x, K(c))
#define VM_P15(x, c, ...) FMA(VM_P14(x, __VA_ARGS__), x, K(c))
#define VM_P16(x, c, ...) FMA(VM_P15(x, __VA_ARGS__), x, K(c))
#define VM_P17(x, c, ...) FMA(VM_P16(x, __VA_ARGS__), x, K(c))

/* inlined, because loops that call them can be vectorised only then */
#define VM FN_DECL __attribute__((always_inline))

typedef struct TYPED(pair) {
    T hi, lo; /* the number hi + lo, where |lo| is at most about an ulp of hi */
} TYPED(pair);

/* a + b without rounding error. The exponent of a must not be below that of b, unless a is 0. */
VM TYPED(pair) FN(two_sum)(T a, T b)
{
    TYPED(pair) s;
    s.hi = a + b;
    s.lo = (a - s.hi) + b;
    return s;
}

/* a + b without rounding error. */
VM TYPED(pair) FN(any_sum)(T a, T b)
{
    TYPED(pair) s;
    s.hi = a + b;
    T of_b = s.hi - a;
    s.lo = (a - (s.hi - of_b)) + (b - of_b);
    return s;
}

VM T FN(with_sign)(T x, T sign) { return AS_T(AS_BITS(x) | (AS_BITS(sign) & VM_SIGN)); }

/* x, limited to [-most, most]. NaN stays NaN. */
VM T FN(clamp)(T x, T most) { return FN(with_sign)(SEL(ABS(x) > most, most, ABS(x)), x); }

#include "vmath_exp.h"
#include "vmath_log.h"
#include "vmath_trig.h"

#include "vmath_erf.h"
#include "vmath_round.h"

#undef VM_DIGITS
#undef VM_TOP
#undef VM_BIAS
#undef VM_SIGN
#undef VM_EXPONENT
#undef VM_ROUND
#undef VM_ULP_1
#undef VM_NORMAL
#undef VM_TINY
#undef VM_FAR
#undef VM_EXP_MAX
#undef VM_LIFT
#undef VM_LOWER
#undef VM_LOG2_E
#undef VM_LN2_HI
#undef VM_LN2_LO
#undef VM_EXP
#undef VM
