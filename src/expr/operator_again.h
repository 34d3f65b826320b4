/* operator_again.h - copies nodes of another formula, for operands that are parts of the original ones. */
#ifndef OPERATOR_AGAIN_H
#define OPERATOR_AGAIN_H

#include "expr.h"

/* The operator of n for operands that are parts of its own, with a result of these sizes. They replace sizes
 * among its options. Nothing is checked. */
duet_expr operator_again(const node *n, const duet_expr e[], const int64_t *size);

/* The same for an operator on elements, with a result of another shape. */
duet_expr operator_of_shape(const node *n, const duet_expr e[], int rank, const int64_t *size);

/* The number n. */
duet_expr number_again(const node *n);

/* A collective step of e (core/communicator.h), which runs after the one whose result is `after`. So all
 * ranks run such steps in one order, whatever else they do. */
duet_expr collective_formula(duet_expr e, duet_expr after, collective_attributes attr, duet_dtype type,
                             int rank, const int64_t *size, const char *site);

/* Drops all unevaluated formulas that this thread has made since formulas_mark, which returned `mark`. */
uint64_t formulas_mark(void);
void formulas_drop_from(uint64_t mark);

/* A formula that has failed, with this status and the text of the thread. */
duet_expr formula_failed(duet_status s);

#endif
