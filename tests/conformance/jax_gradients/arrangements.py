"""arrangements.py - operators that select or arrange elements."""
import numpy as np
import jax
import jax.numpy as jnp
from jax import lax
from .formulas import Reject, c_list, c_sizes, operator, reshape_to


@operator(8)
def view(g):
    a = g.pick()
    rank, shape = g.v(a).ndim, g.shape(a)
    name = g.one_of(['transpose', 'permute', 'reshape', 'broadcast', 'index', 'index', 'index', 'flip',
                     'expand_dims', 'squeeze', 'moveaxis', 'swapaxes', 'pick', 'part', 'diag', 'diagonal_of', 'trace', 'tril',
                     'triu', 'sliding_window', 'diff', 'meshgrid', 'tile', 'repeat', 'roll'])
    if name == 'transpose':
        return g.put(name, [a], 'duet_transpose({0})', jnp.transpose)
    if name == 'reshape':
        n = g.v(a).size
        k = g.one_of([d for d in range(1, n + 1) if n % d == 0])
        return reshape_to(g, a, g.one_of([(n,), (k, n // k), (1, n // k, k), (n // k, 1, k)]))
    if name == 'broadcast':
        to = [g.integer(1, 3) if k == 1 else k for k in shape]
        to = [g.integer(1, 3) for _ in range(g.integer(0 if rank else 1, 2))] + to
        return g.put(name, [a], 'duet_broadcast({0}, %s)' % c_list(to), lambda x: jnp.broadcast_to(x, to))
    if name == 'expand_dims':
        k = g.integer(0, rank)
        return g.put(name, [a], 'duet_expand_dims({0}, %d)' % k, lambda x: jnp.expand_dims(x, k))
    if not rank:
        raise Reject
    k = g.axis(a)
    n = shape[k]
    if name == 'permute':
        order = [int(i) for i in g.rng.permutation(rank)]
        return g.put(name, [a], 'duet_permute({0}, %s)' % c_list(order), lambda x: jnp.transpose(x, order))
    if name == 'flip':
        return g.put(name, [a], 'duet_flip({0}, %d)' % k, lambda x: jnp.flip(x, k))
    if name == 'squeeze':
        ones = [i for i in range(rank) if shape[i] == 1]
        k = g.one_of(ones) if ones else g.reject()
        return g.put(name, [a], 'duet_squeeze({0}, %d)' % k, lambda x: jnp.squeeze(x, k))
    if name in ('moveaxis', 'swapaxes'):
        j = g.axis(a)
        f = getattr(jnp, name)
        return g.put(name, [a], 'duet_%s({0}, %d, %d)' % (name, k, j), lambda x: f(x, k, j))
    if name == 'pick':
        i = g.integer(-n, n - 1)
        return g.put(name, [a], 'duet_pick({0}, %d, %d)' % (k, i), lambda x: jnp.take(x, i % n, axis=k))
    if name == 'part':
        count = g.integer(1, n)
        i = g.integer(0, count - 1)
        return g.put(name, [a], 'duet_part({0}, %d, %d, %d)' % (k, count, i), lambda x: jnp.array_split(x, count, k)[i])
    if name in ('diag', 'diagonal_of'):
        if rank < 2 and name == 'diagonal_of' or rank > 2 and name == 'diag':
            raise Reject
        i = g.integer(1 - shape[0], shape[1] - 1) if rank > 1 else g.integer(-1, 1)
        return g.put(name, [a], 'duet_%s({0}, %d)' % (name, i), lambda x: getattr(jnp, name.replace('_of', ''))(x, i))
    if name in ('trace', 'tril', 'triu'):
        if rank < 2 or name == 'trace' and rank > 2:
            raise Reject
        i = g.integer(-1, 1)
        return g.put(name, [a], 'duet_trace({0})' if name == 'trace' else 'duet_%s({0}, %d)' % (name, i),
                     jnp.trace if name == 'trace' else lambda x: getattr(jnp, name)(x, i))
    if name == 'sliding_window':
        size, stride, dilation = g.integer(1, n), g.integer(1, 2), g.integer(1, 2)
        count = (n - (size - 1) * dilation - 1) // stride + 1
        if count < 1:
            raise Reject
        at = np.arange(count)[:, None] * stride + np.arange(size) * dilation
        return g.put(name, [a], 'duet_sliding_window({0}, %d, %d, %d, %d)' % (k, size, stride, dilation),
                     lambda x: jnp.moveaxis(jnp.take(x, at, axis=k), k + 1, -1))
    if name == 'diff':
        i = g.integer(1, 2)
        if n <= i:
            raise Reject
        return g.put(name, [a], 'duet_diff({0}, %d, %d)' % (i, k), lambda x: jnp.diff(x, i, axis=k))
    if name == 'meshgrid':
        if rank != 1:
            raise Reject
        if g.chance(0.5):
            return g.put(name, [a], 'duet_meshgrid({0}, 1, 3, %d)' % n, lambda x: jnp.broadcast_to(x, (3, n)))
        return g.put(name, [a], 'duet_meshgrid({0}, 0, %d, 2)' % n, lambda x: jnp.broadcast_to(x[:, None], (n, 2)))
    if name == 'tile':
        times = [g.integer(1, 2) for _ in range(g.integer(1, rank + 1))]
        return g.put(name, [a], 'duet_tile({0}, %s)' % c_list(times), lambda x: jnp.tile(x, times))
    if name == 'repeat':
        i = g.integer(1, 3)
        return g.put(name, [a], 'duet_repeat({0}, %d, %d)' % (i, k), lambda x: jnp.repeat(x, i, axis=k))
    if name == 'roll':
        i = g.integer(-3, 3)
        return g.put(name, [a], 'duet_roll({0}, %d, %d)' % (i, k), lambda x: jnp.roll(x, i, axis=k))
    return indexed(g, a)


def indexed(g, a):
    entries, keys = [], []
    for n in g.shape(a):
        how = g.one_of(['all', 'all', 'at', 'range', 'step', 'back', 'new'])
        if how == 'new':
            entries.append('DUET_NEW'), keys.append(None)
            how = 'all'
        if how == 'all':
            entries.append('DUET_ALL'), keys.append(slice(None))
        elif how == 'at':
            i = g.integer(-n, n - 1)
            entries.append('DUET_AT(%d)' % i), keys.append(i)
        elif how == 'range':
            i = g.integer(0, n - 1)
            j = g.integer(i + 1, n)
            entries.append('DUET_RANGE(%d, %d)' % (i, j)), keys.append(slice(i, j))
        elif how == 'step':
            i, by = g.integer(0, n - 1), g.integer(1, 3)
            entries.append('DUET_STEP(%d, DUET_OPEN, %d)' % (i, by)), keys.append(slice(i, None, by))
        else:
            by = -g.integer(1, 2)
            entries.append('DUET_STEP(DUET_OPEN, DUET_OPEN, %d)' % by), keys.append(slice(None, None, by))
    if keys == [slice(None)] * len(keys):
        raise Reject
    return g.put('index', [a], 'duet_index({0}, %s)' % c_list(entries), lambda x: x[tuple(keys)])


@operator(3)
def joined(g):
    a = g.pick()
    kind, s = 'c' if g.is_complex(a) else 'f', g.shape(a)
    name = g.one_of(['concat', 'stack', 'pad', 'concat'])
    if name == 'stack':
        k, b = g.integer(0, len(s)), g.shaped(s, kind)
        return g.put(name, [a, b, a], 'duet_stack(%d, {0}, {1}, {2})' % k, lambda *x: jnp.stack(x, k))
    k = g.axis(a)
    if name == 'concat':
        more = [g.shaped(s[:k] + (g.integer(1, 3),) + s[k + 1:], kind) for _ in range(g.integer(1, 2))]
        args = [a] + more
        return g.put(name, args, 'duet_concat(%d, %s)' % (k, c_list('{%d}' % i for i in range(len(args)))),
                     lambda *x: jnp.concatenate(x, k))
    before, after = [g.integer(0, 2) for _ in s], [g.integer(0, 2) for _ in s]
    mode = g.one_of(['constant', 'edge', 'reflect'])
    if mode == 'reflect' and min(s) < 3:
        mode = 'edge'
    value = g.one_of([0, g.number(0.5, 2)])
    by = list(zip(before, after))
    return g.put(name, [a], 'duet_pad({0}, .before = %s, .after = %s, .mode = DUET_PAD_%s, .value = %r)'
                 % (c_sizes(before), c_sizes(after), mode.upper(), value),
                 lambda x: jnp.pad(x, by, mode=mode, **({'constant_values': value} if mode == 'constant' else {})))


@operator(4)
def gathered(g):
    a = g.pick(lambda v: v.ndim > 0)
    k = g.axis(a)
    s, kind = g.shape(a), 'c' if g.is_complex(a) else 'f'
    n = s[k]
    name = g.one_of(['take', 'take_along_axis', 'put', 'scatter_add', 'scatter_max', 'sort', 'top_k', 'cumsum',
                     'cumprod', 'cumsum', 'append', 'softmax', 'log_softmax'])
    if name == 'append':
        b = g.shaped(s, kind)
        return g.put(name, [a, b], 'duet_append({0}, {1}, %d)' % k, lambda x, y: jnp.concatenate((x, y), k))
    if name == 'cumsum':
        return g.put(name, [a], 'duet_cumsum({0}, %d)' % k, lambda x: jnp.cumsum(x, k))
    if name in ('take', 'scatter_add'):
        at = g.rng.integers(0, n, [g.integer(1, 3) for _ in range(g.integer(0, 2))])
    if name == 'take':
        i = g.indices(at - n * g.rng.integers(0, 2, at.shape))
        return g.put(name, [a, i], 'duet_take({0}, {1}, %d)' % k, lambda x, i: jnp.take(x, at, axis=k))
    if name == 'take_along_axis':
        at = g.rng.integers(0, n, s[:k] + (g.integer(1, 3),) + s[k + 1:])
        return g.put(name, [a, g.indices(at)], 'duet_take_along_axis({0}, {1}, %d)' % k,
                     lambda x, i: jnp.take_along_axis(x, at, axis=k))
    if name in ('put', 'scatter_max'):
        at = g.rng.permutation(n)[:g.integer(1, n)]
    where = (slice(None),) * k
    if name in ('put', 'scatter_add', 'scatter_max'):
        b = g.shaped(s[:k] + at.shape + s[k + 1:], kind)
        if name != 'put' and kind == 'c':
            raise Reject
        if name == 'scatter_max':
            g.away(np.take(g.v(a), at, axis=k) - g.v(b), [0])
        here = where + (at,)
        f = {'put': lambda x, y: x.at[here].set(y), 'scatter_add': lambda x, y: x.at[here].add(y),
             'scatter_max': lambda x, y: x.at[here].set(jnp.maximum(y, x[here]))}[name]
        return g.put(name, [a, g.indices(at), b], 'duet_%s({0}, {1}, {2}, %d)' % (name, k),
                     lambda x, i, y: f(jnp.asarray(x), y), name != 'scatter_max')
    if kind == 'c':
        raise Reject
    if name in ('sort', 'top_k'):
        g.apart(g.v(a), k)
        top = g.integer(1, n)
        if name == 'sort':
            return g.put(name, [a], 'duet_sort({0}, %d)' % k, lambda x: jnp.sort(x, k))
        return g.put(name, [a], 'duet_top_k({0}, %d, %d)' % (top, k),
                     lambda x: lax.slice_in_dim(jnp.flip(jnp.sort(x, k), k), 0, top, axis=k))
    if name == 'cumprod':
        return g.put(name, [a], 'duet_cumprod({0}, %d)' % k, lambda x: jnp.cumprod(x, k))
    f = getattr(jax.nn, name)
    return g.put(name, [a], 'duet_%s({0})' % name, lambda x: f(x, axis=-1))
