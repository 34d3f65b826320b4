/* conv_grad_tmpl.c - back from a convolution's results, as products: to the images, whose windows are added up, and to the filters. */
#include "im2col.h"

typedef struct backward {
    conv g;
    layout image; /* of x */
    const T *x, *filters, *y;
    T *out;
    int64_t rows, columns;
} backward;

static backward backward_of(const step *s, const frame *f)
{
    const conv_operands o = conv_operands_of(s);
    backward b = { .g = conv_of(s),
                   .image = conv_volume(&o.x->at),
                   .x = address(f, o.x),
                   .filters = address(f, o.w),
                   .out = address(f, &s->out[0]) };
    b.rows = unrolled_rows(&b.g), b.columns = unrolled_columns(&b.g);
    return b;
}

/* An operand without gaps. */
static duet_status densely(const operand *x, const frame *f, const T **p, void **copy)
{
    *copy = NULL, *p = address(f, x);
    if (layout_is_dense(&x->at)) return DUET_OK;
    TRY(scratch_copy(x, f, copy));
    return *p = *copy, DUET_OK;
}

/* ---- to the images ---- */

/* Some channels of a group's image: their rows of the matrix are added, one channel by one thread. */
typedef struct adding {
    const conv *g;
    T *image, *columns;
} adding;

static void add_some(const void *work, int t, int threads)
{
    const adding *a = work;
    const int64_t depth = a->g->depth, window = a->g->kd * a->g->kh * a->g->kw, each = unrolled_columns(a->g);
    for (int64_t r = part_of(depth, t, threads) * window; r < part_of(depth, t + 1, threads) * window; r++)
        add_row_of_windows(a->g, a->image, r, a->columns + r * each);
}

/* Image n: what each group's results bring, window by window. */
static void image_back(const backward *b, int64_t n, T *columns, int threads)
{
    const conv *g = &b->g;
    const int64_t m = g->m / g->groups, plane = g->d * g->h * g->w;
    memset(b->out + n * g->c * plane, 0, (size_t)(g->c * plane) * sizeof(T));
    for (int64_t k = 0; k < g->groups; k++) {
        T *image = b->out + (n * g->c + k * g->depth) * plane;
        BLAS(gemm)
        (CblasRowMajor, CblasTrans, CblasNoTrans, (int)b->rows, (int)b->columns, (int)m, 1,
         b->filters + k * m * b->rows, (int)b->rows, b->y + (n * g->m + k * m) * b->columns, (int)b->columns,
         0, columns, (int)b->columns);
        by_threads(threads, add_some, &(adding){ g, image, columns });
    }
}

typedef struct image_work {
    const backward *b;
    T *columns; /* each thread's, one after the other */
} image_work;

static void each_back(const void *work, int t, int threads)
{
    const image_work *w = work;
    const backward *b = w->b;
    for (int64_t n = part_of(b->g.n, t, threads); n < part_of(b->g.n, t + 1, threads); n++)
        image_back(b, n, w->columns + t * b->rows * b->columns, 1);
}

static void images_back(const backward *b, const sharing *h)
{
    if (h->by_image) by_threads(h->threads, each_back, &(image_work){ b, h->columns });
    else
        for (int64_t n = 0; n < b->g.n; n++) image_back(b, n, h->columns, h->threads);
    cpu_blas_used();
}

duet_status TYPED(run_input_grad)(const step *s, const frame *f)
{
    backward b = backward_of(s, f);
    sharing h;
    void *filters, *y = NULL;
    TRY(densely(&s->in[1], f, &b.filters, &filters));
    duet_status r = densely(&s->in[0], f, &b.y, &y);
    if (r == DUET_OK) r = share(&b.g, f, true, &h);
    if (r == DUET_OK) images_back(&b, &h), scratch_give(h.columns);
    scratch_give(filters), scratch_give(y);
    return r;
}

/* ---- to the filters ---- */

/* What image n adds to the filters of each group. */
static void filters_back(const backward *b, int64_t n, T *columns, int threads)
{
    const conv *g = &b->g;
    const int64_t m = g->m / g->groups;
    for (int64_t k = 0; k < g->groups; k++) {
        const T *image = b->x + n * b->image.stride[0] + k * g->depth * b->image.stride[1];
        by_threads(threads, unroll_some, &(unrolling){ g, b->image.stride, image, columns });
        BLAS(gemm)
        (CblasRowMajor, CblasNoTrans, CblasTrans, (int)m, (int)b->rows, (int)b->columns, 1,
         b->y + (n * g->m + k * m) * b->columns, (int)b->columns, columns, (int)b->columns, n > 0,
         b->out + k * m * b->rows, (int)b->rows);
    }
}

duet_status TYPED(run_filter_grad)(const step *s, const frame *f)
{
    backward b = backward_of(s, f);
    sharing h;
    void *y;
    TRY(densely(&s->in[1], f, &b.y, &y));
    duet_status r = share(&b.g, f, false, &h);
    for (int64_t n = 0; n < b.g.n && r == DUET_OK; n++) filters_back(&b, n, h.columns, h.threads);
    if (r == DUET_OK) cpu_blas_used(), scratch_give(h.columns);
    scratch_give(y);
    return r;
}
