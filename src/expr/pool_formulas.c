/* pool_formulas.c - pooling and convolutions with options that backends do not have, made of those that they
 * have: unequal and negative padding, windows that end behind the padding, dilation, means without padding,
 * and gradients that equal elements share. */
#include "pool_formulas.h"
#include "call_text.h"
#include "dtype.h"
#include "general_options.h"
#include "min_max.h"
#include "operands.h"
#include "status.h"
#include <math.h>
#undef DUET_HERE
#define DUET_HERE site /* of the user's call */

/* ---- options ---- */

static const int32_t *read_each(const int32_t *words, int axes, int32_t none, int32_t *to)
{
    for (int k = 0; k < axes; k++) to[k] = words[k] ? words[k] : none;
    return words + axes;
}

pool_options read_pool_options(int axes, const int32_t *words)
{
    pool_options o = { .axes = axes };
    words = read_each(words, axes, 0, o.window);
    words = read_each(words, axes, 0, o.stride);
    words = read_each(words, axes, 0, o.pad);
    words = read_each(words, axes, 0, o.more);
    words = read_each(words, axes, 1, o.dilation);
    o.ceil = words[0];
    o.exclude_pad = words[1];
    o.ties = words[2];
    for (int k = 0; k < axes; k++)
        if (!o.stride[k]) o.stride[k] = o.window[k];
    return o;
}

/* Do backends have these options? */
static bool is_plain(const pool_options *o)
{
    bool plain = !o->ceil && !o->exclude_pad && !o->ties;
    for (int k = 0; k < o->axes; k++)
        plain &= o->more[k] == 0 && o->dilation[k] == 1 && 0 <= o->pad[k] && o->pad[k] < o->window[k];
    return plain;
}

/* Will make_operator report an error about the window or the stride? */
static bool is_wrong(const pool_options *o)
{
    bool wrong = false;
    for (int k = 0; k < o->axes; k++) wrong |= o->window[k] < 1 || o->stride[k] < 0;
    return wrong;
}

static bool is_mean(enum op op) { return op == OP_avg_pool1d || op == OP_avg_pool2d || op == OP_avg_pool3d; }

static duet_status check_options(const pool_options *o, enum op op)
{
    for (int k = 0; k < o->axes; k++)
        if (o->dilation[k] < 0)
            return fail(DUET_BAD_ARGUMENT, "dilation (%d) must not be negative", o->dilation[k]);
    if (o->ties != DUET_TIES_FIRST && o->ties != DUET_TIES_SHARED)
        return fail(DUET_BAD_ARGUMENT, "ties (%d) is not a duet_pool_ties", o->ties);
    if (o->exclude_pad && !is_mean(op))
        return fail(DUET_BAD_ARGUMENT, "exclude_pad is an option of average pooling only");
    if (o->ties && is_mean(op)) return fail(DUET_BAD_ARGUMENT, "ties is an option of max pooling only");
    return DUET_OK;
}

static int64_t front(const pool_options *o, int k) { return o->pad[k]; }
static int64_t end(const pool_options *o, int k) { return (int64_t)o->pad[k] + o->more[k]; }
static int64_t removed(int64_t pad) { return pad < 0 ? -pad : 0; }

static duet_status windows_along(const pool_options *o, int k, int64_t size, pool_windows *w)
{
    const int64_t reach = (int64_t)(o->window[k] - 1) * o->dilation[k] + 1, stride = o->stride[k];
    const int64_t n = size - removed(front(o, k)) - removed(end(o, k));
    if (n < 0)
        return fail(DUET_BAD_SHAPE, "along axis %d padding removes more elements than x has (%lld)", k + 2,
                    (long long)size);
    const int64_t before = larger(front(o, k), 0), padded = before + n + larger(end(o, k), 0);
    if (padded < reach)
        return fail(DUET_BAD_SHAPE,
                    "along axis %d the window reaches over %lld elements; x with its padding has %lld", k + 2,
                    (long long)reach, (long long)padded);
    int64_t count = (padded - reach) / stride + 1;
    const bool is_incomplete = (padded - reach) % stride != 0;
    if (o->ceil && is_incomplete && count * stride < before + n) count++;
    *w = (pool_windows){ n, -before, o->window[k], stride, o->dilation[k], count, padded };
    return DUET_OK;
}

duet_status pool_windows_of(const pool_options *o, const shape *x, pool_windows w[POOL_AXES])
{
    for (int k = 0; k < o->axes; k++) TRY(windows_along(o, k, x->size[k + 2], &w[k]));
    return DUET_OK;
}

duet_expr pool_cropped(const pool_options *o, duet_expr x, const char *site)
{
    for (int k = 0; k < o->axes; k++) {
        const int64_t from = removed(front(o, k)), to = duet_expr_size(x, k + 2) - removed(end(o, k));
        if (from || removed(end(o, k))) x = duet_range(x, k + 2, from, to, 1);
    }
    return x;
}

duet_expr pool_padded(duet_expr x, int axes, const pool_windows w[], double value, const char *site)
{
    duet_padding pad = { .value = value };
    bool pads = false;
    for (int k = 0; k < axes; k++) {
        const int64_t last = w[k].first + (w[k].count - 1) * w[k].stride + (w[k].window - 1) * w[k].dilation;
        pad.before[k + 2] = larger(-w[k].first, 0);
        pad.after[k + 2] = larger(last + 1 - w[k].n, 0);
        pads |= pad.before[k + 2] || pad.after[k + 2];
    }
    return pads ? duet_pad_at(x, &pad, site) : x;
}

double least_of(duet_dtype type)
{
    const enum type_kind kind = dtype_kind(type);
    if (kind == TYPE_FLOAT) return -INFINITY;
    return kind == TYPE_SIGNED ? -ldexp(1, 8 * (int)dtypes[type].bytes - 1) : 0;
}

/* ---- windows without dilation: what backends have, applied to a part of x ---- */

typedef struct pooling {
    enum op op;
    const char *function;
    int axes;
    const char *site;
} pooling;

static double none_of(const pooling *p, duet_dtype type) { return is_mean(p->op) ? 0 : least_of(type); }

/* The windows that have at least one element: `lead` of the others come before, `trail` after them. */
typedef struct inner_windows {
    int64_t lead, trail, count;
} inner_windows;

static int64_t quotient_up(int64_t a, int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; }

static inner_windows inner_of(const pool_windows *w)
{
    inner_windows i = { 0 };
    if (w->first + w->window <= 0) i.lead = smaller((-w->first - w->window) / w->stride + 1, w->count);
    const int64_t behind = clamp(quotient_up(w->n - w->first, w->stride), i.lead, w->count);
    i.count = w->n ? behind - i.lead : 0;
    i.trail = w->count - i.lead - i.count;
    return i;
}

/* The same number for all windows. x is an operand all the same, so that it is consumed. */
static duet_expr all_equal(duet_expr x, int axes, const pool_windows w[], double value, const char *site)
{
    shape s = formula_shape(x);
    duet_padding one = { .value = value };
    for (int k = 0; k < axes; k++) {
        one.after[k + 2] = s.size[k + 2] == 0;
        if (s.size[k + 2] > 1) x = duet_range(x, k + 2, 0, 1, 1);
        s.size[k + 2] = w[k].count;
    }
    const duet_expr each = duet_where(0, duet_pad_at(x, &one, site), duet_of_number(value));
    return duet_broadcast_at(each, s.rank, s.size, site);
}

/* Padding at the end of x and results that are dropped make the number of results right. */
static duet_expr pool_inner(const pooling *p, duet_expr x, pool_windows w[], const inner_windows inner[])
{
    const char *site = p->site;
    int32_t words[3 * POOL_AXES];
    duet_padding behind = { .value = none_of(p, duet_expr_type(x)) };
    bool pads = false;
    for (int k = 0; k < p->axes; k++) {
        const int64_t first = w[k].first + inner[k].lead * w[k].stride, pad = larger(-first, 0);
        if (first > 0) {
            x = duet_range(x, k + 2, first, w[k].n, 1);
            w[k].n -= first;
        }
        behind.after[k + 2] = larger((inner[k].count - 1) * w[k].stride + w[k].window - w[k].n - 2 * pad, 0);
        pads |= behind.after[k + 2] > 0;
        words[k] = (int32_t)w[k].window;
        words[p->axes + k] = (int32_t)smaller(w[k].stride, INT32_MAX);
        words[2 * p->axes + k] = (int32_t)pad;
    }
    if (pads) x = duet_pad_at(x, &behind, site);
    duet_expr y = make_operator(p->op, p->function, 1, &x, words, site);
    for (int k = 0; k < p->axes && is_valid(y); k++)
        if (duet_expr_size(y, k + 2) > inner[k].count) y = duet_range(y, k + 2, 0, inner[k].count, 1);
    return y;
}

static duet_expr pool_dense(const pooling *p, duet_expr x, const pool_windows given[])
{
    const char *site = p->site;
    pool_windows w[POOL_AXES];
    inner_windows inner[POOL_AXES];
    duet_padding around = { .value = none_of(p, duet_expr_type(x)) };
    bool is_empty = false, pads = false;
    for (int k = 0; k < p->axes; k++) {
        w[k] = given[k];
        inner[k] = inner_of(&w[k]);
        is_empty |= !inner[k].count;
        around.before[k + 2] = inner[k].lead;
        around.after[k + 2] = inner[k].trail;
        pads |= inner[k].lead || inner[k].trail;
    }
    if (is_empty) return all_equal(x, p->axes, w, around.value, site);
    const duet_expr y = pool_inner(p, x, w, inner);
    return pads && is_valid(y) ? duet_pad_at(y, &around, site) : y;
}

/* ---- dilation: windows in every d-th element, for each remainder by itself ---- */

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

static int64_t quotient_down(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

/* Parts whose elements take turns along an axis. All have `each` elements, of which `count` are used. */
static duet_expr interleaved(duet_expr part[], int parts, int axis, int64_t each, int64_t count,
                             const char *site)
{
    shape s = formula_shape(part[0]);
    const duet_expr together = duet_stack_at(axis + 1, parts, part, site);
    s.size[axis] = parts * each;
    const duet_expr all = duet_reshape_at(together, s.rank, s.size, site);
    return count < s.size[axis] ? duet_range(all, axis, 0, count, 1) : all;
}

enum { MOST_PARTS = 64 };

/* Windows whose numbers have the same remainder by `parts` begin at elements with the same remainder by the
 * dilation, so that they lie in the same elements of x. */
static duet_expr pool_along(const pooling *p, duet_expr x, const pool_windows given[], int k)
{
    const char *site = p->site;
    if (k == p->axes || k == POOL_AXES) return pool_dense(p, x, given);
    const pool_windows *g = &given[k];
    if (g->dilation == 1 || g->window == 1) {
        pool_windows w[POOL_AXES] = { given[0], given[1], given[2] };
        w[k].dilation = 1;
        return pool_along(p, x, w, k + 1);
    }
    const int64_t divisor = common_divisor(g->stride, g->dilation), d = g->dilation,
                  parts = smaller(d / divisor, g->count), each = quotient_up(g->count, parts);
    duet_expr part[MOST_PARTS];
    for (int64_t r = 0; r < parts; r++) {
        const int64_t start = g->first + r * g->stride, phase = start - quotient_down(start, d) * d;
        pool_windows w[POOL_AXES] = { given[0], given[1], given[2] };
        w[k] = (pool_windows){ quotient_up(g->n - phase, d),
                               quotient_down(start, d),
                               g->window,
                               d / divisor <= g->count ? g->stride / divisor : 1,
                               1,
                               each,
                               0 };
        part[r] = pool_along(p, duet_range(x, k + 2, smaller(phase, g->n), g->n, d), w, k + 1);
        if (!is_valid(part[r])) return part[r];
    }
    return interleaved(part, (int)parts, k + 2, each, g->count, site);
}

static duet_status check_parts(const pool_windows w[], int axes)
{
    for (int k = 0; k < axes; k++) {
        const int64_t d = w[k].dilation;
        if (w[k].window == 1) continue; /* it has no distances */
        if (smaller(d / common_divisor(w[k].stride, d), w[k].count) > MOST_PARTS)
            return fail(DUET_UNSUPPORTED, "a dilation of %lld with a stride of %lld needs more than %d parts",
                        (long long)d, (long long)w[k].stride, MOST_PARTS);
    }
    return DUET_OK;
}

/* ---- means ---- */

static duet_expr ones(duet_expr x, int axes, const pool_windows w[], bool with_padding, const char *site)
{
    shape s = { .rank = axes + 2, .size = { 1, 1 } };
    for (int k = 0; k < axes; k++) s.size[k + 2] = with_padding ? w[k].padded : w[k].n;
    return duet_broadcast_at(duet_cast(1, duet_expr_type(x)), s.rank, s.size, site);
}

/* Do all elements of all windows count? */
static bool are_complete(const pool_options *o, const pool_windows w[])
{
    bool complete = true;
    for (int k = 0; k < o->axes; k++) {
        const int64_t last = (w[k].count - 1) * w[k].stride + (w[k].window - 1) * w[k].dilation;
        complete &= o->exclude_pad ? w[k].first == 0 && last < w[k].n : last < w[k].padded;
    }
    return complete;
}

/* Backends divide by the size of the window. The mean of ones is the part of the elements that count. */
static duet_expr mean_of_counted(const pooling *p, const pool_options *o, duet_expr x, duet_expr y,
                                 const pool_windows given[])
{
    const char *site = p->site;
    pool_windows w[POOL_AXES];
    for (int k = 0; k < o->axes; k++) {
        w[k] = given[k];
        if (o->exclude_pad) continue;
        w[k].n = given[k].padded;
        w[k].first = 0;
    }
    return duet_div(y, pool_along(p, ones(x, o->axes, given, !o->exclude_pad, site), w, 0));
}

/* ---- maxima whose gradient is shared by equal elements: reductions of all windows ---- */

static duet_expr largest_of_windows(duet_expr x, int axes, const pool_windows w[], const char *site)
{
    int axis[POOL_AXES];
    duet_expr e = pool_padded(x, axes, w, least_of(duet_expr_type(x)), site);
    for (int k = 0; k < axes; k++) {
        const int64_t last = (w[k].count - 1) * w[k].stride + (w[k].window - 1) * w[k].dilation;
        const int64_t from = larger(w[k].first, 0);
        e = duet_range(e, k + 2, from, from + last + 1, 1);
        e = duet_sliding_window(e, k + 2, w[k].window, w[k].stride, w[k].dilation);
        axis[k] = -1 - k;
    }
    return duet_max_axes_at(e, axes, axis, site);
}

/* ---- pooling ---- */

static duet_expr general_pooling(const pooling *p, const pool_options *o, duet_expr x)
{
    const char *site = p->site;
    pool_windows w[POOL_AXES] = { { 0 } };
    const shape s = formula_shape(x);
    const uint32_t from = nodes_built();
    duet_status status = check_options(o, p->op);
    if (status == DUET_OK) status = pool_windows_of(o, &s, w);
    if (status == DUET_OK && !o->ties) status = check_parts(w, o->axes);
    if (status != DUET_OK) return bad_argument(p->function, x, status, site);
    const duet_expr within = pool_cropped(o, x, site);
    if (o->ties) return composed(p->function, 1, &x, largest_of_windows(within, o->axes, w, site), site);
    duet_expr made = pool_along(p, within, w, 0);
    if (is_mean(p->op) && is_valid(made) && !are_complete(o, w)) made = mean_of_counted(p, o, x, made, w);
    return alone_if_failed(composed(p->function, 1, &x, made, site), from, 1, &x);
}

static bool is_gradient(enum op op)
{
    return op == OP_max_pool1d_grad || op == OP_max_pool2d_grad || op == OP_max_pool3d_grad;
}

static bool has_other_options(const pool_options *o)
{
    bool others = o->ceil || o->exclude_pad || o->ties;
    for (int k = 0; k < o->axes; k++) others |= o->more[k] || o->dilation[k] != 1;
    return others;
}

duet_expr make_pooling(int axes, enum op op, const char *function, int arity, const duet_expr e[],
                       const int32_t *options, const char *site)
{
    const pool_options o = read_pool_options(axes, options);
    if (is_plain(&o) || is_wrong(&o)) return make_operator(op, function, arity, e, options, site);
    if (is_gradient(op)) {
        if (!has_other_options(&o)) return make_operator(op, function, arity, e, options, site);
        const duet_status s =
            fail(DUET_BAD_ARGUMENT, "the only options are window, stride and pad; for others "
                                    "use duet_grad or duet_vjp of max pooling");
        return bad_operands(function, arity, e, s, site);
    }
    const pooling p = { op, function, axes, site };
    int32_t simple[3 * POOL_AXES] = { 0 };
    for (int k = 0; k < axes; k++) simple[k] = 1;
    const bool fits = is_valid(e[0]) && duet_expr_rank(e[0]) == axes + 2;
    if (!fits) return make_operator(op, function, 1, e, simple, site); /* which reports the error */
    return general_pooling(&p, &o, e[0]);
}

/* ---- convolutions ---- */

static duet_status check_removed(const shape *s, int k, int64_t before, int64_t after)
{
    if (removed(before) + removed(after) <= s->size[k + 2]) return DUET_OK;
    return fail(DUET_BAD_SHAPE, "along axis %d padding removes more elements than x has (%lld)", k + 2,
                (long long)s->size[k + 2]);
}

/* Removes elements of x and adds zeros, until the rest of the padding is the same at both ends, or larger at
 * the end, as backends have it. */
static duet_expr padded_unequally(int axes, duet_expr x, int32_t *pad, int32_t *more, duet_status *status,
                                  const char *site)
{
    const shape s = formula_shape(x);
    duet_padding zeros = { 0 };
    bool pads = false;
    for (int k = 0; k < axes && *status == DUET_OK; k++) {
        const int64_t before = pad[k], after = (int64_t)pad[k] + more[k];
        *status = check_removed(&s, k, before, after);
        if (*status == DUET_OK && (before < 0 || after < 0))
            x = duet_range(x, k + 2, removed(before), s.size[k + 2] - removed(after), 1);
        pad[k] = (int32_t)clamp(smaller(before, after), 0, INT32_MAX);
        more[k] = (int32_t)clamp(larger(after, 0) - larger(before, 0), 0, INT32_MAX);
        zeros.before[k + 2] = larger(larger(before, 0) - larger(after, 0), 0);
        pads |= zeros.before[k + 2] > 0;
    }
    return pads && *status == DUET_OK ? duet_pad_at(x, &zeros, site) : x;
}

duet_expr make_convolution(int axes, enum op op, const char *function, int arity, const duet_expr e[],
                           const int32_t *options, const char *site)
{
    int32_t words[4 * POOL_AXES + 1], *pad = words + axes, *more = words + 3 * axes + 1;
    bool is_equal = true;
    for (int k = 0; k < axes; k++) is_equal &= options[axes + k] >= 0 && options[3 * axes + 1 + k] >= 0;
    if (is_equal) return make_operator(op, function, arity, e, options, site);
    for (int i = 0; i < 4 * axes + 1; i++) words[i] = options[i];
    if (!is_valid(e[0]) || duet_expr_rank(e[0]) != axes + 2) {
        for (int k = 0; k < axes; k++) pad[k] = more[k] = 0;
        return make_operator(op, function, arity, e, words, site); /* which reports the error */
    }
    duet_status status = DUET_OK;
    const duet_expr x = padded_unequally(axes, e[0], pad, more, &status, site);
    if (status != DUET_OK) return bad_operands(function, arity, e, status, site);
    const duet_expr made = make_operator(op, function, arity, (duet_expr[]){ x, e[1] }, words, site);
    return composed(function, arity, e, made, site);
}
