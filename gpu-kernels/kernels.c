/* kernels.c - the way of each step to its family. */
#include "launch.h"

#define REFUSE(condition, why)                                                                                                   \
    if (condition) return why

/* Operators other than the moves of the accumulator. */
static int operators(const program *p)
{
    int n = 0;
    for (int i = 0; i < p->length; i++) n += p->code[i].op < OPS;
    return n;
}

#define LONGER(n) "a program of " #n " operators: this machine runs them one by one",
#define TEN(t)                                                                                                                   \
    LONGER(t##0)                                                                                                                 \
    LONGER(t##1) LONGER(t##2) LONGER(t##3) LONGER(t##4) LONGER(t##5) LONGER(t##6) LONGER(t##7) LONGER(t##8) LONGER(t##9)
static const char *const longer[100] = { TEN() TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9) };

static bool from_outside(source a) { return a.kind == FROM_INPUT || a.kind == FROM_NUMBER; }

/* An operator over what the accumulator was loaded with (NULL: nothing), inputs and numbers. */
static const char *read_operator(const instruction *c, const source *loaded, source arg[3])
{
    for (int k = 0; k < op_infos[c->op].arity; k++) {
        arg[k] = c->arg[k].kind == FROM_ACC && loaded ? *loaded : c->arg[k];
        REFUSE(!from_outside(arg[k]), "an operand that the program has not loaded");
    }
    return NULL;
}

/* [LOAD a] [operator] STORE, with at least one of the first two. Refused or not, op and arg are what there is of them. */
const char *map_read(const program *p, int *op, source arg[3])
{
    const instruction *c = p->code, *end = p->code + p->length;
    const source *loaded = NULL;
    REFUSE(operators(p) > 1, longer[operators(p)]);
    *op = OP_LOAD;
    if (c < end && c->op == OP_LOAD) {
        loaded = &c->arg[0], arg[0] = c->arg[0], c++;
        REFUSE(!from_outside(arg[0]), "a LOAD of neither input nor number");
    }
    if (c < end && c->op < OPS) {
        REFUSE(op_infos[c->op].kind != KIND_MAP, "an operator that is not element by element");
        const char *why = read_operator(c, loaded, arg);
        *op = c->op, c++;
        if (why) return why;
    } else if (!loaded) return "a program that loads nothing";
    REFUSE(c == end || c->op != OP_STORE || c + 1 != end, "a program that is not LOAD, operator, STORE");
    return NULL;
}

static bool is_fused(int kernel) { return kernel > KERNEL_PROGRAM && kernel < KERNELS; }

static bool is_fold(const step *s) { return s->kernel == KERNEL_PROGRAM && s->program->folds; }

size_t kernels_scratch(const step *s)
{
    if (s->kernel == OP_softmax || s->kernel == OP_log_softmax) return softmax_scratch(s);
    return is_fold(s) ? fold_scratch(s) : 0;
}

cudaError_t launch_step(const step *s, const frame *f, void *scratch, cudaStream_t q)
{
    if (is_fold(s)) return fold_launch(s, f, scratch, q);
    if (s->kernel == KERNEL_PROGRAM) return map_launch(s, f, q);
    if (is_fused(s->kernel)) return fused_launch(s, f, q);
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
