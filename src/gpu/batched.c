/* batched.c - batched products by cuBLASLt: one call for one leading axis, a loop over the others.
 * As in matmul.c, it computes out' = b' a'. */
#include "cublaslt.h"
#include "dtype.h"
#include "gemm_operands.h"
#include "min_max.h"
#include "scratch.h"
#include "step_kinds.h"
#include <limits.h>

/* An operand in the form that cuBLASLt needs, with the distances between its matrices along the
 * leading axes. */
typedef struct pile {
    const void *p;
    int ld;
    bool transposed;
    layout batch;
    void *block;
} pile;

static layout axes_from(const layout *l, int first, int end)
{
    layout r = { .type = l->type, .rank = end - first };
    for (int i = 0; i < r.rank; i++) {
        r.size[i] = l->size[first + i];
        r.stride[i] = l->stride[first + i];
    }
    return r;
}

const char *gpu_batched_unsupported(const step *s)
{
    const int r = s->out[0].at.rank;
    const int64_t *out = s->out[0].at.size;
    if (s->epilogue) return "a batched product has no epilogue";
    if (out[r - 2] > INT_MAX || out[r - 1] > INT_MAX || s->in[0].at.size[r - 1] > INT_MAX ||
        out[r - 3] > INT_MAX)
        return "cuBLASLt takes sizes below 2^31";
    return vendor_open(LIBRARY_cublasLt)->missing[LIBRARY_cublasLt];
}

/* Makes a dense copy. Matrices that repeat are copied once. */
static duet_status pile_copy(const operand *x, const frame *f, queue *q, pile *r)
{
    operand once = *x;
    layout dense;
    for (int i = 0; i < r->batch.rank; i++)
        if (!x->at.stride[i]) once.at.size[i] = 1;
    layout_dense(&dense, x->at.type, once.at.rank, once.at.size);
    for (int i = 0; i < r->batch.rank; i++) r->batch.stride[i] = x->at.stride[i] ? dense.stride[i] : 0;
    r->ld = (int)larger(x->at.size[x->at.rank - 1], 1);
    r->transposed = false;
    return gpu_densely(&once, f, q, &r->p, &r->block);
}

static duet_status pile_of(const operand *x, const frame *f, queue *q, pile *r)
{
    const int leading = x->at.rank - 2;
    const layout last = axes_from(&x->at, leading, x->at.rank);
    bool forward = true;
    *r = (pile){ .p = f->data[x->slot], .batch = axes_from(&x->at, 0, leading) };
    for (int i = 0; i < leading; i++) forward &= r->batch.stride[i] >= 0;
    if (forward && gemm_is_dense(&last, 1, &r->ld)) return DUET_OK;
    if (forward && gemm_is_dense(&last, 0, &r->ld)) {
        r->transposed = true;
        return DUET_OK;
    }
    return pile_copy(x, f, q, r);
}

/* The alignment of all addresses in bytes, including the distances between matrices. */
static int alignment_of(const void *a, const void *b, const void *c, const gemm_shape *s)
{
    const int64_t each = (int64_t)dtypes[s->type].bytes;
    const uintptr_t apart = (uintptr_t)((s->apart_a | s->apart_b | s->apart_c) * each);
    const uintptr_t all = (uintptr_t)a | (uintptr_t)b | (uintptr_t)c | apart | 256;
    return (int)(all & -all);
}

static const void *moved(const void *p, int64_t elements, const step *s)
{
    return (const char *)p + elements * (int64_t)dtypes[s->out[0].at.type].bytes;
}

/* The products along the last leading axis, starting with the given matrices of the operands. */
static duet_status one_call(const step *s, const pile *a, const pile *b, const int64_t from[2], void *c,
                            gemm_scale by, queue *q)
{
    const int r = s->out[0].at.rank;
    const int64_t *out = s->out[0].at.size;
    gemm_shape what = { .type = (int32_t)s->out[0].at.type,
                        .math = s->math == DUET_MATH_SPLIT ? DUET_MATH_STRICT : s->math };
    what.m = (int)out[r - 1];
    what.n = (int)out[r - 2];
    what.k = (int)s->in[0].at.size[r - 1];
    what.lda = b->ld;
    what.ldb = a->ld;
    what.ldc = what.m;
    what.transposed_a = b->transposed;
    what.transposed_b = a->transposed;
    what.adds = by.beta != 0;
    what.batch = (int)out[r - 3];
    what.apart_a = b->batch.stride[r - 3];
    what.apart_b = a->batch.stride[r - 3];
    what.apart_c = out[r - 1] * out[r - 2];
    const gemm_data at = { moved(b->p, from[1], s), moved(a->p, from[0], s), NULL, c, by.alpha, by.beta };
    what.alignment = alignment_of(at.a, at.b, at.c, &what);
    pthread_mutex_lock(&q->lock);
    const duet_status done = gpu_gemm(&what, &at, q);
    pthread_mutex_unlock(&q->lock);
    return done;
}

/* c: destination of the dense results. *begun: some results may have been written. */
static duet_status all_calls(const step *s, const pile *a, const pile *b, void *c, gemm_scale by, queue *q,
                             bool *begun)
{
    const layout *out = &s->out[0].at;
    const int outer = out->rank - 3;
    const int64_t call = out->size[outer] * out->size[outer + 1] * out->size[outer + 2],
                  calls = layout_count(out) / call;
    duet_status r = DUET_OK;
    for (int64_t i = 0; i < calls && r == DUET_OK; i++) {
        int64_t from[2] = { 0 }, rest = i;
        for (int d = outer; d-- > 0; rest /= out->size[d]) {
            from[0] += rest % out->size[d] * a->batch.stride[d];
            from[1] += rest % out->size[d] * b->batch.stride[d];
        }
        r = one_call(s, a, b, from, (void *)moved(c, i * call, s), by, q);
        *begun |= r == DUET_OK;
    }
    return r;
}

/* Computes products with alpha or beta 0. cuBLASLt would skip an operand that it multiplies by 0, but
 * 0 times NaN or infinity must be NaN. So the products are computed first and then scaled. */
static duet_status by_zero(const step *s, const pile *a, const pile *b, const frame *f, gemm_scale by,
                           queue *q)
{
    const operand *out = &s->out[0];
    bool begun = false;
    void *block;
    TRY(scratch_acquire(q->device, (size_t)layout_count(&out->at) * dtypes[out->at.type].bytes, q->index,
                        &block));
    const part products = { .p = block, .at = &out->at };
    duet_status r = all_calls(s, a, b, block, (gemm_scale){ 1, 0 }, q, &begun);
    if (r == DUET_OK) r = gemm_apply_scale(s, f, q, by, products);
    gpu_give(block, q);
    return r;
}

/* Copies the addend to out unless it is out itself. */
static duet_status place_addend(const step *s, const frame *f, queue *q)
{
    const operand *to = &s->out[0];
    const part addend = gemm_addend(s, f);
    const bool same = f->data[to->slot] == addend.p && layout_is_dense(&s->in[2].at);
    if (same) return DUET_OK;
    return gpu_apply(OP_LOAD, f->data[to->slot], &to->at, &addend, 1, q);
}

static duet_status products(const step *s, const pile *a, const pile *b, const frame *f, gemm_scale by,
                            queue *q)
{
    bool begun = gemm_has_addend(s);
    if (by.alpha == 0 || (gemm_has_addend(s) && by.beta == 0)) return by_zero(s, a, b, f, by, q);
    TRY(gemm_open(q)); /* all allocations must come before the first write to out */
    if (gemm_has_addend(s)) TRY(place_addend(s, f, q));
    const duet_status r = all_calls(s, a, b, f->data[s->out[0].slot], by, q, &begun);
    if (!begun) return r;
    return half_written(r);
}

duet_status gpu_batched(const step *s, const frame *f, queue *q)
{
    gemm_scale by = gemm_scale_of(s, f);
    pile a, b = { 0 };
    if (s->in[0].at.size[s->in[0].at.rank - 1] == 0) return gemm_of_nothing(s, f, q, by);
    duet_status r = pile_of(&s->in[0], f, q, &a);
    if (r == DUET_OK) r = pile_of(&s->in[1], f, q, &b);
    if (r == DUET_OK) r = products(s, &a, &b, f, by, q);
    gpu_give(a.block, q);
    gpu_give(b.block, q);
    return r;
}
