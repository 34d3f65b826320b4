/* derivatives_of_solvers.c - the gradients of linear algebra. */
#include "derivative_rules.h"
#undef DUET_HERE
#define DUET_HERE site /* of the user's call */

/* A vector as a column. */
static duet_expr columns(duet_expr x, const char *site)
{
    return duet_expr_rank(x) == 1 ? duet_reshape(x, duet_expr_size(x, 0), 1) : x;
}

/* The sum over columns of the outer products of x and y. */
static duet_expr outer(duet_expr x, duet_expr y, const char *site)
{
    return duet_matmul(columns(x, site), duet_transpose(columns(y, site)));
}

static duet_expr conjugate(duet_expr x, const char *site) { return is_complex(x) ? duet_conj(x) : x; }

/* dL = L P(inv(L) dA inv(L)^H), where P keeps the lower triangle and half of the diagonal. Only the lower
 * triangle of A is read, so that an element there stands for two, of which one is conjugated. Imaginary
 * parts of the diagonal are not read. */
duet_expr of_cholesky(duet_expr r, duet_expr g, const char *site)
{
    const duet_triangle transposed = { .lower = 1, .transposed = 1 };
    const duet_expr m = duet_matmul(duet_transpose(r), g),
                    p = duet_mul(0.5, duet_add(duet_tril(m, 0), duet_tril(m, -1)));
    const duet_expr half = duet_solve_triangular_at(r, p, &transposed, site),
                    s = duet_solve_triangular_at(conjugate(r, site), duet_transpose(half), &transposed, site),
                    two = duet_add(duet_transpose(s), conjugate(s, site));
    return duet_mul(0.5, duet_add(duet_tril(two, 0), duet_tril(two, -1)));
}

/* ---- determinants ---- */

static duet_expr number_of_row(int axis, int64_t n, duet_expr like, const char *site)
{
    return duet_cast(counted(axis, 2, n, 1, site), duet_expr_type(like));
}

/* Numbers between -1 and 1 along an axis that no simple pattern of a matrix cancels. */
static duet_expr scattered(int axis, int64_t n, double frequency, duet_expr like, const char *site)
{
    const duet_expr i = duet_add(number_of_row(axis, n, like, site), 1);
    return duet_sin(duet_mul(frequency, duet_mul(i, i)));
}

static duet_expr largest_of(duet_expr x, const char *site) { return duet_max(duet_abs(x)); }

/* The gradient is the transpose of the adjugate: det(x) inv(x) for an invertible x. The adjugate also exists
 * for a singular x: for any column p and row q, with b = x + p q and z = inv(b) p, w = q inv(b),
 *     adj(x) = det(b) ((1 - q z) inv(b) + z w)
 * Here p is 0 for an invertible x. Otherwise b is invertible if the rank of x is only one less than its
 * size. If the rank is smaller, the adjugate is 0; then b is singular, exactly or to working precision. */
duet_expr of_determinant(duet_expr x, duet_expr r, duet_expr g, const char *site)
{
    const int64_t n = duet_expr_size(x, 0);
    const bool is_double = duet_expr_type(x) == DUET_F64 || duet_expr_type(x) == DUET_C128;
    const shape s = formula_shape(x);
    if (n < 2) return spread_to(g, &s, site);
    const duet_expr is_singular = duet_equal(r, 0), own = duet_stop_gradient(x), size = largest_of(own, site),
                    p = duet_where(is_singular, duet_mul(size, scattered(0, n, 3.1, size, site)), 0),
                    q = scattered(1, n, 4.7, size, site);
    const duet_expr column = duet_cast(p, duet_expr_type(x)), row = duet_cast(q, duet_expr_type(x)),
                    full = duet_add(x, duet_mul(column, row)), d = duet_det(full);
    const duet_expr eye = duet_equal(counted(0, 2, n, 1, site), counted(1, 2, n, 1, site)),
                    b = duet_where(duet_equal(d, 0), duet_cast(eye, duet_expr_type(x)), full),
                    inverse = duet_inv(b);
    const duet_expr z = duet_matmul(inverse, column), w = duet_matmul(row, inverse),
                    rest = duet_sub(1, duet_matmul(row, z)),
                    adjugate = duet_add(duet_mul(rest, inverse), duet_matmul(z, w));
    const double limit = (is_double ? 0x1p52 : 0x1p23) / (8 * (double)n);
    const duet_expr largest = largest_of(duet_stop_gradient(inverse), site);
    const duet_expr is_zero = duet_logical_and(is_singular, duet_greater(duet_mul(size, largest), limit));
    return duet_where(is_zero, 0, duet_mul(duet_mul(g, d), duet_transpose(adjugate)));
}

/* ---- systems ---- */

/* a r = b. */
duet_expr of_solve_matrix(const node *n, duet_expr a, duet_expr r, duet_expr g, const char *site)
{
    const duet_expr b = duet_solve_at(duet_transpose(a), g, (const duet_solver *)n->attr.word, site);
    return duet_neg(outer(b, r, site));
}

duet_expr of_triangle_side(const node *n, duet_expr a, duet_expr g, const char *site)
{
    duet_triangle t = *(const duet_triangle *)n->attr.word;
    t.transposed = !t.transposed;
    return duet_solve_triangular_at(a, g, &t, site);
}

/* Only elements of the triangle are read. */
duet_expr of_triangle_matrix(const node *n, duet_expr a, duet_expr r, duet_expr g, const char *site)
{
    const duet_triangle *t = (const duet_triangle *)n->attr.word;
    const duet_expr b = of_triangle_side(n, a, g, site),
                    d = duet_neg(t->transposed ? outer(r, b, site) : outer(b, r, site));
    return t->lower ? duet_tril(d, t->unit ? -1 : 0) : duet_triu(d, t->unit ? 1 : 0);
}

/* The derivative of the pseudoinverse (Golub and Pereyra 1973), for matrices whose rank does not change. */
duet_expr of_lstsq_matrix(duet_expr a, duet_expr b, duet_expr r, duet_expr g, const char *site)
{
    const duet_expr at = duet_transpose(a), p = duet_lstsq(at, g);
    const duet_expr rest = duet_sub(b, duet_matmul(a, r)), beyond = duet_sub(g, duet_matmul(at, p));
    const duet_expr d =
        duet_sub(outer(conjugate(rest, site), duet_lstsq(a, conjugate(p, site)), site), outer(p, r, site));
    return duet_add(d, outer(duet_lstsq(at, conjugate(r, site)), conjugate(beyond, site), site));
}
