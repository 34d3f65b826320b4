/* pool_indices.c - where max pooling found the largest elements, made of other operators. The elements of all
 * windows at one position are a view of x, so that all windows are compared in one pass. */
#include "call_text.h"
#include "derivative_rules.h"
#include "dtype.h"
#include "pool_formulas.h"
#include "status.h"
#undef DUET_HERE
#define DUET_HERE site /* of the user's call */

enum { MOST_POSITIONS = 1024 };

/* The best element of each window so far, and its index. */
typedef struct candidate {
    duet_expr value, index;
} candidate;

/* Element `at` of all windows; padded x, or its indices, begin `axis` axes later. */
static duet_expr elements_at(duet_expr x, int axes, int axis, const pool_windows w[], const int64_t *at,
                             const char *site)
{
    for (int k = 0; k < axes; k++) {
        const int64_t from = (w[k].first > 0 ? w[k].first : 0) + at[k] * w[k].dilation,
                      to = from + (w[k].count - 1) * w[k].stride + 1;
        x = duet_range(x, axis + k, from, to, w[k].stride);
    }
    return x;
}

/* Is b better than a? A NaN is better than a number. Padding has the index -1. */
static duet_expr is_better(candidate a, candidate b, bool floats, bool pads, const char *site)
{
    duet_expr better = duet_greater(b.value, a.value);
    if (floats) {
        const duet_expr is_first_nan = duet_logical_and(duet_isnan(b.value), duet_equal(a.value, a.value));
        better = duet_logical_or(better, is_first_nan);
    }
    if (!pads) return better;
    return duet_logical_and(duet_greater_equal(b.index, 0), duet_logical_or(better, duet_less(a.index, 0)));
}

/* The indices of a plane, with -1 for padding. */
static duet_expr plane_indices(const pool_options *o, const shape *s, const pool_windows w[],
                               const char *site)
{
    int64_t stride = 1;
    duet_expr sum = duet_cast(0, DUET_I64);
    for (int k = o->axes - 1; k >= 0; stride *= s->size[2 + k--])
        sum = duet_add(sum, counted(2 + k, o->axes + 2, s->size[2 + k], stride, site));
    return pool_padded(pool_cropped(o, sum, site), o->axes, w, -1, site);
}

static duet_expr indices_of(const pool_options *o, duet_expr x, const pool_windows w[], const char *site)
{
    const shape s = formula_shape(x);
    const bool floats = dtype_kind(duet_expr_type(x)) == TYPE_FLOAT;
    const duet_expr all =
                        pool_padded(pool_cropped(o, x, site), o->axes, w, least_of(duet_expr_type(x)), site),
                    index = plane_indices(o, &s, w, site);
    bool pads = false;
    int64_t positions = 1;
    for (int k = 0; k < o->axes; k++) {
        positions *= w[k].window;
        pads |= duet_expr_size(all, k + 2) > w[k].n;
    }
    candidate best = { 0 };
    for (int64_t i = 0; i < positions; i++) {
        int64_t at[POOL_AXES], rest = i;
        for (int k = o->axes - 1; k >= 0; rest /= w[k--].window) at[k] = rest % w[k].window;
        const candidate c = { elements_at(all, o->axes, 2, w, at, site),
                              elements_at(index, o->axes, 2, w, at, site) };
        if (i == 0) {
            best = c;
            continue;
        }
        const duet_expr better = is_better(best, c, floats, pads, site);
        if (i < positions - 1) best.value = duet_where(better, c.value, best.value);
        best.index = duet_where(better, c.index, best.index);
    }
    if (positions > 1) return best.index;
    return duet_where(0, duet_cast(best.value, DUET_I64),
                      best.index); /* x is consumed, and gives the shape */
}

static duet_status check_indices(duet_expr x, const pool_options *o, pool_windows w[POOL_AXES])
{
    const shape s = formula_shape(x);
    int64_t positions = 1;
    if (s.rank != o->axes + 2)
        return fail(DUET_BAD_SHAPE, "x must have %d axes, not %d", o->axes + 2, s.rank);
    if (dtype_is_complex(duet_expr_type(x)) || duet_expr_type(x) == DUET_BOOL)
        return fail(DUET_BAD_TYPE, "x must have integer or real floating-point elements");
    if (o->exclude_pad) return fail(DUET_BAD_ARGUMENT, "exclude_pad is an option of average pooling only");
    for (int k = 0; k < o->axes; k++) {
        if (o->window[k] < 1) return fail(DUET_BAD_ARGUMENT, "window (%d) must be positive", o->window[k]);
        if (o->stride[k] < 0 || o->dilation[k] < 0)
            return fail(DUET_BAD_ARGUMENT, "stride and dilation must not be negative");
        positions *= o->window[k];
        if (positions > MOST_POSITIONS)
            return fail(DUET_UNSUPPORTED, "windows must have at most %d elements", MOST_POSITIONS);
    }
    return pool_windows_of(o, &s, w);
}

static duet_expr max_pool_indices(const char *function, int axes, duet_expr x, const void *options,
                                  const char *site)
{
    static const duet_pool3 none = { .ceil = 0 };
    const pool_options o = read_pool_options(axes, options ? options : &none);
    pool_windows w[POOL_AXES] = { { 0 } };
    const duet_status status = is_valid(x) ? check_indices(x, &o, w) : DUET_BAD_ARGUMENT;
    if (status != DUET_OK) return bad_argument(function, x, status, site);
    return composed(function, 1, &x, indices_of(&o, x, w, site), site);
}

#define INDICES(name, axes, type)                                                                            \
    duet_expr(name##_at)(duet_expr x, const type *options, const char *site)                                 \
    {                                                                                                        \
        return max_pool_indices(&#name[5], axes, x, options, site);                                          \
    }                                                                                                        \
    duet_expr(name)(duet_expr x, const type *options) { return name##_at(x, options, NULL); }
INDICES(duet_max_pool1d_indices, 1, duet_pool1)
INDICES(duet_max_pool2d_indices, 2, duet_pool)
INDICES(duet_max_pool3d_indices, 3, duet_pool3)
