/* canonicalize.h - canonical form: what canonicalize.c and fold_gemm.c have of each other. */
#ifndef CANON_H
#define CANON_H

#include "graph.h"
#include <string.h>

static inline value copy_of(const graph *g, int v) { return g->values[v]; }

/* canonicalize.c */
int intern(graph *g, const value *v); /* the value like *v, which is made when there is none */
value blank(enum op op, const value *like);
int whole_number(graph *g, int v, uint8_t comp); /* a number as an integer of i64 or u64 */
int make_truth(graph *g, int v);                 /* v != 0 */
int minus_one(graph *g);                         /* the number, as a value */
void count_uses(graph *g);
int make_real(graph *g, const value *v); /* an operator of real values, rewritten, of the shape that it has */
int make_unfused(graph *g, const value *v); /* the same as it stands */
int constant_number(graph *g, double x);
int settle_shape(graph *g, const value *v, int made); /* made, in the shape of v */
bool same_sizes(const value *a, const value *b);

/* attributes.c: the options of a node, into *a, which is zeros; and the operator that stands for op, which may be itself. */
void read_attributes(const node *n, attributes *a);
enum op canonical_operator(enum op op);

/* complex.c: is that made of real values; what that is, as a pair; a pair as it lies in memory; what a dest, and what a shape takes of v. */
bool is_complex_operator(const graph *g, const value *v);
int complex_operator(graph *g, const value *v);
int complex_whole(graph *g, int v);
int complex_root(graph *g, int v, const value *like);
int complex_shaped(graph *g, int v, const value *like);

/* types.c: LOADs of v that are like `like`, computed in a type; and the value of a dest. */
int load_as(graph *g, int v, const value *like, int what, uint8_t comp);
int load_number(graph *g, int v, const value *like, int what);
int make_cast(graph *g, const value *to, int v);
int make_stored(graph *g, int v); /* v, whose elements are of its own type in memory: halves rounded */
int load_root(graph *g, int v, const value *like, int what);
void reduce_roots(graph *g);

/* legalize_types.c: has v, a definition, to be computed in another type than its own, or of operands that have another? And that. */
bool value_widens(const graph *g, const value *v);
int make_wide(graph *g, const value *v);

/* conv_nd.c: convolutions and pooling of other than two axes. */
bool is_of_images(int op);
void settle_padding(const graph *g, value *v); /* of a convolution: no more at the ends than is read */
int make_of_images(graph *g, const value *v);

/* fold_gemm.c: factors and addends of products become their alpha, beta and third operand. Uses are counted first. */
void reduce_products(graph *g);

#endif
