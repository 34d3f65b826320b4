/* winograd_supported.c - which convolutions with 3 x 3 windows the kernels support, and which gradients with
 * respect to their images. */
#include "dgrad_as_conv.h"
#include "supported.h"

/* Do 32-bit indices count the blocks of 2 x 4 results, and reach the elements of one channel of an image? */
static bool conv2d_is_small(const layout *in, const layout *out)
{
    const int64_t *size = out->size, plane = INT32_MAX / 4;
    for (int a = 1; a < 4; a++)
        if (in->size[a] > plane || size[a] > plane / 2) return false;
    for (int a = 1; a < 3; a++)
        if (in->stride[a] > INT32_MAX || in->stride[a] < -INT32_MAX) return false;
    return (size[2] + 1) * (size[3] + 1) <= plane && size[0] <= INT32_MAX &&
           size[0] * (size[2] + 1) * (size[3] + 1) <= 2 * plane;
}

/* Is the pooling window 2 x 2, with stride 2 and without padding? */
static bool conv2d_is_pooled(const step *s)
{
    const pool_attributes *p = &s->attr.conv.pool;
    for (int i = 0; i < 2; i++)
        if (p->window[i] != 2 || p->stride[i] != 2 || p->pad[i] != 0) return false;
    return true;
}

bool conv_has_strides(const step *s)
{
    return s->attr.conv.stride[SPATIAL_HEIGHT] != 1 || s->attr.conv.stride[SPATIAL_WIDTH] != 1;
}

const char *conv2d_unsupported(const step *s)
{
    const char *why = float_unsupported(s);
    if (why) return why;
    const layout *in = &s->in[0].at, *filters = &s->in[1].at;
    const epilogue_info *epilogue = &epilogue_infos[s->epilogue];
    REJECT(in->type != DUET_F32, "the elements must be f32");
    REJECT(in->rank != 4, "the images must have 2 spatial axes");
    REJECT(filters->size[2] != 3 || filters->size[3] != 3, "the filters must be 3 x 3");
    REJECT(conv_has_strides(s) || !conv_is_plain(s),
           "the convolution must have no strides, dilation, groups or flipped filters");
    for (int a = 0; a < 2; a++)
        REJECT(s->attr.conv.pad[a] < 0 || s->attr.conv.pad[a] > 1, "the padding must be at most 1");
    REJECT(in->size[1] < 1 || in->size[1] > CONV_CHANNELS, "the number of channels is 0 or too large");
    REJECT(in->size[3] > 1 && in->stride[3] != 1, "the rows of the images must be contiguous");
    REJECT(s->epilogue && epilogue->act != OP_relu && epilogue->act != OP_LOAD,
           "the epilogue has a function other than relu");
    REJECT(epilogue->pooled && !conv2d_is_pooled(s), "the pooling window must be 2 x 2");
    REJECT(!conv2d_is_small(in, &s->out[0].at), "the images are too large for 32-bit indices");
    return NULL;
}

const char *input_grad_unsupported(const step *s)
{
    int64_t last;
    const char *why = float_unsupported(s);
    if (why) return why;
    REJECT(!conv_has_dgrad_as_conv(s),
           "the convolution must have no strides or groups, and less padding than its window");
    const step conv = dgrad_as_conv(s, &last);
    return conv2d_unsupported(&conv);
}
