/* compiled_reduce.h - launches the compiled kernels of reductions. Such a kernel computes the elements of a
 * program, and reduces them.
 * nvcc compiles the kernels of compiled_reduce.cu to PTX with placeholders for elements.
 * codegen/ptx_template.c replaces each placeholder by code that computes these elements of the program. */
#ifndef COMPILED_REDUCE_H
#define COMPILED_REDUCE_H

#include "compiled_kernels.h"
#include "program_reduce.h"

/* x and y of `plain` are not used. A kernel takes as much of `operands` as it needs. */
typedef struct compiled_reduce_args {
    reduce_args plain;
    ptx_args operands;
} compiled_reduce_args;
#define COMPILED_REDUCE_HEAD ((int)offsetof(compiled_reduce_args, operands))

/* Launches a reduction by a compiled kernel. Returns false if there is none, or if the driver refuses; then
 * the interpreter runs.
 * axes   those of the step: outer, inner, n, outputs, size and stride
 * form   FEW for at most REDUCE_FEW elements; COLUMNS and FEW_ACROSS where outputs, and not the elements of
 *        one output, lie next to each other */
bool compiled_reduce_launch(const step *s, const double *num, const program_reduce_axes *axes,
                            enum ptx_form form, const frame *f, const workspace *w, cudaStream_t q);

#endif
