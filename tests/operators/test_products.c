/* test_products.c - random products, with and without epilogues: sizes on both sides of the limits
 * by which kernels are chosen; operands that are views, transposed, shifted by an element or with
 * gaps; infinities and NaN; results into views; the destination among the operands. */
#include "common.h"
#include "dtype.h"
#include "each_type.h"
#include "plan.h"
#include <math.h>
#include <string.h>

static duet_place place[2];
static int places;
static rng gen;

/* Mostly small, sometimes large: one more or less than what a kernel takes at once. */
static int64_t random_size(const int64_t *often, int n, int64_t most)
{
    if (rng_chance(&gen, 60)) return often[rng_below(&gen, n)];
    return 1 + rng_below(&gen, most);
}

static const int64_t few[] = { 0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 200 };
#define FEW (int)(sizeof few / sizeof *few)

typedef struct factors {
    duet_matrix *a, *b, *bias, *whole[2];
} factors;

static enum view random_layout(void)
{
    static const enum view of[] = { VIEW_NONE, VIEW_NONE, VIEW_SLICE, VIEW_SUBMATRIX, VIEW_TRANSPOSED };
    return of[rng_below(&gen, 5)];
}

/* Rarely a special element, in one operand only, so that nothing hides it. */
static void spoil(duet_matrix *m)
{
    static const double with[] = { NAN, INFINITY, -INFINITY, 1e30 };
    const int64_t n = duet_count(m), rows = duet_size(m, 0), cols = duet_size(m, 1);
    if (!n || !rng_chance(&gen, 15)) return;
    duet_matrix *one = duet_submatrix(m, rng_below(&gen, rows), rng_below(&gen, cols), 1, 1);
    CHECK(one && duet_set(one, with[rng_below(&gen, 4)]) == DUET_OK, "%s", duet_error());
    duet_free(&one);
}

static factors random_factors(duet_dtype type, int64_t m, int64_t k, int64_t n)
{
    factors f;
    f.a = random_view(&gen, random_layout(), type, 2, (int64_t[]){ m, k }, -1, 1, &f.whole[0]);
    f.b = random_view(&gen, random_layout(), type, 2, (int64_t[]){ k, n }, -1, 1, &f.whole[1]);
    f.bias = random_matrix(&gen, type, 1, &n, -1, 1);
    if (f.a) spoil(f.a);
    return f;
}

static void factors_free(factors *f)
{
    if (f->whole[0] != f->a) duet_free(&f->whole[0]);
    if (f->whole[1] != f->b) duet_free(&f->whole[1]);
    duet_free(&f->a);
    duet_free(&f->b);
    duet_free(&f->bias);
}

static duet_expr random_formula(const factors *f)
{
    duet_expr e = duet_matmul(f->a, f->b);
    if (rng_chance(&gen, 25)) e = duet_mul(rng_real(&gen, -2, 2), e);
    switch (rng_below(&gen, 7)) {
    case 0: return duet_relu(duet_bias_add(e, f->bias));
    case 1: return duet_sigmoid(duet_bias_add(e, f->bias));
    case 2: return duet_tanh(duet_bias_add(e, f->bias));
    case 3: return duet_softmax(duet_bias_add(e, f->bias));
    case 4: return duet_mul(duet_relu(duet_bias_add(e, f->bias)), 2); /* more than an epilogue */
    case 5: return duet_bias_add(e, f->bias);
    default: return e;
    }
}

static void one(duet_dtype type, int64_t m, int64_t k, int64_t n)
{
    factors f = random_factors(type, m, k, n);
    duet_matrix *whole, *to = random_view(&gen, rng_chance(&gen, 70) ? VIEW_NONE : VIEW_SUBMATRIX, type, 2,
                                          (int64_t[]){ m, n }, -5, 5, &whole);
    const rng before = gen;
    for (int p = 0; p < places && f.a && f.b && to; p++) {
        gen = before;
        plan_fusion((int)rng_below(&gen, 3));
        const char *why = NULL;
        DUET_ON(place[p])
        why =
            oracle_refutes(rng_chance(&gen, 10) && n == k && type == DUET_F32 ? f.a : to, random_formula(&f));
        CHECK(!why, "%lld x %lld by %lld on %s: %s", (long long)m, (long long)k, (long long)n,
              place_name(place[p]), why);
    }
    plan_fusion(-1);
    if (whole != to) duet_free(&whole);
    duet_free(&to);
    factors_free(&f);
}

static void many(duet_dtype type, int times)
{
    for (int i = 0; i < times; i++) {
        const int64_t m = random_size(few, FEW, 150), k = random_size(few, FEW, 300),
                      n = random_size(few, FEW, 70);
        one(type, m, k, m * k * n > 400000 ? 5 + n % 12 : n);
    }
    tap_point(type == DUET_F32 ? "random products, f32" : "random products, f64");
}

/* Few columns, and so many rows that they stay in shared memory. */
static void tall(duet_dtype type)
{
    for (int64_t n = 1; n <= 17; n += 1 + rng_below(&gen, 4))
        one(type, 2048 + rng_below(&gen, 40), 1 + rng_below(&gen, 20), n);
    tap_point(type == DUET_F32 ? "products of many rows and few columns, f32"
                               : "products of many rows and few columns, f64");
}

static void column(int64_t m, int64_t k, enum view how)
{
    duet_matrix *whole, *a = random_view(&gen, how, DUET_F32, 2, (int64_t[]){ m, k }, -1, 1, &whole),
                        *b = random_matrix(&gen, DUET_F32, 2, (int64_t[]){ k, 1 }, -1, 1),
                        *bias = random_matrix(&gen, DUET_F32, 1, (int64_t[]){ 1 }, -1, 1),
                        *to = random_matrix(&gen, DUET_F32, 2, (int64_t[]){ m, 1 }, -1, 1);
    for (int p = 0; p < places && a && b && bias && to; p++) {
        const char *why = NULL;
        DUET_ON(place[p]) why = oracle_refutes(to, duet_relu(duet_bias_add(duet_matmul(a, b), bias)));
        CHECK(!why, "%lld x %lld by 1 on %s: %s", (long long)m, (long long)k, place_name(place[p]), why);
    }
    if (whole != a) duet_free(&whole);
    duet_free(&a, &b, &bias, &to);
}

/* One column, on both sides of the limits from which a warp sums each row. */
static void columns(void)
{
    column(2048, 2049, VIEW_NONE);
    column(2051, 2052, VIEW_NONE);
    column(2048, 2052, VIEW_TRANSPOSED);
    column(2047, 2049, VIEW_TRANSPOSED);
    column(2048, 2048, VIEW_NONE);
    tap_point("products of many long rows and a column");
}

/* ---- both sides of the limits that choose between OpenBLAS and oneDNN, and one thread or several ---- */

static const struct limit {
    int64_t m, n, k;
} limits[] = {
    { 13, 21, 30 },    { 16, 16, 32 },    { 3, 171, 16 },  /* 8191 multiplications */
    { 40, 40, 40 },    { 41, 40, 40 },    { 5, 100, 128 }, /* 64000, if only b is transposed */
    { 24, 50, 300 },   { 24, 51, 300 },   { 2, 600, 60 },  /* 1200 results, if only b is transposed */
    { 100, 100, 100 }, { 101, 100, 100 }, { 7, 400, 357 },  { 350, 8, 358 },   /* 100^3 multiplications */
    { 1, 128, 64 },    { 1, 1000, 400 },  { 1, 1000, 401 }, { 1, 1000, 1001 }, /* a row times a matrix */
    { 95, 1, 97 },     { 96, 1, 96 },     { 700, 1, 700 },  { 720, 1, 720 },   /* a matrix times a column */
    { 48, 48, 3 },     { 100, 100, 1 },
};

enum { TRANSPOSE_A = 1, TRANSPOSE_B = 2, TRANSPOSES = 4, FORMULAS = 5 };

typedef struct limited {
    duet_matrix *x, *whole;
    bool transposed;
} limited;

/* A factor, of which Duet reads a transposed view if `transposed`. */
static limited limited_new(duet_dtype type, bool transposed, int64_t rows, int64_t cols)
{
    limited f = { .transposed = transposed };
    const int64_t size[2] = { transposed ? cols : rows, transposed ? rows : cols };
    f.x =
        random_view(&gen, rng_chance(&gen, 50) ? VIEW_NONE : VIEW_SUBMATRIX, type, 2, size, -1, 1, &f.whole);
    CHECK(f.x != NULL, "%s", duet_error());
    return f;
}

static duet_expr limited_read(const limited *f) { return f->transposed ? duet_transpose(f->x) : DUET(f->x); }

static void limited_free(limited *f)
{
    if (f->whole != f->x) duet_free(&f->whole);
    duet_free(&f->x);
}

static duet_expr limited_formula(int which, duet_expr product, const duet_matrix *to, const duet_matrix *bias)
{
    switch (which) {
    case 0: return product;
    case 1: return duet_mul(-1.5, product);
    case 2: return duet_add(duet_mul(0.5, product), duet_mul(2, to)); /* in place */
    case 3: return duet_add(product, to);
    default: return duet_relu(duet_bias_add(product, bias));
    }
}

static void at_limit(duet_dtype type, const struct limit *l, int transposes, int which)
{
    limited a = limited_new(type, transposes & TRANSPOSE_A, l->m, l->k),
            b = limited_new(type, transposes & TRANSPOSE_B, l->k, l->n),
            to = limited_new(type, 0, l->m, l->n);
    duet_matrix *bias = random_matrix(&gen, type, 1, &l->n, -1, 1);
    const char *why =
        oracle_refutes(to.x,
                       limited_formula(which, duet_matmul(limited_read(&a), limited_read(&b)), to.x, bias));
    CHECK(!why, "%lld x %lld by %lld, transposes %d, formula %d: %s", (long long)l->m, (long long)l->k,
          (long long)l->n, transposes, which, why);
    duet_free(&bias);
    limited_free(&a);
    limited_free(&b);
    limited_free(&to);
}

/* The formulas take turns. A quick test leaves out transposes of a. */
static void at_limits(duet_dtype type, bool quick)
{
    int turn = 0;
    DUET_ON(DUET_CPU)
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        for (int transposes = 0; transposes < TRANSPOSES; transposes++)
            if (!quick || !(transposes & TRANSPOSE_A))
                at_limit(type, &limits[i], transposes, turn++ % FORMULAS);
    tap_point("both sides of the limits between libraries");
}

/* Small products use one thread, so that their bits do not depend on the number of threads. */
static void any_threads(const struct limit *l, int transposes)
{
    limited a = limited_new(DUET_F32, transposes & TRANSPOSE_A, l->m, l->k),
            b = limited_new(DUET_F32, transposes & TRANSPOSE_B, l->k, l->n);
    duet_matrix *to[2] = { duet_new(DUET_F32, l->m, l->n), duet_new(DUET_F32, l->m, l->n) };
    for (int t = 0; t < 2; t++) DUET_THREADS(1 + 2 * t)
    CHECK(duet_set(to[t], duet_matmul(limited_read(&a), limited_read(&b))) == DUET_OK, "%s", duet_error());
    CHECK(!memcmp(duet_read(to[0]), duet_read(to[1]), (size_t)(l->m * l->n) * sizeof(float)),
          "%lld x %lld by %lld, transposes %d: other bits with three threads", (long long)l->m,
          (long long)l->k, (long long)l->n, transposes);
    duet_free(&to[0], &to[1]);
    limited_free(&a);
    limited_free(&b);
}

static void any_number_of_threads(void)
{
    DUET_ON(DUET_CPU)
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        for (int transposes = 0; transposes < TRANSPOSES; transposes++)
            if (limits[i].m > 1 && limits[i].n > 1 && limits[i].m * limits[i].n * limits[i].k <= 64 * 64 * 64)
                any_threads(&limits[i], transposes);
    tap_point("the bits of small products for one thread and three");
}

int main(int argc, char **argv)
{
    const bool quick = is_quick(argc, argv);
    gen = rng_new(20261122);
    places = list_places(place);
    FOR_FLOAT_TYPES (type) {
        many(type, type == DUET_F32 ? (quick ? 80 : 250) : quick ? 20 : 60);
        tall(type);
    }
    columns();
    at_limits(DUET_F32, quick);
    at_limits(DUET_F64, true);
    any_number_of_threads();
    return tap_end();
}
