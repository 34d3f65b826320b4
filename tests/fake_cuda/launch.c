/* launch.c - the fake kernels: the functions of gpu-kernels/common/kernels.h, executed later on the
 * host, by launch_tmpl.c and index.c or by the kernel of the CPU. */
#include "launch.h"
#include "dtype.h"
#include "fake.h"
#include "generated_mode.h"
#include "layer_norm.h"
#include "random_step.h"
#include "reduce_order.h"
#include "supported.h"
#include <stdlib.h>
#include <string.h>

int kernels_oldest(void) { return 80; }

/* ---- kernels: how much scratch memory a step needs, and how it is computed ---- */

/* Like real kernels, long reductions need memory for the results of blocks, permutations for
 * sorting, and products in DUET_MATH_SPLIT for partial sums. */
static size_t program_scratch(const step *s)
{
    int64_t n = 1;
    if (!s->program->reductions) return 0;
    for (int axis = s->out[0].at.rank - s->inner; axis < s->out[0].at.rank; axis++)
        n *= s->out[0].at.size[axis];
    if (n > REDUCE_BLOCK) return (size_t)(n / REDUCE_BLOCK + 1) * s->outs * sizeof(double);
    return 0;
}

static size_t random_scratch(const step *s)
{
    return s->attr.random.distribution == DISTRIBUTION_PERMUTATION ? (size_t)s->out[0].at.size[0] * 32 : 0;
}

static size_t norm_scratch(const step *s) { return norm_length(s) > REDUCE_BLOCK ? 1024 : 0; }
static size_t element_scratch(const step *s) { return (size_t)layout_count(&s->in[0].at) * 16; }

static void run_program(const job *j)
{
    switch (step_type(&j->s)) {
    case DUET_F32: return fake_run_f32(j);
    case DUET_F64: return fake_run_f64(j);
    case DUET_I64: return fake_program_i64(j);
    case DUET_U64: return fake_program_u64(j);
    default: return fake_move(j);
    }
}

/* Random integers are computed in f64. */
static void run_typed(const job *j) { (step_type(&j->s) == DUET_F32 ? fake_run_f32 : fake_run_f64)(j); }

static const struct fake {
    void (*run)(const job *j);
    size_t (*scratch)(const step *s); /* bytes; NULL: none */
} fakes[KERNELS_ALL] = {
    [KERNEL_PROGRAM] = { run_program, program_scratch },
    [OP_softmax] = { run_typed },
    [OP_log_softmax] = { run_typed },
    [KERNEL_LAYER_NORM] = { run_typed, norm_scratch },
    [KERNEL_RANDOM] = { run_typed, random_scratch },
    [OP_matmul] = { run_typed },
    [OP_conv2d] = { run_typed },
    [OP_conv2d_input_grad] = { run_typed },
    [OP_conv2d_filter_grad] = { run_typed, filter_grad_workspace },
    [OP_max_pool2d] = { run_typed },
    [OP_avg_pool2d] = { run_typed },
    [OP_max_pool2d_grad] = { run_typed },
    [OP_avg_pool2d_grad] = { run_typed },
    [OP_upsample2d] = { run_typed },
    [OP_cumsum] = { fake_run_order },
    [OP_cumprod] = { fake_run_order },
    [OP_take] = { fake_run_order },
    [OP_take_along_axis] = { fake_run_order },
    [OP_one_hot] = { fake_run_order },
    [OP_put] = { fake_run_order, element_scratch },
    [OP_scatter_add] = { fake_run_order, element_scratch },
    [OP_scatter_max] = { fake_run_order, element_scratch },
    [OP_scatter_mul] = { fake_run_order, element_scratch },
    [OP_sort] = { fake_run_order, element_scratch },
    [OP_argsort] = { fake_run_order, element_scratch },
    [OP_top_k] = { fake_run_order, element_scratch },
    [OP_top_k_indices] = { fake_run_order, element_scratch },
    [OP_histogram] = { fake_run_order, element_scratch },
    [OP_csr_matmul] = { fake_run_csr },
    [OP_csr_sddmm] = { fake_run_csr },
    [OP_csr_dense] = { fake_run_csr },
    [OP_csr_take] = { fake_run_csr },
};

size_t kernels_scratch(const step *s)
{
    if (kernels_splits(s)) return 1024;
    return fakes[s->kernel].scratch ? fakes[s->kernel].scratch(s) : 0;
}

/* The kernel of the CPU, with the memory of the fake device as operands. This serves kernels that have
 * no fake above and that use no scratch memory on the CPU: the lock of the fake CUDA is held here. */
static void run_on_host(const job *j)
{
    const machine *host = device_machine(HOST);
    void *data[STEP_OUTPUTS + STEP_INPUTS];
    step s = j->s;
    for (int k = 0; k < s.outs; k++) {
        s.out[k].slot = k;
        data[k] = j->out[k];
    }
    for (int k = 0; k < s.ins; k++) {
        s.in[k].slot = s.outs + k;
        data[s.outs + k] = j->in[k];
    }
    for (int k = 0; k < s.nums; k++) s.num[k] = (uint32_t)k;
    if (host->unsupported_reason(&s) || host->run(&s, &(frame){ data, j->num, 0, HOST }) != DUET_OK) abort();
    host->forget(&s);
}

/* A real reduction would be wrong if the counters were not 0 before it. */
static void check_counters(const job *j)
{
    for (int i = 0; i < KERNELS_COUNTERS; i++)
        if (j->counters[i]) abort();
}

/* The state after a launch that failed half-way. */
static void spoil_counters(void *args) { memset(*(uint32_t **)args, 1, KERNELS_COUNTERS * sizeof(uint32_t)); }

/* A launch with scratch memory, the only kind that uses the counters, runs in two parts. If other work
 * writes to this memory or uses the counters between them, the program ends. */
static uint32_t mark_of(const job *j) { return (uint32_t)(uintptr_t)j->out[0] | 1; }

static void run_first_part(void *args)
{
    const job *j = args;
    check_counters(j);
    memset(j->scratch, 0xff, j->scratch_bytes);
    memcpy(j->scratch, &(uint32_t){ mark_of(j) }, 4);
    j->counters[0] = mark_of(j);
}

static void end_first_part(const job *j)
{
    if (memcmp(j->scratch, &(uint32_t){ mark_of(j) }, 4) || j->counters[0] != mark_of(j)) abort();
    j->counters[0] = 0;
}

static void run_job(void *args)
{
    job *j = args;
    if (j->scratch_bytes) end_first_part(j);
    j->s.program = &j->p;
    if (j->by_parts) return fake_run_split(j);
    if (fakes[j->s.kernel].run) fakes[j->s.kernel].run(j);
    else run_on_host(j);
}

/* The address of an operand, if device memory contains all that its layout reaches over its axes
 * but the last `inner`. */
static bool resolve(const operand *x, int inner, const frame *f, void **p)
{
    int64_t low, high;
    size_t each = dtypes[x->at.type].bytes;
    layout outer = x->at;
    outer.rank -= inner;
    layout_span(&outer, &low, &high);
    *p = f->data[x->slot];
    return high == low || fake_owns((char *)*p + low * (int64_t)each, (size_t)(high - low) * each);
}

/* Describes the step as a job, if all its memory is there. */
static cudaError_t describe(const step *s, const frame *f, const workspace *w, bool by_parts, job *j)
{
    *j = (job){ .s = *s,
                .scratch = w->scratch,
                .scratch_bytes = kernels_scratch(s),
                .counters = w->counters,
                .bad_index = w->indices.found,
                .claimed = w->indices.claimed };
    j->by_parts = by_parts;
    j->packed = w->packed;
    if (by_parts ? !fake_split_fits(s, w) : kernels_unsupported(s) != NULL)
        return fake_error(cudaErrorInvalidValue);
    if (s->cached) return fake_error(cudaErrorInvalidValue);
    for (int i = 0; i < s->outs; i++)
        if (!resolve(&s->out[i], s->kernel == KERNEL_PROGRAM ? s->inner : 0, f, &j->out[i]))
            return fake_error(cudaErrorInvalidValue);
    for (int i = 0; i < s->ins; i++)
        if (!resolve(&s->in[i], 0, f, &j->in[i])) return fake_error(cudaErrorInvalidValue);
    if (j->scratch_bytes && w->scratch &&
        ((uintptr_t)w->scratch % 256 || !fake_owns(w->scratch, j->scratch_bytes)))
        return fake_error(cudaErrorInvalidValue);
    if (!fake_owns(w->counters, KERNELS_COUNTERS * sizeof *w->counters))
        return fake_error(cudaErrorInvalidValue);
    if (!w->indices.found || !fake_owns(w->indices.claimed, sizeof *w->indices.claimed))
        return fake_error(cudaErrorInvalidValue);
    for (int i = 0; i < s->nums; i++) j->num[i] = f->num[s->num[i]];
    if (s->program) j->p = *s->program;
    return cudaSuccess;
}

static bool is_by_parts(const step *s, const workspace *w)
{
    return w->packed || (kernels_splits(s) && !kernels_packs(s));
}

static void count(bool by_parts)
{
    pthread_mutex_lock(&fake_lock);
    fake_counted.launches++;
    fake_counted.splits += by_parts;
    pthread_mutex_unlock(&fake_lock);
}

cudaError_t launch_step(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    job j;
    fake_at(FAKE_LAUNCH);
    cudaError_t failed = fake_enter(cudaErrorUnknown);
    if (!failed) failed = fake_launches();
    if (failed != cudaSuccess) {
        (void)fake_queue(q, spoil_counters, &w->counters, sizeof w->counters);
        return failed;
    }
    failed = describe(s, f, w, is_by_parts(s, w), &j);
    if (failed != cudaSuccess) return failed;
    if (j.scratch_bytes && !w->scratch) return fake_error(cudaErrorInvalidValue);
    count(j.by_parts);
    if (j.scratch_bytes && fake_queue(q, run_first_part, &j, sizeof j) != cudaSuccess)
        return cudaErrorMemoryAllocation;
    return fake_queue(q, run_job, &j, sizeof j);
}

/* ---- a step and the next one, which it joins: the result of the first is not stored ---- */

bool kernels_join(void) { return generated_when() != GENERATED_NEVER; }

typedef struct joined_job {
    job first, then;
    int given;
    size_t bytes; /* of the first result */
} joined_job;

static void run_joined(void *args)
{
    joined_job *j = args;
    void *stored = j->first.out[0], *hidden = fake_alloc(j->bytes);
    if (!hidden) abort();
    j->first.out[0] = j->then.in[j->given] = hidden;
    run_job(&j->first);
    memset(stored, 0xff, j->bytes); /* after the first step, which may read what it overwrites */
    run_job(&j->then);
    fake_free(hidden);
}

/* In about one of four calls, the joined kernel is not ready. */
cudaError_t launch_joined(const step *s, const step *then, const frame *f, const workspace *w, cudaStream_t q,
                          bool *done)
{
    static unsigned calls;
    joined_job j = { .given = s->joins - 1 };
    const operand *out = &s->out[0];
    j.bytes = (size_t)layout_count(&out->at) * dtypes[out->at.type].bytes;
    *done = __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED) * 2654435761u >> 30 != 0;
    if (!*done) return cudaSuccess;
    fake_at(FAKE_LAUNCH);
    cudaError_t failed = fake_enter(cudaErrorUnknown);
    if (!failed) failed = fake_launches();
    if (!failed) failed = describe(s, f, w, is_by_parts(s, w), &j.first);
    if (!failed) failed = describe(then, f, w, false, &j.then);
    *done = failed == cudaSuccess;
    if (failed != cudaSuccess) return failed;
    j.first.scratch_bytes = 0;
    count(j.first.by_parts);
    __atomic_fetch_add(&fake_counted.joins, 1, __ATOMIC_RELAXED);
    return fake_queue(q, run_joined, &j, sizeof j);
}

/* ---- compiled kernels: the fake driver has no compiler, but graphs become outdated ---- */

struct kernels_used {
    unsigned version;
};

static unsigned version;

void fake_outdate(void) { __atomic_fetch_add(&version, 1, __ATOMIC_RELAXED); }

static unsigned version_now(void) { return __atomic_load_n(&version, __ATOMIC_RELAXED); }

kernels_used *kernels_used_new(void)
{
    kernels_used *u = malloc(sizeof *u);
    if (u) u->version = version_now();
    return u;
}

void kernels_used_free(kernels_used *u) { free(u); }

bool kernels_used_outdated(kernels_used *u)
{
    const bool outdated = u->version != version_now();
    u->version = version_now();
    return outdated;
}

void kernels_forget(int device) { (void)device; }

bool kernels_generated(const program *p)
{
    (void)p;
    return false;
}
