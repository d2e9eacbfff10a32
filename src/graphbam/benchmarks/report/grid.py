"""Scores of methods in columns: what a figure draws and what its table prints."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from graphbam.benchmarks.report.rows import Metric
from graphbam.benchmarks.report.summary import rank_tables, spread


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
