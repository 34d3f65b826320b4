/* compiled_operands.h - the operands of compiled kernels: how they are read, and the argument that says where
 * they are. */
#ifndef COMPILED_OPERANDS_H
#define COMPILED_OPERANDS_H

#include "compiled_kernels.h"
#include "elementwise_operands.h"

/* Sets everything in f that depends on the operands, except addresses and numbers; its type and width are set
 * before.
 * h: the domain, as the interpreter's. */
void compiled_form(ptx_request *f, const operands *o, const interp_head *h, interp_path paths[]);

/* Writes a kernel's argument to `to`. num: the numbers of the program; paths: what compiled_form set. */
void compiled_args(const ptx_request *f, const operands *o, const interp_head *h, const double *num,
                   const interp_path paths[], void *to);

#endif
