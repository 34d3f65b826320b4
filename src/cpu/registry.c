/* registry.c - the registry of CPU kernels (cpu_kernels.def) as a table. */
#include "cpu_kernels.h"

const cpu_kernel *const cpu_kernels[KERNELS_ALL] = {
#define CPU_KERNEL(number, entry) [number] = &entry,
#include "cpu_kernels.def"
};
