/* predicates.c - tests of matrices (duet_is_symmetric, duet_allclose, ...), duet_pow_int and
 * duet_nextafter, made of other operators. */
#include "call_text.h"
#include "dtype.h"
#include "operands.h"
#include "status.h"
#include "view_formulas.h"
#include <math.h>
#include <stdlib.h>

#undef DUET_HERE
#define DUET_HERE site /* the position of the user's call */

/* ---- wrong operands ---- */

static duet_expr no_matrix(duet_expr e, const char *name, const char *site)
{
    arena *a = arena_mine();
    if (!a) return no_room(DUET_NO_MEMORY);
    node *x[3] = { 0 };
    duet_status s = operands(a, OP_equal, 1, &e, x);
    if (s == DUET_OK) s = fail(DUET_BAD_SHAPE, "x must have 2 axes, not %d", x[0]->rank);
    return call_failed(a, name, 1, x, s, site);
}

static duet_expr no_tolerance(duet_expr e, duet_expr f, double relative, double absolute, const char *site)
{
    arena *a = arena_mine();
    if (!a) return no_room(DUET_NO_MEMORY);
    node *x[3] = { 0 };
    duet_status s = operands(a, OP_equal, 2, (duet_expr[]){ e, f }, x);
    if (s == DUET_OK)
        s = fail(DUET_BAD_ARGUMENT, "relative (%g) and absolute (%g) must not be negative or NaN", relative,
                 absolute);
    return call_failed(a, "allclose", 2, x, s, site);
}

/* ---- macros that rows of composed.def use ---- */

/* 1 for each element of x, including NaN. */
static duet_expr ones(duet_expr x, const char *site)
{
    return duet_logical_or(duet_equal(x, x), duet_not_equal(x, x));
}

/* 1, 2, ... along an axis. The other axis has one element. */
static duet_expr places(duet_expr x, int axis, const char *site)
{
    return duet_cumsum(duet_cast(duet_all_keep(ones(x, site), 1 - axis), DUET_I64), axis);
}

/* false, computed from x so that x is consumed. */
static duet_expr no(duet_expr x, const char *site) { return duet_logical_and(duet_any(x), 0); }

static bool is_square(duet_expr x) { return duet_expr_size(x, 0) == duet_expr_size(x, 1); }

/* true, computed from x so that x is consumed. */
static duet_expr yes(duet_expr x, const char *site) { return duet_logical_or(duet_any(x), 1); }

static duet_expr conjugate(duet_expr x, const char *site)
{
    return dtype_is_complex(duet_expr_type(x)) ? duet_conj(x) : x;
}

#define ROW            places(x, 0, site)
#define COLUMN         places(x, 1, site)
#define SQUARE(e)      (is_square(x) ? (e) : no(x, site))
#define YES            yes(x, site)
#define CONJUGATE(e)   conjugate(e, site)
#define ONLY(e)        duet_logical_or(e, duet_equal(x, 0))
#define UNIT(e)        duet_logical_or(e, unit_there(x, site))
#define ONE_EACH(axis) duet_equal(duet_sum_axis(duet_equal(x, 1), axis), 1)

/* Is it 1 on the diagonal, and 0 elsewhere? */
static duet_expr unit_there(duet_expr x, const char *site)
{
    return duet_where(duet_equal(ROW, COLUMN), duet_equal(x, 1), duet_equal(x, 0));
}

#define DUET_COMPOSED_MATRIX1(name, formula, ...)                                                            \
    duet_expr(duet_##name##_at)(duet_expr x, const char *site)                                               \
    {                                                                                                        \
        if (duet_expr_rank(x) != 2) return no_matrix(x, #name, site);                                        \
        return composed(#name, 1, &x, formula, site);                                                        \
    }                                                                                                        \
    duet_expr(duet_##name)(duet_expr x) { return duet_##name##_at(x, NULL); }
#include <duet/composed.def>

/* ---- two matrices ---- */

static bool same_shape(duet_expr x, duet_expr y)
{
    bool same = duet_expr_rank(x) == duet_expr_rank(y);
    for (int a = 0; a < duet_expr_rank(x); a++) same &= duet_expr_size(x, a) == duet_expr_size(y, a);
    return same;
}

static bool both_stand(duet_expr x, duet_expr y)
{
    return duet_expr_status(x) == DUET_OK && duet_expr_status(y) == DUET_OK;
}

duet_expr(duet_array_equal_at)(duet_expr x, duet_expr y, const char *site)
{
    const bool compares = same_shape(x, y) || !both_stand(x, y);
    const duet_expr made = compares ? duet_all(duet_equal(x, y)) : duet_logical_and(no(x, site), no(y, site));
    return composed("array_equal", 2, (duet_expr[]){ x, y }, made, site);
}
duet_expr(duet_array_equal)(duet_expr x, duet_expr y) { return duet_array_equal_at(x, y, NULL); }

/* Tolerances are fractions: integers are compared as f64. */
static duet_expr real(duet_expr x, const char *site)
{
    if (dtype_kind(duet_expr_type(x)) >= TYPE_FLOAT) return x;
    return duet_cast(x, DUET_F64);
}

duet_expr(duet_allclose_at)(duet_expr x, duet_expr y, double relative, double absolute, const char *site)
{
    if (!(relative >= 0 && absolute >= 0)) return no_tolerance(x, y, relative, absolute, site);
    const duet_expr p = real(x, site), q = real(y, site);
    const duet_expr far = duet_abs(duet_sub(p, q)), size = duet_abs(q);
    const duet_expr near = duet_less_equal(far, duet_add(absolute, duet_mul(relative, size)));
    const duet_expr close =
        duet_logical_or(duet_equal(p, q), duet_logical_and(near, duet_less(size, INFINITY)));
    return composed("allclose", 2, (duet_expr[]){ x, y }, duet_all(close), site);
}
duet_expr(duet_allclose)(duet_expr x, duet_expr y, double relative, double absolute)
{
    return duet_allclose_at(x, y, relative, absolute, NULL);
}

/* ---- powers ---- */

/* x to the power n, for n > 0. */
static duet_expr power(duet_expr x, unsigned n, const char *site)
{
    duet_expr all = x, square = x;
    for (bool first = true; n; n >>= 1) {
        if (n & 1) {
            all = first ? square : duet_mul(all, square);
            first = false;
        }
        if (n > 1) square = duet_mul(square, square);
    }
    return all;
}

static duet_expr pow_int(duet_expr x, int n, const char *site)
{
    if (n == 0) return duet_cast(ones(x, site), duet_expr_type(x));
    if (n > 0) return power(x, (unsigned)n, site);
    return duet_div(1, power(x, -(unsigned)n, site));
}

duet_expr(duet_pow_int_at)(duet_expr x, int n, const char *site)
{
    return composed("pow_int", 1, &x, not_itself(pow_int(x, n, site), x, site), site);
}
duet_expr(duet_pow_int)(duet_expr x, int n) { return duet_pow_int_at(x, n, NULL); }

/* ---- the next number ---- */

/* In a format of P bits, fl(x + gap) with gap = 2^-P (1 + 2^(1 - P)) |x| is the number next to x, because
 * gap is more than half and less than one and a half of the distance, on both sides. Rump, Zimmermann,
 * Boldo, Melquiond: Computing predecessor and successor in rounding to nearest, 2009. Where the distance is
 * `least`, as that of subnormal numbers, so is the gap. */
typedef struct format {
    double part, most; /* gap / |x|; the largest number */
    double least;      /* the distance of subnormal numbers */
    double small, up;  /* numbers below `small` are multiplied by `up`, so that the gap is not subnormal */
} format;

static format format_of(duet_dtype t)
{
    switch (t) {
    case DUET_F16: return (format){ 0x1p-11 + 0x1p-20, 65504, 0x1p-24, 0, 1 };
    case DUET_BF16: return (format){ 0x1p-8 + 0x1p-15, 0x1.fep127, 0x1p-133, 0, 1 };
    case DUET_F32: return (format){ 0x1p-24 + 0x1p-47, 0x1.fffffep127, 0x1p-149, 0x1p-100, 0x1p48 };
    default: return (format){ 0x1p-53 + 0x1p-105, 0x1.fffffffffffffp1023, 0x1p-1074, 0x1p-900, 0x1p110 };
    }
}

/* |x| is not infinite; up: the result is above x. */
static duet_expr neighbour(duet_expr x, duet_expr up, const format *f, const char *site)
{
    const duet_expr size = duet_abs(x);
    if (f->small == 0) {
        const duet_expr gap = duet_maximum(duet_mul(size, f->part), f->least);
        return duet_add(x, duet_where(up, gap, duet_neg(gap)));
    }
    const duet_expr is_small = duet_less(size, f->small);
    const duet_expr scaled = duet_where(is_small, duet_mul(x, f->up), x);
    const duet_expr gap =
        duet_maximum(duet_mul(duet_abs(scaled), f->part), duet_where(is_small, f->least * f->up, 0));
    const duet_expr next = duet_add(scaled, duet_where(up, gap, duet_neg(gap)));
    return duet_where(is_small, duet_mul(next, 1 / f->up), next);
}

static duet_expr number_after(duet_expr x, duet_expr y, duet_expr nan, const char *site)
{
    const duet_dtype type = duet_expr_type(nan), computed = dtype_is_half(type) ? DUET_F32 : type;
    const format f = format_of(type);
    const duet_expr a = duet_cast(x, computed), b = duet_cast(y, computed);
    const duet_expr up = duet_less(a, b), next = neighbour(a, up, &f, site);
    const duet_expr finite = duet_where(duet_equal(duet_abs(a), INFINITY), f.most, next);
    /* towards 0 from the smallest number, the sign stays */
    const duet_expr made = duet_where(duet_equal(a, 0), next, duet_copysign(finite, a));
    const duet_expr result = duet_where(duet_equal(a, b), b, made);
    return duet_where(duet_isnan(nan), nan, duet_cast(result, type));
}

duet_expr(duet_nextafter_at)(duet_expr x, duet_expr y, const char *site)
{
    const duet_expr e[] = { x, y };
    const duet_expr nan = duet_copysign(duet_minimum(x, y), 1); /* NaN if one is; not for integers */
    const bool stands = duet_expr_status(nan) == DUET_OK;
    return composed("nextafter", 2, e, stands ? number_after(x, y, nan, site) : nan, site);
}
duet_expr(duet_nextafter)(duet_expr x, duet_expr y) { return duet_nextafter_at(x, y, NULL); }
