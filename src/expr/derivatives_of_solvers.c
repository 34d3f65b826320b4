/* derivatives_of_solvers.c - the gradients of linear algebra. */
#include "derivative_rules.h"
#undef DUET_HERE
#define DUET_HERE site /* of the user's call */

/* Stacks of matrices have other axes in front of the last two. */
static duet_expr turned(duet_expr x, const char *site) { return last_two_swapped(x, site); }

/* x with another axis of size 1 at the end. */
static duet_expr with_column(duet_expr x, const char *site)
{
    shape s = formula_shape(x);
    s.size[s.rank++] = 1;
    return duet_reshape_at(x, s.rank, s.size, site);
}

/* v, which has one element for each matrix of x, in a shape that broadcasts to x. */
static duet_expr for_each_matrix(duet_expr v, duet_expr x, const char *site)
{
    if (duet_expr_rank(x) == 2 || is_number(v)) return v;
    return with_column(with_column(v, site), site);
}

/* The right-hand sides, the solutions or their gradients: vectors as columns. y is the right-hand side of the
 * user: if it has one axis, v is a stack of vectors. */
static duet_expr columns(duet_expr v, duet_expr y, const char *site)
{
    return duet_expr_rank(y) == 1 ? with_column(v, site) : v;
}

/* The gradient d of the right-hand sides y, which may have been broadcast. */
static duet_expr as_sides(duet_expr d, duet_expr y, const char *site)
{
    return like_shape(unbroadcast(d, columns(y, y, site), site), y, site);
}

/* The sum over columns of the outer products of x and y. */
static duet_expr outer(duet_expr x, duet_expr y, const char *site) { return duet_matmul(x, turned(y, site)); }

static duet_expr conjugate(duet_expr x, const char *site) { return is_complex(x) ? duet_conj(x) : x; }

/* dL = L P(inv(L) dA inv(L)^H), where P keeps the lower triangle and half of the diagonal. Only the lower
 * triangle of A is read, so that an element there stands for two, of which one is conjugated. Imaginary
 * parts of the diagonal are not read. */
duet_expr of_cholesky(duet_expr r, duet_expr g, const char *site)
{
    const duet_triangle transposed = { .lower = 1, .transposed = 1 };
    const duet_expr m = duet_matmul(turned(r, site), g),
                    p = duet_mul(0.5, duet_add(duet_tril(m, 0), duet_tril(m, -1)));
    const duet_expr half = duet_solve_triangular_at(r, p, &transposed, site),
                    s = duet_solve_triangular_at(conjugate(r, site), turned(half, site), &transposed, site),
                    two = duet_add(turned(s, site), conjugate(s, site));
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

/* The largest magnitude of an element of each matrix. */
static duet_expr largest_of(duet_expr x, const char *site)
{
    const int last[] = { -2, -1 };
    return duet_max_axes_keep_at(duet_abs(x), 2, last, site);
}

/* The gradient is the transpose of the adjugate: det(x) inv(x) for an invertible x. The adjugate also exists
 * for a singular x: for any column p and row q, with b = x + p q and z = inv(b) p, w = q inv(b),
 *     adj(x) = det(b) ((1 - q z) inv(b) + z w)
 * Here p is 0 for an invertible x. Otherwise b is invertible if the rank of x is only one less than its
 * size. If the rank is smaller, the adjugate is 0; then b is singular, exactly or to working precision. */
duet_expr of_determinant(duet_expr x, duet_expr r, duet_expr g, const char *site)
{
    const int64_t n = duet_expr_size(x, duet_expr_rank(x) - 1);
    const bool is_double = duet_expr_type(x) == DUET_F64 || duet_expr_type(x) == DUET_C128;
    const shape s = formula_shape(x);
    const duet_expr each = for_each_matrix(g, x, site);
    if (n < 2) return spread_to(each, &s, site);
    const duet_expr is_singular = duet_equal(for_each_matrix(r, x, site), 0), own = duet_stop_gradient(x),
                    size = largest_of(own, site),
                    p = duet_where(is_singular, duet_mul(size, scattered(0, n, 3.1, size, site)), 0),
                    q = scattered(1, n, 4.7, size, site);
    const duet_expr column = duet_cast(p, duet_expr_type(x)), row = duet_cast(q, duet_expr_type(x)),
                    full = duet_add(x, duet_mul(column, row)), d = for_each_matrix(duet_det(full), x, site);
    const duet_expr eye = duet_equal(counted(0, 2, n, 1, site), counted(1, 2, n, 1, site)),
                    b = duet_where(duet_equal(d, 0), duet_cast(eye, duet_expr_type(x)), full),
                    inverse = duet_inv(b);
    const duet_expr z = duet_matmul(inverse, column), w = duet_matmul(row, inverse),
                    rest = duet_sub(1, duet_matmul(row, z)),
                    adjugate = duet_add(duet_mul(rest, inverse), duet_matmul(z, w));
    const double limit = (is_double ? 0x1p52 : 0x1p23) / (8 * (double)n);
    const duet_expr largest = largest_of(duet_stop_gradient(inverse), site);
    const duet_expr is_zero = duet_logical_and(is_singular, duet_greater(duet_mul(size, largest), limit));
    return duet_where(is_zero, 0, duet_mul(duet_mul(each, d), turned(adjugate, site)));
}

duet_expr of_log_determinant(duet_expr x, duet_expr g, const char *site)
{
    return duet_mul(for_each_matrix(g, x, site), turned(duet_inv(x), site));
}

duet_expr of_inverse(duet_expr r, duet_expr g, const char *site)
{
    const duet_expr t = turned(r, site);
    return duet_neg(duet_matmul(t, duet_matmul(g, t)));
}

/* ---- exponentials ---- */

/* The derivative of exp at t = x^T in the direction g is the upper right block of the exponential of
 *     t g
 *     0 t
 * (Van Loan 1978; Higham, Functions of Matrices, 2008, equation 3.16). */
duet_expr of_exponential(duet_expr x, duet_expr g, const char *site)
{
    const int64_t n = duet_expr_size(x, duet_expr_rank(x) - 1);
    const duet_expr t = turned(x, site), top = duet_concat(-1, t, g),
                    below = duet_concat(-1, zeros_like(t, site), t);
    const duet_expr e = duet_expm(duet_concat(-2, top, below));
    return duet_range(duet_range(e, -2, 0, n, 1), -1, n, 2 * n, 1);
}

/* ---- systems a r = y ---- */

static duet_expr solved_back(const node *n, duet_expr a, duet_expr y, duet_expr g, const char *site)
{
    return duet_solve_at(turned(a, site), columns(g, y, site), (const duet_solver *)n->attr.word, site);
}

duet_expr of_solve_matrix(const node *n, duet_expr a, duet_expr y, duet_expr r, duet_expr g, const char *site)
{
    const duet_expr b = solved_back(n, a, y, g, site);
    return unbroadcast(duet_neg(outer(b, columns(r, y, site), site)), a, site);
}

duet_expr of_solve_side(const node *n, duet_expr a, duet_expr y, duet_expr g, const char *site)
{
    return as_sides(solved_back(n, a, y, g, site), y, site);
}

static duet_expr substituted_back(const node *n, duet_expr a, duet_expr y, duet_expr g, const char *site)
{
    duet_triangle t = *(const duet_triangle *)n->attr.word;
    t.transposed = !t.transposed;
    return duet_solve_triangular_at(a, columns(g, y, site), &t, site);
}

/* Only elements of the triangle are read. */
duet_expr of_triangle_matrix(const node *n, duet_expr a, duet_expr y, duet_expr r, duet_expr g,
                             const char *site)
{
    const duet_triangle *t = (const duet_triangle *)n->attr.word;
    const duet_expr b = substituted_back(n, a, y, g, site), x = columns(r, y, site),
                    d = duet_neg(t->transposed ? outer(x, b, site) : outer(b, x, site));
    return unbroadcast(t->lower ? duet_tril(d, t->unit ? -1 : 0) : duet_triu(d, t->unit ? 1 : 0), a, site);
}

duet_expr of_triangle_side(const node *n, duet_expr a, duet_expr y, duet_expr g, const char *site)
{
    return as_sides(substituted_back(n, a, y, g, site), y, site);
}

/* The derivative of the pseudoinverse (Golub and Pereyra 1973), for matrices whose rank does not change. */
duet_expr of_lstsq_matrix(duet_expr a, duet_expr y, duet_expr r, duet_expr g, const char *site)
{
    const duet_expr at = turned(a, site), x = columns(r, y, site), back = columns(g, y, site),
                    p = duet_lstsq(at, back);
    const duet_expr rest = duet_sub(columns(y, y, site), duet_matmul(a, x)),
                    beyond = duet_sub(back, duet_matmul(at, p));
    const duet_expr d =
        duet_sub(outer(conjugate(rest, site), duet_lstsq(a, conjugate(p, site)), site), outer(p, x, site));
    return unbroadcast(duet_add(d, outer(duet_lstsq(at, conjugate(x, site)), conjugate(beyond, site), site)),
                       a, site);
}

duet_expr of_lstsq_side(duet_expr a, duet_expr y, duet_expr g, const char *site)
{
    return as_sides(duet_lstsq(turned(a, site), columns(g, y, site)), y, site);
}
