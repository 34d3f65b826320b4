/* interp.h - the expression machine: a program as a chain of handlers that pass eight registers to each other. A template.
 *
 * tile_make translates a program once. tile_run then goes along rows of elements, a tile of TILE at a time: the accumulator travels
 * in registers as the handlers' arguments, each handler ends in a call of the next one, and the last returns. What is left of a row
 * is a tile again, that overlaps the last one or is made of copies, or goes register by register, the last one under a mask: no byte
 * beyond an operand is touched.
 *
 * A value is an index into a table of addresses. */
#ifndef TILE_H
#define TILE_H

#include "backend.h"
#include "template_prelude.h"

enum {
    INPUTS,
    NUMBERS = INPUTS + PROGRAM_INPUTS,
    OUTPUTS = NUMBERS + PROGRAM_NUMBERS,
    ROW = OUTPUTS + PROGRAM_OUTPUTS,
    SLOTS, /* and the rest: tile_run's own */
    SPARES = SLOTS + PROGRAM_SLOTS,
    SCRATCH = SPARES + 4,
    VALUES
};

/* One instruction. tile and tail are handlers of eight registers and of one. */
typedef struct ins {
    void (*tile)(void), (*tail)(void);
    uint8_t from[3], to; /* values */
} ins;

#define CODE_LENGTH (8 * PROGRAM_LENGTH + 2)

typedef struct code {
    uint16_t length;
    uint8_t slots;                    /* SLOTS .. SLOTS + slots - 1 are used */
    uint8_t inputs, numbers, outputs; /* so are these */
    bool reductions, places;          /* it has reductions; of kind PLACE1 */
    bool streams;                     /* it stores past the caches */
    uint32_t singles;                 /* inputs of one element for all */
    double seconds;                   /* rough, of one element */
    ins run[CODE_LENGTH];
} code;

/* How much of a code is in use: it may be copied by this. */
static inline size_t code_bytes(const code *c) { return offsetof(code, run) + c->length * sizeof(ins); }

/* p, all of whose instructions are of type T. singles: bit k says that input k is one element for all, not a row. streams: bit k says
 * that output k is stored past the caches, where its address allows it: for large ones that are not inputs. */
void NAME(tile_make)(code *c, const program *p, uint32_t singles, uint32_t streams);
#define tile_make NAME(tile_make)

/* A row of fused.def: operands in[0 .. 2], numbers 0 and 1, output 0. */
void NAME(tile_make_fused)(code *c, int kernel, int ins, uint32_t singles);
#define tile_make_fused NAME(tile_make_fused)

/* Runs `rows` rows of n elements each. value[v] is the first element of input, number or output v, for those that there are; down[v]
 * how many elements further each row is than the last; down may be NULL where there is but one row. The table comes back as it was,
 * but for the machine's own values.
 *
 * A reduction updates lanes: element i of each row goes into lane i at value[OUTPUTS + k], so down[OUTPUTS + k] is 0 where rows reduction into
 * the same lanes. Nobody starts or joins them here. A lane of a row of kind
 *   FOLD1, FOLD2   is one T, started as the row's start;
 *   MOMENT1        is a0, a1 and a2 at l, l + TILE_PART and l + 2 * TILE_PART, started as 0;
 *   PLACE1         is the value at l, and at l + TILE_PART the number of the row where it was found, started as anything and -1.
 *                  Ties stay with the first row, and so does NaN. value[ROW] is the number of the first row, the caller's; the rows
 *                  count on from it, by 1, and it is left at that of the row after the last. Only PLACE1 needs it.
 * With parts, n is at most TILE_PART. */
#define TILE_PART 128
void NAME(tile_run)(const code *c, T *value[VALUES], int64_t rows, int64_t n, const int64_t down[ROW]);
#define tile_run NAME(tile_run)

#endif
