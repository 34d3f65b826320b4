"""Files: .npy, .npz and Matrix Market (.mtx)."""

import os

from ._array import Array, asarray, from_matrix, own, write_back
from ._errors import TypeError, check
from ._graph import hand_back, state, value
from ._library import lib, structs

_Named = structs['duet_named']


def load(path, name=None, *, into=None):
    """The array in a .npy or .mtx file, or the array with this name in a .npz file. With `into`, reads a .npy
    file into this array, which must have the shape and type of the array in the file, and returns it. On a
    group, each rank reads its part."""
    text = os.fsencode(path)
    if into is not None:
        return _load_into(text, name, into)
    if name is not None:
        return from_matrix(lib.load_npz(text, name.encode()), state.device)
    return from_matrix((lib.load_market if text.endswith(b'.mtx') else lib.load_npy)(text), state.device)


def _load_into(text, name, x):
    if name is not None or not isinstance(x, Array):
        raise TypeError('duet.load: into must be an array, and the file a .npy file, without a name')
    matrix = own(x)
    check(lib.load_npy_into(text, matrix.pointer))
    hand_back(matrix)
    if x._base is not None:
        write_back(x)
    return x


def save(path, x=None, /, **arrays):
    """Saves an array to a .npy or .mtx file, or several arrays with their names to a .npz file."""
    text = os.fsencode(path)
    if x is not None:
        save_one = lib.save_market if text.endswith(b'.mtx') else lib.save_npy
        check(save_one(text, value(asarray(x)._node).pointer))
        return
    matrices = {n: value(asarray(a)._node) for n, a in arrays.items()}
    list_ = (_Named * max(len(matrices), 1))(*[(n.encode(), m.pointer) for n, m in matrices.items()])
    check(lib.save_npz(text, list_, len(matrices)))
