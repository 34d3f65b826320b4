/* structured.h - the structure of formulas. */
#ifndef STRUCTURED_H
#define STRUCTURED_H

#include "expr.h"

/* Properties of structure.h. exact: of every result, whatever the elements. likely: these, and those that
 * hold without rounding errors, infinities and NaN. */
typedef struct formula_properties {
    unsigned exact, likely;
} formula_properties;

/* Of the formula with root n, which is n x n. */
formula_properties properties_of_node(const node *n);

/* For operators that have a faster formula if an operand is structured: sets *made to that formula and
 * returns true. The operands are then consumed. function: the name of the user's call */
bool make_structured(enum op op, const char *function, int arity, const duet_expr e[], const int32_t *attr,
                     const char *site, duet_expr *made);

#endif
