/* reduce.c - launches folds: which threads go where, by what is to be reduced. */
#include "fold.h"
#include "launch.h"
#include <stdlib.h>

/* l without axis `axis`, or without any axis. */
static layout outside(const layout *l, int axis)
{
    layout r = { .type = l->type };
    for (int a = 0; a < l->rank && axis >= 0; a++)
        if (a != axis) r.size[r.rank] = l->size[a], r.stride[r.rank++] = l->stride[a];
    return r;
}

/* Axis `axis` of l alone, or all of them. */
static layout within(const layout *l, int axis)
{
    if (axis < 0) return *l;
    return (layout){ .type = l->type, .rank = 1, .size = { l->size[axis] }, .stride = { l->stride[axis] } };
}

static void set_outer(fold_args *a, layout *x, layout *y, layout *out)
{
    layout *all[] = { out, x, y };
    layout_collapse(all, 3);
    a->outer = x->rank, a->outputs = layout_count(x);
    for (int i = 0; i < x->rank; i++) {
        a->outer_size[i] = divide_by64(x->size[i]);
        a->outer_stride[0][i] = x->stride[i], a->outer_stride[1][i] = y->stride[i], a->outer_stride[2][i] = out->stride[i];
    }
}

static void set_inner(fold_args *a, layout *x, layout *y)
{
    layout *all[] = { x, y };
    layout_collapse(all, 2);
    a->inner = x->rank, a->n = layout_count(x);
    for (int i = 0; i < x->rank; i++) {
        a->inner_size[i] = divide_by64(x->size[i]);
        a->inner_stride[0][i] = x->stride[i], a->inner_stride[1][i] = y->stride[i];
    }
}

/* What is reduced is axis `axis` of x and y, or all of them; the other axes, which are out's, say which output. */
static void set_axes(fold_args *a, const layout *x, const layout *y, int axis, const layout *out)
{
    layout inner_x = within(x, axis), inner_y = within(y, axis), outer_x = outside(x, axis), outer_y = outside(y, axis);
    layout to = axis < 0 ? outside(out, axis) : *out;
    set_outer(a, &outer_x, &outer_y, &to);
    set_inner(a, &inner_x, &inner_y);
}

/* Do neighbouring outputs, enough of them to share what memory gives at once, lie closer than neighbouring elements of one? */
static bool is_columns(const fold_args *a)
{
    const int64_t apart = a->outer_stride[0][a->outer - 1];
    const bool wide = a->outer_size[a->outer - 1].by >= FOLD_ACROSS / 4;
    return a->inner == 1 && wide && apart != 0 && llabs(apart) < llabs(a->inner_stride[0][0]);
}

static enum form form_of(const fold_args *a)
{
    const bool columns = is_columns(a);
    if (a->n <= FOLD_FEW && a->inner == 1) return columns ? FORM_THIN : FORM_SHORT;
    return columns ? FORM_COLUMNS : FORM_ROWS;
}

/* In rows, up to FOLD_WARPS blocks are joined at once; those of a column each stay a part. */
static void set_parts(fold_args *a)
{
    const enum form form = form_of(a);
    a->blocks = (a->n + FOLD_BLOCK - 1) / FOLD_BLOCK, a->warps = 1;
    if (form == FORM_ROWS)
        while (a->warps < FOLD_WARPS && a->warps < a->blocks) a->warps *= 2;
    a->parts = a->blocks <= a->warps ? 1 : (a->blocks + a->warps - 1) / a->warps;
    a->by_parts = divide_by64(a->parts);
    if (a->blocks == 0) a->blocks = 1;
}

void fold_rows_of(fold_args *a, const layout *in, int axis, const layout *out)
{
    set_axes(a, in, in, axis, out);
    set_parts(a);
}

static fold_args args_of(const step *s)
{
    fold_args a = { .n = 0 };
    set_axes(&a, &s->in[0].at, &s->in[s->ins > 1].at, s->attr[0], &s->out[0].at);
    set_parts(&a);
    return a;
}

size_t fold_part_bytes(const fold_args *a, int row, bool wide)
{
    const size_t acc = (size_t)(row == OP_norm ? 3 : 1) * (wide ? 8 : 4);
    return a->parts > 1 ? (size_t)(a->outputs * a->parts) * acc : 0;
}

size_t fold_scratch(const step *s)
{
    const fold_args a = args_of(s);
    return fold_part_bytes(&a, s->kernel, s->out[0].at.type == DUET_F64);
}

static int64_t thread_blocks(const fold_args *a, enum form form)
{
    const int64_t threads = FOLD_WARPS * 32, m = a->outputs;
    switch (form) {
    case FORM_SHORT: return (4 * m + threads - 1) / threads;
    case FORM_THIN: return (m + threads - 1) / threads;
    case FORM_COLUMNS: return (m + FOLD_ACROSS - 1) / FOLD_ACROSS * a->blocks;
    case FORM_JOIN: return a->parts <= FOLD_FEW_PARTS ? (m + FOLD_WARPS - 1) / FOLD_WARPS : m;
    default: return (m * a->parts * a->warps + FOLD_WARPS - 1) / FOLD_WARPS;
    }
}

cudaError_t fold_run(const fold_args *a, const void *(*kernel)(int row, int form), int row, cudaStream_t q)
{
    fold_args args = *a;
    const enum form form = form_of(a);
    const int threads = form == FORM_COLUMNS ? FOLD_ACROSS * FOLD_DOWN : FOLD_WARPS * 32;
    cudaError_t e = launch(kernel(row, (int)form), thread_blocks(a, form), threads, 0, &args, q);
    if (e != cudaSuccess || a->parts <= 1) return e;
    return launch(kernel(row, FORM_JOIN), thread_blocks(a, FORM_JOIN), FOLD_WARPS * 32, 0, &args, q);
}

cudaError_t fold_launch(const step *s, const frame *f, void *scratch, cudaStream_t q)
{
    fold_args a = args_of(s);
    if (a.outputs == 0) return cudaSuccess;
    a.x = f->data[s->in[0].slot], a.y = f->data[s->in[s->ins > 1].slot];
    a.out = f->data[s->out[0].slot], a.part = scratch;
    return fold_run(&a, s->out[0].at.type == DUET_F64 ? fold_kernel_f64 : fold_kernel_f32, s->kernel, q);
}
