/* graph.h - the graph of one or several statements in canonical form: a table of values, each
 * computed once. */
#ifndef GRAPH_H
#define GRAPH_H

#include "attributes.h"
#include "expr.h"

/* A number of a plan, bound when the plan runs: the number of a node, perhaps negated or inverted,
 * or a constant. */
typedef struct bound {
    int node; /* the formula's node with the number; -1: the constant */
    bool negated, inverted;
    bool wide;       /* the node's number is an integer that no double represents */
    uint8_t integer; /* DUET_I64 or DUET_U64: bind the bits of that type; else 0 */
    double constant;
} bound;

#define VALUE_ARGS 16 /* the most operands; only concatenations have more than three */

/* A value. Its operands come before it in the table. Equal values are stored once. */
typedef struct value {
    uint8_t op, type, rank;
    bool weak; /* a number, or a hole for one: it takes the type of the other operand */
    /* The type in which a program computes it; for a reduction, the type of its operands. COMP_ANY:
     * an operator on bools, whose type is still to be chosen. */
    uint8_t comp;
    uint8_t mem;     /* the type of its elements in memory; f32 for formulas of halves */
    bool shared;     /* several nodes of the formula use it */
    bool stored;     /* storing changes the value, so users must read it from memory */
    bool checkpoint; /* of duet_checkpoint: users read it from memory, and what it needs is not kept */
    uint8_t class;   /* for a number: enum number_class */
    int args, arg[VALUE_ARGS];
    int uses;         /* number of uses by other values, and one more for a root */
    int leaf, number; /* of a leaf or a number: its index in the graph; else -1 */
    int alpha, beta;  /* of a matrix product: values that are numbers, or -1 */
    int join; /* of a half of complex elements or a piece: its join; of a join: the join itself; else 0 */
    int64_t start[DUET_RANK_MAX]; /* of a piece of a concatenation: its first index in the result */
    attributes attr;
    int64_t size[DUET_RANK_MAX];
} value;

typedef struct leaf {
    uint32_t node; /* the formula's node with the matrix to bind */
    layout at;
} leaf;

/* The destination of a statement: the last node of its part of the formula, and where its value goes. */
typedef struct dest_info {
    uint32_t node;
    layout to;
    bool overwritten; /* by a later statement: only other statements use the value */
    /* graph_make has permuted the axes of `to`: an element of the value is written to another index of
     * the destination's matrix than its own */
    bool rearranged;
} dest_info;

#define STATEMENTS 255 /* the most statements of one plan */

typedef struct graph {
    value *values;
    int count, capacity;
    leaf *leaves;
    int n_leaves;
    bound *numbers;
    int n_numbers;
    /* The value of each destination. It has the destination's shape, and is the root of no other
     * destination. -1: the destination is overwritten. */
    int root[STATEMENTS];
    int roots;
    bool has_checkpoints;
    bool failed; /* out of memory while it was built */
} graph;

/* Build the canonical form of statements: exact rewrites only (those of libraries' operators are within their
 * error bounds), and FMA placed for each formula by itself; see docs/semantics.md. earlier[i]: if node i is a
 * matrix that an earlier statement sets, the index of that statement; else -1. earlier may be NULL. The
 * layouts of destinations may change. */
duet_status graph_make(graph *g, const formula *f, int dests, dest_info *dest, const int *earlier);

/* Build the canonical form of a pattern of fused.def: one root, without a destination. */
duet_status graph_pattern(graph *g, const formula *f);
void graph_free(graph *g);

static inline value *value_at(const graph *g, int v) { return &g->values[v]; }
void count_uses(graph *g);                  /* sets value.uses */
int graph_append(graph *g, const value *v); /* returns the index; 0 and g->failed: out of memory */
shape value_shape(const graph *g, int v);
bool same_shape(const graph *g, int a, int b);
bool value_is_map(const graph *g, int v); /* element-wise: an operator of kind KIND_MAP, bias_add or LOAD */

/* The purpose of a LOAD: to broadcast, to hide an earlier statement's value from rewrites, to cast, to copy
 * elements without gaps, to write one half of complex elements or one piece of a concatenation, or
 * (LOAD_ROOT + i) to write destination i. Because of this attribute, LOADs for different purposes are not
 * equal. */
enum load_purpose {
    LOAD_SHAPE,
    LOAD_BARRIER,
    LOAD_CAST,
    LOAD_COPY,
    LOAD_REAL,
    LOAD_IMAG,
    LOAD_PIECE,
    LOAD_ROOT
};

/* types.c */
enum { COMP_ANY = DUET_DTYPE_COUNT, COMP_UNSET };

/* Can a program that uses v compute v, too? If not, it reads v from memory. */
bool value_is_fusable(const graph *g, int v);
uint8_t value_computed_type(const graph *g, const value *v);
bool value_moves_elements(const value *v); /* an operator with OP_ANY_TYPES that keeps the elements' bits */
uint8_t value_memory_type(const graph *g, const value *v);
void resolve_computed_types(graph *g);   /* replace each COMP_ANY by the type of the users */
bool value_wraps(const graph *g, int v); /* may the computed result exceed v's integer type? */

/* A join is a value in memory whose operands, its pieces, each write a part of it. It is either a complex
 * value, whose two pieces write the real and the imaginary halves of its elements, or a concatenation. A
 * plane, OP_real or OP_imag, is one half of the complex elements of its operand, read in place. */
static inline bool value_is_join(const graph *g, int v)
{
    const value *u = value_at(g, v);
    return u->join > 0 && (u->op == OP_complex || u->op == OP_append);
}
static inline bool value_is_piece(const graph *g, int v)
{
    return value_at(g, v)->join > 0 && !value_is_join(g, v);
}
static inline bool value_is_plane(const graph *g, int v)
{
    return value_at(g, v)->op == OP_real || value_at(g, v)->op == OP_imag;
}

/* The value whose memory v uses: a view and a plane use their operand's, all others their own. */
int value_base(const graph *g, int v);
layout value_layout(const graph *g, int v); /* of v in the memory of value_base(v) */
layout plane_layout(layout l);              /* of the real or imaginary parts of complex elements */
/* Of piece v, if its join has layout l: its layout, and the bytes from the first element of the join. */
layout piece_layout(const graph *g, int v, layout l);
int64_t piece_offset(const graph *g, int v, const layout *l);
static inline bool is_view(int op) { return op == OP_VIEW; }
int64_t value_offset(const graph *g, int v); /* of v in that memory, in bytes */

#endif
