/* test_sparse.c - sparse matrices: lists of elements in and out, formulas with them against the same with
 * the dense matrix, matrices made from others, gradients, files, and errors. Most elements are small
 * integers, for which all sums are exact: then results must be equal. */
#include "common.h"
#include "dtype.h"
#include "numbers_of.h"
#include <complex.h>
#ifdef FAKE_CUDA
#include "fake_cuda.h"
#endif
#include <math.h>

static duet_place place[2];
static int places;

static void ok(duet_status s) { CHECK(s == DUET_OK, "%s", duet_error()); }

static const duet_dtype types[] = { DUET_F32, DUET_F64, DUET_C64, DUET_C128 };
enum { TYPES = 4, MOST = 24 };

static double _Complex complex_of(double re, double im)
{
    double _Complex z;
    memcpy(&z, (const double[]){ re, im }, sizeof z);
    return z;
}

/* ---- a reference: the dense elements, and which of them are stored ---- */

typedef struct reference {
    int rows, columns, count;
    duet_dtype type;
    double _Complex e[MOST * MOST];
    bool stored[MOST * MOST];
} reference;

static double _Complex draw(rng *gen, duet_dtype type)
{
    const double re = (int)rng_below(gen, 9) - 4, im = (int)rng_below(gen, 9) - 4;
    return dtype_is_complex(type) ? complex_of(re, im) : re;
}

/* About one in `rarely` elements is stored; some rows have none. */
static void draw_reference(rng *gen, reference *r, duet_dtype type, int rows, int columns)
{
    const int rarely = 1 + (int)rng_below(gen, 6);
    memset(r, 0, sizeof *r);
    r->rows = rows;
    r->columns = columns;
    r->type = type;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns && i % 5 != 3; j++)
            if (rng_below(gen, rarely) == 0) {
                r->e[i * columns + j] = draw(gen, type);
                r->stored[i * columns + j] = true;
                r->count++;
            }
}

static void put_number(duet_dtype type, void *p, int64_t i, double _Complex x)
{
    switch (type) {
    case DUET_F32: ((float *)p)[i] = (float)creal(x); break;
    case DUET_F64: ((double *)p)[i] = creal(x); break;
    case DUET_C64:
        ((float *)p)[2 * i] = (float)creal(x);
        ((float *)p)[2 * i + 1] = (float)cimag(x);
        break;
    default: memcpy((double *)p + 2 * i, &x, sizeof x);
    }
}

/* Written as INTEGERS(1, 2), NUMBERS(1.5) and so on. */
static duet_matrix *array_of(const void *p, duet_dtype type, int rows, int columns)
{
    const int64_t size[] = { rows, columns };
    return (duet_from_array_shape)(p, type, columns ? 2 : 1, size);
}
#define INTEGERS(...)  array_of((const int64_t[]){ __VA_ARGS__ }, DUET_I64, RANK_OF(__VA_ARGS__), 0)
#define SQUARE(n, ...) array_of((const double[]){ __VA_ARGS__ }, DUET_F64, n, n)

/* The lists of the elements, from the last one to the first, some of them in two parts. */
static duet_sparse *from_lists(rng *gen, const reference *r, duet_dtype index)
{
    const int most = 2 * r->count;
    int n = 0;
    duet_matrix *row = duet_new(DUET_I64, most), *column = duet_new(DUET_I64, most),
                *values = duet_new(DUET_C128, most);
    int64_t *i = duet_overwrite(row), *j = duet_overwrite(column);
    double _Complex *v = duet_overwrite(values);
    for (int k = r->rows * r->columns; k-- > 0;) {
        if (!r->stored[k]) continue;
        const int parts = 1 + (rng_below(gen, 4) == 0);
        for (int p = 0; p < parts; p++, n++) {
            i[n] = k / r->columns;
            j[n] = k % r->columns;
            v[n] = parts == 1 ? r->e[k] : p ? r->e[k] - 7 : 7;
        }
    }
    const bool real = !dtype_is_complex(r->type);
    duet_matrix *a = duet_eval(duet_cast(duet_range(row, 0, 0, n, 1), index)),
                *b = duet_eval(duet_cast(duet_range(column, 0, 0, n, 1), index)),
                *c = duet_eval(duet_cast(real ? duet_real(duet_range(values, 0, 0, n, 1))
                                              : duet_range(values, 0, 0, n, 1),
                                         r->type));
    duet_sparse *s = duet_sparse_from_coo(r->rows, r->columns, a, b, c, DUET_DUPLICATES_SUM);
    CHECK(s != NULL, "%s", duet_error());
    duet_free(&row, &column, &values, &a, &b, &c);
    return s;
}

/* Does s store these elements? */
static void check_sparse(const duet_sparse *s, const reference *r, const char *what)
{
    duet_matrix *row, *column, *values;
    if (!s) {
        CHECK(false, "%s: %s", what, duet_error());
        return;
    }
    CHECK(duet_sparse_rows(s) == r->rows && duet_sparse_columns(s) == r->columns &&
              duet_sparse_count(s) == r->count && duet_sparse_type(s) == r->type,
          "%s: %lld x %lld with %lld elements, not %d x %d with %d", what, (long long)duet_sparse_rows(s),
          (long long)duet_sparse_columns(s), (long long)duet_sparse_count(s), r->rows, r->columns, r->count);
    if (duet_sparse_count(s) != r->count) return;
    ok(duet_sparse_to_coo(s, &row, &column, &values));
    double _Complex *i = numbers_of(row), *j = numbers_of(column), *v = numbers_of(values);
    int n = 0;
    for (int k = 0; k < r->rows * r->columns; k++) {
        if (!r->stored[k]) continue;
        CHECK(i[n] == k / r->columns && j[n] == k % r->columns && v[n] == r->e[k],
              "%s: element %d is %g%+gi at %g, %g, not %g%+gi at %d, %d", what, n, creal(v[n]), cimag(v[n]),
              creal(i[n]), creal(j[n]), creal(r->e[k]), cimag(r->e[k]), k / r->columns, k % r->columns);
        n++;
    }
    free(i);
    free(j);
    free(v);
    duet_free(&row, &column, &values);
}

static duet_matrix *dense_of(const reference *r)
{
    duet_matrix *m = duet_new(r->type, r->rows, r->columns);
    void *p = duet_overwrite(m);
    for (int k = 0; k < r->rows * r->columns; k++) put_number(r->type, p, k, r->e[k]);
    return m;
}

static duet_matrix *random_dense(rng *gen, duet_dtype type, int rows, int columns)
{
    duet_matrix *m = columns < 0 ? duet_new(type, rows) : duet_new(type, rows, columns);
    void *p = duet_overwrite(m);
    for (int64_t k = 0; k < duet_count(m); k++) put_number(type, p, k, draw(gen, type));
    return m;
}

/* ---- lists ---- */

static void test_lists(int trials)
{
    rng gen = rng_new(1);
    static const duet_dtype indices[] = { DUET_I8, DUET_I32, DUET_I64, DUET_U16, DUET_U64 };
    for (int t = 0; t < trials; t++) {
        reference r, other;
        draw_reference(&gen, &r, types[t % TYPES], 1 + (int)rng_below(&gen, MOST),
                       1 + (int)rng_below(&gen, MOST));
        duet_sparse *s = from_lists(&gen, &r, indices[rng_below(&gen, 5)]);
        check_sparse(s, &r, "from_coo");
        duet_matrix *offsets, *column, *values, *dense = dense_of(&r);
        ok(duet_sparse_to_csr(s, &offsets, &column, &values));
        duet_sparse *again = duet_sparse_from_csr(r.rows, r.columns, offsets, column, values);
        check_sparse(again, &r, "from_csr");
        duet_sparse_free(&again);
        again = duet_sparse_copy(s);
        check_sparse(again, &r, "copy");
        ok(duet_set(duet_sparse_values(again), 0));
        check_sparse(s, &r, "the original of a copy");
        duet_sparse_free(&again);
        duet_sparse *turned = duet_sparse_transposed(s), *back = duet_sparse_transposed(turned);
        check_sparse(back, &r, "transposed twice");
        memset(&other, 0, sizeof other);
        other.rows = r.columns;
        other.columns = r.rows;
        other.type = r.type;
        other.count = r.count;
        for (int i = 0; i < r.rows; i++)
            for (int j = 0; j < r.columns; j++) {
                other.e[j * r.rows + i] = r.e[i * r.columns + j];
                other.stored[j * r.rows + i] = r.stored[i * r.columns + j];
            }
        check_sparse(turned, &other, "transposed");
        duet_sparse_free(&turned);
        duet_sparse_free(&back);
        const int from = (int)rng_below(&gen, r.rows + 1),
                  to = from + (int)rng_below(&gen, r.rows - from + 1);
        other = r;
        other.rows = to - from;
        other.count = 0;
        memmove(other.e, r.e + from * r.columns, sizeof *r.e * (size_t)(other.rows * r.columns));
        memmove(other.stored, r.stored + from * r.columns, (size_t)(other.rows * r.columns));
        for (int k = 0; k < other.rows * r.columns; k++) other.count += other.stored[k];
        duet_sparse *part = duet_sparse_slice(s, from, to);
        check_sparse(part, &other, "slice");
        duet_sparse_free(&part);
        for (int k = 0; k < r.rows * r.columns; k++) r.stored[k] = r.e[k] != 0;
        r.count = 0;
        for (int k = 0; k < r.rows * r.columns; k++) r.count += r.stored[k];
        duet_sparse *nonzero = duet_sparse_from_dense(dense);
        check_sparse(nonzero, &r, "from_dense");
        duet_sparse_free(&nonzero);
        duet_sparse_free(&s);
        duet_free(&offsets, &column, &values, &dense);
    }
    tap_point("lists of elements, rows, transposes");
}

/* More columns than i32 has, in a few elements: the pattern is i64, and nothing of that size is allocated. */
static void test_many_columns(void)
{
    const int64_t columns = 5000000000;
    duet_matrix *row = INTEGERS(1, 0, 1, 1, 0), *column = INTEGERS(4999999999, 7, 3, 4999999999, 4000000000),
                *values = duet_arange(DUET_F64, 1, 6, 1), *r = NULL, *c = NULL, *v = NULL;
    duet_sparse *s = duet_sparse_from_coo(2, columns, row, column, values, DUET_DUPLICATES_SUM), *t = NULL;
    CHECK(s && duet_sparse_count(s) == 4 && duet_type(duet_sparse_pattern(s)) == DUET_I64, "%s",
          duet_error());
    if (s) {
        t = duet_sparse_add(s, s);
        CHECK(t != NULL, "%s", duet_error());
        duet_sparse *same = duet_sparse_copy(s), *part = duet_sparse_slice(s, 1, 2),
                    *both = duet_sparse_multiply(s, s);
        CHECK(same && part && both && duet_sparse_count(part) == 2 && duet_sparse_count(both) == 4, "%s",
              duet_error());
        ok(duet_sparse_to_coo(t, &r, &c, &v));
        static const int64_t places_of[] = { 7, 4000000000, 3, 4999999999 };
        static const double doubled[] = { 4, 10, 6, 10 };
        CHECK(!memcmp(duet_read(c), places_of, sizeof places_of), "the columns");
        CHECK(!memcmp(duet_read(v), doubled, sizeof doubled), "the values");
        duet_sparse_free(&same);
        duet_sparse_free(&part);
        duet_sparse_free(&both);
    }
    duet_sparse_free(&s);
    duet_sparse_free(&t);
    duet_free(&row, &column, &values, &r, &c, &v);
    tap_point("many columns");
}

/* ---- formulas ---- */

/* Evaluates both and compares them. Spends both. */
static void equal(duet_place where, duet_expr found, duet_expr wanted, const char *what)
{
    duet_matrix *a = NULL, *b = NULL;
    DUET_ON(where) a = duet_eval(found);
    CHECK(a != NULL, "%s on the %s: %s", what, place_name(where), duet_error());
    DUET_ON(DUET_CPU) b = duet_eval(wanted);
    CHECK(b != NULL, "%s: %s", what, duet_error());
    if (!a || !b) return;
    bool same =
        duet_count(a) == duet_count(b) && duet_rank(a) == duet_rank(b) && duet_type(a) == duet_type(b);
    double _Complex *x = numbers_of(a), *y = numbers_of(b);
    int64_t k = 0;
    for (; same && k < duet_count(a); k++)
        if (!(x[k] == y[k])) same = false;
    CHECK(same, "%s on the %s, %s: element %lld is %g%+gi, not %g%+gi", what, place_name(where),
          dtypes[duet_type(b)].name, (long long)k - 1, k ? creal(x[k - 1]) : 0, k ? cimag(x[k - 1]) : 0,
          k ? creal(y[k - 1]) : 0, k ? cimag(y[k - 1]) : 0);
    free(x);
    free(y);
    duet_free(&a, &b);
}

/* x, or the same elements in another layout. */
static duet_matrix *arranged(rng *gen, duet_matrix *x)
{
    duet_matrix *m = NULL;
    if (duet_rank(x) == 2 && rng_below(gen, 3) == 0) {
        duet_matrix *wide = duet_new(duet_type(x), duet_size(x, 1), 2 * duet_size(x, 0));
        duet_matrix *turned = duet_transposed(wide),
                    *part = duet_indexed(turned, DUET_STEP(0, DUET_OPEN, 2), DUET_ALL);
        ok(duet_set(wide, 99));
        ok(duet_set(part, x));
        duet_free(&wide, &turned, &x);
        m = part;
    }
    return m ? m : x;
}

static void test_formulas(int trials)
{
    rng gen = rng_new(2);
    static const int widths[] = { -1, 1, 2, 3, 7, 8, 16, 17, 24 };
    for (int t = 0; t < trials; t++) {
        reference r;
        const duet_dtype type = types[t % TYPES];
        const duet_place where = place[t / TYPES % places];
        draw_reference(&gen, &r, type, 1 + (int)rng_below(&gen, MOST), 1 + (int)rng_below(&gen, MOST));
        duet_sparse *s = from_lists(&gen, &r, DUET_I32);
        duet_matrix *d = dense_of(&r), *values = duet_sparse_values(s);
        const int width = widths[rng_below(&gen, 9)];
        duet_matrix *x = arranged(&gen, random_dense(&gen, type, r.columns, width)),
                    *y = arranged(&gen, random_dense(&gen, type, r.rows, width));
        equal(where, duet_sparse_matmul(s, x), duet_matmul(d, x), "matmul");
        equal(where, duet_sparse_transposed_matmul(s, y), duet_matmul(duet_transpose(d), y),
              "transposed_matmul");
        equal(where, duet_sparse_adjoint_matmul(s, y),
              duet_matmul(dtype_is_complex(type) ? duet_conj(duet_transpose(d)) : duet_transpose(d), y),
              "adjoint_matmul");
        equal(where, duet_sparse_to_dense(s), duet_of_matrix(d), "to_dense");
        equal(where, duet_csr_dense(values, duet_sparse_pattern(s), r.columns, 1), duet_transpose(d),
              "a transposed csr_dense");
        equal(where, duet_sparse_sum(s, 0), duet_sum(d, 0), "the sums of columns");
        equal(where, duet_sparse_sum(s, 1), duet_sum(d, 1), "the sums of rows");
        duet_matrix *at = duet_eval(duet_cast(duet_sparse_pattern(s), DUET_I64)), *row = NULL, *column = NULL;
        ok(duet_sparse_to_coo(s, &row, &column, NULL));
        duet_matrix *other = arranged(&gen, random_dense(&gen, type, r.rows, r.columns));
        const duet_expr places_of =
            duet_add(duet_mul(duet_cast(row, DUET_I64), r.columns), duet_cast(column, DUET_I64));
        duet_matrix *flat = duet_eval(places_of);
        equal(where, duet_sparse_take(s, other), duet_take(duet_reshape(other, -1), flat, 0), "take");
        const int inner = 1 + (int)rng_below(&gen, 9);
        duet_matrix *a = arranged(&gen, random_dense(&gen, type, r.rows, inner)),
                    *b = arranged(&gen, random_dense(&gen, type, inner, r.columns));
        equal(where, duet_sparse_sddmm(s, a, b), duet_take(duet_reshape(duet_matmul(a, b), -1), flat, 0),
              "sddmm");
        /* with a pattern of i64, which is not that of a duet_sparse */
        equal(where, duet_csr_matmul(values, at, x, r.columns, 0), duet_matmul(d, x), "csr_matmul with i64");
        equal(where, duet_csr_matmul(values, at, y, r.columns, 1), duet_matmul(duet_transpose(d), y),
              "a transposed csr_matmul with i64");
        equal(where, duet_csr_sddmm(a, at, duet_transpose(b)),
              duet_take(duet_reshape(duet_matmul(a, b), -1), flat, 0), "csr_sddmm with i64");
        /* formulas as operands */
        equal(where,
              duet_add(duet_csr_matmul(duet_mul(values, 2), duet_sparse_pattern(s), duet_add(x, 1), r.columns,
                                       0),
                       3),
              duet_add(duet_matmul(duet_mul(d, 2), duet_add(x, 1)), 3), "a product of formulas");
        duet_sparse *scaled = duet_sparse_with_values(s, duet_mul(values, duet_sparse_take(s, other)));
        equal(where, duet_sparse_to_dense(scaled), duet_mul(d, other), "with_values");
        duet_sparse_free(&scaled);
        duet_sparse_free(&s);
        duet_free(&d, &x, &y, &at, &row, &column, &other, &flat, &a, &b);
    }
    tap_point("formulas against the same with the dense matrix");
}

/* ---- matrices made from others ---- */

static void test_combined(int trials)
{
    rng gen = rng_new(3);
    for (int t = 0; t < trials; t++) {
        reference a, b, c, r;
        const duet_dtype type = types[t % TYPES];
        const int m = 1 + (int)rng_below(&gen, MOST), k = 1 + (int)rng_below(&gen, MOST),
                  n = 1 + (int)rng_below(&gen, MOST);
        draw_reference(&gen, &a, type, m, k);
        draw_reference(&gen, &b, type, m, k);
        draw_reference(&gen, &c, type, k, n);
        duet_sparse *x = from_lists(&gen, &a, DUET_I32), *y = from_lists(&gen, &b, DUET_I32),
                    *z = from_lists(&gen, &c, DUET_I32);
        r = a;
        r.count = 0;
        for (int i = 0; i < m * k; i++) {
            r.e[i] = a.e[i] + b.e[i];
            r.count += r.stored[i] = a.stored[i] || b.stored[i];
        }
        duet_sparse *sum = duet_sparse_add(x, y);
        check_sparse(sum, &r, "add");
        r.count = 0;
        for (int i = 0; i < m * k; i++) {
            r.e[i] = a.e[i] * b.e[i];
            r.count += r.stored[i] = a.stored[i] && b.stored[i];
        }
        duet_sparse *common = duet_sparse_multiply(x, y);
        check_sparse(common, &r, "multiply");
        memset(&r, 0, sizeof r);
        r.rows = m;
        r.columns = n;
        r.type = type;
        for (int i = 0; i < m; i++)
            for (int j = 0; j < n; j++) {
                for (int l = 0; l < k; l++) {
                    r.e[i * n + j] += a.e[i * k + l] * c.e[l * n + j];
                    r.stored[i * n + j] |= a.stored[i * k + l] && c.stored[l * n + j];
                }
                r.count += r.stored[i * n + j];
            }
        duet_sparse *product = duet_sparse_product(x, z);
        check_sparse(product, &r, "product");
        duet_sparse_free(&sum);
        duet_sparse_free(&common);
        duet_sparse_free(&product);
        duet_sparse_free(&x);
        duet_sparse_free(&y);
        duet_sparse_free(&z);
    }
    tap_point("sums, products element by element, products");
}

/* A row that is the sum of two, whose columns alternate: few and many of them, near and far apart. */
static void test_order_of_columns(void)
{
    static const int counts[] = { 2, 6, 20, 40, 300 }, apart[] = { 1, 75000 };
    for (int t = 0; t < 10; t++) {
        const int n = counts[t % 5], step = apart[t / 5];
        duet_matrix *row = duet_new(DUET_I64, n), *column = duet_new(DUET_I64, n),
                    *one = duet_ones(DUET_F64, n);
        int64_t *i = duet_overwrite(row), *j = duet_overwrite(column);
        for (int k = 0; k < n; k++) {
            i[k] = k % 2;
            j[k] = 3 + (int64_t)k * step;
        }
        duet_sparse *lines =
            duet_sparse_from_coo(2, 10 + (int64_t)n * step, row, column, one, DUET_DUPLICATES_REFUSE);
        duet_matrix *both = duet_ones(DUET_F64, 1, 2), *found = NULL;
        duet_sparse *sum = duet_sparse_from_dense(both), *made = duet_sparse_product(sum, lines);
        ok(duet_sparse_to_csr(made, NULL, &found, NULL));
        const int32_t *list = found ? duet_read(found) : NULL;
        CHECK(found && duet_count(found) == n, "%d columns", n);
        for (int k = 0; k < n && list; k++) CHECK(list[k] == j[k], "column %d of %d is %d", k, n, list[k]);
        duet_sparse_free(&lines);
        duet_sparse_free(&sum);
        duet_sparse_free(&made);
        duet_free(&row, &column, &one, &both, &found);
    }
    tap_point("the order of columns in a product");
}

/* ---- gradients ---- */

/* The gradients of the sum of the squares of a product, against those of the dense product. */
static void test_gradients(int trials)
{
    rng gen = rng_new(4);
    for (int t = 0; t < trials; t++) {
        reference r;
        const duet_dtype type = types[t % 2];
        const duet_place where = place[t / 2 % places];
        draw_reference(&gen, &r, type, 1 + (int)rng_below(&gen, 9), 1 + (int)rng_below(&gen, 9));
        duet_sparse *s = from_lists(&gen, &r, DUET_I32);
        const int width = t % 3 == 0 ? -1 : t % 5 + 1;
        const bool turned = t % 4 >= 2;
        duet_matrix *d = dense_of(&r), *x = random_dense(&gen, type, turned ? r.rows : r.columns, width);
        const duet_expr y = turned ? duet_sparse_transposed_matmul(s, x) : duet_sparse_matmul(s, x),
                        z = turned ? duet_matmul(duet_transpose(d), x) : duet_matmul(d, x);
        duet_expr loss = duet_hold(duet_sum(duet_mul(y, y))), same = duet_hold(duet_sum(duet_mul(z, z)));
        equal(where, duet_grad(loss, x), duet_grad(same, x),
              "the gradient of a product by its dense operand");
        equal(where, duet_grad(loss, duet_sparse_values(s)), duet_sparse_take(s, duet_grad(same, d)),
              "the gradient of a product by its values");
        forget(loss);
        forget(same);
        duet_sparse_free(&s);
        duet_free(&d, &x);
    }
    tap_point("gradients against those of dense products");
}

/* ---- systems ---- */

static void put_strong_diagonal(reference *r)
{
    for (int i = 0; i < r->rows; i++) {
        double _Complex *e = &r->e[i * r->columns + i];
        r->count += !r->stored[i * r->columns + i];
        r->stored[i * r->columns + i] = true;
        *e = 4 * r->rows + i % 3;
    }
}

/* |b - a x| of real or complex matrices, relative to |a| |x|. */
static double residual(const duet_expr b, const duet_expr ax, const duet_matrix *a, const duet_matrix *x)
{
    double rest = NAN, scale = NAN;
    ok(duet_item(duet_max(duet_abs(duet_sub(b, ax))), &rest));
    ok(duet_item(duet_mul(duet_mul(duet_max(duet_abs(a)), duet_max(duet_abs(x))), (double)duet_size(a, 0)),
                 &scale));
    return scale > 0 ? rest / scale : rest;
}

static duet_matrix *solved(const duet_sparse *s, const duet_matrix *b, int transposed)
{
    return duet_eval(transposed ? duet_csr_solve(duet_sparse_values(s), duet_sparse_pattern(s), b, 1)
                                : duet_sparse_solve(s, b));
}

/* A GPU without cuDSS does not solve: then Duet chooses the machine. */
static void test_systems(int trials)
{
    rng gen = rng_new(5);
    bool can = true;
    for (int t = 0; t < trials; t++) {
        reference r;
        const duet_dtype type = types[t % TYPES];
        const double eps = type == DUET_F32 || type == DUET_C64 ? 0x1p-23 : 0x1p-52;
        const duet_place where = place[t % places];
        const int n = 1 + (int)rng_below(&gen, MOST), width = t % 3 ? t % 5 + 1 : -1;
        draw_reference(&gen, &r, type, n, n);
        put_strong_diagonal(&r);
        duet_sparse *s = from_lists(&gen, &r, DUET_I32);
        duet_matrix *d = dense_of(&r), *b = arranged(&gen, random_dense(&gen, type, n, width)), *x = NULL;
        const bool lower = t & 1, unit = t & 2, turned = t & 4;
        DUET_ON(where)
        x = duet_eval(duet_sparse_solve_triangular(s, b, .lower = lower, .unit = unit, .transposed = turned));
        CHECK(x != NULL, "%s", duet_error());
        if (x) {
            duet_matrix *triangle =
                duet_eval(lower ? duet_tril(d, unit ? -1 : 0) : duet_triu(d, unit ? 1 : 0));
            if (unit)
                ok(duet_set(triangle,
                            duet_add(triangle, duet_cast(duet_diag(duet_broadcast(1.0, n), 0), type))));
            const duet_expr ax = turned ? duet_matmul(duet_transpose(triangle), x) : duet_matmul(triangle, x);
            const double e = residual(duet_of_matrix(b), ax, triangle, x);
            CHECK(e <= 8 * eps, "solve_triangular, %s, lower %d, unit %d, transposed %d: a residual of %g",
                  dtypes[type].name, lower, unit, turned, e);
            duet_free(&triangle);
        }
        duet_free(&x);
        for (int transposed = 0; transposed < 2 && can; transposed++) {
            DUET_ON(where) x = solved(s, b, transposed);
            if (!x && duet_error_status() == DUET_UNSUPPORTED && where == DUET_GPU)
                x = solved(s, b, transposed);
            if (!x && duet_error_status() == DUET_UNSUPPORTED) {
                printf("# %s\n", duet_error());
                can = false;
                break;
            }
            CHECK(x != NULL, "%s", duet_error());
            if (!x) continue;
            const duet_expr ax = transposed ? duet_matmul(duet_transpose(d), x) : duet_matmul(d, x);
            const double e = residual(duet_of_matrix(b), ax, d, x);
            CHECK(e <= 8 * eps, "solve, %s, transposed %d: a residual of %g", dtypes[type].name, transposed,
                  e);
            duet_free(&x);
        }
        duet_sparse_free(&s);
        duet_free(&d, &b);
    }
    tap_point("systems");
}

#ifdef FAKE_CUDA
/* Does the explanation of e on the GPU have these words? */
static void is_by(duet_matrix *to, duet_expr e, const char *words)
{
    char text[4096] = "";
    FILE *f = fmemopen(text, sizeof text, "w");
    DUET_ON(DUET_GPU) ok(duet_explain(f, to, e));
    fclose(f);
    CHECK(strstr(text, words) != NULL, "\"%s\" is not in: %s", words, text);
}

/* Which libraries solve, and the refusal where there is none. */
static void test_solvers(void)
{
    duet_matrix *d = SQUARE(3, 2, 1, 0, 0, 4, 0, 1, 0, 8), *b = duet_ones(DUET_F64, 3), *x,
                *other = duet_zeros(DUET_F64, 3);
    duet_sparse *s = duet_sparse_from_dense(d);
    is_by(other, duet_sparse_solve(s, b), "by cuDSS");
    is_by(other, duet_sparse_solve_triangular(s, b), "by cuSPARSE");
    const uint64_t before = fake_count().launches;
    DUET_ON(DUET_GPU) x = duet_eval(duet_sparse_solve(s, b));
    CHECK(x && fake_count().launches > before, "%s", duet_error());
    duet_free(&x);
    fake_without("cudss", "no cuDSS");
    const duet_expr columns = duet_reshape(b, 3, 1); /* other sizes, for which there is no plan */
    DUET_ON(DUET_GPU)
    CHECK(duet_set(other, duet_reshape(duet_sparse_solve(s, columns), 3)) == DUET_UNSUPPORTED &&
              strstr(duet_error(), "no cuDSS"),
          "%s", duet_error());
    fake_without("cudss", NULL);
    duet_sparse_free(&s);
    duet_free(&d, &b, &other);
    tap_point("the libraries of systems");
}
#endif

static void check_text(duet_status s, duet_status wanted, const char *words)
{
    CHECK(s == wanted && strstr(duet_error(), words) != NULL, "%s (%d), and \"%s\" is not in: %s",
          duet_status_text(s), s, words, duet_error());
}
#define REFUSED(call, status, words) check_text(call, status, words)
#define NO_SPARSE(call, status, words)                                                                       \
    do {                                                                                                     \
        duet_sparse *none_ = call;                                                                           \
        CHECK(!none_, "it was made");                                                                        \
        check_text(duet_error_status(), status, words);                                                      \
        duet_sparse_free(&none_);                                                                            \
    } while (0)

static void check_singular(void)
{
    duet_matrix *d = SQUARE(3, 1, 2, 0, 0, 0, 3, 0, 4, 0), *b = duet_ones(DUET_F64, 3),
                *x = duet_full(DUET_F64, 7, 3);
    duet_sparse *s = duet_sparse_from_dense(d);
    REFUSED(duet_set(x, duet_sparse_solve_triangular(s, b)), DUET_SINGULAR,
            "element [1, 1] is 0 or not stored");
    ok(duet_set(x, duet_sparse_solve_triangular(s, b, .unit = 1)));
    ok(duet_set(x, 7));

    duet_sparse_free(&s);
    duet_matrix *zeros = SQUARE(3, 1, 2, 0, 2, 4, 0, 0, 0, 1);
    s = duet_sparse_from_dense(zeros);
    const duet_status status = duet_set(x, duet_sparse_solve(s, b));
    if (status != DUET_UNSUPPORTED) {
        check_text(status, DUET_SINGULAR, "is 0");
        ok(duet_set(duet_sparse_values(s), NAN));
        REFUSED(duet_set(x, duet_sparse_solve(s, b)), DUET_NOT_FINITE, "element of the matrix is not finite");
    }
    const double *p = duet_read(x);
    CHECK(p[0] == 7 && p[1] == 7 && p[2] == 7, "a destination was changed");
    duet_sparse_free(&s);
    duet_free(&d, &b, &x, &zeros);
}

static void test_singular(void)
{
    for (int p = 0; p < places; p++) DUET_ON(place[p]) check_singular();
    tap_point("singular matrices");
}

/* Patterns without a permutation: an empty row or column, or three rows that share two columns. */
static void test_unmatched(void)
{
    for (int trial = 0; trial < 48; trial++) {
        const duet_dtype t = types[trial % TYPES];
        const int n = 3 + trial % 11, how = trial / 4 % 3;
        duet_matrix *d = duet_full(DUET_F64, 0, n, n), *b = duet_ones(t, n), *x = duet_full(t, 7, n);
        double *p = duet_update_f64(d);
        for (int i = 0; i < n * n && p; i++) {
            const int r = i / n, c = i % n;
            p[i] = r == c || (r + c) % 3 == 0 ? 1 + i % 5 : 0;
            if (how == 0 && r == n / 2) p[i] = 0;
            if (how == 1 && c == n / 2) p[i] = 0;
            if (how == 2 && r < 3 && c > 1) p[i] = 0;
        }
        duet_matrix *own = duet_eval(duet_cast(d, t));
        duet_sparse *s = duet_sparse_from_dense(own);
        duet_status status = DUET_OK;
        DUET_ON(place[trial % places]) status = duet_set(x, duet_sparse_solve(s, b));
        CHECK(status == DUET_SINGULAR || status == DUET_UNSUPPORTED, "trial %d: %s", trial, duet_error());
        duet_matrix *same = duet_eval(duet_all(duet_equal(x, 7)));
        bool kept = false;
        CHECK(same && duet_item(same, &kept) == DUET_OK && kept, "trial %d: a destination was changed",
              trial);
        duet_sparse_free(&s);
        duet_free(&d, &b, &x, &own, &same);
    }
    tap_point("singular patterns");
}

/* ---- files ---- */

static duet_sparse *read_text(const char *text)
{
    FILE *f = tmpfile();
    fputs(text, f);
    rewind(f);
    duet_sparse *s = duet_sparse_read_market(f);
    fclose(f);
    return s;
}

static void check_file(const char *text, int rows, int columns, int count, duet_dtype type,
                       const double _Complex *e)
{
    reference r = { .rows = rows, .columns = columns, .count = count, .type = type };
    for (int k = 0; k < rows * columns; k++) {
        r.e[k] = e[k];
        r.stored[k] = e[k] != 0;
    }
    duet_sparse *s = read_text(text);
    check_sparse(s, &r, text);
    duet_sparse_free(&s);
}

static void test_files(int trials)
{
    rng gen = rng_new(6);
    for (int t = 0; t < trials; t++) {
        reference r;
        draw_reference(&gen, &r, types[t % TYPES], 1 + (int)rng_below(&gen, MOST),
                       1 + (int)rng_below(&gen, MOST));
        if (r.type == DUET_F32) r.type = DUET_F64;
        if (r.type == DUET_C64) r.type = DUET_C128;
        for (int k = 0; k < r.rows * r.columns; k++) r.e[k] /= 3;
        duet_sparse *s = from_lists(&gen, &r, DUET_I32);
        duet_matrix *fresh = duet_new(r.type, r.count);
        void *p = duet_overwrite(fresh);
        for (int k = 0, n = 0; k < r.rows * r.columns; k++)
            if (r.stored[k]) put_number(r.type, p, n++, r.e[k]);
        ok(duet_set(duet_sparse_values(s), fresh));
        ok(duet_sparse_save_market("sparse.mtx", s));
        duet_sparse *back = duet_sparse_load_market("sparse.mtx");
        check_sparse(back, &r, "a file");
        duet_sparse_free(&back);
        duet_sparse_free(&s);
        duet_free(&fresh);
    }
    remove("sparse.mtx");
#define BANNER "%%MatrixMarket matrix coordinate "
    check_file(BANNER "real general\n% words\n2 3 3\n2 3 1.5\n1 1 -2\n2 3 1\n", 2, 3, 2, DUET_F64,
               (const double _Complex[]){ -2, 0, 0, 0, 0, 2.5 });
    check_file(BANNER "pattern symmetric\n2 2 2\n1 1\n2 1\n", 2, 2, 3, DUET_F64,
               (const double _Complex[]){ 1, 1, 1, 0 });
    check_file(BANNER "integer skew-symmetric\n2 2 1\n2 1 3\n", 2, 2, 2, DUET_F64,
               (const double _Complex[]){ 0, -3, 3, 0 });
    check_file(BANNER "complex hermitian\n2 2 2\n1 1 2 0\n2 1 3 4\n", 2, 2, 3, DUET_C128,
               (const double _Complex[]){ 2, complex_of(3, -4), complex_of(3, 4), 0 });
    NO_SPARSE(read_text("%%MatrixMarket matrix array real general\n1 1\n1\n"), DUET_UNSUPPORTED,
              "which duet_read_market reads");
    NO_SPARSE(read_text(BANNER "real general\n2 3 1\n3 1 1\n"), DUET_BAD_FILE,
              "element 1 is in row 3 and column 1 of a 2 x 3 matrix");
    NO_SPARSE(read_text(BANNER "real general\n2 3 2\n1 1 1\n"), DUET_BAD_FILE, "truncated");
    NO_SPARSE(read_text(BANNER "real general\n2 3 99999999\n1 1 1\n"), DUET_BAD_FILE,
              "too short for its sizes");
    NO_SPARSE(read_text(BANNER "real general\n900000000000 3 1\n1 1 1\n"), DUET_BAD_FILE,
              "900000000000 rows are too many for 1 elements");
    NO_SPARSE(read_text(BANNER "real symmetric\n2 3 1\n1 1 1\n"), DUET_BAD_FILE, "must be square");
    NO_SPARSE(read_text(BANNER "quaternion general\n1 1 0\n"), DUET_UNSUPPORTED, "quaternion");
    NO_SPARSE(read_text(BANNER "pattern skew-symmetric\n1 1 0\n"), DUET_UNSUPPORTED, "skew-symmetric");
    NO_SPARSE(read_text("%%MatrixMarket tensor coordinate real general\n1 1 0\n"), DUET_BAD_FILE,
              "not a Matrix Market file");
    NO_SPARSE(duet_sparse_load_market("no such file.mtx"), DUET_IO_ERROR, "no such file.mtx");
    tap_point("files");
}

/* ---- errors ---- */

static void test_bad_lists(void)
{
    duet_matrix *good = INTEGERS(0, 1, 1), *column = INTEGERS(2, 0, 3), *out = INTEGERS(2, 0, 4),
                *negative = INTEGERS(0, -1, 1), *twice = INTEGERS(2, 0, 0), *values = duet_ones(DUET_F64, 3),
                *two = duet_ones(DUET_F64, 2), *whole = duet_ones(DUET_I32, 3),
                *square = duet_ones(DUET_F64, 3, 1), *offsets = INTEGERS(0, 1, 3),
                *falling = INTEGERS(0, 2, 1), *late = INTEGERS(1, 1, 3), *short_end = INTEGERS(0, 1, 2),
                *unsorted = INTEGERS(2, 3, 0);
    duet_matrix *freed = INTEGERS(1, 2, 3), *dead = freed;
    duet_free(&freed);
#define COO(r, c, v) duet_sparse_from_coo(2, 4, r, c, v, DUET_DUPLICATES_REFUSE)
#define CSR(o, c, v) duet_sparse_from_csr(2, 4, o, c, v)
    NO_SPARSE(COO(NULL, column, values), DUET_BAD_ARGUMENT, "row must not be NULL");
    NO_SPARSE(COO(dead, column, values), DUET_BAD_ARGUMENT, "freed");
    NO_SPARSE(COO(good, column, square), DUET_BAD_SHAPE, "values must have one axis");
    NO_SPARSE(COO(good, column, two), DUET_BAD_SHAPE, "values must have 3 elements, not 2");
    NO_SPARSE(COO(good, column, whole), DUET_BAD_TYPE, "values must be f32, f64, c64 or c128, not i32");
    NO_SPARSE(COO(values, column, values), DUET_BAD_TYPE, "row must have integer elements, not f64");
    NO_SPARSE(COO(good, out, values), DUET_BAD_ARGUMENT, "element 2 is in row 1 and column 4");
    NO_SPARSE(COO(negative, column, values), DUET_BAD_ARGUMENT, "element 1 is in row -1");
    NO_SPARSE(COO(good, twice, values), DUET_BAD_ARGUMENT,
              "elements 1 and 2 are at the same place, row 1 and column 0");
    NO_SPARSE(duet_sparse_from_coo(-1, 4, good, column, values, DUET_DUPLICATES_SUM), DUET_BAD_ARGUMENT,
              "must not be negative");
    NO_SPARSE(duet_sparse_from_coo(INT64_MAX, 4, good, column, values, DUET_DUPLICATES_SUM), DUET_BAD_SHAPE,
              "too many for memory");
    NO_SPARSE(duet_sparse_from_coo(2, 4, good, column, values, (duet_duplicates)7), DUET_BAD_ARGUMENT,
              "duplicates (7)");
    NO_SPARSE(CSR(offsets, unsorted, values), DUET_BAD_ARGUMENT, "in row 1 column 0 comes behind column 3");
    NO_SPARSE(CSR(offsets, twice, values), DUET_BAD_ARGUMENT, "row 1 has column 0 twice");
    NO_SPARSE(CSR(offsets, out, values), DUET_BAD_ARGUMENT,
              "element 2, in row 1, has column 4, which is out of bounds");
    NO_SPARSE(CSR(falling, column, values), DUET_BAD_ARGUMENT,
              "row offset 2 (1) must not be less than the one before (2)");
    NO_SPARSE(CSR(late, column, values), DUET_BAD_ARGUMENT, "first row offset must be 0, not 1");
    NO_SPARSE(CSR(short_end, column, values), DUET_BAD_ARGUMENT, "must be the number of elements, 3, not 2");
    NO_SPARSE(duet_sparse_from_csr(3, 4, offsets, column, values), DUET_BAD_SHAPE,
              "offsets must have 4 elements, not 3");
    NO_SPARSE(duet_sparse_from_dense(NULL), DUET_BAD_ARGUMENT, "duet_sparse_from_dense");
    NO_SPARSE(duet_sparse_from_dense(values), DUET_BAD_SHAPE, "m must have 2 axes");
    duet_free(&good, &column, &out, &negative, &twice, &values, &two, &whole, &square, &offsets, &falling,
              &late, &short_end, &unsorted);
    tap_point("lists that are wrong");
}

static void test_bad_calls(void)
{
    reference r;
    rng gen = rng_new(8);
    draw_reference(&gen, &r, DUET_F64, 3, 4);
    r.e[0] = 1;
    r.count += !r.stored[0];
    r.stored[0] = true;
    duet_sparse *s = from_lists(&gen, &r, DUET_I32), *turned = duet_sparse_transposed(s);
    duet_matrix *x = duet_ones(DUET_F64, 7), *four = duet_ones(DUET_F32, 4), *to = duet_full(DUET_F64, 5, 3),
                *d = duet_ones(DUET_F64, 3, 5), *values = duet_sparse_values(s);
    REFUSED(duet_set(to, duet_sparse_matmul(s, x)), DUET_BAD_SHAPE,
            "x: f64[7]): x must have 4 rows, as s has columns, not 7");
    REFUSED(duet_set(to, duet_sparse_matmul(s, four)), DUET_BAD_TYPE, "duet_sparse_matmul");
    REFUSED(duet_set(to, duet_sparse_matmul(NULL, x)), DUET_BAD_ARGUMENT,
            "duet_sparse_matmul: the sparse matrix must not be NULL");
    REFUSED(duet_set(to, duet_sparse_transposed_matmul(s, x)), DUET_BAD_SHAPE, "x must have 3 rows");
    REFUSED(duet_set(to, duet_sparse_sddmm(s, d, d)), DUET_BAD_SHAPE,
            "a and b must be 3 x k and k x 4, not 3 x 5 and 3 x 5");
    REFUSED(duet_set(to, duet_sparse_take(s, d)), DUET_BAD_SHAPE, "x: f64[3,5]): x must have the sizes of s");
    REFUSED(duet_set(to, duet_sparse_sum(s, 2)), DUET_BAD_ARGUMENT, "axis (2)");
    REFUSED(duet_set(to, duet_sparse_solve_triangular(s, x)), DUET_BAD_SHAPE, "duet_sparse_solve_triangular");
    NO_SPARSE(duet_sparse_slice(s, 2, 4), DUET_BAD_ARGUMENT,
              "from (2) and to (4) must satisfy 0 <= from <= to <= 3");
    NO_SPARSE(duet_sparse_add(s, turned), DUET_BAD_SHAPE, "a and b must have the same sizes");
    NO_SPARSE(duet_sparse_product(s, s), DUET_BAD_SHAPE, "the columns of a (4) must match the rows of b (3)");
    NO_SPARSE(duet_sparse_with_values(s, x), DUET_BAD_SHAPE, "e must have one axis with");
    NO_SPARSE(duet_sparse_with_values(s, duet_add(x, four)), DUET_BAD_SHAPE, "duet_add");
    NO_SPARSE(duet_sparse_copy(NULL), DUET_BAD_ARGUMENT, "duet_sparse_copy");
    REFUSED(duet_set((duet_matrix *)duet_sparse_pattern(s), 0), DUET_BAD_ARGUMENT,
            "the pattern of a sparse matrix");
    /* patterns that no duet_sparse has checked */
    duet_matrix *pattern = duet_copy(duet_sparse_pattern(s)), *wide = duet_ones(DUET_F64, 4);
    int32_t *p = duet_update(pattern);
    const int32_t kept = p[4];
    p[4] = 1000000;
    for (int k = 0; k < places; k++)
        REFUSED(duet_set_on(DUET_CPU, to, duet_csr_matmul(values, pattern, wide, 4, 0)), DUET_BAD_ARGUMENT,
                "duet_csr_matmul: element 0, in row 0, has column 1000000");
    p = duet_update(pattern);
    p[4] = kept;
    p[0] = 1;
    REFUSED(duet_set_on(DUET_CPU, to, duet_csr_matmul(values, pattern, wide, 4, 0)), DUET_BAD_ARGUMENT,
            "first row offset");
    /* the right pattern, with the wrong number of columns or of values */
    REFUSED(duet_set_on(DUET_CPU, to,
                        duet_csr_matmul(values, duet_sparse_pattern(s),
                                        duet_broadcast(duet_cast(1, DUET_F64), 1), 1, 0)),
            DUET_BAD_ARGUMENT, "duet_csr_matmul");
    duet_matrix *fewer = duet_ones(DUET_F64, (int)r.count - 1), *longer = duet_full(DUET_F64, 5, 4);
    REFUSED(duet_set_on(DUET_CPU, longer, duet_csr_matmul(fewer, duet_sparse_pattern(s), wide, 4, 0)),
            DUET_BAD_ARGUMENT, "duet_csr_matmul");
    const double *q = duet_read(to);
    CHECK(q[0] == 5 && q[1] == 5 && q[2] == 5, "a destination was changed");
    /* values that the user has resized */
    ok(duet_resize(duet_sparse_values(turned), 2));
    NO_SPARSE(duet_sparse_copy(turned), DUET_BAD_SHAPE, "not f64[2], to which they were resized");
    REFUSED(duet_set(to, duet_sparse_sum(turned, 0)), DUET_BAD_SHAPE,
            "not f64[2], to which they were resized");
    duet_sparse_free(NULL);
    CHECK(duet_sparse_rows(NULL) == 0 && duet_sparse_values(NULL) == NULL &&
              duet_sparse_pattern(NULL) == NULL,
          "NULL");
    duet_sparse_free(&s);
    duet_sparse_free(&turned);
    CHECK(s == NULL, "not NULL");
    duet_free(&x, &four, &to, &d, &pattern, &wide, &fewer, &longer);
    tap_point("calls that are wrong");
}

/* ---- uses ---- */

/* Large enough for several threads; real numbers, so that the order of sums counts. */
static void test_threads(void)
{
    enum { ROWS = 40000, COLUMNS = 3000, EACH = 9 };
    rng gen = rng_new(9);
    duet_matrix *row = duet_new(DUET_I32, ROWS * EACH), *column = duet_new(DUET_I32, ROWS * EACH),
                *values = duet_new(DUET_F64, ROWS * EACH), *x = duet_new(DUET_F64, COLUMNS, 3),
                *y = duet_new(DUET_F64, ROWS, 3);
    int32_t *i = duet_overwrite(row), *j = duet_overwrite(column);
    for (int k = 0; k < ROWS * EACH; k++) {
        i[k] = (int32_t)(rng_below(&gen, 8) ? k / EACH : 7);
        j[k] = (int32_t)rng_below(&gen, COLUMNS);
    }
    ok(duet_random_normal(values, 5, 0, 1));
    ok(duet_random_normal(x, 5, 0, 1));
    ok(duet_random_normal(y, 5, 0, 1));
    duet_sparse *s = duet_sparse_from_coo(ROWS, COLUMNS, row, column, values, DUET_DUPLICATES_SUM);
    CHECK(s != NULL, "%s", duet_error());
    duet_matrix *first[4] = { NULL };
    for (int threads = 1; threads <= 4 && s; threads++) DUET_THREADS(threads) DUET_ON(DUET_CPU)
        {
            duet_matrix *made[] = { duet_eval(duet_sparse_matmul(s, x)),
                                    duet_eval(duet_sparse_transposed_matmul(s, y)),
                                    duet_eval(duet_sparse_sddmm(s, y, duet_transpose(x))),
                                    duet_eval(duet_sparse_sum(s, 0)) };
            for (int k = 0; k < 4; k++) {
                CHECK(made[k] != NULL, "%s", duet_error());
                if (threads == 1) first[k] = made[k];
                else {
                    CHECK(!memcmp(duet_read(made[k]), duet_read(first[k]),
                                  (size_t)duet_count(made[k]) * sizeof(double)),
                          "result %d differs with %d threads", k, threads);
                    duet_free(&made[k]);
                }
            }
        }
    duet_free(&first[0], &first[1], &first[2], &first[3]);
    duet_sparse_free(&s);
    duet_free(&row, &column, &values, &x, &y);
    tap_point("the same bits with any number of threads");
}

static void test_uses(void)
{
    duet_matrix *d = array_of((const float[]){ 1, 0, 2, 0, 3, 0 }, DUET_F32, 2, 3),
                *x = duet_ones(DUET_F32, 3), *y = duet_new(DUET_F32, 2);
    duet_sparse *s = duet_sparse_from_dense(d);
    ok(duet_record_begin());
    ok(duet_set(y, duet_sparse_matmul(s, x)));
    ok(duet_set(x, duet_add(x, 1)));
    duet_recording *r = duet_record_end();
    CHECK(r != NULL, "%s", duet_error());
    ok(duet_replay(r));
    ok(duet_set(duet_sparse_values(s), duet_mul(duet_sparse_values(s), 10)));
    ok(duet_replay(r));
    const float *p = duet_read(y);
    CHECK(p[0] == 90 && p[1] == 90, "a replay has %g and %g", p[0], p[1]);
    duet_recording_free(&r);
    char text[4000] = "";
    FILE *f = fmemopen(text, sizeof text - 1, "w");
    ok(duet_explain(f, y, duet_sparse_matmul(s, x)));
    fclose(f);
    CHECK(strstr(text, "csr_matmul") && !strstr(text, "csr_dense"), "%s", text);
    f = fmemopen(text, sizeof text - 1, "w");
    ok(duet_print_expr(f, duet_sparse_matmul(s, x)));
    fclose(f);
    CHECK(strstr(text, "duet_csr_matmul("), "%s", text);
    /* a formula that outlives its matrix */
    const duet_expr late = duet_sparse_matmul(s, x);
    duet_sparse_free(&s);
    REFUSED(duet_set(y, late), DUET_FREED, "freed");
    /* empty matrices */
    duet_matrix *none = duet_new(DUET_I32, 0), *nothing = duet_new(DUET_F32, 0);
    s = duet_sparse_from_coo(2, 3, none, none, nothing, DUET_DUPLICATES_REFUSE);
    CHECK(s != NULL, "%s", duet_error());
    ok(duet_set(y, duet_sparse_matmul(s, x)));
    p = duet_read(y);
    CHECK(p[0] == 0 && p[1] == 0, "a product with nothing");
    duet_sparse *square = duet_sparse_product(s, NULL);
    CHECK(!square, "a product with NULL");
    duet_sparse_free(&s);
    s = duet_sparse_from_coo(0, 3, none, none, nothing, DUET_DUPLICATES_REFUSE);
    duet_matrix *empty = duet_eval(duet_sparse_matmul(s, x));
    CHECK(empty && duet_count(empty) == 0, "%s", duet_error());
    duet_sparse_free(&s);
    duet_free(&d, &x, &y, &none, &nothing, &empty);
    tap_point("recordings, explanations, empty matrices");
}

int main(int argc, char **argv)
{
    const int trials = trial_count(argc, argv, 60, 400);
    places = list_places(place);
    test_lists(trials);
    test_many_columns();
    test_formulas(2 * trials);
#ifdef FAKE_CUDA
    fake_without("cusparse", "no cuSPARSE");
    test_formulas(trials);
    fake_without("cusparse", NULL);
    test_solvers();
#endif
    test_combined(trials);
    test_order_of_columns();
    test_gradients(trials);
    test_systems(2 * trials);
    test_singular();
    test_unmatched();
    test_files(trials);
    test_bad_lists();
    test_bad_calls();
    test_threads();
    test_uses();
    return tap_end();
}
