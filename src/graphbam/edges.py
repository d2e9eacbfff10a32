"""The answer: probabilities of none · skeleton · moral for every pair, and what follows from them."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from graphbam.errors import ConfigError, GraphError
from graphbam.graph import MORAL, SKELETON, Graph
from graphbam.knowledge import Knowledge
from graphbam.table import Matrix

if TYPE_CHECKING:
    import pandas as pd

CLASSES = ("none", "skeleton", "moral")
"""Order of the last axis of `Result.probabilities`."""

SUSPECT_FROM = 0.1
"""A common child is named for pairs at least this likely to be moral …"""

CHILD_FROM = 0.05
"""… if both its links exist with at least this probability."""


class OrientationMissingError(GraphError):
    """Directions were asked for, and the network that finds them is not part of this version."""


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """Edge probabilities with names, made by `graphbam.infer`.

    Examples
    --------
    >>> p = np.zeros((3, 3, 3))
    >>> p[:] = [0.9, 0.1, 0.0]
    >>> p[0, 1] = p[1, 0] = [0.1, 0.9, 0.0]
    >>> result = Result(("a", "b", "c"), p)
    >>> result
    Result(3 variables; strongest: a — b 0.90)
    >>> result.skeleton()
    Graph(3 variables: a — b)
    >>> result.table()[["a", "b", "skeleton"]].values.tolist()
    [['a', 'b', 0.9], ['a', 'c', 0.1], ['b', 'c', 0.1]]
    """

    names: tuple[str, ...]
    """Names of the D variables."""
    probabilities: Matrix
    """Shape (D, D, 3), order none · skeleton · moral; symmetric, sums to one, diagonal (1, 0, 0)."""
    changes: tuple[str, ...] = ()
    """What was done to the data, one sentence each."""
    warnings: tuple[str, ...] = ()
    """What to keep in mind when reading the answer."""
    domain: Mapping[str, Any] = field(default_factory=dict)
    """How the table compares with training: `features`, `verdict` ("inside", "outside" or None), `unlike`."""
    stability: Matrix | None = None
    """Shape (D, D): share of resamples in which a pair is a direct link with probability 0.5 or more."""
    knowledge: Knowledge | None = None
    """Prior knowledge, already enforced in `probabilities`."""
    source: str = ""
    """Where the table came from."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Weights, version, settings, rows read and used: what is needed to get the same answer again."""
    sample: Matrix | None = None
    """Up to 1,000 rows of the table as the network saw it, shape (rows, D), for pictures; not part of `to_dict`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "probabilities", tidy_probabilities(self.probabilities, len(self.names)))
        object.__setattr__(self, "names", tuple(self.names))

    @property
    def n_variables(self) -> int:
        """Number D of variables."""
        return len(self.names)

    # ── graphs ────────────────────────────────────────────────────────────────────────────────────────────

    def skeleton(self, threshold: float = 0.5, fdr: float | None = None) -> Graph:
        """Direct links: pairs whose skeleton probability reaches the threshold.

        Parameters
        ----------
        threshold : float
            Smallest probability of an edge.
        fdr : float, optional
            False-discovery target instead: the largest set of edges of which at most this share is expected
            to be wrong, by the calibrated probabilities.

        Returns
        -------
        Graph
            Undirected.
        """
        return self._cut(self.probabilities[..., SKELETON], threshold, fdr)

    def moral_graph(self, threshold: float = 0.5, fdr: float | None = None) -> Graph:
        """Every pair that is dependent given all others: direct links and parents of a common child.

        Parameters are those of `skeleton`, applied to the sum of skeleton and moral probability.
        """
        return self._cut(self.probabilities[..., SKELETON] + self.probabilities[..., MORAL], threshold, fdr)

    def cpdag(self, threshold: float = 0.5, fdr: float | None = None) -> Graph:
        """Directed where the data decide; not possible yet.

        Raises
        ------
        OrientationMissingError
            Always, in this version.
        """
        raise OrientationMissingError(
            "edges cannot be directed yet: the orientation network is not part of this version. "
            "Use skeleton() or moral_graph(), which carry no directions."
        )

    def _cut(self, p_dd: Matrix, threshold: float, fdr: float | None) -> Graph:
        upper = np.triu_indices(self.n_variables, 1)
        chosen = choose_pairs(p_dd[upper], threshold, fdr)
        adjacency = np.zeros(p_dd.shape, dtype=np.int8)
        adjacency[upper] = chosen
        return Graph(self.names, adjacency | adjacency.T)

    # ── tables and text ───────────────────────────────────────────────────────────────────────────────────

    def table(self) -> pd.DataFrame:
        """One row a pair, likeliest direct links first.

        Returns
        -------
        DataFrame
            Columns a, b, skeleton, moral, none; `via`, the likeliest common child of pairs that may be moral;
            and `stability` if it was asked for.
        """
        import pandas as pd

        i, j = np.triu_indices(self.n_variables, 1)
        p_n3 = self.probabilities[i, j]
        names = np.array(self.names, dtype=object)
        columns = {
            "a": names[i],
            "b": names[j],
            "skeleton": p_n3[:, 1],
            "moral": p_n3[:, 2],
            "none": p_n3[:, 0],
        }
        if self.stability is not None:
            columns["stability"] = self.stability[i, j]
        child = suspect_children(self.probabilities)[i, j]
        columns["via"] = np.where(child >= 0, names[child], "")
        ranked = np.lexsort((-p_n3[:, MORAL], -p_n3[:, SKELETON]))  # stable: ties stay in the order of the names
        table: pd.DataFrame = pd.DataFrame(columns).iloc[ranked].reset_index(drop=True)
        return table

    def summary(self, threshold: float = 0.5, n_edges: int = 10) -> str:
        """Say in a few lines what was found, what was done to the data and what to keep in mind."""
        table = self.table()
        is_moral = (table["skeleton"] < threshold) & (table["skeleton"] + table["moral"] >= threshold)
        direct = table[table["skeleton"] >= threshold]
        rows = self.provenance.get("n_rows_used")
        lines = [f"{self.source or 'table'}: {self.n_variables} variables" + (f", {rows} rows" if rows else "")]
        lines.append(f"{_count(len(direct), 'direct link')} and {is_moral.sum()} moral at p ≥ {threshold:g}")
        lines += [_edge_line(row, "—") for row in direct.head(n_edges).to_dict("records")]
        if len(direct) > n_edges:
            lines.append(f"  … and {len(direct) - n_edges} more")
        lines += [_edge_line(row, "··") for row in table[is_moral].head(n_edges).to_dict("records")]
        for title, sentences in (("Done to the data", self.changes), ("Keep in mind", self.warnings)):
            lines += [f"{title}:", *(f"  • {sentence}" for sentence in sentences)] if sentences else []
        return "\n".join(lines)

    def __repr__(self) -> str:
        p_dd = np.triu(self.probabilities[..., SKELETON], 1)
        i, j = np.unravel_index(int(p_dd.argmax()), p_dd.shape)
        strongest = f"; strongest: {self.names[i]} — {self.names[j]} {p_dd[i, j]:.2f}" if p_dd.size > 1 else ""
        return f"Result({self.n_variables} variables{strongest})"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain lists, numbers and text, ready for JSON; the inverse is `from_dict`."""
        return {
            "format": "graphbam-result",
            "version": 1,
            "source": self.source,
            "names": list(self.names),
            "classes": list(CLASSES),
            "probabilities": self.probabilities.tolist(),
            "stability": None if self.stability is None else self.stability.tolist(),
            "changes": list(self.changes),
            "warnings": list(self.warnings),
            "domain": _plain(self.domain),
            "knowledge": self.knowledge.to_dict() if self.knowledge else None,
            "provenance": _plain(self.provenance),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Result:
        """Rebuild a result from `to_dict`."""
        fields = {f.name for f in dataclasses.fields(cls)}
        kept = {key: value for key, value in values.items() if key in fields}
        for key in ("changes", "warnings", "names"):
            kept[key] = tuple(kept.get(key, ()))
        if kept.get("stability") is not None:
            kept["stability"] = np.array(kept["stability"])
        kept["knowledge"] = Knowledge.from_dict(kept["knowledge"]) if kept.get("knowledge") else None
        return cls(**kept)

    def save(self, folder: str | os.PathLike[str], threshold: float = 0.5, fdr: float | None = None) -> None:
        """Write edges.csv, graph.json, graph.graphml and graph.dot; see `graphbam.writers.save_outputs`."""
        from graphbam.writers import save_outputs

        save_outputs(self, folder, threshold=threshold, fdr=fdr)


@dataclass(frozen=True)
class Failure:
    """A table of `infer_many` that could not be used, and why."""

    source: str
    message: str

    def __bool__(self) -> bool:
        return False


def tidy_probabilities(p_dd3: npt.ArrayLike, n_variables: int) -> Matrix:
    """Make probabilities exactly symmetric, sum to one, with a diagonal of (1, 0, 0); read-only.

    Examples
    --------
    >>> tidy_probabilities([[[0, 1, 0], [0, 3, 1]], [[0, 3, 1], [1, 1, 1]]], 2).tolist()[0]
    [[1.0, 0.0, 0.0], [0.0, 0.75, 0.25]]
    """
    result: Matrix = np.array(p_dd3, dtype=np.float64)
    if result.shape != (n_variables, n_variables, 3):
        raise GraphError(
            f"probabilities have shape {result.shape}; {n_variables} names need {(n_variables, n_variables, 3)}."
        )
    result[np.arange(n_variables), np.arange(n_variables)] = [1.0, 0.0, 0.0]
    if not np.isfinite(result).all() or (result < 0).any():
        raise GraphError("probabilities hold values that are negative or not finite; the network gave no answer.")
    result = (result + result.transpose(1, 0, 2)) / 2
    result /= result.sum(axis=-1, keepdims=True)
    result.setflags(write=False)
    return result


def choose_pairs(p_n: Matrix, threshold: float = 0.5, fdr: float | None = None) -> npt.NDArray[np.bool_]:
    """Choose the pairs above a threshold, or the largest set that keeps a false-discovery target.

    With calibrated probabilities a chosen pair is wrong with probability 1 − p, so the expected share of
    wrong ones in a set is the mean of 1 − p. Pairs with equal probability are taken together or not at all.

    Parameters
    ----------
    p_n : ndarray, shape (N,)
        Probabilities of the pairs.
    threshold : float
        In (0, 1]; used without `fdr`.
    fdr : float, optional
        In (0, 1): the target.

    Examples
    --------
    >>> choose_pairs(np.array([0.99, 0.8, 0.6, 0.1]), fdr=0.15).tolist()
    [True, True, False, False]
    """
    if fdr is None:
        if not 0 < threshold <= 1:
            raise ConfigError(f"threshold={threshold} is not a probability of an edge; pass a number in (0, 1].")
        return np.asarray(p_n >= threshold)
    if not 0 < fdr < 1:
        raise ConfigError(f"fdr={fdr} is not a share of false discoveries; pass a number between 0 and 1.")
    levels, counts = np.unique(p_n, return_counts=True)
    levels, counts = levels[::-1], counts[::-1]
    expected = np.cumsum((1 - levels) * counts) / np.cumsum(counts)
    good = (expected <= fdr) & (levels > 0)
    return np.asarray(p_n >= levels[good][-1]) if good.any() else np.zeros(len(p_n), dtype=bool)


def suspect_children(p_dd3: Matrix) -> npt.NDArray[np.int64]:
    """Name the likeliest common child of every pair that may be moral.

    For a pair (i, j) it is the variable c with the largest p(i — c) · p(j — c), both skeleton probabilities.

    Returns
    -------
    ndarray of int, shape (D, D)
        Index of the child; −1 where the pair is hardly moral (`SUSPECT_FROM`) or no child is likely
        (`CHILD_FROM`).
    """
    skeleton_dd = p_dd3[..., SKELETON]
    children = np.full(skeleton_dd.shape, -1, dtype=np.int64)
    if len(skeleton_dd) < 3:
        return children
    for i, may_be_moral in enumerate(p_dd3[..., MORAL] >= SUSPECT_FROM):
        others = np.flatnonzero(may_be_moral)
        joint_nd = skeleton_dd[others] * skeleton_dd[i]  # zero at the two parents themselves
        best = joint_nd.argmax(axis=1)
        is_likely = joint_nd[np.arange(len(others)), best] >= CHILD_FROM
        children[i, others] = np.where(is_likely, best, -1)
    return children


def _edge_line(row: Mapping[Any, Any], link: str) -> str:
    p = row["skeleton"] if link == "—" else row["moral"]
    via = f"  (common child: {row['via']}?)" if link != "—" and row["via"] else ""
    stable = f"  stable in {row['stability']:.0%}" if "stability" in row and link == "—" else ""
    return f"  {p:.2f}  {row['a']} {link} {row['b']}{via}{stable}"


def _plain(value: Any) -> Any:
    """Numpy numbers and tuples as JSON knows them."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return value.item() if isinstance(value, np.generic) else value


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"
