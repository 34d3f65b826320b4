/* pool2d_tmpl.c - max and average pooling of images in the order NCHW or NHWC. Template, for f32
 * and f64.
 *
 * The input may have any layout, the result is dense NCHW. Sums are in the order of
 * core/reduce_order.h. The outer loops run over the elements of a window, the inner ones over a
 * band of outputs. Threads divide the bands. */
#include "cpu_kernels.h"
#include "min_max.h"
#include "pool_window.h"
#include "row_iterator.h"
#include "threads.h"

enum { BAND = 1024, SHORT_ROW = 48 }; /* outputs of a band unless one row has more; length of a short row */

typedef struct pool_axis {
    int64_t in, out, window, stride, pad;
} pool_axis;

typedef struct pooling {
    pool_axis h, w;
    layout image;
    int64_t channels;
    const T *in;
    T *out;
    bool mean;
} pooling;

static pool_axis axis_of(const step *s, int a)
{
    const pool_attributes *p = &s->attr.pool;
    return (pool_axis){ s->in[0].at.size[2 + a], s->out[0].at.size[2 + a], p->window[a], p->stride[a],
                        p->pad[a] };
}

INLINE T accumulate(T a, T x, bool mean) { return mean ? a + x : MAXIMUM(a, x); }

/* `with_next`: accumulates two adjacent elements for each output. */
INLINE void accumulate_row(T *out, const T *x, int64_t column_step, int64_t n, bool mean, bool with_next)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        const T a = accumulate(out[j], x[j * column_step], mean);
        out[j] = with_next ? accumulate(a, x[j * column_step + 1], mean) : a;
    }
}

/* Constant strides are faster. */
INLINE void accumulate_strided(T *out, const T *x, int64_t column_step, int64_t n, bool mean, bool with_next)
{
    if (with_next) accumulate_row(out, x, 2, n, mean, true);
    else if (column_step == 1) accumulate_row(out, x, 1, n, mean, false);
    else if (column_step == 2) accumulate_row(out, x, 2, n, mean, false);
    else accumulate_row(out, x, column_step, n, mean, false);
}

/* Some rows of outputs of one plane, few enough to stay in L1. */
typedef struct band {
    const T *in; /* the plane */
    T *out;
    int64_t first, rows;
} band;

typedef struct range {
    int64_t from, to;
} range;

static range inside(const pool_axis *a, int64_t v)
{
    range r;
    windows_inside(a->in, a->out, a->stride, a->pad, v, &r.from, &r.to);
    return r;
}

/* Accumulates element (u, v) of all windows of a band that have it inside the image. Also (u, v +
 * 1), if the same windows have it and the stride is 2. Returns how many elements it accumulated. */
static int accumulate_offset(const pooling *p, const band *b, range rows, int64_t u, int64_t v)
{
    const int64_t *stride = p->image.stride, column_step = p->w.stride * stride[3];
    const range r = inside(&p->w, v), next = inside(&p->w, v + 1);
    const bool with_next =
        column_step == 2 && stride[3] == 1 && v + 1 < p->w.window && r.from == next.from && r.to == next.to;
    for (int64_t i = rows.from; i < rows.to; i++) {
        T *out = b->out + (i - b->first) * p->w.out + r.from;
        const T *x = b->in + (i * p->h.stride - p->h.pad + u) * stride[2] +
                     (r.from * p->w.stride - p->w.pad + v) * stride[3];
        if (p->mean) accumulate_strided(out, x, column_step, r.to - r.from, true, with_next);
        else accumulate_strided(out, x, column_step, r.to - r.from, false, with_next);
    }
    return with_next ? 2 : 1;
}

INLINE void maximum_rows(T *to, const T *x, const T *y, int64_t n)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++) to[j] = MAXIMUM(x[j], y[j]);
}

/* For short rows: copies element (u, v) of all windows, with -infinity outside the image, and
 * compares in one loop. Loops over single rows would mispredict their ends. */
static void maximum_offset(const pooling *p, const band *b, range rows, int64_t u, int64_t v)
{
    T shifted[BAND];
    const int64_t *stride = p->image.stride, n = p->w.out;
    const range r = inside(&p->w, v);
    for (int64_t i = rows.from; i < rows.to; i++) {
        T *to = shifted + (i - rows.from) * n;
        const T *x = b->in + (i * p->h.stride - p->h.pad + u) * stride[2] +
                     (r.from * p->w.stride - p->w.pad + v) * stride[3];
        for (int64_t j = 0; j < r.from; j++) to[j] = -INF;
        gather_row(to + r.from, x, p->w.stride * stride[3], r.to - r.from);
        for (int64_t j = r.to; j < n; j++) to[j] = -INF;
    }
    T *out = b->out + (rows.from - b->first) * n;
    maximum_rows(out, out, shifted, (rows.to - rows.from) * n);
}

static void pool_band(const pooling *p, const band *b)
{
    const int64_t count = b->rows * p->w.out;
    for (int64_t j = 0; j < count; j++) b->out[j] = p->mean ? K(0) : -INF;
    for (int64_t u = 0; u < p->h.window; u++) {
        range rows = inside(&p->h, u);
        if (rows.from < b->first) rows.from = b->first;
        rows.to = SMALLER(rows.to, b->first + b->rows);
        for (int64_t v = 0; v < p->w.window;)
            if (p->mean || p->w.out > SHORT_ROW) v += accumulate_offset(p, b, rows, u, v);
            else maximum_offset(p, b, rows, u, v++);
    }
    const T n = (T)(p->h.window * p->w.window);
    for (int64_t j = 0; j < count && p->mean; j++) b->out[j] = b->out[j] / n;
}

/* ---- 2x2 windows with stride 2: one loop over a band of short rows ---- */

static bool is_2x2(const pool_axis *a)
{
    return a->window == 2 && a->stride == 2 && !a->pad && 2 * a->out <= a->in;
}

static bool is_2x2_contiguous(const pooling *p)
{
    return is_2x2(&p->h) && is_2x2(&p->w) && p->image.stride[3] == 1 && p->w.out <= BAND;
}

/* The maximum is the same in any order. Comparing rows first needs no shuffles. */
static void max_2x2(const pooling *p, const band *b)
{
    T rows[2 * BAND];
    const int64_t n = 2 * p->w.out, row_step = p->image.stride[2], count = b->rows * p->w.out;
    for (int64_t i = 0; i < b->rows; i++) {
        const T *x = b->in + 2 * (b->first + i) * row_step;
        maximum_rows(rows + i * n, x, x + row_step, n);
    }
#pragma omp simd
    for (int64_t j = 0; j < count; j++) b->out[j] = MAXIMUM(rows[2 * j], rows[2 * j + 1]);
}

/* Sums are in the order of the window. */
static void mean_2x2(const pooling *p, const band *b)
{
    T upper[2 * BAND], lower[2 * BAND];
    const int64_t n = 2 * p->w.out, row_step = p->image.stride[2], count = b->rows * p->w.out;
    for (int64_t i = 0; i < b->rows; i++) {
        const T *x = b->in + 2 * (b->first + i) * row_step;
        memcpy(upper + i * n, x, (size_t)n * sizeof(T));
        memcpy(lower + i * n, x + row_step, (size_t)n * sizeof(T));
    }
#pragma omp simd
    for (int64_t j = 0; j < count; j++)
        b->out[j] = ((((K(0) + upper[2 * j]) + upper[2 * j + 1]) + lower[2 * j]) + lower[2 * j + 1]) / K(4);
}

/* ---- NHWC input, as convolutions leave it: some pixels of a row of outputs at a time, for some
 * channels ---- */

enum { PIXELS = 32, CHANNELS = 64 }; /* at most, to fit into L1 */

static bool is_nhwc(const pooling *p) { return p->image.stride[1] == 1 && p->channels > 1; }

/* Pixels from .. to - 1 of a row of outputs, for channels `first` and later. */
typedef struct pixel_block {
    const T *in; /* the image */
    T *out;      /* of the first channel and pixel */
    int64_t row, from, to, first, channels;
} pixel_block;

/* Accumulates element (u, v) of all windows that have it inside. `channels` may be a constant. */
INLINE void accumulate_nhwc(const pooling *p, const pixel_block *b, T *best, int64_t u, int64_t v,
                            int64_t channels)
{
    const int64_t *stride = p->image.stride;
    const range r = inside(&p->w, v);
    const int64_t from = larger(r.from, b->from), to = SMALLER(r.to, b->to),
                  column_step = p->w.stride * stride[3];
    const T *x = b->in + (b->row * p->h.stride - p->h.pad + u) * stride[2] +
                 (from * p->w.stride - p->w.pad + v) * stride[3];
    T *out = best + (from - b->from) * channels;
    for (int64_t j = from; j < to; j++, x += column_step, out += channels) {
#pragma omp simd
        for (int64_t c = 0; c < channels; c++) out[c] = accumulate(out[c], x[b->first + c], p->mean);
    }
}

INLINE void accumulate_windows(const pooling *p, const pixel_block *b, T *best, int64_t channels)
{
    const int64_t count = (b->to - b->from) * channels;
    for (int64_t j = 0; j < count; j++) best[j] = p->mean ? K(0) : -INF;
    const int64_t top = b->row * p->h.stride - p->h.pad;
    for (int64_t u = top < 0 ? -top : 0; u < p->h.window && top + u < p->h.in; u++)
        for (int64_t v = 0; v < p->w.window; v++) accumulate_nhwc(p, b, best, u, v, channels);
    const T n = (T)(p->h.window * p->w.window);
    for (int64_t j = 0; j < count && p->mean; j++) best[j] = best[j] / n;
}

/* 2x2 windows with stride 2. */
INLINE void max_2x2_nhwc(const pooling *p, const pixel_block *b, T *best, int64_t channels)
{
    const int64_t row_step = p->image.stride[2], column_step = p->image.stride[3];
    const T *x = b->in + 2 * b->row * row_step + 2 * b->from * column_step + b->first;
    for (int64_t j = b->from; j < b->to; j++, x += 2 * column_step, best += channels) {
#pragma omp simd
        for (int64_t c = 0; c < channels; c++)
            best[c] = MAXIMUM(MAXIMUM(x[c], x[column_step + c]),
                              MAXIMUM(x[row_step + c], x[row_step + column_step + c]));
    }
}

INLINE void pool_nhwc(const pooling *p, const pixel_block *b, int64_t channels)
{
    T best[PIXELS * CHANNELS];
    const int64_t plane = p->h.out * p->w.out, n = b->to - b->from;
    if (!p->mean && is_2x2(&p->h) && is_2x2(&p->w)) max_2x2_nhwc(p, b, best, channels);
    else accumulate_windows(p, b, best, channels);
    for (int64_t c = 0; c < channels; c++)
        for (int64_t j = 0; j < n; j++) b->out[c * plane + j] = best[j * channels + c];
}

/* Constant numbers of channels are faster. */
static void pool_pixels(const pooling *p, const pixel_block *b)
{
    if (b->channels == 16) pool_nhwc(p, b, 16);
    else if (b->channels == 32) pool_nhwc(p, b, 32);
    else if (b->channels == CHANNELS) pool_nhwc(p, b, CHANNELS);
    else pool_nhwc(p, b, b->channels);
}

static void pool_row(const pooling *p, int64_t index)
{
    const int64_t image = index / p->h.out, row = index % p->h.out;
    pixel_block b = { .in = p->in + image * p->image.stride[0], .row = row };
    for (b.first = 0; b.first < p->channels; b.first += CHANNELS)
        for (b.from = 0; b.from < p->w.out; b.from += PIXELS) {
            b.channels = SMALLER(CHANNELS, p->channels - b.first);
            b.to = SMALLER(b.from + PIXELS, p->w.out);
            b.out = p->out + ((image * p->channels + b.first) * p->h.out + row) * p->w.out + b.from;
            pool_pixels(p, &b);
        }
}

/* ---- the step ---- */

static band band_at(const pooling *p, int64_t index, int64_t bands, int64_t rows)
{
    const int64_t plane = index / bands, first = index % bands * rows;
    return (band){ .in = p->in + plane / p->channels * p->image.stride[0] +
                         plane % p->channels * p->image.stride[1],
                   .out = p->out + (plane * p->h.out + first) * p->w.out,
                   .first = first,
                   .rows = SMALLER(rows, p->h.out - first) };
}

/* How the work is divided: bands of rows, or for NHWC rows of each image. */
typedef struct pool_work {
    const pooling *p;
    int64_t rows, bands, all;
    bool nhwc, is_2x2;
} pool_work;

static void pool_part(const void *work, int t, int threads)
{
    const pool_work *c = work;
    const pooling *p = c->p;
    for (int64_t i = part_of(c->all, t, threads); i < part_of(c->all, t + 1, threads); i++) {
        if (c->nhwc) {
            pool_row(p, i);
            continue;
        }
        const band b = band_at(p, i, c->bands, c->rows);
        if (c->is_2x2) (p->mean ? mean_2x2 : max_2x2)(p, &b);
        else pool_band(p, &b);
    }
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
    const int64_t rows = p.w.out > BAND ? 1 : BAND / p.w.out, bands = (p.h.out + rows - 1) / rows;
    pool_work c = {
        &p, rows, bands, count / (p.h.out * p.w.out) * bands, is_nhwc(&p), is_2x2_contiguous(&p)
    };
    if (c.nhwc) c.all = s->out[0].at.size[0] * p.h.out;
    const double accumulated = (double)count * (double)(p.h.window * p.w.window);
    by_threads(c.all > 1
                   ? threads_for(accumulated * (SECONDS_PER_ROUNDED + (double)sizeof(T) * SECONDS_PER_BYTE))
                   : 1,
               pool_part, &c);
    return DUET_OK;
}
