/* lapack_eig_tmpl.c - eigenvalues and eigenvectors of any square matrix, by LAPACKE's geev. Template. The
 * results are complex. */
#include "lapack_workspace.h"

/* Writes element (i, j) of a complex result k. */
static void write_pair(const workspace *d, int k, int64_t i, int64_t j, T re, T im)
{
    const layout *l = &d->s->out[k].at;
    T *to = address(d->f, &d->s->out[k]);
    to += 2 * (i * l->stride[0] + (l->rank > 1 ? j * l->stride[1] : 0));
    to[0] = re;
    to[1] = im;
}

#ifdef PAIRS
/* The eigenvalues w and, unless v is NULL, the eigenvectors as columns. Replaces a. */
static duet_status general_eigen(workspace *d, const col_matrix *a, const col_matrix *v, T *w)
{
    int info;
    T *rwork;
    TRY(values_take(d, 2 * (int64_t)a->rows, &rwork));
    WITH_WORK(d, info,
              LAPACK(geev)(COL, 'N', v ? 'V' : 'N', a->rows, a->p, a->ld, (element *)w, NULL, 1,
                           v ? v->p : NULL, v ? v->ld : 1, work, length, rwork));
    return info ? linalg_failed(d->s, LINALG_ITERATION, info) : DUET_OK;
}

static void write_values(const workspace *d, const T *w, int64_t n)
{
    for (int64_t i = 0; i < n; i++) write_pair(d, 0, i, 0, w[2 * i], w[2 * i + 1]);
}

static void write_vectors(const workspace *d, const col_matrix *v, const T *w)
{
    for (int64_t j = 0; j < v->cols; j++)
        for (int64_t i = 0; i < v->rows; i++) {
            const T *x = (const T *)(v->p + i + j * v->ld);
            write_pair(d, 1, i, j, x[0], x[1]);
        }
}
#else
/* w has the real parts of the eigenvalues, then the imaginary parts. */
static duet_status general_eigen(workspace *d, const col_matrix *a, const col_matrix *v, T *w)
{
    int info;
    WITH_WORK(d, info,
              LAPACK(geev)(COL, 'N', v ? 'V' : 'N', a->rows, a->p, a->ld, w, w + a->rows, NULL, 1,
                           v ? v->p : NULL, v ? v->ld : 1, work, length));
    return info ? linalg_failed(d->s, LINALG_ITERATION, info) : DUET_OK;
}

static void write_values(const workspace *d, const T *w, int64_t n)
{
    for (int64_t i = 0; i < n; i++) write_pair(d, 0, i, 0, w[i], w[n + i]);
}

/* Columns j and j + 1 are the real and the imaginary part of the vector of a conjugate pair of eigenvalues.
 * The first one has the positive imaginary part. */
static void write_vectors(const workspace *d, const col_matrix *v, const T *w)
{
    const int64_t n = v->rows;
    for (int64_t j = 0; j < n; j++) {
        const bool is_pair = w[n + j] != 0 && j + 1 < n;
        const element *re = v->p + j * v->ld, *im = re + v->ld;
        for (int64_t i = 0; i < n; i++) write_pair(d, 1, i, j, re[i], is_pair ? im[i] : 0);
        for (int64_t i = 0; is_pair && i < n; i++) write_pair(d, 1, i, j + 1, re[i], -im[i]);
        j += is_pair;
    }
}
#endif

duet_status LINEAR(eigen_general)(workspace *d, bool vectors)
{
    col_matrix a, v;
    T *w;
    TRY(operand_read(d, 0, false, &a));
    TRY(values_take(d, 2 * (int64_t)a.rows, &w));
    if (vectors) TRY(col_matrix_take(d, a.rows, a.rows, &v));
    TRY(general_eigen(d, &a, vectors ? &v : NULL, w));
    TRY(finite_result_values(d, w, 2 * (int64_t)a.rows));
    if (vectors) TRY(finite_result(d, &v));
    write_values(d, w, a.rows);
    if (vectors) write_vectors(d, &v, w);
    return DUET_OK;
}
