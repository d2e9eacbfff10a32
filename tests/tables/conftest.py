"""What tests of tables share."""

import numpy as np
import pytest

from cases import SEEDS


@pytest.fixture(params=SEEDS)
def rng(request):
    return np.random.default_rng(request.param)


@pytest.fixture
def x_md(rng):
    return rng.normal(size=(100, 4))
