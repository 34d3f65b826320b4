/* oracle.h - evaluates a formula from the rows alone, in higher precision, with the error that each
 * element may have. */
#ifndef ORACLE_H
#define ORACLE_H

#include "interval_arithmetic.h"
#include <duet/duet.h>

/* The values of e that a machine may compute in this type. It does not spend e. `at` is NULL if e
 * has an error. */
table oracle(duet_expr e, duet_dtype type);
void table_free(table *t);

/* Returns NULL if `want` accepts every element of m; otherwise a static text with the worst
 * element, both values and the bound. */
const char *oracle_differs(const table *want, const duet_matrix *m);

/* Number of elements compared with a bound since the program started, and of those for which
 * anything was accepted. */
extern int64_t oracle_bounded, oracle_wild;

/* Executes duet_set(m, e) and compares with the oracle. Returns NULL if it is right; otherwise a
 * static text with the formula as C. */
const char *oracle_refutes(duet_matrix *m, duet_expr e);

/* The output of print_expr and explain, in one of four static buffers in turn. */
const char *text_of(duet_expr e);
const char *plan_of(duet_matrix *m, duet_expr e);

/* All elements of m in row-major order; the caller frees them. */
void *elements(const duet_matrix *m);

/* Have all elements equal bits, where all NaNs are equal? */
bool same_bits(duet_dtype type, const void *a, const void *b, int64_t count);
double element(duet_dtype type, const void *p, int64_t i);

#endif
