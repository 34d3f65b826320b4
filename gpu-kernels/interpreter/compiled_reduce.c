/* compiled_reduce.c - launches reductions that the driver compiles for one program (compiled_reduce.h). */
#include "compiled_reduce.h"
#include "compiled_operands.h"
#include "dtype.h"
#include "reduce_order.h"
#include <stdio.h>

/* ---- texts ---- */

#define TEXT(type) extern const char compiled_reduce_##type##_text[], compiled_reduce_##type##_end[]
TEXT(f32);
TEXT(f64);
TEXT(i64);
TEXT(u64);
#undef TEXT

static ptx_skeleton text_of(duet_dtype type)
{
#define TEXT(type)                                                                                           \
    (ptx_skeleton)                                                                                           \
    {                                                                                                        \
        compiled_reduce_##type##_text, NULL,                                                                 \
            (size_t)(compiled_reduce_##type##_end - compiled_reduce_##type##_text)                           \
    }
    if (type == DUET_F32) return TEXT(f32);
    if (type == DUET_F64) return TEXT(f64);
    return type == DUET_I64 ? TEXT(i64) : TEXT(u64);
#undef TEXT
}

static const instruction *reduction_of(const program *p)
{
    const instruction *c = p->code;
    while (c < p->code + p->length && op_infos[c->op].kind != KIND_REDUCE) c++;
    return c;
}

ptx_skeleton compiled_reduce_skeleton(duet_dtype type, int form, const program *p, char name[64])
{
    static const char *const forms[PTX_FORMS] = {
        [PTX_ROWS] = "rows", [PTX_COLUMNS] = "columns", [PTX_FEW] = "few", [PTX_FEW_ACROSS] = "few_across"
    };
    ptx_skeleton s = text_of(type);
    snprintf(name, 64, "%s_%s", forms[form], op_infos[reduction_of(p)->op].name);
    s.entry = name;
    return s;
}

/* ---- operands ---- */

/* A step and its axes, and a kernel for it. */
typedef struct reduction {
    const step *s;
    const program_reduce_axes *axes;
    enum ptx_form form;
    operands o;
    interp_head domain;
} reduction;

/* Are elements numbered along the outputs first? */
static bool is_across(const reduction *r) { return r->form == PTX_COLUMNS || r->form == PTX_FEW_ACROSS; }

/* The axes of an operand in the order in which the kernel numbers elements. */
static layout domain_of(const reduction *r, int k, duet_dtype type)
{
    const program_reduce_axes *a = r->axes;
    layout l = { .type = type, .rank = a->outer + a->inner };
    for (int x = 0; x < l.rank; x++) {
        const int from = !is_across(r) ? x : x < a->inner ? a->outer + x : x - a->inner;
        l.size[x] = (int64_t)a->size[from].by;
        l.stride[x] = a->stride[k][from];
    }
    return l;
}

/* The first operand is a dense array of all elements, which does not exist: elements are read as if they
 * were written there. */
static void set_operands(reduction *r, const frame *f)
{
    layout *all[OPERANDS];
    operands *o = &r->o;
    const duet_dtype type = step_type(r->s);
    const layout domain = domain_of(r, 0, type);
    *o = (operands){ .outs = 1, .count = 1 + r->s->ins, .each = dtypes[type].bytes };
    layout_dense(&o->of[0], type, domain.rank, domain.size);
    for (int k = 0; k < r->s->ins; k++) {
        o->of[1 + k] = domain_of(r, k, r->s->in[k].at.type);
        r->domain.in[k] = o->at[1 + k] = f->data[r->s->in[k].slot];
    }
    for (int k = 0; k < o->count; k++) all[k] = &o->of[k];
    layout_collapse(all, o->count);
    r->domain.n = layout_count(&o->of[0]);
    r->domain.out_dense = true;
    r->domain.inputs = (uint8_t)r->s->ins;
}

/* Vectors begin at the start of each row. If rows are not whole vectors, only the first one is aligned. */
static void drop_vectors(ptx_request *f)
{
    for (int k = 0; k < f->inputs; k++) {
        if (f->access[k] == PTX_DENSE) f->access[k] = PTX_LOOSE;
        if (f->access[k] == PTX_ROUND) f->access[k] = PTX_ANY;
    }
}

static void set_form(ptx_request *f, const reduction *r, interp_path paths[])
{
    const int64_t width = operands_width(&r->o);
    f->form = (uint8_t)r->form;
    f->type = (uint8_t)step_type(r->s);
    f->threads = r->form == PTX_COLUMNS ? REDUCE_ACROSS * REDUCE_DOWN : REDUCE_WARPS * 32;
    f->width = r->form == PTX_ROWS ? (uint8_t)width : 1;
    f->numbers = r->s->program->numbers;
    compiled_form(f, &r->o, &r->domain, paths);
    f->outputs = (uint8_t)op_infos[reduction_of(r->s->program)->op].arity;
    for (int k = 1; k < f->outputs; k++) f->out_type[k] = f->out_type[0];
    if (r->form == PTX_ROWS && r->axes->outputs > 1 && r->axes->n % width) drop_vectors(f);
}

/* ---- launch ---- */

static reduce_args plain_args(const reduction *r, const frame *f, const workspace *w)
{
    const program_reduce_axes *x = r->axes;
    reduce_args a = {
        .out = f->data[r->s->out[0].slot], .part = w->scratch, .n = x->n, .outputs = x->outputs
    };
    a.blocks = quotient_up(x->n, REDUCE_BLOCK);
    for (a.warps = 1; r->form == PTX_ROWS && a.warps < REDUCE_WARPS && a.warps < a.blocks;) a.warps *= 2;
    a.parts = quotient_up(a.blocks, a.warps);
    a.by_parts = divide_by64(a.parts);
    a.meet = meet_at(w->counters, x->outputs, r->form == PTX_COLUMNS ? REDUCE_ACROSS : 1);
    a.outer = x->outer;
    for (int k = 0; k < x->outer; k++) {
        a.outer_size[k] = x->size[k];
        a.outer_stride[2][k] = x->stride[PROGRAM_INPUTS][k];
    }
    return a;
}

static int64_t thread_blocks(const reduction *r, const reduce_args *a)
{
    if (r->form == PTX_COLUMNS) return quotient_up(a->outputs, REDUCE_ACROSS) * a->blocks;
    if (r->form == PTX_ROWS) return quotient_up(a->outputs * a->parts * a->warps, REDUCE_WARPS);
    return quotient_up(a->outputs, REDUCE_WARPS * 32);
}

static bool is_supported(const step *s, const program_reduce_axes *axes)
{
    const duet_dtype type = step_type(s);
    return s->outs == 1 && axes->n > 0 &&
           s->out[0].at.type == reduce_type(reduction_of(s->program)->op, type);
}

bool compiled_reduce_launch(const step *s, const double *num, const program_reduce_axes *axes,
                            enum ptx_form form, const frame *f, const workspace *w, cudaStream_t q)
{
    reduction r = { .s = s, .axes = axes, .form = form };
    interp_path paths[PROGRAM_INPUTS];
    bool ready;
    if (!is_supported(s, axes)) return false;
    set_operands(&r, f);
    if (!operands_reachable(&r.o)) return false;
    compiled_reduce_args args = { .plain = plain_args(&r, f, w) };
    compiled_source compiled = { .program = s->program, .blocks = thread_blocks(&r, &args.plain) };
    compiled.bytes = operands_bytes(&r.o) - (double)(r.domain.n * (int64_t)r.o.each);
    if (compiled.blocks > INT32_MAX) return false;
    set_form(&compiled.form, &r, paths);
    compiled_kernel *k = compiled_kernel_for(&compiled, w->used, &ready);
    if (!k || !ready) return false;
    compiled_args(&compiled.form, &r.o, &r.domain, num, paths, &args);
    return compiled_kernel_launch(k, &compiled, &args, q);
}
