"""Operators that the library has in several forms: along axes, with losses by class, and sums of products."""

import ctypes

from . import _dtypes as dt
from . import _graph as g
from ._api import take, where
from ._array import apply, axes_of, axis_of, convert, node_of, of_one_complex_type
from ._errors import TypeError, ValueError
from ._library import lib
from ._options import options_of, word
from ._reduce import sum as _sum


def softmax(x, axis=-1):
    """exp(x) / sum(exp(x)) along an axis, without overflow."""
    return _along(lib.softmax, lib.softmax_axis, x, axis)


def log_softmax(x, axis=-1):
    """The logarithm of softmax along an axis."""
    return _along(lib.log_softmax, lib.log_softmax_axis, x, axis)


def _along(op, op_axis, x, axis):
    rank = node_of(x).ndim
    if axis == -1 or axis_of(axis, rank) == rank - 1:
        return apply(op, x)
    return apply(op_axis, x, attrs=(axis_of(axis, rank),))


def one_hot(indices, n, type, axis=-1):
    """For each index a vector of n elements with a 1 at the index, else 0. The vectors are along `axis` of
    the result. An index that is out of bounds is an error."""
    node_of(indices, 'indices')
    code = dt.check_dtype(type, 'type').code
    if axis == -1:
        return apply(lib.one_hot, indices, attrs=(n, code))
    return apply(lib.one_hot_axis, indices, attrs=(n, code, axis_of(axis, indices.ndim + 1)))


def layer_norm(x, scale, shift, r, axis=-1):
    """(x - mean) / sqrt(variance + r) * scale + shift, with the mean and the variance along an axis, or along
    several axes."""
    return _normalized(lib.layer_norm, lib.layer_norm_axes, (x, scale, shift), r, axis)


def rms_norm(x, scale, r, axis=-1):
    """x / sqrt(mean(x * x) + r) * scale, with the mean along an axis, or along several axes."""
    return _normalized(lib.rms_norm, lib.rms_norm_axes, (x, scale), r, axis)


def _normalized(op, op_axes, operands, r, axis):
    rank = node_of(operands[0]).ndim
    r = float(r)
    if axis == -1:
        return apply(op, *operands, attrs=(r,))
    axes = axes_of(axis, rank)
    return apply(op_axes, *operands, attrs=(r, len(axes), g.ints(axes)))


# ---- losses by class index -----------------------------------------------------------------------


def nll_loss(x, target, *, weights=None, reduction='mean', ignored=None):
    """The negative log-likelihood: -x at the class of each target. The classes are along axis 1 of x, or
    along axis 0 of a vector. `weights` has a factor for each class. `reduction` is 'mean' (the sum of the
    losses, divided by the sum of the weights of their classes), 'sum' or 'none'. Targets equal to `ignored`
    do not count."""
    return _class_loss(lib.nll_loss, x, target, weights, reduction, ignored)


def cross_entropy_loss(x, target, *, weights=None, reduction='mean', ignored=None):
    """nll_loss of the log_softmax of x along the classes."""
    return _class_loss(lib.cross_entropy_loss, x, target, weights, reduction, ignored)


def _class_loss(op, x, target, weights, reduction, ignored):
    node_of(x), node_of(target, 'target')
    members = {} if ignored is None else {'ignores': 1, 'ignored': ignored}
    how = word('reduction', reduction)
    if weights is None:
        return apply(op, x, target, attrs=(options_of('duet_class_loss', reduction=how, **members),))
    classes = x.shape[1 if x.ndim > 1 else 0]
    if node_of(weights).shape != (classes,):
        raise ValueError(
            f'weights must have the shape ({classes},), one for each class, and not {weights.shape}'
        )
    # The library takes weights as a matrix. Here they may be a formula, which may have a gradient.
    none = word('reduction', 'none')
    each = apply(op, x, target, attrs=(options_of('duet_class_loss', reduction=none, **members),))
    index = target
    if ignored is not None:
        index = convert(target, dt.int64)
        is_ignored = index == ignored
        index = where(is_ignored, 0, index)
    weight = take(weights, index)
    each = each * weight
    if ignored is not None:
        each, weight = where(is_ignored, 0.0, each), where(is_ignored, 0.0, weight)
    if how == none:
        return each
    return _sum(each) if how == word('reduction', 'sum') else _sum(each) / _sum(weight)


# ---- sums of products ----------------------------------------------------------------------------


def einsum(*operands):
    """Sums of products along named axes, by NumPy's rules: einsum('ij,jk->ik', x, y). The text may also be
    the last argument."""
    letters = [x for x in operands[:1] + operands[-1:] if isinstance(x, str)]
    arrays = [x for x in operands if not isinstance(x, str)]
    if len(letters) != 1 or not arrays or len(arrays) + 1 != len(operands):
        raise TypeError("einsum needs one text, such as 'ij,jk->ik', and at least one array")
    for x in arrays:
        node_of(x, 'an operand of einsum')
    op = lib.einsum if len(arrays) == 2 else _einsum_of(len(arrays))
    return apply(op, *of_one_complex_type(*arrays), attrs=(letters[0].encode(),))


def global_norm(*arrays):
    """The root of the sum of the squares of all elements of all arrays, for clip_norm."""
    for x in arrays:
        node_of(x, 'an operand of global_norm')
    return apply(_norm_of(len(arrays)), *arrays)


_norms = {}


def _norm_of(count):
    op = _norms.get(count)
    if op is None:

        def op(*args, _type=ctypes.c_uint64 * count):
            return lib.global_norm(count, _type(*args))

        _norms[count] = op
    return op


_sums = {}


def _einsum_of(count):
    op = _sums.get(count)
    if op is None:

        def op(*args, _type=ctypes.c_uint64 * count):
            return lib.einsum_list(count, _type(*args[:-1]), args[-1])

        _sums[count] = op
    return op
