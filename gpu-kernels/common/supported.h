/* supported.h - checks by family whether the kernels support a step, and other facts about steps
 * that need no CUDA. */
#ifndef SUPPORTED_H
#define SUPPORTED_H

#include "kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NULL: the kernel supports the step; else the reason why not, a static text. */
typedef const char *support_rule(const step *s);
#define REJECT(condition, reason)                                                                            \
    if (condition) return reason

/* The step must have one output, and all operands of one type. float_unsupported: f32 or f64;
 * arithmetic_unsupported: f32, f64 or i64. */
support_rule float_unsupported, arithmetic_unsupported;

/* The rules of all rows of kernels.def. */
#define GPU_KERNEL(number, unsupported, cost, launch) support_rule unsupported;
#include "kernels.def"

bool conv_has_strides(const step *s); /* other than 1 */
bool product_fits(const step *s);
bool product_is_skinny(const step *s); /* few columns */
bool product_is_thin(const step *s);   /* a row or two */
bool product_is_column(const step *s); /* many rows, and one column */
bool product_has_few_rows(const step *s);
#define CONV_CHANNELS        128 /* most channels of conv2d, whose filters stay in shared memory */
#define WINOGRAD_2D_CHANNELS 5   /* least channels for winograd_2d.cu */
#define WINOGRAD_2D_OUTPUTS  9   /* least outputs for winograd_2d.cu */

#define NORM_BYTES 65536 /* the longest row of layer_norm that is held in shared memory */

duet_dtype step_type(const step *s); /* the element type that the step computes in, or moves */
bool program_moves(const step *s);   /* does its program only load and store, between operands of one type? */
bool program_converts(
    const step *s); /* does it read or write elements of another type than it computes in? */
duet_dtype reduce_type(
    int op,
    duet_dtype type); /* the type of a reduction's result in a program of this type, before conversion */

#ifdef __cplusplus
}
#endif
#endif
