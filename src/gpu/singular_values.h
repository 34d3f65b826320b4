/* singular_values.h - singular values of matrices of f32 and c64, from eigenvalues in f64. */
#ifndef SINGULAR_VALUES_H
#define SINGULAR_VALUES_H

#include "cusolver.h"

/* Is this faster than cuSOLVER's iteration for a, which has at least as many rows as columns? */
bool gram_suits(const columns *a);

/* w = the singular values of a in descending order. They are the square roots of the eigenvalues of a^H a.
 * Elements of this product have relative errors of f64. So a singular value has an error of about
 * sqrt(2^-53) = 1.1e-8 of the largest one, less than the rounding of f32. Nothing overflows: squares of f32
 * are far from the limits of f64. */
duet_status gram_singular_values(solver_workspace *b, const columns *a, const columns *w);

#endif
