/* matmul.c - products by cuBLASLt, whose matrices are column-major. Its transposes are our
 * matrices, so it computes out' = b' a'. */
#include "cublaslt.h"
#include "dtype.h"
#include "gemm_operands.h"
#include "graph_order.h"
#include "scratch.h"
#include "step_kinds.h"
#include <limits.h>
#include <string.h>

/* An operand in the form that cuBLASLt needs. `transposed` says that its columns are contiguous, not
 * its rows. */
typedef struct factor {
    const void *p;
    int ld;
    bool transposed;
    void *block;
} factor;

const char *gpu_matmul_unsupported(const step *s)
{
    const int64_t *a = s->in[0].at.size, *b = s->in[1].at.size;
    int ld;
    if (epilogue_infos[s->epilogue].act == OP_softmax)
        return "softmax over so many columns is computed in a separate pass";
    if (a[0] > INT_MAX || a[1] > INT_MAX || b[1] > INT_MAX) return "cuBLASLt takes sizes below 2^31";
    if (!gemm_is_dense(&s->out[0].at, 1, &ld))
        return "the rows of the result must be contiguous for cuBLASLt";
    return vendor_open(LIBRARY_cublasLt)->missing[LIBRARY_cublasLt];
}

static duet_status factor_of(const operand *x, const frame *f, queue *q, factor *r)
{
    *r = (factor){ .p = f->data[x->slot] };
    if (gemm_is_dense(&x->at, 1, &r->ld)) return DUET_OK;
    if (gemm_is_dense(&x->at, 0, &r->ld)) {
        r->transposed = true;
        return DUET_OK;
    }
    r->ld = (int)x->at.size[1];
    return gpu_densely(x, f, q, &r->p, &r->block);
}

/* Copies the addend to out unless it is out itself. */
static duet_status place_addend(const step *s, const frame *f, queue *q)
{
    const operand *to = &s->out[0], *from = &s->in[2];
    const part addend = gemm_addend(s, f);
    bool same =
        f->data[to->slot] == addend.p && !memcmp(to->at.stride, from->at.stride, 2 * sizeof *to->at.stride);
    if (same) return DUET_OK;
    return gpu_apply(OP_LOAD, f->data[to->slot], &to->at, &addend, 1, q);
}

/* The alignment of all three addresses in bytes. */
static int alignment_of(const void *a, const void *b, const void *c)
{
    const uintptr_t all = (uintptr_t)a | (uintptr_t)b | (uintptr_t)c | 256;
    return (int)(all & -all);
}

/* For operands at any addresses. */
static gemm_shape shape_of(const step *s, const factor *a, const factor *b, int ld, bool adds)
{
    return (gemm_shape){ .type = (int32_t)s->out[0].at.type,
                         .math = s->math == DUET_MATH_SPLIT ? DUET_MATH_STRICT : s->math,
                         .m = (int)s->in[1].at.size[1],
                         .n = (int)s->in[0].at.size[0],
                         .k = (int)s->in[0].at.size[1],
                         .lda = b->ld,
                         .ldb = a->ld,
                         .ldc = ld,
                         .transposed_a = b->transposed,
                         .transposed_b = a->transposed,
                         .adds = adds,
                         .alignment = (int)dtypes[s->out[0].at.type].bytes };
}

static duet_status gemm(const step *s, const factor *a, const factor *b, void *out, int ld, gemm_scale by,
                        queue *q)
{
    gemm_shape what = shape_of(s, a, b, ld, by.beta != 0);
    what.biased = by.bias != NULL;
    what.alignment = alignment_of(a->p, b->p, out);
    const gemm_data at = { b->p, a->p, by.bias, out, by.alpha, by.beta };
    pthread_mutex_lock(&q->lock);
    const duet_status r = gpu_gemm(&what, &at, q);
    pthread_mutex_unlock(&q->lock);
    return r;
}

/* ---- products that only a device error can stop ---- */

/* Plans have no factor that is 0 (graph/fold_gemm.c). */
bool gpu_matmul_is_sure(const step *s)
{
    int ld;
    for (int k = 0; k < 2; k++)
        if (!gemm_is_dense(&s->in[k].at, 1, &ld) && !gemm_is_dense(&s->in[k].at, 0, &ld)) return false;
    return !s->epilogue && s->in[0].at.size[1] > 0;
}

/* The addresses are not known yet, so an algorithm for any addresses is chosen. If there is no memory to
 * choose a better one when the step runs, this one is used. */
duet_status gpu_matmul_make_sure(const step *s, queue *q)
{
    factor x[2] = { { 0 } };
    int ld;
    for (int k = 0; k < 2; k++) {
        x[k].transposed = !gemm_is_dense(&s->in[k].at, 1, &x[k].ld);
        if (x[k].transposed) gemm_is_dense(&s->in[k].at, 0, &x[k].ld);
    }
    gemm_is_dense(&s->out[0].at, 1, &ld);
    const gemm_shape what = shape_of(s, &x[0], &x[1], ld, gemm_has_addend(s));
    pthread_mutex_lock(&q->lock);
    const duet_status r = gpu_gemm_prepare(&what, q);
    pthread_mutex_unlock(&q->lock);
    return r;
}

/* ---- epilogues ---- */

/* Returns the bias if cuBLASLt can add it and no activation follows. This saves a pass over the
 * results. */
static const void *vendors_bias(const step *s, const frame *f)
{
    const void *bias = s->epilogue ? f->data[s->in[2].slot] : NULL;
    return epilogue_infos[s->epilogue].act == OP_LOAD && s->in[2].at.stride[0] == 1 &&
                   (uintptr_t)bias % 16 == 0
               ? bias
               : NULL;
}

/* out = act(out + bias) */
static duet_status epilogue(const step *s, const frame *f, queue *q)
{
    const operand *out = &s->out[0], *bias = &s->in[2];
    layout spread = out->at;
    spread.stride[0] = 0;
    spread.stride[1] = bias->at.stride[0];
    const part sum[] = { { .p = f->data[out->slot], .at = &out->at },
                         { .p = f->data[bias->slot], .at = &spread } };
    const int act = epilogue_infos[s->epilogue].act;
    return gpu_apply_two(OP_add, act, f->data[out->slot], &out->at, sum, 2, q);
}

/* Computes a product with alpha or beta 0. cuBLASLt does not read an operand that it multiplies by 0,
 * but 0 times NaN or infinity must be NaN. So the product is computed first, and kernels apply alpha
 * and beta. */
static duet_status product_by_zero(const step *s, const factor *a, const factor *b, const frame *f,
                                   gemm_scale by, queue *q)
{
    const operand *out = &s->out[0];
    void *block;
    layout dense;
    layout_dense(&dense, out->at.type, 2, out->at.size);
    const size_t bytes = (size_t)layout_count(&dense) * dtypes[dense.type].bytes;
    TRY(scratch_acquire(q->device, bytes, q->index, &block));
    const part product = { .p = block, .at = &dense };
    duet_status r = gpu_order_uses(q, block, bytes);
    if (r == DUET_OK) r = gemm(s, a, b, block, (int)dense.size[1], (gemm_scale){ .alpha = 1 }, q);
    if (r == DUET_OK) r = gemm_apply_scale(s, f, q, by, product);
    gpu_give(block, q);
    return r;
}

static duet_status product(const step *s, const factor *a, const factor *b, const frame *f, gemm_scale by,
                           queue *q)
{
    int ld;
    void *out = f->data[s->out[0].slot];
    if (by.alpha == 0 || (gemm_has_addend(s) && by.beta == 0)) return product_by_zero(s, a, b, f, by, q);
    gemm_is_dense(&s->out[0].at, 1, &ld);
    if (!gemm_has_addend(s)) return gemm(s, a, b, out, ld, by, q);
    TRY(gemm_open(q)); /* all allocations must come before the first write to out */
    TRY(place_addend(s, f, q));
    return half_written(gemm(s, a, b, out, ld, by, q));
}

static duet_status product_or_nothing(const step *s, const frame *f, gemm_scale by, queue *q)
{
    factor a, b = { 0 };
    if (s->in[0].at.size[1] == 0) return gemm_of_nothing(s, f, q, by);
    duet_status r = factor_of(&s->in[0], f, q, &a);
    if (r == DUET_OK) r = factor_of(&s->in[1], f, q, &b);
    if (r == DUET_OK) r = product(s, &a, &b, f, by, q);
    gpu_give(a.block, q);
    gpu_give(b.block, q);
    return r;
}

duet_status gpu_matmul(const step *s, const frame *f, queue *q)
{
    gemm_scale by = gemm_scale_of(s, f);
    if (by.alpha != 0 && s->in[0].at.size[1] > 0) by.bias = vendors_bias(s, f);
    TRY(product_or_nothing(s, f, by, q));
    if (s->epilogue && !by.bias) return half_written(epilogue(s, f, q));
    return DUET_OK;
}
