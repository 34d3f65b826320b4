"""Exchange of elements with other libraries, without copying them: DLPack."""

import builtins
import ctypes
import gc
import threading
from sys import getrefcount

from . import _graph as g
from ._array import Array, from_matrix
from ._errors import make_error
from ._library import lib, structs

CPU, CUDA, PINNED, MANAGED = 1, 2, 3, 13
_VERSIONED, _PLAIN = b'dltensor_versioned', b'dltensor'
_api = ctypes.pythonapi
_new, _is_valid, _get, _rename = (
    _api.PyCapsule_New,
    _api.PyCapsule_IsValid,
    _api.PyCapsule_GetPointer,
    _api.PyCapsule_SetName,
)
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
_get.restype, _get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_rename.restype, _rename.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Head(ctypes.Structure):
    """The start of a tensor with a version."""

    _fields_ = [
        ('version', ctypes.c_uint32 * 2),
        ('context', ctypes.c_void_p),
        ('deleter', ctypes.c_void_p),
        ('flags', ctypes.c_uint64),
    ]


class _Plain(ctypes.Structure):
    """A tensor of DLPack before 1.0."""

    _fields_ = [
        ('data', ctypes.c_void_p),
        ('device', ctypes.c_int32 * 2),
        ('ndim', ctypes.c_int32),
        ('dtype', ctypes.c_uint8 * 4),
        ('shape', ctypes.c_void_p),
        ('strides', ctypes.c_void_p),
        ('offset', ctypes.c_uint64),
        ('context', ctypes.c_void_p),
        ('deleter', ctypes.c_void_p),
    ]


# A capsule's destructor may run while its consumer raises an exception, and no Python code can run then.
# So capsules have none: those that are not taken are found here, and their tensors are ended at the next
# export, or when Python collects garbage.
_lent, _sweeping = [], threading.Lock()


def _references(capsules):
    return [getrefcount(capsules[i]) for i in range(len(capsules))]


_ALONE = _references([_new(1, _PLAIN, None)])[0]


def _sweep(*_):
    """Ends tensors that nobody took, and to whose capsules nothing else refers."""
    if not _lent or not _sweeping.acquire(blocking=False):
        return
    try:
        alone = [n <= _ALONE for n in _references(_lent)]
        ended = [c for c, a in zip(_lent, alone) if a]
        _lent[: len(alone)] = [c for c, a in zip(_lent, alone) if not a]
    finally:
        _sweeping.release()
    for capsule in ended:
        for name, kind in (_VERSIONED, _Head), (_PLAIN, _Plain):
            if _is_valid(capsule, name):
                pointer = _get(capsule, name)
                deleter = kind.from_address(pointer).deleter
                if deleter:
                    _Deleter(deleter)(pointer)


gc.callbacks.append(_sweep)


def device_of(x):
    """x.__dlpack_device__()"""
    if x._node.device is not g.cpu:
        where = lib.dlpack_device(g.value(x._node).pointer)
        return where.device_type, where.device_id
    return CPU, 0


def export(x, stream, max_version, dl_device, copy):
    """x.__dlpack__()"""
    _sweep()
    place = g.auto
    if dl_device is not None:
        kind = builtins.int(getattr(dl_device[0], 'value', dl_device[0]))
        if kind not in (CPU, CUDA):
            raise builtins.BufferError(f'an array cannot be exported to the device {dl_device}')
        place = g.cpu if kind == CPU else g.gpu
    elif x._node.device is g.cpu:
        place = g.cpu
    matrix = g.value(x._node)
    versioned = max_version is not None and max_version[0] >= 1
    # Other names of this value must not change, so its memory is read-only. Before version 1 of DLPack there
    # is no way to say so: then the consumer gets a copy, unless it insists on none.
    copied = copy or (copy is None and not versioned)
    options = structs['duet_dlpack_options'](
        place.place, matrix.pinned or not versioned, copied, 0 if stream is None else stream
    )
    call = lib.to_dlpack if versioned else lib.to_dlpack_legacy
    pointer = call(matrix.pointer, ctypes.byref(options))
    if not pointer:
        raise make_error()
    capsule = _new(pointer, _VERSIONED if versioned else _PLAIN, None)
    _lent.append(capsule)
    return capsule


def load(obj, device, copy):
    """from_dlpack(obj)"""
    if obj.__class__ is Array:
        x = Array(obj._node) if copy else obj
        return x if device is None else x.to_device(device)
    kind = builtins.int(obj.__dlpack_device__()[0])
    if kind not in (CPU, CUDA, PINNED, MANAGED):
        raise builtins.BufferError(f'from_dlpack cannot read memory of the device {kind}')
    extra = {} if kind in (CPU, PINNED) else {'stream': builtins.int(lib.stream() or 0) or 1}
    try:
        capsule = obj.__dlpack__(max_version=(1, 3), copy=copy, **extra)
    except builtins.TypeError:
        capsule = obj.__dlpack__(**extra)  # a library that knows only DLPack before 1.0
    versioned = _is_valid(capsule, _VERSIONED)
    name = _VERSIONED if versioned else _PLAIN
    call = lib.from_dlpack if versioned else lib.from_dlpack_legacy
    pointer = _get(capsule, name)
    constant = versioned and _Head.from_address(pointer).flags & 1
    x = from_matrix(call(pointer, -1), g.device(None))
    _rename(capsule, _USED[name])
    # The owner sees what is written to shared memory. A write to constant memory makes a copy first.
    x._node.matrix.pinned = None if constant else copy is not True
    x._node.matrix.keep = g.DEVICE if kind in (CUDA, MANAGED) else obj
    if device is not None:
        x = x.to_device(device)
    return x


_USED = {_VERSIONED: b'used_dltensor_versioned', _PLAIN: b'used_dltensor'}
