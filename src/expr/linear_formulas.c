/* linear_formulas.c - linear algebra made of other operators: pinv, matrix_rank, matrix_norm, cond,
 * matrix_power and permutation_matrix. All but the last work on stacks of matrices. */
#include "call_text.h"
#include "derivative_rules.h"
#include "dtype.h"
#include "fp_environment.h"
#include "min_max.h"
#include "status.h"
#include "view_formulas.h"
#include <float.h>
#include <math.h>
#undef DUET_HERE
#define DUET_HERE site /* of the user's call */

/* Integers and bools as f64, as NumPy converts them. */
static duet_expr floating(duet_expr x, const char *site)
{
    return dtype_kind(duet_expr_type(x)) >= TYPE_FLOAT ? x : duet_cast(x, DUET_F64);
}

static duet_status check_matrix(const shape *s, const char *who, bool square)
{
    if (s->rank < 2) return fail(DUET_BAD_SHAPE, "%s must have at least 2 axes, not %d", who, s->rank);
    const int64_t rows = s->size[s->rank - 2], columns = s->size[s->rank - 1];
    if (square && rows != columns)
        return fail(DUET_BAD_SHAPE, "%s must be square, not %lld x %lld", who, (long long)rows,
                    (long long)columns);
    return DUET_OK;
}

/* The n x n identity matrix as bools. */
static duet_expr is_diagonal(int64_t n, const char *site)
{
    return duet_equal(counted(0, 2, n, 1, site), counted(1, 2, n, 1, site));
}

/* ---- the pseudoinverse ---- */

/* Its columns are the solutions of least norm for the columns of the identity matrix. */
duet_expr(duet_pinv_at)(duet_expr a, const char *site)
{
    const shape s = formula_shape(a);
    const duet_status status = is_valid(a) ? check_matrix(&s, "a", false) : DUET_OK;
    if (status != DUET_OK || !is_valid(a)) return bad_argument("pinv", a, status, site);
    const duet_expr unit = duet_cast(is_diagonal(s.size[s.rank - 2], site), duet_expr_type(a));
    return composed("pinv", 1, &a, duet_lstsq(a, unit), site);
}
duet_expr(duet_pinv)(duet_expr a) { return duet_pinv_at(a, NULL); }

/* ---- the rank ---- */

static double epsilon_of(duet_expr x)
{
    const bool narrow = dtype_part(duet_expr_type(x)) == DUET_F32;
    return narrow ? (double)FLT_EPSILON : DBL_EPSILON;
}

/* Without singular values there is no largest one. */
static duet_expr count_above(duet_expr values, int64_t count, double factor, const char *site)
{
    if (!count || !is_valid(values)) return duet_count_nonzero_axis(values, -1);
    const duet_expr limit = duet_mul(duet_range(values, -1, 0, 1, 1), factor);
    return duet_count_nonzero_axis(duet_greater(values, limit), -1);
}

duet_expr(duet_matrix_rank_at)(duet_expr a, double rtol, const char *site)
{
    const shape s = formula_shape(a);
    duet_status status = is_valid(a) ? check_matrix(&s, "a", false) : DUET_OK;
    if (status == DUET_OK && isnan(rtol)) status = fail(DUET_BAD_ARGUMENT, "rtol must not be NaN");
    if (status != DUET_OK || !is_valid(a)) return bad_argument("matrix_rank", a, status, site);
    IN_DEFAULT_FP_ENVIRONMENT;
    const int64_t rows = s.size[s.rank - 2], columns = s.size[s.rank - 1];
    const duet_expr x = floating(a, site);
    const double factor = rtol < 0 ? (double)larger(rows, columns) * epsilon_of(x) : rtol;
    return composed("matrix_rank", 1, &a, count_above(duet_svdvals(x), smaller(rows, columns), factor, site),
                    site);
}
duet_expr(duet_matrix_rank)(duet_expr a, double rtol) { return duet_matrix_rank_at(a, rtol, NULL); }

/* ---- norms of matrices ---- */

static duet_expr sums(duet_expr x, int axis, const char *site) { return duet_sum_axis(duet_abs(x), axis); }

static duet_expr norm_of(duet_expr x, duet_matrix_norms kind, const char *site)
{
    const int last[] = { -2, -1 };
    switch (kind) {
    case DUET_NORM_NUC: return duet_sum_axis(duet_svdvals(x), -1);
    case DUET_NORM_INF: return duet_max_axis(sums(x, -1, site), -1);
    case DUET_NORM_MINUS_INF: return duet_min_axis(sums(x, -1, site), -1);
    case DUET_NORM_1: return duet_max_axis(sums(x, -2, site), -1);
    case DUET_NORM_MINUS_1: return duet_min_axis(sums(x, -2, site), -1);
    case DUET_NORM_2: return duet_max_axis(duet_svdvals(x), -1);
    case DUET_NORM_MINUS_2: return duet_min_axis(duet_svdvals(x), -1);
    default: return duet_norm_axes_at(x, 2, last, site);
    }
}

static duet_status check_norm(const shape *s, int kind, bool square)
{
    TRY(check_matrix(s, "x", square));
    if (kind >= DUET_NORM_FRO && kind <= DUET_NORM_MINUS_2) return DUET_OK;
    return fail(DUET_BAD_ARGUMENT, "kind (%d) must be one of duet_matrix_norms, such as DUET_NORM_FRO", kind);
}

duet_expr(duet_matrix_norm_at)(duet_expr x, duet_matrix_norms kind, const char *site)
{
    const shape s = formula_shape(x);
    const duet_status status = is_valid(x) ? check_norm(&s, (int)kind, false) : DUET_OK;
    if (status != DUET_OK || !is_valid(x)) return bad_argument("matrix_norm", x, status, site);
    return composed("matrix_norm", 1, &x, norm_of(floating(x, site), kind, site), site);
}
duet_expr(duet_matrix_norm)(duet_expr x, duet_matrix_norms kind)
{
    return duet_matrix_norm_at(x, kind, NULL);
}

/* ---- the condition ---- */

/* By singular values, a singular matrix has an infinite condition. */
static duet_expr ratio_of_values(duet_expr x, bool inverted, const char *site)
{
    const duet_expr s = duet_svdvals(x), most = duet_max_axis(s, -1), least = duet_min_axis(s, -1);
    if (inverted) return duet_where(duet_equal(most, 0), INFINITY, duet_div(least, most));
    return duet_where(duet_equal(least, 0), INFINITY, duet_div(most, least));
}

duet_expr(duet_cond_at)(duet_expr x, duet_matrix_norms kind, const char *site)
{
    const shape s = formula_shape(x);
    const bool by_values = kind == DUET_NORM_2 || kind == DUET_NORM_MINUS_2;
    const duet_status status = is_valid(x) ? check_norm(&s, (int)kind, !by_values) : DUET_OK;
    if (status != DUET_OK || !is_valid(x)) return bad_argument("cond", x, status, site);
    const duet_expr f = floating(x, site);
    if (by_values) return composed("cond", 1, &x, ratio_of_values(f, kind == DUET_NORM_MINUS_2, site), site);
    const duet_expr inverse = duet_inv(f);
    return composed("cond", 1, &x, duet_mul(norm_of(f, kind, site), norm_of(inverse, kind, site)), site);
}
duet_expr(duet_cond)(duet_expr x, duet_matrix_norms kind) { return duet_cond_at(x, kind, NULL); }

/* ---- powers ---- */

/* The identity matrix in the shape of x. */
static duet_expr identity_like(duet_expr x, int64_t n, const char *site)
{
    const duet_expr any = duet_logical_or(duet_equal(x, x), duet_not_equal(x, x));
    return duet_cast(duet_logical_and(is_diagonal(n, site), any), duet_expr_type(x));
}

static duet_expr power(duet_expr x, unsigned n, const char *site)
{
    duet_expr all = x, square = x;
    for (bool first = true; n; n >>= 1) {
        if (n & 1) {
            all = first ? square : duet_matmul(all, square);
            first = false;
        }
        if (n > 1) square = duet_matmul(square, square);
    }
    return all;
}

duet_expr(duet_matrix_power_at)(duet_expr x, int n, const char *site)
{
    const shape s = formula_shape(x);
    const duet_status status = is_valid(x) ? check_matrix(&s, "x", true) : DUET_OK;
    if (status != DUET_OK || !is_valid(x)) return bad_argument("matrix_power", x, status, site);
    duet_expr made = x;
    if (n == 0) made = identity_like(x, s.size[s.rank - 1], site);
    else if (n > 0) made = not_itself(power(x, (unsigned)n, site), x, site);
    else made = power(duet_inv(floating(x, site)), -(unsigned)n, site);
    return composed("matrix_power", 1, &x, made, site);
}
duet_expr(duet_matrix_power)(duet_expr x, int n) { return duet_matrix_power_at(x, n, NULL); }

/* ---- permutations ---- */

duet_expr(duet_permutation_matrix_at)(duet_expr p, duet_dtype type, const char *site)
{
    const shape s = formula_shape(p);
    duet_status status = DUET_OK;
    if (is_valid(p) && !s.rank) status = fail(DUET_BAD_SHAPE, "p must have at least 1 axis, not 0");
    if (is_valid(p) && s.rank && s.size[s.rank - 1] > INT32_MAX)
        status = fail(DUET_BAD_SHAPE, "p must have at most %d elements along its last axis", INT32_MAX);
    if (status != DUET_OK || !is_valid(p)) return bad_argument("permutation_matrix", p, status, site);
    return composed("permutation_matrix", 1, &p, duet_one_hot(p, (int)s.size[s.rank - 1], type), site);
}
duet_expr(duet_permutation_matrix)(duet_expr p, duet_dtype type)
{
    return duet_permutation_matrix_at(p, type, NULL);
}
