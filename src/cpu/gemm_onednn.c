/* gemm_onednn.c - see gemm.h. */
#include "gemm.h"
#include "onednn.h"
#include "threads.h"

#define LEAST 8192 /* multiplications: oneDNN takes 0.2 us before the first */

#define SECONDS_PER_CACHED_BYTE 1e-11
#define VECTOR                  16 /* columns: a part of one takes as long */

static double seconds_of(const gemm *g)
{
    const double m = g->m, n = g->n, k = g->k, computed = (g->n + VECTOR - 1) / VECTOR * VECTOR;
    return 2 * m * computed * k * SECONDS_PER_ONEDNN_FLOP +
           4 * (m * k + k * n + m * n) * SECONDS_PER_CACHED_BYTE;
}

bool onednn_takes(const gemm *g) { return g->n > 1 && (double)g->m * g->n * g->k >= LEAST; }

duet_status onednn_gemm(const gemm *g, float alpha, const float *a, const float *b, float beta, float *out)
{
    const int threads = threads_alone(threads_for(seconds_of(g)) == 1);
    const dnnl_status_t r = dnnl_sgemm(g->a_turned ? 'T' : 'N', g->b_turned ? 'T' : 'N', g->m, g->n, g->k,
                                       alpha, a, g->a_ld, b, g->b_ld, beta, out, g->out_ld);
    threads_again(threads);
    if (r == dnnl_success) return DUET_OK;
    return fail(DUET_DEVICE_ERROR, "oneDNN: a product ended with status %d", (int)r);
}
