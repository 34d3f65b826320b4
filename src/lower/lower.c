/* lower.c - turns the values of a graph into jobs, operands first: one job for each pass, and one
 * for each operator that no program computes. */
#include "lower.h"
#include "dtype.h"
#include "einsum.h"
#include "layer_norm.h"
#include "status.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void append_unsupported(lowering *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void append_unsupported(lowering *l, const char *format, ...)
{
    size_t n = strlen(l->unsupported_text);
    va_list ap;
    va_start(ap, format);
    if (n + 2 < UNSUPPORTED_TEXT) vsnprintf(l->unsupported_text + n, UNSUPPORTED_TEXT - n, format, ap);
    va_end(ap);
}

static bool push(lowering *l, const job *j)
{
    if (l->count == l->capacity) {
        int capacity = l->capacity ? 2 * l->capacity : 8;
        job *more = realloc(l->jobs, (size_t)capacity * sizeof *more);
        if (!more) {
            l->failed = true;
            return false;
        }
        l->jobs = more;
        l->capacity = capacity;
    }
    l->jobs[l->count] = *j;
    for (int k = 0; k < j->outs && j->out[k] >= 0; k++) l->job_of[j->out[k]] = l->count;
    l->count++;
    return true;
}

const char *kernel_name(int kernel, enum epilogue epilogue)
{
    if (epilogue) return epilogue_infos[epilogue].name;
    return kernel_infos[kernel].name;
}

static const char *unsupported_reason_of(const lowering *l, const job *j)
{
    step s;
    step_make(l, j, NULL, &s);
    return l->machine->unsupported_reason(&s);
}

static void report_unsupported(lowering *l, const job *j, const char *why)
{
    char text[SHAPE_TEXT];
    const layout out = j->out[0] >= 0 ? value_layout(l->g, j->out[0]) : l->dest[copied_dest(j->out[0])].to;
    if (strstr(l->unsupported_text, why)) return;
    append_unsupported(l, "%s%s does not support %s with result %s: %s", *l->unsupported_text ? "; " : "",
                       l->machine->name, kernel_name(j->kernel, j->epilogue),
                       shape_text(text, out.type, out.rank, out.size), why);
}

/* No other step can replace this one: if the machine does not support it, the statement fails. */
static void require_support(lowering *l, const job *j)
{
    const char *why = unsupported_reason_of(l, j);
    if (why) {
        report_unsupported(l, j, why);
        l->impossible = true;
    }
}

/* ---- passes ---- */

static void lower_single(lowering *l, int v, job *j)
{
    if (program_build(l, v, true, j)) require_support(l, j);
}

static bool try_machine(lowering *l, int leader, job *j)
{
    if (!program_build(l, leader, false, j)) return false;
    const char *why = unsupported_reason_of(l, j);
    if (why) {
        report_unsupported(l, j, why);
        free(j->program);
        j->program = NULL;
    }
    return !why;
}

/* Lower the pass of v as one step. If no backend runs it, split the pass, and lower the part that
 * contains v. */
static void lower_pass(lowering *l, int v, job *j)
{
    for (int leader = l->pass[v]; !l->failed; leader = l->pass[v]) {
        if (try_machine(l, leader, j)) return;
        if (!l->failed && !pass_refine(l, leader)) {
            lower_single(l, v, j);
            return;
        }
    }
}

/* ---- operators with a kernel of their own ---- */

static int constant_one(lowering *l)
{
    graph *g = l->g;
    bound *more = realloc(g->numbers, (size_t)(g->n_numbers + 1) * sizeof *more);
    if (!more) {
        l->failed = true;
        return 0;
    }
    g->numbers = more;
    g->numbers[g->n_numbers] = (bound){ .node = -1, .constant = 1 };
    return g->n_numbers++;
}

static void matmul_numbers(lowering *l, const value *v, job *j)
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

static void operator_job(lowering *l, int v, job *j)
{
    const value u = *value_at(l->g, v);
    *j = (job){ .kernel = u.op, .outs = 1, .out = { v }, .ins = u.args };
    for (int k = 0; k < u.args; k++) j->in[k] = u.arg[k];
    j->attr = u.attr;
    if (u.op == OP_matmul) matmul_numbers(l, &u, j);
    if (is_batched(l->g, &u) || u.op == OP_einsum) j->kernel = KERNEL_BATCHED;
    if (u.op == OP_einsum && einsum_right(&u.attr.einsum) == EINSUM_A) {
        j->in[0] = u.arg[1];
        j->in[1] = u.arg[0];
    }
    require_support(l, j);
}

/* ---- operators with an epilogue ---- */

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
    if (u.op == OP_matmul) matmul_numbers(l, &u, j);
    const char *why = unsupported_reason_of(l, j);
    if (why) report_unsupported(l, j, why);
    return !why;
}

static bool try_epilogues(lowering *l, int v, job *j)
{
    for (int row = 1; row < FINISHES && l->fusion != FUSION_NONE; row++)
        if (try_epilogue(l, v, (enum epilogue)row, j)) return true;
    return false;
}

/* ---- layer normalisation ---- */

static int32_t gain_or_bias(const lowering *l, int v, job *j)
{
    if (v < 0) return NORM_ABSENT;
    const bool number = value_at(l->g, v)->op == OP_NUMBER;
    if (number) j->num[j->nums++] = value_at(l->g, v)->number;
    else j->in[j->ins++] = v;
    if (number) return NORM_NUMBER;
    return NORM_OPERAND;
}

static bool try_layer_norm(lowering *l, int v, job *j)
{
    match m;
    if (l->fusion == FUSION_NONE || !match_rows(l, v, &m)) return false;
    *j = (job){ .kernel = KERNEL_LAYER_NORM,
                .outs = 1,
                .out = { v },
                .ins = 1,
                .in = { m.in[0] },
                .nums = 1,
                .num = { m.num } };
    for (int k = 0; k < NORM_SOURCES; k++) j->attr.layer_norm.source[k] = gain_or_bias(l, m.in[1 + k], j);
    j->attr.layer_norm.axes = __builtin_popcount(m.axes);
    const char *why = unsupported_reason_of(l, j);
    if (why) report_unsupported(l, j, why);
    return !why;
}

/* ---- scheduling ---- */

/* A join needs no kernel: each piece writes its part of the elements. */
static void join_job(lowering *l, int v, job *j)
{
    const value *u = value_at(l->g, v);
    *j = (job){ .kernel = JOB_JOIN, .outs = 1, .out = { v }, .ins = u->args };
    for (int k = 0; k < u->args; k++) j->in[k] = u->arg[k];
}

static void lower_value(lowering *l, int v, job *j)
{
    if (value_is_join(l->g, v)) {
        join_job(l, v, j);
        return;
    }
    if (try_epilogues(l, v, j) || try_layer_norm(l, v, j)) return;
    if (!in_program(l->g, v)) operator_job(l, v, j);
    else if (l->fusion == FUSION_MACHINE) lower_pass(l, v, j);
    else lower_single(l, v, j);
}

/* The operand that is not computed yet and needs most registers, or -1. Computing it first needs
 * the fewest temporaries. */
static int next_operand(const lowering *l, const job *j)
{
    int next = -1;
    for (int k = 0; k < j->ins; k++) {
        int v = value_base(l->g, j->in[k]);
        if (value_at(l->g, v)->op == OP_LEAF || l->job_of[v] >= 0) continue;
        if (next < 0 || l->registers[v] > l->registers[next]) next = v;
    }
    return next;
}

static bool grow(job **waiting, int *capacity)
{
    *capacity = *capacity ? 2 * *capacity : 16;
    job *more = realloc(*waiting, (size_t)*capacity * sizeof *more);
    if (more) *waiting = more;
    return more;
}

/* Schedule v after all that it needs. An explicit stack holds the waiting jobs: a formula may be
 * deeper than the thread's stack allows. */
static void schedule(lowering *l, int v)
{
    job *waiting = NULL;
    int count = 0, capacity = 0;
    while (!l->failed && (v >= 0 || count > 0)) {
        if (v >= 0) {
            if (count == capacity && !grow(&waiting, &capacity)) l->failed = true;
            else lower_value(l, v, &waiting[count++]);
        } else if (push(l, &waiting[count - 1])) {
            count--;
        }
        v = count && !l->failed ? next_operand(l, &waiting[count - 1]) : -1;
    }
    while (count > 0) free(waiting[--count].program);
    free(waiting);
}

static void count_registers(lowering *l)
{
    for (int v = 0; v < l->g->count; v++) {
        const value *u = value_at(l->g, v);
        int most = 0, equal = 0;
        for (int k = 0; k < u->args; k++) {
            int n = l->registers[u->arg[k]];
            if (n > most) {
                most = n;
                equal = 0;
            }
            equal += n == most && n > 0;
        }
        l->registers[v] = u->args ? most + (equal > 1 || most == 0) : 0;
    }
}

#define DUPLICATIONS 3 /* how often values are duplicated, and passes assigned again */

#define VALUE_ARRAYS 11 /* arrays with an entry for each value */

static void find_dests(lowering *l)
{
    for (int i = 0; i < l->g->roots; i++) {
        const int v = l->g->root[i];
        if (v < 0) continue;
        l->dest_of[v] = i;
        for (int k = 0; value_is_join(l->g, v) && k < value_at(l->g, v)->args; k++)
            l->dest_of[value_at(l->g, v)->arg[k]] = i;
    }
}

/* One allocation holds all arrays, job_of first. `kept` entries of each stay; the others are those of values
 * that no job computes. */
static bool reserve(lowering *l, size_t kept)
{
    const size_t n = (size_t)l->g->count;
    int **array[VALUE_ARRAYS] = { &l->job_of,  &l->dest_of, &l->pass,        &l->first,
                                  &l->next,    &l->members, &l->uses_inside, &l->in_set,
                                  &l->visited, &l->stack,   &l->registers };
    int *entries = calloc(VALUE_ARRAYS * n, sizeof *entries), *before = l->job_of;
    if (!entries) return false;
    for (int k = 0; k < VALUE_ARRAYS; k++) {
        if (kept) memcpy(entries + (size_t)k * n, *array[k], kept * sizeof *entries);
        *array[k] = entries + (size_t)k * n;
    }
    memset(l->job_of + kept, -1, (n - kept) * sizeof *l->job_of);
    memset(l->dest_of + kept, -1, (n - kept) * sizeof *l->dest_of);
    free(before);
    return true;
}

bool lowering_lengthen(lowering *l, int before) { return reserve(l, (size_t)before); }

static duet_status lowering_status(const lowering *l)
{
    if (!l->failed) return DUET_OK;
    return fail(DUET_NO_MEMORY, "no host memory to plan a formula of %d values", l->g->count);
}

static void assign(lowering *l)
{
    l->failed |= !reserve(l, 0);
    if (l->failed) return;
    find_dests(l);
    count_registers(l);
    passes_assign(l);
}

/* Several statements may share values that each pass can compute for itself. */
static void assign_passes(lowering *l)
{
    bool any = l->g->roots > 1 && l->fusion == FUSION_MACHINE;
    assign(l);
    for (int i = 0; i < DUPLICATIONS && any && !l->failed; i++) {
        l->failed |= !duplicate_values(l, &any);
        if (any) assign(l);
    }
}

duet_status lower(lowering *l)
{
    assign_passes(l);
    for (int i = 0; i < l->g->roots && !l->failed; i++)
        if (l->g->root[i] >= 0 && l->job_of[l->g->root[i]] < 0) schedule(l, l->g->root[i]);
    if (!l->failed) l->failed = !jobs_order(l) || !jobs_overlap(l) || !jobs_use_checkpoints(l);
    return lowering_status(l);
}

duet_status lower_copy(lowering *l, int dest)
{
    job j;
    if (program_copy(l, dest, &j)) {
        require_support(l, &j);
        if (!push(l, &j)) free(j.program);
    }
    return lowering_status(l);
}

void lower_free(lowering *l)
{
    for (int i = 0; i < l->count; i++) free(l->jobs[i].program);
    free(l->jobs);
    free(l->job_of);
}
