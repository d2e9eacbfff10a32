"""A run of the second network that takes milliseconds a step."""

import pytest

from graphbam.nn.immorality_net import ImmoralityNetConfig
from graphbam.training import TrainConfig
from graphbam.training.config import StructureConfig
from standins import TINY, TINY_HEAD, TINY_RUN

SMALL = {"bilinear_layers": 1, "max_candidates": 2, "max_neighbours": 3}


@pytest.fixture(scope="session")
def tiny_immoralities():
    """A toy network on small structures of linear worlds; `network` and `settings` are changed by their fields."""

    def make(network=None, settings=None, **changes):
        parts = TINY_RUN | {
            "network": ImmoralityNetConfig(**(TINY | TINY_HEAD | SMALL | (network or {}))),
            "settings": StructureConfig(**({"widths": (4, 7)} | (settings or {}))),
            "variables": (5, 8),
            "samples": (8, 12),
            "cells_per_step": 400,
            "max_tables": 8,
        }
        return TrainConfig.immoralities(**(parts | changes))

    return make
