/* test_pool_options.c - pooling with unequal and negative padding, windows that end behind the padding,
 * dilation, means without padding, indices, and both rules for the gradient of equal elements; and
 * convolutions whose padding crops. All against loops over random images of one to three axes. */
#include "plain_array.h"

enum { AXES = 3 };

/* Options of pooling along up to three axes. */
typedef struct options {
    int axes;
    int32_t window[AXES], stride[AXES], pad[AXES], more[AXES], dilation[AXES], ceil, exclude_pad, ties;
} options;

static int32_t drawn(int64_t low, int64_t high) { return (int32_t)between(low, high); }

/* The number of windows along an axis of n elements; 0: none fits. */
static int64_t windows(const options *o, int k, int64_t n)
{
    const int64_t stride = o->stride[k] ? o->stride[k] : o->window[k],
                  reach = (int64_t)(o->window[k] - 1) * (o->dilation[k] ? o->dilation[k] : 1) + 1,
                  room = n + 2 * (int64_t)o->pad[k] + o->more[k] - reach;
    const int64_t front = o->pad[k] < 0 ? -o->pad[k] : 0, end = o->pad[k] + o->more[k],
                  cut = end < 0 ? -end : 0;
    if (room < 0 || front + cut > n) return 0;
    int64_t count = room / stride + 1;
    if (!o->ceil || room % stride == 0) return count;
    /* one more, if it begins within x or the padding in front */
    const int64_t begins = count * stride - o->pad[k];
    return begins < n - cut ? count + 1 : count;
}

static bool draw(options *o, array *x, array *y, duet_dtype type)
{
    int64_t size[DUET_RANK_MAX] = { between(0, 9) > 0, between(1, 2) }, out[DUET_RANK_MAX];
    *o = (options){
        .axes = drawn(1, 3), .ceil = drawn(0, 1), .exclude_pad = drawn(0, 1), .ties = drawn(0, 1)
    };
    if (!is_float(type)) o->axes = 2; /* integers are pooled in images only */
    memcpy(out, size, sizeof out);
    for (int k = 0; k < o->axes; k++) {
        o->window[k] = drawn(1, 3);
        o->stride[k] = drawn(0, 4);
        o->pad[k] = between(0, 2) ? drawn(0, 2) : drawn(-2, 5);
        o->more[k] = between(0, 1) ? 0 : drawn(-3, 3);
        o->dilation[k] = between(0, 2) ? 0 : drawn(1, 3);
        size[2 + k] = between(1, o->axes == 1 ? 12 : o->axes == 2 ? 7 : 5);
        out[2 + k] = windows(o, k, size[2 + k]);
        if (!out[2 + k]) return false;
    }
    array_shape(x, type, 2 + o->axes, size);
    array_fill(x, -2, 2);
    array_shape(y, type, 2 + o->axes, out);
    return true;
}

/* The element `u` of window `i`: is it within the padding, and does it exist? *at: its place. */
typedef struct place_of {
    bool is_padded, exists;
    int64_t at;
} place_of;

static place_of element_of(const options *o, const array *x, const int64_t *i, int64_t u)
{
    place_of p = { true, true, i[0] * x->size[1] + i[1] };
    int64_t own[AXES];
    for (int k = o->axes - 1; k >= 0; u /= o->window[k--]) own[k] = u % o->window[k];
    for (int k = 0; k < o->axes; k++) {
        const int64_t stride = o->stride[k] ? o->stride[k] : o->window[k],
                      d = o->dilation[k] ? o->dilation[k] : 1;
        const int64_t n = x->size[2 + k], c = i[2 + k] * stride - o->pad[k] + own[k] * d,
                      end = n + o->pad[k] + o->more[k];
        p.is_padded &= c < end;
        p.exists &= 0 <= c && c < n && c < end;
        p.at = p.at * n + c;
    }
    return p;
}

static int64_t volume(const options *o)
{
    int64_t n = 1;
    for (int k = 0; k < o->axes; k++) n *= o->window[k];
    return n;
}

static double least(duet_dtype t)
{
    return is_float(t)                    ? -INFINITY
           : dtype_kind(t) == TYPE_SIGNED ? -ldexp(1, 8 * (int)dtypes[t].bytes - 1)
                                          : 0;
}

/* The maxima, their indices in the plane, the means, and the gradients of the maxima for the gradient g. */
static void pooled(const options *o, const array *x, const array *g, array *most, array *index, array *mean,
                   array *dx)
{
    int64_t i[DUET_RANK_MAX] = { 0 }, plane = 1;
    for (int k = 0; k < o->axes; k++) plane *= x->size[2 + k];
    *most = *index = *mean = *g;
    index->type = DUET_I64;
    *dx = *x;
    for (int64_t k = 0; k < dx->count; k++) dx->x[k] = 0;
    for (int64_t k = 0; k < g->count; k++, array_next(g, i)) {
        int64_t best = -1, equal = 0, counted = 0;
        double sum = 0;
        for (int64_t u = 0; u < volume(o); u++) {
            const place_of p = element_of(o, x, i, u);
            counted += o->exclude_pad ? p.exists : p.is_padded;
            if (!p.exists) continue;
            const double v = x->x[p.at];
            sum += v;
            if (best < 0 || v > x->x[best] || (isnan(v) && !isnan(x->x[best]))) best = p.at;
        }
        most->x[k] = best < 0 ? least(x->type) : x->x[best];
        index->x[k] = best < 0 ? -1 : (double)(best % plane);
        mean->x[k] = sum / (double)counted;
        if (best < 0) continue;
        for (int64_t u = 0; u < volume(o) && o->ties; u++) {
            const place_of p = element_of(o, x, i, u);
            equal += p.exists && x->x[p.at] == x->x[best];
        }
        if (!o->ties) dx->x[best] += g->x[k];
        for (int64_t u = 0; u < volume(o) && o->ties; u++) {
            const place_of p = element_of(o, x, i, u);
            if (p.exists && x->x[p.at] == x->x[best]) dx->x[p.at] += g->x[k] / (double)equal;
        }
    }
}

#define PAIR(x)                                                                                              \
    {                                                                                                        \
        o->x[0], o->x[1]                                                                                     \
    }
#define TRIPLE(x)                                                                                            \
    {                                                                                                        \
        o->x[0], o->x[1], o->x[2]                                                                            \
    }
enum what { MOST, MEAN, INDICES };

static duet_expr formula(const options *o, enum what what, const duet_matrix *m)
{
    const int excludes = what == MEAN && o->exclude_pad, ties = what == MOST ? o->ties : 0;
    const duet_pool1 one = { o->window[0],   o->stride[0], o->pad[0], o->more[0],
                             o->dilation[0], o->ceil,      excludes,  ties };
    const duet_pool two = { PAIR(window),   PAIR(stride), PAIR(pad), PAIR(more),
                            PAIR(dilation), o->ceil,      excludes,  ties };
    const duet_pool3 three = { TRIPLE(window),   TRIPLE(stride), TRIPLE(pad), TRIPLE(more),
                               TRIPLE(dilation), o->ceil,        excludes,    ties };
    const duet_expr x = DUET(m);
    if (o->axes == 1)
        return what == MOST   ? (duet_max_pool1d)(x, &one)
               : what == MEAN ? (duet_avg_pool1d)(x, &one)
                              : (duet_max_pool1d_indices)(x, &one);
    if (o->axes == 2)
        return what == MOST   ? (duet_max_pool2d)(x, &two)
               : what == MEAN ? (duet_avg_pool2d)(x, &two)
                              : (duet_max_pool2d_indices)(x, &two);
    return what == MOST   ? (duet_max_pool3d)(x, &three)
           : what == MEAN ? (duet_avg_pool3d)(x, &three)
                          : (duet_max_pool3d_indices)(x, &three);
}

static void try_pools(duet_dtype type)
{
    static array x, g, most, index, mean, dx;
    options o;
    if (!draw(&o, &x, &g, type)) return;
    array_fill(&g, -2, 2);
    if (!between(0, 2)) array_spoil(&x, 6);
    pooled(&o, &x, &g, &most, &index, &mean, &dx);
    char what[300];
    snprintf(
        what, sizeof what,
        "%d axes, window %d %d %d, stride %d %d %d, pad %d %d %d, more %d %d %d, dilation %d %d %d, ceil %d, "
        "exclude_pad %d, ties %d",
        o.axes, o.window[0], o.window[1], o.window[2], o.stride[0], o.stride[1], o.stride[2], o.pad[0],
        o.pad[1], o.pad[2], o.more[0], o.more[1], o.more[2], o.dilation[0], o.dilation[1], o.dilation[2],
        o.ceil, o.exclude_pad, o.ties);
    duet_matrix *m = array_matrix(&x), *gradient = array_matrix(&g);
    bool numbers = true;
    for (int64_t k = 0; k < x.count; k++) numbers &= isfinite(x.x[k]) != 0;
    array_check(formula(&o, MOST, m), &most, 0, what);
    array_check(formula(&o, INDICES, m), &index, 0, what);
    if (is_float(type)) array_check(formula(&o, MEAN, m), &mean, 8 * array_error(type), what);
    if (is_float(type) && numbers)
        array_check(duet_vjp(formula(&o, MOST, m), m, gradient), &dx, 64 * array_error(type), what);
    duet_free(&m, &gradient);
}

/* The gradient of means is linear: <mean(x), g> = <x, vjp(g)> for all x. */
static void try_mean_gradient(void)
{
    static array x, g;
    options o;
    double left = 0, right = 0;
    if (!draw(&o, &x, &g, DUET_F64)) return;
    array_fill(&g, -2, 2);
    duet_matrix *m = array_matrix(&x), *by = array_matrix(&g);
    const duet_expr y = formula(&o, MEAN, m);
    DUET_ON(place[at_place])
    CHECK(duet_item(duet_sum(duet_where(duet_isnan(y), 0, duet_mul(y, by))), &left) == DUET_OK, "%s",
          duet_error());
    const duet_expr again = duet_where(duet_isnan(formula(&o, MEAN, m)), 0, formula(&o, MEAN, m));
    DUET_ON(place[at_place])
    CHECK(duet_item(duet_sum(duet_mul(m, duet_vjp(again, m, by))), &right) == DUET_OK, "%s", duet_error());
    forget(again); /* a linear gradient does not use it */
    CHECK(fabs(left - right) <= 1e-11 * (1 + fabs(left)), "%g and %g", left, right);
    duet_free(&m, &by);
}

/* ---- convolutions that crop ---- */

static void try_crops(duet_dtype type)
{
    static array x, w, want;
    int64_t size[] = { between(1, 2), 2, between(3, 8), between(3, 8) },
            filter[] = { 2, 2, between(1, 3), between(1, 3) };
    int32_t pad[2], more[2];
    int64_t out[4] = { size[0], 2 };
    for (int k = 0; k < 2; k++) {
        pad[k] = drawn(-2, 2);
        more[k] = drawn(-3, 2);
        const int64_t front = pad[k] < 0 ? -pad[k] : 0, end = pad[k] + more[k] < 0 ? -pad[k] - more[k] : 0;
        out[2 + k] = size[2 + k] + 2 * pad[k] + more[k] - filter[2 + k] + 1;
        if (out[2 + k] < 1 || front + end > size[2 + k]) return;
    }
    array_shape(&x, type, 4, size);
    array_fill(&x, -2, 2);
    array_shape(&w, type, 4, filter);
    array_fill(&w, -2, 2);
    array_shape(&want, type, 4, out);
    int64_t i[DUET_RANK_MAX] = { 0 };
    for (int64_t k = 0; k < want.count; k++, array_next(&want, i))
        for (int64_t c = 0; c < 2; c++)
            for (int64_t u = 0; u < filter[2]; u++)
                for (int64_t v = 0; v < filter[3]; v++) {
                    const int64_t p = i[2] - pad[0] + u, q = i[3] - pad[1] + v;
                    const bool in = 0 <= p && p < size[2] && 0 <= q && q < size[3];
                    if (!in || p >= size[2] + pad[0] + more[0] || q >= size[3] + pad[1] + more[1]) continue;
                    want.x[k] += x.x[array_at(&x, (const int64_t[]){ i[0], c, p, q })] *
                                 w.x[array_at(&w, (const int64_t[]){ i[1], c, u, v })];
                }
    duet_matrix *m = array_matrix(&x), *f = array_matrix(&w);
    array_check(duet_conv2d(m, f, .pad = { pad[0], pad[1] }, .more = { more[0], more[1] }), &want,
                64 * array_error(type), "conv2d");
    const duet_expr flipped = duet_flip(duet_flip(f, 2), 3);
    array_check(duet_convolve2d(m, flipped, .pad = { pad[0], pad[1] }, .more = { more[0], more[1] }), &want,
                64 * array_error(type), "convolve2d");
    duet_free(&m, &f);
}

static void test_each(int turns)
{
    static const duet_dtype types[] = { DUET_F32, DUET_F64, DUET_F32, DUET_I32, DUET_U8, DUET_I8, DUET_F16 };
    for (at_place = 0; at_place < places; at_place++) {
        for (int k = 0; k < turns; k++) {
            gen = rng_new((uint64_t)k + 1);
            try_pools(types[k % 7]);
            try_mean_gradient();
            try_crops(k % 2 ? DUET_F32 : DUET_F64);
        }
        tap_point(at_place ? "results equal loops, on the GPU" : "results equal loops, on the CPU");
    }
    at_place = 0;
}

static void test_refusals(void)
{
    duet_matrix *x = duet_new(DUET_F32, 1, 1, 5, 5), *v = duet_new(DUET_F32, 3),
                *z = duet_new(DUET_C64, 1, 1, 5, 5), *w = duet_new(DUET_F32, 1, 1, 2, 2),
                *g = duet_new(DUET_F32, 1, 1, 3, 3);
    array_refused(
        duet_max_pool2d(x, .window = { 2, 2 }, .dilation = { 5, 1 }), DUET_BAD_SHAPE,
        "duet_max_pool2d(x: f32[1,1,5,5]): along axis 2 the window reaches over 6 elements; x with its "
        "padding has 5");
    array_refused(duet_max_pool2d(x, .window = { 2, 2 }, .dilation = { -1, 1 }), DUET_BAD_ARGUMENT,
                  "dilation (-1) must not be negative");
    array_refused(duet_max_pool2d(x, .window = { 2, 2 }, .exclude_pad = 1), DUET_BAD_ARGUMENT,
                  "exclude_pad is an option of average pooling only");
    array_refused(duet_avg_pool2d(x, .window = { 2, 2 }, .ties = DUET_TIES_SHARED), DUET_BAD_ARGUMENT,
                  "ties is an option of max pooling only");
    array_refused(duet_max_pool2d(x, .window = { 2, 2 }, .ties = 5), DUET_BAD_ARGUMENT,
                  "ties (5) is not a duet_pool_ties");
    array_refused(duet_avg_pool2d(x, .window = { 2, 2 }, .pad = { -3, 0 }), DUET_BAD_SHAPE,
                  "along axis 2 padding removes more elements than x has (5)");
    array_refused(duet_avg_pool2d(v, .window = { 2, 2 }, .ceil = 1), DUET_BAD_SHAPE,
                  "duet_avg_pool2d(x: f32[3]): x must have 4 axes, not 1");
    array_refused(duet_max_pool2d(x, .window = { 0, 2 }, .ceil = 1), DUET_BAD_ARGUMENT, "must be positive");
    array_refused(duet_max_pool2d(z, .window = { 2, 2 }, .ceil = 1), DUET_BAD_TYPE,
                  "duet_max_pool2d(x: c64[1,1,5,5]): ");
    array_refused(duet_max_pool2d_grad(x, g, .window = { 2, 2 }, .more = { 1, 1 }), DUET_BAD_ARGUMENT,
                  "the only options are window, stride and pad");
    array_refused(
        duet_max_pool2d_indices(z, .window = { 2, 2 }), DUET_BAD_TYPE,
        "duet_max_pool2d_indices(x: c64[1,1,5,5]): x must have integer or real floating-point elements");
    array_refused(duet_max_pool1d_indices(x, .window = 2), DUET_BAD_SHAPE, "x must have 3 axes, not 4");
    array_refused(duet_max_pool2d_indices(x), DUET_BAD_ARGUMENT, "window (0) must be positive");
    array_refused(
        duet_conv2d(x, w, .pad = { -3, 0 }), DUET_BAD_SHAPE,
        "duet_conv2d(x: f32[1,1,5,5], filters: f32[1,1,2,2]): along axis 2 padding removes more elements "
        "than x has (5)");
    array_refused(duet_conv2d(v, w, .pad = { -1, 0 }), DUET_BAD_SHAPE, "x must have 4 axes, not 1");
    array_refused(duet_conv2d_input_grad(x, w, .pad = { -1, 0 }), DUET_BAD_ARGUMENT,
                  "pad ({-1, 0}) must not be negative");
    duet_free(&x, &v, &z, &w, &g);
    tap_point("wrong operands are refused");
}

/* 16 x 16 x 16 parts, which the limit of formulas cuts off. */
static void test_full_arena(void)
{
    duet_matrix *x = duet_new(DUET_F32, 1, 1, 40, 40, 40);
    CHECK(duet_arena_limit(1 << 16) == DUET_OK, "%s", duet_error());
    const duet_expr e = duet_max_pool3d(x, .window = { 2, 2, 2 }, .dilation = { 16, 16, 16 });
    CHECK(duet_expr_status(e) == DUET_ARENA_FULL, "%s", duet_error());
    (void)duet_drop(e);
    array_nothing_left("a formula that exceeds the limit");
    duet_free(&x);
    tap_point("a formula that exceeds the limit leaves nothing");
}

int main(int argc, char **argv)
{
    places = list_places(place);
    test_each(trial_count(argc, argv, 60, 1500));
    test_refusals();
    test_full_arena();
    return tap_end();
}
