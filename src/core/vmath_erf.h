/* vmath_erf.h - erf, erfc, ncdf and gelu: a part of vmath.h, in the same words and under the same rules.
 *
 * All are made of exp(u^2) erfc(u) for u >= 0, which is smooth: times 1 + 2 u it is a polynomial in q = (u - C) / (u + C), and
 * 1 at q = -1.
 * The coefficients: tools/fit_vmath_trig.sollya. */

#ifdef T_f32
#define VM_ERFC_TOP 10.19 /* erfc(a) is 0 from here on, */
#define VM_GELU_TOP 14.42 /* and gelu(-a) */
#define VM_ERFC_C   2.5
#define VM_1_2_HI   0x1.6a09e6p-1 /* sqrt(1/2) */
#define VM_1_2_LO   0x1.9fcef4p-27
/* ((1 + 2 u) exp(u^2) erfc(u) - 1) / (1 + q) for q = (u - C) / (u + C), u from 0 to ERFC_TOP */
#define VM_ERFC(q)                                                                                                               \
    VM_P11(q, 0x1.0f31bep-2, -0x1.8c7cd4p-2, 0x1.27161ep-2, -0x1.0b593cp-3, 0x1.c3c394p-6, 0x1.5482ep-8, -0x1.166c5p-8,          \
           -0x1.46d264p-13, 0x1.2fd468p-11, 0x1.7001fap-15, -0x1.4b057cp-15)
/* erf(x) / x - 1 for z = x^2 <= 1/4 */
#define VM_ERF(z) VM_P5(z, 0x1.06eba8p-3, -0x1.812734p-2, 0x1.ce255p-4, -0x1.b66a9ap-6, 0x1.35616p-8)

#else
#define VM_ERFC_TOP 27.3
#define VM_GELU_TOP 38.6
#define VM_ERFC_C   3.75
#define VM_1_2_HI   0x1.6a09e667f3bcdp-1
#define VM_1_2_LO   -0x1.bdd3413b26456p-55
#define VM_ERFC(q)                                                                                                               \
    VM_P23(q, 0x1.e66d05aeaee14p-3, -0x1.82d1be1953bdep-2, 0x1.867da34256704p-2, -0x1.323d48ce30ccbp-2, 0x1.85a5f94f4dd9fp-3,    \
           -0x1.9137da140386p-4, 0x1.419eb9b9d65c9p-5, -0x1.651adfeb45234p-7, 0x1.2dd51e0682f9dp-10, 0x1.3cc9e02b66761p-11,      \
           -0x1.4598a45f9f91bp-12, 0x1.55903eb6b47ffp-16, 0x1.067d5d463540ep-15, -0x1.2addceb5255bap-17, -0x1.54e2934cc6986p-19, \
           0x1.a42e1326a3833p-20, 0x1.9a58a8ff8096ap-23, -0x1.076398ddf5f7dp-22, -0x1.3fb97fe0a2062p-26, 0x1.3e55a36ef9129p-25,  \
           0x1.31f5d38e06b71p-28, -0x1.1fecfcf3d32e2p-28, -0x1.25205e1b45aecp-30)
#define VM_ERF(z)                                                                                                                \
    VM_P10(z, 0x1.06eba8214db69p-3, -0x1.812746b037a1cp-2, 0x1.ce2f21a0465d6p-4, -0x1.b82ce31452d89p-6, 0x1.565bcd88c08ccp-8,    \
           -0x1.c02dda3a69e03p-11, 0x1.f9aa513f85a49p-14, -0x1.f59b5ccf63ef7p-17, 0x1.c569c4caa49b3p-20, -0x1.97c5e5767b22fp-23)
#endif
#define VM_P13(x, c, ...) FMA(VM_P12(x, __VA_ARGS__), x, K(c))
#define VM_P14(x, c, ...) FMA(VM_P13(x, __VA_ARGS__), x, K(c))
#define VM_P15(x, c, ...) FMA(VM_P14(x, __VA_ARGS__), x, K(c))
#define VM_P16(x, c, ...) FMA(VM_P15(x, __VA_ARGS__), x, K(c))
#define VM_P17(x, c, ...) FMA(VM_P16(x, __VA_ARGS__), x, K(c))
#define VM_P18(x, c, ...) FMA(VM_P17(x, __VA_ARGS__), x, K(c))
#define VM_P19(x, c, ...) FMA(VM_P18(x, __VA_ARGS__), x, K(c))
#define VM_P20(x, c, ...) FMA(VM_P19(x, __VA_ARGS__), x, K(c))
#define VM_P21(x, c, ...) FMA(VM_P20(x, __VA_ARGS__), x, K(c))
#define VM_P22(x, c, ...) FMA(VM_P21(x, __VA_ARGS__), x, K(c))
#define VM_P23(x, c, ...) FMA(VM_P22(x, __VA_ARGS__), x, K(c))

typedef struct TYPED(scaled) {
    TYPED(pair) of; /* 2^n (hi + lo) */
    BITS n;         /* as a power's */
} TYPED(scaled);

/* erfc(u) for the pair u >= 0, whose square is -(square + lost). */
VM TYPED(scaled) FN(erfc_parts)(TYPED(pair) u, T square, T lost)
{
    T t = (u.hi + u.hi) / (u.hi + K(VM_ERFC_C)), q = t - K(1);
    TYPED(pair) below, w, e;
    below.hi = FMA(K(2), u.hi, K(1));
    below.lo = FMA(K(2), u.hi, K(1) - below.hi) + K(2) * u.lo;
    w = FN(ratio)(FN(two_sum)(K(1), t * VM_ERFC(q)), below);
    TYPED(power) p = FN(exp_parts)(square, lost);
    e = FN(two_sum)(K(1), p.hi);
    e.lo = e.lo + p.lo;
    TYPED(scaled) r;
    r.of.hi = w.hi * e.hi;
    r.of.lo = FMA(w.hi, e.hi, -r.of.hi) + FMA(w.hi, e.lo, w.lo * e.hi);
    r.n = p.n;
    return r;
}

/* erfc(|x|). */
VM T FN(erfc_upper)(T x)
{
    TYPED(pair) a;
    a.hi = SEL(ABS(x) > K(VM_ERFC_TOP), K(VM_ERFC_TOP), ABS(x));
    a.lo = K(0);
    T square = -(a.hi * a.hi);
    TYPED(scaled) r = FN(erfc_parts)(a, square, FMA(-a.hi, a.hi, -square));
    return FN(scale)(r.of.hi + r.of.lo, r.n);
}

VM T FN(erfc)(T x)
{
    T r = FN(erfc_upper)(x);
    return SEL(x < K(0), K(2) - r, r);
}

VM T FN(erf)(T x)
{
    T z = x * x, a = ABS(x);
    return FN(with_sign)(SEL(a < K(0.5), FMA(a, VM_ERF(z), a), K(1) - FN(erfc_upper)(x)), x);
}

/* erfc(a / sqrt(2)), 0 <= a <= GELU_TOP. */
VM TYPED(scaled) FN(normal_tail)(T a)
{
    T half = K(-0.5) * a, square = half * a;
    TYPED(pair) u;
    u.hi = a * K(VM_1_2_HI);
    u.lo = FMA(a, K(VM_1_2_HI), -u.hi) + a * K(VM_1_2_LO);
    return FN(erfc_parts)(u, square, FMA(half, a, -square));
}

/* The cumulative distribution function of the normal distribution. */
VM T FN(ncdf)(T x)
{
    TYPED(scaled) r = FN(normal_tail)(SEL(ABS(x) > K(VM_GELU_TOP), K(VM_GELU_TOP), ABS(x)));
    T tail = FN(scale)(r.of.hi + r.of.lo, r.n - 1);
    return SEL(x > K(0), K(1) - tail, tail);
}

/* x ncdf(x): with a = |x| and the tail t = ncdf(-a), it is a - a t or -a t. */
VM T FN(gelu)(T x)
{
    T a = SEL(ABS(x) > K(VM_GELU_TOP), K(VM_GELU_TOP), ABS(x));
    TYPED(scaled) r = FN(normal_tail)(a);
    T p = a * r.of.hi, lo = FMA(a, r.of.hi, -p) + a * r.of.lo;
    TYPED(pair) y = FN(two_sum)(SEL(x > K(0), a, K(0)), -FN(scale)(p, r.n - 1));
    T inside = y.hi + (y.lo - FN(scale)(lo, r.n - 1));
    return SEL(x > K(VM_GELU_TOP), x, FN(with_sign)(inside, x));
}

#undef VM_ERFC_TOP
#undef VM_GELU_TOP
#undef VM_ERFC_C
#undef VM_1_2_HI
#undef VM_1_2_LO
#undef VM_ERFC
#undef VM_ERF
