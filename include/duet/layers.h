/* layers.h - operators of neural networks that are made of others: softmax and normalisations along any
 * axes, and losses by class index. Part of duet.h. */
#include <duet/duet.h> /* which includes this */
#ifndef DUET_LAYERS_H
#define DUET_LAYERS_H

/* Compute softmax, one-hot vectors and normalisations along any axes. r is added to the variance, or to the
 * mean of the squares, before the square root.
 *     duet_softmax_axis       duet_softmax along an axis; in C also duet_softmax(x, axis)
 *     duet_log_softmax_axis   duet_log_softmax along an axis; in C also duet_log_softmax(x, axis)
 *     duet_one_hot_axis       duet_one_hot, with the classes along axis `axis` of the result; in C also
 *                             duet_one_hot(indices, n, type, axis)
 *     duet_layer_norm_axes    duet_layer_norm with the mean and the variance along several axes; in C also
 *                             duet_layer_norm(x, scale, shift, r, 1, 2)
 *     duet_rms_norm           x / sqrt(mean(x * x) + r) * scale, with the mean along the last axis
 *     duet_rms_norm_axes      duet_rms_norm with the mean along several axes; in C also
 *                             duet_rms_norm(x, scale, r, 1, 2)
 *     duet_group_norm         (x - mean) / sqrt(variance + r) * scale + shift. The channels (axis 1) are
 *                             divided into `groups` parts. The mean and the variance are those of one part
 *                             of one image
 * A negative axis counts from the last one.
 * Shapes    softmax, log_softmax: the shape of x. one_hot: the shape of the indices, with an axis of n
 *           elements inserted. layer_norm, rms_norm: scale and shift broadcast to x. group_norm: x has at
 *           least 2 axes, and its number of channels is a multiple of `groups`; scale and shift have one
 *           element for each channel, or are numbers. Results have the shape of x
 * Errors    in the result: BAD_ARGUMENT (groups, n, the list of axes), BAD_SHAPE, BAD_TYPE
 * Source    Zhang and Sennrich, Root mean square layer normalization, 2019; Wu and He, Group
 *           normalization, 2018 */
DUET_OPERATOR(duet_softmax_axis, duet_expr x, int axis)
DUET_OPERATOR(duet_log_softmax_axis, duet_expr x, int axis)
DUET_OPERATOR(duet_one_hot_axis, duet_expr indices, int n, duet_dtype type, int axis)
DUET_OPERATOR(duet_layer_norm_axes, duet_expr x, duet_expr scale, duet_expr shift, double r, int count,
              const int *axis)
DUET_OPERATOR(duet_rms_norm, duet_expr x, duet_expr scale, double r)
DUET_OPERATOR(duet_rms_norm_axes, duet_expr x, duet_expr scale, double r, int count, const int *axis)
DUET_OPERATOR(duet_group_norm, duet_expr x, duet_expr scale, duet_expr shift, int groups, double r)

/* Return where max pooling found the largest elements: for each window, the index of the first NaN, or else
 * of the first largest element. Indices are those of row-major order in the plane (the signal, the
 * volume) of x; -1 if the window has no element of x. The options are those of max pooling; ties has no
 * effect. If each plane of x is reshaped to a vector, duet_take_along_axis(x, indices, -1) is the result
 * of max pooling, except where an index is -1.
 *     duet_max_pool1d_indices   the indices in n x c x w signals
 *     duet_max_pool2d_indices   the indices in n x c x h x w images
 *     duet_max_pool3d_indices   the indices in n x c x d x h x w volumes
 * Shapes    as duet_max_pool1d, duet_max_pool2d, duet_max_pool3d. The result has type i64
 * Errors    in the result: BAD_ARGUMENT (an option), BAD_SHAPE, BAD_TYPE (complex or bool elements),
 *           UNSUPPORTED (a window of more than 1,024 elements)
 * Source    MaxPool of ONNX; PyTorch's max_pool2d with return_indices */
DUET_OPERATOR(duet_max_pool1d_indices, duet_expr x, const duet_pool1 *options)
DUET_OPERATOR(duet_max_pool2d_indices, duet_expr x, const duet_pool *options)
DUET_OPERATOR(duet_max_pool3d_indices, duet_expr x, const duet_pool3 *options)

/* Interpolates x along any axes, so that it gets other sizes: images, signals, volumes. In C
 *     duet_interpolate(x, .size = { 0, 0, 224, 224 }, .mode = DUET_INTERPOLATE_LINEAR)
 * Each axis is interpolated by itself, the last one first.
 * Shapes    the sizes in the options. x is not empty along an axis that gets another size
 * Errors    in the result: BAD_ARGUMENT (the options), BAD_SHAPE, BAD_TYPE (integers, except for
 *           DUET_INTERPOLATE_NEAREST)
 * Source    Resize of ONNX; PyTorch's interpolate. Keys, Cubic convolution interpolation for digital image
 *           processing, 1981 */
DUET_OPERATOR(duet_interpolate, duet_expr x, const duet_interpolation *options)

/* Compute the loss of a classification from the index of the right class. The classes are along axis 1 of x,
 * or along axis 0 if x has one axis.
 *     duet_nll_loss             the negative log-likelihood: -x at the class of each target, where x are
 *                               logarithms of probabilities, as duet_log_softmax gives them
 *     duet_cross_entropy_loss   duet_nll_loss of the log_softmax of x along the classes; x may be any
 *                               numbers. (duet_cross_entropy_logits takes probabilities as targets)
 * Options, in C named arguments: duet_nll_loss(x, target, .weights = w, .reduction = DUET_LOSS_SUM)
 *     weights     a vector with a factor for each class; NULL: 1 for each
 *     reduction   DUET_LOSS_MEAN: the sum of the losses, divided by the sum of the weights of their classes;
 *                 NaN if that is 0. DUET_LOSS_SUM: the sum. DUET_LOSS_NONE: the loss of each target
 *     ignores     1: targets that are equal to `ignored` have the loss 0, and their weights do not count.
 *                 PyTorch's default is .ignores = 1, .ignored = -100
 *     ignored     an integer, which need not be the index of a class
 * Negative targets count from the last class, as in duet_take.
 * Shapes    x: n x classes, n x classes x h x w, ..., or [classes]. target: an integer matrix with the shape
 *           of x without the axis of the classes. The result has the shape of target (DUET_LOSS_NONE), or
 *           rank 0
 * Owner     the weights stay the caller's; they must not be freed before the formula is evaluated
 * Errors    in the result: BAD_ARGUMENT (reduction), BAD_SHAPE, BAD_TYPE. Of the statement, on the CPU:
 *           BAD_ARGUMENT: a target is out of bounds
 * Source    NLLLoss and CrossEntropyLoss of PyTorch; NegativeLogLikelihoodLoss of ONNX */
typedef enum duet_loss_reduction { DUET_LOSS_MEAN, DUET_LOSS_SUM, DUET_LOSS_NONE } duet_loss_reduction;
typedef struct duet_class_loss {
    const duet_matrix *weights;
    duet_loss_reduction reduction;
    int ignores;
    int64_t ignored;
} duet_class_loss;
DUET_OPERATOR(duet_nll_loss, duet_expr x, duet_expr target, const duet_class_loss *options)
DUET_OPERATOR(duet_cross_entropy_loss, duet_expr x, duet_expr target, const duet_class_loss *options)

#endif
