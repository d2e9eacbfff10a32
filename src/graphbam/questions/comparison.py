"""Two answers side by side, and an answer beside the truth."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphbam.errors import GraphError, KnowledgeError, ResultError, name_some
from graphbam.graphs.cut import Cut
from graphbam.graphs.equivalence import direct_told
from graphbam.graphs.graph import SKELETON, Adjacency, BoolMatrix, Graph, directed_part, is_dag, one_line, skeleton
from graphbam.graphs.knowledge import read_edge
from graphbam.graphs.metrics import average_precision, f1, pair_values, precision_recall, shd
from graphbam.result import Result

if TYPE_CHECKING:
    import pandas as pd

MOST_NAMED = 8
_MARKS = {(0, 0): "", (1, 0): "->", (0, 1): "<-", (1, 1): "--"}
_ROWS = (list, tuple, np.ndarray)
_CALLED = {"turned": "drawn differently"}


# ── two answers ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class Comparison:
    """Links and arrows of two results at the same cut, over the variables that both have.

    Examples
    --------
    >>> p = np.tile([0.9, 0.1, 0.0], (3, 3, 1))
    >>> p[0, 1] = p[1, 0] = [0.1, 0.9, 0.0]
    >>> q = p.copy()
    >>> q[1, 2] = q[2, 1] = [0.2, 0.8, 0.0]
    >>> print(Result(("a", "b", "c"), p).compare(Result(("c", "b", "a"), q[::-1, ::-1])))
    3 variables in both, links at p ≥ 0.5: 1 shared, 0 lost, 1 gained
      gained: b -- c (0.10 → 0.80)
    probabilities of a link differ by 0.23 on average, by 0.70 at most
    """

    table: pd.DataFrame
    """One row per pair, the largest difference first. Columns a, b; `here` and `there`, how this and the other result
    draw the pair (``->``, ``<-``, ``--`` or nothing); `p_here` and `p_there`, the probabilities of a link; their
    `difference`; and `change`: shared, turned (drawn in both, but not in the same way), lost, gained or nothing."""
    only_here: tuple[str, ...]
    """Variables that the other result lacks; nothing is said of them."""
    only_there: tuple[str, ...]
    cut: Cut

    def count(self, change: str) -> int:
        """Number of pairs with a change of this name."""
        return int((self.table["change"] == change).sum())

    @property
    def agreement(self) -> float:
        """Share of pairs that both results draw as linked, or both as not linked."""
        return float(1 - self.table["change"].isin(["lost", "gained"]).mean()) if len(self.table) else math.nan

    @property
    def correlation(self) -> float:
        """Correlation of the two probabilities of a link over all pairs; NaN where one of them is constant."""
        p, q = self.table["p_here"].to_numpy(), self.table["p_there"].to_numpy()
        return float(np.corrcoef(p, q)[0, 1]) if len(p) > 1 and p.std() > 0 and q.std() > 0 else math.nan

    def __str__(self) -> str:
        names = set(self.table["a"]) | set(self.table["b"])
        turned = f", {self.count('turned')} of them drawn differently" if self.count("turned") else ""
        shared = self.count("shared") + self.count("turned")
        lines = [
            f"{len(names)} variables in both, links {self.cut}: {shared} shared{turned}, {self.count('lost')} lost, "
            f"{self.count('gained')} gained"
        ]
        for change in ("lost", "gained", "turned"):
            rows = self.table[self.table["change"] == change].to_dict("records")
            shown = name_some([_spell_change(row) for row in rows[:MOST_NAMED]], len(rows))
            lines += [f"  {_CALLED.get(change, change)}: {shown}"] if rows else []
        gap = self.table["difference"].abs()
        lines.append(f"probabilities of a link differ by {gap.mean():.2f} on average, by {gap.max():.2f} at most")
        for names_of_one, said in ((self.only_here, "only here"), (self.only_there, "only in the other")):
            lines += [f"variables {said}, not compared: {', '.join(names_of_one)}"] if names_of_one else []
        return "\n".join(map(one_line, lines))


def _spell_change(row: Mapping[Any, Any]) -> str:
    if row["change"] == "turned":
        return f"{row['a']} {row['here']} {row['b']} here and {row['a']} {row['there']} {row['b']} there"
    return f"{row['a']} {row['here'] or row['there']} {row['b']} ({row['p_here']:.2f} → {row['p_there']:.2f})"


def compare_results(here: Result, there: Result, cut: Cut) -> Comparison:
    """See `Result.compare`."""
    import pandas as pd

    if not isinstance(there, Result):
        raise ResultError(f"a {type(there).__name__} cannot be compared; pass a Result, or a graph to score().")
    names = [name for name in here.names if name in set(there.names)]
    if len(names) < 2:
        raise ResultError(
            f"the two results share {len(names)} of their variables, and two are needed. Their names decide: "
            f"{_list_names(here.names)} here, {_list_names(there.names)} there."
        )
    i, j = np.triu_indices(len(names), 1)
    adjacency, p = {}, {}
    for which, result in (("here", here), ("there", there)):
        at = [result.names.index(name) for name in names]
        adjacency[which] = result.graph(cut).adjacency[np.ix_(at, at)]
        p[which] = result.probabilities[np.ix_(at, at)][i, j, SKELETON]
    marks = {which: _mark(matrix, i, j) for which, matrix in adjacency.items()}
    labels = np.array(names, dtype=object)
    table = pd.DataFrame({"a": labels[i], "b": labels[j], **marks, "p_here": p["here"], "p_there": p["there"]})
    table["difference"] = table["p_there"] - table["p_here"]
    table["change"] = [_name_change(*pair) for pair in zip(marks["here"], marks["there"], strict=True)]
    table = table.iloc[np.argsort(-table["difference"].abs().to_numpy(), kind="stable")].reset_index(drop=True)
    only_here, only_there = (tuple(name for name in one.names if name not in set(names)) for one in (here, there))
    return Comparison(table, only_here, only_there, cut)


def _mark(adjacency: Adjacency, i: NDArray[np.int64], j: NDArray[np.int64]) -> list[str]:
    return [_MARKS[int(there), int(back)] for there, back in zip(adjacency[i, j], adjacency[j, i], strict=True)]


def _name_change(here: str, there: str) -> str:
    if here and there:
        return "shared" if here == there else "turned"
    return "lost" if here else "gained" if there else ""


# ── an answer and the truth ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Score:
    """How close a result is to a graph that is known.

    Examples
    --------
    >>> p = np.tile([0.9, 0.1, 0.0], (3, 3, 1))
    >>> p[0, 1] = p[1, 0] = [0.1, 0.9, 0.0]
    >>> print(Result(("a", "b", "c"), p).score(["a -> b", "b -> c"]))
    1 of 2 true links found, 1 of 1 drawn links true: precision 1.00, recall 0.50, F1 0.67
    average precision 0.83, structural Hamming distance 1 (links only)
    """

    n_true: int
    """Links of the truth."""
    n_drawn: int
    """Links of the result at the cut."""
    n_hits: int
    """Links that both have."""
    precision: float
    """Share of the drawn links that are true."""
    recall: float
    """Share of the true links that are drawn."""
    f1: float
    average_precision: float
    """Of the probabilities of a link, whatever the cut."""
    shd: int
    """Structural Hamming distance: pairs that differ. Where directions are known on both sides, between the CPDAGs, in
    that of the truth with the arrows too that experiments and prior knowledge tell of it, and what follows from them
    (to a truth with cycles or open links, as it is); else between the links."""
    is_directed: bool
    """Whether `shd` counts directions."""
    n_arrows: int
    """Drawn arrows on links that have a direction in the truth."""
    direction_accuracy: float
    """Share of these that point the right way; NaN if there are none."""
    left_out: tuple[str, ...] = ()
    """Variables of the result that the truth does not know; their pairs are not judged."""
    by_order: bool = False
    """Whether the columns had no names, so that the truth's variables were matched with them in order."""

    def to_dict(self) -> dict[str, Any]:
        """All of it by name."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        lines = [
            f"{self.n_hits} of {self.n_true} true links found, {self.n_hits} of {self.n_drawn} drawn links true: "
            f"precision {self.precision:.2f}, recall {self.recall:.2f}, F1 {self.f1:.2f}",
            f"average precision {self.average_precision:.2f}, structural Hamming distance {self.shd} "
            f"({'with directions' if self.is_directed else 'links only'})",
        ]
        if self.n_arrows:
            right = round(self.direction_accuracy * self.n_arrows)
            lines.append(f"{right} of {self.n_arrows} arrows on true links point the right way")
        lines += (
            [f"not judged, since the truth does not name them: {', '.join(self.left_out)}"] if self.left_out else []
        )
        lines += ["the columns had no names: the truth's variables were matched in order"] if self.by_order else []
        return "\n".join(map(one_line, lines))


def score_result(result: Result, truth: Any, cut: Cut) -> Score:
    """See `Result.score`."""
    true = read_truth(truth, result.names)
    at = [result.names.index(name) for name in true.names]
    drawn = result.graph(cut).adjacency[np.ix_(at, at)]
    wanted_n, chosen_n = pair_values(skeleton(true.adjacency)), pair_values(skeleton(drawn))
    precision, recall = precision_recall(wanted_n, chosen_n)
    arrows, known = directed_part(drawn) > 0, directed_part(true.adjacency) > 0
    judged = arrows & (known | known.T)
    is_directed = bool(result.has_directions and known.any())
    return Score(
        n_true=int(wanted_n.sum()),
        n_drawn=int(chosen_n.sum()),
        n_hits=int((wanted_n & chosen_n).sum()),
        precision=precision,
        recall=recall,
        f1=f1(wanted_n, chosen_n),
        average_precision=average_precision(wanted_n, pair_values(result.probabilities[np.ix_(at, at)][..., SKELETON])),
        shd=_measure_distance(drawn, true, _find_told(result)[np.ix_(at, at)] if is_directed else None),
        is_directed=is_directed,
        n_arrows=int(judged.sum()),
        direction_accuracy=float((judged & known).sum() / judged.sum()) if judged.any() else math.nan,
        left_out=tuple(name for name in result.names if name not in set(true.names)),
        by_order=isinstance(truth, Graph) and true.names != truth.names and not set(true.names) & set(truth.names),
    )


def _find_told(result: Result) -> BoolMatrix:
    """Pairs whose direction an experiment tells, or prior knowledge that excludes one way."""
    told_dd = np.zeros((result.n_variables, result.n_variables), dtype=bool)
    forbidden_dd = result._forbidden()
    if forbidden_dd is not None:
        told_dd |= forbidden_dd ^ forbidden_dd.T
    return told_dd if result.experiments is None else told_dd | result.experiments


def _measure_distance(drawn: Adjacency, true: Graph, told_dd: BoolMatrix | None) -> int:
    if told_dd is None:
        return shd(skeleton(drawn), skeleton(true.adjacency))
    return shd(drawn, direct_told(true.adjacency, told_dd) if is_dag(true.adjacency) else true.adjacency)


# ── what is true, in many spellings ───────────────────────────────────────────────────────────────────────


def read_truth(truth: Any, names: Sequence[str]) -> Graph:
    """Read a graph whose variables are among `names`.

    Parameters
    ----------
    truth : Graph, array_like, DataFrame, networkx graph, edges or path
        A matrix without names has the order of `names`; so has a graph of other names where `names` are those that
        columns without any are given (x0, x1 …) and there are as many. Edges are ``"a -> b"``, ``"a -- b"``, or pairs
        (a, b), which mean a → b; they may be the rows of a DataFrame (`source`, `target`, or `a`, `edge`, `b`). Files:
        .csv or .tsv with edges or a matrix, .json of graphbam, .graphml, .gml.
    names : sequence of str
        Variables of the result.

    Returns
    -------
    Graph
        Over the variables that the truth knows: all of `names`, unless it lists its own.

    Raises
    ------
    ResultError
        If it cannot be read, or names a variable that is not among `names`.

    Examples
    --------
    >>> read_truth([("a", "b"), "b -- c"], ["a", "b", "c"])
    Graph(3 variables: a → b, b — c)
    >>> read_truth([[0, 1], [0, 0]], ["a", "b"])
    Graph(2 variables: a → b)
    """
    if isinstance(truth, (str, os.PathLike)):
        truth = _read_file(Path(truth))
    if isinstance(truth, Result):
        raise ResultError("the truth is a Result; pass a graph, or use compare() for two results.")
    if isinstance(truth, Graph):
        return _restrict(_name_in_order(truth, names), names)
    if hasattr(truth, "is_directed") and hasattr(truth, "nodes"):
        return _restrict(_read_networkx(truth), names)
    if hasattr(truth, "iloc") and hasattr(truth, "columns"):
        return _restrict(_read_frame(truth, names), names)
    if isinstance(truth, np.ndarray) or _is_matrix(truth):
        return _restrict(_read_matrix(np.asarray(truth), names), names)
    if isinstance(truth, Iterable) and not isinstance(truth, Mapping):
        return _join_edges([_read_pair(edge) for edge in truth], names)
    raise ResultError(
        f"a {type(truth).__name__} is no graph. Pass a Graph, a matrix, edges, a networkx graph or a file."
    )


def _is_matrix(truth: Any) -> bool:
    """Whether it is made of equally long lists of numbers, as many as each is long."""
    if not isinstance(truth, (list, tuple)) or not truth or not all(isinstance(row, _ROWS) for row in truth):
        return False
    return all(len(row) == len(truth) and not any(isinstance(cell, str) for cell in row) for row in truth)


def _restrict(graph: Graph, names: Sequence[str]) -> Graph:
    """The same graph in the order of `names`; a variable that is not among them is refused."""
    _refuse_unknown(graph.names, names)
    at = [graph.names.index(name) for name in names if name in set(graph.names)]
    return Graph(tuple(graph.names[k] for k in at), graph.adjacency[np.ix_(at, at)])


def _name_in_order(graph: Graph, names: Sequence[str]) -> Graph:
    """The graph by `names`, in their order, where columns had no names and nobody means the graph's by them."""
    had_none = list(names) == [f"x{k}" for k in range(len(names))]
    if had_none and graph.n_variables == len(names) and not set(names) & set(graph.names):
        return Graph(tuple(names), graph.adjacency)
    return graph


def _refuse_unknown(truth: Iterable[str], names: Sequence[str]) -> None:
    known = set(names)
    for name in truth:
        if name not in known:
            raise ResultError(
                f"the truth names {name!r}, which the result does not have; it has {_list_names(names)}. Rename it, "
                "or take it out."
            )


def _list_names(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:6])) + (", …" if len(names) > 6 else "")


def _read_matrix(matrix: NDArray[Any], names: Sequence[str]) -> Graph:
    if matrix.shape != (len(names), len(names)):
        raise ResultError(
            f"the truth has shape {matrix.shape}; {len(names)} variables need {(len(names), len(names))}. Give its "
            "names too, as a Graph or a DataFrame."
        )
    return _make(names, matrix)


def _make(names: Sequence[str], matrix: NDArray[Any]) -> Graph:
    try:
        return Graph(tuple(names), matrix)
    except GraphError as error:
        raise ResultError(f"the truth is no graph: {error}") from None


def _read_pair(edge: Any) -> tuple[str, str, bool]:
    """Two names, and whether the first points at the second."""
    if isinstance(edge, _ROWS) and len(edge) == 2:
        return str(edge[0]), str(edge[1]), True
    try:
        return read_edge(edge)
    except KnowledgeError as error:
        raise ResultError(f"the truth cannot be read: {error}") from None


def _join_edges(edges: Iterable[tuple[str, str, bool]], names: Sequence[str]) -> Graph:
    place = {name: k for k, name in enumerate(names)}
    matrix = np.zeros((len(names), len(names)), dtype=np.int8)
    for a, b, is_directed in edges:
        _refuse_unknown((a, b), names)
        matrix[place[a], place[b]] = 1
        matrix[place[b], place[a]] |= not is_directed
    return _make(names, matrix)


def _read_networkx(graph: Any) -> Graph:
    names = [str(node) for node in graph.nodes]
    edges = [(str(a), str(b), graph.is_directed()) for a, b in graph.edges()]
    return _join_edges(edges, names)


def _read_frame(frame: pd.DataFrame, names: Sequence[str]) -> Graph:
    columns, labels = ([str(label) for label in side] for side in (frame.columns, frame.index))
    if sorted(labels) == sorted(columns) and len({*labels}) == len(labels):  # rows may be in another order
        return _make(columns, frame.to_numpy()[[labels.index(name) for name in columns]])
    if "edge" not in columns and {"a", "b", "skeleton", "none"} <= set(columns):
        raise ResultError(
            "the truth lists the probabilities of all pairs, as edges.csv does, and no graph. Pass graph.json, "
            "graph.graphml or arrows.csv, which lie beside it."
        )
    for first, second in (("source", "target"), ("a", "b")):
        if {first, second} <= set(columns):
            marks = frame["edge"] if "edge" in columns else ["->"] * len(frame)
            rows = zip(frame[first].astype(str), frame[second].astype(str), marks, strict=True)
            return _join_edges([(a, b, mark != "--") for a, b, mark in rows], names)
    if frame.shape[0] == frame.shape[1]:
        if labels != [str(k) for k in range(len(labels))]:
            raise ResultError(
                f"rows of the truth are called {_list_names(labels)}, its columns {_list_names(columns)}: a matrix has "
                "the same names on both sides. Rename the rows, or number them if they are in the order of the columns."
            )
        return _make(columns, frame.to_numpy())
    raise ResultError(
        f"the truth has the columns {_list_names(columns)}; it needs source and target, or a, edge and b, or as many "
        "rows as columns."
    )


def _read_file(path: Path) -> Any:
    import pandas as pd

    suffix = path.suffix.lower()
    try:
        if suffix in (".csv", ".tsv"):
            frame = pd.read_csv(path, sep="\t" if suffix == ".tsv" else ",", dtype=str, keep_default_na=False)
            return _restore_matrix(frame)
        if suffix == ".json":
            values = json.loads(path.read_text(encoding="utf-8"))
            return _join_edges([(e["a"], e["b"], e["edge"] == "->") for e in values["edges"]], values["names"])
        if suffix in (".graphml", ".gml"):
            return _read_graph_file(path, suffix)
    except FileNotFoundError:
        raise ResultError(f"the truth, {path}, does not exist. Check the path.") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ResultError(f"{path} cannot be read as a graph: {error}.") from None
    raise ResultError(f"{path}: a truth is read from .csv, .tsv, .json, .graphml or .gml.")


def _read_graph_file(path: Path, suffix: str) -> Any:
    import networkx as nx

    try:
        return (nx.read_graphml if suffix == ".graphml" else nx.read_gml)(path)
    except (nx.NetworkXError, SyntaxError) as error:  # what is no XML is called so
        raise ValueError(error) from None


def _restore_matrix(frame: pd.DataFrame) -> pd.DataFrame:
    """A matrix with names on both sides, if a table of text is one; else the same table."""
    if list(frame.iloc[:, 0]) == list(frame.columns[1:]):
        return frame.set_index(frame.columns[0]).astype(float)
    is_list = {"source", "target"} <= set(frame.columns) or {"a", "b"} <= set(frame.columns)
    return frame if is_list else frame.astype(float)
