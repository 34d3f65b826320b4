"""The programs of docs/python.md run, and those of the network compute the same numbers."""

import re
from pathlib import Path

import numpy as np
import pytest

import duet

PAGE = Path(__file__).resolve().parents[2] / 'docs' / 'python.md'
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason='needs the sources')


def blocks():
    text = PAGE.read_text() if PAGE.exists() else ''
    found = re.finditer(r'(<!-- test: no -->\n)?```python\n(.*?)```', text, re.S)
    return [m[2] for m in found if not m[1]]


@pytest.mark.parametrize('number', range(len(blocks())))
def test_block(number):
    exec(compile(blocks()[number], f'block {number} of python.md', 'exec'), {})


def test_the_networks_agree(rng):
    steps = []
    for block in blocks():
        if 'def step' in block:
            names = {}
            exec(block, names)
            steps.append(names['step'])
    shapes = (4, 5), (5,), (5, 2), (2,), (7, 4), (7, 2)
    data = [rng.normal(size=s) for s in shapes]
    mine = [duet.variable(duet.asarray(a)) for a in data[:4]] + [duet.asarray(a) for a in data[4:]]
    for _ in range(5):
        steps[0](*data)
        steps[1](*mine)
    run = duet.record(steps[1], *mine)  # runs the step once
    run()
    steps[0](*data)
    steps[0](*data)
    for a, b in zip(data, mine):
        assert np.allclose(a, np.asarray(b), rtol=1e-10, atol=1e-12)


def test_links():
    """Pages that the page links to exist."""
    for target in re.findall(r'\]\((?!http)([^)#]+)', PAGE.read_text()):
        assert (PAGE.parent / target).exists(), target
