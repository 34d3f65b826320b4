/* options.c - the options of convolutions, pooling and scaling, for signals, images and volumes: it
 * checks them, fills in their defaults, and writes them as attributes of a node. */
#include "shape_rules.h"
#include "status.h"

duet_status no_such_axis(const node *x, int axis)
{
    return fail(DUET_BAD_SHAPE, "axis %d does not exist; x has %d %s", axis, x->rank, axes_word(x->rank));
}

static int64_t or_one(int32_t x) { return x ? x : 1; }

/* Writes the options of several axes in the user's notation: "{1, 2}", or "1" for one axis. */
static const char *axes_text(char text[64], const int32_t *x, int axes)
{
    int n = snprintf(text, 64, axes > 1 ? "{%d" : "%d", *x);
    for (int k = 1; k < axes; k++) n += snprintf(text + n, 64 - (size_t)n, ", %d", x[k]);
    if (axes > 1) snprintf(text + n, 64 - (size_t)n, "}");
    return text;
}

static duet_status bad_option(const char *name, const int32_t *x, int axes, const char *rule)
{
    char text[64];
    return fail(DUET_BAD_ARGUMENT, "%s (%s) %s", name, axes_text(text, x, axes), rule);
}

static duet_status not_negative(const char *name, const int32_t *x, int axes)
{
    for (int k = 0; k < axes; k++)
        if (x[k] < 0) return bad_option(name, x, axes, "must not be negative");
    return DUET_OK;
}

static duet_status read_conv(const int32_t *attr, int axes, op_options *o)
{
    const int32_t *stride = attr, *pad = stride + axes, *dilation = pad + axes, *groups = dilation + axes;
    TRY(not_negative("stride", stride, axes));
    TRY(not_negative("pad", pad, axes));
    TRY(not_negative("dilation", dilation, axes));
    TRY(not_negative("groups", groups, 1));
    for (int k = 0; k < axes; k++) {
        o->stride[k] = or_one(stride[k]);
        o->pad[k] = pad[k];
        o->dilation[k] = or_one(dilation[k]);
    }
    o->groups = or_one(*groups);
    return DUET_OK;
}

/* Reads a number for each axis: padding at the end, a size, or a size less the smallest possible one. */
static duet_status read_each(const char *name, const int32_t *attr, int axes, int64_t *to)
{
    TRY(not_negative(name, attr, axes));
    for (int k = 0; k < axes; k++) to[k] = attr[k];
    return DUET_OK;
}

static duet_status read_pool(const int32_t *attr, int axes, op_options *o)
{
    const int32_t *window = attr, *stride = attr + axes, *pad = attr + 2 * axes;
    for (int k = 0; k < axes; k++)
        if (window[k] < 1) return bad_option("window", window, axes, "must be positive");
    TRY(not_negative("stride", stride, axes));
    TRY(not_negative("pad", pad, axes));
    for (int k = 0; k < axes; k++) {
        if (pad[k] >= window[k]) return bad_option("pad", pad, axes, "must be less than the window");
        o->dilation[k] = 1;
        o->window[k] = window[k];
        o->pad[k] = pad[k];
        o->stride[k] = stride[k] ? stride[k] : window[k];
    }
    return DUET_OK;
}

static duet_status read_scale(const int32_t *attr, int axes, op_options *o)
{
    TRY(not_negative("scale", attr, axes));
    for (int k = 0; k < axes; k++) o->window[k] = or_one(attr[k]);
    return DUET_OK;
}

static void write_axes(node *out, int from, const int64_t *x, int axes)
{
    for (int k = 0; k < axes; k++) out->attr.word[from + k] = (int32_t)x[k];
}

static void write_conv(const op_options *o, int axes, bool sized, node *out)
{
    write_axes(out, 0, o->stride, axes);
    write_axes(out, axes, o->pad, axes);
    write_axes(out, 2 * axes, o->dilation, axes);
    write_axes(out, 3 * axes, &o->groups, 1);
    if (sized) write_axes(out, 3 * axes + 1, o->size, axes);
    write_axes(out, (sized ? 4 : 3) * axes + 1, o->more, axes);
}

static void write_pool(const op_options *o, int axes, bool sized, node *out)
{
    write_axes(out, 0, o->window, axes);
    write_axes(out, axes, o->stride, axes);
    write_axes(out, 2 * axes, o->pad, axes);
    if (sized) write_axes(out, 3 * axes, o->size, axes);
}

/* After the options that `read` reads, there may be a size, and then `more`. sized: the name of the
 * size, or NULL if there is none. */
#define OPTIONS_OF(kind, read, axes, sized, more_axes)                                                       \
    duet_status options_##kind(enum op op, const node *x, const int32_t *attr, op_options *o)                \
    {                                                                                                        \
        const int32_t *more = attr + OPTIONS_##kind - (more_axes);                                           \
        TRY(read(attr, axes, o));                                                                            \
        TRY(read_each("more", more, more_axes, o->more));                                                    \
        return (sized) ? read_each(sized, more - (axes), axes, o->size) : DUET_OK;                           \
    }
#define CONV_OF(kind, axes, sized)                                                                           \
    OPTIONS_OF(kind, read_conv, axes, sized, axes)                                                           \
    void attrs_##kind(const op_options *o, node *out) { write_conv(o, axes, (sized) != NULL, out); }
#define POOL_OF(kind, axes, sized)                                                                           \
    OPTIONS_OF(kind, read_pool, axes, sized, 0)                                                              \
    void attrs_##kind(const op_options *o, node *out) { write_pool(o, axes, (sized) != NULL, out); }
#define SCALE_OF(kind, axes)                                                                                 \
    OPTIONS_OF(kind, read_scale, axes, NULL, 0)                                                              \
    void attrs_##kind(const op_options *o, node *out) { write_axes(out, 0, o->window, axes); }
#define OF_AXES(n, axes)                                                                                     \
    CONV_OF(conv##n, axes, NULL)                                                                             \
    CONV_OF(conv##n##_grad, axes, "size")                                                                    \
    CONV_OF(conv##n##_transposed, axes, "output_pad")                                                        \
    POOL_OF(pool##n, axes, NULL)                                                                             \
    POOL_OF(pool##n##_grad, axes, "size")                                                                    \
    SCALE_OF(scale##n, axes)
OF_AXES(1, 1)
OF_AXES(, 2)
OF_AXES(3, 3)
