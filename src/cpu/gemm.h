/* gemm.h - matrix products of f32 by oneDNN, which is faster than OpenBLAS except for small matrices. */
#ifndef GEMM_H
#define GEMM_H

#include "status.h"
#include <stdbool.h>

typedef struct gemm {
    bool a_transposed, b_transposed;
    int m, n, k, a_ld, b_ld, out_ld;
} gemm;

/* Does BLAS compute the product faster than oneDNN? Depends on the shape, the transposes and the processor.
 * These products use one thread. */
bool gemm_is_small(const gemm *g);

bool onednn_gemm_supported(const gemm *g);

/* out = alpha A B + beta out, if onednn_gemm_supported(). NO_MEMORY: `out` is unchanged. DEVICE_ERROR: it may
 * be partly written. */
duet_status onednn_gemm(const gemm *g, float alpha, const float *a, const float *b, float beta, float *out);

#endif
