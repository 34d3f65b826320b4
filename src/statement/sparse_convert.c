/* sparse_convert.c - sparse matrices from lists, from dense matrices, with other values, and back to
 * lists. All of it works on the host. */
#include "dtype.h"
#include "index_ops.h"
#include "sparse.h"
#include "statement.h"
#include "status.h"
#include <stdlib.h>
#include <string.h>

/* ---- lists of the user ---- */

static duet_status check_list(const char *who, const char *name, const duet_matrix *m)
{
    char text[SHAPE_TEXT];
    if (!m) return fail(DUET_BAD_ARGUMENT, "%s: %s must not be NULL", who, name);
    TRY(matrix_check(who, m));
    if (m->at.rank == 1) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "%s(%s: %s): %s must have one axis", who, name,
                shape_text(text, m->at.type, m->at.rank, m->at.size), name);
}

static duet_status check_indices(const char *who, const char *name, const duet_matrix *m)
{
    TRY(check_list(who, name, m));
    if (dtype_is_integer(m->at.type)) return DUET_OK;
    return fail(DUET_BAD_TYPE, "%s: %s must have integer elements, not %s", who, name,
                dtypes[m->at.type].name);
}

static duet_status check_type(const char *who, const char *name, const duet_matrix *m)
{
    if (dtype_is_blas(m->at.type)) return DUET_OK;
    return fail(DUET_BAD_TYPE, "%s: %s must be f32, f64, c64 or c128, not %s; convert it with duet_cast", who,
                name, dtypes[m->at.type].name);
}

static duet_status check_count(const char *who, const char *name, const duet_matrix *m, int64_t count)
{
    if (m->count == count) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "%s: %s must have %lld elements, not %lld", who, name, (long long)count,
                (long long)m->count);
}

static duet_status host_elements(const char *who, const duet_matrix *m, const void **p)
{
    static const char nothing;
    *p = m->count ? (duet_read)(m) : &nothing;
    return *p ? DUET_OK : fail_within(duet_error_status(), "%s", who);
}

static duet_status read_indices(const char *who, const duet_matrix *m, int64_t **list)
{
    const void *p;
    TRY(host_elements(who, m, &p));
    if (!(*list = sparse_allocate(who, m->count, sizeof **list))) return DUET_NO_MEMORY;
    const ptrdiff_t each = (ptrdiff_t)dtypes[m->at.type].bytes * m->at.stride[0];
    for (int64_t k = 0; k < m->count; k++) (*list)[k] = index_at((const char *)p + k * each, m->at.type, 0);
    return DUET_OK;
}

static duet_status copy_values(const char *who, const duet_matrix *m, void *to)
{
    const void *p;
    TRY(host_elements(who, m, &p));
    const size_t each = dtypes[m->at.type].bytes;
    const ptrdiff_t apart = (ptrdiff_t)each * m->at.stride[0];
    for (int64_t k = 0; k < m->count; k++)
        memcpy((char *)to + k * (int64_t)each, (const char *)p + k * apart, each);
    return DUET_OK;
}

/* ---- from rows, columns and values ---- */

static duet_status check_coo(const char *who, const duet_matrix *row, const duet_matrix *column,
                             const duet_matrix *values)
{
    TRY(check_indices(who, "row", row));
    TRY(check_indices(who, "column", column));
    TRY(check_list(who, "values", values));
    TRY(check_type(who, "values", values));
    TRY(check_count(who, "column", column, row->count));
    return check_count(who, "values", values, row->count);
}

duet_sparse *(duet_sparse_from_coo)(int64_t rows, int64_t columns, const duet_matrix *row,
                                    const duet_matrix *column, const duet_matrix *values,
                                    duet_duplicates duplicates)
{
    const char *who = "duet_sparse_from_coo";
    int64_t *r = NULL, *c = NULL;
    void *v = NULL;
    duet_sparse *made = NULL;
    if (check_coo(who, row, column, values) != DUET_OK) return NULL;
    if ((unsigned)duplicates > DUET_DUPLICATES_SUM) {
        (void)fail(DUET_BAD_ARGUMENT, "%s: duplicates (%d) is not a duet_duplicates", who, (int)duplicates);
        return NULL;
    }
    if (read_indices(who, row, &r) == DUET_OK && read_indices(who, column, &c) == DUET_OK &&
        (v = sparse_allocate(who, values->count, dtypes[values->at.type].bytes)) &&
        copy_values(who, values, v) == DUET_OK) {
        const coo list = { rows, columns, row->count, r, c, v, values->at.type };
        made = sparse_from_coo(who, &list, duplicates == DUET_DUPLICATES_SUM);
    }
    sparse_release(r);
    sparse_release(c);
    sparse_release(v);
    return made;
}

/* ---- from compressed rows ---- */

static duet_status check_csr(const char *who, int64_t rows, const duet_matrix *offsets,
                             const duet_matrix *column, const duet_matrix *values)
{
    TRY(check_indices(who, "offsets", offsets));
    TRY(check_indices(who, "column", column));
    TRY(check_list(who, "values", values));
    TRY(check_type(who, "values", values));
    if (rows >= 0 && rows < INT64_MAX) TRY(check_count(who, "offsets", offsets, rows + 1));
    return check_count(who, "values", values, column->count);
}

/* Copies indices into the pattern, from element `at` on. Those that i32 does not hold are out of bounds there. */
static duet_status put_indices(const char *who, const char *name, const duet_matrix *m, sparse_lists *l,
                               int64_t at)
{
    int64_t *list = NULL;
    TRY(read_indices(who, m, &list));
    duet_status s = DUET_OK;
    for (int64_t i = 0; s == DUET_OK && i < m->count; i++)
        if (l->wide || (list[i] >= 0 && list[i] <= INT32_MAX)) csr_put(l->pattern, l->wide, at + i, list[i]);
        else
            s = fail(DUET_BAD_ARGUMENT, "%s: element %lld of %s (%lld) is out of bounds", who, (long long)i,
                     name, (long long)list[i]);
    sparse_release(list);
    return s;
}

static duet_status put_csr(const char *who, const duet_matrix *offsets, const duet_matrix *column,
                           const duet_matrix *values, sparse_lists *l)
{
    TRY(put_indices(who, "offsets", offsets, l, 0));
    TRY(put_indices(who, "column", column, l, offsets->count));
    return copy_values(who, values, l->values);
}

duet_sparse *(duet_sparse_from_csr)(int64_t rows, int64_t columns, const duet_matrix *offsets,
                                    const duet_matrix *column, const duet_matrix *values)
{
    const char *who = "duet_sparse_from_csr";
    sparse_lists l;
    if (check_csr(who, rows, offsets, column, values) != DUET_OK ||
        sparse_begin(who, values->at.type, rows, columns, column->count, &l) != DUET_OK)
        return NULL;
    if (put_csr(who, offsets, column, values, &l) == DUET_OK) return sparse_checked(who, &l);
    (duet_sparse_free)(&l.s);
    return NULL;
}

/* ---- from a dense matrix ---- */

static bool is_nonzero(duet_dtype type, const void *p)
{
    const bool two = dtype_is_complex(type);
    if (dtype_part(type) == DUET_F32)
        return ((const float *)p)[0] != 0 || (two && ((const float *)p)[1] != 0);
    return ((const double *)p)[0] != 0 || (two && ((const double *)p)[1] != 0);
}

static const char *element_of(const duet_matrix *m, const void *p, int64_t i, int64_t j)
{
    return (const char *)p + (i * m->at.stride[0] + j * m->at.stride[1]) * (int64_t)dtypes[m->at.type].bytes;
}

static void put_dense(const duet_matrix *m, const void *p, sparse_lists *l)
{
    const size_t each = dtypes[m->at.type].bytes;
    int64_t k = 0;
    csr_put(l->pattern, l->wide, 0, 0);
    for (int64_t i = 0; i < m->at.size[0]; i++) {
        for (int64_t j = 0; j < m->at.size[1]; j++) {
            const char *x = element_of(m, p, i, j);
            if (!is_nonzero(m->at.type, x)) continue;
            csr_put(l->pattern, l->wide, m->at.size[0] + 1 + k, j);
            memcpy((char *)l->values + k++ * (int64_t)each, x, each);
        }
        csr_put(l->pattern, l->wide, i + 1, k);
    }
}

static duet_status from_dense(const char *who, const duet_matrix *m, sparse_lists *l)
{
    char text[SHAPE_TEXT];
    const void *p;
    int64_t n = 0;
    TRY(matrix_check(who, m));
    if (m->at.rank != 2)
        return fail(DUET_BAD_SHAPE, "%s(m: %s): m must have 2 axes", who,
                    shape_text(text, m->at.type, m->at.rank, m->at.size));
    TRY(check_type(who, "m", m));
    TRY(host_elements(who, m, &p));
    for (int64_t i = 0; m->count && i < m->at.size[0]; i++)
        for (int64_t j = 0; j < m->at.size[1]; j++) n += is_nonzero(m->at.type, element_of(m, p, i, j));
    TRY(sparse_begin(who, m->at.type, m->at.size[0], m->at.size[1], n, l));
    put_dense(m, p, l);
    return DUET_OK;
}

duet_sparse *(duet_sparse_from_dense)(const duet_matrix *m)
{
    sparse_lists l;
    return from_dense("duet_sparse_from_dense", m, &l) == DUET_OK ? sparse_done(&l) : NULL;
}

/* ---- other values ---- */

duet_sparse *(duet_sparse_copy)(const duet_sparse *s)
{
    const char *who = "duet_sparse_copy";
    sparse_view v;
    if (sparse_open(who, s, &v) != DUET_OK) return NULL;
    duet_matrix *values = matrix_new(who, v.type, 1, &s->count);
    void *p = values ? (duet_overwrite)(values) : NULL;
    if (!p && (!values || s->count)) {
        (duet_free)(&values);
        return NULL;
    }
    if (s->count) memcpy(p, v.values, (size_t)s->count * v.each);
    return sparse_with(s, values);
}

static duet_status check_values(const char *who, const duet_sparse *s, duet_expr e)
{
    char text[SPARSE_TEXT];
    formula f;
    TRY(sparse_check(who, s));
    TRY(formula_of(e, who, &f));
    if (duet_expr_rank(e) != 1 || duet_expr_size(e, 0) != s->count)
        return fail(DUET_BAD_SHAPE, "%s(s: %s): e must have one axis with %lld elements", who,
                    sparse_text(text, s), (long long)s->count);
    if (dtype_is_blas(duet_expr_type(e))) return DUET_OK;
    return fail(DUET_BAD_TYPE, "%s: e must be f32, f64, c64 or c128, not %s", who,
                dtypes[duet_expr_type(e)].name);
}

duet_sparse *duet_sparse_with_values_at(const duet_sparse *s, duet_expr e, const char *site)
{
    const char *who = "duet_sparse_with_values";
    const duet_status why = check_values(who, s, e);
    duet_matrix *values = why == DUET_OK ? statement_result(who, e) : NULL;
    if (!values) {
        if (site) duet_error_at(site);
        formula_spend(e, site);
        return NULL;
    }
    duet_recording *r = recording_pause();
    const duet_status done = statement_set(who, values, e, site);
    recording_resume(r);
    if (done == DUET_OK) return sparse_with(s, values);
    (duet_free)(&values);
    return NULL;
}
duet_sparse *(duet_sparse_with_values)(const duet_sparse *s, duet_expr e)
{
    return duet_sparse_with_values_at(s, e, NULL);
}

/* ---- to lists ---- */

/* A new list for *m, unless m is NULL. */
static duet_status new_list(const char *who, duet_dtype type, int64_t n, duet_matrix **m, void **p)
{
    *p = NULL;
    if (!m) return DUET_OK;
    *m = matrix_new(who, type, 1, &n);
    if (*m && (!n || (*p = (duet_overwrite)(*m)))) return DUET_OK;
    return DUET_NO_MEMORY;
}

/* The lists in front of the column and the values: the offsets, or the row of each element. */
static duet_status to_lists(const char *who, const duet_sparse *s, bool offsets, duet_matrix **first,
                            duet_matrix **column, duet_matrix **values)
{
    sparse_view v;
    void *a, *b, *c;
    TRY(sparse_open(who, s, &v));
    const duet_dtype index = v.c.wide ? DUET_I64 : DUET_I32;
    TRY(new_list(who, index, offsets ? s->rows + 1 : s->count, first, &a));
    TRY(new_list(who, index, s->count, column, &b));
    TRY(new_list(who, v.type, s->count, values, &c));
    const size_t each = dtypes[index].bytes;
    if (a && offsets) memcpy(a, v.c.pattern, (size_t)(s->rows + 1) * each);
    for (int64_t r = 0; a && !offsets && r < s->rows; r++)
        for (int64_t k = csr_offset(&v.c, r); k < csr_offset(&v.c, r + 1); k++) csr_put(a, v.c.wide, k, r);
    if (b) memcpy(b, (const char *)v.c.pattern + (size_t)(s->rows + 1) * each, (size_t)s->count * each);
    if (c) memcpy(c, v.values, (size_t)s->count * v.each);
    return DUET_OK;
}

static duet_status all_lists(const char *who, const duet_sparse *s, bool offsets, duet_matrix **first,
                             duet_matrix **column, duet_matrix **values)
{
    duet_matrix **const all[] = { first, column, values };
    duet_matrix *made[3] = { NULL };
    const duet_status status = to_lists(who, s, offsets, first ? &made[0] : NULL, column ? &made[1] : NULL,
                                        values ? &made[2] : NULL);
    for (int i = 0; i < 3; i++) {
        if (status != DUET_OK) (duet_free)(&made[i]);
        if (all[i]) *all[i] = made[i];
    }
    return status;
}

duet_status(duet_sparse_to_coo)(const duet_sparse *s, duet_matrix **row, duet_matrix **column,
                                duet_matrix **values)
{
    return all_lists("duet_sparse_to_coo", s, false, row, column, values);
}

duet_status(duet_sparse_to_csr)(const duet_sparse *s, duet_matrix **offsets, duet_matrix **column,
                                duet_matrix **values)
{
    return all_lists("duet_sparse_to_csr", s, true, offsets, column, values);
}
