/* statistics.c - differences and statistics, made of other operators: diff, var and std with a correction,
 * median, quantile, percentile, vector_norm, cov and corrcoef. */
#include "call_text.h"
#include "dtype.h"
#include "fp_environment.h"
#include "min_max.h"
#include "status.h"
#include "view_formulas.h"
#include <math.h>
#undef DUET_HERE
#define DUET_HERE site /* of the user's call */

static bool is_bool(duet_expr x) { return dtype_kind(duet_expr_type(x)) == TYPE_BOOL; }

/* Integers and bools as f64, in which NumPy computes their statistics. */
static duet_expr floating(duet_expr x, const char *site)
{
    return dtype_kind(duet_expr_type(x)) >= TYPE_FLOAT ? x : duet_cast(x, DUET_F64);
}

/* ---- diff ---- */

static duet_expr difference(duet_expr x, int axis, const char *site)
{
    const duet_expr behind = duet_range(x, axis, 1, DUET_OPEN, 1), before = duet_range(x, axis, 0, -1, 1);
    return is_bool(x) ? duet_not_equal(behind, before) : duet_sub(behind, before);
}

duet_expr(duet_diff_at)(duet_expr x, int n, int axis, const char *site)
{
    const shape s = formula_shape(x);
    duet_expr made = x;
    duet_status status = check_axis_of(&s, &axis);
    if (status == DUET_OK && n < 0) status = fail(DUET_BAD_ARGUMENT, "n (%d) must not be negative", n);
    if (status != DUET_OK) return bad_argument("diff", x, status, site);
    for (int64_t k = smaller(n, s.size[axis]); k > 0; k--) made = difference(made, axis, site);
    return composed("diff", 1, &x, not_itself(made, x, site), site);
}
duet_expr(duet_diff)(duet_expr x, int n, int axis) { return duet_diff_at(x, n, axis, NULL); }

/* ---- along axes ---- */

/* The axes that a statistic reduces. */
typedef struct reduced {
    bool is[DUET_RANK_MAX]; /* of all of x */
    bool keeps;
    int count;
    int64_t n; /* number of elements that become one */
} reduced;

static duet_status read_axes(const shape *s, int count, const int *axis, bool keeps, reduced *r)
{
    *r = (reduced){ .keeps = keeps, .n = 1 };
    if (count < 0 || (count > 0 && !axis))
        return fail(DUET_BAD_ARGUMENT, "the list of axes must not be NULL, and count (%d) not negative",
                    count);
    for (int k = 0; k < count; k++) {
        int a = axis[k];
        TRY(check_axis_of(s, &a));
        if (r->is[a]) return fail(DUET_BAD_SHAPE, "axis %d is in the list twice", a);
        r->is[a] = true;
        r->n *= s->size[a];
        r->count++;
    }
    return DUET_OK;
}

static reduced all_axes(const shape *s)
{
    reduced r = { .n = 1 };
    for (int a = 0; a < s->rank; a++) {
        r.is[a] = true;
        r.n *= s->size[a];
        r.count++;
    }
    return r;
}

/* The sizes of the result: without the reduced axes, or with 1 in their places. */
static shape reduced_shape(const shape *s, const reduced *r)
{
    shape to = { .rank = 0 };
    for (int a = 0; a < s->rank; a++)
        if (!r->is[a] || r->keeps) to.size[to.rank++] = r->is[a] ? 1 : s->size[a];
    return to;
}

static duet_expr in_shape(duet_expr x, const shape *to, const char *site)
{
    const shape s = formula_shape(x);
    return shape_equal(&s, to) ? x : duet_reshape_at(x, to->rank, to->size, site);
}

/* x with the reduced axes merged to one, which is axis *axis of the result. */
static duet_expr merged(duet_expr x, const reduced *r, int *axis, const char *site)
{
    const shape s = formula_shape(x);
    shape to = { .rank = 0 };
    int order[DUET_RANK_MAX], kept = 0, last = s.rank - r->count;
    bool moves = false;
    for (int a = 0; a < s.rank; a++) {
        if (r->is[a]) *axis = a;
        if (!r->is[a]) to.size[to.rank++] = s.size[a];
        order[r->is[a] ? last++ : kept++] = a;
    }
    if (r->count == 1) return x;
    *axis = to.rank;
    to.size[to.rank++] = r->n;
    for (int a = 0; a < s.rank; a++) moves |= order[a] != a;
    if (moves) x = duet_permute_at(x, s.rank, order, site);
    return in_shape(x, &to, site);
}

/* ---- var and std with a correction ---- */

static duet_expr corrected(duet_expr variance, int64_t n, double ddof, const char *site)
{
    IN_DEFAULT_FP_ENVIRONMENT;
    return duet_mul(variance, (double)n / fmax((double)n - ddof, 0));
}

static duet_expr var_ddof(const char *function, duet_expr x, double ddof, const reduced *r, bool is_std,
                          const char *site)
{
    int axis[DUET_RANK_MAX], count = 0;
    if (isnan(ddof)) return bad_argument(function, x, fail(DUET_BAD_ARGUMENT, "ddof must not be NaN"), site);
    for (int a = 0; a < DUET_RANK_MAX; a++)
        if (r->is[a]) axis[count++] = a;
    const duet_expr f = floating(x, site), variance = r->keeps ? duet_var_axes_keep_at(f, count, axis, site)
                                                               : duet_var_axes_at(f, count, axis, site);
    const duet_expr made = corrected(variance, r->n, ddof, site);
    return composed(function, 1, &x, is_std ? duet_sqrt(made) : made, site);
}

/* ---- median and quantiles ---- */

/* The place of a quantile in a sorted line: element low + share, interpolated. */
typedef struct place {
    int64_t low;
    double share;
} place;

static place quantile_place(double q, int64_t n)
{
    const double at = q * (double)(n - 1), low = floor(at);
    return (place){ (int64_t)low, at - low };
}

/* As NumPy interpolates: from the nearer end, so that the result does not pass the other one. */
static duet_expr between(duet_expr a, duet_expr b, double share, const char *site)
{
    const duet_expr span = duet_sub(b, a);
    const duet_expr made =
        share < 0.5 ? duet_add(a, duet_mul(span, share)) : duet_sub(b, duet_mul(span, 1 - share));
    return duet_where(duet_equal(a, b), a, made); /* also for equal infinities */
}

static duet_expr middle(duet_expr a, duet_expr b, const char *site) { return duet_mul(duet_add(a, b), 0.5); }

static duet_expr picked(duet_expr sorted, int axis, int64_t i, const char *site)
{
    return floating(duet_pick(sorted, axis, i), site);
}

/* NaN is last in a sorted line. */
static duet_expr at_place(duet_expr sorted, int axis, int64_t n, place p, bool is_median, const char *site)
{
    const duet_expr low = picked(sorted, axis, p.low, site);
    duet_expr made = low;
    if (p.share > 0) {
        const duet_expr high = picked(sorted, axis, p.low + 1, site);
        made = is_median ? middle(low, high, site) : between(low, high, p.share, site);
    }
    if (dtype_kind(duet_expr_type(sorted)) < TYPE_FLOAT || p.low == n - 1) return made;
    const duet_expr last = picked(sorted, axis, n - 1, site);
    return duet_where(duet_isnan(last), last, made);
}

static duet_expr quantile(const char *function, duet_expr x, double q, const reduced *r, bool is_median,
                          const char *site)
{
    IN_DEFAULT_FP_ENVIRONMENT;
    const shape s = formula_shape(x), to = reduced_shape(&s, r);
    int axis = 0;
    if (!r->count && is_valid(x) && !is_complex(x)) /* of each element by itself */
        return composed(function, 1, &x, not_itself(floating(x, site), x, site), site);
    const duet_expr line = merged(x, r, &axis, site);
    const duet_expr sorted = duet_sort(line, axis);
    if (duet_expr_status(sorted) != DUET_OK) return composed(function, 1, &x, sorted, site);
    const duet_expr made = r->n ? at_place(sorted, axis, r->n, quantile_place(q, r->n), is_median, site)
                                : duet_mean_axis(floating(sorted, site), axis); /* NaN */
    return composed(function, 1, &x, in_shape(made, &to, site), site);
}

/* q is a part of `whole`: of 1 or of 100. */
static duet_expr part_quantile(const char *function, duet_expr x, double q, double whole, const reduced *r,
                               const char *site)
{
    IN_DEFAULT_FP_ENVIRONMENT;
    if (0 <= q && q <= whole) return quantile(function, x, q / whole, r, false, site);
    const duet_status status = fail(DUET_BAD_ARGUMENT, "q (%g) must be from 0 to %g", q, whole);
    return bad_argument(function, x, status, site);
}

static duet_expr median(const char *function, duet_expr x, const reduced *r, const char *site)
{
    return quantile(function, x, 0.5, r, true, site);
}

/* ---- norms of vectors ---- */

/* A reduction of e along the axes of r, in the form that the user called. */
#define ALONG(reduction, e)                                                                                  \
    (r->keeps ? duet_##reduction##_axes_keep_at(e, count, axis, site)                                        \
              : duet_##reduction##_axes_at(e, count, axis, site))

static duet_expr vector_norm(const char *function, duet_expr x, double p, const reduced *r, const char *site)
{
    int axis[DUET_RANK_MAX], count = 0;
    if (isnan(p)) return bad_argument(function, x, fail(DUET_BAD_ARGUMENT, "p must not be NaN"), site);
    for (int a = 0; a < DUET_RANK_MAX; a++)
        if (r->is[a]) axis[count++] = a;
    IN_DEFAULT_FP_ENVIRONMENT;
    const duet_expr f = floating(x, site);
    duet_expr made;
    if (p == 2) made = ALONG(norm, f);
    else if (p == 1) made = ALONG(norm1, f);
    else if (p == INFINITY) made = ALONG(max, duet_abs(f));
    else if (p == -INFINITY) made = ALONG(min, duet_abs(f));
    else if (p == 0) made = duet_cast(ALONG(count_nonzero, f), dtype_part(duet_expr_type(f)));
    else made = duet_pow(ALONG(sum, duet_pow(duet_abs(f), p)), 1 / p);
    return composed(function, 1, &x, made, site);
}

/* ---- the forms of these reductions ---- */

#define NUMBER_median
#define NUMBER_quantile    , double q
#define NUMBER_percentile  , double q
#define NUMBER_var_ddof    , double ddof
#define NUMBER_std_ddof    , double ddof
#define NUMBER_vector_norm , double p
#define PASS_median
#define PASS_quantile       , q
#define PASS_percentile     , q
#define PASS_var_ddof       , ddof
#define PASS_std_ddof       , ddof
#define PASS_vector_norm    , p
#define MAKE_median(f)      median(f, x, &r, site)
#define MAKE_quantile(f)    part_quantile(f, x, q, 1, &r, site)
#define MAKE_percentile(f)  part_quantile(f, x, q, 100, &r, site)
#define MAKE_var_ddof(f)    var_ddof(f, x, ddof, &r, false, site)
#define MAKE_std_ddof(f)    var_ddof(f, x, ddof, &r, true, site)
#define MAKE_vector_norm(f) vector_norm(f, x, p, &r, site)
#define FORM(name, suffix, keeps)                                                                            \
    duet_expr(duet_##name##suffix##_at)(duet_expr x NUMBER_##name, int count, const int *axis,               \
                                        const char *site)                                                    \
    {                                                                                                        \
        const shape s = formula_shape(x);                                                                    \
        reduced r;                                                                                           \
        const duet_status status = read_axes(&s, count, axis, keeps, &r);                                    \
        if (status != DUET_OK) return bad_argument(#name #suffix, x, status, site);                          \
        return MAKE_##name(#name #suffix);                                                                   \
    }                                                                                                        \
    duet_expr(duet_##name##suffix)(duet_expr x NUMBER_##name, int count, const int *axis)                    \
    {                                                                                                        \
        return duet_##name##suffix##_at(x PASS_##name, count, axis, NULL);                                   \
    }
#define STATISTIC(name)                                                                                      \
    duet_expr(duet_##name##_at)(duet_expr x NUMBER_##name, const char *site)                                 \
    {                                                                                                        \
        const shape s = formula_shape(x);                                                                    \
        const reduced r = all_axes(&s);                                                                      \
        return MAKE_##name(#name);                                                                           \
    }                                                                                                        \
    duet_expr(duet_##name)(duet_expr x NUMBER_##name) { return duet_##name##_at(x PASS_##name, NULL); }      \
    FORM(name, _axes, false)                                                                                 \
    FORM(name, _axes_keep, true)
STATISTIC(median)
STATISTIC(quantile)
STATISTIC(percentile)
STATISTIC(var_ddof)
STATISTIC(std_ddof)
STATISTIC(vector_norm)

/* ---- covariance ---- */

static duet_status check_variables(const shape *s)
{
    if (s->rank == 1 || s->rank == 2) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "x must have 1 or 2 axes, not %d", s->rank);
}

static duet_expr covariance(duet_expr x, double ddof, const char *site)
{
    const shape s = formula_shape(x);
    const int64_t n = s.size[s.rank - 1];
    IN_DEFAULT_FP_ENVIRONMENT;
    const duet_expr f = floating(x, site), rows = s.rank == 1 ? duet_expand_dims(f, 0) : f,
                    centered = duet_sub(rows, duet_mean_keep(rows, 1));
    const duet_expr other = is_complex(centered) ? duet_conj(centered) : centered;
    const duet_expr sums = duet_matmul(centered, duet_transpose(other)),
                    made = duet_div(sums, fmax((double)n - ddof, 0));
    return s.rank == 1 ? duet_reshape_at(made, 0, NULL, site) : made;
}

duet_expr(duet_cov_at)(duet_expr x, double ddof, const char *site)
{
    const shape s = formula_shape(x);
    duet_status status = check_variables(&s);
    if (status == DUET_OK && isnan(ddof)) status = fail(DUET_BAD_ARGUMENT, "ddof must not be NaN");
    if (status != DUET_OK) return bad_argument("cov", x, status, site);
    return composed("cov", 1, &x, covariance(x, ddof, site), site);
}
duet_expr(duet_cov)(duet_expr x, double ddof) { return duet_cov_at(x, ddof, NULL); }

static duet_expr correlation(duet_expr x, const char *site)
{
    const duet_expr c = covariance(x, 1, site);
    if (duet_expr_status(c) != DUET_OK) return c;
    if (duet_expr_rank(c) == 0) return duet_div(c, c);
    const duet_expr deviations = duet_sqrt(duet_real(duet_diagonal_of(c, 0)));
    const duet_expr made = duet_div(duet_div(c, duet_expand_dims(deviations, 1)), deviations);
    if (!is_complex(c)) return duet_clip(made, -1, 1);
    return duet_complex(duet_clip(duet_real(made), -1, 1), duet_clip(duet_imag(made), -1, 1));
}

duet_expr(duet_corrcoef_at)(duet_expr x, const char *site)
{
    const shape s = formula_shape(x);
    const duet_status status = check_variables(&s);
    if (status != DUET_OK) return bad_argument("corrcoef", x, status, site);
    return composed("corrcoef", 1, &x, correlation(x, site), site);
}
duet_expr(duet_corrcoef)(duet_expr x) { return duet_corrcoef_at(x, NULL); }
