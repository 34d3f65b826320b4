/* index_list.h - NumPy's basic indexing: finds the elements that a list of index entries selects. */
#ifndef INDEX_LIST_H
#define INDEX_LIST_H

#include "shape.h"

/* The elements start, start + step, ... of an axis are selected. */
typedef struct axis_range {
    int64_t start, step, count;
} axis_range;

typedef struct index_list {
    axis_range range[DUET_RANK_MAX]; /* of each axis of the array */
    int rank;                        /* of the result */
    int axis[DUET_RANK_MAX]; /* for each axis of the result: the axis of the array, or -1 if it is new */
} index_list;

#define INDEX_NEW_AXIS (-1)

/* Finds the elements that the entries select of an array with this shape.
 * Errors    BAD_ARGUMENT, BAD_SHAPE. The text begins with the rule; put the call in front. */
duet_status index_list_read(const shape *s, int count, const duet_index_entry *index, index_list *l);

/* Converts start:stop:step of an axis with `size` elements by the rules of Python. `axis` is for the text.
 * Errors    BAD_ARGUMENT (a step of 0) */
duet_status axis_range_read(int axis, int64_t size, int64_t start, int64_t stop, int64_t step, axis_range *r);

/* Indices of several axes, as in duet_gather_nd, become positions of elements. One that is out of
 * bounds becomes this position, which is out of bounds of all axes. f64 represents it exactly, because
 * an inexact conversion would raise a floating-point exception. */
#define POSITION_OUT_OF_BOUNDS (-(INT64_C(1) << 62))

/* "duet_take: index 5, element 1 of the indices, is out of bounds; the size of the axis is 3" */
#define BAD_INDEX_TEXT 200
char *bad_index_text(char text[BAD_INDEX_TEXT], const char *name, int64_t index, int64_t element,
                     int64_t size);

/* Does the range select all elements in order? */
static inline bool axis_range_is_all(const axis_range *r, int64_t size)
{
    return r->start == 0 && r->count == size && (r->step == 1 || size <= 1);
}

#endif
