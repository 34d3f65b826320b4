/* sparse_product.c - the product of two sparse matrices, row by row (Gustavson 1978), on the host. A row
 * of the result is the sum of rows of b, added in a dense row of sums. A bit for each column says which
 * sums are in use. The lists of the result grow as rows are made, and are copied at the end. */
#include "min_max.h"
#include "sparse_inline.h"
#include "statement.h"
#include "status.h"
#include <stdlib.h>

typedef struct product {
    const char *who;
    sparse_view a, b;
    /* the row in the making */
    void *sum;       /* of each column */
    uint64_t *used;  /* a bit for each column, and behind them one for each word of these that is not 0; all 0
                         between rows */
    uint64_t *words; /* the latter bits */
    int64_t *columns; /* those in use */
    int64_t used_count, low, high;
    /* the result */
    int64_t *offsets, count, room;
    void *result_columns; /* i32, or i64 if b has so many columns */
    void *values;
} product;

static bool is_wide(const product *p) { return p->b.c.columns > INT32_MAX; }

INLINE bool take_column(product *p, int64_t column)
{
    uint64_t *word = &p->used[column / 64];
    const uint64_t bit = (uint64_t)1 << column % 64;
    const bool is_new = !(*word & bit);
    if (is_new) {
        if (!*word) p->words[column / 4096] |= (uint64_t)1 << column / 64 % 64;
        *word |= bit;
        p->columns[p->used_count++] = column;
        p->low = smaller(p->low, column);
        p->high = larger(p->high, column);
    }
    return is_new;
}

/* ---- the order of the columns ---- */

static int by_number(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void sort_few(int64_t *list, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        const int64_t x = list[i];
        int64_t j = i;
        for (; j > 0 && list[j - 1] > x; j--) list[j] = list[j - 1];
        list[j] = x;
    }
}

static void clear_bits(product *p)
{
    for (int64_t i = 0; i < p->used_count; i++)
        p->used[p->columns[i] / 64] = p->words[p->columns[i] / 4096] = 0;
}

static int64_t list_word(product *p, int64_t word, int64_t n)
{
    for (uint64_t bits = p->used[word]; bits; bits &= bits - 1)
        p->columns[n++] = word * 64 + __builtin_ctzll(bits);
    p->used[word] = 0;
    return n;
}

/* Clears the bits. The columns are found by them, unless they are few or too far apart. */
static void sort_columns(product *p)
{
    const int64_t n = p->used_count;
    if (n <= 8 || (p->high - p->low) / 4096 > 16 * n) {
        clear_bits(p);
        if (n <= 32) sort_few(p->columns, n);
        else qsort(p->columns, (size_t)n, sizeof *p->columns, by_number);
        return;
    }
    int64_t listed = 0;
    for (int64_t w = p->low / 4096; w <= p->high / 4096; w++) {
        for (uint64_t bits = p->words[w]; bits; bits &= bits - 1)
            listed = list_word(p, w * 64 + __builtin_ctzll(bits), listed);
        p->words[w] = 0;
    }
}

/* ---- rows ---- */

/* Adds element k of a, times the row of b, to the sums. */
INLINE void add_row(duet_dtype type, bool wide, product *p, int64_t k)
{
    const csr *b = &p->b.c;
    const void *x = element_at(p->a.values, type, k), *column = columns_of(b, wide);
    const int64_t r = csr_column(&p->a.c, k), end = index_in(b->pattern, wide, r + 1);
    for (int64_t j = index_in(b->pattern, wide, r); j < end; j++) {
        const int64_t at = index_in(column, wide, j);
        void *sum = element_at(p->sum, type, at);
        const void *y = element_at(p->b.values, type, j);
        if (take_column(p, at)) multiply_element(type, sum, x, y, false);
        else multiply_element(type, sum, x, y, true);
    }
}

static duet_status grow(product *p, int64_t n)
{
    const int64_t room = larger(p->count + n, larger(2 * p->room, p->a.c.count + p->b.c.count));
    void *columns = realloc(p->result_columns, (size_t)room * (is_wide(p) ? 8 : 4));
    if (columns) p->result_columns = columns;
    void *values = columns ? realloc(p->values, (size_t)room * p->a.each) : NULL;
    if (!values)
        return fail(DUET_NO_MEMORY, "%s: lists of %lld elements could not be allocated", p->who,
                    (long long)room);
    p->values = values;
    p->room = room;
    return DUET_OK;
}

INLINE void put_row(duet_dtype type, bool wide, product *p)
{
    for (int64_t i = 0; i < p->used_count; i++) {
        put_index(p->result_columns, wide, p->count + i, p->columns[i]);
        copy_element(type, element_at(p->values, type, p->count + i),
                     element_at(p->sum, type, p->columns[i]));
    }
    p->count += p->used_count;
}

INLINE duet_status make_rows(duet_dtype type, bool wide, product *p)
{
    const csr *a = &p->a.c;
    for (int64_t r = 0; r < a->rows; r++) {
        const int64_t end = csr_offset(a, r + 1);
        p->offsets[r] = p->count;
        p->used_count = p->high = 0;
        p->low = INT64_MAX;
        for (int64_t k = csr_offset(a, r); k < end; k++) add_row(type, wide, p, k);
        sort_columns(p);
        if (p->count + p->used_count > p->room) TRY(grow(p, p->used_count));
        if (is_wide(p)) put_row(type, true, p);
        else put_row(type, false, p);
    }
    p->offsets[a->rows] = p->count;
    return DUET_OK;
}

/* ---- the result ---- */

static duet_status finish(const product *p, sparse_lists *l)
{
    const int64_t rows = p->a.c.rows;
    TRY(sparse_begin(p->who, p->a.type, rows, p->b.c.columns, p->count, l));
    for (int64_t r = 0; r <= rows; r++) csr_put(l->pattern, l->wide, r, p->offsets[r]);
    for (int64_t k = 0; k < p->count; k++)
        csr_put(l->pattern, l->wide, rows + 1 + k, index_in(p->result_columns, is_wide(p), k));
    if (p->count) memcpy(l->values, p->values, (size_t)p->count * p->a.each);
    return DUET_OK;
}

static duet_status open_factors(product *p, const duet_sparse *a, const duet_sparse *b)
{
    char x[SPARSE_TEXT], y[SPARSE_TEXT];
    TRY(sparse_open(p->who, a, &p->a));
    TRY(sparse_open(p->who, b, &p->b));
    if (p->a.type != p->b.type)
        return fail(DUET_BAD_TYPE, "%s: a and b must have the same element type, not %s and %s", p->who,
                    dtypes[p->a.type].name, dtypes[p->b.type].name);
    if (a->columns == b->rows) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "%s(a: %s, b: %s): the columns of a (%lld) must match the rows of b (%lld)",
                p->who, sparse_text(x, a), sparse_text(y, b), (long long)a->columns, (long long)b->rows);
}

static duet_status allocate(product *p)
{
    const int64_t columns = p->b.c.columns, words = columns / 64 + 1, all = words + columns / 4096 + 1;
    p->sum = sparse_allocate(p->who, columns, p->a.each);
    p->used = p->sum ? sparse_allocate(p->who, all, sizeof *p->used) : NULL;
    p->columns = p->used ? sparse_allocate(p->who, columns, sizeof *p->columns) : NULL;
    p->offsets = p->columns ? sparse_allocate(p->who, p->a.c.rows + 1, sizeof *p->offsets) : NULL;
    if (!p->offsets) return DUET_NO_MEMORY;
    memset(p->used, 0, (size_t)all * sizeof *p->used);
    p->words = p->used + words;
    return DUET_OK;
}

duet_sparse *(duet_sparse_product)(const duet_sparse *a, const duet_sparse *b)
{
    product p = { .who = "duet_sparse_product" };
    sparse_lists l;
    duet_status s = open_factors(&p, a, b);
    if (s == DUET_OK) s = allocate(&p);
    if (s == DUET_OK) s = FOR_TYPES (make_rows, p.a.type, p.b.c.wide, &p);
    if (s == DUET_OK) s = finish(&p, &l);
    void *const blocks[] = { p.sum, p.used, p.columns, p.offsets, p.result_columns, p.values };
    for (int i = 0; i < 6; i++) free(blocks[i]);
    return s == DUET_OK ? sparse_done(&l) : NULL;
}
