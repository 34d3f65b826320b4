/* lower.c - the jobs of a plan: each pass, and each value of another operator, operands first. */
#include "lower.h"
#include "dtype.h"
#include "einsum.h"
#include "layer_norm.h"
#include "status.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

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
    for (int k = 0; k < j->outs && j->out[k] >= 0; k++) l->job_of[j->out[k]] = l->count;
    l->count++;
    return true;
}

const char *kernel_name(int kernel, enum epilogue epilogue)
{
    if (epilogue) return epilogue_infos[epilogue].name;
    static const char *const direct[] = {
        "random",
        "layer_norm",
        "batched matmul",
#define DUET_FACTOR2(name, ...) #name,
#define DUET_FACTOR3(name, ...) #name,
#include <duet/factor.def>
    };
    if (kernel < OPS) return op_infos[kernel].name;
    if (kernel >= KERNEL_RANDOM) return direct[kernel - KERNEL_RANDOM];
    return kernel == KERNEL_PROGRAM ? "program" : fused_names[kernel - KERNEL_PROGRAM - 1];
}

static const char *why_not(const lowering *l, const job *j)
{
    step s;
    step_make(l, j, NULL, &s);
    return l->machine->refuses(&s);
}

static void note_refusal(lowering *l, const job *j, const char *why)
{
    char text[SHAPE_TEXT];
    const layout out = j->out[0] >= 0 ? value_layout(l->g, j->out[0]) : l->dest[copied_dest(j->out[0])].to;
    if (strstr(l->refused, why)) return;
    note(l, "%s%s refuses %s to %s: %s", *l->refused ? "; " : "", l->machine->name,
         kernel_name(j->kernel, j->epilogue), shape_text(text, out.type, out.rank, out.size), why);
}

/* A job that nothing can replace: a refusal makes the plan impossible. */
static void insist(lowering *l, const job *j)
{
    const char *why = why_not(l, j);
    if (why) note_refusal(l, j, why), l->impossible = true;
}

/* ---- passes ---- */

static bool try_row(lowering *l, int v, bool whole, job *j)
{
    match m;
    if (l->fusion == FUSION_NONE || !match_row(l, v, whole, &m)) return false;
    *j = (job){ .kernel = KERNEL_PROGRAM + 1 + m.row, .outs = 1, .out = { v }, .ins = m.ins, .nums = m.nums };
    for (int k = 0; k < m.ins; k++)
        j->in[k] = m.in[k], j->bias[k] = value_at(l->g, m.in[k])->rank != value_at(l->g, v)->rank;
    for (int k = 0; k < m.nums; k++) j->num[k] = m.num[k];
    const char *why = why_not(l, j);
    if (why) note_refusal(l, j, why);
    return !why;
}

static void one_by_one(lowering *l, int v, job *j)
{
    if (!try_row(l, v, false, j) && program_build(l, v, true, j)) insist(l, j);
}

static bool try_machine(lowering *l, int leader, job *j)
{
    if (!program_build(l, leader, false, j)) return false;
    const char *why = why_not(l, j);
    if (why) note_refusal(l, j, why), free(j->program), j->program = NULL;
    return !why;
}

/* The pass of v as one step; as more passes, of which v's is one, where no machine runs it. */
static void whole_pass(lowering *l, int v, job *j)
{
    for (int leader = l->pass[v]; !l->failed; leader = l->pass[v]) {
        if (try_row(l, leader, true, j) || try_machine(l, leader, j)) return;
        if (!l->failed && !pass_refine(l, leader)) {
            one_by_one(l, v, j);
            return;
        }
    }
}

/* ---- operators with a definition of their own ---- */

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

static bool is_batched(const graph *g, const value *u)
{
    return u->op == OP_matmul && (value_at(g, u->arg[0])->rank > 2 || value_at(g, u->arg[1])->rank > 2);
}

static void def_job(lowering *l, int v, job *j)
{
    const value u = *value_at(l->g, v);
    *j = (job){ .kernel = u.op, .outs = 1, .out = { v }, .ins = u.args };
    for (int k = 0; k < u.args; k++) j->in[k] = u.arg[k];
    j->attr = u.attr;
    if (u.op == OP_matmul) product_numbers(l, &u, j);
    if (is_batched(l->g, &u) || u.op == OP_einsum) j->kernel = KERNEL_BATCHED;
    if (u.op == OP_einsum && einsum_right(&u.attr.einsum) == EINSUM_A)
        j->in[0] = u.arg[1], j->in[1] = u.arg[0];
    insist(l, j);
}

/* ---- operators with what follows them ---- */

static bool try_epilogue(lowering *l, int v, enum epilogue row, job *j)
{
    match m;
    if (!match_epilogue(l, v, row, &m)) return false;
    const value u = *value_at(l->g, m.vendor);
    *j = (job){ .kernel = u.op,
                .epilogue = row,
                .outs = 1,
                .out = { v },
                .ins = 3,
                .in = { m.in[0], m.in[2], m.in[1] } };
    j->attr = u.attr;
    if (m.pool >= 0) j->attr.conv.pool = value_at(l->g, m.pool)->attr.pool;
    if (u.op == OP_matmul) product_numbers(l, &u, j);
    const char *why = why_not(l, j);
    if (why) note_refusal(l, j, why);
    return !why;
}

static bool finish_one(lowering *l, int v, job *j)
{
    for (int row = 1; row < FINISHES && l->fusion != FUSION_NONE; row++)
        if (try_epilogue(l, v, (enum epilogue)row, j)) return true;
    return false;
}

/* ---- rows ---- */

static int32_t gain_or_bias(const lowering *l, int v, job *j)
{
    if (v < 0) return NORM_ABSENT;
    const bool number = value_at(l->g, v)->op == OP_NUMBER;
    if (number) j->num[j->nums++] = value_at(l->g, v)->number;
    else j->in[j->ins++] = v;
    return number ? NORM_NUMBER : NORM_OPERAND;
}

static bool try_rows(lowering *l, int v, job *j)
{
    match m;
    if (l->fusion == FUSION_NONE || !match_rows(l, v, &m)) return false;
    *j = (job){ .kernel = KERNEL_LAYER_NORM,
                .outs = 1,
                .out = { v },
                .ins = 1,
                .in = { m.in[0] },
                .nums = 1,
                .num = { m.num[0] } };
    for (int k = 0; k < NORM_SOURCES; k++) j->attr.layer_norm.source[k] = gain_or_bias(l, m.in[1 + k], j);
    j->attr.layer_norm.axes = __builtin_popcount(m.axes);
    const char *why = why_not(l, j);
    if (why) note_refusal(l, j, why);
    return !why;
}

/* ---- in order ---- */

/* Halves are written where they belong: a join is there when both are. */
static void join_job(lowering *l, int v, job *j)
{
    const value *u = value_at(l->g, v);
    *j = (job){ .kernel = JOB_JOIN, .outs = 1, .out = { v }, .ins = 2, .in = { u->arg[0], u->arg[1] } };
}

static void choose(lowering *l, int v, job *j)
{
    if (value_is_join(l->g, v)) {
        join_job(l, v, j);
        return;
    }
    if (finish_one(l, v, j) || try_rows(l, v, j)) return;
    if (!in_program(l->g, v)) def_job(l, v, j);
    else if (l->fusion == FUSION_MACHINE) whole_pass(l, v, j);
    else one_by_one(l, v, j);
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
    while (!l->failed && (v >= 0 || count > 0)) {
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
    for (int v = 0; v < l->g->count; v++) {
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

#define TABLES 9 /* arrays with a number for each value */

static bool reserve(lowering *l)
{
    const size_t n = (size_t)l->g->count;
    int **table[TABLES] = { &l->job_of,  &l->dest_of, &l->pass,  &l->first, &l->next,
                            &l->members, &l->inner,   &l->stack, &l->need };
    int *room = calloc(TABLES * n, sizeof *room);
    for (int k = 0; k < TABLES && room; k++) *table[k] = room + (size_t)k * n;
    if (room) memset(l->job_of, -1, 2 * n * sizeof *room); /* and dest_of */
    for (int i = 0; i < l->g->roots && room; i++) {
        const int v = l->g->root[i];
        if (v < 0) continue;
        l->dest_of[v] = i;
        for (int k = 0; k < 2 && value_is_join(l->g, v); k++) l->dest_of[value_at(l->g, v)->arg[k]] = i;
    }
    return room;
}

duet_status lower(lowering *l)
{
    l->failed = !reserve(l);
    if (!l->failed) find_needs(l), passes_assign(l);
    for (int i = 0; i < l->g->roots && !l->failed; i++)
        if (l->g->root[i] >= 0 && l->job_of[l->g->root[i]] < 0) materialise(l, l->g->root[i]);
    return l->failed ? fail(DUET_NO_MEMORY, "no memory to plan a formula of %d values", l->g->count)
                     : DUET_OK;
}

duet_status lower_copy(lowering *l, int dest)
{
    job j;
    if (program_copy(l, dest, &j)) {
        insist(l, &j);
        if (!push(l, &j)) free(j.program);
    }
    return l->failed ? fail(DUET_NO_MEMORY, "no memory to plan a formula of %d values", l->g->count)
                     : DUET_OK;
}

void lower_free(lowering *l)
{
    for (int i = 0; i < l->count; i++) free(l->jobs[i].program);
    free(l->jobs), free(l->job_of);
}
