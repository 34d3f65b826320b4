/* create.c - new matrices with elements: results of formulas, constants, sequences and copies. */
#include "backend.h"
#include "dtype.h"
#include "expr.h"
#include "group_statement.h"
#include "matrix.h"
#include "statement.h"
#include "status.h"
#include <math.h>
#include <string.h>

/* ---- results of formulas ---- */

duet_matrix *statement_result(const char *who, duet_expr e)
{
    formula f;
    if (formula_of(e, who, &f) != DUET_OK) return NULL;
    const node *root = &f.nodes[f.count - 1];
    if (any_groups() && group_concerns(NULL, 0, &f)) return group_result(who, &f);
    return matrix_new(who, (duet_dtype)root->type, root->rank, root->size);
}

static duet_matrix *evaluated(const char *who, duet_expr e, const char *site)
{
    duet_matrix *m = statement_result(who, e);
    if (!m) {
        if (site) duet_error_at(site);
        formula_spend(e, site);
        return NULL;
    }
    duet_created_at(m, site);
    if (statement_set(who, m, e, site) != DUET_OK) duet_free(&m);
    return m;
}

duet_matrix *duet_eval_at(duet_expr e, const char *site) { return evaluated("duet_eval", e, site); }
duet_matrix *(duet_eval)(duet_expr e) { return duet_eval_at(e, NULL); }

/* ---- items ---- */

static bool has_one_element(duet_expr e)
{
    bool one = true;
    for (int a = 0; a < duet_expr_rank(e); a++) one &= duet_expr_size(e, a) == 1;
    return one;
}

static duet_status check_item(const duet_item_entry *i)
{
    char text[SHAPE_TEXT];
    int64_t size[DUET_RANK_MAX];
    formula f;
    TRY(formula_of(i->e, "duet_item", &f));
    const duet_dtype from = duet_expr_type(i->e);
    if (!i->x) return fail(DUET_BAD_ARGUMENT, "duet_item: x must not be NULL");
    if ((unsigned)i->type >= DUET_DTYPE_COUNT)
        return fail(DUET_BAD_ARGUMENT, "duet_item: type (%d) is not an element type", (int)i->type);
    for (int a = 0; a < duet_expr_rank(i->e); a++) size[a] = duet_expr_size(i->e, a);
    shape_text(text, from, duet_expr_rank(i->e), size);
    if (!has_one_element(i->e))
        return fail(DUET_BAD_SHAPE, "duet_item(e: %s): e must have one element", text);
    if (dtype_is_complex(from) && !dtype_is_complex(i->type))
        return fail(
            DUET_BAD_TYPE,
            "duet_item(e: %s): a complex e cannot be stored as %s; use duet_real, duet_imag or duet_abs",
            text, dtypes[i->type].name);
    return DUET_OK;
}

static duet_status check_items(const duet_item_entry *list, int count)
{
    if (!list) return fail(DUET_BAD_ARGUMENT, "duet_items: the list must not be NULL");
    if (count < 1 || count > STATEMENTS)
        return fail(DUET_BAD_ARGUMENT, "duet_items: the number of formulas (%d) must be from 1 to %d", count,
                    STATEMENTS);
    for (int k = 0; k < count; k++) {
        const duet_status s = check_item(&list[k]);
        if (s == DUET_OK) continue;
        return count > 1 ? fail_within(s, "item %d", k + 1) : s;
    }
    return DUET_OK;
}

static duet_status evaluate_items(duet_matrix **m, const duet_item_entry *list, int count, const char *site)
{
    static const int64_t ones[DUET_RANK_MAX] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    duet_assignment a[STATEMENTS];
    const void *p[STATEMENTS];
    duet_status s = DUET_OK;
    for (int k = 0; k < count; k++) {
        m[k] = matrix_new("duet_item", list[k].type, duet_expr_rank(list[k].e), ones);
        if (!m[k]) s = DUET_NO_MEMORY;
    }
    if (s != DUET_OK) return s;
    for (int k = 0; k < count; k++)
        a[k] = (duet_assignment){ m[k], duet_cast_at(list[k].e, list[k].type, site) };
    if (count == 1) TRY(statement_set("duet_item", m[0], a[0].value, site));
    else TRY(statement_set_all("duet_item", "item", a, count, site));
    for (int k = 0; k < count; k++)
        if (!(p[k] = (duet_read)(m[k]))) return duet_error_status();
    for (int k = 0; k < count; k++) memcpy(list[k].x, p[k], dtypes[list[k].type].bytes);
    return DUET_OK;
}

duet_status duet_items_at(const duet_item_entry *list, int count, const char *site)
{
    duet_matrix *m[STATEMENTS] = { NULL };
    duet_status s = check_items(list, count);
    if (s == DUET_OK) {
        duet_recording *r = recording_pause();
        s = evaluate_items(m, list, count, site);
        recording_resume(r);
        for (int k = 0; k < count; k++) (duet_free)(&m[k]);
    }
    for (int k = 0; list && k < count; k++) formula_spend(list[k].e, site);
    return s != DUET_OK && site ? fail_at(s, site) : s;
}
duet_status(duet_items)(const duet_item_entry *list, int count) { return duet_items_at(list, count, NULL); }

duet_status duet_item_at(duet_expr e, duet_dtype type, void *x, const char *site)
{
    return duet_items_at(&(const duet_item_entry){ e, type, x }, 1, site);
}
duet_status(duet_item)(duet_expr e, duet_dtype type, void *x) { return duet_item_at(e, type, x, NULL); }

/* ---- constants and copies ---- */

/* Returns m; or, if the statement that filled it failed, frees it and returns NULL. */
static duet_matrix *filled(duet_matrix *m, duet_status s)
{
    if (s != DUET_OK) duet_free(&m);
    return m;
}

static duet_matrix *full(const char *who, duet_dtype type, duet_expr x, int rank, const int64_t *size)
{
    duet_matrix *m = matrix_new(who, type, rank, size);
    if (!m) {
        formula_spend(x, NULL);
        return NULL;
    }
    duet_recording *r = recording_pause();
    m = filled(m, statement_set(who, m, x, NULL));
    recording_resume(r);
    return m;
}

duet_matrix *(duet_zeros_shape)(duet_dtype type, int rank, const int64_t *size)
{
    return matrix_new("duet_zeros", type, rank, size);
}

duet_matrix *(duet_full_shape)(duet_dtype type, duet_expr x, int rank, const int64_t *size)
{
    return full("duet_full", type, x, rank, size);
}

duet_matrix *(duet_ones_shape)(duet_dtype type, int rank, const int64_t *size)
{
    return full("duet_ones", type, duet_of_number(1), rank, size);
}

duet_matrix *(duet_copy)(const duet_matrix *m) { return evaluated("duet_copy", duet_of_matrix(m), NULL); }

duet_matrix *(duet_eye)(duet_dtype type, int64_t n)
{
    duet_matrix *m = matrix_new("duet_eye", type, 2, (const int64_t[]){ n, n });
    if (!m) return NULL;
    duet_matrix *diagonal = (duet_diagonal)(m, 0);
    duet_status s = DUET_NO_MEMORY;
    duet_recording *r = recording_pause();
    if (diagonal) s = statement_set("duet_eye", diagonal, duet_of_number(1), NULL);
    recording_resume(r);
    duet_free(&diagonal);
    return filled(m, s);
}

/* ---- sequences ---- */

/* start + i step for the first n integers i; the last number is `last`. */
static duet_matrix *sequence(const char *who, duet_dtype type, double start, double by, int64_t n,
                             double last)
{
    duet_matrix *m = matrix_new(who, type, 1, &n);
    duet_matrix *f64 = m ? matrix_new(who, DUET_F64, 1, &n) : NULL;
    double *x = f64 ? (duet_overwrite)(f64) : NULL;
    for (int64_t i = 0; x && i < n; i++) x[i] = i + 1 == n ? last : start + (double)i * by;
    duet_status s = DUET_NO_MEMORY;
    duet_recording *r = recording_pause();
    if (x) s = statement_set(who, m, duet_cast_at(duet_of_matrix(f64), type, NULL), NULL);
    recording_resume(r);
    duet_free(&f64);
    return filled(m, s);
}

duet_matrix *(duet_arange)(duet_dtype type, double start, double stop, double by)
{
    IN_DEFAULT_FP_ENVIRONMENT;
    const double n = ceil((stop - start) / by);
    if (by == 0 || !isfinite(start) || !isfinite(stop) || !isfinite(by)) {
        fail(DUET_BAD_ARGUMENT,
             "duet_arange(%g, %g, %g): the bounds must be finite, and the step must not be 0", start, stop,
             by);
        return NULL;
    }
    if (!(n < 0x1p53)) {
        fail(DUET_BAD_SHAPE, "duet_arange(%g, %g, %g): there are too many numbers", start, stop, by);
        return NULL;
    }
    const int64_t count = n > 0 ? (int64_t)n : 0;
    return sequence("duet_arange", type, start, by, count, start + (double)(count - 1) * by);
}

duet_matrix *(duet_linspace)(duet_dtype type, double start, double stop, int64_t n)
{
    IN_DEFAULT_FP_ENVIRONMENT;
    if (n < 0 || !isfinite(start) || !isfinite(stop)) {
        fail(DUET_BAD_ARGUMENT, "duet_linspace(%g, %g, %lld): the bounds must be finite, and n not negative",
             start, stop, (long long)n);
        return NULL;
    }
    return sequence("duet_linspace", type, start, n > 1 ? (stop - start) / (double)(n - 1) : 0, n,
                    n > 1 ? stop : start);
}

/* ---- arrays of C ---- */

duet_matrix *(duet_from_array_shape)(const void *array, duet_dtype type, int rank, const int64_t *size)
{
    duet_matrix *from = matrix_wrap("duet_from_array", (void *)(uintptr_t)array, type, rank, size);
    if (!from) return NULL;
    duet_matrix *m = matrix_new("duet_from_array", type, rank, size);
    void *to = m ? (duet_overwrite)(m) : NULL;
    if (to) memcpy(to, array, (size_t)duet_count(from) * dtypes[type].bytes);
    else duet_free(&m);
    duet_free(&from);
    return m;
}

duet_status(duet_to_array)(const duet_matrix *m, void *array)
{
    TRY(matrix_check("duet_to_array", m));
    duet_matrix *to = matrix_wrap("duet_to_array", array, m->at.type, m->at.rank, m->at.size);
    if (!to) return duet_error_status();
    duet_recording *r = recording_pause();
    duet_status s = statement_set("duet_to_array", to, duet_of_matrix(m), NULL);
    recording_resume(r);
    if (s == DUET_OK && !(duet_read)(to)) s = duet_error_status();
    duet_free(&to);
    return s;
}
