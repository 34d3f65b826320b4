"""formulas.py - a formula as a list of matrices and operators, and the choices that build one."""
import numpy as np
import jax
import jax.numpy as jnp
from jax import lax

LARGEST = 30        # of the elements of intermediate results
MOST_ELEMENTS = 300 # of an intermediate result
GAP = 1e-4          # between elements whose order matters


class Reject(Exception):
    """This operator does not fit here."""


def narrow(v):
    """Rounds to f32, so that f32 and f64 have the same operands."""
    return v.astype('c8' if v.dtype.kind == 'c' else 'f4').astype(v.dtype)


def random_values(rng, shape, is_complex):
    v = rng.uniform(-1.8, 1.8, shape)
    return narrow(np.asarray(v + 1j * rng.uniform(-1.8, 1.8, shape) if is_complex else v))


class Node:
    """A matrix, or an operator on earlier nodes. `text` is C, with {0}, {1} for the operands."""

    def __init__(self, name, args, text, f, value, smooth):
        self.name, self.args, self.text, self.f, self.value, self.smooth = name, args, text, f, value, smooth
        self.constant = False


class Formula:
    def __init__(self, rng):
        self.rng, self.nodes, self.most_inputs = rng, [], int(rng.integers(1, 4))

    def matrix(self, value, constant):
        """Adds a matrix; a constant is no operand of which gradients are computed."""
        node = Node('', [], None, None, value, True)
        node.constant = constant
        self.nodes.append(node)
        return len(self.nodes) - 1

    def inputs_now(self):
        return sum(not n.args and not n.constant for n in self.nodes)

    def put(self, name, args, text, f, smooth=True):
        """Adds the operator. Rejects it if its result is too large or not finite."""
        try:
            value = np.asarray(f(*[self.nodes[a].value for a in args]))
        except ValueError:
            raise Reject # three operands that do not broadcast
        if value.size == 0 or value.size > MOST_ELEMENTS or value.ndim > 5:
            raise Reject
        if value.dtype.kind in 'fc' and not (np.isfinite(value).all() and np.abs(value).max() <= LARGEST):
            raise Reject
        self.nodes.append(Node(name, args, text, f, value, smooth))
        return len(self.nodes) - 1

    def v(self, a):
        return self.nodes[a].value

    def shape(self, a):
        return self.nodes[a].value.shape

    def is_complex(self, a):
        return self.nodes[a].value.dtype.kind == 'c'

    # random choices

    def integer(self, low, high):
        """low .. high, both included"""
        return int(self.rng.integers(low, high + 1))

    def one_of(self, list):
        return list[int(self.rng.integers(len(list)))]

    def chance(self, p):
        return self.rng.random() < p

    def number(self, low, high):
        return round(float(self.rng.uniform(low, high)), 3)

    def axes(self, a, at_least=1):
        rank = self.v(a).ndim
        if rank < at_least:
            raise Reject
        n = self.integer(at_least, rank)
        return sorted(int(k) for k in self.rng.permutation(rank)[:n])

    def axis(self, a):
        return self.integer(0, self.v(a).ndim - 1) if self.v(a).ndim else self.reject()

    def reject(self):
        raise Reject

    def pick(self, fits=lambda v: True):
        """A node for an operand: preferably the last one, or one that has no user."""
        used = {k for n in self.nodes for k in n.args}
        can = [i for i, n in enumerate(self.nodes)
               if not n.constant and n.value.dtype.kind in 'fc' and fits(n.value)]
        if not can:
            raise Reject
        idle = [i for i in can if i not in used]
        r = self.rng.random()
        if r < 0.5:
            return can[-1]
        return self.one_of(idle) if idle and r < 0.8 else self.one_of(can)

    def pick_real(self, fits=lambda v: True):
        return self.pick(lambda v: v.dtype.kind == 'f' and fits(v))

    # operands that an operator needs

    def indices(self, values):
        return self.matrix(np.asarray(values, np.int64), True)

    def shaped(self, shape, kind='f'):
        """A node with this shape: one that there is, a new matrix, or gathered elements of another node."""
        can = [i for i, n in enumerate(self.nodes)
               if not n.constant and n.value.dtype.kind == kind and n.value.shape == tuple(shape)]
        if can and self.chance(0.8):
            return self.one_of(can)
        if self.inputs_now() < self.most_inputs and self.chance(0.7):
            return self.matrix(random_values(self.rng, tuple(shape), kind == 'c'), False)
        a = self.pick(lambda v: v.dtype.kind == kind)
        if self.v(a).ndim != 1:
            a = reshape_to(self, a, (self.v(a).size,))
        n = self.v(a).size
        count = int(np.prod(shape))
        at = self.rng.permutation(n)[:count] if n >= count else self.rng.integers(0, n, count)
        at = at.reshape(shape)
        return self.put('take', [a, self.indices(at)], 'duet_take({0}, {1}, 0)', lambda x, i: x[i])

    def partner(self, a, kind='f'):
        """A node that broadcasts with a."""
        def goes(v):
            try:
                return np.prod(np.broadcast_shapes(v.shape, self.shape(a))) <= MOST_ELEMENTS
            except ValueError:
                return False
        can = [i for i, n in enumerate(self.nodes)
               if not n.constant and n.value.dtype.kind == kind and goes(n.value)]
        if can and self.chance(0.8):
            return self.one_of(can)
        s = list(self.shape(a))
        for k in range(len(s)):
            if self.chance(0.3):
                s[k] = 1
        return self.shaped(s[self.integer(0, len(s)):] if s and self.chance(0.4) else s, kind)

    def within(self, a, low, high):
        """a, or a function of a with values from low to high."""
        v = self.v(a)
        if v.min() >= low and v.max() <= high:
            return a
        if self.is_complex(a):
            raise Reject
        size = float(np.abs(v).max())
        if size > 2:
            a = scaled(self, a, float('%.2g' % (1.5 / size)))
        if high >= 8:
            return plus(self, map1(self, 'softplus', jax.nn.softplus, a), low + 0.2)
        how = self.one_of(['tanh', 'sin', 'sigmoid'])
        if how == 'sigmoid':
            return plus(self, scaled(self, map1(self, 'sigmoid', jax.nn.sigmoid, a), 0.9 * (high - low)),
                        low + 0.05 * (high - low))
        b = scaled(self, map1(self, how, getattr(jnp, how), a), round(0.45 * (high - low), 4))
        return b if low == -high else plus(self, b, round((low + high) / 2, 4))

    def apart(self, values, axis=None):
        """Rejects values of which two are nearly equal."""
        v = np.sort(values, axis=axis)
        if v.size > 1 and (np.diff(v, axis=-1 if axis is None else axis) < GAP).any():
            raise Reject

    def away(self, values, points):
        for p in points:
            if (np.abs(values - p) < GAP).any():
                raise Reject


def c_list(list):
    return ', '.join(str(k) for k in list)


def c_sizes(list):
    return '{ %s }' % c_list(list)


def map1(g, name, f, a, smooth=True):
    return g.put(name, [a], 'duet_%s({0})' % name, f, smooth)


def plus(g, a, number):
    return g.put('add', [a], 'duet_add({0}, %r)' % number, lambda x: x + number)


def scaled(g, a, number):
    return g.put('mul', [a], 'duet_mul({0}, %r)' % number, lambda x: x * number)


def reshape_to(g, a, shape):
    if shape == ():
        return g.put('index', [a], 'duet_index({0}, %s)' % c_list(['DUET_AT(0)'] * g.v(a).ndim),
                     lambda x: x[(0,) * x.ndim])
    return g.put('reshape', [a], 'duet_reshape({0}, %s)' % c_list(shape), lambda x: jnp.reshape(x, shape))


def to_complex(g, a):
    if g.is_complex(a):
        return a
    return g.put('complex', [a], 'duet_complex({0}, 0.5)', lambda x: lax.complex(x, jnp.full_like(x, 0.5)))


# The operators, with weights: functions that add one to a formula. The modules of operators add theirs.
OPERATORS = []


def operator(weight=1):
    def add(f):
        OPERATORS.append((weight, f))
        return f

    return add
