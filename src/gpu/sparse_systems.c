/* sparse_systems.c - systems with sparse matrices: triangles by cuSPARSE, others by cuDSS. The host waits for
 * the status. A pattern that was not checked, and a solution of cuDSS whose residual is too large, go to the
 * CPU, which also reports what is wrong with the operands. */
#include "csr.h" /* before step_kinds.h, which has types `columns` and `queue` */

#include "clock.h"
#include "columns.h"
#include "csr_system.h"
#include "fp_environment.h"
#include "linalg_on_host.h"
#include "sparse_calls.h"
#include <float.h>
#include <limits.h>
#include <math.h>
#include <string.h>

typedef struct sparse_system {
    solver_workspace *b;
    csr c;
    const void *values;
    columns right, x; /* n x sides */
    bool is_checked;  /* is the pattern known to be valid? */
} sparse_system;

static const char *unsupported(const step *s, enum library l)
{
    const duet_dtype t = s->out[0].at.type;
    const vendor *v = vendor_open(l);
    if (!dtype_is_blas(t)) return "the elements must be f32, f64, c64 or c128";
    if (s->in[0].at.type != t || s->in[2].at.type != t) return "the operands must have the same element type";
    if (s->out[0].at.size[0] > INT_MAX - 1) return "the GPU takes fewer than 2^31 rows";
    if (v->missing[l]) return v->missing[l];
    return gpu_solver_missing();
}

static duet_status open_system(solver_workspace *b, sparse_system *y)
{
    const step *s = b->s;
    const layout *pattern = &s->in[1].at, *values = &s->in[0].at;
    const int64_t n = s->out[0].at.size[0];
    columns copy;
    *y = (sparse_system){ .b = b };
    y->c = (csr){ b->f->data[s->in[1].slot], n, n, layout_count(values), pattern->type == DUET_I64 };
    y->is_checked = layout_is_dense(pattern) && csr_is_declared(owned_by(b->f, s->in[1].slot), &y->c);
    if (!y->is_checked) return DUET_OK;
    y->values = b->f->data[s->in[0].slot];
    if (!layout_is_dense(values) || (uintptr_t)y->values % element_bytes(b)) {
        TRY(columns_read(b, 0, false, &copy));
        y->values = copy.p;
    }
    TRY(columns_read(b, 2, false, &y->right));
    return columns_take(b, n, y->right.cols, &y->x);
}

static csr_system checks_of(const sparse_system *y)
{
    return (csr_system){ .values = y->values,
                         .pattern = y->c.pattern,
                         .x = y->x.p,
                         .b = y->right.p,
                         .n = y->c.rows,
                         .count = y->c.count,
                         .sides = y->x.cols,
                         .type = solver_type(y->b),
                         .wide = y->c.wide };
}

static duet_status on_host(const sparse_system *y)
{
    const char *why = device_machine(HOST)->unsupported_reason(y->b->s);
    if (!why) return gpu_linear_on_host(y->b, LINALG_RESIDUAL, 0);
    return fail(DUET_UNSUPPORTED,
                "duet_sparse_solve: the GPU cannot solve this system, and neither can the CPU: %s", why);
}

/* ---- triangles ---- */

/* The descriptors of cuSPARSE for one solution. */
typedef struct substitution {
    cusparseSpMatDescr_t matrix;
    cusparseDnMatDescr_t right, x;
    cusparseSpSMDescr_t plan;
} substitution;

static duet_status describe_columns(const vendor *v, const columns *c, cudaDataType_t type,
                                    cusparseDnMatDescr_t *d)
{
    return SPARSE(v, cusparseCreateDnMat, d, c->rows, c->cols, c->ld, c->p, type, CUSPARSE_ORDER_COL);
}

static duet_status describe(const vendor *v, const sparse_system *y, substitution *d)
{
    const triangle_attributes *t = &y->b->s->attr.triangle;
    const cudaDataType_t type = vendor_type(solver_type(y->b));
    cusparseFillMode_t fill = t->lower ? CUSPARSE_FILL_MODE_LOWER : CUSPARSE_FILL_MODE_UPPER;
    cusparseDiagType_t diagonal = t->unit ? CUSPARSE_DIAG_TYPE_UNIT : CUSPARSE_DIAG_TYPE_NON_UNIT;
    TRY(gpu_sparse_describe(v, &y->c, y->values, type, &d->matrix));
    TRY(SPARSE(v, cusparseSpMatSetAttribute, d->matrix, CUSPARSE_SPMAT_FILL_MODE, &fill, sizeof fill));
    TRY(SPARSE(v, cusparseSpMatSetAttribute, d->matrix, CUSPARSE_SPMAT_DIAG_TYPE, &diagonal,
               sizeof diagonal));
    TRY(describe_columns(v, &y->right, type, &d->right));
    TRY(describe_columns(v, &y->x, type, &d->x));
    return SPARSE(v, cusparseSpSM_createDescr, &d->plan);
}

/* The caller holds the lock of the queue. */
static duet_status substitute(const vendor *v, const sparse_system *y, substitution *d)
{
    const cudaDataType_t type = vendor_type(solver_type(y->b));
    const cusparseOperation_t plain = CUSPARSE_OPERATION_NON_TRANSPOSE,
                              op = y->b->s->attr.triangle.transposed ? CUSPARSE_OPERATION_TRANSPOSE : plain;
    const double f64[2] = { 1, 0 };
    const float f32[2] = { 1, 0 };
    const void *one = dtype_part(solver_type(y->b)) == DUET_F32 ? (const void *)f32 : f64;
    const cusparseHandle_t h = y->b->q->sparse;
    size_t bytes = 0;
    void *work;
    TRY(SPARSE(v, cusparseSpSM_bufferSize, h, op, plain, one, d->matrix, d->right, d->x, type,
               CUSPARSE_SPSM_ALG_DEFAULT, d->plan, &bytes));
    TRY(gpu_workspace_take(y->b, ON_CARD, bytes, &work));
    TRY(SPARSE(v, cusparseSpSM_analysis, h, op, plain, one, d->matrix, d->right, d->x, type,
               CUSPARSE_SPSM_ALG_DEFAULT, d->plan, work));
    return SPARSE(v, cusparseSpSM_solve, h, op, plain, one, d->matrix, d->right, d->x, type,
                  CUSPARSE_SPSM_ALG_DEFAULT, d->plan);
}

static duet_status solve_triangle(const sparse_system *y)
{
    const vendor *v = vendor_open(LIBRARY_cusparse);
    substitution d = { 0 };
    pthread_mutex_lock(&y->b->q->lock);
    duet_status r = gpu_sparse_open(v, y->b->q);
    if (r == DUET_OK) r = describe(v, y, &d);
    if (r == DUET_OK) r = substitute(v, y, &d);
    pthread_mutex_unlock(&y->b->q->lock);
    if (d.plan) (void)v->cusparseSpSM_destroyDescr(d.plan);
    if (d.matrix) (void)v->cusparseDestroySpMat(d.matrix);
    if (d.right) (void)v->cusparseDestroyDnMat(d.right);
    if (d.x) (void)v->cusparseDestroyDnMat(d.x);
    return r;
}

/* A singular matrix is found before anything is written. */
static duet_status check_diagonal(const sparse_system *y)
{
    csr_system a = checks_of(y);
    answers said;
    a.zero = &y->b->says->pivot;
    TRY(CUDA(csr_zero_launch, &a, y->b->q->stream));
    TRY(gpu_workspace_ask(y->b, &said));
    return said.pivot ? csr_is_singular(y->c.rows, y->c.rows - said.pivot) : DUET_OK;
}

static duet_status triangle(sparse_system *y)
{
    solver_workspace *b = y->b;
    if (!y->is_checked) return on_host(y);
    if (!b->s->attr.triangle.unit) TRY(check_diagonal(y));
    if (!y->c.count) return columns_write(b, &y->right, false, 0); /* the identity */
    TRY(solve_triangle(y));
    COUNT(launches);
    return columns_write(b, &y->x, false, 0);
}

/* ---- other systems ---- */

static duet_status direct_status(const char *call, cudssStatus_t e)
{
    if (likely(e == CUDSS_STATUS_SUCCESS)) return DUET_OK;
    if (gpu_device_was_lost(call)) return DUET_DEVICE_ERROR;
    return fail(e == CUDSS_STATUS_ALLOC_FAILED ? DUET_NO_MEMORY : DUET_DEVICE_ERROR, "%s: cuDSS's status %d",
                call, (int)e);
}
#define DIRECT(v, f, ...) direct_status(#f, (v)->f(__VA_ARGS__))

void gpu_direct_close(const vendor *v, queue *q)
{
    if (q->direct) (void)v->cudssDestroy(q->direct);
    q->direct = NULL;
}

/* cuDSS allocates memory from CUDA itself, because cuDSS 1.0 fails with a handler of its caller. If CUDA has
 * no memory, run_here releases the cached blocks of the pool and runs the step again. */
static duet_status make_handle(const vendor *v, queue *q)
{
    TRY(DIRECT(v, cudssCreate, &q->direct));
    return DIRECT(v, cudssSetStream, q->direct, q->stream);
}

typedef struct factors {
    cudssConfig_t config;
    cudssData_t data;
    cudssMatrix_t matrix, right, x;
    int changed; /* pivots that cuDSS replaced because they were too small */
} factors;

#define REFINEMENTS 2 /* after one, the residual is that of f64's rounding errors, or it stays large */

static duet_status configure(const vendor *v, const sparse_system *y, factors *d)
{
    const int refinements = REFINEMENTS,
              mode = y->b->s->attr.csr.transposed ? CUDSS_SOLVE_MODE_TRANSPOSE : CUDSS_SOLVE_MODE_NORMAL;
    TRY(DIRECT(v, cudssConfigCreate, &d->config));
    TRY(DIRECT(v, cudssConfigSet, d->config, CUDSS_CONFIG_IR_N_STEPS, &refinements, sizeof refinements));
    TRY(DIRECT(v, cudssConfigSet, d->config, CUDSS_CONFIG_SOLVE_MODE, &mode, sizeof mode));
    return DIRECT(v, cudssDataCreate, y->b->q->direct, &d->data);
}

static duet_status describe_dense(const vendor *v, const columns *c, cudssMatrix_t *m)
{
    return DIRECT(v, cudssMatrixCreateDn, m, c->rows, c->cols, c->ld, c->p, vendor_type(c->type),
                  CUDSS_LAYOUT_COL_MAJOR);
}

static duet_status describe_system(const vendor *v, const sparse_system *y, factors *d)
{
    const csr *c = &y->c;
    const size_t each = c->wide ? sizeof(int64_t) : sizeof(int32_t);
    const char *offsets = c->pattern;
    const cudaDataType_t index = c->wide ? CUDA_R_64I : CUDA_R_32I;
    TRY(DIRECT(v, cudssMatrixCreateCsr, &d->matrix, c->rows, c->columns, c->count, offsets, NULL,
               offsets + (size_t)(c->rows + 1) * each, y->values, index, index,
               vendor_type(solver_type(y->b)), CUDSS_MTYPE_GENERAL, CUDSS_MVIEW_FULL, CUDSS_BASE_ZERO));
    TRY(describe_dense(v, &y->right, &d->right));
    return describe_dense(v, &y->x, &d->x);
}

/* The caller holds the lock of the queue. */
static duet_status factor_and_solve(const vendor *v, const sparse_system *y, factors *d)
{
    static const int phases[] = { CUDSS_PHASE_ANALYSIS, CUDSS_PHASE_FACTORIZATION, CUDSS_PHASE_SOLVE };
    queue *q = y->b->q;
    size_t written;
    if (!q->direct) {
        const duet_status made = make_handle(v, q);
        if (made != DUET_OK) gpu_direct_close(v, q);
        TRY(made);
    }
    TRY(configure(v, y, d));
    TRY(describe_system(v, y, d));
    for (int k = 0; k < 3; k++)
        TRY(DIRECT(v, cudssExecute, q->direct, phases[k], d->config, d->data, d->matrix, d->x, d->right));
    return DIRECT(v, cudssDataGet, q->direct, d->data, CUDSS_DATA_NPIVOTS, &d->changed, sizeof d->changed,
                  &written);
}

/* cuDSS also computes on the host. */
static duet_status solve_direct(const sparse_system *y, int *changed)
{
    IN_DEFAULT_FP_ENVIRONMENT;
    const vendor *v = vendor_open(LIBRARY_cudss);
    queue *q = y->b->q;
    factors d = { 0 };
    pthread_mutex_lock(&q->lock);
    const duet_status r = factor_and_solve(v, y, &d);
    if (d.data) (void)v->cudssDataDestroy(q->direct, d.data);
    pthread_mutex_unlock(&q->lock);
    if (d.config) (void)v->cudssConfigDestroy(d.config);
    if (d.matrix) (void)v->cudssMatrixDestroy(d.matrix);
    if (d.right) (void)v->cudssMatrixDestroy(d.right);
    if (d.x) (void)v->cudssMatrixDestroy(d.x);
    *changed = d.changed;
    return r;
}

/* Is the residual of each column within its bound? */
static duet_status check_rest(const sparse_system *y, bool *is_small)
{
    solver_workspace *b = y->b;
    const size_t elements = (size_t)(y->c.rows * y->x.cols), bytes = 2 * (size_t)y->x.cols * sizeof(double);
    const double eps = dtype_part(solver_type(b)) == DUET_F32 ? FLT_EPSILON : DBL_EPSILON;
    csr_system a = checks_of(y);
    double *most;
    a.transposed = b->s->attr.csr.transposed;
    TRY(gpu_workspace_take(b, ON_CARD, 2 * elements * sizeof(double), &a.rest));
    TRY(gpu_workspace_take(b, ON_CARD, elements * sizeof(double), &a.terms));
    TRY(gpu_workspace_take(b, ON_CARD, bytes, &a.most));
    TRY(gpu_workspace_take(b, ON_HOST, bytes, &most));
    TRY(CUDA(csr_rest_launch, &a, b->q->stream));
    TRY(CUDA(cudaMemcpyAsync, most, a.most, bytes, cudaMemcpyDeviceToHost, b->q->stream));
    TRY(gpu_stream_wait(b->q->device, b->q->stream));
    COUNT(synchronisations);
    *is_small = true;
    for (int64_t j = 0; j < y->x.cols; j++)
        if (!isfinite(most[2 * j + 1]) || !(most[2 * j] <= RESIDUAL_LIMIT * eps * most[2 * j + 1]))
            *is_small = false;
    return DUET_OK;
}

/* If cuDSS changed a pivot, the matrix may be singular: then the CPU solves the system or reports that. */
static duet_status direct(sparse_system *y)
{
    int changed = 0;
    bool is_small = false;
    if (!y->is_checked || !y->c.count) return on_host(y);
    TRY(solve_direct(y, &changed));
    COUNT(launches);
    if (!changed) TRY(check_rest(y, &is_small));
    return is_small ? columns_write(y->b, &y->x, false, 0) : on_host(y);
}

/* ---- steps ---- */

static duet_status run(const step *s, const frame *f, queue *q, duet_status solve(sparse_system *y))
{
    solver_workspace b;
    sparse_system y;
    duet_status r = gpu_workspace_open(&b, s, f, q);
    if (r == DUET_OK) r = open_system(&b, &y);
    if (r == DUET_OK) r = solve(&y);
    gpu_workspace_close(&b);
    return r;
}

const char *gpu_sparse_triangle_unsupported(const step *s) { return unsupported(s, LIBRARY_cusparse); }
duet_status gpu_sparse_triangle(const step *s, const frame *f, queue *q) { return run(s, f, q, triangle); }

const char *gpu_sparse_solve_unsupported(const step *s)
{
    if (reproducible()) return "the bits of cuDSS differ from run to run, and DUET_REPRODUCIBLE is set";
    return unsupported(s, LIBRARY_cudss);
}
duet_status gpu_sparse_solve(const step *s, const frame *f, queue *q) { return run(s, f, q, direct); }
