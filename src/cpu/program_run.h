/* program_run.h - how a program runs over its operands. Template.
 *
 * A step is contiguous if the rows of every operand are contiguous or one scalar. The interpreter
 * then runs directly over the operands.
 *
 * Otherwise the elements are divided into blocks that fit into the L1 cache: some rows, or a part
 * of one row. For each block, the inputs that are not contiguous are copied into buffers, the
 * interpreter runs over the block, and outputs that are not contiguous are copied out. Copying also
 * converts operands of other types. */
#ifndef PROGRAM_RUN_H
#define PROGRAM_RUN_H

#include "cpu_kernels.h"
#include "interp.h"
#include "threads.h"

#define BLOCK ((int64_t)(4096 / sizeof(T)))

/* How the elements are divided: blocks of `height` rows and `width` columns. Blocks at the end may
 * be smaller. */
typedef struct blocking {
    int64_t rows, columns, height, width, down, across; /* down * across: number of blocks */
    bool is_tiled;                                      /* whether blocks are numbered by columns */
} blocking;

enum access { IN_PLACE, SCALAR, COPIED_ONCE, COPIED };

/* The plan of a step. It is made by the first run and stored in the step. */
typedef struct program_plan {
    program_cache cache;                              /* first member */
    bool contiguous, single_row;                      /* single_row: contiguous, and only one row */
    uint32_t converts_in, converts_out;               /* bit k: operand k has another type than T */
    uint8_t in[PROGRAM_INPUTS], out[PROGRAM_OUTPUTS]; /* enum access */
    blocking blocking;
    int64_t count;
    double seconds;   /* estimated time of one thread */
    interp_code code; /* last member: only its used part is allocated */
} program_plan;

#endif
