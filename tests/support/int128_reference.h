/* int128_reference.h - the rows of ops.def that support integers, in 128-bit integers. */
#ifndef INT128_REFERENCE_H
#define INT128_REFERENCE_H

typedef __int128 whole;

static inline whole whole_fmod(whole x, whole y) { return y == 0 ? 0 : x - x / y * y; }
static inline whole whole_modulo(whole x, whole y) { return y == 0 ? 0 : (x % y + y) % y; }
static inline whole whole_floor_div(whole x, whole y) { return y == 0 ? 0 : (x - (x % y + y) % y) / y; }
#define Q(f) whole_##f

#endif
