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

from graphbam.tables.table import BoolMatrix, BoolVector, Matrix

AMOUNT = 0.1
"""Standard deviations of noise, of those of the column."""

FEWEST, MOST, NEARLY_ALL = 15, 0.75, 0.9
"""Tables with fewer columns, with a smaller share of columns of two levels, or with a smaller share of them among those
that are not coarse are left as they are."""

COARSE, MANY = 4, 60
"""A column with so few levels, more than two, is coarse: in tables with so many columns it does not help either."""

EVEN, UNEVEN, WIDE = 0.37, 0.15, 120
"""Least share of rows that the rarer of two levels has; the same in tables with more columns than training had."""

FILLED = 0.1
"""A column with a larger share of cells that were filled in has more than its levels, and is left as it is; not so in
tables with more columns than training had."""


def dither(x_bmd: Tensor, missing_bmd: Tensor | None = None) -> Tensor:
    """Standardised tables, with noise on their columns of two levels where they have next to no others.

    The noise of a column depends on its own content alone: a table always gets the same, in any order of columns. Cells
    that were missing have been filled in with other values; they are no levels, and get noise as the others do.

    Examples
    --------
    >>> coins_bmd = (torch.rand(1, 50, 20, generator=torch.Generator().manual_seed(0)) < 0.5).float()
    >>> round((dither(coins_bmd) - coins_bmd).std().item(), 2)
    0.05
    >>> few_bmd = coins_bmd[..., :10]
    >>> dither(few_bmd) is few_bmd
    True
    """
    gaps = [None] * len(x_bmd) if missing_bmd is None else [missing_md.numpy() for missing_md in missing_bmd]
    found = [find_levels(x_md, missing_md) for x_md, missing_md in zip(x_bmd.numpy(), gaps, strict=True)]
    if not any(two_d.any() for two_d in found):
        return x_bmd
    tables = [_disturb(x_md, two_d) if two_d.any() else x_md for x_md, two_d in zip(x_bmd, found, strict=True)]
    return torch.stack(tables)


def find_levels(x_md: Matrix, missing_md: BoolMatrix | None = None) -> BoolVector:
    """The columns of two levels that get noise: none, unless nearly all are such.

    Examples
    --------
    >>> find_levels(np.eye(2)[:, [0] * 15]).all(), find_levels(np.eye(2)[:, [0] * 14]).any()
    (np.True_, np.False_)
    """
    n_columns, none_d = x_md.shape[1], np.zeros(x_md.shape[1], dtype=bool)
    seen_md = np.ones(x_md.shape, dtype=bool) if missing_md is None else ~missing_md
    rarer_d = _share_of_rarer(x_md, seen_md)
    even_d = rarer_d >= (UNEVEN if n_columns > WIDE else EVEN)
    if n_columns < FEWEST or even_d.mean() < MOST:
        return none_d
    rest = np.flatnonzero(~even_d).tolist() if n_columns >= MANY else []
    n_coarse = sum(3 <= len(np.unique(x_md[seen_md[:, k], k])) <= COARSE for k in rest)
    return rarer_d > 0 if even_d.sum() >= NEARLY_ALL * (n_columns - n_coarse) else none_d


def _share_of_rarer(x_md: Matrix, seen_md: BoolMatrix) -> Matrix:
    """How often the rarer of two levels is seen, by column; 0 where there are more levels, or many gaps."""
    highest_d = np.where(seen_md, x_md, -np.inf).max(axis=0)
    lowest_d = np.where(seen_md, x_md, np.inf).min(axis=0)
    n_high_d, n_low_d = (((x_md == limit_d) & seen_md).sum(axis=0) for limit_d in (highest_d, lowest_d))
    n_seen_d = seen_md.sum(axis=0)
    is_such_d = n_high_d + n_low_d == n_seen_d
    if x_md.shape[1] <= WIDE:
        is_such_d &= n_seen_d >= (1 - FILLED) * len(x_md)
    return np.where(is_such_d, np.minimum(n_high_d, n_low_d) / n_seen_d.clip(min=1), 0.0)


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
