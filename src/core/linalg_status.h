/* linalg_status.h - reasons why a step of linear algebra has no result, with the same error text
 * on every machine. */
#ifndef LINALG_STATUS_H
#define LINALG_STATUS_H

#include "backend.h"
#include <float.h>

enum linalg_failed {
    LINALG_PIVOT,     /* a pivot is 0. at: which one, from 1 */
    LINALG_MINOR,     /* a leading minor is not positive. at: its order */
    LINALG_RANK,      /* a diagonal element of the triangular factor is 0. at: which one, from 1 */
    LINALG_OPERAND,   /* an operand is not finite. at: which one, from 1 */
    LINALG_RESULT,    /* the result is not finite */
    LINALG_ITERATION, /* values did not converge. at: how many */
    LINALG_RESIDUAL,  /* the residual exceeds its bound */
};

/* The residual that solutions may have, by columns: |b - A x| <= RESIDUAL_LIMIT eps |A| |x|, with sums
 * of magnitudes. */
#define RESIDUAL_LIMIT 30

/* Results of LU are accurate if the largest sum of a row of U is below that of the matrix times this
 * number. Both are rows of the transpose. Matrices of random numbers have 10 at most, the bounds hold
 * up to about 1000. */
#define GROWTH_LIMIT 100

/* Sets the error text, which names the operator and its operand, and returns the status. */
duet_status linalg_failed(const step *s, enum linalg_failed v, int64_t at) __attribute__((cold));

#endif
