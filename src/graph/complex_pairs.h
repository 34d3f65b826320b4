/* complex_pairs.h - complex values while a formula is read: pairs of real ones, and the real operators that their formulas are made of. Private to
 * complex.c and complex_ops.c. */
#ifndef COMPLEX_PAIRS_H
#define COMPLEX_PAIRS_H

#include "canonicalize.h"
#include "dtype.h"

/* Two real values; im is -1 of a real one. */
typedef struct pair {
    int re, im;
} pair;

/* An operator under way. like: a real value of the shape of its result. */
typedef struct maker {
    graph *g;
    value like;
} maker;

static inline value part_like(const value *v)
{
    value like = blank(OP_LOAD, v);
    like.type = (uint8_t)dtype_part((duet_dtype)v->type), like.weak = false;
    return like;
}

/* ---- real operators of the result's shape ---- */

static inline value operator_of(const maker *m, enum op op, int x, int y, int z)
{
    value v = blank(op, &m->like);
    v.args = op_infos[op].arity, v.arg[0] = x, v.arg[1] = y, v.arg[2] = z;
    if (op_infos[op].flags & DUET_TRUTH) v.type = DUET_BOOL;
    return v;
}

static inline int make3(const maker *m, enum op op, int x, int y, int z)
{
    const value v = operator_of(m, op, x, y, z);
    return make_real(m->g, &v);
}
static inline int make2(const maker *m, enum op op, int x, int y) { return make3(m, op, x, y, -1); }
static inline int make1(const maker *m, enum op op, int x) { return make3(m, op, x, -1, -1); }

/* A sum of products in which none is fused: so both products count alike, and z times its conjugate is real. */
static inline int unfused(const maker *m, enum op op, int x, int y)
{
    const value v = operator_of(m, op, x, y, -1);
    return make_unfused(m->g, &v);
}

static inline int number(const maker *m, double x) { return constant_number(m->g, x); }
static inline int choose(const maker *m, int c, int x, int y) { return make3(m, OP_where, c, x, y); }
static inline int is_below(const maker *m, int x, double limit)
{
    return make2(m, OP_less, x, number(m, limit));
}
static inline int is_zero(const maker *m, int x) { return make2(m, OP_equal, x, number(m, 0)); }

/* What is no number alone: not every operator has one for all its operands. */
static inline int loaded(const maker *m, int x)
{
    return copy_of(m->g, x).op == OP_NUMBER ? load_number(m->g, x, &m->like, LOAD_SHAPE) : x;
}

/* complex.c: a value like *like, of these parts; the parts of v; one half of its elements, as they lie; the imaginary part, which a real value has not; both, and no numbers. */
int pair_value(graph *g, const value *like, pair p);
pair pair_of(graph *g, int v);
int plane_of(graph *g, int v, enum op op);
pair transposed(const maker *m, pair p);
int imaginary(const maker *m, pair p);
pair loaded_parts(const maker *m, pair p);

/* complex_ops.c: an operator of complex.def, v, of operands x. */
typedef pair on_pairs(const maker *m, const value *v, const pair x[3]);
extern on_pairs *const complex_formulas[OPS];

#endif
