/* vmath_trig.h - sin, cos, tan, asin, acos, atan and atan2. Part of vmath.h.
 *
 * An angle is reduced to n quarters of a turn and a remainder of at most an eighth of a turn. The
 * remainder is a pair of numbers. sin_moderate, cos_moderate and tan_moderate are valid where
 * immoderate is 0: for all x except finite numbers that are very large. There they give the same
 * bits faster, so a loop over many x may first check whether any is immoderate.
 * tools/fit_vmath_trig.sollya computes the coefficients. */

#ifdef T_f32
#define VM_MODERATE 0x1p17 /* up to this |x|, pi in three parts is precise enough */
#define VM_PI_2_HI  0x1.921fb6p0
#define VM_PI_2_MI  -0x1.777a5cp-25
#define VM_PI_2_LO  -0x1.ee59dap-50
#define VM_PI_4_HI  0x1.921fb8p-1 /* has few bits, so its products with 0 to 4 are exact */
#define VM_PI_4_LO  -0x1.5dde98p-24
#define VM_2_PI     0x1.45f306p-1
#define VM_TAN_PI_8 0x1.a8279ap-2
/* atan(ATAN_TOP) is pi / 2. Quotients of numbers up to this size, and of their inverses, do not
 * overflow. */
#define VM_ATAN_TOP 0x1p60
/* (sin(r) / r - 1) / z and (cos(r) - 1 + z / 2) / z^2 for z = r^2, |r| <= 0.79 */
#define VM_SIN(z) VM_P3(z, -0x1.555544p-3, 0x1.1106c8p-7, -0x1.991dp-13)
#define VM_COS(z) VM_P3(z, 0x1.55554ap-5, -0x1.6c0c14p-10, 0x1.99de58p-16)
/* (atan(q) / q - 1) / z for z = q^2, |q| <= tan(pi / 8) */
#define VM_ATAN(z) VM_P5(z, -0x1.55554ap-2, 0x1.9991e4p-3, -0x1.23b9d4p-3, 0x1.b2277p-4, -0x1.f2f578p-5)
/* (asin(s) / s - 1) / z for z = s^2 <= 1/4 */
#define VM_ASIN(z) VM_P5(z, 0x1.5555c8p-3, 0x1.330206p-4, 0x1.747b72p-5, 0x1.8c415ap-6, 0x1.5959aap-5)
/* 2 / pi: a word of zeros, then its bits after the point, DIGITS in each word. VM_FIVE_FROM selects
 * five words from a given one on. */
#define VM_2_PI_WORDS                                                                                        \
    w1 = none + 0x517cc1, w2 = none + 0x5b9391, w3 = none + 0x2a53f, w4 = none + 0x42757d,                   \
    w5 = none + 0xfa9a6, w6 = none + 0x77036d, w7 = none + 0x452b32, w8 = none + 0x3c4390,                   \
    w9 = none + 0x20ff28
#define VM_FIVE_FROM(k)                                                                                      \
    VM_SHIFT(k, 2, VM_STEP(0, 4), VM_STEP(1, 5), VM_STEP(2, 6), VM_STEP(3, 7), VM_STEP(4, 8),                \
             VM_STEP(5, 9));                                                                                 \
    VM_SHIFT(k, 1, VM_STEP(0, 2), VM_STEP(1, 3), VM_STEP(2, 4), VM_STEP(3, 5), VM_STEP(4, 6),                \
             VM_STEP(5, 7));                                                                                 \
    VM_SHIFT(k, 0, VM_STEP(0, 1), VM_STEP(1, 2), VM_STEP(2, 3), VM_STEP(3, 4), VM_STEP(4, 5))
#define VM_WORD_OF(bit) (((bit)*2850) >> 16) /* bit / DIGITS */

#else
#define VM_MODERATE 0x1p30
#define VM_PI_2_HI  0x1.921fb54442d18p0
#define VM_PI_2_MI  0x1.1a62633145c07p-54
#define VM_PI_2_LO  -0x1.f1976b7ed8fbcp-110
#define VM_PI_4_HI  0x1.921fb54442d18p-1
#define VM_PI_4_LO  0x1.1a62633145c07p-55
#define VM_2_PI     0x1.45f306dc9c883p-1
#define VM_TAN_PI_8 0x1.a827999fcef32p-2
#define VM_ATAN_TOP 0x1p500
#define VM_SIN(z)                                                                                            \
    VM_P6(z, -0x1.5555555555547p-3, 0x1.111111110f568p-7, -0x1.a01a019bab697p-13, 0x1.71de351cab7fap-19,     \
          -0x1.ae5e1d75eb47dp-26, 0x1.5d7d8e0d5ab72p-33)
#define VM_COS(z)                                                                                            \
    VM_P6(z, 0x1.5555555555549p-5, -0x1.6c16c16c14beap-10, 0x1.a01a019c29598p-16, -0x1.27e4f7a90d484p-22,    \
          0x1.1ee9aaefe0c2dp-29, -0x1.8f8d577940eb1p-37)
#define VM_ATAN(z)                                                                                           \
    VM_P11(z, -0x1.555555555553dp-2, 0x1.9999999995867p-3, -0x1.24924922ad31dp-3, 0x1.c71c70e5f505cp-4,      \
           -0x1.745cf8d8babfep-4, 0x1.3b1118d1648c1p-4, -0x1.10ebb4a818403p-4, 0x1.df0f1366ba199p-5,         \
           -0x1.9cd1b6c21f61bp-5, 0x1.37d2f50b78986p-5, -0x1.2564511819cc7p-6)
#define VM_ASIN(z)                                                                                           \
    VM_P12(z, 0x1.555555555539p-3, 0x1.333333336e80fp-4, 0x1.6db6db427a4f8p-5, 0x1.f1c72c38fb342p-6,         \
           0x1.6e89f440197a7p-6, 0x1.1c6be1a687738p-6, 0x1.c6fdc1aaa5333p-7, 0x1.8ec2fca604435p-7,           \
           0x1.abcf5cd7c44fp-8, 0x1.3ff4a990b2876p-6, -0x1.09d32833a0d88p-6, 0x1.056d6c8139f23p-5)
#define VM_2_PI_WORDS                                                                                        \
    w1 = none + 0xa2f9836e4e441, w2 = none + 0x529fc2757d1f5, w3 = none + 0x34ddc0db62959,                   \
    w4 = none + 0x93c439041fe51, w5 = none + 0x63abdebbc561b, w6 = none + 0x7246e3a424dd2,                   \
    w7 = none + 0xe006492eea09d, w8 = none + 0x1921cfe1deb1c, w9 = none + 0xb129a73ee8823,                   \
    w10 = none + 0x5f52ebb4484e9, w11 = none + 0x9c7026b45f7e4, w12 = none + 0x13991d6398353,                \
    w13 = none + 0x39f49c845f8bb, w14 = none + 0xdf9283b1ff897, w15 = none + 0xffde05980fef2,                \
    w16 = none + 0xf118b5a0a6d1f, w17 = none + 0x6d367ecf27cb0, w18 = none + 0x9b74f463f669e,                \
    w19 = none + 0x5fea2d7527bac, w20 = none + 0x7ebe5f17b3d07, w21 = none + 0x39f78a5292ea6,                \
    w22 = none + 0xbfb5fb11f8d5d, w23 = none + 0x856033046fc7
#define VM_FIVE_FROM(k)                                                                                      \
    VM_SHIFT(k, 4, VM_STEP(0, 16), VM_STEP(1, 17), VM_STEP(2, 18), VM_STEP(3, 19), VM_STEP(4, 20),           \
             VM_STEP(5, 21), VM_STEP(6, 22), VM_STEP(7, 23));                                                \
    VM_SHIFT(k, 3, VM_STEP(0, 8), VM_STEP(1, 9), VM_STEP(2, 10), VM_STEP(3, 11), VM_STEP(4, 12),             \
             VM_STEP(5, 13), VM_STEP(6, 14), VM_STEP(7, 15), VM_STEP(8, 16), VM_STEP(9, 17),                 \
             VM_STEP(10, 18), VM_STEP(11, 19));                                                              \
    VM_SHIFT(k, 2, VM_STEP(0, 4), VM_STEP(1, 5), VM_STEP(2, 6), VM_STEP(3, 7), VM_STEP(4, 8), VM_STEP(5, 9), \
             VM_STEP(6, 10), VM_STEP(7, 11));                                                                \
    VM_SHIFT(k, 1, VM_STEP(0, 2), VM_STEP(1, 3), VM_STEP(2, 4), VM_STEP(3, 5), VM_STEP(4, 6),                \
             VM_STEP(5, 7));                                                                                 \
    VM_SHIFT(k, 0, VM_STEP(0, 1), VM_STEP(1, 2), VM_STEP(2, 3), VM_STEP(3, 4), VM_STEP(4, 5))
#define VM_WORD_OF(bit) (((bit)*1261) >> 16)
#endif
#define VM_STEP(i, j) w##i = AS_BITS(SEL(taken != 0, AS_T(w##j), AS_T(w##i)))
/* shifts by 2^bit words if k has that bit */
#define VM_SHIFT(k, bit, ...) taken = (k) & (1 << bit), __VA_ARGS__

typedef struct TYPED(angle) {
    T hi, lo; /* the angle n quarters of a turn + hi + lo */
    BITS n;   /* modulo 4 */
} TYPED(angle);

/* The sine and cosine of hi + lo, as pairs whose errors are far below an ulp. */
VM TYPED(pair) FN(sin_rest)(TYPED(angle) r)
{
    T z = r.hi * r.hi;
    return FN(two_sum)(r.hi, FMA(r.hi * z, VM_SIN(z), FMA(K(-0.5) * z, r.lo, r.lo)));
}

VM TYPED(pair) FN(cos_rest)(TYPED(angle) r)
{
    T z = r.hi * r.hi, c = FMA(K(-0.5), z, K(1)), lost = FMA(K(-0.5), z, K(1) - c);
    return FN(two_sum)(c, lost + FMA(z * z, VM_COS(z), -(r.hi * r.lo)));
}

VM T FN(sin_angle)(TYPED(angle) r)
{
    T y = SEL((r.n & 1) == 0, FN(sin_rest)(r).hi, FN(cos_rest)(r).hi);
    return AS_T(AS_BITS(y) ^ ((r.n & 2) << (VM_TOP - 1)));
}

VM T FN(cos_angle)(TYPED(angle) r)
{
    r.n = r.n + 1;
    return FN(sin_angle)(r);
}

VM T FN(tan_angle)(TYPED(angle) r)
{
    TYPED(pair) s = FN(sin_rest)(r), c = FN(cos_rest)(r), a, b;
    a.hi = SEL((r.n & 1) == 0, s.hi, c.hi);
    a.lo = SEL((r.n & 1) == 0, s.lo, c.lo);
    b.hi = SEL((r.n & 1) == 0, c.hi, s.hi);
    b.lo = SEL((r.n & 1) == 0, c.lo, s.lo);
    return AS_T(AS_BITS(FN(quotient)(a, b)) ^ (r.n << VM_TOP));
}

/* The angle n quarters of a turn + q quarters. */
VM TYPED(angle) FN(quarters)(BITS n, TYPED(pair) q)
{
    TYPED(angle) r;
    r.n = n;
    r.hi = q.hi * K(VM_PI_2_HI);
    r.lo = FMA(q.hi, K(VM_PI_2_HI), -r.hi) + FMA(q.hi, K(VM_PI_2_MI), q.lo * K(VM_PI_2_HI));
    return r;
}

/* sin(2 pi u) and cos(2 pi u) for u in [0, 1). */
VM TYPED(angle) FN(turns)(T u)
{
    T t = FMA(u, K(4), K(VM_ROUND));
    TYPED(pair) q;
    q.hi = FMA(u, K(4), K(VM_ROUND) - t);
    q.lo = K(0);
    return FN(quarters)(AS_BITS(t), q);
}

VM T FN(sin_turns)(T u) { return FN(sin_angle)(FN(turns)(u)); }

VM T FN(cos_turns)(T u) { return FN(cos_angle)(FN(turns)(u)); }

/* The angle of x radians, |x| <= MODERATE. The first difference is exact, the second one a pair. */
VM TYPED(angle) FN(angle_moderate)(T x)
{
    T t = FMA(x, K(VM_2_PI), K(VM_ROUND)), n = t - K(VM_ROUND);
    T a = FMA(n, K(-VM_PI_2_HI), x), b = n * K(VM_PI_2_MI);
    TYPED(angle) r;
    r.hi = a - b;
    r.lo = FMA(n, K(-VM_PI_2_LO), ((a - r.hi) - b) - FMA(n, K(VM_PI_2_MI), -b));
    r.n = AS_BITS(t);
    return r;
}

/* DIGITS bits as a number in [0, 1): bits of the words a and b, starting at bit `at` of a. */
VM T FN(bits_between)(BITS a, BITS b, BITS at)
{
    BITS one = AS_BITS(K(1)), all = AS_BITS(K(2)) - AS_BITS(K(1)) - 1;
    return AS_T((((a << at) | (b >> (VM_DIGITS - at))) & all) | one) - K(1);
}

typedef struct TYPED(bits) {
    T c0, c1, c2, c3; /* each in [0, 1) with DIGITS bits, DIGITS places to the right of the one before */
} TYPED(bits);

/* Bits of 2 / pi, starting at `bit`, where DIGITS zeros precede its point. */
VM TYPED(bits) FN(two_over_pi)(BITS bit)
{
    BITS none = AS_BITS(K(0)), taken, w0 = none, VM_2_PI_WORDS;
    BITS word = VM_WORD_OF(bit), at = bit - word * VM_DIGITS;
    VM_FIVE_FROM(word);
    TYPED(bits) b;
    b.c0 = FN(bits_between)(w0, w1, at);
    b.c1 = FN(bits_between)(w1, w2, at);
    b.c2 = FN(bits_between)(w2, w3, at);
    b.c3 = FN(bits_between)(w3, w4, at);
    return b;
}

/* The angle of x radians, MODERATE < |x| < INF. Multiplies x by those bits of 2 / pi that matter
 * modulo 4 and for the precision of a pair. The first product is reduced modulo 16 exactly, the
 * second to the nearest integer. The sum of the remainders has no rounding error, because it may be
 * nearly 0. */
VM TYPED(angle) FN(angle_huge)(T x)
{
    BITS fraction = AS_BITS(K(2)) - AS_BITS(K(1)) - 1,
         exponent = ((AS_BITS(x) << 1) >> (VM_DIGITS + 1)) - VM_BIAS;
    TYPED(bits) b = FN(two_over_pi)(exponent - 2);
    T m0 = AS_T((AS_BITS(x) & (fraction + VM_SIGN)) | AS_BITS(K(4 * VM_ULP_1))), m1 = m0 * K(1 / VM_ULP_1),
      m2 = m1 * K(1 / VM_ULP_1);
    T whole = FMA(m0, b.c0, K(24 * VM_ULP_1)) - K(24 * VM_ULP_1), p0 = FMA(m0, b.c0, -whole);
    T p1 = m1 * b.c1, t1 = p1 + K(VM_ROUND), rest1 = p1 - (t1 - K(VM_ROUND));
    T p2 = m2 * b.c2, t0 = (p0 + rest1) + K(VM_ROUND), rest0 = p0 - (t0 - K(VM_ROUND));
    T tiny = FMA(m2, b.c2, -p2) + m2 * (K(1 / VM_ULP_1) * b.c3);
    TYPED(pair)
    f = FN(any_sum)(rest0, rest1), g = FN(any_sum)(FMA(m1, b.c1, -p1), p2), q = FN(any_sum)(f.hi, g.hi);
    return FN(quarters)(AS_BITS(t0) + AS_BITS(t1), FN(two_sum)(q.hi, q.lo + (f.lo + (g.lo + tiny))));
}

VM T FN(angle_reach)(void) { return K(VM_MODERATE); }

/* 1 if sin_moderate, cos_moderate and tan_moderate are not valid, else 0. */
VM T FN(immoderate)(T x) { return SEL((ABS(x) > K(VM_MODERATE)) & (ABS(x) < INF), K(1), K(0)); }

VM TYPED(angle) FN(angle_of)(T x)
{
    TYPED(angle) r = FN(angle_moderate)(x);
    T huge = FN(immoderate)(x);
    SELDOM(huge != K(0))
    {
        TYPED(angle) h = FN(angle_huge)(SEL(huge != K(0), x, K(2 * VM_MODERATE)));
        r.hi = SEL(huge != K(0), h.hi, r.hi);
        r.lo = SEL(huge != K(0), h.lo, r.lo);
        r.n = AS_BITS(SEL(huge != K(0), AS_T(h.n), AS_T(r.n)));
    }
    return r;
}

VM T FN(sin)(T x) { return SEL(x == K(0), x, FN(sin_angle)(FN(angle_of)(x))); }

VM T FN(cos)(T x) { return FN(cos_angle)(FN(angle_of)(x)); }

VM T FN(tan)(T x) { return SEL(x == K(0), x, FN(tan_angle)(FN(angle_of)(x))); }

VM T FN(sin_moderate)(T x) { return SEL(x == K(0), x, FN(sin_angle)(FN(angle_moderate)(x))); }

VM T FN(cos_moderate)(T x) { return FN(cos_angle)(FN(angle_moderate)(x)); }

VM T FN(tan_moderate)(T x) { return SEL(x == K(0), x, FN(tan_angle)(FN(angle_moderate)(x))); }

/* a / b to about twice the precision. */
VM TYPED(pair) FN(ratio)(TYPED(pair) a, TYPED(pair) b)
{
    T inverse = K(1) / b.hi;
    TYPED(pair) q;
    q.hi = a.hi * inverse;
    q.lo = (FMA(-q.hi, b.hi, a.hi) + FMA(-q.hi, b.lo, a.lo)) * inverse;
    return q;
}

/* k pi / 4 + s atan(a / b) for 0 <= a <= b, b not 0, k in 0 .. 4, s 1 or -1. For quotients above
 * tan(pi / 8) it uses atan(a / b) = pi / 4 - atan((b - a) / (b + a)). */
VM T FN(atan_from)(T k, T s, T a, T b)
{
    TYPED(pair) less = FN(two_sum)(b, -a), more = FN(two_sum)(b, a), q, y;
    T steep = SEL(a > b * K(VM_TAN_PI_8), K(1), K(0));
    less.hi = SEL(steep == K(0), a, less.hi);
    more.hi = SEL(steep == K(0), b, more.hi);
    less.lo = steep * less.lo;
    more.lo = steep * more.lo;
    k = FMA(s, steep, k);
    s = FMA(K(-2) * steep, s, s);
    q = FN(ratio)(less, more);
    T z = q.hi * q.hi, rest = FMA(q.hi * z, VM_ATAN(z), FMA(-z, q.lo, q.lo));
    y = FN(two_sum)(k * K(VM_PI_4_HI), s * q.hi);
    return y.hi + (y.lo + FMA(k, K(VM_PI_4_LO), s * rest));
}

VM T FN(atan)(T x)
{
    T a = SEL(ABS(x) > K(VM_ATAN_TOP), K(VM_ATAN_TOP), ABS(x));
    T k = SEL(a > K(1), K(2), K(0));
    return FN(with_sign)(FN(atan_from)(k, K(1) - k, SEL(a > K(1), K(1), a), SEL(a > K(1), a, K(1))), x);
}

/* The angle of the point (x, y). */
VM T FN(atan2)(T y, T x)
{
    T k = SEL(ABS(y) > ABS(x), K(2), K(0)), s = K(1) - k;
    T a = SEL(ABS(y) > ABS(x), ABS(x), ABS(y)), b = SEL(ABS(y) > ABS(x), ABS(y), ABS(x));
    T scale = SEL(b > K(VM_ATAN_TOP), K(1 / VM_ATAN_TOP), SEL(b < K(1 / VM_ATAN_TOP), K(VM_ATAN_TOP), K(1)));
    a = SEL(b == INF, SEL(a == INF, K(1), a * K(0)), a * scale);
    b = SEL((b == INF) | (b == K(0)), K(1), b * scale);
    k = SEL((AS_BITS(x) & VM_SIGN) != 0, K(4) - k, k);
    s = SEL((AS_BITS(x) & VM_SIGN) != 0, -s, s);
    return FN(with_sign)(FN(atan_from)(k, s, a, b), y);
}

/* asin(a) if a <= 1/2, else asin(sqrt((1 - a) / 2)), which is (pi / 2 - asin(a)) / 2. NaN if a > 1. */
VM TYPED(pair) FN(asin_half)(T a)
{
    TYPED(pair) s;
    T z = SEL(a > K(0.5), FMA(K(-0.5), a, K(0.5)), a * a);
    s.hi = SEL(a > K(0.5), SQRT(z), a);
    s.lo = SEL((a > K(0.5)) & (a < K(1)), FMA(-s.hi, s.hi, z) / (s.hi + s.hi), K(0));
    s.lo = FMA(s.hi * z, VM_ASIN(z), s.lo);
    return s;
}

/* k pi / 2 + m s */
VM T FN(quarters_and)(T k, T m, TYPED(pair) s)
{
    TYPED(pair) y = FN(two_sum)(k * K(VM_PI_2_HI), m * s.hi);
    return y.hi + (y.lo + FMA(k, K(VM_PI_2_MI), m * s.lo));
}

VM T FN(asin)(T x)
{
    T k = SEL(ABS(x) > K(0.5), K(1), K(0));
    return FN(with_sign)(FN(quarters_and)(k, FMA(K(-3), k, K(1)), FN(asin_half)(ABS(x))), x);
}

VM T FN(acos)(T x)
{
    T sign = SEL(x > K(0), K(-1), K(1)), k = SEL(ABS(x) > K(0.5), K(1) + sign, K(1));
    return FN(quarters_and)(k, SEL(ABS(x) > K(0.5), K(-2) * sign, sign), FN(asin_half)(ABS(x)));
}

#undef VM_MODERATE
#undef VM_PI_2_HI
#undef VM_PI_2_MI
#undef VM_PI_2_LO
#undef VM_PI_4_HI
#undef VM_PI_4_LO
#undef VM_2_PI
#undef VM_TAN_PI_8
#undef VM_ATAN_TOP
#undef VM_SIN
#undef VM_COS
#undef VM_ATAN
#undef VM_ASIN
#undef VM_2_PI_WORDS
#undef VM_FIVE_FROM
#undef VM_WORD_OF
#undef VM_STEP
#undef VM_SHIFT
