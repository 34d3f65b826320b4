/* test_structure.c - structured matrices: declaring them, the structure of random formulas against their
 * elements, formulas that use it against the same of general matrices, and writes that keep it or would
 * break it. */
#include "common.h"
#include "matrix.h"
#include "numbers_of.h"
#include "structure.h"
#include "structured.h"
#include <complex.h>
#include <math.h>

static duet_place place[2];
static int places;

static void ok(duet_status s) { CHECK(s == DUET_OK, "%s", duet_error()); }

static const duet_structure structures[] = { DUET_SYMMETRIC,      DUET_HERMITIAN,  DUET_DIAGONAL,
                                             DUET_LOWER,          DUET_UPPER,      DUET_STRICTLY_LOWER,
                                             DUET_STRICTLY_UPPER, DUET_UNIT_LOWER, DUET_UNIT_UPPER };
enum { STRUCTURES = sizeof structures / sizeof *structures };
static const duet_dtype types[] = { DUET_F32, DUET_F64, DUET_C64,  DUET_C128,
                                    DUET_I32, DUET_F16, DUET_BF16, DUET_U8 };
enum { TYPES = sizeof types / sizeof *types, BLAS_TYPES = 4 };

/* ---- elements as double _Complex, by index ---- */

/* CMPLX, which glibc has for gcc only. */
static double _Complex complex_of(double re, double im)
{
    double _Complex z;
    memcpy(&z, (const double[]){ re, im }, sizeof z);
    return z;
}

static double _Complex draw_number(rng *gen, bool is_complex)
{
    const double re = (int)rng_below(gen, 9) - 4, im = (int)rng_below(gen, 9) - 4;
    return is_complex ? complex_of(re, im) : re;
}

static bool is_zero_there(duet_structure s, int i, int j)
{
    switch (s) {
    case DUET_DIAGONAL: return i != j;
    case DUET_LOWER:
    case DUET_UNIT_LOWER: return j > i;
    case DUET_STRICTLY_LOWER: return j >= i;
    case DUET_UPPER:
    case DUET_UNIT_UPPER: return j < i;
    case DUET_STRICTLY_UPPER: return j <= i;
    default: return false;
    }
}

/* n x n elements with a structure. `strength` is added to the diagonal: systems are well conditioned. */
static void draw_elements(rng *gen, double _Complex *e, int n, duet_structure s, bool is_complex,
                          double strength)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            const double _Complex drawn = draw_number(gen, is_complex) + (i == j ? strength : 0);
            double _Complex *x = &e[i * n + j];
            if (is_zero_there(s, i, j)) *x = 0;
            else if ((s == DUET_UNIT_LOWER || s == DUET_UNIT_UPPER) && i == j) *x = 1;
            else if (s == DUET_SYMMETRIC && j < i) *x = e[j * n + i];
            else if (s == DUET_HERMITIAN && j < i) *x = conj(e[j * n + i]);
            else if (s == DUET_HERMITIAN && i == j) *x = creal(drawn);
            else *x = drawn;
        }
}

static void put(duet_matrix *m, const double _Complex *e)
{
    const int64_t n = duet_count(m);
    duet_matrix *d = duet_new(DUET_C128, 1, n), *r = duet_new(DUET_F64, 1, n);
    double _Complex *p = duet_overwrite(d);
    double *q = duet_overwrite(r);
    for (int64_t i = 0; i < n; i++) {
        p[i] = e[i];
        q[i] = creal(e[i]);
    }
    const duet_dtype t = duet_type(m);
    const duet_expr flat = dtype_is_complex(t) ? duet_cast(d, t) : duet_cast(r, t);
    ok(duet_set(m, duet_reshape(flat, duet_size(m, 0), duet_size(m, 1))));
    duet_free(&d, &r);
}

static bool same(double _Complex a, double _Complex b)
{
    return (creal(a) == creal(b) || (isnan(creal(a)) && isnan(creal(b)))) &&
           (cimag(a) == cimag(b) || (isnan(cimag(a)) && isnan(cimag(b))));
}

/* Does e, of n x n elements, have these properties? tolerance: of mirror images and ones; 0: exactly. */
static bool has(const double _Complex *e, int n, unsigned p, double tolerance)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            const double _Complex x = e[i * n + j], y = e[j * n + i];
            const double size = tolerance > 0 ? tolerance * (1 + cabs(x) + cabs(y)) : 0;
            if (p & ZERO_ABOVE && j > i && !(cabs(x) <= size)) return false;
            if (p & ZERO_BELOW && j < i && !(cabs(x) <= size)) return false;
            if (p & ZERO_DIAGONAL && i == j && !(cabs(x) <= size)) return false;
            if (p & ONE_DIAGONAL && i == j && !(cabs(x - 1) <= size)) return false;
            if (p & SYMMETRIC && !(same(x, y) || cabs(x - y) <= size)) return false;
            if (p & HERMITIAN && !(same(x, conj(y)) || cabs(x - conj(y)) <= size)) return false;
        }
    return true;
}

static void check_text(const char *words)
{
    CHECK(strstr(duet_error(), words) != NULL, "\"%s\" is not in: %s", words, duet_error());
}

/* ---- duet_declare ---- */

/* Changes an element so that the structure is broken, and stores its index. */
static void break_one(rng *gen, double _Complex *e, int n, duet_structure s, int *i, int *j)
{
    *i = (int)rng_below(gen, n);
    *j = (int)rng_below(gen, n);
    const bool lower = s == DUET_LOWER || s == DUET_STRICTLY_LOWER || s == DUET_UNIT_LOWER;
    const bool upper = s == DUET_UPPER || s == DUET_STRICTLY_UPPER || s == DUET_UNIT_UPPER;
    if (*i == *j) *j = (*i + 1) % n;
    if ((lower && *j < *i) || (upper && *j > *i)) {
        const int k = *i;
        *i = *j;
        *j = k;
    }
    e[*i * n + *j] += 3;
}

static void test_declare(int trials)
{
    rng gen = rng_new(3);
    for (int t = 0; t < trials; t++) {
        const int n = 2 + (int)rng_below(&gen, 9);
        const duet_dtype type = types[rng_below(&gen, TYPES)];
        const duet_structure s = structures[rng_below(&gen, STRUCTURES)];
        double _Complex e[100];
        int i, j;
        draw_elements(&gen, e, n, s, dtype_is_complex(type), 0);
        for (int k = 0; k < n * n && type == DUET_U8; k++) e[k] = fabs(creal(e[k]));
        duet_matrix *m = duet_new(type, n, n), *turned = duet_transposed(m);
        DUET_ON(place[t % places])
        {
            put(m, e);
            ok(duet_declare(m, s));
            const unsigned named = structure_properties(duet_structure_of(m));
            CHECK((properties_completed(named, dtype_is_complex(type)) & structure_properties(s)) ==
                      structure_properties(s),
                  "structure %d of %s is %d", s, dtypes[type].name, duet_structure_of(m));
            ok(duet_declare(m, s));
            CHECK(structure_properties(duet_structure_of(turned)) ==
                      properties_transposed(structure_properties(duet_structure_of(m))),
                  "the transpose of structure %d is %d", s, duet_structure_of(turned));
            duet_matrix *other = duet_new(type, n, n);
            break_one(&gen, e, n, s, &i, &j);
            put(other, e);
            char at[40], across[40];
            snprintf(at, sizeof at, "[%d, %d]", i, j);
            snprintf(across, sizeof across, "[%d, %d]", j, i);
            CHECK(duet_declare(other, s) == DUET_BAD_ARGUMENT, "structure %d, broken at %s", s, at);
            CHECK(strstr(duet_error(), at) || strstr(duet_error(), across), "%s is not in: %s", at,
                  duet_error());
            CHECK(duet_structure_of(other) == DUET_GENERAL, "it is declared nevertheless");
            ok(duet_set(other, duet_add(other, 1)));
            duet_free(&other);
        }
        duet_free(&m, &turned);
    }
    tap_point("matrices that have their structure are declared, others are not");
}

static void test_refusals(void)
{
    duet_matrix *m = duet_new(DUET_F32, 3, 3), *wide = duet_new(DUET_F32, 3, 4),
                *part = duet_submatrix(wide, 0, 0, 3, 3), *row = duet_row(m, 1);
    CHECK(duet_declare(NULL, DUET_LOWER) == DUET_BAD_ARGUMENT, "NULL");
    CHECK(duet_declare(wide, DUET_LOWER) == DUET_BAD_SHAPE, "3 x 4");
    CHECK(duet_declare(part, DUET_LOWER) == DUET_BAD_ARGUMENT, "a part");
    check_text("view of a part");
    CHECK(duet_declare(m, (duet_structure)10) == DUET_BAD_ARGUMENT, "no structure");
    CHECK(duet_declare(m, DUET_UNIT_LOWER) == DUET_BAD_ARGUMENT, "zeros on the diagonal");
    check_text("element [0, 0] is 0, but m is unit lower triangular, so elements on the diagonal must be 1");
    ok(duet_declare(m, DUET_GENERAL));
    ok(duet_declare(m, DUET_LOWER));
    CHECK(duet_declare(m, DUET_GENERAL) == DUET_BAD_ARGUMENT, "not any more");
    check_text("already declared lower triangular");
    CHECK(duet_structure_of(NULL) == DUET_GENERAL && duet_structure_of(row) == DUET_GENERAL,
          "NULL, or a row");
    CHECK(!duet_update(m) && duet_error_status() == DUET_BAD_ARGUMENT, "duet_update");
    check_text("duet_update(f32[3,3]): the matrix is declared lower triangular");
    CHECK(!duet_overwrite(m) && !duet_overwrite(row), "duet_overwrite");
    CHECK(duet_read(m) != NULL, "%s", duet_error());
    CHECK(duet_random_normal(m, 1, 0, 1) == DUET_BAD_ARGUMENT, "random numbers");
    check_text("declared lower triangular");
    CHECK(duet_set_all({ wide, DUET(1) }, { m, DUET(1) }) == DUET_UNSUPPORTED, "a list");
    check_text("statement 2: duet_set_all(f32[3,3]): the matrix is declared lower triangular");
    ok(duet_record_begin());
    ok(duet_set(m, duet_mul(2, m)));
    CHECK(duet_set(m, 1) == DUET_UNSUPPORTED, "a recording");
    check_text("declared lower triangular");
    duet_recording *r = duet_record_end();
    duet_recording_free(&r);
    duet_free(&m, &wide, &part, &row);
    tap_point("what is refused");
}

/* ---- random formulas ---- */

enum { LEAVES = 4, SIDE = 5 };

/* A formula of n x n elements. special: only operators that a special value may pass. */
static duet_expr grow(rng *gen, duet_matrix *const leaf[], int depth)
{
    if (depth == 0 || rng_below(gen, 6) == 0) return DUET(leaf[rng_below(gen, LEAVES)]);
    const duet_expr x = grow(gen, leaf, depth - 1);
    switch (rng_below(gen, 22)) {
    case 0: return duet_neg(x);
    case 1: return duet_transpose(x);
    case 2: return duet_conj(x);
    case 3: return duet_add(x, grow(gen, leaf, depth - 1));
    case 4: return duet_sub(x, grow(gen, leaf, depth - 1));
    case 5: return duet_mul(x, grow(gen, leaf, depth - 1));
    case 6: return duet_mul(x, 0.5);
    case 7: return duet_div(x, (int)rng_below(gen, 2));
    case 8: return duet_add(x, 2);
    case 9: return duet_sin(x);
    case 10: return duet_exp(x);
    case 11: return duet_mul(x, duet_sum(DUET(leaf[0])));
    case 12: return duet_sub(1, x);
    case 13: return duet_inv(duet_add(x, grow(gen, leaf, 0)));
    case 14: return duet_div(x, grow(gen, leaf, depth - 1));
    case 15: return duet_tril(x, (int)rng_below(gen, 3) - 1);
    case 16: return duet_triu(x, (int)rng_below(gen, 3) - 1);
    case 17: return duet_diag(duet_diagonal_of(x, 0), 0);
    case 18: return duet_mul(x, -0.0);
    case 19: return duet_div(1, x);
    case 20: return duet_sqrt(x);
    default: return duet_matmul(x, grow(gen, leaf, depth - 1));
    }
}

/* special: infinities and NaN among the elements. Products are then not checked: only what is exact. */
static void test_formulas(int trials)
{
    rng gen = rng_new(7);
    int structured = 0;
    for (int t = 0; t < trials; t++) {
        const duet_dtype type = types[rng_below(&gen, BLAS_TYPES)];
        const bool special = t % 3 == 0;
        duet_matrix *leaf[LEAVES];
        for (int k = 0; k < LEAVES; k++) {
            double _Complex e[SIDE * SIDE];
            const duet_structure s = structures[rng_below(&gen, STRUCTURES)];
            draw_elements(&gen, e, SIDE, s, dtype_is_complex(type), 0);
            for (int i = 0; i < SIDE && special; i++) { /* where it breaks no structure */
                const double _Complex x = e[i * SIDE + i];
                if (x != 0 && x != 1) e[i * SIDE + i] = rng_below(&gen, 2) ? INFINITY : NAN;
            }
            leaf[k] = duet_new(type, SIDE, SIDE);
            put(leaf[k], e);
            ok(duet_declare(leaf[k], s));
        }
        const duet_expr e = grow(&gen, leaf, 3);
        formula f;
        ok(formula_of(e, "test", &f));
        formula_properties p = properties_of_node(&f.nodes[f.count - 1]);
        duet_matrix *m = duet_new(type, SIDE, SIDE);
        char *text;
        size_t bytes;
        FILE *out = open_memstream(&text, &bytes);
        names of_matrices = { .count = 0 };
        formula_print(out, &f, f.count - 1, &of_matrices);
        fclose(out);
        duet_status st;
        DUET_ON(place[t % places]) st = duet_set(m, e);
        CHECK(st == DUET_OK || st == DUET_SINGULAR || st == DUET_NOT_FINITE, "%s", duet_error());
        double _Complex *found = st == DUET_OK ? numbers_of(m) : calloc(SIDE * SIDE, sizeof *found);
        if (st != DUET_OK) p = (formula_properties){ 0, 0 };
        if (!has(found, SIDE, p.exact, 0)) { /* the formula is gone by now: its text was kept */
            CHECK(false, "%s: %s", dtypes[type].name, text);
            for (int k = 0; k < LEAVES; k++) duet_print(stdout, leaf[k]);
        }
        CHECK((p.exact & ~p.likely) == 0, "properties %u and %u", p.exact, p.likely);
        CHECK(has(found, SIDE, p.exact, 0), "trial %d: an element has no exact property of %u", t, p.exact);
        bool finite = true;
        for (int k = 0; k < SIDE * SIDE; k++)
            finite &= isfinite(creal(found[k])) && isfinite(cimag(found[k]));
        double most = 0; /* inverses of ill-conditioned matrices are large */
        for (int k = 0; k < SIDE * SIDE && finite; k++) most = fmax(most, cabs(found[k]));
        finite &= most < 1e4;
        const double tolerance = dtypes[type].computed == DUET_F32 || type == DUET_F32 ? 1e-3 : 1e-10;
        if (finite)
            CHECK(has(found, SIDE, p.likely, tolerance), "trial %d: an element has no property of %u", t,
                  p.likely);
        structured += p.likely != 0;
        free(found);
        free(text);
        duet_free(&m);
        for (int k = 0; k < LEAVES; k++) duet_free(&leaf[k]);
    }
    CHECK(structured > trials / 4, "%d of %d formulas had a structure", structured, trials);
    tap_point("random formulas have the structure that their operators give them");
}

/* Is element (i, j) equal to x? */
static bool numbers_are(const duet_matrix *m, int i, int j, double x)
{
    double _Complex *e = numbers_of(m);
    const bool is = e[i * duet_size(m, 1) + j] == x;
    free(e);
    return is;
}

/* ---- formulas that use a structure ---- */

static double distance(const duet_matrix *a, const duet_matrix *b)
{
    double _Complex *x = numbers_of(a), *y = numbers_of(b);
    double most = 0;
    for (int64_t k = 0; k < duet_count(a); k++) {
        const double d = cabs(x[k] - y[k]) / (1 + cabs(y[k]));
        if (!(d <= most)) most = d;
    }
    free(x);
    free(y);
    return most;
}

static char *explained(duet_matrix *m, duet_expr e)
{
    char *text;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    ok(duet_explain(out, m, e));
    fclose(out);
    forget(e);
    return text;
}

enum { PRODUCT, PRODUCT_LEFT, SOLVE, SOLVE_ONE, SOLVE_TURNED, INVERSE, DETERMINANT, LOG_DETERMINANT, FORMS };

static duet_expr form(int which, duet_matrix *a, duet_matrix *b)
{
    switch (which) {
    case PRODUCT: return duet_matmul(a, b);
    case PRODUCT_LEFT: return duet_matmul(duet_transpose(b), a);
    case SOLVE: return duet_solve(a, b);
    case SOLVE_ONE: return duet_solve(a, duet_index(b, DUET_ALL, DUET_AT(0)));
    case SOLVE_TURNED: return duet_solve(duet_transpose(a), b);
    case INVERSE: return duet_inv(a);
    case DETERMINANT: return duet_det(a);
    default: return duet_logdet(a);
    }
}

static void test_uses(int trials)
{
    rng gen = rng_new(9);
    for (int t = 0; t < trials; t++) {
        const int n = 1 + (int)rng_below(&gen, 7), k = 1 + (int)rng_below(&gen, 4), which = t % FORMS;
        const duet_dtype type = types[rng_below(&gen, BLAS_TYPES)];
        duet_structure s = structures[rng_below(&gen, STRUCTURES)];
        const bool singular = s == DUET_STRICTLY_LOWER || s == DUET_STRICTLY_UPPER;
        if (singular && which != PRODUCT && which != PRODUCT_LEFT) s = DUET_DIAGONAL;
        double _Complex e[49];
        draw_elements(&gen, e, n, s, dtype_is_complex(type), which < SOLVE ? 0 : 20);
        duet_matrix *a = duet_new(type, n, n), *plain = duet_new(type, n, n), *b = duet_new(type, n, k);
        put(a, e);
        put(plain, e);
        draw_elements(&gen, e, 7, DUET_GENERAL, dtype_is_complex(type), 0);
        put(b, e);
        DUET_ON(place[t % places])
        {
            ok(duet_declare(a, s));
            duet_matrix *x = duet_eval(form(which, a, b)), *y = duet_eval(form(which, plain, b));
            CHECK(x && y, "%s", duet_error());
            if (x && y) {
                const double d = distance(x, y);
                CHECK(d <= (type == DUET_F32 || type == DUET_C64 ? 1e-4 : 1e-12),
                      "form %d of structure %d, %s, n %d: a distance of %g", which, s, dtypes[type].name, n,
                      d);
                char *text = explained(x, form(which, a, b));
                const bool triangular = s >= DUET_DIAGONAL;
                if (triangular && which >= SOLVE && which <= INVERSE)
                    CHECK(strstr(text, "solve_triangular") != NULL, "%s", text);
                if (s == DUET_DIAGONAL && which <= PRODUCT_LEFT) CHECK(!strstr(text, "matmul"), "%s", text);
                if (triangular && which >= DETERMINANT) CHECK(!strstr(text, "det("), "%s", text);
                free(text);
            }
            duet_free(&x, &y);
        }
        duet_free(&a, &plain, &b);
    }
    tap_point("products, solutions, inverses and determinants use the structure");
}

/* The zeros of a declared matrix have no product with an infinity. */
static void test_zeros(void)
{
    duet_matrix *d = duet_new(DUET_F64, 2, 2), *x = duet_new(DUET_F64, 2, 1);
    double *p = duet_overwrite(d);
    p[0] = 2, p[1] = p[2] = 0, p[3] = 3;
    p = duet_overwrite(x);
    p[0] = INFINITY, p[1] = 1;
    ok(duet_declare(d, DUET_DIAGONAL));
    double y = 0;
    ok(duet_item(duet_index(duet_matmul(d, x), DUET_AT(1), DUET_AT(0)), &y));
    CHECK(y == 3, "%g", y);
    duet_matrix *l = duet_new(DUET_F64, 2, 2);
    ok(duet_declare(l, DUET_LOWER)); /* zeros: singular */
    CHECK(duet_set(x, duet_solve(l, x)) == DUET_SINGULAR, "%s", duet_error());
    CHECK(duet_set(d, duet_inv(l)) == DUET_SINGULAR, "%s", duet_error());
    duet_free(&d, &x, &l);
    tap_point("structural zeros, and singular triangles");
}

/* What a review found: each of these was wrong. */
static void test_found(void)
{
    duet_matrix *d = duet_new(DUET_F64, 2, 2), *x = duet_new(DUET_F64, 2, 2), *m = duet_new(DUET_F64, 2, 2),
                *f = duet_new(DUET_F32, 2, 2), *b = duet_new(DUET_BOOL, 2, 2);
    /* a formula of a matrix that was freed */
    duet_matrix *gone = duet_new(DUET_F64, 2, 2);
    const duet_expr e = duet_neg(gone);
    duet_free(&gone);
    CHECK(duet_set(x, duet_matmul(e, x)) == DUET_FREED, "%s", duet_error());
    /* the inverse of a matrix that is not triangular, with ones on its diagonal */
    put(d, (const double _Complex[]){ 1, 0, 2, 1 });
    put(x, (const double _Complex[]){ 0, 3, 0, 0 });
    ok(duet_declare(d, DUET_UNIT_LOWER));
    ok(duet_declare(x, DUET_STRICTLY_UPPER));
    CHECK(duet_expr_structure(duet_mul(duet_inv(duet_add(d, x)), d)) == DUET_LOWER, "its diagonal is not 1");
    /* a recording that is older than the structure of its destination */
    ok(duet_record_begin());
    ok(duet_set(m, 7));
    duet_recording *r = duet_record_end();
    CHECK(r != NULL, "%s", duet_error());
    ok(duet_set(m, 0));
    ok(duet_declare(m, DUET_LOWER));
    CHECK(duet_replay(r) == DUET_UNSUPPORTED, "it was recorded before");
    check_text("declared with duet_declare after it was recorded");
    duet_recording_free(&r);
    /* numbers that are not finite, or are zero, in the type of the matrix */
    ok(duet_declare(f, DUET_LOWER));
    CHECK(duet_set(f, duet_div(f, 1e-60)) == DUET_BAD_ARGUMENT, "0 / 0");
    ok(duet_set(f, duet_mul(f, 1e39)));
    CHECK(numbers_are(f, 0, 1, 0), "the element above the diagonal is zero");
    /* the sign of zero */
    duet_matrix *s = duet_new(DUET_F64, 2, 2);
    put(s, (const double _Complex[]){ 1, 0, -0.0, 1 });
    ok(duet_declare(s, DUET_SYMMETRIC));
    ok(duet_set(s, duet_div(1, s)));
    double _Complex *found = numbers_of(s);
    CHECK(has(found, 2, SYMMETRIC, 0), "1 / 0 and 1 / -0");
    free(found);
    /* bool matrices */
    ok(duet_declare(b, DUET_SYMMETRIC));
    ok(duet_set(b, duet_matmul(b, duet_transpose(b))));
    /* operators that give the structure, in a list and in a recording */
    ok(duet_set_all({ d, duet_mul(d, d) }, { m, duet_tril(d, 0) }));
    ok(duet_record_begin());
    ok(duet_set(m, duet_triu(duet_tril(d, 0), 0)));
    r = duet_record_end();
    ok(duet_replay(r));
    duet_recording_free(&r);
    CHECK(duet_expr_structure(duet_inv(m)) == DUET_LOWER, "the inverse of a lower triangle");
    /* texts describe what was passed */
    duet_matrix *turned = duet_transposed(m), *row = duet_row(m, 0);
    CHECK(duet_set(turned, 5) == DUET_BAD_ARGUMENT, "a transposed view");
    check_text(
        "element [1, 0] would be 5, but m is upper triangular, so elements below the diagonal must be 0");
    CHECK(duet_set(row, 5) == DUET_BAD_ARGUMENT, "a row");
    check_text("duet_set(m: f64[2]): element [0, 1] of the matrix that m is a view of would be 5, but that "
               "is lower");
    /* a declaration is not explained, an assignment is */
    char *text;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    duet_matrix *new = duet_new(DUET_F16, 2, 2);
    DUET_EXPLAIN(out) ok(duet_declare(new, DUET_LOWER));
    fflush(out);
    CHECK(bytes == 0, "%s", text);
    ok(duet_explain(out, m, 5));
    fclose(out);
    CHECK(strstr(text, "declared lower triangular: its elements are checked") != NULL, "%s", text);
    free(text);
    duet_free(&d, &x, &m, &f, &b, &s, &turned, &row, &new);
    tap_point("what a review found");
}

/* ---- gradients ---- */

static void test_gradients(int trials)
{
    rng gen = rng_new(13);
    for (int t = 0; t < trials; t++) {
        const int n = 2 + (int)rng_below(&gen, 4), which = (int)rng_below(&gen, INVERSE + 1);
        const duet_structure s = t % 2 ? DUET_LOWER : DUET_DIAGONAL;
        double _Complex e[49];
        draw_elements(&gen, e, n, s, false, 15);
        duet_matrix *a = duet_new(DUET_F64, n, n), *plain = duet_new(DUET_F64, n, n),
                    *b = duet_new(DUET_F64, n, 3);
        put(a, e);
        put(plain, e);
        draw_elements(&gen, e, 7, DUET_GENERAL, false, 0);
        put(b, e);
        ok(duet_declare(a, s));
        duet_matrix *x = duet_eval(duet_grad(duet_sum(duet_square(form(which, a, b))), a)),
                    *y = duet_eval(duet_grad(duet_sum(duet_square(form(which, plain, b))), plain));
        CHECK(x && y, "%s", duet_error());
        duet_matrix *kept = duet_eval(s == DUET_LOWER ? duet_tril(y, 0) : duet_triu(duet_tril(y, 0), 0));
        const bool all = s == DUET_LOWER && which < SOLVE; /* a product of a lower triangle reads all of it */
        if (x && y && kept) {
            const double d = distance(x, all ? y : kept);
            CHECK(d <= 1e-11, "form %d of structure %d: a distance of %g", which, s, d);
        }
        duet_free(&a, &plain, &b, &x, &y, &kept);
    }
    tap_point("gradients with respect to structured matrices");
}

/* ---- writes ---- */

/* Writes to random parts of a declared matrix, and the same to a model: the write succeeds exactly if the
 * model keeps the structure, and otherwise changes nothing. */
static void test_writes(int trials)
{
    rng gen = rng_new(17);
    int kept = 0, broken = 0;
    for (int t = 0; t < trials; t++) {
        const int n = 2 + (int)rng_below(&gen, 4);
        const duet_dtype type = types[rng_below(&gen, TYPES)];
        const duet_structure s = structures[rng_below(&gen, STRUCTURES)];
        double _Complex e[25], before[25];
        draw_elements(&gen, e, n, s, dtype_is_complex(type), 0);
        for (int k = 0; k < n * n && type == DUET_U8; k++) e[k] = fabs(creal(e[k]));
        duet_matrix *m = duet_new(type, n, n);
        put(m, e);
        const int i = (int)rng_below(&gen, n), j = (int)rng_below(&gen, n), value = (int)rng_below(&gen, 3);
        DUET_ON(place[t % places])
        {
            ok(duet_declare(m, s));
            memcpy(before, e, sizeof e);
            duet_status st;
            const duet_expr number = duet_cast(value, type);
            duet_matrix *view = NULL;
            switch (rng_below(&gen, 4)) {
            case 0: /* an element */
                view = duet_submatrix(m, i, j, 1, 1);
                e[i * n + j] = value;
                break;
            case 1: /* a row */
                view = duet_row(m, i);
                for (int k = 0; k < n; k++) e[i * n + k] = value;
                break;
            case 2: /* the diagonal */
                view = duet_diagonal(m, 0);
                for (int k = 0; k < n; k++) e[k * n + k] = value;
                break;
            default: /* all, through the transpose */
                view = duet_transposed(m);
                for (int k = 0; k < n * n; k++) e[k] = value;
            }
            st = duet_set(view, number);
            const bool keeps = has(e, n, structure_properties(s), 0);
            CHECK(st == (keeps ? DUET_OK : DUET_BAD_ARGUMENT),
                  "structure %d of %s, [%d, %d] = %d: status %d, %s", s, dtypes[type].name, i, j, value, st,
                  st ? duet_error() : "");
            if (st == DUET_BAD_ARGUMENT) {
                check_text("would be");
                const duet_structure of = duet_structure_of(view);
                check_text(structure_name(of ? of : duet_structure_of(m)));
            }
            double _Complex *now = numbers_of(m);
            const double _Complex *wanted = keeps ? e : before;
            for (int k = 0; k < n * n; k++)
                CHECK(same(now[k], wanted[k]), "element %d is %g%+gi, not %g%+gi", k, creal(now[k]),
                      cimag(now[k]), creal(wanted[k]), cimag(wanted[k]));
            free(now);
            duet_free(&view);
            *(keeps ? &kept : &broken) += 1;
        }
        duet_free(&m);
    }
    CHECK(kept > trials / 20 && broken > trials / 20, "%d writes kept it and %d would break it", kept,
          broken);
    tap_point("writes to parts of structured matrices");
}

/* Formulas that have the structure but for rounding. */
static void test_imposed(int trials)
{
    rng gen = rng_new(19);
    for (int t = 0; t < trials; t++) {
        const int n = 2 + (int)rng_below(&gen, 60), k = 1 + (int)rng_below(&gen, 60), which = t % 5;
        const duet_dtype type = types[rng_below(&gen, BLAS_TYPES)];
        duet_matrix *x = duet_new(type, n, k), *lower = duet_new(type, n, n), *to = duet_new(type, n, n),
                    *plain = duet_new(type, n, n);
        double _Complex *e = malloc(sizeof *e * 64 * 64);
        draw_elements(&gen, e, 63, DUET_GENERAL, dtype_is_complex(type), 0);
        for (int i = 0; i < 63 * 63; i++)
            e[i] = e[i] * (0.1 + i % 7 * 0.03) * complex_of(1, dtype_is_complex(type) ? 0.3 : 0);
        put(x, e);
        draw_elements(&gen, e, n, DUET_UNIT_LOWER, dtype_is_complex(type), 0);
        for (int i = 0; i < n * n; i++)
            if (e[i] != 1) e[i] /= 40;
        put(lower, e);
        free(e);
        duet_structure s = DUET_SYMMETRIC;
        DUET_ON(place[t % places])
        {
            ok(duet_declare(lower, DUET_UNIT_LOWER));
            for (int declared = 0; declared < 2; declared++) {
                duet_expr f;
                switch (which) {
                case 0: f = duet_matmul(x, duet_transpose(x)); break;
                case 1: f = duet_matmul(x, duet_conj(duet_transpose(x))), s = DUET_HERMITIAN; break;
                case 2: f = duet_matmul(lower, lower), s = DUET_UNIT_LOWER; break;
                case 3: f = duet_inv(lower), s = DUET_UNIT_LOWER; break;
                default: f = duet_matmul(duet_transpose(lower), duet_transpose(lower)), s = DUET_UPPER;
                }
                if (!declared) {
                    ok(duet_set(plain, f));
                    continue;
                }
                if (s == DUET_UNIT_LOWER)
                    ok(duet_set(to, duet_diag(duet_add(duet_mul(duet_diagonal_of(to, 0), 0), 1), 0)));
                ok(duet_declare(to, s));
                ok(duet_set(to, f));
            }
            double _Complex *found = numbers_of(to);
            CHECK(has(found, n, structure_properties(s), 0), "form %d of %s, %d x %d: not exact", which,
                  dtypes[type].name, n, k);
            const double d = distance(to, plain);
            CHECK(d <= (type == DUET_F32 || type == DUET_C64 ? 1e-4 : 1e-12), "form %d: a distance of %g",
                  which, d);
            free(found);
        }
        duet_free(&x, &lower, &to, &plain);
    }
    tap_point("formulas that have the structure but for rounding");
}

/* Compares products by trmm with those of the same elements without a declaration. `other` may have an
 * infinity, by which the zeros of the triangle are multiplied, too. */
static void check_triangle(rng *gen, int trial)
{
    const duet_dtype type = trial & 1 ? DUET_F32 : DUET_F64;
    const duet_structure structure = trial & 2 ? DUET_LOWER : DUET_UPPER;
    const bool left = trial & 4, turned = trial & 8, apart = trial & 16, infinite = trial % 5 == 0;
    const int64_t n = 128 + (int64_t)rng_below(gen, 40),
                  k = (trial % 3 ? 128 : 2) + (int64_t)rng_below(gen, 9);
    duet_matrix *t = duet_new(type, n, n), *plain = duet_new(type, n, n),
                *other = duet_new(type, (left ? n : k) * 2, left ? k : n), *x, *y;
    ok(duet_random_normal(plain, (uint64_t)trial, 0, 1));
    ok(duet_set(t, structure == DUET_LOWER ? duet_tril(plain, 0) : duet_triu(plain, 0)));
    ok(duet_random_normal(other, (uint64_t)trial + 1000, 0, 1));
    duet_matrix *row = duet_row(other, 1);
    if (infinite) ok(duet_set(row, INFINITY));
    ok(duet_set(plain, t));
    ok(duet_declare(t, structure));
    duet_matrix *part = duet_slice(other, 0, left ? n : k);
    for (int which = 0; which < 2; which++) {
        duet_matrix *m = which ? plain : t;
        const duet_expr e = turned ? duet_transpose(m) : duet_of_matrix(m);
        const duet_expr o = apart ? duet_of_matrix(part) : duet_mul(part, 1);
        duet_matrix *r = NULL;
        DUET_ON(DUET_CPU) r = duet_eval(left ? duet_mul(duet_matmul(e, o), 0.5) : duet_matmul(o, e));
        *(which ? &y : &x) = r;
        CHECK(r != NULL, "%s", duet_error());
    }
    if (x && y) {
        double differences = NAN;
        const duet_expr same =
            duet_logical_or(duet_equal(x, y), duet_logical_and(duet_isnan(x), duet_isnan(y)));
        const duet_expr near = duet_less_equal(duet_abs(duet_sub(x, y)), type == DUET_F32 ? 1e-3 : 1e-11);
        ok(duet_item(duet_sum(duet_cast(duet_logical_not(duet_logical_or(same, near)), DUET_F64)),
                     &differences));
        CHECK(differences == 0, "trial %d: %g elements differ", trial, differences);
    }
    duet_free(&x, &y, &row, &part, &t, &plain, &other);
}

static void test_triangles(int trials)
{
    rng gen = rng_new(77);
    for (int t = 0; t < trials; t++) check_triangle(&gen, t);
    tap_point("products of triangles");
}

int main(int argc, char **argv)
{
    const int trials = trial_count(argc, argv, 60, 400);
    places = list_places(place);
    test_declare(trials);
    test_refusals();
    test_formulas(10 * trials);
    test_uses(4 * trials);
    test_zeros();
    test_found();
    test_gradients(trials);
    test_writes(4 * trials);
    test_imposed(trials);
    test_triangles(trials);
    return tap_end();
}
