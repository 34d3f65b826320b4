/* test_clip_norm.c - the norm of several operands, and gradients that are limited by it. */
#include "common.h"
#include <math.h>

static rng gen;
#define GOES(s) CHECK((s) == DUET_OK, "%s: %s", #s, duet_error())

static duet_matrix *random_of(duet_dtype type, int64_t rows, int64_t columns)
{
    return random_matrix(&gen, type, 2, (int64_t[]){ rows, columns }, -2, 2);
}

static double item(duet_expr e)
{
    double x = NAN;
    GOES(duet_item(duet_cast(e, DUET_F64), &x));
    return x;
}

static double squares(const duet_matrix *m) { return item(duet_sum(duet_square(duet_cast(m, DUET_F64)))); }

static void is_near(double got, double want, duet_dtype type, const char *what)
{
    const double u = type == DUET_F64 ? 0x1p-53 : type == DUET_F32 ? 0x1p-24 : 0x1p-11;
    CHECK(got == want || fabs(got - want) <= 8 * u * fabs(want), "%s: %.17g instead of %.17g", what, got,
          want);
}

/* ---- the norm ---- */

static void norms(duet_dtype type)
{
    duet_matrix *a = random_of(type, 7, 9), *b = random_of(type, 30, 4), *c = random_of(type, 1, 5),
                *none = random_of(type, 0, 5), *norm = duet_new(type);
    GOES(duet_set(norm, duet_global_norm(a, duet_mul(2, b), c)));
    is_near(item(DUET(norm)), sqrt(squares(a) + 4 * squares(b) + squares(c)), type, "three operands");
    is_near(item(duet_global_norm(a)), sqrt(squares(a)), type, "one operand");
    is_near(item(duet_global_norm(none, c, none)), sqrt(squares(c)), type, "no elements");
    is_near(item(duet_global_norm(none)), 0, type, "no elements at all");
    duet_expr many[20];
    for (int k = 0; k < 20; k++) many[k] = DUET(c);
    is_near(item((duet_global_norm)(20, many)), sqrt(20 * squares(c)), type, "twenty operands");
    duet_free(&a, &b, &c, &none, &norm);
}

/* Squares would overflow, or be 0. */
static void extremes(void)
{
    duet_matrix *large = duet_full(DUET_F32, 3e30, 2, 2), *small = duet_full(DUET_F32, 4e-30, 3),
                *strange = duet_full(DUET_F32, NAN, 2);
    is_near(item(duet_global_norm(large, large)), sqrt(8) * 3e30f, DUET_F32, "large elements");
    is_near(item(duet_global_norm(small, small)), sqrt(6) * 4e-30f, DUET_F32, "small elements");
    CHECK(isnan(item(duet_global_norm(large, strange))), "NaN is lost");
    duet_free(&large, &small, &strange);
}

static void derivative(void)
{
    duet_matrix *a = random_of(DUET_F64, 3, 4), *b = random_of(DUET_F64, 2, 2), *d = duet_new(DUET_F64, 3, 4);
    GOES(duet_set(d, duet_grad(duet_global_norm(a, b), a)));
    const double norm = sqrt(squares(a) + squares(b)), *x = duet_read_f64(a), *y = duet_read_f64(d);
    for (int i = 0; x && y && i < 12; i++) is_near(y[i], x[i] / norm, DUET_F64, "the gradient of the norm");
    duet_free(&a, &b, &d);
}

/* ---- clipping ---- */

static void clips(duet_dtype type)
{
    static const double most[] = { 0.5, 1, 1000, 0 };
    duet_matrix *g = random_of(type, 6, 7), *b = random_of(type, 5, 5), *norm = duet_new(type),
                *to = duet_new(type, 6, 7), *limit = duet_new(type, 1, 1, 1), *number = duet_ones(type);
    GOES(duet_set(norm, duet_global_norm(g, b)));
    const double n = sqrt(squares(g) + squares(b));
    for (int k = 0; k < 8; k++) {
        const double by = fmin(1, most[k / 2] / (n + 1e-6));
        GOES(duet_set(limit, most[k / 2]));
        if (k % 2) GOES(duet_set(to, duet_clip_norm(g, norm, most[k / 2])));
        else GOES(duet_set(to, duet_clip_norm(g, duet_global_norm(g, b), limit)));
        for (int i = 0; i < 6; i++)
            is_near(item(duet_index(to, DUET_AT(i), DUET_AT(2))),
                    by * item(duet_index(g, DUET_AT(i), DUET_AT(2))), type, "a clipped element");
    }
    GOES(duet_set(number, duet_clip_norm(number, limit, limit))); /* rank 0 stays */
    GOES(duet_set(to, duet_clip_norm(g, NAN, 1)));
    CHECK(isnan(item(duet_index(to, DUET_AT(0), DUET_AT(0)))), "the norm NaN");
    GOES(duet_arena_limit(64 << 20));
    duet_free(&g, &b, &norm, &to, &limit, &number);
}

/* Clipping joins the pass over memory of an optimiser; the factor is computed before it. */
static void steps(void)
{
    duet_matrix *w = random_of(DUET_F32, 40, 50), *g = random_of(DUET_F32, 40, 50),
                *norm = duet_ones(DUET_F32);
    const uint64_t before = duet_stats().steps;
    GOES(duet_sgd(w, duet_clip_norm(g, norm, 1), 0.1));
    GOES(duet_synchronize());
    CHECK(duet_stats().steps - before == 2, "%d steps", (int)(duet_stats().steps - before));
    duet_free(&w, &g, &norm);
}

/* ---- errors ---- */

#define FAILS(e, status, words)                                                                              \
    do {                                                                                                     \
        const duet_status s_ = duet_set(to, e);                                                              \
        CHECK(s_ == (status) && strstr(duet_error(), words), "%s: %d, %s", #e, (int)s_, duet_error());       \
        GOES(duet_arena_limit(64 << 20));                                                                    \
    } while (0)

static void errors(void)
{
    duet_matrix *a = random_of(DUET_F32, 3, 4), *none = NULL, *to = duet_new(DUET_F32, 3, 4),
                *two = duet_ones(DUET_F32, 2);
    const duet_expr list[] = { { 0 } };
    FAILS((duet_global_norm)(0, list), DUET_BAD_ARGUMENT,
          "duet_global_norm: there must be at least one operand");
    FAILS((duet_global_norm)(3, NULL), DUET_BAD_ARGUMENT,
          "duet_global_norm: there must be at least one operand");
    FAILS(duet_global_norm(a, none, a), DUET_BAD_ARGUMENT, "y must not be NULL");
    FAILS(duet_global_norm(a, duet_add(a, two)), DUET_BAD_SHAPE, "duet_add(x: f32[3,4]");
    FAILS(duet_clip_norm(a, a, 1), DUET_BAD_SHAPE,
          "duet_clip_norm(g: f32[3,4], norm: f32[3,4], most: 1): norm must have one element");
    FAILS(duet_clip_norm(a, 1, a), DUET_BAD_SHAPE, "most must have one element");
    FAILS(duet_clip_norm(none, 1, 1), DUET_BAD_ARGUMENT, "g must not be NULL");
    FAILS(duet_clip_norm(a, none, 1), DUET_BAD_ARGUMENT, "norm must not be NULL");
    FAILS(duet_clip_norm(a, a, none), DUET_BAD_ARGUMENT, "most must not be NULL");
    duet_free(&a, &to, &two);
}

int main(void)
{
    duet_place place[2];
    const int places = list_places(place);
    gen = rng_new(7);
    for (int p = 0; p < places; p++) DUET_ON(place[p])
        {
            norms(DUET_F32);
            norms(DUET_F64);
            norms(DUET_F16);
            extremes();
            derivative();
            tap_point("norms");
            clips(DUET_F32);
            clips(DUET_F64);
            steps();
            tap_point("clipping");
        }
    errors();
    tap_point("errors");
    return tap_end();
}
