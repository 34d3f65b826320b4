"""The class Array: operators, indexing, conversion to Python and NumPy, printing."""

import builtins
import ctypes
import functools
import operator as _operator
from sys import getrefcount

from . import _dtypes as dt
from . import _graph as g
from ._convert import from_python, from_memory, interface, nested, numbers_of
from ._dtypes import DType
from ._errors import IndexError, TypeError, ValueError, check
from ._graph import Node, make
from ._library import lib, structs

_Entry = structs['duet_index_entry']
_OPEN = -(2**63)
_OUT_OF_BOUNDS = -(2**62)  # POSITION_OUT_OF_BOUNDS of the library
_RANGE, _AT, _NEW = 0, 1, 2
_scalars = (builtins.int, builtins.float, builtins.complex)
_state, MOST, result_of, _settle = g.state, g.MOST, g.result_of, g._settle


class _Array:
    """The base class of arrays, if there is no compiled module."""

    __slots__ = ('_node', '_base', '__weakref__')

    def __init__(self, node):
        if node.__class__ is not Node:
            raise builtins.TypeError('use duet.asarray to make an array')
        self._node = node
        self._base = None

    def evaluate(self):
        """Computes the elements now, and returns the array."""
        g.value(self._node)
        return self


class Array(g.fast.Array if g.fast else _Array):
    """An array of numbers: its elements, or a formula that is not yet computed. Operators build formulas.
    They are computed when their elements are needed, in as few passes over memory as possible.

    x[key], duet.reshape(x, shape), x.T and x.mT are the elements that x has now. Writing to them (y[key] =
    value, y += value) writes to x as well: `_base` is x, with the function that reads them and the one that
    writes them."""

    __slots__ = ()
    __array_priority__ = 1000

    # ---- properties ----

    @property
    def dtype(self):
        return self._node.dtype

    @property
    def shape(self):
        return self._node.shape

    @property
    def ndim(self):
        return len(self._node.shape)

    @property
    def size(self):
        n = 1
        for k in self._node.shape:
            n *= k
        return n

    @property
    def device(self):
        return self._node.device

    @property
    def itemsize(self):
        return self._node.dtype.itemsize

    @property
    def nbytes(self):
        return self.size * self.itemsize

    @property
    def T(self):
        if self.ndim != 2:
            raise ValueError(
                f'T needs an array of 2 axes, and this one has {self.ndim}: use permute_dims or mT'
            )
        return self.mT

    @property
    def mT(self):
        n = self.ndim
        if n == 2:
            return part_of(self, _transposed, _put_transposed)
        if n < 2:
            raise ValueError(f'mT needs an array of at least 2 axes, and this one has {n}')
        order = *range(n - 2), n - 1, n - 2
        return part_of(self, lambda x: permute(x, order), lambda x, y: put(x, Ellipsis, permute(y, order)))

    @property
    def is_evaluated(self):
        """Whether the elements are computed."""
        return self._node.matrix is not None

    # ---- the array API ----

    def __array_namespace__(self, /, *, api_version=None):
        import duet

        if api_version not in (None, '2021.12', '2022.12', '2023.12', '2024.12', '2025.12'):
            raise builtins.ValueError(f'version {api_version} of the array API is not supported')
        return duet

    def to_device(self, device, /, *, stream=None):
        if stream is not None:
            raise builtins.ValueError('stream must be None: Duet orders its work itself')
        where = g.device(device)
        node = self._node
        if where is node.device:
            return self
        made = g.leaf(g.value(node), node.shape, node.dtype, where)
        made.kept = node.kept and g.VARIABLE
        return Array(made)

    def __dlpack_device__(self, /):
        from ._dlpack import device_of

        return device_of(self)

    def __dlpack__(self, /, *, stream=None, max_version=None, dl_device=None, copy=None):
        from ._dlpack import export

        return export(self, stream, max_version, dl_device, copy)

    # ---- conversion ----

    def item(self):
        """The only element as a Python number."""
        if self.size != 1:
            raise ValueError(f'item needs an array of one element, and the shape is {self.shape}')
        return numbers_of(self._node)[0]

    def tolist(self):
        """The elements as nested lists of Python numbers."""
        return nested(numbers_of(self._node), self.shape)

    def _one(self, what):
        if self.size != 1:
            raise builtins.TypeError(
                f'only an array of one element converts to {what}; the shape is {self.shape}'
            )
        return numbers_of(self._node)[0]

    def __bool__(self, /):
        if self.size != 1:
            raise ValueError(
                f'the truth of an array of shape {self.shape} is ambiguous: use duet.any or duet.all'
            )
        return builtins.bool(numbers_of(self._node)[0])

    def __int__(self, /):
        return builtins.int(self._one('int'))

    def __float__(self, /):
        x = self._one('float')
        if isinstance(x, builtins.complex):
            raise builtins.TypeError('a complex element does not convert to float: use duet.real')
        return builtins.float(x)

    def __complex__(self, /):
        return builtins.complex(self._one('complex'))

    def __index__(self, /):
        if self.dtype.kind not in 'iu':
            raise builtins.TypeError(
                f'only an integer array converts to an index, and this one is {self.dtype}'
            )
        return builtins.int(self._one('an index'))

    def __len__(self):
        if not self.shape:
            raise builtins.TypeError('an array without axes has no length')
        return self.shape[0]

    def __iter__(self):
        if not self.shape:
            raise builtins.TypeError('an array without axes cannot be iterated over')
        g.value(self._node)
        return (self[i] for i in range(self.shape[0]))

    def __contains__(self, x):
        from ._api import any as any_

        return builtins.bool(any_(self == x))

    __hash__ = None

    def __array__(self, dtype=None, copy=None):
        """The elements as an array of NumPy. Without a copy it shares memory and cannot be written."""
        return interface(self._node, dtype, copy)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        """numpy_array + duet_array is computed by Duet, if the operator has a name there."""
        import duet

        function = getattr(duet, ufunc.__name__, None)
        if method != '__call__' or kwargs or function is None:
            return NotImplemented
        return function(*[x if isinstance(x, (Array, *_scalars)) else asarray(x) for x in inputs])

    def __copy__(self):
        return Array(self._node)

    def __deepcopy__(self, memo):
        return Array(self._node)

    def __reduce__(self):
        import duet

        return duet._unpickle, (bytes(self), self.dtype, self.shape)

    def __bytes__(self):
        from ._convert import content

        return content(self._node)

    def __repr__(self):
        from ._print import represent

        return represent(self)

    def __str__(self):
        from ._print import show

        return show(self)

    def __format__(self, spec):
        if not spec:
            return str(self)
        return format(self.item(), spec)

    # ---- indexing ----

    def __getitem__(self, key, /):
        if key.__class__ is Array or (key.__class__ is tuple and any(k.__class__ is Array for k in key)):
            return get(self, key)
        return part_of(self, lambda x: get(x, key), lambda x, y: put(x, key, y))

    def __setitem__(self, key, value, /):
        put(self, key, value)


# ---- operators -----------------------------------------------------------------------------------


def _operands(x, y):
    """The operands of an operator, or None if one of them is something else."""
    if x.__class__ is Array:
        x = x._node
    elif not isinstance(x, _scalars):
        return None
    if y.__class__ is Array:
        y = y._node
    elif not isinstance(y, _scalars):
        return None
    return x, y


def binary(op):
    """The methods x + y and y + x of an operator of two operands. The common case takes few lines here;
    `make` does the same for all cases."""
    metas, of_number = {}, {}  # shape and type of the result for those of the operands

    def method(self, other, /):
        a = self._node
        if other.__class__ is Array:
            b = other._node
            meta = metas.get((a.shape, a.dtype, b.shape, b.dtype))
            if meta is not None and a.device is b.device is _state.device and not (a.kept or b.kept):
                node = Node(op, (a, b), (), meta[0], meta[1], a.device, a.weight + b.weight + 1)
                if node.weight > MOST:
                    _settle(node)
                new = _new(Array)
                new._node = node
                new._base = None
                return new
            meta = result_of(op, (a, b))
            if len(metas) > 1000:
                metas.clear()
            metas[a.shape, a.dtype, b.shape, b.dtype] = meta
        elif other.__class__ is float:
            b = other
            meta = metas.get((a.shape, a.dtype))
            if meta is not None and a.device is _state.device and not a.kept:
                node = Node(op, (a, b), (), meta[0], meta[1], a.device, a.weight + 1)
                if node.weight > MOST:
                    _settle(node)
                new = _new(Array)
                new._node = node
                new._base = None
                return new
            meta = result_of(op, (a, b))
            if len(metas) > 1000:
                metas.clear()
            metas[a.shape, a.dtype] = meta
        elif isinstance(other, _scalars):
            b, meta = other, None
        else:
            return NotImplemented
        return Array(make(op, (a, b), (), meta))

    def reflected(self, other, /):
        if not isinstance(other, _scalars):
            return NotImplemented
        a = self._node
        meta = of_number.get((a.shape, a.dtype)) if other.__class__ is float else None
        if meta is not None and a.device is _state.device and not a.kept and a.weight < MOST:
            new = _new(Array)
            new._node = Node(op, (other, a), (), meta[0], meta[1], a.device, a.weight + 1)
            new._base = None
            return new
        made = make(op, (other, a))
        if other.__class__ is float:
            if len(of_number) > 1000:
                of_number.clear()
            of_number[a.shape, a.dtype] = made.shape, made.dtype
        return Array(made)

    return method, reflected


def general(op):
    """The same methods, for all cases and without shortcuts."""

    def method(self, other, /):
        if other.__class__ is not Array and not isinstance(other, _scalars):
            return NotImplemented
        return Array(make(op, (self._node, other._node if other.__class__ is Array else other)))

    def reflected(self, other, /):
        return Array(make(op, (other, self._node))) if isinstance(other, _scalars) else NotImplemented

    return method, reflected


def function_of_one(op, x, metas):
    """A function of one array. `metas` belongs to the function, as above."""
    if x.__class__ is not Array:
        node_of(x)
    a = x._node
    if g.fast:
        return Array(make(op, (a,)))
    meta = metas.get((a.shape, a.dtype))
    if meta is None:
        meta = result_of(op, (a,))
        if len(metas) > 1000:
            metas.clear()
        metas[a.shape, a.dtype] = meta
    if a.kept or a.device is not _state.device or a.weight >= MOST:
        return Array(make(op, (a,), (), meta))
    new = _new(Array)
    new._node = Node(op, (a,), (), meta[0], meta[1], a.device, a.weight + 1)
    new._base = None
    return new


_new = object.__new__


def part_of(x, read, write):
    """What `read` selects of x. Writing to it writes to x, too."""
    made = read(x)
    if made is x:
        made = Array(x._node)
    made._base = x, read, write
    return made


def refresh(x):
    """Reads a part of another array again before it is written, because that array may have changed."""
    base, read, _ = x._base
    if base._base is not None:
        refresh(base)
    x._node = read(base)._node


def write_back(x):
    """Writes a part of another array to that array."""
    base, _, write = x._base
    g.value(x._node)
    write(base, Array(x._node))


def in_place(method):
    def update(self, other, /):
        if self._base is not None:
            refresh(self)
        result = method(self, other)
        if result is NotImplemented:
            return result
        old, new = self._node, result._node
        if new.shape != old.shape:
            raise ValueError(
                f'the result of the operator in place has shape {new.shape}, and not {old.shape}'
            )
        if new.dtype is not old.dtype:
            raise TypeError(f'the result of the operator in place is {new.dtype}, and not {old.dtype}')
        replace(self, new)
        return self

    return update


def replace(x, node):
    """Makes x the name of another value."""
    old = x._node
    if old.kept == g.VARIABLE:
        node.kept = g.VARIABLE
    if old.matrix is not None and old.matrix.pinned:
        if node is not old:
            check(lib.set(old.matrix.pointer, lib.of_matrix(g.value(node).pointer)))
            g.hand_back(old.matrix)
    else:
        x._node = node
    if x._base is not None:
        write_back(x)


def unary(op):
    metas = {}

    def method(self, /):
        return function_of_one(op, self, metas)

    return method


def quick(op, count, function, is_elementwise=True):
    """A function of `count` operands with shortcuts, if they are compiled. `function` handles all cases."""
    if not g.fast or count > 2:
        return function
    made = g.fast.Operator(op, function, is_elementwise)
    return made.one if count == 1 else made.two


_BINARY = {
    'add': lib.add,
    'sub': lib.sub,
    'mul': lib.mul,
    'truediv': lib.div,
    'mod': lib.remainder,
    'pow': lib.pow,
    'and': lib.bitwise_and,
    'or': lib.bitwise_or,
    'xor': lib.bitwise_xor,
    'lshift': lib.shift_left,
    'rshift': lib.shift_right,
}
_COMPARE = {
    'eq': lib.equal,
    'ne': lib.not_equal,
    'lt': lib.less,
    'le': lib.less_equal,
    'gt': lib.greater,
    'ge': lib.greater_equal,
}


_UNARY = {'neg': lib.neg, 'abs': lib.abs, 'invert': lib.bitwise_not}


def _set_method(name, f):
    f.__name__ = name
    f.__qualname__ = 'Array.' + name
    setattr(Array, name, f)


def of_one_complex_type(*arrays):
    """The arrays, converted to their common type if one of them is complex: both operands of a product must
    have the same complex type."""
    dtypes = {x.dtype for x in arrays}
    if len(dtypes) == 1 or all(d.kind != 'c' for d in dtypes):
        return arrays
    common = functools.reduce(dt.promote, dtypes)
    return tuple(cast(x, common) for x in arrays)


def _matmul(self, other, /):
    if other.__class__ is not Array:
        return NotImplemented
    a, b = of_one_complex_type(self, other)
    return Array(make(lib.matmul, (a._node, b._node)))


def _rmatmul(self, other, /):
    return NotImplemented


_transposed = quick(lib.transpose, 1, lambda x: Array(make(lib.transpose, (x._node,))), False)


def _put_transposed(x, y):
    put(x, Ellipsis, _transposed(y))


def _bind_operators():
    """Gives arrays the compiled operators."""
    g.fast.use(Array)
    for name, op in {**_BINARY, **_COMPARE}.items():
        method, reflected = general(op)
        g.fast.bind(name, g.fast.Operator(op, method, True, reflected))
    for name, op in _UNARY.items():
        g.fast.bind(name, g.fast.Operator(op, lambda x, op=op: Array(make(op, (x._node,))), True))
    g.fast.bind('matmul', g.fast.Operator(lib.matmul, _matmul, False, _rmatmul))


def _add_operators():
    if g.fast:
        _bind_operators()
    else:
        for name, op in {**_BINARY, **_COMPARE}.items():
            method, reflected = binary(op)
            _set_method(f'__{name}__', method)
            if name in _BINARY:
                _set_method(f'__r{name}__', reflected)
        for name, op in _UNARY.items():
            _set_method(f'__{name}__', unary(op))
        _set_method('__matmul__', _matmul)
        _set_method('__rmatmul__', _rmatmul)
    for name in (*_BINARY, 'matmul'):
        _set_method(f'__i{name}__', in_place(getattr(Array, f'__{name}__')))

    def __floordiv__(self, other, /):
        if _operands(self, other) is None:
            return NotImplemented
        from ._elementwise import floor_divide

        return floor_divide(self, other)

    def __rfloordiv__(self, other, /):
        if _operands(other, self) is None:
            return NotImplemented
        from ._elementwise import floor_divide

        return floor_divide(other, self)

    def __ifloordiv__(self, other, /):
        return in_place(__floordiv__)(self, other)

    def __pos__(self, /):
        if self.dtype.kind == 'b':
            raise TypeError('+x is not defined for an array of bool')
        return Array(self._node)

    for f in __floordiv__, __rfloordiv__, __ifloordiv__, __pos__:
        setattr(Array, f.__name__, f)


_add_operators()


# ---- building blocks, which the functions of the namespace use, too ------------------------------


def node_of(x, name='x'):
    if x.__class__ is not Array:
        raise TypeError(f'{name} must be an array of Duet, and not {type(x).__name__}: use duet.asarray')
    return x._node


def apply(op, *args, attrs=()):
    """An operator on arrays and numbers."""
    return Array(make(op, tuple([a._node if a.__class__ is Array else a for a in args]), attrs))


def axis_of(axis, rank, name='axis'):
    try:
        k = _operator.index(axis)
    except builtins.TypeError:
        raise TypeError(f'{name} must be an integer, and not {axis!r}') from None
    if not -rank <= k < rank:
        raise IndexError(f'{name} {k} is out of bounds for an array of {rank} axes')
    return k % rank


def axes_of(axis, rank):
    """A tuple of different axes."""
    if axis is None:
        return tuple(range(rank))
    axes = tuple(axis_of(k, rank) for k in (axis if isinstance(axis, (tuple, list)) else (axis,)))
    if len(set(axes)) < len(axes):
        raise ValueError(f'an axis occurs twice in {axis}')
    return axes


def shape_of(shape):
    if not isinstance(shape, (tuple, list)):
        shape = (shape,)
    try:
        shape = tuple([_operator.index(n) for n in shape])
    except builtins.TypeError:
        raise TypeError(f'a shape must consist of integers, and not {shape!r}') from None
    return shape


def permute(x, order):
    node = x._node
    if order == tuple(range(len(order))):
        return x
    meta = tuple([node.shape[k] for k in order]), node.dtype
    return Array(make(lib.permute, (node,), (len(order), g.ints(order)), meta))


def reshape(x, shape):
    node = x._node
    if node.shape == shape:
        return x
    return Array(make(lib.reshape, (node,), (len(shape), g.sizes(shape))))


def broadcast(x, shape):
    node = x._node
    if node.shape == shape:
        return x
    return Array(make(lib.broadcast, (node,), (len(shape), g.sizes(shape))))


def cast(x, dtype):
    if x._node.dtype is dtype:
        return x
    return Array(make(lib.cast, (x._node,), (dtype.code,)))


def concat(arrays, axis):
    count = len(arrays)
    if count == 1:
        return arrays[0]
    if count > 64:  # in several steps, so that no formula is too large
        return concat([concat(arrays[i : i + 64], axis) for i in range(0, count, 64)], axis)
    nodes = tuple([a._node for a in arrays])
    return Array(make(_concats(count), nodes, (axis,)))


_joins = {}


def _concats(count):
    op = _joins.get(count)
    if op is None:

        def op(*args, _type=ctypes.c_uint64 * count):
            return lib.concat(args[-1], count, _type(*args[:-1]))

        if g.fast:
            g.fast.register(op, ctypes.cast(lib.concat, ctypes.c_void_p).value, 'concat', False)
        _joins[count] = op
    return op


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    if dtype is not None:
        dt.check_dtype(dtype)
    where = g.device(device) if device is not None else None
    if obj.__class__ is Array:
        if copy is False and dtype not in (None, obj.dtype):
            raise ValueError(f'a conversion from {obj.dtype} to {dtype} needs a copy')
        x = obj if dtype is None else convert(obj, dtype)
        if where is not None and where is not x.device:
            x = x.to_device(where)
        if copy:
            x = Array(x._node)
        return x
    x = Array(from_python(obj, dtype, copy))
    where = where or g.state.device
    if where is not x._node.device:
        x._node.device = where
    return x


def convert(x, dtype):
    """A cast, also from complex numbers to bool."""
    if x.dtype.kind == 'c' and dtype.kind == 'b':
        return x != 0
    return cast(x, dtype)


# ---- indexing ------------------------------------------------------------------------------------

_interned_entries = {}


def _entries(entries):
    """The entries of a key for the library. Equal keys give the same object."""
    entries = tuple(entries)
    made = _interned_entries.get(entries)
    if made is None:
        if len(_interned_entries) > 10000:
            _interned_entries.clear()
        made = _interned_entries[entries] = g.c_array(_Entry, entries)
    return made


def _bound(x, limit):
    """A bound of a slice in the range of int64_t."""
    if x is None:
        return _OPEN
    x = _operator.index(x)
    return max(min(x, limit), -limit - 1)


def parse(key, shape):
    """Splits a key in basic entries, as the C library takes them, and the arrays in it with their positions
    among the axes of the result of the basic entries. Also returns the shape of that result."""
    keys = key if key.__class__ is tuple else (key,)
    rank = len(shape)
    used = 0
    rest = None
    for i, k in enumerate(keys):
        if k is Ellipsis:
            if rest is not None:
                raise IndexError('a key has at most one ellipsis (...)')
            rest = i
        elif k is not None:
            used += k.ndim if k.__class__ is Array and k.dtype.kind == 'b' else 1
    if used > rank:
        raise IndexError(f'too many indices: the array has {rank} axes, and the key has {used}')
    if rest is None:
        rest, keys = len(keys), (*keys, Ellipsis)
    entries, arrays, out, axis = [], [], [], 0
    for k in keys:
        if k is Ellipsis:
            for _ in range(rank - used):
                entries.append((_RANGE, _OPEN, _OPEN, 1))
                out.append(shape[axis])
                axis += 1
        elif k is None:
            entries.append((_NEW, 0, 0, 0))
            out.append(1)
        elif k.__class__ is slice:
            n = shape[axis]
            try:
                step = 1 if k.step is None else _operator.index(k.step)
                entries.append((_RANGE, _bound(k.start, n), _bound(k.stop, n), max(min(step, n + 1), -n - 1)))
                out.append(len(range(n)[k]))
            except builtins.TypeError:
                raise TypeError(f'the bounds of a slice must be integers, and not {k!r}') from None
            except builtins.ValueError as error:
                raise IndexError(str(error)) from None
            axis += 1
        elif k.__class__ is Array and (k.ndim or k.dtype.kind == 'b'):
            if k.dtype.kind not in 'iub':
                raise IndexError(f'an index must be integers or bools, and not {k.dtype}')
            arrays.append((len(out), k))
            for _ in range(k.ndim if k.dtype.kind == 'b' else 1):
                entries.append((_RANGE, _OPEN, _OPEN, 1))
                out.append(shape[axis])
                axis += 1
        else:
            try:
                if isinstance(k, builtins.bool):
                    raise builtins.TypeError
                i = _operator.index(k)
            except builtins.TypeError:
                raise IndexError(
                    'an index must be an integer, a slice, None, an ellipsis or an array of '
                    f'integers or bools, and not {type(k).__name__}'
                ) from None
            n = shape[axis]
            if not -n <= i < n:
                raise IndexError(f'index {i} is out of bounds for axis {axis} of size {n}')
            entries.append((_AT, i, 0, 0))
            axis += 1
    return entries, arrays, tuple(out)


_PLAIN = (_RANGE, _OPEN, _OPEN, 1)
_parsed = {}  # what basic keys mean for a shape: entries, and the shape of the result


def _part_name(k):
    """A part of a basic index as part of a key of _parsed, or False. Numbers of other types may be equal to
    an integer without being an index."""
    kind = k.__class__
    if kind is builtins.int or k is None or k is Ellipsis:
        return k
    if kind is slice:
        bounds = k.start, k.stop, k.step
        for b in bounds:
            if b is not None and b.__class__ is not builtins.int:
                return False
        return bounds
    return False


def _key_name(key, shape):
    if key.__class__ is not tuple:
        name = _part_name(key)
        return name is not False and (name, shape)
    names = tuple([_part_name(k) for k in key])
    for name in names:
        if name is False:
            return False
    return names, shape, None


def get(x, key):
    node = x._node
    name = _key_name(key, node.shape)
    found = name and _parsed.get(name)
    if found:
        return Array(make(lib.index, (node,), found[0], (found[1], node.dtype)))
    entries, arrays, shape = parse(_with_integers(key, node.shape), node.shape)
    if any(e != _PLAIN for e in entries):
        attrs = len(entries), _entries(entries)
        x = Array(make(lib.index, (node,), attrs, (shape, node.dtype)))
        if name:
            if len(_parsed) > 4096:
                _parsed.clear()
            _parsed[name] = attrs, shape
    elif not arrays:
        return Array(node)
    return gather(x, arrays) if arrays else x


def _is_number(k):
    return (
        isinstance(k, builtins.int)
        and not isinstance(k, builtins.bool)
        or k.__class__ is Array
        and k.ndim == 0
        and k.dtype.kind in 'iu'
    )


def _with_integers(key, shape):
    """If a key has arrays with axes, its integers become arrays too, as in NumPy: x[a, 0] and x[0, a] place
    the axes of a by the same rule."""
    if key.__class__ is not tuple or not any(
        k.__class__ is Array and (k.ndim or k.dtype.kind == 'b') for k in key
    ):
        return key
    if not any(_is_number(k) for k in key):
        return key
    used = sum(
        k.ndim if k.__class__ is Array and k.dtype.kind == 'b' else 1
        for k in key
        if k is not None and k is not Ellipsis
    )
    out, axis = [], 0
    for k in key:
        if k is Ellipsis:
            axis += len(shape) - used
        elif k is not None:
            if _is_number(k):
                i, n = _operator.index(k), shape[axis] if axis < len(shape) else 0
                if not -n <= i < n:
                    raise IndexError(f'index {i} is out of bounds for axis {axis} of size {n}')
                k = asarray([i])
            axis += k.ndim if k.__class__ is Array and k.dtype.kind == 'b' else 1
        out.append(k)
    return tuple(out)


def gather(x, arrays):
    """x[...] with arrays in the key, at the given axes."""
    if len(arrays) == 1:
        axis, k = arrays[0]
        if k.dtype.kind == 'b':
            if axis == 0:
                return masked(x, k)
        else:
            return apply(lib.take, x, k, attrs=(axis,))
    axes, indices, adjacent = split_masks(arrays, x.shape)
    x, position = front(x, axes, adjacent)
    flat, index = flatten(x, indices, len(axes), position)
    return apply(lib.take, flat, index, attrs=(position,))


def masked(x, mask):
    if mask.ndim == 0:
        return masked(reshape(x, (1, *x.shape)), reshape(mask, (1,)))
    check_mask(x.shape, mask, 0)
    if mask.shape != x.shape[: mask.ndim]:  # an axis of size 0 in the mask
        return Array(
            g.leaf(
                g.new_matrix(
                    lib.new_shape(x.dtype.code, x.ndim - mask.ndim + 1, g.sizes((0, *x.shape[mask.ndim :])))
                ),
                (0, *x.shape[mask.ndim :]),
                x.dtype,
                x.device,
            )
        )
    if mask.ndim == x.ndim and x.size == 0:
        return reshape(x, (0,))
    return from_matrix(lib.masked(c_formula(x), c_formula(mask)), x.device)


def c_formula(x):
    matrix = g.value(x._node)
    if matrix.pinned:
        g.take_over(matrix)
    return lib.of_matrix(matrix.pointer)


def from_matrix(pointer, where):
    """An array that owns a new matrix of the C library."""
    matrix = g.new_matrix(pointer)
    shape = tuple([lib.size(pointer, k) for k in range(lib.rank(pointer))])
    return Array(g.leaf(matrix, shape, dt.by_code[lib.type(pointer)], where))


def check_mask(shape, mask, axis):
    here = shape[axis : axis + mask.ndim]
    if len(here) < mask.ndim or not all(m in (n, 0) for m, n in zip(mask.shape, here)):
        raise IndexError(f'the mask has shape {mask.shape}, and the array has {here} there')


def split_masks(arrays, shape):
    """The axes and the arrays of integers; masks become the indices of their elements that are true."""
    axes, indices = [], []
    for axis, k in arrays:
        if k.dtype.kind == 'b':
            check_mask(shape, k, axis)
            rows = from_matrix(lib.nonzero(c_formula(k)), k.device)
            for j in range(k.ndim):
                axes.append(axis + j)
                indices.append(rows[:, j])
        else:
            axes.append(axis)
            indices.append(k)
    adjacent = axes == list(range(axes[0], axes[0] + len(axes)))
    return axes, indices, adjacent


def front(x, axes, adjacent):
    """x with the given axes side by side: where they are if they are adjacent, else in front."""
    if adjacent:
        return x, axes[0]
    others = [k for k in range(x.ndim) if k not in axes]
    return permute(x, (*axes, *others)), 0


def flatten(x, indices, count, position):
    """x with `count` axes joined, and the index there for several arrays of indices. An index out of bounds
    becomes one for which the library has a separate error text."""
    from ._api import broadcast_shapes

    joined = x.shape[position : position + count]
    shape = broadcast_shapes(*[k.shape for k in indices])
    total = 1
    for n in joined:
        total *= n
    index = valid = None
    for k, n in zip(indices, joined):
        least = 0 if k.dtype is dt.uint64 else -n  # a uint64 that is too large for int64 becomes negative
        k = cast(k, dt.int64)
        good = (k >= least) & (k < n)
        k = apply(lib.where, k < 0, k + n, k)
        index = k if index is None else index * n + k
        valid = good if valid is None else valid & good
    index = broadcast(apply(lib.where, valid, index, _OUT_OF_BOUNDS), shape)
    return reshape(x, (*x.shape[:position], total, *x.shape[position + count :])), index


def put(x, key, value):
    """x[key] = value"""
    if x._base is not None:
        refresh(x)
    # No name for the node of x here: `own` counts the references to it.
    dtype, whole = x.dtype, x.shape
    if value.__class__ is not Array:
        if not isinstance(value, _scalars):
            value = asarray(value)
        else:
            kind = dt.number_kind(value)
            if not dt.can_hold(dtype, kind):
                raise TypeError(f'an array of {dtype} cannot hold the number {value!r}')
    elif value.dtype is not dtype and dt.promote(value.dtype, dtype) is not dtype:
        raise TypeError(f'an array of {dtype} cannot hold elements of {value.dtype}: use duet.astype')
    if key.__class__ is Array and key.dtype.kind == 'b':
        check_mask(whole, key, 0)
        if key.ndim == 0 and value.__class__ is Array and value.ndim:
            if value.ndim > len(whole):  # the part has one axis more: it is all of x, or nothing
                if builtins.bool(key):
                    put(x, Ellipsis, value)
                return
            value = broadcast(value, whole)
        if value.__class__ is not Array or value.ndim == 0 or key.ndim == 0:
            if key.shape != whole[: key.ndim]:
                return
            mask = reshape(key, key.shape + (1,) * (x.ndim - key.ndim))
            replace(x, cast(where_(mask, value, x), dtype)._node)
            return
    entries, arrays, shape = parse(_with_integers(key, whole), whole)
    if any(k.dtype.kind == 'b' and k.ndim == 0 for _, k in arrays):
        raise IndexError('a mask without axes cannot be assigned to')
    if arrays:
        scatter(x, entries, arrays, value)
        return
    assign(x, entries, shape, value)


def where_(mask, a, b):
    from ._api import where

    return where(mask, a, b)


def _references(x):
    """How many references there are to the node of x, and to its matrix."""
    node = x._node
    matrix = node.matrix
    return getrefcount(node), getrefcount(matrix)


def _measure():
    """The same where nothing but x has the value. It differs between versions of Python."""
    shape = (1,)
    x = Array(g.leaf(g.new_matrix(lib.new_shape(dt.bool_.code, 1, g.sizes(shape))), shape, dt.bool_, g.auto))
    return _references(x)


ALONE = _measure()


def own(x):
    """A matrix that only x names, so that it can be written in place."""
    g.value(x._node)
    counts = _references(x)
    node = x._node
    matrix = node.matrix
    if matrix.pinned or (matrix.pinned is False and counts[0] <= ALONE[0] and counts[1] <= ALONE[1]):
        return matrix
    copy = g.new_matrix(lib.copy(matrix.pointer))
    made = g.leaf(copy, node.shape, node.dtype, node.device)
    made.kept = node.kept and g.VARIABLE
    x._node = made
    return copy


def assign(x, entries, shape, value):
    if value.__class__ is Array:
        more = value.ndim - len(shape)
        if more > 0:
            if any(n != 1 for n in value.shape[:more]):
                raise ValueError(
                    f'an array of shape {value.shape} cannot be assigned to a part of shape {shape}'
                )
            value = reshape(value, value.shape[more:])
        g.value(value._node)
    matrix = own(x)
    e = c_formula(value) if value.__class__ is Array else g.number(value)
    if all(k == _PLAIN for k in entries):
        check(lib.set(matrix.pointer, e))
        g.hand_back(matrix)
        if x._base is not None:
            write_back(x)
        return
    view = lib.indexed_by(matrix.pointer, len(entries), _entries(entries))
    if not view:
        lib.drop(e)
        raise g.make_error()
    try:
        check(lib.set(view, e))
    finally:
        lib.free(ctypes.byref(ctypes.c_void_p(view)))
    g.hand_back(matrix)
    if x._base is not None:
        write_back(x)


def scatter(x, entries, arrays, value):
    """x[...] = value with arrays in the key."""
    from ._creation import iota

    whole = x.shape
    total = 1
    for n in whole:
        total *= n
    # The index of each element, selected by the same key, says where to write.
    positions = Array(reshape(iota(total, dt.int64), whole)._node)
    if any(e != _PLAIN for e in entries):
        positions = Array(make(lib.index, (positions._node,), (len(entries), _entries(entries))))
    positions = gather(positions, arrays)
    if value.__class__ is not Array:
        value = _number_like(value, x)
    values = broadcast(cast(value, x.dtype), positions.shape)
    count = positions.size
    flat = apply(
        lib.put, reshape(x, (total,)), reshape(positions, (count,)), reshape(values, (count,)), attrs=(0,)
    )
    made = reshape(flat, whole)._node
    g.value(made)
    replace(x, made)


def _number_like(value, x):
    from ._creation import full

    return full((), value, dtype=x.dtype, device=x.device)


__all__ = ['Array', 'DType', 'asarray', 'from_memory']
