/* step.c - a job as the step that a machine receives: layouts, slots, and what it will cost. */
#include "einsum.h"
#include "fourier.h"
#include "lower.h"
#include "matrix.h"
#include "norm.h"
#include <string.h>

/* A destination that is read is the same memory as the one that is written. */
static int leaf_slot(const lowering *l, int i)
{
    const int goals = l->g->roots;
    for (int k = 0; k < goals; k++)
        if (l->g->root[k] >= 0 && l->overlap[i * goals + k] == SAME) return k;
    return goals + i;
}

static int all_slots(const lowering *l, const memory *m) { return l->g->roots + l->g->n_leaves + m->temps; }

static int slot_of(const lowering *l, const memory *m, int v)
{
    const int base = value_base(l->g, v), whole = value_is_half(l->g, base) ? value_at(l->g, base)->join : base;
    const value *u = value_at(l->g, whole);
    const int slot = u->op == OP_LEAF ? leaf_slot(l, u->leaf) : m->slot[whole];
    return value_half(l->g, v) == 1 ? plane_slot(slot, all_slots(l, m), (duet_dtype)u->mem) : slot;
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
    const int goal = l->goal_of[v];
    const bool half = value_is_half(l->g, v), there = m && goal >= 0 && m->direct[goal];
    const layout at = there ? l->goal[goal].to : dense(l->g, half ? value_at(l->g, v)->join : v);
    return (operand){ m ? slot_of(l, m, v) : 0, half ? plane_layout(at) : at };
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

static void collapse_apart(step *s, uint32_t reduced)
{
    layout *all[STEP_OUTPUTS + STEP_INPUTS], inner[STEP_OUTPUTS + STEP_INPUTS], *inners[STEP_OUTPUTS + STEP_INPUTS] = { 0 };
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

static void fold_layouts(const lowering *l, const job *j, step *s)
{
    const shape domain = domain_of(l->g, j->out[0]);
    const uint32_t reduced = reduced_axes(l->g, j->out[0]);
    read_layouts(l, j, &domain, s);
    for (int k = 0; k < s->outs; k++) s->out[k].at = spread(&s->out[k].at, &domain, reduced);
    collapse_apart(s, reduced);
}

/* Rows are the last axes. */
static void norm_layouts(const lowering *l, const job *j, step *s)
{
    const shape domain = value_shape(l->g, j->out[0]);
    const uint32_t all = (1u << domain.rank) - 1;
    read_layouts(l, j, &domain, s);
    collapse_apart(s, all & ~(all >> j->attr[NORM_AXES]));
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

/* ---- products of more axes than two: those in front of the last two, as few as serve all operands ---- */

/* Operand l, with its leading axes broadcast to those of `batch`, in front of the matrix that its last axes are. */
static layout as_batch(const layout *l, const shape *batch, bool rows, bool cols)
{
    const int own = l->rank - rows - cols, missing = batch->rank - own;
    layout last = { .type = l->type, .rank = rows + cols }, m = { .type = l->type, .rank = batch->rank };
    for (int i = 0; i < last.rank; i++) last.size[i] = l->size[own + i], last.stride[i] = l->stride[own + i];
    for (int i = 0; i < batch->rank; i++) {
        m.size[i] = batch->size[i];
        m.stride[i] = i < missing || l->size[i - missing] == 1 ? 0 : l->stride[i - missing];
    }
    last = as_matrix(&last, rows, cols);
    append(&m, &last);
    return m;
}

/* Merges the leading axes of n operands where all go through them alike. */
static void merge_batch(layout *const all[], int n)
{
    layout batch[STEP_OUTPUTS + STEP_INPUTS], last[STEP_OUTPUTS + STEP_INPUTS], *batches[STEP_OUTPUTS + STEP_INPUTS] = { 0 };
    for (int k = 0; k < n; k++) {
        const uint32_t matrix = 3u << (all[k]->rank - 2);
        batch[k] = axes_of(all[k], ~matrix), last[k] = axes_of(all[k], matrix), batches[k] = &batch[k];
    }
    layout_collapse(batches, n);
    for (int k = 0; k < n; k++) *all[k] = batch[k], append(all[k], &last[k]);
}

/* One matrix on the right of all: their rows may be those of one product, where they lie one after the other. */
static bool rows_follow(const layout *l)
{
    return l->size[1] <= 1 || l->size[0] <= 1 || l->stride[0] == l->size[1] * l->stride[1];
}

static bool is_one_product(const step *s)
{
    if (s->in[0].at.rank != 3) return false;
    if (s->in[0].at.size[0] == 1) return true;
    if (s->in[1].at.stride[0] != 0 || !rows_follow(&s->in[0].at) || !rows_follow(&s->out[0].at)) return false;
    return s->ins < 3 || rows_follow(&s->in[2].at);
}

static void drop_batch(layout *l, bool rows)
{
    if (rows) l->stride[1] = l->size[1] > 1 ? l->stride[1] : l->stride[0], l->size[1] *= l->size[0];
    l->rank = 2;
    memmove(l->size, l->size + 1, 2 * sizeof *l->size), memmove(l->stride, l->stride + 1, 2 * sizeof *l->stride);
}

static void batched_layouts(const lowering *l, const job *j, step *s)
{
    const layout A = value_layout(l->g, j->in[0]), B = value_layout(l->g, j->in[1]), out = s->out[0].at;
    const bool rows = A.rank >= 2, cols = B.rank >= 2;
    layout *all[STEP_OUTPUTS + STEP_INPUTS];
    shape batch = { .rank = out.rank - rows - cols };
    memcpy(batch.size, out.size, sizeof batch.size[0] * (size_t)batch.rank);
    s->in[0].at = as_batch(&A, &batch, rows, true), s->in[1].at = as_batch(&B, &batch, true, cols);
    s->out[0].at = as_batch(&out, &batch, rows, cols);
    for (int k = 2; k < j->ins; k++) {
        const layout C = value_layout(l->g, j->in[k]);
        s->in[k].at = as_batch(&C, &batch, rows, cols);
    }
    const int n = operands(s, all);
    merge_batch(all, n);
    if (!is_one_product(s)) return;
    s->kernel = OP_matmul;
    for (int k = 0; k < n; k++) drop_batch(all[k], all[k] != &s->in[1].at);
}

/* ---- products by letters: those of the result but its last two lead, in order; of those two one is the left operand's, one the right's ---- */

typedef struct letters {
    const int32_t *attr;
    int part[2]; /* of the left operand, of the right */
    layout at[2], out;
} letters;

/* Appends to each operand, and to the result, how it goes along a letter. */
static void go_along(const letters *w, int letter, layout *x, layout *y, layout *out)
{
    layout *to[] = { x, y };
    int64_t size = 1;
    for (int k = 0; k < 2; k++) {
        const int axis = einsum_axis(w->attr, w->part[k], letter);
        to[k]->stride[to[k]->rank] = axis < 0 ? 0 : w->at[k].stride[axis];
        if (axis >= 0) size = w->at[k].size[axis];
    }
    const int axis = einsum_axis(w->attr, EINSUM_OUT, letter);
    out->stride[out->rank] = axis < 0 ? 0 : w->out.stride[axis];
    x->size[x->rank++] = y->size[y->rank++] = out->size[out->rank++] = size;
}

static bool has(const letters *w, int k, int letter) { return einsum_axis(w->attr, w->part[k], letter) >= 0; }

/* The last letters of the result that are a row's of the left operand and a column's of the right one; 0: there is none. How many of the
 * others lead. */
static int matrix_letters(const letters *w, int *row, int *column)
{
    int rank = einsum_rank(w->attr, EINSUM_OUT);
    *row = *column = 0;
    int last = rank ? einsum_letter(w->attr, EINSUM_OUT, rank - 1) : 0;
    if (last && !has(w, 0, last)) *column = last, rank--;
    last = rank ? einsum_letter(w->attr, EINSUM_OUT, rank - 1) : 0;
    if (*column && last && !has(w, 1, last)) *row = last, rank--;
    return rank;
}

/* The axes of sums as one; false: they do not lie so. */
static bool inner_axis(const letters *w, layout *x, layout *y)
{
    layout none = { .rank = 0 };
    *x = *y = none;
    for (int i = 0, letter; (letter = einsum_letter(w->attr, w->part[0], i)); i++)
        if (einsum_axis(w->attr, EINSUM_OUT, letter) < 0) none.rank = 0, go_along(w, letter, x, y, &none);
    layout_collapse((layout *[]){ x, y }, 2);
    return x->rank == 1;
}

static layout matrix_behind(const layout *leading, int64_t rows, int64_t down, int64_t cols, int64_t across)
{
    layout m = *leading;
    m.size[m.rank] = rows, m.stride[m.rank++] = down, m.size[m.rank] = cols, m.stride[m.rank++] = across;
    return m;
}

static void lettered_layouts(const lowering *l, const job *j, step *s)
{
    const int right = einsum_right(j->attr);
    letters w = { .attr = j->attr, .part = { 1 - right, right }, .out = s->out[0].at };
    layout x, y, inner[2], lead[3] = { { .rank = 0 }, { .rank = 0 }, { .rank = 0 } }, row[3] = { lead[0], lead[0], lead[0] },
                           column[3] = { lead[0], lead[0], lead[0] };
    layout *all[3] = { &s->out[0].at, &s->in[0].at, &s->in[1].at };
    int letter[2];
    w.at[0] = value_layout(l->g, j->in[0]), w.at[1] = value_layout(l->g, j->in[1]);
    const int leading = matrix_letters(&w, &letter[0], &letter[1]);
    s->in[0].at = w.at[0], s->in[1].at = w.at[1];
    if (leading + 2 > DUET_RANK_MAX || !inner_axis(&w, &inner[0], &inner[1])) {
        s->kernel = OP_einsum; /* which no machine has */
        return;
    }
    for (int i = 0; i < leading; i++) go_along(&w, einsum_letter(w.attr, EINSUM_OUT, i), &lead[1], &lead[2], &lead[0]);
    if (!leading) go_along(&w, 31, &lead[1], &lead[2], &lead[0]); /* which nobody has */
    go_along(&w, letter[0] ? letter[0] : 31, &row[1], &row[2], &row[0]);
    go_along(&w, letter[1] ? letter[1] : 31, &column[1], &column[2], &column[0]);
    for (int k = 0; k < 3; k++) lead[k].type = s->out[0].at.type;
    x = matrix_behind(&lead[1], row[1].size[0], row[1].stride[0], inner[0].size[0], inner[0].stride[0]);
    y = matrix_behind(&lead[2], inner[1].size[0], inner[1].stride[0], column[2].size[0], column[2].stride[0]);
    s->out[0].at = matrix_behind(&lead[0], row[0].size[0], row[0].stride[0], column[0].size[0], column[0].stride[0]);
    s->in[0].at = x, s->in[1].at = y;
    merge_batch(all, 3);
    if (!is_one_product(s)) return;
    s->kernel = OP_matmul;
    for (int k = 0; k < 3; k++) drop_batch(all[k], all[k] != &s->in[1].at);
}

/* ---- convolutions and pooling: what is not of two axes, as images ---- */

/* Signals have one row. Volumes are pooled as images of all channels' planes, or, along depth, of lines of elements. */
static void image_axes(layout *l, enum pool_form form)
{
    if (l->rank == 3) layout_insert(l, 2, 1, 1);
    if (form == POOL_PLANES) layout_merge(l, 1, 2);
    if (form == POOL_DEPTH) layout_merge(l, 3, 2);
}

/* One array, of one channel. */
static void plain_axes(layout *l)
{
    while (l->rank < 2) layout_insert(l, 0, 1, 1);
    layout_insert(l, 0, 1, 1), layout_insert(l, 0, 1, 1);
}

/* Images of one channel, and as many filters: the results have the axes of both in front, `own` of them the images'. */
static void multi_axes(layout *l, int own)
{
    layout_merge(l, 0, own);
    layout_merge(l, 1, l->rank - 3);
}

/* One image, whose channels have filters of their own. */
static void deep_axes(layout *l, bool filters)
{
    layout_merge(l, 0, l->rank - 2);
    layout_insert(l, filters, 1, 1);
}

static void conv_layouts(const job *j, step *s)
{
    const int own = s->in[0].at.rank - 2, form = j->attr[CONV_FORM];
    layout *all[STEP_OUTPUTS + STEP_INPUTS];
    const int n = operands(s, all);
    for (int k = 0; k < n && form == CONV_PLAIN; k++) plain_axes(all[k]);
    for (int k = 0; k < n && form == CONV_DEEP; k++) deep_axes(all[k], k == 2);
    if (form != CONV_MULTI) return;
    multi_axes(&s->out[0].at, own), multi_axes(&s->in[0].at, own), multi_axes(&s->in[1].at, s->in[1].at.rank - 2);
}

static void image_layouts(const job *j, step *s)
{
    layout *all[STEP_OUTPUTS + STEP_INPUTS];
    const bool convolves = is_conv(j->kernel);
    const int n = operands(s, all);
    if (convolves && j->attr[CONV_FORM] != CONV_IMAGES) {
        conv_layouts(j, s);
        return;
    }
    for (int k = 0; k < n; k++) image_axes(all[k], convolves ? POOL_IMAGES : (enum pool_form)j->attr[POOL_FORM]);
}

static bool is_of_image_kernels(int kernel)
{
    return is_conv(kernel) || is_pool_grad(kernel) || kernel == OP_max_pool2d || kernel == OP_avg_pool2d ||
           kernel == OP_upsample2d;
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

/* Of the usual algorithms; A m x n, with so many right-hand sides. */
static double real_solver_flops(const step *s)
{
    const double m = (double)s->in[0].at.size[0], n = (double)s->in[0].at.size[1], least = m < n ? m : n;
    const double sides = s->ins > 1 && s->in[1].at.rank > 1 ? (double)s->in[1].at.size[1] : 1;
    switch (s->kernel) {
    case OP_inv: return 2 * n * n * n;
    case OP_cholesky: return n * n * n / 3;
    case OP_eigvalsh: return 4 * n * n * n / 3;
    case OP_svdvals: return 8 * m * n * least / 3;
    case OP_solve_triangular: return n * n * sides;
    case OP_solve: return 2 * n * n * n / 3 + 2 * n * n * sides;
    case OP_lstsq: return 2 * m * n * least + 4 * m * n * sides;
    default: return 2 * n * n * n / 3;
    }
}

static double solver_flops(const step *s) { return real_solver_flops(s) * (dtype_is_complex(s->in[0].at.type) ? 4 : 1); }

/* Elements of one filter. */
static double filter_count(const operand *w)
{
    double n = 1;
    for (int a = 1; a < w->at.rank; a++) n *= (double)w->at.size[a];
    return n;
}

static double step_flops(const step *s)
{
    if (kernel_asks(s->kernel)) return solver_flops(s);
    double out = (double)layout_count(&s->out[0].at), in = s->ins ? (double)layout_count(&s->in[0].at) : 0;
    if (s->kernel == OP_matmul || s->kernel == KERNEL_BATCHED) return 2 * out * (double)s->in[0].at.size[s->in[0].at.rank - 1];
    if (is_conv_grad(s->kernel)) {
        const conv_operands o = conv_operands_of(s);
        return 2 * (double)layout_count(&o.y->at) * filter_count(o.w);
    }
    if (s->kernel == OP_conv2d) {
        const double each = finish_infos[s->finish].pooled ? (double)s->attr[STEP_POOL + 2] * s->attr[STEP_POOL + 3] : 1;
        return 2 * out * each * filter_count(&s->in[1]);
    }
    if (is_fourier(s->kernel)) return fourier_flops(s);
    if (s->kernel == KERNEL_LAYER_NORM) return 10 * out;
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
    const bool takes = j->kernel == OP_matmul || j->kernel == KERNEL_BATCHED || is_conv(j->kernel);
    if (!takes || s->out[0].at.type != DUET_F32) return;
    s->math = (uint8_t)l->math;
}

/* What is only moved goes by size, bits unchanged. */
static void move_by_size(step *s)
{
    const duet_dtype as = dtypes[s->out[0].at.type].bytes == 8 ? DUET_F64 : DUET_F32;
    s->out[0].at.type = s->in[0].at.type = as;
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
    else if (j->kernel == KERNEL_LAYER_NORM) norm_layouts(l, j, s);
    else
        for (int k = 0; k < j->ins; k++) s->in[k].at = value_layout(l->g, j->in[k]);
    if (j->kernel == OP_upsample2d) move_by_size(s);
    if (j->kernel == OP_matmul) product_layouts(l, j, s);
    if (j->kernel == KERNEL_BATCHED) (value_at(l->g, j->out[0])->op == OP_einsum ? lettered_layouts : batched_layouts)(l, j, s);
    if (is_of_image_kernels(j->kernel) && !j->finish) image_layouts(j, s);
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
    return is_map_kernel(j->kernel) || ((j->kernel == OP_matmul || j->kernel == KERNEL_BATCHED) && k == 2) ||
           (j->kernel == KERNEL_LAYER_NORM && k == 0) || j->kernel == OP_softmax || j->kernel == OP_log_softmax ||
           transforms_in_place(l, j, out);
}
