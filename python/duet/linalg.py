"""Linear algebra: the extension linalg of the array API. Functions take stacks of matrices."""

import builtins
import math
from collections import namedtuple

from . import _dtypes as dt
from . import _graph as g
from ._array import Array, apply, axis_of, broadcast, cast, node_of, of_one_complex_type, permute, reshape
from ._elementwise import conj
from ._errors import TypeError, ValueError, check
from ._library import lib
from ._manipulation import broadcast_shapes, matrix_transpose  # noqa: F401
from ._reduce import max as _max, min as _min, sum as _sum, vector_norm  # noqa: F401

_QR = namedtuple('QRResult', 'Q R')
_SVD = namedtuple('SVDResult', 'U S Vh')
_Eig = namedtuple('EigResult', 'eigenvalues eigenvectors')
_Eigh = namedtuple('EighResult', 'eigenvalues eigenvectors')
_Slogdet = namedtuple('SlogdetResult', 'sign logabsdet')


def _matrices(x, name, square=False):
    if node_of(x).ndim < 2:
        raise ValueError(f'{name} needs an array of at least 2 axes, and not of shape {x.shape}')
    if square and x.shape[-1] != x.shape[-2]:
        raise ValueError(f'{name} needs square matrices, and not of {x.shape[-2]} x {x.shape[-1]}')
    if x.dtype.kind not in 'fc' or x.dtype in (dt.float16, dt.bfloat16):
        raise TypeError(
            f'{name} needs elements of float32, float64, complex64 or complex128, and not {x.dtype}'
        )
    return x.shape[:-2]


def _part(x):
    return dt.part_of.get(x.dtype, x.dtype)


def _map(op, x, name):
    _matrices(x, name, square=True)
    return apply(op, x)


def cholesky(x, /, *, upper=False):
    """The lower triangular L with x = L L^H, or the upper triangular L^H."""
    made = _map(lib.cholesky, x, 'cholesky')
    return conj(made.mT) if upper else made


def det(x, /):
    """The determinants."""
    return _map(lib.det, x, 'det')


def inv(x, /):
    """The inverses."""
    return _map(lib.inv, x, 'inv')


def eigvalsh(x, /):
    """The eigenvalues of symmetric or Hermitian matrices in ascending order."""
    return _map(lib.eigvalsh, x, 'eigvalsh')


def svdvals(x, /):
    """The singular values in descending order."""
    _matrices(x, 'svdvals')
    return apply(lib.svdvals, x)


def solve(x1, x2, /):
    """The X with x1 X = x2."""
    batch = _matrices(x1, 'solve', square=True)
    node_of(x2, 'x2')
    n = x1.shape[-1]
    dtype = dt.promote(x1.dtype, x2.dtype)
    x1, x2 = cast(x1, dtype), cast(x2, dtype)
    if x2.ndim == 1 and x2.shape != (n,):
        raise ValueError(f'x1 has {n} columns, and x2 has shape {x2.shape}')
    if x2.ndim == 1:
        return reshape(solve(x1, reshape(x2, (n, 1))), (*batch, n))
    if x2.shape[-2] != n:
        raise ValueError(f'x1 has {n} columns, and x2 has shape {x2.shape}')
    batch = broadcast_shapes(batch, x2.shape[:-2])
    x1, x2 = broadcast(x1, (*batch, n, n)), broadcast(x2, (*batch, *x2.shape[-2:]))
    return apply(lib.solve, x1, x2, attrs=(None,))


# ---- factorisations ------------------------------------------------------------------------------


def _factors(op, x, batch, results):
    """Runs a factorisation of a stack; `results` lists type and shape of one matrix of each result."""
    results = [(t, (*batch, *s)) for t, s in results]
    a = g.value(x._node)
    made = [g.new_matrix(lib.new_shape(t.code, len(s), g.sizes(s))) for t, s in results]
    with g.on(x.device) if x.device is not g.auto else _Nothing():
        check(op(*[m.pointer for m in made], a.pointer))
    return [Array(g.leaf(m, s, t, x.device)) for m, (t, s) in zip(made, results)]


class _Nothing:
    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


def qr(x, /, *, mode='reduced'):
    """x = Q R with orthonormal columns of Q and an upper triangular R."""
    if mode not in ('reduced', 'complete'):
        raise ValueError(f"mode must be 'reduced' or 'complete', and not {mode!r}")
    batch = _matrices(x, 'qr')
    m, n = x.shape[-2:]
    if mode == 'reduced' or m <= n:
        k = builtins.min(m, n)
        return _QR(*_factors(lib.qr, x, batch, [(x.dtype, (m, k)), (x.dtype, (k, n))]))
    return _QR(*_factors(lib.qr_complete, x, batch, [(x.dtype, (m, m)), (x.dtype, (m, n))]))


def svd(x, /, *, full_matrices=True):
    """x = U diag(S) Vh, with S in descending order."""
    batch = _matrices(x, 'svd')
    m, n = x.shape[-2:]
    k = builtins.min(m, n)
    if full_matrices:
        return _SVD(
            *_factors(lib.svd_full, x, batch, [(x.dtype, (m, m)), (_part(x), (k,)), (x.dtype, (n, n))])
        )
    return _SVD(*_factors(lib.svd, x, batch, [(x.dtype, (m, k)), (_part(x), (k,)), (x.dtype, (k, n))]))


def eigh(x, /):
    """Eigenvalues and eigenvectors of symmetric or Hermitian matrices; only their lower triangles are
    read."""
    batch = _matrices(x, 'eigh', square=True)
    n = x.shape[-1]
    return _Eigh(*_factors(lib.eigh, x, batch, [(_part(x), (n,)), (x.dtype, (n, n))]))


def eig(x, /):
    """Eigenvalues and eigenvectors of square matrices. Both are complex."""
    batch = _matrices(x, 'eig', square=True)
    n, dtype = x.shape[-1], dt.complex_of[x.dtype]
    return _Eig(*_factors(lib.eig, x, batch, [(dtype, (n,)), (dtype, (n, n))]))


def eigvals(x, /):
    """The eigenvalues of square matrices. They are complex."""
    return _map(lib.eigvals, x, 'eigvals')


def slogdet(x, /):
    """The determinants as sign exp(logabsdet)."""
    batch = _matrices(x, 'slogdet', square=True)
    return _Slogdet(*_factors(lib.slogdet, x, batch, [(x.dtype, ()), (_part(x), ())]))


# ---- functions of factorisations -----------------------------------------------------------------


def matrix_rank(x, /, *, rtol=None):
    """The number of singular values above rtol times the largest one."""
    s = svdvals(x)
    if not s.shape[-1]:
        from ._creation import zeros

        return zeros(s.shape[:-1], dtype=dt.int64)
    return _sum(cast(s > _limit(s, x, rtol), dt.int64), axis=-1)


def _limit(s, x, rtol):
    largest = _max(s, axis=-1, keepdims=True)
    if rtol is None:
        rtol = builtins.max(x.shape[-2:]) * dt.finfo_object(s.dtype).eps
    elif rtol.__class__ is Array:
        rtol = rtol[..., None]
    return largest * rtol


def pinv(x, /, *, rtol=None):
    """The pseudo-inverses: singular values up to rtol times the largest one count as 0."""
    u, s, vh = svd(x, full_matrices=False)
    if not s.shape[-1]:
        from ._creation import zeros

        return zeros((*x.shape[:-2], x.shape[-1], x.shape[-2]), dtype=x.dtype)
    large = s > _limit(s, x, rtol)
    s = apply(lib.where, large, 1.0 / apply(lib.where, large, s, 1.0), 0.0)
    return matmul(conj(vh.mT) * s[..., None, :], conj(u.mT))


def matrix_norm(x, /, *, keepdims=False, ord='fro'):
    """The norm of the matrices along the last two axes."""
    if node_of(x).ndim < 2:
        raise ValueError(f'matrix_norm needs an array of at least 2 axes, and not of shape {x.shape}')
    if ord == 'fro' or ord is None:
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord in (1, -1, math.inf, -math.inf):
        inner, outer = (-2, -1) if ord in (1, -1) else (-1, -2)
        made = _sum(apply(lib.abs, x), axis=inner, keepdims=True)
        made = (_max if ord > 0 else _min)(made, axis=outer, keepdims=True)
    elif ord in (2, -2, 'nuc'):
        s = svdvals(x)
        made = _sum(s, axis=-1) if ord == 'nuc' else (_max if ord > 0 else _min)(s, axis=-1)
        made = reshape(made, (*made.shape, 1, 1))
    else:
        raise ValueError(f"ord must be 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc', and not {ord!r}")
    return made if keepdims else reshape(made, x.shape[:-2])


def matrix_power(x, n, /):
    """x multiplied n times by itself; for a negative n the inverse of x."""
    from ._creation import eye

    if node_of(x).ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f'matrix_power needs square matrices, and not of shape {x.shape}')
    if n == 0:
        return broadcast(eye(x.shape[-1], dtype=x.dtype, device=x.device), x.shape)
    if n < 0:
        x, n = inv(x), -n
    made = None
    while n:
        if n & 1:
            made = x if made is None else matmul(made, x)
        n >>= 1
        if n:
            x = matmul(x, x)
    return made


# ---- products ------------------------------------------------------------------------------------


def matmul(x1, x2, /):
    """Matrix products."""
    node_of(x1, 'x1'), node_of(x2, 'x2')
    a, b = of_one_complex_type(x1, x2)
    return Array(g.make(lib.matmul, (a._node, b._node)))


def outer(x1, x2, /):
    """Every element of x1 times every element of x2."""
    if node_of(x1, 'x1').ndim != 1 or node_of(x2, 'x2').ndim != 1:
        raise ValueError('outer needs two vectors')
    return reshape(x1, (x1.size, 1)) * reshape(x2, (1, x2.size))


def vecdot(x1, x2, /, *, axis=-1):
    """The sums of conj(x1) x2 along an axis."""
    node_of(x1, 'x1'), node_of(x2, 'x2')
    if axis >= 0:
        raise ValueError(f'axis must be negative, and is {axis}')
    for x in x1, x2:
        axis_of(axis, x.ndim)
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f'the axes have {x1.shape[axis]} and {x2.shape[axis]} elements: they must be equal')
    dtype = dt.promote(x1.dtype, x2.dtype)
    made = apply(lib.vecdot, cast(x1, dtype), cast(x2, dtype), attrs=(axis,))
    return cast(made, dtype)


def tensordot(x1, x2, /, *, axes=2):
    """The sums of products along pairs of axes."""
    node_of(x1, 'x1'), node_of(x2, 'x2')
    if isinstance(axes, builtins.int):
        if not 0 <= axes <= builtins.min(x1.ndim, x2.ndim):
            raise ValueError(f'axes must be from 0 to {builtins.min(x1.ndim, x2.ndim)}, and is {axes}')
        first, second = tuple(range(x1.ndim - axes, x1.ndim)), tuple(range(axes))
    else:
        first, second = [tuple(axis_of(k, x.ndim) for k in ks) for ks, x in zip(axes, (x1, x2))]
    if [x1.shape[k] for k in first] != [x2.shape[k] for k in second]:
        raise ValueError(f'the axes {first} of {x1.shape} and {second} of {x2.shape} have different sizes')
    left = tuple(k for k in range(x1.ndim) if k not in first)
    right = tuple(k for k in range(x2.ndim) if k not in second)
    n = math.prod(x1.shape[k] for k in first)
    a = reshape(permute(x1, left + first), (math.prod(x1.shape[k] for k in left), n))
    b = reshape(permute(x2, second + right), (n, math.prod(x2.shape[k] for k in right)))
    return reshape(matmul(a, b), (*[x1.shape[k] for k in left], *[x2.shape[k] for k in right]))


def cross(x1, x2, /, *, axis=-1):
    """The cross products of vectors of 3 elements along an axis."""
    node_of(x1, 'x1'), node_of(x2, 'x2')
    for x in x1, x2:
        if x.shape[axis_of(axis, x.ndim)] != 3:
            raise ValueError(f'cross needs 3 elements along the axis, and not {x.shape[axis]}')
    return apply(lib.cross_axis, x1, x2, attrs=(axis,))


def diagonal(x, /, *, offset=0):
    """The diagonals of the matrices along the last two axes."""
    n = node_of(x).ndim
    if n < 2:
        raise ValueError(f'diagonal needs an array of at least 2 axes, and not of shape {x.shape}')
    return apply(lib.diagonal_of, permute(x, (n - 2, n - 1, *range(n - 2))), attrs=(offset,))


def trace(x, /, *, offset=0, dtype=None):
    """The sums of the diagonals."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)
