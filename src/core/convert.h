/* convert.h - conversions between elements of any real type and the types that programs compute
 * in. All machines give the same bits.
 *
 * For each computing type C (f32, f64, i64, u64; also i32 for integers) and each real type X,
 *   stored as stored_X in memory:
 *   C's type   read_C_X(stored_X x)
 *   stored_X   write_C_X(C's type x)
 *   C's type   wrap_C_X(C's type x)     if C and X are integers, or X is bool: converts to X and back
 *
 * A floating-point result is rounded once, to nearest, ties to even. Values out of range become
 * infinite, NaN stays NaN, and subnormals are kept. A floating-point number becomes an integer by
 * rounding toward zero; values out of range become the limit of the type, and NaN becomes 0. An
 * integer becomes another one modulo 2^n. A bool is true if x differs from 0, as NaN does.
 *
 * There are no branches, so that compilers can vectorise loops. Compile without contraction. For C
 * and C++; for CUDA define FN_DECL as static __device__ inline. */
#ifndef CONVERT_H
#define CONVERT_H

#include <duet/duet.h>
#include <string.h>

#ifndef FN_DECL
#define FN_DECL static inline
#endif

#define DUET_DTYPE(NAME, name, type, ...) typedef type stored_##name;
#define DUET_INTEGER(NAME, name, type)    typedef type stored_##name;
#define DUET_NARROW                       DUET_INTEGER
#define DUET_HALF(NAME, name, ...)        typedef uint16_t stored_##name;
#include <duet/dtype.def>

FN_DECL uint32_t convert_bits32(float x)
{
    uint32_t b;
    memcpy(&b, &x, sizeof b);
    return b;
}

FN_DECL float convert_float(uint32_t b)
{
    float x;
    memcpy(&x, &b, sizeof x);
    return x;
}

FN_DECL uint64_t convert_bits64(double x)
{
    uint64_t b;
    memcpy(&b, &x, sizeof b);
    return b;
}

FN_DECL double convert_double(uint64_t b)
{
    double x;
    memcpy(&x, &b, sizeof x);
    return x;
}

/* ---- floating point of 16 bits ---- */

/* Moved to f32's positions, the bits are those of a number 2^112 times too small. That holds for
 * subnormals too. */
FN_DECL float f32_of_f16(uint16_t h)
{
    const uint32_t most = 0x7f800000, size = (uint32_t)(h & 0x7fff) << 13,
                   sign = (uint32_t)(h & 0x8000) << 16;
    const uint32_t finite = convert_bits32(convert_float(size) * 0x1p112f), other = size | most;
    return convert_float((size >= (uint32_t)0x7c00 << 13 ? other : finite) | sign);
}

/* Adding 0.5 rounds a result that is subnormal in f16, and shifts its bits into position. */
FN_DECL uint16_t f32_to_f16(float x)
{
    const uint32_t all = convert_bits32(x), size = all & 0x7fffffff, sign = all >> 16 & 0x8000;
    const uint32_t normal = (size - ((uint32_t)112 << 23) + 0xfff + (size >> 13 & 1)) >> 13;
    const uint32_t subnormal = convert_bits32(convert_float(size) + 0.5f) - 0x3f000000;
    const uint32_t finite = size < (uint32_t)113 << 23 ? subnormal : normal;
    const uint32_t other = size > 0x7f800000 ? 0x7e00 : 0x7c00;
    return (uint16_t)((size >= 0x477ff000 ? other : finite) | sign);
}

FN_DECL float f32_of_bf16(uint16_t h) { return convert_float((uint32_t)h << 16); }

FN_DECL uint16_t f32_to_bf16(float x)
{
    const uint32_t all = convert_bits32(x), rounded = (all + 0x7fff + (all >> 16 & 1)) >> 16;
    return (uint16_t)((all & 0x7fffffff) > 0x7f800000 ? 0x7fc0 : rounded);
}

/* Rounds x to `bits` bits after the leading one. Numbers smaller than `least` are rounded to the last
 * place of `least`, numbers larger than `most` to that of `most`. Adding and subtracting 1.5 * 2^52
 * units of this last place rounds to it. */
FN_DECL float convert_rounded(double x, int bits, double least, double most)
{
    const uint64_t all = convert_bits64(x);
    const double power = convert_double(all & (uint64_t)0x7ff << 52);
    const double high = power > most ? most : power, within = power < least ? least : high;
    const double shift = within * 1.5 * (double)((uint64_t)1 << (52 - bits));
    return (float)convert_double(convert_bits64((x + shift) - shift) | (all & (uint64_t)1 << 63));
}

FN_DECL uint16_t f64_to_f16(double x) { return f32_to_f16(convert_rounded(x, 10, 0x1p-14, 0x1p20)); }
FN_DECL uint16_t f64_to_bf16(double x) { return f32_to_bf16(convert_rounded(x, 7, 0x1p-126, 0x1p130)); }

/* Converting to f32 rounds only integers that are too large for f16. */
FN_DECL uint16_t i64_to_f16(int64_t x) { return f32_to_f16((float)x); }
FN_DECL uint16_t u64_to_f16(uint64_t x) { return f32_to_f16((float)x); }

/* The last twelve bits of an integer that f64 would round matter only for ties: any bit there has the
 * effect of 0x800. */
FN_DECL uint16_t u64_to_bf16(uint64_t x)
{
    const uint64_t between = (x & ~(uint64_t)0xfff) | (x & 0xfff ? 0x800 : 0);
    return f64_to_bf16((double)(x >> 53 ? between : x));
}

FN_DECL uint16_t i64_to_bf16(int64_t x)
{
    const uint64_t size = x < 0 ? -(uint64_t)x : (uint64_t)x;
    return (uint16_t)(u64_to_bf16(size) | (x < 0 ? 0x8000 : 0));
}

/* ---- integers ---- */

FN_DECL int64_t f64_to_i64(double x)
{
    const double within = x >= -0x1p63 && x < 0x1p63 ? x : 0;
    const int64_t low = x < -0x1p63 ? INT64_MIN : (int64_t)within;
    return x >= 0x1p63 ? INT64_MAX : low;
}

FN_DECL uint64_t f64_to_u64(double x)
{
    const double within = x > 0 && x < 0x1p64 ? x : 0;
    return x >= 0x1p64 ? UINT64_MAX : (uint64_t)within;
}

/* For conversion to types of up to 32 bits: the type of x represents their limits exactly. */
#define CONVERT_SIGNED(type) ((type)-1 < (type)1)
#define CONVERT_LEAST(type)  (CONVERT_SIGNED(type) ? -(double)((uint64_t)1 << (8 * sizeof(type) - 1)) : 0)
#define CONVERT_MOST(type)                                                                                   \
    ((double)((uint64_t)1 << (8 * sizeof(type) - CONVERT_SIGNED(type) - (sizeof(type) == 8))) - 1)

FN_DECL float convert_within32(float x, float least, float most)
{
    const float low = x > least ? x : least, within = low < most ? low : most;
    return x == x ? within : 0;
}

FN_DECL double convert_within64(double x, double least, double most)
{
    const double low = x > least ? x : least, within = low < most ? low : most;
    return x == x ? within : 0;
}

/* ---- the functions for each pair of types ---- */

FN_DECL float f64_to_f32(double x) { return (float)x; }
FN_DECL double f64_to_f64(double x) { return x; }

/* Converts a floating-point x to an integer type other than bool. */
#define CONVERT_WIDE(type, x) (CONVERT_SIGNED(type) ? (type)f64_to_i64(x) : (type)f64_to_u64(x))
#define CONVERT_NARROW(type, x)                                                                              \
    (sizeof(type) == 4 || sizeof(x) == sizeof(double)                                                        \
         ? (type)convert_within64(x, CONVERT_LEAST(type), CONVERT_MOST(type))                                \
         : (type)convert_within32((float)(x), CONVERT_LEAST(type), CONVERT_MOST(type)))
#define CONVERT_INTEGER(type, x)  (sizeof(type) == 8 ? CONVERT_WIDE(type, x) : CONVERT_NARROW(type, x))
#define CONVERT_FROM_f32(type, x) CONVERT_INTEGER(type, x)
#define CONVERT_FROM_f64(type, x) CONVERT_INTEGER(type, x)
#define CONVERT_FROM_i64(type, x) ((type)(x))
#define CONVERT_FROM_u64(type, x) ((type)(x))
#define CONVERT_FROM_i32(type, x) ((type)(x))

/* name: _f32 and so on, since bool may be a macro. */
#define CONVERT_PAIR(C, T, name, in, out)                                                                    \
    FN_DECL T read_##C##name(stored##name x) { return in; }                                                  \
    FN_DECL stored##name write_##C##name(T x) { return out; }
#define CONVERT_WRAP(C, T, name)                                                                             \
    FN_DECL T wrap_##C##name(T x) { return read_##C##name(write_##C##name(x)); }

#define CONVERT_FLOATS(C, T, name) CONVERT_PAIR(C, T, name, f64_to_##C(x), (stored##name)x)
#define CONVERT_HALVES(C, T, name) CONVERT_PAIR(C, T, name, f64_to_##C(f32_of##name(x)), C##_to##name(x))
#define CONVERT_INTEGERS(C, T, NAME, name, type)                                                             \
    CONVERT_PAIR(C, T, name, DUET_##NAME == DUET_BOOL ? (T)(x != 0) : (T)x,                                  \
                 DUET_##NAME == DUET_BOOL ? (type)(x != 0) : CONVERT_FROM_##C(type, x))

#define DUET_DTYPE(NAME, name, ...) CONVERT_FLOATS(f32, float, _##name) CONVERT_FLOATS(f64, double, _##name)
#define DUET_INTEGER(NAME, name, type)                                                                       \
    CONVERT_INTEGERS(f32, float, NAME, _##name, type) CONVERT_INTEGERS(f64, double, NAME, _##name, type)
#define DUET_NARROW                DUET_INTEGER
#define DUET_HALF(NAME, name, ...) CONVERT_HALVES(f32, float, _##name) CONVERT_HALVES(f64, double, _##name)
#include <duet/dtype.def>

#define DUET_DTYPE(NAME, name, ...)                                                                          \
    CONVERT_FLOATS(i64, int64_t, _##name) CONVERT_FLOATS(u64, uint64_t, _##name)
#define DUET_INTEGER(NAME, name, type)                                                                       \
    CONVERT_INTEGERS(i64, int64_t, NAME, _##name, type)                                                      \
    CONVERT_INTEGERS(u64, uint64_t, NAME, _##name, type)                                                     \
    CONVERT_WRAP(i64, int64_t, _##name) CONVERT_WRAP(u64, uint64_t, _##name)
#define DUET_NARROW DUET_INTEGER
#define DUET_HALF(NAME, name, ...)                                                                           \
    CONVERT_HALVES(i64, int64_t, _##name) CONVERT_HALVES(u64, uint64_t, _##name)
#include <duet/dtype.def>

/* C = i32 exists for integers only. The GPU computes in i32 if all types of a program fit into it
 * (gpu-kernels/interpreter/interpreter.c). */
#define DUET_DTYPE(...)
#define DUET_INTEGER(NAME, name, type) CONVERT_INTEGERS(i32, int32_t, NAME, _##name, type)
#define DUET_NARROW                    DUET_INTEGER
#include <duet/dtype.def>

#endif
