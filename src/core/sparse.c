/* sparse.c - makes sparse matrices from lists on the host. See sparse.h. */
#include "sparse.h"
#include "dtype.h"
#include "min_max.h"
#include "pool.h"
#include "status.h"
#include "thread.h"
#include "view.h"
#include <stdlib.h>
#include <string.h>

/* ---- checks and texts ---- */

/* The user may have freed or resized the values. */
duet_status sparse_check(const char *who, const duet_sparse *s)
{
    char text[SHAPE_TEXT];
    if (!s) return fail(DUET_BAD_ARGUMENT, "%s: the sparse matrix must not be NULL", who);
    TRY(matrix_check(who, s->values));
    const layout *l = &s->values->at;
    if (l->rank == 1 && l->size[0] == s->count) return DUET_OK;
    return fail(DUET_BAD_SHAPE,
                "%s: the values of s must be a vector of %lld elements, not %s, to which they were resized",
                who, (long long)s->count, shape_text(text, l->type, l->rank, l->size));
}

char *sparse_text(char text[SPARSE_TEXT], const duet_sparse *s)
{
    snprintf(text, SPARSE_TEXT, "%s[%lld,%lld] with %lld elements", dtypes[s->values->at.type].name,
             (long long)s->rows, (long long)s->columns, (long long)s->count);
    return text;
}

void *sparse_allocate(const char *who, int64_t n, size_t each)
{
    size_t bytes;
    void *p = NULL;
    if (__builtin_mul_overflow((size_t)n, each, &bytes))
        (void)fail(DUET_NO_MEMORY, "%s: a buffer of %lld items could not be allocated", who, (long long)n);
    else if (pool_take(HOST, bytes ? bytes : 1, thread_get()->queue, &p) != DUET_OK) {
        (void)fail_within(DUET_NO_MEMORY, "%s", who);
        return NULL;
    }
    return p;
}

void sparse_release(void *p)
{
    if (p) pool_give(HOST, p, 0);
}

/* ---- construction ---- */

static duet_status check_sizes(const char *who, int64_t rows, int64_t columns, int64_t count)
{
    const int64_t most = INT64_MAX / 32;
    if (rows < 0 || columns < 0)
        return fail(DUET_BAD_ARGUMENT,
                    "%s: the numbers of rows (%lld) and columns (%lld) must not be negative", who,
                    (long long)rows, (long long)columns);
    if (rows < most && columns < most && count < most - rows) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "%s: %lld rows, %lld columns and %lld elements are too many for memory", who,
                (long long)rows, (long long)columns, (long long)count);
}

/* A new vector and its elements, which are written next. Errors: NO_MEMORY */
static duet_status new_list(const char *who, duet_dtype type, int64_t count, duet_matrix **m, void **p)
{
    *m = matrix_new(who, type, 1, &count);
    *p = *m ? (duet_overwrite)(*m) : NULL;
    return *p || (*m && !count) ? DUET_OK : fail_within(DUET_NO_MEMORY, "%s", who);
}

duet_status sparse_begin(const char *who, duet_dtype type, int64_t rows, int64_t columns, int64_t count,
                         sparse_lists *l)
{
    TRY(check_sizes(who, rows, columns, count));
    *l = (sparse_lists){ .s = calloc(1, sizeof *l->s), .wide = csr_needs_wide(columns, count) };
    if (!l->s) return fail(DUET_NO_MEMORY, "%s: a sparse matrix could not be allocated", who);
    l->s->rows = rows;
    l->s->columns = columns;
    l->s->count = count;
    duet_status s =
        new_list(who, l->wide ? DUET_I64 : DUET_I32, rows + 1 + count, &l->s->pattern, &l->pattern);
    if (s == DUET_OK) s = new_list(who, type, count, &l->s->values, &l->values);
    if (s != DUET_OK) (duet_sparse_free)(&l->s);
    return s;
}

duet_sparse *sparse_done(sparse_lists *l)
{
    csr_declare(l->s->pattern, l->s->rows, l->s->columns);
    return l->s;
}

duet_sparse *sparse_checked(const char *who, sparse_lists *l)
{
    const csr c = { l->pattern, l->s->rows, l->s->columns, l->s->count, l->wide };
    if (csr_check(who, &c) == DUET_OK) return sparse_done(l);
    (duet_sparse_free)(&l->s);
    return NULL;
}

duet_sparse *sparse_with(const duet_sparse *s, duet_matrix *values)
{
    duet_sparse *made = malloc(sizeof *made);
    duet_matrix *pattern = made ? matrix_share(s->pattern->storage, &s->pattern->at, 0) : NULL;
    if (pattern) {
        *made = (duet_sparse){ s->rows, s->columns, s->count, pattern, values };
        return made;
    }
    if (!made) (void)fail(DUET_NO_MEMORY, "a sparse matrix could not be allocated");
    free(made);
    (duet_free)(&values);
    return NULL;
}

void(duet_sparse_free)(duet_sparse **s)
{
    if (!s || !*s) return;
    (duet_free)(&(*s)->pattern);
    (duet_free)(&(*s)->values);
    free(*s);
    *s = NULL;
}

void duet_sparse_created_at(duet_sparse *s, const char *site)
{
    if (!s) return;
    duet_created_at(s->pattern, site);
    duet_created_at(s->values, site);
}

/* ---- reading ---- */

int64_t duet_sparse_rows(const duet_sparse *s) { return s ? s->rows : 0; }
int64_t duet_sparse_columns(const duet_sparse *s) { return s ? s->columns : 0; }
int64_t duet_sparse_count(const duet_sparse *s) { return s ? s->count : 0; }
duet_dtype duet_sparse_type(const duet_sparse *s) { return s ? s->values->at.type : (duet_dtype)0; }
duet_matrix *duet_sparse_values(const duet_sparse *s) { return s ? s->values : NULL; }
const duet_matrix *duet_sparse_pattern(const duet_sparse *s) { return s ? s->pattern : NULL; }

static duet_status read_list(const char *who, const duet_matrix *m, const void **p)
{
    static const char nothing;
    *p = m->count ? (duet_read)(m) : &nothing;
    return *p ? DUET_OK : fail_within(duet_error_status(), "%s", who);
}

duet_status sparse_open(const char *who, const duet_sparse *s, sparse_view *v)
{
    TRY(sparse_check(who, s));
    *v = (sparse_view){ .c = { NULL, s->rows, s->columns, s->count, s->pattern->at.type == DUET_I64 },
                        .type = s->values->at.type,
                        .each = dtypes[s->values->at.type].bytes };
    TRY(read_list(who, s->pattern, &v->c.pattern));
    return read_list(who, s->values, &v->values);
}

duet_status sparse_open_both(const char *who, const duet_sparse *a, const duet_sparse *b, sparse_view *u,
                             sparse_view *v)
{
    TRY(sparse_open(who, a, u));
    TRY(sparse_open(who, b, v));
    if (u->type == v->type) return DUET_OK;
    return fail(DUET_BAD_TYPE, "%s: a and b must have the same element type, not %s and %s", who,
                dtypes[u->type].name, dtypes[v->type].name);
}

/* ---- elements in any order ---- */

static duet_status check_places(const char *who, const coo *c)
{
    for (int64_t k = 0; k < c->count; k++)
        if (c->row[k] < 0 || c->row[k] >= c->rows || c->column[k] < 0 || c->column[k] >= c->columns)
            return fail(DUET_BAD_ARGUMENT,
                        "%s: element %lld is in row %lld and column %lld, which is out of bounds; the matrix "
                        "has %lld "
                        "rows and %lld columns",
                        who, (long long)k, (long long)c->row[k], (long long)c->column[k], (long long)c->rows,
                        (long long)c->columns);
    return DUET_OK;
}

/* A counting sort of the elements order[0 .. n - 1], or of 0 .. n - 1 if it is NULL, by key[element],
 * which is less than `keys`. Equal keys keep their order. first has keys + 1 items. */
static void count_keys(const int64_t *key, int64_t keys, const int64_t *order, int64_t n, int64_t *first,
                       int64_t *to)
{
    memset(first, 0, (size_t)(keys + 1) * sizeof *first);
    for (int64_t k = 0; k < n; k++) first[key[k] + 1]++;
    for (int64_t i = 0; i < keys; i++) first[i + 1] += first[i];
    for (int64_t k = 0; k < n; k++) {
        const int64_t element = order ? order[k] : k;
        to[first[key[element]]++] = element;
    }
}

/* The same for 0 .. n - 1 by merging, for keys of any size. room has n items. */
static void merge_keys(const int64_t *key, int64_t n, int64_t *room, int64_t *to)
{
    for (int64_t k = 0; k < n; k++) to[k] = k;
    for (int64_t run = 1; run < n; run *= 2) {
        for (int64_t start = 0; start < n; start += 2 * run) {
            int64_t i = start, j = smaller(start + run, n), k = start;
            const int64_t middle = j, end = smaller(start + 2 * run, n);
            while (k < end)
                room[k++] = j == end || (i < middle && key[to[i]] <= key[to[j]]) ? to[i++] : to[j++];
        }
        memcpy(to, room, (size_t)n * sizeof *to);
    }
}

/* order: the elements by rows, and within a row by columns. */
static bool same_place(const coo *c, const int64_t *order, int64_t k)
{
    const int64_t a = order[k - 1], b = order[k];
    return c->row[a] == c->row[b] && c->column[a] == c->column[b];
}

static duet_status count_places(const char *who, const coo *c, const int64_t *order, bool sum,
                                int64_t *places)
{
    *places = c->count > 0;
    for (int64_t k = 1; k < c->count; k++) {
        const bool same = same_place(c, order, k);
        if (same && !sum)
            return fail(DUET_BAD_ARGUMENT,
                        "%s: elements %lld and %lld are at the same place, row %lld and column %lld; pass "
                        "DUET_DUPLICATES_SUM to add them",
                        who, (long long)order[k - 1], (long long)order[k], (long long)c->row[order[k]],
                        (long long)c->column[order[k]]);
        *places += !same;
    }
    return DUET_OK;
}

static void put_elements(const coo *c, const int64_t *order, sparse_lists *l)
{
    const size_t each = dtypes[c->type].bytes;
    const char *from = c->values;
    int64_t place = -1, row = -1;
    for (int64_t k = 0; k < c->count; k++) {
        const int64_t e = order[k];
        if (k && same_place(c, order, k)) {
            sparse_add_element(c->type, (char *)l->values + place * (int64_t)each, from + e * (int64_t)each);
            continue;
        }
        place++;
        while (row < c->row[e]) csr_put(l->pattern, l->wide, ++row, place);
        csr_put(l->pattern, l->wide, c->rows + 1 + place, c->column[e]);
        memcpy((char *)l->values + place * (int64_t)each, from + e * (int64_t)each, each);
    }
    while (row < c->rows) csr_put(l->pattern, l->wide, ++row, place + 1);
}

static duet_status from_sorted(const char *who, const coo *c, const int64_t *order, bool sum, sparse_lists *l)
{
    int64_t places;
    TRY(count_places(who, c, order, sum, &places));
    TRY(sparse_begin(who, c->type, c->rows, c->columns, places, l));
    put_elements(c, order, l);
    return DUET_OK;
}

duet_sparse *sparse_from_coo(const char *who, const coo *c, bool sum_duplicates)
{
    sparse_lists l = { 0 };
    if (check_sizes(who, c->rows, c->columns, c->count) != DUET_OK || check_places(who, c) != DUET_OK)
        return NULL;
    const bool counts =
        c->columns <= larger(c->rows, 4 * c->count); /* else too many columns would be counted */
    int64_t *by_column = sparse_allocate(who, c->count, sizeof *by_column),
            *order = by_column ? sparse_allocate(who, c->count, sizeof *order) : NULL,
            *first = order ? sparse_allocate(who, (counts ? larger(c->rows, c->columns) : c->rows) + 1,
                                             sizeof *first)
                           : NULL;
    duet_status s = first ? DUET_OK : DUET_NO_MEMORY;
    if (s == DUET_OK) {
        if (counts) count_keys(c->column, c->columns, NULL, c->count, first, by_column);
        else merge_keys(c->column, c->count, order, by_column);
        count_keys(c->row, c->rows, by_column, c->count, first, order);
        s = from_sorted(who, c, order, sum_duplicates, &l);
    }
    sparse_release(by_column);
    sparse_release(order);
    sparse_release(first);
    return s == DUET_OK ? sparse_done(&l) : NULL;
}
