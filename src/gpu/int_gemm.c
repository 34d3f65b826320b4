/* int_gemm.c - products of integers on the GPU. No vendor library has products of 64-bit integers,
 * so each element is a reduction along the inner axis, executed by the interpreter. */
#include "kernels.h"
#include "step_kinds.h"

static const program dot = { .length = 1,
                             .inputs = 2,
                             .outputs = 1,
                             .reductions = true,
                             .code = {
                                 { OP_dot, DUET_I64, { { FROM_INPUT, 0 }, { FROM_INPUT, 1 }, { 0, 0 } } } } };

/* An operand as an array with the leading axes, the rows, the columns and the inner axis. Its stride
 * is 0 along an axis that it does not have. */
static layout spread(const layout *l, const step *s, int64_t down, int64_t across, int64_t inner)
{
    layout r = *l;
    const layout *out = &s->out[0].at;
    const int last = out->rank;
    for (int i = 0; i < last; i++) r.size[i] = out->size[i];
    r.rank = last + 1;
    r.size[last] = s->in[0].at.size[last - 1];
    r.stride[last - 2] = down;
    r.stride[last - 1] = across;
    r.stride[last] = inner;
    return r;
}

/* Merges the axes of the outputs separately from the reduced axis. */
static void collapse(step *s)
{
    layout *const all[] = { &s->out[0].at, &s->in[0].at, &s->in[1].at };
    layout inner[3];
    for (int k = 0; k < 3; k++) {
        const int last = --all[k]->rank;
        inner[k] = (layout){ .rank = 1, .size = { all[k]->size[last] }, .stride = { all[k]->stride[last] } };
    }
    layout_collapse(all, 3);
    if (layout_count(all[0]) == 1)
        for (int k = 0; k < 3; k++) all[k]->rank = 0;
    for (int k = 0; k < 3; k++) {
        const int last = all[k]->rank++;
        all[k]->size[last] = inner[k].size[0];
        all[k]->stride[last] = inner[k].stride[0];
    }
}

/* Returns false if there are too many axes. */
static bool reduction_of(const step *s, step *r)
{
    const layout *a = &s->in[0].at, *b = &s->in[1].at, *out = &s->out[0].at;
    const int last = out->rank - 1;
    if (out->rank == DUET_RANK_MAX) return false;
    *r = *s;
    r->kernel = KERNEL_PROGRAM;
    r->program = &dot;
    r->inner = 1;
    r->cached = NULL;
    r->out[0].at = spread(out, s, out->stride[last - 1], out->stride[last], 0);
    r->in[0].at = spread(a, s, a->stride[last - 1], 0, a->stride[last]);
    r->in[1].at = spread(b, s, 0, b->stride[last], b->stride[last - 1]);
    collapse(r);
    return true;
}

const char *gpu_int_gemm_unsupported(const step *s)
{
    step r;
    if (s->epilogue || s->nums || s->ins != 2)
        return "a product of integers must have two operands and no factor";
    if (reduction_of(s, &r)) return kernels_unsupported(&r);
    return "a product of integers may have at most five leading axes";
}

duet_status gpu_int_gemm(const step *s, const frame *f, queue *q)
{
    step r;
    if (!layout_count(&s->out[0].at) || !reduction_of(s, &r)) return DUET_OK;
    return gpu_launch(&r, f, q);
}
