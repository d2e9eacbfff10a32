"""Muon: momentum whose matrices are made orthogonal by Newton–Schulz steps before they move the weights."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of the odd polynomial that is iterated: singular values come close to one quickly, and stay between 0.6 and 1.3."""


def orthogonalise(g_nrc: Tensor, steps: int = 5) -> Tensor:
    """Matrices with the same singular vectors and singular values of about one: (N, R, C) → (N, R, C).

    Products run in bfloat16 on a GPU, where five steps then cost next to nothing.

    Examples
    --------
    >>> g_nrc = torch.randn(1, 3, 8, generator=torch.Generator().manual_seed(0))
    >>> values = torch.linalg.svdvals(orthogonalise(g_nrc))
    >>> bool(values.min() > 0.6), bool(values.max() < 1.3)
    (True, True)
    """
    a, b, c = COEFFICIENTS
    x = g_nrc.bfloat16() if g_nrc.is_cuda else g_nrc
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        s = x @ x.mT
        x = a * x + (b * s + c * s @ s) @ x
    return (x.mT if tall else x).to(g_nrc.dtype)


class Muon(torch.optim.Optimizer):
    """Updates of size 0.2 √max(rows, columns), about that of AdamW's: both take the same rate and weight decay.

    Parameters with more than two axes are stacks of matrices. Like AdamW's fused kernel it looks at `found_inf`: where
    that is set, weights and momentum stay as they were. It never asks the device anything, so steps can be captured.
    """

    found_inf: Tensor | None = None

    def __init__(self, parameters: Iterable[Tensor], lr: Tensor, weight_decay: float, momentum: float = 0.95):
        super().__init__(parameters, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Move all weights once; all matrices of one shape are made orthogonal together."""
        assert closure is None
        for group in self.param_groups:
            by_shape: dict[tuple[int, int], list[Tensor]] = {}
            for p in group["params"]:
                by_shape.setdefault((p.shape[-2], p.shape[-1]), []).append(p)
            for same in by_shape.values():
                self._move(same, **{name: group[name] for name in ("lr", "weight_decay", "momentum")})

    def _move(self, weights: list[Tensor], lr: Tensor, weight_decay: float, momentum: float) -> None:
        """Matrices of one shape, all by the same few kernels: there are hundreds of them, and launches are dear."""
        rows, columns = weights[0].shape[-2:]
        bad = torch.zeros_like(lr) if self.found_inf is None else self.found_inf
        ahead_nrc = self._push(weights, bad, momentum)
        rate = lr * (1 - bad)
        update_nrc = rate * (0.2 * max(rows, columns) ** 0.5) * orthogonalise(ahead_nrc)
        torch._foreach_mul_(weights, 1 - rate * weight_decay)
        torch._foreach_sub_(weights, _cut_like(weights, update_nrc))

    def _push(self, weights: list[Tensor], bad: Tensor, momentum: float) -> Tensor:
        """Add gradients to the momentum; return where the next step would take it (Nesterov's look ahead)."""
        gradient_nrc = torch.where(bad > 0, 0.0, _stack([p.grad for p in weights if p.grad is not None]))
        moments = [self.state[p].setdefault("momentum", torch.zeros_like(p)) for p in weights]
        torch._foreach_mul_(moments, torch.where(bad > 0, 1.0, momentum))
        torch._foreach_add_(moments, _cut_like(weights, gradient_nrc))
        return gradient_nrc + momentum * _stack(moments)


def _stack(weights: list[Tensor]) -> Tensor:
    """All matrices of one shape, (N, R, C)."""
    return torch.cat([p.reshape(-1, *p.shape[-2:]) for p in weights])


def _cut_like(weights: list[Tensor], stack_nrc: Tensor) -> list[Tensor]:
    """Inverse of `_stack`."""
    parts = stack_nrc.split([p.shape[:-2].numel() for p in weights])
    return [part.view(p.shape) for part, p in zip(parts, weights, strict=True)]
