"""Optimizers, which update the parameters of a model from gradients.

    adam = duet.optimizers.Adam([w, b], rate=0.001)
    for x, t in batches:
        adam.step(duet.grad(loss(w, b, x, t), [w, b]))      # w and b are variables

Each step changes the parameters in place. An optimizer may be part of a recording whose arguments are its
parameters: each run updates what it keeps between steps. docs/python.md is the manual."""

import ctypes

from . import _dtypes as dt
from . import _graph as g
from ._array import Array, _scalars, asarray, c_formula, node_of, own, refresh, write_back
from ._errors import TypeError, ValueError, check
from ._library import lib, structs


class _Optimizer:
    """The parts that all optimizers have. `_kept`: the names of the matrices that they keep between steps."""

    _function, _struct, _kept, _counts = None, '', (), False

    def __init__(self, parameters, rate, options):
        self.parameters = [parameters] if parameters.__class__ is Array else list(parameters)
        self.rate = rate
        self._options, self._states = [], []
        for p in self.parameters:
            node = node_of(p, 'a parameter')
            states = [_zeros(node) for _ in self._kept]
            self._states.append(states)
            struct = structs[self._struct](**options)
            if 'velocity' in self._kept:
                struct.velocity = states[self._kept.index('velocity')].pointer
            self._options.append(struct)
        self._steps = asarray(0.0)
        g.value(self._steps._node).pinned = True

    @property
    def steps(self):
        """How many steps were done."""
        return int(self._steps)

    def step(self, gradients):
        """Updates the parameters. `gradients` are arrays in the order of the parameters. Formulas among them
        are computed first, in one statement."""
        gradients = [gradients] if gradients.__class__ is Array else list(gradients)
        if len(gradients) != len(self.parameters):
            raise ValueError(
                f'there are {len(self.parameters)} parameters, and {len(gradients)} gradients are given'
            )
        nodes = [node_of(x, 'a gradient') for x in gradients]
        for k, (x, p) in enumerate(zip(gradients, self.parameters)):
            if x.shape != p.shape:
                raise ValueError(
                    f'gradient {k} must have the shape of its parameter, {p.shape}, and not {x.shape}'
                )
        g.evaluate([n for n in dict.fromkeys(nodes) if n.matrix is None])
        for k, x in enumerate(gradients):
            self._update(self.parameters[k], x, self._states[k], self._options[k])
        check(lib.set(self._steps._node.matrix.pointer, self._next()))

    def _next(self):
        """The formula of the number of this step. It is a matrix so that a recording counts, too."""
        return lib.add(lib.of_matrix(self._steps._node.matrix.pointer), lib.of_number(1.0))

    def _update(self, p, gradient, states, options):
        if p._base is not None:
            refresh(p)
        matrix = own(p)
        g.take_over(matrix)
        others = [m.pointer for name, m in zip(self._kept, states) if name != 'velocity']
        numbers = [_rate(self.rate), self._next()] if self._counts else [_rate(self.rate)]
        check(
            self._function(matrix.pointer, c_formula(gradient), *others, *numbers, ctypes.addressof(options))
        )
        g.hand_back(matrix)
        if p._base is not None:
            write_back(p)
        if g.state.recorded is not None:  # a recording needs them as long as it exists
            g.state.recorded += [matrix, self._steps._node.matrix, *states]


def _zeros(node):
    """The matrix that an optimizer keeps for a parameter, in the type in which the parameter is computed."""
    dtype = dt.float64 if node.dtype is dt.float64 else dt.float32
    return g.new_like(g.value(node), dtype, node.shape)


def _rate(x):
    if x.__class__ is Array:
        return c_formula(x)
    if not isinstance(x, _scalars):
        raise TypeError(f'rate must be a number or an array of one element, and not {type(x).__name__}')
    return g.number(x)


class SGD(_Optimizer):
    """Gradient descent: w -= rate * g, with momentum if it is not 0."""

    _function, _struct, _kept = lib.sgd, 'duet_sgd_options', ('velocity',)

    def __init__(self, parameters, rate, *, momentum=0.0, nesterov=False, decay=0.0):
        super().__init__(parameters, rate, {'momentum': momentum, 'nesterov': nesterov, 'decay': decay})


class Adam(_Optimizer):
    """Adam, with weight decay that is added to the gradient."""

    _function, _struct, _kept, _counts = lib.adam, 'duet_adam_options', ('mean', 'square'), True

    def __init__(self, parameters, rate=0.001, *, keep_mean=0.9, keep_square=0.999, epsilon=1e-8, decay=0.0):
        options = {'keep_mean': keep_mean, 'keep_square': keep_square, 'epsilon': epsilon, 'decay': decay}
        super().__init__(parameters, rate, options)


class AdamW(Adam):
    """Adam, with weight decay that is subtracted from the parameters."""

    _function = lib.adamw


class RMSprop(_Optimizer):
    """RMSprop, with momentum if it is not 0."""

    _function, _struct, _kept = lib.rmsprop, 'duet_rmsprop_options', ('square', 'velocity')

    def __init__(self, parameters, rate=0.01, *, keep=0.99, epsilon=1e-8, momentum=0.0, decay=0.0):
        options = {'keep': keep, 'epsilon': epsilon, 'momentum': momentum, 'decay': decay}
        super().__init__(parameters, rate, options)


class Adagrad(_Optimizer):
    """Adagrad."""

    _function, _struct, _kept = lib.adagrad, 'duet_adagrad_options', ('sum',)

    def __init__(self, parameters, rate=0.01, *, epsilon=1e-10, decay=0.0):
        super().__init__(parameters, rate, {'epsilon': epsilon, 'decay': decay})
