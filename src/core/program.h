/* program.h - the common language of the expression machines: one pass over memory as a short list of instructions.
 *
 * A program is run for every element of its domain. It has one accumulator. An instruction reads its operands (the accumulator,
 * inputs, numbers, slots), applies an operator of kind map and leaves the result in the accumulator; LOAD, SAVE and STORE move it. A
 * slot is written before it is read. A STORE to an output that is an input too comes after the last read of that input.
 *
 * All instructions of a program are of one type, which it computes in: f32, f64, i64 or u64. Its inputs and outputs may be of any type but the
 * complex ones: what an instruction reads of an input is converted to the type of the program, and a STORE, or the result of a reduction,
 * converts to the output's type, by the rules of docs/semantics.md. Numbers of a program of integers are integers: their bits lie in frame.num.
 * Arithmetic of i64 and u64 wraps; of narrower integers WRAP makes it so, after each operator whose result may not be of the type.
 * A program that only moves (LOAD and STORE between operands of one type) may be of any type.
 *
 * An operator of kind reduction takes its operands into a reduction: the next element of output arg[2].index, over the domain's last
 * step.inner axes, in the order of core/reduction.h. It leaves the accumulator as it is. A program stores all its outputs or reductions all
 * of them, each once. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "ops.h"
#include <stdbool.h>

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
    source arg
        [3]; /* as many as op has operands; of SAVE and STORE, arg[0].index is the slot or output; of reductions, arg[2].index */
} instruction;

typedef struct program {
    uint8_t length, inputs, numbers, slots, outputs;
    bool reductions; /* its outputs are reductions */
    instruction code[PROGRAM_LENGTH];
} program;

#endif
