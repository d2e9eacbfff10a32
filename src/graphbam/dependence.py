"""How many independent rows a table is worth: in a time series, neighbouring rows say the same thing twice.

Between two columns with autocorrelations ρ_i(k) and ρ_j(k), but otherwise unrelated, the sample correlation of M rows
varies as if there were only

    M / (1 + 2 Σ_k ρ_i(k) ρ_j(k))

of them (Bartlett, 1946). The sum, as a mean over all pairs of columns, is what is measured here, and the network is
told that number instead of M. Where rows are independent it is exactly M.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SIGNIFICANT = 11.0
"""Lags count as long as M ρ_i(k) ρ_j(k) exceeds this: one independent table in a thousand does so at the first lag."""

MOST_LAGS, MOST_ROWS = 100, 5000
"""Further lags and later rows are not looked at: even a thousand slow columns then take seconds, not minutes."""

FEWEST = 10.0
"""No table is taken for less."""


def measure_redundancy(x_md: NDArray[np.float64]) -> float:
    """Twice the sum over lags of ρ_i(k) ρ_j(k), a mean over pairs of columns; 0 for independent rows.

    Lags end at a hundred or a quarter of the rows, or before the first that could be chance. Nothing but the order of
    rows decides, so a table that was merely sorted looks like a time series.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> measure_redundancy(rng.normal(size=(300, 4)))
    0.0
    >>> walk_md = rng.normal(size=(300, 4)).cumsum(axis=0)
    >>> measure_redundancy(walk_md) > 5
    True
    """
    x_md = x_md[:MOST_ROWS]
    z_md = x_md - x_md.mean(axis=0)
    power_d = (z_md**2).sum(axis=0)
    z_md, power_d = z_md[:, power_d > 0], power_d[power_d > 0]  # constant columns do not count
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


def count_rows(n_drawn: int, n_samples: int, redundancy: float) -> float:
    """Independent rows that `n_drawn` of a table's `n_samples` rows are worth; thinned rows repeat each other less.

    Examples
    --------
    >>> count_rows(500, 500, 0.0), count_rows(500, 500, 4.0), count_rows(50, 500, 4.0)
    (500.0, 100.0, 35.714285714285715)
    """
    worth = n_drawn / (1 + redundancy * n_drawn / n_samples)
    return min(float(n_drawn), max(FEWEST, worth))


def count_rows_each(x_bmd: NDArray[np.floating]) -> list[float]:
    """Independent rows of each of several tables of one shape, all of their rows drawn.

    Examples
    --------
    >>> count_rows_each(np.random.default_rng(0).normal(size=(2, 300, 4)))
    [300.0, 300.0]
    """
    n_samples = x_bmd.shape[1]
    return [count_rows(n_samples, n_samples, measure_redundancy(x_md.astype(np.float64))) for x_md in x_bmd]
