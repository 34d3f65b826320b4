/* backend.h - what a machine must do. It receives finished steps and knows nothing of expressions. */
#ifndef BACKEND_H
#define BACKEND_H

#include "attributes.h"
#include "ops.h"
#include "program.h"
#include "shape.h"
#include "status.h"

/* Devices have a memory each. They are numbered: the host, the default GPU (DUET_DEVICE), then the other GPUs of this
 * process. Which of them exist, their machines say: machine.absent. */
enum { HOST, DEFAULT_GPU, DEVICES_MAX = 9 };

/* What a step does. Rows of ops.def of kind def keep their number. */
enum kernel {
    KERNEL_OPS = OPS,                        /* below: that operator */
    KERNEL_PROGRAM = OPS_ALL,                /* element by element, and reductions: step.program */
#define DUET_FUSED(name, ...) KERNEL_##name, /* the rows of fused.def */
#include "fused.def"
    KERNELS,
    KERNEL_RANDOM = KERNELS,                   /* random numbers */
    KERNEL_LAYER_NORM,                         /* rows, each less its mean and over its deviation */
    KERNEL_BATCHED,                            /* many products */
#define DUET_FACTOR2(name, ...) KERNEL_##name, /* the rows of factor.def */
#define DUET_FACTOR3(name, ...) KERNEL_##name,
#include <duet/factor.def>
    KERNELS_ALL
};

/* What is known of a kernel whatever machine runs it. */
typedef struct kernel_info {
    const char *name;
    bool is_map;   /* element by element over operands of equal sizes, or a program that reduces these */
    bool may_fail; /* a step may find that there is no result: whoever runs it waits for the answer */
} kernel_info;
extern const kernel_info kernel_infos[KERNELS_ALL];

static inline bool kernel_may_fail(int kernel) { return kernel_infos[kernel].may_fail; }

/* What the results of matmul and conv2d go through before they are written: the rows DUET_FINISHED of fused.def. */
enum epilogue {
    EPILOGUE_NONE,
#define DUET_FINISHED(name, ...) EPILOGUE_##name,
#include "fused.def"
    FINISHES
};

typedef struct epilogue_info {
    const char *name, *doc;
    int kernel, act; /* OP_ */
    bool pooled;
} epilogue_info;
extern const epilogue_info epilogue_infos[FINISHES];

#define STEP_INPUTS  PROGRAM_INPUTS
#define STEP_OUTPUTS PROGRAM_OUTPUTS
#define STEP_NUMBERS PROGRAM_NUMBERS
/* An operand of a step: an index into frame.data, and how to walk it from there. */
typedef struct operand {
    int slot;
    layout at;
} operand;

/* One pass, or one vendor call. Everything but addresses and numbers is fixed when the plan is made.
 *
 *   PROGRAM, fused rows   all operands have the sizes of the domain, collapsed; a stride of 0 repeats. An input may be an output
 *                         itself, element by element (same slot, same layout); no other input overlaps an output, and outputs do
 *                         not overlap each other. num: the program's numbers; of a fused row S, R. A program that reductions reduces
 *                         the last `inner` axes, one at least, which are collapsed by themselves: there the outputs have strides
 *                         of 0. Those axes may be empty: each output is then what its reduction makes of nothing. Its inputs overlap
 *                         no output. An output is of any real type, but i64 where its reduction gives an index. Without reductions, inner
 *                         is 0. What only moves, by LOAD and STORE alone, may be of any type.
 *   matmul                out = num[0] * in[0] in[1] + num[1] * in[2]. in[0] is m x k, in[1] k x n, out m x n, all rank 2,
 *                         any strides (a vector is a matrix with one row or column). ins is 2, or 3 with a number 1: then
 *                         in[2] is m x n and may be out itself. nums is 0, 1 or 2: a missing number is 1. Also of i64,
 *                         modulo 2^64: then ins is 2, nums 0, and there is no epilogue
 *   conv2d                in[0] n c h w, in[1] m c / groups h w, out n m h w. attr.conv. Or n c d h w,
 *                         m c / groups d h w, n m d h w
 *   batched               the same as matmul without a epilogue, for each index of the leading axes: all operands have one rank, 3
 *                         or more, the last two axes being those of matmul; before them an input's stride of 0 repeats
 *   a epilogue              matmul and conv2d with one have in[2], a bias of rank 1 over the columns or channels, any stride, and
 *                         no addend; then act; then, of a conv2d that is pooled, max_pool2d: out is what that gives
 *   conv2d_input_grad     in[0] the gradient of a conv2d's out, in[1] its in[1], out that of its in[0]. attr.conv,
 *                         without flip
 *   conv2d_filter_grad    in[0] its in[0], in[1] the gradient of its out, out that of its in[1]
 *   max_pool2d, avg_pool2d  attr.pool
 *   max_pool2d_grad       in[0] of max_pool2d, in[1] the gradient of its out. attr.pool
 *   avg_pool2d_grad       in[0] the gradient of avg_pool2d's out. attr.pool
 *   upsample2d            attr.upsample
 *   random                out = numbers of the law of attr.random, by num: core/random_params.h. No inputs. out: collapsed, any
 *                         strides, f32, f64, or, where the law gives whole numbers, i64; of a permutation one axis. Element i, in
 *                         row-major order, depends on law, num and i alone
 *   softmax, log_softmax  along the last axis; rank is 1 or more
 *   layer_norm            u = (x - mean) * rsqrt(num[0] + var) along the last `inner` axes of x, in[0], then fma(u, gain, bias),
 *                         or u where they are absent. attr.layer_norm. Gain and bias are the other operands, or the other numbers, in
 *                         this order. All operands have the sizes of x, whose axes are collapsed as those of a program that
 *                         reductions; core/norm.h says how they lie
 *   families of index_ops.h   as their rows of ops.def say, attr.index, one_hot or histogram; out is dense, inputs of any strides. An index
 *                         that is nowhere is BAD_ARGUMENT on the CPU, and nothing is written; on the GPU take gives 0 there,
 *                         one_hot zeros, and what is to be scattered there is left out
 *   fftn                  in[0] of any strides, real where the kind is REAL, which may be so where it is FORWARD or INVERSE; out
 *                         real where it is REAL_INVERSE. attr.fourier. Along its axes in[0] may have more elements than are
 *                         read, or fewer: then zeros follow
 *   fftshift              in[0] and out of one shape and type. attr.fourier
 *   fftconvolve           in[0], in[1], out real, of one rank. attr.overlap
 *   rows SOLVES of ops.def  out is dense and overlaps no input. in any strides, all of one type; a right-hand side may be a
 *                         vector. attr.solver of solve, attr.triangle of solve_triangular. Of complex in out may be
 *                         real: complex.def
 *   rows of factor.def    in[0] m x n, outs as the row says, OF_PART real, any strides; outs may overlap in[0], but not each
 *                         other
 *
 * Of matmul, batched, convolutions, pooling, softmax, layer_norm, fftn, fftshift and fftconvolve out is dense and overlaps no
 * input, but matmul's in[2], in[0] of softmax and layer_norm, and that of an fftn from complex to complex elements of one shape,
 * which may be out itself. Rows SOLVES and those of factor.def may end with SINGULAR, NOT_FINITE or NO_CONVERGENCE, no output
 * being touched. */
typedef struct step {
    int kernel;
    enum epilogue epilogue;
    uint8_t outs, ins, nums, inner;
    /* duet_math_mode: what is permitted here; of matmul and convolutions of f32 alone, else STRICT */
    uint8_t math;
    /* of the machine, among its kernels, which depends on nothing but the step; 0: not made yet */
    uint8_t choice;
    operand out[STEP_OUTPUTS], in[STEP_INPUTS];
    uint32_t num[STEP_NUMBERS]; /* indices into frame.num */
    attributes attr;            /* core/attributes.h */
    const program *program;     /* of PROGRAM alone; it lives as long as the step */
    double bytes, flops;
    void *kept; /* what the machine keeps for this step between runs; NULL at first; forget() frees it */
} step;

struct storage;
/* Whose memory an operand is: of a storage (core/matrix.h) that all of this run, or of all runs of what is being recorded, leaves
 * as it is; NULL: none, or not known. */
typedef struct owners {
    struct storage *(*of)(const struct owners *o, int slot);
} owners;

/* What a run binds: addresses of the operands, on this machine, and numbers. */
typedef struct frame {
    void *const *data;
    const double *num;
    int queue;           /* this thread's, on every device */
    int device;          /* the one that runs the step */
    const owners *owner; /* NULL: nothing is known of any operand */
} frame;

/* The operands of a convolution, or of one that goes back: which is the result depends on the kernel. */
typedef struct conv_operands {
    const operand *x, *w, *y;
} conv_operands;
static inline conv_operands conv_operands_of(const step *s)
{
    const operand *a = &s->in[0], *b = &s->in[1], *out = &s->out[0];
    if (s->kernel == OP_conv2d_input_grad) return (conv_operands){ out, b, a };
    if (s->kernel == OP_conv2d_filter_grad) return (conv_operands){ a, out, b };
    return (conv_operands){ a, b, out };
}

static inline bool is_conv_grad(int kernel)
{
    return kernel == OP_conv2d_input_grad || kernel == OP_conv2d_filter_grad;
}
static inline bool is_conv(int kernel)
{
    return kernel == OP_conv2d || kernel == OP_convolve2d || is_conv_grad(kernel);
}

/* A product of integers: sums modulo 2^64, without numbers, addend or epilogue. */
static inline bool is_whole_product(const step *s)
{
    return (s->kernel == OP_matmul || s->kernel == KERNEL_BATCHED) && s->out[0].at.type == DUET_I64;
}

static inline bool is_pool_grad(int kernel)
{
    return kernel == OP_max_pool2d_grad || kernel == OP_avg_pool2d_grad;
}

/* The windows of pooling, of its gradients, and of upsampling, where each is what an element of in[0] becomes. */
static inline const int32_t *spatial_window(const step *s)
{
    return s->kernel == OP_upsample2d ? s->attr.upsample.scale : s->attr.pool.window;
}

/* Has it more padding at the end of an axis than in front? */
static inline bool conv_is_unequal(const step *s)
{
    const int32_t *more = s->attr.conv.more;
    return more[SPATIAL_HEIGHT] || more[SPATIAL_WIDTH] || (s->in[0].at.rank > 4 && more[SPATIAL_DEPTH]);
}

/* Is a convolution one of images, with equal padding, and neither gaps in its windows, nor groups, nor turned filters? */
static inline bool conv_is_plain(const step *s)
{
    const conv_attributes *conv = &s->attr.conv;
    const bool has_gaps = conv->dilation[SPATIAL_HEIGHT] != 1 || conv->dilation[SPATIAL_WIDTH] != 1;
    return s->in[0].at.rank == 4 && !has_gaps && conv->groups == 1 && !conv->flip && !conv_is_unequal(s);
}

static inline struct storage *owned_by(const frame *f, int slot)
{
    if (!f->owner) return NULL;
    return f->owner->of(f->owner, slot);
}

/* A kind of device: how memory, queues and steps work there. Every function but `copy` is required. Each may be called
 * from any thread. run, upload, fetch, copy and clear are asynchronous: they take effect in the order of a queue.
 *
 * `device` is an index into devices[], of an entry of this machine. */
typedef struct machine {
    const char *name; /* "cpu" */
    duet_place place;

    /* NULL if the device can be used, else the reason: a text that stays valid. It is called often, so it must be cheap
     * after the first call. */
    const char *(*absent)(int device);
    void (*info)(FILE *out);
    /* One line with all that costs depend on: names and versions. */
    void (*identify)(char *text, size_t size);
    const struct costs *costs; /* used as long as none are measured: core/cost.h */

    /* Memory of the device, aligned to at least 64 bytes. Only core/pool.c calls alloc and free. */
    duet_status (*alloc)(int device, size_t bytes, void **p);
    void (*free)(int device, void *p);
    duet_status (*clear)(int device, void *p, size_t bytes, int queue);
    size_t (*room)(int device); /* bytes that can still be allocated; SIZE_MAX if unknown */

    /* Copies between host memory and the device's. download returns when the bytes have arrived, fetch may return before. */
    duet_status (*upload)(int device, void *own, const void *host, size_t bytes, int queue);
    duet_status (*download)(int device, void *host, const void *own, size_t bytes, int queue);
    duet_status (*fetch)(int device, void *host, const void *own, size_t bytes, int queue);
    /* Copies from another device of the same machine, in the order of this device's queue. NULL: the machine cannot, and
     * the copy goes through the host. */
    duet_status (*copy)(int device, void *own, int from, const void *other, size_t bytes, int queue);

    /* Pins host memory: copies then run without a staging buffer, beside the host's own work. Before unpin, all copies of
     * that memory must have ended. */
    duet_status (*pin)(int device, void *host, size_t bytes);
    void (*unpin)(int device, void *host);

    const char *(*refuses)(const step *s); /* NULL: will run it; else why not, a text that stays */
    const char *(*way)(
        const step *s); /* how it runs products and convolutions, in words that stay; of others NULL */
    double (*cost)(const step *s); /* seconds expected: core/cost.h */
    duet_status (*run)(const step *s, const frame *f);
    void (*forget)(step *s); /* frees s->kept */

    duet_status (*sync)(int device, int queue); /* blocks the host until the queue is empty */
    /* Work that the queue gets from now on starts after all that queue `other` of device `from` has now. Both devices are
     * this machine's. */
    duet_status (*wait)(int device, int queue, int from, int other);
    void *(*stream)(int device,
                    int queue); /* the queue as an object of the machine's own interface, or NULL */

    /* What the machine caches on a device beside the buffers of matrices, for speed alone. drop frees all that belongs to
     * a storage. spare frees the least recently used entries, `bytes` of them, and returns how much it freed. */
    void (*drop)(int device, struct storage *b);
    size_t (*spare)(int device, size_t bytes);

    /* Called before a step is recorded that has run on this queue. It allocates what recording needs and running does not. */
    duet_status (*prepare)(const step *s, const frame *f);
    /* Between record and recorded, work of this thread for the queue is recorded and not run. Only run may be called then,
     * with steps that ran on the queue before. recorded ends it in any case; *graph is what replay launches, or NULL.
     * UNSUPPORTED: the machine cannot record. */
    duet_status (*record)(int device, int queue);
    duet_status (*recorded)(int device, int queue, void **graph);
    duet_status (*replay)(int device, void *graph, int queue); /* on the queue of record */
    void (*discard)(int device, void *graph);                  /* its work may still be running */
} machine;

/* All devices. An entry whose machine is NULL does not exist. Only src/duet.c fills the table. */
typedef struct device_entry {
    const machine *machine;
    int unit; /* which of the machine's devices */
} device_entry;
extern const device_entry devices[DEVICES_MAX];

static inline const machine *device_machine(int device) { return devices[device].machine; }

/* NULL if the device can be used, else the reason. */
static inline const char *device_absent(int device)
{
    if (!devices[device].machine) return "no such device";
    return devices[device].machine->absent(device);
}

#endif
