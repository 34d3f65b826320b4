"""Protocols of Python, files, random numbers."""

import copy
import pickle

import numpy as np
import pytest

import duet


def test_pickle_and_copy():
    for a in (
        np.arange(6.0).reshape(2, 3),
        np.array(True),
        np.array([1 + 2j], dtype=np.complex64),
        np.zeros((0, 3)),
    ):
        x = duet.asarray(a)
        for y in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
            assert y.dtype is x.dtype and np.array_equal(np.asarray(y), a)
    assert pickle.loads(pickle.dumps(duet.float32)) is duet.float32
    assert pickle.loads(pickle.dumps(duet.cpu)) is duet.cpu


def test_protocols():
    x = duet.asarray([[1, 2], [3, 4]])
    assert len(x) == 2 and [int(row[0]) for row in x] == [1, 3] and 3 in x and 5 not in x
    assert list(range(5))[duet.asarray(2)] == 2 and complex(duet.asarray(2.0)) == 2 + 0j
    assert (np.float64(2) * duet.ones((2,))).tolist() == [2.0, 2.0]
    assert isinstance(np.ones(2) + duet.ones((2,)), duet.Array)
    assert (x == None) is False  # noqa: E711
    with pytest.raises(TypeError):
        hash(x)
    with pytest.raises(TypeError):
        x + 'a'
    assert x.__array_namespace__() is duet


def test_files(tmp_path):
    x = duet.asarray(np.arange(6.0).reshape(2, 3))
    duet.save(tmp_path / 'x.npy', x)
    assert np.array_equal(np.load(tmp_path / 'x.npy'), np.asarray(x))
    duet.save(tmp_path / 'all.npz', x=x, y=x + 1.0)
    assert np.array_equal(np.asarray(duet.load(tmp_path / 'all.npz', 'y')), np.asarray(x) + 1)
    np.save(tmp_path / 'z.npy', np.arange(3, dtype=np.int16))
    assert duet.load(tmp_path / 'z.npy').tolist() == [0, 1, 2]
    y = x + 1
    assert duet.load(tmp_path / 'x.npy', into=y) is y and np.array_equal(np.asarray(y), np.asarray(x))
    wide = duet.zeros((2, *x.shape), dtype=x.dtype)
    duet.load(tmp_path / 'x.npy', into=wide[1])
    assert np.array_equal(np.asarray(wide), np.stack([np.zeros(x.shape), np.asarray(x)]))
    with pytest.raises(TypeError):
        duet.load(tmp_path / 'x.npy', into=3)
    with pytest.raises(TypeError):
        duet.load(tmp_path / 'x.npy', 'x', into=y)
    with pytest.raises(ValueError, match='the array of the file is'):
        duet.load(tmp_path / 'z.npy', into=y)
    duet.save(tmp_path / 'x.mtx', x)
    assert np.array_equal(np.asarray(duet.load(tmp_path / 'x.mtx')), np.asarray(x))


def test_random_numbers():
    for dtype in (duet.float32, duet.float64):
        u = np.asarray(duet.random.uniform((10000,), 5, -1, 1, dtype=dtype))
        assert u.dtype == dtype.name and -1 <= u.min() and u.max() < 1 and abs(u.mean()) < 0.05
        n = np.asarray(duet.random.normal((10000,), 6, 3, 2, dtype=dtype))
        assert abs(n.mean() - 3) < 0.1 and abs(n.std() - 2) < 0.1
    assert sorted(duet.random.permutation(9, 1).tolist()) == list(range(9))
    assert set(duet.random.integers((1000,), 2, 3, 6).tolist()) == {3, 4, 5}
    assert (
        abs(float(duet.mean(duet.astype(duet.random.bernoulli((10000,), 3, 0.25), duet.float64))) - 0.25)
        < 0.03
    )


def test_half_precision():
    x = duet.asarray([1.0, 65504.0, 1e-8, -2.5], dtype=duet.float16)
    assert np.array_equal(np.asarray(x), np.array([1.0, 65504.0, 1e-8, -2.5], dtype=np.float16))
    y = duet.asarray([1.0, 3.140625, -1e30], dtype=duet.bfloat16)
    assert y.tolist()[:2] == [1.0, 3.140625] and (y * 2.0).dtype is duet.bfloat16
    assert (duet.asarray([1.0], dtype=duet.float16) + y[:1]).dtype is duet.float32
