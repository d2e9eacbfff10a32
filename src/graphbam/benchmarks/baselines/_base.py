"""What every method of the benchmark looks like: a table goes in, a graph and graded scores come out.

A method is one small class in one small file. It imports its package inside `fit`, declines politely through `skip`,
and never standardises twice: the runner hands over columns with mean 0 and standard deviation 1.
"""

from __future__ import annotations

import dataclasses
import importlib.util
from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from graphbam.benchmarks.grading import grade, partial_correlations
from graphbam.errors import GraphError
from graphbam.graphs.graph import check_adjacency, moral_graph, skeleton

Matrix = NDArray[np.float64]
Kind = Literal["undirected", "cpdag", "dag"]


@dataclasses.dataclass(frozen=True, eq=False)
class Answer:
    """What a method says of one table; checked on construction, diagonals of scores are set to zero.

    Examples
    --------
    >>> Answer(np.array([[0, 1], [0, 0]]), np.array([[1.0, 0.7], [0.2, 1.0]])).score_dd
    array([[0. , 0.7],
           [0.2, 0. ]])
    """

    graph_dd: NDArray[np.int8]
    """The graph at the method's default setting: [i, j] = 1 alone is i → j, [i, j] = [j, i] = 1 is i — j."""
    score_dd: Matrix
    """How much the method believes in a mark from i to j, on any scale; symmetric where it knows no direction."""
    moral_dd: Matrix | None = None
    """How much it believes that i and j are adjacent or have a common child; None: as `score_dd`."""
    links_dd: NDArray[np.int8] | None = None
    """The undirected graph, where a method decides on it apart; None: `graph_dd` without its directions."""
    link_score_dd: Matrix | None = None
    """How much it believes that i and j are adjacent; None: the larger of the two marks."""

    @classmethod
    def graded(cls, graph_dd: NDArray[np.int8], x_md: Matrix) -> Answer:
        """Answer of a method that finds a graph alone: its edges first, each part in order of |partial correlation|.

        The same for its moral graph: who claims a collider claims a link between the parents.
        """
        strength_dd = partial_correlations(x_md)
        return cls(graph_dd, grade(graph_dd, strength_dd), grade(moral_graph(graph_dd), strength_dd))

    def __post_init__(self) -> None:
        graph_dd = check_adjacency(self.graph_dd).astype(np.int8)
        object.__setattr__(self, "graph_dd", graph_dd)
        if self.links_dd is not None:
            object.__setattr__(self, "links_dd", skeleton(self.links_dd))
        for field in ("score_dd", "moral_dd", "link_score_dd"):
            if (values := getattr(self, field)) is not None:
                object.__setattr__(self, field, _check_scores(field, values, graph_dd.shape))


def _check_scores(field: str, values: Matrix, shape: tuple[int, ...]) -> Matrix:
    score_dd = np.array(values, dtype=np.float64)
    if score_dd.shape != shape:
        raise GraphError(f"{field} has shape {score_dd.shape}, but the graph has {shape}; give one score a pair.")
    np.fill_diagonal(score_dd, 0.0)
    if not np.isfinite(score_dd).all():
        i, j = np.argwhere(~np.isfinite(score_dd))[0]
        raise GraphError(f"{field}[{i}, {j}] is {score_dd[i, j]}; the method did not converge on this table.")
    return score_dd


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
    module: ClassVar[str | None] = None
    """Module of that distribution, to see whether it is installed; None: nothing to look for."""

    def skip(self, n_samples: int, n_variables: int) -> str | None:
        """Why the method cannot answer for a table of this size here, or None if it can.

        Methods with limits of their own ask ``super().skip(...)`` first.
        """
        if self.module is None or importlib.util.find_spec(self.module):
            return None
        return f"needs the package {self.package}, which is not installed: pip install graphbam[benchmark]"

    @abstractmethod
    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        """Answer for one standardised table, M samples × D variables."""
