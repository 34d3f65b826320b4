/* reductions.c - reductions along the axis along which their operands are split.
 *
 * Some do not depend on the order of the elements: those of integers, and those that choose an element, such
 * as max. Each rank reduces its part, and the results are reduced again.
 *
 * The others have the order of core/reduce_order.h. Elements are numbered along the reduced axes. The split
 * axis must be the first of these, so that the numbers on each rank are consecutive. Blocks of REDUCE_BLOCK
 * elements must not be divided between ranks, so bounds move to the nearest block. The blocks of a rank form
 * complete subtrees of the canonical tree, and each subtree is an ordinary reduction. All ranks receive the
 * results of all subtrees, and join them in the order of the tree. If that takes many steps on a GPU, they
 * receive the results of all blocks instead (block_sums.c). joining.c has the formulas. */
#include "dtype.h"
#include "joining.h"
#include <string.h>

/* Is the result made of sums in the canonical order? The product of complex numbers has another order. */
static bool is_joined(const node *n, const node *x)
{
    const enum type_kind kind = dtype_kind((duet_dtype)x->type);
    const bool sums = is_sum((enum op)n->op) || is_made_of_sums((enum op)n->op);
    return sums && (kind == TYPE_FLOAT || (kind == TYPE_COMPLEX && n->op != OP_prod));
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        const int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

static bool is_first(uint32_t reduced, int axis) { return !(reduced & ((1u << axis) - 1)); }

int64_t *whole_blocks(planner *p, const distribution *d, int64_t n, int64_t unit)
{
    int64_t *bounds = bounds_new(p);
    const int64_t rows = REDUCE_BLOCK / gcd(REDUCE_BLOCK, unit ? unit : 1);
    for (int r = 0; bounds && r <= p->g->ranks; r++) {
        bounds[r] = (d->bounds[r] + rows / 2) / rows * rows;
        if (bounds[r] > n || r == p->g->ranks) bounds[r] = n;
    }
    return bounds;
}

/* Are there fewer blocks than ranks? Then some ranks would have no block. */
static bool are_few(const planner *p, int64_t n, int64_t unit)
{
    return n * unit < (int64_t)REDUCE_BLOCK * p->g->ranks;
}

#define FEW_BYTES (1 << 20)

/* Makes every rank reduce all elements. Returns whether these are few. */
static bool by_all(const planner *p, uint32_t i, spread *s)
{
    s->at = s->need[0] = s->need[1] = replicated();
    return node_bytes(operand_node(p, i, 0)) <= FEW_BYTES;
}

static bool have_one_shape(const node *x, const node *y)
{
    return x->rank == y->rank && !memcmp(x->size, y->size, sizeof x->size[0] * x->rank);
}

static bool is_supported(const node *n, const node *x, uint32_t reduced, int axis)
{
    if (is_free(n, x)) return true;
    return (is_joined(n, x) || is_place((enum op)n->op)) && is_first(reduced, axis);
}

/* The formulas of variances.c are long. Is it faster to move the operand to another axis, if there is one? */
#define MOVED_BYTES (16 << 20)
#define VAR_RANKS   64 /* with more of them, the formulas would be too long */
static bool prefers_move(const planner *p, const node *x, uint32_t reduced)
{
    return other_axis(p, x, reduced) >= 0 && node_bytes(x) <= MOVED_BYTES;
}

bool distribute_reduction(planner *p, uint32_t i, int axis)
{
    const node *n = &p->nodes[i], *x = operand_node(p, i, 0);
    const int arity = op_infos[n->op].arity;
    const bool second = arity > 1 && operand_at(p, i, 0)->axis != axis;
    const distribution *d = operand_at(p, i, second);
    spread *s = &p->of[i];
    const uint32_t reduced = axes_of(n, x);
    if (arity > 1 && !have_one_shape(x, operand_node(p, i, 1))) return false;
    if (d->axis != axis || !is_supported(n, x, reduced, axis)) return by_all(p, i, s);
    const bool ordered = is_joined(n, x), few = are_few(p, x->size[axis], unit_of(x, reduced, axis));
    if (ordered && few && by_all(p, i, s)) return true;
    if (n->op == OP_var && p->g->ranks > VAR_RANKS) return by_all(p, i, s);
    if (n->op == OP_var && prefers_move(p, x, reduced)) return false;
    if (ordered && few && other_axis(p, x, reduced) >= 0) return false; /* reduce_rule then splits along it */
    int64_t *bounds = d->bounds;
    if (ordered) bounds = whole_blocks(p, d, x->size[axis], unit_of(x, reduced, axis));
    if (!bounds) return false;
    s->at = replicated();
    s->how = JOINED;
    for (int k = 0; k < arity; k++) s->need[k] = (distribution){ axis, bounds };
    return true;
}
