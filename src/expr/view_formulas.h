/* view_formulas.h - the options of operators that select or arrange elements, as the functions of
 * the API receive them. Private to src/expr. */
#ifndef VIEW_FORMULAS_H
#define VIEW_FORMULAS_H

#include "arena.h"
#include "index_list.h"

/* Sizes as given; or the sizes that `index` selects, whose ranges are applied already; or, if they
 * could not be read, the status, whose text the thread has. */
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
