/* sparse_product.c - the product of two sparse matrices, row by row (Gustavson 1978), on the host. A row of the result
 * is the sum of rows of b, added in a dense row of sums. A bit for each column says which sums are in use. */
#include "dtype.h"
#include "min_max.h"
#include "sparse.h"
#include "statement.h"
#include "status.h"
#include <stdlib.h>
#include <string.h>

/* The row in the making. */
typedef struct product_row {
    void *sum;        /* of each column */
    uint64_t *used;   /* a bit for each column; all 0 between rows */
    int64_t *columns; /* those in use; in ascending order after sort_columns */
    int64_t count, low, high;
} product_row;

static inline bool take_column(product_row *row, int64_t column)
{
    uint64_t *word = &row->used[column / 64];
    const uint64_t bit = (uint64_t)1 << column % 64;
    const bool is_new = !(*word & bit);
    if (is_new) {
        *word |= bit;
        row->columns[row->count++] = column;
        row->low = smaller(row->low, column);
        row->high = larger(row->high, column);
    }
    return is_new;
}

static void begin_row(product_row *row)
{
    row->count = row->high = 0;
    row->low = INT64_MAX;
}

static void clear_bits(product_row *row)
{
    for (int64_t i = 0; i < row->count; i++) row->used[row->columns[i] / 64] = 0;
}

static int by_number(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Finds the columns by their bits, unless these are too far apart. Clears the bits. */
static void sort_columns(product_row *row)
{
    const int64_t n = row->count;
    if (!n) return;
    if ((row->high - row->low) / 64 > 8 * n) {
        clear_bits(row);
        qsort(row->columns, (size_t)n, sizeof *row->columns, by_number);
        return;
    }
    int64_t i = 0;
    for (int64_t w = row->low / 64; w <= row->high / 64; w++) {
        for (uint64_t bits = row->used[w]; bits; bits &= bits - 1)
            row->columns[i++] = w * 64 + __builtin_ctzll(bits);
        row->used[w] = 0;
    }
}

/* ---- rows ---- */

typedef struct element_c64 {
    float re, im;
} element_c64;
typedef struct element_c128 {
    double re, im;
} element_c128;
#define REAL_PLUS(to, a, b)  (to) += (a) * (b)
#define REAL_TIMES(to, a, b) (to) = (a) * (b)
#define COMPLEX_PLUS(to, a, b)                                                                               \
    (to).re += (a).re * (b).re - (a).im * (b).im, (to).im += (a).re * (b).im + (a).im * (b).re
#define COMPLEX_TIMES(to, a, b)                                                                              \
    (to).re = (a).re * (b).re - (a).im * (b).im, (to).im = (a).re * (b).im + (a).im * (b).re

/* Adds element k of a, times the row of b, to the sums. */
#define ADD_ROW(type, T, PLUS, TIMES)                                                                        \
    static void add_row_##type(const sparse_view *a, int64_t k, const sparse_view *b, product_row *row)      \
    {                                                                                                        \
        const T x = ((const T *)a->values)[k];                                                               \
        const T *y = b->values;                                                                              \
        T *sum = row->sum;                                                                                   \
        const int64_t r = csr_column(&a->c, k), end = csr_offset(&b->c, r + 1);                              \
        for (int64_t j = csr_offset(&b->c, r); j < end; j++) {                                               \
            const int64_t column = csr_column(&b->c, j);                                                     \
            if (take_column(row, column)) TIMES(sum[column], x, y[j]);                                       \
            else PLUS(sum[column], x, y[j]);                                                                 \
        }                                                                                                    \
    }
ADD_ROW(f32, float, REAL_PLUS, REAL_TIMES)
ADD_ROW(f64, double, REAL_PLUS, REAL_TIMES)
ADD_ROW(c64, element_c64, COMPLEX_PLUS, COMPLEX_TIMES)
ADD_ROW(c128, element_c128, COMPLEX_PLUS, COMPLEX_TIMES)
typedef void row_function(const sparse_view *a, int64_t k, const sparse_view *b, product_row *row);

static row_function *function_for(duet_dtype type)
{
    switch (type) {
    case DUET_F32: return add_row_f32;
    case DUET_F64: return add_row_f64;
    case DUET_C64: return add_row_c64;
    default: return add_row_c128;
    }
}

/* The number of elements of the product. */
static int64_t count_elements(const sparse_view *a, const sparse_view *b, product_row *row)
{
    int64_t n = 0;
    for (int64_t r = 0; r < a->c.rows; r++) {
        begin_row(row);
        for (int64_t k = csr_offset(&a->c, r); k < csr_offset(&a->c, r + 1); k++) {
            const int64_t from = csr_column(&a->c, k);
            for (int64_t j = csr_offset(&b->c, from); j < csr_offset(&b->c, from + 1); j++)
                take_column(row, csr_column(&b->c, j));
        }
        clear_bits(row);
        n += row->count;
    }
    return n;
}

static void put_products(const sparse_view *a, const sparse_view *b, product_row *row, sparse_lists *l)
{
    row_function *const add_row = function_for(a->type);
    int64_t n = 0;
    for (int64_t r = 0; r < a->c.rows; r++) {
        begin_row(row);
        csr_put(l->pattern, l->wide, r, n);
        for (int64_t k = csr_offset(&a->c, r); k < csr_offset(&a->c, r + 1); k++) add_row(a, k, b, row);
        sort_columns(row);
        for (int64_t i = 0; i < row->count; i++, n++) {
            csr_put(l->pattern, l->wide, a->c.rows + 1 + n, row->columns[i]);
            memcpy((char *)l->values + n * (int64_t)a->each,
                   (const char *)row->sum + row->columns[i] * (int64_t)a->each, a->each);
        }
    }
    csr_put(l->pattern, l->wide, a->c.rows, n);
}

static duet_status open_factors(const char *who, const duet_sparse *a, const duet_sparse *b, sparse_view *u,
                                sparse_view *v)
{
    char x[SPARSE_TEXT], y[SPARSE_TEXT];
    TRY(sparse_open(who, a, u));
    TRY(sparse_open(who, b, v));
    if (u->type != v->type)
        return fail(DUET_BAD_TYPE, "%s: a and b must have the same element type, not %s and %s", who,
                    dtypes[u->type].name, dtypes[v->type].name);
    if (a->columns == b->rows) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "%s(a: %s, b: %s): the columns of a (%lld) must match the rows of b (%lld)",
                who, sparse_text(x, a), sparse_text(y, b), (long long)a->columns, (long long)b->rows);
}

static duet_status product(const char *who, const duet_sparse *a, const duet_sparse *b, sparse_lists *l)
{
    sparse_view u, v;
    TRY(open_factors(who, a, b, &u, &v));
    const int64_t words = b->columns / 64 + 1;
    product_row row = { 0 };
    row.sum = sparse_allocate(who, b->columns, u.each);
    row.used = row.sum ? sparse_allocate(who, words, sizeof *row.used) : NULL;
    row.columns = row.used ? sparse_allocate(who, b->columns, sizeof *row.columns) : NULL;
    duet_status s = row.columns ? DUET_OK : DUET_NO_MEMORY;
    if (s == DUET_OK) {
        memset(row.used, 0, (size_t)words * sizeof *row.used);
        s = sparse_begin(who, u.type, a->rows, b->columns, count_elements(&u, &v, &row), l);
    }
    if (s == DUET_OK) put_products(&u, &v, &row, l);
    free(row.sum);
    free(row.used);
    free(row.columns);
    return s;
}

duet_sparse *(duet_sparse_product)(const duet_sparse *a, const duet_sparse *b)
{
    sparse_lists l;
    return product("duet_sparse_product", a, b, &l) == DUET_OK ? sparse_done(&l) : NULL;
}
