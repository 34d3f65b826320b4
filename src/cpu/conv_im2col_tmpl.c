/* conv_im2col_tmpl.c - convolution as a product: each window of the image becomes a column. */
#include "epilogue.h"
#include "im2col.h"

typedef struct unrolled {
    conv g;
    layout image;
    const T *in, *filters;
    T *out;
    int64_t rows, columns; /* of one group of the unrolled image: elements of a window, and windows */
} unrolled;

/* Image n; the results of image `first` are at x->out. */
static void convolve_image(const unrolled *x, int64_t n, int64_t first, T *columns, int threads)
{
    const int64_t m = x->g.m / x->g.groups;
    for (int64_t k = 0; k < x->g.groups; k++) {
        const T *image = x->in + n * x->image.stride[0] + k * x->g.depth * x->image.stride[1];
        by_threads(threads, unroll_some, &(unrolling){ &x->g, x->image.stride, image, columns });
        BLAS(gemm)
        (CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)m, (int)x->columns, (int)x->rows, 1,
         x->filters + k * m * x->rows, (int)x->rows, columns, (int)x->columns, 0,
         x->out + ((n - first) * x->g.m + k * m) * x->columns, (int)x->columns);
    }
}

typedef struct image_work {
    const unrolled *x;
    T *columns; /* each thread's, one after the other */
    int64_t first, count;
} image_work;

static void convolve_each(const void *work, int t, int threads)
{
    const image_work *w = work;
    T *columns = w->columns + t * w->x->rows * w->x->columns;
    for (int64_t i = part_of(w->count, t, threads); i < part_of(w->count, t + 1, threads); i++)
        convolve_image(w->x, w->first + i, w->first, columns, 1);
}

/* Images first .. last - 1. Without channels or windows all results are sums of nothing. */
static void convolve(const unrolled *x, const sharing *h, int64_t first, int64_t last)
{
    if (x->rows == 0) memset(x->out, 0, (size_t)((last - first) * x->g.m * x->columns) * sizeof(T));
    else if (h->by_image)
        by_threads(h->threads, convolve_each, &(image_work){ x, h->columns, first, last - first });
    else
        for (int64_t n = first; n < last; n++) convolve_image(x, n, first, h->columns, h->threads);
    cpu_blas_used();
}

/* ---- finished: some images at a time ---- */

static finishing finishing_of(const step *s, const conv *g, int64_t images)
{
    finishing p;
    results r = { .biased = false };
    layout_dense(&r.at, s->out[0].at.type, 4, (int64_t[]){ images, g->m, g->oh, g->ow });
    finishing_make(&p, s, &r);
    return p;
}

static duet_status convolve_some(unrolled *x, const sharing *h, const step *s, const frame *f, int64_t images,
                                 void *room)
{
    const int64_t each = layout_count(&s->out[0].at) / x->g.n;
    finishing whole = finishing_of(s, &x->g, images), rest = finishing_of(s, &x->g, x->g.n % images);
    duet_status r = DUET_OK;
    for (int64_t first = 0; first < x->g.n && r == DUET_OK; first += images) {
        const int64_t last = SMALLER(first + images, x->g.n);
        T *out = (T *)address(f, &s->out[0]) + first * each;
        x->out = room ? room : out;
        convolve(x, h, first, last);
        r = finishing_run(last - first == images ? &whole : &rest, s, f, x->out, out);
    }
    finishing_free(&whole), finishing_free(&rest);
    return r;
}

/* Results that are pooled are elsewhere until then. */
static duet_status convolve_finished(unrolled *x, const sharing *h, const step *s, const frame *f)
{
    int64_t images = conv_images_at_once(&x->g, sizeof(T), omp_get_max_threads());
    if (h->by_image) images = images < h->threads ? h->threads : images - images % h->threads;
    void *room = NULL;
    if (epilogue_infos[s->epilogue].pooled)
        TRY(scratch_take((size_t)(images * x->g.m * x->columns) * sizeof(T), f, &room));
    const duet_status r = convolve_some(x, h, s, f, images, room);
    scratch_give(room);
    return r;
}

/* ---- a step ---- */

static duet_status run_unrolled(unrolled *x, const step *s, const frame *f)
{
    sharing h;
    TRY(share(&x->g, f, true, &h));
    duet_status r = DUET_OK;
    if (s->epilogue) r = convolve_finished(x, &h, s, f);
    else convolve(x, &h, 0, x->g.n);
    scratch_give(h.columns);
    return r;
}

duet_status TYPED(run_im2col)(const step *s, const frame *f)
{
    const conv g = conv_of(s);
    unrolled x = { .g = g,
                   .image = conv_volume(&s->in[0].at),
                   .in = address(f, &s->in[0]),
                   .out = address(f, &s->out[0]),
                   .rows = unrolled_rows(&g),
                   .columns = unrolled_columns(&g) };
    void *copy;
    const void *filters;
    duet_status r = conv_filters(s, f, &filters, &copy);
    x.filters = filters;
    if (r == DUET_OK) r = run_unrolled(&x, s, f);
    scratch_give(copy);
    return r;
}
