/* test_trees.c - random formulas from the table against the oracle: by every machine and in every fusion mode, with equal bits.
 *
 *     test_trees [how many] [seed of the first]
 *
 * A tree that fails prints its seed: `test_trees 1 SEED` repeats it. */
#include "common.h"
#include "modes.h"
#include "ops.h"

#define LEAVES 7
#define NODES  24

typedef duet_expr maker(const duet_expr *x, const int *a);
typedef struct row {
    const char *name;
    int op, arity;
    maker *make;
    double domain[6];
} row;

#define UNPACK(...) __VA_ARGS__
#define DUET_MAP1(name, ...)                                                                                                     \
    static duet_expr make_##name(const duet_expr *x, const int *a) { return (duet_##name)(x[0]); }
#define DUET_MAP2(name, ...)                                                                                                     \
    static duet_expr make_##name(const duet_expr *x, const int *a) { return (duet_##name)(x[0], x[1]); }
#define DUET_MAP3(name, ...)                                                                                                     \
    static duet_expr make_##name(const duet_expr *x, const int *a) { return (duet_##name)(x[0], x[1], x[2]); }
/* a[0]: 0 all, 1 along the first axis, 2 along axis a[1], kept */
#define DUET_FOLD1(name, ...)                                                                                                    \
    static duet_expr make_##name(const duet_expr *x, const int *a)                                                               \
    {                                                                                                                            \
        return a[0] == 2 ? (duet_##name##_keep)(x[0], a[1]) : a[0] ? (duet_##name##_axis)(x[0], 0) : (duet_##name)(x[0]);        \
    }
#define DUET_FOLD2(name, ...)                                                                                                    \
    static duet_expr make_##name(const duet_expr *x, const int *a)                                                               \
    {                                                                                                                            \
        return a[0] == 2 ? (duet_##name##_keep)(x[0], x[1], a[1])                                                                \
               : a[0]    ? (duet_##name##_axis)(x[0], x[1], 0)                                                                   \
                         : (duet_##name)(x[0], x[1]);                                                                               \
    }
#define DUET_MOMENT1 DUET_FOLD1
#define DUET_PLACE1  DUET_FOLD1
#include <duet/ops.def>

static const row maps[] = {
#define DUET_MAP1(name, f, o, domain, ...) { #name, OP_##name, 1, make_##name, { UNPACK domain } },
#define DUET_MAP2(name, f, o, domain, ...) { #name, OP_##name, 2, make_##name, { UNPACK domain } },
#define DUET_MAP3(name, f, o, domain, ...) { #name, OP_##name, 3, make_##name, { UNPACK domain } },
#include <duet/ops.def>
};
static const row folds[] = {
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

/* A grown formula, and what the rules of growing need: its sizes, and whether its values may be far from 1. */
typedef struct part {
    duet_expr e;
    sizes s;
    bool wild;
} part;

typedef struct garden {
    uint64_t seed;
    duet_dtype type;
    sizes base;
    duet_matrix *leaf[LEAVES];
    int target; /* how many operators */
    duet_dtype result;
    bool vendor;               /* it has a step that answers within a bound only */
    duet_expr made[8 * NODES]; /* all that was made while it grew, to be dropped */
    int makes;
} garden;

static bool same_sizes(const sizes *a, const sizes *b)
{
    return a->rank == b->rank && !memcmp(a->size, b->size, sizeof(int64_t) * (size_t)a->rank);
}

/* Leaves: the base shape, views of it, and what broadcasts to it. */
static void plant(garden *g)
{
    rng dice = rng_new(g->seed);
    g->type = rng_chance(&dice, 30) ? DUET_F64 : DUET_F32;
    g->target = 2 + (int)rng_below(&dice, 19);
    g->base.rank = (int)rng_below(&dice, 4);
    for (int d = 0; d < g->base.rank; d++) g->base.size[d] = 1 + rng_below(&dice, rng_chance(&dice, 20) ? 40 : 6);
    if (g->base.rank == 2 && rng_chance(&dice, 50)) g->base.size[1] = g->base.size[0];
    if (g->base.rank && rng_chance(&dice, 2)) g->base.size[0] = 0;
    for (int l = 0; l < LEAVES; l++) {
        sizes s = g->base;
        if (l >= 4) {
            const int drop = (int)rng_below(&dice, s.rank + 1);
            s.rank -= drop, memmove(s.size, s.size + drop, sizeof(int64_t) * (size_t)s.rank);
            for (int d = 0; d < s.rank; d++)
                if (rng_chance(&dice, 40)) s.size[d] = 1;
        }
        const enum view view = l ? (enum view)rng_below(&dice, VIEWS) : VIEW_NONE;
        g->leaf[l] = random_view(&dice, view, g->type, s.rank, s.size, -2, 2, NULL);
        if (!g->leaf[l]) g->leaf[l] = random_matrix(&dice, g->type, s.rank, s.size, -2, 2);
    }
}

static void uproot(garden *g)
{
    for (int l = 0; l < LEAVES; l++) duet_free(&g->leaf[l]);
}

static part seal(garden *g, duet_expr e, bool wild)
{
    g->made[g->makes++] = e;
    return (part){ e, sizes_of_expr(e), wild };
}

static part pick(garden *g, rng *dice, const part *grown, int count, bool number)
{
    if (number && rng_chance(dice, 20)) {
        static const double special[] = { 0, 1, -1, 2, 0.5, -4, 0.1, 3 };
        return seal(g, rng_chance(dice, 40) ? duet_of_number(special[rng_below(dice, 8)]) : duet_of_number(rng_real(dice, -3, 3)),
                    false);
    }
    if (count && rng_chance(dice, 65)) return grown[rng_chance(dice, 60) ? count - 1 : rng_below(dice, count)];
    return seal(g, duet_of_matrix(g->leaf[rng_below(dice, LEAVES)]), false);
}

/* Brings an operand into the domain of the row that will have it. */
static duet_expr tame(part p, double low, double high)
{
    duet_expr e = p.e;
    if (p.wild && high < 1e3) e = (duet_mul)((duet_tanh)(e), duet_of_number(high > 9 ? 9 : high));
    if (low >= 0) e = (duet_add)((duet_abs)(e), duet_of_number(low > 0.1 ? low : 0.125));
    return e;
}

static part map_part(garden *g, rng *dice, const part *grown, int count)
{
    const row *r = &maps[rng_below(dice, LENGTH(maps))];
    duet_expr x[3];
    bool wild = r->op == OP_exp || r->op == OP_pow || r->op == OP_mul || r->op == OP_div || r->op == OP_fma;
    const int strong = (int)rng_below(dice, r->arity); /* one operand is no number */
    for (int k = 0; k < r->arity; k++) {
        part p = pick(g, dice, grown, count, k != strong);
        wild |= p.wild && r->op != OP_tanh && r->op != OP_sigmoid;
        const bool narrow = r->op == OP_exp || r->op == OP_pow || r->op == OP_log || r->op == OP_sqrt || r->op == OP_div;
        x[k] = narrow ? tame(p, r->domain[2 * k], r->domain[2 * k + 1] > 9 ? 9 : r->domain[2 * k + 1]) : p.e;
    }
    return seal(g, r->make(x, NULL), wild);
}

/* A reduction whose result still broadcasts with everything else. */
static part fold_part(garden *g, rng *dice, const part *grown, int count)
{
    const row *r = &folds[rng_below(dice, LENGTH(folds))];
    part p = pick(g, dice, grown, count, false), q = p;
    for (int d = 0; d < g->base.rank; d++)
        if (!g->base.size[d]) return p; /* the least of nothing is an error */
    const int how[] = { (int)rng_below(dice, p.s.rank ? 3 : 1), (int)rng_below(dice, p.s.rank) };
    if (rng_chance(dice, 50)) {
        const part other = pick(g, dice, grown, count, false);
        if (same_sizes(&other.s, &p.s)) q = other;
    }
    const duet_expr x[] = { p.e, q.e };
    return seal(g, r->make(x, how), p.wild || q.wild || r->op == OP_dot || r->op == OP_sum || r->op == OP_norm);
}

/* An index, with which the formula ends. */
static part index_part(garden *g, rng *dice, part p)
{
    for (int d = 0; d < p.s.rank; d++)
        if (!p.s.size[d]) return p;
    const int how[] = { (int)rng_below(dice, p.s.rank ? 3 : 1), (int)rng_below(dice, p.s.rank) };
    return seal(g, indices[rng_below(dice, LENGTH(indices))].make(&p.e, how), false);
}

/* Operators on whole matrices; the part itself where they do not fit. */
static part def_part(garden *g, rng *dice, const part *grown, int count)
{
    const part p = pick(g, dice, grown, count, false), q = pick(g, dice, grown, count, false);
    const bool square = p.s.rank == 2 && p.s.size[0] == p.s.size[1];
    switch (rng_below(dice, 4)) {
    case 0: return p.s.rank ? seal(g, (duet_softmax)(tame(p, -9, 9)), false) : p;
    case 1: return p.s.rank ? seal(g, (duet_log_softmax)(tame(p, -9, 9)), false) : p;
    case 2: return square || p.s.rank < 2 ? seal(g, (duet_transpose)(p.e), p.wild) : p;
    default:
        if (!square || !same_sizes(&p.s, &q.s)) return p;
        g->vendor = true;
        return seal(g, (duet_matmul)(rng_chance(dice, 30) ? (duet_transpose)(p.e) : p.e, q.e), true);
    }
}

/* The same formula every time, for one garden. */
static duet_expr grow(garden *g)
{
    rng dice = rng_new(g->seed ^ 0x5eed);
    part grown[NODES];
    int count = 0;
    g->vendor = false, g->makes = 0;
    while (count < g->target) {
        const int64_t kind = rng_below(&dice, 100);
        grown[count] = kind < 80   ? map_part(g, &dice, grown, count)
                       : kind < 90 ? fold_part(g, &dice, grown, count)
                                   : def_part(g, &dice, grown, count);
        count++;
    }
    if (rng_chance(&dice, 8)) return index_part(g, &dice, grown[count - 1]).e;
    return grown[count - 1].e;
}

/* Ends what stands beside the formula that was evaluated; what was in it is spent already. */
static void clear(garden *g)
{
    while (g->makes) forget(g->made[--g->makes]);
}

static duet_place place[2];
static int places;

static duet_matrix *destination(const garden *g, duet_expr e)
{
    rng dice = rng_new(g->seed + 77);
    const sizes s = sizes_of_expr(e);
    const duet_dtype type = duet_expr_type(e) == DUET_I64 ? DUET_I64 : g->type; /* of numbers alone the type is another */
    duet_matrix *m = random_view(&dice, (enum view)rng_below(&dice, VIEWS), type, s.rank, s.size, -5, 5, NULL);
    return m ? m : random_matrix(&dice, type, s.rank, s.size, -5, 5);
}

/* One evaluation, into a fresh matrix or a view, held against the oracle. */
static void *evaluate(garden *g, duet_place where, int mode, int64_t *count)
{
    const char *why = NULL;
    void *got = NULL;
    plan_fusion(mode);
    DUET_ON(where)
    {
        const duet_expr e = grow(g);
        if (duet_expr_status(e) == DUET_OK) {
            duet_matrix *m = destination(g, e);
            why = oracle_refutes(m, e);
            got = elements(m), *count = duet_count(m);
            g->result = duet_type(m);
            duet_free(&m);
        } else {
            why = duet_error();
        }
        clear(g);
    }
    CHECK(!why, "seed %llu, %s on %s, fusion %s: %s", (unsigned long long)g->seed, type_name(g->type), place_name(where),
          mode_names[mode], why);
    return got;
}

static void differ(garden *g, duet_place where, int mode)
{
    const duet_expr e = grow(g);
    CHECK(false, "seed %llu, %s: %s, fusion %s has other bits than the first: %s", (unsigned long long)g->seed,
          type_name(g->type), place_name(where), mode_names[mode], text_of(e));
    clear(g);
}

static void one_tree(uint64_t seed)
{
    garden g = { .seed = seed };
    plant(&g);
    void *first = NULL;
    int64_t count = 0;
    for (int p = 0; p < places; p++)
        for (int mode = 0; mode < MODES; mode++) {
            void *got = evaluate(&g, place[p], mode, &count);
            if (first && got && !g.vendor && !same_bits(g.result, first, got, count)) differ(&g, place[p], mode);
            if (first) free(got);
            else first = got;
        }
    free(first);
    uproot(&g);
}

int main(int argc, char **argv)
{
    const int count = argc > 1 && atoi(argv[1]) ? atoi(argv[1]) : is_quick(argc, argv) ? 60 : 1000;
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    places = list_places(place);
    for (int i = 0; i < count; i++) {
        one_tree(seed + (uint64_t)i);
        if (i % 50 == 49 || i == count - 1) tap_point("random formulas");
    }
    printf("# %d formulas, the first of seed %llu; %lld elements bounded, %lld admitted anything\n", count,
           (unsigned long long)seed, (long long)oracle_bounded, (long long)oracle_wild);
    CHECK(oracle_wild < oracle_bounded / 4, "the oracle admits too much");
    tap_point("the oracle bounds what it sees");
    return tap_end();
}
