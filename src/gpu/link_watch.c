/* link_watch.c - the events around the calls of a link. */
#include "link_watch.h"
#include "clock.h"
#include <sched.h>

/* The kernels of NCCL use few processors of the GPU. They get these before other work does. */
static duet_status make_stream(gpu_link *l)
{
    int least, greatest;
    TRY(CUDA(cudaDeviceGetStreamPriorityRange, &least, &greatest));
    TRY(CUDA(cudaStreamCreateWithPriority, &l->stream, cudaStreamNonBlocking, greatest));
    return CUDA(cudaEventCreateWithFlags, &l->joined, cudaEventDisableTiming);
}

duet_status watch_open(gpu_link *l)
{
    TRY(make_stream(l));
    for (link_call *c = l->call; c < l->call + LINK_CALLS; c++) {
        TRY(CUDA(cudaEventCreateWithFlags, &c->begun, cudaEventDisableTiming));
        TRY(CUDA(cudaEventCreateWithFlags, &c->ended, cudaEventDisableTiming));
    }
    return DUET_OK;
}

static void destroy(cudaEvent_t e)
{
    if (e && cudaEventDestroy(e) != cudaSuccess) (void)cudaGetLastError();
}

void watch_forget(gpu_link *l)
{
    for (link_call *c = l->call; c < l->call + LINK_CALLS; c++) *c = (link_call){ 0 };
    l->count = 0;
    l->stream = NULL;
    l->joined = NULL;
}

void watch_close(gpu_link *l)
{
    for (link_call *c = l->call; c < l->call + LINK_CALLS; c++) {
        destroy(c->begun);
        destroy(c->ended);
    }
    destroy(l->joined);
    if (l->stream && cudaStreamDestroy(l->stream) != cudaSuccess) (void)cudaGetLastError();
    watch_forget(l);
}

link_call *watch_call(gpu_link *l, unsigned i) { return &l->call[(l->first + i) % LINK_CALLS]; }

duet_status watch_begin(gpu_link *l, cudaStream_t stream)
{
    watch_call(l, l->count)->uses = (link_uses){ 0 };
    return CUDA(cudaEventRecord, watch_call(l, l->count)->begun, stream);
}

duet_status watch_end(gpu_link *l, cudaStream_t stream)
{
    TRY(CUDA(cudaEventRecord, watch_call(l, l->count)->ended, stream));
    l->count++;
    return DUET_OK;
}

/* An error of CUDA counts as happened; other calls report it. */
static bool has_happened(cudaEvent_t e)
{
    const cudaError_t r = cudaEventQuery(e);
    if (r != cudaSuccess) (void)cudaGetLastError();
    return r != cudaErrorNotReady;
}

static void drop_ended(gpu_link *l)
{
    while (l->count && has_happened(watch_call(l, 0)->ended)) {
        l->first++;
        l->count--;
        l->since = 0;
    }
}

bool watch_is_full(gpu_link *l)
{
    if (likely(l->count < LINK_CALLS)) return false;
    drop_ended(l);
    return l->count == LINK_CALLS;
}

bool watch_expired(gpu_link *l)
{
    drop_ended(l);
    if (!l->count || !has_happened(watch_call(l, 0)->begun)) return false;
    const double now = clock_now();
    if (l->since <= 0) l->since = now;
    return now - l->since > l->seconds;
}

void watch_pause(unsigned round)
{
    const struct timespec t = { .tv_nsec = round < 2000 ? 50000 : 500000 };
    if (round < 200) sched_yield();
    else nanosleep(&t, NULL);
}
