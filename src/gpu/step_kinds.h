/* step_kinds.h - how the GPU machine runs each kind of step. A function that returns the reason why
 * a step is not supported returns NULL if it is; the text stays valid. */
#ifndef STEPS_H
#define STEPS_H

#include "cost.h"
#include "queue.h"

/* Of what fails when out has been touched: any status but DEVICE_ERROR says that nothing was written. */
static inline duet_status half_written(duet_status s) { return s == DUET_OK ? s : DUET_DEVICE_ERROR; }

/* What the step keeps between runs, made by the first that needs it. The step is the plan's and
 * constant but for this; two threads may come here at once, and the first to be ready is kept. */
static inline duet_status step_keeps(const step *s, const queue *q,
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

/* How the GPU machine runs the steps of a kernel number. algorithm and forget may be NULL. */
typedef struct gpu_kernel {
    const char *(*unsupported)(
        const step *s); /* NULL: the step is supported; else why it is not, a static text */
    duet_status (*run)(const step *s, const frame *f, queue *q);
    step_cost *cost;                         /* seconds expected */
    const char *(*algorithm)(const step *s); /* for duet_explain, a static text */
    void (*forget)(step *s);                 /* frees s->cached */
} gpu_kernel;

const gpu_kernel *
gpu_kernel_of(int kernel); /* kernels.c; one of our own kernels runs what is not registered there */

/* By one of our own kernels. */
duet_status gpu_launch(const step *s, const frame *f, queue *q);
duet_status gpu_launch_with(const step *s, const frame *f, queue *q, const void *packed);

/* out = op(x[0], x[1], ...) by a kernel: of a row of kind map, or OP_LOAD. An operand has the
 * sizes of out, any strides, and may be out itself; or it is a number, where p is NULL. */
typedef struct part {
    const void *p;
    const layout *at;
    double number;
} part;
duet_status gpu_apply(int op, void *out, const layout *out_at, const part *x, int n, queue *q);

/* Operand x without gaps: where it is, or a copy in *block, which the caller gives back. */
duet_status gpu_densely(const operand *x, const frame *f, queue *q, const void **p, void **block);
void gpu_give(void *block, const queue *q); /* NULL is accepted */

/* By parts: of a step that kernels_splits takes. NO_MEMORY: nothing was written, and it may go
 * strictly. Before it is recorded: what that will want. */
duet_status gpu_split(const step *s, const frame *f, queue *q);
duet_status gpu_split_prepare(const step *s, const frame *f, queue *q);

const char *gpu_matmul_unsupported(const step *s);
duet_status gpu_matmul(const step *s, const frame *f, queue *q);

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
void gpu_fourier_trim(void);          /* ends plans that no step has */
void gpu_fourier_limit(size_t bytes); /* of the plans that no step has, for tests */

/* Steps that kernel_may_fail knows. They wait for the card. */
const char *gpu_linear_unsupported(const step *s);
duet_status gpu_linear(const step *s, const frame *f, queue *q);

extern const costs gpu_costs;
double gpu_cost(const step *s);
double gpu_matmul_cost(const step *s, const costs *c);
double gpu_linear_cost(const step *s, const costs *c);

#endif
