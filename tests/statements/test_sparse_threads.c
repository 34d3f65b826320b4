/* test_sparse_threads.c - transposes, sums and products of large sparse matrices: against simple loops, and
 * the same bits with any number of threads. */
#include "common.h"
#include "dtype.h"
#include <omp.h>

static void ok(duet_status s) { CHECK(s == DUET_OK, "%s", duet_error()); }

/* ---- matrices ---- */

typedef enum kind { UNIFORM, SKEWED, BAND, FAR, KINDS } kind;
static const char *const kind_names[] = { "uniform", "skewed", "band", "far apart" };

/* The column of an element of row r. */
static int64_t draw_column(rng *gen, kind k, int64_t r, int64_t rows, int64_t columns, int i)
{
    const int64_t any = rng_below(gen, columns);
    switch (k) {
    case SKEWED: return any * rng_below(gen, 1000) / 1000;
    case BAND: return (r * columns / rows + i) % columns;
    case FAR: return any / 1000 * 1000;
    default: return any;
    }
}

/* Some rows are empty, some have one element, and one has many. */
static duet_sparse *draw_matrix(rng *gen, kind k, duet_dtype type, int64_t rows, int64_t columns, int each)
{
    const int64_t room = rows * each + 500;
    duet_matrix *row = duet_new(DUET_I64, room), *column = duet_new(DUET_I64, room);
    int64_t *i = duet_overwrite(row), *j = duet_overwrite(column), n = 0;
    for (int64_t r = 0; r < rows; r++) {
        const int count = r == rows / 3 ? 500 : r % 7 == 3 ? 0 : r % 7 == 5 ? 1 : each;
        for (int e = 0; e < count; e++) {
            i[n] = r;
            j[n++] = draw_column(gen, k, r, rows, columns, e);
        }
    }
    duet_matrix *values = duet_new(type, n), *re = duet_new(DUET_F64, n), *im = duet_new(DUET_F64, n),
                *a = duet_eval(duet_range(row, 0, 0, n, 1)), *b = duet_eval(duet_range(column, 0, 0, n, 1));
    ok(duet_random_normal(re, 3, 0, 1));
    ok(duet_random_normal(im, 4, 0, 1));
    ok(duet_set(values,
                dtype_is_complex(type) ? duet_cast(duet_complex(re, im), type) : duet_cast(re, type)));
    duet_sparse *s = duet_sparse_from_coo(rows, columns, a, b, values, DUET_DUPLICATES_SUM);
    CHECK(s != NULL, "%s", duet_error());
    duet_free(&row, &column, &values, &re, &im, &a, &b);
    return s;
}

/* ---- simple loops ---- */

/* The lists of a matrix of f64. */
typedef struct lists {
    duet_matrix *of[3];
    const int32_t *offset, *column;
    const double *value;
} lists;

static lists open_lists(const duet_sparse *s)
{
    lists l = { .of = { NULL } };
    ok(duet_sparse_to_csr(s, &l.of[0], &l.of[1], &l.of[2]));
    l.offset = duet_read(l.of[0]);
    l.column = duet_read(l.of[1]);
    l.value = duet_read(l.of[2]);
    return l;
}

static void close_lists(lists *l) { duet_free(&l->of[0], &l->of[1], &l->of[2]); }

/* A dense row of a result: the sums, and how many terms each has. */
typedef struct dense_row {
    double *sum;
    int *terms;
} dense_row;

static void add_term(dense_row *w, int64_t column, double x)
{
    w->sum[column] = w->terms[column] ? w->sum[column] + x : x;
    w->terms[column]++;
}

/* Row r of made has the sums that have at least `terms` terms. */
static void check_row(const lists *made, int64_t r, int64_t columns, dense_row *w, int terms,
                      const char *what)
{
    int64_t k = made->offset[r];
    for (int64_t c = 0; c < columns; c++) {
        if (w->terms[c] >= terms) {
            const bool same = k < made->offset[r + 1] && made->column[k] == c &&
                              !memcmp(&made->value[k], &w->sum[c], sizeof(double));
            CHECK(same, "%s: element %lld, %lld", what, (long long)r, (long long)c);
            if (!same) return;
            k++;
        }
        w->terms[c] = 0;
    }
    CHECK(k == made->offset[r + 1], "%s: row %lld has other elements", what, (long long)r);
}

static dense_row new_row(int64_t columns)
{
    return (dense_row){ calloc((size_t)columns, sizeof(double)), calloc((size_t)columns, sizeof(int)) };
}

static void check_product(const duet_sparse *a, const duet_sparse *b, const duet_sparse *made, kind k)
{
    lists x = open_lists(a), y = open_lists(b), z = open_lists(made);
    dense_row w = new_row(duet_sparse_columns(b));
    for (int64_t r = 0; r < duet_sparse_rows(a); r++) {
        if (k == FAR && r % 50) continue; /* rows are long */
        for (int i = x.offset[r]; i < x.offset[r + 1]; i++)
            for (int j = y.offset[x.column[i]]; j < y.offset[x.column[i] + 1]; j++)
                add_term(&w, y.column[j], x.value[i] * y.value[j]);
        check_row(&z, r, duet_sparse_columns(b), &w, 1, kind_names[k]);
    }
    free(w.sum);
    free(w.terms);
    close_lists(&x);
    close_lists(&y);
    close_lists(&z);
}

static void check_combined(const duet_sparse *a, const duet_sparse *b, const duet_sparse *sum,
                           const duet_sparse *common)
{
    lists x = open_lists(a), y = open_lists(b), s = open_lists(sum), c = open_lists(common);
    const int64_t columns = duet_sparse_columns(a);
    dense_row w = new_row(columns), v = new_row(columns);
    for (int64_t r = 0; r < duet_sparse_rows(a); r++) {
        for (int i = x.offset[r]; i < x.offset[r + 1]; i++) {
            add_term(&w, x.column[i], x.value[i]);
            add_term(&v, x.column[i], x.value[i]);
        }
        for (int j = y.offset[r]; j < y.offset[r + 1]; j++) {
            add_term(&w, y.column[j], y.value[j]);
            v.sum[y.column[j]] *= y.value[j];
            v.terms[y.column[j]]++;
        }
        check_row(&s, r, columns, &w, 1, "sum");
        check_row(&c, r, columns, &v, 2, "product of elements");
    }
    free(w.sum);
    free(w.terms);
    free(v.sum);
    free(v.terms);
    close_lists(&x);
    close_lists(&y);
    close_lists(&s);
    close_lists(&c);
}

static void check_transposed(const duet_sparse *a, const duet_sparse *made)
{
    lists x = open_lists(a), y = open_lists(made);
    int *next = calloc((size_t)duet_sparse_columns(a) + 1, sizeof *next);
    memcpy(next, y.offset, ((size_t)duet_sparse_columns(a) + 1) * sizeof *next);
    for (int64_t r = 0; r < duet_sparse_rows(a); r++)
        for (int k = x.offset[r]; k < x.offset[r + 1]; k++) {
            const int at = next[x.column[k]]++;
            CHECK(y.column[at] == r && y.value[at] == x.value[k], "transposed: row %lld", (long long)r);
        }
    for (int64_t c = 0; c < duet_sparse_columns(a); c++)
        CHECK(next[c] == y.offset[c + 1], "transposed: column %lld", (long long)c);
    free(next);
    close_lists(&x);
    close_lists(&y);
}

/* ---- tests ---- */

static bool same_elements(const duet_matrix *a, const duet_matrix *b)
{
    return duet_type(a) == duet_type(b) && duet_count(a) == duet_count(b) &&
           !memcmp(duet_read(a), duet_read(b), (size_t)duet_count(a) * dtypes[duet_type(a)].bytes);
}

static bool same_matrix(const duet_sparse *a, const duet_sparse *b)
{
    return same_elements(duet_sparse_pattern(a), duet_sparse_pattern(b)) &&
           same_elements(duet_sparse_values(a), duet_sparse_values(b));
}

enum { RESULTS = 6 };

static void make_all(const duet_sparse *a, const duet_sparse *b, const duet_sparse *c, const duet_sparse *d,
                     duet_sparse *made[])
{
    made[0] = duet_sparse_product(a, c);
    made[1] = duet_sparse_add(a, b);
    made[2] = duet_sparse_multiply(a, b);
    made[3] = duet_sparse_transposed(a);
    made[4] = duet_sparse_add(a, a);
    made[5] = duet_sparse_product(a, d);
    for (int k = 0; k < RESULTS; k++) CHECK(made[k] != NULL, "%s", duet_error());
}

static void test_kind(kind k, duet_dtype type)
{
    rng gen = rng_new(17 + (int)k);
    const int64_t columns = k == FAR ? 900000 : 700;
    duet_sparse *a = draw_matrix(&gen, k == FAR ? UNIFORM : k, type, 3000, 700, 12),
                *b = draw_matrix(&gen, k == FAR ? UNIFORM : k, type, 3000, 700, 12),
                *c = draw_matrix(&gen, k, type, 700, columns, 9), /* many products for each element */
                    *d = draw_matrix(&gen, k, type, 700, columns, 2), *first[RESULTS], *made[RESULTS];
    for (int threads = 1; threads <= 5; threads++) DUET_THREADS(threads)
        {
            make_all(a, b, c, d, threads == 1 ? first : made);
            for (int i = 0; i < RESULTS && threads > 1; i++) {
                CHECK(same_matrix(made[i], first[i]), "%s: result %d differs with %d threads", kind_names[k],
                      i, threads);
                duet_sparse_free(&made[i]);
            }
        }
    if (type == DUET_F64) {
        check_product(a, c, first[0], k);
        check_product(a, d, first[5], k);
        check_combined(a, b, first[1], first[2]);
        check_transposed(a, first[3]);
        duet_sparse *copy = duet_sparse_transposed(first[3]), *twice = duet_sparse_add(a, copy);
        CHECK(copy && twice && same_matrix(twice, first[4]), "a matrix with an equal pattern");
        duet_sparse_free(&copy);
        duet_sparse_free(&twice);
    }
    for (int i = 0; i < RESULTS; i++) duet_sparse_free(&first[i]);
    duet_sparse_free(&a);
    duet_sparse_free(&b);
    duet_sparse_free(&c);
    duet_sparse_free(&d);
}

/* Rows of the result without elements, where elements are counted first. */
static void test_empty_rows(void)
{
    duet_matrix *ones = duet_full(DUET_F64, 1, 30, 30), *some = duet_full(DUET_F64, 1, 30, 30);
    double *p = duet_overwrite(ones), *q = duet_overwrite(some);
    for (int i = 0; i < 900; i++) {
        p[i] = i / 30 % 3 || i % 30 < 10; /* every third row has 10 elements */
        q[i] = i / 30 >= 10;              /* and these columns meet rows without any */
    }
    duet_sparse *a = duet_sparse_from_dense(ones), *b = duet_sparse_from_dense(some),
                *made = duet_sparse_product(a, b);
    CHECK(made != NULL, "%s", duet_error());
    if (made) check_product(a, b, made, UNIFORM);
    CHECK(made && duet_sparse_count(made) == 600, "%lld elements", (long long)duet_sparse_count(made));
    duet_sparse_free(&a);
    duet_sparse_free(&b);
    duet_sparse_free(&made);
    duet_free(&ones, &some);
    tap_point("a product with empty rows");
}

/* Fewer products than columns. */
static void test_few(void)
{
    rng gen = rng_new(5);
    duet_sparse *a = draw_matrix(&gen, UNIFORM, DUET_F64, 40, 700, 3),
                *b = draw_matrix(&gen, UNIFORM, DUET_F64, 700, 500000, 2), *made = duet_sparse_product(a, b);
    CHECK(made != NULL, "%s", duet_error());
    if (made) check_product(a, b, made, UNIFORM);
    duet_sparse_free(&a);
    duet_sparse_free(&b);
    duet_sparse_free(&made);
    tap_point("fewer products than columns");
}

int main(void)
{
    static const duet_dtype types[] = { DUET_F64, DUET_F32, DUET_C64, DUET_C128 };
    omp_set_num_threads(5);
    for (int t = 0; t < 4; t++)
        for (int k = 0; k < KINDS; k++) test_kind((kind)k, types[t]);
    tap_point("simple loops, and any number of threads");
    test_empty_rows();
    test_few();
    return tap_end();
}
