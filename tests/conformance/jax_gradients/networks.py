"""networks.py - operators of networks, and convolutions."""
import numpy as np
import jax
import jax.numpy as jnp
from jax import lax
from .formulas import Reject, c_list, c_sizes, operator


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
