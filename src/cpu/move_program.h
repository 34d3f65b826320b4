/* move_program.h - programs that only move elements: all operands are of one type, whatever it is. */
#ifndef MOVE_H
#define MOVE_H

#include "cpu_kernels.h"
#include <stdbool.h>

bool only_moves(const step *s); /* does it load and store alone, operands of one type, and no numbers? */
duet_status run_move(const step *s, const frame *f);

#endif
