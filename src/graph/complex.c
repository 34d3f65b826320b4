/* complex.c - represents complex values as pairs of real values. Each part has its own real
 * formula, and complex_ops.c has the formula of each operator.
 * When an operator needs interleaved elements in memory, the pair becomes a join: two LOADs write
 * the real and the imaginary half of each element. Interleaved elements in memory are split by
 * OP_real and OP_imag, which see one half of each element. */
#include "complex_pairs.h"
#include "views.h"

/* ---- pairs ---- */

static bool is_complex(const graph *g, int v) { return dtype_is_complex((duet_dtype)g->values[v].type); }
static bool is_pair(const graph *g, int v) { return g->values[v].op == OP_complex && !value_is_join(g, v); }

int pair_value(graph *g, const value *like, pair p)
{
    value v = value_init(OP_complex, like);
    v.args = 2;
    v.arg[0] = p.re;
    v.arg[1] = p.im;
    return intern(g, &v);
}

int plane_of(graph *g, int v, enum op op)
{
    const value x = copy_of(g, v);
    value p = part_like(&x);
    p.op = (uint8_t)op;
    p.args = 1;
    p.arg[0] = v;
    return intern(g, &p);
}

/* A view of interleaved elements, as a view of one of the halves that they are made of. */
static int view_of_half(graph *g, const value *view, int half)
{
    value v = value_init(OP_VIEW, view);
    v.type = g->values[half].type;
    v.args = 1;
    v.arg[0] = half;
    v.attr.view.offset = 2 * view->attr.view.offset;
    for (int i = 0; i < view->rank; i++) v.attr.view.stride[i] = 2 * view->attr.view.stride[i];
    return intern(g, &v);
}

/* If v was set by an earlier statement, or is behind a checkpoint, read the parts that were written. */
pair pair_of(graph *g, int v)
{
    const value x = copy_of(g, v);
    if (!is_complex(g, v)) return (pair){ v, -1 };
    if (is_pair(g, v)) return (pair){ x.arg[0], x.arg[1] };
    const int base = x.op == OP_VIEW ? x.arg[0] : v, earlier = copy_of(g, base).arg[0];
    if (is_barrier(g, base) && value_is_join(g, earlier) && is_op(g, earlier, OP_complex)) {
        const pair halves = { g->values[earlier].arg[0], g->values[earlier].arg[1] };
        if (base == v) return halves;
        return (pair){ view_of_half(g, &x, halves.re), view_of_half(g, &x, halves.im) };
    }
    return (pair){ plane_of(g, v, OP_real), plane_of(g, v, OP_imag) };
}

/* The imaginary part; 0 if the value is real. */
int imaginary(const graph_builder *gb, pair p) { return p.im < 0 ? number(gb, 0) : p.im; }

pair parts_as_matrices(const graph_builder *gb, pair p)
{
    return (pair){ as_matrix(gb, p.re), as_matrix(gb, imaginary(gb, p)) };
}

/* A view of a pair is a pair of views; one of interleaved elements is a view of these. */
int view_of_value(graph *g, int v, const view_change *c)
{
    const value x = copy_of(g, v);
    if (!is_pair(g, v)) return change_view(g, v, c);
    value like = x;
    like.rank = (uint8_t)c->to.rank;
    memcpy(like.size, c->to.size, sizeof like.size);
    like.weak = false;
    int part[2] = { x.arg[0], x.arg[1] };
    change_views(g, 2, part, c);
    return pair_value(g, &like, (pair){ part[0], part[1] });
}

/* ---- joins ---- */

static int find_join(const graph *g, const value *like, pair p)
{
    for (int i = g->count; i-- > 0;)
        if (value_is_join(g, i) && g->values[i].attr.join.re == p.re && g->values[i].attr.join.im == p.im &&
            g->values[i].type == like->type && same_sizes(&g->values[i], like))
            return i;
    return -1;
}

/* The interleaved value of these parts, in the type and shape of *like. A part may be a number. */
static int join(graph *g, const value *like, pair p)
{
    const int found = find_join(g, like, p);
    if (found >= 0) return found;
    value half = part_like(like), v = value_init(OP_complex, like);
    /* a number that no other value has: intern() must not merge two halves */
    half.join = g->count + 2;
    v.weak = false;
    v.args = 2;
    v.attr.join = (join_attributes){ p.re, p.im };
    v.arg[0] = load_root(g, p.re, &half, LOAD_REAL);
    v.arg[1] = load_root(g, p.im, &half, LOAD_IMAG);
    v.join = half.join;
    const int joined = intern(g, &v);
    for (int k = 0; k < 2 && !g->failed; k++) g->values[v.arg[k]].join = joined;
    g->values[joined].join = joined;
    return joined;
}

int complex_interleaved(graph *g, int v)
{
    if (!is_pair(g, v)) return v;
    const value like = copy_of(g, v);
    return join(g, &like, pair_of(g, v));
}

int complex_root(graph *g, int v, const value *like)
{
    const bool moves =
        is_complex(g, v) && !is_pair(g, v) && !is_barrier(g, v) && g->values[v].type == like->type;
    if (moves) return v;
    const graph_builder gb = { g, part_like(like) };
    const pair p = pair_of(g, v);
    return join(g, like, (pair){ p.re, imaginary(&gb, p) });
}

/* A part, broadcast to the shape of *like and converted to its type. */
static int part_as(graph *g, int x, const value *like)
{
    value own = copy_of(g, x);
    if (own.op == OP_NUMBER) return load_number(g, x, like, LOAD_SHAPE);
    own.type = like->type;
    own.join = 0;
    return broadcast_to_shape(g, like, make_cast(g, &own, x));
}

int complex_in_shape(graph *g, int v, const value *like)
{
    const value part = part_like(like);
    const pair p = pair_of(g, v);
    return pair_value(g, like, (pair){ part_as(g, p.re, &part), part_as(g, p.im, &part) });
}

/* ---- reading a formula ---- */

/* Does the operator split complex numbers into parts, or make them from parts? Such operators accept real
 * operands too. */
static bool is_of_parts(int op)
{
    return op == OP_real || op == OP_imag || op == OP_conj || op == OP_arg || op == OP_complex;
}

bool is_complex_operator(const graph *g, const value *v)
{
    bool any = dtype_is_complex((duet_dtype)v->type) || is_of_parts(v->op);
    for (int k = 0; k < v->args; k++) any |= is_complex(g, v->arg[k]);
    return any && v->op < OPS && complex_formulas[v->op];
}

static int numbers_pair(graph *g, const value *v)
{
    const value like = { .type = v->type, .rank = 0, .weak = true };
    return pair_value(g, &like, (pair){ v->arg[0], v->arg[1] });
}

int complex_operator(graph *g, const value *v)
{
    const graph_builder gb = { g, part_like(v) };
    pair x[3] = { { -1, -1 }, { -1, -1 }, { -1, -1 } };
    if (v->op == OP_complex && v->weak) return numbers_pair(g, v);
    for (int k = 0; k < v->args; k++) x[k] = pair_of(g, v->arg[k]);
    const pair p = complex_formulas[v->op](&gb, v, x);
    if (!dtype_is_complex((duet_dtype)v->type)) return broadcast_to_shape(g, v, p.re);
    const pair z = { part_as(g, p.re, &gb.like), part_as(g, imaginary(&gb, p), &gb.like) };
    return pair_value(g, v, z);
}
