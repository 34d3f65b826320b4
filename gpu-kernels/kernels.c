/* kernels.c - which steps the kernels take, and the way of each to its family. */
#include "launch.h"

#define REFUSE(condition, why)                                                                                                   \
    if (condition) return why

static bool moves_alone(const program *p)
{
    for (int i = 0; i < p->length; i++)
        if (p->code[i].op < OPS) return false;
    return p->numbers == 0;
}

static const char *refuse_program(const step *s)
{
    machine_program m;
    REFUSE(!s->program, "a step without its program");
    REFUSE(s->out[0].at.type == DUET_I64 && !moves_alone(s->program), "operators on elements of i64");
    return machine_encode(&m, s->program, NULL, s->out[0].at.type != DUET_F32);
}

static const char *refuse_type(const step *s)
{
    const duet_dtype type = s->out[0].at.type;
    REFUSE(s->outs != 1 && s->kernel != KERNEL_PROGRAM, "more than one output");
    REFUSE(type != DUET_F32 && type != DUET_F64 && s->kernel != KERNEL_PROGRAM, "elements that are neither f32 nor f64");
    for (int k = 1; k < s->outs; k++) REFUSE(s->out[k].at.type != type, "outputs of different element types");
    for (int k = 0; k < s->ins; k++) REFUSE(s->in[k].at.type != type, "operands of different element types");
    return NULL;
}

static bool is_fused(int kernel) { return kernel > KERNEL_PROGRAM && kernel < KERNELS; }

static bool is_fold(int kernel) { return kernel < OPS && op_infos[kernel].kind == KIND_FOLD; }

const char *kernels_refuse(const step *s)
{
    const char *why = refuse_type(s);
    if (why) return why;
    if (s->kernel == KERNEL_PROGRAM) return refuse_program(s);
    if (is_fused(s->kernel)) return s->ins > POINT_INPUTS || s->nums > 2 ? "a fused row of too many operands" : NULL;
    if (is_fold(s->kernel)) return NULL;
    switch (s->kernel) {
    case OP_softmax:
    case OP_log_softmax: return NULL;
    case OP_max_pool2d:
    case OP_avg_pool2d: return pool2d_fits(s) ? NULL : "an image of 2^31 elements or more a plane";
    case OP_matmul: return skinny_fits(s) ? NULL : "a product of many columns, or with an addend";
    default: return "there is no kernel for this operator";
    }
}

size_t kernels_scratch(const step *s)
{
    if (s->kernel == OP_softmax || s->kernel == OP_log_softmax) return softmax_scratch(s);
    return is_fold(s->kernel) ? fold_scratch(s) : 0;
}

cudaError_t launch_step(const step *s, const frame *f, void *scratch, cudaStream_t q)
{
    if (s->kernel == KERNEL_PROGRAM) return machine_launch(s, f, q);
    if (is_fused(s->kernel)) return fused_launch(s, f, q);
    if (is_fold(s->kernel)) return fold_launch(s, f, scratch, q);
    switch (s->kernel) {
    case OP_softmax:
    case OP_log_softmax: return softmax_launch(s, f, scratch, q);
    case OP_max_pool2d:
    case OP_avg_pool2d: return pool2d_launch(s, f, q);
    case OP_matmul: return skinny_launch(s, f, q);
    default: return cudaErrorNotSupported;
    }
}

cudaError_t launch(const void *kernel, int64_t blocks, int threads, size_t shared, void *args, cudaStream_t q)
{
    if (!kernel) return cudaErrorInvalidDeviceFunction;
    if (blocks > INT32_MAX) return cudaErrorInvalidConfiguration;
    if (blocks == 0) return cudaSuccess;
    return cudaLaunchKernel(kernel, (dim3){ (unsigned)blocks, 1, 1 }, (dim3){ (unsigned)threads, 1, 1 }, &args, shared, q);
}

/* The least s with 2^s >= by. */
static uint32_t ceil_log2(uint64_t by) { return by <= 1 ? 0 : 64 - (uint32_t)__builtin_clzll(by - 1); }

divider32 divide_by32(int64_t by)
{
    const uint32_t s = ceil_log2((uint64_t)by);
    const uint64_t magic = by < 1 ? 0 : ((((uint64_t)1 << s) - (uint64_t)by) << 32) / (uint64_t)by + 1;
    return (divider32){ (uint32_t)by, (uint32_t)magic, s };
}

divider64 divide_by64(int64_t by)
{
    const uint32_t s = ceil_log2((uint64_t)by);
    const unsigned __int128 rest = (unsigned __int128)(((uint64_t)1 << s) - (uint64_t)by) << 64;
    return (divider64){ (uint64_t)by, by < 1 ? 0 : (uint64_t)(rest / (uint64_t)by) + 1, s };
}
