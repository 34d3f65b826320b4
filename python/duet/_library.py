"""Loads the C library and declares its functions for ctypes.

The library is the first of these that exists: the file that the environment variable DUET_LIBRARY names,
libduet beside this file (wheels), and libduet where the system looks for libraries."""

import ctypes
import ctypes.util
import glob
import os
import sys

from ._table import DTYPES, FUNCTIONS, STATUSES, STRUCTS

LETTERS = {
    'e': ctypes.c_uint64,
    'i': ctypes.c_int,
    'l': ctypes.c_int64,
    'u': ctypes.c_uint64,
    'z': ctypes.c_size_t,
    'd': ctypes.c_double,
    'v': None,
    's': ctypes.c_char_p,
    'w': ctypes.c_int32,
    'p': ctypes.c_void_p,
    'm': ctypes.c_void_p,
    't': ctypes.c_int,
    'r': ctypes.c_int,
    'n': ctypes.c_ssize_t,
}
STRUCT_LETTERS = {
    'S': 'duet_scope',
    'X': 'duet_explaining',
    'T': 'duet_timing',
    'C': 'duet_counts',
    'M': 'duet_memory',
}


def _structs():
    made = {}
    for name, members in STRUCTS.items():
        fields = [(m, LETTERS[t] * n if n > 1 else LETTERS[t]) for m, t, n in members]
        made[name] = type(name, (ctypes.Structure,), {'_fields_': fields})
    LETTERS.update({letter: made[name] for letter, name in STRUCT_LETTERS.items()})
    LETTERS['D'] = type(
        'DLDevice',
        (ctypes.Structure,),
        {'_fields_': [('device_type', ctypes.c_int32), ('device_id', ctypes.c_int32)]},
    )
    return made


structs = _structs()


def _find():
    chosen = os.environ.get('DUET_LIBRARY')
    if chosen:
        return chosen
    here = os.path.dirname(os.path.abspath(__file__))
    for pattern in 'libduet.so*', 'libduet*.dylib':
        found = sorted(glob.glob(os.path.join(here, pattern)))
        if found:
            return found[0]
    return ctypes.util.find_library('duet') or (
        'libduet.dylib' if sys.platform == 'darwin' else 'libduet.so.0'
    )


def _hashable(library):
    """Makes functions of the library that can be part of a key."""
    kind = library._FuncPtr
    members = {'__hash__': object.__hash__, '_flags_': kind._flags_, '_restype_': kind._restype_}
    library._FuncPtr = type('Function', (kind,), members)
    return library


def _load():
    path = _find()
    try:
        return _hashable(ctypes.CDLL(path)), _hashable(ctypes.PyDLL(path)), path
    except OSError as error:
        raise ImportError(
            f'cannot load the C library of Duet: {error}. Set DUET_LIBRARY to the path of libduet.so'
        ) from None


_free_lock, _hold_lock, path = _load()


class _Library:
    """The functions, without their prefix. Functions that only build formulas keep Python's global lock,
    because they are shorter than releasing it; all others release it."""

    def __init__(self):
        self.missing = []
        for name, (result, types, _, _, _) in FUNCTIONS.items():
            try:
                function = getattr(_hold_lock if result == 'e' else _free_lock, 'duet_' + name)
            except AttributeError:
                self.missing.append(name)
                continue
            function.restype = LETTERS[result]
            function.argtypes = [LETTERS[t] for t in types]
            setattr(self, name, function)
        # Short calls without work on a device.
        for name in (
            'new_shape',
            'free',
            'type',
            'rank',
            'size',
            'stride',
            'count',
            'drop',
            'error',
            'error_status',
            'expr_status',
            'expr_type',
            'expr_rank',
            'expr_size',
            'group_of',
            'split_axis',
        ):
            function = getattr(_hold_lock, 'duet_' + name)
            result, types = FUNCTIONS[name][:2]
            function.restype, function.argtypes = LETTERS[result], [LETTERS[t] for t in types]
            setattr(self, name, function)


lib = _Library()
statuses, dtypes = STATUSES, DTYPES
