"""Which rows of a very long table are read at all, so that no table takes more memory than its longest draw.

A table of more than `RowLimit.most` rows is cut into as many equal stretches, and one row of each is drawn by the seed:
every row is as likely as any other, all parts of the table are seen, and neighbours stay neighbours. Nothing but the
number of rows and the seed decides, so a table in memory, a text file and a parquet file give the same rows. Whatever
is done to a table afterwards is done to these rows alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphbam.tables.table import Indices


@dataclass(frozen=True)
class RowLimit:
    """How many rows are read, and which.

    Examples
    --------
    >>> RowLimit(4).choose(10).tolist()
    [1, 2, 5, 8]
    >>> RowLimit(10).choose(10) is None
    True
    """

    most: int | None = None
    """Rows that are read at most; None: all."""
    seed: int = 0

    def choose(self, n_rows: int) -> Indices | None:
        """Rows to read of so many, in their order; None: all of them."""
        if not self.cuts(n_rows):
            return None
        assert self.most is not None
        edges = np.arange(self.most + 1) * n_rows // self.most
        rng = np.random.default_rng([self.seed, 2])  # a stream of its own, apart from draws of rows and resamples
        return np.asarray(edges[:-1] + rng.integers(0, np.diff(edges)))

    def cuts(self, n_rows: int) -> bool:
        """Whether so many rows are too many."""
        return self.most is not None and n_rows > self.most

    def tell(self, n_rows: int) -> list[str]:
        """What to say of a table with so many rows, if not all of them are read."""
        if not self.cuts(n_rows):
            return []
        drawn = f"{self.most} of {n_rows} rows read, one of each of as many equal stretches (seed {self.seed})"
        return [f"{drawn}; gaps, codes and levels are judged by these"]


ALL = RowLimit()
"""No limit."""
