/* csr_system.h - checks of systems with sparse matrices. Callers pass checked patterns and dense operands. */
#ifndef CSR_SYSTEM_H
#define CSR_SYSTEM_H

#include "dtype.h"
#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct csr_system {
    const void *values, *pattern;
    const void *x, *b; /* n x sides, column-major; sides: how many right-hand sides */
    int64_t n, count, sides;
    int32_t type; /* a duet_dtype */
    bool wide, transposed;
    int *zero;     /* raised to n - r, where r is the first row whose diagonal element is 0 or not stored */
    double *rest;  /* the residual b - A x: n x sides pairs, real and imaginary */
    double *terms; /* n x sides: sums of the magnitudes of the products in A x */
    double *most; /* 2 x sides: of each column, the largest magnitude of `rest`, and the largest of `terms` */
} csr_system;

/* Sets zero, if an element of the diagonal is 0 or not stored. */
cudaError_t csr_zero_launch(const csr_system *a, cudaStream_t q);
/* Computes rest, terms and most. A magnitude is |re| + |im|. NaN is larger than all numbers. */
cudaError_t csr_rest_launch(const csr_system *a, cudaStream_t q);

#ifdef __cplusplus
}
#endif
#endif
