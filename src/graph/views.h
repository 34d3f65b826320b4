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
} view_change;

bool is_view_operator(int op);
view_change change_of_node(const node *n);

int view_of_value(graph *g, int v, const view_change *c); /* complex.c: of any value */

/* The elements of real value x, or of interleaved complex elements, after the change. */
int change_view(graph *g, int x, const view_change *c);

/* Formula x of one statement, for the destination *to of its shape. If x computes with a view of all
 * elements of a result, as in relu(reshape(matmul(a, b))), computes it without the view: instead, the
 * destination is viewed. Then the operator and what follows can be one step. Sets *rearranged if the
 * order of elements in the destination is not that of x in memory. */
int move_view_to_destination(graph *g, int x, layout *to, bool *rearranged);

/* pieces.c: x with y behind it along an axis; the result has the type and shape of *like. */
int concatenate(graph *g, const value *like, int axis, int x, int y);

/* The value of element-wise operator v, computed piece by piece if an operand is a concatenation; -1:
 * there is none. */
int distribute_over_pieces(graph *g, const value *v);

#endif
