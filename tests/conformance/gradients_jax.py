#!/usr/bin/env python3
"""gradients_jax.py - compares duet_grad and duet_vjp with the gradients of JAX, on random formulas.

    python3 tests/conformance/gradients_jax.py BUILD_FOLDER [COUNT [SEED]]

BUILD_FOLDER has libduet.so. COUNT formulas (1000) are compared, each in f32 and in f64. Prints TAP. Skipped
if JAX is not installed. DUET_KEEP=FOLDER keeps the C program and its data there.

A formula has 1 to 3 matrices, real or complex, and 2 to 30 operators (OPERATORS below). This script writes a
C program that builds the formulas with Duet, and evaluates the same formulas with JAX on the CPU:
    value       the sum of y * weights, where y is the formula's result. Of a complex y, the real part
    gradient    duet_grad of this value, with respect to each matrix
    vjp         duet_vjp of y, for a third of the formulas
    second      duet_grad of the sum of gradient * direction, for two thirds of the smooth formulas
In every second formula, one duet_set_all computes all results; in the others each has its own statement.

Scale of errors. The error of a gradient is the norm of its difference from JAX's gradient in f64, divided by
the larger of two norms: that of JAX's gradient, and 1/100 of that of the formula's largest gradient. (With
respect to one matrix, the gradient may be a sum of terms that cancel each other. Its rounding errors then
have the size of these terms.) For second derivatives, the norm is also at least 1/100 of the first derivative's:
they are 0 where a formula is linear. The limits are 1e-5 in f32 and 1e-12 in f64.

Conditioning. Rounding in a long formula can make larger errors in f32 than 1e-5, whoever computes it. JAX
decides, without Duet: a formula is discarded if an error of JAX's f32 gradients is more than F32_NOISE. So
are formulas where numbers are not finite or larger than HUGE, where all gradients are 0, and that XLA does
not compile.

Points without a derivative. A formula with max, sort, abs or floor is built only if no element is near a tie
or a jump, where rounding decides. At such points JAX and Duet agree for maximum, minimum, clip, max, median,
max_pool, relu, elu, prod and cumprod. They differ for
    abs, copysign at 0    Duet 0, JAX 1
    hypot at 0, 0         Duet 0, JAX 1/2
    norm at 0             Duet 0, JAX NaN
    relu6 at 6            Duet 1/2, JAX 0
    logaddexp of equal infinities    Duet 1/2, JAX 1 or NaN"""
import collections, itertools, math, multiprocessing, multiprocessing.connection, operator as operators
import os, re, shutil, struct, subprocess, sys, tempfile

os.environ.setdefault('JAX_PLATFORMS', 'cpu')
# Most of the time is XLA's: it compiles each formula for a single run.
os.environ.setdefault('XLA_FLAGS', '--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true')
try:
    import numpy as np
    import jax, jax.numpy as jnp, jax.scipy as jsp
    from jax import lax
except ImportError as e:
    print('1..0 # SKIP %s is not installed' % e.name)
    sys.exit(0)
jax.config.update('jax_enable_x64', True)

LIMIT = {'f32': 1e-5, 'f64': 1e-12}
F32_NOISE = 2e-6
HUGE = 1e6          # of gradients
LARGEST = 30        # of the elements of intermediate results
MOST_ELEMENTS = 300 # of an intermediate result
KINDS = ['value', 'gradient', 'vjp', 'second']
GAP = 1e-4          # between elements whose order matters


class Reject(Exception):
    """This operator does not fit here."""


# ---- formulas ----


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


# ---- the operators: functions that add one to a formula ----

OPERATORS = []


def operator(weight=1):
    def add(f):
        OPERATORS.append((weight, f))
        return f

    return add


# name: the function, the range of its operand, and the points that its operand must not be near to. Functions
# with such points, or with None, have no second derivative there.
MAPS = {
    'neg': (jnp.negative, -9, 9), 'sqrt': (jnp.sqrt, 0.3, 9), 'exp': (jnp.exp, -3, 2), 'exp2': (jnp.exp2, -3, 3),
    'expm1': (jnp.expm1, -3, 2), 'log': (jnp.log, 0.3, 9), 'log2': (jnp.log2, 0.3, 9),
    'log10': (jnp.log10, 0.3, 9), 'log1p': (jnp.log1p, -0.6, 9), 'cbrt': (jnp.cbrt, 0.3, 9),
    'rsqrt': (lax.rsqrt, 0.3, 9), 'sinh': (jnp.sinh, -2, 2), 'cosh': (jnp.cosh, -2, 2),
    'tanh': (jnp.tanh, -3, 3), 'asinh': (jnp.arcsinh, -9, 9), 'acosh': (jnp.arccosh, 1.3, 9),
    'atanh': (jnp.arctanh, -0.8, 0.8), 'sigmoid': (jax.nn.sigmoid, -5, 5), 'softplus': (jax.nn.softplus, -5, 5),
    'sin': (jnp.sin, -9, 9), 'cos': (jnp.cos, -9, 9), 'tan': (jnp.tan, -1, 1), 'asin': (jnp.arcsin, -0.8, 0.8),
    'acos': (jnp.arccos, -0.8, 0.8), 'atan': (jnp.arctan, -9, 9), 'erf': (jsp.special.erf, -2, 2),
    'erfc': (jsp.special.erfc, -2, 2), 'ncdf': (jsp.special.ndtr, -3, 3),
    'gelu': (lambda x: jax.nn.gelu(x, approximate=False), -3, 3), 'gelu_tanh': (jax.nn.gelu, -3, 3),
    'square': (jnp.square, -5, 5), 'reciprocal': (jnp.reciprocal, 0.3, 9),
    'invcbrt': (lambda x: 1 / jnp.cbrt(x), 0.3, 9), 'silu': (jax.nn.silu, -5, 5), 'mish': (jax.nn.mish, -5, 5),
    'log_sigmoid': (jax.nn.log_sigmoid, -5, 5), 'radians': (jnp.deg2rad, -30, 30),
    'degrees': (jnp.rad2deg, -0.5, 0.5),
    'sigmoid_derivative': (lambda x: jax.nn.sigmoid(x) * jax.nn.sigmoid(-x), -4, 4),
    'tanh_derivative': (lambda x: 1 / jnp.cosh(x) ** 2, -2, 2), 'softplus_derivative': (jax.nn.sigmoid, -4, 4),
    'tanh_slope': (lambda x: 1 - x * x, -3, 3), 'sigmoid_slope': (lambda x: x * (1 - x), -3, 3),
    'silu_derivative': (lambda x: jax.nn.sigmoid(x) * (1 + x * (1 - jax.nn.sigmoid(x))), -3, 3),
    'abs': (jnp.abs, -30, 30, [0]), 'relu': (jax.nn.relu, -30, 30, [0]), 'relu6': (jax.nn.relu6, -30, 30, [0, 6]),
    'hard_tanh': (lambda x: jnp.clip(x, -1, 1), -30, 30, [-1, 1]),
    'hard_sigmoid': (lambda x: jnp.clip(x * 0.2 + 0.5, 0, 1), -30, 30, [-2.5, 2.5]),
    'hard_swish': (jax.nn.hard_swish, -30, 30, [-3, 3]), 'selu': (jax.nn.selu, -4, 9, [0]),
    'softsign': (jax.nn.soft_sign, -9, 9, [0]),
    'floor': (jnp.floor, -9, 9, list(range(-9, 10))), 'ceil': (jnp.ceil, -9, 9, list(range(-9, 10))),
    'trunc': (jnp.trunc, -9, 9, list(range(-9, 10))), 'round': (jnp.round, -9, 9, [k + 0.5 for k in range(-9, 10)]),
    'sign': (jnp.sign, -9, 9, [0]), 'signbit': (lambda x: (x < 0).astype(x.dtype), -9, 9, [0]),
}
ROUNDING = ['floor', 'ceil', 'trunc', 'round', 'sign', 'signbit']


@operator(10)
def element_wise(g):
    name = g.one_of(list(MAPS))
    f, low, high, *points = MAPS[name]
    a = g.within(g.pick_real(), low, high)
    if points:
        g.away(g.v(a), points[0])
    b = map1(g, name, f, a, not points)
    return arithmetic(g, a, b, 'add') if name in ROUNDING else b


@operator(1)
def with_number(g):
    name = g.one_of(['leaky_relu', 'elu', 'pow_int', 'pow', 'clip'])
    a = g.pick_real()
    s = g.number(0.2, 1.5)
    if name == 'pow_int':
        n = g.one_of([-2, -1, 2, 3, 4, 5])
        return g.put(name, [g.within(a, 0.4, 2)], 'duet_pow_int({0}, %d)' % n, lambda x: x ** n)
    if name == 'pow':
        low = 0.4 if g.chance(0.5) else -2
        n = s if low > 0 else g.one_of([0, 1, 2, 3])
        return g.put(name, [g.within(a, low, 2)], 'duet_pow({0}, %r)' % n,
                     lambda x: jnp.power(x, n) if isinstance(n, float) else lax.integer_pow(x, n))
    if name == 'clip':
        low, high = sorted([g.number(-2, 2), g.number(-2, 2)])
        g.away(g.v(a), [low, high])
        return g.put(name, [a], 'duet_clip({0}, %r, %r)' % (low, high), lambda x: jnp.clip(x, low, high), False)
    a = g.within(a, -5, 9)
    g.away(g.v(a), [0])
    f = (lambda x: jnp.where(x < 0, s * x, x)) if name == 'leaky_relu' else \
        (lambda x: jnp.where(x > 0, x, s * jnp.expm1(jnp.where(x > 0, 0, x))))
    return g.put(name, [a], 'duet_%s({0}, %r)' % (name, s), f, False)


def arithmetic(g, a, b, name):
    return g.put(name, [a, b], 'duet_%s({0}, {1})' % name, {'add': jnp.add, 'sub': jnp.subtract,
                                                          'mul': jnp.multiply, 'div': jnp.divide}[name])


@operator(8)
def sums_and_products(g):
    a = g.pick()
    b = g.partner(a, 'c' if g.is_complex(a) and g.chance(0.7) else 'f')
    if g.is_complex(a) != g.is_complex(b):
        a, b = to_complex(g, a), to_complex(g, b)
    name = g.one_of(['add', 'sub', 'mul', 'mul', 'div'])
    if name == 'div':
        b = g.within(b, 0.4, 9) if not g.is_complex(b) else b
        if np.abs(g.v(b)).min() < 0.3:
            raise Reject
    return arithmetic(g, *((b, a) if name != 'div' and g.chance(0.5) else (a, b)), name)


@operator(2)
def with_c_number(g):
    a, s = g.pick(), g.number(-2, 2)
    name = g.one_of(['add', 'sub', 'mul', 'div'])
    if name == 'div' and (np.abs(g.v(a)).min() < 0.3 or g.chance(0.5)):
        return g.put('div', [a], 'duet_div({0}, 1.7)', lambda x: x / 1.7)
    f = {'add': operators.add, 'sub': operators.sub, 'mul': operators.mul, 'div': operators.truediv}[name]
    if g.chance(0.5) or name == 'div':
        return g.put(name, [a], 'duet_%s(%r, {0})' % (name, s), lambda x: f(s, x))
    return g.put(name, [a], 'duet_%s({0}, %r)' % (name, s), lambda x: f(x, s))


@operator(4)
def two_operands(g):
    name = g.one_of(['pow', 'hypot', 'atan2', 'minimum', 'maximum', 'remainder', 'fmod', 'copysign', 'logaddexp',
                     'fma', 'where', 'clip', 'heaviside'])
    a = g.pick_real()
    b = g.partner(a)
    text = 'duet_%s({0}, {1})' % name
    if name == 'pow':
        return g.put(name, [g.within(a, 0.4, 2), g.within(b, -2, 2)], text, jnp.power)
    if name in ('hypot', 'atan2'):
        x, y = np.broadcast_arrays(g.v(a), g.v(b))
        if np.hypot(x, y).min() < 0.3 or (name == 'atan2' and ((np.abs(x) < GAP) & (y < 0)).any()):
            raise Reject
        return g.put(name, [a, b], text, {'hypot': lambda x, y: jnp.sqrt(x * x + y * y), 'atan2': jnp.arctan2}[name])
    if name in ('remainder', 'fmod'):
        b = g.within(b, 0.4, 9)
        q = g.v(a) / g.v(b)
        g.away(q - np.round(q), [0])
        return g.put(name, [a, b], text, {'remainder': jnp.remainder, 'fmod': jnp.fmod}[name], False)
    if name == 'copysign':
        g.away(g.v(a), [0]), g.away(g.v(b), [0])
        return g.put(name, [a, b], text, lambda x, y: jnp.abs(x) * jnp.sign(y), False)
    if name == 'heaviside':
        g.away(g.v(a), [0])
        return arithmetic(g, a, g.put(name, [a, b], text, lambda x, y: jnp.where(x > 0, 1.0, 0.0 * y), False), 'mul')
    if name in ('fma', 'where', 'clip'):
        c = g.partner(a)
        if name == 'fma':
            return g.put(name, [a, b, c], 'duet_fma({0}, {1}, {2})', lambda x, y, z: x * y + z)
        if name == 'where':
            g.away(g.v(a) - g.v(b), [0])
            less = g.put('less', [a, b], 'duet_less({0}, {1})', jnp.less)
            return g.put(name, [less, b, c], 'duet_where({0}, {1}, {2})', jnp.where)
        g.away(g.v(a) - g.v(b), [0]), g.away(np.maximum(g.v(a), g.v(b)) - g.v(c), [0])
        return g.put(name, [a, b, c], 'duet_clip({0}, {1}, {2})',
                     lambda x, y, z: jnp.minimum(jnp.maximum(x, y), z), False)
    g.away(g.v(a) - g.v(b), [0])
    return g.put(name, [a, b], text, getattr(jnp, name), name == 'logaddexp')


# ---- reductions ----


def reduced(g, name, f, a, smooth=True, number=''):
    """Over all elements, or along axes. f takes axis and keepdims."""
    shape = g.one_of(['all', 'axes', 'keep', 'axis', 'axis_keep'])
    axes = [] if shape == 'all' or not g.v(a).ndim else g.axes(a)
    if shape.startswith('axis') and axes:
        axes = axes[:1]
    if not axes:
        return g.put(name, [a], 'duet_%s({0}%s)' % (name, number), lambda x: f(x, None, False), smooth)
    keep = shape.endswith('keep')
    form = name + {'axes': '_axes', 'keep': '_axes_keep', 'axis': '_axis', 'axis_keep': '_keep'}[shape]
    if number or name in ('median', 'quantile'):
        form = name + ('_axes_keep' if keep else '_axes')
    names = [k - g.v(a).ndim if g.chance(0.3) else k for k in axes]
    return g.put(name, [a], 'duet_%s({0}%s, %s)' % (form, number, c_list(names)), lambda x: f(x, tuple(axes), keep),
                 smooth)


REDUCTIONS = {
    'sum': lambda x, a, k: jnp.sum(x, axis=a, keepdims=k), 'mean': lambda x, a, k: jnp.mean(x, axis=a, keepdims=k),
    'prod': lambda x, a, k: jnp.prod(x, axis=a, keepdims=k), 'max': lambda x, a, k: jnp.max(x, axis=a, keepdims=k),
    'min': lambda x, a, k: jnp.min(x, axis=a, keepdims=k), 'var': lambda x, a, k: jnp.var(x, axis=a, keepdims=k),
    'std': lambda x, a, k: jnp.std(x, axis=a, keepdims=k),
    'norm': lambda x, a, k: jnp.sqrt(jnp.sum(jnp.real(x * jnp.conj(x)), axis=a, keepdims=k)),
    'norm1': lambda x, a, k: jnp.sum(jnp.abs(x), axis=a, keepdims=k),
    'norm_inf': lambda x, a, k: jnp.max(jnp.abs(x), axis=a, keepdims=k),
    'logsumexp': lambda x, a, k: jsp.special.logsumexp(x, axis=a, keepdims=k),
    'median': lambda x, a, k: jnp.median(x, axis=a, keepdims=k),
}


@operator(8)
def reduction(g):
    a = g.pick(lambda v: v.ndim > 0) if g.chance(0.9) else g.pick()
    names = ['sum', 'mean', 'norm', 'norm1', 'prod'] if g.is_complex(a) else \
        list(REDUCTIONS) + ['sum', 'mean', 'prod', 'max', 'var_ddof', 'std_ddof', 'quantile']
    name = g.one_of(names)
    v = g.v(a)
    if name in ('max', 'min', 'median', 'quantile'):
        g.apart(v)
    if name in ('norm1', 'norm_inf'):
        g.away(np.abs(v), [0])
    if name == 'norm_inf':
        g.apart(np.abs(v))
    if name in ('norm', 'norm1') and np.abs(v).min() < 0.05:
        raise Reject
    if name in ('std', 'std_ddof'):
        b = reduced(g, name.replace('std', 'var'), REDUCTIONS['var'], a) if name == 'std' else \
            reduced(g, 'var_ddof', lambda x, k, d: jnp.var(x, axis=k, keepdims=d, ddof=1), a, True, ', 1')
        if g.v(b).min() < 0.05:
            raise Reject
        n = g.nodes.pop()
        form = n.text.replace('duet_var', 'duet_std')
        return g.put(name, n.args, form, lambda x, f=n.f: jnp.sqrt(f(x)))
    if name == 'var_ddof':
        return reduced(g, name, lambda x, k, d: jnp.var(x, axis=k, keepdims=d, ddof=1), a, True, ', 1')
    if name == 'quantile':
        q = g.number(0, 1)
        return reduced(g, name, lambda x, k, d: jnp.quantile(x, q, axis=k, keepdims=d), a, True, ', %r' % q)
    return reduced(g, name, REDUCTIONS[name], a, name not in ('max', 'min', 'norm1', 'norm_inf', 'median'))


@operator(2)
def vector_product(g):
    name = g.one_of(['dot', 'dot_axis', 'vdot', 'vecdot', 'outer', 'cross', 'kron', 'kron'])
    a = g.pick()
    kind = 'c' if g.is_complex(a) else 'f'
    if name == 'cross':
        a, b = g.shaped((2, 3), kind), g.shaped((3,), kind)
        return g.put(name, [a, b], 'duet_cross({0}, {1})', jnp.cross)
    if name == 'outer':
        n = g.integer(1, 4)
        a, b = g.shaped((n,), kind), g.shaped((g.integer(1, 4),), kind)
        return g.put(name, [a, b], 'duet_outer({0}, {1})', jnp.outer)
    if name == 'kron':
        b = g.pick(lambda v: v.dtype.kind == kind and v.ndim > 0)
        if not g.v(a).ndim:
            raise Reject
        return g.put(name, [a, b], 'duet_kron({0}, {1})', jnp.kron)
    b = g.shaped(g.shape(a), kind)
    if name == 'vdot':
        return g.put(name, [a, b], 'duet_vdot({0}, {1})', lambda x, y: jnp.sum(jnp.conj(x) * y))
    if name == 'vecdot':
        k = g.axis(a)
        return g.put(name, [a, b], 'duet_vecdot({0}, {1}, %d)' % k, lambda x, y: jnp.sum(jnp.conj(x) * y, axis=k))
    if name == 'dot' or not g.v(a).ndim:
        return g.put('dot', [a, b], 'duet_dot({0}, {1})', lambda x, y: jnp.sum(x * y))
    k, keep = g.axis(a), g.chance(0.5)
    return g.put('dot', [a, b], 'duet_dot_%s({0}, {1}, %d)' % ('keep' if keep else 'axis', k),
                 lambda x, y: jnp.sum(x * y, axis=k, keepdims=keep))


# ---- matrix products ----


@operator(5)
def matmul(g):
    a = g.pick(lambda v: v.ndim > 0)
    s, kind = g.shape(a), 'c' if g.is_complex(a) else 'f'
    cols = g.integer(1, 4)
    side = g.one_of(['vector', 'matrix', 'stack', 'left', 'square', 'self'])
    if side == 'self' and len(s) > 1:
        b = transposed(g, a)
        return g.put('matmul', [a, b], 'duet_matmul({0}, {1})', jnp.matmul)
    lead = list(s[:-2])
    if side == 'stack':
        lead = [1 if g.chance(0.3) else k for k in lead] or [g.integer(1, 3)]
    if side == 'left':
        rows = s[-2] if len(s) > 1 else s[0]
        b = g.shaped((cols, rows) if g.chance(0.7) else (rows,), kind)
        return g.put('matmul', [b, a], 'duet_matmul({0}, {1})', jnp.matmul)
    need = {'vector': [s[-1]], 'matrix': [s[-1], cols], 'square': [s[-1], s[-1]]}.get(side, lead + [s[-1], cols])
    b = g.shaped(need, kind)
    if side == 'matrix' and g.chance(0.4):
        b = g.put('transpose', [g.shaped((cols, s[-1]), kind)], 'duet_transpose({0})', jnp.transpose)
    return g.put('matmul', [a, b], 'duet_matmul({0}, {1})', jnp.matmul)


def transposed(g, a):
    rank = g.v(a).ndim
    if rank == 2:
        return g.put('transpose', [a], 'duet_transpose({0})', jnp.transpose)
    return g.put('swapaxes', [a], 'duet_swapaxes({0}, -1, -2)', lambda x: jnp.swapaxes(x, -1, -2))


@operator(2)
def einsum(g):
    a = g.pick(lambda v: v.ndim > 0)
    b = g.pick(lambda v: v.ndim > 0 and v.dtype.kind == g.v(a).dtype.kind)
    left = 'abcdef'[:g.v(a).ndim]
    right, used, out = '', set(), []
    for n in g.shape(b):
        same = [c for c, k in zip(left, g.shape(a)) if k == n and c not in used]
        c = g.one_of(same) if same and g.chance(0.7) else 'ghijkl'[len(right)]
        right += c
        used.add(c)
    out = [c for c in left + ''.join(c for c in right if c not in left)
           if not (c in left and c in right) or g.chance(0.4)]
    if sum(c in right and c not in out for c in left) > 1:
        raise Reject # Duet sums only along axes that are adjacent in both operands
    spec = '%s,%s->%s' % (left, right, ''.join(out[k] for k in g.rng.permutation(len(out))))
    return g.put('einsum', [a, b], 'duet_einsum({0}, {1}, "%s")' % spec, lambda x, y: jnp.einsum(spec, x, y))


@operator(1)
def bias_add(g):
    a = g.pick(lambda v: 2 <= v.ndim <= 5)
    b = g.shaped((g.shape(a)[1],), 'c' if g.is_complex(a) else 'f')
    if g.is_complex(a):
        raise Reject
    return g.put('bias_add', [a, b], 'duet_bias_add({0}, {1})',
                 lambda x, y: x + y.reshape((1, -1) + (1,) * (x.ndim - 2)))


# ---- views and gathers ----


@operator(8)
def view(g):
    a = g.pick()
    rank, shape = g.v(a).ndim, g.shape(a)
    name = g.one_of(['transpose', 'permute', 'reshape', 'broadcast', 'index', 'index', 'index', 'flip',
                     'expand_dims', 'squeeze', 'moveaxis', 'swapaxes', 'pick', 'part', 'diag', 'diagonal_of', 'trace', 'tril',
                     'triu', 'sliding_window', 'diff', 'meshgrid', 'tile', 'repeat', 'roll'])
    if name == 'transpose':
        return g.put(name, [a], 'duet_transpose({0})', jnp.transpose)
    if name == 'reshape':
        n = g.v(a).size
        k = g.one_of([d for d in range(1, n + 1) if n % d == 0])
        return reshape_to(g, a, g.one_of([(n,), (k, n // k), (1, n // k, k), (n // k, 1, k)]))
    if name == 'broadcast':
        to = [g.integer(1, 3) if k == 1 else k for k in shape]
        to = [g.integer(1, 3) for _ in range(g.integer(0 if rank else 1, 2))] + to
        return g.put(name, [a], 'duet_broadcast({0}, %s)' % c_list(to), lambda x: jnp.broadcast_to(x, to))
    if name == 'expand_dims':
        k = g.integer(0, rank)
        return g.put(name, [a], 'duet_expand_dims({0}, %d)' % k, lambda x: jnp.expand_dims(x, k))
    if not rank:
        raise Reject
    k = g.axis(a)
    n = shape[k]
    if name == 'permute':
        order = [int(i) for i in g.rng.permutation(rank)]
        return g.put(name, [a], 'duet_permute({0}, %s)' % c_list(order), lambda x: jnp.transpose(x, order))
    if name == 'flip':
        return g.put(name, [a], 'duet_flip({0}, %d)' % k, lambda x: jnp.flip(x, k))
    if name == 'squeeze':
        ones = [i for i in range(rank) if shape[i] == 1]
        k = g.one_of(ones) if ones else g.reject()
        return g.put(name, [a], 'duet_squeeze({0}, %d)' % k, lambda x: jnp.squeeze(x, k))
    if name in ('moveaxis', 'swapaxes'):
        j = g.axis(a)
        f = getattr(jnp, name)
        return g.put(name, [a], 'duet_%s({0}, %d, %d)' % (name, k, j), lambda x: f(x, k, j))
    if name == 'pick':
        i = g.integer(-n, n - 1)
        return g.put(name, [a], 'duet_pick({0}, %d, %d)' % (k, i), lambda x: jnp.take(x, i % n, axis=k))
    if name == 'part':
        count = g.integer(1, n)
        i = g.integer(0, count - 1)
        return g.put(name, [a], 'duet_part({0}, %d, %d, %d)' % (k, count, i), lambda x: jnp.array_split(x, count, k)[i])
    if name in ('diag', 'diagonal_of'):
        if rank < 2 and name == 'diagonal_of' or rank > 2 and name == 'diag':
            raise Reject
        i = g.integer(1 - shape[0], shape[1] - 1) if rank > 1 else g.integer(-1, 1)
        return g.put(name, [a], 'duet_%s({0}, %d)' % (name, i), lambda x: getattr(jnp, name.replace('_of', ''))(x, i))
    if name in ('trace', 'tril', 'triu'):
        if rank < 2 or name == 'trace' and rank > 2:
            raise Reject
        i = g.integer(-1, 1)
        return g.put(name, [a], 'duet_trace({0})' if name == 'trace' else 'duet_%s({0}, %d)' % (name, i),
                     jnp.trace if name == 'trace' else lambda x: getattr(jnp, name)(x, i))
    if name == 'sliding_window':
        size, stride, dilation = g.integer(1, n), g.integer(1, 2), g.integer(1, 2)
        count = (n - (size - 1) * dilation - 1) // stride + 1
        if count < 1:
            raise Reject
        at = np.arange(count)[:, None] * stride + np.arange(size) * dilation
        return g.put(name, [a], 'duet_sliding_window({0}, %d, %d, %d, %d)' % (k, size, stride, dilation),
                     lambda x: jnp.moveaxis(jnp.take(x, at, axis=k), k + 1, -1))
    if name == 'diff':
        i = g.integer(1, 2)
        if n <= i:
            raise Reject
        return g.put(name, [a], 'duet_diff({0}, %d, %d)' % (i, k), lambda x: jnp.diff(x, i, axis=k))
    if name == 'meshgrid':
        if rank != 1:
            raise Reject
        if g.chance(0.5):
            return g.put(name, [a], 'duet_meshgrid({0}, 1, 3, %d)' % n, lambda x: jnp.broadcast_to(x, (3, n)))
        return g.put(name, [a], 'duet_meshgrid({0}, 0, %d, 2)' % n, lambda x: jnp.broadcast_to(x[:, None], (n, 2)))
    if name == 'tile':
        times = [g.integer(1, 2) for _ in range(g.integer(1, rank + 1))]
        return g.put(name, [a], 'duet_tile({0}, %s)' % c_list(times), lambda x: jnp.tile(x, times))
    if name == 'repeat':
        i = g.integer(1, 3)
        return g.put(name, [a], 'duet_repeat({0}, %d, %d)' % (i, k), lambda x: jnp.repeat(x, i, axis=k))
    if name == 'roll':
        i = g.integer(-3, 3)
        return g.put(name, [a], 'duet_roll({0}, %d, %d)' % (i, k), lambda x: jnp.roll(x, i, axis=k))
    return indexed(g, a)


def indexed(g, a):
    entries, keys = [], []
    for n in g.shape(a):
        how = g.one_of(['all', 'all', 'at', 'range', 'step', 'back', 'new'])
        if how == 'new':
            entries.append('DUET_NEW'), keys.append(None)
            how = 'all'
        if how == 'all':
            entries.append('DUET_ALL'), keys.append(slice(None))
        elif how == 'at':
            i = g.integer(-n, n - 1)
            entries.append('DUET_AT(%d)' % i), keys.append(i)
        elif how == 'range':
            i = g.integer(0, n - 1)
            j = g.integer(i + 1, n)
            entries.append('DUET_RANGE(%d, %d)' % (i, j)), keys.append(slice(i, j))
        elif how == 'step':
            i, by = g.integer(0, n - 1), g.integer(1, 3)
            entries.append('DUET_STEP(%d, DUET_OPEN, %d)' % (i, by)), keys.append(slice(i, None, by))
        else:
            by = -g.integer(1, 2)
            entries.append('DUET_STEP(DUET_OPEN, DUET_OPEN, %d)' % by), keys.append(slice(None, None, by))
    if keys == [slice(None)] * len(keys):
        raise Reject
    return g.put('index', [a], 'duet_index({0}, %s)' % c_list(entries), lambda x: x[tuple(keys)])


@operator(3)
def joined(g):
    a = g.pick()
    kind, s = 'c' if g.is_complex(a) else 'f', g.shape(a)
    name = g.one_of(['concat', 'stack', 'pad', 'concat'])
    if name == 'stack':
        k, b = g.integer(0, len(s)), g.shaped(s, kind)
        return g.put(name, [a, b, a], 'duet_stack(%d, {0}, {1}, {2})' % k, lambda *x: jnp.stack(x, k))
    k = g.axis(a)
    if name == 'concat':
        more = [g.shaped(s[:k] + (g.integer(1, 3),) + s[k + 1:], kind) for _ in range(g.integer(1, 2))]
        args = [a] + more
        return g.put(name, args, 'duet_concat(%d, %s)' % (k, c_list('{%d}' % i for i in range(len(args)))),
                     lambda *x: jnp.concatenate(x, k))
    before, after = [g.integer(0, 2) for _ in s], [g.integer(0, 2) for _ in s]
    mode = g.one_of(['constant', 'edge', 'reflect'])
    if mode == 'reflect' and min(s) < 3:
        mode = 'edge'
    value = g.one_of([0, g.number(0.5, 2)])
    by = list(zip(before, after))
    return g.put(name, [a], 'duet_pad({0}, .before = %s, .after = %s, .mode = DUET_PAD_%s, .value = %r)'
                 % (c_sizes(before), c_sizes(after), mode.upper(), value),
                 lambda x: jnp.pad(x, by, mode=mode, **({'constant_values': value} if mode == 'constant' else {})))


@operator(4)
def gathered(g):
    a = g.pick(lambda v: v.ndim > 0)
    k = g.axis(a)
    s, rank, kind = g.shape(a), g.v(a).ndim, 'c' if g.is_complex(a) else 'f'
    n = s[k]
    name = g.one_of(['take', 'take_along_axis', 'put', 'scatter_add', 'scatter_max', 'sort', 'top_k', 'cumsum',
                     'cumprod', 'cumsum', 'append', 'softmax', 'log_softmax'])
    if name == 'append':
        b = g.shaped(s, kind)
        return g.put(name, [a, b], 'duet_append({0}, {1}, %d)' % k, lambda x, y: jnp.concatenate((x, y), k))
    if name == 'cumsum':
        return g.put(name, [a], 'duet_cumsum({0}, %d)' % k, lambda x: jnp.cumsum(x, k))
    if name in ('take', 'scatter_add'):
        at = g.rng.integers(0, n, [g.integer(1, 3) for _ in range(g.integer(0, 2))])
    if name == 'take':
        i = g.indices(at - n * g.rng.integers(0, 2, at.shape))
        return g.put(name, [a, i], 'duet_take({0}, {1}, %d)' % k, lambda x, i: jnp.take(x, at, axis=k))
    if name == 'take_along_axis':
        at = g.rng.integers(0, n, s[:k] + (g.integer(1, 3),) + s[k + 1:])
        return g.put(name, [a, g.indices(at)], 'duet_take_along_axis({0}, {1}, %d)' % k,
                     lambda x, i: jnp.take_along_axis(x, at, axis=k))
    if name in ('put', 'scatter_max'):
        at = g.rng.permutation(n)[:g.integer(1, n)]
    where = (slice(None),) * k
    if name in ('put', 'scatter_add', 'scatter_max'):
        b = g.shaped(s[:k] + at.shape + s[k + 1:], kind)
        if name == 'scatter_max':
            if kind == 'c':
                raise Reject
            g.away(np.take(g.v(a), at, axis=k) - g.v(b), [0])
        here = where + (at,)
        f = {'put': lambda x, y: x.at[here].set(y), 'scatter_add': lambda x, y: x.at[here].add(y),
             'scatter_max': lambda x, y: x.at[here].set(jnp.maximum(y, x[here]))}[name]
        return g.put(name, [a, g.indices(at), b], 'duet_%s({0}, {1}, {2}, %d)' % (name, k),
                     lambda x, i, y: f(jnp.asarray(x), y), name != 'scatter_max')
    if kind == 'c':
        raise Reject
    if name in ('sort', 'top_k'):
        g.apart(g.v(a), k)
        top = g.integer(1, n)
        if name == 'sort':
            return g.put(name, [a], 'duet_sort({0}, %d)' % k, lambda x: jnp.sort(x, k))
        return g.put(name, [a], 'duet_top_k({0}, %d, %d)' % (top, k),
                     lambda x: lax.slice_in_dim(jnp.flip(jnp.sort(x, k), k), 0, top, axis=k))
    if name == 'cumprod':
        return g.put(name, [a], 'duet_cumprod({0}, %d)' % k, lambda x: jnp.cumprod(x, k))
    f = getattr(jax.nn, name)
    return g.put(name, [a], 'duet_%s({0})' % name, lambda x: f(x, axis=-1))


# ---- networks ----


def unit(x, axes, r):
    mean = jnp.mean(x, axis=axes, keepdims=True)
    return (x - mean) / jnp.sqrt(jnp.mean((x - mean) ** 2, axis=axes, keepdims=True) + r)


def rows(x):
    return x.size / x.shape[-1]


LOSSES = {
    'mse': lambda x, y: jnp.mean((x - y) ** 2),
    'binary_cross_entropy': lambda x, y: -jnp.mean(y * jnp.log(x) + (1 - y) * jnp.log(1 - x)),
    'binary_cross_entropy_logits': lambda x, y: jnp.mean(jax.nn.softplus(x) - x * y),
    'cross_entropy': lambda x, y: -jnp.sum(y * jnp.log(x)) / rows(x),
    'cross_entropy_logits': lambda x, y: -jnp.sum(y * jax.nn.log_softmax(x)) / rows(x),
    'softmax_grad': lambda x, y: x * (y - jnp.sum(x * y, axis=-1, keepdims=True)),
    'log_softmax_grad': lambda x, y: y - jnp.exp(x) * jnp.sum(y, axis=-1, keepdims=True),
    'mse_grad': lambda x, y: (x - y) * 2 / x.size,
}


@operator(4)
def network(g):
    name = g.one_of(['layer_norm', 'batch_norm', 'instance_norm', 'bias_batch_sum', 'bias_batch_mean',
                     'bias_batch_var', 'normalize_flat', 'normalize_sub', 'dropout'] + list(LOSSES))
    a = g.pick_real(lambda v: v.ndim > 0)
    s, rank = g.shape(a), g.v(a).ndim
    if name in LOSSES:
        b = g.shaped(s)
        if name.endswith('entropy'):
            a, b = g.within(a, 0.1, 0.9), g.within(b, 0.1, 0.9)
        return g.put(name, [a, b], 'duet_%s({0}, {1})' % name, LOSSES[name])
    if name == 'dropout':
        g.away(g.v(a), [0])
        b = g.shaped(s)
        mask = g.put('greater', [a], 'duet_greater({0}, 0)', lambda x: x > 0)
        return g.put(name, [b, mask], 'duet_dropout({0}, {1})', lambda x, y: jnp.where(y, x, 0.0))
    if rank < 2 and name != 'layer_norm' and name != 'normalize_flat':
        raise Reject
    batch, all = tuple(k for k in range(rank) if k != 1), tuple(range(rank))
    if name.startswith('bias_batch'):
        f = getattr(jnp, name[11:])
        return g.put(name, [a], 'duet_%s({0})' % name, lambda x: f(x, axis=batch))
    if name.startswith('normalize'):
        axes = all if name == 'normalize_flat' else all[1:]
        if np.var(g.v(a), axis=axes).min() < 0.02:
            raise Reject
        return g.put(name, [a], 'duet_%s({0})' % name, lambda x: unit(x, axes, 0), True)
    if name == 'instance_norm' and rank < 3:
        raise Reject
    axes = {'layer_norm': (rank - 1,), 'batch_norm': batch, 'instance_norm': all[2:]}[name]
    shape = (s[-1],) if name == 'layer_norm' else (s[1],) + (1,) * (rank - 2)
    b, c, r = g.shaped(shape), g.shaped(shape), g.one_of([1e-1, 1e-2])
    return g.put(name, [a, b, c], 'duet_%s({0}, {1}, {2}, %r)' % (name, r), lambda x, y, z: unit(x, axes, r) * y + z)


def options(d, **named):
    """Options of 1, 2 or 3 axes. Those of one axis are numbers."""
    each = [k for k in named.items() if k[1] is not None]
    return ''.join(', .%s = %s' % (k, (v if isinstance(v, int) else v[0] if d == 1 else c_sizes(v))) for k, v in each)


def flipped(w, d):
    return jnp.flip(w, tuple(range(2, 2 + d)))


def convolved(x, w, stride, pad, more, dilation, groups):
    return lax.conv_general_dilated(x, w, stride, [(p, p + m) for p, m in zip(pad, more)], rhs_dilation=dilation,
                                    feature_group_count=groups)


@operator(3)
def convolution(g):
    d = g.one_of([1, 2, 2, 3])
    name = g.one_of(['conv', 'conv', 'convolve', 'conv_transpose', 'input_grad'])
    groups = g.one_of([1, 1, 2]) if name != 'conv_transpose' and name != 'input_grad' else 1
    n, c, m = g.integer(1, 2), groups * g.integer(1, 2), groups * g.integer(1, 2)
    size = [g.integer(3, 5) if d < 3 else 3 for _ in range(d)]
    window = [g.integer(1, 3) if d < 3 else 2 for _ in range(d)]
    stride, pad, dilation = ([g.integer(1, 2) for _ in range(d)], [g.integer(0, 1) for _ in range(d)],
                             [g.integer(1, 2) for _ in range(d)])
    more = [g.integer(0, 1) for _ in range(d)]
    if name in ('conv', 'convolve'):
        if any(s + 2 * p + e < (w - 1) * l + 1 for s, p, e, w, l in zip(size, pad, more, window, dilation)):
            raise Reject
        x, w = g.shaped([n, c] + size), g.shaped([m, c // groups] + window)
        flip = name == 'convolve'
        return g.put('%s%dd' % (name, d), [x, w], 'duet_%s%dd({0}, {1}%s)' % (name, d, options(
            d, stride=stride, pad=pad, dilation=dilation, groups=groups, more=more)),
            lambda x, w: convolved(x, flipped(w, d) if flip else w, stride, pad, more, dilation, groups))
    small = [g.integer(1, 3) for _ in range(d)]
    x, w = g.shaped([n, m] + small), g.shaped([m, c] + window)
    extra = [g.integer(0, s - 1) for s in stride]
    image = [(s - 1) * t + (k - 1) * l + 1 - 2 * p + e
             for s, t, k, l, p, e in zip(small, stride, window, dilation, pad, extra)]
    if min(image) < 1:
        raise Reject
    around = [((k - 1) * l - p, (k - 1) * l - p + e) for k, l, p, e in zip(window, dilation, pad, extra)]
    f = lambda x, w: lax.conv_general_dilated(x, jnp.swapaxes(flipped(w, d), 0, 1), (1,) * d, around,
                                              lhs_dilation=stride, rhs_dilation=dilation)
    last = {'output_pad': extra} if name == 'conv_transpose' else {'size': image}
    form = 'conv_transpose%dd' % d if name == 'conv_transpose' else 'conv%dd_input_grad' % d
    return g.put(form, [x, w], 'duet_%s({0}, {1}%s)' % (form, options(d, stride=stride, pad=pad, dilation=dilation,
                                                                      **last)), f)


@operator(2)
def pooling(g):
    d = g.one_of([1, 2, 2, 3])
    name = g.one_of(['max_pool', 'avg_pool', 'upsample'])
    size = [g.integer(2, 5) if d < 3 else g.integer(2, 3) for _ in range(d)]
    a = g.shaped([g.integer(1, 2), g.integer(1, 2)] + size)
    if name == 'upsample':
        scale = [g.integer(1, 2) for _ in range(d)]

        def f(x):
            for k in range(d):
                x = jnp.repeat(x, scale[k], axis=2 + k)
            return x
        return g.put('upsample%dd' % d, [a], 'duet_upsample%dd({0}, %s)' % (d, c_list(scale)), f)
    window = [g.integer(1, min(3, s)) for s in size]
    stride = [g.integer(1, 3) for _ in size]
    pad = [g.integer(0, min(1, w - 1)) for w in window]
    text = 'duet_%s%dd({0}%s)' % (name, d, options(d, window=window, stride=stride, pad=pad))
    dims, strides, pads = [1, 1] + window, [1, 1] + stride, [(0, 0)] * 2 + [(p, p) for p in pad]
    if name == 'max_pool':
        g.apart(g.v(a))
        return g.put('%s%dd' % (name, d), [a], text,
                     lambda x: lax.reduce_window(x, -jnp.inf, lax.max, dims, strides, pads), False)
    return g.put('%s%dd' % (name, d), [a], text,
                 lambda x: lax.reduce_window(x, 0.0, lax.add, dims, strides, pads) / int(np.prod(window)))


@operator(1)
def im2col(g):
    h, w = g.integer(2, 4), g.integer(2, 4)
    a = g.shaped([g.integer(1, 2), g.integer(1, 2), h, w])
    window, pad = [g.integer(1, 2), g.integer(1, 2)], [g.integer(0, 1), g.integer(0, 1)]

    def f(x):
        p = lax.conv_general_dilated_patches(x, window, (1, 1), [(k, k) for k in pad])
        return p.reshape(p.shape[0], p.shape[1], -1)
    return g.put('im2col', [a], 'duet_im2col({0}, .window = %s, .pad = %s)' % (c_sizes(window), c_sizes(pad)), f)


def overlapped(x, y, part, reverse):
    """The convolution or correlation along all axes, as SciPy's."""
    d = x.ndim
    y = y if reverse else jnp.flip(y)
    m = y.shape
    full = lax.conv_general_dilated(x[None, None], y[None, None], (1,) * d, [(k - 1, k - 1) for k in m])[0, 0]
    if part == 'FULL':
        return full
    first = [(k - 1) // 2 if part == 'SAME' else k - 1 for k in m]
    count = [n if part == 'SAME' else n - k + 1 for n, k in zip(x.shape, m)]
    return lax.slice(full, first, [f + c for f, c in zip(first, count)])


@operator(1)
def signal(g):
    name = g.one_of(['convolve', 'correlate', 'fftconvolve', 'fftcorrelate'])
    rank = g.integer(1, 2)
    m = [g.integer(1, 3) for _ in range(rank)]
    a, b = g.shaped([g.integer(3, 6) for _ in range(rank)]), g.shaped(m)
    part = g.one_of(['FULL', 'SAME', 'VALID'])
    return g.put(name, [a, b], 'duet_%s({0}, {1}, DUET_OVERLAP_%s)' % (name, part),
                 lambda x, y: overlapped(x, y, part, name.endswith('correlate')))


# ---- linear algebra ----


def regular(g, n):
    """A well-conditioned matrix: a multiple of the identity and elements that are smaller."""
    x = g.shaped((n, n))
    size = float(np.abs(g.v(x)).max())
    if size > 1:
        x = scaled(g, x, float('%.2g' % (1 / size)))
    i = g.matrix((1.5 + 0.5 * n) * np.eye(n), True)
    return g.put('add', [x, i], 'duet_add({0}, {1})', jnp.add)


@operator(3)
def linear(g):
    name = g.one_of(['solve', 'inv', 'det', 'logdet', 'cholesky', 'solve_triangular', 'lstsq'])
    n = g.integer(1, 4)
    b_shape = (n,) if g.chance(0.4) else (n, g.integer(1, 3))
    if name == 'lstsq':
        tall = g.chance(0.6)
        m = n + 1
        a = g.shaped((m, n) if tall else (n, m))
        if np.linalg.svd(g.v(a), compute_uv=False).min() < 0.3:
            raise Reject
        b = g.shaped(((m if tall else n),) + b_shape[1:])
        normal = {True: lambda x, y: jnp.linalg.solve(x.T @ x, x.T @ y),
                  False: lambda x, y: x.T @ jnp.linalg.solve(x @ x.T, y)}
        return g.put(name, [a, b], 'duet_lstsq({0}, {1})', normal[tall])
    a = regular(g, n)
    if name == 'cholesky':
        t = g.put('transpose', [a], 'duet_transpose({0})', jnp.transpose)
        a = scaled(g, g.put('add', [a, t], 'duet_add({0}, {1})', jnp.add), 0.5)
        return g.put(name, [a], 'duet_cholesky({0})', jnp.linalg.cholesky)
    if name == 'logdet':
        return g.put(name, [a], 'duet_logdet({0})', lambda x: jnp.linalg.slogdet(x)[1])
    if name in ('inv', 'det'):
        return g.put(name, [a], 'duet_%s({0})' % name, getattr(jnp.linalg, name))
    b = g.shaped(b_shape)
    if name == 'solve':
        return g.put(name, [a, b], 'duet_solve({0}, {1})', jnp.linalg.solve)
    lower, one, trans = g.integer(0, 1), g.integer(0, 1), g.integer(0, 1)
    return g.put(name, [a, b], 'duet_solve_triangular({0}, {1}, .lower = %d, .unit = %d, .transposed = %d)'
                 % (lower, one, trans), lambda x, y: jsp.linalg.solve_triangular(
                     x, y, trans=trans, lower=bool(lower), unit_diagonal=bool(one)))


@operator(0.7)
def statistics(g):
    name = g.one_of(['cov', 'corrcoef'])
    a = g.pick_real(lambda v: v.ndim == 2 and v.shape[1] > 1)
    if np.var(g.v(a), axis=1).min() < 0.05:
        raise Reject
    if name == 'cov':
        return g.put(name, [a], 'duet_cov({0}, 1)', lambda x: jnp.cov(x))
    return g.put(name, [a], 'duet_corrcoef({0})', lambda x: jnp.corrcoef(x))


# ---- complex numbers, types ----


def to_complex(g, a):
    if g.is_complex(a):
        return a
    return g.put('complex', [a], 'duet_complex({0}, 0.5)', lambda x: lax.complex(x, jnp.full_like(x, 0.5)))


COMPLEX_MAPS = {
    'neg': jnp.negative, 'sqrt': jnp.sqrt, 'exp': jnp.exp, 'log': jnp.log, 'sinh': jnp.sinh, 'cosh': jnp.cosh,
    'tanh': jnp.tanh, 'sin': jnp.sin, 'cos': jnp.cos, 'tan': jnp.tan, 'square': lambda x: x * x, 'expm1': jnp.expm1,
    'log1p': jnp.log1p, 'reciprocal': lambda x: 1 / x, 'conj': jnp.conj, 'asin': jnp.arcsin, 'acos': jnp.arccos,
    'atan': jnp.arctan, 'asinh': jnp.arcsinh, 'acosh': jnp.arccosh, 'atanh': jnp.arctanh,
    'log2': lambda x: jnp.log(x) / math.log(2), 'log10': lambda x: jnp.log(x) / math.log(10),
}


@operator(5)
def complex_numbers(g):
    can = [i for i, n in enumerate(g.nodes) if not n.constant and n.value.dtype.kind == 'c']
    name = g.one_of(['complex', 'real', 'imag', 'abs', 'arg', 'map', 'map', 'map'])
    if name == 'complex' or not can:
        a = g.pick_real()
        b = g.partner(a)
        return g.put('complex', [a, b], 'duet_complex({0}, {1})',
                     lambda x, y: lax.complex(*jnp.broadcast_arrays(x, y)))
    a = can[-1] if g.chance(0.6) else g.one_of(can)
    v = g.v(a)
    if name in ('real', 'imag'):
        return g.put(name, [a], 'duet_%s({0})' % name, getattr(jnp, name))
    if name in ('abs', 'arg') and np.abs(v).min() < 0.2:
        raise Reject
    if name == 'abs':
        return g.put(name, [a], 'duet_abs({0})', jnp.abs)
    if name == 'arg':
        if ((np.abs(v.imag) < GAP) & (v.real < 0)).any():
            raise Reject
        return g.put(name, [a], 'duet_arg({0})', jnp.angle)
    name = g.one_of(list(COMPLEX_MAPS))
    if np.abs(v).max() > 2.5 and name not in ('neg', 'conj', 'square'):
        a = scaled(g, a, float('%.2g' % (1.5 / np.abs(v).max())))
        v = g.v(a)
    if name not in ('neg', 'conj', 'square', 'exp', 'sinh', 'cosh', 'sin', 'cos', 'expm1', 'tanh', 'tan'):
        # away from branch cuts and poles
        if np.abs(v).min() < 0.2 or np.abs(v.imag).min() < 0.05 or np.abs(v.real).min() < 0.05 or \
                min(np.abs(v * v - 1).min(), np.abs(v * v + 1).min(), np.abs(v + 1).min()) < 0.2:
            raise Reject
    return map1(g, name, COMPLEX_MAPS[name], a)


@operator(3)
def fourier(g):
    name = g.one_of(['fftn', 'ifftn', 'rfftn', 'irfftn', 'fftshift', 'ifftshift', 'abs_of'])
    kinds = {'irfftn': 'c', 'rfftn': 'f', 'abs_of': 'f'}.get(name, 'fc')
    a = g.pick(lambda v: v.ndim > 0 and v.dtype.kind in kinds)
    axes = g.axes(a)
    axes = [axes[k] for k in g.rng.permutation(len(axes))]
    axis = '.axes = %d, .axis = %s' % (len(axes), c_sizes(axes))
    if name.endswith('shift'):
        f = getattr(jnp.fft, name)
        return g.put(name, [a], 'duet_%s({0}, %s)' % (name, axis), lambda x: f(x, axes=axes))
    form = 'fftn' if name == 'abs_of' else name
    n = [g.one_of([g.shape(a)[k], g.integer(1, 6)]) for k in axes]
    f = getattr(jnp.fft, form)
    b = g.put(form, [a], 'duet_%s({0}, %s, .n = %s)' % (form, axis, c_sizes(n)), lambda x: f(x, s=n, axes=axes))
    if name != 'abs_of':
        return b
    if np.abs(g.v(b)).min() < 0.2:
        raise Reject
    return g.put('abs', [b], 'duet_abs({0})', jnp.abs)


@operator(0.5)
def types(g):
    name = g.one_of(['cast', 'stop_gradient'])
    a = g.pick_real()
    if name == 'cast':
        b = g.put(name, [a], 'duet_cast({0}, DUET_F64)', lambda x: jnp.asarray(x, jnp.float64))
        b = map1(g, 'sin', jnp.sin, b)
        return g.put(name, [b, a], 'duet_cast({0}, t)', lambda x, y: jnp.asarray(x, y.dtype))
    b = g.put(name, [a], 'duet_stop_gradient({0})', lax.stop_gradient)
    return arithmetic(g, b, a, 'mul')


# ---- random formulas ----


def random_shape(rng):
    rank = int(rng.choice([0, 1, 2, 2, 2, 3, 3, 4]))
    most = {0: 1, 1: 6, 2: 5, 3: 4, 4: 4}[rank]
    return tuple(int(k) for k in rng.integers(1, most + 1, rank))


def narrow(v):
    """Rounds to f32, so that f32 and f64 have the same operands."""
    return v.astype('c8' if v.dtype.kind == 'c' else 'f4').astype(v.dtype)


def random_values(rng, shape, is_complex):
    v = rng.uniform(-1.8, 1.8, shape)
    return narrow(np.asarray(v + 1j * rng.uniform(-1.8, 1.8, shape) if is_complex else v))


def random_formula(rng):
    g = Formula(rng)
    for k in range(g.integer(1, g.most_inputs)):
        g.matrix(random_values(rng, random_shape(rng), g.chance(0.12)), False)
    target = g.integer(2, 30)
    weights = np.array([w for w, _ in OPERATORS])
    tries = 0
    while sum(1 for n in g.nodes if n.args) < target and tries < 400:
        tries += 1
        nodes = len(g.nodes)
        try:
            OPERATORS[int(rng.choice(len(OPERATORS), p=weights / weights.sum()))][1](g)
        except Reject:
            del g.nodes[nodes:]
    g.root = len(g.nodes) - 1
    keep = {g.root}
    for i in reversed(range(len(g.nodes))):
        if i in keep:
            keep.update(g.nodes[i].args)
    g.order = [i for i in sorted(keep) if g.nodes[i].args]
    if not 2 <= len(g.order) <= 30:
        return None
    g.smooth = all(g.nodes[i].smooth for i in g.order)
    inputs = [n for n in g.nodes if not n.args and not n.constant]
    constants = [n for i, n in enumerate(g.nodes) if n.constant and i in keep]
    g.inputs, g.matrices = len(inputs), [n.value for n in inputs + constants]
    for k, n in enumerate(inputs + constants):
        n.matrix, n.text = k, 'm[%d]' % k
    return g


def complete(g, number):
    """Adds weights and directions."""
    rng, y = g.rng, g.v(g.root)

    def add(shape, kind):
        g.matrices.append(random_values(rng, shape, kind == 'c'))
        return len(g.matrices) - 1
    g.weights = add(y.shape, y.dtype.kind)
    shape = y.shape
    if g.chance(0.3): # a g that broadcasts to y
        shape = tuple(1 if g.chance(0.3) else k for k in shape)[g.integer(0, len(shape)):]
    g.factor = add(shape, y.dtype.kind) if number % 3 == 0 else -1
    g.of = number % g.inputs
    g.direction = add(g.matrices[g.of].shape, g.matrices[g.of].dtype.kind) if g.smooth and number % 3 else -1


# ---- with JAX ----


def jax_results(g, kind):
    real, cplx = (np.float32, np.complex64) if kind == 'f32' else (np.float64, np.complex128)
    typed = lambda v: v.astype(v.dtype if v.dtype.kind == 'i' else cplx if v.dtype.kind == 'c' else real)
    matrices = [typed(m) for m in g.matrices]
    leaves = [(i, n.matrix) for i, n in enumerate(g.nodes) if not n.args and n.text]

    def result(xs, constants):
        values = {i: (xs + constants)[k] for i, k in leaves}
        for i in g.order:
            values[i] = g.nodes[i].f(*[values[a] for a in g.nodes[i].args])
        return values[g.root]

    def value(xs, constants):
        return jnp.sum(jnp.real(result(xs, constants) * constants[g.weights - g.inputs]))

    def slope(xs, constants):
        return jnp.sum(jnp.real(jax.grad(value)(xs, constants)[g.of] * constants[g.direction - g.inputs]))

    def everything(xs, constants):
        made, gradients = jax.value_and_grad(value)(xs, constants)
        all = {'value': [made], 'gradient': gradients}
        if g.factor >= 0:
            y, back = jax.vjp(lambda x: result(x, constants), xs)
            all['vjp'] = back(jnp.broadcast_to(constants[g.factor - g.inputs], y.shape).astype(y.dtype))[0]
        if g.direction >= 0:
            all['second'] = jax.grad(slope)(xs, constants)
        return all

    all = jax.jit(everything)(matrices[:g.inputs], matrices[g.inputs:])
    return {k: [np.asarray(v) for v in all[k]] for k in KINDS if k in all} # in the order of the C program


def norm(v):
    return float(np.linalg.norm(np.ravel(v)))


def errors(got, want):
    """The largest error of each kind of result."""
    all, slope = {}, max(norm(w) for w in want['gradient'])
    for kind, list in want.items():
        largest = max(norm(w) for w in list)
        floor = {'value': 1, 'second': max(largest, slope) / 100}.get(kind, max(largest / 100, 1e-3))
        all[kind] = max(norm(a.astype(w.dtype) - w) / max(norm(w), floor) for a, w in zip(got[kind], list))
    return all


def attempt(seed_and_number):
    """Returns a formula, without its Python functions, and JAX's results; or why it is discarded."""
    g = random_formula(np.random.default_rng(seed_and_number))
    if not g:
        return 'too few or too many operators', None
    complete(g, seed_and_number[1])
    try:
        want, noisy = jax_results(g, 'f64'), jax_results(g, 'f32')
    except (TypeError, ValueError, RuntimeError) as e: # also errors of XLA, which has some in transforms
        return 'JAX: %s' % str(e)[:100], None
    values = [v for list in want.values() for v in list]
    if not all(np.isfinite(v).all() for v in values):
        return 'not finite', None
    if max(np.abs(v).max() for v in values) > HUGE:
        return 'huge', None
    if max(np.abs(v).max() for v in want['gradient']) < 1e-3:
        return 'gradient 0', None
    g.noise = errors(noisy, want)
    if not max(g.noise.values()) <= F32_NOISE:
        return 'badly conditioned', None
    for n in g.nodes:
        n.f = n.value = None
    g.id = seed_and_number[1]
    return g, want


class Worker:
    """A process that evaluates formulas. This process itself does not compute with JAX: it could not fork then."""

    def __init__(self):
        self.pipe, end = multiprocessing.Pipe()
        self.uses, self.number = 0, None
        self.process = multiprocessing.get_context('fork').Process(target=self.serve, args=(end,), daemon=True)
        self.process.start()
        end.close()

    @staticmethod
    def serve(pipe):
        while True:
            pipe.send(attempt(pipe.recv()))

    def start(self, seed, number):
        self.uses, self.number = self.uses + 1, number
        self.pipe.send([seed, number])

    def result(self):
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self.uses = USES
            return 'XLA ended the process', None

    def end(self):
        self.process.terminate()
        self.process.join()


USES = 100 # of a process, which needs more memory for each formula


def formulas_of(count, seed, discarded):
    """Finds `count` formulas with all CPUs, in the order of their numbers."""
    formulas, wants, made, numbers, first = [], [], {}, itertools.count(), 0
    workers = [Worker() for _ in range(os.cpu_count() or 1)]
    for w in workers:
        w.start(seed, next(numbers))
    while len(formulas) < count:
        ready = multiprocessing.connection.wait([w.pipe for w in workers])
        for k, w in enumerate(workers):
            if w.pipe not in ready:
                continue
            made[w.number] = w.result()
            if w.uses == USES:
                w.end()
                workers[k] = Worker()
            workers[k].start(seed, next(numbers))
        while first in made and len(formulas) < count:
            g, want = made.pop(first)
            first += 1
            if want is None:
                discarded[g] += 1
            else:
                formulas.append(g)
                wants.append(want)
    for w in workers:
        w.end()
    return formulas, wants


# ---- with Duet ----

MAIN = r'''
#include "formulas.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };
typedef struct header { int64_t inputs, count, weights, factor, direction, of; } header;
typedef struct data { int64_t kind, rank, size[8]; double *v; } data; /* kind 0 real, 1 complex, 2 indices */

static FILE *from, *to;

static void take(void *p, size_t n)
{
    if (fread(p, 1, n, from) != n) exit(3);
}

static data read_data(void)
{
    data d = { 0 };
    int64_t n = 1;
    take(&d.kind, 8), take(&d.rank, 8), take(d.size, 8 * (size_t)d.rank);
    for (int a = 0; a < d.rank; a++) n *= d.size[a];
    n *= d.kind == 1 ? 2 : 1;
    take(d.v = malloc(8 * (size_t)n), 8 * (size_t)n);
    return d;
}

static duet_matrix *matrix_of(const data *d, duet_dtype t)
{
    const duet_dtype wide[] = { DUET_F64, DUET_C128, DUET_I64 };
    const duet_dtype type[] = { t, t == DUET_F32 ? DUET_C64 : DUET_C128, DUET_I64 };
    duet_matrix *w = duet_from_array_shape(d->v, wide[d->kind], (int)d->rank, d->size);
    duet_matrix *m = duet_eval(duet_cast(w, type[d->kind]));
    duet_free(&w);
    return m;
}

/* A result: whether there is one, its type, shape and elements. */
static void report(int number, const char *type, duet_matrix *m)
{
    int64_t ok = m != NULL, rank = m ? duet_rank(m) : 0, kind = m ? duet_type(m) : 0;
    if (!m) fprintf(stderr, "formula %d, %s: %s\n", number, type, duet_error());
    fwrite(&ok, 8, 1, to), fwrite(&kind, 8, 1, to), fwrite(&rank, 8, 1, to);
    for (int a = 0; a < rank; a++) fwrite(&(int64_t){ duet_size(m, a) }, 8, 1, to);
    if (m) {
        duet_matrix *w = duet_eval(duet_cast(m, DUET_C128));
        if (!w) fprintf(stderr, "formula %d, %s: %s\n", number, type, duet_error()), exit(4);
        fwrite(duet_read(w), 16, (size_t)duet_count(w), to);
        duet_free(&w, &m);
    }
    fflush(to);
}

static duet_expr real_of(duet_expr e)
{
    const duet_dtype t = duet_expr_type(e);
    return t == DUET_C64 || t == DUET_C128 ? duet_real(e) : e;
}
static duet_expr weighted(duet_expr y, duet_matrix *w) { return duet_sum(real_of(duet_mul(y, w))); }

typedef struct trial { const header *h; duet_matrix **m; formula *of; duet_dtype t; } trial;

/* Result number k of a formula y; `next` is 0 behind the last one. */
static duet_expr result(const trial *t, duet_expr y, int k, int *next)
{
    const header *h = t->h;
    const int n = (int)h->inputs;
    *next = 1;
    if (k == 0) return weighted(y, t->m[h->weights]);
    if (k <= n) return duet_grad(weighted(y, t->m[h->weights]), t->m[k - 1]);
    k -= n + 1;
    if (h->factor >= 0) {
        if (k < n) return duet_vjp(y, t->m[k], t->m[h->factor]);
        k -= n;
    }
    if (h->direction >= 0 && k < n) {
        const duet_expr g = duet_grad(weighted(y, t->m[h->weights]), t->m[h->of]);
        return duet_grad(weighted(g, t->m[h->direction]), t->m[k]);
    }
    *next = 0;
    return y;
}

static void one_by_one(const trial *t, int number, const char *type)
{
    for (int k = 0, next = 1; next; k++) {
        const duet_expr e = result(t, t->of(t->m, t->t), k, &next);
        if (next) report(number, type, duet_eval(e));
        else if (duet_drop(e)) fprintf(stderr, "drop: %s\n", duet_error());
    }
}

static void together(const trial *t, int number, const char *type)
{
    duet_assignment list[MOST];
    int count = 0;
    const duet_expr y = t->of(t->m, t->t);
    for (int next = 1; next; count++) {
        const duet_expr e = result(t, y, count, &next);
        if (!next) break;
        int64_t size[8];
        const int rank = duet_expr_rank(e);
        for (int a = 0; a < rank; a++) size[a] = duet_expr_size(e, a);
        duet_matrix *m = rank < 0 ? NULL : duet_new_shape(duet_expr_type(e), rank, size);
        list[count] = (duet_assignment){ m, e };
    }
    const duet_status s = duet_set_all_at(list, count, NULL);
    for (int k = 0; k < count; k++) {
        if (s != DUET_OK) duet_free((duet_matrix **)&list[k].to);
        report(number, type, s == DUET_OK ? list[k].to : NULL);
    }
}

int main(int argc, char **argv)
{
    from = fopen(argv[1], "rb"), to = fopen(argv[2], "ab");
    const int first = atoi(argv[3]);
    for (int i = 0; i < formula_count; i++) {
        header h;
        data d[MOST];
        take(&h, sizeof h);
        for (int k = 0; k < h.count; k++) d[k] = read_data();
        for (int f = 0; f < 2 && i >= first; f++) {
            duet_matrix *m[MOST];
            const trial t = { &h, m, formulas[i], f ? DUET_F64 : DUET_F32 };
            for (int k = 0; k < h.count; k++) m[k] = matrix_of(&d[k], t.t);
            (i % 2 ? together : one_by_one)(&t, i, f ? "f64" : "f32");
            for (int k = 0; k < h.count; k++) duet_free(&m[k]);
        }
        for (int k = 0; k < h.count; k++) free(d[k].v);
    }
    (void)argc;
    return 0;
}
'''


def c_text(g, number):
    name = {i: 'e%d' % i for i in g.order}
    name.update({i: n.text for i, n in enumerate(g.nodes) if not n.args})
    lines = ['duet_expr formula_%d(duet_matrix **m, duet_dtype t)' % number, '{', '    (void)t;']
    for i in g.order:
        lines.append('    const duet_expr e%d = %s;' % (i, format_text(g.nodes[i], name)))
    return '\n'.join(lines + ['    return e%d;' % g.root, '}', ''])


def format_text(n, name):
    text = n.text
    for k, a in enumerate(n.args):
        text = text.replace('{%d}' % k, name[a])
    return text


def data_of(g):
    out = [struct.pack('<6q', g.inputs, len(g.matrices), g.weights, g.factor, g.direction, g.of)]
    for m in g.matrices:
        m = np.asarray(m, order='C')
        out.append(struct.pack('<2q', {'f': 0, 'c': 1, 'i': 2}[m.dtype.kind], np.ndim(m)))
        out.append(struct.pack('<%dq' % m.ndim, *m.shape) if m.ndim else b'')
        out.append(m.tobytes())
    return b''.join(out)


def write_program(folder, formulas):
    size = 25
    with open(os.path.join(folder, 'data.bin'), 'wb') as f:
        for g in formulas:
            f.write(data_of(g))
    files = {'main.c': MAIN}
    for first in range(0, len(formulas), size):
        part = range(first, min(first + size, len(formulas)))
        files['part_%d.c' % first] = '#include "formulas.h"\n' + '\n'.join(c_text(formulas[i], i) for i in part)
    files['formulas.h'] = '#include <duet/duet.h>\ntypedef duet_expr formula(duet_matrix **, duet_dtype);\n' \
        'enum { formula_count = %d };\nextern formula *const formulas[];\n' % len(formulas) + \
        ''.join('formula formula_%d;\n' % i for i in range(len(formulas)))
    files['list.c'] = '#include "formulas.h"\nformula *const formulas[] = { %s };\n' \
        % ', '.join('formula_%d' % i for i in range(len(formulas)))
    for name, text in files.items():
        with open(os.path.join(folder, name), 'w') as f:
            f.write(text)
    return [n for n in files if n.endswith('.c')]


def compile_program(folder, sources, build):
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    build = os.path.abspath(build)
    cc = os.environ.get('CC', 'cc').split()
    flags = ['-std=gnu11', '-O0', '-I', os.path.join(top, 'include'), '-I', os.path.join(build, 'include')]
    running = []
    for s in sources:
        if len(running) >= (os.cpu_count() or 1):
            if running.pop(0).wait():
                sys.exit('the C program does not compile')
        running.append(subprocess.Popen(cc + flags + ['-c', s, '-o', s + '.o'], cwd=folder))
    if any([p.wait() for p in running]):
        sys.exit('the C program does not compile')
    subprocess.run(cc + [s + '.o' for s in sources] + ['-L', build, '-Wl,-rpath,' + build, '-lduet', '-o', 'gradients'],
                   cwd=folder, check=True)


def read_results(f, g, want):
    """The results of one formula in one type; None at the end of the file."""
    all = {}
    for kind, list in want.items():
        for _ in list:
            head = f.read(24)
            if len(head) < 24:
                return None
            ok, type, rank = struct.unpack('<3q', head)
            shape = struct.unpack('<%dq' % rank, f.read(8 * rank))
            n = int(np.prod(shape)) if ok else 0
            v = np.frombuffer(f.read(16 * n), np.complex128).reshape(shape) if ok else None
            all.setdefault(kind, []).append((type, v))
    return all


def results_of(folder, formulas, wants):
    """Duet's results of each formula: {type: results}, or a text if the program crashed in it."""
    out, all = os.path.join(folder, 'out.bin'), []
    env = dict(os.environ, DUET_CALIBRATE=os.environ.get('DUET_CALIBRATE', '0'))
    texts = ''
    while len(all) < len(formulas):
        if os.path.exists(out):
            os.remove(out)
        p = subprocess.run(['./gradients', 'data.bin', 'out.bin', str(len(all))], cwd=folder, env=env,
                           stderr=subprocess.PIPE, text=True)
        texts += p.stderr
        with open(out, 'rb') as f:
            while len(all) < len(formulas):
                i = len(all)
                made = {t: read_results(f, formulas[i], wants[i]) for t in LIMIT}
                if None in made.values():
                    break
                all.append(made)
        if len(all) < len(formulas):
            all.append('the program ended with status %d' % p.returncode)
    return all, texts


# ---- comparison ----


def compare(got, want, kind, types):
    """The errors of each kind of result, or a text."""
    plain = {}
    for what, list in got.items():
        for (type, v), w in zip(list, want[what]):
            if v is None:
                return '%s: no result' % what
            if v.shape != w.shape:
                return '%s: its shape is %s, JAX has %s' % (what, v.shape, w.shape)
            if type != types[kind, w.dtype.kind]:
                return '%s: its type is number %d' % (what, type)
            if not np.isfinite(v).all():
                return '%s: not finite' % what
        plain[what] = [v if w.dtype.kind == 'c' else v.real for (_, v), w in zip(list, want[what])]
    return errors(plain, want)


def dtype_numbers():
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    text = open(os.path.join(top, 'include', 'duet', 'dtype.def')).read()
    rows = re.findall(r'^DUET_(?:DTYPE|INTEGER|HALF|NARROW|COMPLEX)\((\w+)', text, re.M)
    return {(k, c): rows.index(n) for k, c, n in (('f32', 'f', 'F32'), ('f32', 'c', 'C64'), ('f64', 'f', 'F64'),
                                                  ('f64', 'c', 'C128'))}


def main():
    build = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    discarded = collections.Counter()
    formulas, wants = formulas_of(count, seed, discarded)
    folder = os.environ.get('DUET_KEEP') or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    try:
        compile_program(folder, write_program(folder, formulas), build)
        results, texts = results_of(folder, formulas, wants)
    finally:
        if not os.environ.get('DUET_KEEP'):
            shutil.rmtree(folder)
    types, point, failures = dtype_numbers(), 0, 0
    for kind, limit in LIMIT.items():
        worst, bad = collections.defaultdict(lambda: (0, -1)), []
        number = collections.Counter()
        for i, g in enumerate(formulas):
            e = results[i] if isinstance(results[i], str) else compare(results[i][kind], wants[i], kind, types)
            if isinstance(e, str):
                bad.append((i, e))
                continue
            for what, v in e.items():
                number[what] += len(wants[i][what])
                worst[what] = max(worst[what], (v, i))
                if v > limit:
                    bad.append((i, '%s: error %.3g, %.3g with JAX in f32' % (what, v, g.noise[what])))
        point += 1
        failures += bool(bad)
        print('%sok %d - %d formulas in %s agree with JAX' % ('not ' if bad else '', point, count, kind))
        for what, (v, i) in worst.items():
            print('# %s, %s: %d compared, largest error %.3g (formula %d)' % (kind, what, number[what], v, i))
        for i, text in bad[:40]:
            print('# formula %d (%d of seed %d), %s' % (i, formulas[i].id, seed, text))
            print('#     ' + c_text(formulas[i], i).replace('\n', '\n#     '))
    for line in texts.splitlines()[:40]:
        print('#', line)
    print('1..%d' % point)
    print('# discarded: ' + ', '.join('%d %s' % (v, k) for k, v in discarded.most_common()))
    sizes = [len(g.order) for g in formulas]
    print('# operators of a formula: %d to %d, %.1f on average' % (min(sizes), max(sizes), np.mean(sizes)))
    seen = collections.Counter(g.nodes[i].name for g in formulas for i in g.order)
    print('# operators: ' + ', '.join('%s %d' % k for k in seen.most_common()))
    sys.exit(failures > 0)


main()
