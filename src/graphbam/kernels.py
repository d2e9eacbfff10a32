"""Inverses of many small positive definite matrices at once, on whatever hardware the data is on.

`torch.linalg` inverts batches of 55×55 matrices on a GPU at a small fraction of what the chip can do, and the matrix
logarithm needs a dozen inverses a matrix. The Triton kernel in `sweep` keeps one matrix in the registers of one program
and does the whole inversion there: one read, one write.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

LARGEST_SWEEP = 128
"""Matrices above this size do not fit the registers of one program; cuSOLVER takes them."""


def shifted_inverses(s: Tensor, poles: Sequence[float]) -> Tensor:
    """(S + t_j I)⁻¹ for every pole: (..., D, D) → (J, ..., D, D); not differentiable by itself."""
    if s.is_cuda and s.dtype == torch.float32 and s.shape[-1] <= LARGEST_SWEEP and _sweep_kernel() is not None:
        return _sweep(s, pole_tensor(tuple(poles), s.device))
    eye = torch.eye(s.shape[-1], dtype=s.dtype, device=s.device)
    if s.is_cuda:
        shifted = s + poles.view(-1, *[1] * s.ndim) * eye
        return torch.linalg.inv_ex(shifted).inverse
    out = s.new_empty(poles.shape[0], *s.shape)  # one pole at a time: a quarter of the memory of one large call
    for j, pole in enumerate(poles):
        out[j] = torch.cholesky_inverse(torch.linalg.cholesky_ex(s + pole * eye).L)
    return out


@functools.lru_cache
def pole_tensor(poles: tuple[float, ...], device: torch.device) -> Tensor:
    """Poles on a device, copied there once: a copy inside a captured CUDA graph is not allowed."""
    return torch.tensor(poles, dtype=torch.float32, device=device)


def _sweep(s: Tensor, poles: Tensor) -> Tensor:
    d = s.shape[-1]
    flat = s.reshape(-1, d, d).contiguous()
    out = torch.empty(poles.shape[0], *flat.shape, dtype=s.dtype, device=s.device)
    block = max(16, 1 << (d - 1).bit_length())
    warps = {16: 1, 32: 1, 64: 4}.get(block, 8)
    _sweep_kernel()[(flat.shape[0], poles.shape[0])](flat, poles, out, d, flat.shape[0], BLOCK=block, num_warps=warps)
    return out.view(poles.shape[0], *s.shape)


@functools.lru_cache
def _sweep_kernel() -> Any:
    """The kernel, or None where Triton is not installed."""
    try:
        from graphbam.sweep import sweep
    except ImportError:
        return None
    return sweep
