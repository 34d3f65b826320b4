/* vmath_trig.h - sin, cos, tan, asin, acos, atan and atan2: a part of vmath.h, in the same words and under the same rules.
 *
 * An angle is taken to the nearest quarter of a turn: n quarters and a rest, in a pair, of at most an eighth of a turn.
 * The coefficients: tools/fit_vmath_trig.sollya. */

#ifdef T_f32
#define VM_PI_2_HI 0x1.921fb6p0
#define VM_PI_2_MI -0x1.777a5cp-25
#define VM_PI_2_LO -0x1.ee59dap-50
#define VM_2_PI    0x1.45f306p-1
/* (sin(r) / r - 1) / z and (cos(r) - 1 + z / 2) / z^2 for z = r^2, |r| <= 0.79 */
#define VM_SIN(z) VM_P3(z, -0x1.555544p-3, 0x1.1106c8p-7, -0x1.991dp-13)
#define VM_COS(z) VM_P3(z, 0x1.55554ap-5, -0x1.6c0c14p-10, 0x1.99de58p-16)

#else
#define VM_PI_2_HI 0x1.921fb54442d18p0
#define VM_PI_2_MI 0x1.1a62633145c07p-54
#define VM_PI_2_LO -0x1.f1976b7ed8fbcp-110
#define VM_2_PI    0x1.45f306dc9c883p-1
#define VM_SIN(z)                                                                                                                \
    VM_P6(z, -0x1.5555555555547p-3, 0x1.111111110f568p-7, -0x1.a01a019bab697p-13, 0x1.71de351cab7fap-19, -0x1.ae5e1d75eb47dp-26, \
          0x1.5d7d8e0d5ab72p-33)
#define VM_COS(z)                                                                                                                \
    VM_P6(z, 0x1.5555555555549p-5, -0x1.6c16c16c14beap-10, 0x1.a01a019c29598p-16, -0x1.27e4f7a90d484p-22, 0x1.1ee9aaefe0c2dp-29, \
          -0x1.8f8d577940eb1p-37)
#endif

typedef struct TYPED(angle) {
    T hi, lo; /* n quarters of a turn and hi + lo */
    BITS n;   /* modulo 4 */
} TYPED(angle);

/* The sine and the cosine of hi + lo, as pairs whose errors are far below an ulp. */
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

/* The sine of the angle. */
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

/* sin(2 pi u) and cos(2 pi u) for u in [0, 1). */
VM TYPED(angle) FN(turns)(T u)
{
    T t = FMA(u, K(4), K(VM_ROUND)), rest = FMA(t - K(VM_ROUND), K(-0.25), u);
    TYPED(angle) r;
    r.n = AS_BITS(t);
    r.hi = rest * K(4 * VM_PI_2_HI);
    r.lo = FMA(rest, K(4 * VM_PI_2_HI), -r.hi) + rest * K(4 * VM_PI_2_MI);
    return r;
}

VM T FN(sin_turns)(T u) { return FN(sin_angle)(FN(turns)(u)); }

VM T FN(cos_turns)(T u) { return FN(cos_angle)(FN(turns)(u)); }

#undef VM_PI_2_HI
#undef VM_PI_2_MI
#undef VM_PI_2_LO
#undef VM_2_PI
#undef VM_SIN
#undef VM_COS
