/* linear_tmpl.c - solvers: operators of linear algebra with one result, by LAPACKE. Operands are copied by columns, since LAPACK works in their
 * place; where its result of the transpose is the transpose of ours, they and the result are copied as they lie. */
#include "columns.h"
#include "triangle.h"

/* ---- by LU: of the transpose, whose columns are our rows ---- */

static duet_status lu_regular(desk *d, columns *a, lapack_int **pivot)
{
    int info;
    TRY(operand_read(d, 0, true, a));
    TRY(lu_of(d, a, pivot, &info));
    return info > 0 ? verdict(d->s, VERDICT_PIVOT, info) : DUET_OK;
}

static duet_status inverse(desk *d)
{
    columns a;
    lapack_int *pivot;
    int info;
    TRY(lu_regular(d, &a, &pivot));
    WITH_WORK(d, info, LAPACK(getri)(COL, a.rows, a.p, a.ld, pivot, work, length));
    if (info > 0) return verdict(d->s, VERDICT_PIVOT, info);
    TRY(finite_result(d, &a));
    return columns_write(d, &a, true, 0);
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

#if defined T_f64 && !defined PAIRS
/* Factored in f32, refined in f64; where that does not converge LAPACK goes on in f64. */
static duet_status solve_refined(desk *d)
{
    columns a, b, x;
    lapack_int *pivot, turns;
    double *work;
    float *narrow;
    TRY(operand_read(d, 0, false, &a));
    TRY(operand_read(d, 1, false, &b));
    TRY(columns_take(d, b.rows, b.cols, &x));
    TRY(desk_take(d, a.rows, sizeof *pivot, &pivot));
    TRY(desk_take(d, (int64_t)b.rows * b.cols, sizeof *work, &work));
    TRY(desk_take(d, (int64_t)a.rows * (a.rows + b.cols), sizeof *narrow, &narrow));
    const lapack_int info =
        LAPACKE_dsgesv_work(COL, a.rows, b.cols, a.p, a.ld, pivot, b.p, b.ld, x.p, x.ld, work, narrow, &turns);
    if (info > 0) return verdict(d->s, VERDICT_PIVOT, info);
    TRY(finite_result(d, &x));
    return columns_write(d, &x, false, 0);
}
#else
static duet_status solve_refined(desk *d) { return (void)d, fail(DUET_UNSUPPORTED, "refinement is for f64"); }
#endif

static duet_status solve(desk *d)
{
    columns a, b;
    lapack_int *pivot;
    if (d->s->attr[0]) return solve_refined(d);
    TRY(lu_regular(d, &a, &pivot));
    TRY(operand_read(d, 1, false, &b));
    LAPACK(getrs)(COL, 'T', a.rows, b.cols, a.p, a.ld, pivot, b.p, b.ld);
    TRY(finite_result(d, &b));
    return columns_write(d, &b, false, 0);
}

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
    if (info > 0) return verdict(d->s, VERDICT_MINOR, info);
    if (!diagonal_finite(&a)) return verdict(d->s, VERDICT_RESULT, 0);
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
    if (!all) return verdict(d->s, VERDICT_OPERAND, 1);
    return zero ? verdict(d->s, VERDICT_PIVOT, zero) : DUET_OK;
}

static duet_status solve_triangular(desk *d)
{
    const triangle t = step_triangle(d->s);
    columns a, b;
    TRY(triangle_open(d, &t, &a));
    TRY(triangle_check(d, &t, &a));
    TRY(operand_read(d, 1, false, &b));
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
    return info > 0 ? verdict(d->s, VERDICT_RANK, info) : DUET_OK;
}

static duet_status times_q(desk *d, const columns *q, const element *tau, char how, const columns *b)
{
    int info;
    WITH_WORK(d, info, LAPACK(TIMES_Q)(COL, 'L', how, b->rows, b->cols, q->cols, q->p, q->ld, tau, b->p, b->ld, work, length));
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
    desk_clear(&d);
    cpu_blas_used();
    return r;
}
