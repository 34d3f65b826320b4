/* fold_tmpl.c - reductions: the fold rows of ops.def over the canonical tree of core/fold.h, whole or along an axis.
 *
 * The elements reduced lie in up to two inputs. Where they stand one after the other, the lanes of a block are the vector. Where they
 * do not but neighbouring outputs do, a panel of outputs is reduced side by side. Else a block is copied first. */
#include "table.h"
#include "threads.h"
#include "tree.h"
#include "walk.h"

#define SHORT 64 /* elements, at most, of which so few lanes are used that a panel is faster anyway */
#define RUNS  64 /* sub-trees of one output, at most, that threads share */

typedef struct fold_row {
    T start;
    int ins;
    T (*block)(const T *x, const T *y, int64_t n);
    void (*panel)(T *out, const T *const in[2], const int64_t down[2], const int64_t side[2], int64_t n, int64_t width);
    void (*add)(tree *t, const T *value);
    const T *(*root)(tree *t);
    T (*finish)(T a, int64_t n);
} fold_row;

/* A fold, its layouts parted: along the reduced elements, and over the outputs (the last layout being that of the output). */
typedef struct job {
    const fold_row *row;
    bool norm, panels;
    const T *in[2];
    T *out, scale; /* 1, or the factor of the elements in a second pass of norm */
    layout along[2], over[3];
    int64_t n, outputs;
} job;

/* Some outputs side by side: where their first elements are. */
typedef struct panel {
    const T *in[2];
    T *out;
    int64_t width;
} panel;

/* ---- the rows ---- */

/* One block of `width` outputs: element i of output w of input k is in[k][i * down[k] + w * side[k]]. */
INLINE void panel_of(take_function take, join_function join, T start, T *out, const T *const in[2], const int64_t down[2],
                     int64_t side_x, int64_t side_y, int64_t n, int64_t width)
{
    T lane[FOLD_LANES][FOLD_WIDE / sizeof(T)] __attribute__((aligned(64)));
    int64_t lanes = SMALLER(n, FOLD_LANES);
    for (int64_t l = 0; l < lanes; l++)
        for (int64_t w = 0; w < width; w++) lane[l][w] = start;
    for (int64_t i = 0; i < n; i++) {
        T *a = lane[i % FOLD_LANES];
        const T *x = in[0] + i * down[0], *y = in[1] + i * down[1];
#pragma omp simd
        for (int64_t w = 0; w < width; w++) a[w] = take(a[w], x[w * side_x], y[w * side_y]);
    }
    for (int64_t h = FOLD_LANES / 2; h > 0; h /= 2) {
        for (int64_t l = 0; l < h && l + h < lanes; l++) join_all(join, lane[l], lane[l + h], width);
        lanes = SMALLER(lanes, h);
    }
    memcpy(out, lane[0], (size_t)width * sizeof(T));
}

INLINE void panel_any(take_function take, join_function join, T start, T *out, const T *const in[2], const int64_t down[2],
                      const int64_t side[2], int64_t n, int64_t width)
{
    if (side[0] != 1 || side[1] != 1) panel_of(take, join, start, out, in, down, side[0], side[1], n, width);
    else if (width == FOLD_WIDTH) panel_of(take, join, start, out, in, down, 1, 1, n, FOLD_WIDTH);
    else panel_of(take, join, start, out, in, down, 1, 1, n, width);
}

#define DUET_FOLD1(name, start, take, join, finish, ...)                                                                         \
    FOLD_OF(name, take, join, finish)                                                                                            \
    static T name##_block(const T *x, const T *y, int64_t n) { return block_of(name##_take, name##_join, start, x, y, n); }      \
    static void name##_panel(T *out, const T *const in[2], const int64_t down[2], const int64_t side[2], int64_t n, int64_t w)   \
    {                                                                                                                            \
        panel_any(name##_take, name##_join, start, out, in, down, side, n, w);                                                   \
    }                                                                                                                            \
    static void name##_add(tree *t, const T *value) { tree_add(name##_join, t, value); }                                         \
    static const T *name##_root(tree *t) { return tree_root(name##_join, t); }
#define DUET_FOLD2 DUET_FOLD1
#include <duet/ops.def>

static const fold_row fold_rows[OPS] = {
#define ROW(name, start, ins)        [OP_##name] = { start, ins, name##_block, name##_panel, name##_add, name##_root, name##_finish },
#define DUET_FOLD1(name, start, ...) ROW(name, start, 1)
#define DUET_FOLD2(name, start, ...) ROW(name, start, 2)
#include <duet/ops.def>
};

/* ---- parting the layouts ---- */

static layout one_axis(const layout *l, int axis)
{
    return (layout){ .type = l->type, .rank = 1, .size = { l->size[axis] }, .stride = { l->stride[axis] } };
}

static layout without(const layout *l, int axis)
{
    layout r = { .type = l->type };
    for (int a = 0; a < l->rank; a++)
        if (a != axis) r.size[r.rank] = l->size[a], r.stride[r.rank] = l->stride[a], r.rank++;
    return r;
}

static void part_layouts(job *j, const step *s)
{
    const int axis = s->attr[0];
    const layout point = { .type = s->out[0].at.type };
    for (int k = 0; k < 2; k++) {
        const layout *l = &s->in[k < s->ins ? k : 0].at;
        j->along[k] = axis < 0 ? *l : one_axis(l, axis);
        j->over[k] = axis < 0 ? point : without(l, axis);
    }
    j->over[2] = axis < 0 ? point : s->out[0].at;
    j->n = layout_count(&j->along[0]), j->outputs = layout_count(&j->over[2]);
    layout_collapse((layout *[]){ &j->along[0], &j->along[1] }, 2);
    layout_collapse((layout *[]){ &j->over[0], &j->over[1], &j->over[2] }, 3);
}

static job job_of(const step *s, const frame *f)
{
    job j = { .row = &fold_rows[s->kernel], .norm = s->kernel == OP_norm, .out = address(f, &s->out[0]), .scale = 1 };
    for (int k = 0; k < 2; k++) j.in[k] = address(f, &s->in[k < s->ins ? k : 0]);
    part_layouts(&j, s);
    j.panels = j.n > 1 && j.along[0].rank == 1 && row_length(&j.over[2]) > 1 && (j.along[0].stride[0] != 1 || j.n <= SHORT);
    return j;
}

/* ---- one panel ---- */

/* n elements of input k of an output, from the first on: where they are, or their copy. */
static const T *elements(const job *j, const panel *p, int k, int64_t first, int64_t n, T *copy)
{
    const layout *l = &j->along[k];
    if (l->rank == 1 && l->stride[0] == 1 && j->scale == 1) return p->in[k] + first;
    run_in(copy, p->in[k], l, first, n);
    if (j->scale != 1)
        for (int64_t i = 0; i < n; i++) copy[i] *= j->scale;
    return copy;
}

static void block_value(const job *j, const panel *p, int64_t block, T *value)
{
    const int64_t first = block * FOLD_BLOCK, n = SMALLER(FOLD_BLOCK, j->n - first);
    if (j->panels) {
        const int64_t down[2] = { j->along[0].stride[0], j->along[1].stride[0] };
        const int64_t side[2] = { row_stride(&j->over[0]), row_stride(&j->over[1]) };
        const T *in[2] = { p->in[0] + first * down[0], p->in[1] + first * down[1] };
        j->row->panel(value, in, down, side, n, p->width);
    } else {
        T copy[2][FOLD_BLOCK];
        const T *x = elements(j, p, 0, first, n, copy[0]);
        const T *y = j->row->ins > 1 ? elements(j, p, 1, first, n, copy[1]) : x;
        *value = j->row->block(x, y, n);
    }
}

static void tree_of_blocks(const job *j, const panel *p, int64_t from, int64_t to, T *root)
{
    T value[FOLD_WIDE / sizeof(T)];
    tree t;
    t.width = p->width, t.count = 0;
    for (int64_t b = from; b < to; b++) {
        block_value(j, p, b, value);
        j->row->add(&t, value);
    }
    memcpy(root, j->row->root(&t), (size_t)p->width * sizeof(T));
}

/* Threads take aligned runs of 2^k blocks, whole sub-trees, and their roots make the rest of the tree. */
static void fold_shared(const job *j, const panel *p, int threads, T *root)
{
    const int64_t blocks = (j->n + FOLD_BLOCK - 1) / FOLD_BLOCK;
    int64_t run = 1;
    while ((blocks + run - 1) / run > RUNS) run *= 2;
    const int64_t runs = (blocks + run - 1) / run;
    T value[RUNS][FOLD_WIDE / sizeof(T)];
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t r = 0; r < runs; r++) tree_of_blocks(j, p, r * run, SMALLER((r + 1) * run, blocks), value[r]);
    tree t;
    t.width = p->width, t.count = 0;
    for (int64_t r = 0; r < runs; r++) j->row->add(&t, value[r]);
    memcpy(root, j->row->root(&t), (size_t)p->width * sizeof(T));
}

static void fold_elements(const job *j, const panel *p, int threads, T *root)
{
    const int64_t blocks = (j->n + FOLD_BLOCK - 1) / FOLD_BLOCK;
    if (blocks == 1) block_value(j, p, 0, root);
    else if (threads > 1) fold_shared(j, p, threads, root);
    else tree_of_blocks(j, p, 0, blocks, root);
}

/* The norm of output w of a panel, whose sum of squares was s. */
static T norm_of(const job *j, const panel *p, int64_t w, T s, int threads)
{
    T scale = s == INF ? TYPED(FOLD_NORM_DOWN) : s < TYPED(FOLD_NORM_LEAST) ? TYPED(FOLD_NORM_UP) : K(1);
    if (scale == 1) return SQRT(s);
    job again = *j;
    panel one = { .in = { p->in[0] + w * row_stride(&j->over[0]) }, .width = 1 };
    again.scale = scale, again.panels = false;
    fold_elements(&again, &one, threads, &s);
    return SQRT(s) * (1 / scale);
}

static void fold_panel(const job *j, const panel *p, int threads)
{
    T root[FOLD_WIDE / sizeof(T)];
    const int64_t apart = row_stride(&j->over[2]);
    if (j->n > 0) fold_elements(j, p, threads, root);
    for (int64_t w = 0; w < p->width; w++) {
        if (j->n == 0) p->out[w * apart] = j->row->finish(j->row->start + K(0), 0);
        else if (j->norm) p->out[w * apart] = norm_of(j, p, w, root[w], threads);
        else p->out[w * apart] = j->row->finish(root[w], j->n);
    }
}

/* ---- all panels ---- */

static void fold_panels(const job *j, int64_t from, int64_t to, int64_t width, int threads)
{
    const int64_t length = row_length(&j->over[2]), across = (length + width - 1) / width;
    for (int64_t i = from; i < to; i++) {
        const int64_t column = i % across * width;
        panel p = { .width = SMALLER(width, length - column) };
        for (int k = 0; k < 2; k++)
            p.in[k] = j->in[k] + walk_to(&j->over[k], i / across).offset + column * row_stride(&j->over[k]);
        p.out = j->out + walk_to(&j->over[2], i / across).offset + column * row_stride(&j->over[2]);
        fold_panel(j, &p, threads);
    }
}

static int64_t count_panels(const job *j, int64_t width)
{
    const int64_t length = row_length(&j->over[2]);
    return j->outputs / length * ((length + width - 1) / width);
}

/* Narrower panels, where there would be too few for the threads. */
static int64_t width_for(const job *j, int threads)
{
    int64_t width = j->panels ? FOLD_WIDTH : 1;
    while (width > 16 && count_panels(j, width) < 2 * threads) width /= 2;
    return width;
}

duet_status NAME(run_fold)(const step *s, const frame *f)
{
    const job j = job_of(s, f);
    if (j.outputs == 0) return DUET_OK;
    const double elements = (double)j.n * (double)j.outputs * s->ins;
    const int threads = threads_for(elements * (double)sizeof(T) * SECONDS_PER_BYTE + (double)j.outputs * SECONDS_PER_FUNCTION);
    const int64_t width = width_for(&j, threads), panels = count_panels(&j, width);
    if (threads == 1 || panels < 2 * threads) {
        fold_panels(&j, 0, panels, width, threads);
        return DUET_OK;
    }
#pragma omp parallel num_threads(threads)
    {
        int t = omp_get_thread_num(), team = omp_get_num_threads();
        fold_panels(&j, part_of(panels, t, team), part_of(panels, t + 1, team), width, 1);
    }
    return DUET_OK;
}
