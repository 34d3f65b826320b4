/* im2col.h - the windows of an image as columns of a matrix, and added back. A template.
 *
 * The matrix is of one group: a row for each element of its filters, a column for each window. */
#ifndef UNROLL_H
#define UNROLL_H

#include "blas.h"
#include "conv.h"
#include "pool_window.h"
#include "row_iterator.h"
#include "threads.h"

static inline int64_t unrolled_rows(const conv *g) { return g->depth * g->kd * g->kh * g->kw; }
static inline int64_t unrolled_columns(const conv *g) { return g->od * g->oh * g->ow; }

/* Where a row of the matrix has its elements: channel, and, as far apart as dilation says, plane t, line u and column v of the window. */
typedef struct place_in_window {
    int64_t c, t, u, v;
} place_in_window;

static inline place_in_window place_of_row(const conv *g, int64_t row)
{
    place_in_window p = { .v = row % g->kw * g->dilation[1] };
    p.u = (row /= g->kw) % g->kh * g->dilation[0];
    p.t = (row /= g->kh) % g->kd * g->dilation[2];
    p.c = row / g->kd;
    return p;
}

/* The lines of one plane: of all windows that begin in it. */
static inline void lines_of_windows(const conv *g, const int64_t *stride, const T *plane, place_in_window p,
                                    T *to)
{
    int64_t first, last;
    windows_inside(g->w, g->ow, g->stride[1], g->pad[1], p.v, &first, &last);
    plane += (p.v - g->pad[1]) * stride[4];
    for (int64_t i = 0; i < g->oh; i++, to += g->ow) {
        const int64_t y = i * g->stride[0] - g->pad[0] + p.u;
        const bool outside = y < 0 || y >= g->h;
        memset(to, 0, (size_t)(outside ? g->ow : first) * sizeof(T));
        if (outside) continue;
        const int64_t apart = g->stride[1] * stride[4];
        gather_row(to + first, plane + y * stride[3] + first * apart, apart, last - first);
        memset(to + last, 0, (size_t)(g->ow - last) * sizeof(T));
    }
}

/* A row of the matrix of a group's image, whose strides are as of its layout with depth; 0 outside of it. */
static inline void row_of_windows(const conv *g, const int64_t *stride, const T *image, int64_t row, T *to)
{
    const place_in_window p = place_of_row(g, row);
    const int64_t lines = g->oh * g->ow;
    for (int64_t k = 0; k < g->od; k++, to += lines) {
        const int64_t z = k * g->stride[2] - g->pad[2] + p.t;
        if (z < 0 || z >= g->d) memset(to, 0, (size_t)lines * sizeof(T));
        else lines_of_windows(g, stride, image + p.c * stride[1] + z * stride[2], p, to);
    }
}

/* Some rows of it, for by_threads. */
typedef struct unrolling {
    const conv *g;
    const int64_t *stride;
    const T *image;
    T *columns;
} unrolling;

static inline void unroll_some(const void *work, int t, int threads)
{
    const unrolling *u = work;
    const int64_t rows = unrolled_rows(u->g), each = unrolled_columns(u->g);
    for (int64_t r = part_of(rows, t, threads); r < part_of(rows, t + 1, threads); r++)
        row_of_windows(u->g, u->stride, u->image, r, u->columns + r * each);
}

/* The same back: added to the elements of a dense image. */
static inline void add_lines_of_windows(const conv *g, T *plane, place_in_window p, const T *from)
{
    int64_t first, last;
    windows_inside(g->w, g->ow, g->stride[1], g->pad[1], p.v, &first, &last);
    for (int64_t i = 0; i < g->oh; i++, from += g->ow) {
        const int64_t y = i * g->stride[0] - g->pad[0] + p.u;
        if (y < 0 || y >= g->h) continue;
        T *to = plane + y * g->w + p.v - g->pad[1];
        for (int64_t j = first; j < last; j++) to[j * g->stride[1]] += from[j];
    }
}

static inline void add_row_of_windows(const conv *g, T *image, int64_t row, const T *from)
{
    const place_in_window p = place_of_row(g, row);
    for (int64_t k = 0; k < g->od; k++, from += g->oh * g->ow) {
        const int64_t z = k * g->stride[2] - g->pad[2] + p.t;
        if (z >= 0 && z < g->d) add_lines_of_windows(g, image + (p.c * g->d + z) * g->h * g->w, p, from);
    }
}

/* How the images are shared, and room for their unrolled windows. Threads take images where there are enough, and share each one where
 * there are not. */
typedef struct sharing {
    int threads;
    bool by_image;
    void *columns;
} sharing;

static inline duet_status share(const conv *g, const frame *f, bool may_split, sharing *h)
{
    const int64_t each = unrolled_rows(g) * unrolled_columns(g);
    h->threads =
        cpu_blas_apart ? 1 : threads_for((double)(g->n * g->m) * (double)each * 2 * SECONDS_PER_FLOP);
    h->by_image = may_split && g->n >= h->threads;
    size_t bytes;
    if (__builtin_mul_overflow((size_t)each, sizeof(T) * (size_t)(h->by_image ? h->threads : 1), &bytes))
        return fail(DUET_NO_MEMORY, "a convolution: no memory for windows of %lld numbers an image",
                    (long long)each);
    return scratch_take(bytes, f, &h->columns);
}

#endif
