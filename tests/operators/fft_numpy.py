# fft_numpy.py LIBRARY dtype.def - transforms and shifts against numpy.fft, through the library's C functions.
# TAP; skipped where there is no numpy.
import ctypes, re, sys

try:
    import numpy as np
except ImportError:
    print('1..0 # SKIP no numpy')
    sys.exit(0)

lib = ctypes.CDLL(sys.argv[1])
rows = re.findall(r'^DUET_(?:DTYPE|INTEGER|HALF|NARROW|COMPLEX)\((\w+)', open(sys.argv[2]).read(), re.M)
TYPES = {np.dtype(t): rows.index(name) for t, name in (('f4', 'F32'), ('f8', 'F64'), ('c8', 'C64'), ('c16', 'C128'))}


class Expr(ctypes.Structure):
    _fields_ = [('serial', ctypes.c_uint64)]


class Fourier(ctypes.Structure):
    _fields_ = [('axes', ctypes.c_int32), ('axis', ctypes.c_int32 * 8), ('n', ctypes.c_int32 * 8)]


lib.duet_wrap_shape.restype = lib.duet_read.restype = ctypes.c_void_p
lib.duet_wrap_shape.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
lib.duet_of_matrix.restype, lib.duet_of_matrix.argtypes = Expr, [ctypes.c_void_p]
lib.duet_set.argtypes = [ctypes.c_void_p, Expr]
lib.duet_read.argtypes = [ctypes.c_void_p]
lib.duet_error.restype = ctypes.c_char_p
lib.duet_free.argtypes = [ctypes.c_void_p]


def wrap(a):
    size = (ctypes.c_int64 * a.ndim)(*a.shape)
    return ctypes.c_void_p(lib.duet_wrap_shape(a.ctypes.data, TYPES[a.dtype], a.ndim, size))


def duet(name, x, want_type, shape, axes, n):
    f = getattr(lib, 'duet_' + name)
    f.restype, f.argtypes = Expr, [Expr, ctypes.c_void_p]
    o = Fourier(len(axes), (ctypes.c_int32 * 8)(*axes), (ctypes.c_int32 * 8)(*n))
    y = np.zeros(shape, want_type)
    a, b = wrap(x), wrap(y)
    status = lib.duet_set(b, f(lib.duet_of_matrix(a), ctypes.byref(o)))
    if status:
        raise RuntimeError(lib.duet_error().decode())
    lib.duet_read(b)
    lib.duet_free(ctypes.byref(a)), lib.duet_free(ctypes.byref(b))
    return y


rng = np.random.default_rng(20261122)
narrow = {np.dtype('f8'): np.dtype('f4'), np.dtype('c16'): np.dtype('c8')}
points = 0
for name in 'fftn', 'ifftn', 'rfftn', 'irfftn', 'fftshift', 'ifftshift':
    failed, skipped = [], 0
    for trial in range(120):
        rank = int(rng.integers(1, 5))
        shape = tuple(int(k) for k in rng.integers(1, 12, rank))
        x = rng.standard_normal(shape)
        if name == 'irfftn' or (name != 'rfftn' and trial % 3):
            x = x + 1j * rng.standard_normal(shape)
        axes = [int(a) for a in rng.permutation(rank)[: rng.integers(1, rank + 1)]]
        shift = name.endswith('shift')
        n = [0] * len(axes) if shift else [int(rng.integers(1, 15)) for _ in axes]
        if trial % 2:
            x = x.astype(narrow[x.dtype])
        want = getattr(np.fft, name)(x, axes=axes) if shift else getattr(np.fft, name)(x.astype(np.result_type(x, 'f8')), s=n, axes=axes)
        want_type = want.dtype if not trial % 2 or shift else narrow[want.dtype]
        x = np.ascontiguousarray(x)
        got = duet(name, x, want_type, want.shape, axes, n)
        u, N = (2.0**-24 if trial % 2 else 2.0**-53), float(np.prod(n)) if not shift else 1
        scale = (1 / N if name[0] == 'i' else 1) * (N**0.5)
        error = np.linalg.norm((got - want).ravel())
        if not error <= (0 if shift else 64 * u * np.log2(2 * N) * scale * np.linalg.norm(x.ravel()) * 2**0.5):
            failed.append((x.shape, axes, n, error))
    points += 1
    print('not ok' if failed else 'ok', points, '-', name, 'is numpy.fft\'s')
    for f in failed[:5]:
        print('#', *f)
print(f'1..{points}')
