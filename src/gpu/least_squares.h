/* least_squares.h - least squares by cuSOLVER. */
#ifndef LEAST_SQUARES_H
#define LEAST_SQUARES_H

#include "cusolver.h"

duet_status gpu_least_squares(solver_workspace *b);

#endif
