"""Reductions, scans and differences of the array API."""

import builtins
import math

from . import _dtypes as dt
from . import _graph as g
from ._array import Array, apply, axes_of, axis_of, cast, convert, node_of, quick, reshape
from ._errors import TypeError, ValueError
from ._graph import make
from ._library import lib


class Forms:
    """The functions of the library for one reduction."""

    def __init__(self, name):
        self.all = getattr(lib, name)
        self.axis, self.keep = getattr(lib, name + '_axis', None), getattr(lib, name + '_keep', None)
        self.axes, self.axes_keep = (
            getattr(lib, name + '_axes', None),
            getattr(lib, name + '_axes_keep', None),
        )
        self._of_one = quick(self.all, 1, lambda x: Array(make(self.all, (x._node,))), False)

    def __call__(self, operands, axis, keepdims, before=()):
        """Reduces along an axis, several of them, or all if axis is None. `before` are arguments that the
        functions take before the axes."""
        if axis is None and not keepdims and len(operands) == 1 and not before:
            return self._of_one(operands[0])
        nodes = tuple([x._node for x in operands])
        if axis is None and not keepdims:
            return Array(make(self.all, nodes, before))
        rank = len(nodes[0].shape) if len(nodes) == 1 else builtins.max([len(n.shape) for n in nodes])
        if axis is None or isinstance(axis, (tuple, list)):
            axes = axes_of(axis, rank)
            op = self.axes_keep if keepdims else self.axes
            return Array(make(op, nodes, (*before, len(axes), g.ints(axes))))
        axis = axis_of(axis, rank)
        op = self.keep if keepdims else self.axis
        if op is None:
            return self(operands, (axis,), keepdims, before)
        return Array(make(op, nodes, (*before, axis)))


_forms = {
    name: Forms(name)
    for name in 'sum prod mean min max any all count_nonzero var_ddof std_ddof norm norm1 norm_inf'.split()
}


def _numeric(x, name):
    if node_of(x).dtype.kind == 'b':
        raise TypeError(f'{name} is not defined for an array of bool')


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    """The sum of elements. Small integers are added in int64 or uint64."""
    return (
        _forms['sum']((_typed(x, dtype),), axis, keepdims)
        if dtype is None
        else cast(_forms['sum']((_typed(x, dtype),), axis, keepdims), dtype)
    )


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    """The product of elements. Small integers are multiplied in int64 or uint64."""
    made = _forms['prod']((_typed(x, dtype),), axis, keepdims)
    return made if dtype is None else cast(made, dtype)


def _typed(x, dtype):
    node_of(x)
    return x if dtype is None else convert(x, dt.check_dtype(dtype))


def mean(x, /, *, axis=None, keepdims=False):
    """The mean of elements."""
    node_of(x)
    return _forms['mean']((x,), axis, keepdims)


def max(x, /, *, axis=None, keepdims=False):
    """The largest element; NaN if an element is NaN."""
    node_of(x)
    return _forms['max']((x,), axis, keepdims)


def min(x, /, *, axis=None, keepdims=False):
    """The smallest element; NaN if an element is NaN."""
    node_of(x)
    return _forms['min']((x,), axis, keepdims)


def any(x, /, *, axis=None, keepdims=False):
    """Whether an element is true."""
    node_of(x)
    return _forms['any']((x,), axis, keepdims)


def all(x, /, *, axis=None, keepdims=False):
    """Whether all elements are true."""
    node_of(x)
    return _forms['all']((x,), axis, keepdims)


def count_nonzero(x, /, *, axis=None, keepdims=False):
    """The number of elements that are not 0."""
    node_of(x)
    return _forms['count_nonzero']((x,), axis, keepdims)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The variance: the sum of the squared distances from the mean, divided by n - correction."""
    node_of(x)
    return cast(_forms['var_ddof']((x,), axis, keepdims, (builtins.float(correction),)), _same(x))


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The standard deviation, the square root of the variance."""
    node_of(x)
    return cast(_forms['std_ddof']((x,), axis, keepdims, (builtins.float(correction),)), _same(x))


def _same(x):
    return x.dtype if x.dtype.kind == 'f' else dt.part_of.get(x.dtype, dt.float64)


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """Cumulative sums along an axis."""
    return _scan(lib.cumsum, x, axis, dtype, include_initial, 0)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """Cumulative products along an axis."""
    return _scan(lib.cumprod, x, axis, dtype, include_initial, 1)


def _scan(op, x, axis, dtype, include_initial, start):
    x = _typed(x, dtype)
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f'a cumulative sum or product of {x.ndim} axes needs the argument axis')
        axis = 0
    axis = axis_of(axis, x.ndim)
    made = _products(x, axis) if op is lib.cumprod and x.dtype.kind == 'c' else apply(op, x, attrs=(axis,))
    if dtype is not None:
        made = cast(made, dtype)
    if include_initial:
        made = _concat([_edge(made, axis, start), made], axis)
    return made


def _edge(x, axis, value, n=1):
    from ._creation import full

    shape = x.shape[:axis] + (n,) + x.shape[axis + 1 :]
    return full(shape, value, dtype=x.dtype, device=x.device)


def _concat(arrays, axis):
    from ._array import concat

    return concat(arrays, axis)


def _products(x, axis):
    """Cumulative products of complex numbers, in log2(n) steps: the library has none."""
    n, by = x.shape[axis], 1
    while by < n:
        head = (slice(None),) * axis + (slice(0, n - by),)
        x = x * _concat([_edge(x, axis, 1, by), x[head]], axis)
        by *= 2
    return x


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    """Differences of neighbouring elements along an axis, n times."""
    from ._manipulation import concat

    axis = axis_of(axis, node_of(x).ndim)
    parts = [p for p in (prepend, x, append) if p is not None]
    if len(parts) > 1:
        x = concat(parts, axis=axis)
    return apply(lib.diff, x, attrs=(n, axis))


def argmax(x, /, *, axis=None, keepdims=False):
    """The index of the first largest element."""
    return _place(lib.argmax, lib.argmax_axis, lib.argmax_keep, x, axis, keepdims)


def argmin(x, /, *, axis=None, keepdims=False):
    """The index of the first smallest element."""
    return _place(lib.argmin, lib.argmin_axis, lib.argmin_keep, x, axis, keepdims)


def _place(op, along, keep, x, axis, keepdims):
    node_of(x)
    if axis is None:
        made = apply(op, x)
        return reshape(made, (1,) * x.ndim) if keepdims else made
    return apply(keep if keepdims else along, x, attrs=(axis_of(axis, x.ndim),))


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """The norm of vectors: along an axis, several axes, or of all elements."""
    if node_of(x).dtype.kind not in 'fc':
        raise TypeError(f'vector_norm needs floating-point elements, and not {x.dtype}')
    if ord == 2:
        return _forms['norm']((x,), axis, keepdims)
    if ord == 1:
        return _forms['norm1']((x,), axis, keepdims)
    if ord == 0:
        part = dt.part_of.get(x.dtype, x.dtype)
        return cast(_forms['count_nonzero']((x,), axis, keepdims), part)
    size = apply(lib.abs, x)
    if ord == math.inf:
        return max(size, axis=axis, keepdims=keepdims) if x.size else sum(size, axis=axis, keepdims=keepdims)
    if ord == -math.inf:
        return min(size, axis=axis, keepdims=keepdims)
    return sum(size**ord, axis=axis, keepdims=keepdims) ** (1.0 / ord)
