/* conv.c - convolutions and their gradients, by oneDNN, or by im2col and OpenBLAS where oneDNN
 * declines.
 *
 * A step may include an epilogue (epilogue.h): bias, activation, pooling. */
#include "conv.h"
#include "dtype.h"
#include <string.h>

size_t im2col_most_bytes = (size_t)256 << 20;

static duet_status run_by_im2col(const step *s, const frame *f)
{
    static run_function *const runs[][2] = { { run_im2col_f32, run_im2col_f64 },
                                             { run_input_grad_f32, run_input_grad_f64 },
                                             { run_filter_grad_f32, run_filter_grad_f64 } };
    const int gradient = s->kernel == OP_conv2d_input_grad ? 1 : 2;
    return runs[is_conv_grad(s->kernel) ? gradient : 0][s->out[0].at.type == DUET_F64](s, f);
}

/* Is every element of a gradient a sum of no products? */
static bool is_empty_sum(const step *s)
{
    return is_conv_grad(s->kernel) && (!layout_count(&s->in[0].at) || !layout_count(&s->in[1].at));
}

duet_status run_conv(const step *s, const frame *f)
{
    bool done = false;
    const layout *out = &s->out[0].at;
    if (layout_count(out) == 0) return DUET_OK;
    if (is_empty_sum(s)) {
        memset(address(f, &s->out[0]), 0, (size_t)layout_count(out) * dtypes[out->type].bytes);
        return DUET_OK;
    }
    TRY(s->epilogue ? onednn_conv_fused(s, f, &done) : onednn_conv(s, f, &done));
    if (done) return DUET_OK;
    return run_by_im2col(s, f);
}
