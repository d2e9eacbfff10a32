"""What in a table its owner should know of: it goes through unchanged, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import torch

from graphbam.errors import spell_count
from graphbam.tables.algebra import find_axes, multiply
from graphbam.tables.config import LEAST_ROWS
from graphbam.tables.domain import correlate
from graphbam.tables.notes import Notes
from graphbam.tables.spread import share_spread
from graphbam.tables.standard import WILD, standardise
from graphbam.tables.table import BoolVector, Indices, Matrix, spell_columns

FEW_ROWS = 20

SPREAD = 0.06
"""Correlation between the sizes of columns (`share_spread`) from which rows share their spread. One simulated table of
training in fifty has more."""

FAR = 1000.0
"""Values this many times as far from the median as nine in ten, and far from the rest, are told of."""

SAME, NEARLY_SAME = 1 - 1e-10, 0.999
"""Correlations beyond which columns are copies up to units, and beyond which they hide much of each other too."""


RELATED, SLACK = 0.99, 2.0
"""Share of a column's variance that others must say of it; and times as much as rounding makes that they may leave."""

MOST_RELATED, ROWS_EACH, MOST_ROWS = 300, 3, 1000
"""Columns up to which relations are looked for, and rows that each of them takes; in fewer, chance makes some. Of twice
as many rows as the last, or more, evenly chosen ones are looked at."""

EXACTLY = 1e-10
"""Share of the variance that an exact relation leaves unsaid at most."""

PART = 0.7
"""Partial correlation with a column that follows from others, from which a column is one of these."""

BETTER = 3.0
"""Times as much a linear relation leaves unsaid as one of logarithms, where that one is a product or ratio."""


def warn_of_wild_values(names: Sequence[str], x_md: Matrix, notes: Notes) -> None:
    """Warn about values so far from all others that they are rather slips of a pen; step 6 moves them to a limit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # columns without a value
        size_d = np.nanmax(np.abs(x_md), axis=0, initial=0.0)
        z_md = x_md / np.where(size_d > 0, size_d, 1.0)  # so that no sum overflows
        off_md = np.abs(z_md - np.nanmean(z_md, axis=0))
        most = max(4.0, min(50.0, len(x_md) / 10))  # a cheap look first: few columns have such values
        suspects = np.flatnonzero(np.nanmax(off_md, axis=0, initial=0.0) > most * np.nanmean(off_md, axis=0))
    for k in suspects.tolist():
        z_m = z_md[:, k]
        off_m = np.abs(z_m - np.nanmedian(z_m))
        wild_m = off_m > FAR * np.nanquantile(off_m, 0.9)
        rest = z_m[~wild_m & np.isfinite(z_m)]
        if not wild_m.any() or len(np.unique(rest)) < 3 or off_m[wild_m].min() < 10 * np.ptp(rest):
            continue
        low, high = size_d[k] * rest.min(), size_d[k] * rest.max()
        notes.warnings.append(
            f"column {names[k]!r} has {spell_count(wild_m.sum(), 'value')} far beyond all others "
            f"({x_md[wild_m, k][0]:.3g}, and these between {low:.3g} and {high:.3g}), moved towards them; "
            "empty such cells if they are errors or stand for missing values"
        )


def warn_of_totals(x_md: Matrix, notes: Notes) -> None:
    """Warn about a last row that is the sum of the others, as many spreadsheets end: it alone ties columns together."""
    if len(x_md) < LEAST_ROWS:
        return
    above_md, last_d = x_md[:-1], x_md[-1]
    with np.errstate(over="ignore", invalid="ignore"):
        is_sum_d = np.abs(last_d - np.nansum(above_md, axis=0)) <= 1e-3 * np.abs(last_d)  # sums of rounded numbers
    is_sum_d &= np.abs(last_d) > np.abs(np.nan_to_num(above_md)).max(axis=0, initial=0.0)
    n_sums, n_known = int(is_sum_d.sum()), int(np.isfinite(last_d).sum())
    if n_sums >= max(2, n_known / 2):
        notes.warnings.append(
            f"the last row holds the sums of all rows above it, in {n_sums} of {len(last_d)} columns: such a row of "
            "totals makes links between columns that have none; take it out of the table"
        )


def warn_about(names: Sequence[str], x_md: Matrix) -> list[str]:
    n_rows, warnings = len(x_md), []
    if n_rows < FEW_ROWS:
        warnings.append(
            f"only {n_rows} rows: almost nothing can be learned from so few, and even columns of pure noise get links "
            f"here; do not rely on any of them below {FEW_ROWS} rows, where training began"
        )
    return warnings + _find_counters(names, x_md) + describe_redundancy(names, x_md)


def warn_of_spread(x_md: Matrix) -> list[str]:
    """That all columns lie far out in some rows and near the middle in others, where it is so."""
    found = share_spread(standardise(torch.from_numpy(x_md)).numpy())
    if len(x_md) < FEW_ROWS or found < SPREAD:
        return []
    return [
        f"in some rows all columns lie far out, in others none does (correlation of |x| {found:.2f} beyond chance), as "
        "with returns of stocks in wild weeks and calm ones: this alone makes links where there are no others; of a "
        "dozen columns or more, divide each row by the root mean square of its standardised values"
    ]


def _find_counters(names: Sequence[str], x_md: Matrix) -> list[str]:
    """Columns that rise by the same step from row to row, as row numbers do."""
    if len(x_md) < 5:
        return []
    steps = np.diff(x_md, axis=0)
    counters = np.flatnonzero((np.abs(steps - steps[0]) <= 1e-6 * np.abs(steps[0])).all(axis=0))
    return [
        f"column {names[k]!r} rises by the same step from row to row; if it numbers the rows, drop it" for k in counters
    ]


def describe_redundancy(names: Sequence[str], x_md: Matrix) -> list[str]:
    """Name columns that repeat each other, or nearly, and sets of columns bound by an exact linear relation.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(9, 2))
    >>> describe_redundancy(["a", "b", "sum"], np.column_stack([x, x.sum(axis=1)]))[0][:60]
    "columns 'a', 'b', 'sum' are bound by an exact linear relatio"
    """
    n_rows, n_columns = x_md.shape
    if n_columns > 1000 or n_rows < 4:
        return []
    groups, firsts = _find_copies(correlate(x_md), SAME)
    warnings = _warn_of_copies(names, groups, "the same up to units", "=")
    if n_rows >= FEW_ROWS:  # of fewer, chance alone makes some
        near, _ = _find_copies(correlate(standardise(torch.from_numpy(x_md[:, firsts])).numpy()), NEARLY_SAME)
        kept = [names[k] for k in firsts]
        warnings += _warn_of_copies(kept, near, f"nearly the same (correlation beyond {NEARLY_SAME})", "≈")
    if not 2 < len(firsts) < n_rows - 1:
        return warnings
    bound = _find_bound(correlate(x_md[:, firsts]))
    if len(bound):
        warnings.append(
            f"{spell_columns([names[firsts[k]] for k in bound])} are bound by an exact linear relation (as "
            "parts and their sum are); links among them are not to be trusted, and links with others are easily "
            "missed: consider leaving out what follows from the rest"
        )
    return warnings


def warn_of_relations(names: Sequence[str], x_md: Matrix) -> list[str]:
    """Name columns that follow from others but for rounding: as their sum, or as a product or ratio of positive ones.

    What follows exactly, as a sum or as a copy, is `describe_redundancy`'s.

    Examples
    --------
    >>> weight, height = np.random.default_rng(0).uniform([50, 1.5], [100, 2], size=(99, 2)).T
    >>> x_md = np.column_stack([weight, height, (weight / height**2).round(1)])
    >>> warn_of_relations(["weight", "height", "bmi"], x_md)[0][:60]
    "columns 'weight', 'height', 'bmi' are bound by a product or "
    """
    if len(x_md) < FEW_ROWS or len(names) > MOST_RELATED:
        return []
    x_md = x_md[:: max(1, len(x_md) // MOST_ROWS)]
    size_d = np.abs(x_md).max(axis=0)
    x_md = x_md / 10.0 ** np.floor(np.log10(np.where(size_d > 0, size_d, 1.0)))  # digits stay, and no square overflows
    left_d, warnings = np.ones(len(names)), []
    for is_log in (False, True):
        places = np.flatnonzero((x_md > 0).all(axis=0)) if is_log else np.arange(len(names))
        found, left_k = _find_related(x_md[:, places], is_log)
        is_new_k = BETTER * left_k < left_d[places] if is_log else left_k > EXACTLY
        left_d[places] = left_k
        bound = [names[places[k]] for k in found if is_new_k[k]]
        if len(bound) > 2:
            how = "a product or ratio" if is_log else "a linear relation"
            warnings.append(
                f"{spell_columns(bound)} are bound by {how} that is exact but for rounding; links and arrows among "
                "them are not to be trusted, and links with others are easily missed: leave out what follows from the "
                "rest (as a ratio, product or sum)"
            )
    return warnings


def _find_related(x_mk: Matrix, is_log: bool) -> tuple[list[int], Matrix]:
    """Columns bound by relations, of logarithms or not, and the share of the variance of each that others leave unsaid.

    Columns that are nearly the same as an earlier one are left aside, and so are rows with wild values, if few.
    """
    left_k, y_mk = np.ones(x_mk.shape[1]), np.log(x_mk) if is_log else x_mk
    if min(x_mk.shape) < 3 or (is_tame_m := _find_tame(y_mk)).mean() < 0.5:
        return [], left_k
    x_mk, y_mk = x_mk[is_tame_m], y_mk[is_tame_m]
    r_kk = correlate(y_mk)
    np.fill_diagonal(r_kk, 1.0)  # of columns that are constant in the other rows, too
    firsts = _find_copies(r_kk, NEARLY_SAME)[1]
    n_rows, n_columns = len(x_mk), len(firsts)
    if not 2 < n_columns <= MOST_RELATED or n_rows < max(FEW_ROWS, ROWS_EACH * n_columns):
        return [], left_k
    values, vectors = find_axes(r_kk[np.ix_(firsts, firsts)])
    inverse_kk = multiply(vectors / np.maximum(values, 1e-13), vectors.T)
    left_k[firsts] = (n_rows - 1) / (n_rows - n_columns) / inverse_kk.diagonal()
    said = np.flatnonzero(left_k[firsts] < 1 - RELATED)
    if not len(said):
        return [], left_k
    weights_sk = inverse_kk[said] / inverse_kk.diagonal()[said, None]
    rounded_s = weights_sk**2 @ _share_rounded(x_mk[:, firsts], y_mk[:, firsts], is_log)
    said = said[left_k[firsts][said] <= SLACK * rounded_s + (EXACTLY if is_log else 0.0)]
    size_k = np.sqrt(inverse_kk.diagonal())
    takes_part_k = (np.abs(inverse_kk / np.outer(size_k, size_k))[said] > PART).any(axis=0)
    return firsts[takes_part_k].tolist(), left_k


def _share_rounded(x_mk: Matrix, y_mk: Matrix, is_log: bool) -> Matrix:
    """Share of the variance of y, which is x or its logarithm, that comes from rounding x to so many decimals."""
    grain_k = np.zeros(x_mk.shape[1])
    for decimals in range(9, -1, -1):
        shifted_mk = x_mk * 10.0**decimals
        is_whole_k = (np.abs(shifted_mk - np.rint(shifted_mk)) <= 1e-7 * np.abs(shifted_mk).max(axis=0)).all(axis=0)
        grain_k[is_whole_k] = 10.0**-decimals
    error_mk = grain_k / x_mk if is_log else np.broadcast_to(grain_k, x_mk.shape)
    variance_k = y_mk.var(axis=0)
    return np.median(error_mk**2, axis=0) / 12 / np.where(variance_k > 0, variance_k, np.inf)


def _find_tame(x_mk: Matrix) -> BoolVector:
    """Rows without values beyond what step 6 moves to its limit."""
    low_k, middle_k, high_k = np.quantile(x_mk, [0.05, 0.5, 0.95], axis=0)
    reach_k = WILD * (high_k - low_k) / 3.29
    return np.asarray((np.abs(x_mk - middle_k) <= np.where(reach_k > 0, reach_k, np.inf)).all(axis=1))


def _warn_of_copies(names: Sequence[str], groups: list[list[int]], how: str, mark: str) -> list[str]:
    if not groups:
        return []
    shown = ", ".join(f" {mark} ".join(repr(names[k]) for k in group[:4]) for group in groups[:8])
    return [
        f"columns that are {how}: {shown}{', …' if len(groups) > 8 else ''}; all are kept, but each "
        "hides the links of its copies: consider dropping all but one"
    ]


def _find_copies(r_dd: Matrix, least: float) -> tuple[list[list[int]], Indices]:
    """Groups of columns joined by correlations beyond ±`least`, and the first column of every group."""
    same = np.abs(r_dd) > least
    leader = same.argmax(axis=1)
    while (first := np.where(same, leader, leader[:, None]).min(axis=1)).sum() < leader.sum():
        leader = first  # of whom one is nearly the same as may be so of another, which oneself is not
    groups = [np.flatnonzero(leader == k).tolist() for k in np.unique(leader) if (leader == k).sum() > 1]
    return groups, np.unique(leader)


def _find_bound(r_dd: Matrix) -> Indices:
    """Columns that take part in the null space of a correlation matrix."""
    if len(r_dd) > 500:
        return np.empty(0, dtype=np.int64)
    values, vectors = find_axes(r_dd)
    null = np.abs(vectors[:, values < 1e-11 * len(r_dd)])
    return np.flatnonzero((null > 1e-5).any(axis=1)) if null.size else np.empty(0, dtype=np.int64)
