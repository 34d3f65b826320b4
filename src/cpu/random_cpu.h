/* random_cpu.h - declarations shared by the files for random numbers. */
#ifndef RANDOM_CPU_H
#define RANDOM_CPU_H

#include "cpu_kernels.h"
#include "random_step.h"
#include "threads.h"

/* Writes a permutation to the output, which has rank 1. Errors: NO_MEMORY. */
duet_status run_permutation(const step *given, const frame *f, const random_params *params);

#endif
