/* duet.h - matrix expressions, which Duet evaluates on the CPU or on an NVIDIA GPU, whichever is
 * expected to be faster.
 *
 *     duet_matrix *x = duet_new(DUET_F32, 1000), *y = duet_new(DUET_F32, 1000);
 *     float *p = duet_overwrite(x);
 *     for (int i = 0; i < 1000; i++) p[i] = i;
 *     if (duet_set(y, duet_add(duet_mul(3.3f, x), y))) puts(duet_error());
 *     const float *r = duet_read(y);
 *     duet_free(&x, &y);
 *
 * There are two main kinds of object, and their C types tell them apart:
 *     duet_matrix *   A matrix. You create it (with duet_new, duet_wrap, duet_eval and others, or as a
 *                     view) and free it (duet_free).
 *     duet_expr       A formula that is not yet computed: a value of 8 bytes. Several other formulas
 *                     may use it. It belongs to the thread that made it. A statement is a call that
 *                     evaluates formulas and writes matrices, such as duet_set. It consumes its formula
 *                     and all formulas from which that was built: they cannot be used again. Formulas
 *                     that were built from them before stay valid. duet_drop discards a formula that you
 *                     do not evaluate, which otherwise occupies memory until the thread ends. A
 *                     formula that you made persistent (duet_hold) is freed only by duet_drop.
 *
 * A function that can fail returns a duet_status, or NULL instead of a pointer. A function that returns a
 * duet_expr stores the error in it, and the statement that evaluates it returns the error. The statuses
 * are listed in duet/status.def; the comments below name them without the prefix DUET_. After a
 * failure, duet_error() returns a text that says what failed, why and where. A failed call leaves its
 * destinations unchanged, with these exceptions:
 *     duet_replay                 as described there
 *     DEVICE_ERROR                the device failed halfway: the elements of the destination may be lost.
 *                                 Reading them fails with UNKNOWN until they are written again. Other
 *                                 elements of the same matrix are not lost
 *     an index out of bounds      on the GPU the statement has already returned OK and written its
 *                                 destination. The next call of this thread that waits for the GPU fails
 *                                 with BAD_ARGUMENT, once: duet_read, duet_item, duet_synchronize and others
 *
 * Indices count from 0. Sizes and strides count elements, not bytes. Matrices that Duet allocates are
 * row-major.
 *
 * This header includes the others, which declare the operators (duet/operators.h), their options
 * (duet/options.h), random numbers (duet/random.h), statements that copy and arrange elements
 * (duet/arrange.h), and files (duet/files.h). duet/reference.h, which the build makes, lists all
 * functions with their documentation. */
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

#define DUET_VERSION_MAJOR 0
#define DUET_VERSION_MINOR 1
#define DUET_VERSION_PATCH 0
#define DUET_VERSION       "0.1.0"

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

/* Where a statement runs.
 *     DUET_AUTO   on the device that is expected to finish first, or on the CPU if the GPU does not
 *                 have enough memory for it
 *     DUET_CPU    on the CPU
 *     DUET_GPU    on the GPU */
typedef enum duet_place { DUET_AUTO, DUET_CPU, DUET_GPU } duet_place;

/* Arithmetic that the GPU may use for matrix products and convolutions of f32, f16 and bf16.
 *     STRICT   f32 arithmetic; f16 and bf16 operands are converted to f32 first
 *     SPLIT    each element is split into a sum of two f16 numbers with a scale, or of two TF32
 *              numbers. This uses tensor cores, and errors are close to those of STRICT
 *     TF32     elements are rounded or truncated to 11 significant bits
 *     BF16     elements are rounded or truncated to 8 significant bits, in convolutions to 11
 * The mode allows the GPU to use this arithmetic. The GPU still computes in f32 where it has no kernel
 * for the mode. The CPU always computes these operands in f32. Results in f64 have the same bits in every
 * mode, and so have those of all other operators. docs/semantics.md has the error bounds and says
 * what happens to infinities. duet_explain shows how each step is computed. */
typedef enum duet_math_mode {
    DUET_MATH_STRICT,
    DUET_MATH_SPLIT,
    DUET_MATH_TF32,
    DUET_MATH_BF16
} duet_math_mode;

typedef struct duet_matrix duet_matrix;

/* A formula. Do not change the member. A duet_expr with serial 0 is not a formula. */
typedef struct duet_expr {
    uint64_t serial;
#ifdef __cplusplus
    duet_expr() = default;
    inline duet_expr(const duet_matrix *m);
    inline duet_expr(double x);
    inline duet_expr(float x);
    inline duet_expr(long double x);
    inline duet_expr(int x);
    inline duet_expr(long x);
    inline duet_expr(long long x);
    inline duet_expr(unsigned x);
    inline duet_expr(unsigned long x);
    inline duet_expr(unsigned long long x);
#endif
} duet_expr;

/* ---- matrices and views ---------------------------------------------------------------------- */

/* Creates a matrix of zeros. Its memory is allocated on first use, on the device that uses it.
 * duet_new(DUET_F32, 2, 3) is the same with the sizes as arguments.
 * Shapes    rank 0 to 8, sizes >= 0
 * Owner     the caller, until duet_free
 * Errors    NULL: BAD_ARGUMENT, BAD_TYPE, BAD_SHAPE (invalid rank; a negative size; sizes whose
 *           product overflows), NO_MEMORY */
DUET_API DUET_MUST duet_matrix *duet_new_shape(duet_dtype type, int rank, const int64_t *size);

/* Creates a matrix that uses the caller's memory, row-major without gaps. The library reads and
 * writes this memory and never frees it. Call duet_read, duet_update or duet_overwrite before you
 * access the memory: until then the current elements may be in GPU memory only. duet_free does not copy
 * them back: if you need the results in your memory, call duet_read before it. Do not wrap the same memory
 * twice. To share part of a matrix, make a view.
 * duet_wrap(p, DUET_F32, 2, 3) is the same with the sizes as arguments.
 * Shapes    as duet_new_shape
 * Owner     the matrix: the caller, until duet_free. The memory: the caller, who must keep it until
 *           the matrix and its views are freed
 * Errors    NULL: as duet_new_shape, and BAD_ARGUMENT if host is NULL or not aligned as C aligns the
 *           element type */
DUET_API DUET_MUST duet_matrix *duet_wrap_shape(void *host, duet_dtype type, int rank, const int64_t *size);

/* Create a matrix that uses the caller's memory, with other strides.
 *     duet_wrap_strided   `first` points to the element whose indices are all 0. A stride counts
 *                         elements and may be negative. If an axis has stride 0, or axes overlap,
 *                         elements occur several times; such a matrix can be read but not written.
 *                         Axes count as overlapping if, in the order of |stride|, a |stride| is not
 *                         more than the sum of (size - 1) * |stride| over the axes before it
 *     duet_wrap_columns   column-major without gaps, as in BLAS, LAPACK and Fortran;
 *                         duet_wrap_columns(p, DUET_F32, 2, 3) takes the sizes as arguments
 * Between elements there may be gaps. When the library copies the elements between host and GPU, it
 * copies the gaps too: a copy from the GPU overwrites what you stored there.
 * Shapes    as duet_new_shape, with one stride for each axis
 * Owner     as duet_wrap_shape
 * Errors    NULL: as duet_wrap_shape, and BAD_ARGUMENT if stride is NULL */
DUET_API DUET_MUST duet_matrix *duet_wrap_strided(void *first, duet_dtype type, int rank, const int64_t *size,
                                                  const int64_t *stride);
DUET_API DUET_MUST duet_matrix *duet_wrap_columns_shape(void *host, duet_dtype type, int rank,
                                                        const int64_t *size);

/* Create a matrix that uses the caller's memory, which the library never writes. The matrix and its views can
 * be read; writing to them fails with BAD_ARGUMENT, and the text names the line that created the matrix.
 * Other code may write the memory only while no matrix uses it.
 *     duet_wrap_const           row-major without gaps; duet_wrap_const(p, DUET_F32, 2, 3) takes the sizes as
 *                               arguments
 *     duet_wrap_const_strided   with strides, as duet_wrap_strided
 * Shapes    as duet_new_shape, with one stride for each axis
 * Owner     as duet_wrap_shape
 * Errors    NULL: as duet_wrap_shape and duet_wrap_strided */
DUET_API DUET_MUST duet_matrix *duet_wrap_const_shape(const void *host, duet_dtype type, int rank,
                                                      const int64_t *size);
DUET_API DUET_MUST duet_matrix *duet_wrap_const_strided(const void *first, duet_dtype type, int rank,
                                                        const int64_t *size, const int64_t *stride);

/* Create a matrix that uses the caller's memory on a GPU: that of cudaMalloc, or managed memory. The library
 * finds out which GPU it is. It reads and writes this memory and never frees it. Work on the matrix starts
 * after the work that duet_stream() has when the matrix is created, so make that stream wait for your own
 * work first. Call duet_device_read, duet_device_update or duet_device_overwrite before other code uses the
 * memory: until then the current elements may be in host memory only. duet_free waits until no work of the
 * library uses the memory. It does not copy elements there. Do not wrap the same memory twice.
 *     duet_wrap_device           row-major without gaps; duet_wrap_device(p, DUET_F32, 2, 3) takes the sizes
 *                                as arguments
 *     duet_wrap_device_strided   with strides, as duet_wrap_strided
 * Shapes    as duet_new_shape, with one stride for each axis
 * Owner     the matrix: the caller, until duet_free. The memory: the caller, who must keep it until the
 *           matrix and its views are freed. After duet_recover the matrix no longer uses the memory
 * Errors    NULL: as duet_wrap_shape and duet_wrap_strided; BAD_ARGUMENT if the pointer is not aligned to the
 *           size of an element, or not one to memory of a GPU; NO_DEVICE; DEVICE_ERROR */
DUET_API DUET_MUST duet_matrix *duet_wrap_device_shape(void *device, duet_dtype type, int rank,
                                                       const int64_t *size);
DUET_API DUET_MUST duet_matrix *duet_wrap_device_strided(void *first, duet_dtype type, int rank,
                                                         const int64_t *size, const int64_t *stride);

/* Prints one line for each live matrix: the source line that created it, its type and shape, and
 * its size in bytes. Matrices are in the order of their creation. `out` may be NULL: nothing is
 * printed then. A matrix that you did not free, for example a view that you made inside a formula,
 * appears in the list. Returns the number of live matrices. It counts those of recordings too,
 * which have no source line. */
DUET_API int64_t duet_live(FILE *out);

/* Stores the source line that created m, for duet_live. The macros call it. The library stores the
 * pointer and does not copy the text. */
DUET_API void duet_created_at(duet_matrix *m, const char *site);

/* Frees a matrix and sets the pointer to NULL; a NULL pointer is allowed. duet_free(&x, &y, ...) frees any
 * number of matrices. Views of the matrix stay valid. The evaluation of a formula or recording with a freed
 * matrix fails with FREED. Do not use other copies of the pointer: after a time Duet uses the same address
 * for a new matrix. In C a matrix that is declared with DUET_LOCAL is freed at the end of its block, also if
 * return, break, continue or goto ends it:
 *     DUET_LOCAL duet_matrix *x = duet_zeros(DUET_F32, 3);
 * Errors    in duet_error(): BAD_ARGUMENT: the matrix was already freed */
DUET_API void duet_free(duet_matrix **m);

/* Changes the shape of m, as NumPy's ndarray.resize does. The elements keep their row-major order; new ones
 * are 0, and those that no longer fit are dropped. The elements move to new memory, on a device where they
 * are. duet_resize(m, 3, 4) is the same with the sizes as arguments. Pointers from duet_read and similar
 * functions become invalid. Formulas, also persistent ones, and recordings that use m fail with FREED
 * afterwards.
 * Shapes    as duet_new_shape; at least one axis for duet_resize
 * Errors    m is as before. BAD_ARGUMENT: m is NULL or was freed; it is a view, or shares its memory with a
 *           view or a DLPack tensor; it uses memory of the caller or of another library; its structure is
 *           declared. UNSUPPORTED: m is on a group; statements are being recorded, and the recording then
 *           fails, or explained (DUET_EXPLAIN). BAD_SHAPE, and as duet_read and duet_new_shape */
DUET_API DUET_MUST duet_status duet_resize_shape(duet_matrix *m, int rank, const int64_t *size);

/* One entry of an index list, as between NumPy's brackets:
 *     DUET_ALL                       :
 *     DUET_RANGE(start, stop)        start:stop
 *     DUET_STEP(start, stop, step)   start:stop:step
 *     DUET_AT(i)                     i, which removes the axis
 *     DUET_NEW                       None, which inserts an axis of size 1
 *     DUET_REST                      ..., which stands for all axes that the other entries do not
 *                                    name. If a list has no DUET_REST, one is added at its end
 * A negative start, stop or i counts from the end of the axis. Ranges are clipped to the axis.
 * DUET_OPEN as start or stop means that the range has no such limit, as in m[:5] or m[2:]. */
typedef enum duet_index_kind {
    DUET_INDEX_RANGE,
    DUET_INDEX_AT,
    DUET_INDEX_NEW,
    DUET_INDEX_REST
} duet_index_kind;
typedef struct duet_index_entry {
    duet_index_kind kind;
    int64_t start, stop, step;
} duet_index_entry;
static inline duet_index_entry duet_index_of(duet_index_kind kind, int64_t start, int64_t stop, int64_t step)
{
    const duet_index_entry i = { kind, start, stop, step };
    return i;
}
#define DUET_OPEN                    INT64_MIN
#define DUET_STEP(start, stop, step) duet_index_of(DUET_INDEX_RANGE, start, stop, step)
#define DUET_RANGE(start, stop)      DUET_STEP(start, stop, 1)
#define DUET_ALL                     DUET_STEP(DUET_OPEN, DUET_OPEN, 1)
#define DUET_AT(i)                   duet_index_of(DUET_INDEX_AT, i, 0, 0)
#define DUET_NEW                     duet_index_of(DUET_INDEX_NEW, 0, 0, 0)
#define DUET_REST                    duet_index_of(DUET_INDEX_REST, 0, 0, 0)

/* Create a view: a matrix that shares the elements of m. Writing to the view writes to m. A view
 * keeps the elements alive after m is freed. A negative axis counts from the last one; for duet_expanded,
 * from the last one of the result. duet_indexed, duet_picked and duet_stepped accept negative indices, which
 * count from the end of the axis; ranges are clipped to the axis. The indices of duet_slice, duet_row,
 * duet_column and duet_submatrix must not be negative, and ranges are not clipped.
 *     duet_indexed       m[...]: duet_indexed(m, DUET_AT(2), DUET_STEP(DUET_OPEN, DUET_OPEN, -1)) is
 *                        m[2, ::-1]
 *     duet_stepped       the range start:stop:step of one axis
 *     duet_picked        element i of one axis, which is removed
 *     duet_flipped       one axis in reverse order
 *     duet_slice         elements first .. first + count - 1 of the first axis
 *     duet_row           m[i]; the first axis is removed
 *     duet_column        m[:, j] of a rank-2 matrix, with rank 1
 *     duet_submatrix     rows x cols elements of a rank-2 matrix, starting at (i, j)
 *     duet_diagonal      m[i, i + offset]: removes the first two axes and appends the diagonal as the
 *                        last one
 *     duet_transposed    the axes in reverse order
 *     duet_permuted      the axes in the given order: duet_permuted(m, 2, 0, 1)
 *     duet_expanded      inserts an axis of size 1, which becomes axis number `axis`
 *     duet_squeezed      removes an axis of size 1
 *     duet_reshaped      the same elements with other sizes. One size may be -1: it is computed from
 *                        the others. Nothing is copied; if the strides allow no such view, the call
 *                        fails, and the error text says what to copy first
 *     duet_broadcast_to  repeats m along axes, by NumPy's rules of broadcasting, so that it has a
 *                        larger shape. This view can be read; writing to it fails with BAD_ARGUMENT
 *     duet_split         splits an axis into `count` views of equal size; if the size is not a
 *                        multiple of `count`, the first views have one element more. `part` is your
 *                        array of `count` pointers, which receives the views; free each of them
 * Threads may read a matrix and its views at the same time. While a thread writes one of them, no
 * other thread may use any of them.
 * Owner     the caller, until duet_free
 * Errors    NULL: BAD_ARGUMENT (m is NULL or was freed, an index out of bounds, a step of 0, an axis given
 *           twice), BAD_SHAPE (rank, axis, sizes), NO_MEMORY. duet_split returns the status, also
 *           BAD_ARGUMENT for a count less than 1 or a `part` that is NULL; if it fails, it makes no view */
DUET_API DUET_MUST duet_matrix *duet_indexed_by(duet_matrix *m, int count, const duet_index_entry *index);
DUET_API DUET_MUST duet_matrix *duet_stepped(duet_matrix *m, int axis, int64_t start, int64_t stop,
                                             int64_t step);
DUET_API DUET_MUST duet_matrix *duet_picked(duet_matrix *m, int axis, int64_t i);
DUET_API DUET_MUST duet_matrix *duet_flipped(duet_matrix *m, int axis);
DUET_API DUET_MUST duet_matrix *duet_slice(duet_matrix *m, int64_t first, int64_t count);
DUET_API DUET_MUST duet_matrix *duet_row(duet_matrix *m, int64_t i);
DUET_API DUET_MUST duet_matrix *duet_column(duet_matrix *m, int64_t j);
DUET_API DUET_MUST duet_matrix *duet_submatrix(duet_matrix *m, int64_t i, int64_t j, int64_t rows,
                                               int64_t cols);
DUET_API DUET_MUST duet_matrix *duet_diagonal(duet_matrix *m, int64_t offset);
DUET_API DUET_MUST duet_matrix *duet_transposed(duet_matrix *m);
DUET_API DUET_MUST duet_matrix *duet_permuted_axes(duet_matrix *m, int rank, const int *axis);
DUET_API DUET_MUST duet_matrix *duet_expanded(duet_matrix *m, int axis);
DUET_API DUET_MUST duet_matrix *duet_squeezed(duet_matrix *m, int axis);
DUET_API DUET_MUST duet_matrix *duet_reshaped_shape(duet_matrix *m, int rank, const int64_t *size);
DUET_API DUET_MUST duet_matrix *duet_broadcast_to_shape(duet_matrix *m, int rank, const int64_t *size);
DUET_API DUET_MUST duet_status duet_split(duet_matrix *m, int axis, int count, duet_matrix **part);

/* Return properties of a matrix. For NULL or a freed matrix they return 0, which as a type is DUET_F32. An
 * axis that does not exist has size 0 and stride 0, and so has a negative one.
 *     duet_type     the element type
 *     duet_rank     the number of axes
 *     duet_size     the size of an axis
 *     duet_stride   the distance in memory between neighbours along an axis, in elements, not bytes
 *     duet_count    the number of elements: the product of all sizes */
DUET_API duet_dtype duet_type(const duet_matrix *m);
DUET_API int duet_rank(const duet_matrix *m);
DUET_API int64_t duet_size(const duet_matrix *m, int axis);
DUET_API int64_t duet_stride(const duet_matrix *m, int axis);
DUET_API int64_t duet_count(const duet_matrix *m);

/* Answer questions about the memory of matrices with 1 or 0. For NULL or a freed matrix the answer is 0.
 *     duet_valid_on       1 if the elements of m are up to date on `place`, so that reading them there copies
 *                         nothing. They may be up to date on several devices. A matrix whose zeros were
 *                         never written needs no copy anywhere. DUET_AUTO: on any device
 *     duet_share_memory   1 if a and b may have elements in common. 0 is certain. 1 is certain unless both
 *                         have gaps that could interleave: views with steps along several axes */
DUET_API int duet_valid_on(const duet_matrix *m, duet_place place);
DUET_API int duet_share_memory(const duet_matrix *a, const duet_matrix *b);

/* Return a pointer to the first element in host memory. The call waits for unfinished work on m, and
 * copies elements from the GPU where necessary. Elements are duet_stride apart along each axis. Use the
 * pointer only until the next statement, replay or access function that uses m or a view of its elements,
 * and call the function again after it: the library does not notice writes through an old pointer. Building
 * formulas and duet_size end nothing. If m has no elements, the pointer is not NULL; do not read from it.
 *     duet_read        for reading: the elements are up to date
 *     duet_update      for reading and writing: the elements are up to date, and the copy on the GPU
 *                      becomes stale
 *     duet_overwrite   for writing every element: the old contents are lost. On a view of part of a
 *                      matrix it does the same as duet_update
 * Owner     the matrix; do not free the pointer
 * Errors    NULL: BAD_ARGUMENT (m is NULL or was freed; duet_update and duet_overwrite: elements of m repeat;
 *           a statement on the GPU found an index out of bounds), UNKNOWN, NO_MEMORY, DEVICE_ERROR */
DUET_API const void *duet_read(const duet_matrix *m);
DUET_API void *duet_update(duet_matrix *m);
DUET_API void *duet_overwrite(duet_matrix *m);

#include <duet/typed.h> /* duet_read_f32, duet_update_i64, ... */

/* Return a pointer to the first element in GPU memory, for use in your own CUDA kernels. Run these
 * kernels on the stream that duet_stream() returns, or synchronise with it.
 *     duet_device_read        for reading, as duet_read
 *     duet_device_update      for reading and writing, as duet_update: host memory becomes stale
 *     duet_device_overwrite   for writing every element, as duet_overwrite
 * Owner     the matrix; do not free the pointer
 * Errors    NULL: as duet_read, and NO_DEVICE */
DUET_API const void *duet_device_read(const duet_matrix *m);
DUET_API void *duet_device_update(duet_matrix *m);
DUET_API void *duet_device_overwrite(duet_matrix *m);

/* Returns the cudaStream_t on which this thread's statements run. It is valid until the thread ends; do not
 * destroy it. Up to 64 threads have a stream of their own; further ones share them. The call launches
 * deferred statements and turns automatic replay off for this thread (duet_auto_replay).
 * Errors    NULL: NO_DEVICE, DEVICE_ERROR, and those of deferred statements */
DUET_API void *duet_stream(void);

/* Waits for all work of this thread on the GPU, and for that of all groups. Without a GPU it returns at once.
 * Errors    DEVICE_ERROR; BAD_ARGUMENT: a statement on the GPU found an index out of bounds */
DUET_API DUET_MUST duet_status duet_synchronize(void);

/* ---- formulas and statements ----------------------------------------------------------------- */

/* Convert a matrix, a number or a formula to a formula. You rarely need these functions, because the
 * operators below accept matrices, formulas and C numbers, and convert them.
 * A number takes the element type of the matrix that it is combined with. An integer can take any
 * type whose range contains it. A fraction needs a floating-point type. A complex number makes the
 * result complex. Matrices of different types are converted to a common type by the table in
 * docs/semantics.md. If the table has no common type, use duet_cast.
 *     duet_of_matrix     the formula of a matrix
 *     duet_of_number     the formula of a floating-point number
 *     duet_of_integer    the formula of an integer
 *     duet_of_unsigned   the formula of an unsigned integer
 *     duet_of_expr       the formula e itself
 * Shapes    a matrix keeps its shape; a number has rank 0
 * Owner     the matrix stays the caller's; it must not be freed before the formula is evaluated
 * Errors    in the result: BAD_ARGUMENT (NULL), FREED, ARENA_FULL, NO_MEMORY */
DUET_API DUET_MUST duet_expr duet_of_matrix(const duet_matrix *m);
DUET_API DUET_MUST duet_expr duet_of_number(double x);
DUET_API DUET_MUST duet_expr duet_of_integer(int64_t x);
DUET_API DUET_MUST duet_expr duet_of_unsigned(uint64_t x);
DUET_API DUET_MUST duet_expr duet_of_expr(duet_expr e);

#include <duet/operators.h>

#include <duet/layers.h> /* duet_softmax_axis, duet_rms_norm, duet_nll_loss, ... */

#include <duet/gradient.h> /* duet_grad, duet_vjp, duet_stop_gradient, duet_checkpoint */

#include <duet/structure.h> /* duet_declare, duet_structure_of */

#include <duet/sparse.h> /* duet_sparse_from_coo, duet_sparse_matmul and so on */

#include <duet/group.h> /* duet_group_local, duet_new_split: several GPUs, several processes */

/* Evaluates e and stores the result in m. The matrix m may occur in e. Consumes e, also on failure.
 * Shapes    the shape of e broadcasts to that of m. The type of e is that of m or promotes to it
 * Errors    the first error that occurred while e was built, else BAD_ARGUMENT, BAD_SHAPE, BAD_TYPE,
 *           SPENT, FOREIGN, FREED, UNKNOWN, ARENA_FULL, NO_MEMORY, UNSUPPORTED, NO_DEVICE, SINGULAR,
 *           NOT_FINITE, NO_CONVERGENCE, FORBIDDEN: m is unchanged; DEVICE_ERROR: the contents of m may be
 *           undefined */
DUET_API DUET_MUST duet_status duet_set(duet_matrix *m, duet_expr e);
DUET_API DUET_MUST duet_status duet_set_at(duet_matrix *m, duet_expr e, const char *site);

/* Does what duet_set does, on the given device. It ignores DUET_ON blocks and DUET_BACKEND. If the
 * device cannot run the statement, the call fails.
 * Errors    as duet_set, and BAD_ARGUMENT if `place` is not a duet_place */
DUET_API DUET_MUST duet_status duet_set_on(duet_place place, duet_matrix *m, duet_expr e);
DUET_API DUET_MUST duet_status duet_set_on_at(duet_place place, duet_matrix *m, duet_expr e,
                                              const char *site);

/* Does what duet_set does, in the given math mode. It ignores DUET_MATH blocks and the environment
 * variable DUET_MATH.
 * Errors    as duet_set, and BAD_ARGUMENT if `math` is not a duet_math_mode */
DUET_API DUET_MUST duet_status duet_set_math(duet_math_mode math, duet_matrix *m, duet_expr e);
DUET_API DUET_MUST duet_status duet_set_math_at(duet_math_mode math, duet_matrix *m, duet_expr e,
                                                const char *site);

/* Update m in place. Consume e, also on failure.
 *     duet_iadd   m = m + e
 *     duet_isub   m = m - e
 *     duet_imul   m = m * e, element by element
 *     duet_idiv   m = m / e
 * Shapes    as duet_set
 * Errors    as duet_set */
DUET_API DUET_MUST duet_status duet_iadd(duet_matrix *m, duet_expr e);
DUET_API DUET_MUST duet_status duet_iadd_at(duet_matrix *m, duet_expr e, const char *site);
DUET_API DUET_MUST duet_status duet_isub(duet_matrix *m, duet_expr e);
DUET_API DUET_MUST duet_status duet_isub_at(duet_matrix *m, duet_expr e, const char *site);
DUET_API DUET_MUST duet_status duet_imul(duet_matrix *m, duet_expr e);
DUET_API DUET_MUST duet_status duet_imul_at(duet_matrix *m, duet_expr e, const char *site);
DUET_API DUET_MUST duet_status duet_idiv(duet_matrix *m, duet_expr e);
DUET_API DUET_MUST duet_status duet_idiv_at(duet_matrix *m, duet_expr e, const char *site);

/* Evaluates several statements. The results are the same as if they ran one after the other: a
 * formula uses the new values of matrices that earlier statements set. Consumes all formulas, also
 * on failure. Statements can share one pass over memory if each of them, to compute its element i,
 * reads only element i of the destinations of the others. Otherwise they take as many passes as
 * necessary, and may need memory for copies of the destinations. In C write
 *     duet_set_all({ m, duet_mean(x) }, { d, duet_sub(x, y) })
 * and convert a matrix or a number to a formula with DUET: { m, DUET(x) }, { m, DUET(0.5) }.
 * Shapes    each statement as for duet_set; 1 to 255 statements; their element types may differ
 * Errors    as duet_set, for the first statement that fails; the error text names it. The arguments
 *           of all statements are checked before the first one runs. If one fails while it runs, all
 *           destinations are unchanged; DEVICE_ERROR: the elements of all may be lost */
typedef struct duet_assignment {
    duet_matrix *to;
    duet_expr value;
} duet_assignment;
DUET_API DUET_MUST duet_status duet_set_all(const duet_assignment *a, int count);
DUET_API DUET_MUST duet_status duet_set_all_at(const duet_assignment *a, int count, const char *site);

/* Makes a persistent formula from e. Statements can use it any number of times, in any thread, but in
 * one thread at a time. Consumes e. Only duet_drop frees the persistent formula. Do not free the
 * matrices of the formula before you drop it.
 * Owner     the caller, until duet_drop
 * Errors    in the result: duet_expr_status returns the status, and so does duet_set */
DUET_API DUET_MUST duet_expr duet_hold(duet_expr e);
DUET_API DUET_MUST duet_expr duet_hold_at(duet_expr e, const char *site);

/* Discards a formula that will not be evaluated, or frees a persistent one.
 * Errors    BAD_ARGUMENT (not a formula), SPENT, FOREIGN */
DUET_API duet_status duet_drop(duet_expr e);
DUET_API duet_status duet_drop_at(duet_expr e, const char *site);

/* Return properties of the result that a formula will have. They do not consume e. If duet_expr_status is
 * not OK, the type is DUET_F32, and the rank and the sizes are 0. A negative axis has size 0.
 *     duet_expr_status   OK, or the first error that occurred while the formula was built
 *     duet_expr_type     the element type
 *     duet_expr_rank     the number of axes
 *     duet_expr_size     the size of an axis */
DUET_API duet_status duet_expr_status(duet_expr e);
DUET_API duet_dtype duet_expr_type(duet_expr e);
DUET_API int duet_expr_rank(duet_expr e);
DUET_API int64_t duet_expr_size(duet_expr e, int axis);

/* Prints e as a C expression in one line, with the matrices as A, B, ... in order of appearance. Does
 * not consume e: evaluate or drop it later.
 * Errors    BAD_ARGUMENT, and those of e */
DUET_API duet_status duet_print_expr(FILE *out, duet_expr e);

/* Print a plan, which is the list of steps that a statement runs. A step is a kernel, a copy, or a call of
 * a vendor library. Printed are the device, the steps, the bytes that are copied between devices, and why
 * another device cannot run the statement. Nothing is computed, and formulas are not consumed: evaluate or
 * drop them later. DUET_EXPLAIN explains statements that consume theirs.
 *     duet_explain       the plan of duet_set(m, e)
 *     duet_explain_all   the plan of duet_set_all(a, count)
 * Errors    as duet_set */
DUET_API duet_status duet_explain(FILE *out, duet_matrix *m, duet_expr e);
DUET_API duet_status duet_explain_all(FILE *out, const duet_assignment *a, int count);

/* Sets how many bytes of memory the unevaluated formulas of this thread may occupy. The default is 64 MiB.
 * Beyond the limit, operators store the error ARENA_FULL in their result.
 * Errors    BAD_ARGUMENT if bytes < 4096, or while the thread has an unevaluated formula;
 *           NO_MEMORY */
DUET_API duet_status duet_arena_limit(size_t bytes);

/* ---- recording and replay -------------------------------------------------------------------- */

/* Record statements of one thread while they run, and later run them again without planning. Consecutive
 * statements on the GPU run as one launch of a CUDA graph where that is possible. Linear algebra, statements
 * that process their operands in parts, and all statements on the CPU run one after the other.
 *     duet_recording *r = NULL;
 *     if (duet_record_begin() == DUET_OK) {
 *         if (duet_set(h, ...) || duet_set(y, ...)) fail();
 *         r = duet_record_end();
 *     }
 *     for (...) {
 *         fill(duet_overwrite(x));
 *         if (!r || duet_replay(r)) fail();
 *         use(duet_read(y));
 *     }
 *     duet_record_begin  starts recording; the statements of this thread run and are recorded. Access
 *                        through pointers (duet_read, duet_update, duet_overwrite) is not recorded
 *     duet_record_end    stops recording and returns the recording
 *     duet_replay        runs the recorded statements again
 *     duet_recording_free   frees a recording and sets the pointer to NULL
 * A replay uses the current elements of the matrices; these may be on any device. It uses the same
 * scalars, devices and random numbers as when it was recorded. The recording owns the temporary
 * buffers of its statements. Any thread may replay it, but only one thread at a time.
 * Owner     the recording: the caller, until duet_recording_free, which sets the pointer to NULL.
 *           The matrices stay the caller's; do not free them before the last replay
 * Errors    duet_record_begin: BAD_ARGUMENT: the thread is already recording; NO_MEMORY.
 *           duet_record_end: NULL: BAD_ARGUMENT: the thread is not recording; NO_MEMORY; or the status of
 *           the first statement that failed. A recording without statements is valid.
 *           duet_replay: BAD_ARGUMENT: r is NULL, or this thread is recording; UNSUPPORTED: in a
 *           DUET_EXPLAIN block; FREED; and as duet_set. If a statement fails, it has changed nothing,
 *           and those before it have run. If a CUDA graph fails with DEVICE_ERROR, the contents of all
 *           destinations of its statements may be undefined */
typedef struct duet_recording duet_recording;
DUET_API DUET_MUST duet_status duet_record_begin(void);
DUET_API DUET_MUST duet_recording *duet_record_end(void);
DUET_API DUET_MUST duet_status duet_replay(duet_recording *r);
DUET_API void duet_recording_free(duet_recording **r);

/* Turns automatic replay off (0) or on (1) for this thread.
 * Automatic replay recognises a sequence of GPU statements that the thread repeats. From then on it
 * checks each statement when it is called, and defers its work until the last statement of the
 * sequence. Then it launches the sequence as one CUDA graph. Results are the same as without automatic
 * replay. Deferred statements are launched earlier if something may need their results. Calls that
 * may need them are those that read on the host, synchronise, or return a pointer to GPU memory, and
 * duet_stream. Statements of other threads may need them too. A later call may therefore return the
 * GPU error of a deferred statement; the error text names that statement. A statement whose scalars
 * change is launched separately. The other statements are still launched as graphs.
 * The recognised sequences occupy temporary buffers until automatic replay is turned off or the thread
 * ends.
 * It is on by default, unless DUET_AUTO_REPLAY=0 is in the environment. duet_stream turns it off,
 * because your own kernels may then use the stream at any time. If you turned it on with this function,
 * duet_stream leaves it on, and launches the deferred statements: call it before each use of the stream.
 * Errors    BAD_ARGUMENT: neither 0 nor 1; DEVICE_ERROR: a deferred statement failed */
DUET_API duet_status duet_auto_replay(int on);

/* ---- new matrices with elements --------------------------------------------------------------- */

#include <duet/create.h> /* duet_eval, duet_item, duet_full, duet_arange, duet_from_array, ... */

/* ---- other statements ------------------------------------------------------------------------ */

#include <duet/optimizers.h> /* duet_sgd, duet_adam, duet_clip_norm, ...; arrange.h undefines DUET_OPERATOR */

#include <duet/arrange.h> /* duet_concat, duet_pad, duet_im2col, duet_convmtx, ... */
#include <duet/files.h>   /* duet_load_npy, duet_save_npy, duet_print, ... */
#include <duet/random.h>  /* duet_random_uniform, duet_noise_normal, duet_shuffle, ... */

/* ---- results whose size depends on values ---------------------------------------------------- */

/* Create a matrix whose size depends on the values of the operands. The call waits until this size is
 * computed. If the GPU computes it, only the size is copied to the host.
 *     duet_masked    x[mask]: the elements of x where the mask is not 0, in row-major order. If the
 *                    mask has fewer axes than x, its axes are the first axes of x, and it selects
 *                    rows, planes, ... of x
 *     duet_nonzero   the indices of the non-zero elements, one row for each element, in row-major
 *                    order, as in NumPy's argwhere
 *     duet_unique    the distinct values of x in ascending order, with at most one NaN, at the end.
 *                    *counts: how often each value occurs in x. *inverse: for each element of `x`,
 *                    its index in the result. counts and inverse may be NULL
 *     duet_unique_axis   the distinct parts of x along an axis, such as its rows (axis 0 of a matrix), in
 *                    ascending order: that of their first elements, if these are equal that of the second
 *                    ones, ... NaN is last, and equal to NaN. *counts: how often each part occurs.
 *                    *inverse: for each index along the axis, the index in the result
 * All consume their formulas, also on failure.
 * Shapes    masked: [n], followed by the axes of x that the mask does not have. nonzero: [n, rank of
 *           x], i64. unique: [n], of x's type; *counts is [n] and *inverse has x's shape, both i64.
 *           unique_axis: the sizes of x, except n along the axis; *counts is [n] and *inverse a vector
 *           with one element for each index along the axis, both i64
 * Owner     the result, *counts and *inverse: the caller, until duet_free
 * Errors    as duet_set; the result, *counts and *inverse are then NULL. BAD_SHAPE: the sizes of the mask
 *           are not those of the first axes of x, or x has no such axis, or the axis of
 *           unique_axis; BAD_TYPE: unique of complex elements; UNSUPPORTED: an axis of unique_axis with too
 *           many elements; while this thread records, or in a DUET_EXPLAIN block, because the size of the
 *           result is not known without computing it */
DUET_API DUET_MUST duet_matrix *duet_masked(duet_expr x, duet_expr mask);
DUET_API DUET_MUST duet_matrix *duet_masked_at(duet_expr x, duet_expr mask, const char *site);
DUET_API DUET_MUST duet_matrix *duet_nonzero(duet_expr x);
DUET_API DUET_MUST duet_matrix *duet_nonzero_at(duet_expr x, const char *site);
DUET_API DUET_MUST duet_matrix *duet_unique(duet_expr x, duet_matrix **counts, duet_matrix **inverse);
DUET_API DUET_MUST duet_matrix *duet_unique_at(duet_expr x, duet_matrix **counts, duet_matrix **inverse,
                                               const char *site);
DUET_API DUET_MUST duet_matrix *duet_unique_axis(duet_expr x, int axis, duet_matrix **counts,
                                                 duet_matrix **inverse);
DUET_API DUET_MUST duet_matrix *duet_unique_axis_at(duet_expr x, int axis, duet_matrix **counts,
                                                    duet_matrix **inverse, const char *site);

/* ---- factorisations -------------------------------------------------------------------------- */

/* Factorise a, or each matrix of a stack: duet_lu(l, u, p, a), duet_qr(q, r, a), duet_svd(u, s, vt, a),
 * duet_eigh(w, v, a), duet_slogdet(sign, logdet, a). duet/factor.def describes these and others in one
 * row, with its results. A result may be a view and may overlap a, but not another result. Functions with
 * one result (duet_solve, duet_inv, duet_det, duet_cholesky, duet_lstsq, ...) are operators.
 * Shapes    a is [..., m, n]; results have its leading axes, then those in the row. They have a's type, but
 *           indices (p) are i64, w and v of duet_eig complex, and s, w and logdet of a complex a f32 or f64
 * Errors    BAD_ARGUMENT: a NULL or freed matrix, or results that overlap; BAD_TYPE, BAD_SHAPE,
 *           UNKNOWN, NO_MEMORY, UNSUPPORTED, NO_DEVICE, NOT_FINITE, NO_CONVERGENCE: the results are
 *           unchanged; DEVICE_ERROR: the contents of the results may be undefined */
#define DUET_FACTOR2(name, first, second, ...)                                                               \
    DUET_API DUET_MUST duet_status duet_##name(duet_matrix *first, duet_matrix *second,                      \
                                               const duet_matrix *a);                                        \
    DUET_API DUET_MUST duet_status duet_##name##_at(duet_matrix *first, duet_matrix *second,                 \
                                                    const duet_matrix *a, const char *site);
#define DUET_FACTOR3(name, first, second, third, ...)                                                        \
    DUET_API DUET_MUST duet_status duet_##name(duet_matrix *first, duet_matrix *second, duet_matrix *third,  \
                                               const duet_matrix *a);                                        \
    DUET_API DUET_MUST duet_status duet_##name##_at(duet_matrix *first, duet_matrix *second,                 \
                                                    duet_matrix *third, const duet_matrix *a,                \
                                                    const char *site);
#include <duet/factor.def>

/* ---- devices, plans, statistics, errors ------------------------------------------------------ */

/* Open and close a block of statements that run on one device. In C write DUET_ON(DUET_GPU) { ... }. The
 * end of the block closes it; so do return, and a goto that leaves it. break and continue also end the
 * block, but only the block: they do not act on a loop around it. The device of a statement is the first of
 * these that is given: the argument of duet_set_on, the innermost block, the environment
 * variable DUET_BACKEND=cpu|gpu|auto. Otherwise it is DUET_AUTO.
 *     DUET_ON            runs the statements of a block on `place`: DUET_ON(DUET_GPU) { ... }
 *     duet_scope_open    opens a block whose statements run on `place`
 *     duet_scope_close   closes the block
 * Errors    in duet_error(): BAD_ARGUMENT: `place` is not a duet_place; the block then has no effect
 *           on its statements */
typedef struct duet_scope {
    int on, before;
} duet_scope;
DUET_API duet_scope duet_scope_open(duet_place place);
DUET_API void duet_scope_close(duet_scope *s);

/* Open and close a block of statements that are computed in one math mode. In C write
 * DUET_MATH(DUET_MATH_SPLIT) { ... }. In C++ declare an object,
 * duet_math_block split(DUET_MATH_SPLIT); the mode lasts as long as the object. The mode of a
 * statement is the first of these that is given: the argument of duet_set_math, the innermost block,
 * the environment variable DUET_MATH=strict|split|tf32|bf16. Otherwise it is strict. A replay uses
 * for each statement the mode at the time of its recording.
 *     DUET_MATH         runs a block in the math mode `math`: DUET_MATH(DUET_MATH_TF32) { ... }
 *     duet_math_open    opens a block whose statements use the math mode `math`
 *     duet_math_close   closes the block
 * Errors    in duet_error(): BAD_ARGUMENT: not a duet_math_mode; the block then has no effect on its
 *           statements */
DUET_API duet_scope duet_math_open(duet_math_mode math);
DUET_API void duet_math_close(duet_scope *s);

/* Open and close a block in which statements may not copy matrices from one device to another. In C write
 * DUET_FORBID_TRANSFERS { ... }. A statement copies an operand if the device that runs it has no valid
 * buffer of it, and a destination that is part of a matrix if it has no valid buffer of the rest. The error
 * text has the position of the statement, type and shape of the matrix, the devices and the bytes. Calls
 * that ask for elements on one device may copy them: duet_read, duet_item, duet_save_npy,
 * duet_device_read and others. Without a block, the environment variable
 * DUET_TRANSFERS=allow|warn|error decides. Where transfers are reported, each prints a line to stderr.
 *     DUET_TRANSFERS          decides for a block: DUET_TRANSFERS(DUET_TRANSFERS_ALLOWED) { ... }
 *     DUET_FORBID_TRANSFERS   the same with DUET_TRANSFERS_FORBIDDEN
 *     duet_transfers_open     opens a block whose statements may copy matrices as `mode` says
 *     duet_transfers_close    closes the block
 * Errors    in duet_error(): BAD_ARGUMENT: not a duet_transfers; the block then has no effect on its
 *           statements. A statement that would copy a matrix fails with FORBIDDEN, and its destinations are
 *           unchanged */
typedef enum duet_transfers {
    DUET_TRANSFERS_ALLOWED,
    DUET_TRANSFERS_REPORTED,
    DUET_TRANSFERS_FORBIDDEN
} duet_transfers;
DUET_API duet_scope duet_transfers_open(duet_transfers mode);
DUET_API void duet_transfers_close(duet_scope *s);

/* Open and close a block whose statements print their plans instead of running. In C write
 * DUET_EXPLAIN(stdout) { ... }. The output is that of duet_explain. A block also explains statements that
 * duet_explain cannot (duet_iadd, duet_convmtx, duet_shuffle, ...). Statements consume their formulas, but
 * they write no matrix, and nothing is recorded: duet_eval returns a matrix of zeros, and duet_item stores
 * 0. duet_masked, duet_nonzero, duet_unique, duet_unique_axis and duet_replay fail with UNSUPPORTED.
 *     DUET_EXPLAIN         prints the plans of a block to `out`: DUET_EXPLAIN(stdout) { ... }
 *     duet_explain_open    opens a block whose statements print their plans to `out`
 *     duet_explain_close   closes the block
 * Owner     the file: the caller; it must stay open until the end of the block
 * Errors    in duet_error(): BAD_ARGUMENT: `out` is NULL; the block is then skipped */
typedef struct duet_explaining {
    int on;
    FILE *before;
} duet_explaining;
DUET_API duet_explaining duet_explain_open(FILE *out);
DUET_API void duet_explain_close(duet_explaining *e);

/* Open and close a block whose time is measured. In C write
 *     double seconds;
 *     DUET_TIMED(&seconds) { ... }
 * The time starts when earlier work of this thread is done, and ends when the work of the block is done,
 * also on the GPU. *seconds is stored at the end of the block, also if return, break, continue or goto
 * ends it.
 *     DUET_TIMED          stores the time of a block in *seconds: DUET_TIMED(&seconds) { ... }
 *     duet_timing_open    opens a block and starts its time
 *     duet_timing_close   closes the block and stores its time in *seconds
 * Errors    in duet_error(): BAD_ARGUMENT: `seconds` is NULL; DEVICE_ERROR: earlier work failed. The block
 *           is then skipped, and *seconds has no meaning. If work of the block fails on the GPU, that too is
 *           only in duet_error(): for a status, end the block with duet_synchronize() */
typedef struct duet_timing {
    int on;
    double *seconds, start;
} duet_timing;
DUET_API duet_timing duet_timing_open(double *seconds);
DUET_API void duet_timing_close(duet_timing *t);

/* Sets how many threads the statements of this thread may use on the CPU; 0 means as many as OpenMP has
 * (omp_set_num_threads, OMP_NUM_THREADS). OpenMP's own settings do not change. Results do not depend on
 * the number of threads, except those of vendor libraries (docs/semantics.md).
 * Errors    BAD_ARGUMENT: negative */
DUET_API duet_status duet_set_threads(int threads);

/* Open and close a block whose statements use at most `threads` threads on the CPU. In C write
 * DUET_THREADS(1) { ... }. The end of the block restores the number that was set before, by a block around it
 * or by duet_set_threads. Only statements of the calling thread are affected. A replay uses the number at the
 * time of the replay. Results have the same bits for every number, except those of vendor libraries. What a
 * block cannot do: it does not start more threads than OpenMP has; it does not change the threads of a BLAS
 * that has threads of its own (for OpenBLAS with pthreads set OPENBLAS_NUM_THREADS).
 *     DUET_THREADS         limits the threads of a block: DUET_THREADS(1) { ... }
 *     duet_threads_open    opens a block whose statements use at most `threads` threads; 0: all
 *     duet_threads_close   closes the block
 * Errors    in duet_error(): BAD_ARGUMENT: negative; the block then has no effect on its statements */
DUET_API duet_scope duet_threads_open(int threads);
DUET_API void duet_threads_close(duet_scope *s);

/* Returns the version of the library that runs, as "0.1.0". DUET_VERSION is that of the header. */
DUET_API const char *duet_version(void);

/* Counters since the process started, summed over all threads; duet_stats returns them. */
typedef struct duet_counts {
    uint64_t uploads, downloads, upload_bytes, download_bytes; /* copies between host and GPU memory */
    uint64_t synchronisations;                                 /* waits of host threads for the GPU */
    uint64_t launches;               /* on the GPU: kernels of Duet, and calls of vendor libraries */
    uint64_t steps;                  /* steps of plans that ran, on any device */
    uint64_t temporaries;            /* buffers allocated for intermediate results */
    uint64_t pool_hits, pool_misses; /* allocations from a memory pool; from the system */
    uint64_t plan_hits, plan_misses; /* statements with a plan from the cache; with a new plan */
    uint64_t replays, graphs;        /* calls of duet_replay; launches of CUDA graphs */
    uint64_t repeats;                /* statements that automatic replay ran as part of a graph */
    uint64_t streams;                /* statements that processed their operands on the GPU in parts */
    uint64_t transforms;             /* plans created for Fourier transforms */
    uint64_t copies, copy_bytes;     /* copies between two GPUs that do not go through the host */
    uint64_t evictions;              /* buffers of matrices that were freed on a GPU to make room */
    uint64_t evicted_bytes;  /* their bytes. If the elements were valid nowhere else, `downloads` counts the
                               copy too */
    uint64_t generated;      /* programs for which machine code was made (docs/environment.md, DUET_JIT) */
    uint64_t exchanges;      /* collective steps of groups that ran, on all ranks of this process */
    uint64_t exchange_bytes; /* bytes that these steps sent to other ranks */
} duet_counts;
DUET_API duet_counts duet_stats(void);

/* The memory of one device, in bytes.
 *     used     occupied by matrices, temporary buffers and workspaces
 *     cached   free memory that the memory pool of the device keeps for later allocations. Before the pool
 *              allocates, it frees blocks that have not been used for long, until it keeps at most 32 MiB
 *              (GPU: 256 MiB) or twice the largest `used` of its last allocations. It keeps more if such
 *              blocks are needed again
 *     peak     the largest value of used + cached so far
 *     limit    the limit of used + cached; 0: no limit. An allocation beyond it first frees cached memory,
 *              and then fails with NO_MEMORY. On a GPU it also frees buffers of other matrices, and copies
 *              their elements to the host if these are valid nowhere else. If that is not enough, the
 *              statement runs in parts, or on the CPU if Duet chooses the device
 *     pinned   page-locked host memory. The library pins a large matrix when it is copied between host
 *              and GPU for the second time. It pins at most a quarter of the system's memory
 *     duet_memory_of      returns these figures
 *     duet_memory_limit   sets the limit of used + cached
 *     duet_memory_trim    returns the cached memory of all devices to the system
 * Errors    BAD_ARGUMENT: `place` is neither DUET_CPU nor DUET_GPU; duet_memory_of then returns zeros */
typedef struct duet_memory {
    size_t used, cached, peak, limit, pinned;
} duet_memory;
DUET_API duet_memory duet_memory_of(duet_place place);
DUET_API duet_status duet_memory_limit(duet_place place, size_t bytes);
DUET_API void duet_memory_trim(void);

/* Restarts every lost GPU and tests it with a kernel. Does nothing and returns OK if no GPU was lost.
 * A GPU is lost after an error that ends its CUDA context. Such errors are: a kernel, also one of the caller,
 * accesses an invalid address or traps; its memory has an uncorrectable error; the driver resets it. The
 * call that finds the error fails with DEVICE_ERROR, and its text says that the GPU was lost. From then on:
 *     statements      run on the CPU where the library chooses the device. On the GPU they fail with
 *                     NO_DEVICE
 *     matrices        that are valid on the host, or on another GPU, can be used. Reading one that was only
 *                     valid on the lost GPU fails with UNKNOWN until its elements are written again
 *     duet_recover    drops all that the library keeps on the GPU, and resets it (cudaDeviceReset). Then
 *                     recordings and automatic replay work as before
 * The reset also ends what the caller and other libraries of this process keep on this GPU: memory, streams,
 * events and handles. Call duet_stream() again, and get new pointers with duet_device_read() and similar
 * functions. Other threads may call the library during the recovery: calls that need a GPU wait for its end.
 * Errors    DEVICE_ERROR: CUDA refuses to restart the GPU in this process, or another thread has not left a
 *           call that uses a GPU after 10 seconds. The GPU is still lost; the CPU can be used. You may try
 *           again, or start a new process. After an error of a kernel, CUDA 13 needs a new process */
DUET_API DUET_MUST duet_status duet_recover(void);

/* Prints what the memory of each device that has been used is used for, in bytes:
 *     used, cached, limit   the figures of duet_memory_of
 *     parts of `used`       matrices, temporary buffers, workspaces of vendor libraries, and operands packed
 *                           for DUET_MATH_SPLIT
 *     plans                 on the CPU, those of statements and of Fourier transforms; the limit does not
 *                           count them
 *     overhead              on a GPU, all other memory in use: the CUDA context, kernels, vendor libraries,
 *                           and other processes
 * Then there is a line for each of the ten matrices that occupy most: the source line that created it, its
 * type and shape, and its bytes on each device. The text of NO_MEMORY names the largest of them too. `out`
 * may be NULL: nothing is printed then */
DUET_API void duet_memory_report(FILE *out);

/* Prints the devices and the vendor libraries that were found, with versions and paths. Also prints
 * which ones were not found, and why. */
DUET_API void duet_info(FILE *out);

/* Return texts and the status of this thread's last error. A call that succeeds does not clear them: test
 * what the call returns.
 *     duet_error          the text of the error: the function, the shapes, the violated rule and the
 *                         source line; "" if no call of this thread has failed yet
 *     duet_error_status   the status of the error, also if the function that failed returned NULL
 *     duet_status_text    the meaning of a status
 * Owner     the library; do not free the text. The next failure in this thread overwrites that of
 *           duet_error, which has at most 1023 characters */
DUET_API const char *duet_error(void);
DUET_API duet_status duet_error_status(void);
DUET_API const char *duet_status_text(duet_status s);

/* Puts `site`, a text such as "file.c:12", in front of this thread's error text, unless the text
 * already names a source line. The macros of call_site.h use it. */
DUET_API void duet_error_at(const char *site);

#ifdef __cplusplus
}
#endif

/* The build makes these two headers from the others. They declare nothing new: they are for editors and
 * for readers, and the library itself is compiled without them. */
#ifdef __has_include
#if __has_include(<duet/reference.h>)
#include <duet/reference.h> /* all functions, with prototypes and comments */
#endif
#endif
#ifdef __cplusplus
#include <duet/cpp.h>
#else
#include <duet/lift.h>
#endif
#include <duet/call_site.h>
#ifdef __has_include
#if __has_include(<duet/hover.h>)
#include <duet/hover.h> /* the macros, with comments that editors show */
#endif
#endif
#endif
