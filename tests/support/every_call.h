/* every_call.h - every operator and statement with one way to call it, in the order of the tables
 * of docs/operators.md. Rows of .def files are included automatically; calls without a row are
 * listed below. */
#ifndef EVERY_CALL_H
#define EVERY_CALL_H

#include <duet/duet.h>

/* A call: either `make`, which builds a formula of the operands, or `state`, which runs a statement. */
typedef struct call {
    const char *name, *doc;
    int operands, results; /* number of matrices that it reads; number that a statement writes */
    duet_expr (*make)(const duet_expr *x);
    duet_status (*state)(duet_matrix *const *to, duet_matrix *const *x);
    /* ulps that the row allows; -1: `terms` says how many numbers each element sums, or how it
     * is tested; for a CALL NULL */
    double ulp;
    const char *terms;
} call;

/* ---- the rows of ops.def ---- */

#define MAKE(name, ...)                                                                                      \
    static duet_expr make_##name(const duet_expr *x) { return (duet_##name)(__VA_ARGS__); }
#define DUET_MAP1(name, ...) MAKE(name, x[0])
#define DUET_MAP2(name, ...) MAKE(name, x[0], x[1])
#define DUET_MAP3(name, ...) MAKE(name, x[0], x[1], x[2])
#define DUET_INT1            DUET_MAP1
#define DUET_INT2            DUET_MAP2
#define DUET_FOLD1           DUET_MAP1
#define DUET_FOLD2           DUET_MAP2
#define DUET_MOMENT1         DUET_MAP1
#define DUET_PLACE1          DUET_MAP1
#define OPTIONS_plain
#define OPTIONS_type , DUET_F32
#define OPTIONS_axis , 0
#define OPTIONS_conv , NULL
#define OPTIONS_pool                                                                                         \
    , &(const duet_pool)                                                                                     \
    {                                                                                                        \
        .window = { 2, 2 }                                                                                   \
    }
#define OPTIONS_pool_grad                                                                                    \
    , &(const duet_pool_grad)                                                                                \
    {                                                                                                        \
        .window = { 2, 2 }                                                                                   \
    }
#define OPTIONS_scale                                                                                        \
    , &(const duet_scale)                                                                                    \
    {                                                                                                        \
        {                                                                                                    \
            2, 2                                                                                             \
        }                                                                                                    \
    }
#define OPTIONS_conv1            , NULL
#define OPTIONS_conv1_grad       , NULL
#define OPTIONS_conv1_transposed , NULL
#define OPTIONS_pool1                                                                                        \
    , &(const duet_pool1) { .window = 2 }
#define OPTIONS_pool1_grad                                                                                   \
    , &(const duet_pool1_grad) { .window = 2 }
#define OPTIONS_scale1                                                                                       \
    , &(const duet_scale1) { 2 }
#define OPTIONS_conv3            , NULL
#define OPTIONS_conv3_grad       , NULL
#define OPTIONS_conv3_transposed , NULL
#define OPTIONS_pool3                                                                                        \
    , &(const duet_pool3)                                                                                    \
    {                                                                                                        \
        .window = { 2, 2, 2 }                                                                                \
    }
#define OPTIONS_pool3_grad                                                                                   \
    , &(const duet_pool3_grad)                                                                               \
    {                                                                                                        \
        .window = { 2, 2, 2 }                                                                                \
    }
#define OPTIONS_scale3                                                                                       \
    , &(const duet_scale3)                                                                                   \
    {                                                                                                        \
        {                                                                                                    \
            2, 2, 2                                                                                          \
        }                                                                                                    \
    }
#define OPTIONS_conv_grad       , NULL
#define OPTIONS_conv_transposed , NULL
#define OPTIONS_fourier         , NULL
#define OPTIONS_overlap         , DUET_OVERLAP_FULL
#define OPTIONS_classes         , 5, DUET_F32
#define OPTIONS_top             , 2, 0
#define OPTIONS_bins            , 0, 1, 8
#define OPTIONS_sizes                                                                                        \
    , 2, (const int64_t[]) { 1, 4 }
#define OPTIONS_order                                                                                        \
    , 2, (const int[]) { 1, 0 }
#define OPTIONS_range                  , 0, 0, 1, 1
#define OPTIONS_window                 , 0, 2, 1, 1
#define OPTIONS_offset                 , 0
#define OPTIONS_triangle               , NULL
#define OPTIONS_solver                 , NULL
#define OPTIONS_indices                , "ij,jk->ik"
#define OPTIONS_csr                    , 4, 0
#define OPTIONS_turned                 , 0
#define DUET_DEF1(name, options, ...)  MAKE(name, x[0] OPTIONS_##options)
#define DUET_DEF2(name, options, ...)  MAKE(name, x[0], x[1] OPTIONS_##options)
#define DUET_CALL1                     DUET_DEF1
#define DUET_CALL2                     DUET_DEF2
#define DUET_CALL3(name, options, ...) MAKE(name, x[0], x[1], x[2] OPTIONS_##options)
#include <duet/ops.def>

#define ROW(name, n, ulp, terms, text) { #name, text, n, 0, make_##name, NULL, ulp, terms },
static const call maps[] = {
#define DUET_MAP1(name, formula, oracle, domain, ulp, flags, known, doc) ROW(name, 1, ulp, NULL, doc)
#define DUET_MAP2(name, formula, oracle, domain, ulp, flags, known, doc) ROW(name, 2, ulp, NULL, doc)
#define DUET_MAP3(name, formula, oracle, domain, ulp, flags, known, doc) ROW(name, 3, ulp, NULL, doc)
#define DUET_INT1(name, formula, oracle, domain, flags, known, doc)      ROW(name, 1, 0, NULL, doc)
#define DUET_INT2(name, formula, oracle, domain, flags, known, doc)      ROW(name, 2, 0, NULL, doc)
#include <duet/ops.def>
};
static const call reductions[] = {
#define DUET_FOLD1(name, start, take, join, epilogue, needs, oracle, terms, doc) ROW(name, 1, -1, #terms, doc)
#define DUET_FOLD2(name, start, take, join, epilogue, needs, oracle, terms, doc) ROW(name, 2, -1, #terms, doc)
#define DUET_MOMENT1                                                             DUET_FOLD1
#define DUET_PLACE1(name, better, needs, oracle, doc)                            ROW(name, 1, 0, NULL, doc)
#include <duet/ops.def>
};
static const call defs[] = {
#define DUET_DEF1(name, options, needs, shape, value, terms, doc) ROW(name, 1, -1, #terms, doc)
#define DUET_DEF2(name, options, needs, shape, value, terms, doc) ROW(name, 2, -1, #terms, doc)
#define DUET_CALL1(name, options, types, needs, shape, doc)       ROW(name, 1, -1, NULL, doc)
#define DUET_CALL2(name, options, types, needs, shape, doc)       ROW(name, 2, -1, NULL, doc)
#define DUET_CALL3(name, options, types, needs, shape, doc)       ROW(name, 3, -1, NULL, doc)
#include <duet/ops.def>
};

/* ---- the rows of composed.def and networks.def ---- */

#define DUET_COMPOSED1(name, ...)      MAKE(name, x[0])
#define DUET_COMPOSED2(name, ...)      MAKE(name, x[0], x[1])
#define DUET_COMPOSED3(name, ...)      MAKE(name, x[0], x[1], x[2])
#define DUET_COMPOSED1N(name, ...)     MAKE(name, x[0], 0.5)
#define DUET_COMPOSED_FOLD1(name, ...) MAKE(name, x[0])
#define DUET_COMPOSED_MATRIX1          DUET_COMPOSED1
#include <duet/composed.def>
MAKE(array_equal, x[0], x[1])
MAKE(allclose, x[0], x[1], 1e-5, 1e-8)
MAKE(pow_int, x[0], 3)
MAKE(nextafter, x[0], x[1])
MAKE(vdot, x[0], x[1])
MAKE(vecdot, x[0], x[1], 0)
MAKE(cross, x[0], x[1])
MAKE(cross_axis, x[0], x[1], -1)
MAKE(diff, x[0], 1, 0)
MAKE(var_ddof, x[0], 1)
MAKE(std_ddof, x[0], 1)
MAKE(median, x[0])
MAKE(quantile, x[0], 0.25)
MAKE(percentile, x[0], 25)
MAKE(cov, x[0], 1)
MAKE(corrcoef, x[0])
MAKE(vector_norm, x[0], 2)
MAKE(pinv, x[0])
MAKE(matrix_rank, x[0], -1)
MAKE(matrix_norm, x[0], DUET_NORM_FRO)
MAKE(cond, x[0], DUET_NORM_2)
MAKE(matrix_power, x[0], 3)
MAKE(permutation_matrix, x[0], DUET_F32)
MAKE(searchsorted, x[0], x[1], DUET_SIDE_LEFT)
MAKE(softmax_axis, x[0], 0)
MAKE(log_softmax_axis, x[0], 0)
MAKE(one_hot_axis, x[0], 5, DUET_F32, 0)
MAKE(cumsum_with, x[0], 0, &(const duet_scan){ .exclusive = 1 })
MAKE(cumprod_with, x[0], 0, &(const duet_scan){ .reverse = 1 })
MAKE(einsum_list, 2, x, "ij,ik->jk")
MAKE(scatter_min, x[0], x[1], x[2], 0)
MAKE(put_along_axis, x[0], x[1], x[2], 0)
MAKE(scatter_along_axis, x[0], x[1], x[2], 0, DUET_SCATTER_ADD)
MAKE(gather_nd, x[0], x[1])
MAKE(scatter_nd, x[0], x[1], x[2], DUET_SCATTER_ADD)
MAKE(interpolate, x[0], &(const duet_interpolation){ .size = { 6 }, .mode = DUET_INTERPOLATE_LINEAR })
MAKE(isin, x[0], x[1])
#define DUET_NETWORK1(name, ...)  MAKE(name, x[0])
#define DUET_NETWORK2(name, ...)  MAKE(name, x[0], x[1])
#define DUET_NETWORK2R(name, ...) MAKE(name, x[0], x[1], 0.5)
#define DUET_NETWORK3R(name, ...) MAKE(name, x[0], x[1], x[2], 0.5)
#include <duet/networks.def>

MAKE(index, x[0], 1, (const duet_index_entry[]){ DUET_STEP(DUET_OPEN, DUET_OPEN, -1) })
MAKE(flip, x[0], 0)
MAKE(pick, x[0], 0, 0)
MAKE(part, x[0], 0, 2, 1)
MAKE(expand_dims, x[0], 0)
MAKE(squeeze, x[0], 0)
MAKE(moveaxis, x[0], 0, -1)
MAKE(swapaxes, x[0], 0, -1)
MAKE(tril, x[0], 0)
MAKE(triu, x[0], 0)
MAKE(diag, x[0], 0)
MAKE(meshgrid, x[0], 0, 2, (const int64_t[]){ 4, 4 })
MAKE(concat, 0, 2, x)
MAKE(stack, 0, 2, x)
MAKE(tile, x[0], 1, (const int64_t[]){ 2 })
MAKE(repeat, x[0], 2, 0)
MAKE(pad, x[0], &(const duet_padding){ .before = { 1 }, .after = { 1 }, .mode = DUET_PAD_EDGE })
MAKE(roll, x[0], 1, 0)
MAKE(im2col, x[0], &(const duet_windows){ .window = { 1, 1 } })

#define FORMULA "as its formula"
static const call composed[] = {
#define DUET_COMPOSED1(name, formula, oracle, doc)      ROW(name, 1, -1, FORMULA, doc)
#define DUET_COMPOSED2(name, formula, oracle, doc)      ROW(name, 2, -1, FORMULA, doc)
#define DUET_COMPOSED3(name, formula, oracle, doc)      ROW(name, 3, -1, FORMULA, doc)
#define DUET_COMPOSED1N(name, formula, oracle, doc)     ROW(name, 1, -1, FORMULA, doc)
#define DUET_COMPOSED_FOLD1(name, formula, oracle, doc) ROW(name, 1, -1, FORMULA, doc)
#define DUET_COMPOSED_MATRIX1                           DUET_COMPOSED_FOLD1
#include <duet/composed.def>
    ROW(array_equal, 2, 0, NULL, "1 if x and y have the same shape and equal elements, else 0")             //
    ROW(allclose, 2, -1, FORMULA, "1 if |x - y| <= absolute + relative |y| for all elements, else 0")       //
    ROW(pow_int, 1, -1, FORMULA, "x to an integer power, by squaring")                                      //
    ROW(nextafter, 2, 0, NULL, "the next representable number behind x in the direction of y")              //
    ROW(vdot, 2, -1, FORMULA, "the dot product of conj(x) and y")                                           //
    ROW(vecdot, 2, -1, FORMULA, "the sums of conj(x) y along an axis")                                      //
    ROW(cross, 2, -1, FORMULA, "the cross product of vectors along the last axis")                          //
    ROW(cross_axis, 2, -1, FORMULA, "the cross product of vectors along an axis")                           //
    ROW(diff, 1, -1, FORMULA, "the differences of neighbouring elements along an axis, n times")            //
    ROW(var_ddof, 1, -1, FORMULA, "the variance, divided by n - ddof instead of n")                         //
    ROW(std_ddof, 1, -1, FORMULA, "the square root of var_ddof")                                            //
    ROW(median, 1, -1, FORMULA, "the median; NaN if an element is NaN")                                     //
    ROW(quantile, 1, -1, FORMULA, "a quantile, interpolated linearly; NaN if an element is NaN")            //
    ROW(percentile, 1, -1, FORMULA, "the quantile of q percent")                                            //
    ROW(cov, 1, -1, FORMULA, "the covariance of all pairs of rows")                                         //
    ROW(corrcoef, 1, -1, FORMULA, "the correlation coefficients of all pairs of rows")                      //
    ROW(vector_norm, 1, -1, FORMULA, "the p-th root of the sum of the p-th powers of the magnitudes")       //
    ROW(pinv, 1, -1, FORMULA, "the pseudoinverse (Moore-Penrose), by lstsq")                                //
    ROW(matrix_rank, 1, -1, FORMULA, "the number of singular values above rtol times the largest one")      //
    ROW(matrix_norm, 1, -1, FORMULA, "a norm of a matrix: Frobenius, nuclear, or of kind 1, 2 or infinity") //
    ROW(cond, 1, -1, FORMULA, "the condition of a matrix: its norm times that of its inverse")              //
    ROW(matrix_power, 1, -1, FORMULA, "a matrix to an integer power, by squaring; a negative one by inv")   //
    ROW(permutation_matrix, 1, -1, FORMULA, "the matrix P with P a = a[p]")                                 //
    ROW(searchsorted, 2, 0, NULL, "for each value, the index at which the sorted vector x takes it")        //
    ROW(softmax_axis, 1, -1, FORMULA, "softmax along an axis")                                              //
    ROW(log_softmax_axis, 1, -1, FORMULA, "log_softmax along an axis")                                      //
    ROW(one_hot_axis, 1, 0, NULL, "one_hot with the classes along an axis of the result")                   //
    ROW(cumsum_with, 1, -1, FORMULA, "cumsum, exclusive, from the end, or with the sum of nothing")         //
    ROW(cumprod_with, 1, -1, FORMULA, "cumprod, exclusive, from the end, or with the product of nothing")   //
    ROW(einsum_list, 2, -1, FORMULA, "einsum of any number of operands, as in NumPy")                       //
    ROW(scatter_min, 3, 0, NULL, "as scatter_max, but the smallest of the element and its values")          //
    ROW(put_along_axis, 3, 0, NULL, "x with the elements that take_along_axis selects replaced")            //
    ROW(scatter_along_axis, 3, -1, FORMULA,
        "x with values combined with the elements at indices along an axis")                     //
    ROW(gather_nd, 2, 0, NULL, "the parts of x at lists of indices")                             //
    ROW(scatter_nd, 3, -1, FORMULA, "x with values combined with the parts at lists of indices") //
    ROW(interpolate, 1, -1, FORMULA,
        "x with other sizes: nearest, linear or cubic interpolation, with or without antialiasing") //
    ROW(isin, 2, 0, NULL, "1 for each element of x that is equal to one of the values, else 0")     //
    ROW(tril, 1, 0, NULL, "x on diagonal k and below, else 0")                                      //
    ROW(triu, 1, 0, NULL, "x on diagonal k and above, else 0")                                      //
    ROW(diag, 1, 0, NULL, "the matrix with x on diagonal k, or diagonal k of a matrix")             //
    ROW(meshgrid, 1, 0, NULL, "a vector along one axis of a grid")                                  //
    ROW(index, 1, 0, NULL,
        "NumPy's basic indexing, as in x[2, 0:5]") ROW(flip, 1, 0, NULL,
                                                       "the elements of one axis in reverse order")
        ROW(pick, 1, 0, NULL,
            "element i of one axis, which is removed") ROW(part, 1, 0, NULL,
                                                           "one of several parts of equal size along an axis")
            ROW(expand_dims, 1, 0, NULL, "x with a new axis of size 1") ROW(squeeze, 1, 0, NULL,
                                                                            "x without an axis of size 1")
                ROW(moveaxis, 1, 0, NULL, "x with one axis moved to another position") ROW(
                    swapaxes, 1, 0, NULL,
                    "x with two axes exchanged") ROW(concat, 2, 0, NULL, "the operands, joined along an axis")
                    ROW(stack, 2, 0, NULL,
                        "the operands, joined along a new axis") ROW(tile, 1, 0, NULL,
                                                                     "x, repeated along its axes")
                        ROW(repeat, 1, 0, NULL, "each element of x, repeated along an axis") ROW(
                            pad, 1, 0, NULL, "x with more elements before and behind it along its axes")
                            ROW(roll, 1, 0, NULL,
                                "x, shifted along an axis; elements that leave one end enter at the other")
                                ROW(im2col, 1, 0, NULL, "the windows of images, as the columns of matrices")
};
MAKE(p_max_pool_h, x[0], 2, 2)
MAKE(p_max_pool_p, x[0], 2, 2)
MAKE(rms_norm, x[0], x[1], 0.5)
MAKE(layer_norm_axes, x[0], x[1], x[2], 0.5, 1, (const int[]){ 0 })
MAKE(rms_norm_axes, x[0], x[1], 0.5, 1, (const int[]){ 0 })
MAKE(group_norm, x[0], x[1], x[2], 2, 0.5)
MAKE(nll_loss, x[0], x[1], NULL)
MAKE(cross_entropy_loss, x[0], x[1], NULL)
MAKE(max_pool1d_indices, x[0], &(const duet_pool1){ .window = 2 })
MAKE(max_pool2d_indices, x[0], &(const duet_pool){ .window = { 2, 2 } })
MAKE(max_pool3d_indices, x[0], &(const duet_pool3){ .window = { 2, 2, 2 } })
MAKE(global_norm, 2, x)
MAKE(clip_norm, x[0], x[1], x[2])
MAKE(stop_gradient, x[0])
MAKE(checkpoint, x[0])
static const call networks[] = {
#define DUET_NETWORK1(name, formula, doc)  ROW(name, 1, -1, FORMULA, doc)
#define DUET_NETWORK2(name, formula, doc)  ROW(name, 2, -1, FORMULA, doc)
#define DUET_NETWORK2R(name, formula, doc) ROW(name, 2, -1, FORMULA, doc)
#define DUET_NETWORK3R(name, formula, doc) ROW(name, 3, -1, FORMULA, doc)
#include <duet/networks.def>
    ROW(p_max_pool_h, 1, -1, FORMULA,
        "probabilistic max pooling: exp(x) / (1 + the sum of exp(x) over the window), without overflow") //
    ROW(p_max_pool_p, 1, -1, FORMULA,
        "probabilistic max pooling: for each window S / (1 + S), where S is the sum of exp(x)")           //
    ROW(layer_norm_axes, 3, -1, FORMULA, "layer_norm along several axes")                                 //
    ROW(rms_norm, 2, -1, FORMULA, "x / sqrt(mean(x * x) + r) * scale, with the mean along the last axis") //
    ROW(rms_norm_axes, 2, -1, FORMULA, "rms_norm along several axes")                                     //
    ROW(group_norm, 3, -1, FORMULA, "instance_norm over groups of channels")                              //
    ROW(nll_loss, 2, -1, FORMULA,
        "the negative log-likelihood of the class of each target, with weights and an ignored index")      //
    ROW(cross_entropy_loss, 2, -1, FORMULA, "nll_loss of log_softmax(x) along the classes")                //
    ROW(max_pool1d_indices, 1, 0, NULL, "for each window of max_pool1d, the index of its largest element") //
    ROW(max_pool2d_indices, 1, 0, NULL,
        "for each window of max_pool2d, the index of its largest element in the plane") //
    ROW(max_pool3d_indices, 1, 0, NULL,
        "for each window of max_pool3d, the index of its largest element in the volume")              //
    ROW(global_norm, 2, -1, FORMULA, "the Euclidean norm of all elements of all operands")            //
    ROW(clip_norm, 3, -1, FORMULA, "g, scaled so that a norm of which g is a part is at most `most`") //
    ROW(stop_gradient, 1, -1, FORMULA, "x, as a constant for duet_grad")                              //
    ROW(checkpoint, 1, -1, FORMULA,
        "x, stored in memory (gradient checkpointing): values that x is computed from are recomputed") //
};

/* ---- statements: destinations are 4 x 4 unless stated ---- */

#define STATE(name, ...)                                                                                     \
    static duet_status state_##name(duet_matrix *const *to, duet_matrix *const *x)                           \
    {                                                                                                        \
        return duet_##name(__VA_ARGS__);                                                                     \
    }
#define DUET_FACTOR2(name, ...) STATE(name, to[0], to[1], x[0])
#define DUET_FACTOR3(name, ...) STATE(name, to[0], to[1], to[2], x[0])
#include <duet/factor.def>
#define SAID(name, n, results, u, b, text) { #name, text, n, results, NULL, state_##name, u, b },
static const call factors[] = {
#define DUET_FACTOR2(name, a, b, needs, shapes, doc)    SAID(name, 1, 2, -1, "residual", doc)
#define DUET_FACTOR3(name, a, b, c, needs, shapes, doc) SAID(name, 1, 3, -1, "residual", doc)
#include <duet/factor.def>
};

STATE(random_uniform, to[0], 1, 0, 1)
STATE(random_normal, to[0], 1, 0, 1)
STATE(random_truncated_normal, to[0], 1, 0, 1, -1, 1)
STATE(random_bernoulli, to[0], 1, 0.5)
STATE(random_integers, to[0], 1, 0, 9)
STATE(random_permutation, to[0], 1)
STATE(random_sobol, to[0], 1, 3)
STATE(noise_uniform, to[0], x[0], 1)
STATE(noise_normal, to[0], x[0], 1)
STATE(noise_logistic, to[0], x[0], 1)
STATE(noise_ranged, to[0], x[0], 1, 1)
STATE(noise_bernoulli, to[0], x[0], 1)
STATE(shuffle, to[0], x[0], 0, 1)
STATE(sequence, to[0], 0, 1)
STATE(sgd, to[0], x[0], 0.1)
STATE(adam, to[0], x[0], to[1], to[2], 0.1, 1)
STATE(adamw, to[0], x[0], to[1], to[2], 0.1, 1, .decay = 0.1)
STATE(rmsprop, to[0], x[0], to[1], 0.1)
STATE(adagrad, to[0], x[0], to[1], 0.1)
STATE(magic, to[0])
STATE(convmtx, to[0], x[0], DUET_OVERLAP_SAME)
STATE(convmtx2, to[0], x[0], 2, 2, DUET_OVERLAP_SAME)
static const call statements[] = {
    SAID(random_uniform, 0, 1, 0, NULL, "uniformly distributed numbers")              //
    SAID(random_normal, 0, 1, -1, "its distribution", "normally distributed numbers") //
    SAID(random_truncated_normal, 0, 1, -1, "its distribution",
         "normally distributed numbers, restricted to a range")                                //
    SAID(random_bernoulli, 0, 1, 0, NULL, "1 with a given probability, else 0")                //
    SAID(random_integers, 0, 1, 0, NULL, "uniformly distributed integers of a range")          //
    SAID(random_permutation, 0, 1, 0, NULL, "a random permutation; all are equally likely")    //
    SAID(random_sobol, 0, 1, 0, NULL, "points of the Sobol sequence")                          //
    SAID(noise_uniform, 1, 1, -1, FORMULA, "x plus uniform numbers")                           //
    SAID(noise_normal, 1, 1, -1, FORMULA, "x plus normal numbers")                             //
    SAID(noise_logistic, 1, 1, -1, FORMULA, "x plus normal numbers with deviation sigmoid(x)") //
    SAID(noise_ranged, 1, 1, -1, FORMULA,
         "x plus normal numbers, but x where it is 0 or the given maximum")                                 //
    SAID(noise_bernoulli, 1, 1, 0, NULL, "1 with probability x, else 0")                                    //
    SAID(shuffle, 1, 1, 0, NULL, "the slices along an axis in random order; all orders are equally likely") //
    SAID(sequence, 0, 1, 0, NULL, "start, start + by, start + 2 by, ...")                                   //
    SAID(convmtx, 1, 1, 0, NULL, "the matrix whose product with a vector is its convolution")               //
    SAID(convmtx2, 1, 1, 0, NULL,
         "the matrix whose product with an image in row-major order is its convolution")              //
    SAID(sgd, 1, 1, -1, FORMULA, "a step of gradient descent, also with momentum")                    //
    SAID(adam, 1, 3, -1, FORMULA, "a step of Adam")                                                   //
    SAID(adamw, 1, 3, -1, FORMULA, "a step of AdamW")                                                 //
    SAID(rmsprop, 1, 2, -1, FORMULA, "a step of RMSprop")                                             //
    SAID(adagrad, 1, 2, -1, FORMULA, "a step of Adagrad")                                             //
    SAID(magic, 0, 1, 0, NULL, "the magic square: all rows, columns and diagonals have the same sum") //
};

#endif
