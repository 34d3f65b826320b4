/* cusparse.c - products with sparse matrices by cuSPARSE. It trusts the pattern, so it gets only patterns
 * that were checked, which are those of a duet_sparse. Duet's own kernels take the others, and all if
 * cuSPARSE is missing. */
#include "csr.h" /* before step_kinds.h, which has types `columns` and `queue` */

#include "clock.h"
#include "dtype.h"
#include "scratch.h"
#include "sparse_calls.h"
#include "step_kinds.h"
#include <string.h>

/* ---- status and handles ---- */

duet_status gpu_sparse_failed(const vendor *v, const char *call, cusparseStatus_t e)
{
    if (gpu_device_was_lost(call)) return DUET_DEVICE_ERROR;
    const bool is_memory = e == CUSPARSE_STATUS_ALLOC_FAILED || e == CUSPARSE_STATUS_INSUFFICIENT_RESOURCES;
    return fail(is_memory ? DUET_NO_MEMORY : DUET_DEVICE_ERROR, "%s: %s", call, v->cusparseGetErrorString(e));
}

void gpu_sparse_close(const vendor *v, queue *q)
{
    if (q->sparse) (void)v->cusparseDestroy(q->sparse);
    q->sparse = NULL;
}

duet_status gpu_sparse_open(const vendor *v, queue *q)
{
    if (!q->sparse) TRY(SPARSE(v, cusparseCreate, &q->sparse));
    return SPARSE(v, cusparseSetStream, q->sparse, gpu_queue_cuda_stream(q));
}

/* ---- a product ---- */

typedef struct product {
    const vendor *v;
    queue *q;
    csr c;
    const void *values; /* of SDDMM: the result */
    cudaDataType_t type;
    bool transposed;
    cusparseSpMatDescr_t matrix;
    cusparseDnMatDescr_t x, y;
    cusparseDnVecDescr_t from, to; /* of a product with a vector */
    void *work, *block[3];         /* copies of operands with other strides */
    bool wrote;
} product;

/* 1 and 0 of any type: an imaginary part of 0 follows. */
typedef union factor {
    float f32[2];
    double f64[2];
} factor;
static factor factor_of(duet_dtype t, double x)
{
    factor f = { .f64 = { 0, 0 } };
    if (dtype_part(t) == DUET_F32) f.f32[0] = (float)x;
    else f.f64[0] = x;
    return f;
}

static cusparseOperation_t operation(bool transposed)
{
    return transposed ? CUSPARSE_OPERATION_TRANSPOSE : CUSPARSE_OPERATION_NON_TRANSPOSE;
}

duet_status gpu_sparse_describe(const vendor *v, const csr *c, const void *values, cudaDataType_t type,
                                cusparseSpMatDescr_t *matrix)
{
    const cusparseIndexType_t index = c->wide ? CUSPARSE_INDEX_64I : CUSPARSE_INDEX_32I;
    const size_t each = c->wide ? sizeof(int64_t) : sizeof(int32_t);
    char *offsets = (char *)(uintptr_t)c->pattern;
    return SPARSE(v, cusparseCreateCsr, matrix, c->rows, c->columns, c->count, offsets,
                  offsets + (size_t)(c->rows + 1) * each, (void *)(uintptr_t)values, index, index,
                  CUSPARSE_INDEX_BASE_ZERO, type);
}

/* A dense operand as a matrix, row-major, column-major, or copied. A vector is one column. */
static duet_status describe_dense(product *p, const operand *o, const frame *f, int k,
                                  cusparseDnMatDescr_t *d)
{
    const layout *l = &o->at;
    const int64_t rows = l->size[0], columns = l->rank > 1 ? l->size[1] : 1, down = l->stride[0],
                  across = l->rank > 1 ? l->stride[1] : 1;
    const void *at = f->data[o->slot];
    int64_t ld = columns;
    cusparseOrder_t order = CUSPARSE_ORDER_ROW;
    if ((across == 1 || columns == 1) && down >= columns) ld = down;
    else if (down == 1 && across >= rows) {
        ld = across;
        order = CUSPARSE_ORDER_COL;
    } else TRY(gpu_densely(o, f, p->q, &at, &p->block[k]));
    return SPARSE(p->v, cusparseCreateDnMat, d, rows, columns, ld, (void *)(uintptr_t)at, p->type, order);
}

static duet_status describe_vector(product *p, const operand *o, const frame *f, int k,
                                   cusparseDnVecDescr_t *d)
{
    const void *at;
    TRY(gpu_densely(o, f, p->q, &at, &p->block[k]));
    return SPARSE(p->v, cusparseCreateDnVec, d, layout_count(&o->at), (void *)(uintptr_t)at, p->type);
}

static duet_status take_work(product *p, size_t bytes)
{
    return bytes ? scratch_acquire(p->q->device, bytes, p->q->index, &p->work) : DUET_OK;
}

/* Algorithm 1 is up to 25 us faster on an H200; algorithm 2 gives the same bits in each run, and divides long
 * rows among thread blocks. */
#define LONG_ROW 4096
static cusparseSpMVAlg_t vector_algorithm(const product *p)
{
    const bool long_rows = p->c.count / LONG_ROW >= p->c.rows;
    return reproducible() || long_rows ? CUSPARSE_SPMV_CSR_ALG2 : CUSPARSE_SPMV_CSR_ALG1;
}

/* The caller holds q->lock. */
static duet_status multiply_vector(product *p, const step *s, const frame *f)
{
    const factor one = factor_of(s->out[0].at.type, 1), zero = factor_of(s->out[0].at.type, 0);
    const cusparseOperation_t op = operation(p->transposed);
    const cusparseSpMVAlg_t algorithm = vector_algorithm(p);
    size_t bytes = 0;
    TRY(describe_vector(p, &s->in[2], f, 2, &p->from));
    TRY(SPARSE(p->v, cusparseCreateDnVec, &p->to, layout_count(&s->out[0].at), f->data[s->out[0].slot],
               p->type));
    TRY(SPARSE(p->v, cusparseSpMV_bufferSize, p->q->sparse, op, &one, p->matrix, p->from, &zero, p->to,
               p->type, algorithm, &bytes));
    TRY(take_work(p, bytes));
    p->wrote = true;
    return SPARSE(p->v, cusparseSpMV, p->q->sparse, op, &one, p->matrix, p->from, &zero, p->to, p->type,
                  algorithm, p->work);
}

static duet_status multiply_matrix(product *p, const step *s, const frame *f)
{
    const factor one = factor_of(s->out[0].at.type, 1), zero = factor_of(s->out[0].at.type, 0);
    const cusparseOperation_t op = operation(p->transposed), plain = operation(false);
    size_t bytes = 0;
    TRY(describe_dense(p, &s->in[2], f, 2, &p->x));
    TRY(describe_dense(p, &s->out[0], f, 0, &p->y));
    TRY(SPARSE(p->v, cusparseSpMM_bufferSize, p->q->sparse, op, plain, &one, p->matrix, p->x, &zero, p->y,
               p->type, CUSPARSE_SPMM_ALG_DEFAULT, &bytes));
    TRY(take_work(p, bytes));
    p->wrote = true;
    return SPARSE(p->v, cusparseSpMM, p->q->sparse, op, plain, &one, p->matrix, p->x, &zero, p->y, p->type,
                  CUSPARSE_SPMM_ALG_DEFAULT, p->work);
}

/* b has the rows that are multiplied, so cuSPARSE transposes it. */
static duet_status sample(product *p, const step *s, const frame *f)
{
    const factor one = factor_of(s->out[0].at.type, 1), zero = factor_of(s->out[0].at.type, 0);
    const cusparseOperation_t plain = operation(false), turned = operation(true);
    size_t bytes = 0;
    TRY(describe_dense(p, &s->in[0], f, 0, &p->x));
    TRY(describe_dense(p, &s->in[2], f, 2, &p->y));
    TRY(SPARSE(p->v, cusparseSDDMM_bufferSize, p->q->sparse, plain, turned, &one, p->x, p->y, &zero,
               p->matrix, p->type, CUSPARSE_SDDMM_ALG_DEFAULT, &bytes));
    TRY(take_work(p, bytes));
    p->wrote = true;
    return SPARSE(p->v, cusparseSDDMM, p->q->sparse, plain, turned, &one, p->x, p->y, &zero, p->matrix,
                  p->type, CUSPARSE_SDDMM_ALG_DEFAULT, p->work);
}

static duet_status run_locked(product *p, const step *s, const frame *f)
{
    TRY(gpu_sparse_open(p->v, p->q));
    TRY(gpu_sparse_describe(p->v, &p->c, p->values, p->type, &p->matrix));
    if (s->kernel == OP_csr_sddmm) return sample(p, s, f);
    return s->out[0].at.rank == 1 ? multiply_vector(p, s, f) : multiply_matrix(p, s, f);
}

static void end_product(product *p)
{
    if (p->matrix) (void)p->v->cusparseDestroySpMat(p->matrix);
    if (p->x) (void)p->v->cusparseDestroyDnMat(p->x);
    if (p->y) (void)p->v->cusparseDestroyDnMat(p->y);
    if (p->from) (void)p->v->cusparseDestroyDnVec(p->from);
    if (p->to) (void)p->v->cusparseDestroyDnVec(p->to);
    gpu_give(p->work, p->q);
    for (int k = 0; k < 3; k++) gpu_give(p->block[k], p->q);
}

static duet_status run_product(product *p, const step *s, const frame *f)
{
    if (s->kernel == OP_csr_matmul) TRY(gpu_densely(&s->in[0], f, p->q, &p->values, &p->block[1]));
    else p->values = f->data[s->out[0].slot];
    pthread_mutex_lock(&p->q->lock);
    const duet_status r = run_locked(p, s, f);
    pthread_mutex_unlock(&p->q->lock);
    gpu_queue_wrote_anything(p->q);
    if (r == DUET_OK) COUNT(launches);
    return r;
}

/* ---- steps ---- */

/* The sizes of the matrix of a step. */
static csr matrix_of(const step *s, const frame *f)
{
    const int64_t length = layout_count(&s->in[1].at);
    csr c = { .pattern = f->data[s->in[1].slot], .wide = s->in[1].at.type == DUET_I64 };
    if (s->kernel == OP_csr_matmul) {
        c.count = layout_count(&s->in[0].at);
        c.columns = s->attr.csr.columns;
    } else {
        c.count = length - 1 - s->in[0].at.size[0];
        c.columns = s->in[2].at.size[0];
    }
    c.rows = length - 1 - c.count;
    return c;
}

/* cuSPARSE refuses sizes of 0 and misaligned elements. */
static bool takes(const step *s, const frame *f, const csr *c)
{
    const size_t each = dtypes[s->out[0].at.type].bytes;
    uintptr_t all = (uintptr_t)f->data[s->out[0].slot];
    for (int k = 0; k < s->ins; k += 2) all |= (uintptr_t)f->data[s->in[k].slot];
    return c->count && c->columns && layout_count(&s->out[0].at) && layout_count(&s->in[0].at) &&
           layout_count(&s->in[2].at) && all % each == 0 && layout_is_dense(&s->in[1].at) &&
           csr_is_declared(owned_by(f, s->in[1].slot), c);
}

duet_status gpu_sparse(const step *s, const frame *f, queue *q)
{
    product p = { .v = vendor_open(LIBRARY_cusparse),
                  .q = q,
                  .c = matrix_of(s, f),
                  .type = vendor_type(s->out[0].at.type),
                  .transposed = s->kernel == OP_csr_matmul && s->attr.csr.transposed };
    if (p.v->missing[LIBRARY_cusparse] || !takes(s, f, &p.c)) return gpu_launch(s, f, q);
    const duet_status r = run_product(&p, s, f);
    end_product(&p);
    return p.wrote ? half_written(r) : r;
}

const char *gpu_sparse_algorithm(const step *s)
{
    (void)s;
    return vendor_open(LIBRARY_cusparse)->missing[LIBRARY_cusparse] ? "by Duet's kernels: cuSPARSE is missing"
                                                                    : "by cuSPARSE";
}
