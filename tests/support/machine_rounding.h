/* machine_rounding.h - arithmetic of one element type, in double. */
#ifndef MACHINE_ROUNDING_H
#define MACHINE_ROUNDING_H

#include <duet/duet.h>
#include <math.h>

/* Not inlined: gcc 12 at -O2 vectorises two such roundings side by side in a structure and loses
 * one. */
static __attribute__((noinline, unused)) double rounded(duet_dtype t, double x)
{
    return t == DUET_F32 ? (double)(float)x : x;
}
static inline long double roundoff(duet_dtype t) { return t == DUET_F32 ? 0x1p-24L : 0x1p-53L; }
static inline long double least(duet_dtype t) { return t == DUET_F32 ? 0x1p-149L : 0x1p-1074L; }

/* One unit in the last place of x. */
static inline long double ulp_of(duet_dtype t, long double x)
{
    long double u = x == 0 || !isfinite(x) ? 0 : ldexpl(1, ilogbl(x) - (t == DUET_F32 ? 23 : 52));
    return u > least(t) ? u : least(t);
}

static inline double fma_in(duet_dtype t, double x, double y, double z)
{
    return t == DUET_F32 ? (double)fmaf((float)x, (float)y, (float)z) : fma(x, y, z);
}

static inline double lesser(double x, double y)
{
    if (isnan(x) || isnan(y)) return NAN;
    if (x == y) return signbit(x) ? x : y;
    return x < y ? x : y;
}

#endif
