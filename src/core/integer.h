/* integer.h - functions of rows of ops.def that hold for integers, for one integer type at a time.
 *
 * The words: T (int64_t, uint64_t or int32_t), BITS (unsigned, of its size), FN(f) (a name of this type's), FN_DECL ("static inline", or for CUDA "static
 * __device__ inline"). Define them and include this file, once for each T. Nothing here is undefined: where C says so, it is said what
 * comes out. Shifts and divisors are whatever the operand holds. */
FN_DECL T FN(shift_left)(T x, T y) { return (BITS)y < 8 * sizeof(T) ? (T)((BITS)x << (BITS)y) : 0; }

FN_DECL T FN(shift_right)(T x, T y)
{
    return (BITS)y < 8 * sizeof(T) ? x >> (BITS)y : (T)(x < 1 && x != 0 ? -1 : 0);
}

/* Is y -1? Dividing the least number by that would overflow. */
FN_DECL int FN(divides_badly)(T y) { return y == 0 || ((T)-1 < 1 && y == (T)-1); }

FN_DECL T FN(fmod)(T x, T y) { return FN(divides_badly)(y) ? 0 : x % y; }

FN_DECL T FN(remainder)(T x, T y)
{
    const T r = FN(fmod)(x, y);
    return r != 0 && ((r ^ y) < 1 && (r ^ y) != 0) ? r + y : r;
}

FN_DECL T FN(floor_divide)(T x, T y)
{
    if (FN(divides_badly)(y)) return y == 0 ? 0 : (T)(0 - (BITS)x);
    const T q = x / y, r = x % y;
    return q - (r != 0 && (r ^ y) < 1 && (r ^ y) != 0);
}
