/* test_etl.c - cases that ETL, the library of the paper, was found to compute wrong, on every
 * machine. Those of linear algebra are in test_linear_cases.c. */
#include "common.h"
#include <math.h>

static duet_place place[2];
static int places;

static void set(duet_place p, duet_matrix *m, duet_expr e)
{
    const duet_status s = (duet_set_on)(p, m, e);
    CHECK(s == DUET_OK, "%s: %s", place_name(p), duet_error());
}

static duet_matrix *filled(double v, int64_t n)
{
    duet_matrix *m = duet_new(DUET_F32, n);
    float *x = duet_overwrite(m);
    for (int64_t i = 0; i < n; i++) x[i] = (float)v;
    return m;
}

static double value_at(const duet_matrix *m, int64_t i)
{
    const float *x = duet_read(m);
    if (x) return (double)x[i];
    return NAN;
}

/* The value of a formula without axes. */
static double number(duet_place p, duet_expr e)
{
    duet_matrix *m = duet_new(DUET_F32);
    set(p, m, e);
    const double v = value_at(m, 0);
    duet_free(&m);
    return v;
}

/* ---- views and matrices that share, move and exchange storage while the valid buffer is on the
 * GPU ---- */

static void test_coherence(duet_place p)
{
    duet_matrix *a = duet_new(DUET_F32, 6, 8), *b = duet_new(DUET_F32, 6, 8), *u = duet_new(DUET_F32, 8);
    set(p, b, DUET(1));
    set(p, a, duet_add(b, b));
    duet_matrix *row = duet_row(a, 3), *part = duet_slice(a, 2, 2), *column = duet_column(a, 5);
    CHECK(value_at(row, 7) == 2 && value_at(part, 15) == 2 && value_at(column, 0) == 2,
          "a view has wrong elements");
    set(DUET_CPU, u, DUET(row));
    CHECK(value_at(u, 0) == 2, "a view has wrong elements on the other machine: %g", value_at(u, 0));
    set(p, row, duet_mul(row, 3));
    CHECK(value_at(a, 3 * 8) == 6 && value_at(a, 2 * 8) == 2,
          "the elements written through a view are wrong");
    float *x = duet_overwrite(a);
    for (int i = 0; i < 48; i++) x[i] = 7;
    set(p, u, duet_add(row, 0));
    CHECK(value_at(u, 3) == 7 && value_at(part, 0) == 7, "the elements that the host wrote last are lost");
    set(p, a, duet_add(b, 4));
    CHECK(duet_set_all({ a, DUET(b) }, { b, duet_add(b, 4) }) == DUET_OK && value_at(a, 0) == 1 &&
              value_at(b, 0) == 5,
          "two matrices are not exchanged");
    duet_matrix *all[] = { row, part, column, a, b, u };
    for (int i = 0; i < 6; i++) duet_free(&all[i]);
}

static void test_overlap(duet_place p)
{
    const int64_t lengths[] = { 5, 1 << 20 };
    for (int k = 0; k < 2; k++) {
        const int64_t n = lengths[k];
        duet_matrix *x = filled(0, n), *ahead = duet_slice(x, 1, n - 1), *behind = duet_slice(x, 0, n - 1);
        float *v = duet_overwrite(x);
        for (int64_t i = 0; i < n; i++) v[i] = (float)i;
        set(p, ahead, duet_add(behind, 0));
        int64_t wrong = 0;
        const float *is = duet_read(x);
        for (int64_t i = 1; i < n; i++) wrong += is[i] != (float)(i - 1);
        CHECK(!wrong, "%lld of %lld elements are wrong", (long long)wrong, (long long)n);
        duet_free(&ahead);
        duet_free(&behind);
        duet_free(&x);
    }
}

/* ---- random numbers ---- */

static void test_random(duet_place p)
{
    const int64_t lengths[] = { 1, 7, 1001 };
    DUET_ON(p)
    for (int k = 0; k < 3; k++) {
        duet_matrix *x = filled(99, lengths[k]);
        CHECK(duet_random_normal(x, 5, 0, 1) == DUET_OK, "%s", duet_error());
        const float *v = duet_read(x);
        for (int64_t i = 0; i < lengths[k]; i++)
            CHECK(fabsf(v[i]) < 6 && (!i || v[i] != v[i - 1]), "normal %d is %g", (int)i, (double)v[i]);
        duet_free(&x);
    }
    duet_matrix *x = filled(0, 100000);
    DUET_ON(p) CHECK(duet_random_bernoulli(x, 5, 0.3) == DUET_OK, "%s", duet_error());
    const double mean = number(p, duet_mean(x));
    CHECK(fabs(mean - 0.3) < 4.9 * sqrt(0.21 / 100000), "a Bernoulli mean of %g for 0.3", mean);
    duet_free(&x);
}

/* ---- functions ---- */

static duet_expr weak(float v)
{
    static duet_matrix *m;
    duet_free(&m);
    m = filled((double)v, 1);
    return duet_sum(m);
}

static void test_specials(duet_place p)
{
    CHECK(number(p, duet_exp(weak(INFINITY))) == INFINITY && isnan(number(p, duet_exp(weak(NAN)))),
          "exp of infinity or NaN is wrong");
    CHECK(number(p, duet_exp(weak(89.5f))) == INFINITY, "exp overflows to infinity");
    CHECK(fabs(number(p, duet_exp(weak(-90))) - exp(-90)) <= 0x1p-149, "exp of -90 is subnormal");
    CHECK(number(p, duet_log(weak(0))) == -INFINITY && number(p, duet_log(weak(INFINITY))) == INFINITY,
          "log of 0 or infinity is wrong");
    CHECK(isnan(number(p, duet_log(weak(NAN)))) && isnan(number(p, duet_relu(weak(NAN)))),
          "log or relu of NaN is wrong");
    CHECK(isnan(number(p, duet_maximum(weak(NAN), 0))) && isnan(number(p, duet_maximum(0, weak(NAN)))),
          "the maximum of NaN and 0 is wrong");
    CHECK(number(p, duet_div(weak(5), 3)) == (double)(5.0f / 3.0f),
          "a quotient is computed as a product with the reciprocal");
    for (int i = 0; i < 3; i++) {
        duet_matrix *x = filled(2, 3);
        ((float *)duet_update(x))[i] = NAN;
        CHECK(isnan(number(p, duet_max(x))) && isnan(number(p, duet_min(x))),
              "max or min with a NaN at index %d is not NaN", i);
        duet_free(&x);
    }
}

/* In units in the last place of f32. */
static double ulps(double is, double should) { return fabs(is - should) / ldexp(1, ilogb(should) - 23); }

static void test_accuracy(duet_place p)
{
    for (int i = 0; i < 40; i++) {
        const float small = ldexpf(1.3f + 0.01f * (float)i, -i), large = 99991.5f + 13.7f * (float)i;
        double e = ulps(number(p, duet_tanh(weak(small))), tanh((double)small));
        CHECK(e <= 2, "tanh(%g): %g ulp", (double)small, e);
        e = ulps(number(p, duet_sin(weak(large))), sin((double)large));
        CHECK(e <= 2, "sin(%g): %g ulp", (double)large, e);
        e = ulps(number(p, duet_cos(weak(large))), cos((double)large));
        CHECK(e <= 2, "cos(%g): %g ulp", (double)large, e);
    }
}

/* ---- sums ---- */

static void test_sums(duet_place p)
{
    const int64_t n = 10000000;
    const double tenth = (double)0.1f;
    duet_matrix *x = filled(0.1, n), *big = filled(1e30, 4);
    CHECK(fabs(number(p, duet_sum(x)) - tenth * (double)n) <= 1e-6 * 1e6, "the sum of 10^7 tenths: %.9g",
          number(p, duet_sum(x)));
    CHECK(fabs(number(p, duet_mean(x)) - tenth) <= 1e-6 * 0.1, "their mean: %.9g", number(p, duet_mean(x)));
    CHECK(number(p, duet_std(x)) <= 1e-7, "their standard deviation: %.9g", number(p, duet_std(x)));
    CHECK(fabs(number(p, duet_norm(x)) - tenth * sqrt((double)n)) <= 1e-6 * 316, "their norm: %.9g",
          number(p, duet_norm(x)));
    CHECK(fabs(number(p, duet_norm(big)) - 2e30) <= 1e24, "the norm of large elements: %g",
          number(p, duet_norm(big)));
    duet_free(&x);
    duet_free(&big);
}

static void test_softmax(duet_place p)
{
    duet_matrix *x = filled(1000, 3), *y = filled(0, 3);
    float *v = duet_update(x);
    v[1] = 1001;
    v[2] = 1002;
    set(p, y, duet_softmax(x));
    const double whole = 1 + exp(-1) + exp(-2);
    for (int i = 0; i < 3; i++)
        CHECK(fabs(value_at(y, i) - exp(i - 2) / whole) <= 1e-6, "softmax %d: %g", i, value_at(y, i));
    duet_free(&x);
    duet_free(&y);
}

/* ---- bad input ---- */

static void test_refusals(duet_place p)
{
    duet_matrix *four = filled(1, 4), *eight = filled(1, 8), *a = duet_new(DUET_F32, 4, 3),
                *b = duet_new(DUET_F32, 5, 4);
    duet_matrix *c = duet_new(DUET_F32, 4, 4);
    CHECK(duet_set_on(p, four, duet_add(four, eight)) == DUET_BAD_SHAPE && value_at(four, 3) == 1,
          "the sum of 4 and 8 elements did not fail");
    CHECK(duet_set_on(p, c, duet_matmul(a, b)) == DUET_BAD_SHAPE,
          "the product of 4 x 3 and 5 x 4 did not fail");
    CHECK(!duet_slice(four, 0, 10), "a view of 10 elements of a matrix of 4 did not fail");
    CHECK(!duet_new(DUET_F32, (int64_t)1 << 61, 8), "a matrix of more than 2^63 elements was made");
    duet_matrix *all[] = { four, eight, a, b, c };
    for (int i = 0; i < 5; i++) duet_free(&all[i]);
}

static void each_place(void test(duet_place), const char *what)
{
    for (int i = 0; i < places; i++) test(place[i]);
    tap_point(what);
}

int main(void)
{
    places = list_places(place);
    each_place(test_coherence, "views, and who wrote last");
    each_place(test_overlap, "slices that overlap");
    each_place(test_random, "random numbers: the last element, and Bernoulli's mean");
    each_place(test_specials, "infinities and NaN");
    each_place(test_accuracy, "tanh near 0, sine and cosine of large angles");
    each_place(test_sums, "sums of 10^7 elements, and of large ones");
    each_place(test_softmax, "softmax of 1000");
    each_place(test_refusals, "shapes that do not fit");
    return tap_end();
}
