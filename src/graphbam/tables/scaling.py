"""Bring columns to a common scale: the one rule that training tables and users' tables share.

Torch only. No step waits for the device, and every rule treats each column on its own, so the result does not
depend on the order of rows or columns, nor on the unit or the origin of a column.
"""

from __future__ import annotations

import torch
from torch import Tensor

CLIP = 5.0
"""Standardised values are cut at ± this many standard deviations."""

ROBUST_LIMIT = 6.0
"""Robust standardisation first cuts at median ± this many robust standard deviations."""

_NORMAL_RANGE = 3.2897  # from the 5th to the 95th percentile of a standard normal


def standardise_columns(x_bmd: Tensor, *, robust: bool = True, clip: float = CLIP) -> Tensor:
    """Standardise every column over the samples and cut it at ± `clip`.

    Plain: z-score, then cut. Robust: values beyond median ± 6 robust standard deviations are first moved to
    that limit, so that a few wild values cannot flatten the rest. The robust standard deviation is the
    distance from the 5th to the 95th percentile over that of a normal variable: unlike the interquartile
    range it stays honest for peaked columns such as cubes. Ordinary columns have no such values and get the
    plain z-score, as do columns whose inner 90 % are constant (rare events). Constant columns become 0.

    Parameters
    ----------
    x_bmd : Tensor, shape (..., M, D)
        Samples along the second last axis.
    robust : bool
        Winsorise before the z-score.
    clip : float
        Largest absolute value of the result.

    Returns
    -------
    Tensor, shape (..., M, D)

    Examples
    --------
    >>> x_md = torch.tensor([[1.0, 7.0], [2.0, 7.0], [3.0, 7.0]])
    >>> standardise_columns(x_md)
    tensor([[-1.2247,  0.0000],
            [ 0.0000,  0.0000],
            [ 1.2247,  0.0000]])
    """
    return standardise_rows(x_bmd.mT, robust=robust, clip=clip).mT


def standardise_rows(x_nm: Tensor, *, robust: bool = True, clip: float = CLIP) -> Tensor:
    """`standardise_columns` with the samples along the last axis, where it is fastest.

    Examples
    --------
    >>> x_nm = torch.tensor([[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 1e9]])
    >>> standardise_rows(x_nm, robust=False)[0, :2].diff().item() < 1e-6
    True
    """
    x_nm = winsorise_rows(x_nm) if robust else x_nm
    centre_n1 = x_nm.mean(-1, keepdim=True)
    x_nm = x_nm - centre_n1
    size_n1 = x_nm.abs().amax(-1, keepdim=True)
    is_constant_n1 = size_n1 <= 8 * torch.finfo(x_nm.dtype).eps * centre_n1.abs()  # all that rounding leaves
    size_n1 = torch.where(is_constant_n1 | (size_n1 == 0), torch.inf, size_n1)
    return z_score(x_nm / size_n1).clamp(-clip, clip)  # numbers of size 1: squares overflow in no unit


def winsorise_rows(x_nm: Tensor, limit: float = ROBUST_LIMIT) -> Tensor:
    """Move values beyond median ± `limit` robust standard deviations to that limit.

    Examples
    --------
    >>> x_nm = torch.cat([torch.linspace(-1, 1, 99), torch.tensor([1000.0])])[None]
    >>> round(winsorise_rows(x_nm).max().item(), 1)
    3.3
    """
    sorted_nm = x_nm.sort(-1).values
    low_n1, middle_n1, high_n1 = (_quantile(sorted_nm, q) for q in (0.05, 0.5, 0.95))
    reach_n1 = limit * (high_n1 - low_n1) / _NORMAL_RANGE
    reach_n1 = torch.where(reach_n1 > 0, reach_n1, torch.inf)
    return torch.minimum(torch.maximum(x_nm, middle_n1 - reach_n1), middle_n1 + reach_n1)


def z_score(x: Tensor) -> Tensor:
    """Mean 0 and variance 1 along the last axis; constant rows become 0.

    Examples
    --------
    >>> z_score(torch.tensor([[1.0, 3.0], [5.0, 5.0]])).tolist()
    [[-1.0, 1.0], [0.0, 0.0]]
    """
    centred = x - x.mean(-1, keepdim=True)
    sd = centred.square().mean(-1, keepdim=True).sqrt()
    return centred / torch.where(sd > 0, sd, 1.0)


def _quantile(sorted_nm: Tensor, q: float) -> Tensor:
    """Quantile with linear interpolation, from values sorted along the last axis."""
    place = q * (sorted_nm.shape[-1] - 1)
    below = int(place)
    above = min(below + 1, sorted_nm.shape[-1] - 1)
    low_n1, high_n1 = sorted_nm[..., below, None], sorted_nm[..., above, None]
    return low_n1 + (place - below) * (high_n1 - low_n1)
