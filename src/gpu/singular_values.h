/* singular_values.h - singular values without vectors. */
#ifndef SINGULAR_VALUES_H
#define SINGULAR_VALUES_H

#include "cusolver.h"

/* w = the singular values of a in descending order. a must have at least as many rows as columns; it is
 * overwritten.
 *
 * Those of f32 and c64 matrices that are not small are the square roots of the eigenvalues of a^H a, in f64.
 * Rounding in f64 changes an eigenvalue by about 2^-53 of the largest one. So it changes a singular value by
 * about sqrt(2^-53) = 1.1e-8 of the largest one, less than half an ulp of f32. Nothing overflows: squares of
 * f32 are far from the limits of f64. Otherwise, and if there is no memory for this, cuSOLVER's QR iteration
 * computes them in place. */
duet_status singular_values(solver_workspace *b, const columns *a, const columns *w);

#endif
