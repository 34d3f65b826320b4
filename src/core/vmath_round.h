/* vmath_round.h - whole numbers, and lengths: a part of vmath.h, in the same words and under the same rules. */

#ifdef T_f32
#define VM_LARGE 0x1p60 /* squares of lengths beyond this, and below its inverse, may be lost: they are shifted by */
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
