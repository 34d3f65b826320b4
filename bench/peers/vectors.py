"""vectors.py - the tests of duet-vectors for peers.py, with the same input data (vector_tests.c:
shift and scale).

Each formula is written once, with the functions of an object x: a peer, or NumPy in double."""

import math

import common
import numpy as np


def f32(x):
    """Rounds a number to f32."""
    return float(np.float32(x))


def add(x, a, b, c):
    return b + c


def axpby(x, a, b, c):
    return f32(0.12) * b + f32(7.54) * c


def wiemann3(x, a, b, c):
    return (b - (a + f32(3.75) * c) + c - f32(0.24) * b) / f32(27.51) + a - f32(0.25) * b


def normalise(x, a):
    return a / x.norm(a)


def program(length):
    def run(x, *inputs):
        a = inputs[0]
        for i in range(length):
            b = inputs[i % 3]
            a = (a * b, a + b, f32(0.5) * b + a, a * f32(0.9))[i % 4]
        return a

    return run


def sigmoid(x, a):
    return x.sigmoid(a)


def black_scholes(x, s, k, t):
    """Returns the prices of a call and a put. The interest rate is 0.02, the volatility 0.3."""
    deviation = f32(0.3) * x.sqrt(t)
    d1 = (x.log(s / k) + f32(0.065) * t) / deviation
    d2 = d1 - deviation
    debt = k * x.exp(f32(-0.02) * t)
    return s * x.cdf(d1) - debt * x.cdf(d2), debt * x.cdf(-d2) - s * x.cdf(-d1)


AROUND, OPTIONS, WIDE = (
    [(0.6, 0.5)] * 3,
    [(110, 90), (110, 90), (1.1, 0.9)],
    [(0, 9)],
)  # shift and scale of each input

# name: data, formula, number of roundings that may accumulate in a result (None: the number of
# elements)
TESTS = {
    "add": (AROUND, add, 1),
    "axpby": (AROUND, axpby, 2),
    "wiemann3": (AROUND, wiemann3, 8),
    "normalise": (AROUND[:1], normalise, None),
    **{f"ops{n}": (AROUND, program(n), n) for n in (2, 8, 16, 24, 28, 32, 40, 64)},
    "sigmoid": (WIDE, sigmoid, 4),
    "black_scholes": (OPTIONS, black_scholes, 100),
    "sum": (AROUND[:1], lambda x, a: x.sum(a), None),
    "norm": (AROUND[:1], lambda x, a: x.norm(a), None),
    "argmax": (AROUND[:1], lambda x, a: x.argmax(a), 0),
    "softmax": (WIDE, lambda x, a: x.softmax(a), 30),
}
ONE_NUMBER = ("sum", "norm", "argmax")
WIDTH = 1000  # elements of a row of softmax

_cache = {}  # vectors of one length, because most tests have the same data


def vector(stream, count, shift, scale):
    for key in [k for k in _cache if k[1] != count]:
        del _cache[key]
    key = stream, count, shift, scale
    if key not in _cache:
        _cache[key] = np.float32(scale) * common.noise(stream, count) + np.float32(shift)
    return _cache[key]


def inputs(test, n, seed):
    count = n * WIDTH if test == "softmax" else n
    made = [vector(seed * 64 + k, count, *data) for k, data in enumerate(TESTS[test][0])]
    return [a.reshape(n, WIDTH) for a in made] if test == "softmax" else made


def bound(test, n):
    """Returns the allowed relative error: that of vectors.c, except for sums, whose order peers
    choose themselves."""
    terms = TESTS[test][2]
    return 2.0**-24 * (8 + 4 * math.sqrt(n if terms is None else terms)) if terms != 0 else 0.0


class Double:
    """The functions of the formulas in NumPy, for the reference in double."""

    exp, log, sqrt, sum, norm, argmax = np.exp, np.log, np.sqrt, np.sum, np.linalg.norm, np.argmax

    @staticmethod
    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    @staticmethod
    def cdf(x):
        return np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in np.ravel(x)])


def want(test, arrays):
    """Selects elements (or rows) and returns them with their first result in double."""
    rows = arrays[0].shape[0]
    pick = np.unique(np.linspace(0, rows - 1, min(rows, 32 if test == "softmax" else 20000)).astype(np.int64))
    if test in ONE_NUMBER:
        values = arrays[0] if test == "argmax" else arrays[0].astype(np.float64)
        return slice(None), np.asarray(TESTS[test][1](Double, values), np.float64).reshape(1)
    part = [a[pick].astype(np.float64) for a in arrays]
    if test == "softmax":
        return pick, common.softmax(part[0])
    if test == "normalise":
        return pick, part[0] / np.linalg.norm(arrays[0].astype(np.float64))
    found = TESTS[test][1](Double, *part)
    return pick, found[0] if isinstance(found, tuple) else found


def summary(test, y):
    """Returns norm and probe, as duet-vectors reports them; for one number, the number."""
    y = np.ascontiguousarray(y, np.float32 if test != "argmax" else None).ravel()
    if test in ONE_NUMBER:
        return float(y[0]), 0.0
    norm, probe, r = 0.0, 0.0, vector(0, y.size, 0, 1)
    for i in range(0, y.size, 1 << 22):
        part = y[i : i + (1 << 22)].astype(np.float64)
        norm += np.dot(part, part)
        probe += np.dot(part, r[i : i + (1 << 22)])
    return math.sqrt(norm), float(probe)
