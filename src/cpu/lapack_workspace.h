/* lapack_workspace.h - column-major copies of matrices for LAPACK, and the workspace of a step.
 * Template.
 *
 * Elements have type T; with PAIRS they are complex with parts of type T. Everything taken from the
 * workspace is released when the step ends. */
#ifndef LAPACK_WORKSPACE_H
#define LAPACK_WORKSPACE_H

#include "blas_headers.h" /* before the macros of template_prelude.h; the header of MKL has LAPACKE too */
#ifndef BLAS_MKL
#include <lapacke.h>
#endif

#include "blas.h"
#include "cpu.h"
#include "cpu_kernels.h"
#include "linalg_status.h"
#include "min_max.h"
#include "threads.h"
#include <limits.h>

/* Names of LAPACK functions that differ between real and complex elements. */
#define LAPACK_NAME_(letter, name) LAPACKE_##letter##name##_work
#define LAPACK_NAME(letter, name)  LAPACK_NAME_(letter, name)
#if defined T_f32 && defined PAIRS
#define LETTER c
#elif defined PAIRS
#define LETTER z
#elif defined T_f32
#define LETTER s
#else
#define LETTER d
#endif
#define LAPACK(name) LAPACK_NAME(LETTER, name)
#define NAMED_(x)    #x
#define NAMED(x)     NAMED_(x)
#ifdef PAIRS
typedef T _Complex element;
enum { PARTS = 2, CONJUGATE_TRANSPOSE = 'C' };
#define MAKE_Q    ungqr
#define TIMES_Q   unmqr
#define ONE       (&(const element){ 1 })
#define ZERO      (&(const element){ 0 })
#define MINUS_ONE (&(const element){ -1 })
#define REAL_WORK rwork,
#else
typedef T element;
enum { PARTS = 1, CONJUGATE_TRANSPOSE = 'T' };
#define MAKE_Q    orgqr
#define TIMES_Q   ormqr
#define ONE       1
#define ZERO      0
#define MINUS_ONE -1
#define REAL_WORK
#endif
#ifdef T_f32
#define EXPONENT 0x7f800000u
#define LARGE    0x77800000u /* bits of 2^112 */
#define SMALL    0x0f800000u /* bits of 2^-96 */
#define EPSILON  FLT_EPSILON
enum { LARGE_EXPONENT = 112, SMALL_EXPONENT = -96 };
#else
#define EXPONENT 0x7ff0000000000000u
#define LARGE    0x7ef0000000000000u /* bits of 2^1008 */
#define SMALL    0x03f0000000000000u /* bits of 2^-960 */
#define EPSILON  DBL_EPSILON
enum { LARGE_EXPONENT = 1008, SMALL_EXPONENT = -960 };
#endif
#define COL          LAPACK_COL_MAJOR
#define LINEAR(name) PASTE(name, TYPE) /* function of this element type, such as run_linear_c64 */

static inline T real_part(element x) { return *(const T *)&x; }

/* Memory that the steps of the matrices of a stack use one after the other. A workspace with an arena takes
 * memory from nowhere else: it may belong to a thread that must not use the pool. */
typedef struct arena {
    char *p; /* NULL: none */
    size_t bytes, used;
} arena;

/* A running step, and the memory blocks that it has taken. */
#define WORKSPACE_BLOCKS 32
typedef struct workspace {
    const step *s;
    const frame *f;
    void *block[WORKSPACE_BLOCKS];
    int blocks;
    arena arena;
} workspace;

/* NO_MEMORY without an error text: the arena is too small. */
static inline duet_status arena_take(arena *a, size_t bytes, void **p)
{
    const size_t line = 64, room = (bytes + line - 1) / line * line;
    if (room > a->bytes - a->used) return DUET_NO_MEMORY;
    *p = a->p + a->used;
    a->used += room;
    return DUET_OK;
}

/* Takes memory for n objects of `bytes` bytes. */
static inline duet_status workspace_take(workspace *d, int64_t n, size_t bytes, void *p)
{
    void **to = p;
    const size_t size = (size_t)larger(n, 1) * bytes;
    if (d->arena.p) return arena_take(&d->arena, size, to);
    TRY(scratch_take(size, d->f, to));
    d->block[d->blocks++] = *to;
    return DUET_OK;
}

/* Gives back what was taken last. An arena keeps it until the workspace is cleared. */
static inline void workspace_give_last(workspace *d)
{
    if (d->blocks > 0) scratch_give(d->block[--d->blocks]);
}

static inline void workspace_clear(workspace *d)
{
    while (d->blocks > 0) workspace_give_last(d);
    d->arena.used = 0;
}

/* Takes the work array of the size that LAPACK returned in *work. LAPACK may have rounded it to its
 * type. */
static inline duet_status workspace_query(workspace *d, element **work, lapack_int *length)
{
    *length = (lapack_int)(real_part(**work) * (1 + K(4e-7))) + 1;
    return workspace_take(d, *length, sizeof(element), work);
}
/* info = call, where the call uses `work` and `length`. Calls it first to query the length. */
#define WITH_WORK(d, info, ...)                                                                              \
    do {                                                                                                     \
        element query_ = 0, *work = &query_;                                                                 \
        lapack_int length = -1;                                                                              \
        (void)(__VA_ARGS__);                                                                                 \
        TRY(workspace_query(d, &work, &length));                                                             \
        (info) = (int)(__VA_ARGS__);                                                                         \
    } while (0)

/* ---- column-major matrices ---- */

typedef struct col_matrix {
    element *p;
    int rows, cols, ld;
} col_matrix;

static inline layout col_matrix_layout(const col_matrix *c, duet_dtype type)
{
    return (layout){ .type = type, .rank = 2, .size = { c->rows, c->cols }, .stride = { 1, c->ld } };
}

/* One column more for complex elements: OpenBLAS's complex products read one element past a row. */
static inline duet_status col_matrix_take(workspace *d, int64_t rows, int64_t cols, col_matrix *c)
{
    *c = (col_matrix){ .rows = (int)rows, .cols = (int)cols, .ld = rows > 1 ? (int)rows : 1 };
    return workspace_take(d, (int64_t)c->ld * (cols + (PARTS > 1)), sizeof(element), &c->p);
}

/* Copies `from` to the first rows of c. */
static inline duet_status col_matrix_fill(const col_matrix *c, const layout *at, const element *from)
{
    col_matrix part = *c;
    part.rows = (int)at->size[0];
    const layout to = col_matrix_layout(&part, at->type);
    if (!layout_count(&to)) return DUET_OK;
    return copy_elements(c->p, &to, from, at);
}

/* Reads operand k, or its transpose. */
static inline duet_status col_matrix_read(workspace *d, int k, bool transposed, col_matrix *c)
{
    layout at = layout_as_matrix(&d->s->in[k].at);
    if (transposed) at = layout_transposed(at);
    TRY(col_matrix_take(d, at.size[0], at.size[1], c));
    return col_matrix_fill(c, &at, address(d->f, &d->s->in[k]));
}

/* Writes the first rows of c, or their transpose, to output k. */
static inline duet_status col_matrix_write(const workspace *d, const col_matrix *c, bool transposed, int k)
{
    layout at = layout_as_matrix(&d->s->out[k].at);
    col_matrix part = *c;
    if (transposed) at = layout_transposed(at);
    part.rows = (int)at.size[0];
    const layout from = col_matrix_layout(&part, at.type);
    if (!layout_count(&at)) return DUET_OK;
    return copy_elements(address(d->f, &d->s->out[k]), &at, c->p, &from);
}

/* Take memory for n real numbers, and write them to output k. */
static inline duet_status values_take(workspace *d, int64_t n, T **w)
{
    return workspace_take(d, n, sizeof(T), w);
}

static inline duet_status values_write(const workspace *d, const T *w, int64_t n, int k)
{
    const layout from = { .type = OWN_TYPE, .rank = 1, .size = { n }, .stride = { 1 } };
    if (!n) return DUET_OK;
    return copy_elements(address(d->f, &d->s->out[k]), &d->s->out[k].at, w, &from);
}

/* ---- checks of elements ---- */

/* Has one of n numbers at least the magnitude with these bits, or is one NaN? `bits` is EXPONENT
 * for infinity. The top bit of a sum is tested, since 64-bit vectors have no such comparison. */
static inline bool any_magnitude_of(const T *p, int64_t n, BITS bits)
{
    const BITS top = (BITS)1 << (8 * sizeof(BITS) - 1);
    BITS found = 0;
    for (int64_t i = 0; i < n; i++) {
        BITS b;
        memcpy(&b, &p[i], sizeof b);
        found |= (b & EXPONENT) + (top - bits);
    }
    return found >= top;
}

static inline bool are_finite_values(const T *p, int64_t n) { return !any_magnitude_of(p, n, EXPONENT); }
static inline bool are_finite(const element *p, int64_t n)
{
    return are_finite_values((const T *)p, PARTS * n);
}

typedef struct search {
    const col_matrix *c;
    BITS bits;
    bool *found;
} search;

static inline void search_part(const void *work, int t, int threads)
{
    const search *s = work;
    const col_matrix *c = s->c;
    const int64_t from = part_of(c->cols, t, threads), to = part_of(c->cols, t + 1, threads);
    bool any = false;
    for (int64_t j = from; j < to && !any; j++)
        any = any_magnitude_of((const T *)(c->p + j * c->ld), PARTS * (int64_t)c->rows, s->bits);
    if (any) __atomic_store_n(s->found, true, __ATOMIC_RELAXED);
}

static inline bool any_magnitude(const col_matrix *c, BITS bits)
{
    bool found = false;
    by_threads(threads_for((double)c->rows * c->cols * sizeof(element) * SECONDS_PER_BYTE), search_part,
               &(search){ c, bits, &found });
    return found;
}

static inline bool is_finite_matrix(const col_matrix *c) { return !any_magnitude(c, EXPONENT); }

static inline duet_status finite_operand(const workspace *d, int k, const col_matrix *c)
{
    return is_finite_matrix(c) ? DUET_OK : linalg_failed(d->s, LINALG_OPERAND, k + 1);
}

static inline duet_status finite_result(const workspace *d, const col_matrix *c)
{
    return is_finite_matrix(c) ? DUET_OK : linalg_failed(d->s, LINALG_RESULT, 0);
}

static inline duet_status finite_result_values(const workspace *d, const T *w, int64_t n)
{
    return are_finite_values(w, n) ? DUET_OK : linalg_failed(d->s, LINALG_RESULT, 0);
}

/* Reads operand k, or its transpose, and checks that it is finite. */
static inline duet_status operand_read(workspace *d, int k, bool transposed, col_matrix *c)
{
    TRY(col_matrix_read(d, k, transposed, c));
    return finite_operand(d, k, c);
}

/* Sets the elements below the diagonal to 0. */
static inline void zero_lower_triangle(const col_matrix *c)
{
    for (int64_t j = 0; j < c->cols; j++)
        for (int64_t i = j + 1; i < c->rows; i++) c->p[i + j * c->ld] = 0;
}

#ifdef PAIRS
/* Clears the imaginary parts on the diagonal: a Hermitian matrix has a real diagonal. */
static inline void diagonal_real(const col_matrix *c)
{
    for (int64_t i = 0; i < c->cols; i++) ((T *)(c->p + i * (c->ld + 1)))[1] = 0;
}

static inline void conjugate(const col_matrix *c)
{
    for (int64_t j = 0; j < c->cols; j++)
        for (int64_t i = 0; i < c->rows; i++) {
            T *x = (T *)(c->p + i + j * c->ld);
            x[1] = -x[1];
        }
}
#else
static inline void diagonal_real(const col_matrix *c) {}
static inline void conjugate(const col_matrix *c) {}
#endif

/* Reads the lower triangle of the symmetric or Hermitian operand 0, as the upper triangle of its
 * transpose, with zeros below. The transpose is its conjugate. */
static inline duet_status symmetric_read(workspace *d, col_matrix *c)
{
    TRY(col_matrix_read(d, 0, true, c));
    zero_lower_triangle(c);
    diagonal_real(c);
    return finite_operand(d, 0, c);
}

/* ---- shared by solvers and factorisations ---- */

/* The smallest and largest magnitude of the parts of elements, without zeros. */
typedef struct magnitudes {
    double smallest, largest;
} magnitudes;

static inline magnitudes magnitudes_of(const col_matrix *c)
{
    magnitudes e = { INFINITY, 0 };
    for (int64_t j = 0; j < c->cols; j++)
        for (int64_t i = 0; i < PARTS * (int64_t)c->rows; i++) {
            const double x = fabs((double)((const T *)(c->p + j * c->ld))[i]);
            if (x > 0) e = (magnitudes){ fmin(e.smallest, x), fmax(e.largest, x) };
        }
    return e;
}

/* Multiplies by 2^exponent; if `upper_only`, only the upper triangle. */
static inline void scale_by_power(const col_matrix *c, int exponent, bool upper_only)
{
    for (int64_t j = 0; j < c->cols && exponent; j++) {
        T *column = (T *)(c->p + j * c->ld);
        for (int64_t i = 0; i < PARTS * SMALLER(upper_only ? j + 1 : c->rows, c->rows); i++)
            column[i] = (T)ldexp(column[i], exponent);
    }
}

/* Scales the matrix if its largest element is near a limit of the type. Returns the exponent that
 * undoes it.
 *
 * LU multiplies by reciprocals of pivots. The reciprocal of a subnormal pivot is infinite.
 * OpenBLAS's reciprocal of a large complex pivot is 0. A large real matrix is not scaled if this
 * would make its small elements subnormal. */
static inline int scale_into_range(const col_matrix *c, bool large)
{
    int exponent = 0;
    if (!large && any_magnitude(c, SMALL)) return 0;
    const magnitudes e = magnitudes_of(c);
    frexp(e.largest, &exponent);
    if (large) exponent -= LARGE_EXPONENT;
    if (large && PARTS < 2 && ldexp(e.smallest, -exponent) < ldexp(1, -LARGE_EXPONENT)) return 0;
    scale_by_power(c, -exponent, false);
    return exponent;
}

#ifdef PAIRS
/* The eigenvalues of c, into w. Replaces c by the eigenvectors if `vectors`. */
static inline duet_status eigen_of(workspace *d, const col_matrix *c, bool vectors, T *w)
{
    int info;
    const int64_t n = c->rows, values_length = larger(n, 1);
    const int64_t rwork_length = vectors ? 1 + 5 * n + 2 * n * n : values_length;
    lapack_int iwork_length = vectors ? 3 + 5 * c->rows : 1, *iwork;
    T *rwork;
    TRY(workspace_take(d, iwork_length, sizeof *iwork, &iwork));
    TRY(values_take(d, rwork_length, &rwork));
    WITH_WORK(d, info,
              LAPACK(heevd)(COL, vectors ? 'V' : 'N', 'U', c->rows, c->p, c->ld, w, work, length, rwork,
                            (lapack_int)rwork_length, iwork, iwork_length));
    return info ? linalg_failed(d->s, LINALG_ITERATION, info) : DUET_OK;
}
#else
static inline duet_status eigen_of(workspace *d, const col_matrix *c, bool vectors, T *w)
{
    int info;
    lapack_int iwork_length = vectors ? 3 + 5 * c->rows : 1, *iwork;
    TRY(workspace_take(d, iwork_length, sizeof *iwork, &iwork));
    WITH_WORK(d, info,
              LAPACK(syevd)(COL, vectors ? 'V' : 'N', 'U', c->rows, c->p, c->ld, w, work, length, iwork,
                            iwork_length));
    return info ? linalg_failed(d->s, LINALG_ITERATION, info) : DUET_OK;
}
#endif

/* The length of the real workspace of LAPACK's complex SVD. */
static inline int64_t svd_rwork_length(const col_matrix *c, bool vectors)
{
    const int64_t m = larger(c->rows, c->cols), n = smaller(c->rows, c->cols);
    const int64_t square = 5 * n * n + 7 * n, rectangular = 2 * m * n + 2 * n * n + n;
    if (!vectors) return 7 * n;
    return larger(square, rectangular);
}

/* The singular values of c, into w. Also the vectors, unless u is NULL: as many as u and vt have room for. */
static inline duet_status svd_of(workspace *d, const col_matrix *c, T *w, const col_matrix *u,
                                 const col_matrix *vt)
{
    int info;
    lapack_int *iwork;
    const col_matrix none = { NULL, 0, 0, 1 };
    const bool full = u && larger(u->cols, vt->rows) > SMALLER(c->rows, c->cols);
    const char job = full ? 'A' : u ? 'S' : 'N';
    T *rwork __attribute__((unused)) = NULL;
    if (PARTS > 1) TRY(values_take(d, svd_rwork_length(c, u), &rwork));
    if (!u) u = vt = &none;
    TRY(workspace_take(d, 8 * (int64_t)SMALLER(c->rows, c->cols), sizeof *iwork, &iwork));
    WITH_WORK(d, info,
              LAPACK(gesdd)(COL, job, c->rows, c->cols, c->p, c->ld, w, u->p, u->ld, vt->p, vt->ld, work,
                            length, REAL_WORK iwork));
    if (info) return linalg_failed(d->s, LINALG_ITERATION, larger(info, 0));
    return DUET_OK;
}

/* A determinant as (re, im) 2^exponent, with parts below 1. It may be out of range of every type. */
typedef struct determinant {
    double re, im;
    int64_t exponent;
} determinant;

/* The logarithm of its magnitude. */
static inline double determinant_log(const determinant *d)
{
    const double size = PARTS > 1 ? hypot(d->re, d->im) : fabs(d->re);
    return size == 0 ? -INFINITY : log(size) + (double)d->exponent * 0.6931471805599453;
}

/* Multiplies by the number at x, or by its negative. Scales the parts below 1, before and after. */
static inline void determinant_multiply(determinant *d, const T *x, bool negated)
{
    const double sign = negated ? -1 : 1, re_x = sign * (double)x[0],
                 im_x = PARTS < 2 ? 0 : sign * (double)x[PARTS - 1];
    int exponent_x, e;
    frexp(fmax(fabs(re_x), fabs(im_x)), &exponent_x);
    const double a = ldexp(re_x, -exponent_x), b = ldexp(im_x, -exponent_x);
    const double re = d->re * a - d->im * b, im = PARTS < 2 ? 0 : d->re * b + d->im * a;
    frexp(fmax(fabs(re), fabs(im)), &e);
    d->re = ldexp(re, -e);
    d->im = ldexp(im, -e);
    d->exponent += e + exponent_x;
}

static inline determinant determinant_of(const col_matrix *lu, const lapack_int *pivot)
{
    determinant r = { .re = 1 };
    for (int i = 0; i < lu->rows; i++) {
        const element *x = lu->p + i + (int64_t)i * lu->ld;
        if (*x == 0) return (determinant){ 0 };
        determinant_multiply(&r, (const T *)x, pivot[i] != i + 1);
    }
    return r;
}

/* Writes (re, im) 2^exponent to output k. */
static inline void number_write(const workspace *d, int k, double re, double im, int64_t exponent)
{
    const int64_t limit = 1 << 20;
    const int64_t e = larger(smaller(exponent, limit), -limit);
    T *to = address(d->f, &d->s->out[k]);
    to[0] = (T)ldexp(re, (int)e);
    if (PARTS > 1) to[PARTS - 1] = (T)ldexp(im, (int)e);
}

/* Multiplies the parts of an element by 2^exponent. */
static inline void multiply_by_power(element *x, int exponent)
{
    T *part = (T *)x;
    for (int k = 0; k < PARTS; k++) part[k] = (T)ldexp(part[k], exponent);
}

/* The exponent of the larger part of an element, as frexp returns it; INT_MIN for 0. */
static inline int exponent_of(const element *x)
{
    const T *part = (const T *)x;
    const double size = fmax(fabs((double)part[0]), fabs((double)part[PARTS - 1]));
    int exponent = INT_MIN;
    if (size > 0) frexp(size, &exponent);
    return exponent;
}

/* The sum of the magnitudes of a column. */
static inline double column_size(const col_matrix *c, int j)
{
    const T *x = (const T *)(c->p + (int64_t)j * c->ld);
    double sum = 0;
    for (int64_t i = 0; i < c->rows; i++)
        sum += PARTS > 1 ? hypot(x[PARTS * i], x[PARTS * i + PARTS - 1]) : fabs((double)x[i]);
    return sum;
}

duet_status LINEAR(run_matrix)(workspace *d); /* the step of one matrix */
duet_status LINEAR(run_factor)(workspace *d);
duet_status LINEAR(eigen_general)(workspace *d, bool vectors);
duet_status LINEAR(exponential)(workspace *d);
duet_status LINEAR(solve_triangular)(workspace *d);
duet_status LINEAR(least_squares)(workspace *d);

#endif
