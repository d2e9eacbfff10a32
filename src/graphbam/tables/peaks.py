"""Columns in two narrow peaks, as of a switch whose state is measured, are shown to the network with wider peaks.

All cells of such a column lie close to one of two values. The network hardly sees what differs within a peak, and where
|x| is all but the same in all cells it misreads the table as it does one of two levels (`graphbam.tables.dither`): of
100 columns that have nothing to do with each other it may call all pairs linked. So what lies within narrow peaks is
stretched about their middles, to a tenth of a standard deviation. Values keep their order, and nothing is drawn by lot
(`runs/bench_peaks.py`).
"""

from __future__ import annotations

import numpy as np
from torch import Tensor

from graphbam.tables.table import BoolMatrix, BoolVector, Matrix

NARROW, WIDTH = 0.03, 0.1
"""Peaks whose common standard deviation, in those of the column, is below the first get the second."""

RARER = 0.15
"""Least share of the cells that the smaller of two peaks has."""

REACH = 0.4
"""Standard deviations of the column that a cell may lie from the middle of its stretched peak."""


def widen(x_bmd: Tensor, missing_bmd: Tensor | None = None) -> Tensor:
    """Standardised tables, with the narrow peaks of their columns stretched; cells that were missing stay.

    Examples
    --------
    >>> import torch
    >>> widen(torch.tensor([[[0.0], [1.0], [0.002], [1.002]]])).flatten().numpy().round(2)
    array([-0.05,  0.95,  0.05,  1.05], dtype=float32)
    """
    seen = [None] * len(x_bmd) if missing_bmd is None else [~missing_md.numpy() for missing_md in missing_bmd]
    found = [find_peaks(x_md, seen_md) for x_md, seen_md in zip(x_bmd.numpy(), seen, strict=True)]
    if not any(narrow_d.any() for narrow_d in found):
        return x_bmd
    x_bmd = x_bmd.clone()
    for x_md, seen_md, narrow_d in zip(x_bmd.numpy(), seen, found, strict=True):  # views of the copy
        for k in np.flatnonzero(narrow_d).tolist():
            seen_m = slice(None) if seen_md is None else seen_md[:, k]
            x_md[seen_m, k] = _stretch(x_md[seen_m, k])
    return x_bmd


def find_peaks(x_md: Matrix, seen_md: BoolMatrix | None = None) -> BoolVector:
    """The columns in two narrow peaks, among the cells that were seen; exactly two values are none.

    Examples
    --------
    >>> find_peaks(np.array([[0.0, 0, 1], [1.0, 1, 2], [0.002, 0, 3], [1.002, 1, 4]])).tolist()
    [True, False, False]
    """
    seen_md = np.ones(x_md.shape, dtype=bool) if seen_md is None else seen_md
    low_d = np.where(seen_md, x_md, np.inf).min(axis=0)
    high_d = np.where(seen_md, x_md, -np.inf).max(axis=0)
    upper_md = seen_md & (x_md > low_d + (high_d - low_d) / 2)
    lower_md = seen_md & ~upper_md
    n_seen_d, n_upper_d = seen_md.sum(axis=0).clip(min=1), upper_md.sum(axis=0)
    share_d = n_upper_d / n_seen_d
    is_even_d = (share_d >= RARER) & (share_d <= 1 - RARER)
    has_more_d = (((x_md > low_d) & lower_md) | ((x_md < high_d) & upper_md)).any(axis=0)
    narrow_d = is_even_d & has_more_d & _may_be_narrow(x_md, lower_md, upper_md)
    for k in np.flatnonzero(narrow_d).tolist():
        x_m = x_md[seen_md[:, k], k]
        narrow_d[k] = _leave_middles(x_m)[1].std() < NARROW * x_m.std()
    return np.asarray(narrow_d)


def _may_be_narrow(x_md: Matrix, lower_md: BoolMatrix, upper_md: BoolMatrix) -> BoolVector:
    """Whether halves are narrow about their means, which is quick to tell; about medians they are no narrower."""
    within_d = _sum_squares(x_md, lower_md) + _sum_squares(x_md, upper_md)
    return np.asarray(within_d <= 1.001 * NARROW**2 * _sum_squares(x_md, lower_md | upper_md))


def _sum_squares(x_md: Matrix, chosen_md: BoolMatrix) -> Matrix:
    """Of the chosen cells of each column, about their mean."""
    mean_d = np.where(chosen_md, x_md, 0.0).sum(axis=0) / chosen_md.sum(axis=0).clip(min=1)
    return np.asarray(np.square(np.where(chosen_md, x_md - mean_d, 0.0)).sum(axis=0))


def _stretch(x_m: Matrix) -> Matrix:
    """The values of a column, with peaks as wide as they should be."""
    middle_m, rest_m = _leave_middles(x_m)
    sd, reach = x_m.std(), REACH * x_m.std()
    stretched: Matrix = middle_m + (rest_m * (WIDTH * sd / rest_m.std())).clip(-reach, reach)
    return stretched


def _leave_middles(x_m: Matrix) -> tuple[Matrix, Matrix]:
    """The middle of the peak that each value belongs to, and what is left of the value."""
    is_upper_m = x_m > x_m.min() + (x_m.max() - x_m.min()) / 2
    middle_m = np.where(is_upper_m, np.median(x_m[is_upper_m]), np.median(x_m[~is_upper_m]))
    return middle_m, x_m - middle_m
