"""Optimizers, compared with the formulas of PyTorch's torch.optim in NumPy."""

import numpy as np
import pytest

import duet

RATE = 0.05


def sgd(w, g, s, t, momentum=0.0, nesterov=False, decay=0.0):
    d = g + decay * w
    if momentum:
        s['v'] = momentum * s.get('v', 0) + d
        d = d + momentum * s['v'] if nesterov else s['v']
    return w - RATE * d


def adam(w, g, s, t, keep_mean=0.9, keep_square=0.999, epsilon=1e-8, decay=0.0):
    d = g + decay * w
    s['m'] = keep_mean * s.get('m', 0) + (1 - keep_mean) * d
    s['s'] = keep_square * s.get('s', 0) + (1 - keep_square) * d * d
    m, q = s['m'] / (1 - keep_mean**t), s['s'] / (1 - keep_square**t)
    return w - RATE * m / (np.sqrt(q) + epsilon)


def adamw(w, g, s, t, decay=0.0, **options):
    return adam(w, g, s, t, **options) - RATE * decay * w


def rmsprop(w, g, s, t, keep=0.99, epsilon=1e-8, momentum=0.0, decay=0.0):
    d = g + decay * w
    s['s'] = keep * s.get('s', 0) + (1 - keep) * d * d
    u = d / (np.sqrt(s['s']) + epsilon)
    if momentum:
        s['v'] = u = momentum * s.get('v', 0) + u
    return w - RATE * u


def adagrad(w, g, s, t, epsilon=1e-10, decay=0.0):
    d = g + decay * w
    s['s'] = s.get('s', 0) + d * d
    return w - RATE * d / (np.sqrt(s['s']) + epsilon)


CASES = [
    ('SGD', sgd, {}),
    ('SGD', sgd, {'momentum': 0.9, 'decay': 0.01}),
    ('SGD', sgd, {'momentum': 0.9, 'nesterov': True}),
    ('Adam', adam, {}),
    ('Adam', adam, {'keep_mean': 0.8, 'keep_square': 0.9, 'epsilon': 1e-3, 'decay': 0.1}),
    ('AdamW', adamw, {'decay': 0.1}),
    ('RMSprop', rmsprop, {}),
    ('RMSprop', rmsprop, {'keep': 0.5, 'momentum': 0.9, 'decay': 0.1}),
    ('Adagrad', adagrad, {'decay': 0.1}),
]
each_case = pytest.mark.parametrize('name, formula, options', CASES)


def model(rng):
    """A network with a hidden layer: parameters, the loss in Duet, and the gradients in NumPy."""
    x, t = rng.normal(size=(20, 4)), rng.normal(size=(20, 2))
    parameters = [rng.normal(size=s) for s in ((4, 5), (5,), (5, 2))]

    def loss(w, b, v):
        return duet.mean((duet.tanh(duet.asarray(x) @ w + b) @ v - duet.asarray(t)) ** 2)

    def gradients(w, b, v):
        h = np.tanh(x @ w + b)
        d = (h @ v - t) * 2 / t.size
        dh = (d @ v.T) * (1 - h * h)
        return x.T @ dh, dh.sum(0), h.T @ d

    return parameters, loss, gradients


def expected(formula, options, parameters, gradients, steps):
    states = [{} for _ in parameters]
    for t in range(1, steps + 1):
        found = gradients(*parameters)
        parameters = [formula(w, g, s, t, **options) for w, g, s in zip(parameters, found, states)]
    return parameters


@each_case
def test_training(rng, name, formula, options):
    start, loss, gradients = model(rng)
    parameters = [duet.variable(duet.asarray(p)) for p in start]
    optimizer = getattr(duet.optimizers, name)(parameters, RATE, **options)
    losses = []
    for _ in range(10):
        y = loss(*parameters)
        optimizer.step(duet.grad(y, parameters))
        losses.append(float(y))
    for got, want in zip(parameters, expected(formula, options, start, gradients, 10)):
        assert np.allclose(np.asarray(got), want, rtol=1e-10, atol=1e-12)
    assert losses[-1] < losses[0]
    if name.startswith('Adam'):
        assert optimizer.steps == 10


@each_case
def test_recorded(rng, name, formula, options):
    start, loss, gradients = model(rng)
    parameters = [duet.variable(duet.asarray(p)) for p in start]
    optimizer = getattr(duet.optimizers, name)(parameters, RATE, **options)
    run = duet.record(lambda *p: optimizer.step(duet.grad(loss(*p), list(p))), *parameters)
    for _ in range(4):
        run()
    for got, want in zip(parameters, expected(formula, options, start, gradients, 5)):
        assert np.allclose(np.asarray(got), want, rtol=1e-10, atol=1e-12)


def test_values_that_are_still_needed_do_not_change():
    w = duet.variable(duet.asarray([1.0, 2.0]))
    y, copy = w * 10, duet.asarray(w, copy=True)
    duet.optimizers.SGD(w, 1.0).step(duet.asarray([1.0, 1.0]))
    assert w.tolist() == [0.0, 1.0] and y.tolist() == [10.0, 20.0] and copy.tolist() == [1.0, 2.0]


def test_a_rate_that_changes():
    w, rate = duet.variable(duet.asarray([1.0, 2.0])), duet.asarray(1.0)
    optimizer = duet.optimizers.SGD(w, rate)
    optimizer.step(duet.ones(2))
    rate[...] = 0.5
    optimizer.step(duet.ones(2))
    assert w.tolist() == [-0.5, 0.5]
    optimizer.rate = 2
    optimizer.step(duet.ones(2))
    assert w.tolist() == [-2.5, -1.5]


def test_errors():
    w = duet.variable(duet.ones(2))
    with pytest.raises(ValueError, match='gradient 0 must have the shape'):
        duet.optimizers.Adam(w).step(duet.ones(3))
    both = duet.optimizers.Adam([w, duet.variable(duet.ones(3))])
    with pytest.raises(ValueError, match='gradient 1 must have the shape'):
        both.step([duet.ones(2), duet.ones(2)])
    assert both.steps == 0
    with pytest.raises(ValueError, match='momentum'):
        duet.optimizers.SGD(w, 0.1, momentum=-1.0).step(duet.ones(2))
    with pytest.raises(ValueError, match='1 parameters, and 2 gradients'):
        duet.optimizers.SGD(w, 0.1).step([duet.ones(2), duet.ones(2)])
    with pytest.raises(TypeError, match='rate'):
        duet.optimizers.SGD(w, '0.1').step(duet.ones(2))
    assert w.tolist() == [1.0, 1.0]


def test_norm_of_all_gradients(rng):
    a, b = rng.normal(size=(3, 4)), rng.normal(size=5)
    norm = duet.global_norm(duet.asarray(a), duet.asarray(b))
    assert np.isclose(float(norm), np.sqrt((a * a).sum() + (b * b).sum()))
    clipped = duet.clip_norm(duet.asarray(a), norm, 0.5)
    assert np.allclose(np.asarray(clipped), a * 0.5 / (float(norm) + 1e-6))
