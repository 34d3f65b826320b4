/* sparse_combine.c - sums and products, element by element, of two sparse matrices, on the host. Each thread
 * merges a range of rows into memory that is large enough for the elements of both, and copies them to the
 * result. Counting the elements first would take longer. */
#include "min_max.h"
#include "sparse_inline.h"
#include "sparse_parts.h"
#include "statement.h"
#include "status.h"

/* Rough times of one thread, which choose the number of threads. */
#define SECONDS_PER_MERGED 3e-9
#define SECONDS_PER_SUM    2e-10

/* Two matrices of one type. */
typedef struct pair {
    const char *who;
    sparse_view u, v; /* when they are merged, their indices have one width */
    bool common;      /* the elements that both have, multiplied; else those that one has, added */
    parts parts;
    int64_t count[PARTS_MAX]; /* of the elements of each part; or whether the patterns differ there */
    int64_t at[PARTS_MAX];    /* where they begin in the result */
    sparse_lists room, l;     /* the merged rows, and the result */
} pair;

/* ---- equal patterns ---- */

static void part_differs(void *of, int part)
{
    pair *p = of;
    const csr *a = &p->u.c, *b = &p->v.c;
    const int64_t each = a->wide ? sizeof(int64_t) : sizeof(int32_t), n = a->rows + 1 + a->count,
                  from = part_of(n, part, p->parts.count) * each,
                  to = part_of(n, part + 1, p->parts.count) * each;
    p->count[part] =
        memcmp((const char *)a->pattern + from, (const char *)b->pattern + from, (size_t)(to - from)) != 0;
}

static int64_t sum_of_parts(const pair *p)
{
    int64_t sum = 0;
    for (int t = 0; t < p->parts.count; t++) sum += p->count[t];
    return sum;
}

static bool patterns_equal(pair *p)
{
    if (p->u.c.pattern == p->v.c.pattern) return true;
    if (p->u.c.count != p->v.c.count || p->u.c.wide != p->v.c.wide) return false;
    each_part(&p->parts, part_differs, p);
    return !sum_of_parts(p);
}

INLINE int64_t combine_values(duet_dtype type, bool common, const pair *p, int64_t from, int64_t to)
{
    for (int64_t k = from; k < to; k++) {
        const void *x = element_at(p->u.values, type, k), *y = element_at(p->v.values, type, k);
        void *out = element_at(p->l.values, type, k);
        if (common) multiply_element(type, out, x, y, false);
        else add_elements(type, out, x, y);
    }
    return 0;
}

static void combine_part(void *of, int part)
{
    const pair *p = of;
    const int64_t n = p->u.c.count, from = part_of(n, part, p->parts.count),
                  to = part_of(n, part + 1, p->parts.count);
    (void)FOR_TYPES (combine_values, p->u.type, p->common, p, from, to);
}

/* The result has the pattern of a. */
static duet_sparse *combine_equal(pair *p, const duet_sparse *a)
{
    duet_matrix *values = matrix_new(p->who, p->u.type, 1, &a->count);
    p->l.values = values && a->count ? (duet_overwrite)(values) : NULL;
    if (!p->l.values && (!values || a->count)) {
        (duet_free)(&values);
        return NULL;
    }
    each_part(&p->parts, combine_part, p);
    return sparse_with(a, values);
}

/* ---- other patterns ---- */

/* Rows that are merged: from elements i and j to element n. */
typedef struct merging {
    const void *x, *y; /* columns */
    void *to;
    int64_t i, i_end, j, j_end, n;
} merging;

INLINE void take_rest(duet_dtype type, bool wide, const pair *p, merging *m, const void *columns,
                      const void *values, int64_t from, int64_t to)
{
    for (int64_t k = from; k < to; k++, m->n++) {
        put_index(m->to, wide, m->n, index_in(columns, wide, k));
        copy_element(type, element_at(p->room.values, type, m->n), element_at(values, type, k));
    }
}

/* It has no branches that depend on the columns, because no processor could predict them. */
INLINE void add_row(duet_dtype type, bool wide, const pair *p, merging *m)
{
    int64_t i = m->i, j = m->j, n = m->n;
    while (i < m->i_end && j < m->j_end) {
        const int64_t column = index_in(m->x, wide, i), other = index_in(m->y, wide, j);
        const bool first = column <= other, second = other <= column;
        const number u = number_if(type, p->u.values, i, first), v = number_if(type, p->v.values, j, second);
        put_index(m->to, wide, n, smaller(column, other));
        add_elements(type, element_at(p->room.values, type, n), &u, &v);
        n++;
        i += first;
        j += second;
    }
    m->n = n;
    take_rest(type, wide, p, m, m->x, p->u.values, i, m->i_end);
    take_rest(type, wide, p, m, m->y, p->v.values, j, m->j_end);
}

/* Writes each product, but keeps only those of equal columns. So a part has memory for one element more. */
INLINE void multiply_row(duet_dtype type, bool wide, const pair *p, merging *m)
{
    int64_t i = m->i, j = m->j, n = m->n;
    while (i < m->i_end && j < m->j_end) {
        const int64_t column = index_in(m->x, wide, i), other = index_in(m->y, wide, j);
        put_index(m->to, wide, n, column);
        multiply_element(type, element_at(p->room.values, type, n), element_at(p->u.values, type, i),
                         element_at(p->v.values, type, j), false);
        n += column == other;
        i += column <= other;
        j += other <= column;
    }
    m->n = n;
}

/* Where a part begins in the memory for all. */
static int64_t room_from(const pair *p, int part)
{
    const int64_t r = p->parts.first[part];
    return csr_offset(&p->u.c, r) + (p->common ? part : csr_offset(&p->v.c, r));
}

/* Writes row offsets that count from the beginning of the part, and returns the number of elements. */
INLINE int64_t merge_rows(duet_dtype type, bool wide, const pair *p, int part)
{
    const csr *a = &p->u.c, *b = &p->v.c;
    const int64_t start = room_from(p, part);
    merging m = {
        .x = columns_of(a, wide), .y = columns_of(b, wide), .to = new_columns(&p->room, wide), .n = start
    };
    for (int64_t r = p->parts.first[part]; r < p->parts.first[part + 1]; r++) {
        m.i = index_in(a->pattern, wide, r);
        m.j = index_in(b->pattern, wide, r);
        m.i_end = index_in(a->pattern, wide, r + 1);
        m.j_end = index_in(b->pattern, wide, r + 1);
        put_index(p->room.pattern, wide, r, m.n - start);
        if (p->common) multiply_row(type, wide, p, &m);
        else add_row(type, wide, p, &m);
    }
    return m.n - start;
}

static void merge_part(void *of, int part)
{
    pair *p = of;
    p->count[part] = FOR_TYPES (merge_rows, p->u.type, p->room.wide, p, part);
}

static void copy_list(const sparse_lists *from, int64_t i, const sparse_lists *to, int64_t j, int64_t n,
                      int64_t more)
{
    copy_indices(index_place(to->pattern, to->wide, j), to->wide, index_place(from->pattern, from->wide, i),
                 from->wide, n, more);
}

static void copy_part(void *of, int part)
{
    const pair *p = of;
    const int64_t rows = p->u.c.rows, r = p->parts.first[part], at = p->at[part], from = room_from(p, part),
                  n = p->count[part];
    const duet_dtype type = p->u.type;
    copy_list(&p->room, r, &p->l, r, p->parts.first[part + 1] - r, at);
    copy_list(&p->room, rows + 1 + from, &p->l, rows + 1 + at, n, 0);
    if (n)
        memcpy(element_at(p->l.values, type, at), element_at(p->room.values, type, from),
               (size_t)n * p->u.each);
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

/* The memory for the merged rows. */
static duet_status take_room(pair *p, duet_sparse *sizes, int64_t most)
{
    p->room = (sparse_lists){ .s = sizes, .wide = p->u.c.wide };
    p->room.pattern =
        sparse_allocate(p->who, sizes->rows + 1 + most, p->room.wide ? sizeof(int64_t) : sizeof(int32_t));
    p->room.values = p->room.pattern ? sparse_allocate(p->who, most, p->u.each) : NULL;
    return p->room.values ? DUET_OK : DUET_NO_MEMORY;
}

static duet_status merge_lists(pair *p)
{
    const int64_t rows = p->u.c.rows;
    int64_t n = 0;
    each_part(&p->parts, merge_part, p);
    for (int t = 0; t < p->parts.count; n += p->count[t++]) p->at[t] = n;
    TRY(sparse_begin(p->who, p->u.type, rows, p->u.c.columns, n, &p->l));
    each_part(&p->parts, copy_part, p);
    csr_put(p->l.pattern, p->l.wide, rows, n);
    return DUET_OK;
}

static duet_sparse *merge_others(pair *p)
{
    duet_sparse sizes = { .rows = p->u.c.rows };
    int64_t *copy[2] = { NULL, NULL };
    const int64_t most = p->u.c.count + (p->common ? p->parts.count : p->v.c.count);
    duet_status s = DUET_OK;
    if (csr_needs_wide(p->u.c.columns, most) || p->u.c.wide || p->v.c.wide) {
        s = widen(p->who, &p->u, &copy[0]);
        if (s == DUET_OK) s = widen(p->who, &p->v, &copy[1]);
    }
    if (s == DUET_OK) s = take_room(p, &sizes, most);
    if (s == DUET_OK) s = merge_lists(p);
    void *const blocks[] = { copy[0], copy[1], p->room.pattern, p->room.values };
    for (int i = 0; i < 4; i++) sparse_release(blocks[i]);
    return s == DUET_OK ? sparse_done(&p->l) : NULL;
}

/* ---- functions ---- */

static duet_status open_both(pair *p, const duet_sparse *a, const duet_sparse *b)
{
    char x[SPARSE_TEXT], y[SPARSE_TEXT];
    TRY(sparse_open_both(p->who, a, b, &p->u, &p->v));
    if (a->rows == b->rows && a->columns == b->columns) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "%s(a: %s, b: %s): a and b must have the same sizes", p->who,
                sparse_text(x, a), sparse_text(y, b));
}

static duet_sparse *combine(const char *who, const duet_sparse *a, const duet_sparse *b, bool common)
{
    pair p = { .who = who, .common = common };
    if (open_both(&p, a, b) != DUET_OK) return NULL;
    parts_divide(&p.parts, &p.u.c, (double)a->count * SECONDS_PER_SUM, PARTS_MAX);
    if (patterns_equal(&p)) return combine_equal(&p, a);
    parts_divide(&p.parts, &p.u.c,
                 ((double)a->count + (double)b->count + (double)a->rows) * SECONDS_PER_MERGED, PARTS_MAX);
    return merge_others(&p);
}

duet_sparse *(duet_sparse_add)(const duet_sparse *a, const duet_sparse *b)
{
    return combine("duet_sparse_add", a, b, false);
}

duet_sparse *(duet_sparse_multiply)(const duet_sparse *a, const duet_sparse *b)
{
    return combine("duet_sparse_multiply", a, b, true);
}
