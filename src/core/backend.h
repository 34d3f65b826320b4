/* backend.h - the interface between the planner and the machines (CPU, GPU). A machine receives
 * finished steps and has no access to expressions. */
#ifndef BACKEND_H
#define BACKEND_H

#include "attributes.h"
#include "ops.h"
#include "program.h"
#include "shape.h"
#include "status.h"

/* Each device has its own memory. Devices are numbered: the host, the default GPU (DUET_DEVICE),
 * then the other GPUs of this process. machine.absent says which of them exist. */
enum { HOST, DEFAULT_GPU, DEVICES_MAX = 9 };
static_assert(DEVICES_MAX <= 16, "masks of devices have 16 bits");

/* What a step computes. Rows of ops.def of kind def keep their operator number. */
enum kernel {
    KERNEL_OPS = OPS,                          /* smaller numbers: that operator */
    KERNEL_PROGRAM = OPS_ALL,                  /* element-wise expressions and reductions: step.program */
    KERNEL_RANDOM,                             /* random numbers */
    KERNEL_LAYER_NORM,                         /* rows, normalised by their mean and deviation */
    KERNEL_BATCHED,                            /* matmul for each index of leading axes */
#define DUET_FACTOR2(name, ...) KERNEL_##name, /* the rows of factor.def */
#define DUET_FACTOR3(name, ...) KERNEL_##name,
#include <duet/factor.def>
    KERNELS_ALL,
    KERNEL_COLLECTIVE = OP_collective
};

/* Whether a step computes a convolution, or one of its gradients. */
enum conv_role { NO_CONV, CONV_FORWARD, CONV_INPUT_GRAD, CONV_FILTER_GRAD };

/* Facts about a kernel that hold for every machine. */
typedef struct kernel_info {
    const char *name;
    enum conv_role conv;
    bool may_fail;      /* a step may have no result; its caller waits for the status */
    bool is_collective; /* all ranks of a group run the step. They run such steps in the same order */
} kernel_info;
extern const kernel_info kernel_infos[KERNELS_ALL];

static inline bool kernel_may_fail(int kernel) { return kernel_infos[kernel].may_fail; }
static inline bool kernel_is_collective(int kernel) { return kernel_infos[kernel].is_collective; }

/* The epilogue of matmul and conv2d: operators applied to a result before it is written. Each
 * epilogue is a row DUET_FINISHED of fused.def. */
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
/* An operand of a step: an index into frame.data, and the layout from that address on. */
typedef struct operand {
    int slot;
    layout at;
} operand;

/* One pass over memory, or one call of a vendor library. Only addresses and numbers may change
 * after planning.
 *
 * "Any strides" means that the operand may have any layout. Outputs are dense and do not overlap
 * inputs, unless said otherwise.
 *
 *   PROGRAM               All operands have the sizes of the domain, with axes collapsed; a stride
 *                         of 0 broadcasts. Operands and outputs have any strides. An input may be
 *                         an output at the same slot and layout; no other input overlaps an
 *                         output, and outputs do not overlap each other. num has the numbers of
 *                         the program. A program with reductions reduces the last `inner` axes,
 *                         at least one. Those axes are collapsed separately, outputs have strides
 *                         of 0 there, and no input overlaps an output. They may be empty; each
 *                         output is then the reduction of no elements. Outputs are of any real
 *                         type, or i64 for a reduction that returns an index. Without reductions,
 *                         inner is 0. A program of LOAD and STORE only may be of any type.
 *   matmul                out = num[0] * in[0] in[1] + num[1] * in[2]; in[0] is m x k, in[1] k x
 *                         n, out m x n, all of rank 2 with any strides (a vector is a matrix with
 *                         one row or column). ins is 2 or 3. If it is 3, nums is 2, and in[2] is m
 *                         x n and may be out itself. Missing numbers are 1. i64 wraps modulo 2^64;
 *                         then ins is 2, nums is 0, and there is no epilogue.
 *   batched               matmul without an epilogue for each index of the leading axes. All
 *                         operands have the same rank, at least 3.
 *                         The last two axes are those of matmul; in front of them an input's
 *                         stride of 0 broadcasts.
 *   conv2d                in[0] is n c h w, in[1] m c/groups h w, out n m h w; in three dimensions
 *                         n c d h w, m c/groups d h w and n m d h w. attr.conv
 *   with an epilogue      in[2] of matmul or conv2d is a bias of rank 1 over the columns or
 *                         channels, with any stride; there is no addend. `act` follows, then
 *                         max_pool2d if the epilogue is pooled; out has the pooled sizes.
 *   conv2d_input_grad     in[0] is the gradient of the result of conv2d, in[1] its filters, out
 *                         the gradient of its images.
 *                         attr.conv, without flip
 *   conv2d_filter_grad    in[0] are the images of conv2d, in[1] is the gradient of its result, out
 *                         that of its filters
 *   max_pool2d, avg_pool2d  attr.pool
 *   max_pool2d_grad       in[0] is that of max_pool2d, in[1] the gradient of its result. attr.pool
 *   avg_pool2d_grad       in[0] is the gradient of the result of avg_pool2d. attr.pool
 *   upsample2d            attr.pool; an element of in[0] becomes a window of out
 *   collective            in[0] and out are of one type. They have the sizes of collective.in and
 *                         .out of collective_of(attr.collective.id). Every rank of the group runs the step,
 *                         and waits for the others. RANK_FAILED: another rank failed
 *   random                out has random numbers of the distribution attr.random with the numbers
 *                         of random_step.h. No inputs. out is collapsed, with any strides, f32,
 *                         f64, or i64 for a distribution of integers; a permutation has one axis.
 *                         An element depends only on the distribution, its numbers and the
 *                         row-major index of the element in the array of which out is a part
 *                         (attr.random.first).
 *   softmax, log_softmax  along the last axis; the rank is at least 1
 *   layer_norm            u = (x - mean) * rsqrt(num[0] + var) along the last `inner` axes of x =
 *                         in[0]; out = fma(u, gain, bias), or u without them. attr.layer_norm.
 *                         Gain and bias are the next operands or the next numbers, in this order.
 *                         All operands have the sizes of x, with axes collapsed as those of a
 *                         program with reductions; core/layer_norm.h has their layout.
 *   index_ops.h           the families of index operators, as their rows of ops.def say.
 *                         attr.index, one_hot or histogram. Inputs have any strides. An index out
 *                         of range is BAD_ARGUMENT on the CPU, and nothing is written. On the GPU,
 *                         take gives 0, one_hot zeros, and scattering skips the element.
 *   fftn                  in[0] has any strides. It is real for the kind REAL, and may be real for
 *                         FORWARD and INVERSE. out is real for REAL_INVERSE. attr.fourier. Along
 *                         its axes in[0] is truncated, or padded with zeros.
 *   fftshift              in[0] and out have one shape and type. attr.fourier
 *   fftconvolve           in[0], in[1] and out are real and of one rank. attr.overlap
 *   SOLVES in ops.def     inputs have any strides; all operands are of one type, except that out may
 *                         be real for complex inputs (complex.def). A right-hand side may be a
 *                         vector. attr.solver of solve, attr.triangle of solve_triangular
 *   rows of factor.def    in[0] is m x n, outs as the row says, with any strides; OF_PART outputs
 *                         are real. Outputs may overlap in[0], but not each other.
 *
 * These inputs may be out itself: in[2] of matmul, in[0] of softmax and layer_norm, and in[0] of an
 * fftn from complex to complex elements of one shape. SOLVES and the rows of factor.def may fail
 * with SINGULAR, NOT_FINITE or NO_CONVERGENCE; then no output has been written. */
typedef struct step {
    int kernel;
    enum epilogue epilogue;
    uint8_t outs, ins, nums, inner;
    /* duet_math_mode: the arithmetic allowed for matmul and convolutions of f32; otherwise STRICT */
    uint8_t math;
    /* the machine's choice among its kernels, which depends only on the step; 0: not chosen yet */
    uint8_t choice;
    bool again; /* it computes values a second time, to save memory */
    /* Not 0: this is a product or convolution, and the next step is an element-wise program; or this is
     * such a program, and the next step a product. Only the next step reads the result, as its input
     * joins - 1. The result is dense, and so is a program's output. See machine.run_joined */
    uint8_t joins;
    bool overlaps; /* this is a collective step, and the next step does not need its result */
    int scratch;   /* slot + 1 of memory that the plan gives to the step while it runs; 0: none */
    operand out[STEP_OUTPUTS], in[STEP_INPUTS];
    uint32_t num[STEP_NUMBERS]; /* indices into frame.num */
    attributes attr;            /* core/attributes.h */
    const program *program;     /* only of PROGRAM; it lives at least as long as the step */
    double bytes, flops;
    /* data that the machine caches for this step between runs; NULL at first, freed by forget() */
    void *cached;
} step;

struct storage;
/* Returns the storage (core/matrix.h) of an operand, if this run, or every run of a recording, does
 * not write it; NULL if unknown. */
typedef struct owners {
    struct storage *(*of)(const struct owners *o, int slot);
} owners;

/* The arguments of a run: addresses of the operands on this machine, and numbers. */
typedef struct frame {
    void *const *data;
    const double *num;
    int queue;           /* of this thread; the same number on every device */
    int device;          /* the device that runs the step */
    const owners *owner; /* NULL: unknown for all operands */
} frame;

/* The operands of a convolution or of one of its gradients. Which of them is the result depends on
 * the kernel. */
typedef struct conv_operands {
    const operand *x, *w, *y;
} conv_operands;
static inline conv_operands conv_operands_of(const step *s)
{
    const operand *a = &s->in[0], *b = &s->in[1], *out = &s->out[0];
    switch (kernel_infos[s->kernel].conv) {
    case CONV_INPUT_GRAD: return (conv_operands){ out, b, a };
    case CONV_FILTER_GRAD: return (conv_operands){ a, out, b };
    default: return (conv_operands){ a, b, out };
    }
}

static inline bool is_conv(int kernel) { return kernel_infos[kernel].conv != NO_CONV; }
static inline bool is_conv_grad(int kernel)
{
    return is_conv(kernel) && kernel_infos[kernel].conv != CONV_FORWARD;
}

/* A matmul of integers: sums modulo 2^64, without numbers, addend or epilogue. */
static inline bool is_int_gemm(const step *s)
{
    return (s->kernel == OP_matmul || s->kernel == KERNEL_BATCHED) && s->out[0].at.type == DUET_I64;
}

/* Is there more padding at the end of an axis than at its start? */
static inline bool conv_is_unequal(const step *s)
{
    const int32_t *pad_end = s->attr.conv.pad_end;
    return pad_end[SPATIAL_HEIGHT] || pad_end[SPATIAL_WIDTH] ||
           (s->in[0].at.rank > 4 && pad_end[SPATIAL_DEPTH]);
}

/* Is this a 2-D convolution with symmetric padding, without dilation, groups or flipped filters? */
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

/* A kind of device: how memory, queues and steps work there. Every function is required, unless it
 * says that it may be NULL. Each may be called from any thread. run, upload, fetch, copy and clear are
 * asynchronous: they take effect in the order of a queue.
 *
 * `device` is an index into devices[], of an entry of this machine. */
#define LINK_NAME 128 /* bytes: those of ncclUniqueId */

typedef struct machine {
    const char *name; /* in texts: "CPU" or "GPU" */
    duet_place place;

    /* NULL if the device can be used, else the reason: a text that stays valid. It is called
     * often, so it must be cheap after the first call. */
    const char *(*absent)(int device);
    void (*info)(FILE *out);
    /* One line with all that costs depend on: names and versions. */
    void (*identify)(char *text, size_t size);
    const struct costs *costs; /* the built-in costs: core/cost.h */

    /* Memory of the device, aligned to at least 64 bytes. Only core/pool.c calls alloc and free. */
    duet_status (*alloc)(int device, size_t bytes, void **p);
    void (*free)(int device, void *p);
    duet_status (*clear)(int device, void *p, size_t bytes, int queue);
    size_t (*available)(int device); /* bytes that can still be allocated; SIZE_MAX if unknown */
    size_t (*total)(int device);     /* all bytes that it has; SIZE_MAX if unknown. NULL: unknown */

    /* Copies between host memory and the device's. download returns when the bytes have arrived,
     * fetch may return before. */
    duet_status (*upload)(int device, void *own, const void *host, size_t bytes, int queue);
    duet_status (*download)(int device, void *host, const void *own, size_t bytes, int queue);
    duet_status (*fetch)(int device, void *host, const void *own, size_t bytes, int queue);
    /* Copies from another device of the same machine, in the order of this device's queue. NULL:
     * the machine cannot, and the copy goes through the host. */
    duet_status (*copy)(int device, void *own, int from, const void *other, size_t bytes, int queue);

    /* Pins host memory: copies then need no staging buffer and run while the host works.
     * Before unpin, all copies of that memory must have ended. */
    duet_status (*pin)(int device, void *host, size_t bytes);
    void (*unpin)(int device, void *host);

    /* NULL if the machine supports the step, else the reason; the text stays valid */
    const char *(*unsupported_reason)(const step *s);
    /* How many bytes a plan must give to the step (step.scratch) so that it allocates none. NULL: 0 */
    size_t (*scratch)(const step *s);
    /* Can only a device error stop the step? It allocates no memory besides `scratch`, reads no indices
     * that may be out of bounds, and always has a result. Otherwise a plan must not run it after a step that
     * writes a destination. */
    bool (*is_sure)(const step *s);
    /* To be called by the thread before a sure step, when nothing is written yet: allocates what
     * the thread keeps for such steps, as the memory of BLAS. Errors: NO_MEMORY, DEVICE_ERROR */
    duet_status (*make_sure)(const step *s, int device);
    /* describes the algorithm of a product or convolution; the text stays valid. NULL for other
     * steps */
    const char *(*algorithm)(const step *s);
    double (*cost)(const step *s); /* expected seconds: core/cost.h */
    duet_status (*run)(const step *s, const frame *f);
    /* May run_joined run the step and the next one of its plan, here and with this DUET_JIT? */
    bool (*joins)(const step *s);
    /* Runs a step that joins the next one (step.joins), and the next one, as one kernel, without storing the
     * result between them. Sets *done to false if it did nothing. Both may be NULL: the machine never does
     * this */
    duet_status (*run_joined)(const step *s, const step *then, const frame *f, bool *done);
    void (*forget)(step *s); /* frees the data that the machine caches for the step */

    duet_status (*sync)(int device, int queue); /* blocks the host until the queue is empty */
    /* Fails if work of the queue has found an error since the last call, such as an index out of
     * bounds. The host has waited for this work. download does the same. */
    duet_status (*report)(int device, int queue);
    /* Work queued from now on starts after all work that is now in queue `other` of device `from`.
     * Both devices belong to this machine. */
    duet_status (*wait)(int device, int queue, int from, int other);
    void *(*stream)(int device,
                    int queue); /* the queue as an object of the machine's own interface, or NULL */

    /* Memory and streams of others. All are NULL if the machine knows none.
     *     locate   the device of memory; BAD_ARGUMENT: it is not memory of a device of this machine
     *     number   what the machine's own interface calls the device
     *     follow   work queued from now on starts after all work that is now in the stream
     *     lead     work that the stream gets from now on starts after all work that is now in the queue
     *     drain    blocks the host until all work of the device is done, also that of others */
    duet_status (*locate)(const void *p, int *device);
    int (*number)(int device);
    duet_status (*follow)(int device, int queue, void *stream);
    duet_status (*lead)(int device, int queue, void *stream);
    duet_status (*drain)(int device);

    /* Data that the machine caches on a device besides the buffers of matrices. drop is called when the
     * buffer of a storage is freed, and when the storage is. In the second case, nothing may refer to
     * the storage afterwards. spare frees the least recently used entries, at least `bytes` of them
     * if there are so many, and returns how much it freed. */
    void (*drop)(int device, struct storage *b);
    size_t (*spare)(int device, size_t bytes);

    /* Called before recording a step that has run on this queue. Allocates what only recording
     * needs. */
    duet_status (*prepare)(const step *s, const frame *f);
    /* Between record and recorded, this thread's work for the queue is recorded and not run. Only
     * run may be called then, with steps that ran on the queue before. recorded always ends the
     * recording; *graph is what replay launches, or NULL. UNSUPPORTED: the machine cannot record. */
    duet_status (*record)(int device, int queue);
    duet_status (*recorded)(int device, int queue, void **graph);
    duet_status (*replay)(int device, void *graph, int queue); /* on the queue of record */
    /* Would another recording of the same steps be faster? Returns true once. NULL: never */
    bool (*outdated)(int device, void *graph);
    void (*discard)(int device, void *graph); /* its work may still be running */

    /* A device that was lost runs nothing and keeps nothing until it is restarted. All three are NULL
     * if devices of the machine cannot be lost.
     *     lost      NULL if the device was not lost, else the reason
     *     abandon   ends the graphs of the device, of which only discard may be called then
     *     recover   restarts the device and tests it. All its memory is gone, and so is everything
     *               that the machine keeps there. No other thread uses it (core/device_use.h).
     *               Errors: DEVICE_ERROR: it cannot be used in this process again; it is still lost */
    const char *(*lost)(int device);
    void (*abandon)(int device);
    duet_status (*recover)(int device);

    /* Connections of a device to those of the other ranks of a group. Collective steps use them. If the
     * machine has none, all functions are NULL, and such steps exchange elements in host memory.
     *     link_name    writes a new name. One rank calls it, and sends the name to all others
     *     connect      every rank calls it at the same time, in its own thread. *link is the connection.
     *                  Errors: NO_DEVICE: the library is missing; DEVICE_ERROR; RANK_FAILED after `seconds`
     *     disconnect   ends it. failed: without waiting for other ranks
     *     link_check   RANK_FAILED or DEVICE_ERROR: an exchange has failed. OK: none has failed so far
     *     link_info    prints a line about the library, and how these devices are connected
     *     join         to be called after the last step of a plan with collective steps, also if one has
     *                  failed: the queue waits for exchanges that run while it does other work. NULL:
     *                  there are none */
    duet_status (*link_name)(char name[LINK_NAME]);
    duet_status (*connect)(int device, const char name[LINK_NAME], int rank, int ranks, double seconds,
                           void **link);
    void (*disconnect)(void *link, bool failed);
    duet_status (*link_check)(void *link);
    void (*link_info)(FILE *out, const int device[], int count);
    duet_status (*join)(int device, int queue);
} machine;

static inline size_t step_scratch(const machine *m, const step *s) { return m->scratch ? m->scratch(s) : 0; }

/* All devices. An entry whose machine is NULL does not exist. Only src/duet.c fills the table. */
typedef struct device_entry {
    const machine *machine;
    int unit; /* index among the machine's devices */
} device_entry;
extern const device_entry devices[DEVICES_MAX];

static inline const machine *device_machine(int device) { return devices[device].machine; }

/* What texts call the device. It need not exist. */
static inline const char *device_name(int device)
{
    const machine *m = device_machine(device);
    return m ? m->name : "GPU";
}

/* NULL if the device can be used, else the reason. The host can always be used. */
static inline const char *device_absent(int device)
{
    if (device == HOST) return NULL;
    if (!devices[device].machine) return "no such device";
    return devices[device].machine->absent(device);
}

#endif
