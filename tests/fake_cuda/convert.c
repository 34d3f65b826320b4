/* convert.c - elements of any type by the definitions of the types: a long double represents any
 * real element. The code is slow, and shares nothing with the library. */
#include "dtype.h"
#include "fake.h"
#include <float.h>
#include <math.h>
#include <string.h>

_Static_assert(LDBL_MANT_DIG >= 64, "a long double holds integers of 64 bits");

/* A binary floating-point format: digits of the significand, exponent of the smallest number,
 * exponent of overflow. */
static const struct format {
    int digits, least, beyond;
} formats[DUET_DTYPE_COUNT] = { [DUET_F16] = { 11, -24, 16 },
                                [DUET_BF16] = { 8, -133, 128 },
                                [DUET_F32] = { 24, -149, 128 },
                                [DUET_F64] = { 53, -1074, 1024 } };

static int bits_of(duet_dtype t) { return t == DUET_BOOL ? 1 : 8 * (int)dtypes[t].bytes; }
static bool is_signed(duet_dtype t)
{
    return t == DUET_I8 || t == DUET_I16 || t == DUET_I32 || t == DUET_I64;
}

/* ---- from bits to values ---- */

/* A sign, an exponent (all ones: infinity or NaN), and digits. */
static long double float_value(duet_dtype t, uint64_t b)
{
    const struct format *s = &formats[t];
    const int exponents = bits_of(t) - s->digits;
    const uint64_t digits = b & (((uint64_t)1 << (s->digits - 1)) - 1),
                   exponent = b >> (s->digits - 1) & (((uint64_t)1 << exponents) - 1);
    const long double sign = b >> (bits_of(t) - 1) ? -1 : 1;
    if (exponent == ((uint64_t)1 << exponents) - 1)
        return digits ? (long double)NAN : sign * (long double)INFINITY;
    if (exponent == 0) return sign * ldexpl((long double)digits, s->least);
    return sign *
           ldexpl((long double)(digits | (uint64_t)1 << (s->digits - 1)), s->least + (int)exponent - 1);
}

long double fake_value(duet_dtype t, const void *p)
{
    uint64_t b = 0;
    memcpy(&b, p, dtypes[t].bytes);
    if (formats[t].digits) return float_value(t, b);
    if (t == DUET_BOOL) return b != 0;
    if (is_signed(t)) return (long double)((int64_t)(b << (64 - bits_of(t))) >> (64 - bits_of(t)));
    return (long double)b;
}

/* ---- from values to bits ---- */

/* The exponent of the first digit. */
static uint64_t float_bits(duet_dtype t, long double x)
{
    const struct format *s = &formats[t];
    const int before = s->digits - 1;
    const uint64_t sign = (uint64_t)(signbit(x) != 0) << (bits_of(t) - 1);
    const uint64_t most = (((uint64_t)1 << (bits_of(t) - s->digits)) - 1) << before;
    int e;
    if (x != x) return most | (uint64_t)1 << (before - 1);
    if (isinf(x)) return sign | most;
    frexpl(x, &e);
    if (x == 0 || e - s->digits < s->least) e = s->least;
    else e = e - s->digits; /* exponent of the last digit */
    return sign | ((uint64_t)ldexpl(fabsl(x), -e) + ((uint64_t)(e - s->least) << before));
}

void fake_put(duet_dtype t, void *p, long double x)
{
    uint64_t b;
    if (formats[t].digits) b = float_bits(t, x);
    else if (x < 0) b = 0 - (uint64_t)-x;
    else b = (uint64_t)x;
    memcpy(p, &b, dtypes[t].bytes);
}

/* ---- conversions ---- */

static long double to_float(duet_dtype t, long double x)
{
    const struct format *s = &formats[t];
    int e;
    if (x == 0 || !isfinite(x)) return x;
    frexpl(x, &e);
    if (e - s->digits < s->least) e = s->least;
    else e = e - s->digits;
    const long double r = ldexpl(rintl(ldexpl(x, -e)), e);
    if (fabsl(r) >= ldexpl(1, s->beyond)) return copysignl(INFINITY, x);
    return r;
}

static long double float_to_integer(duet_dtype t, long double x)
{
    const long double least = is_signed(t) ? -ldexpl(1, bits_of(t) - 1) : 0,
                      beyond = ldexpl(1, bits_of(t) - is_signed(t));
    if (x != x) return 0;
    if (x < least) return least;
    if (x >= beyond) return beyond - 1;
    return truncl(x) + 0;
}

/* The value of the lowest bits. */
static long double integer_to_integer(duet_dtype t, long double x)
{
    uint64_t b = 0;
    fake_put(DUET_U64, &b, x);
    return fake_value(t, &b);
}

long double fake_converted(duet_dtype from, duet_dtype to, long double x)
{
    if (to == DUET_BOOL) return x != 0;
    if (formats[to].digits) return to_float(to, x);
    if (formats[from].digits) return float_to_integer(to, x);
    return integer_to_integer(to, x);
}

/* ---- programs that only move elements ---- */

static char *element(const void *p, const layout *l, int64_t i)
{
    int64_t at = 0;
    for (int axis = l->rank; axis-- > 0; i /= l->size[axis]) at += i % l->size[axis] * l->stride[axis];
    return (char *)p + at * (int64_t)dtypes[l->type].bytes;
}

void fake_move(const job *j)
{
    char held[16];
    const size_t bytes = dtypes[j->p.code[0].type].bytes;
    for (int64_t i = 0; i < layout_count(&j->s.out[0].at); i++)
        for (const instruction *c = j->p.code; c < j->p.code + j->p.length; c++) {
            const int k = c->arg[0].index;
            if (c->op == OP_LOAD) memcpy(held, element(j->in[k], &j->s.in[k].at, i), bytes);
            else memcpy(element(j->out[k], &j->s.out[k].at, i), held, bytes);
        }
}
