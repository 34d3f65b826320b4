"""Functions of the array API that arrange elements."""

import builtins
import operator

from . import _dtypes as dt
from . import _graph as g
from ._array import (
    Array,
    apply,
    axes_of,
    axis_of,
    broadcast,
    cast,
    concat as _concat,
    convert,
    node_of,
    part_of,
    permute,
    put,
    reshape as _reshape,
    shape_of,
)
from ._errors import ValueError
from ._library import lib


def broadcast_shapes(*shapes):
    """The shape to which these shapes broadcast."""
    out = []
    for shape in shapes:
        shape = shape_of(shape)
        if len(shape) > len(out):
            out[:0] = [1] * (len(shape) - len(out))
        for k in range(-len(shape), 0):
            n = shape[k]
            if n != out[k]:
                if out[k] == 1:
                    out[k] = n
                elif n != 1:
                    raise ValueError(f'the shapes {", ".join(map(str, shapes))} do not broadcast')
    return tuple(out)


def broadcast_arrays(*arrays):
    """The arrays, repeated along axes so that their shapes are equal."""
    shape = broadcast_shapes(*[node_of(x).shape for x in arrays])
    return tuple([broadcast(x, shape) for x in arrays])


def broadcast_to(x, /, shape):
    """x, repeated along axes."""
    node_of(x)
    return broadcast(x, shape_of(shape))


def concat(arrays, /, *, axis=0):
    """Joins arrays along an axis; with axis=None their elements."""
    arrays = builtins.list(arrays)
    if not arrays:
        raise ValueError('concat needs at least one array')
    dtype = node_of(arrays[0]).dtype
    for x in arrays:
        dtype = dt.promote(dtype, node_of(x).dtype)
    arrays = [cast(x, dtype) for x in arrays]
    if axis is None:
        arrays, axis = [_reshape(x, (x.size,)) for x in arrays], 0
    return _concat(arrays, axis_of(axis, arrays[0].ndim))


def stack(arrays, /, *, axis=0):
    """Joins arrays of equal shape along a new axis."""
    arrays = builtins.list(arrays)
    if not arrays:
        raise ValueError('stack needs at least one array')
    axis = axis_of(axis, node_of(arrays[0]).ndim + 1)
    shapes = {node_of(x).shape for x in arrays}
    if len(shapes) > 1:
        raise ValueError(f'stack needs arrays of equal shape, and not {", ".join(map(str, shapes))}')
    return concat([expand_dims(x, axis) for x in arrays], axis=axis)


def unstack(x, /, *, axis=0):
    """The parts of x along an axis."""
    axis = axis_of(axis, node_of(x).ndim)
    return tuple([x[(*(slice(None),) * axis, i)] for i in range(x.shape[axis])])


def expand_dims(x, /, axis=0):
    """x with new axes of size 1."""
    node_of(x)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    rank = x.ndim + len(axes)
    axes = axes_of(tuple(axes), rank)
    shape = builtins.list(x.shape)
    for k in sorted(axes):
        shape.insert(k, 1)
    return _reshape(x, tuple(shape))


def squeeze(x, /, axis):
    """x without axes of size 1."""
    axes = axes_of(axis, node_of(x).ndim)
    for k in axes:
        if x.shape[k] != 1:
            raise ValueError(f'axis {k} has size {x.shape[k]} and cannot be removed')
    return _reshape(x, tuple([n for k, n in enumerate(x.shape) if k not in axes]))


def flip(x, /, *, axis=None):
    """The elements in reverse order along axes."""
    for k in axes_of(axis, node_of(x).ndim):
        x = apply(lib.flip, x, attrs=(k,))
    return x


def permute_dims(x, /, axes):
    """x with its axes in another order."""
    axes = axes_of(tuple(axes), node_of(x).ndim)
    if len(axes) != x.ndim:
        raise ValueError(f'axes must name each of the {x.ndim} axes once, and not {axes}')
    return permute(x, axes)


def moveaxis(x, source, destination, /):
    """x with axes moved to other positions; the others keep their order."""
    rank = node_of(x).ndim
    source, destination = axes_of(source, rank), axes_of(destination, rank)
    if len(source) != len(destination):
        raise ValueError('source and destination must have the same number of axes')
    rest = iter([k for k in range(rank) if k not in source])
    at = dict(zip(destination, source))
    return permute(x, tuple([at[k] if k in at else next(rest) for k in range(rank)]))


def matrix_transpose(x, /):
    """The transposes of the matrices along the last two axes."""
    node_of(x)
    return x.mT


def repeat(x, repeats, /, *, axis=None):
    """Each element of x repeated along an axis."""
    from ._search import searchsorted
    from ._reduce import cumulative_sum
    from ._creation import arange

    node_of(x)
    if axis is None:
        x, axis = _reshape(x, (x.size,)), 0
    axis = axis_of(axis, x.ndim)
    if repeats.__class__ is Array and repeats.size == 1 and repeats.ndim < 2:
        repeats = builtins.int(repeats)
    if repeats.__class__ is not Array:
        repeats = operator.index(repeats)
        if repeats < 0:
            raise ValueError(f'repeats must not be negative, and is {repeats}')
        return apply(lib.repeat, x, attrs=(repeats, axis))
    if repeats.shape != (x.shape[axis],):
        raise ValueError(f'repeats has shape {repeats.shape}, and the axis has {x.shape[axis]} elements')
    ends = cumulative_sum(convert(repeats, dt.int64))
    total = builtins.int(ends[-1]) if x.shape[axis] else 0
    return apply(lib.take, x, searchsorted(ends, arange(total), side='right'), attrs=(axis,))


def reshape(x, /, shape, *, copy=None):
    """The elements of x in row-major order, with another shape. One size may be -1."""
    node_of(x)
    shape = shape_of(shape)
    if -1 in shape:
        others = 1
        for n in shape:
            others *= n if n != -1 else 1
        if shape.count(-1) > 1 or (others == 0 and x.size) or (others and x.size % others):
            raise ValueError(f'an array of shape {x.shape} cannot have shape {shape}')
        shape = tuple([(x.size // others if others else 0) if n == -1 else n for n in shape])
    old = x.shape
    made = part_of(x, lambda x: _reshape(x, shape), lambda x, y: put(x, Ellipsis, _reshape(y, old)))
    if copy:
        made._base = None
    return made


def roll(x, /, shift, *, axis=None):
    """Shifts elements along axes; those that leave one end enter at the other."""
    node_of(x)
    if axis is None:
        if isinstance(shift, (tuple, list)):
            shift = builtins.sum(shift)
        return _reshape(_roll(_reshape(x, (x.size,)), shift, 0), x.shape)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        raise ValueError('shift and axis must have the same number of elements')
    for by, k in zip(shifts, axes):
        x = _roll(x, by, axis_of(k, x.ndim))
    return x


def _roll(x, by, axis):
    n = x.shape[axis]
    by = operator.index(by) % n if n else 0
    return apply(lib.roll, x, attrs=(by, axis)) if by else x


def tile(x, repetitions, /):
    """x repeated along its axes."""
    node_of(x)
    times = shape_of(repetitions)
    if any(n < 0 for n in times):
        raise ValueError(f'repetitions must not be negative: {times}')
    if len(times) < x.ndim:
        times = (1,) * (x.ndim - len(times)) + times
    if not times:
        return x
    return apply(lib.tile, x, attrs=(len(times), g.sizes(times)))


def tril(x, /, *, k=0):
    """The lower triangles of the matrices along the last two axes: diagonal k and below."""
    return _triangle(lib.tril, x, k)


def triu(x, /, *, k=0):
    """The upper triangles of the matrices along the last two axes: diagonal k and above."""
    return _triangle(lib.triu, x, k)


def _triangle(op, x, k):
    if node_of(x).ndim < 2:
        raise ValueError(f'tril and triu need an array of at least 2 axes, and this one has {x.ndim}')
    return apply(op, x, attrs=(k,))


def take(x, indices, /, *, axis=None):
    """The elements of x at indices along an axis."""
    node_of(x), node_of(indices, 'indices')
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f'take needs an axis for an array of {x.ndim} axes')
        axis = 0
    return apply(lib.take, x, indices, attrs=(axis_of(axis, x.ndim),))


def take_along_axis(x, indices, /, *, axis=-1):
    """For each line of x along an axis, the elements at the indices in the same line of indices."""
    axis = axis_of(axis, node_of(x).ndim)
    if node_of(indices, 'indices').ndim != x.ndim:
        raise ValueError(f'x has {x.ndim} axes and indices has {indices.ndim}: they must be equal')
    rest = broadcast_shapes(
        x.shape[:axis] + (1,) + x.shape[axis + 1 :], indices.shape[:axis] + (1,) + indices.shape[axis + 1 :]
    )
    x = broadcast(x, rest[:axis] + (x.shape[axis],) + rest[axis + 1 :])
    indices = broadcast(indices, rest[:axis] + (indices.shape[axis],) + rest[axis + 1 :])
    return apply(lib.take_along_axis, x, indices, attrs=(axis,))


def meshgrid(*arrays, indexing='xy'):
    """Grids of vectors."""
    if indexing not in ('xy', 'ij'):
        raise ValueError(f"indexing must be 'xy' or 'ij', and not {indexing!r}")
    for x in arrays:
        if node_of(x).ndim > 1:
            raise ValueError('meshgrid needs arrays of at most one axis')
    arrays = [_reshape(x, (x.size,)) for x in arrays]
    order = builtins.list(range(len(arrays)))
    if indexing == 'xy' and len(arrays) > 1:
        order[:2] = 1, 0
    shape = tuple([arrays[k].size for k in order])
    at = {k: i for i, k in enumerate(order)}
    return tuple(
        [
            broadcast(_reshape(x, tuple([x.size if i == at[k] else 1 for i in range(len(arrays))])), shape)
            for k, x in enumerate(arrays)
        ]
    )
