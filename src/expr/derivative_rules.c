/* derivative_rules.c - broadcasting undone, and the gradients of reductions and products. */
#include "derivative_rules.h"
#include "einsum.h"
#include "status.h"
#include <stdarg.h>
#include <stdio.h>
#undef DUET_HERE
#define DUET_HERE site /* of the user's call */

bool is_number(duet_expr v)
{
    const node *n = arena_here() ? arena_look(arena_here(), v.serial) : NULL;
    return n && n->flags & NODE_WEAK;
}

duet_expr refused(duet_expr g, const char *site, const char *format, ...)
{
    char text[300];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return bad_argument("grad", g, fail(DUET_UNSUPPORTED, "%s", text), site);
}

/* ---- sigmoid and tanh ---- */

#define SHORT 16 /* operators */

static bool is_short_map(const node *n, int *left)
{
    if (n->op == OP_LEAF || n->op == OP_NUMBER) return true;
    if (n->op >= OPS || op_infos[n->op].kind != KIND_MAP || --*left < 0) return false;
    for (int k = 0; k < op_infos[n->op].arity; k++)
        if (!is_short_map(n - n->back[k], left)) return false;
    return true;
}

/* Is x computed from matrices by few element-wise operators? Then a derivative may use it. The sums of a
 * layer would have to be stored for that; without them, the layer and its activation are one step. */
static bool is_at_hand(duet_expr x)
{
    const node *n = arena_here() ? arena_look(arena_here(), x.serial) : NULL;
    int left = SHORT;
    return n && is_short_map(n, &left);
}

/* r (1 - r) cancels where r is nearly 1. Its absolute error is small, which suffices for a layer. */
duet_expr of_sigmoid(duet_expr x, duet_expr r, const char *site)
{
    return duet_mul(r, is_at_hand(x) ? duet_sigmoid(duet_neg(x)) : duet_sub(1, r));
}

/* Likewise; 1 - r and 1 + r are 2 sigmoid(-2 x) and 2 sigmoid(2 x). 1 / cosh(x)^2 would make the second
 * derivative infinity / infinity for large x. */
duet_expr of_tanh(duet_expr x, duet_expr r, const char *site)
{
    if (!is_at_hand(x) || is_complex(x)) return duet_mul(duet_sub(1, r), duet_add(1, r));
    const duet_expr two = duet_mul(2, x);
    return duet_mul(4, duet_mul(duet_sigmoid(two), duet_sigmoid(duet_neg(two))));
}

/* ---- shapes ---- */

duet_expr like_shape(duet_expr v, duet_expr like, const char *site)
{
    const shape s = formula_shape(v), to = formula_shape(like);
    return shape_equal(&s, &to) ? v : duet_reshape_at(v, to.rank, to.size, site);
}

duet_expr spread_to(duet_expr v, const shape *to, const char *site)
{
    const shape s = formula_shape(v);
    return shape_equal(&s, to) ? v : duet_broadcast_at(v, to->rank, to->size, site);
}

duet_expr number_like(duet_expr v, duet_expr like, const char *site)
{
    const shape to = formula_shape(like);
    return spread_to(duet_cast(v, duet_expr_type(like)), &to, site);
}

duet_expr zeros_like(duet_expr like, const char *site) { return number_like(duet_of_number(0), like, site); }

/* Sums over leading axes that `to` lacks, and over axes of one element of `to`. */
static duet_expr sum_to(duet_expr v, const shape *to, const char *site)
{
    const shape s = formula_shape(v);
    int axis[DUET_RANK_MAX], count = 0;
    for (int a = 0; a < s.rank; a++) {
        const int b = a - (s.rank - to->rank);
        if (b < 0 || (to->size[b] == 1 && s.size[a] != 1)) axis[count++] = a;
    }
    if (count) v = duet_sum_axes_at(v, count, axis, site);
    const shape now = formula_shape(v);
    return shape_equal(&now, to) ? v : duet_reshape_at(v, to->rank, to->size, site);
}

static duet_expr in_type_of(duet_expr v, duet_expr like, const char *site)
{
    const duet_dtype t = duet_expr_type(like);
    if (duet_expr_type(v) == t) return v;
    if (is_complex(v) && !is_complex(like)) v = duet_real(v);
    return duet_expr_type(v) == t ? v : duet_cast(v, t);
}

duet_expr unbroadcast(duet_expr v, duet_expr like, const char *site)
{
    const shape to = formula_shape(like);
    if (!is_valid(v)) return v;
    return in_type_of(sum_to(v, &to, site), like, site);
}

/* ---- reductions ---- */

static shape operands_shape(duet_expr x, duet_expr y)
{
    const shape s = formula_shape(x), t = formula_shape(y);
    shape all = s;
    (void)shape_broadcast(&s, &t, &all);
    return all;
}

duet_expr spread(const node *n, duet_expr x, duet_expr y, duet_expr v, const char *site)
{
    const shape all = operands_shape(x, y);
    shape kept = all;
    if (is_number(v)) return v;
    for (int a = 0; a < all.rank; a++)
        if (n->attr.reduce.axes >> a & 1) kept.size[a] = 1;
    const shape s = formula_shape(v);
    if (!shape_equal(&s, &kept)) v = duet_reshape_at(v, kept.rank, kept.size, site);
    return spread_to(v, &all, site);
}

double terms_of(const node *n, duet_expr x, duet_expr y)
{
    const shape all = operands_shape(x, y);
    double terms = 1;
    for (int a = 0; a < all.rank; a++)
        if (n->attr.reduce.axes >> a & 1) terms *= (double)all.size[a];
    return terms;
}

/* The axes that the reduction of an operand with this rank removes. All bits are set if it removes all. */
typedef struct axis_list {
    int count, axis[DUET_RANK_MAX];
} axis_list;

static axis_list reduced(const node *n, int rank)
{
    axis_list l = { 0 };
    for (int a = 0; a < rank; a++)
        if (n->attr.reduce.axes >> a & 1) l.axis[l.count++] = a;
    return l;
}

/* The same reduction of other elements, as a sum. */
static duet_expr sum_like(const node *n, duet_expr v, const char *site)
{
    const axis_list l = reduced(n, duet_expr_rank(v));
    return duet_sum_axes_keep_at(v, l.count, l.axis, site);
}

/* The product of the other elements. If x is not 0, that is r / x. If x is 0, it is the product of the
 * elements that are not 0, times the other zero if there is exactly one. That zero is computed as
 * (sum of the zeros) - x, although it is known, so that second derivatives depend on it. */
duet_expr of_product(const node *n, duet_expr x, duet_expr r, duet_expr g, const char *site)
{
    const axis_list l = reduced(n, duet_expr_rank(x));
    const duet_dtype t = is_complex(x) ? duet_expr_type(duet_real(x)) : duet_expr_type(x);
    const duet_expr is_zero = duet_equal(x, 0), zeros = sum_like(n, duet_cast(is_zero, t), site),
                    others = duet_prod_axes_keep_at(duet_where(is_zero, 1, x), l.count, l.axis, site);
    const duet_expr other_zero = duet_sub(sum_like(n, duet_where(is_zero, x, 0), site), x),
                    factor =
                        duet_where(duet_equal(zeros, 1), 1, duet_where(duet_equal(zeros, 2), other_zero, 0));
    const duet_expr of_zero = duet_mul(others, factor),
                    of_other = duet_div(spread(n, x, x, r, site), duet_where(is_zero, 1, x));
    return duet_mul(spread(n, x, x, g, site), duet_where(is_zero, of_zero, of_other));
}

duet_expr of_extreme(const node *n, duet_expr x, duet_expr r, duet_expr g, const char *site)
{
    const duet_expr is_extreme = duet_equal(x, spread(n, x, x, r, site)),
                    equal = sum_like(n, duet_cast(is_extreme, duet_expr_type(x)), site),
                    each = duet_div(spread(n, x, x, g, site), equal);
    return duet_where(is_extreme, each, 0);
}

duet_expr of_variance(const node *n, duet_expr x, duet_expr g, const char *site)
{
    const double terms = terms_of(n, x, x);
    const duet_expr mean = duet_mul(sum_like(n, x, site), 1 / terms);
    return duet_mul(spread(n, x, x, duet_mul(g, 2 / terms), site), duet_conj(duet_sub(x, mean)));
}

/* ---- products ---- */

duet_expr last_two_swapped(duet_expr x, const char *site)
{
    return duet_expr_rank(x) == 2 ? duet_transpose(x) : duet_swapaxes_at(x, -1, -2, site);
}

/* A vector as a row, or as a column. */
static duet_expr as_matrix(duet_expr x, bool column, const char *site)
{
    const int64_t n = duet_expr_size(x, 0);
    if (duet_expr_rank(x) != 1) return x;
    return column ? duet_reshape(x, n, 1) : duet_reshape(x, 1, n);
}

/* g with the axes that the product of vectors lacks. */
static duet_expr as_product(duet_expr g, duet_expr x, duet_expr y, const char *site)
{
    const shape s = formula_shape(x), t = formula_shape(y);
    shape a = s, b = t, to;
    a.rank -= 2, b.rank -= 2;
    (void)shape_broadcast(&a, &b, &to);
    to.size[to.rank++] = s.size[s.rank - 2];
    to.size[to.rank++] = t.size[t.rank - 1];
    return duet_reshape_at(g, to.rank, to.size, site);
}

static duet_expr rows_of(duet_expr x, const char *site)
{
    const shape s = formula_shape(x);
    shape rows = s;
    rows.rank--;
    return duet_reshape(x, shape_count(&rows), s.size[rows.rank]);
}

static duet_expr back_to(duet_expr d, duet_expr matrix, duet_expr x, const char *site)
{
    return like_shape(unbroadcast(d, matrix, site), x, site);
}

duet_expr of_product_left(duet_expr x, duet_expr y, duet_expr g, const char *site)
{
    const duet_expr a = as_matrix(x, false, site), b = as_matrix(y, true, site),
                    p = as_product(g, a, b, site);
    return back_to(duet_matmul(p, last_two_swapped(b, site)), a, x, site);
}

/* Stacks of matrices times one matrix are one product. */
duet_expr of_product_right(duet_expr x, duet_expr y, duet_expr g, const char *site)
{
    const duet_expr a = as_matrix(x, false, site), b = as_matrix(y, true, site),
                    p = as_product(g, a, b, site);
    const bool stacked = duet_expr_rank(a) > 2 && duet_expr_rank(b) == 2;
    if (stacked) return like_shape(duet_matmul(duet_transpose(rows_of(a, site)), rows_of(p, site)), y, site);
    return back_to(duet_matmul(last_two_swapped(a, site), p), b, y, site);
}

static duet_expr flat(duet_expr x, const char *site) { return duet_reshape(x, -1); }

/* The positions in g, in row-major order, of the elements of one operand with these sizes. Along axis a, they
 * are apart[a] elements apart. */
static duet_expr positions(const shape *all, const int64_t *size, const int64_t *apart, const char *site)
{
    int64_t stride = 1;
    duet_expr sum = duet_of_integer(0);
    for (int a = all->rank; a-- > 0; stride *= all->size[a])
        sum = duet_add(sum, counted(a, all->rank, size[a], apart[a] * stride, site));
    return flat(sum, site);
}

/* Of kron(x, y), where g has too many axes to be divided: one matrix, in which g has a row for each element
 * of x and a column for each element of y. */
static duet_expr of_flat_kron(duet_expr x, duet_expr y, duet_expr g, int which, const char *site)
{
    const shape s = formula_shape(x), t = formula_shape(y), all = formula_shape(g), *own = which ? &t : &s;
    int64_t of_x[DUET_RANK_MAX], of_y[DUET_RANK_MAX], one[DUET_RANK_MAX];
    for (int a = 0; a < all.rank; a++) {
        const int i = a - (all.rank - s.rank), j = a - (all.rank - t.rank);
        of_x[a] = i < 0 ? 1 : s.size[i];
        of_y[a] = j < 0 ? 1 : t.size[j];
        one[a] = 1;
    }
    const duet_expr rows = duet_reshape(positions(&all, of_x, of_y, site), -1, 1),
                    at = duet_add(rows, positions(&all, of_y, one, site)),
                    parts = duet_take(flat(g, site), at, 0);
    const duet_expr made = which ? duet_matmul(flat(x, site), parts) : duet_matmul(parts, flat(y, site));
    return duet_reshape_at(made, own->rank, own->size, site);
}

/* g has an axis of the sizes of x and y multiplied; here it is divided into the two. */
duet_expr of_kron(duet_expr x, duet_expr y, duet_expr g, int which, const char *site)
{
    const shape s = formula_shape(x), t = formula_shape(y), *own = which ? &t : &s;
    const int rank = duet_expr_rank(g);
    int64_t apart[2 * DUET_RANK_MAX], other[2 * DUET_RANK_MAX];
    int axis[DUET_RANK_MAX];
    if (2 * rank > DUET_RANK_MAX) return of_flat_kron(x, y, g, which, site);
    for (int a = 0; a < rank; a++) {
        const int i = a - (rank - s.rank), j = a - (rank - t.rank);
        apart[2 * a] = i < 0 ? 1 : s.size[i];
        apart[2 * a + 1] = j < 0 ? 1 : t.size[j];
        other[2 * a] = which ? apart[2 * a] : 1;
        other[2 * a + 1] = which ? 1 : apart[2 * a + 1];
        axis[a] = 2 * a + !which;
    }
    const duet_expr parts = duet_reshape_at(g, 2 * rank, apart, site),
                    factor = duet_reshape_at(which ? x : y, 2 * rank, other, site);
    const duet_expr made = duet_sum_axes_at(duet_mul(parts, factor), rank, axis, site);
    return duet_reshape_at(made, own->rank, own->size, site);
}

static char *put_letters(char *p, const einsum_attributes *e, int part)
{
    for (int a = 0, letter; (letter = einsum_letter(e, part, a)); a++) *p++ = (char)('a' + letter - 1);
    return p;
}

/* Writes the letters of v, which has the axes of a part. Axes can be summed together only if they are
 * adjacent. So if v has several letters that the differentiated operand lacks, their axes become one at
 * the end, in the order of the result. */
static duet_expr sums_last(const einsum_attributes *e, int part, int differentiated, duet_expr v, char **text,
                           const char *site)
{
    const shape from = formula_shape(v);
    shape to = { .rank = 0 };
    int order[DUET_RANK_MAX], count = 0, first = 0;
    int64_t terms = 1;
    char *p = *text;
    for (int a = 0, letter; (letter = einsum_letter(e, part, a)); a++) {
        if (einsum_axis(e, differentiated, letter) < 0) continue;
        order[count++] = a;
        to.size[to.rank++] = from.size[a];
        *p++ = (char)('a' + letter - 1);
    }
    const int kept = count;
    for (int a = 0, letter; (letter = einsum_letter(e, EINSUM_OUT, a)); a++) {
        const int axis = einsum_axis(e, part, letter);
        if (einsum_axis(e, differentiated, letter) >= 0 || axis < 0) continue;
        if (count == kept) first = letter;
        order[count++] = axis;
        terms *= from.size[axis];
    }
    if (count < kept + 2) {
        *text = put_letters(*text, e, part);
        return v;
    }
    to.size[to.rank++] = terms;
    *p++ = (char)('a' + first - 1);
    *text = p;
    return duet_reshape_at(duet_permute_at(v, count, order, site), to.rank, to.size, site);
}

/* Each letter of an operand is in the result or in the other operand, so this is an einsum too. */
duet_expr of_einsum(const node *n, duet_expr other, duet_expr g, int part, const char *site)
{
    const einsum_attributes *e = &n->attr.einsum;
    char text[3 * EINSUM_AXES + 4], *p = text;
    g = sums_last(e, EINSUM_OUT, part, g, &p, site);
    *p++ = ',';
    other = sums_last(e, part == EINSUM_A ? EINSUM_B : EINSUM_A, part, other, &p, site);
    *p++ = '-', *p++ = '>';
    p = put_letters(p, e, part);
    *p = 0;
    return duet_einsum_at(g, other, text, site);
}
