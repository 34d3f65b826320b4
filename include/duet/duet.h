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
 * Indices count from 0, sizes and strides count elements, new matrices are row-major.
 *
 * Operators, their options, random numbers, shapes by copies and files have headers of their own, which this one includes. */
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

/* How the GPU may compute products and convolutions of f32, and of f16 and bf16, which are computed as f32. A mode permits, it
 * does not demand: the CPU computes strictly in every mode, and so does the GPU what it has no such kernel for; f64, and all that
 * is no product, is what it is in every mode. docs/semantics.md has the error bounds, and what becomes of infinities;
 * duet_explain says how each step is computed.
 *     STRICT   f32 is f32
 *     SPLIT    each operand as a sum of two numbers of half precision, scaled, or of TF32: errors near those of STRICT, on tensor
 *              cores
 *     TF32     operands rounded to 11 bits
 *     BF16     operands rounded to 8 bits; or to 11 */
typedef enum duet_math_mode {
    DUET_MATH_STRICT,
    DUET_MATH_SPLIT,
    DUET_MATH_TF32,
    DUET_MATH_BF16
} duet_math_mode;

typedef struct duet_matrix duet_matrix;

/* A formula. Read only; all zero bits are no formula. */
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

/* The same over memory whose elements lie otherwise: strides count elements and may be negative; first is where element 0, 0, ...
 * lies. What lies between the elements goes wherever they go. duet_wrap_columns: column-major without gaps, as BLAS, LAPACK, and
 * Fortran have it.
 * Shapes    as duet_new_shape, as many strides; duet_wrap_columns(p, DUET_F32, 2, 3) is the same with the sizes as arguments. A
 *           stride of 0 repeats: such a matrix is to be read, not to be written
 * Owner     as duet_wrap_shape
 * Errors    NULL: as duet_wrap_shape, and BAD_ARGUMENT when a stride, but for 0, is within what axes of smaller ones reach */
DUET_API duet_matrix *duet_wrap_strided(void *first, duet_dtype type, int rank, const int64_t *size,
                                        const int64_t *stride);
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
typedef enum duet_index_kind {
    DUET_INDEX_RANGE,
    DUET_INDEX_AT,
    DUET_INDEX_NEW,
    DUET_INDEX_REST
} duet_index_kind;
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
 *     duet_reshaped      the same elements in another shape; one size may be -1, which makes it what is left. No copy is made:
 *                        where the elements do not lie so that there is such a view, the text says what to copy
 *     duet_broadcast_to  as a larger shape to which m broadcasts. It is to be read: whoever writes it is refused, as BAD_ARGUMENT
 *     duet_split         so many parts along an axis, of equal size, or, of the first ones, one more
 * Any number of threads may read a matrix and its views at once; while one writes any of them, no other may use any.
 * Owner     the caller, until duet_free
 * Errors    NULL: BAD_ARGUMENT (an element that is not there, a step of 0), BAD_SHAPE (rank, axis, sizes), NO_MEMORY; duet_split
 *           returns it, and nothing is left of what it made */
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

/* Operands. The operators below take matrices, formulas and C numbers alike and call these themselves. A number takes the type of
 * the matrix that it meets: a whole one any, if it is in its range, a fraction floating point; a complex one makes that complex.
 * Types that differ promote by the table of docs/semantics.md; what that does not allow, duet_cast does.
 * Shapes    of a matrix: its own; of a number: none, as of a matrix of rank 0
 * Owner     of the matrix: the caller, as before; it must live until the formula is spent
 * Errors    in the result: BAD_ARGUMENT (NULL), FREED, ARENA_FULL, NO_MEMORY */
DUET_API duet_expr duet_of_matrix(const duet_matrix *m);
DUET_API duet_expr duet_of_number(double x);
DUET_API duet_expr duet_of_integer(int64_t x);
DUET_API duet_expr duet_of_unsigned(uint64_t x);
DUET_API duet_expr duet_of_expr(duet_expr e);

#include <duet/operators.h>

/* Computes e into m, which may appear in e. Spends e, also when it fails.
 * Shapes    the shape of e broadcasts to that of m; its type is that of m, or promotes to it
 * Errors    the first error met while e was built, else BAD_ARGUMENT, BAD_SHAPE, BAD_TYPE, SPENT, FOREIGN, FREED, UNKNOWN,
 *           ARENA_FULL, NO_MEMORY, UNSUPPORTED, NO_DEVICE, SINGULAR, NOT_FINITE, NO_CONVERGENCE: m is unchanged; DEVICE_ERROR: m
 *           may be unknown */
DUET_API DUET_MUST duet_status duet_set(duet_matrix *m, duet_expr e);
DUET_API DUET_MUST duet_status duet_set_at(duet_matrix *m, duet_expr e, const char *site);

/* The same on one machine, whatever block or environment say; there it either runs or fails.
 * Errors    as duet_set, and BAD_ARGUMENT when there is no such place */
DUET_API DUET_MUST duet_status duet_set_on(duet_place place, duet_matrix *m, duet_expr e);
DUET_API DUET_MUST duet_status duet_set_on_at(duet_place place, duet_matrix *m, duet_expr e,
                                              const char *site);

/* The same in one math mode, whatever block or environment say.
 * Errors    as duet_set, and BAD_ARGUMENT when there is no such mode */
DUET_API DUET_MUST duet_status duet_set_math(duet_math_mode math, duet_matrix *m, duet_expr e);
DUET_API DUET_MUST duet_status duet_set_math_at(duet_math_mode math, duet_matrix *m, duet_expr e,
                                                const char *site);

/* In place: m = m + e, and so on. Shapes and errors as duet_set. */
DUET_API DUET_MUST duet_status duet_iadd(duet_matrix *m, duet_expr e);
DUET_API DUET_MUST duet_status duet_iadd_at(duet_matrix *m, duet_expr e, const char *site);
DUET_API DUET_MUST duet_status duet_isub(duet_matrix *m, duet_expr e);
DUET_API DUET_MUST duet_status duet_isub_at(duet_matrix *m, duet_expr e, const char *site);
DUET_API DUET_MUST duet_status duet_imul(duet_matrix *m, duet_expr e);
DUET_API DUET_MUST duet_status duet_imul_at(duet_matrix *m, duet_expr e, const char *site);
DUET_API DUET_MUST duet_status duet_idiv(duet_matrix *m, duet_expr e);
DUET_API DUET_MUST duet_status duet_idiv_at(duet_matrix *m, duet_expr e, const char *site);

/* Several statements, as if they stood one after the other: a later formula sees what earlier ones have set. In one pass where
 * every dependence is element by element, else in as many as it takes. All formulas are spent, also when it fails. In C
 *     duet_set_all({ m, duet_mean(x) }, { d, duet_sub(x, y) })
 * is the same; a value that is no formula is lifted by DUET: { m, DUET(x) }, { m, DUET(0.5) }.
 * Shapes    those of each statement as for duet_set; 1 to 64 statements; their element types may differ
 * Errors    as duet_set, for the first statement that has one; it is named in the text. Bad input of any is found before the
 *           first one runs. After an error each destination is as it was, or, if the machine failed half-way, refused until
 *           written again */
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

/* Statements of one thread, run once and noted, to run again without being read or planned: on the GPU as one launch of a CUDA
 * graph, on the CPU one after the other.
 *     duet_recording *r = NULL;
 *     if (duet_record_begin() == DUET_OK) { duet_set(h, ...); duet_set(y, ...); r = duet_record_end(); }
 *     for (...) { fill(duet_overwrite(x)); duet_replay(r); use(duet_read(y)); }
 * duet_replay is as if its statements stood there, with the numbers that they had, on the machines where they ran; matrices are
 * taken as they are then, wherever their elements are. Random numbers are the same ones each time. A recording keeps the
 * temporaries of its statements. One thread at a time may replay it, any thread.
 *     duet_record_begin  from here on this thread's statements are noted as they run; reading and writing matrices by pointer is
 *                        not
 *     duet_record_end    ends that
 *     duet_replay        once more
 * Owner     the caller, until duet_recording_free, which sets NULL; matrices stay the caller's, and must live while it is
 *           replayed
 * Errors    begin: BAD_ARGUMENT: the thread records already; NO_MEMORY. end: NULL: nothing is recorded, a statement failed, or
 *           NO_MEMORY. replay: BAD_ARGUMENT: r is NULL, or this thread records; UNSUPPORTED: it explains; FREED; as duet_set, the
 *           statements before the one that failed being done, or, of a graph, none, all destinations being unknown after DEVICE_ERROR */
typedef struct duet_recording duet_recording;
DUET_API DUET_MUST duet_status duet_record_begin(void);
DUET_API DUET_MUST duet_recording *duet_record_end(void);
DUET_API DUET_MUST duet_status duet_replay(duet_recording *r);
DUET_API void duet_recording_free(duet_recording **r);

/* Automatic replay: a sequence of statements on the GPU that a thread repeats is recognised, and runs as one launch of a CUDA
 * graph from then on. Its statements are checked as ever and then wait for the last of them. What has waited is launched before
 * anyone can see a difference: before the host reads or synchronises, before duet_stream or a pointer to GPU memory, before
 * another thread uses what is computed. An error of the GPU may be met there instead; its text names the statement. Results are
 * those of statements one by one. Numbers that are others each time are no hindrance to the statements beside. What is learnt
 * keeps some temporaries, until it is turned off or the thread ends.
 * duet_auto_replay turns it off (0) or on (1) for this thread. It is on at first, unless DUET_AUTO_REPLAY=0; duet_stream turns it
 * off, since work may then come to the stream at any time. Who turns it on again calls duet_stream before each use.
 * Errors    BAD_ARGUMENT: neither 0 nor 1; DEVICE_ERROR: of what has waited */
DUET_API duet_status duet_auto_replay(int on);

/* ---- more statements, by their headers ------------------------------------------------------------------------ */

#include <duet/arrange.h> /* duet_concatenate, duet_pad, duet_im2col, ... */
#include <duet/files.h>   /* duet_load_npy, duet_save_npy, duet_print, ... */
#include <duet/random.h>  /* duet_random_uniform, duet_noise_normal, duet_shuffle, ... */

/* ---- as many as there are ------------------------------------------------------------------------------------- */

/* New matrices whose size depends on what is computed, which makes these calls wait for it: of what the GPU computes, the host
 * reads how many there are and no more.
 *     duet_masked    x[mask]: what of x lies where the mask is not 0, in row-major order. A mask of fewer axes, x's first ones,
 *                    chooses rows, planes, ... of x
 *     duet_nonzero   the indices of what is not 0, in row-major order, each as a row: NumPy's argwhere
 *     duet_unique    the values of x in ascending order, each once, NaN last (and once); *counts: how often each stands in x,
 *                    *inverse: which of them each element of x is. Either may be NULL, if it is not asked for
 * Shapes    masked: [n] and the axes of x that the mask has not; nonzero: [n, rank of x], i64; unique: [n], of x's type, *counts
 *           [n] and *inverse as x, i64
 * Owner     all of them: the caller, until duet_free. Formulas are spent, also when it fails
 * Errors    NULL, also for *counts and *inverse: as duet_set; BAD_SHAPE: the mask's sizes are not those of x's first axes;
 *           UNSUPPORTED: while this thread records, or explains: how large a result is cannot be said before */
DUET_API duet_matrix *duet_masked(duet_expr x, duet_expr mask);
DUET_API duet_matrix *duet_masked_at(duet_expr x, duet_expr mask, const char *site);
DUET_API duet_matrix *duet_nonzero(duet_expr x);
DUET_API duet_matrix *duet_nonzero_at(duet_expr x, const char *site);
DUET_API duet_matrix *duet_unique(duet_expr x, duet_matrix **counts, duet_matrix **inverse);
DUET_API duet_matrix *duet_unique_at(duet_expr x, duet_matrix **counts, duet_matrix **inverse,
                                     const char *site);

/* ---- factorisations ------------------------------------------------------------------------------------------ */

/* Statements with several results: factor.def has a row for each, duet_lu(l, u, p, a), duet_qr(q, r, a), duet_svd(u, s, vt, a),
 * duet_eigh(w, v, a), duet_slogdet(sign, logdet, a). A result may be a view, and may overlap a, but no other result. What has one
 * result is an operator above: duet_solve, duet_inv, duet_det, duet_cholesky, duet_lstsq, ...
 * Shapes    a m x n; results exactly as the row says, of a's type but for indices (i64) and, where a is complex, what is real in
 *           any case (s, w, logdet), which is f32 or f64
 * Errors    BAD_ARGUMENT: no matrix, or results that overlap; BAD_TYPE, BAD_SHAPE, UNKNOWN, NO_MEMORY, UNSUPPORTED, NO_DEVICE,
 *           NOT_FINITE, NO_CONVERGENCE: results are unchanged; DEVICE_ERROR: they may be unknown */
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

/* ---- where, and at what cost --------------------------------------------------------------------------------- */

/* In C, DUET_ON(DUET_GPU) { ... } runs the statements of a block on one machine. Leaving it in any way restores. Precedence:
 * call, innermost block, environment (DUET_BACKEND=cpu|gpu|auto), auto.
 * Errors    in duet_error(): BAD_ARGUMENT: no such place; the block runs as if it were not there */
typedef struct duet_scope {
    int on, before;
} duet_scope;
DUET_API duet_scope duet_scope_open(duet_place place);
DUET_API void duet_scope_close(duet_scope *s);

/* In the same way, in C, DUET_MATH(DUET_MATH_SPLIT) { ... } runs the statements of a block in a math mode. Precedence: call
 * (duet_set_math), innermost block, environment (DUET_MATH=strict|split|tf32|bf16), strict. What is recorded keeps the mode that
 * it was recorded in. In C++ the same lasts as long as an object: duet_math_block split(DUET_MATH_SPLIT).
 * Errors    as there: no such mode */
DUET_API duet_scope duet_math_open(duet_math_mode math);
DUET_API void duet_math_close(duet_scope *s);

/* In C, DUET_EXPLAIN(stdout) { ... } writes the plans of the statements of a block, in place of running them: what duet_explain
 * does, also of those that it cannot name (duet_iadd, duet_concatenate, duet_pad, ...). Formulas are spent; no matrix is written,
 * and nothing is recorded.
 * Owner     the file: the caller, until after the block
 * Errors    in duet_error(): BAD_ARGUMENT: no file; the block is passed by */
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
    uint64_t launches;               /* kernels of ours and vendor calls, on the GPU */
    uint64_t steps;                  /* steps run, on any machine */
    uint64_t temporaries;            /* blocks lent to hold a part of a formula */
    uint64_t pool_hits, pool_misses; /* blocks found in a pool; taken from the system */
    uint64_t plan_hits, plan_misses; /* statements whose plan was there; was made */
    uint64_t replays, graphs;        /* recordings replayed; launches of CUDA graphs */
    uint64_t repeats;                /* statements that automatic replay ran as parts of graphs */
    uint64_t streams;                /* statements that went through the GPU part by part */
    uint64_t transforms;             /* plans of Fourier transforms that were made */
} duet_counts;
DUET_API duet_counts duet_stats(void);

/* The memory of one machine, in bytes: what matrices, temporaries and workspaces use, what the pool keeps beside that, the most
 * that both ever were, the limit (0: none), and how much of the CPU's is pinned: large matrices that travel a second time are, up
 * to a quarter of what the system has. duet_memory_limit sets the limit; AUTO is no machine.
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
#include <duet/cpp.h>
#else
#include <duet/lift.h>
#endif
#endif
