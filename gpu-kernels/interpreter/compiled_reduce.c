/* compiled_reduce.c - launches reductions that the driver compiles for one program (compiled_reduce.h). */
#include "compiled_reduce.h"
#include "compiled_operands.h"
#include "dtype.h"
#include "kernel_text.h"
#include "reduce_order.h"
#include <stdio.h>

/* ---- texts ---- */

#define TEXT(type) extern const char compiled_reduce_##type##_text[], compiled_reduce_##type##_end[]
TEXT(f32);
TEXT(f64);
TEXT(i64);
TEXT(u64);
#undef TEXT

static void open_text(ptx_template *s, duet_dtype type)
{
#define TEXT(type) kernel_text_open(s, compiled_reduce_##type##_text, compiled_reduce_##type##_end)
    if (type == DUET_F32) TEXT(f32);
    else if (type == DUET_F64) TEXT(f64);
    else if (type == DUET_I64) TEXT(i64);
    else TEXT(u64);
#undef TEXT
}

/* ---- programs with one reduction ---- */

static bool is_reduction(const instruction *c) { return op_infos[c->op].kind == KIND_REDUCE; }

static const instruction *reduction_of(const program *p)
{
    const instruction *c = p->code;
    while (c < p->code + p->length && !is_reduction(c)) c++;
    return c;
}

void compiled_reduce_alone(const program *p, int output, program *alone)
{
    *alone = (program){
        .inputs = p->inputs, .numbers = p->numbers, .slots = p->slots, .outputs = 1, .reductions = true
    };
    for (const instruction *c = p->code; c < p->code + p->length; c++) {
        if (is_reduction(c) && c->arg[2].index != output) continue;
        instruction *to = &alone->code[alone->length++];
        *to = *c;
        if (!is_reduction(c)) continue;
        to->arg[2].index = 0;
        break; /* what follows is for other outputs */
    }
}

ptx_template compiled_reduce_template(const ptx_request *r, const program *p, char name[64])
{
    static const char *const forms[PTX_FORMS] = {
        [PTX_ROWS] = "rows", [PTX_COLUMNS] = "columns", [PTX_FEW] = "few", [PTX_FEW_ACROSS] = "few_across"
    };
    ptx_template s = { .entry = name };
    open_text(&s, (duet_dtype)r->type);
    snprintf(name, 64, "%s_%s", forms[r->form], op_infos[reduction_of(p)->op].name);
    return s;
}

/* ---- operands ---- */

/* A step to launch: its axes, and the form and the operands of its kernels. */
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

/* The first operand is a dense array of all elements. It has no memory: its layout gives the order in which
 * the kernel reads elements. */
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

/* Vectors start at the first element of each row. If the length of a row is not a multiple of the width,
 * those of later rows are not aligned. */
static void drop_vectors(ptx_request *f)
{
    for (int k = 0; k < f->inputs; k++) {
        if (f->access[k] == PTX_DENSE) f->access[k] = PTX_LOOSE;
        if (f->access[k] == PTX_ROUND) f->access[k] = PTX_ANY;
    }
}

static void set_form(ptx_request *f, const reduction *r, const program *p, interp_path paths[])
{
    const int64_t width = operands_width(&r->o);
    f->form = (uint8_t)r->form;
    f->head = COMPILED_REDUCE_HEAD;
    f->type = (uint8_t)step_type(r->s);
    f->threads = r->form == PTX_COLUMNS ? REDUCE_ACROSS * REDUCE_DOWN : REDUCE_WARPS * 32;
    f->width = r->form == PTX_ROWS ? (uint8_t)width : 1;
    f->numbers = r->s->program->numbers;
    compiled_form(f, &r->o, &r->domain, paths);
    f->outputs = (uint8_t)op_infos[reduction_of(p)->op].arity;
    for (int k = 1; k < f->outputs; k++) f->out_type[k] = f->out_type[0];
    if (r->form == PTX_ROWS && r->axes->outputs > 1 && r->axes->n % width) drop_vectors(f);
}

/* ---- launch ---- */

/* The kernel that computes one output, and its argument. */
typedef struct one_output {
    program alone;
    compiled_source source;
    compiled_reduce_args args;
    compiled_kernel *kernel;
} one_output;

static reduce_args plain_args(const reduction *r, int k, const frame *f, const workspace *w)
{
    const program_reduce_axes *x = r->axes;
    reduce_args a = {
        .out = f->data[r->s->out[k].slot], .part = x->part[k], .n = x->n, .outputs = x->outputs
    };
    a.blocks = quotient_up(x->n, REDUCE_BLOCK);
    for (a.warps = 1; r->form == PTX_ROWS && a.warps < REDUCE_WARPS && a.warps < a.blocks;) a.warps *= 2;
    a.parts = quotient_up(a.blocks, a.warps);
    a.by_parts = divide_by64(a.parts);
    a.meet = meet_at(w->counters, x->outputs, r->form == PTX_COLUMNS ? REDUCE_ACROSS : 1);
    a.outer = x->outer;
    for (int axis = 0; axis < x->outer; axis++) {
        a.outer_size[axis] = x->size[axis];
        a.outer_stride[2][axis] = x->stride[PROGRAM_INPUTS + k][axis];
    }
    return a;
}

static int64_t thread_blocks(const reduction *r, const reduce_args *a)
{
    if (r->form == PTX_COLUMNS) return quotient_up(a->outputs, REDUCE_ACROSS) * a->blocks;
    if (r->form == PTX_ROWS) return quotient_up(a->outputs * a->parts * a->warps, REDUCE_WARPS);
    return quotient_up(a->outputs, REDUCE_WARPS * 32);
}

/* Each output has a kernel of its own, which reads all inputs. The interpreter reads them once. */
static bool is_supported(const step *s, const program_reduce_axes *axes)
{
    bool supported = s->outs <= COMPILED_REDUCE_OUTPUTS && axes->n > 0;
    for (int k = 0; k < s->outs; k++)
        supported &= s->out[k].at.type == reduce_type(axes->row[k], step_type(s));
    return supported;
}

/* Finds the kernel of output k. Returns whether it can be launched. */
static bool find_output(one_output *o, const reduction *r, int k, const double *num, const frame *f,
                        const workspace *w)
{
    interp_path paths[PROGRAM_INPUTS];
    bool ready;
    compiled_reduce_alone(r->s->program, k, &o->alone);
    o->args = (compiled_reduce_args){ .plain = plain_args(r, k, f, w) };
    o->source = (compiled_source){ .program = &o->alone, .blocks = thread_blocks(r, &o->args.plain) };
    o->source.bytes = operands_bytes(&r->o) - (double)(r->domain.n * (int64_t)r->o.each);
    o->kernel = NULL;
    if (o->source.blocks > INT32_MAX) return false;
    set_form(&o->source.form, r, &o->alone, paths);
    compiled_kernel *found = compiled_kernel_for(&o->source, w->used, &ready);
    if (!found || !ready) return false;
    o->kernel = found;
    compiled_args(&o->source.form, &r->o, &r->domain, num, paths, &o->args);
    return true;
}

/* Looks up the kernels of all outputs, so that all of them are made, and launches them if all are ready. */
bool compiled_reduce_launch(const step *s, const double *num, const program_reduce_axes *axes,
                            enum ptx_form form, const frame *f, const workspace *w, cudaStream_t q)
{
    reduction r = { .s = s, .axes = axes, .form = form };
    one_output output[COMPILED_REDUCE_OUTPUTS];
    if (!is_supported(s, axes)) return false;
    set_operands(&r, f);
    if (!operands_reachable(&r.o)) return false;
    bool done = true;
    for (int k = 0; k < s->outs; k++) done &= find_output(&output[k], &r, k, num, f, w);
    for (int k = 0; k < s->outs; k++) {
        one_output *o = &output[k];
        if (!o->kernel) continue;
        if (done) done = compiled_kernel_launch(o->kernel, &o->source, &o->args, q);
        else compiled_kernel_release(o->kernel);
    }
    return done;
}
