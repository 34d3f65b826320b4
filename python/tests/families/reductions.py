"""Cases of cumulative sums, truncating division and reductions, also of no elements."""

import numpy as np

import duet

from . import COMPLEX, FLOATS, INEXACT, INTEGERS, REAL, case, check, eps, near, same, tiny, up


@case('cumulative sums')
def cumulative(d):
    """cumsum_with and cumprod_with."""
    name = d.pick(['sum', 'prod'])
    dtype, shape = d.pick(FLOATS + INTEGERS + (COMPLEX if name == 'sum' else [])), d.shape(1, 3, 6)
    axis, reverse = d.axis(len(shape)), d.int(0, 1)
    exclusive, initial = d.pick([(0, 0), (1, 0), (0, 1)])
    a, x = d.operand(shape, dtype)
    whole = dtype in INTEGERS

    def scan(b):
        b = np.flip(b, axis) if reverse else b
        made = (np.cumsum if name == 'sum' else np.cumprod)(b, axis, dtype=b.dtype)
        edge = np.full_like(np.take(made, [0] if shape[axis] else [], axis), 0 if name == 'sum' else 1)
        if not shape[axis]:
            one = [1 if k == axis % len(shape) else n for k, n in enumerate(shape)]
            edge = np.full(one, name == 'prod', b.dtype)
        if initial:
            made = np.concatenate([edge, made], axis)
        elif exclusive and shape[axis]:
            made = np.concatenate([edge, np.take(made, range(shape[axis] - 1), axis)], axis)
        return np.flip(made, axis) if reverse else made

    f = duet.cumsum_with if name == 'sum' else duet.cumprod_with
    got = f(x, axis, exclusive=exclusive, reverse=reverse, initial=initial)
    if whole:
        made = 'uint64' if dtype[0] == 'u' else 'int64'
        return same(got, scan(a.astype(made)).astype(str(got.dtype)))
    near(got, scan(up(a)), 4 * (shape[axis] + 1) * eps(dtype) * scan(np.abs(up(a))) + tiny(dtype), dtype)


@case('truncating division')
def trunc_divide(d):
    dtype = d.pick(FLOATS + INTEGERS)
    left, right = d.broadcastable(d.shape(0, 3, 4))
    (a, x), (b, y) = d.operand(left, dtype, 0.2), d.operand(right, dtype, 0.2)
    if dtype in FLOATS:
        if d.chance(0.5):
            a, b = np.round(a), np.round(b)
            x, y = d.given(a), d.given(b)
        return same(duet.trunc_divide(x, y), np.trunc(a / b), dtype)
    if d.chance(0.1):
        a = np.full_like(a, np.iinfo(dtype).min)
        x = d.given(a)
    wide, by = a.astype(object), b.astype(object)
    divide = np.frompyfunc(
        lambda p, q: abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1) if q else 0, 2, 1
    )
    want = divide(wide, by)
    bits = 8 * np.dtype(dtype).itemsize
    want = np.asarray(np.asarray(want, dtype=object) % 2**bits)
    same(duet.trunc_divide(x, y), want.astype(f'uint{bits}').astype(dtype), dtype)


REDUCTIONS = 'sum prod mean any all count_nonzero var std norm norm1 logsumexp'.split()


@case('reductions')
def empty_reductions(d):
    """Reductions of arrays without elements."""
    name = d.pick(REDUCTIONS + ['max', 'min'])
    inexact = name in ('mean', 'var', 'std', 'norm', 'logsumexp')
    dtype = d.pick(FLOATS if name == 'logsumexp' else INEXACT if inexact else REAL)
    if name == 'norm1' and dtype == 'bool':
        dtype = 'int8'
    shape = list(d.shape(1, 3, 4, 0.2))
    shape[d.int(0, len(shape) - 1)] = 0
    axis, keep = d.pick([None, d.axis(len(shape))]), d.chance(0.3)
    a = np.zeros(shape, dtype)
    x, b = d.given(a), up(a)
    axes = None if axis is None else (axis % len(shape),)
    kept = tuple(1 if axes is None or k in axes else n for k, n in enumerate(shape))
    want_shape = kept if keep else tuple(n for k, n in enumerate(shape) if axes is not None and k not in axes)
    empty = shape[axis] == 0 if axis is not None else True
    fails = name in ('max', 'min', 'logsumexp') and empty and 0 not in want_shape
    try:
        got = np.asarray(getattr(duet, name)(x, axis=axis, keepdims=keep))
    except duet.ValueError:
        return check(fails, f'{name} fails for {shape}, axis {axis}')
    check(not fails, f'{name} of nothing is', got)
    value = {'prod': 1, 'all': 1, 'mean': np.nan, 'var': np.nan, 'std': np.nan, 'logsumexp': -np.inf}.get(
        name, 0
    )
    same(got, np.full(want_shape, value, b.dtype if inexact else 'int64'))


@case('reductions')
def reductions(d):
    """Along several axes, of stacks of numbers that include infinities and NaNs."""
    name = d.pick(REDUCTIONS[:-4] + ['norm', 'norm1', 'norm_inf', 'logsumexp', 'max', 'min'])
    dtype = d.pick(FLOATS + (INEXACT if name in ('sum', 'mean', 'norm', 'norm1') else []))
    shape = d.shape(1, 4, 5, 0)
    a, x = d.operand(shape, dtype, 0.1 if name in ('max', 'min', 'any', 'all', 'count_nonzero') else 0)
    axes = tuple(k for k in range(len(shape)) if d.chance(0.5)) or (0,)
    axis, keep, b = d.pick([None, axes, axes[0]]), d.chance(0.3), up(a)
    more = {'axis': axis, 'keepdims': keep}
    n, size = a.size, np.abs(b)
    if name in ('norm', 'norm1', 'norm_inf'):
        two = np.sqrt((size**2).sum(**more))
        want = {'norm': two, 'norm1': size.sum(**more), 'norm_inf': size.max(**more)}[name]
        return near(getattr(duet, name)(x, **more), want, (n + 4) * eps(dtype) * want)
    if name == 'logsumexp':
        want = np.log(np.exp(b).sum(**more))
        return near(
            duet.logsumexp(x, **more), want, (n + 8) * eps(dtype) * np.maximum(1, np.abs(b).max()), dtype
        )
    want = getattr(np, name)(b, **more)
    if name in ('max', 'min', 'any', 'all', 'count_nonzero'):
        return same(getattr(duet, name)(x, **more), want)
    scale = (size**2).max() if name == 'var' else getattr(np, name)(size, **more)
    near(getattr(duet, name)(x, **more), want, (2 * n + 8) * eps(dtype) * scale + tiny(dtype), dtype)
