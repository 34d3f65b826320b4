"""Random cases, compared with NumPy and array-api-strict."""

import gc

import array_api_strict as strict
import numpy as np
import pytest

import duet

strict.set_array_api_strict_flags(
    api_version='2025.12'
    if '2025.12' in str(getattr(strict, '__array_api_version__', ''))
    else strict.__array_api_version__
)

FLOATS, INTEGERS = ['float32', 'float64'], [f'{u}int{n}' for u in ('', 'u') for n in (8, 16, 32, 64)]
COMPLEX = ['complex64', 'complex128']


def some_shape(rng, rank=3):
    return tuple(int(n) for n in rng.integers(0, 5, int(rng.integers(0, rank + 1))))


def broadcastable(rng, shape):
    """A shape that broadcasts with the given one."""
    other = [1 if rng.random() < 0.3 else n for n in shape]
    return tuple(other[int(rng.integers(0, len(other) + 1)) :])


def some_array(rng, shape, dtype):
    kind = np.dtype(dtype).kind
    if kind == 'b':
        return rng.integers(0, 2, shape).astype(bool)
    if kind in 'iu':
        low = 0 if kind == 'u' else -9
        return rng.integers(low, 10, shape).astype(dtype)
    x = rng.normal(size=shape) * 3
    if kind == 'c':
        x = x + 1j * rng.normal(size=shape)
    x = np.asarray(x, dtype=dtype)
    if x.size and kind == 'f' and rng.random() < 0.2:
        x.flat[int(rng.integers(0, x.size))] = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0])
    return x


def laid_out(rng, x):
    """The same elements as a transposed, reversed or strided array."""
    how = int(rng.integers(0, 4))
    if how == 1 and x.ndim:
        return np.asfortranarray(x)
    if how == 2 and x.ndim:
        return np.ascontiguousarray(x[::-1])[::-1]
    if how == 3 and x.ndim:
        return np.repeat(x, 2, axis=-1)[..., ::2]
    return x


def close(got, want, units=32):
    got = np.asarray(got)
    want = np.asarray(want)
    assert got.shape == want.shape, (got.shape, want.shape)
    assert got.dtype == want.dtype, (got.dtype, want.dtype)
    if want.dtype.kind in 'fc':
        eps = np.finfo(want.dtype).eps
        with np.errstate(all='ignore'):
            error = np.abs(got - want)
            bound = units * eps * np.maximum(np.abs(want), 1)
            same = (got == want) | (np.isnan(got) & np.isnan(want))
        assert np.all(same | (error <= bound)), (got, want)
    else:
        assert np.array_equal(got, want), (got, want)


UNARY = {
    'abs': FLOATS + INTEGERS + COMPLEX,
    'negative': FLOATS + INTEGERS + COMPLEX,
    'square': FLOATS + INTEGERS,
    'sign': FLOATS + INTEGERS,
    'exp': FLOATS + COMPLEX,
    'expm1': FLOATS,
    'tanh': FLOATS + COMPLEX,
    'sin': FLOATS,
    'cos': FLOATS + COMPLEX,
    'atan': FLOATS,
    'asinh': FLOATS + COMPLEX,
    'floor': FLOATS + INTEGERS,
    'ceil': FLOATS + INTEGERS,
    'trunc': FLOATS,
    'round': FLOATS + INTEGERS + COMPLEX,
    'isnan': FLOATS + COMPLEX,
    'isfinite': FLOATS + INTEGERS + COMPLEX,
    'isinf': FLOATS + INTEGERS,
    'logical_not': ['bool'],
    'bitwise_invert': INTEGERS + ['bool'],
    'conj': COMPLEX,
    'real': COMPLEX,
    'imag': COMPLEX,
    'signbit': FLOATS,
    'positive': FLOATS + INTEGERS,
    'acosh': COMPLEX,
    'atanh': COMPLEX,
    'sqrt': COMPLEX,
    'log': COMPLEX,
}
BINARY = {
    'add': FLOATS + INTEGERS + COMPLEX,
    'subtract': FLOATS + INTEGERS + COMPLEX,
    'multiply': FLOATS + INTEGERS + COMPLEX,
    'divide': FLOATS,
    'maximum': FLOATS + INTEGERS,
    'minimum': FLOATS + INTEGERS,
    'equal': FLOATS + INTEGERS + COMPLEX + ['bool'],
    'less': FLOATS + INTEGERS,
    'greater_equal': FLOATS + INTEGERS,
    'logical_and': ['bool'],
    'logical_xor': ['bool'],
    'bitwise_and': INTEGERS + ['bool'],
    'bitwise_xor': INTEGERS,
    'atan2': FLOATS,
    'hypot': FLOATS,
    'copysign': FLOATS,
    'nextafter': FLOATS,
    'remainder': FLOATS,
    'logaddexp': FLOATS,
}


@pytest.mark.parametrize('name', UNARY)
def test_unary(name, rng, cases):
    for _ in range(cases // 10):
        dtype = str(rng.choice(UNARY[name]))
        x = some_array(rng, some_shape(rng), dtype)
        if name in ('signbit',):
            x = np.nan_to_num(x)
        with np.errstate(all='ignore'):
            want = getattr(strict, name)(strict.asarray(x))
        close(
            getattr(duet, name)(duet.asarray(laid_out(rng, x))),
            want,
            400 if name in ('asinh', 'acosh', 'atanh') else 32,
        )


@pytest.mark.parametrize('name', BINARY)
def test_binary(name, rng, cases):
    for _ in range(cases // 10):
        group = [FLOATS, INTEGERS[:4], INTEGERS[4:], COMPLEX, ['bool']]
        group = [g for g in group if g[0] in BINARY[name]]
        types = group[int(rng.integers(0, len(group)))]
        a, b = (str(rng.choice(types)) for _ in range(2))
        shape = some_shape(rng)
        x, y = some_array(rng, shape, a), some_array(rng, broadcastable(rng, shape), b)
        if name in ('copysign', 'remainder'):
            x, y = np.nan_to_num(x), np.nan_to_num(y)
        if name == 'remainder':
            y = y + (y == 0).astype(y.dtype)
        with np.errstate(all='ignore'):
            want = getattr(strict, name)(strict.asarray(x), strict.asarray(y))
        close(getattr(duet, name)(duet.asarray(laid_out(rng, x)), duet.asarray(laid_out(rng, y))), want)


@pytest.mark.parametrize(
    'name', ['sum', 'prod', 'max', 'min', 'mean', 'any', 'all', 'var', 'std', 'count_nonzero']
)
def test_reductions(name, rng, cases):
    for _ in range(cases // 5):
        dtype = str(rng.choice(FLOATS if name in ('mean', 'var', 'std') else FLOATS + INTEGERS))
        shape = tuple(int(n) for n in rng.integers(1, 5, int(rng.integers(1, 4))))
        x = np.nan_to_num(some_array(rng, shape, dtype), posinf=1, neginf=-1)
        axes = [k for k in range(len(shape)) if rng.random() < 0.5]
        axis = [None, tuple(axes), int(rng.integers(-len(shape), len(shape)))][int(rng.integers(0, 3))]
        keep = bool(rng.integers(0, 2))
        want = getattr(strict, name)(strict.asarray(x), axis=axis, keepdims=keep)
        close(getattr(duet, name)(duet.asarray(laid_out(rng, x)), axis=axis, keepdims=keep), want, 4000)


def some_key(rng, shape):
    key = []
    for n in shape:
        how = rng.random()
        if how < 0.25 and n:
            key.append(int(rng.integers(-n, n)))
        elif how < 0.75:
            a, b = (None if rng.random() < 0.3 else int(rng.integers(-n - 2, n + 3)) for _ in range(2))
            step = int(rng.choice([-2, -1, 1, 2, 3]))
            key.append(slice(a, b, step))
        else:
            key.append(slice(None))
    if rng.random() < 0.3:
        cut = int(rng.integers(0, len(key) + 1))
        rest = int(rng.integers(cut, len(key) + 1))
        key[cut:rest] = [Ellipsis]
    if rng.random() < 0.3:
        key.insert(int(rng.integers(0, len(key) + 1)), None)
    return tuple(key)


def test_getitem_and_setitem(rng, cases):
    for _ in range(cases):
        dtype = str(rng.choice(FLOATS + INTEGERS + COMPLEX + ['bool']))
        x = some_array(rng, some_shape(rng, 4), dtype)
        key = some_key(rng, x.shape)
        y = duet.asarray(x)
        lazy = duet.asarray(x) if rng.random() < 0.5 else duet.where(duet.full(x.shape, True), y, y)
        close(lazy[key], x[key])
        if None in key:
            continue
        value = some_array(rng, broadcastable(rng, x[key].shape), dtype)
        before, pending = y[...], duet.equal(y, y)
        want = x.copy()
        want[key] = value
        y[key] = duet.asarray(value)
        close(y, want)
        close(before, x)  # names of the old value are not affected
        close(pending, x == x)


def test_index_arrays(rng, cases):
    for _ in range(cases):
        shape = tuple(int(n) for n in rng.integers(1, 5, int(rng.integers(1, 4))))
        x = some_array(rng, shape, 'float64')
        common = some_shape(rng, 2)
        key = []
        for n in shape[: int(rng.integers(1, len(shape) + 1))]:
            how = rng.random()
            if how < 0.6:
                key.append(rng.integers(-n, n, broadcastable(rng, common) if common else ()))
            elif how < 0.8:
                key.append(slice(None))
            else:
                key.append(int(rng.integers(-n, n)))
        key = [np.asarray(k) if isinstance(k, np.integer) else k for k in key]
        if not any(isinstance(k, np.ndarray) and k.ndim for k in key):
            continue
        mine = tuple(duet.asarray(k) if isinstance(k, np.ndarray) else k for k in key)
        want = x[tuple(key)]
        close(duet.asarray(x)[mine], want)
        y = duet.asarray(x)
        flat = np.arange(x.size).reshape(x.shape)[tuple(key)].ravel()
        if len(set(flat)) == flat.size:
            value = some_array(rng, want.shape, 'float64')
            changed = x.copy()
            changed[tuple(key)] = value
            y[mine] = duet.asarray(value)
            close(y, changed)


def test_masks(rng, cases):
    for _ in range(cases // 2):
        x = some_array(rng, some_shape(rng), 'int32')
        mask = rng.integers(0, 2, x.shape[: int(rng.integers(0, x.ndim + 1))]).astype(bool)
        close(duet.asarray(x)[duet.asarray(mask)], x[mask])
        y, want = duet.asarray(x), x.copy()
        want[mask] = 7
        y[duet.asarray(mask)] = 7
        close(y, want)


@pytest.mark.parametrize('name', ['sort', 'argsort'])
def test_sorting(name, rng, cases):
    for _ in range(cases // 5):
        shape = tuple(int(n) for n in rng.integers(1, 6, int(rng.integers(1, 3))))
        x = np.nan_to_num(some_array(rng, shape, str(rng.choice(FLOATS + INTEGERS))))
        axis, down = int(rng.integers(-len(shape), len(shape))), bool(rng.integers(0, 2))
        want = getattr(strict, name)(strict.asarray(x), axis=axis, descending=down, stable=True)
        close(getattr(duet, name)(duet.asarray(x), axis=axis, descending=down), want)


def test_unique(rng, cases):
    for _ in range(cases // 4):
        dtype = str(rng.choice(FLOATS + INTEGERS + COMPLEX + ['bool']))
        x = (
            np.round(some_array(rng, some_shape(rng), dtype))
            if dtype != 'bool'
            else some_array(rng, (4,), dtype)
        )
        x = np.asarray(x, dtype=dtype)
        got = duet.unique_all(duet.asarray(x))
        want = strict.unique_all(strict.asarray(x))
        if np.dtype(dtype).kind == 'f':
            assert np.array_equal(np.asarray(got.values), np.asarray(want.values), equal_nan=True), x
        elif np.dtype(dtype).kind != 'c':
            close(got.values, want.values)
        assert got.values.size == want.values.size
        back = np.asarray(got.values)[np.asarray(got.inverse_indices)] if x.size else x
        assert np.array_equal(back, x, equal_nan=np.dtype(dtype).kind in 'fc')
        assert np.array_equal(
            np.asarray(x).ravel()[np.asarray(got.indices)],
            np.asarray(got.values),
            equal_nan=np.dtype(dtype).kind in 'fc',
        )
        assert int(duet.sum(got.counts)) == x.size


def test_unique_along_axes(rng, cases):
    for _ in range(cases // 4):
        dtype = str(rng.choice(FLOATS + INTEGERS + ['bool']))
        shape = tuple(int(n) for n in rng.integers(0 if rng.integers(4) == 0 else 1, 6, int(rng.integers(1, 4))))
        x = rng.integers(0, 2 if rng.integers(2) else 3, shape).astype(dtype)
        axis = int(rng.integers(-len(shape), len(shape)))
        more = {f'return_{name}': bool(rng.integers(2)) for name in ('index', 'inverse', 'counts')}
        got = duet.unique(duet.asarray(x), axis, **more)
        want = np.unique(x, axis=axis, **more)
        if not any(more.values()):
            got, want = (got,), (want,)
        assert len(got) == len(want)
        for g, w in zip(got, want):
            assert np.array_equal(np.asarray(g), w) and g.shape == w.shape, (x, axis)
        flat = duet.unique(duet.asarray(x), return_counts=True)
        for g, w in zip(flat, np.unique(x, return_counts=True)):
            assert np.array_equal(np.asarray(g), w), x
    with pytest.raises(IndexError):
        duet.unique(duet.asarray([1, 2]), 1)
    with pytest.raises(TypeError):
        duet.unique(duet.asarray([1j, 2]), 0)


def test_set_operations_on_nan():
    x = duet.asarray([duet.nan, 1.0, duet.nan, 1.0])
    values, indices, inverse, counts = duet.unique_all(x)
    assert counts.tolist() == [2, 1, 1] and inverse.tolist() == [1, 0, 2, 0] and indices.tolist() == [1, 0, 2]


@pytest.mark.parametrize('dtype', FLOATS + COMPLEX)
def test_linear_algebra(dtype, rng, cases):
    """Results satisfy their definitions, for stacks of matrices."""
    eps = float(np.finfo(dtype).eps)
    for _ in range(cases // 20):
        batch = some_shape(rng, 2)
        m, n = (int(k) for k in rng.integers(1, 6, 2))
        a = np.nan_to_num(
            rng.normal(size=(*batch, m, n))
            + (1j * rng.normal(size=(*batch, m, n)) if np.dtype(dtype).kind == 'c' else 0)
        ).astype(dtype)
        x = duet.asarray(a)

        def near(got, want, size=1.0):
            got, want = np.asarray(got), np.asarray(want)
            assert got.shape == want.shape and got.dtype == want.dtype
            assert np.all(np.abs(got - want) <= 300 * eps * size), np.max(np.abs(got - want))

        for mode in 'reduced', 'complete':
            q, r = (np.asarray(f) for f in duet.linalg.qr(x, mode=mode))
            assert q.shape[-1] == (m if mode == 'complete' else min(m, n))
            near(q @ r, a, 10)
            near(
                np.conj(np.swapaxes(q, -1, -2)) @ q,
                np.broadcast_to(np.eye(q.shape[-1], dtype=dtype), (*batch, q.shape[-1], q.shape[-1])),
            )
        for full in False, True:
            u, s, vh = (np.asarray(f) for f in duet.linalg.svd(x, full_matrices=full))
            k = min(m, n)
            assert u.shape[-1] == (m if full else k) and vh.shape[-2] == (n if full else k)
            near((u[..., :k] * s[..., None, :].astype(dtype)) @ vh[..., :k, :], a, 10)
            near(
                np.conj(np.swapaxes(u, -1, -2)) @ u,
                np.broadcast_to(np.eye(u.shape[-1], dtype=dtype), (*batch, u.shape[-1], u.shape[-1])),
            )
            near(
                vh @ np.conj(np.swapaxes(vh, -1, -2)),
                np.broadcast_to(np.eye(vh.shape[-2], dtype=dtype), (*batch, vh.shape[-2], vh.shape[-2])),
            )
        p = np.asarray(duet.linalg.pinv(x))
        near(a @ p @ a, a, 100)
        b = (a @ np.conj(np.swapaxes(a, -1, -2)) + 3 * np.eye(m)).astype(dtype)
        y = duet.asarray(b)
        near(duet.matmul(y, duet.linalg.inv(y)), np.broadcast_to(np.eye(m, dtype=dtype), b.shape), 100)
        near(duet.matmul(y, duet.linalg.solve(y, x)), a, 100)
        low = np.asarray(duet.linalg.cholesky(y))
        near(low @ np.conj(np.swapaxes(low, -1, -2)), b, 100)
        w, v = (np.asarray(f) for f in duet.linalg.eigh(y))
        near(v * w[..., None, :].astype(dtype) @ np.conj(np.swapaxes(v, -1, -2)), b, 100)
        sign, log = duet.linalg.slogdet(y)
        near(
            np.asarray(sign) * np.exp(np.asarray(log)).astype(dtype) / np.linalg.det(b).astype(dtype),
            np.ones(batch, dtype),
        )


@pytest.mark.parametrize('name', ['fft', 'ifft', 'rfft', 'irfft', 'hfft', 'ihfft'])
def test_fourier(name, rng, cases):
    for _ in range(cases // 10):
        shape = tuple(int(n) for n in rng.integers(2, 7, int(rng.integers(1, 4))))
        x = rng.normal(size=shape)
        if name in ('fft', 'ifft', 'irfft', 'hfft'):
            x = x + 1j * rng.normal(size=shape)
        axis = int(rng.integers(-len(shape), len(shape)))
        n = None if rng.random() < 0.5 else int(rng.integers(1, 9))
        norm = str(rng.choice(['backward', 'ortho', 'forward']))
        want = getattr(np.fft, name)(x, n=n, axis=axis, norm=norm)
        close(getattr(duet.fft, name)(duet.asarray(x), n=n, axis=axis, norm=norm), want, 200)


def test_round_trips(rng, cases):
    """NumPy to Duet and back, for all types and layouts."""
    for _ in range(cases):
        dtype = str(rng.choice(FLOATS + INTEGERS + COMPLEX + ['bool', 'float16']))
        x = laid_out(rng, some_array(rng, some_shape(rng), dtype))
        y = duet.asarray(x)
        assert str(y.dtype) == dtype and y.shape == x.shape
        assert np.array_equal(np.asarray(y), x, equal_nan=np.dtype(dtype).kind in 'fc')
        assert 0 in x.shape or np.array_equal(
            np.asarray(y.tolist(), dtype=dtype), x, equal_nan=np.dtype(dtype).kind in 'fc'
        )
        assert np.array_equal(np.from_dlpack(y), x, equal_nan=np.dtype(dtype).kind in 'fc')
        z = duet.asarray(y.tolist(), dtype=y.dtype)
        if 0 not in x.shape:
            assert np.array_equal(np.asarray(z), x, equal_nan=np.dtype(dtype).kind in 'fc')


def test_dlpack():
    a = np.arange(6.0).reshape(2, 3)
    x = duet.from_dlpack(a[:, ::-1])
    assert np.array_equal(np.asarray(x), a[:, ::-1])
    y = duet.from_dlpack(a)
    y[0, 0] = 9.0
    y.evaluate()
    assert a[0, 0] == 9.0
    z = duet.from_dlpack(a, copy=True)
    z[0, 0] = 1.0
    assert a[0, 0] == 9.0 and float(z[0, 0]) == 1.0
    assert not np.from_dlpack(z.to_device('cpu')).flags.writeable or float(z[0, 0]) == 1.0
    for k in range(3):  # capsules that nobody takes
        z.__dlpack__(**({} if k == 0 else {'max_version': (1, k)}))
    with pytest.raises(BufferError):
        z.__dlpack__(dl_device=(4, 0))
    gc.collect()
    before = duet.live()
    for _ in range(20):  # NumPy raises an exception while it holds the capsule
        with pytest.raises((RuntimeError, BufferError), match='dtype'):
            np.from_dlpack(duet.ones((3,), dtype=duet.bfloat16, device='cpu'))
    gc.collect()
    assert duet.live() <= before
