/* graph.h - a formula in canonical form: values, each computed once. Private to src/plan. */
#ifndef GRAPH_H
#define GRAPH_H

#include "attributes.h"
#include "expr.h"

/* A number of a plan: that of a node of the formula, perhaps negated or inverted, or a constant. Bound at run time. */
typedef struct bound {
    int node; /* of the formula; -1: the constant */
    bool negated, inverted;
    bool wide;       /* no double is the number of the node */
    uint8_t integer; /* I64 or U64: it is bound as the bits of that */
    double constant;
} bound;

/* A value. Its operands stand before it, and equal values are one. */
typedef struct value {
    uint8_t op, type, rank;
    bool weak; /* a number, or a hole for one */
    uint8_t
        comp; /* the type that a program computes it in; of a reduction, that of its operands. COMP_ANY: of bools, not settled yet */
    uint8_t mem;   /* the type of its elements in memory: of a formula of halves f32 */
    bool stored;   /* what is in memory may be another number than what was computed: others read it there */
    uint8_t class; /* of a number: enum number_class */
    int args, arg[3];
    int uses;         /* by other values; a root has one more */
    int leaf, number; /* of a leaf or number: its index in the graph; else -1 */
    int alpha, beta;  /* of a product: values that are numbers, or -1 */
    int join; /* of a half of each complex element: the value that it is a half of, which has itself here; else 0 */
    attributes attr;
    int64_t size[DUET_RANK_MAX];
} value;

typedef struct leaf {
    uint32_t node; /* of the formula: the matrix to bind */
    layout at;
} leaf;

/* What a statement is for: the last node of its part of the formula, and where its value goes. */
typedef struct dest_info {
    uint32_t node;
    layout to;
    bool overwritten; /* by a later statement: the value is for others alone */
} dest_info;

#define STATEMENTS 64 /* in one plan */

typedef struct graph {
    value *values;
    int count, room;
    leaf *leaves;
    int n_leaves;
    bound *numbers;
    int n_numbers;
    int root
        [STATEMENTS]; /* the value of each dest, of the shape of its destination, in no other dest; -1: overwritten */
    int roots;
    bool failed; /* out of memory while it was built */
} graph;

/* Canonical form of statements: exact rewrites only, and FMA placed by each formula alone; see docs/semantics.md. earlier[i], of a
 * node that is a matrix: the dest whose value it reads, an earlier one, or -1. NULL: there is none. */
duet_status graph_make(graph *g, const formula *f, int dests, const dest_info *dest, const int *earlier);

/* That of a pattern: one root, which stays as it is. */
duet_status graph_pattern(graph *g, const formula *f);
void graph_free(graph *g);

static inline value *value_at(const graph *g, int v) { return &g->values[v]; }
shape value_shape(const graph *g, int v);
bool same_shape(const graph *g, int a, int b);
bool value_is_map(const graph *g, int v); /* element by element: a map row, bias_add or LOAD */

/* What LOADs are for, so that they are told apart: a shape, a barrier, a cast, a half of complex elements, or (ROOT and above) a dest. */
enum load_purpose { LOAD_SHAPE, LOAD_BARRIER, LOAD_CAST, LOAD_REAL, LOAD_IMAG, LOAD_ROOT };

/* types.c: computed types that depend on nothing but bools are chosen by who reads them. */
enum { COMP_ANY = DUET_DTYPE_COUNT, COMP_UNSET };
bool value_passes(const graph *g,
                  int v); /* may a program that reads v have computed it on its way? Else it reads memory */
uint8_t computed_in(const graph *g, const value *v);
bool value_moves(const value *v); /* of what OP_ANY_TYPES says: elements are of its type in memory */
uint8_t memory_type(const graph *g, const value *v);
void settle_computed(graph *g);
bool value_wraps(const graph *g, int v); /* may it leave its integer type, when it was computed? */

/* Complex values. A join's elements are what its operands, two halves, have written; a plane is one half of the elements of its operand, read
 * where they lie. value_half: which half of value_base(v)'s elements v is, 1 being the imaginary one; -1: it is all of them. */
static inline bool value_is_join(const graph *g, int v)
{
    return value_at(g, v)->op == OP_complex && value_at(g, v)->join > 0;
}
static inline bool value_is_half(const graph *g, int v)
{
    return value_at(g, v)->join > 0 && !value_is_join(g, v);
}
static inline bool value_is_plane(const graph *g, int v)
{
    return value_at(g, v)->op == OP_real || value_at(g, v)->op == OP_imag;
}
int value_half(const graph *g, int v);

/* Where a value lies: a transpose, a part and a plane in its operand, every other in itself; and how it is reached there. */
int value_base(const graph *g, int v);
layout value_layout(const graph *g, int v);
layout plane_layout(layout l); /* layout of the real or imaginary parts of complex elements */
static inline bool is_view(int op) { return op == OP_transpose || op == OP_PART; }

#endif
