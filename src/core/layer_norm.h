/* layer_norm.h - a step of layer_norm: its options, and the strides of its operands along a row. */
#ifndef LAYER_NORM_H
#define LAYER_NORM_H

#include "backend.h"

/* Gain or bias: the operand, or NULL if it is a number or absent; and the number, or 0. */
static inline const operand *norm_operand(const step *s, int which)
{
    const int32_t *from = s->attr.layer_norm.source;
    const bool second = which == NORM_BIAS && from[NORM_GAIN] == NORM_OPERAND;
    return from[which] == NORM_OPERAND ? &s->in[1 + second] : NULL;
}
static inline double norm_number(const step *s, const frame *f, int which)
{
    const int32_t *from = s->attr.layer_norm.source;
    const bool second = which == NORM_BIAS && from[NORM_GAIN] == NORM_NUMBER;
    return from[which] == NORM_NUMBER ? f->num[s->num[1 + second]] : 0;
}

/* The offset of element i of a row is i / run * stride. */
typedef struct row_path {
    int64_t run, stride;
} row_path;

/* Describes rows over the last `inner` axes of l. false: they cannot be described so. */
static inline bool norm_path(const layout *l, int inner, row_path *p)
{
    const int64_t *size = l->size + l->rank - 1, *stride = l->stride + l->rank - 1;
    if (inner == 1 || (inner == 2 && stride[-1] == *size * *stride)) *p = (row_path){ 1, *stride };
    else if (inner == 2 && *stride == 0) *p = (row_path){ *size, stride[-1] };
    else return false;
    return true;
}

static inline int64_t norm_length(const step *s)
{
    int64_t n = 1;
    for (int a = 1; a <= s->inner; a++) n *= s->out[0].at.size[s->out[0].at.rank - a];
    return n;
}

/* NULL, or why no machine supports such a step. */
static inline const char *norm_unsupported(const step *s)
{
    row_path p;
    if (!layout_is_dense(&s->out[0].at)) return "the result must be contiguous";
    if (!norm_path(&s->in[0].at, s->inner, &p) || p.run != 1)
        return "the elements of a row must have one stride";
    for (int k = 1; k < s->ins; k++)
        if (!norm_path(&s->in[k].at, s->inner, &p)) return "gain and bias must have one stride along a row";
    return NULL;
}

#endif
