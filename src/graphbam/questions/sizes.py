"""Signs and rough sizes of links.

For an arrow a → b: the coefficient of a in a linear regression of b on a, on the other parents of b and on the
variables that open links join to b. For an open link a — b: the correlation of what is left of the two when the parents
of both, and the variables that open links join to them, are taken away, each by a line. All variables have variance
one: a coefficient of 0.3 means that one standard deviation more of a goes with 0.3 more of b while the rest stays.

A line is not the truth. So the rows are sorted by a and cut into six groups, and b is freed of what the line gives to
the other variables. If its means clearly rise between two groups and clearly fall between two others, the link has no
sign: "not monotone". Of an open link both ways are looked at. If the interval holds zero, or groups speak against the
sign of the line, the sign is "unclear". Where the levels of a column of text got numbers without an order, by what the
other columns say of them or by frequency, there is no sign either: "no order", and the size is given without one.

Rows count in which none of the variables concerned was missing: what was filled in is what a line through all others,
effects of b among them, expects. Rows in which an experiment set b say nothing of a → b, nor those in which it set
either of an open link: there the others had no say.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphbam.errors import ResultError
from graphbam.graphs.cut import Cut
from graphbam.graphs.graph import BoolMatrix, Vector
from graphbam.questions.rows import Rows
from graphbam.result import Result

if TYPE_CHECKING:
    import pandas as pd

N_GROUPS = 6
CLEARLY = 3.0
"""Standard errors between the means of two groups from which on they clearly differ."""

POSITIVE, NEGATIVE, BENT, UNCLEAR, UNORDERED = "+", "−", "not monotone", "unclear", "no order"


def find_unordered(result: Result) -> frozenset[str]:
    """Columns of text whose codes have no order: more of them means nothing."""
    return frozenset(result.provenance.get("unordered", ()))


def measure_links(result: Result, cut: Cut) -> pd.DataFrame:
    """See `Result.effects`."""
    import pandas as pd

    rows = Rows.of(result)
    if rows is None:
        raise ResultError(
            "this result keeps no rows to measure links on (one read back from files has none). Infer it again."
        )
    graph = result.graph(cut)
    adjacency = graph.adjacency > 0
    place = {name: k for k, name in enumerate(result.names)}
    edges = [(a, "->", b) for a, b in graph.directed_edges()] + [(a, "--", b) for a, b in graph.undirected_edges()]
    unordered = find_unordered(result)
    lines = [_measure_one(result, rows, adjacency, place[a], mark, place[b]) for a, mark, b in edges]
    lines = [_take_sign(line) if unordered & {line["a"], line["b"]} else line for line in lines]
    columns = ["a", "edge", "b", "skeleton", "size", "low", "high", "sign", "given"]
    table = pd.DataFrame(lines, columns=columns)
    return table.sort_values("skeleton", ascending=False, kind="stable").reset_index(drop=True)


def _measure_one(result: Result, rows: Rows, adjacency: BoolMatrix, i: int, mark: str, j: int) -> dict[str, Any]:
    before = adjacency[:, j].copy()  # parents of b and what open links join to it
    if mark == "--":
        before |= adjacency[:, i]
    before[[i, j]] = False
    given = np.flatnonzero(before).tolist()
    size, low, high, sign = measure_pair(rows, i, j, given, is_arrow=mark == "->")
    names = result.names
    return {
        "a": names[i],
        "edge": mark,
        "b": names[j],
        "skeleton": float(result.probabilities[i, j, 1]),
        "size": size,
        "low": low,
        "high": high,
        "sign": sign,
        "given": tuple(names[k] for k in given),
    }


def _take_sign(line: dict[str, Any]) -> dict[str, Any]:
    """A link whose sign is an accident of codes: its size without one."""
    sign = UNCLEAR if line["sign"] == UNCLEAR else UNORDERED
    turned = {"size": -line["size"], "low": -line["high"], "high": -line["low"]} if line["size"] < 0 else {}
    return line | turned | {"sign": sign}


def measure_pair(
    rows: Rows, i: int, j: int, given: Sequence[int], *, is_arrow: bool = True
) -> tuple[float, float, float, str]:
    """Size of a link with the limits of a rough 95 % interval, and its sign; NaN where the others leave nothing.

    Examples
    --------
    >>> x_m = np.random.default_rng(0).normal(size=500)
    >>> y_m = x_m + np.random.default_rng(1).normal(size=500)
    >>> rows = Rows(np.column_stack([x_m, y_m, x_m**2]), 500)
    >>> size, low, high, sign = measure_pair(rows, 0, 1, [])
    >>> bool(low < 1 < high), sign, measure_pair(rows, 0, 2, [])[3]
    (True, '+', 'not monotone')
    """
    rows = rows.measured([i, j, *given]).usual([j] if is_arrow else [i, j])
    free = rows.worth - len(given) - 2
    if free < 1:
        return math.nan, math.nan, math.nan, UNCLEAR
    x_m, y_m = rows.residual(i, given), rows.residual(j, given)
    if x_m.var() <= 1e-6 * rows.x_md[:, i].var() or y_m.var() <= 1e-6 * rows.x_md[:, j].var():
        return math.nan, math.nan, math.nan, UNCLEAR
    if not is_arrow:
        x_m, y_m = x_m / x_m.std(), y_m / y_m.std()
    size = float(x_m @ y_m / (x_m @ x_m))
    spread = _spread(x_m, y_m, size, is_arrow=is_arrow)
    half = float(1.96 * spread * np.sqrt(len(x_m) / free))
    low, high = (size - half, size + half) if is_arrow else _bound_correlation(size, half)
    ways = [(i, j), (j, i)][: 1 if is_arrow else 2]
    return size, low, high, _judge_sign(rows, ways, given, size, low <= 0 <= high)


def _spread(x_m: Vector, y_m: Vector, size: float, *, is_arrow: bool) -> float:
    """Standard error of a slope, or of a correlation: by what each row that is left out would move it, or by one noise
    for all.

    The former holds where noise differs from row to row; where x has one value in all rows but a few, it is too small.
    The variances in a correlation are estimates too: each row moves it by the mean of what it moves both slopes.

    Examples
    --------
    >>> x_m, y_m = np.array([1.0, -1.0, 1.0, -1.0]), np.array([0.3, 0.3, -0.3, -0.3])
    >>> _spread(x_m, x_m, 1.0, is_arrow=True), round(_spread(x_m, y_m, 0.0, is_arrow=True), 2)
    (0.0, 0.2)
    """
    power, rest_m = x_m @ x_m, y_m - size * x_m
    error_m, alike = _leave_out(x_m, rest_m), np.sqrt(rest_m @ rest_m / len(x_m) / power)
    if not is_arrow:
        error_m = (error_m + _leave_out(y_m, x_m - size * y_m)) / 2
        alike *= np.sqrt(max(0.0, 1 - size**2))
    return float(max(np.sqrt((error_m**2).sum()) / power, alike))


def _leave_out(x_m: Vector, rest_m: Vector) -> Vector:
    """What each row adds to the error of a slope, times the power of x; a row far out draws the line to itself."""
    return x_m * rest_m / (1 - np.minimum(x_m**2 / (x_m @ x_m), 0.99))


def _bound_correlation(size: float, half: float) -> tuple[float, float]:
    """An interval around a correlation by Fisher's transformation: none is beyond ±1.

    Examples
    --------
    >>> low, high = _bound_correlation(0.9, 0.2)
    >>> round(low, 2), round(high, 2)
    (0.4, 0.99)
    """
    size = float(np.clip(size, -1 + 1e-12, 1 - 1e-12))
    middle, half = math.atanh(size), half / (1 - size**2)
    return math.tanh(middle - half), math.tanh(middle + half)


def _judge_sign(
    rows: Rows, ways: Sequence[tuple[int, int]], given: Sequence[int], size: float, holds_zero: bool
) -> str:
    steps = [_find_steps(rows.x_md[:, i], rows.free(j, i, given), len(rows.x_md) / rows.worth) for i, j in ways]
    if any(rise and fall for rise, fall in steps):
        return BENT
    if holds_zero or any(rise if size < 0 else fall for rise, fall in steps):
        return UNCLEAR
    return POSITIVE if size > 0 else NEGATIVE


def _find_steps(x_m: Vector, y_m: Vector, inflation: float) -> tuple[bool, bool]:
    """Whether means of y clearly rise, and whether they clearly fall, between two groups of rows sorted by x."""
    values = np.unique(x_m)
    if len(values) > N_GROUPS:
        cuts = np.unique(np.quantile(x_m, np.linspace(0, 1, N_GROUPS + 1)[1:-1]))
        group_m = np.searchsorted(cuts, x_m)
    else:
        group_m = np.searchsorted(values, x_m)
    groups = [y_m[group_m == k] for k in np.unique(group_m) if (group_m == k).sum() > 2]
    means = np.array([group.mean() for group in groups])
    errors = np.array([group.var(ddof=1) / len(group) for group in groups]) * inflation
    gaps = (means[None, :] - means[:, None]) / np.sqrt(errors[None, :] + errors[:, None] + 1e-12)
    steps = gaps[np.triu_indices(len(groups), 1)]
    return bool((steps > CLEARLY).any()), bool((steps < -CLEARLY).any())
