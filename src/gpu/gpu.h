/* gpu.h - the machine that runs steps on a CUDA card; where the library was built without CUDA, one that is always absent. */
#ifndef GPU_H
#define GPU_H

#include "backend.h"

extern const machine gpu_machine;

#endif
