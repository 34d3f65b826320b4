/* overlap.c - finds the calls on the stream of a link that a step must wait for. */
#include "overlap.h"
#include "link_watch.h"

duet_status gpu_overlap_begin(queue *q, gpu_link *l, const link_uses *uses)
{
    link_call *c = watch_call(l, l->count); /* the one between begin and end */
    c->uses = *uses;
    q->exchanges = l;
    return CUDA(cudaStreamWaitEvent, l->stream, c->begun, 0);
}

static bool conflict(const link_uses *c, span at, bool writes)
{
    return spans_meet(c->written, at) || spans_meet(c->scratch, at) || (writes && spans_meet(c->read, at));
}

/* The memory that the plan gives to the step while it runs. */
static span scratch_of(const step *s, const frame *f)
{
    const char *p = s->scratch ? f->data[s->scratch - 1] : NULL;
    return (span){ p, p ? p + step_scratch(device_machine(f->device), s) : NULL };
}

/* The second operand of a collective step only says which one comes before. */
static bool must_wait(const link_uses *c, const step *s, const frame *f)
{
    const int ins = kernel_is_collective(s->kernel) ? 1 : s->ins;
    bool waits = conflict(c, scratch_of(s, f), true);
    for (int k = 0; k < s->outs; k++) waits |= conflict(c, gpu_span_of_result(s, k, f), true);
    for (int k = 0; k < ins; k++) waits |= conflict(c, gpu_span_of(&s->in[k], f), false);
    return waits;
}

/* The calls run one after another, so the last one is enough. */
static duet_status wait_for_last(queue *q, gpu_link *l, const step *s, const frame *f)
{
    for (unsigned i = l->count; i-- > 0 && l->first + i >= l->awaited;) {
        const link_call *c = watch_call(l, i);
        if (!must_wait(&c->uses, s, f)) continue;
        l->awaited = l->first + i + 1;
        gpu_queue_wrote_anything(q);
        return CUDA(cudaStreamWaitEvent, q->stream, c->ended, 0);
    }
    return DUET_OK;
}

duet_status gpu_overlap_wait(queue *q, const step *s, const frame *f)
{
    gpu_link *l = q->exchanges;
    pthread_mutex_lock(&l->lock);
    const duet_status r = wait_for_last(q, l, s, f);
    pthread_mutex_unlock(&l->lock);
    return r;
}

/* After an error, a call may be on the stream without an event behind it. */
static duet_status wait_for_stream(const queue *q, gpu_link *l)
{
    if (!l->stream) return DUET_OK; /* the GPU was lost */
    l->awaited = l->first + l->count;
    TRY(CUDA(cudaEventRecord, l->joined, l->stream));
    return CUDA(cudaStreamWaitEvent, q->stream, l->joined, 0);
}

duet_status gpu_overlap_end(queue *q)
{
    gpu_link *l = q->exchanges;
    if (!l) return DUET_OK;
    q->exchanges = NULL;
    gpu_queue_wrote_anything(q);
    pthread_mutex_lock(&l->lock);
    const duet_status s = wait_for_stream(q, l);
    pthread_mutex_unlock(&l->lock);
    return s;
}

duet_status gpu_join(int device, int index)
{
    queue *q;
    ON_DEVICE(device);
    TRY(gpu_queue_open(device, index, &q));
    return gpu_overlap_end(q);
}
