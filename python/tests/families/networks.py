"""Cases of operators of networks: softmax, normalisations, losses by class."""

import numpy as np

import duet

from . import FLOATS, INTEGERS, REAL, case, eps, near, same, up

FAMILY = 'softmax, norms, losses'


def log_softmax_of(a, axis):
    a = a - a.max(axis=axis, keepdims=True, initial=-np.inf)
    return a - np.log(np.exp(a).sum(axis=axis, keepdims=True))


@case(FAMILY)
def softmax(d):
    dtype, shape = d.pick(FLOATS), d.shape(1, 4, 6)
    a, x = d.operand(shape, dtype)
    if d.chance(0.2):
        a = (a * 50).astype(dtype)
        x = d.given(a)
    axis, a = d.axis(len(shape)), up(a)
    want, most = log_softmax_of(a, axis), np.abs(a).max(initial=1)
    unit = 4 * (shape[axis] + 8) * eps(dtype)
    bound = unit * np.exp(want) * max(most, 1) + 2 * np.finfo(dtype).tiny
    near(duet.softmax(x, axis), np.exp(want), bound, dtype, 'softmax')
    near(duet.log_softmax(x, axis=axis), want, unit * (np.abs(want) + most), dtype, 'log_softmax')


@case(FAMILY)
def norms(d):
    """layer_norm and rms_norm along one axis or several."""
    dtype, shape = d.pick(FLOATS), d.shape(1, 4, 6, 0.03)
    a, x = d.operand(shape, dtype)
    axes = tuple(int(k) for k in d.rng.permutation(len(shape))[: d.int(1, len(shape))])
    axis = d.pick([-1, d.axis(len(shape)), axes])
    r = d.pick([1e-5, 0.1, 1.0])
    (s, scale), (t, shift) = (d.operand(d.smaller(shape), dtype) for _ in range(2))
    a, s, t = up(a), up(s), up(t)
    mean, var = a.mean(axis, keepdims=True), a.var(axis, keepdims=True)
    n = max(a.size, 1) + 8
    most = np.abs(a).max(axis=axis, keepdims=True, initial=0)
    made = (a - mean) / np.sqrt(var + r)
    size = most / np.sqrt(var + r)
    bound = 4 * n * eps(dtype) * ((size + np.abs(made) * (1 + size**2)) * np.abs(s) + np.abs(t))
    near(duet.layer_norm(x, scale, shift, r, axis), made * s + t, bound, dtype, 'layer_norm')
    made = a / np.sqrt((a * a).mean(axis, keepdims=True) + r) * s
    near(duet.rms_norm(x, scale, r, axis=axis), made, 4 * n * eps(dtype) * np.abs(made), dtype, 'rms_norm')


@case(FAMILY)
def group_norm(d):
    """group_norm, instance_norm and batch_norm."""
    dtype, groups = d.pick(FLOATS), d.int(1, 3)
    shape = (d.size(3), groups * d.int(1, 3), *d.shape(0, 2, 4, 0))
    a, x = d.operand(shape, dtype)
    name = d.pick(['group_norm', 'instance_norm', 'batch_norm']) if len(shape) > 2 else 'group_norm'
    c, r = shape[1], d.pick([1e-5, 0.1, 1.0])
    wide = (c,) + (1,) * (len(shape) - 2)
    s, t = d.array((c,), dtype), d.array((c,), dtype)
    per = {'group_norm': groups, 'instance_norm': c, 'batch_norm': c}[name]
    b = up(a).reshape(shape[0], per, c // per, *shape[2:])
    axes = (0, *range(2, b.ndim)) if name == 'batch_norm' else tuple(range(2, b.ndim))
    mean, var = b.mean(axes, keepdims=True), b.var(axes, keepdims=True)
    made = ((b - mean) / np.sqrt(var + r)).reshape(shape)
    most = (np.abs(b).max(initial=0) / np.sqrt(var.min(initial=np.inf) + r)) + 1
    s64, t64 = up(s).reshape(wide), up(t).reshape(wide)
    bound = 4 * (b.size + 8) * eps(dtype) * (most**2 * (np.abs(made) + 1) * np.abs(s64) + np.abs(t64))
    if name == 'group_norm':
        got = duet.group_norm(x, d.given(s), d.given(t), groups, r)
    else:
        got = getattr(duet, name)(x, d.given(s.reshape(wide)), d.given(t.reshape(wide)), r)
    near(got, made * s64 + t64, bound, dtype, name)


@case(FAMILY)
def one_hot(d):
    n, dtype = d.int(1, 6), d.pick(REAL)
    indices = d.rng.integers(0, n, shape := d.shape(0, 3)).astype(d.pick(INTEGERS))
    axis = d.axis(len(shape) + 1)
    want = np.moveaxis(np.eye(n)[indices.astype('int64')], -1, axis)
    made = duet.bool if dtype == 'bool' else getattr(duet, dtype)
    same(duet.one_hot(d.given(indices), n, made, axis), want, dtype)


@case(FAMILY)
def losses(d):
    """nll_loss and cross_entropy_loss."""
    dtype, classes = d.pick(FLOATS), d.int(1, 6)
    rest = d.shape(1, 3, 4) if d.chance(0.85) else ()
    shape = (classes,) if not rest else (rest[0], classes, *rest[1:])
    axis = 1 if rest else 0
    a, x = d.operand(shape, dtype)
    target = d.rng.integers(0, classes, rest).astype(d.pick(['int64', 'int32', 'uint8', 'int8']))
    ignored = d.pick([None, d.int(0, classes - 1), -100, 77]) if target.dtype.kind == 'i' else None
    if ignored is not None and target.size:
        target = np.where(d.rng.random(rest) < 0.3, ignored, target).astype(target.dtype)
    weights = d.rng.uniform(0.5, 2, classes).astype(dtype) if d.chance(0.5) else None
    reduction, name = d.pick(['none', 'sum', 'mean']), d.pick(['nll_loss', 'cross_entropy_loss'])
    counts = np.ones(rest, bool) if ignored is None else target != ignored
    picked = np.where(counts, target, 0).astype('int64')
    weight = np.where(counts, 1.0 if weights is None else up(weights)[picked], 0.0)
    b = up(a) if name == 'nll_loss' else log_softmax_of(up(a), axis)
    each = -np.take_along_axis(b, np.expand_dims(picked, axis), axis).reshape(rest) * weight
    more = {} if ignored is None else {'ignored': ignored}
    if weights is not None:
        more['weights'] = d.given(weights)
    total = weight.sum()
    want = {'none': each, 'sum': each.sum(), 'mean': np.float64(each.sum()) / total}[reduction]
    size = (np.abs(b).max(initial=0) + np.abs(up(a)).max(initial=0)) * (1 if reduction != 'sum' else total)
    bound = 16 * (target.size + classes + 8) * eps(dtype) * size
    near(getattr(duet, name)(x, d.given(target), reduction=reduction, **more), want, bound, dtype, name)
