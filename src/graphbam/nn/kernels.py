"""Inverses of many small positive definite matrices at once, on whatever hardware the data is on.

`torch.linalg` inverts batches of 55×55 matrices on a GPU at a small fraction of what the chip can do, and the matrix
logarithm needs a dozen inverses a matrix. Here S⁻¹ = Kᵀ K, and K, the inverse of the Cholesky factor, is put together
from halves by products; a Triton kernel (`factor`) makes blocks of up to 32×32 in the registers of one warp.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

BLOCK_SIZE = 32
"""Largest matrix that one warp factorises in its registers; larger ones are put together from halves."""


def shifted_inverses(s: Tensor, poles: Sequence[float]) -> Tensor:
    """(S + t_j I)⁻¹ for every pole: (..., D, D) → (J, ..., D, D); not differentiable by itself."""
    eye = torch.eye(s.shape[-1], dtype=s.dtype, device=s.device)
    if s.is_cuda and s.dtype == torch.float32 and _factor_kernel() is not None:
        shifts = _pole_tensor(tuple(poles), s.device)
        k = inverse_factor(s + shifts.view(-1, *[1] * s.ndim) * eye, floor=min(poles) / 2)
        return k.mT @ k
    if s.is_cuda:
        return torch.stack([torch.linalg.inv_ex(s + pole * eye).inverse for pole in poles])
    out = s.new_empty(len(poles), *s.shape)  # one pole at a time: a fraction of the memory of one large call
    for j, pole in enumerate(poles):
        out[j] = torch.cholesky_inverse(torch.linalg.cholesky_ex(s + pole * eye).L)
    return out


def whitener(s: Tensor, floor: float) -> Tensor:
    """`inverse_factor` on any hardware; without the kernel it is differentiable, and `floor` is not needed."""
    if s.is_cuda and not s.requires_grad and _factor_kernel() is not None:
        return inverse_factor(s, floor)
    eye = torch.eye(s.shape[-1], dtype=s.dtype, device=s.device).expand_as(s)
    return torch.linalg.solve_triangular(torch.linalg.cholesky_ex(s).L, eye, upper=False)


def inverse_factor(s: Tensor, floor: float) -> Tensor:
    """Lower triangular K with K S Kᵀ = I, for positive definite matrices (..., D, D), so that S⁻¹ = Kᵀ K.

    Pivots below `floor` are raised to it: one is never below the smallest eigenvalue, so half of that is a floor which
    only rounding reaches. The smallest eigenvalue should be well above rounding itself, about 1e-6 of the largest.
    """
    k = torch.zeros_like(s, memory_format=torch.contiguous_format)
    d = s.shape[-1]
    _factor_into(k.view(-1, d, d), s.reshape(-1, d, d), floor)
    return k


def _factor_into(k: Tensor, s: Tensor, floor: float) -> None:
    """Write K by halves: with S = [[A, B], [Bᵀ, C]] and V = K_A B it is [[K_A, 0], [−K_T Vᵀ K_A, K_T]], T = C − Vᵀ V.

    The inverse itself could be put together by halves with fewer products, but its errors would grow with the square of
    B where A is nearly singular: 253 in an entry of 90, for correlations of 100 variables in 20 samples.
    """
    d = s.shape[-1]
    if d <= BLOCK_SIZE:
        _factor_block(k, s, floor)
        return
    half = BLOCK_SIZE * -(-d // (2 * BLOCK_SIZE))
    k_a, k_t = k[:, :half, :half], k[:, half:, half:]
    _factor_into(k_a, s[:, :half, :half], floor)
    v = k_a @ s[:, :half, half:]
    _factor_into(k_t, s[:, half:, half:] - v.mT @ v, floor)
    torch.matmul(k_t, v.mT @ k_a, out=k[:, half:, :half]).neg_()


@functools.lru_cache
def _pole_tensor(poles: tuple[float, ...], device: torch.device) -> Tensor:
    """Poles on a device, copied there once: a copy inside a captured CUDA graph is not allowed."""
    return torch.tensor(poles, dtype=torch.float32, device=device)


def _factor_block(k: Tensor, s: Tensor, floor: float) -> None:
    d = s.shape[-1]
    block = max(16, 1 << (d - 1).bit_length())
    strides = (s.stride(0), s.stride(1), k.stride(0), k.stride(1))
    _factor_kernel()[(len(s),)](s, k, d, *strides, floor, BLOCK=block, num_warps=1)


@functools.lru_cache
def _factor_kernel() -> Any:
    """The kernel, or None where Triton is not installed."""
    try:
        from graphbam.nn._triton import invert_factor
    except ImportError:
        return None
    return invert_factor
