/* lapack_expm_tmpl.c - the exponential of a matrix, by a Pade approximant and repeated squaring: Higham, "The
 * scaling and squaring method for the matrix exponential revisited", SIAM J. Matrix Anal. Appl. 26 (2005).
 * Template.
 *
 * The approximant of degree m has an error below that of rounding if the 1-norm of the matrix is at most
 * theta_m. Larger matrices are divided by a power of two first, and the result is squared as often. The
 * transpose is computed, whose exponential is the transpose of the result: so the copy keeps the order. */
#include "lapack_workspace.h"

#ifdef T_f32
static const double theta[] = {
    [3] = 4.258730016922831e-1, [5] = 1.880152677804762, [7] = 3.925724783138660
};
enum { DEGREE_MOST = 7 };
#else
static const double theta[] = { [3] = 1.495585217958292e-2,
                                [5] = 2.539398330063230e-1,
                                [7] = 9.504178996162932e-1,
                                [9] = 2.097847961257068,
                                [13] = 5.371920351148152 };
enum { DEGREE_MOST = 13 };
#endif

/* Coefficient k of the numerator of degree m, times (2m)! / m!: the whole number
 * (2m - k)! / ((m - k)! k!). */
static double coefficient(int m, int k)
{
    double c = 1;
    for (int i = m; i > k; i--) c = c * ((double)i * (2 * m - i + 1)) / (m - i + 1);
    return c;
}

static int degree_of(double norm)
{
    static const int degrees[] = { 3, 5, 7, 9, 13 };
    for (int i = 0; degrees[i] < DEGREE_MOST; i++)
        if (norm <= theta[degrees[i]]) return degrees[i];
    return DEGREE_MOST;
}

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
    const int highest = degree == 13 ? 3 : (degree - 1) / 2;
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
        add_multiple(sum, coefficient(degree, k + odd), &p->m[(k - first) / 2], keeps);
        keeps = true;
    }
    if (!first) add_diagonal(sum, coefficient(degree, odd));
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
            add_multiple(sum, coefficient(degree, k + odd), &p->m[k / 2], true);
        add_diagonal(sum, coefficient(degree, odd));
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
    const double norm = largest_column_sum(&p.a);
    const int degree = degree_of(norm);
    if (norm > theta[DEGREE_MOST]) {
        frexp(norm / theta[DEGREE_MOST], &squarings);
        scale_by_power(&p.a, -squarings, false);
    }
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
