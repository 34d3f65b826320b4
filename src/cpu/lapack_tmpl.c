/* lapack_tmpl.c - linear algebra operators with one result, by LAPACKE. Template.
 *
 * LAPACK works in place on column-major matrices, so operands are copied (lapack_workspace.h).
 * Where LAPACK's result for the transpose is the transpose of ours, operands and result are copied
 * without transposing. LAPACK uses OpenBLAS's threads. */
#include "lapack_workspace.h"

/* ---- by LU of the transpose, whose columns are our rows ---- */

static duet_status lu_regular(workspace *d, factors *f)
{
    col_matrix a;
    TRY(operand_read(d, 0, true, &a));
    TRY(lu_of(d, &a, f));
    if (f->large) TRY(finite_result(d, &a));
    if (f->zero > 0) return linalg_failed(d->s, LINALG_PIVOT, f->zero);
    return DUET_OK;
}

static duet_status inverse(workspace *d)
{
    factors f;
    int info;
    TRY(lu_regular(d, &f));
    WITH_WORK(d, info, LAPACK(getri)(COL, f.lu.rows, f.lu.p, f.lu.ld, f.pivot, work, length));
    if (info > 0) return linalg_failed(d->s, LINALG_PIVOT, info);
    scale_by_power(&f.lu, -f.exponent, false);
    TRY(finite_result(d, &f.lu));
    return col_matrix_write(d, &f.lu, true, 0);
}

static duet_status det(workspace *d)
{
    determinant x;
    TRY(determinant_read(d, &x));
    number_write(d, 0, x.re, x.im, x.exponent);
    return DUET_OK;
}

static duet_status logdet(workspace *d)
{
    determinant x;
    TRY(determinant_read(d, &x));
    *(T *)address(d->f, &d->s->out[0]) = (T)x.log;
    return DUET_OK;
}

static duet_status solve_plain(workspace *d)
{
    factors f;
    col_matrix b;
    TRY(lu_regular(d, &f));
    TRY(operand_read(d, 1, false, &b));
    scale_by_power(&b, -f.exponent, false);
    LAPACK(getrs)(COL, 'T', f.lu.rows, b.cols, f.lu.p, f.lu.ld, f.pivot, b.p, b.ld);
    TRY(finite_result(d, &b));
    return col_matrix_write(d, &b, false, 0);
}

#if defined T_f64 && !defined PAIRS
/* The sum of the magnitudes of a column. */
static double column_size(const col_matrix *c, int j)
{
    double sum = 0;
    for (int64_t i = 0; i < c->rows; i++) sum += fabs(c->p[i + (int64_t)j * c->ld]);
    return sum;
}

/* Is the residual b - A x as small as documented? It overwrites b. */
static bool is_residual_small(const col_matrix *a, const col_matrix *x, const col_matrix *b)
{
    double size = 0;
    bool is_small = true;
    BLAS(gemm)
    (CblasColMajor, CblasNoTrans, CblasNoTrans, b->rows, b->cols, a->cols, -1, a->p, a->ld, x->p, x->ld, 1,
     b->p, b->ld);
    for (int j = 0; j < a->cols; j++) size = fmax(size, column_size(a, j));
    for (int j = 0; j < b->cols; j++)
        is_small &= column_size(b, j) <= RESIDUAL_LIMIT * size * column_size(x, j);
    return is_small;
}

/* Releases the workspace of the refinement and solves in f64. */
static duet_status solve_without_refinement(workspace *d)
{
    workspace_clear(d);
    return solve_plain(d);
}

/* Factors in f32 and refines in f64. LAPACK continues in f64 if this does not converge.
 *
 * LAPACK also reports convergence for infinite results, so the residual is checked. It leaves its
 * operands unchanged. */
static duet_status solve_refined(workspace *d)
{
    col_matrix a, b, x;
    lapack_int *pivot, iterations;
    double *work;
    float *narrow;
    TRY(operand_read(d, 0, false, &a));
    TRY(operand_read(d, 1, false, &b));
    if (any_magnitude(&a, LARGE) || !any_magnitude(&a, SMALL)) return solve_without_refinement(d);
    TRY(col_matrix_take(d, b.rows, b.cols, &x));
    TRY(workspace_take(d, a.rows, sizeof *pivot, &pivot));
    TRY(workspace_take(d, (int64_t)b.rows * b.cols, sizeof *work, &work));
    TRY(workspace_take(d, (int64_t)a.rows * (a.rows + b.cols), sizeof *narrow, &narrow));
    const lapack_int info = LAPACKE_dsgesv_work(COL, a.rows, b.cols, a.p, a.ld, pivot, b.p, b.ld, x.p, x.ld,
                                                work, narrow, &iterations);
    if (info > 0) return linalg_failed(d->s, LINALG_PIVOT, info);
    if (!is_finite_matrix(&x) || (iterations >= 0 && !is_residual_small(&a, &x, &b)))
        return solve_without_refinement(d);
    return col_matrix_write(d, &x, false, 0);
}
#else
static duet_status solve_refined(workspace *d)
{
    return fail(DUET_UNSUPPORTED, "refinement is implemented for f64 only");
}
#endif

static duet_status solve(workspace *d)
{
    if (d->s->attr.solver.refine) return solve_refined(d);
    return solve_plain(d);
}

/* ---- symmetric and Hermitian matrices, singular values ---- */

/* A row of the factor with elements that are not finite has a diagonal that is not finite. */
static bool diagonal_finite(const col_matrix *c)
{
    bool finite = true;
    for (int64_t i = 0; i < c->cols; i++) finite &= are_finite(c->p + i * (c->ld + 1), 1);
    return finite;
}

static duet_status cholesky(workspace *d)
{
    col_matrix a;
    TRY(symmetric_read(d, &a));
    const int info = (int)LAPACK(potrf)(COL, 'U', a.rows, a.p, a.ld);
    if (info > 0) return linalg_failed(d->s, LINALG_MINOR, info);
    if (!diagonal_finite(&a)) return linalg_failed(d->s, LINALG_RESULT, 0);
    return col_matrix_write(d, &a, true, 0);
}

static duet_status eigenvalues(workspace *d)
{
    col_matrix a;
    T *w;
    TRY(symmetric_read(d, &a));
    TRY(values_take(d, a.rows, &w));
    TRY(eigen_of(d, &a, false, w));
    TRY(finite_result_values(d, w, a.rows));
    return values_write(d, w, a.rows, 0);
}

static duet_status singular_values(workspace *d)
{
    col_matrix a;
    T *w;
    TRY(operand_read(d, 0, true, &a));
    const int64_t k = SMALLER(a.rows, a.cols);
    TRY(values_take(d, k, &w));
    TRY(svd_of(d, &a, w, NULL, NULL));
    TRY(finite_result_values(d, w, k));
    return values_write(d, w, k, 0);
}

/* ---- least squares: by QR of a tall matrix, or of the transpose of a wide one ---- */

static duet_status back_substitute(const workspace *d, const col_matrix *r, char how, const col_matrix *b,
                                   int n)
{
    const int info = (int)LAPACK(trtrs)(COL, 'U', how, 'N', n, b->cols, r->p, r->ld, b->p, b->ld);
    if (info > 0) return linalg_failed(d->s, LINALG_RANK, info);
    return DUET_OK;
}

static duet_status times_q(workspace *d, const col_matrix *q, const element *tau, char how,
                           const col_matrix *b)
{
    int info;
    WITH_WORK(d, info,
              LAPACK(TIMES_Q)(COL, 'L', how, b->rows, b->cols, q->cols, q->p, q->ld, tau, b->p, b->ld, work,
                              length));
    if (info) return fail(DUET_DEVICE_ERROR, "LAPACK: " NAMED(TIMES_Q) " ended with %d", info);
    return DUET_OK;
}

/* The right-hand sides, in a matrix with as many rows as the result has. */
static duet_status right_sides_read(workspace *d, int rows, col_matrix *b)
{
    const layout at = layout_as_matrix(&d->s->in[1].at);
    TRY(col_matrix_take(d, rows, at.size[1], b));
    memset(b->p, 0, (size_t)b->ld * (size_t)b->cols * sizeof(element));
    TRY(col_matrix_fill(b, &at, address(d->f, &d->s->in[1])));
    return finite_operand(d, 1, b);
}

/* For a wide A = R^T Q^T the solution of least norm is conj(Q) R^-T b. */
static duet_status least_squares(workspace *d)
{
    const layout *l = &d->s->in[0].at;
    const bool tall = l->size[0] >= l->size[1];
    col_matrix a, b;
    element *tau;
    TRY(operand_read(d, 0, !tall, &a));
    TRY(right_sides_read(d, a.rows, &b));
    TRY(qr_of(d, &a, &tau));
    if (tall) TRY(times_q(d, &a, tau, CONJUGATE_TRANSPOSE, &b));
    TRY(back_substitute(d, &a, tall ? 'N' : 'T', &b, a.cols));
    if (!tall) {
        conjugate(&b);
        TRY(times_q(d, &a, tau, 'N', &b));
        conjugate(&b);
    }
    TRY(finite_result(d, &b));
    return col_matrix_write(d, &b, false, 0);
}

/* ---- dispatch ---- */

static duet_status run(workspace *d)
{
    switch (d->s->kernel) {
    case OP_inv: return inverse(d);
    case OP_det: return det(d);
    case OP_logdet: return logdet(d);
    case OP_cholesky: return cholesky(d);
    case OP_eigvalsh: return eigenvalues(d);
    case OP_svdvals: return singular_values(d);
    case OP_solve: return solve(d);
    case OP_solve_triangular: return LINEAR(solve_triangular)(d);
    case OP_lstsq: return least_squares(d);
    default: return LINEAR(run_factor)(d);
    }
}

duet_status LINEAR(run_linear)(const step *s, const frame *f)
{
    workspace d = { .s = s, .f = f };
    const duet_status r = run(&d);
    workspace_clear(&d);
    cpu_blas_used();
    return r;
}
