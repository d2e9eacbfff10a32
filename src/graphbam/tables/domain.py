"""Is a table unlike those of training? Ten numbers that describe it, and the ranges that weights carry for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from graphbam.tables.algebra import multiply
from graphbam.tables.table import Matrix

FEATURES = {
    "n_samples": "number of rows",
    "n_variables": "number of variables",
    "tail_width": "weight of the tails (99 % range over 50 % range)",
    "outlier_share": "share of values more than ten robust deviations out",
    "asymmetry": "asymmetry of the columns",
    "discrete_share": "share of columns with few distinct values",
    "mean_correlation": "mean absolute correlation",
    "strongest_correlation": "strongest correlation of a variable, averaged",
    "effective_rank": "effective rank relative to full",
    "row_dependence": "likeness of consecutive rows (near 0 for independent ones)",
}
"""What `describe_table` measures, in words."""

COLUMNS_AT_ONCE = 1000
"""Columns whose correlations with all others are held at a time."""

_HARMLESS_BELOW = {
    "tail_width", "outlier_share", "asymmetry", "discrete_share", "mean_correlation", "strongest_correlation",
    "row_dependence",
}  # fmt: skip
_HARMLESS_ABOVE = {"effective_rank"}


def describe_table(x_md: Matrix) -> dict[str, float]:
    """Measure what a table looks like, whatever its units and the order of its columns.

    Parameters
    ----------
    x_md : ndarray, shape (M, D)
        Finite numbers, before standardising, rows in their original order, M ≥ 2 and D ≥ 2.

    Returns
    -------
    dict
        One number for every key of `FEATURES`.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(500, 8))
    >>> about = describe_table(x)
    >>> about["n_samples"], round(about["effective_rank"], 1), about["discrete_share"]
    (500.0, 1.0, 0.0)
    """
    n_rows, n_columns = x_md.shape
    sorted_md = np.sort(np.asarray(x_md, dtype=np.float64), axis=0)
    middle, half, wide, lean = _shape_of(sorted_md)
    z_md = np.clip((x_md - middle) / half, -10, 10)
    distinct = 1 + (np.diff(sorted_md, axis=0) > 0).sum(axis=0)
    total, squares, strongest = _sum_correlations(np.clip(z_md, -5, 5))
    rank = n_columns**2 / (n_columns + squares)
    return {
        "n_samples": float(n_rows),
        "n_variables": float(n_columns),
        "tail_width": float(np.mean(wide)),
        "outlier_share": float(np.mean(np.abs(z_md) >= 10)),
        "asymmetry": float(np.mean(np.abs(lean))),
        "discrete_share": float(np.mean(distinct <= min(20, n_rows / 2))),
        "mean_correlation": total / (n_columns * (n_columns - 1)),
        "strongest_correlation": strongest / n_columns,
        "effective_rank": float(rank / min(n_columns, n_rows - 1)),
        "row_dependence": _row_dependence(z_md),
    }


def _shape_of(sorted_md: Matrix) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Median, robust deviation, width of the tails and lean of columns that are already sorted."""
    n_rows = len(sorted_md)

    def quantile(q: float) -> Matrix:
        row: Matrix = sorted_md[round(q * (n_rows - 1))]
        return row

    middle = quantile(0.5)
    box = quantile(0.75) - quantile(0.25)
    box = np.maximum(box, 1e-4 * (sorted_md[-1] - sorted_md[0]))  # more than half of the values may be equal
    box = np.where(box > 0, box, 1.0)
    wide = (quantile(0.99) - quantile(0.01)) / box
    lean = (quantile(0.9) + quantile(0.1) - 2 * middle) / np.maximum(quantile(0.9) - quantile(0.1), box)
    return middle, box / 1.349, np.minimum(wide, 1e3), lean


def _row_dependence(z_md: Matrix) -> float:
    """Mean |correlation of neighbouring rows| above what independent rows give, in about standard deviations."""
    z_md = z_md[:5000] - z_md[:5000].mean(axis=0)
    power = (z_md**2).sum(axis=0)
    lag = np.abs((z_md[1:] * z_md[:-1]).sum(axis=0)) / np.where(power > 0, power, 1.0)
    excess = lag.mean() * np.sqrt(len(z_md) * np.pi / 2) - 1
    return float(excess * np.sqrt(z_md.shape[1] / (np.pi / 2 - 1)))


def summarise_domain(tables: Iterable[Mapping[str, float]], coverage: float = 0.998) -> dict[str, list[float]]:
    """Turn the features of many training tables into the ranges that weights carry under ``"domain"``.

    Parameters
    ----------
    tables : iterable of dict
        What `describe_table` returned for each.
    coverage : float
        Share of the tables inside the range of each feature; high, because every feature may raise an alarm.

    Examples
    --------
    >>> summarise_domain([{"n_samples": float(k)} for k in range(101)], coverage=0.98)
    {'n_samples': [1.0, 99.0]}
    """
    rows = list(tables)
    tail = (1 - coverage) / 2
    return {
        name: [round(float(q), 6) for q in np.quantile([row[name] for row in rows], [tail, 1 - tail])]
        for name in rows[0]
    }


def judge_domain(features: Mapping[str, float], ranges: Mapping[str, Sequence[float]]) -> list[str]:
    """Say where a table lies outside what the weights were trained on.

    Parameters
    ----------
    features : dict
        From `describe_table`.
    ranges : dict
        From `summarise_domain`, as weights carry them.

    Returns
    -------
    list of str
        One sentence for each feature outside its range, on a side that makes the task harder.

    Examples
    --------
    >>> judge_domain({"n_samples": 6000.0}, {"n_samples": [50.0, 1500.0]})
    ['unlike training: number of rows is 6000, where training tables lie between 50 and 1500']
    """
    return [
        f"unlike training: {FEATURES.get(name, name)} is {_spell(features[name])}, where training tables lie "
        f"between {_spell(low)} and {_spell(high)}"
        for name, (low, high) in ranges.items()
        if name in features and _is_outside(name, features[name], low, high)
    ]


def _is_outside(name: str, value: float, low: float, high: float) -> bool:
    return (value < low and name not in _HARMLESS_BELOW) or (value > high and name not in _HARMLESS_ABOVE)


def _spell(value: float) -> str:
    """Three digits of a measure, all digits of a count."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _sum_correlations(x_md: Matrix) -> tuple[float, float, float]:
    """Sums over pairs of columns of |r| and of r², and over columns of the largest |r|; some columns at a time."""
    z_md = _scale(x_md)
    total = squares = strongest = 0.0
    for start in range(0, z_md.shape[1], COLUMNS_AT_ONCE):
        r_kd = np.abs(multiply(z_md[:, start : start + COLUMNS_AT_ONCE].T, z_md))
        r_kd[np.arange(len(r_kd)), start + np.arange(len(r_kd))] = 0.0
        total += float(r_kd.sum())
        squares += float(np.square(r_kd).sum())
        strongest += float(r_kd.max(axis=1).sum())
    return total, squares, strongest


def correlate(x_md: Matrix) -> Matrix:
    """Correlations of all pairs of columns, shape (D, D); 0 for constant ones."""
    z_md = _scale(x_md)
    return multiply(z_md.T, z_md)


def _scale(x_md: Matrix) -> Matrix:
    """Centred columns of length one; constant ones are 0."""
    z_md = x_md - x_md.mean(axis=0)
    norm = np.linalg.norm(z_md, axis=0)
    z_md /= np.where(norm > 0, norm, 1)
    return z_md
