/* step.c - a job as the step that a machine receives: layouts, slots, and what it will cost. */
#include "fourier.h"
#include "lower.h"
#include "matrix.h"
#include <string.h>

/* A destination that is read is the same memory as the one that is written. */
static int leaf_slot(const lowering *l, int i)
{
    const int goals = l->g->roots;
    for (int k = 0; k < goals; k++)
        if (l->g->root[k] >= 0 && l->overlap[i * goals + k] == SAME) return k;
    return goals + i;
}

static int slot_of(const lowering *l, const memory *m, int v)
{
    v = value_base(l->g, v);
    const value *u = value_at(l->g, v);
    return u->op == OP_LEAF ? leaf_slot(l, u->leaf) : m->slot[v];
}

static layout dense(const graph *g, int v)
{
    const value *u = value_at(g, v);
    layout l;
    return layout_dense(&l, (duet_dtype)u->mem, u->rank, u->size), l;
}

/* Where an output goes, and how it lies there. */
static operand output_of(const lowering *l, const job *j, int k, const memory *m)
{
    int v = j->out[k];
    if (v < 0) return (operand){ copied_goal(v), l->goal[copied_goal(v)].to };
    int goal = l->goal_of[v];
    if (m && goal >= 0 && m->direct[goal]) return (operand){ goal, l->goal[goal].to };
    return (operand){ m ? m->slot[v] : 0, dense(l->g, v) };
}

/* A vector over the columns of a matrix or the channels of images. */
static layout bias_layout(const layout *b, const shape *domain)
{
    layout l = { .type = b->type, .rank = domain->rank };
    for (int i = 0; i < domain->rank; i++) l.size[i] = domain->size[i], l.stride[i] = i == 1 ? b->stride[0] : 0;
    return l;
}

static void read_layouts(const lowering *l, const job *j, const shape *domain, step *s)
{
    for (int k = 0; k < j->ins; k++) {
        layout at = value_layout(l->g, j->in[k]);
        s->in[k].at = j->bias[k] ? bias_layout(&at, domain) : layout_broadcast(&at, domain);
    }
}

/* All operands of a step. */
static int operands(step *s, layout *all[STEP_OUTPUTS + STEP_INPUTS])
{
    for (int k = 0; k < s->outs; k++) all[k] = &s->out[k].at;
    for (int k = 0; k < s->ins; k++) all[s->outs + k] = &s->in[k].at;
    return s->outs + s->ins;
}

static void map_layouts(const lowering *l, const job *j, step *s)
{
    layout *all[STEP_OUTPUTS + STEP_INPUTS];
    shape domain = { .rank = s->out[0].at.rank };
    memcpy(domain.size, s->out[0].at.size, sizeof domain.size);
    read_layouts(l, j, &domain, s);
    layout_collapse(all, operands(s, all));
}

/* ---- reductions: axes that are kept, then those that are reduced, each kind collapsed by itself ---- */

/* An output over all of the domain: its stride is 0 where it has no axis of its own. */
static layout spread(const layout *out, const shape *domain, uint32_t reduced)
{
    layout l = { .type = out->type, .rank = domain->rank };
    const bool kept = out->rank == domain->rank; /* the reduced axes too, with one element */
    for (int a = 0, i = 0; a < domain->rank; a++) {
        l.size[a] = domain->size[a];
        if (!(reduced >> a & 1)) l.stride[a] = out->stride[i++];
        else i += kept;
    }
    return l;
}

static layout axes_of(const layout *l, uint32_t which)
{
    layout r = { .type = l->type };
    for (int a = 0; a < l->rank; a++)
        if (which >> a & 1) r.size[r.rank] = l->size[a], r.stride[r.rank++] = l->stride[a];
    return r;
}

static void append(layout *l, const layout *more)
{
    for (int a = 0; a < more->rank; a++) l->size[l->rank] = more->size[a], l->stride[l->rank++] = more->stride[a];
}

static void fold_layouts(const lowering *l, const job *j, step *s)
{
    layout *all[STEP_OUTPUTS + STEP_INPUTS], inner[STEP_OUTPUTS + STEP_INPUTS], *inners[STEP_OUTPUTS + STEP_INPUTS];
    const shape domain = domain_of(l->g, j->out[0]);
    const uint32_t reduced = reduced_axes(l->g, j->out[0]);
    read_layouts(l, j, &domain, s);
    for (int k = 0; k < s->outs; k++) s->out[k].at = spread(&s->out[k].at, &domain, reduced);
    const int n = operands(s, all);
    for (int k = 0; k < n; k++) {
        inner[k] = axes_of(all[k], reduced), inners[k] = &inner[k];
        *all[k] = axes_of(all[k], ~reduced);
    }
    layout_collapse(inners, n), layout_collapse(all, n);
    const bool single = layout_count(all[0]) == 1;
    for (int k = 0; k < n; k++) {
        if (single) all[k]->rank = 0;
        append(all[k], &inner[k]);
    }
    s->inner = (uint8_t)inner[0].rank;
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
    if (j->ins < 3 || j->finish) return;
    layout C = value_layout(l->g, j->in[2]);
    s->in[2].at = as_matrix(&C, rows, cols);
}

/* ---- what it costs ---- */

static double distinct_bytes(const layout *l)
{
    double n = (double)dtypes[l->type].bytes;
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
    if (is_conv_grad(s->kernel)) {
        const conv_operands o = conv_operands_of(s);
        const int64_t *w = o.w->at.size;
        return 2 * (double)layout_count(&o.y->at) * (double)(w[1] * w[2] * w[3]);
    }
    if (s->kernel == OP_conv2d) {
        const int64_t *w = s->in[1].at.size;
        const double each = finish_infos[s->finish].pooled ? (double)s->attr[STEP_POOL + 2] * s->attr[STEP_POOL + 3] : 1;
        return 2 * out * each * (double)(w[1] * w[2] * w[3]);
    }
    if (is_fourier(s->kernel)) return fourier_flops(s);
    if (s->kernel == OP_max_pool2d || s->kernel == OP_avg_pool2d) return out * s->attr[0] * s->attr[1];
    if (is_pool_grad(s->kernel)) return out + (double)layout_count(&s->in[s->ins - 1].at) * s->attr[0] * s->attr[1];
    if (s->kernel == KERNEL_PROGRAM) return out * program_flops(s->program);
    return is_map_kernel(s->kernel) ? out * row_flops(s->kernel - KERNEL_PROGRAM - 1) : 2 * in;
}

static void estimate(step *s)
{
    for (int k = 0; k < s->outs; k++) s->bytes += distinct_bytes(&s->out[k].at);
    for (int k = 0; k < s->ins; k++) s->bytes += distinct_bytes(&s->in[k].at);
    s->flops = step_flops(s);
}

/* ---- products and convolutions ---- */

/* f64 is as it is in every mode. */
static void set_math(const lowering *l, const job *j, step *s)
{
    const bool takes = j->kernel == OP_matmul || is_conv(j->kernel);
    if (!takes || s->out[0].at.type != DUET_F32) return;
    s->math = (uint8_t)l->math;
}

void step_make(const lowering *l, const job *j, const memory *m, step *s)
{
    memset(s, 0, sizeof *s);
    s->kernel = j->kernel, s->finish = j->finish, s->outs = (uint8_t)j->outs, s->ins = (uint8_t)j->ins,
    s->nums = (uint8_t)j->nums;
    s->program = j->program;
    memcpy(s->attr, j->attr, sizeof s->attr);
    for (int k = 0; k < j->nums; k++) s->num[k] = (uint32_t)j->num[k];
    for (int k = 0; k < j->outs; k++) s->out[k] = output_of(l, j, k, m);
    if (job_folds(j)) fold_layouts(l, j, s);
    else if (is_map_kernel(j->kernel)) map_layouts(l, j, s);
    else
        for (int k = 0; k < j->ins; k++) s->in[k].at = value_layout(l->g, j->in[k]);
    if (j->kernel == OP_matmul) product_layouts(l, j, s);
    for (int k = 0; k < j->ins && m; k++) s->in[k].slot = slot_of(l, m, j->in[k]);
    set_math(l, j, s);
    estimate(s);
}

static bool transforms_in_place(const lowering *l, const job *j, int out)
{
    const int32_t kind = j->attr[FOURIER_KIND];
    if (j->kernel != OP_fftn || (kind != FOURIER_FORWARD && kind != FOURIER_INVERSE)) return false;
    return value_at(l->g, j->in[0])->type == value_at(l->g, out)->type;
}

bool job_in_place(const lowering *l, const job *j, int k)
{
    layout at = value_layout(l->g, j->in[k]);
    int out = j->out[0] < 0 ? l->g->root[copied_goal(j->out[0])] : j->out[0];
    if (at.type != (duet_dtype)value_at(l->g, out)->mem) return false;
    if (j->finish || j->bias[k] || !same_shape(l->g, j->in[k], out) || !layout_is_dense(&at) || job_folds(j)) return false;
    return is_map_kernel(j->kernel) || (j->kernel == OP_matmul && k == 2) || j->kernel == OP_softmax ||
           j->kernel == OP_log_softmax || transforms_in_place(l, j, out);
}
