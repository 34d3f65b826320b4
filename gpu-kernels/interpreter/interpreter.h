/* interpreter.h - programs as the kernels of the expression machine read them: what encode.c writes and interpreter.cuh runs. Of no element
 * type: numbers are the bits of a T, in the low ones of 64. A program that moves may be of any type; rows are then of that.
 *
 * Every operand but the accumulator is a row of shared memory, staged before the program starts (inputs, then slots), or a number. The
 * commonest instructions are steps, and two steps in a row are one code: dispatch costs more than arithmetic. */
#ifndef MACHINE_H
#define MACHINE_H

#include "program.h"

/* a = the accumulator, x = a row, s = a number */
enum machine_step {
    STEP_NONE,
    STEP_LOAD,   /* x */
    STEP_ADD,    /* a + x */
    STEP_SUB,    /* a - x */
    STEP_RSUB,   /* x - a */
    STEP_MUL,    /* a * x */
    STEP_AXPY,   /* fma(s, x, a) */
    STEP_SCALE,  /* fma(a, s, x) */
    STEP_HORNER, /* fma(a, x, s) */
    STEP_ADDS,   /* a + s */
    STEP_MULS,   /* a * s */
    STEP_RSUBS,  /* s - a */
    STEPS
};

#define CODE_PAIR(first, second) ((first)*STEPS + (second)) /* the first is not STEP_NONE */
enum machine_code {
    CODE_LOADS = STEPS * STEPS, /* a = s */
    CODE_LOAD,                  /* a = x: bits that are no floating-point number */
    CODE_SAVE,                  /* row x = a */
    CODE_STORE,                 /* output `to` = a */
    CODE_REDUCE, /* a, and x of a reduction of two operands, into the reduction of output `to` */
    CODE_MULADD, /* fma(a, x, y), both rows */
    CODE_ADDMUL, /* fma(x, y, a) */
    CODE_LINEAR, /* fma(p, q, t): p is x or s, q is y or a, t is y, a or r; in the place of what is above, but for LOADS to
                                   REDUCE, where threads have one vector: a form needs no jump. Its numbers may be 1, -1 and -0 */
    CODE_ROWS =
        CODE_LINEAR +
        16, /* CODE_ROWS + 3 * op + p: a row of ops.def, a its operand p, x and y the others in order */
    CODE_WRAP = CODE_ROWS + 3 * OP_WRAP /* a within the integer type that s tells: wrap_of */
};

/* A narrower integer: a of 64 bits, or of 32 by 32 fewer, shifted up and down by so many bits, signed or not; or whether it differs from 0. */
enum { WRAP_SHIFT = 63, WRAP_SIGNED = 64, WRAP_BOOL = 128 };

enum { LINEAR_P_IS_X = 1, LINEAR_Q_IS_Y = 2, LINEAR_T_IS_A = 4, LINEAR_T_IS_Y = 8 };

#define MACHINE_LENGTH 96
#define MACHINE_SHORT  48 /* most programs are no longer: their kernels have less to be sent */
#define MACHINE_ROWS                                                                                         \
    24 /* inputs and slots: with more, not even small tiles would fit a multiprocessor twice */
enum { ROW_NONE = 254, ROW_NUMBER };

typedef struct machine_instruction {
    uint16_t code;
    uint8_t x,
        y; /* of a pair, x and s belong to the first step, y and r to the second; of others, x and y may be the numbers s and r */
    uint8_t to, reduction; /* an output, or a row; the op of CODE_REDUCE */
    bool saves;            /* the accumulator goes into row `to` afterwards */
    uint64_t s, r;
} machine_instruction;

typedef struct machine_program {
    uint8_t length, rows; /* rows: of shared memory */
    uint8_t steps;        /* the length when pairs are taken apart: MACHINE_LENGTH at most */
    uint8_t first,
        last; /* the row that the accumulator begins with, or ROW_NONE; the output of a STORE at the end, not in `code` */
    bool heavy; /* it has functions: exp and the like */
    machine_instruction code[MACHINE_LENGTH];
} machine_program;

/* NULL, or why p is beyond the machine. num: its numbers, or NULL to ask only. */
const char *machine_encode(machine_program *m, const program *p, const double *num);

bool op_wraps_to(int type); /* of integers, or bool */

#endif
