/* vmath.h - exp, log, tanh, sigmoid and pow, in the words of formula.h: once for every machine and type.
 *
 * Only + - * / FMA, comparisons, selections and operations on bits are used. All of these are exact or exactly rounded, so every
 * machine gives the same bits (of a NaN, only that it is one). No statement jumps and no loop is left: compilers vectorise them.
 * How large the errors are: docs/accuracy.md. The coefficients: tools/fit_vmath.sollya. */

#ifdef T_f32
#define VM_DIGITS   23 /* of the fraction */
#define VM_TOP      31 /* where the sign is */
#define VM_BIAS     127
#define VM_SIGN     0x80000000u
#define VM_ROUND    0x1.8p23 /* x + ROUND: x as an integer, in the low bits */
#define VM_ULP_1    0x1p23   /* from here on every number is an integer; twice that: an even one */
#define VM_NORMAL   0x1p-126 /* the least that is not subnormal */
#define VM_EXP_MIN  -104.0   /* exp is 0 here */
#define VM_EXP_MAX  89.0     /* and infinite here */
#define VM_TANH_MAX 20.0     /* tanh of half of this is 1 */
#define VM_LOG2_E   0x1.715476p0
#define VM_LN2_HI   0x1.62e4p-1 /* few digits: its product with an exponent is exact */
#define VM_LN2_LO   0x1.7f7d1cp-20
#define VM_2_3_HI   0x1.555556p-1
#define VM_2_3_LO   -0x1.555556p-26
#define VM_SQRT1_2  0x3f3504f3 /* the bits of sqrt(1/2) */
/* (exp(r) - 1 - r) / r^2 for |r| <= 0.3467 */
#define VM_EXP(r) VM_P5(r, 0x1.fffffep-2, 0x1.5554bp-3, 0x1.555716p-5, 0x1.12279ep-7, 0x1.6b7376p-10)
/* (log(1 + f) - f + f^2 / 2) / f^3 for sqrt(1/2) <= 1 + f <= sqrt(2) */
#define VM_LOG(f)                                                                                                                \
    VM_P8(f, 0x1.55557p-2, -0x1.000234p-2, 0x1.99944ep-3, -0x1.5466fep-3, 0x1.239ce2p-3, -0x1.0e96ccp-3, 0x1.015974p-3,          \
          -0x1.2a6f78p-4)
/* (log((1 + s) / (1 - s)) / s - 2 - 2/3 u) / u^2 for u = s^2 <= 0.02945 */
#define VM_ATANH(u) VM_P3(u, 0x1.999ap-2, 0x1.24528p-2, 0x1.dfa126p-3)

#else
#define VM_DIGITS   52
#define VM_TOP      63
#define VM_BIAS     1023
#define VM_SIGN     0x8000000000000000u
#define VM_ROUND    0x1.8p52
#define VM_ULP_1    0x1p52
#define VM_NORMAL   0x1p-1022
#define VM_EXP_MIN  -746.0
#define VM_EXP_MAX  710.0
#define VM_TANH_MAX 40.0
#define VM_LOG2_E   0x1.71547652b82fep0
#define VM_LN2_HI   0x1.62e42fefa4p-1
#define VM_LN2_LO   -0x1.8432a1b0e2634p-43
#define VM_2_3_HI   0x1.5555555555555p-1
#define VM_2_3_LO   0x1.5555555555555p-55
#define VM_SQRT1_2  0x3fe6a09e667f3bcd
#define VM_EXP(r)                                                                                                                \
    VM_P10(r, 0x1.0000000000005p-1, 0x1.555555555553bp-3, 0x1.5555555552101p-5, 0x1.1111111118834p-7, 0x1.6c16c17f336cp-10,      \
           0x1.a01a0177f3ca6p-13, 0x1.a019a6914c09ap-16, 0x1.71de80fa36f19p-19, 0x1.28a2a1b3c047fp-22, 0x1.ae77aa5a5b9e6p-26)
#define VM_LOG(f)                                                                                                                \
    VM_P19(f, 0x1.5555555555533p-2, -0x1.fffffffffef15p-3, 0x1.999999999f7b1p-3, -0x1.555555566b2e2p-3, 0x1.24924922a1c3fp-3,    \
           -0x1.ffffff2bf976ap-4, 0x1.c71c71e0e737cp-4, -0x1.9999c26b565e5p-4, 0x1.745d3f0553411p-4, -0x1.5550ee61b2842p-4,      \
           0x1.3b0b8aab73afdp-4, -0x1.24d750fa8bca6p-4, 0x1.11ccf093c379p-4, -0x1.fba17fc1da7abp-5, 0x1.d05b0719d012ep-5,        \
           -0x1.d1219b4a61733p-5, 0x1.0a61e2b9106d3p-4, -0x1.ea005837a3a61p-5, 0x1.ac6cc533fa5c5p-6)
#define VM_ATANH(u)                                                                                                              \
    VM_P8(u, 0x1.9999999999996p-2, 0x1.2492492492f4dp-2, 0x1.c71c71c59734p-3, 0x1.745d18290323ep-3, 0x1.3b1364decde8ep-3,        \
          0x1.11206c2edb9b4p-3, 0x1.de3dde5658c67p-4, 0x1.eac295e93e378p-4)
#endif

/* Polynomials by Horner's rule, the constant first. */
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
#define VM_P18(x, c, ...) FMA(VM_P17(x, __VA_ARGS__), x, K(c))
#define VM_P19(x, c, ...) FMA(VM_P18(x, __VA_ARGS__), x, K(c))

#define VM FN_DECL __attribute__((always_inline)) /* a loop that calls them must see them to be vectorised */

typedef struct TYPED(pair) {
    T hi, lo; /* a number as the sum of both, |lo| at most about an ulp of hi */
} TYPED(pair);

typedef struct TYPED(power) {
    T hi, lo; /* 2^n (1 + hi + lo) */
    BITS n;   /* n + 2 bias */
} TYPED(power);

/* a + b without loss; the exponent of a is not below that of b, or a is 0. */
VM TYPED(pair) FN(two_sum)(T a, T b)
{
    TYPED(pair) s;
    s.hi = a + b;
    s.lo = (a - s.hi) + b;
    return s;
}

/* exp(x + lo) for x in [EXP_MIN, EXP_MAX]. NaN gives NaN. */
VM TYPED(power) FN(exp_parts)(T x, T lo)
{
    T t = FMA(x, K(VM_LOG2_E), K(VM_ROUND)), n = t - K(VM_ROUND);
    TYPED(pair) r = FN(two_sum)(FMA(n, K(-VM_LN2_HI), x), FMA(n, K(-VM_LN2_LO), lo));
    TYPED(pair) p = FN(two_sum)(r.hi, (r.hi * r.hi) * VM_EXP(r.hi));
    TYPED(power) e;
    e.hi = p.hi;
    e.lo = p.lo + FMA(r.lo, r.hi, r.lo);
    e.n = AS_BITS(t) - AS_BITS(K(VM_ROUND)) + 2 * VM_BIAS;
    return e;
}

/* 2^n x, rounded once: both factors are normal. */
VM T FN(scale)(T x, BITS n)
{
    BITS half = n >> 1;
    return (x * AS_T(half << VM_DIGITS)) * AS_T((n - half) << VM_DIGITS);
}

VM T FN(exp_clamp)(T x) { return SEL(x < K(VM_EXP_MIN), K(VM_EXP_MIN), SEL(x > K(VM_EXP_MAX), K(VM_EXP_MAX), x)); }

VM T FN(exp)(T x)
{
    TYPED(power) e = FN(exp_parts)(FN(exp_clamp)(x), K(0));
    return FN(scale)(K(1) + e.hi, e.n);
}

/* (a.hi + a.lo) / (b.hi + b.lo), nearly as if rounded once. */
VM T FN(quotient)(TYPED(pair) a, TYPED(pair) b)
{
    T inverse = K(1) / b.hi, q = a.hi * inverse;
    T rest = FMA(-q, b.hi, a.hi) + FMA(-q, b.lo, a.lo);
    return FMA(rest, inverse, q);
}

/* e / (1 + e) or 1 / (1 + e), with e = exp(-|x|). */
VM T FN(sigmoid)(T x)
{
    TYPED(power) p = FN(exp_parts)(FN(exp_clamp)(-ABS(x)), K(0));
    TYPED(pair) e = FN(two_sum)(K(1), p.hi);
    e.lo = FN(scale)(e.lo + p.lo, p.n);
    e.hi = FN(scale)(e.hi, p.n);
    TYPED(pair) b = FN(two_sum)(K(1), e.hi);
    b.lo = b.lo + e.lo;
    e.hi = SEL(x >= K(0), K(1), e.hi);
    e.lo = SEL(x >= K(0), K(0), e.lo);
    return FN(quotient)(e, b);
}

/* E / (E + 2), with E = exp(2 |x|) - 1, and the sign of x. */
VM T FN(tanh)(T x)
{
    T a = ABS(x) + ABS(x);
    TYPED(power) p = FN(exp_parts)(SEL(a > K(VM_TANH_MAX), K(VM_TANH_MAX), a), K(0));
    T s = AS_T((p.n - VM_BIAS) << VM_DIGITS), less = s - K(1), more = s + K(1); /* s = 2^n */
    TYPED(pair) above = FN(two_sum)(less, s * p.hi), below = FN(two_sum)(more, s * p.hi);
    T lost = K(2) - (more - less); /* 0 but for large s, where the quotient is 1 - 2 / s */
    above.lo = FMA(s, p.lo, above.lo);
    below.lo = FMA(s, p.lo, below.lo) + lost;
    return AS_T(AS_BITS(FN(quotient)(above, below)) | (AS_BITS(x) & VM_SIGN));
}

/* x = 2^exponent * fraction, the fraction from sqrt(1/2) to sqrt(2); x is positive and finite. */
VM T FN(fraction)(T x, T *exponent)
{
    T low = SEL(x < K(VM_NORMAL), K(VM_DIGITS + 1), K(0));
    T c = SEL(x < K(VM_NORMAL), x * K(2 * VM_ULP_1), x);
    BITS from = AS_BITS(K(1)) - VM_SQRT1_2, n = (AS_BITS(c) + from) >> VM_DIGITS; /* exponent + bias */
    *exponent = (AS_T(n | AS_BITS(K(VM_ULP_1))) - K(VM_ULP_1 + VM_BIAS)) - low;
    return AS_T(AS_BITS(c) - ((n - VM_BIAS) << VM_DIGITS));
}

VM T FN(log)(T x)
{
    T k, f = FN(fraction)(x, &k) - K(1), f2 = f * f;
    T rest = FMA(f2 * f, VM_LOG(f), K(-0.5) * f2);
    TYPED(pair) s = FN(two_sum)(k * K(VM_LN2_HI), f);
    T y = s.hi + (s.lo + FMA(k, K(VM_LN2_LO), rest));
    return SEL(x > K(0), SEL(x == INF, INF, y), SEL(x == K(0), -INF, K(NAN)));
}

/* log(x) to twice the digits less about ten, for x positive and finite: log of the fraction f is the series of
 * log((1 + s) / (1 - s)) in odd powers of s = (f - 1) / (f + 1), its first two terms carried in pairs. */
VM TYPED(pair) FN(log_pair)(T x)
{
    T k, m = FN(fraction)(x, &k), f = m - K(1);
    TYPED(pair) d = FN(two_sum)(K(1), m), s, u, c, t, y, z;
    T inverse = K(1) / d.hi;
    s.hi = f * inverse;
    s.lo = FMA(-s.hi, d.lo, FMA(-s.hi, d.hi, f)) * inverse;
    u.hi = s.hi * s.hi; /* s^2 */
    u.lo = FMA(s.hi, s.hi, -u.hi) + K(2) * (s.hi * s.lo);
    c = FN(two_sum)(K(VM_2_3_HI), u.hi * VM_ATANH(u.hi)); /* 2/3 + 2/5 s^2 + ... */
    c.lo = c.lo + K(VM_2_3_LO);
    t.hi = u.hi * c.hi; /* times s^2 */
    t.lo = FMA(u.hi, c.hi, -t.hi) + FMA(u.hi, c.lo, u.lo * c.hi);
    z.hi = s.hi * t.hi; /* times s */
    z.lo = FMA(s.hi, t.hi, -z.hi) + FMA(s.hi, t.lo, s.lo * t.hi);
    y = FN(two_sum)(K(2) * s.hi, z.hi);
    y.lo = y.lo + FMA(K(2), s.lo, z.lo);
    z = FN(two_sum)(k * K(VM_LN2_HI), y.hi);
    return FN(two_sum)(z.hi, z.lo + FMA(k, K(VM_LN2_LO), y.lo));
}

/* |x|^y = exp(y log |x|), from which the special cases of C are told apart afterwards. */
VM T FN(pow)(T x, T y)
{
    T a = ABS(x), b = ABS(y);
    TYPED(pair) l = FN(log_pair)(a);
    T z = y * l.hi, lo = FMA(y, l.lo, FMA(y, l.hi, -z)), c = FN(exp_clamp)(z);
    TYPED(power) e = FN(exp_parts)(c, SEL(c == z, lo, K(0)));
    TYPED(pair) p = FN(two_sum)(K(1), e.hi);
    T r = FN(scale)(p.hi + (p.lo + e.lo), e.n);

    r = SEL(a == INF, SEL(y > K(0), INF, K(0)), SEL(a == K(0), SEL(y > K(0), K(0), INF), r));
    r = SEL(a == K(1), K(1), r); /* y may be infinite */
    T shifted = SEL(b < K(VM_ULP_1), b + K(VM_ULP_1), SEL(b < K(2 * VM_ULP_1), b, K(0)));
    T nearest = SEL(b < K(VM_ULP_1), shifted - K(VM_ULP_1), b);
    BITS odd = AS_BITS(shifted) << VM_TOP;
    r = SEL((x < K(0)) & (a < INF) & (nearest != b), K(NAN), r);
    r = SEL(nearest == b, AS_T(AS_BITS(r) | (odd & AS_BITS(x) & VM_SIGN)), r);
    r = SEL((x != x) | (y != y), x + y, r);
    return SEL((x == K(1)) | (y == K(0)), K(1), r);
}

#include "vmath_trig.h"

#undef VM_DIGITS
#undef VM_TOP
#undef VM_BIAS
#undef VM_SIGN
#undef VM_ROUND
#undef VM_ULP_1
#undef VM_NORMAL
#undef VM_EXP_MIN
#undef VM_EXP_MAX
#undef VM_TANH_MAX
#undef VM_LOG2_E
#undef VM_LN2_HI
#undef VM_LN2_LO
#undef VM_2_3_HI
#undef VM_2_3_LO
#undef VM_SQRT1_2
#undef VM_EXP
#undef VM_LOG
#undef VM_ATANH
#undef VM
