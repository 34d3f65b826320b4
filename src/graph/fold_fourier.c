/* fold_fourier.c - replaces two nested Fourier transforms along different axes by one along both: libraries
 * compute that faster. */
#include "canonicalize.h"

/* The kind of the combined transform; -1: the two stay separate. A real transform halves an axis of real
 * elements, so it must be the inner one. An inverse real transform must be the outer one. */
static int kind_of_both(int first, int second)
{
    if (first == second && (first == FOURIER_FORWARD || first == FOURIER_INVERSE)) return first;
    if (first == FOURIER_REAL && second == FOURIER_FORWARD) return FOURIER_REAL;
    return first == FOURIER_INVERSE && second == FOURIER_REAL_INVERSE ? FOURIER_REAL_INVERSE : -1;
}

/* Does the second transform pad its operand with zeros? In one transform, the padding would come before the
 * first transform too. */
static bool pads(const value *second, const value *first)
{
    const fourier_attributes *f = &second->attr.fourier;
    for (int a = 0; a < second->rank; a++) {
        const bool halved = f->kind == FOURIER_REAL_INVERSE && a == f->last;
        if (f->axes >> a & 1 && (halved ? f->length[a] / 2 + 1 : f->length[a]) > first->size[a]) return true;
    }
    return false;
}

/* Makes v the transform of the operand of its operand. */
static void fold(graph *g, int v)
{
    value *second = &g->values[v], *first = &g->values[second->arg[0]];
    if (first->op != OP_fftn || first->uses != 1 || first->checkpoint || first->rank != second->rank) return;
    fourier_attributes *to = &second->attr.fourier;
    const fourier_attributes *from = &first->attr.fourier;
    const int kind = kind_of_both(from->kind, to->kind);
    if (kind < 0 || to->axes & from->axes || pads(second, first)) return;
    for (int a = 0; a < second->rank; a++)
        if (from->axes >> a & 1) to->length[a] = from->length[a];
    if (kind == FOURIER_REAL) to->last = from->last;
    else if (kind != FOURIER_REAL_INVERSE && from->last > to->last) to->last = from->last;
    to->axes |= from->axes;
    to->kind = kind;
    second->arg[0] = first->arg[0];
    first->uses = 0;
}

void fold_transforms(graph *g)
{
    count_uses(g);
    for (int v = 0; v < g->count; v++)
        if (g->values[v].uses && g->values[v].op == OP_fftn) fold(g, v);
}
