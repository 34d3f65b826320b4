/* graph.c - steps as a CUDA graph: one launch for all of them. */
#include "graph.h"

/* The counters are 0 before: a graph that set them would set them at every launch. */
duet_status gpu_graph_record(int index)
{
    queue *q;
    ON_DEVICE();
    TRY(gpu_queue_open(index, &q));
    TRY(gpu_queue_count(q));
    return CUDA(cudaStreamBeginCapture, q->stream, cudaStreamCaptureModeThreadLocal);
}

static duet_status instantiate(cudaGraph_t graph, void **made)
{
    cudaGraphExec_t exec = NULL;
    duet_status s = CUDA(cudaGraphInstantiate, &exec, graph, 0);
    (void)cudaGraphDestroy(graph);
    *made = s == DUET_OK ? exec : NULL;
    return s;
}

/* A step that failed has had the counters set, but in the graph, which nobody will run. */
duet_status gpu_graph_recorded(int index, void **graph)
{
    queue *q;
    cudaGraph_t noted = NULL;
    *graph = NULL;
    ON_DEVICE();
    TRY(gpu_queue_open(index, &q));
    duet_status s = CUDA(cudaStreamEndCapture, q->stream, &noted);
    if (s == DUET_OK) s = instantiate(noted, graph);
    if (s != DUET_OK) gpu_queue_recount(q);
    return s;
}

duet_status gpu_graph_replay(void *graph, int index)
{
    queue *q;
    ON_DEVICE();
    TRY(gpu_queue_open(index, &q));
    TRY(gpu_queue_count(q));
    return CUDA(cudaGraphLaunch, (cudaGraphExec_t)graph, q->stream);
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
