/* layout.c - computes the size, strides and element type of each value of a graph. */
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
    l = (layout){ .type = value_layout(g, u->arg[0]).type, .rank = u->rank };
    memcpy(l.size, u->size, sizeof l.size);
    memcpy(l.stride, u->attr.view.stride, sizeof l.stride);
    return l;
}

int64_t value_offset(const graph *g, int v)
{
    const value *u = value_at(g, v);
    if (is_view(u->op))
        return u->attr.view.offset * (int64_t)dtypes[value_layout(g, v).type].bytes +
               value_offset(g, u->arg[0]);
    return value_is_plane(g, v) ? value_offset(g, u->arg[0]) : 0;
}
