/* complex_pairs.h - pairs of real values that represent complex values, and the functions that build
 * real formulas from them. Included by the complex*.c files only. */
#ifndef COMPLEX_PAIRS_H
#define COMPLEX_PAIRS_H

#include "canonicalize.h"
#include "dtype.h"

/* The parts of a complex value, as indices of real values. im is -1 if the value is real. */
typedef struct pair {
    int re, im;
} pair;

/* Where a formula is built. like: the type and shape of a part of its result. */
typedef struct graph_builder {
    graph *g;
    value like;
} graph_builder;

static inline value part_like(const value *v)
{
    value like = value_init(OP_LOAD, v);
    like.type = (uint8_t)dtype_part((duet_dtype)v->type);
    like.weak = false;
    return like;
}

/* ---- real operators, in the shape of the result ---- */

static inline value operator_of(const graph_builder *gb, enum op op, int x, int y, int z)
{
    value v = value_init(op, &gb->like);
    v.args = op_infos[op].arity;
    v.arg[0] = x;
    v.arg[1] = y;
    v.arg[2] = z;
    if (op_infos[op].flags & DUET_TRUTH) v.type = DUET_BOOL;
    return v;
}

static inline int make3(const graph_builder *gb, enum op op, int x, int y, int z)
{
    const value v = operator_of(gb, op, x, y, z);
    return make_real(gb->g, &v);
}
static inline int make2(const graph_builder *gb, enum op op, int x, int y) { return make3(gb, op, x, y, -1); }
static inline int make1(const graph_builder *gb, enum op op, int x) { return make3(gb, op, x, -1, -1); }

/* A sum of two products without FMA. Both products are then rounded alike, and z times its conjugate
 * is real. */
static inline int unfused(const graph_builder *gb, enum op op, int x, int y)
{
    const value v = operator_of(gb, op, x, y, -1);
    return make_unfused(gb->g, &v);
}

static inline int number(const graph_builder *gb, double x) { return constant_number(gb->g, x); }
static inline int choose(const graph_builder *gb, int c, int x, int y)
{
    return make3(gb, OP_where, c, x, y);
}
static inline int less_than(const graph_builder *gb, int x, double limit)
{
    return make2(gb, OP_less, x, number(gb, limit));
}
static inline int equals_zero(const graph_builder *gb, int x)
{
    return make2(gb, OP_equal, x, number(gb, 0));
}

/* If x is a number, make it a matrix: not every operator accepts numbers for all its operands. */
static inline int as_matrix(const graph_builder *gb, int x)
{
    if (copy_of(gb->g, x).op != OP_NUMBER) return x;
    return load_number(gb->g, x, &gb->like, LOAD_SHAPE);
}

/* complex.c */
int pair_value(graph *g, const value *like, pair p); /* a value of the type and shape of *like */
pair pair_of(graph *g, int v);
int plane_of(graph *g, int v, enum op op);      /* OP_real or OP_imag of elements in memory */
int imaginary(const graph_builder *gb, pair p); /* 0 for a real value */
pair parts_as_matrices(const graph_builder *gb, pair p);

/* The formula of operator v, of complex.def or with BILINEAR types. x: the pairs of its operands. */
typedef pair complex_formula(const graph_builder *gb, const value *v, const pair x[3]);
extern complex_formula *const complex_formulas[OPS];
#define DUET_OF_COMPLEX(name, gives) complex_formula name##_pair;
#include "complex.def"

/* complex_ops.c: helpers of complex_functions.c. */

/* Between low and high, squares, quotients and their sums neither overflow nor underflow. Other
 * operands are scaled by up or down. These are powers of two and of four. */
typedef struct range {
    double low, high, up, down;
} range;
range range_of(const graph_builder *gb);
pair scaled(const graph_builder *gb, enum op op, pair x, int by); /* op: OP_mul or OP_div */
int scale_of(const graph_builder *gb,
             int size); /* the factor for a pair whose larger part has magnitude `size` */
int larger_size(const graph_builder *gb, pair x);
int unless_zero(const graph_builder *gb, int x, int f); /* f, but x where x is 0 */

#endif
