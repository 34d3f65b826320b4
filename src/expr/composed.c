/* composed.c - operators made of others, from their rows. */
#include "call_text.h"
#include "derivative_rules.h"
#include "dtype.h"
#include <math.h>
#include <stdbool.h>

#undef DUET_HERE
#define DUET_HERE site /* operators within a formula report the position of the user's call */

/* A piecewise approximation of the sigmoid of 2 h: Theano's ultra_fast_sigmoid. */
static duet_expr fast_sigmoid_of(duet_expr h, const char *site)
{
    const duet_expr a = duet_abs(h),
                    far = duet_add(0.935409070603099, duet_mul(0.0458812946797165, duet_sub(a, 1.7)));
    const duet_expr near = duet_div(duet_mul(1.5, a), duet_add(1, a));
    const duet_expr z =
        duet_where(duet_less(a, 1.7), near,
                   duet_where(duet_less(a, 3), far, duet_where(duet_equal(a, a), 0.99505475368673, a)));
    return duet_mul(0.5, duet_add(1, duet_where(duet_less(h, 0), duet_neg(z), z)));
}
#define FAST_SIGMOID(h) fast_sigmoid_of(h, site)

/* ---- functions with limits at infinity, of a real x. Formulas of a complex x have no clip. ---- */

/* Beyond the limits the result is 1 or -1 in every type. */
static duet_expr softsign_of(duet_expr x, const char *site)
{
    const duet_expr limited = is_complex(x) ? x : duet_clip(x, -0x1p100, 0x1p100);
    return duet_div(limited, duet_add(1, duet_abs(limited)));
}
#define SOFTSIGN(x) softsign_of(x, site)

/* (1 + tanh(u)) / 2 is sigmoid(2 u), which does not cancel where u is negative. */
static duet_expr gelu_tanh_of(duet_expr x, const char *site)
{
    const duet_expr sum = duet_add(x, duet_mul(0.044715, duet_mul(x, duet_mul(x, x))));
    if (is_complex(x))
        return duet_mul(duet_mul(0.5, x), duet_add(1, duet_tanh(duet_mul(0.79788456080286536, sum))));
    return duet_mul(duet_maximum(x, -800), duet_sigmoid(duet_mul(1.5957691216057307, sum)));
}
#define GELU_TANH(x) gelu_tanh_of(x, site)

/* The derivative of sigmoid is e / (1 + e)^2, where e is exp(-|x|). s (1 - s) would cancel. */
static duet_expr sigmoid_derivative_of(duet_expr x, const char *site)
{
    const duet_expr e = duet_exp(duet_neg(duet_abs(x)));
    return duet_div(e, duet_square(duet_add(1, e)));
}
#define SIGMOID_DERIVATIVE(x)                                                                                \
    (is_complex(x) ? duet_sigmoid_slope(duet_sigmoid(x)) : sigmoid_derivative_of(x, site))
#define TANH_DERIVATIVE(x)                                                                                   \
    (is_complex(x) ? duet_tanh_slope(duet_tanh(x)) : duet_mul(4, sigmoid_derivative_of(duet_mul(2, x), site)))

/* The larger operand + log(1 + exp(smaller - larger)). Operands are selected by where, which does not divide
 * the gradients of equal operands, so that second derivatives are right there. The difference of equal
 * infinities would be NaN. */
static duet_expr logaddexp_of(duet_expr x, duet_expr y, const char *site)
{
    const duet_expr is_first = duet_greater(x, y), is_infinite = duet_equal(duet_abs(x), INFINITY),
                    is_equal = duet_logical_and(is_infinite, duet_equal(x, y));
    const duet_expr larger = duet_where(is_first, x, y), smaller = duet_where(is_first, y, x);
    const duet_expr e = duet_exp(duet_where(is_equal, 0, duet_sub(smaller, larger)));
    return duet_add(duet_where(is_equal, duet_maximum(x, y), larger), duet_log1p(e));
}
#define LOGADDEXP(x, y) logaddexp_of(x, y, site)

/* Are the operands integers, or one of them integers and the other a number? */
static bool are_integers(duet_expr x, duet_expr y)
{
    const bool is[] = { dtype_is_integer(duet_expr_type(x)) && !is_number(x),
                        dtype_is_integer(duet_expr_type(y)) && !is_number(y) };
    return (is[0] && (is[1] || is_number(y))) || (is[1] && is_number(x));
}

/* Integers: x less the remainder is a multiple of y, which floor_divide divides exactly. Floating point: the
 * quotient of the magnitudes is rounded down, and gets the sign. */
static duet_expr trunc_divide_of(duet_expr x, duet_expr y, const char *site)
{
    if (are_integers(x, y)) return duet_floor_divide(duet_sub(x, duet_fmod(x, y)), y);
    const duet_expr down = duet_floor_divide(duet_abs(x), duet_abs(y));
    return duet_mul(duet_mul(down, duet_copysign(1, x)), duet_copysign(1, y));
}
#define TRUNC_DIVIDE(x, y) trunc_divide_of(x, y, site)

#define A_PART(name, e)                                                                                      \
    (is_complex(x) ? duet_logical_or(duet_##name(duet_real(x)), duet_##name(duet_imag(x))) : (e))
#define EACH_PART(name, e)                                                                                   \
    (is_complex(x) ? duet_logical_and(duet_##name(duet_real(x)), duet_##name(duet_imag(x))) : (e))

#define DUET_COMPOSED1(name, formula, ...)                                                                   \
    duet_expr(duet_##name##_at)(duet_expr x, const char *site)                                               \
    {                                                                                                        \
        return composed(#name, 1, &x, formula, site);                                                        \
    }                                                                                                        \
    duet_expr(duet_##name)(duet_expr x) { return duet_##name##_at(x, NULL); }
#define DUET_COMPOSED2(name, formula, ...)                                                                   \
    duet_expr(duet_##name##_at)(duet_expr x, duet_expr y, const char *site)                                  \
    {                                                                                                        \
        return composed(#name, 2, (duet_expr[]){ x, y }, formula, site);                                     \
    }                                                                                                        \
    duet_expr(duet_##name)(duet_expr x, duet_expr y) { return duet_##name##_at(x, y, NULL); }
#define DUET_COMPOSED3(name, formula, ...)                                                                   \
    duet_expr(duet_##name##_at)(duet_expr x, duet_expr y, duet_expr z, const char *site)                     \
    {                                                                                                        \
        return composed(#name, 3, (duet_expr[]){ x, y, z }, formula, site);                                  \
    }                                                                                                        \
    duet_expr(duet_##name)(duet_expr x, duet_expr y, duet_expr z) { return duet_##name##_at(x, y, z, NULL); }
#define DUET_COMPOSED1N(name, formula, ...)                                                                  \
    duet_expr(duet_##name##_at)(duet_expr x, double s, const char *site)                                     \
    {                                                                                                        \
        return composed(#name, 1, &x, formula, site);                                                        \
    }                                                                                                        \
    duet_expr(duet_##name)(duet_expr x, double s) { return duet_##name##_at(x, s, NULL); }
#include <duet/composed.def>

/* ---- reductions, in all their forms ---- */

#define FINITE(m) duet_finite(m, site)
static duet_expr duet_finite(duet_expr m, const char *site)
{
    return duet_where(duet_less(duet_abs(m), INFINITY), m, 0);
}

/* The magnitude of a small signed integer may be out of range of its type. That of the smallest i64
 * is in the range of u64; it wraps when it is cast back. */
static duet_expr size_of(duet_expr x, const char *site)
{
    const bool is_signed = dtype_kind(duet_expr_type(x)) == TYPE_SIGNED;
    return duet_abs(is_signed ? duet_cast(x, DUET_I64) : x);
}
#define SIZE(x) size_of(x, site)

static duet_expr sizes_of(duet_expr x, const char *site)
{
    const bool is_signed = dtype_kind(duet_expr_type(x)) == TYPE_SIGNED;
    return is_signed ? duet_cast(size_of(x, site), DUET_U64) : duet_abs(x);
}
#define SIZES(x) sizes_of(x, site)

static duet_expr largest_of(duet_expr x, duet_expr largest, const char *site)
{
    const bool is_signed = dtype_kind(duet_expr_type(x)) == TYPE_SIGNED;
    return is_signed ? duet_cast(largest, DUET_I64) : largest;
}
#define LARGEST(e) largest_of(x, e, site)

static bool has_elements(duet_expr x)
{
    bool has = true;
    for (int a = 0; a < duet_expr_rank(x); a++) has &= duet_expr_size(x, a) > 0;
    return has;
}

/* Which elements are equal to the largest? Complex ones by their parts. There may be no elements. */
#define IS_MOST(e) duet_equal(e, KEEP(max, e))
#define UNIFORM(x)                                                                                           \
    (!has_elements(x) ? duet_equal(x, x)                                                                     \
     : is_complex(x)  ? duet_logical_and(IS_MOST(duet_real(x)), IS_MOST(duet_imag(x)))                       \
                      : IS_MOST(x))

#define R(reduction, e)    duet_##reduction(e)
#define KEEP(reduction, e) duet_##reduction(e)
#define DUET_COMPOSED_FOLD1(name, formula, ...)                                                              \
    duet_expr(duet_##name##_at)(duet_expr x, const char *site)                                               \
    {                                                                                                        \
        return composed(#name, 1, &x, formula, site);                                                        \
    }                                                                                                        \
    duet_expr(duet_##name)(duet_expr x) { return duet_##name##_at(x, NULL); }
#include <duet/composed.def>

#undef R
#undef KEEP
#define R(reduction, e)    duet_##reduction##_axis(e, axis)
#define KEEP(reduction, e) duet_##reduction##_keep(e, axis)
#define DUET_COMPOSED_FOLD1(name, formula, ...)                                                              \
    duet_expr(duet_##name##_axis_at)(duet_expr x, int axis, const char *site)                                \
    {                                                                                                        \
        return composed(#name "_axis", 1, &x, formula, site);                                                \
    }                                                                                                        \
    duet_expr(duet_##name##_axis)(duet_expr x, int axis) { return duet_##name##_axis_at(x, axis, NULL); }
#include <duet/composed.def>

#undef R
#define R(reduction, e) duet_##reduction##_keep(e, axis)
#define DUET_COMPOSED_FOLD1(name, formula, ...)                                                              \
    duet_expr(duet_##name##_keep_at)(duet_expr x, int axis, const char *site)                                \
    {                                                                                                        \
        return composed(#name "_keep", 1, &x, formula, site);                                                \
    }                                                                                                        \
    duet_expr(duet_##name##_keep)(duet_expr x, int axis) { return duet_##name##_keep_at(x, axis, NULL); }
#include <duet/composed.def>

#undef R
#undef KEEP
#define R(reduction, e)    duet_##reduction##_axes_at(DUET(e), count, axis, site)
#define KEEP(reduction, e) duet_##reduction##_axes_keep_at(DUET(e), count, axis, site)
#define DUET_COMPOSED_FOLD1(name, formula, ...)                                                              \
    duet_expr(duet_##name##_axes_at)(duet_expr x, int count, const int *axis, const char *site)              \
    {                                                                                                        \
        return composed(#name "_axes", 1, &x, formula, site);                                                \
    }                                                                                                        \
    duet_expr(duet_##name##_axes)(duet_expr x, int count, const int *axis)                                   \
    {                                                                                                        \
        return duet_##name##_axes_at(x, count, axis, NULL);                                                  \
    }
#include <duet/composed.def>

#undef R
#define R(reduction, e) duet_##reduction##_axes_keep_at(DUET(e), count, axis, site)
#define DUET_COMPOSED_FOLD1(name, formula, ...)                                                              \
    duet_expr(duet_##name##_axes_keep_at)(duet_expr x, int count, const int *axis, const char *site)         \
    {                                                                                                        \
        return composed(#name "_axes_keep", 1, &x, formula, site);                                           \
    }                                                                                                        \
    duet_expr(duet_##name##_axes_keep)(duet_expr x, int count, const int *axis)                              \
    {                                                                                                        \
        return duet_##name##_axes_keep_at(x, count, axis, NULL);                                             \
    }
#include <duet/composed.def>
