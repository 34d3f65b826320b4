/* cusolver.c - implements cusolver.h. Each queue has its own handles, made once. */
#include "cusolver.h"
#include "cublaslt.h"
#include "scratch.h"
#include <string.h>

/* ---- error status ---- */

static __attribute__((cold)) duet_status solver_failed(const char *call, cusolverStatus_t e)
{
    if (gpu_device_was_lost(call)) return DUET_DEVICE_ERROR;
    duet_status s = DUET_DEVICE_ERROR;
    if (e == CUSOLVER_STATUS_ALLOC_FAILED) s = DUET_NO_MEMORY;
    else if (e == CUSOLVER_STATUS_INVALID_VALUE && strstr(call, "_bufferSize")) s = DUET_UNSUPPORTED;
    return fail(s, "%s: cuSOLVER's status %d", call, (int)e);
}

static duet_status status_of(const char *call, cusolverStatus_t e)
{
    if (e != CUSOLVER_STATUS_SUCCESS) return solver_failed(call, e);
    return DUET_OK;
}

/* Locks, because other threads of the queue may use its handles between two calls. */
#define CALL(b, f, ...)                                                                                      \
    ({                                                                                                       \
        pthread_mutex_lock(&(b)->q->lock);                                                                   \
        const duet_status s_ = status_of(#f, (b)->v->f((b)->q->solver, __VA_ARGS__));                        \
        pthread_mutex_unlock(&(b)->q->lock);                                                                 \
        s_;                                                                                                  \
    })
/* The same for functions that have another name for complex elements. */
#define CALL_TYPED(b, f, of_complex, ...)                                                                    \
    (solver_type(b) == DUET_F32   ? CALL(b, cusolverDnS##f, __VA_ARGS__)                                     \
     : solver_type(b) == DUET_F64 ? CALL(b, cusolverDnD##f, __VA_ARGS__)                                     \
     : solver_type(b) == DUET_C64 ? CALL(b, cusolverDnC##of_complex, __VA_ARGS__)                            \
                                  : CALL(b, cusolverDnZ##of_complex, __VA_ARGS__))

/* ---- handles ---- */

void gpu_solver_close(const vendor *v, queue *q)
{
    if (q->blas) (void)v->cublasDestroy(q->blas);
    if (q->solver_params) (void)v->cusolverDnDestroyParams(q->solver_params);
    if (q->solver) (void)v->cusolverDnDestroy(q->solver);
    q->blas = NULL;
    q->solver_params = NULL;
    q->solver = NULL;
}

static duet_status make_handles(const vendor *v, queue *q)
{
    TRY(gpu_gemm_open(q)); /* cuBLAS uses the workspace of cuBLASLt */
    TRY(status_of("cusolverDnCreate", v->cusolverDnCreate(&q->solver)));
    TRY(status_of("cusolverDnSetStream", v->cusolverDnSetStream(q->solver, q->stream)));
    TRY(status_of("cusolverDnCreateParams", v->cusolverDnCreateParams(&q->solver_params)));
    TRY(BLAS(v, cublasCreate, &q->blas));
    TRY(BLAS(v, cublasSetStream, q->blas, q->stream));
    return BLAS(v, cublasSetWorkspace, q->blas, q->blas_workspace, q->blas_bytes);
}

static duet_status open_handles(const vendor *v, queue *q)
{
    pthread_mutex_lock(&q->lock);
    duet_status r = DUET_OK;
    if (!q->blas) r = make_handles(v, q);
    if (r != DUET_OK) gpu_solver_close(v, q);
    pthread_mutex_unlock(&q->lock);
    return r;
}

const char *gpu_solver_missing(void)
{
    static const enum library needed[] = { LIBRARY_cusolver, LIBRARY_cublas, LIBRARY_cublasLt };
    for (int k = 0; k < 3; k++) {
        const char *missing = vendor_open(needed[k])->missing[needed[k]];
        if (missing) return missing;
    }
    return NULL;
}

/* ---- workspace of a step ---- */

static int device_of_memory(const solver_workspace *b, enum workspace_memory where)
{
    return where == ON_HOST ? HOST : b->q->device;
}

duet_status gpu_workspace_take(solver_workspace *b, enum workspace_memory where, size_t bytes, void *p)
{
    void **to = p;
    TRY(scratch_acquire_workspace(device_of_memory(b, where), bytes ? bytes : 1, b->q->index, to));
    b->block[where][b->blocks[where]++] = *to;
    return DUET_OK;
}

duet_status gpu_workspace_forget(solver_workspace *b)
{
    return CUDA(cudaMemsetAsync, b->says, 0, sizeof *b->says, b->q->stream);
}

duet_status gpu_workspace_open(solver_workspace *b, const step *s, const frame *f, queue *q)
{
    *b = (solver_workspace){ .s = s, .f = f, .q = q, .v = vendor_open(LIBRARY_cusolver) };
    TRY(open_handles(b->v, q));
    TRY(gpu_workspace_take(b, ON_CARD, sizeof *b->says, &b->says));
    return gpu_workspace_forget(b);
}

/* Host memory may be in use until the GPU has finished. */
void gpu_workspace_keep(solver_workspace *b, const int blocks[2])
{
    gpu_queue_wrote_anything(b->q);
    if (b->blocks[ON_HOST] > blocks[ON_HOST]) {
        (void)cudaStreamSynchronize(b->q->stream);
        COUNT(synchronisations);
    }
    for (int where = ON_HOST; where <= ON_CARD; where++)
        while (b->blocks[where] > blocks[where])
            scratch_release(device_of_memory(b, (enum workspace_memory)where),
                            b->block[where][--b->blocks[where]], b->q->index);
}

void gpu_workspace_close(solver_workspace *b) { gpu_workspace_keep(b, (const int[2]){ 0, 0 }); }

duet_status gpu_workspace_ask(solver_workspace *b, answers *a)
{
    TRY(CUDA(cudaMemcpyAsync, a, b->says, sizeof *a, cudaMemcpyDeviceToHost, b->q->stream));
    TRY(gpu_stream_wait(b->q->device, b->q->stream));
    COUNT(synchronisations);
    if (a->pivot >= 0 && a->other == 0) return DUET_OK;
    return fail(DUET_DEVICE_ERROR, "cuSOLVER reports that argument %d is invalid", -a->pivot);
}

static cudaDataType_t type_of(const solver_workspace *b) { return vendor_type(solver_type(b)); }

typedef struct workspaces {
    void *own, *host;
    size_t bytes, host_bytes;
} workspaces;

static duet_status take_room(solver_workspace *b, workspaces *r)
{
    gpu_queue_wrote_anything(b->q);
    COUNT(launches);
    if (r->bytes) TRY(gpu_workspace_take(b, ON_CARD, r->bytes, &r->own));
    if (!r->host_bytes) return DUET_OK;
    return gpu_workspace_take(b, ON_HOST, r->host_bytes, &r->host);
}

/* ---- calls ---- */

#define PARAMS(b) (b)->q->solver_params

duet_status solver_lu(solver_workspace *b, const columns *a, int64_t *pivot)
{
    workspaces r = { 0 };
    const cudaDataType_t t = type_of(b);
    if (!a->rows || !a->cols) return DUET_OK;
    TRY(CALL(b, cusolverDnXgetrf_bufferSize, PARAMS(b), a->rows, a->cols, t, a->p, a->ld, t, &r.bytes,
             &r.host_bytes));
    TRY(take_room(b, &r));
    return CALL(b, cusolverDnXgetrf, PARAMS(b), a->rows, a->cols, t, a->p, a->ld, pivot, t, r.own, r.bytes,
                r.host, r.host_bytes, &b->says->pivot);
}

duet_status solver_lu_solve(solver_workspace *b, const columns *a, const int64_t *pivot, bool transposed,
                            const columns *x)
{
    const cudaDataType_t t = type_of(b);
    if (!x->rows || !x->cols) return DUET_OK;
    COUNT(launches);
    return CALL(b, cusolverDnXgetrs, PARAMS(b), blas_op(transposed), a->rows, x->cols, t, a->p, a->ld, pivot,
                t, x->p, x->ld, &b->says->other);
}

duet_status solver_cholesky(solver_workspace *b, const columns *a)
{
    workspaces r = { 0 };
    const cudaDataType_t t = type_of(b);
    if (!a->rows) return DUET_OK;
    TRY(CALL(b, cusolverDnXpotrf_bufferSize, PARAMS(b), CUBLAS_FILL_MODE_LOWER, a->rows, t, a->p, a->ld, t,
             &r.bytes, &r.host_bytes));
    TRY(take_room(b, &r));
    return CALL(b, cusolverDnXpotrf, PARAMS(b), CUBLAS_FILL_MODE_LOWER, a->rows, t, a->p, a->ld, t, r.own,
                r.bytes, r.host, r.host_bytes, &b->says->pivot);
}

duet_status solver_qr(solver_workspace *b, const columns *a, void *tau)
{
    workspaces r = { 0 };
    const cudaDataType_t t = type_of(b);
    if (!a->rows || !a->cols) return DUET_OK;
    TRY(CALL(b, cusolverDnXgeqrf_bufferSize, PARAMS(b), a->rows, a->cols, t, a->p, a->ld, t, tau, t, &r.bytes,
             &r.host_bytes));
    TRY(take_room(b, &r));
    return CALL(b, cusolverDnXgeqrf, PARAMS(b), a->rows, a->cols, t, a->p, a->ld, t, tau, t, r.own, r.bytes,
                r.host, r.host_bytes, &b->says->other);
}

duet_status solver_q(solver_workspace *b, const columns *a, int64_t reflectors, const void *tau)
{
    workspaces r = { 0 };
    int length = 0;
    const int m = (int)a->rows, n = (int)a->cols, k = (int)reflectors, ld = (int)a->ld;
    if (!m || !n) return DUET_OK;
    TRY(CALL_TYPED(b, orgqr_bufferSize, ungqr_bufferSize, m, n, k, a->p, ld, tau, &length));
    r.bytes = (size_t)length * element_bytes(b);
    TRY(take_room(b, &r));
    return CALL_TYPED(b, orgqr, ungqr, m, n, k, a->p, ld, tau, r.own, length, &b->says->other);
}

duet_status solver_times_q(solver_workspace *b, const columns *a, const void *tau, bool back,
                           const columns *x)
{
    workspaces r = { 0 };
    int length = 0;
    const int m = (int)x->rows, n = (int)x->cols, k = (int)a->cols, ld = (int)a->ld, ldx = (int)x->ld;
    const cublasOperation_t transpose = dtype_is_complex(solver_type(b)) ? CUBLAS_OP_C : CUBLAS_OP_T,
                            how = back ? transpose : CUBLAS_OP_N;
    if (!m || !n || !k) return DUET_OK;
    TRY(CALL_TYPED(b, ormqr_bufferSize, unmqr_bufferSize, CUBLAS_SIDE_LEFT, how, m, n, k, a->p, ld, tau, x->p,
                   ldx, &length));
    r.bytes = (size_t)length * element_bytes(b);
    TRY(take_room(b, &r));
    return CALL_TYPED(b, ormqr, unmqr, CUBLAS_SIDE_LEFT, how, m, n, k, a->p, ld, tau, x->p, ldx, r.own,
                      length, &b->says->other);
}

static duet_status trsm(solver_workspace *b, cublasFillMode_t half, cublasOperation_t how,
                        cublasDiagType_t diagonal, const columns *a, const columns *x)
{
    static const double one[2] = { 1 };
    static const float one_f32[2] = { 1 };
    const int n = (int)a->cols, sides = (int)x->cols, ld = (int)a->ld, ldx = (int)x->ld;
#define TRSM(letter, one)                                                                                    \
    BLAS(b->v, cublas##letter##trsm, b->q->blas, CUBLAS_SIDE_LEFT, half, how, diagonal, n, sides,            \
         (const void *)(one), a->p, ld, x->p, ldx)
    switch (solver_type(b)) {
    case DUET_F32: return TRSM(S, one_f32);
    case DUET_F64: return TRSM(D, one);
    case DUET_C64: return TRSM(C, one_f32);
    default: return TRSM(Z, one);
    }
#undef TRSM
}

duet_status solver_triangular(solver_workspace *b, const columns *a, bool lower, bool unit, bool transposed,
                              const columns *x)
{
    const cublasFillMode_t half = lower ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
    const cublasOperation_t how = blas_op(transposed);
    const cublasDiagType_t diagonal = unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
    if (!a->cols || !x->cols) return DUET_OK;
    pthread_mutex_lock(&b->q->lock);
    const duet_status r = trsm(b, half, how, diagonal, a, x);
    pthread_mutex_unlock(&b->q->lock);
    COUNT(launches);
    return r;
}

duet_status solver_eigen(solver_workspace *b, const columns *a, bool vectors, const columns *w)
{
    workspaces r = { 0 };
    const cudaDataType_t t = vendor_type(a->type), real = vendor_type(w->type);
    const cusolverEigMode_t mode = vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
    const cublasFillMode_t half = CUBLAS_FILL_MODE_UPPER;
    if (!a->rows) return DUET_OK;
    TRY(CALL(b, cusolverDnXsyevd_bufferSize, PARAMS(b), mode, half, a->rows, t, a->p, a->ld, real, w->p, t,
             &r.bytes, &r.host_bytes));
    TRY(take_room(b, &r));
    return CALL(b, cusolverDnXsyevd, PARAMS(b), mode, half, a->rows, t, a->p, a->ld, real, w->p, t, r.own,
                r.bytes, r.host, r.host_bytes, &b->says->pivot);
}

#ifdef HAS_XGEEV
bool solver_has_general_eigen(const vendor *v) { return v->cusolverDnXgeev && v->cusolverDnXgeev_bufferSize; }

duet_status solver_general_eigen(solver_workspace *b, const columns *a, const columns *w, const columns *v)
{
    workspaces r = { 0 };
    const cudaDataType_t t = type_of(b), values = vendor_type(w->type);
    const cusolverEigMode_t mode = v ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR,
                            none = CUSOLVER_EIG_MODE_NOVECTOR;
    void *vectors = v ? v->p : NULL;
    if (!a->rows) return DUET_OK;
    TRY(CALL(b, cusolverDnXgeev_bufferSize, PARAMS(b), none, mode, a->rows, t, a->p, a->ld, values, w->p, t,
             NULL, a->ld, t, vectors, a->ld, t, &r.bytes, &r.host_bytes));
    TRY(take_room(b, &r));
    return CALL(b, cusolverDnXgeev, PARAMS(b), none, mode, a->rows, t, a->p, a->ld, values, w->p, t, NULL,
                a->ld, t, vectors, a->ld, t, r.own, r.bytes, r.host, r.host_bytes, &b->says->pivot);
}
#else
bool solver_has_general_eigen(const vendor *v) { return false; }

duet_status solver_general_eigen(solver_workspace *b, const columns *a, const columns *w, const columns *v)
{
    return fail(DUET_UNSUPPORTED, "the headers of cuSOLVER were older than 12");
}
#endif

duet_status solver_svd(solver_workspace *b, const columns *a, const columns *w, enum svd_vectors vectors,
                       const columns *u, const columns *vt)
{
    static const columns none = { NULL, 0, 0, 1 };
    workspaces r = { 0 };
    const cudaDataType_t t = type_of(b), real = vendor_type(w->type);
    static const signed char jobs[] = { [SVD_VALUES] = 'N', [SVD_SOME] = 'S', [SVD_ALL] = 'A' };
    const signed char how = jobs[vectors];
    if (!vectors) u = vt = &none;
    if (!a->rows || !a->cols) return DUET_OK;
    const int64_t ldu = u->p ? u->ld : a->rows, ldvt = vt->p ? vt->ld : a->cols;
    TRY(CALL(b, cusolverDnXgesvd_bufferSize, PARAMS(b), how, how, a->rows, a->cols, t, a->p, a->ld, real,
             w->p, t, u->p, ldu, t, vt->p, ldvt, t, &r.bytes, &r.host_bytes));
    TRY(take_room(b, &r));
    return CALL(b, cusolverDnXgesvd, PARAMS(b), how, how, a->rows, a->cols, t, a->p, a->ld, real, w->p, t,
                u->p, ldu, t, vt->p, ldvt, t, r.own, r.bytes, r.host, r.host_bytes, &b->says->pivot);
}

/* This function of cuSOLVER waits for the GPU, to test when the solution is accurate enough. */
duet_status solver_refined(solver_workspace *b, bool half, const columns *a, const columns *y,
                           const columns *x, int *turns)
{
    workspaces r = { 0 };
    int *pivot;
    const int n = (int)a->rows, sides = (int)y->cols, ld = (int)a->ld, ldy = (int)y->ld, ldx = (int)x->ld;
    if (!n || !sides) return DUET_OK;
    TRY(gpu_workspace_take(b, ON_CARD, (size_t)n * sizeof *pivot, &pivot));
#define SIZE_OF(letters)                                                                                     \
    CALL(b, cusolverDn##letters##gesv_bufferSize, n, sides, a->p, ld, pivot, y->p, ldy, x->p, ldx, NULL,     \
         &r.bytes)
#define SOLVE(letters)                                                                                       \
    CALL(b, cusolverDn##letters##gesv, n, sides, a->p, ld, pivot, y->p, ldy, x->p, ldx, r.own, r.bytes,      \
         turns, &b->says->pivot)
    const bool is_complex = dtype_is_complex(solver_type(b));
    TRY(is_complex ? (half ? SIZE_OF(ZK) : SIZE_OF(ZC)) : half ? SIZE_OF(DH) : SIZE_OF(DS));
    TRY(take_room(b, &r));
    COUNT(synchronisations);
    if (is_complex) return half ? SOLVE(ZK) : SOLVE(ZC);
    return half ? SOLVE(DH) : SOLVE(DS);
#undef SIZE_OF
#undef SOLVE
}

/* y = alpha op(a) x + beta y */
static duet_status product(solver_workspace *b, double alpha, const columns *a, cublasOperation_t op,
                           const columns *x, double beta, const columns *y)
{
    const double of_wide[2][2] = { { alpha }, { beta } };
    const float of_narrow[2][2] = { { (float)alpha }, { (float)beta } };
    const int m = (int)y->rows, n = (int)y->cols, k = (int)x->rows;
    queue *q = b->q;
    duet_status r = DUET_OK;
#define GEMM(letter, number)                                                                                 \
    BLAS(b->v, cublas##letter##gemm, q->blas, op, CUBLAS_OP_N, m, n, k, (const void *)number[0], a->p,       \
         (int)a->ld, x->p, (int)x->ld, (const void *)number[1], y->p, (int)y->ld)
    pthread_mutex_lock(&q->lock);
    switch (a->type) {
    case DUET_F32: r = GEMM(S, of_narrow); break;
    case DUET_F64: r = GEMM(D, of_wide); break;
    case DUET_C64: r = GEMM(C, of_narrow); break;
    default: r = GEMM(Z, of_wide); break;
    }
#undef GEMM
    pthread_mutex_unlock(&q->lock);
    COUNT(launches);
    return r;
}

duet_status solver_rest(solver_workspace *b, const columns *a, bool transposed, const columns *x,
                        const columns *y)
{
    return product(b, -1, a, blas_op(transposed), x, 1, y);
}

duet_status solver_product(solver_workspace *b, const columns *a, const columns *x, const columns *y)
{
    return product(b, 1, a, CUBLAS_OP_N, x, 0, y);
}

duet_status solver_gram(solver_workspace *b, const columns *a, const columns *g)
{
    return product(b, 1, a, CUBLAS_OP_C, a, 0, g);
}
