"""Searching, sorting and sets of the array API."""

import builtins
import ctypes
from collections import namedtuple

from . import _dtypes as dt
from ._array import (
    Array,
    _scalars,
    apply,
    asarray,
    axis_of,
    c_formula,
    cast,
    concat,
    from_matrix,
    node_of,
    reshape,
)
from ._errors import TypeError, ValueError
from ._library import lib


def sort(x, /, *, axis=-1, descending=False, stable=True):
    """x sorted along an axis, NaN last."""
    axis = axis_of(axis, node_of(x).ndim)
    if not descending:
        return apply(lib.sort, x, attrs=(axis,))
    return apply(lib.flip, apply(lib.sort, x, attrs=(axis,)), attrs=(axis,))


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    """The indices that sort x along an axis."""
    axis = axis_of(axis, node_of(x).ndim)
    if not descending:
        return apply(lib.argsort, x, attrs=(axis,))
    # In reverse twice, so that equal elements keep their order.
    order = apply(lib.argsort, apply(lib.flip, x, attrs=(axis,)), attrs=(axis,))
    return (x.shape[axis] - 1) - apply(lib.flip, order, attrs=(axis,))


def nonzero(x, /):
    """The indices of the elements that are not 0, one array for each axis."""
    if node_of(x).ndim == 0:
        raise ValueError('nonzero needs an array of at least one axis')
    rows = from_matrix(lib.nonzero(c_formula(x)), x.device)
    return tuple([rows[:, k] for k in range(x.ndim)])


def searchsorted(x1, x2, /, *, side='left', sorter=None):
    """For each element of x2, the index at which the sorted x1 takes it."""
    node_of(x1)
    if side not in ('left', 'right'):
        raise ValueError(f"side must be 'left' or 'right', and not {side!r}")
    if x2.__class__ is not Array:
        if not isinstance(x2, _scalars):
            raise TypeError(f'x2 must be an array of Duet or a number, and not {type(x2).__name__}')
        x2 = asarray(x2, dtype=x1.dtype)
    if sorter is not None:
        x1 = apply(lib.take, x1, sorter, attrs=(0,))
    return apply(lib.searchsorted, x1, x2, attrs=(0 if side == 'left' else 1,))


def isin(x1, x2, /, *, invert=False):
    """Whether each element of x1 is one of those of x2."""
    if x1.__class__ is not Array:
        x1 = asarray(x1, dtype=x2.dtype)
    if x2.__class__ is not Array:
        x2 = asarray(x2, dtype=x1.dtype)
    if not x2.size or not x1.size:
        from ._creation import full

        return full(x1.shape, builtins.bool(invert), dtype=dt.bool_)
    made = apply(lib.isin, x1, x2)
    return ~made if invert else made


# ---- sets ----------------------------------------------------------------------------------------

_All = namedtuple('unique_all_result', 'values indices inverse_indices counts')
_Counts = namedtuple('unique_counts_result', 'values counts')
_Inverse = namedtuple('unique_inverse_result', 'values inverse_indices')


def _unique_real(x):
    """The distinct values of a vector of real numbers, how often each occurs, and the index of each element.
    All NaNs are one value."""
    counts, inverse = ctypes.c_void_p(), ctypes.c_void_p()
    values = lib.unique(c_formula(x), ctypes.byref(counts), ctypes.byref(inverse))
    values = from_matrix(values, x.device)
    return values, from_matrix(counts.value, x.device), from_matrix(inverse.value, x.device)


def _unique(x):
    """Values, counts and inverse of a vector. Every NaN is a value of its own."""
    from ._creation import arange
    from ._reduce import cumulative_sum, sum

    if x.dtype.kind == 'c':
        # The pair of the numbers of both parts is one number.
        real, imag = [_unique_real(_without_nan(apply(op, x))) for op in (lib.real, lib.imag)]
        code = real[2] * builtins.max(imag[0].size, 1) + imag[2]
        _, counts, inverse = _unique_real(code)
        values = apply(lib.take, x, _first(inverse, counts), attrs=(0,))
    else:
        values, counts, inverse = _unique_real(x)
    if x.dtype.kind not in 'fc':
        return values, counts, inverse
    bad = apply(lib.isnan, x)
    n = builtins.int(sum(cast(bad, dt.int64)))
    if n == 0 or (n == 1 and x.dtype.kind != 'c'):
        return values, counts, inverse
    # NaNs are last, one by one, in the order in which they occur. The others are numbered anew.
    good = ~bad
    if x.dtype.kind == 'c':
        values, counts, known = _unique(_select(x, good))
    else:
        values, counts, known = _unique_real(_select(x, good))
    m = values.size
    order = cumulative_sum(cast(bad, dt.int64)) - 1 + m
    place = cumulative_sum(cast(good, dt.int64)) - 1
    if known.size:
        numbered = apply(lib.take, known, apply(lib.where, bad, 0, place), attrs=(0,))
        inverse = apply(lib.where, bad, order, numbered)
    else:
        inverse = order
    values = concat([values, _select(x, bad)], 0)
    counts = concat([counts, arange(n) * 0 + 1], 0)
    return values, counts, inverse


def _without_nan(x):
    """Zeros of both signs become one, and NaN stays one value."""
    return x + 0.0


def _select(x, mask):
    return from_matrix(lib.masked(c_formula(x), c_formula(mask)), x.device)


def _first(inverse, counts):
    """For each value, the index of its first element."""
    from ._reduce import cumulative_sum

    order = apply(lib.argsort, inverse, attrs=(0,))
    starts = cumulative_sum(counts) - counts
    return apply(lib.take, order, starts, attrs=(0,)) if counts.size else counts


def _flat(x):
    node_of(x)
    return reshape(x, (x.size,))


def unique_all(x, /):
    """The distinct values in ascending order, the index of the first element with each, the index in the
    values for each element of x, and how often each value occurs."""
    flat = _flat(x)
    if not x.size:
        from ._creation import zeros

        none = zeros((0,), dtype=dt.int64)
        return _All(flat, none, zeros(x.shape, dtype=dt.int64), none)
    values, counts, inverse = _unique(flat)
    return _All(values, _first(inverse, counts), reshape(inverse, x.shape), counts)


def unique_counts(x, /):
    """The distinct values, and how often each occurs."""
    values, _, _, counts = unique_all(x)
    return _Counts(values, counts)


def unique_inverse(x, /):
    """The distinct values, and the index in them for each element of x."""
    values, _, inverse, _ = unique_all(x)
    return _Inverse(values, inverse)


def unique_values(x, /):
    """The distinct values in ascending order."""
    return unique_all(x).values


def unique(x, axis=None, *, return_index=False, return_inverse=False, return_counts=False):
    """The distinct values in ascending order, or the distinct parts of x along an axis, such as its rows. In
    this order also: the index of the first one of each, the index in the result for each one of x, and how
    often each occurs. Along an axis, NaNs are equal and complex numbers have no order."""
    if axis is None:
        values, indices, inverse, counts = unique_all(x)
    else:
        axis = axis_of(axis, node_of(x).ndim)
        c, i = ctypes.c_void_p(), ctypes.c_void_p()
        made = lib.unique_axis(c_formula(x), axis, ctypes.byref(c), ctypes.byref(i))
        values, counts, inverse = [from_matrix(m, x.device) for m in (made, c.value, i.value)]
        indices = _first(inverse, counts)
    asked = (return_index, indices), (return_inverse, inverse), (return_counts, counts)
    more = [result for wanted, result in asked if wanted]
    return (values, *more) if more else values
