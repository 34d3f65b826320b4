"""Functions of the array API that make arrays."""

import builtins
import math
import operator

from . import _dtypes as dt
from . import _graph as g
from ._array import Array, _scalars, apply, asarray, broadcast, cast, node_of, reshape, shape_of
from ._errors import TypeError, ValueError
from ._library import lib


def _default(value):
    return {'b': dt.bool_, 'i': dt.int64, 'f': dt.float64, 'c': dt.complex128}[dt.number_kind(value)]


def _of_shape(shape):
    shape = shape_of(shape)
    if any(n < 0 for n in shape):
        raise ValueError(f'a size must not be negative: {shape}')
    return shape


def zeros(shape, *, dtype=None, device=None):
    """Every element is 0."""
    shape, dtype = _of_shape(shape), dt.check_dtype(dtype or dt.float64)
    where = g.device(device)
    matrix = g.new_matrix(lib.new_shape(dtype.code, len(shape), g.sizes(shape)))
    return Array(g.leaf(matrix, shape, dtype, where))


def empty(shape, *, dtype=None, device=None):
    """An array of unspecified elements. They are 0."""
    return zeros(shape, dtype=dtype, device=device)


def full(shape, fill_value, *, dtype=None, device=None):
    """Every element is fill_value."""
    shape = _of_shape(shape)
    if fill_value.__class__ is Array:
        x = fill_value if dtype is None else cast(fill_value, dtype)
        return broadcast(x, shape)
    if not isinstance(fill_value, _scalars):
        raise TypeError(f'fill_value must be a number, and not {type(fill_value).__name__}')
    dtype = dt.check_dtype(dtype or _default(fill_value))
    return broadcast(asarray(fill_value, dtype=dtype, device=g.device(device)), shape)


def ones(shape, *, dtype=None, device=None):
    """Every element is 1."""
    dtype = dt.check_dtype(dtype or dt.float64)
    return full(shape, 1 if dtype.kind != 'b' else True, dtype=dtype, device=device)


def zeros_like(x, /, *, dtype=None, device=None):
    """Zeros with the shape of x."""
    return zeros(node_of(x).shape, dtype=dtype or x.dtype, device=device or x.device)


def empty_like(x, /, *, dtype=None, device=None):
    """An array of unspecified elements with the shape of x."""
    return zeros_like(x, dtype=dtype, device=device)


def ones_like(x, /, *, dtype=None, device=None):
    """Ones with the shape of x."""
    return ones(node_of(x).shape, dtype=dtype or x.dtype, device=device or x.device)


def full_like(x, /, fill_value, *, dtype=None, device=None):
    """An array with the shape of x whose elements are fill_value."""
    return full(node_of(x).shape, fill_value, dtype=dtype or x.dtype, device=device or x.device)


def iota(n, dtype, device=None):
    """0, 1, ..., n - 1, as a formula."""
    where = g.device(device)
    node = g.Node(lib.iota, (), (dtype.code, n), (n,), dtype, where, 1)
    return Array(node)


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """start, start + step, ... up to stop, which is not included."""
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError('step must not be 0')
    whole = all(isinstance(x, builtins.int) for x in (start, stop, step))
    dtype = dt.check_dtype(dtype or (dt.int64 if whole else dt.float64))
    n = max(-((start - stop) // step), 0) if whole else max(math.ceil((stop - start) / step), 0)
    if dtype.kind == 'f' or dtype.kind == 'c':
        # In f64, as NumPy: start and step are no integers of the element type.
        x = iota(n, dt.float64, device)
        x = x * builtins.float(step) + builtins.float(start) if (start, step) != (0, 1) else x
        return cast(x, dtype)
    start, step = builtins.int(start), builtins.int(step)
    x = iota(n, dt.int64, device)
    if (start, step) != (0, 1):
        x = x * _wrapped(step) + _wrapped(start)
    return cast(x, dtype)


def _wrapped(n):
    """An integer modulo 2^64 as an i64: sums of it modulo 2^64 are right for u64, too."""
    return (n + 2**63) % 2**64 - 2**63


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    """num evenly spaced numbers from start to stop."""
    num = operator.index(num)
    if num < 0:
        raise ValueError(f'num must not be negative, and is {num}')
    is_complex = isinstance(start, builtins.complex) or isinstance(stop, builtins.complex)
    dtype = dt.check_dtype(dtype or (dt.complex128 if is_complex else dt.float64))
    if dtype.kind == 'c' or is_complex:
        start, stop = builtins.complex(start), builtins.complex(stop)
        parts = [
            _linspace(a, b, num, endpoint, device)
            for a, b in ((start.real, stop.real), (start.imag, stop.imag))
        ]
        return cast(apply(lib.complex, *parts), dtype)
    return cast(_linspace(builtins.float(start), builtins.float(stop), num, endpoint, device), dtype)


def _linspace(start, stop, num, endpoint, device):
    gaps = num - 1 if endpoint else num
    x = iota(num, dt.float64, device)
    if gaps < 1:
        return x * 0.0 + start
    step = (stop - start) / gaps
    if math.isinf(step):  # the difference overflows
        t = x / builtins.float(gaps)
        y = t * stop + (1.0 - t) * start
    else:
        y = x * step + start
    return apply(lib.where, x == builtins.float(num - 1), stop, y) if endpoint else y


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    """1 on diagonal k, else 0."""
    rows = operator.index(n_rows)
    cols = rows if n_cols is None else operator.index(n_cols)
    dtype = dt.check_dtype(dtype or dt.float64)
    _of_shape((rows, cols))
    k = max(min(k, 2**62), -(2**62))
    x = reshape(iota(rows, dt.int64, device), (rows, 1)) + k == reshape(
        iota(cols, dt.int64, device), (1, cols)
    )
    return cast(x, dtype)


def from_dlpack(x, /, *, device=None, copy=None):
    """An array with the elements of an array of another library."""
    from ._dlpack import load

    return load(x, device, copy)


def concat_ranges(first, second, device=None):
    """The integers of two ranges, one behind the other, as float64."""
    from ._array import concat

    parts = [iota(b - a, dt.float64, device) + builtins.float(a) for a, b in (first, second) if b > a]
    return concat(parts, 0) if parts else zeros((0,), device=device)
