"""A collider run that takes milliseconds a step."""

import pytest

from graphbam.nn.immorality_net import ColliderNetConfig
from graphbam.training import TrainConfig
from graphbam.training.config import StructureConfig
from standins import TINY, TINY_HEAD, TINY_RUN

SMALL = {"bilinear_layers": 1, "max_candidates": 2, "max_neighbours": 3}


@pytest.fixture(scope="session")
def tiny_collider():
    """A toy network on small structures of linear worlds; `network` and `structures` are changed by their fields."""

    def make(network=None, structures=None, **changes):
        settings = TINY_RUN | {
            "network": ColliderNetConfig(**(TINY | TINY_HEAD | SMALL | (network or {}))),
            "structures": StructureConfig(**({"widths": (4, 7)} | (structures or {}))),
            "variables": (5, 8),
            "samples": (8, 12),
            "cells_per_step": 400,
            "max_tables": 8,
        }
        return TrainConfig.collider(**(settings | changes))

    return make
