"""The functions of the array API about element types."""

import builtins

from . import _dtypes as dt
from . import _graph as g
from ._array import Array, _scalars, convert, node_of
from ._errors import TypeError


def astype(x, dtype, /, *, copy=True, device=None):
    """x with another element type."""
    node_of(x)
    made = convert(x, dt.check_dtype(dtype))
    if device is not None:
        made = made.to_device(device)
    return Array(made._node) if copy and made is x else made


def can_cast(from_, to, /):
    """Whether from_ promotes to the type `to`."""
    if from_.__class__ is Array:
        from_ = from_.dtype
    try:
        return dt.promote(dt.check_dtype(from_), dt.check_dtype(to)) is to
    except TypeError:
        return False


def finfo(type, /):
    """The properties of a floating-point type."""
    dtype = dt.check_dtype(type.dtype if type.__class__ is Array else type)
    if dtype.kind not in 'fc':
        raise TypeError(f'finfo needs a floating-point type, and not {dtype}')
    return dt.finfo_object(dtype)


def iinfo(type, /):
    """The properties of an integer type."""
    dtype = dt.check_dtype(type.dtype if type.__class__ is Array else type)
    if dtype.kind not in 'iu':
        raise TypeError(f'iinfo needs an integer type, and not {dtype}')
    return dt.iinfo_object(dtype)


KINDS = {
    'bool': 'b',
    'signed integer': 'i',
    'unsigned integer': 'u',
    'integral': 'iu',
    'real floating': 'f',
    'complex floating': 'c',
    'numeric': 'iufc',
}


def isdtype(dtype, kind):
    """Whether a type is of this kind, or of one of these kinds."""
    dt.check_dtype(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise builtins.ValueError(f'kind must be one of {", ".join(KINDS)}, and not {kind!r}')
        return dtype.kind in KINDS[kind]
    return dtype is dt.check_dtype(kind, 'kind')


def result_type(*arrays_and_dtypes):
    """The type to which arrays, types and Python numbers promote."""
    dtype, numbers = None, []
    for x in arrays_and_dtypes:
        if isinstance(x, _scalars):
            numbers.append(x)
            continue
        t = x.dtype if x.__class__ is Array else dt.check_dtype(x)
        dtype = t if dtype is None else dt.promote(dtype, t)
    for x in numbers:
        kind = dt.number_kind(x)
        if dtype is None:
            dtype = {'b': dt.bool_, 'i': dt.int64, 'f': dt.float64, 'c': dt.complex128}[kind]
        elif not dt.can_hold(dtype, kind):
            if kind == 'c' and dtype.kind == 'f':
                dtype = dt.complex_of[dtype]
            else:
                raise TypeError(f'the number {x!r} and {dtype} have no common type')
    if dtype is None:
        raise builtins.ValueError('result_type needs at least one argument')
    return dtype


class Info:
    """What this implementation of the array API can do."""

    def capabilities(self):
        return {'boolean indexing': True, 'data-dependent shapes': True, 'max dimensions': 8}

    def default_device(self):
        return g.auto

    def devices(self):
        return (g.auto, g.cpu, g.gpu) if has_gpu() else (g.auto, g.cpu)

    def default_dtypes(self, *, device=None):
        return {
            'real floating': dt.float64,
            'complex floating': dt.complex128,
            'integral': dt.int64,
            'indexing': dt.int64,
        }

    def dtypes(self, *, device=None, kind=None):
        return {
            t.name: t
            for t in dt.by_code
            if t not in (dt.float16, dt.bfloat16) and (kind is None or isdtype(t, kind))
        }


def __array_namespace_info__():
    """What this implementation of the array API can do."""
    return Info()


_gpu = []


def has_gpu():
    """Whether there is a GPU that the library can use."""
    if not _gpu:
        from ._library import lib

        m = g.Matrix(lib.new_shape(dt.float32.code, 0, None))
        _gpu.append(lib.set_on(g.gpu.place, m.pointer, lib.of_number(1.0)) == 0)
    return _gpu[0]
