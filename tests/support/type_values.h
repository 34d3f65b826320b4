/* type_values.h - matrices of any real type with elements that matter: extremes, values that round,
 * values that are not finite; and the places where they are tried. */
#ifndef TYPE_VALUES_H
#define TYPE_VALUES_H

#include "common.h"
#include "dtype.h"
#include "element.h"
#include "modes.h"
#include "oracle_types.h"
#include "test_rows.h"
#include <math.h>

static rng gen;
static duet_place place[2];
static int places;

static inline bool is_real(duet_dtype t) { return t != DUET_DTYPE_COUNT && !dtype_is_complex(t); }
static inline bool is_whole(duet_dtype t) { return is_real(t) && !is_floating(t) && t != DUET_BOOL; }

static inline long double extreme(duet_dtype t, int which)
{
    const int bits = 8 * (int)dtypes[t].bytes;
    const bool is_signed = dtype_kind(t) == TYPE_SIGNED;
    const long double most = ldexpl(1, bits - is_signed) - 1, least = is_signed ? -ldexpl(1, bits - 1) : 0;
    const long double of[] = { 0, 1, most, least, is_signed ? -1 : most - 1, least + 1, 2, 7 };
    return of[which % 8];
}

static const double floats[] = { 0,
                                 -0.0,
                                 1,
                                 -1,
                                 INFINITY,
                                 -INFINITY,
                                 NAN,
                                 0.5,
                                 1.5,
                                 2.5,
                                 -2.5,
                                 65504,
                                 65520,
                                 65519,
                                 127.5,
                                 -128.5,
                                 255.5,
                                 256,
                                 32767,
                                 -32768.7,
                                 2147483647,
                                 -2147483649.0,
                                 4294967296,
                                 1e10,
                                 1e19,
                                 -1e19,
                                 9223372036854775807.0,
                                 1e300,
                                 -1e300,
                                 0x1p-24,
                                 0x1p-25,
                                 0x1.8p-25,
                                 0x1p-149,
                                 0x1p-1074,
                                 0.1,
                                 1 / 3.0,
                                 1 + 0x1p-11,
                                 1 + 0x1p-8,
                                 1 + 0x1.8p-10,
                                 16777217,
                                 9007199254740993.0,
                                 3.99,
                                 -3.99 };

static inline long double strange(duet_dtype t)
{
    if (t == DUET_BOOL) return (long double)rng_below(&gen, 2);
    if (is_floating(t)) return converted(DUET_F64, t, floats[rng_below(&gen, LENGTH(floats))]);
    return extreme(t, (int)rng_below(&gen, 8));
}

/* Some values are extremes, others are small. */
static inline long double some_value(duet_dtype t, int percent, double low, double high)
{
    if (rng_chance(&gen, percent)) return strange(t);
    const double x = rng_real(&gen, dtype_kind(t) == TYPE_UNSIGNED && low < 0 ? 0 : low, high);
    return converted(DUET_F64, t, x);
}

static inline duet_matrix *matrix_of(duet_dtype t, const sizes *s, int percent, double low, double high)
{
    duet_matrix *m = duet_new_shape(t, s->rank, s->size);
    void *p = duet_overwrite(m);
    for (int64_t i = 0; p && i < duet_count(m); i++) element_put(t, p, i, some_value(t, percent, low, high));
    return m;
}

/* Does the row accept operands of this type? */
static inline bool admits(const row *r, duet_dtype t)
{
    const int flags = op_infos[r->op].flags;
    if (t == DUET_BOOL) return flags & DUET_BOOLS;
    return flags & (is_floating(t) ? OP_FLOATS : OP_INTEGERS);
}

/* ---- places ---- */

static inline bool computes_integers(duet_place where)
{
    duet_matrix *m = duet_new(DUET_I8, 3);
    const bool can = duet_set_on(where, m, duet_add(m, 1)) == DUET_OK;
    if (!can) printf("# %s\n", duet_error());
    duet_free(&m);
    return can;
}

static inline void list_places_of_types(void)
{
    places = list_places(place);
    if (places == 2 && !computes_integers(place[1])) places = 1;
}

#endif
