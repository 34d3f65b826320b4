/* linalg_status.c - see linalg_status.h. */
#include "linalg_status.h"

_Thread_local bool linalg_quiet __attribute__((tls_model(DUET_TLS)));

/* With `at`, or, for LINALG_OPERAND, the name of the operand. */
static const struct {
    duet_status status;
    const char *text;
} failures[] = {
    [LINALG_PIVOT] = { DUET_SINGULAR, "pivot %lld is 0: a is singular" },
    [LINALG_OPERAND] = { DUET_NOT_FINITE },
    [LINALG_MINOR] = { DUET_SINGULAR,
                       "the leading minor of order %lld of a is not positive: a is not positive "
                       "definite" },
    [LINALG_RESULT] = { DUET_NOT_FINITE, "the result overflows its element type: a may be nearly singular" },
    [LINALG_ITERATION] = { DUET_NO_CONVERGENCE, "the iteration did not converge for %lld values" },
    [LINALG_CONDITION] = { DUET_SINGULAR,
                           "a may be rank-deficient. Its singular values decide, but Duet was built "
                           "without LAPACK, which computes them" },
    [LINALG_WORKSPACE] = { DUET_UNSUPPORTED,
                           "a has more rows or columns than cuSOLVER can work on, and Duet was built without "
                           "LAPACK, which could" },
    [LINALG_RANK] = { DUET_SINGULAR,
                      "a may be rank-deficient. Its singular values decide, but they cannot be "
                      "computed for more than %lld rows and columns" },
    [LINALG_RESIDUAL] = { DUET_NO_CONVERGENCE, "the residual of a solution exceeds its documented bound" },
};

/* The call of the operator: "duet_solve(a: f64[3,3], b: f64[3])". */
static void call_text(const step *s, char *text, size_t length)
{
    char a[SHAPE_TEXT], b[SHAPE_TEXT];
    const layout *x = &s->in[0].at, *y = &s->in[1].at;
    shape_text(a, x->type, x->rank, x->size);
    if (s->ins > 1) shape_text(b, y->type, y->rank, y->size);
    snprintf(text, length, "duet_%s(a: %s%s%s)", kernel_infos[s->kernel].name, a, s->ins > 1 ? ", b: " : "",
             s->ins > 1 ? b : "");
}

duet_status linalg_failed(const step *s, enum linalg_failed v, int64_t at)
{
    char call[2 * SHAPE_TEXT + 64];
    if (linalg_quiet) return failures[v].status;
    call_text(s, call, sizeof call);
    if (v == LINALG_OPERAND)
        return fail(DUET_NOT_FINITE, "%s: an element of %s is infinite or NaN", call, at > 1 ? "b" : "a");
    (void)fail(failures[v].status, failures[v].text, (long long)at);
    return fail_within(failures[v].status, "%s", call);
}
