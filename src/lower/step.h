/* step.h - the layouts of the operands of each kind of step, and its cost. Private to step*.c. */
#ifndef STEP_H
#define STEP_H

#include "lower.h"

#define STEP_OPERANDS (STEP_OUTPUTS + STEP_INPUTS)

/* Sets all[] to the layouts of all operands, outputs first, and returns their number. */
int step_operands(step *s, layout *all[STEP_OPERANDS]);

layout layout_of_axes(const layout *l, uint32_t which); /* the axes whose bits are set in `which` */
void axes_append(layout *l, const layout *more);        /* appends the axes of `more` to l */

/* step_matmul.c: operands as matrices (product_layouts), as batches of matrices (batched_layouts), or
 * of an einsum (lettered_layouts). A batch that one product can compute becomes OP_matmul. An einsum
 * that is not a product becomes OP_einsum, which no machine supports. */
void product_layouts(const lowering *l, const job *j, step *s);
void batched_layouts(const lowering *l, const job *j, step *s);
void lettered_layouts(const lowering *l, const job *j, step *s);

/* step_conv.c: operands of convolutions, pooling and upsampling, as images. */
void image_layouts(const job *j, step *s);

/* step_flops.c: sets the bytes that a step reads and writes, and the number of its operations. */
void step_estimate(step *s);

#endif
