/* pool2d_tmpl.c - max and average pooling of n c h w images, in the order of core/fold.h: a row of outputs at a time, through its
 * windows element by element. */
#include "table.h"
#include "threads.h"
#include "walk.h"

typedef struct axis {
    int64_t in, out, window, stride, pad;
} axis;

typedef struct pooling {
    axis h, w;
    layout image;
    int64_t channels;
    const T *in;
    T *out;
    bool mean;
} pooling;

static axis axis_of(const step *s, int a)
{
    return (axis){ s->in[0].at.size[2 + a], s->out[0].at.size[2 + a], s->attr[a], s->attr[2 + a], s->attr[4 + a] };
}

/* Outputs from .. to - 1 are those whose window element v is inside of the image. */
static void inside(const axis *a, int64_t v, int64_t *from, int64_t *to)
{
    int64_t low = a->pad - v, high = a->in + a->pad - v; /* low <= j * stride < high */
    *from = low <= 0 ? 0 : (low + a->stride - 1) / a->stride;
    *to = high <= 0 ? 0 : SMALLER((high + a->stride - 1) / a->stride, a->out);
}

INLINE void take_row(T *out, const T *x, int64_t apart, int64_t n, bool mean)
{
    if (mean)
#pragma omp simd
        for (int64_t j = 0; j < n; j++) out[j] = out[j] + x[j * apart];
    else
#pragma omp simd
        for (int64_t j = 0; j < n; j++) {
            const T a = out[j], b = x[j * apart];
            out[j] = MAXIMUM(a, b);
        }
}

/* Element v of the windows of one row of outputs, from a row of the image. */
static void take_element(const pooling *p, T *out, const T *row, int64_t v)
{
    int64_t from, to;
    const int64_t apart = p->w.stride * p->image.stride[3];
    inside(&p->w, v, &from, &to);
    if (from >= to) return;
    const T *x = row + (from * p->w.stride - p->w.pad + v) * p->image.stride[3];
    if (apart == 1) take_row(out + from, x, 1, to - from, p->mean);
    else if (apart == 2) take_row(out + from, x, 2, to - from, p->mean);
    else take_row(out + from, x, apart, to - from, p->mean);
}

/* Row i of the outputs of one channel of one image. */
static void pool_row(const pooling *p, int64_t plane, int64_t i)
{
    const T *x = p->in + plane / p->channels * p->image.stride[0] + plane % p->channels * p->image.stride[1];
    T *out = p->out + (plane * p->h.out + i) * p->w.out;
    for (int64_t j = 0; j < p->w.out; j++) out[j] = p->mean ? K(0) : -INF;
    for (int64_t u = 0; u < p->h.window; u++) {
        int64_t at = i * p->h.stride - p->h.pad + u;
        if (at < 0 || at >= p->h.in) continue;
        for (int64_t v = 0; v < p->w.window; v++) take_element(p, out, x + at * p->image.stride[2], v);
    }
    const T n = (T)(p->h.window * p->w.window);
    if (p->mean)
        for (int64_t j = 0; j < p->w.out; j++) out[j] = out[j] / n;
}

duet_status NAME(run_pool2d)(const step *s, const frame *f)
{
    const int64_t count = layout_count(&s->out[0].at);
    if (count == 0) return DUET_OK;
    const pooling p = { .h = axis_of(s, 0),
                        .w = axis_of(s, 1),
                        .image = s->in[0].at,
                        .channels = s->in[0].at.size[1],
                        .in = address(f, &s->in[0]),
                        .out = address(f, &s->out[0]),
                        .mean = s->kernel == OP_avg_pool2d };
    const int64_t rows = count / p.w.out;
    const double taken = (double)count * (double)(p.h.window * p.w.window);
    int threads = threads_for(taken * (SECONDS_PER_ROUNDED + (double)sizeof(T) * SECONDS_PER_BYTE));
    if (threads > rows) threads = (int)rows;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t r = 0; r < rows; r++) pool_row(&p, r / p.h.out, r % p.h.out);
    return DUET_OK;
}
