/* step.c - converts a job to the step that a machine receives: assigns slots, and computes the layouts
 * of operands that are read element by element. */
#include "step.h"
#include "dtype.h"
#include "fourier.h"
#include "layer_norm.h"
#include "matrix.h"
#include <string.h>

/* Returns the slot of leaf i. If the leaf is a destination, it has the slot of the destination. */
static int leaf_slot(const lowering *l, int i)
{
    const int dests = l->g->roots;
    for (int k = 0; k < dests; k++)
        if (l->g->root[k] >= 0 && l->overlap[i * dests + k] == SAME) return k;
    return dests + i;
}

/* Returns the slot that begins `bytes` behind slot `base`. */
static int derive_slot(const lowering *l, memory *m, int base, int64_t bytes)
{
    const int all = l->g->roots + l->g->n_leaves + m->temps;
    int i = 0;
    if (!bytes) return base;
    while (i < m->n_derived && !(m->derived[i].base == base && m->derived[i].bytes == bytes)) i++;
    if (i == m->n_derived) m->derived[m->n_derived++] = (derived_slot){ base, bytes };
    return all + i;
}

static int slot_of(const lowering *l, memory *m, int v)
{
    const int base = value_base(l->g, v),
              owner = value_is_piece(l->g, base) ? value_at(l->g, base)->join : base;
    const value *u = value_at(l->g, owner);
    const int slot = u->op == OP_LEAF ? leaf_slot(l, u->leaf) : m->slot[owner];
    return derive_slot(l, m, slot, value_offset(l->g, v));
}

static layout dense(const graph *g, int v)
{
    const value *u = value_at(g, v);
    layout l;
    layout_dense(&l, (duet_dtype)u->mem, u->rank, u->size);
    return l;
}

/* Returns the slot and the layout of an output. */
static operand output_of(const lowering *l, const job *j, int k, memory *m)
{
    int v = j->out[k];
    if (v < 0) return (operand){ copied_dest(v), l->dest[copied_dest(v)].to };
    const int dest = l->dest_of[v];
    const bool is_piece = value_is_piece(l->g, v), there = m && dest >= 0 && m->direct[dest];
    const int written = is_piece ? value_at(l->g, v)->join : v;
    const layout at = there ? l->dest[dest].to : dense(l->g, written);
    if (!is_piece) return (operand){ m ? slot_of(l, m, v) : 0, at };
    const int slot = m ? derive_slot(l, m, m->slot[written], piece_offset(l->g, v, &at)) : 0;
    return (operand){ slot, piece_layout(l->g, v, at) };
}

/* A vector over the columns of a matrix or the channels of images. */
static layout bias_layout(const layout *b, const shape *domain)
{
    layout l = { .type = b->type, .rank = domain->rank };
    for (int i = 0; i < domain->rank; i++) {
        l.size[i] = domain->size[i];
        l.stride[i] = i == 1 ? b->stride[0] : 0;
    }
    return l;
}

static void read_layouts(const lowering *l, const job *j, const shape *domain, step *s)
{
    for (int k = 0; k < j->ins; k++) {
        layout at = value_layout(l->g, j->in[k]);
        if (j->bias[k]) s->in[k].at = bias_layout(&at, domain);
        else s->in[k].at = layout_broadcast(&at, domain);
    }
}

static void map_layouts(const lowering *l, const job *j, step *s)
{
    layout *all[STEP_OPERANDS];
    shape domain = { .rank = s->out[0].at.rank };
    memcpy(domain.size, s->out[0].at.size, sizeof domain.size);
    read_layouts(l, j, &domain, s);
    layout_collapse(all, step_operands(s, all));
}

/* ---- reductions: first the axes that remain, then those that are reduced ---- */

/* Returns the layout of an output with the axes of the domain. Its stride is 0 along reduced axes. */
static layout spread(const layout *out, const shape *domain, uint32_t reduced)
{
    layout l = { .type = out->type, .rank = domain->rank };
    const bool has_reduced = out->rank == domain->rank; /* reduced axes remain, with size 1 */
    for (int a = 0, i = 0; a < domain->rank; a++) {
        l.size[a] = domain->size[a];
        if (!(reduced >> a & 1)) l.stride[a] = out->stride[i++];
        else i += has_reduced;
    }
    return l;
}

static void collapse_apart(step *s, uint32_t reduced)
{
    layout *all[STEP_OPERANDS], inner[STEP_OPERANDS], *inners[STEP_OPERANDS] = { 0 };
    const int n = step_operands(s, all);
    for (int k = 0; k < n; k++) {
        inner[k] = layout_of_axes(all[k], reduced);
        inners[k] = &inner[k];
        *all[k] = layout_of_axes(all[k], ~reduced);
    }
    layout_collapse(inners, n);
    layout_collapse(all, n);
    const bool single = layout_count(all[0]) == 1;
    for (int k = 0; k < n; k++) {
        if (single) all[k]->rank = 0;
        axes_append(all[k], &inner[k]);
    }
    s->inner = (uint8_t)inner[0].rank;
}

static void reduce_layouts(const lowering *l, const job *j, step *s)
{
    const shape domain = domain_of(l->g, j->out[0]);
    const uint32_t reduced = reduced_axes(l->g, j->out[0]);
    read_layouts(l, j, &domain, s);
    for (int k = 0; k < s->outs; k++) s->out[k].at = spread(&s->out[k].at, &domain, reduced);
    collapse_apart(s, reduced);
}

/* The rows that are normalised are the last axes. */
static void norm_layouts(const lowering *l, const job *j, step *s)
{
    const shape domain = value_shape(l->g, j->out[0]);
    const uint32_t all = (1u << domain.rank) - 1;
    read_layouts(l, j, &domain, s);
    collapse_apart(s, all & ~(all >> j->attr.layer_norm.axes));
}

/* ---- the step itself ---- */

/* The operands have the layouts of their values. */
static void value_layouts(const lowering *l, const job *j, step *s)
{
    for (int k = 0; k < j->ins; k++) s->in[k].at = value_layout(l->g, j->in[k]);
}

static void program_layouts(const lowering *l, const job *j, step *s)
{
    if (job_reduces(j)) reduce_layouts(l, j, s);
    else map_layouts(l, j, s);
}

static void matmul_layouts(const lowering *l, const job *j, step *s)
{
    value_layouts(l, j, s);
    product_layouts(l, j, s);
}

static void stacked_layouts(const lowering *l, const job *j, step *s)
{
    value_layouts(l, j, s);
    if (value_at(l->g, j->out[0])->op == OP_einsum) lettered_layouts(l, j, s);
    else batched_layouts(l, j, s);
}

static void spatial_layouts(const lowering *l, const job *j, step *s)
{
    value_layouts(l, j, s);
    if (!j->epilogue) image_layouts(j, s);
}

/* Upsampling only moves elements, so the step has a type of the same size that machines support. */
static void upsample_layouts(const lowering *l, const job *j, step *s)
{
    value_layouts(l, j, s);
    const duet_dtype as = dtype_real(dtypes[s->out[0].at.type].bytes == 8);
    s->out[0].at.type = s->in[0].at.type = as;
    image_layouts(j, s);
}

/* May the step write its output over operand k, if both have the same type and shape? */
typedef bool place_rule(const lowering *l, const job *j, int k, int out);

static bool any_operand(const lowering *l, const job *j, int k, int out) { return !job_reduces(j); }
static bool first_operand(const lowering *l, const job *j, int k, int out) { return k == 0; }
static bool addend(const lowering *l, const job *j, int k, int out) { return k == 2; }
static bool complex_transform(const lowering *l, const job *j, int k, int out)
{
    const int32_t kind = j->attr.fourier.kind;
    const bool is_complex = kind == FOURIER_FORWARD || kind == FOURIER_INVERSE;
    return is_complex && value_at(l->g, j->in[0])->type == value_at(l->g, out)->type;
}

/* For each kernel, how a job becomes a step. */
static const struct step_rule {
    void (*layouts)(const lowering *l, const job *j, step *s); /* NULL: value_layouts */
    place_rule *in_place;                                      /* NULL: never */
    bool has_math;                                             /* the math mode counts, of f32 */
} rules[KERNELS_ALL] = {
    [KERNEL_PROGRAM] = { program_layouts, any_operand },
    [KERNEL_LAYER_NORM] = { norm_layouts, first_operand },
    [OP_softmax] = { NULL, any_operand },
    [OP_log_softmax] = { NULL, any_operand },
    [OP_matmul] = { matmul_layouts, addend, true },
    [KERNEL_BATCHED] = { stacked_layouts, addend, true },
    [OP_conv2d] = { spatial_layouts, NULL, true },
    [OP_conv2d_input_grad] = { spatial_layouts, NULL, true },
    [OP_conv2d_filter_grad] = { spatial_layouts, NULL, true },
    [OP_max_pool2d] = { spatial_layouts },
    [OP_avg_pool2d] = { spatial_layouts },
    [OP_max_pool2d_grad] = { spatial_layouts },
    [OP_avg_pool2d_grad] = { spatial_layouts },
    [OP_upsample2d] = { upsample_layouts },
    [OP_fftn] = { NULL, complex_transform },
};

void step_make(const lowering *l, const job *j, memory *m, step *s)
{
    memset(s, 0, sizeof *s);
    s->kernel = j->kernel;
    s->epilogue = j->epilogue;
    s->program = j->program;
    s->outs = (uint8_t)j->outs;
    s->ins = (uint8_t)j->ins;
    s->nums = (uint8_t)j->nums;
    s->again = j->again;
    s->attr = j->attr;
    for (int k = 0; k < j->nums; k++) s->num[k] = (uint32_t)j->num[k];
    for (int k = 0; k < j->outs; k++) s->out[k] = output_of(l, j, k, m);
    const struct step_rule *rule = &rules[j->kernel];
    (rule->layouts ? rule->layouts : value_layouts)(l, j, s);
    for (int k = 0; k < j->ins && m; k++) s->in[k].slot = slot_of(l, m, j->in[k]);
    if (rule->has_math && s->out[0].at.type == DUET_F32) s->math = (uint8_t)l->math;
    step_estimate(s);
}

bool job_in_place(const lowering *l, const job *j, int k)
{
    if (j->kernel == JOB_JOIN) return false;
    layout at = value_layout(l->g, j->in[k]);
    int out = j->out[0] < 0 ? l->g->root[copied_dest(j->out[0])] : j->out[0];
    if (at.type != (duet_dtype)value_at(l->g, out)->mem) return false;
    if (j->epilogue || j->bias[k] || !same_shape(l->g, j->in[k], out) || !layout_is_dense(&at)) return false;
    place_rule *const in_place = rules[j->kernel].in_place;
    return in_place && in_place(l, j, k, out);
}
