# linear_numpy.py LIBRARY dtype.def - linear algebra against numpy.linalg, through the library's C functions:
# stacks of matrices, vectors and matrices as right-hand sides, views. TAP; skipped where there is no numpy.
import ctypes, re, sys

try:
    import numpy as np
except ImportError:
    print('1..0 # SKIP no numpy')
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
