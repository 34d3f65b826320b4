/* lower.c - the jobs of a plan: each value that must stand in memory, operands first. */
#include "lower.h"
#include "status.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int value_base(const graph *g, int v)
{
    while (value_at(g, v)->op == OP_transpose) v = value_at(g, v)->arg[0];
    return v;
}

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
        if (!more) return free(j->program), l->failed = true, false;
        l->jobs = more, l->room = room;
    }
    l->jobs[l->count] = *j;
    if (j->out >= 0) l->job_of[j->out] = l->count;
    l->count++;
    return true;
}

static const char *kernel_name(int kernel)
{
    if (kernel < OPS) return op_infos[kernel].name;
    return kernel == KERNEL_PROGRAM ? "program" : fused_names[kernel - KERNEL_PROGRAM - 1];
}

static layout output_layout(const lowering *l, const job *j)
{
    layout dense;
    if (j->out == TO_DESTINATION) return l->to;
    const value *v = value_at(l->g, j->out);
    return layout_dense(&dense, (duet_dtype)v->type, v->rank, v->size), dense;
}

static const char *why_not(const lowering *l, const job *j)
{
    step s;
    layout out = output_layout(l, j);
    step_make(l, j, &out, NULL, &s);
    return l->machine->refuses(&s);
}

/* A job that nothing can replace: a refusal makes the plan impossible. */
static void push_or_give_up(lowering *l, job *j)
{
    const char *why = why_not(l, j);
    if (why)
        note(l, "%s%s refuses %s: %s", *l->refused ? "; " : "", l->machine->name, kernel_name(j->kernel), why),
            l->impossible = true;
    push(l, j);
}

static void materialise(lowering *l, int v);

static void materialise_inputs(lowering *l, const job *j)
{
    for (int k = 0; k < j->ins; k++) materialise(l, j->in[k]);
}

/* ---- element by element ---- */

static bool try_row(lowering *l, int v, bool whole)
{
    match m;
    if (l->fusion == FUSION_NONE || !match_row(l, v, whole, &m)) return false;
    job j = { .kernel = KERNEL_PROGRAM + 1 + m.row, .out = v, .ins = m.ins, .nums = m.nums };
    for (int k = 0; k < m.ins; k++) j.in[k] = m.in[k], j.bias[k] = value_at(l->g, m.in[k])->rank != value_at(l->g, v)->rank;
    for (int k = 0; k < m.nums; k++) j.num[k] = m.num[k];
    const char *why = why_not(l, &j);
    if (why) return note(l, "%s%s refuses %s: %s", *l->refused ? "; " : "", l->machine->name, kernel_name(j.kernel), why), false;
    materialise_inputs(l, &j);
    push(l, &j);
    return true;
}

static void one_by_one(lowering *l, int v)
{
    job j;
    if (try_row(l, v, false)) return;
    if (!program_build(l, v, true, &j)) return;
    materialise_inputs(l, &j);
    push_or_give_up(l, &j);
}

static int inner_size(const lowering *l, int root, int v)
{
    const value *u = value_at(l->g, v);
    int n = 1;
    for (int k = 0; k < u->args; k++)
        if (value_is_map(l->g, u->arg[k]) && l->region[u->arg[k]] == root) n += inner_size(l, root, u->arg[k]);
    return n;
}

/* A region beyond the limits of a program: the inner value nearest to half of it becomes a region of its own. */
static bool split(lowering *l, int root)
{
    int half = inner_size(l, root, root) / 2, best = -1, best_off = 0;
    for (int v = 0; v < root; v++) {
        if (!value_at(l->g, v)->uses || !value_is_map(l->g, v) || l->region[v] != root) continue;
        int off = abs(inner_size(l, root, v) - half);
        if (best < 0 || off < best_off) best = v, best_off = off;
    }
    if (best < 0) return false;
    l->cut[best] = true;
    regions_assign(l);
    return true;
}

static bool try_machine(lowering *l, int v)
{
    job j;
    while (!program_build(l, v, false, &j))
        if (l->failed || !split(l, v)) return false;
    const char *why = why_not(l, &j);
    if (why) {
        if (!strstr(l->refused, why)) note(l, "%s%s refuses program: %s", *l->refused ? "; " : "", l->machine->name, why);
        return free(j.program), false;
    }
    materialise_inputs(l, &j);
    push(l, &j);
    return true;
}

static void region(lowering *l, int v)
{
    bool whole = l->fusion == FUSION_MACHINE && l->region[v] == v;
    if (whole && try_row(l, v, true)) return;
    if (whole && try_machine(l, v)) return;
    if (!l->failed) one_by_one(l, v);
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

/* How many blocks of memory a value needs while it is computed: the operand that needs most goes first. */
static int need(const lowering *l, int v, int depth)
{
    const value *u = value_at(l->g, v);
    int most = 0, equal = 0;
    if (l->job_of[v] >= 0 || depth > 16) return 0;
    for (int k = 0; k < u->args; k++) {
        int n = need(l, u->arg[k], depth + 1);
        if (n > most) most = n, equal = 0;
        equal += n == most && n > 0;
    }
    return value_is_map(l->g, v) || u->op == OP_transpose ? most : most + (equal > 1 || most == 0) * (u->args > 0);
}

static void other(lowering *l, int v)
{
    const value u = *value_at(l->g, v);
    job j = { .kernel = u.op, .out = v, .ins = u.args };
    int first = u.args > 1 && need(l, u.arg[1], 0) > need(l, u.arg[0], 0);
    for (int k = 0; k < u.args; k++) j.in[k] = u.arg[k];
    memcpy(j.attr, u.attr, sizeof u.attr);
    if (u.op == OP_matmul) product_numbers(l, &u, &j);
    if (u.args > 0) materialise(l, u.arg[first]);
    materialise_inputs(l, &j);
    push_or_give_up(l, &j);
}

static void materialise(lowering *l, int v)
{
    v = value_base(l->g, v);
    if (l->failed || l->job_of[v] >= 0 || value_at(l->g, v)->op == OP_LEAF) return;
    job j;
    if (value_at(l->g, v)->op == OP_NUMBER) {
        if (program_load(l, v, v, &j)) push(l, &j);
    } else if (value_is_map(l->g, v)) {
        region(l, v);
    } else {
        other(l, v);
    }
}

duet_status lower(lowering *l)
{
    size_t n = (size_t)l->g->count;
    l->job_of = malloc(n * sizeof *l->job_of), l->region = malloc(n * sizeof *l->region), l->cut = calloc(n, 1);
    l->failed = !l->job_of || !l->region || !l->cut;
    if (!l->failed) {
        memset(l->job_of, -1, n * sizeof *l->job_of);
        regions_assign(l);
        if (value_at(l->g, l->g->root)->op != OP_NUMBER) materialise(l, l->g->root);
    }
    return l->failed ? fail(DUET_NO_MEMORY, "no memory to plan a formula of %d values", l->g->count) : DUET_OK;
}

duet_status lower_copy(lowering *l)
{
    job j;
    if (program_load(l, l->g->root, TO_DESTINATION, &j)) push_or_give_up(l, &j);
    return l->failed ? fail(DUET_NO_MEMORY, "no memory to plan a formula of %d values", l->g->count) : DUET_OK;
}

void lower_free(lowering *l)
{
    for (int i = 0; i < l->count; i++) free(l->jobs[i].program);
    free(l->jobs), free(l->job_of), free(l->region), free(l->cut);
}
