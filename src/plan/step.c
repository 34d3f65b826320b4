/* step.c - a job as the step that a machine receives: layouts, slots, and what it will cost. */
#include "lower.h"
#include <string.h>

static int slot_of(const lowering *l, const memory *m, int v)
{
    v = value_base(l->g, v);
    const value *u = value_at(l->g, v);
    return u->op == OP_LEAF ? 1 + u->leaf : m->slot[v];
}

/* A vector over the columns of a matrix or the channels of images. */
static layout bias_layout(const layout *b, const layout *out)
{
    layout l = *out;
    for (int i = 0; i < out->rank; i++) l.stride[i] = i == 1 ? b->stride[0] : 0;
    return l;
}

static void map_layouts(const lowering *l, const job *j, step *s)
{
    shape to = { .rank = s->out[0].at.rank };
    layout *all[1 + STEP_INPUTS] = { &s->out[0].at };
    memcpy(to.size, s->out[0].at.size, sizeof to.size);
    for (int k = 0; k < j->ins; k++) {
        layout at = value_layout(l->g, j->in[k]);
        s->in[k].at = j->bias[k] ? bias_layout(&at, &s->out[0].at) : layout_broadcast(&at, &to);
        all[1 + k] = &s->in[k].at;
    }
    layout_collapse(all, 1 + j->ins);
}

/* A vector is a row on the left, a column on the right; a product of vectors lacks the axes that they lack. */
static layout as_matrix(const layout *l, bool rows, bool cols)
{
    layout m = { .type = l->type, .rank = 2, .size = { 1, 1 }, .stride = { 1, 1 } };
    int i = 0;
    if (rows) m.size[0] = l->size[i], m.stride[0] = l->stride[i], i++;
    if (cols) m.size[1] = l->size[i], m.stride[1] = l->stride[i];
    return m;
}

static void product_layouts(const lowering *l, const job *j, step *s)
{
    layout A = value_layout(l->g, j->in[0]), B = value_layout(l->g, j->in[1]);
    bool rows = A.rank == 2, cols = B.rank == 2;
    s->in[0].at = as_matrix(&A, rows, true), s->in[1].at = as_matrix(&B, true, cols);
    s->out[0].at = as_matrix(&s->out[0].at, rows, cols);
    if (j->ins < 3) return;
    layout C = value_layout(l->g, j->in[2]);
    s->in[2].at = as_matrix(&C, rows, cols);
}

static void fold_layouts(const lowering *l, const job *j, step *s)
{
    for (int k = 0; k < j->ins; k++) s->in[k].at = value_layout(l->g, j->in[k]);
    layout *out = &s->out[0].at;
    if (!j->attr[1]) return;
    out->rank--;
    for (int i = j->attr[0]; i < out->rank; i++) out->size[i] = out->size[i + 1], out->stride[i] = out->stride[i + 1];
}

/* ---- what it costs ---- */

static double distinct_bytes(const layout *l)
{
    double n = l->type == DUET_F32 ? 4 : 8;
    for (int i = 0; i < l->rank; i++) n *= l->stride[i] ? (double)l->size[i] : 1;
    return n;
}

static int program_flops(const program *p)
{
    int n = 0;
    for (int i = 0; i < p->length; i++) n += p->code[i].op == OP_fma ? 2 : p->code[i].op < OPS;
    return n;
}

static double step_flops(const step *s)
{
    double out = (double)layout_count(&s->out[0].at), in = s->ins ? (double)layout_count(&s->in[0].at) : 0;
    if (s->kernel == OP_matmul) return 2 * out * (double)s->in[0].at.size[1];
    if (s->kernel == OP_conv2d) {
        const int64_t *w = s->in[1].at.size;
        return 2 * out * (double)(w[1] * w[2] * w[3]);
    }
    if (s->kernel == OP_max_pool2d || s->kernel == OP_avg_pool2d) return out * s->attr[0] * s->attr[1];
    if (s->kernel == KERNEL_PROGRAM) return out * program_flops(s->program);
    return is_map_kernel(s->kernel) ? out * row_flops(s->kernel - KERNEL_PROGRAM - 1) : 2 * in;
}

static void estimate(step *s)
{
    s->bytes = distinct_bytes(&s->out[0].at);
    for (int k = 0; k < s->ins; k++) s->bytes += distinct_bytes(&s->in[k].at);
    s->flops = step_flops(s);
}

void step_make(const lowering *l, const job *j, const layout *out, const memory *m, step *s)
{
    memset(s, 0, sizeof *s);
    s->kernel = j->kernel, s->outs = 1, s->ins = (uint8_t)j->ins, s->nums = (uint8_t)j->nums;
    s->out[0].at = *out, s->program = j->program;
    memcpy(s->attr, j->attr, sizeof s->attr);
    for (int k = 0; k < j->nums; k++) s->num[k] = (uint16_t)j->num[k];
    if (is_map_kernel(j->kernel)) map_layouts(l, j, s);
    else if (j->kernel == OP_matmul) product_layouts(l, j, s);
    else if (op_infos[j->kernel].kind == KIND_FOLD) fold_layouts(l, j, s);
    else
        for (int k = 0; k < j->ins; k++) s->in[k].at = value_layout(l->g, j->in[k]);
    s->out[0].slot = !m || j->out == TO_DESTINATION ? SLOT_DESTINATION : m->slot[j->out];
    for (int k = 0; k < j->ins && m; k++) s->in[k].slot = slot_of(l, m, j->in[k]);
    estimate(s);
}

bool job_in_place(const lowering *l, const job *j, int k)
{
    layout at = value_layout(l->g, j->in[k]);
    int out = j->out == TO_DESTINATION ? l->g->root : j->out;
    shape a = value_shape(l->g, j->in[k]), b = value_shape(l->g, out);
    if (j->bias[k] || !shape_equal(&a, &b) || !layout_is_dense(&at)) return false;
    return is_map_kernel(j->kernel) || (j->kernel == OP_matmul && k == 2) || j->kernel == OP_softmax ||
           j->kernel == OP_log_softmax;
}
