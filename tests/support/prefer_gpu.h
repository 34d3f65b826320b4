/* prefer_gpu.h - made-up costs, with which the library chooses the GPU wherever a statement can run there. */
#ifndef PREFER_GPU_H
#define PREFER_GPU_H

#include "calibrate.h"
#include "cost.h"

static void prefer_gpu(void)
{
    costs c[COSTED];
    for (int k = 0; k < COSTS; k++)
        for (int i = 0; i < COST_POINTS; i++) {
            c[HOST].seconds[k][i] = 1;
            c[DEFAULT_GPU].seconds[k][i] = 1e-9;
        }
    costs_prepare();
    costs_use(c, "made up");
}

#endif
