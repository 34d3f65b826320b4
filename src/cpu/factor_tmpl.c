/* factor_tmpl.c - factorisations by LAPACKE: lu, qr, svd, eigh, slogdet and others, which have several
 * results. Template.
 *
 * The operand is copied (lapack_workspace.h). All results are computed before the first one is
 * written. */
#include "lapack_factors.h"

/* Writes output k: the upper triangle of c with its diagonal, or the lower one with ones on the
 * diagonal. */
static void write_triangle(const workspace *d, const col_matrix *c, bool lower, int k)
{
    const layout *l = &d->s->out[k].at;
    element *to = address(d->f, &d->s->out[k]);
    for (int64_t i = 0; i < l->size[0]; i++)
        for (int64_t j = 0; j < l->size[1]; j++) {
            const bool in_triangle = lower ? i > j : i <= j;
            to[i * l->stride[0] + j * l->stride[1]] = in_triangle ? c->p[i + j * c->ld] : lower && i == j;
        }
}

/* Writes the row exchanges of LAPACK as a permutation of the rows. */
static duet_status write_order(workspace *d, const col_matrix *c, const lapack_int *pivot, int k)
{
    int64_t *row, *to = address(d->f, &d->s->out[k]);
    TRY(workspace_take(d, c->rows, sizeof *row, &row));
    for (int64_t i = 0; i < c->rows; i++) row[i] = i;
    for (int64_t i = 0; i < SMALLER(c->rows, c->cols); i++) {
        const int64_t swapped = pivot[i] - 1, at = row[i];
        row[i] = row[swapped];
        row[swapped] = at;
    }
    for (int64_t i = 0; i < c->rows; i++) to[i * d->s->out[k].at.stride[0]] = row[i];
    return DUET_OK;
}

static duet_status lu(workspace *d)
{
    col_matrix a;
    factors f;
    TRY(operand_read(d, 0, false, &a));
    TRY(lu_finite(d, &a, &f));
    TRY(write_order(d, &a, f.pivot, 2));
    write_triangle(d, &a, true, 0);
    write_triangle(d, &a, false, 1);
    return DUET_OK;
}

/* Q has as many columns as its result: those of the reflectors, or as many as rows. */
static duet_status qr(workspace *d, bool complete)
{
    col_matrix a, q;
    element *tau;
    int info;
    TRY(operand_read(d, 0, false, &a));
    TRY(qr_of(d, &a, &tau));
    TRY(finite_result(d, &a));
    const int reflectors = SMALLER(a.rows, a.cols);
    TRY(col_matrix_take(d, a.rows, complete ? a.rows : reflectors, &q));
    memcpy(q.p, a.p, (size_t)a.ld * (size_t)reflectors * sizeof(element));
    WITH_WORK(d, info, LAPACK(MAKE_Q)(COL, q.rows, q.cols, reflectors, q.p, q.ld, tau, work, length));
    if (info) return fail(DUET_DEVICE_ERROR, "LAPACK: " NAMED(MAKE_Q) " ended with %d", info);
    TRY(finite_result(d, &q));
    TRY(col_matrix_write(d, &q, false, 0));
    write_triangle(d, &a, false, 1);
    return DUET_OK;
}

static void set_unit(const col_matrix *c)
{
    for (int64_t j = 0; j < c->cols; j++)
        for (int64_t i = 0; i < c->rows; i++) c->p[i + j * c->ld] = i == j;
}

/* Factors the transpose V S U^T, so that the factors have the layout of the results. This holds for
 * complex elements too, because none is conjugated. */
static duet_status svd(workspace *d, bool full)
{
    col_matrix a, u, v;
    T *w;
    TRY(operand_read(d, 0, true, &a));
    const int k = SMALLER(a.rows, a.cols);
    TRY(col_matrix_take(d, a.rows, full ? a.rows : k, &v));
    TRY(col_matrix_take(d, full ? a.cols : k, a.cols, &u));
    TRY(values_take(d, k, &w));
    if (k) TRY(svd_of(d, &a, w, &v, &u));
    else set_unit(&v), set_unit(&u);
    TRY(finite_result_values(d, w, k));
    TRY(col_matrix_write(d, &u, true, 0));
    TRY(values_write(d, w, k, 1));
    return col_matrix_write(d, &v, true, 2);
}

static duet_status eigh(workspace *d)
{
    col_matrix a;
    T *w;
    TRY(symmetric_read(d, &a));
    TRY(values_take(d, a.rows, &w));
    TRY(eigen_of(d, &a, true, w));
    TRY(finite_result_values(d, w, a.rows));
    conjugate(&a);
    TRY(values_write(d, w, a.rows, 0));
    return col_matrix_write(d, &a, false, 1);
}

static duet_status slogdet(workspace *d)
{
    determinant x;
    TRY(determinant_read(d, &x));
    const double size = PARTS > 1 ? hypot(x.re, x.im) : fabs(x.re), divisor = size > 0 ? size : 1;
    number_write(d, 0, x.re / divisor, x.im / divisor, 0);
    *(T *)address(d->f, &d->s->out[1]) = (T)determinant_log(&x);
    return DUET_OK;
}

duet_status LINEAR(run_factor)(workspace *d)
{
    switch (d->s->kernel) {
    case KERNEL_lu: return lu(d);
    case KERNEL_qr: return qr(d, false);
    case KERNEL_qr_complete: return qr(d, true);
    case KERNEL_svd: return svd(d, false);
    case KERNEL_svd_full: return svd(d, true);
    case KERNEL_eigh: return eigh(d);
    case KERNEL_eig: return LINEAR(eigen_general)(d, true);
    case KERNEL_slogdet: return slogdet(d);
    default: return fail(DUET_UNSUPPORTED, "the CPU has no kernel %d", d->s->kernel);
    }
}
