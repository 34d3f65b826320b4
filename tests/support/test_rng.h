/* test_rng.h - random numbers for the tests of machines: the same in every run of a test. A fuzz target
 * takes them from the bytes of its input, as long as there are some. */
#ifndef TEST_RNG_H
#define TEST_RNG_H

#include "dtype.h"
#include <math.h>
#include <stdbool.h>

static uint64_t seed = 88172645463325252u;
static const uint8_t *drawn_bytes, *drawn_end; /* what is left of the input, or NULL */

/* The next number of the input: as many bytes as numbers below n need. */
static inline uint64_t draw_byte(int n)
{
    uint64_t x = 0;
    for (uint64_t most = 1; most < (uint64_t)n && drawn_bytes < drawn_end; most <<= 8)
        x = x << 8 | *drawn_bytes++;
    return x;
}

static inline int draw(int n)
{
    if (drawn_bytes < drawn_end) return (int)(draw_byte(n) % (uint64_t)n);
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (int)((seed >> 11) % (uint64_t)n);
}
static inline bool chance(int percent) { return draw(100) < percent; }

/* An integer of the type; small and large values are equally frequent. */
static inline double whole_number(duet_dtype t)
{
    const int bits = t == DUET_BOOL ? 1 : 8 * (int)dtypes[t].bytes;
    const int64_t x = (int64_t)((uint64_t)draw(1 << 30) << 30 ^ (uint64_t)draw(1 << 30)) >> draw(60);
    return (double)(chance(50) ? x : -x) * (bits == 64 && chance(30) ? 16 : 1);
}

/* A number of the type; strange: percentage of special values. */
static inline double number(duet_dtype t, int strange)
{
    const double tiny = dtypes[t].tiny;
    const double odd[] = { 0,         -0.0,          1,        -1, INFINITY, -INFINITY, NAN, tiny,
                           -tiny / 8, 5 * tiny / 16, 1 / tiny, 2,  0.5 };
    if (tiny == 0) return chance(strange) ? odd[draw(6)] : whole_number(t);
    const double x = chance(strange) ? odd[draw(13)] : (draw(2000001) - 1000000) * 9e-6;
    if (t == DUET_F32) return (double)(float)x;
    return x;
}

/* The same of an integer type. */
static inline int64_t whole_or_special(duet_dtype t, int strange)
{
    const double x = number(t, strange);
    return fabs(x) < 0x1p63 ? (int64_t)x : INT64_MIN;
}

#endif
