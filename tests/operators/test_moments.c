/* test_moments.c - the errors and the range of mean and var: over many lengths, with means far from 0,
 * outliers, and sums that overflow, along rows and columns, of formulas, and in layer_norm. The reference is
 * in long double, with a pass for the mean and one for the variance. */
#include "common.h"
#include "dtype.h"
#include "each_type.h"
#include "reduce_order.h"
#include <float.h>
#include <math.h>

#define LENGTH(a) (int)(sizeof(a) / sizeof *(a))

static duet_place place[2];
static int places;
static rng gen;

static double unit_of(duet_dtype t) { return t == DUET_F32 ? 0x1p-24 : 0x1p-53; }
static double rounded(duet_dtype t, double x) { return t == DUET_F32 ? (double)(float)x : x; }

/* ---- the reference ---- */

typedef struct exact {
    long double mean, var, size; /* size: the mean of the absolute values */
} exact;

static exact exact_of(const double *x, int64_t n)
{
    exact e = { 0 };
    long double middle = 0; /* the mean of the distances from x[0] */
    for (int64_t i = 0; i < n; i++) {
        middle += ((long double)x[i] - x[0]) / n;
        e.mean += (long double)x[i] / n;
        e.size += fabsl((long double)x[i]) / n;
    }
    for (int64_t i = 0; i < n; i++) {
        const long double d = (long double)x[i] - x[0] - middle;
        e.var += d * d / n;
    }
    return e;
}

/* The relative error of var, in u. A lane of k elements loses a factor of k + 1 if its first element is an
 * outlier, of errors that add up over k elements. The joins add little. */
static long double var_bound(int64_t n, bool outlier)
{
    const int64_t most = (n + REDUCE_LANES - 1) / REDUCE_LANES, k = most < 32 ? most : 32;
    return outlier ? 8 + (long double)(k - 1) * (k + 2) : 8 + sqrtl((long double)k);
}

static void near(const char *what, duet_dtype t, int64_t n, double got, long double want, long double allowed)
{
    const bool overflows = fabsl(want) > (t == DUET_F32 ? (long double)FLT_MAX : (long double)DBL_MAX);
    if (overflows)
        CHECK(got == (want > 0 ? INFINITY : -INFINITY), "%s %s, n = %lld: %g, not infinite", what,
              type_name(t), (long long)n, got);
    else
        CHECK(fabsl(got - want) <= allowed, "%s %s, n = %lld: got %.17g, want %.17Lg, allowed %Lg, error %Lg",
              what, type_name(t), (long long)n, got, want, allowed, got - want);
}

/* ---- forms ---- */

enum { COPIES = 3 };

/* The elements as COPIES equal rows, or columns. */
static duet_matrix *copies(duet_dtype t, const double *x, int64_t n, bool columns)
{
    duet_matrix *m = columns ? duet_new(t, n, (int64_t)COPIES) : duet_new(t, (int64_t)COPIES, n);
    void *p = duet_overwrite(m);
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < COPIES; c++) {
            const int64_t at = columns ? i * COPIES + c : c * n + i;
            if (t == DUET_F32) ((float *)p)[at] = (float)x[i];
            else ((double *)p)[at] = x[i];
        }
    return m;
}

/* Checks that all elements of e are near a value. Spends e. */
static void gives(const char *what, duet_dtype t, int64_t n, duet_expr e, long double want,
                  long double allowed)
{
    e = duet_hold(e);
    for (int p = 0; p < places; p++) {
        duet_matrix *m = duet_expr_rank(e) ? duet_new(t, duet_expr_size(e, 0)) : duet_new(t);
        const duet_status s = duet_set_on(place[p], m, e);
        CHECK(s == DUET_OK, "%s: %s", what, duet_error());
        const void *got = s == DUET_OK ? duet_read(m) : NULL;
        for (int64_t i = 0; got && i < duet_count(m); i++)
            near(what, t, n, element(t, got, i), want, allowed);
        duet_free(&m);
    }
    forget(e);
}

/* Every form of mean and var over the same elements. */
static void each_form(duet_dtype t, const double *x, int64_t n, bool outlier)
{
    const exact e = exact_of(x, n);
    const double u = unit_of(t), least = t == DUET_F32 ? 0x1p-149 : 0x1p-1074;
    const long double mean_error = ((n < 4096 ? (n + 127) / 128 : 32) + 24) * u * e.size + least,
                      var_error = var_bound(n, outlier) * u * e.var + 2 * least;
    duet_matrix *rows = copies(t, x, n, false), *columns = copies(t, x, n, true);
    duet_matrix *line = duet_row(rows, 0);
    gives("mean", t, n, duet_mean(line), e.mean, mean_error);
    gives("mean of rows", t, n, duet_mean(rows, 1), e.mean, mean_error);
    gives("mean of columns", t, n, duet_mean(columns, 0), e.mean, mean_error);
    gives("mean of half of a formula", t, n, duet_mean(duet_mul(columns, .5), 0), e.mean / 2, mean_error);
    gives("var", t, n, duet_var(line), e.var, var_error);
    gives("var of rows", t, n, duet_var(rows, 1), e.var, var_error);
    gives("var of columns", t, n, duet_var(columns, 0), e.var, var_error);
    gives("var of half of rows", t, n, duet_var(duet_mul(rows, .5), 1), e.var / 4, var_error / 4 + least);
    gives("var of half of columns", t, n, duet_var(duet_mul(columns, .5), 0), e.var / 4,
          var_error / 4 + least);
    duet_free(&line);
    duet_free(&rows);
    duet_free(&columns);
}

/* ---- small cases ---- */

static void cases(void)
{
    static const double scattered[] = { 101.3, 100.1, 99.7, 100.9, 98.2 },
                        neighbours[] = { 8388608, 8388608, 8388609 },
                        far[] = { 10001.5, 9998.25, 10000.125, 9999.5,  10000.75,
                                  9999,    10000,   10002.25,  9998.75, 10001 };
    FOR_FLOAT_TYPES (t) {
        double x[5];
        for (int i = 0; i < 5; i++) x[i] = rounded(t, scattered[i]);
        each_form(t, x, 5, false);
        each_form(t, neighbours, 3, false);
        each_form(t, far, 10, false);
    }
    tap_point("means far from 0");
}

static void overflows(void)
{
    static const int64_t lengths[] = { 2, 3, 10, 100, 128, 300, 5000, 20000, 40000 };
    FOR_FLOAT_TYPES (t) {
        const double most = t == DUET_F32 ? 3e38 : 1.7e308, root = t == DUET_F32 ? 2e19 : 1e154;
        for (int l = 0; l < LENGTH(lengths); l++) {
            const int64_t n = lengths[l];
            double *x = calloc((size_t)n, sizeof *x);
            x[n - 1] = rounded(t, root); /* only the sum of squares overflows */
            each_form(t, x, n, true);
            for (int64_t i = 0; i < n; i++) x[i] = rounded(t, rng_real(&gen, -root, root) / 2);
            each_form(t, x, n, true);
            for (int64_t i = 0; i < n; i++) x[i] = rounded(t, most); /* only the sum overflows */
            each_form(t, x, n, false);
            for (int64_t i = 0; i < n; i++) x[i] = rounded(t, i % 2 ? most : -most);
            each_form(t, x, n, true);
            for (int64_t i = 0; i < n; i++) x[i] = rounded(t, i < n / 2 ? most : -most * .75);
            each_form(t, x, n, true);
            free(x);
        }
    }
    tap_point("sums that overflow");
}

/* Checks one number; NaN equals NaN. Spends e. */
static void is(const char *what, duet_dtype t, duet_expr e, double want)
{
    e = duet_hold(e);
    for (int p = 0; p < places; p++) {
        double got = 0;
        DUET_ON(place[p])
        {
            CHECK(duet_item(duet_cast(e, DUET_F64), &got) == DUET_OK, "%s: %s", what, duet_error());
        }
        CHECK(isnan(want) ? isnan(got) : got == want, "%s %s on %s: got %g, want %g", what, type_name(t),
              place_name(place[p]), got, want);
    }
    forget(e);
}

/* For infinite elements as for overflow the first pass gives infinity or NaN. */
static void not_finite(void)
{
    static const int64_t lengths[] = { 3, 200, 9000 };
    static const double ends[][3] = { /* the first element, the last, and the mean */
                                      { INFINITY, 1, INFINITY },
                                      { 1, -INFINITY, -INFINITY },
                                      { 3e38, INFINITY, INFINITY },
                                      { INFINITY, -INFINITY, NAN },
                                      { NAN, 1, NAN },
                                      { 1, NAN, NAN },
                                      { INFINITY, NAN, NAN }
    };
    for (int l = 0; l < LENGTH(lengths); l++)
        for (int k = 0; k < LENGTH(ends); k++)
            FOR_FLOAT_TYPES (t) {
                const int64_t n = lengths[l];
                duet_matrix *m = duet_zeros(t, n);
                void *x = duet_update(m);
                for (int end = 0; end < 2; end++) {
                    if (t == DUET_F32) ((float *)x)[end * (n - 1)] = (float)ends[k][end];
                    else ((double *)x)[end * (n - 1)] = ends[k][end];
                }
                is("mean", t, duet_mean(m), ends[k][2]);
                is("var", t, duet_var(m), NAN);
                is("mean of a formula", t, duet_mean(duet_mul(m, -1)), -ends[k][2]);
                is("var of a formula", t, duet_var(duet_mul(m, -1)), NAN);
                duet_free(&m);
            }
    tap_point("infinities and NaN");
}

/* Outputs that are reduced again beside outputs that are not, and beside other reductions. */
static void side_by_side(void)
{
    static const int64_t lengths[] = { 2, 60, 300, 5000 };
    for (int l = 0; l < LENGTH(lengths); l++)
        for (int p = 0; p < places; p++) {
            enum { COLUMNS = 9 };
            const int64_t n = lengths[l];
            duet_matrix *m = random_matrix(&gen, DUET_F32, 2, (int64_t[]){ n, COLUMNS }, 1, 2),
                        *mean = duet_new(DUET_F32, (int64_t)COLUMNS),
                        *var = duet_new(DUET_F32, (int64_t)COLUMNS),
                        *most = duet_new(DUET_F32, (int64_t)COLUMNS);
            float *x = duet_update(m);
            for (int64_t i = 0; i < n; i++) {
                x[i * COLUMNS + 3] *= 1e19f;
                x[i * COLUMNS + 4] *= 1.6e38f;
                x[i * COLUMNS + 5] *= i % 2 ? 1.6e38f : -1.6e38f;
            }
            double *one = malloc((size_t)n * sizeof *one);
            DUET_ON(place[p])
            for (int formula = 0; formula < 2; formula++) {
                const duet_expr e = formula ? duet_sub(m, 0.) : duet_of_matrix(m);
                CHECK(duet_set_all({ mean, duet_mean(e, 0) }, { most, duet_max(e, 0) },
                                   { var, duet_var(e, 0) }) == DUET_OK,
                      "%s", duet_error());
                for (int c = 0; c < COLUMNS; c++) {
                    for (int64_t i = 0; i < n; i++) one[i] = ((const float *)duet_read(m))[i * COLUMNS + c];
                    const exact want = exact_of(one, n);
                    near("mean of a column", DUET_F32, n, element(DUET_F32, duet_read(mean), c), want.mean,
                         64 * 0x1p-24 * want.size);
                    near("var of a column", DUET_F32, n, element(DUET_F32, duet_read(var), c), want.var,
                         var_bound(n, true) * 0x1p-24 * want.var);
                }
            }
            free(one);
            duet_free(&m);
            duet_free(&mean);
            duet_free(&var);
            duet_free(&most);
        }
    tap_point("outputs side by side");
}

/* f16 and bf16 are computed in f32 and rounded. */
static void short_types(void)
{
    static const double scattered[] = { 101.3, 100.1, 99.7, 100.9, 98.2 };
    const duet_dtype types[] = { DUET_F16, DUET_BF16 };
    for (int k = 0; k < 2; k++) {
        const double unit = types[k] == DUET_F16 ? 0x1p-11 : 0x1p-8;
        duet_matrix *wide = duet_from_array(scattered, DUET_F64, 5),
                    *m = duet_eval(duet_cast(wide, types[k])), *back = duet_eval(duet_cast(m, DUET_F64));
        const exact want = exact_of(duet_read(back), 5);
        for (int p = 0; p < places; p++) {
            double mean = 0, var = 0;
            DUET_ON(place[p])
            {
                CHECK(duet_item(duet_cast(duet_mean(m), DUET_F64), &mean, duet_cast(duet_var(m), DUET_F64),
                                &var) == DUET_OK,
                      "%s", duet_error());
            }
            near("mean of a short type", DUET_F32, 5, mean, want.mean, 1.001 * unit * fabsl(want.mean));
            near("var of a short type", DUET_F32, 5, var, want.var, 1.001 * unit * want.var);
        }
        duet_free(&wide);
        duet_free(&m);
        duet_free(&back);
    }
    tap_point("f16 and bf16");
}

/* ---- random elements ---- */

/* A sum of four uniform numbers: close to normal, deviation 1. */
static double spread_number(void)
{
    double x = 0;
    for (int i = 0; i < 4; i++) x += rng_real(&gen, -1, 1);
    return x * 0.866;
}

static void one_sample(duet_dtype t, int64_t n, double offset, double scale, bool outlier)
{
    double *x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++) x[i] = rounded(t, (spread_number() + offset) * scale);
    if (outlier) x[0] = rounded(t, (offset - rng_real(&gen, 1, 1e6)) * scale);
    each_form(t, x, n, outlier);
    free(x);
}

static void random_samples(int trials)
{
    static const int64_t lengths[] = { 1, 2, 7, 16, 40, 128, 129, 256, 1000, 4096, 4097, 20000 };
    static const double offsets[] = { 0, 1, 100, 1e4, 1e6 };
    for (int i = 0; i < trials; i++) {
        const duet_dtype t = i % 2 ? DUET_F64 : DUET_F32;
        const int64_t n = rng_chance(&gen, 50) ? lengths[rng_below(&gen, LENGTH(lengths))]
                                               : 1 + rng_below(&gen, rng_chance(&gen, 50) ? 300 : 20000);
        const double scales[] = { 1, 1e-3, 1e10, t == DUET_F32 ? 1e18 : 1e153,
                                  t == DUET_F32 ? 1e-18 : 1e-150 };
        const double scale = scales[rng_below(&gen, LENGTH(scales))];
        one_sample(t, n, offsets[rng_below(&gen, LENGTH(offsets))], scale, rng_chance(&gen, 30));
    }
    tap_point("random elements");
}

/* ---- layer_norm ---- */

static void one_norm(const char *what, int64_t n, const float *x, double r)
{
    duet_matrix *m = duet_new(DUET_F32, (int64_t)2, n), *y = duet_new(DUET_F32, (int64_t)2, n);
    double *one = malloc((size_t)n * sizeof *one);
    for (int64_t i = 0; i < n; i++) one[i] = x[i];
    for (int row = 0; row < 2; row++) memcpy((float *)duet_update(m) + row * n, x, (size_t)n * sizeof *x);
    const exact e = exact_of(one, n);
    const long double u = 0x1p-24, scale = e.var + r > FLT_MAX ? 0 : 1 / sqrtl(e.var + r);
    for (int p = 0; p < places; p++) {
        CHECK(duet_set_on(place[p], y, duet_layer_norm(m, 1, 0, r)) == DUET_OK, "%s", duet_error());
        const float *got = duet_read(y);
        for (int64_t i = 0; i < 2 * n; i++) {
            const long double want = (x[i % n] - e.mean) * scale,
                              allowed = fabsl(want) * (var_bound(n, true) + 8) * u + 64 * u * e.size * scale;
            if (!CHECK(fabsl(got[i] - want) <= allowed, "%s, n = %lld [%lld]: got %g, want %Lg, allowed %Lg",
                       what, (long long)n, (long long)i, got[i], want, allowed))
                break;
        }
    }
    free(one);
    duet_free(&m);
    duet_free(&y);
}

static void layer_norms(void)
{
    static const int64_t lengths[] = { 2, 5, 16, 40, 64, 100, 129, 700, 1024, 1500, 5000, 16384, 20000 };
    for (int l = 0; l < LENGTH(lengths); l++) {
        const int64_t n = lengths[l];
        float *x = calloc((size_t)n, sizeof *x);
        x[n - 1] = 2e19f;
        one_norm("a sum of squares that overflows", n, x, 1e-5);
        for (int64_t i = 0; i < n; i++) x[i] = i % 3 ? 3e38f : 2.5e38f;
        one_norm("a sum that overflows", n, x, 1e-5);
        for (int64_t i = 0; i < n; i++) x[i] = (float)(1e4 + spread_number());
        one_norm("a mean far from 0", n, x, 1e-5);
        free(x);
    }
    tap_point("layer_norm");
}

int main(int argc, char **argv)
{
    gen = rng_new(4242);
    places = list_places(place);
    cases();
    overflows();
    not_finite();
    side_by_side();
    short_types();
    random_samples(trial_count(argc, argv, 150, 1500));
    layer_norms();
    return tap_end();
}
