/* conv_nd.c - rewrites convolutions and pooling over one axis, over three, and of plain arrays as
 * the two-dimensional operators that backends have. With one axis, the other one has one element,
 * which step_conv.c inserts. Volumes are pooled along height and width first, then along depth. */
#include "backend.h"
#include "canonicalize.h"
#include "min_max.h"
#include <string.h>

/* For each operator, the one that backends have. axes: the number of axes in its options; 0: plain
 * arrays. */
static const struct rule {
    uint8_t op, as, axes, flips, form;
} rules[] = {
#define CONVOLUTIONS(n, axes)                                                                                \
    { OP_conv##n, OP_conv2d, axes, 0, 0 }, { OP_convolve##n, OP_conv2d, axes, 1, 0 },                        \
        { OP_conv##n##_input_grad, OP_conv2d_input_grad, axes, 0, 0 },                                       \
        { OP_conv_transpose##n, OP_conv2d_input_grad, axes, 0, 0 },                                          \
        { OP_conv##n##_filter_grad, OP_conv2d_filter_grad, axes, 0, 0 },
#define POOLINGS(n, axes)                                                                                    \
    { OP_max_pool##n, OP_max_pool2d, axes, 0, 0 }, { OP_avg_pool##n, OP_avg_pool2d, axes, 0, 0 },            \
        { OP_max_pool##n##_grad, OP_max_pool2d_grad, axes, 0, 0 },                                           \
        { OP_avg_pool##n##_grad, OP_avg_pool2d_grad, axes, 0, 0 },                                           \
        { OP_upsample##n, OP_upsample2d, axes, 0, 0 },
    CONVOLUTIONS(1d, 1) CONVOLUTIONS(3d, 3) POOLINGS(1d, 1) POOLINGS(3d, 3)
#define PLAIN(name, form)                                                                                    \
    { OP_convolve##name, OP_conv2d, 0, 1, form }, { OP_correlate##name, OP_conv2d, 0, 0, form },
        PLAIN(, CONV_PLAIN) PLAIN(_multi, CONV_MULTI) PLAIN(_deep, CONV_DEEP)
};

static const struct rule *rule_of(int op)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].op == op) return &rules[i];
    return NULL;
}

bool is_conv_nd(int op) { return rule_of(op) != NULL; }

/* Intern v, an operator that backends have, with its types legalized. */
static int intern_legalized(graph *g, const value *v)
{
    if (value_needs_legalizing(g, v)) return make_legalized(g, v);
    return intern(g, v);
}

/* ---- operands with merged axes ---- */

/* Merges `count` axes of x, starting at `first`. If strides do not allow that, x is copied before. */
static int merged_axes(graph *g, int x, int first, int count)
{
    layout l = value_layout(g, x);
    if (layout_merges(&l, first, count)) return x;
    value like = copy_of(g, x);
    like.join = 0; /* the copy is no piece of a concatenation, even if x is one */
    return load_as(g, x, &like, LOAD_SHAPE, like.comp);
}

/* ---- convolutions ---- */

/* The values with the roles of a convolution's image, filters and result. One of them is v. */
typedef struct conv_values {
    const value *image, *filters, *result;
} conv_values;

static conv_values conv_values_of(const graph *g, const value *v)
{
    const value *a = value_at(g, v->arg[0]), *b = value_at(g, v->arg[1]);
    if (v->op == OP_conv2d_input_grad) return (conv_values){ v, b, a };
    if (v->op == OP_conv2d_filter_grad) return (conv_values){ a, v, b };
    return (conv_values){ a, b, v };
}

void trim_padding(const graph *g, value *v)
{
    const conv_values c = conv_values_of(g, v);
    conv_attributes *conv = &v->attr.conv;
    for (int axis = 2; axis < v->rank; axis++) {
        const int k = spatial_axis(axis - 2, v->rank - 2);
        const int64_t reach = (c.filters->size[axis] - 1) * conv->dilation[k] + 1;
        const int64_t read = (c.result->size[axis] - 1) * conv->stride[k] + reach;
        const int64_t behind = read - c.image->size[axis] - 2 * (int64_t)conv->pad[k];
        if (conv->pad_end[k]) conv->pad_end[k] = (int32_t)larger(behind, 0);
    }
}

static int convolution(graph *g, const struct rule *r, const value *of)
{
    value v = *of;
    v.op = r->as;
    trim_padding(g, &v);
    return intern_legalized(g, &v);
}

/* ---- convolutions of plain arrays ---- */

static int64_t leading_count(const value *x)
{
    int64_t n = 1;
    for (int i = 0; i + 2 < x->rank; i++) n *= x->size[i];
    return n;
}

static int32_t overlap_padding(int64_t filter_size, duet_overlap part)
{
    if (part == DUET_OVERLAP_FULL) return (int32_t)(filter_size - 1);
    if (part == DUET_OVERLAP_SAME) return (int32_t)(filter_size / 2);
    return 0;
}

/* Set the padding on both sides and the sizes that result. If the filter's size is even and the
 * result is to have as many elements as the operand, that is one more. */
static void set_overlap(value *v, const value *filters, duet_overlap part)
{
    const int axes = v->attr.conv.form == CONV_PLAIN ? v->rank : 2;
    for (int k = 0; k < axes; k++) {
        const int64_t m = filters->size[filters->rank - axes + k];
        v->attr.conv.pad[spatial_axis(k, axes)] = overlap_padding(m, part);
        if (part == DUET_OVERLAP_SAME) v->size[v->rank - axes + k] += m % 2 == 0;
    }
}

static int plain_convolution(graph *g, const struct rule *r, const value *of)
{
    value v = *of;
    const value filters = copy_of(g, v.arg[1]);
    const int64_t channels = r->form == CONV_DEEP ? leading_count(&filters) : 1;
    v.op = r->as;
    v.attr = (attributes){ { 0 } };
    for (int k = 0; k < SPATIAL_AXES; k++) v.attr.conv.stride[k] = v.attr.conv.dilation[k] = 1;
    v.attr.conv.groups = (int32_t)larger(channels, 1);
    v.attr.conv.flip = r->flips;
    v.attr.conv.form = r->form;
    set_overlap(&v, &filters, (duet_overlap)of->attr.overlap.part);
    for (int k = 0; k < 2 && r->form != CONV_PLAIN; k++)
        v.arg[k] = merged_axes(g, v.arg[k], 0, copy_of(g, v.arg[k]).rank - 2);
    return first_elements(g, intern_legalized(g, &v), of->size);
}

/* ---- pooling ---- */

/* An option along height and width, or the option along depth in the place of the height. `none` is
 * the value for an axis that is not pooled. */
static void select_axes(const int32_t of[SPATIAL_AXES], enum pool_form form, int32_t none,
                        int32_t to[SPATIAL_AXES])
{
    const bool depth = form == POOL_DEPTH;
    to[SPATIAL_HEIGHT] = of[depth ? SPATIAL_DEPTH : SPATIAL_HEIGHT];
    to[SPATIAL_WIDTH] = depth ? none : of[SPATIAL_WIDTH];
    to[SPATIAL_DEPTH] = none;
}

static attributes pool_options(const value *of, bool scales, enum pool_form form)
{
    attributes a = { { 0 } };
    select_axes(of->attr.pool.window, form, 1, a.pool.window);
    a.pool.form = form;
    if (scales) return a;
    select_axes(of->attr.pool.stride, form, 1, a.pool.stride);
    select_axes(of->attr.pool.pad, form, 0, a.pool.pad);
    return a;
}

/* Pool along height and width, or along depth. The other axes are merged. */
static int pooled(graph *g, const value *of, int as, enum pool_form form, const int64_t *size, int x, int y)
{
    const int first = form == POOL_DEPTH ? 3 : 1;
    value v = *of;
    v.op = (uint8_t)as;
    v.arg[0] = x;
    v.arg[1] = y;
    memcpy(v.size, size, sizeof v.size);
    v.attr = pool_options(of, as == OP_upsample2d, form);
    for (int k = 0; k < v.args; k++) v.arg[k] = merged_axes(g, v.arg[k], first, 2);
    return intern_legalized(g, &v);
}

typedef struct sizes {
    int64_t size[DUET_RANK_MAX];
} sizes;

/* The sizes of `plane`, with the depth of `depth`. */
static sizes sizes_with_depth(const value *plane, const value *depth)
{
    sizes s;
    memcpy(s.size, plane->size, sizeof s.size);
    s.size[2] = depth->size[2];
    return s;
}

/* First computes the gradient along depth, which assigns it to a plane, then the gradient within the
 * planes. Of equal elements, and of NaNs, the first one in the first plane gets the gradient. That is
 * the same element as with a window of three axes. */
static int max_pool_volumes_grad(graph *g, const value *of)
{
    const int x = of->arg[0], grad = of->arg[1];
    const value image = copy_of(g, x), result = copy_of(g, grad);
    const sizes s = sizes_with_depth(&result, &image);
    value forward = *of;
    forward.args = 1;
    forward.arg[1] = -1;
    const int planes = pooled(g, &forward, OP_max_pool2d, POOL_PLANES, s.size, x, -1);
    const int planes_grad = pooled(g, of, OP_max_pool2d_grad, POOL_DEPTH, s.size, planes, grad);
    return pooled(g, of, OP_max_pool2d_grad, POOL_PLANES, of->size, x, planes_grad);
}

static int avg_pool_volumes_grad(graph *g, const value *of)
{
    const value grad = copy_of(g, of->arg[0]);
    const sizes s = sizes_with_depth(&grad, of);
    const int planes_grad = pooled(g, of, OP_avg_pool2d_grad, POOL_DEPTH, s.size, of->arg[0], -1);
    return pooled(g, of, OP_avg_pool2d_grad, POOL_PLANES, of->size, planes_grad, -1);
}

static int pool_volumes(graph *g, const struct rule *r, const value *of)
{
    if (r->as == OP_max_pool2d_grad) return max_pool_volumes_grad(g, of);
    if (r->as == OP_avg_pool2d_grad) return avg_pool_volumes_grad(g, of);
    const value image = copy_of(g, of->arg[0]);
    const sizes s = sizes_with_depth(of, &image);
    const int planes = pooled(g, of, r->as, POOL_PLANES, s.size, of->arg[0], -1);
    return pooled(g, of, r->as, POOL_DEPTH, of->size, planes, -1);
}

static int pool_signals(graph *g, const struct rule *r, const value *of)
{
    value v = *of;
    v.op = r->as;
    return intern_legalized(g, &v);
}

int make_conv_nd(graph *g, const value *v)
{
    const struct rule *r = rule_of(v->op);
    if (!r->axes) return plain_convolution(g, r, v);
    if (is_conv(r->as)) return convolution(g, r, v);
    if (r->axes == 1) return pool_signals(g, r, v);
    return pool_volumes(g, r, v);
}
