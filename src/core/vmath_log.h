/* vmath_log.h - logarithms, inverse hyperbolic functions, softplus, powers and roots. Part of
 * vmath.h. */

#ifdef T_f32
#define VM_LOG2_LO  0x1.4ae0cp-26
#define VM_LOG10_E  0x1.bcb7b2p-2
#define VM_LOG10_LO -0x1.5b235ep-27
#define VM_LG2_HI   0x1.344p-2 /* log10(2); has few bits, as LN2_HI */
#define VM_LG2_LO   0x1.3509f8p-18
#define VM_2_3_HI   0x1.555556p-1
#define VM_2_3_LO   -0x1.555556p-26
#define VM_SQRT1_2  0x3f3504f3 /* the bits of sqrt(1/2) */
#define VM_CBRT_2   0x1.428a3p0
#define VM_CBRT1_2  0x1.965feap-1
/* (log(1 + f) - f + f^2 / 2) / f^3 for sqrt(1/2) <= 1 + f <= sqrt(2). In f64 odd and even terms are
 * separate sums, which can be computed in parallel. */
#define VM_LOG(f)                                                                                            \
    VM_P8(f, 0x1.55557p-2, -0x1.000234p-2, 0x1.99944ep-3, -0x1.5466fep-3, 0x1.239ce2p-3, -0x1.0e96ccp-3,     \
          0x1.015974p-3, -0x1.2a6f78p-4)
/* (log((1 + s) / (1 - s)) / s - 2 - 2/3 u) / u^2 for u = s^2 <= 0.02945 */
#define VM_ATANH(u) VM_P3(u, 0x1.999ap-2, 0x1.24528p-2, 0x1.dfa126p-3)
/* m^(-1/3) for sqrt(1/2) <= m <= sqrt(2), to half of the precision */
#define VM_CBRT(m)                                                                                           \
    VM_P6(m, 0x1.ffc956p0, -0x1.3e31e2p1, 0x1.6565ccp1, -0x1.e5e98ap0, 0x1.66c51p-1, -0x1.ba9e78p-4)

#else
#define VM_LOG2_LO  0x1.777d0ffda0d24p-56
#define VM_LOG10_E  0x1.bcb7b1526e50ep-2
#define VM_LOG10_LO 0x1.95355baaafad3p-57
#define VM_LG2_HI   0x1.34413509f8p-2
#define VM_LG2_LO   -0x1.80433b83b532ap-44
#define VM_2_3_HI   0x1.5555555555555p-1
#define VM_2_3_LO   0x1.5555555555555p-55
#define VM_SQRT1_2  0x3fe6a09e667f3bcd
#define VM_CBRT_2   0x1.428a2f98d728bp0
#define VM_CBRT1_2  0x1.965fea53d6e3dp-1
#define VM_LOG(f)                                                                                            \
    FMA(VM_P9((f) * (f), -0x1.fffffffffef15p-3, -0x1.555555566b2e2p-3, -0x1.ffffff2bf976ap-4,                \
              -0x1.9999c26b565e5p-4, -0x1.5550ee61b2842p-4, -0x1.24d750fa8bca6p-4, -0x1.fba17fc1da7abp-5,    \
              -0x1.d1219b4a61733p-5, -0x1.ea005837a3a61p-5),                                                 \
        f,                                                                                                   \
        VM_P10((f) * (f), 0x1.5555555555533p-2, 0x1.999999999f7b1p-3, 0x1.24924922a1c3fp-3,                  \
               0x1.c71c71e0e737cp-4, 0x1.745d3f0553411p-4, 0x1.3b0b8aab73afdp-4, 0x1.11ccf093c379p-4,        \
               0x1.d05b0719d012ep-5, 0x1.0a61e2b9106d3p-4, 0x1.ac6cc533fa5c5p-6))
#define VM_ATANH(u)                                                                                          \
    VM_P8(u, 0x1.9999999999996p-2, 0x1.2492492492f4dp-2, 0x1.c71c71c59734p-3, 0x1.745d18290323ep-3,          \
          0x1.3b1364decde8ep-3, 0x1.11206c2edb9b4p-3, 0x1.de3dde5658c67p-4, 0x1.eac295e93e378p-4)
#define VM_CBRT(m)                                                                                           \
    VM_P11(m, 0x1.3ae5c2p1, -0x1.858924p2, 0x1.eca3p3, -0x1.c18f4cp4, 0x1.26191p5, -0x1.151108p5,            \
           0x1.75918ep4, -0x1.6032c8p3, 0x1.b9976ap1, -0x1.4b11d6p-1, 0x1.c1886p-5)
#endif

/* Returns the fraction of x = 2^k * fraction, in [sqrt(1/2), sqrt(2)], for a positive, normal,
 * finite x. *n becomes k + bias. */
VM T FN(normal_fraction)(T x, BITS *n)
{
    *n = (AS_BITS(x) + (AS_BITS(K(1)) - VM_SQRT1_2)) >> VM_DIGITS;
    return AS_T(AS_BITS(x) - ((*n - VM_BIAS) << VM_DIGITS));
}

VM T FN(exponent)(BITS n) { return AS_T(n | AS_BITS(K(VM_ULP_1))) - K(VM_ULP_1 + VM_BIAS); }

/* The same for any positive finite x, with k itself. */
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

/* y, a logarithm of x, corrected for x that is 0, infinite, negative or NaN. */
VM T FN(log_ends)(T x, T y) { return SEL(x > K(0), SEL(x == INF, INF, y), SEL(x == K(0), -INF, K(NAN))); }

VM T FN(log)(T x)
{
    T k, f = FN(fraction)(x, &k) - K(1);
    TYPED(pair) s = FN(two_sum)(k * K(VM_LN2_HI), f);
    return FN(log_ends)(x, s.hi + (s.lo + FMA(k, K(VM_LN2_LO), FN(log_rest)(f))));
}

/* (k two + log(1 + f)) e, where two = log(2) e. The product of k and two.hi is exact. */
VM T FN(log_times)(T x, TYPED(pair) e, TYPED(pair) two)
{
    T k, f = FN(fraction)(x, &k) - K(1), a = f * e.hi;
    T lost = K(-0.5) * FMA(f, f, -(f * f)); /* the rounding error of log_rest */
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

/* log(u.hi + u.lo), where u.lo is below an ulp of u.hi. */
VM TYPED(pair) FN(log_of_pair)(TYPED(pair) u)
{
    BITS n;
    T f = FN(normal_fraction)(u.hi, &n) - K(1), k = FN(exponent)(n);
    T less = K(0.5) * (u.lo * AS_T((2 * VM_BIAS + 1 - n)
                                   << VM_DIGITS)); /* 2^-k u.lo; 2^(1 - k) is a normal number or 0 */
    TYPED(pair) g = FN(two_sum)(f, less), s = FN(two_sum)(k * K(VM_LN2_HI), g.hi);
    s.lo = s.lo + (FMA(k, K(VM_LN2_LO), FN(log_rest)(g.hi)) + FMA(-g.lo, g.hi, g.lo));
    return s;
}

VM T FN(log1p)(T x)
{
    TYPED(pair) u = FN(any_sum)(K(1), x), y = FN(log_of_pair)(u);
    return SEL((ABS(x) < K(VM_TINY)) | (x == INF), x,
               SEL(u.hi > K(0), y.hi + y.lo, SEL(u.hi == K(0), -INF, K(NAN))));
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

/* 2^n cbrt(z), z in [sqrt(1/2) / 2, 2 sqrt(2)]. The first estimate has half of the precision; one
 * step of Newton's method adds the rest. */
VM T FN(cbrt)(T x)
{
    T k, m = FN(fraction)(ABS(x), &k), t = FMA(k, K(1.0 / 3), K(VM_ROUND + VM_BIAS)),
         odd = FMA(t - K(VM_ROUND + VM_BIAS), K(-3), k);
    T z = m * SEL(odd > K(0), K(2), SEL(odd < K(0), K(0.5), K(1)));
    T w = VM_CBRT(m) * SEL(odd > K(0), K(VM_CBRT1_2), SEL(odd < K(0), K(VM_CBRT_2), K(1))),
      w2 = w * w;                                                             /* z^(-1/3) */
    T y = z * w2, y2 = y * y, rest = FMA(-FMA(y, y, -y2), y, FMA(-y2, y, z)); /* z - y^3 */
    y = FMA(rest, w2 * K(1.0 / 3), y) * AS_T(AS_BITS(t) << VM_DIGITS);
    return SEL((ABS(x) > K(0)) & (ABS(x) < INF), FN(with_sign)(y, x), x);
}

/* 1 / sqrt(x), refined by one step of Newton's method. Rounding the root and then its inverse would
 * cost up to 1.5 ulp. */
VM T FN(rsqrt)(T x)
{
    T y = K(1) / SQRT(x), s = x * y, rest = FMA(-FMA(x, y, -s), y, FMA(-s, y, K(1))); /* 1 - x y^2 */
    return SEL((x > K(0)) & (x < INF), FMA(K(0.5) * y, rest, y), y);
}

/* log(u.hi + u.lo), or log(2 x) where x > ULP_1. */
VM T FN(log_or_far)(TYPED(pair) u, T x)
{
    u.hi = SEL(x > K(VM_ULP_1), x, u.hi);
    u.lo = SEL(x > K(VM_ULP_1), K(0), u.lo);
    TYPED(pair) y = FN(log_of_pair)(u), s = FN(any_sum)(y.hi, SEL(x > K(VM_ULP_1), K(VM_LN2_HI), K(0)));
    return s.hi + (s.lo + (y.lo + SEL(x > K(VM_ULP_1), K(VM_LN2_LO), K(0))));
}

/* log(1 + a + (sqrt(1 + a^2) - 1)) for a = |x|. The difference is a^2 / (1 + sqrt(1 + a^2)). */
VM T FN(asinh)(T x)
{
    T a = ABS(x), b = SEL(a > K(VM_ULP_1), K(1), a), rest = b * b / (K(1) + SQRT(FMA(b, b, K(1))));
    TYPED(pair) t = FN(two_sum)(b, rest), u = FN(any_sum)(K(1), t.hi);
    u.lo = u.lo + t.lo;
    T y = FN(log_or_far)(u, a);
    return SEL((a < K(VM_TINY)) | (a == INF) | (x != x), x, FN(with_sign)(y, x));
}

/* log(1 + t + sqrt(t (x + 1))) for t = x - 1, which is exact for x <= ULP_1. The root is a pair: near
 * 1 it is almost the whole result. */
VM T FN(acosh)(T x)
{
    T b = SEL(x > K(VM_ULP_1), K(2), x), t = b - K(1);
    TYPED(pair) w = FN(two_sum)(b, K(1)), s, u;
    T square = t * w.hi, root = SQRT(square),
      lost = FMA(-root, root, square) + FMA(t, w.lo, FMA(t, w.hi, -square));
    s = FN(any_sum)(t, root);
    s.lo = s.lo + SEL(root > K(0), lost * (K(0.5) / root), K(0));
    u = FN(any_sum)(K(1), s.hi);
    u.lo = u.lo + s.lo;
    T y = FN(log_or_far)(u, x);
    return SEL(x >= K(1), SEL(x == INF, INF, y), K(NAN));
}

/* log(1 + 2 a / (1 - a)) / 2 for a = |x|. The quotient is a pair. */
VM T FN(atanh)(T x)
{
    T a = ABS(x), two = K(2) * a;
    TYPED(pair) d = FN(two_sum)(K(1), -a), u;
    T q = two / d.hi, lost = FMA(-q, d.lo, FMA(-q, d.hi, two)) / d.hi;
    u = FN(any_sum)(K(1), q);
    u.lo = u.lo + lost;
    TYPED(pair) y = FN(log_of_pair)(u);
    T r = SEL(a < K(1), K(0.5) * (y.hi + y.lo), SEL(a == K(1), INF, K(NAN)));
    return SEL(a < K(VM_TINY), x, FN(with_sign)(r, x));
}

/* log(x) to about twice the precision less ten bits, for positive finite x. The log of the fraction
 * f is the series of log((1 + s) / (1 - s)) in odd powers of s = (f - 1) / (f + 1); its first two
 * terms are pairs. */
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

/* |x|^y = exp(y log |x|). The special cases of C follow. */
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

#undef VM_LOG2_LO
#undef VM_LOG10_E
#undef VM_LOG10_LO
#undef VM_LG2_HI
#undef VM_LG2_LO
#undef VM_2_3_HI
#undef VM_2_3_LO
#undef VM_SQRT1_2
#undef VM_CBRT_2
#undef VM_CBRT1_2
#undef VM_LOG
#undef VM_ATANH
#undef VM_CBRT
