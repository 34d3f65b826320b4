/* fused_products.c - keeps sums of products fused. x*y + z is one fused multiply-add, which rounds once. This
 * also holds if the addition uses a view of the product, or a part of a complex product. If the ranks
 * exchanged the product before the addition, it would be rounded. So the addition is split like its product.
 * If that is not possible, every rank computes the product. */
#include "rules.h"

/* Does the operator only select or rearrange elements? */
static bool is_view(enum op op)
{
    return op == OP_reshape || op == OP_broadcast || op == OP_permute || op == OP_transpose ||
           op == OP_range || op == OP_sliding_window || op == OP_diagonal_of;
}

static bool has_number(const planner *p, uint32_t i)
{
    return operand_node(p, i, 0)->op == OP_NUMBER || operand_node(p, i, 1)->op == OP_NUMBER;
}

/* May the value be one of its operands, or a view or a part of one? x times 1 is x. */
static bool is_transparent(const planner *p, uint32_t i)
{
    switch (p->nodes[i].op) {
    case OP_neg: /* -(s*x) is (-s)*x */
    case OP_cast:
    case OP_real:
    case OP_imag:
    case OP_conj:
    case OP_complex: return true;
    case OP_mul:
    case OP_div: return has_number(p, i);
    default: return is_view((enum op)p->nodes[i].op);
    }
}

static enum product product_of_operand(const planner *p, uint32_t i, int k)
{
    const enum product of = p->of[i - p->nodes[i].back[k]].product;
    const bool same_type = operand_node(p, i, k)->type == p->nodes[i].type;
    return of == IS_PRODUCT && !same_type ? MAYBE_PRODUCT : of;
}

/* A product with a number may be replaced by its other operand, and a quotient by a product. */
static enum product classify(const planner *p, uint32_t i)
{
    const node *n = &p->nodes[i];
    enum product most = NO_PRODUCT;
    if (n->op == OP_mul || n->op == OP_div)
        return has_number(p, i) ? MAYBE_PRODUCT : n->op == OP_mul ? IS_PRODUCT : NO_PRODUCT;
    for (int k = 0; is_transparent(p, i) && k < op_infos[n->op].arity; k++) {
        const enum product x = product_of_operand(p, i, k);
        if (x > most) most = x;
    }
    return most == IS_PRODUCT && !is_view((enum op)n->op) ? MAYBE_PRODUCT : most;
}

int fused_operands(const planner *p, uint32_t i)
{
    const enum op op = (enum op)p->nodes[i].op;
    if (op != OP_add && op != OP_sub) return 0;
    const enum product x = product_of_operand(p, i, 0), y = product_of_operand(p, i, 1);
    const bool only_first = x == IS_PRODUCT && (op == OP_add || y == IS_PRODUCT);
    return (x != NO_PRODUCT) | (y != NO_PRODUCT && !only_first) << 1;
}

/* Do ranks exchange operand k, or a product that it is a view of? */
static bool operand_moves(const planner *p, uint32_t i, int k)
{
    const distribution *at = operand_at(p, i, k);
    if (product_of_operand(p, i, k) == NO_PRODUCT) return false;
    return p->of[i - p->nodes[i].back[k]].moves ||
           (is_split(at) && !distribution_equal(at, &p->of[i].need[k], p->g->ranks));
}

/* Every rank computes the product. A small one, such as a row that is added to each row, would be sent to all
 * ranks in any case. So this does not count as gathering. */
static void compute_everywhere(planner *p, uint32_t i, bool is_small)
{
    const node *n = &p->nodes[i];
    spread *s = &p->of[i];
    if (s->product == NO_PRODUCT || (!is_split(&s->at) && !s->moves)) return;
    for (int k = 0; is_transparent(p, i) && k < op_infos[n->op].arity; k++)
        compute_everywhere(p, i - n->back[k], is_small);
    everywhere(p, i, s);
    s->moves = false;
    s->gathers &= !is_small;
}

void keep_products(planner *p, uint32_t i)
{
    const node *n = &p->nodes[i];
    spread *s = &p->of[i];
    const int fused = fused_operands(p, i);
    s->product = classify(p, i);
    for (int k = 0; is_transparent(p, i) && k < op_infos[n->op].arity; k++)
        s->moves |= operand_moves(p, i, k);
    for (int k = 0; k < 2; k++)
        if (fused >> k & 1 && operand_moves(p, i, k))
            compute_everywhere(p, i - n->back[k], node_count(operand_node(p, i, k)) < node_count(n));
}
