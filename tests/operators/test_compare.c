/* test_compare.c - predicates of matrices (the rows DUET_COMPOSED_MATRIX1 of composed.def),
 * array_equal and allclose, against simple loops; and powers with integer exponents. */
#include "common.h"
#include "dtype.h"
#include <complex.h>
#include <math.h>

static rng gen;
static duet_place place[2];
static int places;

/* ---- n x n matrices ---- */

enum { MOST = 70 };
typedef struct square {
    int n;
    double complex x[MOST][MOST];
} square;

#define X(i, j) (s->x[i][j])
#define OVER(i) for (int i = 0; i < s->n; i++)
#define TOTAL(term)                                                                                          \
    __extension__({                                                                                          \
        long double complex sum_ = 0;                                                                        \
        OVER(i) OVER(j) sum_ += term;                                                                        \
        sum_;                                                                                                \
    })
#define EVERY(term)                                                                                          \
    __extension__({                                                                                          \
        bool all_ = true;                                                                                    \
        OVER(i) OVER(j) all_ &= term;                                                                        \
        all_;                                                                                                \
    })
static double complex row_sum(const square *s, int i)
{
    double complex sum = 0;
    OVER(j) sum += X(i, j);
    return sum;
}
static double complex column_sum(const square *s, int j)
{
    double complex sum = 0;
    OVER(i) sum += X(i, j);
    return sum;
}
#define in_row(i)    row_sum(s, i)
#define in_column(j) column_sum(s, j)

typedef long double complex meaning(const square *s);
typedef duet_expr maker(duet_expr x);
#define DUET_COMPOSED_MATRIX1(name, formula, known, doc)                                                     \
    static long double complex known_##name(const square *s) { return known; }
#include <duet/composed.def>

static const struct row {
    const char *name;
    maker *make;
    meaning *known;
} rows[] = {
#define DUET_COMPOSED_MATRIX1(name, ...) { #name, duet_##name, known_##name },
#include <duet/composed.def>
};
enum { ROWS = sizeof rows / sizeof *rows };

/* A matrix of one kind; sometimes one element is changed. */
enum {
    ZEROS,
    DIAGONAL,
    LOWER,
    UPPER,
    BELOW,
    ABOVE,
    UNIT_LOWER,
    UNIT_UPPER,
    SYMMETRIC,
    HERMITIAN,
    PERMUTATION,
    ANYTHING,
    SPARSE,
    KINDS
};

static bool is_zero(int kind, int i, int j)
{
    switch (kind) {
    case ZEROS: return true;
    case DIAGONAL: return i != j;
    case LOWER:
    case UNIT_LOWER: return i < j;
    case UPPER:
    case UNIT_UPPER: return i > j;
    case BELOW: return i <= j;
    case ABOVE: return i >= j;
    case SPARSE: return rng_chance(&gen, 70);
    default: return false;
    }
}

static void fill(square *s, int kind, bool with_parts, bool almost)
{
    OVER(i) OVER(j)
    {
        double complex v = rng_below(&gen, 9) - 4.0;
        if (with_parts) v += (rng_below(&gen, 9) - 4.0) * _Complex_I;
        if (kind == PERMUTATION) v = (i + 1) % s->n == j;
        if ((kind == UNIT_LOWER || kind == UNIT_UPPER) && i == j) v = 1;
        if (kind == HERMITIAN && i == j) v = creal(v);
        X(i, j) = is_zero(kind, i, j) ? 0 : v;
        if (kind == SYMMETRIC && j < i) X(i, j) = X(j, i);
        if (kind == HERMITIAN && j < i) X(i, j) = conj(X(j, i));
    }
    if (!almost || !s->n) return;
    double complex *p = &X(rng_below(&gen, s->n), rng_below(&gen, s->n));
    if (with_parts) *p += rng_chance(&gen, 30) ? NAN * _Complex_I : 1 * _Complex_I;
    else *p = rng_chance(&gen, 30) ? NAN : 1;
}

static duet_matrix *matrix_of(duet_dtype type, const square *s)
{
    duet_matrix *m = duet_new(type, s->n, s->n);
    void *p = duet_overwrite(m);
    OVER(i) OVER(j)
    {
        if (type == DUET_F32) ((float *)p)[i * s->n + j] = (float)creal(X(i, j));
        if (type == DUET_F64) ((double *)p)[i * s->n + j] = creal(X(i, j));
        if (type == DUET_I32) ((int32_t *)p)[i * s->n + j] = (int32_t)creal(X(i, j));
        if (type == DUET_C64) ((float complex *)p)[i * s->n + j] = (float complex)X(i, j);
        if (type == DUET_C128) ((double complex *)p)[i * s->n + j] = X(i, j);
    }
    return m;
}

static double complex number_of(const duet_matrix *m)
{
    const void *p = duet_read(m);
    if (!CHECK(p != NULL, "%s", duet_error())) return -77;
    switch (duet_type(m)) {
    case DUET_F32: return *(const float *)p;
    case DUET_F64: return *(const double *)p;
    case DUET_C64: return *(const float complex *)p;
    case DUET_C128: return *(const double complex *)p;
    case DUET_I64: return (double)*(const int64_t *)p;
    case DUET_I32: return *(const int32_t *)p;
    default: return *(const uint8_t *)p;
    }
}

/* Spends e, a formula with one element. */
static double complex value_of(duet_expr e, duet_place at)
{
    duet_matrix *to = duet_new(duet_expr_type(e));
    const duet_status st = (duet_set_on)(at, to, e);
    CHECK(st == DUET_OK, "%s", duet_error());
    const double complex v = st == DUET_OK ? number_of(to) : -77;
    duet_free(&to);
    return v;
}

static bool same(double got, double want) { return isnan(want) ? isnan(got) : got == want; }

/* Small integers: every sum is exact. */
static void squares(duet_dtype type)
{
    static const int sides[] = { 0, 1, 2, 3, 7, MOST };
    static square s;
    const bool is_complex = type == DUET_C64 || type == DUET_C128;
    for (int t = 0; t < 6 * KINDS * 2; t++) {
        const int kind = t / 2 % KINDS;
        s.n = sides[t / (2 * KINDS)];
        fill(&s, kind, is_complex, t % 2 && type != DUET_I32);
        duet_matrix *m = matrix_of(type, &s), *turned = duet_transposed(m);
        for (int r = 0; r < ROWS; r++)
            for (int k = 0; k < 2 * places; k++) {
                square back = s;
                for (int i = 0; i < s.n && k % 2; i++)
                    for (int j = 0; j < s.n; j++) back.x[i][j] = s.x[j][i];
                const double complex got =
                    value_of(rows[r].make(duet_of_matrix(k % 2 ? turned : m)), place[k / 2]);
                const double complex want = (double complex)rows[r].known(&back);
                CHECK(same(creal(got), creal(want)) && same(cimag(got), cimag(want)),
                      "%s of kind %d, %d x %d, %s on the %s: %g%+gi, not %g%+gi", rows[r].name, kind, s.n,
                      s.n, dtypes[type].name, place_name(place[k / 2]), creal(got), cimag(got), creal(want),
                      cimag(want));
            }
        duet_free(&m);
        duet_free(&turned);
    }
    tap_point(dtypes[type].name);
}

static void others(void)
{
    duet_matrix *m = duet_new(DUET_F32, 2, 3), *v = duet_new(DUET_F32, 3), *to = duet_new(DUET_F32);
    memcpy(duet_overwrite(m), (float[]){ 1, 2, 3, 4, 5, 6 }, 6 * sizeof(float));
    for (int k = 0; k < places; k++) {
        CHECK(value_of(duet_trace(m), place[k]) == 6, "the trace of a 2 x 3 matrix is wrong");
        for (int r = 0; r < ROWS; r++)
            if (rows[r].make != (duet_trace))
                CHECK(value_of(rows[r].make((duet_mul)(duet_of_matrix(m), duet_of_number(0))), place[k]) == 0,
                      "a 2 x 3 matrix %s", rows[r].name);
    }
    for (int r = 0; r < ROWS; r++) {
        char name[50];
        snprintf(name, sizeof name, "duet_%s(x: f32[3]): x must have 2 axes", rows[r].name);
        CHECK((duet_set)(to, rows[r].make(duet_of_matrix(v))) == DUET_BAD_SHAPE && strstr(duet_error(), name),
              "%s", duet_error());
    }
    CHECK(duet_set(to, duet_trace(v)) == DUET_BAD_SHAPE && strstr(duet_error(), "test_compare.c:"), "%s",
          duet_error());
    duet_free(&m);
    duet_free(&v);
    duet_free(&to);
    tap_point("operands that are not square");
}

/* ---- are all elements equal? --------------------------------------------------------------------------- */

static duet_matrix *vector(int n, const float *x)
{
    duet_matrix *m = duet_new(DUET_F32, n);
    memcpy(duet_overwrite(m), x, (size_t)n * sizeof *x);
    return m;
}

static void uniform_as(duet_dtype type)
{
    static const float x[][6] = { { 3, 3, 3, 3, 3, 3 },
                                  { 1, 0, 1, 1, 0, 1 },
                                  { 0, 0, 1, 0, 0, 1 },
                                  { 0, -0.0f, 0, 0, 0, -0.0f },
                                  { NAN, NAN, NAN, NAN, NAN, NAN },
                                  { 2, 2, NAN, 2, 2, 2 },
                                  { INFINITY, INFINITY, INFINITY, -INFINITY, -INFINITY, -INFINITY } };
    const bool is_integer = type == DUET_I8 || type == DUET_BOOL;
    for (size_t t = 0; t < (is_integer ? 4 : sizeof x / sizeof *x); t++) {
        duet_matrix *v = vector(6, x[t]), *m = duet_new(type, 2, 3), *flags = duet_new(DUET_BOOL, 2);
        bool row[2] = { true, true };
        for (int i = 0; i < 6; i++)
            row[i / 3] &= (type == DUET_BOOL ? !x[t][i] : (double)x[t][i]) ==
                          (type == DUET_BOOL ? !x[t][i / 3 * 3] : (double)x[t][i / 3 * 3]);
        const bool all = row[0] && row[1] && x[t][0] == x[t][3];
        CHECK(!duet_set(m, duet_cast(duet_reshape(v, 2, 3), type)), "%s", duet_error());
        for (int k = 0; k < places; k++) {
            CHECK(value_of(duet_is_uniform(m), place[k]) == all, "is_uniform of %s matrix %d",
                  dtypes[type].name, (int)t);
            CHECK(value_of(duet_is_uniform_axes(m, 0, 1), place[k]) == all, "is_uniform_axes of %s matrix %d",
                  dtypes[type].name, (int)t);
            CHECK(!duet_set_on(place[k], flags, duet_is_uniform(m, 1)), "%s", duet_error());
            const uint8_t *p = duet_read(flags);
            CHECK(p && p[0] == row[0] && p[1] == row[1], "is_uniform of the rows of %s matrix %d",
                  dtypes[type].name, (int)t);
        }
        duet_free(&v);
        duet_free(&m);
        duet_free(&flags);
    }
}

/* One part of complex elements differs; and matrices without elements. */
static void uniform(void)
{
    const duet_dtype types[] = { DUET_F16, DUET_F32, DUET_F64, DUET_I8, DUET_BOOL, DUET_C64 };
    for (int t = 0; t < 6; t++) uniform_as(types[t]);
    duet_matrix *z = duet_new(DUET_C128, 2), *none = duet_new(DUET_F32, 0, 3),
                *flags = duet_new(DUET_BOOL, 3);
    for (int k = 0; k < 16 * places; k++) {
        const double part[] = { k & 1, k >> 1 & 1, k >> 2 & 1, k >> 3 & 1 };
        memcpy(duet_overwrite(z), part, sizeof part);
        CHECK(value_of(duet_is_uniform(z), place[k / 16]) == (part[0] == part[2] && part[1] == part[3]),
              "is_uniform of complex elements");
    }
    for (int k = 0; k < places; k++) {
        CHECK(value_of(duet_is_uniform(none), place[k]) == 1, "is_uniform of no elements");
        CHECK(!duet_set_on(place[k], flags, duet_is_uniform(none, 0)), "%s", duet_error());
        const uint8_t *p = duet_read(flags);
        CHECK(p && p[0] && p[1] && p[2], "is_uniform of empty columns");
    }
    CHECK(duet_set(flags, duet_is_uniform(none, 2)) == DUET_BAD_SHAPE && strstr(duet_error(), "axis 2"), "%s",
          duet_error());
    duet_free(&z);
    duet_free(&none);
    duet_free(&flags);
    tap_point("is_uniform");
}

/* ---- two matrices -------------------------------------------------------------------------------------- */

static bool close_to(double x, double y, double relative, double absolute)
{
    return x == y || (isfinite(y) && fabs(x - y) <= absolute + relative * fabs(y));
}

static void pairs(void)
{
    const float hard[] = { 0, -0.0f, 1, 1.25f, -1, 4, 5, INFINITY, -INFINITY, NAN };
    const double tolerances[] = { 0, 0.25, 1 };
    duet_matrix *to = duet_new(DUET_BOOL);
    for (int i = 0; i < 10; i++)
        for (int j = 0; j < 10; j++)
            for (int t = 0; t < 9; t++) {
                duet_matrix *x = vector(2, (float[]){ 3, hard[i] }), *y = vector(2, (float[]){ 3, hard[j] });
                const double relative = tolerances[t / 3], absolute = tolerances[t % 3];
                for (int k = 0; k < places; k++) {
                    CHECK(value_of(duet_array_equal(x, y), place[k]) == (hard[i] == hard[j]), "%g == %g",
                          hard[i], hard[j]);
                    CHECK(value_of(duet_allclose(x, y, relative, absolute), place[k]) ==
                              close_to(hard[i], hard[j], relative, absolute),
                          "%g close to %g by %g, %g", hard[i], hard[j], relative, absolute);
                }
                duet_free(&x);
                duet_free(&y);
            }
    duet_matrix *x = vector(2, (float[]){ 3, 3 }), *y = vector(1, (float[]){ 3 }), *n = duet_new(DUET_I32, 2),
                *none = NULL;
    for (int k = 0; k < places; k++) {
        CHECK(value_of(duet_array_equal(x, y), place[k]) == 0, "matrices of 2 and of 1 elements are equal");
        CHECK(value_of(duet_allclose(x, y, 0, 0), place[k]) == 1, "duet_allclose does not broadcast");
        CHECK(value_of(duet_allclose(n, 1e-9, 1e-5, 1e-8), place[k]) == 1,
              "duet_allclose of integers and a number is wrong");
    }
    CHECK(duet_set(to, duet_allclose(x, y, -1, 0)) == DUET_BAD_ARGUMENT &&
              strstr(duet_error(), "relative (-1)"),
          "%s", duet_error());
    CHECK(duet_set(to, duet_allclose(x, y, 0, NAN)) == DUET_BAD_ARGUMENT &&
              strstr(duet_error(), "test_compare.c"),
          "%s", duet_error());
    CHECK(duet_set(to, duet_array_equal(x, none)) == DUET_BAD_ARGUMENT, "%s", duet_error());
    CHECK(duet_set(to, duet_allclose(none, y, -1, 0)) == DUET_BAD_ARGUMENT &&
              strstr(duet_error(), "x must not be NULL"),
          "%s", duet_error());
    duet_free(&x);
    duet_free(&y);
    duet_free(&n);
    duet_free(&to);
    tap_point("array_equal and allclose");
}

/* By absolute values of complex numbers, not by parts. */
static void complex_pairs(void)
{
    duet_matrix *x = duet_new(DUET_C64, 1), *y = duet_new(DUET_C64, 1);
    const float hard[] = { 0, 3, 4, 4.5f, INFINITY, NAN };
    for (int i = 0; i < 6 * 6 * 6 * 6; i++) {
        const float a = hard[i % 6], b = hard[i / 6 % 6], c = hard[i / 36 % 6], d = hard[i / 216];
        memcpy(duet_overwrite(x), (float[]){ a, b }, 8);
        memcpy(duet_overwrite(y), (float[]){ c, d }, 8);
        const bool same = a == c && b == d,
                   is = isfinite(hypot(c, d)) && hypot(a - c, b - d) <= 0.25 + 0.5 * hypot(c, d);
        for (int k = 0; k < places; k++)
            CHECK(value_of(duet_allclose(x, y, 0.5, 0.25), place[k]) == (same || is),
                  "%g%+gi close to %g%+gi", a, b, c, d);
    }
    duet_free(&x);
    duet_free(&y);
    tap_point("allclose of complex elements");
}

/* ---- powers -------------------------------------------------------------------------------------------- */

static void powers(void)
{
    duet_matrix *x = vector(4, (float[]){ 2, -3, 0.5f, 1 }), *i = duet_new(DUET_I32, 1),
                *to = duet_new(DUET_F32, 4), *whole = duet_new(DUET_I32, 1);
    *(int32_t *)duet_overwrite(i) = -3;
    for (int k = 0; k < places; k++)
        for (int n = -9; n < 20; n++) {
            CHECK(duet_set_on(place[k], to, duet_pow_int(x, n)) == DUET_OK, "%s", duet_error());
            const float *p = duet_read(to), v[] = { 2, -3, 0.5f, 1 };
            for (int e = 0; e < 4; e++) {
                const double want = pow(v[e], n),
                             d = fabs(
                                 p[e] -
                                 /* one rounding for each of up to 2 log2(n) products, which later products
                         * double */
                                 want);
                CHECK(d <= (abs(n) + 1) * 0x1p-24 * fabs(want), "%g to the power %d is %.9g, not %.17g", v[e],
                      n, p[e], want);
            }
            if (n < 0) continue;
            CHECK(duet_set_on(place[k], whole, duet_pow_int(i, n)) == DUET_OK, "%s", duet_error());
            CHECK(*(const int32_t *)duet_read(whole) == (int32_t)pow(-3, n), "(-3)^%d is wrong", n);
        }
    duet_free(&x);
    duet_free(&i);
    duet_free(&to);
    duet_free(&whole);
    tap_point("integer powers");
}

int main(void)
{
    gen = rng_new(7);
    places = list_places(place);
    squares(DUET_F32);
    squares(DUET_F64);
    squares(DUET_I32);
    squares(DUET_C64);
    squares(DUET_C128);
    others();
    uniform();
    pairs();
    complex_pairs();
    powers();
    CHECK(duet_arena_limit(1 << 20) == DUET_OK && duet_arena_limit(64 << 20) == DUET_OK,
          "a formula is still in the arena: %s", duet_error());
    tap_point("all formulas are released");
    return tap_end();
}
