"""element_wise.py - operators that work element by element."""
import operator as operators
import numpy as np
import jax
import jax.numpy as jnp
import jax.scipy as jsp
from jax import lax
from .formulas import GAP, Reject, map1, operator, to_complex


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
