/* step.h - how the operands of a step lie, by its kind, and what it costs. Private to the files of steps. */
#ifndef STEP_H
#define STEP_H

#include "lower.h"

#define STEP_OPERANDS (STEP_OUTPUTS + STEP_INPUTS)

/* The layouts of all operands, outputs first; how many there are. */
int step_operands(step *s, layout *all[STEP_OPERANDS]);

layout layout_of_axes(const layout *l, uint32_t which); /* those named by bits */
void axes_append(layout *l, const layout *more);        /* those of more, behind those of l */

/* step_matmul.c: operands as matrices. Of KERNEL_BATCHED with axes in front, as few as serve all;
 * where those make one product, it becomes OP_matmul. By letters: of an einsum; one that is no
 * product becomes OP_einsum, which no machine has. */
void product_layouts(const lowering *l, const job *j, step *s);
void batched_layouts(const lowering *l, const job *j, step *s);
void lettered_layouts(const lowering *l, const job *j, step *s);

/* step_conv.c: operands of convolutions, pooling and upsampling, as images. */
void image_layouts(const job *j, step *s);

/* step_flops.c: the bytes that a step moves, and its operations. */
void step_estimate(step *s);

#endif
