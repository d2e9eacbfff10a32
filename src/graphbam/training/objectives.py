"""What is learnt, apart from how: each task knows its network, its batches and its loss. The engine knows the rest."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from graphbam.benchmarks.baselines.avici_net import AviciNet, AviciNetConfig
from graphbam.nn.edge_net import EdgeNet, EdgeNetConfig
from graphbam.nn.immorality_net import ColliderNet, ColliderNetConfig
from graphbam.nn.structures import CANDIDATE, NEIGHBOUR, PARENT
from graphbam.nn.weights import Network
from graphbam.simulation.values import Tables, sample_tables
from graphbam.tables.rows import count_rows_each
from graphbam.training.batch import AnyBatch, ArrowBatch, Batch, ColliderBatch, Shape
from graphbam.training.config import AcyclicityConfig, TrainConfig
from graphbam.training.loss import DualAscent, arrow_loss, collider_loss, edge_loss
from graphbam.training.structures import simulate_structures

Forward = Callable[..., Tensor]


class Objective(NamedTuple):
    """What is minimised, and what is reported."""

    goal: Tensor
    parts: tuple[Tensor, ...]


class Task(Protocol):
    """One kind of network and all that its training needs to know of it."""

    network_kind: Literal["edge", "collider", "avici"]
    reported: tuple[str, ...]
    """Names of the parts of an objective; the first is the loss."""
    state: nn.Module
    """What a task remembers from step to step, as buffers; part of every checkpoint."""

    def network(self, config: TrainConfig) -> Network:
        """A fresh network."""

    def burst(self, rng: torch.Generator, config: TrainConfig, shape: Shape, device: torch.device) -> AnyBatch:
        """`burst` batches of one shape, still in one piece."""

    def objective(self, forward: Forward, batch: Any) -> Objective:
        """Loss of one batch."""

    def example(self, device: torch.device) -> tuple[Tensor, ...]:
        """Inputs of typical size and unrelated dimensions, to compile with."""


class EdgeTask:
    """Classes of all pairs of variables of whole tables."""

    network_kind: Literal["edge", "collider", "avici"] = "edge"
    reported: tuple[str, ...] = ("loss", "classes", "edges", "penalty")
    state = nn.Module()  # nothing to remember

    def network(self, config: TrainConfig) -> Network:
        """An `EdgeNet`."""
        assert isinstance(config.network, EdgeNetConfig)
        return EdgeNet(config.network)

    def burst(self, rng: torch.Generator, config: TrainConfig, shape: Shape, device: torch.device) -> AnyBatch:
        """Simulated tables with the classes of their pairs, as bytes."""
        tables = _tables(rng, config, shape, device)
        rows_b = torch.full((len(tables.x_bmd),), float(shape.n_samples))
        if config.simulation.dependent_rows:  # told as users' tables are, so that what is told means the same
            rows_b = torch.tensor(count_rows_each(tables.x_bmd.cpu().numpy()))
        return Batch(tables.x_bmd, tables.classes_bdd.to(torch.uint8), rows_b.to(device))

    def objective(self, forward: Forward, batch: Any) -> Objective:
        """Mean over pairs, weighed by the size of the tables."""
        assert isinstance(batch, Batch)
        loss = edge_loss(forward(batch.x_bmd, batch.rows_b), batch.classes_bdd)
        total = loss.total()
        return Objective(total * _weight(batch.shape), (total, *loss))

    def example(self, device: torch.device) -> tuple[Tensor, ...]:
        """A few tables, and their rows."""
        return _ramp(7, 401, 83, device=device), torch.full((7,), 401.0, device=device)


class ColliderTask:
    """Common children of pairs of variables, structure by structure."""

    network_kind: Literal["edge", "collider", "avici"] = "collider"
    reported: tuple[str, ...] = ("loss", "children", "others")
    state = nn.Module()  # nothing to remember

    def network(self, config: TrainConfig) -> Network:
        """A `ColliderNet`."""
        assert isinstance(config.network, ColliderNetConfig)
        return ColliderNet(config.network)

    def burst(self, rng: torch.Generator, config: TrainConfig, shape: Shape, device: torch.device) -> AnyBatch:
        """Structures of simulated tables."""
        return simulate_structures(rng, config, shape, device)

    def objective(self, forward: Forward, batch: Any) -> Objective:
        """Every candidate counts the same."""
        assert isinstance(batch, ColliderBatch)
        loss = collider_loss(forward(batch.x_bmd, batch.roles_bd), batch.roles_bd, batch.children_bd)
        return Objective(loss.total, tuple(loss))

    def example(self, device: torch.device) -> tuple[Tensor, ...]:
        """A few structures, all of their columns present."""
        roles = torch.tensor([PARENT] * 2 + [CANDIDATE] * 10 + [NEIGHBOUR] * 12, dtype=torch.uint8, device=device)
        return _ramp(7, 401, len(roles), device=device), roles.repeat(7, 1)


class ArrowTask:
    """Arrows between all ordered pairs of variables of whole tables, by AVICI's network."""

    network_kind: Literal["edge", "collider", "avici"] = "avici"
    reported: tuple[str, ...] = ("loss", "arrows", "cycles", "cycle_weight")

    def __init__(self, config: AcyclicityConfig):
        self.state: nn.Module = DualAscent(config)

    def network(self, config: TrainConfig) -> Network:
        """An `AviciNet`."""
        assert isinstance(config.network, AviciNetConfig)
        return AviciNet(config.network)

    def burst(self, rng: torch.Generator, config: TrainConfig, shape: Shape, device: torch.device) -> AnyBatch:
        """The tables that the edge network sees, with their graphs."""
        tables = _tables(rng, config, shape, device)
        return ArrowBatch(tables.x_bmd, tables.dag_bdd)

    def objective(self, forward: Forward, batch: Any) -> Objective:
        """Mean over ordered pairs plus the penalty on cycles, weighed by the size of the tables."""
        assert isinstance(batch, ArrowBatch)
        assert isinstance(self.state, DualAscent)
        arrows, cycles = arrow_loss(forward(batch.x_bmd), batch.dag_bdd)
        weight = self.state.weight.clone()  # the slope needs this step's weight, which is about to change
        self.state.observe(cycles.detach())
        total = arrows + weight * cycles
        return Objective(total * _weight(batch.shape), (total, arrows, cycles, weight))

    def example(self, device: torch.device) -> tuple[Tensor, ...]:
        """A few tables."""
        return (_ramp(7, 401, 83, device=device),)


def task_of(config: TrainConfig) -> Task:
    """The task that a config describes."""
    if config.acyclicity is not None:
        return ArrowTask(config.acyclicity)
    return EdgeTask() if config.structures is None else ColliderTask()


def _tables(rng: torch.Generator, config: TrainConfig, shape: Shape, device: torch.device) -> Tables:
    """`burst` batches of whole tables."""
    return sample_tables(
        rng,
        config.simulation,
        n_tables=shape.n_tables * config.burst,
        n_variables=shape.n_variables,
        n_samples=shape.n_samples,
        device=device,
    )


def _weight(shape: Shape) -> float:
    """A table of d variables has about d edges among d² pairs: a plain mean over pairs would hush large tables."""
    return (shape.n_variables / 20) ** 0.5


def _ramp(*shape: int, device: torch.device) -> Tensor:
    return torch.linspace(-1, 1, math.prod(shape), device=device).view(shape)
