"""The element-wise functions of the array API."""

import math

from . import _complex
from . import _dtypes as dt
from ._array import Array, _scalars, apply, asarray, cast, function_of_one, node_of, quick
from ._errors import TypeError
from ._graph import make
from ._library import lib


def _doc(f, op, name):
    from ._table import FUNCTIONS

    f.__name__ = f.__qualname__ = name
    text = FUNCTIONS[op.__name__[5:]][4]
    f.__doc__ = text[0].upper() + text[1:]
    return f


def _unary(name, op):
    of_complex, metas = _complex.FUNCTIONS.get(name), {}

    def general(x, /):
        if of_complex and node_of(x).dtype.kind == 'c':
            return of_complex(x)
        return function_of_one(op, x, metas)

    call = quick(op, 1, general)

    def f(x, /):
        return call(x)

    return _doc(f if call is not general else general, op, name)


def _rounding(name, op):
    """floor and its like: integers are what they are."""

    def f(x, /):
        return x if node_of(x).dtype.kind in 'iu' else Array(make(op, (x._node,)))

    return _doc(f, op, name)


def operand(x, other):
    """An operand of a function of two operands: a node or a number. Two numbers become an array."""
    if x.__class__ is Array:
        return x._node
    if isinstance(x, _scalars):
        return x if other.__class__ is Array else asarray(x)._node
    raise TypeError(f'an operand must be an array of Duet or a number, and not {type(x).__name__}')


def _binary(name, op):
    def general(x1, x2, /):
        return Array(make(op, (operand(x1, x2), operand(x2, x1))))

    call = quick(op, 2, general)

    def f(x1, x2, /):
        return call(x1, x2)

    return _doc(f if call is not general else general, op, name)


for _name in (
    'abs acos acosh asin asinh atan atanh cos cosh exp expm1 log log10 log1p log2 signbit sin sinh sqrt '
    'tan tanh square reciprocal isnan real imag'
).split():
    globals()[_name] = _unary(_name, getattr(lib, _name))
for _name, _op in {
    'negative': lib.neg,
    'logical_not': lib.logical_not,
    'bitwise_invert': lib.bitwise_not,
}.items():
    globals()[_name] = _unary(_name, _op)
for _name in 'floor', 'ceil', 'trunc':
    globals()[_name] = _rounding(_name, getattr(lib, _name))
for _name, _op in {
    'add': lib.add,
    'subtract': lib.sub,
    'multiply': lib.mul,
    'divide': lib.div,
    'pow': lib.pow,
    'remainder': lib.remainder,
    'atan2': lib.atan2,
    'hypot': lib.hypot,
    'logaddexp': lib.logaddexp,
    'maximum': lib.maximum,
    'minimum': lib.minimum,
    'nextafter': lib.nextafter,
    'copysign': lib.copysign,
    'equal': lib.equal,
    'not_equal': lib.not_equal,
    'less': lib.less,
    'less_equal': lib.less_equal,
    'greater': lib.greater,
    'greater_equal': lib.greater_equal,
    'logical_and': lib.logical_and,
    'logical_or': lib.logical_or,
    'logical_xor': lib.logical_xor,
    'bitwise_and': lib.bitwise_and,
    'bitwise_or': lib.bitwise_or,
    'bitwise_xor': lib.bitwise_xor,
    'bitwise_left_shift': lib.shift_left,
    'bitwise_right_shift': lib.shift_right,
}.items():
    globals()[_name] = _binary(_name, _op)


def sign(x, /):
    """1 where x > 0, -1 where x < 0, 0 where x is a zero of either sign; of complex numbers x / abs(x)."""
    kind = node_of(x).dtype.kind
    if kind == 'c':
        return _complex.sign(x)
    return apply(lib.sign, x) + 0.0 if kind == 'f' else apply(lib.sign, x)


def floor_divide(x1, x2, /):
    """x1 / x2 rounded down. Of a finite number and an infinity it is a zero, as the array API demands."""
    made = Array(make(lib.floor_divide, (operand(x1, x2), operand(x2, x1))))
    if made.dtype.kind != 'f' or (isinstance(x2, _scalars) and math.isfinite(x2)):
        return made
    if isinstance(x2, _scalars):
        x2 = asarray(x2, dtype=x1.dtype)
    if isinstance(x1, _scalars):
        x1 = asarray(x1, dtype=x2.dtype)
    tiny = apply(lib.isinf, x2) & apply(lib.isfinite, x1)
    return apply(lib.where, tiny, apply(lib.div, x1, x2), made)


def positive(x, /):
    """x"""
    return +x


def conj(x, /):
    """The complex conjugate of x; a real x is unchanged."""
    return x if node_of(x).dtype.kind in 'iu' else apply(lib.conj, x)


def round(x, /):
    """x rounded to the nearest integer; halves go to the even one. Of complex numbers, both parts."""
    kind = node_of(x).dtype.kind
    if kind in 'iu':
        return x
    if kind == 'c':
        return apply(lib.complex, apply(lib.round, apply(lib.real, x)), apply(lib.round, apply(lib.imag, x)))
    return apply(lib.round, x)


def isfinite(x, /):
    """True where x is finite."""
    return x == x if node_of(x).dtype.kind in 'iub' else apply(lib.isfinite, x)


def isinf(x, /):
    """True where x is infinite."""
    return x != x if node_of(x).dtype.kind in 'iub' else apply(lib.isinf, x)


def clip(x, /, min=None, max=None):
    """x limited to the range from min to max. The result has the type of x."""
    dtype = node_of(x).dtype
    for name, limit, op in ('min', min, lib.maximum), ('max', max, lib.minimum):
        if limit is None:
            continue
        if limit.__class__ is Array:
            common = dt.promote(limit.dtype, dtype)
            x = apply(op, cast(x, common), cast(limit, common))
        elif isinstance(limit, _scalars):
            if dtype.kind in 'iu' and not dtype.low <= limit <= dtype.high:
                beyond = limit < dtype.low if name == 'min' else limit > dtype.high
                if beyond:
                    continue
                from ._creation import full

                limit = dtype.high if name == 'min' else dtype.low
                x = full(x.shape, limit, dtype=dtype, device=x.device)
                continue
            x = apply(op, x, limit)
        else:
            raise TypeError(
                f'{name} must be an array of Duet, a number or None, and not {type(limit).__name__}'
            )
    return cast(x, dtype)


def where(condition, x1, x2, /):
    """x1 where the condition is true, else x2."""
    c = node_of(condition, 'condition')
    if x1.__class__ is not Array and x2.__class__ is not Array:
        x1 = asarray(x1)
    return Array(make(lib.where, (c, operand(x1, x2), operand(x2, x1))))
