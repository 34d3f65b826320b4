/* recompute.h - values that are computed a second time instead of being kept in temporaries. A value that is
 * dropped has late uses, which read a second copy. The job that computes the copy runs right before the first
 * of them; its own operands may be copies, too. */
#ifndef RECOMPUTE_H
#define RECOMPUTE_H

#include "lower.h"

#define KEPT (-1) /* the value is not dropped */

typedef struct dropping {
    lowering *l;
    /* Of each value: jobs after this one read the recomputed copy; KEPT: the value is not recomputed. If late
     * is not NULL, it says which operands are read from copies, and this is 0 if the value is recomputed. */
    int *after;
    uint32_t *late;    /* of each job, with checkpoints: bit k: it reads the copy of operand k; else NULL */
    int *again_before; /* of each job: it runs a second time right before this job; INT_MAX: it does not */
} dropping;

static inline int base_of(const lowering *l, const job *j, int k) { return value_base(l->g, j->in[k]); }

/* Can the value be computed a second time? A job that writes a piece of a join cannot run again, because
 * other jobs write the same memory. */
bool can_drop(const lowering *l, int v);

/* Does job j read the copy of operand k? */
static inline bool reads_late(const dropping *d, int j, int k)
{
    if (d->late) return d->late[j] >> k & 1;
    const int after = d->after[base_of(d->l, &d->l->jobs[j], k)];
    return after != KEPT && j > after;
}

/* Does a second run, right before job `at`, read the copy of v? */
static inline bool second_reads_copy(const dropping *d, int v, int at)
{
    return d->after[v] != KEPT && (d->late || at > d->after[v]);
}

/* Finds which jobs run a second time, and when: sets again_before. */
void find_second_runs(dropping *d);

/* Changes the jobs accordingly. false: no host memory. */
bool run_again(dropping *d);

#endif
