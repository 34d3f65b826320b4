/* interpolate.c - changes the sizes of axes by nearest, linear and cubic interpolation, made of gathers of one,
 * two or four elements, and with antialiasing of products with the matrix of the weights. Places are computed
 * in f64. */
#include "call_text.h"
#include "derivative_rules.h"
#include "dtype.h"
#include "fp_environment.h"
#include "status.h"
#include <math.h>
#undef DUET_HERE
#define DUET_HERE site /* of the user's call */

/* The places in n elements of m results, as a vector. */
static duet_expr places_of(int64_t n, int64_t m, duet_align align, const char *site)
{
    const duet_expr i = duet_iota(DUET_F64, m);
    if (align == DUET_ALIGN_CORNERS)
        return m > 1 ? duet_div(duet_mul(i, (double)(n - 1)), (double)(m - 1)) : i;
    if (align == DUET_ALIGN_FIRST) return duet_div(duet_mul(i, (double)n), (double)m);
    const duet_expr centers = duet_div(duet_mul(duet_add(i, 0.5), (double)n), (double)m);
    return duet_sub(centers, 0.5);
}

/* x at the element `by` behind `floor`, or at the edge. */
static duet_expr elements_at(duet_expr x, duet_expr floor, double by, int64_t n, int axis, const char *site)
{
    const duet_expr at = duet_clip(duet_add(floor, by), 0, (double)(n - 1));
    return duet_take(x, duet_cast(at, DUET_I64), axis);
}

/* A vector along an axis of x, in its type. */
static duet_expr along(duet_expr v, duet_expr x, int axis, const char *site)
{
    shape s = { .rank = duet_expr_rank(x) };
    for (int a = 0; a < s.rank; a++) s.size[a] = a == axis ? duet_expr_size(v, 0) : 1;
    return duet_reshape_at(duet_cast(v, duet_expr_type(x)), s.rank, s.size, site);
}

static duet_expr nearest(duet_expr x, int64_t n, int64_t m, int axis, duet_align align, const char *site)
{
    const duet_expr at = places_of(n, m, align, site);
    return elements_at(x, duet_floor(align == DUET_ALIGN_FIRST ? at : duet_add(at, 0.5)), 0, n, axis, site);
}

static duet_expr linear(duet_expr x, int64_t n, int64_t m, int axis, duet_align align, const char *site)
{
    const duet_expr at = places_of(n, m, align, site), floor = duet_floor(at), t = duet_sub(at, floor);
    const duet_expr low = elements_at(x, floor, 0, n, axis, site),
                    high = elements_at(x, floor, 1, n, axis, site);
    return duet_add(duet_mul(low, along(duet_sub(1, t), x, axis, site)),
                    duet_mul(high, along(t, x, axis, site)));
}

/* Keys' kernel at distances up to 1, and from 1 to 2. */
static duet_expr near_weight(duet_expr d, double a, const char *site)
{
    const duet_expr slope = duet_sub(duet_mul(a + 2, d), a + 3);
    return duet_add(duet_mul(duet_mul(slope, d), d), 1);
}
static duet_expr far_weight(duet_expr d, double a, const char *site)
{
    const duet_expr square = duet_sub(duet_mul(a, d), 5 * a), linear = duet_add(duet_mul(square, d), 8 * a);
    return duet_sub(duet_mul(linear, d), 4 * a);
}

static duet_expr keys_kernel(duet_expr d, double a, const char *site)
{
    const duet_expr far = duet_where(duet_less(d, 2), far_weight(d, a, site), 0);
    return duet_where(duet_less(d, 1), near_weight(d, a, site), far);
}

static duet_expr cubic(duet_expr x, int64_t n, int64_t m, int axis, duet_align align, double a,
                       const char *site)
{
    const duet_expr at = places_of(n, m, align, site), floor = duet_floor(at), t = duet_sub(at, floor);
    const duet_expr weight[] = { far_weight(duet_add(t, 1), a, site), near_weight(t, a, site),
                                 near_weight(duet_sub(1, t), a, site), far_weight(duet_sub(2, t), a, site) };
    duet_expr sum = x;
    for (int k = 0; k < 4; k++) {
        const duet_expr term =
            duet_mul(elements_at(x, floor, k - 1, n, axis, site), along(weight[k], x, axis, site));
        sum = k ? duet_add(sum, term) : term;
    }
    return sum;
}

/* ---- antialiasing ---- */

/* The m x n matrix of the weights: the kernel, n / m times as wide, at the distance of each element from the
 * place of each result. The weights of each result sum to 1. */
static duet_expr weights_of(int64_t n, int64_t m, bool is_cubic, double a, const char *site)
{
    const duet_expr centers = duet_reshape(places_of(n, m, DUET_ALIGN_CENTERS, site), -1, 1);
    const duet_expr d = duet_div(duet_abs(duet_sub(duet_iota(DUET_F64, n), centers)), (double)n / (double)m);
    const duet_expr kernel = is_cubic ? keys_kernel(d, a, site) : duet_relu(duet_sub(1, d));
    return duet_div(kernel, duet_sum_keep(kernel, 1));
}

static duet_expr antialiased(duet_expr x, int64_t n, int64_t m, int axis, bool is_cubic, double a,
                             const char *site)
{
    shape s = formula_shape(x);
    int64_t outer = 1, inner = 1;
    for (int k = 0; k < axis; k++) outer *= s.size[k];
    for (int k = axis + 1; k < s.rank; k++) inner *= s.size[k];
    const duet_expr weights = duet_cast(weights_of(n, m, is_cubic, a, site), duet_expr_type(x)),
                    lines = inner == 1 ? duet_reshape(x, outer, n) : duet_reshape(x, outer, n, inner);
    const duet_expr made =
        inner == 1 ? duet_matmul(lines, duet_transpose(weights)) : duet_matmul(weights, lines);
    s.size[axis] = m;
    return duet_reshape_at(made, s.rank, s.size, site);
}

/* ---- the call ---- */

static duet_status check_interpolation(duet_expr x, const duet_interpolation *o)
{
    const shape s = formula_shape(x);
    if (o->mode < DUET_INTERPOLATE_NEAREST || o->mode > DUET_INTERPOLATE_CUBIC)
        return fail(DUET_BAD_ARGUMENT, "mode (%d) is not a duet_interpolate_mode", (int)o->mode);
    if (o->align < DUET_ALIGN_CENTERS || o->align > DUET_ALIGN_FIRST)
        return fail(DUET_BAD_ARGUMENT, "align (%d) is not a duet_align", (int)o->align);
    if (o->antialias && (o->align != DUET_ALIGN_CENTERS || o->mode == DUET_INTERPOLATE_NEAREST))
        return fail(DUET_BAD_ARGUMENT,
                    "antialias needs DUET_ALIGN_CENTERS and linear or cubic interpolation");
    if (!isfinite(o->cubic)) return fail(DUET_BAD_ARGUMENT, "cubic (%g) must be finite", o->cubic);
    if (o->mode != DUET_INTERPOLATE_NEAREST && dtype_kind(duet_expr_type(x)) != TYPE_FLOAT)
        return fail(DUET_BAD_TYPE, "x must be real and floating point to be interpolated");
    for (int a = 0; a < DUET_RANK_MAX; a++) {
        if (o->size[a] < 0)
            return fail(DUET_BAD_ARGUMENT, "the size of axis %d (%lld) must not be negative", a,
                        (long long)o->size[a]);
        if (o->size[a] && a >= s.rank)
            return fail(DUET_BAD_SHAPE, "axis %d does not exist; x has %d %s", a, s.rank, axes_word(s.rank));
        if (o->size[a] && !s.size[a]) return fail(DUET_BAD_SHAPE, "axis %d of x must not be empty", a);
    }
    return DUET_OK;
}

static duet_expr interpolated_along(duet_expr x, int axis, const duet_interpolation *o, const char *site)
{
    IN_DEFAULT_FP_ENVIRONMENT;
    const int64_t n = duet_expr_size(x, axis), m = o->size[axis];
    const bool shrinks = o->antialias && m < n, is_cubic = o->mode == DUET_INTERPOLATE_CUBIC;
    const double a = o->cubic != 0 ? o->cubic : o->antialias ? -0.5 : -0.75;
    if (!m || m == n) return x;
    if (shrinks) return antialiased(x, n, m, axis, is_cubic, a, site);
    if (o->mode == DUET_INTERPOLATE_NEAREST) return nearest(x, n, m, axis, o->align, site);
    return is_cubic ? cubic(x, n, m, axis, o->align, a, site) : linear(x, n, m, axis, o->align, site);
}

duet_expr(duet_interpolate_at)(duet_expr x, const duet_interpolation *options, const char *site)
{
    static const duet_interpolation none = { .mode = DUET_INTERPOLATE_NEAREST };
    const duet_interpolation *o = options ? options : &none;
    const duet_status status = is_valid(x) ? check_interpolation(x, o) : DUET_BAD_ARGUMENT;
    if (status != DUET_OK) return bad_argument("interpolate", x, status, site);
    duet_expr made = x;
    for (int a = duet_expr_rank(x); a-- > 0 && is_valid(made);) made = interpolated_along(made, a, o, site);
    return composed("interpolate", 1, &x, not_itself(made, x, site), site);
}
duet_expr(duet_interpolate)(duet_expr x, const duet_interpolation *options)
{
    return duet_interpolate_at(x, options, NULL);
}
