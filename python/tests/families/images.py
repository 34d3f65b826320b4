"""Cases of pooling and of interpolation."""

import itertools

import numpy as np

import duet

from . import FLOATS, case, eps, near, same, up


def windows_of(n, window, stride, pad, more, dilation, ceil):
    """The number of windows along an axis, or 0 if there are none."""
    room = n + 2 * pad + more - ((window - 1) * dilation + 1)
    if room < 0 or n + min(pad, 0) + min(pad + more, 0) < 1:
        return 0
    count = room // stride + 1
    if ceil and room % stride and count * stride < n + min(pad + more, 0) + pad:
        count += 1
    return count


@case('pooling')
def pooling(d):
    """Maxima, their indices, and means of one to three axes."""
    rank, name = d.int(1, 3), d.pick(['max', 'avg', 'indices'])
    dtype = d.pick(FLOATS + ['int8', 'uint8', 'int32'] * (rank == 2 and name != 'avg'))
    shape = (d.size(2), d.size(2), *[d.int(1, 7 if rank < 3 else 5) for _ in range(rank)])
    a = d.array(shape, dtype) if name == 'avg' or d.chance(0.5) else d.equal_numbers(shape, dtype)
    least = -np.inf if dtype in FLOATS else np.iinfo(dtype).min
    if name != 'avg' and a.size and dtype in FLOATS and d.chance(0.1):
        a.flat[d.int(0, a.size - 1)] = d.pick([np.nan, np.inf, -np.inf])
    window, stride, dilation = ([d.int(1, 3) for _ in range(rank)] for _ in range(3))
    dilation = dilation if d.chance(0.4) else [1] * rank
    pad = [d.int(-1, 2) if d.chance(0.5) else 0 for _ in range(rank)]
    more = [d.int(-1, 2) if d.chance(0.2) else 0 for _ in range(rank)]
    ceil, exclude = d.int(0, 1), d.int(0, 1) if name == 'avg' else 0
    options = dict(window=window, stride=stride, pad=pad, more=more, dilation=dilation, ceil=ceil)
    each = list(zip(shape[2:], window, stride, pad, more, dilation))
    counts = [windows_of(*e, ceil) for e in each]
    if not all(counts):
        return
    if rank == 1:
        options = {k: v[0] if isinstance(v, list) else v for k, v in options.items()}
    if name == 'avg':
        options['exclude_pad'] = exclude
    elif name == 'max' and d.chance(0.2):
        options['ties'] = 'shared'
    f = getattr(duet, f'{"avg" if name == "avg" else "max"}_pool{rank}d' + '_indices' * (name == 'indices'))
    got = f(d.given(a), **options)
    made = np.zeros((*shape[:2], *counts))
    flat = np.arange(int(np.prod(shape[2:]))).reshape(shape[2:])
    b = up(a)
    for place in itertools.product(*[range(c) for c in counts]):
        lines, inside = [], 1
        for i, (n, w, s, p, m, l) in zip(place, each):
            at = i * s - p + l * np.arange(w)
            inside *= int(np.sum(at < n + p + m))
            lines.append(at[(at >= max(-p, 0)) & (at < n + min(p + m, 0))])
        part = b[(slice(None), slice(None), *np.ix_(*lines))]
        part = part.reshape(*shape[:2], int(np.prod(part.shape[2:])))
        if name == 'avg':
            count = part.shape[-1] if exclude else inside
            value = part.sum(-1) / np.float64(count)
        elif name == 'max':
            value = part.max(-1) if part.shape[-1] else least
        else:
            value = flat[np.ix_(*lines)].ravel()[part.argmax(-1)] if part.shape[-1] else -1
        made[(slice(None), slice(None), *place)] = value
    if name == 'avg':
        return near(got, made, 8 * int(np.prod(window)) * eps(dtype) * np.abs(b).max(initial=0), dtype)
    same(got, made, 'int64' if name == 'indices' else dtype)


def weight(t, mode, a):
    t = np.abs(t)
    if mode == 'linear':
        return np.maximum(1 - t, 0)
    near_ = ((a + 2) * t - (a + 3)) * t * t + 1
    far = (((t - 5) * t + 8) * t - 4) * a
    return np.where(t <= 1, near_, np.where(t < 2, far, 0))


def weights_of(n, m, mode, align, antialias, cubic):
    """The matrix of one axis: rows are the elements of the result."""
    made = np.zeros((m, n))
    for i in range(m):
        if mode == 'nearest':
            if align == 'centers':
                at = (2 * i + 1) * n // (2 * m)
            elif align == 'corners':
                at = 0 if m == 1 else (2 * i * (n - 1) + m - 1) // (2 * (m - 1))
            else:
                at = i * n // m
            made[i, min(max(at, 0), n - 1)] = 1
            continue
        corners = i * (n - 1) / max(m - 1, 1)
        x = {'centers': (i + 0.5) * n / m - 0.5, 'corners': corners, 'first': i * n / m}[align]
        if antialias and m < n:
            line = weight((np.arange(n) - x) * m / n, mode, cubic)
            made[i] = line / line.sum()
            continue
        base = int(np.floor(x))
        for k in range(base - 1, base + 3):
            made[i, min(max(k, 0), n - 1)] += weight(x - k, mode, cubic)
    return made


@case('interpolation')
def interpolate(d):
    dtype, rank = d.pick(FLOATS), d.int(1, 4)
    shape = tuple(d.int(1, 6) for _ in range(rank))
    a, x = d.operand(shape, dtype)
    mode, align = d.pick(['nearest', 'linear', 'cubic']), d.pick(['centers', 'corners', 'first'])
    antialias = int(mode != 'nearest' and align == 'centers' and d.chance(0.4))
    size = tuple(0 if d.chance(0.3) else d.int(1, 9) for _ in range(rank))
    cubic = d.pick([0.0, -0.5, -0.6])
    options = {'size': size, 'mode': mode, 'align': align, 'antialias': antialias, 'cubic': cubic}
    want, bound = up(a), np.abs(up(a))
    for k, m in enumerate(size):
        if not m or m == shape[k]:
            continue
        w = weights_of(shape[k], m, mode, align, antialias, cubic or (-0.5 if antialias else -0.75))
        want = np.moveaxis(np.tensordot(w, want, (1, k)), 0, k)
        bound = np.moveaxis(np.tensordot(np.abs(w) + 0.25, bound, (1, k)), 0, k)
    if mode == 'nearest':
        return same(duet.interpolate(x, **options), want, dtype)
    near(duet.interpolate(x, **options), want, 64 * rank * eps(dtype) * bound, dtype)


@case('convolutions')
def conv2d(d):
    dtype, groups = d.pick(FLOATS), d.int(1, 2)
    n, c, m = d.int(1, 2), groups * d.int(1, 2), groups * d.int(1, 2)
    h, w, kh, kw = d.int(1, 6), d.int(1, 6), d.int(1, 3), d.int(1, 3)
    stride, pad, dilation = ([d.int(low, high) for _ in range(2)] for low, high in ((1, 2), (0, 2), (1, 2)))
    counts = [windows_of(*e, 0) for e in zip((h, w), (kh, kw), stride, pad, (0, 0), dilation)]
    if not all(counts):
        return
    (a, x), (b, y) = d.operand((n, c, h, w), dtype), d.operand((m, c // groups, kh, kw), dtype)
    wide = np.pad(up(a), [(0, 0), (0, 0), (pad[0],) * 2, (pad[1],) * 2])
    span = [(k - 1) * l + 1 for k, l in zip((kh, kw), dilation)]
    v = np.lib.stride_tricks.sliding_window_view(wide, span, (2, 3))
    v = v[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]
    v, f = (
        v.reshape(n, groups, c // groups, *v.shape[2:]),
        up(b).reshape(groups, m // groups, c // groups, kh, kw),
    )
    want = np.einsum('ngchwij,gmcij->ngmhw', v, f).reshape(n, m, *counts)
    size = np.einsum('ngchwij,gmcij->ngmhw', np.abs(v), np.abs(f)).reshape(n, m, *counts)
    got = duet.conv2d(x, y, stride=stride, pad=pad, dilation=dilation, groups=groups)
    near(got, want, 4 * (c * kh * kw + 4) * eps(dtype) * size, dtype)
