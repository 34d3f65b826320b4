/* single_step.h - statements of one step over matrices as they are, without a formula: random numbers, factorisations. Private to src/plan. */
#ifndef DIRECT_H
#define DIRECT_H

#include "statement.h"

#define DIRECT_INPUTS 2

/* Results first: operand k of step.out is out[k], of step.in in[k]; their layouts and slots are filled in by direct_step. */
typedef struct direct {
    const char *who; /* for texts: "duet_lu" */
    duet_matrix *out[STEP_OUTPUTS];
    const duet_matrix *in[DIRECT_INPUTS];
    const double *num; /* step.nums of them */
    step s;
} direct;

void direct_step(direct *d); /* layouts and slots, of the matrices; kernel, outs, ins and nums are there */

/* The operands and their shapes: "f32[2,3], f32[3]" */
#define DIRECT_TEXT (SHAPE_TEXT * (STEP_OUTPUTS + DIRECT_INPUTS))
char *direct_text(const direct *d, char text[DIRECT_TEXT]);

/* Runs it, or records it as it runs, where place_now says. Where that is AUTO, the CPU takes what the GPU has no memory for. */
duet_status direct_run(const direct *d);

#endif
