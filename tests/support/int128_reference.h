/* int128_reference.h - the rows of ops.def that support integers, in 128-bit integers. */
#ifndef INT128_REFERENCE_H
#define INT128_REFERENCE_H

typedef __int128 whole;

/* Of a function: products of 64-bit numbers may exceed 128 bits, where only their low bits matter, and
 * negative numbers may be shifted. */
#ifdef __clang__
#define WRAPS __attribute__((no_sanitize("signed-integer-overflow", "shift-base")))
#else
#define WRAPS __attribute__((optimize("wrapv")))
#endif

static inline whole whole_fmod(whole x, whole y) { return y == 0 ? 0 : x - x / y * y; }
static inline whole whole_modulo(whole x, whole y) { return y == 0 ? 0 : (x % y + y) % y; }
static inline whole whole_floor_div(whole x, whole y) { return y == 0 ? 0 : (x - (x % y + y) % y) / y; }
/* From the highest bit of y to the lowest. It wraps. */
static inline whole whole_pow(whole x, whole y)
{
    unsigned __int128 all = 1;
    if (x == 1 || (x == -1 && y % 2 == 0)) return 1;
    if (x == -1) return -1;
    if (y < 0 || (x == 0 && y > 0)) return 0;
    for (int bit = 126; bit >= 0; bit--) {
        all *= all;
        if (y >> bit & 1) all *= (unsigned __int128)x;
    }
    return (whole)all;
}
#define Q(f) whole_##f

#endif
