"""The losses: of the three-class edge problem, L = L_c + L_b + L_p over the pairs i > j, and of common children."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from graphbam.structures import CANDIDATE


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
