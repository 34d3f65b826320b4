/* step_flops.c - how many bytes a step moves, and how many operations it takes. */
#include "fourier.h"
#include "linalg_batch.h"
#include "step.h"

static double distinct_bytes(const layout *l)
{
    double n = (double)dtypes[l->type].bytes;
    for (int i = 0; i < l->rank; i++) n *= l->stride[i] ? (double)l->size[i] : 1;
    return n;
}

static int program_flops(const program *p)
{
    int n = 0;
    for (int i = 0; i < p->length; i++) n += p->code[i].op == OP_fma ? 2 : p->code[i].op < OPS;
    return n;
}

/* The number of operations of the usual algorithms for a real matrix. in[0] is a stack of m x n. */
static double real_solver_flops(const step *s)
{
    const double m = (double)linalg_rows(s), n = (double)linalg_cols(s), least = m < n ? m : n,
                 sides = (double)linalg_sides(s);
    switch (s->kernel) {
    case OP_inv: return 2 * n * n * n;
    case OP_cholesky: return n * n * n / 3;
    case OP_eigvalsh: return 4 * n * n * n / 3;
    case OP_eigvals: return 10 * n * n * n;
    case OP_expm: return 20 * n * n * n;
    case OP_svdvals: return 8 * m * n * least / 3;
    case OP_solve_triangular: return n * n * sides;
    case OP_solve: return 2 * n * n * n / 3 + 2 * n * n * sides;
    case OP_lstsq: return 2 * m * n * least + 4 * m * n * sides;
    default: return 2 * n * n * n / 3;
    }
}

static double solver_flops(const step *s)
{
    return (double)linalg_batch_of(s).count * real_solver_flops(s) *
           (dtype_is_complex(s->in[0].at.type) ? 4 : 1);
}

/* The number of elements of one filter. */
static double filter_count(const operand *w)
{
    double n = 1;
    for (int a = 1; a < w->at.rank; a++) n *= (double)w->at.size[a];
    return n;
}

static double outputs_of(const step *s) { return (double)layout_count(&s->out[0].at); }

static double product_flops(const step *s)
{
    return 2 * outputs_of(s) * (double)s->in[0].at.size[s->in[0].at.rank - 1];
}

static double conv_flops(const step *s)
{
    const int32_t *stride = s->attr.conv.pool.stride;
    const double each = epilogue_infos[s->epilogue].pooled ? (double)stride[0] * stride[1] : 1;
    return 2 * outputs_of(s) * each * filter_count(&s->in[1]);
}

static double conv_grad_flops(const step *s)
{
    const conv_operands o = conv_operands_of(s);
    return 2 * (double)layout_count(&o.y->at) * filter_count(o.w);
}

static double window_count(const step *s) { return (double)s->attr.pool.window[0] * s->attr.pool.window[1]; }
static double pool_flops(const step *s) { return outputs_of(s) * window_count(s); }
static double pool_grad_flops(const step *s)
{
    return outputs_of(s) + (double)layout_count(&s->in[s->ins - 1].at) * window_count(s);
}

/* Of sparse matrices: a product of each element for each column of a dense operand. */
static double columns_of(const layout *l) { return l->rank > 1 ? (double)l->size[1] : 1; }
static double csr_product_flops(const step *s)
{
    return 2 * (double)layout_count(&s->in[0].at) * columns_of(&s->in[2].at);
}
static double csr_sample_flops(const step *s) { return 2 * outputs_of(s) * columns_of(&s->in[0].at); }

static double layer_norm_flops(const step *s) { return 10 * outputs_of(s); }
static double map_flops(const step *s) { return outputs_of(s) * program_flops(s->program); }

/* For each kernel its number of operations. NULL: solver_flops for kernels that may fail, else two
 * operations for each element of the first operand. */
static double (*const flops_by[KERNELS_ALL])(const step *s) = {
    [KERNEL_PROGRAM] = map_flops,
    [OP_matmul] = product_flops,
    [KERNEL_BATCHED] = product_flops,
    [OP_conv2d] = conv_flops,
    [OP_conv2d_input_grad] = conv_grad_flops,
    [OP_conv2d_filter_grad] = conv_grad_flops,
    [OP_max_pool2d] = pool_flops,
    [OP_avg_pool2d] = pool_flops,
    [OP_max_pool2d_grad] = pool_grad_flops,
    [OP_avg_pool2d_grad] = pool_grad_flops,
    [KERNEL_LAYER_NORM] = layer_norm_flops,
    [OP_csr_matmul] = csr_product_flops,
    [OP_csr_solve_triangular] = csr_product_flops,
    [OP_csr_solve] = csr_product_flops, /* without those of the elements that factors fill */
    [OP_csr_sddmm] = csr_sample_flops,
    [OP_fftn] = fourier_flops,
    [OP_fftshift] = fourier_flops,
    [OP_fftconvolve] = fourier_flops,
};

static double step_flops(const step *s)
{
    if (flops_by[s->kernel]) return flops_by[s->kernel](s);
    if (kernel_may_fail(s->kernel)) return solver_flops(s);
    if (!s->ins) return 0;
    return 2 * (double)layout_count(&s->in[0].at);
}

void step_estimate(step *s)
{
    for (int k = 0; k < s->outs; k++) s->bytes += distinct_bytes(&s->out[k].at);
    for (int k = 0; k < s->ins; k++) s->bytes += distinct_bytes(&s->in[k].at);
    s->flops = step_flops(s);
}
