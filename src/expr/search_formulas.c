/* search_formulas.c - operators that look for values in a list, made of others: searchsorted and isin. */
#include "call_text.h"
#include "dtype.h"
#include "min_max.h"
#include "status.h"
#include "view_formulas.h"
#undef DUET_HERE
#define DUET_HERE site /* of the user's call */

enum { SHORT = 32 }; /* a list of at most this length is compared with every value, in one pass */

static bool is_real(duet_expr x) { return dtype_kind(duet_expr_type(x)) < TYPE_COMPLEX; }
static bool is_floating(duet_expr x) { return dtype_kind(duet_expr_type(x)) == TYPE_FLOAT; }

/* Does an element of the sorted list stand before the values? As in duet_sort, NaN is last. */
static duet_expr is_before(duet_expr element, duet_expr values, duet_side side, const char *site)
{
    const bool floats = is_floating(element) || is_floating(values);
    if (side == DUET_SIDE_LEFT) {
        const duet_expr less = duet_less(element, values);
        if (!floats) return less;
        return duet_logical_or(less, duet_logical_and(duet_isnan(values), duet_equal(element, element)));
    }
    const duet_expr less = duet_less_equal(element, values);
    return floats ? duet_logical_or(less, duet_isnan(values)) : less;
}

/* The number of elements of x, a sorted list of n, that stand before each value: a binary search whose
 * strides are powers of two. A stride past the end reads the last element; the caller limits the result
 * to n. */
static duet_expr found(duet_expr x, int64_t n, duet_expr values, duet_side side, const char *site)
{
    int64_t stride = 1;
    while (stride <= n / 2) stride *= 2;
    duet_expr at =
        duet_mul(duet_cast(is_before(duet_pick(x, 0, stride - 1), values, side, site), DUET_I64), stride);
    while (stride > 1) {
        stride /= 2;
        const duet_expr next = duet_add(at, stride), last = duet_sub(duet_minimum(next, n), 1);
        at = duet_where(is_before(duet_take(x, last, 0), values, side, site), next, at);
    }
    return at;
}

static duet_status check_sorted(duet_expr x, duet_expr values, duet_side side)
{
    if (duet_expr_rank(x) != 1) return fail(DUET_BAD_SHAPE, "x must have 1 axis, not %d", duet_expr_rank(x));
    if (!is_real(x) || !is_real(values)) return fail(DUET_BAD_TYPE, "the elements must be real, not complex");
    if (side != DUET_SIDE_LEFT && side != DUET_SIDE_RIGHT)
        return fail(DUET_BAD_ARGUMENT, "side (%d) is not a duet_side", (int)side);
    return DUET_OK;
}

duet_expr(duet_searchsorted_at)(duet_expr x, duet_expr values, duet_side side, const char *site)
{
    const duet_expr e[] = { x, values };
    const bool valid = is_valid(x) && is_valid(values);
    const duet_status status = valid ? check_sorted(x, values, side) : DUET_BAD_ARGUMENT;
    if (status != DUET_OK) return bad_operands("searchsorted", 2, e, status, site);
    const int64_t n = duet_expr_size(x, 0);
    const duet_expr list = n ? x : duet_pad(x, .after = { 1 }); /* also an empty list determines the type */
    const duet_expr made = duet_minimum(found(list, larger(n, 1), values, side, site), n);
    return composed("searchsorted", 2, e, made, site);
}
duet_expr(duet_searchsorted)(duet_expr x, duet_expr values, duet_side side)
{
    return duet_searchsorted_at(x, values, side, NULL);
}

/* ---- isin ---- */

/* Compares each element of x with all of the list. x has at most one axis less than a formula can have. */
static duet_expr is_in_short(duet_expr x, duet_expr list, const char *site)
{
    if (duet_expr_rank(x) == 0) return duet_any(duet_equal(x, list));
    return duet_any_axis(duet_equal(duet_expand_dims(x, -1), list), -1);
}

static duet_expr is_in_long(duet_expr x, duet_expr list, int64_t n, const char *site)
{
    const duet_expr sorted = duet_sort(list, 0), at = found(sorted, n, x, DUET_SIDE_LEFT, site);
    return duet_equal(duet_take(sorted, duet_minimum(at, n - 1), 0), x);
}

static duet_expr is_in(duet_expr x, duet_expr list, const char *site)
{
    const shape s = formula_shape(x);
    const int64_t n = duet_expr_size(list, 0);
    if (n > SHORT && is_real(x) && is_real(list)) return is_in_long(x, list, n, site);
    if (s.rank < DUET_RANK_MAX) return is_in_short(x, list, site);
    const duet_expr made = is_in_short(duet_reshape(x, -1), list, site);
    return is_valid(made) ? duet_reshape_at(made, s.rank, s.size, site) : made;
}

duet_expr(duet_isin_at)(duet_expr x, duet_expr values, const char *site)
{
    const duet_expr e[] = { x, values };
    if (!is_valid(x) || !is_valid(values)) return bad_operands("isin", 2, e, DUET_BAD_ARGUMENT, site);
    const int rank = duet_expr_rank(values);
    if (rank == 0) return composed("isin", 2, e, duet_equal(x, values), site);
    const duet_expr list = rank == 1 ? values : duet_reshape(values, -1);
    return composed("isin", 2, e, is_in(x, list, site), site);
}
duet_expr(duet_isin)(duet_expr x, duet_expr values) { return duet_isin_at(x, values, NULL); }
