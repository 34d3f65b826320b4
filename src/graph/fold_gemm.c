/* fold_gemm.c - folds factors and addends into matrix products: they become alpha, beta and the
 * third operand, as in BLAS gemm. */
#include "canonicalize.h"
#include "dtype.h"
#include <string.h>

static bool foldable(const graph *g, int number)
{
    const int class = g->values[number].class;
    return g->values[number].op == OP_NUMBER && class != NUMBER_ZERO && class != NUMBER_EXTREME;
}

/* May p be folded into v? Products of integers keep their form. */
static bool can_absorb(const graph *g, int v, int p)
{
    const value *m = &g->values[p];
    return m->op == OP_matmul && dtype_is_f32_or_f64(m->mem) && m->type == g->values[v].type &&
           m->uses == 1 && m->args == 2 && m->beta < 0;
}

/* Make v the product p, times alpha, plus beta times the addend. alpha, addend and beta may be -1:
 * absent. */
static void replace_by_product(graph *g, int v, int p, int alpha, int addend, int beta)
{
    value *m = &g->values[p], *o = &g->values[v];
    value made = *m;
    made.uses = o->uses;
    made.checkpoint = o->checkpoint;
    if (alpha >= 0) made.alpha = alpha;
    if (addend >= 0) {
        made.args = 3;
        made.arg[2] = addend;
        made.beta = beta;
    }
    memcpy(made.size, o->size, sizeof made.size);
    made.rank = o->rank;
    m->uses = 0; /* v computes it instead */
    *o = made;
}

/* The addend without its factor: b*C gives C and *beta = b, -C gives C and *beta = -1. A product
 * that something else uses stays as it is, with *beta = -1 for none. */
static int addend_of(graph *g, int z, int *beta)
{
    value a = copy_of(g, z);
    *beta = -1;
    if (a.uses == 1 && a.op == OP_neg) {
        *beta = minus_one(g);
        return a.arg[0];
    }
    if (a.op != OP_mul || a.uses != 1 || !foldable(g, a.arg[0])) return z;
    *beta = a.arg[0];
    return a.arg[1];
}

static bool addable(const graph *g, int v, int z)
{
    const value *a = &g->values[z], *o = &g->values[v];
    return same_shape(g, v, z) && !a->weak && a->type == o->type && a->mem == o->mem;
}

static void fold_addend(graph *g, int v, int p, int alpha, int z)
{
    int beta, addend = addend_of(g, z, &beta);
    if (can_absorb(g, v, p) && (alpha < 0 || g->values[p].alpha < 0) && addable(g, v, addend) &&
        same_shape(g, v, p))
        replace_by_product(g, v, p, alpha, addend, beta);
}

static void fold_fma(graph *g, int v)
{
    value o = copy_of(g, v);
    if (!foldable(g, o.arg[0])) return;
    if (can_absorb(g, v, o.arg[1]) && g->values[o.arg[1]].alpha < 0) {
        fold_addend(g, v, o.arg[1], o.arg[0], o.arg[2]);
    } else if (can_absorb(g, v, o.arg[2]) && addable(g, v, o.arg[1]) && same_shape(g, v, o.arg[2])) {
        replace_by_product(g, v, o.arg[2], -1, o.arg[1], o.arg[0]);
    }
}

static void fold_add(graph *g, int v)
{
    value o = copy_of(g, v);
    fold_addend(g, v, o.arg[0], -1, o.arg[1]);
    if (g->values[v].op == OP_add) fold_addend(g, v, o.arg[1], -1, o.arg[0]);
}

/* P - z is P + (-1) z, and z - P is (-1) P + z. */
static void fold_sub(graph *g, int v)
{
    value o = copy_of(g, v);
    if (!same_shape(g, v, o.arg[0]) || !same_shape(g, v, o.arg[1])) return;
    int minus = minus_one(g);
    if (can_absorb(g, v, o.arg[0]) && addable(g, v, o.arg[1]))
        replace_by_product(g, v, o.arg[0], -1, o.arg[1], minus);
    else if (can_absorb(g, v, o.arg[1]) && g->values[o.arg[1]].alpha < 0 && addable(g, v, o.arg[0]))
        replace_by_product(g, v, o.arg[1], minus, o.arg[0], -1);
}

static void fold_neg(graph *g, int v)
{
    value o = copy_of(g, v);
    if (can_absorb(g, v, o.arg[0]) && g->values[o.arg[0]].alpha < 0)
        replace_by_product(g, v, o.arg[0], minus_one(g), -1, -1);
}

static void fold_mul(graph *g, int v)
{
    value o = copy_of(g, v);
    if (foldable(g, o.arg[0]) && can_absorb(g, v, o.arg[1]) && g->values[o.arg[1]].alpha < 0)
        replace_by_product(g, v, o.arg[1], o.arg[0], -1, -1);
}

/* (a X) Y and X (a Y): the number becomes alpha. */
static void fold_factor(graph *g, int v)
{
    value *m = &g->values[v];
    for (int k = 0; k < 2 && m->alpha < 0; k++) {
        int factor = m->arg[k];
        value *x = &g->values[factor];
        if (x->op != OP_mul || x->uses != 1 || !foldable(g, x->arg[0]) || !dtype_is_f32_or_f64(m->mem))
            continue;
        int other = x->arg[1];
        if (g->values[other].mem != m->mem || !same_shape(g, other, (int)(x - g->values))) continue;
        m->alpha = x->arg[0];
        m->arg[k] = other;
        x->uses = 0;
    }
}

void fold_products(graph *g)
{
    count_uses(g);
    for (int v = 0, count = g->count; v < count; v++) {
        if (!g->values[v].uses) continue;
        switch (g->values[v].op) {
        case OP_matmul: fold_factor(g, v); break;
        case OP_mul: fold_mul(g, v); break;
        case OP_fma: fold_fma(g, v); break;
        case OP_add: fold_add(g, v); break;
        case OP_sub: fold_sub(g, v); break;
        case OP_neg: fold_neg(g, v); break;
        default: break;
        }
    }
}
