/* order.c - orders the jobs of several statements so that few temporaries live at once. Lowering orders
 * them statement by statement. A job of a later statement may be the last that reads a temporary: it then
 * runs as soon as its operands are there. */
#include "job_memory.h"
#include <stdlib.h>

#define ORDERED_MAX 4096 /* more jobs keep their order, because the search takes quadratic time */

#define BYTES_GPU ((size_t)256 << 20) /* of temporaries: on a GPU, plans that need less keep their order */

typedef struct orderer {
    const lowering *l;
    int *order, count; /* the new order */
    int *waits;        /* of each job: for how many operands; -1: it was ordered */
    int *reads;        /* of each value: how many jobs still read it */
    int *may_fail;     /* of each job: 1 or 0 */
    int fallible;      /* how many of these were not ordered */
    int *first_user,
        *next_user;    /* lists of users: of a value; of operand k of job j at [j * JOB_INPUTS + k] */
    int *leaf, leaves; /* the values that are leaves and are read by jobs */
} orderer;

#define JOB_INPUTS STEP_INPUTS

static void find_users(orderer *o)
{
    const lowering *l = o->l;
    for (int v = 0; v < l->g->count; v++) o->first_user[v] = -1;
    for (int j = l->count; j-- > 0;)
        for (int k = 0; k < l->jobs[j].ins; k++) {
            const int x = value_base(l->g, l->jobs[j].in[k]), at = j * JOB_INPUTS + k;
            if (job_repeats(l, &l->jobs[j], k)) continue;
            o->reads[x]++;
            o->waits[j] += l->job_of[x] >= 0;
            o->next_user[at] = o->first_user[x];
            o->first_user[x] = at;
        }
    for (int v = 0; v < l->g->count; v++)
        if (value_at(l->g, v)->op == OP_LEAF && o->reads[v]) o->leaf[o->leaves++] = v;
}

static int reads_of(const lowering *l, const job *x, int v)
{
    for (int k = 0; k < x->ins; k++)
        if (value_base(l->g, x->in[k]) == v) return 1;
    return 0;
}

/* Does a job that was not ordered read elements that job j overwrites? Then j has to write to a temporary,
 * if it runs now. */
static bool overwrites_for_others(const orderer *o, int j, int dest)
{
    const graph *g = o->l->g;
    for (int i = 0; i < o->leaves; i++) {
        const int v = o->leaf[i];
        if (!o->reads[v] || o->l->overlap[value_at(g, v)->leaf * g->roots + dest] == APART) continue;
        if (o->reads[v] > reads_of(o->l, &o->l->jobs[j], v)) return true;
    }
    return false;
}

/* The bytes of temporaries that running job j now frees, less those that it takes. */
static int64_t bytes_gained(const orderer *o, int j)
{
    const lowering *l = o->l;
    const job *x = &l->jobs[j];
    int64_t gain = 0;
    for (int k = 0; k < x->ins; k++) {
        const int v = value_base(l->g, x->in[k]);
        if (!job_repeats(l, x, k) && o->reads[v] == 1) gain += (int64_t)temporary_bytes(l, v);
    }
    for (int k = 0; k < x->outs; k++) {
        const int dest = l->dest_of[x->out[k]];
        const bool stays = dest >= 0 && (o->fallible > o->may_fail[j] || overwrites_for_others(o, j, dest));
        gain -= (int64_t)(stays ? value_bytes(l->g, x->out[k]) : temporary_bytes(l, x->out[k]));
    }
    return gain;
}

static void put(orderer *o, int j)
{
    const lowering *l = o->l;
    const job *x = &l->jobs[j];
    o->order[o->count++] = j;
    o->waits[j] = -1;
    o->fallible -= o->may_fail[j];
    for (int k = 0; k < x->ins; k++)
        if (!job_repeats(l, x, k)) o->reads[value_base(l->g, x->in[k])]--;
    for (int k = 0; k < x->outs; k++)
        for (int at = o->first_user[x->out[k]]; at >= 0; at = o->next_user[at]) o->waits[at / JOB_INPUTS]--;
}

/* The ready job that frees the most memory, if it frees at least as much as it takes; otherwise the next job
 * in the old order. Jobs that may fail keep their order, so that the first statement that fails is named. */
static int next_job(const orderer *o, int next)
{
    int best = next;
    int64_t most = -1;
    bool may_fail = false;
    for (int j = next; j < o->l->count; j++) {
        const bool fails = o->waits[j] >= 0 && o->may_fail[j], overtakes = fails && may_fail;
        may_fail |= fails;
        if (o->waits[j] != 0 || overtakes) continue;
        const int64_t gain = bytes_gained(o, j);
        if (gain > most) {
            most = gain;
            best = j;
        }
    }
    return best;
}

static void order_jobs(orderer *o)
{
    find_users(o);
    for (int j = 0; j < o->l->count; j++) o->fallible += o->may_fail[j] = job_may_fail(o->l, &o->l->jobs[j]);
    for (int next = 0; next < o->l->count;) {
        if (o->waits[next] < 0) next++;
        else put(o, next_job(o, next));
    }
}

/* Takes the new order, if the jobs then need less memory. */
static bool take_order(lowering *l, const int *order)
{
    job *ordered = jobs_in_order(l, order), *before = l->jobs;
    const size_t most = most_temporary_bytes(l);
    if (!ordered) return false;
    l->jobs = ordered;
    const bool less = most_temporary_bytes(l) < most;
    l->jobs = before;
    if (less) jobs_replace(l, ordered);
    else free(ordered);
    return true;
}

/* On a GPU, steps run at the same time, and in the order of the statements the chain of gradients comes
 * before what can wait. So jobs are reordered there only if temporaries need at least BYTES_GPU. */
static bool is_worth_while(const lowering *l)
{
    if (l->g->roots < 2 || l->count > ORDERED_MAX) return false;
    const bool counts = l->is_limited || l->g->has_checkpoints || l->machine->place != DUET_GPU;
    return counts || most_temporary_bytes(l) >= BYTES_GPU;
}

bool jobs_order(lowering *l)
{
    const size_t jobs = (size_t)l->count, values = (size_t)l->g->count;
    if (!is_worth_while(l)) return true;
    int *all = calloc(3 * jobs + 3 * values + jobs * JOB_INPUTS, sizeof *all);
    if (!all) return false;
    orderer o = {
        .l = l, .order = all, .waits = all + jobs, .may_fail = all + 2 * jobs, .reads = all + 3 * jobs
    };
    o.first_user = o.reads + values;
    o.next_user = o.first_user + values;
    o.leaf = o.next_user + jobs * JOB_INPUTS;
    order_jobs(&o);
    const bool ok = take_order(l, o.order);
    free(all);
    return ok;
}
