/* shape_rules.h - the options of an operator, as its shape rule reads them. Private to src/expr. */
#ifndef SHAPE_RULES_H
#define SHAPE_RULES_H

#include "arena.h"
#include "index_list.h"

/* Arrays have one element for each axis of an image behind the channels: width of signals; height
 * and width of images; depth, height and width of volumes. */
typedef struct op_options {
    int64_t window[3], stride[3], pad[3], dilation[3], groups, size[3], more[3];
    int axis, n, part, refine;
    int rank; /* of operators whose result has the sizes `sizes` */
    int64_t sizes[DUET_RANK_MAX], offset;
    int order[DUET_RANK_MAX];
    axis_range range;
    int64_t k;
    double low, high;
    duet_dtype type;
    fourier_rule fourier;
    triangle_attributes triangle;
    einsum_attributes einsum;
    csr_attributes csr;
} op_options;

/* options.c: checks the options of convolutions, pooling and scaling of n axes, and writes them as
 * attributes.
 * Errors: BAD_ARGUMENT */
#define IMAGE_OPTIONS(kind)                                                                                  \
    duet_status options_##kind(enum op op, const node *x, const int32_t *attr, op_options *o);               \
    void attrs_##kind(const op_options *o, node *out);
#define IMAGE_OPTIONS_OF(n)                                                                                  \
    IMAGE_OPTIONS(conv##n)                                                                                   \
    IMAGE_OPTIONS(conv##n##_grad)                                                                            \
    IMAGE_OPTIONS(conv##n##_transposed)                                                                      \
    IMAGE_OPTIONS(pool##n)                                                                                   \
    IMAGE_OPTIONS(pool##n##_grad)                                                                            \
    IMAGE_OPTIONS(scale##n)
IMAGE_OPTIONS_OF(1)
IMAGE_OPTIONS_OF()
IMAGE_OPTIONS_OF(3)

/* view_options.c: the options of operators that select or arrange elements, and the sizes of their
 * results.
 * Errors: BAD_ARGUMENT, BAD_SHAPE */
#define VIEW_OPTIONS(kind)                                                                                   \
    duet_status options_##kind(enum op op, const node *x, const int32_t *attr, op_options *o);               \
    void attrs_##kind(const op_options *o, node *out);
VIEW_OPTIONS(sizes)
VIEW_OPTIONS(order)
VIEW_OPTIONS(range)
VIEW_OPTIONS(offset)
VIEW_OPTIONS(window)

/* An axis of x, negative ones counted from its rank. Errors: BAD_SHAPE */
duet_status no_such_axis(const node *x, int axis) __attribute__((cold));
static inline duet_status check_axis(const node *x, int *axis)
{
    const int given = *axis;
    if (given < 0) *axis += x->rank;
    if (0 <= *axis && *axis < x->rank) return DUET_OK;
    return no_such_axis(x, given);
}

#endif
