"""What every method of the benchmark looks like: a table goes in, a graph and graded scores come out.

A method is one small class in one small file. It imports its package inside `fit`, declines politely through `skip`,
and never standardises twice: the runner hands over columns with mean 0 and standard deviation 1.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Kind = Literal["undirected", "cpdag", "dag"]


@dataclasses.dataclass(frozen=True, eq=False)
class Answer:
    """What a method says of one table."""

    graph_dd: NDArray[np.int8]
    """The graph at the method's default setting: [i, j] = 1 alone is i → j, [i, j] = [j, i] = 1 is i — j."""
    score_dd: Matrix
    """How much the method believes in a mark from i to j, on any scale; symmetric where it knows no direction."""
    moral_dd: Matrix | None = None
    """How much it believes that i and j are adjacent or have a common child; None: as `score_dd`."""


class Baseline(ABC):
    """One method. `fit` may raise: the runner turns an error into a row with its reason."""

    name: ClassVar[str]
    """Name in commands and results: lower case, words joined by hyphens."""
    title: ClassVar[str]
    """Name in figures."""
    kind: ClassVar[Kind]
    """What its graph is: an undirected graph, a class of DAGs, or a DAG (turned into its CPDAG before scoring)."""
    package: ClassVar[str | None] = None
    """Distribution that does the work, whose version goes into the results; None: graphbam itself."""

    def skip(self, n_samples: int, n_variables: int) -> str | None:
        """Why the method cannot answer for a table of this size here, or None if it can."""
        return None

    @abstractmethod
    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        """Answer for one standardised table, M samples × D variables."""
