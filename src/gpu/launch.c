/* launch.c - runs a step by one of Duet's own kernels, and the element-wise operators and copies that
 * the other files of this folder need. */
#include "cuda_graph.h"
#include "dtype.h"
#include "graph_order.h"
#include "kernels.h"
#include "scratch.h"
#include "step_kinds.h"

span gpu_span_of(const operand *x, const frame *f)
{
    int64_t low, high;
    const int64_t each = (int64_t)dtypes[x->at.type].bytes;
    const char *p = f->data[x->slot];
    layout_span(&x->at, &low, &high);
    return (span){ p + low * each, p + high * each };
}

/* A reduction writes its results also if it has no elements to reduce. */
span gpu_span_of_result(const step *s, int k, const frame *f)
{
    operand not_reduced = s->out[k];
    not_reduced.at.rank -= s->inner;
    return gpu_span_of(&not_reduced, f);
}

/* The address range that a launch writes. */
static span written_by(const step *s, const frame *f, const void *scratch, size_t bytes)
{
    span all = { scratch, scratch ? (const char *)scratch + bytes : NULL };
    for (int k = 0; k < s->outs; k++) {
        const span out = gpu_span_of_result(s, k, f);
        if (!all.first || out.first < all.first) all.first = out.first;
        if (!all.end || out.end > all.end) all.end = out.end;
    }
    return all;
}

/* Only launches with scratch memory use the counters. */
static duet_status use_scratch(queue *q, const void *scratch, size_t bytes)
{
    TRY(gpu_order_uses(q, scratch, bytes));
    return gpu_order_uses(q, q->counters, KERNELS_COUNTERS * sizeof *q->counters);
}

duet_status gpu_launch_with(const step *s, const frame *f, queue *q, const void *packed)
{
    const size_t bytes = kernels_scratch(s);
    const bool is_given = s->scratch > 0;
    workspace w = { .counters = q->counters, .packed = packed, .indices = q->indices };
    if (gpu_queue_captures(q)) w.used = gpu_graph_used(q);
    TRY(gpu_queue_count(q));
    if (is_given) w.scratch = f->data[s->scratch - 1];
    else if (bytes) TRY(scratch_acquire(q->device, bytes, q->index, &w.scratch));
    duet_status r = bytes ? use_scratch(q, w.scratch, bytes) : DUET_OK;
    w.written = gpu_queue_written(q);
    if (r == DUET_OK) r = CUDA(launch_step, s, f, &w, gpu_queue_cuda_stream(q));
    gpu_queue_wrote(q, written_by(s, f, w.scratch, bytes));
    if (!is_given) gpu_give(w.scratch, q);
    if (r == DUET_OK) COUNT(launches);
    else gpu_queue_recount(q);
    return r;
}

/* Products need neither scratch memory nor counters. */
duet_status gpu_launch_joined(const step *s, const step *then, const frame *f, queue *q, const void *packed,
                              bool *done)
{
    workspace w = { .counters = q->counters, .packed = packed, .indices = q->indices };
    if (gpu_queue_captures(q)) w.used = gpu_graph_used(q);
    w.written = gpu_queue_written(q);
    TRY(CUDA(launch_joined, s, then, f, &w, gpu_queue_cuda_stream(q), done));
    if (!*done) return DUET_OK;
    gpu_queue_wrote(q, written_by(then, f, NULL, 0));
    COUNT(launches);
    return DUET_OK;
}

duet_status gpu_launch(const step *s, const frame *f, queue *q) { return gpu_launch_with(s, f, q, NULL); }

void gpu_give(void *block, const queue *q)
{
    if (block) scratch_release(q->device, block, q->index);
}

duet_status gpu_apply(int op, void *out, const layout *out_at, const part *x, int n, queue *q)
{
    return gpu_apply_two(op, OP_LOAD, out, out_at, x, n, q);
}

/* The program is [op, then, STORE], or without `then` if that is LOAD. The operands follow the output in
 * `data`. */
duet_status gpu_apply_two(int op, int then, void *out, const layout *out_at, const part *x, int n, queue *q)
{
    uint8_t type = (uint8_t)out_at->type;
    program p = { .outputs = 1 };
    p.code[p.length++] = (instruction){ .op = (uint8_t)op, .type = type };
    if (then != OP_LOAD) p.code[p.length++] = (instruction){ .op = (uint8_t)then, .type = type };
    p.code[p.length++] = (instruction){ .op = OP_STORE, .type = type };
    step s = { .kernel = KERNEL_PROGRAM, .outs = 1, .out = { { 0, *out_at } }, .program = &p };
    void *data[4] = { out };
    double number[3];
    layout *walked[4] = { &s.out[0].at };
    for (int k = 0; k < n; k++) {
        p.code[0].arg[k] = x[k].p ? (source){ FROM_INPUT, s.ins } : (source){ FROM_NUMBER, s.nums };
        if (!x[k].p) {
            number[s.nums] = x[k].number;
            s.num[s.nums] = s.nums;
            s.nums++;
        } else {
            s.in[s.ins] = (operand){ 1 + s.ins, *x[k].at };
            walked[1 + s.ins] = &s.in[s.ins].at;
            data[1 + s.ins] = (void *)x[k].p;
            s.ins++;
        }
    }
    p.inputs = s.ins;
    p.numbers = s.nums;
    layout_collapse(walked, 1 + s.ins);
    return gpu_launch(&s, &(frame){ data, number, q->index, q->device }, q);
}

duet_status gpu_densely(const operand *x, const frame *f, queue *q, const void **p, void **block)
{
    *block = NULL;
    *p = f->data[x->slot];
    if (layout_is_dense(&x->at)) return DUET_OK;
    layout dense;
    layout_dense(&dense, x->at.type, x->at.rank, x->at.size);
    const size_t bytes = (size_t)layout_count(&dense) * dtypes[dense.type].bytes;
    TRY(scratch_acquire(q->device, bytes, q->index, block));
    duet_status s = gpu_order_uses(q, *block, bytes);
    if (s == DUET_OK) s = gpu_apply(OP_LOAD, *block, &dense, &(part){ .p = *p, .at = &x->at }, 1, q);
    *p = *block;
    if (s != DUET_OK) {
        gpu_give(*block, q);
        *block = NULL;
    }
    return s;
}
