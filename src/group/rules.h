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

/* fused_products.c. fused_operands returns a mask of the operands of addition i that may be fused; 0: node i
 * is no addition. Call keep_products after the rule of each node: the ranks then do not exchange the products
 * that node i fuses. */
int fused_operands(const planner *p, uint32_t i);
void keep_products(planner *p, uint32_t i);

static inline bool is_split(const distribution *d) { return d->axis >= 0; }

#endif
