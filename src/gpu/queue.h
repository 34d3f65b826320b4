/* queue.h - a thread's queue on a card: a stream, and the vendor handles that use it. */
#ifndef QUEUE_H
#define QUEUE_H

#include "device.h"
#include "kernels.h"
#include "pool.h"
#include "thread.h"
#include "vendor.h"
#include <pthread.h>

/* A queue is made on first use and never destroyed. Threads write to their queues at every launch, so
 * no two queues share a cache line. */
typedef struct queue {
    _Alignas(128) int device; /* the device of the stream */
    int index;
    cudaStream_t stream;
    cudaEvent_t event;           /* recorded when another queue waits for this one */
    cudaStream_t capture_stream; /* the stream for captures; work on it is recorded, not executed */
    const thread *capturing;     /* the thread that is capturing, or NULL */
    struct graph *graph;         /* the graph under capture */
    uint32_t *counters;          /* the arrival counters of kernels.h */
    bool counts;                 /* counters are known to be 0 between launches */
    index_report indices;        /* where kernels report indices out of bounds */
    index_report replayed;       /* that of the latest graph that was captured on another queue */
    /* the only thread that launched here, or SEVERAL_USERS after a second thread launched or
     * the stream was given to the user */
    const thread *user;
    span written; /* by the last work on the stream */
    struct gpu_link
        *exchanges; /* on the stream of this link, for which the queue may have to wait; or NULL */
    /* for the handles and blas_workspace, because threads may share a queue. Recursive, because a
     * capture holds it */
    pthread_mutex_t lock;
    void *blas_workspace; /* workspace of cuBLASLt; NULL before the first product */
    size_t blas_bytes;
    cudnnHandle_t dnn;
    cusolverDnHandle_t solver; /* handles that use only the stream */
    cusolverDnParams_t solver_params;
    cublasHandle_t blas;
    cusparseHandle_t sparse; /* uses only the stream */
    cudssHandle_t direct;    /* of sparse systems; uses only the stream */
} queue;

/* Does this thread capture a graph on the queue? */
static inline bool gpu_queue_captures(const queue *q)
{
    return unlikely(__atomic_load_n(&q->capturing, __ATOMIC_RELAXED) == thread_get());
}

/* Returns the stream for the work of this thread: that of captures while it captures a graph. */
static inline cudaStream_t gpu_queue_cuda_stream(const queue *q)
{
    return gpu_queue_captures(q) ? q->capture_stream : q->stream;
}

/* Makes cuDNN use this stream; the caller holds q->lock. If cuDNN returns an error, the handle is
 * closed. */
duet_status gpu_queue_point(queue *q, cudaStream_t to);

duet_status gpu_queue_open(int device, int index, queue **q);

/* The address range that the last work on the stream writes, or all addresses if that is unknown.
 * Functions that queue work set it. */
span gpu_queue_written(queue *q);
void gpu_queue_wrote(queue *q, span s);
void gpu_queue_wrote_anything(queue *q);

/* Clears the counters unless they are known to be 0; also after a failed launch. */
duet_status gpu_queue_count(queue *q);
void gpu_queue_recount(queue *q);

/* Returns the handle; the caller holds q->lock. */
duet_status gpu_queue_dnn(queue *q, const vendor **v);

/* link.c: block the host until a stream of the device has done its work. If an exchange of the device has
 * failed, or takes too long, it is aborted. gpu_links_wait does nothing if no link exists: call it before
 * calls of CUDA that may block.
 * Errors    RANK_FAILED, DEVICE_ERROR */
duet_status gpu_stream_wait(int device, cudaStream_t stream);
duet_status gpu_links_wait(int device, cudaStream_t stream);
bool gpu_links_exist(void);

/* Takes device memory. Without memory it leaves the error text of the thread unchanged, because the
 * caller has an alternative. */
typedef duet_status gpu_taking(int device, size_t bytes, int queue,
                               void **p); /* pool_take or scratch_acquire */
duet_status gpu_take_quietly(gpu_taking *take, size_t bytes, const queue *q, void **p);

/* After the loss of a card: close the handles of vendor libraries; forget streams and all that belongs
 * to them, without a call of CUDA. */
void gpu_queues_close(int device);
void gpu_queues_forget(int device);
void gpu_solver_close(const vendor *v, queue *q); /* cusolver.c */
void gpu_sparse_close(const vendor *v, queue *q); /* cusparse.c */
void gpu_direct_close(const vendor *v, queue *q); /* sparse_systems.c */

duet_status gpu_queue_clear(int device, void *p, size_t bytes, int index);
duet_status gpu_queue_upload(int device, void *own, const void *host, size_t bytes, int index);
duet_status gpu_queue_download(int device, void *host, const void *own, size_t bytes, int index);
duet_status gpu_queue_fetch(int device, void *host, const void *own, size_t bytes, int index);
duet_status gpu_queue_copy(int device, void *own, int from, const void *other, size_t bytes, int index);
duet_status gpu_queue_sync(int device, int index);
/* Fails if a kernel has found an index out of bounds since the last call. The host has waited for the
 * queue. Errors: BAD_ARGUMENT */
duet_status gpu_queue_report(int device, int index);
duet_status gpu_queue_wait(int device, int index, int from, int other);
void *gpu_queue_stream(int device, int index);

#endif
