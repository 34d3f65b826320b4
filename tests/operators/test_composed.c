/* test_composed.c - the operators of composed.def: each formula equals the function of C that its
 * row names, and the machines compute the formula. The oracle bounds the formula as written; the
 * value of the C function must be within these bounds. */
#include "common.h"
#include "dtype.h"
#include "each_type.h"
#include <math.h>

#define PI 3.14159265358979323846264338327950288L
enum { COUNT = 500, ROWS = 7, COLUMNS = 13 };

typedef long double meaning(long double x, long double y, long double z, long double s);
typedef long double reduce_meaning(const double *x, int n);

static long double fast_sigmoid_of(long double x)
{
    const long double h = fabsl(x) / 2;
    long double z = 0.99505475368673;
    if (h < 1.7) z = 1.5L * h / (1 + h);
    else if (h < 3) z = 0.935409070603099 + 0.0458812946797165 * (h - 1.7);
    return (1 + copysignl(z, x)) / 2;
}

#define MEANING(name, known)                                                                                 \
    static long double known_##name(long double x, long double y, long double z, long double s)              \
    {                                                                                                        \
        (void)x, (void)y, (void)z, (void)s;                                                                  \
        return known;                                                                                        \
    }
#define DUET_COMPOSED1(name, formula, known, doc)  MEANING(name, known)
#define DUET_COMPOSED2(name, formula, known, doc)  MEANING(name, known)
#define DUET_COMPOSED3(name, formula, known, doc)  MEANING(name, known)
#define DUET_COMPOSED1N(name, formula, known, doc) MEANING(name, known)
#include <duet/composed.def>

#define SUM(term)                                                                                            \
    __extension__({                                                                                          \
        long double sum_ = 0;                                                                                \
        for (int k = 0; k < n; k++) sum_ += term;                                                            \
        sum_;                                                                                                \
    })
#define MOST(term)                                                                                           \
    __extension__({                                                                                          \
        long double most_ = -INFINITY;                                                                       \
        for (int k = 0; k < n; k++) most_ = fmaxl(most_, term);                                              \
        most_;                                                                                               \
    })
#define DUET_COMPOSED_FOLD1(name, formula, known, doc)                                                       \
    static long double known_##name(const double *x, int n) { return known; }
#include <duet/composed.def>

static rng gen;
static duet_place place[2];
static int places;

static double draw(duet_dtype type)
{
    const double x = rng_real(&gen, -1, 1) * (rng_chance(&gen, 75) ? 4 : 15);
    if (type == DUET_F32) return (double)(float)x;
    return x;
}

static duet_matrix *filled(duet_dtype type, int rows, int columns, double *copy)
{
    duet_matrix *m = duet_new(type, rows, columns);
    void *p = duet_overwrite(m);
    for (int i = 0; i < rows * columns; i++) {
        copy[i] = draw(type);
        if (type == DUET_F32) ((float *)p)[i] = (float)copy[i];
        else ((double *)p)[i] = copy[i];
    }
    return m;
}

/* Is the value of C within the bounds of the oracle, apart from the rounding of C's own functions? */
static void means(const char *name, const table *want, int64_t i, long double known)
{
    const bounds *w = &want->at[i];
    const long double own = fabsl(known) * 0x1p-58L + 0x1p-1070L;
    CHECK(w->wild || (known >= w->lo - own && known <= w->hi + own),
          "%s [%d]: the row says %.17Lg, the formula %.17g to %.17g", name, (int)i, known, (double)w->lo,
          (double)w->hi);
}

/* Spends e. */
static void runs(const char *name, duet_expr e, int rank, const int64_t *size)
{
    duet_matrix *out = duet_new_shape(duet_expr_type(e), rank, size);
    e = duet_hold(e);
    for (int k = 0; k < places; k++) DUET_ON(place[k])
        {
            const char *why = oracle_refutes(out, e);
            CHECK(!why, "%s on %s: %s", name, place_name(place[k]), why);
        }
    forget(e);
    duet_free(&out);
}

typedef duet_expr maker(duet_expr x, duet_expr y, duet_expr z, double s);

static void element_wise(const char *name, maker *make, meaning *known, duet_dtype type)
{
    static double x[COUNT], y[COUNT], z[COUNT];
    const double s = 0.25;
    duet_matrix *m[3] = { filled(type, COUNT, 1, x), filled(type, COUNT, 1, y), filled(type, COUNT, 1, z) };
    duet_expr e = make(duet_of_matrix(m[0]), duet_of_matrix(m[1]), duet_of_matrix(m[2]), s);
    table want = oracle(e, type);
    CHECK(want.at && want.count == COUNT, "%s: %s", name, duet_error());
    for (int i = 0; i < COUNT && want.at; i++) means(name, &want, i, known(x[i], y[i], z[i], s));
    table_free(&want);
    runs(
        name, e, 2, (int64_t[]) {
            COUNT
            , 1
        });
    for (int k = 0; k < 3; k++) duet_free(&m[k]);
}

static void one_form(const char *name, duet_expr e, reduce_meaning *known, const double *x, int axis,
                     duet_dtype type)
{
    static const int64_t none[1] = { 0 };
    int outs = COLUMNS;
    if (axis < 0) outs = 1;
    else if (axis) outs = ROWS;
    const int n = ROWS * COLUMNS / outs, rank = duet_expr_rank(e);
    int64_t size[2] = { duet_expr_size(e, 0), duet_expr_size(e, 1) };
    table want = oracle(e, type);
    CHECK(want.at && want.count == outs, "%s: %s", name, duet_error());
    for (int o = 0; o < outs && want.at; o++) {
        double of[ROWS * COLUMNS];
        for (int k = 0; k < n; k++)
            if (axis < 0) of[k] = x[k];
            else if (axis) of[k] = x[o * COLUMNS + k];
            else of[k] = x[k * COLUMNS + o];
        means(name, &want, o, known(of, n));
    }
    table_free(&want);
    runs(name, e, rank, rank ? size : none);
}

typedef duet_expr reduce_maker(duet_expr x);
typedef duet_expr axis_maker(duet_expr x, int axis);
typedef duet_expr axes_maker(duet_expr x, int count, const int *axis);
typedef struct forms {
    reduce_maker *all;
    axis_maker *axis, *keep;
    axes_maker *axes, *axes_keep;
} forms;

static void reduction(const char *name, const forms *in, reduce_meaning *known, duet_dtype type)
{
    static const int both[] = { -1, 0 };
    static double x[ROWS * COLUMNS];
    duet_matrix *m = filled(type, ROWS, COLUMNS, x);
    one_form(name, in->all(duet_of_matrix(m)), known, x, -1, type);
    one_form(name, in->axes(duet_of_matrix(m), 2, both), known, x, -1, type);
    one_form(name, in->axes_keep(duet_of_matrix(m), 2, both), known, x, -1, type);
    for (int axis = 0; axis < 2; axis++) {
        one_form(name, in->axis(duet_of_matrix(m), axis), known, x, axis, type);
        one_form(name, in->keep(duet_of_matrix(m), axis), known, x, axis, type);
        one_form(name, in->axes(duet_of_matrix(m), 1, &axis), known, x, axis, type);
        one_form(name, in->axes_keep(duet_of_matrix(m), 1, &axis), known, x, axis, type);
    }
    duet_free(&m);
}

#define DUET_COMPOSED1(name, ...)                                                                            \
    static duet_expr make_##name(duet_expr x, duet_expr y, duet_expr z, double s)                            \
    {                                                                                                        \
        return (void)y, (void)z, (void)s, (duet_##name)(x);                                                  \
    }
#define DUET_COMPOSED2(name, ...)                                                                            \
    static duet_expr make_##name(duet_expr x, duet_expr y, duet_expr z, double s)                            \
    {                                                                                                        \
        return (void)z, (void)s, (duet_##name)(x, y);                                                        \
    }
#define DUET_COMPOSED3(name, ...)                                                                            \
    static duet_expr make_##name(duet_expr x, duet_expr y, duet_expr z, double s)                            \
    {                                                                                                        \
        return (void)s, (duet_##name)(x, y, z);                                                              \
    }
#define DUET_COMPOSED1N(name, ...)                                                                           \
    static duet_expr make_##name(duet_expr x, duet_expr y, duet_expr z, double s)                            \
    {                                                                                                        \
        return (void)y, (void)z, (duet_##name)(x, s);                                                        \
    }
#include <duet/composed.def>

static void all_rows(duet_dtype type)
{
#define ROW(name)                                                                                            \
    element_wise(#name, make_##name, known_##name, type);                                                    \
    tap_point(#name);
#define DUET_COMPOSED1(name, ...)  ROW(name)
#define DUET_COMPOSED2(name, ...)  ROW(name)
#define DUET_COMPOSED3(name, ...)  ROW(name)
#define DUET_COMPOSED1N(name, ...) ROW(name)
#define DUET_COMPOSED_FOLD1(name, ...)                                                                       \
    reduction(#name,                                                                                         \
              &(const forms){ duet_##name, duet_##name##_axis, duet_##name##_keep, duet_##name##_axes,       \
                              duet_##name##_axes_keep },                                                     \
              known_##name, type);                                                                           \
    tap_point(#name);
#include <duet/composed.def>
}

/* ---- infinities and NaN, and cancellation ---- */

static float one_of(duet_expr e)
{
    duet_matrix *m = duet_new(DUET_F32, 1);
    duet_status s = duet_set(m, e);
    const float *p = s == DUET_OK ? duet_read(m) : NULL;
    const float x = p ? *p : -77;
    CHECK(p, "%s", duet_error());
    duet_free(&m);
    return x;
}

static duet_matrix *of(float x)
{
    duet_matrix *m = duet_new(DUET_F32, 1);
    *(float *)duet_overwrite(m) = x;
    return m;
}

static void is(const char *text, float got, float want)
{
    CHECK(isnan(want) ? isnan(got) : got == want && !signbit(got) == !signbit(want), "%s is %g, not %g", text,
          (double)got, (double)want);
}
#define IS(e, want) is(#e, one_of(e), want)

static void special(void)
{
    duet_matrix *nan = of(NAN), *inf = of(INFINITY), *low = of(-INFINITY), *big = of(200), *small = of(-200);
    IS(duet_clip(nan, 0, 1), NAN);
    IS(duet_clip(inf, 0, 1), 1);
    IS(duet_clip(low, 0, 1), 0);
    IS(duet_clip(big, 3, 2), 2);
    IS(duet_relu6(nan), NAN);
    IS(duet_leaky_relu(nan, 0.1), NAN);
    IS(duet_elu(nan, 1), NAN);
    IS(duet_heaviside(nan, 1), NAN);
    IS(duet_elu(low, 2), -2);
    IS(duet_leaky_relu(low, 0.5), -INFINITY);
    IS(duet_relu_derivative(inf), 1);
    IS(duet_logaddexp(big, big), 200.693147f);
    IS(duet_logaddexp(small, small), -199.306853f);
    IS(duet_logaddexp(low, low), -INFINITY);
    IS(duet_logaddexp(inf, low), INFINITY);
    IS(duet_logaddexp(nan, low), NAN);
    IS(duet_logaddexp(inf, inf), INFINITY);
    IS(duet_logsumexp(big), 200);
    IS(duet_logsumexp(small), -200);
    IS(duet_logsumexp(low), -INFINITY);
    IS(duet_logsumexp(inf), INFINITY);
    IS(duet_fast_sigmoid(low), (1 - 0.99505475368673f) / 2);
    IS(duet_fast_sigmoid(nan), NAN);
    IS(duet_binarize(nan, 0), 0);
    IS(duet_one_if(inf, INFINITY), 1);
    IS(duet_logsumexp_axes(big, 0), 200);
    IS(duet_norm1_axes_keep(low, 0), INFINITY);
    IS(duet_std_axes(big), 0);
    IS(duet_logsumexp(nan), NAN);
    IS(duet_log_sigmoid(small), -200);
    IS(duet_silu(big), 200);
    IS(duet_hard_tanh_derivative(inf), 0);
    duet_matrix *at_end[] = { low, of(-3e38f) };
    for (int k = 0; k < 2; k++) {
        IS(duet_silu(at_end[k]), -0.0f);
        IS(duet_mish(at_end[k]), -0.0f);
        IS(duet_gelu_tanh(at_end[k]), -0.0f);
        IS(duet_hard_swish(at_end[k]), -0.0f);
        IS(duet_silu_derivative(at_end[k]), -0.0f);
        IS(duet_gelu_derivative(at_end[k]), 0);
        IS(duet_sigmoid_derivative(at_end[k]), 0);
        IS(duet_tanh_derivative(at_end[k]), 0);
        IS(duet_softsign(at_end[k]), -1);
    }
    duet_free(&at_end[1]);
    IS(duet_silu(inf), INFINITY);
    IS(duet_mish(inf), INFINITY);
    IS(duet_gelu_tanh(inf), INFINITY);
    IS(duet_hard_swish(inf), INFINITY);
    IS(duet_silu_derivative(inf), 1);
    IS(duet_gelu_derivative(inf), 1);
    IS(duet_softsign(inf), 1);
    IS(duet_silu(nan), NAN);
    IS(duet_mish(nan), NAN);
    IS(duet_gelu_tanh(nan), NAN);
    IS(duet_hard_swish(nan), NAN);
    IS(duet_softsign(nan), NAN);
    IS(duet_sigmoid_derivative(nan), NAN);
    duet_free(&nan);
    duet_free(&inf);
    duet_free(&low);
    duet_free(&big);
    duet_free(&small);
    tap_point("NaN, infinities, and intermediates that do not overflow");
}

/* Both tails of these functions are accurate. */
static void tails(void)
{
    for (float x = 8; x <= 80; x += 9) {
        duet_matrix *m[] = { of(x), of(-x) };
        const double of_sigmoid = exp(-x) / (1 + exp(-x)) / (1 + exp(-x)), of_tanh = pow(cosh(x), -2);
        const double cubic = 1.5957691216057307 * (x + 0.044715 * pow(x, 3));
        for (int k = 0; k < 2; k++) {
            const float s = one_of(duet_sigmoid_derivative(m[k])), t = one_of(duet_tanh_derivative(m[k]));
            CHECK(fabs(s - of_sigmoid) <= 1e-6 * of_sigmoid, "sigmoid_derivative(%g) is %g", (double)x,
                  (double)s);
            CHECK(fabs(t - of_tanh) <= 1e-6 * of_tanh + 1e-44, "tanh_derivative(%g) is %g", (double)x,
                  (double)t);
        }
        const float g = one_of(duet_gelu_tanh(m[1])); /* the relative error of exp(-c) grows with c */
        CHECK(fabs(g + x * exp(-cubic)) <= 4e-7 * (1 + cubic) * x * exp(-cubic) + 1e-42,
              "gelu_tanh(%g) is %g", -(double)x, (double)g);
        duet_free(&m[0]);
        duet_free(&m[1]);
    }
    tap_point("tails of derivatives and of gelu_tanh");
}

/* Magnitudes of the smallest integers do not wrap, except that of i64. */
static void norms_of_integers(void)
{
    static const int64_t least[] = { INT8_MIN, INT16_MIN, INT32_MIN, INT64_MIN };
    static const duet_dtype types[] = { DUET_I8, DUET_I16, DUET_I32, DUET_I64 };
    for (int k = 0; k < 4; k++) {
        duet_matrix *m = duet_new(types[k], 2), *to = duet_new(DUET_I64, 1);
        void *at = duet_overwrite(m);
        for (int i = 0; i < 2; i++) {
            const int64_t x = i ? 3 : least[k];
            memcpy((char *)at + i * dtypes[types[k]].bytes, &x, dtypes[types[k]].bytes); /* little-endian */
        }
        for (int i = 0; i < places; i++) DUET_ON(place[i])
            {
                const uint64_t size = 0 - (uint64_t)least[k];
                CHECK(!duet_set(to, duet_norm_inf(m)) && *(const uint64_t *)duet_read(to) == size,
                      "norm_inf of %s: %s", dtypes[types[k]].name, duet_error());
                CHECK(!duet_set(to, duet_norm1(m)) && *(const uint64_t *)duet_read(to) == size + 3,
                      "norm1 of %s: %s", dtypes[types[k]].name, duet_error());
            }
        duet_free(&m);
        duet_free(&to);
    }
    tap_point("norms of the smallest integers");
}

static void is_each(const char *text, duet_expr e, duet_matrix *to, const float *want)
{
    const duet_status st = (duet_set)(to, e);
    const float *p = st == DUET_OK ? duet_read(to) : NULL;
    for (int64_t i = 0; i < duet_count(to); i++)
        CHECK(p && p[i] == want[i], "%s [%d]: %g, not %g: %s", text, (int)i, p ? (double)p[i] : 0,
              (double)want[i], duet_error());
}
#define ARE(e, ...) is_each(#e, e, to, (const float[]){ __VA_ARGS__ })

/* Rows of networks.def that ETL has too: the oracle evaluates their formulas; these are values. */
static void normal(void)
{
    duet_matrix *m = duet_new(DUET_F32, 2, 2), *to = duet_new(DUET_F32, 2, 2),
                *noise = duet_new(DUET_F32, 2, 2);
    memcpy(duet_overwrite(m), (float[]){ 1, 3, 5, 5 }, 4 * sizeof(float));
    for (int i = 0; i < 4; i++) ((float *)duet_update(noise))[i] = 10;
    for (int k = 0; k < places; k++) DUET_ON(place[k])
        {
            ARE(duet_normalize_sub(m), -1, 1, 0, 0);
            ARE(duet_normalize_flat(duet_sub(m, m)), 0, 0, 0, 0);
            ARE(duet_normalize_flat(duet_where(duet_equal(m, 3), 1, duet_where(duet_equal(m, 1), 1, m))), -1,
                -1, 1, 1);
            ARE(duet_one_if_max(m), 0, 0, 1, 1);
            ARE(duet_one_if_max_sub(m), 0, 1, 1, 1);
            ARE(duet_ranged_noise(duet_sub(m, 1), noise, 4), 0, 12, 4, 4);
        }
    duet_free(&m);
    duet_free(&to);
    duet_free(&noise);
    tap_point("normalisation, one-hot maximum, uniform noise");
}

static void errors(void)
{
    duet_matrix *m = duet_new(DUET_F32, 2), *out = duet_new(DUET_F32, 2), *none = NULL;
    CHECK(duet_set(out, duet_silu(none)) == DUET_BAD_ARGUMENT && strstr(duet_error(), "test_composed.c:"),
          "%s", duet_error());
    CHECK(duet_set(out, duet_logsumexp_axis(m, 3)) == DUET_BAD_SHAPE && strstr(duet_error(), "axis 3"), "%s",
          duet_error());
    duet_free(&m);
    duet_free(&out);
    tap_point("errors name file and line");
}

int main(int argc, char **argv)
{
    gen = rng_new(5);
    places = list_places(place);
    FOR_FLOAT_TYPES (type) all_rows(type);
    special();
    tails();
    norms_of_integers();
    normal();
    errors();
    return tap_end();
}
