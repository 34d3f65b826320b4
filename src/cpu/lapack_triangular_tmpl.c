/* lapack_triangular_tmpl.c - triangular systems, by BLAS, or without overflow of intermediate
 * results. Template. */
#include "lapack_workspace.h"
#include "triangle.h"

/* The triangular operand: in place if t->pitch is not 0, otherwise a copy. */
static duet_status triangle_open(workspace *d, const triangle *t, col_matrix *a)
{
    const int n = (int)d->s->in[0].at.size[0];
    *a = (col_matrix){ address(d->f, &d->s->in[0]), n, n, (int)t->pitch };
    if (t->pitch) return DUET_OK;
    return col_matrix_read(d, 0, true, a);
}

static bool diagonal_large(const col_matrix *a)
{
    bool any = false;
    for (int64_t i = 0; i < a->cols; i++)
        any |= any_magnitude_of((const T *)(a->p + i * (a->ld + 1)), PARTS, LARGE);
    return any;
}

/* Scales both sides down. OpenBLAS's reciprocals of complex numbers near the overflow limit are 0. */
static duet_status triangle_scale(workspace *d, const triangle *t, col_matrix *a, const col_matrix *b)
{
    col_matrix copy;
    const layout from = col_matrix_layout(a, d->s->in[0].at.type);
    if (PARTS < 2 || t->unit || !diagonal_large(a)) return DUET_OK;
    TRY(col_matrix_take(d, a->rows, a->cols, &copy));
    TRY(col_matrix_fill(&copy, &from, a->p));
    scale_by_power(&copy, -4, false);
    scale_by_power(b, -4, false);
    *a = copy;
    return DUET_OK;
}

/* Checks that the triangle is finite and its diagonal has no zeros. */
static duet_status triangle_check(const workspace *d, const triangle *t, const col_matrix *a)
{
    bool finite = true;
    int zero = 0;
    for (int64_t j = 0; j < a->cols; j++) {
        const element *column = a->p + j * a->ld;
        const int64_t from = t->lower ? j + t->unit : 0, to = t->lower ? a->rows : j + !t->unit;
        finite &= are_finite(column + from, to - from);
        if (!zero && !t->unit && column[j] == 0) zero = (int)j + 1;
    }
    if (!finite) return linalg_failed(d->s, LINALG_OPERAND, 1);
    if (zero) return linalg_failed(d->s, LINALG_PIVOT, zero);
    return DUET_OK;
}

/* ---- substitution with numbers (re, im) 2^exponent, whose larger part is between 1/2 and 1 ---- */

typedef struct scaled {
    double re, im;
    int exponent; /* NOTHING for 0 */
} scaled;

enum { NOTHING = INT_MIN / 4 };

static scaled normalised(double re, double im, int exponent)
{
    int e;
    const double size = fmax(fabs(re), fabs(im));
    if (size == 0) return (scaled){ 0, 0, NOTHING };
    frexp(size, &e);
    return (scaled){ ldexp(re, -e), ldexp(im, -e), exponent + e };
}

static scaled scaled_of(const element *x)
{
    const T *part = (const T *)x;
    return normalised(part[0], PARTS > 1 ? part[PARTS - 1] : 0, 0);
}

static scaled quotient(scaled x, scaled y)
{
    const double size = y.re * y.re + y.im * y.im;
    if (x.exponent == NOTHING) return x;
    if (PARTS < 2) return normalised(x.re / y.re, 0, x.exponent - y.exponent);
    return normalised((x.re * y.re + x.im * y.im) / size, (x.im * y.re - x.re * y.im) / size,
                      x.exponent - y.exponent);
}

/* 2^e for e <= 0; 0 where it would be subnormal. */
static inline double power_below_one(int e)
{
    const uint64_t bits = e < -1022 ? 0 : (uint64_t)(e + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* sum - the n products x[i] y[i]. All terms are divided by the largest power of two among them. Terms that
 * underflow are far below the rounding error of the sum. */
static scaled minus_products(scaled sum, const scaled *x, const scaled *y, int64_t n)
{
    int largest = sum.exponent;
    for (int64_t i = 0; i < n; i++) {
        const int e = x[i].exponent + y[i].exponent;
        if (e > largest) largest = e;
    }
    if (largest <= NOTHING / 2) return sum;
    const double first = power_below_one(sum.exponent - largest);
    double re = sum.re * first, im = sum.im * first;
    for (int64_t i = 0; i < n; i++) {
        const double scale = power_below_one(x[i].exponent + y[i].exponent - largest);
        const double a = x[i].re * scale, b = x[i].im * scale;
        re -= PARTS > 1 ? a * y[i].re - b * y[i].im : a * y[i].re;
        if (PARTS > 1) im -= a * y[i].im + b * y[i].re;
    }
    return normalised(re, im, largest);
}

/* Columns of b that are not finite are replaced by those of `again` and solved for. Each thread has n
 * numbers for a row of the matrix, and n for each column. */
typedef struct substitution {
    const triangle *t;
    const col_matrix *a, *b, *again;
    const int *column;
    int columns;
    scaled *row, *x;
} substitution;

static void substitute_row(const substitution *s, int64_t i, scaled *row, int64_t from, int64_t to)
{
    const bool down = s->t->lower != s->t->transposed;
    const col_matrix *a = s->a;
    const int64_t n = a->rows, stride = s->t->transposed ? 1 : a->ld;
    const int64_t first = down ? 0 : i + 1, end = down ? i : n;
    const element *p = a->p + i * (s->t->transposed ? a->ld : 1);
    for (int64_t j = first; j < end; j++) row[j] = scaled_of(p + j * stride);
    const scaled pivot = s->t->unit ? (scaled){ 0.5, 0, 1 } : scaled_of(p + i * stride);
    for (int64_t k = from; k < to; k++) {
        scaled *x = s->x + k * n;
        const scaled right = scaled_of(s->again->p + i + s->column[k] * (int64_t)s->again->ld);
        x[i] = quotient(minus_products(right, row + first, x + first, end - first), pivot);
    }
}

static void substitute_part(const void *work, int t, int threads)
{
    const substitution *s = work;
    const bool down = s->t->lower != s->t->transposed;
    const int64_t n = s->a->rows, from = part_of(s->columns, t, threads),
                  to = part_of(s->columns, t + 1, threads);
    for (int64_t i = 0; i < n && from < to; i++)
        substitute_row(s, down ? i : n - 1 - i, s->row + t * n, from, to);
    for (int64_t k = from; k < to; k++)
        for (int64_t i = 0; i < n; i++) {
            const scaled x = s->x[k * n + i];
            T *part = (T *)(s->b->p + i + s->column[k] * (int64_t)s->b->ld);
            part[0] = (T)ldexp(x.re, x.exponent);
            if (PARTS > 1) part[PARTS - 1] = (T)ldexp(x.im, x.exponent);
        }
}

/* Solves again for the columns where BLAS computed infinities: its reciprocals of tiny diagonal
 * elements are infinite, and sums may overflow where the solution does not. */
static duet_status solve_scaled(workspace *d, const triangle *t, const col_matrix *a, const col_matrix *b)
{
    col_matrix again;
    int *column;
    substitution s = { .t = t, .a = a, .b = b, .again = &again };
    TRY(col_matrix_read(d, 1, false, &again));
    TRY(workspace_take(d, b->cols, sizeof *column, &column));
    for (int j = 0; j < b->cols; j++)
        if (!are_finite(b->p + (int64_t)j * b->ld, b->rows)) column[s.columns++] = j;
    s.column = column;
    const double operations = (double)a->rows * a->rows * s.columns;
    const int threads = threads_for(operations * SECONDS_PER_FUNCTION);
    TRY(workspace_take(d, (int64_t)threads * a->rows, sizeof *s.row, &s.row));
    TRY(workspace_take(d, (int64_t)s.columns * a->rows, sizeof *s.x, &s.x));
    by_threads(threads, substitute_part, &s);
    return finite_result(d, b);
}

duet_status LINEAR(solve_triangular)(workspace *d)
{
    const triangle t = step_triangle(d->s);
    col_matrix unscaled, b;
    TRY(triangle_open(d, &t, &unscaled));
    TRY(triangle_check(d, &t, &unscaled));
    TRY(operand_read(d, 1, false, &b));
    col_matrix a = unscaled;
    TRY(triangle_scale(d, &t, &a, &b));
    BLAS(trsm)
    (CblasColMajor, CblasLeft, t.lower ? CblasLower : CblasUpper, blas_op(t.transposed),
     t.unit ? CblasUnit : CblasNonUnit, b.rows, b.cols, ONE, a.p, a.ld, b.p, b.ld);
    if (!is_finite_matrix(&b)) TRY(solve_scaled(d, &t, &unscaled, &b));
    return col_matrix_write(d, &b, false, 0);
}
