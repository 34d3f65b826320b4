/* index_formulas.c - gathers and scatters that are made of take, put, scatter_add, scatter_mul and
 * scatter_max: along an axis, and by indices of several axes. Elements are numbered in row-major order. */
#include "call_text.h"
#include "derivative_rules.h"
#include "dtype.h"
#include "index_list.h"
#include "min_max.h"
#include "status.h"
#undef DUET_HERE
#define DUET_HERE site /* of the user's call */

/* ---- the smallest ---- */

/* Reverses the order of the elements; doing it again restores them. */
static duet_expr reversed(duet_expr x, const char *site)
{
    const duet_dtype t = duet_expr_type(x);
    if (t == DUET_BOOL) return duet_logical_not(x);
    return dtype_is_integer(t) ? duet_bitwise_not(x) : duet_neg(x);
}

static duet_expr scatter_min(duet_expr x, duet_expr indices, duet_expr values, int axis, const char *site)
{
    return reversed(duet_scatter_max(reversed(x, site), indices, reversed(values, site), axis), site);
}

duet_expr(duet_scatter_min_at)(duet_expr x, duet_expr indices, duet_expr values, int axis, const char *site)
{
    const duet_expr e[] = { x, indices, values };
    const bool valid = is_valid(x) && is_valid(indices) && is_valid(values);
    if (!valid) return bad_operands("scatter_min", 3, e, DUET_BAD_ARGUMENT, site);
    return formula_called("scatter_min", 3, e, scatter_min(x, indices, values, axis, site), site);
}
duet_expr(duet_scatter_min)(duet_expr x, duet_expr indices, duet_expr values, int axis)
{
    return duet_scatter_min_at(x, indices, values, axis, NULL);
}

/* ---- scatter by one index for each part of x along axis 0 ---- */

static duet_status check_how(duet_scatter_how how)
{
    if (how >= DUET_SCATTER_SET && how <= DUET_SCATTER_MAX) return DUET_OK;
    return fail(DUET_BAD_ARGUMENT, "how (%d) is not a duet_scatter_how", (int)how);
}

static duet_expr scattered(duet_expr x, duet_expr at, duet_expr v, duet_scatter_how how, const char *site)
{
    switch (how) {
    case DUET_SCATTER_SET: return duet_put(x, at, v, 0);
    case DUET_SCATTER_ADD: return duet_scatter_add(x, at, v, 0);
    case DUET_SCATTER_MUL: return duet_scatter_mul(x, at, v, 0);
    case DUET_SCATTER_MIN: return scatter_min(x, at, v, 0, site);
    default: return duet_scatter_max(x, at, v, 0);
    }
}

/* Indices along an axis of n elements as positions: the number of the element or part, times `stride`. valid:
 * which indices are within bounds, so far. */
typedef struct positions {
    duet_expr at, valid;
} positions;

static positions positions_along(duet_expr indices, int64_t n, int64_t stride, const char *site)
{
    /* A u64 index that is too large for i64 becomes negative, and must not count from the end. */
    const bool may_be_negative = duet_expr_type(indices) != DUET_U64;
    const duet_expr i = duet_cast(indices, DUET_I64),
                    from_start = may_be_negative ? duet_where(duet_less(i, 0), duet_add(i, n), i) : i;
    const duet_expr within = duet_logical_and(duet_greater_equal(from_start, 0), duet_less(from_start, n));
    return (positions){ duet_mul(from_start, stride), within };
}

/* An index out of bounds must not become the position of another element. */
static duet_expr checked(positions p, const char *site)
{
    return duet_where(p.valid, p.at, POSITION_OUT_OF_BOUNDS);
}

/* ---- along an axis ---- */

static duet_expr flat(duet_expr x, const char *site) { return duet_reshape(x, -1); }

/* The positions in x of the elements that the indices select. Indices may be smaller than x. */
static duet_expr along_positions(const shape *s, duet_expr indices, int axis, const char *site)
{
    int64_t stride = 1, apart[DUET_RANK_MAX];
    for (int a = s->rank; a-- > 0; stride *= s->size[a]) apart[a] = stride;
    positions p = positions_along(indices, s->size[axis], apart[axis], site);
    for (int a = 0; a < s->rank; a++)
        if (a != axis) p.at = duet_add(p.at, counted(a, s->rank, duet_expr_size(indices, a), apart[a], site));
    return checked(p, site);
}

static duet_status check_along(duet_expr x, duet_expr indices, duet_expr values)
{
    const int rank = duet_expr_rank(x);
    if (!dtype_is_integer(duet_expr_type(indices)))
        return fail(DUET_BAD_TYPE, "indices must be an integer matrix");
    if (duet_expr_rank(indices) != rank || duet_expr_rank(values) != rank)
        return fail(DUET_BAD_SHAPE,
                    "x, indices and values must have the same number of axes, not %d, %d and %d", rank,
                    duet_expr_rank(indices), duet_expr_rank(values));
    if (duet_expr_type(values) != duet_expr_type(x))
        return fail(DUET_BAD_TYPE,
                    "x and values must have the same element type; convert one with duet_cast");
    return DUET_OK;
}

static duet_expr scatter_flat(duet_expr x, duet_expr indices, duet_expr values, int axis,
                              duet_scatter_how how, const char *site)
{
    const shape s = formula_shape(x);
    const duet_expr at = flat(along_positions(&s, indices, axis, site), site);
    const duet_expr made = scattered(flat(x, site), at, flat(values, site), how, site);
    return is_valid(made) ? duet_reshape_at(made, s.rank, s.size, site) : made;
}

static duet_status check_smaller(const shape *s, duet_expr indices, duet_expr values, int axis)
{
    const shape i = formula_shape(indices), v = formula_shape(values);
    if (!shape_equal(&i, &v)) return fail(DUET_BAD_SHAPE, "values must have the shape of indices");
    for (int a = 0; a < s->rank; a++)
        if (a != axis && i.size[a] > s->size[a])
            return fail(DUET_BAD_SHAPE, "along axis %d indices (size %lld) must not be larger than x (%lld)",
                        a, (long long)i.size[a], (long long)s->size[a]);
    return DUET_OK;
}

duet_expr(duet_scatter_along_axis_at)(duet_expr x, duet_expr indices, duet_expr values, int axis,
                                      duet_scatter_how how, const char *site)
{
    const duet_expr e[] = { x, indices, values };
    const bool valid = is_valid(x) && is_valid(indices) && is_valid(values);
    const shape s = formula_shape(x);
    duet_status status = valid ? check_how(how) : DUET_BAD_ARGUMENT;
    if (status == DUET_OK) status = check_along(x, indices, values);
    if (status == DUET_OK) status = check_axis_of(&s, &axis);
    if (status == DUET_OK) status = check_smaller(&s, indices, values, axis);
    if (status != DUET_OK) return bad_operands("scatter_along_axis", 3, e, status, site);
    return formula_called("scatter_along_axis", 3, e, scatter_flat(x, indices, values, axis, how, site),
                          site);
}
duet_expr(duet_scatter_along_axis)(duet_expr x, duet_expr indices, duet_expr values, int axis,
                                   duet_scatter_how how)
{
    return duet_scatter_along_axis_at(x, indices, values, axis, how, NULL);
}

/* The sizes of x, except along the axis: that of the indices. */
static duet_status put_shape(const shape *s, duet_expr indices, duet_expr values, int axis, shape *to)
{
    const shape i = formula_shape(indices), v = formula_shape(values);
    *to = *s;
    to->size[axis] = i.size[axis];
    for (int a = 0; a < s->rank; a++)
        if ((i.size[a] != to->size[a] && i.size[a] != 1) || (v.size[a] != to->size[a] && v.size[a] != 1))
            return fail(DUET_BAD_SHAPE,
                        "along axis %d indices (size %lld) and values (size %lld) must have size "
                        "%lld or 1",
                        a, (long long)i.size[a], (long long)v.size[a], (long long)to->size[a]);
    return DUET_OK;
}

/* A single number stands for all values. */
static duet_expr values_like(duet_expr values, duet_expr x, const char *site)
{
    shape one = formula_shape(x);
    if (!is_number(values)) return values;
    for (int a = 0; a < one.rank; a++) one.size[a] = 1;
    return duet_broadcast_at(duet_cast(values, duet_expr_type(x)), one.rank, one.size, site);
}

duet_expr(duet_put_along_axis_at)(duet_expr x, duet_expr indices, duet_expr given, int axis, const char *site)
{
    const duet_expr e[] = { x, indices, given };
    const bool valid = is_valid(x) && is_valid(indices) && is_valid(given);
    const uint32_t from = nodes_built();
    const shape s = formula_shape(x);
    const duet_expr values = valid ? values_like(given, x, site) : given;
    shape to;
    duet_status status = valid ? check_axis_of(&s, &axis) : DUET_BAD_ARGUMENT;
    if (status == DUET_OK) status = check_along(x, indices, values);
    if (status == DUET_OK) status = put_shape(&s, indices, values, axis, &to);
    if (status != DUET_OK)
        return alone_if_failed(bad_operands("put_along_axis", 3, e, status, site), from, 3, e);
    const duet_expr made = scatter_flat(x, spread_to(indices, &to, site), spread_to(values, &to, site), axis,
                                        DUET_SCATTER_SET, site);
    return formula_called("put_along_axis", 3, e, made, site);
}
duet_expr(duet_put_along_axis)(duet_expr x, duet_expr indices, duet_expr values, int axis)
{
    return duet_put_along_axis_at(x, indices, values, axis, NULL);
}

/* ---- indices of several axes ---- */

static duet_status check_lists(const shape *s, duet_expr indices)
{
    const int rank = duet_expr_rank(indices);
    if (!dtype_is_integer(duet_expr_type(indices)))
        return fail(DUET_BAD_TYPE, "indices must be an integer matrix");
    if (rank < 1) return fail(DUET_BAD_SHAPE, "indices must have at least 1 axis, not 0");
    const int64_t count = duet_expr_size(indices, rank - 1);
    if (count < 1 || count > s->rank)
        return fail(DUET_BAD_SHAPE,
                    "the last axis of indices must have 1 to %d elements, the axes of x, not %lld", s->rank,
                    (long long)count);
    if (rank - 1 + s->rank - (int)count > DUET_RANK_MAX)
        return fail(DUET_BAD_SHAPE, "the result would have more than %d axes", DUET_RANK_MAX);
    return DUET_OK;
}

/* x with its first `count` axes as one, and the numbers of the parts along it that the lists select. */
typedef struct parts {
    duet_expr x, at;
} parts;

static parts parts_of(duet_expr x, duet_expr indices, const char *site)
{
    const shape s = formula_shape(x);
    const int last = duet_expr_rank(indices) - 1, count = (int)duet_expr_size(indices, last);
    shape merged = { .rank = 1, .size = { 1 } };
    positions p = { 0 };
    int64_t stride = 1;
    for (int a = count - 1; a >= 0; stride *= s.size[a--]) {
        const positions own = positions_along(duet_pick(indices, last, a), s.size[a], stride, site);
        const bool first = a == count - 1;
        p.at = first ? own.at : duet_add(p.at, own.at);
        p.valid = first ? own.valid : duet_logical_and(p.valid, own.valid);
    }
    merged.size[0] = stride;
    for (int a = count; a < s.rank; a++) merged.size[merged.rank++] = s.size[a];
    return (parts){ duet_reshape_at(x, merged.rank, merged.size, site), checked(p, site) };
}

duet_expr(duet_gather_nd_at)(duet_expr x, duet_expr indices, const char *site)
{
    const duet_expr e[] = { x, indices };
    const shape s = formula_shape(x);
    const bool valid = is_valid(x) && is_valid(indices);
    const duet_status status = valid ? check_lists(&s, indices) : DUET_BAD_ARGUMENT;
    if (status != DUET_OK) return bad_operands("gather_nd", 2, e, status, site);
    const parts p = parts_of(x, indices, site);
    return formula_called("gather_nd", 2, e, duet_take(p.x, p.at, 0), site);
}
duet_expr(duet_gather_nd)(duet_expr x, duet_expr indices) { return duet_gather_nd_at(x, indices, NULL); }

static duet_status check_values(const shape *s, duet_expr x, duet_expr indices, duet_expr values)
{
    const shape i = formula_shape(indices), v = formula_shape(values);
    const int count = (int)i.size[i.rank - 1];
    char text[SHAPE_TEXT];
    shape want = i;
    want.rank--;
    for (int a = count; a < s->rank; a++) want.size[want.rank++] = s->size[a];
    if (duet_expr_type(values) != duet_expr_type(x))
        return fail(DUET_BAD_TYPE,
                    "x and values must have the same element type; convert one with duet_cast");
    if (shape_equal(&want, &v)) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "values must be %s, the shape of duet_gather_nd(x, indices)",
                shape_text(text, duet_expr_type(x), want.rank, want.size));
}

duet_expr(duet_scatter_nd_at)(duet_expr x, duet_expr indices, duet_expr values, duet_scatter_how how,
                              const char *site)
{
    const duet_expr e[] = { x, indices, values };
    const shape s = formula_shape(x);
    const bool valid = is_valid(x) && is_valid(indices) && is_valid(values);
    duet_status status = valid ? check_how(how) : DUET_BAD_ARGUMENT;
    if (status == DUET_OK) status = check_lists(&s, indices);
    if (status == DUET_OK) status = check_values(&s, x, indices, values);
    if (status != DUET_OK) return bad_operands("scatter_nd", 3, e, status, site);
    const parts p = parts_of(x, indices, site);
    const duet_expr made = scattered(p.x, p.at, values, how, site);
    return formula_called("scatter_nd", 3, e,
                          is_valid(made) ? duet_reshape_at(made, s.rank, s.size, site) : made, site);
}
duet_expr(duet_scatter_nd)(duet_expr x, duet_expr indices, duet_expr values, duet_scatter_how how)
{
    return duet_scatter_nd_at(x, indices, values, how, NULL);
}
