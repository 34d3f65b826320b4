"""Tests of the Python package. They need numpy, pytest and array-api-strict. The random cases depend on the
seed that the first line prints; set DUET_TEST_SEED to repeat a run, and DUET_TEST_CASES for more cases."""

import os
import random

import numpy as np
import pytest

SEED = int(os.environ.get('DUET_TEST_SEED', random.randrange(2**32)))
CASES = int(os.environ.get('DUET_TEST_CASES', 200))


def pytest_report_header():
    return f'DUET_TEST_SEED={SEED} DUET_TEST_CASES={CASES}'


@pytest.fixture
def rng(request):
    return np.random.default_rng([SEED, *request.node.name.encode()])


@pytest.fixture
def cases():
    return CASES
