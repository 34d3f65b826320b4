/* shape_conditions.h - the conditions that rows of ops.def set on their operands, each with the
 * error message for the user. A row names a condition by its macro: AXES(A,
 * 4) SQUARE(A). Private to src/expr. */
#ifndef SHAPE_CONDITIONS_H
#define SHAPE_CONDITIONS_H

#include "shape_rules.h"

/* An operand as the rows see it. A vector is a row on the left and a column on the right. */
typedef struct form {
    enum op op;
    int index; /* of the operand: 0, 1, 2 */
    int rank;
    duet_dtype type;
    bool weak; /* a number */
    const int64_t *size;
    int64_t count, rows, cols, height, channels, n, c, d, h, w;
} form;

form form_of(enum op op, int index, const node *x, bool right);

/* ---- sizes that depend on options. k is a spatial axis: 0 is the first one after the channels ---- */

/* The number of windows along an axis, and the extent of a window of `size` elements with dilation. */
int64_t window_count(const op_options *o, int64_t in, int64_t reach, int k);
int64_t window_reach(const op_options *o, int64_t size, int k);

/* The size of the smallest image with this number of results; the size of the image, which the options
 * may set; and the size of the filter. */
int64_t least_image(const op_options *o, int64_t results, int64_t size, int k);
int64_t image_size(const op_options *o, int64_t results, int64_t size, int k);
int64_t filter_size(const op_options *o, int64_t in, int64_t results, int k);

/* The axes of A before its last two, or before the last one if A is a vector. */
shape leading_axes(const form *A);

/* Computes the shape to which A and B broadcast. false: they do not broadcast. */
bool forms_broadcast(const form *A, const form *B, shape *s);

/* Complex elements with parts of these types; DUET_DTYPE_COUNT: there are none. A number takes the
 * type of the other operand. */
duet_dtype complex_type_of(const form *A, const form *B);

/* The shape of the elements of A that are at indices B along an axis. */
void taken_shape(const form *A, const form *B, int axis, node *out);

int64_t plane_elements(const form *A);

/* ---- conditions on types; Errors: BAD_TYPE ---- */

duet_status must_be_floating(const form *A);
duet_status must_be_real(const form *A);
duet_status must_be_numeric(const form *A);
duet_status must_be_indices(const form *A);
duet_status must_have_type_of(const form *A, const form *B);
duet_status must_be_parts(const form *A, const form *B);

/* ---- conditions on shapes; Errors: BAD_SHAPE ---- */

duet_status must_have_axes(const form *A, int least, int most);
duet_status must_have_axes_of(const form *A, const form *B);
duet_status must_have_elements(const form *A);
duet_status must_have_plane(const form *A);
duet_status must_be_countable(const form *A, int64_t count);
duet_status must_broadcast(const form *A, const form *B);
duet_status must_be_square(const form *A);
duet_status must_have_equal_sizes(const form *A, int a, const form *B, int b);
duet_status must_have_equal_leading(const form *A, const form *B);
duet_status must_have_broadcast_leading(const form *A, const form *B);
duet_status must_have_rank_sum(int rank);
duet_status must_match_columns(const form *A, const form *B);
duet_status must_match_rows(const form *A, const form *B);
duet_status must_be_bias_of(const form *A, const form *B);
duet_status must_be_like_take(const form *A, const form *B, const form *C, int axis);
duet_status must_be_like_but_axis(const form *A, const form *B, int axis);
duet_status must_hold_k(const form *A, const op_options *o);
duet_status must_be_solvable(const form *A);
duet_status must_be_pattern(const form *A);
duet_status must_have_rows_of_pattern(const form *A, const form *B);
duet_status must_fit_pattern(const form *A, const form *B);
duet_status must_have_columns_of(const form *A, const form *B);
duet_status must_be_square_pattern(const form *A, const form *B, const form *C);
duet_status must_match_csr(const form *A, const form *B, const form *C, const op_options *o);
duet_status must_match_letters(const form *A, const form *B, const einsum_attributes *e);

/* Of images: along the axes behind the channels. */
duet_status must_have_image(const form *A);
duet_status must_hold_window(const form *A, const op_options *o);
duet_status must_hold_filters(const form *A, const form *B, const op_options *o);
duet_status must_match_groups(const form *A, const form *B, const op_options *o);
duet_status must_divide_by_groups(const form *A, int axis, const op_options *o);
duet_status must_have_a_result_per_window(const form *A, const form *B, const op_options *o);
duet_status must_come_from_pooling(const form *A, const op_options *o);
duet_status must_come_from_images(const form *A, const form *B, const op_options *o);
duet_status must_come_from_filters(const form *A, const form *B, const op_options *o);
duet_status must_pad_below_stride(const form *A, const op_options *o);
duet_status must_give_an_image(const form *A, const form *B, const op_options *o);
duet_status must_be_scalable(const form *A, const op_options *o);

/* ---- as rows write them ---- */

#define FLOATING(A)                  TRY(must_be_floating(&A));
#define REAL(A)                      TRY(must_be_real(&A));
#define NUMERIC(A)                   TRY(must_be_numeric(&A));
#define INDICES(A)                   TRY(must_be_indices(&A));
#define SAME_TYPE(A, B)              TRY(must_have_type_of(&A, &B));
#define REAL_PARTS(A, B)             TRY(must_be_parts(&A, &B));
#define AXES(A, n)                   TRY(must_have_axes(&A, n, n));
#define AXES_FROM(A, n)              TRY(must_have_axes(&A, n, DUET_RANK_MAX));
#define AXES_BETWEEN(A, least, most) TRY(must_have_axes(&A, least, most));
#define SAME_AXES(A, B)              TRY(must_have_axes_of(&A, &B));
#define ELEMENTS(A)                  TRY(must_have_elements(&A));
#define PLANES(A)                    TRY(must_have_plane(&A));
#define COUNTABLE(A)                 TRY(must_be_countable(&A, A.count));
#define COUNTABLE_PLANES(A)          TRY(must_be_countable(&A, plane_elements(&A)));
#define BROADCAST(A, B)              TRY(must_broadcast(&A, &B));
#define SQUARE(A)                    TRY(must_be_square(&A));
#define EQUAL_SIZES(A, a, B, b)      TRY(must_have_equal_sizes(&A, a, &B, b));
#define EQUAL_LEADING(A, B)          TRY(must_have_equal_leading(&A, &B));
#define BROADCAST_LEADING(A, B)      TRY(must_have_broadcast_leading(&A, &B));
#define RANK(rank)                   TRY(must_have_rank_sum(rank));
#define COLUMNS_MATCH(A, B)          TRY(must_match_columns(&A, &B));
#define ROWS_MATCH(A, B)             TRY(must_match_rows(&A, &B));
#define BIAS(A, B)                   TRY(must_be_bias_of(&A, &B));
#define LIKE_TAKE(A, B, C)           TRY(must_be_like_take(&A, &B, &C, o.axis));
#define LIKE_BUT_AXIS(A, B)          TRY(must_be_like_but_axis(&A, &B, o.axis));
#define HOLDS_K(A)                   TRY(must_hold_k(&A, &o));
#define SOLVABLE(A)                  TRY(must_be_solvable(&A));
#define PATTERN(B)                   TRY(must_be_pattern(&B));
#define PATTERN_ROWS(A, B)           TRY(must_have_rows_of_pattern(&A, &B));
#define PATTERN_FITS(A, B)           TRY(must_fit_pattern(&A, &B));
#define SAME_COLUMNS(A, B)           TRY(must_have_columns_of(&A, &B));
#define PATTERN_SQUARE(A, B, C)      TRY(must_be_square_pattern(&A, &B, &C));
#define CSR_MATCH(A, B, C)           TRY(must_match_csr(&A, &B, &C, &o));
#define LETTERS(A, B)                TRY(must_match_letters(&A, &B, &o.einsum));
#define IMAGE_ELEMENTS(A)            TRY(must_have_image(&A));
#define WINDOW_FITS(A)               TRY(must_hold_window(&A, &o));
#define FILTERS_FIT(A, B)            TRY(must_hold_filters(&A, &B, &o));
#define GROUPS_MATCH(A, B)           TRY(must_match_groups(&A, &B, &o));
#define GROUPS_DIVIDE(A, axis)       TRY(must_divide_by_groups(&A, axis, &o));
#define A_RESULT_PER_WINDOW(A, B)    TRY(must_have_a_result_per_window(&A, &B, &o));
#define FROM_POOLING(A)              TRY(must_come_from_pooling(&A, &o));
#define FROM_IMAGES(A, B)            TRY(must_come_from_images(&A, &B, &o));
#define FROM_FILTERS(A, B)           TRY(must_come_from_filters(&A, &B, &o));
#define OUTPUT_PAD_FITS(A)           TRY(must_pad_below_stride(&A, &o));
#define GIVES_IMAGE(A, B)            TRY(must_give_an_image(&A, &B, &o));
#define SCALABLE(A)                  TRY(must_be_scalable(&A, &o));

#endif
