"""Random numbers. An element depends only on the seed and its index: a seed gives the same numbers on every
device."""

import builtins

from . import _dtypes as dt
from . import _graph as g
from ._array import Array, shape_of
from ._errors import check
from ._library import lib


def _fill(function, shape, seed, dtype, device, *args):
    shape = shape_of(shape)
    where = g.device(device)
    matrix = g.new_matrix(lib.new_shape(dt.check_dtype(dtype).code, len(shape), g.sizes(shape)))
    if where is g.auto:
        check(function(matrix.pointer, seed, *args))
    else:
        with g.on(where):
            check(function(matrix.pointer, seed, *args))
    return Array(g.leaf(matrix, shape, dtype, where))


def uniform(shape, seed, low=0.0, high=1.0, *, dtype=dt.float64, device=None):
    """Uniformly distributed numbers of [low, high)."""
    return _fill(lib.random_uniform, shape, seed, dtype, device, low, high)


def normal(shape, seed, mean=0.0, deviation=1.0, *, dtype=dt.float64, device=None):
    """Normally distributed numbers."""
    return _fill(lib.random_normal, shape, seed, dtype, device, mean, deviation)


def truncated_normal(shape, seed, mean, deviation, low, high, *, dtype=dt.float64, device=None):
    """Normally distributed numbers, restricted to [low, high]."""
    return _fill(lib.random_truncated_normal, shape, seed, dtype, device, mean, deviation, low, high)


def bernoulli(shape, seed, p, *, dtype=dt.bool_, device=None):
    """1 with probability p, else 0."""
    return _fill(lib.random_bernoulli, shape, seed, dtype, device, p)


def integers(shape, seed, low, high, *, dtype=dt.int64, device=None):
    """Uniformly distributed integers from low to high - 1."""
    return _fill(lib.random_integers, shape, seed, dtype, device, low, high)


def sobol(points, dimensions, seed=0, first=0, *, dtype=dt.float64, device=None):
    """Points of the Sobol sequence in [0, 1), from number `first` on: an array [points, dimensions]. A seed
    other than 0 shifts each coordinate at random."""
    return _fill(lib.random_sobol, (points, dimensions), seed, dtype, device, builtins.int(first))


def permutation(n, seed, *, dtype=dt.int64, device=None):
    """0, 1, ..., n - 1 in random order."""
    return _fill(lib.random_permutation, (builtins.int(n),), seed, dtype, device)
