/* conv_im2col_tmpl.c - convolution as a product: each window of the image becomes a column. */
#include "blas.h"
#include "conv.h"
#include "threads.h"
#include "walk.h"
#include "window.h"

typedef struct unrolled {
    conv g;
    layout image;
    const T *in, *filters;
    T *out;
    int64_t rows, columns; /* of the unrolled image: elements of a window, and windows */
} unrolled;

/* Element (c, u, v) of all windows of an image; 0 outside of it. */
static void row_of_windows(const unrolled *x, const T *image, int64_t row, T *to)
{
    const conv *g = &x->g;
    const int64_t v = row % g->kw, u = row / g->kw % g->kh, *stride = x->image.stride;
    const T *plane = image + row / (g->kw * g->kh) * stride[1] + (v - g->pad[1]) * stride[3];
    int64_t first, last;
    windows_inside(g->w, g->ow, g->stride[1], g->pad[1], v, &first, &last);
    for (int64_t i = 0; i < g->oh; i++, to += g->ow) {
        const int64_t y = i * g->stride[0] - g->pad[0] + u;
        const bool outside = y < 0 || y >= g->h;
        memset(to, 0, (size_t)(outside ? g->ow : first) * sizeof(T));
        if (outside) continue;
        const int64_t apart = g->stride[1] * stride[3];
        row_in(to + first, plane + y * stride[2] + first * apart, apart, last - first);
        memset(to + last, 0, (size_t)(g->ow - last) * sizeof(T));
    }
}

static void convolve_image(const unrolled *x, int64_t n, T *columns, int threads)
{
    const T *image = x->in + n * x->image.stride[0];
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t r = 0; r < x->rows; r++) row_of_windows(x, image, r, columns + r * x->columns);
    BLAS(gemm)
    (CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)x->g.m, (int)x->columns, (int)x->rows, 1, x->filters, (int)x->rows, columns,
     (int)x->columns, 0, x->out + n * x->g.m * x->columns, (int)x->columns);
}

/* Threads take images where there are enough, and share each one where there are not. */
static duet_status convolve(const unrolled *x, const frame *f)
{
    const int64_t each = x->rows * x->columns;
    int threads = cpu_blas_apart ? 1 : threads_for((double)(x->g.n * x->g.m) * (double)each * 2 * SECONDS_PER_FLOP);
    const bool by_image = x->g.n >= threads;
    size_t bytes;
    void *columns;
    if (__builtin_mul_overflow((size_t)each, sizeof(T) * (size_t)(by_image ? threads : 1), &bytes))
        return fail(DUET_NO_MEMORY, "duet_conv2d: no memory for windows of %lld numbers an image", (long long)each);
    TRY(scratch_take(bytes, f, &columns));
    if (by_image) {
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
        for (int64_t n = 0; n < x->g.n; n++) convolve_image(x, n, (T *)columns + omp_get_thread_num() * each, 1);
    } else {
        for (int64_t n = 0; n < x->g.n; n++) convolve_image(x, n, columns, threads);
    }
    scratch_give(columns);
    cpu_blas_used();
    return DUET_OK;
}

duet_status TYPED(run_im2col)(const step *s, const frame *f)
{
    const conv g = conv_of(s);
    unrolled x = { .g = g,
                   .image = s->in[0].at,
                   .in = address(f, &s->in[0]),
                   .out = address(f, &s->out[0]),
                   .rows = g.c * g.kh * g.kw,
                   .columns = g.oh * g.ow };
    void *copy;
    const void *filters;
    if (x.rows == 0) {
        memset(x.out, 0, (size_t)layout_count(&s->out[0].at) * sizeof(T));
        return DUET_OK;
    }
    duet_status r = conv_filters(s, f, &filters, &copy);
    x.filters = filters;
    if (r == DUET_OK) r = convolve(&x, f);
    scratch_give(copy);
    return r;
}
