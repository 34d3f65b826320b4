/* reduce_order.h - the order in which every machine reduces, so that all give the same bits.
 *
 * The reduced axes count through their elements in the order of the axes, the last one fastest: that is the reduced index, 0 .. n-1.
 * The tree, over it alone, whatever layout, axes, batch or threads:
 *   block b holds the indices b*REDUCE_BLOCK and following. In it lane l takes l, l + REDUCE_LANES, l + 2*REDUCE_LANES, ... in order,
 *   beginning with a = start: a = take(a, x[i]). Then the lanes join by halving: lane l = join(lane l, lane l + 64), then 32, ..., 1;
 *   lane 0 is the block's. Blocks join in adjacent pairs, join(2i, 2i + 1), level by level, until one is left.
 *   What is absent counts as start, the exact identity of join, so it may as well be left out. An aligned run of 2^k blocks is a
 *   whole sub-tree.
 *   Of n = 0 elements the accumulator is start + 0: +0 for sum, dot and norm, 1 for prod; mean is then 0/0, NaN.
 *   The elements are the values of the formula in front, if there is one.
 *
 * MOMENT rows are taken in this order too, their three numbers together: lanes, halving, blocks in pairs. A lane or a block that has
 *   seen nothing is left out; join with it is the identity all the same. Of no element all three numbers are 0.
 *
 * PLACE rows answer with the index of the first NaN, else of the first extreme, -0 and +0 being equal: no order changes that.
 *
 * norm, whose accumulator s is the sum of squares by FMA(x, x, a): s = +inf is taken again, over x * REDUCE_NORM_DOWN; s below
 *   REDUCE_NORM_LEAST, 0 too, over x * REDUCE_NORM_UP; each output by itself, x being the value of its formula, rounded as ever. The
 *   result is then SQRT(s again) times the inverse of that factor, a power of two. NaN is neither, and an infinite element stays
 *   infinite.
 *
 * softmax and log_softmax, along a row x of n elements: m = the reduction max of x; t = x - m; e = FN(exp)(t); s = the reduction sum of e;
 *   softmax = e / s; log_softmax = t - FN(log)(s).
 *
 * layer_norm, along a row x of n elements: mean and var of x as the rows of these names have them; s = FN(rsqrt)(var + r);
 *   u = (x - mean) * s; FMA(u, gain, bias), or u.
 *
 * max_pool2d: a = -INF, then a = MAXIMUM(a, x) for the elements of the window inside the image, row by row.
 * avg_pool2d: a = +0, then a = a + x likewise; a / (T)(window elements, padding among them).
 * Back: a = +0, then a = a + x for the windows that an element is in, row by row; of max_pool2d_grad those whose first NaN, or else first
 *   greatest element, it is; of avg_pool2d_grad a / (T)(window elements). */
#ifndef REDUCE_H
#define REDUCE_H

#define REDUCE_BLOCK 4096
#define REDUCE_LANES 128

#define REDUCE_ALL_AXES (-1) /* reduce_attributes.axes with all bits: all axes, which are not kept */

/* Powers of two, by element type: once scaled, squares neither over- nor underflow. */
#define REDUCE_NORM_LEAST_f32 0x1p-100f
#define REDUCE_NORM_DOWN_f32  0x1p-100f
#define REDUCE_NORM_UP_f32    0x1p100f
#define REDUCE_NORM_LEAST_f64 0x1p-900
#define REDUCE_NORM_DOWN_f64  0x1p-600
#define REDUCE_NORM_UP_f64    0x1p600

#endif
