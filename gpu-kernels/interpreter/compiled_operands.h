/* compiled_operands.h - the operands of compiled kernels: how they are read, and the argument that says where
 * they are. */
#ifndef COMPILED_OPERANDS_H
#define COMPILED_OPERANDS_H

#include "compiled_kernels.h"
#include "elementwise_operands.h"

/* Sets the members of f that depend on the operands. The caller has set its type, width and numbers.
 * h: the domain; paths: for compiled_args. */
void compiled_form(ptx_request *f, const operands *o, const interp_head *h, interp_path paths[]);

/* Writes a kernel's argument to `to`. num: the numbers of the program; paths: from compiled_form. */
void compiled_args(const ptx_request *f, const operands *o, const interp_head *h, const double *num,
                   const interp_path paths[], void *to);

#endif
