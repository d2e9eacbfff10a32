"""What is learnt, apart from how: the losses and tasks of the two networks."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from graphbam.errors import ConfigError
from graphbam.nn.cost import Work, forward_work
from graphbam.nn.edge_net import EdgeNet, EdgeNetConfig
from graphbam.nn.immorality_net import ImmoralityNet, ImmoralityNetConfig
from graphbam.nn.structures import CANDIDATE, NEIGHBOUR, PARENT
from graphbam.simulation.values import Tables, sample_tables
from graphbam.tables.rows import count_rows_each
from graphbam.training.config import Forward, Objective, StructureConfig, Task, TrainConfig, register_task
from graphbam.training.data import Batch, Shape, StructureBatch, simulate_structures

# ── losses ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class EdgeLoss(NamedTuple):
    """The three parts, each a mean over pairs and tables."""

    classes: Tensor
    """L_c: cross-entropy of none · skeleton · moral."""
    edges: Tensor
    """L_b: cross-entropy of any edge against none."""
    penalty: Tensor
    """L_p: moral probability without a possible common child."""

    def total(self) -> Tensor:
        """Their sum."""
        return self.classes + self.edges + self.penalty


def edge_loss(logits_bdd3: Tensor, classes_bdd: Tensor) -> EdgeLoss:
    """Loss of symmetric logits against labels 0 none, 1 skeleton, 2 moral.

    Examples
    --------
    >>> logits = torch.zeros(1, 2, 2, 3)
    >>> loss = edge_loss(logits, torch.tensor([[[0, 1], [1, 0]]]))
    >>> round(loss.classes.item(), 4), round(loss.edges.item(), 4)  # log 3 and log 3/2
    (1.0986, 0.4055)
    """
    d = classes_bdd.shape[-1]
    rows, columns = torch.tril_indices(d, d, -1, device=logits_bdd3.device).unbind(0)
    log_p = logits_bdd3.log_softmax(-1)
    log_pairs, labels = log_p[..., rows, columns, :], classes_bdd[..., rows, columns]
    log_edge = log_pairs[..., 1:].logsumexp(-1)
    binary = torch.where(labels > 0, log_edge, log_pairs[..., 0])
    penalty = moral_penalty(log_p.exp())[..., rows, columns]
    return EdgeLoss(F.nll_loss(log_pairs.flatten(0, -2), labels.flatten()), -binary.mean(), penalty.mean())


def moral_penalty(p_bdd3: Tensor, smooth: float = 1e-4) -> Tensor:
    """max(P_moral − (P_skel P_skel)^½, 0): a moral pair needs a variable adjacent to both.

    `smooth` keeps the slope of the square root finite at zero; nobody is adjacent to itself.
    """
    off_diagonal = 1 - torch.eye(p_bdd3.shape[-2], dtype=p_bdd3.dtype, device=p_bdd3.device)
    skeleton = p_bdd3[..., 1] * off_diagonal
    return (p_bdd3[..., 2] - (skeleton @ skeleton + smooth).sqrt()).clamp_min(0)


class ChildLoss(NamedTuple):
    """Binary cross-entropy over candidates, and its mean over either kind."""

    total: Tensor
    children: Tensor
    """Over those that are common children; 0 where there are none."""
    others: Tensor
    """Over those that are not."""


def child_loss(logits_bd: Tensor, roles_bd: Tensor, children_bd: Tensor) -> ChildLoss:
    """Loss of one logit a candidate; columns in other roles do not count.

    Examples
    --------
    >>> roles = torch.tensor([[1, 1, 2, 2, 3, 0]])
    >>> loss = child_loss(torch.zeros(1, 6), roles, torch.tensor([[0, 0, 1, 0, 0, 0]]))
    >>> [round(part.item(), 4) for part in loss]  # log 2 each
    [0.6931, 0.6931, 0.6931]
    """
    truth_bd = children_bd.to(logits_bd.dtype)
    losses_bd = F.binary_cross_entropy_with_logits(logits_bd, truth_bd, reduction="none")
    asked_bd = (roles_bd == CANDIDATE).to(logits_bd.dtype)
    weights = (asked_bd, asked_bd * truth_bd, asked_bd * (1 - truth_bd))
    return ChildLoss(*((losses_bd * weight).sum() / weight.sum().clamp_min(1) for weight in weights))


# ── tasks ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@register_task
class EdgeTask(Task):
    """Classes of all pairs of variables of whole tables."""

    name = "edges"
    network_type = EdgeNet
    reported = ("loss", "classes", "edges", "penalty")

    def burst(self, rng: torch.Generator, config: TrainConfig, shape: Shape, device: torch.device) -> Batch:
        """Simulated tables with the classes of their pairs, as bytes."""
        tables = simulate_tables(rng, config, shape, device)
        rows_b = torch.full((len(tables.x_bmd),), float(shape.n_samples))
        if config.simulation.dependent_rows:  # counted as for users' tables, so that the numbers mean the same
            rows_b = torch.tensor(count_rows_each(tables.x_bmd.cpu().numpy()))
        return Batch(tables.x_bmd, tables.classes_bdd.to(torch.uint8), rows_b.to(device))

    def objective(self, forward: Forward, batch: Any) -> Objective:
        """Mean over pairs, weighed by the size of the tables."""
        assert isinstance(batch, Batch)
        loss = edge_loss(forward(batch.x_bmd, batch.rows_b), batch.classes_bdd)
        total = loss.total()
        return Objective(total * weigh_tables(batch.shape), (total, *loss))

    def example(self, device: torch.device) -> tuple[Tensor, ...]:
        """A few tables, and their rows."""
        return example_tables(7, 401, 83, device=device), torch.full((7,), 401.0, device=device)

    def work(self, config: TrainConfig, shape: Shape) -> Work:
        """That of whole tables."""
        assert isinstance(config.network, EdgeNetConfig)
        return forward_work(config.network, *shape)


@register_task
class ImmoralityTask(Task):
    """Common children of pairs of variables, structure by structure."""

    name = "immoralities"
    network_type = ImmoralityNet
    settings_type = StructureConfig
    reported = ("loss", "children", "others")

    @classmethod
    def check(cls, config: TrainConfig) -> None:
        """The largest structure fits the widest batch."""
        super().check(config)
        assert isinstance(config.network, ImmoralityNetConfig)
        widest, most = cls.widths(config)[-1], config.network.max_width
        if widest < most:
            found = f"widths end at {widest}, but a structure may have {most} columns"
            raise ConfigError(f"{found}; add a width, or lower max_candidates or max_neighbours of the network")

    @staticmethod
    def widths(config: TrainConfig) -> tuple[int, ...]:
        """Those of structures."""
        assert isinstance(config.settings, StructureConfig)
        return config.settings.widths

    def workers(self, cores: int) -> int:
        """Edge weights whose mistakes are learnt from run on the training device: a CPU would be far too slow."""
        return super().workers(cores) if self.settings.edges is None else 0

    def burst(self, rng: torch.Generator, config: TrainConfig, shape: Shape, device: torch.device) -> StructureBatch:
        """Structures of simulated tables."""
        return simulate_structures(rng, config, shape, device)

    def objective(self, forward: Forward, batch: Any) -> Objective:
        """Every candidate counts the same."""
        assert isinstance(batch, StructureBatch)
        loss = child_loss(forward(batch.x_bmd, batch.roles_bd), batch.roles_bd, batch.children_bd)
        return Objective(loss.total, tuple(loss))

    def example(self, device: torch.device) -> tuple[Tensor, ...]:
        """A few structures, all of their columns present."""
        roles = torch.tensor([PARENT] * 2 + [CANDIDATE] * 10 + [NEIGHBOUR] * 12, dtype=torch.uint8, device=device)
        return example_tables(7, 401, len(roles), device=device), roles.repeat(7, 1)

    def work(self, config: TrainConfig, shape: Shape) -> Work:
        """That of structures."""
        assert isinstance(config.network, ImmoralityNetConfig)
        return forward_work(config.network, *shape)


def simulate_tables(rng: torch.Generator, config: TrainConfig, shape: Shape, device: torch.device) -> Tables:
    """`burst` batches of whole tables."""
    return sample_tables(
        rng,
        config.simulation,
        n_tables=shape.n_tables * config.burst,
        n_variables=shape.n_variables,
        n_samples=shape.n_samples,
        device=device,
    )


def weigh_tables(shape: Shape) -> float:
    """A table of d variables has about d edges among d² pairs: a plain mean over pairs would hush large tables."""
    return (shape.n_variables / 20) ** 0.5


def example_tables(*shape: int, device: torch.device) -> Tensor:
    """Tables of any shape: a ramp, which needs no generator."""
    return torch.linspace(-1, 1, math.prod(shape), device=device).view(shape)
