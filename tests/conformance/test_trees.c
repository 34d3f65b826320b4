/* test_trees.c - random formulas against the oracle, on every machine and in every fusion mode,
 * with equal bits.
 *
 *     test_trees [how many] [seed of the first]
 *     test_trees [how many] [seed of the first] --bits            more, without the oracle: longer formulas,
 *                                                                 several outputs, in place, special values,
 *                                                                 every instruction set; one thread
 *     test_trees [how many] [seed of the first] --threads N       the same with larger matrices, with N
 *                                                                 threads and with one
 *
 * The last two also print a hash of the bits of all results: two states of the library agree if
 * their hashes do. A formula that fails prints its seed; `test_trees 1 SEED` with the same options
 * repeats it. */
#include "isas.h"
#include "modes.h"
#include "random_formula.h"
#include <math.h>
#include <omp.h>

#define OUTPUTS 4

static duet_place place[2];
static int places;

static duet_matrix *destination(const random_formula *g, duet_expr e)
{
    rng gen = rng_new(g->seed + 77);
    const sizes s = sizes_of_expr(e);
    const duet_dtype type =
        duet_expr_type(e) == DUET_I64 ? DUET_I64 : g->type; /* a formula of numbers alone has another type */
    duet_matrix *m = random_view(&gen, (enum view)rng_below(&gen, VIEWS), type, s.rank, s.size, -5, 5, NULL);
    if (m) return m;
    return random_matrix(&gen, type, s.rank, s.size, -5, 5);
}

/* Evaluates once into a new matrix or view and compares with the oracle. */
static void *evaluate(random_formula *g, duet_place where, int mode, int64_t *count)
{
    const char *why = NULL;
    void *got = NULL;
    plan_fusion(mode);
    DUET_ON(where)
    {
        const duet_expr e = build_formula(g);
        if (duet_expr_status(e) == DUET_OK) {
            duet_matrix *m = destination(g, e);
            why = oracle_refutes(m, e);
            got = elements(m);
            *count = duet_count(m);
            g->result = duet_type(m);
            duet_free(&m);
        } else {
            why = duet_error();
        }
        clear(g);
    }
    CHECK(!why, "seed %llu, %s on %s, fusion %s: %s", (unsigned long long)g->seed, type_name(g->type),
          place_name(where), mode_names[mode], why);
    return got;
}

static void differ(random_formula *g, duet_place where, int mode)
{
    const duet_expr e = build_formula(g);
    CHECK(false, "seed %llu, %s: %s, fusion %s: the bits differ from those of the first run: %s",
          (unsigned long long)g->seed, type_name(g->type), place_name(where), mode_names[mode], text_of(e));
    clear(g);
}

static void one_tree(uint64_t seed)
{
    random_formula g = { .seed = seed };
    make_leaves(&g);
    void *first = NULL;
    int64_t count = 0;
    for (int p = 0; p < places; p++)
        for (int mode = 0; mode < MODES; mode++) {
            void *got = evaluate(&g, place[p], mode, &count);
            if (first && got && !g.vendor && !same_bits(g.result, first, got, count))
                differ(&g, place[p], mode);
            if (first) free(got);
            else first = got;
        }
    free(first);
    free_leaves(&g);
}

/* ---- more formulas, compared by bits ---- */

typedef struct output {
    duet_matrix *m, *whole;
    bool leaf;            /* a leaf of the formula: the statement is in place, and later ones read it */
    int64_t count;        /* elements of whole */
    void *before, *first; /* its elements before, and the first result */
} output;

typedef struct statement_set {
    random_formula g;
    output out[OUTPUTS];
    int outs;
} statement_set;

/* How a formula is evaluated. */
typedef struct evaluation_mode {
    duet_place where;
    int mode, isa, threads;
    bool one_by_one;
} evaluation_mode;

static int64_t compared, nans, statements, operators;
static uint64_t results_hash = 0xcbf29ce484222325;

static void hash_byte(unsigned char byte)
{
    results_hash = (results_hash ^ byte) * 0x100000001b3; /* FNV-1a */
}

/* Adds the results to the hash. All NaNs count as one value. */
static void hash_results(duet_dtype type, const void *p, int64_t count)
{
    const size_t bytes = dtypes[type].bytes;
    for (int64_t i = 0; i < count; i++) {
        const unsigned char *at = (const unsigned char *)p + (size_t)i * bytes;
        const bool nan = dtype_is_f32_or_f64(type) && isnan(element(type, p, i));
        for (size_t b = 0; b < bytes; b++) hash_byte(nan ? 0xff : at[b]);
    }
}

/* The formulas of the statements: the last part, and sometimes earlier parts, which the last one
 * may contain. */
static int build_all(random_formula *g, duet_expr e[OUTPUTS])
{
    rng gen = rng_new(g->seed ^ 0x5eed);
    part grown[NODES];
    build_parts(g, &gen, grown);
    g->made_of = grown[g->target - 1].made_of;
    const int count = rng_chance(&gen, 60) ? 1 : 2 + (int)rng_below(&gen, OUTPUTS - 1);
    for (int k = 0; k < count; k++) {
        const part p = grown[k == count - 1 ? g->target - 1 : rng_below(&gen, g->target)];
        g->made_of |= p.made_of;
        if (rng_chance(&gen, 8)) e[k] = index_part(g, &gen, p).e;
        else e[k] = p.e;
    }
    return count;
}

/* A view with the shape of the formula or of the base, or a leaf. */
static output new_output(random_formula *g, rng *gen, duet_expr e)
{
    const bool index = duet_expr_type(e) == DUET_I64, own = !index && rng_chance(gen, 20);
    const sizes s = !index && rng_chance(gen, 15) ? g->base : sizes_of_expr(e);
    const int l = (int)rng_below(gen, 4);
    output o = { .leaf = own, .m = g->leaf[l], .whole = g->whole[l] };
    if (!own)
        o.m = some_view(gen, (enum view)rng_below(gen, VIEWS), index ? DUET_I64 : g->type, &s, 5, &o.whole);
    o.count = duet_count(o.whole);
    const size_t bytes = (size_t)o.count * dtypes[duet_type(o.m)].bytes;
    o.before = malloc(2 * bytes + 2);
    o.first = (char *)o.before + bytes;
    const void *p = duet_read(o.whole);
    if (p) memcpy(o.before, p, bytes);
    return o;
}

static void make_outputs(statement_set *b)
{
    duet_expr e[OUTPUTS];
    rng gen = rng_new(b->g.seed + 77);
    make_leaves(&b->g);
    b->outs = build_all(&b->g, e);
    operators += __builtin_popcountll(b->g.made_of);
    for (int k = 0; k < b->outs; k++) b->out[k] = new_output(&b->g, &gen, e[k]);
    clear(&b->g);
}

static void free_outputs(statement_set *b)
{
    for (int k = 0; k < b->outs; k++) {
        free(b->out[k].before);
        if (!b->out[k].leaf) free_view(&b->out[k].m, &b->out[k].whole);
    }
    free_leaves(&b->g);
}

static bool restore(const output *o)
{
    void *p = duet_overwrite(o->whole);
    if (p) memcpy(p, o->before, (size_t)o->count * dtypes[duet_type(o->m)].bytes);
    return p || !o->count;
}

static duet_status together(statement_set *b)
{
    duet_expr e[OUTPUTS];
    duet_assignment a[OUTPUTS];
    build_all(&b->g, e);
    for (int k = 0; k < b->outs; k++) a[k] = (duet_assignment){ b->out[k].m, e[k] };
    const duet_status s = b->outs == 1 ? (duet_set)(a[0].to, a[0].value) : (duet_set_all)(a, b->outs);
    clear(&b->g);
    return s;
}

static duet_status one_by_one(statement_set *b)
{
    duet_status s = DUET_OK;
    for (int k = 0; k < b->outs && s == DUET_OK; k++) {
        duet_expr e[OUTPUTS];
        build_all(&b->g, e);
        s = (duet_set)(b->out[k].m, e[k]);
        clear(&b->g);
    }
    return s;
}

static void print_tree(statement_set *b)
{
    duet_expr e[OUTPUTS];
    build_all(&b->g, e);
    for (int k = 0; k < b->outs; k++)
        printf("#     %s%s\n", b->out[k].leaf ? "in place: " : "", text_of(e[k]));
    clear(&b->g);
}

static const char *evaluation_text(const evaluation_mode *by)
{
    static char text[2][100];
    static int turn;
    char *t = text[turn++ % 2];
    snprintf(t, sizeof text[0], "%s (fusion %s, %s, %d threads%s)", place_name(by->where),
             mode_names[by->mode], isa_names[by->isa], by->threads, by->one_by_one ? ", one by one" : "");
    return t;
}

/* The whole storage of every output, including what surrounds it, equals the first result. */
static void compare(statement_set *b, const evaluation_mode *by, const evaluation_mode *first)
{
    bool same = true;
    for (int k = 0; k < b->outs; k++) {
        output *o = &b->out[k];
        const duet_dtype type = duet_type(o->m);
        const void *p = duet_read(o->whole);
        if (!p && o->count) same = false;
        else if (by != first) same &= same_bits(type, o->first, p, o->count);
        else if (o->count) memcpy(o->first, p, (size_t)o->count * dtypes[type].bytes);
        if (by == first && p) hash_results(type, p, o->count);
    }
    if (!CHECK(same, "seed %llu, %s: the bits with %s and with %s differ", (unsigned long long)b->g.seed,
               type_name(b->g.type), evaluation_text(by), evaluation_text(first)))
        print_tree(b);
}

static void evaluate_with(statement_set *b, const evaluation_mode *by, const evaluation_mode *first)
{
    bool ready = true;
    duet_status s = DUET_UNKNOWN;
    for (int k = 0; k < b->outs; k++) ready &= restore(&b->out[k]);
    plan_fusion(by->mode);
    use_isa(by->isa);
    omp_set_num_threads(by->threads);
    if (by->threads > 1) cpu_serial_seconds = 0;
    else cpu_serial_seconds = 1;
    if (ready) DUET_ON(by->where) s = by->one_by_one ? one_by_one(b) : together(b);
    if (CHECK(s == DUET_OK, "seed %llu, %s: by %s: %s", (unsigned long long)b->g.seed, type_name(b->g.type),
              evaluation_text(by), duet_error()))
        compare(b, by, first);
    else print_tree(b);
}

static void tally(const statement_set *b)
{
    statements += b->outs;
    for (int k = 0; k < b->outs; k++) {
        const duet_dtype type = duet_type(b->out[k].m);
        for (int64_t i = 0; i < b->out[k].count && dtype_is_f32_or_f64(type); i++)
            nans += isnan(element(type, b->out[k].first, i));
        compared += b->out[k].count;
    }
}

/* First with one thread; then on every machine in every mode, with alternating instruction sets. */
static void bits_of_tree(uint64_t seed, int threads)
{
    statement_set b = { .g = { .seed = seed, .bits = true, .large = threads > 1 } };
    const evaluation_mode first = { DUET_CPU, MODE_MACHINE, ISAS - 1, 1, false },
                          run_in_thread = { DUET_CPU, MODE_MACHINE, seed % ISAS, threads, true };
    make_outputs(&b);
    evaluate_with(&b, &first, &first);
    for (int p = 0; p < places; p++)
        for (int mode = 0; mode < MODES; mode++) {
            const evaluation_mode by = { place[p], mode, (int)((seed + (unsigned)mode) % ISAS), threads,
                                         false };
            evaluate_with(&b, &by, &first);
        }
    if (b.outs > 1) evaluate_with(&b, &run_in_thread, &first);
    tally(&b);
    free_outputs(&b);
}

static void by_bits(int count, uint64_t seed, int threads)
{
    for (int i = 0; i < count; i++) {
        bits_of_tree(seed + (uint64_t)i, threads);
        if ((i + 1) % (count / 10 + 1) == 0 || i == count - 1)
            tap_point("random formulas give the same bits on every machine");
    }
    printf("# %d formulas of %lld operators, %lld statements, the first of seed %llu, %d threads; %lld "
           "elements, %lld NaN\n",
           count, (long long)operators, (long long)statements, (unsigned long long)seed, threads,
           (long long)compared, (long long)nans);
    printf("# hash of all results: %016llx\n", (unsigned long long)results_hash);
    CHECK(nans < compared / 2, "most of the results are NaN");
    tap_point("more than one machine can be compared");
}

static void by_oracle(int count, uint64_t seed)
{
    for (int i = 0; i < count; i++) {
        one_tree(seed + (uint64_t)i);
        if (i % 50 == 49 || i == count - 1) tap_point("random formulas");
    }
    printf("# %d formulas, the first of seed %llu; %lld elements bounded, %lld admitted anything\n", count,
           (unsigned long long)seed, (long long)oracle_bounded, (long long)oracle_wild);
    CHECK(oracle_wild < oracle_bounded / 4, "the reference has no error bound for too many elements");
    tap_point("the error bounds of the oracle hold");
}

int main(int argc, char **argv)
{
    const int count = trial_count(argc, argv, 60, 1000);
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    int threads = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--bits") && !threads) threads = 1;
        if (!strcmp(argv[i], "--threads") && i + 1 < argc) threads = atoi(argv[i + 1]);
    }
    places = list_places(place);
    if (threads) by_bits(count, seed, threads);
    else by_oracle(count, seed);
    return tap_end();
}
