/* row_iterator.h - going through a layout row by row: a row is its last axis. A template. */
#ifndef WALK_H
#define WALK_H

#include "shape.h"
#include "template_prelude.h"
#include <string.h>

/* The row at which a walk stands. */
typedef struct walk {
    int64_t at[DUET_RANK_MAX]; /* indices along all axes but the last */
    int64_t offset;            /* of its first element */
} walk;

static inline walk walk_to(const layout *l, int64_t row)
{
    walk w = { .offset = 0 };
    for (int a = l->rank - 1; a-- > 0 && row > 0;) {
        w.at[a] = row % l->size[a];
        w.offset += w.at[a] * l->stride[a];
        row /= l->size[a];
    }
    return w;
}

static inline void walk_on(walk *w, const layout *l)
{
    for (int a = l->rank - 1; a-- > 0;) {
        w->offset += l->stride[a];
        if (++w->at[a] < l->size[a]) return;
        w->offset -= w->at[a] * l->stride[a];
        w->at[a] = 0;
    }
}

static inline int64_t row_length(const layout *l) { return l->size[l->rank - 1]; }
static inline int64_t row_stride(const layout *l) { return l->stride[l->rank - 1]; }

/* n elements, `stride` apart, one after the other; and back. */
static inline void row_in(T *to, const T *from, int64_t stride, int64_t n)
{
    if (stride == 1) memcpy(to, from, (size_t)n * sizeof(T));
    else if (stride == 0)
        for (int64_t i = 0; i < n; i++) to[i] = *from;
    else if (stride == 2) /* halves of complex elements */
        for (int64_t i = 0; i < n; i++) to[i] = from[2 * i];
    else
        for (int64_t i = 0; i < n; i++) to[i] = from[i * stride];
}

static inline void row_out(T *to, const T *from, int64_t stride, int64_t n)
{
    if (stride == 1) memcpy(to, from, (size_t)n * sizeof(T));
    else if (stride == 2)
        for (int64_t i = 0; i < n; i++) to[2 * i] = from[i];
    else
        for (int64_t i = 0; i < n; i++) to[i * stride] = from[i];
}

/* Elements first .. first + n - 1, in row-major order. */
static inline void run_in(T *to, const T *from, const layout *l, int64_t first, int64_t n)
{
    int64_t length = row_length(l), col = first % length;
    walk w = walk_to(l, first / length);
    while (n > 0) {
        int64_t some = SMALLER(length - col, n);
        row_in(to, from + w.offset + col * row_stride(l), row_stride(l), some);
        to += some, n -= some, col = 0;
        walk_on(&w, l);
    }
}

#endif
