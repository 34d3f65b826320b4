"""The committed table of the C interface is that of the headers, and every function in it exists."""

import subprocess
import sys
from pathlib import Path

import pytest

import duet
from duet._library import lib
from duet._table import FUNCTIONS

HERE = Path(__file__).resolve().parent


@pytest.mark.skipif(not (HERE.parent.parent / 'include').exists(), reason='needs the sources')
def test_the_table_is_current(tmp_path):
    subprocess.run(
        [sys.executable, '-B', HERE.parent / 'tools' / 'make_table.py', tmp_path / 'table.py'], check=True
    )
    assert (tmp_path / 'table.py').read_text() == (HERE.parent / 'duet' / '_table.py').read_text()


def test_every_function_exists():
    assert lib.missing == []


def test_every_operator_is_a_function():
    others = {
        'fft',
        'of_matrix',
        'of_number',
        'of_integer',
        'of_unsigned',
        'of_expr',
        'hold',
        'index',
        'cast',
        'append',
        'range',
        'broadcast',
        'permute',
        'part',
        'pick',
        'bitwise_not',
        'shift_left',
        'shift_right',
        'neg',
        'sub',
        'mul',
        'div',
        'iota',
        'einsum_list',
    }
    ends = '_axis', '_keep', '_axes', '_axes_keep'
    for name, row in FUNCTIONS.items():
        apart = name in others or name.startswith('sparse_') or name.endswith(ends)
        if row[0] == 'e' and not apart:
            assert callable(getattr(duet, name)), name


def test_some_operators():
    x = duet.asarray([[1.0, -2.0], [0.0, 3.0]])
    assert duet.relu(x).tolist() == [[1.0, 0.0], [0.0, 3.0]]
    assert duet.leaky_relu(x, 0.5).tolist() == [[1.0, -1.0], [0.0, 3.0]]
    assert duet.logsumexp(x, axis=1, keepdims=True).shape == (2, 1)
    assert duet.median(x).item() == 0.5 and duet.quantile(x, 0.5, axis=0).shape == (2,)
    image = duet.ones((1, 1, 4, 4), dtype=duet.float32)
    assert duet.max_pool2d(image, window=2).shape == (1, 1, 2, 2)
    assert duet.conv2d(image, duet.ones((2, 1, 3, 3), dtype=duet.float32), pad=(1, 1)).shape == (1, 2, 4, 4)
    assert duet.pad(x, before=(1, 0), after=(0, 1)).shape == (3, 3)
    assert duet.einsum(x, x, 'ij,jk->ik').tolist() == duet.matmul(x, x).tolist()
    assert duet.one_hot(duet.asarray([0, 2]), 3, duet.float32).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert duet.random.uniform((3,), 1).tolist() == duet.random.uniform((3,), 1).tolist()
    with pytest.raises(TypeError):
        duet.softmax(x, 1, 2)
