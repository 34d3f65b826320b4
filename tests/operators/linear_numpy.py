# linear_numpy.py LIBRARY dtype.def - linear algebra against numpy.linalg, through the library's C functions:
# stacks of matrices, vectors and matrices as right-hand sides, views. TAP; skipped where there is no NumPy 2:
# before it, solve had another rule for vectors.
import ctypes, re, sys

try:
    import numpy as np
except ImportError:
    print('1..0 # SKIP no numpy')
    sys.exit(0)
if int(np.__version__.split('.')[0]) < 2:
    print('1..0 # SKIP NumPy', np.__version__)
    sys.exit(0)

lib = ctypes.CDLL(sys.argv[1])
rows = re.findall(r'^DUET_(?:DTYPE|INTEGER|HALF|NARROW|COMPLEX)\((\w+)', open(sys.argv[2]).read(), re.M)
NAMES = ('f4', 'F32'), ('f8', 'F64'), ('c8', 'C64'), ('c16', 'C128'), ('i8', 'I64')
TYPES = {np.dtype(t): rows.index(name) for t, name in NAMES}
SINGULAR = 'singular'


class Expr(ctypes.Structure):
    _fields_ = [('serial', ctypes.c_uint64)]


pointer, integer, real = ctypes.c_void_p, ctypes.c_int, ctypes.c_double
lib.duet_wrap_strided.restype = lib.duet_read.restype = pointer
lib.duet_wrap_strided.argtypes = [pointer, integer, integer, pointer, pointer]
lib.duet_of_matrix.restype, lib.duet_of_matrix.argtypes = Expr, [pointer]
lib.duet_set.argtypes = [pointer, Expr]
lib.duet_read.argtypes = lib.duet_free.argtypes = [pointer]
lib.duet_error.restype = ctypes.c_char_p


def wrap(a):
    size = (ctypes.c_int64 * 8)(*a.shape)
    stride = (ctypes.c_int64 * 8)(*(s // a.itemsize for s in a.strides))
    m = lib.duet_wrap_strided(a.ctypes.data, TYPES[a.dtype], a.ndim, size, stride)
    assert m, lib.duet_error().decode()
    return pointer(m)


class Failed(Exception):
    pass


def finish(status, matrices, outs):
    text = lib.duet_error().decode() if status else ''
    for m in outs:
        lib.duet_read(m)
    for m in matrices:
        lib.duet_free(ctypes.byref(m))
    if status:
        raise Failed(text)


def spread(shape, dtype, rng):
    """Memory for a result: as it is, or a view with gaps or swapped axes."""
    how = rng.integers(3) if len(shape) > 1 else 0
    if how == 1:
        return np.full((*shape[:-1], 2 * shape[-1]), 7, dtype)[..., ::2]
    if how == 2:
        return np.full((*shape[:-2], shape[-1], shape[-2]), 7, dtype).swapaxes(-1, -2)
    return np.full(shape, 7, dtype)


def formula(name, operands, shape, dtype, rng, *more, kinds=()):
    f = getattr(lib, 'duet_' + name)
    f.restype, f.argtypes = Expr, [Expr] * len(operands) + list(kinds)
    out = spread(shape, np.dtype(dtype), rng)
    matrices = [wrap(a) for a in operands]
    to = wrap(out)
    status = lib.duet_set(to, f(*(lib.duet_of_matrix(m) for m in matrices), *more))
    finish(status, matrices + [to], [to])
    return out


def factors(name, a, results, rng):
    f = getattr(lib, 'duet_' + name)
    outs = [spread(shape, np.dtype(t), rng) for shape, t in results]
    matrices = [wrap(o) for o in outs] + [wrap(a)]
    f.argtypes = [pointer] * len(matrices)
    finish(f(*matrices), matrices, matrices[:-1])
    return outs


class Triangle(ctypes.Structure):
    _fields_ = [('lower', ctypes.c_int32), ('unit', ctypes.c_int32), ('transposed', ctypes.c_int32)]


# ---- operands ----

def lead_of(rng):
    return tuple(int(k) for k in rng.choice([0, 1, 2, 3, 5], rng.integers(0, 4), p=[0.04, 0.24, 0.24, 0.24, 0.24]))


def viewed(a, rng):
    """The same elements, perhaps with other strides."""
    how = rng.integers(4) if a.ndim > 1 else 0
    if how == 1:
        return np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2)
    if how == 2:
        return np.repeat(a, 2, -1)[..., ::2]
    if how == 3:
        return np.ascontiguousarray(a[::-1])[::-1]
    return np.ascontiguousarray(a)


def drawn(shape, dtype, rng):
    a = rng.uniform(-1, 1, shape)
    if np.dtype(dtype).kind == 'c':
        a = a + 1j * rng.uniform(-1, 1, shape)
    return np.asarray(a, dtype)


def regular(lead, n, dtype, rng):
    """Matrices with a condition of at most about 3."""
    q = np.linalg.qr(drawn((*lead, n, n), 'c16' if np.dtype(dtype).kind == 'c' else 'f8', rng))[0]
    p = np.linalg.qr(drawn((*lead, n, n), 'c16' if np.dtype(dtype).kind == 'c' else 'f8', rng))[0]
    s = rng.uniform(1, 3, (*lead, 1, n))
    return ((q * s) @ p).astype(dtype)


def part(dtype):
    return np.zeros(0, dtype).real.dtype


def height(a):
    """A norm of each matrix that is at least its 2-norm."""
    return np.sqrt((np.abs(a.astype('c16')) ** 2).sum((-1, -2)))


def wide(a):
    return a.astype('c16' if a.dtype.kind == 'c' else 'f8')


def turned(a):
    return a.swapaxes(-1, -2)


def back(a):
    return turned(a).conj()


def near(got, want, bound):
    if got.shape != want.shape:
        return f'shape {got.shape}, not {want.shape}'
    error = np.abs(wide(got) - want)
    return None if np.all(error <= bound) else f'error {np.nanmax(error / bound) if error.size else 0:.3g} of the bound'


# ---- cases: each returns None, or what is wrong ----

def inv(t, eps, rng):
    lead, n = lead_of(rng), int(rng.integers(0, 12))
    a = regular(lead, n, t, rng)
    x = formula('inv', [viewed(a, rng)], a.shape, t, rng)
    return near(x, np.linalg.inv(wide(a)), 100 * (n + 1) * eps)


def det(t, eps, rng):
    lead, n = lead_of(rng), int(rng.integers(0, 9))
    a = regular(lead, n, t, rng)
    a = viewed(a, rng)
    want = np.linalg.det(wide(a))
    x = formula('det', [a], lead, t, rng)
    log = formula('logdet', [a], lead, part(t), rng)
    sign, logabs = factors('slogdet', a, [(lead, t), (lead, part(t))], rng)
    bound = 100 * (n + 1) * eps
    return (near(x, want, bound * np.abs(want)) or near(log, np.log(np.abs(want)), bound * (n + 1)) or
            near(sign, want / np.abs(want), bound) or near(logabs, np.log(np.abs(want)), bound * (n + 1)))


def solve(t, eps, rng):
    """The leading axes broadcast; a vector is one right-hand side for all matrices."""
    lead, n, sides = lead_of(rng), int(rng.integers(0, 12)), int(rng.integers(0, 4))
    other = tuple(1 if rng.integers(3) == 0 else k for k in lead)[int(rng.integers(len(lead) + 1)):]
    a = regular(lead, n, t, rng)
    b = drawn((n,) if rng.integers(3) == 0 else (*other, n, sides), t, rng)
    want = np.linalg.solve(wide(a), wide(b))
    x = formula('solve', [viewed(a, rng), viewed(b, rng)], want.shape, t, rng, None, kinds=[pointer])
    return near(x, want, 100 * (n + 1) * eps * (1 + np.sqrt(n)))


def solve_triangular(t, eps, rng):
    lead, n, sides = lead_of(rng), int(rng.integers(0, 12)), int(rng.integers(0, 4))
    lower, unit, transposed = (int(k) for k in rng.integers(0, 2, 3))
    a = drawn((*lead, n, n), t, rng) / (n + 1) + np.eye(n, dtype=t)
    full = np.tril(a) if lower else np.triu(a)
    if unit:
        full = full - full * np.eye(n) + np.eye(n)
    if transposed:
        full = turned(full)
    b = drawn((n,) if rng.integers(3) == 0 else (*lead, n, sides), t, rng)
    want = np.linalg.solve(wide(full.astype(t)), wide(b))
    how = Triangle(lower, unit, transposed)
    x = formula('solve_triangular', [viewed(a, rng), viewed(b, rng)], want.shape, t, rng, ctypes.byref(how), kinds=[pointer])
    return near(x, want, 300 * (n + 1) * eps)


def cholesky(t, eps, rng):
    lead, n = lead_of(rng), int(rng.integers(0, 12))
    a = drawn((*lead, n, n), t, rng)
    a = (a @ back(a) + (n + 1) * np.eye(n)).astype(t)
    x = formula('cholesky', [viewed(a, rng)], a.shape, t, rng)
    return near(x, np.linalg.cholesky(wide(a)), 100 * (n + 1) * eps * (n + 1))


def eigh(t, eps, rng):
    lead, n = lead_of(rng), int(rng.integers(0, 12))
    a = drawn((*lead, n, n), t, rng)
    a = ((a + back(a)) / 2).astype(t)
    w, v = factors('eigh', viewed(a, rng), [((*lead, n), part(t)), (a.shape, t)], rng)
    alone = formula('eigvalsh', [viewed(a, rng)], (*lead, n), part(t), rng)
    want, bound = np.linalg.eigvalsh(wide(a)), 100 * (n + 1) * eps * (1 + height(a)[..., None])
    v = wide(v)
    return (near(w, want, bound) or near(alone, want, bound) or
            near((v * w[..., None, :]) @ back(v), wide(a), bound[..., None]) or
            near(back(v) @ v, np.broadcast_to(np.eye(n), a.shape), 100 * (n + 1) * eps))


def svd(t, eps, rng):
    lead, m, n = lead_of(rng), int(rng.integers(0, 12)), int(rng.integers(0, 12))
    k = min(m, n)
    a = drawn((*lead, m, n), t, rng)
    u, s, vt = factors('svd', viewed(a, rng), [((*lead, m, k), t), ((*lead, k), part(t)), ((*lead, k, n), t)], rng)
    alone = formula('svdvals', [viewed(a, rng)], (*lead, k), part(t), rng)
    want, bound = np.linalg.svd(wide(a), compute_uv=False), 100 * (m + n + 1) * eps * (1 + height(a)[..., None])
    u, vt = wide(u), wide(vt)
    one = np.broadcast_to(np.eye(k), (*lead, k, k))
    return (near(s, want, bound) or near(alone, want, bound) or near((u * s[..., None, :]) @ vt, wide(a), bound[..., None]) or
            near(back(u) @ u, one, 100 * (m + 1) * eps) or near(vt @ back(vt), one, 100 * (n + 1) * eps))


def qr(t, eps, rng):
    lead, m, n = lead_of(rng), int(rng.integers(0, 12)), int(rng.integers(0, 12))
    k = min(m, n)
    a = drawn((*lead, m, n), t, rng)
    q, r = factors('qr', viewed(a, rng), [((*lead, m, k), t), ((*lead, k, n), t)], rng)
    q, r = wide(q), wide(r)
    return (near(q @ r, wide(a), 100 * (m + n + 1) * eps * (1 + height(a)[..., None, None])) or
            near(back(q) @ q, np.broadcast_to(np.eye(k), (*lead, k, k)), 100 * (m + 1) * eps) or
            near(np.tril(r, -1), np.zeros(r.shape), 0))


def lu(t, eps, rng):
    lead, m, n = lead_of(rng), int(rng.integers(0, 12)), int(rng.integers(0, 12))
    k = min(m, n)
    a = drawn((*lead, m, n), t, rng)
    l, u, p = factors('lu', viewed(a, rng), [((*lead, m, k), t), ((*lead, k, n), t), ((*lead, m), 'i8')], rng)
    ordered = np.take_along_axis(wide(a), p[..., None], -2)
    return (near(wide(l) @ wide(u), ordered, 100 * (m + 1) * eps * (1 + height(a)[..., None, None])) or
            near(np.triu(l, 1), np.zeros(l.shape), 0) or near(np.tril(u, -1), np.zeros(u.shape), 0))


def lstsq(t, eps, rng):
    """Also of rank 1, and with all elements 0."""
    lead, m, n, sides = lead_of(rng), int(rng.integers(0, 9)), int(rng.integers(0, 9)), int(rng.integers(0, 4))
    a = drawn((*lead, m, n), t, rng)
    low = rng.integers(4) == 0
    if low and m and n:
        a = (rng.integers(-3, 4, (*lead, m, 1)) * rng.integers(-3, 4, (*lead, 1, n))).astype(t)
    b = drawn((m,) if rng.integers(3) == 0 else (*lead, m, sides), t, rng)
    x = formula('lstsq', [viewed(a, rng), viewed(b, rng)],
                (*lead, n) if b.ndim == 1 else (*lead, n, sides), t, rng)
    p = np.linalg.pinv(wide(a), rcond=1e-6) if m and n else np.zeros((*lead, n, m))
    want = (p @ (wide(b)[:, None] if b.ndim == 1 else wide(b)))
    size = np.sqrt((np.abs(p) ** 2).sum((-1, -2)))[..., None, None]
    bound = 300 * (m + n + 1) * eps * (1 + size + size * size * height(a)[..., None, None]) * (m + 1)
    return near(x[..., None] if b.ndim == 1 else x, want, bound)


def qr_complete(t, eps, rng):
    lead, m, n = lead_of(rng), int(rng.integers(0, 12)), int(rng.integers(0, 12))
    a = drawn((*lead, m, n), t, rng)
    q, r = factors('qr_complete', viewed(a, rng), [((*lead, m, m), t), (a.shape, t)], rng)
    q, r = wide(q), wide(r)
    return (near(q @ r, wide(a), 100 * (m + n + 1) * eps * (1 + height(a)[..., None, None])) or
            near(back(q) @ q, np.broadcast_to(np.eye(m), q.shape), 100 * (m + 1) * eps) or
            near(np.tril(r, -1), np.zeros(r.shape), 0))


def svd_full(t, eps, rng):
    lead, m, n = lead_of(rng), int(rng.integers(0, 12)), int(rng.integers(0, 12))
    k = min(m, n)
    a = drawn((*lead, m, n), t, rng)
    u, s, vt = factors('svd_full', viewed(a, rng), [((*lead, m, m), t), ((*lead, k), part(t)), ((*lead, n, n), t)], rng)
    u, vt, bound = wide(u), wide(vt), 100 * (m + n + 1) * eps * (1 + height(a)[..., None])
    return (near(s, np.linalg.svd(wide(a), compute_uv=False), bound) or
            near((u[..., :k] * s[..., None, :]) @ vt[..., :k, :], wide(a), bound[..., None]) or
            near(back(u) @ u, np.broadcast_to(np.eye(m), u.shape), 100 * (m + 1) * eps) or
            near(vt @ back(vt), np.broadcast_to(np.eye(n), vt.shape), 100 * (n + 1) * eps))


def complex_of(t):
    return np.dtype('c8' if part(t) == 'f4' else 'c16')


def eig(t, eps, rng):
    """A V = V diag(w), vectors of norm 1, the trace and the determinant. Also rotations and nilpotent matrices."""
    lead, n = lead_of(rng), int(rng.integers(0, 10))
    kind = rng.integers(4)
    a = drawn((*lead, n, n), t, rng)
    if kind == 1:
        a = np.asarray(a - turned(a), t)
    if kind == 2:
        a = np.asarray(np.triu(np.round(2 * a), 1), t)
    w, v = factors('eig', viewed(a, rng), [((*lead, n), complex_of(t)), (a.shape, complex_of(t))], rng)
    alone = formula('eigvals', [viewed(a, rng)], (*lead, n), complex_of(t), rng)
    w, v, size = wide(w), wide(v), 1 + height(a)
    told = (near(wide(a) @ v, v * w[..., None, :], 100 * (n + 1) * eps * size[..., None, None]) or
            near(np.sqrt((np.abs(v) ** 2).sum(-2)), np.ones((*lead, n)), 100 * (n + 1) * eps) or
            near(w.sum(-1), np.trace(wide(a), axis1=-1, axis2=-2) + np.zeros(lead), 100 * (n + 1) ** 2 * eps * size))
    if told or kind == 2 or not n:
        return told
    want = np.linalg.eigvals(wide(a))
    apart = np.abs(wide(alone)[..., :, None] - want[..., None, :])
    condition = np.linalg.cond(np.linalg.eig(wide(a))[1])
    bound = 100 * (n + 1) * eps * size * np.minimum(condition, 1e6)
    if a.size and (condition < 1e6).all():
        return near(np.maximum(apart.min(-1).max(-1), apart.min(-2).max(-1)), np.zeros(lead), bound)
    return None


def taylor(a):
    """The exponential, by a series of the matrix divided by 2^k."""
    k = max(0, int(np.ceil(np.log2(max(1e-300, np.abs(a).sum(-2).max(initial=0)))))) + 6 if a.size else 0
    x = np.broadcast_to(np.eye(a.shape[-1]), a.shape) + np.zeros_like(a)
    term, b = x, a / 2.0**k
    for i in range(1, 16):
        term = term @ b / i
        x = x + term
    for _ in range(k):
        x = x @ x
    return x


def expm(t, eps, rng):
    lead, n = lead_of(rng), int(rng.integers(0, 9))
    a = np.asarray(drawn((*lead, n, n), t, rng) * 10.0 ** rng.integers(-6, 2), t)
    if rng.integers(3) == 0:
        a = np.asarray(a - back(a), t)
    x = formula('expm', [viewed(a, rng)], a.shape, t, rng)
    want = taylor(wide(a))
    size = 1 + height(a)
    growth = height(taylor(np.abs(wide(a)))) if n else np.zeros(lead)
    return near(x, want, 300 * (n + 1) * eps * (size * np.minimum(growth, 10 * size * height(want) * (n + 1)))[..., None, None] if n else 1)


def pinv(t, eps, rng):
    lead, m, n = lead_of(rng), int(rng.integers(0, 9)), int(rng.integers(0, 9))
    a = drawn((*lead, m, n), t, rng)
    if rng.integers(3) == 0 and m and n:
        a = np.asarray(rng.integers(-3, 4, (*lead, m, 1)) * rng.integers(-3, 4, (*lead, 1, n)), t)
    x = formula('pinv', [viewed(a, rng)], (*lead, n, m), t, rng)
    want = np.linalg.pinv(wide(a), rcond=1e-6) if m and n else np.zeros((*lead, n, m))
    size = np.sqrt((np.abs(want) ** 2).sum((-1, -2)))[..., None, None]
    return near(x, want, 300 * (m + n + 1) * eps * (1 + size + size * size * height(a)[..., None, None]))


def matrix_rank(t, eps, rng):
    lead, m, n = lead_of(rng), int(rng.integers(0, 9)), int(rng.integers(0, 9))
    r = int(rng.integers(0, min(m, n) + 1))
    a = np.asarray(rng.integers(-3, 4, (*lead, m, r)) @ rng.integers(-3, 4, (*lead, r, n)), t)
    x = formula('matrix_rank', [viewed(a, rng)], lead, 'i8', rng, -1.0, kinds=[real])
    y = formula('matrix_rank', [viewed(a, rng)], lead, 'i8', rng, 0.5, kinds=[real])
    s = np.linalg.svd(wide(a), compute_uv=False)
    most = s.max(-1, initial=0)[..., None]
    if np.any(np.abs(s - 0.5 * most) < 1e-5 * most):
        y = (s > 0.5 * most).sum(-1)
    return (near(x, np.asarray((s > max(m, n) * 1e-7 * most).sum(-1)), 0) or near(y, np.asarray((s > 0.5 * most).sum(-1)), 0))


def matrix_norm(t, eps, rng):
    lead, m, n = lead_of(rng), int(rng.integers(1, 9)), int(rng.integers(1, 9))
    a = drawn((*lead, m, n), t, rng)
    kind = int(rng.integers(8))
    order = ('fro', 'nuc', np.inf, -np.inf, 1, -1, 2, -2)[kind]
    x = formula('matrix_norm', [viewed(a, rng)], lead, part(t), rng, kind, kinds=[integer])
    want = np.linalg.norm(wide(a), order, (-2, -1)) if a.size else np.zeros(lead)
    return near(x, np.asarray(want), 100 * (m + n) * eps * (1 + height(a)))


def cond(t, eps, rng):
    lead, n = lead_of(rng), int(rng.integers(1, 8))
    a = regular(lead, n, t, rng)
    kind = int(rng.integers(8))
    order = ('fro', 'nuc', np.inf, -np.inf, 1, -1, 2, -2)[kind]
    x = formula('cond', [viewed(a, rng)], lead, part(t), rng, kind, kinds=[integer])
    want = np.linalg.cond(wide(a), order) if a.size else np.zeros(lead)
    return near(x, np.asarray(want), 300 * (n + 1) ** 2 * eps * (1 + np.abs(want)))


def matrix_power(t, eps, rng):
    lead, n, k = lead_of(rng), int(rng.integers(0, 7)), int(rng.integers(-5, 8))
    a = regular(lead, n, t, rng)
    x = formula('matrix_power', [viewed(a, rng)], a.shape, t, rng, k, kinds=[integer])
    want = np.linalg.matrix_power(wide(a), k)
    return near(x, want, 300 * (n + 1) * (abs(k) + 1) * eps * (1 + 3.0 ** abs(k)))


def vector_norm(t, eps, rng):
    shape = tuple(int(k) for k in rng.integers(1, 6, rng.integers(1, 4)))
    a = drawn(shape, t, rng)
    p = float(rng.choice([0, 0.5, 1, 2, 3, 7, np.inf, -np.inf, -1]))
    axis = int(rng.integers(len(shape)))
    x = formula('vector_norm', [viewed(a, rng)], (), part(t), rng, p, kinds=[real])
    one = (ctypes.c_int * 1)(axis)
    y = formula('vector_norm_axes', [viewed(a, rng)], shape[:axis] + shape[axis + 1:], part(t), rng, p, 1, one,
                kinds=[real, integer, pointer])
    z = formula('vector_norm_axes_keep', [viewed(a, rng)], shape[:axis] + (1,) + shape[axis + 1:], part(t), rng, p, 1, one,
                kinds=[real, integer, pointer])
    want, along = np.linalg.norm(wide(a).ravel(), p), np.linalg.norm(wide(a), p, axis)
    return (near(x, np.asarray(want), 200 * a.size * eps * (1 + want)) or
            near(y, np.asarray(along), 200 * a.size * eps * (1 + along)) or
            near(z, np.expand_dims(along, axis), 200 * a.size * eps * (1 + np.expand_dims(along, axis))))


def permutation(t, eps, rng):
    """P a = a[p] = L U."""
    lead, n = lead_of(rng), int(rng.integers(0, 9))
    a = drawn((*lead, n, n), t, rng)
    p = factors('lu', viewed(a, rng), [(a.shape, t), (a.shape, t), ((*lead, n), 'i8')], rng)[2]
    x = formula('permutation_matrix', [p], a.shape, t, rng, TYPES[t], kinds=[integer])
    return near(wide(x) @ wide(a), np.take_along_axis(wide(a), p[..., None], -2), 0)


def subnormal(t, eps, rng):
    """Systems and least squares of the smallest numbers have the solutions of scaled ones."""
    m, n, sides = int(rng.integers(1, 6)), int(rng.integers(1, 6)), int(rng.integers(1, 3))
    bits = int(rng.integers(1, 20))
    tiny = np.finfo(part(t)).smallest_subnormal
    def whole(*shape):
        a = rng.integers(-2**bits, 2**bits + 1, shape)
        return a + 1j * rng.integers(-2**bits, 2**bits + 1, shape) if t.kind == 'c' else a.astype('f8')
    a, b = whole(m, n), whole(m, sides)
    want = np.linalg.lstsq(a, b, rcond=None)[0]
    s = np.linalg.svd(a, compute_uv=False)
    if not s[0] or s[-1] < 1e-3 * s[0]:
        return None
    x = formula('lstsq', [(a * tiny).astype(t), (b * tiny).astype(t)], want.shape, t, rng)
    told = near(x, want, 3000 * (m + n) * eps * (s[0] / s[-1]) ** 2 * (1 + np.abs(want).max()) * np.sqrt(m))
    if told or m != n:
        return told
    y = formula('solve', [(a * tiny).astype(t), (b * tiny).astype(t)], want.shape, t, rng, None, kinds=[pointer])
    return near(y, want, 3000 * (m + n) * eps * (s[0] / s[-1]) ** 2 * (1 + np.abs(want).max()))


def singular(t, eps, rng):
    """One singular matrix of a stack: the status names it, and the result stays as it was."""
    n, count = int(rng.integers(1, 6)), int(rng.integers(1, 5))
    a = regular((2, count), n, t, rng)
    bad = int(rng.integers(count))
    a[1, bad] = 0
    before = np.full(a.shape, 7, t)
    out, x = wrap(before), wrap(a)
    lib.duet_inv.restype, lib.duet_inv.argtypes = Expr, [Expr]
    try:
        finish(lib.duet_set(out, lib.duet_inv(lib.duet_of_matrix(x))), [x, out], [out])
    except Failed as e:
        told = f'matrix [1,{bad}] of the stack' in str(e) and 'a is singular' in str(e)
        return None if told and (before == 7).all() else f'{e}; {before.ravel()[:3]}'
    return 'a singular matrix has an inverse'


def not_finite(t, eps, rng):
    lead, n = lead_of(rng), int(rng.integers(1, 6))
    a = drawn((*lead, n, n), t, rng)
    if not a.size:
        return None
    a.flat[int(rng.integers(a.size))] = rng.choice([np.nan, np.inf, -np.inf])
    name = rng.choice(['inv', 'det', 'svdvals'])
    try:
        formula(name, [a], {'inv': a.shape, 'det': lead, 'svdvals': (*lead, n)}[name], part(t) if name == 'svdvals' else t, rng)
    except Failed as e:
        return None if 'infinite or NaN' in str(e) else str(e)
    return f'{name} of an infinite matrix'


def main():
    rng = np.random.default_rng(20261127)
    cases = [f for name, f in globals().items() if callable(f) and getattr(f, '__code__', None) and f.__code__.co_varnames[:3] == ('t', 'eps', 'rng')]
    trials = int(sys.argv[3]) if len(sys.argv) > 3 else 120
    for k, case in enumerate(cases):
        wrong = []
        for trial in range(trials):
            t = np.dtype(('f4', 'f8', 'c8', 'c16')[trial % 4])
            try:
                with np.errstate(all='ignore'):
                    told = case(t, 2.0**-24 if part(t) == 'f4' else 2.0**-53, rng)
            except Failed as e:
                told = str(e)
            if told:
                wrong.append((trial, t.name, told))
        print('not ok' if wrong else 'ok', k + 1, '-', case.__name__)
        for w in wrong[:5]:
            print('#', *w)
    print(f'1..{len(cases)}')


main()
