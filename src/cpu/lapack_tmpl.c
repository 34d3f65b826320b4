/* lapack_tmpl.c - solvers: operators of linear algebra with one result, by LAPACKE. Operands are copied by columns, since LAPACK works in their
 * place; where its result of the transpose is the transpose of ours, they and the result are copied as they lie. */
#include "lapack_workspace.h"
#include "triangle.h"

/* ---- by LU: of the transpose, whose columns are our rows ---- */

static duet_status lu_regular(desk *d, factors *f)
{
    columns a;
    TRY(operand_read(d, 0, true, &a));
    TRY(lu_of(d, &a, f));
    if (f->large) TRY(finite_result(d, &a));
    return f->zero > 0 ? linalg_failed(d->s, LINALG_PIVOT, f->zero) : DUET_OK;
}

static duet_status inverse(desk *d)
{
    factors f;
    int info;
    TRY(lu_regular(d, &f));
    WITH_WORK(d, info, LAPACK(getri)(COL, f.lu.rows, f.lu.p, f.lu.ld, f.pivot, work, length));
    if (info > 0) return linalg_failed(d->s, LINALG_PIVOT, info);
    columns_times_power(&f.lu, -f.exponent, false);
    TRY(finite_result(d, &f.lu));
    return columns_write(d, &f.lu, true, 0);
}

static duet_status det(desk *d)
{
    determinant x;
    TRY(determinant_read(d, &x));
    number_write(d, 0, x.re, x.im, x.exponent);
    return DUET_OK;
}

static duet_status logdet(desk *d)
{
    determinant x;
    TRY(determinant_read(d, &x));
    *(T *)address(d->f, &d->s->out[0]) = (T)x.log;
    return DUET_OK;
}

static duet_status solve_plain(desk *d)
{
    factors f;
    columns b;
    TRY(lu_regular(d, &f));
    TRY(operand_read(d, 1, false, &b));
    columns_times_power(&b, -f.exponent, false);
    LAPACK(getrs)(COL, 'T', f.lu.rows, b.cols, f.lu.p, f.lu.ld, f.pivot, b.p, b.ld);
    TRY(finite_result(d, &b));
    return columns_write(d, &b, false, 0);
}

#if defined T_f64 && !defined PAIRS
static double column_size(const columns *c, int j)
{
    double sum = 0;
    for (int64_t i = 0; i < c->rows; i++) sum += fabs(c->p[i + (int64_t)j * c->ld]);
    return sum;
}

/* Is b - A x, which b becomes, as small as promised? */
static bool rest_small(const columns *a, const columns *x, const columns *b)
{
    double size = 0;
    bool all = true;
    BLAS(gemm)
    (CblasColMajor, CblasNoTrans, CblasNoTrans, b->rows, b->cols, a->cols, -1, a->p, a->ld, x->p, x->ld, 1,
     b->p, b->ld);
    for (int j = 0; j < a->cols; j++) size = fmax(size, column_size(a, j));
    for (int j = 0; j < b->cols; j++) all &= column_size(b, j) <= REST_MOST * size * column_size(x, j);
    return all;
}

/* In f64, without what refinement has taken. */
static duet_status solve_anew(desk *d)
{
    workspace_clear(d);
    return solve_plain(d);
}

/* Factored in f32, refined in f64; where that does not converge LAPACK goes on in f64. It says that it has converged of what is
 * infinite too, so its word is held against the rest; its operands are then as they were. */
static duet_status solve_refined(desk *d)
{
    columns a, b, x;
    lapack_int *pivot, turns;
    double *work;
    float *narrow;
    TRY(operand_read(d, 0, false, &a));
    TRY(operand_read(d, 1, false, &b));
    if (columns_reach(&a, LARGE) || !columns_reach(&a, SMALL)) return solve_anew(d);
    TRY(columns_take(d, b.rows, b.cols, &x));
    TRY(workspace_take(d, a.rows, sizeof *pivot, &pivot));
    TRY(workspace_take(d, (int64_t)b.rows * b.cols, sizeof *work, &work));
    TRY(workspace_take(d, (int64_t)a.rows * (a.rows + b.cols), sizeof *narrow, &narrow));
    const lapack_int info = LAPACKE_dsgesv_work(COL, a.rows, b.cols, a.p, a.ld, pivot, b.p, b.ld, x.p, x.ld,
                                                work, narrow, &turns);
    if (info > 0) return linalg_failed(d->s, LINALG_PIVOT, info);
    if (!columns_finite(&x) || (turns >= 0 && !rest_small(&a, &x, &b))) return solve_anew(d);
    return columns_write(d, &x, false, 0);
}
#else
static duet_status solve_refined(desk *d) { return (void)d, fail(DUET_UNSUPPORTED, "refinement is for f64"); }
#endif

static duet_status solve(desk *d) { return d->s->attr.solver.refine ? solve_refined(d) : solve_plain(d); }

/* ---- symmetric and Hermitian matrices, singular values ---- */

/* Whatever is not finite in a row of the factor has made the row's diagonal so. */
static bool diagonal_finite(const columns *c)
{
    bool all = true;
    for (int64_t i = 0; i < c->cols; i++) all &= finite_run(c->p + i * (c->ld + 1), 1);
    return all;
}

static duet_status cholesky(desk *d)
{
    columns a;
    TRY(symmetric_read(d, &a));
    const int info = (int)LAPACK(potrf)(COL, 'U', a.rows, a.p, a.ld);
    if (info > 0) return linalg_failed(d->s, LINALG_MINOR, info);
    if (!diagonal_finite(&a)) return linalg_failed(d->s, LINALG_RESULT, 0);
    return columns_write(d, &a, true, 0);
}

static duet_status eigenvalues(desk *d)
{
    columns a;
    T *w;
    TRY(symmetric_read(d, &a));
    TRY(values_take(d, a.rows, &w));
    TRY(eigen_of(d, &a, false, w));
    TRY(finite_result_values(d, w, a.rows));
    return values_write(d, w, a.rows, 0);
}

static duet_status singular_values(desk *d)
{
    columns a;
    T *w;
    TRY(operand_read(d, 0, true, &a));
    const int64_t k = SMALLER(a.rows, a.cols);
    TRY(values_take(d, k, &w));
    TRY(svd_of(d, &a, w, NULL, NULL));
    TRY(finite_result_values(d, w, k));
    return values_write(d, w, k, 0);
}

/* ---- triangular systems ---- */

static duet_status triangle_open(desk *d, const triangle *t, columns *a)
{
    const int n = (int)d->s->in[0].at.size[0];
    *a = (columns){ address(d->f, &d->s->in[0]), n, n, (int)t->pitch };
    return t->pitch ? DUET_OK : columns_read(d, 0, true, a);
}

static bool diagonal_large(const columns *a)
{
    bool any = false;
    for (int64_t i = 0; i < a->cols; i++)
        any |= values_reach((const T *)(a->p + i * (a->ld + 1)), PARTS, LARGE);
    return any;
}

/* OpenBLAS's reciprocals of complex numbers near the limit are 0, in silence: both sides are made smaller then. */
static duet_status triangle_tame(desk *d, const triangle *t, columns *a, const columns *b)
{
    columns copy;
    const layout from = columns_layout(a, d->s->in[0].at.type);
    if (PARTS < 2 || t->unit || !diagonal_large(a)) return DUET_OK;
    TRY(columns_take(d, a->rows, a->cols, &copy));
    TRY(columns_fill(&copy, &from, a->p));
    columns_times_power(&copy, -4, false), columns_times_power(b, -4, false);
    *a = copy;
    return DUET_OK;
}

/* Is what is read of it finite, and its diagonal without zeros? */
static duet_status triangle_check(const desk *d, const triangle *t, const columns *a)
{
    bool all = true;
    int zero = 0;
    for (int64_t j = 0; j < a->cols; j++) {
        const element *column = a->p + j * a->ld;
        const int64_t from = t->lower ? j + t->unit : 0, upto = t->lower ? a->rows : j + !t->unit;
        all &= finite_run(column + from, upto - from);
        if (!zero && !t->unit && column[j] == 0) zero = (int)j + 1;
    }
    if (!all) return linalg_failed(d->s, LINALG_OPERAND, 1);
    return zero ? linalg_failed(d->s, LINALG_PIVOT, zero) : DUET_OK;
}

static duet_status solve_triangular(desk *d)
{
    const triangle t = step_triangle(d->s);
    columns a, b;
    TRY(triangle_open(d, &t, &a));
    TRY(triangle_check(d, &t, &a));
    TRY(operand_read(d, 1, false, &b));
    TRY(triangle_tame(d, &t, &a, &b));
    BLAS(trsm)
    (CblasColMajor, CblasLeft, t.lower ? CblasLower : CblasUpper, t.transposed ? CblasTrans : CblasNoTrans,
     t.unit ? CblasUnit : CblasNonUnit, b.rows, b.cols, ONE, a.p, a.ld, b.p, b.ld);
    TRY(finite_result(d, &b));
    return columns_write(d, &b, false, 0);
}

/* ---- least squares: by QR of the matrix, or, of one with more columns than rows, of its transpose ---- */

static duet_status back_substitute(const desk *d, const columns *r, char how, const columns *b, int n)
{
    const int info = (int)LAPACK(trtrs)(COL, 'U', how, 'N', n, b->cols, r->p, r->ld, b->p, b->ld);
    return info > 0 ? linalg_failed(d->s, LINALG_RANK, info) : DUET_OK;
}

static duet_status times_q(desk *d, const columns *q, const element *tau, char how, const columns *b)
{
    int info;
    WITH_WORK(d, info,
              LAPACK(TIMES_Q)(COL, 'L', how, b->rows, b->cols, q->cols, q->p, q->ld, tau, b->p, b->ld, work,
                              length));
    return info ? fail(DUET_DEVICE_ERROR, "LAPACK: " NAMED(TIMES_Q) " ended with %d", info) : DUET_OK;
}

/* The right-hand sides, with room for as many rows as results have. */
static duet_status sides_read(desk *d, int rows, columns *b)
{
    const layout at = as_columns(&d->s->in[1].at);
    TRY(columns_take(d, rows, at.size[1], b));
    memset(b->p, 0, (size_t)b->ld * (size_t)b->cols * sizeof(element));
    TRY(columns_fill(b, &at, address(d->f, &d->s->in[1])));
    return finite_operand(d, 1, b);
}

/* Of a wide A = R^T Q^T the least x is conj(Q) R^-T b. */
static duet_status least_squares(desk *d)
{
    const layout *l = &d->s->in[0].at;
    const bool tall = l->size[0] >= l->size[1];
    columns a, b;
    element *tau;
    TRY(operand_read(d, 0, !tall, &a));
    TRY(sides_read(d, a.rows, &b));
    TRY(qr_of(d, &a, &tau));
    if (tall) TRY(times_q(d, &a, tau, TURN_BACK, &b));
    TRY(back_substitute(d, &a, tall ? 'N' : 'T', &b, a.cols));
    if (!tall) {
        conjugate(&b);
        TRY(times_q(d, &a, tau, 'N', &b));
        conjugate(&b);
    }
    TRY(finite_result(d, &b));
    return columns_write(d, &b, false, 0);
}

/* ---- the rows ---- */

static duet_status run(desk *d)
{
    switch (d->s->kernel) {
    case OP_inv: return inverse(d);
    case OP_det: return det(d);
    case OP_logdet: return logdet(d);
    case OP_cholesky: return cholesky(d);
    case OP_eigvalsh: return eigenvalues(d);
    case OP_svdvals: return singular_values(d);
    case OP_solve: return solve(d);
    case OP_solve_triangular: return solve_triangular(d);
    case OP_lstsq: return least_squares(d);
    default: return LINEAR(run_factor)(d);
    }
}

duet_status LINEAR(run_linear)(const step *s, const frame *f)
{
    desk d = { .s = s, .f = f };
    const duet_status r = run(&d);
    workspace_clear(&d);
    cpu_blas_used();
    return r;
}
