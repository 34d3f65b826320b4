/* recompute.c - computes values a second time instead of keeping them in temporaries.
 * The values between checkpoints are dropped here; fit_memory.c drops others. */
#include "recompute.h"
#include "job_memory.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

bool can_drop(const lowering *l, int v)
{
    if (l->job_of[v] < 0 || l->dest_of[v] >= 0 || value_at(l->g, v)->checkpoint) return false;
    const job *x = &l->jobs[l->job_of[v]];
    for (int k = 0; k < x->outs; k++)
        if (value_at(l->g, x->out[k])->join) return false;
    return true;
}

static void need_again(dropping *d, int v, int at)
{
    int *before = &d->again_before[d->l->job_of[v]];
    if (at < *before) *before = at;
}

/* Users come after the jobs whose results they read. */
void find_second_runs(dropping *d)
{
    const lowering *l = d->l;
    for (int j = 0; j < l->count; j++) d->again_before[j] = INT_MAX;
    for (int j = l->count; j-- > 0;) {
        const job *x = &l->jobs[j];
        const int again = d->again_before[j];
        for (int k = 0; k < x->ins; k++) {
            const int v = base_of(l, x, k);
            if (reads_late(d, j, k)) need_again(d, v, j);
            if (again < INT_MAX && second_reads_copy(d, v, again)) need_again(d, v, again);
        }
    }
}

/* ---- the new jobs ---- */

/* The values of the copies. copy[v]: the copy of value v, or -1. */
typedef struct copies {
    lowering *l;
    int *copy;
} copies;

/* x, which may be a view, in the copy of its base. */
static int in_copy(copies *c, int x)
{
    const int base = value_base(c->l->g, x);
    value v = *value_at(c->l->g, x);
    if (x == base) return c->copy[base];
    v.arg[0] = in_copy(c, v.arg[0]);
    return graph_append(c->l->g, &v);
}

static void copy_results(copies *c, const job *x)
{
    for (int k = 0; k < x->outs; k++) {
        const value v = *value_at(c->l->g, x->out[k]);
        c->copy[x->out[k]] = graph_append(c->l->g, &v);
    }
}

static job second_run(copies *c, const dropping *d, int j)
{
    job x = c->l->jobs[j];
    for (int k = 0; k < x.outs; k++) x.out[k] = c->copy[x.out[k]];
    for (int k = 0; k < x.ins; k++)
        if (second_reads_copy(d, base_of(c->l, &x, k), d->again_before[j])) x.in[k] = in_copy(c, x.in[k]);
    x.again = true;
    if (!x.program) return x;
    program *p = malloc(sizeof *p);
    if (p) *p = *x.program;
    c->l->g->failed |= !p;
    x.program = p;
    return x;
}

static void free_programs(job *jobs, int count)
{
    for (int i = 0; i < count; i++) free(jobs[i].program);
    free(jobs);
}

/* The second runs, in the order of the first ones. NULL: no memory. */
static job *second_runs(copies *c, const dropping *d, int count)
{
    job *made = malloc((size_t)count * sizeof *made);
    int n = 0;
    for (int j = 0; j < c->l->count && made; j++)
        if (d->again_before[j] < INT_MAX) copy_results(c, &c->l->jobs[j]);
    for (int j = 0; j < c->l->count && made && !c->l->g->failed; j++)
        if (d->again_before[j] < INT_MAX) made[n++] = second_run(c, d, j);
    if (!c->l->g->failed) return made;
    free_programs(made, n);
    return NULL;
}

/* Moves all jobs to `to`: each that runs a second time to the front of the job that needs it. first, next:
 * lists of these, by the job that needs them. */
static void merge_jobs(copies *c, const dropping *d, const job *second, job *to, int *first, int *next)
{
    const lowering *l = c->l;
    int n = 0, at = 0;
    for (int j = 0; j < l->count; j++) n += d->again_before[j] < INT_MAX;
    for (int j = 0; j < l->count; j++) first[j] = -1;
    for (int j = l->count; j-- > 0;) {
        if (d->again_before[j] == INT_MAX) continue;
        next[--n] = first[d->again_before[j]];
        first[d->again_before[j]] = n;
    }
    for (int j = 0; j < l->count; j++) {
        for (int i = first[j]; i >= 0; i = next[i]) to[at++] = second[i];
        to[at] = l->jobs[j];
        for (int k = 0; k < to[at].ins; k++)
            if (reads_late(d, j, k)) to[at].in[k] = in_copy(c, to[at].in[k]);
        at++;
    }
}

static bool make_second_runs(dropping *d, copies *c, int count)
{
    lowering *l = d->l;
    const int values = l->g->count;
    int *lists = malloc(2 * (size_t)l->count * sizeof *lists);
    job *all = malloc((size_t)(l->count + count) * sizeof *all),
        *second = lists && all ? second_runs(c, d, count) : NULL;
    if (second) merge_jobs(c, d, second, all, lists, lists + l->count);
    const bool ok = second && !c->l->g->failed && lowering_lengthen(l, values);
    if (ok) {
        free(l->jobs);
        l->jobs = all;
        l->count = l->capacity = l->count + count;
        free(second);
        number_jobs(l);
    } else {
        if (second) free_programs(second, count);
        free(all);
    }
    free(lists);
    return ok;
}

bool run_again(dropping *d)
{
    lowering *l = d->l;
    int count = 0;
    for (int j = 0; j < l->count; j++) count += d->again_before[j] < INT_MAX;
    if (!count) return true;
    copies c = { l, malloc((size_t)l->g->count * sizeof *c.copy) };
    const bool ok = c.copy && make_second_runs(d, &c, count);
    free(c.copy);
    return ok;
}

/* ---- checkpoints ---- */

/* Sets of checkpoints, one for each value or job. */
typedef struct sets {
    uint64_t *bits;
    size_t words;
} sets;

static bool join_sets(uint64_t *to, const uint64_t *from, size_t words)
{
    bool any = false;
    for (size_t i = 0; i < words; i++) any |= (to[i] |= from[i]) != 0;
    return any;
}

static bool sets_meet(const uint64_t *a, const uint64_t *b, size_t words)
{
    for (size_t i = 0; i < words; i++)
        if (a[i] & b[i]) return true;
    return false;
}

static void add_to_set(uint64_t *to, int i) { to[i / 64] |= (uint64_t)1 << i % 64; }

/* The checkpoints that each job is computed from. number[v]: that of checkpoint v, or -1. */
static void find_before(const lowering *l, const int *number, const sets *before)
{
    for (int j = 0; j < l->count; j++) {
        uint64_t *own = before->bits + (size_t)j * before->words;
        for (int k = 0; k < l->jobs[j].ins; k++) {
            const int v = base_of(l, &l->jobs[j], k), from = l->job_of[v];
            if (from >= 0) (void)join_sets(own, before->bits + (size_t)from * before->words, before->words);
            if (number[v] >= 0) add_to_set(own, number[v]);
        }
    }
}

/* The next checkpoints that are computed from each value. */
static void find_behind(const lowering *l, const int *number, const sets *behind, uint64_t *own)
{
    for (int j = l->count; j-- > 0;) {
        const job *x = &l->jobs[j];
        memset(own, 0, behind->words * sizeof *own);
        for (int k = 0; k < x->outs; k++) {
            const int v = x->out[k];
            if (number[v] >= 0) add_to_set(own, number[v]);
            else (void)join_sets(own, behind->bits + (size_t)v * behind->words, behind->words);
        }
        for (int k = 0; k < x->ins; k++)
            (void)join_sets(behind->bits + (size_t)base_of(l, x, k) * behind->words, own, behind->words);
    }
}

/* A use of v is late if it needs a checkpoint that v leads to. */
static void find_late_uses(dropping *d, const sets *before, const sets *behind)
{
    const lowering *l = d->l;
    const size_t words = before->words;
    for (int j = 0; j < l->count; j++)
        for (int k = 0; k < l->jobs[j].ins; k++) {
            const int v = base_of(l, &l->jobs[j], k);
            const uint64_t *leads = behind->bits + (size_t)v * words;
            if (!can_drop(l, v) || !sets_meet(leads, leads, words)) continue;
            d->after[v] = 0;
            if (sets_meet(leads, before->bits + (size_t)j * words, words)) d->late[j] |= 1u << k;
        }
}

static int number_checkpoints(const lowering *l, int *number)
{
    int n = 0;
    for (int v = 0; v < l->g->count; v++)
        number[v] = value_at(l->g, v)->checkpoint && l->job_of[v] >= 0 ? n++ : -1;
    return n;
}

static bool drop_behind_checkpoints(dropping *d, int *number)
{
    const lowering *l = d->l;
    const size_t words = ((size_t)number_checkpoints(l, number) + 63) / 64, jobs = (size_t)l->count * words,
                 values = (size_t)l->g->count * words;
    uint64_t *all = calloc(jobs + values + words + 1, sizeof *all);
    if (!all) return false;
    const sets before = { all, words }, behind = { all + jobs, words };
    find_before(l, number, &before);
    find_behind(l, number, &behind, all + jobs + values);
    find_late_uses(d, &before, &behind);
    free(all);
    find_second_runs(d);
    return true;
}

bool jobs_use_checkpoints(lowering *l)
{
    const size_t jobs = (size_t)l->count, values = (size_t)l->g->count;
    if (!l->g->has_checkpoints) return true;
    int *entries = malloc((2 * values + jobs) * sizeof *entries);
    uint32_t *late = calloc(jobs + 1, sizeof *late);
    dropping d = { .l = l, .after = entries, .late = late };
    bool ok = entries && late;
    for (size_t v = 0; v < values && ok; v++) d.after[v] = KEPT;
    if (ok) {
        d.again_before = entries + 2 * values;
        ok = drop_behind_checkpoints(&d, entries + values) && run_again(&d);
    }
    free(entries);
    free(late);
    return ok;
}
