/* lapack_equilibrated_tmpl.c - systems, inverses and determinants of square matrices for which LU is
 * not accurate enough, or whose elements or results are near a limit of the type. Template.
 *
 * Rows and columns are multiplied by powers of two, so that the largest element of each is between
 * 1/2 and 1. That is exact, and neither the factors nor the solutions overflow where the results do
 * not. QR is as accurate for all matrices as LU is without growth. One step of refinement follows,
 * which makes the residual small for large matrices too. */
#include "lapack_factors.h"

/* a(i, j) = 2^(row[i] + col[j]) scaled(i, j), and scaled = Q R. */
typedef struct equilibrated {
    col_matrix scaled, qr;
    element *tau;
    int *row, *col;
} equilibrated;

/* The exponent of the largest element among n, `stride` apart; 0 if they are 0. */
static int largest_exponent(const element *x, int64_t n, int64_t stride)
{
    int largest = INT_MIN;
    for (int64_t i = 0; i < n; i++) {
        const int exponent = exponent_of(&x[i * stride]);
        if (exponent > largest) largest = exponent;
    }
    return largest == INT_MIN ? 0 : largest;
}

static void scale_rows(const col_matrix *a, int *exponent)
{
    for (int64_t i = 0; i < a->rows; i++) {
        exponent[i] = largest_exponent(a->p + i, a->cols, a->ld);
        for (int64_t j = 0; j < a->cols; j++) multiply_by_power(a->p + i + j * a->ld, -exponent[i]);
    }
}

static void scale_columns(const col_matrix *a, int *exponent)
{
    for (int64_t j = 0; j < a->cols; j++) {
        element *column = a->p + j * a->ld;
        exponent[j] = largest_exponent(column, a->rows, 1);
        for (int64_t i = 0; i < a->rows; i++) multiply_by_power(column + i, -exponent[j]);
    }
}

/* Reads operand 0, equilibrates and factors it. */
static duet_status equilibrated_read(workspace *d, equilibrated *e)
{
    TRY(operand_read(d, 0, false, &e->scaled));
    const col_matrix *a = &e->scaled;
    TRY(workspace_take(d, a->rows, sizeof *e->row, &e->row));
    TRY(workspace_take(d, a->cols, sizeof *e->col, &e->col));
    scale_rows(a, e->row);
    scale_columns(a, e->col);
    TRY(col_matrix_take(d, a->rows, a->cols, &e->qr));
    memcpy(e->qr.p, a->p, (size_t)a->ld * (size_t)a->cols * sizeof(element));
    return qr_of(d, &e->qr, &e->tau);
}

/* ---- systems ---- */

/* Reads the right-hand sides, or the identity matrix for inv, and scales the rows as those of the
 * matrix. Each column is also divided by 2^exponent, so that its largest element is about 1. */
static duet_status right_sides_read(workspace *d, const equilibrated *e, col_matrix *b, int **exponent)
{
    if (d->s->ins > 1) TRY(operand_read(d, 1, false, b));
    else {
        TRY(col_matrix_take(d, e->scaled.rows, e->scaled.cols, b));
        for (int64_t j = 0; j < b->cols; j++)
            for (int64_t i = 0; i < b->rows; i++) b->p[i + j * b->ld] = i == j;
    }
    TRY(workspace_take(d, b->cols, sizeof **exponent, exponent));
    for (int64_t j = 0; j < b->cols; j++) {
        element *column = b->p + j * b->ld;
        int largest = INT_MIN;
        for (int64_t i = 0; i < b->rows; i++) {
            const int x = exponent_of(column + i);
            if (x != INT_MIN && x - e->row[i] > largest) largest = x - e->row[i];
        }
        (*exponent)[j] = largest == INT_MIN ? 0 : largest;
        for (int64_t i = 0; i < b->rows; i++) multiply_by_power(column + i, -e->row[i] - (*exponent)[j]);
    }
    return DUET_OK;
}

/* Replaces b by the solution. */
static duet_status solve_by_qr(workspace *d, const equilibrated *e, const col_matrix *b)
{
    TRY(times_q(d, &e->qr, e->tau, CONJUGATE_TRANSPOSE, b));
    const int info = (int)LAPACK(trtrs)(COL, 'U', 'N', 'N', b->rows, b->cols, e->qr.p, e->qr.ld, b->p, b->ld);
    return info > 0 ? linalg_failed(d->s, LINALG_PIVOT, info) : DUET_OK;
}

/* rest = b - scaled x */
static void compute_residual(const equilibrated *e, const col_matrix *x, const col_matrix *b,
                             const col_matrix *rest)
{
    memcpy(rest->p, b->p, (size_t)b->ld * (size_t)b->cols * sizeof(element));
    BLAS(gemm)
    (CblasColMajor, CblasNoTrans, CblasNoTrans, b->rows, b->cols, b->rows, MINUS_ONE, e->scaled.p,
     e->scaled.ld, x->p, x->ld, ONE, rest->p, rest->ld);
}

static double magnitude(const element *x)
{
    const T *part = (const T *)x;
    return PARTS > 1 ? hypot(part[0], part[PARTS - 1]) : fabs((double)part[0]);
}

/* A sum of magnitudes as a number below 1 times 2^exponent, without overflow: of x[i]
 * 2^(sign e[i]). */
typedef struct scaled_sum {
    double sum;
    int exponent;
} scaled_sum;

static scaled_sum sum_of(const element *x, int64_t n, const int *e, int sign)
{
    scaled_sum s = { 0, INT_MIN };
    for (int64_t i = 0; i < n; i++) {
        const int exponent = exponent_of(&x[i]);
        if (exponent != INT_MIN && exponent + sign * e[i] > s.exponent) s.exponent = exponent + sign * e[i];
    }
    for (int64_t i = 0; i < n && s.exponent != INT_MIN; i++)
        s.sum += ldexp(magnitude(&x[i]), sign * e[i] - s.exponent);
    return s;
}

/* The largest sum of a column of the matrix that was equilibrated. */
static scaled_sum size_of_matrix(const equilibrated *e)
{
    scaled_sum largest = { 0, INT_MIN };
    for (int64_t j = 0; j < e->scaled.cols; j++) {
        scaled_sum s = sum_of(e->scaled.p + j * e->scaled.ld, e->scaled.rows, e->row, 1);
        int exponent;
        if (s.exponent == INT_MIN) continue;
        s.sum = frexp(s.sum, &exponent);
        s.exponent += exponent + e->col[j];
        if (s.exponent > largest.exponent || (s.exponent == largest.exponent && s.sum > largest.sum))
            largest = s;
    }
    return largest;
}

/* Does the residual of each column have the documented bound, in the units of the operands? */
static bool is_residual_small(const workspace *d, const equilibrated *e, const col_matrix *x,
                              const col_matrix *rest)
{
    const double n = d->s->kernel == OP_inv ? x->rows : 1;
    const scaled_sum a = size_of_matrix(e);
    for (int64_t j = 0; j < x->cols; j++) {
        const scaled_sum r = sum_of(rest->p + j * rest->ld, rest->rows, e->row, 1),
                         solution = sum_of(x->p + j * x->ld, x->rows, e->col, -1);
        if (r.sum == 0) continue;
        if (solution.sum == 0) return false;
        const int exponent = r.exponent - a.exponent - solution.exponent;
        if (!(ldexp(r.sum, exponent) <= n * RESIDUAL_LIMIT * EPSILON * a.sum * solution.sum)) return false;
    }
    return true;
}

static void undo_scaling(const equilibrated *e, const col_matrix *x, const int *exponent)
{
    for (int64_t j = 0; j < x->cols; j++)
        for (int64_t i = 0; i < x->rows; i++)
            multiply_by_power(x->p + i + j * x->ld, exponent[j] - e->col[i]);
}

duet_status LINEAR(solve_equilibrated)(workspace *d)
{
    equilibrated e;
    col_matrix b, x, rest;
    int *exponent;
    TRY(equilibrated_read(d, &e));
    TRY(right_sides_read(d, &e, &b, &exponent));
    TRY(col_matrix_take(d, b.rows, b.cols, &x));
    TRY(col_matrix_take(d, b.rows, b.cols, &rest));
    memcpy(x.p, b.p, (size_t)b.ld * (size_t)b.cols * sizeof(element));
    TRY(solve_by_qr(d, &e, &x));
    TRY(finite_result(d, &x));
    compute_residual(&e, &x, &b, &rest);
    TRY(solve_by_qr(d, &e, &rest));
    for (int64_t j = 0; j < x.cols; j++)
        for (int64_t i = 0; i < x.rows; i++) x.p[i + j * x.ld] += rest.p[i + j * rest.ld];
    TRY(finite_result(d, &x));
    compute_residual(&e, &x, &b, &rest);
    if (!is_residual_small(d, &e, &x, &rest)) return linalg_failed(d->s, LINALG_RESIDUAL, 0);
    undo_scaling(&e, &x, exponent);
    TRY(finite_result(d, &x));
    return col_matrix_write(d, &x, false, 0);
}

/* ---- determinants ---- */

/* A reflector 1 - tau v v^H has the determinant -tau / conj(tau), or 1 if tau is 0. */
static void multiply_by_reflector(determinant *x, const element *tau)
{
    const T *part = (const T *)tau;
    const double re = part[0], im = PARTS > 1 ? part[PARTS - 1] : 0, size = hypot(re, im);
    if (size == 0) return;
    const double c = re / size, s = im / size, cosine = s * s - c * c, sine = -2 * c * s;
    const double turned = x->re * cosine - x->im * sine;
    x->im = x->re * sine + x->im * cosine;
    x->re = turned;
}

duet_status LINEAR(determinant_equilibrated)(workspace *d, determinant *x)
{
    equilibrated e;
    *x = (determinant){ .re = 1 };
    TRY(equilibrated_read(d, &e));
    for (int64_t i = 0; i < e.qr.rows; i++) {
        const element *r = e.qr.p + i * (e.qr.ld + 1);
        if (*r == 0) {
            *x = (determinant){ .log = -INFINITY };
            return DUET_OK;
        }
        determinant_multiply(x, (const T *)r, false);
        multiply_by_reflector(x, &e.tau[i]);
        x->exponent += e.row[i] + e.col[i];
        x->log += (e.row[i] + e.col[i]) * 0.6931471805599453;
    }
    return DUET_OK;
}
