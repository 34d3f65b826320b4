/* interval_arithmetic.h - evaluates the rows of ops.def in higher precision, on tables of numbers
 * with error bounds. */
#ifndef INTERVAL_ARITHMETIC_H
#define INTERVAL_ARITHMETIC_H

#include <stdbool.h>
#include <stdint.h>

#if __LDBL_MANT_DIG__ == 113
typedef long double quad;
#else
typedef __float128 quad;
#endif

/* A machine may return any number from lo to hi, or anything if wild. All three NaN: only NaN. */
typedef struct bounds {
    quad v, lo, hi;
    bool wild;
} bounds;

typedef struct table {
    int rank;
    int64_t size[8], count;
    bounds *at; /* row-major; freed by table_free (oracle.h) */

    /* For indices, which at[] cannot bound: admits[e * choices + i] says whether element e may be
     * i. NULL in other tables; freed too. */
    int64_t choices;
    bool *admits;
} table;

/* Properties of a type: unit roundoff, smallest normal and largest number, and the precision of the
 * oracle. */
typedef struct precision {
    double roundoff, tiny, most;
    bool wide; /* evaluates in quad, otherwise in double */
} precision;

#ifdef __cplusplus
extern "C" {
#endif

/* Evaluates row `op` of in[] into out, whose sizes are set. attr: as in a node. Returns false if op
 * is no row. */
bool meaning_of(int op, const int32_t *attr, const table *in, table *out, const precision *type);

/* The index in `from` of the element that broadcasts to element e of `to`. */
int64_t table_source(const table *from, const table *to, int64_t e);

/* The index of element k among those that a reduction along `axes` (a bit mask) combines into
 * element e; their number. */
int64_t folded(const table *from, int axes, int64_t e, int64_t k);
int64_t folded_count(const table *from, int axes);

#ifdef __cplusplus
}
#endif
#endif
