"""reductions.py - reductions and products."""
import numpy as np
import jax.numpy as jnp
import jax.scipy as jsp
from .formulas import Reject, c_list, operator


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
