"""Functions of complex numbers with the special cases of annex G of the C standard, which the array API
demands. The library's functions are accurate; where a part is infinite or NaN, their results follow from
their formulas. Here such results are replaced, in the same pass."""

import math

from ._array import apply
from ._library import lib


def parts(z):
    return apply(lib.real, z), apply(lib.imag, z)


def join(a, b):
    return apply(lib.complex, a, b)


def _where(mask, a, b):
    return apply(lib.where, mask, a, b)


def _infinite(a):
    return apply(lib.isinf, a)


def _wild(a):
    """Where a is infinite or NaN."""
    return ~apply(lib.isfinite, a)


def _fix(w, *cases):
    """w, with both parts replaced where a mask is true; the first mask counts."""
    u, v = parts(w)
    for mask, real, imag in reversed(cases):
        u, v = _where(mask, real, u), _where(mask, imag, v)
    return join(u, v)


def _exponential(op, limit):
    def f(z):
        a, b = parts(z)
        up = a > 0
        return _fix(
            apply(op, z),
            (_infinite(a) & _wild(b), _where(up, a, limit), _where(up, a * math.nan, 0.0)),
            *((((a == 0.0) & (b == 0.0)), 0.0, b),) * (op is lib.expm1),
        )

    return f


exp, expm1 = _exponential(lib.exp, 0.0), _exponential(lib.expm1, -1.0)


def cosh(z):
    a, b = parts(z)
    return _fix(
        apply(lib.cosh, z),
        (_infinite(a) & _wild(b), apply(lib.abs, a), math.nan),
        ((a == 0.0) & _wild(b), math.nan, 0.0),
    )


def sinh(z):
    a, b = parts(z)
    return _fix(apply(lib.sinh, z), ((_infinite(a) | (a == 0.0)) & _wild(b), a, math.nan))


def tanh(z):
    a, b = parts(z)
    zero = apply(lib.copysign, 0.0, b)
    return _fix(
        apply(lib.tanh, z),
        (_infinite(a), apply(lib.sign, a), zero),
        ((a == 0.0) & _wild(b), a, math.nan),
        (apply(lib.isfinite, a) & _wild(b), math.nan, math.nan),
        (apply(lib.isnan, a) & (b == 0.0), a, b),
    )


def acos(z):
    a, b = parts(z)
    return _fix(
        apply(lib.acos, z),
        (
            _infinite(a) | _infinite(b),
            apply(lib.atan2, apply(lib.abs, b), a),
            apply(lib.copysign, math.inf, -b),
        ),
        ((a == 0.0) & apply(lib.isnan, b), math.pi / 2, math.nan),
    )


def acosh(z):
    u, v = parts(acos(z))
    return join(apply(lib.abs, v), _where(apply(lib.signbit, apply(lib.imag, z)), -u, u))


def asinh(z):
    a, b = parts(z)
    v, u = parts(apply(lib.asin, join(-b, a)))  # asinh(z) = -i asin(iz)
    return _fix(
        join(u, -v),
        (
            _infinite(a) | _infinite(b),
            apply(lib.copysign, math.inf, a),
            apply(lib.atan2, b, apply(lib.abs, a)),
        ),
        (apply(lib.isnan, a) & (b == 0.0), a, b),
    )


def asin(z):
    a, b = parts(z)
    v, u = parts(asinh(join(-b, a)))  # asin(z) = -i asinh(iz)
    return join(u, -v)


def atanh(z):
    a, b = parts(z)
    v, u = parts(apply(lib.atan, join(-b, a)))  # atanh(z) = -i atan(iz)
    half_pi = _where(apply(lib.isnan, b), b, apply(lib.copysign, math.pi / 2, b))
    return _fix(
        join(u, -v),
        (_infinite(a) | _infinite(b), apply(lib.copysign, 0.0, a), half_pi),
        ((a == 0.0) & apply(lib.isnan, b), a, b),
    )


def atan(z):
    a, b = parts(z)
    v, u = parts(atanh(join(-b, a)))  # atan(z) = -i atanh(iz)
    return join(u, -v)


def sin(z):
    a, b = parts(z)
    v, u = parts(sinh(join(-b, a)))  # sin(z) = -i sinh(iz)
    return join(u, -v)


def cos(z):
    a, b = parts(z)
    return cosh(join(-b, a))  # cos(z) = cosh(iz)


def tan(z):
    a, b = parts(z)
    v, u = parts(tanh(join(-b, a)))  # tan(z) = -i tanh(iz)
    return join(u, -v)


def sign(z):
    u, v = parts(apply(lib.sign, z))
    return join(u + 0.0, v + 0.0)


FUNCTIONS = {
    f: globals()[f]
    for f in 'exp expm1 cosh sinh tanh acos acosh asinh asin atanh atan sin cos tan sign'.split()
}
