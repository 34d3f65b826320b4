/* plan.c - a plan from a statement: canonical form, jobs, memory, steps. */
#include "plan.h"
#include "status.h"
#include <stdlib.h>
#include <string.h>

static bool find_overlaps(const statement *s, const graph *g, plan *p)
{
    p->overlap = malloc((size_t)g->n_leaves + 1);
    for (int i = 0; p->overlap && i < g->n_leaves; i++)
        p->overlap[i] = (uint8_t)matrix_overlap(s->m, s->f->nodes[g->leaves[i].node].matrix);
    return p->overlap;
}

static bool is_empty(const step *s) { return layout_count(&s->out[0].at) == 0; }

static bool take_steps(plan *p, lowering *l, const memory *m)
{
    p->steps = calloc((size_t)l->count + 1, sizeof *p->steps), p->programs = calloc((size_t)l->count + 1, sizeof *p->programs);
    if (!p->steps || !p->programs) return false;
    p->first_write = l->count;
    for (int j = 0; j < l->count; j++) {
        layout out = job_output(l, &l->jobs[j], !m->copy);
        step *s = &p->steps[p->count];
        step_make(l, &l->jobs[j], &out, m, s);
        if (is_empty(s)) continue;
        p->programs[p->count] = l->jobs[j].program, l->jobs[j].program = NULL;
        p->seconds += p->machine->cost(s);
        if (s->out[0].slot == SLOT_DESTINATION && p->first_write > p->count) p->first_write = p->count;
        p->count++;
    }
    return true;
}

static void take_tables(plan *p, graph *g, memory *m)
{
    p->leaves = g->leaves, p->n_leaves = g->n_leaves, g->leaves = NULL;
    p->numbers = g->numbers, p->n_numbers = g->n_numbers, g->numbers = NULL;
    p->temp = m->temp, p->temps = m->temps, m->temp = NULL;
}

static duet_status refused(plan *p, const lowering *l)
{
    memcpy(p->why, l->refused, sizeof p->why);
    return l->impossible ? DUET_UNSUPPORTED : DUET_OK;
}

static bool plan_fill(plan *p, const statement *s, graph *g)
{
    memory m = { 0 };
    lowering l = { .g = g, .machine = p->machine, .fusion = s->fusion, .to = s->m->at };
    bool ok = find_overlaps(s, g, p) && lower(&l) == DUET_OK && memory_assign(&l, p->overlap, &m);
    if (ok && m.copy) ok = lower_copy(&l) == DUET_OK;
    if (ok) p->status = refused(p, &l);
    if (ok) ok = take_steps(p, &l, &m);
    if (ok) take_tables(p, g, &m);
    lower_free(&l), memory_free(&m);
    return ok;
}

plan *plan_make(const statement *s, const machine *on)
{
    graph g;
    plan *p = calloc(1, sizeof *p);
    if (!p) return fail(DUET_NO_MEMORY, "no memory for a plan"), NULL;
    p->machine = on;
    bool ok = graph_make(&g, s->f) == DUET_OK;
    if (ok) ok = plan_fill(p, s, &g), graph_free(&g);
    if (ok) return p;
    plan_free(p);
    fail(DUET_NO_MEMORY, "no memory to plan a formula of %u parts", s->f->count);
    return NULL;
}

void plan_free(plan *p)
{
    if (!p) return;
    for (int i = 0; i < p->count; i++) p->machine->forget(&p->steps[i]), free(p->programs[i]);
    free(p->key), free(p->steps), free(p->programs), free(p->leaves), free(p->overlap), free(p->numbers), free(p->temp);
    free(p);
}

size_t plan_bytes(const plan *p)
{
    return sizeof *p + (size_t)p->count * (sizeof(step) + sizeof(program)) + p->key_length * sizeof *p->key;
}
