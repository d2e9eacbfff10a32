"""The answer: probabilities of none · skeleton · moral for every pair, and what follows from them."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from graphbam.directions.arrows import (
    SUPPORT_FROM,
    Known,
    arrow_probabilities,
    check_pairs,
    claim_immoralities,
    follow_known,
    imply_known,
    settle_ancestors,
    settle_arrows,
    settle_compelled,
    settle_directions,
    settle_hidden,
)
from graphbam.directions.cpdag import choose_links, expected_shd, forced_arrows, nearest_cpdag, possible_links
from graphbam.directions.dag import nearest_dag, worth_drawing
from graphbam.directions.immoralities import Beliefs, read_immoralities
from graphbam.errors import (
    GraphbamError,
    OrientationMissingError,
    ResultError,
    Setting,
    check_whole,
    name_some,
    spell_count,
)
from graphbam.graphs.cut import EVEN, Cut, Objective, tidy_probabilities
from graphbam.graphs.equivalence import sample_dags
from graphbam.graphs.graph import (
    MORAL,
    SKELETON,
    Adjacency,
    Graph,
    Matrix,
    directed_part,
    one_line,
    skeleton,
    undirected_part,
)
from graphbam.graphs.knowledge import Knowledge

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from graphbam.output.files import Link
    from graphbam.questions.blanket import MarkovBlanket
    from graphbam.questions.comparison import Comparison, Score
    from graphbam.questions.reasons import Reasons
    from graphbam.questions.roles import Roles

VERSION = 1
"""Of the form of `Result.to_dict`."""

CLASSES = ("none", "skeleton", "moral")
"""Order of the last axis of `Result.probabilities`."""

ORDERED = ("directions", "compelled", "hidden_causes", "ancestors")
"""Fields of a result that say something of ordered pairs."""

ABOUT_ROWS = ("sample", "filled", "was_set")
"""Fields of a result that say something of rows; they are not saved."""

CAUTION = 2.0
"""How many mistakes more an arrow in `Result.cpdag` counts for where no data can tell a direction: it is drawn where it
is three times as likely as that. Arrows of the second network are weighed as in the paper, without it."""


SUSPECT_FROM = 0.1
"""A common child is named for pairs at least this likely to be moral …"""

CHILD_FROM = 0.05
"""… if both its links exist with at least this probability."""

MOST_NAMED = 6
"""Number of links that a note names."""


@dataclass(frozen=True, eq=False, repr=False)
class OrientedGraph(Graph):
    """A graph with directions where the data decide, and how sure each link and each arrow is.

    Made by `Result.cpdag`: a CPDAG; with prior knowledge about directions, a maximally directed graph. Made by
    `Result.dag`: a DAG. Two are equal if names and edges are, whatever the probabilities.

    Examples
    --------
    >>> graph = OrientedGraph(["a", "b"], [[0, 1], [0, 0]], [[0, 0.9], [0.9, 0]], [[0, 0.75], [0.25, 0]])
    >>> graph
    Graph(2 variables: a → b)
    >>> graph.table()[["a", "edge", "b", "probability", "forward", "backward", "forced"]].values.tolist()
    [['a', '->', 'b', 0.675, 0.75, 0.25, False]]
    """

    edge_probability_dd: Matrix
    """Shape (D, D): probability that i and j are adjacent."""
    arrow_probability_dd: Matrix
    """Shape (D, D): probability of i → j given that i and j are adjacent."""
    notes: tuple[str, ...] = ()
    """Which links differ from those of `Result.skeleton` at the same cut, and why; one sentence each."""
    decided_dd: npt.NDArray[np.bool_] | None = None
    """Shape (D, D): of a DAG, the arrows that the CPDAG with these links has too, and those that by themselves are
    three times as likely as an open link; None elsewhere."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "notes", tuple(self.notes))
        for name in ("edge_probability_dd", "arrow_probability_dd"):
            object.__setattr__(self, name, _frozen(np.array(getattr(self, name), dtype=np.float64)))
        if self.decided_dd is not None:
            object.__setattr__(self, "decided_dd", _frozen(np.array(self.decided_dd, dtype=np.bool_)))

    @functools.cached_property
    def forced(self) -> npt.NDArray[np.bool_]:
        """Shape (D, D): arrows that are drawn although their reverse, or no direction, is likelier.

        They follow from the other arrows, or keep cycles away: no graph with these links was found that does without
        them and is expected to be nearer to the truth. The data by themselves do not speak for them.
        """
        return _frozen(forced_arrows(self.adjacency, self.arrow_probability_dd))

    @functools.cached_property
    def guessed(self) -> npt.NDArray[np.bool_]:
        """Shape (D, D): arrows of a DAG on links whose direction `Result.cpdag` leaves open, and rightly so.

        What depends on what does not decide about them. How sure they are by the shapes of relations and noise, which
        tell nothing in linear Gaussian systems, is in `arrow_probability_dd`. A CPDAG has no guesses.
        """
        arrows_dd = directed_part(self.adjacency) > 0
        return _frozen(np.zeros_like(arrows_dd) if self.decided_dd is None else arrows_dd & ~self.decided_dd)

    def table(self) -> pd.DataFrame:
        """One row per edge: arrows first, then undirected edges, the likeliest of each first.

        Returns
        -------
        DataFrame
            Columns a, edge (``->`` or ``--``), b; `probability` that the edge is exactly so; `skeleton`, that the two
            are adjacent; and given that they are, `forward` for a → b and `backward` for b → a. What these two lack to
            one is the probability that the direction stays open. `forced` marks arrows of `forced`; in a DAG,
            `guessed` those of `guessed`.
        """
        import pandas as pd

        return pd.DataFrame(self.columns())

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """The same, one array per column."""
        arrows = np.argwhere(directed_part(self.adjacency))
        i, j = np.concatenate([arrows, np.argwhere(np.triu(undirected_part(self.adjacency)))]).T
        is_arrow = np.arange(len(i)) < len(arrows)
        p, arrow_dd = self.edge_probability_dd[i, j], self.arrow_probability_dd
        forward, backward = arrow_dd[i, j], arrow_dd[j, i]
        right = p * np.where(is_arrow, forward, 1 - forward - backward)
        names = np.array(self.names, dtype=object)
        columns = {"a": names[i], "edge": np.where(is_arrow, "->", "--").astype(object), "b": names[j]}
        numbers = {"probability": right, "skeleton": p, "forward": forward, "backward": backward}
        columns |= numbers | {"forced": self.forced[i, j]}
        columns |= {} if self.decided_dd is None else {"guessed": self.guessed[i, j]}
        ranked = np.lexsort((-np.where(is_arrow, right, p), ~is_arrow))  # stable: ties stay in the order of the names
        return {name: values[ranked] for name, values in columns.items()}

    def expected_shd(self) -> float:
        """Structural Hamming distance to expect to the true CPDAG; see `graphbam.directions.cpdag.expected_shd`."""
        return expected_shd(self.adjacency, self.edge_probability_dd, self.arrow_probability_dd)

    def sample_dags(self, n: int, seed: int = 0) -> list[Graph]:
        """Draw DAGs from those this graph stands for, with replacement; see `graphs.equivalence.sample_dags`."""
        check_whole("n", n, 0)
        check_whole("seed", seed, 0)
        return [Graph(self.names, dag) for dag in sample_dags(self.adjacency, n, np.random.default_rng(seed))]

    def to_networkx(self) -> Any:
        """As `Graph.to_networkx`; edges carry `skeleton`; in a ``DiGraph`` also `arrow` and `forced`.

        Those of a DAG carry `guessed` too. A graph without a single link is a ``DiGraph``.
        """
        result, place = super().to_networkx(), {name: k for k, name in enumerate(self.names)}
        result = result if result.size() else result.to_directed()
        for a, b, data in result.edges(data=True):
            data["skeleton"] = float(self.edge_probability_dd[place[a], place[b]])
            if result.is_directed():
                data["arrow"] = float(self.arrow_probability_dd[place[a], place[b]])
                data["forced"] = bool(self.forced[place[a], place[b]])
            if self.decided_dd is not None:
                data["guessed"] = bool(self.guessed[place[a], place[b]])
        return result

    def __reduce__(self) -> Any:
        parts = (self.edge_probability_dd, self.arrow_probability_dd, self.notes, self.decided_dd)
        return OrientedGraph, (self.names, self.adjacency, *parts)


class AnyResult:
    """What one asks of an answer however it keeps its pairs: in a matrix (`Result`) or in a list (`SparseResult`)."""

    names: tuple[str, ...]
    changes: tuple[str, ...]
    warnings: tuple[str, ...]
    source: str
    provenance: Mapping[str, Any]
    has_directions: Any
    expected_links: Any
    skeleton: Callable[..., Any]
    moral_pairs: Callable[..., Any]
    cpdag: Callable[..., Any]
    graph: Callable[..., Any]
    table: Callable[[], pd.DataFrame]
    columns: Callable[[], dict[str, npt.NDArray[Any]]]
    say_hidden: Callable[[], str]

    @property
    def n_variables(self) -> int:
        """Number D of variables."""
        return len(self.names)

    def arrows(
        self,
        cut: Cut | float | None = None,
        *,
        threshold: float | None = None,
        fdr: float | None = None,
        objective: Objective = "links",
    ) -> pd.DataFrame:
        """Edges of `cpdag` with their probabilities, as `OrientedGraph.table` lists them; parameters as there."""
        return self.cpdag(cut, threshold=threshold, fdr=fdr, objective=objective).table()

    def summary(
        self,
        cut: Cut | float | None = None,
        n_edges: int = 10,
        *,
        threshold: float | None = None,
        fdr: float | None = None,
    ) -> str:
        """Say in a few lines what was found, what was done to the data and what to keep in mind."""
        check_whole("n_edges", n_edges, 0)
        rows = self.spell_rows()
        lines = [f"{self.source or 'table'}: {self.n_variables} variables" + (f", {rows}" if rows else "")]
        lines += self._say_links(Cut.read(cut, threshold=threshold, fdr=fdr), n_edges)
        mind = (*self.warnings, *getattr(self.graph(cut, threshold=threshold, fdr=fdr), "notes", ()))
        for title, sentences in (("Done to the data", self.changes), ("Keep in mind", mind)):
            lines += [f"{title}:", *(f"  • {sentence}" for sentence in sentences)] if sentences else []
        return "\n".join(map(one_line, lines))

    def _say_links(self, cut: Cut, n_edges: int) -> list[str]:
        from graphbam.output.files import list_links

        links, moral = list_links(cast(Any, self), cut), self._list_moral(cut)
        n_arrows = sum(link.is_directed for link in links)
        directed = f", {n_arrows} with a direction" if self.has_directions else ""
        married = f"; {spell_count(len(moral), 'pair')} linked through a common child only" if len(moral) else ""
        lines = [f"{spell_count(len(links), 'direct link')} {cut}{directed}{married}", self.say_errors(links)]
        lines += [_link_line(link) for link in links[:n_edges]]
        if len(links) > n_edges:
            lines.append(f"  … and {len(links) - n_edges} more")
        lines += [said] if (said := self.say_hidden()) else []
        lines += [_moral_line(row) for row in moral[:n_edges]]
        return lines + (
            [f"  … and {spell_count(len(moral) - n_edges, 'more such pair')}"] if len(moral) > n_edges else []
        )

    def expect_errors(self, links: Sequence[Link]) -> tuple[float, float]:
        """How many of these links are false, and how many others there are, as the probabilities have it."""
        true = sum(link.numbers["skeleton"] for link in links)
        return len(links) - true, max(self.expected_links - true, 0.0)

    def say_errors(self, links: Sequence[Link]) -> str:
        """``"3.1 expected false, 12.8 expected missed"``."""
        wrong, missed = (f"{n:.1f}" if n >= 0.1 else "fewer than 0.1" for n in self.expect_errors(links))
        if not links:
            return f"{missed} expected missed"
        return (
            f"{wrong} expected false{' or' if wrong == missed == 'fewer than 0.1' else f', {missed} expected'} missed"
        )

    def _list_moral(self, cut: Cut) -> list[dict[str, Any]]:
        """Rows of `table` for the `moral_pairs`, likeliest first."""
        apart = set(self.moral_pairs(cut).undirected_edges())
        if not apart:
            return []
        columns = self.columns()
        pairs = zip(columns["a"], columns["b"], strict=True)
        chosen = [place for place, pair in enumerate(pairs) if pair in apart]
        cells = zip(*(column[chosen].tolist() for column in columns.values()), strict=True)
        rows = [dict(zip(columns, row, strict=True)) for row in cells]
        return sorted(rows, key=lambda row: -row["moral"])

    def spell_rows(self) -> str:
        """Say how many rows were used: ``"200 rows"``, ``"5000 of 80000 rows"``, or nothing if that is not known."""
        read, used = self.provenance.get("n_rows"), self.provenance.get("n_rows_used")
        if not used:
            return ""
        return f"{used} rows" if read in (None, used) else f"{used} of {read} rows"


@dataclass(frozen=True, eq=False, repr=False)
class Result(AnyResult):
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
    colliders: npt.NDArray[np.void] | None = None
    """What the second network said: rows (a, c, b, probability) for a → c ← b, by place in `names`; None: not asked."""
    directions: Matrix | None = None
    """Shape (D, D): probability of i → j given a link, from the same pass; [i, j] and [j, i] sum to one; None: not
    asked."""
    compelled: Matrix | None = None
    """Shape (D, D): probability that the CPDAG has i → j, given a link, from the same pass."""
    hidden_causes: Matrix | None = None
    """Shape (D, D), symmetric: probability that a variable outside the table is a common cause of i and j, linked or
    not; None where the weights cannot say."""
    ancestors: Matrix | None = None
    """Shape (D, D): probability that a path of arrows leads from i to j; None where the weights cannot say."""
    experiments: npt.NDArray[np.bool_] | None = None
    """Shape (D, D), symmetric: pairs of which an experiment set one without the other, so that data can tell which way
    a link points; None: nothing was set."""
    arrow_stability: Matrix | None = None
    """Shape (D, D): share of resamples in which `cpdag` draws i → j, of the first 20 where a second network finds
    directions; None where they were not asked for."""
    is_part: bool = False
    """Whether it is a part of a wider answer, in which `ancestors` were settled: paths may lead through variables that
    are not here."""
    filled: npt.NDArray[np.bool_] | None = None
    """Which cells of `sample` were missing and have been filled in, shape (rows, D); None: none was."""
    was_set: npt.NDArray[np.bool_] | None = None
    """Which cells of `sample` an experiment set, shape (rows, D); None: none was."""
    _decided: dict[tuple[str, Cut], OrientedGraph] = field(default_factory=dict, init=False)

    def __getstate__(self) -> dict[str, Any]:
        """Without what is remembered: the graphbam that opens a pickle decides anew."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.init} | {"_decided": {}}

    def __post_init__(self) -> None:
        object.__setattr__(self, "probabilities", tidy_probabilities(self.probabilities, len(self.names)))
        object.__setattr__(self, "names", tuple(self.names))
        if self.colliders is not None:
            object.__setattr__(self, "colliders", _frozen(read_immoralities(self.colliders, len(self.names))))
        if self.experiments is not None:
            apart_dd = check_pairs(self.experiments, len(self.names), "experiments") > 0
            object.__setattr__(self, "experiments", _frozen(apart_dd | apart_dd.T))
        self._settle_answers()

    def _settle_answers(self) -> None:
        """Bring what was said of ordered pairs into exact form, prior knowledge enforced in it."""
        known, link_dd = self._known(), None if self.is_part else self.probabilities[..., SKELETON]
        least_dd = self._implied(known)
        rules: dict[str, Callable[[Matrix], Matrix]] = {
            "compelled": lambda p_dd: settle_compelled(p_dd, known, least_dd),
            "directions": lambda p_dd: self._settle_directions(p_dd, known, link_dd, least_dd is not None),
            "hidden_causes": settle_hidden,
            "ancestors": lambda p_dd: self._settle_paths(p_dd, known),
        }
        for name, settle in rules.items():
            p_dd = getattr(self, name)
            if p_dd is not None:
                object.__setattr__(self, name, _frozen(settle(check_pairs(p_dd, len(self.names), name))))

    def _settle_directions(self, p_dd: Matrix, known: Known | None, link_dd: Matrix | None, is_implied: bool) -> Matrix:
        """Directions, which follow what known arrows imply; those of a part did so in the whole."""
        least_dd = self.compelled if is_implied else None
        if least_dd is not None and self.experiments is not None:
            least_dd = np.where(self.experiments, 0.0, least_dd)
        return settle_directions(p_dd, known, link_dd, least_dd)

    def _implied(self, known: Known | None) -> Matrix | None:
        """What known arrows imply of links that data leave open; not of those that an experiment decides."""
        if known is None or self.compelled is None:
            return None
        compelled_dd = settle_compelled(check_pairs(self.compelled, len(self.names), "compelled"), known)
        immoralities = claim_immoralities(self.probabilities, compelled_dd)
        least_dd = imply_known(Beliefs(self.probabilities, immoralities, known.forbidden_dd))
        return least_dd if least_dd is None or self.experiments is None else np.where(self.experiments, 0.0, least_dd)

    def _known(self) -> Known | None:
        forbidden, known = self._forbidden(), self.knowledge
        if known is None or forbidden is None:
            return None
        return Known(forbidden, known.after_matrix(self.names), known.arrow_matrix(self.names))

    def _settle_paths(self, p_dd: Matrix, known: Known | None) -> Matrix:
        """Paths by arrows and prior knowledge; those of a part were settled among all, but for pairs not listed."""
        if known is None or not self.is_part:
            return settle_ancestors(p_dd, self._likely_arrows(known), known)
        p_dd = np.where(known.after_dd, 0.0, np.where(known.follows.certain_dd, 1.0, p_dd))
        return settle_ancestors(p_dd, self._likely_arrows(None))

    def _likely_arrows(self, known: Known | None) -> Matrix | None:
        """How likely i → j is, link and direction; None where directions are not from the same pass."""
        if self.directions is None:
            return None
        link_dd, way_dd = self.probabilities[..., SKELETON], self.arrow_probabilities
        if known is None:
            return link_dd * way_dd
        return settle_arrows(link_dd, way_dd, known.forced_dd, known.follows)

    # ── graphs ────────────────────────────────────────────────────────────────────────────────────────────

    def skeleton(
        self, cut: Cut | float | None = None, *, threshold: float | None = None, fdr: float | None = None
    ) -> Graph:
        """Direct links: pairs whose skeleton probability reaches the threshold.

        Parameters
        ----------
        cut : Cut or float, optional
            What decides; a plain number is a threshold.
        threshold : float, optional
            Smallest probability of an edge; 0.5 if nothing is given.
        fdr : float, optional
            False-discovery target instead: the largest set of edges of which at most this share is expected
            to be wrong, by the calibrated probabilities.

        Returns
        -------
        Graph
            Undirected.
        """
        links_dd = Cut.read(cut, threshold=threshold, fdr=fdr).links(self.probabilities[..., SKELETON])
        return Graph(self.names, links_dd.astype(np.int8))

    def moral_graph(
        self, cut: Cut | float | None = None, *, threshold: float | None = None, fdr: float | None = None
    ) -> Graph:
        """Every pair that is dependent given all others: direct links and parents of a common child.

        Dependence by hidden common causes is not in it.

        Parameters are those of `skeleton`, applied to the sum of skeleton and moral probability.
        """
        p_dd = self.probabilities[..., SKELETON] + self.probabilities[..., MORAL]
        return Graph(self.names, Cut.read(cut, threshold=threshold, fdr=fdr).links(p_dd).astype(np.int8))

    def moral_pairs(
        self, cut: Cut | float | None = None, *, threshold: float | None = None, fdr: float | None = None
    ) -> Graph:
        """Pairs linked through a common child only: not in `graph`, and moral with probability 0.5 or more.

        Parameters are those of `graph`. See `table` for the likeliest child of each.
        """
        linked_dd = self.graph(cut, threshold=threshold, fdr=fdr).skeleton().adjacency
        return Graph(self.names, (self.probabilities[..., MORAL] >= EVEN) & ~linked_dd.astype(bool))

    def graph(
        self, cut: Cut | float | None = None, *, threshold: float | None = None, fdr: float | None = None
    ) -> Graph:
        """The graph that files, pictures and reports show: `cpdag` where directions are known, else `skeleton`."""
        choose = self.cpdag if self.has_directions else self.skeleton
        return choose(cut, threshold=threshold, fdr=fdr)

    @property
    def has_directions(self) -> bool:
        """Whether anything is known of directions, from the same pass or from the second network."""
        return self.directions is not None or self.colliders is not None

    @property
    def expected_links(self) -> float:
        """How many links there are, as the probabilities have it: their sum over all pairs."""
        return float(np.triu(self.probabilities[..., SKELETON], 1).sum())

    # ── directions ────────────────────────────────────────────────────────────────────────────────────────

    def cpdag(
        self,
        cut: Cut | float | None = None,
        *,
        threshold: float | None = None,
        fdr: float | None = None,
        objective: Objective = "links",
    ) -> OrientedGraph:
        """The links of `skeleton`, directed as far as the data and prior knowledge decide.

        Of the CPDAGs with these links, the one expected to be nearest to the truth, where an arrow that no data can
        tell counts for `CAUTION` mistakes more; see `graphbam.directions.cpdag.nearest_cpdag`.

        Parameters
        ----------
        cut, threshold, fdr
            Choose the links, as in `skeleton`.
        objective : {"links", "shd"}
            With ``"shd"``, and without a cut, links are left out as well where that makes the expected structural
            Hamming distance smaller: mostly likely ones whose direction is in doubt. `OrientedGraph.notes` names them.

        Returns
        -------
        OrientedGraph
            A CPDAG, whatever the networks say. Where an experiment set one of two linked variables without the other,
            the link is directed too. Known directions hold in the graph, and all that follows from them; a link
            whose known direction would close a cycle is left out, and `OrientedGraph.notes` says so. Arrows that are
            drawn although others are likelier are in `OrientedGraph.forced`.

        Raises
        ------
        OrientationMissingError
            If the result was made without collider weights.

        Examples
        --------
        >>> p = np.full((3, 3, 3), [0.1, 0.9, 0.0])
        >>> p[0, 1] = p[1, 0] = [0.1, 0.0, 0.9]
        >>> Result(("rain", "sprinkler", "wet"), p, colliders=[(0, 2, 1, 0.8)]).cpdag()
        Graph(3 variables: rain → wet, sprinkler → wet)
        """
        return self._decide(Cut.read(cut, threshold=threshold, fdr=fdr, objective=objective))

    def dag(
        self,
        cut: Cut | float | None = None,
        *,
        threshold: float | None = None,
        fdr: float | None = None,
        objective: Objective = "links",
    ) -> OrientedGraph:
        """`cpdag` with a direction for every link, without a cycle.

        Its links and arrows are all there. Of the DAGs that have them, the one expected to be nearest to the true one:
        an open link points as it rather does than not, except where that would close a cycle (`OrientedGraph.forced`).
        Arrows on links that `cpdag` leaves open are marked as guesses (`OrientedGraph.guessed`), unless they are three
        times as likely as an open link.

        Parameters
        ----------
        cut, threshold, fdr
            Choose the links, as in `skeleton`.
        objective : {"links", "shd"}
            With ``"shd"``, and without a cut, links are left out where that makes the expected structural Hamming
            distance smaller; `OrientedGraph.notes` names them. A DAG may keep some that are left out of `cpdag`: to
            leave a direction open counts as a mistake there, and here there is none to leave open.

        Returns
        -------
        OrientedGraph
            A DAG, whatever the networks say. Known directions hold in it.

        Raises
        ------
        OrientationMissingError
            If nothing is known of directions.

        Examples
        --------
        >>> p = np.full((2, 2, 3), [0.1, 0.9, 0.0])
        >>> p_arrow, p_compelled = np.array([[0, 0.7], [0.3, 0]]), np.array([[0, 0.1], [0.1, 0]])
        >>> result = Result(("dose", "effect"), p, directions=p_arrow, compelled=p_compelled)
        >>> result.cpdag(), result.dag(), result.dag().guessed.any()
        (Graph(2 variables: dose — effect), Graph(2 variables: dose → effect), np.True_)
        """
        return self._decide_dag(Cut.read(cut, threshold=threshold, fdr=fdr, objective=objective))

    @functools.cached_property
    def arrow_probabilities(self) -> Matrix:
        """Shape (D, D): probability of i → j given that i and j are adjacent.

        From the same pass, [i, j] and [j, i] sum to one: `directions`, and what experiments imply of other links. From
        the two steps of the paper, what is missing to one is open: the CPDAG does not direct the link.
        """
        if self.directions is None:
            return self._two_step_arrows
        if self.experiments is None or self.compelled is None or self.is_part:
            return self.directions
        said_dd, followed_dd = self._said_arrows(), self.compelled_probabilities
        least_dd = np.where(followed_dd > said_dd, followed_dd, 0.0)
        return _frozen(settle_directions(self.directions, self._known(), self.probabilities[..., SKELETON], least_dd))

    @functools.cached_property
    def compelled_probabilities(self) -> Matrix:
        """Shape (D, D): probability that the true CPDAG has i → j, given that i and j are adjacent.

        What [i, j] and [j, i] lack to one is the probability that no data as these can tell which way the link points;
        nothing, where an experiment set one of the two without the other.
        """
        if self.compelled is None or self.directions is None:
            return self._two_step_arrows
        return _frozen(follow_known(self._beliefs, self._said_arrows()))

    def _said_arrows(self) -> Matrix:
        """What the pass says of arrows: those of the CPDAG, and directions where an experiment decides."""
        assert self.compelled is not None
        assert self.directions is not None
        return (
            self.compelled if self.experiments is None else np.where(self.experiments, self.directions, self.compelled)
        )

    def to_dag(self) -> Graph:
        """One DAG out of the class of `cpdag`, always the same; for another cut use ``cpdag(...).to_dag()``."""
        return self.cpdag().to_dag()

    def sample_dags(self, n: int, seed: int = 0) -> list[Graph]:
        """Draw DAGs from the class of `cpdag`, with replacement, as `OrientedGraph.sample_dags` does."""
        return self.cpdag().sample_dags(n, seed)

    def _decide(self, cut: Cut) -> OrientedGraph:
        """Choose links and arrows; remembered, since files, picture and report ask for the same again."""
        if ("cpdag", cut) not in self._decided:
            arrow_dd = self.compelled_probabilities
            adjacency = nearest_cpdag(self._beliefs, arrow_dd, cut, 0.0 if self.compelled is None else CAUTION)
            self._decided["cpdag", cut] = self._orient(adjacency, arrow_dd, cut)
        return self._decided["cpdag", cut]

    def _decide_dag(self, cut: Cut) -> OrientedGraph:
        """Choose a direction for each link that the CPDAG leaves open; remembered as well."""
        if ("dag", cut) not in self._decided:
            arrow_dd, p_dd = self.arrow_probabilities, self.probabilities[..., SKELETON]
            either_dd = arrow_dd + (1 - arrow_dd - arrow_dd.T) / 2  # open: either is as good
            cpdag = self._decide(cut).adjacency
            links_dd, forbidden_dd = skeleton(cpdag) > 0, self._beliefs.forbidden | (directed_part(cpdag).T > 0)
            if cut.objective == "shd":
                more_dd = worth_drawing(choose_links(self._beliefs, cut), p_dd, either_dd)
                links_dd = possible_links(links_dd | more_dd, np.where(links_dd, 1.0, p_dd / 2), forbidden_dd)
            adjacency = nearest_dag(links_dd, p_dd, either_dd, forbidden_dd)
            said_dd = self.compelled_probabilities
            decided_dd = (directed_part(cpdag) > 0) | is_decided(said_dd, 1 - said_dd - said_dd.T)
            self._decided["dag", cut] = self._orient(adjacency, either_dd, cut, decided_dd)
        return self._decided["dag", cut]

    def _orient(
        self, adjacency: Adjacency, arrow_dd: Matrix, cut: Cut, decided_dd: npt.NDArray[np.bool_] | None = None
    ) -> OrientedGraph:
        p_dd = self.probabilities[..., SKELETON]
        notes = _compare_links(self.names, p_dd, cut, adjacency)
        return OrientedGraph(self.names, adjacency, p_dd, arrow_dd, notes, decided_dd)

    @functools.cached_property
    def _two_step_arrows(self) -> Matrix:
        """What follows from immoralities by the rules of `graphbam.directions.arrows`."""
        return _frozen(follow_known(self._beliefs, arrow_probabilities(self._beliefs)))

    @functools.cached_property
    def _beliefs(self) -> Beliefs:
        """All that is known of directions."""
        if not self.has_directions:
            if self.provenance.get("settings", {}).get("directions") == "none":
                raise OrientationMissingError(
                    "this result has no directions, as was asked. Infer again without ",
                    Setting("directions", "none"),
                    ", or use skeleton(), which needs none.",
                )
            raise OrientationMissingError(
                "this result has no directions: nobody was asked for them. Infer again with weights that give them in "
                "one pass, or with directions='two-step' and colliders=..., collider weights by name or path "
                "(`graphbam weights` lists those of the package), or use skeleton(), which needs no directions."
            )
        if self.compelled is None or self.directions is None:
            return Beliefs(self.probabilities, self.colliders, self._forbidden())
        immoralities = claim_immoralities(self.probabilities, self._said_arrows())
        beliefs = Beliefs(self.probabilities, immoralities, self._forbidden())
        if self.experiments is None:
            return beliefs
        links_dd = choose_links(beliefs, Cut(threshold=SUPPORT_FROM))
        dag = nearest_dag(links_dd, beliefs.p_dd, self.directions, beliefs.forbidden)
        known_dd = (dag > 0) & self.experiments  # parts of one DAG: they close no cycle, and heed prior knowledge
        return Beliefs(self.probabilities, immoralities, beliefs.forbidden | known_dd.T)

    def _forbidden(self) -> npt.NDArray[np.bool_] | None:
        """Arrows that prior knowledge excludes, as `graphbam.directions.immoralities` reads them."""
        known = self.knowledge
        if not known:
            return None
        return np.array([[known.forbids(a, b) for b in self.names] for a in self.names], dtype=bool)

    # ── tables and text ───────────────────────────────────────────────────────────────────────────────────

    def table(self) -> pd.DataFrame:
        """One row per pair, likeliest direct links first.

        Returns
        -------
        DataFrame
            Columns a, b, skeleton, moral, none; if it was asked for, `stability` of the link, and `stable_forward` and
            `stable_backward` of the arrows a → b and b → a; where directions are known, `forward` and `backward`, the
            probabilities of a → b and of b → a given a link, and `open`, that no data as these can tell; where the
            weights say so, `hidden` for a hidden common cause, `upstream` for a path of arrows from a to b and
            `downstream` for one from b to a; and `via`, the likeliest common child of pairs that may be moral.
        """
        import pandas as pd

        return pd.DataFrame(self.columns())

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """The same, one array per column."""
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
        if self.arrow_stability is not None:
            columns |= {"stable_forward": self.arrow_stability[i, j], "stable_backward": self.arrow_stability[j, i]}
        if self.has_directions:
            columns |= {"forward": self.arrow_probabilities[i, j], "backward": self.arrow_probabilities[j, i]}
            said_dd = self.compelled_probabilities
            columns["open"] = np.clip(1 - said_dd[i, j] - said_dd[j, i], 0.0, 1.0)
        if self.hidden_causes is not None:
            columns["hidden"] = self.hidden_causes[i, j]
        if self.ancestors is not None:
            columns |= {"upstream": self.ancestors[i, j], "downstream": self.ancestors[j, i]}
        child = suspect_children(self)[i, j]
        columns["via"] = np.where(child >= 0, names[child], "")
        ranked = np.lexsort((-p_n3[:, MORAL], -p_n3[:, SKELETON]))  # stable: ties stay in the order of the names
        return {name: values[ranked] for name, values in columns.items()}

    def say_hidden(self, n_pairs: int = MOST_NAMED) -> str:
        """Name the pairs behind which there is rather something hidden than not; nothing if there are none."""
        if self.hidden_causes is None:
            return ""
        p_dd = np.triu(self.hidden_causes, 1)
        i, j = np.nonzero(p_dd >= EVEN)
        order = np.argsort(-p_dd[i, j], kind="stable")
        named = [f"{self.names[i[k]]} ↔ {self.names[j[k]]} {p_dd[i[k], j[k]]:.2f}" for k in order[:n_pairs]]
        n_all = self.n_variables * (self.n_variables - 1) // 2
        if not named:
            return ""
        if suspects_all(len(order), self.n_variables):
            said = f"{len(order)} of {n_all} pairs look as if one hidden factor moved most columns"
            return f"{said}: a doubt about their links, not a finding; strongest: {', '.join(named)}"
        are = "is" if len(order) == 1 else "are"
        said = f"{spell_count(len(order), 'pair')} {are} more likely than not to have a hidden common cause"
        return f"{said}: {name_some(named, len(order))}"

    def __repr__(self) -> str:
        p_dd = np.triu(self.probabilities[..., SKELETON], 1)
        i, j = np.unravel_index(int(p_dd.argmax()), p_dd.shape)
        strongest = f"; strongest: {self.names[i]} — {self.names[j]} {p_dd[i, j]:.2f}" if p_dd.size > 1 else ""
        rows = f", {self.spell_rows()}" if self.spell_rows() else ""
        mind = "".join(f"\n  ! {one_line(sentence)}" for sentence in self.warnings)
        return f"Result({self.n_variables} variables{rows}{one_line(strongest)}){mind}"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain lists, numbers and text, ready for JSON; the inverse is `from_dict`."""
        return {
            "format": "graphbam-result",
            "version": VERSION,
            "source": self.source,
            "names": list(self.names),
            "classes": list(CLASSES),
            "probabilities": self.probabilities.tolist(),
            "stability": None if self.stability is None else self.stability.tolist(),
            "arrow_stability": None if self.arrow_stability is None else self.arrow_stability.tolist(),
            "changes": list(self.changes),
            "warnings": list(self.warnings),
            "domain": _plain(self.domain),
            "knowledge": self.knowledge.to_dict() if self.knowledge else None,
            "provenance": _plain(self.provenance),
            "colliders": None if self.colliders is None else [list(row) for row in self.colliders.tolist()],
            **{name: None if (p_dd := getattr(self, name)) is None else p_dd.tolist() for name in ORDERED},
            "experiments": None if self.experiments is None else self.experiments.tolist(),
            "is_part": self.is_part,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Result:
        """Rebuild a result from `to_dict`, or from what graph.json holds; anything else is refused.

        Examples
        --------
        >>> Result.from_dict({"format": "graphbam-result", "version": 7})
        Traceback (most recent call last):
        graphbam.errors.ResultError: this result has version 7, and this graphbam reads version 1. Update graphbam.
        """
        with refuse_damage("this result"):
            kept = _read_fields(values, {f.name for f in dataclasses.fields(cls) if f.init} - set(ABOUT_ROWS))
            for key in ("changes", "warnings", "names"):
                kept[key] = tuple(map(str, kept.get(key, ())))
            for key in ("domain", "provenance"):
                kept[key] = dict(kept.get(key, {}))
            for key in ("stability", "arrow_stability", "experiments", *ORDERED):
                if kept.get(key) is not None:
                    kept[key] = np.array(kept[key])
            kept["knowledge"] = Knowledge.from_dict(kept["knowledge"]) if kept.get("knowledge") else None
            return cls(**kept)

    # ── questions ─────────────────────────────────────────────────────────────────────────────────────────

    def markov_blanket(
        self, name: str, cut: Cut | float | None = None, *, threshold: float | None = None, fdr: float | None = None
    ) -> MarkovBlanket:
        """The variables that tell all there is to tell about one: parents, children, other parents of its children.

        Parameters
        ----------
        name : str
            The variable.
        cut, threshold, fdr
            Choose the members, as in `moral_graph`.

        Returns
        -------
        MarkovBlanket
            `variables`, the members; `table`, how likely each variable is one, and as what; ``print`` it.
        """
        from graphbam.questions.blanket import find_blanket

        return find_blanket(self, name, Cut.read(cut, threshold=threshold, fdr=fdr))

    def why(self, a: str, b: str) -> Reasons:
        """What speaks for and against a direct link between two variables.

        Probabilities; correlations without others, given third variables and given all; which third variables explain
        it away; directions, hidden causes and stability where they are known.

        Returns
        -------
        Reasons
            ``print`` it, or show it in a notebook; `table`, `explained_by`, `plot`.

        Examples
        --------
        >>> p = np.full((2, 2, 3), [0.1, 0.9, 0.0])
        >>> print(Result(("dose", "effect"), p).why("dose", "effect"))
        dose and effect
          A direct link is likely (0.90); no link 0.10, no link but a common child 0.00.
          Correlations are not known: the result keeps no rows, or one of the two is constant.
          Directions were not asked for.
          This answer cannot say whether a hidden common cause is behind it.
        """
        from graphbam.questions.reasons import find_reasons

        return find_reasons(self, a, b)

    def effects(
        self, cut: Cut | float | None = None, *, threshold: float | None = None, fdr: float | None = None
    ) -> pd.DataFrame:
        """Signs and rough sizes of the links of `graph`, likeliest first.

        Sizes are linear, in standard deviations, and as right as the graph; rules in `graphbam.questions.sizes`.

        Returns
        -------
        DataFrame
            Columns a, edge (``->`` or ``--``), b; `skeleton`, the probability of a link; `size`; `low` and `high`, the
            limits of a rough 95 % interval; `sign`: "+", "−", "not monotone", "unclear" or, of text whose codes have
            none, "no order"; `given`, the variables held.

        Raises
        ------
        ResultError
            If the result keeps no rows, as after `load`.
        """
        from graphbam.questions.sizes import measure_links

        return measure_links(self, Cut.read(cut, threshold=threshold, fdr=fdr))

    def roles(
        self,
        treatment: str,
        outcome: str,
        cut: Cut | float | None = None,
        *,
        threshold: float | None = None,
        fdr: float | None = None,
        n_draws: int = 200,
        seed: int = 0,
    ) -> Roles:
        """What the other variables are to the effect of one variable on another, and what to adjust for.

        Parameters
        ----------
        treatment, outcome : str
            The effect of the first on the second is asked for.
        cut, threshold, fdr
            Choose the links of the DAG that adjustment sets are for, as in `dag`.
        n_draws, seed : int
            Number of DAGs that are drawn from the probabilities, and the seed; see `graphbam.questions.roles`.

        Returns
        -------
        Roles
            `table` with the probabilities of confounder, mediator, collider and instrument; `adjustment`, sets that
            close every back door of `graph`; `to_dowhy`; ``print`` it.

        Raises
        ------
        OrientationMissingError
            If nothing is known of directions.
        """
        from graphbam.questions.roles import find_roles

        check_whole("n_draws", n_draws, 1)
        check_whole("seed", seed, 0)
        chosen = Cut.read(cut, threshold=threshold, fdr=fdr)
        return find_roles(self, treatment, outcome, chosen, n_draws, np.random.default_rng(seed))

    def compare(
        self,
        other: Result,
        cut: Cut | float | None = None,
        *,
        threshold: float | None = None,
        fdr: float | None = None,
    ) -> Comparison:
        """Links and arrows shared with another result, lost (here only) and gained (there only); names decide.

        Parameters
        ----------
        other : Result
            Its variables may be others in part, and in another order.
        cut, threshold, fdr
            Choose the links of both, as in `graph`.
        """
        from graphbam.questions.comparison import compare_results

        return compare_results(self, other, Cut.read(cut, threshold=threshold, fdr=fdr))

    def score(
        self, truth: Any, cut: Cut | float | None = None, *, threshold: float | None = None, fdr: float | None = None
    ) -> Score:
        """How close the graph is to one that is known.

        Parameters
        ----------
        truth : Graph, adjacency matrix, DataFrame, networkx graph, list of edges or path
            Rules in `graphbam.questions.comparison.read_truth`.
        cut, threshold, fdr
            Choose the links, as in `graph`.
        """
        from graphbam.questions.comparison import score_result

        return score_result(self, truth, Cut.read(cut, threshold=threshold, fdr=fdr))

    # ── files and pictures ────────────────────────────────────────────────────────────────────────────────

    def save(
        self,
        folder: str | os.PathLike[str],
        cut: Cut | float | None = None,
        *,
        threshold: float | None = None,
        fdr: float | None = None,
    ) -> list[Path]:
        """Write everything into a folder, as the command line does; see `graphbam.output.files.save_outputs`."""
        from graphbam.output.files import save_outputs

        return save_outputs(self, folder, Cut.read(cut, threshold=threshold, fdr=fdr))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Result:
        """Read back what `save` wrote: the folder, or its graph.json.

        Everything comes back but the `sample`, so pictures and graphs are the same, and a report has no scatter plots.
        """
        path = Path(path)
        if path.is_dir() and (path / "result.json").exists() and not (path / "graph.json").exists():
            raise ResultError(f"{path} holds the answer for a wide table. Read it with gb.SparseResult.load.")
        path = path / "graph.json" if path.is_dir() else path
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ResultError(f"{path} cannot be read: {error.strerror}. Pass a folder that save() wrote.") from None
        except ValueError:
            raise ResultError(f"{path} is not JSON. Pass a folder that save() wrote, or its graph.json.") from None
        try:
            return cls.from_dict(values)
        except GraphbamError as error:
            raise ResultError(f"{path}: {error}") from None

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        cut: Cut | float | None = None,
        threshold: float | None = None,
        fdr: float | None = None,
        moral: bool = False,
        hidden: bool = False,
        title: str | None = None,
        ax: Axes | None = None,
    ) -> Figure:
        """Draw the graph; parameters are those of `graphbam.plot`. A notebook shows the figure it returns."""
        from graphbam.output.figures import plot

        return plot(self, path, cut=cut, threshold=threshold, fdr=fdr, moral=moral, hidden=hidden, title=title, ax=ax)

    def report(
        self,
        path: str | os.PathLike[str],
        cut: Cut | float | None = None,
        *,
        threshold: float | None = None,
        fdr: float | None = None,
    ) -> Path:
        """Write the report, one HTML file that works offline; see `graphbam.output.report.write_report`."""
        from graphbam.output.report import write_report

        return write_report(self, path, cut, threshold=threshold, fdr=fdr)

    def _repr_html_(self) -> str:
        from graphbam.output.report import render_card

        return render_card(self)


@dataclass(frozen=True)
class Failure:
    """A table of `infer_many` that could not be used, and why."""

    source: str
    error: GraphbamError

    @property
    def message(self) -> str:
        """The error in one sentence."""
        return str(self.error)

    def __bool__(self) -> bool:
        return False


def is_decided(arrow: npt.ArrayLike, is_open: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Whether an arrow is likely enough, beside an open link, to be drawn in a CPDAG that has room for it.

    Examples
    --------
    >>> is_decided([0.9, 0.5], [0.1, 0.4]).tolist()
    [True, False]
    """
    return np.asarray(arrow) >= (1 + CAUTION) * np.asarray(is_open)


def suspects_all(n_suspected: int, n_variables: int) -> bool:
    """Whether so many pairs with a hidden cause are doubt about the whole table rather than a finding."""
    return n_suspected > max(n_variables * (n_variables - 1) / 4, 3)


def suspect_children(result: Result) -> npt.NDArray[np.int64]:
    """Name the likeliest common child of every pair that may be moral.

    For a pair (i, j) it is the variable c with the largest p(i — c) · p(j — c), both skeleton probabilities, of those
    for which prior knowledge excludes neither i → c nor j → c.

    Returns
    -------
    ndarray of int, shape (D, D)
        Index of the child; −1 where the pair is hardly moral (`SUSPECT_FROM`) or no child is likely
        (`CHILD_FROM`).
    """
    p_dd3, forbidden = result.probabilities, result._forbidden()
    skeleton_dd = p_dd3[..., SKELETON] if forbidden is None else p_dd3[..., SKELETON] * ~forbidden
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


def _compare_links(names: Sequence[str], p_dd: Matrix, cut: Cut, adjacency: Adjacency) -> tuple[str, ...]:
    """Say which links of a graph differ from those of its cut, and why."""
    wanted, there = cut.links(p_dd), skeleton(adjacency) > 0
    reason = "since prior knowledge leaves them no direction that closes no cycle"
    if cut.objective == "shd":
        reason = "since the graph is expected to be nearer to the truth without them"
    notes = []
    for pairs, said in ((wanted & ~there, f"left out, {reason}"), (there & ~wanted, "drawn, for the sake of others")):
        i, j = np.nonzero(np.triu(pairs))
        order = np.argsort(-p_dd[i, j], kind="stable")
        named = [f"{names[i[k]]} — {names[j[k]]} ({p_dd[i[k], j[k]]:.2f})" for k in order[:MOST_NAMED]]
        notes += [f"{spell_count(len(order), 'link')} {said}: {name_some(named, len(order))}"] if named else []
    return tuple(notes)


@contextlib.contextmanager
def refuse_damage(what: str) -> Iterator[None]:
    """Say of a stored result that it is damaged, where it cannot be built from what is stored."""
    try:
        yield
    except GraphbamError:
        raise
    except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
        raise ResultError(
            f"{what} holds what none has ({error}). It was altered, or is damaged: infer it again."
        ) from None


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same array, read-only from now on."""
    array.setflags(write=False)
    return array


_ABOUT_RESULTS = {"format", "files", "version", "classes", "cut", "edges", "notes"}
"""What a stored result holds beside its fields."""


def _read_fields(values: Any, fields: set[str]) -> dict[str, Any]:
    """Fields of a stored result; raises where something is missing, unknown or of another version."""
    found = values.get("format") if isinstance(values, Mapping) else None
    if found != "graphbam-result":
        what = f"holds {found!r}" if found else "is no result of graphbam"
        raise ResultError(f"this {what}; a result has format 'graphbam-result'. Pass what to_dict() or save() gave.")
    if values.get("version") != VERSION:
        raise ResultError(
            f"this result has version {values.get('version')}, and this graphbam reads version {VERSION}. "
            "Update graphbam."
        )
    unknown = [key for key in values if key not in fields | _ABOUT_RESULTS]
    missing = [key for key in ("names", "probabilities") if key not in values]
    if unknown or missing:
        what = f"holds {unknown[0]!r}, which is unknown here" if unknown else f"lacks {missing[0]!r}"
        raise ResultError(f"this result {what}. It was altered, or written by another graphbam: infer it again.")
    if list(values.get("classes", CLASSES)) != list(CLASSES):
        raise ResultError(
            f"this result orders its classes {values['classes']}; {list(CLASSES)} is the only order known."
        )
    return {key: value for key, value in values.items() if key in fields}


def _link_line(link: Link) -> str:
    stable = f"  stable in {link.numbers['stability']:.0%}" if "stability" in link.numbers else ""
    forced = ", forced" if link.is_forced else ""
    sure = f"  (this way {link.numbers['forward']:.2f}{forced})" if link.is_directed else ""
    arrow = "→" if link.is_directed else "—"
    return f"  {link.numbers['skeleton']:.2f}  {link.a} {arrow} {link.b}{sure}{stable}"


def _moral_line(row: Mapping[Any, Any]) -> str:
    via = f"  (common child: {row['via']}?)" if row["via"] else ""
    return f"  {row['moral']:.2f}  {row['a']} ·· {row['b']}{via}"


def _plain(value: Any) -> Any:
    """Numpy numbers and tuples as JSON knows them."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return value.item() if isinstance(value, np.generic) else value
