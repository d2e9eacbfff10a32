"""A little noise on tables of nothing but columns with two levels, which the network cannot read as they are.

Some channels of the network see |x|. Where x takes two values, each in about half of the rows, |x| is the same in all
cells; what is left in these channels is what a row has in common, and once they are scaled to unit variance all columns
look alike. The network never learned from tables of nothing else, and calls all pairs linked, or none. With a tenth of
a standard deviation of noise on each such column it answers as usual. Where there are other columns, or levels are
rarer, noise costs more than it brings, and there is none (`runs/bench_levels.py`).
"""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from torch import Tensor

from graphbam.tables.table import BoolVector, Matrix

AMOUNT = 0.1
"""Standard deviations of noise, of those of the column."""

FEWEST, NEARLY_ALL = 15, 0.9
"""Tables with fewer columns, or with a smaller share of columns of two levels, are left as they are."""

EVEN, UNEVEN, WIDE = 0.37, 0.15, 120
"""Least share of rows that the rarer of two levels has; the same in tables with more columns than training had."""


def dither(x_bmd: Tensor) -> Tensor:
    """Standardised tables, with noise on their columns of two levels where they have next to no others.

    The noise of a column depends on its own content alone: a table always gets the same, in any order of columns.

    Examples
    --------
    >>> coins_bmd = (torch.rand(1, 50, 20, generator=torch.Generator().manual_seed(0)) < 0.5).float()
    >>> round((dither(coins_bmd) - coins_bmd).std().item(), 2)
    0.05
    >>> dither(coins_bmd[..., :10]) is not None and bool((dither(coins_bmd[..., :10]) == coins_bmd[..., :10]).all())
    True
    """
    found = [find_levels(x_md) for x_md in x_bmd.numpy()]
    if not any(two_d.any() for two_d in found):
        return x_bmd
    tables = [_disturb(x_md, two_d) if two_d.any() else x_md for x_md, two_d in zip(x_bmd, found, strict=True)]
    return torch.stack(tables)


def find_levels(x_md: Matrix) -> BoolVector:
    """The columns of two levels that get noise: none, unless nearly all are such.

    Examples
    --------
    >>> find_levels(np.eye(2)[:, [0] * 15]).all(), find_levels(np.eye(2)[:, [0] * 14]).any()
    (np.True_, np.False_)
    """
    n_columns = x_md.shape[1]
    highest, lowest = ((x_md == limit).mean(axis=0) for limit in (x_md.max(axis=0), x_md.min(axis=0)))
    rarer = np.where(highest + lowest == 1, np.minimum(highest, lowest), 0.0)
    counts = (rarer >= (UNEVEN if n_columns > WIDE else EVEN)).mean() >= NEARLY_ALL
    is_asked_for = bool(counts) and n_columns >= FEWEST
    return np.asarray((rarer > 0) & is_asked_for)


def _disturb(x_md: Tensor, two_d: BoolVector) -> Tensor:
    """Noise on some columns, drawn from what they hold."""
    x_md = x_md.clone()
    for k in np.flatnonzero(two_d).tolist():
        x_m = x_md[:, k]
        content = np.packbits((x_m > x_m.mean()).numpy()).tobytes()
        seed = int.from_bytes(hashlib.blake2b(content, digest_size=8).digest())
        noise_m = np.random.default_rng(seed).normal(size=len(x_m))
        x_md[:, k] = x_m + AMOUNT * x_m.std() * torch.from_numpy(noise_m).to(x_m.dtype)
    return x_md
