/* interpreter.h - programs in the form that the GPU kernels read: encode.c writes it and
 * interpreter.cuh runs it. The form does not depend on the element type: a number is the bits of a
 * T in the low bits of 64. Rows of a program that only moves elements hold elements of any type.
 *
 * Every operand except the accumulator is a number or a row of shared memory, which is loaded
 * before the program starts (inputs first, then slots). The most common instructions are steps. Two
 * consecutive steps form one code, because a dispatch costs more than the arithmetic. */
#ifndef INTERPRETER_H
#define INTERPRETER_H

#include "program.h"

/* a = the accumulator, x = a row, s = a number */
enum interp_step {
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

#define CODE_PAIR(first, second) ((first)*STEPS + (second)) /* the first step is not STEP_NONE */
enum interp_code {
    CODE_LOADS = STEPS * STEPS, /* a = s */
    CODE_LOAD,                  /* a = x, as bits that need not be a floating-point number */
    CODE_SAVE,                  /* row x = a */
    CODE_STORE,                 /* output `to` = a */
    CODE_REDUCE, /* adds a, and x for a reduction of two operands, to the reduction of output `to` */
    CODE_MULADD, /* fma(a, x, y); both operands are rows */
    CODE_ADDMUL, /* fma(x, y, a) */
    /* fma(p, q, t): p is x or s, q is y or a, t is y, a or r. Replaces the codes above, except
     * LOADS to REDUCE, in kernels with one vector per thread, because its forms need no branch. Its
     * numbers may be 1, -1 and -0 */
    CODE_LINEAR,
    /* CODE_ROWS + 3 * op + p: a row of ops.def; a is operand p, x and y are the other operands in
     * order. */
    CODE_ROWS = CODE_LINEAR + 16,
    CODE_WRAP = CODE_ROWS + 3 * OP_WRAP /* wraps a into the integer type that s describes: wrap_of */
};

/* How to wrap a into a narrower integer. Shift a 64-bit value up and down by this many bits (32
 * fewer for 32-bit values), signed or unsigned; or test whether it differs from 0. */
enum { WRAP_SHIFT = 63, WRAP_SIGNED = 64, WRAP_BOOL = 128 };

enum { LINEAR_P_IS_X = 1, LINEAR_Q_IS_Y = 2, LINEAR_T_IS_A = 4, LINEAR_T_IS_Y = 8 };

#define INTERP_LENGTH 96
#define INTERP_SHORT  48 /* most programs are not longer; their kernels have a smaller parameter */
/* inputs and slots; with more rows, a multiprocessor could not hold two thread blocks even of
 * small tiles */
#define INTERP_ROWS 24
enum { ROW_NONE = 254, ROW_NUMBER };

typedef struct interp_instruction {
    uint16_t code;
    /* in a pair, x and s belong to the first step, y and r to the second; in other instructions
     * x and y may be the numbers s and r */
    uint8_t x, y;
    uint8_t to, reduction; /* an output or a row; the operator of CODE_REDUCE */
    bool saves;            /* the accumulator is stored to row `to` afterwards */
    uint64_t s, r;
} interp_instruction;

typedef struct interp_program {
    uint8_t length, rows; /* rows of shared memory */
    uint8_t steps;        /* the length when pairs are counted as two: at most INTERP_LENGTH */
    /* the row that the accumulator is loaded from, or ROW_NONE; the output of a final STORE,
     * which is not in `code` */
    uint8_t first, last;
    bool heavy; /* the program uses mathematical functions such as exp */
    interp_instruction code[INTERP_LENGTH];
} interp_program;

/* Encodes p into m. Returns NULL, or the reason why the interpreter does not support p. `num` is the
 * numbers of the program; it may be NULL if only the reason is needed. */
const char *interp_encode(interp_program *m, const program *p, const double *num);

bool op_wraps_to(int type); /* for integer types and bool */

#endif
