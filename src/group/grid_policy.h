/* grid_policy.h - which products are computed on a grid of ranks. Tests change it before they run
 * statements; it must be equal on all ranks. */
#ifndef GRID_POLICY_H
#define GRID_POLICY_H

#include <stdbool.h>

typedef struct grid_policy {
    bool forced;        /* use a grid even if it is not faster; one operand must be split */
    int rows;           /* of the grid; 0: any number */
    double panel_bytes; /* a rank gathers at most so many bytes of the operands at a time */
    double gathered;    /* a smaller right operand may be gathered as a whole: the number of elements */
} grid_policy;
grid_policy *grid_products(void); /* the current one */

#endif
