/* im2col.h - im2col and col2im of one group of an image. Template, for f32 and f64.
 *
 * The matrix has a row for each element of a filter, and a column for each window. */
#ifndef IM2COL_H
#define IM2COL_H

#include "blas.h"
#include "conv.h"
#include "pool_window.h"
#include "row_iterator.h"
#include "threads.h"

static inline int64_t im2col_rows(const conv *g) { return g->depth * g->kd * g->kh * g->kw; }
static inline int64_t im2col_columns(const conv *g) { return g->od * g->oh * g->ow; }

/* The channel, and the offsets along depth, height and width, of a row's elements from the start of
 * their window. */
typedef struct window_offset {
    int64_t c, t, u, v;
} window_offset;

static inline window_offset window_offset_of(const conv *g, int64_t row)
{
    window_offset p = { .v = row % g->kw * g->dilation[1] };
    p.u = (row /= g->kw) % g->kh * g->dilation[0];
    p.t = (row /= g->kh) % g->kd * g->dilation[2];
    p.c = row / g->kd;
    return p;
}

/* Windows first .. first + count - 1 of an image. The matrix of a large image is made in blocks of them. */
typedef struct window_block {
    int64_t first, count;
} window_block;

/* Visits the lines of windows of a block: windows first .. last - 1 of line i of plane k. */
typedef struct line_iterator {
    int64_t k, i, first, last, left; /* left: windows of the block from `first` on */
} line_iterator;

static inline line_iterator line_iterator_at(const conv *g, window_block b)
{
    const int64_t line = b.first / g->ow, first = b.first % g->ow;
    return (line_iterator){ line / g->oh, line % g->oh, first, SMALLER(first + b.count, g->ow), b.count };
}

static inline void line_iterator_next(line_iterator *l, const conv *g)
{
    l->left -= l->last - l->first;
    l->first = 0;
    l->last = SMALLER(l->left, g->ow);
    if (++l->i < g->oh) return;
    l->i = 0;
    l->k++;
}

/* Where the element at an offset from the start of a window is in a line of windows: the plane z and the
 * row y of the image, and the windows first .. last - 1 in which it is not in the padding. */
typedef struct element_line {
    int64_t z, y, first, last;
} element_line;

static inline element_line element_line_of(const conv *g, window_offset p, const line_iterator *l,
                                           int64_t first, int64_t last)
{
    element_line e = { .z = l->k * g->stride[2] - g->pad[2] + p.t,
                       .y = l->i * g->stride[0] - g->pad[0] + p.u,
                       .first = l->last };
    const bool inside = e.z >= 0 && e.z < g->d && e.y >= 0 && e.y < g->h;
    if (inside) e.first = SMALLER(l->first > first ? l->first : first, l->last);
    e.last = SMALLER(last, l->last);
    if (e.last < e.first) e.last = e.first;
    return e;
}

/* One row of the matrix. `stride` is that of the image's layout with depth. Elements in the padding
 * are 0. */
static inline void im2col_row(const conv *g, const int64_t *stride, const T *image, int64_t row,
                              window_block b, T *to)
{
    const window_offset p = window_offset_of(g, row);
    const int64_t column_step = g->stride[1] * stride[4];
    int64_t first, last;
    windows_inside(g->w, g->ow, g->stride[1], g->pad[1], p.v, &first, &last);
    image += p.c * stride[1] + (p.v - g->pad[1]) * stride[4];
    for (line_iterator l = line_iterator_at(g, b); l.left > 0; line_iterator_next(&l, g)) {
        const element_line e = element_line_of(g, p, &l, first, last);
        memset(to, 0, (size_t)(e.first - l.first) * sizeof(T));
        if (e.first < e.last)
            gather_row(to + e.first - l.first,
                       image + e.z * stride[2] + e.y * stride[3] + e.first * column_step, column_step,
                       e.last - e.first);
        memset(to + e.last - l.first, 0, (size_t)(l.last - e.last) * sizeof(T));
        to += l.last - l.first;
    }
}

/* Part t of the rows, for by_threads(). */
typedef struct im2col_work {
    const conv *g;
    const int64_t *stride;
    const T *image;
    T *columns;
    window_block block;
} im2col_work;

static inline void im2col_part(const void *work, int t, int threads)
{
    const im2col_work *u = work;
    const int64_t rows = im2col_rows(u->g);
    for (int64_t r = part_of(rows, t, threads); r < part_of(rows, t + 1, threads); r++)
        im2col_row(u->g, u->stride, u->image, r, u->block, u->columns + r * u->block.count);
}

/* The inverse: adds the elements of one row to a dense image. */
static inline void col2im_row(const conv *g, T *image, int64_t row, window_block b, const T *from)
{
    const window_offset p = window_offset_of(g, row);
    int64_t first, last;
    windows_inside(g->w, g->ow, g->stride[1], g->pad[1], p.v, &first, &last);
    for (line_iterator l = line_iterator_at(g, b); l.left > 0; line_iterator_next(&l, g)) {
        const element_line e = element_line_of(g, p, &l, first, last);
        T *to = image + ((p.c * g->d + e.z) * g->h + e.y) * g->w + p.v - g->pad[1];
        for (int64_t j = e.first; j < e.last; j++) to[j * g->stride[1]] += from[j - l.first];
        from += l.last - l.first;
    }
}

/* How threads share the work, and the memory for the matrices. Threads take images if there are
 * enough of them; otherwise all threads work on one image. */
typedef struct im2col_plan {
    int threads;
    bool by_image;
    int64_t windows; /* of a block */
    void *columns;   /* for each thread that takes images a matrix of one block */
} im2col_plan;

static inline duet_status im2col_plan_make(const conv *g, const frame *f, bool by_image_allowed,
                                           im2col_plan *h)
{
    const int64_t rows = im2col_rows(g), columns = im2col_columns(g);
    h->threads =
        cpu_blas_apart
            ? 1
            : threads_for((double)(g->n * g->m) * (double)rows * (double)columns * 2 * SECONDS_PER_FLOP);
    h->by_image = by_image_allowed && g->n >= h->threads;
    const int64_t matrices = h->by_image ? h->threads : 1,
                  most = (int64_t)(im2col_most_bytes / sizeof(T)) / matrices / (rows > 0 ? rows : 1);
    h->windows = SMALLER(columns, most > 0 ? most : 1);
    return scratch_take((size_t)(rows * h->windows * matrices) * sizeof(T), f, &h->columns);
}

/* The block of a plan that starts at window `first`. */
static inline window_block im2col_block(const conv *g, const im2col_plan *h, int64_t first)
{
    return (window_block){ first, SMALLER(h->windows, im2col_columns(g) - first) };
}

#endif
