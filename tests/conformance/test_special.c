/* test_special.c - NaN, infinities, signed zeros, subnormals and single rounding: the rules of
 * docs/semantics.md, value by value. */
#include "common.h"
#include "dtype.h"
#include "each_type.h"
#include <float.h>
#include <math.h>

#define LENGTH(a) (int)(sizeof(a) / sizeof *(a))
#define WIDTH     37 /* elements of each case: full registers and a ragged end */

static duet_place place[2];
static int places;

static duet_matrix *filled(duet_dtype type, int rank, const int64_t *size, const double *x, int of)
{
    duet_matrix *m = duet_new_shape(type, rank, size);
    void *p = duet_overwrite(m);
    for (int64_t i = 0; i < duet_count(m); i++) {
        if (type == DUET_F32) ((float *)p)[i] = (float)x[i % of];
        else ((double *)p)[i] = x[i % of];
    }
    return m;
}

static duet_matrix *vector(duet_dtype type, int64_t n, const double *x, int of)
{
    return filled(type, 1, &n, x, of);
}

/* Equal, including the sign of zero; NaN equals NaN. */
static bool same(double got, double want)
{
    if (isnan(want)) return isnan(got);
    return got == want && signbit(got) == signbit(want);
}

/* Checks that every element of e is want. Spends e. */
static void gives(const char *what, duet_dtype type, duet_expr e, double want)
{
    int64_t size[DUET_RANK_MAX], count = 1;
    e = duet_hold(e);
    for (int d = 0; d < duet_expr_rank(e); d++) count *= size[d] = duet_expr_size(e, d);
    for (int p = 0; p < places; p++) {
        duet_matrix *m = duet_new_shape(type, duet_expr_rank(e), size);
        const duet_status s = duet_set_on(place[p], m, e);
        CHECK(s == DUET_OK, "%s: %s", what, duet_error());
        const void *got = s == DUET_OK ? duet_read(m) : NULL;
        for (int64_t i = 0; got && i < count; i++)
            if (!CHECK(same(element(type, got, i), want), "%s %s on %s [%lld]: got %.17g, want %.17g", what,
                       type_name(type), place_name(place[p]), (long long)i, element(type, got, i), want))
                break;
        duet_free(&m);
    }
    forget(e);
}

/* ---- element-wise operators ---- */

#define SMALL 0x1p-140 /* subnormal in f32 */

// clang-format off
#define ONE_OPERAND(CASE)                                                                               \
    CASE(neg, 0., -0.) CASE(neg, INFINITY, -INFINITY) CASE(neg, SMALL, -SMALL)                          \
    CASE(abs, -0., 0.) CASE(abs, -INFINITY, INFINITY) CASE(abs, NAN, NAN) CASE(abs, -SMALL, SMALL)      \
    CASE(sqrt, -1, NAN) CASE(sqrt, -0., -0.) CASE(sqrt, INFINITY, INFINITY) CASE(sqrt, SMALL, 0x1p-70)  \
    CASE(sqrt, NAN, NAN)                                                                                \
    CASE(exp, -INFINITY, 0) CASE(exp, INFINITY, INFINITY) CASE(exp, NAN, NAN) CASE(exp, -0., 1)         \
    CASE(exp, 1e5, INFINITY) CASE(exp, -1e5, 0)                                                         \
    CASE(log, 0., -INFINITY) CASE(log, -0., -INFINITY) CASE(log, -1, NAN) CASE(log, INFINITY, INFINITY) \
    CASE(log, NAN, NAN)                                                                                 \
    CASE(tanh, INFINITY, 1) CASE(tanh, -INFINITY, -1) CASE(tanh, -0., -0.) CASE(tanh, NAN, NAN)         \
    CASE(tanh, SMALL, SMALL)                                                                            \
    CASE(sigmoid, INFINITY, 1) CASE(sigmoid, -INFINITY, 0) CASE(sigmoid, NAN, NAN)                      \
    CASE(relu, NAN, NAN) CASE(relu, -0., 0.) CASE(relu, INFINITY, INFINITY) CASE(relu, -INFINITY, 0)    \
    CASE(relu, SMALL, SMALL) CASE(relu, -SMALL, 0)                                                      \
    CASE(signbit, 0., 0) CASE(signbit, -0., 1) CASE(signbit, -INFINITY, 1) CASE(signbit, INFINITY, 0)   \
    CASE(signbit, -SMALL, 1) CASE(signbit, SMALL, 0)                                                    \
    CASE(signbit, copysign(NAN, 1), 0) CASE(signbit, copysign(NAN, -1), 0)

#define TWO_OPERANDS(CASE)                                                                                        \
    CASE(add, INFINITY, -INFINITY, NAN) CASE(add, -0., -0., -0.) CASE(add, -0., 0., 0.)                           \
    CASE(add, SMALL, SMALL, 2 * SMALL)                                                                            \
    CASE(sub, 0., 0., 0.) CASE(sub, SMALL, -SMALL, 2 * SMALL) CASE(sub, -0., 0., -0.)                             \
    CASE(mul, INFINITY, 0, NAN) CASE(mul, -0., 3, -0.) CASE(mul, 0x1p-100, 0x1p-40, SMALL)                        \
    CASE(mul, SMALL, 0x1p40, 0x1p-100)                                                                            \
    CASE(div, 1, 0., INFINITY) CASE(div, 1, -0., -INFINITY) CASE(div, 0., 0., NAN)                                \
    CASE(div, 0x1p-100, 0x1p40, SMALL) CASE(div, 3, INFINITY, 0)                                                  \
    CASE(pow, NAN, 0, 1) CASE(pow, 1, NAN, 1) CASE(pow, -2, 3, -8) CASE(pow, -2, 0.5, NAN)                        \
    CASE(pow, 0., -1, INFINITY) CASE(pow, -0., -1, -INFINITY) CASE(pow, -0., -2, INFINITY) CASE(pow, -0., 3, -0.) \
    CASE(pow, INFINITY, -1, 0) CASE(pow, -INFINITY, 3, -INFINITY) CASE(pow, -1, INFINITY, 1)                      \
    CASE(pow, 0.5, INFINITY, 0) CASE(pow, NAN, 1, NAN) CASE(pow, 2, NAN, NAN) CASE(pow, 2, -140, SMALL)           \
    CASE(copysign, 3, -2, -3) CASE(copysign, -3, 2, 3) CASE(copysign, 3, -0., -3) CASE(copysign, -3, 0., 3)       \
    CASE(copysign, 0., -SMALL, -0.) CASE(copysign, -INFINITY, 1, INFINITY) CASE(copysign, NAN, -1, NAN)           \
    CASE(copysign, 3, copysign(NAN, 1), 3) CASE(copysign, 3, copysign(NAN, -1), 3) CASE(copysign, -2, INFINITY, 2) \
    CASE(minimum, NAN, 1, NAN) CASE(minimum, 1, NAN, NAN) CASE(minimum, 0., -0., -0.) CASE(minimum, -0., 0., -0.) \
    CASE(minimum, -INFINITY, 3, -INFINITY) CASE(minimum, SMALL, 0, 0)                                             \
    CASE(maximum, NAN, 1, NAN) CASE(maximum, 1, NAN, NAN) CASE(maximum, 0., -0., 0.) CASE(maximum, -0., 0., 0.)   \
    CASE(maximum, INFINITY, 3, INFINITY) CASE(maximum, SMALL, 0, SMALL)                                           \
    CASE(equal, NAN, NAN, 0) CASE(equal, 0., -0., 1) CASE(equal, SMALL, 0, 0)                                     \
    CASE(not_equal, NAN, NAN, 1) CASE(not_equal, 0., -0., 0)                                                      \
    CASE(less, NAN, 1, 0) CASE(less, 1, NAN, 0) CASE(less, -0., 0., 0) CASE(less, 0, SMALL, 1)                    \
    CASE(less_equal, NAN, NAN, 0) CASE(less_equal, 0., -0., 1)                                                    \
    CASE(greater, NAN, 1, 0) CASE(greater, SMALL, 0, 1)                                                           \
    CASE(greater_equal, NAN, NAN, 0) CASE(greater_equal, -0., 0., 1)

#define THREE_OPERANDS(CASE)                                                                                 \
    CASE(where, NAN, 3, 4, 3) CASE(where, -0., 3, 4, 4) CASE(where, 0., 3, 4, 4) CASE(where, SMALL, 3, 4, 3) \
    CASE(where, 1, 3, NAN, 3) CASE(where, 0, NAN, 4, 4) CASE(where, 1, -0., 4, -0.)                          \
    CASE(fma, INFINITY, 0, 1, NAN) CASE(fma, 1, -0., -0., -0.) CASE(fma, 1e30, 1e30, -INFINITY, -INFINITY)
// clang-format on

static void element_by_element(duet_dtype type)
{
    double x[3];
    duet_matrix *m[3];
#define OPEN(a, b, c)                                                                                        \
    x[0] = a, x[1] = b, x[2] = c;                                                                            \
    for (int k = 0; k < 3; k++) m[k] = vector(type, WIDTH, &x[k], 1);
#define CLOSE                                                                                                \
    for (int k = 0; k < 3; k++) duet_free(&m[k]);
#define CASE1(f, a, want)                                                                                    \
    OPEN(a, 0, 0) gives(#f "(" #a ")", type, duet_##f(m[0]), want);                                          \
    CLOSE
#define CASE2(f, a, b, want)                                                                                 \
    OPEN(a, b, 0)                                                                                            \
    gives(#f "(" #a ", " #b ")", type, duet_##f(m[0], m[1]), want);                                          \
    gives(#f "(" #a ", number " #b ")", type, duet_##f(m[0], (double)(b)), want);                            \
    gives(#f "(number " #a ", " #b ")", type, duet_##f((double)(a), m[1]), want);                            \
    CLOSE
#define CASE3(f, a, b, c, want)                                                                              \
    OPEN(a, b, c) gives(#f "(" #a ", " #b ", " #c ")", type, duet_##f(m[0], m[1], m[2]), want);              \
    CLOSE
    ONE_OPERAND(CASE1)
    TWO_OPERANDS(CASE2)
    THREE_OPERANDS(CASE3)
}

/* x * y + z is rounded once, however it is written: FMA is placed by the formula alone. */
static void rounded_once(duet_dtype type)
{
    const double e = type == DUET_F32 ? 0x1p-12 : 0x1p-27, x = 1 + e, z = -(1 + 2 * e);
    duet_matrix *m = vector(type, WIDTH, &x, 1), *c = vector(type, WIDTH, &z, 1);
    gives("fma(x, x, z)", type, duet_fma(m, m, c), e * e);
    duet_free(&m);
    duet_free(&c);
}

/* ---- reductions, pooling, softmax ---- */

/* One NaN anywhere, or the only -0 among zeros, among WIDTH * 3 elements. */
static void reduces_of(duet_dtype type, int at)
{
    double x[3 * WIDTH] = { 0 };
    x[at] = NAN;
    duet_matrix *m = vector(type, 3 * WIDTH, x, 3 * WIDTH);
    gives("min with NaN", type, duet_min(m), NAN);
    gives("max with NaN", type, duet_max(m), NAN);
    gives("sum with NaN", type, duet_sum(m), NAN);
    gives("mean with NaN", type, duet_mean(m), NAN);
    gives("norm with NaN", type, duet_norm(m), NAN);
    gives("prod with NaN", type, duet_prod(m), NAN);
    gives("var with NaN", type, duet_var(m), NAN);
    gives("min of a formula with NaN", type, duet_min(duet_add(m, 1)), NAN);
    gives("softmax with NaN", type, duet_softmax(m), NAN);
    duet_free(&m);

    x[at] = -0.;
    m = vector(type, 3 * WIDTH, x, 3 * WIDTH);
    gives("min of zeros", type, duet_min(m), -0.);
    gives("max of zeros", type, duet_max(m), 0.);
    gives("sum of zeros", type, duet_sum(m), 0.);
    gives("var of zeros", type, duet_var(m), 0.);
    duet_free(&m);
}

/* The position of the first NaN, wherever another NaN or an extreme is; otherwise the first of
 * equal elements, where -0 equals +0. */
static void places_of(duet_dtype type, int at)
{
    double x[3 * WIDTH];
    for (int i = 0; i < 3 * WIDTH; i++) x[i] = i == at ? -0. : 0;
    duet_matrix *m = vector(type, 3 * WIDTH, x, 3 * WIDTH);
    gives("argmin of zeros", DUET_I64, duet_argmin(m), 0);
    gives("argmax of zeros", DUET_I64, duet_argmax(m), 0);
    gives("argmin of a formula", DUET_I64, duet_argmin(duet_equal(m, m)), 0);
    duet_free(&m);

    for (int i = 0; i < 3 * WIDTH; i++) x[i] = i >= at ? 7 : 3;
    m = vector(type, 3 * WIDTH, x, 3 * WIDTH);
    gives("argmax, the first of equals", DUET_I64, duet_argmax(m), at);
    gives("argmin, the first of equals", DUET_I64, duet_argmin(duet_neg(m)), at);
    duet_free(&m);

    x[0] = -INFINITY;
    x[3 * WIDTH - 1] = INFINITY;
    x[at] = NAN;
    x[(at + 3 * WIDTH) / 2] = NAN;
    m = vector(type, 3 * WIDTH, x, 3 * WIDTH);
    gives("argmin with NaN", DUET_I64, duet_argmin(m), at);
    gives("argmax with NaN", DUET_I64, duet_argmax(m), at);
    gives("argmax of a formula with NaN", DUET_I64, duet_argmax(duet_mul(m, 2)), at);
    duet_free(&m);
}

/* The only element that is not infinite. */
static void places_among_infinities(duet_dtype type)
{
    for (int sign = -1; sign < 2; sign += 2) {
        double x[WIDTH];
        for (int i = 0; i < WIDTH; i++) x[i] = i == 5 ? 0 : sign * INFINITY;
        duet_matrix *m = vector(type, WIDTH, x, WIDTH);
        gives("argmin among infinities", DUET_I64, duet_argmin(m), sign > 0 ? 5 : 0);
        gives("argmax among infinities", DUET_I64, duet_argmax(m), sign > 0 ? 0 : 5);
        duet_free(&m);
    }
}

static void sums(duet_dtype type)
{
    const double zero = -0., large = type == DUET_F32 ? 1e30 : 1e250,
                 small = type == DUET_F32 ? 0x1p-120 : 0x1p-1000;
    duet_matrix *m = vector(type, WIDTH, &zero, 1);
    gives("sum of -0", type, duet_sum(m), -0.);
    gives("max of -0", type, duet_max(m), -0.);
    duet_free(&m);

    m = duet_new(type, 0);
    gives("mean of nothing", type, duet_mean(m), NAN);
    gives("sum of nothing is 0", type, duet_abs(duet_sum(m)), 0.);
    gives("norm of nothing is 0", type, duet_abs(duet_norm(m)), 0.);
    gives("prod of nothing", type, duet_prod(m), 1);
    gives("var of nothing", type, duet_var(m), NAN);
    duet_free(&m);

    m = vector(type, 2, (const double[]){ 3 * 0x1p90, 4 * 0x1p90 }, 2);
    gives("norm, where squares overflow f32", type, duet_norm(m), 5 * 0x1p90);
    duet_free(&m);
    m = vector(type, 2, (const double[]){ 3 * small, 4 * small }, 2);
    gives("norm, where squares underflow", type, duet_norm(m), 5 * small);
    duet_free(&m);
    m = vector(type, 16, &large, 1);
    gives("var of equals, however large", type, duet_var(m), 0);
    gives("norm of the large", type, duet_norm(m), type == DUET_F32 ? 4 * (double)(float)large : 4 * large);
    duet_free(&m);
    m = vector(type, 3, (const double[]){ 1, INFINITY, 2 }, 3);
    gives("norm with infinity", type, duet_norm(m), INFINITY);
    gives("sum with infinity", type, duet_sum(m), INFINITY);
    gives("prod with infinity", type, duet_prod(m), INFINITY);
    gives("prod with infinity and 0", type, duet_prod(duet_sub(m, 1)), NAN);
    gives("var with infinity", type, duet_var(m), NAN);
    duet_free(&m);
}

/* Results calculated by hand. */
static void known(duet_dtype type)
{
    duet_matrix *m = vector(type, 5, (const double[]){ 2, 4, 4, -1, 6 }, 5);
    gives("sum", type, duet_sum(m), 15);
    gives("prod", type, duet_prod(m), -192);
    gives("mean", type, duet_mean(m), 3);
    gives("var", type, duet_var(m), 5.6 - (type == DUET_F32 ? 5.6 - (double)5.6f : 0));
    gives("argmin", DUET_I64, duet_argmin(m), 3);
    gives("argmax", DUET_I64, duet_argmax(m), 4);
    duet_free(&m);
    m = filled(type, 2, (const int64_t[]){ 2, 3 }, (const double[]){ 1, 5, 2, 7, 0, 9 }, 6);
    gives("argmax of all", DUET_I64, duet_argmax(m), 5);
    gives("a sum of greatest", type, duet_sum(duet_max_axis(m, 1)), 14);
    duet_free(&m);
}

static void softmaxes(duet_dtype type)
{
    const double far = -1000, near = 1000;
    duet_matrix *m = vector(type, 4, &near, 1);
    gives("softmax far above", type, duet_softmax(m), 0.25);
    duet_free(&m);
    m = vector(type, 4, &far, 1);
    gives("softmax far below", type, duet_softmax(m), 0.25);
    duet_free(&m);
    m = filled(type, 2, (const int64_t[]){ WIDTH, 1 }, &far, 1);
    gives("softmax of one", type, duet_softmax(m), 1);
    gives("log_softmax of one", type, duet_log_softmax(m), 0);
    duet_free(&m);
}

static void pools(duet_dtype type)
{
    const int64_t size[] = { 1, 2, 3, 3 };
    const double low = -5, nan = NAN;
    duet_matrix *m = filled(type, 4, size, &low, 1);
    gives("max_pool2d of padding", type,
          duet_max_pool2d(m, .window = { 2, 2 }, .pad = { 1, 1 }, .stride = { 1, 1 }), -5);
    duet_free(&m);
    m = filled(type, 4, size, &nan, 1);
    gives("max_pool2d of NaN", type, duet_max_pool2d(m, .window = { 2, 2 }, .stride = { 1, 1 }), NAN);
    duet_free(&m);
    m = filled(type, 4, (const int64_t[]){ 1, 1, 1, 2 }, (const double[]){ NAN, 7 }, 2);
    gives("max_pool2d, NaN first", type, duet_max_pool2d(m, .window = { 1, 2 }), NAN);
    duet_free(&m);
    m = filled(type, 4, (const int64_t[]){ 1, 1, 1, 2 }, (const double[]){ 7, NAN }, 2);
    gives("max_pool2d, NaN last", type, duet_max_pool2d(m, .window = { 1, 2 }), NAN);
    duet_free(&m);
}

/* Fusion into a product must not hide NaN behind a factor of 0, nor read operands that it does not
 * need. */
static void products(duet_dtype type)
{
    const int64_t size[] = { 5, 5 };
    const double nan = NAN, one = 1;
    duet_matrix *a = filled(type, 2, size, &one, 1), *n = filled(type, 2, size, &nan, 1);
    gives("0 A N", type, duet_mul(0, duet_matmul(a, n)), NAN);
    gives("A A + 0 N", type, duet_add(duet_matmul(a, a), duet_mul(0, n)), NAN);
    gives("0 A N + A", type, duet_add(duet_mul(0, duet_matmul(a, n)), a), NAN);
    gives("2 A A + 3 A", type, duet_add(duet_mul(2, duet_matmul(a, a)), duet_mul(3, a)), 13);
    gives("2 A A - 3 A", type, duet_sub(duet_mul(2, duet_matmul(a, a)), duet_mul(3, a)), 7);
    gives("A - A A", type, duet_sub(a, duet_matmul(a, a)), -4);

    /* into N itself, whose elements are not read */
    for (int p = 0; p < places; p++) {
        CHECK(duet_set_on(place[p], n, duet_matmul(a, a)) == DUET_OK, "%s", duet_error());
        CHECK(same(element(type, duet_read(n), 7), 5), "a product with beta 0 reads its destination on %s",
              place_name(place[p]));
        random_fill(&(rng){ { 1, 2, 3, 4 } }, n, NAN, NAN);
    }
    duet_free(&a);
    duet_free(&n);
}

int main(void)
{
    places = list_places(place);
    FOR_FLOAT_TYPES (t) {
        element_by_element(t);
        tap_point("element-wise operators");
        rounded_once(t);
        tap_point("fma rounds once");
        for (int at = 0; at < 3 * WIDTH; at += 11) reduces_of(t, at);
        tap_point("NaN and zeros in reductions");
        for (int at = 0; at < 3 * WIDTH; at += 11) places_of(t, at);
        places_among_infinities(t);
        tap_point("argmin and argmax");
        sums(t);
        tap_point("sums and norms near overflow and underflow");
        known(t);
        tap_point("reductions with known results");
        softmaxes(t);
        tap_point("softmax");
        pools(t);
        tap_point("pooling");
        products(t);
        tap_point("products");
    }
    return tap_end();
}
