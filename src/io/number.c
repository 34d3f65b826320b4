/* number.c - converts elements to numbers and to text. */
#include "io.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- floating point of 16 bits ---- */

static double half_value(uint16_t bits, int fraction, int bias)
{
    const int e = bits >> fraction & ((1 << (15 - fraction)) - 1), f = bits & ((1 << fraction) - 1);
    const int most = (1 << (15 - fraction)) - 1;
    double x;
    if (e == most) x = f ? NAN : INFINITY;
    else if (e) x = ldexp((1 << fraction) + f, e - bias - fraction);
    else x = ldexp(f, 1 - bias - fraction);
    return bits >> 15 ? -x : x;
}

double number_of(duet_dtype type, const void *p)
{
    uint16_t half;
    switch (type) {
    case DUET_F64: return *(const double *)p;
    case DUET_F16: memcpy(&half, p, 2); return half_value(half, 10, 15);
    case DUET_BF16: memcpy(&half, p, 2); return half_value(half, 7, 127);
    default: return (double)*(const float *)p;
    }
}

char *integer_text(duet_dtype type, const void *p, char text[32])
{
    switch (type) {
#define DUET_DTYPE(...)
#define INTEGER(NAME, ctype)                                                                                 \
    case DUET_##NAME:                                                                                        \
        if ((ctype)-1 < (ctype)1) snprintf(text, 32, "%" PRId64, (int64_t) * (const ctype *)p);              \
        else snprintf(text, 32, "%" PRIu64, (uint64_t) * (const ctype *)p);                                  \
        break;
#define DUET_INTEGER(NAME, name, ctype) INTEGER(NAME, ctype)
#define DUET_NARROW(NAME, name, ctype)  INTEGER(NAME, ctype)
#include <duet/dtype.def>
    default: *text = 0;
    }
    return text;
}

/* ---- the fewest digits that identify a number ---- */

/* Is x the element of a 16-bit type nearest to y? */
static bool is_nearest(duet_dtype type, double x, double y)
{
    const int e = fmax(ilogb(x), ilogb(dtypes[type].tiny));
    const double unit = ldexp(2 * dtypes[type].roundoff, e), difference = fabs(y) - fabs(x);
    const bool power = x == copysign(ldexp(1, e), x) && fabs(x) > dtypes[type].tiny;
    const bool even = fmod(fabs(x) / unit, 2) == 0;
    const double half = difference < 0 && power ? unit / 4 : unit / 2;
    return fabs(difference) < half || (fabs(difference) == half && even);
}

static bool tells(duet_dtype type, double x, const char *text)
{
    if (type == DUET_F64) return strtod(text, NULL) == x;
    if (type == DUET_F32) return strtof(text, NULL) == (float)x;
    return is_nearest(type, x, strtod(text, NULL));
}

int shortest_digits(duet_dtype type, double x)
{
    char text[40];
    for (int n = 1; n < 17 && x != 0; n++) {
        snprintf(text, sizeof text, "%.*e", n - 1, x);
        if (tells(type, x, text)) return n;
    }
    return x != 0 ? 17 : 1;
}
