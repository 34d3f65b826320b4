"""Cases of formulas of several operators that move elements, followed by one that computes."""

import math

import numpy as np

import duet

from . import ALL, COMPLEX, INEXACT, INTEGERS, case, eps, near, same, tiny, up

MOST = 400  # elements


def take(d, a, x):
    axis = d.axis(a.ndim)
    if not a.shape[axis]:
        return a, x
    indices = d.indices(d.shape(0, 2, 4), a.shape[axis])
    return np.take(a, indices.astype('int64'), axis), duet.take(x, d.given(indices), axis=axis)


def slices(d, a, x):
    def one(n):
        low, high = (None if d.chance(0.4) else d.int(-n - 1, n + 1) for _ in range(2))
        return slice(low, high, d.pick([1, 1, 2, 3, -1, -2]))

    k = tuple(one(n) for n in a.shape)
    if d.chance(0.3):
        k = (*k[:-1], None, k[-1])
    return a[k], x[k]


def pick(d, a, x):
    if a.ndim < 2 or not a.shape[0]:
        return a, x
    k = d.int(-a.shape[0], a.shape[0] - 1)
    return a[k], x[k]


def moved(d, a, x):
    order = tuple(int(k) for k in d.rng.permutation(a.ndim))
    return a.transpose(order), duet.permute_dims(x, order)


def reshaped(d, a, x):
    n, shape = a.size, []
    while n > 1 and len(shape) < 3:
        k = d.pick([k for k in range(1, n + 1) if n % k == 0])
        shape.append(k)
        n //= k
    shape = (*shape, n)
    return a.reshape(shape), duet.reshape(x, shape)


def joined(d, a, x):
    axis = d.axis(a.ndim)
    b, y = d.pick([(a, x), d.operand(a.shape, str(a.dtype)), (np.flip(a, axis), duet.flip(x, axis=axis))])
    if d.chance(0.3):
        return np.stack([a, b], axis), duet.stack([x, y], axis=axis)
    return np.concatenate([a, b], axis), duet.concat([x, y], axis=axis)


def padded(d, a, x):
    mode = d.pick(['constant', 'edge', 'reflect', 'wrap'])
    by = [(d.int(0, 2), d.int(0, 2)) for _ in a.shape]
    if mode != 'constant' and not a.size:
        return a, x
    before, after = (tuple(b[k] for b in by) for k in (0, 1))
    return np.pad(a, by, mode), duet.pad(x, before=before, after=after, mode=mode)


def rolled(d, a, x):
    axis, by = d.axis(a.ndim), d.int(-5, 5)
    return np.roll(a, by, axis), duet.roll(x, by, axis=axis)


def repeated(d, a, x):
    axis, n = d.axis(a.ndim), d.int(1, 3)
    if d.chance(0.5):
        return np.repeat(a, n, axis), duet.repeat(x, n, axis=axis)
    times = tuple(d.int(1, 2) for _ in a.shape)
    return np.tile(a, times), duet.tile(x, times)


def triangle(d, a, x):
    k = d.int(-2, 2)
    if a.ndim < 2:
        return a, x
    return d.pick([(np.tril(a, k), duet.tril(x, k=k)), (np.triu(a, k), duet.triu(x, k=k))])


def chosen(d, a, x):
    (c, z), (b, y) = d.operand(d.smaller(a.shape), 'bool'), d.operand(a.shape, str(a.dtype))
    return np.where(c, a, b), duet.where(z, x, y)


def sorted_(d, a, x):
    if a.dtype.kind == 'c':
        return a, x
    axis = d.axis(a.ndim)
    return np.sort(a, axis, kind='stable'), duet.sort(x, axis=axis)


def put(d, a, x):
    axis = d.axis(a.ndim)
    k = axis % a.ndim
    if not a.shape[k]:
        return a, x
    indices = d.rng.permutation(a.shape[k])[: d.int(0, a.shape[k])]
    v, y = d.operand(a.shape[:k] + indices.shape + a.shape[k + 1 :], str(a.dtype))
    made = np.array(a)
    made[(slice(None),) * k + (indices,)] = v
    return made, duet.put(x, d.given(indices), y, axis)


def conjugate(d, a, x):
    return np.conj(a) if a.dtype.kind == 'c' else a, duet.conj(x) if a.dtype.kind == 'c' else x


def negative(d, a, x):
    return (a, x) if a.dtype == bool else (-a, -x)


def spread(d, a, x):
    shape = (d.int(1, 3), *a.shape)
    return np.broadcast_to(a, shape), duet.broadcast_to(x, shape)


MOVES = [
    take,
    slices,
    pick,
    moved,
    reshaped,
    joined,
    padded,
    rolled,
    repeated,
    triangle,
    chosen,
    sorted_,
    put,
]
MOVES += [conjugate, negative, spread, slices, moved]


def chain(d, dtype, steps):
    a, x = d.operand(d.shape(1, 3, 5, 0.03), dtype)
    for _ in range(steps):
        b, y = d.pick(MOVES)(d, a, x)
        if b.size <= MOST and 0 < b.ndim < 6:
            a, x = b, y
    return a, x


@case('compositions')
def moves(d):
    dtype = d.pick(ALL)
    a, x = chain(d, dtype, d.int(2, 6))
    same(x, a, dtype)


@case('compositions')
def sums_of_moves(d):
    dtype = d.pick(INEXACT + INTEGERS)
    a, x = chain(d, dtype, d.int(1, 5))
    axis = d.pick([None, d.axis(a.ndim)])
    if dtype in INTEGERS:
        return same(duet.sum(x, axis=axis), a.sum(axis))
    size = np.abs(up(a)).sum(axis)
    near(duet.sum(x, axis=axis), up(a).sum(axis), 2 * (a.size + 4) * eps(dtype) * size + tiny(dtype), dtype)


@case('compositions')
def products_of_moves(d):
    dtype = d.pick(INEXACT + INTEGERS)
    (a, x), (b, y) = (chain(d, dtype, d.int(1, 4)) for _ in range(2))
    a, x = (
        a.reshape(math.prod(a.shape[:-1]), a.shape[-1]),
        duet.reshape(x, (math.prod(a.shape[:-1]), a.shape[-1])),
    )
    b, y = (
        b.reshape(b.shape[0], math.prod(b.shape[1:])),
        duet.reshape(y, (b.shape[0], math.prod(b.shape[1:]))),
    )
    k = min(a.shape[1], b.shape[0])
    a, x, b, y = a[:, :k], x[:, :k], b[:k], y[:k]
    if dtype in INTEGERS:
        return same(duet.matmul(x, y), a @ b, dtype)
    size = np.abs(up(a)) @ np.abs(up(b))
    near(duet.matmul(x, y), up(a) @ up(b), 2 * (k + 4) * eps(dtype) * size + tiny(dtype), dtype)


@case('compositions')
def scans_of_moves(d):
    dtype = d.pick([t for t in INEXACT if t not in COMPLEX])
    a, x = chain(d, dtype, d.int(1, 5))
    axis = d.axis(a.ndim)
    b = up(a)
    size = (a.shape[axis] + 4) * eps(dtype)
    near(
        duet.cumsum(x, axis), b.cumsum(axis), 4 * size * np.abs(b).cumsum(axis) + tiny(dtype), dtype, 'cumsum'
    )
    if a.size:
        e = np.exp(b - b.max(axis, keepdims=True))
        want = e / e.sum(axis, keepdims=True)
        near(duet.softmax(x, axis), want, 8 * size * max(np.abs(b).max(), 1), dtype, 'softmax')
