/* layers.c - softmax, one-hot vectors and normalisations along any axes, made of other operators. */
#include "call_text.h"
#include "status.h"
#include "view_formulas.h"
#undef DUET_HERE
#define DUET_HERE site /* of the user's call */

/* ---- along one axis ---- */

/* Reductions along an inner axis read memory in its order; moving the axis to the end would not. The largest
 * element only shifts the exponents, so that no gradient passes through it. */
static duet_expr inner_softmax(duet_expr x, int axis, bool is_log, const char *site)
{
    const duet_expr most = duet_stop_gradient(duet_max_keep(x, axis)), shifted = duet_sub(x, most),
                    e = duet_exp(shifted), sum = duet_sum_keep(e, axis);
    return is_log ? duet_sub(shifted, duet_log(sum)) : duet_div(e, sum);
}

static duet_expr softmax_along(const char *function, duet_expr x, int axis, bool is_log, const char *site)
{
    const shape s = formula_shape(x);
    duet_status status = check_axis_of(&s, &axis);
    if (status == DUET_OK && dtype_kind(duet_expr_type(x)) != TYPE_FLOAT)
        status = fail(DUET_BAD_TYPE, "x must be real and floating point; convert it with duet_cast");
    if (status != DUET_OK) return bad_argument(function, x, status, site);
    const bool is_empty = !shape_count(&s);
    duet_expr made = x;
    if (is_empty) made = not_itself(x, x, site);
    else if (axis < s.rank - 1) made = inner_softmax(x, axis, is_log, site);
    else made = is_log ? duet_log_softmax(x) : duet_softmax(x);
    return composed(function, 1, &x, made, site);
}

duet_expr(duet_softmax_axis_at)(duet_expr x, int axis, const char *site)
{
    return softmax_along("softmax_axis", x, axis, false, site);
}
duet_expr(duet_softmax_axis)(duet_expr x, int axis) { return duet_softmax_axis_at(x, axis, NULL); }
duet_expr(duet_log_softmax_axis_at)(duet_expr x, int axis, const char *site)
{
    return softmax_along("log_softmax_axis", x, axis, true, site);
}
duet_expr(duet_log_softmax_axis)(duet_expr x, int axis) { return duet_log_softmax_axis_at(x, axis, NULL); }

duet_expr(duet_one_hot_axis_at)(duet_expr indices, int n, duet_dtype type, int axis, const char *site)
{
    shape s = formula_shape(indices);
    s.rank++;
    const duet_status status = is_valid(indices) ? check_axis_of(&s, &axis) : DUET_BAD_ARGUMENT;
    if (status != DUET_OK) return bad_argument("one_hot_axis", indices, status, site);
    const duet_expr made = (duet_one_hot_at)(indices, n, type, site);
    const bool moves = is_valid(made) && axis != s.rank - 1;
    return formula_called("one_hot_axis", 1, &indices, moves ? duet_moveaxis(made, -1, axis) : made, site);
}
duet_expr(duet_one_hot_axis)(duet_expr indices, int n, duet_dtype type, int axis)
{
    return duet_one_hot_axis_at(indices, n, type, axis, NULL);
}

/* ---- normalisations along several axes ---- */

static duet_status check_axes(duet_expr x, int count, const int *axis)
{
    const shape s = formula_shape(x);
    bool is[DUET_RANK_MAX] = { false };
    if (count < 1 || !axis) return fail(DUET_BAD_ARGUMENT, "there must be at least one axis, not %d", count);
    for (int k = 0; k < count; k++) {
        int a = axis[k];
        TRY(check_axis_of(&s, &a));
        if (is[a]) return fail(DUET_BAD_ARGUMENT, "axis %d is named twice", a);
        is[a] = true;
    }
    return DUET_OK;
}

/* The same formula as that of duet_layer_norm, so that the same kernel computes it. */
duet_expr(duet_layer_norm_axes_at)(duet_expr x, duet_expr scale, duet_expr shift, double r, int count,
                                   const int *axis, const char *site)
{
    const duet_expr e[] = { x, scale, shift };
    const duet_status status = is_valid(x) ? check_axes(x, count, axis) : DUET_BAD_ARGUMENT;
    if (status != DUET_OK) return bad_operands("layer_norm_axes", 3, e, status, site);
    const duet_expr variance = duet_var_axes_keep_at(x, count, axis, site),
                    mean = duet_mean_axes_keep_at(x, count, axis, site);
    const duet_expr unit = duet_mul(duet_sub(x, mean), duet_rsqrt(duet_add(variance, r)));
    return composed("layer_norm_axes", 3, e, duet_fma(unit, scale, shift), site);
}
duet_expr(duet_layer_norm_axes)(duet_expr x, duet_expr scale, duet_expr shift, double r, int count,
                                const int *axis)
{
    return duet_layer_norm_axes_at(x, scale, shift, r, count, axis, NULL);
}

static duet_expr rms_norm(const char *function, duet_expr x, duet_expr scale, double r, int count,
                          const int *axis, const char *site)
{
    const duet_expr e[] = { x, scale };
    const duet_status status = is_valid(x) ? check_axes(x, count, axis) : DUET_BAD_ARGUMENT;
    if (status != DUET_OK) return bad_operands(function, 2, e, status, site);
    const duet_expr square = duet_mean_axes_keep_at(duet_mul(x, x), count, axis, site);
    return composed(function, 2, e, duet_mul(duet_mul(x, duet_rsqrt(duet_add(square, r))), scale), site);
}
duet_expr(duet_rms_norm_axes_at)(duet_expr x, duet_expr scale, double r, int count, const int *axis,
                                 const char *site)
{
    return rms_norm("rms_norm_axes", x, scale, r, count, axis, site);
}
duet_expr(duet_rms_norm_axes)(duet_expr x, duet_expr scale, double r, int count, const int *axis)
{
    return duet_rms_norm_axes_at(x, scale, r, count, axis, NULL);
}
duet_expr(duet_rms_norm_at)(duet_expr x, duet_expr scale, double r, const char *site)
{
    return rms_norm("rms_norm", x, scale, r, 1, &(const int){ -1 }, site);
}
duet_expr(duet_rms_norm)(duet_expr x, duet_expr scale, double r)
{
    return duet_rms_norm_at(x, scale, r, NULL);
}

/* ---- group normalisation ---- */

static duet_status check_group_operand(const char *name, duet_expr v, int64_t channels)
{
    const shape s = formula_shape(v);
    if (shape_count(&s) == 1 || (s.rank == 1 && s.size[0] == channels)) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "%s must be a vector with one element for each of the %lld channels of x",
                name, (long long)channels);
}

static duet_status check_groups(duet_expr x, duet_expr scale, duet_expr shift, int groups)
{
    const shape s = formula_shape(x);
    if (s.rank < 2) return fail(DUET_BAD_SHAPE, "x must have at least 2 axes, not %d", s.rank);
    if (groups < 1) return fail(DUET_BAD_ARGUMENT, "groups (%d) must be positive", groups);
    if (s.size[1] % groups)
        return fail(DUET_BAD_SHAPE, "the number of channels of x (%lld) must be a multiple of groups (%d)",
                    (long long)s.size[1], groups);
    TRY(check_group_operand("scale", scale, s.size[1]));
    return check_group_operand("shift", shift, s.size[1]);
}

/* A vector of all channels, as it broadcasts to x divided into groups; a single element stays. */
static duet_expr in_groups(duet_expr v, int64_t channels, int groups, const char *site)
{
    const shape s = formula_shape(v);
    if (shape_count(&s) == 1 && channels > 1) return s.rank ? duet_reshape_at(v, 0, NULL, site) : v;
    return s.rank ? duet_reshape(v, groups, channels / groups, 1) : v;
}

duet_expr(duet_group_norm_at)(duet_expr x, duet_expr scale, duet_expr shift, int groups, double r,
                              const char *site)
{
    const duet_expr e[] = { x, scale, shift };
    const bool valid = is_valid(x) && is_valid(scale) && is_valid(shift);
    const duet_status status = valid ? check_groups(x, scale, shift, groups) : DUET_BAD_ARGUMENT;
    if (status != DUET_OK) return bad_operands("group_norm", 3, e, status, site);
    const shape s = formula_shape(x);
    int64_t each = 1;
    for (int a = 2; a < s.rank; a++) each *= s.size[a];
    const duet_expr divided = duet_reshape(x, s.size[0], groups, s.size[1] / groups, each);
    const duet_expr made = duet_instance_norm(divided, in_groups(scale, s.size[1], groups, site),
                                              in_groups(shift, s.size[1], groups, site), r);
    return composed("group_norm", 3, e, is_valid(made) ? duet_reshape_at(made, s.rank, s.size, site) : made,
                    site);
}
duet_expr(duet_group_norm)(duet_expr x, duet_expr scale, duet_expr shift, int groups, double r)
{
    return duet_group_norm_at(x, scale, shift, groups, r, NULL);
}
