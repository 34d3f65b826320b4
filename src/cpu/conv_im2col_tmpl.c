/* conv_im2col_tmpl.c - convolution as im2col and a matrix product by OpenBLAS. Template, for f32
 * and f64.
 *
 * The input may have any layout, the result is dense. Threads take images, or share each image if
 * there are few. */
#include "epilogue.h"
#include "im2col.h"

typedef struct im2col_conv {
    conv g;
    layout image;
    const T *in, *filters;
    T *out;
    int64_t rows, columns; /* of the matrix of one group: elements of a window, and number of windows */
} im2col_conv;

/* Convolves the windows of a block of image n, in group k. The results of image `first` are at x->out. */
static void convolve_block(const im2col_conv *x, int64_t n, int64_t first, int64_t k, window_block b,
                           T *columns, int threads)
{
    const int64_t m = x->g.m / x->g.groups;
    const T *image = x->in + n * x->image.stride[0] + k * x->g.depth * x->image.stride[1];
    by_threads(threads, im2col_part, &(im2col_work){ &x->g, x->image.stride, image, columns, b });
    BLAS(gemm)
    (CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)m, (int)b.count, (int)x->rows, 1,
     x->filters + k * m * x->rows, (int)x->rows, columns, (int)b.count, 0,
     x->out + ((n - first) * x->g.m + k * m) * x->columns + b.first, (int)x->columns);
}

/* Convolves image n. */
static void convolve_image(const im2col_conv *x, const im2col_plan *h, int64_t n, int64_t first, T *columns,
                           int threads)
{
    for (int64_t k = 0; k < x->g.groups; k++)
        for (int64_t w = 0; w < x->columns; w += h->windows)
            convolve_block(x, n, first, k, im2col_block(&x->g, h, w), columns, threads);
}

typedef struct image_work {
    const im2col_conv *x;
    const im2col_plan *h;
    int64_t first, count;
} image_work;

static void convolve_part(const void *work, int t, int threads)
{
    const image_work *w = work;
    T *columns = (T *)w->h->columns + t * w->x->rows * w->h->windows;
    for (int64_t i = part_of(w->count, t, threads); i < part_of(w->count, t + 1, threads); i++)
        convolve_image(w->x, w->h, w->first + i, w->first, columns, 1);
}

/* Convolves images first .. last - 1. Without channels all results are 0. */
static void convolve(const im2col_conv *x, const im2col_plan *h, int64_t first, int64_t last)
{
    if (x->rows == 0) memset(x->out, 0, (size_t)((last - first) * x->g.m * x->columns) * sizeof(T));
    else if (h->by_image) by_threads(h->threads, convolve_part, &(image_work){ x, h, first, last - first });
    else
        for (int64_t n = first; n < last; n++) convolve_image(x, h, n, first, h->columns, h->threads);
    cpu_blas_used();
}

/* ---- with an epilogue: some images at a time ---- */

static epilogue_steps epilogue_of(const step *s, const conv *g, int64_t images)
{
    epilogue_steps p;
    epilogue_input r = { .has_bias = false };
    layout_dense(&r.at, s->out[0].at.type, 4, (int64_t[]){ images, g->m, g->oh, g->ow });
    epilogue_make(&p, s, &r);
    return p;
}

static duet_status convolve_batches(im2col_conv *x, const im2col_plan *h, const step *s, const frame *f,
                                    int64_t images, void *buffer)
{
    const int64_t each = layout_count(&s->out[0].at) / x->g.n;
    epilogue_steps full = epilogue_of(s, &x->g, images), remainder = epilogue_of(s, &x->g, x->g.n % images);
    duet_status r = DUET_OK;
    for (int64_t first = 0; first < x->g.n && r == DUET_OK; first += images) {
        const int64_t last = SMALLER(first + images, x->g.n);
        T *out = (T *)address(f, &s->out[0]) + first * each;
        x->out = buffer ? buffer : out;
        convolve(x, h, first, last);
        r = epilogue_run(last - first == images ? &full : &remainder, s, f, x->out, out);
    }
    epilogue_free(&full);
    epilogue_free(&remainder);
    return r;
}

/* Results that are pooled go to a buffer first. */
static duet_status convolve_with_epilogue(im2col_conv *x, const im2col_plan *h, const step *s, const frame *f)
{
    int64_t images = conv_batch(&x->g, sizeof(T), omp_get_max_threads());
    if (h->by_image) images = images < h->threads ? h->threads : images - images % h->threads;
    void *buffer = NULL;
    if (epilogue_infos[s->epilogue].pooled)
        TRY(scratch_take((size_t)(images * x->g.m * x->columns) * sizeof(T), f, &buffer));
    const duet_status r = convolve_batches(x, h, s, f, images, buffer);
    scratch_give(buffer);
    return r;
}

/* ---- the step ---- */

static duet_status run_planned(im2col_conv *x, const step *s, const frame *f)
{
    im2col_plan h;
    TRY(blas_prepare());
    TRY(im2col_plan_make(&x->g, f, true, &h));
    duet_status r = DUET_OK;
    if (s->epilogue) r = convolve_with_epilogue(x, &h, s, f);
    else convolve(x, &h, 0, x->g.n);
    scratch_give(h.columns);
    return r;
}

duet_status TYPED(run_im2col)(const step *s, const frame *f)
{
    const conv g = conv_of(s);
    im2col_conv x = { .g = g,
                      .image = conv_volume(&s->in[0].at),
                      .in = address(f, &s->in[0]),
                      .out = address(f, &s->out[0]),
                      .rows = im2col_rows(&g),
                      .columns = im2col_columns(&g) };
    void *copy;
    const void *filters;
    duet_status r = conv_filters(s, f, &filters, &copy);
    x.filters = filters;
    if (r == DUET_OK) r = run_planned(&x, s, f);
    scratch_give(copy);
    return r;
}
