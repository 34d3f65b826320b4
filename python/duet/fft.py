"""Fourier transforms: the extension fft of the array API."""

import builtins
import math

from . import _dtypes as dt
from ._array import apply, axes_of, axis_of, cast, node_of
from ._errors import TypeError, ValueError
from ._library import lib
from ._options import options_of


def _transform(op, x, axes, sizes, norm, kind):
    """`kind` is c for transforms of complex numbers, r for real operands, i for real results."""
    node_of(x)
    if norm not in ('backward', 'ortho', 'forward'):
        raise ValueError(f"norm must be 'backward', 'ortho' or 'forward', and not {norm!r}")
    if kind == 'r' and x.dtype.kind != 'f':
        raise TypeError(f'a real transform needs real floating-point elements, and not {x.dtype}')
    if x.dtype.kind not in 'fc':
        raise TypeError(f'a Fourier transform needs floating-point elements, and not {x.dtype}')
    if kind != 'r' and x.dtype.kind == 'f':
        x = cast(x, dt.complex_of[x.dtype])
    for n in sizes:
        if n < 1:
            raise ValueError(f'the length of a transform must be at least 1, and is {n}')
    made = apply(op, x, attrs=(options_of('duet_fourier', axes=len(axes), axis=axes, n=sizes),))
    inverse = op in (lib.ifftn, lib.irfftn)
    if norm == ('forward' if inverse else 'backward') and not inverse:
        return made
    total = math.prod(sizes)
    if norm == 'backward':
        return made
    if norm == 'ortho':
        return made * (math.sqrt(total) if inverse else 1 / math.sqrt(total))
    return made * (builtins.float(total) if inverse else 1 / total)


def _one(op, x, n, axis, norm, kind):
    axis = axis_of(axis, node_of(x).ndim)
    if n is None:
        n = x.shape[axis]
        if kind == 'i':
            n = 2 * (n - 1)
    return _transform(op, x, (axis,), (n,), norm, kind)


def _several(op, x, s, axes, norm, kind):
    node_of(x)
    if axes is None:
        axes = tuple(range(x.ndim)) if s is None else tuple(range(x.ndim - len(s), x.ndim))
    axes = axes_of(tuple(axes), x.ndim)
    if s is None:
        s = [x.shape[k] for k in axes]
        if kind == 'i' and axes:
            s[-1] = 2 * (s[-1] - 1)
    elif len(s) != len(axes):
        raise ValueError('s and axes must have the same number of elements')
    s = tuple([x.shape[k] if n == -1 else n for n, k in zip(s, axes)])
    if not axes:
        return x
    return _transform(op, x, axes, s, norm, kind)


def fft(x, /, *, n=None, axis=-1, norm='backward'):
    """The Fourier transform along an axis."""
    return _one(lib.fftn, x, n, axis, norm, 'c')


def ifft(x, /, *, n=None, axis=-1, norm='backward'):
    """The inverse of fft."""
    return _one(lib.ifftn, x, n, axis, norm, 'c')


def fftn(x, /, *, s=None, axes=None, norm='backward'):
    """The Fourier transform along several axes."""
    return _several(lib.fftn, x, s, axes, norm, 'c')


def ifftn(x, /, *, s=None, axes=None, norm='backward'):
    """The inverse of fftn."""
    return _several(lib.ifftn, x, s, axes, norm, 'c')


def rfft(x, /, *, n=None, axis=-1, norm='backward'):
    """The Fourier transform of real numbers along an axis."""
    return _one(lib.rfftn, x, n, axis, norm, 'r')


def irfft(x, /, *, n=None, axis=-1, norm='backward'):
    """The inverse of rfft."""
    return _one(lib.irfftn, x, n, axis, norm, 'i')


def rfftn(x, /, *, s=None, axes=None, norm='backward'):
    """The Fourier transform of real numbers along several axes."""
    return _several(lib.rfftn, x, s, axes, norm, 'r')


def irfftn(x, /, *, s=None, axes=None, norm='backward'):
    """The inverse of rfftn."""
    return _several(lib.irfftn, x, s, axes, norm, 'i')


_OPPOSITE = {'backward': 'forward', 'forward': 'backward', 'ortho': 'ortho'}


def hfft(x, /, *, n=None, axis=-1, norm='backward'):
    """The Fourier transform of a signal that is symmetric: its second half is the conjugate of the first."""
    node_of(x)
    return irfft(apply(lib.conj, x), n=n, axis=axis, norm=_OPPOSITE.get(norm, norm))


def ihfft(x, /, *, n=None, axis=-1, norm='backward'):
    """The inverse of hfft."""
    return apply(lib.conj, rfft(x, n=n, axis=axis, norm=_OPPOSITE.get(norm, norm)))


def fftfreq(n, /, *, d=1.0, dtype=None, device=None):
    """The frequencies of the elements of fft."""
    from ._creation import concat_ranges

    dtype = _real_type(dtype)
    k = concat_ranges((0, (n - 1) // 2 + 1), (-(n // 2), 0), device)
    return cast(k * (1.0 / (n * d)), dtype)


def rfftfreq(n, /, *, d=1.0, dtype=None, device=None):
    """The frequencies of the elements of rfft."""
    from ._creation import iota

    dtype = _real_type(dtype)
    return cast(iota(n // 2 + 1, dt.float64, device) * (1.0 / (n * d)), dtype)


def _real_type(dtype):
    dtype = dt.check_dtype(dtype or dt.float64)
    if dtype.kind != 'f':
        raise ValueError(f'frequencies need a real floating-point type, and not {dtype}')
    return dtype


def fftshift(x, /, *, axes=None):
    """x with the halves of axes swapped, so that frequency 0 is in the middle."""
    return _shift(x, axes, 1)


def ifftshift(x, /, *, axes=None):
    """The inverse of fftshift."""
    return _shift(x, axes, 0)


def _shift(x, axes, forward):
    from ._manipulation import roll

    axes = axes_of(axes, node_of(x).ndim)
    return roll(x, tuple([x.shape[k] // 2 if forward else -(x.shape[k] // 2) for k in axes]), axis=axes)
