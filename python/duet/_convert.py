"""Elements between Python, memory of other libraries, NumPy, and matrices."""

import builtins
import ctypes
import struct
import sys

from . import _dtypes as dt
from . import _graph as g
from ._errors import TypeError, ValueError, check, make_error
from ._library import lib

_pythonapi = ctypes.pythonapi


class _Buffer(ctypes.Structure):
    """Py_buffer of Python's C interface."""

    _fields_ = [
        ('buf', ctypes.c_void_p),
        ('obj', ctypes.py_object),
        ('len', ctypes.c_ssize_t),
        ('itemsize', ctypes.c_ssize_t),
        ('readonly', ctypes.c_int),
        ('ndim', ctypes.c_int),
        ('format', ctypes.c_char_p),
        ('shape', ctypes.POINTER(ctypes.c_ssize_t)),
        ('strides', ctypes.POINTER(ctypes.c_ssize_t)),
        ('suboffsets', ctypes.c_void_p),
        ('internal', ctypes.c_void_p),
    ]


_FORMATS = {
    'f': dt.float32,
    'd': dt.float64,
    'e': dt.float16,
    '?': dt.bool_,
    'Zf': dt.complex64,
    'Zd': dt.complex128,
    'b': dt.int8,
    'B': dt.uint8,
}
for _code, _names in (('h', 'int16'), ('i', 'int32'), ('l', 'int'), ('q', 'int64')):
    _bits = 8 * struct.calcsize(_code)
    _FORMATS[_code] = dt.by_name[f'int{_bits}']
    _FORMATS[_code.upper()] = dt.by_name[f'uint{_bits}']


def address(pointer):
    return pointer.value if isinstance(pointer, ctypes.c_void_p) else pointer


# ---- to a matrix ---------------------------------------------------------------------------------


def from_python(obj, dtype=None, copy=None):
    """A node with the elements of a number, nested sequences, or an object with a buffer."""
    if isinstance(obj, (builtins.bool, builtins.int, builtins.float, builtins.complex)) and not hasattr(
        obj, '__array_interface__'
    ):
        if copy is False:
            raise ValueError('a number cannot be shared: use copy=None')
        return from_numbers([obj], (), dtype)
    if hasattr(obj, '__array_interface__'):
        return from_interface(obj, dtype, copy)
    if not isinstance(obj, (list, tuple)):
        try:
            return from_buffer(obj, dtype, copy)
        except builtins.TypeError:
            pass
        if hasattr(obj, '__dlpack__'):
            from ._dlpack import load

            x = load(obj, None, copy)
            return convert_node(x._node, dtype)
        if hasattr(obj, '__array__'):
            return from_interface(obj.__array__(), dtype, copy)
        if hasattr(obj, '__index__'):
            return from_numbers([obj.__index__()], (), dtype)
        if not isinstance(obj, range):
            raise TypeError(f'asarray cannot convert {type(obj).__name__} to an array')
    if copy is False:
        raise ValueError('a sequence cannot be shared: use copy=None')
    return from_sequence(obj, dtype)


def convert_node(node, dtype):
    if dtype is None or node.dtype is dtype:
        return node
    if node.dtype.kind == 'c' and dtype.kind == 'b':
        return g.make(lib.not_equal, (node, 0))
    return g.make(lib.cast, (node,), (dtype.code,))


def from_sequence(obj, dtype):
    from ._array import Array

    flat = []
    shape = _flatten(obj, flat, 0)
    arrays = [x for x in flat if x.__class__ is Array]
    if arrays:
        g.evaluate([x._node for x in arrays if x._node.matrix is None])
        if dtype is None:
            dtype = arrays[0].dtype
            for x in arrays:
                dtype = dt.promote(dtype, x.dtype)
        flat = [numbers_of(x._node)[0] if x.__class__ is Array else x for x in flat]
    return from_numbers(flat, shape, dtype)


def _flatten(obj, flat, depth):
    """Appends the numbers of nested sequences to `flat`, and returns their shape."""
    from ._array import Array

    if isinstance(obj, (list, tuple, range)):
        if depth >= 8:
            raise ValueError('an array has at most 8 axes')
        if not obj:
            return (0,)
        shapes = {_flatten(x, flat, depth + 1) for x in obj}
        if len(shapes) > 1:
            raise ValueError('the sequences do not have equal lengths')
        return (len(obj), *shapes.pop())
    if obj.__class__ is Array:
        if obj.ndim == 0:
            flat.append(obj)
        else:
            flat.extend(numbers_of(obj._node))
        return obj.shape
    if not isinstance(obj, (builtins.int, builtins.float, builtins.complex)):
        if hasattr(obj, 'tolist'):
            return _flatten(obj.tolist(), flat, depth)
        if hasattr(obj, '__index__'):
            obj = obj.__index__()
        else:
            raise TypeError(f'asarray cannot convert {type(obj).__name__} to a number')
    flat.append(obj)
    return ()


_KINDS = {'b': dt.bool_, 'i': dt.int64, 'f': dt.float64, 'c': dt.complex128}


def from_numbers(flat, shape, dtype):
    if dtype is None:
        kinds = {dt.number_kind(x) for x in flat}
        dtype = next((_KINDS[k] for k in 'cfib' if k in kinds), dt.float64)
        if dtype is dt.int64 and any(not -(2**63) <= x < 2**63 for x in flat):
            dtype = dt.uint64
    elif dtype.kind in 'fiu' and any(isinstance(x, builtins.complex) for x in flat):
        raise TypeError(f'an array of {dtype} cannot hold complex numbers')
    data = pack(flat, dtype)
    pointer = lib.from_array_shape(data, dtype.code, len(shape), g.sizes(shape))
    return g.leaf(g.new_matrix(pointer), shape, dtype, g.state.device)


def pack(flat, dtype):
    """The numbers in memory."""
    n = len(flat)
    if dtype.kind in 'iu':
        if any(not dtype.low <= x <= dtype.high for x in flat):
            bad = next(x for x in flat if not dtype.low <= x <= dtype.high)
            raise ValueError(f'the number {bad} is out of the range of {dtype}')
        return (dt.c_types[dtype] * max(n, 1))(*map(int, flat))
    if dtype.kind == 'b':
        return (ctypes.c_bool * max(n, 1))(*map(bool, flat))
    if dtype.kind == 'c':
        part = dt.c_types[dt.part_of[dtype]]
        data = (part * max(2 * n, 1))()
        flat = [builtins.complex(x) for x in flat]
        data[0 : 2 * n : 2], data[1 : 2 * n : 2] = [x.real for x in flat], [x.imag for x in flat]
        return data
    flat = [builtins.float(x) for x in flat]
    if dtype is dt.float16:
        return ctypes.create_string_buffer(b''.join(map(_half, flat)) or b'\0\0')
    if dtype is dt.bfloat16:
        return (ctypes.c_uint16 * max(n, 1))(*[_brain(x) for x in flat])
    return (dt.c_types[dtype] * max(n, 1))(*flat)


def _half(x):
    try:
        return struct.pack('<e', x)
    except OverflowError:
        return struct.pack('<e', builtins.float('inf') if x > 0 else -builtins.float('inf'))


def _brain(x):
    (bits,) = struct.unpack('<I', bytes(ctypes.c_float(x)))
    if x != x:
        return bits >> 16 | 0x40
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def from_memory(first, dtype, shape, strides, owner, share, where=None):
    """A node with elements in memory. `strides` are in bytes, or None for row-major order without gaps."""
    size = dtype.itemsize
    where = where or g.state.device
    rank = len(shape)
    if strides is None or _is_dense(shape, strides, size):
        if share:
            pointer = lib.wrap_shape(first or ctypes.addressof(_NOTHING), dtype.code, rank, g.sizes(shape))
        else:
            pointer = lib.from_array_shape(
                first or ctypes.addressof(_NOTHING), dtype.code, rank, g.sizes(shape)
            )
            owner = None
    else:
        steps = tuple([s // size for s in strides])
        if any(s % size for s in strides):
            raise ValueError(f'strides of {strides} bytes are not multiples of the size of {dtype}')
        pointer = lib.wrap_strided(first, dtype.code, rank, g.sizes(shape), g.sizes(steps))
        if not share:
            if not pointer:
                raise make_error()
            view = g.Matrix(pointer)
            pointer = lib.copy(view.pointer)
            del view
            owner = None
    matrix = g.new_matrix(pointer, owner)
    matrix.pinned = share
    return g.leaf(matrix, shape, dtype, where)


_NOTHING = (ctypes.c_double * 2)()


def _is_dense(shape, strides, size):
    for n, s in zip(reversed(shape), reversed(strides)):
        if n != 1 and s != size:
            return 0 in shape
        size *= n
    return True


def from_interface(obj, dtype, copy):
    """An object with NumPy's __array_interface__."""
    about = obj.__array_interface__
    name = about['typestr']
    if name[0] == '>' and name[1:] != 'b1' and int(name[2:]) > 1:
        raise TypeError('asarray needs elements in the byte order of this machine')
    found = dt.from_typestr.get(('|' if int(name[2:]) == 1 else '<') + name[1:])
    if found is None:
        raise TypeError(f'Duet has no element type for {name}')
    data, shape, strides = about.get('data'), tuple(about['shape']), about.get('strides')
    if data is None:
        return from_buffer(obj, dtype, copy)
    convert = dtype is not None and dtype is not found
    if copy is False and (convert or data[1]):
        raise ValueError('the array needs a copy: ' + ('its type differs' if convert else 'it is read-only'))
    node = from_memory(data[0], found, shape, strides, obj, copy is False)
    return convert_node(node, dtype)


def from_buffer(obj, dtype, copy):
    """An object with a buffer, such as bytes, array.array and memoryview."""
    buffer = _Buffer()
    _pythonapi.PyObject_GetBuffer(
        ctypes.py_object(obj), ctypes.byref(buffer), 0x0118 | 4
    )  # strided, formatted
    try:
        name = (buffer.format or b'B').decode()
        found = _FORMATS.get(name.lstrip('@=<') if sys.byteorder == 'little' else name.lstrip('@=>'))
        if found is None or found.itemsize != buffer.itemsize:
            raise TypeError(f'Duet has no element type for a buffer of format {name!r}')
        shape = tuple(buffer.shape[: buffer.ndim]) if buffer.ndim else ()
        strides = tuple(buffer.strides[: buffer.ndim]) if buffer.strides and buffer.ndim else None
        convert = dtype is not None and dtype is not found
        if copy is False and (convert or buffer.readonly):
            raise ValueError(
                'the buffer needs a copy: ' + ('its type differs' if convert else 'it is read-only')
            )
        owner = memoryview(obj) if copy is False else None
        node = from_memory(buffer.buf, found, shape, strides, owner, copy is False)
    finally:
        _pythonapi.PyBuffer_Release(ctypes.byref(buffer))
    return convert_node(node, dtype)


# ---- from a matrix -------------------------------------------------------------------------------


def content(node):
    """The elements in memory, in row-major order."""
    matrix = g.value(node)
    count = 1
    for n in node.shape:
        count *= n
    data = ctypes.create_string_buffer(max(count * node.dtype.itemsize, 16))
    check(lib.to_array(matrix.pointer, data))
    return data.raw[: count * node.dtype.itemsize]


def numbers_of(node):
    """The elements as a flat list of Python numbers."""
    dtype = node.dtype
    matrix = node.matrix or g.value(node)
    count = 1
    for n in node.shape:
        count *= n
    if not count:
        return []
    part = dt.part_of.get(dtype, dtype)
    kind = dt.c_types[part]
    if count == 1:
        first = lib.read(matrix.pointer)
        if not first:
            raise make_error()
        data = (kind * (2 if dtype.kind == 'c' else 1)).from_address(first)
    else:
        data = (kind * (2 * count if dtype.kind == 'c' else count))()
        check(lib.to_array(matrix.pointer, data))
    if dtype.kind == 'c':
        return [builtins.complex(a, b) for a, b in zip(data[0::2], data[1::2])]
    if dtype is dt.float16:
        return list(struct.unpack(f'<{count}e', bytes(data)))
    if dtype is dt.bfloat16:
        return [struct.unpack('<f', struct.pack('<I', x << 16))[0] for x in data]
    return data[:]


def nested(flat, shape):
    if not shape:
        return flat[0]
    if len(shape) == 1:
        return flat
    part = 1
    for n in shape[1:]:
        part *= n
    return [nested(flat[i * part : (i + 1) * part], shape[1:]) for i in range(shape[0])]


class Exported:
    """Elements as NumPy reads them. It keeps the matrix alive."""

    def __init__(self, node):
        self.matrix = matrix = g.value(node)
        first = lib.read(matrix.pointer)
        if not first:
            raise make_error()
        size = node.dtype.itemsize
        strides = tuple([lib.stride(matrix.pointer, k) * size for k in range(len(node.shape))])
        self.__array_interface__ = {
            'shape': node.shape,
            'typestr': dt.typestr[node.dtype],
            'data': (first, not (matrix.pinned and matrix.keep is not None)),
            'strides': strides,
            'version': 3,
        }


def interface(node, dtype, copy):
    """The elements as an array of NumPy."""
    import numpy

    if node.dtype is dt.bfloat16:
        node = convert_node(node, dt.float32)
    array = numpy.asarray(Exported(node))
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError(f'a conversion to {dtype} needs a copy')
        return array.astype(dtype)
    return array.copy() if copy else array
