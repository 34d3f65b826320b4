/* queue.c - streams, the order between them, and copies. Nothing here waits on the host but sync and download. */
#define _GNU_SOURCE /* a mutex that is recursive from the start */
#include "queue.h"
#include "pinned_ring.h"
#include <string.h>

static queue queues[QUEUES_ALL] = { [0 ... QUEUES_ALL - 1] = { .lock =
                                                                   PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP } };
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER; /* taken last of all locks */

#define COUNTER_BYTES (KERNELS_COUNTERS * sizeof(uint32_t))

duet_status gpu_queue_count(queue *q)
{
    if (__atomic_load_n(&q->counts, __ATOMIC_ACQUIRE)) return DUET_OK;
    TRY(CUDA(cudaMemsetAsync, q->counters, 0, COUNTER_BYTES, q->stream));
    __atomic_store_n(&q->counts, true, __ATOMIC_RELEASE);
    return DUET_OK;
}

/* On the stream itself, also while this thread records a graph. The error told is the launch's. */
void gpu_queue_recount(queue *q)
{
    const bool counts = cudaMemsetAsync(q->counters, 0, COUNTER_BYTES, q->stream) == cudaSuccess;
    if (!counts) (void)cudaGetLastError();
    __atomic_store_n(&q->counts, counts, __ATOMIC_RELEASE);
}

/* ---- what was last written ---- */

static const thread *const SEVERAL_USERS = (const thread *)&queues;
static const span anything = { NULL, (const char *)UINTPTR_MAX };

/* Is it this thread alone that puts work here? Else another's may stand between any two. */
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

/* The counters are set here too, before anyone can record the stream's work into a graph. */
static duet_status make_stream(int index)
{
    queue *q = &queues[index];
    if (q->stream) return DUET_OK;
    cudaStream_t stream;
    q->index = index, q->written = anything;
    if (!q->event) TRY(CUDA(cudaEventCreateWithFlags, &q->event, cudaEventDisableTiming));
    if (!q->counters) TRY(CUDA(cudaMalloc, (void **)&q->counters, COUNTER_BYTES));
    TRY(CUDA(cudaStreamCreateWithFlags, &stream, cudaStreamNonBlocking));
    __atomic_store_n(&q->stream, stream, __ATOMIC_RELEASE);
    return gpu_queue_count(q);
}

static bool is_open(int index) { return __atomic_load_n(&queues[index].stream, __ATOMIC_ACQUIRE) != NULL; }

duet_status gpu_queue_open(int index, queue **q)
{
    *q = &queues[index];
    if (is_open(index)) return DUET_OK;
    pthread_mutex_lock(&making);
    duet_status s = make_stream(index);
    pthread_mutex_unlock(&making);
    return s;
}

duet_status gpu_take_quietly(gpu_taking *take, size_t bytes, const queue *q, void **p)
{
    error_text before;
    error_keep(&before);
    duet_status s = take(DEVICE, bytes, q->index, p);
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

duet_status gpu_queue_clear(void *p, size_t bytes, int index)
{
    queue *q;
    if (!bytes) return DUET_OK;
    ON_DEVICE();
    TRY(gpu_queue_open(index, &q));
    gpu_queue_wrote_anything(q);
    return CUDA(cudaMemsetAsync, p, 0, bytes, q->stream);
}

duet_status gpu_queue_upload(void *own, const void *host, size_t bytes, int index)
{
    queue *q;
    bool done;
    if (!bytes) return DUET_OK;
    ON_DEVICE();
    TRY(gpu_queue_open(index, &q));
    gpu_queue_wrote_anything(q);
    TRY(gpu_stage_up(own, host, bytes, q, &done));
    return done ? DUET_OK : CUDA(cudaMemcpyAsync, own, host, bytes, cudaMemcpyHostToDevice, q->stream);
}

duet_status gpu_queue_download(void *host, const void *own, size_t bytes, int index)
{
    queue *q;
    bool done;
    if (!bytes) return DUET_OK;
    ON_DEVICE();
    TRY(gpu_queue_open(index, &q));
    TRY(gpu_stage_down(host, own, bytes, q, &done));
    if (done) return DUET_OK;
    TRY(CUDA(cudaMemcpyAsync, host, own, bytes, cudaMemcpyDeviceToHost, q->stream));
    return CUDA(cudaStreamSynchronize, q->stream);
}

duet_status gpu_queue_fetch(void *host, const void *own, size_t bytes, int index)
{
    queue *q;
    if (!bytes) return DUET_OK;
    ON_DEVICE();
    TRY(gpu_queue_open(index, &q));
    return CUDA(cudaMemcpyAsync, host, own, bytes, cudaMemcpyDeviceToHost, q->stream);
}

duet_status gpu_queue_sync(int index)
{
    ON_DEVICE();
    return is_open(index) ? CUDA(cudaStreamSynchronize, queues[index].stream) : DUET_OK;
}

/* One event a queue is enough: a wait takes the event as it was last recorded, and recorded again it can only stand for more. */
duet_status gpu_queue_wait(int index, int other)
{
    queue *q;
    if (index == other || !is_open(other)) return DUET_OK;
    ON_DEVICE();
    TRY(gpu_queue_open(index, &q));
    gpu_queue_wrote_anything(q);
    TRY(CUDA(cudaEventRecord, queues[other].event, queues[other].stream));
    return CUDA(cudaStreamWaitEvent, q->stream, queues[other].event, 0);
}

static duet_status open_on_device(int index, queue **q)
{
    ON_DEVICE();
    return gpu_queue_open(index, q);
}

void *gpu_queue_stream(int index)
{
    queue *q;
    if (open_on_device(index, &q) != DUET_OK) return NULL;
    __atomic_store_n(&q->user, SEVERAL_USERS, __ATOMIC_RELAXED);
    return q->stream;
}
