/* canonicalize.h - the functions that build and rewrite values, shared by the files of this folder. */
#ifndef CANONICALIZE_H
#define CANONICALIZE_H

#include "graph.h"
#include <string.h>

/* A copy: interning a value may move the table. */
static inline value copy_of(const graph *g, int v) { return g->values[v]; }

static inline bool is_op(const graph *g, int v, enum op op) { return g->values[v].op == op; }
static inline bool is_barrier(const graph *g, int v)
{
    return is_op(g, v, OP_LOAD) && g->values[v].attr.load.purpose == LOAD_BARRIER;
}

/* canonicalize.c */
value value_init(enum op op, const value *like); /* of the type and shape of *like, which may be NULL */
int intern(graph *g,
           const value *v); /* returns the index of a value equal to *v, which it adds if necessary */
bool same_sizes(const value *a, const value *b);
int number_value(graph *g, bound b, enum number_class class);
int constant_number(graph *g, double x);
int integer_number(graph *g, int v, uint8_t comp); /* number v, bound as DUET_I64 or DUET_U64 */
int minus_one(graph *g);
int make_truth(graph *g, int v);                            /* v != 0 */
int value_of_operator(graph *g, const value *v);            /* v, rewritten; its shape may be smaller */
int make_real(graph *g, const value *v);                    /* v, rewritten, in the shape of v */
int make_unfused(graph *g, const value *v);                 /* v without FMA, in the shape of v */
int broadcast_to_shape(graph *g, const value *v, int made); /* `made`, broadcast to the shape of v */

/* attributes.c: store the options of a node in *a, which is all zeros. The operator that replaces op; it
 * may be op itself. */
void read_attributes(const node *n, attributes *a);
enum op canonical_operator(enum op op);

/* complex.c */
bool is_complex_operator(const graph *g, const value *v); /* is v computed from real values? */
int complex_operator(graph *g, const value *v);           /* such an operator, as a pair */
int complex_interleaved(graph *g, int v);                 /* v, as elements in memory if it is a pair */
int complex_root(graph *g, int v, const value *like);     /* v for a destination like *like */
int complex_in_shape(graph *g, int v, const value *like); /* v, broadcast to the shape of *like */

/* views.c: the first elements of v along each axis, read where they are in memory. */
int first_elements(graph *g, int v, const int64_t *size);

/* types.c: LOADs of v in the type and shape of `like`. `what` is a LOAD_ purpose. */
int load_as(graph *g, int v, const value *like, int what, uint8_t comp); /* computed in type comp */
int load_number(graph *g, int v, const value *like, int what);
int load_root(graph *g, int v, const value *like, int what); /* the value of a destination */
int make_cast(graph *g, const value *to, int v);
int make_stored(graph *g, int v); /* v with elements of its own type in memory: halves are rounded */
void move_reductions_to_roots(graph *g);

/* legalize_types.c */
bool value_needs_legalizing(const graph *g,
                            const value *v); /* do backends lack v for its type or its operands' types? */
int make_legalized(graph *g, const value *v);

/* conv_nd.c: convolutions and pooling that do not have exactly two axes */
bool is_conv_nd(int op);
int make_conv_nd(graph *g, const value *v);
void trim_padding(const graph *g, value *v); /* of a convolution: at the end, no more than is read */

/* fold_gemm.c: fold factors and addends into matrix products. */
void fold_products(graph *g);

/* fold_fourier.c: make one transform of two along different axes. */
void fold_transforms(graph *g);

#endif
