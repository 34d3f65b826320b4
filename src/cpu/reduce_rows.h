/* reduce_rows.h - the table of reductions of ops.def, over the canonical tree. Template. */
#ifndef REDUCE_ROWS_H
#define REDUCE_ROWS_H

#include "reduce_tree.h"

#define INDEX_HIGH ((int64_t)1 << 24) /* indices are stored in two parts, since T may be f32 */

/* The functions of reduce_tree.h for one reduction.
 *   group           reduces up to LANES outputs, the elements of each are contiguous
 *   halve           joins the lanes of a block of n elements of one output, after the last update
 *   close           prepares `width` states of lanes with `count` elements for join_lanes
 *   join_lanes      joins states of lanes with these counts of elements, which MOMENT rows need
 *   scaled_outputs  the same as `outputs` of the products of the elements with in[1]. NULL: the
 *                   row never needs scaled elements
 *   results         converts `width` states to outputs, of type T or int64_t. Both may be in one place */
typedef struct reduce_row {
    T start[MOST_PARTS];
    uint8_t parts;
    bool gives_index;
    void (*block)(T *root, const T *x, const T *y, int64_t n);
    void (*outputs)(T *root, const rows_of_outputs in[2], int64_t n, int64_t width);
    void (*group)(T *root, const rows_of_outputs in[2], int64_t n, int64_t width);
    void (*scaled_outputs)(T *root, const rows_of_outputs in[2], int64_t n, int64_t width);
    void (*close)(T *lane, int64_t width, int64_t count); /* NULL: not needed */
    void (*join_lanes)(T *a, const T *b, int64_t n, T a_count, T b_count);
    void (*halve)(T *lane, T *root, int64_t n);
    void (*join)(T *a, const T *b, int64_t n);
    void (*results)(void *to, const T *state, int64_t width, int64_t n);
} reduce_row;
extern const reduce_row NAME(reduce_rows)[];
#define reduce_rows NAME(reduce_rows)

#endif
