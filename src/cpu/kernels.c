/* kernels.c - the registry of CPU kernels: for each kernel number the entry of the kernel that runs such steps. To add a kernel,
 * define its entry beside its code and add one line to `registered`. */
#include "conv.h"
#include "cpu_kernels.h"
#include "dtype.h"
#include "epilogue.h"
#include "fft.h"
#include "gather.h"
#include "lapack.h"
#include "layer_norm.h"
#include "move_program.h"
#include "random_step.h"
#include <limits.h>
#include <stdlib.h>

/* ---- kernels that are compiled for each element type ---- */

duet_dtype step_computes_in(const step *s)
{
    if (kernel_may_fail(s->kernel)) return s->in[0].at.type;
    return s->kernel == KERNEL_PROGRAM ? s->program->code[0].type : s->out[0].at.type;
}

/* Runs the instance of a function for the step's element type and the instruction set in use. */
#define RUN_TYPED(name, member)                                                                              \
    static duet_status name(const step *s, const frame *f)                                                   \
    {                                                                                                        \
        return kernels_of(step_computes_in(s))->member(s, f);                                                \
    }
RUN_TYPED(run_fused, program)
RUN_TYPED(run_softmax, softmax)
RUN_TYPED(run_layer_norm, norm)
RUN_TYPED(run_pool2d, pool2d)
RUN_TYPED(run_pool_grad, pool_grad)
RUN_TYPED(run_matmul, matmul)
RUN_TYPED(run_batched, batched)
RUN_TYPED(run_random, random)
RUN_TYPED(run_linalg, linear)

static duet_status run_program(const step *s, const frame *f)
{
    const kernels *k = kernels_of(step_computes_in(s));
    return (s->program->reductions ? k->reduction : k->program)(s, f);
}

/* ---- programs ---- */

static bool gives_index(const step *s, int output)
{
    bool index = false;
    for (int k = 0; k < s->program->length; k++) {
        const instruction *i = &s->program->code[k];
        index |= op_infos[i->op].flags & OP_GIVES_INDEX && i->arg[2].index == output;
    }
    return index;
}

/* Does the interpreter of this type have the instruction? */
static bool has_instruction(const instruction *i, duet_dtype type)
{
    const bool integers = dtype_is_integer(type);
    if (op_infos[i->op].kind == KIND_MAP || op_infos[i->op].kind == KIND_REDUCE)
        return (op_infos[i->op].flags & (integers ? OP_INTEGERS : OP_FLOATS)) != 0;
    if (i->op == OP_WRAP)
        return integers && (dtype_is_integer(i->arg[1].index) || i->arg[1].index == DUET_BOOL);
    return i->op == OP_LOAD || i->op == OP_SAVE || i->op == OP_STORE;
}

static bool has_real_operands(const step *s)
{
    bool real = true;
    for (int k = 0; k < s->outs; k++) real &= s->out[k].at.type < DUET_C64;
    for (int k = 0; k < s->ins; k++) real &= s->in[k].at.type < DUET_C64;
    return real;
}

static const char *program_unsupported(const step *s)
{
    const duet_dtype type = step_computes_in(s);
    const bool computes = type == DUET_F32 || type == DUET_F64 || type == DUET_I64 || type == DUET_U64;
    if (!computes)
        return is_move_program(s) && s->out[0].at.type == type
                   ? NULL
                   : "arithmetic on this element type is not implemented";
    if (!has_real_operands(s)) return "element-wise programs have no complex elements";
    for (const instruction *i = s->program->code; i < s->program->code + s->program->length; i++) {
        if (i->type != type) return "all instructions must have one element type";
        if (!has_instruction(i, type))
            return dtype_is_integer(type) ? "the operator is not defined for integers"
                                          : "the operator is defined for integers only";
    }
    for (int k = 0; k < s->outs; k++)
        if (gives_index(s, k) && s->out[k].at.type != DUET_I64) return "indices must be i64";
    return NULL;
}

void program_forget(step *s)
{
    free(s->cached);
    s->cached = NULL;
}

/* ---- kernels whose operands have one type, f32 or f64 ---- */

static bool has_one_type(const step *s)
{
    bool one = true;
    for (int k = 0; k < s->outs; k++) one &= s->out[k].at.type == s->out[0].at.type;
    for (int k = 0; k < s->ins; k++) one &= s->in[k].at.type == s->out[0].at.type;
    return one;
}

const char *float_step_unsupported(const step *s)
{
    if (!has_one_type(s)) return "the operands must have the same element type";
    return s->out[0].at.type >= FLOAT_TYPES ? "the element type is not supported" : NULL;
}

/* ---- matrix products: CBLAS counts sizes in int ---- */

#define TOO_LARGE_FOR_BLAS "a size above 2^31 - 1, more than BLAS can count"

static const char *matmul_unsupported(const step *s)
{
    const int64_t *out = s->out[0].at.size + s->out[0].at.rank - 2;
    if (!has_one_type(s)) return "the operands must have the same element type";
    if (is_int_gemm(s))
        return s->epilogue || s->nums || s->ins != 2
                   ? "a product of integers must have two operands and no factor"
                   : NULL;
    if (s->out[0].at.type >= FLOAT_TYPES) return "the element type is not supported";
    const int64_t inner = s->in[0].at.size[s->in[0].at.rank - 1];
    return out[0] > INT_MAX || out[1] > INT_MAX || inner > INT_MAX ? TOO_LARGE_FOR_BLAS : NULL;
}

static const char *matmul_algorithm(const step *s)
{
    if (is_int_gemm(s)) return "by Duet's kernels, modulo 2^64";
    return s->math ? "strict: the CPU knows no other mode" : "strict";
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
    return norm_refuses(s);
}

/* ---- entries ---- */

static const char *fft_algorithm(const step *s) { return (void)s, "by FFTW"; }

static const char *lapack_algorithm(const step *s)
{
    return s->kernel == OP_solve && s->attr.solver.refine ? "by LAPACK, from f32" : "by LAPACK";
}

static duet_status run_scan(const step *s, const frame *f)
{
    static run_function *const scans[] = {
        [DUET_F32] = run_scan_f32, [DUET_F64] = run_scan_f64, [DUET_I64] = run_scan_i64
    };
    return scans[s->out[0].at.type](s, f);
}

static const cpu_kernel program_kernel = { program_unsupported, run_program, .forget = program_forget };
static const cpu_kernel fused_kernel = { float_step_unsupported, run_fused, .forget = program_forget };
static const cpu_kernel matmul_kernel = { matmul_unsupported, run_matmul, matmul_algorithm, matmul_forget };
static const cpu_kernel batched_kernel = { matmul_unsupported, run_batched, matmul_algorithm };
static const cpu_kernel convolution_kernel = { conv_unsupported, run_conv, matmul_algorithm, conv_forget };
static const cpu_kernel pool2d_kernel = { float_step_unsupported, run_pool2d };
static const cpu_kernel pool_grad_kernel = { float_step_unsupported, run_pool_grad };
static const cpu_kernel softmax_kernel = { float_step_unsupported, run_softmax };
static const cpu_kernel layer_norm_kernel = { layer_norm_unsupported, run_layer_norm };
static const cpu_kernel random_numbers_kernel = { random_step_refuses, run_random };
static const cpu_kernel fft_kernel = { fft_refuses, run_fourier, fft_algorithm, fourier_forget };
static const cpu_kernel fft_shift_kernel = { fft_refuses, run_fourier, .forget = fourier_forget };
static const cpu_kernel linalg_kernel = { linear_refuses, run_linalg, lapack_algorithm };
static const cpu_kernel scan_kernel = { order_refuses, run_scan };
static const cpu_kernel take_kernel = { order_refuses, run_take };
static const cpu_kernel scatter_kernel = { order_refuses, run_scatter };
static const cpu_kernel sort_kernel = { order_refuses, run_sort };
static const cpu_kernel histogram_kernel = { order_refuses, run_histogram };

/* ---- the registry: one line a kernel ---- */

static const cpu_kernel *const registered[KERNELS_ALL] = {
    [KERNEL_PROGRAM] = &program_kernel,
#define DUET_FUSED(name, ...) [KERNEL_##name] = &fused_kernel,
#include "fused.def"
    [OP_matmul] = &matmul_kernel,
    [KERNEL_BATCHED] = &batched_kernel,
    [OP_conv2d] = &convolution_kernel,
    [OP_conv2d_input_grad] = &convolution_kernel,
    [OP_conv2d_filter_grad] = &convolution_kernel,
    [OP_max_pool2d] = &pool2d_kernel,
    [OP_avg_pool2d] = &pool2d_kernel,
    [OP_max_pool2d_grad] = &pool_grad_kernel,
    [OP_avg_pool2d_grad] = &pool_grad_kernel,
    [OP_upsample2d] = &pool_grad_kernel,
    [OP_softmax] = &softmax_kernel,
    [OP_log_softmax] = &softmax_kernel,
    [KERNEL_LAYER_NORM] = &layer_norm_kernel,
    [KERNEL_RANDOM] = &random_numbers_kernel,
    [OP_fftn] = &fft_kernel,
    [OP_fftconvolve] = &fft_kernel,
    [OP_fftshift] = &fft_shift_kernel,
    [OP_cumsum] = &scan_kernel,
    [OP_cumprod] = &scan_kernel,
    [OP_take] = &take_kernel,
    [OP_take_along_axis] = &take_kernel,
    [OP_one_hot] = &take_kernel,
    [OP_put] = &scatter_kernel,
    [OP_scatter_add] = &scatter_kernel,
    [OP_scatter_max] = &scatter_kernel,
    [OP_sort] = &sort_kernel,
    [OP_argsort] = &sort_kernel,
    [OP_top_k] = &sort_kernel,
    [OP_top_k_indices] = &sort_kernel,
    [OP_histogram] = &histogram_kernel,
    [OP_kron] = &cpu_kernel_kron,
    [OP_inv] = &linalg_kernel,
    [OP_det] = &linalg_kernel,
    [OP_logdet] = &linalg_kernel,
    [OP_cholesky] = &linalg_kernel,
    [OP_eigvalsh] = &linalg_kernel,
    [OP_svdvals] = &linalg_kernel,
    [OP_solve] = &linalg_kernel,
    [OP_solve_triangular] = &linalg_kernel,
    [OP_lstsq] = &linalg_kernel,
#define DUET_FACTOR2(name, ...) [KERNEL_##name] = &linalg_kernel,
#define DUET_FACTOR3(name, ...) [KERNEL_##name] = &linalg_kernel,
#include <duet/factor.def>
};

const cpu_kernel *cpu_kernel_of(int kernel) { return registered[kernel]; }
