/* oracle.h - what a formula is worth: computed from the rows alone, in higher precision, with the error each element may have. */
#ifndef ORACLE_H
#define ORACLE_H

#include "interval_arithmetic.h"
#include <duet/duet.h>

/* The value of e as a machine may compute it in this type. Spends nothing. Its `at` is NULL when e has an error. */
table oracle(duet_expr e, duet_dtype type);
void table_free(table *t);

/* NULL when every element of m is as `want` allows; else where it is most wrong, both values and the bound. The text is static. */
const char *oracle_differs(const table *want, const duet_matrix *m);

/* Elements that were compared with a bound since the program began, and those of which anything was admitted. */
extern int64_t oracle_bounded, oracle_wild;

/* duet_set(m, e), held against the oracle: NULL when right, else the whole story, the formula as C in it. The text is static. */
const char *oracle_refutes(duet_matrix *m, duet_expr e);

/* What print_expr and explain write, in static memory: four texts in turn. */
const char *text_of(duet_expr e);
const char *plan_of(duet_matrix *m, duet_expr e);

/* All elements of m in row-major order: the caller's to free. */
void *elements(const duet_matrix *m);

/* Equal bits in all elements, all NaNs counting as one. */
bool same_bits(duet_dtype type, const void *a, const void *b, int64_t count);
double element(duet_dtype type, const void *p, int64_t i);

#endif
