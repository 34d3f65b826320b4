/* direct_results.c - finds the copies of results that a graph does not need. */
#include "direct_results.h"
#include "dtype.h"

typedef struct search {
    const plan *p;
    void *const *data;
} search;

static bool reads(const step *s, int slot)
{
    for (int k = 0; k < s->ins; k++)
        if (s->in[k].slot == slot) return true;
    return false;
}

/* Is every element of these layouts at the same distance from the address of its slot? */
static bool is_plain_copy(const step *s)
{
    const program *g = s->program;
    if (s->kernel != KERNEL_PROGRAM || s->outs != 1 || s->ins != 1 || s->nums || s->inner) return false;
    return g->length == 2 && g->code[0].op == OP_LOAD && g->code[1].op == OP_STORE &&
           s->out[0].at.type == s->in[0].at.type && layout_is_dense(&s->out[0].at) &&
           layout_is_dense(&s->in[0].at);
}

/* The last step before `copy` that writes the temporary without reading it: its value begins there. -1: it
 * does not write all elements of the copy. */
static int first_writer(const plan *p, int copy, int slot)
{
    int i = copy - 1;
    while (i >= 0 && !(step_writes(&p->steps[i], slot) && !reads(&p->steps[i], slot))) i--;
    for (int k = 0; i >= 0 && k < p->steps[i].outs; k++) {
        layout at = p->steps[i].out[k].at;
        at.rank -= p->steps[i].inner;
        if (p->steps[i].out[k].slot == slot && layout_count(&at) == layout_count(&p->steps[copy].out[0].at))
            return i;
    }
    return -1;
}

static bool overlaps(const search *w, const operand *x, const char *first, const char *end)
{
    int64_t low, high;
    const int64_t each = (int64_t)dtypes[x->at.type].bytes;
    const char *p = w->data[x->slot];
    layout_span(&x->at, &low, &high);
    return p + low * each < end && first < p + high * each;
}

/* Does a step use this memory? Memory of the plan for the step alone is compared by its slot. */
static bool uses(const search *w, const step *s, int slot, const char *first, const char *end)
{
    for (int k = 0; k < s->outs; k++)
        if (overlaps(w, &s->out[k], first, end)) return true;
    for (int k = 0; k < s->ins; k++)
        if (overlaps(w, &s->in[k], first, end)) return true;
    return s->scratch == slot + 1;
}

/* Kernels choose their code by the alignment of their operands, to 256 bytes at most. */
static bool alike(const void *a, const void *b) { return (uintptr_t)a % 256 == 0 && (uintptr_t)b % 256 == 0; }

static bool find(const search *w, int copy, direct_result *r)
{
    const plan *p = w->p;
    const step *s = &p->steps[copy];
    if (!is_plain_copy(s) || s->out[0].slot >= p->dests || !plan_is_temporary(p, s->in[0].slot)) return false;
    const int slot = s->in[0].slot, first = first_writer(p, copy, slot);
    char *to = w->data[s->out[0].slot];
    const char *end = to + layout_count(&s->out[0].at) * (int64_t)dtypes[s->out[0].at.type].bytes;
    if (first < 0 || plan_reads_later(p, copy + 1, slot) || !alike(to, w->data[slot])) return false;
    for (int i = first; i < copy; i++)
        if (uses(w, &p->steps[i], slot, to, end)) return false;
    *r = (direct_result){ first, copy, slot, to };
    return true;
}

int direct_results(const plan *p, void *const *data, direct_result found[STATEMENTS])
{
    const search w = { p, data };
    int count = 0;
    for (int i = 0; i < p->count && count < STATEMENTS && !p->n_derived; i++)
        if (find(&w, i, &found[count])) count++;
    return count;
}
