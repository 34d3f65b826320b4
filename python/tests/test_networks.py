"""Operators of networks that have several forms, and options that are words."""

import numpy as np
import pytest

import duet


def softmax(a, axis):
    e = np.exp(a - a.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def same(x, a):
    assert x.shape == a.shape and np.allclose(np.asarray(x), a, rtol=1e-10, atol=1e-12)


def test_softmax_and_norms(rng):
    a, scale, shift = rng.normal(size=(3, 4, 5)), rng.normal(size=5), rng.normal(size=5)
    x, s, t = map(duet.asarray, (a, scale, shift))
    for axis in range(-3, 3):
        same(duet.softmax(x, axis), softmax(a, axis))
        same(duet.log_softmax(x, axis=axis), np.log(softmax(a, axis)))
    same(duet.softmax(x), softmax(a, -1))
    for axis in (-1, 1, (1, 2), (0, 2)):
        mean, var = a.mean(axis=axis, keepdims=True), a.var(axis=axis, keepdims=True)
        same(duet.layer_norm(x, s, t, 0.5, axis), (a - mean) / np.sqrt(var + 0.5) * scale + shift)
        square = (a * a).mean(axis=axis, keepdims=True)
        same(duet.rms_norm(x, s, 0.5, axis=axis), a / np.sqrt(square + 0.5) * scale)
    ones = np.eye(4)[[[0, 3], [1, 1]]]
    indices = duet.asarray([[0, 3], [1, 1]])
    same(duet.one_hot(indices, 4, duet.float64), ones)
    same(duet.one_hot(indices, 4, duet.float64, 0), np.moveaxis(ones, -1, 0))
    with pytest.raises(IndexError):
        duet.softmax(x, 3)


@pytest.mark.parametrize('ignored', [None, 2, -100])
@pytest.mark.parametrize('weighted', [False, True])
def test_losses_by_class(rng, ignored, weighted):
    a, target, weights = rng.normal(size=(6, 4, 3)), rng.integers(0, 4, (6, 3)), rng.uniform(0.5, 2, 4)
    if ignored is not None:
        target[0, 0] = ignored
    counts = target != ignored
    picked = np.where(counts, target, 0)
    weight = np.where(counts, weights[picked] if weighted else 1.0, 0.0)
    each = -np.take_along_axis(np.log(softmax(a, 1)), picked[:, None], 1)[:, 0] * weight
    x, t = duet.asarray(a), duet.asarray(target)
    more = {'ignored': ignored, 'weights': duet.asarray(weights) if weighted else None}
    for f, y in (duet.cross_entropy_loss, x), (duet.nll_loss, duet.log_softmax(x, 1)):
        same(f(y, t, reduction='none', **more), each)
        same(f(y, t, reduction='sum', **more), each.sum())
        same(f(y, t, **more), each.sum() / weight.sum())


def test_einsum(rng):
    a, b, c = rng.normal(size=(3, 4)), rng.normal(size=(4, 5)), rng.normal(size=(5, 5))
    x, y, z = map(duet.asarray, (a, b, c))
    same(duet.einsum('ij,jk->ik', x, y), a @ b)
    same(duet.einsum(x, y, 'ij,jk->ik'), a @ b)
    same(duet.einsum('ii->i', z), np.diagonal(c))
    same(duet.einsum('ij,jk,kl->il', x, y, z), a @ b @ c)
    for wrong in ((), (x,), ('ij->i',), ('ij', x, 'ij'), (x, 'ij', y)):
        with pytest.raises(TypeError):
            duet.einsum(*wrong)


def test_words():
    x = duet.asarray([[[[1.0, 2.0], [3.0, 4.0]]]])
    wide = duet.interpolate(x, size=(0, 0, 2, 3), mode='linear', align='corners')
    assert wide.tolist() == [[[[1.0, 1.5, 2.0], [3.0, 3.5, 4.0]]]]
    assert duet.interpolate(x, size=(0, 0, 1, 4)).tolist() == [[[[3.0, 3.0, 4.0, 4.0]]]]
    row = duet.asarray([1.0, 2.0, 3.0])
    assert duet.pad(row, before=(2,), after=(1,), mode='wrap').tolist() == [2.0, 3.0, 1.0, 2.0, 3.0, 1.0]
    assert duet.scatter_nd(row, duet.asarray([[2], [0]]), duet.asarray([5.0, 7.0]), 'add').tolist() == [
        8,
        2,
        8,
    ]
    assert duet.max_pool1d(duet.asarray([[[1.0, 1.0]]]), window=2, ties='shared').tolist() == [[[1.0]]]
    assert duet.cumsum_with(row, 0, exclusive=1, reverse=1).tolist() == [5.0, 3.0, 0.0]
    with pytest.raises(ValueError, match='nearest, linear, cubic'):
        duet.interpolate(x, size=(0, 0, 4, 4), mode='edge')
    with pytest.raises(ValueError, match='constant, edge'):
        duet.pad(row, before=(1,), after=(1,), mode='linear')


def test_overlapping_arrays():
    a = np.lib.stride_tricks.as_strided(np.arange(6.0), (4, 3), (8, 8))
    same(duet.asarray(a), a)
    same(duet.from_dlpack(a) + 1.0, a + 1)
