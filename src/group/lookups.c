/* lookups.c - take along the split axis: each rank takes the elements that it has, and the results are
 * added. All but one of the terms of a sum are -0, which changes no number, not even the sign of a zero. */
#include "build.h"
#include "dtype.h"

/* Indices in this rank's part; 0 for elements of other ranks. An index that is out of bounds stays so. */
typedef struct own_indices {
    duet_expr at, own; /* own: is the element in the part? */
} own_indices;

static own_indices find_own(const builder *b, duet_expr index, int64_t n, int64_t first, int64_t count)
{
    const char *site = b->site;
    const duet_expr zero = duet_of_integer(0), i = duet_cast_at(index, DUET_I64, site);
    const duet_expr at = duet_where_at(duet_less_at(i, zero, site), duet_add_at(i, duet_of_integer(n), site),
                                       i, site),
                    own = duet_sub_at(at, duet_of_integer(first), site);
    const duet_expr in = duet_logical_and_at(duet_greater_equal_at(own, zero, site),
                                             duet_less_at(own, duet_of_integer(count), site), site),
                    valid = duet_logical_and_at(duet_greater_equal_at(at, zero, site),
                                                duet_less_at(at, duet_of_integer(n), site), site);
    return (own_indices){ duet_where_at(in, own, duet_where_at(valid, zero, i, site), site), in };
}

duet_expr build_take(builder *b, uint32_t i, const duet_expr x[])
{
    const node *n = &b->p->nodes[i], *table = operand_node(b->p, i, 0), *index = operand_node(b->p, i, 1);
    const distribution *d = &b->p->of[i].need[0];
    const int axis = n->attr.index.axis, r = b->c->rank, behind = table->rank - axis - 1;
    const int64_t first = d->bounds[r], count = d->bounds[r + 1] - first;
    const duet_dtype type = (duet_dtype)n->type;
    int64_t size[2 * DUET_RANK_MAX];
    if (!count)
        return duet_broadcast_at(duet_cast_at(zero_of_sums(type, b->site), type, b->site), n->rank, n->size,
                                 b->site);
    for (int a = 0; a < index->rank; a++) size[a] = index->size[a];
    for (int a = 0; a < behind; a++) size[index->rank + a] = 1;
    const own_indices own = find_own(b, x[1], table->size[axis], first, count);
    const duet_expr in = duet_reshape_at(own.own, index->rank + behind, size, b->site);
    return duet_where_at(in, duet_take_at(x[0], own.at, axis, b->site), zero_of_sums(type, b->site), b->site);
}
