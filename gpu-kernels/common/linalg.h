/* linalg.h - small work beside a solver library's calls: what it does not say of matrices, and
 * what it leaves beside each other in one. Asynchronous on the stream, as all of kernels.h. */
#ifndef LINALG_H
#define LINALG_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum linear {
    /* flag[0] = 1 if an element of the part is not finite; flag[1] = rows - i of the first zero of
     * the diagonal, if it is of the part */
    LINEAR_CHECK,
    /* of real elements: out (uint64_t) = the bits, as a double, of the greatest sum of a column's
     * sizes, if it is greater */
    LINEAR_SIZE,
    /* of such: flag[0] = 1 where the sum of sizes in a column of `in` is not at most `most` times
     * that of `more` times the one in out */
    LINEAR_REST,
    LINEAR_TRIANGLE, /* out = the part of in, or, where in is NULL, zeros; and zeros elsewhere */
    LINEAR_ORDER,    /* out (int64_t) = the order of rows that `pivots` exchanges make */
    LINEAR_DET,      /* out = the determinant of what was factored in `in`, of its diagonal and pivots; */
    LINEAR_LOGDET,   /* the logarithm of its size; */
    /* its sign, of complex elements a number of size 1, and in `more` that logarithm; it is real */
    LINEAR_SLOGDET
};

/* PART_UNIT_LOWER: below the diagonal, which counts as ones. */
enum linear_part { PART_ALL, PART_LOWER, PART_UPPER, PART_UNIT_LOWER, PART_UNIT_UPPER };

/* Strides count elements, of complex ones the pairs. */
typedef struct linear_args {
    enum linear what;
    enum linear_part part;
    bool wide;  /* f64 */
    bool pairs; /* complex elements, whose parts are of that */
    const void *in;
    void *out, *more;
    int *flag;
    double most;
    const int64_t *pivot; /* from 1 */
    int64_t rows, cols, pivots;
    int64_t in_row, in_col, out_row, out_col;
} linear_args;

cudaError_t linear_launch(const linear_args *a, cudaStream_t q);

/* Is element i, j of the part? */
#ifdef __CUDACC__
__host__ __device__
#endif
    static inline bool
    linear_has(enum linear_part part, int64_t i, int64_t j)
{
    switch (part) {
    case PART_LOWER: return i >= j;
    case PART_UPPER: return i <= j;
    case PART_UNIT_LOWER: return i > j;
    case PART_UNIT_UPPER: return i < j;
    default: return true;
    }
}

#ifdef __cplusplus
}
#endif
#endif
