/* canon.h - canonical form: what canon.c and product.c have of each other. */
#ifndef CANON_H
#define CANON_H

#include "graph.h"

static inline value copy_of(const graph *g, int v) { return g->values[v]; }

/* canon.c */
int minus_one(graph *g); /* the number, as a value */
void count_uses(graph *g);

/* product.c: factors and addends of products become their alpha, beta and third operand. Uses are counted first. */
void fold_products(graph *g);

#endif
