"""The CPDAG to state, by all that the networks say.

Links come first, directions after: a `Cut` chooses the links, and of the CPDAGs that have exactly these the nearest is
looked for. A graph is judged by the structural Hamming distance to expect between it and the true CPDAG: the sum over
the pairs of the probability that the pair's edge is wrong in any way. With p for skeleton and `arrow` as in `arrows`
that is

    p                                          for no edge,
    1 − p · arrow[i, j]                        for i → j,
    1 − p · (1 − arrow[i, j] − arrow[j, i])    for i — j.

Where links are given, an arrow on a link that is open in truth may cost more: no data can tell its direction, and a
reader takes an arrow for something that data told. With a `caution` of c it costs c on top, so that an arrow is drawn
where it is c + 1 times as likely as none, unless it follows from others.

The arrows of a CPDAG cannot be taken back one by one: some follow from others, and a skeleton with long cycles has some
in any case. So an arrow may be drawn although its reverse, or none, is likelier; such arrows are *forced*.

>>> import numpy as np
>>> from graphbam.directions.arrows import arrow_probabilities
>>> p_dd3 = np.full((4, 4, 3), [0.9, 0.1, 0.0])
>>> p_dd3[2, :] = p_dd3[:, 2] = [0.1, 0.9, 0.0]
>>> p_dd3[0, 1] = p_dd3[1, 0] = [0.1, 0.0, 0.9]
>>> beliefs = Beliefs(p_dd3, [(0, 2, 1, 0.6), (0, 2, 3, 0.4), (1, 2, 3, 0.2)])
>>> arrow_dd = arrow_probabilities(beliefs)
>>> graph = nearest_cpdag(beliefs, arrow_dd, Cut())
>>> graph  # 0 → 2 ← 1, 2 → 3
array([[0, 0, 1, 0],
       [0, 0, 1, 0],
       [0, 0, 0, 1],
       [0, 0, 0, 0]], dtype=int8)
>>> arrow_dd[2, 3].round(2).tolist(), np.argwhere(forced_arrows(graph, arrow_dd)).tolist()
(0.29, [[2, 3]])
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from graphbam.directions.immoralities import Beliefs
from graphbam.errors import GraphError, KnowledgeError
from graphbam.graphs.cut import Cut
from graphbam.graphs.equivalence import close_under_meek, dag_to_cpdag
from graphbam.graphs.graph import (
    Adjacency,
    BoolMatrix,
    Indices,
    Matrix,
    ancestors,
    check_adjacency,
    directed_part,
    is_dag,
    topological_order,
    v_structures,
)

__all__ = [
    "Board",
    "Elimination",
    "choose_links",
    "direct_links",
    "expected_shd",
    "forced_arrows",
    "nearest_cpdag",
    "possible_links",
]

Triple: TypeAlias = tuple[int, int, int]

MOST_TRIES = 100
"""Number of other choices of immoralities that are looked at for given links."""

MOST_STRICTNESSES = 6
"""Number of thresholds on immoralities to begin with, beyond 0.5 and "none at all"."""

MOST_LEVELS = 16
"""Number of thresholds on links that the smallest distance over all links looks at."""

MOST_BURDENS = 16
"""Number of links not worth their cost that it tries to leave out one by one."""

SAME = 1e-9
"""Probabilities and distances closer than this count as equal."""


# ── what is expected of a graph ───────────────────────────────────────────────────────────────────────────


def expected_shd(graph: ArrayLike, p_dd: ArrayLike, arrow_dd: ArrayLike, caution: float = 0.0) -> float:
    """Structural Hamming distance to expect between a graph and the true CPDAG.

    Parameters
    ----------
    graph : array_like, shape (d, d)
        Any graph.
    p_dd : array_like, shape (d, d)
        Calibrated probability that i and j are adjacent.
    arrow_dd : array_like, shape (d, d)
        Probability of i → j given that i and j are adjacent; [i, j] and [j, i] sum to at most one.
    caution : float
        What an arrow on a link that is open in truth costs on top.

    Returns
    -------
    float
        Sum over the pairs of the probability that the pair's edge is wrong in any way.

    Examples
    --------
    >>> p_dd, arrow_dd = [[0, 0.75], [0.75, 0]], [[0, 0.5], [0, 0]]
    >>> [expected_shd(g, p_dd, arrow_dd) for g in ([[0, 0], [0, 0]], [[0, 1], [0, 0]], [[0, 1], [1, 0]])]
    [0.75, 0.625, 0.625]
    """
    edges, link_dd = check_adjacency(graph), np.asarray(p_dd, dtype=float)
    if edges.shape != link_dd.shape:
        raise GraphError(f"the graph has {len(edges)} variables, the probabilities {len(link_dd)}; give equal sizes.")
    return _distance(edges, link_dd, np.asarray(arrow_dd, dtype=float), caution)


def _distance(edges: BoolMatrix, p_dd: Matrix, arrow_dd: Matrix, caution: float = 0.0) -> float:
    return float(np.triu(_expected_cost(edges, p_dd, arrow_dd, caution), 1).sum())


def _expected_cost(edges: BoolMatrix, p_dd: Matrix, arrow_dd: Matrix, caution: float = 0.0) -> Matrix:
    """Probability, for each pair, that its edge is wrong, and `caution` times that of an arrow on an open link."""
    is_open = 1 - arrow_dd - arrow_dd.T
    right = np.where(edges & edges.T, is_open, np.where(edges, arrow_dd, arrow_dd.T) - caution * is_open)
    return np.asarray(np.where(edges | edges.T, 1 - p_dd * right, p_dd))


def forced_arrows(graph: ArrayLike, arrow_dd: Matrix) -> BoolMatrix:
    """Arrows that are drawn although their reverse, or no direction at all, is likelier.

    Examples
    --------
    >>> arrow_dd = np.array([[0, 0.3, 0.4], [0.33, 0, 0], [0.1, 0, 0]])
    >>> np.argwhere(forced_arrows([[0, 1, 1], [0, 0, 0], [0, 0, 0]], arrow_dd)).tolist()
    [[0, 1], [0, 2]]
    """
    otherwise_dd = np.maximum(arrow_dd.T, 1 - arrow_dd - arrow_dd.T)
    return np.asarray((directed_part(graph) > 0) & (arrow_dd < otherwise_dd - SAME))


# ── the choice ────────────────────────────────────────────────────────────────────────────────────────────


def nearest_cpdag(beliefs: Beliefs, arrow_dd: Matrix, cut: Cut, caution: float = 0.0) -> Adjacency:
    """The CPDAG expected to be nearest to the true one, among those with the links of a cut.

    Parameters
    ----------
    beliefs : Beliefs
        Links, immoralities, forbidden arrows.
    arrow_dd : ndarray, shape (d, d)
        From `graphbam.directions.arrows.arrow_probabilities`.
    cut : Cut
        Chooses the links; see `choose_links`. With the objective ``"shd"`` they are chosen for the smallest distance as
        well, so that some of those above 0.5 are left out.
    caution : float
        What an arrow on a link that is open in truth costs on top, for given links.

    Returns
    -------
    ndarray of int8, shape (d, d)
        A CPDAG; with forbidden arrows, a maximally directed graph.

    Raises
    ------
    KnowledgeError
        If certain links (probability 1) leave no DAG that avoids the forbidden arrows.

    Notes
    -----
    There are too many CPDAGs to look at all. The search begins with those that `direct_links` makes of several
    thresholds on immoralities. Then single immoralities are added or taken away, those first that have to do with the
    most doubtful links, as long as that helps: up to 100 of them. On four variables it misses the nearest in one case
    of 200.

    For ``"shd"``, skeletons of up to 16 levels of probability are looked at, spread over the distinct ones from 0.25
    on, with 0.5 added; at the best of them also stricter levels for immoralities; and then what comes out without
    links that cost more as they are marked than if they were absent: all of them, or those whose absence helps by
    itself. The graph of the certain links alone, mostly the empty graph, is one of the candidates, and by the same
    probabilities it is never worse than the empty graph. Hence neither is the result.

    Examples
    --------
    A link with probability 0.6 is drawn, but not with a direction of which little is known:

    >>> from graphbam.directions.arrows import arrow_probabilities
    >>> p_dd3 = np.full((3, 3, 3), [0.4, 0.6, 0.0])
    >>> p_dd3[0, 1] = p_dd3[1, 0] = [0.9, 0.0, 0.1]
    >>> beliefs = Beliefs(p_dd3, [(0, 2, 1, 0.1)])
    >>> nearest_cpdag(beliefs, arrow_probabilities(beliefs), Cut())
    array([[0, 0, 1],
           [0, 0, 1],
           [1, 1, 0]], dtype=int8)
    """
    if cut.objective == "shd":
        return _AnyLinks(beliefs, arrow_dd).nearest()
    return _GivenLinks(beliefs, arrow_dd, choose_links(beliefs, cut), caution).nearest()


def choose_links(beliefs: Beliefs, cut: Cut) -> BoolMatrix:
    """Links of a cut, without those that prior knowledge makes impossible.

    Where both directions of a link are forbidden, there is none. If the links with only one permitted direction close a
    cycle, the least likely of them is left out. What a stricter cut of the same kind keeps, a looser one keeps too.
    """
    return _possible(beliefs, cut.links(beliefs.p_dd))


def _possible(beliefs: Beliefs, links_dd: BoolMatrix) -> BoolMatrix:
    return possible_links(links_dd, beliefs.p_dd, beliefs.forbidden)


def possible_links(links_dd: BoolMatrix, p_dd: Matrix, forbidden_dd: BoolMatrix) -> BoolMatrix:
    """Links without those that forbidden arrows make impossible, as in `choose_links`; certain ones (1) stay."""
    return _break_cycles(links_dd & ~(forbidden_dd & forbidden_dd.T), p_dd, forbidden_dd)


def _strictnesses(beliefs: Beliefs) -> list[float]:
    """Thresholds on immoralities, from low to high; the last one accepts none."""
    p_n = beliefs.immoralities["probability"]
    return [0.5, *_spread(np.unique(p_n[p_n > 0.5]), MOST_STRICTNESSES), np.inf]


class _GivenLinks:
    """The CPDAGs with given links, and what is expected of them."""

    def __init__(self, beliefs: Beliefs, arrow_dd: Matrix, links_dd: BoolMatrix, caution: float) -> None:
        self.p_dd, self.arrow_dd, self.links_dd, self.caution = beliefs.p_dd, arrow_dd, links_dd, caution
        self.skeleton, self.strictnesses = _Skeleton(beliefs, links_dd), _strictnesses(beliefs)

    def nearest(self) -> Adjacency:
        """Begin with likely immoralities, then change one at a time."""
        best = min((self.skeleton.accept(accept) for accept in self.strictnesses), key=self.cost)
        tried: set[frozenset[Triple]] = set()
        while (other := self._nearer(best, tried)) is not None:
            best = other
        return best

    def cost(self, graph: Adjacency) -> float:
        return _distance(graph > 0, self.p_dd, self.arrow_dd, self.caution)

    def _nearer(self, graph: Adjacency, tried: set[frozenset[Triple]]) -> Adjacency | None:
        """The first nearer graph among those that differ by one immorality, if there is one."""
        limit = self.cost(graph) - SAME
        for triples in self._others(graph):
            if len(tried) >= MOST_TRIES:
                return None
            if triples in tried or not self.skeleton.allows(triples):
                continue
            tried.add(triples)
            other = self.skeleton.with_immoralities(triples)
            if self.cost(other) < limit:
                return other
        return None

    def _others(self, graph: Adjacency) -> Iterator[frozenset[Triple]]:
        """Other choices of immoralities: each one added or taken away, those at the most doubtful links first.

        Once as they are, and once without all that hold a doubtful arrow: one of those may be in the way.
        """
        now = frozenset((a, c, b) for a, c, b in v_structures(graph).tolist())
        doubt_dd = self._doubt(graph)
        if not doubt_dd.any():
            return
        doubtful = frozenset((a, c, b) for a, c, b in now if doubt_dd[a, c] or doubt_dd[b, c])
        yield now - doubtful
        for a, c, b in self._ranked(doubt_dd):
            if (a, c, b) in now:
                yield now - {(a, c, b)}
            else:
                against = {(x, y, z) for x, y, z in now if y in (a, b) and c in (x, z)}
                yield now - against | {(a, c, b)}
                yield now - against - doubtful | {(a, c, b)}

    def _doubt(self, graph: Adjacency) -> Matrix:
        """By how much each link would cost less with the likeliest mark; symmetric."""
        open_dd = 1 - self.arrow_dd - self.arrow_dd.T
        arrow_dd = np.maximum(self.arrow_dd, self.arrow_dd.T) - self.caution * open_dd
        best_dd = self.p_dd * np.maximum(arrow_dd, open_dd)
        doubt_dd = _expected_cost(graph > 0, self.p_dd, self.arrow_dd, self.caution) - (1 - best_dd)
        return np.where(self.links_dd & (doubt_dd > SAME), doubt_dd, 0.0)

    def _ranked(self, doubt_dd: Matrix) -> list[Triple]:
        """All possible immoralities, those with the most doubtful links first, then the likeliest."""
        board, ranked = self.skeleton.board, list[tuple[float, float, float, Triple]]()
        for c, nodes in enumerate(board.nodes):
            doubt_n, q_nn = doubt_dd[nodes, c].round(9), board.probability[c].round(9)
            for i, j in np.argwhere(np.triu(board.unshielded[c])).tolist():
                triple = (int(nodes[i]), c, int(nodes[j]))
                ranked.append((-max(doubt_n[i], doubt_n[j]), -max(doubt_n), -q_nn[i, j], triple))
        return [triple for *_, triple in sorted(ranked)]


class _AnyLinks:
    """The graphs that are looked at for the smallest distance whatever the links."""

    def __init__(self, beliefs: Beliefs, arrow_dd: Matrix) -> None:
        self.p_dd, self.beliefs, self.arrow_dd = beliefs.p_dd, beliefs, arrow_dd

    def graphs(self, adjacent: BoolMatrix, accepts: Sequence[float] = (0.5,)) -> list[Adjacency]:
        """One graph for each threshold on immoralities, with links of which the impossible are left out."""
        return direct_links(self.beliefs, _possible(self.beliefs, adjacent), accepts)

    def cost(self, graph: Adjacency) -> float:
        return _distance(graph > 0, self.p_dd, self.arrow_dd)

    def levels(self) -> list[float]:
        """Thresholds on edges, from low to high; the last one keeps only certain edges."""
        distinct = _spread(np.unique(self.p_dd[self.p_dd >= 0.25]), MOST_LEVELS)
        return sorted({0.5, *distinct, 1.0})

    def nearest(self) -> Adjacency:
        """Smallest expected distance: best level, then best strictness, then without what is not worth it."""
        best = min((graph for level in self.levels() for graph in self.graphs(self.p_dd >= level)), key=self.cost)
        best = min((best, *self.graphs((best | best.T) > 0, _strictnesses(self.beliefs))), key=self.cost)
        return self._without_burdens(best)

    def _without_burdens(self, best: Adjacency) -> Adjacency:
        """Leave out edges that cost more than their absence, as long as the whole gets better."""
        while self.cost(other := self._lighter(best)) < self.cost(best) - 1e-12:
            best = other
        return best

    def _lighter(self, graph: Adjacency) -> Adjacency:
        """Leave out all burdens; where that is no help, those that are one by one, or the best of these."""
        adjacent = (graph | graph.T) > 0
        excess_dd = np.triu(adjacent * (_expected_cost(graph > 0, self.p_dd, self.arrow_dd) - self.p_dd))
        burdens = np.argsort(-excess_dd, axis=None, kind="stable")[: int((excess_dd > 0).sum())]
        all_gone = self._without(adjacent, burdens)
        if self.cost(all_gone) < self.cost(graph):
            return all_gone
        one_gone = [self._without(adjacent, burdens[k : k + 1]) for k in range(min(len(burdens), MOST_BURDENS))]
        helps = [self.cost(other) < self.cost(graph) for other in one_gone]
        return min((all_gone, *one_gone, self._without(adjacent, burdens[: len(helps)][helps])), key=self.cost)

    def _without(self, adjacent: BoolMatrix, places: Indices) -> Adjacency:
        """Best graph without some edges, given by their places in the flattened matrix."""
        kept = adjacent.copy()
        kept.flat[places] = False
        return min(self.graphs(kept & kept.T, (0.5, np.inf)), key=self.cost)


def _spread(values: Matrix, most: int) -> list[float]:
    """Return all of the sorted values, or so many of them, evenly spread with both ends."""
    places = np.linspace(0, len(values) - 1, min(len(values), most)).round().astype(int)
    return [float(value) for value in values[places]]


def _break_cycles(adjacent: BoolMatrix, p_dd: Matrix, forbidden: BoolMatrix) -> BoolMatrix:
    """Leave out the least likely edges that known directions would make a cycle of."""
    arrows = adjacent & forbidden.T
    if is_dag(arrows):
        return adjacent
    i, j = np.nonzero(arrows & (p_dd < 1))
    kept = arrows & (p_dd >= 1)  # certain edges stay; if they close a cycle, `direct_links` says so
    if not is_dag(kept):
        return adjacent
    reaches = ancestors(kept)
    result = adjacent.copy()
    for k in np.lexsort((j, i, -p_dd[i, j])):
        if reaches[j[k], i[k]]:
            result[i[k], j[k]] = result[j[k], i[k]] = False
        else:
            reaches[reaches[:, i[k]]] |= reaches[j[k]]
    return result


# ── from links to a CPDAG ─────────────────────────────────────────────────────────────────────────────────


def direct_links(beliefs: Beliefs, adjacent: BoolMatrix, accepts: Sequence[float] = (0.5,)) -> list[Adjacency]:
    """Direct one skeleton, once for each threshold on immoralities: a CPDAG, whatever the beliefs.

    Immoralities may contradict each other, and mostly do. The way out is to build a DAG first and to complete it
    afterwards: the CPDAG of a DAG is always valid, and the beliefs only decide which DAG it is. Each immorality is
    worth its log-odds, log p/(1 − p).

    1. Immoralities at least as likely as the threshold are accepted from the likeliest down, each if its arrows close
       no cycle with those before it and if the v-structures it adds (with earlier arrows into the same child there may
       be several) are together no loss.
    2. The remaining links are directed into one sink after another, as `consistent_extension` does. Where no sink is
       free of new v-structures, the one whose new v-structures are worth most is taken.

    If some DAG has exactly the accepted immoralities, that DAG's CPDAG results. Ties are broken by index; otherwise the
    order of the variables does not matter.

    Parameters
    ----------
    beliefs : Beliefs
        If they forbid arrows, the result is the maximally directed graph: that CPDAG with the known directions added
        and closed under R1–R4, of which some DAG is a consistent extension.
    adjacent : ndarray of bool, shape (d, d)
        The links, symmetric.
    accepts : sequence of float
        The thresholds, ½ or more; infinite to accept none.

    Raises
    ------
    KnowledgeError
        If no DAG with these links avoids the forbidden arrows.

    Examples
    --------
    Two immoralities that cannot both hold, as they disagree on 1 — 2; the likelier one wins:

    >>> path = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]], dtype=bool)
    >>> p_dd3 = np.stack([~path, path, 0 * path], axis=-1)
    >>> direct_links(Beliefs(p_dd3, [(0, 1, 2, 0.9), (1, 2, 3, 0.7)]), path)[0]
    array([[0, 1, 0, 0],
           [0, 0, 0, 0],
           [0, 1, 0, 1],
           [0, 0, 1, 0]], dtype=int8)
    """
    skeleton = _Skeleton(beliefs, adjacent)
    return [skeleton.accept(accept) for accept in accepts]


class _Skeleton:
    """Links to be directed, those with a known direction among them."""

    def __init__(self, beliefs: Beliefs, adjacent: BoolMatrix) -> None:
        self.adjacent, self.board = adjacent, Board.of(adjacent, beliefs)
        self.known = _known_arrows(adjacent, beliefs.forbidden)

    def accept(self, accept: float) -> Adjacency:
        """The graph for a threshold on immoralities."""
        return self.with_immoralities(_accept(self.board, self.known, self.board.likely(accept)))

    def with_immoralities(self, triples: Iterable[Triple]) -> Adjacency:
        """The graph with these immoralities, and others where there has to be one."""
        dag = _eliminate(self.adjacent, self.board, self.board.parents(self.known, triples))
        return _complete(dag, self.known)

    def allows(self, triples: Iterable[Triple]) -> bool:
        """Whether the arrows of these immoralities go together, and with the known ones."""
        arrows = self.known.copy()
        for a, c, b in triples:
            arrows[[a, b], c] = True
        return is_dag(arrows)


def _known_arrows(adjacent: BoolMatrix, forbidden: BoolMatrix) -> BoolMatrix:
    """Edges of the skeleton with a single possible direction; refuse those without any, and cycles."""
    impossible = np.argwhere(adjacent & forbidden & forbidden.T)
    if len(impossible):
        i, j = impossible[0]
        raise KnowledgeError(f"{i} — {j} is an edge, but both of its directions are forbidden; remove or allow it.")
    arrows = adjacent & forbidden.T
    try:
        topological_order(arrows)
    except GraphError as error:
        raise KnowledgeError(f"the forbidden arrows leave no DAG with this skeleton. {error}") from None
    return arrows


def _complete(dag: BoolMatrix, known: BoolMatrix) -> Adjacency:
    cpdag = dag_to_cpdag(dag)
    return close_under_meek(cpdag & ~known.T) if (cpdag & known.T).any() else cpdag


class Board:
    """A skeleton, and around each variable c the v-structures it could be the child of.

    Parents of c are a vector of 0 and 1 over `nodes[c]`; a quadratic form then counts or values v-structures.
    One with the probability ½ is worth nothing, neither good nor bad.
    """

    def __init__(self, nodes: list[Indices], probability: list[Matrix], unshielded: list[Matrix]) -> None:
        self.nodes, self.probability, self.unshielded = nodes, probability, unshielded
        self.worth: list[Matrix] = [_log_odds(q) * u for q, u in zip(probability, unshielded, strict=True)]

    @classmethod
    def of(cls, adjacent: BoolMatrix, beliefs: Beliefs) -> Board:
        """The board of a skeleton that is a matrix."""
        nodes = [np.flatnonzero(row) for row in adjacent]
        probability = [beliefs.immoral_at(c, around) for c, around in enumerate(nodes)]
        return cls(nodes, probability, [_apart(adjacent, around) for around in nodes])

    def likely(self, accept: float) -> list[Triple]:
        """Triples (a, c, b) at least this likely, likeliest first."""
        found: list[tuple[float, Triple]] = []
        for c, nodes in enumerate(self.nodes):
            q_nn = self.probability[c]
            chosen = np.argwhere(np.triu((self.unshielded[c] > 0) & (q_nn >= accept))).tolist()
            found += [(-float(q_nn[i, j]), (int(nodes[i]), c, int(nodes[j]))) for i, j in chosen]
        return [triple for _, triple in sorted(found)]

    def parents(self, known: BoolMatrix, accepted: Iterable[Triple]) -> list[Matrix]:
        """Known and accepted arrows, as one vector of parents for each variable."""
        arrows = known.copy()
        for a, c, b in accepted:
            arrows[[a, b], c] = True
        return [arrows[nodes, c].astype(float) for c, nodes in enumerate(self.nodes)]

    def value(self, c: int, parents: Matrix) -> float:
        """Worth of all v-structures at c with these parents."""
        return float(parents @ self.worth[c] @ parents) / 2

    def count(self, c: int, parents: Matrix) -> float:
        """Number of v-structures at c with these parents."""
        return float(parents @ self.unshielded[c] @ parents) / 2


def _apart(adjacent: BoolMatrix, nodes: Indices) -> Matrix:
    apart: Matrix = 1.0 - adjacent[np.ix_(nodes, nodes)].astype(np.float64)
    np.fill_diagonal(apart, 0.0)
    return apart


def _log_odds(p: Matrix) -> Matrix:
    bounded = np.clip(p, 1e-3, 1 - 1e-3)  # nobody is surer than that: one must not outweigh all others
    result: Matrix = np.log(bounded / (1 - bounded))
    return result


def _eliminate(adjacent: BoolMatrix, board: Board, parents: list[Matrix]) -> BoolMatrix:
    """A DAG on the board with given arrows, and v-structures worth much."""
    order = Elimination(board, parents).order()
    rank = np.empty(len(order), dtype=int)
    rank[order] = np.arange(len(order))
    return adjacent & (rank[:, None] > rank)


def _accept(board: Board, known: BoolMatrix, triples: Iterable[Triple]) -> list[Triple]:
    """Choose the immoralities that go together with the known arrows and with likelier ones."""
    parents, reaches = board.parents(known, ()), ancestors(known)
    accepted = []
    for a, c, b in triples:
        if reaches[c, a] or reaches[c, b]:
            continue
        nodes = board.nodes[c]
        more = np.maximum(parents[c], (nodes == a) | (nodes == b))
        if board.value(c, more) >= board.value(c, parents[c]) - 1e-9:
            accepted.append((a, c, b))
            parents[c] = more
            reaches[reaches[:, a] | reaches[:, b]] |= reaches[c]
    return accepted


class Elimination:
    """Take sinks away, each with all its remaining edges pointing at it, until a whole DAG is told.

    A sink is *free* if that adds no v-structure to those of the given arrows. Once free, it stays so, and which
    free one goes first makes no difference to the v-structures: free ones go first, and if a DAG
    with just the given v-structures exists, there is always one [1]_. Else the one whose new v-structures are
    worth most has to go.

    .. [1] Dor and Tarsi; see `consistent_extension`.
    """

    def __init__(self, board: Board, parents: list[Matrix]) -> None:
        self.board, self.parents, self.left = board, parents, set(range(len(parents)))
        self._is_left = np.ones(len(parents))
        self._children_left = np.zeros(len(parents), dtype=int)
        for nodes, chosen in zip(board.nodes, parents, strict=True):
            self._children_left[nodes[chosen > 0]] += 1
        self._waiting = list(range(len(parents)))[::-1]
        self._gains: dict[int, float] = {}
        self._heap: list[tuple[float, int]] = []
        self._changed = set(range(len(parents)))

    def order(self) -> list[int]:
        """Take everything away; return it in that order, children before their parents."""
        order = []
        while self.left:
            sink = self._next_free()
            order.append(self._best() if sink is None else sink)
            self._remove(order[-1])
        return order

    def _around(self, node: int) -> Matrix:
        around: Matrix = self._is_left[self.board.nodes[node]]
        return around

    def _next_free(self) -> int | None:
        while self._waiting:
            node = self._waiting.pop()
            if node in self.left and not self._children_left[node] and self._is_free(node):
                return node
        return None

    def _is_free(self, node: int) -> bool:
        return self.board.count(node, self._around(node)) == self.board.count(node, self.parents[node])

    def _best(self) -> int:
        """The sink that gains most, the first of equal ones; only gains that may have changed are weighed anew."""
        for node in self._changed & self.left:
            if not self._children_left[node]:
                heapq.heappush(self._heap, (-self._gain(node), node))
        self._changed.clear()
        while True:
            loss, node = heapq.heappop(self._heap)
            if node in self.left and not self._children_left[node] and -loss == self._gain(node):
                return node

    def _gain(self, node: int) -> float:
        """Worth of the v-structures that `node` adds as a sink; remembered until a neighbour goes."""
        if node not in self._gains:
            gain = self.board.value(node, self._around(node)) - self.board.value(node, self.parents[node])
            self._gains[node] = round(gain, 9)  # so that ties are ties
        return self._gains[node]

    def _remove(self, sink: int) -> None:
        around = self.board.nodes[sink][self._around(sink) > 0]
        self.left.remove(sink)
        self._is_left[sink] = 0.0
        self._children_left[self.board.nodes[sink][self.parents[sink] > 0]] -= 1
        for node in around.tolist():
            self._gains.pop(node, None)
            self._waiting.append(node)
            self._changed.add(node)
