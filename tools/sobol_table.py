#!/usr/bin/env python3
"""sobol_table.py - writes src/statement/sobol_table.h: the primitive polynomials and the first direction numbers of
Sobol sequences, as S. Joe and F. Kuo published them (Constructing Sobol sequences with better two-dimensional
projections, SIAM J. Sci. Comput. 30, 2008). cuRAND's direction vectors are made of the same numbers. They are read
from the copy that SciPy installs."""

import os
import textwrap

import numpy as np
import scipy.stats

DIMENSIONS = 1024
HEAD = """/* sobol_table.h - Sobol sequences: for each dimension after the first one, a primitive polynomial over GF(2), whose
 * bits are its coefficients, and as many direction numbers as its degree. S. Joe and F. Kuo, Constructing Sobol
 * sequences with better two-dimensional projections, SIAM J. Sci. Comput. 30, 2008. Written by
 * tools/sobol_table.py. */
#ifndef SOBOL_TABLE_H
#define SOBOL_TABLE_H

#include <stdint.h>

#define SOBOL_DIMENSIONS %d

// clang-format off
static const uint16_t sobol_numbers[] = {
%s
};
// clang-format on

#endif
"""


def main():
    table = np.load(os.path.join(os.path.dirname(scipy.stats.__file__), '_sobol_direction_numbers.npz'))
    numbers = []
    for d in range(1, DIMENSIONS):
        polynomial = int(table['poly'][d])
        degree = polynomial.bit_length() - 1
        numbers += [polynomial, *(int(m) for m in table['vinit'][d][:degree])]
    assert max(numbers) < 1 << 16
    text = textwrap.fill(', '.join(map(str, numbers)) + ',', 108, initial_indent='    ', subsequent_indent='    ')
    top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with open(os.path.join(top, 'src', 'statement', 'sobol_table.h'), 'w') as f:
        f.write(HEAD % (DIMENSIONS, text))


main()
