/* operator_again.c - copies nodes of another formula, for parts of its operands. */
#include "operator_again.h"
#include "operands.h"

duet_expr formula_failed(duet_status s)
{
    arena *a = arena_mine();
    return no_room(a ? arena_refuses(a, s) : s);
}

duet_expr number_again(const node *n)
{
    if (n->type == DUET_F64) return duet_of_number(n->number);
    return n->type == DUET_I64 ? duet_of_integer(n->integer) : duet_of_unsigned((uint64_t)n->integer);
}

static duet_expr push_again(const node *like, const duet_expr e[], int rank, const int64_t *size)
{
    arena *a = arena_mine();
    node *x[3] = { 0 };
    if (!a) return no_room(DUET_NO_MEMORY);
    const int arity = op_infos[like->op].arity;
    const duet_status s = operands(a, (enum op)like->op, arity, e, x);
    if (s != DUET_OK) return failed(a, arity, x, s, like->site);
    const uint32_t flags = like->flags & (NODE_WEAK | NODE_CHECKPOINT | NODE_STOP);
    node *n =
        push_operator(a, kind_of((enum op)like->op, (duet_dtype)like->type, rank) | KIND(0, 0, 0, flags),
                      arity, x, like->site);
    if (!n) return failed(a, arity, x, DUET_ARENA_FULL, like->site);
    n->attr = like->attr;
    memcpy(n->size, size, sizeof n->size);
    for (int d = 0; d < rank && (like->op == OP_reshape || like->op == OP_broadcast); d++)
        memcpy(n->attr.size[d], &size[d], sizeof size[d]);
    words_put(a, n, NULL);
    return handle_of(n);
}

duet_expr operator_again(const node *n, const duet_expr e[], const int64_t *size)
{
    return push_again(n, e, n->rank, size);
}

duet_expr operator_of_shape(const node *n, const duet_expr e[], int rank, const int64_t *size)
{
    return push_again(n, e, rank, size);
}

duet_expr collective_formula(duet_expr e, duet_expr after, collective_attributes attr, duet_dtype type,
                             int rank, const int64_t *size, const char *site)
{
    node like = { .op = OP_collective, .type = (uint8_t)type, .site = site };
    int64_t sizes[DUET_RANK_MAX] = { 0 };
    like.attr = (node_attributes){ .collective = attr };
    memcpy(sizes, size, (size_t)rank * sizeof *size);
    return push_again(&like, (duet_expr[]){ e, after }, rank, sizes);
}
