/* arrange.h - statements that copy elements to another arrangement, and the matrices of convolutions
 * (im2col, convmtx). Part of duet.h. */
#include <duet/duet.h> /* which includes this */
#ifndef DUET_ARRANGE_H
#define DUET_ARRANGE_H

/* Fill `to` with elements of other matrices of the same element type. The operands may be views. They
 * may overlap `to`, because they are read before anything is written. If you do not need a copy, use
 * a view instead (duet_split, duet_flipped, duet_broadcast_to, ...).
 *     duet_concatenate  joins the parts along an existing axis. In C write
 *                       duet_concatenate(to, axis, a, b, c)
 *     duet_stack        joins parts of equal shape along a new axis. In C write
 *                       duet_stack(to, axis, a, b, c)
 *     duet_tile         repeats all of `from` along every axis: 1 2 becomes 1 2 1 2
 *     duet_repeat       repeats each element of `from` along one axis: 1 2 becomes 1 1 2 2
 *     duet_pad          copies `from` and pads it with before[a] elements at the start of axis a. The
 *                       padding at the end fills the rest of `to`. DUET_PAD_CONSTANT pads with
 *                       `value`, DUET_PAD_EDGE with the nearest element of `from`. DUET_PAD_REFLECT
 *                       mirrors `from` at its edge element, which is not repeated: 1 2 3 is padded to
 *                       3 2 1 2 3 2 1. Wider padding is mirrored again at the opposite edge
 *     duet_roll         shifts the elements by `by` positions along an axis; elements shifted past the
 *                       end come back at the start
 *     duet_magic        writes a magic square of the numbers 1 .. n * n: all rows, columns and both
 *                       diagonals have the same sum. The host computes it
 * Shapes    concatenate: the sizes along the axis add up to that of `to`; the other sizes are equal.
 *           stack: the size of `to` along the axis is the number of parts.
 *           tile: each size of `to` is a multiple of that of `from`, which may have fewer axes.
 *           repeat: the size of `to` along the axis is a multiple of that of `from`; the other sizes
 *           are equal.
 *           pad: before[a] >= 0, and before[a] + the size of `from` <= the size of `to`; for
 *           DUET_PAD_EDGE and DUET_PAD_REFLECT `from` is not empty.
 *           roll: equal shapes.
 *           magic: n x n; n is not 2
 * Errors    BAD_ARGUMENT, BAD_SHAPE, BAD_TYPE (also for a magic square whose numbers do not fit the
 *           element type), and as duet_set: `to` is unchanged. Some statements need several passes.
 *           If the device fails or memory runs out in a later pass, the contents of `to` are
 *           undefined */
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

/* Copies the windows of images to columns, so that a convolution becomes a matrix product. Each column
 * of matrix k of `to` is a window of image k. The windows are in row-major order. With windows of h x w
 * elements, row (c h + i) w + j contains element (i, j) of channel c of every window. Padding is
 * zeros. If you reshape filters of m x c x h x w to m x c h w (duet_reshaped), their product with `to`
 * is the result of duet_conv2d. The images may overlap `to`. In C give the options by name:
 * duet_im2col(to, x, .window = { 3, 3 }).
 * Shapes    images n x c x rows x cols; to n x c h w x number of windows
 * Errors    BAD_ARGUMENT, BAD_SHAPE (also if the window is larger than the padded image), BAD_TYPE,
 *           and as duet_set: `to` is unchanged */
typedef struct duet_windows {
    int32_t window[2], stride[2], pad[2], dilation[2]; /* a stride or dilation of 0 means 1 */
} duet_windows;
DUET_API DUET_MUST duet_status duet_im2col(duet_matrix *to, const duet_matrix *images,
                                           const duet_windows *options);
DUET_API DUET_MUST duet_status duet_im2col_at(duet_matrix *to, const duet_matrix *images,
                                              const duet_windows *options, const char *site);

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
