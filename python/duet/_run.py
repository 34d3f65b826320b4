"""Evaluation, plans, recordings and statistics."""

import ctypes
from collections import namedtuple

from . import _graph as g
from ._array import node_of
from ._errors import ValueError, check, make_error
from ._library import lib
from ._table import STRUCTS

_Counts = namedtuple('counts', [m for m, _, _ in STRUCTS['duet_counts']])
_c = ctypes.CDLL(None)


def evaluate(*arrays):
    """Computes arrays now, in as few passes as possible, and returns them."""
    g.evaluate([n for n in dict.fromkeys(node_of(x) for x in arrays) if n.matrix is None])
    return arrays[0] if len(arrays) == 1 else arrays


class _Text:
    """A FILE of C that writes to memory."""

    def __enter__(self):
        self.data, self.size = ctypes.c_void_p(), ctypes.c_size_t()
        _c.open_memstream.restype = ctypes.c_void_p
        self.file = ctypes.c_void_p(_c.open_memstream(ctypes.byref(self.data), ctypes.byref(self.size)))
        return self

    def __exit__(self, *_):
        _c.fclose(self.file)
        self.text = ctypes.string_at(self.data, self.size.value).decode()
        _c.free(self.data)


def explain(*arrays):
    """The plan of the statement that would compute these arrays, as text. Nothing is computed."""
    nodes = [n for n in dict.fromkeys(node_of(x) for x in arrays) if n.matrix is None]
    if not nodes:
        return 'The elements are already computed.\n'
    order, _ = g.collect(nodes)
    formulas = {}
    g.build(order, formulas)
    made = g.new_results(order, nodes)
    list_ = (g._Assignment * len(made))(*[(m.pointer, formulas[n]) for m, n in zip(made, nodes)])
    with _Text() as out:
        if nodes[-1].device is g.auto:
            status = _explain(out.file, list_, made, formulas, nodes)
        else:
            with g.on(nodes[-1].device):
                status = _explain(out.file, list_, made, formulas, nodes)
    error = make_error(status) if status else None
    for n in nodes:
        lib.drop(formulas[n])
    if error:
        raise error
    return out.text


def _explain(file, list_, made, formulas, nodes):
    if len(made) == 1:
        return lib.explain(file, made[0].pointer, formulas[nodes[0]])
    return lib.explain_all(file, list_, len(made))


def live():
    """The number of matrices that exist."""
    return lib.live(None)


def stats():
    """Counters of the library since the process started."""
    counts = lib.stats()
    return _Counts(*[getattr(counts, m) for m in _Counts._fields])


def synchronize():
    """Waits until the GPU has finished all work of this thread."""
    check(lib.synchronize())


def set_threads(n):
    """How many threads the statements of this thread use on the CPU; 0 means all."""
    check(lib.set_threads(n))


class Recording:
    """Statements that can run again without Python. `outputs` are what the recorded function returned; each
    call overwrites their elements, and those of the arguments that the function changed."""

    def __init__(self, pointer, matrices, inputs, outputs):
        self._pointer, self._matrices = pointer, matrices
        self.inputs, self.outputs = inputs, outputs

    def __call__(self, *args, replay=lib.replay):
        """Runs the statements again. Arguments, if given, are copied to the inputs first."""
        if args:
            if len(args) != len(self.inputs):
                raise ValueError(
                    f'the recording has {len(self.inputs)} inputs, and {len(args)} arguments are given'
                )
            for x, value in zip(self.inputs, args):
                if value is not x:
                    x[...] = value
        status = replay(self._pointer)
        if status:
            raise make_error(status)
        return self.outputs

    def __del__(self, free=lib.recording_free):
        if self._pointer:
            free(ctypes.byref(ctypes.c_void_p(self._pointer)))


def record(function, *args):
    """Runs function(*args) once and records its statements. Call the result to run them again: that costs one
    call of C. The elements of `args` are the inputs; write to them with x[...] = y. What the function does to
    the elements of its arguments (w -= ...) is done again by each call. Numbers stay as they are now."""
    for x in args:
        node = node_of(x)
        matrix = g.value(node)
        if not matrix.pinned:  # a matrix of its own, which keeps its address
            matrix = g.new_matrix(lib.copy(matrix.pointer))
            made = g.leaf(matrix, node.shape, node.dtype, node.device)
            made.kept = node.kept and g.VARIABLE
            x._node = made
    before = [x._node for x in args]
    if g.state.recorded is not None:
        raise ValueError('this thread is already recording')
    check(lib.record_begin())
    g.state.recorded = matrices = []
    try:
        outputs = function(*args)
        listed = outputs if isinstance(outputs, (tuple, list)) else () if outputs is None else (outputs,)
        changed = [(x, n) for x, n in zip(args, before) if x._node is not n]
        evaluate_all([x._node for x in listed] + [x._node for x, _ in changed])
        for x, n in changed:
            check(lib.set(n.matrix.pointer, lib.of_matrix(x._node.matrix.pointer)))
            matrices.append(x._node.matrix)
            x._node = n
    except BaseException:
        pointer = lib.record_end()
        if pointer:
            lib.recording_free(ctypes.byref(ctypes.c_void_p(pointer)))
        raise
    finally:
        g.state.recorded = None
    pointer = lib.record_end()
    if not pointer:
        raise make_error()
    for x in args:
        x._node.matrix.pinned = True
    matrices += [x._node.matrix for x in (*args, *listed)]
    return Recording(pointer, matrices, args, outputs)


def evaluate_all(nodes):
    g.evaluate([n for n in dict.fromkeys(nodes) if n.matrix is None])
