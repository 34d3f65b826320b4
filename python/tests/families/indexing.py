"""Cases of gather, scatter, padding, windows, sets, sorts and searches."""

import numpy as np

import duet

from . import ALL, COMPLEX, FLOATS, INTEGERS, REAL, REAL_AND_HALF, case, check, eps, near, same, up

HOW = {'set': None, 'add': np.add, 'mul': np.multiply, 'min': np.minimum, 'max': np.maximum}
GATHER = 'gather and scatter'


def combined(a, places, values, how):
    """a with values combined with a[places], one after the other."""
    made = np.array(a, order='C')
    if how == 'set':
        flat, order = np.arange(a.size).reshape(a.shape)[places], made.reshape(-1)
        for k, v in zip(np.ravel(flat), np.ravel(values)):
            order[k] = v
    else:
        HOW[how].at(made, places, values)
    return made


def types_of(how):
    return {'set': ALL, 'min': REAL, 'max': REAL}.get(how, FLOATS + INTEGERS)


@case(GATHER)
def take(d):
    dtype, shape = d.pick(ALL), d.shape(1, 3)
    axis = d.axis(len(shape))
    n = shape[axis]
    indices = d.indices(d.shape(0, 2, 4) if n else (0,), max(n, 1))
    a, x = d.operand(shape, dtype)
    got = duet.take(x, d.given(indices), axis=axis)
    same(got, np.take(a, indices.astype('int64'), axis), dtype)


@case(GATHER)
def scatter(d):
    """put, and scatter_add and its like, along an axis."""
    how = d.pick(list(HOW))
    dtype, shape = d.pick(types_of(how)), d.shape(1, 3)
    axis = d.axis(len(shape))
    n, k = shape[axis], axis % len(shape)
    indices = d.indices(d.shape(0, 2, 4) if n else (0,), max(n, 1))
    a, x = d.operand(shape, dtype, 0.1 * (how in ('min', 'max', 'set')))
    v, y = d.operand(shape[:k] + indices.shape + shape[k + 1 :], dtype)
    f = duet.put if how == 'set' else getattr(duet, 'scatter_' + how)
    want = combined(a, (slice(None),) * k + (indices.astype('int64'),), v, how)
    same(f(x, d.given(indices), y, axis), want, dtype)


def lines(indices, axis, rank):
    """The places that take_along_axis reads."""
    grid = list(np.ix_(*[np.arange(n) for n in indices.shape]))
    grid[axis] = indices.astype('int64')
    return tuple(np.broadcast_arrays(*grid))


@case(GATHER)
def scatter_along_axis(d):
    how = d.pick(list(HOW))
    dtype, shape = d.pick(types_of(how)), d.shape(1, 3)
    axis = d.axis(len(shape))
    n = shape[axis]
    wide = [d.int(0, k) if d.chance(0.3) else k for k in shape]
    wide[axis] = d.size(6) if n else 0
    indices = d.indices(tuple(wide), max(n, 1))
    (a, x), (v, y) = d.operand(shape, dtype), d.operand(tuple(wide), dtype)
    if not set(indices.shape) - {0} or n == 0 and indices.size:
        return
    want = combined(a, lines(indices, axis % len(shape), len(shape)), v, how)
    same(duet.scatter_along_axis(x, d.given(indices), y, axis, how), want, dtype)


@case(GATHER)
def along_axis(d):
    """take_along_axis, and put_along_axis with different indices."""
    dtype, shape = d.pick(ALL), d.shape(1, 3, 5, 0)
    axis = d.axis(len(shape))
    k, n = axis % len(shape), shape[axis]
    wide = shape[:k] + (d.int(0, n),) + shape[k + 1 :]
    a, x = d.operand(shape, dtype)
    indices = d.rng.permuted(
        np.broadcast_to(np.arange(n).reshape([-1] + [1] * (len(shape) - k - 1)), shape), axis=axis
    )
    indices = indices[(slice(None),) * k + (slice(0, wide[k]),)]
    indices = indices - n * d.rng.integers(0, 2, indices.shape)
    same(duet.take_along_axis(x, d.given(indices), axis=axis), np.take_along_axis(a, indices, axis), dtype)
    v, y = d.operand(wide, dtype)
    want = np.array(a)
    np.put_along_axis(want, indices, v, axis)
    same(duet.put_along_axis(x, d.given(indices), y, axis), want, dtype)


@case(GATHER)
def gather_nd(d):
    """gather_nd and scatter_nd."""
    how = d.pick(list(HOW))
    dtype, shape = d.pick(types_of(how)), d.shape(1, 4, 4, 0)
    k, lead = d.int(1, len(shape)), d.shape(0, 2, 4)
    indices = np.stack([d.rng.integers(-n, n, lead) for n in shape[:k]], -1).astype(
        d.pick(['int64', 'int32', 'int16'])
    )
    a, x = d.operand(shape, dtype)
    places, i = tuple(np.moveaxis(indices.astype('int64'), -1, 0)), d.given(indices)
    same(duet.gather_nd(x, i), a[places], dtype, 'gather_nd')
    v, y = d.operand(lead + shape[k:], dtype)
    same(duet.scatter_nd(x, i, y, how), combined(a, places, v, how), dtype, 'scatter_nd')


@case('padding and windows')
def pad(d):
    dtype, shape = d.pick(ALL), d.shape(1, 3, 4, 0)
    mode = d.pick(['constant', 'edge', 'reflect', 'wrap'])
    a, x = d.operand(shape, dtype)
    most = d.pick([2, 4, 11])
    by = [(d.int(0, most), d.int(0, most)) for _ in shape]
    before, after = (tuple(b[k] for b in by) for k in (0, 1))
    more = {'constant_values': d.int(0, 3)} if mode == 'constant' else {}
    if more and dtype == 'bool':
        more['constant_values'] %= 2
    value = {'value': float(more['constant_values'])} if more else {}
    same(duet.pad(x, before=before, after=after, mode=mode, **value), np.pad(a, by, mode, **more), dtype)


@case('padding and windows')
def sliding_window(d):
    dtype, shape = d.pick(ALL), d.shape(1, 3, 7, 0)
    axis = d.axis(len(shape))
    n, size, stride, dilation = shape[axis], d.int(1, 4), d.int(1, 3), d.int(1, 3)
    wide = (size - 1) * dilation + 1
    if wide > n:
        return
    a, x = d.operand(shape, dtype)
    want = np.lib.stride_tricks.sliding_window_view(a, wide, axis)[..., ::dilation]
    want = want[(slice(None),) * (axis % len(shape)) + (slice(None, None, stride),)]
    same(duet.sliding_window(x, axis=axis, size=size, stride=stride, dilation=dilation), want, dtype)


@case('padding and windows')
def moved(d):
    """roll, tile, repeat, diff and triangles."""
    dtype, shape = d.pick(ALL), d.shape(1, 3)
    a, x = d.operand(shape, dtype)
    axis, by = d.axis(len(shape)), d.int(-7, 7)
    same(duet.roll(x, by, axis=axis), np.roll(a, by, axis), dtype, 'roll')
    times = tuple(d.int(0, 3) for _ in range(d.int(1, 3)))
    same(duet.tile(x, times), np.tile(a, times), dtype, 'tile')
    same(duet.repeat(x, abs(by) % 4, axis=axis), np.repeat(a, abs(by) % 4, axis), dtype, 'repeat')
    if len(shape) > 1:
        k = d.int(-4, 4)
        same(duet.tril(x, k=k), np.tril(a, k), dtype, 'tril')
        same(duet.triu(x, k=k), np.triu(a, k), dtype, 'triu')
    if len(shape) < 3:
        k = d.int(-4, 4)
        same(duet.diag(x, k), np.diag(a, k), dtype, 'diag')
    if dtype in INTEGERS:
        n = d.int(0, 3)
        same(duet.diff(x, n=n, axis=axis), np.diff(a, n, axis), dtype, 'diff')


@case('sets and sorts')
def unique(d):
    dtype, shape = d.pick(REAL), d.shape(1, 3, 6)
    a = d.equal_numbers(shape, dtype)
    axis = d.pick([None, d.axis(len(shape))])
    more = {f'return_{name}': d.chance(0.5) for name in ('index', 'inverse', 'counts')}
    got, want = duet.unique(d.given(a), axis, **more), np.unique(a, axis=axis, **more)
    if not any(more.values()):
        got, want = (got,), (want,)
    check(len(got) == len(want), 'the number of results is', len(got))
    for what, g, w in zip(['values', *[n for n, v in more.items() if v]], got, want):
        w = w.reshape(shape if axis is None else -1) if what == 'return_inverse' else w  # as in NumPy 2.1
        same(g, w, None, what)


@case('sets and sorts')
def sort(d):
    dtype, shape = d.pick(REAL_AND_HALF), d.shape(1, 3, 9)
    axis, down = d.axis(len(shape)), d.chance(0.4)
    a = d.array(shape, dtype, 0.5) if d.chance(0.5) else d.equal_numbers(shape, dtype)
    x = d.given(a)
    order = descending(a, axis) if down else np.argsort(a, axis, kind='stable')
    same(duet.argsort(x, axis=axis, descending=down), order, 'int64', 'argsort')
    want = np.sort(a, axis, kind='stable')
    same(duet.sort(x, axis=axis, descending=down), np.flip(want, axis) if down else want, dtype, 'sort')


def descending(a, axis):
    """The indices in descending order, NaN first; equal elements keep their order."""
    return np.flip(a.shape[axis] - 1 - np.argsort(np.flip(a, axis), axis, kind='stable'), axis)


@case('sets and sorts')
def top_k(d):
    """The k largest and the k smallest elements."""
    dtype, shape = d.pick(REAL_AND_HALF), d.shape(1, 3, 9)
    axis = d.axis(len(shape))
    k = d.int(0, shape[axis])
    a = d.array(shape, dtype, 0.5) if d.chance(0.5) else d.equal_numbers(shape, dtype)
    x, name = d.given(a), d.pick(['top_k', 'bottom_k'])
    order = descending(a, axis) if name == 'top_k' else np.argsort(a, axis, kind='stable')
    order = np.take(order, np.arange(k), axis)
    same(getattr(duet, name + '_indices')(x, k=k, axis=axis), order, 'int64', 'the indices')
    same(getattr(duet, name)(x, k=k, axis=axis), np.take_along_axis(a, order, axis), dtype, 'the elements')


@case('sets and sorts')
def searches(d):
    """searchsorted, isin and histogram."""
    dtype = d.pick(REAL)
    a = np.sort(d.equal_numbers((d.size(9),), dtype))
    b = d.array(d.shape(), dtype) if dtype != 'bool' else d.equal_numbers(d.shape(), dtype)
    x, y, side = d.given(a), d.given(b), d.pick(['left', 'right'])
    same(duet.searchsorted(x, y, side=side), np.searchsorted(a, b, side), 'int64', 'searchsorted')
    same(duet.isin(y, x), np.isin(b, a), 'bool', 'isin')
    n = d.int(1, 6)
    want = np.histogram(b.ravel().astype(float), n, (0, 4))[0]
    same(duet.histogram(y if b.ndim else duet.reshape(y, (1,)), 0, 4, n), want, 'int64', 'histogram')


@case('sets and sorts')
def quantiles(d):
    """median and quantile."""
    dtype, shape = d.pick(FLOATS + INTEGERS + ['bool']), d.shape(1, 3, 7, 0)
    a = d.array(shape, dtype, 0.1)
    x, b, axis, keep = d.given(a), a.astype('float64'), d.pick([None, d.axis(len(shape))]), d.chance(0.3)
    made = dtype if dtype in FLOATS else 'float64'
    if not np.isfinite(b).all():
        a = np.nan_to_num(a, posinf=3, neginf=-2)
        x, b = d.given(a), a.astype('float64')
    size = 8 * eps(made) * np.abs(b).max()
    near(duet.median(x, axis=axis, keepdims=keep), np.median(b, axis, keepdims=keep), size, made, 'median')
    q = d.pick([0.0, 1.0, 0.5, d.rng.random()])
    want = np.quantile(b, q, axis, keepdims=keep)
    near(duet.quantile(x, q, axis=axis, keepdims=keep), want, size * 4, made, 'quantile')


@case('sets and sorts')
def covariance(d):
    """cov and corrcoef."""
    dtype = d.pick(FLOATS + COMPLEX)
    a, x = d.array(shape := (d.int(1, 5), d.int(3, 9)), dtype), None
    x, b = d.given(a), up(a)
    ddof = d.int(0, 2)
    want = np.atleast_2d(np.cov(b, ddof=ddof))
    size = (np.abs(b) ** 2).sum()
    near(duet.cov(x, ddof), want, 8 * shape[1] * eps(dtype) * size, dtype, 'cov')
    if dtype in FLOATS:
        deviation = np.sqrt(np.diagonal(np.atleast_2d(np.cov(b, ddof=0))).real)
        bound = 8 * shape[1] * eps(dtype) * (np.abs(b).max() / deviation.min()) ** 2
        near(duet.corrcoef(x), np.atleast_2d(np.corrcoef(b)), bound, dtype, 'corrcoef')
