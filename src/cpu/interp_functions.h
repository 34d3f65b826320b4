/* interp_functions.h - functions, the rows of ops.def that round more than once, over memory. A template.
 *
 * Scalar formulas in a loop that the compiler turns into vectors. They stand in a file of their own, where they have all registers. */
#ifndef TILE_LOOPS_H
#define TILE_LOOPS_H

#include "template_prelude.h"

#define BY_LOOP(ulp) ((ulp) > 0.5) /* is a row with this column a function? */

/* x, y and z lie one tile apart from each other; the result goes to x. tile: of a whole tile; tail: of one register. */
typedef struct loops {
    void (*tile)(T *x), (*tail)(T *x);
} loops;
extern const loops NAME(tile_loops)[];
#define tile_loops NAME(tile_loops)

#endif
