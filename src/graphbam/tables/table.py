"""``Table(names, x_md)``: what `graphbam.tables.read` makes of everything. It loads without pandas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from graphbam.errors import name_some

Vector: TypeAlias = npt.NDArray[np.float64]
Indices: TypeAlias = npt.NDArray[np.int64]
Matrix: TypeAlias = npt.NDArray[np.float64]
BoolVector: TypeAlias = npt.NDArray[np.bool_]
BoolMatrix: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Table:
    """A table of numbers.

    Examples
    --------
    >>> Table(("a", "b"), np.zeros((3, 2)), "example").shape
    (3, 2)
    """

    names: tuple[str, ...]
    """Unique names, one per column."""
    x_md: Matrix
    """Values; NaN where a cell is missing."""
    source: str
    """Where it came from, in words."""
    changes: tuple[str, ...] = ()
    """What had to be guessed or changed, one sentence each."""
    warnings: tuple[str, ...] = ()
    """What looks wrong with it, one sentence each."""
    set_md: BoolMatrix | None = None
    """Cells that an experiment set (`graphbam.tables.interventions`); None: none was."""
    n_rows_found: int | None = None
    """Rows of the source, if not all of them were read."""
    rows: npt.NDArray[np.int64] | None = None
    """Which of them were, from 0 on; None: all, or several tables were joined."""
    labels: tuple[str, ...] = ()
    """Columns of the source that were taken for row labels and left out."""
    unordered: tuple[str, ...] = ()
    """Columns of text whose levels have numbers without an order: more of them means nothing."""

    @property
    def n_rows(self) -> int:
        """Rows of the source, read or not."""
        return len(self.x_md) if self.n_rows_found is None else self.n_rows_found

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and variables."""
        return self.x_md.shape[0], self.x_md.shape[1]


def spell_columns(names: Sequence[str]) -> str:
    """Spell out column names: "column 'a'", "columns 'a', 'b' and 7 more"."""
    return f"column{'s' if len(names) > 1 else ''} {name_some([repr(name) for name in names[:8]], len(names))}"
