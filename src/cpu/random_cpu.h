/* random_cpu.h - between the parts of random numbers on the CPU. */
#ifndef RANDOM_CPU_H
#define RANDOM_CPU_H

#include "cpu_kernels.h"
#include "random_step.h"
#include "threads.h"

/* A permutation into out, of rank 1. Errors: NO_MEMORY. */
duet_status run_permutation(const step *given, const frame *f, const random_params *l);

#endif
