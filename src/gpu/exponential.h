/* exponential.h - the exponential of a matrix. */
#ifndef EXPONENTIAL_H
#define EXPONENTIAL_H

#include "cusolver.h"

duet_status gpu_exponential(solver_workspace *b);

#endif
