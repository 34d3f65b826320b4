/* kernels.c - the entries of kernels that are compiled for several element types or that a vendor's
 * library implements. The other kernels define their entry in the file that has their code. */
#include "conv.h"
#include "cpu_kernels.h"
#include "dtype.h"
#include "epilogue.h"
#include "fft.h"
#include "gather.h"
#include "lapack.h"
#include "layer_norm.h"
#include "random_step.h"
#include <limits.h>

/* ---- kernels that are compiled for each element type ---- */

/* Runs the function for the step's element type and the instruction set in use. */
#define RUN_ISA(name, member)                                                                                \
    static duet_status name(const step *s, const frame *f)                                                   \
    {                                                                                                        \
        return isa_functions_of(step_computes_in(s))->member(s, f);                                          \
    }
RUN_ISA(run_softmax, softmax)
RUN_ISA(run_layer_norm, norm)
RUN_ISA(run_pool2d, pool2d)
RUN_ISA(run_random, random)

/* Functions that are compiled for each element type only. */
#define DUET_DTYPE(NAME, name, ...)                                                                          \
    run_function run_matmul_##name, run_batched_##name, run_linear_##name, run_pool_grad_##name;
#define DUET_COMPLEX(NAME, name, ...) run_function run_linear_##name;
#include <duet/dtype.def>
run_function run_int_gemm;

static const struct typed_functions {
    run_function *matmul, *batched, *pool_grad, *linear;
} typed[DUET_DTYPE_COUNT] = {
#define DUET_DTYPE(NAME, name, ...)                                                                          \
    [DUET_##NAME] = { run_matmul_##name, run_batched_##name, run_pool_grad_##name, run_linear_##name },
#define DUET_COMPLEX(NAME, name, ...) [DUET_##NAME] = { .linear = run_linear_##name },
#include <duet/dtype.def>
    [DUET_I64] = { .matmul = run_int_gemm, .batched = run_int_gemm },
};

/* Runs the function for the step's element type. */
#define RUN_TYPED(name, member)                                                                              \
    static duet_status name(const step *s, const frame *f) { return typed[step_computes_in(s)].member(s, f); }
RUN_TYPED(run_matmul, matmul)
RUN_TYPED(run_batched, batched)
RUN_TYPED(run_pool_grad, pool_grad)
RUN_TYPED(run_linalg, linear)

/* ---- matrix products: CBLAS counts sizes in int ---- */

#define TOO_LARGE_FOR_BLAS "a size above 2^31 - 1, more than BLAS can count"

static const char *matmul_unsupported(const step *s)
{
    const int64_t *out = s->out[0].at.size + s->out[0].at.rank - 2;
    if (!step_has_one_type(s)) return "the operands must have the same element type";
    if (is_int_gemm(s))
        return s->epilogue || s->nums || s->ins != 2
                   ? "a product of integers must have two operands and no factor"
                   : NULL;
    if (!dtype_is_f32_or_f64(s->out[0].at.type)) return "the element type is not supported";
    const int64_t inner = s->in[0].at.size[s->in[0].at.rank - 1];
    return out[0] > INT_MAX || out[1] > INT_MAX || inner > INT_MAX ? TOO_LARGE_FOR_BLAS : NULL;
}

static const char *matmul_algorithm(const step *s)
{
    if (is_int_gemm(s)) return "by Duet's kernels, modulo 2^64";
    return s->math ? "strict: the CPU has no other mode" : "strict";
}

/* Can CBLAS read the operand where it is? */
static bool is_read_in_place(const operand *o)
{
    const layout *l = &o->at;
    const int64_t rows = l->size[0], columns = l->size[1], down = l->stride[0], across = l->stride[1];
    return (across == 1 && down >= columns && down <= INT_MAX) ||
           (down == 1 && across >= rows && across <= INT_MAX);
}

/* An epilogue needs memory. So would an alpha or beta of 0, but plans have none (graph/fold_gemm.c). BLAS has
 * its memory (machine.make_sure). */
static bool matmul_is_sure(const step *s)
{
    return !is_int_gemm(s) && !s->epilogue && s->in[0].at.size[1] > 0 && is_read_in_place(&s->in[0]) &&
           is_read_in_place(&s->in[1]);
}

static void matmul_forget(step *s)
{
    if (s->epilogue) epilogue_cache_free(s);
}

/* ---- convolutions: sizes of unrolled images are those of a product ---- */

static const char *conv_unsupported(const step *s)
{
    const char *why = float_step_unsupported(s);
    if (why) return why;
    const conv g = conv_of(s);
    const double taps = (double)g.depth * (double)g.kd * (double)g.kh * (double)g.kw,
                 pixels = (double)g.od * (double)g.oh * (double)g.ow;
    return g.m > INT_MAX || taps > INT_MAX || pixels > INT_MAX ? TOO_LARGE_FOR_BLAS : NULL;
}

static void conv_forget(step *s)
{
    if (s->epilogue) onednn_conv_fused_forget(s);
    else onednn_forget(s);
}

/* ---- layer_norm: a row is the work of one thread ---- */

#define LONG_ROW 65536 /* elements: enough work for several threads */
#define FEW_ROWS 8

static const char *layer_norm_unsupported(const step *s)
{
    const char *why = float_step_unsupported(s);
    if (why) return why;
    const int64_t n = norm_length(s);
    if (n > LONG_ROW && layout_count(&s->out[0].at) < FEW_ROWS * n)
        return "for few long rows, separate operators are faster";
    return norm_unsupported(s);
}

/* ---- entries ---- */

static const char *fft_algorithm(const step *s) { return "by FFTW"; }

static const char *lapack_algorithm(const step *s)
{
    return s->kernel == OP_solve && s->attr.solver.refine ? "by LAPACK, from f32" : "by LAPACK";
}

/* Longer scans may be divided among threads, with memory for the results of the parts. */
static bool scan_is_sure(const step *s) { return s->in[0].at.size[s->attr.index.axis] < 2 * SCAN_BLOCK; }

static duet_status run_scan(const step *s, const frame *f)
{
    static run_function *const scans[] = {
        [DUET_F32] = run_scan_f32, [DUET_F64] = run_scan_f64, [DUET_I64] = run_scan_i64
    };
    return scans[s->out[0].at.type](s, f);
}

const cpu_kernel cpu_kernel_matmul = { matmul_unsupported, run_matmul, cost_of_product, matmul_algorithm,
                                       matmul_forget,      true,       matmul_is_sure };
const cpu_kernel cpu_kernel_batched = { matmul_unsupported, run_batched, cost_of_batched, matmul_algorithm,
                                        .calls_library = true };
const cpu_kernel cpu_kernel_conv = { conv_unsupported, run_conv,    cost_of_conv,
                                     matmul_algorithm, conv_forget, true };
const cpu_kernel cpu_kernel_pool2d = { float_step_unsupported, run_pool2d, cost_of_pooling,
                                       .is_sure = always_sure };
const cpu_kernel cpu_kernel_pool_grad = { float_step_unsupported, run_pool_grad, cost_of_flops,
                                          .is_sure = always_sure };
const cpu_kernel cpu_kernel_softmax = { float_step_unsupported, run_softmax, cost_of_softmax,
                                        .is_sure = always_sure };
const cpu_kernel cpu_kernel_layer_norm = { layer_norm_unsupported, run_layer_norm, cost_of_flops,
                                           .is_sure = always_sure };
const cpu_kernel cpu_kernel_random = { random_step_unsupported, run_random, cost_of_flops };
const cpu_kernel cpu_kernel_fft = { fft_unsupported, run_fourier,    cost_of_transform,
                                    fft_algorithm,   fourier_forget, true };
const cpu_kernel cpu_kernel_linalg = { linear_unsupported, run_linalg, cost_of_solver, lapack_algorithm,
                                       .calls_library = true };
const cpu_kernel cpu_kernel_scan = { index_arithmetic_unsupported, run_scan, cost_of_pass,
                                     .is_sure = scan_is_sure };
