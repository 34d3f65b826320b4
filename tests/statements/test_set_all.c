/* test_set_all.c - several statements at once: the bits of executing them one after the other, in
 * every fusion mode; the minimum number of passes; failures that change nothing.
 *
 *     test_set_all [how many] [seed of the first] */
#include "common.h"
#include "matrix.h"
#include "modes.h"
#include <math.h>

#define OK(call) CHECK((call) == DUET_OK, #call ": %s", duet_error())

enum { N = 6, MOST = 6 };

/* ---- matrices, some of which overlap ---- */

enum { WHOLE, LEFT, TWIN, TURNED, SHIFTED, BESIDE, FLAT, C, D, WIDE, V, ROW, COLUMN, SCALAR, CAST };
enum { FIRST_SQUARE = LEFT, LAST_SQUARE = D, FIRST_VECTOR = V, LAST_VECTOR = COLUMN };

typedef struct stage {
    duet_dtype type;
    duet_matrix
        *m[CAST]; /* LEFT to SHIFTED overlap each other in WHOLE, BESIDE is next to them; FLAT is all of D */
} stage;

static stage stage_new(duet_dtype type, uint64_t seed)
{
    rng gen = rng_new(seed);
    stage s = { .type = type };
    s.m[WHOLE] = random_matrix(&gen, type, 2, (int64_t[]){ 2 * N, 3 * N }, -2, 2);
    s.m[LEFT] = duet_submatrix(s.m[WHOLE], 1, 1, N, N);
    s.m[TWIN] = duet_submatrix(s.m[WHOLE], 1, 1, N, N);
    s.m[TURNED] = duet_transposed(s.m[LEFT]);
    s.m[SHIFTED] = duet_submatrix(s.m[WHOLE], 2, 3, N, N);
    s.m[BESIDE] = duet_submatrix(s.m[WHOLE], 1, 2 * N, N, N);
    s.m[C] = random_matrix(&gen, type, 2, (int64_t[]){ N, N }, -2, 2);
    s.m[D] = random_matrix(&gen, type, 2, (int64_t[]){ N, N }, -2, 2);
    s.m[FLAT] = duet_reshaped(s.m[D], N, N);
    s.m[WIDE] = random_matrix(&gen, type, 2, (int64_t[]){ N, 1 }, -2, 2);
    s.m[V] = random_matrix(&gen, type, 1, (int64_t[]){ N }, -2, 2);
    s.m[ROW] = duet_row(s.m[C], 2);
    s.m[COLUMN] = duet_column(s.m[LEFT], 3);
    s.m[SCALAR] = random_matrix(&gen, type, 0, NULL, -2, 2);
    return s;
}

static void stage_free(stage *s)
{
    for (int i = 0; i < CAST; i++) duet_free(&s->m[i]);
}

static bool same_stage(const stage *a, const stage *b)
{
    bool same = true;
    for (int i = 0; i < CAST; i++) {
        void *x = elements(a->m[i]), *y = elements(b->m[i]);
        same &= x && y && same_bits(a->type, x, y, duet_count(a->m[i]));
        free(x);
        free(y);
    }
    return same;
}

/* ---- random statements --------------------------------------------------------------------------------- */

static duet_expr pick(rng *gen, const stage *s)
{
    if (rng_chance(gen, 12)) return duet_of_number(rng_chance(gen, 50) ? 2 : rng_real(gen, -3, 3));
    if (rng_chance(gen, 15))
        return duet_of_matrix(s->m[FIRST_VECTOR + rng_below(gen, SCALAR - FIRST_VECTOR + 1)]);
    if (rng_chance(gen, 5)) return duet_of_matrix(s->m[WIDE]);
    return duet_of_matrix(s->m[FIRST_SQUARE + rng_below(gen, LAST_SQUARE - FIRST_SQUARE + 1)]);
}

static duet_expr build_formula(rng *gen, const stage *s, int depth);

static duet_expr square(rng *gen, const stage *s, int depth)
{
    duet_expr e = build_formula(gen, s, depth);
    if (duet_expr_rank(e) == 2 && duet_expr_size(e, 1) == N && duet_expr_size(e, 0) == N) return e;
    return (duet_add)(duet_of_matrix(s->m[LEFT + rng_below(gen, 3)]), e);
}

static duet_expr reduced(rng *gen, const stage *s, int depth)
{
    duet_expr x = square(gen, s, depth);
    switch (rng_below(gen, 8)) {
    case 0: return (duet_sum_keep)(x, 1);
    case 1: return (duet_mean_axis)(x, 0);
    case 2: return (duet_norm)(x);
    case 3: return (duet_max_axis)(x, 1);
    case 4: return (duet_var)(x);
    case 5: return (duet_dot_keep)(x, square(gen, s, depth), 0);
    case 6: return (duet_sub)((duet_max)(x), (duet_min)(x));
    default: return (duet_sum)(x);
    }
}

static duet_expr build_formula(rng *gen, const stage *s, int depth)
{
    if (depth <= 0 || rng_chance(gen, 15)) return pick(gen, s);
    switch (rng_below(gen, 13)) {
    case 0: return (duet_neg)(build_formula(gen, s, depth - 1));
    case 1: return (duet_abs)(build_formula(gen, s, depth - 1));
    case 2: return (duet_tanh)(build_formula(gen, s, depth - 1));
    case 3: return (duet_transpose)(square(gen, s, depth - 1));
    case 4: return (duet_softmax)(square(gen, s, depth - 1));
    case 5: return reduced(gen, s, depth - 1);
    case 6: return (duet_sub)(build_formula(gen, s, depth - 1), build_formula(gen, s, depth - 1));
    case 7:
    case 8: return (duet_mul)(build_formula(gen, s, depth - 1), build_formula(gen, s, depth - 1));
    case 9: return (duet_maximum)(build_formula(gen, s, depth - 1), build_formula(gen, s, depth - 1));
    case 10: {
        duet_expr x = square(gen, s, depth - 1); /* twice */
        return (duet_mul)(x, (duet_sigmoid)(x));
    }
    default: return (duet_add)(build_formula(gen, s, depth - 1), build_formula(gen, s, depth - 1));
    }
}

/* A statement whose shapes fit: mostly a square, sometimes a vector or a scalar. */
static duet_assignment drawn(rng *gen, const stage *s)
{
    const int64_t kind = rng_below(gen, 10);
    if (kind == 0) return (duet_assignment){ s->m[SCALAR], (duet_sum)(square(gen, s, 2)) };
    if (kind == 1) {
        duet_matrix *to = s->m[FIRST_VECTOR + rng_below(gen, LAST_VECTOR - FIRST_VECTOR + 1)];
        return (duet_assignment){ to, (duet_sum_axis)(square(gen, s, 2), (int)rng_below(gen, 2)) };
    }
    duet_matrix *to = s->m[FIRST_SQUARE + rng_below(gen, LAST_SQUARE - FIRST_SQUARE + 1)];
    return (duet_assignment){ to, build_formula(gen, s, (int)rng_below(gen, 4)) };
}

static duet_place place[2];
static int places;

/* The same statements, with the same generator, one after the other. */
static duet_status one_by_one(uint64_t seed, const stage *s, int count)
{
    rng gen = rng_new(seed);
    for (int i = 0; i < count; i++) {
        duet_assignment a = drawn(&gen, s);
        const duet_status status = (duet_set)(a.to, a.value);
        if (status != DUET_OK) return status;
    }
    return DUET_OK;
}

static void group_text(uint64_t seed, const stage *s, int count)
{
    rng gen = rng_new(seed);
    for (int i = 0; i < count; i++) {
        duet_assignment a = drawn(&gen, s);
        int to = 0;
        while (s->m[to] != a.to) to++;
        printf("#     %d: %s\n", to, text_of(a.value));
        forget(a.value);
    }
}

static void compare(uint64_t seed, duet_dtype type, int count, duet_place where, int mode)
{
    rng gen = rng_new(seed + 1);
    stage one = stage_new(type, seed), all = stage_new(type, seed);
    duet_assignment a[MOST];
    DUET_ON(where)
    {
        plan_fusion(MODE_MACHINE);
        OK(one_by_one(seed + 1, &one, count));
        plan_fusion(mode);
        for (int i = 0; i < count; i++) a[i] = drawn(&gen, &all);
        OK((duet_set_all)(a, count));
        plan_fusion(MODE_MACHINE);
        if (!CHECK(same_stage(&one, &all),
                   "seed %llu, %d statements, %s on %s, fusion %s: the bits differ from those of single "
                   "statements",
                   (unsigned long long)seed, count, type_name(type), place_name(where), mode_names[mode]))
            group_text(seed + 1, &all, count);
    }
    stage_free(&one);
    stage_free(&all);
}

static void random_groups(int trials, uint64_t seed)
{
    for (int t = 0; t < trials; t++) {
        rng gen = rng_new(seed + (uint64_t)t);
        const int count = 2 + (int)rng_below(&gen, MOST - 1);
        for (int p = 0; p < places; p++)
            for (int mode = 0; mode < MODES; mode++)
                compare(seed + (uint64_t)t, t % 4 ? DUET_F32 : DUET_F64, count, place[p], mode);
    }
    printf("# %d groups, the first of seed %llu\n", trials, (unsigned long long)seed);
    tap_point("random groups");
}

/* ---- results calculated by hand ---- */

static duet_matrix *filled(double first, double by)
{
    duet_matrix *m = duet_new(DUET_F32, 5);
    float *p = duet_overwrite(m);
    for (int i = 0; p && i < 5; i++) p[i] = (float)(first + by * i);
    return m;
}

static void holds(duet_matrix *m, double first, double by, const char *what)
{
    const float *p = duet_read(m);
    for (int64_t i = 0; p && i < duet_count(m); i++)
        CHECK(p[i] == (float)(first + by * (double)i), "%s[%d] is %g, not %g", what, (int)i, p[i],
              first + by * (double)i);
}
#define HOLDS(m, first, by) holds(m, first, by, #m)

static uint64_t steps_of(duet_counts before) { return duet_stats().steps - before.steps; }

static void sequence(void)
{
    duet_matrix *a = filled(1, 1), *b = filled(10, 10);
    OK(duet_set_all({ a, duet_add(b, 0) }, { b, duet_add(a, 0) })); /* not a swap: b is read from a */
    HOLDS(a, 10, 10);
    HOLDS(b, 10, 10);
    OK(duet_set_all({ a, duet_mul(2, a) }, { a, duet_add(a, 1) }, { b, duet_sub(a, b) }, { a, DUET(7) }));
    HOLDS(a, 7, 0);
    HOLDS(b, 11, 10);
    OK(duet_set_all({ a, DUET(b) }, { b, DUET(a) }, { b, duet_add(b, a) }));
    HOLDS(a, 11, 10);
    HOLDS(b, 22, 20);
    duet_expr shared = duet_mul(2, a); /* has another value once a is set */
    OK(duet_set_all({ a, duet_add(shared, 1) }, { b, duet_add(shared, 0) }));
    HOLDS(a, 23, 20);
    HOLDS(b, 46, 40);
    duet_expr held = duet_hold(duet_add(a, 1));
    OK(duet_set_all({ a, held }, { a, held }, { b, held }));
    HOLDS(a, 25, 20);
    HOLDS(b, 26, 20);
    OK(duet_drop(held));
    duet_expr twice = duet_add(a, 1);
    OK(duet_set_all({ b, twice }, { a, twice }));
    HOLDS(a, 26, 20);
    HOLDS(b, 26, 20);
    duet_free(&a);
    duet_free(&b);
    tap_point("a later statement reads results of earlier ones");
}

/* An earlier statement reads the old contents of a matrix that a later one sets, also in one pass. */
static void reads_first(void)
{
    duet_matrix *x = duet_new(DUET_F32, 3, 3), *a = duet_new(DUET_F32, 3, 3), *b = duet_new(DUET_F32, 3, 3);
    float *p = duet_overwrite(x), *q = duet_overwrite(a);
    for (int i = 0; p && q && i < 9; i++) {
        p[i] = (float)i;
        q[i] = 10;
    }
    const duet_status s = duet_set_all({ b, duet_mul(duet_add(x, 1), a) }, { a, duet_add(x, 1) });
    CHECK(s == DUET_OK, "%s", duet_error());
    holds(b, 10, 10, "b");
    holds(a, 1, 1, "a");
    duet_free(&x);
    duet_free(&a);
    duet_free(&b);
    tap_point("an earlier statement reads the old elements of a later destination");
}

/* The result of a statement may lack leading axes that its matrix has; a statement that reads the
 * matrix counts them. */
static void axes_of_earlier(void)
{
    duet_matrix *x = filled(1, 1), *a = duet_new(DUET_F32, 1, 5, 1), *b = duet_new(DUET_F32, 5, 1),
                *c = duet_new(DUET_F32, 5, 1);
    duet_matrix *column = duet_reshaped(x, 5, 1);
    const duet_status s = duet_set_all({ a, duet_mul(2, column) }, { b, duet_sum_axis(a, 0) },
                                       { c, duet_sum_axis(duet_add(a, 1), 0) });
    CHECK(s == DUET_OK, "%s", duet_error());
    holds(b, 2, 2, "b");
    holds(c, 3, 2, "c");
    duet_free(&column);
    duet_free(&x);
    duet_free(&a);
    duet_free(&b);
    duet_free(&c);
    tap_point("reductions of results of an earlier statement");
}

static void passes(void)
{
    duet_matrix *a = filled(1, 1), *b = filled(2, 3), *c = filled(0, 0), *d = filled(0, 0), *e = filled(0, 0),
                *s = duet_new(DUET_F32), *t = duet_new(DUET_F32);
    float *p;
    duet_counts before = duet_stats();
#define STEPS(n, ...)                                                                                        \
    before = duet_stats();                                                                                   \
    OK(__VA_ARGS__);                                                                                         \
    CHECK(steps_of(before) == n, "%s: %d steps, not %d", #__VA_ARGS__, (int)steps_of(before), n)
    STEPS(1, duet_set_all({ c, duet_add(a, b) }, { d, duet_sub(a, b) }));
    STEPS(1, duet_set_all({ c, duet_add(a, b) }, { d, duet_mul(c, c) }, { e, duet_sub(d, c) }));
    STEPS(1, duet_set_all({ c, duet_add(c, b) }, { d, duet_mul(c, b) }, { b, duet_sub(b, c) }));
    STEPS(2, duet_set_all({ a, duet_exp(a) }, { b, duet_exp(b) }, { c, duet_exp(c) }, { d, duet_exp(d) },
                          { e, duet_exp(e) }));
    /* the first result is never visible */
    STEPS(1, duet_set_all({ c, duet_add(a, b) }, { c, duet_mul(c, b) }));
    STEPS(1, duet_set_all({ s, duet_mean(a) }, { t, duet_var(a) }));
    STEPS(1, duet_set_all({ s, duet_max(duet_exp(a)) }, { t, duet_sum(duet_exp(a)) }));
    STEPS(1, duet_set(s, duet_norm(duet_sub(a, b))));
    STEPS(1, duet_set(s, duet_mean(duet_exp(a))));
    STEPS(1, duet_set(s, duet_dot(duet_exp(a), duet_sub(a, b))));
    STEPS(3, duet_set(c, duet_div(duet_sub(a, duet_mean(a)),
                                  duet_sqrt(duet_var(a))))); /* also the square root of one element */
    STEPS(2, duet_set_all({ s, duet_sum(a) }, { c, duet_div(a, s) }));
    STEPS(3, duet_set_all({ s, duet_sum(a) }, { t, duet_norm(duet_div(a, s)) },
                          { c, duet_div(a, t) })); /* each needs the one before */
    p = duet_overwrite(a);
    for (int i = 0; i < 5; i++) p[i] = (float)i;
    STEPS(1, duet_set_all({ c, duet_add(duet_abs(duet_mul(a, a)), a) }, { d, duet_neg(a) },
                          { a, duet_mul(a, a) }, { a, duet_sqrt(a) }));
    STEPS(1, duet_set_all({ c, duet_add(duet_abs(duet_mul(a, a)), a) },
                          { a, duet_mul(a, a) })); /* read after its destination was computed */
    const float *q = duet_read(c);
    CHECK(q && q[4] == 20 && q[3] == 12, "16 + 4 is %g", q ? q[4] : -1);
    OK(duet_set(a, duet_sqrt(a)));
    HOLDS(a, 0, 1);
    HOLDS(d, 0, -1);
    OK(duet_set_all({ s, duet_mean(a) }, { t, duet_var(a) }, { c, duet_div(duet_sub(a, s), duet_sqrt(t)) }));
    const float *r = duet_read(c);
    CHECK(r && fabsf(r[4] - sqrtf(2)) < 1e-6f, "(4 - 2) / sqrt 2 is %g", r ? r[4] : -1);
    duet_free(&a);
    duet_free(&b);
    duet_free(&c);
    duet_free(&d);
    duet_free(&e);
    duet_free(&s);
    duet_free(&t);
    tap_point("the minimum number of passes");
}

/* Formulas longer than a program, in as many steps as the limits require, with equal bits. */
static duet_expr long_one(duet_matrix *a, int operators)
{
    duet_expr e = duet_of_matrix(a);
    for (int i = 0; i < operators; i++) e = i % 3 ? duet_sub(e, a) : duet_abs(e);
    return e;
}

static duet_expr wide_one(duet_matrix *const m[], int matrices, bool times)
{
    duet_expr e[40];
    for (int i = 0; i < matrices; i++) e[i] = times ? duet_mul(m[i], (double)i + 2.5) : duet_of_matrix(m[i]);
    for (int by = 1; by < matrices; by *= 2) /* a balanced tree: many values are live */
        for (int i = 0; i + by < matrices; i += 2 * by) e[i] = duet_maximum(e[i], e[i + by]);
    return e[0];
}

/* Ladders: both sides of each rung use the previous one. */
static duet_expr ladder(duet_matrix *a, duet_matrix *b, int rungs)
{
    duet_expr x = duet_of_matrix(a), y = duet_of_matrix(b);
    for (int i = 0; i < rungs; i++) {
        duet_expr up = duet_maximum(x, y);
        y = duet_sub(x, y);
        x = up;
    }
    return duet_add(x, y);
}

static void large(void)
{
    enum { MATRICES = 40 };
    duet_matrix *m[MATRICES], *want = filled(0, 0), *got = filled(0, 0);
    for (int i = 0; i < MATRICES; i++) m[i] = filled(i, 0.37 * i);
    const struct {
        int kind, size, steps;
    } trial[] = { { 0, 60, 1 }, { 0, 90, 1 }, { 0, 120, 2 }, { 0, 500, 10 }, { 1, 16, 1 }, { 1, 17, 2 },
                  { 1, 31, 2 }, { 1, 40, 3 }, { 2, 16, 1 },  { 2, 40, 3 },   { 3, 12, 1 }, { 3, 60, 4 } };
    for (size_t t = 0; t < sizeof trial / sizeof *trial; t++) {
        const int size = trial[t].size;
        for (int mode = MODES; mode-- > 0;) {
            plan_fusion(mode);
            const duet_counts before = duet_stats();
            OK(duet_set(mode == MODE_NONE ? want : got, trial[t].kind == 0 ? long_one(m[3], size)
                                                        : trial[t].kind == 3
                                                            ? ladder(m[1], m[2], size)
                                                            : wide_one(m, size, trial[t].kind == 2)));
            if (mode == MODE_MACHINE)
                CHECK(steps_of(before) <= (uint64_t)trial[t].steps, "kind %d of %d: %d steps, not %d",
                      trial[t].kind, size, (int)steps_of(before), trial[t].steps);
            const void *p = duet_read(want), *q = duet_read(got);
            CHECK(mode == MODE_NONE || same_bits(DUET_F32, p, q, 5), "kind %d of %d: the bits differ",
                  trial[t].kind, size);
        }
    }
    for (int i = 0; i < MATRICES; i++) duet_free(&m[i]);
    duet_free(&want);
    duet_free(&got);
    tap_point("formulas beyond the limits of a program");
}

static void tangles(void)
{
    duet_matrix *w = duet_new(DUET_F32, 6), *low = duet_slice(w, 0, 5), *high = duet_slice(w, 1, 5),
                *c = filled(0, 0);
    float *p = duet_overwrite(w);
    for (int i = 0; i < 6; i++) p[i] = (float)(i + 1);
    OK(duet_set_all({ low, duet_mul(10, high) },
                    { high, duet_add(low, 0) })); /* 20 30 40 50 60 6, then shifted */
    const float want[] = { 20, 20, 30, 40, 50, 60 }, *r = duet_read(w);
    for (int i = 0; r && i < 6; i++) CHECK(r[i] == want[i], "[%d] is %g, not %g", i, r[i], want[i]);
    const duet_counts before =
        duet_stats(); /* an operand overlaps a later destination: two steps, no temporary */
    OK(duet_set_all({ c, duet_neg(high) }, { low, duet_mul(c, 2) }));
    CHECK(steps_of(before) == 2 && duet_stats().temporaries == before.temporaries, "%d steps, %d temporaries",
          (int)steps_of(before), (int)(duet_stats().temporaries - before.temporaries));
    duet_free(&w);
    duet_free(&low);
    duet_free(&high);
    duet_free(&c);
    tap_point("overlapping views");
}

static void mixed(void)
{
    duet_matrix *a = filled(1, 1), *c = filled(0, 0), *x = duet_new(DUET_F64, 5), *y = duet_new(DUET_F64, 5),
                *where = duet_new(DUET_I64), *copy = duet_new(DUET_I64), *s = duet_new(DUET_F32);
    OK(duet_set_all({ x, DUET(3) }, { c, duet_mul(a, a) }, { y, duet_add(x, 1) }, { a, duet_add(c, 1) }));
    const double *q = duet_read(y);
    const float *r = duet_read(a);
    CHECK(q && q[4] == 4 && r && r[4] == 26, "%g %g", q ? q[4] : -1, r ? r[4] : -1);
    OK(duet_set_all({ where, duet_argmax(a) }, { s, duet_max(a) }, { copy, DUET(where) }));
    const int64_t *i = duet_read(copy);
    const float *m = duet_read(s);
    CHECK(i && *i == 4 && m && *m == 26, "%d %g", i ? (int)*i : -1, m ? *m : -1);
    duet_free(&a);
    duet_free(&c);
    duet_free(&x);
    duet_free(&y);
    duet_free(&where);
    duet_free(&copy);
    duet_free(&s);
    tap_point("several element types");
}

/* ---- failures ------------------------------------------------------------------------------------------ */

static void fails(duet_status got, duet_status want, const char *number, const char *words)
{
    CHECK(got == want, "%s, not %s: %s", duet_status_text(got), duet_status_text(want), duet_error());
    CHECK(strstr(duet_error(), number) && strstr(duet_error(), words) &&
              strstr(duet_error(), "test_set_all.c:"),
          "'%s' or '%s' or the source line is not in '%s'", number, words, duet_error());
}

/* A failure during execution names the statement too, whether it shares a pass or not. */
static void bad_when_they_run(void)
{
    duet_matrix *a = filled(1, 1), *b = filled(2, 2), *c = filled(3, 3), *lost = duet_new(DUET_F32, 5),
                *nowhere = duet_new(DUET_I8, 5);
    DUET_ON(DUET_CPU)
    {
        OK(duet_set(nowhere, 9));
        fails(duet_set_all({ c, duet_add(a, 1) }, { b, duet_take(a, nowhere, 0) }), DUET_BAD_ARGUMENT,
              "statement 2", "index 9");
        fails(duet_set_all({ b, duet_take(a, nowhere, 0) }, { c, duet_add(a, 1) }), DUET_BAD_ARGUMENT,
              "statement 1", "index 9");
        fails(duet_set_all({ c, duet_sort(a, 0) }, { b, duet_add(a, 1) },
                           { b, duet_add(duet_take(duet_sort(b, 0), nowhere, 0), c) }),
              DUET_BAD_ARGUMENT, "statement 3", "index 9");
        HOLDS(b, 2, 2);
        HOLDS(c, 3, 3);
        matrix_lost(lost);
        fails(duet_set_all({ b, duet_add(a, 1) }, { c, duet_add(lost, 1) }), DUET_UNKNOWN, "statement 2",
              "lost");
    }
    duet_free(&a);
    duet_free(&b);
    duet_free(&c);
    duet_free(&lost);
    duet_free(&nowhere);
    tap_point("errors at run time name the statement");
}

/* A list with a bad index in its last statement changes nothing, although other statements ran.
 * What it does not name is not lost either. */
static void changes_nothing(bool overlapping, const char *name)
{
    static const int8_t indices[] = { 0, 9, 1, 2, 3 };
    duet_matrix *m = duet_new(DUET_F32, 4, 6), *a = filled(5, 1),
                *nowhere = duet_from_array(indices, DUET_I8, 5);
    duet_matrix *x = duet_submatrix(m, 1, 0, 1, 5), *y = duet_submatrix(m, 1, overlapping ? 1 : 0, 1, 5),
                *z = duet_submatrix(m, 3, 0, 1, 5);
    OK(duet_set(m, 7));
    DUET_ON(DUET_CPU)
    {
        fails(duet_set_all({ x, duet_cumsum(a, 0) }, { y, duet_add(x, y) }, { z, duet_take(a, nowhere, 0) }),
              DUET_BAD_ARGUMENT, "statement 3", "index 9");
        const float *p = duet_read(m);
        CHECK(p != NULL, "%s", duet_error());
        for (int i = 0; i < 24 && p; i++) CHECK(p[i] == 7, "element %d is %g, not 7", i, (double)p[i]);
        OK(duet_set_all({ x, duet_cumsum(a, 0) }, { y, duet_add(x, y) }, { z, DUET(a) }));
        CHECK(duet_read(m) != NULL, "%s", duet_error());
    }
    duet_free(&m, &a, &nowhere, &x, &y, &z);
    tap_point(name);
}

static void bad(void)
{
    duet_matrix *a = filled(1, 1), *b = filled(2, 2), *wide = duet_new(DUET_F32, 7),
                *d = duet_new(DUET_F64, 5), *gone = filled(0, 0), *null = NULL,
                *index = duet_new(DUET_I64, 5);
    duet_expr good = duet_mul(a, 2), freed = duet_add(gone, 1);
    fails(duet_set_all({ a, good }, { b, duet_add(a, 1) }, { b, duet_add(a, wide) }), DUET_BAD_SHAPE,
          "statement 3", "f32[7]");
    CHECK(duet_set(b, good) == DUET_SPENT, "the first formula was not consumed: %s", duet_error());
    fails(duet_set_all({ a, duet_mul(a, 2) }, { wide, duet_add(a, 1) }), DUET_BAD_SHAPE, "statement 2",
          "f32[7]");
    fails(duet_set_all({ a, duet_mul(a, 2) }, { a, duet_add(d, 1) }), DUET_BAD_TYPE, "statement 2", "f64[5]");
    fails(duet_set_all({ a, duet_mul(a, 2) }, { null, duet_add(a, 1) }), DUET_BAD_ARGUMENT, "statement 2",
          "must not be NULL");
    fails(duet_set_all({ a, duet_mul(a, 2) }, { index, DUET(1.5) }), DUET_BAD_TYPE, "statement 2",
          "1.5 is not a value of i64");
    fails(duet_set_all({ a, duet_mul(a, 2) }, { b, (duet_expr){ 0 } }), DUET_BAD_ARGUMENT, "statement 2",
          "e is not a formula");
    fails(duet_set_all({ a, duet_mul(a, 2) }, { b, good }), DUET_SPENT, "statement 2", "already");
    duet_free(&gone);
    fails(duet_set_all({ a, duet_mul(a, 2) }, { b, freed }), DUET_FREED, "statement 2", "freed");
    CHECK((duet_set_all)(NULL, 2) == DUET_BAD_ARGUMENT, "%s", duet_error());
    CHECK((duet_set_all)(&(duet_assignment){ a, (duet_expr){ 0 } }, 0) == DUET_BAD_ARGUMENT, "%s",
          duet_error());
    HOLDS(a, 1, 1);
    HOLDS(b, 2, 2);

    duet_assignment many[256];
    for (int i = 0; i < 256; i++) many[i] = (duet_assignment){ a, duet_add(a, 1) };
    CHECK((duet_set_all)(many, 256) == DUET_BAD_ARGUMENT, "%s", duet_error());
    HOLDS(a, 1, 1);
    for (int i = 0; i < 255; i++) many[i] = (duet_assignment){ i % 2 ? b : a, duet_add(i % 2 ? a : b, 1) };
    OK((duet_set_all)(many, 255));
    HOLDS(a, 257, 2);
    HOLDS(b, 256, 2);
    OK(duet_set(a, duet_add(a, b))); /* no state remains */
    duet_free(&a);
    duet_free(&b);
    duet_free(&wide);
    duet_free(&d);
    duet_free(&index);
    tap_point("invalid statements change nothing and spend all formulas");
}

static void explained(void)
{
    duet_matrix *a = filled(1, 1), *s = duet_new(DUET_F32), *t = duet_new(DUET_F32);
    char text[2000] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    const duet_assignment both[] = { { s, duet_sum(duet_exp(a)) }, { t, duet_max(duet_exp(a)) } };
    OK(duet_explain_all(out, both, 2));
    fclose(out);
    CHECK(strstr(text, "1 operator [exp], 1 input, 2 outputs [") && strstr(text, "sum") &&
              strstr(text, "max"),
          "explained as %s", text);
    OK((duet_set_all)(both, 2));
    duet_free(&a);
    duet_free(&s);
    duet_free(&t);
    tap_point("duet_explain_all");
}

int main(int argc, char **argv)
{
    const int trials = trial_count(argc, argv, 60, 1000);
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    places = list_places(place);
    DUET_ON(DUET_CPU)
    {
        sequence();
        reads_first();
        axes_of_earlier();
        passes();
        large();
        tangles();
        mixed();
        bad();
        bad_when_they_run();
        changes_nothing(false, "a bad index changes nothing: statements that are planned together");
        changes_nothing(true, "a bad index changes nothing: statements that overlap");
        explained();
    }
    random_groups(trials, seed);
    return tap_end();
}
