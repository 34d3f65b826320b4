/* row_iterator.h - iterates over a layout by rows; a row is the last axis. Template. */
#ifndef ROW_ITERATOR_H
#define ROW_ITERATOR_H

#include "shape.h"
#include "template_prelude.h"
#include <string.h>

/* A position: one row of a layout. */
typedef struct row_iterator {
    int64_t index[DUET_RANK_MAX]; /* along all axes but the last */
    int64_t offset;               /* of the first element of the row, in elements */
} row_iterator;

static inline row_iterator row_iterator_at(const layout *l, int64_t row)
{
    row_iterator w = { .offset = 0 };
    for (int a = l->rank - 1; a-- > 0 && row > 0;) {
        w.index[a] = row % l->size[a];
        w.offset += w.index[a] * l->stride[a];
        row /= l->size[a];
    }
    return w;
}

static inline void row_iterator_next(row_iterator *w, const layout *l)
{
    for (int a = l->rank - 1; a-- > 0;) {
        w->offset += l->stride[a];
        if (++w->index[a] < l->size[a]) return;
        w->offset -= w->index[a] * l->stride[a];
        w->index[a] = 0;
    }
}

static inline int64_t row_length(const layout *l) { return l->size[l->rank - 1]; }
static inline int64_t row_stride(const layout *l) { return l->stride[l->rank - 1]; }

/* Gathers n elements that are `stride` apart. scatter_row() is the inverse. */
static inline void gather_row(T *to, const T *from, int64_t stride, int64_t n)
{
    if (stride == 1) memcpy(to, from, (size_t)n * sizeof(T));
    else if (stride == 0)
        for (int64_t i = 0; i < n; i++) to[i] = *from;
    else if (stride == 2) /* real or imaginary parts of complex elements */
        for (int64_t i = 0; i < n; i++) to[i] = from[2 * i];
    else
        for (int64_t i = 0; i < n; i++) to[i] = from[i * stride];
}

static inline void scatter_row(T *to, const T *from, int64_t stride, int64_t n)
{
    if (stride == 1) memcpy(to, from, (size_t)n * sizeof(T));
    else if (stride == 2)
        for (int64_t i = 0; i < n; i++) to[2 * i] = from[i];
    else
        for (int64_t i = 0; i < n; i++) to[i * stride] = from[i];
}

/* Gathers elements first .. first + n - 1, in row-major order. */
static inline void gather_range(T *to, const T *from, const layout *l, int64_t first, int64_t n)
{
    int64_t length = row_length(l), col = first % length;
    row_iterator w = row_iterator_at(l, first / length);
    while (n > 0) {
        int64_t count = SMALLER(length - col, n);
        gather_row(to, from + w.offset + col * row_stride(l), row_stride(l), count);
        to += count;
        n -= count;
        col = 0;
        row_iterator_next(&w, l);
    }
}

#endif
