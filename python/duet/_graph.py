"""Values and their evaluation.

A Node is a value: a matrix, or a formula of other nodes that is not yet computed. Nodes do not change, apart
from becoming computed. An Array (_array.py) names a node, and `x[0] = 1` makes it name another one.

C formulas belong to one thread and to one statement, so they are built here from the nodes when values are
needed, and consumed at once. Nodes that the formula passes and that something else still refers to are
results of the same statement, so that nothing is computed twice.

The module _duet_fast has the same classes, and functions for common cases, as compiled code. Without it,
those in Python are used."""

import ctypes
import threading
from functools import lru_cache
from sys import getrefcount

from ._dtypes import by_code
from ._errors import check, make_error
from ._library import lib, structs
from ._table import FUNCTIONS

try:
    import _duet_fast as fast
except ImportError:
    fast = None

MOST = 256  # operators in a formula: a larger one is evaluated
MOST_KEPT = 2048  # the same for a formula of variables, whose gradient may be asked for
OUTPUTS = 200  # results of one statement; the C library allows 255
DERIVED, VARIABLE = 1, 2  # Node.kept

_of_matrix, _of_number, _of_integer, _of_unsigned = (
    lib.of_matrix,
    lib.of_number,
    lib.of_integer,
    lib.of_unsigned,
)
_new, _free, _eval, _set_all = lib.new_shape, lib.free, lib.eval, lib.set_all
_Assignment = structs['duet_assignment']
_byref, _pointer = ctypes.byref, ctypes.c_void_p


class Device:
    """Where statements run: duet.cpu, duet.gpu, or duet.auto, where the library chooses for each of them."""

    __slots__ = ('name', 'place')

    def __init__(self, name, place):
        self.name, self.place = name, place

    def __repr__(self):
        return f"duet.Device('{self.name}')"

    def __str__(self):
        return self.name

    def __reduce__(self):
        return device, (self.name,)


auto, cpu, gpu = Device('auto', 0), Device('cpu', 1), Device('gpu', 2)
_devices = {'auto': auto, 'cpu': cpu, 'gpu': gpu}


def device(x):
    """The device of this name; a device is returned as it is."""
    if x is None:
        return state.device
    if type(x) is Device:
        return x
    try:
        return _devices[x]
    except (KeyError, TypeError):
        raise ValueError(f'no such device: {x!r}. There are auto, cpu and gpu') from None


class _State(threading.local):
    device = auto  # of new values of this thread
    recorded = None  # what the recording of this thread uses


state = fast.State() if fast else _State()


class Matrix:
    """Owns a duet_matrix. `pinned` is True if others know its memory, so that writes go there; None if it
    must not be written; else False. If it is pinned and `keep` is not None, other libraries use its memory
    too."""

    __slots__ = ('pointer', 'keep', 'pinned', '__weakref__')

    def __init__(self, pointer, keep=None):
        self.pointer, self.keep, self.pinned = pointer, keep, False

    def __del__(self, free=_free, byref=_byref, pointer=_pointer):
        free(byref(pointer(self.pointer)))


def take_over(matrix):
    """Before a statement: what others have written to shared memory of the host counts."""
    if matrix.keep is not None and matrix.keep is not DEVICE:
        lib.update(matrix.pointer)


def hand_back(matrix):
    """After a statement has written to shared memory: others find the elements there."""
    if matrix.pinned and matrix.keep is not None:
        if not (lib.device_read if matrix.keep is DEVICE else lib.read)(matrix.pointer):
            raise make_error()


DEVICE = 'memory of a GPU'


class Node:
    """`kept` is VARIABLE for a value with respect to which gradients are taken, and DERIVED for what is
    computed from one: it keeps its formula when it is evaluated, because gradients need it."""

    __slots__ = ('op', 'args', 'attrs', 'shape', 'dtype', 'device', 'weight', 'matrix', 'kept')

    def __init__(self, op, args, attrs, shape, dtype, where, weight):
        self.op, self.args, self.attrs = op, args, attrs
        self.shape, self.dtype, self.device, self.weight = shape, dtype, where, weight
        self.matrix, self.kept = None, 0

    @property
    def ndim(self):
        return len(self.shape)


if fast:
    Matrix, Node = fast.Matrix, fast.Node


def leaf(matrix, shape, dtype, where):
    node = Node(None, (), (), shape, dtype, where, 0)
    node.matrix = matrix
    return node


def new_matrix(pointer, keep=None):
    """Owns a pointer that a function of the library returned."""
    if not pointer:
        raise make_error()
    matrix = Matrix(pointer, keep)
    if state.recorded is not None:
        state.recorded.append(matrix)
    return matrix


# ---- arguments of C -----------------------------------------------------------------------------


@lru_cache(None)
def _array_type(kind, count):
    return type('Array', (kind * max(count, 1),), {'__hash__': object.__hash__})


def c_array(kind, values):
    """An array of C that can be part of a key: it is equal only to itself."""
    made = _array_type(kind, len(values))(*values)
    made._as_parameter_ = ctypes.addressof(made)  # for the compiled module
    return made


@lru_cache(4096)
def sizes(shape):
    """int64_t[]: equal tuples give the same object, so that operators with equal sizes have equal keys."""
    return c_array(ctypes.c_int64, shape)


@lru_cache(4096)
def ints(values):
    return c_array(ctypes.c_int, values)


def number(x):
    """The C formula of a Python number."""
    kind = x.__class__
    if kind is float:
        return _of_number(x)
    if kind is int or kind is bool:
        if -0x8000000000000000 <= x < 0x8000000000000000:
            return _of_integer(x)
        return _of_unsigned(x) if 0 < x < 0x10000000000000000 else _of_number(float(x))
    if isinstance(x, complex):
        return lib.complex(_of_number(x.real), _of_number(x.imag))
    return _of_number(x) if isinstance(x, float) else number(int(x))


# ---- new formulas -------------------------------------------------------------------------------

_known = {}  # (operator, attributes, operands): shape and type of the result
_SAMPLES = {bool: True, int: 1, float: 0.5, complex: 1j}


def result_of(op, args, attrs=()):
    """The shape and type of the result of an operator. The library decides: a formula of matrices without
    elements in memory is built and dropped. Errors have the library's text."""
    key = (op, attrs, *[(a.shape, a.dtype) if a.__class__ is Node else a.__class__ for a in args])
    try:
        return _known[key]
    except KeyError:
        pass
    matrices, formulas = [], []
    for a in args:
        if a.__class__ is Node:
            matrices.append(Matrix(_check_pointer(_new(a.dtype.code, len(a.shape), sizes(a.shape)))))
            formulas.append(_of_matrix(matrices[-1].pointer))
        else:
            formulas.append(number(_SAMPLES.get(a.__class__, a)))
    e = op(*formulas, *attrs)
    status = lib.expr_status(e)
    if status:
        error = make_error(status)
        lib.drop(e)
        raise error
    shape = tuple(lib.expr_size(e, k) for k in range(lib.expr_rank(e)))
    dtype = by_code[lib.expr_type(e)]
    lib.drop(e)
    if len(_known) > 20000:
        _known.clear()
    _known[key] = shape, dtype
    return shape, dtype


def _check_pointer(pointer):
    if not pointer:
        raise make_error()
    return pointer


def make(op, args, attrs=(), meta=None):
    """A node for the result of an operator."""
    shape, dtype = meta or result_of(op, args, attrs)
    where, weight, kept, numbers = auto, 1, 0, False
    for a in args:
        if a.__class__ is Node:
            weight += a.weight
            if a.kept:
                kept = DERIVED
            if a.device is not where:
                where = together(where, a.device)
        elif a.__class__ is int:
            numbers = True
    if where is auto:
        where = state.device
    if numbers:
        _check_range(op, args, attrs)
    node = Node(op, args, attrs, shape, dtype, where, weight)
    if kept:
        node.kept = kept
    if weight > MOST:
        _settle(node)
    return node


def _check_range(op, args, attrs):
    """Refuses integers that the type of the other operands does not have, with the library's text."""
    for other in args:
        if other.__class__ is Node and other.dtype.kind in 'iu':
            low, high = other.dtype.low, other.dtype.high
            if any(a.__class__ is int and not low <= a <= high for a in args):
                matrices = [
                    Matrix(_check_pointer(_new(a.dtype.code, len(a.shape), sizes(a.shape))))
                    for a in args
                    if a.__class__ is Node
                ]
                each = iter(matrices)
                e = op(
                    *[_of_matrix(next(each).pointer) if a.__class__ is Node else number(a) for a in args],
                    *attrs,
                )
                status = lib.expr_status(e)
                error = make_error(status) if status else None
                lib.drop(e)
                if error:
                    raise error


def together(a, b):
    """The device of a formula with values of both devices."""
    if a is b or b is auto:
        return a
    if a is auto:
        return b
    raise ValueError('the operands are on the devices cpu and gpu: use to_device')


def _settle(node):
    """Evaluates a node whose formula is large. `weight` counts a shared node several times; the formula is
    evaluated if it really is large, or else gets its true weight."""
    count = len(collect([node])[0])
    if count > (MOST_KEPT if node.kept else MOST) // 2:
        evaluate([node])
    else:
        node.weight = count


# ---- evaluation ---------------------------------------------------------------------------------


def collect(roots, expand=None):
    """The nodes of formulas, operands first, and for each how often the others name it."""
    uses, order, stack = {}, [], list(roots)
    pop, push = stack.pop, stack.append
    while stack:
        n = pop()
        if n.__class__ is tuple:
            order.append(n[0])
        elif n not in uses:
            uses[n] = 0
            if n.matrix is None or (expand and n in expand):
                push((n,))
                for a in n.args:
                    if a.__class__ is Node:
                        push(a)
            else:
                order.append(n)
    for n in order:
        if n.matrix is None or (expand and n in expand):
            for a in n.args:
                if a.__class__ is Node:
                    uses[a] += 1
    return order, uses


def build(order, formulas, anew=(), constants=()):
    """The C formulas of nodes, operands first. Nodes in `anew` are built from their operands although they
    are computed; for those in `constants`, no gradient passes."""
    for n in order:
        op, args, attrs = n.op, n.args, n.attrs  # before `matrix`: another thread may evaluate n meanwhile
        m = n.matrix
        if m is not None and n not in anew:
            if m.pinned:
                take_over(m)
            formulas[n] = e = _of_matrix(m.pointer)
            if n in constants:
                formulas[n] = lib.stop_gradient(e)
        elif op.__class__ is Special:
            formulas[n] = op.build(n, formulas)
        else:
            formulas[n] = op(*[formulas[a] if a.__class__ is Node else number(a) for a in args], *attrs)
    return formulas


class Special:
    """An operator that needs more than the C formulas of its operands."""

    __slots__ = ('build', 'name')

    def __init__(self, build, name):
        self.build, self.name = build, name


# Operators whose result is a view of their operand: nothing is saved by storing it.
VIEWS = {lib.index, lib.permute, lib.reshape, lib.broadcast, lib.diagonal_of, lib.transpose}


def evaluate(roots):
    """Computes nodes, in one statement if they are no more than OUTPUTS."""
    order, uses = collect(roots)
    top = set(roots)
    outputs = []
    n = None
    for n in order:
        if n.matrix is None:
            # References to a node: `order`, `uses`, n, and its uses in formulas.
            # `roots` and `top` are more. If there are others, somebody may need the value later.
            if n in top or (getrefcount(n) > ALONE_IN_ORDER + uses[n] and n.op not in VIEWS):
                outputs.append(n)
    del n
    if len(outputs) > OUTPUTS:
        for i in range(0, len(outputs), OUTPUTS):
            _run(*_part(outputs[i : i + OUTPUTS]))
    elif outputs:
        _run(order, outputs)


def _part(outputs):
    return collect(outputs)[0], outputs


def _run(order, outputs):
    where = outputs[-1].device
    if where is not auto:
        with on(where):
            _compute(order, outputs)
    else:
        _compute(order, outputs)


def _compute(order, outputs):
    formulas = {}
    try:
        build(order, formulas)
    except BaseException:
        for e in formulas.values():
            lib.drop(e)
        raise
    if len(outputs) == 1:
        (node,) = outputs
        made = [new_matrix(_eval(formulas[node]))]
    else:
        made = new_results(order, outputs)
        list_ = (_Assignment * len(made))(*[(m.pointer, formulas[n]) for m, n in zip(made, outputs)])
        check(_set_all(list_, len(made)))
    for node, m in zip(outputs, made):
        if node.matrix is None:  # else another thread has evaluated it meanwhile
            node.matrix = m
    if state.recorded is not None:
        state.recorded.extend(order)
    for node in outputs:
        node.weight = 0
        if node.kept != DERIVED:
            node.args, node.attrs, node.op = (), (), None


def new_on(group, axis, dtype, shape):
    """A matrix of zeros on a group, split along an axis, or replicated if it is -1."""
    if axis < 0:
        return new_matrix(lib.new_replicated_shape(group, dtype.code, len(shape), sizes(shape)))
    return new_matrix(lib.new_split_shape(group, dtype.code, axis, len(shape), sizes(shape)))


def new_like(matrix, dtype, shape):
    """A matrix of zeros that lies where another one does."""
    group = lib.group_of(matrix.pointer)
    if group:
        return new_on(group, lib.split_axis(matrix.pointer), dtype, shape)
    return new_matrix(_new(dtype.code, len(shape), sizes(shape)))


def new_results(order, outputs):
    """Matrices for the results of a statement of several formulas. The library chooses how the result of one
    formula lies on a group, but here it is estimated. The elements do not depend on it."""
    found = {}  # node: its group, and the axis along which it is split, or -1
    for n in order:
        args, m = n.args, n.matrix
        if m is not None:
            group = lib.group_of(m.pointer)
            if group:
                found[n] = group, lib.split_axis(m.pointer)
        else:
            operands = [a for a in args if a.__class__ is Node and a in found]
            if operands:
                found[n] = found[operands[0]][0], _split_of(n.shape, operands, found)
    return [
        new_on(*found[n], n.dtype, n.shape)
        if n in found
        else new_matrix(_new(n.dtype.code, len(n.shape), sizes(n.shape)))
        for n in outputs
    ]


def _split_of(shape, operands, found):
    """The axis along which a result is split, or -1. It is the axis of an operand, if the result has an axis
    of the same size at the same place. Places are counted from the last axis, or else from the first one."""
    for a in operands:
        axis = found[a][1]
        if axis >= 0:
            for k in axis - len(a.shape) + len(shape), axis:
                if 0 <= k < len(shape) and shape[k] == a.shape[axis]:
                    return k
    return -1


def _measure():
    """How many references Python counts where nothing else refers to a node. That differs between versions of
    Python, so it is measured, in loops like those that use it."""
    node = Node(None, (Node(None, (), (), (), None, auto, 0),), (), (), None, auto, 0)
    for a in node.args:
        tree = getrefcount(a)
    order, uses = [Node(None, (), (), (), None, auto, 0)], {}
    uses[order[0]] = 0
    for n in order:
        listed = getrefcount(n)
    return tree, listed


ALONE_IN_TREE, ALONE_IN_ORDER = _measure()
SMALL = 24  # operators in a formula that is evaluated by the short way below


def _tree(node, made):
    """The C formula of a node if nothing else refers to the formulas in it; else 0. `made` gets all
    formulas."""
    # Another thread may evaluate the node meanwhile: it sets `matrix` and then clears these. `made` also keeps
    # the operands until the formula is evaluated.
    op, operands, attrs = node.op, node.args, node.attrs
    if node.matrix is not None:
        return 0
    made.append(operands)
    args = []
    for a in operands:
        if a.__class__ is Node:
            m = a.matrix
            if m is not None:
                if m.pinned:
                    take_over(m)
                e = _of_matrix(m.pointer)
            elif getrefcount(a) > ALONE_IN_TREE:  # something else refers to it
                return 0
            else:
                e = _tree(a, made)
                if not e:
                    return 0
                args.append(e)
                continue
        elif a.__class__ is float:
            e = _of_number(a)
        else:
            e = number(a)
        args.append(e)
        made.append(e)
    if op.__class__ is Special:
        return 0
    e = op(*args, *attrs) if attrs else op(*args)
    made.append(e)
    return e


def value(node):
    """The matrix of a node; evaluates it if necessary."""
    m = node.matrix
    if m is not None:
        return m
    if node.weight <= SMALL and node.device is auto and not node.kept and state.recorded is None:
        # The short way, which does the same as `evaluate` for one result.
        made = []
        e = _tree(node, made)
        if e:
            pointer = _eval(e)
            if not pointer:
                raise make_error()
            m = Matrix(pointer)
            if node.matrix is None:
                node.matrix = m
            node.args = node.attrs = ()
            node.op = None
            node.weight = 0
            return node.matrix
        for e in made:
            if e.__class__ is int:
                lib.drop(e)
    evaluate([node])
    return node.matrix


def _start():
    """Starts the compiled module. Its functions call those above for cases that they do not handle."""
    address = lambda f: ctypes.cast(f, ctypes.c_void_p).value  # noqa: E731
    needed = (
        *(_of_matrix, _of_number, _of_integer, _eval, _new, _set_all),
        *(lib.drop, lib.scope_open, lib.scope_close, _free, lib.grad, lib.vjp, lib.group_of),
    )
    integers = sum(1 << t.code for t in by_code if t.kind in 'iu')
    general = make, value, evaluate, result_of, make_error
    fast.start(tuple(map(address, needed)), auto, tuple(by_code), integers, MOST, _known, *general)
    for name, row in FUNCTIONS.items():
        if row[0] == 'e' and hasattr(lib, name):
            op = getattr(lib, name)
            fast.register(op, address(op), row[1], op in VIEWS)


if fast:
    _start()
    make, value, evaluate = fast.make, fast.value, fast.evaluate


class on:
    """A block whose statements run on one device, also for formulas that were built before."""

    def __init__(self, where):
        self.where = device(where)

    def __enter__(self):
        self.before = state.device
        self.scope = lib.scope_open(self.where.place)
        state.device = self.where
        return self.where

    def __exit__(self, *_):
        state.device = self.before
        lib.scope_close(_byref(self.scope))
