"""Arrays as text, as NumPy prints them."""

import ctypes
import math

from . import _dtypes as dt
from . import _graph as g

EDGE, THRESHOLD, WIDTH = 3, 1000, 75


def show(x):
    if x.ndim == 0:
        value = x.item()
        return _shortest(value, x.dtype) if x.dtype.kind == 'f' else str(value)
    return _body(x, '')


def represent(x):
    prefix = 'duet.asarray('
    extra = f', dtype={x.dtype}' if x.dtype.kind not in 'b' and x.dtype not in (dt.float64, dt.int64) else ''
    if x.device is not g.auto:
        extra += f", device='{x.device}'"
    if 0 in x.shape:
        return f'duet.zeros({x.shape}, dtype={x.dtype})'
    if x.ndim == 0:
        return f'{prefix}{show(x)}{extra})'
    return f'{prefix}{_body(x, " " * len(prefix), ", ")}{extra})'


def _body(x, indent, comma=' '):
    if 0 in x.shape:
        return '[]'
    short = x.size > THRESHOLD
    chosen = _edges(x) if short else x
    values = chosen.tolist()
    texts = _texts(values, x.dtype)
    width = max(map(len, _flat(texts)))
    return _lines(texts, x.shape, width, indent, comma, short)


def _edges(x):
    """The elements that are printed: those near the ends of each axis."""
    from ._api import concat

    for axis, n in enumerate(x.shape):
        if n > 2 * EDGE:
            at = (slice(None),) * axis
            x = concat([x[(*at, slice(0, EDGE))], x[(*at, slice(n - EDGE, n))]], axis=axis)
    return x


def _flat(x):
    if isinstance(x, list):
        for y in x:
            yield from _flat(y)
    else:
        yield x


def _map(x, f):
    return [_map(y, f) for y in x] if isinstance(x, list) else f(x)


def _texts(values, dtype):
    if dtype.kind in 'iub':
        return _map(values, str)
    if dtype.kind == 'c':
        part = dt.part_of[dtype]
        real, imag = (
            _format_of([z.real for z in _flat(values)], part),
            _format_of([z.imag for z in _flat(values)], part),
        )
        return _map(
            values,
            lambda z: (
                real(z.real)
                + ('-' if math.copysign(1, z.imag) < 0 else '+')
                + imag(abs(z.imag)).strip()
                + 'j'
            ),
        )
    form = _format_of(list(_flat(values)), dtype)
    return _map(values, form)


def _format_of(flat, dtype):
    """A function that formats all of these numbers in the same way."""
    finite = [abs(x) for x in flat if math.isfinite(x) and x]
    large = finite and (max(finite) >= 1e8 or min(finite) < 1e-4 or max(finite) / min(finite) > 1e3 * 1e5)
    if large:
        digits = min(8, max(len(_digits(x, dtype)[0]) for x in finite) - 1)
        point = '' if digits else '.'
        return lambda x: f'{x:.{digits}e}'.replace('e', point + 'e') if math.isfinite(x) else _special(x)
    decimals = min(8, max([_decimals(x, dtype) for x in finite], default=0))
    texts = [f'{x:.{decimals}f}'.rstrip('0') for x in finite]
    decimals = max([len(t.split('.')[1]) if '.' in t else 0 for t in texts], default=0)

    def form(x):
        if not math.isfinite(x):
            return _special(x)
        text = f'{x:.{decimals}f}'
        if decimals == 0:
            return text + '.'
        cut = text.rstrip('0')
        return cut + ' ' * (len(text) - len(cut))

    return form


def _special(x):
    return 'nan' if x != x else 'inf' if x > 0 else '-inf'


def _shortest(x, dtype):
    """The shortest text that reads back as the same number of this type."""
    if not math.isfinite(x):
        return _special(x)
    if dtype is dt.float64:
        return repr(x)
    for digits in range(1, 10):
        text = f'{x:.{digits}g}'
        if dtype in (dt.float16, dt.bfloat16):
            if abs(float(text) - x) <= abs(x) * (2**-12 if dtype is dt.float16 else 2**-9):
                break
        elif ctypes.c_float(float(text)).value == x:
            break
    return repr(float(text))


def _digits(x, dtype):
    mantissa, exponent = f'{float(_shortest(x, dtype)):.16e}'.split('e')
    text = repr(float(mantissa)).replace('.', '').rstrip('0')
    return text or '0', int(exponent)


def _decimals(x, dtype):
    digits, exponent = _digits(x, dtype)
    return max(len(digits) - 1 - exponent, 0)


def _lines(texts, shape, width, indent, comma, short):
    n = shape[0]
    cut = short and n > 2 * EDGE
    if len(shape) == 1:
        items = [t.rjust(width) for t in texts]
        if cut:
            items.insert(EDGE, '...')
        rows, line = [], ''
        for item in items:
            more = (comma if line else '') + item
            if line and len(indent) + len(line) + len(more) + 2 > WIDTH:
                rows.append(line + comma.rstrip())
                line = item
            else:
                line += more
        return '[' + ('\n' + indent + ' ').join([*rows, line]) + ']'
    parts = [_lines(t, shape[1:], width, indent + ' ', comma, short) for t in texts]
    if cut:
        parts.insert(EDGE, '...')
    gap = comma.rstrip() + '\n' * (len(shape) - 1) + indent + ' '
    return '[' + gap.join(parts) + ']'
