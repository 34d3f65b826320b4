/* linalg_on_host.h - runs a step of linear algebra on the CPU, if the GPU has no result. */
#ifndef LINALG_ON_HOST_H
#define LINALG_ON_HOST_H

#include "cusolver.h"

/* Releases what the step has taken, and computes the results anew. Waits for the GPU. If the CPU
 * cannot run the step, fails for the reason `why` (linalg_failed). */
duet_status gpu_linear_on_host(solver_workspace *b, enum linalg_failed why, int64_t place);

#endif
