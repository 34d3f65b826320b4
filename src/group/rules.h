/* rules.h - what the rules of operators share. */
#ifndef RULES_H
#define RULES_H

#include "distribute.h"

/* Sets *s for node i. false: out of memory */
typedef bool rule(planner *p, uint32_t i, spread *s);

/* Every rank computes the result from all elements. */
rule everywhere;
rule product_rule;    /* product_rules.c */
rule einsum_rule;     /* einsum_rule.c */
rule sort_rule;       /* sorting.c */
rule scan_rule;       /* scans.c */
rule index_axis_rule; /* the operator works along attr.index.axis */

/* Does it compute each element of the result from one element of each operand? */
bool maps_elements(enum op op);

static inline bool permutes(const node *n) { return n->op == OP_permute || n->op == OP_transpose; }

/* The axis of the operand of such an operator that becomes axis a. */
static inline int axis_before(const node *n, int a)
{
    return n->op == OP_transpose ? n->rank - 1 - a : n->attr.order[a];
}

/* How operand k, which broadcasts to the result of node i, is distributed if the result is split as in
 * `to`. */
distribution operand_cut(const planner *p, uint32_t i, int k, const distribution *to);

/* fused_products.c. find_product sets p->of[i].product from those of the operands. products_added: the
 * operands of node i that it adds and that may be products; a mask of their numbers. */
void find_product(planner *p, uint32_t i);
int products_added(const planner *p, uint32_t i);

static inline bool is_split(const distribution *d) { return d->axis >= 0; }

#endif
