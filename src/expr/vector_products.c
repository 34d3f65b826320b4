/* vector_products.c - products of vectors, made of other operators: vdot, vecdot, outer and
 * cross. */
#include "call_text.h"
#include "einsum.h"
#include "operands.h"
#include "status.h"
#include "view_formulas.h"

#undef DUET_HERE
#define DUET_HERE site /* the call site of the user */

duet_expr(duet_vdot_at)(duet_expr x, duet_expr y, const char *site)
{
    return composed("vdot", 2, (duet_expr[]){ x, y }, duet_dot(is_complex(x) ? duet_conj(x) : x, y), site);
}
duet_expr(duet_vdot)(duet_expr x, duet_expr y) { return duet_vdot_at(x, y, NULL); }

/* ---- vecdot ---- */

/* Checks an axis of two operands, and makes it count from the first axis of each of them. */
static duet_status check_axis_of_both(const shape *s, const shape *t, int axis, int *a, int *b)
{
    *a = axis < 0 ? axis + s->rank : axis;
    *b = axis < 0 ? axis + t->rank : axis;
    if (*a < 0 || *a >= s->rank || *b < 0 || *b >= t->rank)
        return fail(DUET_BAD_SHAPE, "axis %d does not exist; x has %d %s and y has %d", axis, s->rank,
                    axes_word(s->rank), t->rank);
    return DUET_OK;
}

static duet_expr broadcast_to(duet_expr x, const shape *to, const char *site)
{
    const shape s = formula_shape(x);
    return shape_equal(&s, to) ? x : duet_broadcast_at(x, to->rank, to->size, site);
}

/* The dot product along the last axis of operands that broadcast. */
static duet_expr dot_last(duet_expr x, duet_expr y, const char *site)
{
    const shape s = formula_shape(x), t = formula_shape(y);
    shape all = s;
    (void)shape_broadcast(&s, &t, &all); /* they do, unless x or y has failed */
    return duet_dot(broadcast_to(x, &all, site), broadcast_to(y, &all, site), -1);
}

static duet_status check_vecdot(const shape *s, const shape *t, int axis, int *a, int *b)
{
    shape p = *s, q = *t, all;
    TRY(check_axis_of_both(s, t, axis, a, b));
    if (s->size[*a] != t->size[*b])
        return fail(DUET_BAD_SHAPE, "x has %lld elements along axis %d, and y has %lld",
                    (long long)s->size[*a], axis, (long long)t->size[*b]);
    for (int k = *a; k + 1 < p.rank; k++) p.size[k] = p.size[k + 1];
    for (int k = *b; k + 1 < q.rank; k++) q.size[k] = q.size[k + 1];
    p.rank--, q.rank--;
    if (!shape_broadcast(&p, &q, &all))
        return fail(DUET_BAD_SHAPE, "the shapes of the operands without axis %d do not broadcast", axis);
    return DUET_OK;
}

duet_expr(duet_vecdot_at)(duet_expr x, duet_expr y, int axis, const char *site)
{
    const duet_expr e[] = { x, y };
    const shape s = formula_shape(x), t = formula_shape(y);
    int a = 0, b = 0;
    const duet_status status =
        is_valid(x) && is_valid(y) ? check_vecdot(&s, &t, axis, &a, &b) : DUET_BAD_ARGUMENT;
    if (status != DUET_OK) return bad_operands("vecdot", 2, e, status, site);
    if (is_complex(x)) x = duet_conj(x);
    if (shape_equal(&s, &t)) return composed("vecdot", 2, e, duet_dot(x, y, a), site);
    const duet_expr p = duet_moveaxis(x, a, -1), q = duet_moveaxis(y, b, -1);
    return composed("vecdot", 2, e, dot_last(p, q, site), site);
}
duet_expr(duet_vecdot)(duet_expr x, duet_expr y, int axis) { return duet_vecdot_at(x, y, axis, NULL); }

duet_expr duet_outer_at(duet_expr x, duet_expr y, const char *site)
{
    einsum_attributes e;
    return make_operator(OP_einsum, "outer", 2, (duet_expr[]){ x, y }, einsum_read("i,j->ij", &e), site);
}
duet_expr(duet_outer)(duet_expr x, duet_expr y) { return duet_outer_at(x, y, NULL); }

/* ---- cross ---- */

static duet_status check_cross(const shape *s, const shape *t, int axis, int *a, int *b)
{
    const bool is_last = axis == -1;
    if (is_last && (!s->rank || !t->rank))
        return fail(DUET_BAD_SHAPE, "the last axes of x and y must have 3 elements");
    TRY(check_axis_of_both(s, t, axis, a, b));
    if (s->size[*a] == 3 && t->size[*b] == 3) return DUET_OK;
    if (is_last) return fail(DUET_BAD_SHAPE, "the last axes of x and y must have 3 elements");
    return fail(DUET_BAD_SHAPE, "axis %d of x and of y must have 3 elements", axis);
}

/* The indices 1, 2, 0 (by 1) or 2, 0, 1 (by 2), computed from numbers. */
static duet_expr rotated_indices(int by, const char *site)
{
    const duet_expr first = duet_one_hot(duet_cast(duet_sum(0), DUET_I64), 3, DUET_I64);
    return duet_remainder(duet_add(duet_cumsum(duet_cumsum(first, 0), 0), by), 3);
}

/* x * y, rounded separately, so that the product of parallel vectors is exactly 0. */
static duet_expr product(duet_expr x, duet_expr y, const char *site)
{
    const bool fuses =
        dtype_kind(duet_expr_type(x)) == TYPE_FLOAT && dtype_kind(duet_expr_type(y)) == TYPE_FLOAT;
    if (fuses) return duet_fma(x, y, 0);
    return duet_mul(x, y);
}

/* The cross product along the last axis. */
static duet_expr cross_last(duet_expr x, duet_expr y, const char *site)
{
    const duet_expr j = rotated_indices(0, site), k = rotated_indices(1, site);
    const duet_expr ahead = product(duet_take(x, j, -1), duet_take(y, k, -1), site);
    const duet_expr back = product(duet_take(x, k, -1), duet_take(y, j, -1), site);
    return duet_sub(ahead, back);
}

static duet_expr cross(const char *function, duet_expr x, duet_expr y, int axis, const char *site)
{
    const duet_expr e[] = { x, y };
    const shape s = formula_shape(x), t = formula_shape(y);
    int a = 0, b = 0;
    const duet_status status =
        is_valid(x) && is_valid(y) ? check_cross(&s, &t, axis, &a, &b) : DUET_BAD_ARGUMENT;
    if (status != DUET_OK) return bad_operands(function, 2, e, status, site);
    if (a == s.rank - 1 && b == t.rank - 1) return composed(function, 2, e, cross_last(x, y, site), site);
    const duet_expr made = cross_last(duet_moveaxis(x, a, -1), duet_moveaxis(y, b, -1), site);
    return composed(function, 2, e, is_valid(made) ? duet_moveaxis(made, -1, axis) : made, site);
}

duet_expr(duet_cross_at)(duet_expr x, duet_expr y, const char *site)
{
    return cross("cross", x, y, -1, site);
}
duet_expr(duet_cross)(duet_expr x, duet_expr y) { return duet_cross_at(x, y, NULL); }
duet_expr(duet_cross_axis_at)(duet_expr x, duet_expr y, int axis, const char *site)
{
    return cross("cross_axis", x, y, axis, site);
}
duet_expr(duet_cross_axis)(duet_expr x, duet_expr y, int axis)
{
    return duet_cross_axis_at(x, y, axis, NULL);
}
