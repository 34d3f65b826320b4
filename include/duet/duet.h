/* duet.h - matrix expressions, evaluated where they run fastest.
 *
 *     duet_matrix *x = duet_new(DUET_F32, 1000), *y = duet_new(DUET_F32, 1000);
 *     float *p = duet_overwrite(x);
 *     for (int i = 0; i < 1000; i++) p[i] = i;
 *     if (duet_set(y, duet_add(duet_mul(3.3f, x), y))) fail(duet_error());
 *     const float *r = duet_read(y);
 *     duet_free(&x), duet_free(&y);
 *
 * Two kinds of thing, told apart by their C type:
 *     duet_matrix *   a matrix. You made it (duet_new, duet_wrap, or a view), you free it (duet_free).
 *     duet_expr       a formula not yet computed: eight bytes, by value. duet_set or duet_drop spends it;
 *                     you free only one that you hold (duet_hold, then duet_drop).
 *
 * Functions that can fail return a duet_status, or NULL; duet_error() then says what, why and where. A matrix that a
 * failed call should have written is as it was, or, if the machine failed half-way, refused until written again.
 * Indices count from 0, sizes and strides count elements, new matrices are row-major. */
#ifndef DUET_H
#define DUET_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __GNUC__
#define DUET_API  __attribute__((visibility("default")))
#define DUET_MUST __attribute__((warn_unused_result))
#else
#define DUET_API
#define DUET_MUST
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define DUET_RANK_MAX 8

typedef enum duet_status {
#define DUET_STATUS(name, text) DUET_##name,
#include <duet/status.def>
    DUET_STATUS_COUNT
} duet_status;

typedef enum duet_dtype {
#define DUET_DTYPE(NAME, ...)   DUET_##NAME,
#define DUET_INTEGER(NAME, ...) DUET_##NAME,
#define DUET_HALF(NAME, ...)    DUET_##NAME,
#define DUET_NARROW(NAME, ...)  DUET_##NAME,
#define DUET_COMPLEX(NAME, ...) DUET_##NAME,
#include <duet/dtype.def>
    DUET_DTYPE_COUNT
} duet_dtype;

/* Where a statement runs. AUTO: where it is expected to end first; on the CPU, if the GPU turns out to have no memory for it. */
typedef enum duet_place { DUET_AUTO, DUET_CPU, DUET_GPU } duet_place;

/* How the GPU may compute products and convolutions of f32, and of f16 and bf16, which are computed as f32. A mode permits, it does not demand: the
 * CPU computes strictly in every mode, and so does the GPU what it has no such kernel for; f64, and all that is no product, is what it is in every mode. docs/semantics.md has the
 * error bounds, and what becomes of infinities; duet_explain says how each step is computed.
 *     STRICT   f32 is f32
 *     SPLIT    each operand as a sum of two numbers of half precision, scaled, or of TF32: errors near those of STRICT, on tensor cores
 *     TF32     operands rounded to 11 bits
 *     BF16     operands rounded to 8 bits; or to 11 */
typedef enum duet_math_mode { DUET_MATH_STRICT, DUET_MATH_SPLIT, DUET_MATH_TF32, DUET_MATH_BF16 } duet_math_mode;

typedef struct duet_matrix duet_matrix;

/* A formula. Read only; all zero bits are no formula. */
typedef struct duet_expr {
    uint64_t serial;
#ifdef __cplusplus
    duet_expr() = default;
    inline duet_expr(const duet_matrix *m);
    inline duet_expr(double x);
    inline duet_expr(float x);
    inline duet_expr(int x);
    inline duet_expr(long x);
    inline duet_expr(long long x);
    inline duet_expr(unsigned x);
    inline duet_expr(unsigned long x);
    inline duet_expr(unsigned long long x);
#endif
} duet_expr;

/* ---- matrices ------------------------------------------------------------------------------------------------ */

/* A new matrix of zeros. Memory is taken when it is first used, on the side where it is used.
 * Shapes    rank 0 to 8, sizes >= 0; duet_new(DUET_F32, 2, 3) is the same with the sizes as arguments
 * Owner     the caller, until duet_free
 * Errors    NULL: BAD_ARGUMENT, BAD_TYPE, BAD_SHAPE (rank, or a size that is negative or overflows), NO_MEMORY */
DUET_API duet_matrix *duet_new_shape(duet_dtype type, int rank, const int64_t *size);

/* A matrix over the caller's memory, row-major without gaps. The library reads and writes it, and never frees it; what the GPU
 * computed is there after duet_read. Memory of one matrix is no part of another: for parts there are views.
 * Shapes    as duet_new_shape; duet_wrap(p, DUET_F32, 2, 3) is the same with the sizes as arguments
 * Owner     the matrix: the caller, until duet_free; the memory: the caller, who keeps it until after that
 * Errors    NULL: as duet_new_shape, and BAD_ARGUMENT when host is null or not aligned to its element */
DUET_API duet_matrix *duet_wrap_shape(void *host, duet_dtype type, int rank, const int64_t *size);

/* The same over memory whose elements lie otherwise: strides count elements and may be negative; first is where element 0, 0, ... lies.
 * What lies between the elements goes wherever they go. duet_wrap_columns: column-major without gaps, as BLAS, LAPACK, and Fortran have it.
 * Shapes    as duet_new_shape, as many strides; duet_wrap_columns(p, DUET_F32, 2, 3) is the same with the sizes as arguments. A stride of 0
 *           repeats: such a matrix is to be read, not to be written
 * Owner     as duet_wrap_shape
 * Errors    NULL: as duet_wrap_shape, and BAD_ARGUMENT when elements would lie in each other's place */
DUET_API duet_matrix *duet_wrap_strided(void *first, duet_dtype type, int rank, const int64_t *size, const int64_t *stride);
DUET_API duet_matrix *duet_wrap_columns_shape(void *host, duet_dtype type, int rank, const int64_t *size);

/* Frees a matrix and sets the pointer to NULL; NULL is accepted. Views of it live on. Formulas that name it fail. */
DUET_API void duet_free(duet_matrix **m);

/* An entry of an index, as between NumPy's brackets:
 *     DUET_ALL                       :
 *     DUET_RANGE(start, stop)        start:stop
 *     DUET_STEP(start, stop, step)   start:stop:step
 *     DUET_AT(i)                     i, which takes the axis away
 *     DUET_NEW                       None, an axis of one element more
 *     DUET_REST                      ..., all axes that the others leave; it stands at the end if nowhere
 * Negative places count from the end, ranges are cut to what is there, and a start or stop of DUET_OPEN is one left out. */
typedef enum duet_index_kind { DUET_INDEX_RANGE, DUET_INDEX_AT, DUET_INDEX_NEW, DUET_INDEX_REST } duet_index_kind;
typedef struct duet_index {
    duet_index_kind kind;
    int64_t start, stop, step;
} duet_index;
static inline duet_index duet_index_of(duet_index_kind kind, int64_t start, int64_t stop, int64_t step)
{
    const duet_index i = { kind, start, stop, step };
    return i;
}
#define DUET_OPEN                    INT64_MIN
#define DUET_STEP(start, stop, step) duet_index_of(DUET_INDEX_RANGE, start, stop, step)
#define DUET_RANGE(start, stop)      DUET_STEP(start, stop, 1)
#define DUET_ALL                     DUET_STEP(DUET_OPEN, DUET_OPEN, 1)
#define DUET_AT(i)                   duet_index_of(DUET_INDEX_AT, i, 0, 0)
#define DUET_NEW                     duet_index_of(DUET_INDEX_NEW, 0, 0, 0)
#define DUET_REST                    duet_index_of(DUET_INDEX_REST, 0, 0, 0)

/* Views: matrices that share the elements of m, keep them alive and write through. Axes below 0 count from the last.
 *     duet_indexed       m[...]: duet_indexed(m, DUET_AT(2), DUET_STEP(DUET_OPEN, DUET_OPEN, -1)) is m[2, ::-1]
 *     duet_stepped       start:stop:step of one axis
 *     duet_picked        element i of one axis, of rank one less
 *     duet_flipped       one axis in reverse order
 *     duet_slice         elements first .. first + count - 1 of the first axis
 *     duet_row           m[i], of rank one less
 *     duet_column        m[:, j] of a rank-2 matrix, of rank 1
 *     duet_submatrix     rows x cols of a rank-2 matrix, from (i, j)
 *     duet_diagonal      m[i, i + offset], as the last axis in the place of the first two
 *     duet_transposed    the axes in reverse order
 *     duet_permuted      the axes in the order given: duet_permuted(m, 2, 0, 1)
 *     duet_expanded      an axis of one element more, which is then that axis
 *     duet_squeezed      without that axis, which has one element
 *     duet_reshaped      the same elements in another shape; one size may be -1, which makes it what is left. No copy is made: where the
 *                        elements do not lie so that there is such a view, the text says what to copy
 *     duet_broadcast_to  as a larger shape to which m broadcasts. It is to be read: whoever writes it is refused, as BAD_ARGUMENT
 *     duet_split         so many parts along an axis, of equal size, or, of the first ones, one more
 * Any number of threads may read a matrix and its views at once; while one writes any of them, no other may use any.
 * Owner     the caller, until duet_free
 * Errors    NULL: BAD_ARGUMENT (an element that is not there, a step of 0), BAD_SHAPE (rank, axis, sizes), NO_MEMORY; duet_split returns it,
 *           and nothing is left of what it made */
DUET_API duet_matrix *duet_indexed_by(duet_matrix *m, int count, const duet_index *index);
DUET_API duet_matrix *duet_stepped(duet_matrix *m, int axis, int64_t start, int64_t stop, int64_t step);
DUET_API duet_matrix *duet_picked(duet_matrix *m, int axis, int64_t i);
DUET_API duet_matrix *duet_flipped(duet_matrix *m, int axis);
DUET_API duet_matrix *duet_slice(duet_matrix *m, int64_t first, int64_t count);
DUET_API duet_matrix *duet_row(duet_matrix *m, int64_t i);
DUET_API duet_matrix *duet_column(duet_matrix *m, int64_t j);
DUET_API duet_matrix *duet_submatrix(duet_matrix *m, int64_t i, int64_t j, int64_t rows, int64_t cols);
DUET_API duet_matrix *duet_diagonal(duet_matrix *m, int64_t offset);
DUET_API duet_matrix *duet_transposed(duet_matrix *m);
DUET_API duet_matrix *duet_permuted_axes(duet_matrix *m, int rank, const int *axis);
DUET_API duet_matrix *duet_expanded(duet_matrix *m, int axis);
DUET_API duet_matrix *duet_squeezed(duet_matrix *m, int axis);
DUET_API duet_matrix *duet_reshaped_shape(duet_matrix *m, int rank, const int64_t *size);
DUET_API duet_matrix *duet_broadcast_to_shape(duet_matrix *m, int rank, const int64_t *size);
DUET_API DUET_MUST duet_status duet_split(duet_matrix *m, int axis, int count, duet_matrix **part);

/* What a matrix is. Of NULL or a freed matrix: 0, or NULL; an axis out of range has size 0. */
DUET_API duet_dtype duet_type(const duet_matrix *m);
DUET_API int duet_rank(const duet_matrix *m);
DUET_API int64_t duet_size(const duet_matrix *m, int axis);
DUET_API int64_t duet_stride(const duet_matrix *m, int axis); /* in elements */
DUET_API int64_t duet_count(const duet_matrix *m);            /* elements in all */

/* A pointer to the first element in host memory, for use until m is next named in a call. It waits for what is under way.
 *     duet_read        to read: the elements are current
 *     duet_update      to read and write: they are current, and the copy on the GPU becomes stale
 *     duet_overwrite   to write every element: what was there is lost (a view smaller than its storage is updated)
 * Owner     the matrix
 * Errors    NULL: BAD_ARGUMENT, UNKNOWN, NO_MEMORY, DEVICE_ERROR */
DUET_API const void *duet_read(const duet_matrix *m);
DUET_API void *duet_update(duet_matrix *m);
DUET_API void *duet_overwrite(duet_matrix *m);

/* The same in GPU memory, for the caller's own kernels, which must run on duet_stream() or be ordered with it.
 * Owner     the matrix
 * Errors    NULL: as above, and NO_DEVICE */
DUET_API const void *duet_device_read(const duet_matrix *m);
DUET_API void *duet_device_update(duet_matrix *m);
DUET_API void *duet_device_overwrite(duet_matrix *m);

/* This thread's cudaStream_t. Errors: NULL: NO_DEVICE, DEVICE_ERROR. */
DUET_API void *duet_stream(void);

/* Waits until all that this thread has asked of the GPU is done. Without a GPU there is nothing to wait for.
 * Errors    DEVICE_ERROR */
DUET_API DUET_MUST duet_status duet_synchronize(void);

/* ---- formulas ------------------------------------------------------------------------------------------------ */

/* Operands. The operators below take matrices, formulas and C numbers alike and call these themselves. A number takes the type of the matrix
 * that it meets: a whole one any, if it is in its range, a fraction floating point; a complex one makes that complex. Types that differ
 * promote by the table of docs/semantics.md; what that does not allow, duet_cast does. */
DUET_API duet_expr duet_of_matrix(const duet_matrix *m);
DUET_API duet_expr duet_of_number(double x);
DUET_API duet_expr duet_of_integer(int64_t x);
DUET_API duet_expr duet_of_unsigned(uint64_t x);
DUET_API duet_expr duet_of_expr(duet_expr e);

/* How a convolution or a pooling steps over an image, along its height and its width. A stride of 0 means 1, or the
 * window; a dilation (the distance between the elements of a window) and a number of groups of 0 mean 1. NULL for either means all zeros.
 * Groups: channels and filters are so many convolutions side by side; with as many as channels each has filters of its own.
 * more: padding at the end of each axis beside that on both sides, as TensorFlow's SAME has it; duet_same_padding says how much. */
typedef struct duet_conv {
    int32_t stride[2], pad[2], dilation[2], groups, more[2];
} duet_conv;
typedef struct duet_pool {
    int32_t window[2], stride[2], pad[2];
} duet_pool;

/* The same for what goes back from a convolution's or a pooling's results. Several sizes of images, and of filters, may give as many:
 *     size        along height and width of what is computed; 0: the least size of an image, the greatest of a filter
 *     output_pad  how many rows and columns more than the least an image has; below the stride */
typedef struct duet_conv_grad {
    int32_t stride[2], pad[2], dilation[2], groups, size[2], more[2];
} duet_conv_grad;
typedef struct duet_conv_transposed {
    int32_t stride[2], pad[2], dilation[2], groups, output_pad[2], more[2];
} duet_conv_transposed;
typedef struct duet_pool_grad {
    int32_t window[2], stride[2], pad[2], size[2];
} duet_pool_grad;

/* How many times an image is taken, along its height and its width; 0 means 1. */
typedef struct duet_scale {
    int32_t scale[2];
} duet_scale;

/* The same of n x c x w signals, along the one axis that they have; */
typedef struct duet_conv1 {
    int32_t stride, pad, dilation, groups, more;
} duet_conv1;
typedef struct duet_pool1 {
    int32_t window, stride, pad;
} duet_pool1;
typedef struct duet_conv1_grad {
    int32_t stride, pad, dilation, groups, size, more;
} duet_conv1_grad;
typedef struct duet_conv1_transposed {
    int32_t stride, pad, dilation, groups, output_pad, more;
} duet_conv1_transposed;
typedef struct duet_pool1_grad {
    int32_t window, stride, pad, size;
} duet_pool1_grad;
typedef struct duet_scale1 {
    int32_t scale;
} duet_scale1;

/* and of n x c x d x h x w volumes, along depth, height and width. */
typedef struct duet_conv3 {
    int32_t stride[3], pad[3], dilation[3], groups, more[3];
} duet_conv3;
typedef struct duet_pool3 {
    int32_t window[3], stride[3], pad[3];
} duet_pool3;
typedef struct duet_conv3_grad {
    int32_t stride[3], pad[3], dilation[3], groups, size[3], more[3];
} duet_conv3_grad;
typedef struct duet_conv3_transposed {
    int32_t stride[3], pad[3], dilation[3], groups, output_pad[3], more[3];
} duet_conv3_transposed;
typedef struct duet_pool3_grad {
    int32_t window[3], stride[3], pad[3], size[3];
} duet_pool3_grad;
typedef struct duet_scale3 {
    int32_t scale[3];
} duet_scale3;

/* What a Fourier transform goes along: `axes` axes, which axis[] names, negative ones counting from the last; 0: all, in order. n[i] is its
 * length along axis[i]: x is cut there, or goes on with zeros; 0: as long as x is. Of inverse real transforms it is the result's length; 0 along
 * the last of the axes then means 2 (m - 1), x having m elements there. A shift takes no n. NULL means all zeros. */
typedef struct duet_fourier {
    int32_t axes, axis[DUET_RANK_MAX], n[DUET_RANK_MAX];
} duet_fourier;

/* Which part of a convolution, as SciPy's mode. With n elements of the first operand along an axis and m of the second, all of it is n + m - 1.
 *     FULL    all of it
 *     SAME    n of these, from element (m - 1) / 2 on, rounded down: the middle; of an even m more is cut off behind
 *     VALID   n - m + 1, from element m - 1 on: where the second operand lies within the first; nothing where it is larger */
typedef enum duet_overlap { DUET_OVERLAP_FULL, DUET_OVERLAP_SAME, DUET_OVERLAP_VALID } duet_overlap;

/* A triangular matrix: the upper triangle is read, or the lower; its diagonal is read, or taken as ones; it is itself, or its transpose. */
typedef struct duet_triangle {
    int32_t lower, unit, transposed;
} duet_triangle;

/* How systems are solved. refine: 0, in the matrices' own type; else, of f64: A is factored in fewer bits, f32 (DUET_REFINE_F32) or, where
 * the GPU has it, f16 (DUET_REFINE_F16), and the solution refined until it is as good as one in f64; where that does not converge, in f64. */
enum { DUET_REFINE_F32 = 1, DUET_REFINE_F16 };
typedef struct duet_solver {
    int32_t refine;
} duet_solver;

/* The operators: ops.def has a row for each, with its formula. Each is a function of this name, and in C a macro over it that lifts
 * its operands and passes on where it stands (duet_add_at).
 * Shapes    element by element: by NumPy's broadcasting; others: as their row says
 * Errors    in the result: what is built from it has the same error, and duet_set returns it */
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
#define DUET_MAP1(name, ...)                                                                                                     \
    DUET_API duet_expr duet_##name(duet_expr x);                                                                                 \
    DUET_API duet_expr duet_##name##_at(duet_expr x, const char *site);
#define DUET_MAP2(name, ...)                                                                                                     \
    DUET_API duet_expr duet_##name(duet_expr x, duet_expr y);                                                                    \
    DUET_API duet_expr duet_##name##_at(duet_expr x, duet_expr y, const char *site);
#define DUET_MAP3(name, ...)                                                                                                     \
    DUET_API duet_expr duet_##name(duet_expr x, duet_expr y, duet_expr z);                                                       \
    DUET_API duet_expr duet_##name##_at(duet_expr x, duet_expr y, duet_expr z, const char *site);
#define DUET_INT1 DUET_MAP1
#define DUET_INT2 DUET_MAP2
#define DUET_PLACE1(name, ...)                                                                                                   \
    DUET_MAP1(name, 0)                                                                                                           \
    DUET_API duet_expr duet_##name##_axis(duet_expr x, int axis);                                                                \
    DUET_API duet_expr duet_##name##_axis_at(duet_expr x, int axis, const char *site);                                           \
    DUET_API duet_expr duet_##name##_keep(duet_expr x, int axis);                                                                \
    DUET_API duet_expr duet_##name##_keep_at(duet_expr x, int axis, const char *site);
#define DUET_FOLD1(name, ...)                                                                                                    \
    DUET_PLACE1(name, 0)                                                                                                         \
    DUET_API duet_expr duet_##name##_axes(duet_expr x, int count, const int *axis);                                              \
    DUET_API duet_expr duet_##name##_axes_at(duet_expr x, int count, const int *axis, const char *site);                         \
    DUET_API duet_expr duet_##name##_axes_keep(duet_expr x, int count, const int *axis);                                         \
    DUET_API duet_expr duet_##name##_axes_keep_at(duet_expr x, int count, const int *axis, const char *site);
#define DUET_FOLD2(name, ...)                                                                                                    \
    DUET_MAP2(name, 0)                                                                                                           \
    DUET_API duet_expr duet_##name##_axis(duet_expr x, duet_expr y, int axis);                                                   \
    DUET_API duet_expr duet_##name##_axis_at(duet_expr x, duet_expr y, int axis, const char *site);                              \
    DUET_API duet_expr duet_##name##_keep(duet_expr x, duet_expr y, int axis);                                                   \
    DUET_API duet_expr duet_##name##_keep_at(duet_expr x, duet_expr y, int axis, const char *site);                              \
    DUET_API duet_expr duet_##name##_axes(duet_expr x, duet_expr y, int count, const int *axis);                                 \
    DUET_API duet_expr duet_##name##_axes_at(duet_expr x, duet_expr y, int count, const int *axis, const char *site);            \
    DUET_API duet_expr duet_##name##_axes_keep(duet_expr x, duet_expr y, int count, const int *axis);                            \
    DUET_API duet_expr duet_##name##_axes_keep_at(duet_expr x, duet_expr y, int count, const int *axis, const char *site);
#define DUET_MOMENT1 DUET_FOLD1
#define DUET_DEF1(name, options, ...)                                                                                            \
    DUET_API duet_expr duet_##name(duet_expr x DUET_OPTIONS_##options);                                                          \
    DUET_API duet_expr duet_##name##_at(duet_expr x DUET_OPTIONS_##options, const char *site);
#define DUET_DEF2(name, options, ...)                                                                                            \
    DUET_API duet_expr duet_##name(duet_expr x, duet_expr y DUET_OPTIONS_##options);                                             \
    DUET_API duet_expr duet_##name##_at(duet_expr x, duet_expr y DUET_OPTIONS_##options, const char *site);
#define DUET_CALL1 DUET_DEF1
#define DUET_CALL2 DUET_DEF2
#define DUET_CALL3(name, options, ...)                                                                                           \
    DUET_API duet_expr duet_##name(duet_expr x, duet_expr y, duet_expr z DUET_OPTIONS_##options);                                \
    DUET_API duet_expr duet_##name##_at(duet_expr x, duet_expr y, duet_expr z DUET_OPTIONS_##options, const char *site);
#include <duet/ops.def>

/* duet_einsum(x, y, "i,j->ij"): every element of x times every element of y. */
DUET_API duet_expr duet_outer(duet_expr x, duet_expr y);
DUET_API duet_expr duet_outer_at(duet_expr x, duet_expr y, const char *site);

/* Products of vectors:
 *     duet_vdot    dot of the conjugate of x with y: of real x dot
 *     duet_cross   the vectors of 3 elements along the last axis that are perpendicular to those of x and of y; exactly 0 of equal ones
 * Shapes    vdot: of x and y alike, the result a number; cross: x and y of last axes of 3 elements, the others broadcast
 * Errors    in the result, in the words of the operators that these are made of; BAD_SHAPE: cross of other axes */
DUET_API duet_expr duet_vdot(duet_expr x, duet_expr y);
DUET_API duet_expr duet_vdot_at(duet_expr x, duet_expr y, const char *site);
DUET_API duet_expr duet_cross(duet_expr x, duet_expr y);
DUET_API duet_expr duet_cross_at(duet_expr x, duet_expr y, const char *site);

/* Operators made of these: composed.def has a row for each, with its formula. Shapes and errors are those of their parts. */
#define DUET_COMPOSED1(name, ...)                                                                                                \
    DUET_API duet_expr duet_##name(duet_expr x);                                                                                 \
    DUET_API duet_expr duet_##name##_at(duet_expr x, const char *site);
#define DUET_COMPOSED2(name, ...)                                                                                                \
    DUET_API duet_expr duet_##name(duet_expr x, duet_expr y);                                                                    \
    DUET_API duet_expr duet_##name##_at(duet_expr x, duet_expr y, const char *site);
#define DUET_COMPOSED3(name, ...)                                                                                                \
    DUET_API duet_expr duet_##name(duet_expr x, duet_expr y, duet_expr z);                                                       \
    DUET_API duet_expr duet_##name##_at(duet_expr x, duet_expr y, duet_expr z, const char *site);
#define DUET_COMPOSED1N(name, ...)                                                                                               \
    DUET_API duet_expr duet_##name(duet_expr x, double s);                                                                       \
    DUET_API duet_expr duet_##name##_at(duet_expr x, double s, const char *site);
#define DUET_COMPOSED_FOLD1(name, ...)                                                                                           \
    DUET_COMPOSED1(name, 0)                                                                                                      \
    DUET_API duet_expr duet_##name##_axis(duet_expr x, int axis);                                                                \
    DUET_API duet_expr duet_##name##_axis_at(duet_expr x, int axis, const char *site);                                           \
    DUET_API duet_expr duet_##name##_keep(duet_expr x, int axis);                                                                \
    DUET_API duet_expr duet_##name##_keep_at(duet_expr x, int axis, const char *site);                                           \
    DUET_API duet_expr duet_##name##_axes(duet_expr x, int count, const int *axis);                                              \
    DUET_API duet_expr duet_##name##_axes_at(duet_expr x, int count, const int *axis, const char *site);                         \
    DUET_API duet_expr duet_##name##_axes_keep(duet_expr x, int count, const int *axis);                                         \
    DUET_API duet_expr duet_##name##_axes_keep_at(duet_expr x, int count, const int *axis, const char *site);
#define DUET_COMPOSED_MATRIX1 DUET_COMPOSED1
#include <duet/composed.def>

/* Are x and y alike? As one bool:
 *     duet_array_equal   have they one shape, and equal elements?
 *     duet_allclose      is |x - y| <= absolute + relative |y| everywhere, infinities being close to themselves, and NaN to nothing? NumPy's
 *                        relative is 1e-5, its absolute 1e-8
 * duet_pow_int is x times itself, n times, by squaring: of integers, which wrap, too; of a negative n 1 over that, of floating point.
 * Shapes    array_equal: any; allclose: x and y broadcast; pow_int: x's
 * Errors    in the result, in the words of the operators that these are made of; BAD_ARGUMENT: negative or NaN tolerances */
DUET_API duet_expr duet_array_equal(duet_expr x, duet_expr y);
DUET_API duet_expr duet_array_equal_at(duet_expr x, duet_expr y, const char *site);
DUET_API duet_expr duet_allclose(duet_expr x, duet_expr y, double relative, double absolute);
DUET_API duet_expr duet_allclose_at(duet_expr x, duet_expr y, double relative, double absolute, const char *site);
DUET_API duet_expr duet_pow_int(duet_expr x, int n);
DUET_API duet_expr duet_pow_int_at(duet_expr x, int n, const char *site);

/* What networks are trained with, made of all these: networks.def has a row for each. Losses are numbers, gradients have the shape of what they belong to.
 * Shapes    as of the operators that they are made of; of losses x and y alike
 * Errors    in the result, in the words of those operators */
#define DUET_NETWORK1(name, ...)                                                                                                 \
    DUET_API duet_expr duet_##name(duet_expr x);                                                                                 \
    DUET_API duet_expr duet_##name##_at(duet_expr x, const char *site);
#define DUET_NETWORK2(name, ...)                                                                                                 \
    DUET_API duet_expr duet_##name(duet_expr x, duet_expr y);                                                                    \
    DUET_API duet_expr duet_##name##_at(duet_expr x, duet_expr y, const char *site);
#define DUET_NETWORK2R(name, ...)                                                                                                \
    DUET_API duet_expr duet_##name(duet_expr x, duet_expr y, double r);                                                          \
    DUET_API duet_expr duet_##name##_at(duet_expr x, duet_expr y, double r, const char *site);
#define DUET_NETWORK3R(name, ...)                                                                                                \
    DUET_API duet_expr duet_##name(duet_expr x, duet_expr y, duet_expr z, double r);                                             \
    DUET_API duet_expr duet_##name##_at(duet_expr x, duet_expr y, duet_expr z, double r, const char *site);
#include <duet/networks.def>

/* Probabilistic max pooling (Lee et al., Convolutional deep belief networks, 2009), without overflow: of windows of h x w elements side by side, with
 * S the sum of exp(x) over a window,
 *     duet_p_max_pool_h   exp(x) / (1 + S), of each element: how probable it is that it is on
 *     duet_p_max_pool_p   S / (1 + S), of each window: how probable it is that one of its elements is
 * Shapes    x is n x c x rows x cols, h of which divides the rows and w the columns; of _p the result is n x c x rows / h x cols / w
 * Errors    in the result, in the words of max_pool2d, upsample2d, sub */
DUET_API duet_expr duet_p_max_pool_h(duet_expr x, int h, int w);
DUET_API duet_expr duet_p_max_pool_h_at(duet_expr x, int h, int w, const char *site);
DUET_API duet_expr duet_p_max_pool_p(duet_expr x, int h, int w);
DUET_API duet_expr duet_p_max_pool_p_at(duet_expr x, int h, int w, const char *site);

/* The padding, along one axis, with which a convolution by `window` elements, `dilation` apart (0: 1), in steps of 1, gives that part: conv2d(x, w,
 * .pad = { duet_pad_for(DUET_OVERLAP_SAME, 3, 0), ... }). Both sides have the same: SAME of an even reach gets the less, and one result fewer than
 * elements, unless .more is 1; then it is TensorFlow's SAME. duet_convolve and its sisters, which have that one in front, need no such care. */
static inline int32_t duet_pad_for(duet_overlap part, int32_t window, int32_t dilation)
{
    const int32_t more = (window - 1) * (dilation ? dilation : 1);
    return part == DUET_OVERLAP_FULL ? more : part == DUET_OVERLAP_SAME ? more / 2 : 0;
}

/* The padding in all, along one axis, that gives as many results as there are strides (0: 1) in `size` elements, begun ones too: TensorFlow's SAME, with
 * n of it: .pad = n / 2, .more = n % 2. */
static inline int32_t duet_same_padding(int64_t size, int32_t window, int32_t stride, int32_t dilation)
{
    const int64_t step = stride ? stride : 1, reach = (int64_t)(window - 1) * (dilation ? dilation : 1) + 1;
    const int64_t n = size > 0 ? ((size + step - 1) / step - 1) * step + reach - size : 0;
    return n > 0 ? (int32_t)n : 0;
}

/* Fourier transforms in NumPy's terms, by duet_fftn and its sisters: along one axis, of length n (0: as long as x is there), or along the last two.
 * Shapes, errors: theirs */
#define DUET_FOURIER(name)                                                                                                       \
    DUET_API duet_expr duet_##name(duet_expr x, int n, int axis);                                                                \
    DUET_API duet_expr duet_##name##_at(duet_expr x, int n, int axis, const char *site);                                         \
    DUET_API duet_expr duet_##name##2(duet_expr x);                                                                              \
    DUET_API duet_expr duet_##name##2_at(duet_expr x, const char *site);
DUET_FOURIER(fft)
DUET_FOURIER(ifft)
DUET_FOURIER(rfft)
DUET_FOURIER(irfft)
#undef DUET_FOURIER

/* Computes e into m, which may appear in e. Spends e, also when it fails.
 * Shapes    the shape of e broadcasts to that of m; its type is that of m, or promotes to it
 * Errors    the first error met while e was built, else BAD_ARGUMENT, BAD_SHAPE, BAD_TYPE, SPENT, FOREIGN, FREED, UNKNOWN, ARENA_FULL,
 *           NO_MEMORY, UNSUPPORTED, NO_DEVICE, SINGULAR, NOT_FINITE, NO_CONVERGENCE: m is unchanged; DEVICE_ERROR: m may be unknown */
DUET_API DUET_MUST duet_status duet_set(duet_matrix *m, duet_expr e);
DUET_API DUET_MUST duet_status duet_set_at(duet_matrix *m, duet_expr e, const char *site);

/* The same on one machine, whatever block or environment say; there it either runs or fails.
 * Errors    as duet_set, and BAD_ARGUMENT when there is no such place */
DUET_API DUET_MUST duet_status duet_set_on(duet_place place, duet_matrix *m, duet_expr e);
DUET_API DUET_MUST duet_status duet_set_on_at(duet_place place, duet_matrix *m, duet_expr e, const char *site);

/* The same in one math mode, whatever block or environment say.
 * Errors    as duet_set, and BAD_ARGUMENT when there is no such mode */
DUET_API DUET_MUST duet_status duet_set_math(duet_math_mode math, duet_matrix *m, duet_expr e);
DUET_API DUET_MUST duet_status duet_set_math_at(duet_math_mode math, duet_matrix *m, duet_expr e, const char *site);

/* In place: m = m + e, and so on. Shapes and errors as duet_set. */
DUET_API DUET_MUST duet_status duet_iadd(duet_matrix *m, duet_expr e);
DUET_API DUET_MUST duet_status duet_iadd_at(duet_matrix *m, duet_expr e, const char *site);
DUET_API DUET_MUST duet_status duet_isub(duet_matrix *m, duet_expr e);
DUET_API DUET_MUST duet_status duet_isub_at(duet_matrix *m, duet_expr e, const char *site);
DUET_API DUET_MUST duet_status duet_imul(duet_matrix *m, duet_expr e);
DUET_API DUET_MUST duet_status duet_imul_at(duet_matrix *m, duet_expr e, const char *site);
DUET_API DUET_MUST duet_status duet_idiv(duet_matrix *m, duet_expr e);
DUET_API DUET_MUST duet_status duet_idiv_at(duet_matrix *m, duet_expr e, const char *site);

/* Several statements, as if they stood one after the other: a later formula sees what earlier ones have set. In one pass where every
 * dependence is element by element, else in as many as it takes. All formulas are spent, also when it fails. In C
 *     duet_set_all({ m, duet_mean(x) }, { d, duet_sub(x, y) })
 * is the same; a value that is no formula is lifted by DUET: { m, DUET(x) }, { m, DUET(0.5) }.
 * Shapes    those of each statement as for duet_set; 1 to 64 statements; their element types may differ
 * Errors    as duet_set, for the first statement that has one; it is named in the text. Bad input of any is found before the first one
 *           runs. After an error each destination is as it was, or, if the machine failed half-way, refused until written again */
typedef struct duet_assignment {
    duet_matrix *to;
    duet_expr value;
} duet_assignment;
DUET_API DUET_MUST duet_status duet_set_all(const duet_assignment *a, int count);
DUET_API DUET_MUST duet_status duet_set_all_at(const duet_assignment *a, int count, const char *site);

/* A copy of e outside of this thread's formulas, for use again and again by one thread at a time; nothing spends it but
 * duet_drop. Spends e. Its matrices must live while it is used.
 * Owner     the caller, until duet_drop
 * Errors    in the result */
DUET_API duet_expr duet_hold(duet_expr e);
DUET_API duet_expr duet_hold_at(duet_expr e, const char *site);

/* Ends a formula that will not be evaluated, and frees a held one. Errors: BAD_ARGUMENT (no formula), SPENT, FOREIGN. */
DUET_API duet_status duet_drop(duet_expr e);
DUET_API duet_status duet_drop_at(duet_expr e, const char *site);

/* What a formula will be: its status (OK, or the first error), element type, rank and sizes. Spends nothing. */
DUET_API duet_status duet_expr_status(duet_expr e);
DUET_API duet_dtype duet_expr_type(duet_expr e);
DUET_API int duet_expr_rank(duet_expr e);
DUET_API int64_t duet_expr_size(duet_expr e, int axis);

/* Writes e as a line of C: matrices as A, B, ... in order of appearance. Spends nothing: e is yours to set or to drop.
 * Errors    BAD_ARGUMENT, and those of e */
DUET_API duet_status duet_print_expr(FILE *out, duet_expr e);

/* Writes the plan that duet_set(m, e) would follow: its steps, where each runs, the bytes to be moved, who refused what
 * and why. Computes nothing and spends nothing: e is yours to set or to drop. Errors: as duet_set. */
DUET_API duet_status duet_explain(FILE *out, duet_matrix *m, duet_expr e);
DUET_API duet_status duet_explain_all(FILE *out, const duet_assignment *a, int count); /* of duet_set_all */

/* How many bytes of formulas this thread may keep unevaluated; 64 MiB at first.
 * Errors    BAD_ARGUMENT below 4096, or while the thread has a formula; NO_MEMORY */
DUET_API duet_status duet_arena_limit(size_t bytes);

/* ---- record and replay --------------------------------------------------------------------------------------- */

/* Statements of one thread, run once and noted, to run again without being read or planned: on the GPU as one launch of a CUDA graph, on
 * the CPU one after the other.
 *     duet_recording *r = NULL;
 *     if (duet_record_begin() == DUET_OK) { duet_set(h, ...); duet_set(y, ...); r = duet_record_end(); }
 *     for (...) { fill(duet_overwrite(x)); duet_replay(r); use(duet_read(y)); }
 * duet_replay is as if its statements stood there, with the numbers that they had, on the machines where they ran; matrices are taken as
 * they are then, wherever their elements are. Random numbers are the same ones each time. A recording keeps the temporaries of its
 * statements. One thread at a time may replay it, any thread.
 *     duet_record_begin  from here on this thread's statements are noted as they run; reading and writing matrices by pointer is not
 *     duet_record_end    ends that
 *     duet_replay        once more
 * Owner     the caller, until duet_recording_free, which sets NULL; matrices stay the caller's, and must live while it is replayed
 * Errors    begin: BAD_ARGUMENT: the thread records already; NO_MEMORY. end: NULL: nothing is recorded, a statement failed, or
 *           NO_MEMORY. replay: BAD_ARGUMENT: r is NULL, or this thread records; FREED; as duet_set, the statements before the one
 *           that failed being done, or, of a graph, none, all destinations being unknown after DEVICE_ERROR */
typedef struct duet_recording duet_recording;
DUET_API DUET_MUST duet_status duet_record_begin(void);
DUET_API DUET_MUST duet_recording *duet_record_end(void);
DUET_API DUET_MUST duet_status duet_replay(duet_recording *r);
DUET_API void duet_recording_free(duet_recording **r);

/* Automatic replay: a sequence of statements on the GPU that a thread repeats is recognised, and runs as one launch of a CUDA graph from
 * then on. Its statements are checked as ever and then wait for the last of them. What has waited is launched before anyone can see a
 * difference: before the host reads or synchronises, before duet_stream or a pointer to GPU memory, before another thread uses what is
 * computed. An error of the GPU may be met there instead; its text names the statement. Results are those of statements one by one.
 * Numbers that are others each time are no hindrance to the statements beside. What is learnt keeps some temporaries, until it is turned off
 * or the thread ends.
 * duet_auto_replay turns it off (0) or on (1) for this thread. It is on at first, unless DUET_AUTO_REPLAY=0; duet_stream turns it off, since
 * work may then come to the stream at any time. Who turns it on again calls duet_stream before each use.
 * Errors    BAD_ARGUMENT: neither 0 nor 1; DEVICE_ERROR: of what has waited */
DUET_API duet_status duet_auto_replay(int on);

/* ---- random numbers ------------------------------------------------------------------------------------------ */

/* Statements that write every element of m, which may be a view. Element i, in row-major order, depends on the seed, the statement and
 * i alone, on every machine and for any number of threads: one seed, one matrix, bit for bit (docs/semantics.md has the mapping). Two
 * matrices that are to be independent take two seeds. Numbers of float type are first rounded to m's. The first three laws are of floating
 * point, the others of any real type.
 *     duet_random_uniform           evenly in [low, high)
 *     duet_random_normal            mean + deviation * (normal of deviation 1)
 *     duet_random_truncated_normal  the same, given that it lies in [low, high], which may be infinite; however far out these are
 *     duet_random_bernoulli         1 with probability p, else 0
 *     duet_random_integers          evenly in low .. high - 1, without bias; the same ones in every type
 *     duet_random_permutation       0 .. n-1 in random order, all orders being equally likely; the same one in every type
 * Shapes    any; of a permutation [n]
 * Errors    BAD_ARGUMENT: no matrix; uniform: not low < high, or their difference not finite; normal: mean or deviation not finite, or
 *           deviation < 0; truncated: or deviation 0, or not low < high, or 1e150 deviations from the mean; p outside of [0, 1];
 *           low >= high. BAD_TYPE: another type; integers that m's does not hold exactly. BAD_SHAPE, NO_MEMORY,
 *           UNSUPPORTED, NO_DEVICE: m is unchanged; DEVICE_ERROR: m may be unknown */
DUET_API DUET_MUST duet_status duet_random_uniform(duet_matrix *m, uint64_t seed, double low, double high);
DUET_API DUET_MUST duet_status duet_random_uniform_at(duet_matrix *m, uint64_t seed, double low, double high, const char *site);
DUET_API DUET_MUST duet_status duet_random_normal(duet_matrix *m, uint64_t seed, double mean, double deviation);
DUET_API DUET_MUST duet_status duet_random_normal_at(duet_matrix *m, uint64_t seed, double mean, double deviation,
                                                     const char *site);
DUET_API DUET_MUST duet_status duet_random_truncated_normal(duet_matrix *m, uint64_t seed, double mean, double deviation,
                                                            double low, double high);
DUET_API DUET_MUST duet_status duet_random_truncated_normal_at(duet_matrix *m, uint64_t seed, double mean, double deviation,
                                                               double low, double high, const char *site);
DUET_API DUET_MUST duet_status duet_random_bernoulli(duet_matrix *m, uint64_t seed, double p);
DUET_API DUET_MUST duet_status duet_random_bernoulli_at(duet_matrix *m, uint64_t seed, double p, const char *site);
DUET_API DUET_MUST duet_status duet_random_integers(duet_matrix *m, uint64_t seed, int64_t low, int64_t high);
DUET_API DUET_MUST duet_status duet_random_integers_at(duet_matrix *m, uint64_t seed, int64_t low, int64_t high,
                                                       const char *site);
DUET_API DUET_MUST duet_status duet_random_permutation(duet_matrix *m, uint64_t seed);
DUET_API DUET_MUST duet_status duet_random_permutation_at(duet_matrix *m, uint64_t seed, const char *site);

/* Noise: `to` becomes a formula of x, which may be `to`, a matrix, a formula or a number, and of w, which is what duet_random_uniform(w, seed, 0, 1) or
 * duet_random_normal(w, seed, 0, 1) makes of a matrix w like `to`. Spends x, also when it fails.
 *     duet_noise_uniform    x + w, uniform
 *     duet_noise_normal     x + w, normal
 *     duet_noise_logistic   x + w sigmoid(x), normal
 *     duet_noise_ranged     x + w, normal; but x where it is 0 or `top`
 *     duet_noise_bernoulli  1 where w < x, else 0, uniform: x is the chance of each. Here w is of the type that x is computed in
 * A mask for duet_dropout is duet_random_bernoulli(y, seed, share that is kept).
 * Shapes    that of x broadcasts to that of `to`
 * Errors    as duet_set; BAD_TYPE: `to`, of duet_noise_bernoulli x, is not of floating point. `to` is as it was, as there */
DUET_API DUET_MUST duet_status duet_noise_uniform(duet_matrix *to, duet_expr x, uint64_t seed);
DUET_API DUET_MUST duet_status duet_noise_uniform_at(duet_matrix *to, duet_expr x, uint64_t seed, const char *site);
DUET_API DUET_MUST duet_status duet_noise_normal(duet_matrix *to, duet_expr x, uint64_t seed);
DUET_API DUET_MUST duet_status duet_noise_normal_at(duet_matrix *to, duet_expr x, uint64_t seed, const char *site);
DUET_API DUET_MUST duet_status duet_noise_logistic(duet_matrix *to, duet_expr x, uint64_t seed);
DUET_API DUET_MUST duet_status duet_noise_logistic_at(duet_matrix *to, duet_expr x, uint64_t seed, const char *site);
DUET_API DUET_MUST duet_status duet_noise_ranged(duet_matrix *to, duet_expr x, uint64_t seed, double top);
DUET_API DUET_MUST duet_status duet_noise_ranged_at(duet_matrix *to, duet_expr x, uint64_t seed, double top, const char *site);
DUET_API DUET_MUST duet_status duet_noise_bernoulli(duet_matrix *to, duet_expr x, uint64_t seed);
DUET_API DUET_MUST duet_status duet_noise_bernoulli_at(duet_matrix *to, duet_expr x, uint64_t seed, const char *site);

/* duet_shuffle: `to` becomes the parts of from along an axis in random order, duet_take(from, p, axis) with p of duet_random_permutation(p, seed):
 * every order is equally likely, and matrices that are shuffled by one seed are shuffled alike. from may be `to`. Of all elements: along the one
 * axis of a reshaped view.
 * duet_sequence: element i of m, in row-major order, becomes start + i by: of floating point fma(i, by, start), of integers modulo 2^n.
 * Shapes    shuffle: equal; sequence: any
 * Errors    BAD_ARGUMENT: no matrix, or, of a sequence of integers, a number out of their range; BAD_TYPE: types differ; m is bool or complex, or a
 *           fraction among integers; BAD_SHAPE; and as duet_set: `to`, or m, is as it was, as there */
DUET_API DUET_MUST duet_status duet_shuffle(duet_matrix *to, const duet_matrix *from, int axis, uint64_t seed);
DUET_API DUET_MUST duet_status duet_shuffle_at(duet_matrix *to, const duet_matrix *from, int axis, uint64_t seed,
                                               const char *site);
DUET_API DUET_MUST duet_status duet_sequence(duet_matrix *m, double start, double by);
DUET_API DUET_MUST duet_status duet_sequence_at(duet_matrix *m, double start, double by, const char *site);

/* ---- shapes, by copies ---------------------------------------------------------------------------------------- */

/* Statements that write every element of `to` with those of other matrices of its element type, which may be views, and may be parts of
 * `to`: they are read before anything is written. Each is one pass or more over views; what needs no copy is a view (duet_split, duet_flipped,
 * duet_broadcast_to, ...).
 *     duet_concatenate  the parts one after the other along an axis that they have; in C duet_concatenate(to, axis, a, b, c)
 *     duet_stack        the parts, of one shape, one after the other along an axis that they do not have; in C as before
 *     duet_tile         from, again and again along every axis
 *     duet_repeat       each element of from so many times along an axis
 *     duet_pad          from, with before[a] elements in front of it along axis a, and so many behind it that it fills `to`: DUET_PAD_CONSTANT,
 *                       value; DUET_PAD_EDGE, what is next to them; DUET_PAD_REFLECT, from mirrored at its edge, which is not doubled,
 *                       to and fro if need be
 *     duet_roll         from, moved on by `by` places along an axis, what falls off the end being put in at the start
 *     duet_magic        the magic square of n x n: 1 .. n * n, all rows, columns and diagonals having one sum. It is written by the host
 * Shapes    concatenate: the sizes along the axis add up to that of `to`, the others are equal; stack: along the axis `to` has as many elements
 *           as there are parts; tile: each size of `to` is a multiple of from's, which may have fewer axes; repeat: the same along the
 *           axis, others are equal; pad: 0 <= before[a], before[a] + that of from <= that of to, reflect and edge of what is not empty;
 *           roll: equal shapes; magic: n x n, n is not 2
 * Errors    BAD_ARGUMENT, BAD_SHAPE, BAD_TYPE (also: of integers that the type of the magic square does not hold), and as duet_set: `to` is
 *           unchanged; or, of statements that are several passes, when a machine or the memory fails half-way, unknown */
typedef enum duet_pad_mode { DUET_PAD_CONSTANT, DUET_PAD_EDGE, DUET_PAD_REFLECT } duet_pad_mode;
DUET_API DUET_MUST duet_status duet_concatenate(duet_matrix *to, int axis, const duet_matrix *const *part, int count);
DUET_API DUET_MUST duet_status duet_concatenate_at(duet_matrix *to, int axis, const duet_matrix *const *part, int count,
                                                   const char *site);
DUET_API DUET_MUST duet_status duet_stack(duet_matrix *to, int axis, const duet_matrix *const *part, int count);
DUET_API DUET_MUST duet_status duet_stack_at(duet_matrix *to, int axis, const duet_matrix *const *part, int count,
                                             const char *site);
DUET_API DUET_MUST duet_status duet_tile(duet_matrix *to, const duet_matrix *from);
DUET_API DUET_MUST duet_status duet_tile_at(duet_matrix *to, const duet_matrix *from, const char *site);
DUET_API DUET_MUST duet_status duet_repeat(duet_matrix *to, const duet_matrix *from, int axis);
DUET_API DUET_MUST duet_status duet_repeat_at(duet_matrix *to, const duet_matrix *from, int axis, const char *site);
DUET_API DUET_MUST duet_status duet_pad(duet_matrix *to, const duet_matrix *from, const int64_t *before, duet_pad_mode mode,
                                        double value);
DUET_API DUET_MUST duet_status duet_pad_at(duet_matrix *to, const duet_matrix *from, const int64_t *before, duet_pad_mode mode,
                                           double value, const char *site);
DUET_API DUET_MUST duet_status duet_roll(duet_matrix *to, const duet_matrix *from, int axis, int64_t by);
DUET_API DUET_MUST duet_status duet_roll_at(duet_matrix *to, const duet_matrix *from, int axis, int64_t by, const char *site);
DUET_API DUET_MUST duet_status duet_magic(duet_matrix *m);

/* The windows of images as columns: row (c h + i) w + j of matrix k of `to` has element (i, j) of all windows, h x w, of channel c of image k, the windows
 * one after the other, row by row; padding is zeros. Filters, m x c x h x w, as a matrix of m x c h w (duet_reshaped), times `to` are conv2d. The images
 * may be parts of `to`. In C options follow by name: duet_im2col(to, x, .window = { 3, 3 }).
 * Shapes    images n x c x rows x cols; to n x c h w x how many windows there are
 * Errors    BAD_ARGUMENT, BAD_SHAPE (also: windows larger than the padded images), BAD_TYPE, and as duet_set: `to` is unchanged */
typedef struct duet_windows {
    int32_t window[2], stride[2], pad[2], dilation[2]; /* strides and dilations of 0 mean 1 */
} duet_windows;
DUET_API DUET_MUST duet_status duet_im2col(duet_matrix *to, const duet_matrix *images, const duet_windows *options);
DUET_API DUET_MUST duet_status duet_im2col_at(duet_matrix *to, const duet_matrix *images, const duet_windows *options,
                                              const char *site);

/* The matrix by which a convolution is a product: duet_matmul(to, x) is that part of the convolution of x and the kernel. Element i, j of `to` is
 * kernel[i + first - j], or 0 where there is none, first being 0, (m - 1) / 2 rounded down, or m - 1, of FULL, SAME, and VALID, and m the size of the
 * kernel: MATLAB's convmtx of a column, SciPy's convolution_matrix. duet_convmtx2 is that of two axes: of x, h x w, and of the results the elements follow
 * row by row (MATLAB's and ETL's column by column: the kernel transposed, h and w changed, gives theirs). The kernel may be a part of `to`.
 * Shapes    kernel m, at least 1; to: as many rows as there are results, n + m - 1, n, or n - m + 1 or none, and n columns, which is x's size.
 *           convmtx2: these multiplied, of both axes
 * Errors    BAD_ARGUMENT, BAD_SHAPE, BAD_TYPE, and as duet_set: `to` is unchanged */
DUET_API DUET_MUST duet_status duet_convmtx(duet_matrix *to, const duet_matrix *kernel, duet_overlap part);
DUET_API DUET_MUST duet_status duet_convmtx_at(duet_matrix *to, const duet_matrix *kernel, duet_overlap part, const char *site);
DUET_API DUET_MUST duet_status duet_convmtx2(duet_matrix *to, const duet_matrix *kernel, int h, int w, duet_overlap part);
DUET_API DUET_MUST duet_status duet_convmtx2_at(duet_matrix *to, const duet_matrix *kernel, int h, int w, duet_overlap part,
                                                const char *site);

/* ---- as many as there are ------------------------------------------------------------------------------------- */

/* New matrices whose size depends on what is computed, which makes these calls wait for it: of what the GPU computes, the host reads how many
 * there are and no more.
 *     duet_masked    x[mask]: what of x lies where the mask is not 0, in row-major order. A mask of fewer axes, x's first ones, chooses
 *                    rows, planes, ... of x
 *     duet_nonzero   the indices of what is not 0, in row-major order, each as a row: NumPy's argwhere
 *     duet_unique    the values of x in ascending order, each once, NaN last (and once); *counts: how often each stands in x, *inverse:
 *                    which of them each element of x is. Either may be NULL, if it is not asked for
 * Shapes    masked: [n] and the axes of x that the mask has not; nonzero: [n, rank of x], i64; unique: [n], of x's type, *counts [n] and
 *           *inverse as x, i64
 * Owner     all of them: the caller, until duet_free. Formulas are spent, also when it fails
 * Errors    NULL, also for *counts and *inverse: as duet_set; BAD_SHAPE: the mask's sizes are not those of x's first axes; UNSUPPORTED: while
 *           this thread records, or explains: how large a result is cannot be said before */
DUET_API duet_matrix *duet_masked(duet_expr x, duet_expr mask);
DUET_API duet_matrix *duet_masked_at(duet_expr x, duet_expr mask, const char *site);
DUET_API duet_matrix *duet_nonzero(duet_expr x);
DUET_API duet_matrix *duet_nonzero_at(duet_expr x, const char *site);
DUET_API duet_matrix *duet_unique(duet_expr x, duet_matrix **counts, duet_matrix **inverse);
DUET_API duet_matrix *duet_unique_at(duet_expr x, duet_matrix **counts, duet_matrix **inverse, const char *site);

/* ---- files ----------------------------------------------------------------------------------------------------- */

/* NumPy's .npy: one array. What is read may be of any version (1.0, 2.0, 3.0), byte order and element type that Duet has; bf16 is `V2`, as
 * ml_dtypes writes it. An array in Fortran's order enters as a transposed view, and a matrix that is one leaves in Fortran's order.
 * .npz: several, by name, in a zip file. What is read may be stored, or deflated where the build has zlib (duet_info says so), and larger than
 * 4 GB; what is written is stored. A file is written beside the one that it replaces, which is left as it is when that fails.
 *     duet_load_npz      the array of that name
 *     duet_names_npz     the names of all, the last one followed by NULL
 * Owner     of matrices: the caller, until duet_free; of the names: the caller, one block, until free()
 * Errors    IO_ERROR; BAD_FILE: it is no such file, it is cut off, or what it says does not hold; UNSUPPORTED: elements that Duet has not, a
 *           compression other than deflate, encryption, no zlib; BAD_ARGUMENT: NULL, or no array of that name, or a name twice; NO_MEMORY; of
 *           saving also as duet_read. Loading returns NULL */
typedef struct duet_named {
    const char *name;
    const duet_matrix *m;
} duet_named;
DUET_API duet_matrix *duet_load_npy(const char *path);
DUET_API DUET_MUST duet_status duet_save_npy(const char *path, const duet_matrix *m);
DUET_API duet_matrix *duet_load_npz(const char *path, const char *name);
DUET_API char **duet_names_npz(const char *path);
DUET_API DUET_MUST duet_status duet_save_npz(const char *path, const duet_named *list, int count);

/* Matrix Market's dense format, `array`: text, column by column. What is read may be real (f64), integer (i64) or complex (c128, where Duet has
 * it), and general, symmetric, skew-symmetric or hermitian; what is written is general, with as many digits as give the same elements again.
 * Shapes    rank 2
 * Owner     the caller, until duet_free
 * Errors    as above; UNSUPPORTED: the format `coordinate`, the field `pattern`; BAD_SHAPE: another rank */
DUET_API duet_matrix *duet_load_market(const char *path);
DUET_API DUET_MUST duet_status duet_save_market(const char *path, const duet_matrix *m);

/* Writes the elements of m as NumPy prints an array: rows in brackets, columns aligned, of floating point as few digits as tell an element
 * apart, at most 8 behind the point; of more than 1000 elements the first and last three along each axis.
 * Errors    BAD_ARGUMENT, NO_MEMORY, IO_ERROR, and as duet_read */
DUET_API duet_status duet_print(FILE *out, const duet_matrix *m);

/* ---- factorisations ------------------------------------------------------------------------------------------ */

/* Statements with several results: factor.def has a row for each, duet_lu(l, u, p, a), duet_qr(q, r, a), duet_svd(u, s, vt, a),
 * duet_eigh(w, v, a), duet_slogdet(sign, logdet, a). A result may be a view, and may overlap a, but no other result. What has one result
 * is an operator above: duet_solve, duet_inv, duet_det, duet_cholesky, duet_lstsq, ...
 * Shapes    a m x n; results exactly as the row says, of a's type but for indices (i64) and, where a is complex, what is real in any case
 *           (s, w, logdet), which is f32 or f64
 * Errors    BAD_ARGUMENT: no matrix, or results that overlap; BAD_TYPE, BAD_SHAPE, UNKNOWN, NO_MEMORY, UNSUPPORTED, NO_DEVICE, NOT_FINITE,
 *           NO_CONVERGENCE: results are unchanged; DEVICE_ERROR: they may be unknown */
#define DUET_FACTOR2(name, first, second, ...)                                                                                   \
    DUET_API DUET_MUST duet_status duet_##name(duet_matrix *first, duet_matrix *second, const duet_matrix *a);                   \
    DUET_API DUET_MUST duet_status duet_##name##_at(duet_matrix *first, duet_matrix *second, const duet_matrix *a,               \
                                                    const char *site);
#define DUET_FACTOR3(name, first, second, third, ...)                                                                            \
    DUET_API DUET_MUST duet_status duet_##name(duet_matrix *first, duet_matrix *second, duet_matrix *third,                      \
                                               const duet_matrix *a);                                                            \
    DUET_API DUET_MUST duet_status duet_##name##_at(duet_matrix *first, duet_matrix *second, duet_matrix *third,                 \
                                                    const duet_matrix *a, const char *site);
#include <duet/factor.def>

/* ---- where, and at what cost --------------------------------------------------------------------------------- */

/* In C, DUET_ON(DUET_GPU) { ... } runs the statements of a block on one machine. Leaving it in any way restores. Precedence: call,
 * innermost block, environment (DUET_BACKEND=cpu|gpu|auto), auto. */
typedef struct duet_scope {
    int on, before;
} duet_scope;
DUET_API duet_scope duet_scope_open(duet_place place);
DUET_API void duet_scope_close(duet_scope *s);

/* In the same way, in C, DUET_MATH(DUET_MATH_SPLIT) { ... } runs the statements of a block in a math mode. Precedence: call
 * (duet_set_math), innermost block, environment (DUET_MATH=strict|split|tf32|bf16), strict. What is recorded keeps the mode that it was
 * recorded in. In C++ the same lasts as long as an object: duet_math_block split(DUET_MATH_SPLIT). */
DUET_API duet_scope duet_math_open(duet_math_mode math);
DUET_API void duet_math_close(duet_scope *s);

/* In C, DUET_EXPLAIN(stdout) { ... } writes the plans of the statements of a block, in place of running them: what duet_explain does, also of those
 * that it cannot name (duet_iadd, duet_concatenate, duet_pad, ...). Formulas are spent; no matrix is written, and nothing is recorded.
 * Owner     the file: the caller, until after the block */
typedef struct duet_explaining {
    int on;
    FILE *before;
} duet_explaining;
DUET_API duet_explaining duet_explain_open(FILE *out);
DUET_API void duet_explain_close(duet_explaining *e);

/* What has happened since the process began, over all threads. */
typedef struct duet_counts {
    uint64_t uploads, downloads, upload_bytes, download_bytes; /* copies between the homes of matrices */
    uint64_t synchronisations;                                 /* times a host thread waited for the GPU */
    uint64_t launches;                                         /* kernels of ours and vendor calls, on the GPU */
    uint64_t steps;                                            /* steps run, on any machine */
    uint64_t temporaries;                                      /* blocks lent to hold a part of a formula */
    uint64_t pool_hits, pool_misses;                           /* blocks found in a pool; taken from the system */
    uint64_t plan_hits, plan_misses;                           /* statements whose plan was there; was made */
    uint64_t replays, graphs;                                  /* recordings replayed; launches of CUDA graphs */
    uint64_t repeats;                                          /* statements that automatic replay ran as parts of graphs */
    uint64_t streams;                                          /* statements that went through the GPU part by part */
    uint64_t transforms;                                       /* plans of Fourier transforms that were made */
} duet_counts;
DUET_API duet_counts duet_stats(void);

/* The memory of one machine, in bytes: what matrices, temporaries and workspaces use, what the pool keeps beside that, the most
 * that both ever were, the limit (0: none), and how much of the CPU's is pinned: large matrices that travel a second time are, up to a
 * quarter of what the system has. duet_memory_limit sets the limit; AUTO is no machine.
 * Errors    BAD_ARGUMENT */
typedef struct duet_memory {
    size_t used, cached, peak, limit, pinned;
} duet_memory;
DUET_API duet_memory duet_memory_of(duet_place place);
DUET_API duet_status duet_memory_limit(duet_place place, size_t bytes);
DUET_API void duet_memory_trim(void); /* gives what the pools keep back to the system */

/* Writes what was found: machines, vendor libraries with versions and places, and what is missing and why. */
DUET_API void duet_info(FILE *out);

/* The text of this thread's last error: operator, shapes, the broken condition, where it stands; "" if there was none. */
DUET_API const char *duet_error(void);
DUET_API const char *duet_status_text(duet_status s);

#ifdef __cplusplus
}
/* DUET_MATH for C++: until the end of its life. */
class duet_math_block
{
    duet_scope scope;
    duet_math_block(const duet_math_block &);
    duet_math_block &operator=(const duet_math_block &);

  public:
    explicit duet_math_block(duet_math_mode math) : scope(duet_math_open(math)) {}
    ~duet_math_block() { duet_math_close(&scope); }
};
inline duet_expr::duet_expr(const duet_matrix *m) { *this = duet_of_matrix(m); }
inline duet_expr::duet_expr(double x) { *this = duet_of_number(x); }
inline duet_expr::duet_expr(float x) { *this = duet_of_number(x); }
inline duet_expr::duet_expr(int x) { *this = duet_of_integer(x); }
inline duet_expr::duet_expr(long x) { *this = duet_of_integer(x); }
inline duet_expr::duet_expr(long long x) { *this = duet_of_integer(x); }
inline duet_expr::duet_expr(unsigned x) { *this = duet_of_unsigned(x); }
inline duet_expr::duet_expr(unsigned long x) { *this = duet_of_unsigned(x); }
inline duet_expr::duet_expr(unsigned long long x) { *this = duet_of_unsigned(x); }
template <class... N> inline duet_matrix *duet_new(duet_dtype type, N... n)
{
    const int64_t size[] = { 0, (int64_t)n... };
    return duet_new_shape(type, (int)sizeof...(n), size + 1);
}
template <class... N> inline duet_matrix *duet_wrap(void *host, duet_dtype type, N... n)
{
    const int64_t size[] = { 0, (int64_t)n... };
    return duet_wrap_shape(host, type, (int)sizeof...(n), size + 1);
}
template <class... N> inline duet_matrix *duet_wrap_columns(void *host, duet_dtype type, N... n)
{
    const int64_t size[] = { 0, (int64_t)n... };
    return duet_wrap_columns_shape(host, type, (int)sizeof...(n), size + 1);
}
template <class... N> inline duet_matrix *duet_reshaped(duet_matrix *m, N... n)
{
    const int64_t size[] = { 0, (int64_t)n... };
    return duet_reshaped_shape(m, (int)sizeof...(n), size + 1);
}
template <class... N> inline duet_matrix *duet_broadcast_to(duet_matrix *m, N... n)
{
    const int64_t size[] = { 0, (int64_t)n... };
    return duet_broadcast_to_shape(m, (int)sizeof...(n), size + 1);
}
template <class... N> inline duet_matrix *duet_permuted(duet_matrix *m, N... n)
{
    const int axis[] = { 0, (int)n... };
    return duet_permuted_axes(m, (int)sizeof...(n), axis + 1);
}
template <class... I> inline duet_matrix *duet_indexed(duet_matrix *m, I... i)
{
    const duet_index index[] = { DUET_REST, i... };
    return duet_indexed_by(m, (int)sizeof...(i), index + 1);
}
template <class... M>
inline DUET_MUST duet_status duet_concatenate(duet_matrix *to, int axis, const duet_matrix *first, M... more)
{
    const duet_matrix *const part[] = { first, more... };
    return duet_concatenate(to, axis, part, (int)sizeof...(more) + 1);
}
template <class... M> inline DUET_MUST duet_status duet_stack(duet_matrix *to, int axis, const duet_matrix *first, M... more)
{
    const duet_matrix *const part[] = { first, more... };
    return duet_stack(to, axis, part, (int)sizeof...(more) + 1);
}
/* In C++: duet_sum_axes(x, 0, 2) */
#define DUET_AXES_OF_1(name)                                                                                                     \
    template <class... N> inline duet_expr name(duet_expr x, N... n)                                                             \
    {                                                                                                                            \
        const int axis[] = { 0, (int)n... };                                                                                     \
        return name(x, (int)sizeof...(n), axis + 1);                                                                             \
    }
#define DUET_AXES_OF_2(name)                                                                                                     \
    template <class... N> inline duet_expr name(duet_expr x, duet_expr y, N... n)                                                \
    {                                                                                                                            \
        const int axis[] = { 0, (int)n... };                                                                                     \
        return name(x, y, (int)sizeof...(n), axis + 1);                                                                          \
    }
#define DUET_FOLD1(name, ...) DUET_AXES_OF_1(duet_##name##_axes) DUET_AXES_OF_1(duet_##name##_axes_keep)
#define DUET_FOLD2(name, ...) DUET_AXES_OF_2(duet_##name##_axes) DUET_AXES_OF_2(duet_##name##_axes_keep)
#define DUET_MOMENT1          DUET_FOLD1
#define DUET_COMPOSED_FOLD1   DUET_FOLD1
#include <duet/composed.def>
#include <duet/ops.def>
#undef DUET_AXES_OF_1
#undef DUET_AXES_OF_2
/* In C++: duet_set_all({ { m, duet_mean(x) }, { d, duet_sub(x, y) } }) */
template <int N> inline DUET_MUST duet_status duet_set_all(const duet_assignment (&a)[N]) { return duet_set_all(a, N); }
#else
#include <duet/lift.h>
#endif
#endif
