/* lapack_lstsq_tmpl.c - least squares by QR of a tall matrix, or of the transpose of a wide one.
 * Template.
 *
 * R is triangular and square. If its condition is not certainly below 1 / (max(m, n) eps), its
 * singular values decide: those of at most max(m, n) eps times the largest one count as 0. The
 * solution of least norm follows from the rest, as in numpy.linalg.lstsq. */
#include "lapack_factors.h"

enum { ITERATIONS = 3 };

/* 1 / (max(m, n) eps): a matrix with a larger condition is rank-deficient. */
static double largest_condition(const workspace *d)
{
    const int64_t *size = d->s->in[0].at.size;
    return 1 / ((double)larger(larger(size[0], size[1]), 1) * EPSILON);
}

/* ---- the condition of R ---- */

static void fill_probes(const col_matrix *c)
{
    uint64_t state = CONDITION_SEED;
    for (int64_t j = 0; j < c->cols; j++)
        for (int64_t i = 0; i < PARTS * (int64_t)c->rows; i++)
            ((T *)(c->p + j * c->ld))[i] = (T)condition_probe(&state);
}

/* x = R^-1 x, or R^-T x, or R^-H x */
static void substitute(const col_matrix *r, enum CBLAS_TRANSPOSE how, const col_matrix *x)
{
    BLAS(trsm)
    (CblasColMajor, CblasLeft, CblasUpper, how, CblasNonUnit, x->rows, x->cols, ONE, r->p, r->ld, x->p,
     x->ld);
}

/* x = R x, or R^H x */
static void multiply(const col_matrix *r, enum CBLAS_TRANSPOSE how, const col_matrix *x)
{
    BLAS(trmm)
    (CblasColMajor, CblasLeft, CblasUpper, how, CblasNonUnit, x->rows, x->cols, ONE, r->p, r->ld, x->p,
     x->ld);
}

/* The largest sum of a column, of the magnitudes of the parts of its elements. */
static double largest_column(const col_matrix *c, bool upper_only)
{
    double largest = 0;
    for (int j = 0; j < c->cols; j++) {
        const double size = BLAS_SUM(upper_only ? j + 1 : c->rows, c->p + (int64_t)j * c->ld, 1);
        if (!(size <= largest)) largest = size;
    }
    return largest;
}

/* A quick test: is the condition certainly small? (core/linalg_status.h) */
static duet_status is_regular_quick(workspace *d, const col_matrix *r, bool *is_regular)
{
    col_matrix x;
    TRY(col_matrix_take(d, r->rows, CONDITION_PROBES, &x));
    fill_probes(&x);
    substitute(r, CblasNoTrans, &x);
    const double condition = largest_column(r, true) * largest_column(&x, false) / r->rows;
    *is_regular = CONDITION_CAUTION * condition < largest_condition(d);
    return DUET_OK;
}

/* Divides a vector by its 2-norm, which is returned. */
static double normalise(const col_matrix *x)
{
    const double size = BLAS_NORM2(x->rows, x->p, 1);
    for (int64_t i = 0; i < x->rows; i++) x->p[i] = (element)(x->p[i] / (T)size);
    return size;
}

/* An estimate of the condition in the 2-norm, by iterations with R^H R and its inverse. */
static duet_status condition_of(workspace *d, const col_matrix *r, double *condition)
{
    col_matrix x, y;
    double largest = 0, inverse = 0;
    TRY(col_matrix_take(d, r->rows, 1, &x));
    TRY(col_matrix_take(d, r->rows, 1, &y));
    fill_probes(&x);
    fill_probes(&y);
    normalise(&x);
    normalise(&y);
    for (int k = 0; k < ITERATIONS; k++) {
        multiply(r, CblasNoTrans, &x);
        largest = normalise(&x);
        multiply(r, CblasConjTrans, &x);
        normalise(&x);
        substitute(r, CblasConjTrans, &y);
        inverse = normalise(&y);
        substitute(r, CblasNoTrans, &y);
        inverse = fmax(inverse, normalise(&y));
    }
    *condition = largest * inverse;
    return DUET_OK;
}

/* The iterations may underestimate the condition, but hardly by a factor of 2. */
static duet_status is_regular(workspace *d, const col_matrix *r, bool *is_regular_)
{
    double condition;
    for (int64_t i = 0; i < r->cols; i++)
        if (r->p[i * (r->ld + 1)] == 0) return *is_regular_ = false, DUET_OK;
    *is_regular_ = true;
    if (!r->cols) return DUET_OK;
    TRY(is_regular_quick(d, r, is_regular_));
    if (*is_regular_) return DUET_OK;
    TRY(condition_of(d, r, &condition));
    *is_regular_ = 2 * condition < largest_condition(d);
    return DUET_OK;
}

/* ---- solutions with R ---- */

/* to = a b, or a^H b */
static void product(const col_matrix *a, enum CBLAS_TRANSPOSE how, const col_matrix *b, const col_matrix *to)
{
    BLAS(gemm)
    (CblasColMajor, how, CblasNoTrans, a->rows, b->cols, a->rows, ONE, a->p, a->ld, b->p, b->ld, ZERO, to->p,
     to->ld);
}

/* Divides row i by w[i], or sets it to 0 if w[i] counts as 0. */
static void divide_rows(const workspace *d, const T *w, const col_matrix *c)
{
    for (int64_t j = 0; j < c->cols; j++)
        for (int64_t i = 0; i < c->rows; i++) {
            element *x = c->p + i + j * c->ld;
            *x = (double)w[i] * largest_condition(d) > (double)w[0] ? *x / w[i] : 0;
        }
}

/* The first rows of b = R^+ b, or (R^T)^+ b, by the singular values U diag(w) Vt of R. The latter is
 * the conjugate of U diag(w)^+ Vt conj(b). */
static duet_status solve_by_svd(workspace *d, const col_matrix *r, bool transposed, const col_matrix *b)
{
    col_matrix c, u, vt, x, first = *b;
    T *w;
    TRY(col_matrix_take(d, r->cols, r->cols, &c));
    for (int64_t j = 0; j < c.cols; j++)
        for (int64_t i = 0; i < c.rows; i++) c.p[i + j * c.ld] = i <= j ? r->p[i + j * r->ld] : 0;
    TRY(col_matrix_take(d, c.rows, c.rows, &u));
    TRY(col_matrix_take(d, c.rows, c.rows, &vt));
    TRY(col_matrix_take(d, c.rows, b->cols, &x));
    TRY(values_take(d, c.rows, &w));
    TRY(svd_of(d, &c, w, &u, &vt));
    first.rows = c.rows;
    if (transposed) conjugate(&first);
    product(transposed ? &vt : &u, transposed ? CblasNoTrans : CblasConjTrans, &first, &x);
    divide_rows(d, w, &x);
    product(transposed ? &u : &vt, transposed ? CblasNoTrans : CblasConjTrans, &x, &first);
    if (transposed) conjugate(&first);
    return DUET_OK;
}

static duet_status solve_with_r(workspace *d, const col_matrix *r, bool transposed, const col_matrix *b)
{
    bool is_full;
    col_matrix first = *b, square = *r;
    first.rows = square.rows = r->cols;
    TRY(is_regular(d, &square, &is_full));
    if (!is_full) return solve_by_svd(d, &square, transposed, b);
    substitute(&square, transposed ? CblasTrans : CblasNoTrans, &first);
    return DUET_OK;
}

/* ---- scaling ---- */

/* Divides by 2^exponent, so that the largest element is below 1. */
static int scale_to_one(const col_matrix *c)
{
    int exponent = 0;
    frexp(magnitudes_of(c).largest, &exponent);
    scale_by_power(c, -exponent, false);
    return exponent;
}

static duet_status scale_columns_to_one(workspace *d, const col_matrix *c, int **exponent)
{
    TRY(workspace_take(d, c->cols, sizeof **exponent, exponent));
    for (int64_t j = 0; j < c->cols; j++)
        (*exponent)[j] = scale_to_one(&(const col_matrix){ c->p + j * c->ld, c->rows, 1, c->ld });
    return DUET_OK;
}

static void undo_scaling(const col_matrix *x, int of_matrix, const int *of_column)
{
    for (int64_t j = 0; j < x->cols; j++)
        scale_by_power(&(const col_matrix){ x->p + j * x->ld, x->rows, 1, x->ld }, of_column[j] - of_matrix,
                       false);
}

/* Checks that operand k, in c, is finite, and whether it is near a limit of the type. */
static duet_status limits_check(const workspace *d, int k, const col_matrix *c, bool *near)
{
    const bool large = any_magnitude(c, LARGE);
    if (large) TRY(finite_operand(d, k, c));
    *near |= c->rows && c->cols && (large || !any_magnitude(c, SMALL));
    return DUET_OK;
}

/* The right-hand sides, in a matrix with as many rows as the result has. */
static duet_status right_sides_read(workspace *d, int rows, col_matrix *b)
{
    const layout at = layout_as_matrix(&d->s->in[1].at);
    TRY(col_matrix_take(d, rows, at.size[1], b));
    memset(b->p, 0, (size_t)b->ld * (size_t)b->cols * sizeof(element));
    return col_matrix_fill(b, &at, address(d->f, &d->s->in[1]));
}

/* For a wide A = R^T Q^T the solution of least norm is conj(Q) R^-T b. */
static duet_status solve(workspace *d, bool scale, col_matrix *b)
{
    const layout *l = &d->s->in[0].at;
    const bool tall = l->size[0] >= l->size[1];
    col_matrix a;
    element *tau;
    int of_matrix = 0, *of_column = NULL;
    TRY(col_matrix_read(d, 0, !tall, &a));
    TRY(right_sides_read(d, a.rows, b));
    TRY(limits_check(d, 0, &a, &scale));
    TRY(limits_check(d, 1, b, &scale));
    if (scale) {
        of_matrix = scale_to_one(&a);
        TRY(scale_columns_to_one(d, b, &of_column));
    }
    TRY(qr_of(d, &a, &tau));
    if (tall) TRY(times_q(d, &a, tau, CONJUGATE_TRANSPOSE, b));
    TRY(solve_with_r(d, &a, !tall, b));
    if (!tall) {
        conjugate(b);
        TRY(times_q(d, &a, tau, 'N', b));
        conjugate(b);
    }
    b->rows = (int)l->size[1]; /* the rest are residuals */
    if (of_column) undo_scaling(b, of_matrix, of_column);
    return DUET_OK;
}

duet_status LINEAR(least_squares)(workspace *d)
{
    col_matrix x;
    TRY(solve(d, false, &x));
    if (!is_finite_matrix(&x)) {
        workspace_clear(d);
        TRY(solve(d, true, &x));
        TRY(finite_result(d, &x));
    }
    return col_matrix_write(d, &x, false, 0);
}
