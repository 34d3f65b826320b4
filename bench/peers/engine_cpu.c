/* engine_cpu.c - the peers on the CPU: a compiled loop, and matrix products by direct calls of the
 * library that Duet uses (oneDNN or OpenBLAS), with the same number of threads. Only this file and
 * roofline.c are compiled for the processor of this machine. */
#include "bench.h"
#ifdef WITH_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#else
#include <cblas.h>
#endif

static bool loop_axpy(int64_t n, float s, const float *restrict x, float *restrict y)
{
    if (n < 65536) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) y[i] = s * x[i] + y[i];
        return true;
    }
#pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < n; i++) y[i] = s * x[i] + y[i];
    return true;
}

#ifdef WITH_ONEDNN
static const char gemm_name[] = "bare oneDNN";
static bool bare_gemm(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c)
{
    return dnnl_sgemm('N', 'N', m, n, k, 1, a, k, b, n, 0, c, n) == dnnl_success;
}
#else
static const char gemm_name[] = "bare OpenBLAS";
static bool bare_gemm(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)m, (int)n, (int)k, 1, a, (int)k, b, (int)n, 0,
                c, (int)n);
    return true;
}
#endif

static bool nothing(void) { return true; }

const engine *engine_cpu(void)
{
    static const engine e = { gemm_name, "compiled loop", 1, bare_gemm, loop_axpy, nothing };
    return &e;
}
