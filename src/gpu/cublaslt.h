/* cublaslt.h - products by cuBLASLt, which stores by columns: c = alpha op(a) op(b) + beta c, m x k by k x n. */
#ifndef GEMM_H
#define GEMM_H

#include "queue.h"

/* What the choice of an algorithm depends on; compared as bytes. */
typedef struct gemm_shape {
    int32_t type, math, m, n, k, lda, ldb, ldc;
    int32_t turned_a, turned_b; /* op is the transpose */
    int32_t adds;               /* beta is not 0 */
    int32_t biased;             /* a number for each row of c is added */
    int32_t alignment;          /* bytes, of all addresses */
    int32_t room; /* 0, or KiB of a queue's workspace that was too small for what others chose: gpu_gemm's */
    int32_t batch, unused; /* so many products, 0 for one, their operands so far apart: */
    int64_t apart_a, apart_b, apart_c;
} gemm_shape;
_Static_assert(sizeof(gemm_shape) == 16 * sizeof(int32_t) + 3 * sizeof(int64_t), "no bytes that nobody sets");

typedef struct gemm_data {
    const void *a, *b, *bias;
    void *c;
    double alpha, beta;
} gemm_data;

/* The first product of a shape tries what cuBLASLt advises on scratch memory, which waits for the card, and keeps the fastest; under
 * DUET_REPRODUCIBLE=1 the first advice is taken. The caller holds q->lock. */
duet_status gpu_gemm(const gemm_shape *s, const gemm_data *at, queue *q);

/* What the first product of any shape needs is there: later ones find memory, or did not. The caller holds q->lock. */
duet_status gpu_gemm_open(queue *q);

#endif
