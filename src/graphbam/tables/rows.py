"""How many independent rows a table is worth: in a time series, neighbouring rows say the same thing twice.

Between two columns with autocorrelations ρ_i(k) and ρ_j(k), but otherwise unrelated, the sample correlation of M rows
varies as if there were only

    M / (1 + 2 Σ_k ρ_i(k) ρ_j(k))

of them (Bartlett, 1946). The sum, as a mean over all pairs of columns, is what is measured here, and the network is
given that number instead of M. Where rows are independent it is exactly M.

Rows that someone has sorted, by a column or a score, also resemble their neighbours, and are independent all the same.
Where the columns show such an order, and it leaves neighbours no more alike than others, rows count in full. A running
total never turns either; so one column must do as a key, and the others that never turn must say the same as it.

So do rows of experiments that stand in the order of what was set. What the experiments did is taken away before
neighbours are compared (`leave_experiments`): a series with experiments in it remains one.

Rows that are copies of others, as after a bad join or upsampling, say nothing new wherever they stand. Measured values
tell them from rows that are alike by nature (`find_copies`).
"""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbam.tables.algebra import regress

SIGNIFICANT = 11.0
"""Lags count as long as M ρ_i(k) ρ_j(k) exceeds this: one independent table in a thousand does so at the first lag."""

MOST_LAGS, MOST_ROWS = 100, 5000
"""Further lags and later rows are not looked at: even a thousand slow columns then take seconds, not minutes."""

SORTED = 0.99
"""Least rank correlation with the row numbers of what the rows count as sorted by."""

TREND_DEGREE = 5
"""Of the polynomials in the number of the row that stand for what sorting does to other columns."""

SLIGHT = 0.1
"""Redundancy that a trend may leave in sorted rows."""

EVENLY = 1.2
"""Steps of a column for the time differ by less than this factor, as days, months and years do."""

IN_ONE, IN_TWO = 0.8, 0.6
"""Correlations of neighbours that a sorted table has in no column, and in one at most, when the trend is taken away:
what the key does to others need not be smooth. Means over pairs do not show two slow series among ten other columns."""

LEAST_BLOCK, MOST_KEYS, FEW_STEPS = 20, 8, 4
"""Rows of a level, on average, from which levels in blocks are what rows may be sorted by; how many such columns are
tried; and columns that change in at most every fourth row are parts of a time, as years are."""

CLEAR = 4.5
"""Standard errors from zero beyond which the correlation of neighbours in one column is no chance."""

FINE = 20
"""A column with more distinct values is measured, not counted or chosen; only such columns tell copies of rows."""

COMMON, COMMON_SHARE = 5.0, 0.05
"""A value is common, as zeros are in amounts of rain, if it is so many times as frequent as the column's values are in
the median, and found in more than this share of the rows. Rows of common values are not taken for copies."""

ALIKE = 0.9
"""Copies agree in all columns: either half of these must tell rows apart that well, compared with all of them."""

PARTS, MOST_GROUPS = (20, 10, 5, 2), 0.2
"""Experiments that set a column to different levels are told apart in so many parts, if that leaves no more groups than
this share of the rows."""

FEWEST = 10.0
"""No table is taken for less."""


class RowOrder(NamedTuple):
    """What the order of a table's rows says."""

    redundancy: float
    """Twice the sum over lags of ρ_i(k) ρ_j(k), a mean over pairs of columns; 0 for independent rows."""
    sorted_only: bool
    """Whether neighbours resemble each other, but only because the rows are sorted."""


def measure_redundancy(x_md: NDArray[np.float64]) -> float:
    """How much neighbouring rows repeat each other, see `RowOrder`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> measure_redundancy(rng.normal(size=(300, 4)))
    0.0
    >>> walk_md = rng.normal(size=(300, 4)).cumsum(axis=0)
    >>> measure_redundancy(walk_md) > 5
    True
    >>> table_md = rng.normal(size=(300, 4)) + rng.normal(size=(300, 1))
    >>> measure_redundancy(table_md[table_md.sum(axis=1).argsort()])
    0.0
    """
    return read_order(x_md).redundancy


def read_order(x_md: NDArray[np.float64]) -> RowOrder:
    """Measure how much neighbouring rows repeat each other, and whether that is sorting alone.

    Lags end at a hundred or a quarter of the rows, or before the first that could be chance. Nothing but the order of
    rows decides. If they are sorted (`find_order`) and a smooth trend explains all but a little, they count as
    independent; a time series with a column for the time has more to it than a trend.

    Examples
    --------
    >>> table_md = np.random.default_rng(0).normal(size=(300, 4)) @ (np.eye(4) + 1)
    >>> read_order(table_md[table_md[:, 2].argsort()])
    RowOrder(redundancy=0.0, sorted_only=True)
    """
    x_md = x_md[:MOST_ROWS]
    if not len(x_md):  # experiments left none
        return RowOrder(0.0, sorted_only=False)
    z_md = x_md - x_md.mean(axis=0)
    size_d = np.abs(z_md).max(axis=0, initial=0.0)
    z_md = _drop_cycles(z_md[:, size_d > 0] / size_d[size_d > 0])  # constant columns do not count
    redundancy = _sum_lags(z_md)
    if not redundancy:  # of two columns that resemble their neighbours there is none, of one there may be
        return RowOrder(0.0, sorted_only=_is_sorted_only(z_md))
    sorted_only = _is_explained(z_md)
    return RowOrder(0.0 if sorted_only else redundancy, sorted_only)


def _drop_cycles(z_md: NDArray[np.float64]) -> NDArray[np.float64]:
    """Without columns that repeat themselves exactly, as those of the clock or of a design do, if two others are left.

    That treatments take turns, or that Monday follows Sunday, says nothing of how alike neighbours are.

    Examples
    --------
    >>> turns_md, x_md = np.eye(3)[np.arange(60) % 3], np.random.default_rng(0).normal(size=(60, 2))
    >>> [_drop_cycles(np.column_stack([turns_md, x_md[:, :n]])).shape for n in (1, 2)]
    [(60, 4), (60, 2)]
    """
    n_samples, n_variables = z_md.shape
    is_cycle_d = np.zeros(n_variables, dtype=bool)
    for period in range(2, min(MOST_LAGS, n_samples // 4) + 1):
        again_d = np.flatnonzero((z_md[period:][:8] == z_md[:-period][:8]).all(axis=0) & ~is_cycle_d)  # few go on
        is_cycle_d[again_d] = (z_md[period:, again_d] == z_md[:-period, again_d]).all(axis=0)
    return z_md[:, ~is_cycle_d] if (~is_cycle_d).sum() >= 2 else z_md


def _is_explained(z_md: NDArray[np.float64]) -> bool:
    """Whether an order of the rows and a trend explain all but a little of how alike neighbours are.

    The order is that of time where a column advances by even steps. Otherwise each column that rows may be sorted by is
    tried alone: together, running totals explain each other.
    """
    never_turns_d = _never_turn(np.diff(z_md, axis=0))
    time_d = never_turns_d & _is_even(z_md)
    if time_d.any():
        is_slight = _sum_lags(_leave(z_md, z_md[:, time_d])) < SLIGHT
        return is_slight and not _has_series(z_md, never_turns_d, time_d)
    if any(_explains(z_md, key) for key in _find_keys(z_md, never_turns_d)):
        return True
    order_mk = None if never_turns_d.any() else find_order(z_md)
    return order_mk is not None and _sum_lags(_leave(z_md, order_mk)) < SLIGHT


def _is_even(z_md: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Columns that advance by even steps, as days and months do."""
    step_md = np.abs(np.diff(z_md, axis=0))
    return np.asarray(step_md.max(axis=0) <= EVENLY * step_md.min(axis=0))


def _has_series(z_md: NDArray[np.float64], never_turns_d: NDArray[np.bool_], time_d: NDArray[np.bool_]) -> bool:
    """Whether a trend leaves neighbours alike in some column of rows in the order of time.

    A single series has no other to be compared with. The time itself is not taken away with the trend: how long months
    are has the period of a year, and so have seasons. Columns that stay the same for long, as years do, are part of it.
    """
    levels_d = never_turns_d & ((np.diff(z_md, axis=0) != 0).mean(axis=0) <= 1 / FEW_STEPS)
    others_md = z_md[:, ~(time_d | levels_d)]
    return bool(_resemble(_leave(others_md, others_md[:, :0])).any())


def _find_keys(z_md: NDArray[np.float64], never_turns_d: NDArray[np.bool_]) -> list[int]:
    """Columns that rows may be sorted by, those of most values first: one never turns, or has each value in one block.

    The levels of a category have numbers that need not rise where they stand in order.
    """
    n_changes_d = (np.diff(z_md, axis=0) != 0).sum(axis=0)
    few = np.flatnonzero(~never_turns_d & (n_changes_d < len(z_md) / LEAST_BLOCK))
    in_blocks = [k for k in few.tolist() if len(np.unique(z_md[:, k])) == n_changes_d[k] + 1]
    places = [*np.flatnonzero(never_turns_d).tolist(), *in_blocks]
    return sorted(places, key=lambda k: -n_changes_d[k])[:MOST_KEYS]


def _explains(z_md: NDArray[np.float64], key: int) -> bool:
    """Whether rows are sorted by one column, those of a level perhaps by a second, and are not alike beyond that."""
    step_md = np.diff(z_md, axis=0)
    turns_m = step_md[:, key] != 0
    keys, design_mk, within_md = [key], z_md[:, [key]], step_md
    if turns_m.sum() < len(z_md) / LEAST_BLOCK:
        block_m = np.concatenate([[0], np.cumsum(turns_m)])
        design_mk, within_md = (block_m[:, None] == np.arange(1, block_m[-1] + 1)).astype(float), step_md[~turns_m]
    never_turns_d = _never_turn(within_md) & (within_md != 0).any(axis=0)
    if not never_turns_d[key] and never_turns_d.any():  # levels in blocks, and a second key
        keys.append(int(((within_md != 0).sum(axis=0) * never_turns_d).argmax()))
        design_mk = np.column_stack([design_mk, z_md[:, keys[-1]]])
    finest_m, few_d = within_md[:, keys[-1]], (step_md != 0).sum(axis=0) < FINE
    rising = [k for k in np.flatnonzero(never_turns_d).tolist() if k not in keys]
    totals = [k for k in rising if not few_d[k] and not _follows(finest_m, within_md[:, k])]
    if totals and _resemble(_leave(z_md[:, totals], design_mk)).any():
        return False
    rest_md = _leave(np.delete(z_md, [*keys, *(set(rising) - set(totals))], axis=1), design_mk)
    is_series = _resemble(rest_md, IN_ONE).any() or _resemble(rest_md, IN_TWO).sum() > 1
    return bool(_sum_lags(rest_md) < SLIGHT and not is_series)


def _follows(key_m: NDArray[np.float64], step_m: NDArray[np.float64]) -> bool:
    """Whether a column says the same as the key in other units, by the steps of both: a smooth function, or levels.

    Totals of their own rise where the key stays, or by steps that have nothing to do with those of the key.
    """
    moves_m = key_m != 0
    if moves_m.mean() < 0.8 and not step_m[~moves_m].any():
        return True
    both_m = moves_m & (step_m != 0)
    if both_m.sum() < FINE:
        return False
    slope_k, step_k = step_m[both_m] / key_m[both_m], key_m[both_m]
    rough, rough_key = (np.median(np.abs(np.diff(np.log(np.abs(one_k))))) for one_k in (slope_k, step_k))
    return bool(rough < rough_key / 2)


def _is_sorted_only(z_md: NDArray[np.float64]) -> bool:
    """Whether columns that never turn resemble their neighbours, and nothing that their order leaves of others does.

    Or whether a column has each of its levels in one block, and this explains how alike neighbours are.
    """
    never_turns_d = _never_turn(np.diff(z_md, axis=0))
    if not never_turns_d.any():
        return any(_explains(z_md, key) for key in _find_keys(z_md, never_turns_d))
    if not _resemble(z_md[:, never_turns_d]).any():
        return False
    return not _resemble(_leave(z_md, z_md[:, never_turns_d])).any()


def _never_turn(step_md: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray((step_md >= 0).all(axis=0) | (step_md <= 0).all(axis=0))


def _resemble(z_md: NDArray[np.float64], least: float = 0.0) -> NDArray[np.bool_]:
    """Columns in which neighbours are more alike, or less, than in any of so many independent ones and than `least`."""
    rho_d = (z_md[:-1] * z_md[1:]).sum(axis=0) / (z_md**2).sum(axis=0)
    return np.asarray(np.abs(rho_d) > max(CLEAR / np.sqrt(len(z_md)), least))


def find_order(z_md: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """What the rows are sorted by: the columns that never turn, or one combination of columns; None if by nothing.

    The combination is the one nearest to the normal scores of the row numbers. Columns must be centred.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z_md = rng.normal(size=(100, 3))
    >>> find_order(z_md) is None
    True
    >>> order_m = z_md[:, 1].argsort()
    >>> np.array_equal(find_order(z_md[order_m])[:, 0], z_md[order_m, 1])
    True
    """
    n_samples, n_variables = z_md.shape
    never_turns_d = _never_turn(np.diff(z_md, axis=0))
    if never_turns_d.any():
        return z_md[:, never_turns_d]
    if n_samples <= 2 * n_variables:  # so few rows that some combination is always near
        return None
    score_m = np.array([NormalDist().inv_cdf((m + 0.5) / n_samples) for m in range(n_samples)])
    key_m = regress(z_md, score_m[:, None])[:, 0]
    rank_m = key_m.argsort().argsort()
    return key_m[:, None] if np.corrcoef(rank_m, np.arange(n_samples))[0, 1] >= SORTED else None


def _leave(z_md: NDArray[np.float64], order_mk: NDArray[np.float64]) -> NDArray[np.float64]:
    """What the order of the rows leaves of the columns; nothing, and so no column, where it leaves only rounding."""
    trend_mk = np.polynomial.legendre.legvander(np.linspace(-1, 1, len(z_md)), TREND_DEGREE)
    design_mk = np.column_stack([trend_mk, order_mk])
    left_md = z_md - regress(design_mk, z_md)
    return left_md[:, (left_md**2).sum(axis=0) > 1e-9 * (z_md**2).sum(axis=0)]


def _sum_lags(z_md: NDArray[np.float64]) -> float:
    power_d = (z_md**2).sum(axis=0)
    n_samples, n_variables = z_md.shape
    n_pairs = max(n_variables * (n_variables - 1), 1)
    total = 0.0
    for lag in range(1, min(MOST_LAGS, n_samples // 4) + 1):
        rho_d = (z_md[:-lag] * z_md[lag:]).sum(axis=0) / power_d
        product = (rho_d.sum() ** 2 - (rho_d**2).sum()) / n_pairs
        if product * n_samples < SIGNIFICANT:
            break
        total += float(product)
    return 2 * total


def leave_experiments(x_md: NDArray[np.float64], set_md: NDArray[np.bool_]) -> NDArray[np.float64]:
    """What experiments leave of the columns: without the means of rows in which the same was set, to like levels.

    There are fewer rows by one for each such mean (`_leave_means`).

    Examples
    --------
    Rows in the order of what was set, and a series:

    >>> rng = np.random.default_rng(0)
    >>> set_md = np.arange(300)[:, None] // 100 == np.array([1, 2, 9, 9])
    >>> means_md = 3 * rng.normal(size=(3, 4)).repeat(100, axis=0)
    >>> table_md, walk_md = rng.normal(size=(300, 4)) + means_md, rng.normal(size=(300, 4)).cumsum(axis=0)
    >>> table_md[set_md] = walk_md[set_md] = 7
    >>> [measure_redundancy(x_md) > 1 for x_md in (table_md, walk_md)]
    [True, True]
    >>> [measure_redundancy(leave_experiments(x_md, set_md)) > 1 for x_md in (table_md, walk_md)]
    [False, True]
    """
    kind_m = np.unique(np.packbits(set_md, axis=1), axis=0, return_inverse=True)[1]
    group_m: NDArray[np.intp] = kind_m.reshape(-1)
    finer = (_split_by_level(group_m, x_md, set_md, parts) for parts in PARTS)
    group_m = next((finer_m for finer_m in finer if finer_m is not None), group_m)
    return _leave_means(x_md, group_m)


def _leave_means(x_md: NDArray[np.float64], group_m: NDArray[np.intp]) -> NDArray[np.float64]:
    """Each row without the mean of those before it in its group, to the scale of one row; first ones say nothing.

    What the mean of all rows of a group would leave of independent ones depends: −1/2 among three. This does not.

    Examples
    --------
    >>> _leave_means(np.array([[1.0], [5.0], [3.0], [8.0]]), np.array([0, 1, 0, 0])).round(2).tolist()
    [[1.41], [4.9]]
    """
    order, number_g = group_m.argsort(kind="stable"), np.bincount(group_m)
    first_g = np.cumsum(number_g) - number_g
    n_before_m = (np.arange(len(x_md)) - np.repeat(first_g, number_g))[:, None]
    sorted_md = x_md[order]
    before_md = np.cumsum(sorted_md, axis=0) - sorted_md
    before_md -= np.repeat(before_md[first_g], number_g, axis=0)
    left_md = np.empty_like(x_md)
    left_md[order] = (sorted_md - before_md / np.maximum(n_before_m, 1)) * np.sqrt(n_before_m / (n_before_m + 1))
    left_md[np.abs(left_md) < 1e-9 * np.abs(x_md).max(axis=0, initial=0.0)] = 0.0  # rounding
    return left_md[np.sort(order[n_before_m[:, 0] > 0])]


def _split_by_level(
    group_m: NDArray[np.intp], x_md: NDArray[np.float64], set_md: NDArray[np.bool_], parts: int
) -> NDArray[np.intp] | None:
    """Groups of rows parted by what cells were set to: the levels of a column, in so many parts at most.

    None where they are too many.
    """
    for k in np.flatnonzero(set_md.any(axis=0)):
        level_m, is_set_m = np.zeros(len(x_md), dtype=np.intp), set_md[:, k]
        levels, level_m[is_set_m] = np.unique(x_md[is_set_m, k], return_inverse=True)
        if len(levels) > parts:
            cuts = np.quantile(x_md[is_set_m, k], np.linspace(0, 1, parts + 1)[1:-1])
            level_m[is_set_m] = np.searchsorted(cuts, x_md[is_set_m, k])
        group_m = np.unique(group_m * (level_m.max() + 1) + level_m, return_inverse=True)[1].reshape(-1)
        if group_m.max() >= MOST_GROUPS * len(x_md):
            return None
    return group_m


def find_copies(x_md: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Rows that are copies of earlier ones; none where equal rows are natural, as in tables of categories or counts.

    Only columns of more than `FINE` distinct values are looked at, one of those that rise or fall together. Rows that
    agree in half of them must agree in all; rows of common values do not count.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x_md = rng.normal(size=(40, 6))
    >>> int(find_copies(x_md).sum()), int(find_copies(rng.permutation(np.tile(x_md, (5, 1)))).sum())
    (0, 160)
    >>> find_copies(rng.integers(5, size=(200, 6))).any()
    np.False_
    """
    is_copy_m = np.zeros(len(x_md), dtype=bool)
    ranks_mk, common_mk = _rank_fine(x_md)
    if ranks_mk.shape[1] < 2:
        return is_copy_m
    measured_m = common_mk.mean(axis=1) < 0.5
    firsts = _find_firsts(ranks_mk[measured_m])
    n_halves = [len(_find_firsts(ranks_mk[measured_m, start::2])) for start in (0, 1)]
    if min(n_halves) >= ALIKE * len(firsts):
        is_copy_m[measured_m] = True
        is_copy_m[np.flatnonzero(measured_m)[firsts]] = False
    return is_copy_m


def _rank_fine(x_md: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Ranks in columns of many distinct values, and which are common; no columns if one has no value twice."""
    n_samples = len(x_md)
    nothing = np.empty((n_samples, 0), dtype=np.int64), np.empty((n_samples, 0), dtype=bool)
    found: dict[bytes, tuple[int, int, NDArray[np.int64], NDArray[np.bool_]]] = {}
    for column_m in x_md.T:
        values, rank_m = np.unique(column_m, return_inverse=True)
        if len(values) == n_samples:
            return nothing
        if len(values) > FINE:
            count_k = np.bincount(rank_m)
            is_common_k = count_k > max(COMMON * np.median(count_k), COMMON_SHARE * n_samples)
            key = min(
                rank_m.tobytes(), (len(values) - 1 - rank_m).tobytes()
            )  # one key for columns that rise or fall together
            found[key] = len(values), int(np.square(count_k).sum()), rank_m, is_common_k[rank_m]
    if not found:
        return nothing
    in_order = sorted(found.values(), key=lambda one: one[:2], reverse=True)  # by content, whatever stands first
    return np.column_stack([one[2] for one in in_order]), np.column_stack([one[3] for one in in_order])


def _find_firsts(ranks_mk: NDArray[np.int64]) -> NDArray[np.intp]:
    """Places of rows that equal none before them.

    Examples
    --------
    >>> _find_firsts(np.array([[0, 1], [1, 1], [0, 1]])).tolist()
    [0, 1]
    """
    first_of: dict[bytes, int] = {}
    for place, row in enumerate(np.ascontiguousarray(ranks_mk)):
        first_of.setdefault(row.tobytes(), place)
    return np.fromiter(first_of.values(), dtype=np.intp, count=len(first_of))


def count_rows(n_drawn: int, n_samples: int, redundancy: float) -> float:
    """Independent rows that `n_drawn` of a table's `n_samples` rows are worth; thinned rows repeat each other less.

    Examples
    --------
    >>> count_rows(500, 500, 0.0), count_rows(500, 500, 4.0), count_rows(50, 500, 4.0)
    (500.0, 100.0, 35.714285714285715)
    """
    worth = n_drawn / (1 + redundancy * n_drawn / n_samples)
    return min(float(n_drawn), max(FEWEST, worth))


def count_rows_each(x_bmd: NDArray[np.floating], set_bmd: NDArray[np.bool_] | None = None) -> list[float]:
    """Independent rows of each of several tables of one shape, all of their rows drawn; `set_bmd` are cells that were
    set in them.

    Examples
    --------
    >>> count_rows_each(np.random.default_rng(0).normal(size=(2, 300, 4)))
    [300.0, 300.0]
    """
    n_samples, tables = x_bmd.shape[1], list(x_bmd.astype(np.float64))
    if set_bmd is not None:
        tables = [
            leave_experiments(x_md, set_md) if set_md.any() else x_md
            for x_md, set_md in zip(tables, set_bmd, strict=True)
        ]
    return [count_rows(n_samples, n_samples, measure_redundancy(x_md)) for x_md in tables]
