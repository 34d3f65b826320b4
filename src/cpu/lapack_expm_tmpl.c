/* lapack_expm_tmpl.c - the exponential of a matrix (core/matrix_exponential.h). Template. The transpose is
 * computed, whose exponential is the transpose of the result: so the copy keeps the order. */
#include "lapack_workspace.h"
#include "matrix_exponential.h"

/* c = a b */
static void multiply(const col_matrix *a, const col_matrix *b, const col_matrix *c)
{
    BLAS(gemm)
    (CblasColMajor, CblasNoTrans, CblasNoTrans, a->rows, a->rows, a->rows, ONE, a->p, a->ld, b->p, b->ld,
     ZERO, c->p, c->ld);
}

/* c = s a, or c += s a */
static void add_multiple(const col_matrix *c, double s, const col_matrix *a, bool keeps)
{
    T *to = (T *)c->p;
    const T *from = (const T *)a->p;
    for (int64_t i = 0; i < PARTS * (int64_t)c->ld * c->cols; i++)
        to[i] = (keeps ? to[i] : 0) + (T)s * from[i];
}

static void add_diagonal(const col_matrix *c, double s)
{
    for (int64_t i = 0; i < c->cols; i++) c->p[i * (c->ld + 1)] += (T)s;
}

/* Matrices of one size: the even powers of a, and others. */
enum { EVEN_POWERS = 4, SUM_U, SUM_V, PRODUCT, MATRICES };
typedef struct pade {
    col_matrix a, m[MATRICES + 1]; /* m[i] is a^(2i) for 1 <= i <= EVEN_POWERS */
} pade;

static duet_status powers_take(workspace *d, pade *p, int degree)
{
    const int highest = expm_powers(degree);
    const int n = p->a.rows;
    for (int i = 1; i <= highest; i++) TRY(col_matrix_take(d, n, n, &p->m[i]));
    for (int i = SUM_U; i <= PRODUCT; i++) TRY(col_matrix_take(d, n, n, &p->m[i]));
    multiply(&p->a, &p->a, &p->m[1]);
    for (int i = 2; i <= highest; i++) multiply(&p->m[i - 1], &p->m[1], &p->m[i]);
    return DUET_OK;
}

/* sum = the terms of the even powers first, first + 2, ... of the numerator with odd (by 1) or even (by 0)
 * coefficients, divided by a^first. The constant term is added if first is 0. */
static void sum_terms(const pade *p, const col_matrix *sum, int degree, int first, int last, int odd)
{
    bool keeps = false;
    for (int k = last; k > first; k -= 2) {
        add_multiple(sum, expm_coefficient(degree, k + odd), &p->m[(k - first) / 2], keeps);
        keeps = true;
    }
    if (!first) add_diagonal(sum, expm_coefficient(degree, odd));
}

/* U = the odd part of the numerator divided by a, V = its even part. Degree 13 needs no power above a^6. */
static void numerator_parts(const pade *p, int degree)
{
    enum { SPLIT = 6 };
    for (int odd = 0; odd < 2; odd++) {
        const col_matrix *sum = &p->m[odd ? SUM_U : SUM_V];
        if (degree < 13) {
            sum_terms(p, sum, degree, 0, degree - 1, odd);
            continue;
        }
        sum_terms(p, &p->m[PRODUCT], degree, SPLIT, 12, odd);
        multiply(&p->m[SPLIT / 2], &p->m[PRODUCT], sum);
        for (int k = SPLIT; k > 0; k -= 2)
            add_multiple(sum, expm_coefficient(degree, k + odd), &p->m[k / 2], true);
        add_diagonal(sum, expm_coefficient(degree, odd));
    }
}

/* x = the approximant (V - a U)^-1 (V + a U). */
static duet_status approximant(workspace *d, const pade *p, int degree, col_matrix *x)
{
    lapack_int *pivot;
    const int n = p->a.rows;
    const col_matrix *u = &p->m[PRODUCT], *v = &p->m[SUM_V];
    numerator_parts(p, degree);
    multiply(&p->a, &p->m[SUM_U], u);
    *x = p->m[SUM_U];
    add_multiple(x, 1, v, false);
    add_multiple(x, 1, u, true);
    add_multiple(v, -1, u, true);
    TRY(workspace_take(d, n, sizeof *pivot, &pivot));
    const int info = (int)LAPACK(getrf)(COL, n, n, v->p, v->ld, pivot);
    if (info > 0) return linalg_failed(d->s, LINALG_RESULT, 0); /* only where a product has overflowed */
    LAPACK(getrs)(COL, 'N', n, n, v->p, v->ld, pivot, x->p, x->ld);
    return DUET_OK;
}

static double largest_column_sum(const col_matrix *a)
{
    double largest = 0;
    for (int j = 0; j < a->cols; j++) largest = fmax(largest, column_size(a, j));
    return largest;
}

duet_status LINEAR(exponential)(workspace *d)
{
    pade p;
    col_matrix x;
    int squarings = 0;
    TRY(operand_read(d, 0, true, &p.a));
    if (!p.a.rows) return DUET_OK;
    const int degree = expm_degree(sizeof(T) == sizeof(double), largest_column_sum(&p.a), &squarings);
    scale_by_power(&p.a, -squarings, false);
    TRY(powers_take(d, &p, degree));
    TRY(approximant(d, &p, degree, &x));
    for (int k = 0; k < squarings; k++) {
        const col_matrix before = x;
        x = p.m[PRODUCT];
        multiply(&before, &before, &x);
        p.m[PRODUCT] = before;
    }
    TRY(finite_result(d, &x));
    return col_matrix_write(d, &x, true, 0);
}
