/* matmul.c - products, by cuBLAS. It stores by columns and we by rows: its transposes are our matrices, so out' = b' a' is asked for.
 * Numbers alpha and beta that are 0 are the plan's affair: cuBLAS then skips what they multiply, NaNs included. */
#include "kernels.h"
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

const char *matmul_refuses(const step *s)
{
    const int64_t *a = s->in[0].at.size, *b = s->in[1].at.size;
    int ld;
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
    return densely(x, f, q, &r->p, &r->block);
}

/* Products of nothing are 0: out = beta * addend + alpha * 0, by one kernel. */
static duet_status empty_product(const step *s, const frame *f, queue *q, double alpha, double beta)
{
    uint8_t type = (uint8_t)s->out[0].at.type;
    program p = { .length = 2,
                  .numbers = 2,
                  .outputs = 1,
                  .code = { { .op = OP_LOAD, .type = type, .arg = { { FROM_NUMBER, 1 } } },
                            { .op = OP_STORE, .type = type, .arg = { { FROM_ACC, 0 } } } } };
    step t = { .kernel = KERNEL_PROGRAM, .outs = 1, .nums = 2, .num = { 0, 1 }, .out = { s->out[0] }, .program = &p };
    if (s->ins > 2) {
        p.code[0] = (instruction){ OP_fma, type, { { FROM_NUMBER, 0 }, { FROM_INPUT, 0 }, { FROM_NUMBER, 1 } } };
        p.inputs = t.ins = 1;
        t.in[0] = s->in[2];
    }
    layout_collapse((layout *const[]){ &t.out[0].at, &t.in[0].at }, 1 + t.ins);
    return launch(&t, &(frame){ f->data, (const double[]){ beta, alpha * 0 }, q->index }, q);
}

/* out = addend, where it is not that already. */
static duet_status place_addend(const step *s, const frame *f, queue *q)
{
    const operand *to = &s->out[0], *from = &s->in[2];
    void *out = f->data[to->slot], *in = f->data[from->slot];
    bool same = out == in && !memcmp(to->at.stride, from->at.stride, 2 * sizeof *to->at.stride);
    return same ? DUET_OK : copy(out, &to->at, in, &from->at, q);
}

typedef struct scale {
    double alpha, beta;
} scale;

static duet_status gemm(const step *s, const frame *f, queue *q, const factor *a, const factor *b, scale by)
{
    const vendor *v;
    int m = (int)s->in[0].at.size[0], k = (int)s->in[0].at.size[1], n = (int)s->in[1].at.size[1], ld;
    void *out = f->data[s->out[0].slot];
    runs(&s->out[0].at, 1, &ld);
    TRY(queue_blas(q, &v));
    if (s->out[0].at.type == DUET_F64)
        return BLAS(v, cublasDgemm, q->blas, b->op, a->op, n, m, k, &by.alpha, b->p, b->ld, a->p, a->ld, &by.beta, out, ld);
    float alpha = (float)by.alpha, beta = (float)by.beta;
    return BLAS(v, cublasSgemm, q->blas, b->op, a->op, n, m, k, &alpha, b->p, b->ld, a->p, a->ld, &beta, out, ld);
}

static duet_status product(const step *s, const frame *f, queue *q, scale by)
{
    factor a, b = { 0 };
    duet_status r = factor_of(&s->in[0], f, q, &a);
    if (r == DUET_OK) r = factor_of(&s->in[1], f, q, &b);
    if (r == DUET_OK && s->ins > 2) r = place_addend(s, f, q);
    pthread_mutex_lock(&q->lock);
    if (r == DUET_OK) r = gemm(s, f, q, &a, &b, by);
    pthread_mutex_unlock(&q->lock);
    give_block(a.block, q), give_block(b.block, q);
    if (r == DUET_OK) COUNT(launches);
    return r;
}

duet_status matmul_run(const step *s, const frame *f, queue *q)
{
    double alpha = s->nums > 0 ? f->num[s->num[0]] : 1;
    double beta = s->ins < 3 ? 0 : s->nums > 1 ? f->num[s->num[1]] : 1;
    if (s->in[0].at.size[1] == 0) return empty_product(s, f, q, alpha, beta);
    return product(s, f, q, (scale){ alpha, beta });
}
