/* cuda_graph.c - captures steps into a CUDA graph, which is launched at once. The capture uses a
 * stream that no other thread uses or waits for. */
#include "cuda_graph.h"
#include "graph_order.h"
#include "link.h"
#include "packed_cache.h"
#include "step_kinds.h"
#include <stdlib.h>

typedef struct graph {
    cudaGraphExec_t exec; /* NULL: the card was lost */
    int device;
    struct graph *older, *newer; /* in the list of all graphs that can be launched */
    index_report indices;        /* of the queue that captured it */
    packed_operand **uses;
    int count, capacity;
    graph_order *order; /* during the capture */
    kernels_used *used;
    gpu_link *link; /* of its exchanges, or NULL */
} graph;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static graph *newest;

static void enter_list(graph *g)
{
    pthread_mutex_lock(&lock);
    g->older = newest;
    if (newest) newest->newer = g;
    newest = g;
    pthread_mutex_unlock(&lock);
}

static void leave_list(graph *g)
{
    pthread_mutex_lock(&lock);
    if (g->older) g->older->newer = g->newer;
    if (g->newer) g->newer->older = g->older;
    else newest = g->older;
    pthread_mutex_unlock(&lock);
}

static void release_uses(graph *g)
{
    for (int i = 0; i < g->count; i++) packed_release(g->uses[i]);
    g->count = 0;
}

static void end_graph(graph *g)
{
    release_uses(g);
    kernels_used_free(g->used);
    gpu_link_release(g->link);
    gpu_order_free(g->order);
    free(g->uses);
    free(g);
}

/* The calls fail, since the context has ended, but CUDA frees its memory of the host. */
void gpu_graphs_end(int device)
{
    pthread_mutex_lock(&lock);
    for (graph *g = newest; g; g = g->older) {
        if (g->device != device || !g->exec) continue;
        if (cudaGraphExecDestroy(g->exec) != cudaSuccess) (void)cudaGetLastError();
        g->exec = NULL;
        release_uses(g);
    }
    pthread_mutex_unlock(&lock);
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

duet_status gpu_graph_links(queue *q, gpu_link *l)
{
    graph *g = q->graph;
    if (g->link == l) return DUET_OK;
    if (g->link) return fail(DUET_UNSUPPORTED, "a CUDA graph cannot have exchanges of several groups");
    gpu_link_hold(l);
    g->link = l;
    return DUET_OK;
}

struct graph_order *gpu_graph_order(const queue *q) { return q->graph->order; }
kernels_used *gpu_graph_used(const queue *q) { return q->graph->used; }

static duet_status open_capture_stream(queue *q)
{
    if (q->capture_stream) return DUET_OK;
    return CUDA(cudaStreamCreateWithFlags, &q->capture_stream, cudaStreamNonBlocking);
}

static duet_status begin(queue *q)
{
    TRY(open_capture_stream(q));
    q->graph = calloc(1, sizeof *q->graph);
    if (q->graph) q->graph->order = gpu_order_new();
    if (q->graph) q->graph->used = kernels_used_new();
    if (!q->graph || !q->graph->order || !q->graph->used)
        return fail(DUET_NO_MEMORY, "no host memory for a CUDA graph");
    q->graph->indices = q->indices;
    q->graph->device = q->device;
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
    gpu_order_free(q->graph->order);
    q->graph->order = NULL;
    enter_list(q->graph);
    q->graph = NULL;
    return DUET_OK;
}

/* The handles return to the normal stream even if a call fails. */
duet_status gpu_graph_recorded(int device, int index, void **made)
{
    queue *q;
    device_scope scope;
    *made = NULL;
    TRY(gpu_queue_open(device, index, &q)); /* it is open already */
    (void)gpu_device_enter(device, &scope);
    const duet_status s = end(q, made), back = gpu_queue_point(q, q->stream);
    __atomic_store_n(&q->capturing, NULL, __ATOMIC_RELAXED);
    gpu_queue_wrote_anything(q);
    give_up(q);
    pthread_mutex_unlock(&q->lock);
    gpu_device_leave(&scope);
    return s != DUET_OK ? s : back;
}

bool gpu_graph_outdated(int device, void *made)
{
    const graph *g = made;
    (void)device;
    return kernels_used_outdated(g->used);
}

/* The exchanges of a graph wait for other ranks with the time limit of the link. */
static duet_status launch_exec(const graph *g, const queue *q)
{
    if (likely(!g->link)) return CUDA(cudaGraphLaunch, g->exec, q->stream);
    TRY(gpu_link_begin(g->link, q->stream, 0));
    const duet_status s = CUDA(cudaGraphLaunch, g->exec, q->stream), ended = gpu_link_end(g->link, q->stream);
    return s == DUET_OK ? half_written(ended) : s;
}

/* Without memory for a graph, its steps run one by one; so do those of a graph that was lost. */
static duet_status launch_graph(int device, const graph *g, int index)
{
    queue *q;
    ON_DEVICE(device);
    if (unlikely(!g->exec)) return fail(DUET_NO_MEMORY, "the GPU was lost with the CUDA graph");
    TRY(gpu_queue_open(device, index, &q));
    TRY(gpu_queue_count(q));
    for (int i = 0; i < g->count; i++) TRY(packed_refresh(g->uses[i], q));
    gpu_queue_wrote_anything(q);
    if (g->indices.found != q->indices.found) q->replayed = g->indices;
    return launch_exec(g, q);
}

/* The first launch allocates memory outside the pool. */
duet_status gpu_graph_replay(int device, void *made, int index)
{
    const duet_status s = launch_graph(device, made, index);
    if (likely(s != DUET_NO_MEMORY || !pool_memory(device).cached)) return s;
    duet_memory_trim();
    return launch_graph(device, made, index);
}

/* Also if the card was lost: CUDA still frees its memory of the host. */
static void destroy(int device, cudaGraphExec_t exec)
{
    device_scope s;
    error_text before;
    error_keep(&before);
    (void)gpu_device_enter(device, &s);
    (void)CUDA(cudaGraphExecDestroy, exec);
    gpu_device_leave(&s);
    error_put_back(&before);
}

/* CUDA keeps a graph in execution alive. Its memory is released for later work of the queue. */
void gpu_graph_discard(int device, void *made)
{
    graph *g = made;
    if (!g) return;
    leave_list(g);
    if (g->exec) destroy(device, g->exec);
    end_graph(g);
}
