/* fold_gemm.c - matrix products take what they are multiplied with, and what they are added to: alpha, beta and the addend. */
#include "canonicalize.h"
#include "dtype.h"
#include <string.h>

static bool foldable(const graph *g, int number)
{
    const int class = g->values[number].class;
    return g->values[number].op == OP_NUMBER && class != NUMBER_ZERO && class != NUMBER_EXTREME;
}

/* May p be folded into v? Integers are computed as they are written. */
static bool plain_product(const graph *g, int v, int p)
{
    const value *m = &g->values[p];
    return m->op == OP_matmul && m->mem < FLOAT_TYPES && m->type == g->values[v].type && m->uses == 1 &&
           m->args == 2 && m->beta < 0;
}

/* v becomes the product p, times alpha, plus beta times the addend. Numbers and addend may be -1: not there. */
static void become_product(graph *g, int v, int p, int alpha, int addend, int beta)
{
    value *m = &g->values[p], *o = &g->values[v];
    value made = *m;
    made.uses = o->uses;
    if (alpha >= 0) made.alpha = alpha;
    if (addend >= 0) made.args = 3, made.arg[2] = addend, made.beta = beta;
    memcpy(made.size, o->size, sizeof made.size), made.rank = o->rank;
    m->uses = 0; /* it is computed here instead */
    *o = made;
}

/* The addend b*C, -C, or C alone: the product with a number is taken apart when nothing else uses it. */
static int addend_of(graph *g, int z, int *beta)
{
    value a = copy_of(g, z);
    *beta = -1;
    if (a.uses == 1 && a.op == OP_neg) return *beta = minus_one(g), a.arg[0];
    if (a.op != OP_mul || a.uses != 1 || !foldable(g, a.arg[0])) return z;
    *beta = a.arg[0];
    return a.arg[1];
}

static bool addable(const graph *g, int v, int z)
{
    const value *a = &g->values[z], *o = &g->values[v];
    return same_shape(g, v, z) && !a->weak && a->type == o->type && a->mem == o->mem;
}

static void reduce_sum(graph *g, int v, int p, int alpha, int z)
{
    int beta, addend = addend_of(g, z, &beta);
    if (plain_product(g, v, p) && (alpha < 0 || g->values[p].alpha < 0) && addable(g, v, addend) &&
        same_shape(g, v, p))
        become_product(g, v, p, alpha, addend, beta);
}

static void reduce_fma(graph *g, int v)
{
    value o = copy_of(g, v);
    if (!foldable(g, o.arg[0])) return;
    if (plain_product(g, v, o.arg[1]) && g->values[o.arg[1]].alpha < 0) {
        reduce_sum(g, v, o.arg[1], o.arg[0], o.arg[2]);
    } else if (plain_product(g, v, o.arg[2]) && addable(g, v, o.arg[1]) && same_shape(g, v, o.arg[2])) {
        become_product(g, v, o.arg[2], -1, o.arg[1], o.arg[0]);
    }
}

static void reduce_add(graph *g, int v)
{
    value o = copy_of(g, v);
    reduce_sum(g, v, o.arg[0], -1, o.arg[1]);
    if (g->values[v].op == OP_add) reduce_sum(g, v, o.arg[1], -1, o.arg[0]);
}

/* P - z is P + (-1) z, and z - P is (-1) P + z. */
static void reduce_sub(graph *g, int v)
{
    value o = copy_of(g, v);
    if (!same_shape(g, v, o.arg[0]) || !same_shape(g, v, o.arg[1])) return;
    int minus = minus_one(g);
    if (plain_product(g, v, o.arg[0]) && addable(g, v, o.arg[1]))
        become_product(g, v, o.arg[0], -1, o.arg[1], minus);
    else if (plain_product(g, v, o.arg[1]) && g->values[o.arg[1]].alpha < 0 && addable(g, v, o.arg[0]))
        become_product(g, v, o.arg[1], minus, o.arg[0], -1);
}

static void reduce_neg(graph *g, int v)
{
    value o = copy_of(g, v);
    if (plain_product(g, v, o.arg[0]) && g->values[o.arg[0]].alpha < 0)
        become_product(g, v, o.arg[0], minus_one(g), -1, -1);
}

static void reduce_mul(graph *g, int v)
{
    value o = copy_of(g, v);
    if (foldable(g, o.arg[0]) && plain_product(g, v, o.arg[1]) && g->values[o.arg[1]].alpha < 0)
        become_product(g, v, o.arg[1], o.arg[0], -1, -1);
}

/* (a X) Y and X (a Y): the number becomes alpha. */
static void reduce_factor(graph *g, int v)
{
    value *m = &g->values[v];
    for (int k = 0; k < 2 && m->alpha < 0; k++) {
        int factor = m->arg[k];
        bool turned = g->values[factor].op == OP_transpose && g->values[factor].uses == 1;
        value *x = &g->values[turned ? g->values[factor].arg[0] : factor];
        if (x->op != OP_mul || x->uses != 1 || !foldable(g, x->arg[0]) || m->mem >= FLOAT_TYPES) continue;
        int inner = x->arg[1];
        if (g->values[inner].mem != m->mem || !same_shape(g, inner, (int)(x - g->values))) continue;
        m->alpha = x->arg[0];
        if (turned) g->values[factor].arg[0] = inner;
        else m->arg[k] = inner;
        x->uses = 0;
    }
}

void reduce_products(graph *g)
{
    count_uses(g);
    for (int v = 0, count = g->count; v < count; v++) {
        if (!g->values[v].uses) continue;
        switch (g->values[v].op) {
        case OP_matmul: reduce_factor(g, v); break;
        case OP_mul: reduce_mul(g, v); break;
        case OP_fma: reduce_fma(g, v); break;
        case OP_add: reduce_add(g, v); break;
        case OP_sub: reduce_sub(g, v); break;
        case OP_neg: reduce_neg(g, v); break;
        default: break;
        }
    }
}
