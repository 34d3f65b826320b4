/* plan.c - makes a plan from statements: the graph in canonical form, then jobs, memory and
 * steps. */
#include "compiler.h"
#include "cost.h"
#include "dtype.h"
#include "matrix.h"
#include "min_max.h"
#include "partition.h"
#include "stack.h"
#include "status.h"
#include <stdlib.h>
#include <string.h>

/* ---- how the statements depend on each other ---- */

/* For each leaf, the latest earlier statement that writes what it reads, or -1. */
static void find_earlier(const statement *s, int *earlier)
{
    uint32_t i = 0;
    for (int k = 0; k < s->count; k++)
        for (; i <= s->to[k].node; i++) {
            earlier[i] = -1;
            for (int e = k; e-- > 0 && earlier[i] < 0 && s->f->nodes[i].op == OP_LEAF;)
                if (matrix_overlap(s->to[e].m, s->f->nodes[i].matrix) == SAME) earlier[i] = e;
        }
}

static bool is_overwritten(const statement *s, int k)
{
    for (int later = k + 1; later < s->count; later++)
        if (matrix_overlap(s->to[k].m, s->to[later].m) == SAME) return true;
    return false;
}

/* The destination with as many axes as its value. The value may lack leading axes of one element;
 * the memory is the same. */
static layout of_rank(layout to, int rank)
{
    while (to.rank > rank && to.size[0] == 1) {
        to.rank--;
        memmove(to.size, to.size + 1, (size_t)to.rank * sizeof *to.size);
        memmove(to.stride, to.stride + 1, (size_t)to.rank * sizeof *to.stride);
    }
    return to;
}

static dest_info dest_of(const statement *s, int k)
{
    const target *to = &s->to[k];
    return (dest_info){ to->node, of_rank(to->m->at, s->f->nodes[to->node].rank), is_overwritten(s, k) };
}

static duet_status make_graph(graph *g, const statement *s, dest_info *dests)
{
    int *earlier = s->count > 1 ? malloc(s->f->count * sizeof *earlier) : NULL;
    if (s->count > 1 && !earlier)
        return fail(DUET_NO_MEMORY, "no host memory to plan %d statements", s->count);
    if (earlier) find_earlier(s, earlier);
    for (int k = 0; k < s->count; k++) dests[k] = dest_of(s, k);
    duet_status status = graph_make(g, s->f, s->count, dests, earlier);
    free(earlier);
    return status;
}

static uint8_t *find_overlaps(const statement *s, const graph *g)
{
    uint8_t *overlap = malloc((size_t)(g->n_leaves * g->roots) + 1);
    for (int i = 0; overlap && i < g->n_leaves; i++)
        for (int k = 0; k < g->roots; k++) {
            const duet_matrix *m = s->f->nodes[g->leaves[i].node].matrix;
            overlap[i * g->roots + k] = g->root[k] < 0 ? APART : (uint8_t)matrix_overlap(s->to[k].m, m);
        }
    return overlap;
}

/* ---- steps ---- */

/* Does the step write no element? A reduction of no elements may still write one. */
static bool is_empty(const step *s)
{
    layout not_reduced = s->out[0].at;
    not_reduced.rank -= s->inner;
    return layout_count(&not_reduced) == 0;
}

static void find_first_write(plan *p, const step *s)
{
    for (int k = 0; k < s->outs; k++) {
        const int slot = plan_base_slot(p, s->out[k].slot);
        if (slot < p->dests && p->first_write[slot] > p->count) p->first_write[slot] = p->count;
    }
}

/* Gives the step its memory. Returns whether that suffices: the layouts of results were not known before. */
static bool take_scratch(plan *p, const memory *m, int index, step *s)
{
    const size_t bytes = step_scratch(p->machine, s);
    const int slot = m->scratch[index];
    if (!bytes) return true;
    if (!slot || m->temp[slot - 1 - p->dests - p->n_leaves] < bytes) return false;
    s->scratch = slot;
    return true;
}

static bool take_steps(plan *p, lowering *l, memory *m)
{
    p->steps = calloc((size_t)l->count + 1, sizeof *p->steps);
    p->programs = calloc((size_t)l->count + 1, sizeof *p->programs);
    if (!p->steps || !p->programs) return false;
    p->n_leaves = l->g->n_leaves;
    p->temps = m->temps;
    p->is_sure = true;
    for (int k = 0; k < p->dests; k++) p->first_write[k] = l->g->root[k] < 0 ? -1 : l->count;
    for (int j = 0; j < l->count; j++) {
        step *s = &p->steps[p->count];
        if (l->jobs[j].kernel == JOB_JOIN) continue;
        step_make(l, &l->jobs[j], m, s);
        if (is_empty(s) && !kernel_is_collective(s->kernel)) continue;
        p->programs[p->count] = l->jobs[j].program;
        l->jobs[j].program = NULL;
        p->derived = m->derived; /* for plan_base_slot; p does not own it yet */
        find_first_write(p, s);
        p->may_fail |= kernel_may_fail(s->kernel);
        p->collects |= kernel_is_collective(s->kernel);
        const bool has_scratch = take_scratch(p, m, j, s);
        p->is_sure &= p->status == DUET_OK && has_scratch && p->machine->is_sure(s);
        p->count++;
    }
    p->first_sure = p->count;
    for (int k = 0; k < p->dests; k++)
        if (p->first_write[k] >= 0) p->first_sure = (int)smaller(p->first_sure, p->first_write[k] + 1);
    return true;
}

static void take_tables(plan *p, graph *g, memory *m)
{
    p->leaves = g->leaves;
    g->leaves = NULL;
    p->numbers = g->numbers;
    p->n_numbers = g->n_numbers;
    g->numbers = NULL;
    p->temp = m->temp;
    m->temp = NULL;
    p->derived = m->derived;
    p->n_derived = m->n_derived;
    m->derived = NULL;
}

static size_t bytes_at(const layout *l) { return (size_t)layout_count(l) * dtypes[l->type].bytes; }

static void add_bytes(plan *p, const statement *s)
{
    for (int k = 0; k < p->dests; k++) p->bytes += bytes_at(&s->to[k].m->at);
    for (int i = 0; i < p->n_leaves; i++) p->bytes += bytes_at(&p->leaves[i].at);
    p->bytes += p->temp_bytes;
}

static duet_status report_unsupported(plan *p, const lowering *l)
{
    memcpy(p->why, l->unsupported_text, sizeof p->why);
    if (l->impossible) return DUET_UNSUPPORTED;
    return DUET_OK;
}

#define ATTEMPTS 4

static bool copy_dests(lowering *l, const memory *m)
{
    bool ok = true;
    for (int k = 0; k < l->g->roots && ok; k++)
        if (l->g->root[k] >= 0 && !m->direct[k]) ok = lower_copy(l, k) == DUET_OK;
    return ok;
}

/* Assigns memory. Blocks take more than the values that live at once, so a limit may need several
 * attempts. */
static bool assign_memory(plan *p, lowering *l, memory *m)
{
    size_t wanted = p->limit;
    bool copied[STATEMENTS];
    for (int attempt = 0;; attempt++) {
        if (!memory_assign(l, m)) return false;
        p->temp_bytes = 0;
        for (int i = 0; i < m->temps; i++) p->temp_bytes += m->temp[i];
        if (p->temp_bytes <= p->limit || attempt == ATTEMPTS) return true;
        for (int k = 0; k < l->g->roots; k++) copied[k] = l->g->root[k] >= 0 && !m->direct[k];
        if (attempt) wanted -= smaller(wanted, p->temp_bytes - p->limit);
        memory_free(m);
        l->copied = copied;
        if (!jobs_fit(l, wanted)) return false;
        l->copied = NULL;
    }
}

static bool plan_fill(plan *p, const statement *s, graph *g, const dest_info *dests)
{
    memory m = { 0 };
    uint8_t *overlap = find_overlaps(s, g);
    lowering l = { .g = g,
                   .machine = p->machine,
                   .fusion = s->fusion,
                   .math = s->math,
                   .dest = dests,
                   .is_limited = p->limit < SIZE_MAX,
                   .overlap = overlap };
    bool ok = overlap && lower(&l) == DUET_OK && assign_memory(p, &l, &m) && copy_dests(&l, &m);
    if (ok) {
        p->dests = s->count;
        p->status = report_unsupported(p, &l);
    }
    if (ok) ok = take_steps(p, &l, &m);
    if (ok) {
        take_tables(p, g, &m);
        add_bytes(p, s);
        plan_find_joins(p);
    }
    lower_free(&l);
    memory_free(&m);
    free(overlap);
    return ok;
}

static plan *make_here(const statement *s, int device, size_t limit)
{
    graph g;
    dest_info dests[STATEMENTS];
    plan *p = calloc(1, sizeof *p);
    if (!p) {
        fail(DUET_NO_MEMORY, "out of host memory for a plan");
        return NULL;
    }
    p->device = device;
    p->limit = limit;
    p->machine = device_machine(device);
    bool ok = make_graph(&g, s, dests) == DUET_OK;
    if (ok) {
        ok = plan_fill(p, s, &g, dests);
        graph_free(&g);
    }
    if (ok) return p;
    plan_free(p);
    fail(DUET_NO_MEMORY, "no host memory to plan a formula of %u nodes", s->f->count);
    return NULL;
}

typedef struct making {
    const statement *s;
    int device;
    size_t limit;
    plan *made;
} making;

static duet_status make(void *of)
{
    making *m = of;
    m->made = make_here(m->s, m->device, m->limit);
    return DUET_OK;
}

plan *plan_make_within(const statement *s, int device, size_t limit)
{
    thread *t = thread_get();
    making m = { s, device, limit, NULL };
    if (likely(stack_suffices(t))) return make_here(s, device, limit);
    return stack_run(t, make, &m) == DUET_OK ? m.made : NULL;
}

plan *plan_make(const statement *s, int device) { return plan_make_within(s, device, SIZE_MAX); }

void plan_free(plan *p)
{
    if (!p) return;
    for (int i = 0; i < p->count; i++) {
        p->machine->forget(&p->steps[i]);
        free(p->programs[i]);
    }
    for (plan *q = p->smaller; q; q = p->smaller) {
        p->smaller = q->next;
        plan_free(q);
    }
    partition_free(p->partition);
    stream_free(p->stream);
    free(p->key);
    free(p->steps);
    free(p->programs);
    free(p->leaves);
    free(p->numbers);
    free(p->temp);
    free(p->derived);
    free(p);
}

/* Most statements run often, and costs change at most once in a process, so the sum is stored. */
double plan_seconds(const plan *p)
{
    plan *own = (plan *)(uintptr_t)p;
    if (likely(p->cost_edition == costs_edition())) return p->seconds;
    own->cost_edition = costs_edition();
    own->seconds = 0;
    for (int i = 0; i < p->count; i++) own->seconds += p->machine->cost(&p->steps[i]);
    return own->seconds;
}

#define LIBRARY_CONV ((size_t)128 << 10) /* measured with oneDNN 2.6: 87 to 120 KiB */

size_t plan_library_bytes(const plan *p)
{
    size_t bytes = 0;
    for (int i = 0; i < p->count; i++)
        if (is_conv(p->steps[i].kernel)) bytes += LIBRARY_CONV;
    return bytes;
}

size_t plan_bytes(const plan *p)
{
    return sizeof *p + (size_t)p->count * (sizeof(step) + sizeof(program)) + p->key_length * sizeof *p->key;
}
