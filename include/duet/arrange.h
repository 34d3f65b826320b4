/* arrange.h - formulas that arrange elements (concat, tile, pad, ...), and statements that write the
 * matrices of convolutions and magic squares. Part of duet.h. */
#include <duet/duet.h> /* which includes this */
#ifndef DUET_ARRANGE_H
#define DUET_ARRANGE_H

/* Build formulas that arrange elements. The operands are any formulas of one element type.
 *     duet_concat   joins the operands along an existing axis; in C duet_concat(axis, a, b, c)
 *     duet_stack    joins operands of equal shape along a new axis; in C duet_stack(axis, a, b, c)
 *     duet_tile     repeats all of x along its last axes: 1 2 becomes 1 2 1 2. If the list is longer than
 *                   x has axes, x gets new axes in front; in C duet_tile(x, 2, 3)
 *     duet_repeat   repeats each element of x along one axis: 1 2 becomes 1 1 2 2
 *     duet_pad      adds before[a] elements at the start of axis a, and after[a] at its end.
 *                   DUET_PAD_CONSTANT pads with `value`, DUET_PAD_EDGE with the nearest element of x.
 *                   DUET_PAD_REFLECT mirrors x at its edge element, which is not repeated: 1 2 3 is padded
 *                   to 3 2 1 2 3 2 1. Wider padding is mirrored again at the opposite edge.
 *                   DUET_PAD_WRAP repeats x: 1 2 3 is padded to 2 3 1 2 3 1 2. In C
 *                   duet_pad(x, .before = { 1, 1 }, .after = { 1, 1 })
 *     duet_roll     shifts the elements by `by` positions along an axis; elements shifted past the end come
 *                   back at the start
 *     duet_im2col   copies the windows of images to columns, so that a convolution becomes a matrix
 *                   product. The result has one matrix for each image. Each of its columns is a window; the
 *                   windows are in row-major order. With windows of h x w elements, row (c h + i) w + j has
 *                   element (i, j) of channel c of every window. Padding is zeros. If you reshape filters of
 *                   m x c x h x w to m x c h w, their product with the result is that of duet_conv2d. In C
 *                   duet_im2col(x, .window = { 3, 3 })
 * Each part of a concatenation is computed directly in its place in the result, and an element-wise
 * operator on a concatenation is computed part by part.
 * Shapes    concat: the sizes of the operands are equal except along the axis. stack: the operands have
 *           equal shapes. pad: x is not empty along axes that are padded, except with DUET_PAD_CONSTANT.
 *           im2col: x is n x c x rows x cols; the result is n x c h w x number of windows
 * Errors    in the result: BAD_ARGUMENT, BAD_SHAPE, BAD_TYPE
 * Source    NumPy's concatenate, stack, tile, repeat, pad and roll; MATLAB's im2col */
typedef enum duet_pad_mode {
    DUET_PAD_CONSTANT,
    DUET_PAD_EDGE,
    DUET_PAD_REFLECT,
    DUET_PAD_WRAP
} duet_pad_mode;
typedef struct duet_padding {
    int64_t before[DUET_RANK_MAX], after[DUET_RANK_MAX];
    duet_pad_mode mode;
    double value;
} duet_padding;
typedef struct duet_windows {
    int32_t window[2], stride[2], pad[2], dilation[2]; /* a stride or dilation of 0 means 1 */
} duet_windows;
DUET_OPERATOR(duet_concat, int axis, int count, const duet_expr *x)
DUET_OPERATOR(duet_stack, int axis, int count, const duet_expr *x)
DUET_OPERATOR(duet_tile, duet_expr x, int count, const int64_t *times)
DUET_OPERATOR(duet_repeat, duet_expr x, int64_t times, int axis)
DUET_OPERATOR(duet_pad, duet_expr x, const duet_padding *options)
DUET_OPERATOR(duet_roll, duet_expr x, int64_t by, int axis)
DUET_OPERATOR(duet_im2col, duet_expr x, const duet_windows *options)
#undef DUET_OPERATOR

/* Writes a magic square of the numbers 1 .. n * n: all rows, columns and both diagonals have the same sum.
 * A 2 x 2 magic square does not exist: the function then writes 1, 3, 4, 2, as MATLAB does. The host computes
 * it.
 * Shapes    n x n
 * Errors    BAD_ARGUMENT, BAD_SHAPE, BAD_TYPE (also if the numbers do not fit the element type), and as
 *           duet_set: m is unchanged */
DUET_API DUET_MUST duet_status duet_magic(duet_matrix *m);

/* Write the matrix of a convolution: duet_matmul(to, x) is the convolution of x with the kernel, or
 * the `part` of it (FULL, SAME or VALID).
 *     duet_convmtx   for a convolution along one axis. Element i, j of `to` is kernel[i + first - j],
 *                    or 0 outside of the kernel. With a kernel of m elements, `first` is 0 for FULL,
 *                    (m - 1) / 2 rounded down for SAME, m - 1 for VALID
 *     duet_convmtx2  for a convolution along two axes, where x has h x w elements. The elements of x
 *                    and of the result are numbered row by row. MATLAB and ETL number them column by
 *                    column: transpose the kernel and swap h and w to get their matrix
 * The kernel may overlap `to`.
 * Shapes    convmtx: kernel [m], m >= 1; to has n columns, the size of x, and a row for each result:
 *           n + m - 1 (FULL), n (SAME), n - m + 1 but at least 0 (VALID). convmtx2: kernel of rank 2;
 *           to has h w columns and a row for each result. The number of results is the product of
 *           the numbers along both axes
 * Errors    BAD_ARGUMENT, BAD_SHAPE, BAD_TYPE, and as duet_set: `to` is unchanged
 * Source    MATLAB's convmtx of a column vector; SciPy's linalg.convolution_matrix */
DUET_API DUET_MUST duet_status duet_convmtx(duet_matrix *to, const duet_matrix *kernel, duet_overlap part);
DUET_API DUET_MUST duet_status duet_convmtx_at(duet_matrix *to, const duet_matrix *kernel, duet_overlap part,
                                               const char *site);
DUET_API DUET_MUST duet_status duet_convmtx2(duet_matrix *to, const duet_matrix *kernel, int h, int w,
                                             duet_overlap part);
DUET_API DUET_MUST duet_status duet_convmtx2_at(duet_matrix *to, const duet_matrix *kernel, int h, int w,
                                                duet_overlap part, const char *site);

#endif
