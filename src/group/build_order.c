/* build_order.c - the order in which a rank builds its formulas, which is that of the collective steps: those
 * whose operands are computed first come first. So elements are exchanged while others are computed. A node
 * that needs the result of a shared exchange comes after all nodes that do not (buckets.h). */
#include "build.h"
#include "min_max.h"
#include <stdlib.h>

#define MOST           (INT64_MAX / 4)
#define DEF_OPERATIONS 32 /* a guess, for each element of convolutions and other operators of libraries */

typedef struct ready_node {
    int64_t
        at; /* the operations until its value is there, if all that is independent runs at the same time */
    uint32_t node;
    uint32_t waits; /* how many shared exchanges must end in succession before this node */
} ready_node;

static int64_t times(int64_t a, int64_t b)
{
    int64_t c;
    return __builtin_mul_overflow(a, b, &c) || c > MOST ? MOST : c;
}

static int64_t count_of(const node *n)
{
    int64_t count = 1;
    for (int a = 0; a < n->rank; a++) count = times(count, n->size[a]);
    return count;
}

/* Exact in integers, because the order must be the same on all ranks. */
static int64_t operations(const planner *p, uint32_t i)
{
    const node *n = &p->nodes[i];
    if (op_infos[n->op].kind == KIND_LEAF) return 0;
    const node *x = operand_node(p, i, 0);
    if (n->op == OP_matmul) return 1 + times(count_of(n), x->size[x->rank - 1]);
    const int64_t own = count_of(n), read = count_of(x), more = own > read ? own : read;
    return 1 + (op_infos[n->op].kind == KIND_DEF ? times(more, DEF_OPERATIONS) : more);
}

static int compare(const void *a, const void *b)
{
    const ready_node *x = a, *y = b;
    if (x->waits != y->waits) return x->waits < y->waits ? -1 : 1;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

bool build_order(const planner *p, uint32_t *order)
{
    ready_node *r = malloc(p->count * sizeof *r);
    if (!r) return false;
    for (uint32_t i = 0; i < p->count; i++) {
        int64_t at = 0;
        uint32_t waits = 0;
        for (int k = 0; k < op_infos[p->nodes[i].op].arity; k++) {
            const ready_node *x = &r[i - p->nodes[i].back[k]];
            const uint32_t after = x->waits + p->of[x->node].waits;
            at = larger(at, x->at);
            if (after > waits) waits = after;
        }
        at += operations(p, i);
        r[i] = (ready_node){ at < MOST ? at : MOST, i, waits };
    }
    qsort(r, p->count, sizeof *r, compare);
    for (uint32_t i = 0; i < p->count; i++) order[i] = r[i].node;
    free(r);
    return true;
}
