/* job_memory.h - how many bytes of temporaries jobs need, estimated before buffers.c assigns them. */
#ifndef JOB_MEMORY_H
#define JOB_MEMORY_H

#include "lower.h"

/* The bytes of a value. temporary_bytes: 0 if it has no memory of its own: a leaf, a result, a piece of a
 * join. lives_to_end: it is a result that is copied to its destination at the end. */
size_t value_bytes(const graph *g, int v);
size_t temporary_bytes(const lowering *l, int v);
static inline bool lives_to_end(const lowering *l, int v)
{
    return l->copied && l->dest_of[v] >= 0 && l->copied[l->dest_of[v]];
}

/* Do jobs get memory of the plan while they run? With one destination nothing follows the last job, so they
 * take their own. */
static inline bool lowering_gives_scratch(const lowering *l) { return l->g->roots > 1; }

/* May it fail without a device error: is it not sure (machine.is_sure)? A destination that is written before
 * such a job is a temporary, and copied at the end. */
bool job_may_fail(const lowering *l, const job *j);
int last_fallible_job(const lowering *l); /* -1: none may fail */

/* Is operand k in the memory of an earlier operand? */
bool job_repeats(const lowering *l, const job *j, int k);

/* The most bytes of temporaries that live at once. SIZE_MAX: no host memory to find out. */
size_t most_temporary_bytes(const lowering *l);

/* Sets job_of for all results of jobs. */
void number_jobs(lowering *l);

/* A copy of the jobs in another order. NULL: no host memory */
job *jobs_in_order(const lowering *l, const int *order);

/* Frees the jobs; these, of the same number, are those of l. */
void jobs_replace(lowering *l, job *jobs);

#endif
