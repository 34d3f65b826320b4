/* linalg.h - small kernels for linear algebra by a solver library. They check matrices, and extract the
 * results that the library stores together in one matrix. Like all functions of kernels.h, launches are
 * asynchronous on the stream. */
#ifndef LINALG_H
#define LINALG_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum linear {
    /* flag[0] = 1 if an element of the part is not finite. If the part contains the diagonal and
     * element i of it is the first zero, flag[1] = rows - i */
    LINEAR_CHECK,
    /* raises out (uint64_t, the bits of a double) to the greatest sum of absolute values of a column
     * of `in`, of the elements of the part only. NaN counts as greater than all numbers */
    LINEAR_SIZE,
    /* flag[0] = 1 if, for any column, the sum of absolute values in `in` exceeds `most` * out * the sum
     * of absolute values in `more` */
    LINEAR_REST,
    LINEAR_TRIANGLE, /* out = the part of `in`, with zeros elsewhere; all zeros if `in` is NULL */
    LINEAR_ORDER,    /* out (int64_t) = the permutation of rows made by `pivots` exchanges */
    LINEAR_DET,      /* out = the determinant, from the factors in `in` and their pivots */
    LINEAR_LOGDET,   /* out = the logarithm of its absolute value */
    /* out = its sign, for complex elements a number of absolute value 1; more = the logarithm, which is
     * real */
    LINEAR_SLOGDET
};

/* PART_UNIT_LOWER: the part below the diagonal. The elements of the diagonal count as 1. */
enum linear_part { PART_ALL, PART_LOWER, PART_UPPER, PART_UNIT_LOWER, PART_UNIT_UPPER };

/* Strides count elements. A complex element counts as one. */
typedef struct linear_args {
    enum linear what;
    enum linear_part part;
    bool wide;  /* f64 */
    bool pairs; /* complex elements, with parts of this type */
    const void *in;
    void *out, *more;
    int *flag;
    double most;
    const int64_t *pivot; /* row numbers, counted from 1 */
    int64_t rows, cols, pivots;
    int64_t in_row, in_col, out_row, out_col;
} linear_args;

cudaError_t linear_launch(const linear_args *a, cudaStream_t q);

/* Does the part contain element i, j? */
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
