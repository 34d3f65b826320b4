/* cuda_graph.c - captures steps into a CUDA graph, which is launched at once. The capture uses a
 * stream that no other thread uses or waits for. */
#include "cuda_graph.h"
#include "packed_cache.h"
#include <stdlib.h>

typedef struct graph {
    cudaGraphExec_t exec;
    packed_operand **uses;
    int count, capacity;
} graph;

static void end_graph(graph *g)
{
    for (int i = 0; i < g->count; i++) packed_release(g->uses[i]);
    free(g->uses);
    free(g);
}

static bool has_capacity(graph *g)
{
    if (g->count < g->capacity) return true;
    const int capacity = g->capacity ? 2 * g->capacity : 8;
    packed_operand **uses = realloc(g->uses, (size_t)capacity * sizeof *uses);
    if (uses) {
        g->uses = uses;
        g->capacity = capacity;
    }
    return uses;
}

duet_status gpu_graph_uses(queue *q, packed_operand *k)
{
    graph *g = q->graph;
    for (int i = 0; i < g->count; i++)
        if (g->uses[i] == k) return DUET_OK;
    if (!has_capacity(g))
        return fail(DUET_NO_MEMORY, "no host memory for the list of buffers that a CUDA graph uses");
    packed_hold(k);
    g->uses[g->count++] = k;
    return DUET_OK;
}

static duet_status open_capture_stream(queue *q)
{
    if (q->capture_stream) return DUET_OK;
    return CUDA(cudaStreamCreateWithFlags, &q->capture_stream, cudaStreamNonBlocking);
}

static duet_status begin(queue *q)
{
    TRY(open_capture_stream(q));
    q->graph = calloc(1, sizeof *q->graph);
    if (!q->graph) return fail(DUET_NO_MEMORY, "no host memory for a CUDA graph");
    TRY(gpu_queue_point(q, q->capture_stream));
    return CUDA(cudaStreamBeginCapture, q->capture_stream, cudaStreamCaptureModeThreadLocal);
}

static void give_up(queue *q)
{
    if (q->graph) end_graph(q->graph);
    q->graph = NULL;
}

/* The counters must be 0 before the capture: a graph that clears them would do so at every launch.
 * The lock is held until gpu_graph_recorded. */
duet_status gpu_graph_record(int device, int index)
{
    queue *q;
    ON_DEVICE(device);
    TRY(gpu_queue_open(device, index, &q));
    TRY(gpu_queue_count(q));
    pthread_mutex_lock(&q->lock);
    const duet_status s = begin(q);
    if (s == DUET_OK) {
        __atomic_store_n(&q->capturing, thread_get(), __ATOMIC_RELAXED);
        return s;
    }
    (void)gpu_queue_point(q, q->stream);
    give_up(q);
    pthread_mutex_unlock(&q->lock);
    return s;
}

static duet_status instantiate(cudaGraph_t captured, graph *g)
{
    const duet_status s = CUDA(cudaGraphInstantiate, &g->exec, captured, 0);
    (void)cudaGraphDestroy(captured);
    return s;
}

static duet_status end(queue *q, void **made)
{
    cudaGraph_t captured = NULL;
    TRY(CUDA(cudaStreamEndCapture, q->capture_stream, &captured));
    TRY(instantiate(captured, q->graph));
    *made = q->graph;
    q->graph = NULL;
    return DUET_OK;
}

/* The handles return to the normal stream even if a call fails. */
duet_status gpu_graph_recorded(int device, int index, void **made)
{
    queue *q;
    int before = -1;
    *made = NULL;
    TRY(gpu_queue_open(device, index, &q)); /* it is open already */
    (void)gpu_device_enter(device, &before);
    const duet_status s = end(q, made), back = gpu_queue_point(q, q->stream);
    __atomic_store_n(&q->capturing, NULL, __ATOMIC_RELAXED);
    gpu_queue_wrote_anything(q);
    give_up(q);
    pthread_mutex_unlock(&q->lock);
    gpu_device_leave(&before);
    return s != DUET_OK ? s : back;
}

static duet_status launch_graph(int device, const graph *g, int index)
{
    queue *q;
    ON_DEVICE(device);
    TRY(gpu_queue_open(device, index, &q));
    TRY(gpu_queue_count(q));
    for (int i = 0; i < g->count; i++) TRY(packed_refresh(g->uses[i], q));
    gpu_queue_wrote_anything(q);
    return CUDA(cudaGraphLaunch, g->exec, q->stream);
}

/* The first launch allocates memory outside the pool. */
duet_status gpu_graph_replay(int device, void *made, int index)
{
    const duet_status s = launch_graph(device, made, index);
    if (likely(s != DUET_NO_MEMORY || !pool_memory(device).cached)) return s;
    duet_memory_trim();
    return launch_graph(device, made, index);
}

static duet_status destroy(int device, cudaGraphExec_t exec)
{
    ON_DEVICE(device);
    return CUDA(cudaGraphExecDestroy, exec);
}

/* CUDA keeps a graph in execution alive. Its memory is released for later work of the queue. */
void gpu_graph_discard(int device, void *made)
{
    graph *g = made;
    if (!g) return;
    (void)destroy(device, g->exec);
    end_graph(g);
}
