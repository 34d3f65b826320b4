/* views.h - operators that select or arrange elements, as changes of layouts. */
#ifndef VIEWS_H
#define VIEWS_H

#include "canonicalize.h"

enum change_kind {
    CHANGE_RESHAPE,
    CHANGE_BROADCAST,
    CHANGE_PERMUTE,
    CHANGE_RANGE,
    CHANGE_WINDOWS,
    CHANGE_DIAGONAL
};
typedef struct view_change {
    enum change_kind kind;
    shape to;                 /* of the result */
    int order[DUET_RANK_MAX]; /* PERMUTE: axis i of the result is axis order[i] */
    int axis;                 /* RANGE */
    int64_t start,
        step; /* RANGE; WINDOWS: stride and dilation; DIAGONAL: the first element is `start` elements along start_axis */
    int start_axis;
    bool in_memory; /* only products read the result: an operand with several users is not computed again */
} view_change;

view_change change_of_node(const node *n);

int view_of_value(graph *g, int v, const view_change *c); /* complex.c: v may be complex */

/* Applies the change to value x, which is real, or has interleaved complex elements. */
int change_view(graph *g, int x, const view_change *c);

/* Replaces each of the values x[0] .. x[count - 1] by the changed one. A value that several of them use is
 * changed once. */
void change_views(graph *g, int count, int *x, const view_change *c);

/* Removes a view of a result, as in relu(reshape(matmul(a, b))), from formula x of a statement. It returns
 * the formula without the view, and changes the layout *to of the destination by the inverse of the view.
 * One step can then compute the product and what follows it. Sets *rearranged if the order of elements in
 * the destination is not that of x in memory. */
int move_view_to_destination(graph *g, int x, layout *to, bool *rearranged);

/* pieces.c: concatenates x and y along an axis. The result has the type and shape of *like. */
int concatenate(graph *g, const value *like, int axis, int x, int y);

/* If an operand of element-wise operator v is a concatenation, returns the concatenation of the results for
 * its pieces. Otherwise returns -1. */
int distribute_over_pieces(graph *g, const value *v);

#endif
