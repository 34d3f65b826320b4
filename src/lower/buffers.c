/* buffers.c - chooses the memory that each job writes: a destination where possible, otherwise a
 * temporary, which later jobs reuse as soon as its value is dead. If there is only one statement,
 * its destination can hold temporaries before the result. */
#include "dtype.h"
#include "job_memory.h"
#include "lower.h"
#include "matrix.h"
#include "min_max.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct assigner {
    const lowering *l;
    memory *m;
    /* the last job that reads each value; one past the last job for a value that is copied to a
     * destination */
    int *last;
    /* the first job that may write each block anew; the first blocks are the destinations */
    int *free_from;
    /* the last job that may fail without a device error, or -1: it may run out of memory, or find
     * an index out of bounds (machine.is_sure). Element-wise jobs allocate nothing */
    int last_fallible;
    int dests, blocks;
} assigner;

static void find_last_reads(assigner *a)
{
    for (int j = 0; j < a->l->count; j++)
        for (int k = 0; k < a->l->jobs[j].ins; k++) a->last[value_base(a->l->g, a->l->jobs[j].in[k])] = j;
}

/* Does the job read elements that writing this destination would change? */
static bool reads_destination(const assigner *a, const job *j, int dest)
{
    for (int k = 0; k < j->ins; k++) {
        const value *u = value_at(a->l->g, value_base(a->l->g, j->in[k]));
        if (u->op == OP_LEAF && a->l->overlap[u->leaf * a->dests + dest] != APART) return true;
    }
    return false;
}

static int last_hazard(const assigner *a, int dest)
{
    int last = a->l->count - 1;
    while (last >= 0 && !reads_destination(a, &a->l->jobs[last], dest)) last--;
    return last;
}

/* A job may read a leaf that is the destination itself, if it reads each element before it writes
 * it. */
static bool writes_safely(const assigner *a, const job *j, int dest)
{
    if (!reads_destination(a, j, dest)) return true;
    if (job_reduces(j)) return false;
    for (int k = 0; k < j->ins; k++) {
        const value *u = value_at(a->l->g, value_base(a->l->g, j->in[k]));
        if (u->op != OP_LEAF || a->l->overlap[u->leaf * a->dests + dest] == APART) continue;
        if (overwrites_operand(a->l, dest, j->in[k], j->bias[k]) ||
            !(j->kernel == KERNEL_PROGRAM || job_in_place(a->l, j, k)))
            return false;
    }
    return true;
}

/* Can v, the root of this destination or a piece of it, be written straight into the destination? */
static bool can_write_to(const assigner *a, int dest, int v)
{
    const int at = a->l->job_of[v];
    return last_hazard(a, dest) <= at && writes_safely(a, &a->l->jobs[at], dest);
}

/* Does a job read v, other than the job of the join that v is a piece of? */
static bool is_read(const assigner *a, int v)
{
    for (int j = 0; j < a->l->count; j++)
        for (int k = 0; k < a->l->jobs[j].ins && a->l->jobs[j].kernel != JOB_JOIN; k++)
            if (value_base(a->l->g, a->l->jobs[j].in[k]) == v) return true;
    return false;
}

/* Can no job after j fail? If one could, a destination that job j writes would lose its old elements
 * when the statement fails. A failed job has written nothing. */
static bool no_failure_after(const assigner *a, int j) { return a->last_fallible <= j; }

/* The same for a join, whose pieces are written by one job or several. */
static bool is_direct_join(const assigner *a, int dest, const value *joined)
{
    bool strided = a->last[a->l->g->root[dest]] < 0, one_job = true, can = true;
    int earliest = INT_MAX;
    for (int k = 0; k < joined->args; k++) {
        const int piece = joined->arg[k], at = a->l->job_of[piece];
        strided &= !is_read(a, piece);
        one_job &= at == a->l->job_of[joined->arg[0]];
        earliest = (int)smaller(earliest, at);
        can &= can_write_to(a, dest, piece);
    }
    return can && (strided || layout_is_dense(&a->l->dest[dest].to)) &&
           ((one_job && a->dests == 1) || no_failure_after(a, earliest));
}

/* Can the complete root be written straight into the destination? Other jobs read only values
 * without gaps. With one destination, its root is computed last. */
static bool is_direct(const assigner *a, int dest)
{
    const int v = a->l->g->root[dest];
    if (value_is_join(a->l->g, v)) return is_direct_join(a, dest, value_at(a->l->g, v));
    const bool strided = a->l->jobs[a->l->job_of[v]].kernel == KERNEL_PROGRAM && a->last[v] < 0;
    return (strided || layout_is_dense(&a->l->dest[dest].to)) && can_write_to(a, dest, v) &&
           no_failure_after(a, a->l->job_of[v]);
}

/* ---- blocks: the destinations, then the temporaries ---- */

static size_t block_bytes(const assigner *a, int b)
{
    if (b >= a->dests) return a->m->temp[b - a->dests];
    const layout *to = &a->l->dest[b].to;
    if (layout_is_dense(to)) return (size_t)layout_count(to) * dtypes[to->type].bytes;
    return 0;
}

static int slot_of_block(const assigner *a, int b) { return b < a->dests ? b : a->l->g->n_leaves + b; }
static int block_of_slot(const assigner *a, int s) { return s < a->dests ? s : s - a->l->g->n_leaves; }

static bool reads_twice(const assigner *a, const job *x, int v)
{
    int times = 0;
    for (int k = 0; k < x->ins; k++) times += value_base(a->l->g, x->in[k]) == v;
    return times > 1;
}

/* May job x write over its operand k while reading it? */
static bool can_overwrite(const assigner *a, const job *x, int k)
{
    int v = x->in[k];
    if (value_is_piece(a->l->g, v)) return false;
    return value_base(a->l->g, v) == v && job_in_place(a->l, x, k) && !reads_twice(a, x, v);
}

/* May the value of job j be in the destination's memory until its last use? If the last job reads
 * it, that job must be able to work in place. */
static bool lives_in_destination(const assigner *a, int j)
{
    const bool copy = !a->m->direct[0];
    if (a->dests > 1) return false;
    if (value_is_join(a->l->g, a->l->g->root[0]) && !copy)
        return false; /* its pieces are written one after the other */
    int v = a->l->jobs[j].out[0], end = copy ? a->l->count : a->l->count - 1;
    if (dtypes[value_at(a->l->g, v)->mem].bytes > dtypes[a->l->dest[0].to.type].bytes)
        return false; /* the destination may be aligned to less */
    if (a->l->jobs[j].outs > 1 || value_bytes(a->l->g, v) > block_bytes(a, 0) || !no_failure_after(a, j))
        return false;
    if (a->last[v] < end || copy) return a->last[v] < end;
    const job *x = &a->l->jobs[end];
    for (int k = 0; k < x->ins; k++)
        if (value_base(a->l->g, x->in[k]) == v && !can_overwrite(a, x, k)) return false;
    return true;
}

/* Steps of a plan for several statements on a GPU may run at the same time (a recording becomes a CUDA
 * graph). A step that reuses memory must wait for the steps that read its former contents, so small values
 * have memory of their own, unless the user or a limit asks for less memory. */
#define SMALL_BYTES ((size_t)256 << 10)
static bool has_own_memory(const assigner *a, size_t bytes)
{
    return bytes <= SMALL_BYTES && a->dests > 1 && a->l->machine->place == DUET_GPU && !a->l->is_limited &&
           !a->l->g->has_checkpoints;
}

static bool is_read_before(const assigner *a, int j, int v)
{
    for (int i = 0; i < j; i++)
        for (int k = 0; k < a->l->jobs[i].ins; k++)
            if (value_base(a->l->g, a->l->jobs[i].in[k]) == v) return true;
    return false;
}

/* The block of an operand that no later job reads and that job j can write over; -1: none. */
static int block_of_dead_operand(const assigner *a, int j)
{
    const job *x = &a->l->jobs[j];
    for (int k = 0; k < x->ins && x->outs == 1; k++) {
        int v = x->in[k];
        if (value_at(a->l->g, v)->op == OP_LEAF || value_base(a->l->g, v) != v || a->last[v] != j ||
            !can_overwrite(a, x, k) ||
            (has_own_memory(a, value_bytes(a->l->g, v)) && is_read_before(a, j, v)))
            continue;
        int b = block_of_slot(a, a->m->slot[v]);
        if (b >= a->dests || lives_in_destination(a, j)) return b;
    }
    return -1;
}

static int smallest_fit(const assigner *a, int j, size_t bytes)
{
    int best = -1;
    if (has_own_memory(a, bytes)) return -1;
    for (int b = a->dests; b < a->blocks; b++)
        if (a->free_from[b] <= j && block_bytes(a, b) >= bytes &&
            (best < 0 || block_bytes(a, b) < block_bytes(a, best)))
            best = b;
    return best;
}

/* Enlarge a free block, or add one. */
static int enlarged_block(assigner *a, int j, size_t bytes)
{
    int best = -1;
    for (int b = a->dests; b < a->blocks && !has_own_memory(a, bytes); b++)
        if (a->free_from[b] <= j && !has_own_memory(a, block_bytes(a, b)) &&
            (best < 0 || block_bytes(a, b) > block_bytes(a, best)))
            best = b;
    if (best < 0) {
        best = a->blocks++;
        a->m->temps++;
    }
    a->m->temp[best - a->dests] = bytes;
    return best;
}

/* Memory for the job alone, while it runs. */
static void assign_scratch(assigner *a, int j)
{
    step s;
    if (!lowering_gives_scratch(a->l) || a->l->jobs[j].kernel == JOB_JOIN) return;
    step_make(a->l, &a->l->jobs[j], NULL, &s);
    const size_t bytes = step_scratch(a->l->machine, &s);
    if (!bytes) return;
    int b = smallest_fit(a, j, bytes);
    if (b < 0) b = enlarged_block(a, j, bytes);
    a->free_from[b] = j + 1;
    a->m->scratch[j] = slot_of_block(a, b) + 1;
}

/* The piece that is computed first gets a block for all. */
static int block_of_join(assigner *a, int j, int joined)
{
    if (a->m->slot[joined] >= 0) return block_of_slot(a, a->m->slot[joined]);
    int b = smallest_fit(a, j, value_bytes(a->l->g, joined));
    if (b < 0) b = enlarged_block(a, j, value_bytes(a->l->g, joined));
    a->m->slot[joined] = slot_of_block(a, b);
    return b;
}

static int choose_block(assigner *a, int j, int v)
{
    int dest = a->l->dest_of[v];
    if (dest >= 0 && a->m->direct[dest]) return dest;
    if (value_at(a->l->g, v)->join) return block_of_join(a, j, value_at(a->l->g, v)->join);
    int b = block_of_dead_operand(a, j);
    if (b < 0 && a->free_from[0] <= j && lives_in_destination(a, j)) b = 0;
    if (b < 0) b = smallest_fit(a, j, value_bytes(a->l->g, v));
    if (b < 0) return enlarged_block(a, j, value_bytes(a->l->g, v));
    return b;
}

static void assign(assigner *a, int j)
{
    for (int k = 0; k < a->l->jobs[j].outs; k++) {
        int v = a->l->jobs[j].out[k], b = choose_block(a, j, v);
        const int until = (int)larger(a->last[v], j) + 1;
        a->m->slot[v] = slot_of_block(a, b);
        if (value_is_piece(a->l->g, v)) a->m->slot[value_at(a->l->g, v)->join] = a->m->slot[v];
        if (!value_is_join(a->l->g, v) || until > a->free_from[b])
            a->free_from[b] = until; /* a piece may be used longer than the join */
    }
}

static void assign_blocks(assigner *a)
{
    const graph *g = a->l->g;
    memset(a->last, -1, (size_t)g->count * sizeof *a->last);
    memset(a->m->slot, -1, (size_t)g->count * sizeof *a->m->slot);
    find_last_reads(a);
    a->last_fallible = last_fallible_job(a->l);
    for (int i = 0; i < a->dests; i++) {
        a->free_from[i] = a->dests > 1 ? INT_MAX : last_hazard(a, i) + 1;
        if (g->root[i] < 0) continue;
        a->m->direct[i] = is_direct(a, i);
        if (!a->m->direct[i]) a->last[g->root[i]] = a->l->count;
    }
    for (int j = 0; j < a->l->count; j++) {
        assign(a, j);
        assign_scratch(a, j);
    }
}

bool memory_assign(const lowering *l, memory *m)
{
    const int dests = l->g->roots;
    size_t n = (size_t)l->g->count, blocks = 1;
    size_t operands = 1;
    for (int j = 0; j < l->count; j++) {
        blocks += (size_t)l->jobs[j].outs + 1;
        operands += (size_t)(l->jobs[j].outs + l->jobs[j].ins);
    }
    operands += STEP_INPUTS + STEP_OUTPUTS * (size_t)dests; /* copies to destinations come later */
    assigner a = { l,     m,    malloc(n * sizeof(int)), calloc(blocks + (size_t)dests, sizeof(int)), -1,
                   dests, dests };
    *m = (memory){ .slot = malloc(n * sizeof(int)),
                   .scratch = calloc((size_t)(l->count + dests) + 1, sizeof(int)),
                   .temp = calloc(blocks, sizeof(size_t)),
                   .derived = malloc(operands * sizeof *m->derived) };
    bool ok = a.last && a.free_from && m->slot && m->scratch && m->temp && m->derived;
    if (ok) assign_blocks(&a);
    free(a.last);
    free(a.free_from);
    if (!ok) memory_free(m);
    return ok;
}

void memory_free(memory *m)
{
    free(m->slot);
    free(m->scratch);
    free(m->temp);
    free(m->derived);
    memset(m, 0, sizeof *m);
}
