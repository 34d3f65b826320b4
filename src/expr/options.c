/* options.c - the options of convolutions, pooling and scaling, of images, signals and volumes alike: checked, with their defaults, and as attributes. */
#include "shape_rules.h"
#include "status.h"

static int64_t or_one(int32_t x) { return x ? x : 1; }

/* Options along one axis, two or three: "{1, 2}", of one axis "1". */
static const char *axes_text(char text[64], const int32_t *attr, int axes)
{
    const char *how = axes == 1 ? "%d" : axes == 2 ? "{%d, %d}" : "{%d, %d, %d}";
    snprintf(text, 64, how, attr[0], axes > 1 ? attr[1] : 0, axes > 2 ? attr[2] : 0);
    return text;
}

static duet_status read_conv(enum op op, const int32_t *attr, int axes, steps *o)
{
    char stride[64], pad[64], dilation[64];
    for (int k = 0; k <= 3 * axes; k++)
        if (attr[k] < 0)
            return fail(DUET_BAD_ARGUMENT,
                        "duet_%s: stride %s, pad %s, dilation %s, groups %d must not be negative",
                        op_infos[op].name, axes_text(stride, attr, axes), axes_text(pad, attr + axes, axes),
                        axes_text(dilation, attr + 2 * axes, axes), attr[3 * axes]);
    for (int k = 0; k < axes; k++) {
        o->stride[k] = or_one(attr[k]), o->pad[k] = attr[axes + k];
        o->dilation[k] = or_one(attr[2 * axes + k]);
    }
    return o->groups = or_one(attr[3 * axes]), DUET_OK;
}

/* A number for each axis that is not negative: padding at the ends; or the size of what is computed, or what it has more than the least. */
static duet_status read_each(enum op op, const char *name, const int32_t *attr, int axes, int64_t *to)
{
    char text[64];
    for (int k = 0; k < axes; k++)
        if ((to[k] = attr[k]) < 0)
            return fail(DUET_BAD_ARGUMENT, "duet_%s: %s %s must not be negative", op_infos[op].name, name,
                        axes_text(text, attr, axes));
    return DUET_OK;
}

static duet_status read_pool(enum op op, const int32_t *attr, int axes, steps *o)
{
    char window[64], stride[64], pad[64];
    for (int k = 0; k < axes; k++) {
        o->dilation[k] = 1, o->window[k] = attr[k], o->pad[k] = attr[2 * axes + k];
        o->stride[k] = attr[axes + k] ? attr[axes + k] : attr[k];
        if (o->window[k] < 1 || o->stride[k] < 1 || o->pad[k] < 0 || o->pad[k] >= o->window[k])
            return fail(DUET_BAD_ARGUMENT,
                        "duet_%s: window %s, stride %s, pad %s needs 0 <= pad < window, stride >= 0",
                        op_infos[op].name, axes_text(window, attr, axes),
                        axes_text(stride, attr + axes, axes), axes_text(pad, attr + 2 * axes, axes));
    }
    return DUET_OK;
}

static duet_status read_scale(enum op op, const int32_t *attr, int axes, steps *o)
{
    char text[64];
    for (int k = 0; k < axes; k++)
        if ((o->window[k] = or_one(attr[k])) < 0)
            return fail(DUET_BAD_ARGUMENT, "duet_%s: scale %s must not be negative", op_infos[op].name,
                        axes_text(text, attr, axes));
    return DUET_OK;
}

static void write_axes(node *out, int from, const int64_t *x, int axes)
{
    for (int k = 0; k < axes; k++) out->attr.word[from + k] = (int32_t)x[k];
}

static void write_conv(const steps *o, int axes, bool sized, node *out)
{
    write_axes(out, 0, o->stride, axes), write_axes(out, axes, o->pad, axes),
        write_axes(out, 2 * axes, o->dilation, axes);
    write_axes(out, 3 * axes, &o->groups, 1);
    if (sized) write_axes(out, 3 * axes + 1, o->size, axes);
    write_axes(out, (sized ? 4 : 3) * axes + 1, o->more, axes);
}

static void write_pool(const steps *o, int axes, bool sized, node *out)
{
    write_axes(out, 0, o->window, axes), write_axes(out, axes, o->stride, axes),
        write_axes(out, 2 * axes, o->pad, axes);
    if (sized) write_axes(out, 3 * axes, o->size, axes);
}

/* `behind` options stand behind the size. */
#define OPTIONS_OF(kind, read, axes, sized, behind)                                                          \
    duet_status options_##kind(enum op op, const node *x, const int32_t *attr, steps *o)                     \
    {                                                                                                        \
        (void)x;                                                                                             \
        TRY(read(op, attr, axes, o));                                                                        \
        if (behind) TRY(read_each(op, "more", attr + OPTIONS_##kind - (behind), axes, o->more));             \
        return (sized) ? read_each(op, "size", attr + OPTIONS_##kind - (behind) - (axes), axes, o->size)     \
                       : DUET_OK;                                                                            \
    }
#define CONV_OF(kind, axes, sized)                                                                           \
    OPTIONS_OF(kind, read_conv, axes, sized, axes)                                                           \
    void attrs_##kind(const steps *o, node *out) { write_conv(o, axes, sized, out); }
#define POOL_OF(kind, axes, sized)                                                                           \
    OPTIONS_OF(kind, read_pool, axes, sized, 0)                                                              \
    void attrs_##kind(const steps *o, node *out) { write_pool(o, axes, sized, out); }
#define SCALE_OF(kind, axes)                                                                                 \
    OPTIONS_OF(kind, read_scale, axes, false, 0)                                                             \
    void attrs_##kind(const steps *o, node *out) { write_axes(out, 0, o->window, axes); }
#define OF_AXES(n, axes)                                                                                     \
    CONV_OF(conv##n, axes, false)                                                                            \
    CONV_OF(conv##n##_grad, axes, true)                                                                      \
    CONV_OF(conv##n##_transposed, axes, true)                                                                \
    POOL_OF(pool##n, axes, false)                                                                            \
    POOL_OF(pool##n##_grad, axes, true)                                                                      \
    SCALE_OF(scale##n, axes)
OF_AXES(1, 1)
OF_AXES(, 2)
OF_AXES(3, 3)
