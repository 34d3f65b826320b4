/* oracle_types.h - the element types for the oracle: the promotion table, written independently,
 * casts, and exact integers. */
#ifndef ORACLE_TYPES_H
#define ORACLE_TYPES_H

#include "expr.h"
#include "interval_arithmetic.h"

/* The common type of two types, by an independent table; DUET_DTYPE_COUNT: none. */
duet_dtype promoted(duet_dtype a, duet_dtype b);

/* f32, f64, i64 or u64: the type of computations on elements of a type. For bools alone f32. */
duet_dtype computed_type(duet_dtype t);

/* Converts b, an element of type `from`, to type `to`. */
bounds cast_bounds(duet_dtype from, duet_dtype to, bounds b);

/* Evaluates operators that may exceed 64 bits, or that only integers have, on exact elements.
 * Returns false if n is another operator. Inexact elements accept anything. */
bool whole_meaning(const node *n, const table *in, table *out);

/* oracle_views.c: evaluates operators that select or arrange elements of x. Returns false if n is
 * another operator. */
bool arranged_meaning(const node *n, const table *x, table *out);

/* An integer as an element of an integer type, modulo 2^n; infinities become the extremes. */
bounds whole_bounds(duet_dtype t, quad v);

/* The operator on bools that corresponds to an operator on bits. */
int op_of_bools(int op);

#endif
