/* joins.c - finds steps whose result only the next step reads: products and convolutions before an
 * element-wise program, and such programs before a product. A machine may compute both in one kernel
 * (machine.run_joined). Also finds collective steps whose result the next step does not need. */
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
static bool is_map(const step *s, duet_dtype type, int64_t count)
{
    const operand *out = &s->out[0];
    const program *p = s->program;
    if (s->kernel != KERNEL_PROGRAM || p->reductions || s->outs != 1 || is_copy(p)) return false;
    return p->code[0].type == type && out->at.type == type && layout_is_dense(&out->at) &&
           layout_count(&out->at) == count;
}

/* Does a program follow a product? */
static bool is_followed(const step *s)
{
    return is_product(s) && is_map(s + 1, s->out[0].at.type, layout_count(&s->out[0].at));
}

/* Does the operand contain every element of a dense matrix, in row-major or column-major order? */
static bool is_whole(const layout *l, int64_t count)
{
    layout columns = *l;
    columns.size[0] = l->size[1];
    columns.size[1] = l->size[0];
    columns.stride[0] = l->stride[1];
    columns.stride[1] = l->stride[0];
    return l->rank == 2 && layout_count(l) == count && (layout_is_dense(l) || layout_is_dense(&columns));
}

/* The input that reads all `count` elements of this slot, or -1 if no input or more than one reads the
 * slot. */
static int input_of(const plan *p, const step *s, int slot, int64_t count)
{
    int found = -1, uses = 0;
    for (int k = 0; k < s->ins; k++) {
        if (plan_base_slot(p, s->in[k].slot) != slot) continue;
        const layout *at = &s->in[k].at;
        uses++;
        if (s->in[k].slot != slot) continue;
        if (s->kernel == KERNEL_PROGRAM ? layout_is_dense(at) : is_whole(at, count)) found = k;
    }
    return uses == 1 ? found : -1;
}

/* Does a program compute an operand of a product? If the kernel of a preceding product computes the
 * program, the machine does not try this join. */
static bool is_before_product(const step *s)
{
    const operand *out = &s->out[0];
    return s[1].kernel == OP_matmul && s[1].outs == 1 && dtype_is_f32_or_f64(out->at.type) &&
           s[1].out[0].at.type == out->at.type && is_map(s, out->at.type, layout_count(&out->at));
}

/* Does only the next step need the result of step i? The next step may write its own to
 * the same slot. */
static bool is_for_next(const plan *p, int i)
{
    const int slot = p->steps[i].out[0].slot;
    return p->steps[i + 1].out[0].slot == slot ||
           (plan_is_temporary(p, slot) && !plan_reads_later(p, i + 2, slot));
}

/* Marks the collective steps that need not be waited for at once. */
static void find_overlaps(plan *p)
{
    for (int i = 0; i + 1 < p->count && p->collects && p->machine->join; i++) {
        step *s = &p->steps[i];
        const int slot = plan_base_slot(p, s->out[0].slot);
        s->overlaps = kernel_is_collective(s->kernel) && !reads(p, s + 1, slot);
    }
}

void plan_find_joins(plan *p)
{
    find_overlaps(p);
    for (int i = 0; i + 1 < p->count && p->machine->run_joined; i++) {
        step *s = &p->steps[i];
        if ((is_followed(s) || is_before_product(s)) && is_for_next(p, i))
            s->joins = (uint8_t)(1 + input_of(p, s + 1, s->out[0].slot, layout_count(&s->out[0].at)));
    }
}
