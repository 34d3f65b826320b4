"""Groups: arrays on several GPUs, or on parts of the CPU. Formulas use them like all other arrays."""

import builtins
import ctypes
import operator
from weakref import WeakValueDictionary

from . import _dtypes as dt
from . import _graph as g
from ._array import Array, asarray, node_of, shape_of
from ._errors import ValueError, check, make_error
from ._library import lib

_pointer = ctypes.c_void_p
_groups = WeakValueDictionary()  # by the address of the duet_group


class Group:
    """An ordered set of devices, which are called ranks and numbered from 0 on. Make one with
    duet.Group.local."""

    __slots__ = ('_handle', '_owned', '__weakref__')

    def __init__(self, handle, matrix=None):
        """`matrix`: one on the group, which keeps the group alive; None: this object frees the group."""
        if handle.__class__ is not _pointer:
            raise builtins.TypeError('use duet.Group.local to make a group')
        self._handle, self._owned = handle, matrix
        _groups[handle.value] = self

    @classmethod
    def local(cls, ranks=0):
        """A group of devices of this process: its first GPUs, or parts of its CPU if it has no GPU or inside
        `with duet.on('cpu')`. 0 ranks: all GPUs, or one part."""
        pointer = lib.group_local(operator.index(ranks))
        if not pointer:
            raise make_error()
        return cls(_pointer(pointer))

    def __del__(self, free=lib.group_free, byref=ctypes.byref):
        if getattr(self, '_owned', self) is None:
            free(byref(self._handle))  # arrays on the group keep it

    def __reduce__(self):
        raise builtins.TypeError('a group cannot be copied')

    def __repr__(self):
        return f'<duet.Group of {self.ranks} ranks>'

    @property
    def ranks(self):
        """The number of ranks."""
        return lib.group_ranks(self._handle)

    @property
    def rank(self):
        """The first rank in this process."""
        return lib.group_rank(self._handle)

    @property
    def near(self):
        """The number of ranks in this process."""
        return lib.group_near(self._handle)

    def info(self):
        """The devices of the group and how they are connected, as text."""
        from ._run import _Text

        with _Text() as out:
            lib.group_info(out.file, self._handle)
        return out.text

    def timeout(self, seconds):
        """Sets how long a statement waits for the other ranks before it fails."""
        check(lib.group_timeout(self._handle, builtins.float(seconds)))

    def split(self, x, axis=0, *, dtype=None):
        """A copy of an array, or of numbers, of which each rank has a part along an axis."""
        return self._copy(x, axis, dtype)

    def replicated(self, x, *, dtype=None):
        """A copy of an array, or of numbers, of which each rank has all elements."""
        return self._copy(x, None, dtype)

    def zeros(self, shape, *, axis=None, dtype=None):
        """Zeros, split along an axis, or replicated if it is None."""
        shape, dtype = shape_of(shape), dt.check_dtype(dtype or dt.float64)
        return Array(g.leaf(self._new(shape, axis, dtype), shape, dtype, g.auto))

    def _new(self, shape, axis, dtype):
        if axis is None:
            axis = -1
        else:
            axis, rank = operator.index(axis), len(shape)
            if not -rank <= axis < rank:
                raise ValueError(f'axis {axis} is out of range for an array of {rank} axes')
            axis %= rank
        return g.new_on(self._handle, axis, dtype, shape)

    def _copy(self, x, axis, dtype):
        node = asarray(x, dtype=dtype)._node
        value = g.value(node)
        if value.pinned:
            g.take_over(value)
        matrix = self._new(node.shape, axis, node.dtype)
        check(lib.set(matrix.pointer, lib.of_matrix(value.pointer)))
        made = g.leaf(matrix, node.shape, node.dtype, g.auto)
        made.kept = node.kept and g.VARIABLE
        return Array(made)


def group_of(x, /):
    """The group of an array, or None. A formula is computed first."""
    matrix = g.value(node_of(x))
    pointer = lib.group_of(matrix.pointer)
    if not pointer:
        return None
    return _groups.get(pointer) or Group(_pointer(pointer), matrix)


def split_axis(x, /):
    """The axis along which an array is split, or None. A formula is computed first."""
    axis = lib.split_axis(g.value(node_of(x)).pointer)
    return None if axis < 0 else axis


def split_part(x, rank, /):
    """The elements along the split axis that a rank has, as slice(first, end); slice(None) if it is
    replicated. A formula is computed first."""
    first, count = ctypes.c_int64(), ctypes.c_int64()
    matrix = g.value(node_of(x))
    check(
        lib.split_part(matrix.pointer, operator.index(rank), ctypes.addressof(first), ctypes.addressof(count))
    )
    if lib.split_axis(matrix.pointer) < 0:
        return slice(None)
    return slice(first.value, first.value + count.value)
