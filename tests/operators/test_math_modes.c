/* test_math_modes.c - math modes: which one applies, separate plans for each, what explain prints,
 * and the error bounds of docs/semantics.md, against sums in double. On all machines, including the
 * fake CUDA. */
#define _GNU_SOURCE
#include "common.h"
#include "plan.h"
#include <math.h>

#ifdef FAKE_CUDA
#define PRETENDED true
#else
#define PRETENDED false
#endif

static rng gen;
static duet_place place[2];
static int places;
static const char *const mode_name[] = { "strict", "split", "tf32", "bf16" };
enum { MODES = DUET_MATH_BF16 + 1 };

/* ---- which mode applies ---- */

static duet_math_mode inner_return(void)
{
    DUET_MATH(DUET_MATH_BF16) return math_now();
    return DUET_MATH_STRICT;
}

static duet_math_mode
    mode_in_call; /* While a call evaluates, math_now() is the mode of the call; explain shows it */

static void test_precedence(void)
{
    CHECK(math_now() == DUET_MATH_TF32, "DUET_MATH=tf32, and the mode is %d", (int)math_now());
    DUET_MATH(DUET_MATH_SPLIT)
    {
        CHECK(math_now() == DUET_MATH_SPLIT, "a block does not override the environment variable");
        CHECK(inner_return() == DUET_MATH_BF16 && math_now() == DUET_MATH_SPLIT,
              "return does not end a block");
        DUET_MATH(DUET_MATH_STRICT)
        CHECK(math_now() == DUET_MATH_STRICT, "the innermost block does not override the others");
        for (int i = 0; i < 2; i++) DUET_MATH(DUET_MATH_TF32) break;
        CHECK(math_now() == DUET_MATH_SPLIT, "break does not end a block");
        DUET_MATH((duet_math_mode)17)
        CHECK(math_now() == DUET_MATH_SPLIT && strstr(duet_error(), "17"), "%s", duet_error());
    }
    CHECK(math_now() == DUET_MATH_TF32, "after its block the mode is %d", (int)math_now());
    tap_point("the math mode comes from the call, the innermost block or the environment");
}

static void *see_mode(void *to)
{
    *(duet_math_mode *)to = math_now();
    return NULL;
}

static void test_threads(void)
{
    pthread_t t;
    DUET_MATH(DUET_MATH_BF16)
    {
        if (pthread_create(&t, NULL, see_mode, &mode_in_call)) continue;
        pthread_join(t, NULL);
        CHECK(mode_in_call == DUET_MATH_TF32, "another thread is in mode %d", (int)mode_in_call);
    }
    tap_point("a DUET_MATH block affects only its own thread");
}

/* ---- plans and texts ---- */

static duet_matrix *drawn(duet_dtype t, int64_t rows, int64_t cols)
{
    return random_matrix(&gen, t, 2, (const int64_t[]){ rows, cols }, -1, 1);
}

/* The output of explain for y = e in a mode; the caller frees it. */
static char *explained(duet_math_mode mode, duet_matrix *y, duet_expr e)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    DUET_MATH(mode) CHECK(out && duet_explain(out, y, e) == DUET_OK, "%s", duet_error());
    if (out) fclose(out);
    forget(e);
    return text;
}

static void says(duet_place where, duet_math_mode mode, duet_matrix *y, duet_expr e, const char *want)
{
    DUET_ON(where)
    {
        char *text = explained(mode, y, e);
        CHECK(text && strstr(text, want), "%s in %s: no \"%s\" in\n%s", place_name(where), mode_name[mode],
              want, text);
        free(text);
    }
}

static void says_nothing(duet_place where, duet_math_mode mode, duet_matrix *y, duet_expr e)
{
    DUET_ON(where)
    {
        char *text = explained(mode, y, e);
        CHECK(text && !strstr(text, "strict") && !strstr(text, mode_name[mode]), "%s", text);
        free(text);
    }
}

static void test_explain(void)
{
    duet_matrix *x = drawn(DUET_F32, 40, 30), *w = drawn(DUET_F32, 30, 50), *y = duet_new(DUET_F32, 40, 50);
    duet_matrix *a = drawn(DUET_F64, 40, 30), *b = drawn(DUET_F64, 30, 50), *c = duet_new(DUET_F64, 40, 50);
    duet_matrix *top = duet_slice(x, 0, 3), *few = duet_slice(y, 0, 3);
    for (int m = 0; m < MODES; m++) {
        const duet_math_mode mode = (duet_math_mode)m;
        says(DUET_CPU, mode, y, duet_matmul(x, w),
             mode ? "; strict: the CPU has no other mode" : "; strict;");
        says_nothing(DUET_CPU, mode, y, duet_add(y, 1));
        if (places == 1) continue;
        says_nothing(DUET_GPU, mode, y, duet_add(y, 1));
        says(DUET_GPU, mode, c, duet_matmul(a, b), "; strict by ");
#ifdef FAKE_CUDA
        static const char *const algorithm[] = { "strict by cuBLASLt", "with emulated f32",
                                                 "tf32 by cuBLASLt", "bf16 by cuBLASLt" };
        says(DUET_GPU, mode, y, duet_matmul(x, w), algorithm[m]);
        says(DUET_GPU, mode, few, duet_matmul(top, w),
             m == DUET_MATH_SPLIT ? algorithm[m] : "strict by Duet's kernels");
        says(DUET_GPU, mode, y, duet_add(duet_matmul(x, w), y),
             m == DUET_MATH_SPLIT ? "strict by cuBLASLt: no kernel emulates f32" : algorithm[m]);
#endif
    }
    duet_free(&top);
    duet_free(&few);
    duet_free(&x);
    duet_free(&w);
    duet_free(&y);
    duet_free(&a);
    duet_free(&b);
    duet_free(&c);
    tap_point("duet_explain shows the math mode and the algorithm");
}

static uint64_t misses(void) { return duet_stats().plan_misses; }

static bool same(duet_dtype t, const void *x, const duet_matrix *m)
{
    void *now = elements(m);
    const bool is = x && now && same_bits(t, x, now, duet_count(m));
    free(now);
    return is;
}

/* y = x w in each mode, then in each again: no plan is made twice, and each gives the same result. */
static void test_keys(duet_place where)
{
    duet_matrix *x = drawn(DUET_F32, 33, 17), *w = drawn(DUET_F32, 17, 29), *y = duet_new(DUET_F32, 33, 29);
    void *first[MODES];
    DUET_ON(where)
    for (int turn = 0; turn < 2; turn++)
        for (int m = 0; m < MODES; m++) {
            const uint64_t before = misses();
            CHECK(duet_set_math((duet_math_mode)m, y, duet_matmul(x, w)) == DUET_OK, "%s", duet_error());
            CHECK(misses() - before == (turn ? 0 : 1), "%s: %d plans made", mode_name[m],
                  (int)(misses() - before));
            if (turn) {
                CHECK(same(DUET_F32, first[m], y), "%s has other bits than before", mode_name[m]);
                free(first[m]);
            } else first[m] = elements(y);
        }
    CHECK(duet_set_math((duet_math_mode)9, y, duet_matmul(x, w)) == DUET_BAD_ARGUMENT &&
              strstr(duet_error(), "9"),
          "%s", duet_error());
    duet_free(&x);
    duet_free(&w);
    duet_free(&y);
    tap_point(where == DUET_GPU ? "GPU plans belong to one math mode" : "CPU plans belong to one math mode");
}

/* ---- errors -------------------------------------------------------------------------------------------- */

#define U 0x1p-24

/* The error bound of a sum of n products: `weight` is the sum of |a| |b|, `top` the largest |a|
 * times the largest |b|. */
static double permitted(duet_math_mode mode, bool gpu, double n, double weight, double top)
{
    const double strict = (n + 4) * U * weight;
    if (!gpu) return strict;
    if (mode == DUET_MATH_SPLIT) return strict + 16 * U * weight + n * 0x1p-40 * top;
    if (mode == DUET_MATH_TF32) return strict + 0x1p-9 * weight;
    if (mode == DUET_MATH_BF16) return strict + 0x1p-6 * weight;
    return strict;
}

/* Operands with both signs, positive, of widely different magnitudes. */
enum kind { SIGNED, POSITIVE, WIDE, TINY, HUGE_ONES, KINDS };
static const char *const kind_name[] = { "signed", "positive", "wide", "tiny", "huge" };

static void draw(duet_matrix *m, enum kind kind)
{
    random_fill(&gen, m, kind == POSITIVE ? 0.5 : -1, 1);
    float *p = duet_update(m);
    for (int64_t i = 0; p && i < duet_count(m); i++) {
        if (kind == WIDE) p[i] = ldexpf(p[i], -(int)rng_below(&gen, 30));
        if (kind == TINY) p[i] *= 0x1p-50f;
        if (kind == HUGE_ONES) p[i] *= 0x1p+55f;
    }
}

static double largest(const float *p, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs((double)p[i]));
    return most;
}

typedef struct trial {
    duet_place where;
    duet_math_mode mode;
    enum kind kind;
    double worst; /* error relative to the magnitudes */
} trial;

static void compare_product(trial *t, const duet_matrix *x, const duet_matrix *w, const duet_matrix *y)
{
    const int64_t m = duet_size(x, 0), k = duet_size(x, 1), n = duet_size(w, 1);
    const float *a = duet_read(x), *b = duet_read(w), *c = duet_read(y);
    if (!CHECK(a && b && c, "%s", duet_error())) return;
    const double top = largest(a, m * k) * largest(b, k * n);
    for (int64_t i = 0; i < m * n; i++) {
        double sum = 0, weight = 0;
        for (int64_t l = 0; l < k; l++) {
            const double p = (double)a[i / n * k + l] * (double)b[l * n + i % n];
            sum += p;
            weight += fabs(p);
        }
        const double error = fabs((double)c[i] - sum),
                     most = permitted(t->mode, t->where == DUET_GPU, (double)k, weight, top);
        t->worst = fmax(t->worst, error / weight);
        if (!CHECK(error <= most, "%s of %s on the %s, %d x %d by %d [%d]: %g is wrong by %g, not at most %g",
                   mode_name[t->mode], kind_name[t->kind], place_name(t->where), (int)m, (int)k, (int)n,
                   (int)i, (double)c[i], error, most))
            return;
    }
}

static void one_product(trial *t, int64_t m, int64_t k, int64_t n)
{
    duet_matrix *x = duet_new(DUET_F32, m, k), *w = duet_new(DUET_F32, k, n), *y = duet_new(DUET_F32, m, n);
    draw(x, t->kind);
    draw(w, t->kind);
    DUET_ON(t->where)
    CHECK(duet_set_math(t->mode, y, duet_matmul(x, w)) == DUET_OK, "%s", duet_error());
    compare_product(t, x, w, y);
    duet_free(&x);
    duet_free(&w);
    duet_free(&y);
}

static void test_products(duet_place where)
{
    static const int64_t of[][3] = { { 40, 60, 50 }, { 9, 1, 7 },   { 5, 300, 33 },
                                     { 1, 50, 70 },  { 30, 40, 3 }, { 3, 70, 20 } };
    for (int m = 0; m < MODES; m++) {
        trial t = { where, (duet_math_mode)m, SIGNED, 0 };
        for (int kind = 0; kind < KINDS; kind++)
            for (int i = 0; i < 6; i++) {
                t.kind = (enum kind)kind;
                one_product(&t, of[i][0], of[i][1], of[i][2]);
            }
        printf("# %s on the %s: at most %.3g of sum |a| |b|\n", mode_name[m], place_name(where), t.worst);
        double least = 0;
        if (m == DUET_MATH_TF32) least = 0x1p-13;
        else if (m == DUET_MATH_BF16) least = 0x1p-10;
        if (PRETENDED && where == DUET_GPU)
            CHECK(t.worst >= least, "%s is more accurate than the mode: its kernel does not run",
                  mode_name[m]);
    }
    tap_point(where == DUET_GPU ? "products on the GPU are within the error bound of the mode"
                                : "products on the CPU are strict in every mode");
}

/* A convolution is a product of windows and has the same bounds. */
static void compare_conv(trial *t, const duet_matrix *x, const duet_matrix *w, const duet_matrix *y)
{
    const int64_t c = duet_size(x, 1), h = duet_size(x, 2), m = duet_size(y, 1), size = duet_size(w, 2),
                  r = duet_size(y, 2);
    const float *a = duet_read(x), *b = duet_read(w), *got = duet_read(y);
    if (!CHECK(a && b && got, "%s", duet_error())) return;
    const double top = largest(a, duet_count(x)) * largest(b, duet_count(w));
    for (int64_t i = 0; i < duet_count(y); i++) {
        const int64_t col = i % r, row = i / r % r, f = i / r / r % m, image = i / r / r / m;
        double sum = 0, weight = 0;
        for (int64_t e = 0; e < c * size * size; e++) {
            const int64_t v = e % size, u = e / size % size, k = e / size / size;
            const double p =
                (double)a[((image * c + k) * h + row + u) * h + col + v] * (double)b[f * c * size * size + e];
            sum += p;
            weight += fabs(p);
        }
        t->worst = fmax(t->worst, fabs((double)got[i] - sum) / weight);
        const double error = fabs((double)got[i] - sum),
                     most = permitted(t->mode, t->where == DUET_GPU, (double)(c * size * size), weight, top);
        if (!CHECK(error <= most, "%s of %s, convolution [%d]: wrong by %g, not at most %g",
                   mode_name[t->mode], kind_name[t->kind], (int)i, error, most))
            return;
    }
}

static void test_convolutions(duet_place where)
{
    duet_matrix *x = duet_new(DUET_F32, 3, 5, 9, 9), *w = duet_new(DUET_F32, 6, 5, 5, 5),
                *y = duet_new(DUET_F32, 3, 6, 5, 5);
    for (int m = 0; m < MODES; m++)
        for (int kind = 0; kind < KINDS; kind++) {
            trial t = { where, (duet_math_mode)m, (enum kind)kind, 0 };
            draw(x, t.kind);
            draw(w, t.kind);
            DUET_ON(where)
            CHECK(duet_set_math(t.mode, y, duet_conv2d(x, w)) == DUET_OK, "%s", duet_error());
            compare_conv(&t, x, w, y);
            const bool is_rounded = m == DUET_MATH_TF32 || m == DUET_MATH_BF16;
            if (PRETENDED && where == DUET_GPU && is_rounded)
                CHECK(t.worst >= 0x1p-16, "%s is more accurate than the mode: its kernel does not run",
                      mode_name[m]);
        }
    duet_free(&x);
    duet_free(&w);
    duet_free(&y);
    tap_point(where == DUET_GPU ? "convolutions on the GPU are within the error bound of the mode"
                                : "convolutions on the CPU are strict");
}

/* ---- results that no mode changes ---- */

static void test_untouched(duet_place where)
{
    duet_matrix *x = drawn(DUET_F32, 20, 30), *y = duet_new(DUET_F32, 20, 30);
    duet_matrix *a = drawn(DUET_F64, 20, 30), *b = drawn(DUET_F64, 30, 25), *c = duet_new(DUET_F64, 20, 25);
    void *map = NULL, *product = NULL;
    DUET_ON(where)
    for (int m = 0; m < MODES; m++) DUET_MATH((duet_math_mode)m)
        {
            CHECK(duet_set(y, duet_sigmoid(duet_mul(x, duet_sum_keep(x, 1)))) == DUET_OK, "%s", duet_error());
            CHECK(duet_set(c, duet_matmul(a, b)) == DUET_OK, "%s", duet_error());
            if (!m) {
                map = elements(y);
                product = elements(c);
            }
            CHECK(same(DUET_F32, map, y), "%s: an operator that is not a product has other bits",
                  mode_name[m]);
            CHECK(same(DUET_F64, product, c), "%s: f64 has other bits", mode_name[m]);
        }
    free(map);
    free(product);
    duet_free(&x);
    duet_free(&y);
    duet_free(&a);
    duet_free(&b);
    duet_free(&c);
    tap_point("math modes do not change f64 and other operators");
}

/* A recording keeps the mode in which it was made, whatever block replays it. */
static void test_recorded(duet_place where)
{
    duet_matrix *x = drawn(DUET_F32, 40, 60), *w = drawn(DUET_F32, 60, 50), *y = duet_new(DUET_F32, 40, 50);
    DUET_ON(where)
    for (int m = 0; m < MODES; m++) {
        duet_recording *r = NULL;
        DUET_MATH((duet_math_mode)m)
        {
            CHECK(duet_record_begin() == DUET_OK && duet_set(y, duet_matmul(x, w)) == DUET_OK, "%s",
                  duet_error());
            r = duet_record_end();
        }
        void *want = elements(y);
        for (int other = 0; other < MODES; other++) {
            CHECK(duet_set(y, 0) == DUET_OK, "%s", duet_error());
            DUET_MATH((duet_math_mode)other) CHECK(r && duet_replay(r) == DUET_OK, "%s", duet_error());
            CHECK(same(DUET_F32, want, y), "recorded in mode %s, replayed in mode %s: the bits differ",
                  mode_name[m], mode_name[other]);
        }
        free(want);
        duet_recording_free(&r);
    }
    duet_free(&x);
    duet_free(&w);
    duet_free(&y);
    tap_point("a recording replays in the math mode of its statements");
}

int main(void)
{
    setenv("DUET_MATH", "tf32", 1);
    setenv("DUET_REPRODUCIBLE", "1", 1);
    gen = rng_new(11);
    places = list_places(place);
    test_precedence();
    test_threads();
    test_explain();
    for (int i = 0; i < places; i++) {
        test_keys(place[i]);
        test_products(place[i]);
        test_convolutions(place[i]);
        test_untouched(place[i]);
        test_recorded(place[i]);
    }
    return tap_end();
}
