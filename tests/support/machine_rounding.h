/* machine_rounding.h - arithmetic of one element type, in double. */
#ifndef MACHINE_ROUNDING_H
#define MACHINE_ROUNDING_H

#include <duet/duet.h>
#include <math.h>

/* Not inlined: gcc 12 at -O2 vectorises two such roundings side by side in a structure and loses
 * one. */
static __attribute__((noinline, unused)) double rounded(duet_dtype t, double x)
{
    if (t == DUET_F32) return (double)(float)x;
    return x;
}
static inline long double roundoff(duet_dtype t) { return t == DUET_F32 ? 0x1p-24L : 0x1p-53L; }
static inline long double least(duet_dtype t) { return t == DUET_F32 ? 0x1p-149L : 0x1p-1074L; }

/* One unit in the last place of x. */
static inline long double ulp_of(duet_dtype t, long double x)
{
    if (x == 0 || !isfinite(x)) return least(t);
    const long double u = ldexpl(1, ilogbl(x) - (t == DUET_F32 ? 23 : 52));
    if (u > least(t)) return u;
    return least(t);
}

static inline double fma_in(duet_dtype t, double x, double y, double z)
{
    if (t == DUET_F32) return (double)fmaf((float)x, (float)y, (float)z);
    return fma(x, y, z);
}

static inline double lesser(double x, double y)
{
    if (isnan(x) || isnan(y)) return NAN;
    if (x == y) return signbit(x) ? x : y;
    if (x < y) return x;
    return y;
}

#endif
