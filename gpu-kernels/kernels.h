/* kernels.h - the only door to CUDA kernels: launchers that take a finished step. All are asynchronous on their stream, allocate nothing
 * and return a cudaError_t. Data, numbers and layouts are those of core/backend.h, the addresses the device's. */
#ifndef KERNELS_H
#define KERNELS_H

#include "backend.h"
#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* NULL, or why no kernel here runs this step (a program of more than one operator, ...). Of programs, fused rows, folds, softmax, pooling
 * and products of few columns. */
const char *kernels_refuse(const step *s);

/* Bytes of device memory that launch_step needs as scratch for this step; often 0. */
size_t kernels_scratch(const step *s);

/* Runs a step that kernels_refuse takes. scratch: kernels_scratch(s) bytes, aligned to 256. */
cudaError_t launch_step(const step *s, const frame *f, void *scratch, cudaStream_t q);

#ifdef __cplusplus
}
#endif
#endif
