/* queue.c - streams, the order between them, and copies. Nothing here waits on the host but sync and download. */
#define _GNU_SOURCE /* a mutex that is recursive from the start */
#include "queue.h"
#include "kernels.h"
#include "stage.h"
#include <string.h>

static queue queues[QUEUES] = { [0 ... QUEUES - 1] = { .lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP } };
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

/* The counters are set here too, before anyone can record the stream's work into a graph. */
static duet_status make_stream(int index)
{
    queue *q = &queues[index];
    if (q->stream) return DUET_OK;
    cudaStream_t stream;
    q->index = index;
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
    char *text = thread_get()->text, before[sizeof thread_get()->text];
    memcpy(before, text, sizeof before);
    duet_status s = take(DEVICE, bytes, q->index, p);
    if (s == DUET_NO_MEMORY) memcpy(text, before, sizeof before);
    return s;
}

/* cuBLAS works in memory of ours: it is accounted, and one workspace a stream makes results repeat. What NVIDIA advises, where there
 * is room for it; 64 KiB is enough for every routine. */
static duet_status lend_workspace(const vendor *v, queue *q, cublasHandle_t blas)
{
    size_t bytes = gpu_device_major() >= 9 ? 32 << 20 : 4 << 20, least = 64 << 10, limit = duet_memory_of(DUET_GPU).limit;
    void *p;
    duet_status s;
    while (limit && bytes > least && bytes > limit / 16) bytes /= 2;
    while ((s = gpu_take_quietly(pool_take, bytes, q, &p)) == DUET_NO_MEMORY && bytes > least)
        bytes = bytes / 8 > least ? bytes / 8 : least;
    if (s == DUET_NO_MEMORY) s = pool_take(DEVICE, bytes, q->index, &p);
    TRY(s);
    s = BLAS(v, cublasSetWorkspace, blas, p, bytes);
    if (s != DUET_OK) pool_give(DEVICE, p, 0);
    else q->blas_room = p, q->blas_bytes = bytes;
    return s;
}

static void close_blas(const vendor *v, queue *q)
{
    (void)v->cublasDestroy(q->blas);
    pool_give(DEVICE, q->blas_room, 1ull << q->index);
    q->blas = NULL, q->blas_room = NULL;
}

static void close_dnn(const vendor *v, queue *q)
{
    (void)v->cudnnDestroy(q->dnn);
    q->dnn = NULL;
}

/* cuBLAS forgets its workspace with its stream. */
duet_status gpu_queue_point(queue *q, cudaStream_t to)
{
    const vendor *v = vendor_open(LIBRARY_cublas);
    duet_status blas = DUET_OK, dnn = DUET_OK;
    if (q->blas) blas = BLAS(v, cublasSetStream, q->blas, to);
    if (q->blas && blas == DUET_OK) blas = BLAS(v, cublasSetWorkspace, q->blas, q->blas_room, q->blas_bytes);
    if (q->dnn) dnn = DNN(v, cudnnSetStream, q->dnn, to);
    if (blas != DUET_OK) close_blas(v, q);
    if (dnn != DUET_OK) close_dnn(v, q);
    return blas != DUET_OK ? blas : dnn;
}

/* Default math: for cublasSgemm and cublasDgemm it computes and keeps at full precision; TF32 has to be asked for. */
duet_status gpu_queue_blas(queue *q, const vendor **v)
{
    *v = vendor_open(LIBRARY_cublas);
    if (q->blas) return DUET_OK;
    cublasHandle_t blas;
    TRY(BLAS(*v, cublasCreate, &blas));
    duet_status s = BLAS(*v, cublasSetStream, blas, q->stream); /* it forgets the workspace: stream first */
    if (s == DUET_OK) s = lend_workspace(*v, q, blas);
    if (s == DUET_OK) q->blas = blas;
    else (void)(*v)->cublasDestroy(blas);
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
    return CUDA(cudaMemsetAsync, p, 0, bytes, q->stream);
}

duet_status gpu_queue_upload(void *own, const void *host, size_t bytes, int index)
{
    queue *q;
    bool done;
    if (!bytes) return DUET_OK;
    ON_DEVICE();
    TRY(gpu_queue_open(index, &q));
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
    return open_on_device(index, &q) == DUET_OK ? q->stream : NULL;
}
