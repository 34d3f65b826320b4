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
    if (value_is_piece(g, v)) return piece_layout(g, v, value_layout(g, u->join));
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

layout piece_layout(const graph *g, int v, layout l)
{
    const value *u = value_at(g, v);
    if (value_at(g, u->join)->op == OP_complex) return plane_layout(l);
    memcpy(l.size, u->size, sizeof l.size);
    return l;
}

int64_t piece_offset(const graph *g, int v, const layout *l)
{
    const value *u = value_at(g, v), *joined = value_at(g, u->join);
    int64_t elements = 0;
    if (joined->op == OP_complex) return joined->arg[1] == v ? (int64_t)dtypes[dtype_part(l->type)].bytes : 0;
    for (int a = 0; a < u->rank; a++) elements += u->start[a] * l->stride[a];
    return elements * (int64_t)dtypes[l->type].bytes;
}

int64_t value_offset(const graph *g, int v)
{
    const value *u = value_at(g, v);
    const layout at = value_layout(g, value_is_piece(g, v) ? u->join : v);
    const int64_t bytes = (int64_t)dtypes[at.type].bytes;
    if (is_view(u->op)) return u->attr.view.offset * bytes + value_offset(g, u->arg[0]);
    if (value_is_plane(g, v)) return value_offset(g, u->arg[0]) + (u->op == OP_imag ? bytes : 0);
    return value_is_piece(g, v) ? piece_offset(g, v, &at) : 0;
}
