/* linalg_small.h - stacks of small matrices (core/small_matrix.h): a thread block computes each
 * matrix in shared memory. Like all functions of kernels.h, launches are asynchronous on the stream. */
#ifndef LINALG_SMALL_H
#define LINALG_SMALL_H

#include "small_matrix.h"
#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SMALL_BYTES_MOST = 99 << 10, /* of shared memory */
    SMALL_MOST = 64,
    SMALL_SIDES_MOST = 1 << 12,
    SMALL_LANES_MOST = 256,
    SMALL_WARPS = 4 /* in a thread block, where a warp computes each matrix */
};

/* The threads that compute a matrix: a warp or a thread block. */
static inline int small_lanes(const small_args *a)
{
    const int most = a->m > a->n ? a->m : a->n;
    const bool eigen = a->what == SMALL_EIGH || a->what == SMALL_EIGVALSH;
    if (most <= (eigen ? 16 : 32)) return 32;
    return a->what < SMALL_QR || most <= 32 ? 64 : SMALL_LANES_MOST;
}

/* The distance between the memory of warps. */
SMALL_FUNCTION size_t small_bytes_apart(const small_args *a) { return small_bytes(a) / 16 * 16 + 16; }

cudaError_t small_launch(const small_args *a, cudaStream_t q);

#ifdef __cplusplus
}
#endif
#endif
