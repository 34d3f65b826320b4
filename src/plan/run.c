/* run.c - a plan runs: bind matrices and numbers, lend temporaries, hand the steps to the machine. */
#include "dtype.h"
#include "lend.h"
#include "matrix.h"
#include "plan.h"
#include "status.h"
#include "thread.h"
#include "trace.h"
#include <stdlib.h>

#define FEW 32

typedef struct run {
    const plan *p;
    const statement *s;
    void **data; /* destinations, leaves, temporaries */
    double *num;
    int lent; /* temporaries taken so far */
    int queue;
} run;

static void **temporaries(const run *r) { return r->data + r->p->goals + r->p->n_leaves; }

static double bound_number(const bound *b, const formula *f)
{
    double x = b->node < 0 ? b->constant : f->nodes[b->node].number;
    if (!(b->inverted | b->negated)) return x;
    if (b->inverted) x = 1 / x;
    return b->negated ? -x : x;
}

void plan_numbers(const plan *p, const formula *f, double *num)
{
    for (int i = 0; i < p->n_numbers; i++) num[i] = bound_number(&p->numbers[i], f);
}

static duet_status open_leaves(run *r)
{
    const plan *p = r->p;
    const node *nodes = r->s->f->nodes;
    const enum side side = p->machine->side;
    void **to = r->data + p->goals;
    for (const leaf *l = p->leaves, *end = l + p->n_leaves; l < end; l++)
        TRY(matrix_open(nodes[l->node].matrix, side, READ, r->queue, to++));
    return DUET_OK;
}

static duet_status open_destinations(run *r)
{
    const plan *p = r->p;
    const enum side side = p->machine->side;
    for (int k = 0, goals = p->goals; k < goals; k++)
        if (p->first_write[k] >= 0) TRY(matrix_open(r->s->to[k].m, side, OVERWRITE, r->queue, &r->data[k]));
    return DUET_OK;
}

static duet_status lend_temporaries(run *r)
{
    for (; r->lent < r->p->temps; r->lent++) {
        TRY(lend(r->p->machine->side, r->p->temp[r->lent], r->queue, &temporaries(r)[r->lent]));
        COUNT(temporaries);
    }
    return DUET_OK;
}

static void return_temporaries(run *r)
{
    for (int i = 0; i < r->lent; i++) lend_back(r->p->machine->side, temporaries(r)[i], r->queue);
}

/* A step that fails without a device error has written nothing; so a destination is lost only if an earlier one wrote there. */
static __attribute__((cold)) void lose(const run *r, int failed, duet_status s)
{
    for (int k = 0; k < r->p->goals; k++) {
        const int first = r->p->first_write[k];
        if (first >= 0 && (failed > first || (failed == first && s == DUET_DEVICE_ERROR))) matrix_lost(r->s->to[k].m);
    }
}

static duet_status run_steps(run *r)
{
    const frame f = { r->data, r->num, r->queue };
    for (int i = 0; i < r->p->count; i++) {
        TRACE("step %d of %d on the %s: %s", i + 1, r->p->count, r->p->machine->name, kernel_name(r->p->steps[i].kernel));
        duet_status s = r->p->machine->run(&r->p->steps[i], &f);
        if (__builtin_expect(s == DUET_OK, 1)) continue;
        return lose(r, i, s), s;
    }
    COUNT_N(steps, r->p->count);
    for (int k = 0; k < r->p->goals; k++)
        if (r->p->first_write[k] >= 0) matrix_wrote(r->s->to[k].m, r->p->machine->side, r->queue);
    return DUET_OK;
}

static duet_status run_bound(run *r)
{
    const plan *p = r->p;
    TRY(open_leaves(r));
    if (p->temps) TRY(lend_temporaries(r));
    TRY(open_destinations(r));
    plan_numbers(p, r->s->f, r->num);
    return run_steps(r);
}

static duet_status run_in(const plan *p, const statement *s, void **data, double *num)
{
    run r = { p, s, data, num, 0, thread_get()->queue };
    TRACE("run %s: %d steps, %d temporaries, expected %.1f us", p->machine->name, p->count, p->temps, p->seconds * 1e6);
    const duet_status status = run_bound(&r);
    if (p->temps) return_temporaries(&r);
    return status;
}

static __attribute__((noinline)) duet_status run_many(const plan *p, const statement *s, size_t slots)
{
    void **data = malloc(slots * sizeof *data + (size_t)p->n_numbers * sizeof(double));
    if (!data) return fail(DUET_NO_MEMORY, "no memory to bind %zu operands", slots);
    duet_status status = run_in(p, s, data, (double *)(data + slots));
    free(data);
    return status;
}

static __attribute__((noinline)) duet_status run_few(const plan *p, const statement *s)
{
    void *data[FEW];
    double num[FEW];
    return run_in(p, s, data, num);
}

/* Where no result has an element, there is nothing to bind either. */
duet_status plan_run(const plan *p, const statement *s)
{
    const int slots = p->goals + p->n_leaves + p->temps;
    if (p->count == 0) return DUET_OK;
    return __builtin_expect(slots <= FEW && p->n_numbers <= FEW, 1) ? run_few(p, s) : run_many(p, s, (size_t)slots);
}
