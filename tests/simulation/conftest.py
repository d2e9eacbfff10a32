import pytest
import torch


@pytest.fixture
def rng():
    """One seed: laws here are about many nodes, tables or samples at once."""
    return torch.Generator().manual_seed(0)
