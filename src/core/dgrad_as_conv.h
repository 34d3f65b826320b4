/* dgrad_as_conv.h - computes the gradient of a convolution with respect to its images as a
 * convolution: of the gradient with the filters rotated by 180 degrees, and with input and output
 * channels exchanged. This needs strides of 1. The padding becomes the window size - 1 - padding. */
#ifndef DGRAD_AS_CONV_H
#define DGRAD_AS_CONV_H

#include "backend.h"
#include <string.h>

/* One spatial axis. The last two are height and width. */
typedef struct turned_axis {
    int32_t stride, reach, pad; /* reach: distance between the first and the last element of a window */
} turned_axis;

static inline turned_axis turned_axis_of(const step *s, int axis)
{
    const layout *w = &conv_operands_of(s).w->at;
    const int a = spatial_axis(axis, w->rank - 2);
    const conv_attributes *conv = &s->attr.conv;
    return (turned_axis){ conv->stride[a], (int32_t)(w->size[2 + axis] - 1) * conv->dilation[a],
                          conv->pad[a] };
}

/* Is it possible: strides of 1, no groups, and no negative padding? */
static inline bool conv_has_dgrad_as_conv(const step *s)
{
    if (s->kernel != OP_conv2d_input_grad || s->attr.conv.groups != 1 || conv_is_unequal(s)) return false;
    for (int axis = 0; axis < s->in[1].at.rank - 2; axis++) {
        const turned_axis a = turned_axis_of(s, axis);
        if (a.stride != 1 || a.pad > a.reach) return false;
    }
    return true;
}

/* Returns that convolution. Its filters begin *last elements after those of s, with negative strides. */
static inline step dgrad_as_conv(const step *s, int64_t *last)
{
    step t = *s;
    layout *w = &t.in[1].at;
    t.kernel = OP_conv2d;
    t.choice = 0;
    t.cached = NULL;
    *last = 0;
    for (int i = 0; i < 2; i++) {
        w->size[i] = s->in[1].at.size[1 - i];
        w->stride[i] = s->in[1].at.stride[1 - i];
    }
    for (int axis = 0; axis < w->rank - 2; axis++) {
        const turned_axis a = turned_axis_of(s, axis);
        *last += (w->size[2 + axis] - 1) * w->stride[2 + axis];
        w->stride[2 + axis] *= -1;
        t.attr.conv.pad[spatial_axis(axis, w->rank - 2)] = a.reach - a.pad;
    }
    return t;
}

#endif
