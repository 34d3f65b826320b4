/* lapack_tmpl.c - linear algebra operators with one result, for one matrix, by LAPACKE. Template. Least
 * squares and triangular systems have files of their own.
 *
 * LAPACK works in place on column-major matrices, so operands are copied (lapack_workspace.h).
 * Where LAPACK's result for the transpose is the transpose of ours, operands and result are copied
 * without transposing. LAPACK uses OpenBLAS's threads. */
#include "lapack_factors.h"

/* ---- by LU of the transpose, whose columns are our rows ---- */

/* The status for a pivot of 0; or OK and *is_accurate false, if growth may have caused the 0. */
static duet_status zero_pivot(workspace *d, const factors *f, bool *is_accurate)
{
    TRY(growth_is_small(d, f, GROWTH_LIMIT, is_accurate));
    return *is_accurate ? linalg_failed(d->s, LINALG_PIVOT, f->zero) : DUET_OK;
}

static duet_status inverse(workspace *d)
{
    factors f;
    bool is_accurate;
    int info;
    TRY(lu_read(d, &f));
    if (f.zero > 0) TRY(zero_pivot(d, &f, &is_accurate));
    else TRY(growth_is_small(d, &f, GROWTH_LIMIT, &is_accurate));
    if (is_accurate) {
        WITH_WORK(d, info, LAPACK(getri)(COL, f.lu.rows, f.lu.p, f.lu.ld, f.pivot, work, length));
        if (info > 0) return linalg_failed(d->s, LINALG_PIVOT, info);
        scale_by_power(&f.lu, -f.exponent, false);
        if (is_finite_matrix(&f.lu)) return col_matrix_write(d, &f.lu, true, 0);
    }
    workspace_clear(d);
    return LINEAR(solve_equilibrated)(d);
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
    *(T *)address(d->f, &d->s->out[0]) = (T)determinant_log(&x);
    return DUET_OK;
}

/* Operand 0, in place if BLAS can read it: column-major, or *transposed. */
static duet_status matrix_open(workspace *d, col_matrix *a, bool *transposed)
{
    const layout *l = &d->s->in[0].at;
    const int64_t n = l->size[0];
    *transposed = l->stride[1] == 1;
    const int64_t pitch = l->stride[!*transposed];
    *a = (col_matrix){ address(d->f, &d->s->in[0]), (int)n, (int)n, (int)pitch };
    if (l->stride[*transposed] == 1 && pitch >= n && pitch >= 1 && pitch <= INT_MAX) return DUET_OK;
    *transposed = false;
    return col_matrix_read(d, 0, false, a);
}

/* Is the residual b - A x as small as documented? `size` is that of A; infinite if unknown. */
static duet_status is_residual_small(workspace *d, double size, const col_matrix *x, bool *is_small)
{
    col_matrix a, rest;
    bool transposed;
    *is_small = is_finite_matrix(x);
    if (!*is_small || !x->rows) return DUET_OK;
    TRY(matrix_open(d, &a, &transposed));
    TRY(col_matrix_read(d, 1, false, &rest));
    BLAS(gemm)
    (CblasColMajor, blas_op(transposed), CblasNoTrans, x->rows, x->cols, x->rows, MINUS_ONE, a.p, a.ld, x->p,
     x->ld, ONE, rest.p, rest.ld);
    for (int j = 0; j < x->cols && *is_small; j++) {
        const double limit = RESIDUAL_LIMIT * EPSILON * size * column_size(x, j);
        *is_small = column_size(&rest, j) <= limit && limit < INFINITY;
    }
    return DUET_OK;
}

/* Residuals cost as much as their solutions. They are computed only if U has grown. */
static duet_status is_solution_accurate(workspace *d, const factors *f, const col_matrix *x,
                                        bool *is_accurate)
{
    const double parts_to_magnitude = PARTS > 1 ? 0.7 : 1;
    TRY(growth_is_small(d, f, SOLVE_GROWTH_LIMIT, is_accurate));
    if (*is_accurate && is_finite_matrix(x)) return DUET_OK;
    return is_residual_small(d, parts_to_magnitude * ldexp(f->size, f->exponent), x, is_accurate);
}

static duet_status solve_plain(workspace *d)
{
    factors f;
    col_matrix b;
    bool is_accurate = false;
    TRY(lu_read(d, &f));
    TRY(operand_read(d, 1, false, &b));
    if (f.zero > 0) TRY(zero_pivot(d, &f, &is_accurate));
    else if (!f.graded) {
        scale_by_power(&b, -f.exponent, false);
        LAPACK(getrs)(COL, 'T', f.lu.rows, b.cols, f.lu.p, f.lu.ld, f.pivot, b.p, b.ld);
        TRY(is_solution_accurate(d, &f, &b, &is_accurate));
    }
    if (is_accurate) return col_matrix_write(d, &b, false, 0);
    workspace_clear(d);
    return LINEAR(solve_equilibrated)(d);
}

#ifdef T_f64
#ifdef PAIRS
#define REFINED_SOLUTION(a, b, pivot, x, work, narrow, rwork, iterations)                                    \
    LAPACKE_zcgesv_work(COL, (a)->rows, (b)->cols, (a)->p, (a)->ld, pivot, (b)->p, (b)->ld, (x)->p, (x)->ld, \
                        work, narrow, rwork, iterations)
typedef float _Complex narrow_element;
#else
#define REFINED_SOLUTION(a, b, pivot, x, work, narrow, rwork, iterations)                                    \
    LAPACKE_dsgesv_work(COL, (a)->rows, (b)->cols, (a)->p, (a)->ld, pivot, (b)->p, (b)->ld, (x)->p, (x)->ld, \
                        work, narrow, iterations)
typedef float narrow_element;
#endif

/* Releases the workspace of the refinement and solves in f64. */
static duet_status solve_without_refinement(workspace *d)
{
    workspace_clear(d);
    return solve_plain(d);
}

/* Factors in f32 (c64) and refines in f64 (c128). LAPACK continues in f64 if this does not converge.
 *
 * LAPACK also reports convergence for infinite results, and its LU in f64 may have grown. So the
 * residual is checked. */
static duet_status solve_refined(workspace *d)
{
    col_matrix a, b, x;
    lapack_int *pivot, iterations;
    double size = 0, *rwork;
    element *work;
    narrow_element *narrow;
    bool is_small = false;
    TRY(operand_read(d, 0, false, &a));
    TRY(operand_read(d, 1, false, &b));
    if (any_magnitude(&a, LARGE) || !any_magnitude(&a, SMALL)) return solve_without_refinement(d);
    for (int j = 0; j < a.cols; j++) size = fmax(size, column_size(&a, j));
    TRY(col_matrix_take(d, b.rows, b.cols, &x));
    TRY(workspace_take(d, a.rows, sizeof *pivot, &pivot));
    TRY(workspace_take(d, (int64_t)b.rows * b.cols, sizeof *work, &work));
    TRY(workspace_take(d, (int64_t)a.rows * (a.rows + b.cols), sizeof *narrow, &narrow));
    TRY(values_take(d, a.rows, &rwork));
    const lapack_int info = REFINED_SOLUTION(&a, &b, pivot, &x, work, narrow, rwork, &iterations);
    if (info == 0) TRY(is_residual_small(d, size, &x, &is_small));
    if (!is_small) return solve_without_refinement(d);
    return col_matrix_write(d, &x, false, 0);
}
#else
static duet_status solve_refined(workspace *d)
{
    return fail(DUET_UNSUPPORTED, "refinement is implemented for f64 and c128 only");
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

/* ---- dispatch ---- */

duet_status LINEAR(run_matrix)(workspace *d)
{
    switch (d->s->kernel) {
    case OP_inv: return inverse(d);
    case OP_det: return det(d);
    case OP_logdet: return logdet(d);
    case OP_cholesky: return cholesky(d);
    case OP_eigvalsh: return eigenvalues(d);
    case OP_eigvals: return LINEAR(eigen_general)(d, false);
    case OP_expm: return LINEAR(exponential)(d);
    case OP_svdvals: return singular_values(d);
    case OP_solve: return solve(d);
    case OP_solve_triangular: return LINEAR(solve_triangular)(d);
    case OP_lstsq: return LINEAR(least_squares)(d);
    default: return LINEAR(run_factor)(d);
    }
}
