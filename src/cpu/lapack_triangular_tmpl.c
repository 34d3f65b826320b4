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
    int exponent;
} scaled;

static scaled normalised(double re, double im, int exponent)
{
    int e;
    const double size = fmax(fabs(re), fabs(im));
    if (size == 0) return (scaled){ 0 };
    frexp(size, &e);
    return (scaled){ ldexp(re, -e), ldexp(im, -e), exponent + e };
}

static scaled scaled_of(const element *x)
{
    const T *part = (const T *)x;
    return normalised(part[0], PARTS > 1 ? part[PARTS - 1] : 0, 0);
}

static bool is_zero(scaled x) { return x.re == 0 && x.im == 0; }

/* sum - x y */
static scaled minus_product(scaled sum, scaled x, scaled y)
{
    const scaled p =
        normalised(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re, x.exponent + y.exponent);
    if (is_zero(p)) return sum;
    if (is_zero(sum)) return (scaled){ -p.re, -p.im, p.exponent };
    const int e = p.exponent > sum.exponent ? p.exponent : sum.exponent;
    return normalised(ldexp(sum.re, sum.exponent - e) - ldexp(p.re, p.exponent - e),
                      ldexp(sum.im, sum.exponent - e) - ldexp(p.im, p.exponent - e), e);
}

static scaled quotient(scaled x, scaled y)
{
    const double size = y.re * y.re + y.im * y.im;
    if (PARTS < 2) return normalised(x.re / y.re, 0, x.exponent - y.exponent);
    return normalised((x.re * y.re + x.im * y.im) / size, (x.im * y.re - x.re * y.im) / size,
                      x.exponent - y.exponent);
}

/* Replaces a column by its solution. x is workspace. */
static void substitute(const triangle *t, const col_matrix *a, element *column, scaled *x)
{
    const int64_t n = a->rows, row = t->transposed ? a->ld : 1, col = t->transposed ? 1 : a->ld;
    const bool down = t->lower != t->transposed;
    for (int64_t k = 0; k < n; k++) {
        const int64_t i = down ? k : n - 1 - k, from = down ? 0 : i + 1, to = down ? i : n;
        scaled sum = scaled_of(&column[i]);
        for (int64_t j = from; j < to; j++)
            sum = minus_product(sum, scaled_of(&a->p[i * row + j * col]), x[j]);
        x[i] = t->unit ? sum : quotient(sum, scaled_of(&a->p[i * row + i * col]));
    }
    for (int64_t i = 0; i < n; i++) {
        T *part = (T *)&column[i];
        part[0] = (T)ldexp(x[i].re, x[i].exponent);
        if (PARTS > 1) part[PARTS - 1] = (T)ldexp(x[i].im, x[i].exponent);
    }
}

/* Solves again for the columns where BLAS computed infinities: its reciprocals of tiny diagonal
 * elements are infinite, and sums may overflow where the solution does not. */
static duet_status solve_scaled(workspace *d, const triangle *t, const col_matrix *a, const col_matrix *b)
{
    scaled *x;
    col_matrix again;
    TRY(col_matrix_read(d, 1, false, &again));
    TRY(workspace_take(d, a->rows, sizeof *x, &x));
    for (int64_t j = 0; j < b->cols; j++) {
        element *column = b->p + j * b->ld;
        if (are_finite(column, b->rows)) continue;
        memcpy(column, again.p + j * again.ld, (size_t)b->rows * sizeof *column);
        substitute(t, a, column, x);
        if (!are_finite(column, b->rows)) return linalg_failed(d->s, LINALG_RESULT, 0);
    }
    return DUET_OK;
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
