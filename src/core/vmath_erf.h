/* vmath_erf.h - erf, erfc, ncdf and gelu. Part of vmath.h.
 *
 * All are computed from ncdf(-a) for a >= 0: 2 ncdf(-a) = exp(-a^2 / 2) y (1 + s), where y = 1 /
 * (3/2 + a) and s is a polynomial in y. tools/fit_vmath_trig.sollya computes the coefficients. */

#ifdef T_f32
#define VM_NORMAL_TOP 14.42 /* a ncdf(-a) == 0 for larger a */
#define VM_ERFC_TOP   10.19 /* erfc(a) == 0 for larger a */
#define VM_SQRT2_HI   0x1.6a09e6p0
#define VM_SQRT2_LO   0x1.9fcef4p-26
/* 2 exp(a^2 / 2) ncdf(-a) / y - 1 for y = 1 / (3/2 + a) = MILLS_C + d and a in [0, NORMAL_TOP]:
 * MILLS_0 + d MILLS(d). In f64 with two sums, as VM_LOG has, but the constant is added last: near a = 0 the
 * sums cancel. */
#define VM_MILLS_C        0.1875
#define VM_MILLS_0        0x1.7b8222p-5
#define VM_MILLS_SLOPE(y) VM_P2(y, 1.02, 1.4)
#define VM_MILLS(d)                                                                                          \
    VM_P11(d, 0x1.5f8eb8p0, -0x1.d7ec16p-3, -0x1.4d9ab2p1, 0x1.a30f5p0, 0x1.c77e48p2, -0x1.cb2e1ep3,         \
           -0x1.03fb98p3, 0x1.3a8804p6, -0x1.2df24ap7, 0x1.15e716p7, -0x1.a5f0fcp5)
/* erf(x) / x - 1 for z = x^2 <= 1/4 */
#define VM_ERF(z) VM_P5(z, 0x1.06eba8p-3, -0x1.812734p-2, 0x1.ce255p-4, -0x1.b66a9ap-6, 0x1.35616p-8)

#else
#define VM_NORMAL_TOP     38.6
#define VM_ERFC_TOP       27.3
#define VM_SQRT2_HI       0x1.6a09e667f3bcdp0
#define VM_SQRT2_LO       -0x1.bdd3413b26456p-54
#define VM_MILLS_C        0.21875
#define VM_MILLS_0        0x1.6c4ae973ff3ebp-4
#define VM_MILLS_SLOPE(y) VM_P2(y, 0.85, 1.55)
#define VM_MILLS(d)                                                                                          \
    FMA(FMA(VM_P16((d) * (d), -0x1.2bacf83909a8p1, 0x1.190405cc0af41p2, 0x1.a0d905a59d3dap2,                 \
                   -0x1.045bf93fab72dp7, 0x1.fa735993a5a2fp8, 0x1.b994dcd45f9a1p10, -0x1.76366b25a85e7p14,   \
                   -0x1.30be513407db9p12, 0x1.0897b25160958p20, -0x1.a433b4d4471c8p20,                       \
                   -0x1.912c744c3baefp25, 0x1.9e528b5fc4cefp27, 0x1.f054fcb5f34afp29, -0x1.eab938e992f46p31, \
                   -0x1.b331a084da511p32, -0x1.aceea8e153a5bp29),                                            \
            d,                                                                                               \
            VM_P16((d) * (d), -0x1.da5614a03422ap-2, 0x1.449ef6d619d6ap1, -0x1.cf7ce9ae22404p3,              \
                   0x1.8432810fcf9fp5, 0x1.f70746b5f9615p5, -0x1.9e8782096e497p10, 0x1.1576a4c3f1228p12,     \
                   0x1.7716eff6f1f83p15, -0x1.23eed93bfa482p18, -0x1.ad2255a10aeadp20, 0x1.26c8ffd9cd569p24, \
                   0x1.0c8f9e05ab742p25, -0x1.770d91b41d79fp29, 0x1.a67c1e5154a9p28, 0x1.bfc24bdc98c08p32,   \
                   0x1.cf9620ecf8eeap31)),                                                                   \
        d, K(0x1.59f9a44cd8265p0))
#define VM_ERF(z)                                                                                            \
    VM_P10(z, 0x1.06eba8214db69p-3, -0x1.812746b037a1cp-2, 0x1.ce2f21a0465d6p-4, -0x1.b82ce31452d89p-6,      \
           0x1.565bcd88c08ccp-8, -0x1.c02dda3a69e03p-11, 0x1.f9aa513f85a49p-14, -0x1.f59b5ccf63ef7p-17,      \
           0x1.c569c4caa49b3p-20, -0x1.97c5e5767b22fp-23)
#endif

typedef struct TYPED(tail) {
    T near, rest; /* near * (1 + rest) * 2^n, */
    T power;      /* where power is 2^(n + LIFT) */
} TYPED(tail);

/* 2 exp(a^2 / 2) ncdf(-a) for the pair a + lo: the polynomial at the rounded y, plus the error of y
 * times the slope, which is nearly linear. */
VM TYPED(tail) FN(mills)(T a, T lo)
{
    TYPED(pair) below = { a + K(1.5), K(0) };
    below.lo = (a - (below.hi - K(1.5))) + lo;
    T y = INVERSE(below.hi), d = y - K(VM_MILLS_C), lacks = FMA(-y, below.lo, FMA(-y, below.hi, K(1)));
    TYPED(tail) r = { y, FMA(VM_MILLS(d), d, FMA(VM_MILLS_SLOPE(y), lacks, K(VM_MILLS_0))), K(1) };
    return r;
}

/* r * exp(x + lo) for -EXP_MAX <= x <= 0, where r.power is not set. With x + lo = n log 2 + f, exp(f) - 1 is
 * f + q. In f64 the largest term, f, is added last and its rounding error before. In f32 this would cost 8 %
 * of gelu, and the errors are small enough without. */
VM TYPED(tail) FN(times_exp)(TYPED(tail) r, T x, T lo)
{
    T t = FMA(x, K(VM_LOG2_E), K(VM_ROUND + VM_BIAS + VM_LIFT)), n = t - K(VM_ROUND + VM_BIAS + VM_LIFT);
    TYPED(pair) f = FN(two_sum)(FMA(n, K(-VM_LN2_HI), x), FMA(n, K(-VM_LN2_LO), lo));
#ifdef T_f32
    T p = FMA(f.hi * f.hi, VM_EXP(f.hi), f.hi);
    r.rest = FMA(r.rest, p, r.rest) + p;
#else
    T q = (f.hi * f.hi) * VM_EXP(f.hi);
    r.rest = f.hi + (FMA(r.rest, f.hi + q, r.rest) + (q + f.lo));
#endif
    r.power = AS_T(AS_BITS(t) << VM_DIGITS);
    return r;
}

/* 2 ncdf(-a) for 0 <= a <= NORMAL_TOP. */
VM TYPED(tail) FN(normal_tail)(T a)
{
    T half = K(0.5) * a, square = half * a;
    return FN(times_exp)(FN(mills)(a, K(0)), -square, FMA(-half, a, square));
}

/* erfc(|x|) = 2 ncdf(-sqrt(2) |x|) */
VM T FN(erfc_upper)(T x)
{
    T u = SEL(ABS(x) > K(VM_ERFC_TOP), K(VM_ERFC_TOP), ABS(x)), square = u * u;
    T a = u * K(VM_SQRT2_HI), lo = FMA(u, K(VM_SQRT2_LO), FMA(u, K(VM_SQRT2_HI), -a));
    TYPED(tail) r = FN(times_exp)(FN(mills)(a, lo), -square, FMA(-u, u, square));
    return FMA(r.near, r.rest, r.near) * r.power * K(VM_LOWER);
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

/* The cumulative distribution function of the normal distribution. */
VM T FN(ncdf)(T x)
{
    TYPED(tail) r = FN(normal_tail)(SEL(ABS(x) > K(VM_NORMAL_TOP), K(VM_NORMAL_TOP), ABS(x)));
    T tail = FMA(r.near, r.rest, r.near) * r.power * K(0.5 * VM_LOWER);
    return SEL(x > K(0), K(1) - tail, tail);
}

/* x ncdf(x). With a = |x| and the tail t = ncdf(-a), it is a - a t or -a t. Intermediates are
 * scaled by 4 ULP_1 / LOWER. */
VM T FN(gelu)(T x)
{
    T a = SEL(ABS(x) > K(VM_NORMAL_TOP), K(VM_NORMAL_TOP), ABS(x)), up = a * K(2 * VM_ULP_1);
    TYPED(tail) r = FN(normal_tail)(a);
    T near = up * r.near, rest = FMA(near, r.rest, FMA(up, r.near, -near));
    TYPED(pair) y = FN(two_sum)(SEL(x > K(0), up * K(2 / VM_LOWER), K(0)), -(near * r.power));
    T inside = (y.hi + FMA(-rest, r.power, y.lo)) * K(VM_LOWER / (4 * VM_ULP_1));
    return SEL(x > K(VM_NORMAL_TOP), x, FN(with_sign)(inside, x));
}

#undef VM_NORMAL_TOP
#undef VM_ERFC_TOP
#undef VM_SQRT2_HI
#undef VM_SQRT2_LO
#undef VM_MILLS
#undef VM_MILLS_C
#undef VM_MILLS_SLOPE
#undef VM_MILLS_0
#undef VM_ERF
