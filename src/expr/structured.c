/* structured.c - structured operands: which structure the result of an operator has, and formulas that
 * replace operators of triangular and diagonal matrices. */
#include "structured.h"
#include "call_text.h"
#include "operands.h"
#include "structure.h"
#include "view_formulas.h"
#include <math.h>

#undef DUET_HERE
#define DUET_HERE site /* of the user's call */

#define DEEPEST 8 /* levels of operators; below them nothing is known */
#define FEW     4 /* the same where an operand is looked at for each operator that is built */
#define ZEROS   (ZERO_ABOVE | ZERO_BELOW | ZERO_DIAGONAL)
#define MIRRORS (SYMMETRIC | HERMITIAN)

static formula_properties of_node(const node *n, int depth);

static bool is_square(const node *n) { return n->rank == 2 && n->size[0] == n->size[1]; }
static bool has_one_element(const node *n)
{
    for (int a = 0; a < n->rank; a++)
        if (n->size[a] != 1) return false;
    return true;
}
static const node *below(const node *n, int k) { return n - n->back[k]; }

/* ---- element-wise operators ---- */

/* Does op give zero for zero? */
static bool keeps_zero(int op)
{
    switch (op) {
    case OP_neg:
    case OP_abs:
    case OP_sqrt:
    case OP_expm1:
    case OP_log1p:
    case OP_cbrt:
    case OP_sinh:
    case OP_tanh:
    case OP_asinh:
    case OP_atanh:
    case OP_sin:
    case OP_tan:
    case OP_asin:
    case OP_atan:
    case OP_erf:
    case OP_gelu:
    case OP_relu:
    case OP_floor:
    case OP_ceil:
    case OP_trunc:
    case OP_round:
    case OP_sign:
    case OP_real:
    case OP_imag:
    case OP_conj:
    case OP_cast: return true;
    default: return false;
    }
}

/* Are results equal for operands that are equal, that is, also for 0 and -0? They are not where a sign of
 * zero chooses an infinity, or a side of a branch cut. */
static bool ignores_sign_of_zero(const node *n)
{
    switch (n->op) {
    case OP_neg:
    case OP_abs:
    case OP_add:
    case OP_sub:
    case OP_mul:
    case OP_real:
    case OP_imag:
    case OP_conj: return true;
    case OP_rsqrt:
    case OP_signbit:
    case OP_div:
    case OP_pow:
    case OP_copysign:
    case OP_atan2:
    case OP_floor_divide:
    case OP_remainder:
    case OP_fmod: return false;
    default: return !dtype_is_complex((duet_dtype)n->type);
    }
}

static formula_properties of_one(const node *n, formula_properties x)
{
    unsigned kept = keeps_zero(n->op) ? ZEROS : 0;
    if (n->op == OP_abs || n->op == OP_sqrt || n->op == OP_real || n->op == OP_conj || n->op == OP_cast ||
        n->op == OP_sign)
        kept |= ONE_DIAGONAL;
    const bool conjugates = n->op == OP_neg || n->op == OP_conj || n->op == OP_cast || n->op == OP_real;
    const unsigned mirrors = SYMMETRIC | (conjugates ? HERMITIAN : 0);
    return (formula_properties){ x.exact & (kept | (ignores_sign_of_zero(n) ? mirrors : 0)),
                                 x.likely & (kept | mirrors) };
}

/* Is n a real number whose product with zero is zero in every type? And the quotient, if it is a divisor?
 * Numbers that are very large or very small may be infinite or zero in a narrower type. */
static bool is_plain_number(const node *n, bool divisor)
{
    if (n->op != OP_NUMBER) return false;
    const double x = fabs(node_number(n));
    return x <= 1e15 && (!divisor || x >= 1e-15);
}

/* x with s, a number or a matrix of one element. first: is s the first operand? */
static formula_properties with_scalar(const node *n, formula_properties x, const node *s, bool first)
{
    const bool divides = n->op == OP_div && !first, real = !dtype_is_complex((duet_dtype)s->type);
    const bool keeps_equal = ignores_sign_of_zero(n) || divides;
    unsigned exact = keeps_equal ? SYMMETRIC : 0, likely = SYMMETRIC;
    if ((n->op == OP_mul || divides) && is_plain_number(s, divides)) exact |= ZEROS | HERMITIAN;
    if (n->op == OP_mul) likely |= ZEROS | (real ? HERMITIAN : 0);
    if (divides || n->op == OP_add || n->op == OP_sub) likely |= real ? HERMITIAN : 0;
    return (formula_properties){ x.exact & exact, x.likely & (exact | likely) };
}

/* The properties of a sum, from those of its operands. */
static unsigned of_sum(unsigned x, unsigned y)
{
    unsigned p = x & y & (ZEROS | MIRRORS);
    if ((x & ONE_DIAGONAL && y & ZERO_DIAGONAL) || (x & ZERO_DIAGONAL && y & ONE_DIAGONAL)) p |= ONE_DIAGONAL;
    return p;
}

static formula_properties of_two(const node *n, int depth)
{
    const node *a = below(n, 0), *b = below(n, 1);
    if (has_one_element(b) && n->size[0] != 1) return with_scalar(n, of_node(a, depth), b, false);
    if (has_one_element(a) && n->size[0] != 1) return with_scalar(n, of_node(b, depth), a, true);
    const bool whole[2] = { is_square(a) && a->size[0] == n->size[0],
                            is_square(b) && b->size[0] == n->size[0] };
    const formula_properties none = { 0, 0 }, x = whole[0] ? of_node(a, depth) : none,
                             y = whole[1] ? of_node(b, depth) : none;
    formula_properties p = { ignores_sign_of_zero(n) ? x.exact & y.exact & SYMMETRIC : 0,
                             x.likely & y.likely & SYMMETRIC };
    if (n->op == OP_add) return (formula_properties){ of_sum(x.exact, y.exact), of_sum(x.likely, y.likely) };
    if (n->op == OP_sub) {
        p = (formula_properties){ of_sum(x.exact, y.exact), of_sum(x.likely, y.likely) };
        if (x.exact & ZERO_DIAGONAL) p.exact &= ~(unsigned)ONE_DIAGONAL; /* 0 - 1 */
        if (x.likely & ZERO_DIAGONAL) p.likely &= ~(unsigned)ONE_DIAGONAL;
    }
    if (n->op == OP_mul) {
        p.exact |= x.exact & y.exact & (ZEROS | ONE_DIAGONAL | HERMITIAN);
        p.likely |= ((x.likely | y.likely) & ZEROS) | (x.likely & y.likely & (ONE_DIAGONAL | HERMITIAN));
    }
    if (n->op == OP_minimum || n->op == OP_maximum) p.exact |= x.exact & y.exact & (ZEROS | ONE_DIAGONAL);
    p.likely |= p.exact;
    return p;
}

/* ---- products and factors ---- */

/* Is b the transpose of a, and, if `conjugated`, its conjugate too? Only of matrices. */
static bool is_transpose_of(const node *b, const node *a, bool *conjugated)
{
    bool swapped = false;
    *conjugated = false;
    while (b->op == OP_transpose || b->op == OP_conj) {
        swapped ^= b->op == OP_transpose;
        *conjugated ^= b->op == OP_conj;
        b = below(b, 0);
    }
    while (a->op == OP_transpose || a->op == OP_conj) {
        swapped ^= a->op == OP_transpose;
        *conjugated ^= a->op == OP_conj;
        a = below(a, 0);
    }
    return a->op == OP_LEAF && b->op == OP_LEAF && a->matrix == b->matrix &&
           a->matrix_serial == b->matrix_serial && swapped;
}

static formula_properties of_product(const node *n, int depth)
{
    const node *a = below(n, 0), *b = below(n, 1);
    const bool is_complex = dtype_is_complex((duet_dtype)n->type);
    bool conjugated = false;
    unsigned p = 0;
    if (a->rank == 2 && b->rank == 2 && is_transpose_of(b, a, &conjugated))
        p |= conjugated || !is_complex ? HERMITIAN | (is_complex ? 0 : SYMMETRIC) : SYMMETRIC;
    if (is_square(a) && is_square(b)) {
        const unsigned x = of_node(a, depth).likely, y = of_node(b, depth).likely;
        p |= x & y & (ZERO_ABOVE | ZERO_BELOW);
        if (p & (ZERO_ABOVE | ZERO_BELOW)) p |= ((x | y) & ZERO_DIAGONAL) | (x & y & ONE_DIAGONAL);
    }
    return (formula_properties){ 0, p };
}

static formula_properties of_leaf(const node *n)
{
    const unsigned p = matrix_alive(n->matrix, n->matrix_serial) ? matrix_properties(n->matrix) : 0;
    return (formula_properties){ p, p };
}

/* Only the inverse of a triangular matrix keeps ones on the diagonal. */
static unsigned of_inverse(unsigned p)
{
    return p & (ZERO_ABOVE | ZERO_BELOW) ? p & ~(unsigned)ZERO_DIAGONAL : p & MIRRORS;
}

/* The solution of a lower triangular system with a lower triangular right-hand side; and of upper ones. */
static formula_properties of_solution(const node *n, int depth)
{
    const node *a = below(n, 0), *b = below(n, 1);
    const triangle_attributes *t = &n->attr.triangle;
    const unsigned y = of_node(b, depth).likely, side = !t->lower == !t->transposed ? ZERO_BELOW : ZERO_ABOVE;
    const bool ones = y & ONE_DIAGONAL && (t->unit || of_node(a, depth).likely & ONE_DIAGONAL);
    if (!(y & side)) return (formula_properties){ 0, 0 };
    return (formula_properties){ 0, side | (y & ZERO_DIAGONAL) | (ones ? ONE_DIAGONAL : 0) };
}

/* ---- masks of tril, triu and diag (triangle_formulas.c) ---- */

/* The elements of a vector of constants: how many were seen, and where the first and the last true one are,
 * and whether `middle` is true. */
typedef struct mask {
    int64_t seen, first, last, middle;
    bool any, at_middle;
} mask;

static bool read_mask(const node *n, mask *m)
{
    if (n->op == OP_append) return read_mask(below(n, 0), m) && read_mask(below(n, 1), m);
    const node *number = n->op == OP_broadcast && below(n, 0)->op == OP_cast ? below(below(n, 0), 0) : n;
    if (number->op != OP_NUMBER || n->rank != 1) return false;
    const int64_t end = m->seen + n->size[0];
    if (node_number(number) != 0 && end > m->seen) {
        if (!m->any) m->first = m->seen;
        m->last = end - 1;
        m->at_middle |= m->seen <= m->middle && m->middle < end;
        m->any = true;
    }
    m->seen = end;
    return true;
}

/* Is n a matrix whose diagonals are those constants? Element (i, j) is element i - j + size - 1. */
static bool is_mask(const node *n, mask *m)
{
    const range_words *r = &n->attr.range;
    if (n->op != OP_range || below(n, 0)->op != OP_sliding_window) return false;
    if (r->axis != 1 || pair_of_words(r->step) != -1 || n->size[1] != below(n, 0)->size[1]) return false;
    const node *v = below(below(n, 0), 0);
    *m = (mask){ .middle = n->size[1] - 1 };
    return v->rank == 1 && v->size[0] == n->size[0] + n->size[1] - 1 && read_mask(v, m);
}

static bool is_ones(const node *n)
{
    while (n->op == OP_broadcast || n->op == OP_cast) n = below(n, 0);
    return n->op == OP_NUMBER && node_number(n) == 1;
}

static formula_properties of_masked(const node *n, int depth)
{
    const node *x = below(n, 1), *other = below(n, 2);
    mask m;
    if (other->op != OP_NUMBER || node_number(other) != 0 || !is_mask(below(n, 0), &m))
        return (formula_properties){ 0, 0 };
    unsigned p = 0;
    if (!m.any || m.first >= m.middle) p |= ZERO_ABOVE;
    if (!m.any || m.last <= m.middle) p |= ZERO_BELOW;
    if (!m.at_middle) p |= ZERO_DIAGONAL;
    else if (is_ones(x)) p |= ONE_DIAGONAL;
    const unsigned kept = ZEROS | (m.at_middle ? ONE_DIAGONAL : 0);
    const formula_properties of_x = of_node(x, depth);
    return (formula_properties){ p | (of_x.exact & kept), p | (of_x.likely & kept) };
}

static formula_properties of_operator(const node *n, int depth)
{
    formula_properties x;
    switch (n->op) {
    case OP_transpose:
        x = of_node(below(n, 0), depth);
        return (formula_properties){ properties_transposed(x.exact), properties_transposed(x.likely) };
    case OP_matmul: return of_product(n, depth);
    case OP_cholesky: return (formula_properties){ ZERO_ABOVE, ZERO_ABOVE };
    case OP_inv: x = of_node(below(n, 0), depth); return (formula_properties){ 0, of_inverse(x.likely) };
    case OP_solve_triangular: return of_solution(n, depth);
    case OP_where: return of_masked(n, depth);
    default: break;
    }
    if (op_infos[n->op].kind != KIND_MAP && n->op != OP_conj && n->op != OP_real && n->op != OP_imag &&
        n->op != OP_cast)
        return (formula_properties){ 0, 0 };
    if (op_infos[n->op].arity == 2) return of_two(n, depth);
    if (op_infos[n->op].arity > 2) return (formula_properties){ 0, 0 };
    return of_one(n, of_node(below(n, 0), depth));
}

static formula_properties of_node(const node *n, int depth)
{
    formula_properties p = { 0, 0 };
    if (!is_square(n) || depth > DEEPEST || n->flags & NODE_WEAK) return p;
    if (n->op == OP_LEAF) p = of_leaf(n);
    else if (n->op < OPS) p = of_operator(n, depth + 1);
    const bool is_complex = dtype_is_complex((duet_dtype)n->type);
    p.exact = properties_completed(p.exact, is_complex);
    p.likely = properties_completed(p.likely, is_complex) | p.exact;
    return p;
}

formula_properties properties_of_node(const node *n) { return of_node(n, 0); }

duet_structure duet_expr_structure(duet_expr e)
{
    formula f;
    if (duet_expr_status(e) != DUET_OK || formula_of(e, "duet_expr_structure", &f) != DUET_OK)
        return DUET_GENERAL;
    return structure_named(properties_of_node(&f.nodes[f.count - 1]).likely);
}

/* ---- formulas that replace operators ---- */

/* The properties of a matrix that an operator reads, without looking far: of a declared matrix, of its
 * transpose, of a Cholesky factor, ... */
static unsigned properties_of(const node *n)
{
    if (likely(n->op == OP_LEAF)) return of_leaf(n).exact;
    if (n->op == OP_NUMBER || n->op >= OPS) return 0;
    return of_node(n, DEEPEST - FEW).likely;
}

static unsigned is_triangular(unsigned p) { return p & (ZERO_ABOVE | ZERO_BELOW); }

static duet_triangle triangle_of(unsigned p)
{
    return (duet_triangle){ .lower = (p & ZERO_ABOVE) != 0, .unit = (p & ONE_DIAGONAL) != 0 };
}

/* The diagonal of x, for the rows or columns of a matrix of this rank. */
static duet_expr diagonal_for(duet_expr x, bool rows, int rank, const char *site)
{
    const duet_expr d = duet_diagonal_of(x, 0);
    return rows && rank == 2 ? duet_expand_dims(d, 1) : d;
}

#define DIAGONAL (ZERO_ABOVE | ZERO_BELOW)
static bool is_diagonal(unsigned p) { return (p & DIAGONAL) == DIAGONAL; }

/* The operand of solve_triangular. Gradients of a diagonal matrix must not reach its other elements. */
static duet_expr triangle_from(duet_expr x, unsigned p, const char *site)
{
    return is_diagonal(p) ? duet_diag(duet_diagonal_of(x, 0), 0) : x;
}

static duet_expr ones_like(duet_expr x, const char *site)
{
    const duet_expr one = duet_cast_at(duet_of_number(1), duet_expr_type(x), site);
    return duet_broadcast(one, duet_expr_size(x, 0));
}

/* The inverse of a diagonal matrix is that of its diagonal. */
static duet_expr inverse_of(duet_expr x, unsigned p, const duet_triangle *t, const char *site)
{
    const duet_expr one = ones_like(x, site);
    if (!is_diagonal(p)) return duet_solve_triangular_at(x, duet_diag(one, 0), t, site);
    return duet_diag(duet_solve_triangular_at(triangle_from(x, p, site), one, t, site), 0);
}

static bool structured_product(const duet_expr e[], const node *a, const node *b, const char *site,
                               duet_expr *made)
{
    const bool fits =
        a->rank && b->rank && a->rank <= 2 && b->rank <= 2 && a->size[a->rank - 1] == b->size[0];
    if (!fits) return false;
    if (a->rank == 2 && is_diagonal(properties_of(a))) {
        *made = duet_mul(diagonal_for(e[0], true, b->rank, site), e[1]);
        return true;
    }
    if (b->rank == 2 && is_diagonal(properties_of(b))) {
        *made = duet_mul(e[0], diagonal_for(e[1], false, a->rank, site));
        return true;
    }
    return false;
}

static bool structured_solve(const duet_expr e[], const node *a, const node *b, const int32_t *attr,
                             const char *site, duet_expr *made)
{
    const unsigned p = properties_of(a);
    const bool fits = b->rank >= 1 && b->rank <= 2 && b->size[0] == a->size[0] && (!attr || !attr[0]);
    if (!is_triangular(p) || !fits) return false;
    const duet_triangle t = triangle_of(p);
    *made = duet_solve_triangular_at(triangle_from(e[0], p, site), e[1], &t, site);
    return true;
}

static bool structured_call(enum op op, const duet_expr e[], const node *a, const char *site, duet_expr *made)
{
    const unsigned p = properties_of(a);
    if (!is_triangular(p)) return false;
    const duet_triangle t = triangle_of(p);
    if (op == OP_inv) *made = inverse_of(e[0], p, &t, site);
    else if (op == OP_det) *made = duet_prod(duet_diagonal_of(e[0], 0));
    else *made = duet_sum(duet_log(duet_abs(duet_diagonal_of(e[0], 0))));
    return true;
}

bool make_structured(enum op op, const char *function, int arity, const duet_expr e[], const int32_t *attr,
                     const char *site, duet_expr *made)
{
    arena *a = arena_mine();
    node *x[3] = { 0 };
    bool is = false;
    for (int k = 0; k < arity; k++) {
        if (e[k].serial & SERIAL_HELD || !a) return false; /* it would be copied twice */
        x[k] = arena_look(a, e[k].serial);
        if (!x[k] || x[k]->flags & (NODE_SPENT | NODE_FAILED)) return false;
    }
    const bool same = arity < 2 || x[0]->type == x[1]->type || (x[0]->flags | x[1]->flags) & NODE_WEAK;
    if (!same || !dtype_is_blas((duet_dtype)x[0]->type)) return false;
    if (op == OP_matmul) is = structured_product(e, x[0], x[1], site, made);
    else if (!is_square(x[0])) return false;
    else if (op == OP_solve) is = structured_solve(e, x[0], x[1], attr, site, made);
    else is = structured_call(op, e, x[0], site, made);
    if (is) *made = composed(function, arity, e, *made, site);
    return is;
}
