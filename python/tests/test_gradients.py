"""Gradients, compared with finite differences."""

import numpy as np
import pytest

import duet


def differences(f, a, h=1e-6):
    g = np.zeros_like(a)
    for i in np.ndindex(a.shape):
        up, down = a.copy(), a.copy()
        up[i] += h
        down[i] -= h
        g[i] = (float(f(duet.asarray(up))) - float(f(duet.asarray(down)))) / (2 * h)
    return g


FUNCTIONS = {
    'elements': lambda x: duet.sum(duet.exp(duet.sin(x)) * x),
    'norm': lambda x: duet.linalg.vector_norm(x),
    'product': lambda x: duet.sum(duet.matmul(x, x.T) ** 2),
    'softmax': lambda x: duet.sum(duet.softmax(x) * duet.softmax(x)),
    'select': lambda x: duet.sum(x[1:, ::-1] * 3.0) + x[0, 0] * x[1, 1],
    'index arrays': lambda x: duet.sum(x[duet.asarray([0, 1, 0])] ** 2),
    'join': lambda x: duet.sum(duet.concat([x, 2.0 * x], axis=0) ** 2),
    'statistics': lambda x: duet.var(x) + duet.mean(x) ** 2,
    'solve': lambda x: duet.sum(duet.linalg.inv(duet.matmul(x, x.T) + duet.eye(2))),
    'where': lambda x: duet.sum(duet.where(x > 0, x * x, -x)),
}


@pytest.mark.parametrize('name', FUNCTIONS)
def test_against_differences(name, rng):
    f, a = FUNCTIONS[name], rng.normal(size=(2, 3))
    g = np.asarray(duet.grad(f)(duet.asarray(a)))
    assert np.allclose(g, differences(f, a), rtol=1e-5, atol=1e-6)


def test_value_and_several_gradients(rng):
    a, b = (duet.asarray(rng.normal(size=(3,))) for _ in range(2))
    y, (ga, gb) = duet.value_and_grad(lambda a, b: duet.sum(a * b * b), argnums=(0, 1))(a, b)
    assert np.allclose(np.asarray(ga), np.asarray(b) ** 2) and np.allclose(
        np.asarray(gb), 2 * np.asarray(a * b)
    )
    assert np.isclose(float(y), float(duet.sum(a * b * b)))


def test_the_forward_pass_is_computed_once(rng):
    x = duet.variable(duet.asarray(rng.normal(size=(50,)), device='cpu'))
    loss = duet.sum(duet.exp(x))
    g = duet.grad(loss, x)
    before = duet.stats()
    duet.evaluate(loss, g)
    after = duet.stats()
    assert after.plan_hits + after.plan_misses == before.plan_hits + before.plan_misses + 1
    assert np.allclose(np.asarray(g), np.exp(np.asarray(x)))


def test_values_on_the_way_may_be_computed_before(rng):
    """print(loss) before the gradient must not change the gradient."""
    a = rng.normal(size=(4,))
    x = duet.variable(duet.asarray(a))
    h = x * x
    h.evaluate()
    loss = duet.sum(h * duet.exp(x))
    float(loss)
    g = duet.grad(loss, x)
    assert np.allclose(np.asarray(g), (2 * a + a * a) * np.exp(a))
    g2 = duet.grad(loss, x)
    str(loss), str(h)
    assert np.allclose(np.asarray(g2), (2 * a + a * a) * np.exp(a))


def test_second_derivatives(rng):
    a = rng.normal(size=(3,))
    x = duet.variable(duet.asarray(a))
    g = duet.grad(duet.sum(x * x * x), x)
    h = duet.grad(duet.sum(g), x)
    assert np.allclose(np.asarray(h), 6 * a)


def test_vjp(rng):
    a, v = rng.normal(size=(3,)), rng.normal(size=(3,))
    y, pull = duet.vjp(lambda x: x * x, duet.asarray(a))
    assert np.allclose(np.asarray(y), a * a) and np.allclose(np.asarray(pull(duet.asarray(v))), 2 * a * v)
    x = duet.variable(duet.asarray(a))
    assert np.allclose(np.asarray(duet.vjp(duet.exp(x), x, duet.asarray(v))), np.exp(a) * v)


def test_training_keeps_no_history(rng):
    data = duet.asarray(rng.normal(size=(20, 3)))
    target = duet.matmul(data, duet.asarray([1.0, -2.0, 0.5])).evaluate()
    w = duet.variable(duet.zeros((3,)))
    live = []
    for _ in range(200):
        loss = duet.mean((duet.matmul(data, w) - target) ** 2)
        w -= 0.2 * duet.grad(loss, w)
        live.append(duet.live())
    assert np.allclose(np.asarray(w), [1, -2, 0.5], atol=1e-3)
    assert live[-1] <= live[20] + 2


def test_errors():
    x = duet.asarray([1.0, 2.0])
    with pytest.raises(ValueError, match='not a variable'):
        duet.grad(duet.sum(x * x), x)
    v = duet.variable(x)
    with pytest.raises(ValueError, match='one element'):
        duet.grad(v * v, v)
    with pytest.raises(TypeError, match='floating-point'):
        duet.grad(lambda n: duet.sum(n))(duet.asarray([1, 2]))
    assert duet.grad(duet.sum(x), v).tolist() == [0.0, 0.0]  # y does not depend on v


def test_other_names_of_a_variable_are_constants():
    x = duet.asarray([1.0, 2.0])
    v = duet.variable(x)
    assert duet.grad(duet.sum(x * v), v).tolist() == [1.0, 2.0]
    assert duet.grad(lambda v: duet.sum(x * x * v))(x).tolist() == [1.0, 4.0]
