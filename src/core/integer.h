/* integer.h - integer functions of rows of ops.def, for one integer type at a time.
 *
 * Define these macros and include the file, once for each type: T (int64_t, uint64_t or int32_t),
 * BITS (the unsigned type of the same size), FN(f) (the name of f for this type), FN_DECL ("static
 * inline", or for CUDA "static __device__ inline"). Every result is defined, also where C leaves
 * it undefined. Shift counts and divisors may have any value. */
FN_DECL T FN(shift_left)(T x, T y) { return (BITS)y < 8 * sizeof(T) ? (T)((BITS)x << (BITS)y) : 0; }

FN_DECL T FN(shift_right)(T x, T y)
{
    if ((BITS)y < 8 * sizeof(T)) return x >> (BITS)y;
    return (T)(x < 1 && x != 0 ? -1 : 0);
}

/* Is y 0 or -1? Dividing the least number by -1 would overflow. */
FN_DECL int FN(is_special_divisor)(T y) { return y == 0 || ((T)-1 < 1 && y == (T)-1); }

FN_DECL T FN(fmod)(T x, T y) { return FN(is_special_divisor)(y) ? 0 : x % y; }

FN_DECL T FN(remainder)(T x, T y)
{
    const T r = FN(fmod)(x, y);
    return r != 0 && ((r ^ y) < 1 && (r ^ y) != 0) ? r + y : r;
}

FN_DECL T FN(floor_divide)(T x, T y)
{
    if (FN(is_special_divisor)(y)) return y == 0 ? 0 : (T)(0 - (BITS)x);
    const T q = x / y, r = x % y;
    return q - (r != 0 && (r ^ y) < 1 && (r ^ y) != 0);
}

/* x to the power y by repeated squaring; it wraps. For a negative y, 1 / x rounded toward zero to the power
 * -y: only -1 and 1 have powers other than 0. */
FN_DECL T FN(pow)(T x, T y)
{
    const int is_negative = y < 1 && y != 0, is_unit = x == 1 || x == (T)-1;
    BITS n = (BITS)y, square = (BITS)x, all = 1;
    if (is_negative && (T)-1 < 1) {
        if (!is_unit) return 0;
        n &= 1;
    }
    for (; n; n >>= 1) {
        if (n & 1) all *= square;
        square *= square;
    }
    return (T)all;
}
