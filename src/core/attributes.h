/* attributes.h - the options of operators, one struct per family. Values of a graph and steps of a
 * machine store them. */
#ifndef ATTRIBUTES_H
#define ATTRIBUTES_H

#include <assert.h>
#include <duet/duet.h>

/* A reduction. axes: the reduced axes as bits, or REDUCE_ALL_AXES. keep: whether the result keeps the
 * reduced axes, with one element. */
typedef struct reduce_attributes {
    int32_t axes, keep;
} reduce_attributes;

/* Options of convolutions and pooling are stored for height, width and depth, in this order. Only
 * volumes have a depth. */
enum { SPATIAL_HEIGHT, SPATIAL_WIDTH, SPATIAL_DEPTH, SPATIAL_AXES };

/* The index of the options of axis i of `axes` spatial axes. The width is the last axis of an operand,
 * and the depth the first spatial one. */
static inline int spatial_axis(int i, int axes)
{
    const int from_last = axes - 1 - i;
    return from_last > 1 ? SPATIAL_DEPTH : 1 - from_last;
}

/* Which axes of a volume are pooled. Steps do not need it: their operands have two spatial axes. */
enum pool_form { POOL_IMAGES, POOL_PLANES, POOL_DEPTH };

/* Upsampling uses only `window` and `form`: each element becomes a window of equal elements. */
typedef struct pool_attributes {
    int32_t window[SPATIAL_AXES], stride[SPATIAL_AXES], pad[SPATIAL_AXES];
    int32_t form; /* enum pool_form */
} pool_attributes;

/* What the axes of a convolution's operands are: images (n c w, n c h w, n c d h w); one plain
 * array; every image with every filter, along the last two axes; each image with its own filter.
 * Steps do not need it: their operands are images. */
enum conv_form { CONV_IMAGES, CONV_PLAIN, CONV_MULTI, CONV_DEEP };

typedef struct conv_attributes {
    int32_t stride[SPATIAL_AXES], pad[SPATIAL_AXES], dilation[SPATIAL_AXES];
    int32_t pad_end[SPATIAL_AXES]; /* padding at the end of an axis, in addition to pad */
    int32_t groups;
    int32_t flip;         /* 1: the filters are reversed along their spatial axes, as convolve2d does */
    int32_t form;         /* enum conv_form */
    pool_attributes pool; /* of an epilogue with pooling; else zeros */
} conv_attributes;

/* fftshift uses only `axes` and `kind`, which is 0, or 1 for the inverse. */
enum fourier_kind { FOURIER_FORWARD, FOURIER_INVERSE, FOURIER_REAL, FOURIER_REAL_INVERSE };
typedef struct fourier_attributes {
    int32_t axes;                  /* as bits */
    int32_t last;                  /* the axis that a real transform halves */
    int32_t length[DUET_RANK_MAX]; /* of the transform along each axis; 0: the axis is not transformed */
    int32_t kind;                  /* enum fourier_kind */
} fourier_attributes;

/* Convolutions by Fourier transforms. */
typedef struct overlap_attributes {
    int32_t part;    /* duet_overlap */
    int32_t reverse; /* the second operand is reversed */
} overlap_attributes;

/* Scans, gathers, scatters and sorts. axis: the axis that they work along, not negative. k: the number
 * of elements that top_k returns. smallest: top_k returns the smallest elements; only in steps. */
typedef struct index_attributes {
    int32_t axis, k, smallest;
} index_attributes;

typedef struct one_hot_attributes {
    int32_t classes, type; /* type: duet_dtype */
} one_hot_attributes;

typedef struct histogram_attributes {
    double low, high;
    int32_t bins;
} histogram_attributes;

typedef struct cast_attributes {
    int32_t type; /* duet_dtype */
} cast_attributes;

typedef struct solver_attributes {
    int32_t refine; /* duet_refine */
} solver_attributes;

/* The options of solve_triangular, as bools. */
typedef struct triangle_attributes {
    int32_t lower, unit, transposed;
} triangle_attributes;

/* Of sparse matrices (core/csr.h). columns: of the matrix; csr_solve does not use it. */
typedef struct csr_attributes {
    int32_t transposed; /* bool */
    int64_t columns;
} csr_attributes;

/* core/einsum.h says how letters are packed. */
#define EINSUM_WORDS 4
typedef struct einsum_attributes {
    int32_t letters[EINSUM_WORDS];
} einsum_attributes;

/* Where gain and bias come from: both are absent, or neither is. */
enum { NORM_GAIN, NORM_BIAS, NORM_SOURCES };
enum norm_source { NORM_ABSENT, NORM_OPERAND, NORM_NUMBER };
typedef struct layer_norm_attributes {
    int32_t source[NORM_SOURCES]; /* enum norm_source */
    int32_t axes;                 /* how many of the last axes are a row */
} layer_norm_attributes;

/* id: of the collective (core/communicator.h). sequence: its number in the statement. Every rank runs the
 * collectives of a statement in this order. */
typedef struct collective_attributes {
    int32_t id, sequence;
} collective_attributes;

/* The output consists of runs of `run` elements of a larger array, in row-major order. The first run begins
 * at element `first` of the array, and the next ones every `apart` elements. run is 0: the output is the
 * whole array. */
typedef struct random_attributes {
    int32_t distribution, proposal; /* core/random_step.h */
    int64_t first, run, apart;
} random_attributes;

/* Only values of a graph have the attributes from here on. */
typedef struct load_attributes {
    int32_t purpose; /* graph.h: enum load_purpose, or LOAD_ROOT + the destination's index */
} load_attributes;
typedef struct view_attributes {
    int64_t offset;                /* of the first element, from the operand's first one, */
    int64_t stride[DUET_RANK_MAX]; /* and of each axis, in elements */
} view_attributes;
typedef struct join_attributes {
    int32_t re, im; /* values */
} join_attributes;
typedef struct hole_attributes {
    int32_t which; /* 0, 1, ...: the hole's number in its pattern */
} hole_attributes;

/* The operator says which member is valid. All other bytes are zero in values of a graph, which
 * are compared as words. */
#define ATTRIBUTE_WORDS 26
typedef union attributes {
    int32_t word[ATTRIBUTE_WORDS]; /* the first member, so that { 0 } clears all of them */
    reduce_attributes reduce;
    pool_attributes pool;
    conv_attributes conv;
    fourier_attributes fourier;
    overlap_attributes overlap;
    index_attributes index;
    one_hot_attributes one_hot;
    histogram_attributes histogram;
    cast_attributes cast;
    solver_attributes solver;
    triangle_attributes triangle;
    einsum_attributes einsum;
    csr_attributes csr;
    layer_norm_attributes layer_norm;
    collective_attributes collective;
    random_attributes random;
    load_attributes load;
    join_attributes join;
    view_attributes view;
    hole_attributes hole;
} attributes;
static_assert(sizeof(attributes) == ATTRIBUTE_WORDS * sizeof(int32_t), "word[] is the largest member");

#endif
