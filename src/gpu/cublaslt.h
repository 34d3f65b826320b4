/* cublaslt.h - products by cuBLASLt, whose matrices are column-major: c = alpha op(a) op(b) + beta
 * c, m x k times k x n. */
#ifndef CUBLASLT_H
#define CUBLASLT_H

#include "queue.h"

/* What the choice of an algorithm depends on; compared as bytes. */
typedef struct gemm_shape {
    int32_t type, math, m, n, k, lda, ldb, ldc;
    int32_t transposed_a, transposed_b; /* op is the transpose */
    int32_t adds;                       /* beta is not 0 */
    int32_t biased;                     /* a number is added to each row of c */
    int32_t alignment;                  /* of all addresses, in bytes */
    /* 0, or the KiB of the workspace of a queue that was too small for the algorithms of others */
    int32_t workspace_kib;
    int32_t anywhere; /* 1: it was chosen before the addresses were known, by gpu_gemm_prepare */
    int32_t batch;    /* number of products (0: one) and distances between their operands: */
    int64_t apart_a, apart_b, apart_c;
} gemm_shape;
_Static_assert(sizeof(gemm_shape) == 16 * sizeof(int32_t) + 3 * sizeof(int64_t),
               "the struct must not have padding");

typedef struct gemm_data {
    const void *a, *b, *bias;
    void *c;
    double alpha, beta;
} gemm_data;

/* Computes a product. At the first product of a shape, it measures the algorithms that cuBLASLt proposes on
 * scratch memory, waits for the GPU, and stores the fastest algorithm. With DUET_REPRODUCIBLE=1 it takes the
 * first proposal. The caller holds q->lock. */
duet_status gpu_gemm(const gemm_shape *s, const gemm_data *at, queue *q);

/* Chooses an algorithm for operands at any addresses with the alignment of s. After that, gpu_gemm with an
 * equal shape, apart from a greater alignment, can only fail with DEVICE_ERROR. The caller holds q->lock. */
duet_status gpu_gemm_prepare(const gemm_shape *s, queue *q);

/* Creates what the first product of any shape needs, so that later ones cannot fail for lack of
 * memory. The caller holds q->lock. */
duet_status gpu_gemm_open(queue *q);

/* After the loss of a card: closes its handle. Descriptions of products stay valid. */
void gpu_gemm_close(int device);

#endif
