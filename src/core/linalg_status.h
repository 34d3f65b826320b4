/* linalg_status.h - reasons why a step of linear algebra has no result, with the same error text
 * on every machine. */
#ifndef LINALG_STATUS_H
#define LINALG_STATUS_H

#include "backend.h"
#include "compiler.h"
#include "min_max.h"
#include <float.h>
#include <math.h>

enum linalg_failed {
    LINALG_PIVOT,     /* a pivot is 0. at: which one, from 1 */
    LINALG_MINOR,     /* a leading minor is not positive. at: its order */
    LINALG_OPERAND,   /* an operand is not finite. at: which one, from 1 */
    LINALG_RESULT,    /* the result is not finite */
    LINALG_ITERATION, /* values did not converge. at: how many */
    LINALG_RESIDUAL,  /* the residual exceeds its bound */
    LINALG_CONDITION, /* the matrix may be rank-deficient, and there is no LAPACK to decide */
    LINALG_WORKSPACE, /* cuSOLVER cannot work on so large a matrix, and there is no LAPACK that can */
    LINALG_RANK,      /* the rank cannot be decided. at: the largest order of a matrix for which it can */
};

/* The residual that solutions may have, by columns: |b - A x| <= RESIDUAL_LIMIT eps |A| |x|, with sums
 * of magnitudes. It is below the documented 30, because the computed residual has rounding errors: one of
 * 30.01 was computed as less than 30. */
#define RESIDUAL_LIMIT 28

/* Results of LU are accurate if the largest sum of a row of U is at most that of the matrix times this
 * number. Both are rows of the transpose. Random matrices of order 700 have 8, a Hadamard matrix of
 * order 256 has 26. The bound of solve has no factor n, so its limit is lower: residuals above the
 * bound were found for a growth of 77. */
#define GROWTH_LIMIT       100
#define SOLVE_GROWTH_LIMIT 32

/* ---- the condition of a triangle R, for least squares ----
 *
 * Systems with R and random right-hand sides show whether R is certainly well-conditioned. The largest
 * sums of a column and of a row of R bound its 2-norm. The largest 2-norm of a solution bounds that of the
 * inverse, unless all right-hand sides are almost orthogonal to a singular vector: so the product must be
 * below the limit by the factor CONDITION_CAUTION. All 4 are that orthogonal once in 10,000 matrices. */
#define CONDITION_CAUTION 8
#define CONDITION_PROBES  4
#define CONDITION_SEED    1

/* `squares` is the largest sum of squares of a solution. Too small a sum may have underflowed. */
static inline double condition_quick(double columns, double rows, double squares)
{
    return squares > 0x1p-900 ? sqrt(columns) * sqrt(rows) * sqrt(squares) : INFINITY;
}

/* An m x n matrix of f64 or c128 with a larger condition is rank-deficient. This is the limit of
 * numpy.linalg.lstsq. */
static inline double condition_limit(int64_t m, int64_t n)
{
    return 1 / ((double)larger(larger(m, n), 1) * DBL_EPSILON);
}

/* The limit for f32 and c64, after columns (rows, if m < n) have got norms of about 1. Rounding to f32
 * changes the singular values by at most half of the square root times eps. */
static inline double condition_limit_f32(int64_t m, int64_t n)
{
    return 1 / (4 * sqrt((double)larger(smaller(m, n), 1)) * FLT_EPSILON);
}

/* Up to this condition, R computed in f32 shows that the matrix has full rank. QR makes an error of eps
 * times about the square root of the number of terms of a sum. */
static inline double condition_certain_f32(int64_t m, int64_t n)
{
    return 1 / (8 * sqrt((double)larger(larger(m, n), 1)) * FLT_EPSILON);
}

/* The next element of the right-hand sides: in [-1, -1/2] or [1/2, 1], always the same sequence. */
static inline double condition_probe(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    const double x = 0.5 + (double)(*state >> 33) * 0x1p-32;
    return *state >> 32 & 1 ? x : -x;
}

/* Set in a thread that computes a part of a step for another one: linalg_failed then sets no error text. */
extern _Thread_local bool linalg_quiet __attribute__((tls_model(DUET_TLS)));

/* Sets the error text, which names the operator and its operand, and returns the status. */
duet_status linalg_failed(const step *s, enum linalg_failed v, int64_t at) __attribute__((cold));

#endif
