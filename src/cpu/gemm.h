/* gemm.h - products by oneDNN, where the build found it: ahead of BLAS but for the smallest. */
#ifndef GEMM_H
#define GEMM_H

#include "status.h"
#include <stdbool.h>

typedef struct gemm {
    bool a_turned, b_turned;
    int m, n, k, a_ld, b_ld, out_ld;
} gemm;

bool onednn_takes(const gemm *g);

/* out = alpha A B + beta out, of what it takes. */
duet_status onednn_gemm(const gemm *g, float alpha, const float *a, const float *b, float beta, float *out);

#endif
