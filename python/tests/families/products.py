"""Cases of sums of products, Kronecker products, convolutions and Fourier transforms."""

import math

import numpy as np

import duet

from . import ALL, COMPLEX, FLOATS, INEXACT, INTEGERS, case, eps, near, same, tiny, up


def compare(got, want, terms, size, dtype):
    """Compares sums of `terms` products, whose magnitudes add to `size`. Those of integers are exact."""
    if np.dtype(dtype).kind in 'fc':
        return near(got, want, (2 * terms + 8) * eps(dtype) * size + tiny(dtype), dtype)
    same(got, want, dtype)


@case('einsum')
def einsum(d):
    dtype, count = d.pick(INEXACT * 2 + INTEGERS), d.pick([1, 1, 2, 2, 2, 3, 3, 4, 6])
    sizes = {c: d.pick([0, 1, 2, 2, 3, 3, 4]) for c in 'abcdE'}
    if d.chance(0.1):
        sizes[d.pick('abcdE')] = d.int(5, 20)
    groups = [''.join(d.pick('abcdE') for _ in range(d.int(0, 3))) for _ in range(count)]
    dots = d.size(3, 0), d.size(3, 0)
    ellipses = [d.chance(0.2) for _ in range(count)]
    shapes, parts = [], []
    for group, has in zip(groups, ellipses):
        own = {c: 1 if count > 1 and group.count(c) == 1 and d.chance(0.1) else sizes[c] for c in group}
        shape = [own[c] for c in group]
        if has:
            cut, lead = d.int(0, len(group)), dots[d.int(0, 2) :]
            lead = [1 if d.chance(0.2) else k for k in lead]
            shape[cut:cut], group = lead, group[:cut] + '...' + group[cut:]
        shapes.append(tuple(shape))
        parts.append(group)
    text, letters = ','.join(parts), sorted(set(''.join(groups)))
    if not d.chance(0.2):
        out = [c for c in d.rng.permutation(letters) if d.chance(0.5)] if letters else []
        if any(ellipses):
            out.insert(d.int(0, len(out)), '...')
        text += '->' + ''.join(out)
    elif any(c.isupper() for c in letters):
        text = text.replace('E', 'e')
    operands = [d.operand(s, dtype) for s in shapes]
    arrays = [up(a) for a, _ in operands]
    got = duet.einsum(text, *[x for _, x in operands])
    if dtype in INTEGERS:
        return same(got, np.einsum(text, *arrays), dtype)
    want, size = np.einsum(text, *arrays), np.einsum(text, *[np.abs(a) for a in arrays])
    compare(got, want, 4 * math.prod(sizes.values()) + 8 * count, size, dtype)


@case('einsum')
def kron(d):
    dtype = d.pick(INEXACT + INTEGERS + ['bool'])
    (a, x), (b, y) = (d.operand(d.shape(0, 3, 3), dtype) for _ in range(2))
    want = np.kron(up(a), up(b))
    if not a.ndim and not b.ndim:
        want = np.asarray(up(a) * up(b))
    compare(duet.kron(x, y), want.astype(dtype) if dtype not in INEXACT else want, 1, np.abs(want), dtype)


@case('matrix products')
def matmul(d):
    dtype = d.pick(INEXACT + INTEGERS + ['bool'])
    m, k, n = (d.size(9) if d.chance(0.9) else d.int(10, 70) for _ in range(3))
    left, right = d.broadcastable(d.shape(0, 2, 3))
    a, x = d.operand((k,) if d.chance(0.1) else (*left, m, k), dtype)
    b, y = d.operand((k,) if d.chance(0.1) else (*right, k, n), dtype)
    size = np.matmul(np.abs(up(a)), np.abs(up(b))) if dtype in INEXACT else 0
    compare(duet.matmul(x, y), np.matmul(up(a), up(b)), k, size, dtype)


@case('matrix products')
def vecdot(d):
    dtype = d.pick(INEXACT + INTEGERS)
    left, right = d.broadcastable(d.shape(0, 2, 3))
    k = d.size(9)
    (a, x), (b, y) = d.operand((*left, k), dtype), d.operand((*right, k), dtype)
    size, want = (np.abs(up(a)) * np.abs(up(b))).sum(-1), (np.conj(up(a)) * up(b)).sum(-1, dtype=up(a).dtype)
    compare(duet.vecdot(x, y), want, k, size, dtype)


@case('matrix products')
def tensordot(d):
    dtype = d.pick(INEXACT + INTEGERS)
    shape, axes = d.shape(0, 2, 3), d.shape(0, 2, 3)
    (a, x), (b, y) = d.operand(shape + axes, dtype), d.operand(axes + d.shape(0, 2, 3), dtype)
    n = len(axes)
    size = np.tensordot(np.abs(up(a)), np.abs(up(b)), n)
    compare(duet.tensordot(x, y, axes=n), np.tensordot(up(a), up(b), n), math.prod(axes), size, dtype)


@case('matrix products')
def cross(d):
    dtype = d.pick(INEXACT + INTEGERS)
    left, right = d.broadcastable(d.shape(0, 2, 3))
    (a, x), (b, y) = d.operand((*left, 3), dtype), d.operand((*right, 3), dtype)
    if d.chance(0.3) and len(left) == len(right):
        a, b = np.moveaxis(a, -1, 0), np.moveaxis(b, -1, 0)
        x, y, axis = duet.moveaxis(x, -1, 0), duet.moveaxis(y, -1, 0), 0
    else:
        axis = -1
    want = np.cross(up(a), up(b), axis=axis)
    size = np.linalg.norm(up(a), axis=axis, keepdims=True) * np.linalg.norm(up(b), axis=axis, keepdims=True)
    if dtype in INEXACT:
        return near(duet.linalg.cross(x, y, axis=axis), want, 8 * eps(dtype) * size + tiny(dtype), dtype)
    same(duet.linalg.cross(x, y, axis=axis), want, dtype)


@case('matrix products')
def mixed_types(d):
    """Operands of different types. The Kronecker product takes complex operands of one type only."""
    left, right = d.pick(INEXACT), d.pick(INEXACT)
    made, n = np.result_type(left, right), d.int(1, 5)
    (a, x), (b, y) = d.operand((n, n), left), d.operand((n, n), right)
    bound = 8 * n * eps(made) * (np.abs(up(a)) @ np.abs(up(b)) + np.abs(up(a)) * np.abs(up(b)) + 1)
    near(duet.add(x, y), up(a) + up(b), 2 * eps(made) * (np.abs(up(a)) + np.abs(up(b))), made, 'add')
    near(duet.multiply(x, y), up(a) * up(b), bound, made, 'multiply')
    near(duet.concat([x, y]), np.concatenate([up(a), up(b)]), 0, made, 'concat')
    near(duet.vecdot(x, y), (np.conj(up(a)) * up(b)).sum(-1), bound.max(-1), made, 'vecdot')
    near(duet.matmul(x, y), up(a) @ up(b), bound, made, 'matmul')
    near(x @ y, up(a) @ up(b), bound, made, 'the operator @')
    near(duet.tensordot(x, y, axes=1), up(a) @ up(b), bound, made, 'tensordot')
    near(duet.einsum('ij,jk->ik', x, y), up(a) @ up(b), bound, made, 'einsum')
    if left == right or made.kind == 'f':
        near(
            duet.kron(x, y),
            np.kron(up(a), up(b)),
            8 * eps(made) * np.abs(np.kron(up(a), up(b))),
            made,
            'kron',
        )


@case('convolutions')
def convolve(d):
    import scipy.signal

    dtype, rank, part = d.pick(FLOATS), d.int(1, 3), d.pick(['full', 'same', 'valid'])
    shape = tuple(d.int(1, 7) for _ in range(rank))
    small = tuple(d.int(1, n) for n in shape)
    if part == 'full' and d.chance(0.3):
        small = tuple(d.int(1, 7) for _ in range(rank))
    (a, x), (b, y) = d.operand(shape, dtype), d.operand(small, dtype)
    name = d.pick(['convolve', 'correlate', 'fftconvolve', 'fftcorrelate'])
    f = scipy.signal.convolve if 'conv' in name else scipy.signal.correlate
    want = f(up(a), up(b), part, 'direct')
    size = np.linalg.norm(up(a)) * np.linalg.norm(up(b))
    near(getattr(duet, name)(x, y, part), want, 60 * eps(dtype) * size + tiny(dtype), dtype)


@case('Fourier transforms')
def fft(d):
    name = d.pick(['fft', 'ifft', 'rfft', 'irfft', 'hfft', 'ihfft'])
    dtype = d.pick(FLOATS if name in ('rfft', 'ihfft') else INEXACT)
    shape = tuple(d.pick([1, 2, 3, 4, 5, 7, 8, 12, 13, 17, 31, 64, 100]) for _ in range(d.int(1, 3)))
    axis, norm = d.axis(len(shape)), d.pick(['backward', 'ortho', 'forward'])
    half = name in ('irfft', 'hfft')
    n = d.int(1, 14) if d.chance(0.4) or half and shape[axis] == 1 else None
    if d.chance(0.05):
        shape = tuple(0 if k != axis % len(shape) and d.chance(0.5) else s for k, s in enumerate(shape))
    a, x = d.operand(shape, dtype)
    transform(name, a, x, {'n': n, 'axis': axis, 'norm': norm}, dtype)


@case('Fourier transforms')
def fftn(d):
    name = d.pick(['fftn', 'ifftn', 'rfftn', 'irfftn'])
    dtype = d.pick(FLOATS if name == 'rfftn' else INEXACT)
    shape = tuple(d.pick([1, 2, 3, 4, 5, 6]) for _ in range(d.int(1, 4)))
    axes = [int(k) for k in d.rng.permutation(len(shape))[: d.int(1, min(3, len(shape)))]]
    s = [d.int(1, 7) for _ in axes] if d.chance(0.4) else [shape[k] for k in axes]
    if name == 'irfftn' and s[-1] == shape[axes[-1]]:
        s[-1] = max(2 * (shape[axes[-1]] - 1), 1)
    a, x = d.operand(shape, dtype)
    norm = d.pick(['backward', 'ortho', 'forward'])
    transform(name, a, x, {'s': tuple(s), 'axes': tuple(axes), 'norm': norm}, dtype)


def transform(name, a, x, more, dtype):
    got, want = getattr(duet.fft, name)(x, **more), getattr(np.fft, name)(up(a), **more)
    real = name in ('irfft', 'hfft', 'irfftn')
    single = dtype in ('float32', 'complex64')
    made = ['float64', 'float32', 'complex128', 'complex64'][2 * (not real) + single]
    size = np.linalg.norm(want) if want.size else 0  # no padded element grows in a unitary transform
    whole = np.linalg.norm(up(a))
    near(got, want, 60 * eps(dtype) * max(size, whole), made)


@case('Fourier transforms')
def shifts(d):
    dtype = d.pick(ALL)
    a, x = d.operand(d.shape(1, 3), dtype)
    axes = d.pick([None, d.axis(a.ndim)])
    name = d.pick(['fftshift', 'ifftshift'])
    same(getattr(duet.fft, name)(x, axes=axes), getattr(np.fft, name)(a, axes=axes), dtype)


_sobol = {}


@case('Sobol sequences')
def sobol(d):
    from scipy.stats import qmc

    dtype, dimensions, points = d.pick(FLOATS), d.pick([1, 2, 3, 5, 10, 33, 64]), d.size(70)
    first = d.pick([0, 0, 1, 7, 64, 1000])
    if dimensions not in _sobol:
        _sobol[dimensions] = qmc.Sobol(dimensions, scramble=False, bits=53).random(2048)
    want = _sobol[dimensions][first : first + points]
    if dtype == 'float32':
        want = np.floor(want * 2**24) / 2**24
    same(duet.random.sobol(points, dimensions, first=first, dtype=getattr(duet, dtype)), want, dtype)


@case('element-wise')
def complex_functions(d):
    """The exponential, logarithms, roots and powers of complex numbers."""
    dtype = d.pick(COMPLEX)
    a, x = d.operand(d.shape(), dtype)
    name = d.pick(['exp', 'log', 'sqrt', 'sin', 'cos', 'tanh', 'abs', 'multiply', 'divide'])
    if name in ('multiply', 'divide'):
        b, y = d.operand(d.smaller(a.shape), dtype)
        want = getattr(np, name)(up(a), up(b))
        return near(getattr(duet, name)(x, y), want, 8 * eps(dtype) * np.abs(want), dtype)
    want = getattr(np, name)(up(a))
    near(getattr(duet, name)(x), want, 64 * eps(dtype) * np.maximum(np.abs(want), 1), None)
