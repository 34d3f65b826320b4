/* vmath.h - exponentials, logarithms, powers and roots, in the words of formula.h: once for every machine and type.
 *
 * Only + - * / FMA, comparisons, selections and operations on bits are used. All of these are exact or exactly rounded, so every
 * machine gives the same bits (of a NaN, only that it is one). No statement jumps and, but in fmod, no loop is left: compilers vectorise
 * them.
 * How large the errors are: docs/accuracy.md. The coefficients: tools/fit_vmath.sollya. */

#ifdef T_f32
#define VM_DIGITS   23 /* of the fraction */
#define VM_TOP      31 /* where the sign is */
#define VM_BIAS     127
#define VM_SIGN     0x80000000u
#define VM_EXPONENT 0x7f800000u
#define VM_ROUND    0x1.8p23 /* x + ROUND: x as an integer, in the low bits; those above hold no n of 2^n */
#define VM_ULP_1    0x1p23   /* from here on every number is an integer; twice that: an even one */
#define VM_NORMAL   0x1p-126 /* the least that is not subnormal */
#define VM_TINY     0x1p-26  /* below, x is f(x) for functions like x + x^2 / 2 */
#define VM_FAR      20.0     /* 1 + exp(-FAR) is 1 */
#define VM_SINH_MAX 89.5     /* exp, sinh and cosh are infinite here */
#define VM_EXP_MAX  104.0    /* exp of minus this is 0 */
#define VM_EXP_SAFE 87.0     /* exp of this and of minus this is normal */
#define VM_SIGMOID  42.0     /* sigmoid of this is 1, and 2^-LIFT exp(-this) normal */
#define VM_EXP2_MAX 151.0    /* and so is 2 to the power */
#define VM_HALVES   0x1p-65  /* 2^-(BIAS / 2 + 2) */
#define VM_LIFT     64       /* 2^(n + LIFT) is a normal number, whatever 2^n <= 1; */
#define VM_LOWER    0x1p-64  /* times this it is 2^n */
#define VM_LOG2_E   0x1.715476p0
#define VM_LOG2_LO  0x1.4ae0cp-26
#define VM_LOG10_E  0x1.bcb7b2p-2
#define VM_LOG10_LO -0x1.5b235ep-27
#define VM_LG2_HI   0x1.344p-2 /* log10(2), with few digits as LN2_HI */
#define VM_LG2_LO   0x1.3509f8p-18
#define VM_LN2_HI   0x1.62e4p-1 /* few digits: its product with an exponent is exact */
#define VM_LN2_LO   0x1.7f7d1cp-20
#define VM_2_3_HI   0x1.555556p-1
#define VM_2_3_LO   -0x1.555556p-26
#define VM_SQRT1_2  0x3f3504f3 /* the bits of sqrt(1/2) */
#define VM_CBRT_2   0x1.428a3p0
#define VM_CBRT1_2  0x1.965feap-1
/* (exp(r) - 1 - r) / r^2 for |r| <= 0.3467 */
#define VM_EXP(r) VM_P5(r, 0x1.fffffep-2, 0x1.5554bp-3, 0x1.555716p-5, 0x1.12279ep-7, 0x1.6b7376p-10)
/* (2^r - 1) / r for |r| <= 1/2 */
#define VM_EXP2(r) VM_P6(r, 0x1.62e43p-1, 0x1.ebfbdep-3, 0x1.c6af9ep-5, 0x1.3b2c58p-7, 0x1.5ef4a2p-10, 0x1.427918p-13)
/* (sinh(r) / r - 1) / r^2 and (cosh(r) - 1) / r^2, of v = r^2, for |r| <= 0.3467 */
#define VM_SINH(v) VM_P3(v, 0x1.555556p-3, 0x1.110fe2p-7, 0x1.a28f2ep-13)
#define VM_COSH(v) VM_P3(v, 0x1p-1, 0x1.555502p-5, 0x1.6d2e22p-10)
/* (log(1 + f) - f + f^2 / 2) / f^3 for sqrt(1/2) <= 1 + f <= sqrt(2). In f64 the odd terms, then the even: two sums side by side. */
#define VM_LOG(f)                                                                                                                \
    VM_P8(f, 0x1.55557p-2, -0x1.000234p-2, 0x1.99944ep-3, -0x1.5466fep-3, 0x1.239ce2p-3, -0x1.0e96ccp-3, 0x1.015974p-3,          \
          -0x1.2a6f78p-4)
/* (log((1 + s) / (1 - s)) / s - 2 - 2/3 u) / u^2 for u = s^2 <= 0.02945 */
#define VM_ATANH(u) VM_P3(u, 0x1.999ap-2, 0x1.24528p-2, 0x1.dfa126p-3)
/* m^(-1/3) for sqrt(1/2) <= m <= sqrt(2), with half of the digits */
#define VM_CBRT(m) VM_P6(m, 0x1.ffc956p0, -0x1.3e31e2p1, 0x1.6565ccp1, -0x1.e5e98ap0, 0x1.66c51p-1, -0x1.ba9e78p-4)

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
#define VM_SINH_MAX 710.6
#define VM_EXP_MAX  746.0
#define VM_EXP_SAFE 708.0
#define VM_SIGMOID  350.0
#define VM_EXP2_MAX 1076.0
#define VM_HALVES   0x1p-513
#define VM_LIFT     512
#define VM_LOWER    0x1p-512
#define VM_LOG2_E   0x1.71547652b82fep0
#define VM_LOG2_LO  0x1.777d0ffda0d24p-56
#define VM_LOG10_E  0x1.bcb7b1526e50ep-2
#define VM_LOG10_LO 0x1.95355baaafad3p-57
#define VM_LG2_HI   0x1.34413509f8p-2
#define VM_LG2_LO   -0x1.80433b83b532ap-44
#define VM_LN2_HI   0x1.62e42fefa4p-1
#define VM_LN2_LO   -0x1.8432a1b0e2634p-43
#define VM_2_3_HI   0x1.5555555555555p-1
#define VM_2_3_LO   0x1.5555555555555p-55
#define VM_SQRT1_2  0x3fe6a09e667f3bcd
#define VM_CBRT_2   0x1.428a2f98d728bp0
#define VM_CBRT1_2  0x1.965fea53d6e3dp-1
#define VM_EXP(r)                                                                                                                \
    VM_P10(r, 0x1.0000000000005p-1, 0x1.555555555553bp-3, 0x1.5555555552101p-5, 0x1.1111111118834p-7, 0x1.6c16c17f336cp-10,      \
           0x1.a01a0177f3ca6p-13, 0x1.a019a6914c09ap-16, 0x1.71de80fa36f19p-19, 0x1.28a2a1b3c047fp-22, 0x1.ae77aa5a5b9e6p-26)
#define VM_EXP2(r)                                                                                                               \
    VM_P12(r, 0x1.62e42fefa39efp-1, 0x1.ebfbdff82c58ep-3, 0x1.c6b08d704a1d1p-5, 0x1.3b2ab6fba51a1p-7, 0x1.5d87fe7875275p-10,     \
           0x1.430912f75554ep-13, 0x1.ffcbfd443c0fcp-17, 0x1.62c0272e79a4ep-20, 0x1.b5233dce623c5p-24, 0x1.e4bb7f1f6d3dp-28,     \
           0x1.ec5e95af810cbp-32, 0x1.e0fcb9afcf823p-36)
#define VM_SINH(v)                                                                                                               \
    VM_P6(v, 0x1.5555555555555p-3, 0x1.111111111130ap-7, 0x1.a01a019f13dacp-13, 0x1.71de3e35be3fbp-19, 0x1.ae569f90d5057p-26,    \
          0x1.73c36ba4c2434p-33)
#define VM_COSH(v)                                                                                                               \
    VM_P6(v, 0x1p-1, 0x1.5555555555556p-5, 0x1.6c16c16c15ff4p-10, 0x1.a01a01a81d0fep-16, 0x1.27e4d8083691p-22,                   \
          0x1.1f79043126aebp-29)
#define VM_LOG(f)                                                                                                                \
    FMA(VM_P9((f) * (f), -0x1.fffffffffef15p-3, -0x1.555555566b2e2p-3, -0x1.ffffff2bf976ap-4, -0x1.9999c26b565e5p-4,             \
              -0x1.5550ee61b2842p-4, -0x1.24d750fa8bca6p-4, -0x1.fba17fc1da7abp-5, -0x1.d1219b4a61733p-5,                        \
              -0x1.ea005837a3a61p-5),                                                                                            \
        f,                                                                                                                       \
        VM_P10((f) * (f), 0x1.5555555555533p-2, 0x1.999999999f7b1p-3, 0x1.24924922a1c3fp-3, 0x1.c71c71e0e737cp-4,                \
               0x1.745d3f0553411p-4, 0x1.3b0b8aab73afdp-4, 0x1.11ccf093c379p-4, 0x1.d05b0719d012ep-5, 0x1.0a61e2b9106d3p-4,      \
               0x1.ac6cc533fa5c5p-6))
#define VM_ATANH(u)                                                                                                              \
    VM_P8(u, 0x1.9999999999996p-2, 0x1.2492492492f4dp-2, 0x1.c71c71c59734p-3, 0x1.745d18290323ep-3, 0x1.3b1364decde8ep-3,        \
          0x1.11206c2edb9b4p-3, 0x1.de3dde5658c67p-4, 0x1.eac295e93e378p-4)
#define VM_CBRT(m)                                                                                                               \
    VM_P11(m, 0x1.3ae5c2p1, -0x1.858924p2, 0x1.eca3p3, -0x1.c18f4cp4, 0x1.26191p5, -0x1.151108p5, 0x1.75918ep4, -0x1.6032c8p3,   \
           0x1.b9976ap1, -0x1.4b11d6p-1, 0x1.c1886p-5)
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

#define VM FN_DECL __attribute__((always_inline)) /* a loop that calls them must see them to be vectorised */

typedef struct TYPED(pair) {
    T hi, lo; /* a number as the sum of both, |lo| at most about an ulp of hi */
} TYPED(pair);

typedef struct TYPED(power) {
    T hi, lo; /* 2^n (1 + hi + lo) */
    BITS n;   /* n + 2 bias, in its low bits: all that an exponent needs and one more */
} TYPED(power);

/* a + b without loss; the exponent of a is not below that of b, or a is 0. */
VM TYPED(pair) FN(two_sum)(T a, T b)
{
    TYPED(pair) s;
    s.hi = a + b;
    s.lo = (a - s.hi) + b;
    return s;
}

/* a + b without loss. */
VM TYPED(pair) FN(any_sum)(T a, T b)
{
    TYPED(pair) s;
    s.hi = a + b;
    T of_b = s.hi - a;
    s.lo = (a - (s.hi - of_b)) + (b - of_b);
    return s;
}

VM T FN(with_sign)(T x, T sign) { return AS_T(AS_BITS(x) | (AS_BITS(sign) & VM_SIGN)); }

/* exp(x + lo) for |x| <= EXP_MAX. NaN gives NaN. */
VM TYPED(power) FN(exp_parts)(T x, T lo)
{
    T t = FMA(x, K(VM_LOG2_E), K(VM_ROUND + 2 * VM_BIAS)), n = t - K(VM_ROUND + 2 * VM_BIAS);
    TYPED(pair) r = FN(two_sum)(FMA(n, K(-VM_LN2_HI), x), FMA(n, K(-VM_LN2_LO), lo));
    TYPED(pair) p = FN(two_sum)(r.hi, (r.hi * r.hi) * VM_EXP(r.hi));
    TYPED(power) e;
    e.hi = p.hi;
    e.lo = p.lo + FMA(r.lo, r.hi, r.lo);
    e.n = AS_BITS(t);
    return e;
}

/* 2^n x for n of a power, rounded once: both factors are normal. */
VM T FN(scale)(T x, BITS n)
{
    BITS all = n << VM_DIGITS, half = (all >> 1) & AS_BITS(INF);
    return (x * AS_T(half)) * AS_T(all - half);
}

/* x, or most with its sign. NaN stays. */
VM T FN(clamp)(T x, T most) { return FN(with_sign)(SEL(ABS(x) > most, most, ABS(x)), x); }

VM T FN(exp_clamp)(T x) { return FN(clamp)(x, K(VM_EXP_MAX)); }

/* r of x = n log 2 + r, for |x| <= EXP_MAX, and n + bias in the low bits of *n. */
VM T FN(exp_rest)(T x, int bias, BITS *n)
{
    T t = FMA(x, K(VM_LOG2_E), K(VM_ROUND) + K(bias)), k = t - (K(VM_ROUND) + K(bias));
    *n = AS_BITS(t);
    return FMA(k, K(-VM_LN2_LO), FMA(k, K(-VM_LN2_HI), x));
}

/* exp(x) / 2^n for |x| <= EXP_MAX, and n + bias in the low bits of *n. */
VM T FN(exp_fraction)(T x, int bias, BITS *n)
{
    T r = FN(exp_rest)(x, bias, n);
    return FMA(r, FMA(r, VM_EXP(r), K(1)), K(1));
}

VM T FN(exp)(T x)
{
    BITS n;
    T y = FN(exp_fraction)(FN(exp_clamp)(x), 2 * VM_BIAS, &n);
    return FN(scale)(y, n);
}

/* For |x| up to this exp(x) is normal, and exp_moderate gives the same bits for less. */
VM T FN(exp_reach)(void) { return K(VM_EXP_SAFE); }

VM T FN(exp_moderate)(T x)
{
    BITS n;
    T y = FN(exp_fraction)(x, VM_BIAS, &n);
    return y * AS_T(n << VM_DIGITS);
}

VM T FN(exp2)(T x)
{
    T c = FN(clamp)(x, K(VM_EXP2_MAX)), t = c + K(VM_ROUND + 2 * VM_BIAS);
    T r = c - (t - K(VM_ROUND + 2 * VM_BIAS));
    return FN(scale)(FMA(r, VM_EXP2(r), K(1)), AS_BITS(t));
}

/* 2^n (1 + p) - 1 = (2^n - 1) + 2^n p, a quarter of it on the way so that 2^n is finite. */
VM T FN(expm1)(T x)
{
    TYPED(power) p = FN(exp_parts)(SEL(x < K(-VM_FAR), K(-VM_FAR), SEL(x > K(VM_SINH_MAX), K(VM_SINH_MAX), x)), K(0));
    T s = AS_T((p.n - VM_BIAS - 2) << VM_DIGITS), less = s - K(0.25);
    TYPED(pair) e = FN(two_sum)(less, s * p.hi);
    e.lo = FMA(s, p.lo, e.lo) + ((s - less) - K(0.25)); /* what a large s lost */
    return SEL(ABS(x) < K(VM_TINY), x, K(4) * (e.hi + e.lo));
}

typedef struct TYPED(hyperbola) {
    TYPED(pair) sinh, cosh; /* of n log 2, halved; */
    TYPED(pair) odd;        /* sinh(r) */
    T even;                 /* cosh(r) - 1 */
} TYPED(hyperbola);

/* What sinh and cosh of |x| = n log 2 + r are made of. */
VM TYPED(hyperbola) FN(hyperbolic_parts)(T x)
{
    T a = SEL(ABS(x) > K(VM_SINH_MAX), K(VM_SINH_MAX), ABS(x)), t = FMA(a, K(VM_LOG2_E), K(VM_ROUND)), n = t - K(VM_ROUND);
    TYPED(pair) r = FN(two_sum)(FMA(n, K(-VM_LN2_HI), a), n * K(-VM_LN2_LO));
    T big = AS_T((AS_BITS(t) + VM_BIAS - 2) << VM_DIGITS), v = r.hi * r.hi;
    T small = AS_T((VM_BIAS + VM_BIAS / 2 - AS_BITS(t)) << VM_DIGITS) * K(VM_HALVES); /* its exponent may be below a normal one */
    TYPED(hyperbola) h = { FN(two_sum)(big, -small), FN(two_sum)(big, small), { r.hi, FMA(v * r.hi, VM_SINH(v), r.lo) }, K(0) };
    h.even = FMA(r.hi, r.lo, v * VM_COSH(v));
    return h;
}

/* 2 (a cosh(r) + b sinh(r)) */
VM T FN(turned)(TYPED(pair) a, T b, TYPED(hyperbola) h)
{
    T p = b * h.odd.hi, rest = FMA(b, h.odd.hi, -p) + FMA(b, h.odd.lo, a.lo);
    TYPED(pair) s = FN(two_sum)(a.hi, p);
    return K(2) * (s.hi + (s.lo + FMA(a.hi, h.even, rest)));
}

VM T FN(sinh)(T x)
{
    TYPED(hyperbola) h = FN(hyperbolic_parts)(x);
    return SEL(ABS(x) < K(VM_TINY), x, FN(with_sign)(FN(turned)(h.sinh, h.cosh.hi, h), x));
}

VM T FN(cosh)(T x)
{
    TYPED(hyperbola) h = FN(hyperbolic_parts)(x);
    return FN(turned)(h.cosh, h.sinh.hi, h);
}

/* (a.hi + a.lo) / (b.hi + b.lo), nearly as if rounded once. */
VM T FN(quotient)(TYPED(pair) a, TYPED(pair) b)
{
    T inverse = INVERSE(b.hi), q = a.hi * inverse;
    T rest = FMA(-q, b.hi, a.hi) + FMA(-q, b.lo, a.lo);
    return FMA(rest, inverse, q);
}

/* 1 / (1 + exp(-x)) for -EXP_MAX <= x <= SIGMOID, all of it by 2^-LIFT: then only the result may be subnormal. exp(-x) = s (1 + u), s = 2^n:
 * s + 1 is exact but for large s, and where s is small it does not matter. */
VM T FN(sigmoid_moderate)(T x)
{
    BITS n;
    T r = FN(exp_rest)(-x, VM_BIAS - VM_LIFT, &n), u = r * FMA(r, VM_EXP(r), K(1)), s = AS_T(n << VM_DIGITS);
    T d = s + K(VM_LOWER), lost = K(VM_LOWER) - (d - s);
    return INVERSE(FMA(s, u, lost) + d) * K(VM_LOWER);
}

/* For |x| up to this sigmoid_moderate serves. */
VM T FN(sigmoid_reach)(void) { return K(VM_SIGMOID); }

VM T FN(sigmoid)(T x)
{
    T below = SEL(x > K(VM_SIGMOID), K(VM_SIGMOID), x);
    return FN(sigmoid_moderate)(SEL(below < K(-VM_EXP_MAX), K(-VM_EXP_MAX), below));
}

/* E / (E + 2), with E = exp(2 |x|) - 1, and the sign of x. */
VM T FN(tanh)(T x)
{
    T a = ABS(x) + ABS(x);
    TYPED(power) p = FN(exp_parts)(SEL(a > K(VM_FAR), K(VM_FAR), a), K(0));
    T s = AS_T((p.n - VM_BIAS) << VM_DIGITS), less = s - K(1), more = s + K(1); /* s = 2^n */
    TYPED(pair) above = FN(two_sum)(less, s * p.hi), below = FN(two_sum)(more, s * p.hi);
    T lost = K(2) - (more - less); /* 0 but for large s, where the quotient is 1 - 2 / s */
    above.lo = FMA(s, p.lo, above.lo);
    below.lo = FMA(s, p.lo, below.lo) + lost;
    return FN(with_sign)(FN(quotient)(above, below), x);
}

/* x = 2^k * fraction, the fraction from sqrt(1/2) to sqrt(2), for x positive, normal and finite; n is k + bias. */
VM T FN(normal_fraction)(T x, BITS *n)
{
    *n = (AS_BITS(x) + (AS_BITS(K(1)) - VM_SQRT1_2)) >> VM_DIGITS;
    return AS_T(AS_BITS(x) - ((*n - VM_BIAS) << VM_DIGITS));
}

VM T FN(exponent)(BITS n) { return AS_T(n | AS_BITS(K(VM_ULP_1))) - K(VM_ULP_1 + VM_BIAS); }

/* The same of any x that is positive and finite. */
VM T FN(fraction)(T x, T *k)
{
    BITS n;
    T low = SEL(x < K(VM_NORMAL), K(VM_DIGITS + 1), K(0));
    T m = FN(normal_fraction)(SEL(x < K(VM_NORMAL), x * K(2 * VM_ULP_1), x), &n);
    *k = FN(exponent)(n) - low;
    return m;
}

/* log(1 + f) - f */
VM T FN(log_rest)(T f)
{
    T f2 = f * f;
    return FMA(f2 * f, VM_LOG(f), K(-0.5) * f2);
}

/* y, if it is a logarithm of x and that is neither 0 nor infinite nor without one. */
VM T FN(log_ends)(T x, T y) { return SEL(x > K(0), SEL(x == INF, INF, y), SEL(x == K(0), -INF, K(NAN))); }

VM T FN(log)(T x)
{
    T k, f = FN(fraction)(x, &k) - K(1);
    TYPED(pair) s = FN(two_sum)(k * K(VM_LN2_HI), f);
    return FN(log_ends)(x, s.hi + (s.lo + FMA(k, K(VM_LN2_LO), FN(log_rest)(f))));
}

/* (k two + log(1 + f)) e, for two = log(2) e. The product of k and two.hi is exact. */
VM T FN(log_times)(T x, TYPED(pair) e, TYPED(pair) two)
{
    T k, f = FN(fraction)(x, &k) - K(1), a = f * e.hi;
    T lost = K(-0.5) * FMA(f, f, -(f * f)); /* by log_rest */
    T rest = FMA(FN(log_rest)(f), e.hi, FMA(lost, e.hi, FMA(f, e.lo, FMA(f, e.hi, -a))));
    TYPED(pair) s = FN(two_sum)(k * two.hi, a);
    return FN(log_ends)(x, s.hi + (s.lo + FMA(k, two.lo, rest)));
}

VM T FN(log2)(T x)
{
    TYPED(pair) e = { K(VM_LOG2_E), K(VM_LOG2_LO) }, two = { K(1), K(0) };
    return FN(log_times)(x, e, two);
}

VM T FN(log10)(T x)
{
    TYPED(pair) e = { K(VM_LOG10_E), K(VM_LOG10_LO) }, two = { K(VM_LG2_HI), K(VM_LG2_LO) };
    return FN(log_times)(x, e, two);
}

/* log(u.hi + u.lo), the second too small to be an ulp of the first. */
VM TYPED(pair) FN(log_of_pair)(TYPED(pair) u)
{
    BITS n;
    T f = FN(normal_fraction)(u.hi, &n) - K(1), k = FN(exponent)(n);
    T less = K(0.5) * (u.lo * AS_T((2 * VM_BIAS + 1 - n) << VM_DIGITS)); /* 2^-k u.lo: 2^(1 - k) is a normal number, or 0 */
    TYPED(pair) g = FN(two_sum)(f, less), s = FN(two_sum)(k * K(VM_LN2_HI), g.hi);
    s.lo = s.lo + (FMA(k, K(VM_LN2_LO), FN(log_rest)(g.hi)) + FMA(-g.lo, g.hi, g.lo));
    return s;
}

VM T FN(log1p)(T x)
{
    TYPED(pair) u = FN(any_sum)(K(1), x), y = FN(log_of_pair)(u);
    return SEL((ABS(x) < K(VM_TINY)) | (x == INF), x, SEL(u.hi > K(0), y.hi + y.lo, SEL(u.hi == K(0), -INF, K(NAN))));
}

/* max(x, 0) + log(1 + exp(-|x|)) */
VM T FN(softplus)(T x)
{
    TYPED(power) p = FN(exp_parts)(-SEL(ABS(x) > K(VM_EXP_MAX), K(VM_EXP_MAX), ABS(x)), K(0));
    TYPED(pair) e = FN(two_sum)(K(1), p.hi);
    e.lo = e.lo + p.lo;
    TYPED(pair) u = FN(two_sum)(K(1), FN(scale)(e.hi + e.lo, p.n));
    e = FN(two_sum)(e.hi, e.lo);
    u.lo = u.lo + FN(scale)(e.lo, p.n);
    TYPED(pair) y = FN(log_of_pair)(u), s = FN(any_sum)(SEL(x > K(0), x, K(0)), y.hi);
    return SEL(x > K(VM_FAR), x, s.hi + (s.lo + y.lo));
}

/* 2^n cbrt(z), z from 1/2 sqrt(1/2) to 2 sqrt(2). The first guess has half of the digits, a step of Newton's the rest. */
VM T FN(cbrt)(T x)
{
    T k, m = FN(fraction)(ABS(x), &k), t = FMA(k, K(1.0 / 3), K(VM_ROUND + VM_BIAS)),
         odd = FMA(t - K(VM_ROUND + VM_BIAS), K(-3), k);
    T z = m * SEL(odd > K(0), K(2), SEL(odd < K(0), K(0.5), K(1)));
    T w = VM_CBRT(m) * SEL(odd > K(0), K(VM_CBRT1_2), SEL(odd < K(0), K(VM_CBRT_2), K(1))), w2 = w * w; /* z^(-1/3) */
    T y = z * w2, y2 = y * y, rest = FMA(-FMA(y, y, -y2), y, FMA(-y2, y, z));                           /* z - y^3 */
    y = FMA(rest, w2 * K(1.0 / 3), y) * AS_T(AS_BITS(t) << VM_DIGITS);
    return SEL((ABS(x) > K(0)) & (ABS(x) < INF), FN(with_sign)(y, x), x);
}

/* 1 / sqrt(x), and a step of Newton's: rounding the root and then its inverse would cost up to 1.5 ulp. */
VM T FN(rsqrt)(T x)
{
    T y = K(1) / SQRT(x), s = x * y, rest = FMA(-FMA(x, y, -s), y, FMA(-s, y, K(1))); /* 1 - x y^2 */
    return SEL((x > K(0)) & (x < INF), FMA(K(0.5) * y, rest, y), y);
}

/* log(x) to twice the digits less about ten, for x positive and finite: log of the fraction f is the series of
 * log((1 + s) / (1 - s)) in odd powers of s = (f - 1) / (f + 1), its first two terms carried in pairs. */
VM TYPED(pair) FN(log_pair)(T x)
{
    T k, m = FN(fraction)(x, &k), f = m - K(1);
    TYPED(pair) d = FN(two_sum)(K(1), m), s, u, c, t, y, z;
    T inverse = INVERSE(d.hi);
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
#undef VM_SINH_MAX
#undef VM_EXP_MAX
#undef VM_SIGMOID
#undef VM_EXP_SAFE
#undef VM_TINY
#undef VM_FAR
#undef VM_EXP2_MAX
#undef VM_HALVES
#undef VM_LIFT
#undef VM_LOWER
#undef VM_LOG2_E
#undef VM_LOG2_LO
#undef VM_LOG10_E
#undef VM_LOG10_LO
#undef VM_LG2_HI
#undef VM_LG2_LO
#undef VM_LN2_HI
#undef VM_LN2_LO
#undef VM_2_3_HI
#undef VM_2_3_LO
#undef VM_SQRT1_2
#undef VM_CBRT_2
#undef VM_CBRT1_2
#undef VM_EXP
#undef VM_EXP2
#undef VM_SINH
#undef VM_COSH
#undef VM_CBRT
#undef VM_LOG
#undef VM_ATANH
#undef VM
