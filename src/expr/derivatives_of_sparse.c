/* derivatives_of_sparse.c - the gradients of operators with a sparse matrix. The gradient with respect to its
 * values has one element for each element of the pattern. */
#include "derivative_rules.h"
#include <string.h>
#undef DUET_HERE
#define DUET_HERE site /* of the user's call */

duet_expr of_csr_side(const node *n, duet_expr x, duet_expr y, duet_expr g, const char *site)
{
    int64_t columns;
    memcpy(&columns, n->attr.csr.columns, sizeof columns);
    return duet_csr_matmul(x, y, g, columns, !n->attr.csr.transposed);
}

/* b: the right-hand sides of which the system with the transpose has the solution for g. */
static duet_expr of_system(duet_expr b, duet_expr y, duet_expr r, bool transposed, const char *site)
{
    return duet_neg(transposed ? duet_csr_sddmm(r, y, b) : duet_csr_sddmm(b, y, r));
}

duet_expr of_csr_solve(const node *n, duet_expr x, duet_expr y, duet_expr r, duet_expr g, const char *site)
{
    return of_system(duet_csr_solve(x, y, g, !n->attr.turned), y, r, n->attr.turned, site);
}

duet_expr of_csr_triangle_side(const node *n, duet_expr x, duet_expr y, duet_expr g, const char *site)
{
    duet_triangle t = *(const duet_triangle *)n->attr.word;
    t.transposed = !t.transposed;
    return duet_csr_solve_triangular_at(x, y, g, &t, site);
}

/* 1 for each element of the triangle that is read, else 0. Element k is in the row whose number is that of
 * the row ends up to k. */
static duet_expr is_read(const node *n, duet_expr x, duet_expr y, const char *site)
{
    const duet_triangle *t = (const duet_triangle *)n->attr.word;
    const int64_t count = duet_expr_size(x, 0), length = duet_expr_size(y, 0), rows = length - 1 - count;
    const duet_expr ends = duet_range(duet_cast(y, DUET_I64), 0, 1, rows + 1, 1),
                    column = duet_range(duet_cast(y, DUET_I64), 0, rows + 1, length, 1),
                    row = duet_searchsorted(ends, duet_iota(DUET_I64, count), DUET_SIDE_RIGHT);
    if (t->lower) return t->unit ? duet_less(column, row) : duet_less_equal(column, row);
    return t->unit ? duet_greater(column, row) : duet_greater_equal(column, row);
}

duet_expr of_csr_triangle(const node *n, duet_expr x, duet_expr y, duet_expr r, duet_expr g, const char *site)
{
    const bool transposed = ((const duet_triangle *)n->attr.word)->transposed;
    const duet_expr d = of_system(of_csr_triangle_side(n, x, y, g, site), y, r, transposed, site);
    return duet_where(is_read(n, x, y, site), d, 0);
}
