"""Weights that answer at once: correlations dressed up as classes of pairs and as common children; toy sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

import graphbam as gb
from graphbam.graphs.graph import edge_classes, v_structures
from graphbam.nn.immorality_net import ImmoralityNet, ImmoralityNetConfig
from graphbam.nn.structures import find_structures
from graphbam.nn.weights import Header, save_weights
from graphbam.simulation.config import SimulationConfig

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
"""Sizes of a toy network in any design, for edges or colliders; the switches that make the design stay."""

TINY_HEAD = {"dense_hidden": 7, "pair_layers": 1}
"""The same for what the paper's designs do without."""

TINY_RUN = {
    "simulation": SimulationConfig.preset("paper").narrow(mechanism="linear"),
    "variables": (3, 4, 6),
    "samples": (8, 12, 20),
    "stagger": 1,
    "cells_per_step": 300,
    "max_tables": 6,
    "curriculum_steps": 12,
    "burst": 2,
    "window": 2,
    "warmup_steps": 3,
    "learning_rate": 3e-3,
    "ema_decay": 0.9,
}
"""Settings of a training run that takes milliseconds a step: toy tables, linear worlds."""


@dataclass
class PartialCorrelation:
    """Stand-in for loaded weights: equivariant like the network, and right on linear data."""

    name: str = "stand-in"
    header: Header = field(default_factory=Header)

    def probabilities(self, x_bmd: Tensor, rows: Sequence[float] | None = None) -> Tensor:
        x_bmd = x_bmd.double()
        _, n_samples, n_variables = x_bmd.shape
        covariance = x_bmd.mT @ x_bmd / n_samples
        precision = torch.linalg.inv(covariance + 0.01 * torch.eye(n_variables, dtype=torch.float64))
        scale = precision.diagonal(dim1=-2, dim2=-1).sqrt()
        strength = (precision / (scale[:, :, None] * scale[:, None, :])).abs()
        skeleton = 0.98 * strength / (strength + 0.2)
        moral = (1 - skeleton) * 0.3
        return torch.stack([1 - skeleton - moral, skeleton, moral], dim=-1)


@dataclass
class Spy(PartialCorrelation):
    """The same, remembering the shape of every batch."""

    shapes: list[tuple[int, ...]] = field(default_factory=list)

    def probabilities(self, x_bmd: Tensor) -> Tensor:
        self.shapes.append(tuple(x_bmd.shape))
        return super().probabilities(x_bmd)


class Failing(PartialCorrelation):
    """Weights that raise an error for tables with more columns than `most`."""

    def __init__(self, error, most=0):
        super().__init__()
        self.error, self.most = error, most

    def probabilities(self, x_bmd, rows=None):
        if x_bmd.shape[2] > self.most:
            raise self.error
        return super().probabilities(x_bmd)


@dataclass
class Contrast:
    """Stand-in for loaded collider weights: two variables that depend more given a third than without it have a child.

    Equivariant like the network, and right on linear data; it remembers tables, structures and answers.
    """

    name: str = "contrast"
    header: Header = field(default_factory=Header)
    shapes: list[tuple[int, ...]] = field(default_factory=list)
    asked: list[Any] = field(default_factory=list)
    answers: list[np.ndarray] = field(default_factory=list)

    def pack(self, links_dd, pairs_dd, strength_dd):
        parts = (torch.from_numpy(np.array(part))[None] for part in (links_dd, pairs_dd, strength_dd))
        return find_structures(*parts, max_candidates=3, max_neighbours=12, all_candidates=True)

    def answer(self, x_bmd, asked):
        a, c, b = asked.triples().T
        for x_md in x_bmd:
            r_dd = np.corrcoef(x_md.double().numpy().T)
            self.shapes.append(tuple(x_md.shape))
            self.answers.append(self._judge(r_dd[a, b], r_dd[a, c], r_dd[b, c]))
        self.asked += [tuple(columns[roles > 0].tolist()) for _, columns, roles in zip(*asked, strict=True)]
        return np.mean(self.answers[-len(x_bmd) :], axis=0)

    @staticmethod
    def _judge(ab, ac, bc):
        given = (ab - ac * bc) / np.sqrt((1 - ac**2) * (1 - bc**2))
        return 0.5 + 0.49 * np.tanh(8 * (np.abs(given) - np.abs(ab)))


def randomise(network, rng):
    """Let every weight matter: as initialised, the last layer is zero and hides all others."""
    with torch.no_grad():
        for parameter in network.parameters():
            noise = torch.rand(parameter.shape, generator=rng, dtype=torch.float64) * 2 - 1
            parameter.copy_((0.5 if parameter.ndim > 1 else 0.2) * noise)
    return network


def save_toy_colliders(path, seed=0):
    """Write a collider network of toy size with random weights, each of which matters."""
    network = ImmoralityNet(ImmoralityNetConfig(**(TINY | TINY_HEAD | {"bilinear_layers": 1})))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_((0.6 if parameter.ndim > 1 else 0.2) * torch.randn(parameter.shape, generator=generator))
    save_weights(path, network)
    return path


def tell_truth(n_variables):
    """What networks that are nearly sure would say of a random graph, and its CPDAG."""
    dag, _ = gb.simulate(n_variables=n_variables, n_samples=2, degree=2, seed=n_variables)
    p = np.array([[0.96, 0.02, 0.02], [0.06, 0.92, 0.02], [0.1, 0.1, 0.8]])[edge_classes(dag.adjacency)]
    claims = [(*triple, 0.7 + 0.02 * (k % 10)) for k, triple in enumerate(v_structures(dag.adjacency))]
    return gb.Result(dag.names, p, colliders=claims), dag.to_cpdag()


def arrows_of(result):
    """Edges of the CPDAG by name, rounded probabilities with them."""
    table = result.arrows().round(4)
    return {
        (r.edge, frozenset((r.a, r.b)) if r.edge == "--" else (r.a, r.b)): r.probability for r in table.itertuples()
    }
