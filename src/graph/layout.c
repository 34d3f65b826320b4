/* layout.c - gives the size, strides and element type of each value of a graph. */
#include "dtype.h"
#include "graph.h"
#include <string.h>

layout plane_layout(layout l)
{
    l.type = dtype_part(l.type);
    for (int i = 0; i < l.rank; i++) l.stride[i] *= 2;
    return l;
}

layout value_layout(const graph *g, int v)
{
    const value *u = value_at(g, v);
    layout l;
    if (u->op == OP_LEAF) return g->leaves[u->leaf].at;
    if (value_is_half(g, v)) return plane_layout(value_layout(g, u->join));
    if (value_is_plane(g, v)) return plane_layout(value_layout(g, u->arg[0]));
    if (!is_view(u->op)) {
        layout_dense(&l, (duet_dtype)u->mem, u->rank, u->size);
        return l;
    }
    layout x = value_layout(g, u->arg[0]);
    l = x;
    if (u->op == OP_PART) {
        memcpy(l.size, u->size, sizeof l.size);
        return l;
    }
    for (int i = 0; i < x.rank; i++) {
        l.size[i] = x.size[x.rank - 1 - i];
        l.stride[i] = x.stride[x.rank - 1 - i];
    }
    return l;
}
