/* program.h - the instructions of the expression interpreters. A program computes an
 * element-wise expression or reductions in one pass over memory.
 *
 * A program runs for every element of its domain. It has one accumulator. An instruction reads its
 * operands (the accumulator, inputs, numbers, slots), applies an operator of kind map and leaves
 * the result in the accumulator. LOAD, SAVE and STORE move values. A slot is written before it is
 * read. If an output is also an input, its STORE comes after the last read of the input.
 *
 * All instructions of a program compute in one type: f32, f64, i64 or u64. Inputs and outputs may
 * be of any type that is not complex. An input is converted to the type of the program when it is
 * read. A STORE, or the result of a reduction, converts to the type of the output.
 * docs/semantics.md has the rules. Numbers of an integer program are integers, whose bits are in
 * frame.num. Arithmetic of i64 and u64 wraps. For narrower integers, a WRAP follows each operator
 * whose result may be out of range. A program that only moves elements (LOAD and STORE between
 * operands of one type) may be of any type.
 *
 * An operator of kind reduction adds its operands to a reduction: to the next element of output
 * arg[2].index, over the last step.inner axes of the domain, in the order of core/reduce_order.h.
 * It does not change the accumulator. A program either stores all its outputs or reduces all of
 * them, each once. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "ops.h"
#include <stdbool.h>
#include <stddef.h>

#define PROGRAM_LENGTH  96
#define PROGRAM_INPUTS  16
#define PROGRAM_NUMBERS 40
#define PROGRAM_SLOTS   16
#define PROGRAM_OUTPUTS 4

enum source_kind { FROM_ACC, FROM_INPUT, FROM_NUMBER, FROM_SLOT };

typedef struct source {
    uint8_t kind, index;
} source;

typedef struct instruction {
    uint8_t op;   /* OP_ of a map or reduction row, OP_LOAD, OP_SAVE or OP_STORE */
    uint8_t type; /* duet_dtype that the program computes in */
    /* The operands of op. For SAVE and STORE, arg[0].index is the slot or output; for reductions,
     * arg[2].index is the output. */
    source arg[3];
} instruction;

typedef struct program {
    uint8_t length, inputs, numbers, slots, outputs;
    bool reductions; /* its outputs are reductions */
    instruction code[PROGRAM_LENGTH];
} program;

/* The bytes of a program that are in use; equal programs have these in common. */
static inline size_t program_bytes(const program *p)
{
    return offsetof(program, code) + p->length * sizeof *p->code;
}

#endif
