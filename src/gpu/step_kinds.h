/* step_kinds.h - the functions by which the GPU machine runs each kind of step. Functions named
 * _unsupported return NULL if the step is supported, else a static text with the reason. */
#ifndef STEP_KINDS_H
#define STEP_KINDS_H

#include "cost.h"
#include "kernels.h"
#include "queue.h"

/* Converts the status of a failure that may have happened after the first write to an output. Every
 * status but DEVICE_ERROR promises that nothing was written. */
static inline duet_status half_written(duet_status s) { return s == DUET_OK ? s : DUET_DEVICE_ERROR; }

/* Sets *k to what the step caches between runs, and makes it first if necessary. The step belongs to
 * a plan, which several threads may run at the same time. If two threads make it, the one that
 * finishes first is stored, and the other one is discarded. */
static inline duet_status step_cached(const step *s, const queue *q,
                                      duet_status make(const step *s, const queue *q, void **made),
                                      void discard(void *made), void **k)
{
    void **at = (void **)&s->cached, *none = NULL;
    if ((*k = __atomic_load_n(at, __ATOMIC_ACQUIRE))) return DUET_OK;
    TRY(make(s, q, k));
    if (__atomic_compare_exchange_n(at, &none, *k, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return DUET_OK;
    discard(*k);
    *k = none;
    return DUET_OK;
}

/* A registry entry: how the GPU machine runs the steps of one kernel number. algorithm and forget may
 * be NULL. */
typedef struct gpu_kernel {
    const char *(*unsupported)(const step *s);
    duet_status (*run)(const step *s, const frame *f, queue *q);
    step_cost *cost;                         /* seconds expected */
    const char *(*algorithm)(const step *s); /* for duet_explain, a static text */
    void (*forget)(step *s);                 /* frees s->cached */
} gpu_kernel;

/* Returns the entry of a kernel number (kernels.c). If none is registered there, the entry runs one
 * of Duet's own kernels. */
const gpu_kernel *gpu_kernel_of(int kernel);

/* Returns the memory of an operand, from the first to the last element. */
span gpu_span_of(const operand *x, const frame *f);
span gpu_span_of_result(const step *s, int k, const frame *f); /* output k of the step */

/* Run a step by one of Duet's own kernels. `packed` is operand 1, packed, if the kernel needs it. */
duet_status gpu_launch(const step *s, const frame *f, queue *q);
duet_status gpu_launch_with(const step *s, const frame *f, queue *q, const void *packed);

/* The same for a step and the program that it joins (step.joins). Set *done; false: nothing was launched. */
duet_status gpu_launch_joined(const step *s, const step *then, const frame *f, queue *q, const void *packed,
                              bool *done);
duet_status gpu_split_joined(const step *s, const step *then, const frame *f, queue *q, bool *done);

/* Computes out = op(x[0], x[1], ...) for an element-wise operator or OP_LOAD. An operand has the
 * sizes of `out` and any strides, and may be `out` itself. If p is NULL, it is a number. */
typedef struct part {
    const void *p;
    const layout *at;
    double number;
} part;
duet_status gpu_apply(int op, void *out, const layout *out_at, const part *x, int n, queue *q);

/* Computes out = then(op(x[0], x[1], ...)), where `then` has one operand or is OP_LOAD. */
duet_status gpu_apply_two(int op, int then, void *out, const layout *out_at, const part *x, int n, queue *q);

/* Sets *p to the elements of operand x in row-major order without gaps: either the operand itself, or
 * a copy in *block. The caller releases *block with gpu_give, which accepts NULL. */
duet_status gpu_densely(const operand *x, const frame *f, queue *q, const void **p, void **block);
void gpu_give(void *block, const queue *q);

static inline bool gpu_splits(const step *s)
{
    return unlikely(s->math == DUET_MATH_SPLIT) && kernels_splits(s);
}

/* Run a step that kernels_splits supports (DUET_MATH_SPLIT). After NO_MEMORY nothing was written, and
 * the step can still be computed in f32. Call gpu_split_prepare before a capture of the step: it
 * allocates the memory that the capture needs. */
duet_status gpu_split(const step *s, const frame *f, queue *q);
duet_status gpu_split_prepare(const step *s, const frame *f, queue *q);

const char *gpu_matmul_unsupported(const step *s);
duet_status gpu_matmul(const step *s, const frame *f, queue *q);
bool gpu_matmul_is_sure(const step *s); /* can only a device error stop it after gpu_matmul_make_sure? */
duet_status gpu_matmul_make_sure(const step *s, queue *q);

const char *gpu_batched_unsupported(const step *s);
duet_status gpu_batched(const step *s, const frame *f, queue *q);

/* Products of integers. */
const char *gpu_int_gemm_unsupported(const step *s);
duet_status gpu_int_gemm(const step *s, const frame *f, queue *q);

const char *gpu_conv_unsupported(const step *s);
duet_status gpu_conv(const step *s, const frame *f, queue *q);
void gpu_conv_forget(step *s);

const char *gpu_fourier_unsupported(const step *s);
duet_status gpu_fourier(const step *s, const frame *f, queue *q);
duet_status gpu_fourier_shift(const step *s, const frame *f, queue *q); /* fourier_unsupported is its rule */
void gpu_fourier_forget(step *s);
void gpu_fourier_trim(void);          /* frees plans that no step uses */
void gpu_fourier_close(int device);   /* after the loss of a card: closes all its plans */
void gpu_fourier_limit(size_t bytes); /* for tests: the limit of the plans that no step uses */

/* Limits that choose between strided plans and slabs (fft_passes.c). For tests and measurements: steps made
 * later use *s, which must stay valid; NULL restores the defaults. No other thread may run a transform
 * meanwhile. */
typedef struct fourier_slabs {
    size_t pass_bytes; /* use a strided plan if input and output have fewer bytes */
    size_t slab_bytes; /* most bytes of a slab, unless that is fewer than `columns` columns */
    int64_t columns;   /* use a strided plan for fewer columns; slabs have a multiple of this */
    int64_t length;    /* use a strided plan for shorter transforms */
    size_t element;    /* use a strided plan for elements of more bytes */
} fourier_slabs;
void gpu_fourier_slabs(const fourier_slabs *s);

/* Products with sparse matrices, and systems. The host waits for the GPU if a system is checked. */
duet_status gpu_sparse(const step *s, const frame *f, queue *q);
const char *gpu_sparse_algorithm(const step *s);
const char *gpu_sparse_triangle_unsupported(const step *s);
duet_status gpu_sparse_triangle(const step *s, const frame *f, queue *q);
const char *gpu_sparse_solve_unsupported(const step *s);
duet_status gpu_sparse_solve(const step *s, const frame *f, queue *q);

/* Exchanges with the GPUs of other ranks. gpu_collective_scratch: the bytes of step.scratch. */
const char *gpu_collective_unsupported(const step *s);
duet_status gpu_collective(const step *s, const frame *f, queue *q);
double gpu_collective_cost(const step *s, const costs *c);
const char *gpu_collective_algorithm(const step *s);
size_t gpu_collective_scratch(const step *s);

/* Linear algebra of dense matrices. The steps wait for the GPU. */
const char *gpu_linear_unsupported(const step *s);
duet_status gpu_linear(const step *s, const frame *f, queue *q);

extern const costs gpu_costs;
double gpu_matmul_cost(const step *s, const costs *c);
double gpu_linear_cost(const step *s, const costs *c);
double gpu_sparse_triangle_cost(const step *s, const costs *c);
double gpu_sparse_solve_cost(const step *s, const costs *c);

#endif
