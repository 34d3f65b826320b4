"""Random cases of groups of operators. Each function that `case` registers draws the operands of one case,
computes the result with Duet and with NumPy or SciPy, and raises an exception if they differ too much."""

import numpy as np

import duet

FLOATS, COMPLEX = ['float32', 'float64'], ['complex64', 'complex128']
INTEGERS = [f'{u}int{n}' for u in ('', 'u') for n in (8, 16, 32, 64)]
INEXACT, REAL = FLOATS + COMPLEX, FLOATS + INTEGERS + ['bool']
REAL_AND_HALF = REAL + ['float16']
ALL = REAL_AND_HALF + COMPLEX
CASES = {}  # name: (family, function)


class Wrong(Exception):
    """A result that differs from the one of NumPy or SciPy."""


def case(family):
    """Registers a function that computes one random case."""

    def register(f):
        CASES[f.__name__] = family, f
        return f

    return register


def up(a):
    """The same numbers in the type in which the references are computed."""
    a = np.asarray(a)
    return a.astype({'f': np.float64, 'c': np.complex128}.get(a.dtype.kind, a.dtype))


def eps(dtype):
    return float(np.finfo(dtype).eps)


def tiny(dtype):
    """More than the error that underflow of some operations causes."""
    return 64 * float(np.finfo(dtype).smallest_subnormal)


def check(true, text, *values):
    Draw.current.checked = True
    if not true:
        raise Wrong(' '.join([text, *[repr(v) for v in values]]))


def read(got):
    """The elements of a result: read directly, or through a formula or a view that is undone."""
    draw, rank = Draw.current, getattr(got, 'ndim', 0)
    how = draw.int(0, 9) if isinstance(got, duet.Array) and draw else 0
    if how == 1 and got.dtype is not duet.bool:
        return np.asarray(got * 1)
    if how == 2 and rank:
        k = (slice(None),) * draw.int(0, rank - 1) + (slice(None, None, -1),)
        return np.asarray(got[k])[k]
    if how == 3 and rank:
        order = draw.rng.permutation(rank)
        moved = np.asarray(duet.permute_dims(got, tuple(int(k) for k in order)))
        return moved.transpose(np.argsort(order))
    if how == 4 and rank:
        cut = draw.int(0, got.shape[0])
        return np.concatenate([np.asarray(got[:cut]), np.asarray(got[cut:])])
    return np.asarray(got)


def shaped(got, shape, dtype, what='the result'):
    """The elements of a result, which must have this shape and type."""
    got = read(got)
    check(got.shape == tuple(shape), f'{what} has shape {got.shape}, and not {tuple(shape)}')
    check(dtype is None or got.dtype == np.dtype(dtype), f'{what} has type {got.dtype}, and not {dtype}')
    return got


def first(bad):
    """The index of the first true element."""
    return tuple(int(i) for i in np.argwhere(bad)[0])


def near(got, want, bound, dtype=None, what='the result'):
    """Checks each element: its error is at most `bound`, or both numbers are equal or NaN."""
    want = np.asarray(want)
    got = up(shaped(got, want.shape, dtype, what))
    bound = np.broadcast_to(np.nan_to_num(np.asarray(bound, float), nan=np.inf, posinf=np.inf), want.shape)
    with np.errstate(all='ignore'):
        error = np.abs(got - want)
    bad = ~(((error <= bound) & np.isfinite(want)) | (got == want) | ((got != got) & (want != want)))
    if bad.any():
        k = first(bad)
        raise Wrong(
            f'{what} has {got[k]!r} at {k}, and not {want[k]!r}: the error is {error[k]:.3g}, '
            f'and at most {bound[k]:.3g} is allowed'
        )


def same(got, want, dtype=None, what='the result'):
    """Checks that all elements are equal; NaN is equal to NaN."""
    want = np.asarray(want)
    got = shaped(got, want.shape, dtype, what)
    bad = ~((got == want) | ((got != got) & (want != want)))
    if bad.any():
        k = first(bad)
        raise Wrong(f'{what} has {got[k]!r} at {k}, and not {want[k]!r}')


class Draw:
    """Random numbers, shapes and arrays of one case."""

    current = None

    def __init__(self, rng):
        self.rng, Draw.current, self.checked = rng, self, False

    def chance(self, p):
        return bool(self.rng.random() < p)

    def pick(self, choices):
        return choices[int(self.rng.integers(len(choices)))]

    def int(self, low, high):
        """An integer from low to high."""
        return int(self.rng.integers(low, high + 1))

    def size(self, high=5, zero=0.07):
        return 0 if self.chance(zero) else self.int(1, high)

    def shape(self, low=0, high=3, sizes=5, zero=0.07):
        made = [self.size(sizes, zero) for _ in range(self.int(low, high))]
        if made and self.chance(0.08):  # longer than a vector of the processor
            made[self.int(0, len(made) - 1)] = self.int(6, 70)
        return tuple(made)

    def smaller(self, shape):
        """A shape that broadcasts to the given one."""
        other = [1 if self.chance(0.3) else n for n in shape]
        return tuple(other[self.int(0, len(other)) if self.chance(0.3) else 0 :])

    def broadcastable(self, shape):
        """Two shapes that broadcast to the given one together."""
        a = [(1, n) if self.chance(0.2) else (n, 1) if self.chance(0.2) else (n, n) for n in shape]
        x, y = tuple(n for n, _ in a), tuple(n for _, n in a)
        if self.chance(0.3):
            cut = self.int(0, len(shape))
            x = x[cut:]
            y = shape[:cut] + y[cut:]
        return (x, y) if self.chance(0.5) else (y, x)

    def array(self, shape, dtype, special=0.0):
        """Random numbers. `special` is the chance of infinities, NaNs and zeros of both signs."""
        kind, rng = np.dtype(dtype).kind, self.rng
        if kind == 'b':
            return rng.integers(0, 2, shape).astype(bool)
        if kind in 'iu' and self.chance(0.15):
            limits = np.iinfo(dtype)
            return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        if kind in 'iu':
            return rng.integers(0 if kind == 'u' else -9, 10, shape).astype(dtype)
        x = rng.normal(size=shape) * 2
        if kind == 'c':
            x = x + 1j * rng.normal(size=shape)
        x = np.asarray(x, dtype=dtype)
        if kind == 'f' and special and x.size and self.chance(special):
            for _ in range(self.int(1, 3)):
                x[np.unravel_index(self.int(0, x.size - 1), x.shape)] = self.pick(
                    [np.nan, np.inf, -np.inf, 0.0, -0.0]
                )
        return x

    def equal_numbers(self, shape, dtype):
        """Numbers of which many are equal."""
        return self.array(shape, dtype) if dtype == 'bool' else self.rng.integers(0, 4, shape).astype(dtype)

    def given(self, a):
        """An array of Duet with these elements: contiguous, a view, or a formula."""
        a = np.asarray(a)
        how = self.int(0, 9)
        if not a.ndim or how < 3:
            return duet.asarray(a)
        if how == 3:
            return duet.asarray(np.asfortranarray(a))
        if how == 4:
            k = self.int(0, a.ndim - 1)
            return duet.asarray(np.flip(np.ascontiguousarray(np.flip(a, k)), k))
        if how == 5:
            return duet.asarray(np.repeat(a, 2, axis=-1)[..., ::2])
        if how == 6:
            order = self.rng.permutation(a.ndim)
            x = duet.asarray(np.ascontiguousarray(a.transpose(order)))
            return duet.permute_dims(x, tuple(int(k) for k in np.argsort(order)))
        if how == 7:
            k = (slice(None),) * self.int(0, a.ndim - 1) + (slice(None, None, -1),)
            return duet.asarray(np.ascontiguousarray(a[k]))[k]
        if how == 8:
            wide = np.zeros(tuple(2 * n + 1 for n in a.shape), a.dtype)
            k = (slice(1, None, 2),) * a.ndim
            wide[k] = a
            return duet.asarray(wide)[k]
        x = duet.asarray(a)
        return x if a.dtype == bool else x * 1

    def operand(self, shape, dtype, special=0.0):
        """Random numbers, as an array of NumPy and as one of Duet, which may be a broadcast view."""
        if shape and self.chance(0.1):
            a = self.array(tuple(1 if self.chance(0.4) else n for n in shape), dtype, special)
            return np.broadcast_to(a, shape), duet.broadcast_to(self.given(a), shape)
        a = self.array(shape, dtype, special)
        return a, self.given(a)

    def axis(self, rank):
        return self.int(-rank, rank - 1)

    def indices(self, shape, n):
        """Indices of an axis of n elements, which may count from the end."""
        dtype = self.pick(['int64', 'int32', 'int8', 'uint8'])
        return self.rng.integers(0 if dtype[0] == 'u' else -n, n, shape).astype(dtype)
