/* direct_results.h - lets the steps of a graph write results that a plan writes to a temporary and then
 * copies. The plan copies them because a later step may fail, when no destination may be written yet. A
 * graph runs as a whole or not at all. */
#ifndef DIRECT_RESULTS_H
#define DIRECT_RESULTS_H

#include "plan.h"

/* Steps first .. copy - 1 use `to` in place of a temporary, and step `copy` is left out. */
typedef struct direct_result {
    int first, copy;
    int slot; /* of the temporary */
    void *to;
} direct_result;

/* The results of a plan with these addresses, at most one for each destination. Returns their number. */
int direct_results(const plan *p, void *const *data, direct_result found[STATEMENTS]);

#endif
