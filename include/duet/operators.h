/* operators.h - the operators as functions that build formulas. Part of duet.h. Most operators are
 * rows of ops.def, composed.def and networks.def; this file makes a declaration from each row.
 * docs/operators.md lists all operators with their formulas and types. */
#include <duet/duet.h> /* which includes this */
#include <duet/options.h>
#ifndef DUET_OPERATORS_H
#define DUET_OPERATORS_H

/* Each macro lists the parameters that an operator has after its operands. A row of ops.def names the
 * macro by the last part of its name: `axis` means DUET_OPTIONS_axis. */
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
#define DUET_OPTIONS_sizes            , int rank, const int64_t *size
#define DUET_OPTIONS_order            , int rank, const int *order
#define DUET_OPTIONS_range            , int axis, int64_t start, int64_t stop, int64_t by
#define DUET_OPTIONS_window           , int axis, int64_t size, int64_t stride, int64_t dilation
#define DUET_OPTIONS_offset           , int64_t offset
#define DUET_OPTIONS_triangle         , const duet_triangle *options
#define DUET_OPTIONS_solver           , const duet_solver *options
#define DUET_OPTIONS_indices          , const char *options
#define DUET_OPTIONS_csr              , int64_t columns, int transposed
#define DUET_OPTIONS_turned           , int transposed

/* Each operator is two functions. The name of the second one ends with _at. It has one more
 * parameter: the source line that error texts name. */
#define DUET_OPERATOR(function, ...)                                                                         \
    DUET_API DUET_MUST duet_expr function(__VA_ARGS__);                                                      \
    DUET_API DUET_MUST duet_expr function##_at(__VA_ARGS__, const char *site);

/* Each reduction has more functions, whose names end as follows. _axis: reduces one axis and removes
 * it. _keep: reduces one axis and leaves it with size 1. _axes and _axes_keep: do the same for several
 * axes. */
#define DUET_REDUCTION(function, ...)                                                                        \
    DUET_OPERATOR(function##_axis, __VA_ARGS__, int axis)                                                    \
    DUET_OPERATOR(function##_keep, __VA_ARGS__, int axis)
#define DUET_REDUCTION_ALL(function, ...)                                                                    \
    DUET_REDUCTION(function, __VA_ARGS__)                                                                    \
    DUET_OPERATOR(function##_axes, __VA_ARGS__, int count, const int *axis)                                  \
    DUET_OPERATOR(function##_axes_keep, __VA_ARGS__, int count, const int *axis)

/* The operators of ops.def. In C each is also a macro of the same name. The macro converts its operands
 * to formulas, and passes the source line as `site` to the _at function. The library stores the
 * pointer `site` and does not copy the text, so the text must exist as long as formulas and recordings
 * refer to it. A string literal does. If a shared library of yours makes formulas or recordings, free
 * them before you unload it (dlclose).
 * Shapes    operators that work element by element: the operands broadcast, as in NumPy. Others: as
 *           in docs/operators.md
 * Errors    in the result: formulas that use it have the same error, and duet_set returns it */
#define DUET_MAP1(name, ...) DUET_OPERATOR(duet_##name, duet_expr x)
#define DUET_MAP2(name, ...) DUET_OPERATOR(duet_##name, duet_expr x, duet_expr y)
#define DUET_MAP3(name, ...) DUET_OPERATOR(duet_##name, duet_expr x, duet_expr y, duet_expr z)
#define DUET_INT1            DUET_MAP1
#define DUET_INT2            DUET_MAP2
#define DUET_PLACE1(name, ...)                                                                               \
    DUET_OPERATOR(duet_##name, duet_expr x) DUET_REDUCTION(duet_##name, duet_expr x)
#define DUET_FOLD1(name, ...)                                                                                \
    DUET_OPERATOR(duet_##name, duet_expr x) DUET_REDUCTION_ALL(duet_##name, duet_expr x)
#define DUET_FOLD2(name, ...)                                                                                \
    DUET_OPERATOR(duet_##name, duet_expr x, duet_expr y)                                                     \
    DUET_REDUCTION_ALL(duet_##name, duet_expr x, duet_expr y)
#define DUET_MOMENT1                  DUET_FOLD1
#define DUET_DEF1(name, options, ...) DUET_OPERATOR(duet_##name, duet_expr x DUET_OPTIONS_##options)
#define DUET_DEF2(name, options, ...)                                                                        \
    DUET_OPERATOR(duet_##name, duet_expr x, duet_expr y DUET_OPTIONS_##options)
#define DUET_CALL1 DUET_DEF1
#define DUET_CALL2 DUET_DEF2
#define DUET_CALL3(name, options, ...)                                                                       \
    DUET_OPERATOR(duet_##name, duet_expr x, duet_expr y, duet_expr z DUET_OPTIONS_##options)
#include <duet/ops.def>

/* Select and arrange elements of a formula, as views do for a matrix. Elements are copied only if no
 * strides can describe the result. In C write
 *     duet_index(x, DUET_AT(2), DUET_RANGE(0, 5))     x[2, 0:5]
 *     duet_reshape(x, 2, -1)   duet_broadcast(x, 4, 3)   duet_permute(x, 2, 0, 1)
 *     duet_index         x[...], by NumPy's basic indexing
 *     duet_flip          the elements of one axis in reverse order
 *     duet_pick          element i of one axis, which is removed
 *     duet_part          splits an axis into `count` parts of equal size and returns part k, counted from
 *                        0. If the size is not a multiple of `count`, the first parts have one element
 *                        more
 *     duet_expand_dims   inserts an axis of size 1, which becomes axis number `axis`
 *     duet_squeeze       removes an axis of size 1
 *     duet_moveaxis      moves axis `from` to position `to`; the other axes keep their order
 *     duet_swapaxes      exchanges axes i and j
 * duet_reshape, duet_broadcast, duet_permute, duet_range and duet_diagonal_of are rows of ops.def. A
 * negative axis counts from the last one.
 * Shapes    as described above
 * Errors    in the result: BAD_ARGUMENT (an index out of bounds, a step of 0, k), BAD_SHAPE (rank, axis,
 *           sizes)
 * Source    NumPy's functions of the same names; duet_pick is NumPy's take with one index, and duet_part
 *           returns one result of array_split */
DUET_OPERATOR(duet_index, duet_expr x, int count, const duet_index_entry *index)
DUET_OPERATOR(duet_flip, duet_expr x, int axis)
DUET_OPERATOR(duet_pick, duet_expr x, int axis, int64_t i)
DUET_OPERATOR(duet_part, duet_expr x, int axis, int count, int k)
DUET_OPERATOR(duet_expand_dims, duet_expr x, int axis)
DUET_OPERATOR(duet_squeeze, duet_expr x, int axis)
DUET_OPERATOR(duet_moveaxis, duet_expr x, int from, int to)
DUET_OPERATOR(duet_swapaxes, duet_expr x, int i, int j)

/* Counts: the numbers 0, 1, ..., n - 1, as a formula. Other sequences are formulas of it: start + i step is
 * duet_fma(duet_iota(type, n), step, start). duet_arange and duet_linspace make a matrix instead. The
 * numbers are computed in i64 and converted as by duet_cast to `type`, an integer or floating-point type.
 * Shapes    the result is [n]
 * Errors    in the result: BAD_ARGUMENT (n is negative; not a type), BAD_TYPE (a bool or complex type)
 * Source    APL's function of this name; NumPy's arange(n) */
DUET_OPERATOR(duet_iota, duet_dtype type, int64_t n)

/* Place the elements of a formula in a matrix or a grid. Elements outside of the diagonal, or of the
 * triangle, are 0. Diagonal number k has the elements (i, i + k): 0 is the main diagonal, a negative k
 * is below it.
 *     duet_tril       the lower triangles of the matrices along the last two axes: x on diagonal k and
 *                     below
 *     duet_triu       the upper triangles: x on diagonal k and above
 *     duet_diag       of a vector: the square matrix with these elements on diagonal k. Of a matrix:
 *                     the elements of diagonal k
 *     duet_meshgrid   the vector x along axis `axis` of a grid with the given sizes, without a copy:
 *                     with duet_meshgrid(x, 1, 3, 4) element (i, j) is x[j]. Operands broadcast, so
 *                     few formulas need a grid
 * Shapes    tril: x has at least 2 axes; the shape of x. triu: x has at least 2 axes; the shape of x.
 *           diag: x [n]; the result is n + |k| x n + |k|; or x has 2 axes. meshgrid: x has as many
 *           elements as the axis of the grid; the result has the sizes of the grid
 * Errors    in the result: BAD_ARGUMENT (the list of sizes), BAD_SHAPE
 * Source    NumPy's functions of the same names; meshgrid is one result of NumPy's with indexing="ij" */
DUET_OPERATOR(duet_tril, duet_expr x, int64_t k)
DUET_OPERATOR(duet_triu, duet_expr x, int64_t k)
DUET_OPERATOR(duet_diag, duet_expr x, int64_t k)
DUET_OPERATOR(duet_meshgrid, duet_expr x, int axis, int rank, const int64_t *size)

/* Multiplies every element of x by every element of y: duet_einsum(x, y, "i,j->ij").
 * Shapes    x [m], y [n]; the result is m x n
 * Errors    in the result: as duet_einsum */
DUET_API DUET_MUST duet_expr duet_outer(duet_expr x, duet_expr y);
DUET_API DUET_MUST duet_expr duet_outer_at(duet_expr x, duet_expr y, const char *site);

/* Multiply vectors.
 *     duet_vdot         the sum of conj(x) y over all elements; for real x the dot product
 *     duet_vecdot       the sum of conj(x) y along an axis
 *     duet_cross        the cross product along the last axis; exactly 0 for equal vectors
 *     duet_cross_axis   the same along another axis; in C also duet_cross(x, y, axis)
 * An axis from 0 on counts from the first axis of each operand, a negative one from the last.
 * Shapes    vdot: x and y have the same shape; the result has rank 0. vecdot: the axes have the same
 *           size; the others broadcast, and are those of the result. cross: the last axes have size 3;
 *           the others broadcast. cross_axis: the axes have size 3; the others broadcast
 * Errors    in the result: as the operators that they are made of; the error text names that operator.
 *           BAD_SHAPE: an axis does not exist or does not have the size that it must have */
DUET_API DUET_MUST duet_expr duet_vdot(duet_expr x, duet_expr y);
DUET_API DUET_MUST duet_expr duet_vdot_at(duet_expr x, duet_expr y, const char *site);
DUET_API DUET_MUST duet_expr duet_cross(duet_expr x, duet_expr y);
DUET_API DUET_MUST duet_expr duet_cross_at(duet_expr x, duet_expr y, const char *site);
DUET_OPERATOR(duet_vecdot, duet_expr x, duet_expr y, int axis)
DUET_OPERATOR(duet_cross_axis, duet_expr x, duet_expr y, int axis)

/* The operators of composed.def. Each is a formula made of the operators above.
 * Shapes    as the operators that they are made of
 * Errors    in the result: as the operators that they are made of */
#define DUET_COMPOSED1(name, ...)  DUET_OPERATOR(duet_##name, duet_expr x)
#define DUET_COMPOSED2(name, ...)  DUET_OPERATOR(duet_##name, duet_expr x, duet_expr y)
#define DUET_COMPOSED3(name, ...)  DUET_OPERATOR(duet_##name, duet_expr x, duet_expr y, duet_expr z)
#define DUET_COMPOSED1N(name, ...) DUET_OPERATOR(duet_##name, duet_expr x, double s)
#define DUET_COMPOSED_FOLD1(name, ...)                                                                       \
    DUET_OPERATOR(duet_##name, duet_expr x) DUET_REDUCTION_ALL(duet_##name, duet_expr x)
#define DUET_COMPOSED_MATRIX1 DUET_COMPOSED1
#include <duet/composed.def>

/* Compare two matrices, or raise each element of one to an integer power.
 *     duet_array_equal   1 if x and y have the same shape and equal elements, else 0
 *     duet_allclose      1 if |x - y| <= absolute + relative |y| for all elements, else 0. An infinity
 *                        is close to the same infinity; NaN is close to nothing. NumPy's defaults are
 *                        relative = 1e-5, absolute = 1e-8
 *     duet_pow_int       x to the power n by repeated squaring. For integers, overflow wraps. For
 *                        floating point only, n may be negative: 1 divided by the positive power
 * Shapes    array_equal: any; the result has rank 0 and type bool. allclose: x and y broadcast; the
 *           result has rank 0 and type bool. pow_int: the shape of x
 * Errors    in the result: as the operators that they are made of; the error text names that operator.
 *           BAD_ARGUMENT: a tolerance is negative or NaN */
DUET_API DUET_MUST duet_expr duet_array_equal(duet_expr x, duet_expr y);
DUET_API DUET_MUST duet_expr duet_array_equal_at(duet_expr x, duet_expr y, const char *site);
DUET_API DUET_MUST duet_expr duet_allclose(duet_expr x, duet_expr y, double relative, double absolute);
DUET_API DUET_MUST duet_expr duet_allclose_at(duet_expr x, duet_expr y, double relative, double absolute,
                                              const char *site);
DUET_API DUET_MUST duet_expr duet_pow_int(duet_expr x, int n);
DUET_API DUET_MUST duet_expr duet_pow_int_at(duet_expr x, int n, const char *site);

/* Computes the next representable number behind x in the direction of y, as C's nextafter, also for
 * f16 and bf16; y where x is equal to y. NaN if an operand is NaN. It is made of other operators.
 * Shapes    the operands broadcast
 * Errors    in the result: BAD_SHAPE, BAD_TYPE (the elements are not floating point, or complex) */
DUET_OPERATOR(duet_nextafter, duet_expr x, duet_expr y)

/* Compute differences.
 *     duet_diff   differences of neighbouring elements along an axis, `n` times: x[1] - x[0], x[2] -
 *                 x[1], ... Of bools: 1 where neighbours differ. Unsigned integers wrap
 * Shapes    the shape of x, with n elements less along the axis, but at least 0
 * Errors    in the result: BAD_ARGUMENT (n is negative), BAD_SHAPE
 * Source    NumPy's diff */
DUET_OPERATOR(duet_diff, duet_expr x, int n, int axis)

/* Sums products along named axes, of one operand or more; in C also duet_einsum(x, "ii->i") and
 * duet_einsum(x, y, z, "ij,jk,kl->il"). The text has a group of letters for each operand, and one for the
 * result, by NumPy's rules:
 *     - a letter in several groups stands for axes of the same size; a size of 1 broadcasts
 *     - a letter twice in one group selects the diagonal
 *     - letters that the result lacks are summed over
 *     - ... stands for all other axes, which broadcast. They are not summed over: if a group of an operand
 *       has ... for at least one axis, the group of the result must have it, too
 *     - without "->", the result has the axes of ..., then the letters that occur once, in alphabetical order
 * Operands are multiplied from left to right. If a product sums over axes, it is a matrix product.
 *     duet_einsum_list   the sum of products of `count` operands
 * Shapes    as the text says. No intermediate product may have more than 8 axes
 * Errors    in the result: BAD_ARGUMENT (the text; count is less than 1 or too large), BAD_SHAPE, BAD_TYPE,
 *           UNSUPPORTED (an intermediate product of more than 8 axes)
 * Source    NumPy's einsum */
DUET_OPERATOR(duet_einsum_list, int count, const duet_expr *x, const char *indices)

/* Gather and scatter by indices along an axis, or by indices of several axes. Negative indices count from the
 * end.
 *     duet_scatter_min          as duet_scatter_max, but the smallest of the element and its values remains
 *     duet_put_along_axis       x with the elements that duet_take_along_axis(x, indices, axis) selects
 *                               replaced by values. indices and values broadcast to x along the other axes
 *     duet_scatter_along_axis   x with values combined with the elements that duet_take_along_axis selects,
 *                               as `how` says. indices may be smaller than x along the other axes; then
 *                               only the first lines change
 *     duet_gather_nd            the elements or parts x[i] for each list i of indices. The lists are along
 *                               the last axis of indices: one number for each of the first axes of x
 *     duet_scatter_nd           x with values combined with the parts that duet_gather_nd(x, indices) selects
 * With DUET_SCATTER_SET, the last one of equal indices counts.
 * Shapes    scatter_min: as scatter_max. put_along_axis: x, indices and values have the same number of axes.
 *           scatter_along_axis: indices are not larger than x, except along the axis; values have the
 *           shape of indices. gather_nd: the result has the sizes of indices without the last one, then those
 *           of x without the indexed ones. scatter_nd: values have that shape
 * Errors    in the result: BAD_ARGUMENT (how), BAD_SHAPE, BAD_TYPE. Of the statement, on the CPU:
 *           BAD_ARGUMENT: an index is out of bounds
 * Source    NumPy's put_along_axis; ScatterElements, GatherND and ScatterND of ONNX */
DUET_OPERATOR(duet_scatter_min, duet_expr x, duet_expr indices, duet_expr values, int axis)
DUET_OPERATOR(duet_put_along_axis, duet_expr x, duet_expr indices, duet_expr values, int axis)
DUET_OPERATOR(duet_scatter_along_axis, duet_expr x, duet_expr indices, duet_expr values, int axis,
              duet_scatter_how how)
DUET_OPERATOR(duet_gather_nd, duet_expr x, duet_expr indices)
DUET_OPERATOR(duet_scatter_nd, duet_expr x, duet_expr indices, duet_expr values, duet_scatter_how how)

/* Compute cumulative sums or products along an axis, with options; in C also
 * duet_cumsum(x, axis, .reverse = 1).
 *     duet_cumsum_with    cumulative sums
 *     duet_cumprod_with   cumulative products
 * Options, each 0 or 1
 *     exclusive   each result is that of the elements before it: the first one is 0, or 1 for products
 *     reverse     from the last element to the first
 *     initial     the result of no elements, 0 or 1, comes first, or with .reverse last. Not with .exclusive
 * Shapes    the shape of x, with one element more along the axis if .initial is 1
 * Errors    in the result: BAD_ARGUMENT (.exclusive and .initial), BAD_SHAPE, BAD_TYPE
 * Source    CumSum of ONNX; cumulative_sum of the array API with include_initial */
typedef struct duet_scan {
    int exclusive, reverse, initial;
} duet_scan;
DUET_OPERATOR(duet_cumsum_with, duet_expr x, int axis, const duet_scan *options)
DUET_OPERATOR(duet_cumprod_with, duet_expr x, int axis, const duet_scan *options)

/* Compute statistics of all elements, or along axes: in C duet_median(x), duet_median(x, 0),
 * duet_quantile(x, 0.25, 0, 2). Forms that end with _axes_keep leave the reduced axes with size 1. Of
 * integers and bools, the result is f64.
 *     duet_var_ddof     the sum of the squared distances from the mean, divided by n - ddof, where n
 *                       is the number of elements. Infinite or NaN where n - ddof is not positive
 *     duet_std_ddof     the square root of duet_var_ddof
 *     duet_median       the middle one of the sorted elements, or the mean of the two in the middle
 *     duet_quantile     the value below which a part q of the elements lies, 0 <= q <= 1. Between two
 *                       elements it is interpolated linearly
 *     duet_percentile   the same with q in percent, 0 <= q <= 100
 * The median and the quantiles are NaN if an element is NaN, or if there are no elements.
 * Shapes    as those of duet_sum, duet_sum_axes and duet_sum_axes_keep
 * Errors    in the result: BAD_ARGUMENT (q, ddof, the list of axes), BAD_SHAPE, BAD_TYPE (complex
 *           elements)
 * Source    NumPy's functions of the same names, with method="linear", and its var and std with ddof */
DUET_OPERATOR(duet_var_ddof, duet_expr x, double ddof)
DUET_OPERATOR(duet_var_ddof_axes, duet_expr x, double ddof, int count, const int *axis)
DUET_OPERATOR(duet_var_ddof_axes_keep, duet_expr x, double ddof, int count, const int *axis)
DUET_OPERATOR(duet_std_ddof, duet_expr x, double ddof)
DUET_OPERATOR(duet_std_ddof_axes, duet_expr x, double ddof, int count, const int *axis)
DUET_OPERATOR(duet_std_ddof_axes_keep, duet_expr x, double ddof, int count, const int *axis)
DUET_OPERATOR(duet_median, duet_expr x)
DUET_OPERATOR(duet_median_axes, duet_expr x, int count, const int *axis)
DUET_OPERATOR(duet_median_axes_keep, duet_expr x, int count, const int *axis)
DUET_OPERATOR(duet_quantile, duet_expr x, double q)
DUET_OPERATOR(duet_quantile_axes, duet_expr x, double q, int count, const int *axis)
DUET_OPERATOR(duet_quantile_axes_keep, duet_expr x, double q, int count, const int *axis)
DUET_OPERATOR(duet_percentile, duet_expr x, double q)
DUET_OPERATOR(duet_percentile_axes, duet_expr x, double q, int count, const int *axis)
DUET_OPERATOR(duet_percentile_axes_keep, duet_expr x, double q, int count, const int *axis)

/* Compute norms of vectors: of all elements, or along axes. Of integers, the result is f64. Forms that end
 * with _axes_keep leave the reduced axes with size 1.
 *     duet_vector_norm   the p-th root of the sum of the p-th powers of the magnitudes. p = 2 is duet_norm.
 *                        INFINITY gives the largest magnitude, -INFINITY the smallest one, and 0 the
 *                        number of elements that are not 0
 * Shapes    as those of duet_sum, duet_sum_axes and duet_sum_axes_keep
 * Errors    in the result: BAD_ARGUMENT (p is NaN, the list of axes), BAD_SHAPE (p is infinite, and there are
 *           no elements)
 * Source    numpy.linalg.vector_norm */
DUET_OPERATOR(duet_vector_norm, duet_expr x, double p)
DUET_OPERATOR(duet_vector_norm_axes, duet_expr x, double p, int count, const int *axis)
DUET_OPERATOR(duet_vector_norm_axes_keep, duet_expr x, double p, int count, const int *axis)

/* Linear algebra made of other operators. Axes before the last two count matrices.
 *     duet_pinv                 the pseudoinverse (Moore-Penrose): duet_lstsq for the columns of the identity
 *                               matrix, which also decides about the rank
 *     duet_matrix_rank          the number of singular values that are larger than rtol times the largest
 *                               one. If rtol is negative, it is max(m, n) eps
 *     duet_matrix_norm          the norm `kind` of a matrix
 *     duet_cond                 the condition: the norm of x times that of its inverse. For DUET_NORM_2 and
 *                               DUET_NORM_MINUS_2 a quotient of singular values, which is infinite for a
 *                               singular x
 *     duet_matrix_power         the product of n factors x; for a negative n, of factors inv(x)
 *     duet_permutation_matrix   the matrix P with P a = a[p], for the p that duet_lu gives
 * Shapes    pinv: a is [..., m, n], the result [..., n, m]. matrix_rank, matrix_norm, cond: the result has
 *           the leading axes of the operand. cond: x is square, unless kind is DUET_NORM_2 or
 *           DUET_NORM_MINUS_2. matrix_power: x is [..., n, n], as the result. permutation_matrix: p is
 *           [..., n], the result [..., n, n]
 * Errors    in the result: as the operators that they are made of; the error text names that operator.
 *           BAD_ARGUMENT: rtol is NaN, kind is no duet_matrix_norms. Of the statement: as those of
 *           duet_svdvals, duet_inv and duet_lstsq
 * Source    NumPy's functions of the same names */
DUET_OPERATOR(duet_pinv, duet_expr a)
DUET_OPERATOR(duet_matrix_rank, duet_expr a, double rtol)
DUET_OPERATOR(duet_matrix_norm, duet_expr x, duet_matrix_norms kind)
DUET_OPERATOR(duet_cond, duet_expr x, duet_matrix_norms kind)
DUET_OPERATOR(duet_matrix_power, duet_expr x, int n)
DUET_OPERATOR(duet_permutation_matrix, duet_expr p, duet_dtype type)

/* Compute how variables depend on each other. Each row of x is a variable, and each column an
 * observation of all of them; a vector is one variable. Of integers and bools, the result is f64.
 *     duet_cov        the covariance of all pairs of variables: sums divided by n - ddof, where n is
 *                     the number of observations. NumPy's default is ddof = 1
 *     duet_corrcoef   the correlation coefficients of all pairs of variables, from -1 to 1; NaN where
 *                     the computed variance of a variable is 0
 * Shapes    x is m x n; the result is m x m. Of a vector the result has rank 0
 * Errors    in the result: BAD_ARGUMENT (ddof is NaN), BAD_SHAPE
 * Source    NumPy's functions of the same names */
DUET_OPERATOR(duet_cov, duet_expr x, double ddof)
DUET_OPERATOR(duet_corrcoef, duet_expr x)

/* Look for values in a list. The element types promote to a common one.
 *     duet_searchsorted   for each value, the index at which it can be inserted into the sorted vector
 *                         x so that x stays sorted; of type i64. Of the possible indices,
 *                         DUET_SIDE_LEFT gives the first and DUET_SIDE_RIGHT the last. NaN is last, as
 *                         in duet_sort. If x is not sorted, the indices are from 0 to the size of x,
 *                         but have no meaning
 *     duet_isin           1 for each element of x that is equal to one of the values, else 0; of type
 *                         bool. NaN is equal to nothing
 * Shapes    searchsorted: x has 1 axis; the result has the shape of values. isin: any; the result has
 *           the shape of x
 * Errors    in the result: BAD_ARGUMENT (side), BAD_SHAPE, BAD_TYPE
 * Source    NumPy's functions of the same names */
DUET_OPERATOR(duet_searchsorted, duet_expr x, duet_expr values, duet_side side)
DUET_OPERATOR(duet_isin, duet_expr x, duet_expr values)

/* The operators of networks.def, for training neural networks: losses, normalisations and gradients.
 * Each is a formula made of the operators above. A loss has rank 0. A gradient has the shape of the
 * matrix with respect to which it is taken.
 * Shapes    as the operators that they are made of. The x and y of a loss have the same shape
 * Errors    in the result: as these operators; the error text names the operator that failed */
#define DUET_NETWORK1(name, ...)  DUET_OPERATOR(duet_##name, duet_expr x)
#define DUET_NETWORK2(name, ...)  DUET_OPERATOR(duet_##name, duet_expr x, duet_expr y)
#define DUET_NETWORK2R(name, ...) DUET_OPERATOR(duet_##name, duet_expr x, duet_expr y, double r)
#define DUET_NETWORK3R(name, ...) DUET_OPERATOR(duet_##name, duet_expr x, duet_expr y, duet_expr z, double r)
#include <duet/networks.def>

/* Compute probabilistic max pooling without overflow. Each element of x stands for a binary unit of a
 * Boltzmann machine. The image is divided into windows of h x w elements; S is the sum of exp(x) over
 * a window.
 *     duet_p_max_pool_h   exp(x) / (1 + S) for each element: the probability that its unit is 1
 *     duet_p_max_pool_p   S / (1 + S) for each window: the probability that one of its units is 1
 * Shapes    x is n x c x rows x cols; rows is a multiple of h, and cols of w. The result of _h has the
 *           shape of x, that of _p is n x c x rows / h x cols / w
 * Errors    in the result: as duet_max_pool2d, duet_upsample2d and duet_sub; the error text names the
 *           one that failed
 * Source    Lee et al., Convolutional deep belief networks, 2009 */
DUET_API DUET_MUST duet_expr duet_p_max_pool_h(duet_expr x, int h, int w);
DUET_API DUET_MUST duet_expr duet_p_max_pool_h_at(duet_expr x, int h, int w, const char *site);
DUET_API DUET_MUST duet_expr duet_p_max_pool_p(duet_expr x, int h, int w);
DUET_API DUET_MUST duet_expr duet_p_max_pool_p_at(duet_expr x, int h, int w, const char *site);

/* Returns the padding with which a convolution with stride 1 computes the given part (FULL, SAME or
 * VALID) along one axis: duet_conv2d(x, w, .pad = { duet_pad_for(DUET_OVERLAP_SAME, 3, 0), ... }). The
 * padding applies to both ends of the axis. If (window - 1) * dilation is odd, SAME gives one result
 * less than the axis has elements. Set the option .more to 1 to get this result too; that is
 * TensorFlow's SAME. duet_convolve and similar operators have the part as an argument.
 * Units     elements; a dilation of 0 means 1 */
static inline int32_t duet_pad_for(duet_overlap part, int32_t window, int32_t dilation)
{
    const int32_t more = (window - 1) * (dilation ? dilation : 1);
    if (part == DUET_OVERLAP_FULL) return more;
    if (part == DUET_OVERLAP_SAME) return more / 2;
    return 0;
}

/* Returns the total padding n at both ends of an axis with which a convolution has ceil(size / stride)
 * results: TensorFlow's SAME. Pass it as .pad = n / 2, .more = n % 2.
 * Units     elements; a stride or dilation of 0 means 1 */
static inline int32_t duet_same_padding(int64_t size, int32_t window, int32_t stride, int32_t dilation)
{
    const int64_t step = stride ? stride : 1, reach = (int64_t)(window - 1) * (dilation ? dilation : 1) + 1;
    const int64_t n = size > 0 ? ((size + step - 1) / step - 1) * step + reach - size : 0;
    return n > 0 ? (int32_t)n : 0;
}

/* Compute Fourier transforms as in NumPy. n is the length of the transform: x is truncated to it, or
 * padded with zeros. If n is 0, the length is the size of x along the axis. For duet_irfft n is the length
 * of the result, and 0 means 2 (m - 1), where m is the size of x. These functions call duet_fftn,
 * duet_ifftn, duet_rfftn and duet_irfftn.
 *     duet_fft      the transform along one axis
 *     duet_fft2     the transform along the last two axes
 *     duet_ifft     the inverse transform along one axis
 *     duet_ifft2    the inverse transform along the last two axes
 *     duet_rfft     the transform of a real x along one axis
 *     duet_rfft2    the transform of a real x along the last two axes
 *     duet_irfft    the inverse of duet_rfft; the result is real
 *     duet_irfft2   the inverse of duet_rfft2; the result is real
 * Shapes    as these operators
 * Errors    in the result: as these operators */
#define DUET_FOURIER(name)                                                                                   \
    DUET_OPERATOR(duet_##name, duet_expr x, int n, int axis)                                                 \
    DUET_OPERATOR(duet_##name##2, duet_expr x)
DUET_FOURIER(fft)
DUET_FOURIER(ifft)
DUET_FOURIER(rfft)
DUET_FOURIER(irfft)
#undef DUET_FOURIER
#undef DUET_REDUCTION
#undef DUET_REDUCTION_ALL

#endif
