/* gpu.h - the machine that runs steps on CUDA devices. Without CUDA in the build it is always
 * absent. */
#ifndef GPU_H
#define GPU_H

#include "backend.h"

extern const machine gpu_machine;

#endif
