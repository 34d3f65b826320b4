/* interpreter_codes.h - runs on the host, for a few elements, what gpu-kernels/interpreter/pack.c
 * writes. It follows the descriptions in interpreter.h and shares nothing with interpreter.cuh. */
#ifndef INTERPRETER_CODES_H
#define INTERPRETER_CODES_H

#include "interpreter_kernels.h"

#define CODES_ELEMENTS 8
#define CODES_ROW      1024 /* vectors of a row, at most */

/* The results of a program for one element, as doubles of the same value; for f64 and integers, of
 * the same bits. */
typedef struct outcome {
    const char *why;                /* NULL, or why no kernel supports the program */
    double left;                    /* the accumulator at the end */
    double out[PROGRAM_OUTPUTS];    /* the stored value, or the accumulator at the reduction */
    double other[PROGRAM_OUTPUTS];  /* the other operand of a reduction of two operands */
    int reduction[PROGRAM_OUTPUTS]; /* its operator */
    int times[PROGRAM_OUTPUTS];     /* how many times the output was stored or reduced */
} outcome;

/* Packs m for rows of `row` vectors and runs it for each element: in[input][element]. o:
 * CODES_ELEMENTS outcomes. */
typedef void codes_runner(const interp_program *m, int row, bool apart, int inputs,
                          double (*in)[CODES_ELEMENTS], outcome *o);
codes_runner codes_f32, codes_f64, codes_i64, codes_u64;

extern bool codes_seen[2][INTERP_CODE + 1]; /* [apart][code]: the code has been executed */

#endif
