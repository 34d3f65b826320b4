/* options.h - the options of operators: strides, padding, axes, triangles. Part of duet.h. */
#include <duet/duet.h> /* which includes this */
#ifndef DUET_OPTIONS_H
#define DUET_OPTIONS_H

/* Options of operators on images of shape n x c x h x w: convolution (duet_conv) and pooling (duet_pool). In
 * C write them as named arguments: duet_conv2d(x, w, .stride = {2, 2}, .pad = {1, 1}). Options that you omit
 * are 0. The functions themselves take a pointer; NULL means that all options are 0. A struct has only some
 * of these members. Element 0 of an array is for the height, element 1 for the width.
 *     window    size of the pooling window, at least 1: it must be given
 *     stride    distance between neighbouring windows; 0 means 1, or for pooling the window's size
 *     pad       padding on both sides of each axis
 *     more      additional padding at the end of each axis; TensorFlow's SAME needs it, and
 *               duet_same_padding computes it
 *     dilation  distance between neighbouring elements of a window; 0 means 1
 *     ceil      pooling only. 1: a window that begins within x or its padding in front is pooled, even if it
 *               ends behind the padding at the end. 0: only windows that end within the padding are
 *     exclude_pad   average pooling only. 1: the mean of the elements of x in the window, NaN if there are
 *               none. 0: padding counts as zeros, but not what is behind the padding
 *     ties      max pooling only: which of several equal maxima of a window gets the window's gradient
 *               DUET_TIES_FIRST    the first one in row-major order; of several NaNs the first one
 *               DUET_TIES_SHARED   each gets the same part; windows with NaN have no gradient. Slower
 *     groups    the number of independent convolutions into which channels and filters are divided; 0
 *               means 1. With one group for each channel, each channel has its own filters
 * For convolutions (not for their gradients and not for transposed ones) and for pooling, pad and more may be
 * negative, and pad may be larger than the window. Negative padding removes elements of x: pad in front, and
 * pad + more at the end.
 * Units     elements
 * Errors    in the result: BAD_ARGUMENT: a negative value of another option, a window less than 1, padding of
 *           a gradient that is negative, padding of a pooling gradient that is not less than its window,
 *           exclude_pad of max pooling, ties of average pooling. BAD_SHAPE: the window is larger than the
 *           padded x, or negative padding removes more than x has. UNSUPPORTED: a dilation that needs more
 *           than 64 parts */
typedef enum duet_pool_ties { DUET_TIES_FIRST, DUET_TIES_SHARED } duet_pool_ties;
typedef struct duet_conv {
    int32_t stride[2], pad[2], dilation[2], groups, more[2];
} duet_conv;
typedef struct duet_pool {
    int32_t window[2], stride[2], pad[2], more[2], dilation[2], ceil, exclude_pad, ties;
} duet_pool;

/* Options of the gradients of convolution and pooling, and of transposed convolution. They have the
 * options above and one more, for the size of the result. It is needed because this size does not
 * follow from the operands: a convolution may give results of the same size for images of different
 * sizes, or for filters of different sizes.
 *     size        height and width of the gradient; 0 means the smallest possible image, or the
 *                 largest possible filter
 *     output_pad  how many rows and columns the result has more than the smallest possible image. It
 *                 must be less than the stride
 * Units     elements */
typedef struct duet_conv_grad {
    int32_t stride[2], pad[2], dilation[2], groups, size[2], more[2];
} duet_conv_grad;
typedef struct duet_conv_transposed {
    int32_t stride[2], pad[2], dilation[2], groups, output_pad[2], more[2];
} duet_conv_transposed;
typedef struct duet_pool_grad {
    int32_t window[2], stride[2], pad[2], size[2];
} duet_pool_grad;

/* Options of upsampling.
 *     scale   the factor by which height and width grow; 0 means 1 */
typedef struct duet_scale {
    int32_t scale[2];
} duet_scale;

/* The same options for signals of shape n x c x w, along the axis w. */
typedef struct duet_conv1 {
    int32_t stride, pad, dilation, groups, more;
} duet_conv1;
typedef struct duet_pool1 {
    int32_t window, stride, pad, more, dilation, ceil, exclude_pad, ties;
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

/* The same options for volumes of shape n x c x d x h x w, along depth, height and width. */
typedef struct duet_conv3 {
    int32_t stride[3], pad[3], dilation[3], groups, more[3];
} duet_conv3;
typedef struct duet_pool3 {
    int32_t window[3], stride[3], pad[3], more[3], dilation[3], ceil, exclude_pad, ties;
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

/* Options of Fourier transforms. NULL means that all are 0.
 *     axes   number of axes to transform; 0 means all axes, in order
 *     axis   the axes; a negative one counts from the last
 *     n      n[i] is the length of the transform along axis[i]: x is truncated to it, or padded with
 *            zeros. 0 means the size of x along this axis. For an inverse real transform n[i] is the
 *            length of the result, and 0 along the last transformed axis means 2 (m - 1), where m is
 *            the size of x. A length is at most INT32_MAX. For duet_fftshift and duet_ifftshift all n
 *            must be 0 */
typedef struct duet_fourier {
    int32_t axes, axis[DUET_RANK_MAX], n[DUET_RANK_MAX];
} duet_fourier;

/* Which part of a convolution to compute, like the argument `mode` in SciPy, except that VALID never
 * exchanges the operands. Along an axis, the first operand has n elements and the second m. The full
 * convolution then has n + m - 1 elements.
 *     FULL    all n + m - 1 elements
 *     SAME    n elements, starting at element (m - 1) / 2, rounded down. If m is even, the number of
 *             elements omitted at the end is one larger than at the start
 *     VALID   the n - m + 1 elements from element m - 1 on: those where the second operand is
 *             entirely within the first one. No elements if m > n */
typedef enum duet_overlap { DUET_OVERLAP_FULL, DUET_OVERLAP_SAME, DUET_OVERLAP_VALID } duet_overlap;

/* How scattered values are combined with the elements of x, in the order of the indices.
 *     DUET_SCATTER_SET   the value replaces the element
 *     DUET_SCATTER_ADD   their sum does
 *     DUET_SCATTER_MUL   their product does
 *     DUET_SCATTER_MIN   the smaller one remains
 *     DUET_SCATTER_MAX   the larger one remains */
typedef enum duet_scatter_how {
    DUET_SCATTER_SET,
    DUET_SCATTER_ADD,
    DUET_SCATTER_MUL,
    DUET_SCATTER_MIN,
    DUET_SCATTER_MAX
} duet_scatter_how;

/* Options of duet_interpolate. i is an index in the result, n and m are the sizes of x and of the result
 * along an axis.
 *     size        the sizes of the result; 0 means that of x
 *     mode        how elements are computed
 *                 DUET_INTERPOLATE_NEAREST   the nearest element; of two equally near ones the later one
 *                 DUET_INTERPOLATE_LINEAR    linear interpolation between two elements
 *                 DUET_INTERPOLATE_CUBIC     Keys' cubic convolution of four elements
 *     align       the place in x that element i belongs to
 *                 DUET_ALIGN_CENTERS    (i + 1/2) n / m - 1/2: pixels are squares with centers
 *                 DUET_ALIGN_CORNERS    i (n - 1) / (m - 1): the first and last elements stay; 0 if m is 1
 *                 DUET_ALIGN_FIRST      i n / m, rounded down for DUET_INTERPOLATE_NEAREST
 *     antialias   1: where the result is smaller than x, the weights become wider by n / m, so that all
 *                 elements of x count. Only with DUET_ALIGN_CENTERS, and not for DUET_INTERPOLATE_NEAREST
 *     cubic       the parameter of the cubic convolution; 0 means -0.75, or -0.5 with antialias
 * Elements outside of x are its edge elements. Where antialias makes weights wider they do not count. */
typedef enum duet_interpolate_mode {
    DUET_INTERPOLATE_NEAREST,
    DUET_INTERPOLATE_LINEAR,
    DUET_INTERPOLATE_CUBIC
} duet_interpolate_mode;
typedef enum duet_align { DUET_ALIGN_CENTERS, DUET_ALIGN_CORNERS, DUET_ALIGN_FIRST } duet_align;
typedef struct duet_interpolation {
    int64_t size[DUET_RANK_MAX];
    duet_interpolate_mode mode;
    duet_align align;
    int antialias;
    double cubic;
} duet_interpolation;

/* Which one of the possible indices duet_searchsorted gives for a value that the list has: the index of
 * the first equal element, or the one behind the last equal element. */
typedef enum duet_side { DUET_SIDE_LEFT, DUET_SIDE_RIGHT } duet_side;

/* The norms of duet_matrix_norm and duet_cond, as NumPy's parameter `ord`.
 *     FRO         the square root of the sum of squared magnitudes (Frobenius)
 *     NUC         the sum of the singular values (nuclear norm)
 *     INF         the largest sum of the magnitudes of a row; MINUS_INF: the smallest one
 *     1           the largest sum of the magnitudes of a column; MINUS_1: the smallest one
 *     2           the largest singular value; MINUS_2: the smallest one */
typedef enum duet_matrix_norms {
    DUET_NORM_FRO,
    DUET_NORM_NUC,
    DUET_NORM_INF,
    DUET_NORM_MINUS_INF,
    DUET_NORM_1,
    DUET_NORM_MINUS_1,
    DUET_NORM_2,
    DUET_NORM_MINUS_2
} duet_matrix_norms;

/* Options of duet_solve_triangular. Each is 0 or 1.
 *     lower       read the lower triangle; 0: the upper one
 *     unit        take the elements of the diagonal as 1; 0: read them
 *     transposed  solve with the transpose of the matrix */
typedef struct duet_triangle {
    int32_t lower, unit, transposed;
} duet_triangle;

/* Options of duet_solve.
 *     refine  how to solve a system of f64 or c128:
 *             0                 compute in f64
 *             DUET_REFINE_F32   factorise in f32, and refine the solution until it is as accurate as
 *                               one computed in f64. If that does not converge, compute in f64
 *             DUET_REFINE_F16   the same, but factorise in f16 if the GPU can; otherwise, and on the CPU, in
 *                               f32
 * Errors    in the result: BAD_ARGUMENT: another value. Of the statement: UNSUPPORTED: refine is not 0, and
 *           the system is not f64 or c128 */
enum { DUET_REFINE_F32 = 1, DUET_REFINE_F16 };
typedef struct duet_solver {
    int32_t refine;
} duet_solver;

#endif
