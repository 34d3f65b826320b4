"""Groups of parts of the CPU, compared with ordinary arrays."""

import gc
import pickle

import numpy as np
import pytest

import duet


@pytest.fixture
def group():
    with duet.on('cpu'):
        made = duet.Group.local(2)
    return made


def equal(x, y):
    x, y = np.asarray(x), np.asarray(y)
    assert x.dtype == y.dtype and x.shape == y.shape and np.array_equal(x, y)


def test_properties(group):
    assert (group.ranks, group.rank, group.near) == (2, 0, 2)
    assert 'CPU' in group.info() and '2 ranks' in repr(group)
    group.timeout(30)
    with pytest.raises(ValueError, match='seconds'):
        group.timeout(0)
    with pytest.raises(ValueError, match='rank'):
        duet.Group.local(-1)
    for wrong in (lambda: duet.Group(5), lambda: pickle.dumps(group)):
        with pytest.raises(TypeError):
            wrong()


def test_arrays(group, rng):
    a = rng.normal(size=(5, 3))
    x, w = group.split(a), group.replicated(a, dtype=duet.float32)
    equal(x, a)
    equal(w, a.astype(np.float32))
    assert duet.group_of(x) is group and duet.group_of(w) is group and duet.group_of(duet.ones(3)) is None
    assert duet.split_axis(x) == 0 and duet.split_axis(w) is None
    assert duet.split_axis(group.split(duet.ones((2, 4)) + 1, axis=-1)) == 1
    assert [duet.split_part(x, k) for k in range(2)] == [slice(0, 3), slice(3, 5)]
    assert duet.split_part(w, 1) == slice(None)
    z = group.zeros((4, 2), axis=1, dtype=duet.int32)
    equal(z, np.zeros((4, 2), np.int32))
    assert duet.split_axis(z) == 1 and duet.split_axis(group.zeros(3)) is None
    with pytest.raises(ValueError, match='axis 2'):
        group.split(a, axis=2)
    with pytest.raises(ValueError, match='group'):
        duet.split_part(duet.ones(3), 0)
    with pytest.raises(ValueError, match='rank'):
        duet.split_part(x, 2)


def test_files(group, rng, tmp_path):
    a = rng.normal(size=(7, 5))
    for axis in (0, 1):
        x, y = group.split(a, axis=axis), group.zeros((7, 5), axis=1 - axis)
        duet.save(tmp_path / 'x.npy', x)
        equal(np.load(tmp_path / 'x.npy'), a)
        duet.load(tmp_path / 'x.npy', into=y)
        equal(y, a)
        assert duet.split_axis(y) == 1 - axis


def test_statements(group, rng):
    a, b = rng.integers(-4, 5, size=(9, 6)).astype(float), rng.integers(-4, 5, size=(6, 2)).astype(float)
    x, w = group.split(a), group.replicated(b)
    y = x @ w + 1
    assert duet.group_of(y) is group and duet.split_axis(y) == 0
    equal(y, a @ b + 1)
    equal(duet.sum(y, axis=0), (a @ b + 1).sum(0))
    equal(x.T @ y, a.T @ (a @ b + 1))
    equal(x[3] + duet.ones(6), a[3] + 1)
    assert duet.split_axis(x[:, 1:4]) == 0
    x[2:7] = -1
    y += 2
    a[2:7] = -1
    equal(x, a)
    assert duet.split_axis(x) == 0 and duet.split_axis(y) == 0
    before = duet.stats().exchanges
    total = duet.sum(x)
    assert 'collective' in duet.explain(total)
    assert total.item() == a.sum() and duet.stats().exchanges > before


def test_several_results(group, rng):
    """The results of one statement are on the group, too."""
    a = rng.integers(-4, 5, size=(9, 6)).astype(float)
    x, w, plain = group.split(a), group.replicated(np.ones((6, 2))), duet.ones(3)
    y, total, product, rows, other = 2 * x, duet.sum(x, axis=0), x.T @ x, duet.sum(x @ w, axis=1), plain + 1
    duet.evaluate(y, total, product, rows, other)
    assert [duet.split_axis(z) for z in (y, total, product, rows)] == [0, None, None, 0]
    assert all(duet.group_of(z) is group for z in (y, total, product, rows))
    assert duet.group_of(other) is None
    equal(y, 2 * a)
    equal(total, a.sum(0))
    equal(product, a.T @ a)
    equal(rows, 2 * a.sum(1))


# Without a large epsilon, Adam divides a gradient of rounding errors by its own size.
@pytest.mark.parametrize('optimizer, options', [('SGD', {}), ('Adam', {'epsilon': 0.1})])
def test_training(group, rng, optimizer, options):
    a, b = rng.integers(-2, 3, size=(8, 3)).astype(float), rng.integers(-2, 3, size=8).astype(float)

    def train(w, x, t):
        steps = getattr(duet.optimizers, optimizer)(w, rate=0.01, **options)
        for _ in range(3):
            steps.step([duet.grad(duet.mean((x @ w - t) ** 2), w)])
        return w

    zeros = np.zeros(3)
    w = train(duet.variable(group.replicated(zeros)), group.split(a), group.split(b))
    want = train(duet.variable(duet.asarray(zeros)), duet.asarray(a), duet.asarray(b))
    assert duet.group_of(w) is group and duet.split_axis(w) is None
    assert np.allclose(w, want, rtol=1e-12, atol=0)
    value, (dw, db) = duet.value_and_grad(
        lambda w, b: duet.sum((group.split(a) @ w + b) ** 2), argnums=(0, 1)
    )(w, group.zeros(8, axis=0))
    assert duet.group_of(dw) is group and dw.shape == (3,) and db.shape == (8,)


def test_lifetime(group):
    x = group.split(np.arange(4.0))
    address = duet.group_of(x)._handle.value
    del group
    with duet.on('cpu'):
        y = duet.Group.local(2).split(np.arange(4.0))
    gc.collect()
    assert duet.group_of(y).ranks == 2 and duet.group_of(x)._handle.value == address
    equal(y * 2, 2 * np.arange(4.0))
    made = duet.group_of(y).replicated(y)
    del y
    gc.collect()
    equal(made, np.arange(4.0))


def test_two_groups(group):
    with duet.on('cpu'):
        other = duet.Group.local(3)
    with pytest.raises(ValueError, match='group'):
        (group.split(duet.ones(6)) + other.split(duet.ones(6))).evaluate()
