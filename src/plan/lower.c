/* lower.c - the jobs of a plan: each value that must stand in memory, operands first. */
#include "lower.h"
#include "status.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

layout value_layout(const graph *g, int v)
{
    const value *u = value_at(g, v);
    layout l;
    if (u->op == OP_LEAF) return g->leaves[u->leaf].at;
    if (u->op != OP_transpose) return layout_dense(&l, (duet_dtype)u->type, u->rank, u->size), l;
    layout x = value_layout(g, u->arg[0]);
    l = x;
    for (int i = 0; i < x.rank; i++) l.size[i] = x.size[x.rank - 1 - i], l.stride[i] = x.stride[x.rank - 1 - i];
    return l;
}

/* ---- jobs ---- */

static void note(lowering *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(lowering *l, const char *format, ...)
{
    size_t n = strlen(l->refused);
    va_list ap;
    va_start(ap, format);
    if (n + 2 < REFUSALS) vsnprintf(l->refused + n, REFUSALS - n, format, ap);
    va_end(ap);
}

static bool push(lowering *l, const job *j)
{
    if (l->count == l->room) {
        int room = l->room ? 2 * l->room : 8;
        job *more = realloc(l->jobs, (size_t)room * sizeof *more);
        if (!more) return l->failed = true, false;
        l->jobs = more, l->room = room;
    }
    l->jobs[l->count] = *j;
    if (j->out >= 0) l->job_of[j->out] = l->count;
    l->count++;
    return true;
}

const char *kernel_name(int kernel)
{
    if (kernel < OPS) return op_infos[kernel].name;
    return kernel == KERNEL_PROGRAM ? "program" : fused_names[kernel - KERNEL_PROGRAM - 1];
}

layout job_output(const lowering *l, const job *j, bool direct)
{
    layout dense;
    if (j->out == TO_DESTINATION || (direct && j->out == l->g->root)) return l->to;
    const value *v = value_at(l->g, j->out);
    return layout_dense(&dense, (duet_dtype)v->type, v->rank, v->size), dense;
}

static const char *why_not(const lowering *l, const job *j)
{
    step s;
    layout out = job_output(l, j, false);
    step_make(l, j, &out, NULL, &s);
    return l->machine->refuses(&s);
}

static void note_refusal(lowering *l, const job *j, const char *why)
{
    char text[SHAPE_TEXT];
    layout out = job_output(l, j, false);
    if (strstr(l->refused, why)) return;
    note(l, "%s%s refuses %s to %s: %s", *l->refused ? "; " : "", l->machine->name, kernel_name(j->kernel),
         shape_text(text, out.type, out.rank, out.size), why);
}

/* A job that nothing can replace: a refusal makes the plan impossible. */
static void insist(lowering *l, const job *j)
{
    const char *why = why_not(l, j);
    if (why) note_refusal(l, j, why), l->impossible = true;
}

/* ---- element by element ---- */

static bool try_row(lowering *l, int v, bool whole, job *j)
{
    match m;
    if (l->fusion == FUSION_NONE || !match_row(l, v, whole, &m)) return false;
    *j = (job){ .kernel = KERNEL_PROGRAM + 1 + m.row, .out = v, .ins = m.ins, .nums = m.nums };
    for (int k = 0; k < m.ins; k++) j->in[k] = m.in[k], j->bias[k] = value_at(l->g, m.in[k])->rank != value_at(l->g, v)->rank;
    for (int k = 0; k < m.nums; k++) j->num[k] = m.num[k];
    const char *why = why_not(l, j);
    if (why) note_refusal(l, j, why);
    return !why;
}

static void one_by_one(lowering *l, int v, job *j)
{
    if (!try_row(l, v, false, j) && program_build(l, v, true, j)) insist(l, j);
}

/* A region beyond the limits of a program: its middle value becomes a region of its own. */
static bool split(lowering *l, int root)
{
    int middle = -1, met = 0;
    for (int v = 0; v < root && met < l->load[root].values / 2; v++)
        if (value_at(l->g, v)->uses && value_is_map(l->g, v) && l->region[v] == root) middle = v, met++;
    if (middle < 0) return false;
    l->cut[middle] = true;
    regions_assign(l);
    return true;
}

static bool try_machine(lowering *l, int v, job *j)
{
    while (!program_build(l, v, false, j))
        if (l->failed || !split(l, v)) return false;
    const char *why = why_not(l, j);
    if (why) note_refusal(l, j, why), free(j->program);
    return !why;
}

static void region(lowering *l, int v, job *j)
{
    bool whole = l->fusion == FUSION_MACHINE && l->region[v] == v;
    if (whole && (try_row(l, v, true, j) || try_machine(l, v, j))) return;
    if (!l->failed) one_by_one(l, v, j);
}

/* ---- the other operators ---- */

static int constant_one(lowering *l)
{
    graph *g = l->g;
    bound *more = realloc(g->numbers, (size_t)(g->n_numbers + 1) * sizeof *more);
    if (!more) return l->failed = true, 0;
    g->numbers = more, g->numbers[g->n_numbers] = (bound){ .node = -1, .constant = 1 };
    return g->n_numbers++;
}

static void product_numbers(lowering *l, const value *v, job *j)
{
    if (v->alpha >= 0) j->num[j->nums++] = value_at(l->g, v->alpha)->number;
    if (v->beta < 0) return;
    if (v->alpha < 0) j->num[j->nums++] = constant_one(l);
    j->num[j->nums++] = value_at(l->g, v->beta)->number;
}

static void other(lowering *l, int v, job *j)
{
    const value u = *value_at(l->g, v);
    *j = (job){ .kernel = u.op, .out = v, .ins = u.args };
    for (int k = 0; k < u.args; k++) j->in[k] = u.arg[k];
    memcpy(j->attr, u.attr, sizeof u.attr);
    if (u.op == OP_matmul) product_numbers(l, &u, j);
    insist(l, j);
}

/* ---- in order ---- */

static void choose(lowering *l, int v, job *j)
{
    if (value_at(l->g, v)->op == OP_NUMBER) program_load(l, v, v, j);
    else if (value_is_map(l->g, v)) region(l, v, j);
    else other(l, v, j);
}

/* The operand of a job that is still to be computed and needs most; -1: none. */
static int next_operand(const lowering *l, const job *j)
{
    int next = -1;
    for (int k = 0; k < j->ins; k++) {
        int v = value_base(l->g, j->in[k]);
        if (value_at(l->g, v)->op == OP_LEAF || l->job_of[v] >= 0) continue;
        if (next < 0 || l->need[v] > l->need[next]) next = v;
    }
    return next;
}

static bool grow(job **waiting, int *room)
{
    *room = *room ? 2 * *room : 16;
    job *more = realloc(*waiting, (size_t)*room * sizeof *more);
    if (more) *waiting = more;
    return more;
}

/* Jobs wait on a stack of our own until their operands are there: formulas may be deeper than a thread's stack. */
static void materialise(lowering *l, int v)
{
    job *waiting = NULL;
    int count = 0, room = 0;
    for (v = value_base(l->g, v); !l->failed && (v >= 0 || count > 0);) {
        if (v >= 0) {
            if (count == room && !grow(&waiting, &room)) l->failed = true;
            else choose(l, v, &waiting[count++]);
        } else if (push(l, &waiting[count - 1])) {
            count--;
        }
        v = count && !l->failed ? next_operand(l, &waiting[count - 1]) : -1;
    }
    while (count > 0) free(waiting[--count].program);
    free(waiting);
}

static void find_needs(lowering *l)
{
    for (int v = 0; v <= l->g->root; v++) {
        const value *u = value_at(l->g, v);
        int most = 0, equal = 0;
        for (int k = 0; k < u->args; k++) {
            int n = l->need[u->arg[k]];
            if (n > most) most = n, equal = 0;
            equal += n == most && n > 0;
        }
        l->need[v] = u->args ? most + (equal > 1 || most == 0) : 0;
    }
}

static bool reserve(lowering *l)
{
    size_t n = (size_t)l->g->count;
    l->job_of = malloc(n * sizeof *l->job_of), l->region = malloc(n * sizeof *l->region), l->cut = calloc(n, sizeof *l->cut);
    l->load = malloc(n * sizeof *l->load), l->need = malloc(n * sizeof *l->need);
    if (l->job_of) memset(l->job_of, -1, n * sizeof *l->job_of);
    return l->job_of && l->region && l->cut && l->load && l->need;
}

duet_status lower(lowering *l)
{
    l->failed = !reserve(l);
    if (!l->failed) {
        find_needs(l), regions_assign(l);
        if (value_at(l->g, l->g->root)->op != OP_NUMBER) materialise(l, l->g->root);
    }
    return l->failed ? fail(DUET_NO_MEMORY, "no memory to plan a formula of %d values", l->g->count) : DUET_OK;
}

duet_status lower_copy(lowering *l)
{
    job j;
    if (program_load(l, l->g->root, TO_DESTINATION, &j)) {
        insist(l, &j);
        if (!push(l, &j)) free(j.program);
    }
    return l->failed ? fail(DUET_NO_MEMORY, "no memory to plan a formula of %d values", l->g->count) : DUET_OK;
}

void lower_free(lowering *l)
{
    for (int i = 0; i < l->count; i++) free(l->jobs[i].program);
    free(l->jobs), free(l->job_of), free(l->region), free(l->cut), free(l->load), free(l->need);
}
