import numpy as np
import pytest

import graphbam as gb


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def sachs():
    """The answer for the shipped table, with directions."""
    return gb.infer(gb.example_path("sachs"), max_rows=300)
