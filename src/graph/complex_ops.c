/* complex_ops.c - the real formulas of complex operators: arithmetic, comparisons, powers,
 * reductions. complex_functions.c has the elementary functions. docs/semantics.md states their
 * accuracy. */
#include "backend.h"
#include "complex_pairs.h"
#include <math.h>

/* ---- arithmetic ---- */

pair neg_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    return (pair){ make1(gb, OP_neg, x[0].re), make1(gb, OP_neg, x[0].im) };
}

pair conj_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    return (pair){ x[0].re, x[0].im < 0 ? -1 : make1(gb, OP_neg, x[0].im) };
}

pair add_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    const int re = make2(gb, OP_add, x[0].re, x[1].re);
    if (x[0].im < 0 || x[1].im < 0) return (pair){ re, x[0].im < 0 ? x[1].im : x[0].im };
    return (pair){ re, make2(gb, OP_add, x[0].im, x[1].im) };
}

pair sub_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    const int re = make2(gb, OP_sub, x[0].re, x[1].re);
    if (x[1].im < 0) return (pair){ re, x[0].im };
    return (pair){ re, x[0].im < 0 ? make1(gb, OP_neg, x[1].im) : make2(gb, OP_sub, x[0].im, x[1].im) };
}

pair scaled(const graph_builder *gb, enum op op, pair x, int by)
{
    return (pair){ make2(gb, op, x.re, by), make2(gb, op, x.im, by) };
}

/* The four products of the parts, and their sum and difference. */
static pair multiply_parts(const graph_builder *gb, const value *v, const pair x[3],
                           int (*times)(const graph_builder *gb, const value *v, int x, int y))
{
    if (x[1].im < 0) return (pair){ times(gb, v, x[0].re, x[1].re), times(gb, v, x[0].im, x[1].re) };
    if (x[0].im < 0) return (pair){ times(gb, v, x[0].re, x[1].re), times(gb, v, x[0].re, x[1].im) };
    const int re = unfused(gb, OP_sub, times(gb, v, x[0].re, x[1].re), times(gb, v, x[0].im, x[1].im));
    return (pair){ re, unfused(gb, OP_add, times(gb, v, x[0].re, x[1].im), times(gb, v, x[0].im, x[1].re)) };
}

static int times_element(const graph_builder *gb, const value *v, int x, int y)
{
    return make2(gb, OP_mul, x, y);
}

/* The operator itself, of parts. It is bilinear. */
static int times_matrix(const graph_builder *gb, const value *v, int x, int y)
{
    value own = operator_of(gb, (enum op)v->op, x, y, -1);
    own.attr = v->attr;
    return make_real(gb->g, &own);
}

/* a^2 - b^2 = 4 (a/2 - b/2) (a/2 + b/2): it overflows only where the result does. */
static pair square(const graph_builder *gb, pair z)
{
    const pair half = scaled(gb, OP_mul, z, number(gb, 0.5));
    const int re =
        make2(gb, OP_mul, make2(gb, OP_sub, half.re, half.im), make2(gb, OP_add, half.re, half.im));
    return (pair){ make2(gb, OP_mul, re, number(gb, 4)),
                   make2(gb, OP_mul, make2(gb, OP_mul, z.re, z.im), number(gb, 2)) };
}

pair mul_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    if (x[0].im >= 0 && x[0].re == x[1].re && x[0].im == x[1].im) return square(gb, x[0]);
    return multiply_parts(gb, v, x, times_element);
}
pair dot_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    return multiply_parts(gb, v, x, times_matrix);
}
pair matmul_pair(const graph_builder *gb, const value *v, const pair x[3]) { return dot_pair(gb, v, x); }

range range_of(const graph_builder *gb)
{
    const bool wide = gb->like.type == DUET_F64;
    if (wide) return (range){ 0x1p-968, 0x1p1022, 0x1p106, 0x1p-2 };
    return (range){ 0x1p-101, 0x1p126, 0x1p48, 0x1p-2 };
}

/* The factor that scales both parts; `size` is the magnitude of the larger one. */
int scale_of(const graph_builder *gb, int size)
{
    const range r = range_of(gb);
    const int large = make2(gb, OP_greater, size, number(gb, r.high));
    return choose(gb, large, number(gb, r.down),
                  choose(gb, less_than(gb, size, r.low), number(gb, r.up), as_matrix(gb, number(gb, 1))));
}

int larger_size(const graph_builder *gb, pair x)
{
    return make2(gb, OP_maximum, make1(gb, OP_abs, x.re), make1(gb, OP_abs, x.im));
}

/* Smith's division of scaled operands: hi is the larger part of the divisor, lo the other one, and
 * r = lo / hi. */
static pair divide(const graph_builder *gb, pair x, pair y)
{
    const int size = larger_size(gb, y), by_x = scale_of(gb, larger_size(gb, x)), by_y = scale_of(gb, size);
    const pair a = scaled(gb, OP_mul, x, by_x), b = scaled(gb, OP_mul, y, by_y);
    const int first = make2(gb, OP_greater_equal, make1(gb, OP_abs, b.re), make1(gb, OP_abs, b.im));
    const int hi = choose(gb, first, b.re, b.im), lo = choose(gb, first, b.im, b.re);
    /* r = 0 for a zero divisor: x / 0 then behaves as for real numbers */
    const int r = choose(gb, equals_zero(gb, size), number(gb, 0), make2(gb, OP_div, lo, hi));
    const int below = make3(gb, OP_fma, lo, r, hi), p = choose(gb, first, a.re, a.im),
              q = choose(gb, first, a.im, a.re);
    const int across = make2(gb, OP_sub, q, make2(gb, OP_mul, p, r)), back = make2(gb, OP_div, by_y, by_x);
    const pair z = { make3(gb, OP_fma, q, r, p), choose(gb, first, across, make1(gb, OP_neg, across)) };
    return scaled(gb, OP_mul, scaled(gb, OP_div, z, below), back);
}

pair div_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    if (x[1].im < 0) return scaled(gb, OP_div, x[0], x[1].re);
    return divide(gb, parts_as_matrices(gb, x[0]), parts_as_matrices(gb, x[1]));
}

pair equal_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    const pair a = parts_as_matrices(gb, x[0]), b = { x[1].re, imaginary(gb, x[1]) };
    const int re = make2(gb, (enum op)v->op, a.re, b.re), im = make2(gb, (enum op)v->op, a.im, b.im);
    return (pair){ make2(gb, v->op == OP_equal ? OP_logical_and : OP_logical_or, re, im), -1 };
}
pair not_equal_pair(const graph_builder *gb, const value *v, const pair x[3]) { return equal_pair(gb, v, x); }

pair where_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    const pair y = parts_as_matrices(gb, x[1]), z = parts_as_matrices(gb, x[2]);
    return (pair){ choose(gb, x[0].re, y.re, z.re), choose(gb, x[0].re, y.im, z.im) };
}

/* ---- parts, magnitude and angle ---- */

pair real_pair(const graph_builder *gb, const value *v, const pair x[3]) { return (pair){ x[0].re, -1 }; }

pair imag_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    return (pair){ as_matrix(gb, imaginary(gb, x[0])), -1 };
}

pair abs_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    return (pair){ make2(gb, OP_hypot, x[0].re, x[0].im), -1 };
}

pair arg_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    return (pair){ make2(gb, OP_atan2, imaginary(gb, x[0]), x[0].re), -1 };
}

pair complex_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    return (pair){ x[0].re, x[1].re };
}
pair cast_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    return (pair){ x[0].re, imaginary(gb, x[0]) };
}

/* f, but x where x is 0: otherwise 0 times infinity would give NaN. */
int unless_zero(const graph_builder *gb, int x, int f) { return choose(gb, equals_zero(gb, x), x, f); }

/* ---- sign ---- */

static int is_infinite(const graph_builder *gb, int x)
{
    return make2(gb, OP_equal, make1(gb, OP_abs, x), number(gb, INFINITY));
}

/* z / |z|. If exactly one part is infinite, the result is that direction. If both are infinite, it
 * is NaN. */
pair sign_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    const pair z = scaled(gb, OP_mul, x[0], scale_of(gb, larger_size(gb, x[0])));
    const int h = make2(gb, OP_hypot, z.re, z.im), none = equals_zero(gb, h);
    const pair p = scaled(gb, OP_div, z, h);
    const int re = choose(gb, is_infinite(gb, z.re), make2(gb, OP_add, make1(gb, OP_sign, z.re), p.im), p.re);
    const int im = choose(gb, is_infinite(gb, z.im), make2(gb, OP_add, make1(gb, OP_sign, z.im), p.re), p.im);
    return (pair){ choose(gb, none, z.re, re), choose(gb, none, z.im, im) };
}

/* ---- powers ---- */

/* |z|^c, rotated by c arg(z). |z| is scaled first, so the result is as accurate for large |z|; the
 * inverse scale gets the same power. */
static pair real_power(const graph_builder *gb, pair z, int c)
{
    const int by = scale_of(gb, larger_size(gb, z)),
              back = make2(gb, OP_div, as_matrix(gb, number(gb, 1)), by);
    const pair s = scaled(gb, OP_mul, z, by);
    const int h = make2(gb, OP_hypot, s.re, s.im),
              angle = make2(gb, OP_mul, c, make2(gb, OP_atan2, z.im, z.re));
    const int size = make2(gb, OP_mul, make2(gb, OP_pow, h, c), make2(gb, OP_pow, back, c));
    const pair rotation = { make1(gb, OP_cos, angle), make1(gb, OP_sin, angle) },
               p = scaled(gb, OP_mul, rotation, size);
    return (pair){ p.re, unless_zero(gb, angle, p.im) };
}

static pair complex_power(const graph_builder *gb, const value *v, pair z, pair w)
{
    const pair log_z = log_pair(gb, v, (pair[3]){ z }), exponent = mul_pair(gb, v, (pair[3]){ w, log_z });
    return exp_pair(gb, v, (pair[3]){ exponent });
}

/* The parts in the type of the result, with numbers as matrices: functions of one operand are then
 * as accurate as the result. */
static pair widened(const graph_builder *gb, pair p)
{
    const pair x = parts_as_matrices(gb, p);
    value re = copy_of(gb->g, x.re), im = copy_of(gb->g, x.im);
    re.type = im.type = gb->like.type;
    re.join = im.join = 0;
    return (pair){ make_cast(gb->g, &re, x.re), make_cast(gb->g, &im, x.im) };
}

/* The special cases of NumPy: z^0 is 1. 0^w is 0 if the real part of w is positive, otherwise
 * NaN. */
pair pow_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    const bool is_real = x[1].im < 0;
    const pair z = widened(gb, x[0]), w = widened(gb, x[1]);
    const pair p = is_real ? real_power(gb, z, w.re) : complex_power(gb, v, z, w);
    const int none = is_real ? equals_zero(gb, w.re)
                             : make2(gb, OP_logical_and, equals_zero(gb, w.re), equals_zero(gb, w.im));
    const int origin = make2(gb, OP_logical_and, equals_zero(gb, z.re), equals_zero(gb, z.im)),
              zero = number(gb, 0);
    const int limit = choose(gb, make2(gb, OP_greater, w.re, zero), zero, as_matrix(gb, number(gb, NAN)));
    return (pair){ choose(gb, none, number(gb, 1), choose(gb, origin, limit, p.re)),
                   choose(gb, none, zero, choose(gb, origin, limit, p.im)) };
}

/* ---- reductions ---- */

static int reduction(const graph_builder *gb, enum op op, const value *v, int x)
{
    value own = operator_of(gb, op, x, -1, -1);
    own.attr = v->attr;
    return make_real(gb->g, &own);
}

pair sum_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    return (pair){ reduction(gb, (enum op)v->op, v, x[0].re), reduction(gb, (enum op)v->op, v, x[0].im) };
}
pair mean_pair(const graph_builder *gb, const value *v, const pair x[3]) { return sum_pair(gb, v, x); }

static pair combined_parts(const graph_builder *gb, const value *v, const pair x[3], enum op by)
{
    const pair p = sum_pair(gb, v, x);
    return (pair){ make2(gb, by, p.re, p.im), -1 };
}

pair cumsum_pair(const graph_builder *gb, const value *v, const pair x[3]) { return sum_pair(gb, v, x); }

pair norm_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    return combined_parts(gb, v, x, OP_hypot);
}
pair var_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    return combined_parts(gb, v, x, OP_add);
}
pair any_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    return combined_parts(gb, v, x, OP_logical_or);
}

pair all_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    const value domain = copy_of(gb->g, x[0].re);
    const graph_builder each = { gb->g, part_like(&domain) };
    return (pair){ reduction(gb, OP_all, v, make2(&each, OP_logical_or, x[0].re, x[0].im)), -1 };
}

/* ---- products of all elements: multiply the first half by the second, and repeat ---- */

/* Swap the two halves of v along an axis. If the size is odd, the middle element comes first with
 * `ahead`; otherwise the second half does. */
static int shifted(graph *g, int v, int axis, bool ahead)
{
    const value x = copy_of(g, v);
    value s = value_init(OP_fftshift, &x);
    s.args = 1;
    s.arg[0] = v;
    s.attr.fourier.axes = 1 << axis;
    s.attr.fourier.last = axis;
    s.attr.fourier.kind = ahead;
    return intern(g, &s);
}

/* The first `count` elements along an axis, as parts. */
static pair first_of(graph *g, int v, int axis, int64_t count)
{
    value x = copy_of(g, v);
    x.size[axis] = count;
    const int p = first_elements(g, v, x.size);
    return (pair){ plane_of(g, p, OP_real), plane_of(g, p, OP_imag) };
}

/* x times y, interleaved: a value like v with `count` elements along the axis. */
static int multiplied(graph *g, int v, int axis, int64_t count, pair x, pair y)
{
    value like = copy_of(g, v);
    like.size[axis] = count;
    like.weak = false;
    const graph_builder gb = { g, part_like(&like) };
    return complex_interleaved(g, pair_value(g, &like, mul_pair(&gb, &like, (pair[3]){ x, y })));
}

/* The product along one axis: one element, or none. If a size is odd, the middle element is
 * multiplied into `odd`. */
static int product_along(graph *g, int v, int axis)
{
    pair odd = { -1, -1 };
    for (int64_t n; !g->failed && (n = copy_of(g, v).size[axis]) > 1;) {
        const int other = shifted(g, v, axis, false);
        const pair middle = n % 2 ? first_of(g, shifted(g, v, axis, true), axis, 1) : (pair){ -1, -1 };
        if (n % 2 && odd.re >= 0) odd = pair_of(g, multiplied(g, v, axis, 1, odd, middle));
        else if (n % 2) odd = middle;
        v = multiplied(g, v, axis, n / 2, first_of(g, v, axis, n / 2), first_of(g, other, axis, n / 2));
    }
    if (odd.re < 0) return v;
    return multiplied(g, v, axis, 1, pair_of(g, v), odd);
}

pair prod_pair(const graph_builder *gb, const value *v, const pair x[3])
{
    int all = complex_interleaved(gb->g, v->arg[0]);
    for (int axis = 0; axis < copy_of(gb->g, all).rank; axis++)
        if (v->attr.reduce.axes >> axis & 1) all = product_along(gb->g, all, axis);
    const pair p = pair_of(gb->g, all); /* at most one element along each of these axes */
    return (pair){ reduction(gb, OP_prod, v, p.re), reduction(gb, OP_sum, v, p.im) };
}

/* ---- the table ---- */

complex_formula *const complex_formulas[OPS] = {
#define DUET_CALL2(name, options, types, ...) [OP_##name] = (TYPES_##types) & OP_BILINEAR ? dot_pair : NULL,
#include <duet/ops.def>
#define DUET_OF_COMPLEX(name, gives) [OP_##name] = name##_pair,
#include "complex.def"
};
