/* matrix_exponential.h - how the exponential of a matrix is computed, on every machine: by a Pade
 * approximant and repeated squaring (Higham, "The scaling and squaring method for the matrix exponential
 * revisited", SIAM J. Matrix Anal. Appl. 26, 2005).
 *
 * The approximant of degree m has an error below that of rounding if the 1-norm of the matrix is at most
 * theta_m. Larger matrices are divided by a power of two first, and the result is squared as often. */
#ifndef MATRIX_EXPONENTIAL_H
#define MATRIX_EXPONENTIAL_H

#include <math.h>
#include <stdbool.h>

/* Coefficient k of the numerator of degree m, times (2m)! / m!: the whole number
 * (2m - k)! / ((m - k)! k!). */
static inline double expm_coefficient(int m, int k)
{
    double c = 1;
    for (int i = m; i > k; i--) c = c * ((double)i * (2 * m - i + 1)) / (m - i + 1);
    return c;
}

/* The degree for a matrix with this 1-norm, and by which power of two it is divided. */
static inline int expm_degree(bool wide, double norm, int *squarings)
{
    static const struct {
        int degree;
        double theta;
    } of[2][5] = { { { 3, 4.258730016922831e-1 }, { 5, 1.880152677804762 }, { 7, 3.925724783138660 } },
                   { { 3, 1.495585217958292e-2 },
                     { 5, 2.539398330063230e-1 },
                     { 7, 9.504178996162932e-1 },
                     { 9, 2.097847961257068 },
                     { 13, 5.371920351148152 } } };
    const int last = wide ? 4 : 2;
    *squarings = 0;
    for (int i = 0; i < last; i++)
        if (norm <= of[wide][i].theta) return of[wide][i].degree;
    if (norm > of[wide][last].theta) (void)frexp(norm / of[wide][last].theta, squarings);
    return of[wide][last].degree;
}

/* The highest even power of the matrix that is computed, divided by 2. Degree 13 needs none above the sixth. */
static inline int expm_powers(int degree) { return degree == 13 ? 3 : (degree - 1) / 2; }

#endif
