/* small_matrix.h - linear algebra on small square matrices, without a library: small_matrix_ops.h has the
 * algorithms. Matrices that need more care are left to the caller: singular ones, those with elements that
 * are not finite or near a limit of the type, and those whose factors grow. */
#ifndef SMALL_MATRIX_H
#define SMALL_MATRIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum small {
    SMALL_INV,
    SMALL_SOLVE,
    SMALL_DET,
    SMALL_LOGDET,
    SMALL_SLOGDET,
    SMALL_CHOLESKY,
    SMALL_TRIANGULAR
};

/* All operands are row-major without gaps, one matrix behind the other. */
typedef struct small_args {
    enum small what;
    bool wide;                    /* f64 */
    bool pairs;                   /* complex elements, with parts of this type */
    bool lower, unit, transposed; /* SMALL_TRIANGULAR */
    int n, sides;                 /* matrices are n x n, right-hand sides n x sides */
    int growth;                   /* by which the factors of LU may grow */
    int64_t count;                /* matrices */
    const void *a, *b;            /* b: of SMALL_SOLVE and SMALL_TRIANGULAR */
    void *out, *more;             /* more: the logarithms of SMALL_SLOGDET */
    int *left;                    /* for each matrix: 1 if it is left to the caller, else 0 */
} small_args;

/* The bytes of memory that the computation of a matrix takes. */
static inline size_t small_bytes(const small_args *a)
{
    const size_t part = a->wide ? 8 : 4, n = (size_t)a->n;
    return n * (n | 1) * part * (a->pairs ? 2 : 1) + n * part + n * sizeof(int);
}

#ifndef __CUDACC__
#include "linalg_batch.h"

/* The work of a step, without addresses. False: there is none. */
bool small_matrix_work(const step *s, const linalg_batch *b, small_args *a);
#endif

#endif
