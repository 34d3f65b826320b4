"""Sparse matrices, compared with SciPy's."""

import copy
import os
import pickle

import numpy as np
import pytest

import duet

sp = pytest.importorskip('scipy.sparse')
splinalg = pytest.importorskip('scipy.sparse.linalg')
TYPES = [np.float32, np.float64, np.complex64, np.complex128]


def draw(rng, rows, columns, dtype=np.float64, density=0.3):
    """Small integers, whose sums are exact."""
    a = rng.integers(1, 5, size=(rows, columns)) * (rng.random((rows, columns)) < density)
    if np.dtype(dtype).kind == 'c':
        a = a + 1j * rng.integers(-3, 3, size=a.shape) * (a != 0)
    return sp.csr_array(a.astype(dtype))


def equal(x, y):
    x, y = np.asarray(x), np.asarray(y)
    assert x.dtype == y.dtype and x.shape == y.shape and np.array_equal(x, y)


def same(s, a):
    a = a.tocsr()
    a.sort_indices()
    back = s.to_scipy()
    assert back.shape == a.shape and back.dtype == a.dtype
    assert np.array_equal(back.toarray(), a.toarray())


@pytest.mark.parametrize('dtype', TYPES)
def test_scipy(rng, dtype):
    a = draw(rng, 17, 12, dtype)
    s = duet.sparse.from_scipy(a)
    same(s, a)
    same(duet.sparse.from_scipy(a.tocoo()), a)
    assert s.shape == (17, 12) and s.nnz == a.nnz and str(s.dtype) == str(a.dtype)
    equal(s.values, a.data)
    equal(s.indices, a.indices)
    equal(s.indptr, a.indptr)
    equal(s.to_dense(), a.toarray())
    values, (row, column) = s.to_coo()
    same(duet.sparse.from_coo(values, (row, column), s.shape), a)
    same(duet.sparse.from_dense(duet.asarray(a.toarray())), a)
    same(s.T, a.T)
    same(s[3:9], a[3:9])
    same(s.copy(), a)
    assert 'elements' in repr(s)


@pytest.mark.parametrize('dtype', TYPES)
def test_products(rng, dtype):
    a, b = draw(rng, 17, 12, dtype), draw(rng, 12, 9, dtype)
    s, t = duet.sparse.from_scipy(a), duet.sparse.from_scipy(b)
    x, y = draw(rng, 12, 5, dtype, 1).toarray(), draw(rng, 17, 5, dtype, 1).toarray()
    equal(s @ duet.asarray(x), a @ x)
    equal(s @ duet.asarray(x[:, 0]), a @ x[:, 0])
    equal(s.transposed_matmul(duet.asarray(y)), a.T @ y)
    equal(duet.asarray(y.T) @ s, y.T @ a)
    equal(duet.asarray(y[:, 1]) @ s, y[:, 1] @ a)
    same(s @ t, a @ b)
    equal(s.sum(0), a.sum(0))
    equal(s.sum(1), a.sum(1))
    equal(s.sum(), a.sum())
    dense = draw(rng, 17, 12, dtype, 1).toarray()
    equal(s.sddmm(duet.asarray(y), duet.asarray(x.T)), (y @ x.T)[a.tocoo().coords])
    equal(s.take(duet.asarray(dense)), dense[a.tocoo().coords])


def test_elements(rng):
    a, b = draw(rng, 8, 6), draw(rng, 8, 6)
    s, t = duet.sparse.from_scipy(a), duet.sparse.from_scipy(b)
    same(s + t, a + b)
    same(s - t, a - b)
    same(s * t, a * b)
    same(2 * s, 2 * a)
    same(s / 2, a / 2)
    same(-s, -a)
    dense = rng.integers(1, 9, size=(8, 6)).astype(float)
    same(s * duet.asarray(dense), a * dense)
    same((s * 2) @ duet.sparse.from_scipy(b.T.tocsr()), (2 * a) @ b.T)
    same(s.with_values(duet.exp(s.values)).with_values(s.values), a)


@pytest.mark.skipif(os.environ.get('DUET_BACKEND') == 'gpu', reason='the GPU solves no sparse systems')
def test_systems(rng):
    a = (draw(rng, 30, 30) + 40 * sp.eye_array(30)).tocsr()
    s, b = duet.sparse.from_scipy(a), rng.normal(size=(30, 3))
    try:
        x = np.asarray(s.solve(duet.asarray(b)))
        assert np.allclose(x, splinalg.spsolve(a.tocsc(), b), rtol=1e-12, atol=1e-13)
        assert np.allclose(a.T @ np.asarray(s.solve(duet.asarray(b), transposed=True)), b, rtol=1e-12)
    except duet.NotImplementedError as error:
        assert 'SuperLU' in str(error)
    x = np.asarray(s.solve_triangular(duet.asarray(b), lower=True))
    assert np.allclose(sp.tril(a) @ x, b, rtol=1e-12)


def test_gradients(rng):
    a, x = draw(rng, 7, 5), rng.normal(size=5)
    s = duet.sparse.from_scipy(a)
    of_x = duet.grad(lambda v: duet.sum((s @ v) ** 2))(duet.asarray(x))
    assert np.allclose(np.asarray(of_x), 2 * a.T @ (a @ x))
    of_values = duet.grad(lambda v: duet.sum((s.with_values(v) @ duet.asarray(x)) ** 2))(s.values)
    assert np.allclose(np.asarray(of_values), np.outer(2 * (a @ x), x)[a.tocoo().coords])


def by_differences(f, v):
    """The gradient of f with respect to the elements of v."""
    made = []
    for k in range(len(v)):
        step = np.zeros(len(v))
        step[k] = 1e-6
        made.append((float(f(duet.asarray(v + step))) - float(f(duet.asarray(v - step)))) / 2e-6)
    return made


@pytest.mark.parametrize(
    'name',
    ['transposed', 'rows', 'copy', 'negative', 'sum', 'difference', 'product', 'number', 'dense', 'both'],
)
def test_gradients_of_other_matrices(rng, name):
    s, t = (duet.sparse.from_scipy(draw(rng, 7, 5, density=0.5)) for _ in range(2))
    dense = duet.asarray(rng.normal(size=(7, 5)))
    make = {
        'transposed': lambda u: u.T,
        'rows': lambda u: u[2:5],
        'copy': lambda u: u.copy(),
        'negative': lambda u: -u,
        'sum': lambda u: u + t,
        'difference': lambda u: t - u,
        'product': lambda u: u * t,
        'number': lambda u: 3 * u / 2.0,
        'dense': lambda u: u * dense,
        'both': lambda u: (u + u * t).T[1:],
    }[name]
    values = rng.normal(size=s.nnz)
    x = rng.normal(size=make(s).shape[1])

    def loss(v):
        return duet.sum(duet.sin(make(s.with_values(v)) @ duet.asarray(x)))

    other = make(s.with_values(duet.asarray(values)))
    variable = make(s.with_values(duet.variable(duet.asarray(values))))
    same(variable, other.to_scipy())
    assert np.allclose(
        np.asarray(duet.grad(loss)(duet.asarray(values))), by_differences(loss, values), atol=1e-8
    )
    assert np.allclose(
        np.asarray(duet.grad(lambda y: duet.sum((other @ y) ** 2))(duet.asarray(x))),
        2 * other.to_scipy().T @ (other.to_scipy() @ x),
    )


def test_places_and_files_of_variables(tmp_path):
    s = duet.sparse.from_dense(duet.asarray([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))
    t = s.with_values(duet.variable(s.values) * 2)
    values, (row, column) = t.to_coo()
    equal(values, np.array([2.0, 4.0, 6.0]))
    assert row.tolist() == [0, 0, 1] and column.tolist() == [0, 2, 1]
    t.save(str(tmp_path / 't.mtx'))
    same(duet.sparse.load(str(tmp_path / 't.mtx')), t.to_scipy())


def test_files(rng, tmp_path):
    import scipy.io

    a = draw(rng, 9, 7) / 3
    path = str(tmp_path / 'a.mtx')
    duet.sparse.from_scipy(a).save(path)
    same(duet.sparse.load(path), a)
    assert np.array_equal(scipy.io.mmread(path).toarray(), a.toarray())
    scipy.io.mmwrite(path, a)
    same(duet.sparse.load(path), a)


def test_errors(rng):
    s = duet.sparse.from_scipy(draw(rng, 4, 3))
    with pytest.raises(ValueError, match='x must have 3 rows'):
        s @ duet.ones(4)
    with pytest.raises(ValueError, match='same place'):
        duet.sparse.from_coo(duet.ones(2), (duet.asarray([0, 0]), duet.asarray([1, 1])), (2, 2))
    with pytest.raises(ValueError, match='ascending'):
        duet.sparse.from_csr(duet.ones(2), duet.asarray([1, 0]), duet.asarray([0, 2]), (1, 2))
    with pytest.raises(ValueError, match='same sizes'):
        s + s.T
    with pytest.raises(duet.IndexError, match='range of rows'):
        s[2]
    if os.environ.get('DUET_BACKEND') != 'gpu':  # which solves no sparse systems
        with pytest.raises(duet.LinAlgError, match='singular'):
            duet.sparse.from_dense(duet.zeros((2, 2))).solve_triangular(duet.ones(2)).evaluate()


def test_copies_and_gradients_that_do_not_exist():
    s = duet.sparse.from_dense(duet.asarray([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))
    for made in (copy.deepcopy(s), pickle.loads(pickle.dumps(s)), copy.copy(s)):
        assert np.array_equal(np.asarray(made.to_dense()), np.asarray(s.to_dense()))
    with pytest.raises(ValueError, match='square'):
        s.solve(duet.ones((2,)))
    with pytest.raises(ValueError, match='square'):
        s.solve_triangular(duet.ones((2,)))
    other = np.array([[1.0, 10.0, 100.0]] * 2)
    assert np.array_equal(np.asarray((s * other).to_dense()), [[1, 0, 200], [0, 30, 0]])
    with pytest.raises(TypeError, match='products of two sparse matrices have no gradients'):
        duet.grad(lambda v: (s.T @ s.with_values(v)).sum())(s.values)


def test_gradients_after_the_value():
    a = duet.variable(duet.asarray([1.0, 2.0, 3.0]))
    h = a * a
    total = duet.sum(h)
    g = duet.grad(total, a)
    assert float(total) == 14.0
    assert np.array_equal(np.asarray(g), [2.0, 4.0, 6.0])


def test_sums_of_other_types():
    """They are refused, also where a variable is in one of them."""
    a, b = (duet.sparse.from_dense(duet.asarray(np.eye(2), dtype=t)) for t in (duet.float32, duet.float64))
    v = a.with_values(duet.variable(duet.ones(2, dtype=duet.float32)))
    for first in a, v:
        for f in (lambda: first + b, lambda: first * b):
            with pytest.raises(TypeError, match='same element type'):
                f()
