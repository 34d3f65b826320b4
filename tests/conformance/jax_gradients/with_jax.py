"""with_jax.py - values and gradients of formulas by JAX, in other processes."""
import itertools
import multiprocessing, multiprocessing.connection
import os
import numpy as np
import jax
import jax.numpy as jnp
from .generator import complete, random_formula


F32_NOISE = 2e-6
HUGE = 1e6          # of gradients
KINDS = ['value', 'gradient', 'vjp', 'second']


def jax_results(g, kind):
    real, cplx = (np.float32, np.complex64) if kind == 'f32' else (np.float64, np.complex128)
    typed = lambda v: v.astype(v.dtype if v.dtype.kind == 'i' else cplx if v.dtype.kind == 'c' else real)
    matrices = [typed(m) for m in g.matrices]
    leaves = [(i, n.matrix) for i, n in enumerate(g.nodes) if not n.args and n.text]

    def result(xs, constants):
        values = {i: (xs + constants)[k] for i, k in leaves}
        for i in g.order:
            values[i] = g.nodes[i].f(*[values[a] for a in g.nodes[i].args])
        return values[g.root]

    def value(xs, constants):
        return jnp.sum(jnp.real(result(xs, constants) * constants[g.weights - g.inputs]))

    def slope(xs, constants):
        return jnp.sum(jnp.real(jax.grad(value)(xs, constants)[g.of] * constants[g.direction - g.inputs]))

    def everything(xs, constants):
        made, gradients = jax.value_and_grad(value)(xs, constants)
        all = {'value': [made], 'gradient': gradients}
        if g.factor >= 0:
            y, back = jax.vjp(lambda x: result(x, constants), xs)
            all['vjp'] = back(jnp.broadcast_to(constants[g.factor - g.inputs], y.shape).astype(y.dtype))[0]
        if g.direction >= 0:
            all['second'] = jax.grad(slope)(xs, constants)
        return all

    all = jax.jit(everything)(matrices[:g.inputs], matrices[g.inputs:])
    return {k: [np.asarray(v) for v in all[k]] for k in KINDS if k in all} # in the order of the C program


def norm(v):
    return float(np.linalg.norm(np.ravel(v)))


def errors(got, want):
    """The largest error of each kind of result."""
    all, slope = {}, max(norm(w) for w in want['gradient'])
    for kind, list in want.items():
        largest = max(norm(w) for w in list)
        floor = {'value': 1, 'second': max(largest, slope) / 100}.get(kind, max(largest / 100, 1e-3))
        all[kind] = max(norm(a.astype(w.dtype) - w) / max(norm(w), floor) for a, w in zip(got[kind], list))
    return all


def attempt(seed_and_number):
    """Returns a formula, without its Python functions, and JAX's results; or why it is discarded."""
    g = random_formula(np.random.default_rng(seed_and_number))
    if not g:
        return 'too few or too many operators', None
    complete(g, seed_and_number[1])
    try:
        want, noisy = jax_results(g, 'f64'), jax_results(g, 'f32')
    except (TypeError, ValueError, RuntimeError) as e: # also errors of XLA, which has some in transforms
        return 'JAX: %s' % str(e)[:100], None
    values = [v for list in want.values() for v in list]
    if not all(np.isfinite(v).all() for v in values):
        return 'not finite', None
    if max(np.abs(v).max() for v in values) > HUGE:
        return 'huge', None
    if max(np.abs(v).max() for v in want['gradient']) < 1e-3:
        return 'gradient 0', None
    g.noise = errors(noisy, want)
    if not max(g.noise.values()) <= F32_NOISE:
        return 'badly conditioned', None
    for n in g.nodes:
        n.f = n.value = None
    g.id = seed_and_number[1]
    return g, want


class Worker:
    """A process that evaluates formulas. This process itself does not compute with JAX: it could not fork then."""

    def __init__(self):
        self.pipe, end = multiprocessing.Pipe()
        self.uses, self.number = 0, None
        self.process = multiprocessing.get_context('fork').Process(target=self.serve, args=(end,), daemon=True)
        self.process.start()
        end.close()

    @staticmethod
    def serve(pipe):
        while True:
            pipe.send(attempt(pipe.recv()))

    def start(self, seed, number):
        self.uses, self.number = self.uses + 1, number
        self.pipe.send([seed, number])

    def result(self):
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self.uses = USES
            return 'XLA ended the process', None

    def end(self):
        self.process.terminate()
        self.process.join()


USES = 100 # of a process, which needs more memory for each formula


def formulas_of(count, seed, discarded):
    """Finds `count` formulas with all CPUs, in the order of their numbers."""
    formulas, wants, made, numbers, first = [], [], {}, itertools.count(), 0
    workers = [Worker() for _ in range(os.cpu_count() or 1)]
    for w in workers:
        w.start(seed, next(numbers))
    while len(formulas) < count:
        ready = multiprocessing.connection.wait([w.pipe for w in workers])
        for k, w in enumerate(workers):
            if w.pipe not in ready:
                continue
            made[w.number] = w.result()
            if w.uses == USES:
                w.end()
                workers[k] = Worker()
            workers[k].start(seed, next(numbers))
        while first in made and len(formulas) < count:
            g, want = made.pop(first)
            first += 1
            if want is None:
                discarded[g] += 1
            else:
                formulas.append(g)
                wants.append(want)
    for w in workers:
        w.end()
    return formulas, wants
