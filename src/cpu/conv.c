/* conv.c - convolution: oneDNN where it takes the step, else im2col and OpenBLAS. Alone, with all that follows it, or back. */
#include "conv.h"
#include "dtype.h"
#include <string.h>

#define CACHED_BYTES 262144.0 /* of results, in a thread's own cache until they are finished */

/* How many there are along an axis. */
static int64_t windows(const step *s, int64_t in, int64_t window, int axis)
{
    const int32_t *a = s->attr + axis;
    return (in + 2 * (int64_t)a[CONV_PAD] - (window - 1) * a[CONV_DILATION] - 1) / a[CONV_STRIDE] + 1;
}

conv conv_of(const step *s)
{
    const int32_t *a = s->attr;
    const conv_operands o = conv_operands_of(s);
    const int64_t *x = o.x->at.size, *w = o.w->at.size;
    return (conv){ .n = x[0],
                   .c = x[1],
                   .h = x[2],
                   .w = x[3],
                   .m = w[0],
                   .depth = w[1],
                   .kh = w[2],
                   .kw = w[3],
                   .oh = windows(s, x[2], w[2], 0),
                   .ow = windows(s, x[3], w[3], 1),
                   .stride = { a[CONV_STRIDE], a[CONV_STRIDE + 1] },
                   .pad = { a[CONV_PAD], a[CONV_PAD + 1] },
                   .dilation = { a[CONV_DILATION], a[CONV_DILATION + 1] },
                   .groups = a[CONV_GROUPS],
                   .flip = a[CONV_FLIP] != 0 };
}

/* The last element of each filter becomes its first. */
static const char *turn(layout *l, const char *p)
{
    for (int a = 2; a < 4; a++) {
        p += (l->size[a] - 1) * l->stride[a] * (int64_t)dtypes[l->type].bytes;
        l->stride[a] = -l->stride[a];
    }
    return p;
}

duet_status conv_filters(const step *s, const frame *f, const void **p, void **copy)
{
    layout l = s->in[1].at, dense;
    const char *from = address(f, &s->in[1]);
    *p = from, *copy = NULL;
    if (s->attr[CONV_FLIP] == 0 && layout_is_dense(&l)) return DUET_OK;
    if (s->attr[CONV_FLIP] != 0) from = turn(&l, from);
    layout_dense(&dense, l.type, 4, l.size);
    TRY(scratch_take((size_t)layout_count(&l) * dtypes[l.type].bytes, f, copy));
    *p = *copy;
    return copy_elements(*copy, &dense, from, &l);
}

int64_t conv_images_at_once(const conv *g, size_t element, int threads)
{
    const double each = (double)g->m * (double)g->oh * (double)g->ow * (double)element, fit = CACHED_BYTES * threads / each;
    const int64_t images = fit < (double)g->n ? (int64_t)fit : g->n;
    return images > 1 ? images : 1;
}

static duet_status im2col(const step *s, const frame *f)
{
    static run_function *const runs[][2] = { { run_im2col_f32, run_im2col_f64 },
                                             { run_input_grad_f32, run_input_grad_f64 },
                                             { run_filter_grad_f32, run_filter_grad_f64 } };
    const int which = s->kernel == OP_conv2d_input_grad ? 1 : s->kernel == OP_conv2d_filter_grad ? 2 : 0;
    return runs[which][s->out[0].at.type == DUET_F64](s, f);
}

/* Sums of nothing, or of padding alone. */
static bool is_nothing(const step *s)
{
    return is_conv_grad(s->kernel) && (!layout_count(&s->in[0].at) || !layout_count(&s->in[1].at));
}

duet_status run_conv(const step *s, const frame *f)
{
    bool done = false;
    const layout *out = &s->out[0].at;
    if (layout_count(out) == 0) return DUET_OK;
    if (is_nothing(s)) return memset(address(f, &s->out[0]), 0, (size_t)layout_count(out) * dtypes[out->type].bytes), DUET_OK;
    TRY(s->finish ? onednn_finished(s, f, &done) : onednn_conv(s, f, &done));
    return done ? DUET_OK : im2col(s, f);
}
