"""Cases of sparse matrices, compared with those of SciPy."""

import numpy as np

import duet

from . import INEXACT, case, check, eps, near, same, shaped, tiny, up

FAMILY = 'sparse matrices'


def drawn(d, m, n, dtype):
    """A random sparse matrix as an array of SciPy, which may store zeros, and as one of Duet."""
    import scipy.sparse as sp

    density = d.pick([0.0, 0.1, 0.3, 0.7, 1.0])
    a = d.array((m, n), dtype)
    if d.chance(0.3):
        a = np.round(a)
    stored = d.rng.random((m, n)) < density
    rows, columns = np.nonzero(stored)
    indptr = np.concatenate([[0], np.cumsum(stored.sum(1))])
    s = sp.csr_array((a[rows, columns], columns, indptr), shape=(m, n))
    if d.chance(0.5):
        return s, duet.sparse.from_scipy(s)
    kinds = 'int64', 'int32'
    parts = [d.given(p) for p in (s.data, s.indices.astype(d.pick(kinds)), s.indptr.astype(d.pick(kinds)))]
    return s, duet.sparse.from_csr(*parts, (m, n))


def sizes(d):
    most = 9 if d.chance(0.9) else 60
    return d.size(most), d.size(most), d.size(6)


def dense(a):
    return up(a.toarray())


def agree(s, a, bound, dtype):
    """Checks the elements of a sparse result, which must be a valid CSR matrix."""
    check(s.shape == a.shape, f'the shape is {s.shape}, and not {a.shape}')
    indptr, indices = np.asarray(s.indptr), np.asarray(s.indices)
    check(indptr[0] == 0 and indptr[-1] == s.nnz == indices.size, 'indptr is', indptr)
    check(np.all(np.diff(indptr) >= 0), 'indptr is', indptr)
    for i in range(a.shape[0]):
        check(np.all(np.diff(indices[indptr[i] : indptr[i + 1]]) > 0), 'columns are not in order', indices)
    near(s.to_dense(), a, bound, dtype)


@case(FAMILY)
def sparse_products(d):
    dtype, (m, n, k) = d.pick(INEXACT), sizes(d)
    a, s = drawn(d, m, n, dtype)
    b, unit = dense(a), 2 * (m + n + 4) * eps(dtype)
    v, x = d.operand((n,) if d.chance(0.3) else (n, k), dtype, 0.2)
    near(s @ x, a @ up(v), unit * (np.abs(b) @ np.abs(up(v))) + tiny(dtype), dtype, 'A X')
    v, x = d.operand((m,) if d.chance(0.3) else (m, k), dtype, 0.2)
    bound = unit * (np.abs(b.T) @ np.abs(up(v))) + tiny(dtype)
    near(s.transposed_matmul(x), a.T @ up(v), bound, dtype, 'A^T X')
    near(x.T @ s if v.ndim > 1 else x @ s, (a.T @ up(v)).T, bound.T, dtype, 'X A')


@case(FAMILY)
def sparse_sums(d):
    dtype, (m, n, _) = d.pick(INEXACT), sizes(d)
    a, s = drawn(d, m, n, dtype)
    axis, b = d.pick([None, 0, 1]), dense(a)
    near(s.sum(axis), b.sum(axis), 2 * (m * n + 4) * eps(dtype) * np.abs(b).sum(axis), dtype)


@case(FAMILY)
def sddmm(d):
    dtype, (m, n, k) = d.pick(INEXACT), sizes(d)
    a, s = drawn(d, m, n, dtype)
    rows, columns = np.repeat(np.arange(m), np.diff(a.indptr)), a.indices
    (u, x), (v, y) = d.operand((m, k), dtype), d.operand((k, n), dtype)
    want, size = (up(u) @ up(v))[rows, columns], (np.abs(up(u)) @ np.abs(up(v)))[rows, columns]
    near(s.sddmm(x, y), want, 2 * (k + 4) * eps(dtype) * size + tiny(dtype), dtype, 'sddmm')
    w, z = d.operand((m, n), dtype)
    same(s.take(z), w[rows, columns], dtype, 'take')


@case(FAMILY)
def sparse_elements(d):
    dtype, (m, n, _) = d.pick(INEXACT), sizes(d)
    (a, s), (b, t) = drawn(d, m, n, dtype), drawn(d, m, n, dtype)
    p, q = dense(a), dense(b)
    unit = 4 * eps(dtype)
    agree(s + t, p + q, unit * (np.abs(p) + np.abs(q)), dtype)
    agree(s - t, p - q, unit * (np.abs(p) + np.abs(q)), dtype)
    agree(s * t, dense(a.multiply(b)), unit * np.abs(p * q) + tiny(dtype), dtype)
    agree(-s * 2, -p * 2, 0, dtype)
    w, z = d.operand((m, n), dtype)
    agree(s * z, p * up(w), unit * np.abs(p * up(w)) + tiny(dtype), dtype)
    agree(s.conj(), np.conj(p), 0, dtype)
    check((s * t).nnz <= min(s.nnz, t.nnz), 'an element-wise product has too many elements')


@case(FAMILY)
def sparse_product(d):
    """Products of two sparse matrices, transposes and rows."""
    dtype, (m, n, k) = d.pick(INEXACT), sizes(d)
    (a, s), (b, t) = drawn(d, m, n, dtype), drawn(d, n, k, dtype)
    p, q = dense(a), dense(b)
    agree(s @ t, dense(a @ b), 2 * (n + 4) * eps(dtype) * (np.abs(p) @ np.abs(q)) + tiny(dtype), dtype)
    agree(s.T, p.T, 0, dtype)
    check(s.T.nnz == s.nnz, 'a transpose has another number of elements')
    start, stop = d.int(-m - 1, m + 1), d.int(-m - 1, m + 1)
    agree(s[start:stop], p[start:stop], 0, dtype)
    agree((s * 2).T, 2 * p.T, 0, dtype)


@case(FAMILY)
def conversions(d):
    """COO with duplicates in any order, dense matrices, and back."""
    import scipy.sparse as sp

    dtype, (m, n, _) = d.pick(INEXACT), (d.int(1, 9), d.int(1, 9), 0)
    count = d.pick([0, 1, 5, 20])
    rows, columns = d.rng.integers(0, m, count), d.rng.integers(0, n, count)
    a, x = d.operand((count,), dtype)
    kind = d.pick(['int64', 'int32'])
    places = d.given(rows.astype(kind)), d.given(columns.astype(kind))
    want = sp.coo_array((up(a), (rows, columns)), shape=(m, n))
    s = duet.sparse.from_coo(x, places, (m, n), sum_duplicates=True)
    size = sp.coo_array((np.abs(up(a)), (rows, columns)), shape=(m, n)).toarray()
    agree(s, want.toarray(), (count + 2) * eps(dtype) * size, dtype)
    check(s.nnz == len(set(zip(rows.tolist(), columns.tolist()))), 'the number of elements is', s.nnz)
    values, (r, c) = s.to_coo()
    same(np.asarray(s.to_dense())[np.asarray(r), np.asarray(c)], np.asarray(values), dtype, 'to_coo')
    agree(duet.sparse.from_coo(values, (r, c), (m, n)), np.asarray(s.to_dense()), 0, dtype)
    made = s.to_scipy()
    check(made.has_canonical_format and made.shape == (m, n), 'to_scipy gives no canonical matrix')
    same(made.toarray(), np.asarray(s.to_dense()), dtype, 'to_scipy')
    b = d.array((m, n), dtype) * (d.rng.random((m, n)) < 0.4)
    t = duet.sparse.from_dense(d.given(b.astype(dtype)))
    agree(t, b, 0, dtype)
    check(t.nnz == np.count_nonzero(b), 'the number of elements of a dense matrix is', t.nnz)
    duplicate = len(set(zip(rows.tolist(), columns.tolist()))) < count
    try:
        duet.sparse.from_coo(x, places, (m, n))
        check(not duplicate, 'from_coo accepts duplicates')
    except duet.ValueError as error:
        check(duplicate and 'same place' in str(error), str(error))


def system(d, dtype):
    import scipy.sparse as sp

    n = d.int(1, 9)
    a, _ = drawn(d, n, n, dtype)
    k = d.pick([1, 10])
    a = sp.csr_array(a + sp.csr_array(np.diag(k * (1 + d.rng.random(n))).astype(dtype)))
    a.sort_indices()
    return n, a.astype(dtype)


def solved(got, a, b, dtype):
    """Checks the residual of each column."""
    got = up(shaped(got, b.shape, dtype))
    columns, b = (got[:, None], b[:, None]) if b.ndim == 1 else (got, b)
    rest = np.abs(b - a @ columns).sum(0)
    bound = 60 * len(a) * eps(dtype) * np.abs(a).sum(0).max() * np.abs(columns).sum(0)
    near(rest, np.zeros(rest.shape), bound + tiny(dtype), what='B - A X')


@case(FAMILY)
def sparse_triangular(d):
    dtype = d.pick(INEXACT)
    n, a = system(d, dtype)
    lower, unit, transposed = d.chance(0.5), d.chance(0.3), d.chance(0.3)
    b, y = d.operand((n,) if d.chance(0.3) else (n, d.size(4)), dtype)
    t = np.tril(dense(a)) if lower else np.triu(dense(a))
    if unit:
        t = np.where(np.eye(n) > 0, 1, t)
    t = t.T if transposed else t
    s = duet.sparse.from_scipy(a)
    try:
        got = s.solve_triangular(y, lower=lower, unit=unit, transposed=transposed).evaluate()
    except duet.LinAlgError as error:
        return check(np.any(np.diag(t) == 0), str(error))
    solved(got, t, up(b), dtype)


@case(FAMILY)
def sparse_solve(d):
    dtype, transposed = d.pick(INEXACT), d.chance(0.3)
    n, a = system(d, dtype)
    b, y = d.operand((n,) if d.chance(0.3) else (n, d.size(4)), dtype)
    p = dense(a).T if transposed else dense(a)
    if np.linalg.cond(p) > 1e-2 / eps(dtype):
        return
    solved(duet.sparse.from_scipy(a).solve(y, transposed=transposed).evaluate(), p, up(b), dtype)
