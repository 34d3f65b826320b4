/* complex_ops.c - complex operators as real formulas. docs/semantics.md has what they are worth. */
#include "backend.h"
#include "complex_pairs.h"
#include <math.h>

/* ---- arithmetic ---- */

static pair neg_pair(const maker *m, const value *v, const pair x[3])
{
    return (void)v, (pair){ make1(m, OP_neg, x[0].re), make1(m, OP_neg, x[0].im) };
}

static pair conj_pair(const maker *m, const value *v, const pair x[3])
{
    return (void)v, (pair){ x[0].re, x[0].im < 0 ? -1 : make1(m, OP_neg, x[0].im) };
}

static pair add_pair(const maker *m, const value *v, const pair x[3])
{
    const int re = make2(m, OP_add, x[0].re, x[1].re);
    if (x[0].im < 0 || x[1].im < 0) return (pair){ re, x[0].im < 0 ? x[1].im : x[0].im };
    return (void)v, (pair){ re, make2(m, OP_add, x[0].im, x[1].im) };
}

static pair sub_pair(const maker *m, const value *v, const pair x[3])
{
    const int re = make2(m, OP_sub, x[0].re, x[1].re);
    if (x[1].im < 0) return (pair){ re, x[0].im };
    return (void)v,
           (pair){ re, x[0].im < 0 ? make1(m, OP_neg, x[1].im) : make2(m, OP_sub, x[0].im, x[1].im) };
}

static pair scaled(const maker *m, enum op op, pair x, int by)
{
    return (pair){ make2(m, op, x.re, by), make2(m, op, x.im, by) };
}

/* The four products of parts by op, and what they add up to. */
static pair product(const maker *m, const value *v, const pair x[3],
                    int (*times)(const maker *m, const value *v, int x, int y))
{
    if (x[1].im < 0) return (pair){ times(m, v, x[0].re, x[1].re), times(m, v, x[0].im, x[1].re) };
    if (x[0].im < 0) return (pair){ times(m, v, x[0].re, x[1].re), times(m, v, x[0].re, x[1].im) };
    const int re = unfused(m, OP_sub, times(m, v, x[0].re, x[1].re), times(m, v, x[0].im, x[1].im));
    return (pair){ re, unfused(m, OP_add, times(m, v, x[0].re, x[1].im), times(m, v, x[0].im, x[1].re)) };
}

static int times_element(const maker *m, const value *v, int x, int y)
{
    return (void)v, make2(m, OP_mul, x, y);
}

/* dot, matmul, einsum: of parts as of the whole. */
static int times_matrix(const maker *m, const value *v, int x, int y)
{
    value own = operator_of(m, (enum op)v->op, x, y, -1);
    own.attr = v->attr;
    return make_real(m->g, &own);
}

static pair mul_pair(const maker *m, const value *v, const pair x[3])
{
    return product(m, v, x, times_element);
}
static pair dot_pair(const maker *m, const value *v, const pair x[3])
{
    return product(m, v, x, times_matrix);
}
#define matmul_pair dot_pair
#define einsum_pair dot_pair

/* Bounds between which squares, quotients and sums of some lose nothing, and by what the rest is scaled: powers of two, and of four. */
typedef struct range {
    double low, high, up, down;
} range;

static range range_of(const maker *m)
{
    const bool wide = m->like.type == DUET_F64;
    return wide ? (range){ 0x1p-968, 0x1p1022, 0x1p106, 0x1p-2 }
                : (range){ 0x1p-101, 0x1p126, 0x1p48, 0x1p-2 };
}

/* By what to multiply both parts, whose larger size is that. */
static int scale_of(const maker *m, int size)
{
    const range r = range_of(m);
    const int large = make2(m, OP_greater, size, number(m, r.high));
    return choose(m, large, number(m, r.down),
                  choose(m, is_below(m, size, r.low), number(m, r.up), loaded(m, number(m, 1))));
}

static int larger_size(const maker *m, pair x)
{
    return make2(m, OP_maximum, make1(m, OP_abs, x.re), make1(m, OP_abs, x.im));
}

/* Smith's division, of operands that are scaled first: with the larger part of the divisor as hi, the other as lo, and r = lo / hi. */
static pair divided(const maker *m, pair x, pair y)
{
    const int size = larger_size(m, y), by_x = scale_of(m, larger_size(m, x)), by_y = scale_of(m, size);
    const pair a = scaled(m, OP_mul, x, by_x), b = scaled(m, OP_mul, y, by_y);
    const int first = make2(m, OP_greater_equal, make1(m, OP_abs, b.re), make1(m, OP_abs, b.im));
    const int hi = choose(m, first, b.re, b.im), lo = choose(m, first, b.im, b.re);
    const int r =
        choose(m, is_zero(m, size), number(m, 0), make2(m, OP_div, lo, hi)); /* over 0 as of real numbers */
    const int below = make3(m, OP_fma, lo, r, hi), p = choose(m, first, a.re, a.im),
              q = choose(m, first, a.im, a.re);
    const int across = make2(m, OP_sub, q, make2(m, OP_mul, p, r)), back = make2(m, OP_div, by_y, by_x);
    const pair z = { make3(m, OP_fma, q, r, p), choose(m, first, across, make1(m, OP_neg, across)) };
    return scaled(m, OP_mul, scaled(m, OP_div, z, below), back);
}

static pair div_pair(const maker *m, const value *v, const pair x[3])
{
    if (x[1].im < 0) return scaled(m, OP_div, x[0], x[1].re);
    return (void)v, divided(m, loaded_parts(m, x[0]), loaded_parts(m, x[1]));
}

static pair equal_pair(const maker *m, const value *v, const pair x[3])
{
    const pair a = loaded_parts(m, x[0]), b = { x[1].re, imaginary(m, x[1]) };
    const int re = make2(m, (enum op)v->op, a.re, b.re), im = make2(m, (enum op)v->op, a.im, b.im);
    return (pair){ make2(m, v->op == OP_equal ? OP_logical_and : OP_logical_or, re, im), -1 };
}
#define not_equal_pair equal_pair

static pair where_pair(const maker *m, const value *v, const pair x[3])
{
    const pair y = loaded_parts(m, x[1]), z = loaded_parts(m, x[2]);
    return (void)v, (pair){ choose(m, x[0].re, y.re, z.re), choose(m, x[0].re, y.im, z.im) };
}

/* ---- size and angle ---- */

static pair real_pair(const maker *m, const value *v, const pair x[3])
{
    return (void)m, (void)v, (pair){ x[0].re, -1 };
}

static pair imag_pair(const maker *m, const value *v, const pair x[3])
{
    return (void)v, (pair){ loaded(m, imaginary(m, x[0])), -1 };
}

static pair abs_pair(const maker *m, const value *v, const pair x[3])
{
    return (void)v, (pair){ make2(m, OP_hypot, x[0].re, x[0].im), -1 };
}

static pair arg_pair(const maker *m, const value *v, const pair x[3])
{
    return (void)v, (pair){ make2(m, OP_atan2, imaginary(m, x[0]), x[0].re), -1 };
}

static pair complex_pair(const maker *m, const value *v, const pair x[3])
{
    return (void)m, (void)v, (pair){ x[0].re, x[1].re };
}
static pair cast_pair(const maker *m, const value *v, const pair x[3])
{
    return (void)v, (pair){ x[0].re, imaginary(m, x[0]) };
}

static pair transpose_pair(const maker *m, const value *v, const pair x[3])
{
    return (void)v, transposed(m, x[0]);
}

/* ---- functions ---- */

/* f, but where x is 0 that: else 0 times an infinity would be no number. */
static int unless_zero(const maker *m, int x, int f) { return choose(m, is_zero(m, x), x, f); }

/* From where on exp(x) is taken as the square of exp(x / 2), since the cosine may bring it back into range. */
static pair exp_pair(const maker *m, const value *v, const pair x[3])
{
    const int large = make2(m, OP_greater, x[0].re, number(m, m->like.type == DUET_F64 ? 700 : 80));
    const int half = make2(m, OP_mul, x[0].re, choose(m, large, number(m, 0.5), loaded(m, number(m, 1))));
    const int e = make1(m, OP_exp, half), again = choose(m, large, e, number(m, 1));
    const pair turned = { make1(m, OP_cos, x[0].im), unless_zero(m, x[0].im, make1(m, OP_sin, x[0].im)) };
    const pair z = scaled(m, OP_mul, scaled(m, OP_mul, turned, e), again);
    return (void)v, (pair){ z.re, unless_zero(m, x[0].im, z.im) };
}

/* Near |z| = 1 by log1p of |z|^2 - 1 = (a - 1)(a + 1) + b^2, a being the larger part. */
static int log_of_size(const maker *m, pair x)
{
    const int p = make1(m, OP_abs, x.re), q = make1(m, OP_abs, x.im);
    const int a = make2(m, OP_maximum, p, q), b = make2(m, OP_minimum, p, q), one = number(m, 1),
              by = scale_of(m, a);
    const int h = make2(m, OP_hypot, make2(m, OP_mul, p, by), make2(m, OP_mul, q, by));
    const int far = make2(m, OP_sub, make1(m, OP_log, h), make1(m, OP_log, by));
    const int excess =
        make3(m, OP_fma, make2(m, OP_sub, a, one), make2(m, OP_add, a, one), make2(m, OP_mul, b, b));
    const int near = make2(m, OP_mul, make1(m, OP_log1p, excess), number(m, 0.5));
    const int is_near = make2(m, OP_logical_and, make2(m, OP_greater, h, number(m, 0.5)), is_below(m, h, 2));
    return choose(m, is_near, near, far);
}

static pair log_pair(const maker *m, const value *v, const pair x[3])
{
    return (void)v, (pair){ log_of_size(m, x[0]), make2(m, OP_atan2, x[0].im, x[0].re) };
}

/* Near z = 0 the size is by log1p of |1 + z|^2 - 1 = a (a + 2) + b^2. */
static pair log1p_pair(const maker *m, const value *v, const pair x[3])
{
    const int a = x[0].re, b = x[0].im;
    const pair w = { make2(m, OP_add, a, number(m, 1)), b };
    const int h = make2(m, OP_hypot, w.re, w.im),
              excess = make3(m, OP_fma, a, make2(m, OP_add, a, number(m, 2)), make2(m, OP_mul, b, b));
    const int near = make2(m, OP_mul, make1(m, OP_log1p, excess), number(m, 0.5));
    const int is_near = make2(m, OP_logical_and, make2(m, OP_greater, h, number(m, 0.5)), is_below(m, h, 2));
    return (void)v, (pair){ choose(m, is_near, near, log_of_size(m, w)), make2(m, OP_atan2, w.im, w.re) };
}

/* cos(b) expm1(a) - 2 sin(b / 2)^2 and sin(b) exp(a). */
static pair expm1_pair(const maker *m, const value *v, const pair x[3])
{
    const int a = x[0].re, b = x[0].im, s = make1(m, OP_sin, make2(m, OP_mul, number(m, 0.5), b));
    const int less = make2(m, OP_mul, make2(m, OP_mul, number(m, -2), s), s);
    const int im = make2(m, OP_mul, make1(m, OP_exp, a), make1(m, OP_sin, b));
    return (void)v, (pair){ make3(m, OP_fma, make1(m, OP_cos, b), make1(m, OP_expm1, a), less),
                            unless_zero(m, b, im) };
}

/* Also below 0 where x is -0. */
static int is_negative(const maker *m, int x)
{
    return make2(m, OP_logical_or, is_below(m, x, 0),
                 is_below(m, make2(m, OP_div, loaded(m, number(m, 1)), x), 0));
}

/* The root of the larger of (|z| + a) / 2 and (|z| - a) / 2, and |b| over twice that; scaled by a power of four, back by that of two. */
static pair sqrt_pair(const maker *m, const value *v, const pair x[3])
{
    const int by = scale_of(m, larger_size(m, x[0])), back = make1(m, OP_sqrt, by);
    const pair z = scaled(m, OP_mul, x[0], by);
    const int a = make1(m, OP_abs, z.re), b = make1(m, OP_abs, z.im), h = make2(m, OP_hypot, z.re, z.im);
    const int t = make1(m, OP_sqrt, make2(m, OP_mul, number(m, 0.5), make2(m, OP_add, a, h)));
    const int u = unless_zero(m, b, make2(m, OP_div, b, make2(m, OP_mul, number(m, 2), t)));
    const int left = is_below(m, x[0].re, 0), size = choose(m, left, t, u);
    const int im = choose(m, is_negative(m, x[0].im), make1(m, OP_neg, size), size);
    return (void)v, scaled(m, OP_div, (pair){ choose(m, left, u, t), im }, back);
}

static pair sin_pair(const maker *m, const value *v, const pair x[3])
{
    const int a = x[0].re, b = x[0].im;
    const int re = make2(m, OP_mul, make1(m, OP_sin, a), make1(m, OP_cosh, b));
    return (void)v,
           (pair){ unless_zero(m, a, re), make2(m, OP_mul, make1(m, OP_cos, a), make1(m, OP_sinh, b)) };
}

static pair cos_pair(const maker *m, const value *v, const pair x[3])
{
    const int a = x[0].re, b = x[0].im;
    const int im = make2(m, OP_mul, make1(m, OP_neg, make1(m, OP_sin, a)), make1(m, OP_sinh, b));
    return (void)v,
           (pair){ make2(m, OP_mul, make1(m, OP_cos, a), make1(m, OP_cosh, b)), unless_zero(m, a, im) };
}

static pair sinh_pair(const maker *m, const value *v, const pair x[3])
{
    const int a = x[0].re, b = x[0].im;
    const int im = make2(m, OP_mul, make1(m, OP_cosh, a), make1(m, OP_sin, b));
    return (void)v,
           (pair){ make2(m, OP_mul, make1(m, OP_sinh, a), make1(m, OP_cos, b)), unless_zero(m, b, im) };
}

static pair cosh_pair(const maker *m, const value *v, const pair x[3])
{
    const int a = x[0].re, b = x[0].im;
    const int im = make2(m, OP_mul, make1(m, OP_sinh, a), make1(m, OP_sin, b));
    return (void)v,
           (pair){ make2(m, OP_mul, make1(m, OP_cosh, a), make1(m, OP_cos, b)), unless_zero(m, b, im) };
}

/* By sin(b) cos(b) and sinh(a) cosh(a) over sinh(a)^2 + cos(b)^2; from where on the real part is 1 to half a unit, the limit, without what
 * overflows. At infinity b may be anything. */
static pair tanh_of(const maker *m, int a, int b)
{
    const int size = make1(m, OP_abs, a),
              far = make2(m, OP_greater, size, number(m, m->like.type == DUET_F64 ? 20 : 10));
    const int s = make1(m, OP_sinh, a), c = make1(m, OP_cos, b),
              turn = make2(m, OP_mul, make1(m, OP_sin, b), c);
    const int below = make3(m, OP_fma, s, s, make2(m, OP_mul, c, c)),
              across = make2(m, OP_mul, s, make1(m, OP_cosh, a));
    const int e = make1(m, OP_exp, make2(m, OP_mul, number(m, -2), size));
    const int lost = make2(m, OP_logical_and, is_zero(m, e), make2(m, OP_not_equal, turn, turn));
    const int rest = make2(m, OP_mul, make2(m, OP_mul, number(m, 4), e), choose(m, lost, number(m, 0), turn));
    const int one = choose(m, is_below(m, a, 0), number(m, -1), loaded(m, number(m, 1)));
    return (pair){ choose(m, far, one, make2(m, OP_div, across, below)),
                   choose(m, far, rest, make2(m, OP_div, turn, below)) };
}

static pair tanh_pair(const maker *m, const value *v, const pair x[3])
{
    return (void)v, tanh_of(m, x[0].re, x[0].im);
}

/* -i tanh(iz). */
static pair tan_pair(const maker *m, const value *v, const pair x[3])
{
    const pair t = tanh_of(m, x[0].im, x[0].re);
    return (void)v, (pair){ t.im, t.re };
}

static pair log2_pair(const maker *m, const value *v, const pair x[3])
{
    return scaled(m, OP_mul, log_pair(m, v, x), number(m, 1.4426950408889634));
}

static pair log10_pair(const maker *m, const value *v, const pair x[3])
{
    return scaled(m, OP_mul, log_pair(m, v, x), number(m, 0.43429448190325183));
}

/* ---- inverse functions ---- */

/* log(x + sqrt(x^2 + 1)), near 0 too; and where x^2 overflows log(2 x), or, where x is halved, log(4 x). */
static int asinh_of(const maker *m, int x, int is_halved)
{
    const int s = make1(m, OP_abs, x), one = number(m, 1),
              large = make2(m, OP_greater, s, number(m, m->like.type == DUET_F64 ? 0x1p500 : 0x1p60));
    const int twice =
        choose(m, is_halved, number(m, 1.3862943611198906), loaded(m, number(m, 0.69314718055994531)));
    const int far = make2(m, OP_add, make1(m, OP_log, s), twice);
    const int below = make2(m, OP_add, make1(m, OP_sqrt, make3(m, OP_fma, s, s, one)), one);
    const int near = make1(m, OP_log1p, make3(m, OP_fma, s, make2(m, OP_div, s, below), s)),
              y = choose(m, large, far, near);
    return unless_zero(m, x, choose(m, is_below(m, x, 0), make1(m, OP_neg, y), y));
}

/* Kahan's, by the roots p of 1 - z and q of 1 + z, whose imaginary parts differ in sign: sums of their products lose nothing. */
static void roots_around(const maker *m, pair z, pair *p, pair *q)
{
    const int one = number(m, 1);
    *p = sqrt_pair(m, NULL, (pair[3]){ { make2(m, OP_sub, one, z.re), make1(m, OP_neg, z.im) } });
    *q = sqrt_pair(m, NULL, (pair[3]){ { make2(m, OP_add, one, z.re), z.im } });
}

/* Sums of their products are as large as |z|, which may be beyond the largest number: where it is near that, of half of p. */
static int is_far_out(const maker *m, pair z)
{
    return make2(m, OP_greater, larger_size(m, z), number(m, range_of(m).high));
}

static int half_where(const maker *m, int condition)
{
    return choose(m, condition, number(m, 0.5), loaded(m, number(m, 1)));
}

/* x y - z w. */
static int across(const maker *m, int x, int y, int z, int w)
{
    return unfused(m, OP_sub, make2(m, OP_mul, x, y), make2(m, OP_mul, z, w));
}

static pair asin_pair(const maker *m, const value *v, const pair x[3])
{
    pair p, q;
    roots_around(m, x[0], &p, &q);
    const int far = is_far_out(m, x[0]), by = half_where(m, far);
    const pair h = scaled(m, OP_mul, p, by);
    const int re = make2(m, OP_atan2, make2(m, OP_mul, x[0].re, by), across(m, h.re, q.re, h.im, q.im));
    return (void)v, (pair){ re, asinh_of(m, across(m, h.re, q.im, h.im, q.re), far) };
}

static pair acos_pair(const maker *m, const value *v, const pair x[3])
{
    pair p, q;
    roots_around(m, x[0], &p, &q);
    const int re = make2(m, OP_mul, number(m, 2), make2(m, OP_atan2, p.re, q.re)), far = is_far_out(m, x[0]);
    const pair h = scaled(m, OP_mul, p, half_where(m, far));
    return (void)v, (pair){ re, asinh_of(m, across(m, h.im, q.re, h.re, q.im), far) };
}

/* atan2(2 a, 1 - a^2 - b^2) / 2 and log(1 + 4 b / h^2) / 4, where h is the distance from the nearer of i and -i, of which the square may be too
 * small. Far away it is a right angle. */
static pair atan_pair(const maker *m, const value *v, const pair x[3])
{
    const bool wide = m->like.type == DUET_F64;
    const int a = x[0].re, b = make1(m, OP_abs, x[0].im), one = number(m, 1),
              size = make2(m, OP_hypot, a, x[0].im);
    const int to_1 = make2(m, OP_sub, one, b), h = make2(m, OP_hypot, a, to_1), half = number(m, 0.5);
    const int d = make3(m, OP_fma, to_1, make2(m, OP_add, one, b),
                        make1(m, OP_neg, make3(m, OP_fma, a, a, number(m, 0))));
    const int re = make2(m, OP_mul, half, make2(m, OP_atan2, make2(m, OP_mul, number(m, 2), a), d));
    const int ratio = make2(m, OP_div, make2(m, OP_div, make2(m, OP_mul, number(m, 4), b), h), h);
    const int at_pole =
        make2(m, OP_mul, half, make2(m, OP_sub, number(m, 0.69314718055994531), make1(m, OP_log, h)));
    const int by_ratio = make2(m, OP_mul, number(m, 0.25), make1(m, OP_log1p, ratio));
    const int im = choose(m, is_below(m, h, wide ? 0x1p-500 : 0x1p-50), at_pole, by_ratio);
    const int far = make2(m, OP_greater, size, number(m, wide ? 0x1p56 : 0x1p27));
    const int angle = choose(m, is_negative(m, a), number(m, -1.5707963267948966),
                             loaded(m, number(m, 1.5707963267948966)));
    const int y = choose(m, far, make2(m, OP_div, make2(m, OP_div, b, size), size), im);
    return (void)v,
           (pair){ choose(m, far, angle, re), choose(m, is_negative(m, x[0].im), make1(m, OP_neg, y), y) };
}

/* ---- sign ---- */

static int is_infinite(const maker *m, int x)
{
    return make2(m, OP_equal, make1(m, OP_abs, x), number(m, INFINITY));
}

/* z / |z|. An infinite part is beyond every other: two are no number. */
static pair sign_pair(const maker *m, const value *v, const pair x[3])
{
    const pair z = scaled(m, OP_mul, x[0], scale_of(m, larger_size(m, x[0])));
    const int h = make2(m, OP_hypot, z.re, z.im), none = is_zero(m, h);
    const pair p = scaled(m, OP_div, z, h);
    const int re = choose(m, is_infinite(m, z.re), make2(m, OP_add, make1(m, OP_sign, z.re), p.im), p.re);
    const int im = choose(m, is_infinite(m, z.im), make2(m, OP_add, make1(m, OP_sign, z.im), p.re), p.im);
    return (void)v, (pair){ choose(m, none, z.re, re), choose(m, none, z.im, im) };
}

/* ---- powers ---- */

/* |z|^c turned by c arg(z): as exact for a large |z| as for others. The scale comes back with the same power. */
static pair real_power(const maker *m, pair z, int c)
{
    const int by = scale_of(m, larger_size(m, z)), back = make2(m, OP_div, loaded(m, number(m, 1)), by);
    const pair s = scaled(m, OP_mul, z, by);
    const int h = make2(m, OP_hypot, s.re, s.im), angle = make2(m, OP_mul, c, make2(m, OP_atan2, z.im, z.re));
    const int size = make2(m, OP_mul, make2(m, OP_pow, h, c), make2(m, OP_pow, back, c));
    const pair turned = { make1(m, OP_cos, angle), make1(m, OP_sin, angle) },
               p = scaled(m, OP_mul, turned, size);
    return (pair){ p.re, unless_zero(m, angle, p.im) };
}

static pair complex_power(const maker *m, const value *v, pair z, pair w)
{
    const pair log_z = log_pair(m, v, (pair[3]){ z }), product_ = mul_pair(m, v, (pair[3]){ w, log_z });
    return exp_pair(m, v, (pair[3]){ product_ });
}

/* In the type of the result, and no numbers: what is computed of one operand alone is as exact as the result. */
static pair widened(const maker *m, pair p)
{
    const pair x = loaded_parts(m, p);
    value re = copy_of(m->g, x.re), im = copy_of(m->g, x.im);
    re.type = im.type = m->like.type, re.join = im.join = 0;
    return (pair){ make_cast(m->g, &re, x.re), make_cast(m->g, &im, x.im) };
}

/* As NumPy has it: 1 where w is 0; of 0 it is 0 where w has a positive real part, else no number. */
static pair pow_pair(const maker *m, const value *v, const pair x[3])
{
    const bool is_real = x[1].im < 0;
    const pair z = widened(m, x[0]), w = widened(m, x[1]);
    const pair p = is_real ? real_power(m, z, w.re) : complex_power(m, v, z, w);
    const int none =
        is_real ? is_zero(m, w.re) : make2(m, OP_logical_and, is_zero(m, w.re), is_zero(m, w.im));
    const int origin = make2(m, OP_logical_and, is_zero(m, z.re), is_zero(m, z.im)), zero = number(m, 0);
    const int limit = choose(m, make2(m, OP_greater, w.re, zero), zero, loaded(m, number(m, NAN)));
    return (pair){ choose(m, none, number(m, 1), choose(m, origin, limit, p.re)),
                   choose(m, none, zero, choose(m, origin, limit, p.im)) };
}

/* ---- reductions ---- */

static int reduction(const maker *m, enum op op, const value *v, int x)
{
    value own = operator_of(m, op, x, -1, -1);
    own.attr = v->attr;
    return make_real(m->g, &own);
}

static pair sum_pair(const maker *m, const value *v, const pair x[3])
{
    return (pair){ reduction(m, (enum op)v->op, v, x[0].re), reduction(m, (enum op)v->op, v, x[0].im) };
}
#define mean_pair sum_pair

static pair folded(const maker *m, const value *v, const pair x[3], enum op by)
{
    const pair p = sum_pair(m, v, x);
    return (pair){ make2(m, by, p.re, p.im), -1 };
}

#define cumsum_pair sum_pair

static pair norm_pair(const maker *m, const value *v, const pair x[3]) { return folded(m, v, x, OP_hypot); }
static pair var_pair(const maker *m, const value *v, const pair x[3]) { return folded(m, v, x, OP_add); }
static pair any_pair(const maker *m, const value *v, const pair x[3])
{
    return folded(m, v, x, OP_logical_or);
}

static pair all_pair(const maker *m, const value *v, const pair x[3])
{
    const value domain = copy_of(m->g, x[0].re);
    const maker each = { m->g, part_like(&domain) };
    return (pair){ reduction(m, OP_all, v, make2(&each, OP_logical_or, x[0].re, x[0].im)), -1 };
}

/* ---- products of all elements: the first half times the second, again and again ---- */

/* Along an axis the halves of v change places; of an odd number ahead: that in the middle comes first, else the second half. */
static int shifted(graph *g, int v, int axis, bool ahead)
{
    const value x = copy_of(g, v);
    value s = blank(OP_fftshift, &x);
    s.args = 1, s.arg[0] = v, s.attr.fourier.axes = 1 << axis, s.attr.fourier.last = axis,
    s.attr.fourier.kind = ahead;
    return intern(g, &s);
}

/* The first elements along an axis. */
static pair first_of(graph *g, int v, int axis, int64_t count)
{
    const value x = copy_of(g, v);
    value part = blank(OP_PART, &x);
    part.args = 1, part.arg[0] = v, part.size[axis] = count;
    const int p = intern(g, &part);
    return (pair){ plane_of(g, p, OP_real), plane_of(g, p, OP_imag) };
}

/* x times y, as it lies in memory: such a value as v is, with so many elements along an axis. */
static int multiplied(graph *g, int v, int axis, int64_t count, pair x, pair y)
{
    value like = copy_of(g, v);
    like.size[axis] = count, like.weak = false;
    const maker m = { g, part_like(&like) };
    return complex_whole(g, pair_value(g, &like, mul_pair(&m, &like, (pair[3]){ x, y })));
}

/* One element along the axis, or none. What has no other half is multiplied by what had none before. */
static int product_along(graph *g, int v, int axis)
{
    pair rest = { -1, -1 };
    for (int64_t n; !g->failed && (n = copy_of(g, v).size[axis]) > 1;) {
        const int other = shifted(g, v, axis, false);
        const pair middle = n % 2 ? first_of(g, shifted(g, v, axis, true), axis, 1) : (pair){ -1, -1 };
        if (n % 2 && rest.re >= 0) rest = pair_of(g, multiplied(g, v, axis, 1, rest, middle));
        else if (n % 2) rest = middle;
        v = multiplied(g, v, axis, n / 2, first_of(g, v, axis, n / 2), first_of(g, other, axis, n / 2));
    }
    return rest.re < 0 ? v : multiplied(g, v, axis, 1, pair_of(g, v), rest);
}

static pair prod_pair(const maker *m, const value *v, const pair x[3])
{
    int all = complex_whole(m->g, v->arg[0]);
    for (int axis = 0; axis < copy_of(m->g, all).rank; axis++)
        if (v->attr.reduce.axes >> axis & 1) all = product_along(m->g, all, axis);
    const pair p = pair_of(m->g, all); /* of one element along these axes, or none */
    return (void)x, (pair){ reduction(m, OP_prod, v, p.re), reduction(m, OP_sum, v, p.im) };
}

/* ---- all of them ---- */

on_pairs *const complex_formulas[OPS] = {
#define DUET_OF_COMPLEX(name, gives) [OP_##name] = name##_pair,
#include "complex.def"
};
