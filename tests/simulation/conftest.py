import pytest
import torch


@pytest.fixture(params=range(3))
def rng(request):
    return torch.Generator().manual_seed(request.param)
