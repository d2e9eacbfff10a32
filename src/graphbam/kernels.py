"""Inverses of many small positive definite matrices at once, on whatever hardware the data is on.

`torch.linalg` inverts batches of 55×55 matrices on a GPU at a small fraction of what the chip can do, and the matrix
logarithm needs a dozen inverses a matrix. Here a Triton kernel (`sweep`) keeps a matrix of up to 32×32 in the registers
of one warp and does the whole inversion there; larger matrices are put together from halves by products.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

SWEEP_SIZE = 32
"""Largest matrix that one warp inverts in its registers; larger ones are inverted by halves."""


def shifted_inverses(s: Tensor, poles: Sequence[float]) -> Tensor:
    """(S + t_j I)⁻¹ for every pole: (..., D, D) → (J, ..., D, D); not differentiable by itself."""
    eye = torch.eye(s.shape[-1], dtype=s.dtype, device=s.device)
    if s.is_cuda and s.dtype == torch.float32 and _sweep_kernel() is not None:
        shifts = _pole_tensor(tuple(poles), s.device)
        return invert_by_halves(s + shifts.view(-1, *[1] * s.ndim) * eye)
    if s.is_cuda:
        return torch.stack([torch.linalg.inv_ex(s + pole * eye).inverse for pole in poles])
    out = s.new_empty(len(poles), *s.shape)  # one pole at a time: a fraction of the memory of one large call
    for j, pole in enumerate(poles):
        out[j] = torch.cholesky_inverse(torch.linalg.cholesky_ex(s + pole * eye).L)
    return out


def invert_by_halves(s: Tensor) -> Tensor:
    """Inverse of positive definite matrices (..., D, D) through blocks, down to the size that one warp sweeps.

    With S = [[A, B], [Bᵀ, C]], W = A⁻¹ B and the Schur complement T = C − Bᵀ W, the inverse is
    [[A⁻¹ + W T⁻¹ Wᵀ, −W T⁻¹], [−T⁻¹ Wᵀ, T⁻¹]]: two inverses of half the size and four products.
    """
    d = s.shape[-1]
    if d <= SWEEP_SIZE:
        return _sweep(s)
    half = SWEEP_SIZE * -(-d // (2 * SWEEP_SIZE))
    b = s[..., :half, half:]
    a_inverse = invert_by_halves(s[..., :half, :half])
    w = a_inverse @ b
    t_inverse = invert_by_halves(s[..., half:, half:] - b.mT @ w)
    out = torch.empty_like(s, memory_format=torch.contiguous_format)
    corner = w @ t_inverse
    out[..., :half, :half] = a_inverse + corner @ w.mT
    out[..., :half, half:] = -corner
    out[..., half:, :half] = -corner.mT
    out[..., half:, half:] = t_inverse
    return out


@functools.lru_cache
def _pole_tensor(poles: tuple[float, ...], device: torch.device) -> Tensor:
    """Poles on a device, copied there once: a copy inside a captured CUDA graph is not allowed."""
    return torch.tensor(poles, dtype=torch.float32, device=device)


def _sweep(s: Tensor) -> Tensor:
    d = s.shape[-1]
    flat = s.reshape(-1, d, d)
    out = torch.empty(flat.shape, dtype=s.dtype, device=s.device)
    block = max(16, 1 << (d - 1).bit_length())
    _sweep_kernel()[(flat.shape[0],)](flat, out, d, flat.stride(0), flat.stride(1), BLOCK=block, num_warps=1)
    return out.view(s.shape)


@functools.lru_cache
def _sweep_kernel() -> Any:
    """The kernel, or None where Triton is not installed."""
    try:
        from graphbam.sweep import sweep
    except ImportError:
        return None
    return sweep
