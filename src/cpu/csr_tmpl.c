/* csr_tmpl.c - the kernels of sparse matrices. Template, for f32, f64, c64 and c128.
 *
 * Each element of a result is computed by one thread, which adds its terms in the order of the pattern. So
 * the number of threads does not change the bits. Functions that read the pattern in a loop are compiled
 * for i32 and for i64. */
#include "csr_kernels.h"
#include <math.h>
#include <string.h>

#if defined T_f32
typedef float part;
#define ABS fabsf
#else
typedef double part;
#define ABS fabs
#endif
#define INLINE_ALWAYS static inline __attribute__((always_inline))
#define PASTED(a, b)  a##_##b
#define PASTE(a, b)   PASTED(a, b)

#ifdef PAIRS
typedef struct element {
    part re, im;
} element;
#define ZERO ((element){ 0, 0 })
INLINE_ALWAYS element plus(element a, element b) { return (element){ a.re + b.re, a.im + b.im }; }
INLINE_ALWAYS element minus(element a, element b) { return (element){ a.re - b.re, a.im - b.im }; }
INLINE_ALWAYS element times(element a, element b)
{
    return (element){ a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re };
}
INLINE_ALWAYS bool is_zero(element a) { return a.re == 0 && a.im == 0; }
/* Smith, Algorithm 116: Complex division, 1962. */
INLINE_ALWAYS element over(element a, element b)
{
    if (ABS(b.re) >= ABS(b.im)) {
        const part r = b.im / b.re, d = b.re + b.im * r;
        return (element){ (a.re + a.im * r) / d, (a.im - a.re * r) / d };
    }
    const part r = b.re / b.im, d = b.re * r + b.im;
    return (element){ (a.re * r + a.im) / d, (a.im * r - a.re) / d };
}
#else
typedef part element;
#define ZERO 0
INLINE_ALWAYS element plus(element a, element b) { return a + b; }
INLINE_ALWAYS element minus(element a, element b) { return a - b; }
INLINE_ALWAYS element times(element a, element b) { return a * b; }
INLINE_ALWAYS bool is_zero(element a) { return a == 0; }
INLINE_ALWAYS element over(element a, element b) { return a / b; }
#endif

INLINE_ALWAYS int64_t at(const void *pattern, bool wide, int64_t i)
{
    return wide ? ((const int64_t *)pattern)[i] : ((const int32_t *)pattern)[i];
}

/* The columns of the pattern. */
INLINE_ALWAYS const void *columns_of(const csr *c, bool wide)
{
    return (const char *)c->pattern + (c->rows + 1) * (int64_t)(wide ? sizeof(int64_t) : sizeof(int32_t));
}

/* Defines name as the function that calls name_for with a constant width of the indices. */
#define FOR_WIDTHS(name)                                                                                     \
    static void name(const void *work, int t, int threads)                                                   \
    {                                                                                                        \
        const csr_work *w = work;                                                                            \
        if (w->c.wide) name##_for(w, t, threads, true);                                                      \
        else name##_for(w, t, threads, false);                                                               \
    }

/* ---- products ---- */

/* How many elements of the matrix ahead are prefetched into the cache. The processor's own prefetching stops
 * at the end of a page. */
#define AHEAD 256
#define GROUP 8 /* elements for each prefetch: of f64, one line of the cache */

INLINE_ALWAYS void fetch_ahead(const element *v, const void *column, bool wide, int64_t k)
{
    __builtin_prefetch((const char *)v + (k + AHEAD) * (int64_t)sizeof *v);
    __builtin_prefetch((const char *)column +
                       (k + AHEAD) * (int64_t)(wide ? sizeof(int64_t) : sizeof(int32_t)));
}

INLINE_ALWAYS void vector_rows(const csr_work *w, int64_t from, int64_t to, bool wide)
{
    const void *offset = w->c.pattern, *column = columns_of(&w->c, wide);
    const element *v = w->values, *x = w->x;
    element *out = w->out;
    int64_t k = at(offset, wide, from);
    for (int64_t r = from; r < to; r++) {
        const int64_t end = at(offset, wide, r + 1);
        element sum = ZERO;
        fetch_ahead(v, column, wide, k);
        for (; k + GROUP <= end; k += GROUP) {
            fetch_ahead(v, column, wide, k);
            for (int i = 0; i < GROUP; i++) sum = plus(sum, times(v[k + i], x[at(column, wide, k + i)]));
        }
        for (; k < end; k++) sum = plus(sum, times(v[k], x[at(column, wide, k)]));
        out[r] = sum;
    }
}

/* Columns of a result that are kept in registers. */
#define BLOCK (64 / (int)sizeof(element))

/* `width` columns of row r of the result, where x and out begin at these columns. */
INLINE_ALWAYS void row_block(const csr_work *w, const element *x, element *out, int64_t k, int64_t end,
                             int width, bool wide)
{
    const void *column = columns_of(&w->c, wide);
    const element *v = w->values;
    element sum[BLOCK];
    for (int j = 0; j < width; j++) sum[j] = ZERO;
    for (; k < end; k++) {
        const element *from = x + at(column, wide, k) * w->width, s = v[k];
        for (int j = 0; j < width; j++) sum[j] = plus(sum[j], times(s, from[j]));
    }
    for (int j = 0; j < width; j++) out[j] = sum[j];
}

INLINE_ALWAYS void matmul_for(const csr_work *w, int t, int threads, bool wide)
{
    const int64_t from = csr_part(&w->c, t, threads), to = csr_part(&w->c, t + 1, threads);
    const element *x = w->x;
    if (w->width == 1) {
        vector_rows(w, from, to, wide);
        return;
    }
    for (int64_t r = from; r < to; r++) {
        const int64_t k = at(w->c.pattern, wide, r), end = at(w->c.pattern, wide, r + 1);
        element *out = (element *)w->out + r * w->width;
        int64_t j = 0;
        for (; j + BLOCK <= w->width; j += BLOCK) row_block(w, x + j, out + j, k, end, BLOCK, wide);
        if (j < w->width) row_block(w, x + j, out + j, k, end, (int)(w->width - j), wide);
    }
}
FOR_WIDTHS(matmul)

/* Adds the terms of the rows to the result, for the columns from .. to - 1 of the matrix; all: these are
 * all columns. */
INLINE_ALWAYS void add_rows(const csr_work *w, int64_t from, int64_t to, int64_t n, bool all, bool wide)
{
    const void *column = columns_of(&w->c, wide);
    const element *v = w->values, *x = w->x;
    element *out = w->out;
    int64_t k = 0;
    for (int64_t r = 0; r < w->c.rows; r++, x += n) {
        const int64_t end = at(w->c.pattern, wide, r + 1);
        if (!all) k = csr_search(&w->c, r, from);
        for (int64_t c; k < end && ((c = at(column, wide, k)) < to || all); k++) {
            element *sum = out + c * n;
            for (int64_t j = 0; j < n; j++) sum[j] = plus(sum[j], times(v[k], x[j]));
        }
    }
}

/* A thread computes a range of the columns of the matrix: rows of the result. */
INLINE_ALWAYS void matmul_transposed_for(const csr_work *w, int t, int threads, bool wide)
{
    const int64_t from = part_of(w->c.columns, t, threads), to = part_of(w->c.columns, t + 1, threads);
    element *out = w->out;
    for (int64_t i = from * w->width; i < to * w->width; i++) out[i] = ZERO;
    if (w->width == 1 && threads == 1) add_rows(w, from, to, 1, true, wide);
    else if (w->width == 1) add_rows(w, from, to, 1, false, wide);
    else add_rows(w, from, to, w->width, threads == 1, wide);
}
FOR_WIDTHS(matmul_transposed)

/* ---- products at the places of the pattern ---- */

INLINE_ALWAYS void dots(const element *a, const element *const b[4], int64_t n, int count, element *out)
{
    element sum[4];
    for (int i = 0; i < count; i++) sum[i] = ZERO;
    for (int64_t j = 0; j < n; j++)
        for (int i = 0; i < count; i++) sum[i] = plus(sum[i], times(a[j], b[i][j]));
    for (int i = 0; i < count; i++) out[i] = sum[i];
}

INLINE_ALWAYS void sddmm_for(const csr_work *w, int t, int threads, bool wide)
{
    const int64_t from = csr_part(&w->c, t, threads), to = csr_part(&w->c, t + 1, threads), n = w->width;
    const void *column = columns_of(&w->c, wide);
    const element *y = w->y;
    element *out = w->out;
    for (int64_t r = from; r < to; r++) {
        const element *a = (const element *)w->x + r * n;
        int64_t k = at(w->c.pattern, wide, r);
        const int64_t end = at(w->c.pattern, wide, r + 1);
        for (; k + 4 <= end; k += 4) {
            const element *const b[4] = { y + at(column, wide, k) * n, y + at(column, wide, k + 1) * n,
                                          y + at(column, wide, k + 2) * n, y + at(column, wide, k + 3) * n };
            dots(a, b, n, 4, out + k);
        }
        for (; k < end; k++) dots(a, (const element *const[4]){ y + at(column, wide, k) * n }, n, 1, out + k);
    }
}
FOR_WIDTHS(sddmm)

/* ---- dense elements ---- */

static void take(const void *work, int t, int threads)
{
    const csr_work *w = work;
    const csr *c = &w->c;
    const element *x = w->x;
    element *out = w->out;
    for (int64_t r = csr_part(c, t, threads); r < csr_part(c, t + 1, threads); r++)
        for (int64_t k = csr_offset(c, r); k < csr_offset(c, r + 1); k++)
            out[k] = x[r * w->stride[0] + csr_column(c, k) * w->stride[1]];
}

/* The elements of a range of rows; all others of these rows are 0. */
static void put(const void *work, int t, int threads)
{
    const csr_work *w = work;
    const csr *c = &w->c;
    const int64_t from = part_of(c->rows, t, threads), to = part_of(c->rows, t + 1, threads);
    const element *v = w->values;
    element *out = w->out;
    memset(out + from * c->columns, 0, (size_t)((to - from) * c->columns) * sizeof *out);
    for (int64_t r = from; r < to; r++)
        for (int64_t k = csr_offset(c, r); k < csr_offset(c, r + 1); k++)
            out[r * c->columns + csr_column(c, k)] = v[k];
}

/* A thread computes a range of the columns of the matrix. */
static void put_transposed(const void *work, int t, int threads)
{
    const csr_work *w = work;
    const csr *c = &w->c;
    const int64_t from = part_of(c->columns, t, threads), to = part_of(c->columns, t + 1, threads);
    const element *v = w->values;
    element *out = w->out;
    memset(out + from * c->rows, 0, (size_t)((to - from) * c->rows) * sizeof *out);
    for (int64_t r = 0; r < c->rows; r++)
        for (int64_t k = csr_search(c, r, from), column; k < csr_offset(c, r + 1); k++) {
            if ((column = csr_column(c, k)) >= to) break;
            out[column * c->rows + r] = v[k];
        }
}

/* ---- triangles ---- */

static int64_t first_zero(const csr_work *w)
{
    const csr *c = &w->c;
    const element *v = w->values;
    for (int64_t r = 0; r < c->rows; r++) {
        const int64_t k = csr_search(c, r, r);
        if (k == csr_offset(c, r + 1) || csr_column(c, k) != r || is_zero(v[k])) return r;
    }
    return -1;
}

/* The columns from .. to - 1 of x, which has the right-hand sides, are replaced by the solutions. Rows are
 * visited in the order in which their solutions become known; `subtract` has the elements of the triangle. */
INLINE_ALWAYS void subtract_row(const csr_work *w, int64_t r, int64_t from, int64_t to)
{
    const csr *c = &w->c;
    const element *v = w->values;
    element *x = w->out, *own = x + r * w->width;
    const int64_t diagonal = csr_search(c, r, r), end = csr_offset(c, r + 1);
    const bool has_diagonal = diagonal < end && csr_column(c, diagonal) == r;
    const int64_t first = w->lower ? csr_offset(c, r) : diagonal + has_diagonal,
                  last = w->lower ? diagonal : end;
    if (w->transposed && !w->unit)
        for (int64_t j = from; j < to; j++) own[j] = over(own[j], v[diagonal]);
    for (int64_t k = first; k < last; k++) {
        element *other = x + csr_column(c, k) * w->width;
        if (w->transposed)
            for (int64_t j = from; j < to; j++) other[j] = minus(other[j], times(v[k], own[j]));
        else
            for (int64_t j = from; j < to; j++) own[j] = minus(own[j], times(v[k], other[j]));
    }
    if (!w->transposed && !w->unit)
        for (int64_t j = from; j < to; j++) own[j] = over(own[j], v[diagonal]);
}

static void substitute(const void *work, int t, int threads)
{
    const csr_work *w = work;
    const int64_t from = part_of(w->width, t, threads), to = part_of(w->width, t + 1, threads), n = w->c.rows;
    if (from == to) return;
    if (w->lower != w->transposed)
        for (int64_t r = 0; r < n; r++) subtract_row(w, r, from, to);
    else
        for (int64_t r = n; r-- > 0;) subtract_row(w, r, from, to);
}

const csr_functions PASTE(csr_functions, TYPE) = {
    matmul, matmul_transposed, sddmm, take, put, put_transposed, substitute, first_zero,
};
