/* fourier_ops.h - the operations that core/fourier.h needs, on the CPU. */
#ifndef FOURIER_OPS_H
#define FOURIER_OPS_H

#include "cpu_kernels.h"
#include "fourier.h"

duet_status cpu_program(const step *s, const frame *f, void *with);
duet_status cpu_clear(void *p, size_t bytes, void *with);
void cpu_give(void *p, void *with);

#endif
