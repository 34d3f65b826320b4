"""Random programs: the same operations on arrays of Duet and of NumPy, lazy and in place, evaluated at random
times. Integers must be equal, and floating-point numbers close."""

import numpy as np
import pytest

import duet
from test_random import broadcastable, close, some_array, some_key, some_shape


def axis_of(rng, x):
    return int(rng.integers(-x.ndim, x.ndim))


def unary(rng, x, y):
    f = str(rng.choice(['negative', 'abs', 'square', 'sign']))
    return getattr(duet, f)(x), getattr(np, f)(y)


def binary(rng, x, y):
    f = str(rng.choice(['add', 'subtract', 'multiply', 'maximum', 'minimum']))
    other = some_array(rng, broadcastable(rng, y.shape), y.dtype)
    return getattr(duet, f)(x, duet.asarray(other)), getattr(np, f)(y, other)


def twice(rng, x, y):
    return x * x - x, y * y - y


def number(rng, x, y):
    k = int(rng.integers(-3, 4))
    return (x + k) * 2 - k, (y + k) * 2 - k


def choose(rng, x, y):
    return duet.where(x > 0, x, -x * 2), np.where(y > 0, y, -y * 2)


def clip(rng, x, y):
    return duet.clip(x, -5, 5), np.clip(y, -5, 5)


def select(rng, x, y):
    key = some_key(rng, y.shape)
    if None in key and y.ndim > 5:
        return x, y
    return duet.asarray(x[key], copy=True), y[key].copy()


def axes(rng, x, y):
    order = tuple(int(k) for k in rng.permutation(y.ndim))
    return duet.permute_dims(x, order), np.transpose(y, order)


def flat(rng, x, y):
    return duet.asarray(duet.reshape(x, (-1,)), copy=True), y.reshape(-1).copy()


def grow(rng, x, y):
    if y.ndim > 5:
        return x, y
    k = int(rng.integers(-y.ndim - 1, y.ndim + 1))
    return duet.expand_dims(x, axis=k), np.expand_dims(y, k)


def reverse(rng, x, y):
    k = axis_of(rng, y)
    return duet.flip(x, axis=k), np.flip(y, axis=k)


def roll(rng, x, y):
    k, by = axis_of(rng, y), int(rng.integers(-5, 6))
    return duet.roll(x, by, axis=k), np.roll(y, by, axis=k)


def join(rng, x, y):
    k = axis_of(rng, y)
    return duet.concat([x, -x], axis=k), np.concatenate([y, -y], axis=k)


def stack(rng, x, y):
    if y.ndim > 5:
        return x, y
    return duet.stack([x, x + 1], axis=0), np.stack([y, y + 1], axis=0)


def repeat(rng, x, y):
    k = axis_of(rng, y)
    if rng.random() < 0.5:
        times = rng.integers(0, 3, y.shape[k])
        return duet.repeat(x, duet.asarray(times), axis=k), np.repeat(y, times, axis=k)
    return duet.repeat(x, 2, axis=k), np.repeat(y, 2, axis=k)


def tile(rng, x, y):
    return duet.tile(x, (2, 1)), np.tile(y, (2, 1))


def scan(rng, x, y):
    k = axis_of(rng, y)
    return duet.cumulative_sum(x, axis=k), np.cumsum(y, axis=k)


def diff(rng, x, y):
    k = axis_of(rng, y)
    return duet.diff(x, axis=k), np.diff(y, axis=k)


def order(rng, x, y):
    k = axis_of(rng, y)
    return duet.sort(x, axis=k), np.sort(y, axis=k)


def along(rng, x, y):
    k = axis_of(rng, y)
    return duet.take_along_axis(x, duet.argsort(x, axis=k), axis=k), np.take_along_axis(
        y, np.argsort(y, axis=k, kind='stable'), axis=k
    )


def take(rng, x, y):
    k = axis_of(rng, y)
    n = y.shape[k]
    if not n:
        return x, y
    at = rng.integers(0, n, int(rng.integers(0, 4)))
    return duet.take(x, duet.asarray(at), axis=k), np.take(y, at, axis=k)


def triangle(rng, x, y):
    if y.ndim < 2:
        return x, y
    k = int(rng.integers(-2, 3))
    return duet.tril(x, k=k), np.tril(y, k)


def reduce(rng, x, y):
    k = axis_of(rng, y)
    return duet.sum(x, axis=k, keepdims=True), np.sum(y, axis=k, keepdims=True)


def product(rng, x, y):
    if y.ndim < 1:
        return x, y
    x, y = x % 4 if y.dtype.kind == 'i' else x, y % 4 if y.dtype.kind == 'i' else y
    return duet.tensordot(x, x, axes=((-1,), (-1,))) if y.ndim == 1 else duet.matmul(x, x.mT), np.tensordot(
        y, y, axes=((-1,), (-1,))
    ) if y.ndim == 1 else np.matmul(y, np.swapaxes(y, -1, -2))


def found(rng, x, y):
    return duet.astype(duet.isin(x, duet.asarray([0, 1, 2], dtype=x.dtype)), x.dtype), np.isin(
        y, [0, 1, 2]
    ).astype(y.dtype)


def assign(rng, x, y):
    key = tuple(k for k in some_key(rng, y.shape) if k is not None)
    value = some_array(rng, broadcastable(rng, y[key].shape), y.dtype)
    x, y = duet.asarray(x, copy=True), np.array(y)
    x[key] = duet.asarray(value)
    y[key] = value
    return x, y


def mask(rng, x, y):
    x, y = duet.asarray(x, copy=True), np.array(y)
    x[x > 2] = 1
    y[y > 2] = 1
    return x, y


def in_place(rng, x, y):
    x, y = duet.asarray(x, copy=True), np.array(y)
    x += 3
    y += 3
    x *= x
    y *= y
    return x, y


OPERATIONS = [
    unary,
    binary,
    twice,
    number,
    choose,
    clip,
    select,
    axes,
    flat,
    grow,
    reverse,
    roll,
    join,
    stack,
    repeat,
    tile,
    scan,
    diff,
    order,
    along,
    take,
    triangle,
    reduce,
    product,
    found,
    assign,
    mask,
    in_place,
]
NEED_AXES = {flat, reverse, roll, join, repeat, scan, diff, order, along, take, reduce, product, axes}


@pytest.mark.filterwarnings('ignore')
def test_random_programs(rng, cases):
    for _ in range(cases):
        dtype = str(rng.choice(['int64', 'float64']))
        start = some_array(rng, some_shape(rng), dtype)
        start = np.nan_to_num(start, posinf=3, neginf=-3) if dtype == 'float64' else start
        if dtype == 'float64':
            start = np.round(start)  # so that comparisons of sums do not depend on rounding
        values = [(duet.asarray(start), start)]
        log = []
        for _ in range(int(rng.integers(1, 12))):
            x, y = values[int(rng.integers(0, len(values)))]
            f = OPERATIONS[int(rng.integers(0, len(OPERATIONS)))]
            if (f in NEED_AXES and not y.ndim) or y.size > 2000 or y.ndim > 6:
                continue
            if y.size and np.max(np.abs(y)) > 1e6:
                x, y = duet.clip(x, -9, 9), np.clip(y, -9, 9)
            log.append(f.__name__)
            x, y = f(rng, x, y)
            y = np.asarray(y)  # NumPy returns numbers for arrays without axes
            assert x.shape == y.shape and str(x.dtype) == str(y.dtype), (
                log,
                x.shape,
                y.shape,
                x.dtype,
                y.dtype,
            )
            values.append((x, y))
            if rng.random() < 0.2:
                x.evaluate()
            if rng.random() < 0.1:
                del values[0]
        for x, y in values:
            try:
                close(x, y, 1000)
            except AssertionError as error:
                raise AssertionError(f'{log}: {error}') from None
