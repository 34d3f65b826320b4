/* overlap.c - orders jobs so that others run while ranks exchange elements. A collective job comes as soon as
 * its operand is there. What needs its result comes when nothing else is left to do.
 *
 * Results of collective jobs take memory until they are used. If they are large, only the results that the
 * next job and the one after it need are exchanged early.
 *
 * Updates of destinations then follow the last collective job, too. So they write to the destinations, and
 * not to temporaries that are copied when nothing can fail any more. */
#include "job_memory.h"
#include <limits.h>
#include <stdlib.h>

#define OVERLAPPED_MAX 1024 /* more jobs keep their order, because the search takes quadratic time */

#define AHEAD_BYTES ((size_t)256 << 20) /* results of fewer bytes in all may be exchanged early */

typedef struct overlapper {
    const lowering *l;
    int *order, count;           /* the new order */
    bool *is_ordered, *may_fail; /* of each job */
    int *after, *before; /* of each job: the last collective job that it needs, and the first that needs it */
    int *reader;         /* of each job: the first job that reads its result, or -1 */
    int arrived;         /* results of collective jobs up to this one have arrived */
} overlapper;

static bool is_collective(const job *x) { return x->kernel != JOB_JOIN && kernel_is_collective(x->kernel); }

/* The job that computes operand k of job j, or -1. */
static int job_of_operand(const lowering *l, int j, int k)
{
    return l->job_of[value_base(l->g, l->jobs[j].in[k])];
}

/* Job j may read the result of a collective job. A collective job does not read its second operand, which
 * only determines the job that comes before it. */
static void note_reader(const overlapper *o, int j, int k)
{
    const int from = job_of_operand(o->l, j, k);
    const bool reads = from >= 0 && (k == 0 || !is_collective(&o->l->jobs[j]));
    if (reads && o->reader[from] < 0) o->reader[from] = j;
}

/* Collective jobs are numbered from 1 on. */
static void find_dependences(const overlapper *o)
{
    const lowering *l = o->l;
    int n = 0;
    for (int j = 0; j < l->count; j++) o->reader[j] = -1;
    for (int j = 0; j < l->count; j++) {
        for (int k = 0; k < l->jobs[j].ins; k++) {
            const int from = job_of_operand(l, j, k);
            if (from >= 0 && o->after[from] > o->after[j]) o->after[j] = o->after[from];
            note_reader(o, j, k);
        }
        o->before[j] = INT_MAX;
        if (is_collective(&l->jobs[j])) o->after[j] = o->before[j] = ++n;
    }
    for (int j = l->count; j-- > 0;)
        for (int k = 0; k < l->jobs[j].ins; k++) {
            const int from = job_of_operand(l, j, k);
            if (from >= 0 && o->before[j] < o->before[from]) o->before[from] = o->before[j];
        }
}

static bool is_ready(const overlapper *o, int j)
{
    for (int k = 0; k < o->l->jobs[j].ins; k++) {
        const int from = job_of_operand(o->l, j, k);
        if (from >= 0 && !o->is_ordered[from]) return false;
    }
    return true;
}

static int waits_for(const overlapper *o, int j) { return o->after[j] > o->arrived ? o->after[j] : 0; }

/* Is job j better than `best`, which comes first in the old order? It waits less, or is needed sooner. */
static bool is_better(const overlapper *o, int j, int best)
{
    const int waits = waits_for(o, j), least = waits_for(o, best);
    return waits < least || (waits == least && o->before[j] < o->before[best]);
}

/* The bytes that the result of collective job c takes until it is read, less those of an operand that is not
 * needed any more. Sums, such as those of gradients, only replace their operands. */
static size_t bytes_taken(const overlapper *o, int c)
{
    const lowering *l = o->l;
    const size_t out = temporary_bytes(l, l->jobs[c].out[0]),
                 in = temporary_bytes(l, value_base(l->g, l->jobs[c].in[0]));
    return o->reader[c] >= 0 && out > in ? out - in : 0;
}

/* May collective job c come before job `next`, which is ready? */
static bool may_come_early(const overlapper *o, int c, int next)
{
    const lowering *l = o->l;
    const int needed = o->after[next] > o->arrived ? o->after[next] : o->arrived;
    const size_t own = bytes_taken(o, c);
    size_t bytes = own;
    bool for_others = false;
    for (int j = 0; j < l->count; j++) {
        if (!is_collective(&l->jobs[j]) || !o->is_ordered[j] || o->after[j] <= needed) continue;
        const size_t taken = bytes_taken(o, j);
        bytes += taken;
        for_others |= taken && o->reader[j] != o->reader[c];
    }
    return !own || !for_others || bytes <= AHEAD_BYTES;
}

/* The next job: a collective one, if it is ready. Jobs that may fail keep their order. */
static int next_job(const overlapper *o, int first)
{
    int best = -1, exchange = -1;
    bool may_fail = false;
    for (int j = first; j < o->l->count; j++) {
        if (o->is_ordered[j]) continue;
        const bool overtakes = o->may_fail[j] && may_fail;
        may_fail |= o->may_fail[j];
        if (overtakes || !is_ready(o, j)) continue;
        if (is_collective(&o->l->jobs[j])) exchange = j;
        else if (best < 0 || is_better(o, j, best)) best = j;
    }
    return best < 0 || (exchange >= 0 && may_come_early(o, exchange, best)) ? exchange : best;
}

static void order_jobs(overlapper *o)
{
    const lowering *l = o->l;
    for (int j = 0; j < l->count; j++) o->may_fail[j] = job_may_fail(l, &l->jobs[j]);
    for (int first = 0; o->count < l->count; first += o->is_ordered[first]) {
        if (o->is_ordered[first]) continue;
        const int j = next_job(o, first);
        if (!is_collective(&l->jobs[j]) && o->after[j] > o->arrived) o->arrived = o->after[j];
        o->is_ordered[j] = true;
        o->order[o->count++] = j;
    }
}

static bool has_collective(const lowering *l)
{
    for (int j = 0; j < l->count; j++)
        if (is_collective(&l->jobs[j])) return true;
    return false;
}

bool jobs_overlap(lowering *l)
{
    const size_t jobs = (size_t)l->count;
    if (!has_collective(l) || l->is_limited || l->g->has_checkpoints || l->count > OVERLAPPED_MAX)
        return true;
    int *numbers = calloc(4 * jobs, sizeof *numbers);
    bool *flags = calloc(2 * jobs, sizeof *flags);
    overlapper o = { .l = l, .order = numbers, .is_ordered = flags };
    bool ok = numbers && flags;
    if (ok) {
        o.after = numbers + jobs;
        o.before = numbers + 2 * jobs;
        o.reader = numbers + 3 * jobs;
        o.may_fail = flags + jobs;
        find_dependences(&o);
        order_jobs(&o);
        job *ordered = jobs_in_order(l, o.order);
        if (ordered) jobs_replace(l, ordered);
        ok = ordered;
    }
    free(numbers);
    free(flags);
    return ok;
}
