/* linalg_status.c - see linalg_status.h. */
#include "linalg_status.h"

static const struct {
    duet_status status;
    const char *text; /* with at */
} failures[] = {
    [LINALG_PIVOT] = { DUET_SINGULAR, "pivot %lld is 0: the matrix is singular" },
    [LINALG_MINOR] = { DUET_SINGULAR, "the leading minor of order %lld is not positive: the matrix is not "
                                      "positive definite" },
    [LINALG_OPERAND] = { DUET_NOT_FINITE, "an element of operand %lld is infinite or NaN" },
    [LINALG_RESULT] = { DUET_NOT_FINITE, "the result overflows the element type: the matrix may be "
                                         "nearly singular" },
    [LINALG_ITERATION] = { DUET_NO_CONVERGENCE, "%lld values did not converge" },
    [LINALG_RANK] = { DUET_SINGULAR, "the matrix may be rank-deficient, and it is too large to compute the "
                                     "singular values that decide" },
    [LINALG_RESIDUAL] = { DUET_NO_CONVERGENCE, "the residual exceeds the documented bound" },
};

duet_status linalg_failed(const step *s, enum linalg_failed v, int64_t at)
{
    char of[SHAPE_TEXT];
    const layout *a = &s->in[0].at;
    (void)fail(failures[v].status, failures[v].text, (long long)at);
    return fail_within(failures[v].status, "%s of %s",
                       s->kernel < OPS ? op_infos[s->kernel].name : "a factorisation",
                       shape_text(of, a->type, a->rank, a->size));
}
