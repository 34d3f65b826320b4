/* joining.h - what reductions along the split axis share. */
#ifndef JOINING_H
#define JOINING_H

#include "build.h"
#include "reduce_order.h"
#include <math.h>

/* One reduction, on one rank. */
typedef struct joining {
    builder *b;
    const node *n, *x;
    int axis, arity;
    uint32_t reduced;
    int64_t unit;
    const int64_t *bounds;
    int64_t *counts; /* bounds of the partial results: rank r has counts[r] to counts[r + 1] - 1 */
    shape result;    /* of the reduction, without the reduced axes */
} joining;

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

/* block_sums.c: another way to reduce in the canonical order. Is it faster, if j->counts are those of the
 * subtrees of the ranks? The answer is the same on all ranks. join_blocks changes j->counts. */
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
