/* fusion.c - which values are computed together: those of one shape whose every use lies in the same pass. Then passes over the same
 * elements become one, and what no machine runs becomes two. */
#include "lower.h"
#include "matrix.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { UNSEEN = -1, ALONE = -2 };

#define SWEEPS     16   /* of absorbing */
#define CANDIDATES 8    /* passes that a reduction is tried with */
#define MERGED_MAX 4096 /* values of a graph: beyond, nothing is tried */

shape domain_of(const graph *g, int v)
{
    return value_shape(g, value_is_reduce(g, v) ? value_at(g, v)->arg[0] : v);
}

uint32_t reduced_axes(const graph *g, int v)
{
    const value *u = value_at(g, v);
    if (!value_is_reduce(g, v)) return 0;
    return (uint32_t)u->attr.reduce.axes & ((1u << value_at(g, u->arg[0])->rank) - 1);
}

/* May a program that computes user have v on its way? */
static bool in_type(const graph *g, int user, int v)
{
    return value_at(g, user)->comp == value_at(g, v)->comp && !value_at(g, v)->stored;
}

static shape without_leading_ones(shape s)
{
    while (s.rank > 0 && s.size[0] == 1) memmove(s.size, s.size + 1, (size_t)--s.rank * sizeof *s.size);
    return s;
}

/* Has v an element for each that user computes? Leading axes of one element make no difference, but to what counts axes. */
static bool in_domain(const graph *g, int user, int v)
{
    shape domain = domain_of(g, user), s = value_shape(g, v);
    if (value_is_reduce(g, user)) return shape_equal(&domain, &s);
    domain = without_leading_ones(domain), s = without_leading_ones(s);
    return shape_equal(&domain, &s);
}

static bool counts_axes_alike(const lowering *l, int leader, int v)
{
    shape domain = domain_of(l->g, leader), s = value_shape(l->g, v);
    return value_at(l->g, v)->op != OP_bias_add || shape_equal(&domain, &s);
}

/* ---- passes as lists, in ascending order ---- */

typedef struct list {
    int count, v[PASS_VALUES];
} list;

static void lead(lowering *l, int v) { l->pass[v] = l->first[v] = v, l->next[v] = -1, l->members[v] = 1; }

/* v, lower than all of the pass, joins it. */
static void join(lowering *l, int leader, int v)
{
    l->next[v] = l->first[leader], l->first[leader] = v;
    l->pass[v] = leader, l->members[leader]++;
}

static list list_of(const lowering *l, int leader)
{
    list a = { 0 };
    for (int v = l->first[leader]; v >= 0; v = l->next[v]) a.v[a.count++] = v;
    return a;
}

/* A pass of these, led by the highest. */
static int form(lowering *l, const list *a)
{
    int leader = a->v[a->count - 1];
    lead(l, leader);
    for (int i = a->count - 1; i-- > 0;) join(l, leader, a->v[i]);
    return leader;
}

static list both(const list *a, const list *b)
{
    list c = { 0 };
    for (int i = 0, k = 0; i < a->count || k < b->count;)
        c.v[c.count++] = k == b->count || (i < a->count && a->v[i] < b->v[k]) ? a->v[i++] : b->v[k++];
    return c;
}

/* ---- what a program of a list would read and write ---- */

typedef struct demand {
    int values, inputs, numbers, outs;
    int large; /* inputs with an element for each of the domain */
} demand;

static void clear_marks(const lowering *l, const list *a)
{
    for (int i = 0; i < a->count; i++) {
        const value *u = value_at(l->g, a->v[i]);
        l->inner[a->v[i]] = 0;
        for (int k = 0; k < u->args; k++) l->inner[u->arg[k]] = 0;
    }
}

static list outputs(const lowering *l, const list *a)
{
    list out = { 0 };
    for (int i = 0; i < a->count; i++) {
        const value *u = value_at(l->g, a->v[i]);
        for (int k = 0; k < u->args; k++) l->inner[u->arg[k]]++;
    }
    for (int i = 0; i < a->count; i++)
        if (value_at(l->g, a->v[i])->uses > l->inner[a->v[i]]) out.v[out.count++] = a->v[i];
    clear_marks(l, a);
    return out;
}

int pass_outputs(const lowering *l, int leader, int out[PASS_VALUES])
{
    list a = list_of(l, leader), o = outputs(l, &a);
    memcpy(out, o.v, sizeof *out * (size_t)o.count);
    return o.count;
}

static void count_operand(const lowering *l, int leader, int x, demand *r)
{
    if (l->inner[x]++) return;
    if (value_at(l->g, x)->op == OP_NUMBER) r->numbers++;
    else r->inputs++, r->large += in_domain(l->g, leader, x);
}

static demand demand_of(const lowering *l, const list *a)
{
    demand r = { .values = a->count, .outs = outputs(l, a).count };
    for (int i = 0; i < a->count; i++) l->inner[a->v[i]] = 1;
    for (int i = 0; i < a->count; i++) {
        const value *u = value_at(l->g, a->v[i]);
        for (int k = 0; k < u->args; k++) count_operand(l, a->v[a->count - 1], u->arg[k], &r);
    }
    clear_marks(l, a);
    return r;
}

/* So many values fit, whatever is saved and stored late. */
#define SURE_VALUES ((PROGRAM_LENGTH - 2 * PROGRAM_OUTPUTS) / 2)

static bool fits(const demand *r)
{
    return r->values <= SURE_VALUES && r->inputs <= PROGRAM_INPUTS && r->numbers <= PROGRAM_NUMBERS &&
           r->outs <= PROGRAM_OUTPUTS;
}

/* ---- first: what each value's users allow ---- */

/* The pass that a use of v by user would put v into. */
static int wanted(const lowering *l, int user, int v)
{
    bool together =
        in_program(l->g, user) && value_is_map(l->g, v) && in_domain(l->g, user, v) && in_type(l->g, user, v);
    return together && counts_axes_alike(l, l->pass[user], v) ? l->pass[user] : ALONE;
}

static void tell_operand(lowering *l, int user, int v)
{
    int w = wanted(l, user, v);
    l->pass[v] = l->pass[v] == UNSEEN || l->pass[v] == w ? w : ALONE;
}

/* v has met all its uses. A full pass takes no more. */
static void place(lowering *l, int v, bool leads)
{
    int p = l->pass[v];
    if (!leads && p >= 0 && l->members[p] < PASS_VALUES) join(l, p, v);
    else lead(l, v);
}

/* Users stand after what they use. */
static void assign_first(lowering *l)
{
    for (int v = 0; v < l->g->count; v++) l->pass[v] = UNSEEN;
    for (int v = l->g->count; v-- > 0;) {
        const value *u = value_at(l->g, v);
        place(l, v, l->dest_of[v] >= 0 || !u->uses);
        for (int k = 0; k < u->args && u->uses; k++) tell_operand(l, v, u->arg[k]);
    }
}

/* The same within a pass of several outputs, each of which leads one now. */
static void assign_again(lowering *l, int leader)
{
    list a = list_of(l, leader), out = outputs(l, &a);
    int outs = out.count;
    for (int i = 0; i < a.count; i++) l->inner[a.v[i]] = 1, l->pass[a.v[i]] = UNSEEN;
    for (int i = a.count; i-- > 0;) {
        const value *u = value_at(l->g, a.v[i]);
        bool leads = outs > 0 && out.v[outs - 1] == a.v[i];
        outs -= leads;
        place(l, a.v[i], leads);
        for (int k = 0; k < u->args; k++)
            if (l->inner[u->arg[k]]) tell_operand(l, a.v[i], u->arg[k]);
    }
    for (int i = 0; i < a.count; i++) l->inner[a.v[i]] = 0;
}

/* ---- then: passes over the same elements ---- */

/* Puts the passes that p reads of, but p and q themselves, on the stack, unless they were there. Does p read of q? */
static bool follow(const lowering *l, int r, int p, int q, int *depth)
{
    bool direct = false;
    for (int v = l->first[r]; v >= 0; v = l->next[v]) {
        const value *u = value_at(l->g, v);
        for (int k = 0; k < u->args; k++) {
            int s = l->pass[u->arg[k]];
            direct |= s == q && r != q;
            if (s != p && s != q && !l->inner[s]) l->inner[s] = 1, l->stack[(*depth)++] = s;
        }
    }
    return direct;
}

/* Does p need what q computes: by way of other passes, or directly where that counts? */
static bool needs(const lowering *l, int p, int q, bool directly)
{
    int depth = 0;
    bool found = follow(l, p, p, q, &depth) && directly;
    for (int i = 0; i < depth && !found; i++) found = follow(l, l->stack[i], p, q, &depth);
    for (int i = 0; i < depth; i++) l->inner[l->stack[i]] = 0;
    return found;
}

/* Would writing the destination of a dest element by element spoil an operand before it is read? */
bool spoils(const lowering *l, int dest, int x, bool bias)
{
    const graph *g = l->g;
    int base = value_base(g, x);
    if (value_at(g, base)->op != OP_LEAF) return false;
    enum overlap o = (enum overlap)l->overlap[value_at(g, base)->leaf * g->roots + dest];
    const bool as_it_lies = base == x || (value_is_plane(g, x) && value_at(g, x)->arg[0] == base);
    return o == TANGLED || (o == SAME && (bias || !as_it_lies || !same_shape(g, x, g->root[dest])));
}

static bool spoils_none(const lowering *l, const list *a)
{
    for (int i = 0; i < a->count; i++)
        for (int j = 0; j < a->count && l->dest_of[a->v[i]] >= 0; j++) {
            const value *u = value_at(l->g, a->v[j]);
            for (int k = 0; k < u->args; k++)
                if (spoils(l, l->dest_of[a->v[i]], u->arg[k], u->op == OP_bias_add && k == 1)) return false;
        }
    return true;
}

/* Does one of them read of another what has to be in memory first? */
static bool reads_stored(const lowering *l, const list *a)
{
    bool found = false;
    for (int i = 0; i < a->count; i++) l->inner[a->v[i]] = value_at(l->g, a->v[i])->stored;
    for (int i = 0; i < a->count; i++)
        for (int k = 0; k < value_at(l->g, a->v[i])->args; k++)
            found |= l->inner[value_at(l->g, a->v[i])->arg[k]] != 0;
    clear_marks(l, a);
    return found;
}

static bool alike(const graph *g, int p, int q)
{
    shape a = domain_of(g, p), b = domain_of(g, q);
    return shape_equal(&a, &b) && value_at(g, p)->comp == value_at(g, q)->comp;
}

static bool builds(lowering *l, int leader)
{
    job j;
    bool ok = program_build(l, leader, false, &j);
    if (ok) free(j.program);
    return ok;
}

/* One pass of two, if that is one program. */
static bool unite(lowering *l, int p, int q)
{
    if (l->members[p] + l->members[q] > PASS_VALUES) return false;
    list a = list_of(l, p), b = list_of(l, q), c = both(&a, &b);
    if (!spoils_none(l, &c) || reads_stored(l, &c)) return false;
    if (builds(l, form(l, &c))) return true;
    form(l, &a), form(l, &b);
    return false;
}

static bool unite_apart(lowering *l, int p, int q)
{
    bool reductions = value_is_reduce(l->g, p);
    if (p == q || reductions != value_is_reduce(l->g, q) || !in_program(l->g, p) || !in_program(l->g, q) ||
        !alike(l->g, p, q))
        return false;
    if (reduced_axes(l->g, p) != reduced_axes(l->g, q)) return false;
    return !needs(l, p, q, reductions) && !needs(l, q, p, reductions) && unite(l, p, q);
}

/* The halves of complex values. */
static bool unite_halves(lowering *l)
{
    bool any = false;
    for (int v = l->g->count; v-- > 0;) {
        const int *half = value_at(l->g, v)->arg;
        if (value_is_join(l->g, v) && value_at(l->g, v)->uses)
            any |= unite_apart(l, l->pass[half[0]], l->pass[half[1]]);
    }
    return any;
}

static void unite_neighbours(lowering *l, int v, int *later)
{
    if (v >= 0 && *later >= 0 && !value_is_reduce(l->g, v)) unite_apart(l, l->pass[v], l->pass[*later]);
    if (v >= 0) *later = v;
}

/* Statements that are neighbours; of a complex one each half. */
static void unite_dests(lowering *l)
{
    for (int i = l->g->roots - 1, later = -1; i >= 0; i--) {
        const int r = l->g->root[i];
        if (r < 0 || !value_is_join(l->g, r)) unite_neighbours(l, r, &later);
        for (int k = 1; k >= 0 && r >= 0 && value_is_join(l->g, r); k--)
            unite_neighbours(l, value_at(l->g, r)->arg[k], &later);
    }
}

/* Do two passes read the same value element by element? */
static bool share(const lowering *l, int p, int q)
{
    bool found = false;
    list a = list_of(l, p), b = list_of(l, q);
    for (int i = 0; i < a.count; i++)
        for (int k = 0; k < value_at(l->g, a.v[i])->args; k++) l->inner[value_at(l->g, a.v[i])->arg[k]] = 1;
    for (int i = 0; i < b.count; i++)
        for (int k = 0; k < value_at(l->g, b.v[i])->args; k++) {
            int x = value_at(l->g, b.v[i])->arg[k];
            found |= l->inner[x] && in_domain(l->g, p, x);
        }
    clear_marks(l, &a);
    return found;
}

static bool unite_reduce(lowering *l, int v, const int *other, int count)
{
    for (int i = count - 1; i >= 0 && i >= count - CANDIDATES; i--) {
        int p = l->pass[other[i]];
        if (alike(l->g, v, p) && share(l, v, p) && unite_apart(l, v, p)) return true;
    }
    return false;
}

/* Reductions of the same elements along the same axes. */
static bool unite_reduces(lowering *l)
{
    int *other = malloc((size_t)l->g->count * sizeof *other), count = 0;
    bool any = false;
    if (!other) return l->failed = true, false;
    for (int v = l->g->count; v-- > 0;) {
        if (!value_at(l->g, v)->uses || !value_is_reduce(l->g, v)) continue;
        if (unite_reduce(l, v, other, count)) any = true;
        else other[count++] = v;
    }
    free(other);
    return any;
}

/* Of each pass a value that reads of it from outside, or ALONE when values of several passes do. */
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

/* A pass that one other alone reads, element by element, becomes part of it. */
static bool absorb(lowering *l)
{
    bool any = false;
    int *user = malloc((size_t)l->g->count * sizeof *user);
    if (!user) return l->failed = true, false;
    find_users(l, user);
    for (int p = l->g->count; p-- > 0;) {
        if (user[p] < 0 || l->pass[p] != p || !value_is_map(l->g, p) || has_dest(l, p)) continue;
        int q = l->pass[user[p]];
        if (q != p && in_program(l->g, q) && alike(l->g, p, q) && unite(l, p, q)) any = true;
    }
    free(user);
    return any;
}

void passes_assign(lowering *l)
{
    assign_first(l);
    if (l->fusion != FUSION_MACHINE || l->g->count > MERGED_MAX) return;
    bool any = unite_reduces(l);
    any |= unite_halves(l);
    if (l->g->roots > 1) unite_dests(l), any = true;
    for (int i = 0; i < SWEEPS && any; i++) any = absorb(l);
}

/* ---- last: two of one ---- */

/* The i-th of a pass with all that it needs there, and the rest. */
static void cone(const lowering *l, const list *a, int i, list *lower, list *rest)
{
    lower->count = rest->count = 0;
    l->inner[a->v[i]] = 1;
    for (int k = i; k >= 0; k--)
        if (l->inner[a->v[k]])
            for (int m = 0; m < value_at(l->g, a->v[k])->args; m++)
                l->inner[value_at(l->g, a->v[k])->arg[m]] = 1;
    for (int k = 0; k < a->count; k++) {
        list *to = k <= i && l->inner[a->v[k]] ? lower : rest;
        to->v[to->count++] = a->v[k];
    }
    clear_marks(l, a);
}

/* A pass in two, of which the lower one is a program. */
typedef struct cut {
    list lower, rest;
    bool is_last; /* the rest is a program, too */
    double cost;
} cut;

/* Cuts the i-th of a pass off, with all that it needs there; false: that is no program. The cost: elements written and read again, and
 * read twice, of equals less for the evener; where the rest must be cut again, for each value that is gone. */
static bool cut_at(const lowering *l, const list *a, int i, const demand *all, cut *c)
{
    if (value_is_reduce(l->g, a->v[i])) return false;
    cone(l, a, i, &c->lower, &c->rest);
    const demand lower = demand_of(l, &c->lower), rest = demand_of(l, &c->rest);
    const double cost = 2 * lower.outs + (lower.large + rest.large - lower.outs - all->large);
    const double even = lower.values < rest.values ? lower.values : rest.values;
    c->is_last = fits(&rest);
    c->cost = c->is_last ? cost - even / PASS_VALUES / 2 : cost / lower.values;
    return fits(&lower);
}

static bool better(const cut *a, const cut *b)
{
    return a->is_last != b->is_last ? a->is_last : a->cost < b->cost;
}

static void split(lowering *l, int leader)
{
    const list a = list_of(l, leader);
    const demand all = demand_of(l, &a);
    cut c, best = { .cost = INFINITY };
    for (int i = a.count - 2; i >= 0; i--)
        if (cut_at(l, &a, i, &all, &c) && better(&c, &best)) best = c;
    form(l, &best.lower), form(l, &best.rest);
}

bool pass_refine(lowering *l, int leader)
{
    int out[PASS_VALUES];
    if (l->members[leader] == 1) return false;
    if (pass_outputs(l, leader, out) > 1) assign_again(l, leader);
    else split(l, leader);
    return true;
}
