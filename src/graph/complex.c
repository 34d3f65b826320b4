/* complex.c - complex values as pairs of real ones: each part has a formula of its own, until somebody wants the elements as they lie in
 * memory: then it is joined, by two values that are written each to its half of every element. What lies in memory is taken apart by values
 * that see one half of each element: the real plane and the imaginary one. complex_ops.c has the operators. */
#include "complex_pairs.h"

/* ---- pairs ---- */

static bool is_complex(const graph *g, int v) { return dtype_is_complex((duet_dtype)g->values[v].type); }
static bool is_pair(const graph *g, int v) { return g->values[v].op == OP_complex && !value_is_join(g, v); }

int pair_value(graph *g, const value *like, pair p)
{
    value v = blank(OP_complex, like);
    v.args = 2, v.arg[0] = p.re, v.arg[1] = p.im;
    return intern(g, &v);
}

int plane_of(graph *g, int v, enum op op)
{
    const value x = copy_of(g, v);
    value p = part_like(&x);
    p.op = (uint8_t)op, p.args = 1, p.arg[0] = v;
    return intern(g, &p);
}

pair transposed(const maker *m, pair p)
{
    return (pair){ make1(m, OP_transpose, p.re), make1(m, OP_transpose, p.im) };
}

/* Is it what an earlier statement of this plan sets? It is in no memory yet from which it could be moved. */
static bool is_earlier(const graph *g, int v)
{
    return g->values[v].op == OP_LOAD && g->values[v].attr.load.purpose == LOAD_BARRIER;
}

/* Of an earlier statement's value what was written is read. */
pair pair_of(graph *g, int v)
{
    const value x = copy_of(g, v);
    if (!is_complex(g, v)) return (pair){ v, -1 };
    if (is_pair(g, v)) return (pair){ x.arg[0], x.arg[1] };
    if (x.op == OP_transpose) return transposed(&(maker){ g, part_like(&x) }, pair_of(g, x.arg[0]));
    if (is_earlier(g, v) && value_is_join(g, x.arg[0]))
        return (pair){ g->values[x.arg[0]].arg[0], g->values[x.arg[0]].arg[1] };
    return (pair){ plane_of(g, v, OP_real), plane_of(g, v, OP_imag) };
}

/* The imaginary part, which a real value has not. */
int imaginary(const maker *m, pair p) { return p.im < 0 ? number(m, 0) : p.im; }

pair loaded_parts(const maker *m, pair p) { return (pair){ loaded(m, p.re), loaded(m, imaginary(m, p)) }; }

/* ---- joins ---- */

static int find_join(const graph *g, const value *like, pair p)
{
    for (int i = g->count; i-- > 0;)
        if (value_is_join(g, i) && g->values[i].attr.join.re == p.re && g->values[i].attr.join.im == p.im &&
            g->values[i].type == like->type && same_sizes(&g->values[i], like))
            return i;
    return -1;
}

/* The value of these parts, numbers perhaps, of the type and shape of *like, as it lies in memory. */
static int join(graph *g, const value *like, pair p)
{
    const int found = find_join(g, like, p);
    if (found >= 0) return found;
    value half = part_like(like), v = blank(OP_complex, like);
    half.join = g->count + 2; /* nobody else's */
    v.weak = false, v.args = 2, v.attr.join = (join_attributes){ p.re, p.im };
    v.arg[0] = load_root(g, p.re, &half, LOAD_REAL), v.arg[1] = load_root(g, p.im, &half, LOAD_IMAG);
    v.join = half.join;
    const int joined = intern(g, &v);
    for (int k = 0; k < 2 && !g->failed; k++) g->values[v.arg[k]].join = joined;
    g->values[joined].join = joined;
    return joined;
}

int complex_whole(graph *g, int v)
{
    if (!is_pair(g, v)) return v;
    const value like = copy_of(g, v);
    return join(g, &like, pair_of(g, v));
}

int complex_root(graph *g, int v, const value *like)
{
    const bool moves =
        is_complex(g, v) && !is_pair(g, v) && !is_earlier(g, v) && g->values[v].type == like->type;
    if (moves) return v;
    const maker m = { g, part_like(like) };
    const pair p = pair_of(g, v);
    return join(g, like, (pair){ p.re, imaginary(&m, p) });
}

/* A part in the shape and type of *like. */
static int part_as(graph *g, int x, const value *like)
{
    value own = copy_of(g, x);
    if (own.op == OP_NUMBER) return load_number(g, x, like, LOAD_SHAPE);
    own.type = like->type, own.join = 0;
    return settle_shape(g, like, make_cast(g, &own, x));
}

int complex_shaped(graph *g, int v, const value *like)
{
    const value part = part_like(like);
    const pair p = pair_of(g, v);
    return pair_value(g, like, (pair){ part_as(g, p.re, &part), part_as(g, p.im, &part) });
}

/* ---- reading a formula ---- */

bool is_complex_operator(const graph *g, const value *v)
{
    bool any = dtype_is_complex((duet_dtype)v->type) || (v->op >= OP_real && v->op <= OP_complex);
    for (int k = 0; k < v->args; k++) any |= is_complex(g, v->arg[k]);
    if (v->op == OP_transpose && any)
        return is_pair(g, v->arg[0]); /* others are seen turned where they lie */
    return any && v->op < OPS && complex_formulas[v->op];
}

static int numbers_pair(graph *g, const value *v)
{
    const value like = { .type = v->type, .rank = 0, .weak = true };
    return pair_value(g, &like, (pair){ v->arg[0], v->arg[1] });
}

int complex_operator(graph *g, const value *v)
{
    const maker m = { g, part_like(v) };
    pair x[3] = { { -1, -1 }, { -1, -1 }, { -1, -1 } };
    if (v->op == OP_complex && v->weak) return numbers_pair(g, v);
    for (int k = 0; k < v->args; k++) x[k] = pair_of(g, v->arg[k]);
    const pair p = complex_formulas[v->op](&m, v, x);
    if (!dtype_is_complex((duet_dtype)v->type)) return settle_shape(g, v, p.re);
    const pair z = { part_as(g, p.re, &m.like), part_as(g, imaginary(&m, p), &m.like) };
    return pair_value(g, v, z);
}
