"""Errors are exceptions of Python with the text of the library, and nothing changes."""

import numpy as np
import pytest

import duet

X, Y = duet.ones((3,)), duet.ones((2,))
CASES = {
    'shapes': (lambda: X + Y, ValueError, r'duet_add\(x: f64\[3\], y: f64\[2\]\): .* do not broadcast'),
    'types': (lambda: X + duet.asarray([1, 2, 3]), TypeError, r'duet_add.*no common element type'),
    'bools': (lambda: duet.asarray(True) + duet.asarray(False), TypeError, 'duet_add'),
    'fraction': (lambda: duet.asarray([1]) + 0.5, TypeError, 'duet_add'),
    'range': (lambda: duet.asarray([1], dtype=duet.uint8) + 300, ValueError, '300'),
    'floats': (lambda: duet.exp(duet.asarray([1])), TypeError, r'duet_exp\(x: i64\[1\]\)'),
    'matmul': (lambda: duet.matmul(duet.ones((2, 3)), duet.ones((2, 3))), ValueError, 'duet_matmul'),
    'index': (lambda: X[3], IndexError, 'index 3 is out of bounds for axis 0 of size 3'),
    'too many': (lambda: X[0, 0], IndexError, 'too many indices'),
    'large index': (
        lambda: duet.ones((2, 3))[duet.asarray([2**64 - 1], dtype=duet.uint64), duet.asarray([0])].tolist(),
        IndexError,
        'out of bounds',
    ),
    'index array': (lambda: X[duet.asarray([5])].tolist(), IndexError, 'out of bounds'),
    'index arrays': (
        lambda: duet.ones((2, 3))[duet.asarray([0]), duet.asarray([3])].tolist(),
        IndexError,
        'out of bounds',
    ),
    'float index': (lambda: X[1.5], IndexError, 'an index must be'),
    'mask': (lambda: X[duet.asarray([True, False])], IndexError, 'mask'),
    'reshape': (lambda: duet.reshape(X, (2, 2)), ValueError, 'duet_reshape'),
    'axis': (lambda: duet.sum(X, axis=2), IndexError, 'axis 2'),
    'axis twice': (lambda: duet.sum(duet.ones((2, 2)), axis=(0, 0)), ValueError, 'twice'),
    'empty max': (lambda: duet.max(duet.zeros((0,))).evaluate(), ValueError, 'duet_max'),
    'singular': (lambda: duet.linalg.inv(duet.zeros((2, 2))).evaluate(), duet.LinAlgError, 'singular|pivot'),
    'not square': (lambda: duet.linalg.det(duet.ones((2, 3))), ValueError, 'square'),
    'rank': (lambda: duet.zeros((1,) * 9), ValueError, '8'),
    'negative size': (lambda: duet.zeros((-1,)), ValueError, 'negative'),
    'no array': (lambda: duet.sum([1, 2]), TypeError, 'asarray'),
    'object': (lambda: duet.asarray(object()), TypeError, 'cannot convert object'),
    'ragged': (lambda: duet.asarray([[1], [1, 2]]), ValueError, 'equal lengths'),
    'big': (lambda: duet.asarray([256], dtype=duet.uint8), ValueError, '256'),
    'truth': (lambda: bool(X), ValueError, 'ambiguous'),
    'float of many': (lambda: float(X), TypeError, 'one element'),
    'dtype': (lambda: duet.zeros((1,), dtype='float32'), TypeError, 'duet.float32'),
    'promote': (lambda: duet.result_type(duet.int64, duet.float32), TypeError, 'no common type'),
    'window': (lambda: duet.max_pool2d(duet.ones((1, 1, 2, 2))), ValueError, 'duet_max_pool2d'),
    'option': (
        lambda: duet.conv2d(duet.ones((1, 1, 2, 2)), duet.ones((1, 1, 1, 1)), strides=2),
        TypeError,
        'no option strides',
    ),
    'memory': (lambda: duet.ones((2**40,)).evaluate(), MemoryError, 'allocate'),
    'file': (lambda: duet.load('/nonexistent.npy'), OSError, 'nonexistent'),
    'assign type': (lambda: X.__setitem__(0, 1j), TypeError, 'cannot hold'),
    'assign shape': (lambda: X.__setitem__(slice(None), Y), ValueError, 'duet_set|broadcast'),
    'in place shape': (lambda: duet.ones((1,)).__iadd__(X), ValueError, 'in place'),
    'share': (lambda: duet.asarray([1, 2], copy=False), ValueError, 'cannot be shared'),
}


@pytest.mark.parametrize('name', CASES)
def test_error(name):
    call, kind, text = CASES[name]
    before = X.tolist()
    with pytest.raises(kind, match=text) as caught:
        call()
    if isinstance(caught.value, duet.Error) and caught.value.status:
        assert caught.value.status.isupper()
    assert X.tolist() == before == [1.0, 1.0, 1.0]


def test_a_failed_statement_can_be_tried_again():
    m = duet.zeros((2, 2))
    y = duet.linalg.inv(m)
    for _ in range(2):
        with pytest.raises(duet.LinAlgError):
            y.evaluate()
    assert duet.sum(duet.ones((2,))).item() == 2.0


def test_errors_do_not_leak_formulas():
    """Each failure leaves the memory for formulas as it was: 64 MiB would be full after this."""
    for _ in range(20000):
        with pytest.raises(ValueError):
            X + Y
    assert float(duet.sum(X)) == 3.0


def test_shared_memory():
    a = np.arange(4.0)
    x = duet.asarray(a, copy=False)
    x[0] = 9.0
    assert a[0] == 9.0
    a[1] = 5.0
    assert float(x[1]) == 5.0
    b = duet.asarray(a)
    a[1] = 6.0
    assert float(b[1]) == 5.0
    a.flags.writeable = False
    with pytest.raises(ValueError, match='read-only'):
        duet.asarray(a, copy=False)


def test_printing():
    assert str(duet.asarray([1.0, 2.5])) == '[1.  2.5]'
    assert repr(duet.asarray([[1, 2], [3, 4]])) == 'duet.asarray([[1, 2],\n              [3, 4]])'
    assert str(duet.asarray(3)) == '3' and f'{duet.asarray(2.5):.3f}' == '2.500'
    assert str(duet.asarray([True, False])) == '[ True False]'
    for a in (
        [1e-10, 1.0],
        [0.1, 100.0, 3.14159],
        [np.nan, np.inf, 1.0],
        [-1.0, 2.0],
        [1e20, 1.0],
        [0.5],
        [1 / 3],
    ):
        assert str(duet.asarray(a)) == str(np.asarray(a)), a
    big = str(duet.ones((100, 100)))
    assert big == str(np.ones((100, 100)))
    assert str(duet.asarray([1 + 2j, -1j])).replace(' ', '') == str(np.asarray([1 + 2j, -1j])).replace(
        ' ', ''
    )
