/* pool2d.c - launches max_pool2d and avg_pool2d. */
#include "conv_kernels.h"
#include "dtype.h"
#include "min_max.h"

static pool2d_args args_of(const step *s)
{
    const layout *in = &s->in[0].at, *out = &s->out[0].at;
    pool2d_args a = { .image = in->stride[0],
                      .plane = in->stride[1],
                      .row = (int32_t)in->stride[2],
                      .column = (int32_t)in->stride[3] };
    a.height = divide_by32(out->size[2]);
    a.width = divide_by32(out->size[3]);
    a.in_height = (int32_t)in->size[2];
    a.in_width = (int32_t)in->size[3];
    const pool_attributes *p = &s->attr.pool;
    for (int i = 0; i < 2; i++) {
        a.window[i] = p->window[i];
        a.stride[i] = p->stride[i];
        a.pad[i] = p->pad[i];
    }
    return a;
}

/* Pools `channels` planes of each of `images` images. */
static cudaError_t run(const step *s, pool2d_args *a, int64_t images, int64_t channels, cudaStream_t q)
{
    const enum form form = a->window[0] == 2 && a->window[1] == 2 ? FORM_WINDOW2 : FORM_WINDOW;
    const int64_t each = form == FORM_WINDOW2 ? POOL_THREADS * POOL_EACH : POOL_THREADS;
    const bool wide = s->out[0].at.type == DUET_F64;
    const void *kernel = (wide ? pool2d_kernel_f64 : pool2d_kernel_f32)(s->kernel, (int)form);
    a->count = (uint32_t)(images * channels) * a->height.by * a->width.by;
    a->channels = divide_by32(channels);
    return launch(kernel, (a->count + each - 1) / each, POOL_THREADS, 0, a, q);
}

/* Each launch pools as many complete images as 32-bit indices can count. If one image has too many
 * elements, each launch pools some of its planes. */
cudaError_t pool2d_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    const layout *in = &s->in[0].at, *out = &s->out[0].at;
    const int64_t n = out->size[0], c = out->size[1], size = dtypes[out->type].bytes,
                  plane = out->size[2] * out->size[3];
    const int64_t planes = plane ? INT32_MAX / 2 / plane : 0, images = c && c <= planes ? planes / c : 1;
    pool2d_args a = args_of(s);
    cudaError_t e = cudaSuccess;
    if (layout_count(out) == 0) return e;
    for (int64_t i = 0; i < n && e == cudaSuccess; i += images)
        for (int64_t j = 0; j < c && e == cudaSuccess; j += planes) {
            a.in = (const char *)f->data[s->in[0].slot] + (i * in->stride[0] + j * in->stride[1]) * size;
            a.out = (char *)f->data[s->out[0].slot] + (i * c + j) * plane * size;
            e = run(s, &a, smaller(n - i, images), smaller(c - j, planes), q);
        }
    return e;
}
