"""What is learnt, apart from how: the losses and tasks of the two networks."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from graphbam.errors import ConfigError
from graphbam.nn.cost import Work, forward_work
from graphbam.nn.device import compiled_on_gpu
from graphbam.nn.edge_net import CLASSES, EdgeNet, EdgeNetConfig
from graphbam.nn.immorality_net import ImmoralityNet, ImmoralityNetConfig
from graphbam.nn.structures import CANDIDATE, NEIGHBOUR, PARENT
from graphbam.simulation.values import Shape, Tables
from graphbam.training.config import Forward, Objective, StructureConfig, Task, TrainConfig, register_task
from graphbam.training.data import (
    AnswerBatch,
    Batch,
    StructureBatch,
    draw_tables,
    mark_tables,
    rows_of_tables,
    simulate_structures,
)

SMALL = 8
"""Where directions are learnt, smaller tables weigh as much as those of so many variables: a pair's would be hushed."""

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


@compiled_on_gpu
def edge_loss(logits_bdd3: Tensor, classes_bdd: Tensor) -> EdgeLoss:
    """Loss of symmetric logits against labels 0 none, 1 skeleton, 2 moral.

    Examples
    --------
    >>> logits = torch.zeros(1, 2, 2, 3)
    >>> loss = edge_loss(logits, torch.tensor([[[0, 1], [1, 0]]]))
    >>> round(loss.classes.item(), 4), round(loss.edges.item(), 4)  # log 3 and log 3/2
    (1.0986, 0.4055)
    """
    log_p = logits_bdd3.log_softmax(-1)
    none, skeleton, moral = log_p.unbind(-1)
    chosen = torch.where(classes_bdd == 0, none, torch.where(classes_bdd == 1, skeleton, moral))
    binary = torch.where(classes_bdd == 0, none, torch.logaddexp(skeleton, moral))
    return EdgeLoss(_over_pairs(-chosen), _over_pairs(-binary), _over_pairs(moral_penalty(log_p.exp())))


def _over_pairs(x_bdd: Tensor) -> Tensor:
    """Mean over tables and pairs i > j. A mask, no list of pairs: what is picked by index is put back one by one."""
    d = x_bdd.shape[-1]
    place = torch.arange(d, device=x_bdd.device)
    below = torch.where(place[:, None] > place, x_bdd, 0.0)
    return below.sum((-2, -1)).mean() * (2 / (d * (d - 1)))


def moral_penalty(p_bdd3: Tensor, smooth: float = 1e-4) -> Tensor:
    """max(P_moral − (P_skel P_skel)^½, 0): a moral pair needs a variable adjacent to both.

    `smooth` keeps the slope of the square root finite at zero; nobody is adjacent to itself.
    """
    off_diagonal = 1 - torch.eye(p_bdd3.shape[-2], dtype=p_bdd3.dtype, device=p_bdd3.device)
    skeleton = p_bdd3[..., 1] * off_diagonal
    return (p_bdd3[..., 2] - (skeleton @ skeleton + smooth).sqrt()).clamp_min(0)


class AnswerLoss(NamedTuple):
    """What is learnt beside the classes; each a mean over tables of a mean over pairs."""

    direction: Tensor
    """Cross-entropy of which way true links point, so that with that of classes it is the likelihood of a pair."""
    compelled: Tensor
    """Cross-entropy of what the CPDAG makes of true links: one arrow, the other, or none."""
    hidden: Tensor
    """Half the cross-entropy of hidden common causes."""
    ancestor: Tensor
    """Half the cross-entropy of directed paths."""

    def total(self) -> Tensor:
        """Their sum."""
        return self.direction + self.compelled + self.hidden + self.ancestor


@compiled_on_gpu
def answer_loss(logits_bdd4: Tensor, batch: AnswerBatch) -> AnswerLoss:
    """Loss of the logits of `graphbam.nn.edge_net.ANSWERS`; pairs whose label is −1 do not count.

    Examples
    --------
    One pair, linked and open, without a word about it: log 2, log 3, and half of log 2 twice.

    >>> labels = [torch.zeros(1, 2, 2) for _ in range(5)]
    >>> labels[1][0, 0, 1] = 1
    >>> loss = answer_loss(torch.zeros(1, 2, 2, 4), AnswerBatch(torch.zeros(1, 9, 2), *labels[:2], *labels))
    >>> [round(part.item(), 4) for part in loss]
    [0.6931, 1.0986, 0.3466, 0.3466]
    """
    direction_bdd, compelled_bdd, hidden_bdd, ancestor_bdd = logits_bdd4.unbind(-1)
    d = direction_bdd.shape[-1]
    arrows_bdd = (batch.dag_bdd > 0).to(direction_bdd.dtype)
    n_pairs = d * (d - 1) / 2
    direction = (arrows_bdd * F.softplus(-direction_bdd)).sum((-2, -1)).mean() / n_pairs
    counted = (batch.compelled_bdd >= 0).to(arrows_bdd.dtype) * arrows_bdd
    either = torch.logaddexp(compelled_bdd, compelled_bdd.mT)
    chosen = torch.where(batch.compelled_bdd > 0, compelled_bdd, 0.0)
    compelled = (counted * (F.softplus(either) - chosen)).sum((-2, -1)).mean() / n_pairs
    halves = (
        _ordered_pairs(logits, labels) / 2
        for logits, labels in ((hidden_bdd, batch.hidden_bdd), (ancestor_bdd, batch.ancestors_bdd))
    )
    return AnswerLoss(direction, compelled, *halves)


def _ordered_pairs(logits_bdd: Tensor, labels_bdd: Tensor) -> Tensor:
    """Mean cross-entropy over ordered pairs; those without a label count as predicted rightly."""
    d = logits_bdd.shape[-1]
    apart_dd = 1 - torch.eye(d, dtype=logits_bdd.dtype, device=logits_bdd.device)
    counts = (labels_bdd >= 0) * apart_dd
    losses = F.binary_cross_entropy_with_logits(logits_bdd, (labels_bdd > 0).to(logits_bdd.dtype), reduction="none")
    return (losses * counts).sum((-2, -1)).mean() / (d * (d - 1))


class ChildLoss(NamedTuple):
    """Binary cross-entropy over candidates, and its mean over either kind."""

    total: Tensor
    children: Tensor
    """Over those that are common children; 0 where there are none."""
    others: Tensor
    """Over those that are not."""


def child_loss(logits_bd: Tensor, roles_bd: Tensor, children_bd: Tensor) -> ChildLoss:
    """Loss of one logit per candidate; columns in other roles do not count.

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


class TableTask(Task):
    """What tasks on whole tables share."""

    network_type = EdgeNet

    def example(self, device: torch.device) -> tuple[Tensor, ...]:
        """A few tables, and their rows."""
        return example_tables(7, 402, 83, device=device), torch.full((7,), 402.0, device=device)

    def work(self, config: TrainConfig, shape: Shape) -> Work:
        """That of whole tables."""
        assert isinstance(config.network, EdgeNetConfig)
        return forward_work(config.network, *shape)


@register_task
class EdgeTask(TableTask):
    """Classes of all pairs of variables of whole tables."""

    name = "edges"
    reported = ("loss", "classes", "edges", "penalty")

    def burst(self, rng: torch.Generator, config: TrainConfig, shape: Shape, device: torch.device) -> Batch:
        """Simulated tables with the classes of their pairs, as bytes."""
        tables = simulate_tables(rng, config, shape, device)
        rows_b = count_rows_of(tables, config)
        return Batch(tables.x_bmd, tables.classes_bdd.to(torch.uint8), rows_b.to(device))

    def objective(self, forward: Forward, batch: Any) -> Objective:
        """Mean over pairs, weighed by the size of the tables."""
        assert isinstance(batch, Batch)
        loss = edge_loss(forward(batch.x_bmd, batch.rows_b), batch.classes_bdd)
        total = loss.total()
        return Objective(total * weigh_tables(batch.shape), (total, *loss))


@register_task
class AnswerTask(TableTask):
    """All there is to say of a pair, from tables with marked cells: class, direction, hidden cause, ancestor."""

    name = "answers"
    reported = ("loss", "classes", "edges", "penalty", *AnswerLoss._fields)

    @classmethod
    def check(cls, config: TrainConfig) -> None:
        """The network can read marks and give the answers."""
        super().check(config)
        assert isinstance(config.network, EdgeNetConfig)
        if not (config.network.marks and config.network.answers):
            raise ConfigError("task='answers' needs a network that reads marks and answers: marks=True, answers=True")

    def burst(self, rng: torch.Generator, config: TrainConfig, shape: Shape, device: torch.device) -> AnswerBatch:
        """Simulated tables with all their labels, and marks on cells that were missing or set."""
        tables = simulate_tables(rng, config, shape, device)
        labels = (tables.dag_bdd, tables.compelled_bdd, tables.hidden_bdd, tables.ancestors_bdd)
        rows_b, classes_bdd = count_rows_of(tables, config), tables.classes_bdd.to(torch.uint8)
        return AnswerBatch(tables.x_bmd, mark_tables(tables), rows_b.to(device), classes_bdd, *labels)

    def objective(self, forward: Forward, batch: Any) -> Objective:
        """The paper's loss and that of the other answers, weighed by the size of the tables."""
        assert isinstance(batch, AnswerBatch)
        logits_bdd7 = forward(batch.x_bmd, batch.rows_b, batch.marks_bmd)
        n_classes = len(CLASSES)
        classes = edge_loss(logits_bdd7[..., :n_classes], batch.classes_bdd)
        answers = answer_loss(logits_bdd7[..., n_classes:], batch)
        total = classes.total() + answers.total()
        return Objective(total * weigh_tables(batch.shape, SMALL), (total, *classes, *answers))

    def example(self, device: torch.device) -> tuple[Tensor, ...]:
        """A few tables, their rows and marks."""
        x_bmd, rows_b = super().example(device)
        return x_bmd, rows_b, torch.zeros_like(x_bmd, dtype=torch.uint8)


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
    return draw_tables(
        rng,
        config.simulation,
        n_tables=shape.n_tables * config.burst,
        n_variables=shape.n_variables,
        n_samples=shape.n_samples,
        device=device,
    )


def count_rows_of(tables: Tables, config: TrainConfig) -> Tensor:
    """Independent rows of each table, counted as for users' tables where a simulation has dependent ones."""
    if config.simulation.dependent_rows:
        return torch.tensor(rows_of_tables(tables))
    return torch.full((len(tables.x_bmd),), float(tables.x_bmd.shape[1]))


def weigh_tables(shape: Shape, fewest: int = 1) -> float:
    """A table of d variables has about d edges among d² pairs: a plain mean over pairs would hush large tables.

    Those of up to `fewest` variables all weigh the same.
    """
    return (max(shape.n_variables, fewest) / 20) ** 0.5


def example_tables(*shape: int, device: torch.device) -> Tensor:
    """Tables of any shape: a ramp, which needs no generator."""
    return torch.linspace(-1, 1, math.prod(shape), device=device).view(shape)
