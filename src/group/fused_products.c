/* fused_products.c - keeps sums of products fused. x*y + z is one fused multiply-add, which rounds once.
 * This also holds if the addition uses a view of the product, or a part of a complex one. Which products
 * are fused is decided when the formula of a rank is rewritten (graph/canonicalize.c). If the ranks
 * exchanged such a product, it would be rounded before it is added. So they exchange its operands, and
 * each rank multiplies. */
#include "build.h"
#include "dtype.h"
#include "operator_again.h"
#include "rules.h"
#include "status.h"
#include <string.h>

/* ---- planning ---- */

static int arity_of(const node *n) { return op_infos[n->op].arity; }

static bool has_number(const planner *p, uint32_t i)
{
    return operand_node(p, i, 0)->op == OP_NUMBER || operand_node(p, i, 1)->op == OP_NUMBER;
}

/* Is it computed element by element from complex numbers, or to them? These operators add and multiply. */
static bool is_complex_map(const planner *p, uint32_t i)
{
    bool is_complex = dtype_is_complex((duet_dtype)p->nodes[i].type);
    for (int k = 0; k < arity_of(&p->nodes[i]); k++)
        is_complex |= dtype_is_complex((duet_dtype)operand_node(p, i, k)->type);
    return is_complex && maps_elements((enum op)p->nodes[i].op);
}

/* May the value be an operand, a view or a part of one, or made of several? x times 1 is x, and -(s*x) is
 * (-s)*x. */
static bool is_transparent(const planner *p, uint32_t i)
{
    const enum op op = (enum op)p->nodes[i].op;
    if (op == OP_mul || op == OP_div) return has_number(p, i);
    return op == OP_neg || op == OP_cast || op == OP_append || is_view_operator(op) || is_complex_map(p, i);
}

static bool may_be_product(const planner *p, uint32_t i)
{
    const node *n = &p->nodes[i];
    if (n->flags & NODE_CHECKPOINT) return false; /* it is stored, so rounded */
    bool is = n->op == OP_mul || (n->op == OP_div && has_number(p, i)) || is_complex_map(p, i);
    for (int k = 0; k < arity_of(n) && is_transparent(p, i); k++) is |= p->of[i - n->back[k]].product;
    return is && dtype_kind((duet_dtype)n->type) >= TYPE_FLOAT;
}

/* Certainly, in the type of its user. */
static bool is_product(const planner *p, uint32_t i, int k)
{
    const node *n = &p->nodes[i], *x = operand_node(p, i, k);
    return x->op == OP_mul && x->type == n->type && dtype_kind((duet_dtype)x->type) == TYPE_FLOAT &&
           !has_number(p, i - n->back[k]) && !(x->flags & NODE_CHECKPOINT);
}

/* Of two products, an addition fuses the first. */
static bool adds_operand(const planner *p, uint32_t i, int k)
{
    const enum op op = (enum op)p->nodes[i].op;
    if (is_complex_map(p, i)) return true;
    if (op != OP_add && op != OP_sub) return false;
    return k == 0 || !is_product(p, i, 0) || (op == OP_sub && !is_product(p, i, 1));
}

void find_product(planner *p, uint32_t i) { p->of[i].product = may_be_product(p, i); }

int products_added(const planner *p, uint32_t i)
{
    int mask = 0;
    for (int k = 0; k < arity_of(&p->nodes[i]); k++)
        if (p->of[i - p->nodes[i].back[k]].product && adds_operand(p, i, k)) mask |= 1 << k;
    return mask;
}

bool is_fused(const planner *p, uint32_t i, int k)
{
    if (!p->of[i - p->nodes[i].back[k]].product) return false;
    return adds_operand(p, i, k) || (p->of[i].fused && is_transparent(p, i));
}

/* ---- the operands of a node that is computed in another distribution ---- */

/* The parts of both operands of an append that are in the parts of the result. */
static bool cut_pieces(planner *own, const planner *p, uint32_t i, const distribution *to,
                       distribution need[])
{
    const int64_t first = operand_node(p, i, 0)->size[to->axis];
    int64_t *x = bounds_new(own), *y = bounds_new(own);
    for (int r = 0; x && y && r <= p->g->ranks; r++) {
        x[r] = to->bounds[r] < first ? to->bounds[r] : first;
        y[r] = to->bounds[r] < first ? 0 : to->bounds[r] - first;
    }
    need[0] = (distribution){ to->axis, x };
    need[1] = (distribution){ to->axis, y };
    return x && y;
}

/* Can node i be computed in any distribution, from parts of its operands? */
static bool is_divisible(const planner *p, uint32_t i)
{
    const enum op op = (enum op)p->nodes[i].op;
    return maps_elements(op) || permutes(&p->nodes[i]) || op == OP_broadcast || op == OP_append;
}

/* false: no memory */
static bool operands_for(planner *own, const planner *p, uint32_t i, const distribution *to,
                         distribution need[3])
{
    const node *n = &p->nodes[i];
    for (int k = 0; k < 3; k++) need[k] = replicated();
    if (to->axis < 0) return true;
    if (n->op == OP_append && n->attr.index.axis == to->axis) return cut_pieces(own, p, i, to, need);
    for (int k = 0; k < arity_of(n); k++)
        need[k] = n->op == OP_append ? *to
                  : permutes(n)      ? (distribution){ axis_before(n, to->axis), to->bounds }
                                     : operand_cut(p, i, k, to);
    return true;
}

/* Is node i a view, perhaps of views, of an operator on elements? Then the ranks exchange views of the
 * operands of that operator, if none of these may be a product that is fused. Returns the operator, or i. */
static uint32_t behind_views(const planner *p, uint32_t i)
{
    uint32_t m = i;
    while (is_view_operator(p->nodes[m].op) && !(p->nodes[m].flags & NODE_CHECKPOINT))
        m -= p->nodes[m].back[0];
    for (int k = 0; k < arity_of(&p->nodes[m]); k++)
        if (is_fused(p, m, k)) return i;
    return maps_elements((enum op)p->nodes[m].op) ? m : i;
}

/* Every rank computes node i from all elements of its operands, which then says so. */
static bool is_whole(const planner *p, uint32_t i) { return !is_divisible(p, i) && behind_views(p, i) == i; }

/* Operands of the nodes that are computed again are, too. */
void find_fused(planner *p)
{
    for (uint32_t i = p->count; i-- > 0;) {
        spread *s = &p->of[i];
        const bool whole = s->again && is_whole(p, i);
        s->gathers |= whole;
        for (int k = 0; k < arity_of(&p->nodes[i]); k++) {
            spread *x = &p->of[i - p->nodes[i].back[k]];
            if (!is_fused(p, i, k)) continue;
            x->fused = true;
            x->again |= is_split(&x->at) && !distribution_equal(&x->at, &s->need[k], p->g->ranks);
            x->again |= s->again && (whole || is_divisible(p, i));
        }
    }
}

/* ---- building ---- */

/* Operand k of node m, in the distribution `to`, as large as m. */
static duet_expr operand_as_large(builder *b, uint32_t m, int k, const distribution *to)
{
    const node *n = &b->p->nodes[m], *x = operand_node(b->p, m, k);
    const distribution need = operand_cut(b->p, m, k, to);
    const duet_expr e = build_moved(b, m - n->back[k], &need);
    int64_t size[DUET_RANK_MAX];
    if (x->rank == n->rank && !memcmp(x->size, n->size, (size_t)n->rank * sizeof *n->size)) return e;
    part_of_node(b, n, to, size);
    return duet_broadcast_at(e, n->rank, size, b->site);
}

/* The views that node i is of node m, but of operand k of m. */
static duet_expr view_operand(builder *b, uint32_t i, uint32_t m, int k, const distribution *to)
{
    const node *n = &b->p->nodes[i];
    const spread *s = &b->p->of[i];
    const shape whole = shape_of_node(n);
    if (operand_node(b->p, m, k)->rank == 0) return build_value(b, m - b->p->nodes[m].back[k]);
    if (i == m) return operand_as_large(b, m, k, to);
    duet_expr e = view_operand(b, i - n->back[0], m, k, &s->need[0]);
    e = build_local(b, i, &e);
    if (s->at.axis >= 0 && dtype_is_half(duet_expr_type(e))) e = duet_cast_at(e, DUET_F32, b->site);
    return build_moved_array(b, e, duet_expr_type(e), &whole, &s->at, to);
}

static duet_expr operate_on_views(builder *b, uint32_t i, uint32_t m, const distribution *to)
{
    const node *n = &b->p->nodes[i], *of = &b->p->nodes[m];
    duet_expr x[3];
    int64_t size[DUET_RANK_MAX];
    for (int k = 0; k < arity_of(of); k++) {
        const bool is_square = k == 1 && b->p->of[m - of->back[0]].same == b->p->of[m - of->back[1]].same;
        x[k] = is_square ? x[0] : view_operand(b, i, m, k, to);
    }
    part_of_node(b, n, to, size);
    return operator_of_shape(of, x, n->rank, size);
}

static duet_expr compute_in(builder *b, uint32_t i, const distribution *to)
{
    const node *n = &b->p->nodes[i];
    distribution need[3];
    duet_expr x[3];
    int64_t size[DUET_RANK_MAX];
    if (!operands_for(&b->own, b->p, i, to, need))
        return formula_failed(fail(DUET_NO_MEMORY, "no memory for a formula"));
    for (int k = 0; k < arity_of(n); k++) x[k] = build_operand(b, i, k, &need[k]);
    part_of_node(b, n, to, size);
    return operator_again(n, x, size);
}

duet_expr build_again(builder *b, uint32_t i, const distribution *to)
{
    const node *n = &b->p->nodes[i];
    const shape whole = shape_of_node(n);
    const distribution all = replicated();
    const uint32_t m = behind_views(b->p, i);
    if (is_divisible(b->p, i)) return compute_in(b, i, to);
    if (m != i) return operate_on_views(b, i, m, to);
    return build_moved_array(b, compute_in(b, i, &all), (duet_dtype)n->type, &whole, &all, to);
}
