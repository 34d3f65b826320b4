/* pool_grad_tmpl.c - gradients of max and average pooling, and upsampling, of NCHW images.
 * Template.
 *
 * For f32 and f64. Operands may have any layout, the result is dense. Sums are in the order of the
 * windows. Threads divide the planes. */
#include "cpu_kernels.h"
#include "min_max.h"
#include "template_prelude.h"
#include "threads.h"
#include <string.h>

typedef struct pool_grad_work {
    int op;
    /* images, and the gradient of the results. Operators with one operand have it in both. */
    layout in, grad;
    const T *images, *results;
    T *out;
    int64_t channels, h, w; /* size of `out` */
    int64_t planes;         /* images * channels */
    int32_t window[2], stride[2], pad[2];
} pool_grad_work;

typedef struct range {
    int64_t from, to;
} range;

/* The elements of a window inside the image. */
static range inside(const pool_grad_work *p, int axis, int64_t window)
{
    const int64_t first = window * p->stride[axis] - p->pad[axis], last = first + p->window[axis],
                  size = axis ? p->w : p->h;
    return (range){ larger(first, 0), smaller(last, size) };
}

/* Does max pooling prefer x to an earlier a? NaN is preferred to numbers. */
static bool is_greater(T x, T a) { return x > a || (x != x && a == a); }

/* The index in its plane of the element that max pooling chose. */
static int64_t index_of_max(const pool_grad_work *p, const T *plane, range h, range w)
{
    const int64_t *stride = p->in.stride;
    int64_t best = h.from * p->w + w.from;
    T most = plane[h.from * stride[2] + w.from * stride[3]];
    for (int64_t i = h.from; i < h.to; i++)
        for (int64_t j = w.from; j < w.to; j++) {
            const T x = plane[i * stride[2] + j * stride[3]];
            if (is_greater(x, most)) {
                most = x;
                best = i * p->w + j;
            }
        }
    return best;
}

static void max_pool_grad(const pool_grad_work *p, const T *plane, const T *grad, T *out)
{
    for (int64_t i = 0; i < p->grad.size[2]; i++)
        for (int64_t j = 0; j < p->grad.size[3]; j++)
            out[index_of_max(p, plane, inside(p, 0, i), inside(p, 1, j))] +=
                grad[i * p->grad.stride[2] + j * p->grad.stride[3]];
}

static void mean_pool_grad(const pool_grad_work *p, const T *grad, T *out)
{
    const T count = (T)((int64_t)p->window[0] * p->window[1]);
    for (int64_t i = 0; i < p->grad.size[2]; i++)
        for (int64_t j = 0; j < p->grad.size[3]; j++) {
            const range h = inside(p, 0, i), w = inside(p, 1, j);
            const T x = grad[i * p->grad.stride[2] + j * p->grad.stride[3]];
            for (int64_t u = h.from; u < h.to; u++)
                for (int64_t v = w.from; v < w.to; v++) out[u * p->w + v] += x;
        }
    for (int64_t i = 0; i < p->h * p->w; i++) out[i] /= count;
}

static void upsample(const pool_grad_work *p, const T *plane, T *out)
{
    const int64_t *stride = p->in.stride;
    for (int64_t i = 0; i < p->h; i++)
        for (int64_t j = 0; j < p->w; j++)
            *out++ = plane[i / p->window[0] * stride[2] + j / p->window[1] * stride[3]];
}

static void compute_plane(const pool_grad_work *p, int64_t n)
{
    const int64_t image = n / p->channels, channel = n % p->channels, *in = p->in.stride,
                  *grad = p->grad.stride;
    const T *plane = p->images + image * in[0] + channel * in[1],
            *results = p->results + image * grad[0] + channel * grad[1];
    T *out = p->out + n * p->h * p->w;
    if (p->op == OP_upsample2d) return upsample(p, plane, out);
    memset(out, 0, (size_t)(p->h * p->w) * sizeof(T));
    if (p->op == OP_max_pool2d_grad) max_pool_grad(p, plane, results, out);
    else mean_pool_grad(p, results, out);
}

static void pool_grad_part(const void *work, int t, int threads)
{
    const pool_grad_work *p = work;
    for (int64_t n = part_of(p->planes, t, threads); n < part_of(p->planes, t + 1, threads); n++)
        compute_plane(p, n);
}

duet_status TYPED(run_pool_grad)(const step *s, const frame *f)
{
    const operand *grad = &s->in[s->ins - 1];
    const int64_t *size = s->out[0].at.size;
    pool_grad_work p = { s->kernel,
                         s->in[0].at,
                         grad->at,
                         address(f, &s->in[0]),
                         address(f, grad),
                         address(f, &s->out[0]),
                         size[1],
                         size[2],
                         size[3],
                         size[0] * size[1],
                         { 0 },
                         { 0 },
                         { 0 } };
    for (int k = 0; k < 2; k++) {
        p.window[k] = s->attr.pool.window[k];
        p.stride[k] = s->attr.pool.stride[k];
        p.pad[k] = s->attr.pool.pad[k];
    }
    const double work = s->flops + (double)layout_count(&s->out[0].at);
    by_threads(threads_for(work * SECONDS_PER_ROUNDED * 4), pool_grad_part, &p);
    return DUET_OK;
}
