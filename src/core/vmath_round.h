/* vmath_round.h - rounding to integers, remainders and lengths. Part of vmath.h. */

/* Squares above LARGE^2 or below 1 / LARGE^2 may overflow or underflow, so operands are scaled by
 * SHIFT. */
#ifdef T_f32
#define VM_LARGE 0x1p60
#define VM_SHIFT 0x1p90
#else
#define VM_LARGE 0x1p500
#define VM_SHIFT 0x1p600
#endif

/* The nearest integer, ties to even. All numbers >= ULP_1 are integers. */
VM T FN(rint)(T x)
{
    T a = ABS(x), n = (a + K(VM_ULP_1)) - K(VM_ULP_1);
    return SEL(a < K(VM_ULP_1), FN(with_sign)(n, x), x);
}

VM T FN(floor)(T x)
{
    T n = FN(rint)(x);
    return SEL(n > x, n - K(1), n);
}

/* The remainder of x / y with the sign of x, exact. Each iteration subtracts n * s from r, where s
 * is y, or y times a power of two. The difference is a multiple of the last bit of s and less than
 * s, so it is not rounded. n is not rounded either, since r / s < 2^DIGITS; it is at most one too
 * large. An iteration shortens r / y by about DIGITS bits. */
VM T FN(fmod)(T x, T y)
{
    T far = x - x, bad = SEL((y == K(0)) | (y != y) | (far != far), K(1), K(0));
    T r = SEL(bad == K(1), K(0), ABS(x)), b = SEL(bad == K(1), INF, ABS(y)), high = b * K(VM_ULP_1);
    AGAIN(r >= b)
    {
        T top = AS_T((AS_BITS(high) & ~VM_EXPONENT) |
                     (AS_BITS(r) & VM_EXPONENT)); /* high is normal, and so is every r above it */
        T s = SEL(r < high, b, top * K(2 / VM_ULP_1)), left = FMA(-FLOOR(r / s), s, r);
        r = SEL(r >= b, SEL(left < K(0), left + s, left), r);
    }
    return SEL(bad == K(1), K(NAN), FN(with_sign)(r, x));
}

/* The same if one iteration is enough and both operands are finite and not 0: for |x| <= most and
 * |y| >= least, where fmod_moderates(most, least) is 1. */
VM T FN(fmod_moderate)(T x, T y)
{
    T r = ABS(x), b = ABS(y), n = FLOOR(r / b), left = SEL(n == K(0), r, FMA(-n, b, r));
    return FN(with_sign)(SEL(left < K(0), left + b, left), x);
}
VM T FN(fmod_moderates)(T most, T least) { return SEL(most < least * K(VM_ULP_1), K(1), K(0)); }

/* Adds y to the result r of fmod if its sign is not that of y. This may round. */
VM T FN(rest)(T r, T y)
{
    return SEL(r == K(0), FN(with_sign)(K(0), y),
               SEL(((r < K(0)) & (y > K(0))) | ((r > K(0)) & (y < K(0))), r + y, r));
}
VM T FN(remainder)(T x, T y) { return FN(rest)(FN(fmod)(x, y), y); }
VM T FN(remainder_moderate)(T x, T y) { return FN(rest)(FN(fmod_moderate)(x, y), y); }

/* The rounded-down quotient may be one too large, if the division rounded up to an integer. The
 * remainder then has the wrong sign. */
VM T FN(floor_divide)(T x, T y)
{
    T n = FLOOR(x / y), r = SEL(n == K(0), x, FMA(-n, y, x));
    return SEL(((r < K(0)) & (y > K(0))) | ((r > K(0)) & (y < K(0))), n - K(1), n);
}

/* Infinite if x or y is, even if the other is NaN. Symmetric in x and y. */
VM T FN(hypot)(T x, T y)
{
    T a = ABS(x), b = ABS(y), most = SEL(b > a, b, a), least = SEL(b > a, a, b);
    T by = SEL(most > K(VM_LARGE), K(1 / VM_SHIFT), SEL(most < K(1 / VM_LARGE), K(VM_SHIFT), K(1)));
    T back = SEL(most > K(VM_LARGE), K(VM_SHIFT), SEL(most < K(1 / VM_LARGE), K(1 / VM_SHIFT), K(1)));
    T u = most * by, v = least * by, length = SQRT(FMA(u, u, v * v)) * back;
    return SEL((a == INF) | (b == INF), INF, length);
}

#undef VM_LARGE
#undef VM_SHIFT
