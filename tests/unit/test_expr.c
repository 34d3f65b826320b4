/* test_expr.c - formulas as handles: roots, spent, dropped, of other threads, held, shared; sticky
 * errors; the arena at its limit. */
#include "common.h"
#include "in_thread.h"
#include <locale.h>
#include <math.h>

static duet_matrix *x, *y, *z, *wide;

static float first(duet_matrix *m)
{
    const float *p = duet_read(m);
    if (p) return p[0];
    return -1;
}

static void set_to(duet_matrix *m, float v)
{
    float *p = duet_overwrite(m);
    for (int64_t i = 0; p && i < duet_count(m); i++) p[i] = v;
}

/* Checks that the call fails with this status and these words in the error text. */
static void refused(duet_status got, duet_status want, const char *words, const char *what)
{
    CHECK(got == want, "%s: status %d (%s), not %d: %s", what, got, duet_status_text(got), want,
          duet_error());
    CHECK(strstr(duet_error(), words) != NULL, "%s: '%s' is not in '%s'", what, words, duet_error());
}
#define REFUSED(call, status, words) refused(call, status, words, #call)
#define OK(call)                     CHECK((call) == DUET_OK, #call ": %s", duet_error())

static void roots_and_spent(void)
{
    duet_expr a = duet_add(x, y), b = duet_mul(a, 2);
    OK(duet_set(z, b));
    CHECK(first(z) == 6, "2 (x + y) is %g", first(z));
    REFUSED(duet_set(z, b), DUET_SPENT, "already evaluated");
    REFUSED(duet_set(z, a), DUET_SPENT, "already evaluated");
    REFUSED(duet_expr_status(a), DUET_SPENT, "test_expr.c:");
    REFUSED(duet_drop(b), DUET_SPENT, "already");
    REFUSED(duet_set(z, duet_add(b, 1)), DUET_SPENT, "): x was already");

    duet_expr c = duet_add(x, 1);
    OK(duet_drop(c));
    REFUSED(duet_set(z, c), DUET_SPENT, "dropped");
    REFUSED(duet_set(z, (duet_expr){ 0 }), DUET_BAD_ARGUMENT, "is not a formula");

    duet_expr failed = duet_add(x, wide);
    REFUSED(duet_set(z, failed), DUET_BAD_SHAPE, "duet_add(x: f32[4], y: f32[5])");
    REFUSED(duet_set(z, failed), DUET_SPENT, "already"); /* a failed statement spends too */
    tap_point("roots and spent formulas");
}

static void shared(void)
{
    duet_expr s = duet_add(x, y); /* twice in one formula: computed once */
    OK(duet_set(z, duet_mul(s, s)));
    CHECK(first(z) == 9, "(x + y)^2 is %g", first(z));

    s = duet_add(x, y); /* in two formulas: both can be evaluated, in any order */
    duet_expr p = duet_mul(s, 2), q = duet_sub(s, 1);
    OK(duet_set(z, p));
    CHECK(first(z) == 6, "p is %g", first(z));
    OK(duet_set(z, q));
    CHECK(first(z) == 2, "q is %g", first(z));

    s = duet_add(x, y);
    p = duet_mul(s, 2);
    q = duet_sub(s, 1);
    OK(duet_set(z, q));
    OK(duet_set(z, p));
    CHECK(first(z) == 6, "p after q is %g", first(z));

    /* the inner formula first: the outer one can still be evaluated */
    s = duet_add(x, y);
    p = duet_mul(s, 10);
    OK(duet_set(z, s));
    CHECK(first(z) == 3, "s is %g", first(z));
    OK(duet_set(z, p));
    CHECK(first(z) == 30, "p after s is %g", first(z));
    REFUSED(duet_set(z, duet_neg(s)), DUET_SPENT, "already");
    tap_point("shared sub-formulas");
}

static void stickiness(void)
{
    const int line = __LINE__ + 1;
    duet_expr bad = duet_add(x, wide);
    char here[40];
    duet_expr e = duet_relu(duet_mul(duet_sub(bad, 3), y));
    snprintf(here, sizeof here, "test_expr.c:%d", line);
    CHECK(duet_expr_status(e) == DUET_BAD_SHAPE, "status %d", duet_expr_status(e));
    set_to(z, 7);
    REFUSED(duet_set(z, e), DUET_BAD_SHAPE, here);
    CHECK(first(z) == 7, "the destination changed to %g", first(z));

    e = duet_add(duet_matmul(wide, x), duet_add(x, wide)); /* two errors: the first one is reported */
    REFUSED(duet_set(z, e), DUET_BAD_SHAPE, "duet_");
    OK(duet_set(z, duet_add(x, y)));
    tap_point("errors propagate to the root with file and line");
}

static void printed(duet_expr e, const char *as)
{
    CHECK(!strcmp(text_of(e), as), "printed as %s, not %s", text_of(e), as);
    forget(e);
}

/* The text of a formula is C, and so are its numbers, which are exact in any locale. */
static void printed_numbers(void)
{
    duet_matrix *k = duet_new(DUET_I64, 2), *u = duet_new(DUET_U64, 2);
    /* if available, this locale has decimal commas */
    const char *locale = setlocale(LC_NUMERIC, "de_DE.UTF-8");
    printed(duet_mul(x, 0.1), "duet_mul(A, 0.1)");
    printed(duet_add(x, -2.5f), "duet_add(A, -2.5)");
    printed(duet_add(x, -0.0), "duet_add(A, -0.0)");
    printed(duet_maximum(x, -INFINITY), "duet_maximum(A, -INFINITY)");
    printed(duet_minimum(x, INFINITY), "duet_minimum(A, INFINITY)");
    printed(duet_add(x, NAN), "duet_add(A, NAN)");
    printed(duet_add(k, INT64_MIN), "duet_add(A, INT64_MIN)");
    printed(duet_add(k, INT64_MIN + 1), "duet_add(A, -9223372036854775807L)");
    printed(duet_add(u, UINT64_MAX), "duet_add(A, 18446744073709551615UL)");
    printed(duet_histogram(x, 0.5, 1, 3), "duet_histogram(A, 0.5, 1, 3)");
    printf("# locale: %s\n", locale ? locale : "C");
    setlocale(LC_NUMERIC, "C");
    duet_free(&k);
    duet_free(&u);
    tap_point("numbers in the text of a formula");
}

static void queries(void)
{
    duet_matrix *m = duet_new(DUET_F64, 2, 3);
    duet_expr e = duet_sum_axis(duet_mul(m, 2), 0);
    for (int i = 0; i < 3; i++) {
        CHECK(duet_expr_status(e) == DUET_OK && duet_expr_type(e) == DUET_F64, "%s", duet_error());
        CHECK(duet_expr_rank(e) == 1 && duet_expr_size(e, 0) == 3 && duet_expr_size(e, 5) == 0,
              "the rank or the sizes of the formula are wrong");
        CHECK(!strcmp(text_of(e), "duet_sum_axis(duet_mul(A, 2), 0)"), "printed as %s", text_of(e));
    }
    duet_matrix *out = duet_new(DUET_F64, 3);
    duet_expr both = duet_var_axes_keep(duet_sum_axes(e), 0);
    CHECK(!strcmp(text_of(both), "duet_var_keep(duet_sum_axes(duet_sum_axis(duet_mul(A, 2), 0)), 0)"),
          "printed as %s", text_of(both));
    forget(both);
    e = duet_sum_axes_keep(m, -1, 0);
    CHECK(!strcmp(text_of(e), "duet_sum_axes_keep(A, 0, 1)"), "printed as %s", text_of(e));
    forget(e);
    e = duet_sum_axis(m, 0);
    CHECK(strstr(plan_of(out, e), "sum") != NULL, "explained as %s", plan_of(out, e));
    OK(duet_set(out, e));
    duet_free(&m);
    duet_free(&out);
    tap_point("queries, printing and explaining spend nothing");
}

/* ---- threads and held formulas ---- */

static duet_expr given;
static duet_status seen;
static char seen_text[400];

static void *evaluate_given(void *into)
{
    seen = duet_set(into, given);
    snprintf(seen_text, sizeof seen_text, "%s", duet_error());
    return NULL;
}

static void foreign(void)
{
    set_to(z, 7);
    given = duet_add(x, y);
    run_in_thread(evaluate_given, z);
    CHECK(seen == DUET_FOREIGN && strstr(seen_text, "another thread"), "status %d: %s", seen, seen_text);
    CHECK(first(z) == 7, "the destination changed to %g", first(z));
    OK(duet_set(z, given)); /* the formula still belongs to this thread */
    run_in_thread(evaluate_given, z);
    CHECK(seen == DUET_FOREIGN, "a consumed formula of another thread: status %d: %s", seen, seen_text);
    tap_point("a formula of another thread");
}

static void held(void)
{
    duet_expr h = duet_hold(duet_add(duet_mul(2, x), y));
    for (int i = 1; i <= 5; i++) {
        set_to(x, (float)i);
        OK(duet_set(z, h));
        CHECK(first(z) == 2 * (float)i + 2, "a persistent formula gives %g", first(z));
    }
    OK(duet_set(z, duet_add(h, duet_neg(h)))); /* in another formula, twice */
    CHECK(first(z) == 0, "h - h is %g", first(z));
    given = h;
    run_in_thread(evaluate_given, z);
    CHECK(seen == DUET_OK && first(z) == 12, "from another thread: %s, %g", seen_text, first(z));
    duet_expr copy = duet_hold(h);
    OK(duet_drop(h));
    REFUSED(duet_set(z, h), DUET_SPENT, "dropped");
    REFUSED(duet_drop(h), DUET_SPENT, "dropped");
    REFUSED(duet_set(z, duet_add(h, 1)), DUET_SPENT, "dropped");
    OK(duet_set(z, copy));
    OK(duet_drop(copy));

    duet_expr bad = duet_hold(duet_add(x, wide));
    REFUSED(duet_set(z, bad), DUET_BAD_SHAPE, "duet_add");
    for (int i = 0; i < 1000; i++) { /* slots are reused; generations distinguish them */
        duet_expr again = duet_hold(duet_neg(x));
        CHECK(again.serial != h.serial, "two formulas have the same handle");
        OK(duet_drop(again));
    }
    REFUSED(duet_set(z, h), DUET_SPENT, "dropped");
    set_to(x, 1);
    tap_point("persistent formulas");
}

static void freed(void)
{
    duet_matrix *m = duet_new(DUET_F32, 4);
    duet_expr e = duet_add(m, x), h = duet_hold(duet_mul(m, 3));
    duet_free(&m);
    set_to(z, 7);
    REFUSED(duet_set(z, e), DUET_FREED, "freed");
    REFUSED(duet_set(z, h), DUET_FREED, "freed");
    m = duet_new(DUET_F32, 4); /* may have the address of the freed matrix */
    REFUSED(duet_set(z, h), DUET_FREED, "freed");
    CHECK(first(z) == 7, "the destination changed to %g", first(z));
    OK(duet_drop(h));
    duet_free(&m);
    tap_point("formulas of freed matrices");
}

/* Of several unusable operands the first one determines status and text. */
static void several_bad_operands(void)
{
    const duet_expr none = { 0 }, spent = duet_add(x, y);
    OK(duet_drop(spent));
    duet_expr e = duet_add(none, spent), f = duet_where(spent, none, x);
    REFUSED(duet_expr_status(e), DUET_BAD_ARGUMENT, "x is not a formula");
    REFUSED(duet_expr_status(f), DUET_SPENT, "condition was already");
    duet_expr h = duet_hold(spent);
    REFUSED(duet_set(z, h), DUET_SPENT, "test_expr.c:");
    forget(e);
    forget(f);
    tap_point("several invalid operands");
}

/* ---- the arena ---- */

/* A forgotten root costs later formulas nothing: a million statements after it fit into a small
 * arena. */
static void forgotten_root(void)
{
    OK(duet_arena_limit(1 << 16));
    duet_expr forgotten = duet_add(x, y);
    for (int i = 0; i < 100000; i++) {
        duet_expr s = duet_mul(x, (double)i);
        OK(duet_set(z, duet_add(s, s)));
    }
    OK(duet_drop(forgotten));
    tap_point("a root that is never spent does not grow the arena");
}

static void full(void)
{
    enum { ABANDONED = 1000000 };
    static duet_expr made[ABANDONED];
    const int line = __LINE__ + 1;
    const duet_expr oldest = duet_add(x, y);
    char here[40];
    int good = 0;
    snprintf(here, sizeof here, "test_expr.c:%d", line);
    OK(duet_expr_status(oldest));
    for (int i = 0; i < ABANDONED; i++) {
        made[i] = duet_add(duet_mul(x, 3), y);
        good += duet_expr_status(made[i]) == DUET_OK;
    }
    CHECK(good > 10 && good < ABANDONED, "%d formulas fit into 64 KiB", good);
    CHECK(duet_expr_status(made[ABANDONED - 1]) == DUET_ARENA_FULL, "status %d",
          duet_expr_status(made[ABANDONED - 1]));
    set_to(z, 7);
    duet_expr last = duet_add(duet_mul(x, 3), y);
    CHECK(strstr(duet_error(), here) != NULL, "the oldest, %s, is not named: %s", here, duet_error());
    duet_expr grad =
        duet_softmax_grad(made[0], made[0]); /* several operators; the first one spends made[0] */
    REFUSED(duet_expr_status(grad), DUET_ARENA_FULL, here);
    duet_matrix *other = duet_new(DUET_F32, -1);
    CHECK(!other && !strstr(duet_error(), here), "%s", duet_error());
    last = duet_where(last, duet_add(last, z), 1);
    REFUSED(duet_expr_status(last), DUET_ARENA_FULL, here);
    duet_expr held = duet_hold(last);
    REFUSED(duet_set(z, held), DUET_ARENA_FULL, here);
    CHECK(first(z) == 7, "the destination changed to %g", first(z));

    for (int i = ABANDONED; i-- > 0;) forget(made[i]);
    OK(duet_drop(oldest));
    OK(duet_set(z, duet_add(duet_mul(x, 3), y)));
    CHECK(first(z) == 5, "3 x + y is %g", first(z));
    OK(duet_arena_limit((size_t)64 << 20));
    REFUSED(duet_arena_limit(10), DUET_BAD_ARGUMENT, "4096");
    tap_point("an arena at its limit, and afterwards");
}

static void loops_do_not_grow(void)
{
    OK(duet_arena_limit(1 << 14));
    for (int i = 0; i < 200000; i++) {
        duet_expr e = duet_add(duet_mul(x, 2), y);
        if (i % 3 == 0) OK(duet_drop(e));
        else if (i % 3 == 1) OK(duet_set(z, e));
        else REFUSED(duet_set(z, duet_add(e, wide)), DUET_BAD_SHAPE, "duet_add");
    }
    OK(duet_arena_limit((size_t)64 << 20));
    tap_point("evaluating, dropping and failing in a loop");
}

/* Operators that support i64: copies, transposes, parts. */
static void indices(void)
{
    duet_matrix *m = duet_new(DUET_F32, 2, 3), *at = duet_new(DUET_I64, 3), *from = duet_new(DUET_I64, 2, 3),
                *turned = duet_new(DUET_I64, 3, 2);
    float *p = duet_overwrite(m);
    int64_t *q = duet_overwrite(from);
    for (int i = 0; i < 6; i++) {
        p[i] = (float)(i % 2);
        q[i] = i;
    }
    OK(duet_set(at, duet_argmax_axis(m, 0))); /* 0 1 0 above 1 0 1 */
    const int64_t *r = duet_read(at);
    CHECK(r && r[0] == 1 && r[1] == 0 && r[2] == 1, "argmax is wrong");
    OK(duet_set(turned, duet_transpose(from)));
    r = duet_read(turned);
    for (int i = 0; r && i < 6; i++)
        CHECK(r[i] == i / 2 + i % 2 * 3, "element %d of the transpose is %d", i, (int)r[i]);
    duet_matrix *column = duet_column(turned, 1);
    OK(duet_set(column, at));
    OK(duet_set(from, duet_transpose(turned)));
    r = duet_read(from);
    CHECK(r && r[3] == 1 && r[4] == 0 && r[5] == 1 && r[2] == 2, "a copy to a column is wrong");
    REFUSED(duet_set(at, duet_exp(at)), DUET_BAD_TYPE, "floating point");
    REFUSED(duet_set(at, duet_mean_axis(from, 0)), DUET_BAD_TYPE, "floating point");
    REFUSED(duet_set(at, 3.5), DUET_BAD_TYPE, "3.5 is not a value of i64");
    REFUSED(duet_set(at, duet_max_axis(m, 0)), DUET_BAD_TYPE, "i64[3]");
    duet_free(&m);
    duet_free(&at);
    duet_free(&from);
    duet_free(&turned);
    duet_free(&column);
    tap_point("integers");
}

/* Deep formulas work too. */
static void deep(void)
{
    duet_expr e = duet_add(x, y);
    for (int i = 0; i < 3000; i++) e = duet_add(e, i % 2 ? -1 : 1);
    OK(duet_set(z, e));
    CHECK(first(z) == 3, "3000 deep: %g", first(z));
    e = DUET(x);
    for (int i = 0; i < 40000; i++) /* one step each; planning must not take quadratic time */
        e = duet_cast(duet_cast(e, DUET_F64), DUET_F32);
    OK(duet_set(z, duet_add(e, 1)));
    CHECK(first(z) == 2, "80000 casts deep: %g", first(z));
    tap_point("a formula of depth 3000, and one of 80000 operators");
}

/* ---- blocks such as DUET_ON ---- */

static duet_status early_return(void)
{
    DUET_ON(DUET_GPU) return duet_set(z, duet_add(x, y));
    return DUET_OK;
}

static void inner_block(void) { DUET_ON(DUET_CPU) OK(duet_set(z, duet_add(x, 1))); }

static void blocks(bool gpu)
{
    for (int i = 0; i < 3; i++) {
        const duet_status s = early_return();
        CHECK(s == (gpu ? DUET_OK : DUET_NO_DEVICE), "%d: %s", s, duet_error());
        OK(duet_set(z, duet_add(x, y))); /* the block was left */
    }
    int times = 0;
    DUET_ON(DUET_GPU)
    {
        inner_block(); /* the inner block overrides the outer one, and a call overrides both */
        OK(duet_set_on(DUET_CPU, z, duet_add(x, 1)));
        times++;
    }
    CHECK(times == 1, "the block ran %d times", times);
    OK(duet_set(z, duet_add(x, y)));
    tap_point("DUET_ON");
}

/* Calls that fail leave persistent operands as they are. */
static void held_operands_of_failures(void)
{
    duet_matrix *integers = duet_ones(DUET_I32, 4), *to = duet_new(DUET_F32, 4);
    duet_expr h = duet_hold(duet_mul(x, 3));
    CHECK(duet_set(to, duet_concat(7, duet_neg(x), duet_neg(x), duet_neg(x), h)) == DUET_BAD_SHAPE, "%s",
          duet_error());
    CHECK(duet_set(to, duet_stack(7, duet_neg(x), duet_neg(x), duet_neg(x), h)) == DUET_BAD_SHAPE, "%s",
          duet_error());
    CHECK(duet_noise_normal(integers, h, 1) == DUET_BAD_TYPE, "%s", duet_error());
    CHECK(duet_set(to, h) == DUET_OK, "%s", duet_error());
    CHECK(duet_drop(h) == DUET_OK, "%s", duet_error());
    duet_free(&integers, &to);
    tap_point("persistent operands of calls that fail");
}

int main(void)
{
    duet_place place[2];
    const bool gpu = list_places(place) == 2;
    x = duet_new(DUET_F32, 4);
    y = duet_new(DUET_F32, 4);
    z = duet_new(DUET_F32, 4);
    wide = duet_new(DUET_F32, 5);
    set_to(x, 1);
    set_to(y, 2);
    set_to(wide, 3);
    roots_and_spent();
    shared();
    stickiness();
    queries();
    printed_numbers();
    foreign();
    held();
    held_operands_of_failures();
    freed();
    several_bad_operands();
    loops_do_not_grow();
    forgotten_root();
    full();
    deep();
    indices();
    blocks(gpu);
    duet_free(&x);
    duet_free(&y);
    duet_free(&z);
    duet_free(&wide);
    return tap_end();
}
