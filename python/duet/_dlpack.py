"""DLPack, through NumPy for memory of the host."""
import builtins

from . import _convert
from . import _graph as g

CPU = 1, 0


def export(x, stream, max_version, dl_device, copy):
    """x.__dlpack__()"""
    import numpy
    if stream is not None and stream != -1:
        raise builtins.ValueError('stream must be None for memory of the host')
    if dl_device is not None and tuple(builtins.int(k) for k in dl_device) != CPU:
        raise builtins.BufferError(f'an array cannot be exported to the device {dl_device}')
    array = _convert.interface(x._node, None, copy)
    if not array.flags.writeable:
        # Before version 1 of DLPack there is no way to say that memory is read-only.
        if max_version is None or max_version[0] < 1 or not _knows_versions(numpy):
            if copy is False:
                # The memory is shared. Whoever writes to it changes the value of x.
                array = _writable(numpy, x._node)
            else:
                array = array.copy()
    return array.__dlpack__(**({'max_version': max_version} if _knows_versions(numpy) else {}))


def _knows_versions(numpy):
    return builtins.int(numpy.__version__.split('.')[0]) >= 2 and numpy.__version__ >= '2.1'


def _writable(numpy, node):
    made = _convert.Exported(node)
    made.__array_interface__['data'] = made.__array_interface__['data'][0], False
    return numpy.asarray(made)


def load(obj, device, copy):
    """from_dlpack(obj)"""
    import numpy
    from ._array import Array
    if obj.__class__ is Array:
        x = obj if copy is not True else Array(obj._node)
        return x if device is None else x.to_device(device)
    kind = obj.__dlpack_device__()[0]
    if builtins.int(kind) not in (1, 3, 11, 13):
        raise builtins.BufferError(f'from_dlpack cannot read memory of the device {kind}')
    array = numpy.from_dlpack(obj)
    share = copy is not True and array.flags.writeable
    if copy is False and not share:
        raise builtins.BufferError('the memory is read-only: use copy=None')
    node = _convert.from_interface(array, None, False if share else True)
    if device is not None:
        node.device = g.device(device)
    return Array(node)
