/* joins.c - finds products and convolutions whose result only the next step reads, if that is an element-wise
 * program. A machine may then compute both in one kernel (machine.run_joined). */
#include "dtype.h"
#include "plan.h"

static bool reads(const plan *p, const step *s, int slot)
{
    bool found = false;
    for (int k = 0; k < s->ins; k++) found |= plan_base_slot(p, s->in[k].slot) == slot;
    return found;
}

bool plan_reads_later(const plan *p, int first, int slot)
{
    for (int i = first; i < p->count; i++) {
        if (reads(p, &p->steps[i], slot)) return true;
        if (step_writes(&p->steps[i], slot)) return false;
    }
    return false;
}

/* Are its results dense, and of a type in which the program can compute? */
static bool is_product(const step *s)
{
    const layout *out = &s->out[0].at;
    return (s->kernel == OP_matmul || s->kernel == OP_conv2d) && s->outs == 1 &&
           dtype_is_f32_or_f64(out->type) && epilogue_infos[s->epilogue].act != OP_softmax &&
           layout_is_dense(out);
}

static bool is_copy(const program *p) { return p->length == 2 && p->code[0].op == OP_LOAD; }

/* s->program is NULL unless s->kernel is KERNEL_PROGRAM. */
static bool is_map(const step *s, const operand *product)
{
    const operand *out = &s->out[0];
    const program *p = s->program;
    const duet_dtype type = product->at.type;
    if (s->kernel != KERNEL_PROGRAM || p->reductions || s->outs != 1 || is_copy(p)) return false;
    return p->code[0].type == type && out->at.type == type && layout_is_dense(&out->at) &&
           layout_count(&out->at) == layout_count(&product->at);
}

/* The input that is the product, or -1 if there is none or more than one. */
static int input_of(const plan *p, const step *s, int slot)
{
    int found = -1, count = 0;
    for (int k = 0; k < s->ins; k++) {
        if (plan_base_slot(p, s->in[k].slot) != slot) continue;
        count++;
        if (s->in[k].slot == slot && layout_is_dense(&s->in[k].at)) found = k;
    }
    return count == 1 ? found : -1;
}

/* Does only the next step need the result of step i? The next step may write its own to
 * the same slot. */
static bool is_for_next(const plan *p, int i)
{
    const int slot = p->steps[i].out[0].slot;
    return p->steps[i + 1].out[0].slot == slot ||
           (plan_is_temporary(p, slot) && !plan_reads_later(p, i + 2, slot));
}

void plan_find_joins(plan *p)
{
    for (int i = 0; i + 1 < p->count && p->machine->run_joined; i++) {
        step *s = &p->steps[i];
        if (is_product(s) && is_map(s + 1, &s->out[0]) && is_for_next(p, i))
            s->joins = (uint8_t)(1 + input_of(p, s + 1, s->out[0].slot));
    }
}
