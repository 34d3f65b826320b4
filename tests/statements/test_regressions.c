/* test_regressions.c - one point for each bug that was found by reading or by chance, not by a test
 * of its own. */
#include "common.h"
#include "in_thread.h"
#include <malloc.h>
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#ifdef __SANITIZE_THREAD__
enum { by_thread_sanitizer = 1 };
#else
enum { by_thread_sanitizer = __has_feature(thread_sanitizer) };
#endif

#define OK(call) CHECK((call) == DUET_OK, #call ": %s", duet_error())

static duet_matrix *filled(int64_t rows, int64_t columns, float first, float by)
{
    duet_matrix *m = duet_new(DUET_F32, rows, columns);
    float *p = duet_overwrite(m);
    for (int64_t i = 0; p && i < rows * columns; i++) p[i] = first + by * (float)i;
    return m;
}

/* The patterns of fused.def are formulas too. They must not use the arena of the thread, however small
 * its limit. This must be the first statement. */
static void patterns_apart(void)
{
    duet_matrix *a = filled(2, 2, 1, 0);
    OK(duet_arena_limit(4096));
    duet_expr e = duet_of_matrix(a);
    for (int i = 0; i < 11; i++) e = duet_neg(e);
    OK(duet_set(a, e));
    OK(duet_arena_limit(1 << 26));
    duet_free(&a);
    tap_point("the first statement under a small limit");
}

/* Dropping records below a live formula once moved the end of the words onto live ones. */
static void *drop_below(void *unused)
{
    duet_matrix *a = filled(4, 6, 0, 1), *t = duet_transposed(a), *v = duet_submatrix(a, 0, 0, 2, 3);
    duet_matrix *w = duet_submatrix(t, 0, 0, 2, 3), *c = duet_new(DUET_F32, 2, 3);
    duet_expr below = duet_abs(v), live = duet_abs(w);
    OK(duet_drop(below));
    duet_expr d = duet_abs(v), e = duet_abs(v);
    OK(duet_set(c, live));
    const float *p = duet_read(c);
    for (int i = 0; p && i < 2; i++)
        for (int j = 0; j < 3; j++)
            CHECK(p[3 * i + j] == (float)(6 * j + i), "[%d][%d] is %g", i, j, p[3 * i + j]);
    OK(duet_drop(d));
    OK(duet_drop(e));
    duet_free(&a);
    duet_free(&t);
    duet_free(&v);
    duet_free(&w);
    duet_free(&c);
    return unused;
}

static void words_of_live_formulas(void)
{
    run_in_thread(drop_below, NULL);
    tap_point("a formula is dropped below a live one");
}

static void import_that_does_not_fit(void)
{
    duet_matrix *a = filled(2, 2, 1, 0);
    OK(duet_arena_limit(4096));
    duet_expr h = duet_hold(duet_exp(duet_exp(duet_exp(duet_exp(duet_exp(duet_exp(a)))))));
    duet_expr below = duet_neg(a), big = duet_add(duet_neg(h), h);
    CHECK(duet_expr_status(big) == DUET_ARENA_FULL, "two copies of the formula fit in the arena");
    OK(duet_drop(big));
    OK(duet_drop(below));
    OK(duet_drop(h));
    CHECK(duet_arena_limit(1 << 26) == DUET_OK, "a formula is still in the arena: %s", duet_error());
    duet_free(&a);
    tap_point("a persistent formula that exceeds the limit leaks nothing");
}

/* More plans than the cache holds: none may be evicted while a statement compares it with another. */
static void many_plans(void)
{
    static float buffer[1 << 16];
    for (int i = 1; i < 3000; i++) {
        duet_matrix *a = duet_wrap(buffer, DUET_F32, 1 + i % 97, 1 + i / 97),
                    *c = duet_new(DUET_F32, 1 + i % 97, 1 + i / 97);
        OK(duet_set(c, duet_exp(a)));
        if (i == 1) OK(duet_set_on(DUET_CPU, c, duet_abs(a))); /* an odd number of them */
        duet_free(&a);
        duet_free(&c);
    }
    tap_point("more plans than the cache holds");
}

/* oneDNN compiles code for each convolution, which the plans hold. */
static void many_convolutions(void)
{
    const size_t before = mallinfo2().uordblks;
    size_t most = before;
    for (int i = 0; i < 4000; i++) {
        duet_matrix *x = duet_new(DUET_F32, 1, 1 + i % 3, 8 + i % 50, 8 + i / 50),
                    *filter = duet_new(DUET_F32, 4, 1 + i % 3, 3, 3),
                    *y = duet_eval(duet_conv2d(x, filter, .pad = { 1, 1 }));
        CHECK(y, "%s", duet_error());
        duet_free(&x);
        duet_free(&filter);
        duet_free(&y);
        const size_t now = mallinfo2().uordblks;
        if (now > most) most = now;
    }
    CHECK(most - before < (size_t)140 << 20, "plans hold %zu bytes", most - before);
    printf("# at most %zu MB\n", (most - before) >> 20);
    tap_point("memory of many convolutions");
}

/* However little memory there is, NO_MEMORY leaves the destination unchanged. */
static void destination_survives(void)
{
    const int n = 96;
    duet_matrix *x = filled(n, n, 1, 0), *y = filled(n, n, 2, 0), *c = filled(n, n, 7, 0),
                *block = filled(2 * n, n, 1e-3f, 0);
    duet_matrix *p = duet_reshaped(block, 2, n, n), *t = duet_transposed(p), *w = duet_row(t, 0),
                *z = filled(2, n, 1, 0);
    duet_status s = DUET_NO_MEMORY;
    for (size_t extra = 0; s != DUET_OK && extra < 1 << 21; extra += 512) {
        duet_memory_trim();
        OK(duet_memory_limit(DUET_CPU, duet_memory_of(DUET_CPU).used + extra));
        s = duet_set_on(DUET_CPU, c, duet_exp(duet_matmul(duet_matmul(duet_add(x, y), w), z)));
        CHECK(s == DUET_OK || s == DUET_NO_MEMORY, "status %d: %s", s, duet_error());
        OK(duet_memory_limit(DUET_CPU, 0));
        const float *r = duet_read(c);
        CHECK(r && (s == DUET_OK || r[5] == 7), "the destination is %g after status %d", r ? r[5] : -1, s);
    }
    CHECK(s == DUET_OK, "the statement never succeeds");
    duet_free(&x);
    duet_free(&y);
    duet_free(&c);
    duet_free(&block);
    duet_free(&p);
    duet_free(&t);
    duet_free(&w);
    duet_free(&z);
    tap_point("NO_MEMORY leaves the destination unchanged");
}

static void lifting(void)
{
    duet_matrix *a = filled(1, 1, 2, 0), *list[2] = { filled(1, 1, 1, 0), filled(1, 1, 1, 0) };
    int i = 0;
    OK(duet_iadd(list[i++], a));
    CHECK(i == 1 && *(const float *)duet_read(list[0]) == 3, "duet_iadd evaluates its matrix %d times", i);
    OK(duet_set(a, duet_mul(2.5L, a)));
    CHECK(*(const float *)duet_read(a) == 5, "2.5L is converted to another number");
    OK(duet_set(a, duet_mul(18446744073709551615ull, duet_mul(0.2, a))));
    CHECK(*(const float *)duet_read(a) == 0x1p64f, "2^64 - 1 is converted to another number");
#ifdef __FLT32_MANT_DIG__
    const _Float32 quarter = 0.25f;
    const _Float64 half = 0.5;
    OK(duet_set(a, duet_add(quarter, half)));
    CHECK(*(const float *)duet_read(a) == 0.75f, "a fraction is converted to another number");
#endif
#ifdef __FLT16_MANT_DIG__
    const _Float16 eighth = 0.125f;
    OK(duet_set(a, duet_add(eighth, a)));
    CHECK(*(const float *)duet_read(a) == 0.875f, "a number of type _Float16 is converted to another number");
#endif
    CHECK(duet_iadd(a, (duet_expr){ 0 }) == DUET_BAD_ARGUMENT && strstr(duet_error(), "test_regressions.c:"),
          "%s", duet_error());
    duet_free(&a);
    duet_free(&list[0]);
    duet_free(&list[1]);
    tap_point("numbers of other types, and in-place forms");
}

/* Many numbers, and a number in place of a matrix. */
static void numbers(void)
{
    duet_matrix *a = filled(2, 2, 1, 0), *s = duet_new(DUET_F32);
    duet_expr e = duet_of_matrix(a);
    for (int i = 0; i < 20000; i++) e = duet_fma(0.5 + 1e-5 * i, e, 0.25 - 1e-6 * i);
    OK(duet_set(a, e));
    float *p = duet_overwrite(s);
    if (p) *p = 3;
    OK(duet_set(s, duet_dot(2.0, s)));
    CHECK(*(const float *)duet_read(s) == 6, "dot(2, 3) is wrong");
    duet_free(&a);
    duet_free(&s);
    tap_point("numbers");
}

/* A copy onto its own transpose: element by element, but not of the same element. */
static void transposed_onto_itself(void)
{
    duet_place place[2];
    for (int k = list_places(place); k-- > 0;) {
        duet_matrix *a = filled(75, 75, 0, 1);
        OK(duet_set_on(place[k], a, duet_transpose(a)));
        const float *p = duet_read(a);
        for (int i = 0; p && i < 75 * 75; i++)
            CHECK(p[i] == (float)(i % 75 * 75 + i / 75), "[%d] is %g", i, p[i]);
        duet_free(&a);
    }
    tap_point("a transpose onto itself");
}

/* Fast algorithms for convolutions may spread a NaN over a tile, or give a number instead. */
static void poisoned_images(void)
{
    enum { N = 16, C = 32, H = 32, M = 64 };
    duet_place place[2];
    duet_matrix *rows = filled(N * C, H * H, 0.5f, 1e-7f), *x = duet_reshaped(rows, N, C, H, H);
    duet_matrix *taps = filled(M, C * 9, 0.25f, 1e-6f), *w = duet_reshaped(taps, M, C, 3, 3),
                *y = duet_new(DUET_F32, N, M, H, H);
    float *p = duet_update(rows);
    if (p) {
        p[(3 * C + 5) * H * H + 9 * H + 9] = NAN;
        p[(7 * C + 2) * H * H + 20 * H + 4] = INFINITY;
    }
    for (int k = list_places(place); k-- > 0;) {
        OK(duet_set_on(place[k], y, duet_conv2d(x, w, .pad = { 1, 1 })));
        const float *r = duet_read(y);
        long lost = 0;
        for (int64_t i = 0; r && i < duet_count(y); i++) lost += !(r[i] - r[i] == 0);
        CHECK(lost == 2L * 9 * M, "%ld outputs are NaN or infinite, not %d", lost, 2 * 9 * M);
    }
    duet_free(&rows);
    duet_free(&x);
    duet_free(&taps);
    duet_free(&w);
    duet_free(&y);
    tap_point("NaN and infinity stay in their windows");
}

/* Numbers with equal bits are one value; different numbers need another plan. */
static void equal_numbers(void)
{
    const double pairs[][2] = { { 0.3, 0.3 }, { 0.3, 0.7 }, { 0.7, 0.3 }, { 0.7, 0.7 }, { 0.0, -0.0 } };
    duet_matrix *a = filled(3, 5, 1, 0.25f), *c = duet_new(DUET_F32, 3, 5);
    for (int i = 0; i < 5; i++) {
        const double x = pairs[i][0], y = pairs[i][1];
        /* a number that is removed, and one that is there while it is looked up */
        duet_expr below = duet_mul(y, a), before = duet_mul(y, a);
        OK(duet_drop(before));
        OK(duet_set_on(DUET_CPU, c, duet_div(duet_add(x, a), duet_add(y, a))));
        const float *p = duet_read(c), *q = duet_read(a);
        for (int k = 0; p && k < 15; k++) {
            const float want = ((float)x + q[k]) / ((float)y + q[k]);
            CHECK(p[k] == want, "(%g + a) / (%g + a) is %g, not %g", x, y, p[k], want);
        }
        OK(duet_drop(below));
    }
    const uint64_t misses = duet_stats().plan_misses;
    for (int i = 0; i < 3; i++)
        OK(duet_set_on(DUET_CPU, c,
                       duet_mul(duet_add(0.1 * i + 0.1, a), duet_exp(duet_add(0.1 * i + 0.1, a)))));
    CHECK(duet_stats().plan_misses - misses == 1, "%d plans", (int)(duet_stats().plan_misses - misses));
    duet_free(&a);
    duet_free(&c);
    tap_point("equal numbers in one formula");
}

/* Indices of numbers once had 16 bits. */
static void many_numbers(void)
{
    enum { MANY = 70000 };
    duet_matrix *a = duet_new(DUET_F64);
    duet_expr e = duet_of_matrix(a);
    for (int i = 1; i <= MANY; i++) e = duet_add(e, i);
    OK(duet_set(a, e));
    const double *p = duet_read(a);
    CHECK(p && *p == 0.5 * MANY * (MANY + 1.0), "the sum is %.17g", p ? *p : NAN);
    duet_free(&a);
    tap_point("a formula of 70000 numbers");
}

/* A factor of a product that its type cannot represent, or 0, must not become alpha: infinity times
 * zero is NaN. */
static void extreme_factors(void)
{
    static const double factors[] = { INFINITY, 1e300, -1e300, NAN, 0, 1e-50 };
    duet_matrix *a = filled(2, 2, 0, 1), *b = filled(2, 2, 1, 0), *c = duet_new(DUET_F32, 2, 2),
                *t = duet_new(DUET_F32, 2, 2);
    float *p = duet_update(b);
    if (p) p[3] = INFINITY;
    for (int i = 0; i < 6; i++) {
        OK(duet_set(t, duet_mul(factors[i], a)));
        OK(duet_set(t, duet_matmul(t, b)));
        OK(duet_set(c, duet_matmul(duet_mul(factors[i], a), b)));
        const float *got = duet_read(c), *want = duet_read(t);
        for (int k = 0; got && want && k < 4; k++)
            CHECK(got[k] == want[k] || (isnan(got[k]) && isnan(want[k])), "%g: [%d] is %g, not %g",
                  factors[i], k, got[k], want[k]);
    }
    duet_free(&a);
    duet_free(&b);
    duet_free(&c);
    duet_free(&t);
    tap_point("extreme factors of a product");
}

/* A held operand, copied for an operator that failed without memory to say so, was once never
 * freed. */
static void *import_and_fail(void *unused)
{
    duet_matrix *a = filled(4, 4, 1, 0);
    OK(duet_arena_limit(4096));
    duet_expr h = duet_hold(duet_neg(a)), e = duet_of_matrix(a);
    for (int n = 0; n < 40; n++) {
        duet_expr f = duet_add(h, (duet_expr){ 0 });
        CHECK(duet_expr_status(f) == DUET_BAD_ARGUMENT || duet_expr_status(f) == DUET_ARENA_FULL, "%s",
              duet_error());
        duet_drop(f);
        e = duet_neg(e);
    }
    duet_drop(e);
    duet_drop(h);
    OK(duet_arena_limit(8192)); /* refused while the thread has formulas */
    duet_free(&a);
    return unused;
}

static void imports_end(void)
{
    run_in_thread(import_and_fail, NULL);
    tap_point("a persistent operand of an operator that exceeds the arena");
}

/* A vector into a row of a matrix once used a temporary. */
static void one_more_axis(void)
{
    duet_place place[2];
    duet_matrix *a = duet_new(DUET_F32, 6), *c = duet_new(DUET_F32, 3, 6),
                *row = duet_submatrix(c, 1, 0, 1, 6);
    float *p = duet_overwrite(a);
    for (int i = 0; p && i < 6; i++) p[i] = (float)i;
    for (int k = list_places(place); k-- > 0;) {
        const uint64_t steps = duet_stats().steps;
        OK(duet_set_on(place[k], row, duet_neg(a)));
        CHECK(duet_stats().steps - steps == 1, "%d steps", (int)(duet_stats().steps - steps));
        const float *r = duet_read(row);
        for (int i = 0; r && i < 6; i++) CHECK(r[i] == -(float)i, "[%d] is %g", i, r[i]);
    }
    duet_free(&row);
    duet_free(&c);
    duet_free(&a);
    tap_point("a vector assigned to a row");
}

/* Shapes that differ by leading axes of one element once had separate passes; bias_add counts axes. */
static void leading_ones(void)
{
    duet_place place[2];
    duet_matrix *a = filled(4, 6, -3, 0.5f), *b = duet_reshaped(a, 1, 4, 6), *bias = duet_new(DUET_F32, 6),
                *c = duet_new(DUET_F32, 1, 4, 6);
    duet_matrix *sums = duet_new(DUET_F32, 1, 6);
    float *p = duet_overwrite(bias);
    for (int i = 0; p && i < 6; i++) p[i] = (float)(i * i);
    for (int k = list_places(place); k-- > 0;) {
        uint64_t steps = duet_stats().steps;
        OK(duet_set_on(place[k], c, duet_add(duet_mul(2, b), duet_mul(3, duet_abs(a)))));
        CHECK(duet_stats().steps - steps == 1 || getenv("DUET_FUSION"), "%d steps",
              (int)(duet_stats().steps - steps));
        const float *x = duet_read(a), *r = duet_read(c);
        for (int i = 0; x && r && i < 24; i++)
            CHECK(r[i] == 2 * x[i] + 3 * fabsf(x[i]), "[%d] is %g", i, r[i]);
        OK(duet_set_on(place[k], c, duet_mul(b, duet_abs(duet_bias_add(a, bias)))));
        r = duet_read(c);
        for (int i = 0; x && r && i < 24; i++)
            CHECK(r[i] == x[i] * fabsf(x[i] + (float)(i % 6 * (i % 6))), "bias: [%d] is %g", i, r[i]);
        OK(duet_set_on(place[k], sums, duet_sum_axis(duet_mul(b, duet_abs(duet_bias_add(a, bias))), 1)));
        const float *s = duet_read(sums);
        for (int j = 0; r && s && j < 6; j++) {
            const float want = (r[j] + r[12 + j]) + (r[6 + j] + r[18 + j]);
            CHECK(fabsf(s[j] - want) <= 1e-5f * (1 + fabsf(want)), "the sum of column %d is %g, not %g", j,
                  s[j], want);
        }
    }
    duet_free(&sums);
    duet_free(&c);
    duet_free(&bias);
    duet_free(&b);
    duet_free(&a);
    tap_point("leading axes of one element");
}

/* A reduction of eight axes that cannot be merged once had nine on the GPU, in arrays of eight. */
static void eight_axes(void)
{
    duet_place place[2];
    duet_matrix *a = duet_new(DUET_F32, 2, 3, 2, 3, 2, 3, 2, 3), *s = duet_new(DUET_F32),
                *whole = duet_new(DUET_F32, 1296);
    float *p = duet_overwrite(a), *q = duet_overwrite(whole);
    for (int i = 0; p && q && i < 1296; i++) p[i] = q[i] = (float)(i % 7);
    for (int k = list_places(place); k-- > 0;) {
        OK(duet_set_on(place[k], s, duet_sum(duet_exp(duet_transpose(a)))));
        const float got = *(const float *)duet_read(s);
        OK(duet_set_on(place[k], s, duet_sum(duet_exp(whole))));
        const float want = *(const float *)duet_read(s);
        CHECK(fabsf(got - want) <= 1e-5f * want, "the sum is %g, not %g", got, want);
    }
    duet_free(&a);
    duet_free(&s);
    duet_free(&whole);
    tap_point("a reduction of eight axes");
}

/* Integers with the bits of signaling NaNs once passed through arithmetic on the GPU. */
static void integers_stay(void)
{
    enum { N = 100 };
    duet_place place[2];
    duet_matrix *a = duet_new(DUET_I64, N), *b = duet_new(DUET_I64, N), *c = duet_new(DUET_I64, N),
                *d = duet_new(DUET_I64, N);
    int64_t *p = duet_overwrite(a), *q = duet_overwrite(b);
    for (int i = 0; p && q && i < N; i++) {
        p[i] = -4503599627370491 - i;
        q[i] = -1 - i;
    }
    for (int k = list_places(place); k-- > 0;) {
        duet_status both = DUET_OK;
        DUET_ON(place[k]) both = duet_set_all({ c, duet_of_matrix(a) }, { d, duet_of_matrix(b) });
        OK(both);
        const int64_t *x = duet_read(c), *y = duet_read(d);
        for (int i = 0; x && y && i < N; i++)
            CHECK(x[i] == -4503599627370491 - i && y[i] == -1 - i, "[%d] is %lld and %lld", i,
                  (long long)x[i], (long long)y[i]);
    }
    duet_free(&a);
    duet_free(&b);
    duet_free(&c);
    duet_free(&d);
    tap_point("integer numbers in two statements");
}

static void *multiply(void *unused)
{
    duet_matrix *a = filled(40, 50, 1, 0), *b = filled(50, 60, 2, 0), *c = duet_new(DUET_F32, 40, 60);
    OK(duet_set_on(DUET_GPU, c, duet_matmul(a, b)));
    const float *p = duet_read(c);
    for (int i = 0; p && i < 40 * 60; i++) CHECK(p[i] == 100, "[%d] is %g", i, p[i]);
    duet_free(&a);
    duet_free(&b);
    duet_free(&c);
    return unused;
}

/* An algorithm chosen for the workspace of one thread was run with that of another thread, which
 * was smaller. */
static void workspaces(void)
{
    duet_place place[2];
    if (list_places(place) < 2)
        return (void)printf("ok %d - workspaces # SKIP there is no GPU\n", ++tap_points);
    setenv("DUET_REPRODUCIBLE", "1", 1); /* the first algorithm proposed, not the fastest */
    multiply(NULL);
    OK(duet_memory_limit(DUET_GPU, 48 << 20));
    run_in_thread(multiply, NULL);
    OK(duet_memory_limit(DUET_GPU, 0));
    unsetenv("DUET_REPRODUCIBLE");
    tap_point("products of one shape with workspaces of several sizes");
}

/* After a statement on several threads, a statement in a forked child once waited for ever. */
static bool works_on_threads(void)
{
    duet_matrix *x = filled(1000, 1000, 1, 0), *y = filled(1000, 1000, 0, 0), *p = filled(1000, 1000, 0, 0);
    bool good = duet_set_on(DUET_CPU, y, duet_add(duet_sqrt(x), duet_exp(duet_sub(x, 1)))) == DUET_OK &&
                duet_set_on(DUET_CPU, p, duet_matmul(x, y)) == DUET_OK;
    const float *r = duet_read(p);
    good = good && r && r[0] == 2000 && r[999999] == 2000;
    duet_free(&x);
    duet_free(&y);
    duet_free(&p);
    return good;
}

static void forked(void)
{
    int code = -1;
    const int threads = omp_get_max_threads();
    omp_set_num_threads(2);
    CHECK(works_on_threads(), "%s", duet_error());
    fflush(stdout);
    const pid_t child = fork();
    if (!child) {
        alarm(60);
        _exit(!works_on_threads());
    }
    waitpid(child, &code, 0);
    CHECK(WIFEXITED(code) && WEXITSTATUS(code) == 0, "the child ended with %d", code);
    CHECK(works_on_threads(), "%s", duet_error());
    omp_set_num_threads(threads);
    tap_point("a forked child process");
}

/* The number was converted to the type of the counts, which changed or overflowed it. */
static void histogram_of_number(void)
{
    static const struct {
        double x, low, high;
        int64_t want[4];
    } rows[] = { { 1e300, -2e300, 2e300, { 0, 0, 0, 1 } },
                 { 0.5, 0, 1, { 0, 0, 1, 0 } },
                 { -0.5, -1, 1, { 0, 1, 0, 0 } },
                 { 7, 0, 4, { 0, 0, 0, 0 } } };
    duet_matrix *counts = duet_new(DUET_I64, 4);
    for (int i = 0; i < 4; i++) {
        OK(duet_set(counts, duet_histogram(rows[i].x, rows[i].low, rows[i].high, 4)));
        const int64_t *p = duet_read(counts);
        CHECK(p && !memcmp(p, rows[i].want, sizeof rows[i].want), "%g: %d %d %d %d", rows[i].x, (int)p[0],
              (int)p[1], (int)p[2], (int)p[3]);
    }
    duet_free(&counts);
    tap_point("the histogram of a number");
}

/* Memory of inputs without elements, and the count of bytes of scratch memory, added to NULL. Only a
 * sanitizer notices it. */
static void sums_of_nothing(void)
{
    duet_matrix *x = duet_new(DUET_F32, 0, 50), *y = duet_new(DUET_F32, 50), *big = filled(3, 9000, 1, 0),
                *sums = duet_new(DUET_F32, 3);
    OK(duet_set(y, duet_sum(duet_mul(x, 2), 0)));
    const float *p = duet_read(y);
    CHECK(p && p[49] == 0, "the sum is %g", p ? p[49] : 0);
    OK(duet_set(sums, duet_sum(duet_exp(big), 1)));
    duet_free(&x);
    duet_free(&y);
    duet_free(&big);
    duet_free(&sums);
    tap_point("sums of no elements");
}

/* Formulas of a freed matrix ask for its serial number while another thread reuses the header. */
static int reusing;
static void *reuse_headers(void *unused)
{
    for (int i = 0; i < 20000 && __atomic_load_n(&reusing, __ATOMIC_RELAXED); i++) {
        duet_matrix *m[40];
        for (int k = 0; k < 40; k++) m[k] = duet_new(DUET_F32, 1);
        for (int k = 0; k < 40; k++) duet_free(&m[k]);
    }
    return NULL;
}

static void freed_in_another_thread(void)
{
    pthread_t other;
    duet_matrix *y = duet_new(DUET_F32, 1);
    __atomic_store_n(&reusing, 1, __ATOMIC_RELAXED);
    if (pthread_create(&other, NULL, reuse_headers, NULL)) return;
    for (int i = 0; i < 300; i++) {
        duet_matrix *x = duet_new(DUET_F32, 1);
        const duet_expr e = duet_neg(x);
        duet_free(&x);
        CHECK(duet_set(y, e) == DUET_FREED, "%s", duet_error());
    }
    __atomic_store_n(&reusing, 0, __ATOMIC_RELAXED);
    pthread_join(other, NULL);
    duet_free(&y);
    tap_point("a freed matrix whose header another thread reuses");
}

int main(void)
{
    patterns_apart();
    words_of_live_formulas();
    import_that_does_not_fit();
    many_plans();
    many_convolutions();
    destination_survives();
    lifting();
    numbers();
    transposed_onto_itself();
    poisoned_images();
    equal_numbers();
    many_numbers();
    extreme_factors();
    imports_end();
    one_more_axis();
    leading_ones();
    eight_axes();
    integers_stay();
    workspaces();
    histogram_of_number();
    sums_of_nothing();
    freed_in_another_thread();
    if (!by_thread_sanitizer) forked(); /* it does not allow threads in a child */
    return tap_end();
}
