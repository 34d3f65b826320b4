/* sparse_product.c - the product of two sparse matrices, row by row (Gustavson 1978), on the host. Each
 * thread makes a range of rows: an element is computed by one thread, which adds its terms in the order of
 * the columns of a. */
#include "sparse_product.h"
#include "min_max.h"
#include "sparse_inline.h"
#include "statement.h"
#include "status.h"

/* Rough times of one thread, which choose the number of threads. */
#define SECONDS_PER_PRODUCT 3e-9
#define SECONDS_PER_LOOKUP  1e-9 /* the length of a row of b */

/* Up to this many products for each element of a and b, memory for all products is allocated. */
#define PRODUCTS_COPIED 4

static duet_status open_factors(product *p, const duet_sparse *a, const duet_sparse *b)
{
    char x[SPARSE_TEXT], y[SPARSE_TEXT];
    TRY(sparse_open_both(p->who, a, b, &p->a, &p->b));
    if (a->columns == b->rows) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "%s(a: %s, b: %s): the columns of a (%lld) must match the rows of b (%lld)",
                p->who, sparse_text(x, a), sparse_text(y, b), (long long)a->columns, (long long)b->rows);
}

/* ---- parts ---- */

/* Replaces the numbers of rows by their sums. */
static void sum_offsets(const product *p)
{
    p->offset[0] = 0;
    for (int64_t r = 0; r < p->a.c.rows; r++) p->offset[r + 1] += p->offset[r];
}

/* Parts with equal numbers of rows and products. A part needs memory for all columns of b, so there are fewer
 * of them if there are few products. */
static void divide_by_products(product *p)
{
    const int64_t rows = p->a.c.rows, products = p->offset[rows];
    int64_t r = 0;
    parts *to = &p->parts;
    to->threads = host_threads.count((double)products * SECONDS_PER_PRODUCT);
    to->count = (int)smaller(smaller(to->threads, PARTS_MAX), 1 + products / (p->b.c.columns + 1));
    for (int t = 0; t < to->count; t++) {
        while (r < rows && r + p->offset[r] < part_of(rows + products, t, to->count)) r++;
        to->first[t] = r;
    }
    to->first[to->count] = rows;
}

static void start_parts(product *p)
{
    for (int t = 0; t <= p->parts.count; t++) p->start[t] = p->offset[p->parts.first[t]];
}

/* ---- steps ---- */

static duet_status prepare(product *p)
{
    p->offset = sparse_allocate(p->who, p->a.c.rows + 1, sizeof *p->offset);
    if (!p->offset) return DUET_NO_MEMORY;
    parts_divide(&p->parts, &p->a.c, (double)p->a.c.count * SECONDS_PER_LOOKUP, PARTS_MAX);
    each_part(&p->parts, product_weigh, p);
    sum_offsets(p);
    divide_by_products(p);
    start_parts(p);
    p->room_bytes = product_row_bytes(p);
    p->room = sparse_allocate(p->who, p->parts.count, p->room_bytes);
    return p->room ? DUET_OK : DUET_NO_MEMORY;
}

static duet_status begin_result(product *p)
{
    const int64_t rows = p->a.c.rows;
    sum_offsets(p);
    start_parts(p);
    return sparse_begin(p->who, p->a.type, rows, p->b.c.columns, p->offset[rows], &p->l);
}

static void put_offsets(void *of, int part)
{
    const product *p = of;
    for (int64_t r = p->parts.first[part]; r < p->parts.first[part + 1]; r++)
        csr_put(p->l.pattern, p->l.wide, r + 1, p->offset[r + 1]);
}

/* Counts the elements, and then computes them where they belong. */
static duet_status count_and_fill(product *p)
{
    const int64_t rows = p->a.c.rows;
    p->marks = p->offset[rows] > p->b.c.columns / 2;
    for (int64_t r = rows; r > 0; r--) p->offset[r] -= p->offset[r - 1];
    each_part(&p->parts, product_count, p);
    TRY(begin_result(p));
    each_part(&p->parts, put_offsets, p);
    p->counted = true;
    p->columns = new_columns(&p->l, p->l.wide);
    p->values = p->l.values;
    p->wide = p->l.wide;
    each_part(&p->parts, product_fill, p);
    return DUET_OK;
}

/* Copies the elements of a part from the memory for all products to the result. */
typedef struct copying {
    const product *p;
    int64_t from[PARTS_MAX];
} copying;

static void copy_part(void *of, int part)
{
    const copying *c = of;
    const product *p = c->p;
    const int64_t to = p->start[part], n = p->start[part + 1] - to, from = c->from[part];
    const size_t each = p->a.each;
    put_offsets((void *)(uintptr_t)p, part);
    copy_indices(index_place(new_columns(&p->l, p->l.wide), p->l.wide, to), p->l.wide,
                 index_place(p->columns, p->wide, from), p->wide, n, 0);
    if (n)
        memcpy((char *)p->l.values + (size_t)to * each, (const char *)p->values + (size_t)from * each,
               (size_t)n * each);
}

/* Memory for all products. It is not an error if there is too little. */
static bool take_lists(product *p)
{
    const int64_t products = p->offset[p->a.c.rows];
    error_text before;
    error_keep(&before);
    p->wide = p->b.c.wide;
    p->columns = sparse_allocate(p->who, products, p->wide ? sizeof(int64_t) : sizeof(int32_t));
    p->values = p->columns ? sparse_allocate(p->who, products, p->a.each) : NULL;
    if (p->values) return true;
    sparse_release(p->columns);
    error_put_back(&before);
    return false;
}

/* Computes elements in the memory for all products, and copies them. */
static duet_status fill_and_copy(product *p)
{
    copying c = { .p = p };
    memcpy(c.from, p->start, sizeof c.from);
    each_part(&p->parts, product_fill, p);
    const duet_status s = begin_result(p);
    if (s == DUET_OK) each_part(&p->parts, copy_part, &c);
    sparse_release(p->columns);
    sparse_release(p->values);
    return s;
}

/* Counting takes longer than copying, unless sums have many terms. */
static duet_status multiply(product *p)
{
    const bool few = p->offset[p->a.c.rows] / PRODUCTS_COPIED <= p->a.c.count + p->b.c.count;
    const duet_status s = few && take_lists(p) ? fill_and_copy(p) : count_and_fill(p);
    if (s == DUET_OK) csr_put(p->l.pattern, p->l.wide, 0, 0);
    return s;
}

duet_sparse *(duet_sparse_product)(const duet_sparse *a, const duet_sparse *b)
{
    product p = { .who = "duet_sparse_product" };
    duet_status s = open_factors(&p, a, b);
    if (s == DUET_OK) s = prepare(&p);
    if (s == DUET_OK) s = multiply(&p);
    sparse_release(p.offset);
    sparse_release(p.room);
    return s == DUET_OK ? sparse_done(&p.l) : NULL;
}
