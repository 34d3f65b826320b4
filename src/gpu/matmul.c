/* matmul.c - products, by cuBLAS. It stores by columns and we by rows: its transposes are our matrices, so out' = b' a' is asked for. */
#include "dtype.h"
#include "lend.h"
#include "steps.h"
#include <limits.h>
#include <string.h>

/* A factor as cuBLAS takes it. N: its rows have stride 1 along; T: its columns. */
typedef struct factor {
    const void *p;
    int ld;
    cublasOperation_t op;
    void *block;
} factor;

/* Does l run with stride 1 along this axis, and across it with a stride that is no less than a line? Axes of size 1 have any stride,
 * and so has a matrix of nothing. */
static bool runs(const layout *l, int along, int *ld)
{
    int across = 1 - along;
    int64_t line = l->size[along] > 1 ? l->size[along] : 1;
    int64_t pitch = l->size[across] > 1 && l->size[along] ? l->stride[across] : line;
    *ld = (int)pitch;
    return (l->size[along] <= 1 || l->stride[along] == 1) && pitch >= line && pitch <= INT_MAX;
}

const char *gpu_matmul_refuses(const step *s)
{
    const int64_t *a = s->in[0].at.size, *b = s->in[1].at.size;
    int ld;
    if (s->finish) return "cuBLAS's results are finished apart";
    if (a[0] > INT_MAX || a[1] > INT_MAX || b[1] > INT_MAX) return "cuBLAS takes sizes below 2^31";
    if (!runs(&s->out[0].at, 1, &ld)) return "cuBLAS writes rows without gaps";
    return vendor_open(LIBRARY_cublas)->missing[LIBRARY_cublas];
}

static duet_status factor_of(const operand *x, const frame *f, queue *q, factor *r)
{
    *r = (factor){ .p = f->data[x->slot], .op = CUBLAS_OP_N };
    if (runs(&x->at, 1, &r->ld)) return DUET_OK;
    if (runs(&x->at, 0, &r->ld)) return r->op = CUBLAS_OP_T, DUET_OK;
    r->ld = (int)x->at.size[1];
    return gpu_densely(x, f, q, &r->p, &r->block);
}

typedef struct scale {
    double alpha, beta;
} scale;

static part addend_of(const step *s, const frame *f) { return (part){ .p = f->data[s->in[2].slot], .at = &s->in[2].at }; }

/* Products of nothing are 0: out = beta * addend + alpha * 0, by one kernel. */
static duet_status empty_product(const step *s, const frame *f, queue *q, scale by)
{
    const part zero = { .number = by.alpha * 0 }, beta = { .number = by.beta };
    const operand *out = &s->out[0];
    if (s->ins < 3) return gpu_apply(OP_LOAD, f->data[out->slot], &out->at, &zero, 1, q);
    return gpu_apply(OP_fma, f->data[out->slot], &out->at, (const part[]){ beta, addend_of(s, f), zero }, 3, q);
}

/* out = addend, where it is not that already. */
static duet_status place_addend(const step *s, const frame *f, queue *q)
{
    const operand *to = &s->out[0], *from = &s->in[2];
    const part addend = addend_of(s, f);
    bool same = f->data[to->slot] == addend.p && !memcmp(to->at.stride, from->at.stride, 2 * sizeof *to->at.stride);
    return same ? DUET_OK : gpu_apply(OP_LOAD, f->data[to->slot], &to->at, &addend, 1, q);
}

static duet_status gemm(const step *s, const factor *a, const factor *b, void *out, int ld, scale by, queue *q)
{
    const vendor *v;
    int m = (int)s->in[0].at.size[0], k = (int)s->in[0].at.size[1], n = (int)s->in[1].at.size[1];
    TRY(gpu_queue_blas(q, &v));
    if (s->out[0].at.type == DUET_F64)
        return BLAS(v, cublasDgemm, q->blas, b->op, a->op, n, m, k, &by.alpha, b->p, b->ld, a->p, a->ld, &by.beta, out, ld);
    float alpha = (float)by.alpha, beta = (float)by.beta;
    return BLAS(v, cublasSgemm, q->blas, b->op, a->op, n, m, k, &alpha, b->p, b->ld, a->p, a->ld, &beta, out, ld);
}

static duet_status locked_gemm(const step *s, const factor *a, const factor *b, void *out, int ld, scale by, queue *q)
{
    pthread_mutex_lock(&q->lock);
    duet_status r = gemm(s, a, b, out, ld, by, q);
    pthread_mutex_unlock(&q->lock);
    if (r == DUET_OK) COUNT(launches);
    return r;
}

static duet_status open_blas(queue *q)
{
    const vendor *v;
    pthread_mutex_lock(&q->lock);
    duet_status r = gpu_queue_blas(q, &v);
    pthread_mutex_unlock(&q->lock);
    return r;
}

/* What cuBLAS multiplies by 0 it does not look at, and 0 times NaN or infinity must show: the product is made apart, and
 * alpha and beta are applied by kernels. */
static duet_status product_by_zero(const step *s, const factor *a, const factor *b, const frame *f, scale by, queue *q)
{
    const operand *out = &s->out[0];
    void *to = f->data[out->slot], *block;
    layout dense;
    layout_dense(&dense, out->at.type, 2, out->at.size);
    const part alpha = { .number = by.alpha }, beta = { .number = by.beta }, it = { .p = to, .at = &out->at };
    TRY(lend(DEVICE, (size_t)layout_count(&dense) * dtypes[dense.type].bytes, q->index, &block));
    const part product = { .p = block, .at = &dense };
    duet_status r = locked_gemm(s, a, b, block, (int)dense.size[1], (scale){ 1, 0 }, q);
    if (r == DUET_OK && s->ins > 2) r = gpu_apply(OP_mul, to, &out->at, (const part[]){ beta, addend_of(s, f) }, 2, q);
    if (r == DUET_OK && s->ins > 2) r = half_written(gpu_apply(OP_fma, to, &out->at, (const part[]){ alpha, product, it }, 3, q));
    else if (r == DUET_OK) r = gpu_apply(OP_mul, to, &out->at, (const part[]){ alpha, product }, 2, q);
    gpu_give(block, q);
    return r;
}

static duet_status product(const step *s, const factor *a, const factor *b, const frame *f, scale by, queue *q)
{
    int ld;
    void *out = f->data[s->out[0].slot];
    if (by.alpha == 0 || (s->ins > 2 && by.beta == 0)) return product_by_zero(s, a, b, f, by, q);
    runs(&s->out[0].at, 1, &ld);
    if (s->ins < 3) return locked_gemm(s, a, b, out, ld, by, q);
    TRY(open_blas(q)); /* what may find no memory comes before out is touched */
    TRY(place_addend(s, f, q));
    return half_written(locked_gemm(s, a, b, out, ld, by, q));
}

duet_status gpu_matmul(const step *s, const frame *f, queue *q)
{
    scale by = { s->nums > 0 ? f->num[s->num[0]] : 1, s->ins < 3 ? 0 : s->nums > 1 ? f->num[s->num[1]] : 1 };
    factor a, b = { 0 };
    if (s->out[0].at.type == DUET_F32) by = (scale){ (float)by.alpha, (float)by.beta }; /* 0 there is 0 */
    if (s->in[0].at.size[1] == 0) return empty_product(s, f, q, by);
    duet_status r = factor_of(&s->in[0], f, q, &a);
    if (r == DUET_OK) r = factor_of(&s->in[1], f, q, &b);
    if (r == DUET_OK) r = product(s, &a, &b, f, by, q);
    gpu_give(a.block, q), gpu_give(b.block, q);
    return r;
}
