/* job_memory.c - estimates how many bytes of temporaries live at once. */
#include "job_memory.h"
#include "dtype.h"
#include <stdlib.h>

size_t value_bytes(const graph *g, int v)
{
    layout at;
    layout_dense(&at, (duet_dtype)value_at(g, v)->mem, value_at(g, v)->rank, value_at(g, v)->size);
    return (size_t)layout_count(&at) * dtypes[at.type].bytes;
}

size_t temporary_bytes(const lowering *l, int v)
{
    const bool is_own =
        l->job_of[v] >= 0 && (l->dest_of[v] < 0 || lives_to_end(l, v)) && !value_is_piece(l->g, v);
    return is_own ? value_bytes(l->g, v) : 0;
}

bool job_may_fail(const lowering *l, const job *j)
{
    step s;
    if (j->kernel >= 0 && kernel_is_collective(j->kernel)) return true;
    if (j->kernel == JOB_JOIN || (j->kernel == KERNEL_PROGRAM && !job_reduces(j))) return false;
    step_make(l, j, NULL, &s);
    return !l->machine->is_sure(&s) || (!lowering_gives_scratch(l) && step_scratch(l->machine, &s) > 0);
}

int last_fallible_job(const lowering *l)
{
    int j = l->count - 1;
    while (j >= 0 && !job_may_fail(l, &l->jobs[j])) j--;
    return j;
}

bool job_repeats(const lowering *l, const job *j, int k)
{
    for (int i = 0; i < k; i++)
        if (value_base(l->g, j->in[i]) == value_base(l->g, j->in[k])) return true;
    return false;
}

static size_t most_bytes(const lowering *l, const int *last)
{
    size_t now = 0, most = 0;
    const int fallible = last_fallible_job(l);
    for (int j = 0; j < l->count; j++) {
        const job *x = &l->jobs[j];
        for (int k = 0; k < x->outs; k++) {
            const bool copied = !l->copied && l->dest_of[x->out[k]] >= 0 && j < fallible;
            now += copied ? value_bytes(l->g, x->out[k]) : temporary_bytes(l, x->out[k]);
        }
        if (now > most) most = now;
        for (int k = 0; k < x->ins; k++) {
            const int v = value_base(l->g, x->in[k]);
            if (!job_repeats(l, x, k) && last[v] == j && !lives_to_end(l, v)) now -= temporary_bytes(l, v);
        }
        for (int k = 0; k < x->outs; k++)
            if (last[x->out[k]] < 0 && !lives_to_end(l, x->out[k])) now -= temporary_bytes(l, x->out[k]);
    }
    return most;
}

size_t most_temporary_bytes(const lowering *l)
{
    int *last = malloc((size_t)l->g->count * sizeof *last);
    if (!last) return SIZE_MAX;
    for (int v = 0; v < l->g->count; v++) last[v] = -1;
    for (int j = 0; j < l->count; j++)
        for (int k = 0; k < l->jobs[j].ins; k++) last[value_base(l->g, l->jobs[j].in[k])] = j;
    const size_t most = most_bytes(l, last);
    free(last);
    return most;
}

void number_jobs(lowering *l)
{
    for (int j = 0; j < l->count; j++)
        for (int k = 0; k < l->jobs[j].outs; k++)
            if (l->jobs[j].out[k] >= 0) l->job_of[l->jobs[j].out[k]] = j;
}

job *jobs_in_order(const lowering *l, const int *order)
{
    job *jobs = malloc((size_t)l->count * sizeof *jobs);
    for (int i = 0; jobs && i < l->count; i++) jobs[i] = l->jobs[order[i]];
    return jobs;
}

void jobs_replace(lowering *l, job *jobs)
{
    free(l->jobs);
    l->jobs = jobs;
    l->capacity = l->count;
    number_jobs(l);
}
