"""Element types: their properties and the table of promotion."""

import builtins
import ctypes

from . import _errors
from ._library import dtypes as _order

_NAMES = {
    'F32': ('float32', 'f', 4),
    'F64': ('float64', 'f', 8),
    'I64': ('int64', 'i', 8),
    'F16': ('float16', 'f', 2),
    'BF16': ('bfloat16', 'f', 2),
    'I8': ('int8', 'i', 1),
    'I16': ('int16', 'i', 2),
    'I32': ('int32', 'i', 4),
    'U8': ('uint8', 'u', 1),
    'U16': ('uint16', 'u', 2),
    'U32': ('uint32', 'u', 4),
    'U64': ('uint64', 'u', 8),
    'BOOL': ('bool', 'b', 1),
    'C64': ('complex64', 'c', 8),
    'C128': ('complex128', 'c', 16),
}
_LIMITS = {  # bits of the exponent and of the fraction
    'float16': (5, 10),
    'bfloat16': (8, 7),
    'float32': (8, 23),
    'float64': (11, 52),
}


class DType:
    """An element type. There is one object for each type."""

    __slots__ = ('name', 'code', 'kind', 'itemsize', 'low', 'high')

    def __init__(self, name, code, kind, itemsize):
        self.name, self.code, self.kind, self.itemsize = name, code, kind, itemsize
        bits = 8 * itemsize
        self.low = -(2 ** (bits - 1)) if kind == 'i' else 0
        self.high = {'i': 2 ** (bits - 1) - 1, 'u': 2**bits - 1, 'b': 1}.get(kind)

    def __repr__(self):
        return 'duet.' + self.name

    def __str__(self):
        return self.name

    def __reduce__(self):
        return _by_name, (self.name,)


def _by_name(name):
    return by_name[name]


by_code = [DType(_NAMES[n][0], code, *_NAMES[n][1:]) for code, n in enumerate(_order)]
by_name = {t.name: t for t in by_code}
(
    float32,
    float64,
    int64,
    float16,
    bfloat16,
    int8,
    int16,
    int32,
    uint8,
    uint16,
    uint32,
    uint64,
    bool_,
    complex64,
    complex128,
) = (
    by_name[n]
    for n in (
        'float32',
        'float64',
        'int64',
        'float16',
        'bfloat16',
        'int8',
        'int16',
        'int32',
        'uint8',
        'uint16',
        'uint32',
        'uint64',
        'bool',
        'complex64',
        'complex128',
    )
)
part_of = {complex64: float32, complex128: float64}
complex_of = {
    float32: complex64,
    float64: complex128,
    float16: complex64,
    bfloat16: complex64,
    complex64: complex64,
    complex128: complex128,
}
_SIGNED = {8: int8, 16: int16, 32: int32, 64: int64}

# ctypes, and the characters of the modules struct and memoryview
c_types = {
    float32: ctypes.c_float,
    float64: ctypes.c_double,
    int64: ctypes.c_int64,
    int8: ctypes.c_int8,
    int16: ctypes.c_int16,
    int32: ctypes.c_int32,
    uint8: ctypes.c_uint8,
    uint16: ctypes.c_uint16,
    uint32: ctypes.c_uint32,
    uint64: ctypes.c_uint64,
    bool_: ctypes.c_bool,
    float16: ctypes.c_uint16,
    bfloat16: ctypes.c_uint16,
}
typestr = {
    t: f'<{t.kind}{t.itemsize}' if t.itemsize > 1 else f'|{t.kind}{t.itemsize}'
    for t in by_code
    if t is not bfloat16
}
from_typestr = {s: t for t, s in typestr.items()}


def check_dtype(dtype, name='dtype'):
    if type(dtype) is not DType:
        raise builtins.TypeError(f'{name} must be a type of Duet, such as duet.float32, and not {dtype!r}')
    return dtype


_promoted = {}


def promote(a, b):
    """The type of the table in docs/semantics.md. It is that of the array API."""
    if a is b:
        return a
    try:
        return _promoted[a, b]
    except KeyError:
        result = _promoted[a, b] = _promote(a, b)
        return result


def _promote(a, b):
    if a.kind == 'b':
        return b
    if b.kind == 'b':
        return a
    kinds = a.kind + b.kind
    if kinds in ('ii', 'uu'):
        return a if a.itemsize >= b.itemsize else b
    if kinds in ('iu', 'ui'):
        signed, unsigned = (a, b) if a.kind == 'i' else (b, a)
        if unsigned.itemsize < 8:
            return _SIGNED[8 * max(signed.itemsize, 2 * unsigned.itemsize)]
    elif kinds == 'ff':
        if {a, b} == {float16, bfloat16}:
            return float32
        return a if a.itemsize > b.itemsize else b
    elif 'i' not in kinds and 'u' not in kinds:
        return promote_complex(a, b)
    raise _errors.TypeError(f'{a} and {b} have no common type: use duet.astype')


def promote_complex(a, b):
    parts = promote(part_of.get(a, a), part_of.get(b, b))
    return complex_of[parts]


def number_kind(x):
    """The kind of a Python number: b, i, f or c."""
    if isinstance(x, builtins.bool):
        return 'b'
    if isinstance(x, builtins.int):
        return 'i'
    return 'f' if isinstance(x, builtins.float) else 'c'


def can_hold(dtype, kind):
    """Whether a Python number of this kind takes this type without changing its kind."""
    return kind in {'b': 'b', 'i': 'i', 'u': 'i', 'f': 'if', 'c': 'ifc'}[dtype.kind]


class finfo_object:
    def __init__(self, dtype):
        part = part_of.get(dtype, dtype)
        exponent, fraction = _LIMITS[part.name]
        top = 2 ** (exponent - 1)
        self.dtype, self.bits = part, 8 * part.itemsize
        self.eps = 2.0**-fraction
        self.max = (2 - 2.0**-fraction) * 2.0 ** (top - 1)
        self.min = -self.max
        self.smallest_normal = 2.0 ** (2 - top)

    def __repr__(self):
        return f'finfo(dtype={self.dtype}, bits={self.bits}, eps={self.eps}, max={self.max})'


class iinfo_object:
    def __init__(self, dtype):
        self.dtype, self.bits, self.min, self.max = dtype, 8 * dtype.itemsize, dtype.low, dtype.high

    def __repr__(self):
        return f'iinfo(dtype={self.dtype}, min={self.min}, max={self.max})'
