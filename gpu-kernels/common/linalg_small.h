/* linalg_small.h - stacks of small matrices (core/small_matrix.h): a thread block computes each
 * matrix in shared memory. Like all functions of kernels.h, launches are asynchronous on the stream. */
#ifndef LINALG_SMALL_H
#define LINALG_SMALL_H

#include "small_matrix.h"
#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SMALL_BYTES_MOST = 99 << 10, SMALL_MOST = 64, SMALL_SIDES_MOST = 1 << 12, SMALL_LANES_MOST = 256 };

/* The threads that a launch gives each matrix. */
static inline int small_lanes(const small_args *a)
{
    const int most = a->m > a->n ? a->m : a->n;
    if (a->what <= SMALL_QR) return 64;
    return most <= 8 ? 32 : most <= 16 ? 64 : most <= 32 ? 128 : SMALL_LANES_MOST;
}

cudaError_t small_launch(const small_args *a, cudaStream_t q);

#ifdef __cplusplus
}
#endif
#endif
