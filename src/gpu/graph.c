/* graph.c - steps as a CUDA graph: one launch for all of them. They are noted on a stream that no other thread waits for or fills. */
#include "graph.h"

static duet_status open_noted(queue *q)
{
    return q->noted ? DUET_OK : CUDA(cudaStreamCreateWithFlags, &q->noted, cudaStreamNonBlocking);
}

static duet_status begin(queue *q)
{
    TRY(open_noted(q));
    TRY(gpu_queue_point(q, q->noted));
    return CUDA(cudaStreamBeginCapture, q->noted, cudaStreamCaptureModeThreadLocal);
}

/* The counters are 0 before: a graph that set them would set them at every launch. The lock is held until recorded. */
duet_status gpu_graph_record(int index)
{
    queue *q;
    ON_DEVICE();
    TRY(gpu_queue_open(index, &q));
    TRY(gpu_queue_count(q));
    pthread_mutex_lock(&q->lock);
    const duet_status s = begin(q);
    if (s == DUET_OK) return __atomic_store_n(&q->noting, thread_get(), __ATOMIC_RELAXED), s;
    (void)gpu_queue_point(q, q->stream);
    pthread_mutex_unlock(&q->lock);
    return s;
}

static duet_status instantiate(cudaGraph_t graph, void **made)
{
    cudaGraphExec_t exec = NULL;
    duet_status s = CUDA(cudaGraphInstantiate, &exec, graph, 0);
    (void)cudaGraphDestroy(graph);
    *made = s == DUET_OK ? exec : NULL;
    return s;
}

static duet_status end(queue *q, void **graph)
{
    cudaGraph_t noted = NULL;
    TRY(CUDA(cudaStreamEndCapture, q->noted, &noted));
    return instantiate(noted, graph);
}

/* Whatever fails, the handles are pointed back. */
duet_status gpu_graph_recorded(int index, void **graph)
{
    queue *q;
    int before = -1;
    *graph = NULL;
    TRY(gpu_queue_open(index, &q)); /* it is */
    (void)gpu_device_enter(&before);
    const duet_status s = end(q, graph), back = gpu_queue_point(q, q->stream);
    __atomic_store_n(&q->noting, NULL, __ATOMIC_RELAXED);
    gpu_queue_wrote_anything(q);
    pthread_mutex_unlock(&q->lock);
    gpu_device_leave(&before);
    return s != DUET_OK ? s : back;
}

static duet_status launch(void *graph, int index)
{
    queue *q;
    ON_DEVICE();
    TRY(gpu_queue_open(index, &q));
    TRY(gpu_queue_count(q));
    gpu_queue_wrote_anything(q);
    return CUDA(cudaGraphLaunch, (cudaGraphExec_t)graph, q->stream);
}

/* The first launch takes memory that is not the pool's. */
duet_status gpu_graph_replay(void *graph, int index)
{
    const duet_status s = launch(graph, index);
    if (__builtin_expect(s != DUET_NO_MEMORY || !duet_memory_of(DUET_GPU).cached, 1)) return s;
    duet_memory_trim();
    return launch(graph, index);
}

static duet_status destroy(void *graph)
{
    ON_DEVICE();
    return CUDA(cudaGraphExecDestroy, (cudaGraphExec_t)graph);
}

/* CUDA keeps what is under way. */
void gpu_graph_discard(void *graph)
{
    if (graph) (void)destroy(graph);
}
