"""The compiled module: it gives what the functions in Python give, also after it has learned a result, and
its objects are freed."""

import gc
import operator
import threading
import weakref

import numpy as np
import pytest

import duet

pytest.importorskip('_duet_fast')
TYPES = [t for t in duet._dtypes.by_code]
OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.mod,
    operator.pow,
    operator.and_,
    operator.or_,
    operator.xor,
    operator.lshift,
    operator.rshift,
    operator.lt,
    operator.le,
    operator.eq,
    operator.ne,
    operator.gt,
    operator.ge,
    operator.matmul,
]
FUNCTIONS = [operator.neg, abs, operator.invert, duet.exp, duet.floor, duet.sign, duet.isnan, duet.relu]
NUMBERS = [2, 2.0, True, 1j, 2**70, -1]


def outcome(f, *operands):
    """The shape, type and elements of a result, or the text of the error."""
    try:
        x = f(*operands)
        return x.shape, x.dtype, np.asarray(x).tobytes() if x.dtype is not duet.bfloat16 else None
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize('f', OPERATORS, ids=lambda f: f.__name__)
def test_learned_operators(f):
    arrays = [duet.ones((2, 2), dtype=t) for t in TYPES]
    other = [duet.ones((2,), dtype=t) for t in TYPES]
    pairs = [(x, y) for x in arrays for y in arrays + other + NUMBERS] + [
        (y, x) for x in arrays for y in NUMBERS
    ]
    first = [outcome(f, *p) for p in pairs]
    assert [outcome(f, *p) for p in pairs] == first


@pytest.mark.parametrize('f', FUNCTIONS, ids=lambda f: f.__name__)
def test_learned_functions(f):
    arrays = [duet.ones(s, dtype=t) for t in TYPES for s in ((2, 2), (3,), ())]
    assert [outcome(f, x) for x in arrays] == [outcome(f, x) for x in arrays]


def test_the_range_of_integers_is_always_checked():
    x = duet.ones((2,), dtype=duet.int8)
    for _ in range(3):
        assert (x + 1).tolist() == [2, 2] and (1 - x).tolist() == [0, 0]
        with pytest.raises(duet.Error):
            (x + 1000).evaluate()
        with pytest.raises(duet.Error):
            (1000 - x).evaluate()


def test_devices_belong_to_threads():
    x, found = duet.ones((2,)), []
    with duet.on('cpu'):
        thread = threading.Thread(target=lambda: found.append((x + x).device))
        thread.start()
        thread.join()
        y = x + x
        assert y.device is duet.cpu and y.evaluate().tolist() == [2.0, 2.0]
    assert found == [duet.auto] and (x + x).device is duet.auto


def test_threads_share_formulas():
    x = duet.asarray(np.arange(100.0))
    for _ in range(50):
        y = duet.exp(-x) * 2.0 + x
        z, found = y + 1.0, []
        jobs = [threading.Thread(target=lambda a=a: found.append(a.tolist())) for a in (y, z, y, z)]
        for job in jobs:
            job.start()
        for job in jobs:
            job.join()
        assert len(found) == 4 and z.tolist() == [v + 1.0 for v in y.tolist()]


def test_objects_are_freed():
    gc.collect()
    before = duet.live()
    x = duet.asarray(np.arange(3.0))
    seen = weakref.ref(x)
    y = (x + x).evaluate()
    del x
    assert seen() is None and duet.live() == before + 1
    del y
    assert duet.live() == before


def test_cycles_are_collected():
    class Owner(np.ndarray):
        pass

    gc.collect()
    before = duet.live()
    a = np.arange(4.0).view(Owner)
    a.array = duet.asarray(a, copy=False)  # the array keeps its owner
    seen = weakref.ref(a)
    del a
    gc.collect()
    assert seen() is None and duet.live() == before


def test_only_nodes_make_arrays():
    for args in (), (1,), (np.ones(3),):
        with pytest.raises(TypeError):
            duet.Array(*args)
    with pytest.raises(TypeError):
        pow(duet.ones(2), 2.0, 3)
    with pytest.raises(TypeError):
        duet.ones(2) + 'text'
    with pytest.raises(TypeError):
        hash(duet.ones(2))


def test_nodes_that_change_during_evaluate():
    """Another thread gives the array another node: the evaluation keeps the first one."""
    y = duet.asarray([0.5] * 200_000)
    for _ in range(40):
        x = duet.exp(y) * 2.0
        start = threading.Barrier(2)

        def change(x=x, start=start):
            start.wait()
            x[...] = 1.0

        t = threading.Thread(target=change)
        t.start()
        start.wait()
        x.evaluate()
        t.join()
        assert float(x[0]) == 1.0
