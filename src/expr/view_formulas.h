/* view_formulas.h - the options of operators that select or arrange elements, as the functions of
 * the API receive them. Private to src/expr. */
#ifndef VIEW_FORMULAS_H
#define VIEW_FORMULAS_H

#include "arena.h"
#include "index_list.h"

/* Sizes from the user, or the sizes that duet_index selects after it applied the ranges. If they are
 * invalid, `failed` points to the status, and the thread has the text. */
typedef struct sizes_given {
    int rank;
    const int64_t *size;
    const duet_status *failed; /* NULL: none */
} sizes_given;

typedef struct order_given {
    int rank;
    const int *order;
} order_given;

typedef struct range_given {
    int axis;
    int64_t start, stop, step;
} range_given;

#endif
