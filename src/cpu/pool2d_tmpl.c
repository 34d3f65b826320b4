/* pool2d_tmpl.c - max and average pooling of n c h w images, in the order of core/reduction.h: some rows of outputs at a
 * time, through their windows element by element. */
#include "cpu_kernels.h"
#include "pool_window.h"
#include "row_iterator.h"
#include "threads.h"

enum { BAND = 1024, SHORT = 48 }; /* outputs of a band, unless a row has more; of a short row */

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
    const pool_attributes *p = &s->attr.pool;
    return (axis){ s->in[0].at.size[2 + a], s->out[0].at.size[2 + a], p->window[a], p->stride[a], p->pad[a] };
}

INLINE T take(T a, T x, bool mean) { return mean ? a + x : MAXIMUM(a, x); }

/* `pair`: two elements side by side for each output. */
INLINE void take_row(T *out, const T *x, int64_t apart, int64_t n, bool mean, bool pair)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        const T a = take(out[j], x[j * apart], mean);
        out[j] = pair ? take(a, x[j * apart + 1], mean) : a;
    }
}

/* Strides that the compiler knows are faster. */
INLINE void take_apart(T *out, const T *x, int64_t apart, int64_t n, bool mean, bool pair)
{
    if (pair) take_row(out, x, 2, n, mean, true);
    else if (apart == 1) take_row(out, x, 1, n, mean, false);
    else if (apart == 2) take_row(out, x, 2, n, mean, false);
    else take_row(out, x, apart, n, mean, false);
}

/* A part of one plane: some rows of outputs, few enough to stay in L1 while their windows are gone through. */
typedef struct band {
    const T *in; /* the plane */
    T *out;
    int64_t first, rows;
} band;

typedef struct range {
    int64_t from, to;
} range;

static range inside(const axis *a, int64_t v)
{
    range r;
    windows_inside(a->in, a->out, a->stride, a->pad, v, &r.from, &r.to);
    return r;
}

/* Elements (u, v) of all windows of a band that have it inside of the image; with them (u, v + 1), if all of these do and two is how
 * far windows step. Returns how many it took. */
static int take_element(const pooling *p, const band *b, range rows, int64_t u, int64_t v)
{
    const int64_t *stride = p->image.stride, apart = p->w.stride * stride[3];
    const range r = inside(&p->w, v), next = inside(&p->w, v + 1);
    const bool pair =
        apart == 2 && stride[3] == 1 && v + 1 < p->w.window && r.from == next.from && r.to == next.to;
    for (int64_t i = rows.from; i < rows.to; i++) {
        T *out = b->out + (i - b->first) * p->w.out + r.from;
        const T *x = b->in + (i * p->h.stride - p->h.pad + u) * stride[2] +
                     (r.from * p->w.stride - p->w.pad + v) * stride[3];
        if (p->mean) take_apart(out, x, apart, r.to - r.from, true, pair);
        else take_apart(out, x, apart, r.to - r.from, false, pair);
    }
    return pair ? 2 : 1;
}

INLINE void greater(T *to, const T *x, const T *y, int64_t n)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++) to[j] = MAXIMUM(x[j], y[j]);
}

/* Where rows are short: element (u, v) of all windows side by side, or what is less than any number, and one loop over them. The ends of
 * rows would be compared one by one, by jumps that nobody can foresee. */
static void take_greater(const pooling *p, const band *b, range rows, int64_t u, int64_t v)
{
    T piece[BAND];
    const int64_t *stride = p->image.stride, n = p->w.out;
    const range r = inside(&p->w, v);
    for (int64_t i = rows.from; i < rows.to; i++) {
        T *to = piece + (i - rows.from) * n;
        const T *x = b->in + (i * p->h.stride - p->h.pad + u) * stride[2] +
                     (r.from * p->w.stride - p->w.pad + v) * stride[3];
        for (int64_t j = 0; j < r.from; j++) to[j] = -INF;
        gather_row(to + r.from, x, p->w.stride * stride[3], r.to - r.from);
        for (int64_t j = r.to; j < n; j++) to[j] = -INF;
    }
    T *out = b->out + (rows.from - b->first) * n;
    greater(out, out, piece, (rows.to - rows.from) * n);
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
            if (p->mean || p->w.out > SHORT) v += take_element(p, b, rows, u, v);
            else take_greater(p, b, rows, u, v++);
    }
    const T n = (T)(p->h.window * p->w.window);
    for (int64_t j = 0; j < count && p->mean; j++) b->out[j] = b->out[j] / n;
}

/* ---- windows of two by two, side by side: loops over all of a band, where its rows are short ---- */

static bool is_halved(const axis *a)
{
    return a->window == 2 && a->stride == 2 && !a->pad && 2 * a->out <= a->in;
}

static bool is_quartered(const pooling *p)
{
    return is_halved(&p->h) && is_halved(&p->w) && p->image.stride[3] == 1 && p->w.out <= BAND;
}

/* The greatest of four is the same in any order: the rows are compared first, which takes no shuffles. */
static void quarter_maxima(const pooling *p, const band *b)
{
    T rows[2 * BAND];
    const int64_t n = 2 * p->w.out, down = p->image.stride[2], count = b->rows * p->w.out;
    for (int64_t i = 0; i < b->rows; i++) {
        const T *x = b->in + 2 * (b->first + i) * down;
        greater(rows + i * n, x, x + down, n);
    }
#pragma omp simd
    for (int64_t j = 0; j < count; j++) b->out[j] = MAXIMUM(rows[2 * j], rows[2 * j + 1]);
}

/* Sums in the order of the window. */
static void quarter_means(const pooling *p, const band *b)
{
    T upper[2 * BAND], lower[2 * BAND];
    const int64_t n = 2 * p->w.out, down = p->image.stride[2], count = b->rows * p->w.out;
    for (int64_t i = 0; i < b->rows; i++) {
        const T *x = b->in + 2 * (b->first + i) * down;
        memcpy(upper + i * n, x, (size_t)n * sizeof(T)),
            memcpy(lower + i * n, x + down, (size_t)n * sizeof(T));
    }
#pragma omp simd
    for (int64_t j = 0; j < count; j++)
        b->out[j] = ((((K(0) + upper[2 * j]) + upper[2 * j + 1]) + lower[2 * j]) + lower[2 * j + 1]) / K(4);
}

/* ---- channels side by side, as convolutions leave them: some pixels of a row of outputs at a time, for some channels ---- */

enum { PIXELS = 32, ABREAST = 64 }; /* at most, in L1 */

static bool is_abreast(const pooling *p) { return p->image.stride[1] == 1 && p->channels > 1; }

/* The pixels from .. to - 1 of a row of outputs, with their channels `first` and on. */
typedef struct pixels {
    const T *in; /* the image */
    T *out;      /* of the first channel and pixel */
    int64_t row, from, to, first, channels;
} pixels;

/* Element (u, v) of all windows that have it inside. `channels` is a number that the compiler knows, or not. */
INLINE void take_abreast(const pooling *p, const pixels *b, T *best, int64_t u, int64_t v, int64_t channels)
{
    const int64_t *stride = p->image.stride;
    const range r = inside(&p->w, v);
    const int64_t from = r.from > b->from ? r.from : b->from, to = SMALLER(r.to, b->to),
                  apart = p->w.stride * stride[3];
    const T *x = b->in + (b->row * p->h.stride - p->h.pad + u) * stride[2] +
                 (from * p->w.stride - p->w.pad + v) * stride[3];
    T *out = best + (from - b->from) * channels;
    for (int64_t j = from; j < to; j++, x += apart, out += channels) {
#pragma omp simd
        for (int64_t c = 0; c < channels; c++) out[c] = take(out[c], x[b->first + c], p->mean);
    }
}

INLINE void take_windows(const pooling *p, const pixels *b, T *best, int64_t channels)
{
    const int64_t count = (b->to - b->from) * channels;
    for (int64_t j = 0; j < count; j++) best[j] = p->mean ? K(0) : -INF;
    const int64_t top = b->row * p->h.stride - p->h.pad;
    for (int64_t u = top < 0 ? -top : 0; u < p->h.window && top + u < p->h.in; u++)
        for (int64_t v = 0; v < p->w.window; v++) take_abreast(p, b, best, u, v, channels);
    const T n = (T)(p->h.window * p->w.window);
    for (int64_t j = 0; j < count && p->mean; j++) best[j] = best[j] / n;
}

/* Two by two, side by side. */
INLINE void take_quarters(const pooling *p, const pixels *b, T *best, int64_t channels)
{
    const int64_t down = p->image.stride[2], apart = p->image.stride[3];
    const T *x = b->in + 2 * b->row * down + 2 * b->from * apart + b->first;
    for (int64_t j = b->from; j < b->to; j++, x += 2 * apart, best += channels) {
#pragma omp simd
        for (int64_t c = 0; c < channels; c++)
            best[c] = MAXIMUM(MAXIMUM(x[c], x[apart + c]), MAXIMUM(x[down + c], x[down + apart + c]));
    }
}

INLINE void pool_abreast(const pooling *p, const pixels *b, int64_t channels)
{
    T best[PIXELS * ABREAST];
    const int64_t plane = p->h.out * p->w.out, n = b->to - b->from;
    if (!p->mean && is_halved(&p->h) && is_halved(&p->w)) take_quarters(p, b, best, channels);
    else take_windows(p, b, best, channels);
    for (int64_t c = 0; c < channels; c++)
        for (int64_t j = 0; j < n; j++) b->out[c * plane + j] = best[j * channels + c];
}

/* Strides that the compiler knows are faster. */
static void pool_pixels(const pooling *p, const pixels *b)
{
    if (b->channels == 16) pool_abreast(p, b, 16);
    else if (b->channels == 32) pool_abreast(p, b, 32);
    else if (b->channels == ABREAST) pool_abreast(p, b, ABREAST);
    else pool_abreast(p, b, b->channels);
}

static void pool_row(const pooling *p, int64_t index)
{
    const int64_t image = index / p->h.out, row = index % p->h.out;
    pixels b = { .in = p->in + image * p->image.stride[0], .row = row };
    for (b.first = 0; b.first < p->channels; b.first += ABREAST)
        for (b.from = 0; b.from < p->w.out; b.from += PIXELS) {
            b.channels = SMALLER(ABREAST, p->channels - b.first), b.to = SMALLER(b.from + PIXELS, p->w.out);
            b.out = p->out + ((image * p->channels + b.first) * p->h.out + row) * p->w.out + b.from;
            pool_pixels(p, &b);
        }
}

/* ---- a step ---- */

static band band_at(const pooling *p, int64_t index, int64_t bands, int64_t rows)
{
    const int64_t plane = index / bands, first = index % bands * rows;
    return (band){ .in = p->in + plane / p->channels * p->image.stride[0] +
                         plane % p->channels * p->image.stride[1],
                   .out = p->out + (plane * p->h.out + first) * p->w.out,
                   .first = first,
                   .rows = SMALLER(rows, p->h.out - first) };
}

/* How the work is cut: rows of the results in bands, or rows of images side by side. */
typedef struct banding {
    const pooling *p;
    int64_t rows, bands, all;
    bool abreast, quartered;
} banding;

static void pool_some(const void *work, int t, int threads)
{
    const banding *c = work;
    const pooling *p = c->p;
    for (int64_t i = part_of(c->all, t, threads); i < part_of(c->all, t + 1, threads); i++) {
        if (c->abreast) {
            pool_row(p, i);
            continue;
        }
        const band b = band_at(p, i, c->bands, c->rows);
        if (c->quartered) (p->mean ? quarter_means : quarter_maxima)(p, &b);
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
    banding c = { &p, rows, bands, count / (p.h.out * p.w.out) * bands, is_abreast(&p), is_quartered(&p) };
    if (c.abreast) c.all = s->out[0].at.size[0] * p.h.out;
    const double taken = (double)count * (double)(p.h.window * p.w.window);
    by_threads(c.all > 1 ? threads_for(taken * (SECONDS_PER_ROUNDED + (double)sizeof(T) * SECONDS_PER_BYTE))
                         : 1,
               pool_some, &c);
    return DUET_OK;
}
