/* small_matrix.h - linear algebra on small matrices, without a library: small_matrix_ops.h and
 * small_factors_ops.h have the algorithms. They leave some matrices to the caller: singular ones, those
 * with elements that are not finite or near a limit of the type, those whose factors grow, and those
 * whose singular vectors would not be orthogonal, because a singular value is tiny. */
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
    SMALL_TRIANGULAR,
    SMALL_QR, /* this one and the next ones: small_factors_ops.h */
    SMALL_EIGVALSH,
    SMALL_EIGH,
    SMALL_SVDVALS,
    SMALL_SVD
};

/* All operands are row-major without gaps, one matrix behind the other. */
typedef struct small_args {
    enum small what;
    bool wide;                    /* f64 */
    bool pairs;                   /* complex elements, with parts of this type */
    bool lower, unit, transposed; /* SMALL_TRIANGULAR */
    int m, n, sides;              /* matrices are m x n, right-hand sides n x sides, the Q of QR m x sides */
    int lanes;                    /* threads that compute one matrix */
    int growth;                   /* by which the factors of LU may grow */
    int64_t count;                /* matrices */
    const void *a, *b;            /* b: of SMALL_SOLVE and SMALL_TRIANGULAR */
    void *out[3];
    int *left;      /* for each matrix: 1 if it is left to the caller, else 0 */
    int *some_left; /* set to 1 if one is */
} small_args;

#ifdef __CUDACC__
#define SMALL_FUNCTION static __host__ __device__ inline
#else
#define SMALL_FUNCTION static inline
#endif

/* Is the adjoint of the matrix factored? */
SMALL_FUNCTION bool small_is_wide(const small_args *a)
{
    return (a->what == SMALL_SVD || a->what == SMALL_SVDVALS) && a->m < a->n;
}

SMALL_FUNCTION bool small_has_vectors(const small_args *a)
{
    return a->what == SMALL_SVD || a->what == SMALL_EIGH;
}

/* The right-hand sides that are solved in the memory that threads share; 0: none. */
SMALL_FUNCTION int small_held_sides(const small_args *a)
{
    const int sides = a->what == SMALL_INV     ? a->n
                      : a->what == SMALL_SOLVE ? a->sides
                                               : 0,
              most = a->lanes == 1 ? 0
                     : a->n <= 32  ? a->n
                                   : 8;
    return sides <= most ? sides : 0;
}

/* The numbers that a factorisation keeps for its columns, or for its threads. */
SMALL_FUNCTION int small_items(const small_args *a)
{
    const int cols = small_is_wide(a) ? a->m : a->n;
    return cols > a->lanes ? cols : a->lanes;
}

/* The bytes of memory that the computation of a matrix takes. */
SMALL_FUNCTION size_t small_bytes(const small_args *a)
{
    const size_t part = a->wide ? 8 : 4, each = part * (a->pairs ? 2 : 1), items = (size_t)small_items(a);
    const size_t rows = (size_t)(small_is_wide(a) ? a->n : a->m),
                 cols = (size_t)(small_is_wide(a) ? a->m : a->n);
    if (a->what < SMALL_QR)
        return (cols + (size_t)small_held_sides(a)) * (cols | 1) * each + cols * (part + sizeof(int));
    return (cols * (rows | 1) + (small_has_vectors(a) ? cols * (cols | 1) : 0) + items) * each +
           items * (3 * part + 3 * sizeof(int));
}

#ifndef __CUDACC__
#include "linalg_batch.h"

/* The work of a step, without addresses. False: there is none. */
bool small_matrix_work(const step *s, const linalg_batch *b, small_args *a);
#endif

#endif
