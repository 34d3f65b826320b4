/* test_products.c - random products, with and without epilogues: sizes on both sides of the limits
 * by which kernels are chosen; operands that are views, transposed, shifted by an element or with
 * gaps; infinities and NaN; results into views; the destination among the operands. */
#include "common.h"
#include "dtype.h"
#include "each_type.h"
#include "plan.h"
#include <math.h>

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

int main(int argc, char **argv)
{
    const bool quick = is_quick(argc, argv);
    gen = rng_new(20261122);
    places = list_places(place);
    FOR_FLOAT_TYPES (type) {
        many(type, type == DUET_F32 ? (quick ? 80 : 250) : quick ? 20 : 60);
        tall(type);
    }
    return tap_end();
}
