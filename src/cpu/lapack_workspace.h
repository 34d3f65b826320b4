/* lapack_workspace.h - matrices as LAPACK takes them: by columns, in memory that is given back when the step ends. A template, of elements of type T or,
 * with PAIRS defined, of complex ones, whose parts are of it. */
#ifndef COLUMNS_H
#define COLUMNS_H

#include <lapacke.h> /* before the words */

#include "blas.h"
#include "cpu.h"
#include "cpu_kernels.h"
#include "linalg_status.h"
#include "threads.h"

/* By their names LAPACK's functions are of real elements, or of complex ones; TURN_BACK is with Q^T, or Q^H. */
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
enum { PARTS = 2, TURN_BACK = 'C' };
#define MAKE_Q    ungqr
#define TIMES_Q   unmqr
#define ONE       (&(const element){ 1 })
#define REAL_ROOM real,
#else
typedef T element;
enum { PARTS = 1, TURN_BACK = 'T' };
#define MAKE_Q  orgqr
#define TIMES_Q ormqr
#define ONE     1
#define REAL_ROOM
#endif
#ifdef T_f32
#define EXPONENT 0x7f800000u
#define LARGE    0x77800000u /* 2^112 */
#define SMALL    0x0f800000u /* 2^-96 */
enum { LARGE_EXPONENT = 112 };
#else
#define EXPONENT 0x7ff0000000000000u
#define LARGE    0x7ef0000000000000u /* 2^1008 */
#define SMALL    0x03f0000000000000u /* 2^-960 */
enum { LARGE_EXPONENT = 1008 };
#endif
#define COL          LAPACK_COL_MAJOR
#define LINEAR(name) PASTE(name, TYPE) /* of this element type: run_linear_c64 */

static inline T real_part(element x) { return *(const T *)&x; }

/* A step at work: what it is, and what it has taken. */
#define DESK_BLOCKS 12
typedef struct desk {
    const step *s;
    const frame *f;
    void *block[DESK_BLOCKS];
    int blocks;
} desk;

/* Room for n things of so many bytes, until the step ends. */
static inline duet_status workspace_take(desk *d, int64_t n, size_t bytes, void *p)
{
    void **to = p;
    TRY(scratch_take((size_t)(n > 0 ? n : 1) * bytes, d->f, to));
    d->block[d->blocks++] = *to;
    return DUET_OK;
}

static inline void workspace_clear(desk *d)
{
    while (d->blocks > 0) scratch_give(d->block[--d->blocks]);
}

/* LAPACK says in *work how many elements it wants, rounded to its type. */
static inline duet_status desk_work(desk *d, element **work, lapack_int *length)
{
    *length = (lapack_int)(real_part(**work) * (1 + K(4e-7))) + 1;
    return workspace_take(d, *length, sizeof(element), work);
}
/* info = call, which takes `work` and `length`; first asked how much it wants. */
#define WITH_WORK(d, info, ...)                                                                              \
    do {                                                                                                     \
        element asked_ = 0, *work = &asked_;                                                                 \
        lapack_int length = -1;                                                                              \
        (void)(__VA_ARGS__);                                                                                 \
        TRY(desk_work(d, &work, &length));                                                                   \
        (info) = (int)(__VA_ARGS__);                                                                         \
    } while (0)

/* ---- layouts ---- */

/* A vector is one column, a number one element. */
static inline layout as_columns(const layout *l)
{
    if (l->rank == 2) return *l;
    return (layout){ .type = l->type,
                     .rank = 2,
                     .size = { l->rank ? l->size[0] : 1, 1 },
                     .stride = { l->rank ? l->stride[0] : 1, 1 } };
}

static inline layout turned(layout l)
{
    const int64_t size = l.size[0], stride = l.stride[0];
    l.size[0] = l.size[1], l.size[1] = size, l.stride[0] = l.stride[1], l.stride[1] = stride;
    return l;
}

/* ---- matrices by columns ---- */

typedef struct columns {
    element *p;
    int rows, cols, ld;
} columns;

static inline layout columns_layout(const columns *c, duet_dtype type)
{
    return (layout){ .type = type, .rank = 2, .size = { c->rows, c->cols }, .stride = { 1, c->ld } };
}

/* OpenBLAS's products of complex matrices read an element beyond a row: there is a column more. */
static inline duet_status columns_take(desk *d, int64_t rows, int64_t cols, columns *c)
{
    *c = (columns){ .rows = (int)rows, .cols = (int)cols, .ld = rows > 1 ? (int)rows : 1 };
    return workspace_take(d, (int64_t)c->ld * (cols + (PARTS > 1)), sizeof(element), &c->p);
}

/* The first rows of c are what lies at `from`. */
static inline duet_status columns_fill(const columns *c, const layout *at, const element *from)
{
    columns part = *c;
    part.rows = (int)at->size[0];
    const layout to = columns_layout(&part, at->type);
    return layout_count(&to) ? copy_elements(c->p, &to, from, at) : DUET_OK;
}

/* Operand k, or its transpose. */
static inline duet_status columns_read(desk *d, int k, bool transposed, columns *c)
{
    layout at = as_columns(&d->s->in[k].at);
    if (transposed) at = turned(at);
    TRY(columns_take(d, at.size[0], at.size[1], c));
    return columns_fill(c, &at, address(d->f, &d->s->in[k]));
}

/* The first rows of c, or their transpose, are output k. */
static inline duet_status columns_write(const desk *d, const columns *c, bool transposed, int k)
{
    layout at = as_columns(&d->s->out[k].at);
    columns part = *c;
    if (transposed) at = turned(at);
    part.rows = (int)at.size[0];
    const layout from = columns_layout(&part, at.type);
    return layout_count(&at) ? copy_elements(address(d->f, &d->s->out[k]), &at, c->p, &from) : DUET_OK;
}

/* Room for n real numbers; they are output k. */
static inline duet_status values_take(desk *d, int64_t n, T **w)
{
    return workspace_take(d, n, sizeof(T), w);
}

static inline duet_status values_write(const desk *d, const T *w, int64_t n, int k)
{
    const layout from = { .type = OWN_TYPE, .rank = 1, .size = { n }, .stride = { 1 } };
    return n ? copy_elements(address(d->f, &d->s->out[k]), &d->s->out[k].at, w, &from) : DUET_OK;
}

/* ---- what is asked of elements ---- */

/* Is the size of one of n numbers, or of a NaN, at least that whose bits these are? EXPONENT: an infinity's. The uppermost bit of a sum
 * tells, as vectors of 64 bits have no such comparison. */
static inline bool values_reach(const T *p, int64_t n, BITS bits)
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

static inline bool finite_values(const T *p, int64_t n) { return !values_reach(p, n, EXPONENT); }
static inline bool finite_run(const element *p, int64_t n) { return finite_values((const T *)p, PARTS * n); }

typedef struct search {
    const columns *c;
    BITS bits;
    bool *found;
} search;

static inline void search_columns(const void *work, int t, int threads)
{
    const search *s = work;
    const columns *c = s->c;
    const int64_t from = part_of(c->cols, t, threads), to = part_of(c->cols, t + 1, threads);
    bool any = false;
    for (int64_t j = from; j < to && !any; j++)
        any = values_reach((const T *)(c->p + j * c->ld), PARTS * (int64_t)c->rows, s->bits);
    if (any) __atomic_store_n(s->found, true, __ATOMIC_RELAXED);
}

static inline bool columns_reach(const columns *c, BITS bits)
{
    bool found = false;
    by_threads(threads_for((double)c->rows * c->cols * sizeof(element) * SECONDS_PER_BYTE), search_columns,
               &(search){ c, bits, &found });
    return found;
}

static inline bool columns_finite(const columns *c) { return !columns_reach(c, EXPONENT); }

static inline duet_status finite_operand(const desk *d, int k, const columns *c)
{
    return columns_finite(c) ? DUET_OK : linalg_failed(d->s, LINALG_OPERAND, k + 1);
}

static inline duet_status finite_result(const desk *d, const columns *c)
{
    return columns_finite(c) ? DUET_OK : linalg_failed(d->s, LINALG_RESULT, 0);
}

static inline duet_status finite_result_values(const desk *d, const T *w, int64_t n)
{
    return finite_values(w, n) ? DUET_OK : linalg_failed(d->s, LINALG_RESULT, 0);
}

/* Operand 0, or its transpose, all of it finite. */
static inline duet_status operand_read(desk *d, int k, bool transposed, columns *c)
{
    TRY(columns_read(d, k, transposed, c));
    return finite_operand(d, k, c);
}

/* Zeros below the diagonal. */
static inline void columns_upper(const columns *c)
{
    for (int64_t j = 0; j < c->cols; j++)
        for (int64_t i = j + 1; i < c->rows; i++) c->p[i + j * c->ld] = 0;
}

#ifdef PAIRS
/* What is Hermitian has a real diagonal, whatever stands there. */
static inline void diagonal_real(const columns *c)
{
    for (int64_t i = 0; i < c->cols; i++) ((T *)(c->p + i * (c->ld + 1)))[1] = 0;
}

static inline void conjugate(const columns *c)
{
    for (int64_t j = 0; j < c->cols; j++)
        for (int64_t i = 0; i < c->rows; i++) {
            T *x = (T *)(c->p + i + j * c->ld);
            x[1] = -x[1];
        }
}
#else
static inline void diagonal_real(const columns *c) { (void)c; }
static inline void conjugate(const columns *c) { (void)c; }
#endif

/* The lower triangle of a symmetric or Hermitian operand 0, as the upper one of its transpose, with zeros below: the transpose is its conjugate. */
static inline duet_status symmetric_read(desk *d, columns *c)
{
    TRY(columns_read(d, 0, true, c));
    columns_upper(c), diagonal_real(c);
    return finite_operand(d, 0, c);
}

/* ---- shared by solvers and factorisations ---- */

/* The sizes of the parts of elements that are not 0. */
typedef struct extent {
    double least, most;
} extent;

static inline extent extent_of(const columns *c)
{
    extent e = { INFINITY, 0 };
    for (int64_t j = 0; j < c->cols; j++)
        for (int64_t i = 0; i < PARTS * (int64_t)c->rows; i++) {
            const double x = fabs((double)((const T *)(c->p + j * c->ld))[i]);
            if (x > 0) e = (extent){ fmin(e.least, x), fmax(e.most, x) };
        }
    return e;
}

/* Times 2^exponent; above and on the diagonal alone, if that is asked for. */
static inline void columns_times_power(const columns *c, int exponent, bool upper)
{
    for (int64_t j = 0; j < c->cols && exponent; j++) {
        T *column = (T *)(c->p + j * c->ld);
        for (int64_t i = 0; i < PARTS * SMALLER(upper ? j + 1 : c->rows, c->rows); i++)
            column[i] = (T)ldexp(column[i], exponent);
    }
}

/* Where the largest element is near a limit of the type all are brought within, and are then to be taken times 2^exponent. LU
 * multiplies by reciprocals of pivots: of subnormal ones they are infinite; OpenBLAS's of large complex ones are 0, in silence, so
 * that real matrices alone are left as they are for the sake of elements near the other limit. */
static inline int columns_tame(const columns *c, bool large)
{
    int exponent = 0;
    if (!large && columns_reach(c, SMALL)) return 0;
    const extent e = extent_of(c);
    (void)frexp(e.most, &exponent);
    if (large) exponent -= LARGE_EXPONENT;
    if (large && PARTS < 2 && ldexp(e.least, -exponent) < ldexp(1, -LARGE_EXPONENT)) return 0;
    columns_times_power(c, -exponent, false);
    return exponent;
}

typedef struct factors {
    columns lu; /* U on the diagonal and above, L below, in the place of what was factored */
    lapack_int *pivot;
    bool large;   /* the matrix: pivots may have become infinite, and what is divided by them 0, in silence */
    int exponent; /* U is that times 2^exponent */
    int zero;     /* the first pivot that is 0, from 1; 0: none */
} factors;

static inline duet_status lu_of(desk *d, const columns *c, factors *f)
{
    const bool large = columns_reach(c, LARGE);
    *f = (factors){ .lu = *c, .large = large, .exponent = columns_tame(c, large) };
    TRY(workspace_take(d, SMALLER(c->rows, c->cols), sizeof *f->pivot, &f->pivot));
    f->zero = (int)LAPACK(getrf)(COL, c->rows, c->cols, c->p, c->ld, f->pivot);
    return DUET_OK;
}

/* With U as it is: finite, or there is no result. */
static inline duet_status lu_whole(desk *d, const columns *c, factors *f)
{
    TRY(lu_of(d, c, f));
    columns_times_power(c, f->exponent, true);
    return finite_result(d, c);
}

/* c = Q R in its place, Q as reflectors of these factors. */
static inline duet_status qr_of(desk *d, const columns *c, element **tau)
{
    int info;
    TRY(workspace_take(d, SMALLER(c->rows, c->cols), sizeof **tau, tau));
    WITH_WORK(d, info, LAPACK(geqrf)(COL, c->rows, c->cols, c->p, c->ld, *tau, work, length));
    return info ? fail(DUET_DEVICE_ERROR, "LAPACK: geqrf ended with %d", info) : DUET_OK;
}

#ifdef PAIRS
/* The eigenvalues of c, into w; if wanted its vectors, in its place. */
static inline duet_status eigen_of(desk *d, const columns *c, bool vectors, T *w)
{
    int info;
    const int64_t n = c->rows, real_length = vectors ? 1 + 5 * n + 2 * n * n : n > 1 ? n : 1;
    lapack_int whole_length = vectors ? 3 + 5 * c->rows : 1, *whole;
    T *real;
    TRY(workspace_take(d, whole_length, sizeof *whole, &whole));
    TRY(values_take(d, real_length, &real));
    WITH_WORK(d, info,
              LAPACK(heevd)(COL, vectors ? 'V' : 'N', 'U', c->rows, c->p, c->ld, w, work, length, real,
                            (lapack_int)real_length, whole, whole_length));
    return info ? linalg_failed(d->s, LINALG_ITERATION, info) : DUET_OK;
}
#else
static inline duet_status eigen_of(desk *d, const columns *c, bool vectors, T *w)
{
    int info;
    lapack_int whole_length = vectors ? 3 + 5 * c->rows : 1, *whole;
    TRY(workspace_take(d, whole_length, sizeof *whole, &whole));
    WITH_WORK(d, info,
              LAPACK(syevd)(COL, vectors ? 'V' : 'N', 'U', c->rows, c->p, c->ld, w, work, length, whole,
                            whole_length));
    return info ? linalg_failed(d->s, LINALG_ITERATION, info) : DUET_OK;
}
#endif

/* Real numbers that LAPACK's SVD of complex elements works in beside them. */
static inline int64_t svd_room(const columns *c, bool vectors)
{
    const int64_t m = c->rows > c->cols ? c->rows : c->cols, n = SMALLER(c->rows, c->cols);
    const int64_t square = 5 * n * n + 7 * n, oblong = 2 * m * n + 2 * n * n + n;
    return !vectors ? 7 * n : square > oblong ? square : oblong;
}

/* The singular values of c, into w; if wanted its vectors. u NULL: not wanted. */
static inline duet_status svd_of(desk *d, const columns *c, T *w, const columns *u, const columns *vt)
{
    int info;
    lapack_int *whole;
    const columns none = { NULL, 0, 0, 1 };
    const char wanted = u ? 'S' : 'N';
    T *real = NULL;
    if (PARTS > 1) TRY(values_take(d, svd_room(c, u), &real));
    if (!u) u = vt = &none;
    TRY(workspace_take(d, 8 * (int64_t)SMALLER(c->rows, c->cols), sizeof *whole, &whole));
    WITH_WORK(d, info,
              LAPACK(gesdd)(COL, wanted, c->rows, c->cols, c->p, c->ld, w, u->p, u->ld, vt->p, vt->ld, work,
                            length, REAL_ROOM whole));
    (void)real;
    return info ? linalg_failed(d->s, LINALG_ITERATION, info > 0 ? info : 0) : DUET_OK;
}

/* The determinant of the n x n matrix P L U, as (re, im) 2^exponent, and the logarithm of its size: also where it is beyond every type. */
typedef struct determinant {
    double re, im, log;
    int64_t exponent;
} determinant;

/* With parts below 1 before: the size of a number may be beyond every type. */
static inline double log_size(double re, double im)
{
    int e;
    (void)frexp(fmax(fabs(re), fabs(im)), &e);
    return PARTS < 2 ? log(fabs(re)) : log(hypot(ldexp(re, -e), ldexp(im, -e))) + e * 0.6931471805599453;
}

/* Times the number at x, or that with the other sign; parts are brought below 1, before and after. */
static inline void determinant_times(determinant *d, const T *x, bool negated)
{
    const double sign = negated ? -1 : 1, whole = sign * (double)x[0],
                 more = PARTS < 2 ? 0 : sign * (double)x[PARTS - 1];
    int of_x, e;
    (void)frexp(fmax(fabs(whole), fabs(more)), &of_x);
    const double a = ldexp(whole, -of_x), b = ldexp(more, -of_x);
    const double re = d->re * a - d->im * b, im = PARTS < 2 ? 0 : d->re * b + d->im * a;
    (void)frexp(fmax(fabs(re), fabs(im)), &e);
    d->re = ldexp(re, -e), d->im = ldexp(im, -e), d->exponent += e + of_x;
    d->log += log_size(whole, more);
}

static inline determinant determinant_of(const columns *lu, const lapack_int *pivot)
{
    determinant r = { .re = 1 };
    for (int i = 0; i < lu->rows; i++) {
        const element *x = lu->p + i + (int64_t)i * lu->ld;
        if (*x == 0) return (determinant){ .log = -INFINITY };
        determinant_times(&r, (const T *)x, pivot[i] != i + 1);
    }
    return r;
}

/* Output k: (re, im) 2^exponent. */
static inline void number_write(const desk *d, int k, double re, double im, int64_t exponent)
{
    const int64_t most = 1 << 20, e = exponent > most ? most : exponent < -most ? -most : exponent;
    T *to = address(d->f, &d->s->out[k]);
    to[0] = (T)ldexp(re, (int)e);
    if (PARTS > 1) to[PARTS - 1] = (T)ldexp(im, (int)e);
}

static inline duet_status determinant_read(desk *d, determinant *x)
{
    columns a;
    factors f;
    TRY(operand_read(d, 0, true, &a));
    TRY(lu_whole(d, &a, &f));
    *x = determinant_of(&a, f.pivot);
    return DUET_OK;
}

duet_status LINEAR(run_factor)(desk *d);

#endif
