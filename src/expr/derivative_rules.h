/* derivative_rules.h - what the rows of derivatives.def call: gradients that are more than one formula. Each
 * function has the operator's node n, its operands, its result r, the gradient g of the result, and the
 * position of the user's call. Private to src/expr. */
#ifndef DERIVATIVE_RULES_H
#define DERIVATIVE_RULES_H

#include "arena.h"
#include "view_formulas.h"

/* Is v made of numbers only? It stands for equal elements in any shape. */
bool is_number(duet_expr v);

/* A failed result: there is no derivative, for this reason. The sweep puts the operator in front of it. */
duet_expr refused(duet_expr g, const char *site, const char *format, ...)
    __attribute__((cold, format(printf, 3, 4)));

/* The derivatives of sigmoid and tanh. */
duet_expr of_sigmoid(duet_expr x, duet_expr r, const char *site);
duet_expr of_tanh(duet_expr x, duet_expr r, const char *site);

/* v reshaped, or broadcast, to the shape of `like`. */
duet_expr like_shape(duet_expr v, duet_expr like, const char *site);
duet_expr spread_to(duet_expr v, const shape *to, const char *site);
duet_expr zeros_like(duet_expr like, const char *site);
duet_expr number_like(duet_expr v, duet_expr like, const char *site); /* the number v everywhere */

/* Sums v over the axes along which `like` was broadcast, and converts it to the type of `like`. */
duet_expr unbroadcast(duet_expr v, duet_expr like, const char *site);

/* v, which has the shape of the reduction's result, in the shape of its operands. */
duet_expr spread(const node *n, duet_expr x, duet_expr y, duet_expr v, const char *site);
double terms_of(const node *n, duet_expr x, duet_expr y);
duet_expr of_product(const node *n, duet_expr x, duet_expr r, duet_expr g, const char *site);
duet_expr of_extreme(const node *n, duet_expr x, duet_expr r, duet_expr g, const char *site);
duet_expr of_variance(const node *n, duet_expr x, duet_expr g, const char *site);

/* x with its last two axes swapped. */
duet_expr last_two_swapped(duet_expr x, const char *site);
duet_expr of_product_left(duet_expr x, duet_expr y, duet_expr g, const char *site);
duet_expr of_product_right(duet_expr x, duet_expr y, duet_expr g, const char *site);
/* derivatives_of_sparse.c: x has the values, y is the pattern. */
duet_expr of_csr_side(const node *n, duet_expr x, duet_expr y, duet_expr g, const char *site);
duet_expr of_csr_triangle(const node *n, duet_expr x, duet_expr y, duet_expr r, duet_expr g,
                          const char *site);
duet_expr of_csr_triangle_side(const node *n, duet_expr x, duet_expr y, duet_expr g, const char *site);
duet_expr of_csr_solve(const node *n, duet_expr x, duet_expr y, duet_expr r, duet_expr g, const char *site);

duet_expr of_kron(duet_expr x, duet_expr y, duet_expr g, int which, const char *site);
duet_expr of_einsum(const node *n, duet_expr other, duet_expr g, int part, const char *site);

/* derivatives_of_images.c. d is conv1d, conv2d, conv3d; pool1d, ...; scale1d, ...
 *     d_image, d_filters             the gradients of the convolution of image x with filters w
 *     d_forward                      the convolution with the options of a gradient
 *     d_grad_image, d_grad_filters   as the first two, from the options of a gradient */
#define CONV_RULES(d)                                                                                        \
    duet_expr d##_image(const node *n, duet_expr x, duet_expr w, duet_expr g, const char *site);             \
    duet_expr d##_filters(const node *n, duet_expr x, duet_expr w, duet_expr g, const char *site);           \
    duet_expr d##_flip(duet_expr w, const char *site);                                                       \
    duet_expr d##_forward(const node *n, duet_expr x, duet_expr w, const char *site);                        \
    duet_expr d##_grad_image(const node *n, duet_expr g, duet_expr w, duet_expr x, const char *site);        \
    duet_expr d##_grad_filters(const node *n, duet_expr x, duet_expr g, duet_expr w, const char *site);
CONV_RULES(conv1d)
CONV_RULES(conv2d)
CONV_RULES(conv3d)
#define POOL_RULES(axes)                                                                                     \
    duet_expr pool##axes##_first(const node *n, duet_expr x, duet_expr g, const char *site);                 \
    duet_expr pool##axes##_spread(const node *n, duet_expr x, duet_expr g, const char *site);                \
    duet_expr pool##axes##_largest(const node *n, duet_expr x, duet_expr y, duet_expr g, const char *site);  \
    duet_expr pool##axes##_mean(const node *n, duet_expr g, const char *site);                               \
    duet_expr scale##axes##_sum(const node *n, duet_expr g, const char *site);
POOL_RULES(1d)
POOL_RULES(2d)
POOL_RULES(3d)
duet_expr of_overlap(const node *n, duet_expr x, duet_expr y, duet_expr g, int which, const char *site);
duet_expr of_planes(const node *n, duet_expr x, duet_expr y, duet_expr g, int which, const char *site);

/* derivatives_of_views.c */
duet_expr of_transform(const node *n, duet_expr x, duet_expr g, const char *site);
duet_expr of_real_inverse(const node *n, duet_expr x, duet_expr g, const char *site);
duet_expr of_shift(const node *n, duet_expr g, bool forward, const char *site);
duet_expr of_permutation(const node *n, duet_expr g, const char *site);
duet_expr of_range(const node *n, duet_expr x, duet_expr g, const char *site);
duet_expr of_part(const node *n, duet_expr x, duet_expr y, duet_expr g, int which, const char *site);
duet_expr of_windows(const node *n, duet_expr x, duet_expr g, const char *site);
duet_expr of_diagonal(const node *n, duet_expr x, duet_expr g, const char *site);
duet_expr backward_sums(const node *n, duet_expr v, const char *site);
duet_expr of_cumulative_product(const node *n, duet_expr x, duet_expr r, duet_expr g, const char *site);

/* The numbers 0 .. size - 1, times a number, along one of `rank` axes. */
duet_expr counted(int axis, int rank, int64_t size, int64_t times, const char *site);

/* Zeros like x, with g added at the indices along an axis. */
duet_expr taken_back(duet_expr x, duet_expr indices, duet_expr g, int axis, const char *site);

duet_expr of_put_values(const node *n, duet_expr x, duet_expr indices, duet_expr g, const char *site);

/* Zeros like x, with v added at the indices along an axis that each line of `indices` has. */
duet_expr scatter_along(duet_expr x, duet_expr indices, duet_expr v, int axis, const char *site);
duet_expr of_multiplied(const node *n, duet_expr x, duet_expr indices, duet_expr v, duet_expr g,
                        const char *site);
duet_expr of_largest(const node *n, duet_expr x, duet_expr indices, duet_expr v, duet_expr r, duet_expr g,
                     int which, const char *site);

/* derivatives_of_solvers.c. y is the right-hand side. */
duet_expr of_exponential(duet_expr x, duet_expr g, const char *site);
duet_expr of_inverse(duet_expr r, duet_expr g, const char *site);
duet_expr of_determinant(duet_expr x, duet_expr r, duet_expr g, const char *site);
duet_expr of_log_determinant(duet_expr x, duet_expr g, const char *site);
duet_expr of_cholesky(duet_expr r, duet_expr g, const char *site);
duet_expr of_solve_matrix(const node *n, duet_expr a, duet_expr y, duet_expr r, duet_expr g,
                          const char *site);
duet_expr of_solve_side(const node *n, duet_expr a, duet_expr y, duet_expr g, const char *site);
duet_expr of_triangle_matrix(const node *n, duet_expr a, duet_expr y, duet_expr r, duet_expr g,
                             const char *site);
duet_expr of_triangle_side(const node *n, duet_expr a, duet_expr y, duet_expr g, const char *site);
duet_expr of_lstsq_matrix(duet_expr a, duet_expr y, duet_expr r, duet_expr g, const char *site);
duet_expr of_lstsq_side(duet_expr a, duet_expr y, duet_expr g, const char *site);

#endif
