/* fused.c - launches the kernels of fused rows. Each row has a flat and a strided kernel. */
#include "dtype.h"
#include "elementwise_operands.h"

/* A row: its kernels, and the numbers of its formula. */
typedef struct fused {
    const void *flat, *strided;
    double s, r;
} fused;

static fused fused_of(const step *s, const frame *f)
{
    const void *(*kernel)(int row, int form) =
        s->out[0].at.type == DUET_F64 ? fused_kernel_f64 : fused_kernel_f32;
    fused r = { .flat = kernel(s->kernel, FORM_FLAT), .strided = kernel(s->kernel, FORM_STRIDED) };
    if (s->nums > 0) r.s = f->num[s->num[0]];
    if (s->nums > 1) r.r = f->num[s->num[1]];
    return r;
}

/* Describes how a flat kernel reads operand k. false: it cannot. */
static bool flat_operand_of(const operands *o, int k, flat_operand *to)
{
    cycle c;
    *to = (flat_operand){ .at = o->at[k] };
    if (layout_is_dense(&o->of[k])) {
        to->how = operand_lead(o, k) == operand_lead(o, 0) ? HOW_VECTORS : HOW_SCALARS;
        return true;
    }
    if (!cycle_of(&o->of[k], &c) || layout_count(&o->of[0]) > INT32_MAX) return false;
    to->how = cycle_how(&c, operands_width(o));
    to->run = divide_by32(c.run);
    to->size = divide_by32(c.size);
    to->stride = (int32_t)c.stride;
    return true;
}

/* Launches the flat kernel, if all operands allow it. For small arrays a thread computes one vector, so
 * that there are more threads. An input that the row does not have is the number 0. */
static bool flat(const operands *o, const fused *row, cudaStream_t q, cudaError_t *e)
{
    const int64_t n = layout_count(&o->of[0]), width = operands_width(o);
    flat_args a = { .out = o->at[0], .n = n, .lead = operand_lead(o, 0), .s = row->s, .r = row->r };
    if (!layout_is_dense(&o->of[0])) return false;
    for (int k = 1; k < o->count; k++)
        if (!flat_operand_of(o, k, &a.in[k - 1])) return false;
    const int64_t vectors = (a.lead + n + width - 1) / width;
    a.rounds = vectors <= POINT_SMALL ? 1 : POINT_ROUNDS;
    const int64_t each = (int64_t)POINT_THREADS * a.rounds;
    *e = launch(row->flat, (vectors + each - 1) / each, POINT_THREADS, 0, &a, q);
    return true;
}

static cudaError_t strided_part(const operands *o, const fused *row, cudaStream_t q)
{
    strided_args a = {
        .s = row->s, .r = row->r, .n = (uint32_t)layout_count(&o->of[0]), .rank = o->of[0].rank
    };
    for (int x = 0; x < a.rank; x++) a.size[x] = divide_by32(o->of[0].size[x]);
    for (int k = 0; k < o->count; k++) {
        a.at[k] = o->at[k];
        operand_strides(&o->of[k], a.stride[k]);
    }
    const int64_t each = POINT_THREADS * STRIDED_EACH;
    return launch(row->strided, (a.n + each - 1) / each, POINT_THREADS, 0, &a, q);
}

/* Launches the strided kernel. Halves the operands until 32-bit indices suffice: the kernel only divides
 * 32-bit numbers. */
static cudaError_t strided(const operands *o, const fused *row, cudaStream_t q)
{
    operands low, high;
    if (operands_fit(o)) return strided_part(o, row, q);
    operands_halve(o, &low, &high);
    cudaError_t e = strided(&low, row, q);
    if (e != cudaSuccess) return e;
    return strided(&high, row, q);
}

cudaError_t fused_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    operands o;
    cudaError_t e;
    const fused row = fused_of(s, f);
    operands_take(&o, s, f, dtypes[s->out[0].at.type].bytes);
    if (layout_count(&o.of[0]) == 0) return cudaSuccess;
    operands_order(&o);
    if (flat(&o, &row, q, &e)) return e;
    return strided(&o, &row, q);
}
