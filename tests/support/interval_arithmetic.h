/* interval_arithmetic.h - what the rows of ops.def mean, in higher precision. Tables of numbers that know how wrong a machine may be. */
#ifndef MEANING_H
#define MEANING_H

#include <stdbool.h>
#include <stdint.h>

#if __LDBL_MANT_DIG__ == 113
typedef long double quad;
#else
typedef __float128 quad;
#endif

/* A machine may answer any number from lo to hi, or, when wild, anything at all. All three NaN: only NaN. */
typedef struct bounds {
    quad v, lo, hi;
    bool wild;
} bounds;

typedef struct table {
    int rank;
    int64_t size[8], count;
    bounds *at; /* row-major; the owner's, freed by table_free (oracle.h) */

    /* Of indices, which at[] cannot bound: admits[e * choices + i] says whether element e may be i. NULL in other tables; freed too. */
    int64_t choices;
    bool *admits;
} table;

/* What a type is: its unit roundoff, smallest normal and greatest number, and the precision to work in. */
typedef struct precision {
    double roundoff, tiny, most;
    bool wide; /* in quad, else in double */
} precision;

#ifdef __cplusplus
extern "C" {
#endif

/* Row `op` of in[], into out, whose sizes are set. attr: as of a node. False: op is no row. */
bool meaning_of(int op, const int32_t *attr, const table *in, table *out, const precision *type);

/* The element of `from` that stands at element e of `to`, to which it broadcasts. */
int64_t table_source(const table *from, const table *to, int64_t e);

/* Where element k of those lies that a reduction along axes, as bits, makes element e of; how many these are. */
int64_t folded(const table *from, int axes, int64_t e, int64_t k);
int64_t folded_count(const table *from, int axes);

#ifdef __cplusplus
}
#endif
#endif
