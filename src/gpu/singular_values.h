/* singular_values.h - singular values of matrices of f32 and c64, from eigenvalues in f64. */
#ifndef SINGULAR_VALUES_H
#define SINGULAR_VALUES_H

#include "cusolver.h"

/* Can gram_singular_values compute the singular values of a, and is it faster than cuSOLVER's QR iteration?
 * a must have at least as many rows as columns. */
bool gram_suits(const columns *a);

/* w = the singular values of a in descending order. They are the square roots of the eigenvalues of a^H a.
 * Rounding in f64 changes an eigenvalue by about 2^-53 of the largest one. So it changes a singular value
 * by about sqrt(2^-53) = 1.1e-8 of the largest one, less than half an ulp of f32. Nothing overflows:
 * squares of f32 are far from the limits of f64. */
duet_status gram_singular_values(solver_workspace *b, const columns *a, const columns *w);

#endif
