/* clip_norm.c - formulas that limit gradients: the norm of several operands, and scaling by it. */
#include "call_text.h"
#include "expr.h"
#include "min_max.h"
#include "operands.h"
#undef DUET_HERE
#define DUET_HERE site /* of the user's call */

#define NAMED 3 /* operands that the text of an error names */

static duet_expr no_operands(int count, const char *site)
{
    arena *a = arena_mine();
    if (!a) return no_room(DUET_NO_MEMORY);
    const duet_status s =
        fail(DUET_BAD_ARGUMENT, "duet_global_norm: there must be at least one operand, not %d", count);
    return failed(a, 0, NULL, s, site);
}

duet_expr duet_global_norm_at(int count, const duet_expr *x, const char *site)
{
    if (count < 1 || !x) return no_operands(x ? count : 0, site);
    duet_expr norm = duet_norm(x[0]);
    for (int k = 1; k < count; k++) norm = duet_hypot(norm, duet_norm(x[k]));
    return formula_called("global_norm", (int)smaller(count, NAMED), x, norm, site);
}

static bool has_one_element(duet_expr e)
{
    for (int i = 0; i < duet_expr_rank(e); i++)
        if (duet_expr_size(e, i) != 1) return false;
    return true;
}

/* The failed result, which has consumed the operands. */
static duet_expr not_one_element(const duet_expr x[3], const char *name, const char *site)
{
    arena *a = arena_mine();
    node *n[3] = { NULL };
    if (!a) return no_room(DUET_NO_MEMORY);
    duet_status s = operands(a, OP_where, 3, x, n);
    if (s == DUET_OK) s = fail(DUET_BAD_SHAPE, "%s must have one element", name);
    return call_failed(a, "clip_norm", 3, n, s, site);
}

/* The one element of e, for a result of this rank. */
static duet_expr without_axes(duet_expr e, int rank, const char *site)
{
    return duet_expr_rank(e) > rank ? duet_reshape_at(e, 0, NULL, site) : e;
}

duet_expr duet_clip_norm_at(duet_expr g, duet_expr norm, duet_expr most, const char *site)
{
    const duet_expr x[] = { g, norm, most };
    const bool live = duet_expr_status(g) == DUET_OK && duet_expr_status(norm) == DUET_OK &&
                      duet_expr_status(most) == DUET_OK;
    if (live && !has_one_element(norm)) return not_one_element(x, "norm", site);
    if (live && !has_one_element(most)) return not_one_element(x, "most", site);
    const int rank = duet_expr_rank(g); /* 0 if g failed, which the operators report */
    const duet_expr by =
        duet_div(without_axes(most, rank, site), duet_add(without_axes(norm, rank, site), 1e-6));
    return composed("clip_norm", 3, x, duet_mul(g, duet_minimum(1, by)), site);
}

duet_expr(duet_global_norm)(int count, const duet_expr *x) { return duet_global_norm_at(count, x, NULL); }
duet_expr(duet_clip_norm)(duet_expr g, duet_expr norm, duet_expr most)
{
    return duet_clip_norm_at(g, norm, most, NULL);
}
