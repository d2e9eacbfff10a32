"""The answer for a wide table: a list of pairs instead of a matrix of all of them, and graphs as lists of edges.

Names are those of `Result`, and mean the same. What needs a matrix, a picture or the questions of `Result`, is asked of
a part: `SparseResult.around` a variable, or `SparseResult.part` of some variables, each a `Result`.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from graphbam.directions.arrows import (
    SUPPORT_FROM,
    claim_immoralities,
    raise_open,
    settle_arrows,
    settle_paths,
)
from graphbam.directions.cpdag import nearest_cpdag
from graphbam.directions.immoralities import Beliefs
from graphbam.directions.large import (
    FollowsInList,
    Links,
    Listed,
    Ways,
    break_cycles,
    connected_parts,
    imply_listed,
    large_cpdag,
    large_dag,
    lead_nowhere,
    lead_there,
)
from graphbam.errors import GraphError, OrientationMissingError, ResultError, name_some, spell_count
from graphbam.graphs.cut import EVEN, Cut
from graphbam.graphs.graph import MORAL, NONE, SKELETON, BoolMatrix, Graph, Indices, Vector, one_line
from graphbam.graphs.knowledge import Knowledge, leave_childless
from graphbam.result import (
    ABOUT_ROWS,
    CAUTION,
    CHILD_FROM,
    MOST_NAMED,
    SUSPECT_FROM,
    AnyResult,
    Result,
    is_decided,
    refuse_damage,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from graphbam.output.files import Link

VERSION = 1
"""Of the form of `SparseResult.save`."""

SMALL_PART = 200
"""Connected parts of a graph up to this size are directed as in `Result.cpdag`, larger ones by `directions.large`."""

SAME = 1e-12
"""Sums of probabilities that miss one by no more than this are one."""

BELIEFS = ("probabilities", "directions", "compelled", "hidden_causes", "ancestors", "stability")
"""Fields of a sparse result that are probabilities of pairs."""

ARROWS = ("compelled_probabilities", "_followed", "_said")
"""What a sparse result knows of arrows of the CPDAG."""

ARRAYS = ("pairs", *BELIEFS, "experiments")
"""Fields of a sparse result that are arrays over pairs."""


@dataclass(frozen=True, eq=False, repr=False)
class SparseGraph:
    """Variables with names, and a list of edges between them.

    Examples
    --------
    >>> graph = SparseGraph(("a", "b", "c"), np.array([0, 2]), np.array([1, 1]), np.array([True, False]))
    >>> graph
    Graph(3 variables: a → b, c — b)
    >>> graph.part(["a", "b"]).adjacency.tolist()
    [[0, 1], [0, 0]]
    """

    names: tuple[str, ...]
    tails: Indices
    """One end of each edge, by place in `names`: the cause, where it is directed …"""
    heads: Indices
    """… and the other."""
    is_directed: NDArray[np.bool_]
    numbers: dict[str, NDArray[Any]] = field(default_factory=dict)
    """What is known of each edge, by the names of `OrientedGraph.table`: `skeleton`, `forward`, `backward`, `forced`,
    `guessed`."""
    notes: tuple[str, ...] = ()
    """What to keep in mind about how it was directed."""

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self.names)

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return len(self.tails)

    def directed_edges(self) -> list[tuple[str, str]]:
        """List (cause, effect) for each directed edge."""
        return self._named(self.is_directed)

    def undirected_edges(self) -> list[tuple[str, str]]:
        """List each undirected edge once."""
        return self._named(~self.is_directed)

    def _named(self, chosen: NDArray[np.bool_]) -> list[tuple[str, str]]:
        ends = zip(self.tails[chosen].tolist(), self.heads[chosen].tolist(), strict=True)
        return [(self.names[a], self.names[b]) for a, b in ends]

    def ways(self) -> Ways:
        """A direction for each edge: 1 from the first of the two variables to the second, −1 back, 0 for none."""
        return np.where(self.is_directed, np.where(self.tails < self.heads, 1, -1), 0).astype(np.int8)

    def skeleton(self) -> SparseGraph:
        """Forget all directions."""
        ends = np.minimum(self.tails, self.heads), np.maximum(self.tails, self.heads)
        known = {name: values for name, values in self.numbers.items() if name == "skeleton"}
        return SparseGraph(self.names, *ends, np.zeros(self.n_edges, dtype=bool), known)

    def is_dag(self) -> bool:
        """Tell whether all edges are directed and none closes a cycle."""
        import networkx as nx

        if not self.is_directed.all():
            return False
        return not self.n_edges or nx.is_directed_acyclic_graph(self.to_networkx(by_name=False))

    def part(self, names: Iterable[str]) -> Graph:
        """The edges among some variables, as a graph with an adjacency matrix."""
        places = _find_places(self.names, names)
        where = {place: k for k, place in enumerate(places)}
        adjacency = np.zeros((len(places), len(places)), dtype=np.int8)
        for tail, head, is_arrow in zip(self.tails.tolist(), self.heads.tolist(), self.is_directed, strict=True):
            if tail in where and head in where:
                adjacency[where[tail], where[head]] = 1
                adjacency[where[head], where[tail]] |= not is_arrow
        return Graph(tuple(self.names[k] for k in places), adjacency)

    def table(self) -> pd.DataFrame:
        """One row per edge, arrows first, likeliest first; columns as in `OrientedGraph.table`."""
        import pandas as pd

        return pd.DataFrame(self.columns())

    def columns(self) -> dict[str, NDArray[Any]]:
        """The same, one array per column."""
        names = np.array(self.names, dtype=object)
        columns: dict[str, Any] = {
            "a": names[self.tails],
            "edge": np.where(self.is_directed, "->", "--").astype(object),
            "b": names[self.heads],
        }
        known = self.numbers
        if "forward" in known:
            is_right = np.where(self.is_directed, known["forward"], 1 - known["forward"] - known["backward"])
            columns["probability"] = known["skeleton"] * is_right
        columns |= known
        rank = columns.get("probability", known.get("skeleton", np.zeros(self.n_edges)))
        order = np.lexsort((-np.where(self.is_directed, rank, known.get("skeleton", rank)), ~self.is_directed))
        return {name: np.asarray(values)[order] for name, values in columns.items()}

    def links(self, cut: Cut | None = None) -> list[Link]:
        """The edges as `graphbam.output.files` writes them, likeliest first."""
        from graphbam.output.files import Link

        plain = {k: v.tolist() for k, v in self.numbers.items() if k in ("none", "skeleton", "moral", "stability")}
        ways = {k: self.numbers[k].tolist() for k in ("forward", "backward") if k in self.numbers}
        unknown = [None] * self.n_edges
        marks = [self.numbers[k].tolist() if k in self.numbers else unknown for k in ("forced", "guessed")]
        ends = zip(self.tails.tolist(), self.heads.tolist(), self.is_directed.tolist(), *marks, strict=True)
        links = [
            Link(self.names[a], self.names[b], is_arrow, {n: v[k] for n, v in (plain | ways).items()}, *marked)
            for k, (a, b, is_arrow, *marked) in enumerate(ends)
        ]
        return sorted(links, key=lambda link: -link.numbers.get("skeleton", 1.0))

    def to_networkx(self, by_name: bool = True) -> Any:
        """Convert to networkx, as `Graph.to_networkx`; nodes without an edge are there too."""
        import networkx as nx

        result = nx.DiGraph() if self.is_directed.any() else nx.Graph()
        result.add_nodes_from(self.names if by_name else range(self.n_variables))
        arcs = list(zip(self.tails.tolist(), self.heads.tolist(), strict=True))
        if result.is_directed():
            arcs += [(b, a) for (a, b), is_arrow in zip(arcs, self.is_directed, strict=True) if not is_arrow]
        result.add_edges_from(((self.names[a], self.names[b]) for a, b in arcs) if by_name else arcs)
        return result

    def __repr__(self) -> str:
        some = slice(0, 8)
        ends = zip(self.tails[some].tolist(), self.heads[some].tolist(), self.is_directed[some].tolist(), strict=True)
        edges = [f"{self.names[a]} {'→' if is_arrow else '—'} {self.names[b]}" for a, b, is_arrow in ends]
        edges += [f"… {self.n_edges - 8} more"] if self.n_edges > 8 else []
        return one_line(f"Graph({self.n_variables} variables: {', '.join(edges) or 'no edges'})")


@dataclass(frozen=True, eq=False, repr=False)
class SparseResult(AnyResult):
    """What is known of the pairs of a wide table, made by `graphbam.infer` beyond 2,000 columns.

    Examples
    --------
    >>> pairs, p = np.array([[0, 1], [1, 2]]), np.array([[0.1, 0.9, 0.0], [0.8, 0.2, 0.0]])
    >>> result = SparseResult(("a", "b", "c"), pairs, p, {"skeleton": 0.001})
    >>> result
    SparseResult(3 variables, 2 pairs; strongest: a — b 0.90; any other pair is a link with probability 1.0e-03)
    >>> result.skeleton()
    Graph(3 variables: a — b)
    >>> result.part(["a", "c"]).probabilities[0, 1].tolist()
    [0.999, 0.001, 0.0]
    """

    names: tuple[str, ...]
    """Names of the D variables."""
    pairs: Indices
    """Shape (N, 2): pairs i < j by place in `names`, in increasing order."""
    probabilities: Vector
    """Shape (N, 3): none · skeleton · moral of each; sums to one."""
    elsewhere: Mapping[str, float] = field(default_factory=dict)
    """What every pair that is not listed is believed to be: `skeleton`, the probability that the screen missed a link,
    `moral`, `hidden` and `ancestor`."""
    directions: Vector | None = None
    """Shape (N,): probability of i → j rather than j → i, given a link; None: not asked."""
    compelled: Vector | None = None
    """Shape (N, 2): that the CPDAG has i → j, and that it has j → i, given a link."""
    hidden_causes: Vector | None = None
    """Shape (N,): probability of a common cause outside the table."""
    ancestors: Vector | None = None
    """Shape (N, 2): of a path of arrows from i to j, and from j to i."""
    stability: Vector | None = None
    """Shape (N,): share of resamples in which the pair is a link."""
    constant: tuple[str, ...] = ()
    """Columns that do not vary, and have no links."""
    changes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    domain: Mapping[str, Any] = field(default_factory=dict)
    knowledge: Knowledge | None = None
    """Prior knowledge; its odds are already in `probabilities`, as `with_knowledge` puts them there."""
    source: str = ""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    sample: NDArray[Any] | None = None
    """Up to 1,000 rows of the table as the network saw it; not saved."""
    filled: NDArray[np.bool_] | None = None
    """Which cells of `sample` were missing and have been filled in; not saved."""
    was_set: NDArray[np.bool_] | None = None
    """Which cells of `sample` an experiment set; not saved."""
    experiments: NDArray[np.bool_] | None = None
    """Shape (N,): whether an experiment set one of the two without the other, so that data can tell which way a link
    points; None: nothing was set."""
    _decided: dict[tuple[str, Cut], SparseGraph] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        object.__setattr__(self, "pairs", np.asarray(self.pairs, dtype=np.int64).reshape(-1, 2))
        self._check_fields()
        self._sum_to_one()
        if self.knowledge:
            self._enforce(self.knowledge)
        if self.ancestors is not None:
            object.__setattr__(self, "ancestors", self._settle_ancestors(self.ancestors))

    def _check_fields(self) -> None:
        """Pairs of variables that there are, a probability for each in every field, yes or no of experiments."""
        if self.pairs.size and not (self.pairs.min() >= 0 and self.pairs.max() < self.n_variables):
            raise GraphError(f"pairs name variables by places beyond the {self.n_variables} that there are.")
        for name in (name for name in BELIEFS if getattr(self, name) is not None):
            values = np.array(getattr(self, name), dtype=np.float64)
            if len(values) != len(self.pairs) or not np.isfinite(values).all() or (values < 0).any():
                raise GraphError(f"{name} must hold a probability for each of the {len(self.pairs)} pairs.")
            object.__setattr__(self, name, values)
        if self.experiments is not None:
            apart = np.array(self.experiments, dtype=bool)
            if apart.shape != (len(self.pairs),):
                raise GraphError(f"experiments must say yes or no of each of the {len(self.pairs)} pairs.")
            object.__setattr__(self, "experiments", apart)

    def _sum_to_one(self) -> None:
        """Classes sum to one, arrows of the CPDAG to no more; what does already stays as it is to the last bit."""
        p = self.probabilities.reshape(-1, 3)
        total = p.sum(axis=1, keepdims=True)
        object.__setattr__(self, "probabilities", np.where(abs(total - 1) > SAME, p / total, p))
        if self.compelled is not None:
            total = self.compelled.sum(axis=1, keepdims=True)
            settled = np.where(total > 1 + SAME, self.compelled / np.maximum(total, 1.0), self.compelled)
            object.__setattr__(self, "compelled", settled)

    # ── prior knowledge ───────────────────────────────────────────────────────────────────────────────────

    def with_knowledge(self, knowledge: Knowledge | None) -> SparseResult:
        """The same answer with prior knowledge in it: odds are multiplied once, all else holds from now on.

        Examples
        --------
        >>> result = SparseResult(("a", "b"), np.array([[0, 1]]), np.array([[0.5, 0.5, 0.0]]))
        >>> result.with_knowledge(Knowledge(prior_odds=[("a", "b", 3.0)])).probabilities.tolist()
        [[0.25, 0.75, 0.0]]
        """
        if not knowledge:
            return self
        if self.knowledge:
            raise ResultError("this answer has prior knowledge in it already. Infer again with other knowledge.")
        knowledge.check_names(self.names)
        result = dataclasses.replace(self)
        result._list_pairs(knowledge.prior_odds)
        p = result.probabilities.copy()
        for k, (*_, odds) in zip(result._find_pairs(knowledge.prior_odds), knowledge.prior_odds, strict=True):
            p[k, SKELETON] *= odds
            p[k] /= p[k].sum()
        return dataclasses.replace(result, probabilities=p, knowledge=knowledge)

    def _enforce(self, known: Knowledge) -> None:
        """Hold what prior knowledge is certain of; doing it again changes nothing. Required pairs get listed."""
        known.check_names(self.names)
        required = [(edge.a, edge.b) for edge in known.required]
        self._list_pairs(required)
        p, forbidden = self.probabilities, self._forbidden
        excluded, required_n = forbidden.all(axis=1), self._find_pairs(required)
        for k in np.flatnonzero(excluded).tolist():
            rest = p[k, NONE] + p[k, MORAL]
            p[k] = [p[k, NONE] / rest, 0.0, p[k, MORAL] / rest] if rest else [1.0, 0.0, 0.0]
        p[required_n] = [0.0, 1.0, 0.0]
        if self.stability is not None:  # so it is in every resample
            self.stability[excluded], self.stability[required_n] = 0.0, 1.0
        alone = known.are_childless(self.names, *self.pairs.T)
        p[alone] = leave_childless(p[alone])
        least = None if self.compelled is None else self._enforce_compelled(self.compelled)
        if self.directions is not None:
            object.__setattr__(self, "directions", self._settle_directions(self.directions, least))

    def _enforce_compelled(self, compelled: Vector) -> Vector | None:
        """Arrows of the CPDAG with known ones in them; returns what these imply of directions, if they are of links."""
        forbidden, forced = self._forbidden, self._forced
        settled = np.where(forced, 1.0, np.where(forbidden, 0.0, compelled))
        followed = self._follow(settled, forbidden)
        if self.experiments is not None:
            followed = np.where(self.experiments[:, None], settled, followed)
        settled = np.where(forced | forbidden, settled, followed)
        object.__setattr__(self, "compelled", settled)
        if not (forbidden[:, ::-1] & ~forbidden)[self.probabilities[:, SKELETON] >= SUPPORT_FROM].any():
            return None
        return settled if self.experiments is None else np.where(self.experiments[:, None], 0.0, settled)

    def _follow(self, arrow: Vector, forbidden: NDArray[np.bool_]) -> Vector:
        """Arrows of the CPDAG, shape (N, 2), and what known ones imply of others, as in `Result`."""
        known = np.where(forbidden[:, ::-1] & ~forbidden, arrow, 0.0)
        least = imply_listed(self._likely, self._morals, arrow, known, forbidden, self.n_variables)
        return raise_open(arrow, arrow[:, ::-1], least)

    def _settle_directions(self, p: Vector, least: Vector | None = None) -> Vector:
        """Directions under knowledge, as `graphbam.directions.arrows.settle_directions` settles them."""
        forced, link = self._forced, self.probabilities[:, SKELETON]
        p = np.where(forced[:, 0], 1.0, np.where(forced[:, 1], 0.0, p))
        arrow = self._likely_arrows(p, least)[:, 0]
        changed = (arrow != link * p) & ~forced.any(axis=1)
        return np.clip(np.divide(arrow, link, out=p, where=changed), 0.0, 1.0)

    def _likely_arrows(self, directions: Vector, least: Vector | None = None) -> Vector:
        """Shape (N, 2): how likely i → j and j → i are, link and direction."""
        ways_n2, link_n1 = np.stack([directions, 1 - directions], axis=1), self.probabilities[:, SKELETON, None]
        return settle_arrows(link_n1, ways_n2, self._forced, self._follows, least)

    def _settle_ancestors(self, p_n2: Vector) -> Vector:
        """Paths as in `Result`, where of likely arrows those between the two themselves count."""
        arrow_n2 = np.zeros(p_n2.shape) if self._ways is None else self._likely_arrows(self._ways)
        if self.knowledge:
            certain_n2, p_n2 = self._find_paths(self.knowledge, p_n2)
            arrow_n2 = np.where(certain_n2, 1.0, arrow_n2)
        return settle_paths(p_n2, arrow_n2, self._follows)

    def _find_paths(self, known: Knowledge, p_n2: Vector) -> tuple[NDArray[np.bool_], Vector]:
        """Which paths known arrows make certain; and paths without those back or where permitted arrows make none."""
        arrows = [(self._place[a], self._place[b]) for a, b in known.arrows()]
        against: dict[int, set[int]] = {}
        for tail, head in [(b, a) for a, b in arrows] + [(self._place[e.a], self._place[e.b]) for e in known.forbidden]:
            against.setdefault(tail, set()).add(head)
        for a, b in ((self._place[e.a], self._place[e.b]) for e in known.forbidden if not e.is_directed):
            against.setdefault(b, set()).add(a)
        tier_of = np.array([known.tier_of.get(name, -1) for name in self.names])
        certain_n2, out_n2 = np.zeros(p_n2.shape, dtype=bool), self._after.copy()
        for way, (i, j) in enumerate((self.pairs.T, self.pairs.T[::-1])):
            certain_n2[:, way] = lead_there(i, j, arrows)
            asked = np.flatnonzero(self._forbidden[:, way] & ~self._after[:, way])
            out_n2[asked, way] = lead_nowhere(i[asked], j[asked], against, tier_of, known.within_tiers)
        return certain_n2, np.where(out_n2, 0.0, p_n2)

    @functools.cached_property
    def _place(self) -> dict[str, int]:
        """Where each variable is in `names`."""
        return {name: k for k, name in enumerate(self.names)}

    def _find_pairs(self, wanted: Iterable[Sequence[Any]]) -> Indices:
        """Where listed pairs (a, b, …) of names are in the list."""
        ends = [sorted((self._place[one[0]], self._place[one[1]])) for one in wanted]
        keys = np.array([i * self.n_variables + j for i, j in ends], dtype=np.int64)
        return np.searchsorted(self._keys, keys).astype(np.int64)

    @functools.cached_property
    def _keys(self) -> Indices:
        """A number for each pair, increasing."""
        return self.pairs[:, 0] * self.n_variables + self.pairs[:, 1]

    def _list_pairs(self, wanted: Iterable[Sequence[Any]]) -> None:
        """Add pairs that are not listed, with what is believed of pairs elsewhere."""
        ends = {tuple(sorted((self._place[one[0]], self._place[one[1]]))) for one in wanted}
        new = sorted(ends - set(map(tuple, self.pairs.tolist()))) if ends else []
        if not new:
            return
        pairs = np.concatenate([self.pairs, np.array(new, dtype=np.int64)])
        order = np.lexsort((pairs[:, 1], pairs[:, 0]))
        object.__setattr__(self, "pairs", pairs[order])
        self.__dict__.pop("_keys", None)
        for name, nothing in self._nothing().items():
            values = getattr(self, name)
            if values is not None:
                more = np.broadcast_to(np.asarray(nothing), (len(new), *values.shape[1:]))
                object.__setattr__(self, name, np.concatenate([values, more])[order])

    def _nothing(self) -> dict[str, Any]:
        """What is believed of a pair that is not listed, by field."""
        rest = {"skeleton": 0.0, "moral": 0.0, "hidden": 0.0, "ancestor": 0.0, **self.elsewhere}
        classes = [1 - rest["skeleton"] - rest["moral"], rest["skeleton"], rest["moral"]]
        ordered = {"directions": 0.5, "compelled": 0.0, "ancestors": rest["ancestor"]}
        plain = {"hidden_causes": rest["hidden"], "stability": 0.0, "experiments": False}
        return {"probabilities": classes, **plain, **ordered}

    @functools.cached_property
    def _forbidden(self) -> NDArray[np.bool_]:
        """Shape (N, 2): whether prior knowledge excludes i → j, and j → i."""
        return self._ask_knowledge(lambda known: known.forbids)

    @functools.cached_property
    def _after(self) -> NDArray[np.bool_]:
        """Shape (N, 2): whether prior knowledge puts i after j, and j after i."""
        return self._ask_knowledge(lambda known: known.puts_after)

    @functools.cached_property
    def _forced(self) -> NDArray[np.bool_]:
        """Shape (N, 2): whether a link can only be i → j, or j → i; where it is forbidden, by what comes after."""
        return ((self._forbidden & ~self._forbidden[:, ::-1]) | self._after)[:, ::-1]

    @functools.cached_property
    def _follows(self) -> FollowsInList:
        """What follows from known arrows."""
        arrows = self.knowledge.arrows() if self.knowledge else []
        i, j = self.pairs.T
        return FollowsInList(i, j, [(self._place[a], self._place[b]) for a, b in arrows], self.n_variables)

    def _ask_knowledge(self, question: Callable[[Knowledge], Callable[[str, str], bool]]) -> NDArray[np.bool_]:
        """Yes or no of each pair, both ways; no without knowledge."""
        if not self.knowledge:
            return np.zeros((len(self.pairs), 2), dtype=bool)
        ask, named = question(self.knowledge), ((self.names[i], self.names[j]) for i, j in self.pairs.tolist())
        return np.array([[ask(a, b), ask(b, a)] for a, b in named], dtype=bool).reshape(-1, 2)

    @functools.cached_property
    def _known(self) -> Ways:
        """Shape (N,): directions of links that prior knowledge or, as in `Result`, an experiment decides."""
        f, b = self._forbidden.T
        known = b.astype(np.int8) - f.astype(np.int8)
        if self.experiments is None or self.directions is None:
            return known
        p = self.probabilities[:, SKELETON]
        kept = self._possible(Cut(threshold=SUPPORT_FROM).choose(p), known)
        links = self._links(kept, self.directions[kept], 1 - self.directions[kept])
        decided = np.zeros(len(p), dtype=np.int8)
        decided[kept] = large_dag(links, self.n_variables, known[kept])  # of one DAG: they close no cycle
        return np.where(self.experiments & (known == 0), decided, known).astype(np.int8)

    def _possible(self, chosen: NDArray[np.bool_], known: Ways) -> NDArray[np.bool_]:
        """Chosen links without those that prior knowledge makes impossible, as `directions.cpdag.choose_links` does."""
        kept = chosen & ~self._forbidden.all(axis=1)
        nothing = np.zeros(int(kept.sum()))
        kept[kept] = break_cycles(self._links(kept, nothing, nothing), known[kept])
        return kept

    def _links(self, chosen: NDArray[np.bool_], forward: Vector, backward: Vector) -> Links:
        """Some of the pairs, with what is believed of their directions."""
        return Links(
            self.pairs[chosen, 0], self.pairs[chosen, 1], self.probabilities[chosen, SKELETON], forward, backward
        )

    @functools.cached_property
    def compelled_probabilities(self) -> Vector | None:
        """Shape (N, 2): that the graph has i → j, and j → i, given a link, as in `Result`."""
        said = self._said
        if said is None or self.directions is None:
            return said
        known = self._known
        return self._follow(said, self._forbidden | np.stack([known < 0, known > 0], axis=1))

    @functools.cached_property
    def _ways(self) -> Vector | None:
        """Shape (N,): `directions`, and what experiments imply of other links, as `Result.arrow_probabilities`."""
        said, followed = self._said, self.compelled_probabilities
        if self.experiments is None or self.directions is None or said is None or followed is None:
            return self.directions
        return self._settle_directions(self.directions, np.where(followed > said, followed, 0.0))

    @functools.cached_property
    def _followed(self) -> Vector | None:
        """`compelled`, and what experiments imply of other links: what it follows from may lie outside of a part."""
        if self.compelled is None or self.compelled_probabilities is None or self.experiments is None:
            return self.compelled
        return np.where(self.experiments[:, None], self.compelled, self.compelled_probabilities)

    @functools.cached_property
    def _said(self) -> Vector | None:
        """`compelled`, where an experiment set one of the two without the other `directions`."""
        if self.compelled is None or self.directions is None or self.experiments is None:
            return self.compelled
        ways = np.stack([self.directions, 1 - self.directions], axis=1)
        return np.where(self.experiments[:, None], ways, self.compelled)

    # ── parts ─────────────────────────────────────────────────────────────────────────────────────────────

    def part(self, names: Iterable[str]) -> Result:
        """The answer for some variables as a `Result`, with a matrix, pictures, reports and all questions."""
        places = _find_places(self.names, names)
        return self._part(np.array(places, dtype=np.int64))

    def _part(self, places: Indices) -> Result:
        """The answer for variables by place."""
        where = np.full(self.n_variables, -1)
        where[places] = np.arange(len(places))
        inside = np.flatnonzero((where[self.pairs] >= 0).all(axis=1))
        names = tuple(self.names[k] for k in places.tolist())
        fields = self._nothing()
        fields["_ways"], fields["_followed"] = fields.pop("directions"), fields.pop("compelled")
        values = self._matrices(places, where[self.pairs[inside]], inside, fields)
        return Result(
            names,
            changes=self.changes,
            warnings=(*self.warnings, f"{len(places)} of {self.n_variables} variables are shown"),
            domain=self.domain,
            knowledge=(self.knowledge.among(names) if self.knowledge else None) or None,
            source=self.source,
            provenance=self.provenance,
            sample=None if self.sample is None else self.sample[:, places],
            filled=None if self.filled is None else self.filled[:, places],
            was_set=None if self.was_set is None else self.was_set[:, places],
            is_part=True,
            directions=values.pop("_ways", None),
            compelled=values.pop("_followed", None),
            **values,
        )

    def _matrices(
        self, places: Indices, ends_n2: Indices, inside: Indices, fields: Mapping[str, Any]
    ) -> dict[str, NDArray[Any]]:
        """Fields as matrices over some variables; `inside` are the listed pairs among them, `ends_n2` where they are.

        `fields` says what to believe of pairs that are not listed.
        """
        (i, j), size = ends_n2.T, len(places)
        dead = np.flatnonzero([self.names[k] in self._constant for k in places.tolist()])
        values: dict[str, Any] = {}
        for name, nothing in fields.items():
            p_n = getattr(self, name)
            if p_n is None:
                continue
            p_n = p_n[inside]
            shape = (size, size, 3) if name == "probabilities" else (size, size)
            values[name] = matrix = np.array(np.broadcast_to(np.asarray(nothing), shape), dtype=p_n.dtype)
            if name != "_ways":
                matrix[dead] = matrix[:, dead] = [1.0, 0.0, 0.0] if name == "probabilities" else 0.0
            if name in ("_ways", "ancestors", *ARROWS):
                matrix[i, j], matrix[j, i] = (p_n, 1 - p_n) if p_n.ndim == 1 else p_n.T
            else:
                matrix[i, j] = matrix[j, i] = p_n
            if name in ("ancestors", "hidden_causes", *ARROWS):
                np.fill_diagonal(matrix, 0.0)
        return values

    @functools.cached_property
    def _constant(self) -> frozenset[str]:
        return frozenset(self.constant)

    def around(self, name: str, most: int = 40) -> Result:
        """The answer for a variable and those nearest to it, as a `Result`.

        Parameters
        ----------
        name : str
            The variable.
        most : int
            Number of variables: those most likely linked with it, then those linked with these.
        """
        (centre,) = _find_places(self.names, [name])
        chosen, edge = [centre], [centre]
        while edge and len(chosen) < most:
            ends, p = self._beside(edge)
            order = [k for k in ends[np.argsort(-p, kind="stable")].tolist() if k not in chosen]
            edge = list(dict.fromkeys(order))[: most - len(chosen)]
            chosen += edge
        return self._part(np.array(chosen, dtype=np.int64))

    def _beside(self, places: Sequence[int]) -> tuple[Indices, Vector]:
        """Variables that may be linked with some, and how likely."""
        p = self.probabilities[:, SKELETON]
        likely = p >= CHILD_FROM
        found = []
        for here, there in ((0, 1), (1, 0)):
            chosen = likely & np.isin(self.pairs[:, here], places)
            found.append((self.pairs[chosen, there], p[chosen]))
        return np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found])

    # ── graphs ────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def has_directions(self) -> bool:
        """Whether anything is known of directions."""
        return self.directions is not None and self.compelled is not None

    @property
    def expected_links(self) -> float:
        """How many links there are, as the probabilities have it: their sum over all pairs, listed or not.

        Constant columns have no links.
        """
        n_varying = self.n_variables - len(self.constant)
        n_others = n_varying * (n_varying - 1) // 2 - len(self.pairs)
        return float(self.probabilities[:, SKELETON].sum()) + n_others * self._nothing()["probabilities"][1]

    def skeleton(
        self, cut: Cut | float | None = None, *, threshold: float | None = None, fdr: float | None = None
    ) -> SparseGraph:
        """Direct links; parameters as in `Result.skeleton`."""
        p = self.probabilities[:, SKELETON]
        return self._undirected(Cut.read(cut, threshold=threshold, fdr=fdr).choose(p))

    def moral_graph(
        self, cut: Cut | float | None = None, *, threshold: float | None = None, fdr: float | None = None
    ) -> SparseGraph:
        """Direct links and parents of a common child; parameters as in `Result.moral_graph`."""
        p = self.probabilities[:, SKELETON] + self.probabilities[:, MORAL]
        return self._undirected(Cut.read(cut, threshold=threshold, fdr=fdr).choose(p))

    def moral_pairs(
        self, cut: Cut | float | None = None, *, threshold: float | None = None, fdr: float | None = None
    ) -> SparseGraph:
        """Pairs linked through a common child only; parameters as in `Result.moral_pairs`."""
        linked = Cut.read(cut, threshold=threshold, fdr=fdr).choose(self.probabilities[:, SKELETON])
        return self._undirected((self.probabilities[:, MORAL] >= EVEN) & ~linked)

    def _undirected(self, chosen: NDArray[np.bool_]) -> SparseGraph:
        i, j = self.pairs[chosen].T
        known = {"skeleton": SKELETON, "moral": MORAL, "none": NONE}
        numbers = {name: self.probabilities[chosen, k] for name, k in known.items()}
        numbers |= {} if self.stability is None else {"stability": self.stability[chosen]}
        return SparseGraph(self.names, i, j, np.zeros(len(i), dtype=bool), numbers)

    def graph(
        self, cut: Cut | float | None = None, *, threshold: float | None = None, fdr: float | None = None
    ) -> SparseGraph:
        """`cpdag` where directions are known, else `skeleton`."""
        choose = self.cpdag if self.has_directions else self.skeleton
        return choose(cut, threshold=threshold, fdr=fdr)

    def cpdag(
        self,
        cut: Cut | float | None = None,
        *,
        threshold: float | None = None,
        fdr: float | None = None,
        objective: str = "links",
    ) -> SparseGraph:
        """The links of `skeleton`, directed as far as the data and prior knowledge decide; see `Result.cpdag`.

        A link whose known direction would close a cycle is left out. Connected parts of up to 200 variables are decided
        as there, larger ones by the lighter rules of `graphbam.directions.large`; `SparseGraph.notes` says so.
        """
        return self._decide("cpdag", Cut.read(cut, threshold=threshold, fdr=fdr), objective)

    def dag(
        self,
        cut: Cut | float | None = None,
        *,
        threshold: float | None = None,
        fdr: float | None = None,
        objective: str = "links",
    ) -> SparseGraph:
        """`cpdag` with a direction for every link, without a cycle; see `Result.dag`."""
        return self._decide("dag", Cut.read(cut, threshold=threshold, fdr=fdr), objective)

    def _decide(self, kind: str, cut: Cut, objective: str) -> SparseGraph:
        """Choose links and directions; remembered."""
        if objective != "links" or cut.objective != "links":
            raise GraphError("of a sparse result every link of the cut is drawn: leave objective out, or ask a part().")
        if (kind, cut) not in self._decided:
            self._decided[kind, cut] = self._direct(kind, cut)
        return self._decided[kind, cut]

    def _direct(self, kind: str, cut: Cut) -> SparseGraph:
        compelled, ways = self.compelled_probabilities, self._ways
        if ways is None or compelled is None:
            raise OrientationMissingError(
                "this result has no directions: the weights give none, or nobody asked. Use skeleton()."
            )
        p = self.probabilities[:, SKELETON]
        chosen = cut.choose(p)
        kept = self._possible(chosen, self._known)
        forward, backward = compelled[kept].T if kind == "cpdag" else (ways[kept], 1 - ways[kept])
        links = self._links(kept, forward, backward)
        notes = self._note_left_out(np.flatnonzero(chosen & ~kept))
        decided = None
        if kind == "dag":
            drawn = self._decide("cpdag", cut, "links").ways()  # of the same links
            code = large_dag(links, self.n_variables, drawn)
            said = np.where(code > 0, *compelled[kept].T)
            decided = (drawn != 0) | is_decided(said, 1 - compelled[kept].sum(axis=1))
        else:
            code, about = self._direct_parts(links, self._known[kept], _between(p, chosen))
            notes += about
        graph = self._oriented(links, code, notes, decided)
        known = {} if self.stability is None else {"stability": self.stability[kept]}
        return dataclasses.replace(graph, numbers=graph.numbers | known)

    def _note_left_out(self, pairs: Indices) -> tuple[str, ...]:
        """Name links of a cut that are not drawn, as `Result` does."""
        if not len(pairs):
            return ()
        p = self.probabilities[:, SKELETON]
        likeliest = pairs[np.argsort(-p[pairs], kind="stable")][:MOST_NAMED].tolist()
        named = [" — ".join(self.names[end] for end in self.pairs[k].tolist()) + f" ({p[k]:.2f})" for k in likeliest]
        reason = "since prior knowledge leaves them no direction that closes no cycle"
        return (f"{spell_count(len(pairs), 'link')} left out, {reason}: {name_some(named, len(pairs))}",)

    def _direct_parts(self, links: Links, known: Ways, threshold: float) -> tuple[Ways, tuple[str, ...]]:
        """Directions of a CPDAG, connected part by part."""
        code = known.copy()  # all there is to say of two variables that are linked with no others
        part_of = connected_parts(links.i, links.j, self.n_variables)
        sizes = np.bincount(part_of, minlength=self.n_variables)
        size_of = sizes[part_of[links.i]]
        members_of, links_of = _Groups(part_of), _Groups(part_of[links.i])
        one, other = part_of[self.pairs].T
        pairs_of = _Groups(np.where(one == other, one, -1))
        for root in np.flatnonzero((sizes > 2) & (sizes <= SMALL_PART)).tolist():
            members, inside = members_of[root], links_of[root]
            adjacency = self._nearest(members, pairs_of[root], threshold)
            i, j = np.searchsorted(members, links.i[inside]), np.searchsorted(members, links.j[inside])
            code[inside] = adjacency[i, j] - adjacency[j, i]
        is_large = size_of > SMALL_PART
        if is_large.any():
            code[is_large] = large_cpdag(links.keep(is_large), self._morals, self.n_variables, known[is_large])
        large = sizes[sizes > SMALL_PART]
        about = f"links of parts with more than {SMALL_PART} variables (the largest has {large.max(initial=0)})"
        return code, (f"{about} were directed without trying single immoralities anew",) if len(large) else ()

    def _nearest(self, members: Indices, inside: Indices, threshold: float) -> NDArray[np.int8]:
        """The CPDAG of a connected part as `Result.cpdag` finds it; `inside` are the listed pairs of the part."""
        ends_n2 = np.searchsorted(members, self.pairs[inside])
        fields = {"probabilities": self._nothing()["probabilities"], "compelled_probabilities": 0.0, "_said": 0.0}
        values = self._matrices(members, ends_n2, inside, fields)
        p_dd3, arrow_dd = values["probabilities"], values["compelled_probabilities"]
        p_dd3[np.arange(len(members)), np.arange(len(members))] = [1.0, 0.0, 0.0]
        known, (i, j) = self._known[inside], ends_n2.T
        forbidden_dd: BoolMatrix = np.zeros(arrow_dd.shape, dtype=bool)
        forbidden_dd[i, j], forbidden_dd[j, i] = (self._forbidden[inside] | np.stack([known < 0, known > 0], axis=1)).T
        beliefs = Beliefs(p_dd3, claim_immoralities(p_dd3, values["_said"]), forbidden_dd)
        return nearest_cpdag(beliefs, arrow_dd, Cut(threshold=threshold), CAUTION)

    @property
    def _likely(self) -> Listed:
        """How likely pairs are linked."""
        return Listed(self._keys, self.probabilities[:, SKELETON], self._nothing()["probabilities"][1])

    @property
    def _morals(self) -> Listed:
        """How likely pairs have a common child if they are not."""
        p = np.append(self.probabilities, [self._nothing()["probabilities"]], axis=0)
        moral = np.minimum(p[:, MORAL] / np.maximum(1 - p[:, SKELETON], 1e-9), 1.0)
        return Listed(self._keys, moral[:-1], float(moral[-1]))

    def _oriented(
        self, links: Links, code: NDArray[np.int8], notes: tuple[str, ...], decided: NDArray[np.bool_] | None
    ) -> SparseGraph:
        """A graph with what is known of each edge, read from its tail; `decided`: see `OrientedGraph`."""
        turned = code < 0
        tails, heads = np.where(turned, links.j, links.i), np.where(turned, links.i, links.j)
        forward = np.where(turned, links.backward, links.forward)
        backward = np.where(turned, links.forward, links.backward)
        otherwise = np.maximum(backward, 1 - forward - backward)
        numbers = {"skeleton": links.p, "forward": forward, "backward": backward}
        numbers["forced"] = (code != 0) & (forward < otherwise - 1e-9)
        numbers |= {} if decided is None else {"guessed": ~decided}
        return SparseGraph(self.names, tails, heads, code != 0, numbers, notes)

    # ── tables and text ───────────────────────────────────────────────────────────────────────────────────

    def table(self) -> pd.DataFrame:
        """One row per listed pair, likeliest direct links first; columns as in `Result.table`."""
        import pandas as pd

        return pd.DataFrame(self.columns())

    def columns(self) -> dict[str, NDArray[Any]]:
        """The same, one array per column."""
        i, j = self.pairs.T
        names, p = np.array(self.names, dtype=object), self.probabilities
        columns: dict[str, Any] = {"a": names[i], "b": names[j]}
        columns |= {"skeleton": p[:, SKELETON], "moral": p[:, MORAL], "none": p[:, NONE]}
        columns |= {} if self.stability is None else {"stability": self.stability}
        if self._ways is not None:
            columns |= {"forward": self._ways, "backward": 1 - self._ways}
        if self.compelled_probabilities is not None:
            columns["open"] = np.clip(1 - self.compelled_probabilities.sum(axis=1), 0.0, 1.0)
        columns |= {} if self.hidden_causes is None else {"hidden": self.hidden_causes}
        if self.ancestors is not None:
            columns |= {"upstream": self.ancestors[:, 0], "downstream": self.ancestors[:, 1]}
        columns["via"] = np.array(self._suspect_children(), dtype=object)
        ranked = np.lexsort((-p[:, MORAL], -p[:, SKELETON]))
        return {name: values[ranked] for name, values in columns.items()}

    def _suspect_children(self) -> list[str]:
        """The likeliest common child of each pair that may be moral, as in `graphbam.result.suspect_children`."""
        beside: dict[int, dict[int, float]] = {}
        p = self.probabilities
        likely = p[:, SKELETON] >= CHILD_FROM
        arrows_n2 = p[likely, SKELETON, None] * ~self._forbidden[likely]
        for (i, j), (forward, backward) in zip(self.pairs[likely].tolist(), arrows_n2.tolist(), strict=True):
            beside.setdefault(i, {})[j] = forward
            beside.setdefault(j, {})[i] = backward
        via = [""] * len(self.pairs)
        for k in np.flatnonzero(p[:, MORAL] >= SUSPECT_FROM).tolist():
            one, other = (beside.get(end, {}) for end in self.pairs[k].tolist())
            shared = {c: one[c] * other[c] for c in one.keys() & other.keys()}
            best = max(shared, key=lambda c: (shared[c], -c), default=None)
            via[k] = self.names[best] if best is not None and shared[best] >= CHILD_FROM else ""
        return via

    def say_hidden(self, n_pairs: int = MOST_NAMED) -> str:
        """Name the listed pairs behind which there is rather something hidden than not; nothing if there are none."""
        if self.hidden_causes is None:
            return ""
        likely = np.flatnonzero(self.hidden_causes >= EVEN)
        order = likely[np.argsort(-self.hidden_causes[likely], kind="stable")]
        suspected = ((*self.pairs[k].tolist(), self.hidden_causes[k]) for k in order[:n_pairs])
        named = [f"{self.names[i]} ↔ {self.names[j]} {p:.2f}" for i, j, p in suspected]
        return (
            f"pairs more likely than not to have a hidden common cause: {name_some(named, len(order))}" if named else ""
        )

    def links(self, cut: Cut | None = None) -> list[Link]:
        """The edges of `graph`, as files list them."""
        return self.graph(cut).links()

    def __repr__(self) -> str:
        p = self.probabilities[:, SKELETON]
        strongest = ""
        if len(p):
            i, j = self.pairs[p.argmax()].tolist()
            strongest = f"; strongest: {self.names[i]} — {self.names[j]} {p.max():.2f}"
        rows = f", {self.spell_rows()}" if self.spell_rows() else ""
        missed = f"; any other pair is a link with probability {self._nothing()['probabilities'][1]:.1e}"
        mind = "".join(f"\n  ! {one_line(sentence)}" for sentence in self.warnings)
        return one_line(f"SparseResult({self.n_variables} variables{rows}, {len(p)} pairs{strongest}{missed})") + mind

    if not TYPE_CHECKING:  # a checker would take it for a promise that everything is there

        def __getattr__(self, name: str) -> Any:
            """Say where the questions of `Result` are to be asked."""
            if name.startswith("_") or not hasattr(Result, name):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            raise AttributeError(
                f"the answer for a wide table is a list of pairs, and has no {name}. Ask a part of it: "
                f"result.around({self.names[0]!r}).{name}, or result.part([...]).{name}"
            )

    # ── files and pictures ────────────────────────────────────────────────────────────────────────────────

    def save(
        self,
        folder: str | os.PathLike[str],
        cut: Cut | float | None = None,
        *,
        threshold: float | None = None,
        fdr: float | None = None,
    ) -> list[Path]:
        """Write everything into a folder; see `graphbam.output.wide.save_sparse`."""
        from graphbam.output.wide import save_sparse

        return save_sparse(self, folder, Cut.read(cut, threshold=threshold, fdr=fdr))

    def to_dict(self) -> dict[str, Any]:
        """All but the arrays, ready for JSON."""
        plain = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.init}
        for name in (*ARRAYS, *ABOUT_ROWS):
            plain.pop(name)
        plain["knowledge"] = self.knowledge.to_dict() if self.knowledge else None
        return {"format": "graphbam-sparse-result", "version": VERSION, **plain}

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> SparseResult:
        """Read back what `save` wrote; everything comes back but the `sample`."""
        folder = Path(folder)
        try:
            values = json.loads((folder / "result.json").read_text(encoding="utf-8"))
            with np.load(folder / "pairs.npz") as file:
                arrays = {name: file[name] for name in file.files}
        except (OSError, ValueError, EOFError, BadZipFile) as error:
            raise ResultError(f"{folder} holds no sparse result: {error}. Pass a folder that save() wrote.") from None
        with refuse_damage(str(folder)):
            if values.pop("format", None) != "graphbam-sparse-result" or values.pop("version", None) != VERSION:
                raise ResultError(
                    f"{folder} holds a result of another kind or version. Update graphbam, or infer again."
                )
            values.pop("files", None)
            for key in ("names", "changes", "warnings", "constant"):
                values[key] = tuple(map(str, values[key]))
            values["knowledge"] = Knowledge.from_dict(values["knowledge"]) if values["knowledge"] else None
            return cls(**values, **arrays)

    def plot(
        self, path: str | os.PathLike[str] | None = None, *, around: str, most: int = 40, **options: Any
    ) -> Figure:
        """Draw the graph around a variable; options are those of `Result.plot`."""
        return self.around(around, most).plot(path, **options)

    def report(
        self,
        path: str | os.PathLike[str],
        cut: Cut | float | None = None,
        *,
        around: str | None = None,
        most: int = 40,
        threshold: float | None = None,
        fdr: float | None = None,
    ) -> Path:
        """Write one HTML file that works offline: all links, to be searched, one neighbourhood at a time.

        With `around`, the full report of the part around a variable instead, as `Result.report` writes it.
        """
        chosen = Cut.read(cut, threshold=threshold, fdr=fdr)
        if around is not None:
            return self.around(around, most).report(path, chosen)
        from graphbam.output.wide import write_page

        return write_page(self, path, chosen)


class _Groups:
    """Places of equal numbers, found once for all of them.

    Examples
    --------
    >>> _Groups(np.array([3, 1, 3]))[3].tolist()
    [0, 2]
    """

    def __init__(self, numbers: Indices) -> None:
        self.order = np.argsort(numbers, kind="stable")
        self.sorted = numbers[self.order]

    def __getitem__(self, number: int) -> Indices:
        start, end = np.searchsorted(self.sorted, [number, number + 1])
        return self.order[start:end]


def _find_places(names: Sequence[str], wanted: Iterable[str]) -> list[int]:
    """Where variables are; unknown ones are refused."""
    from difflib import get_close_matches

    place = {name: k for k, name in enumerate(names)}
    wanted = [wanted] if isinstance(wanted, str) else [str(name) for name in wanted]  # columns may be called by numbers
    for name in wanted:
        if name not in place:
            near = get_close_matches(name, names, n=1)
            raise ResultError(f"there is no variable {name!r}" + (f"; did you mean {near[0]!r}?" if near else "."))
    return [place[name] for name in dict.fromkeys(wanted)]


def _between(p: Vector, chosen: NDArray[np.bool_]) -> float:
    """A threshold between the pairs that were chosen and those that were not."""
    low = float(p[~chosen].max(initial=0.0))
    high = float(p[chosen].min(initial=1.0))
    return max((low + high) / 2, 1e-9)
