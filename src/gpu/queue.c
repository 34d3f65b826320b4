/* queue.c - streams, their order, and copies. Only sync and download block the host. */
#define _GNU_SOURCE /* recursive mutexes */
#include "queue.h"
#include "index_list.h"
#include "pinned_ring.h"
#include <string.h>

static queue queues[DEVICES_MAX][QUEUES_ALL];
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER; /* the last lock in the lock order */

/* The last word is index_report.claimed. */
#define COUNTER_BYTES ((KERNELS_COUNTERS + 1) * sizeof(uint32_t))

duet_status gpu_queue_count(queue *q)
{
    if (__atomic_load_n(&q->counts, __ATOMIC_ACQUIRE)) return DUET_OK;
    TRY(CUDA(cudaMemsetAsync, q->counters, 0, COUNTER_BYTES, q->stream));
    __atomic_store_n(&q->counts, true, __ATOMIC_RELEASE);
    return DUET_OK;
}

/* Clears the counters on the stream itself, even while this thread captures a graph. The caller reports
 * the error of the launch. */
void gpu_queue_recount(queue *q)
{
    const bool counts = cudaMemsetAsync(q->counters, 0, COUNTER_BYTES, q->stream) == cudaSuccess;
    if (!counts) (void)cudaGetLastError();
    __atomic_store_n(&q->counts, counts, __ATOMIC_RELEASE);
}

/* ---- the range written last ---- */

static const thread *const SEVERAL_USERS = (const thread *)&queues;
static const span anything = { NULL, (const char *)UINTPTR_MAX };

/* Does only this thread launch here? Otherwise work of others may come between two launches. */
static bool is_mine(queue *q)
{
    const thread *none = NULL, *t = thread_get();
    if (__atomic_load_n(&q->user, __ATOMIC_RELAXED) == t) return true;
    if (__atomic_compare_exchange_n(&q->user, &none, t, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return true;
    __atomic_store_n(&q->user, SEVERAL_USERS, __ATOMIC_RELAXED);
    return false;
}

span gpu_queue_written(queue *q) { return is_mine(q) ? q->written : anything; }

void gpu_queue_wrote(queue *q, span s)
{
    if (is_mine(q)) q->written = s;
}

void gpu_queue_wrote_anything(queue *q) { gpu_queue_wrote(q, anything); }

/* ---- streams ---- */

static duet_status make_report(queue *q)
{
    bad_index *found;
    TRY(CUDA(cudaMallocHost, (void **)&found, sizeof *found));
    *found = (bad_index){ .kernel = 0 };
    q->indices = (index_report){ found, q->counters + KERNELS_COUNTERS };
    return DUET_OK;
}

/* Clears the counters here, before any capture of the stream. */
static duet_status make_stream(int device, int index)
{
    static const pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    queue *q = &queues[device][index];
    if (q->stream) return DUET_OK;
    cudaStream_t stream;
    if (!q->event) memcpy(&q->lock, &recursive, sizeof recursive);
    q->device = device;
    q->index = index;
    q->written = anything;
    if (!q->event) TRY(CUDA(cudaEventCreateWithFlags, &q->event, cudaEventDisableTiming));
    if (!q->counters) TRY(CUDA(cudaMalloc, (void **)&q->counters, COUNTER_BYTES));
    if (!q->indices.found) TRY(make_report(q));
    TRY(CUDA(cudaStreamCreateWithFlags, &stream, cudaStreamNonBlocking));
    __atomic_store_n(&q->stream, stream, __ATOMIC_RELEASE);
    return gpu_queue_count(q);
}

static bool is_open(int device, int index)
{
    return __atomic_load_n(&queues[device][index].stream, __ATOMIC_ACQUIRE) != NULL;
}

duet_status gpu_queue_open(int device, int index, queue **q)
{
    *q = &queues[device][index];
    if (likely(is_open(device, index))) return DUET_OK;
    pthread_mutex_lock(&making);
    const duet_status s = make_stream(device, index);
    pthread_mutex_unlock(&making);
    return s;
}

duet_status gpu_take_quietly(gpu_taking *take, size_t bytes, const queue *q, void **p)
{
    error_text before;
    error_keep(&before);
    duet_status s = take(q->device, bytes, q->index, p);
    if (s == DUET_NO_MEMORY) error_put_back(&before);
    return s;
}

static void close_dnn(const vendor *v, queue *q)
{
    (void)v->cudnnDestroy(q->dnn);
    q->dnn = NULL;
}

duet_status gpu_queue_point(queue *q, cudaStream_t to)
{
    if (!q->dnn) return DUET_OK;
    const duet_status s = DNN(vendor_open(LIBRARY_cudnn), cudnnSetStream, q->dnn, to);
    if (s != DUET_OK) close_dnn(vendor_open(LIBRARY_cudnn), q);
    return s;
}

duet_status gpu_queue_dnn(queue *q, const vendor **v)
{
    *v = vendor_open(LIBRARY_cudnn);
    if (q->dnn) return DUET_OK;
    cudnnHandle_t dnn;
    TRY(DNN(*v, cudnnCreate, &dnn));
    duet_status s = DNN(*v, cudnnSetStream, dnn, q->stream);
    if (s == DUET_OK) q->dnn = dnn;
    else (void)(*v)->cudnnDestroy(dnn);
    return s;
}

/* ---- after the loss of a card; no other thread uses it ---- */

void gpu_queues_close(int device)
{
    for (queue *q = queues[device]; q < queues[device] + QUEUES_ALL; q++) {
        if (q->dnn) close_dnn(vendor_open(LIBRARY_cudnn), q);
        gpu_solver_close(vendor_open(LIBRARY_cusolver), q);
        gpu_sparse_close(vendor_open(LIBRARY_cusparse), q);
        gpu_direct_close(vendor_open(LIBRARY_cudss), q);
    }
}

/* The event is made last, so that the lock of a queue without one is made again. */
static void forget(queue *q)
{
    __atomic_store_n(&q->stream, NULL, __ATOMIC_RELEASE);
    __atomic_store_n(&q->counts, false, __ATOMIC_RELEASE);
    __atomic_store_n(&q->user, NULL, __ATOMIC_RELAXED);
    q->event = NULL;
    q->capture_stream = NULL;
    q->counters = NULL;
    q->indices = q->replayed = (index_report){ 0 };
    q->written = anything;
    q->blas_workspace = NULL;
    q->blas_bytes = 0;
}

void gpu_queues_forget(int device)
{
    for (int i = 0; i < QUEUES_ALL; i++)
        if (queues[device][i].event) forget(&queues[device][i]);
}

duet_status gpu_queue_clear(int device, void *p, size_t bytes, int index)
{
    queue *q;
    if (!bytes) return DUET_OK;
    ON_DEVICE(device);
    TRY(gpu_queue_open(device, index, &q));
    gpu_queue_wrote_anything(q);
    return CUDA(cudaMemsetAsync, p, 0, bytes, q->stream);
}

/* ---- indices out of bounds ---- */

static duet_status bad_index_found(const queue *q, const index_report *r)
{
    const bad_index b = *r->found;
    char text[BAD_INDEX_TEXT];
    ON_DEVICE(q->device);
    r->found->kernel = 0;
    TRY(CUDA(cudaMemsetAsync, r->claimed, 0, sizeof *r->claimed, q->stream));
    return fail(DUET_BAD_ARGUMENT, "%s. The GPU found it in an earlier statement",
                bad_index_text(text, op_infos[b.kernel - 1].name, b.index, b.element, b.size));
}

duet_status gpu_queue_report(int device, int index)
{
    const queue *q = &queues[device][index];
    const index_report *const reports[] = { &q->indices, &q->replayed };
    for (int i = 0; i < 2; i++)
        if (unlikely(reports[i]->found && reports[i]->found->kernel)) return bad_index_found(q, reports[i]);
    return DUET_OK;
}

/* ---- copies ---- */

duet_status gpu_queue_upload(int device, void *own, const void *host, size_t bytes, int index)
{
    queue *q;
    bool done;
    if (!bytes) return DUET_OK;
    ON_DEVICE(device);
    TRY(gpu_queue_open(device, index, &q));
    gpu_queue_wrote_anything(q);
    TRY(gpu_stage_up(own, host, bytes, q, &done));
    if (done) return DUET_OK;
    return CUDA(cudaMemcpyAsync, own, host, bytes, cudaMemcpyHostToDevice, q->stream);
}

duet_status gpu_queue_download(int device, void *host, const void *own, size_t bytes, int index)
{
    queue *q;
    bool done;
    if (!bytes) return DUET_OK;
    ON_DEVICE(device);
    TRY(gpu_queue_open(device, index, &q));
    TRY(gpu_stage_down(host, own, bytes, q, &done));
    if (!done) {
        TRY(gpu_links_wait(device, q->stream)); /* the copy may block */
        TRY(CUDA(cudaMemcpyAsync, host, own, bytes, cudaMemcpyDeviceToHost, q->stream));
        TRY(CUDA(cudaStreamSynchronize, q->stream));
    }
    return gpu_queue_report(device, index);
}

duet_status gpu_queue_fetch(int device, void *host, const void *own, size_t bytes, int index)
{
    queue *q;
    if (!bytes) return DUET_OK;
    ON_DEVICE(device);
    TRY(gpu_queue_open(device, index, &q));
    return CUDA(cudaMemcpyAsync, host, own, bytes, cudaMemcpyDeviceToHost, q->stream);
}

/* CUDA copies through the host if the cards cannot access each other's memory. */
duet_status gpu_queue_copy(int device, void *own, int from, const void *other, size_t bytes, int index)
{
    queue *q;
    if (!bytes) return DUET_OK;
    ON_DEVICE(device);
    TRY(gpu_queue_open(device, index, &q));
    gpu_queue_wrote_anything(q);
    return CUDA(cudaMemcpyPeerAsync, own, gpu_device_ordinal(device), other, gpu_device_ordinal(from), bytes,
                q->stream);
}

duet_status gpu_queue_sync(int device, int index)
{
    ON_DEVICE(device);
    if (!is_open(device, index)) return DUET_OK;
    return gpu_stream_wait(device, queues[device][index].stream);
}

/* Errors of links are ignored here: the next call that uses a link returns them. */
void gpu_queues_settle(int device)
{
    error_text before;
    if (likely(!gpu_links_exist())) return;
    error_keep(&before);
    for (int i = 0; i < QUEUES_ALL; i++)
        if (is_open(device, i)) (void)gpu_links_wait(device, queues[device][i].stream);
    error_put_back(&before);
}

static duet_status record_event(int device, const queue *q)
{
    ON_DEVICE(device);
    return CUDA(cudaEventRecord, q->event, q->stream);
}

/* One event per queue is enough. A wait uses the event as it was last recorded. Recording it again
 * can only add work to wait for. */
duet_status gpu_queue_wait(int device, int index, int from, int other)
{
    queue *q;
    const queue *awaited = &queues[from][other];
    if ((device == from && index == other) || !is_open(from, other)) return DUET_OK;
    ON_DEVICE(device);
    TRY(gpu_queue_open(device, index, &q));
    gpu_queue_wrote_anything(q);
    if (device == from) TRY(CUDA(cudaEventRecord, awaited->event, awaited->stream));
    else TRY(record_event(from, awaited));
    return CUDA(cudaStreamWaitEvent, q->stream, awaited->event, 0);
}

static duet_status open_on_device(int device, int index, queue **q)
{
    ON_DEVICE(device);
    return gpu_queue_open(device, index, q);
}

void *gpu_queue_stream(int device, int index)
{
    queue *q;
    if (open_on_device(device, index, &q) != DUET_OK) return NULL;
    __atomic_store_n(&q->user, SEVERAL_USERS, __ATOMIC_RELAXED);
    return q->stream;
}
