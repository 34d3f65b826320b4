"""Gradients of formulas."""

from functools import wraps

from . import _graph as g
from ._array import Array, node_of
from ._errors import TypeError, ValueError
from ._library import lib


def variable(x):
    """The elements of x, as a value with respect to which gradients can be taken. What is computed from a
    variable keeps its formula as long as it exists."""
    node = node_of(x)
    made = g.leaf(g.value(node), node.shape, node.dtype, node.device)
    made.kept = g.VARIABLE
    return Array(made)


class _Path:
    """What makes the C formula of y differ from the one that computes y: values on the way from the variables
    to y that are already computed, through whose formulas the gradient goes, and other values that have the
    matrix of a variable, which are constants."""

    __slots__ = ('computed', 'constants', 'y', 'variables')

    def __init__(self, y, variables):
        self.y, self.variables = y, variables

    def update(self):
        y, variables = self.y, self.variables
        self.computed, self.constants = set(), set()
        matrices = {n.matrix for n in variables}
        stack, seen = [y], set(variables)
        while stack:
            n = stack.pop()
            if n in seen:
                continue
            seen.add(n)
            if n.kept == g.DERIVED and n.matrix is not None:
                self.computed.add(n)
            elif n.matrix is not None:
                if n.matrix in matrices:
                    self.constants.add(n)
                continue
            stack.extend(a for a in n.args if a.__class__ is g.Node)

    def differs(self):
        return self.computed or self.constants


def _build(node, formulas):
    """The C formula of a gradient."""
    y, x, *more = node.args
    (path,) = node.attrs
    path.update()
    e = formulas[y]
    if path.differs():
        e = formulas.get(path)  # the gradients of one y share it
        if e is None:
            order, _ = g.collect([y], path.computed)
            e = formulas[path] = g.build(order, {}, path.computed, path.constants)[y]
    if more:
        return lib.vjp(
            e, x.matrix.pointer, formulas[more[0]] if more[0].__class__ is g.Node else g.number(more[0])
        )
    return lib.grad(e, x.matrix.pointer)


_GRADIENT = g.Special(_build, 'grad')
if g.fast:
    g.fast.register(_GRADIENT, 0, 'gradient', False)


def _gradients(y, xs, more=()):
    nodes = [node_of(x) for x in xs]
    for n in nodes:
        if n.kept != g.VARIABLE:
            raise ValueError(
                'x is not a variable: call duet.variable(x) before you compute y from it, or use '
                'duet.grad(function)'
            )
        if n.dtype.kind not in 'fc':
            raise TypeError(f'gradients need floating-point elements, and x is {n.dtype}')
    g.evaluate([n for n in nodes if n.matrix is None])
    path = _Path(y, nodes)
    made = []
    for n in nodes:
        node = g.Node(
            _GRADIENT, (y, n, *more), (path,), n.shape, n.dtype, g.together(y.device, n.device), y.weight + 1
        )
        node.kept = g.DERIVED if y.kept else 0
        made.append(Array(node))
    return made


def grad(y, x=None, *, argnums=0):
    """The gradient of y, an array of one element, with respect to a variable x or a list of them, as a
    formula. grad(function) returns a function that computes the gradient of function(...) with respect to its
    argument number `argnums`, which may be a tuple."""
    if callable(y) and y.__class__ is not Array:
        both = value_and_grad(y, argnums=argnums)

        @wraps(y)
        def gradient(*args, **keywords):
            return both(*args, **keywords)[1]

        return gradient
    if x is None:
        raise TypeError('grad needs a function, or y and x')
    if node_of(y, 'y').shape and y.size != 1:
        raise ValueError(f'grad needs a y of one element, and its shape is {y.shape}: use duet.vjp')
    made = _gradients(y._node, x if isinstance(x, (list, tuple)) else [x])
    return made if isinstance(x, (list, tuple)) else made[0]


def value_and_grad(function, *, argnums=0):
    """A function that computes function(...) and its gradient, in one statement."""
    several = isinstance(argnums, (tuple, list))
    numbers = tuple(argnums) if several else (argnums,)

    @wraps(function)
    def both(*args, **keywords):
        args = list(args)
        for k in numbers:
            args[k] = variable(args[k])
        y = function(*args, **keywords)
        gradients = grad(y, [args[k] for k in numbers])
        y, *gradients = _finish([y, *gradients])
        return y, (tuple(gradients) if several else gradients[0])

    return both


def _finish(arrays):
    """The arrays, computed together and without their formulas."""
    nodes = list(dict.fromkeys(x._node for x in arrays))
    g.evaluate([n for n in nodes if n.matrix is None])
    return [Array(g.leaf(x._node.matrix, x.shape, x.dtype, x.device)) for x in arrays]


def vjp(y, x, g_=None, /):
    """The gradient of the sum of y * g with respect to a variable x or a list of them, as a formula.
    vjp(function, x) returns function(x), and a function that computes the gradient from g."""
    if callable(y) and y.__class__ is not Array:
        several = isinstance(x, (list, tuple))
        xs = [variable(a) for a in (x if several else [x])]
        value = y(*xs)

        def pull(g_):
            made = _finish(_gradients(value._node, xs, (g_._node if g_.__class__ is Array else g_,)))
            return tuple(made) if several else made[0]

        return value, pull
    if g_ is None:
        raise TypeError('vjp needs a function and x, or y, x and g')
    several = isinstance(x, (list, tuple))
    made = _gradients(node_of(y, 'y'), x if several else [x], (g_._node if g_.__class__ is Array else g_,))
    return made if several else made[0]
