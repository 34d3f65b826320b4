/* distribute.h - plans how the values of a formula are distributed over the ranks of a group, and which
 * distributions of its operands each operator needs. */
#ifndef DISTRIBUTE_H
#define DISTRIBUTE_H

#include "expr.h"
#include "ranks.h"

/* How the ranks compute a node.
 * LOCAL     each rank computes its part from its parts of the operands
 * ADDED     each rank computes a partial sum; these are then added
 * JOINED    a reduction along the split axis: each rank reduces its part, then the results are reduced
 * OWNED     a view whose elements are all on one rank, which sends them to all
 * TRANSFORMED, TOP   in two steps: transforms.c
 * SORTED, SCANNED   along the split axis: sorting.c, scans.c
 * GRID      a product of which each rank computes a block: grid_product.c */
enum how { LOCAL, ADDED, JOINED, OWNED, TRANSFORMED, TOP, SORTED, SCANNED, GRID };

/* How the ranks compute a product in blocks. */
struct product_grid {
    int rows, columns, panels;
    distribution left, right, block; /* the operands of each rank, and its result */
};

typedef struct spread {
    enum how how;
    distribution at;      /* of the value */
    distribution need[3]; /* of the operands */
    bool gathers;         /* every rank computes all of it, from operands that are gathered */
    bool is_wanted;       /* only one destination uses the value, and needs it as in `wanted` */
    distribution wanted;
    struct product_grid grid;
    uint32_t same; /* the first leaf of the same matrix, or the node itself */
    bool product;  /* may it be x*y, so that an addition of it is fused (fused_products.c)? */
    bool fused;    /* may an addition fuse it? */
    bool again;    /* such an addition needs it in another distribution */
    bool waits;    /* the value waits for a shared exchange (buckets.h) */
    bool blocks;   /* JOINED: the ranks exchange the results of all blocks (block_sums.c) */
} spread;

/* A formula and how it is distributed. */
typedef struct planner {
    duet_group *g;
    const node *nodes;
    uint32_t count;
    spread *of;                  /* by node */
    struct bounds_block *blocks; /* memory of all bounds */
} planner;

bool planner_begin(planner *p, duet_group *g, const node *nodes, uint32_t count); /* false: out of memory */
void planner_end(planner *p);

/* Memory for ranks + 1 bounds; NULL: out of memory. split_evenly: bounds of equal parts of n elements. */
int64_t *bounds_new(planner *p);
distribution split_evenly(planner *p, int axis, int64_t n);

/* rules.c: sets p->of[i] from those of its operands. false: out of memory */
bool distribute_node(planner *p, uint32_t i);

double node_count(const node *n); /* elements */
double node_bytes(const node *n);

/* The longest axis outside of the mask that has at least one element for each rank; -1: there is none. */
int other_axis(const planner *p, const node *x, uint32_t without);

/* Seconds for changing the distribution of an array, and for adding partial sums of node i. If only one
 * destination uses the sum, each rank receives only the part that it needs. */
double move_seconds(const planner *p, const node *n, const distribution *from, const distribution *to);
double rank_flops(const planner *p); /* a second */
double add_seconds(const planner *p, uint32_t i);

static inline shape shape_of_node(const node *n)
{
    shape s = { .rank = n->rank };
    __builtin_memcpy(s.size, n->size, sizeof s.size);
    return s;
}
static inline const node *operand_node(const planner *p, uint32_t i, int k)
{
    return &p->nodes[i - p->nodes[i].back[k]];
}
static inline const distribution *operand_at(const planner *p, uint32_t i, int k)
{
    return &p->of[i - p->nodes[i].back[k]].at;
}
static inline uint32_t axes_of(const node *n, const node *x)
{
    return (uint32_t)n->attr.reduce.axes & ((1u << x->rank) - 1);
}

/* fused_products.c: to be called after distribute_node of all nodes. */
void find_fused(planner *p);

/* May an addition fuse operand k of node i? Then the ranks must not exchange its value. */
bool is_fused(const planner *p, uint32_t i, int k);

/* joining.c: sets p->of[i].blocks and .waits of a node that is JOINED. false: out of memory */
bool plan_joined(planner *p, uint32_t i);

/* reductions.c: a reduction along the axis along which its operands are split. */
bool distribute_reduction(planner *p, uint32_t i, int axis);

/* Bounds near those of d that divide no block of REDUCE_BLOCK elements. n: the size of the axis. unit:
 * elements for each index. NULL: out of memory */
int64_t *whole_blocks(planner *p, const distribution *d, int64_t n, int64_t unit);

#endif
