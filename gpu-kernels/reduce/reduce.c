/* reduce.c - launches reductions: chooses kernel and thread layout by the shape of the reduction. */
#include "program_reduce.h"
#include "reduce_order.h"
#include <stdlib.h>

/* The axes of l without the last `inner`, and the last `inner` axes. */
static layout outer_axes(const layout *l, int inner)
{
    layout r = *l;
    r.rank -= inner;
    return r;
}
static layout inner_axes(const layout *l, int inner)
{
    layout r = { .type = l->type, .rank = inner };
    for (int a = 0; a < inner; a++) {
        r.size[a] = l->size[l->rank - inner + a];
        r.stride[a] = l->stride[l->rank - inner + a];
    }
    return r;
}

static void set_outer(reduce_args *a, layout *x, layout *y, layout *out)
{
    layout *all[] = { out, x, y };
    layout_collapse(all, 3);
    a->outer = x->rank;
    a->outputs = layout_count(x);
    for (int i = 0; i < x->rank; i++) {
        a->outer_size[i] = divide_by64(x->size[i]);
        a->outer_stride[0][i] = x->stride[i];
        a->outer_stride[1][i] = y->stride[i];
        a->outer_stride[2][i] = out->stride[i];
    }
}

static void set_inner(reduce_args *a, layout *x, layout *y)
{
    layout *all[] = { x, y };
    layout_collapse(all, 2);
    a->inner = x->rank;
    a->n = layout_count(x);
    for (int i = 0; i < x->rank; i++) {
        a->inner_size[i] = divide_by64(x->size[i]);
        a->inner_stride[0][i] = x->stride[i];
        a->inner_stride[1][i] = y->stride[i];
    }
}

/* The last `inner` axes of x and y are reduced. The other axes, which are those of out, select the
 * output. */
static void set_axes(reduce_args *a, const layout *x, const layout *y, int inner, const layout *out)
{
    layout inner_x = inner_axes(x, inner), inner_y = inner_axes(y, inner), to = *out;
    layout outer_x = outer_axes(x, inner), outer_y = outer_axes(y, inner);
    set_outer(a, &outer_x, &outer_y, &to);
    set_inner(a, &inner_x, &inner_y);
}

/* Are neighbouring outputs closer in memory than neighbouring elements of one output, and are there
 * enough of them to use a whole memory transaction? */
static bool is_columns(const reduce_args *a)
{
    const int64_t apart = a->outer_stride[0][a->outer - 1];
    const bool wide = a->outer_size[a->outer - 1].by >= REDUCE_ACROSS / 4;
    return a->inner == 1 && wide && apart != 0 && llabs(apart) < llabs(a->inner_stride[0][0]);
}

static enum form form_of(const reduce_args *a)
{
    const bool columns = is_columns(a);
    if (a->n <= REDUCE_FEW && a->inner == 1) return columns ? FORM_THIN : FORM_SHORT;
    if (a->n <= REDUCE_LANES && a->inner == 1) return columns ? FORM_LOW : FORM_NARROW;
    return columns ? FORM_COLUMNS : FORM_ROWS;
}

/* Along rows, up to REDUCE_WARPS blocks are joined at once. Along columns every block remains a
 * partial result. */
static void set_parts(reduce_args *a)
{
    const enum form form = form_of(a);
    a->blocks = (a->n + REDUCE_BLOCK - 1) / REDUCE_BLOCK;
    a->warps = 1;
    if (form == FORM_ROWS)
        while (a->warps < REDUCE_WARPS && a->warps < a->blocks) a->warps *= 2;
    a->parts = a->blocks <= a->warps ? 1 : (a->blocks + a->warps - 1) / a->warps;
    a->by_parts = divide_by64(a->parts);
    if (a->blocks == 0) a->blocks = 1;
}

void reduce_rows_of(reduce_args *a, const layout *in, const layout *out)
{
    set_axes(a, in, in, 1, out);
    set_parts(a);
}

/* A reduction of elements in memory: its row of ops.def and its inputs. */
typedef struct plain_reduce {
    int row, x, y;
} plain_reduce;

/* Recognises the program [LOAD x] reduction over inputs of one type. Any other program needs the
 * interpreter. */
static bool read_plain(const step *s, plain_reduce *f)
{
    const program *p = s->program;
    const instruction *c = p->code + p->length - 1,
                      *load = p->length == 2 && p->code[0].op == OP_LOAD ? p->code : NULL;
    int input[2] = { 0, 0 };
    if (p->outputs != 1 || p->length != 1 + !!load || program_converts(s)) return false;
    for (int k = 0; k < op_infos[c->op].arity; k++) {
        const source from = c->arg[k].kind == FROM_ACC && load ? load->arg[0] : c->arg[k];
        if (from.kind != FROM_INPUT) return false;
        input[k] = from.index;
    }
    *f = (plain_reduce){ c->op, input[0], op_infos[c->op].arity > 1 ? input[1] : input[0] };
    return true;
}

static reduce_args args_of(const step *s, const plain_reduce *f)
{
    reduce_args a = { .n = 0 };
    const layout out = outer_axes(&s->out[0].at, s->inner);
    set_axes(&a, &s->in[f->x].at, &s->in[f->y].at, s->inner, &out);
    set_parts(&a);
    return a;
}

size_t reduce_workspace(const step *s)
{
    plain_reduce f;
    if (!read_plain(s, &f)) return program_reduce_workspace(s);
    const reduce_args a = args_of(s, &f);
    return reduce_part_bytes(&a, f.row, step_type(s) == DUET_F64);
}

static int64_t thread_blocks(const reduce_args *a, enum form form)
{
    const int64_t threads = REDUCE_WARPS * 32, m = a->outputs;
    switch (form) {
    case FORM_SHORT: return (4 * m + threads - 1) / threads;
    case FORM_NARROW: return (REDUCE_FEW_DOWN * m + threads - 1) / threads;
    case FORM_THIN: return (m + threads - 1) / threads;
    case FORM_LOW: return (m + REDUCE_ACROSS - 1) / REDUCE_ACROSS;
    case FORM_COLUMNS: return (m + REDUCE_ACROSS - 1) / REDUCE_ACROSS * a->blocks;
    default: return (m * a->parts * a->warps + REDUCE_WARPS - 1) / REDUCE_WARPS;
    }
}

static int threads_of(enum form form)
{
    if (form == FORM_COLUMNS || form == FORM_LOW)
        return REDUCE_ACROSS * (form == FORM_LOW ? REDUCE_FEW_DOWN : REDUCE_DOWN);
    return REDUCE_WARPS * 32;
}

cudaError_t reduce_run(const reduce_args *a, const void *(*kernel)(int row, int form), int row,
                       cudaStream_t q)
{
    reduce_args args = *a;
    const enum form form = form_of(a);
    args.meet = meet_at(a->meet.counters, a->outputs, form == FORM_COLUMNS ? REDUCE_ACROSS : 1);
    return launch(kernel(row, (int)form), thread_blocks(a, form), threads_of(form), 0, &args, q);
}

cudaError_t reduce_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    plain_reduce p;
    if (!read_plain(s, &p)) return program_reduce_launch(s, f, w, q);
    reduce_args a = args_of(s, &p);
    if (a.outputs == 0) return cudaSuccess;
    a.x = f->data[s->in[p.x].slot];
    a.y = f->data[s->in[p.y].slot];
    a.out = f->data[s->out[0].slot];
    a.part = w->scratch;
    a.meet.counters = w->counters;
    return reduce_run(&a, step_type(s) == DUET_F64 ? reduce_kernel_f64 : reduce_kernel_f32, p.row, q);
}
