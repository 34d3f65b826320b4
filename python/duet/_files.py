"""Files: .npy, .npz and Matrix Market (.mtx)."""

import os

from ._array import asarray, from_matrix
from ._errors import check
from ._graph import state, value
from ._library import lib, structs

_Named = structs['duet_named']


def load(path, name=None):
    """The array in a .npy or .mtx file, or the array with this name in a .npz file."""
    text = os.fsencode(path)
    if name is not None:
        return from_matrix(lib.load_npz(text, name.encode()), state.device)
    return from_matrix((lib.load_market if text.endswith(b'.mtx') else lib.load_npy)(text), state.device)


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
