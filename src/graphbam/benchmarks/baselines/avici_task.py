"""How AVICI's network is trained, in graphbam's own engine: its loss, its penalty on cycles, its task, `"arrows"`."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphbam.benchmarks.baselines.avici_net import AviciNet, AviciNetConfig
from graphbam.errors import ConfigError
from graphbam.nn.cost import Work
from graphbam.nn.network import Config
from graphbam.simulation.values import Shape
from graphbam.training.config import Forward, Objective, Task, TrainConfig, register_task
from graphbam.training.objectives import example_tables, simulate_tables, weigh_tables

DOUBLINGS = 10
"""Squarings that lead to the spectral radius."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class AcyclicityConfig(Config):
    """How the penalty on cycles gains weight. The original's schedule of 300,000 steps, scaled to 30,000."""

    burn_in: int = 5_000
    """Steps without the penalty."""
    every: int = 50
    """Steps from one rise of its weight to the next."""
    rate: float = 1e-4
    """A rise, in multiples of the mean penalty since the last."""

    def __post_init__(self) -> None:
        if self.burn_in < 0 or self.every < 1 or self.rate < 0:
            found = f"burn_in={self.burn_in}, every={self.every}, rate={self.rate}"
            raise ConfigError(f"{found}, but every must be at least 1 and the others cannot be negative")


def arrow_config(**changes: Any) -> TrainConfig:
    """AVICI's network on equal terms with the paper's: the same tables and shapes, the same optimiser.

    That optimiser is AdamW, where the original has LAMB; the rate is lower than that of the paper's network, as
    this one has five times the weights.
    """
    parts = {"task": "arrows", "network": AviciNetConfig(), "settings": AcyclicityConfig(), "learning_rate": 3e-4}
    return TrainConfig.paper(**(parts | changes))


class ArrowLoss(NamedTuple):
    """What the network learns from, each part a mean over tables."""

    arrows: Tensor
    """Binary cross-entropy over all ordered pairs."""
    cycles: Tensor
    """Spectral radius of the probabilities: zero where no cycle has any."""


def arrow_loss(logits_bdd: Tensor, dag_bdd: Tensor) -> ArrowLoss:
    """Loss of one logit an ordered pair; the diagonal does not count.

    Examples
    --------
    >>> loss = arrow_loss(torch.zeros(1, 3, 3), torch.zeros(1, 3, 3))
    >>> [round(part.item(), 2) for part in loss]  # log 2; three variables that all cause each other at one half
    [0.69, 1.0]
    """
    d = dag_bdd.shape[-1]
    apart_dd = 1 - torch.eye(d, dtype=logits_bdd.dtype, device=logits_bdd.device)
    truth_bdd = dag_bdd.to(logits_bdd.dtype)
    losses_bdd = F.binary_cross_entropy_with_logits(logits_bdd, truth_bdd, reduction="none") * apart_dd
    arrows = losses_bdd.sum((-2, -1)).mean() / (d * (d - 1))
    return ArrowLoss(arrows, spectral_radius(logits_bdd.sigmoid() * apart_dd).mean())


def spectral_radius(a_bdd: Tensor, doublings: int = DOUBLINGS) -> Tensor:
    """Largest absolute eigenvalue of matrices without negative entries, (..., D, D) → (...).

    Gelfand's formula, ρ ≈ (1ᵀ Aⁿ 1)^(1/n), at n = 2^doublings: power iteration, but n steps by a few squarings. It is
    zero exactly where the paths of a graph end before n arrows, and too large by a factor of about D^(1/n). The
    slopes are those of the formula; each power is scaled to its largest entry, which changes neither.

    Examples
    --------
    >>> cycle, path = torch.tensor([[0.0, 0.5], [0.5, 0.0]]), torch.tensor([[0.0, 0.5], [0.0, 0.0]])
    >>> round(spectral_radius(cycle).item(), 3), spectral_radius(path).item()
    (0.5, 0.0)
    """
    tiny = torch.finfo(a_bdd.dtype).tiny
    power_bdd, log_scale_b = a_bdd, a_bdd.new_zeros(a_bdd.shape[:-2])
    for _ in range(doublings):
        size_b = power_bdd.detach().amax((-2, -1)).clamp_min(tiny)
        power_bdd = power_bdd / size_b[..., None, None]
        power_bdd, log_scale_b = power_bdd @ power_bdd, 2 * (log_scale_b + size_b.log())
    total_b = power_bdd.sum((-2, -1))
    radius_b = ((log_scale_b + total_b.clamp_min(tiny).log()) / 2**doublings).exp()
    return torch.where(total_b > 0, radius_b, 0.0)


class DualAscent(nn.Module):
    """Weight λ of the penalty on cycles in L = arrows + λ · cycles: it rises for as long as there are any.

    Lives on the device and never asks it anything, so that a captured step goes on raising it. Under `torchrun` every
    process follows its own tables.
    """

    weight: Tensor
    total: Tensor
    step: Tensor

    def __init__(self, config: AcyclicityConfig):
        super().__init__()
        self.config = config
        self.register_buffer("weight", torch.zeros(()))
        self.register_buffer("total", torch.zeros(()))  # of the penalties since the last rise
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))

    @torch.no_grad()
    def observe(self, cycles: Tensor) -> None:
        """Count one step with its penalty; one that is not finite counts as none."""
        self.step += 1
        self.total += torch.where(cycles.isfinite(), cycles, 0.0)
        ends = self.step % self.config.every == 0
        rises = ends & (self.step > self.config.burn_in)
        self.weight += rises * (self.config.rate / self.config.every) * self.total
        self.total *= ~ends


class ArrowBatch(NamedTuple):
    """Tables with their graphs: 1 at [i, j] for i → j."""

    x_bmd: Tensor
    dag_bdd: Tensor

    @property
    def shape(self) -> Shape:
        """Tables, samples, variables."""
        return Shape(*self.x_bmd.shape)

    def ready(self) -> ArrowBatch:
        """Bytes are all that the loss needs."""
        return self


@register_task
class ArrowTask(Task):
    """Arrows between all ordered pairs of variables of whole tables."""

    name = "arrows"
    network_type = AviciNet
    settings_type = AcyclicityConfig
    reported = ("loss", "arrows", "cycles", "cycle_weight")

    def __init__(self, settings: AcyclicityConfig):
        super().__init__(settings)
        self.state: DualAscent = DualAscent(settings)

    def burst(self, rng: torch.Generator, config: TrainConfig, shape: Shape, device: torch.device) -> ArrowBatch:
        """The tables that the edge network sees, with their graphs."""
        tables = simulate_tables(rng, config, shape, device)
        return ArrowBatch(tables.x_bmd, tables.dag_bdd)

    def objective(self, forward: Forward, batch: Any) -> Objective:
        """Mean over ordered pairs plus the penalty on cycles, weighed by the size of the tables."""
        assert isinstance(batch, ArrowBatch)
        arrows, cycles = arrow_loss(forward(batch.x_bmd), batch.dag_bdd)
        weight = self.state.weight.clone()  # the slope needs this step's weight, which is about to change
        self.state.observe(cycles.detach())
        total = arrows + weight * cycles
        return Objective(total * weigh_tables(batch.shape), (total, arrows, cycles, weight))

    def example(self, device: torch.device) -> tuple[Tensor, ...]:
        """A few tables."""
        return (example_tables(7, 401, 83, device=device),)

    def work(self, config: TrainConfig, shape: Shape) -> Work:
        """That of whole tables, and of the penalty."""
        assert isinstance(config.network, AviciNetConfig)
        return forward_work(config.network, *shape)


def forward_work(config: AviciNetConfig, n_tables: int, n_samples: int, n_variables: int) -> Work:
    """Work of a forward pass; half of the blocks attend over either axis."""
    c, inner, cells = config.channels, config.heads * config.key_size, n_tables * n_samples * n_variables
    layers = 4 * 2 * c * inner + 2 * 2 * config.widening * c * c  # four projections, two dense layers
    attention = 4 * inner * (-(-config.blocks // 2) * n_variables + config.blocks // 2 * n_samples)
    pairs = n_tables * n_variables**2
    return Work(
        products=cells * (config.blocks * layers + attention),
        definite=pairs * 2 * (c + DOUBLINGS * n_variables),
        bytes=2 * 2 * c * cells * 2 * config.blocks,
    )
