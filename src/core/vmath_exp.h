/* vmath_exp.h - exponentials, hyperbolic functions and sigmoid. Part of vmath.h. */

#ifdef T_f32
#define VM_SINH_MAX 89.5    /* exp, sinh and cosh are infinite for larger x */
#define VM_EXP2_MAX 151.0   /* and 2^x for x above this */
#define VM_EXP_SAFE 87.0    /* exp(EXP_SAFE) and exp(-EXP_SAFE) are normal */
#define VM_SIGMOID  42.0    /* sigmoid(SIGMOID) == 1, and 2^-LIFT exp(-SIGMOID) is normal */
#define VM_HALVES   0x1p-65 /* 2^-(BIAS / 2 + 2) */
/* (2^r - 1) / r for |r| <= 1/2 */
#define VM_EXP2(r)                                                                                           \
    VM_P6(r, 0x1.62e43p-1, 0x1.ebfbdep-3, 0x1.c6af9ep-5, 0x1.3b2c58p-7, 0x1.5ef4a2p-10, 0x1.427918p-13)
/* (sinh(r) / r - 1) / r^2 and (cosh(r) - 1) / r^2 as functions of v = r^2, for |r| <= 0.3467 */
#define VM_SINH(v) VM_P3(v, 0x1.555556p-3, 0x1.110fe2p-7, 0x1.a28f2ep-13)
#define VM_COSH(v) VM_P3(v, 0x1p-1, 0x1.555502p-5, 0x1.6d2e22p-10)

#else
#define VM_SINH_MAX 710.6
#define VM_EXP2_MAX 1076.0
#define VM_EXP_SAFE 708.0
#define VM_SIGMOID  350.0
#define VM_HALVES   0x1p-513
#define VM_EXP2(r)                                                                                           \
    VM_P12(r, 0x1.62e42fefa39efp-1, 0x1.ebfbdff82c58ep-3, 0x1.c6b08d704a1d1p-5, 0x1.3b2ab6fba51a1p-7,        \
           0x1.5d87fe7875275p-10, 0x1.430912f75554ep-13, 0x1.ffcbfd443c0fcp-17, 0x1.62c0272e79a4ep-20,       \
           0x1.b5233dce623c5p-24, 0x1.e4bb7f1f6d3dp-28, 0x1.ec5e95af810cbp-32, 0x1.e0fcb9afcf823p-36)
#define VM_SINH(v)                                                                                           \
    VM_P6(v, 0x1.5555555555555p-3, 0x1.111111111130ap-7, 0x1.a01a019f13dacp-13, 0x1.71de3e35be3fbp-19,       \
          0x1.ae569f90d5057p-26, 0x1.73c36ba4c2434p-33)
#define VM_COSH(v)                                                                                           \
    VM_P6(v, 0x1p-1, 0x1.5555555555556p-5, 0x1.6c16c16c15ff4p-10, 0x1.a01a01a81d0fep-16,                     \
          0x1.27e4d8083691p-22, 0x1.1f79043126aebp-29)
#endif

typedef struct TYPED(power) {
    T hi, lo; /* 2^n (1 + hi + lo) */
    BITS n;   /* n + 2 * bias in its low bits, which are one more than an exponent has */
} TYPED(power);

/* exp(x + lo) for |x| <= EXP_MAX; NaN for NaN. */
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

/* 2^n x, rounded once, where n comes from a TYPED(power). Both factors are normal. */
VM T FN(scale)(T x, BITS n)
{
    BITS all = n << VM_DIGITS, half = (all >> 1) & AS_BITS(INF);
    return (x * AS_T(half)) * AS_T(all - half);
}

VM T FN(exp_clamp)(T x) { return FN(clamp)(x, K(VM_EXP_MAX)); }

/* Returns r, where x = n log 2 + r, for |x| <= EXP_MAX. The low bits of *n become n + bias. */
VM T FN(exp_rest)(T x, int bias, BITS *n)
{
    T t = FMA(x, K(VM_LOG2_E), K(VM_ROUND) + K(bias)), k = t - (K(VM_ROUND) + K(bias));
    *n = AS_BITS(t);
    return FMA(k, K(-VM_LN2_LO), FMA(k, K(-VM_LN2_HI), x));
}

/* Returns exp(x) / 2^n for |x| <= EXP_MAX. The low bits of *n become n + bias. */
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

/* For |x| up to this limit exp(x) is normal, and exp_moderate gives the same bits faster. */
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

/* 2^n (1 + p) - 1 = (2^n - 1) + 2^n p. It is computed at a quarter of its size, so that 2^n is
 * finite. */
VM T FN(expm1)(T x)
{
    TYPED(power)
    p = FN(exp_parts)(SEL(x < K(-VM_FAR), K(-VM_FAR), SEL(x > K(VM_SINH_MAX), K(VM_SINH_MAX), x)), K(0));
    T s = AS_T((p.n - VM_BIAS - 2) << VM_DIGITS), less = s - K(0.25);
    TYPED(pair) e = FN(two_sum)(less, s * p.hi);
    e.lo = FMA(s, p.lo, e.lo) + ((s - less) - K(0.25)); /* the rounding error of a large s */
    return SEL(ABS(x) < K(VM_TINY), x, K(4) * (e.hi + e.lo));
}

typedef struct TYPED(hyperbola) {
    TYPED(pair) sinh, cosh; /* of n log 2, divided by two */
    TYPED(pair) odd;        /* sinh(r) */
    T even;                 /* cosh(r) - 1 */
} TYPED(hyperbola);

/* The terms from which sinh and cosh of |x| = n log 2 + r are computed. */
VM TYPED(hyperbola) FN(hyperbolic_parts)(T x)
{
    T a = SEL(ABS(x) > K(VM_SINH_MAX), K(VM_SINH_MAX), ABS(x)), t = FMA(a, K(VM_LOG2_E), K(VM_ROUND)),
      n = t - K(VM_ROUND);
    TYPED(pair) r = FN(two_sum)(FMA(n, K(-VM_LN2_HI), a), n * K(-VM_LN2_LO));
    T big = AS_T((AS_BITS(t) + VM_BIAS - 2) << VM_DIGITS), v = r.hi * r.hi;
    T small = AS_T((VM_BIAS + VM_BIAS / 2 - AS_BITS(t)) << VM_DIGITS) *
              K(VM_HALVES); /* computed in two factors, as 2^-n may be too small for one */
    TYPED(hyperbola)
    h = {
        FN(two_sum)(big, -small), FN(two_sum)(big, small), { r.hi, FMA(v * r.hi, VM_SINH(v), r.lo) }, K(0)
    };
    h.even = FMA(r.hi, r.lo, v * VM_COSH(v));
    return h;
}

/* 2 (a cosh(r) + b sinh(r)) */
VM T FN(sinh_cosh_sum)(TYPED(pair) a, T b, TYPED(hyperbola) h)
{
    T p = b * h.odd.hi, rest = FMA(b, h.odd.hi, -p) + FMA(b, h.odd.lo, a.lo);
    TYPED(pair) s = FN(two_sum)(a.hi, p);
    return K(2) * (s.hi + (s.lo + FMA(a.hi, h.even, rest)));
}

VM T FN(sinh)(T x)
{
    TYPED(hyperbola) h = FN(hyperbolic_parts)(x);
    return SEL(ABS(x) < K(VM_TINY), x, FN(with_sign)(FN(sinh_cosh_sum)(h.sinh, h.cosh.hi, h), x));
}

VM T FN(cosh)(T x)
{
    TYPED(hyperbola) h = FN(hyperbolic_parts)(x);
    return FN(sinh_cosh_sum)(h.cosh, h.sinh.hi, h);
}

/* (a.hi + a.lo) / (b.hi + b.lo), with an error little above that of one rounding. */
VM T FN(quotient)(TYPED(pair) a, TYPED(pair) b)
{
    T inverse = INVERSE(b.hi), q = a.hi * inverse;
    T rest = FMA(-q, b.hi, a.hi) + FMA(-q, b.lo, a.lo);
    return FMA(rest, inverse, q);
}

/* 1 / (1 + exp(-x)) for -EXP_MAX <= x <= SIGMOID. All intermediates are scaled by 2^-LIFT, so that
 * only the result may be subnormal. With exp(-x) = s (1 + u) and s = 2^n, s + 1 is exact unless s
 * is large; if s is small, its error does not matter. */
VM T FN(sigmoid_moderate)(T x)
{
    BITS n;
    T r = FN(exp_rest)(-x, VM_BIAS - VM_LIFT, &n), u = r * FMA(r, VM_EXP(r), K(1)), s = AS_T(n << VM_DIGITS);
    T d = s + K(VM_LOWER), lost = K(VM_LOWER) - (d - s);
    return INVERSE(FMA(s, u, lost) + d) * K(VM_LOWER);
}

/* For |x| up to this limit sigmoid_moderate is valid. */
VM T FN(sigmoid_reach)(void) { return K(VM_SIGMOID); }

VM T FN(sigmoid)(T x)
{
    T below = SEL(x > K(VM_SIGMOID), K(VM_SIGMOID), x);
    return FN(sigmoid_moderate)(SEL(below < K(-VM_EXP_MAX), K(-VM_EXP_MAX), below));
}

/* E / (E + 2), where E = exp(2 |x|) - 1, with the sign of x. */
VM T FN(tanh)(T x)
{
    T a = ABS(x) + ABS(x);
    TYPED(power) p = FN(exp_parts)(SEL(a > K(VM_FAR), K(VM_FAR), a), K(0));
    T s = AS_T((p.n - VM_BIAS) << VM_DIGITS), less = s - K(1), more = s + K(1); /* s = 2^n */
    TYPED(pair) above = FN(two_sum)(less, s * p.hi), below = FN(two_sum)(more, s * p.hi);
    T lost = K(2) - (more - less); /* 0 unless s is large; then the quotient is 1 - 2 / s */
    above.lo = FMA(s, p.lo, above.lo);
    below.lo = FMA(s, p.lo, below.lo) + lost;
    return FN(with_sign)(FN(quotient)(above, below), x);
}

#undef VM_SINH_MAX
#undef VM_EXP_SAFE
#undef VM_SIGMOID
#undef VM_EXP2_MAX
#undef VM_HALVES
#undef VM_EXP2
#undef VM_SINH
#undef VM_COSH
