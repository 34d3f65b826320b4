/* conv_nd.c - convolutions and pooling of one axis and of three, and of plain arrays, in terms of those that machines have: of one axis the other
 * has one element, and step_conv.c puts it there; volumes are pooled along height and width, then along depth. */
#include "backend.h"
#include "canonicalize.h"
#include <string.h>

/* What an operator is on a machine. axes: that its options have; 0: it is of plain arrays. */
static const struct form {
    uint8_t op, as, axes, flips, form;
} forms[] = {
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

static const struct form *form_of(int op)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (forms[i].op == op) return &forms[i];
    return NULL;
}

bool is_of_images(int op) { return form_of(op) != NULL; }

/* v, an operator of machines, of whatever type. */
static int kernel(graph *g, const value *v) { return value_widens(g, v) ? make_wide(g, v) : intern(g, v); }

/* ---- operands as one array of fewer axes ---- */

/* Operand x, or, where `count` axes of it from `first` on are not walked as one, a copy. */
static int in_one(graph *g, int x, int first, int count)
{
    layout l = value_layout(g, x);
    if (layout_merges(&l, first, count)) return x;
    const value like = copy_of(g, x);
    return load_as(g, x, &like, LOAD_SHAPE, like.comp);
}

/* ---- convolutions ---- */

void settle_padding(const graph *g, value *v)
{
    const value *a = value_at(g, v->arg[0]), *b = value_at(g, v->arg[1]);
    const value *x = v->op == OP_conv2d_input_grad ? v : a, *w = v->op == OP_conv2d_filter_grad ? v : b;
    const value *y = v->op == OP_conv2d_input_grad ? a : v->op == OP_conv2d_filter_grad ? b : v;
    conv_attributes *conv = &v->attr.conv;
    for (int axis = 2; axis < v->rank; axis++) {
        const int k = spatial_axis(axis - 2, v->rank - 2);
        const int64_t reach = (w->size[axis] - 1) * conv->dilation[k] + 1,
                      read = (y->size[axis] - 1) * conv->stride[k] + reach;
        const int64_t behind = read - x->size[axis] - 2 * conv->pad[k];
        if (conv->more[k]) conv->more[k] = (int32_t)(behind > 0 ? behind : 0);
    }
}

static int convolution(graph *g, const struct form *f, const value *of)
{
    value v = *of;
    v.op = f->as;
    settle_padding(g, &v);
    return kernel(g, &v);
}

/* ---- convolutions of plain arrays ---- */

static int64_t leading_count(const value *x)
{
    int64_t n = 1;
    for (int i = 0; i + 2 < x->rank; i++) n *= x->size[i];
    return n;
}

static int32_t plain_padding(duet_overlap part, int64_t filter)
{
    if (part == DUET_OVERLAP_FULL) return (int32_t)(filter - 1);
    return part == DUET_OVERLAP_SAME ? (int32_t)(filter / 2) : 0;
}

/* Padding on both sides, and the sizes that it gives: where the filter is even and its results are to be as many as elements, one more. */
static void place_part(value *v, const value *filters, duet_overlap part)
{
    const int axes = v->attr.conv.form == CONV_PLAIN ? v->rank : 2;
    for (int k = 0; k < axes; k++) {
        const int64_t m = filters->size[filters->rank - axes + k];
        v->attr.conv.pad[spatial_axis(k, axes)] = plain_padding(part, m);
        if (part == DUET_OVERLAP_SAME) v->size[v->rank - axes + k] += m % 2 == 0;
    }
}

/* The first elements of v along each axis, as many as `like` has. */
static int part_of(graph *g, int v, const value *like)
{
    value p = blank(OP_PART, like);
    if (!memcmp(value_at(g, v)->size, like->size, sizeof like->size[0] * like->rank)) return v;
    p.args = 1, p.arg[0] = v;
    return intern(g, &p);
}

static int plain_convolution(graph *g, const struct form *f, const value *of)
{
    value v = *of;
    const value filters = copy_of(g, v.arg[1]);
    const int64_t channels = f->form == CONV_DEEP ? leading_count(&filters) : 1;
    v.op = f->as;
    v.attr = (attributes){ { 0 } };
    for (int k = 0; k < SPATIAL_AXES; k++) v.attr.conv.stride[k] = v.attr.conv.dilation[k] = 1;
    v.attr.conv.groups = (int32_t)(channels > 1 ? channels : 1);
    v.attr.conv.flip = f->flips, v.attr.conv.form = f->form;
    place_part(&v, &filters, (duet_overlap)of->attr.overlap.part);
    for (int k = 0; k < 2 && f->form != CONV_PLAIN; k++)
        v.arg[k] = in_one(g, v.arg[k], 0, copy_of(g, v.arg[k]).rank - 2);
    return part_of(g, kernel(g, &v), of);
}

/* ---- pooling ---- */

/* An option along height and width, or along depth as if that were the height. */
static void along(const int32_t of[SPATIAL_AXES], enum pool_form form, int32_t none, int32_t to[SPATIAL_AXES])
{
    const bool depth = form == POOL_DEPTH;
    to[SPATIAL_HEIGHT] = of[depth ? SPATIAL_DEPTH : SPATIAL_HEIGHT];
    to[SPATIAL_WIDTH] = depth ? none : of[SPATIAL_WIDTH];
    to[SPATIAL_DEPTH] = none;
}

static attributes pool_along(const value *of, bool scales, enum pool_form form)
{
    attributes a = { { 0 } };
    if (scales) {
        along(of->attr.upsample.scale, form, 1, a.upsample.scale);
        a.upsample.form = form;
        return a;
    }
    along(of->attr.pool.window, form, 1, a.pool.window);
    along(of->attr.pool.stride, form, 1, a.pool.stride);
    along(of->attr.pool.pad, form, 0, a.pool.pad);
    a.pool.form = form;
    return a;
}

static int pooled(graph *g, const value *of, int as, enum pool_form form, const int64_t *size, int x, int y)
{
    const bool depth = form == POOL_DEPTH;
    value v = *of;
    v.op = (uint8_t)as, v.arg[0] = x, v.arg[1] = y;
    memcpy(v.size, size, sizeof v.size);
    v.attr = pool_along(of, as == OP_upsample2d, form);
    for (int k = 0; k < v.args; k++) v.arg[k] = depth ? in_one(g, v.arg[k], 3, 2) : in_one(g, v.arg[k], 1, 2);
    return kernel(g, &v);
}

/* With height and width as of one, and depth as of the other. */
typedef struct mixed {
    int64_t size[DUET_RANK_MAX];
} mixed;

static mixed mix(const value *plane, const value *depth)
{
    mixed m;
    memcpy(m.size, plane->size, sizeof m.size);
    m.size[2] = depth->size[2];
    return m;
}

/* Results and back from them: a gradient goes along depth to the plane that it came from, and there to its element. Of equal elements, and of NaNs, the
 * first one of the first plane is the first of all. */
static int pool_volumes(graph *g, const struct form *f, const value *of)
{
    const int x = of->arg[0], y = of->arg[1];
    const value image = copy_of(g, x), grad = copy_of(g, of->args > 1 ? y : x);
    if (f->as == OP_max_pool2d_grad) {
        const mixed m = mix(&grad, &image);
        value forward = *of;
        forward.args = 1, forward.arg[1] = -1;
        const int planes = pooled(g, &forward, OP_max_pool2d, POOL_PLANES, m.size, x, -1);
        return pooled(g, of, f->as, POOL_PLANES, of->size, x,
                      pooled(g, of, f->as, POOL_DEPTH, m.size, planes, y));
    }
    if (f->as == OP_avg_pool2d_grad) {
        const mixed m = mix(&image, of);
        return pooled(g, of, f->as, POOL_PLANES, of->size, pooled(g, of, f->as, POOL_DEPTH, m.size, x, -1),
                      -1);
    }
    const mixed m = mix(of, &image);
    return pooled(g, of, f->as, POOL_DEPTH, of->size, pooled(g, of, f->as, POOL_PLANES, m.size, x, -1), -1);
}

static int pool_signals(graph *g, const struct form *f, const value *of)
{
    value v = *of;
    v.op = f->as;
    return kernel(g, &v);
}

int make_of_images(graph *g, const value *v)
{
    const struct form *f = form_of(v->op);
    if (!f->axes) return plain_convolution(g, f, v);
    if (is_conv(f->as)) return convolution(g, f, v);
    return f->axes == 1 ? pool_signals(g, f, v) : pool_volumes(g, f, v);
}
