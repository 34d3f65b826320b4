/* triangle.h - the triangular operand of a step, as BLAS takes it. One of its axes must have stride 1. */
#ifndef TRIANGLE_H
#define TRIANGLE_H

#include "backend.h"

typedef struct triangle {
    bool lower, unit, transposed; /* as BLAS sees the column-major matrix */
    int64_t pitch;                /* between columns; 0: the matrix must be copied to column-major order */
} triangle;

static inline int64_t pitch_along(const layout *l, int axis)
{
    const int64_t pitch = l->stride[1 - axis];
    return l->stride[axis] == 1 && pitch >= l->size[axis] && pitch >= 1 && pitch <= INT32_MAX ? pitch : 0;
}

static inline triangle step_triangle(const step *s)
{
    const triangle_attributes *a = &s->attr.triangle;
    const bool lower = a->lower, unit = a->unit, transposed = a->transposed;
    const int64_t pitch = pitch_along(&s->in[0].at, 0);
    if (pitch) return (triangle){ lower, unit, transposed, pitch };
    return (triangle){ !lower, unit, !transposed, pitch_along(&s->in[0].at, 1) };
}

#endif
