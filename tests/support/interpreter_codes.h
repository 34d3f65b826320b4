/* interpreter_codes.h - what gpu-kernels/interpreter/pack.c writes, run on the host for a few elements: by what interpreter.h and launch.h say of the codes, nothing
 * being shared with interpreter.cuh. */
#ifndef CODES_H
#define CODES_H

#include "launch.h"

#define CODES_ELEMENTS 8
#define CODES_ROW      1024 /* vectors of a row, at most */

/* What a program gives of one element. Values are doubles of the same number; of f64, and of integers, the same bits. */
typedef struct outcome {
    const char *why;                /* NULL, or why no kernel runs it */
    double left;                    /* in the accumulator at the end */
    double out[PROGRAM_OUTPUTS];    /* what was stored, or the accumulator when the reduction came */
    double other[PROGRAM_OUTPUTS];  /* the other operand of a reduction of two */
    int reduction[PROGRAM_OUTPUTS]; /* its op */
    int times[PROGRAM_OUTPUTS];     /* that the output was stored or folded */
} outcome;

/* Packs m for rows of `row` vectors, and runs that over each element: in[input][element]. o: CODES_ELEMENTS of them. */
typedef void codes_runner(const machine_program *m, int row, bool apart, int inputs,
                          double (*in)[CODES_ELEMENTS], outcome *o);
codes_runner codes_f32, codes_f64, codes_i64, codes_u64;

extern bool codes_seen[2][MACHINE_CODE + 1]; /* [apart][code]: it has been run */

#endif
