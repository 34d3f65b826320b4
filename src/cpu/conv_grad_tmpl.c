/* conv_grad_tmpl.c - gradients of a convolution, as matrix products by OpenBLAS. Template, for f32
 * and f64.
 *
 * The input gradient is a product followed by col2im, which adds the windows up. The filter
 * gradient is im2col followed by a product. The result is dense. Threads take images, or share each
 * image if there are few. */
#include "im2col.h"

typedef struct conv_grad {
    conv g;
    layout image; /* layout of x */
    const T *x, *filters, *y;
    T *out;
    int64_t rows, columns;
} conv_grad;

static conv_grad conv_grad_of(const step *s, const frame *f)
{
    const conv_operands o = conv_operands_of(s);
    conv_grad b = { .g = conv_of(s),
                    .image = conv_volume(&o.x->at),
                    .x = address(f, o.x),
                    .filters = address(f, o.w),
                    .out = address(f, &s->out[0]) };
    b.rows = im2col_rows(&b.g);
    b.columns = im2col_columns(&b.g);
    return b;
}

/* A dense operand: the operand itself, or a copy in *copy. */
static duet_status dense_operand(const operand *x, const frame *f, const T **p, void **copy)
{
    *copy = NULL;
    *p = address(f, x);
    if (layout_is_dense(&x->at)) return DUET_OK;
    TRY(scratch_copy(x, f, copy));
    *p = *copy;
    return DUET_OK;
}

/* ---- gradient of the input ---- */

/* col2im of a block of windows of one group of an image. Each thread adds some channels. */
typedef struct col2im_work {
    const conv *g;
    T *image, *columns;
    window_block block;
} col2im_work;

static void col2im_part(const void *work, int t, int threads)
{
    const col2im_work *a = work;
    const int64_t depth = a->g->depth, window = a->g->kd * a->g->kh * a->g->kw;
    for (int64_t r = part_of(depth, t, threads) * window; r < part_of(depth, t + 1, threads) * window; r++)
        col2im_row(a->g, a->image, r, a->block, a->columns + r * a->block.count);
}

/* Adds what the windows of a block contribute to group k of image n. */
static void input_grad_block(const conv_grad *b, int64_t n, int64_t k, window_block w, T *columns,
                             int threads)
{
    const conv *g = &b->g;
    const int64_t m = g->m / g->groups;
    T *image = b->out + (n * g->c + k * g->depth) * g->d * g->h * g->w;
    BLAS(gemm)
    (CblasRowMajor, CblasTrans, CblasNoTrans, (int)b->rows, (int)w.count, (int)m, 1,
     b->filters + k * m * b->rows, (int)b->rows, b->y + (n * g->m + k * m) * b->columns + w.first,
     (int)b->columns, 0, columns, (int)w.count);
    by_threads(threads, col2im_part, &(col2im_work){ g, image, columns, w });
}

/* Computes the gradient of image n. */
static void input_grad_image(const conv_grad *b, const im2col_plan *h, int64_t n, T *columns, int threads)
{
    const conv *g = &b->g;
    const int64_t count = g->c * g->d * g->h * g->w;
    memset(b->out + n * count, 0, (size_t)count * sizeof(T));
    for (int64_t k = 0; k < g->groups; k++)
        for (int64_t w = 0; w < b->columns; w += h->windows)
            input_grad_block(b, n, k, im2col_block(g, h, w), columns, threads);
}

typedef struct input_grad_work {
    const conv_grad *b;
    const im2col_plan *h;
} input_grad_work;

static void input_grad_part(const void *work, int t, int threads)
{
    const input_grad_work *w = work;
    T *columns = (T *)w->h->columns + t * w->b->rows * w->h->windows;
    for (int64_t n = part_of(w->b->g.n, t, threads); n < part_of(w->b->g.n, t + 1, threads); n++)
        input_grad_image(w->b, w->h, n, columns, 1);
}

static void input_grad(const conv_grad *b, const im2col_plan *h)
{
    if (h->by_image) by_threads(h->threads, input_grad_part, &(input_grad_work){ b, h });
    else
        for (int64_t n = 0; n < b->g.n; n++) input_grad_image(b, h, n, h->columns, h->threads);
    cpu_blas_used();
}

duet_status TYPED(run_input_grad)(const step *s, const frame *f)
{
    conv_grad b = conv_grad_of(s, f);
    im2col_plan h;
    TRY(blas_prepare());
    void *filters, *y = NULL;
    TRY(dense_operand(&s->in[1], f, &b.filters, &filters));
    duet_status r = dense_operand(&s->in[0], f, &b.y, &y);
    if (r == DUET_OK) r = im2col_plan_make(&b.g, f, true, &h);
    if (r == DUET_OK) {
        input_grad(&b, &h);
        scratch_give(h.columns);
    }
    scratch_give(filters);
    scratch_give(y);
    return r;
}

/* ---- gradient of the filters ---- */

/* Adds what the windows of a block of image n contribute to the gradients of the filters of group k. */
static void filter_grad_block(const conv_grad *b, int64_t n, int64_t k, window_block w, T *columns,
                              int threads)
{
    const conv *g = &b->g;
    const int64_t m = g->m / g->groups;
    const T *image = b->x + n * b->image.stride[0] + k * g->depth * b->image.stride[1];
    by_threads(threads, im2col_part, &(im2col_work){ g, b->image.stride, image, columns, w });
    BLAS(gemm)
    (CblasRowMajor, CblasNoTrans, CblasTrans, (int)m, (int)b->rows, (int)w.count, 1,
     b->y + (n * g->m + k * m) * b->columns + w.first, (int)b->columns, columns, (int)w.count,
     n > 0 || w.first > 0, b->out + k * m * b->rows, (int)b->rows);
}

/* Adds the contribution of image n to the gradients of all filters. */
static void filter_grad_image(const conv_grad *b, const im2col_plan *h, int64_t n)
{
    for (int64_t k = 0; k < b->g.groups; k++)
        for (int64_t w = 0; w < b->columns; w += h->windows)
            filter_grad_block(b, n, k, im2col_block(&b->g, h, w), h->columns, h->threads);
}

duet_status TYPED(run_filter_grad)(const step *s, const frame *f)
{
    conv_grad b = conv_grad_of(s, f);
    im2col_plan h;
    TRY(blas_prepare());
    void *y;
    TRY(dense_operand(&s->in[1], f, &b.y, &y));
    duet_status r = im2col_plan_make(&b.g, f, false, &h);
    for (int64_t n = 0; n < b.g.n && r == DUET_OK; n++) filter_grad_image(&b, &h, n);
    if (r == DUET_OK) {
        cpu_blas_used();
        scratch_give(h.columns);
    }
    scratch_give(y);
    return r;
}
