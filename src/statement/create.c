/* create.c - new matrices with elements: results of formulas, constants, sequences and copies. */
#include "backend.h"
#include "dtype.h"
#include "expr.h"
#include "matrix.h"
#include "status.h"
#include <math.h>
#include <string.h>

/* ---- results of formulas ---- */

/* A new matrix for the result of e; NULL: e or the allocation failed, as the thread's text says. */
static duet_matrix *result_for(const char *who, duet_expr e)
{
    int64_t size[DUET_RANK_MAX];
    const int rank = duet_expr_rank(e);
    formula f;
    if (formula_of(e, who, &f) != DUET_OK) return NULL;
    for (int a = 0; a < rank; a++) size[a] = duet_expr_size(e, a);
    return (duet_new_shape)(duet_expr_type(e), rank, size);
}

duet_matrix *duet_eval_at(duet_expr e, const char *site)
{
    duet_matrix *m = result_for("duet_eval", e);
    if (!m) {
        if (site) duet_error_at(site);
        formula_spend(e, site);
        return NULL;
    }
    duet_created_at(m, site);
    if (duet_set_at(m, e, site) != DUET_OK) duet_free(&m);
    return m;
}

duet_matrix *(duet_eval)(duet_expr e) { return duet_eval_at(e, NULL); }

static bool has_one_element(duet_expr e)
{
    bool one = true;
    for (int a = 0; a < duet_expr_rank(e); a++) one &= duet_expr_size(e, a) == 1;
    return one;
}

static duet_status check_item(duet_expr e, duet_dtype type, const void *x)
{
    char text[SHAPE_TEXT];
    int64_t size[DUET_RANK_MAX];
    TRY(duet_expr_status(e));
    if (!x) return fail(DUET_BAD_ARGUMENT, "duet_item: x must not be NULL");
    if ((unsigned)type >= DUET_DTYPE_COUNT)
        return fail(DUET_BAD_ARGUMENT, "duet_item: type (%d) is not an element type", (int)type);
    if (has_one_element(e)) return DUET_OK;
    for (int a = 0; a < duet_expr_rank(e); a++) size[a] = duet_expr_size(e, a);
    return fail(DUET_BAD_SHAPE, "duet_item(e: %s): e must have one element",
                shape_text(text, duet_expr_type(e), duet_expr_rank(e), size));
}

static duet_status evaluate_item(duet_expr e, duet_dtype type, void *x, const char *site)
{
    duet_matrix *m =
        (duet_new_shape)(type, duet_expr_rank(e), (const int64_t[DUET_RANK_MAX]){ 1, 1, 1, 1, 1, 1, 1, 1 });
    if (!m) return DUET_NO_MEMORY;
    duet_status s = duet_set_at(m, duet_cast_at(e, type, site), site);
    const void *p = s == DUET_OK ? (duet_read)(m) : NULL;
    if (p) memcpy(x, p, dtypes[type].bytes);
    else if (s == DUET_OK) s = DUET_DEVICE_ERROR;
    duet_free(&m);
    return s;
}

duet_status duet_item_at(duet_expr e, duet_dtype type, void *x, const char *site)
{
    const duet_status s = check_item(e, type, x);
    if (s == DUET_OK) return evaluate_item(e, type, x, site);
    formula_spend(e, site);
    return site ? fail_at(s, site) : s;
}

duet_status(duet_item)(duet_expr e, duet_dtype type, void *x) { return duet_item_at(e, type, x, NULL); }

/* ---- constants and copies ---- */

/* Returns m; or, if the statement that filled it failed, frees it and returns NULL. */
static duet_matrix *filled(duet_matrix *m, duet_status s)
{
    if (s != DUET_OK) duet_free(&m);
    return m;
}

duet_matrix *(duet_zeros_shape)(duet_dtype type, int rank, const int64_t *size)
{
    return (duet_new_shape)(type, rank, size);
}

duet_matrix *(duet_full_shape)(duet_dtype type, duet_expr value, int rank, const int64_t *size)
{
    duet_matrix *m = (duet_new_shape)(type, rank, size);
    if (m) return filled(m, duet_set_at(m, value, NULL));
    formula_spend(value, NULL);
    return NULL;
}

duet_matrix *(duet_ones_shape)(duet_dtype type, int rank, const int64_t *size)
{
    return (duet_full_shape)(type, duet_of_number(1), rank, size);
}

duet_matrix *(duet_copy)(const duet_matrix *m) { return duet_eval_at(duet_of_matrix(m), NULL); }

duet_matrix *(duet_eye)(duet_dtype type, int64_t n)
{
    duet_matrix *m = (duet_new_shape)(type, 2, (const int64_t[]){ n, n });
    if (!m) return NULL;
    duet_matrix *diagonal = (duet_diagonal)(m, 0);
    duet_status s = DUET_NO_MEMORY;
    if (diagonal) s = duet_set_at(diagonal, duet_of_number(1), NULL);
    duet_free(&diagonal);
    return filled(m, s);
}

/* ---- sequences ---- */

/* start + i step for the first n integers i; the last number is `last`. */
static duet_matrix *sequence(duet_dtype type, double start, double by, int64_t n, double last)
{
    duet_matrix *m = (duet_new_shape)(type, 1, &n), *f64 = (duet_new_shape)(DUET_F64, 1, &n);
    double *x = m && f64 ? (duet_overwrite)(f64) : NULL;
    for (int64_t i = 0; x && i < n; i++) x[i] = i + 1 == n ? last : start + (double)i * by;
    const bool ok = x || (m && f64 && n == 0);
    m = filled(m, ok ? duet_set_at(m, duet_cast_at(duet_of_matrix(f64), type, NULL), NULL) : DUET_NO_MEMORY);
    duet_free(&f64);
    return m;
}

duet_matrix *(duet_arange)(duet_dtype type, double start, double stop, double by)
{
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
    return sequence(type, start, by, count, start + (double)(count - 1) * by);
}

duet_matrix *(duet_linspace)(duet_dtype type, double start, double stop, int64_t n)
{
    if (n < 0 || !isfinite(start) || !isfinite(stop)) {
        fail(DUET_BAD_ARGUMENT, "duet_linspace(%g, %g, %lld): the bounds must be finite, and n not negative",
             start, stop, (long long)n);
        return NULL;
    }
    return sequence(type, start, n > 1 ? (stop - start) / (double)(n - 1) : 0, n, n > 1 ? stop : start);
}

/* ---- arrays of C ---- */

duet_matrix *(duet_from_array_shape)(const void *array, duet_dtype type, int rank, const int64_t *size)
{
    duet_matrix *from = (duet_wrap_shape)((void *)(uintptr_t)array, type, rank, size);
    if (!from) {
        fail_within(DUET_BAD_ARGUMENT, "duet_from_array");
        return NULL;
    }
    duet_matrix *m = (duet_new_shape)(type, rank, size);
    void *to = m ? (duet_overwrite)(m) : NULL;
    if (to) memcpy(to, array, (size_t)duet_count(from) * dtypes[type].bytes);
    if (m && !to && duet_count(from)) duet_free(&m);
    duet_free(&from);
    return m;
}

duet_status(duet_to_array)(const duet_matrix *m, void *array)
{
    TRY(matrix_check("duet_to_array", m));
    duet_matrix *to = (duet_wrap_shape)(array, m->at.type, m->at.rank, m->at.size);
    if (!to) return fail_within(DUET_BAD_ARGUMENT, "duet_to_array");
    duet_status s = duet_set_on_at(DUET_AUTO, to, duet_of_matrix(m), NULL);
    if (s == DUET_OK && !(duet_read)(to) && duet_count(to)) s = DUET_DEVICE_ERROR;
    duet_free(&to);
    return s;
}
