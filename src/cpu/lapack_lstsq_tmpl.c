/* lapack_lstsq_tmpl.c - least squares by QR of a tall matrix, or of the transpose of a wide one.
 * Template.
 *
 * R is triangular and square. If its condition is not certainly below 1 / (max(m, n) eps), its
 * singular values decide: those of at most max(m, n) eps times the largest one count as 0. The
 * solution of least norm follows from the rest, as in numpy.linalg.lstsq. */
#include "lapack_factors.h"

enum { ITERATIONS = 2 };

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

/* Is the condition certainly small? x has the solutions of the probes (core/linalg_status.h). If they do
 * not suffice, iterations decide. Those may underestimate the condition, but hardly by a factor of 2. */
static duet_status is_regular(workspace *d, const col_matrix *r, const col_matrix *x, bool *is_small)
{
    const double quick = largest_column(r, true) * largest_column(x, false) / r->rows;
    double condition;
    *is_small = CONDITION_CAUTION * quick < largest_condition(d);
    if (*is_small) return DUET_OK;
    TRY(condition_of(d, r, &condition));
    *is_small = 2 * condition < largest_condition(d);
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
    if (r->cols > (PARTS > 1 ? COMPLEX_SVD_MAX : SVD_MAX)) return linalg_failed(d->s, LINALG_RANK, 0);
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

/* The first rows of b = R^-1 b, or R^-T b. Memory of b has CONDITION_PROBES more columns, to solve for the
 * probes in the same call. If R may be rank-deficient, *is_full is false, and b is lost. */
static duet_status solve_by_substitution(workspace *d, const col_matrix *r, bool transposed,
                                         const col_matrix *b, bool *is_full)
{
    col_matrix all = *b, probes = *b;
    all.rows = probes.rows = r->rows;
    probes.cols = CONDITION_PROBES;
    probes.p += (int64_t)b->cols * b->ld;
    all.cols += CONDITION_PROBES;
    *is_full = true;
    if (!r->rows) return DUET_OK;
    fill_probes(&probes);
    substitute(r, transposed ? CblasTrans : CblasNoTrans, &all);
    return is_regular(d, r, &probes, is_full);
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

/* The right-hand sides, in a matrix with as many rows as the result has, and with memory for probes. */
static duet_status right_sides_read(workspace *d, int rows, col_matrix *b)
{
    const layout at = layout_as_matrix(&d->s->in[1].at);
    TRY(col_matrix_take(d, rows, at.size[1] + CONDITION_PROBES, b));
    b->cols -= CONDITION_PROBES;
    memset(b->p, 0, (size_t)b->ld * (size_t)b->cols * sizeof(element));
    return col_matrix_fill(b, &at, address(d->f, &d->s->in[1]));
}

typedef struct method {
    bool scale;  /* both operands, by powers of two */
    bool by_svd; /* with the singular values of R */
    bool done;   /* false: try again with the other members changed */
} method;

/* For a wide A = R^T Q^T the solution of least norm is conj(Q) R^-T b. */
static duet_status solve(workspace *d, method *m, col_matrix *b)
{
    const layout *l = &d->s->in[0].at;
    const bool tall = l->size[0] >= l->size[1];
    col_matrix a;
    element *tau;
    int of_matrix = 0, *of_column = NULL;
    TRY(col_matrix_read(d, 0, !tall, &a));
    TRY(right_sides_read(d, a.rows, b));
    TRY(limits_check(d, 0, &a, &m->scale));
    TRY(limits_check(d, 1, b, &m->scale));
    if (m->scale) {
        of_matrix = scale_to_one(&a);
        TRY(scale_columns_to_one(d, b, &of_column));
    }
    TRY(qr_of(d, &a, &tau));
    if (tall) TRY(times_q(d, &a, tau, CONJUGATE_TRANSPOSE, b));
    col_matrix r = a;
    r.rows = a.cols;
    m->done = true;
    if (m->by_svd) TRY(solve_by_svd(d, &r, !tall, b));
    else TRY(solve_by_substitution(d, &r, !tall, b, &m->done));
    if (!m->done) return m->by_svd = true, DUET_OK;
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
    method m = { 0 };
    while (!m.done) {
        workspace_clear(d);
        TRY(solve(d, &m, &x));
        if (!m.done || is_finite_matrix(&x)) continue;
        if (m.scale) return linalg_failed(d->s, LINALG_RESULT, 0);
        m = (method){ .scale = true, .by_svd = m.by_svd };
    }
    return col_matrix_write(d, &x, false, 0);
}
