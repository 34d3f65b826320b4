/* kernels.h - the only door to CUDA kernels: launchers that take a finished step. All are
 * asynchronous on their stream, allocate nothing and return a cudaError_t. Data, numbers and
 * layouts are those of core/backend.h, the addresses the device's. */
#ifndef KERNELS_H
#define KERNELS_H

#include "cost.h"
#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The least compute capability that kernels were compiled for, times ten. */
int kernels_oldest(void);

/* NULL, or why no kernel here runs this step (a program of more than one operator, ...). Of
 * programs, fused rows, reductions, softmax, pooling products of few columns or few rows, and
 * convolutions by windows of 3 x 3 with their gradients. */
const char *kernels_unsupported(const step *s);

/* The seconds that a step is expected to take by a kernel here. */
double kernels_cost(const step *s, const costs *c);

/* Bytes of device memory that launch_step needs as scratch for this step; often 0. */
size_t kernels_scratch(const step *s);

/* Device memory to work in. scratch: kernels_scratch(s) bytes, aligned to 256. counters:
 * KERNELS_COUNTERS of them that nothing else uses at the same time, so a stream's own; a launch
 * that succeeds finds 0 there and leaves 0. written: what the work before this launch in its
 * stream writes: a kernel may read all else before that has ended. */
#define KERNELS_COUNTERS 1024
typedef struct span {
    const char *first, *end;
} span;
typedef struct workspace {
    void *scratch;
    uint32_t *counters;
    span written;
    const void
        *packed; /* what kernels_pack made of in[1]. NULL: a step that needs it is to be computed strictly */
} workspace;

/* Runs a step that kernels_unsupported takes. Recorded into a graph it keeps the addresses of its
 * workspace: what replays it comes before or after other work in there. */
cudaError_t launch_step(const step *s, const frame *f, const workspace *w, cudaStream_t q);

/* Products and convolutions of f32 by parts of fewer bits (DUET_MATH_SPLIT).
 *   kernels_splits     does launch_step compute this step by parts? Only if its math is
 *                      DUET_MATH_SPLIT and it is faster so
 *   splits_here        of such a step: are its addresses such as the kernels need?
 *   packs              does it need operand 1 packed?
 *   packed_bytes       of a packed operand 1, which lies at an address aligned to 256
 *   pack               makes it; its scale is measured inside and kept with it. What is packed
 *                      hangs on nothing but kernel, attr and operand 1, so that other steps may
 *                      use it, and frame has no other address
 * The workspace is launch_step's, with kernels_scratch(s) bytes. Recorded into graphs as launch_step is. */
bool kernels_splits(const step *s);
bool kernels_splits_here(const step *s, const frame *f);
bool kernels_packs(const step *s);
size_t kernels_packed_bytes(const step *s);
cudaError_t kernels_pack(const step *s, const frame *f, void *packed, const workspace *w, cudaStream_t q);

#ifdef __cplusplus
}
#endif
#endif
