"""generator.py - random formulas."""
import numpy as np
# In this order, which decides what a seed gives.
from . import element_wise, reductions, arrangements, networks, linear_and_complex
from .formulas import Formula, OPERATORS, Reject, random_values


def random_shape(rng):
    rank = int(rng.choice([0, 1, 2, 2, 2, 3, 3, 4]))
    most = {0: 1, 1: 6, 2: 5, 3: 4, 4: 4}[rank]
    return tuple(int(k) for k in rng.integers(1, most + 1, rank))


def random_formula(rng):
    g = Formula(rng)
    for k in range(g.integer(1, g.most_inputs)):
        g.matrix(random_values(rng, random_shape(rng), g.chance(0.12)), False)
    target = g.integer(2, 30)
    weights = np.array([w for w, _ in OPERATORS])
    tries = 0
    while sum(1 for n in g.nodes if n.args) < target and tries < 400:
        tries += 1
        nodes = len(g.nodes)
        try:
            OPERATORS[int(rng.choice(len(OPERATORS), p=weights / weights.sum()))][1](g)
        except Reject:
            del g.nodes[nodes:]
    g.root = len(g.nodes) - 1
    keep = {g.root}
    for i in reversed(range(len(g.nodes))):
        if i in keep:
            keep.update(g.nodes[i].args)
    g.order = [i for i in sorted(keep) if g.nodes[i].args]
    if not 2 <= len(g.order) <= 30:
        return None
    g.smooth = all(g.nodes[i].smooth for i in g.order)
    inputs = [n for n in g.nodes if not n.args and not n.constant]
    constants = [n for i, n in enumerate(g.nodes) if n.constant and i in keep]
    g.inputs, g.matrices = len(inputs), [n.value for n in inputs + constants]
    for k, n in enumerate(inputs + constants):
        n.matrix, n.text = k, 'm[%d]' % k
    return g


def complete(g, number):
    """Adds weights and directions."""
    rng, y = g.rng, g.v(g.root)

    def add(shape, kind):
        g.matrices.append(random_values(rng, shape, kind == 'c'))
        return len(g.matrices) - 1
    g.weights = add(y.shape, y.dtype.kind)
    shape = y.shape
    if g.chance(0.3): # a g that broadcasts to y
        shape = tuple(1 if g.chance(0.3) else k for k in shape)[g.integer(0, len(shape)):]
    g.factor = add(shape, y.dtype.kind) if number % 3 == 0 else -1
    g.of = number % g.inputs
    g.direction = add(g.matrices[g.of].shape, g.matrices[g.of].dtype.kind) if g.smooth and number % 3 else -1
