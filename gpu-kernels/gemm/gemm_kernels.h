/* gemm_kernels.h - the kernels of matrix products, and the sizes that they take. */
#ifndef GEMM_KERNELS_H
#define GEMM_KERNELS_H

#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The products that our kernels compute (gemm_small_supported.c). The fake CUDA sets smaller
 * limits, so that tests also reach its cuBLASLt. */
#ifndef GEMM_MN_COLUMNS
#define GEMM_MN_COLUMNS 16
#define SPLIT_ROWS      128
#endif
#define GEMM_MN_INNER   2048
#define SPLIT_WORK      3e8 /* m k n; larger products keep the vendor's kernels busy */
#define GEMM_MN_THREADS 256
#define GEMV_THREADS    256
#define GEMV_ROWS       2
#define GEMV_COLUMNS    8 /* per thread block */
#define GEMM_MN_ROWS    2 /* per thread block */
/* minimum number of rows; with fewer rows, a thread block shares the inner axis */
#define GEMM_TALL_MIN_ROWS 2048
#define GEMM_TALL_THREADS  256
#define GEMM_TALL_ROWS     4           /* per warp and iteration */
#define GEMM_TALL_SHARED   (100 << 10) /* bytes of b for which two thread blocks fit on a multiprocessor */

/* out = act(alpha a b + bias), m x k times k x n. The columns of a and out are adjacent. */
typedef struct product_args {
    const void *a, *b, *bias; /* bias NULL: neither bias nor act */
    void *out;
    int64_t a_row, b_row, b_column, out_row, bias_stride;
    int32_t m, k, n;
    int32_t act;
    /* thread blocks of a cluster, which share a tile of gemm_split_k.cu or emulated_gemm_small.cu */
    int32_t parts;
    bool b_is_there; /* no kernel that may still be running writes b */
    double alpha;
} product_args;

/* A kernel of gemm_split_k.def or emulated_gemm_small.cu: its tile, and the resources of a thread
 * block. */
typedef struct split_kernel {
    int rows, columns, threads, shared;
    /* measured microseconds: of a launch, of a thread block, and of a thread block per 1000 of the
     * inner axis */
    double once, start, cost;
    const void *kernel[2]; /* reads a and b by elements; by 16 bytes */
} split_kernel;
const split_kernel *split_kernels(int *count);
const split_kernel *emulated_gemm_small_kernels(int *count); /* for DUET_MATH_SPLIT */
const void *gemv_kernel(int rows, int form, bool wide);

KERNEL_TABLE(gemm_small_mn)
KERNEL_TABLE(gemm_tall)

product_args product_args_of(const step *s, const frame *f, const workspace *w);
bool product_splits(const step *s); /* has few rows, and emulated_gemm_small.cu is the fastest */

#ifdef __cplusplus
}
#endif

#endif
