/* complex_functions.c - the real formulas of the elementary functions of complex numbers. */
#include "complex_pairs.h"
#include <math.h>

/* ---- exponential, logarithm, square root, trigonometry ---- */

/* For a large real part, compute exp(x) as exp(x / 2) squared: the product with a small cosine may
 * be in range again. */
pair exp_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    const int large = make2(gb, OP_greater, x[0].re, number(gb, gb->like.type == DUET_F64 ? 700 : 80));
    const int half =
        make2(gb, OP_mul, x[0].re, choose(gb, large, number(gb, 0.5), as_matrix(gb, number(gb, 1))));
    const int e = make1(gb, OP_exp, half), again = choose(gb, large, e, number(gb, 1));
    const pair rotation = { make1(gb, OP_cos, x[0].im),
                            unless_zero(gb, x[0].im, make1(gb, OP_sin, x[0].im)) };
    const pair z = scaled(gb, OP_mul, scaled(gb, OP_mul, rotation, e), again);
    return (pair){ z.re, unless_zero(gb, x[0].im, z.im) };
}

/* Near |z| = 1, use log1p of |z|^2 - 1 = (a - 1)(a + 1) + b^2, where a is the larger part. */
static int log_of_size(const graph_builder *gb, pair x)
{
    const int p = make1(gb, OP_abs, x.re), q = make1(gb, OP_abs, x.im);
    const int a = make2(gb, OP_maximum, p, q), b = make2(gb, OP_minimum, p, q), one = number(gb, 1),
              by = scale_of(gb, a);
    const int h = make2(gb, OP_hypot, make2(gb, OP_mul, p, by), make2(gb, OP_mul, q, by));
    const int far = make2(gb, OP_sub, make1(gb, OP_log, h), make1(gb, OP_log, by));
    const int excess =
        make3(gb, OP_fma, make2(gb, OP_sub, a, one), make2(gb, OP_add, a, one), make2(gb, OP_mul, b, b));
    const int near = make2(gb, OP_mul, make1(gb, OP_log1p, excess), number(gb, 0.5));
    const int is_exact_in_f64 =
        make2(gb, OP_logical_and, make2(gb, OP_greater, h, number(gb, 0.5)), less_than(gb, h, 2));
    return choose(gb, is_exact_in_f64, near, far);
}

pair log_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    return (pair){ log_of_size(gb, x[0]), make2(gb, OP_atan2, x[0].im, x[0].re) };
}

/* Near z = 0, use log1p of |1 + z|^2 - 1 = a (a + 2) + b^2. */
pair log1p_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    const int a = x[0].re, b = x[0].im;
    const pair w = { make2(gb, OP_add, a, number(gb, 1)), b };
    const int h = make2(gb, OP_hypot, w.re, w.im),
              excess = make3(gb, OP_fma, a, make2(gb, OP_add, a, number(gb, 2)), make2(gb, OP_mul, b, b));
    const int near = make2(gb, OP_mul, make1(gb, OP_log1p, excess), number(gb, 0.5));
    const int is_exact_in_f64 =
        make2(gb, OP_logical_and, make2(gb, OP_greater, h, number(gb, 0.5)), less_than(gb, h, 2));
    return (pair){ choose(gb, is_exact_in_f64, near, log_of_size(gb, w)), make2(gb, OP_atan2, w.im, w.re) };
}

/* The parts are cos(b) expm1(a) - 2 sin(b / 2)^2 and sin(b) exp(a). For a large a, where expm1(a) may
 * overflow, both parts are those of exp. */
pair expm1_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    const int a = x[0].re, b = x[0].im, s = make1(gb, OP_sin, make2(gb, OP_mul, number(gb, 0.5), b));
    const int less = make2(gb, OP_mul, make2(gb, OP_mul, number(gb, -2), s), s);
    const int re = make3(gb, OP_fma, make1(gb, OP_cos, b), make1(gb, OP_expm1, a), less);
    const pair e = exp_pair(gb, v, x);
    return (pair){ choose(gb, make2(gb, OP_greater, a, number(gb, 60)), e.re, re), e.im };
}

/* True for -0 too. */
static int is_negative(const graph_builder *gb, int x)
{
    return make2(gb, OP_logical_or, less_than(gb, x, 0),
                 less_than(gb, make2(gb, OP_div, as_matrix(gb, number(gb, 1)), x), 0));
}

/* The larger part is sqrt((|z| + |a|) / 2), the other one is |b| over twice that. The operand is
 * scaled by a power of four, the result by the inverse power of two. */
pair sqrt_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    const int by = scale_of(gb, larger_size(gb, x[0])), back = make1(gb, OP_sqrt, by);
    const pair z = scaled(gb, OP_mul, x[0], by);
    const int a = make1(gb, OP_abs, z.re), b = make1(gb, OP_abs, z.im), h = make2(gb, OP_hypot, z.re, z.im);
    const int t = make1(gb, OP_sqrt, make2(gb, OP_mul, number(gb, 0.5), make2(gb, OP_add, a, h)));
    const int u = unless_zero(gb, b, make2(gb, OP_div, b, make2(gb, OP_mul, number(gb, 2), t)));
    const int left = less_than(gb, x[0].re, 0), size = choose(gb, left, t, u);
    const int im = choose(gb, is_negative(gb, x[0].im), make1(gb, OP_neg, size), size);
    return scaled(gb, OP_div, (pair){ choose(gb, left, u, t), im }, back);
}

pair sin_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    const int a = x[0].re, b = x[0].im;
    const int re = make2(gb, OP_mul, make1(gb, OP_sin, a), make1(gb, OP_cosh, b));
    return (pair){ unless_zero(gb, a, re), make2(gb, OP_mul, make1(gb, OP_cos, a), make1(gb, OP_sinh, b)) };
}

pair cos_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    const int a = x[0].re, b = x[0].im;
    const int im = make2(gb, OP_mul, make1(gb, OP_neg, make1(gb, OP_sin, a)), make1(gb, OP_sinh, b));
    return (pair){ make2(gb, OP_mul, make1(gb, OP_cos, a), make1(gb, OP_cosh, b)), unless_zero(gb, a, im) };
}

pair sinh_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    const int a = x[0].re, b = x[0].im;
    const int im = make2(gb, OP_mul, make1(gb, OP_cosh, a), make1(gb, OP_sin, b));
    return (pair){ make2(gb, OP_mul, make1(gb, OP_sinh, a), make1(gb, OP_cos, b)), unless_zero(gb, b, im) };
}

pair cosh_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    const int a = x[0].re, b = x[0].im;
    const int im = make2(gb, OP_mul, make1(gb, OP_sinh, a), make1(gb, OP_sin, b));
    return (pair){ make2(gb, OP_mul, make1(gb, OP_cosh, a), make1(gb, OP_cos, b)), unless_zero(gb, b, im) };
}

/* The parts are sinh(a) cosh(a) and sin(b) cos(b), both over sinh(a)^2 + cos(b)^2. For a large |a|
 * use the limit, where the real part is 1 to half a unit: it does not overflow. For an infinite a,
 * b may be anything. */
static pair tanh_of(const graph_builder *gb, int a, int b)
{
    const int size = make1(gb, OP_abs, a),
              far = make2(gb, OP_greater, size, number(gb, gb->like.type == DUET_F64 ? 20 : 10));
    const int s = make1(gb, OP_sinh, a), c = make1(gb, OP_cos, b),
              turn = make2(gb, OP_mul, make1(gb, OP_sin, b), c);
    const int below = make3(gb, OP_fma, s, s, make2(gb, OP_mul, c, c)),
              across = make2(gb, OP_mul, s, make1(gb, OP_cosh, a));
    const int e = make1(gb, OP_exp, make2(gb, OP_mul, number(gb, -2), size));
    const int lost = make2(gb, OP_logical_and, equals_zero(gb, e), make2(gb, OP_not_equal, turn, turn));
    const int limit =
        make2(gb, OP_mul, make2(gb, OP_mul, number(gb, 4), e), choose(gb, lost, number(gb, 0), turn));
    const int one = choose(gb, less_than(gb, a, 0), number(gb, -1), as_matrix(gb, number(gb, 1)));
    return (pair){ choose(gb, far, one, make2(gb, OP_div, across, below)),
                   choose(gb, far, limit, make2(gb, OP_div, turn, below)) };
}

pair tanh_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    return tanh_of(gb, x[0].re, x[0].im);
}

/* tan(z) = -i tanh(iz). */
pair tan_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    const pair t = tanh_of(gb, x[0].im, x[0].re);
    return (pair){ t.im, t.re };
}

pair log2_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    return scaled(gb, OP_mul, log_pair(gb, v, x), number(gb, 1.4426950408889634));
}

pair log10_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    return scaled(gb, OP_mul, log_pair(gb, v, x), number(gb, 0.43429448190325183));
}

/* ---- inverse functions ---- */

/* log(x + sqrt(x^2 + 1)), accurate near 0. Where x^2 overflows it is log(2 x); if the caller has
 * halved x, log(4 x). */
static int asinh_of(const graph_builder *gb, int x, int is_halved)
{
    const int s = make1(gb, OP_abs, x), one = number(gb, 1),
              large = make2(gb, OP_greater, s, number(gb, gb->like.type == DUET_F64 ? 0x1p500 : 0x1p60));
    const int twice =
        choose(gb, is_halved, number(gb, 1.3862943611198906), as_matrix(gb, number(gb, 0.69314718055994531)));
    const int far = make2(gb, OP_add, make1(gb, OP_log, s), twice);
    const int below = make2(gb, OP_add, make1(gb, OP_sqrt, make3(gb, OP_fma, s, s, one)), one);
    const int near = make1(gb, OP_log1p, make3(gb, OP_fma, s, make2(gb, OP_div, s, below), s)),
              y = choose(gb, large, far, near);
    return unless_zero(gb, x, choose(gb, less_than(gb, x, 0), make1(gb, OP_neg, y), y));
}

/* Kahan's method: the square roots p of 1 - z and q of 1 + z. Their imaginary parts have opposite
 * signs, so sums of their products do not cancel. */
static void roots_around(const graph_builder *gb, pair z, pair *p, pair *q)
{
    const int one = number(gb, 1);
    *p = sqrt_pair(gb, NULL, (pair[3]){ { make2(gb, OP_sub, one, z.re), make1(gb, OP_neg, z.im) } });
    *q = sqrt_pair(gb, NULL, (pair[3]){ { make2(gb, OP_add, one, z.re), z.im } });
}

/* Sums of products of p and q are as large as |z|, and may overflow. Near the largest number, halve
 * p. */
static int is_far_out(const graph_builder *gb, pair z)
{
    return make2(gb, OP_greater, larger_size(gb, z), number(gb, range_of(gb).high));
}

static int half_where(const graph_builder *gb, int condition)
{
    return choose(gb, condition, number(gb, 0.5), as_matrix(gb, number(gb, 1)));
}

/* x y - z w, without fusing. */
static int across(const graph_builder *gb, int x, int y, int z, int w)
{
    return unfused(gb, OP_sub, make2(gb, OP_mul, x, y), make2(gb, OP_mul, z, w));
}

pair asin_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    pair p, q;
    roots_around(gb, x[0], &p, &q);
    const int far = is_far_out(gb, x[0]), by = half_where(gb, far);
    const pair h = scaled(gb, OP_mul, p, by);
    const int re = make2(gb, OP_atan2, make2(gb, OP_mul, x[0].re, by), across(gb, h.re, q.re, h.im, q.im));
    return (pair){ re, asinh_of(gb, across(gb, h.re, q.im, h.im, q.re), far) };
}

pair acos_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    pair p, q;
    roots_around(gb, x[0], &p, &q);
    const int re = make2(gb, OP_mul, number(gb, 2), make2(gb, OP_atan2, p.re, q.re)),
              far = is_far_out(gb, x[0]);
    const pair h = scaled(gb, OP_mul, p, half_where(gb, far));
    return (pair){ re, asinh_of(gb, across(gb, h.im, q.re, h.re, q.im), far) };
}

/* The parts are atan2(2 a, 1 - a^2 - b^2) / 2 and log1p(4 b / h^2) / 4. h is the distance to the
 * nearer one of i and -i; for a tiny h, where h^2 underflows, use log(h). For a large |z| the real
 * part is pi / 2. */
pair atan_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    const bool wide = gb->like.type == DUET_F64;
    const int a = x[0].re, b = make1(gb, OP_abs, x[0].im), one = number(gb, 1),
              size = make2(gb, OP_hypot, a, x[0].im);
    const int to_1 = make2(gb, OP_sub, one, b), h = make2(gb, OP_hypot, a, to_1), half = number(gb, 0.5);
    const int d = make3(gb, OP_fma, to_1, make2(gb, OP_add, one, b),
                        make1(gb, OP_neg, make3(gb, OP_fma, a, a, number(gb, 0))));
    const int re = make2(gb, OP_mul, half, make2(gb, OP_atan2, make2(gb, OP_mul, number(gb, 2), a), d));
    const int ratio = make2(gb, OP_div, make2(gb, OP_div, make2(gb, OP_mul, number(gb, 4), b), h), h);
    const int at_pole =
        make2(gb, OP_mul, half, make2(gb, OP_sub, number(gb, 0.69314718055994531), make1(gb, OP_log, h)));
    const int by_ratio = make2(gb, OP_mul, number(gb, 0.25), make1(gb, OP_log1p, ratio));
    const int im = choose(gb, less_than(gb, h, wide ? 0x1p-500 : 0x1p-50), at_pole, by_ratio);
    const int far = make2(gb, OP_greater, size, number(gb, wide ? 0x1p56 : 0x1p27));
    const int angle = choose(gb, is_negative(gb, a), number(gb, -1.5707963267948966),
                             as_matrix(gb, number(gb, 1.5707963267948966)));
    const int y = choose(gb, far, make2(gb, OP_div, make2(gb, OP_div, b, size), size), im);
    return (pair){ choose(gb, far, angle, re),
                   choose(gb, is_negative(gb, x[0].im), make1(gb, OP_neg, y), y) };
}
