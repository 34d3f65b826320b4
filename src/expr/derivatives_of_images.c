/* derivatives_of_images.c - the gradients of convolutions, pooling and upsampling. The gradients of a
 * gradient are convolutions again. */
#include "derivative_rules.h"
#include "min_max.h"
#include "status.h"
#include <string.h>
#undef DUET_HERE
#define DUET_HERE site /* of the user's call */

/* ---- signals, images and volumes ---- */

/* The sizes of the last `axes` axes. */
static void spatial_sizes(duet_expr x, int axes, int32_t *size)
{
    for (int i = 0; i < axes; i++) size[i] = (int32_t)duet_expr_size(x, duet_expr_rank(x) - axes + i);
}

/* The options of a gradient from those of the convolution, and the reverse. A struct has members of the same
 * names in another order. COPY copies one of them, a number or an array. */
#define COPY(to, from, member) memcpy(&(to).member, &(from)->member, sizeof(to).member)
#define COPY_CONV(to, from)                                                                                  \
    (COPY(to, from, stride), COPY(to, from, pad), COPY(to, from, dilation), COPY(to, from, groups),          \
     COPY(to, from, more))
#define CONVOLUTIONS(d, axes, conv, conv_grad)                                                               \
    static conv_grad d##_back(const node *n, duet_expr like)                                                 \
    {                                                                                                        \
        conv_grad o = { 0 };                                                                                 \
        COPY_CONV(o, (const conv *)n->attr.word);                                                            \
        spatial_sizes(like, axes, (int32_t *)&o.size);                                                       \
        return o;                                                                                            \
    }                                                                                                        \
    static conv_grad d##_resized(const node *n, duet_expr like)                                              \
    {                                                                                                        \
        conv_grad o = *(const conv_grad *)n->attr.word;                                                      \
        spatial_sizes(like, axes, (int32_t *)&o.size);                                                       \
        return o;                                                                                            \
    }                                                                                                        \
    duet_expr d##_image(const node *n, duet_expr x, duet_expr w, duet_expr g, const char *site)              \
    {                                                                                                        \
        const conv_grad o = d##_back(n, x);                                                                  \
        return duet_##d##_input_grad_at(g, w, &o, site);                                                     \
    }                                                                                                        \
    duet_expr d##_filters(const node *n, duet_expr x, duet_expr w, duet_expr g, const char *site)            \
    {                                                                                                        \
        const conv_grad o = d##_back(n, w);                                                                  \
        return duet_##d##_filter_grad_at(x, g, &o, site);                                                    \
    }                                                                                                        \
    duet_expr d##_forward(const node *n, duet_expr x, duet_expr w, const char *site)                         \
    {                                                                                                        \
        conv o = { 0 };                                                                                      \
        COPY_CONV(o, (const conv_grad *)n->attr.word);                                                       \
        return duet_##d##_at(x, w, &o, site);                                                                \
    }                                                                                                        \
    duet_expr d##_grad_image(const node *n, duet_expr g, duet_expr w, duet_expr x, const char *site)         \
    {                                                                                                        \
        const conv_grad o = d##_resized(n, x);                                                               \
        return duet_##d##_input_grad_at(g, w, &o, site);                                                     \
    }                                                                                                        \
    duet_expr d##_grad_filters(const node *n, duet_expr x, duet_expr g, duet_expr w, const char *site)       \
    {                                                                                                        \
        const conv_grad o = d##_resized(n, w);                                                               \
        return duet_##d##_filter_grad_at(x, g, &o, site);                                                    \
    }                                                                                                        \
    duet_expr d##_flip(duet_expr w, const char *site) { return flipped(w, axes, site); }

/* w reversed along its last `axes` axes. */
static duet_expr flipped(duet_expr w, int axes, const char *site)
{
    const int rank = duet_expr_rank(w);
    for (int a = rank - axes; a < rank; a++) w = duet_flip_at(w, a, site);
    return w;
}

CONVOLUTIONS(conv1d, 1, duet_conv1, duet_conv1_grad)
CONVOLUTIONS(conv2d, 2, duet_conv, duet_conv_grad)
CONVOLUTIONS(conv3d, 3, duet_conv3, duet_conv3_grad)

/* The spatial axis along which windows overlap or have padding; -1: there is none. */
static int overlapping(const int32_t *window, const int32_t *stride, const int32_t *pad, int axes)
{
    for (int i = 0; i < axes; i++)
        if ((stride[i] && stride[i] < window[i]) || pad[i]) return i;
    return -1;
}

static duet_expr refused_windows(duet_expr g, const char *site, const int32_t *window, const int32_t *stride,
                                 const int32_t *pad, int axis)
{
    return refused(g, site,
                   "it needs windows that do not overlap and have no padding; along spatial axis %d the "
                   "window is %d, the stride %d, the padding %d",
                   axis, (int)window[axis], (int)(stride[axis] ? stride[axis] : window[axis]),
                   (int)pad[axis]);
}

static double product_of(const int32_t *n, int count)
{
    double p = 1;
    for (int i = 0; i < count; i++) p *= n[i];
    return p;
}

/* Upsampling by a factor is the gradient of the sum over blocks. The gradient of max pooling is linear in
 * its operand y; backward it takes the elements of g that are the largest of their windows. */
#define POOLINGS(d, axes, options, grad_options, scaling)                                                    \
    static options pool##d##_options(const node *n) /* a node has the first three options */                 \
    {                                                                                                        \
        options o = { 0 };                                                                                   \
        memcpy(&o, n->attr.word, 3 * (axes) * sizeof n->attr.word[0]);                                       \
        return o;                                                                                            \
    }                                                                                                        \
    duet_expr pool##d##_first(const node *n, duet_expr x, duet_expr g, const char *site)                     \
    {                                                                                                        \
        const options o = pool##d##_options(n);                                                              \
        return duet_max_pool##d##_grad_at(x, g, &o, site);                                                   \
    }                                                                                                        \
    duet_expr pool##d##_spread(const node *n, duet_expr x, duet_expr g, const char *site)                    \
    {                                                                                                        \
        const options *from = (const options *)n->attr.word;                                                 \
        grad_options o = { 0 };                                                                              \
        COPY(o, from, window), COPY(o, from, stride), COPY(o, from, pad);                                    \
        spatial_sizes(x, axes, (int32_t *)&o.size);                                                          \
        return duet_avg_pool##d##_grad_at(g, &o, site);                                                      \
    }                                                                                                        \
    duet_expr pool##d##_mean(const node *n, duet_expr g, const char *site)                                   \
    {                                                                                                        \
        const grad_options *from = (const grad_options *)n->attr.word;                                       \
        options o = { 0 };                                                                                   \
        COPY(o, from, window), COPY(o, from, stride), COPY(o, from, pad);                                    \
        return duet_avg_pool##d##_at(g, &o, site);                                                           \
    }                                                                                                        \
    duet_expr pool##d##_largest(const node *n, duet_expr x, duet_expr y, duet_expr g, const char *site)      \
    {                                                                                                        \
        const options o = pool##d##_options(n);                                                              \
        const int32_t *window = (const int32_t *)&o.window, *stride = (const int32_t *)&o.stride,            \
                      *pad = (const int32_t *)&o.pad;                                                        \
        const int wrong = overlapping(window, stride, pad, axes);                                            \
        if (wrong >= 0) return refused_windows(g, site, window, stride, pad, wrong);                         \
        const duet_expr chosen =                                                                             \
            duet_max_pool##d##_grad_at(x, number_like(duet_of_number(1), y, site), &o, site);                \
        return duet_mul(duet_avg_pool##d##_at(duet_mul(g, chosen), &o, site), product_of(window, axes));     \
    }                                                                                                        \
    duet_expr scale##d##_sum(const node *n, duet_expr g, const char *site)                                   \
    {                                                                                                        \
        const scaling *from = (const scaling *)n->attr.word;                                                 \
        int32_t by[axes];                                                                                    \
        double block = 1;                                                                                    \
        options o = { 0 };                                                                                   \
        memcpy(by, &from->scale, sizeof by);                                                                 \
        for (int i = 0; i < axes; i++) block *= by[i] = by[i] ? by[i] : 1;                                   \
        memcpy(&o.window, by, sizeof by);                                                                    \
        return duet_mul(duet_avg_pool##d##_at(g, &o, site), block);                                          \
    }
POOLINGS(1d, 1, duet_pool1, duet_pool1_grad, duet_scale1)
POOLINGS(2d, 2, duet_pool, duet_pool_grad, duet_scale)
POOLINGS(3d, 3, duet_pool3, duet_pool3_grad, duet_scale3)

/* ---- convolutions of arrays ---- */

static int64_t size_from_last(duet_expr x, int i) { return duet_expr_size(x, duet_expr_rank(x) - 1 - i); }

/* g with zeros where the other parts of the full convolution are, along the last `axes` axes. */
static duet_expr in_full(duet_expr g, duet_expr x, duet_expr y, duet_overlap part, int axes, const char *site)
{
    duet_padding pad = { 0 };
    const int rank = duet_expr_rank(g);
    for (int i = 0; i < axes; i++) {
        const int64_t n = size_from_last(x, i), m = size_from_last(y, i), all = n + m - 1;
        const int64_t start = part == DUET_OVERLAP_FULL ? 0 : part == DUET_OVERLAP_SAME ? (m - 1) / 2 : m - 1;
        pad.before[rank - 1 - i] = start;
        pad.after[rank - 1 - i] = larger(all - start - size_from_last(g, i), 0);
    }
    return part == DUET_OVERLAP_FULL ? g : duet_pad_at(g, &pad, site);
}

typedef duet_expr overlap_function(duet_expr x, duet_expr y, duet_overlap part, const char *site);

/* Gradients of r = x * y, or, if `reversed`, of the correlation, which is x * reversed y. Let G be g in the
 * full convolution. In VALID parts, the gradient of x is the correlation of G with y, and that of y the
 * correlation of G with x. */
static duet_expr of_valid(duet_expr full, duet_expr x, duet_expr y, bool reversed, int which, int axes,
                          overlap_function *convolve, overlap_function *correlate, const char *site)
{
    if (which == 0) return (reversed ? convolve : correlate)(full, y, DUET_OVERLAP_VALID, site);
    const duet_expr d = correlate(full, x, DUET_OVERLAP_VALID, site);
    return reversed ? flipped(d, axes, site) : d;
}

duet_expr of_overlap(const node *n, duet_expr x, duet_expr y, duet_expr g, int which, const char *site)
{
    const int axes = duet_expr_rank(x);
    const bool fast = n->op == OP_fftconvolve || n->op == OP_fftcorrelate,
               reversed = n->op == OP_correlate || n->op == OP_fftcorrelate;
    const duet_expr full = in_full(g, x, y, (duet_overlap)n->attr.overlap.part, axes, site);
    return of_valid(full, x, y, reversed, which, axes, fast ? duet_fftconvolve_at : duet_convolve_at,
                    fast ? duet_fftcorrelate_at : duet_correlate_at, site);
}

/* x, whose leading axes are `before` ones of another operand and then its own, in their common shape. */
static duet_expr among(duet_expr x, const shape *all, int first, int count, const char *site)
{
    shape apart = *all;
    for (int a = 0; a < all->rank - 2; a++)
        if (a < first || a >= first + count) apart.size[a] = 1;
    shape full = *all;
    for (int i = 1; i <= 2; i++)
        apart.size[all->rank - i] = full.size[all->rank - i] = size_from_last(x, i - 1);
    return spread_to(duet_reshape_at(x, apart.rank, apart.size, site), &full, site);
}

static duet_expr sum_over(duet_expr v, int first, int count, const char *site)
{
    int axis[DUET_RANK_MAX];
    for (int k = 0; k < count; k++) axis[k] = first + k;
    return count ? duet_sum_axes_at(v, count, axis, site) : v;
}

/* convolve_multi is convolve_deep of every image with every kernel. */
duet_expr of_planes(const node *n, duet_expr x, duet_expr y, duet_expr g, int which, const char *site)
{
    const bool multi = n->op == OP_convolve_multi || n->op == OP_correlate_multi,
               reversed = n->op == OP_correlate_multi || n->op == OP_correlate_deep;
    const duet_expr full = in_full(g, x, y, (duet_overlap)n->attr.overlap.part, 2, site);
    const shape all = formula_shape(full);
    const int images = duet_expr_rank(x) - 2, kernels = duet_expr_rank(y) - 2;
    if (multi) {
        if (which == 0) y = among(y, &all, images, kernels, site);
        else x = among(x, &all, 0, images, site);
    }
    const duet_expr d =
        of_valid(full, x, y, reversed, which, 2, duet_convolve_deep_at, duet_correlate_deep_at, site);
    if (!multi) return d;
    return which == 0 ? sum_over(d, images, kernels, site) : sum_over(d, 0, images, site);
}
