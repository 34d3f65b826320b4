/* pool2d.c - launches max_pool2d and avg_pool2d. */
#include "launch.h"

static pool2d_args args_of(const step *s, const frame *f)
{
    const layout *in = &s->in[0].at, *out = &s->out[0].at;
    pool2d_args a = { .in = f->data[s->in[0].slot], .out = f->data[s->out[0].slot], .count = layout_count(out) };
    for (int i = 0; i < 4; i++) a.in_stride[i] = in->stride[i];
    a.channels = divide_by64(out->size[1]), a.height = divide_by64(out->size[2]), a.width = divide_by64(out->size[3]);
    a.in_height = in->size[2], a.in_width = in->size[3];
    for (int i = 0; i < 2; i++) a.window[i] = s->attr[i], a.stride[i] = s->attr[2 + i], a.pad[i] = s->attr[4 + i];
    return a;
}

cudaError_t pool2d_launch(const step *s, const frame *f, cudaStream_t q)
{
    pool2d_args a = args_of(s, f);
    const enum form form = a.window[0] == 2 && a.window[1] == 2 ? FORM_WINDOW2 : FORM_WINDOW;
    const int64_t each = form == FORM_WINDOW2 ? POOL_THREADS * POOL_EACH : POOL_THREADS;
    const bool wide = s->out[0].at.type == DUET_F64;
    const void *kernel = (wide ? pool2d_kernel_f64 : pool2d_kernel_f32)(s->kernel, (int)form);
    return launch(kernel, (a.count + each - 1) / each, POOL_THREADS, 0, &a, q);
}
