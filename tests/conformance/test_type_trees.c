/* test_type_trees.c - random formulas of mixed types, on every machine and in every fusion mode:
 * against the oracle, with equal bits, and several statements together against one by one.
 *
 *     test_type_trees [how many] [seed of the first] */
#include "type_values.h"

/* ---- random formulas ---- */

#define LEAVES 6
#define PARTS  12
#define GOALS  3

typedef struct random_formula {
    uint64_t seed;
    sizes shape;
    duet_matrix *leaf[LEAVES];
    duet_expr made[GOALS * 8 * PARTS];
    int makes;
} random_formula;

static duet_dtype real_type(void)
{
    static const duet_dtype usual[] = { DUET_F32, DUET_F32, DUET_F64,  DUET_I64,
                                        DUET_I32, DUET_U8,  DUET_BOOL, DUET_F16 };
    if (rng_chance(&gen, 60)) return usual[rng_below(&gen, 8)];
    return (duet_dtype)rng_below(&gen, DUET_C64);
}

static duet_expr kept(random_formula *g, duet_expr e) { return g->made[g->makes++] = e; }

/* The formula itself if it may promote to t; otherwise cast. */
static duet_expr operand_of_type(duet_expr e, duet_dtype t, bool may)
{
    const duet_dtype from = duet_expr_type(e);
    if (from == t || (may && promoted(from, t) == t && rng_chance(&gen, 80))) return e;
    return (duet_cast)(e, t);
}

static const row *any_row(duet_dtype t)
{
    const int all = LENGTH(maps) + LENGTH(integer_maps);
    for (;;) {
        const int i = (int)rng_below(&gen, all);
        const row *r = i < LENGTH(maps) ? &maps[i] : &integer_maps[i - LENGTH(maps)];
        const bool plain = r->ulp <= 0.5 && r->op != OP_pow && r->op != OP_div && r->op != OP_sqrt;
        if (admits(r, t) && (plain || rng_chance(&gen, 10))) return r;
    }
}

static duet_expr pick(random_formula *g, const duet_expr *grown, int count)
{
    if (count && rng_chance(&gen, 70))
        return grown[rng_chance(&gen, 60) ? count - 1 : rng_below(&gen, count)];
    return kept(g, duet_of_matrix(g->leaf[rng_below(&gen, LEAVES)]));
}

static duet_expr build_one(random_formula *g, const duet_expr *grown, int count)
{
    const duet_dtype t = real_type();
    const row *r = any_row(t);
    duet_expr x[3];
    /* the other operand determines the type */
    const int strong = r->arity - 1, number = rng_chance(&gen, 20) ? (int)rng_below(&gen, 2) : -1;
    for (int k = 0; k < r->arity; k++)
        x[k] = k == number && k != strong ? duet_of_integer(rng_below(&gen, 2))
                                          : operand_of_type(pick(g, grown, count), t, k != strong);
    return kept(g, r->make(x, 0, NULL));
}

static duet_expr grow_more(random_formula *g)
{
    duet_expr grown[PARTS];
    const int parts = 1 + (int)rng_below(&gen, PARTS);
    for (int i = 0; i < parts; i++) grown[i] = build_one(g, grown, i);
    duet_expr e = grown[parts - 1];
    if (!rng_chance(&gen, 20)) return e;
    static const int sums[] = { OP_sum, OP_min, OP_max, OP_any, OP_all };
    const int op = sums[rng_below(&gen, 5)];
    for (int i = 0; i < LENGTH(reductions); i++)
        if (reductions[i].op == op) return kept(g, reductions[i + rng_below(&gen, 2)].make(&e, 0, NULL));
    return e;
}

static duet_expr build_formula(random_formula *g)
{
    gen = rng_new(g->seed);
    g->makes = 0;
    return grow_more(g);
}

static void clear(random_formula *g)
{
    while (g->makes) forget(g->made[--g->makes]);
}

static void make_leaves(random_formula *g)
{
    gen = rng_new(g->seed ^ 0x5eed);
    g->shape = (sizes)SIZES(1 + rng_below(&gen, 6), 1 + rng_below(&gen, rng_chance(&gen, 20) ? 300 : 7));
    for (int l = 0; l < LEAVES; l++) {
        sizes s = g->shape;
        if (l > 3) s.size[rng_below(&gen, 2)] = 1;
        g->leaf[l] = matrix_of(real_type(), &s, 5, -9, 9);
    }
}

static int64_t operators;

static void *evaluate(random_formula *g, int p, int mode, duet_dtype *type, int64_t *count)
{
    duet_expr e = build_formula(g);
    const sizes s = sizes_of_expr(e);
    const bool good = duet_expr_status(e) == DUET_OK;
    CHECK(good, "seed %llu: %s", (unsigned long long)g->seed, duet_error());
    *type = duet_expr_type(e);
    if (rng_chance(&gen, 30)) *type = is_real(promoted(*type, DUET_F32)) ? promoted(*type, DUET_F32) : *type;
    duet_matrix *m = duet_new_shape(*type, s.rank, s.size);
    const char *why = NULL;
    plan_fusion(mode);
    if (good) DUET_ON(place[p]) why = oracle_refutes(m, e);
    operators += g->makes;
    clear(g);
    CHECK(!why, "seed %llu on %s, fusion %s: %s", (unsigned long long)g->seed, place_name(place[p]),
          mode_names[mode], why);
    void *got = elements(m);
    *count = duet_count(m);
    duet_free(&m);
    return got;
}

static void one_tree(uint64_t seed)
{
    random_formula g = { .seed = seed };
    duet_dtype type;
    int64_t count;
    make_leaves(&g);
    void *first = NULL;
    for (int p = 0; p < places; p++)
        for (int mode = 0; mode < MODES; mode++) {
            void *got = evaluate(&g, p, mode, &type, &count);
            CHECK(!first || !got || same_bits(type, first, got, count),
                  "seed %llu on %s, fusion %s: the bits differ from those of the first run",
                  (unsigned long long)seed, place_name(place[p]), mode_names[mode]);
            if (first) free(got);
            else first = got;
        }
    free(first);
    plan_fusion(-1);
    for (int l = 0; l < LEAVES; l++) duet_free(&g.leaf[l]);
}

/* ---- statements into leaves that they and later ones read: together and one by one ---- */

typedef struct state {
    char *bytes[GOALS];
} state;

static state taken(const random_formula *g)
{
    state s;
    for (int k = 0; k < GOALS; k++) s.bytes[k] = elements(g->leaf[k]);
    return s;
}

static void put_back(random_formula *g, const state *s)
{
    for (int k = 0; k < GOALS; k++) fill_from(g->leaf[k], s->bytes[k]);
}

static void drop_state(state *s)
{
    for (int k = 0; k < GOALS; k++) free(s->bytes[k]);
}

static bool same_state(const random_formula *g, const state *a, const state *b)
{
    bool same = true;
    for (int k = 0; k < GOALS; k++)
        same &= same_bits(duet_type(g->leaf[k]), a->bytes[k], b->bytes[k], duet_count(g->leaf[k]));
    return same;
}

static duet_status all_statements(random_formula *g, bool together)
{
    duet_assignment a[GOALS];
    duet_status s = DUET_OK;
    build_formula(g);
    clear(g);
    for (int k = 0; k < GOALS; k++) {
        const duet_expr e = grow_more(g);
        const duet_dtype t = duet_type(g->leaf[k]);
        a[k] = (duet_assignment){ g->leaf[k],
                                  kept(g, promoted(duet_expr_type(e), t) == t ? e : (duet_cast)(e, t)) };
        if (!together && s == DUET_OK) s = (duet_set)(a[k].to, a[k].value);
    }
    if (together) s = (duet_set_all)(a, GOALS);
    if (s != DUET_OK) printf("# %s\n", duet_error());
    clear(g);
    return s;
}

static void several(uint64_t seed)
{
    random_formula g = { .seed = seed };
    make_leaves(&g);
    state before = taken(&g);
    plan_fusion(MODE_NONE);
    DUET_ON(DUET_CPU)
    CHECK(all_statements(&g, false) == DUET_OK, "seed %llu: %s", (unsigned long long)seed, duet_error());
    state want = taken(&g);
    for (int p = 0; p < places; p++)
        for (int mode = 0; mode < MODES; mode++) {
            put_back(&g, &before);
            plan_fusion(mode);
            DUET_ON(place[p])
            CHECK(all_statements(&g, true) == DUET_OK, "seed %llu: %s", (unsigned long long)seed,
                  duet_error());
            state got = taken(&g);
            CHECK(same_state(&g, &want, &got),
                  "seed %llu on %s, fusion %s: the bits differ from those of single statements",
                  (unsigned long long)seed, place_name(place[p]), mode_names[mode]);
            drop_state(&got);
        }
    drop_state(&before);
    drop_state(&want);
    plan_fusion(-1);
    for (int l = 0; l < LEAVES; l++) duet_free(&g.leaf[l]);
}

static void trees(int count, uint64_t seed)
{
    for (int i = 0; i < count; i++) {
        one_tree(seed + (uint64_t)i);
        several(seed + (uint64_t)i);
        if (i % 100 == 99 || i == count - 1) tap_point("random formulas of mixed types");
    }
    printf("# %d formulas of %lld operators; %lld elements bounded, %lld admitted anything\n", count,
           (long long)operators, (long long)oracle_bounded, (long long)oracle_wild);
    CHECK(oracle_wild < oracle_bounded / 4, "the reference has no error bound for too many elements");
    tap_point("the error bounds of the oracle hold");
}

int main(int argc, char **argv)
{
    const int count = trial_count(argc, argv, 100, 1000);
    list_places_of_types();
    trees(count, argc > 2 ? strtoull(argv[2], NULL, 0) : 1);
    return tap_end();
}
