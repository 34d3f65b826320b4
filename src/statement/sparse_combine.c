/* sparse_combine.c - sparse matrices made from others: transposes, rows, sums and products. All of it works on the
 * host. A pattern is counted first, so that its lists are allocated once. */
#include "dtype.h"
#include "min_max.h"
#include "sparse.h"
#include "statement.h"
#include "status.h"
#include <stdlib.h>
#include <string.h>

static const char *element(const sparse_view *v, int64_t k)
{
    return (const char *)v->values + k * (int64_t)v->each;
}

/* Element k of the matrix in the making. */
static void put_element(sparse_lists *l, int64_t k, int64_t column, const void *from, size_t each)
{
    csr_put(l->pattern, l->wide, l->s->rows + 1 + k, column);
    memcpy((char *)l->values + k * (int64_t)each, from, each);
}

/* ---- transposes and rows ---- */

static duet_status transpose(const char *who, const duet_sparse *s, sparse_lists *l)
{
    sparse_view v;
    TRY(sparse_open(who, s, &v));
    int64_t *next = sparse_allocate(who, s->columns + 1, sizeof *next);
    if (!next) return DUET_NO_MEMORY;
    const duet_status made = sparse_begin(who, v.type, s->columns, s->rows, s->count, l);
    if (made == DUET_OK) {
        memset(next, 0, (size_t)(s->columns + 1) * sizeof *next);
        for (int64_t k = 0; k < s->count; k++) next[csr_column(&v.c, k) + 1]++;
        for (int64_t j = 0; j < s->columns; j++) next[j + 1] += next[j];
        for (int64_t j = 0; j <= s->columns; j++) csr_put(l->pattern, l->wide, j, next[j]);
        for (int64_t r = 0; r < s->rows; r++)
            for (int64_t k = csr_offset(&v.c, r); k < csr_offset(&v.c, r + 1); k++)
                put_element(l, next[csr_column(&v.c, k)]++, r, element(&v, k), v.each);
    }
    free(next);
    return made;
}

duet_sparse *(duet_sparse_transposed)(const duet_sparse *s)
{
    sparse_lists l;
    return transpose("duet_sparse_transposed", s, &l) == DUET_OK ? sparse_done(&l) : NULL;
}

static duet_status slice(const char *who, const duet_sparse *s, int64_t from, int64_t to, sparse_lists *l)
{
    char text[SPARSE_TEXT];
    sparse_view v;
    TRY(sparse_open(who, s, &v));
    if (from < 0 || from > to || to > s->rows)
        return fail(DUET_BAD_ARGUMENT, "%s(s: %s): rows %lld to %lld must be within the %lld rows of s", who,
                    sparse_text(text, s), (long long)from, (long long)to, (long long)s->rows);
    const int64_t first = csr_offset(&v.c, from), count = csr_offset(&v.c, to) - first;
    TRY(sparse_begin(who, v.type, to - from, s->columns, count, l));
    for (int64_t r = from; r <= to; r++) csr_put(l->pattern, l->wide, r - from, csr_offset(&v.c, r) - first);
    for (int64_t k = 0; k < count; k++)
        put_element(l, k, csr_column(&v.c, first + k), element(&v, first + k), v.each);
    return DUET_OK;
}

duet_sparse *(duet_sparse_slice)(const duet_sparse *s, int64_t from, int64_t to)
{
    sparse_lists l;
    return slice("duet_sparse_slice", s, from, to, &l) == DUET_OK ? sparse_done(&l) : NULL;
}

/* ---- element by element ---- */

static duet_status open_both(const char *who, const duet_sparse *a, const duet_sparse *b, sparse_view *u,
                             sparse_view *v)
{
    TRY(sparse_open(who, a, u));
    TRY(sparse_open(who, b, v));
    if (u->type == v->type) return DUET_OK;
    return fail(DUET_BAD_TYPE, "%s: a and b must have the same element type, not %s and %s", who,
                dtypes[u->type].name, dtypes[v->type].name);
}

static duet_status must_be_alike(const char *who, const duet_sparse *a, const duet_sparse *b)
{
    char x[SPARSE_TEXT], y[SPARSE_TEXT];
    if (a->rows == b->rows && a->columns == b->columns) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "%s(a: %s, b: %s): a and b must have the same sizes", who, sparse_text(x, a),
                sparse_text(y, b));
}

static void multiply_elements(duet_dtype type, void *out, const void *a, const void *b)
{
    switch (type) {
    case DUET_F32: *(float *)out = *(const float *)a * *(const float *)b; break;
    case DUET_F64: *(double *)out = *(const double *)a * *(const double *)b; break;
    case DUET_C64: {
        const float *x = a, *y = b, re = x[0] * y[0] - x[1] * y[1], im = x[0] * y[1] + x[1] * y[0];
        ((float *)out)[0] = re;
        ((float *)out)[1] = im;
        break;
    }
    default: {
        const double *x = a, *y = b, re = x[0] * y[0] - x[1] * y[1], im = x[0] * y[1] + x[1] * y[0];
        ((double *)out)[0] = re;
        ((double *)out)[1] = im;
    }
    }
}

/* Merges row r. `common`: the elements that both have, multiplied; else those that one has, added. Writes to l, unless
 * it is NULL. Returns the number of elements. at: the number of the first one. */
static int64_t merge_row(const sparse_view *u, const sparse_view *v, int64_t r, bool common, int64_t at,
                         sparse_lists *l)
{
    int64_t i = csr_offset(&u->c, r), j = csr_offset(&v->c, r), n = at;
    const int64_t i_end = csr_offset(&u->c, r + 1), j_end = csr_offset(&v->c, r + 1);
    while (i < i_end || j < j_end) {
        const int64_t p = i < i_end ? csr_column(&u->c, i) : INT64_MAX,
                      q = j < j_end ? csr_column(&v->c, j) : INT64_MAX, column = smaller(p, q);
        const bool both = p == q;
        if (l && (both || !common)) {
            char *to = (char *)l->values + n * (int64_t)u->each;
            put_element(l, n, column, p <= q ? element(u, i) : element(v, j), u->each);
            if (both && common) multiply_elements(u->type, to, element(u, i), element(v, j));
            else if (both) sparse_add_element(u->type, to, element(v, j));
        }
        n += both || !common;
        i += p == column;
        j += q == column;
    }
    return n - at;
}

static duet_status merge(const char *who, const duet_sparse *a, const duet_sparse *b, bool common,
                         sparse_lists *l)
{
    sparse_view u, v;
    int64_t n = 0;
    TRY(open_both(who, a, b, &u, &v));
    TRY(must_be_alike(who, a, b));
    for (int64_t r = 0; r < a->rows; r++) n += merge_row(&u, &v, r, common, 0, NULL);
    TRY(sparse_begin(who, u.type, a->rows, a->columns, n, l));
    n = 0;
    for (int64_t r = 0; r < a->rows; r++) {
        csr_put(l->pattern, l->wide, r, n);
        n += merge_row(&u, &v, r, common, n, l);
    }
    csr_put(l->pattern, l->wide, a->rows, n);
    return DUET_OK;
}

duet_sparse *(duet_sparse_add)(const duet_sparse *a, const duet_sparse *b)
{
    sparse_lists l;
    return merge("duet_sparse_add", a, b, false, &l) == DUET_OK ? sparse_done(&l) : NULL;
}

duet_sparse *(duet_sparse_multiply)(const duet_sparse *a, const duet_sparse *b)
{
    sparse_lists l;
    return merge("duet_sparse_multiply", a, b, true, &l) == DUET_OK ? sparse_done(&l) : NULL;
}
