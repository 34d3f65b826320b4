/* columns.h - matrices as LAPACK takes them: by columns, in memory that is given back when the step ends. A template. */
#ifndef COLUMNS_H
#define COLUMNS_H

#include <lapacke.h> /* before the words */

#include "blas.h"
#include "cpu.h"
#include "table.h"
#include "threads.h"
#include "verdict.h"

#ifdef T_f32
#define LAPACK(name) LAPACKE_s##name##_work
#define EXPONENT     0x7f800000u
#else
#define LAPACK(name) LAPACKE_d##name##_work
#define EXPONENT     0x7ff0000000000000u
#endif
#define COL LAPACK_COL_MAJOR

/* A step at work: what it is, and what it has taken. */
#define DESK_BLOCKS 12
typedef struct desk {
    const step *s;
    const frame *f;
    void *block[DESK_BLOCKS];
    int blocks;
} desk;

/* Room for n things of so many bytes, until the step ends. */
static inline duet_status desk_take(desk *d, int64_t n, size_t bytes, void *p)
{
    void **to = p;
    TRY(scratch_take((size_t)(n > 0 ? n : 1) * bytes, d->f, to));
    d->block[d->blocks++] = *to;
    return DUET_OK;
}

static inline void desk_clear(desk *d)
{
    while (d->blocks > 0) scratch_give(d->block[--d->blocks]);
}

/* LAPACK says in *work how many elements it wants, rounded to its type. */
static inline duet_status desk_work(desk *d, T **work, lapack_int *length)
{
    *length = (lapack_int)(**work * (1 + K(4e-7))) + 1;
    return desk_take(d, *length, sizeof(T), work);
}
/* info = call, which takes `work` and `length`; first asked how much it wants. */
#define WITH_WORK(d, info, ...)                                                                                                  \
    do {                                                                                                                         \
        T asked_ = 0, *work = &asked_;                                                                                           \
        lapack_int length = -1;                                                                                                  \
        (void)(__VA_ARGS__);                                                                                                     \
        TRY(desk_work(d, &work, &length));                                                                                       \
        (info) = (int)(__VA_ARGS__);                                                                                             \
    } while (0)

/* ---- layouts ---- */

/* A vector is one column, a number one element. */
static inline layout as_columns(const layout *l)
{
    if (l->rank == 2) return *l;
    return (layout){
        .type = l->type, .rank = 2, .size = { l->rank ? l->size[0] : 1, 1 }, .stride = { l->rank ? l->stride[0] : 1, 1 }
    };
}

static inline layout turned(layout l)
{
    const int64_t size = l.size[0], stride = l.stride[0];
    l.size[0] = l.size[1], l.size[1] = size, l.stride[0] = l.stride[1], l.stride[1] = stride;
    return l;
}

/* ---- matrices by columns ---- */

typedef struct columns {
    T *p;
    int rows, cols, ld;
} columns;

static inline layout columns_layout(const columns *c, duet_dtype type)
{
    return (layout){ .type = type, .rank = 2, .size = { c->rows, c->cols }, .stride = { 1, c->ld } };
}

static inline duet_status columns_take(desk *d, int64_t rows, int64_t cols, columns *c)
{
    *c = (columns){ .rows = (int)rows, .cols = (int)cols, .ld = rows > 1 ? (int)rows : 1 };
    return desk_take(d, (int64_t)c->ld * cols, sizeof(T), &c->p);
}

/* The first rows of c are what lies at `from`. */
static inline duet_status columns_fill(const columns *c, const layout *at, const T *from)
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

/* ---- what is asked of elements ---- */

static inline bool finite_run(const T *p, int64_t n)
{
    BITS bad = 0;
    for (int64_t i = 0; i < n; i++) {
        BITS b;
        memcpy(&b, &p[i], sizeof b);
        bad |= (BITS)((b & EXPONENT) == EXPONENT);
    }
    return !bad;
}

typedef struct finding {
    const columns *c;
    bool *bad;
} finding;

static inline void find_bad(const void *work, int t, int threads)
{
    const finding *f = work;
    const columns *c = f->c;
    const int64_t from = part_of(c->cols, t, threads), to = part_of(c->cols, t + 1, threads);
    bool all = true;
    for (int64_t j = from; j < to; j++) all &= finite_run(c->p + j * c->ld, c->rows);
    if (!all) __atomic_store_n(f->bad, true, __ATOMIC_RELAXED);
}

static inline bool columns_finite(const columns *c)
{
    bool bad = false;
    by_threads(threads_for((double)c->rows * c->cols * sizeof(T) * SECONDS_PER_BYTE), find_bad, &(finding){ c, &bad });
    return !bad;
}

static inline duet_status finite_operand(const desk *d, int k, const columns *c)
{
    return columns_finite(c) ? DUET_OK : verdict(d->s, VERDICT_OPERAND, k + 1);
}

static inline duet_status finite_result(const desk *d, const columns *c)
{
    return columns_finite(c) ? DUET_OK : verdict(d->s, VERDICT_RESULT, 0);
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

/* The lower triangle of a symmetric operand 0, as the upper one of its transpose, with zeros below. */
static inline duet_status symmetric_read(desk *d, columns *c)
{
    TRY(columns_read(d, 0, true, c));
    columns_upper(c);
    return finite_operand(d, 0, c);
}

/* ---- shared by solvers and factorisations ---- */

/* c = P L U in its place. *info: the first pivot that is 0, from 1; 0: none. */
static inline duet_status lu_of(desk *d, const columns *c, lapack_int **pivot, int *info)
{
    TRY(desk_take(d, SMALLER(c->rows, c->cols), sizeof **pivot, pivot));
    *info = (int)LAPACK(getrf)(COL, c->rows, c->cols, c->p, c->ld, *pivot);
    return DUET_OK;
}

/* c = Q R in its place, Q as reflectors of these factors. */
static inline duet_status qr_of(desk *d, const columns *c, T **tau)
{
    int info;
    TRY(desk_take(d, SMALLER(c->rows, c->cols), sizeof **tau, tau));
    WITH_WORK(d, info, LAPACK(geqrf)(COL, c->rows, c->cols, c->p, c->ld, *tau, work, length));
    return info ? fail(DUET_DEVICE_ERROR, "LAPACK: geqrf ended with %d", info) : DUET_OK;
}

/* The eigenvalues of c, into w; if wanted its vectors, in its place. */
static inline duet_status eigen_of(desk *d, const columns *c, bool vectors, T *w)
{
    int info;
    lapack_int whole_length = vectors ? 3 + 5 * c->rows : 1, *whole;
    TRY(desk_take(d, whole_length, sizeof *whole, &whole));
    WITH_WORK(d, info, LAPACK(syevd)(COL, vectors ? 'V' : 'N', 'U', c->rows, c->p, c->ld, w, work, length, whole, whole_length));
    return info ? verdict(d->s, VERDICT_ITERATION, info) : DUET_OK;
}

/* The singular values of c, into w; if wanted its vectors. u NULL: not wanted. */
static inline duet_status svd_of(desk *d, const columns *c, T *w, const columns *u, const columns *vt)
{
    int info;
    lapack_int *whole;
    const columns none = { NULL, 0, 0, 1 };
    const char wanted = u ? 'S' : 'N';
    if (!u) u = vt = &none;
    TRY(desk_take(d, 8 * (int64_t)SMALLER(c->rows, c->cols), sizeof *whole, &whole));
    WITH_WORK(d, info,
              LAPACK(gesdd)(COL, wanted, c->rows, c->cols, c->p, c->ld, w, u->p, u->ld, vt->p, vt->ld, work, length, whole));
    return info ? verdict(d->s, VERDICT_ITERATION, info > 0 ? info : 0) : DUET_OK;
}

/* The determinant of the n x n matrix P L U, as sign * exp(log): also where it is beyond every type. */
typedef struct determinant {
    int sign; /* 0 of a singular matrix */
    double log, mantissa;
    int64_t exponent; /* it is mantissa * 2^exponent too */
} determinant;

static inline determinant determinant_of(const columns *lu, const lapack_int *pivot)
{
    determinant r = { .sign = 1, .mantissa = 1 };
    for (int i = 0; i < lu->rows; i++) {
        const double x = lu->p[i + (int64_t)i * lu->ld];
        int e;
        r.mantissa = frexp(r.mantissa * fabs(x), &e), r.exponent += e;
        r.log += log(fabs(x));
        if (x == 0) return (determinant){ .log = -INFINITY };
        r.sign *= (x < 0) != (pivot[i] != i + 1) ? -1 : 1;
    }
    return r;
}

static inline double determinant_value(const determinant *x)
{
    const int64_t most = 1 << 20, e = x->exponent > most ? most : x->exponent < -most ? -most : x->exponent;
    return x->sign * ldexp(x->mantissa, (int)e);
}

static inline duet_status determinant_read(desk *d, determinant *x)
{
    columns a;
    lapack_int *pivot;
    int info;
    TRY(operand_read(d, 0, true, &a));
    TRY(lu_of(d, &a, &pivot, &info));
    *x = determinant_of(&a, pivot);
    return DUET_OK;
}

duet_status TYPED(run_factor)(desk *d);

#endif
