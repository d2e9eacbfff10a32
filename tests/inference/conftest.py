"""Tables with known links and directions, and small networks to infer them with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import graphbam as gb
from graphbam.inference.networks import open_colliders
from graphbam.inference.settings import COLLIDERS
from graphbam.nn.edge_net import EdgeNet, EdgeNetConfig
from graphbam.nn.weights import load_colliders, load_weights, save_weights
from standins import Contrast, PartialCorrelation, save_toy_colliders

TINY = EdgeNetConfig(
    channels=8, heads=2, attribute_layers=1, sample_layers=1, dense_layers=1, dense_hidden=8, spd_channels=4,
    spd_heads=2, bilinear_layers=1, pair_layers=1, pair_channels=8, product_channels=4,
)  # fmt: skip


@pytest.fixture(scope="session")
def tiny_path(tmp_path_factory):
    """A real network with random weights, in a real file."""
    network = EdgeNet(TINY)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    path = tmp_path_factory.mktemp("weights") / "tiny.safetensors"
    save_weights(path, network)
    return path


@pytest.fixture(params=["stand-in", "network"])
def weights(request, tiny_path):
    return PartialCorrelation() if request.param == "stand-in" else load_weights(tiny_path)


@pytest.fixture(autouse=True)
def no_shipped_colliders(request, monkeypatch):
    """Directions are found where a test asks for them; the rest holds with and without, and is faster without."""

    def open_others(colliders, device):
        return None if colliders == COLLIDERS else open_colliders(colliders, device)

    if "shipped" not in request.fixturenames:
        monkeypatch.setattr("graphbam.inference.networks.open_colliders", open_others)


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 5))
    x[:, 1] += 1.5 * x[:, 0]
    x[:, 2] += x[:, 1] - x[:, 3]
    return pd.DataFrame(x, columns=list("abcde"))


@pytest.fixture(scope="session")
def toy_colliders(tmp_path_factory):
    return save_toy_colliders(tmp_path_factory.mktemp("weights") / "toy.safetensors")


@pytest.fixture(params=["stand-in", "network"])
def colliders(request, toy_colliders):
    return Contrast() if request.param == "stand-in" else load_colliders(toy_colliders)


@pytest.fixture
def ask_all(monkeypatch):
    """No pair is too obvious to be asked about: the frame has but one collider, and it is."""
    monkeypatch.setattr("graphbam.directions.immoralities.OBVIOUS_FROM", 2.0)


@pytest.fixture
def collider_frame(ask_all):
    """a → c ← b, c → d → e, and f apart: the collider decides everything but nothing about f."""
    noise = np.random.default_rng(6).normal(size=(400, 6))
    a, b, f = noise[:, 0], noise[:, 1], noise[:, 5]
    c = a + b + 0.5 * noise[:, 2]
    d = c + noise[:, 3]
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": d, "e": d + noise[:, 4], "f": f})


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A package that comes with both weights."""
    edges = Path(gb.__file__).parent / "weights" / "edges.safetensors"
    (tmp_path / "edges.safetensors").write_bytes(edges.read_bytes())
    save_toy_colliders(tmp_path / "colliders.safetensors")
    monkeypatch.setattr("graphbam.nn.weights._shipped", lambda: tmp_path)
