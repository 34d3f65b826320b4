/* queue.h - a thread's queue on the card: a stream, and the vendors' handles that work on it. */
#ifndef QUEUE_H
#define QUEUE_H

#include "device.h"
#include "kernels.h"
#include "pool.h"
#include "thread.h"
#include "vendor.h"
#include <pthread.h>

/* Made on first use and never destroyed. Each thread writes to its own at every launch: no two share lines of a cache. */
typedef struct queue {
    _Alignas(128) int device; /* whose stream it is */
    int index;
    cudaStream_t stream;
    cudaEvent_t event; /* recorded when another queue waits for this one */
    cudaStream_t
        noted; /* nobody else's: what is recorded into a graph is put here instead, and nothing of it is done */
    const thread *noting; /* who records, or NULL */
    struct graph *graph;  /* then: what is being recorded */
    uint32_t *counters;   /* of kernels.h */
    bool counts;          /* they are known to be 0 between launches */
    const thread *
        user; /* the only thread that launched here; or, once there were two, or somebody has the stream, SEVERAL_USERS */
    span written; /* by what was last put on the stream */
    pthread_mutex_t
        lock; /* of the handle and of blas_room: threads may share a queue. Recursive: who records holds it meanwhile */
    void *blas_room; /* products work in it; NULL until the first */
    size_t blas_bytes;
    cudnnHandle_t dnn;
    cusolverDnHandle_t solver; /* these work on the stream alone */
    cusolverDnParams_t solver_params;
    cublasHandle_t blas;
} queue;

/* Where this thread's work goes. */
static inline cudaStream_t gpu_queue_cuda_stream(const queue *q)
{
    const bool notes = __builtin_expect(__atomic_load_n(&q->noting, __ATOMIC_RELAXED) == thread_get(), 0);
    return notes ? q->noted : q->stream;
}

/* cuDNN works on the one stream or the other from here on; the caller holds q->lock. A handle that refuses is closed. */
duet_status gpu_queue_point(queue *q, cudaStream_t to);

duet_status gpu_queue_open(int device, int index, queue **q);

/* What the work last put on the stream writes: all that there is, where that is not known. Said by whoever puts work there. */
span gpu_queue_written(queue *q);
void gpu_queue_wrote(queue *q, span s);
void gpu_queue_wrote_anything(queue *q);

/* Sets the counters to 0, unless they are known to be; and again after a launch that failed. */
duet_status gpu_queue_count(queue *q);
void gpu_queue_recount(queue *q);

/* The handle; the caller holds q->lock. */
duet_status gpu_queue_dnn(queue *q, const vendor **v);

/* Takes of the card's memory, but leaves the thread's error text alone when there is no room: the caller has another way. */
typedef duet_status gpu_taking(int device, size_t bytes, int queue,
                               void **p); /* pool_take, or scratch_acquire */
duet_status gpu_take_quietly(gpu_taking *take, size_t bytes, const queue *q, void **p);

duet_status gpu_queue_clear(int device, void *p, size_t bytes, int index);
duet_status gpu_queue_upload(int device, void *own, const void *host, size_t bytes, int index);
duet_status gpu_queue_download(int device, void *host, const void *own, size_t bytes, int index);
duet_status gpu_queue_fetch(int device, void *host, const void *own, size_t bytes, int index);
duet_status gpu_queue_copy(int device, void *own, int from, const void *other, size_t bytes, int index);
duet_status gpu_queue_sync(int device, int index);
duet_status gpu_queue_wait(int device, int index, int from, int other);
void *gpu_queue_stream(int device, int index);

#endif
