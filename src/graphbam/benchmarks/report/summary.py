"""Rows of results → means, ranks, wins, and the cells in which we are not first: numbers only.

Rules, the same everywhere:

- Every cell counts once: its tables (trials, or members of a family) are averaged first.
- Ranks are taken table by table, 1 is best, equal scores share the mean of their places. A fit that failed shares the
  last places. Tables on which some compared method has no row at all are left out, whatever the others got there.
- A cell is won by the best mean over its tables. A method that failed on one of them cannot win it; ties count for all.
- Standard deviations have n − 1 in the denominator; of a single number there is none.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from graphbam.benchmarks.report.rows import METRICS, Metric, choose_ours, is_ours
from graphbam.errors import name_some

LEAST_SHARE = 0.75
"""A method must have rows for this share of a group's tables to be ranked there: the others would be judged on few."""

_TIE = 1e-9


@dataclasses.dataclass(frozen=True)
class Ranking:
    """Who is how far in front, over the cells that all compared methods share."""

    table: pd.DataFrame
    """Index: method, best first; columns: mean_rank, wins."""
    n_cells: int
    n_tables: int
    left_out: dict[str, str]
    """Methods that are not ranked, with the reason."""


def spread(rows: pd.DataFrame, metric: str, by: list[str]) -> pd.DataFrame:
    """Mean, standard deviation and number of the scores of each kind of row.

    Examples
    --------
    >>> rows = pd.DataFrame({"method": ["a", "a", "b"], "skeleton_ap": [0.2, 0.4, np.nan]})
    >>> spread(rows, "skeleton_ap", ["method"]).round(3).to_dict("index")
    {'a': {'mean': 0.3, 'sd': 0.141, 'n': 2}, 'b': {'mean': nan, 'sd': nan, 'n': 0}}
    """
    grouped = rows.groupby(by, sort=False)[metric]
    return pd.DataFrame({"mean": grouped.mean(), "sd": grouped.std(ddof=1), "n": grouped.count()})


def spread_over_cells(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Mean of the cells' means, their standard deviation, and the number of cells, one row per method."""
    cells = rows.groupby(["method", "cell"], sort=False)[metric].mean()
    return spread(cells.reset_index(), metric, ["method"])


def rank_methods(rows: pd.DataFrame, metric: str) -> Ranking:
    """Rank methods by a score over the cells of `rows`; rules in the module's head."""
    judged = METRICS[metric]
    values, left_out = _compare(rows, judged)
    if values.empty:
        return Ranking(pd.DataFrame({"mean_rank": [], "wins": []}), 0, 0, left_out)
    ranks = rank_tables(values, judged.is_better_high)
    mean_rank = ranks.groupby(level="cell").mean().mean()
    wins = find_winners(values, judged.is_better_high).sum()
    table = pd.DataFrame({"mean_rank": mean_rank, "wins": wins.astype(int)}).rename_axis("method")
    n_cells = values.index.get_level_values("cell").nunique()
    return Ranking(table.sort_values(["mean_rank", "wins"], ascending=[True, False]), n_cells, len(values), left_out)


def _compare(rows: pd.DataFrame, metric: Metric) -> tuple[pd.DataFrame, dict[str, str]]:
    """Scores: rows (cell, table) that all compared methods share, one column per method; and who is not compared."""
    n_tables = rows.groupby(["cell", "table"]).ngroups
    left_out, compared = {}, []
    for method, own in rows.groupby("method", sort=True):
        if own[metric.name].isna().all():
            left_out[str(method)] = "gives no directions" if _is_undirected(own, metric) else "no result"
        elif len(own) < LEAST_SHARE * n_tables:
            left_out[str(method)] = f"has rows for {len(own)} of {n_tables} tables"
        else:
            compared.append(str(method))
    rows = rows[rows["method"].isin(compared)]
    values = rows.pivot(index=["cell", "table"], columns="method", values=metric.name)
    n_rows = rows.groupby(["cell", "table"]).size()
    shared = (n_rows == len(compared)) & values.notna().any(axis=1)
    return values[shared.reindex(values.index)], left_out


def _is_undirected(own: pd.DataFrame, metric: Metric) -> bool:
    return metric.is_directed and bool((own["kind"] == "undirected").all())


def rank_tables(values: pd.DataFrame, is_better_high: bool) -> pd.DataFrame:
    """Rank the columns in each row; equal values share the mean of their places, missing ones the last places.

    Examples
    --------
    >>> values = pd.DataFrame({"a": [0.9], "b": [0.5], "c": [0.5], "d": [np.nan], "e": [np.nan]})
    >>> rank_tables(values, is_better_high=True).iloc[0].tolist()
    [1.0, 2.5, 2.5, 4.5, 4.5]
    """
    worst = -np.inf if is_better_high else np.inf
    return values.round(9).fillna(worst).rank(axis=1, ascending=not is_better_high, method="average")


def find_winners(values: pd.DataFrame, is_better_high: bool) -> pd.DataFrame:
    """Which methods have the best mean of each cell; one that failed on a table of the cell cannot.

    Parameters
    ----------
    values : DataFrame
        Rows (cell, table), one column per method.
    """
    means = mean_of_complete(values) * (1 if is_better_high else -1)
    return means.ge(means.max(axis=1) - _TIE, axis=0)


def mean_of_complete(values: pd.DataFrame) -> pd.DataFrame:
    """Mean of each cell, missing where a table of the cell is missing."""
    cells = values.groupby(level="cell", sort=False)
    return cells.mean().where(values.notna().groupby(level="cell", sort=False).all())


def list_losses(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The cells in which we are not first, the largest gap first.

    Over all cells in which we have rows. In each, those methods compete that answered every table on which we have a
    row; variants of ours do not.

    Returns
    -------
    DataFrame
        Columns group, cell, ours, best (its method), theirs, gap (how far behind, positive), n_ahead (tables on which
        we are ahead of it), n_tables. `ours` and `gap` are missing where one of our fits failed.
    """
    judged = METRICS[metric]
    us = choose_ours(rows["method"].unique().tolist())
    columns = ["group", "cell", "ours", "best", "theirs", "gap", "n_ahead", "n_tables"]
    if us is None or _is_undirected(rows[rows["method"] == us], judged):
        return pd.DataFrame(columns=columns)
    sign = 1 if judged.is_better_high else -1
    rivals = rows[(rows["method"] == us) | ~rows["method"].map(is_ours)]
    found = []
    for (group, cell), own in rivals.groupby(["group", "cell"], sort=False):
        values = own.pivot(index="table", columns="method", values=metric)
        if us not in values:
            continue
        values = values[values.index.isin(own.loc[own["method"] == us, "table"])].dropna(how="all")
        loss = _lose(sign * values, us)
        if loss is not None:
            best, n_ahead = loss
            ours, theirs = values[us].mean(skipna=False), values[best].mean()
            found.append((group, cell, ours, best, theirs, sign * (theirs - ours), n_ahead, len(values)))
    losses = pd.DataFrame(found, columns=columns)
    return losses.sort_values(["gap", "cell"], ascending=[False, True], na_position="first", ignore_index=True)


def _lose(values: pd.DataFrame, us: str) -> tuple[str, int] | None:
    """The best rival of a cell and on how many tables we are ahead of it, or None if we are first."""
    means = values.drop(columns=us).mean(skipna=False).dropna()
    if means.empty or values[us].mean(skipna=False) >= means.max() - _TIE:
        return None
    best = str(means.idxmax())
    return best, int((values[us] > values[best] + _TIE).sum())


def summarise(rows: pd.DataFrame) -> tuple[pd.DataFrame, Ranking, Ranking]:
    """One row per method: ranks, wins, means over cells, how many tables it answered, seconds.

    Returns
    -------
    table : DataFrame
        Index: method, best rank first. Columns rank, wins, shd_rank, shd_wins; mean and sd between cells of each
        score, such as skeleton_ap_mean and skeleton_ap_sd; n_ok and n_tables; n_cells with a result; seconds (median).
    by_ap, by_shd : Ranking
        Where the ranks come from: average precision of the skeleton, and SHD of the CPDAG.
    """
    by_ap, by_shd = rank_methods(rows, "skeleton_ap"), rank_methods(rows, "shd")
    methods = rows.groupby("method")
    table = pd.DataFrame({"n_ok": methods["is_ok"].sum(), "n_tables": methods.size()})
    table["seconds"] = methods["seconds"].median()
    table["n_cells"] = rows[rows["is_ok"]].groupby("method")["cell"].nunique()
    for metric in ("skeleton_ap", "moral_ap", "skeleton_f1", "cpdag_ap", "shd_ratio"):
        cells = spread_over_cells(rows, metric)
        table[f"{metric}_mean"], table[f"{metric}_sd"] = cells["mean"], cells["sd"]
    table[["rank", "wins"]] = by_ap.table.reindex(table.index)
    table[["shd_rank", "shd_wins"]] = by_shd.table.reindex(table.index)
    table = table[table["n_ok"] > 0].sort_values(["rank", "skeleton_ap_mean"], ascending=[True, False])
    return table.fillna({"n_cells": 0}), by_ap, by_shd


def list_failures(rows: pd.DataFrame) -> pd.DataFrame:
    """Why methods gave no answer: one row per method, status and reason; columns n_tables, n_all and where."""
    n_all = rows.groupby("method").size()
    failed = rows[~rows["is_ok"]].sort_values(["method", "status", "reason", "n_variables", "n_samples"])
    grouped = failed.groupby(["method", "status", "reason"], sort=True)
    table = grouped.agg(n_tables=("table", "size"), where=("cell", _name_some)).reset_index()
    table["n_all"] = table["method"].map(n_all)
    return table


def _name_some(cells: pd.Series, most: int = 3) -> str:
    names = list(dict.fromkeys(cells))
    return name_some(names[:most], len(names))


# ── grids: scores of methods in columns, which a figure draws and its table prints ──────────────────────────


class Spread(NamedTuple):
    """Scores of one method in one column."""

    mean: float = math.nan
    sd: float = math.nan
    """NaN for fewer than two scores."""
    n: int = 0


@dataclasses.dataclass(frozen=True)
class Grid:
    """Methods × columns. A column is a mechanism, a size, a shape or a family."""

    metric: Metric
    columns: tuple[Any, ...]
    titles: tuple[str, ...]
    """Of the columns."""
    order: tuple[str, ...]
    """Methods with a score, best first."""
    spreads: dict[tuple[str, Any], Spread]
    why: dict[tuple[str, Any], str]
    """Status of methods that have rows in a column, but no score."""
    floors: dict[Any, float]
    """What the graph without edges gets, by column; empty where the score knows no such floor."""
    sizes: dict[Any, int]
    """Number of tables with a score, by column."""
    published: dict[tuple[str, Any], float]
    """Numbers of others for the same cells."""

    def get(self, method: str, column: Any) -> Spread:
        """The scores of a method in a column; none if it has no row there."""
        return self.spreads.get((method, column), Spread())

    def is_complete(self, method: str, column: Any) -> bool:
        """Whether a method has a score for every table of a column."""
        return self.get(method, column).n == self.sizes[column]

    def n_trials(self) -> str:
        """How many tables a mean is over.

        Examples
        --------
        >>> make = lambda sizes: Grid(Metric("x", "X", "x"), (), (), (), {}, {}, {}, sizes, {}).n_trials()
        >>> make({"sine": 5, "cosine": 5}), make({"sine": 3, "cosine": 5})
        ('5', '3 to 5')
        """
        low, high = min(self.sizes.values()), max(self.sizes.values())
        return str(high) if low == high else f"{low} to {high}"


def make_grid(
    rows: pd.DataFrame,
    metric: Metric,
    across: str,
    columns: Sequence[Any],
    titles: Sequence[str],
    published: Mapping[tuple[str, Any], float] | None = None,
) -> Grid:
    """Average a score over the rows that share method and column.

    Parameters
    ----------
    rows : DataFrame
        From `read_rows`.
    across : str
        The column of `rows` whose values make the columns of the grid.
    columns, titles : sequence
        Values of `across`, each with a score, in the order shown; and what they are called.
    published : mapping, optional
        Numbers of others by method and column.
    """
    rows = rows[rows[across].isin(columns)]
    scored = rows[rows[metric.name].notna()]
    rows = rows[rows["method"].isin(scored["method"].unique())]
    table = spread(rows, metric.name, ["method", across])
    wide = table["mean"].unstack(0).reindex(list(columns))
    order = rank_tables(wide, metric.is_better_high).mean().sort_values(kind="stable").index
    status = rows[rows[metric.name].isna()].groupby(["method", across])["status"].first()
    floors: dict[Any, float] = {}
    if metric.floor is not None:
        truths = scored.dropna(subset=[metric.floor]).drop_duplicates("table")
        floors = truths.groupby(across)[metric.floor].mean().to_dict()
    return Grid(
        metric=metric,
        columns=tuple(columns),
        titles=tuple(titles),
        order=tuple(map(str, order)),
        spreads={key: Spread(*numbers) for key, *numbers in table.itertuples(name=None)},
        why={key: str(status[key]) for key in table.index[table["n"] == 0]},
        floors=floors,
        sizes=scored.groupby(across)["table"].nunique().to_dict(),
        published=dict(published or {}),
    )
