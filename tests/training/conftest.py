"""A collider run that takes milliseconds a step."""

import pytest

from graphbam.collider import ColliderNetConfig
from graphbam.simulation.config import SimulationConfig
from graphbam.training import TrainConfig
from graphbam.training.config import StructureConfig

TINY = {
    "channels": 6,
    "heads": 2,
    "attribute_layers": 1,
    "sample_layers": 1,
    "dense_layers": 1,
    "dense_hidden": 7,
    "spd_channels": 4,
    "spd_heads": 2,
    "bilinear_layers": 1,
    "pair_layers": 1,
    "pair_channels": 5,
    "product_channels": 2,
    "max_candidates": 2,
    "max_neighbours": 3,
}


@pytest.fixture(scope="session")
def tiny_collider():
    """A toy network on small structures of linear worlds; `network` and `structures` are changed by their fields."""

    def make(network=None, structures=None, **changes):
        settings = {
            "network": ColliderNetConfig(**(TINY | (network or {}))),
            "structures": StructureConfig(**({"widths": (4, 7)} | (structures or {}))),
            "simulation": SimulationConfig.preset("paper").narrow(mechanism="linear"),
            "variables": (5, 8),
            "samples": (8, 12),
            "cells_per_step": 400,
            "max_tables": 8,
            "curriculum_steps": 12,
            "burst": 2,
            "window": 2,
            "warmup_steps": 3,
            "learning_rate": 3e-3,
            "ema_decay": 0.9,
        }
        return TrainConfig.collider(**(settings | changes))

    return make
