/* element.c - values of elements of every real type, by the definitions of the types. */
#include "element.h"
#include <math.h>
#include <string.h>

/* A floating-point format: bits of the fraction, and the exponent of the smallest normal number. */
typedef struct format {
    int fraction, least;
} format;

static const format formats[DUET_DTYPE_COUNT] = {
    [DUET_F32] = { 23, -126 }, [DUET_F64] = { 52, -1022 }, [DUET_F16] = { 10, -14 }, [DUET_BF16] = { 7, -126 }
};

/* 2^e, for the exponents of all types. Multiplying by it is exact, and much faster than ldexpl. */
enum { POWERS = 1200 };
static long double powers[2 * POWERS + 1];
__attribute__((constructor)) static void set_powers(void)
{
    for (int e = -POWERS; e <= POWERS; e++) powers[e + POWERS] = ldexpl(1, e);
}
static long double scaled(long double x, int e)
{
    if (e >= -POWERS && e <= POWERS) return x * powers[e + POWERS];
    return ldexpl(x, e);
}

bool is_floating(duet_dtype t) { return formats[t].fraction != 0; }
static bool is_signed(duet_dtype t)
{
    return t == DUET_I8 || t == DUET_I16 || t == DUET_I32 || t == DUET_I64;
}
static int bits_of(duet_dtype t) { return t == DUET_BOOL ? 1 : 8 * (int)dtypes[t].bytes; }

static uint64_t bits_at(duet_dtype t, const void *p, int64_t i)
{
    uint64_t b = 0; /* little-endian, like all supported machines */
    memcpy(&b, (const char *)p + i * (int64_t)dtypes[t].bytes, dtypes[t].bytes);
    return b;
}

static duet_dtype part_of(duet_dtype t)
{
    if (t == DUET_C64) return DUET_F32;
    if (t == DUET_C128) return DUET_F64;
    return t;
}

long double element_value(duet_dtype t, const void *p, int64_t i)
{
    if (part_of(t) != t) {
        const long double re = element_value(part_of(t), p, 2 * i),
                          im = element_value(part_of(t), p, 2 * i + 1);
        if (same_value(re, im)) return re;
        return NAN;
    }
    const uint64_t b = bits_at(t, p, i);
    const int bits = 8 * (int)dtypes[t].bytes;
    if (t == DUET_BOOL) return b != 0;
    if (!is_floating(t))
        return is_signed(t) && b >> (bits - 1) ? (long double)b - scaled(1, bits) : (long double)b;
    const format f = formats[t];
    const uint64_t fraction = b & ((UINT64_C(1) << f.fraction) - 1),
                   top = (UINT64_C(1) << (bits - 1 - f.fraction)) - 1, exponent = b >> f.fraction & top;
    const long double sign = b >> (bits - 1) ? -1 : 1;
    if (exponent == top) return fraction ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * scaled((long double)fraction, f.least - f.fraction);
    const uint64_t one = UINT64_C(1) << f.fraction;
    return sign * scaled((long double)(fraction + one), f.least + (int)exponent - 1 - f.fraction);
}

static uint64_t float_bits(duet_dtype t, long double x)
{
    const format f = formats[t];
    const int bits = 8 * (int)dtypes[t].bytes;
    const uint64_t sign = signbit(x) ? UINT64_C(1) << (bits - 1) : 0,
                   top = (UINT64_C(1) << (bits - 1 - f.fraction)) - 1;
    if (isnan(x)) return top << f.fraction | UINT64_C(1) << (f.fraction - 1);
    if (isinf(x)) return sign | top << f.fraction;
    const int exponent = x == 0 || ilogbl(x) < f.least ? f.least - 1 : ilogbl(x);
    const uint64_t last = (uint64_t)scaled(fabsl(x), f.fraction - (exponent < f.least ? f.least : exponent));
    return sign | (uint64_t)(exponent - f.least + 1) << f.fraction |
           (last & ((UINT64_C(1) << f.fraction) - 1));
}

void element_put(duet_dtype t, void *p, int64_t i, long double x)
{
    if (part_of(t) != t) {
        element_put(part_of(t), p, 2 * i, x);
        element_put(part_of(t), p, 2 * i + 1, x);
        return;
    }
    uint64_t b;
    if (is_floating(t)) b = float_bits(t, x);
    else if (x < 0) b = -(uint64_t)-x;
    else b = (uint64_t)x;
    memcpy((char *)p + i * (int64_t)dtypes[t].bytes, &b, dtypes[t].bytes);
}

/* Rounds to nearest, ties to even, with rintl on the last places. */
static long double rounded_to(duet_dtype t, long double x)
{
    const format f = formats[t];
    if (x == 0 || !isfinite(x)) return x;
    const int exponent = ilogbl(x) < f.least ? f.least : ilogbl(x), place = exponent - f.fraction;
    const long double r = scaled(rintl(scaled(x, -place)), place);
    if (fabsl(r) >= scaled(1, 2 - f.least)) return copysignl(INFINITY, x);
    return copysignl(r, x); /* the largest exponent is 1 - least */
}

static long double limited(duet_dtype t, long double x)
{
    const long double least = is_signed(t) ? -scaled(1, bits_of(t) - 1) : 0,
                      most = scaled(1, bits_of(t) - is_signed(t)) - 1;
    if (isnan(x)) return 0;
    if (x <= least) return least;
    if (x >= most) return most;
    return truncl(x) + 0.0L;
}

static long double wrapped(duet_dtype t, long double x)
{
    const long double all = scaled(1, bits_of(t)), rest = fmodl(x, all) + 0.0L,
                      up = rest < 0 ? rest + all : rest;
    if (is_signed(t) && up >= all / 2) return up - all;
    return up;
}

long double converted(duet_dtype from, duet_dtype to, long double x)
{
    if (to == DUET_BOOL) return !(x == 0);
    if (is_floating(to)) return rounded_to(to, x);
    if (is_floating(from)) return limited(to, x);
    return wrapped(to, x);
}

bool same_value(long double a, long double b)
{
    if (isnan(a)) return isnan(b);
    return a == b && !signbit(a) == !signbit(b);
}
