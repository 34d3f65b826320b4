/* linalg_small.h - stacks of small square matrices (core/small_matrix.h): a thread block computes each
 * matrix in shared memory. Like all functions of kernels.h, launches are asynchronous on the stream. */
#ifndef LINALG_SMALL_H
#define LINALG_SMALL_H

#include "small_matrix.h"
#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SMALL_BYTES_MOST = 48 << 10, SMALL_MOST = 64, SMALL_SIDES_MOST = 1 << 12 };

cudaError_t small_launch(const small_args *a, cudaStream_t q);

#ifdef __cplusplus
}
#endif
#endif
