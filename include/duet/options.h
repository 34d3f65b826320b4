/* options.h - what operators take beside their operands: steps, padding, axes, triangles. Part of duet.h. */
#include <duet/duet.h> /* which includes this */
#ifndef DUET_OPTIONS_H
#define DUET_OPTIONS_H

/* How a convolution or a pooling steps over an image, along its height and its width. A stride of 0 means 1, or the window; a
 * dilation (the distance between the elements of a window) and a number of groups of 0 mean 1. NULL for either means all zeros.
 * Groups: channels and filters are so many convolutions side by side; with as many as channels each has filters of its own. more:
 * padding at the end of each axis beside that on both sides, as TensorFlow's SAME has it; duet_same_padding says how much. */
typedef struct duet_conv {
    int32_t stride[2], pad[2], dilation[2], groups, more[2];
} duet_conv;
typedef struct duet_pool {
    int32_t window[2], stride[2], pad[2];
} duet_pool;

/* The same for what goes back from a convolution's or a pooling's results. Several sizes of images, and of filters, may give as
 * many:
 *     size        along height and width of what is computed; 0: the least size of an image, the greatest of a filter
 *     output_pad  how many rows and columns more than the least an image has; below the stride */
typedef struct duet_conv_grad {
    int32_t stride[2], pad[2], dilation[2], groups, size[2], more[2];
} duet_conv_grad;
typedef struct duet_conv_transposed {
    int32_t stride[2], pad[2], dilation[2], groups, output_pad[2], more[2];
} duet_conv_transposed;
typedef struct duet_pool_grad {
    int32_t window[2], stride[2], pad[2], size[2];
} duet_pool_grad;

/* How many times an image is taken, along its height and its width; 0 means 1. */
typedef struct duet_scale {
    int32_t scale[2];
} duet_scale;

/* The same of n x c x w signals, along the one axis that they have; */
typedef struct duet_conv1 {
    int32_t stride, pad, dilation, groups, more;
} duet_conv1;
typedef struct duet_pool1 {
    int32_t window, stride, pad;
} duet_pool1;
typedef struct duet_conv1_grad {
    int32_t stride, pad, dilation, groups, size, more;
} duet_conv1_grad;
typedef struct duet_conv1_transposed {
    int32_t stride, pad, dilation, groups, output_pad, more;
} duet_conv1_transposed;
typedef struct duet_pool1_grad {
    int32_t window, stride, pad, size;
} duet_pool1_grad;
typedef struct duet_scale1 {
    int32_t scale;
} duet_scale1;

/* and of n x c x d x h x w volumes, along depth, height and width. */
typedef struct duet_conv3 {
    int32_t stride[3], pad[3], dilation[3], groups, more[3];
} duet_conv3;
typedef struct duet_pool3 {
    int32_t window[3], stride[3], pad[3];
} duet_pool3;
typedef struct duet_conv3_grad {
    int32_t stride[3], pad[3], dilation[3], groups, size[3], more[3];
} duet_conv3_grad;
typedef struct duet_conv3_transposed {
    int32_t stride[3], pad[3], dilation[3], groups, output_pad[3], more[3];
} duet_conv3_transposed;
typedef struct duet_pool3_grad {
    int32_t window[3], stride[3], pad[3], size[3];
} duet_pool3_grad;
typedef struct duet_scale3 {
    int32_t scale[3];
} duet_scale3;

/* What a Fourier transform goes along: `axes` axes, which axis[] names, negative ones counting from the last; 0: all, in order.
 * n[i] is its length along axis[i]: x is cut there, or goes on with zeros; 0: as long as x is. Of inverse real transforms it is
 * the result's length; 0 along the last of the axes then means 2 (m - 1), x having m elements there. A shift takes no n. NULL
 * means all zeros. */
typedef struct duet_fourier {
    int32_t axes, axis[DUET_RANK_MAX], n[DUET_RANK_MAX];
} duet_fourier;

/* Which part of a convolution, as SciPy's mode. With n elements of the first operand along an axis and m of the second, all of it
 * is n + m - 1.
 *     FULL    all of it
 *     SAME    n of these, from element (m - 1) / 2 on, rounded down: the middle; of an even m more is cut off behind
 *     VALID   n - m + 1, from element m - 1 on: where the second operand lies within the first; nothing where it is larger */
typedef enum duet_overlap { DUET_OVERLAP_FULL, DUET_OVERLAP_SAME, DUET_OVERLAP_VALID } duet_overlap;

/* A triangular matrix: the upper triangle is read, or the lower; its diagonal is read, or taken as ones; it is itself, or its
 * transpose. */
typedef struct duet_triangle {
    int32_t lower, unit, transposed;
} duet_triangle;

/* How systems are solved. refine: 0, in the matrices' own type; else, of f64: A is factored in fewer bits, f32 (DUET_REFINE_F32)
 * or, where the GPU has it, f16 (DUET_REFINE_F16), and the solution refined until it is as good as one in f64; where that does
 * not converge, in f64. */
enum { DUET_REFINE_F32 = 1, DUET_REFINE_F16 };
typedef struct duet_solver {
    int32_t refine;
} duet_solver;

#endif
