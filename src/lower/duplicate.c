/* duplicate.c - lets several passes compute the same element-wise value, if that takes less time than
 * storing it in one pass and reading it in the others. The gradient of silu(z), for example, needs
 * sigmoid(z): its pass reads z in any case, and computes sigmoid(z) again. */
#include "cost.h"
#include "dtype.h"
#include "job_memory.h"
#include "pass_list.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CONE_MAX    12 /* the most values that are recomputed together */
#define PASSES_MAX  6  /* the most passes that recompute a value */
#define ADDED_LEAST 64 /* copies add at most this number plus half of the graph's values */

typedef struct duplication {
    lowering *l;
    int *first_user,
        *next_user;   /* of each value: a list of its uses; use k of value u is at u * VALUE_ARGS + k */
    bool *kept;       /* of each value: is it stored in any case? */
    bool *private;    /* of each value: do other passes compute it themselves? */
    int chosen;       /* how many are private */
    int added;        /* how many values the copies add, at most */
    int *seen, stamp; /* marks of values: those that are equal to the stamp count */
    graph made;       /* the new table of values */
    int *moved;       /* the new index of each value */
    /* the duplicates: lists by value; `made` has them in the order of their creation */
    int *first_copy, *next_copy, *copy_pass, *copy_index, copies, capacity;
} duplication;

static bool same_pass(const lowering *l, int u, int v) { return l->pass[u] == l->pass[v]; }

/* Can the pass of `user` compute v for itself? */
static bool can_compute(const lowering *l, int user, int v)
{
    return in_program(l->g, user) && is_in_domain(l->g, user, v) &&
           value_at(l->g, user)->comp == value_at(l->g, v)->comp;
}

/* Could v be computed in several passes? */
static bool is_copyable(const lowering *l, int v)
{
    const value *u = value_at(l->g, v);
    return u->uses && value_is_map(l->g, v) && u->op != OP_bias_add && l->dest_of[v] < 0 && !u->join &&
           !u->stored && !u->checkpoint;
}

static void find_users(duplication *d)
{
    const graph *g = d->l->g;
    for (int v = 0; v < g->count; v++) d->first_user[v] = -1;
    for (int u = g->count; u-- > 0;)
        for (int k = value_at(g, u)->args; k-- > 0 && value_at(g, u)->uses;) {
            const int v = value_at(g, u)->arg[k], at = u * VALUE_ARGS + k;
            d->next_user[at] = d->first_user[v];
            d->first_user[v] = at;
        }
}

static void find_kept(duplication *d)
{
    const lowering *l = d->l;
    for (int v = 0; v < l->g->count; v++) {
        d->kept[v] = !is_copyable(l, v);
        for (int at = d->first_user[v]; at >= 0 && !d->kept[v]; at = d->next_user[at])
            d->kept[v] = !same_pass(l, at / VALUE_ARGS, v) && !can_compute(l, at / VALUE_ARGS, v);
    }
}

/* ---- is it worth while? ---- */

/* v: a value, and the values of its pass that it is computed from. in: the operands read from memory. */
typedef struct cone {
    int v[CONE_MAX], count, in[3 * CONE_MAX], ins;
} cone;

static bool add_once(int *list, int *count, int v, int most)
{
    for (int i = 0; i < *count; i++)
        if (list[i] == v) return true;
    if (*count == most) return false;
    list[(*count)++] = v;
    return true;
}

static bool is_inside(const duplication *d, int v, int x)
{
    return same_pass(d->l, v, x) && !d->kept[x] && is_copyable(d->l, x);
}

static bool is_output(const duplication *d, int v)
{
    bool found = d->l->dest_of[v] >= 0;
    for (int at = d->first_user[v]; at >= 0 && !found; at = d->next_user[at])
        found = !same_pass(d->l, at / VALUE_ARGS, v);
    return found;
}

static bool find_cone(const duplication *d, int v, cone *c)
{
    const graph *g = d->l->g;
    *c = (cone){ .v = { v }, .count = 1 };
    for (int i = 0; i < c->count; i++) {
        const value *u = value_at(g, c->v[i]);
        for (int k = 0; k < u->args; k++) {
            const int x = u->arg[k];
            if (value_at(g, x)->op == OP_NUMBER) continue;
            if (same_pass(d->l, v, x) && d->kept[x] && !is_output(d, x))
                return false; /* it would become one */
            if (is_inside(d, v, x) ? !add_once(c->v, &c->count, x, CONE_MAX)
                                   : !add_once(c->in, &c->ins, x, 3 * CONE_MAX))
                return false;
        }
    }
    return true;
}

/* The other passes that read v, and can compute it. Returns -1 if there are too many. */
static int find_readers(const duplication *d, int v, int pass[PASSES_MAX])
{
    int count = 0;
    for (int at = d->first_user[v]; at >= 0; at = d->next_user[at]) {
        const int u = at / VALUE_ARGS;
        if (same_pass(d->l, u, v) || !can_compute(d->l, u, v)) continue;
        if (!add_once(pass, &count, d->l->pass[u], PASSES_MAX)) return -1;
    }
    return count;
}

/* What a pass moves and computes. */
typedef struct effort {
    double bytes, functions;
} effort;

/* Like cost_of_program. */
static double seconds_of(const lowering *l, const effort *e, bool is_wide)
{
    const costs *c = l->machine->costs;
    return fmax(cost_at(c, COST_pass, e->bytes),
                cost_at(c, is_wide ? COST_function_f64 : COST_function, e->functions));
}

static double functions_of(const lowering *l, int v)
{
    const shape s = domain_of(l->g, v);
    return cost_weight((enum op)value_at(l->g, v)->op) * (double)shape_count(&s);
}

/* The effort of a pass. *outputs: how many values it stores. Marks what it reads: seen[x] is the stamp. */
static effort effort_of(duplication *d, int pass, int *outputs)
{
    const lowering *l = d->l;
    effort e = { 0 };
    *outputs = 0;
    d->stamp++;
    for (int v = l->first[pass]; v >= 0; v = l->next[v]) {
        const value *u = value_at(l->g, v);
        e.functions += functions_of(l, v);
        if (is_output(d, v)) {
            e.bytes += (double)value_bytes(l->g, v);
            ++*outputs;
        }
        for (int k = 0; k < u->args; k++) {
            const int x = u->arg[k];
            if (same_pass(l, x, v) || value_at(l->g, x)->op == OP_NUMBER || d->seen[x] == d->stamp) continue;
            d->seen[x] = d->stamp;
            e.bytes += (double)value_bytes(l->g, x);
        }
    }
    return e;
}

/* The seconds that the pass of v saves. It is removed if it stores no other value. */
static double saved_in_own(duplication *d, int v, bool is_wide)
{
    int outputs;
    effort e = effort_of(d, d->l->pass[v], &outputs);
    if (d->kept[v]) return 0;
    const double before = seconds_of(d->l, &e, is_wide);
    e.bytes -= (double)value_bytes(d->l->g, v);
    return outputs == 1 ? before : before - seconds_of(d->l, &e, is_wide);
}

/* The seconds that a pass that computes the cone of v saves, perhaps negative. */
static double saved_in(duplication *d, int v, int pass, const cone *c, bool is_wide)
{
    int outputs;
    effort e = effort_of(d, pass, &outputs);
    const double before = seconds_of(d->l, &e, is_wide);
    e.bytes -= (double)value_bytes(d->l->g, v);
    for (int k = 0; k < c->ins; k++)
        if (d->seen[c->in[k]] != d->stamp) e.bytes += (double)value_bytes(d->l->g, c->in[k]);
    for (int i = 0; i < c->count; i++) e.functions += functions_of(d->l, c->v[i]);
    return before - seconds_of(d->l, &e, is_wide);
}

/* Values that the cone reads must be stored. They may become private when passes have been assigned again. */
static bool reads_private(const duplication *d, const cone *c)
{
    for (int k = 0; k < c->ins; k++)
        if (d->private[c->in[k]]) return true;
    return false;
}

static bool is_worth_while(duplication *d, int v)
{
    const bool is_wide = dtypes[value_at(d->l->g, v)->comp].bytes == sizeof(double);
    int pass[PASSES_MAX];
    cone c;
    const int count = find_readers(d, v, pass);
    if (count < 1 || !find_cone(d, v, &c) || reads_private(d, &c)) return false;
    if (d->added + count * c.count > d->l->g->count / 2 + ADDED_LEAST) return false;
    double saved = saved_in_own(d, v, is_wide);
    for (int i = 0; i < count; i++) saved += saved_in(d, v, pass[i], &c, is_wide);
    if (!(saved > 0)) return false;
    d->added += count * c.count;
    return true;
}

static void choose(duplication *d)
{
    for (int v = 0; v < d->l->g->count; v++) {
        d->private[v] = is_copyable(d->l, v) && value_at(d->l->g, v)->uses > 1 && is_worth_while(d, v);
        d->chosen += d->private[v];
    }
}

/* ---- the new table ---- */

static int find_copy(const duplication *d, int v, int pass)
{
    for (int i = d->first_copy[v]; i >= 0; i = d->next_copy[i])
        if (d->copy_pass[i] == pass) return d->copy_index[i];
    return -1;
}

static bool note_copy(duplication *d, int v, int pass, int index)
{
    if (d->copies == d->capacity) {
        const int capacity = d->capacity ? 2 * d->capacity : 64;
        int *all = realloc(d->next_copy, 3 * (size_t)capacity * sizeof *all);
        if (!all) return false;
        d->next_copy = all;
        memmove(all + 2 * capacity, all + 2 * d->capacity, (size_t)d->copies * sizeof *all);
        memmove(all + capacity, all + d->capacity, (size_t)d->copies * sizeof *all);
        d->copy_pass = all + capacity;
        d->copy_index = all + 2 * capacity;
        d->capacity = capacity;
    }
    d->next_copy[d->copies] = d->first_copy[v];
    d->copy_pass[d->copies] = pass;
    d->copy_index[d->copies] = index;
    d->first_copy[v] = d->copies++;
    return true;
}

static int operand_in(duplication *d, int user, int v, int pass);

/* The copy of v for a pass. The depth of the recursion is that of the cones. */
static int copy_for(duplication *d, int v, int pass)
{
    const int known = find_copy(d, v, pass);
    if (known >= 0) return known;
    value made = *value_at(d->l->g, v);
    for (int k = 0; k < made.args; k++) {
        const int x = made.arg[k];
        made.arg[k] = is_inside(d, v, x) ? copy_for(d, x, pass) : operand_in(d, v, x, pass);
    }
    const int index = graph_append(&d->made, &made);
    if (!note_copy(d, v, pass, index)) d->made.failed = true;
    return index;
}

/* The operand of a value that is computed in `pass`. */
static int operand_in(duplication *d, int user, int v, int pass)
{
    const lowering *l = d->l;
    if (v < 0) return v;
    if (d->private[v] && l->pass[v] != pass && can_compute(l, user, v)) return copy_for(d, v, pass);
    return d->moved[v];
}

static void move_value(duplication *d, int v)
{
    value u = *value_at(d->l->g, v);
    for (int k = 0; k < u.args; k++) u.arg[k] = operand_in(d, v, u.arg[k], d->l->pass[v]);
    d->moved[v] = graph_append(&d->made, &u);
}

static void build(duplication *d)
{
    graph *g = d->l->g;
    for (int v = 0; v < g->count && !d->made.failed; v++) d->first_copy[v] = -1;
    for (int v = 0; v < g->count && !d->made.failed; v++) move_value(d, v);
    for (int v = 0; v < d->made.count && !d->made.failed; v++) {
        value *u = &d->made.values[v]; /* joins and factors may come after their users */
        if (u->join > 0) u->join = d->moved[u->join];
        if (u->alpha >= 0) u->alpha = d->moved[u->alpha];
        if (u->beta >= 0) u->beta = d->moved[u->beta];
    }
}

static void take_table(duplication *d)
{
    graph *g = d->l->g;
    free(g->values);
    g->values = d->made.values;
    g->count = d->made.count;
    g->capacity = d->made.capacity;
    for (int i = 0; i < g->roots; i++)
        if (g->root[i] >= 0) g->root[i] = d->moved[g->root[i]];
    count_uses(g);
}

bool duplicate_values(lowering *l, bool *any)
{
    const size_t n = (size_t)l->g->count;
    int *lists = malloc(n * (VALUE_ARGS + 4) * sizeof *lists);
    bool *flags = calloc(2 * n, sizeof *flags);
    duplication d = { .l = l, .first_user = lists, .kept = flags };
    bool ok = lists && flags;
    *any = false;
    if (ok) {
        d.moved = lists + n;
        d.first_copy = lists + 2 * n;
        d.seen = lists + 3 * n;
        d.next_user = lists + 4 * n;
        memset(d.seen, 0, n * sizeof *d.seen);
        d.private = flags + n;
        find_users(&d);
        find_kept(&d);
        choose(&d);
    }
    if (ok && d.chosen) {
        build(&d);
        ok = !d.made.failed;
        *any = ok;
        if (ok) take_table(&d);
        else free(d.made.values);
        free(d.next_copy);
    }
    free(lists);
    free(flags);
    return ok;
}
