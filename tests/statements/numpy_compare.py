# numpy_compare.py LIBRARY - what duet_print writes, and what files hold, against NumPy itself. TAP; skipped
# where NumPy is not.
import ctypes
import io
import os
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("1..0 # SKIP there is no NumPy")
    sys.exit(0)

duet, libc = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(None)
pointer, text = ctypes.c_void_p, ctypes.c_char_p


class named(ctypes.Structure):
    _fields_ = [("name", text), ("m", pointer)]


for function, result, arguments in [
    (duet.duet_load_npy, pointer, [text]),
    (duet.duet_save_npy, ctypes.c_int, [text, pointer]),
    (duet.duet_load_npz, pointer, [text, text]),
    (duet.duet_save_npz, ctypes.c_int, [text, ctypes.POINTER(named), ctypes.c_int]),
    (duet.duet_print, ctypes.c_int, [pointer, pointer]),
    (duet.duet_free, None, [ctypes.POINTER(pointer)]),
    (duet.duet_info, None, [pointer]),
    (duet.duet_error, text, []),
    (libc.fopen, pointer, [text, text]),
    (libc.fclose, ctypes.c_int, [pointer]),
]:
    function.restype, function.argtypes = result, arguments

gen = np.random.default_rng(1)
failures, checks = [], 0


def check(ok, what):
    global checks
    checks += 1
    if not ok:
        failures.append(what)


def point(number, name):
    global checks
    for what in failures[:10]:
        print("# " + what.replace("\n", "\n# "))
    print(f"{'not ok' if failures or not checks else 'ok'} {number} - {name} ({checks} checks)")
    failures.clear()
    checks = 0


def free(m):
    duet.duet_free(ctypes.byref(pointer(m)))


def written(call, *more):
    f = libc.fopen(b"out", b"w")
    call(*([f] if not more else [f, *more]))
    libc.fclose(f)
    return open("out").read()


def array_of(kind, shape):
    """Small numbers, large ones, round ones, and what is not finite."""
    type = np.dtype(kind)
    if type.kind == "b":
        return gen.integers(0, 2, shape).astype(type)
    if type.kind in "iu":
        least = np.iinfo(type).min, np.iinfo(type).max
        low, high = least if gen.integers(0, 3) == 0 else (0 if type.kind == "u" else -9, 9)
        return gen.integers(low, high, shape, dtype=type.newbyteorder("="), endpoint=True).astype(type)

    def real():
        x = gen.standard_normal(shape)
        way = gen.integers(0, 6)
        x = [x, np.round(x * 10), x * 10.0 ** gen.integers(-9, 9), np.exp(5 * x), np.round(x, 2), x][way]
        x = np.array(x)
        if way == 5 and x.size:
            flat = x.reshape(-1)
            flat[gen.integers(0, x.size, max(1, x.size // 4))] = gen.choice([np.nan, np.inf, -np.inf, 0.0, -0.0])
        return x

    with np.errstate(all="ignore"):
        if type.kind != "c":
            return real().astype(type)
        z = np.empty(shape, np.complex128)
        z.real, z.imag = real(), real()
        return z.astype(type)


def same(a, b):
    native = a.dtype.newbyteorder("=")
    return b.dtype == native and a.shape == b.shape and a.astype(native).tobytes() == b.tobytes()


# Older ones print numbers as large as their type has digits in another way.
prints_alike = tuple(int(n) for n in np.__version__.split(".")[:2]) >= (2, 4)


def in_old_digits(a):
    size = np.abs(np.concatenate([a.real.ravel(), a.imag.ravel()]).astype(float))
    size = size[np.isfinite(size)]
    return a.dtype.kind not in "fc" or not len(size) or size.max() < (900 if a.dtype.itemsize == 2 else 9e5)


def try_one(a):
    np.save("a.npy", a)
    m = duet.duet_load_npy(b"a.npy")
    check(m, f"{a.dtype}{a.shape}: {duet.duet_error()}")
    if not m:
        return
    if prints_alike or in_old_digits(a):
        got, want = written(duet.duet_print, m), str(a) + "\n"
        check(got == want, f"{a.dtype}{a.shape} prints\n{got}not\n{want}")
    check(duet.duet_save_npy(b"b.npy", m) == 0, duet.duet_error())
    b = np.load("b.npy")
    check(same(a, b) and a.flags.c_contiguous == b.flags.c_contiguous, f"{a.dtype}{a.shape} comes back otherwise")
    free(m)


def test_each():
    kinds = "f4 f8 f2 i1 i2 i4 i8 u1 u2 u4 u8 ? c8 c16 >f4 >i8 >c16 >f2".split()
    for _ in range(2500):
        rank = gen.integers(0, 5)
        sizes = [0, 1, 1, 2, 3, 5, 7, 8, 20, 60, 300] if rank < 3 else [1, 2, 3, 8, 12]
        shape = tuple(int(gen.choice(sizes)) for _ in range(rank))
        if np.prod(shape) > 20000:
            continue
        a = array_of(kinds[gen.integers(0, len(kinds))], shape)
        try_one(np.asfortranarray(a) if rank > 1 and gen.integers(0, 2) else np.asarray(a))


def test_npz(deflates):
    for turn in range(60):
        arrays = {f"x{k}": array_of("f8 i4 c8".split()[k % 3], (k, turn)) for k in range(4)}
        (np.savez_compressed if turn % 2 and deflates else np.savez)("a.npz", **arrays)
        list = (named * 4)()
        for k, (name, a) in enumerate(arrays.items()):
            list[k] = named(name.encode(), duet.duet_load_npz(b"a.npz", name.encode()))
            check(list[k].m, duet.duet_error())
        check(duet.duet_save_npz(b"b.npz", list, 4) == 0, duet.duet_error())
        for k in range(4):
            free(list[k].m)
        with np.load("b.npz") as back:
            check(back.files == [*arrays] and all(same(a, back[n]) for n, a in arrays.items()), f"npz {turn}")


with tempfile.TemporaryDirectory() as where:
    os.chdir(where)
    test_each()
    point(1, "print, and .npy there and back")
    test_npz("zlib" in written(duet.duet_info))
    point(2, ".npz there and back")
    os.chdir("/")
print("1..2")
