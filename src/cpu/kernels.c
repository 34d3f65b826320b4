/* kernels.c - the registry of CPU kernels as a table, and the entries of kernels that are compiled
 * for several element types or that a vendor's library implements. Other kernels define their
 * entry beside their code. */
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
    return norm_unsupported(s);
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

const cpu_kernel cpu_kernel_program = { program_unsupported, run_program, cost_of_program,
                                        .forget = program_forget };
const cpu_kernel cpu_kernel_fused = { float_step_unsupported, run_fused, cost_of_elements,
                                      .forget = program_forget };
const cpu_kernel cpu_kernel_matmul = { matmul_unsupported, run_matmul, cost_of_product, matmul_algorithm,
                                       matmul_forget };
const cpu_kernel cpu_kernel_batched = { matmul_unsupported, run_batched, cost_of_batched, matmul_algorithm };
const cpu_kernel cpu_kernel_conv = { conv_unsupported, run_conv, cost_of_conv, matmul_algorithm,
                                     conv_forget };
const cpu_kernel cpu_kernel_pool2d = { float_step_unsupported, run_pool2d, cost_of_pooling };
const cpu_kernel cpu_kernel_pool_grad = { float_step_unsupported, run_pool_grad, cost_of_flops };
const cpu_kernel cpu_kernel_softmax = { float_step_unsupported, run_softmax, cost_of_softmax };
const cpu_kernel cpu_kernel_layer_norm = { layer_norm_unsupported, run_layer_norm, cost_of_flops };
const cpu_kernel cpu_kernel_random = { random_step_unsupported, run_random, cost_of_flops };
const cpu_kernel cpu_kernel_fft = { fft_unsupported, run_fourier, cost_of_transform, fft_algorithm,
                                    fourier_forget };
const cpu_kernel cpu_kernel_linalg = { linear_unsupported, run_linalg, cost_of_solver, lapack_algorithm };
const cpu_kernel cpu_kernel_scan = { index_arithmetic_unsupported, run_scan, cost_of_pass };

/* ---- the registry ---- */

const cpu_kernel *const cpu_kernels[KERNELS_ALL] = {
#define CPU_KERNEL(number, entry) [number] = &entry,
#include "cpu_kernels.def"
};
