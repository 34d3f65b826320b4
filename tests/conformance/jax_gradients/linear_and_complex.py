"""linear_and_complex.py - linear algebra, complex numbers, Fourier transforms and types."""
import math
import numpy as np
import jax.numpy as jnp
import jax.scipy as jsp
from jax import lax
from .formulas import GAP, Reject, c_sizes, map1, operator, scaled
from .element_wise import arithmetic


def regular(g, n):
    """A well-conditioned matrix: a multiple of the identity and elements that are smaller."""
    x = g.shaped((n, n))
    size = float(np.abs(g.v(x)).max())
    if size > 1:
        x = scaled(g, x, float('%.2g' % (1 / size)))
    i = g.matrix((1.5 + 0.5 * n) * np.eye(n), True)
    return g.put('add', [x, i], 'duet_add({0}, {1})', jnp.add)


def complex_of(g, a, b):
    return g.put('complex', [a, b], 'duet_complex({0}, {1})', lax.complex)


def complex_cholesky(g, a, n):
    """Of a Hermitian matrix whose imaginary part is small and has zeros on the diagonal."""
    t = g.put('transpose', [a], 'duet_transpose({0})', jnp.transpose)
    re = scaled(g, g.put('add', [a, t], 'duet_add({0}, {1})', jnp.add), 0.5)
    im = scaled(g, g.put('sub', [a, t], 'duet_sub({0}, {1})', jnp.subtract), 0.25)
    return g.put('cholesky', [complex_of(g, re, im)], 'duet_cholesky({0})', jnp.linalg.cholesky)


def complex_lstsq(g, a, b):
    m, n = g.shape(a)
    a, b = complex_of(g, a, map1(g, 'sin', jnp.sin, a)), complex_of(g, map1(g, 'cos', jnp.cos, b), b)
    if np.linalg.svd(g.v(a), compute_uv=False).min() < 0.3:
        raise Reject
    normal = {True: lambda x, y: jnp.linalg.solve(x.conj().T @ x, x.conj().T @ y),
              False: lambda x, y: x.conj().T @ jnp.linalg.solve(x @ x.conj().T, y)}
    return g.put('lstsq', [a, b], 'duet_lstsq({0}, {1})', normal[m > n])


@operator(3)
def linear(g):
    name = g.one_of(['solve', 'inv', 'det', 'logdet', 'cholesky', 'solve_triangular', 'lstsq'])
    n = g.integer(1, 4)
    b_shape = (n,) if g.chance(0.4) else (n, g.integer(1, 3))
    if name == 'lstsq':
        tall = g.chance(0.6)
        m = n + 1
        a = g.shaped((m, n) if tall else (n, m))
        if np.linalg.svd(g.v(a), compute_uv=False).min() < 0.3:
            raise Reject
        b = g.shaped(((m if tall else n),) + b_shape[1:])
        if g.chance(0.4):
            return complex_lstsq(g, a, b)
        normal = {True: lambda x, y: jnp.linalg.solve(x.T @ x, x.T @ y),
                  False: lambda x, y: x.T @ jnp.linalg.solve(x @ x.T, y)}
        return g.put(name, [a, b], 'duet_lstsq({0}, {1})', normal[tall])
    a = regular(g, n)
    if name == 'det' and n > 1 and g.chance(0.3): # singular: two rows are equal
        order = [0] + list(range(n - 1))
        i = g.indices(order)
        a = g.put('take', [a, i], 'duet_take({0}, {1}, 0)', lambda x, k: jnp.take(x, k, axis=0))
        return g.put(name, [a], 'duet_det({0})', jnp.linalg.det, False)
    if name == 'cholesky' and g.chance(0.4):
        return complex_cholesky(g, a, n)
    if name == 'cholesky':
        t = g.put('transpose', [a], 'duet_transpose({0})', jnp.transpose)
        a = scaled(g, g.put('add', [a, t], 'duet_add({0}, {1})', jnp.add), 0.5)
        return g.put(name, [a], 'duet_cholesky({0})', jnp.linalg.cholesky)
    if name == 'logdet':
        return g.put(name, [a], 'duet_logdet({0})', lambda x: jnp.linalg.slogdet(x)[1])
    if name in ('inv', 'det'):
        return g.put(name, [a], 'duet_%s({0})' % name, getattr(jnp.linalg, name))
    b = g.shaped(b_shape)
    if name == 'solve':
        return g.put(name, [a, b], 'duet_solve({0}, {1})', jnp.linalg.solve)
    lower, one, trans = g.integer(0, 1), g.integer(0, 1), g.integer(0, 1)
    return g.put(name, [a, b], 'duet_solve_triangular({0}, {1}, .lower = %d, .unit = %d, .transposed = %d)'
                 % (lower, one, trans), lambda x, y: jsp.linalg.solve_triangular(
                     x, y, trans=trans, lower=bool(lower), unit_diagonal=bool(one)))


@operator(0.7)
def statistics(g):
    name = g.one_of(['cov', 'corrcoef'])
    a = g.pick_real(lambda v: v.ndim == 2 and v.shape[1] > 1)
    if np.var(g.v(a), axis=1).min() < 0.05:
        raise Reject
    if name == 'cov':
        return g.put(name, [a], 'duet_cov({0}, 1)', lambda x: jnp.cov(x))
    return g.put(name, [a], 'duet_corrcoef({0})', lambda x: jnp.corrcoef(x))


COMPLEX_MAPS = {
    'neg': jnp.negative, 'sqrt': jnp.sqrt, 'exp': jnp.exp, 'log': jnp.log, 'sinh': jnp.sinh, 'cosh': jnp.cosh,
    'tanh': jnp.tanh, 'sin': jnp.sin, 'cos': jnp.cos, 'tan': jnp.tan, 'square': lambda x: x * x, 'expm1': jnp.expm1,
    'log1p': jnp.log1p, 'reciprocal': lambda x: 1 / x, 'conj': jnp.conj, 'asin': jnp.arcsin, 'acos': jnp.arccos,
    'atan': jnp.arctan, 'asinh': jnp.arcsinh, 'acosh': jnp.arccosh, 'atanh': jnp.arctanh,
    'log2': lambda x: jnp.log(x) / math.log(2), 'log10': lambda x: jnp.log(x) / math.log(10),
}


@operator(5)
def complex_numbers(g):
    can = [i for i, n in enumerate(g.nodes) if not n.constant and n.value.dtype.kind == 'c']
    name = g.one_of(['complex', 'real', 'imag', 'abs', 'arg', 'map', 'map', 'map'])
    if name == 'complex' or not can:
        a = g.pick_real()
        b = g.partner(a)
        return g.put('complex', [a, b], 'duet_complex({0}, {1})',
                     lambda x, y: lax.complex(*jnp.broadcast_arrays(x, y)))
    a = can[-1] if g.chance(0.6) else g.one_of(can)
    v = g.v(a)
    if name in ('real', 'imag'):
        return g.put(name, [a], 'duet_%s({0})' % name, getattr(jnp, name))
    if name in ('abs', 'arg') and np.abs(v).min() < 0.2:
        raise Reject
    if name == 'abs':
        return g.put(name, [a], 'duet_abs({0})', jnp.abs)
    if name == 'arg':
        if ((np.abs(v.imag) < GAP) & (v.real < 0)).any():
            raise Reject
        return g.put(name, [a], 'duet_arg({0})', jnp.angle)
    name = g.one_of(list(COMPLEX_MAPS))
    if np.abs(v).max() > 2.5 and name not in ('neg', 'conj', 'square'):
        a = scaled(g, a, float('%.2g' % (1.5 / np.abs(v).max())))
        v = g.v(a)
    if name not in ('neg', 'conj', 'square', 'exp', 'sinh', 'cosh', 'sin', 'cos', 'expm1', 'tanh', 'tan'):
        # away from branch cuts and poles
        if np.abs(v).min() < 0.2 or np.abs(v.imag).min() < 0.05 or np.abs(v.real).min() < 0.05 or \
                min(np.abs(v * v - 1).min(), np.abs(v * v + 1).min(), np.abs(v + 1).min()) < 0.2:
            raise Reject
    return map1(g, name, COMPLEX_MAPS[name], a)


@operator(3)
def fourier(g):
    name = g.one_of(['fftn', 'ifftn', 'rfftn', 'irfftn', 'fftshift', 'ifftshift', 'abs_of'])
    kinds = {'irfftn': 'c', 'rfftn': 'f', 'abs_of': 'f'}.get(name, 'fc')
    a = g.pick(lambda v: v.ndim > 0 and v.dtype.kind in kinds)
    axes = g.axes(a)
    axes = [axes[k] for k in g.rng.permutation(len(axes))]
    axis = '.axes = %d, .axis = %s' % (len(axes), c_sizes(axes))
    if name.endswith('shift'):
        f = getattr(jnp.fft, name)
        return g.put(name, [a], 'duet_%s({0}, %s)' % (name, axis), lambda x: f(x, axes=axes))
    form = 'fftn' if name == 'abs_of' else name
    n = [g.one_of([g.shape(a)[k], g.integer(1, 6)]) for k in axes]
    f = getattr(jnp.fft, form)
    b = g.put(form, [a], 'duet_%s({0}, %s, .n = %s)' % (form, axis, c_sizes(n)), lambda x: f(x, s=n, axes=axes))
    if name != 'abs_of':
        return b
    if np.abs(g.v(b)).min() < 0.2:
        raise Reject
    return g.put('abs', [b], 'duet_abs({0})', jnp.abs)


@operator(0.5)
def types(g):
    name = g.one_of(['cast', 'stop_gradient'])
    a = g.pick_real()
    if name == 'cast':
        b = g.put(name, [a], 'duet_cast({0}, DUET_F64)', lambda x: jnp.asarray(x, jnp.float64))
        b = map1(g, 'sin', jnp.sin, b)
        return g.put(name, [b, a], 'duet_cast({0}, t)', lambda x, y: jnp.asarray(x, y.dtype))
    b = g.put(name, [a], 'duet_stop_gradient({0})', lax.stop_gradient)
    return arithmetic(g, b, a, 'mul')
