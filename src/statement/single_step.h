/* single_step.h - statements of one step on matrices, without a formula: random numbers,
 * factorisations. Private to src/statement. */
#ifndef SINGLE_STEP_H
#define SINGLE_STEP_H

#include "statement.h"

#define SINGLE_STEP_INPUTS 2

/* Operand k of step.out is out[k], that of step.in is in[k]. single_step_layouts fills in their
 * layouts and slots. */
typedef struct direct {
    const char *who;                                     /* for error texts: "duet_lu" */
    const char *name[STEP_OUTPUTS + SINGLE_STEP_INPUTS]; /* of the operands, results first */
    duet_matrix *out[STEP_OUTPUTS];
    const duet_matrix *in[SINGLE_STEP_INPUTS];
    const double *num; /* step.nums numbers */
    step s;
} direct;

void single_step_layouts(
    direct *d); /* takes layouts and slots from the matrices; kernel, outs, ins and nums must be set */

/* The operands and their shapes: "q: f32[2,3], r: f32[3]" */
#define SINGLE_STEP_TEXT ((SHAPE_TEXT + 20) * (STEP_OUTPUTS + SINGLE_STEP_INPUTS))
char *single_step_text(const direct *d, char text[SINGLE_STEP_TEXT]);

/* Runs the step, and records it while the thread records, on the device that place_now chooses. If
 * that is AUTO and the GPU has no memory for it, it runs on the CPU. */
duet_status single_step_run(const direct *d);

#endif
