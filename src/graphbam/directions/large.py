"""Directions of graphs with thousands of variables, given as lists of links: no matrix of all pairs is made.

Links lie in connected parts, and what is decided in one says nothing of another. Small parts are for `cpdag` and `dag`
of this room; here is what is done about parts too large for them:

- The CPDAG is that of one DAG. Immoralities held for likelier than not are accepted as `cpdag.direct_links` does, the
  other links directed by the same elimination, and the DAG completed; single immoralities are not tried anew.
- For the DAG, links in no cycle of likelier arrows follow these; each knot of cycles gets an order as in `dag`, and a
  knot of more than a thousand variables the order in which who gains most goes first.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbam.directions.cpdag import Board, Elimination
from graphbam.directions.dag import best_order
from graphbam.directions.immoralities import Indices
from graphbam.graphs.graph import Matrix

__all__ = ["Links", "connected_parts", "large_cpdag", "large_dag"]

ACCEPTED_FROM = 0.5
"""Immoralities from this probability on are accepted."""

MOST_ORDERED = 1000
"""Variables of a knot up to which an order is looked for as in `dag`."""

KNOWN = 1e6
"""Worth of an arrow whose reverse is forbidden."""


class Links(NamedTuple):
    """Links i — j of a graph, as arrays of equal length, and what is believed of their directions."""

    i: Indices
    j: Indices
    p: Matrix
    """Probability of the link."""
    forward: Matrix
    """Probability of i → j given the link …"""
    backward: Matrix
    """… and of j → i; for a DAG the two sum to one."""

    def keep(self, chosen: NDArray[np.bool_]) -> Links:
        """Some of the links."""
        return Links(self.i[chosen], self.j[chosen], self.p[chosen], self.forward[chosen], self.backward[chosen])


def connected_parts(i: Indices, j: Indices, n_variables: int) -> Indices:
    """For each variable the number of its connected part: the least variable in it.

    Examples
    --------
    >>> connected_parts(np.array([0, 3]), np.array([2, 4]), 5).tolist()
    [0, 1, 0, 3, 3]
    """
    part = np.arange(n_variables)
    while True:
        least = np.minimum(part[i], part[j])
        after = part.copy()
        np.minimum.at(after, i, least)
        np.minimum.at(after, j, least)
        after = after[after]
        if np.array_equal(after, part):
            return part
        part = after


# ── the CPDAG ─────────────────────────────────────────────────────────────────────────────────────────────


class _Neighbours:
    """Who is linked with whom, and by which link, for each variable in increasing order."""

    def __init__(self, links: Links, n_variables: int) -> None:
        one, other = np.concatenate([links.i, links.j]), np.concatenate([links.j, links.i])
        order = np.lexsort((other, one))
        one, other = one[order], other[order]  # once: every slice keeps the whole alive
        starts = np.searchsorted(one, np.arange(n_variables + 1)).tolist()
        into = np.concatenate([links.backward, links.forward])[order]  # of `other` → `one`
        self.nodes = [other[a:b] for a, b in pairwise(starts)]
        self.into = [into[a:b] for a, b in pairwise(starts)]
        self.sets = [set(nodes.tolist()) for nodes in self.nodes]


class Morals(NamedTuple):
    """How likely pairs that are not linked are parents of a common child."""

    keys: Indices
    """i · d + j for i < j, increasing."""
    p: Matrix
    elsewhere: float
    """Of all other pairs."""

    def at(self, a: Indices, b: Indices, n_variables: int) -> Matrix:
        """Of pairs (a, b) in either order."""
        if not len(self.keys):
            return np.full(a.shape, self.elsewhere)
        key = np.minimum(a, b) * n_variables + np.maximum(a, b)
        place = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        return np.where(self.keys[place] == key, self.p[place], self.elsewhere)


def large_cpdag(links: Links, morals: Morals, n_variables: int) -> NDArray[np.int8]:
    """Direct links as far as beliefs decide: 1 for i → j, −1 for j → i, 0 where both are possible.

    Examples
    --------
    0 → 2 ← 1, and 2 → 3 follows:

    >>> links = Links(np.array([0, 1, 2]), np.array([2, 2, 3]), np.ones(3), np.array([0.9, 0.9, 0.4]), np.zeros(3))
    >>> large_cpdag(links, Morals(np.array([1]), np.array([0.9]), 0.0), 4).tolist()
    [1, 1, 1]
    """
    around = _Neighbours(links, n_variables)
    board = _make_board(around, morals, n_variables)
    parents = _accept(board, around, board.likely(ACCEPTED_FROM))
    rank = np.empty(n_variables, dtype=np.int64)
    rank[Elimination(board, parents).order()] = np.arange(n_variables)  # children first
    forward = rank[links.i] > rank[links.j]
    tails, heads = np.where(forward, links.i, links.j), np.where(forward, links.j, links.i)
    compelled = _compelled(tails, heads, rank)
    return np.where(compelled, np.where(forward, 1, -1), 0).astype(np.int8)


def _make_board(around: _Neighbours, morals: Morals, n_variables: int) -> Board:
    """An immorality a → c ← b is no likelier than either arrow, or than that a and b are moral."""
    probability, unshielded = list[Matrix](), list[Matrix]()
    for nodes, into in zip(around.nodes, around.into, strict=True):
        apart = np.ones((len(nodes), len(nodes)))
        place = {node: k for k, node in enumerate(nodes.tolist())}
        for k, node in enumerate(nodes.tolist()):
            apart[k, [place[other] for other in around.sets[node] & place.keys()]] = 0.0
        np.fill_diagonal(apart, 0.0)
        unshielded.append(apart)
        if len(nodes) < 2:
            probability.append(np.zeros_like(apart))
            continue
        moral = morals.at(nodes[:, None], nodes[None, :], n_variables)
        probability.append(np.minimum(np.minimum(into[:, None], into), moral))
    return Board(around.nodes, probability, unshielded)


def _accept(board: Board, around: _Neighbours, triples: Sequence[tuple[int, int, int]]) -> list[Matrix]:
    """Parents by immoralities that go together, likeliest first; as `cpdag` does, with walks instead of a matrix."""
    parents: list[Matrix] = [np.zeros(len(nodes)) for nodes in around.nodes]
    children: list[set[int]] = [set() for _ in around.nodes]
    for a, c, b in triples:
        new = [tail for tail in (a, b) if c not in children[tail]]
        if not new or _reaches(children, c, set(new)):
            continue
        nodes = around.nodes[c]
        more = np.maximum(parents[c], (nodes == a) | (nodes == b))
        if board.value(c, more) >= board.value(c, parents[c]) - 1e-9:
            parents[c] = more
            for tail in new:
                children[tail].add(c)
    return parents


def _reaches(children: list[set[int]], start: int, goals: set[int]) -> bool:
    """Whether arrows lead from a variable to one of several."""
    seen, waiting = {start}, [start]
    while waiting:
        after = children[waiting.pop()] - seen
        if after & goals:
            return True
        seen |= after
        waiting.extend(after)
    return False


def _compelled(tails: Indices, heads: Indices, rank: Indices) -> NDArray[np.bool_]:
    """Arrows of a DAG that all equivalent DAGs share; Chickering's labels, as in `graphs.equivalence`."""
    parents: dict[int, set[int]] = {}
    for tail, head in zip(tails.tolist(), heads.tolist(), strict=True):
        parents.setdefault(head, set()).add(tail)
    known: dict[int, set[int]] = {}
    for child in sorted(parents, key=lambda node: -rank[node]):  # parents have the larger ranks
        mine = parents[child]
        latest = min(mine, key=lambda node: rank[node])
        theirs, inherited = parents.get(latest, set()), known.get(latest, set())
        known[child] = mine if (mine - theirs - {latest}) or (inherited - mine) else set(inherited)
    return np.array([t in known[h] for t, h in zip(tails.tolist(), heads.tolist(), strict=True)], dtype=bool)


# ── the DAG ───────────────────────────────────────────────────────────────────────────────────────────────


def large_dag(links: Links, n_variables: int) -> NDArray[np.int8]:
    """Direct every link without a cycle, as its direction is likelier where that can be: 1 for i → j, −1 for j → i.

    Examples
    --------
    >>> i, j = np.array([0, 1, 0]), np.array([1, 2, 2])
    >>> forward = np.array([0.9, 0.8, 0.4])
    >>> large_dag(Links(i, j, np.ones(3), forward, 1 - forward), 3).tolist()
    [1, 1, 1]
    """
    import networkx as nx

    gain = links.p * (links.forward - links.backward)
    chosen = np.where(gain >= 0, 1, -1).astype(np.int8)
    graph = nx.DiGraph()
    graph.add_edges_from(
        zip(
            np.where(chosen > 0, links.i, links.j).tolist(),
            np.where(chosen > 0, links.j, links.i).tolist(),
            strict=True,
        )
    )
    knots = [sorted(knot) for knot in nx.strongly_connected_components(graph) if len(knot) > 1]
    knot_of = np.full(n_variables, -1)
    for k, knot in enumerate(knots):
        knot_of[knot] = k
    within = (knot_of[links.i] >= 0) & (knot_of[links.i] == knot_of[links.j])
    for k, knot in enumerate(knots):
        inside = np.flatnonzero(within & (knot_of[links.i] == k))
        place = np.full(n_variables, -1)
        place[knot] = np.arange(len(knot))
        a, b = place[links.i[inside]], place[links.j[inside]]
        rank = np.empty(len(knot), dtype=np.int64)
        rank[_order(a, b, gain[inside], len(knot))] = np.arange(len(knot))
        chosen[inside] = np.where(rank[a] < rank[b], 1, -1)
    return chosen


def _order(a: Indices, b: Indices, gain: Matrix, size: int) -> list[int]:
    """An order of the variables of a knot in which arrows from earlier to later ones gain much."""
    if size <= MOST_ORDERED:
        gain_kk = np.zeros((size, size))
        gain_kk[a, b], gain_kk[b, a] = gain, -gain
        return best_order(gain_kk)
    beside: list[list[tuple[int, float]]] = [[] for _ in range(size)]
    for one, other, value in zip(a.tolist(), b.tolist(), gain.tolist(), strict=True):
        beside[one].append((other, value))
        beside[other].append((one, -value))
    net = [sum(value for _, value in around) for around in beside]
    heap, order, is_left = [(-value, k) for k, value in enumerate(net)], list[int](), [True] * size
    heapq.heapify(heap)
    while heap:
        value, first = heapq.heappop(heap)
        if not is_left[first] or -value != net[first]:
            continue
        order.append(first)
        is_left[first] = False
        for other, gained in beside[first]:
            net[other] += gained  # what it would have lost by going behind
            if is_left[other]:
                heapq.heappush(heap, (-net[other], other))
    return order
