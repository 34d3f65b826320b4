/* lapack_lstsq_tmpl.c - least squares by QR of a tall matrix, or of the transpose of a wide one.
 * Template.
 *
 * R is triangular and square. If its condition is not certainly small, its singular values decide: those
 * of at most max(m, n) eps times the largest one count as 0, as in numpy.linalg.lstsq. The solution of least
 * norm follows from the rest.
 *
 * f32 and c64 solve in f64 and c128, unless the condition is certainly small. Columns (rows of a wide matrix)
 * are scaled by powers of two first, so that only the rounding of the operand to f32 decides about its rank,
 * and not the units of its columns. */
#include "lapack_factors.h"

enum { ITERATIONS = 2, LARGEST_SVD = PARTS > 1 ? COMPLEX_SVD_MAX : SVD_MAX };

/* ---- the condition of R ---- */

static void fill_probes(const col_matrix *c)
{
    uint64_t state = CONDITION_SEED;
    for (int64_t j = 0; j < c->cols; j++)
        for (int64_t i = 0; i < PARTS * (int64_t)c->rows; i++)
            ((T *)(c->p + j * c->ld))[i] = (T)condition_probe(&state);
}

/* x = R^-1 x, or R^-T x, or R^-H x */
static void substitute(const col_matrix *r, enum CBLAS_TRANSPOSE how, const col_matrix *x)
{
    BLAS(trsm)
    (CblasColMajor, CblasLeft, CblasUpper, how, CblasNonUnit, x->rows, x->cols, ONE, r->p, r->ld, x->p,
     x->ld);
}

/* x = R x, or R^H x */
static void multiply(const col_matrix *r, enum CBLAS_TRANSPOSE how, const col_matrix *x)
{
    BLAS(trmm)
    (CblasColMajor, CblasLeft, CblasUpper, how, CblasNonUnit, x->rows, x->cols, ONE, r->p, r->ld, x->p,
     x->ld);
}

/* Raises *largest to x. NaN counts as larger than all numbers. */
static void raise_to(double *largest, double x)
{
    if (x > *largest || isnan(x)) *largest = x;
}

/* The sum of the magnitudes of n numbers, by several sums that the compiler vectorises. cblas_scasum of
 * OpenBLAS 0.3.21 is wrong for some n. */
static double sum_of_magnitudes(const T *x, int64_t n)
{
    enum { SUMS = 16 };
    T part[SUMS] = { 0 };
    double sum = 0;
    int64_t i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (int k = 0; k < SUMS; k++) part[k] += (T)fabs((double)x[i + k]);
    for (; i < n; i++) sum += fabs((double)x[i]);
    for (int k = 0; k < SUMS; k++) sum += (double)part[k];
    return sum;
}

/* The largest sum of a column of an upper triangle, of the magnitudes of the parts of its elements. */
static double largest_column(const col_matrix *c)
{
    double largest = 0;
    for (int64_t j = 0; j < c->cols; j++)
        raise_to(&largest, sum_of_magnitudes((const T *)(c->p + j * c->ld), PARTS * (j + 1)));
    return largest;
}

/* The column with the largest sum of squares. NaN counts as larger than all numbers. */
static int longest_column(const col_matrix *c, double *squares)
{
    int longest = 0;
    *squares = 0;
    for (int j = 0; j < c->cols; j++) {
        const T *part = (const T *)(c->p + (int64_t)j * c->ld);
        double sum = 0;
        for (int64_t i = 0; i < PARTS * (int64_t)c->rows; i++) sum += (double)part[i] * (double)part[i];
        if (!(sum > *squares) && !isnan(sum)) continue;
        raise_to(squares, sum);
        longest = j;
    }
    return longest;
}

/* Divides a vector by its 2-norm, which is returned. Scales it first, so that no square overflows. */
static double normalise(const col_matrix *x)
{
    T *part = (T *)x->p;
    const int64_t n = PARTS * (int64_t)x->rows;
    double largest = 0, sum = 0;
    for (int64_t i = 0; i < n; i++) raise_to(&largest, fabs((double)part[i]));
    for (int64_t i = 0; i < n; i++) {
        const double scaled = (double)part[i] / largest;
        sum += scaled * scaled;
    }
    const double root = sqrt(sum);
    for (int64_t i = 0; i < n; i++) part[i] = (T)((double)part[i] / largest / root);
    return largest * root;
}

/* An estimate of the condition in the 2-norm, by iterations with R^H R and its inverse. y is the longest
 * solution of the probes. */
static duet_status condition_of(workspace *d, const col_matrix *r, const col_matrix *y, double *condition)
{
    col_matrix x;
    double largest = 0, inverse = 0;
    TRY(col_matrix_take(d, r->rows, 1, &x));
    fill_probes(&x);
    normalise(&x);
    normalise(y);
    for (int k = 0; k < ITERATIONS; k++) {
        multiply(r, CblasNoTrans, &x);
        normalise(&x);
        multiply(r, CblasConjTrans, &x);
        largest = normalise(&x);
        substitute(r, CblasConjTrans, y);
        normalise(y);
        substitute(r, CblasNoTrans, y);
        inverse = normalise(y);
    }
    *condition = largest * inverse;
    return DUET_OK;
}

/* Is the condition certainly below the limit? x has the solutions of the probes (core/linalg_status.h). If
 * they do not suffice, iterations decide. Those may underestimate the condition, but hardly by a factor of
 * 2. */
static duet_status is_regular(workspace *d, const col_matrix *r, const col_matrix *x, double limit,
                              bool *is_small)
{
    double squares, condition;
    T rows;
    const int longest = longest_column(x, &squares);
    TRY(row_sums(d, r, true, &rows, NULL));
    condition = condition_quick(largest_column(r), (double)rows, squares);
    *is_small = CONDITION_CAUTION * condition < limit;
    if (*is_small) return DUET_OK;
    TRY(condition_of(d, r, &(const col_matrix){ x->p + (int64_t)longest * x->ld, x->rows, 1, x->ld },
                     &condition));
    *is_small = 2 * condition < limit;
    return DUET_OK;
}

/* How a problem is solved. */
typedef struct method {
    bool narrow;  /* the operands were f32 or c64 */
    bool scale;   /* both operands, by powers of two */
    bool by_svd;  /* with the singular values of R */
    bool done;    /* false: try again with the other members changed */
    double limit; /* of the condition */
} method;

/* ---- solutions with R ---- */

#ifdef T_f64
/* to = a b, or a^H b */
static void product(const col_matrix *a, enum CBLAS_TRANSPOSE how, const col_matrix *b, const col_matrix *to)
{
    BLAS(gemm)
    (CblasColMajor, how, CblasNoTrans, to->rows, b->cols, b->rows, ONE, a->p, a->ld, b->p, b->ld, ZERO, to->p,
     to->ld);
}

static void divide_rows(const T *w, const col_matrix *c)
{
    for (int64_t j = 0; j < c->cols; j++)
        for (int64_t i = 0; i < c->rows; i++) c->p[i + j * c->ld] /= w[i];
}

/* R = U diag(w) Vt, of which the first `rank` singular values do not count as 0. */
typedef struct parts {
    col_matrix u, vt;
    T *w;
} parts;

static duet_status parts_of(workspace *d, const method *m, const col_matrix *r, parts *p)
{
    col_matrix c;
    int rank = 0;
    if (r->cols > LARGEST_SVD) return linalg_failed(d->s, LINALG_RANK, LARGEST_SVD);
    TRY(col_matrix_take(d, r->cols, r->cols, &c));
    for (int64_t j = 0; j < c.cols; j++)
        for (int64_t i = 0; i < c.rows; i++) c.p[i + j * c.ld] = i <= j ? r->p[i + j * r->ld] : 0;
    TRY(col_matrix_take(d, c.rows, c.rows, &p->u));
    TRY(col_matrix_take(d, c.rows, c.rows, &p->vt));
    TRY(values_take(d, c.rows, &p->w));
    TRY(svd_of(d, &c, p->w, &p->u, &p->vt));
    while (rank < c.rows && p->w[rank] * m->limit > p->w[0]) rank++;
    p->u.cols = p->vt.rows = rank;
    return DUET_OK;
}

/* With M = diag(2^exponent) V, whose columns belong to the singular values: c = M^+ c, in the first rows
 * of c, or, if `adjoint`, c = (M^H)^+ c. */
static duet_status times_scaled_inverse(workspace *d, const parts *p, const int *exponent, bool adjoint,
                                        const col_matrix *c)
{
    col_matrix v, r, first = *c;
    element *tau;
    TRY(col_matrix_take(d, p->vt.cols, p->vt.rows, &v));
    for (int64_t j = 0; j < v.cols; j++)
        for (int64_t i = 0; i < v.rows; i++) {
            v.p[i + j * v.ld] = p->vt.p[j + i * p->vt.ld];
            multiply_by_power(&v.p[i + j * v.ld], exponent[i]);
        }
    conjugate(&v);
    TRY(qr_of(d, &v, &tau));
    r = v;
    r.rows = first.rows = v.cols;
    if (!adjoint) {
        TRY(times_q(d, &v, tau, CONJUGATE_TRANSPOSE, c));
        substitute(&r, CblasNoTrans, &first);
        return DUET_OK;
    }
    substitute(&r, CblasConjTrans, &first);
    for (int64_t j = 0; j < c->cols; j++)
        for (int64_t i = first.rows; i < c->rows; i++) c->p[i + j * c->ld] = 0;
    return times_q(d, &v, tau, 'N', c);
}

static void copy_rows(const col_matrix *from, const col_matrix *to)
{
    for (int64_t j = 0; j < from->cols; j++)
        memcpy(to->p + j * to->ld, from->p + j * from->ld, (size_t)from->rows * sizeof *from->p);
}

/* The first rows of b = R^+ b, or, if `adjoint`, (R^H)^+ b, for the nearest R that has the rank. Unless
 * `exponent` is NULL, R diag(2^exponent) takes the place of R. */
static duet_status solve_by_svd(workspace *d, const method *m, const col_matrix *r, bool adjoint,
                                const int *exponent, const col_matrix *b)
{
    parts p;
    col_matrix first = *b, x;
    first.rows = r->cols;
    TRY(parts_of(d, m, r, &p));
    TRY(col_matrix_take(d, p.vt.rows, b->cols, &x));
    if (!adjoint) product(&p.u, CblasConjTrans, &first, &x);
    else if (!exponent) product(&p.vt, CblasNoTrans, &first, &x);
    else {
        TRY(times_scaled_inverse(d, &p, exponent, false, &first));
        copy_rows(&(const col_matrix){ first.p, x.rows, x.cols, first.ld }, &x);
    }
    divide_rows(p.w, &x);
    if (adjoint) product(&p.u, CblasNoTrans, &x, &first);
    else if (!exponent) product(&p.vt, CblasConjTrans, &x, &first);
    else {
        copy_rows(&x, &first);
        TRY(times_scaled_inverse(d, &p, exponent, true, &first));
    }
    return DUET_OK;
}
#else
static duet_status solve_by_svd(workspace *d, const method *m, const col_matrix *r, bool adjoint,
                                const int *exponent, const col_matrix *b)
{
    return fail(DUET_UNSUPPORTED, "least squares by singular values is implemented in f64 and c128 only");
}
#endif

static void scale_rows(const col_matrix *c, const int *exponent)
{
    for (int64_t j = 0; j < c->cols; j++)
        for (int64_t i = 0; i < c->rows; i++) multiply_by_power(c->p + i + j * c->ld, -exponent[i]);
}

/* The same by substitution, and without rank. Memory of b has CONDITION_PROBES more columns, to solve for
 * the probes in the same call. If R may be rank-deficient, m->done is false, and b is lost. */
static duet_status solve_by_substitution(workspace *d, method *m, const col_matrix *r, bool adjoint,
                                         const int *exponent, const col_matrix *b)
{
    col_matrix all = *b, probes = *b, first = *b;
    all.rows = probes.rows = first.rows = r->rows;
    probes.cols = CONDITION_PROBES;
    probes.p += (int64_t)b->cols * b->ld;
    all.cols += CONDITION_PROBES;
    if (!r->rows) return DUET_OK;
    fill_probes(&probes);
    if (exponent && adjoint) scale_rows(&first, exponent);
    substitute(r, adjoint ? CblasConjTrans : CblasNoTrans, &all);
    if (exponent && !adjoint) scale_rows(&first, exponent);
    return is_regular(d, r, &probes, m->limit, &m->done);
}

/* ---- scaling ---- */

/* Divides by 2^exponent, so that the largest element is below 1. */
static int scale_to_one(const col_matrix *c)
{
    int exponent = 0;
    frexp(magnitudes_of(c).largest, &exponent);
    scale_by_power(c, -exponent, false);
    return exponent;
}

static duet_status scale_columns_to_one(workspace *d, const col_matrix *c, int **exponent)
{
    TRY(workspace_take(d, c->cols, sizeof **exponent, exponent));
    for (int64_t j = 0; j < c->cols; j++)
        (*exponent)[j] = scale_to_one(&(const col_matrix){ c->p + j * c->ld, c->rows, 1, c->ld });
    return DUET_OK;
}

static void undo_scaling(const col_matrix *x, int of_matrix, const int *of_column)
{
    for (int64_t j = 0; j < x->cols; j++)
        scale_by_power(&(const col_matrix){ x->p + j * x->ld, x->rows, 1, x->ld }, of_column[j] - of_matrix,
                       false);
}

/* Divides columns by 2^exponent, so that their 2-norms are between 1/2 and 1. Neither squares nor quotients
 * leave the range of f64, since the elements were f32. */
static duet_status normalise_columns(workspace *d, const col_matrix *c, int **exponent)
{
    TRY(workspace_take(d, c->cols, sizeof **exponent, exponent));
    for (int64_t j = 0; j < c->cols; j++) {
        T *part = (T *)(c->p + j * c->ld);
        double sum = 0;
        for (int64_t i = 0; i < PARTS * (int64_t)c->rows; i++) sum += (double)part[i] * (double)part[i];
        (*exponent)[j] = 0;
        frexp(sqrt(sum), *exponent + j);
        const T factor = (T)ldexp(1, -(*exponent)[j]);
        for (int64_t i = 0; i < PARTS * (int64_t)c->rows; i++) part[i] *= factor;
    }
    return DUET_OK;
}

/* Checks that operand k, in c, is finite, and whether it is near a limit of the type. */
static duet_status limits_check(const workspace *d, int k, const col_matrix *c, bool *near)
{
    const bool large = any_magnitude(c, LARGE);
    if (large) TRY(finite_operand(d, k, c));
    *near |= c->rows && c->cols && (large || !any_magnitude(c, SMALL));
    return DUET_OK;
}

/* The right-hand sides, in a matrix with as many rows as the result has, and with memory for probes. */
static duet_status right_sides_read(workspace *d, int rows, col_matrix *b)
{
    const layout at = layout_as_matrix(&d->s->in[1].at);
    TRY(col_matrix_take(d, rows, at.size[1] + CONDITION_PROBES, b));
    b->cols -= CONDITION_PROBES;
    memset(b->p, 0, (size_t)b->ld * (size_t)b->cols * sizeof(element));
    return col_matrix_fill(b, &at, address(d->f, &d->s->in[1]));
}

/* A tall matrix is A = Q R. For a wide one, A^T = Q R, and conj(A) = R^H Q^H. The solution of least norm is
 * conj(Q R^-H conj(b)). */
static duet_status solve(workspace *d, method *m, col_matrix *b)
{
    const layout *l = &d->s->in[0].at;
    const bool tall = l->size[0] >= l->size[1];
    col_matrix a;
    element *tau;
    int of_matrix = 0, *of_side = NULL, *exponent = NULL;
    TRY(col_matrix_read(d, 0, !tall, &a));
    TRY(right_sides_read(d, a.rows, b));
    TRY(limits_check(d, 0, &a, &m->scale));
    TRY(limits_check(d, 1, b, &m->scale));
    if (m->scale && sizeof(T) == sizeof(float)) return DUET_OK; /* f64 needs no scaling */
    if (m->scale) {
        of_matrix = scale_to_one(&a);
        TRY(scale_columns_to_one(d, b, &of_side));
    }
    if (m->narrow) TRY(normalise_columns(d, &a, &exponent));
    TRY(qr_of(d, &a, &tau));
    if (tall) TRY(times_q(d, &a, tau, CONJUGATE_TRANSPOSE, b));
    else conjugate(b);
    col_matrix r = a;
    r.rows = a.cols;
    m->done = true;
    if (m->by_svd) TRY(solve_by_svd(d, m, &r, !tall, exponent, b));
    else TRY(solve_by_substitution(d, m, &r, !tall, exponent, b));
    if (!m->done) return m->by_svd = true, DUET_OK;
    if (!tall) {
        TRY(times_q(d, &a, tau, 'N', b));
        conjugate(b);
    }
    b->rows = (int)l->size[1]; /* the rest are residuals */
    if (of_side) undo_scaling(b, of_matrix, of_side);
    return DUET_OK;
}

#ifdef T_f64
static duet_status solve_any(workspace *d, method m)
{
    col_matrix x;
    while (!m.done) {
        workspace_clear(d);
        TRY(solve(d, &m, &x));
        if (!m.done || is_finite_matrix(&x)) continue;
        if (m.scale) return linalg_failed(d->s, LINALG_RESULT, 0);
        m.scale = true;
        m.done = false;
    }
    return col_matrix_write(d, &x, false, 0);
}

duet_status LINEAR(least_squares)(workspace *d)
{
    const int64_t *size = d->s->in[0].at.size;
    return solve_any(d, (method){ .limit = condition_limit(size[0], size[1]) });
}

/* For operands that were f32 or c64. */
run_function LINEAR(least_squares_of_narrow);
duet_status LINEAR(least_squares_of_narrow)(const step *s, const frame *f)
{
    const int64_t *size = s->in[0].at.size;
    workspace d = { .s = s, .f = f };
    const duet_status r =
        solve_any(&d, (method){ .narrow = true, .limit = condition_limit_f32(size[0], size[1]) });
    workspace_clear(&d);
    return r;
}
#else

/* ---- in f64 or c128 ---- */

#ifdef PAIRS
#define WIDER    DUET_C128
#define IN_WIDER least_squares_of_narrow_c128
#else
#define WIDER    DUET_F64
#define IN_WIDER least_squares_of_narrow_f64
#endif

run_function IN_WIDER;

/* Memory for an operand or a result with wider elements: column-major, without gaps. */
static duet_status wider_take(workspace *d, operand *o, int slot, void **p)
{
    const layout at = layout_as_matrix(&o->at);
    const int64_t ld = larger(at.size[0], 1);
    *o = (operand){ slot, o->at };
    o->at.type = WIDER;
    o->at.stride[0] = 1;
    if (o->at.rank > 1) o->at.stride[1] = ld;
    return workspace_take(d, ld * at.size[1], PARTS * sizeof(double), p);
}

static duet_status wider_read(workspace *d, int k, operand *o, void **p)
{
    col_matrix c;
    TRY(wider_take(d, o, k, p));
    TRY(col_matrix_read(d, k, false, &c));
    for (int64_t i = 0; i < PARTS * (int64_t)c.ld * c.cols; i++)
        ((double *)*p)[i] = (double)((const T *)c.p)[i];
    workspace_give_last(d);
    return DUET_OK;
}

/* The result may overflow the narrower type. */
static duet_status solve_wider(workspace *d)
{
    step s = *d->s;
    void *data[3];
    col_matrix x;
    const layout at = layout_as_matrix(&s.out[0].at);
    for (int k = 0; k < 2; k++) TRY(wider_read(d, k, &s.in[k], &data[k]));
    TRY(wider_take(d, &s.out[0], 2, &data[2]));
    const duet_status r =
        IN_WIDER(&s,
                 &(frame){ .data = data, .num = d->f->num, .queue = d->f->queue, .device = d->f->device });
    if (r == DUET_SINGULAR) return linalg_failed(d->s, LINALG_RANK, LARGEST_SVD);
    TRY(r);
    TRY(col_matrix_take(d, at.size[0], at.size[1], &x));
    for (int64_t i = 0; i < PARTS * (int64_t)x.ld * x.cols; i++) ((T *)x.p)[i] = (T)((double *)data[2])[i];
    TRY(finite_result(d, &x));
    return col_matrix_write(d, &x, false, 0);
}

duet_status LINEAR(least_squares)(workspace *d)
{
    col_matrix x;
    const int64_t *size = d->s->in[0].at.size;
    method m = { .limit = condition_certain_f32(size[0], size[1]) };
    TRY(solve(d, &m, &x));
    if (m.done && is_finite_matrix(&x)) return col_matrix_write(d, &x, false, 0);
    workspace_clear(d);
    if (d->arena.p) return DUET_NO_MEMORY; /* it takes memory from the pool */
    return solve_wider(d);
}
#endif
