/* fit_memory.c - drops and recomputes values so that the temporaries of a plan fit in given memory. It drops
 * one value after the other, each time the one that saves the most bytes for the time of recomputing it. */
#include "job_memory.h"
#include "recompute.h"
#include <limits.h>
#include <stdlib.h>

#define CANDIDATES 16   /* values that are tried for each that is dropped */
#define JOBS_MAX   2048 /* with more jobs nothing is dropped, because the search takes quadratic time */

/* What the jobs need, with their second runs. */
typedef struct needs {
    size_t most;    /* the most bytes of temporaries that are in use at once */
    int most_at;    /* the job during which they are in use, or before which a second run uses them */
    bool is_second; /* a second run uses them */
    double excess;  /* the bytes above the limit, summed over all runs */
    double seconds; /* of the second runs */
} needs;

typedef struct fitter {
    dropping d;
    size_t limit;
    int values;
    int *run;  /* the runs in order: a job, or ~job for its second run */
    int *last; /* of each value, then of each copy: the run that reads it last; -1: none */
    /* of each value, for the run with the most bytes: the job that used it last, and the job that uses it
     * next; INT_MAX: none does */
    int *before, *next;
    int *dropped;    /* the values that were dropped last */
    size_t *bytes;   /* of temporaries: of each value, then of each copy */
    double *seconds; /* of each job */
} fitter;

/* ---- what the jobs need ---- */

static int order_runs(const fitter *f)
{
    const lowering *l = f->d.l;
    int n = 0;
    int *count = f->last; /* how many second runs precede each job, then where they begin */
    for (int j = 0; j < l->count; j++) count[j] = 0;
    for (int j = 0; j < l->count; j++)
        if (f->d.again_before[j] < INT_MAX) count[f->d.again_before[j]]++;
    for (int j = 0; j < l->count; j++) {
        const int second = count[j];
        count[j] = n;
        n += second;
        f->run[n++] = j;
    }
    for (int j = 0; j < l->count; j++)
        if (f->d.again_before[j] < INT_MAX) f->run[count[f->d.again_before[j]]++] = ~j;
    return n;
}

/* The index of operand k of a run in last[]. */
static int operand_of(const fitter *f, int run, int k)
{
    const int j = run < 0 ? ~run : run, v = base_of(f->d.l, &f->d.l->jobs[j], k);
    const bool copy = run < 0 ? second_reads_copy(&f->d, v, f->d.again_before[j]) : reads_late(&f->d, j, k);
    return copy ? v + f->values : v;
}

/* Sets last[] of all values that jobs store or read; the other entries are not used. */
static void find_last_reads(const fitter *f, int runs)
{
    for (int r = 0; r < runs; r++) {
        const int run = f->run[r], shift = run < 0 ? f->values : 0;
        const job *x = &f->d.l->jobs[run < 0 ? ~run : run];
        for (int k = 0; k < x->outs; k++) f->last[x->out[k] + shift] = -1;
        for (int k = 0; k < x->ins; k++) f->last[operand_of(f, run, k)] = r;
    }
}

static void note_run(const fitter *f, needs *n, int run, size_t now)
{
    if (now > f->limit) n->excess += (double)(now - f->limit);
    if (run < 0) n->seconds += f->seconds[~run];
    if (now <= n->most) return;
    n->most = now;
    n->is_second = run < 0;
    n->most_at = run < 0 ? f->d.again_before[~run] : run;
}

static needs find_needs(fitter *f)
{
    needs n = { 0 };
    size_t now = 0;
    find_second_runs(&f->d);
    const int runs = order_runs(f);
    find_last_reads(f, runs);
    for (int r = 0; r < runs; r++) {
        const int run = f->run[r], shift = run < 0 ? f->values : 0;
        const job *x = &f->d.l->jobs[run < 0 ? ~run : run];
        for (int k = 0; k < x->outs; k++) now += f->bytes[x->out[k] + shift];
        note_run(f, &n, run, now);
        for (int k = 0; k < x->ins; k++) {
            const int i = operand_of(f, run, k);
            if (f->last[i] != r || (i < f->values && lives_to_end(f->d.l, i))) continue;
            now -= f->bytes[i];
            f->last[i] = -1; /* an operand may be read twice */
        }
        for (int k = 0; k < x->outs; k++)
            if (f->last[x->out[k] + shift] < r && (shift || !lives_to_end(f->d.l, x->out[k])))
                now -= f->bytes[x->out[k] + shift];
    }
    return n;
}

/* ---- which value to drop ---- */

static void note_use(fitter *f, int v, int at, const needs *n)
{
    const bool is_earlier = at < n->most_at || (at == n->most_at && !n->is_second);
    if (is_earlier && at > f->before[v]) f->before[v] = at;
    if (!is_earlier && at < f->next[v]) f->next[v] = at;
}

/* For each value, its uses before and after the run with the most bytes. Uses by that run count as before. */
static void find_uses(fitter *f, const needs *n)
{
    const lowering *l = f->d.l;
    for (int v = 0; v < f->values; v++) {
        f->before[v] = l->job_of[v];
        f->next[v] = INT_MAX;
    }
    for (int j = 0; j < l->count; j++)
        for (int k = 0; k < l->jobs[j].ins; k++) {
            const int v = base_of(l, &l->jobs[j], k), again = f->d.again_before[j];
            note_use(f, v, j, n);
            if (again < INT_MAX) note_use(f, v, again, n);
        }
}

/* Must the job run only once? */
static bool is_unique(const job *j) { return kernel_may_fail(j->kernel) || kernel_is_collective(j->kernel); }

/* May it be worth dropping v? The result is larger for better candidates, 0 for no. */
static double promise_of(const fitter *f, int v)
{
    const lowering *l = f->d.l;
    const int made = l->job_of[v];
    if (!can_drop(l, v) || f->d.after[v] != KEPT || f->next[v] == INT_MAX || f->next[v] - f->before[v] < 2)
        return 0;
    if (is_unique(&l->jobs[made])) return 0;
    return (double)temporary_bytes(l, v) * (f->next[v] - f->before[v]) / (f->seconds[made] + 1e-9);
}

/* The most promising values, best first. Returns how many. */
static int find_candidates(const fitter *f, int found[CANDIDATES])
{
    double promise[CANDIDATES];
    int count = 0;
    for (int v = 0; v < f->values; v++) {
        const double p = promise_of(f, v);
        if (!(p > 0) || (count == CANDIDATES && p <= promise[CANDIDATES - 1])) continue;
        int at = count < CANDIDATES ? count++ : CANDIDATES - 1;
        for (; at > 0 && p > promise[at - 1]; at--) {
            promise[at] = promise[at - 1];
            found[at] = found[at - 1];
        }
        promise[at] = p;
        found[at] = v;
    }
    return count;
}

/* Does the second run that needs v have to compute it again, too? Nothing else uses v so late. */
static bool needs_copy(const fitter *f, int v)
{
    return can_drop(f->d.l, v) && f->d.after[v] == KEPT && f->next[v] == INT_MAX &&
           !is_unique(&f->d.l->jobs[f->d.l->job_of[v]]);
}

/* Drops v, and what its second run needs and nothing else keeps. Returns how many values: f->dropped[]. */
static int drop(fitter *f, int v)
{
    int count = 0;
    f->dropped[count++] = v;
    f->d.after[v] = f->before[v];
    for (int i = 0; i < count; i++) {
        const job *x = &f->d.l->jobs[f->d.l->job_of[f->dropped[i]]];
        for (int k = 0; k < x->ins; k++) {
            const int u = base_of(f->d.l, x, k);
            if (!needs_copy(f, u)) continue;
            f->dropped[count++] = u;
            f->d.after[u] = f->before[u];
        }
    }
    return count;
}

/* Drops the best value. false: none saves memory. */
static bool drop_one(fitter *f, const needs *now)
{
    int candidate[CANDIDATES], best = -1;
    double most = 0;
    find_uses(f, now);
    const int count = find_candidates(f, candidate);
    for (int i = 0; i < count; i++) {
        const int dropped = drop(f, candidate[i]);
        const needs then = find_needs(f);
        const double saved = (now->excess - then.excess) / (then.seconds - now->seconds + 1e-9);
        for (int k = 0; k < dropped; k++) f->d.after[f->dropped[k]] = KEPT;
        if (saved <= most) continue;
        most = saved;
        best = candidate[i];
    }
    if (best >= 0) (void)drop(f, best);
    return best >= 0;
}

static void measure_values(const fitter *f)
{
    for (int v = 0; v < f->values; v++) {
        f->bytes[v] = temporary_bytes(f->d.l, v);
        f->bytes[v + f->values] = value_bytes(f->d.l->g, v);
    }
}

static void time_jobs(const fitter *f)
{
    step s;
    for (int j = 0; j < f->d.l->count; j++) {
        f->seconds[j] = 0;
        if (f->d.l->jobs[j].kernel == JOB_JOIN) continue;
        step_make(f->d.l, &f->d.l->jobs[j], NULL, &s);
        f->seconds[j] = f->d.l->machine->cost(&s);
    }
}

/* Returns the most bytes that are left. */
static size_t drop_values(fitter *f)
{
    for (int v = 0; v < f->values; v++) f->d.after[v] = KEPT;
    measure_values(f);
    time_jobs(f);
    needs n = find_needs(f);
    while (n.most > f->limit && drop_one(f, &n)) n = find_needs(f);
    (void)find_needs(f);
    return n.most;
}

static bool fit_once(lowering *l, size_t limit, size_t *most)
{
    const size_t jobs = (size_t)l->count, values = (size_t)l->g->count;
    int *all = malloc((6 * values + 3 * jobs) * sizeof *all);
    fitter f = { .d = { .l = l, .after = all },
                 .limit = limit,
                 .values = l->g->count,
                 .bytes = malloc(2 * values * sizeof *f.bytes),
                 .seconds = malloc(jobs * sizeof *f.seconds) };
    bool ok = all && f.bytes && f.seconds;
    if (ok) {
        f.before = all + values;
        f.next = all + 2 * values;
        f.last = all + 3 * values;
        f.dropped = all + 5 * values;
        f.d.again_before = all + 6 * values;
        f.run = f.d.again_before + jobs;
        *most = drop_values(&f);
        ok = run_again(&f.d);
    }
    free(all);
    free(f.bytes);
    free(f.seconds);
    return ok;
}

bool jobs_fit(lowering *l, size_t limit)
{
    size_t before = most_temporary_bytes(l), most = before;
    while (most > limit && l->count <= JOBS_MAX) {
        if (!fit_once(l, limit, &most)) return false;
        if (most >= before) break;
        before = most;
    }
    return true;
}
