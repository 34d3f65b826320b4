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

/* The elements of one row in all windows that start in one plane. */
static inline void im2col_plane(const conv *g, const int64_t *stride, const T *plane, window_offset p, T *to)
{
    int64_t first, last;
    windows_inside(g->w, g->ow, g->stride[1], g->pad[1], p.v, &first, &last);
    plane += (p.v - g->pad[1]) * stride[4];
    for (int64_t i = 0; i < g->oh; i++, to += g->ow) {
        const int64_t y = i * g->stride[0] - g->pad[0] + p.u;
        const bool outside = y < 0 || y >= g->h;
        memset(to, 0, (size_t)(outside ? g->ow : first) * sizeof(T));
        if (outside) continue;
        const int64_t column_step = g->stride[1] * stride[4];
        gather_row(to + first, plane + y * stride[3] + first * column_step, column_step, last - first);
        memset(to + last, 0, (size_t)(g->ow - last) * sizeof(T));
    }
}

/* One row of the matrix. `stride` is that of the image's layout with depth. Elements in the padding
 * are 0. */
static inline void im2col_row(const conv *g, const int64_t *stride, const T *image, int64_t row, T *to)
{
    const window_offset p = window_offset_of(g, row);
    const int64_t lines = g->oh * g->ow;
    for (int64_t k = 0; k < g->od; k++, to += lines) {
        const int64_t z = k * g->stride[2] - g->pad[2] + p.t;
        if (z < 0 || z >= g->d) memset(to, 0, (size_t)lines * sizeof(T));
        else im2col_plane(g, stride, image + p.c * stride[1] + z * stride[2], p, to);
    }
}

/* Part t of the rows, for by_threads(). */
typedef struct im2col_work {
    const conv *g;
    const int64_t *stride;
    const T *image;
    T *columns;
} im2col_work;

static inline void im2col_part(const void *work, int t, int threads)
{
    const im2col_work *u = work;
    const int64_t rows = im2col_rows(u->g), each = im2col_columns(u->g);
    for (int64_t r = part_of(rows, t, threads); r < part_of(rows, t + 1, threads); r++)
        im2col_row(u->g, u->stride, u->image, r, u->columns + r * each);
}

/* The inverse: adds the elements of one row to a dense image. */
static inline void col2im_plane(const conv *g, T *plane, window_offset p, const T *from)
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

static inline void col2im_row(const conv *g, T *image, int64_t row, const T *from)
{
    const window_offset p = window_offset_of(g, row);
    for (int64_t k = 0; k < g->od; k++, from += g->oh * g->ow) {
        const int64_t z = k * g->stride[2] - g->pad[2] + p.t;
        if (z >= 0 && z < g->d) col2im_plane(g, image + (p.c * g->d + z) * g->h * g->w, p, from);
    }
}

/* How threads share the work, and the memory for the matrices. Threads take images if there are
 * enough of them; otherwise all threads work on one image. */
typedef struct im2col_plan {
    int threads;
    bool by_image;
    void *columns;
} im2col_plan;

static inline duet_status im2col_plan_make(const conv *g, const frame *f, bool by_image_allowed,
                                           im2col_plan *h)
{
    const int64_t each = im2col_rows(g) * im2col_columns(g);
    h->threads =
        cpu_blas_apart ? 1 : threads_for((double)(g->n * g->m) * (double)each * 2 * SECONDS_PER_FLOP);
    h->by_image = by_image_allowed && g->n >= h->threads;
    size_t bytes;
    if (__builtin_mul_overflow((size_t)each, sizeof(T) * (size_t)(h->by_image ? h->threads : 1), &bytes))
        return fail(DUET_NO_MEMORY,
                    "no host memory for the im2col matrix of a convolution, %lld elements an image",
                    (long long)each);
    return scratch_take(bytes, f, &h->columns);
}

#endif
