"""The losses: of three classes of edges, L = L_c + L_b + L_p over the pairs i > j; of common children; of arrows."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphbam.nn.structures import CANDIDATE
from graphbam.training.config import AcyclicityConfig

DOUBLINGS = 10
"""Squarings that lead to the spectral radius."""


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


class ColliderLoss(NamedTuple):
    """Binary cross-entropy over candidates, and its mean over either kind."""

    total: Tensor
    children: Tensor
    """Over those that are common children; 0 where there are none."""
    others: Tensor
    """Over those that are not."""


def collider_loss(logits_bd: Tensor, roles_bd: Tensor, children_bd: Tensor) -> ColliderLoss:
    """Loss of one logit a candidate; columns in other roles do not count.

    Examples
    --------
    >>> roles = torch.tensor([[1, 1, 2, 2, 3, 0]])
    >>> loss = collider_loss(torch.zeros(1, 6), roles, torch.tensor([[0, 0, 1, 0, 0, 0]]))
    >>> [round(part.item(), 4) for part in loss]  # log 2 each
    [0.6931, 0.6931, 0.6931]
    """
    truth_bd = children_bd.to(logits_bd.dtype)
    losses_bd = F.binary_cross_entropy_with_logits(logits_bd, truth_bd, reduction="none")
    asked_bd = (roles_bd == CANDIDATE).to(logits_bd.dtype)
    weights = (asked_bd, asked_bd * truth_bd, asked_bd * (1 - truth_bd))
    return ColliderLoss(*((losses_bd * weight).sum() / weight.sum().clamp_min(1) for weight in weights))


class ArrowLoss(NamedTuple):
    """What AVICI's network learns from, each part a mean over tables."""

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
