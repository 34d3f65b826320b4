/* move_program.h - programs that only copy elements, in any type. The interpreter does not support
 * all types. */
#ifndef MOVE_PROGRAM_H
#define MOVE_PROGRAM_H

#include "cpu_kernels.h"
#include <stdbool.h>

bool is_move_program(
    const step *s); /* Are there only loads and stores of inputs, and operands of one type? */
duet_status run_move_program(const step *s, const frame *f);

#endif
