"""Functions on symmetric positive (semi-)definite matrices, shape (..., D, D).

The matrix logarithm comes in two forms. `logm` is the fast one and the default: a sum of twelve resolvents,

    log S ≈ c₀ I + Σ_j c_j t_j (S + t_j I)⁻¹,

whose poles t_j are spread evenly in log t and whose weights c_j are fitted once by least squares. Over eigenvalues
1e-4 … 1000 it is within 2e-4 of the logarithm. The resolvents are ridge-regularised precision matrices and useful
features in their own right (`resolvents`). `logm_exact` goes through the eigendecomposition, with gradients by divided
differences, so that equal eigenvalues are harmless: the reference against which the fast one is tested.

Inverses of many small matrices at once are half of the work. `torch.linalg` inverts batches of 55×55 matrices on a GPU
at a small fraction of what the chip can do, and the logarithm needs a dozen inverses of each matrix. There S⁻¹ = Kᵀ K,
and K, the inverse of the Cholesky factor, is put together from halves by products; a Triton kernel (`_triton`) makes
blocks of up to 32×32 in the registers of one warp.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

BLOCK_SIZE = 32
"""Largest matrix that one warp factorises in its registers; larger ones are put together from halves."""

CELLS_AT_ONCE = 2**20
"""Entries of matrices that a CPU inverts in one call: 4 MB."""

LOG_POLES = 12
"""Number of resolvents in the fast logarithm."""

LOG_RANGE = (1e-4, 1e3)
"""Eigenvalues over which the fast logarithm is fitted; smaller ones are treated as a little above zero."""


def symmetrise(s: Tensor) -> Tensor:
    """Average of a matrix and its transpose: rounding errors in S and Sᵀ then agree to the last bit.

    Examples
    --------
    >>> symmetrise(torch.tensor([[1.0, 2.0], [4.0, 1.0]]))
    tensor([[1., 3.],
            [3., 1.]])
    """
    return (s + s.mT) / 2


def covariance(x_cmd: Tensor) -> Tensor:
    """Sample covariance over the second last axis: (..., M, D) → (..., D, D), divided by M − 1.

    Examples
    --------
    >>> covariance(torch.tensor([[0.0, 1.0], [2.0, 5.0]]))
    tensor([[2., 4.],
            [4., 8.]])
    """
    x_cmd = x_cmd - x_cmd.mean(-2, keepdim=True)
    return x_cmd.mT @ x_cmd / max(x_cmd.shape[-2] - 1, 1)


def correlate(s: Tensor, ridge: float = 0.0) -> Tensor:
    """Scale to unit diagonal, D^-½ S D^-½, after adding `ridge` to the diagonal.

    Examples
    --------
    >>> correlate(torch.tensor([[4.0, 1.0], [1.0, 1.0]]))
    tensor([[1.0000, 0.5000],
            [0.5000, 1.0000]])
    """
    if ridge:
        s = s + ridge * torch.eye(s.shape[-1], dtype=s.dtype, device=s.device)
    scale = s.diagonal(dim1=-2, dim2=-1).rsqrt()
    return s * scale[..., :, None] * scale[..., None, :]


def spd_softmax(s: Tensor) -> Tensor:
    r"""Symmetric softmax Λ^½ exp[S] Λ^½ with Λ = diag(1 / exp[S] 1), which keeps matrices positive semi-definite.

    Parameters
    ----------
    s : Tensor, shape (..., D, D)
        Symmetric positive semi-definite matrices.

    Returns
    -------
    Tensor, shape (..., D, D)
        Positive entries; the largest eigenvalue is exactly 1 (Theorem 1), and adding a constant to `s` changes nothing.

    Examples
    --------
    >>> a = spd_softmax(torch.diag(torch.tensor([0.0, 1.0, 900.0])))
    >>> round(torch.linalg.eigvalsh(a)[-1].item(), 4)
    1.0
    """
    lse = s.logsumexp(-1)  # in logs: for positive semi-definite input the exponent below is never positive
    return (s - (lse[..., :, None] + lse[..., None, :]) / 2).exp()


def resolvents(s: Tensor, poles: Sequence[float]) -> Tensor:
    """Inverses (S + t_j I)⁻¹ for every pole t_j: (..., D, D) → (J, ..., D, D).

    Examples
    --------
    >>> resolvents(torch.eye(2), (1.0, 3.0))[:, 0, 0]
    tensor([0.5000, 0.2500])
    """
    return _Resolvents.apply(s, poles)


class _Resolvents(torch.autograd.Function):
    """R_j = (S + t_j I)⁻¹ forward; dS = −Σ_j R_j G_j R_j backward. The poles are constants."""

    @staticmethod
    def forward(ctx: Any, s: Tensor, poles: Sequence[float]) -> Tensor:
        r_jdd = shifted_inverses(s, poles)
        ctx.save_for_backward(r_jdd)
        return r_jdd

    @staticmethod
    def backward(ctx: Any, grad_jdd: Tensor) -> tuple[Tensor, None]:
        (r_jdd,) = ctx.saved_tensors
        return -symmetrise((r_jdd @ grad_jdd @ r_jdd).sum(0)), None


def logm_with_resolvents(s: Tensor, seen: slice) -> tuple[Tensor, Tensor]:
    """`logm`, and some of the resolvents that it is made of: (..., D, D) → (..., D, D) and (J, ..., D, D).

    Examples
    --------
    >>> log, r_jdd = logm_with_resolvents(torch.eye(2), slice(4, 6))
    >>> bool(log.abs().max() < 1e-3), r_jdd.shape
    (True, torch.Size([2, 2, 2]))
    """
    return _LogWithResolvents.apply(s, seen)


class _LogWithResolvents(torch.autograd.Function):
    """Both from the same inverses; on the way back, slopes of twelve inverses are laid out once."""

    @staticmethod
    def forward(ctx: Any, s: Tensor, seen: slice) -> tuple[Tensor, Tensor]:
        rational = log_poles()
        r_jdd = shifted_inverses(s, rational.poles)
        ctx.save_for_backward(r_jdd)
        ctx.seen = seen
        return rational.from_resolvents(r_jdd), r_jdd[seen].clone()

    @staticmethod
    def backward(ctx: Any, of_log_dd: Tensor, of_seen_jdd: Tensor) -> tuple[Tensor, None]:
        (r_jdd,) = ctx.saved_tensors
        shares = log_poles().shares(r_jdd)
        grad_jdd = shares.view(-1, *[1] * of_log_dd.ndim) * of_log_dd
        grad_jdd[ctx.seen] += of_seen_jdd
        return -symmetrise((r_jdd @ grad_jdd @ r_jdd).sum(0)), None


@functools.lru_cache
def log_poles(n_poles: int = LOG_POLES, low: float = LOG_RANGE[0], high: float = LOG_RANGE[1]) -> RationalLog:
    """Poles and weights of the rational logarithm.

    The scalar problem `log λ ≈ c₀ + Σ c_j t_j / (λ + t_j)` decides it, because both sides act on eigenvalues alone.
    """
    eigenvalues = torch.logspace(math.log10(low), math.log10(high), 4000, dtype=torch.float64)
    poles = torch.logspace(math.log10(low) - 0.7, math.log10(high) + 0.77, n_poles, dtype=torch.float64)
    terms = poles / (eigenvalues[:, None] + poles)
    design = torch.cat([torch.ones_like(terms[:, :1]), terms], 1)
    constant, *weights = torch.linalg.lstsq(design, eigenvalues.log()[:, None], driver="gelsd").solution[:, 0].tolist()
    return RationalLog(tuple(poles.tolist()), tuple(weights), constant)


class RationalLog(NamedTuple):
    """log λ ≈ constant + Σ_j weights_j · poles_j / (λ + poles_j)."""

    poles: tuple[float, ...]
    weights: tuple[float, ...]
    constant: float

    def from_resolvents(self, r_jdd: Tensor) -> Tensor:
        """The logarithm from the resolvents at these poles: (J, ..., D, D) → (..., D, D)."""
        eye = torch.eye(r_jdd.shape[-1], dtype=r_jdd.dtype, device=r_jdd.device)
        return (self.shares(r_jdd) @ r_jdd.flatten(1)).view(r_jdd.shape[1:]) + self.constant * eye

    def shares(self, like: Tensor) -> Tensor:
        """weights_j · poles_j, in the precision and on the device of a tensor."""
        return _constants(tuple(w * t for w, t in zip(self.weights, self.poles, strict=True)), like.device, like.dtype)


def logm(s: Tensor, n_poles: int = LOG_POLES) -> Tensor:
    """Fast matrix logarithm of SPD matrices, shape (..., D, D): within 2e-4 over eigenvalues 1e-4 … 1000.

    Singular input is fine: a zero eigenvalue maps to about −12.2 instead of −∞.

    Examples
    --------
    >>> logm(torch.diag(torch.tensor([1.0, 10.0], dtype=torch.float64))).diagonal().round(decimals=3)
    tensor([0.0000, 2.3030], dtype=torch.float64)
    """
    rational = log_poles(n_poles)
    return rational.from_resolvents(resolvents(s, rational.poles))


def logm_exact(s: Tensor, low: float = LOG_RANGE[0]) -> Tensor:
    """Matrix logarithm through the eigendecomposition, eigenvalues raised to at least `low`.

    Examples
    --------
    >>> logm_exact(torch.diag(torch.tensor([1.0, 10.0], dtype=torch.float64))).diagonal().round(decimals=4)
    tensor([0.0000, 2.3026], dtype=torch.float64)
    """
    return _ExactLog.apply(s, low)


class _ExactLog(torch.autograd.Function):
    """U log(Λ) Uᵀ forward; U (F ∘ UᵀGU) Uᵀ backward, F the first divided differences of log (Daleckii–Krein)."""

    @staticmethod
    def forward(ctx: Any, s: Tensor, low: float) -> Tensor:
        values, u_dd = torch.linalg.eigh(symmetrise(s))
        clamped = values.clamp_min(low)
        ctx.save_for_backward(clamped, u_dd, values > low)
        return u_dd * clamped.log()[..., None, :] @ u_dd.mT

    @staticmethod
    def backward(ctx: Any, grad_dd: Tensor) -> tuple[Tensor, None]:
        clamped, u_dd, free = ctx.saved_tensors
        ratio = divided_differences_of_log(clamped)
        ratio = ratio * (free[..., :, None] | free[..., None, :])  # both clamped: log is flat there
        inner = u_dd.mT @ symmetrise(grad_dd) @ u_dd
        return u_dd @ (ratio * inner) @ u_dd.mT, None


def divided_differences_of_log(values: Tensor) -> Tensor:
    """Matrix (log a − log b) / (a − b) over all pairs of eigenvalues; 1/a where they coincide.

    Examples
    --------
    >>> divided_differences_of_log(torch.tensor([2.0, 2.0]))
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    mean = (values[..., :, None] + values[..., None, :]) / 2
    z = (values[..., :, None] - values[..., None, :]) / (2 * mean)  # log a − log b = 2 artanh z
    near = z.abs() < 1e-2
    safe = torch.where(near, torch.full_like(z, 0.5), z)
    exact = safe.atanh() / safe
    series = 1 + z**2 / 3 + z**4 / 5 + z**6 / 7  # artanh z / z
    return torch.where(near, series, exact) / mean


# ── inverses, on whatever hardware the data is on ───────────────────────────────────────────────────────────────────


def shifted_inverses(s: Tensor, poles: Sequence[float]) -> Tensor:
    """(S + t_j I)⁻¹ for every pole: (..., D, D) → (J, ..., D, D); not differentiable by itself."""
    eye = torch.eye(s.shape[-1], dtype=s.dtype, device=s.device)
    if s.is_cuda and s.dtype == torch.float32 and _factor_kernel() is not None:
        shifts = _constants(tuple(poles), s.device)
        k = inverse_factor(s + shifts.view(-1, *[1] * s.ndim) * eye, floor=min(poles) / 2)
        return k.mT @ k
    if s.is_cuda:
        return torch.stack([torch.linalg.inv_ex(s + pole * eye).inverse for pole in poles])
    out = s.new_empty(len(poles), *s.shape)
    for j, pole in enumerate(poles):
        invert_into(out[j], s, pole)
    return out


def invert_into(out: Tensor, s: Tensor, pole: float) -> None:
    """Write (S + t I)⁻¹ into a contiguous `out` on a CPU, a few matrices at a time: their memory is used again."""
    d = s.shape[-1]
    ridge, size = pole * torch.eye(d, dtype=s.dtype, device=s.device), max(1, CELLS_AT_ONCE // d**2)
    for part, inverse in zip(s.reshape(-1, d, d).split(size), out.view(-1, d, d).split(size), strict=True):
        torch.cholesky_inverse(torch.linalg.cholesky_ex(part + ridge).L, out=inverse)


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
    d = s.shape[-1]
    make = torch.empty_like if d <= BLOCK_SIZE else torch.zeros_like  # one block is written as a whole
    k = make(s, memory_format=torch.contiguous_format)
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
def _constants(values: tuple[float, ...], device: torch.device, dtype: torch.dtype = torch.float32) -> Tensor:
    """Numbers on a device, copied there once: a copy inside a captured CUDA graph is not allowed."""
    return torch.tensor(values, dtype=dtype, device=device)


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
