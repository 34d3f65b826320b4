# dlpack_numpy.py LIBRARY - exchanges arrays with NumPy by DLPack, in capsules of Python. TAP; skipped where
# NumPy is not, or is older than 2.1, which has no versioned tensors.
import ctypes
import gc
import sys
import weakref

try:
    import numpy as np
except ImportError:
    print("1..0 # SKIP there is no NumPy")
    sys.exit(0)
if tuple(int(n) for n in np.__version__.split(".")[:2]) < (2, 1):
    print("1..0 # SKIP NumPy is older than 2.1")
    sys.exit(0)

VERSIONED, LEGACY = b"dltensor_versioned", b"dltensor"
NO_SYNC = -1
duet, python = ctypes.CDLL(sys.argv[1]), ctypes.pythonapi
pointer, text, i64 = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64


class options(ctypes.Structure):
    _fields_ = [("place", ctypes.c_int), ("writable", ctypes.c_int), ("copy", ctypes.c_int), ("stream", ctypes.c_ssize_t)]


class managed(ctypes.Structure):
    """The first members of DLManagedTensorVersioned."""


deleter = ctypes.CFUNCTYPE(None, pointer)
managed._fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", pointer),
                    ("deleter", deleter), ("flags", ctypes.c_uint64)]

for function, result, arguments in [
    (duet.duet_to_dlpack, ctypes.POINTER(managed), [pointer, ctypes.POINTER(options)]),
    (duet.duet_from_dlpack, pointer, [pointer, ctypes.c_ssize_t]),
    (duet.duet_from_dlpack_legacy, pointer, [pointer, ctypes.c_ssize_t]),
    (duet.duet_new_shape, pointer, [ctypes.c_int, ctypes.c_int, ctypes.POINTER(i64)]),
    (duet.duet_transposed, pointer, [pointer]),
    (duet.duet_overwrite, pointer, [pointer]),
    (duet.duet_read, pointer, [pointer]),
    (duet.duet_save_npy, ctypes.c_int, [text, pointer]),
    (duet.duet_free, None, [ctypes.POINTER(pointer)]),
    (duet.duet_error, text, []),
    (duet.duet_live, i64, [pointer]),
    (python.PyCapsule_New, ctypes.py_object, [pointer, text, pointer]),
    (python.PyCapsule_GetPointer, pointer, [ctypes.py_object, text]),
    (python.PyCapsule_SetName, ctypes.c_int, [ctypes.py_object, text]),
    (python.PyCapsule_IsValid, ctypes.c_int, [pointer, text]),
]:
    function.restype, function.argtypes = result, arguments
pointer_of = ctypes.PYFUNCTYPE(pointer, pointer, text)(("PyCapsule_GetPointer", python))
types = "f4 f8 i8 f2 - i1 i2 i4 u1 u2 u4 u8 ? c8 c16".split()  # in the order of duet_dtype; NumPy has no bf16
gen = np.random.default_rng(1)
failures, checks, points = [], 0, 0


def check(ok, what):
    global checks
    checks += 1
    if not ok:
        failures.append(what)


def point(name):
    global checks, points
    points += 1
    for what in failures[:10]:
        print("# " + str(what).replace("\n", "\n# "))
    print(f"{'not ok' if failures or not checks else 'ok'} {points} - {name} ({checks} checks)")
    failures.clear()
    checks = 0


def error():
    return duet.duet_error().decode()


def free(m):
    duet.duet_free(ctypes.byref(pointer(m)))


# ---- matrices for NumPy ----

@ctypes.CFUNCTYPE(None, pointer)
def end_capsule(capsule):
    """A capsule that nobody has used ends its tensor."""
    if python.PyCapsule_IsValid(capsule, VERSIONED):
        p = pointer_of(capsule, VERSIONED)
        ctypes.cast(p, ctypes.POINTER(managed)).contents.deleter(p)


class Matrix:
    """A matrix, with what NumPy needs."""

    def __init__(self, m, **choices):
        self.m, self.choices = m, choices

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        assert max_version and max_version[0] == 1 and stream is None
        o = options(1, self.choices.get("writable", 0), bool(copy), 0)
        t = duet.duet_to_dlpack(self.m, ctypes.byref(o))
        if not t:
            raise BufferError(error())
        return python.PyCapsule_New(t, VERSIONED, ctypes.cast(end_capsule, pointer))


def matrix(array):
    size = (i64 * array.ndim)(*array.shape)
    m = duet.duet_new_shape(types.index(array.dtype.str[1:].replace("b1", "?")), array.ndim, size)
    if array.size:
        ctypes.memmove(duet.duet_overwrite(m), np.ascontiguousarray(array).ctypes.data, array.nbytes)
    return m


def some_array(dtype):
    shape = tuple(int(n) for n in gen.integers(0, 5, gen.integers(0, 6)))
    return np.asarray(gen.random(shape) * 100).astype(dtype)


def export(dtype):
    a = some_array(dtype)
    m = matrix(a)
    turned = duet.duet_transposed(m)
    free(m)
    b = np.from_dlpack(Matrix(turned))
    check(b.dtype == a.dtype and b.shape == a.T.shape and np.array_equal(a.T, b), f"{a!r}\n{b!r}")
    check(not (a.size and b.flags.writeable), f"an array of a read-only tensor can be written: {a!r}")
    check(a.size == 0 or b.ctypes.data == duet.duet_read(turned), "the elements were copied")
    c = np.from_dlpack(Matrix(turned, writable=1))
    d = np.from_dlpack(Matrix(turned), copy=True)
    check(c.flags.writeable and np.array_equal(d, a.T), "options")
    if a.size:
        c[...] = 1
        check((b == 1).all() and np.array_equal(d, a.T) and d.ctypes.data != b.ctypes.data, "sharing")
    free(turned)
    check(np.array_equal(d, a.T) and (a.size == 0 or (b == 1).all()), "after the matrix was freed")


before = duet.duet_live(None)
for _ in range(20):
    for t in types:
        if t != "-":
            export(np.dtype(t))
gc.collect()
check(duet.duet_live(None) == before, f"{duet.duet_live(None) - before} matrices are left")
point("NumPy uses matrices, also as read-only arrays, writable ones and copies")

m = matrix(np.ones(3))
capsule = Matrix(m).__dlpack__(max_version=(1, 3))
free(m)
check(duet.duet_live(None) == before + 1, "the capsule keeps the matrix")
del capsule
gc.collect()
check(duet.duet_live(None) == before, "a capsule that nobody used keeps a matrix")
point("a capsule that nobody uses ends its tensor")


# ---- arrays for Duet ----

def take(array, **how):
    """The matrix of an array. The capsule gets the name that says that it was used."""
    capsule = array.__dlpack__(**how)
    name = VERSIONED if how else LEGACY
    function = duet.duet_from_dlpack if how else duet.duet_from_dlpack_legacy
    m = function(python.PyCapsule_GetPointer(capsule, name), NO_SYNC)
    if m:
        python.PyCapsule_SetName(capsule, {VERSIONED: b"used_dltensor_versioned", LEGACY: b"used_dltensor"}[name])
    return m


class Watched(np.ndarray):
    """An array that can be referred to weakly."""


def some_view(a):
    for _ in range(gen.integers(0, 4)):
        kind = gen.integers(0, 6)
        if kind == 0:
            a = a.T
        elif kind == 1 and a.ndim:
            a = np.flip(a, gen.integers(0, a.ndim))
        elif kind == 2 and a.ndim:
            a = a[gen.integers(0, 2)::gen.integers(1, 3)]
        elif kind == 3 and a.ndim < 7:
            a = np.expand_dims(a, 0)
        elif kind == 4 and a.ndim < 7:
            a = np.broadcast_to(a, (2,) + a.shape)
        elif kind == 5 and 0 < a.ndim < 7 and a.shape[0] > 1:
            a = np.lib.stride_tricks.sliding_window_view(a, 2, axis=0)
    return a


def elements(m, dtype, shape):
    """By NumPy again, from a tensor of the matrix."""
    return np.from_dlpack(Matrix(m), copy=True)


def receive(dtype):
    some = some_array(dtype)
    base = Watched(some.shape, dtype)  # the owner of its memory
    base[...] = some
    gone = weakref.ref(base)
    a = some_view(base)
    constant = not a.flags.writeable
    m = take(a, max_version=(1, 3)) if gen.random() < 0.7 or constant else take(a)
    check(m, error())
    if not m:
        return
    b = np.from_dlpack(Matrix(m))
    check(np.array_equal(a, b) and b.dtype == a.dtype and b.shape == a.shape, f"{a!r}\n{b!r}")
    check(a.size == 0 or b.ctypes.data == a.ctypes.data, "the elements were copied")
    p = duet.duet_overwrite(m)
    check(bool(p) != constant, f"a read-only array can be written: {error()}")
    del a, base
    gc.collect()
    check(gone() is not None, "the array ended while the matrix exists")
    free(m)
    check(gone() is not None, "the array ended while another array exists")
    del b
    gc.collect()
    check(gone() is None, "the array did not end with its matrix")


for _ in range(20):
    for t in types:
        if t != "-":
            receive(np.dtype(t))
check(duet.duet_live(None) == before, f"{duet.duet_live(None) - before} matrices are left")
point("matrices use arrays of NumPy: views, read-only arrays, and no longer than they exist")

check(not take(np.zeros((1,) * 9), max_version=(1, 3)) and "9 axes" in error(), error())
gc.collect()
check(duet.duet_live(None) == before, "refused arrays")
point("arrays that Duet does not support are refused with a reason, and stay NumPy's")
print(f"1..{points}")
