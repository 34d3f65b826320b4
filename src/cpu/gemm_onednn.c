/* gemm_onednn.c - matrix products in f32 by oneDNN (gemm.h), with one or all threads, and the rule that
 * leaves small products to BLAS. */
#include "blas_headers.h"
#include "gemm.h"
#include "onednn.h"
#include "threads.h"
#include <signal.h>

/* Multiplications of the products that BLAS computes. */
#define ANY_BLAS_MAX      8191   /* a call of oneDNN has an overhead of 0.4 us */
#define SMALL_KERNELS_MAX 1e6    /* OpenBLAS has no small kernels for more */
#define B_TRANSPOSED_MAX  64000  /* it has none for most of these, and copies B */
#define ONE_ROW_MAX       400000 /* more need several threads, whose number would change the bits */

#define B_TRANSPOSED_RESULTS_MAX 1200 /* up to this many results OpenBLAS has small kernels */

#define VECTOR_COLUMNS 16 /* a part of a vector takes as long as a full one */

static double seconds_of(const gemm *g)
{
    const double m = g->m, n = g->n, k = g->k,
                 computed = (g->n + VECTOR_COLUMNS - 1) / VECTOR_COLUMNS * VECTOR_COLUMNS;
    return 2 * m * computed * k * SECONDS_PER_ONEDNN_FLOP + 4 * (m * k + k * n + m * n) * SECONDS_PER_CACHED;
}

/* The first product makes the kernels of all. */
static bool can_start(void)
{
    static bool started;
    if (likely(__atomic_load_n(&started, __ATOMIC_RELAXED))) return true;
    const bool has_room = cpu_has_room(ONEDNN_ROOM);
    __atomic_store_n(&started, has_room, __ATOMIC_RELAXED);
    return has_room;
}

static bool has_small_kernels, has_serial_rows;

bool gemm_is_small(const gemm *g)
{
    const double multiplications = (double)g->m * g->n * g->k;
    if (multiplications <= ANY_BLAS_MAX) return true;
    if (multiplications > SMALL_KERNELS_MAX || g->n == 1 || !has_small_kernels) return false;
    if (g->m == 1) return multiplications <= ONE_ROW_MAX && has_serial_rows;
    if (g->b_transposed && !g->a_transposed)
        return multiplications <= B_TRANSPOSED_MAX || (int64_t)g->m * g->n <= B_TRANSPOSED_RESULTS_MAX;
    return true;
}

bool onednn_gemm_supported(const gemm *g) { return g->n > 1 && can_start(); }

/* ---- signals ----
 *
 * With AVX-512, products of oneDNN before 3.11.2 use the stack pointer for other purposes. A signal handler
 * that runs meanwhile overwrites memory of the heap (oneDNN's issue 4845). So the calling thread blocks
 * signals during the product, and OpenMP's other threads block them for good. Sums of at most 84 terms were
 * never affected. */

#define LENGTH_SAFE 64

static bool use_stack_pointer;

static __attribute__((constructor)) void know_libraries(void)
{
    has_small_kernels = blas_has_small_kernels();
    has_serial_rows = !blas_has_own_threads();
#if defined __x86_64__
    const dnnl_version_t *v = dnnl_version();
    use_stack_pointer =
        v->major * 10000 + v->minor * 100 + v->patch < 31102 && __builtin_cpu_supports("avx512f");
    cpu_workers_block_signals = use_stack_pointer;
#endif
}

/* Returns whether it blocked signals; then *before is the mask to restore. */
static bool block_signals(const gemm *g, sigset_t *before)
{
    sigset_t all;
    if (!use_stack_pointer || g->k <= LENGTH_SAFE) return false;
    threads_signals(&all);
    return !pthread_sigmask(SIG_BLOCK, &all, before);
}

static dnnl_status_t multiply(const gemm *g, float alpha, const float *a, const float *b, float beta,
                              float *out, bool alone)
{
    sigset_t before;
    const int threads = threads_alone(alone);
    const bool blocked = block_signals(g, &before);
    const dnnl_status_t r = dnnl_sgemm(g->a_transposed ? 'T' : 'N', g->b_transposed ? 'T' : 'N', g->m, g->n,
                                       g->k, alpha, a, g->a_ld, b, g->b_ld, beta, out, g->out_ld);
    if (blocked) pthread_sigmask(SIG_SETMASK, &before, NULL);
    threads_again(threads);
    return r;
}

/* One thread allocates before it writes. Of several, some may have written when another gets no memory. */
duet_status onednn_gemm(const gemm *g, float alpha, const float *a, const float *b, float beta, float *out)
{
    const bool alone = threads_for(seconds_of(g)) == 1;
    dnnl_status_t r = multiply(g, alpha, a, b, beta, out, alone);
    if (r == dnnl_out_of_memory && !alone && beta == 0) r = multiply(g, alpha, a, b, beta, out, true);
    if (r == dnnl_success) return DUET_OK;
    return fail(r == dnnl_out_of_memory && alone ? DUET_NO_MEMORY : DUET_DEVICE_ERROR,
                "oneDNN: a product ended with status %d%s", (int)r,
                r == dnnl_out_of_memory ? " (out of memory)" : "");
}
