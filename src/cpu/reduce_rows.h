/* reduce_rows.h - the table of reductions of ops.def, over the canonical tree. Template. */
#ifndef REDUCE_ROWS_H
#define REDUCE_ROWS_H

#include "reduce_tree.h"

#define INDEX_HIGH ((int64_t)1 << 24) /* indices are stored in two parts, since T may be f32 */

/* The functions of reduce_tree.h for one reduction, and `result`, which converts a state to the
 * output. */
typedef struct reduce_row {
    T start[3];
    uint8_t parts;
    bool gives_index;
    void (*block)(T *root, const T *x, const T *y, int64_t n);
    void (*outputs)(T *root, const rows_of_outputs in[2], int64_t n, int64_t width);
    void (*halve)(T *lane, T *root);
    void (*join)(T *a, const T *b, int64_t n);
    void (*result)(void *to, const T *state, int64_t n);
} reduce_row;
extern const reduce_row NAME(reduce_rows)[];
#define reduce_rows NAME(reduce_rows)

#endif
