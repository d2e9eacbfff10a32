"""Fixtures shared by the whole suite: seeded generators, random definite matrices, networks small enough to test."""

import pytest
import torch

from graphbam.network import DESIGNS, EdgeNet
from graphbam.simulation.config import SimulationConfig
from graphbam.training import TrainConfig

torch.set_num_threads(1)  # toy sizes: threads would only wait for each other, and for the other test process

TINY = {
    "channels": 6,
    "heads": 2,
    "attribute_layers": 1,
    "sample_layers": 1,
    "dense_layers": 1,
    "spd_channels": 4,
    "spd_heads": 2,
    "bilinear_layers": 2,
    "pair_channels": 5,
    "product_channels": 2,
}


@pytest.fixture(params=range(3))
def rng(request):
    return torch.Generator().manual_seed(request.param)


@pytest.fixture
def random_spd(rng):
    """Random positive definite matrices: shape (..., D) → (..., D, D)."""

    def make(*shape):
        a = torch.randn(*shape, 2 * shape[-1], generator=rng, dtype=torch.float64)
        return a @ a.mT / a.shape[-1]

    return make


@pytest.fixture(scope="session")
def tiny_config():
    """A named design with the sizes of a toy; the switches that make the design stay."""

    def make(design="default", **changes):
        sizes = dict(TINY)
        if design == "default":
            sizes |= {"dense_hidden": 7, "pair_layers": 1}
        return DESIGNS[design](**(sizes | changes))

    return make


@pytest.fixture(scope="session")
def tiny_net(tiny_config):
    """A toy network whose every weight matters: as initialised, the last layer is zero and hides all others."""

    def make(rng, design="default", *, dtype=torch.float64, **changes):
        net = EdgeNet(tiny_config(design, **changes)).to(dtype)
        with torch.no_grad():
            for parameter in net.parameters():
                spread = 0.5 if parameter.ndim > 1 else 0.2
                noise = torch.rand(parameter.shape, generator=rng, dtype=torch.float64) * 2 - 1
                parameter.copy_(spread * noise)
        return net

    return make


@pytest.fixture(scope="session")
def tiny_training(tiny_config):
    """A training run that takes milliseconds a step: toy network, toy tables, linear worlds."""

    def make(**changes):
        settings = {
            "network": tiny_config(),
            "simulation": SimulationConfig.preset("paper").narrow(mechanism="linear"),
            "variables": (3, 4, 6),
            "samples": (8, 12, 20),
            "stagger": 1,
            "cells_per_step": 300,
            "max_tables": 6,
            "curriculum_start": 0.5,
            "curriculum_steps": 12,
            "burst": 2,
            "window": 2,
            "warmup_steps": 3,
            "learning_rate": 3e-3,
            "ema_decay": 0.9,
        }
        return TrainConfig(**(settings | changes))

    return make
