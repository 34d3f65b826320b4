/* random_formula.h - random formulas over all rows. One seed gives the same leaves, and the same
 * formula each time it is built. */
#ifndef RANDOM_FORMULA_H
#define RANDOM_FORMULA_H

#include "common.h"
#include "dtype.h"
#include "ops.h"
#include <math.h>

#define LEAVES 7
#define NODES  41

typedef duet_expr maker(const duet_expr *x, const int *a);
typedef struct row {
    const char *name;
    int op, arity;
    maker *make;
    double domain[6], ulp;
} row;

#define UNPACK(...) __VA_ARGS__
#define DUET_MAP1(name, ...)                                                                                 \
    static duet_expr make_##name(const duet_expr *x, const int *a) { return (duet_##name)(x[0]); }
#define DUET_MAP2(name, ...)                                                                                 \
    static duet_expr make_##name(const duet_expr *x, const int *a) { return (duet_##name)(x[0], x[1]); }
#define DUET_MAP3(name, ...)                                                                                 \
    static duet_expr make_##name(const duet_expr *x, const int *a) { return (duet_##name)(x[0], x[1], x[2]); }
/* a[0]: 0 all axes; 1 the first axis; 2 axis a[1], kept; 3 none, the last, or the first and the
 * last axis, chosen by a[1], kept */
#define DUET_PLACE1(name, ...)                                                                               \
    static duet_expr make_##name(const duet_expr *x, const int *a)                                           \
    {                                                                                                        \
        return a[0] == 2 ? (duet_##name##_keep)(x[0], a[1])                                                  \
               : a[0]    ? (duet_##name##_axis)(x[0], 0)                                                     \
                         : (duet_##name)(x[0]);                                                                 \
    }
static const int few_axes[][2] = { { 0 }, { -1 }, { 0, -1 } };
#define DUET_FOLD1(name, ...)                                                                                \
    static duet_expr make_##name(const duet_expr *x, const int *a)                                           \
    {                                                                                                        \
        return a[0] == 3   ? (duet_##name##_axes_keep)(x[0], a[1], few_axes[a[1]])                           \
               : a[0] == 2 ? (duet_##name##_keep)(x[0], a[1])                                                \
               : a[0]      ? (duet_##name##_axis)(x[0], 0)                                                   \
                           : (duet_##name)(x[0]);                                                                 \
    }
#define DUET_FOLD2(name, ...)                                                                                \
    static duet_expr make_##name(const duet_expr *x, const int *a)                                           \
    {                                                                                                        \
        return a[0] == 3   ? (duet_##name##_axes_keep)(x[0], x[1], a[1], few_axes[a[1]])                     \
               : a[0] == 2 ? (duet_##name##_keep)(x[0], x[1], a[1])                                          \
               : a[0]      ? (duet_##name##_axis)(x[0], x[1], 0)                                             \
                           : (duet_##name)(x[0], x[1]);                                                           \
    }
#define DUET_MOMENT1 DUET_FOLD1
#include <duet/ops.def>

static const row maps[] = {
#define DUET_MAP1(name, f, o, domain, ulp, ...) { #name, OP_##name, 1, make_##name, { UNPACK domain }, ulp },
#define DUET_MAP2(name, f, o, domain, ulp, ...) { #name, OP_##name, 2, make_##name, { UNPACK domain }, ulp },
#define DUET_MAP3(name, f, o, domain, ulp, ...) { #name, OP_##name, 3, make_##name, { UNPACK domain }, ulp },
#include <duet/ops.def>
};
static const row reductions[] = {
#define DUET_FOLD1(name, ...) { #name, OP_##name, 1, make_##name, { 0 } },
#define DUET_FOLD2(name, ...) { #name, OP_##name, 2, make_##name, { 0 } },
#define DUET_MOMENT1          DUET_FOLD1
#include <duet/ops.def>
};
static const row indices[] = {
#define DUET_PLACE1(name, ...) { #name, OP_##name, 1, make_##name, { 0 } },
#include <duet/ops.def>
};
#define LENGTH(a) (int)(sizeof(a) / sizeof *(a))

/* A formula, its sizes, and whether its values may be far from 1. */
typedef struct part {
    duet_expr e;
    sizes s;
    bool wild;
    uint64_t made_of; /* bit mask of the parts in it */
} part;

typedef struct random_formula {
    uint64_t seed;
    duet_dtype type;
    sizes base;
    /* whole: the matrix that a leaf is a view of, or the leaf itself */
    duet_matrix *leaf[LEAVES], *whole[LEAVES];
    /* bits: without the oracle; large: matrices large enough for several threads */
    bool bits, large;
    int target; /* number of operators */
    duet_dtype result;
    uint64_t made_of;          /* bit mask of the parts in the formula */
    bool vendor;               /* it has a step with an error bound instead of exact bits */
    duet_expr made[8 * NODES]; /* all formulas made while building; to be dropped */
    int makes;
} random_formula;

static bool same_sizes(const sizes *a, const sizes *b)
{
    return a->rank == b->rank && !memcmp(a->size, b->size, sizeof(int64_t) * (size_t)a->rank);
}

/* A view, or a matrix if there is no view of this kind, with numbers of magnitude up to `most`. */
static duet_matrix *some_view(rng *gen, enum view view, duet_dtype type, const sizes *s, double most,
                              duet_matrix **whole)
{
    duet_matrix *m = random_view(gen, view, type, s->rank, s->size, -most, most, whole);
    if (m) return m;
    *whole = random_matrix(gen, type, s->rank, s->size, -most, most);
    return *whole;
}

/* One axis long, or all axes a little longer; at most about ten blocks of a reduction. */
static void enlarge(rng *gen, sizes *s)
{
    int64_t count = 1;
    if (s->rank && rng_chance(gen, 80)) s->size[rng_below(gen, s->rank)] *= 1 + rng_below(gen, 20000);
    for (int d = 0; d < s->rank; d++) {
        s->size[d] *= 1 + rng_below(gen, 4);
        if (s->size[d]) count *= s->size[d];
    }
    for (int d = 0; d < s->rank; d++)
        if (count > 40000 && s->size[d] > 40) {
            count /= s->size[d];
            s->size[d] = 1 + 40000 / count;
            count *= s->size[d];
        }
}

static void sprinkle(rng *gen, duet_dtype type, void *p, int64_t count)
{
    const double tiny = dtypes[type].tiny;
    const double special[] = { 0,         -0.0,       INFINITY,    -INFINITY, NAN, tiny,
                               -tiny / 8, 0.9 / tiny, -0.9 / tiny, 1,         0.5, -1 };
    for (int64_t i = rng_below(gen, 60); i < count; i += 1 + rng_below(gen, 60)) {
        const double x = special[rng_below(gen, LENGTH(special))];
        if (type == DUET_F32) ((float *)p)[i] = (float)x;
        else ((double *)p)[i] = x;
    }
}

/* Makes the leaves: the base shape, views of it, and shapes that broadcast to it. */
static void make_leaves(random_formula *g)
{
    rng gen = rng_new(g->seed);
    if (rng_chance(&gen, 30)) g->type = DUET_F64;
    else g->type = DUET_F32;
    g->target = 2 + (int)rng_below(&gen, g->bits ? NODES - 2 : 19);
    g->base.rank = (int)rng_below(&gen, 4);
    for (int d = 0; d < g->base.rank; d++)
        g->base.size[d] = 1 + rng_below(&gen, rng_chance(&gen, 20) ? 40 : 6);
    if (g->base.rank == 2 && rng_chance(&gen, 50)) g->base.size[1] = g->base.size[0];
    if (g->base.rank && rng_chance(&gen, 2)) g->base.size[0] = 0;
    if (g->large) enlarge(&gen, &g->base);
    const bool strange = g->bits && rng_chance(&gen, 25);
    for (int l = 0; l < LEAVES; l++) {
        sizes s = g->base;
        if (l >= 4) {
            const int drop = (int)rng_below(&gen, s.rank + 1);
            s.rank -= drop;
            memmove(s.size, s.size + drop, sizeof(int64_t) * (size_t)s.rank);
            for (int d = 0; d < s.rank; d++)
                if (rng_chance(&gen, 40)) s.size[d] = 1;
        }
        const enum view view = l ? (enum view)rng_below(&gen, VIEWS) : VIEW_NONE;
        g->leaf[l] = some_view(&gen, view, g->type, &s, 2, &g->whole[l]);
        if (strange) sprinkle(&gen, g->type, duet_update(g->whole[l]), duet_count(g->whole[l]));
    }
}

static void free_view(duet_matrix **m, duet_matrix **whole)
{
    if (*whole == *m) *whole = NULL;
    duet_free(m);
    duet_free(whole);
}

static void free_leaves(random_formula *g)
{
    for (int l = 0; l < LEAVES; l++) free_view(&g->leaf[l], &g->whole[l]);
}

static part seal(random_formula *g, duet_expr e, bool wild)
{
    g->made[g->makes++] = e;
    return (part){ e, sizes_of_expr(e), wild, 0 };
}

/* Converts bools to numbers, because most rows do not accept bools. */
static part counted(random_formula *g, duet_expr e, bool wild)
{
    return seal(g, duet_expr_type(e) == DUET_BOOL ? (duet_cast)(e, g->type) : e, wild);
}

static part with(part p, uint64_t made_of)
{
    p.made_of |= made_of;
    return p;
}

static part pick(random_formula *g, rng *gen, const part *grown, int count, bool number)
{
    if (number && rng_chance(gen, 20)) {
        static const double special[] = { 0, 1, -1, 2, 0.5, -4, 0.1, 3 };
        return seal(g,
                    rng_chance(gen, 40) ? duet_of_number(special[rng_below(gen, 8)])
                                        : duet_of_number(rng_real(gen, -3, 3)),
                    false);
    }
    const bool chain = g->bits && !number; /* so that few parts remain unused */
    if (count && rng_chance(gen, chain ? 97 : 65))
        return grown[rng_chance(gen, chain ? 97 : 60) ? count - 1 : rng_below(gen, count)];
    return seal(g, duet_of_matrix(g->leaf[rng_below(gen, LEAVES)]), false);
}

/* Brings an operand into the domain of the row that uses it. */
static duet_expr bring_into_domain(part p, double low, double high)
{
    duet_expr e = p.e;
    if (p.wild && high < 1e3) e = (duet_mul)((duet_tanh)(e), duet_of_number(high > 9 ? 9 : high));
    if (low >= 0) e = (duet_add)((duet_abs)(e), duet_of_number(low > 0.1 ? low : 0.125));
    return e;
}

/* Any row. Formulas for bit comparison often get rows that round once, because rewrites concern
 * these. */
static const row *any_map(const random_formula *g, rng *gen)
{
    const bool plain = g->bits && rng_chance(gen, 60);
    const row *r;
    do r = &maps[rng_below(gen, LENGTH(maps))];
    while (plain && (r->ulp > 0.5 || op_infos[r->op].flags & DUET_JUMPS));
    return r;
}

static part map_part(random_formula *g, rng *gen, const part *grown, int count)
{
    const row *r = any_map(g, gen);
    duet_expr x[3];
    uint64_t made_of = 0;
    bool wild = r->op == OP_exp || r->op == OP_pow || r->op == OP_mul || r->op == OP_div || r->op == OP_fma;
    const int strong = (int)rng_below(gen, r->arity); /* one operand is a matrix, not a number */
    for (int k = 0; k < r->arity; k++) {
        part p = pick(g, gen, grown, count, k != strong);
        made_of |= p.made_of;
        wild |= p.wild && r->op != OP_tanh && r->op != OP_sigmoid;
        const bool narrow =
            r->op == OP_exp || r->op == OP_pow || r->op == OP_log || r->op == OP_sqrt || r->op == OP_div;
        if (narrow)
            x[k] =
                bring_into_domain(p, r->domain[2 * k], r->domain[2 * k + 1] > 9 ? 9 : r->domain[2 * k + 1]);
        else x[k] = p.e;
    }
    return with(counted(g, r->make(x, NULL), wild), made_of);
}

/* A reduction whose result still broadcasts with all other parts. */
static part reduce_part(random_formula *g, rng *gen, const part *grown, int count)
{
    const row *r = &reductions[rng_below(gen, LENGTH(reductions))];
    part p = pick(g, gen, grown, count, false), q = p;
    for (int d = 0; d < g->base.rank; d++)
        if (!g->base.size[d]) return p; /* the minimum of no elements is an error */
    const int form = (int)rng_below(gen, p.s.rank ? 4 : 1);
    int choices = p.s.rank;
    if (form == 3) choices = p.s.rank > 1 ? 3 : 2;
    const int how[] = { form, (int)rng_below(gen, choices) };
    if (rng_chance(gen, 50)) {
        const part other = pick(g, gen, grown, count, false);
        if (same_sizes(&other.s, &p.s)) q = other;
    }
    const duet_expr x[] = { p.e, q.e };
    const bool wild = p.wild || q.wild || r->op == OP_dot || r->op == OP_sum || r->op == OP_norm;
    return with(counted(g, r->make(x, how), wild), p.made_of | q.made_of);
}

/* An index; the formula ends with it. */
static part index_part(random_formula *g, rng *gen, part p)
{
    for (int d = 0; d < p.s.rank; d++)
        if (!p.s.size[d]) return p;
    const int how[] = { (int)rng_below(gen, p.s.rank ? 3 : 1), (int)rng_below(gen, p.s.rank) };
    return with(seal(g, indices[rng_below(gen, LENGTH(indices))].make(&p.e, how), false), p.made_of);
}

/* Operators on whole matrices; returns the part itself where they do not fit. */
static part def_part(random_formula *g, rng *gen, const part *grown, int count)
{
    const part p = pick(g, gen, grown, count, false), q = pick(g, gen, grown, count, false);
    const bool square = p.s.rank == 2 && p.s.size[0] == p.s.size[1];
    switch (rng_below(gen, g->bits ? 3 : 4)) { /* products are not compared by bits */
    case 0:
        if (p.s.rank) return with(seal(g, (duet_softmax)(bring_into_domain(p, -9, 9)), false), p.made_of);
        return p;
    case 1:
        if (p.s.rank) return with(seal(g, (duet_log_softmax)(bring_into_domain(p, -9, 9)), false), p.made_of);
        return p;
    case 2: return square || p.s.rank < 2 ? with(seal(g, (duet_transpose)(p.e), p.wild), p.made_of) : p;
    default:
        if (!square || !same_sizes(&p.s, &q.s)) return p;
        g->vendor = true;
        return seal(g, (duet_matmul)(rng_chance(gen, 30) ? (duet_transpose)(p.e) : p.e, q.e), true);
    }
}

/* ---- operators that select or arrange elements, with results that still broadcast ---- */

/* x with a change before an operator, and the inverse of the change behind it. */
static duet_expr there_and_back(rng *gen, const part *p)
{
    int order[DUET_RANK_MAX], back[DUET_RANK_MAX];
    int64_t count = 1;
    for (int d = 0; d < p->s.rank; d++) {
        order[d] = d;
        count *= p->s.size[d];
    }
    for (int d = p->s.rank; d-- > 1;) {
        const int with = (int)rng_below(gen, d + 1), t = order[d];
        order[d] = order[with];
        order[with] = t;
    }
    for (int d = 0; d < p->s.rank; d++) back[order[d]] = d;
    const bool flat = rng_chance(gen, 50);
    const duet_expr other = flat ? (duet_reshape)(p->e, 1, &count) : (duet_permute)(p->e, p->s.rank, order);
    const duet_expr inner = rng_chance(gen, 50) ? (duet_neg)(other) : (duet_sub)(duet_of_number(1), other);
    return flat ? (duet_reshape)(inner, p->s.rank, p->s.size) : (duet_permute)(inner, p->s.rank, back);
}

static part view_part(random_formula *g, rng *gen, const part *grown, int count)
{
    const part p = pick(g, gen, grown, count, false);
    const int axis = p.s.rank ? (int)rng_below(gen, p.s.rank) : 0;
    const bool square = p.s.rank == 2 && p.s.size[0] == p.s.size[1], empty = p.s.rank && !p.s.size[axis];
    duet_expr e;
    if (!p.s.rank) return with(seal(g, (duet_broadcast)(p.e, g->base.rank, g->base.size), p.wild), p.made_of);
    switch (rng_below(gen, 5)) {
    case 0: e = (duet_flip)(p.e, axis); break;
    case 1: e = there_and_back(gen, &p); break;
    case 2:
        if (empty) return p;
        const int64_t i = rng_below(gen, p.s.size[axis]);
        e = (duet_range)(p.e, axis, i, i + 1, 1);
        break;
    case 3: e = (duet_broadcast)(p.e, g->base.rank, g->base.size); break;
    default:
        if (!square) return p;
        e = (duet_diagonal_of)(p.e, 0);
    }
    return with(seal(g, e, p.wild), p.made_of);
}

/* Builds the same parts each time for one random_formula. */
static void build_parts(random_formula *g, rng *gen, part grown[NODES])
{
    g->vendor = false;
    g->makes = 0;
    for (int count = 0; count < g->target; count++) {
        const int64_t kind = rng_below(gen, 100);
        if (kind < 80) grown[count] = map_part(g, gen, grown, count);
        else if (kind < 90) grown[count] = reduce_part(g, gen, grown, count);
        else if (kind < 94) grown[count] = def_part(g, gen, grown, count);
        else grown[count] = view_part(g, gen, grown, count);
        grown[count].made_of |= 1ull << count;
    }
}

static duet_expr build_formula(random_formula *g)
{
    rng gen = rng_new(g->seed ^ 0x5eed);
    part grown[NODES];
    build_parts(g, &gen, grown);
    if (rng_chance(&gen, 8)) return index_part(g, &gen, grown[g->target - 1]).e;
    return grown[g->target - 1].e;
}

/* Drops all formulas except the one that was evaluated. */
static void clear(random_formula *g)
{
    while (g->makes) forget(g->made[--g->makes]);
}

#endif
