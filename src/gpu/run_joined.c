/* run_joined.c - runs a step and the next one, which reads its result, as one kernel (step.joins). */
#include "run_joined.h"
#include "graph_order.h"
#include "kernels.h"
#include "overlap.h"
#include "stack.h"
#include "step_kinds.h"

/* The joined kernel writes the results while it still reads the operands of the first step. */
static bool overwrites_operands(const step *s, const step *then, const frame *f)
{
    const span out = gpu_span_of_result(then, 0, f);
    bool overwrites = false;
    for (int k = 0; k < s->ins; k++) overwrites |= spans_meet(gpu_span_of(&s->in[k], f), out);
    return overwrites;
}

/* Makes a step with the operands of both, to order them in a CUDA graph. Returns false if there are more than
 * STEP_INPUTS. */
static bool merge(const step *s, const step *then, step *both)
{
    *both = *s;
    both->out[0] = then->out[0];
    for (int k = 0; k < then->ins; k++) {
        if (k == s->joins - 1) continue;
        if (both->ins == STEP_INPUTS) return false;
        both->in[both->ins++] = then->in[k];
    }
    return true;
}

static bool takes_program(const step *s, int input)
{
    return !gpu_splits(s) && !kernels_unsupported(s) && product_takes_program(s, input);
}

bool gpu_joins(const step *s)
{
    if (!s->joins || !kernels_join()) return false;
    if (s->kernel == KERNEL_PROGRAM) return takes_program(s + 1, s->joins - 1);
    return gpu_splits(s) || !kernels_unsupported(s);
}

static duet_status launch(const step *s, const step *then, const frame *f, queue *q, bool *done)
{
    return gpu_splits(s) ? gpu_split_joined(s, then, f, q, done)
                         : gpu_launch_joined(s, then, f, q, NULL, done);
}

/* If nothing was launched, the steps begin and end their own parts of the graph. */
static duet_status capture(const step *s, const step *then, const frame *f, queue *q, bool *done)
{
    step both;
    if (!merge(s, then, &both)) return DUET_OK;
    TRY(gpu_order_begin(q, &both, f));
    TRY(launch(s, then, f, q, done));
    return *done ? gpu_order_end(q) : DUET_OK;
}

static duet_status run(const step *s, const step *then, const frame *f, bool *done)
{
    queue *q;
    ON_DEVICE(f->device);
    TRY(gpu_queue_open(f->device, f->queue, &q));
    if (gpu_queue_captures(q)) return capture(s, then, f, q, done);
    TRY(gpu_overlap_before(q, s, f));
    TRY(gpu_overlap_before(q, then, f));
    return launch(s, then, f, q, done);
}

/* If memory runs out, returns OK with *done false: the caller then runs the two steps separately. */
duet_status gpu_run_joined(const step *s, const step *then, const frame *f, bool *done)
{
    error_text before;
    *done = false;
    if (!gpu_joins(s) || !stack_suffices(thread_get()) || overwrites_operands(s, then, f)) return DUET_OK;
    error_keep(&before);
    const duet_status r = run(s, then, f, done);
    if (r != DUET_NO_MEMORY || *done) return r;
    error_put_back(&before);
    return DUET_OK;
}
