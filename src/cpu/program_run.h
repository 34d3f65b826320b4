/* program_run.h - one pass over memory: a program or a fused row, and how its operands lie. A template.
 *
 * Straight: every operand's rows are elements one after the other, or one element for all. The machine then runs along them where they
 * are. Otherwise the elements are cut into blocks, rows or parts of them. For each block, operands that do not lie there one after the
 * other are copied into buffers; then the machine runs over all of it in L1; then results that do not belong one after the other are
 * copied out. Operands of other types than T are converted as they are copied. */
#ifndef PASS_H
#define PASS_H

#include "cpu_kernels.h"
#include "interp.h"
#include "threads.h"

#define BLOCK ((int64_t)(4096 / sizeof(T)))

/* How the elements are cut into blocks: `height` rows of `width` columns. All but those at the ends are full. */
typedef struct cut {
    int64_t rows, columns, height, width, down, across; /* down * across blocks */
    bool tiles;                                         /* blocks follow each other downwards */
} cut;

enum manner {
    IN_PLACE,
    SINGLE,
    STILL,
    COPIED
}; /* SINGLE: one element a block; STILL: the same ones in every block, copied once */

/* What is known of a step before it runs; kept between its runs. */
typedef struct pass {
    run_function *owner;
    bool straight, flat;                              /* flat: straight, and one row */
    uint32_t converts_in, converts_out;               /* operands of other types than T: bits */
    uint8_t in[PROGRAM_INPUTS], out[PROGRAM_OUTPUTS]; /* manners */
    cut cut;
    int64_t count;
    double seconds; /* of one thread */
    code code;      /* last: no more of it is kept than is used */
} pass;

#endif
