/* test_complex_more.c - complex powers, predicates of parts, products and sums, products of
 * vectors: against C99 in long double, within the bounds of docs/semantics.md, and the results
 * where no number exists. */
#include "complex_trial.h"

/* ---- powers ---- */

/* The bound in units of u for z to the power w; smaller if the type of w is real. */
static real bound_of(number z, number w, bool is_real)
{
    if (is_real) return 14 + 19 * cabsl(w);
    return 20 + 19 * cabsl(w * (z == 0 ? 0 : clogl(z)));
}

/* As C99, except at 0: as NumPy. */
static number of_pow(number z, number w)
{
    if (w == 0) return 1;
    if (z == 0) return creall(w) > 0 ? 0 : NAN;
    return cexpl(w * clogl(z));
}

static void check_power(const char *name, const struct kind *k, number got, number z, number w, bool is_real)
{
    const number want = of_pow(z, w);
    const real in_u = bound_of(z, w, is_real), most = in_u * k->u * cabsl(want) + 8 * k->tiny;
    const bool is_number = !isnan(creall(want));
    CHECK(is_number || (isnan(creall(got)) && isnan(cimagl(got))), "%s: the result for 0 is %Lg", name,
          creall(got));
    if (!is_number || !fits(k, cabsl(want) * (1 + in_u * k->u)) || in_u * k->u > 0.1L) return;
    CHECK(cabsl(got - want) <= most,
          "%s: (%.9Lg%+.9Lgi) to (%Lg%+Lgi) is %.9Lg%+.9Lgi, not %.9Lg%+.9Lgi: %.3Lg u, at most %.3Lg", name,
          creall(z), cimagl(z), creall(w), cimagl(w), creall(got), cimagl(got), creall(want), cimagl(want),
          cabsl(got - want) / (k->u * cabsl(want)), in_u);
}

/* For matrices of these types. */
static void power_of_types(duet_place p, const struct kind *k, duet_dtype tz, duet_dtype tw, int range)
{
    enum { N = 3000 };
    duet_matrix *z = duet_new(tz, N), *w = duet_new(tw, N), *y = duet_new(k->whole, N);
    fill_range(z, k, range);
    fill_range(w, k, MILD);
    evaluate(p, y, duet_pow(z, w), "pow");
    array a = array_of(z), b = array_of(w), got = array_of(y);
    for (int i = 0; i < N; i++) check_power("pow", k, got.v[i], a.v[i], b.v[i], !dtype_is_complex(tw));
    array_free(&a);
    array_free(&b);
    array_free(&got);
    duet_free(&z);
    duet_free(&w);
    duet_free(&y);
}

static void power_of_number(duet_place p, const struct kind *k, number c, duet_expr number_, bool first,
                            int range)
{
    enum { N = 200 };
    duet_matrix *x = duet_new(k->whole, N), *y = duet_new(k->whole, N);
    const bool is_real = !first && cimagl(c) == 0;
    fill_range(x, k, range);
    evaluate(p, y, first ? duet_pow(number_, x) : duet_pow(x, number_), "pow with a number");
    array a = array_of(x), got = array_of(y);
    for (int i = 0; i < N; i++)
        check_power("a number", k, got.v[i], first ? c : a.v[i], first ? a.v[i] : c, is_real);
    array_free(&a);
    array_free(&got);
    duet_free(&x);
    duet_free(&y);
}

static void powers(duet_place p)
{
    static const double numbers[] = { 0, 1, 2, 0.5, -1, -2.5, 7 };
    for (size_t k = 0; k < 2; k++) {
        const struct kind *of = &kinds[k];
        for (int range = MILD; range <= UNIT; range++) {
            power_of_types(p, of, of->whole, of->whole, range);
            power_of_types(p, of, of->whole, of->part, range);
            power_of_types(p, of, of->part, of->whole, range);
            for (int i = 0; i < 7; i++) power_of_number(p, of, numbers[i], DUET(numbers[i]), false, range);
        }
        for (int i = 0; i < 7; i++) power_of_number(p, of, numbers[i], DUET(numbers[i]), true, MILD);
        power_of_number(p, of, 1 - 2 * I, DUET(1 - 2 * I), false, MILD);
        power_of_number(p, of, 1 - 2 * I, DUET(1 - 2 * I), true, MILD);
    }
    power_of_types(p, &kinds[1], DUET_C64, DUET_F64, MILD);
    power_of_types(p, &kinds[1], DUET_C64, DUET_C128, MILD);
    power_of_types(p, &kinds[1], DUET_C128, DUET_C64, MILD);
    power_of_types(p, &kinds[1], DUET_F64, DUET_C64, MILD);
    tap_point("powers and their rounding errors");
}

/* At 0, as NumPy; rows: z, w, the power. */
static void zeros_to_powers(duet_place p)
{
    static const double row[][6] = { { 0, 0, 0, 0, 1, 0 },       { 3, -4, 0, 0, 1, 0 },
                                     { 0, 0, 2, 0, 0, 0 },       { 0, 0, 0.5, 3, 0, 0 },
                                     { 0, 0, -1, 0, NAN, NAN },  { 0, 0, 0, 1, NAN, NAN },
                                     { -0.0, -0.0, 1, 0, 0, 0 }, { NAN, 0, 0, 0, 1, 0 } };
    enum { N = sizeof row / sizeof *row };
    duet_matrix *z = duet_new(DUET_C128, N), *w = duet_new(DUET_C128, N), *y = duet_new(DUET_C128, N);
    double *a = duet_overwrite(z), *b = duet_overwrite(w);
    for (int i = 0; i < 2 * N; i++) {
        a[i] = row[i / 2][i % 2];
        b[i] = row[i / 2][2 + i % 2];
    }
    for (int is_real = 0; is_real < 2; is_real++) {
        evaluate(p, y, is_real ? duet_pow(z, duet_real(w)) : duet_pow(z, w), "pow");
        const double *got = duet_read(y);
        for (int i = 0; i < 2 * N; i++) {
            const double want = row[i / 2][4 + i % 2];
            if (is_real && row[i / 2][3] != 0) continue;
            CHECK(got[i] == want || (isnan(want) && isnan(got[i])), "row %d: part %d is %g, not %g", i / 2,
                  i % 2, got[i], want);
        }
    }
    duet_free(&z);
    duet_free(&w);
    duet_free(&y);
    tap_point("powers of 0, and to the power 0");
}

static void whole_powers(duet_place p)
{
    static const int powers_[] = { 0, 1, 2, 3, 10, -1, -4 };
    for (size_t k = 0; k < 2; k++)
        for (int i = 0; i < 7; i++) {
            const int n = powers_[i], size = abs(n);
            duet_matrix *x = duet_new(kinds[k].whole, 50), *y = duet_new(kinds[k].whole, 50);
            fill_range(x, &kinds[k], UNIT);
            evaluate(p, y, duet_pow_int(x, n), "pow_int");
            array a = array_of(x), want = array_new(1, (int64_t[]){ 50 });
            for (int j = 0; j < 50; j++) {
                want.v[j] = 1;
                for (int t = 0; t < size; t++) want.v[j] *= a.v[j];
                if (n < 0) want.v[j] = want.v[j] == 0 ? NAN : 1 / want.v[j];
            }
            near("pow_int", &kinds[k], y, &want, 2.2361L * (size ? size - 1 : 0) + (n < 0 ? 6 : 0) + 0.001L);
            array_free(&a);
            array_free(&want);
            duet_free(&x);
            duet_free(&y);
        }
    tap_point("powers by squaring");
}

/* ---- limits of functions ---- */

typedef duet_expr maker(duet_expr);

static void one_limit(duet_place p, const struct kind *k, const char *name, maker *make, double re, double im,
                      double want_re, double want_im)
{
    duet_matrix *x = duet_new(k->whole, 1), *y = duet_new(k->whole, 1), *r = duet_new(k->part, 1);
    void *q = duet_overwrite(x);
    if (k->whole == DUET_C64) {
        ((float *)q)[0] = (float)re;
        ((float *)q)[1] = (float)im;
    } else {
        ((double *)q)[0] = re;
        ((double *)q)[1] = im;
    }
    evaluate(p, y, make(DUET(x)), name);
    for (int part = 0; part < 2; part++) {
        evaluate(p, r, part ? duet_imag(y) : duet_real(y), name);
        const double want = part ? want_im : want_re;
        const number got = element_of(duet_read(r), k->part, 0);
        const bool same = creall(got) == want && !signbit(creall(got)) == !signbit(want);
        CHECK(isnan(want) ? isnan(creall(got)) : same, "%s of %s, %g%+gi: part %d is %Lg, not %g", name,
              dtypes[k->whole].name, re, im, part, creall(got), want);
    }
    duet_free(&x);
    duet_free(&y);
    duet_free(&r);
}

static void limits(duet_place p)
{
    const double inf = INFINITY;
    for (size_t k = 0; k < 2; k++) {
        const struct kind *of = &kinds[k];
        const double huge = (double)of->huge_part;
        one_limit(p, of, "tan", duet_tan, 1, 1e4, 0, 1);
        one_limit(p, of, "tan", duet_tan, -1, -1e4, -0.0, -1);
        one_limit(p, of, "tan", duet_tan, 2, huge, -0.0, 1);
        one_limit(p, of, "tan", duet_tan, inf, inf, 0, 1);
        one_limit(p, of, "tan", duet_tan, NAN, -inf, 0, -1);
        one_limit(p, of, "tan", duet_tan, 0, 0, 0, 0);
        one_limit(p, of, "tanh", duet_tanh, inf, 1, 1, 0);
        one_limit(p, of, "tanh", duet_tanh, -inf, 2, -1, -0.0);
        one_limit(p, of, "tanh", duet_tanh, -inf, NAN, -1, 0);
        one_limit(p, of, "tanh", duet_tanh, -0.0, -0.0, -0.0, -0.0);
        one_limit(p, of, "tanh", duet_tanh, NAN, 1, NAN, NAN);
        one_limit(p, of, "sign", duet_sign, 0, -0.0, 0, -0.0);
        one_limit(p, of, "sign", duet_sign, -huge, 0, -1, 0);
        one_limit(p, of, "sign", duet_sign, inf, -3, 1, -0.0);
        one_limit(p, of, "sign", duet_sign, 3, -inf, 0, -1);
        one_limit(p, of, "sign", duet_sign, inf, inf, NAN, NAN);
        one_limit(p, of, "sign", duet_sign, NAN, 1, NAN, NAN);
        one_limit(p, of, "log2", duet_log2, 0, 0, -inf, 0);
        one_limit(p, of, "log10", duet_log10, 0, 0, -inf, 0);
    }
    tap_point("limits at zero and infinity");
}

/* For numbers whose absolute value exceeds the largest number, or is near it. */
static void far_out(duet_place p, const struct kind *k, const char *name, maker *make, number (*of)(number))
{
    static const real share[] = { 1, -1, 0.9L, -0.75L, 0.6L, -0.25L, 1e-10L };
    enum { SHARES = sizeof share / sizeof *share, N = SHARES * SHARES };
    duet_matrix *x = duet_new(k->whole, N), *y = duet_new(k->whole, N);
    void *q = duet_overwrite(x);
    for (int i = 0; q && i < N; i++)
        put(q, k->whole, i, k->huge_part * (share[i / SHARES] + I * share[i % SHARES]));
    evaluate(p, y, make(DUET(x)), name);
    array a = array_of(x), want = array_new(1, (int64_t[]){ N });
    for (int i = 0; i < N; i++) want.v[i] = of(a.v[i]);
    near(name, k, y, &want, 24);
    array_free(&a);
    array_free(&want);
    duet_free(&x);
    duet_free(&y);
}

static void beyond_the_largest(duet_place p)
{
    for (size_t k = 0; k < 2; k++) {
        far_out(p, &kinds[k], "asin", duet_asin, casinl);
        far_out(p, &kinds[k], "acos", duet_acos, cacosl);
        far_out(p, &kinds[k], "atan", duet_atan, catanl);
        far_out(p, &kinds[k], "log", duet_log, clogl);
        far_out(p, &kinds[k], "sqrt", duet_sqrt, csqrtl);
        far_out(p, &kinds[k], "tanh", duet_tanh, ctanhl);
    }
    tap_point("absolute values that overflow intermediate results");
}

/* Keeps the signs of both zeros, which re + im I loses. Not every compiler has CMPLXL. */
static number number_of(double re, double im)
{
    const real part[2] = { re, im };
    number z;
    memcpy(&z, part, sizeof z);
    return z;
}

/* On branch cuts the sign of a zero selects the side. */
static void cuts(duet_place p)
{
    static const double at[][2] = { { 2, 0 },      { 2, -0.0 },   { -2, 0 }, { -2, -0.0 },
                                    { 0, 2 },      { -0.0, 2 },   { 0, -2 }, { -0.0, -2 },
                                    { 0.5, -0.0 }, { -0.0, 0.5 }, { 1, 0 },  { -0.0, 0 } };
    static const struct {
        const char *name;
        maker *make;
        number (*of)(number);
    } of[] = { { "asin", duet_asin, casinl }, { "acos", duet_acos, cacosl }, { "atan", duet_atan, catanl } };
    enum { N = sizeof at / sizeof *at };
    duet_matrix *x = duet_new(DUET_C128, N), *y = duet_new(DUET_C128, N);
    memcpy(duet_overwrite(x), at, sizeof at);
    for (int f = 0; f < 3; f++) {
        evaluate(p, y, of[f].make(DUET(x)), of[f].name);
        const double *got = duet_read(y);
        for (int i = 0; i < 2 * N; i++) {
            const number whole = of[f].of(number_of(at[i / 2][0], at[i / 2][1]));
            const real want = i % 2 ? cimagl(whole) : creall(whole);
            const bool side = fabsl(want) < 1e-15L || !signbit(got[i]) == !signbit(want);
            CHECK(side && fabsl(got[i] - want) <= 24 * kinds[1].u * cabsl(whole),
                  "%s of %g%+gi: part %d is %.17g, not %.17Lg", of[f].name, at[i / 2][0], at[i / 2][1], i % 2,
                  got[i], want);
        }
    }
    duet_free(&x);
    duet_free(&y);
    tap_point("branch cuts");
}

/* Not by |z|, which overflows. */
static void tests_of_parts(duet_place p)
{
    const double part[] = { 0, 1, NAN, INFINITY, -INFINITY, 1 };
    enum { N = 6 };
    for (size_t k = 0; k < 2; k++) {
        duet_matrix *x = duet_new(kinds[k].part, N, 1), *y = duet_new(kinds[k].part, N),
                    *z = duet_new(kinds[k].whole, N, N);
        duet_matrix *is[] = { duet_new(DUET_BOOL, N, N), duet_new(DUET_BOOL, N, N),
                              duet_new(DUET_BOOL, N, N) };
        double v[N];
        for (int i = 0; i < N; i++) {
            if (i == 5) v[i] = (double)kinds[k].huge_part;
            else v[i] = part[i];
            put(duet_update(x), kinds[k].part, i, v[i]);
            put(duet_update(y), kinds[k].part, i, v[i]);
        }
        evaluate(p, z, duet_complex(x, y), "complex");
        evaluate(p, is[0], duet_isnan(z), "isnan");
        evaluate(p, is[1], duet_isinf(z), "isinf");
        evaluate(p, is[2], duet_isfinite(z), "isfinite");
        const uint8_t *nan_ = duet_read(is[0]), *inf_ = duet_read(is[1]), *finite_ = duet_read(is[2]);
        for (int i = 0; i < N * N; i++) {
            const double a = v[i / N], b = v[i % N];
            CHECK(nan_[i] == (isnan(a) || isnan(b)), "isnan(%g%+gi) is %d", a, b, nan_[i]);
            CHECK(inf_[i] == (isinf(a) || isinf(b)), "isinf(%g%+gi) is %d", a, b, inf_[i]);
            CHECK(finite_[i] == (isfinite(a) && isfinite(b)), "isfinite(%g%+gi) is %d", a, b, finite_[i]);
        }
        duet_free(&x);
        duet_free(&y);
        duet_free(&z);
        for (int i = 0; i < 3; i++) duet_free(&is[i]);
    }
    tap_point("isnan, isinf and isfinite of complex elements");
}

/* ---- products and sums ---- */

/* All lines along the axis of s = before x n x after elements. */
static void check_line(const char *name, const struct kind *k, const array *a, const array *got, int64_t n,
                       int64_t after)
{
    for (int64_t i = 0; i < got->count; i++) {
        number all = 1;
        for (int64_t j = 0; j < n; j++) all *= a->v[(i / after * n + j) * after + i % after];
        const real most =
            2.2361L * (real)(n ? n - 1 : 0) * k->u * cabsl(all) * 1.001L + (real)n * 8 * k->tiny;
        CHECK(cabsl(got->v[i] - all) <= most, "%s of %s, %d elements: %d is %.9Lg%+.9Lgi, not %.9Lg%+.9Lgi",
              name, dtypes[k->whole].name, (int)n, (int)i, creall(got->v[i]), cimagl(got->v[i]), creall(all),
              cimagl(all));
    }
}

/* Absolute values are near 1, so that products stay in range. */
static void fill_near_one(duet_matrix *m)
{
    void *q = duet_overwrite(m);
    for (int64_t i = 0; q && i < duet_count(m); i++) {
        const real size = 1 + rng_real(&gen, -0.05, 0.05), angle = rng_real(&gen, -3, 3);
        put(q, duet_type(m), i, size * (cosl(angle) + I * sinl(angle)));
    }
}

static void products_of(duet_place p, const struct kind *k, const sizes *s, int sight)
{
    duet_matrix *all, *x = view(&all, k->whole, s, sight), *y;
    fill_near_one(all);
    array a = array_of(x);
    for (int axis = -1; axis < s->rank; axis++) {
        const duet_expr e = axis < 0 ? duet_prod(x) : duet_prod_axis(x, axis);
        const sizes out = sizes_of_expr(e);
        int64_t after = 1;
        for (int b = axis + 1; axis >= 0 && b < s->rank; b++) after *= s->size[b];
        y = duet_new_shape(k->whole, out.rank, out.size);
        evaluate(p, y, e, "prod");
        array got = array_of(y);
        check_line("prod", k, &a, &got, axis < 0 ? a.count : s->size[axis], after);
        array_free(&got);
        duet_free(&y);
    }
    array_free(&a);
    duet_free(&x);
    duet_free(&all);
}

static void products(duet_place p)
{
    static const sizes shapes[] = { SIZES(),        SIZES(0),       SIZES(1),    SIZES(2),
                                    SIZES(3),       SIZES(7),       SIZES(8),    SIZES(3, 5),
                                    SIZES(2, 0, 3), SIZES(4, 1, 6), SIZES(1000), SIZES(33, 17) };
    for (size_t k = 0; k < 2; k++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int sight = 0; sight < SIGHTS; sight++) products_of(p, &kinds[k], &shapes[s], sight);
    duet_matrix *x = duet_new(DUET_C128, 3, 4, 5), *y = duet_new(DUET_C128, 3, 1, 1),
                *z = duet_new(DUET_C128, 3);
    fill_near_one(x);
    evaluate(p, y, duet_prod_axes_keep(duet_neg(x), 1, 2), "prod_axes_keep");
    evaluate(p, z, duet_mul(2, duet_prod_axes(duet_mul(x, duet_complex(0, 1)), 1, 2)),
             "prod_axes of a formula");
    array a = array_of(x), b = array_of(y), c = array_of(z);
    check_line("prod_axes_keep", &kinds[1], &a, &b, 20, 1);
    for (int i = 0; i < 3; i++)
        CHECK(c.v[i] == 2 * b.v[i], "i to the power 20 is not 1: element %d", i); /* and so is -1 */
    array_free(&a);
    array_free(&b);
    array_free(&c);
    duet_free(&x);
    duet_free(&y);
    duet_free(&z);
    tap_point("prod");
}

/* A destination that is also an operand, and integers, which are exact. */
static void products_there(duet_place p)
{
    static const double in[] = { 1, 1, 1, -1, 0, 2, 3, 0, 0, 1, -1, 2 }; /* 2, 4i, 12i, -12, 12 - 24i */
    duet_matrix *x = duet_new(DUET_C128, 6), *y = duet_new(DUET_C128), *first = duet_slice(x, 0, 1);
    memcpy(duet_overwrite(x), in, sizeof in);
    evaluate(p, y, duet_prod(x), "prod");
    const double *got = duet_read(y);
    CHECK(got[0] == 12 && got[1] == -24, "prod of integers is inexact: %g%+gi", got[0], got[1]);
    evaluate(p, first, duet_prod_keep(x, 0), "x[:1] = prod(x)");
    evaluate(p, x, duet_div(x, duet_prod_keep(duet_mul(x, 1), 0)), "x /= prod");
    const double *z = duet_read(x);
    /* (12 - 24i)(1 - i)(2i)(3)(i)(-1 + 2i) of which x[0] is over */
    const number all = (12 - 24 * I) * (1 - I) * (2 * I) * 3 * I * (-1 + 2 * I), want = (12 - 24 * I) / all;
    CHECK(cabsl(z[0] + I * (real)z[1] - want) <= 8 * kinds[1].u * cabsl(want), "x /= prod(x) gives %g%+gi",
          z[0], z[1]);
    duet_free(&x);
    duet_free(&y);
    duet_free(&first);
    tap_point("products into one of their operands");
}

static void sums_up_to(duet_place p)
{
    static const sizes shapes[] = {
        SIZES(1), SIZES(0), SIZES(9), SIZES(3, 5), SIZES(4, 1, 6), SIZES(700, 3)
    };
    for (size_t k = 0; k < 2; k++)
        for (int s = 0; s < 6; s++)
            for (int sight = 0; sight < SIGHTS; sight++)
                for (int axis = 0; axis < shapes[s].rank; axis++) {
                    duet_matrix *all, *x = view(&all, kinds[k].whole, &shapes[s], sight),
                                      *y = duet_new_shape(kinds[k].whole, shapes[s].rank, shapes[s].size);
                    int64_t after = 1, n = shapes[s].size[axis];
                    for (int b = axis + 1; b < shapes[s].rank; b++) after *= shapes[s].size[b];
                    fill_range(all, &kinds[k], MILD);
                    evaluate(p, y, duet_cumsum(duet_conj(x), axis), "cumsum");
                    array a = array_of(x), got = array_of(y);
                    for (int64_t i = 0; i < a.count; i++) {
                        number sum = 0;
                        real most = 0;
                        for (int64_t j = i; j >= 0 && j / (n * after) == i / (n * after); j -= after) {
                            sum += conjl(a.v[j]);
                            most += cabsl(a.v[j]);
                        }
                        CHECK(cabsl(got.v[i] - sum) <= (real)n * kinds[k].u * most * 1.001L,
                              "cumsum of matrix %d along axis %d: element %d is wrong", (int)n, axis, (int)i);
                    }
                    array_free(&a);
                    array_free(&got);
                    duet_free(&x);
                    duet_free(&all);
                    duet_free(&y);
                }
    tap_point("cumsum");
}

/* ---- vectors ---- */

static void one_vdot(duet_place p, duet_dtype t, const struct kind *k, const sizes *s)
{
    duet_matrix *x = duet_new_shape(t, s->rank, s->size), *y = duet_new_shape(t, s->rank, s->size),
                *z = duet_new(t);
    fill(x);
    fill(y);
    evaluate(p, z, duet_vdot(x, y), "vdot");
    array a = array_of(x), b = array_of(y), got = array_of(z);
    number sum = 0;
    real most = 0;
    for (int64_t i = 0; i < a.count; i++) {
        sum += conjl(a.v[i]) * b.v[i];
        most += cabsl(a.v[i]) * cabsl(b.v[i]);
    }
    CHECK(cabsl(got.v[0] - sum) <= 2 * (real)(a.count + 4) * k->u * most,
          "vdot of %s, %d elements: %Lg%+Lgi, not %Lg%+Lgi", dtypes[t].name, (int)a.count, creall(got.v[0]),
          cimagl(got.v[0]), creall(sum), cimagl(sum));
    array_free(&a);
    array_free(&b);
    array_free(&got);
    duet_free(&x);
    duet_free(&y);
    duet_free(&z);
}

static void one_cross(duet_place p, duet_dtype tx, duet_dtype ty, const struct kind *k, const sizes *sx,
                      const sizes *sy, int sight)
{
    duet_matrix *all, *x = view(&all, tx, sx, sight), *y = duet_new_shape(ty, sy->rank, sy->size);
    fill(all);
    fill(y);
    const duet_expr e = duet_cross(x, y);
    const sizes s = sizes_of_expr(e);
    const duet_dtype t = duet_expr_type(e);
    duet_matrix *z = duet_new_shape(t, s.rank, s.size);
    evaluate(p, z, e, "cross");
    array a = array_of(x), b = array_of(y), got = array_of(z);
    for (int64_t i = 0; i < got.count; i++) {
        const int64_t v = i / 3, j = (i + 1 - v * 3) % 3, l = (i + 2 - v * 3) % 3;
        const number *q = a.v + v % (a.count / 3) * 3,
                     *w = b.v + v % (b.count / 3) * 3; /* only leading axes are missing */
        const real most = cabsl(q[j]) * cabsl(w[l]) + cabsl(q[l]) * cabsl(w[j]);
        CHECK(cabsl(got.v[i] - (q[j] * w[l] - q[l] * w[j])) <= 4 * k->u * most,
              "cross of %s and %s: element %d is wrong", dtypes[tx].name, dtypes[ty].name, (int)i);
    }
    array_free(&a);
    array_free(&b);
    array_free(&got);
    duet_free(&x);
    duet_free(&all);
    duet_free(&y);
    duet_free(&z);
}

static void vectors(duet_place p)
{
    static const duet_dtype types[][3] = { { DUET_F32, DUET_F32, 0 }, { DUET_F64, DUET_F64, 1 },
                                           { DUET_C64, DUET_C64, 0 }, { DUET_C128, DUET_C128, 1 },
                                           { DUET_I64, DUET_I64, 1 }, { DUET_F64, DUET_C128, 1 },
                                           { DUET_C64, DUET_F32, 0 } };
    static const sizes dots[] = { SIZES(), SIZES(0), SIZES(1), SIZES(100), SIZES(7, 9) };
    static const sizes pairs[][2] = { { SIZES(3), SIZES(3) },
                                      { SIZES(5, 3), SIZES(5, 3) },
                                      { SIZES(5, 3), SIZES(3) },
                                      { SIZES(3), SIZES(4, 2, 3) },
                                      { SIZES(0, 3), SIZES(3) } };
    for (int t = 0; t < 7; t++) {
        for (int s = 0; s < 5 && types[t][0] == types[t][1]; s++)
            one_vdot(p, types[t][0], &kinds[types[t][2]], &dots[s]);
        for (int s = 0; s < 5; s++)
            for (int sight = 0; sight < SIGHTS; sight++)
                one_cross(p, types[t][0], types[t][1], &kinds[types[t][2]], &pairs[s][0], &pairs[s][1],
                          sight);
    }
    tap_point("vdot and cross");
}

/* The cross product of a vector with itself is exactly zero. */
static void parallel(duet_place p)
{
    for (duet_dtype t = 0; t < DUET_DTYPE_COUNT; t++) {
        if (t != DUET_F32 && t != DUET_F64 && !dtype_is_complex(t)) continue;
        duet_matrix *x = duet_new(t, 40, 3), *y = duet_new(t, 40, 3);
        fill(x);
        evaluate(p, y, duet_cross(x, x), "cross");
        array got = array_of(y);
        for (int i = 0; i < 120; i++)
            CHECK(got.v[i] == 0, "x cross x of %s is not 0: element %d", dtypes[t].name, i);
        array_free(&got);
        duet_free(&x);
        duet_free(&y);
    }
    tap_point("parallel vectors");
}

static void bad(void)
{
    duet_matrix *x = duet_new(DUET_C64, 4, 3), *y = duet_new(DUET_C64, 2), *b = duet_new(DUET_BOOL, 3),
                *f = duet_new(DUET_F32, 2, 3);
    REFUSED(duet_cross(x, y), DUET_BAD_SHAPE, "duet_cross(x: c64[4,3], y: c64[2])",
            "the last axes of x and y must have 3 elements");
    REFUSED(duet_cross(x, 2), DUET_BAD_SHAPE, "duet_cross(x: c64[4,3]", "3 elements");
    REFUSED(duet_cross(x, f), DUET_BAD_SHAPE, "broadcast");
    REFUSED(duet_cross(b, b), DUET_BAD_TYPE, "bool elements are not supported");
    REFUSED(duet_cross(duet_floor(x), f), DUET_BAD_TYPE, "duet_floor(x: c64[4,3])");
    REFUSED(duet_vdot(x, y), DUET_BAD_SHAPE, "same shape");
    REFUSED(duet_vdot(duet_floor(x), y), DUET_BAD_TYPE, "duet_floor(x: c64[4,3])");
    REFUSED(duet_isinf(duet_complex(1, 2)), DUET_BAD_TYPE, "a complex number");
    REFUSED(duet_pow(duet_complex(1, 2), 2), DUET_BAD_TYPE, "a complex number");
    REFUSED(duet_cumsum(x, 2), DUET_BAD_SHAPE, "does not exist");
    duet_free(&x);
    duet_free(&y);
    duet_free(&b);
    duet_free(&f);
    tap_point("invalid arguments");
}

static void all(duet_place p, int mode)
{
    powers(p);
    zeros_to_powers(p);
    whole_powers(p);
    limits(p);
    beyond_the_largest(p);
    cuts(p);
    tests_of_parts(p);
    products(p);
    products_there(p);
    sums_up_to(p);
    vectors(p);
    parallel(p);
}

int main(int count, char **argument)
{
    gen = rng_new(count > 1 ? strtoull(argument[1], NULL, 10) : 21);
    bad();
    each_mode(all);
    return tap_end();
}
