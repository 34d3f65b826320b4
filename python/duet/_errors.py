"""Errors of the library as exceptions. Each has the text of the library and its status."""

import builtins

from ._library import lib, statuses


class Error(Exception):
    """An error of the C library. `status` is the name of its duet_status."""

    status = ''


class ValueError(Error, builtins.ValueError):
    """An argument or a shape is wrong."""


class TypeError(Error, builtins.TypeError):
    """Element types do not match, or an operator is not defined for them."""


class IndexError(Error, builtins.IndexError):
    """An index is out of bounds."""


class MemoryError(Error, builtins.MemoryError):
    """There is not enough memory, or too many formulas are not evaluated."""


class NotImplementedError(Error, builtins.NotImplementedError):
    """No device that may be used supports this."""


class DeviceError(Error, builtins.RuntimeError):
    """There is no GPU, the GPU or a rank failed, or a copy between devices is forbidden."""


class FileError(Error, builtins.OSError):
    """A file cannot be read or written, or is damaged."""


class LinAlgError(Error, builtins.ValueError):
    """A matrix is singular, has an element that is not finite, or an iteration did not converge."""


_CLASSES = {
    'BAD_ARGUMENT': ValueError,
    'BAD_SHAPE': ValueError,
    'BAD_TYPE': TypeError,
    'SPENT': ValueError,
    'FOREIGN': ValueError,
    'FREED': ValueError,
    'UNKNOWN': DeviceError,
    'ARENA_FULL': MemoryError,
    'NO_MEMORY': MemoryError,
    'UNSUPPORTED': NotImplementedError,
    'NO_DEVICE': DeviceError,
    'DEVICE_ERROR': DeviceError,
    'IO_ERROR': FileError,
    'BAD_FILE': FileError,
    'SINGULAR': LinAlgError,
    'NOT_FINITE': LinAlgError,
    'NO_CONVERGENCE': LinAlgError,
    'FORBIDDEN': DeviceError,
    'RANK_FAILED': DeviceError,
}


def make_error(status=None, note=''):
    """The exception for the last error of this thread."""
    name = statuses[lib.error_status() if status is None else status]
    text = lib.error().decode(errors='replace')
    kind = _CLASSES.get(name, Error)
    if name == 'BAD_ARGUMENT' and 'out of bounds' in text:
        kind = IndexError
    error = kind(text + note)
    error.status = name
    return error


def check(status):
    if status:
        raise make_error(status)
