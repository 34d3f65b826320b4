/* interp_functions.h - functions: the element-wise operators that round more than once, such as
 * exp. Template.
 *
 * Each function is a loop over memory, compiled from the scalar formula of ops.def. The loops are
 * in a separate file so that the compiler can use all registers: interp_tmpl.c reserves some. */
#ifndef INTERP_FUNCTIONS_H
#define INTERP_FUNCTIONS_H

#include "template_prelude.h"

#define BY_LOOP(ulp) ((ulp) > 0.5) /* Is the operator a function? `ulp` is its error bound in ops.def. */

/* Operands x, y and z are TILE elements apart; the result replaces x. `tile` computes TILE
 * elements, `tail` the elements of one register. */
typedef struct interp_function {
    void (*tile)(T *x), (*tail)(T *x);
} interp_function;
extern const interp_function NAME(interp_functions)[];
#define interp_functions NAME(interp_functions)

#endif
