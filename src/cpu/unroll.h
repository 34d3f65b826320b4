/* unroll.h - the windows of an image as columns of a matrix, and added back. A template.
 *
 * The matrix is of one group: a row for each element of its filters, a column for each window. */
#ifndef UNROLL_H
#define UNROLL_H

#include "blas.h"
#include "conv.h"
#include "threads.h"
#include "walk.h"
#include "window.h"

static inline int64_t unrolled_rows(const conv *g) { return g->depth * g->kh * g->kw; }
static inline int64_t unrolled_columns(const conv *g) { return g->oh * g->ow; }

/* Element (c, u, v) of all windows of a group's image, whose strides are as of its layout; 0 outside of it. */
static inline void row_of_windows(const conv *g, const int64_t *stride, const T *image, int64_t row, T *to)
{
    const int64_t v = row % g->kw * g->dilation[1], u = row / g->kw % g->kh * g->dilation[0];
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

/* The same back: added to the elements of a dense image. */
static inline void add_row_of_windows(const conv *g, T *image, int64_t row, const T *from)
{
    const int64_t v = row % g->kw * g->dilation[1], u = row / g->kw % g->kh * g->dilation[0];
    T *plane = image + row / (g->kw * g->kh) * g->h * g->w;
    int64_t first, last;
    windows_inside(g->w, g->ow, g->stride[1], g->pad[1], v, &first, &last);
    for (int64_t i = 0; i < g->oh; i++, from += g->ow) {
        const int64_t y = i * g->stride[0] - g->pad[0] + u;
        if (y < 0 || y >= g->h) continue;
        T *to = plane + y * g->w + v - g->pad[1];
        for (int64_t j = first; j < last; j++) to[j * g->stride[1]] += from[j];
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
    h->threads = cpu_blas_apart ? 1 : threads_for((double)(g->n * g->m) * (double)each * 2 * SECONDS_PER_FLOP);
    h->by_image = may_split && g->n >= h->threads;
    size_t bytes;
    if (__builtin_mul_overflow((size_t)each, sizeof(T) * (size_t)(h->by_image ? h->threads : 1), &bytes))
        return fail(DUET_NO_MEMORY, "a convolution: no memory for windows of %lld numbers an image", (long long)each);
    return scratch_take(bytes, f, &h->columns);
}

#endif
