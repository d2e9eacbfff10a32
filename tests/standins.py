"""Weights that answer at once: partial correlations dressed up as three classes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor


@dataclass
class PartialCorrelation:
    """Stand-in for loaded weights: equivariant like the network, and right on linear data."""

    name: str = "stand-in"
    header: dict[str, Any] = field(default_factory=dict)

    def probabilities(self, x_bmd: Tensor) -> Tensor:
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
