/* interval_arithmetic.cpp - the arithmetic of the oracle. It is C++ because it evaluates the
 * formulas of the rows with numbers that carry intervals, which needs operators. It shares nothing
 * with the library but the rows.
 *
 * map rows
 *     are evaluated at the ends of the intervals of their operands. Each is monotone in each operand, except
 *     where an operand crosses 0 (abs, div, pow, where), where `turnings` says so, and at a jump where it
 *     crosses another operand. These points are evaluated too, so that the smallest and the largest value
 *     bound all.
 * reduction and def rows
 *     are evaluated once, in interval arithmetic that adds the rounding error of each operation. A machine
 *     may sum in any order: a sum of `terms` numbers has an error of at most gamma(terms - 1) times the sum
 *     of their absolute values (Higham, 3.1, 4.2).
 * place rows
 *     accept every index whose element may be the extreme. */
#include "interval_arithmetic.h"
#include "attributes.h"
#include "ops.h"
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

/* The functions of libquadmath, or those of the C library where long double has as many bits. */
#if __LDBL_MANT_DIG__ == 113
#define QUAD(name) name##l
#else
#define QUAD(name) name##q
extern "C" {
quad expq(quad), exp2q(quad), expm1q(quad), logq(quad), log2q(quad), log10q(quad), log1pq(quad), sqrtq(quad),
    cbrtq(quad);
quad sinhq(quad), coshq(quad), tanhq(quad), powq(quad, quad);
quad asinhq(quad), acoshq(quad), atanhq(quad);
quad sinq(quad), cosq(quad), tanq(quad), asinq(quad), acosq(quad), atanq(quad), atan2q(quad, quad),
    erfq(quad), erfcq(quad);
quad ceilq(quad), floorq(quad), truncq(quad), rintq(quad), hypotq(quad, quad), fmodq(quad, quad);
}
#endif

namespace
{

#define FUNCTION(name)                                                                                       \
    double q_##name(double x) { return std::name(x); }                                                       \
    quad q_##name(quad x) { return QUAD(name)(x); }
FUNCTION(exp)
FUNCTION(exp2)
FUNCTION(expm1)
FUNCTION(log)
FUNCTION(log2)
FUNCTION(log10)
FUNCTION(log1p)
FUNCTION(sqrt)
FUNCTION(cbrt)
FUNCTION(sinh)
FUNCTION(cosh)
FUNCTION(tanh)
FUNCTION(asinh)
FUNCTION(acosh)
FUNCTION(atanh)
FUNCTION(sin)
FUNCTION(cos)
FUNCTION(tan)
FUNCTION(asin)
FUNCTION(acos)
FUNCTION(atan)
FUNCTION(erf)
FUNCTION(erfc)
FUNCTION(floor)
FUNCTION(ceil)
FUNCTION(trunc)
FUNCTION(rint)
double q_pow(double x, double y) { return std::pow(x, y); }
quad q_pow(quad x, quad y) { return QUAD(pow)(x, y); }
double q_atan2(double x, double y) { return std::atan2(x, y); }
quad q_atan2(quad x, quad y) { return QUAD(atan2)(x, y); }
double q_hypot(double x, double y) { return std::hypot(x, y); }
quad q_hypot(quad x, quad y) { return QUAD(hypot)(x, y); }
double q_fmod(double x, double y) { return std::fmod(x, y); }
quad q_fmod(quad x, quad y) { return QUAD(fmod)(x, y); }
template <class R> R q_modulo(R x, R y)
{
    const R r = q_fmod(x, y);
    return r == 0 ? (y < 0 ? -R(0) : R(0)) : (r < 0) != (y < 0) ? r + y : r;
}
template <class R> R q_floor_div(R x, R y)
{
    const bool apart = x != 0 && x - x == 0 && y == y && y - y != 0; /* x is finite, y infinite */
    return apart ? R((x < 0) != (y < 0) ? -1 : 0) : q_floor(x / y);
}
#define Q(f) q_##f

/* The error that a row allows, for rows whose formula uses the formula of another row. */
#define DUET_MAP1(name, formula, oracle, domain, ulp, ...) constexpr double ulp_##name = ulp;
#include <duet/ops.def>

template <class R> R size_of(R x) { return x < 0 ? -x : x; }
template <class R> R lesser(R x, R y) { return x < y ? x : y; }
template <class R> R greater(R x, R y) { return x > y ? x : y; }
template <class R> bool is_nan(R x) { return x != x; }
template <class R> bool same(R x, R y) { return x == y; }

/* Most of the oracle's time went to quad arithmetic in software. The following functions examine the bits
 * of an IEEE binary128 instead; results are the same. A quad in the range of normal doubles is a double if
 * the 60 lowest bits of its fraction are 0. */
struct quad_bits {
    uint64_t low, high;
};
inline quad_bits bits_of(quad x)
{
    quad_bits b;
    static_assert(sizeof b == sizeof x, "binary128");
    std::memcpy(&b, &x, sizeof b);
    return b;
}
const uint64_t quad_sign = UINT64_C(1) << 63, quad_infinity = UINT64_C(0x7fff) << 48,
               low_60 = (UINT64_C(1) << 60) - 1;
inline bool is_nan(quad x)
{
    const quad_bits b = bits_of(x);
    const uint64_t top = b.high & ~quad_sign;
    return top > quad_infinity || (top == quad_infinity && b.low != 0);
}
inline quad size_of(quad x)
{
    quad_bits b = bits_of(x);
    b.high &= ~quad_sign;
    std::memcpy(&x, &b, sizeof b);
    return x;
}
inline bool same(quad x, quad y)
{
    const quad_bits a = bits_of(x), b = bits_of(y);
    return a.low == b.low && a.high == b.high ? !is_nan(x) : x == y;
}
inline bool in_normal_doubles(quad_bits b)
{
    const int exponent = int(b.high >> 48 & 0x7fff) - 16383;
    return exponent >= -1022 && exponent < 1023;
}
inline bool is_double(quad x)
{
    const quad_bits b = bits_of(x);
    return in_normal_doubles(b) ? (b.low & low_60) == 0 : x == quad(double(x));
}
bool is_double(double) { return true; }

template <class R> R from_quad(quad x) { return R(x); }
template <> inline double from_quad<double>(quad x)
{
    const quad_bits b = bits_of(x);
    if (!in_normal_doubles(b) || (b.low & low_60) != 0) return double(x);
    const uint64_t exponent = (b.high >> 48 & 0x7fff) - 16383 + 1023;
    const uint64_t all =
        (b.high & quad_sign) | exponent << 52 | (b.high << 4 & ((UINT64_C(1) << 52) - 1)) | b.low >> 60;
    double d;
    std::memcpy(&d, &all, sizeof d);
    return d;
}
const double infinity = std::numeric_limits<double>::infinity();
/* the rounding error of the oracle itself, for several operations */
constexpr double own(double) { return 0x1p-50; }
constexpr double own(quad) { return 0x1p-109; }

precision type;

/* How the sum or extreme under evaluation is evaluated. */
int64_t terms;
int depth;
double pad;

double ulp_at(double x)
{
    const double m = lesser(greater(x, type.tiny), type.most);
    return std::ldexp(2 * type.roundoff, std::ilogb(m));
}

template <class R> struct number {
    R v, lo, hi, size; /* size: the sum of the absolute values of all terms */
    bool wild;

    template <class X> number(X x) : v(x), lo(x), hi(x), size(size_of(R(x))), wild(false) {}
    number(const bounds &x)
        : v(from_quad<R>(x.v)), lo(from_quad<R>(x.lo)), hi(from_quad<R>(x.hi)), wild(x.wild)
    {
        measure();
    }
    number(R v_, R lo_, R hi_) : v(v_), lo(lo_), hi(hi_), wild(is_nan(v_) || is_nan(lo_) || is_nan(hi_))
    {
        measure();
    }
    operator bounds() const { return { quad(v), quad(lo), quad(hi), wild }; }

    void measure() { size = same(lo, hi) ? size_of(lo) : greater(size_of(lo), size_of(hi)); }
    bool exact() const { return !wild && (same(lo, hi) || is_nan(v)); }
    static number anything()
    {
        number x(0);
        x.wild = true;
        return x;
    }

    number widened(R by) const
    {
        number x = *this;
        if (wild || is_nan(v) || (exact() && (by == 0 || size == infinity))) return x;
        x.lo -= by;
        x.hi += by;
        if (x.hi > type.most) x.hi = infinity;
        if (x.lo < -type.most) x.lo = -infinity;
        x.measure();
        return x;
    }

    /* A correctly rounded operation on exact operands gives the rounded number exactly. */
    number rounded(double ulps) const
    {
        const bool narrow = exact() && ulps == 0.5 && (type.wide ? is_double(v) : v == R(float(v)));
        if (ulps == 0 || narrow || size == 0) return *this;
        const bool open = size == infinity;
        const double m = double(open ? lesser(size_of(lo), size_of(hi)) : size);
        return widened(R(ulps * ulp_at(m) * (open ? 2 : 1)) + (open ? R(m) : size) * R(own(R())));
    }
};

template <class R> number<R> hull(R v, const R *x, int n)
{
    R lo = x[0], hi = x[0];
    for (int k = 0; k < n; k++) {
        if (is_nan(x[k])) return number<R>::anything();
        lo = lesser(lo, x[k]);
        hi = greater(hi, x[k]);
    }
    return { v, lo, hi };
}

/* x op y at the four corners, for op monotone in both. */
template <class R, class F> number<R> corners(const number<R> &x, const number<R> &y, F op)
{
    if (x.wild || y.wild) return number<R>::anything();
    if (is_nan(x.v) || is_nan(y.v) || (x.exact() && y.exact())) return number<R>(op(x.v, y.v)).rounded(0.5);
    const R at[] = { op(x.lo, y.lo), op(x.lo, y.hi), op(x.hi, y.lo), op(x.hi, y.hi) };
    return hull(op(x.v, y.v), at, 4).rounded(0.5);
}

template <class R> number<R> operator+(const number<R> &x, const number<R> &y)
{
    return corners(x, y, [](R a, R b) { return a + b; });
}
template <class R> number<R> operator-(const number<R> &x, const number<R> &y)
{
    return corners(x, y, [](R a, R b) { return a - b; });
}
template <class R> number<R> operator*(const number<R> &x, const number<R> &y)
{
    return corners(x, y, [](R a, R b) { return a * b; });
}
template <class R> number<R> operator/(const number<R> &x, const number<R> &y)
{
    if (!y.exact() && y.lo <= 0 && y.hi >= 0) return number<R>::anything();
    return corners(x, y, [](R a, R b) { return a / b; });
}
template <class R> number<R> operator/(const number<R> &x, int64_t y) { return x / number<R>(R(y)); }

/* A monotonically increasing function. */
template <class R, class F> number<R> growing(const number<R> &x, double ulps, F f)
{
    if (x.wild) return x;
    if (x.exact()) return number<R>(f(x.v)).rounded(ulps);
    return number<R>(f(x.v), f(x.lo), f(x.hi)).rounded(ulps);
}
#define GROWING(name)                                                                                        \
    template <class R> number<R> q_##name(const number<R> &x)                                                \
    {                                                                                                        \
        return growing(x, ulp_##name, [](R a) { return q_##name(a); });                                      \
    }
GROWING(exp)
GROWING(log)
GROWING(sqrt)

template <class R> R gamma(int64_t n)
{
    return n <= 0 ? R(0) : R(n) * R(type.roundoff) / (1 - R(n) * R(type.roundoff));
}

template <class R, class F> number<R> sum(int64_t n, F term)
{
    number<R> s(0);
    bool exact = true;
    const double outer = pad;
    pad = 0;
    depth++;
    for (int64_t k = 0; k < n; k++) {
        const number<R> t = term(k);
        const bool point = same(t.v, t.lo) && same(t.v, t.hi) && same(s.v, s.lo) && same(s.v, s.hi);
        s.v += t.v;
        s.size += t.size;
        s.lo = point ? s.v : s.lo + t.lo;
        s.hi = point ? s.v : s.hi + t.hi;
        s.wild |= t.wild;
        exact &= t.exact();
    }
    pad = outer;
    depth--;
    if (s.wild || depth) return s;
    if (exact && (is_nan(s.v) || size_of(s.v) == infinity)) return number<R>(s.v);
    if (is_nan(s.lo) || is_nan(s.hi) || s.size > type.most) return number<R>::anything();
    return s.widened(gamma<R>(terms - 1) * s.size + s.size * R(own(R())) * R(n > 1));
}

template <class R, class F, class C> number<R> extreme(int64_t n, R start, F term, C better)
{
    number<R> m(start);
    const double outer = pad;
    pad = double(start);
    depth++;
    for (int64_t k = 0; k < n && !is_nan(m.v); k++) {
        const number<R> t = term(k);
        if (!t.wild && is_nan(t.v)) m = t;
        else {
            m = { better(m.v, t.v), better(m.lo, t.lo), better(m.hi, t.hi) };
            m.wild |= t.wild;
        }
        if (m.wild) break;
    }
    pad = outer;
    depth--;
    return m;
}

/* Whether any term differs from 0; if a term may be 0, both answers are accepted. */
template <class R, class F> number<R> some(int64_t n, F term)
{
    number<R> any(0);
    for (int64_t k = 0; k < n; k++) {
        const number<R> t = term(k);
        const bool open = t.wild || (!is_nan(t.v) && t.lo <= 0 && t.hi >= 0);
        if (is_nan(t.v) || t.v != 0) any.v = 1;
        if (!open) any.lo = 1;
        if (!open || !t.exact()) any.hi = 1;
    }
    return any;
}

template <class R, class F> number<R> every(int64_t n, F term)
{
    number<R> all(1);
    for (int64_t k = 0; k < n; k++) {
        const number<R> t = term(k);
        const bool open = t.wild || (!is_nan(t.v) && t.lo <= 0 && t.hi >= 0);
        if (!is_nan(t.v) && t.v == 0) all.v = 0;
        if (open && t.exact()) all.hi = 0;
        if (open) all.lo = 0;
    }
    return all;
}

/* A machine may multiply in any order. Every partial product is between the product of all factors
 * below 1 and the product of all factors above 1. Beyond the largest number any result is accepted;
 * below the smallest normal number each rounding adds to the error. */
template <class R, class F> number<R> product(int64_t n, F term)
{
    R v(1), lo(1), hi(1), most(1);
    bool exact = true;
    for (int64_t k = 0; k < n; k++) {
        const number<R> t = term(k);
        if (t.wild) return t;
        const R at[] = { lo * t.lo, lo * t.hi, hi * t.lo, hi * t.hi };
        exact &= t.exact();
        v *= t.v;
        most *= greater(t.size, R(1));
        lo = lesser(lesser(at[0], at[1]), lesser(at[2], at[3]));
        hi = greater(greater(at[0], at[1]), greater(at[2], at[3]));
    }
    if (exact && is_nan(v)) return number<R>(v);
    if (!(most <= type.most)) return number<R>::anything();
    const number<R> p(v, lo, hi);
    return p.widened((gamma<R>(terms - 1) + R(n) * R(own(R()))) * p.size +
                     R(n) * R(type.tiny) * R(type.roundoff) * most * R(n > 1));
}

/* An operand of a def row, accessed as a matrix (rows x cols; for images, if `channels`, one column
 * for each channel) or as images. */
template <class R> struct operand {
    const table *t;
    bool channels;
    int rank;
    int64_t count, rows, cols, n, c, h, w;

    operand(const table *t_, bool right, bool channels_)
        : t(t_), channels(channels_), rank(t_->rank), count(t_->count)
    {
        const int64_t *s = t->size;
        n = c = h = w = 0;
        if (rank == 4) {
            n = s[0];
            c = s[1];
            h = s[2];
            w = s[3];
        }
        if (channels) {
            n = s[0];
            c = s[1];
            h = w = 1;
        }
        for (int d = 2; d < rank && channels; d++) h *= s[d];
        cols = channels ? c : rank ? s[rank - 1] : 1;
        rows = 1;
        for (int d = 0; d < rank - 1; d++) rows *= s[d];
        if (channels) rows = n * h * w;
        if (right && rank == 1) {
            rows = cols;
            cols = 1;
        }
    }
    number<R> operator()(int64_t i, int64_t j) const
    {
        return t->at[channels ? (i / (h * w) * c + j) * h * w + i % (h * w) : i * cols + j];
    }
    number<R> operator()(int64_t image, int64_t channel, int64_t i, int64_t j) const
    {
        if (i < 0 || j < 0 || i >= h || j >= w) return number<R>(R(pad));
        return t->at[((image * c + channel) * h + i) * w + j];
    }
};

enum shape_rule { REVERSED_, LIKE_, PRODUCT_, SHAPE_ };
struct options {
    int64_t stride[2], pad[2], window[2], dilation[2], groups;
};

/* The options of a node, in the order in which the functions of the interface take them. */
struct conv_words {
    int32_t stride[2], pad[2], dilation[2], groups;
};
struct pool_words {
    int32_t window[2], stride[2], pad[2];
};
struct scale_words {
    int32_t scale[2];
};
template <class W> W fields(const int32_t *attr)
{
    W w;
    std::memcpy(&w, attr, sizeof w);
    return w;
}

/* The window that starts at this position; -1: there is none. */
int64_t back(int64_t at, int64_t stride) { return at >= 0 && at % stride == 0 ? at / stride : -1; }
options options_plain(const int32_t *) { return {}; }
options options_conv(const int32_t *attr)
{
    const auto w = fields<conv_words>(attr);
    return {
        { w.stride[0], w.stride[1] }, { w.pad[0], w.pad[1] }, {}, { w.dilation[0], w.dilation[1] }, w.groups
    };
}
options options_conv_grad(const int32_t *attr) { return options_conv(attr); }
options options_conv_transposed(const int32_t *attr) { return options_conv(attr); }
options options_pool(const int32_t *attr)
{
    const auto w = fields<pool_words>(attr);
    return {
        { w.stride[0], w.stride[1] }, { w.pad[0], w.pad[1] }, { w.window[0], w.window[1] }, { 1, 1 }, 1
    };
}
options options_pool_grad(const int32_t *attr) { return options_pool(attr); }
options options_scale(const int32_t *attr)
{
    const auto w = fields<scale_words>(attr);
    return { { 1, 1 }, { 0, 0 }, { w.scale[0], w.scale[1] }, { 1, 1 }, 1 };
}

/* Where rows of one operand change direction, other than at 0: at `first` and, if `period` is not
 * 0, at every period from there; such a row repeats after two periods. At a pole a row jumps from
 * one infinity to the other. */
struct turning {
    int op;
    quad first, period;
    bool pole;
};
const quad half_pi = 1.57079632679489661923132169163975144L;
const turning turnings[] = {
    { OP_cosh, 0, 0, false },
    { OP_sin, half_pi, 2 * half_pi, false },
    { OP_cos, 0, 2 * half_pi, false },
    { OP_tan, half_pi, 2 * half_pi, true },
    { OP_gelu, -0.7517915246935645, 0, false },
};

/* The turning points between lo and hi; if the ends are far apart, two that represent all. Returns
 * how many. */
int turning_points(const turning &t, quad lo, quad hi, quad *at)
{
    if (t.period == 0) {
        at[0] = t.first;
        return lo < t.first && t.first < hi;
    }
    const bool all = !(hi - lo < 2 * t.period);
    at[0] = all ? t.first : t.first + t.period * QUAD(ceil)((lo - t.first) / t.period);
    at[1] = at[0] + t.period;
    return all ? 2 : (at[0] < hi) + (at[1] < hi);
}

template <class R> bool meets_pole(int op, const number<R> &x)
{
    quad at[2];
    for (const turning &t : turnings)
        if (t.op == op && t.pole && turning_points(t, x.lo, x.hi, at)) return true;
    return false;
}

/* The points at which operand k of a map row is evaluated: MOST_POINTS at most. */
enum { MOST_POINTS = 11 };
template <class R> int points(int op, const number<R> *x, int arity, int k, bool jumps, R *at)
{
    int n = 0;
    quad turn[2];
    at[n++] = x[k].v;
    if (x[k].exact()) return n;
    at[n++] = x[k].lo;
    at[n++] = x[k].hi;
    if (x[k].lo < 0 && x[k].hi > 0) {
        at[n++] = 0;
        at[n++] = -R(0);
    }
    for (const turning &t : turnings)
        for (int i = 0; t.op == op && i < turning_points(t, x[k].lo, x[k].hi, turn); i++)
            at[n++] = R(turn[i]);
    for (int o = 0; jumps && o < arity; o++) {
        if (o == k) continue;
        if (x[o].lo > x[k].lo && x[o].lo < x[k].hi) at[n++] = x[o].lo;
        if (x[o].hi > x[k].lo && x[o].hi < x[k].hi) at[n++] = x[o].hi;
    }
    return n;
}

/* Can the integer part of the quotient differ within the bounds of x and y? Then the remainder can
 * differ by y. */
template <class R> bool meets_multiple(int op, const number<R> &x, const number<R> &y)
{
    if (op != OP_fmod && op != OP_remainder) return false;
    const R part = q_floor(x.lo / y.lo);
    return x.lo * x.hi <= 0 || y.lo * y.hi <= 0 || q_floor(x.lo / y.hi) != part ||
           q_floor(x.hi / y.lo) != part || q_floor(x.hi / y.hi) != part || is_nan(part);
}

/* Is the sign that the operator reads that of a zero? The bounds do not have it. */
template <class R> bool reads_unknown_sign(int op, const number<R> *x)
{
    if (op != OP_signbit && op != OP_copysign) return false;
    const number<R> &of = x[op == OP_copysign];
    return is_nan(of.v) || (of.lo <= 0 && of.hi >= 0);
}

template <class R> bool far(R x) { return size_of(x) == infinity; }

template <class R, class F>
number<R> map_one(int op, const number<R> *x, int arity, double ulp, int flags, F f)
{
    const bool jumps = flags & DUET_JUMPS;
    bool exact = true;
    if (reads_unknown_sign(op, x)) return number<R>::anything();
    for (int k = 0; k < arity; k++) {
        if (x[k].wild) return number<R>::anything();
        /* in a row that selects an operand, NaN wins */
        if (is_nan(x[k].v) && ulp == 0 && !jumps) return x[k];
        exact &= x[k].exact();
    }
    const R v = f(x[0].v, x[1].v, x[2].v);
    if (exact) return number<R>(v).rounded(ulp);
    if (meets_pole(op, x[0]) || (arity == 2 && meets_multiple(op, x[0], x[1]))) return number<R>::anything();

    R at[3][MOST_POINTS], read[MOST_POINTS * MOST_POINTS * MOST_POINTS];
    int n[3], m = 0;
    for (int k = 0; k < 3; k++) n[k] = points(op, x, arity, k, jumps, at[k]);
    for (int a = 0; a < n[0]; a++)
        for (int b = 0; b < n[1]; b++)
            for (int c = 0; c < n[2]; c++) {
                const R y = read[m++] = f(at[0][a], at[1][b], at[2][c]);
                if (size_of(y) == infinity && far(at[0][a]) + far(at[1][b]) + far(at[2][c]) == 0)
                    return number<R>::anything();
            }
    return hull(v, read, m).rounded(ulp);
}

template <class R, class F>
void map(int op, int arity, double ulp, int flags, const table *in, table *out, F f)
{
    for (int64_t e = 0; e < out->count; e++) {
        number<R> x[3] = { 0, 0, 0 };
        for (int k = 0; k < arity; k++) x[k] = in[k].at[table_source(&in[k], out, e)];
        out->at[e] = map_one(op, x, arity, ulp, flags, f);
    }
}

template <class R, class F> void reduction(int axes, const table *in, int arity, table *out, F f)
{
    table all = in[0]; /* the shape that both operands broadcast to */
    if (arity == 2)
        for (int d = 0; d < in[1].rank; d++) {
            const int at = all.rank - 1 - d;
            if (at >= 0 && all.size[at] == 1) all.size[at] = in[1].size[in[1].rank - 1 - d];
        }
    if (arity == 2 && in[1].rank > in[0].rank) all = in[1];
    all.count = 1;
    for (int d = 0; d < all.rank; d++) all.count *= all.size[d];
    const int64_t n = folded_count(&all, axes);
    for (int64_t e = 0; e < out->count; e++)
        out->at[e] = f(n, [&](int which, int64_t k) {
            return number<R>(in[which].at[table_source(&in[which], &all, folded(&all, axes, e, k))]);
        });
}

/* The indices that a place row may return for element e: that of the first NaN; otherwise those of
 * all elements that may be the extreme m, of equal exact ones the first. */
template <class R, class F> void admit(int64_t n, const number<R> &m, table *out, int64_t e, F read)
{
    bool *admits = out->admits + e * n, found = false;
    for (int64_t k = 0; k < n; k++) {
        const number<R> x = read(0, k);
        if (m.wild) admits[k] = true;
        else if (is_nan(m.v)) {
            admits[k] = is_nan(x.v) && !found;
            found |= is_nan(x.v);
        } else {
            admits[k] = x.lo <= m.hi && x.hi >= m.lo && !(x.exact() && found);
            found |= admits[k] && x.exact();
        }
    }
}

bool *flags(int64_t n) { return static_cast<bool *>(std::calloc(size_t(n) + 1, sizeof(bool))); }

template <class R, class F> void places(int axes, const table *in, table *out, F extreme_of)
{
    int64_t e = 0;
    out->choices = folded_count(in, axes);
    out->admits = flags(out->choices * out->count);
    reduction<R>(axes, in, 1, out, [&](int64_t n, auto read) -> number<R> {
        const number<R> m = extreme_of(n, read);
        admit(n, m, out, e++, read);
        return m;
    });
}

/* The position in the original of element e of the transpose. */
int64_t reversed(const table *from, int64_t e)
{
    int64_t at = 0, stride = from->count, index;
    /* the last axis of the result is the first of from */
    for (int d = from->rank - 1, k = 0; d >= 0; d--, k++) {
        stride = 1;
        for (int a = k + 1; a < from->rank; a++) stride *= from->size[a];
        index = e % from->size[k];
        e /= from->size[k];
        at += index * stride;
    }
    return at;
}

/* For a product with more than two axes: the matrix for element e of the result, whose leading axes
 * have these sizes. */
table matrix_of(const table *of, const table *out, int64_t leading, int64_t batch)
{
    table t = *of;
    int64_t at = 0, stride = 1;
    if (of->rank <= 2) return t;
    const int64_t each = of->size[of->rank - 1] * of->size[of->rank - 2];
    for (int d = int(leading) - 1, own = of->rank - 3; own >= 0; d--, own--) {
        at += (of->size[own] == 1 ? 0 : batch % out->size[d]) * stride;
        batch /= out->size[d];
        stride *= of->size[own];
    }
    t.rank = 2;
    t.size[0] = of->size[of->rank - 2];
    t.size[1] = of->size[of->rank - 1];
    t.count = each;
    t.at = of->at + at * each;
    return t;
}

template <class R, class F> void batched(const table *in, table *out, F f)
{
    const int leading = out->rank - (in[0].rank > 1) - (in[1].rank > 1);
    int64_t batches = 1;
    for (int d = 0; d < leading; d++) batches *= out->size[d];
    const int64_t each = batches ? out->count / batches : 0;
    for (int64_t e = 0; e < out->count; e++) {
        const table a = matrix_of(&in[0], out, leading, e / each),
                    b = matrix_of(&in[1], out, leading, e / each);
        const operand<R> A(&a, false, false), B(&b, true, false);
        out->at[e] = f(A, B, e % each / B.cols, e % each % B.cols, 0, 0);
    }
}

/* def rows: evaluates f(A, B, i, j, n, c) for each element. */
template <class R, class F> void define(shape_rule rule, const table *in, int arity, table *out, F f)
{
    if (rule == PRODUCT_ && (in[0].rank > 2 || in[1].rank > 2)) return batched<R>(in, out, f);
    const bool channels = rule == LIKE_ && arity == 2 && in[0].rank > 2;
    const operand<R> A(&in[0], false, channels), B(&in[arity - 1], arity == 2, false);
    for (int64_t e = 0; e < out->count; e++) {
        if (rule == REVERSED_) {
            out->at[e] = in[0].at[reversed(&in[0], e)];
        } else if (rule == SHAPE_) {
            const int64_t h = out->size[2], w = out->size[3], c = out->size[1];
            out->at[e] = f(A, B, e / w % h, e % w, e / (c * h * w), e / (h * w) % c);
        } else if (channels) {
            const int64_t plane = A.h * A.w, c = e / plane % A.c, n = e / (plane * A.c);
            const operand<R> bias(&in[1], false, false);
            out->at[e] = f(A, bias, n * plane + e % plane, c, n, c);
        } else {
            const operand<R> vector(&in[arity - 1], rule == PRODUCT_, false);
            const int64_t cols = rule == PRODUCT_ ? vector.cols : A.cols;
            out->at[e] = f(A, vector, e / cols, e % cols, 0, 0);
        }
    }
}

template <class R> bool apply(int op, const int32_t *attr, const table *in, table *out)
{
    const auto reduce = fields<reduce_attributes>(attr);
    switch (op) {
#define ROW(name, arity, oracle, ulp, flags)                                                                 \
    case OP_##name:                                                                                          \
        map<R>(op, arity, ulp, flags, in, out,                                                               \
               [](R x, R y, R z) -> R { return (void)y, (void)z, R(oracle); });                              \
        return true;
#define DUET_MAP1(name, formula, oracle, domain, ulp, flags, known, doc) ROW(name, 1, oracle, ulp, flags)
#define DUET_MAP2(name, formula, oracle, domain, ulp, flags, known, doc) ROW(name, 2, oracle, ulp, flags)
#define DUET_MAP3(name, formula, oracle, domain, ulp, flags, known, doc) ROW(name, 3, oracle, ulp, flags)

#define REDUCE_ROW(name, arity, oracle, count)                                                               \
    case OP_##name:                                                                                          \
        reduction<R>(reduce.axes, in, arity, out, [&](int64_t n, auto read) -> number<R> {                   \
            terms = count;                                                                                   \
            return oracle;                                                                                   \
        });                                                                                                  \
        return true;
#define OVER(term)                                                                                           \
    [&](int64_t k) -> number<R> {                                                                            \
        const number<R> x = read(0, k), y = read(SECOND, k);                                                 \
        return (void)y, (term);                                                                              \
    }
#define SUM(term)   sum<R>(n, OVER(term))
#define LEAST(term) extreme<R>(n, R(infinity), OVER(term), lesser<R>)
#define MOST(term)  extreme<R>(n, R(-infinity), OVER(term), greater<R>)
#define PROD(term)  product<R>(n, OVER(term))
#define ANY(term)   some<R>(n, OVER(term))
#define ALL(term)   every<R>(n, OVER(term))
#define LET(m, value, result)                                                                                \
    [&] {                                                                                                    \
        const number<R> m = value;                                                                           \
        return result;                                                                                       \
    }()
#define DUET_FOLD1(name, start, take, join, epilogue, needs, oracle, terms, doc)                             \
    REDUCE_ROW(name, 1, oracle, terms)
#define DUET_MOMENT1 DUET_FOLD1
#define DUET_PLACE1(name, better, needs, oracle, doc)                                                        \
    case OP_##name:                                                                                          \
        places<R>(reduce.axes, in, out, [&](int64_t n, auto read) -> number<R> { return oracle; });          \
        return true;
#define SECOND 0
#include <duet/ops.def>
#undef SECOND
#define SECOND 1
#define DUET_FOLD2(name, start, take, join, epilogue, needs, oracle, terms, doc)                             \
    REDUCE_ROW(name, 2, oracle, terms)
#include <duet/ops.def>
#undef SUM
#undef LEAST
#undef MOST

#define DEF_ROW(name, arity, kind, shape, value, count)                                                      \
    case OP_##name: {                                                                                        \
        const options o = options_##kind(attr);                                                              \
        define<R>(RULE_##shape, in, arity, out,                                                              \
                  [&](const auto &A, const auto &B, int64_t i, int64_t j, int64_t n,                         \
                      int64_t c) -> number<R> {                                                              \
                      (void)o, (void)A, (void)B, (void)i, (void)j, (void)n, (void)c;                         \
                      terms = count;                                                                         \
                      return value;                                                                          \
                  });                                                                                        \
        return true;                                                                                         \
    }
#define RULE_REVERSED(...) REVERSED_
#define RULE_LIKE(...)     LIKE_
#define RULE_PRODUCT(...)  PRODUCT_
#define RULE_SHAPE(...)    SHAPE_
#define AT(i, u, axis)     ((i)*o.stride[axis] - o.pad[axis] + (u)*o.dilation[axis])
#define BACK(i, u, axis)   back((i) + o.pad[axis] - (u)*o.dilation[axis], o.stride[axis])
#define SUM(k, n, term)    sum<R>(n, [&](int64_t k) -> number<R> { return term; })
#define MOST(k, n, term)                                                                                     \
    extreme<R>(                                                                                              \
        n, R(-infinity), [&](int64_t k) -> number<R> { return term; }, greater<R>)
#define DUET_DEF1(name, kind, needs, shape, value, terms, doc) DEF_ROW(name, 1, kind, shape, value, terms)
#define DUET_DEF2(name, kind, needs, shape, value, terms, doc) DEF_ROW(name, 2, kind, shape, value, terms)
#include <duet/ops.def>
    }
    return false;
}

} // namespace

int64_t folded(const table *from, int axes, int64_t e, int64_t k)
{
    int64_t at = 0, stride = 1;
    for (int d = from->rank - 1; d >= 0; d--) {
        int64_t &index = axes >> d & 1 ? k : e;
        at += index % from->size[d] * stride;
        index /= from->size[d];
        stride *= from->size[d];
    }
    return at;
}

int64_t folded_count(const table *from, int axes)
{
    int64_t n = 1;
    for (int d = 0; d < from->rank; d++) n *= axes >> d & 1 ? from->size[d] : 1;
    return n;
}

int64_t table_source(const table *from, const table *to, int64_t e)
{
    int64_t at = 0, stride = 1;
    for (int d = to->rank - 1, f = from->rank - 1; f >= 0; d--, f--) {
        if (from->size[f] != 1) at += e % to->size[d] * stride;
        e /= to->size[d];
        stride *= from->size[f];
    }
    return at;
}

bool meaning_of(int op, const int32_t *attr, const table *in, table *out, const precision *t)
{
    type = *t;
    return t->wide ? apply<quad>(op, attr, in, out) : apply<double>(op, attr, in, out);
}
