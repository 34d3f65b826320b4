"""sparse.py [--seconds S] [--only NAME] [--threads N] - sparse matrices of Duet beside SciPy's, on the CPU.

Results are compared before anything is timed. Both libraries take turns, and a line has the medians of both
and the median of the ratios of neighbouring runs: above 1, Duet is faster. Ten matrices: bands, a stencil,
random ones, power laws, blocks, few long rows, tall and wide ones. R is S with half of the elements moved by
one column. Needs SciPy and the Python package:
DUET_LIBRARY and PYTHONPATH."""

import argparse
import os
import time

import numpy as np
import scipy
import scipy.sparse as sp
import scipy.sparse.linalg as splinalg

import duet


def banded(n, width):
    return sp.diags_array([np.full(n - abs(k), 1.0 + k) for k in range(-width, width + 1)],
                          offsets=range(-width, width + 1), shape=(n, n))


def stencil(n):
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    return sp.kron(line, sp.eye_array(n)) + sp.kron(sp.eye_array(n), line)


def uniform(rows, columns, each, rng):
    row = np.repeat(np.arange(rows), each)
    column = rng.integers(columns, size=row.size)
    return sp.coo_array((rng.normal(size=row.size), (row, column)), (rows, columns))


def power_law(n, each, rng):
    """Few rows and columns have most of the elements."""
    places = np.minimum((n * rng.random((2, n * each)) ** 3).astype(int), n - 1)
    return sp.coo_array((rng.normal(size=n * each), tuple(places)), (n, n))


def blocks(n, size, rng):
    return sp.block_diag([rng.normal(size=(size, size)) for _ in range(n // size)])


def shifted(a, rng):
    """The matrix a with about half of the elements moved by one column to the right."""
    a = a.tocoo()
    row, column = a.coords
    b = sp.coo_array((a.data, (row, (column + rng.integers(2, size=a.nnz)) % a.shape[1])), a.shape)
    return narrow(b.tocsr())


def narrow(a):
    """Sums duplicates and converts the indices to 32 bits."""
    a.sum_duplicates()
    a.indices, a.indptr = a.indices.astype(np.int32), a.indptr.astype(np.int32)
    return a


def matrices(rng):
    return {
        'bands of 3': banded(300_000, 1),
        'bands of 21': banded(60_000, 10),
        'stencil of 5 points': stencil(400),
        'random, 8 in a row': uniform(100_000, 100_000, 8, rng),
        'random, 64 in a row': uniform(20_000, 20_000, 64, rng),
        'power law': power_law(100_000, 8, rng),
        'blocks of 16': blocks(48_000, 16, rng),
        'few long rows': uniform(64, 100_000, 10_000, rng),
        'tall': uniform(400_000, 1_000, 3, rng),
        'wide': uniform(1_000, 400_000, 500, rng),
    }


def cases(a, rng):
    """name: (SciPy, Duet), functions without arguments that return a result on the host."""
    s, m, n = duet.sparse.from_scipy(a), *a.shape
    x, y, wide = rng.normal(size=n), rng.normal(size=m), rng.normal(size=(n, 32))
    dx, dy, dwide = duet.asarray(x), duet.asarray(y), duet.asarray(wide)
    left, right = rng.normal(size=(m, 16)), rng.normal(size=(16, n))
    dleft, dright = duet.asarray(left), duet.asarray(right)
    row, column = a.tocoo().coords
    yield 'S x', lambda: a @ x, lambda: (s @ dx).evaluate()
    yield 'S X, 32 columns', lambda: a @ wide, lambda: (s @ dwide).evaluate()
    yield 'S^T y', lambda: a.T @ y, lambda: s.transposed_matmul(dy).evaluate()
    yield 'exp(S x) + 1', lambda: np.exp(a @ x * 1e-3) + 1, lambda: (duet.exp(s @ dx * 1e-3) + 1).evaluate()
    yield ('A B at the places of S', lambda: np.einsum('ij,ij->i', left[row], right.T[column]),
           lambda: s.sddmm(dleft, dright).evaluate())
    yield 'transpose', lambda: a.T.tocsr(), lambda: s.T
    yield 'S + S', lambda: a + a, lambda: s + s
    r = shifted(a, rng)
    dr = duet.sparse.from_scipy(r)
    yield 'S + R', lambda: a + r, lambda: s + dr
    if a.nnz * a.nnz / n < 5e7:
        t, b = s.T, a.T.tocsr()
        yield 'S S^T', lambda: a @ b, lambda: s @ t
    if m == n:
        low = (1e-3 * sp.tril(a, -1) + sp.eye_array(n)).tocsr()
        dlow = duet.sparse.from_scipy(low)
        yield ('triangular solve', lambda: splinalg.spsolve_triangular(low, y, lower=True),
               lambda: dlow.solve_triangular(dy, lower=True).evaluate())


def numbers(z):
    if isinstance(z, duet.sparse.Sparse):
        z = z.to_scipy()
    if sp.issparse(z):
        z = z.tocsr()
        z.sort_indices()
        return z.indices, z.data
    return None, np.asarray(z)


def check(name, first, second):
    """Both results must be equal but for rounding errors."""
    (p, u), (q, v) = numbers(first()), numbers(second())
    if (p is None) != (q is None) or (p is not None and not np.array_equal(p, q)):
        raise SystemExit(f'{name}: the patterns differ')
    error = np.max(np.abs(u - v), initial=0)
    if not error <= 1e-11 * (1 + np.max(np.abs(u), initial=0)):
        raise SystemExit(f'{name}: the results differ by {error}')


def seconds(f):
    start = time.perf_counter()
    f()
    return time.perf_counter() - start


def compare(first, second, limit):
    """Medians of both, and the median of their ratios."""
    times, end = [], time.perf_counter() + limit
    while len(times) < 5 or (time.perf_counter() < end and len(times) < 500):
        times.append((seconds(first), seconds(second)))
    u, v = np.array(times).T
    return np.median(u), np.median(v), np.median(u / v)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--seconds', type=float, default=0.5)
    parser.add_argument('--only', default='')
    parser.add_argument('--threads', type=int, default=int(os.environ.get('OMP_NUM_THREADS', 1)))
    options = parser.parse_args()
    duet.set_threads(options.threads)
    rng, ratios = np.random.default_rng(1), {}
    print(f'SciPy {scipy.__version__}, Duet with {options.threads} threads; '
          'microseconds, and SciPy / Duet')
    for name, matrix in matrices(rng).items():
        a = narrow(matrix.tocsr())
        print(f'\n{name}: {a.shape[0]} x {a.shape[1]}, {a.nnz} elements')
        for case, first, second in cases(a, rng):
            if options.only and options.only not in case:
                continue
            check(f'{name}, {case}', first, second)
            u, v, ratio = compare(first, second, options.seconds)
            ratios.setdefault(case, []).append(ratio)
            print(f'  {case:<24} {1e6 * u:12.1f} {1e6 * v:12.1f} {ratio:8.2f}', flush=True)
    print('\nratios: least, median, most')
    for case, r in ratios.items():
        print(f'  {case:<24} {min(r):8.2f} {np.median(r):8.2f} {max(r):8.2f}')


if __name__ == '__main__':
    main()
