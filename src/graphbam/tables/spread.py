"""Do rows share how far out they lie: all columns in some of them, none in others?

So it is with returns of stocks in calm weeks and in wild ones, or with people who tick the ends of every scale. Columns
may have nothing to do with each other but this, and the network takes it for links, many or few by chance. Dividing
each row by its size takes it away.
"""

from __future__ import annotations

import numpy as np

from graphbam.tables.domain import correlate
from graphbam.tables.table import Matrix

WEAK = 0.2
"""Pairs whose values are not more correlated than this are looked at: others resemble each other in size as well."""

FEWEST_PAIRS, LEAST_SHARE = 3, 0.3
"""So many of the pairs there must be, and such a share of all."""

LEAST_SPREAD = 0.2
"""Least standard deviation of the sizes of a column, in those of the column: zeros and ones have one size."""

MOST_COLUMNS, MOST_ROWS = 300, 2000
"""Of more than these, evenly chosen ones are looked at."""


def share_spread(z_md: Matrix) -> float:
    """Median correlation of the sizes |z| of columns whose values are not correlated, less what chance may add to it.

    Parameters
    ----------
    z_md : ndarray, shape (M, D)
        Standardised columns.

    Returns
    -------
    float
        Near zero or below it where rows do not share their spread.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z_md = rng.normal(size=(500, 8))
    >>> share_spread(z_md) < 0.02, share_spread(z_md * rng.choice([1, 3], size=(500, 1)) / 2) > 0.2
    (True, True)
    """
    z_md = z_md[:: -(-len(z_md) // MOST_ROWS), :: -(-z_md.shape[1] // MOST_COLUMNS)]
    z_md = z_md[:, np.abs(z_md).std(axis=0) > LEAST_SPREAD]
    i, j = np.triu_indices(z_md.shape[1], 1)
    of_values, of_sizes = correlate(z_md)[i, j], correlate(np.abs(z_md))[i, j]
    weak = np.abs(of_values) < WEAK
    n_weak = int(weak.sum())
    if n_weak < max(FEWEST_PAIRS, LEAST_SHARE * len(weak)):
        return 0.0
    by_values = np.sqrt((of_values[weak] ** 2 - 1 / len(z_md)).clip(min=0))  # as much in skewed columns, less in others
    return float(np.median(of_sizes[weak] - by_values) - 2.5 / np.sqrt(len(z_md) * n_weak))
