/* fusion.c - assigns values to passes; each pass becomes one program. First, a value joins its
 * users' pass if all its uses are there and the shapes agree. Then passes over the same elements
 * are merged. pass_split.c splits a pass that no backend runs. */
#include "matrix.h"
#include "pass_list.h"
#include <stdlib.h>

enum { UNSEEN = -1, ALONE = -2 };

#define SWEEPS     16   /* repetitions of absorb() */
#define CANDIDATES 8    /* passes that merging a reduction is tried with */
#define MERGED_MAX 4096 /* graphs with more values are not merged */

/* May a program that computes `user` compute v, too, as far as their types allow? */
static bool types_agree(const graph *g, int user, int v)
{
    const value *x = value_at(g, v);
    return value_at(g, user)->comp == x->comp && !x->stored && !x->checkpoint;
}

static bool axes_agree(const lowering *l, int leader, int v)
{
    shape domain = domain_of(l->g, leader), s = value_shape(l->g, v);
    return value_at(l->g, v)->op != OP_bias_add || shape_equal(&domain, &s);
}

/* ---- first step: each value joins the pass of its users ---- */

/* The pass that v must belong to because of this use; ALONE: none. */
static int wanted_pass(const lowering *l, int user, int v)
{
    bool together = in_program(l->g, user) && value_is_map(l->g, v) && is_in_domain(l->g, user, v) &&
                    types_agree(l->g, user, v);
    if (together && axes_agree(l, l->pass[user], v)) return l->pass[user];
    return ALONE;
}

static void propagate(lowering *l, int user, int v)
{
    const int w = wanted_pass(l, user, v);
    if (l->pass[v] == UNSEEN) l->pass[v] = w;
    else if (l->pass[v] != w) l->pass[v] = ALONE;
}

/* All uses of v have been seen. A full pass accepts no more values. */
static void assign_pass(lowering *l, int v, bool leads)
{
    int p = l->pass[v];
    if (!leads && p >= 0 && l->members[p] < PASS_VALUES) add_to_pass(l, p, v);
    else make_leader(l, v);
}

/* Users come after their operands in the table. */
static void assign_by_uses(lowering *l)
{
    for (int v = 0; v < l->g->count; v++) l->pass[v] = UNSEEN;
    for (int v = l->g->count; v-- > 0;) {
        const value *u = value_at(l->g, v);
        assign_pass(l, v, l->dest_of[v] >= 0 || !u->uses);
        for (int k = 0; k < u->args && u->uses; k++) propagate(l, v, u->arg[k]);
    }
}

/* Repeat the first step within a pass of several outputs. Each output now leads a pass of its
 * own. */
void assign_again(lowering *l, int leader)
{
    value_list a = list_of(l, leader), out = list_outputs(l, &a);
    int outs = out.count;
    for (int i = 0; i < a.count; i++) {
        l->in_set[a.v[i]] = 1;
        l->pass[a.v[i]] = UNSEEN;
    }
    for (int i = a.count; i-- > 0;) {
        const value *u = value_at(l->g, a.v[i]);
        bool leads = outs > 0 && out.v[outs - 1] == a.v[i];
        outs -= leads;
        assign_pass(l, a.v[i], leads);
        for (int k = 0; k < u->args; k++)
            if (l->in_set[u->arg[k]]) propagate(l, a.v[i], u->arg[k]);
    }
    for (int i = 0; i < a.count; i++) l->in_set[a.v[i]] = 0;
}

/* ---- second step: merge passes over the same elements ---- */

/* Push the passes that r reads from onto the stack, unless they were pushed before; not p and q.
 * Returns whether r, unless it is q, reads q directly. */
static bool push_inputs(lowering *l, int r, int p, int q, int *depth)
{
    bool direct = false;
    for (int v = l->first[r]; v >= 0; v = l->next[v]) {
        const value *u = value_at(l->g, v);
        for (int k = 0; k < u->args; k++) {
            int s = l->pass[u->arg[k]];
            direct |= s == q && r != q;
            if (s != p && s != q && !l->visited[s]) {
                l->visited[s] = 1;
                l->stack[(*depth)++] = s;
            }
        }
    }
    return direct;
}

/* Does p depend on q? A direct read counts only if `directly` is set. */
static bool depends_on(lowering *l, int p, int q, bool directly)
{
    int depth = 0;
    bool found = push_inputs(l, p, p, q, &depth) && directly;
    for (int i = 0; i < depth && !found; i++) found = push_inputs(l, l->stack[i], p, q, &depth);
    for (int i = 0; i < depth; i++) l->visited[l->stack[i]] = 0;
    return found;
}

/* Would writing the destination element by element overwrite elements of operand x before they are
 * read? */
bool overwrites_operand(const lowering *l, int dest, int x, bool bias)
{
    const graph *g = l->g;
    int base = value_base(g, x);
    if (value_at(g, base)->op != OP_LEAF) return false;
    enum overlap o = (enum overlap)l->overlap[value_at(g, base)->leaf * g->roots + dest];
    const bool in_place = base == x || (value_is_plane(g, x) && value_at(g, x)->arg[0] == base);
    if (o == SAME && l->dest[dest].rearranged) return true;
    return o == TANGLED || (o == SAME && (bias || !in_place || !same_shape(g, x, g->root[dest])));
}

static bool overwrites_none(const lowering *l, const value_list *a)
{
    for (int i = 0; i < a->count; i++)
        for (int j = 0; j < a->count && l->dest_of[a->v[i]] >= 0; j++) {
            const value *u = value_at(l->g, a->v[j]);
            for (int k = 0; k < u->args; k++)
                if (overwrites_operand(l, l->dest_of[a->v[i]], u->arg[k], u->op == OP_bias_add && k == 1))
                    return false;
        }
    return true;
}

/* Does a value of the list read another one that must be in memory first? */
static bool reads_stored_value(lowering *l, const value_list *a)
{
    bool found = false;
    set_add_operands(l, a);
    for (int i = 0; i < a->count; i++) {
        const value *u = value_at(l->g, a->v[i]);
        found |= l->in_set[a->v[i]] && (u->stored || u->checkpoint);
    }
    set_clear(l, a);
    return found;
}

static bool same_domain(const graph *g, int p, int q)
{
    shape a = domain_of(g, p), b = domain_of(g, q);
    return shape_equal(&a, &b) && value_at(g, p)->comp == value_at(g, q)->comp;
}

static bool is_one_program(lowering *l, int leader)
{
    job j;
    bool ok = program_build(l, leader, false, &j);
    if (ok) free(j.program);
    return ok;
}

/* Merge two passes, if the result is one program. */
static bool merge(lowering *l, int p, int q)
{
    if (l->members[p] + l->members[q] > PASS_VALUES) return false;
    value_list a = list_of(l, p), b = list_of(l, q), c = merged_list(&a, &b);
    if (!overwrites_none(l, &c) || reads_stored_value(l, &c)) return false;
    if (is_one_program(l, make_pass(l, &c))) return true;
    make_pass(l, &a);
    make_pass(l, &b);
    return false;
}

static bool merge_passes(lowering *l, int p, int q)
{
    bool reductions = value_is_reduce(l->g, p);
    if (p == q || reductions != value_is_reduce(l->g, q) || !in_program(l->g, p) || !in_program(l->g, q) ||
        !same_domain(l->g, p, q))
        return false;
    if (reduced_axes(l->g, p) != reduced_axes(l->g, q)) return false;
    return !depends_on(l, p, q, reductions) && !depends_on(l, q, p, reductions) && merge(l, p, q);
}

/* Merge the passes of the pieces of joins, if they have the same sizes. */
static bool merge_pieces(lowering *l)
{
    bool any = false;
    for (int v = l->g->count; v-- > 0;) {
        const value *u = value_at(l->g, v);
        if (!value_is_join(l->g, v) || !u->uses) continue;
        for (int k = 1; k < u->args; k++) any |= merge_passes(l, l->pass[u->arg[k - 1]], l->pass[u->arg[k]]);
    }
    return any;
}

static void merge_with_later(lowering *l, int v, int *later)
{
    if (v >= 0 && *later >= 0 && !value_is_reduce(l->g, v)) merge_passes(l, l->pass[v], l->pass[*later]);
    if (v >= 0) *later = v;
}

/* Merge the passes of neighbouring statements; for joins, piece by piece. */
static void merge_statements(lowering *l)
{
    for (int i = l->g->roots - 1, later = -1; i >= 0; i--) {
        const int r = l->g->root[i];
        if (r < 0 || !value_is_join(l->g, r)) merge_with_later(l, r, &later);
        for (int k = r >= 0 && value_is_join(l->g, r) ? value_at(l->g, r)->args : 0; k-- > 0;)
            merge_with_later(l, value_at(l->g, r)->arg[k], &later);
    }
}

/* Do two passes read the same value element by element? */
static bool shares_input(lowering *l, int p, int q)
{
    bool found = false;
    value_list a = list_of(l, p), b = list_of(l, q);
    set_add_operands(l, &a);
    for (int i = 0; i < b.count; i++) {
        const value *u = value_at(l->g, b.v[i]);
        for (int k = 0; k < u->args; k++) found |= l->in_set[u->arg[k]] && is_in_domain(l->g, p, u->arg[k]);
    }
    set_clear(l, &a);
    return found;
}

static bool merge_reduction(lowering *l, int v, const int *other, int count)
{
    for (int i = count - 1; i >= 0 && i >= count - CANDIDATES; i--) {
        int p = l->pass[other[i]];
        if (same_domain(l->g, v, p) && shares_input(l, v, p) && merge_passes(l, v, p)) return true;
    }
    return false;
}

/* Merge reductions of the same elements along the same axes. */
static bool merge_reductions(lowering *l)
{
    int *other = malloc((size_t)l->g->count * sizeof *other), count = 0;
    bool any = false;
    if (!other) {
        l->failed = true;
        return false;
    }
    for (int v = l->g->count; v-- > 0;) {
        if (!value_at(l->g, v)->uses || !value_is_reduce(l->g, v)) continue;
        if (merge_reduction(l, v, other, count)) any = true;
        else other[count++] = v;
    }
    free(other);
    return any;
}

/* For each pass, a value outside that reads from it; ALONE if values of several passes do. */
static void find_users(const lowering *l, int *user)
{
    for (int v = 0; v < l->g->count; v++) user[v] = UNSEEN;
    for (int v = 0; v < l->g->count; v++) {
        const value *u = value_at(l->g, v);
        for (int k = 0; k < u->args && u->uses; k++) {
            int p = l->pass[u->arg[k]];
            if (p == l->pass[v]) continue;
            if (user[p] == UNSEEN) user[p] = v;
            else if (user[p] == ALONE || l->pass[user[p]] != l->pass[v]) user[p] = ALONE;
        }
    }
}

static bool has_dest(const lowering *l, int p)
{
    for (int v = l->first[p]; v >= 0; v = l->next[v])
        if (l->dest_of[v] >= 0) return true;
    return false;
}

/* Merge a pass into the only pass that reads from it, if it reads element by element. */
static bool absorb(lowering *l)
{
    bool any = false;
    int *user = malloc((size_t)l->g->count * sizeof *user);
    if (!user) {
        l->failed = true;
        return false;
    }
    find_users(l, user);
    for (int p = l->g->count; p-- > 0;) {
        if (user[p] < 0 || l->pass[p] != p || !value_is_map(l->g, p) || has_dest(l, p)) continue;
        int q = l->pass[user[p]];
        if (q != p && in_program(l->g, q) && same_domain(l->g, p, q) && merge(l, p, q)) any = true;
    }
    free(user);
    return any;
}

void passes_assign(lowering *l)
{
    assign_by_uses(l);
    if (l->fusion != FUSION_MACHINE || l->g->count > MERGED_MAX) return;
    bool any = merge_reductions(l);
    any |= merge_pieces(l);
    if (l->g->roots > 1) {
        merge_statements(l);
        any = true;
    }
    for (int i = 0; i < SWEEPS && any; i++) any = absorb(l);
}
