/* sparse_combine.c - sparse matrices made from others: transposes, rows, sums and products element by
 * element. All of it works on the host. */
#include "min_max.h"
#include "sparse_inline.h"
#include "statement.h"
#include "status.h"
#include <stdlib.h>

/* ---- transposes and rows ---- */

/* next[j]: where the next element of column j goes. same: the indices of the result are as wide as those of v, or
 * else of the other width, which its columns, the rows of v, may need. */
INLINE void put_transposed(duet_dtype type, bool wide, bool same, const sparse_view *v, int64_t *next,
                           sparse_lists *l)
{
    const csr *c = &v->c;
    const bool to_wide = wide == same;
    const void *column = columns_of(c, wide);
    void *to = new_columns(l, to_wide);
    memset(next, 0, (size_t)(c->columns + 1) * sizeof *next);
    for (int64_t k = 0; k < c->count; k++) next[index_in(column, wide, k) + 1]++;
    for (int64_t j = 0; j < c->columns; j++) next[j + 1] += next[j];
    for (int64_t j = 0; j <= c->columns; j++) put_index(l->pattern, to_wide, j, next[j]);
    for (int64_t r = 0; r < c->rows; r++) {
        const int64_t end = index_in(c->pattern, wide, r + 1);
        for (int64_t k = index_in(c->pattern, wide, r); k < end; k++) {
            const int64_t at = next[index_in(column, wide, k)]++;
            put_index(to, to_wide, at, r);
            copy_element(type, element_at(l->values, type, at), element_at(v->values, type, k));
        }
    }
}

static duet_status transpose(const char *who, const duet_sparse *s, sparse_lists *l)
{
    sparse_view v;
    TRY(sparse_open(who, s, &v));
    int64_t *next = sparse_allocate(who, s->columns + 1, sizeof *next);
    if (!next) return DUET_NO_MEMORY;
    const duet_status made = sparse_begin(who, v.type, s->columns, s->rows, s->count, l);
    if (made == DUET_OK) {
        if (l->wide == v.c.wide)
            FOR_TYPES (put_transposed, v.type, v.c.wide, true, &v, next, l)
                ;
        else
            FOR_TYPES (put_transposed, v.type, v.c.wide, false, &v, next, l)
                ;
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
        return fail(DUET_BAD_ARGUMENT,
                    "%s(s: %s): from (%lld) and to (%lld) must satisfy 0 <= from <= to <= %lld", who,
                    sparse_text(text, s), (long long)from, (long long)to, (long long)s->rows);
    const int64_t first = csr_offset(&v.c, from), count = csr_offset(&v.c, to) - first;
    TRY(sparse_begin(who, v.type, to - from, s->columns, count, l));
    for (int64_t r = from; r <= to; r++) csr_put(l->pattern, l->wide, r - from, csr_offset(&v.c, r) - first);
    for (int64_t k = 0; k < count; k++)
        csr_put(l->pattern, l->wide, to - from + 1 + k, csr_column(&v.c, first + k));
    if (count) memcpy(l->values, element_at(v.values, v.type, first), (size_t)count * v.each);
    return DUET_OK;
}

duet_sparse *(duet_sparse_slice)(const duet_sparse *s, int64_t from, int64_t to)
{
    sparse_lists l;
    return slice("duet_sparse_slice", s, from, to, &l) == DUET_OK ? sparse_done(&l) : NULL;
}

/* ---- element by element ---- */

/* Two matrices of one type, whose indices have one width. `common`: the elements that both have,
 * multiplied; else those that one has, added. */
typedef struct pair {
    sparse_view u, v;
    bool common;
} pair;

/* Element n of the result: of x, of y, or of both unless NULL. */
INLINE void put_merged(duet_dtype type, bool wide, const pair *p, void *columns, sparse_lists *l, int64_t n,
                       int64_t column, const void *x, const void *y)
{
    void *to = element_at(l->values, type, n);
    put_index(columns, wide, n, column);
    if (x && y && p->common) multiply_element(type, to, x, y, false);
    else {
        copy_element(type, to, x ? x : y);
        if (x && y) sparse_add_element(type, to, y);
    }
}

INLINE int64_t merge_row(duet_dtype type, bool wide, const pair *p, int64_t r, int64_t n, sparse_lists *l)
{
    const csr *a = &p->u.c, *b = &p->v.c;
    const void *x = columns_of(a, wide), *y = columns_of(b, wide);
    void *to = new_columns(l, wide);
    int64_t i = index_in(a->pattern, wide, r), j = index_in(b->pattern, wide, r);
    const int64_t i_end = index_in(a->pattern, wide, r + 1), j_end = index_in(b->pattern, wide, r + 1);
    while (i < i_end || j < j_end) {
        const int64_t column = i < i_end ? index_in(x, wide, i) : INT64_MAX,
                      other = j < j_end ? index_in(y, wide, j) : INT64_MAX;
        const void *u = column <= other ? element_at(p->u.values, type, i) : NULL,
                   *v = other <= column ? element_at(p->v.values, type, j) : NULL;
        if ((u && v) || !p->common) put_merged(type, wide, p, to, l, n++, smaller(column, other), u, v);
        i += column <= other;
        j += other <= column;
    }
    return n;
}

/* Returns the number of elements. */
INLINE int64_t merge_rows(duet_dtype type, bool wide, const pair *p, sparse_lists *l)
{
    int64_t n = 0;
    for (int64_t r = 0; r < p->u.c.rows; r++) {
        put_index(l->pattern, wide, r, n);
        n = merge_row(type, wide, p, r, n, l);
    }
    put_index(l->pattern, wide, p->u.c.rows, n);
    return n;
}

/* The pattern of v, with indices of i64. */
static duet_status widen(const char *who, sparse_view *v, int64_t **copy)
{
    const int64_t n = v->c.rows + 1 + v->c.count;
    if (v->c.wide) return DUET_OK;
    if (!(*copy = sparse_allocate(who, n, sizeof **copy))) return DUET_NO_MEMORY;
    for (int64_t i = 0; i < n; i++) (*copy)[i] = csr_at(&v->c, i);
    v->c.pattern = *copy;
    v->c.wide = true;
    return DUET_OK;
}

static duet_status open_both(const char *who, const duet_sparse *a, const duet_sparse *b, pair *p)
{
    char x[SPARSE_TEXT], y[SPARSE_TEXT];
    TRY(sparse_open(who, a, &p->u));
    TRY(sparse_open(who, b, &p->v));
    if (p->u.type != p->v.type)
        return fail(DUET_BAD_TYPE, "%s: a and b must have the same element type, not %s and %s", who,
                    dtypes[p->u.type].name, dtypes[p->v.type].name);
    if (a->rows == b->rows && a->columns == b->columns) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "%s(a: %s, b: %s): a and b must have the same sizes", who, sparse_text(x, a),
                sparse_text(y, b));
}

/* The exact lists, from those of n elements in room for more. */
static duet_status copy_lists(const char *who, const pair *p, const sparse_lists *from, int64_t n,
                              sparse_lists *l)
{
    const int64_t rows = p->u.c.rows;
    TRY(sparse_begin(who, p->u.type, rows, p->u.c.columns, n, l));
    if (l->wide == from->wide)
        memcpy(l->pattern, from->pattern,
               (size_t)(rows + 1 + n) * (l->wide ? sizeof(int64_t) : sizeof(int32_t)));
    else
        for (int64_t i = 0; i < rows + 1 + n; i++)
            csr_put(l->pattern, l->wide, i, index_in(from->pattern, from->wide, i));
    if (n) memcpy(l->values, from->values, (size_t)n * p->u.each);
    return DUET_OK;
}

/* Merges into lists with room for the elements of both, which is faster than counting the result first. */
static duet_status merge_lists(const char *who, pair *p, int64_t *copy[2], sparse_lists *l)
{
    const int64_t rows = p->u.c.rows,
                  most = p->common ? smaller(p->u.c.count, p->v.c.count) : p->u.c.count + p->v.c.count;
    if (csr_needs_wide(p->u.c.columns, most) || p->u.c.wide || p->v.c.wide) {
        TRY(widen(who, &p->u, &copy[0]));
        TRY(widen(who, &p->v, &copy[1]));
    }
    duet_sparse sizes = { .rows = rows };
    sparse_lists room = { .s = &sizes, .wide = p->u.c.wide };
    room.pattern = sparse_allocate(who, rows + 1 + most, room.wide ? sizeof(int64_t) : sizeof(int32_t));
    room.values = room.pattern ? sparse_allocate(who, most, p->u.each) : NULL;
    duet_status s = DUET_NO_MEMORY;
    if (room.values) {
        const int64_t n = FOR_TYPES (merge_rows, p->u.type, room.wide, p, &room);
        s = copy_lists(who, p, &room, n, l);
    }
    free(room.pattern);
    free(room.values);
    return s;
}

static duet_sparse *merge(const char *who, const duet_sparse *a, const duet_sparse *b, bool common)
{
    pair p = { .common = common };
    sparse_lists l;
    int64_t *copy[2] = { NULL, NULL };
    duet_status s = open_both(who, a, b, &p);
    if (s == DUET_OK) s = merge_lists(who, &p, copy, &l);
    free(copy[0]);
    free(copy[1]);
    return s == DUET_OK ? sparse_done(&l) : NULL;
}

duet_sparse *(duet_sparse_add)(const duet_sparse *a, const duet_sparse *b)
{
    return merge("duet_sparse_add", a, b, false);
}

duet_sparse *(duet_sparse_multiply)(const duet_sparse *a, const duet_sparse *b)
{
    return merge("duet_sparse_multiply", a, b, true);
}
