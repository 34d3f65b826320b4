"""Random cases of many operators, compared with NumPy and SciPy. random_cases.py runs more of them."""

import subprocess
import sys
from pathlib import Path

import pytest


def test_random_cases(rng):
    pytest.importorskip('scipy')
    script, seed = Path(__file__).with_name('random_cases.py'), int(rng.integers(2**31))
    made = subprocess.run(
        [sys.executable, script, '--count', '300', '--seed', str(seed)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
