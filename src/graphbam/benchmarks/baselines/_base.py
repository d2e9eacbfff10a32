"""What every method of the benchmark looks like: a table goes in, a graph and graded scores come out.

A method is one small class in one small file. It imports its package inside `fit`, declines politely through `skip`,
and never standardises twice: the runner hands over columns with mean 0 and standard deviation 1.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphbam.errors import GraphError
from graphbam.graphs.graph import check_adjacency, directed_part, moral_graph, skeleton

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
    arrow_dd: Matrix | None = None
    """How much it believes in i → j, where that is more than a mark of a CPDAG; None: arrows of the graph first, then
    its links without a direction, then the rest, each by `score_dd`."""
    lean_dd: Matrix | None = None
    """How much it believes in i → j if there is a link; None: as `arrow_dd`."""
    dag_dd: NDArray[np.int8] | None = None
    """The DAG it would name; None: one that `graph_dd` stands for, if there is any."""
    hidden_dd: Matrix | None = None
    """How much it believes that i and j have a hidden common cause, symmetric; None: it says nothing of that."""

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
        if self.dag_dd is not None:
            object.__setattr__(self, "dag_dd", check_adjacency(self.dag_dd).astype(np.int8))
        for field in ("score_dd", "moral_dd", "link_score_dd", "arrow_dd", "lean_dd", "hidden_dd"):
            if (values := getattr(self, field)) is not None:
                object.__setattr__(self, field, _check_scores(field, values, graph_dd.shape))


def _check_scores(field: str, values: Matrix, shape: tuple[int, ...]) -> Matrix:
    score_dd = np.array(values, dtype=np.float64)
    if score_dd.shape != shape:
        raise GraphError(f"{field} has shape {score_dd.shape}, but the graph has {shape}; give one score per pair.")
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
    reads_targets: ClassVar[bool] = False
    """Whether `fit` also takes ``set_md``, 1 where an intervention set a cell; given only where there was one."""
    reads_gaps: ClassVar[bool] = False
    """Whether `fit` takes tables with missing cells (NaN)."""

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


# ── columns that never change ───────────────────────────────────────────────────────────────────────────────


def without_constants(fit: Callable[..., Answer]) -> Callable[..., Answer]:
    """Have a `fit` answer for the columns that vary; constant ones get no edges and scores of zero.

    For own code: nothing depends on a column that is always the same, and correlations and splines are not defined.
    """

    @functools.wraps(fit)
    def fit_varying(self: Baseline, x_md: Matrix, *, seed: int, **known: Any) -> Answer:
        varying = np.flatnonzero(x_md.min(axis=0) < x_md.max(axis=0))
        n_variables = x_md.shape[1]
        if len(varying) == n_variables:
            return fit(self, x_md, seed=seed, **known)
        if len(varying) < 2:
            return Answer(np.zeros((n_variables, n_variables), np.int8), np.zeros((n_variables, n_variables)))
        if known.get("set_md") is not None:
            known["set_md"] = known["set_md"][:, varying]
        return _widen(fit(self, x_md[:, varying], seed=seed, **known), varying, n_variables)

    return fit_varying


def _widen(answer: Answer, places: NDArray[np.int64], n_variables: int) -> Answer:
    """The same answer among more variables, at these places; zero elsewhere."""
    wide: dict[str, Any] = {}
    for field in dataclasses.fields(Answer):
        if (values := getattr(answer, field.name)) is not None:
            wide[field.name] = np.zeros((n_variables, n_variables), values.dtype)
            wide[field.name][np.ix_(places, places)] = values
    return Answer(**wide)


# ── graded scores for methods that answer with a graph alone ────────────────────────────────────────────────


def partial_correlations(x_md: Matrix) -> Matrix:
    """|Partial correlation| of all pairs, (D, D), from a covariance shrunk after Ledoit and Wolf."""
    from sklearn.covariance import ledoit_wolf

    return correlate_precision(np.linalg.inv(ledoit_wolf(x_md)[0]))


def correlate_precision(precision_dd: NDArray[np.floating[Any]]) -> Matrix:
    """|Partial correlation| from a precision matrix; exactly symmetric, zero on the diagonal.

    Examples
    --------
    >>> correlate_precision(np.array([[4.0, 1.0], [1.0, 1.0]]))
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    scale = np.sqrt(np.clip(precision_dd.diagonal(), 1e-12, None))
    strength_dd = np.abs(precision_dd + precision_dd.T) / 2 / np.outer(scale, scale)  # solvers differ in the last digit
    np.fill_diagonal(strength_dd, 0.0)
    return np.minimum(strength_dd, 1.0)


def grade(graph_dd: ArrayLike, strength_dd: ArrayLike) -> Matrix:
    """Scores of marks: those of the graph first (1 to 2), the rest after (0 to 1), each ordered by strength.

    Pairs that the graph leaves open, or joins without direction, score alike both ways; the tail of an arrow scores
    with the absent marks.

    Examples
    --------
    >>> grade([[0, 1], [0, 0]], [[0, 0.25], [0.25, 0]])
    array([[0.  , 1.25],
           [0.25, 0.  ]])
    """
    score_dd = np.asarray(graph_dd, float) + np.clip(np.asarray(strength_dd, float), 0.0, 1.0)
    np.fill_diagonal(score_dd, 0.0)
    return score_dd


def marry(graph_dd: ArrayLike, score_dd: ArrayLike) -> Matrix:
    """Scores of moral pairs, symmetric: a pair's own, or that of the weaker of two arrows into a common child.

    The children are those of the graph. For methods with scores of their own, since who claims a collider claims a link
    between the parents.

    Examples
    --------
    >>> marry([[0, 0, 1], [0, 0, 1], [0, 0, 0]], [[0, 0.1, 2], [0.1, 0, 3], [0, 0, 0]])
    array([[0., 2., 2.],
           [2., 0., 3.],
           [2., 3., 0.]])
    """
    score_dd = np.asarray(score_dd, float)
    arrow_dd = np.where(directed_part(graph_dd), score_dd, -np.inf)
    moral_dd = np.maximum(score_dd, score_dd.T)
    for arrow_d in arrow_dd.T:
        np.maximum(moral_dd, np.minimum.outer(arrow_d, arrow_d), out=moral_dd)
    np.fill_diagonal(moral_dd, 0.0)
    return moral_dd


def keep_acyclic(weight_dd: ArrayLike, threshold: float) -> NDArray[np.int8]:
    """The DAG of the weights above a threshold: taken in order of size, leaving out those that would close a cycle.

    For methods whose penalty drives cycles out without a guarantee: of i ⇄ j the larger weight stays.

    Examples
    --------
    >>> keep_acyclic([[0, 0.9, 0], [0.6, 0, 0.8], [0.7, 0.2, 0]], threshold=0.3)
    array([[0, 1, 0],
           [0, 0, 1],
           [0, 0, 0]], dtype=int8)
    """
    size_dd = np.abs(np.asarray(weight_dd, float))
    graph_dd = np.zeros(size_dd.shape, np.int8)
    reaches_dd = np.eye(len(size_dd), dtype=bool)  # [i, j]: a path leads from i to j
    chosen = np.argwhere(size_dd > threshold)
    for i, j in chosen[np.argsort(-size_dd[*chosen.T], kind="stable")]:
        if not reaches_dd[j, i]:
            graph_dd[i, j] = 1
            reaches_dd |= np.outer(reaches_dd[:, i], reaches_dd[j])
    return graph_dd
