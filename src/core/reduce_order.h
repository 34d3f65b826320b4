/* reduce_order.h - the order in which every machine reduces, so that all give the same bits.
 *
 * Reduced elements are numbered 0 .. n-1 along the reduced axes, in the order of the axes, the
 * last one fastest. The order depends on this reduced index only, and not on layout, axes, batch or threads:
 *   Block b has the indices from b*REDUCE_BLOCK on. In it, lane l takes l, l + REDUCE_LANES, l +
 *   2*REDUCE_LANES, ... in order, beginning with a = start: a = take(a, x[i]). Then lanes are
 *   joined by halving: lane l = join(lane l, lane l + 64), then 32, ..., 1. Lane 0 has the result
 *   of the block. Blocks are joined in adjacent pairs, join(2i, 2i + 1), level by level.
 *   A missing operand counts as start. That is the exact identity of join, so it may also be left
 *   out. An aligned run of 2^k blocks is a complete subtree.
 *   For n = 0 the accumulator is start + 0: +0 for sum, dot and norm, 1 for prod. The mean is then 0/0, NaN.
 *   If there is an expression in front, the elements are its values.
 *
 * MOMENT rows are reduced in the same order, with their four numbers together. A lane that has
 *   taken its last element gets its count and is closed, before it is joined. A lane or block without
 *   elements is left out; joining it would be the identity as well. Without any element the result
 *   is 0/0, NaN.
 *   var measures distances from an origin, the first element of the lane. While a lane takes elements, it
 *   has the origin, the sum of the distances and the sum of their squares. When it is closed, the sum
 *   becomes the mean of the distances, and the squares those of the distances from that mean. A lane
 *   has at most REDUCE_BLOCK / REDUCE_LANES elements, so this subtraction loses little. The origin of
 *   joined lanes is that of the first one.
 *
 * PLACE rows return the index of the first NaN, else of the first extreme element, where -0 and +0
 *   are equal. The order does not matter.
 *
 * norm has the sum of squares s by FMA(x, x, a) as accumulator. If s = +inf, it is computed again
 *   over x * REDUCE_DOWN. If s is below REDUCE_LEAST, also for 0, it is computed again over x *
 *   REDUCE_UP. This is decided for each output separately, where x is the rounded value of its
 *   expression. The result is then SQRT(s) times the inverse of that factor, a power of two. NaN
 *   stays NaN, and an infinite element makes the result infinite.
 *
 * mean and var are computed again if the sum of mean, or the sum of squares of var, is infinite or NaN.
 *   In the second pass the state of a block is computed over x * REDUCE_DOWN if its sum was not finite
 *   either. Otherwise its numbers are multiplied by REDUCE_DOWN, except for the count; squares twice.
 *   Blocks are joined as before. The resulting mean is multiplied by 1 / REDUCE_DOWN once, the variance
 *   twice. A mean of infinite elements is infinite or NaN, their variance is NaN.
 *
 * softmax and log_softmax, along a row x of n elements: m = the reduction max of x; t = x - m; e =
 *   FN(exp)(t); s = the reduction sum of e; softmax = e / s; log_softmax = t - FN(log)(s).
 *
 * layer_norm, along a row x of n elements: mean and var of x as in their rows; s = FN(rsqrt)(var +
 *   r); u = (x - mean) * s; the result is FMA(u, gain, bias), or u without gain and bias.
 *
 * max_pool2d: a = -INF, then a = MAXIMUM(a, x) for the elements of the window that are inside the
 * image, row by row.
 * avg_pool2d: a = +0, then a = a + x for the same elements; the result is a / (T)(number of window
 * elements with padding).
 * Their gradients: a = +0, then a = a + x for the windows that contain an element, row by row.
 *   max_pool2d_grad counts windows in which the element is the first NaN, or else the first
 *   greatest one. avg_pool2d_grad divides as avg_pool2d does. */
#ifndef REDUCE_ORDER_H
#define REDUCE_ORDER_H

#define REDUCE_BLOCK 4096
#define REDUCE_LANES 128

#define REDUCE_ALL_AXES (-1) /* reduce_attributes.axes with all bits: all axes, which are not kept */

/* Powers of two, by element type: once scaled, squares neither over- nor underflow. */
#define REDUCE_LEAST_f32 0x1p-100f
#define REDUCE_DOWN_f32  0x1p-100f
#define REDUCE_UP_f32    0x1p100f
#define REDUCE_LEAST_f64 0x1p-900
#define REDUCE_DOWN_f64  0x1p-600
#define REDUCE_UP_f64    0x1p600

#endif
