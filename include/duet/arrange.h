/* arrange.h - shapes by copies, and matrices that are made of windows or of kernels. Part of duet.h. */
#include <duet/duet.h> /* which includes this */
#ifndef DUET_ARRANGE_H
#define DUET_ARRANGE_H

/* Statements that write every element of `to` with those of other matrices of its element type, which may be views, and may be
 * parts of `to`: they are read before anything is written. Each is one pass or more over views; what needs no copy is a view
 * (duet_split, duet_flipped, duet_broadcast_to, ...).
 *     duet_concatenate  the parts one after the other along an axis that they have; in C duet_concatenate(to, axis, a, b, c)
 *     duet_stack        the parts, of one shape, one after the other along an axis that they do not have; in C as before
 *     duet_tile         from, again and again along every axis
 *     duet_repeat       each element of from so many times along an axis
 *     duet_pad          from, with before[a] elements in front of it along axis a, and so many behind it that it fills `to`:
 *                       DUET_PAD_CONSTANT, value; DUET_PAD_EDGE, what is next to them; DUET_PAD_REFLECT, from mirrored at its
 *                       edge, which is not doubled, to and fro if need be
 *     duet_roll         from, moved on by `by` places along an axis, what falls off the end being put in at the start
 *     duet_magic        the magic square of n x n: 1 .. n * n, all rows, columns and diagonals having one sum. It is written by
 *                       the host
 * Shapes    concatenate: the sizes along the axis add up to that of `to`, the others are equal; stack: along the axis `to` has as
 *           many elements as there are parts; tile: each size of `to` is a multiple of from's, which may have fewer axes; repeat:
 *           the same along the axis, others are equal; pad: 0 <= before[a], before[a] + that of from <= that of to, reflect and
 *           edge of what is not empty; roll: equal shapes; magic: n x n, n is not 2
 * Errors    BAD_ARGUMENT, BAD_SHAPE, BAD_TYPE (also: of integers that the type of the magic square does not hold), and as
 *           duet_set: `to` is unchanged; or, of statements that are several passes, when a machine or the memory fails half-way,
 *           unknown */
typedef enum duet_pad_mode { DUET_PAD_CONSTANT, DUET_PAD_EDGE, DUET_PAD_REFLECT } duet_pad_mode;
DUET_API DUET_MUST duet_status duet_concatenate(duet_matrix *to, int axis, const duet_matrix *const *part,
                                                int count);
DUET_API DUET_MUST duet_status duet_concatenate_at(duet_matrix *to, int axis, const duet_matrix *const *part,
                                                   int count, const char *site);
DUET_API DUET_MUST duet_status duet_stack(duet_matrix *to, int axis, const duet_matrix *const *part,
                                          int count);
DUET_API DUET_MUST duet_status duet_stack_at(duet_matrix *to, int axis, const duet_matrix *const *part,
                                             int count, const char *site);
DUET_API DUET_MUST duet_status duet_tile(duet_matrix *to, const duet_matrix *from);
DUET_API DUET_MUST duet_status duet_tile_at(duet_matrix *to, const duet_matrix *from, const char *site);
DUET_API DUET_MUST duet_status duet_repeat(duet_matrix *to, const duet_matrix *from, int axis);
DUET_API DUET_MUST duet_status duet_repeat_at(duet_matrix *to, const duet_matrix *from, int axis,
                                              const char *site);
DUET_API DUET_MUST duet_status duet_pad(duet_matrix *to, const duet_matrix *from, const int64_t *before,
                                        duet_pad_mode mode, double value);
DUET_API DUET_MUST duet_status duet_pad_at(duet_matrix *to, const duet_matrix *from, const int64_t *before,
                                           duet_pad_mode mode, double value, const char *site);
DUET_API DUET_MUST duet_status duet_roll(duet_matrix *to, const duet_matrix *from, int axis, int64_t by);
DUET_API DUET_MUST duet_status duet_roll_at(duet_matrix *to, const duet_matrix *from, int axis, int64_t by,
                                            const char *site);
DUET_API DUET_MUST duet_status duet_magic(duet_matrix *m);

/* The windows of images as columns: row (c h + i) w + j of matrix k of `to` has element (i, j) of all windows, h x w, of channel
 * c of image k, the windows one after the other, row by row; padding is zeros. Filters, m x c x h x w, as a matrix of m x c h w
 * (duet_reshaped), times `to` are conv2d. The images may be parts of `to`. In C options follow by name: duet_im2col(to, x,
 * .window = { 3, 3 }).
 * Shapes    images n x c x rows x cols; to n x c h w x how many windows there are
 * Errors    BAD_ARGUMENT, BAD_SHAPE (also: windows larger than the padded images), BAD_TYPE, and as duet_set: `to` is
 *           unchanged */
typedef struct duet_windows {
    int32_t window[2], stride[2], pad[2], dilation[2]; /* strides and dilations of 0 mean 1 */
} duet_windows;
DUET_API DUET_MUST duet_status duet_im2col(duet_matrix *to, const duet_matrix *images,
                                           const duet_windows *options);
DUET_API DUET_MUST duet_status duet_im2col_at(duet_matrix *to, const duet_matrix *images,
                                              const duet_windows *options, const char *site);

/* The matrix by which a convolution is a product: duet_matmul(to, x) is that part of the convolution of x and the kernel. Element
 * i, j of `to` is kernel[i + first - j], or 0 where there is none, first being 0, (m - 1) / 2 rounded down, or m - 1, of FULL,
 * SAME, and VALID, and m the size of the kernel: MATLAB's convmtx of a column, SciPy's convolution_matrix. duet_convmtx2 is that
 * of two axes: of x, h x w, and of the results the elements follow row by row (MATLAB's and ETL's column by column: the kernel
 * transposed, h and w changed, gives theirs). The kernel may be a part of `to`.
 * Shapes    kernel m, at least 1; to: as many rows as there are results, n + m - 1, n, or n - m + 1 or none, and n columns, which
 *           is x's size. convmtx2: these multiplied, of both axes
 * Errors    BAD_ARGUMENT, BAD_SHAPE, BAD_TYPE, and as duet_set: `to` is unchanged */
DUET_API DUET_MUST duet_status duet_convmtx(duet_matrix *to, const duet_matrix *kernel, duet_overlap part);
DUET_API DUET_MUST duet_status duet_convmtx_at(duet_matrix *to, const duet_matrix *kernel, duet_overlap part,
                                               const char *site);
DUET_API DUET_MUST duet_status duet_convmtx2(duet_matrix *to, const duet_matrix *kernel, int h, int w,
                                             duet_overlap part);
DUET_API DUET_MUST duet_status duet_convmtx2_at(duet_matrix *to, const duet_matrix *kernel, int h, int w,
                                                duet_overlap part, const char *site);

#endif
