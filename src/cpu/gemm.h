/* gemm.h - matrix products by oneDNN, which is faster than OpenBLAS except for very small matrices. */
#ifndef GEMM_H
#define GEMM_H

#include "status.h"
#include <stdbool.h>

typedef struct gemm {
    bool a_transposed, b_transposed;
    int m, n, k, a_ld, b_ld, out_ld;
} gemm;

bool onednn_gemm_supported(const gemm *g);

/* out = alpha A B + beta out, if onednn_gemm_supported(). NO_MEMORY: `out` is unchanged. DEVICE_ERROR: it may
 * be partly written. */
duet_status onednn_gemm(const gemm *g, float alpha, const float *a, const float *b, float beta, float *out);

#endif
