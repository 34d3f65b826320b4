/* oracle_views.c - operators that select or arrange elements, for the oracle: each element of the
 * result by its index. */
#include "oracle_types.h"
#include <string.h>

static int64_t long_of(const int32_t words[2])
{
    int64_t x;
    memcpy(&x, words, sizeof x);
    return x;
}

static void index_of(int64_t e, int rank, const int64_t *size, int64_t *index)
{
    for (int a = rank; a-- > 0; e /= size[a]) index[a] = e % size[a];
}

/* The element of x, of which the result has a copy at `to`. */
static int64_t source_of(const node *n, const table *x, int64_t e)
{
    int64_t to[DUET_RANK_MAX] = { 0 }, from[DUET_RANK_MAX] = { 0 }, at = 0;
    if (n->op == OP_reshape) return e;
    index_of(e, n->rank, n->size, to);
    if (n->op == OP_diagonal_of) {
        const int64_t offset = long_of(n->attr.offset), k = to[n->rank - 1];
        from[0] = k + (offset < 0 ? -offset : 0);
        from[1] = k + (offset > 0 ? offset : 0);
        for (int a = 2; a < x->rank; a++) from[a] = to[a - 2];
    }
    for (int a = 0; a < x->rank; a++) {
        if (n->op == OP_range) from[a] = to[a];
        else if (n->op == OP_broadcast) from[a] = x->size[a] == 1 ? 0 : to[a + n->rank - x->rank];
        else if (n->op == OP_permute) from[n->attr.order[a]] = to[a];
    }
    if (n->op == OP_range)
        from[n->attr.range.axis] =
            long_of(n->attr.range.start) + to[n->attr.range.axis] * long_of(n->attr.range.step);
    for (int a = 0; a < x->rank; a++) at = at * x->size[a] + from[a];
    return at;
}

bool arranged_meaning(const node *n, const table *x, table *out)
{
    const bool is = n->op == OP_reshape || n->op == OP_broadcast || n->op == OP_permute ||
                    n->op == OP_range || n->op == OP_diagonal_of;
    for (int64_t e = 0; e < out->count && is; e++) out->at[e] = x->at[source_of(n, x, e)];
    return is;
}
