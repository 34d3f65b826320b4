/* interp.h - the CPU interpreter of element-wise programs. Template, for one element type and
 * instruction set.
 *
 * interp_compile() translates a program into a chain of handlers. interp_run() runs the chain over
 * rows of elements, one tile of TILE elements (eight registers) at a time. The accumulator travels
 * in registers, as arguments of the handlers. Each handler ends with a tail call of the next one;
 * the last one returns.
 *
 * The remainder of a row is computed in one of three ways: as a tile that overlaps the previous
 * one, as a tile of padded copies, or one register at a time with a mask on the last one. None of
 * them reads or writes beyond an operand.
 *
 * Handlers find operands by index in a table of addresses, `value`. */
#ifndef INTERP_H
#define INTERP_H

#include "backend.h"
#include "generated.h"
#include "template_prelude.h"

/* Indices into the table of addresses. From SLOTS on, the addresses are in memory of interp_run(). */
enum {
    INPUTS,
    NUMBERS = INPUTS + PROGRAM_INPUTS,
    OUTPUTS = NUMBERS + PROGRAM_NUMBERS,
    ROW = OUTPUTS + PROGRAM_OUTPUTS,
    SLOTS,
    SPARES = SLOTS + PROGRAM_SLOTS,
    SCRATCH = SPARES + 4,
    VALUES
};

/* One instruction. `tile` handles eight registers, `tail` one register under a mask. */
typedef struct interp_ins {
    void (*tile)(void), (*tail)(void);
    uint8_t from[3], to; /* indices into the table of addresses */
} interp_ins;

#define INTERP_CODE_LENGTH (8 * PROGRAM_LENGTH + 2)

typedef struct interp_code {
    generated_kernel *generated; /* runs in place of the handlers, or NULL */
    uint16_t length;
    uint8_t slots;                    /* used: SLOTS .. SLOTS + slots - 1 */
    uint8_t inputs, numbers, outputs; /* how many of each are used */
    /* whether it has reductions, and one of kind PLACE1, which needs row numbers */
    bool reductions, counts_rows;
    bool large;       /* a reduction whose inputs do not stay in the caches; set after interp_compile() */
    uint32_t streams; /* bit k: output k has streaming (non-temporal) stores */
    uint32_t scalars; /* bit k: input k is a scalar */
    double seconds;   /* estimated time of one element */
    interp_ins run[INTERP_CODE_LENGTH];
} interp_code;

/* The size of the used part of `c`. Copying these bytes copies the code. */
static inline size_t interp_code_bytes(const interp_code *c)
{
    return offsetof(interp_code, run) + c->length * sizeof(interp_ins);
}

/* Compiles p, whose instructions all have type T. Bit k of `scalars`: input k is one element for
 * the whole run, not a row. Bit k of `streams`: write output k with streaming stores where it is
 * aligned. Set it for large outputs that are not inputs. */
void NAME(interp_compile)(interp_code *c, const program *p, uint32_t scalars, uint32_t streams);
#define interp_compile NAME(interp_compile)

/* Makes machine code for a step with this program, which is about to run for `seconds`, if that is
 * worth it. c was compiled from p. bits: how many low bits of a stored integer the outputs keep. */
void NAME(interp_generate)(interp_code *c, const program *p, generated_use *u, double seconds, int bits);
#define interp_generate NAME(interp_generate)

/* Runs `rows` rows of n elements each. value[v] is the address of the first element of input,
 * number or output v. row_step[v] is the distance in elements from one row to the next; it may be
 * NULL for one row. Only SLOTS and later entries of `value` differ afterwards.
 *
 * A reduction updates lanes: element i of a row updates lane i at value[OUTPUTS + k]. Set
 * row_step[OUTPUTS + k] to 0 to reduce all rows into the same lanes. The caller initialises and
 * joins the lanes. The state of the lane at address l depends on the kind of the row:
 *   FOLD1, FOLD2   one T at l, initially the start value of the row.
 *   MOMENT1        a1 at l, a2 at l + INTERP_PART and a3 at l + 2 * INTERP_PART, initially NaN, 0 and 0.
 *   PLACE1         the value at l, initially anything, and at l + INTERP_PART the number of the row
 *                  where it was found, initially -1. The first of equal values wins, and the first NaN.
 *                  value[ROW] points to the number of the first row. It is advanced by 1 after each row.
 * If states have several parts, n is at most INTERP_PART. */
#define INTERP_PART 128
void NAME(interp_run)(const interp_code *c, T *value[VALUES], int64_t rows, int64_t n,
                      const int64_t row_step[ROW]);
#define interp_run NAME(interp_run)

#endif
