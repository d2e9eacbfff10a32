"""Noise families, one row per node.

A family is a function ``(rng, n_nodes, n_samples) -> e_nm``; whatever parameters it has are drawn for each
row. Scale and location do not matter, since rows are standardised later (except by ``mixing="literal"``).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

Noise = Callable[[torch.Generator, int, int], Tensor]

NOISES: dict[str, Noise] = {}
"""Noise families by name."""

_TINY = 1e-7  # keeps logarithms of uniform draws finite in float32


def noise(name: str) -> Callable[[Noise], Noise]:
    """Register a noise family under `name`.

    Examples
    --------
    >>> @noise("coin")
    ... def coin(rng, n_nodes, n_samples):
    ...     return uniform(rng, n_nodes, n_samples).sign()
    >>> sample_noise(torch.Generator().manual_seed(0), "coin", 2, 3).abs()
    tensor([[1., 1., 1.],
            [1., 1., 1.]])
    >>> del NOISES["coin"]
    """

    def register(draw: Noise) -> Noise:
        NOISES[name] = draw
        return draw

    return register


def sample_noise(rng: torch.Generator, name: str, n_nodes: int, n_samples: int) -> Tensor:
    """Rows of noise of one family, each with a sign drawn at random.

    Returns
    -------
    Tensor, shape (n_nodes, n_samples)
        On the generator's device.

    Examples
    --------
    >>> rng = torch.Generator().manual_seed(0)
    >>> sample_noise(rng, "gumbel", 4, 1000).shape
    torch.Size([4, 1000])
    """
    e_nm = NOISES[name](rng, n_nodes, n_samples)
    return torch.where(rand(rng, n_nodes, 1) < 0.5, e_nm, -e_nm)


@noise("mixture")
def mixture(rng: torch.Generator, n_nodes: int, n_samples: int) -> Tensor:
    """The paper's Gaussian mixture: 1 to 5 parts, means U[−1,1], sds U[.05,1], weights U[.3,1]."""
    n_parts_n1 = 1 + (rand(rng, n_nodes, 1) * 5).floor()
    mean_n5, sd_n5, weight_n5 = rand(rng, 3, n_nodes, 5).unbind()
    weight_n5 = (0.3 + 0.7 * weight_n5) * (torch.arange(5, device=rng.device) < n_parts_n1)
    bounds_n5 = weight_n5.cumsum(1) / weight_n5.sum(1, keepdim=True)
    part_nm = torch.searchsorted(bounds_n5[:, :4].contiguous(), rand(rng, n_nodes, n_samples) * (1 - _TINY))
    e_nm = randn(rng, n_nodes, n_samples)
    return (2 * mean_n5 - 1).gather(1, part_nm) + (0.05 + 0.95 * sd_n5).gather(1, part_nm) * e_nm


@noise("gaussian")
def gaussian(rng: torch.Generator, n_nodes: int, n_samples: int) -> Tensor:
    """Standard normal."""
    return randn(rng, n_nodes, n_samples)


@noise("uniform")
def uniform(rng: torch.Generator, n_nodes: int, n_samples: int) -> Tensor:
    """Uniform on [−1, 1]."""
    return 2 * rand(rng, n_nodes, n_samples) - 1


@noise("laplace")
def laplace(rng: torch.Generator, n_nodes: int, n_samples: int) -> Tensor:
    """Double exponential."""
    u_nm = uniform(rng, n_nodes, n_samples)
    return -u_nm.sign() * torch.log1p(-u_nm.abs() * (1 - _TINY))


@noise("student")
def student(rng: torch.Generator, n_nodes: int, n_samples: int) -> Tensor:
    """Student t with 3 to 10 degrees of freedom ν, as √(ν(U^(−2/ν) − 1)) · cos 2πV."""
    df_n1 = 3 + 7 * rand(rng, n_nodes, 1)
    u_nm = rand(rng, n_nodes, n_samples).clamp(min=_TINY)
    radius_nm = (df_n1 * (u_nm ** (-2 / df_n1) - 1)).clamp(min=0).sqrt()
    return radius_nm * torch.cos(2 * math.pi * rand(rng, n_nodes, n_samples))


@noise("exponential")
def exponential(rng: torch.Generator, n_nodes: int, n_samples: int) -> Tensor:
    """Exponential, mean moved to 0."""
    return -torch.log1p(-rand(rng, n_nodes, n_samples) * (1 - _TINY)) - 1


@noise("gumbel")
def gumbel(rng: torch.Generator, n_nodes: int, n_samples: int) -> Tensor:
    """Gumbel (extreme values), mean moved to 0."""
    u_nm = rand(rng, n_nodes, n_samples).clamp(_TINY, 1 - _TINY)
    return -torch.log(-torch.log(u_nm)) - 0.5772156649


def autocorrelate(e_nm: Tensor, phi_n: Tensor, n_doublings: int = 7) -> Tensor:
    """Turn independent rows into AR(1) processes, e_t ← φ e_{t−1} + √(1−φ²) e_t.

    The recurrence is unrolled by doubling, y_t ← y_t + φ^(2^k) y_{t−2^k}, which reaches back
    2^n_doublings − 1 steps; what lies further back weighs less than φ^128.

    Examples
    --------
    >>> e_nm = autocorrelate(torch.tensor([[1.0, 0.0, 0.0, 0.0]]), torch.tensor([0.5]))
    >>> (e_nm / e_nm[0, 0]).tolist()
    [[1.0, 0.5, 0.25, 0.125]]
    """
    phi_n1 = phi_n[:, None]
    start_n1 = e_nm[:, :1]  # already has the stationary variance
    y_nm = torch.cat([start_n1, (1 - phi_n1.square()).sqrt() * e_nm[:, 1:]], 1)
    for k in range(n_doublings):
        lag = 2**k
        if lag >= y_nm.shape[1]:
            break
        y_nm = torch.cat([y_nm[:, :lag], y_nm[:, lag:] + phi_n1**lag * y_nm[:, :-lag]], 1)
    return y_nm


def rand(rng: torch.Generator, *shape: int) -> Tensor:
    """Uniform draws on [0, 1), on the generator's device."""
    return torch.rand(*shape, generator=rng, device=rng.device)


def randn(rng: torch.Generator, *shape: int) -> Tensor:
    """Standard normal draws on the generator's device."""
    return torch.randn(*shape, generator=rng, device=rng.device)
