/* memory.c - where each job writes: the destination's memory first, then temporaries, used again as soon as they may be. */
#include "dtype.h"
#include "lower.h"
#include <stdlib.h>
#include <string.h>

typedef struct assigner {
    const lowering *l;
    const uint8_t *overlap; /* of each leaf with the destination: enum overlap */
    memory *m;
    int *last;      /* the last job that reads a value */
    int *free_from; /* of each block (0: the destination): the first job that may write there anew */
    int blocks;
} assigner;

static size_t bytes_of(const graph *g, int v)
{
    layout at;
    layout_dense(&at, (duet_dtype)value_at(g, v)->type, value_at(g, v)->rank, value_at(g, v)->size);
    return (size_t)layout_count(&at) * dtypes[at.type].bytes;
}

static void find_last_reads(assigner *a)
{
    for (int j = 0; j < a->l->count; j++)
        for (int k = 0; k < a->l->jobs[j].ins; k++) a->last[value_base(a->l->g, a->l->jobs[j].in[k])] = j;
}

static enum overlap overlap_of(const assigner *a, int v)
{
    const value *u = value_at(a->l->g, value_base(a->l->g, v));
    return u->op == OP_LEAF ? (enum overlap)a->overlap[u->leaf] : APART;
}

/* The last job that reads elements which writing the destination would change; -1: none. */
static int last_hazard(const assigner *a)
{
    int last = -1;
    for (int j = 0; j < a->l->count; j++)
        for (int k = 0; k < a->l->jobs[j].ins; k++)
            if (overlap_of(a, a->l->jobs[j].in[k]) != APART) last = j;
    return last;
}

/* A leaf that is the destination itself may be read element by element as it is written. */
static bool same_walk(const assigner *a, const job *j, int k)
{
    shape x = value_shape(a->l->g, j->in[k]), y = value_shape(a->l->g, a->l->g->root);
    if (overlap_of(a, j->in[k]) != SAME || j->bias[k] || value_base(a->l->g, j->in[k]) != j->in[k]) return false;
    return shape_equal(&x, &y) && (is_map_kernel(j->kernel) || job_in_place(a->l, j, k));
}

static bool writes_safely(const assigner *a, const job *j)
{
    for (int k = 0; k < j->ins; k++)
        if (overlap_of(a, j->in[k]) != APART && !same_walk(a, j, k)) return false;
    return true;
}

/* Can the root's job write straight into the destination? */
static bool direct(const assigner *a)
{
    const graph *g = a->l->g;
    shape s = value_shape(g, g->root), to = { .rank = a->l->to.rank };
    memcpy(to.size, a->l->to.size, sizeof to.size);
    if (a->l->job_of[g->root] != a->l->count - 1 || !a->l->count || !shape_equal(&s, &to)) return false;
    const job *j = &a->l->jobs[a->l->count - 1];
    bool strided = is_map_kernel(j->kernel) || op_infos[j->kernel].kind == KIND_FOLD;
    return (strided || layout_is_dense(&a->l->to)) && writes_safely(a, j);
}

/* ---- blocks: 0 is the destination ---- */

static size_t block_bytes(const assigner *a, int b)
{
    if (b > 0) return a->m->temp[b - 1];
    return layout_is_dense(&a->l->to) ? (size_t)layout_count(&a->l->to) * dtypes[a->l->to.type].bytes : 0;
}

static int slot_of_block(const assigner *a, int b) { return b ? a->l->g->n_leaves + b : SLOT_DESTINATION; }
static int block_of_slot(const assigner *a, int s) { return s == SLOT_DESTINATION ? 0 : s - a->l->g->n_leaves; }

static bool reads_twice(const assigner *a, const job *x, int v)
{
    int times = 0;
    for (int k = 0; k < x->ins; k++) times += value_base(a->l->g, x->in[k]) == v;
    return times > 1;
}

/* May job x write over its operand k as it reads it? */
static bool over_operand(const assigner *a, const job *x, int k)
{
    int v = x->in[k];
    return value_base(a->l->g, v) == v && job_in_place(a->l, x, k) && !reads_twice(a, x, v);
}

/* After job j no job may run out of memory, or the destination would be lost to that: element by element none takes any. */
static bool cannot_fail(const assigner *a, int j)
{
    for (int i = j + 1; i < a->l->count; i++)
        if (!is_map_kernel(a->l->jobs[i].kernel)) return false;
    return true;
}

/* May the value of job j live in the destination's memory until its last read? The last job writes there: it may read the value in
 * place alone. */
static bool lives_in_destination(const assigner *a, int j)
{
    int v = a->l->jobs[j].out, end = a->m->copy ? a->l->count : a->l->count - 1;
    if (bytes_of(a->l->g, v) > block_bytes(a, 0) || !cannot_fail(a, j)) return false;
    if (a->last[v] < end || a->m->copy) return a->last[v] < end;
    const job *x = &a->l->jobs[end];
    for (int k = 0; k < x->ins; k++)
        if (value_base(a->l->g, x->in[k]) == v && !over_operand(a, x, k)) return false;
    return true;
}

/* The block of an operand that dies in job j, which may write over it; -1: none. */
static int dying_block(const assigner *a, int j)
{
    const job *x = &a->l->jobs[j];
    for (int k = 0; k < x->ins; k++) {
        int v = x->in[k];
        if (value_at(a->l->g, v)->op == OP_LEAF || value_base(a->l->g, v) != v || a->last[v] != j || !over_operand(a, x, k))
            continue;
        int b = block_of_slot(a, a->m->slot[v]);
        if (b > 0 || lives_in_destination(a, j)) return b;
    }
    return -1;
}

static int smallest_fit(const assigner *a, int j, size_t bytes)
{
    int best = -1;
    for (int b = 1; b < a->blocks; b++)
        if (a->free_from[b] <= j && block_bytes(a, b) >= bytes && (best < 0 || block_bytes(a, b) < block_bytes(a, best)))
            best = b;
    return best;
}

/* A free block made larger, or a new one. */
static int grown_block(assigner *a, int j, size_t bytes)
{
    int best = -1;
    for (int b = 1; b < a->blocks; b++)
        if (a->free_from[b] <= j && (best < 0 || block_bytes(a, b) > block_bytes(a, best))) best = b;
    if (best < 0) best = a->blocks++, a->m->temps++;
    a->m->temp[best - 1] = bytes;
    return best;
}

static int choose_block(assigner *a, int j)
{
    int v = a->l->jobs[j].out;
    if (v == a->l->g->root && !a->m->copy) return 0;
    int b = dying_block(a, j);
    if (b < 0 && a->free_from[0] <= j && lives_in_destination(a, j)) b = 0;
    if (b < 0) b = smallest_fit(a, j, bytes_of(a->l->g, v));
    return b < 0 ? grown_block(a, j, bytes_of(a->l->g, v)) : b;
}

static void assign(assigner *a, int j)
{
    int v = a->l->jobs[j].out, b = choose_block(a, j);
    a->m->slot[v] = slot_of_block(a, b);
    a->free_from[b] = (a->last[v] < 0 ? j : a->last[v]) + 1;
    if (b == 0 && a->m->first_write > j) a->m->first_write = j;
}

bool memory_assign(const lowering *l, const uint8_t *overlap, memory *m)
{
    size_t n = (size_t)l->g->count, jobs = (size_t)l->count + 2;
    assigner a = { l, overlap, m, malloc(n * sizeof(int)), calloc(jobs, sizeof(int)), 1 };
    *m = (memory){ .slot = malloc(n * sizeof(int)), .temp = calloc(jobs, sizeof(size_t)), .first_write = l->count };
    bool ok = a.last && a.free_from && m->slot && m->temp;
    if (ok) {
        memset(a.last, -1, n * sizeof(int)), memset(m->slot, -1, n * sizeof(int));
        find_last_reads(&a);
        m->copy = !direct(&a);
        a.free_from[0] = last_hazard(&a) + 1;
        if (m->copy) a.last[value_base(l->g, l->g->root)] = l->count; /* the copy comes after all jobs */
        for (int j = 0; j < l->count; j++) assign(&a, j);
    }
    free(a.last), free(a.free_from);
    if (!ok) memory_free(m);
    return ok;
}

void memory_free(memory *m)
{
    free(m->slot), free(m->temp);
    memset(m, 0, sizeof *m);
}
