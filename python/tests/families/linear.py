"""Cases of linear algebra: stacks of matrices, whose leading axes broadcast. docs/semantics.md has the
bounds."""

import numpy as np

import duet
from duet import linalg
from duet._library import lib

from . import COMPLEX, FLOATS, INEXACT, case, check, eps, near, same, shaped, tiny, up

FAMILY = 'linear algebra'


def norm1(a):
    """The largest column sum of each matrix, with all axes kept."""
    return np.abs(a).sum(axis=-2, keepdims=True).max(axis=-1, keepdims=True, initial=0)


def herm(a):
    return np.conj(np.swapaxes(a, -1, -2))


def values(a):
    """Singular values; there may be none."""
    return np.linalg.svd(a, compute_uv=False) if a.size else np.zeros((*a.shape[:-2], min(a.shape[-2:])))


def condition(a):
    """A bound of the condition of square matrices for norm1, with all axes kept."""
    n = a.shape[-1]
    if not a.size:
        return np.ones((*a.shape[:-2], 1, 1))
    s = values(up(a))
    return norm1(a) * np.sqrt(n) / s[..., -1:, None]


def batch_of(d):
    return d.pick([(), (), (2,), (3,), (1,), (2, 3), (3, 1), (0,), (2, 0), (7,)])


def side(d):
    return d.pick([0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 12]) if d.chance(0.97) else d.pick([17, 33, 65])


def matrices(d, batch, m, n, dtype):
    """Random matrices: normal numbers, integers, of low rank, or with columns of different sizes."""
    how = d.int(0, 9)
    a = d.array((*batch, m, n), dtype)
    if how == 0:
        a = np.round(a)
    elif how == 1 and min(m, n) > 1:
        k = d.int(1, min(m, n) - 1)
        a = np.round(d.array((*batch, m, k), dtype)) @ np.round(d.array((*batch, k, n), dtype))
    elif how == 2:
        a = a * 10.0 ** d.int(-4, 4)
    elif how == 3:
        a = a * 10.0 ** d.rng.integers(-2, 3, n)
    elif how == 4 and dtype in ('float32', 'complex64'):
        a = a * 2.0 ** d.int(-90, 90)
    return np.ascontiguousarray(a).astype(dtype)


def stack(d, batch, m, n, dtype):
    """Matrices as arrays of NumPy and of Duet, which may be broadcast along leading axes."""
    if batch and d.chance(0.15):
        a = matrices(d, tuple(1 if d.chance(0.5) else k for k in batch), m, n, dtype)
        return np.broadcast_to(a, (*batch, m, n)), duet.broadcast_to(d.given(a), (*batch, m, n))
    a = matrices(d, batch, m, n, dtype)
    return a, d.given(a)


def definite(d, batch, n, dtype):
    a = up(d.array((*batch, n, n), dtype))
    return (a @ herm(a) + d.pick([0.01, 1, 10]) * np.eye(n)).astype(dtype)


def hermitian(d, batch, n, dtype):
    a = matrices(d, batch, n, n, dtype)
    return ((a + herm(a)) / 2).astype(dtype)


def part_type(dtype):
    return {'complex64': 'float32', 'complex128': 'float64'}.get(dtype, dtype)


def attempt(f, a):
    """The result of f, or None where a matrix is singular and has none."""
    try:
        return f().evaluate()
    except duet.LinAlgError as error:
        worst = np.max(condition(a), initial=0) * eps(a.dtype) * max(a.shape[-1], 1)
        check(not worst <= 1e-2, f'{error}, though the condition is only {worst / eps(a.dtype):.3g}')
        return None


def has_gap(s, limit):
    """Are all singular values far from the limit?"""
    t = s / np.where(s[..., :1] > 0, s[..., :1], 1)
    return np.all((t > 1000 * limit) | (t < limit / 50))


@case(FAMILY)
def inv(d):
    dtype, n = d.pick(INEXACT), side(d)
    a, x = stack(d, batch_of(d), n, n, dtype)
    got = attempt(lambda: d.pick([linalg.inv, duet.inv])(x), a)
    if got is None:
        return
    got = up(shaped(got, a.shape, dtype))
    size, unit, a = norm1(up(a)) * norm1(got), np.eye(n), up(a)
    error = np.minimum(norm1(a @ got - unit), norm1(got @ a - unit))
    near(error, np.zeros(error.shape), 30 * max(n, 1) * eps(dtype) * size + tiny(dtype), what='1 - A X')
    kappa = condition(a)
    if np.all(kappa < 0.01 / eps(dtype)):
        near(got, np.linalg.inv(a), 60 * max(n, 1) * eps(dtype) * kappa * norm1(got) + tiny(dtype))


@case(FAMILY)
def solve(d):
    dtype, n = d.pick(INEXACT), side(d)
    batch = batch_of(d)
    left, right = d.broadcastable(batch)
    a, x = stack(d, left, n, n, dtype)
    b = d.array((n,) if d.chance(0.3) else (*right, n, d.size()), dtype)
    y = d.given(b)
    refined = dtype in ('float64', 'complex128') and d.chance(0.2)
    how = (lambda x, y: duet.solve(x, y, refine=1)) if refined else d.pick([linalg.solve, duet.solve])
    got = attempt(lambda: how(x, y), a)
    if got is None:
        return
    a, b = up(a), up(b)
    want_shape = np.matmul(a, b).shape
    got = up(shaped(got, want_shape, dtype))
    columns = got[..., None] if b.ndim == 1 else got
    rest = np.abs((b[:, None] if b.ndim == 1 else b) - a @ columns).sum(-2, keepdims=True)
    size = norm1(a) * np.abs(columns).sum(-2, keepdims=True)
    near(rest, np.zeros(rest.shape), (30 + n) * eps(dtype) * size + tiny(dtype), what='B - A X')
    kappa = condition(a)
    if np.all(kappa < 0.01 / eps(dtype)) and n:
        want = np.linalg.solve(a, b)
        size = np.abs(columns).sum(-2, keepdims=True) * kappa
        near(columns, want[..., None] if b.ndim == 1 else want, 60 * n * eps(dtype) * size + tiny(dtype))


@case(FAMILY)
def det(d):
    dtype, n = d.pick(INEXACT), side(d)
    a, x = stack(d, batch_of(d), n, n, dtype)
    got, a = d.pick([linalg.det, duet.det])(x), up(a)
    want, kappa = np.linalg.det(a), condition(a)[..., 0, 0]
    rows = np.prod(np.sqrt((np.abs(a) ** 2).sum(-1)), axis=-1) * max(n, 1)  # Hadamard's bound
    size = np.where(kappa < 1e-3 / eps(dtype), np.minimum(kappa * np.abs(want), rows), rows)
    got = shaped(got, want.shape, dtype)
    bound = 60 * max(n, 1) * eps(dtype) * size + tiny(dtype)
    over = (np.abs(want) + bound) * 2 > np.finfo(dtype).max  # these may be infinite
    check(not np.isnan(np.where(over, got.real, 0)).any(), 'a determinant is NaN')
    near(np.where(over, 0, got), np.where(over, 0, want), bound)


@case(FAMILY)
def slogdet(d):
    dtype, n = d.pick(INEXACT), side(d)
    a, x = stack(d, batch_of(d), n, n, dtype)
    sign, log = linalg.slogdet(x)
    if d.chance(0.3):
        log = duet.logdet(x)
    a = up(a)
    want, kappa = np.linalg.slogdet(a), condition(a)[..., 0, 0]
    bound = 60 * max(n, 1) * eps(dtype) * kappa + eps(dtype) * np.abs(want.logabsdet)
    bound = np.where(bound < 1, bound, np.inf)
    log, known = shaped(log, kappa.shape, part_type(dtype), 'logabsdet'), bound < 1
    check(not np.isnan(log).any(), 'logabsdet is NaN')
    near(np.where(known, log, 0), np.where(known, want.logabsdet, 0), bound, what='logabsdet')
    near(sign, want.sign, np.where(known, bound if dtype in COMPLEX else 0, 2), dtype, 'sign')


@case(FAMILY)
def cholesky(d):
    dtype, n, upper = d.pick(INEXACT), side(d), d.chance(0.3)
    a = definite(d, batch_of(d), n, dtype)
    given = np.tril(a) + np.triu(np.full(a.shape, np.nan), 1).astype(dtype) if d.chance(0.2) else a
    if given is not a:
        given = np.where(np.triu(np.ones((n, n)), 1) > 0, np.nan, a).astype(dtype)
    got = up(shaped(linalg.cholesky(d.given(given), upper=upper), a.shape, dtype))
    low = herm(got) if upper else got
    a = up(a)
    near(low, np.tril(low), 0, what='the upper triangle')
    scale = max(n, 1) * eps(dtype) * norm1(a)
    near(low @ herm(low), a, 30 * scale, what='L L^H')
    near(low, np.linalg.cholesky(a), 60 * scale * condition(a) / np.sqrt(norm1(a) + (norm1(a) == 0)))


@case(FAMILY)
def not_definite(d):
    """Both fail, or both do not."""
    dtype, n = d.pick(INEXACT), d.int(1, 6)
    a = definite(d, (), n, dtype)
    k = d.int(0, n - 1)
    a[k, k] = -1
    try:
        linalg.cholesky(d.given(a)).evaluate()
    except duet.LinAlgError:
        return
    check(False, 'a matrix with a negative element on its diagonal has a Cholesky factor')


@case(FAMILY)
def not_finite(d):
    """An element that is not finite is an error, except where it is not read."""
    dtype, n = d.pick(INEXACT), d.int(1, 7)
    a = d.array((*batch_of(d), n, n), dtype)
    if not a.size:
        return
    a.flat[d.int(0, a.size - 1)] = d.pick([np.nan, np.inf, -np.inf])
    x, name = d.given(a), d.pick('inv solve qr svd svdvals eig eigvals pinv expm lstsq'.split())
    operands = (x, duet.ones((n, 2), dtype=x.dtype)) if name in ('solve', 'lstsq') else (x,)
    try:
        made = getattr(linalg if name in ('qr', 'svd', 'eig') else duet, name)(*operands)
        np.asarray(made[0] if isinstance(made, tuple) else made)
    except duet.LinAlgError as error:
        return check(error.status == 'NOT_FINITE', f'{name} fails with {error.status}: {error}')
    check(False, f'{name} accepts a matrix that is not finite', a)


@case(FAMILY)
def qr(d):
    dtype, m, n, mode = d.pick(INEXACT), side(d), side(d), d.pick(['reduced', 'complete'])
    a, x = stack(d, batch_of(d), m, n, dtype)
    k = m if mode == 'complete' else min(m, n)
    q, r = linalg.qr(x, mode=mode)
    q = up(shaped(q, (*a.shape[:-2], m, k), dtype, 'Q'))
    r = up(shaped(r, (*a.shape[:-2], k, n), dtype, 'R'))
    a, unit = up(a), 30 * max(m, n) * eps(dtype)
    near(q @ r, a, unit * norm1(a), what='Q R')
    near(herm(q) @ q, np.broadcast_to(np.eye(k), (*a.shape[:-2], k, k)), unit, what='Q^H Q')
    near(r, np.triu(r), 0, what='the lower triangle of R')
    s = values(a)
    small = s[..., -1:, None] if s.shape[-1] else np.ones((*a.shape[:-2], 1, 1))
    if m >= n and n and np.all(norm1(a) < 1e-2 / eps(dtype) * small):
        want = np.linalg.qr(a)[1]
        near(np.abs(r[..., :n, :]), np.abs(want), 4 * unit * norm1(a) ** 2 / small, what='abs(R)')


@case(FAMILY)
def lstsq(d):
    dtype, m, n = d.pick(INEXACT), side(d), side(d)
    left, right = d.broadcastable(batch_of(d))
    a, x = stack(d, left, m, n, dtype)
    b = d.array((m,) if d.chance(0.3) else (*right, m, d.size()), dtype)
    s, k = values(up(a)), max(m, n, 1)
    limit = 8 * k * eps(dtype)
    if not has_gap(s, limit):
        return
    got = duet.lstsq(x, d.given(b))
    a, columns = up(a), up(b)[:, None] if b.ndim == 1 else up(b)
    want = np.linalg.pinv(a, rcond=limit) @ columns
    got = up(shaped(got, want.shape[:-1] if b.ndim == 1 else want.shape, dtype))
    kept = np.where(s > limit * s[..., :1], s, np.inf).min(-1, keepdims=True, initial=np.inf)[..., None]
    size = s[..., :1, None] if s.shape[-1] else np.ones((1, 1))
    length = np.linalg.norm(columns, axis=-2, keepdims=True)
    bound = 100 * k * eps(dtype) * size / kept**2 * length + tiny(dtype)
    near(got[..., None] if b.ndim == 1 else got, want, bound)


@case(FAMILY)
def lu(d):
    dtype, m, n = d.pick(INEXACT), side(d), side(d)
    a, x = stack(d, batch_of(d), m, n, dtype)
    k, lead = min(m, n), a.shape[:-2]
    shapes = [(x.dtype, (m, k)), (x.dtype, (k, n)), (duet.int64, (m,))]
    low, upper, p = [np.asarray(f) for f in linalg._factors(lib.lu, x, lead, shapes)]
    low, upper, a = up(low), up(upper), up(a)
    same(np.sort(p, -1), np.broadcast_to(np.arange(m), p.shape), what='the sorted permutation')
    near(low, np.tril(low), 0, what='the upper triangle of L')
    near(upper, np.triu(upper), 0, what='the lower triangle of U')
    same(np.diagonal(low, axis1=-2, axis2=-1), np.ones((*lead, k)), what='the diagonal of L')
    most = (1 if dtype in FLOATS else 2**0.5) * (1 + 4 * eps(dtype))
    check(np.all(np.abs(low) <= most), 'an element of L is too large', low)
    bound = 30 * max(m, n, 1) * eps(dtype) * norm1(np.abs(low) @ np.abs(upper)) + tiny(dtype)
    near(low @ upper, np.take_along_axis(a, p[..., None], -2), bound, what='L U')
    if m:
        made = np.asarray(duet.permutation_matrix(duet.asarray(p), x.dtype))
        near(made @ a, np.take_along_axis(a, p[..., None], -2), 0, what='P A')


def substituted(t, b):
    """The solution of triangular systems by substitution, which no row exchange disturbs."""
    n, lower = t.shape[-1], not np.triu(t, 1).any()
    b = b[:, None] if b.ndim == 1 else b
    x = np.zeros(np.matmul(t, b).shape, t.dtype)
    for i in range(n) if lower else range(n - 1, -1, -1):
        x[..., i, :] = (b[..., i, :] - (t[..., i : i + 1, :] @ x)[..., 0, :]) / t[..., i, i, None]
    return x


@case(FAMILY)
def solve_triangular(d):
    dtype, n = d.pick(INEXACT), side(d)
    left, right = d.broadcastable(batch_of(d))
    a, x = stack(d, left, n, n, dtype)
    b = d.array((n,) if d.chance(0.3) else (*right, n, d.size()), dtype)
    lower, unit, transposed = (d.int(0, 1) for _ in range(3))
    t = up(np.tril(a) if lower else np.triu(a))
    if unit:
        t = np.where(np.eye(n) > 0, 1, t)
    t = np.swapaxes(t, -1, -2) if transposed else t
    try:
        got = duet.solve_triangular(x, d.given(b), lower=lower, unit=unit, transposed=transposed).evaluate()
    except duet.LinAlgError as error:
        singular = np.any(np.diagonal(t, axis1=-2, axis2=-1) == 0)
        largest = np.inf if singular else np.abs(substituted(t, up(b))).max()
        return check(not largest * 2 <= np.finfo(dtype).max, str(error))
    b = up(b)
    got = up(shaped(got, np.matmul(t, b).shape, dtype))
    columns, b = (got[..., None], b[:, None]) if b.ndim == 1 else (got, b)
    rest = np.abs(b - t @ columns).sum(-2, keepdims=True)
    bound = 30 * max(n, 1) * eps(dtype) * norm1(t) * np.abs(columns).sum(-2, keepdims=True)
    near(rest, np.zeros(rest.shape), bound + tiny(dtype), what='B - A X')


STRUCTURES = 'general symmetric hermitian diagonal lower upper strictly_lower strictly_upper'
STRUCTURES += ' unit_lower unit_upper'


@case('structured matrices')
def structured(d):
    dtype, n, name = d.pick(INEXACT), d.pick([1, 2, 3, 5, 8]), d.pick(STRUCTURES.split()[1:])
    a = d.array((n, n), dtype)
    if name in ('symmetric', 'hermitian'):
        a = a + (a.T if name == 'symmetric' else herm(a))
    elif name == 'diagonal':
        a = np.diag(np.diag(a))
    else:
        a = (np.tril if 'lower' in name else np.triu)(a, (-1 if 'lower' in name else 1) * ('_' in name))
        a = a + np.eye(n) * ('unit' in name)
    a = np.ascontiguousarray(a.astype(dtype))
    x = duet.asarray(a, copy=True)
    status = lib.declare(duet._graph.value(x._node).pointer, STRUCTURES.split().index(name))
    check(status == 0, f'a {name} matrix is not accepted', a)
    b = d.array((n,) if d.chance(0.3) else (n, d.int(1, 4)), dtype)
    y, turned = d.given(b), d.chance(0.3)
    if turned:
        a, x = a.T, x.T
    a, b, unit = up(a), up(b), 60 * n * eps(dtype)
    near(duet.matmul(x, y), a @ b, unit * (np.abs(a) @ np.abs(b)), dtype, 'A B')
    near(duet.matmul(y.T if b.ndim > 1 else y, x), b.T @ a, unit * (np.abs(b.T) @ np.abs(a)), dtype, 'B^T A')
    near(duet.matmul(x, x.T), a @ a.T, unit * (np.abs(a) @ np.abs(a.T)), dtype, 'A A^T')
    rows = np.prod(np.sqrt((np.abs(a) ** 2).sum(-1)), axis=-1) * n
    near(duet.det(x), np.linalg.det(a), unit * rows + tiny(dtype), dtype, 'det')
    kappa = condition(a)[0, 0]
    if kappa < 0.01 / eps(dtype):
        want = np.linalg.inv(a)
        near(duet.inv(x), want, unit * kappa * norm1(want)[0, 0], dtype, 'inv')
        near(duet.logdet(x), np.linalg.slogdet(a).logabsdet, unit * kappa + unit, part_type(dtype), 'logdet')
        near(duet.solve(x, y), np.linalg.solve(a, b), unit * kappa * np.abs(want) @ np.abs(b), dtype, 'solve')
