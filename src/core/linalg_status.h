/* linalg_status.h - reasons why a step of linear algebra has no result, with the same error text
 * on every machine. */
#ifndef LINALG_STATUS_H
#define LINALG_STATUS_H

#include "backend.h"
#include <float.h>

enum linalg_failed {
    LINALG_PIVOT,     /* a pivot is 0. at: which one, from 1 */
    LINALG_MINOR,     /* a leading minor is not positive. at: its order */
    LINALG_OPERAND,   /* an operand is not finite. at: which one, from 1 */
    LINALG_RESULT,    /* the result is not finite */
    LINALG_ITERATION, /* values did not converge. at: how many */
    LINALG_RESIDUAL,  /* the residual exceeds its bound */
    LINALG_RANK,      /* the rank cannot be decided */
};

/* The residual that solutions may have, by columns: |b - A x| <= RESIDUAL_LIMIT eps |A| |x|, with sums
 * of magnitudes. */
#define RESIDUAL_LIMIT 30

/* Results of LU are accurate if the largest sum of a row of U is below that of the matrix times this
 * number. Both are rows of the transpose. Matrices of random numbers have 10 at most, the bounds hold
 * up to about 1000. */
#define GROWTH_LIMIT 100

/* Is a triangle R of order n certainly well-conditioned? The norm of its inverse follows from systems
 * with random right-hand sides. The largest sums of a column of R and of a solution, divided by n,
 * are lower bounds of the norms, unless all right-hand sides are almost orthogonal to a singular
 * vector. The product must be below 1 / (max(m, n) eps) by this factor. */
#define CONDITION_CAUTION 64
#define CONDITION_PROBES  2
#define CONDITION_SEED    1

/* The next element of the right-hand sides: in [-1, -1/2] or [1/2, 1], always the same sequence. */
static inline double condition_probe(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    const double x = 0.5 + (double)(*state >> 33) * 0x1p-32;
    return *state >> 32 & 1 ? x : -x;
}

/* Sets the error text, which names the operator and its operand, and returns the status. */
duet_status linalg_failed(const step *s, enum linalg_failed v, int64_t at) __attribute__((cold));

#endif
