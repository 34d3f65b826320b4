/* reduce_rows.h - the rows of ops.def that reduction, over the canonical tree of core/reduction.h. A template. */
#ifndef REDUCE_ROWS_H
#define REDUCE_ROWS_H

#include "reduce_tree.h"

#define INDEX_HIGH ((int64_t)1 << 24) /* of which an index has a high part: a T counts as far */

/* The functions of reduce_tree.h for one row, and what the output is of a state. */
typedef struct reduce_row {
    T start[3];
    uint8_t parts;
    bool place;
    void (*block)(T *root, const T *x, const T *y, int64_t n);
    void (*outputs)(T *root, const strip in[2], int64_t n, int64_t width);
    void (*halve)(T *lane, T *root);
    void (*join)(T *a, const T *b, int64_t n);
    void (*epilogue)(void *to, const T *state, int64_t n);
} reduce_row;
extern const reduce_row NAME(reduce_rows)[];
#define reduce_rows NAME(reduce_rows)

#endif
