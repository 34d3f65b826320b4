/* joining.h - what reductions along the split axis share. */
#ifndef JOINING_H
#define JOINING_H

#include "build.h"
#include "dtype.h"
#include "reduce_order.h"
#include <math.h>

/* One reduction, on one rank. */
typedef struct joining {
    const planner *p;
    builder *b; /* NULL while the planner decides */
    const node *n, *x;
    bool blocks; /* the ranks exchange the results of all blocks: block_sums.c */
    int axis, arity;
    uint32_t reduced;
    int64_t unit;
    const int64_t *bounds;
    int64_t *counts; /* bounds of the partial results: rank r has counts[r] to counts[r + 1] - 1 */
    shape result;    /* of the reduction, without the reduced axes */
} joining;

static inline bool is_place(enum op op) { return op == OP_argmin || op == OP_argmax; }
static inline bool chooses(enum op op)
{
    return op == OP_min || op == OP_max || op == OP_any || op == OP_all;
}

static inline bool is_sum(enum op op) { return op == OP_sum || op == OP_prod || op == OP_dot; }

/* Is the result independent of the order? */
static inline bool is_free(const node *n, const node *x)
{
    const bool exact = dtype_kind((duet_dtype)x->type) < TYPE_FLOAT;
    return chooses((enum op)n->op) || (exact && is_sum((enum op)n->op));
}

/* mean and norm are computed from sums, and var from several numbers that are joined in the same order.
 * Those of scaled elements are used if the plain sum overflows or, for norm, underflows. */
static inline bool is_made_of_sums(enum op op) { return op == OP_mean || op == OP_norm || op == OP_var; }

/* The number of reduced elements for one index of the split axis. */
static inline int64_t unit_of(const node *x, uint32_t reduced, int axis)
{
    int64_t n = 1;
    for (int a = axis + 1; a < x->rank; a++)
        if (reduced >> a & 1) n *= x->size[a];
    return n;
}

/* The factors of core/reduce_order.h. */
typedef struct scales {
    double least, down, up;
} scales;
scales scales_of(const node *x);

/* This rank's part of an operand, with the reduced axes as one last axis. */
duet_expr as_lines(const joining *j, duet_expr x);

/* e in the shape of the result. */
duet_expr shaped(const joining *j, duet_expr e);

/* The first block at or after a bound. */
int64_t block_of(const joining *j, int64_t bound);

/* The size in blocks of the subtree that begins at a block, within [at, end). */
int64_t subtree_at(int64_t at, int64_t end);

/* A reduction of j along these axes of another operand. The caller sets rank and size. */
node reduction_like(const joining *j, uint32_t axes);

/* The partial results of all ranks, which are along a first axis. */
duet_expr gather_results(const joining *j, duet_expr own, duet_dtype type);

/* The result of two neighbouring parts of the elements. */
duet_expr join_results(const joining *j, duet_expr a, duet_expr b);

/* block_sums.c: reduces in the canonical order by exchanging the results of all blocks. prefers_blocks: is
 * that expected to be faster than subtrees? j->counts must be the bounds of the ranks' subtrees. All ranks
 * get the same answer. join_blocks changes j->counts. */
bool prefers_blocks(const joining *j);
duet_expr join_blocks(const joining *j, const duet_expr x[]);

/* variances.c: the variance of real elements. */
duet_expr join_var(const joining *j, duet_expr x);

/* The same value, which no addition fuses: the maximum of it and -infinity. */
static inline duet_expr not_fused(duet_expr e, const char *site)
{
    return duet_maximum_at(e, duet_of_number(-INFINITY), site);
}

#endif
