/* lapack_factors.h - LU and QR factors of column-major matrices, and checks of what LU computes.
 * Template.
 *
 * LU with partial pivoting is accurate unless its elements grow. The rounding errors are about
 * those of the largest element of U, which may be 2^(n-1) times that of the matrix. So the results
 * of LU are checked: solutions by their residual, the others by the growth of U. */
#ifndef LAPACK_FACTORS_H
#define LAPACK_FACTORS_H

#include "lapack_workspace.h"

/* ---- LU ---- */

typedef struct factors {
    col_matrix lu; /* U on and above the diagonal, L below; replaces the matrix */
    lapack_int *pivot;
    T size;       /* the largest sum of a row of the scaled matrix; only of lu_read */
    bool large;   /* the matrix is large: pivots may have overflowed, so that quotients by them are 0 */
    int exponent; /* U is to be multiplied by 2^exponent */
    int zero;     /* the first pivot that is 0, counted from 1; 0: none */
} factors;

/* The largest sum of a row, of the magnitudes of the parts of its elements; of the upper triangle
 * only, if `upper_only`. NaN or infinite if an element is. */
static inline duet_status largest_row_sum(workspace *d, const col_matrix *c, bool upper_only, T *largest)
{
    T *sum;
    const int64_t parts = PARTS * (int64_t)c->rows;
    TRY(values_take(d, parts, &sum));
    memset(sum, 0, (size_t)parts * sizeof *sum);
    for (int64_t j = 0; j < c->cols; j++) {
        const T *column = (const T *)(c->p + j * c->ld);
        const int64_t end = upper_only ? PARTS * SMALLER(j + 1, c->rows) : parts;
        for (int64_t i = 0; i < end; i++) sum[i] += (T)fabs((double)column[i]);
    }
    *largest = 0;
    for (int64_t i = 0; i < parts; i += PARTS) {
        const T row = PARTS > 1 ? sum[i] + sum[i + PARTS - 1] : sum[i];
        if (!(row <= *largest)) *largest = row;
    }
    return DUET_OK;
}

static inline duet_status lu_scaled(workspace *d, const col_matrix *c, factors *f)
{
    TRY(workspace_take(d, SMALLER(c->rows, c->cols), sizeof *f->pivot, &f->pivot));
    f->zero = (int)LAPACK(getrf)(COL, c->rows, c->cols, c->p, c->ld, f->pivot);
    return DUET_OK;
}

/* LU with U not scaled. Fails if U is not finite. */
static inline duet_status lu_finite(workspace *d, const col_matrix *c, factors *f)
{
    const bool large = any_magnitude(c, LARGE);
    *f = (factors){ .lu = *c, .large = large, .exponent = scale_into_range(c, large) };
    TRY(lu_scaled(d, c, f));
    scale_by_power(c, f->exponent, true);
    return finite_result(d, c);
}

/* Reads operand 0, transposed, and factors it. Its rows are then the columns of the operand. */
static inline duet_status lu_read(workspace *d, factors *f)
{
    col_matrix a;
    TRY(col_matrix_read(d, 0, true, &a));
    const bool large = any_magnitude(&a, LARGE);
    if (large) TRY(finite_operand(d, 0, &a));
    *f = (factors){ .lu = a, .large = large, .exponent = scale_into_range(&a, large) };
    TRY(largest_row_sum(d, &a, false, &f->size));
    return lu_scaled(d, &a, f);
}

/* Has U not grown, and is it finite? */
static inline duet_status growth_is_small(workspace *d, const factors *f, bool *is_small)
{
    T size;
    TRY(largest_row_sum(d, &f->lu, true, &size));
    *is_small = size <= GROWTH_LIMIT * f->size && are_finite_values(&size, 1);
    return DUET_OK;
}

/* ---- QR ---- */

/* c = Q R in place, Q as reflectors with factors tau. */
static inline duet_status qr_of(workspace *d, const col_matrix *c, element **tau)
{
    int info;
    TRY(workspace_take(d, SMALLER(c->rows, c->cols), sizeof **tau, tau));
    WITH_WORK(d, info, LAPACK(geqrf)(COL, c->rows, c->cols, c->p, c->ld, *tau, work, length));
    if (info) return fail(DUET_DEVICE_ERROR, "LAPACK: geqrf ended with %d", info);
    return DUET_OK;
}

/* b = Q b; with how CONJUGATE_TRANSPOSE, the inverse of Q. */
static inline duet_status times_q(workspace *d, const col_matrix *q, const element *tau, char how,
                                  const col_matrix *b)
{
    int info;
    WITH_WORK(d, info,
              LAPACK(TIMES_Q)(COL, 'L', how, b->rows, b->cols, q->cols, q->p, q->ld, tau, b->p, b->ld, work,
                              length));
    if (info) return fail(DUET_DEVICE_ERROR, "LAPACK: " NAMED(TIMES_Q) " ended with %d", info);
    return DUET_OK;
}

/* ---- equilibrated matrices: lapack_equilibrated_tmpl.c ---- */

/* Solves the system of operands 0 and 1, or, for inv, computes the inverse of operand 0. The matrix
 * is the operand with rows and columns scaled by powers of two, factored by QR. */
duet_status LINEAR(solve_equilibrated)(workspace *d);
duet_status LINEAR(determinant_equilibrated)(workspace *d, determinant *x);

/* Computes the determinant of operand 0. */
static inline duet_status determinant_read(workspace *d, determinant *x)
{
    factors f;
    bool is_small;
    TRY(lu_read(d, &f));
    TRY(growth_is_small(d, &f, &is_small));
    if (f.large) TRY(finite_result(d, &f.lu));
    if (!is_small) {
        workspace_clear(d);
        return LINEAR(determinant_equilibrated)(d, x);
    }
    scale_by_power(&f.lu, f.exponent, true);
    TRY(finite_result(d, &f.lu));
    *x = determinant_of(&f.lu, f.pivot);
    return DUET_OK;
}

#endif
