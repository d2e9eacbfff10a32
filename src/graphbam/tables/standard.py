"""Columns of mean 0 and variance 1: the one rule that users' tables and those of training share.

Steps 3 and 6 of `graphbam.tables.prepare`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from graphbam.tables.table import Matrix

CLIP = 5.0
"""Standardised values are cut at ± this many standard deviations."""

WILD = 6.0
"""Before that, values beyond median ± this many robust standard deviations are moved to that limit."""

_NORMAL_RANGE = 3.2897  # from the 5th to the 95th percentile of a standard normal


def is_constant(x_md: Matrix) -> npt.NDArray[np.bool_]:
    """Columns whose values differ by nothing but rounding.

    Examples
    --------
    >>> is_constant(np.array([[1.0, 0.3, 1e9], [2.0, 0.1 + 0.2, 1e9 + 1]])).tolist()
    [False, True, False]
    """
    top, bottom = x_md.max(axis=0), x_md.min(axis=0)
    size = np.maximum(np.abs(top), np.abs(bottom))
    rounding = 4 * np.finfo(np.float64).eps
    flags: npt.NDArray[np.bool_] = top / 2 - bottom / 2 <= rounding / 2 * size  # halves cannot overflow
    return flags


def standardise(
    x: Tensor, *, robust: bool = True, clip: float = CLIP, axis: int = -2, observed: Tensor | None = None
) -> Tensor:
    """Bring columns to mean 0 and variance 1: the one rule that training tables and users' tables share.

    Values beyond median ± 6 robust standard deviations are first moved to that limit, so that a few wild values cannot
    flatten the rest. The robust standard deviation is the distance from the 5th to the 95th percentile over that of a
    normal variable: unlike the interquartile range it stays honest for peaked columns such as cubes. Ordinary columns
    have no such values and get the plain z-score, as do columns whose inner 90 % are constant (rare events). Constant
    columns become 0. Each column is treated on its own, and no step waits for the device.

    Parameters
    ----------
    x : Tensor, shape (..., M, D)
        Samples along `axis`.
    robust : bool
        Whether wild values are moved first.
    clip : float
        Largest absolute value of the result.
    axis : int
        Where the samples are: the second last axis, or the last one, -1, where it is fastest.
    observed : Tensor of bool, of the shape of `x`, optional
        Which cells were observed: only these count, and all others become 0. None: all of them.

    Returns
    -------
    Tensor
        Of the shape and type that came in.

    Examples
    --------
    >>> standardise(torch.tensor([[1.0, 7.0], [2.0, 7.0], [3.0, 7.0]]))
    tensor([[-1.2247,  0.0000],
            [ 0.0000,  0.0000],
            [ 1.2247,  0.0000]])
    """
    if observed is not None:
        return _standardise_observed(x.movedim(axis, -1), observed.movedim(axis, -1), robust, clip).movedim(-1, axis)
    x_nm = x.movedim(axis, -1)
    x_nm = _move_wild_values(x_nm) if robust else x_nm
    centre_n1 = x_nm.mean(-1, keepdim=True)
    x_nm = x_nm - centre_n1
    size_n1 = x_nm.abs().amax(-1, keepdim=True)
    is_constant_n1 = size_n1 <= 8 * torch.finfo(x_nm.dtype).eps * centre_n1.abs()  # all that rounding leaves
    x_nm = x_nm / torch.where(is_constant_n1 | (size_n1 == 0), torch.inf, size_n1)  # so that no square overflows
    x_nm = x_nm - x_nm.mean(-1, keepdim=True)
    sd_n1 = x_nm.square().mean(-1, keepdim=True).sqrt()
    return (x_nm / torch.where(sd_n1 > 0, sd_n1, 1.0)).clamp(-clip, clip).movedim(-1, axis)


def _standardise_observed(x_nm: Tensor, observed_nm: Tensor, robust: bool, clip: float) -> Tensor:
    """The rule of `standardise` for the observed cells of each row; what stands in the others does not matter."""
    n_seen_n1 = observed_nm.sum(-1, keepdim=True).clamp(min=1)

    def mean(values_nm: Tensor) -> Tensor:
        return torch.where(observed_nm, values_nm, 0.0).sum(-1, keepdim=True) / n_seen_n1

    x_nm = move_wild_observed(x_nm, observed_nm) if robust else x_nm
    centre_n1 = mean(x_nm)
    x_nm = torch.where(observed_nm, x_nm - centre_n1, 0.0)
    size_n1 = x_nm.abs().amax(-1, keepdim=True)
    is_constant_n1 = size_n1 <= 8 * torch.finfo(x_nm.dtype).eps * centre_n1.abs()
    x_nm = x_nm / torch.where(is_constant_n1 | (size_n1 == 0), torch.inf, size_n1)
    x_nm = x_nm - mean(x_nm)
    sd_n1 = mean(x_nm.square()).sqrt()
    x_nm = (x_nm / torch.where(sd_n1 > 0, sd_n1, 1.0)).clamp(-clip, clip)
    return torch.where(observed_nm, x_nm, 0.0)


def move_wild_observed(x_nm: Tensor, observed_nm: Tensor) -> Tensor:
    """`_move_wild_values` by the observed cells of each row."""
    sorted_nm = sort_rows(torch.where(observed_nm, x_nm, torch.inf))
    place_n1 = observed_nm.sum(-1, keepdim=True).clamp(min=1) - 1
    return _limit(x_nm, *(_quantile_at(sorted_nm, q * place_n1, place_n1) for q in (0.05, 0.5, 0.95)))


def _quantile_at(sorted_nm: Tensor, place_n1: Tensor, last_n1: Tensor) -> Tensor:
    """Linear interpolation at a place of its own in each row."""
    below_n1 = place_n1.long()
    low_n1, high_n1 = sorted_nm.gather(-1, below_n1), sorted_nm.gather(-1, torch.minimum(below_n1 + 1, last_n1))
    return low_n1 + (place_n1 - below_n1) * (high_n1 - low_n1)


def _limit(x_nm: Tensor, low_n1: Tensor, middle_n1: Tensor, high_n1: Tensor) -> Tensor:
    """Values beyond the median ± 6 robust standard deviations, to that limit."""
    reach_n1 = WILD * (high_n1 - low_n1) / _NORMAL_RANGE
    reach_n1 = torch.where(reach_n1 > 0, reach_n1, torch.inf)
    return torch.minimum(torch.maximum(x_nm, middle_n1 - reach_n1), middle_n1 + reach_n1)


def _move_wild_values(x_nm: Tensor) -> Tensor:
    """Values beyond median ± 6 robust standard deviations, to that limit."""
    sorted_nm = sort_rows(x_nm)
    return _limit(x_nm, *(_quantile(sorted_nm, q) for q in (0.05, 0.5, 0.95)))


def sort_rows(x_nm: Tensor) -> Tensor:
    """Values in increasing order along the last axis; on a CPU, numpy is twenty times as fast as torch.

    Examples
    --------
    >>> sort_rows(torch.tensor([[3.0, 1.0, 2.0]]))
    tensor([[1., 2., 3.]])
    """
    if x_nm.device.type != "cpu" or x_nm.requires_grad:
        return x_nm.sort(-1).values
    return torch.from_numpy(np.sort(x_nm.numpy(), axis=-1))


def _quantile(sorted_nm: Tensor, q: float) -> Tensor:
    """Quantile with linear interpolation, from values sorted along the last axis."""
    place = q * (sorted_nm.shape[-1] - 1)
    below = int(place)
    above = min(below + 1, sorted_nm.shape[-1] - 1)
    low_n1, high_n1 = sorted_nm[..., below, None], sorted_nm[..., above, None]
    return low_n1 + (place - below) * (high_n1 - low_n1)


def avoid_overflow(x_md: Matrix) -> Matrix:
    """Bring every column near zero and one without overflow, so that 1e308 and dates keep their digits.

    Values further out than a thousand times the inner 90 % are moved to that limit, far beyond where
    `standardise` cuts anyway: one cell of 1e308 must not push the others below the smallest number.

    Examples
    --------
    >>> avoid_overflow(np.array([[1e308, 1e9], [-1e308, 1e9 + 1], [0, 1e9 + 2]])).T.round(3).tolist()
    [[0.556, -0.556, 0.0], [-0.556, 0.0, 0.556]]
    """
    x_md = x_md / np.abs(x_md).max(axis=0)
    low, middle, high = np.quantile(x_md, [0.05, 0.5, 0.95], axis=0)
    x_md = x_md - middle
    width = high - low
    with np.errstate(over="ignore"):
        inner_md = np.clip(x_md / np.where(width > 0, width, 1.0), -1e3, 1e3)
    return np.where(width > 0, inner_md, x_md / np.abs(x_md).max(axis=0))
