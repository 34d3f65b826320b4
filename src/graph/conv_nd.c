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

/* Where the attributes of an axis are, counted from the last: stride, pad, dilation, more. */
static const uint8_t places[][4] = {
    { CONV_STRIDE + 1, CONV_PAD + 1, CONV_DILATION + 1, CONV_MORE + 1 },
    { CONV_STRIDE, CONV_PAD, CONV_DILATION, CONV_MORE },
    { CONV_DEPTH, CONV_DEPTH + 1, CONV_DEPTH + 2, CONV_DEPTH + 3 },
};

void settle_padding(const graph *g, value *v)
{
    const value *a = value_at(g, v->arg[0]), *b = value_at(g, v->arg[1]);
    const value *x = v->op == OP_conv2d_input_grad ? v : a, *w = v->op == OP_conv2d_filter_grad ? v : b;
    const value *y = v->op == OP_conv2d_input_grad ? a : v->op == OP_conv2d_filter_grad ? b : v;
    for (int k = 0; k < v->rank - 2; k++) {
        const int axis = v->rank - 1 - k;
        int32_t *const at = v->attr, *more = &at[places[k][3]];
        const int64_t reach = (w->size[axis] - 1) * at[places[k][2]] + 1,
                      read = (y->size[axis] - 1) * at[places[k][0]] + reach;
        const int64_t behind = read - x->size[axis] - 2 * at[places[k][1]];
        if (*more) *more = (int32_t)(behind > 0 ? behind : 0);
    }
}

/* Options of one axis or three, where machines look for those of two and of depth. */
static void place_options(value *v, const int32_t *of, const int32_t *more, int axes)
{
    memset(v->attr, 0, sizeof v->attr);
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < 3; i++) v->attr[places[k][i]] = k < axes ? of[i * axes + axes - 1 - k] : i != 1;
        v->attr[places[k][3]] = k < axes ? more[axes - 1 - k] : 0;
    }
    v->attr[CONV_GROUPS] = of[3 * axes];
}

static int convolution(graph *g, const struct form *f, const value *of)
{
    value v = *of;
    v.op = f->as;
    place_options(&v, of->attr, of->attr + 1 + (is_conv_grad(f->as) ? 4 : 3) * f->axes, f->axes);
    settle_padding(g, &v);
    v.attr[CONV_FLIP] = f->flips;
    return kernel(g, &v);
}

/* ---- convolutions of plain arrays ---- */

static int64_t leading_count(const value *x)
{
    int64_t n = 1;
    for (int i = 0; i + 2 < x->rank; i++) n *= x->size[i];
    return n;
}

/* Padding on both sides, and the sizes that it gives: where the filter is even and its results are to be as many as elements, one more. */
static void place_part(value *v, const value *filters, int32_t part)
{
    for (int k = 0; k < (v->attr[CONV_FORM] == CONV_PLAIN ? v->rank : 2); k++) {
        const int64_t m = filters->size[filters->rank - 1 - k];
        v->attr[places[k][1]] = (int32_t)(part == DUET_OVERLAP_FULL   ? m - 1
                                          : part == DUET_OVERLAP_SAME ? m / 2
                                                                      : 0);
        if (part == DUET_OVERLAP_SAME) v->size[v->rank - 1 - k] += m % 2 == 0;
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
    place_options(&v, (const int32_t[]){ 1, 0, 1, (int32_t)(channels > 1 ? channels : 1) },
                  (const int32_t[]){ 0 }, 1);
    v.attr[CONV_FLIP] = f->flips, v.attr[CONV_FORM] = f->form;
    place_part(&v, &filters, of->attr[0]);
    for (int k = 0; k < 2 && f->form != CONV_PLAIN; k++)
        v.arg[k] = in_one(g, v.arg[k], 0, copy_of(g, v.arg[k]).rank - 2);
    return part_of(g, kernel(g, &v), of);
}

/* ---- pooling ---- */

/* Along height and width, whose options are the last two, or along depth. */
static int pooled(graph *g, const value *of, int as, enum pool_form form, const int64_t *size, int x, int y)
{
    const bool scales = as == OP_upsample2d, depth = form == POOL_DEPTH;
    value v = *of;
    v.op = (uint8_t)as, v.arg[0] = x, v.arg[1] = y;
    memcpy(v.size, size, sizeof v.size), memset(v.attr, 0, sizeof v.attr);
    for (int k = 0; k < (scales ? 1 : 3); k++) {
        const int32_t *a = of->attr + 3 * k;
        v.attr[2 * k] = depth ? a[0] : a[1], v.attr[2 * k + 1] = depth ? k < 2 : a[2];
    }
    v.attr[POOL_FORM] = form;
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
    memset(v.attr, 0, sizeof v.attr);
    for (int k = 0; k < (f->as == OP_upsample2d ? 1 : 3); k++)
        v.attr[2 * k] = k < 2, v.attr[2 * k + 1] = of->attr[k];
    return kernel(g, &v);
}

int make_of_images(graph *g, const value *v)
{
    const struct form *f = form_of(v->op);
    if (!f->axes) return plain_convolution(g, f, v);
    if (is_conv(f->as)) return convolution(g, f, v);
    return f->axes == 1 ? pool_signals(g, f, v) : pool_volumes(g, f, v);
}
