"""Cases of singular values, eigenvalues, norms, ranks, powers and exponentials of stacks of matrices."""

import numpy as np

import duet
from duet import linalg

from . import INEXACT, case, check, eps, near, same, shaped, tiny, up
from .linear import (
    FAMILY,
    batch_of,
    condition,
    has_gap,
    herm,
    hermitian,
    norm1,
    part_type,
    side,
    stack,
    values,
)

NORMS = 'fro', 'nuc', np.inf, -np.inf, 1, -1, 2, -2  # in the order of duet_matrix_norms


@case(FAMILY)
def svd(d):
    dtype, m, n, full = d.pick(INEXACT), side(d), side(d), d.chance(0.5)
    a, x = stack(d, batch_of(d), m, n, dtype)
    k, lead = min(m, n), a.shape[:-2]
    u, s, v = linalg.svd(x, full_matrices=full)
    mu, nv = (m, n) if full else (k, k)
    u, v = up(shaped(u, (*lead, m, mu), dtype, 'U')), up(shaped(v, (*lead, nv, n), dtype, 'Vh'))
    s, a, unit = up(shaped(s, (*lead, k), part_type(dtype), 'S')), up(a), 30 * max(m, n) * eps(dtype)
    check(np.all(s >= 0) and np.all(np.diff(s) <= 0), 'the singular values are not in descending order', s)
    near(u[..., :k] * s[..., None, :] @ v[..., :k, :], a, unit * norm1(a), what='U S Vh')
    near(herm(u) @ u, np.broadcast_to(np.eye(mu), (*lead, mu, mu)), unit, what='U^H U')
    near(v @ herm(v), np.broadcast_to(np.eye(nv), (*lead, nv, nv)), unit, what='Vh V')
    want = values(a)
    near(s, want, 2 * unit * want.max(-1, keepdims=True, initial=0), what='S')


@case(FAMILY)
def svdvals(d):
    dtype, m, n = d.pick(INEXACT), side(d), side(d)
    a, x = stack(d, batch_of(d), m, n, dtype)
    want = values(up(a))
    bound = 60 * max(m, n) * eps(dtype) * want.max(-1, keepdims=True, initial=0)
    near(d.pick([linalg.svdvals, duet.svdvals])(x), want, bound, part_type(dtype))


@case(FAMILY)
def eigh(d):
    dtype, n = d.pick(INEXACT), side(d)
    a = hermitian(d, batch_of(d), n, dtype)
    x = d.given(np.where(np.triu(np.ones((n, n)), 1) > 0, np.nan, a).astype(dtype) if d.chance(0.2) else a)
    w, v = linalg.eigh(x)
    w = up(shaped(w, a.shape[:-1], part_type(dtype), 'the values'))
    v, a, unit = up(shaped(v, a.shape, dtype, 'the vectors')), up(a), 30 * max(n, 1) * eps(dtype)
    near(v * w[..., None, :] @ herm(v), a, unit * norm1(a), what='V diag(w) V^H')
    near(herm(v) @ v, np.broadcast_to(np.eye(n), a.shape), unit, what='V^H V')
    want = np.linalg.eigvalsh(a)
    near(w, want, 2 * unit * np.abs(want).max(-1, keepdims=True, initial=0), what='the values')


@case(FAMILY)
def eigvalsh(d):
    dtype, n = d.pick(INEXACT), side(d)
    a = hermitian(d, batch_of(d), n, dtype)
    want = np.linalg.eigvalsh(up(a))
    bound = 60 * max(n, 1) * eps(dtype) * np.abs(want).max(-1, keepdims=True, initial=0)
    near(d.pick([linalg.eigvalsh, duet.eigvalsh])(d.given(a)), want, bound, part_type(dtype))


def near_values(got, stack, dtype):
    """Checks eigenvalues, in any order. An eigenvalue moves by at most the bound of Bauer and Fike, and by at
    most that of Elsner."""
    n = stack.shape[-1]
    for w, a in zip(got.reshape(-1, n), stack.reshape(-1, n, n)) if stack.size else ():
        want, v = np.linalg.eig(a)
        change = 60 * n * eps(dtype) * np.linalg.norm(a)
        s = np.linalg.svd(v, compute_uv=False)
        elsner = (2 * s[0] * np.linalg.norm(a)) ** (1 - 1 / n) * change ** (1 / n)
        bound = min(change * s[0] / s[-1], elsner) if s[-1] else elsner
        distance = np.abs(w[:, None] - want)
        error = max(distance.min(0).max(), distance.min(1).max())
        check(error <= bound, f'eigenvalues differ by {error:.3g}, at most {bound:.3g} is allowed:', w, want)
        check(abs(w.sum() - np.trace(a)) <= n * change, 'the sum of the eigenvalues is not the trace')


@case(FAMILY)
def eig(d):
    dtype, n = d.pick(INEXACT), side(d)
    a, x = stack(d, batch_of(d), n, n, dtype)
    made = {'float32': 'complex64', 'float64': 'complex128'}.get(dtype, dtype)
    w, v = linalg.eig(x)
    w, v = up(shaped(w, a.shape[:-1], made, 'the values')), up(shaped(v, a.shape, made, 'the vectors'))
    a = up(a)
    rest = np.abs(a @ v - v * w[..., None, :]).sum(-2)
    near(rest, np.zeros(rest.shape), 30 * max(n, 1) * eps(dtype) * norm1(a)[..., 0], what='A V - V diag(w)')
    near(np.linalg.norm(v, axis=-2), np.ones(w.shape), 30 * max(n, 1) * eps(dtype), what='norms of vectors')
    near_values(w, a, dtype)


@case(FAMILY)
def eigvals(d):
    dtype, n = d.pick(INEXACT), side(d)
    a, x = stack(d, batch_of(d), n, n, dtype)
    made = {'float32': 'complex64', 'float64': 'complex128'}.get(dtype, dtype)
    near_values(up(shaped(d.pick([linalg.eigvals, duet.eigvals])(x), a.shape[:-1], made)), up(a), dtype)


@case(FAMILY)
def pinv(d):
    dtype, m, n = d.pick(INEXACT), side(d), side(d)
    a, x = stack(d, batch_of(d), m, n, dtype)
    s, k = values(up(a)), max(m, n, 1)
    limit = 8 * k * eps(dtype)
    if not has_gap(s, limit):
        return
    got = d.pick([lambda x: linalg.pinv(x, rtol=limit), linalg.pinv, duet.pinv])(x)
    want = np.linalg.pinv(up(a), rcond=limit)
    kept = np.where(s > limit * s[..., :1], s, np.inf).min(-1, keepdims=True, initial=np.inf)[..., None]
    size = s[..., :1, None] if s.shape[-1] else 1.0
    near(got, want, 100 * k * eps(dtype) * size / kept**2 + tiny(dtype), dtype)


@case(FAMILY)
def matrix_rank(d):
    dtype, m, n = d.pick(INEXACT), side(d), side(d)
    a, x = stack(d, batch_of(d), m, n, dtype)
    s, rtol = values(up(a)), d.pick([None, 0.01, 0.2])
    limit = 8 * max(m, n, 1) * eps(dtype) if rtol is None else rtol
    t = s / np.where(s[..., :1] > 0, s[..., :1], 1)
    if rtol is None and not has_gap(s, limit) or np.any(np.abs(t - limit) < 1e-3 * limit):
        return
    got = linalg.matrix_rank(x, rtol=rtol)
    same(got, (t > limit).sum(-1), 'int64')
    got = duet.matrix_rank(x, -1 if rtol is None else rtol)
    same(got, (t > limit).sum(-1), 'int64')


@case(FAMILY)
def matrix_norm(d):
    dtype, m, n = d.pick(INEXACT), side(d), side(d)
    kind = d.int(0, 7)
    m, n = (m, n) if kind in (0, 1) else (max(m, 1), max(n, 1))
    a, x = stack(d, batch_of(d), m, n, dtype)
    got = duet.matrix_norm(x, kind) if d.chance(0.5) else linalg.matrix_norm(x, ord=NORMS[kind])
    want = np.linalg.norm(up(a), NORMS[kind], axis=(-2, -1)) if a.size else np.zeros(a.shape[:-2])
    size = np.sqrt((np.abs(up(a)) ** 2).sum((-2, -1)))
    near(got, want, 60 * max(m, n, 1) * eps(dtype) * size, part_type(dtype))


@case(FAMILY)
def vector_norm(d):
    dtype, shape = d.pick(INEXACT), d.shape(1, 3)
    a, x = d.operand(shape, dtype)
    order = d.pick([0, 1, 2, 3, 0.5, 2.5, np.inf, -np.inf, -1])
    axis, keep, b = d.pick([None, d.axis(len(shape)), tuple(range(len(shape)))]), d.chance(0.3), np.abs(up(a))
    axes = tuple(range(len(shape))) if axis is None else axis
    count = a.size if not isinstance(axis, int) else shape[axis]
    if order < 1 and order and not count:
        return
    sums = {0: (b != 0).sum, np.inf: lambda **m: b.max(initial=0, **m), -np.inf: b.min}.get(order)
    want = sums(axis=axes, keepdims=keep) if sums else (b**order).sum(axis=axes, keepdims=keep) ** (1 / order)
    bound = 8 * (count + 8) * eps(dtype) * want * max(1, abs(1 / (order or 1)))
    near(linalg.vector_norm(x, axis=axis, keepdims=keep, ord=order), want, bound, part_type(dtype))


@case(FAMILY)
def cond(d):
    dtype, kind, n = d.pick(INEXACT), d.int(0, 7), d.int(1, 7)
    m = d.int(1, 7) if kind > 5 else n
    a, x = stack(d, batch_of(d), m, n, dtype)
    s = values(up(a))
    if not a.size or np.any(s[..., -1:] <= 1e4 * eps(dtype) * s[..., :1]):
        return
    want = np.linalg.cond(up(a), NORMS[kind])
    bound = 100 * max(m, n) ** 2 * eps(dtype) * want * s[..., 0] / s[..., -1]
    near(duet.cond(x, kind), want, bound, part_type(dtype))


@case(FAMILY)
def matrix_power(d):
    dtype, n = d.pick(INEXACT + ['int64', 'int32', 'uint8', 'int16', 'uint64']), side(d)
    whole = dtype not in INEXACT
    p = d.int(0 if whole else -2, 7)
    a, x = (d.operand((*batch_of(d), n, n), dtype)) if whole else stack(d, batch_of(d), n, n, dtype)
    how = d.pick([linalg.matrix_power, duet.matrix_power])
    if whole:
        return same(how(x, p), np.linalg.matrix_power(a, p), dtype)
    kappa = condition(a) if p < 0 else 1
    if p < 0 and not np.all(kappa < 0.01 / eps(dtype)):
        return
    got, a = how(x, p), up(a)
    size = (norm1(np.linalg.inv(a)) if p < 0 else norm1(a)) ** abs(p)
    if np.any(size > np.finfo(dtype).max):
        return
    bound = 60 * max(n, 1) * eps(dtype) * abs(p) * kappa * size + tiny(dtype)
    near(got, np.linalg.matrix_power(a, p), bound, dtype)


def exponential(a):
    """The exponential by its series in long double: SciPy 1.17 has relative errors of up to 1e-12."""
    k = int(np.ceil(np.log2(max(np.max(norm1(a), initial=0), 0.5)))) + 1
    a = a.astype(np.clongdouble if a.dtype.kind == 'c' else np.longdouble) / 2**k
    made = term = np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)
    for i in range(1, 25):
        term = term @ a / i
        made = made + term
    for _ in range(k):
        made = made @ made
    return up(made)


@case(FAMILY)
def expm(d):
    import scipy.linalg

    dtype, n = d.pick(INEXACT), d.pick([0, 1, 2, 3, 4, 5, 8])
    a, x = stack(d, batch_of(d), n, n, dtype)
    if np.max(norm1(a), initial=0) > 30:
        a = (a * (d.rng.random() * 30 / np.max(norm1(a)))).astype(dtype)
        x = d.given(a)
    b = up(a)
    if not b.size:
        return near(duet.expm(x), b, 0, dtype)
    want, other = exponential(b), exponential(-b)
    size, most = norm1(want), np.maximum(norm1(want), norm1(other))
    bound = np.minimum(np.exp(norm1(b)), most**2 * size)
    got, bound = duet.expm(x), 60 * n * eps(dtype) * (1 + norm1(b)) * bound
    near(got, want, bound, dtype)
    near(got, scipy.linalg.expm(b), bound + 1e-11 * size, dtype, 'the result, compared with SciPy,')
