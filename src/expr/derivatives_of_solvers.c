/* derivatives_of_solvers.c - the gradients of linear algebra. */
#include "derivative_rules.h"
#include "status.h"
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

static duet_expr only_real(const char *function, duet_expr x, const char *site)
{
    const duet_status s = fail(DUET_UNSUPPORTED, "the gradient of %s supports real matrices only", function);
    return bad_argument(function, x, s, site);
}

/* dL = L P(inv(L) dA inv(L)^T), where P keeps the lower triangle and half of the diagonal. Only the lower
 * triangle of A is read, so that an element there stands for two. */
duet_expr of_cholesky(duet_expr r, duet_expr g, const char *site)
{
    if (is_complex(r)) return only_real("cholesky", r, site);
    const duet_triangle transposed = { .lower = 1, .transposed = 1 };
    const duet_expr m = duet_matmul(duet_transpose(r), g),
                    p = duet_add(duet_mul(0.5, duet_tril(m, 0)), duet_mul(0.5, duet_tril(m, -1)));
    const duet_expr half = duet_solve_triangular_at(r, p, &transposed, site),
                    s = duet_solve_triangular_at(r, duet_transpose(half), &transposed, site);
    return duet_add(duet_tril(s, 0), duet_tril(duet_transpose(s), -1));
}

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
    if (is_complex(a)) return only_real("lstsq", a, site);
    const duet_expr at = duet_transpose(a), p = duet_lstsq(at, g);
    const duet_expr rest = duet_sub(b, duet_matmul(a, r)), beyond = duet_sub(g, duet_matmul(at, p));
    const duet_expr d = duet_sub(outer(rest, duet_lstsq(a, p), site), outer(p, r, site));
    return duet_add(d, outer(duet_lstsq(at, r), beyond, site));
}
