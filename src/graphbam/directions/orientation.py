"""From a skeleton to a CPDAG that is one, whatever the claims.

Claims may contradict each other, and mostly do. The way out is to build a DAG first and to complete it afterwards:

    accept colliders, likeliest first ▸ direct the rest, cheapest sink first ▸ DAG ▸ CPDAG

The CPDAG of a DAG is always valid; the claims only decide which DAG it is. Each v-structure is worth its log-odds,
log p/(1 − p), less those of `accept` where that is below ½.

1. Claims are accepted from the likeliest down, each if its arrows close no cycle with those before it and if the
   v-structures it adds (with earlier arrows into the same child there may be several) are together no loss.
2. The remaining edges are directed into one sink after another, as `graph.consistent_extension` does. Where no sink is
   free of new v-structures, the one whose new v-structures are worth most is taken.

If some DAG has exactly the accepted colliders, that DAG's CPDAG results. Ties are broken by index; otherwise the order
of the variables does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphbam.directions.arrows import derive_arrows
from graphbam.directions.immoralities import Beliefs, Forbidden, Indices, read_claims, read_forbidden
from graphbam.errors import ConfigError, GraphError, KnowledgeError
from graphbam.graphs.equivalence import close_under_meek, dag_to_cpdag
from graphbam.graphs.graph import BoolMatrix, Matrix, ancestors, skeleton, topological_order

__all__ = ["Orientation", "direct_edges", "orient"]

Triple: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Orientation:
    """A graph with directions, and how sure they are."""

    adjacency: NDArray[np.int8]
    """Shape (d, d), convention of `graphbam.graphs.graph`: a CPDAG, with knowledge a maximally directed graph."""
    arrow_probability_dd: Matrix
    """Shape (d, d): probability of i → j given that i and j are adjacent; see `graphbam.directions.arrows`."""


def orient(
    skeleton_dd: ArrayLike,
    colliders: Any = None,
    knowledge: Forbidden | None = None,
    accept: float = 0.5,
    unclaimed: float = 0.01,
) -> Orientation:
    """Direct a skeleton by collider claims.

    Parameters
    ----------
    skeleton_dd : array_like, shape (d, d)
        Any graph; its directions are ignored.
    colliders : iterable of (a, c, b, probability), optional
        Claims a → c ← b, as rows or as a structured array. Those that do not fit the skeleton are passed over:
        c must be adjacent to both and a not to b. Of several claims for one triple the largest counts.
    knowledge : array_like, shape (d, d), or function of (i, j), optional
        True where the arrow i → j is forbidden.
    accept : float
        Only claims at least this likely are accepted as such.
    unclaimed : float
        Probability that two variables that are not adjacent have a common child, where no claim says so.

    Returns
    -------
    Orientation
        A CPDAG. If knowledge directs more edges than that, the maximally directed graph: that CPDAG with the
        known directions added and closed under R1–R4, of which some DAG is a consistent extension. Where
        an edge has only one permitted direction, the result has it.

    Raises
    ------
    GraphError
        If a claim is malformed.
    KnowledgeError
        If no DAG with this skeleton avoids the forbidden arrows.

    Examples
    --------
    Two claims that cannot both hold, as they disagree on 1 — 2; the likelier one wins:

    >>> path = [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]]
    >>> orient(path, [(0, 1, 2, 0.9), (1, 2, 3, 0.7)]).adjacency
    array([[0, 1, 0, 0],
           [0, 0, 0, 0],
           [0, 1, 0, 1],
           [0, 0, 1, 0]], dtype=int8)
    """
    adjacent = skeleton(skeleton_dd).astype(bool)
    forbidden = read_forbidden(knowledge, len(adjacent))
    beliefs = _believe_skeleton(adjacent, colliders, unclaimed)
    (adjacency,) = direct_edges(adjacent, beliefs, forbidden, [accept])
    return Orientation(adjacency, derive_arrows(beliefs, forbidden))


def _believe_skeleton(adjacent: BoolMatrix, colliders: Any, unclaimed: float) -> Beliefs:
    if not 0 <= unclaimed <= 1:
        raise ConfigError(f"unclaimed={unclaimed} is not a probability; pass a number between 0 and 1.")
    moral_dd = np.where(adjacent, 0.0, unclaimed)
    np.fill_diagonal(moral_dd, 0.0)
    return Beliefs(adjacent.astype(float), moral_dd, read_claims(colliders, len(adjacent)))


def direct_edges(
    adjacent: BoolMatrix, beliefs: Beliefs, forbidden: BoolMatrix, accepts: Sequence[float]
) -> list[NDArray[np.int8]]:
    """Direct one skeleton, once for each threshold on colliders."""
    known = _known_arrows(adjacent, forbidden)
    board = _Board(adjacent, beliefs, even=min(0.5, *accepts))
    return [_complete(_find_dag(board, known, accept), known) for accept in accepts]


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


def _complete(dag: BoolMatrix, known: BoolMatrix) -> NDArray[np.int8]:
    cpdag = dag_to_cpdag(dag)
    return close_under_meek(cpdag & ~known.T) if (cpdag & known.T).any() else cpdag


class _Board:
    """A skeleton, and around each variable c the v-structures it could be the child of.

    Parents of c are a vector of 0 and 1 over `nodes[c]`; a quadratic form then counts or values v-structures.
    One with the probability `even` is worth nothing, neither good nor bad.
    """

    def __init__(self, adjacent: BoolMatrix, beliefs: Beliefs, even: float = 0.5) -> None:
        self.adjacent = adjacent
        self.nodes: list[Indices] = [np.flatnonzero(row) for row in adjacent]
        self.probability: list[Matrix] = [beliefs.colliders_at(c, nodes) for c, nodes in enumerate(self.nodes)]
        self.unshielded: list[Matrix] = [_apart(adjacent, nodes) for nodes in self.nodes]
        self.worth: list[Matrix] = [
            (_log_odds(q) - _log_odds(even)) * u for q, u in zip(self.probability, self.unshielded, strict=True)
        ]

    def claims(self, accept: float) -> list[Triple]:
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


def _log_odds(p: Matrix | float) -> Matrix:
    bounded = np.clip(p, 1e-3, 1 - 1e-3)  # nobody is surer than that: one claim must not outweigh all others
    result: Matrix = np.log(bounded / (1 - bounded))
    return result


def _find_dag(board: _Board, known: BoolMatrix, accept: float) -> BoolMatrix:
    """Find a DAG on the board with the known arrows, and v-structures worth much."""
    accepted = _accept(board, known, board.claims(accept))
    order = _Elimination(board, board.parents(known, accepted)).order()
    rank = np.empty(len(order), dtype=int)
    rank[order] = np.arange(len(order))
    return board.adjacent & (rank[:, None] > rank)


def _accept(board: _Board, known: BoolMatrix, claims: Iterable[Triple]) -> list[Triple]:
    """Choose the claims that go together with the known arrows and with stronger claims."""
    parents, reaches = board.parents(known, ()), ancestors(known)
    accepted = []
    for a, c, b in claims:
        if reaches[c, a] or reaches[c, b]:
            continue
        nodes = board.nodes[c]
        more = np.maximum(parents[c], (nodes == a) | (nodes == b))
        if board.value(c, more) >= board.value(c, parents[c]) - 1e-9:
            accepted.append((a, c, b))
            parents[c] = more
            reaches[reaches[:, a] | reaches[:, b]] |= reaches[c]
    return accepted


class _Elimination:
    """Take sinks away, each with all its remaining edges pointing at it, until a whole DAG is told.

    A sink is *free* if that adds no v-structure to those of the given arrows. Once free, it stays so, and which
    free one goes first makes no difference to the v-structures: free ones go first, and if a DAG
    with just the given v-structures exists, there is always one [1]_. Else the one whose new v-structures are
    worth most has to go.

    .. [1] Dor and Tarsi; see `graphbam.graphs.equivalence.consistent_extension`.
    """

    def __init__(self, board: _Board, parents: list[Matrix]) -> None:
        self.board, self.parents, self.left = board, parents, set(range(len(parents)))
        self._is_left = np.ones(len(parents))
        self._children_left = np.zeros(len(parents), dtype=int)
        for nodes, chosen in zip(board.nodes, parents, strict=True):
            self._children_left[nodes[chosen > 0]] += 1
        self._waiting = list(range(len(parents)))[::-1]
        self._gains: dict[int, float] = {}

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
        return max(sorted(n for n in self.left if not self._children_left[n]), key=self._gain)

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
