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

/* col2im of one group of an image. Each thread adds some channels. */
typedef struct col2im_work {
    const conv *g;
    T *image, *columns;
} col2im_work;

static void col2im_part(const void *work, int t, int threads)
{
    const col2im_work *a = work;
    const int64_t depth = a->g->depth, window = a->g->kd * a->g->kh * a->g->kw, each = im2col_columns(a->g);
    for (int64_t r = part_of(depth, t, threads) * window; r < part_of(depth, t + 1, threads) * window; r++)
        col2im_row(a->g, a->image, r, a->columns + r * each);
}

/* Computes the gradient of image n. */
static void input_grad_image(const conv_grad *b, int64_t n, T *columns, int threads)
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
        by_threads(threads, col2im_part, &(col2im_work){ g, image, columns });
    }
}

typedef struct input_grad_work {
    const conv_grad *b;
    T *columns; /* one matrix for each thread */
} input_grad_work;

static void input_grad_part(const void *work, int t, int threads)
{
    const input_grad_work *w = work;
    const conv_grad *b = w->b;
    for (int64_t n = part_of(b->g.n, t, threads); n < part_of(b->g.n, t + 1, threads); n++)
        input_grad_image(b, n, w->columns + t * b->rows * b->columns, 1);
}

static void input_grad(const conv_grad *b, const im2col_plan *h)
{
    if (h->by_image) by_threads(h->threads, input_grad_part, &(input_grad_work){ b, h->columns });
    else
        for (int64_t n = 0; n < b->g.n; n++) input_grad_image(b, n, h->columns, h->threads);
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

/* Adds the contribution of image n to the gradients of all filters. */
static void filter_grad_image(const conv_grad *b, int64_t n, T *columns, int threads)
{
    const conv *g = &b->g;
    const int64_t m = g->m / g->groups;
    for (int64_t k = 0; k < g->groups; k++) {
        const T *image = b->x + n * b->image.stride[0] + k * g->depth * b->image.stride[1];
        by_threads(threads, im2col_part, &(im2col_work){ g, b->image.stride, image, columns });
        BLAS(gemm)
        (CblasRowMajor, CblasNoTrans, CblasTrans, (int)m, (int)b->rows, (int)b->columns, 1,
         b->y + (n * g->m + k * m) * b->columns, (int)b->columns, columns, (int)b->columns, n > 0,
         b->out + k * m * b->rows, (int)b->rows);
    }
}

duet_status TYPED(run_filter_grad)(const step *s, const frame *f)
{
    conv_grad b = conv_grad_of(s, f);
    im2col_plan h;
    TRY(blas_prepare());
    void *y;
    TRY(dense_operand(&s->in[1], f, &b.y, &y));
    duet_status r = im2col_plan_make(&b.g, f, false, &h);
    for (int64_t n = 0; n < b.g.n && r == DUET_OK; n++) filter_grad_image(&b, n, h.columns, h.threads);
    if (r == DUET_OK) {
        cpu_blas_used();
        scratch_give(h.columns);
    }
    scratch_give(y);
    return r;
}
