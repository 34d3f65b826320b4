/* grid_policy.h - which products are computed on a grid of ranks. Tests change this policy before they run
 * statements. It must be equal on all ranks. */
#ifndef GRID_POLICY_H
#define GRID_POLICY_H

#include <stdbool.h>

typedef struct grid_policy {
    bool forced;        /* use a grid even if it is not faster; one operand must be split */
    int rows;           /* of the grid; 0: any number */
    double panel_bytes; /* the most bytes of the operands that a rank gathers at a time */
    double gathered;    /* a right operand with fewer elements may be gathered as a whole */
} grid_policy;
grid_policy *grid_products(void); /* the current one */

#endif
