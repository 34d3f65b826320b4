/* oracle_types.h - what types mean to the oracle: the table of promotion, written down once more, casts, and integers, exactly. */
#ifndef ORACLE_TYPES_H
#define ORACLE_TYPES_H

#include "expr.h"
#include "interval_arithmetic.h"

/* What operands of two types have in common, by a table of its own; DUET_DTYPE_COUNT: nothing. */
duet_dtype promoted(duet_dtype a, duet_dtype b);

/* f32, f64, i64 or u64: what elements of a type are computed in. Of bools alone f32. */
duet_dtype computed_type(duet_dtype t);

/* b, an element of type `from`, in type `to`. */
bounds cast_bounds(duet_dtype from, duet_dtype to, bounds b);

/* Operators that may leave 64 bits, or that only integers have, of exact elements; false: n is another. Of others anything is admitted. */
bool whole_meaning(const node *n, const table *in, table *out);

/* A whole number as an element of an integer type, modulo 2^n; infinities are its extremes. */
bounds whole_bounds(duet_dtype t, quad v);

/* The operator of bools that an operator of bits is. */
int op_of_bools(int op);

#endif
