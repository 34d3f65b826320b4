/* vmath_round.h - whole numbers, remainders, and lengths: a part of vmath.h, in the same words and under the same rules. */

#ifdef T_f32
#define VM_LARGE                                                                                             \
    0x1p60 /* squares of lengths beyond this, and below its inverse, may be lost: they are shifted by */
#define VM_SHIFT 0x1p90
#else
#define VM_LARGE 0x1p500
#define VM_SHIFT 0x1p600
#endif

/* The nearest whole number, of two the even one. From ULP_1 on every number is whole. */
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

/* What is left of x when multiples of y are taken away, of x's sign: exact. Each turn takes n s from r, s being y times a power of two, or
 * y itself: the difference is a multiple of the last bit of s and below s, so that it is not rounded; nor is n, since r / s is below
 * 2^DIGITS, and it is one too large at most. A turn shortens r / y by about as many bits. */
VM T FN(fmod)(T x, T y)
{
    T far = x - x, bad = SEL((y == K(0)) | (y != y) | (far != far), K(1), K(0));
    T r = SEL(bad == K(1), K(0), ABS(x)), b = SEL(bad == K(1), INF, ABS(y)), high = b * K(VM_ULP_1);
    AGAIN(r >= b)
    {
        T top = AS_T((AS_BITS(high) & ~VM_EXPONENT) |
                     (AS_BITS(r) & VM_EXPONENT)); /* high is normal, and so is an r above it */
        T s = SEL(r < high, b, top * K(2 / VM_ULP_1)), left = FMA(-FLOOR(r / s), s, r);
        r = SEL(r >= b, SEL(left < K(0), left + s, left), r);
    }
    return SEL(bad == K(1), K(NAN), FN(with_sign)(r, x));
}

/* The same where one turn is enough and no operand is bad: for x up to `most` and y from `least` on, by size. */
VM T FN(fmod_moderate)(T x, T y)
{
    T r = ABS(x), b = ABS(y), n = FLOOR(r / b), left = SEL(n == K(0), r, FMA(-n, b, r));
    return FN(with_sign)(SEL(left < K(0), left + b, left), x);
}
VM T FN(fmod_moderates)(T most, T least) { return SEL(most < least * K(VM_ULP_1), K(1), K(0)); }

/* What fmod leaves, of y's sign, which may round. */
VM T FN(rest)(T r, T y)
{
    return SEL(r == K(0), FN(with_sign)(K(0), y),
               SEL(((r < K(0)) & (y > K(0))) | ((r > K(0)) & (y < K(0))), r + y, r));
}
VM T FN(remainder)(T x, T y) { return FN(rest)(FN(fmod)(x, y), y); }
VM T FN(remainder_moderate)(T x, T y) { return FN(rest)(FN(fmod_moderate)(x, y), y); }

/* The quotient rounded down is the whole number below, or, if it was rounded up to one, one too large: what is left then has not y's sign. */
VM T FN(floor_divide)(T x, T y)
{
    T n = FLOOR(x / y), r = SEL(n == K(0), x, FMA(-n, y, x));
    return SEL(((r < K(0)) & (y > K(0))) | ((r > K(0)) & (y < K(0))), n - K(1), n);
}

/* Infinite if one is, whatever the other. The same either way round. */
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
