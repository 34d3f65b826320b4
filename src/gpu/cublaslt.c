/* cublaslt.c - chooses the cuBLASLt algorithm of a product and calls it. */
#include "cublaslt.h"
#include "algo_key.h"
#include "clock.h"
#include "dtype.h"
#include "graph_order.h"
#include "trace.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ADVICE      8 /* algorithms requested from the heuristic */
#define RUNS        4 /* timed runs of each, at least */
#define RUNS_MOST   32
#define TURNS       3
#define LOAD_MOST   0.2  /* seconds to load the kernels of all algorithms of a shape */
#define TRIAL_MOST  0.03 /* seconds to time them */
#define TRIAL_EACH  2e-4 /* seconds for the runs of one that are timed together */
#define TRIAL_FLOPS 4e6  /* for less work any algorithm will do */

static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER; /* taken to add to a list, which is read without it, and for each trial */
static cublasLtHandle_t handles[DEVICES_MAX];

/* A product, its description and its algorithms. It is never changed after it is in its list, and
 * never freed. */
typedef struct choice {
    gemm_shape key;
    cublasLtMatmulDesc_t what;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulHeuristicResult_t advice[ADVICE];
    int count, best;
    struct choice *next;
} choice;
static choice *bucket[DEVICES_MAX][KEY_BUCKETS];

/* ---- description ---- */

static void discard(const vendor *v, choice *x)
{
    if (x->what) (void)v->cublasLtMatmulDescDestroy(x->what);
    if (x->a) (void)v->cublasLtMatrixLayoutDestroy(x->a);
    if (x->b) (void)v->cublasLtMatrixLayoutDestroy(x->b);
    if (x->c) (void)v->cublasLtMatrixLayoutDestroy(x->c);
    free(x);
}

static cudaDataType_t type_of(const gemm_shape *s) { return s->type == DUET_F64 ? CUDA_R_64F : CUDA_R_32F; }

/* Pedantic: f32 is never rounded for tensor cores. */
static cublasComputeType_t compute_of(const gemm_shape *s)
{
    if (s->type == DUET_F64) return CUBLAS_COMPUTE_64F;
    if (s->math == DUET_MATH_TF32) return CUBLAS_COMPUTE_32F_FAST_TF32;
    return s->math == DUET_MATH_BF16 ? CUBLAS_COMPUTE_32F_FAST_16BF : CUBLAS_COMPUTE_32F_PEDANTIC;
}

/* Makes a description. The address of the bias is part of it, so a product with a bias has a
 * description of its own. */
static duet_status describe(const vendor *v, const gemm_shape *s, const void *bias,
                            cublasLtMatmulDesc_t *what)
{
    const cublasOperation_t a = blas_op(s->transposed_a), b = blas_op(s->transposed_b);
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    TRY(BLAS(v, cublasLtMatmulDescCreate, what, compute_of(s), type_of(s)));
    TRY(BLAS(v, cublasLtMatmulDescSetAttribute, *what, CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof a));
    TRY(BLAS(v, cublasLtMatmulDescSetAttribute, *what, CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof b));
    if (!s->biased) return DUET_OK;
    TRY(BLAS(v, cublasLtMatmulDescSetAttribute, *what, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
             sizeof epilogue));
    return BLAS(v, cublasLtMatmulDescSetAttribute, *what, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
                sizeof bias);
}

static duet_status lay_out(const vendor *v, const gemm_shape *s, bool transposed, int rows, int columns,
                           int ld, int64_t apart, cublasLtMatrixLayout_t *l)
{
    const uint64_t r = (uint64_t)(transposed ? columns : rows), c = (uint64_t)(transposed ? rows : columns);
    TRY(BLAS(v, cublasLtMatrixLayoutCreate, l, type_of(s), r, c, ld));
    if (!s->batch) return DUET_OK;
    TRY(BLAS(v, cublasLtMatrixLayoutSetAttribute, *l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &s->batch,
             sizeof s->batch));
    return BLAS(v, cublasLtMatrixLayoutSetAttribute, *l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &apart,
                sizeof apart);
}

static duet_status describe_all(const vendor *v, const gemm_data *at, choice *x)
{
    const gemm_shape *s = &x->key;
    TRY(describe(v, s, at->bias, &x->what));
    TRY(lay_out(v, s, s->transposed_a, s->m, s->k, s->lda, s->apart_a, &x->a));
    TRY(lay_out(v, s, s->transposed_b, s->k, s->n, s->ldb, s->apart_b, &x->b));
    return lay_out(v, s, false, s->m, s->n, s->ldc, s->apart_c, &x->c);
}

/* ---- heuristic ---- */

static duet_status prefer(const vendor *v, const gemm_shape *s, size_t workspace_bytes,
                          cublasLtMatmulPreference_t p)
{
    static const cublasLtMatmulPreferenceAttributes_t of[] = { CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                                                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                                                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                                                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES };
    const uint32_t bytes = (uint32_t)s->alignment;
    const uint64_t most = workspace_bytes;
    for (int i = 0; i < 4; i++)
        TRY(BLAS(v, cublasLtMatmulPreferenceSetAttribute, p, of[i], &bytes, sizeof bytes));
    return BLAS(v, cublasLtMatmulPreferenceSetAttribute, p, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
                sizeof most);
}

static duet_status ask(const vendor *v, const queue *q, choice *x)
{
    cublasLtMatmulPreference_t p;
    TRY(BLAS(v, cublasLtMatmulPreferenceCreate, &p));
    duet_status s = prefer(v, &x->key, q->blas_bytes, p);
    if (s == DUET_OK)
        s = BLAS(v, cublasLtMatmulAlgoGetHeuristic, handles[q->device], x->what, x->a, x->b, x->c, x->c, p,
                 ADVICE, x->advice, &x->count);
    (void)v->cublasLtMatmulPreferenceDestroy(p);
    if (s == DUET_OK && !x->count)
        return fail(DUET_DEVICE_ERROR, "cuBLASLt has no algorithm for this product");
    return s;
}

/* ---- call ---- */

static duet_status multiply(const vendor *v, const choice *x, int which, cublasLtMatmulDesc_t what,
                            const gemm_data *at, queue *q)
{
    const float alpha = (float)at->alpha, beta = (float)at->beta;
    const bool f64 = x->key.type == DUET_F64;
    size_t bytes = x->advice[which].workspaceSize;
    void *lent;
    TRY(gpu_order_part(q, q->blas_workspace, q->blas_bytes, &bytes, &lent));
    return BLAS(v, cublasLtMatmul, handles[q->device], what, f64 ? (const void *)&at->alpha : &alpha, at->a,
                x->a, at->b, x->b, f64 ? (const void *)&at->beta : &beta, at->c, x->c, at->c, x->c,
                &x->advice[which].algo, lent, bytes, gpu_queue_cuda_stream(q));
}

/* ---- trials ---- */

static bool wait_for(queue *q)
{
    COUNT(synchronisations);
    return CUDA(cudaStreamSynchronize, q->stream) == DUET_OK;
}

/* Seconds for a run; infinite if it fails. */
static double time_one(const vendor *v, const choice *x, int which, int runs, const gemm_data *at, queue *q)
{
    if (!wait_for(q)) return INFINITY;
    bool ran = true;
    const double start = clock_now();
    for (int i = 0; i < runs && ran; i++) ran = multiply(v, x, which, x->what, at, q) == DUET_OK;
    ran &= wait_for(q);
    if (!ran) return INFINITY;
    return (clock_now() - start) / runs;
}

/* The first run of an algorithm loads its kernels, which takes milliseconds. Returns how many algorithms
 * have run, and the time of the second run of the first one. */
static int load_all(const vendor *v, const choice *x, const gemm_data *at, queue *q, double *seconds)
{
    int loaded = 0;
    const double start = clock_now();
    while (loaded < x->count && clock_now() - start < LOAD_MOST) (void)time_one(v, x, loaded++, 1, at, q);
    *seconds = time_one(v, x, 0, 1, at, q);
    return loaded;
}

static void try_all(const vendor *v, choice *x, const gemm_data *at, queue *q)
{
    double best = INFINITY, one;
    const int loaded = load_all(v, x, at, q, &one);
    const int runs = (int)fmax(RUNS, fmin(RUNS_MOST, TRIAL_EACH / one));
    const double start = clock_now();
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < loaded && clock_now() - start < TRIAL_MOST; i++) {
            const double t = time_one(v, x, i, runs, at, q);
            if (t < best) {
                best = t;
                x->best = i;
            }
        }
}

/* Uses scratch memory in place of c. Without memory, or while a graph is being captured, the first
 * proposal is used. */
static void try_on_scratch(const vendor *v, choice *x, const gemm_data *at, queue *q)
{
    const gemm_shape *s = &x->key;
    gemm_data trial = *at;
    const size_t batch = s->batch ? (size_t)s->batch : 1;
    if (reproducible() || x->count == 1 || gpu_queue_cuda_stream(q) != q->stream) return;
    if (2.0 * s->m * s->n * s->k * (double)batch < TRIAL_FLOPS) return;
    error_text before;
    error_keep(&before); /* an algorithm that fails is not chosen; that is not an error */
    const size_t last = (size_t)s->ldc * (size_t)s->n,
                 all = s->batch ? (batch - 1) * (size_t)s->apart_c + last : last;
    if (pool_take(q->device, all * dtypes[s->type].bytes, q->index, &trial.c) != DUET_OK)
        return error_put_back(&before);
    try_all(v, x, &trial, q);
    error_put_back(&before);
    pool_give(q->device, trial.c, 1ull << q->index);
    TRACE("product of %d x %d by %d: algorithm %d of %d", s->m, s->k, s->n, x->best + 1, x->count);
}

/* ---- look-up ---- */

static duet_status choose(const vendor *v, const gemm_shape *s, const gemm_data *at, queue *q, choice **made)
{
    choice *x = *made = calloc(1, sizeof *x);
    if (!x) return fail(DUET_NO_MEMORY, "no host memory to store the algorithm of a product");
    x->key = *s;
    duet_status r = describe_all(v, at, x);
    if (r == DUET_OK) r = ask(v, q, x);
    if (r != DUET_OK) {
        discard(v, x);
        return r;
    }
    if (!s->anywhere) try_on_scratch(v, x, at, q);
    return DUET_OK;
}

static const choice *look(choice *const *place, const gemm_shape *s)
{
    const choice *x = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    while (x && memcmp(&x->key, s, sizeof *s)) x = x->next;
    return x;
}

static duet_status look_or_choose(const vendor *v, choice **place, const gemm_shape *s, const gemm_data *at,
                                  queue *q, const choice **found)
{
    choice *made;
    if ((*found = look(place, s))) return DUET_OK;
    TRY(choose(v, s, at, q, &made));
    made->next = *place;
    __atomic_store_n(place, made, __ATOMIC_RELEASE);
    *found = made;
    return DUET_OK;
}

static duet_status find(const vendor *v, const gemm_shape *s, const gemm_data *at, queue *q,
                        const choice **found)
{
    choice **place = &bucket[q->device][key_bucket(s, sizeof *s)];
    if (likely((*found = look(place, s)) != NULL)) return DUET_OK;
    pthread_mutex_lock(&lock);
    const duet_status r = look_or_choose(v, place, s, at, q, found);
    pthread_mutex_unlock(&lock);
    return r;
}

/* ---- interface ---- */

static duet_status make_handle(const vendor *v, int device)
{
    cublasLtHandle_t made;
    if (handles[device]) return DUET_OK;
    TRY(BLAS(v, cublasLtCreate, &made));
    __atomic_store_n(&handles[device], made, __ATOMIC_RELEASE);
    return DUET_OK;
}

static duet_status open_handle(const vendor *v, int device)
{
    if (likely(__atomic_load_n(&handles[device], __ATOMIC_ACQUIRE) != NULL)) return DUET_OK;
    pthread_mutex_lock(&lock);
    const duet_status s = make_handle(v, device);
    pthread_mutex_unlock(&lock);
    return s;
}

static duet_status take_without_evicting(int device, size_t bytes, int index, void **p)
{
    return pool_take_as(MEMORY_WORKSPACE, device, bytes, index, p);
}

/* Buffers of matrices are freed for the workspaces of few threads only, because workspaces are kept. */
static gpu_taking *way_to_take(const queue *q, size_t bytes, size_t limit)
{
    const size_t all = pool_used_as(MEMORY_WORKSPACE, q->device) + bytes;
    return limit && all > limit / 8 ? take_without_evicting : memory_take_workspace;
}

/* Takes the workspace size that NVIDIA recommends if there is memory; 64 KiB is enough for every
 * routine. */
static duet_status lend_workspace(queue *q)
{
    size_t bytes = gpu_device_major(q->device) >= 9 ? 32 << 20 : 4 << 20, least = 64 << 10,
           limit = pool_memory(q->device).limit;
    duet_status s;
    while (limit && bytes > least && bytes > limit / 16) bytes /= 2;
    gpu_taking *take = way_to_take(q, bytes, limit);
    while ((s = gpu_take_quietly(take, bytes, q, &q->blas_workspace)) == DUET_NO_MEMORY && bytes > least)
        bytes = bytes / 8 > least ? bytes / 8 : least;
    if (s == DUET_NO_MEMORY) s = memory_take_workspace(q->device, bytes, q->index, &q->blas_workspace);
    if (s == DUET_OK) q->blas_bytes = bytes;
    else q->blas_workspace = NULL;
    return s;
}

duet_status gpu_gemm_open(queue *q)
{
    TRY(open_handle(vendor_open(LIBRARY_cublasLt), q->device));
    if (q->blas_workspace) return DUET_OK;
    return lend_workspace(q);
}

void gpu_gemm_close(int device)
{
    pthread_mutex_lock(&lock);
    if (handles[device]) (void)vendor_open(LIBRARY_cublasLt)->cublasLtDestroy(handles[device]);
    __atomic_store_n(&handles[device], NULL, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
}

static duet_status multiply_biased(const vendor *v, const choice *x, int which, const gemm_data *at, queue *q)
{
    cublasLtMatmulDesc_t what = NULL;
    duet_status s = describe(v, &x->key, at->bias, &what);
    if (s == DUET_OK) s = multiply(v, x, which, what, at, q);
    if (what) (void)v->cublasLtMatmulDescDestroy(what);
    return s;
}

/* The best algorithm that fits the workspace of this queue; that of the queue for which they were
 * chosen may be larger. -1: none fits. */
static int fitting(const choice *x, const queue *q)
{
    int which = x->best;
    if (x->advice[which].workspaceSize <= q->blas_bytes) return which;
    for (which = x->count; which-- > 0;)
        if (x->advice[which].workspaceSize <= q->blas_bytes) break;
    return which;
}

/* If none fits, the queue makes its own choice. */
static duet_status find_by_shape(const vendor *v, const gemm_shape *s, const gemm_data *at, queue *q,
                                 const choice **x, int *which)
{
    gemm_shape own = *s;
    TRY(find(v, s, at, q, x));
    if ((*which = fitting(*x, q)) >= 0) return DUET_OK;
    own.workspace_kib = (int32_t)(q->blas_bytes >> 10);
    TRY(find(v, &own, at, q, x));
    *which = fitting(*x, q);
    if (*which < 0)
        return fail(DUET_DEVICE_ERROR, "cuBLASLt has no algorithm for %zu bytes of workspace", q->blas_bytes);
    return DUET_OK;
}

static gemm_shape anywhere(const gemm_shape *s)
{
    gemm_shape any = *s;
    any.anywhere = 1;
    any.alignment = (int32_t)dtypes[s->type].bytes;
    return any;
}

/* The algorithm that gpu_gemm_prepare has chosen, if it has. */
static bool find_prepared(const gemm_shape *s, const queue *q, const choice **x, int *which)
{
    gemm_shape any = anywhere(s);
    for (int own = 0; own < 2; own++) {
        any.workspace_kib = own ? (int32_t)(q->blas_bytes >> 10) : 0;
        *x = look(&bucket[q->device][key_bucket(&any, sizeof any)], &any);
        if (*x && (*which = fitting(*x, q)) >= 0) return true;
    }
    return false;
}

static duet_status find_fitting(const vendor *v, const gemm_shape *s, const gemm_data *at, queue *q,
                                const choice **x, int *which)
{
    error_text before;
    error_keep(&before);
    const duet_status r = find_by_shape(v, s, at, q, x, which);
    if (likely(r == DUET_OK) || !find_prepared(s, q, x, which)) return r;
    error_put_back(&before);
    return DUET_OK;
}

duet_status gpu_gemm_prepare(const gemm_shape *s, queue *q)
{
    const gemm_shape any = anywhere(s);
    const choice *x;
    int which;
    TRY(gpu_gemm_open(q));
    if (likely(find_prepared(s, q, &x, &which))) return DUET_OK;
    return find_by_shape(vendor_open(LIBRARY_cublasLt), &any, &(gemm_data){ 0 }, q, &x, &which);
}

duet_status gpu_gemm(const gemm_shape *s, const gemm_data *at, queue *q)
{
    const vendor *v = vendor_open(LIBRARY_cublasLt);
    const choice *x;
    int which;
    TRY(gpu_gemm_open(q));
    TRY(find_fitting(v, s, at, q, &x, &which));
    gpu_queue_wrote_anything(q);
    const duet_status r =
        s->biased ? multiply_biased(v, x, which, at, q) : multiply(v, x, which, x->what, at, q);
    if (r == DUET_OK) COUNT(launches);
    return r;
}
