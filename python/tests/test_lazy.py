"""When formulas are computed, what shares a statement, and that values do not change under pending
formulas."""

import gc
import inspect
import threading

import numpy as np
import pytest

import duet


def plans():
    """How many statements with a plan the library has run."""
    counts = duet.stats()
    return counts.plan_hits + counts.plan_misses


def steps():
    return duet.stats().steps


@pytest.fixture(params=['auto', 'cpu'])
def x(request):
    """With a GPU, the library makes plans for both devices where it chooses, so plans are counted on the
    CPU."""
    if request.param == 'cpu' or 'plans()' in inspect.getsource(request.function):
        with duet.on('cpu'):
            yield made()
    else:
        yield made()


def made():
    return duet.asarray(np.linspace(0, 1, 1000)).evaluate()


def test_nothing_is_computed_before_it_is_needed(x):
    before = plans()
    y = duet.sum(duet.exp(x) * 2.0 + x)
    assert plans() == before and not y.is_evaluated and y.shape == () and y.dtype is duet.float64
    value = float(y)
    assert plans() == before + 1 and y.is_evaluated
    assert float(y) == value and plans() == before + 1
    assert abs(value - np.sum(np.exp(np.asarray(x)) * 2 + np.asarray(x))) < 1e-9


def test_a_chain_is_one_step(x):
    before = steps()
    (duet.sqrt(x * x + 1.0) - duet.sin(x) / 3.0).evaluate()
    assert steps() == before + 1


def test_dropped_formulas_cost_nothing(x):
    before = plans()
    y = duet.exp(x)
    del y
    assert plans() == before


def test_shared_subformulas_are_computed_once(x):
    e = duet.exp(x)
    y, z = e + 1.0, e * 2.0
    before = plans()
    y.evaluate()
    assert e.is_evaluated and not z.is_evaluated  # somebody still has a name for e
    assert plans() == before + 1
    z.evaluate()
    assert plans() == before + 2
    assert np.array_equal(np.asarray(z), np.asarray(e) * 2)


def test_intermediates_without_a_name_are_not_stored(x):
    def f(x):
        a = x * 3.0
        b = a + duet.cos(a)
        return b * b

    y = f(x)
    before = duet.live()
    y.evaluate()
    assert duet.live() == before + 1


def test_several_results_in_one_statement(x):
    y, z = duet.exp(x), duet.sum(duet.exp(x))
    before = plans()
    duet.evaluate(y, z)
    assert y.is_evaluated and z.is_evaluated and plans() == before + 1


def test_pending_formulas_keep_old_values(x):
    y = x + 1.0
    view = x[:3]
    x[0] = 100.0
    x += 1.0
    assert float(y[0]) == 1.0 and float(view[0]) == 0.0 and float(x[0]) == 101.0


def test_assignment_is_in_place_if_nobody_else_has_the_value(x):
    address = x._node.matrix.pointer
    x[5] = 3.0
    assert x._node.matrix.pointer == address
    y = x[...]
    x[5] = 4.0
    assert x._node.matrix.pointer != address and float(y[5]) == 3.0 and float(x[5]) == 4.0


def test_numpy_keeps_its_value(x):
    a = np.asarray(x)
    assert not a.flags.writeable
    x[0] = 7.0
    assert a[0] == 0.0


def test_long_chains_are_cut():
    x = duet.asarray(1.0)
    for _ in range(5000):
        x = x + 1.0
    assert float(x) == 5001
    y = duet.asarray([1.0, 1.0])
    for _ in range(60):
        y = (y + y) * 0.5  # a tree of 2^60 operators, and a graph of 120
    assert y.tolist() == [1.0, 1.0]


def test_many_results_at_once(x):
    parts = [x * float(k) for k in range(600)]
    duet.evaluate(*parts)
    assert all(p.is_evaluated for p in parts) and float(parts[599][-1]) == 599.0


def test_deep_graphs_are_freed_without_recursion():
    x = duet.variable(duet.asarray(1.0))
    y = x
    for _ in range(20000):
        y = y + 1.0
    assert float(y) == 20001
    del y


def test_matrices_are_freed(x):
    gc.collect()
    before = duet.live()
    for _ in range(100):
        y = duet.exp(x)
        y[0] = float(duet.sum(y))
        np.asarray(y)
        duet.linalg.qr(duet.ones((3, 3)))
        y[duet.asarray([0, 1])] = 0.0
        del y
    gc.collect()
    assert duet.live() == before


def test_threads(x):
    results = [None] * 8

    def work(k):
        y = x
        for _ in range(50):
            y = (y + float(k)) * 0.5
        results[k] = float(duet.sum(y))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k in range(8):
        y = np.asarray(x)
        for _ in range(50):
            y = (y + k) * 0.5
        assert abs(results[k] - y.sum()) < 1e-9


def test_a_formula_of_one_thread_is_evaluated_in_another(x):
    y = duet.exp(x)
    box = []
    t = threading.Thread(target=lambda: box.append(float(duet.sum(y))))
    t.start()
    t.join()
    assert abs(box[0] - np.exp(np.asarray(x)).sum()) < 1e-9


def test_explain(x):
    y = duet.exp(x) * x
    text = duet.explain(y)
    assert 'duet_mul(duet_exp(A), A)' in text and 'CPU' in text and not y.is_evaluated


def test_devices(x):
    info = duet.__array_namespace_info__()
    assert info.default_device() in info.devices()
    x = duet.asarray(x, device='auto')
    y = duet.ones((2, 2), device='cpu')
    assert y.device is duet.cpu and (y + 1.0).device is duet.cpu and x.device is duet.auto
    with duet.on('cpu'):
        z = x + 1.0
    assert z.device is duet.cpu and 'on the CPU' in duet.explain(z)
    z.evaluate()
    with pytest.raises(ValueError, match='no such device'):
        duet.ones((2,), device='tpu')
    if duet.gpu not in info.devices():
        gpu = x.to_device('gpu')
        with pytest.raises(ValueError, match='cpu and gpu'):
            gpu + y[0, 0]
        with pytest.raises(duet.DeviceError):
            (gpu + 1.0).evaluate()


# ---- recordings ----------------------------------------------------------------------------------


def test_record(x):
    y = duet.asarray(x, copy=True)
    step = duet.record(lambda a, b: (duet.sum(a * b), a + b), x, y)
    total, both = step.outputs
    assert abs(float(total) - np.sum(np.asarray(x) * np.asarray(y))) < 1e-9
    x[...] = 2.0
    before = duet.stats().replays
    step()
    assert duet.stats().replays == before + 1
    assert abs(float(total) - 2 * np.asarray(y).sum()) < 1e-9
    assert np.array_equal(np.asarray(both), 2 + np.asarray(y))
    step(duet.ones((1000,)), y)
    assert abs(float(step.outputs[0]) - np.asarray(y).sum()) < 1e-9


def test_record_updates_in_place():
    w, x = duet.ones((3,)), duet.asarray([1.0, 2.0, 3.0])

    def step(w, x):
        w -= 0.1 * (w - x)

    run = duet.record(step, w, x)
    want = np.ones(3)
    for _ in range(1):
        want -= 0.1 * (want - np.array([1, 2, 3.0]))
    assert np.allclose(np.asarray(w), want)
    for _ in range(30):
        run()
        want -= 0.1 * (want - np.array([1, 2, 3.0]))
    assert np.allclose(np.asarray(w), want)


def test_a_failed_recording_leaves_the_thread_usable(x):
    def bad(x):
        x.evaluate()
        raise RuntimeError('no')

    with pytest.raises(RuntimeError):
        duet.record(bad, x)
    assert duet.record(lambda x: x + 1.0, x).outputs.shape == (1000,)


# ---- parts of an array ---------------------------------------------------------------------------


def test_writing_to_a_part_writes_to_the_array():
    a, x = np.arange(24.0).reshape(2, 3, 4), duet.reshape(duet.arange(24.0), (2, 3, 4)).evaluate()

    def f(x, xp):
        y = x[1]
        y += 100.0
        z = y[::2, 1:]
        z[0, 0] = -1.0
        x[1, 2, 1] = 7.0
        z *= 2.0  # sees the assignment before it
        xp.reshape(x, (-1,))[3] = 5.0
        x[0].T[1, 2] = 8.0
        for row in x[0]:
            row -= 1.0
        return x

    assert np.array_equal(np.asarray(f(x, duet)), f(a, np))


def test_a_copy_is_no_part():
    x = duet.arange(3.0)
    y = duet.asarray(x[:2], copy=True)
    y += 1.0
    z = x[duet.asarray([0, 1])]
    z += 1.0
    w = x + 0.0
    w[0] = 9.0
    assert x.tolist() == [0.0, 1.0, 2.0] and y.tolist() == [1.0, 2.0]


def test_threads_that_evaluate_the_same_formulas():
    """Each of them finds the value, whoever computes it."""
    failures = []
    for trial in range(30):
        x = duet.asarray(np.linspace(0, 1, 50))
        shared = [duet.exp(x * float(k)) for k in range(6)]
        total = shared[0]
        for s in shared[1:]:
            total = total + s
        barrier = threading.Barrier(6)

        def work(k):
            try:
                barrier.wait()
                for j in range(6):
                    y = shared[(j + k) % 6] * 2.0 + total
                    want = 2 * np.exp(np.linspace(0, 1, 50) * ((j + k) % 6))
                    want = want + sum(np.exp(np.linspace(0, 1, 50) * i) for i in range(6))
                    assert np.allclose(np.asarray(y), want)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not failures, failures[0]
