/* operators.h - the operators as functions: those of the rows of ops.def, composed.def and networks.def, and a few beside.
 * Part of duet.h. */
#include <duet/duet.h> /* which includes this */
#include <duet/options.h>
#ifndef DUET_OPERATORS_H
#define DUET_OPERATORS_H

/* What follows an operator's operands, by the word for it in its row. */
#define DUET_OPTIONS_plain
#define DUET_OPTIONS_type             , duet_dtype type
#define DUET_OPTIONS_axis             , int axis
#define DUET_OPTIONS_conv             , const duet_conv *options
#define DUET_OPTIONS_pool             , const duet_pool *options
#define DUET_OPTIONS_pool_grad        , const duet_pool_grad *options
#define DUET_OPTIONS_scale            , const duet_scale *options
#define DUET_OPTIONS_conv1            , const duet_conv1 *options
#define DUET_OPTIONS_pool1            , const duet_pool1 *options
#define DUET_OPTIONS_conv1_grad       , const duet_conv1_grad *options
#define DUET_OPTIONS_conv1_transposed , const duet_conv1_transposed *options
#define DUET_OPTIONS_pool1_grad       , const duet_pool1_grad *options
#define DUET_OPTIONS_scale1           , const duet_scale1 *options
#define DUET_OPTIONS_conv3            , const duet_conv3 *options
#define DUET_OPTIONS_pool3            , const duet_pool3 *options
#define DUET_OPTIONS_conv3_grad       , const duet_conv3_grad *options
#define DUET_OPTIONS_conv3_transposed , const duet_conv3_transposed *options
#define DUET_OPTIONS_pool3_grad       , const duet_pool3_grad *options
#define DUET_OPTIONS_scale3           , const duet_scale3 *options
#define DUET_OPTIONS_conv_grad        , const duet_conv_grad *options
#define DUET_OPTIONS_conv_transposed  , const duet_conv_transposed *options
#define DUET_OPTIONS_fourier          , const duet_fourier *options
#define DUET_OPTIONS_overlap          , duet_overlap overlap
#define DUET_OPTIONS_classes          , int n, duet_dtype type
#define DUET_OPTIONS_top              , int k, int axis
#define DUET_OPTIONS_bins             , double low, double high, int n
#define DUET_OPTIONS_triangle         , const duet_triangle *options
#define DUET_OPTIONS_solver           , const duet_solver *options
#define DUET_OPTIONS_indices          , const char *options

/* Every operator is two functions: by its name, and by that and _at, which is also told where it stands. */
#define DUET_OPERATOR(function, ...)                                                                         \
    DUET_API duet_expr function(__VA_ARGS__);                                                                \
    DUET_API duet_expr function##_at(__VA_ARGS__, const char *site);

/* Of reductions: along one axis, and with it kept; along several. */
#define DUET_ALONG(function, ...)                                                                            \
    DUET_OPERATOR(function##_axis, __VA_ARGS__, int axis)                                                    \
    DUET_OPERATOR(function##_keep, __VA_ARGS__, int axis)
#define DUET_ALONG_ALL(function, ...)                                                                        \
    DUET_ALONG(function, __VA_ARGS__)                                                                        \
    DUET_OPERATOR(function##_axes, __VA_ARGS__, int count, const int *axis)                                  \
    DUET_OPERATOR(function##_axes_keep, __VA_ARGS__, int count, const int *axis)

/* The operators: ops.def has a row for each, with its formula. Each is a function of this name, and in C a macro over it that
 * lifts its operands and passes on where it stands (duet_add_at). That text, `site`, is kept, not copied: it lives as long as
 * formulas and recordings that name it, as a literal does; a library that is to be unloaded ends its own first.
 * Shapes    element by element: by NumPy's broadcasting; others: as their row says
 * Errors    in the result: what is built from it has the same error, and duet_set returns it */
#define DUET_MAP1(name, ...)   DUET_OPERATOR(duet_##name, duet_expr x)
#define DUET_MAP2(name, ...)   DUET_OPERATOR(duet_##name, duet_expr x, duet_expr y)
#define DUET_MAP3(name, ...)   DUET_OPERATOR(duet_##name, duet_expr x, duet_expr y, duet_expr z)
#define DUET_INT1              DUET_MAP1
#define DUET_INT2              DUET_MAP2
#define DUET_PLACE1(name, ...) DUET_OPERATOR(duet_##name, duet_expr x) DUET_ALONG(duet_##name, duet_expr x)
#define DUET_FOLD1(name, ...)  DUET_OPERATOR(duet_##name, duet_expr x) DUET_ALONG_ALL(duet_##name, duet_expr x)
#define DUET_FOLD2(name, ...)                                                                                \
    DUET_OPERATOR(duet_##name, duet_expr x, duet_expr y)                                                     \
    DUET_ALONG_ALL(duet_##name, duet_expr x, duet_expr y)
#define DUET_MOMENT1                  DUET_FOLD1
#define DUET_DEF1(name, options, ...) DUET_OPERATOR(duet_##name, duet_expr x DUET_OPTIONS_##options)
#define DUET_DEF2(name, options, ...)                                                                        \
    DUET_OPERATOR(duet_##name, duet_expr x, duet_expr y DUET_OPTIONS_##options)
#define DUET_CALL1 DUET_DEF1
#define DUET_CALL2 DUET_DEF2
#define DUET_CALL3(name, options, ...)                                                                       \
    DUET_OPERATOR(duet_##name, duet_expr x, duet_expr y, duet_expr z DUET_OPTIONS_##options)
#include <duet/ops.def>

/* duet_einsum(x, y, "i,j->ij"): every element of x times every element of y.
 * Shapes    x [m], y [n], the result m x n
 * Errors    in the result, as of duet_einsum */
DUET_API duet_expr duet_outer(duet_expr x, duet_expr y);
DUET_API duet_expr duet_outer_at(duet_expr x, duet_expr y, const char *site);

/* Products of vectors:
 *     duet_vdot    dot of the conjugate of x with y: of real x dot
 *     duet_cross   the vectors of 3 elements along the last axis that are perpendicular to those of x and of y; exactly 0 of
 *                  equal ones
 * Shapes    vdot: of x and y alike, the result a number; cross: x and y of last axes of 3 elements, the others broadcast
 * Errors    in the result, in the words of the operators that these are made of; BAD_SHAPE: cross of other axes */
DUET_API duet_expr duet_vdot(duet_expr x, duet_expr y);
DUET_API duet_expr duet_vdot_at(duet_expr x, duet_expr y, const char *site);
DUET_API duet_expr duet_cross(duet_expr x, duet_expr y);
DUET_API duet_expr duet_cross_at(duet_expr x, duet_expr y, const char *site);

/* Operators made of these: composed.def has a row for each, with its formula. Shapes and errors are those of their parts. */
#define DUET_COMPOSED1(name, ...)  DUET_OPERATOR(duet_##name, duet_expr x)
#define DUET_COMPOSED2(name, ...)  DUET_OPERATOR(duet_##name, duet_expr x, duet_expr y)
#define DUET_COMPOSED3(name, ...)  DUET_OPERATOR(duet_##name, duet_expr x, duet_expr y, duet_expr z)
#define DUET_COMPOSED1N(name, ...) DUET_OPERATOR(duet_##name, duet_expr x, double s)
#define DUET_COMPOSED_FOLD1(name, ...)                                                                       \
    DUET_OPERATOR(duet_##name, duet_expr x) DUET_ALONG_ALL(duet_##name, duet_expr x)
#define DUET_COMPOSED_MATRIX1 DUET_COMPOSED1
#include <duet/composed.def>

/* Are x and y alike? As one bool:
 *     duet_array_equal   have they one shape, and equal elements?
 *     duet_allclose      is |x - y| <= absolute + relative |y| everywhere, infinities being close to themselves, and NaN to
 *                        nothing? NumPy's relative is 1e-5, its absolute 1e-8
 * duet_pow_int is x times itself, n times, by squaring: of integers, which wrap, too; of a negative n 1 over that, of floating
 * point.
 * Shapes    array_equal: any; allclose: x and y broadcast; pow_int: x's
 * Errors    in the result, in the words of the operators that these are made of; BAD_ARGUMENT: negative or NaN tolerances */
DUET_API duet_expr duet_array_equal(duet_expr x, duet_expr y);
DUET_API duet_expr duet_array_equal_at(duet_expr x, duet_expr y, const char *site);
DUET_API duet_expr duet_allclose(duet_expr x, duet_expr y, double relative, double absolute);
DUET_API duet_expr duet_allclose_at(duet_expr x, duet_expr y, double relative, double absolute,
                                    const char *site);
DUET_API duet_expr duet_pow_int(duet_expr x, int n);
DUET_API duet_expr duet_pow_int_at(duet_expr x, int n, const char *site);

/* What networks are trained with, made of all these: networks.def has a row for each. Losses are numbers, gradients have the
 * shape of what they belong to.
 * Shapes    as of the operators that they are made of; of losses x and y alike
 * Errors    in the result, in the words of those operators */
#define DUET_NETWORK1(name, ...)  DUET_OPERATOR(duet_##name, duet_expr x)
#define DUET_NETWORK2(name, ...)  DUET_OPERATOR(duet_##name, duet_expr x, duet_expr y)
#define DUET_NETWORK2R(name, ...) DUET_OPERATOR(duet_##name, duet_expr x, duet_expr y, double r)
#define DUET_NETWORK3R(name, ...) DUET_OPERATOR(duet_##name, duet_expr x, duet_expr y, duet_expr z, double r)
#include <duet/networks.def>

/* Probabilistic max pooling (Lee et al., Convolutional deep belief networks, 2009), without overflow: of windows of h x w
 * elements side by side, with S the sum of exp(x) over a window,
 *     duet_p_max_pool_h   exp(x) / (1 + S), of each element: how probable it is that it is on
 *     duet_p_max_pool_p   S / (1 + S), of each window: how probable it is that one of its elements is
 * Shapes    x is n x c x rows x cols, h of which divides the rows and w the columns; of _p the result is n x c x rows / h x cols
 *           / w
 * Errors    in the result, in the words of max_pool2d, upsample2d, sub */
DUET_API duet_expr duet_p_max_pool_h(duet_expr x, int h, int w);
DUET_API duet_expr duet_p_max_pool_h_at(duet_expr x, int h, int w, const char *site);
DUET_API duet_expr duet_p_max_pool_p(duet_expr x, int h, int w);
DUET_API duet_expr duet_p_max_pool_p_at(duet_expr x, int h, int w, const char *site);

/* The padding, along one axis, with which a convolution by `window` elements, `dilation` apart (0: 1), in steps of 1, gives that
 * part: conv2d(x, w, .pad = { duet_pad_for(DUET_OVERLAP_SAME, 3, 0), ... }). Both sides have the same: SAME of an even reach gets
 * the less, and one result fewer than elements, unless .more is 1; then it is TensorFlow's SAME. duet_convolve and its sisters,
 * which have that one in front, need no such care. */
static inline int32_t duet_pad_for(duet_overlap part, int32_t window, int32_t dilation)
{
    const int32_t more = (window - 1) * (dilation ? dilation : 1);
    return part == DUET_OVERLAP_FULL ? more : part == DUET_OVERLAP_SAME ? more / 2 : 0;
}

/* The padding in all, along one axis, that gives as many results as there are strides (0: 1) in `size` elements, begun ones too:
 * TensorFlow's SAME, with n of it: .pad = n / 2, .more = n % 2. */
static inline int32_t duet_same_padding(int64_t size, int32_t window, int32_t stride, int32_t dilation)
{
    const int64_t step = stride ? stride : 1, reach = (int64_t)(window - 1) * (dilation ? dilation : 1) + 1;
    const int64_t n = size > 0 ? ((size + step - 1) / step - 1) * step + reach - size : 0;
    return n > 0 ? (int32_t)n : 0;
}

/* Fourier transforms in NumPy's terms, by duet_fftn and its sisters: along one axis, of length n (0: as long as x is there), or
 * along the last two. Shapes, errors: theirs */
#define DUET_FOURIER(name)                                                                                   \
    DUET_OPERATOR(duet_##name, duet_expr x, int n, int axis)                                                 \
    DUET_OPERATOR(duet_##name##2, duet_expr x)
DUET_FOURIER(fft)
DUET_FOURIER(ifft)
DUET_FOURIER(rfft)
DUET_FOURIER(irfft)
#undef DUET_FOURIER
#undef DUET_OPERATOR
#undef DUET_ALONG
#undef DUET_ALONG_ALL

#endif
