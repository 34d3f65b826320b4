/* linalg_small.h - stacks of small square matrices: a thread block computes each matrix in shared memory.
 * Matrices that need more care are left to the caller: singular ones, those with elements that are not finite
 * or near a limit of the type, and those whose factors grow. Like all functions of kernels.h, launches are
 * asynchronous on the stream. */
#ifndef LINALG_SMALL_H
#define LINALG_SMALL_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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

/* The bytes of shared memory that a matrix takes. */
static inline size_t small_bytes(const small_args *a)
{
    const size_t part = a->wide ? 8 : 4, n = (size_t)a->n;
    return n * (n | 1) * part * (a->pairs ? 2 : 1) + n * part + n * sizeof(int);
}
enum { SMALL_BYTES_MOST = 48 << 10, SMALL_MOST = 64, SMALL_SIDES_MOST = 1 << 12 };

cudaError_t small_launch(const small_args *a, cudaStream_t q);

#ifdef __cplusplus
}
#endif
#endif
