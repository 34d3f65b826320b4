/* fourier_ops.h - what the CPU has for fourier.h. */
#ifndef TOOLBOX_H
#define TOOLBOX_H

#include "cpu_kernels.h"
#include "fourier.h"

duet_status cpu_program(const step *s, const frame *f, void *with);
duet_status cpu_clear(void *p, size_t bytes, void *with);
void cpu_give(void *p, void *with);

run_function run_shift;

#endif
