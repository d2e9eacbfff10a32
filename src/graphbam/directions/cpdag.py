"""Decisions: which graph with directions to state, by all that the networks say.

    p_dd3 ── find_questions ──▸ collider network ──▸ claims
      │                                                │
      └──────────────────── decide ────────────────────┘      choose a skeleton, direct its edges

A graph is judged by the structural Hamming distance to expect between it and the true CPDAG: the sum over the pairs of
the probability that the pair's edge is wrong in any way. With p for skeleton and `arrow` as in `arrows` that is

    p                                          for no edge,
    1 − p · arrow[i, j]                        for i → j,
    1 − p · (1 − arrow[i, j] − arrow[j, i])    for i — j.

Intended use, with `collider_net` as the second network:

>>> import numpy as np
>>> from graphbam.directions.questions import claim_table, find_questions
>>> def collider_net(asked):  # one probability for each candidate
...     return [np.full(len(one.candidates), 0.9) for one in asked]
>>> p_dd3 = np.full((3, 3, 3), [0.1, 0.9, 0.0])
>>> p_dd3[0, 1] = p_dd3[1, 0] = [0.1, 0.0, 0.9]
>>> asked = find_questions(p_dd3)
>>> decided = decide(p_dd3, claim_table(asked, collider_net(asked)))
>>> decided.adjacency  # 0 → 2 ← 1
array([[0, 0, 1],
       [0, 0, 1],
       [0, 0, 0]], dtype=int8)
>>> float(decided.arrow_probability_dd[0, 2])
0.9
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphbam.directions.arrows import SUPPORT_FROM, derive_arrows
from graphbam.directions.immoralities import (
    Beliefs,
    Forbidden,
    Indices,
    read_beliefs,
    read_forbidden,
    read_probabilities,
)
from graphbam.directions.orientation import Orientation, direct_edges
from graphbam.errors import GraphError
from graphbam.graphs.cut import Cut
from graphbam.graphs.graph import SKELETON, BoolMatrix, Matrix, ancestors, check_adjacency, is_dag

__all__ = ["decide", "expected_shd"]

MOST_LEVELS = 16
"""Number of thresholds on edges that `decide` looks at …"""

MOST_STRICTNESSES = 6
"""… and on colliders, beyond 0.5 and "none at all"."""

MOST_BURDENS = 16
"""Number of edges not worth their cost that it tries to leave out one by one."""


NEAREST = Cut()


def expected_shd(graph: ArrayLike, p_dd3: ArrayLike, arrow_dd: ArrayLike) -> float:
    """Structural Hamming distance to expect between a graph and the true CPDAG.

    Parameters
    ----------
    graph : array_like, shape (d, d)
        Any graph.
    p_dd3 : array_like, shape (d, d, 3)
        Calibrated probabilities of none · skeleton · moral.
    arrow_dd : array_like, shape (d, d)
        Probability of i → j given that i and j are adjacent; [i, j] and [j, i] sum to at most one.

    Returns
    -------
    float
        Sum over the pairs of the probability that the pair's edge is wrong in any way.

    Examples
    --------
    >>> p_dd3 = np.full((2, 2, 3), [0.25, 0.75, 0.0])
    >>> arrow_dd = [[0, 0.5], [0, 0]]
    >>> [expected_shd(g, p_dd3, arrow_dd) for g in ([[0, 0], [0, 0]], [[0, 1], [0, 0]], [[0, 1], [1, 0]])]
    [0.75, 0.625, 0.625]
    """
    p_dd3, edges = read_probabilities(p_dd3), check_adjacency(graph)
    if len(edges) != len(p_dd3):
        raise GraphError(f"the graph has {len(edges)} variables, the probabilities {len(p_dd3)}; give equal sizes.")
    return float(np.triu(_expected_cost(edges, p_dd3[..., SKELETON], np.asarray(arrow_dd, dtype=float)), 1).sum())


def _expected_cost(edges: BoolMatrix, p_dd: Matrix, arrow_dd: Matrix) -> Matrix:
    """Probability, for each pair, that its edge is wrong; symmetric."""
    is_open = 1 - arrow_dd - arrow_dd.T
    right = np.where(edges & edges.T, is_open, np.where(edges, arrow_dd, arrow_dd.T))
    return np.asarray(np.where(edges | edges.T, 1 - p_dd * right, p_dd))


def decide(
    p_dd3: ArrayLike,
    colliders: Any = None,
    cut: Cut = NEAREST,
    *,
    knowledge: Forbidden | None = None,
) -> Orientation:
    """Choose a graph with directions.

    Parameters
    ----------
    p_dd3 : array_like, shape (d, d, 3)
        Calibrated probabilities of none · skeleton · moral, knowledge about edges already enforced in them.
    colliders : iterable of (a, c, b, probability), optional
        Claims of the second network. Triples without claim are judged by the moral probability of their ends.
    cut : Cut
        With neither number, the smallest expected structural Hamming distance (`expected_shd`) among many graphs.
        With a false-discovery target, as many edges as possible with at most that share of wrong ones to be expected,
        among all edges and among the arrows. With a threshold, edges and colliders from there on, as in the paper.
    knowledge : array_like, shape (d, d), or function of (i, j), optional
        True where the arrow i → j is forbidden. Pairs with both directions forbidden are not adjacent. If
        the edges with only one permitted direction close a cycle, the least likely of them is left out.

    Returns
    -------
    Orientation
        As `graphbam.directions.orientation.orient` returns it, with `graphbam.directions.arrows.arrow_probabilities`.

    Raises
    ------
    KnowledgeError
        If certain edges (probability 1) leave no DAG that avoids the forbidden arrows.

    Notes
    -----
    The smallest distance is looked for among skeletons of up to 16 levels of probability, spread over the distinct
    ones from 0.25 on, with 0.5 added; at the best of them also at stricter levels for colliders; and then without, as
    long as that helps, edges that cost more as they are marked than if they were absent: all of them, or those whose
    absence helps by itself. The graph of the certain edges alone, mostly the empty graph, is one of the
    candidates, and by the same probabilities it is never worse than the empty graph. Hence neither is the result.

    For a false-discovery target an arrow is right if the edge exists and points that way. The arrows of a CPDAG
    cannot be taken back one by one, and a skeleton with long cycles has some in any case. So the target for arrows is
    met by stricter levels for colliders, and by leaving out the edges with the least sure arrows; of the graphs
    that come out, the one with most edges is returned, and of those the one with most arrows.

    Examples
    --------
    An edge with probability 0.6 is worth stating, but not with a direction of which little is known:

    >>> p_dd3 = np.full((3, 3, 3), [0.4, 0.6, 0.0])
    >>> p_dd3[0, 1] = p_dd3[1, 0] = [0.9, 0.0, 0.1]
    >>> decide(p_dd3, [(0, 2, 1, 0.1)]).adjacency
    array([[0, 0, 1],
           [0, 0, 1],
           [1, 1, 0]], dtype=int8)
    >>> int(decide(p_dd3, [(0, 2, 1, 0.1)], Cut(fdr=0.1)).adjacency.sum())
    0
    """
    p_dd3 = read_probabilities(p_dd3)
    least = min(SUPPORT_FROM, cut.threshold or 1.0)
    choice = _Choice(read_beliefs(p_dd3, colliders), read_forbidden(knowledge, len(p_dd3)), least)
    if cut.threshold is not None:
        (adjacency,) = choice.graphs(cut.links(choice.p_dd), [cut.threshold])
    elif cut.fdr is not None:
        adjacency = choice.controlled(cut)
    else:
        adjacency = choice.nearest()
    return Orientation(adjacency, choice.arrow_dd)


class _Choice:
    """The graphs that `decide` looks at, and what is expected of them."""

    def __init__(self, beliefs: Beliefs, forbidden: BoolMatrix, least: float) -> None:
        self.p_dd, self.beliefs, self.forbidden = beliefs.edge_dd, beliefs, forbidden
        self.arrow_dd = derive_arrows(beliefs, forbidden, least)

    def graphs(self, adjacent: BoolMatrix, accepts: Sequence[float] = (0.5,)) -> list[NDArray[np.int8]]:
        """One graph for each threshold on colliders, with a skeleton from which the impossible is left out."""
        possible = adjacent & ~(self.forbidden & self.forbidden.T)
        possible = _break_cycles(possible, self.p_dd, self.forbidden)
        return direct_edges(possible, self.beliefs, self.forbidden, accepts)

    def cost(self, graph: NDArray[np.int8]) -> float:
        return float(np.triu(_expected_cost(graph > 0, self.p_dd, self.arrow_dd), 1).sum())

    def levels(self) -> list[float]:
        """Thresholds on edges, from low to high; the last one keeps only certain edges."""
        distinct = _spread(np.unique(self.p_dd[self.p_dd >= 0.25]), MOST_LEVELS)
        return sorted({0.5, *distinct, 1.0})

    def strictnesses(self) -> list[float]:
        """Thresholds on colliders, from low to high; the last one accepts none."""
        claimed = self.beliefs.claims["probability"]
        return [0.5, *_spread(np.unique(claimed[claimed > 0.5]), MOST_STRICTNESSES), np.inf]

    def nearest(self) -> NDArray[np.int8]:
        """Smallest expected distance: best level, then best strictness, then without what is not worth it."""
        best = min((graph for level in self.levels() for graph in self.graphs(self.p_dd >= level)), key=self.cost)
        best = min((best, *self.graphs((best | best.T) > 0, self.strictnesses())), key=self.cost)
        return self._without_burdens(best)

    def _without_burdens(self, best: NDArray[np.int8]) -> NDArray[np.int8]:
        """Leave out edges that cost more than their absence, as long as the whole gets better."""
        while self.cost(other := self._lighter(best)) < self.cost(best) - 1e-12:
            best = other
        return best

    def _lighter(self, graph: NDArray[np.int8]) -> NDArray[np.int8]:
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

    def _without(self, adjacent: BoolMatrix, places: Indices) -> NDArray[np.int8]:
        """Best graph without some edges, given by their places in the flattened matrix."""
        kept = adjacent.copy()
        kept.flat[places] = False
        return min(self.graphs(kept & kept.T, (0.5, np.inf)), key=self.cost)

    def controlled(self, cut: Cut) -> NDArray[np.int8]:
        """Most edges, then most arrows, that keep the target."""
        largest = cut.links(self.p_dd)
        graphs = [self._with_sure_arrows(largest, accept, cut) for accept in self.strictnesses()]
        return max(graphs, key=lambda graph: ((graph | graph.T).sum(), -graph.sum()))

    def _with_sure_arrows(self, adjacent: BoolMatrix, accept: float, cut: Cut) -> NDArray[np.int8]:
        """Leave out the least sure edges and the edges with the least sure arrows until both keep the target."""
        while True:
            (graph,) = self.graphs(adjacent, [accept])
            adjacent = (graph | graph.T) > 0
            unsure = _unsure(np.triu(adjacent), self.p_dd, cut)
            unsure |= _unsure((graph > 0) & (graph.T == 0), self.p_dd * self.arrow_dd, cut)
            unsure &= self.p_dd < 1
            if not unsure.any():
                return graph
            adjacent &= ~(unsure | unsure.T)


def _unsure(chosen: BoolMatrix, p_dd: Matrix, cut: Cut) -> BoolMatrix:
    """Mark the entries that have to go for the others to keep the target."""
    unsure = np.zeros_like(chosen)
    unsure[chosen] = ~cut.choose(p_dd[chosen])
    return unsure


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
    kept = arrows & (p_dd >= 1)  # certain edges stay; if they close a cycle, `direct_edges` says so
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
