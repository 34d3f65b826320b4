/* print.c - duet_print: evaluates formulas, and prints the results with texts, matrices and numbers. */
#include "expr.h"
#include "matrix.h"
#include "statement.h"
#include "status.h"

static const char who[] = "duet_print";

/* ---- checks, before anything is evaluated ---- */

static duet_status check_item(const duet_printed *i)
{
    switch (i->kind) {
    case DUET_PRINTED_TEXT:
        return i->text ? DUET_OK : fail(DUET_BAD_ARGUMENT, "%s: a text must not be NULL", who);
    case DUET_PRINTED_MATRIX: return matrix_check(who, i->m);
    case DUET_PRINTED_FORMULA: return DUET_OK;
    case DUET_PRINTED_NUMBER:
        if (i->type == DUET_F32 || i->type == DUET_F64 || i->type == DUET_I64 || i->type == DUET_U64)
            return DUET_OK;
        return fail(DUET_BAD_ARGUMENT, "%s: type (%d) must be DUET_F32, DUET_F64, DUET_I64 or DUET_U64", who,
                    (int)i->type);
    }
    return fail(DUET_BAD_ARGUMENT, "%s: kind (%d) is not a duet_printed_kind", who, (int)i->kind);
}

static duet_status check(FILE *out, const duet_printed *list, int count)
{
    if (!out) return fail(DUET_BAD_ARGUMENT, "%s: out must not be NULL", who);
    if (!list) return fail(DUET_BAD_ARGUMENT, "%s: the list must not be NULL", who);
    if (count < 1 || count > STATEMENTS)
        return fail(DUET_BAD_ARGUMENT, "%s: the number of items (%d) must be from 1 to %d", who, count,
                    STATEMENTS);
    for (int k = 0; k < count; k++) TRY(check_item(&list[k]));
    return DUET_OK;
}

/* ---- formulas ---- */

/* The results of the formulas of a list, in order. */
typedef struct results {
    duet_matrix *m[STATEMENTS];
    int count;
} results;

static duet_status evaluate(results *r, const duet_printed *list, int count, const char *site)
{
    duet_assignment a[STATEMENTS];
    for (int k = 0; k < count; k++) {
        if (list[k].kind != DUET_PRINTED_FORMULA) continue;
        duet_matrix *m = statement_result(who, list[k].e);
        if (!m) return duet_error_status();
        a[r->count] = (duet_assignment){ m, list[k].e };
        r->m[r->count++] = m;
    }
    if (r->count == 0) return DUET_OK;
    if (r->count == 1) return statement_set(who, a[0].to, a[0].value, site);
    return statement_set_all(who, "formula", a, r->count, site);
}

/* ---- output ---- */

/* A number of C is printed like a matrix of rank 0. */
static duet_status print_number(FILE *out, const duet_printed *i)
{
    duet_matrix *m = matrix_wrap(who, (void *)(uintptr_t)&i->f64, i->type, 0, NULL);
    if (!m) return duet_error_status();
    const duet_status s = matrix_print(who, out, m);
    duet_free(&m);
    return s;
}

static duet_status print_items(FILE *out, const duet_printed *list, int count, const results *r)
{
    for (int k = 0, next = 0; k < count; k++) {
        const duet_printed *i = &list[k];
        const bool is_text = i->kind == DUET_PRINTED_TEXT;
        if (k) fputs(is_text ? "\n" : " ", out);
        if (is_text) fputs(i->text, out);
        else if (i->kind == DUET_PRINTED_NUMBER) TRY(print_number(out, i));
        else TRY(matrix_print(who, out, i->kind == DUET_PRINTED_MATRIX ? i->m : r->m[next++]));
    }
    fputs("\n", out);
    if (ferror(out)) return fail(DUET_IO_ERROR, "%s: the file cannot be written", who);
    return DUET_OK;
}

/* ---- the functions ---- */

static duet_status print(FILE *out, const duet_printed *list, int count, const char *site)
{
    results r = { .count = 0 };
    TRY(check(out, list, count));
    IN_DEFAULT_FP_ENVIRONMENT;
    duet_recording *recording = recording_pause();
    duet_status s = evaluate(&r, list, count, site);
    if (s == DUET_OK && !(r.count && thread_get()->explaining)) s = print_items(out, list, count, &r);
    recording_resume(recording);
    for (int k = 0; k < r.count; k++) duet_free(&r.m[k]);
    return s;
}

duet_status duet_print_all_at(FILE *out, const duet_printed *list, int count, const char *site)
{
    const duet_status s = print(out, list, count, site);
    for (int k = 0; list && k < count; k++)
        if (list[k].kind == DUET_PRINTED_FORMULA) formula_spend(list[k].e, site);
    return s != DUET_OK && site ? fail_at(s, site) : s;
}
duet_status(duet_print_all)(FILE *out, const duet_printed *list, int count)
{
    return duet_print_all_at(out, list, count, NULL);
}

duet_status(duet_print)(FILE *out, const duet_matrix *m)
{
    const duet_printed one = { .kind = DUET_PRINTED_MATRIX, .m = m };
    return duet_print_all_at(out, &one, 1, NULL);
}
