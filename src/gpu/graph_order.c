/* graph_order.c - finds which steps of a CUDA graph must wait for which, from the memory that they
 * read and write. */
#include "graph_order.h"
#include "cuda_graph.h"
#include "step_kinds.h"
#include <stdlib.h>
#include <string.h>

/* Steps of a graph after these run one after another, because the search takes quadratic time. */
#define STEPS_MOST 1024
#define WORDS      (STEPS_MOST / 64)

typedef struct step_set {
    uint64_t bit[WORDS];
} step_set;

/* Memory that a step uses. */
typedef struct use {
    span at;
    bool writes;
    int step;
} use;

/* The last nodes of a step: nodes[first], nodes[first + 1] ... */
typedef struct ending {
    int first, count;
} ending;

/* The nodes on which the stream depends now. */
enum { NONE = -1, UNKNOWN = -2 };

struct graph_order {
    use *uses;
    int n_uses, use_capacity;
    cudaGraphNode_t *nodes;
    int n_nodes, node_capacity;
    ending *ends;     /* of each step */
    step_set *before; /* of each step: the steps that it waits for, directly or not */
    int steps, step_capacity;
    int first_use;    /* of the step under capture */
    int stream_is_at; /* the step whose end the stream depends on, or NONE, or UNKNOWN */
    bool is_full;     /* there were STEPS_MOST steps */
    size_t given;     /* the part of the workspace of cuBLASLt that was given to steps */
};

static const span all_memory = { NULL, (const char *)UINTPTR_MAX };

graph_order *gpu_order_new(void)
{
    graph_order *o = calloc(1, sizeof *o);
    if (!o) return NULL;
    o->stream_is_at = NONE;
    return o;
}

void gpu_order_free(graph_order *o)
{
    if (!o) return;
    free(o->uses);
    free(o->nodes);
    free(o->ends);
    free(o->before);
    free(o);
}

/* ---- growing ---- */

static bool grow(void **p, int count, int *capacity, size_t each)
{
    if (count < *capacity) return true;
    const int more = *capacity ? 2 * *capacity : 32;
    void *grown = realloc(*p, (size_t)more * each);
    if (!grown) return false;
    *p = grown;
    *capacity = more;
    return true;
}

static duet_status no_memory(void)
{
    return fail(DUET_NO_MEMORY, "no host memory for the order of the steps in a CUDA graph");
}

static duet_status add_step(graph_order *o)
{
    int capacity = o->step_capacity;
    if (!grow((void **)&o->ends, o->steps, &capacity, sizeof *o->ends) ||
        !grow((void **)&o->before, o->steps, &o->step_capacity, sizeof *o->before))
        return no_memory();
    memset(&o->before[o->steps], 0, sizeof *o->before);
    return DUET_OK;
}

static duet_status add_node(graph_order *o, cudaGraphNode_t node)
{
    if (!grow((void **)&o->nodes, o->n_nodes, &o->node_capacity, sizeof(cudaGraphNode_t))) return no_memory();
    o->nodes[o->n_nodes++] = node;
    return DUET_OK;
}

/* ---- sets of steps ---- */

static bool has(const step_set *s, int i) { return s->bit[i / 64] >> i % 64 & 1; }
static void include(step_set *s, int i) { s->bit[i / 64] |= (uint64_t)1 << i % 64; }

static void include_all(step_set *s, const step_set *more)
{
    for (int i = 0; i < WORDS; i++) s->bit[i] |= more->bit[i];
}

/* Removes from `direct` all steps that others of it wait for, or that the step under capture waits for
 * already. It then waits for the rest, too. */
static void reduce(const graph_order *o, step_set *direct)
{
    step_set *known = &o->before[o->steps];
    for (int i = o->steps; i-- > 0;) {
        if (!has(direct, i)) continue;
        if (has(known, i)) {
            direct->bit[i / 64] &= ~((uint64_t)1 << i % 64);
            continue;
        }
        include(known, i);
        include_all(known, &o->before[i]);
    }
}

/* The only step of the set, or -1. */
static int only_step(const step_set *s, int steps)
{
    int found = -1;
    for (int i = 0; i < steps; i++) {
        if (!has(s, i)) continue;
        if (found >= 0) return -1;
        found = i;
    }
    return found;
}

/* ---- uses of memory ---- */

static bool conflict(const use *a, const use *b)
{
    return (a->writes || b->writes) && spans_meet(a->at, b->at);
}

static duet_status add_use(graph_order *o, span at, bool writes, step_set *direct)
{
    if (at.first == at.end) return DUET_OK;
    if (!grow((void **)&o->uses, o->n_uses, &o->use_capacity, sizeof *o->uses)) return no_memory();
    const use u = { at, writes, o->steps };
    for (int i = 0; i < o->first_use; i++)
        if (conflict(&o->uses[i], &u)) include(direct, o->uses[i].step);
    o->uses[o->n_uses++] = u;
    return DUET_OK;
}

/* Are the operands, and what the step passes to gpu_order_uses, all the memory that it uses? Handles of
 * cuDNN, cuFFT and cuSOLVER and packed operands are not. */
static bool is_known(const step *s)
{
    if (s->math == DUET_MATH_SPLIT && kernels_splits(s)) return false;
    if (s->kernel == OP_matmul) return !is_int_gemm(s);
    if (s->kernel == KERNEL_COLLECTIVE) return true;
    return gpu_kernel_of(s->kernel)->run == gpu_launch || (is_conv(s->kernel) && !kernels_unsupported(s));
}

static duet_status add_uses(graph_order *o, const step *s, const frame *f, step_set *direct)
{
    if (!is_known(s)) return add_use(o, all_memory, true, direct);
    for (int i = 0; i < s->outs; i++) TRY(add_use(o, gpu_span_of_result(s, i, f), true, direct));
    for (int i = 0; i < s->ins; i++) TRY(add_use(o, gpu_span_of(&s->in[i], f), false, direct));
    return DUET_OK;
}

/* ---- dependencies of the stream ---- */

static duet_status get_dependencies(queue *q, const cudaGraphNode_t **nodes, size_t *count)
{
    enum cudaStreamCaptureStatus status;
#if CUDART_VERSION >= 13000
    TRY(CUDA(cudaStreamGetCaptureInfo, q->capture_stream, &status, NULL, NULL, nodes, NULL, count));
#else
    TRY(CUDA(cudaStreamGetCaptureInfo_v2, q->capture_stream, &status, NULL, NULL, nodes, count));
#endif
    if (status == cudaStreamCaptureStatusActive) return DUET_OK;
    return fail(DUET_DEVICE_ERROR, "the capture of a CUDA graph was invalidated");
}

static duet_status update(queue *q, cudaGraphNode_t *nodes, int count, unsigned flags)
{
#if CUDART_VERSION >= 13000
    return CUDA(cudaStreamUpdateCaptureDependencies, q->capture_stream, nodes, NULL, (size_t)count, flags);
#else
    return CUDA(cudaStreamUpdateCaptureDependencies, q->capture_stream, nodes, (size_t)count, flags);
#endif
}

/* Makes the stream depend on the ends of these steps: instead of what it depends on, or also (flags).
 * Kernels must not use programmatic dependent launch, because the step captured last may not be the one
 * that runs before. */
static duet_status depend_on(queue *q, graph_order *o, const step_set *s, unsigned flags)
{
    const int first = o->n_nodes;
    gpu_queue_wrote_anything(q);
    o->stream_is_at = UNKNOWN;
    for (int i = 0; i < o->steps; i++)
        for (int k = 0; has(s, i) && k < o->ends[i].count; k++)
            TRY(add_node(o, o->nodes[o->ends[i].first + k]));
    const int count = o->n_nodes - first;
    o->n_nodes = first;
    if (!count && flags == cudaStreamAddCaptureDependencies) return DUET_OK;
    return update(q, o->nodes ? o->nodes + first : NULL, count, flags);
}

/* ---- steps ---- */

/* Sets the dependencies of a step that waits for these. */
static duet_status begin_after(queue *q, graph_order *o, step_set *direct)
{
    reduce(o, direct);
    const int only = only_step(direct, o->steps);
    if (o->stream_is_at == NONE && o->steps == 0) return DUET_OK;
    if (only >= 0 && only == o->stream_is_at) return DUET_OK;
    return depend_on(q, o, direct, cudaStreamSetCaptureDependencies);
}

duet_status gpu_order_begin(queue *q, const step *s, const frame *f)
{
    graph_order *o = gpu_graph_order(q);
    step_set direct = { 0 };
    if (o->is_full) return DUET_OK;
    o->is_full = o->steps + 1 == STEPS_MOST;
    TRY(add_step(o));
    o->n_uses = o->first_use;
    if (o->is_full) TRY(add_use(o, all_memory, true, &direct));
    else TRY(add_uses(o, s, f, &direct));
    return begin_after(q, o, &direct);
}

/* Is the node the end of an earlier step? */
static bool is_earlier(const graph_order *o, cudaGraphNode_t node)
{
    for (int i = o->n_nodes; i-- > 0;)
        if (o->nodes[i] == node) return true;
    return false;
}

/* A step that launched nothing is forgotten. */
duet_status gpu_order_end(queue *q)
{
    graph_order *o = gpu_graph_order(q);
    const cudaGraphNode_t *nodes;
    size_t count;
    if (o->is_full) return DUET_OK;
    TRY(get_dependencies(q, &nodes, &count));
    if (!count || is_earlier(o, nodes[0])) return DUET_OK;
    o->ends[o->steps] = (ending){ o->n_nodes, (int)count };
    for (size_t i = 0; i < count; i++) TRY(add_node(o, nodes[i]));
    o->first_use = o->n_uses;
    o->stream_is_at = o->steps++;
    return DUET_OK;
}

/* What the step under capture launches from now on waits for these, too. */
static duet_status also_after(queue *q, graph_order *o, step_set *direct)
{
    reduce(o, direct);
    for (int i = 0; i < WORDS; i++)
        if (direct->bit[i]) return depend_on(q, o, direct, cudaStreamAddCaptureDependencies);
    return DUET_OK;
}

static duet_status also_uses(queue *q, span at)
{
    graph_order *o = gpu_graph_order(q);
    step_set direct = { 0 };
    if (o->is_full) return DUET_OK;
    TRY(add_use(o, at, true, &direct));
    return also_after(q, o, &direct);
}

duet_status gpu_order_uses(queue *q, const void *p, size_t bytes)
{
    if (likely(!gpu_queue_captures(q)) || !bytes) return DUET_OK;
    return also_uses(q, (span){ p, (const char *)p + bytes });
}

duet_status gpu_order_part(queue *q, void *memory, size_t all, size_t *bytes, void **lent)
{
    *lent = memory;
    if (likely(!gpu_queue_captures(q))) {
        *bytes = all;
        return DUET_OK;
    }
    graph_order *o = gpu_graph_order(q);
    const size_t each = (*bytes + 255) / 256 * 256;
    if (o->given + each > all) o->given = 0;
    *lent = (char *)memory + o->given;
    o->given += each;
    return gpu_order_uses(q, *lent, *bytes);
}
