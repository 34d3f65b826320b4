/* pool_supported.c - which steps of pooling, of its gradients and of upsampling the kernels support. */
#include "supported.h"
#include <stdlib.h>

/* Do 32-bit indices reach all elements of a plane? */
static bool planes_fit(const step *s)
{
    const layout *in = &s->in[0].at, *out = &s->out[0].at;
    layout plane = { .rank = 2 };
    int64_t low, high;
    for (int a = 0; a < 2; a++) {
        plane.size[a] = in->size[2 + a];
        plane.stride[a] = in->stride[2 + a];
    }
    layout_span(&plane, &low, &high);
    for (int a = 2; a < 4; a++)
        if (in->size[a] > INT32_MAX / 4 || llabs(in->stride[a]) > INT32_MAX || out->size[a] > INT32_MAX / 4)
            return false;
    return low > -INT32_MAX && high < INT32_MAX && out->size[2] * out->size[3] <= INT32_MAX / 2;
}

/* Do 32-bit indices suffice for an axis with windows that begin before it or end after it? */
static bool axes_fit(const step *s)
{
    for (int a = 0; a < 2; a++)
        if (s->out[0].at.size[2 + a] >= 1 << 29 || s->in[0].at.size[2 + a] >= 1 << 29 ||
            s->attr.pool.window[a] >= 1 << 29)
            return false;
    return true;
}

const char *pool2d_unsupported(const step *s)
{
    const char *why = float_unsupported(s);
    if (why) return why;
    return planes_fit(s) ? NULL : "the planes of an image must have less than 2^31 elements";
}

const char *pool_grad_unsupported(const step *s)
{
    const char *why = float_unsupported(s);
    if (why) return why;
    return axes_fit(s) ? NULL : "the sizes of images and windows must be below 2^29";
}
