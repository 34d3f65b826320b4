/* transforms.c - operators that every rank does in two steps, with an exchange between them: Fourier
 * transforms along the split axis and others, and the largest elements along the split axis. */
#include "build.h"
#include "operator_again.h"
#include "status.h"
#include <string.h>

/* ---- Fourier transforms: along the other axes first, then along the axis that was split ---- */

static duet_expr transform(const builder *b, uint32_t i, enum op op, uint32_t axes, const shape *size,
                           duet_expr x)
{
    node like = b->p->nodes[i];
    like.op = (uint8_t)op;
    like.attr.fourier.axes &= (int32_t)axes;
    for (int a = 0; a < like.rank; a++)
        if (!(axes >> a & 1)) like.attr.fourier.length[a] = 0;
    for (int a = 0; a < like.rank && op != OP_rfftn; a++)
        if (like.attr.fourier.axes >> a & 1)
            like.attr.fourier.last = a; /* real operands are halved along it */
    return operator_again(&like, &x, size->size);
}

duet_expr build_transform(builder *b, uint32_t i, duet_expr x)
{
    const node *n = &b->p->nodes[i];
    const distribution *from = &b->p->of[i].need[0], *to = &b->p->of[i].at;
    const int r = b->c->rank;
    shape whole = shape_of_node(n), size;
    whole.size[from->axis] = operand_node(b->p, i, 0)->size[from->axis];
    size = whole;
    size.size[from->axis] = from->bounds[r + 1] - from->bounds[r];
    const duet_expr first = transform(b, i, (enum op)n->op, ~(1u << from->axis), &size, x);
    const duet_expr turned =
        build_collective(b, COLLECTIVE_MOVE, first, (duet_dtype)n->type, &whole, from, to);
    size = shape_of_node(n);
    size.size[to->axis] = to->bounds[r + 1] - to->bounds[r];
    const enum op op = n->op == OP_rfftn ? OP_fftn : (enum op)n->op;
    return transform(b, i, op, 1u << from->axis, &size, turned);
}

/* ---- the largest elements of all ranks are among the largest of each ---- */

static enum op values_of(enum op op)
{
    if (op == OP_top_k_indices) return OP_top_k;
    return op == OP_bottom_k_indices ? OP_bottom_k : op;
}

typedef struct top {
    builder *b;
    const node *n;
    int axis;
    int64_t *bounds; /* of the largest elements of each rank */
    shape whole;     /* of those of all ranks */
} top;

static duet_expr largest(const top *t, enum op op, duet_dtype type, int64_t k, duet_expr x)
{
    node like = *t->n;
    int64_t size[DUET_RANK_MAX];
    memcpy(size, t->n->size, sizeof size);
    size[t->axis] = k;
    like.op = (uint8_t)op;
    like.type = (uint8_t)type;
    like.attr.index.k = (int32_t)k;
    return operator_again(&like, &x, size);
}

/* Of this rank's part, which may be empty. */
static duet_expr own_largest(const top *t, enum op op, duet_dtype type, int64_t k, duet_expr x)
{
    if (k) return largest(t, op, type, k, x);
    return duet_cast_at(build_range(t->b, x, t->axis, 0, 0), type, t->b->site);
}

static duet_expr gather_top(const top *t, duet_dtype type, duet_expr x)
{
    const distribution from = { t->axis, t->bounds }, to = replicated();
    return build_collective(t->b, COLLECTIVE_MOVE, x, type, &t->whole, &from, &to);
}

duet_expr build_top(builder *b, uint32_t i, duet_expr x)
{
    const node *n = &b->p->nodes[i];
    const distribution *d = &b->p->of[i].need[0];
    const duet_dtype type = (duet_dtype)operand_node(b->p, i, 0)->type;
    const int64_t k = n->attr.index.k;
    const int r = b->c->rank;
    top t = { b, n, d->axis, bounds_new(&b->own), shape_of_node(n) };
    if (!t.bounds) return formula_failed(fail(DUET_NO_MEMORY, "no memory for a formula"));
    t.bounds[0] = 0;
    for (int p = 0; p < b->c->ranks; p++) {
        const int64_t own = d->bounds[p + 1] - d->bounds[p];
        t.bounds[p + 1] = t.bounds[p] + (own < k ? own : k);
    }
    t.whole.size[t.axis] = t.bounds[b->c->ranks];
    const int64_t own = t.bounds[r + 1] - t.bounds[r];
    const enum op op = (enum op)n->op, value = values_of(op);
    const duet_expr values = gather_top(&t, type, own_largest(&t, value, type, own, x));
    if (op == value) return largest(&t, op, type, k, values);
    duet_expr index = own_largest(&t, op, DUET_I64, own, x);
    index = duet_add_at(index, duet_of_integer(d->bounds[r]), b->site);
    return duet_take_along_axis_at(gather_top(&t, DUET_I64, index), largest(&t, op, DUET_I64, k, values),
                                   t.axis, b->site);
}
