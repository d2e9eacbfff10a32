"""Directions of graphs with thousands of variables, given as lists of links: no matrix of all pairs is made.

Links lie in connected parts, and what is decided in one says nothing of another. Small parts are for `cpdag` and `dag`
of this room; here is what is done about parts too large for them:

- The CPDAG is that of one DAG. Immoralities held for likelier than not are accepted as `cpdag.direct_links` does, the
  other links directed by the same elimination, and the DAG completed; single immoralities are not tried anew.
- For the DAG, links in no cycle of likelier arrows follow these; each knot of cycles gets an order as in `dag`, and a
  knot of more than a thousand variables the order in which who gains most goes first.

Known directions hold in both, and the CPDAG has all that follows from them by R1–R4. They must close no cycle:
`break_cycles` sees to that.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbam.directions.arrows import SUPPORT_FROM, Neighbourhood, derive_all
from graphbam.directions.cpdag import Board, Elimination
from graphbam.directions.dag import KNOWN, best_order
from graphbam.errors import KnowledgeError
from graphbam.graphs.graph import Indices, Matrix

__all__ = [
    "FollowsInList",
    "Links",
    "Listed",
    "break_cycles",
    "connected_parts",
    "imply_listed",
    "large_cpdag",
    "large_dag",
    "lead_nowhere",
    "lead_there",
]

ACCEPTED_FROM = 0.5
"""Immoralities from this probability on are accepted."""

MOST_ORDERED = 1000
"""Variables of a knot up to which an order is looked for as in `dag`."""

Ways = NDArray[np.int8]
"""A direction for each link: 1 for i → j, −1 for j → i, 0 for none."""


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

    def point(self, ways: Ways) -> tuple[Indices, Indices]:
        """Tails and heads of the links in these directions; of a link without one, i and j."""
        return np.where(ways < 0, self.j, self.i), np.where(ways < 0, self.i, self.j)


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


# ── known directions ──────────────────────────────────────────────────────────────────────────────────────


def break_cycles(links: Links, known: Ways) -> NDArray[np.bool_]:
    """Which links to keep so that known directions close no cycle: the least likely are left out, as `cpdag` does.

    Raises
    ------
    KnowledgeError
        If certain links (probability 1) close a cycle.

    Examples
    --------
    >>> links = Links(np.array([0, 1, 0]), np.array([1, 2, 2]), np.array([0.9, 0.7, 0.8]), np.ones(3), np.zeros(3))
    >>> break_cycles(links, np.array([1, 1, -1], dtype=np.int8)).tolist()
    [True, False, True]
    """
    keep = np.ones(len(links.i), dtype=bool)
    tails, heads = links.point(known)
    arrows = np.flatnonzero(known)
    arrows = arrows[_in_knots(tails[arrows], heads[arrows])]
    children: dict[int, set[int]] = {}
    for k in arrows[np.lexsort((heads[arrows], tails[arrows], -links.p[arrows]))].tolist():
        tail, head = int(tails[k]), int(heads[k])
        if not _reaches(children, head, {tail}):
            children.setdefault(tail, set()).add(head)
        elif links.p[k] < 1:
            keep[k] = False
        else:
            raise KnowledgeError("the forbidden arrows leave no DAG with the certain links; allow one of them.")
    return keep


def _in_knots(tails: Indices, heads: Indices) -> NDArray[np.bool_]:
    """Arrows that lie on a cycle."""
    knot_of = {node: k for k, knot in enumerate(_knots(tails, heads)) for node in knot}
    ends = zip(tails.tolist(), heads.tolist(), strict=True)
    return np.array([knot_of[tail] == knot_of[head] for tail, head in ends], dtype=bool)


def _knots(tails: Indices, heads: Indices) -> Iterator[set[int]]:
    """Variables that lie on common cycles of arrows, as groups; alone where on none."""
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_edges_from(zip(tails.tolist(), heads.tolist(), strict=True))
    knots: Iterator[set[int]] = nx.strongly_connected_components(graph)
    return knots


def _reaches(children: Mapping[int, set[int]], start: int, goals: set[int]) -> bool:
    """Whether arrows lead from a variable to one of several."""
    seen, waiting = {start}, [start]
    while waiting:
        after = children.get(waiting.pop(), set()) - seen
        if after & goals:
            return True
        seen |= after
        waiting.extend(after)
    return False


def lead_there(i: Indices, j: Indices, arrows: Iterable[tuple[int, int]]) -> NDArray[np.bool_]:
    """For each pair, whether a path of these arrows leads from i to j.

    Examples
    --------
    >>> lead_there(np.array([0, 2]), np.array([2, 0]), [(0, 1), (1, 2)]).tolist()
    [True, False]
    """
    children: dict[int, set[int]] = {}
    for tail, head in arrows:
        children.setdefault(tail, set()).add(head)
    heads = {head for some in children.values() for head in some}
    ends = zip(i.tolist(), j.tolist(), strict=True)
    return np.array([a in children and b in heads and _reaches(children, a, {b}) for a, b in ends], dtype=bool)


class FollowsInList:
    """`graphbam.directions.arrows.Follows` for a list of pairs, shape (N, 2): i ⇒ j and j ⇒ i of each.

    Only what is listed follows, and only from what is.

    Parameters
    ----------
    i, j : ndarray of int, shape (N,)
        The pairs.
    arrows : iterable of (tail, head)
        Certain ones; they close no cycle.
    n_variables : int

    Examples
    --------
    With 0 ⇒ 1 certain, 0 ⇒ 2 follows from 1 ⇒ 2, and 2 ⇒ 1 from 2 ⇒ 0:

    >>> follows = FollowsInList(np.array([0, 1]), np.array([2, 2]), [(0, 1)], 3)
    >>> follows.spread(np.array([[0.1, 0.3], [0.7, 0.2]])).tolist()
    [[0.7, 0.3], [0.7, 0.3]]
    """

    def __init__(self, i: Indices, j: Indices, arrows: Iterable[tuple[int, int]], n_variables: int) -> None:
        children, self.above = defaultdict[int, set[int]](set), defaultdict[int, list[int]](list)
        for tail, head in arrows:
            children[tail].add(head)
        self.below = {tail: sorted(_walk(children, tail)) for tail in list(children)}
        for tail, reached in self.below.items():
            for head in reached:
                self.above[head].append(tail)
        tails, heads = np.concatenate([i, j]), np.concatenate([j, i])
        self.order = np.lexsort((heads, tails))
        self.heads = heads[self.order]
        self.starts = np.searchsorted(tails[self.order], np.arange(n_variables + 1)).tolist()
        self.is_late = np.isin(self.heads, list(self.above))
        self.tails = np.unique(np.concatenate([np.array(list(self.below), dtype=int), tails[self.order][self.is_late]]))

    def flip(self, p: NDArray[Any]) -> NDArray[Any]:
        return p[:, ::-1]

    def spread(self, p: Matrix) -> Matrix:
        if not len(self.tails):
            return p
        values = p.T.reshape(-1)[self.order]
        result = values.copy()
        best = np.full(len(self.starts), -np.inf)  # by end, of all paths that begin below a variable
        for tail in self.tails.tolist():
            best[:] = -np.inf
            for begin in (tail, *self.below.get(tail, ())):
                mine = slice(self.starts[begin], self.starts[begin + 1])
                best[self.heads[mine]] = np.maximum(best[self.heads[mine]], values[mine])
            start, end = self.starts[tail], self.starts[tail + 1]
            result[start:end] = best[self.heads[start:end]]
            for k in (start + np.flatnonzero(self.is_late[start:end])).tolist():
                result[k] = max(result[k], best[self.above[int(self.heads[k])]].max())
        spread = np.empty_like(result)
        spread[self.order] = result
        return spread.reshape(2, -1).T


def _walk(children: Mapping[int, set[int]], start: int) -> set[int]:
    """All variables that arrows lead to from one."""
    seen, waiting = set[int](), [start]
    while waiting:
        after = children.get(waiting.pop(), set()) - seen
        seen |= after
        waiting.extend(after)
    return seen


def lead_nowhere(
    i: Indices, j: Indices, forbidden: Mapping[int, set[int]], tier_of: Indices, within_tiers: bool
) -> NDArray[np.bool_]:
    """For each pair, whether no path of permitted arrows leads from i to j.

    Parameters
    ----------
    i, j : ndarray of int, shape (N,)
        Pairs with a forbidden arrow i → j: all others have a path of one arrow.
    forbidden : mapping from variable to variables
        Heads of forbidden arrows by tail, beside those of the tiers.
    tier_of : ndarray of int, shape (D,)
        Arrows run from lower tiers to higher ones; −1 for variables outside of this order.
    within_tiers : bool
        Whether arrows inside a tier are permitted.

    Examples
    --------
    0 and 1 come before 2, and nothing is known of 3; without it no path leads back:

    >>> pairs, tiers = (np.array([2]), np.array([1])), np.array([0, 0, 1, -1])
    >>> lead_nowhere(*pairs, {}, tiers, True).tolist(), lead_nowhere(*pairs, {}, tiers[:3], True).tolist()
    ([False], [True])
    """
    ordered = tier_of >= 0
    named = {*forbidden, *(head for some in forbidden.values() for head in some)}
    if not named.issuperset(np.flatnonzero(~ordered).tolist()):
        return np.zeros(len(i), dtype=bool)  # by way of a variable of which nothing is known everything can be reached
    back = tier_of[i] >= tier_of[j] + within_tiers
    result = back & ordered.all()
    for source in np.unique(i[~result]).tolist():
        mine = np.flatnonzero((i == source) & ~result)
        result[mine] = ~_permitted(source, j[mine], forbidden, tier_of, within_tiers)[j[mine]]
    return result


def _permitted(
    source: int, goals: Indices, forbidden: Mapping[int, set[int]], tier_of: Indices, within_tiers: bool
) -> NDArray[np.bool_]:
    """What permitted arrows lead to from a variable, at least until all goals are among it."""
    seen = np.zeros(len(tier_of), dtype=bool)
    waiting = [source]
    while waiting and not seen[goals].all():
        node = waiting.pop()
        new = ~seen
        new[[node, *forbidden.get(node, ())]] = False
        if tier_of[node] >= 0:
            new &= (tier_of < 0) | (tier_of > tier_of[node] - within_tiers)
        seen |= new
        after = np.flatnonzero(new)
        waiting += after[np.argsort(-tier_of[after], kind="stable")].tolist()  # the freest is looked at first
    return seen


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


class Listed(NamedTuple):
    """A probability for each of some pairs, and one for all others."""

    keys: Indices
    """i · d + j for i < j, increasing."""
    p: Matrix
    elsewhere: float
    """Of all other pairs."""

    def at(self, a: Indices, b: Indices, n_variables: int) -> Matrix:
        """Of pairs (a, b) in either order."""
        place = self.find(a, b, n_variables)
        return np.where(place >= 0, self.p[place], self.elsewhere) if len(self.p) else np.full(a.shape, self.elsewhere)

    def find(self, a: Indices, b: Indices, n_variables: int) -> Indices:
        """Where pairs (a, b), in either order, are listed; −1 where they are not."""
        key = np.minimum(a, b) * n_variables + np.maximum(a, b)
        place = np.searchsorted(self.keys, key)
        is_there = np.append(self.keys, -1)[place] == key
        return np.where(is_there, place, -1)


def large_cpdag(links: Links, morals: Listed, n_variables: int, known: Ways | None = None) -> Ways:
    """Direct links as far as beliefs decide: 1 for i → j, −1 for j → i, 0 where both are possible.

    Known directions, which close no cycle, hold, and with them all that follows by R1–R4.

    Examples
    --------
    0 → 2 ← 1, and 2 → 3 follows:

    >>> links = Links(np.array([0, 1, 2]), np.array([2, 2, 3]), np.ones(3), np.array([0.9, 0.9, 0.4]), np.zeros(3))
    >>> large_cpdag(links, Listed(np.array([1]), np.array([0.9]), 0.0), 4).tolist()
    [1, 1, 1]
    """
    known = np.zeros(len(links.i), dtype=np.int8) if known is None else known
    around = _Neighbours(links, n_variables)
    board = _make_board(around, morals, n_variables)
    parents = _accept(board, around, board.likely(ACCEPTED_FROM), links.keep(known != 0).point(known[known != 0]))
    rank = np.empty(n_variables, dtype=np.int64)
    rank[Elimination(board, parents).order()] = np.arange(n_variables)  # children first
    ways = np.where(rank[links.i] > rank[links.j], 1, -1).astype(np.int8)
    compelled = _compelled(*links.point(ways), rank)
    ways[~compelled] = 0
    return _follow(links, ways, known) if ((ways == 0) & (known != 0)).any() else ways


def _make_board(around: _Neighbours, morals: Listed, n_variables: int) -> Board:
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


def _accept(
    board: Board, around: _Neighbours, triples: Sequence[tuple[int, int, int]], known: tuple[Indices, Indices]
) -> list[Matrix]:
    """Parents by known arrows and by immoralities that go together, likeliest first.

    As `cpdag` does, with walks instead of a matrix.
    """
    parents: list[Matrix] = [np.zeros(len(nodes)) for nodes in around.nodes]
    children: dict[int, set[int]] = {}
    for tail, head in zip(*(ends.tolist() for ends in known), strict=True):
        parents[head][np.searchsorted(around.nodes[head], tail)] = 1.0
        children.setdefault(tail, set()).add(head)
    for a, c, b in triples:
        new = [tail for tail in (a, b) if c not in children.get(tail, ())]
        if not new or _reaches(children, c, set(new)):
            continue
        nodes = around.nodes[c]
        more = np.maximum(parents[c], (nodes == a) | (nodes == b))
        if board.value(c, more) >= board.value(c, parents[c]) - 1e-9:
            parents[c] = more
            for tail in new:
                children.setdefault(tail, set()).add(c)
    return parents


def _follow(links: Links, ways: Ways, known: Ways) -> Ways:
    """Add known directions to a CPDAG, and all that follows from them by R1–R4 of `graphs.equivalence`."""
    marks = _Marks(links, ways)
    new = (known != 0) & (ways == 0)
    tails, heads = links.keep(new).point(known[new])
    waiting = list(zip(tails.tolist(), heads.tolist(), strict=True))
    while waiting:
        tail, head = waiting.pop()
        if head in marks.open[tail]:
            marks.direct(tail, head)
            waiting += marks.implied(tail, head)
    ends = list(zip(links.i.tolist(), links.j.tolist(), strict=True))
    return np.array([(j in marks.children[i]) - (i in marks.children[j]) for i, j in ends], dtype=np.int8)


class _Marks:
    """A partially directed graph as sets: for each variable its parents, its children and open links."""

    def __init__(self, links: Links, ways: Ways) -> None:
        self.parents, self.children, self.open = (defaultdict[int, set[int]](set) for _ in range(3))
        for tail, head, way in zip(*(ends.tolist() for ends in links.point(ways)), ways.tolist(), strict=True):
            self.open[tail].add(head)
            self.open[head].add(tail)
            if way:
                self.direct(tail, head)

    def direct(self, tail: int, head: int) -> None:
        """Make an arrow of an open link."""
        self.open[tail].remove(head)
        self.open[head].remove(tail)
        self.children[tail].add(head)
        self.parents[head].add(tail)

    def beside(self, node: int) -> set[int]:
        """All variables linked with one."""
        return self.parents[node] | self.children[node] | self.open[node]

    def implied(self, a: int, b: int) -> list[tuple[int, int]]:
        """What R1–R4 imply of a new arrow a → b and those that are there."""
        found = [(b, c) for c in self.open[b] - self.beside(a)]  # R1: a → b — c
        found += [(a, c) for c in self.open[a] & self.children[b]]  # R2: a → b → c
        found += [(c, b) for c in self.open[b] & self.parents[a]]  # R2: c → a → b
        if both := self.open[a] & self.open[b]:
            for d in self.parents[b] - self.beside(a) - {a}:  # R3: x — a → b, x — d → b
                found += [(x, b) for x in both & self.open[d]]
            for d in self.parents[a] - self.beside(b):  # R4: x — d → a → b, x — a
                found += [(x, b) for x in both & self.open[d]]
            for c in self.children[b] - self.beside(a):  # R4: x — a → b → c, x — b
                found += [(x, c) for x in both & self.open[c]]
        return found


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


# ── what known directions imply ───────────────────────────────────────────────────────────────────────────


def imply_listed(
    links: Listed, morals: Listed, compelled: Matrix, arrow: Matrix, forbidden: NDArray[np.bool_], n_variables: int
) -> Matrix:
    """`graphbam.directions.arrows.imply_known` for a list of pairs.

    Parameters
    ----------
    links, morals : Listed
        How likely pairs are linked; are parents of a common child if they are not.
    compelled, arrow : ndarray, shape (N, 2)
        Of the pairs of `links`: how likely the CPDAG has i → j, and j → i; how sure known arrows are, 0 for others.
    forbidden : ndarray of bool, shape (N, 2)
    n_variables : int

    Returns
    -------
    ndarray, shape (N, 2)

    Examples
    --------
    Of 0 — 1 — 2 the arrow 0 → 1 is known:

    >>> links, morals = Listed(np.array([1, 5]), np.array([1.0, 0.75]), 0.0), Listed(np.array([]), np.array([]), 0.5)
    >>> arrow = np.array([[1.0, 0.0], [0.0, 0.0]])
    >>> imply_listed(links, morals, arrow, arrow, arrow[:, ::-1] > 0, 3).tolist()
    [[1.0, 0.0], [1.0, 0.0]]
    """
    i, j = np.divmod(links.keys, n_variables)
    linked = links.p >= SUPPORT_FROM
    arrow = np.where(linked[:, None], arrow, 0.0)
    part_of = connected_parts(i[linked], j[linked], n_variables)
    linked &= np.isin(part_of[i], part_of[i[arrow.any(axis=1)]])
    chosen = Links(i, j, links.p, *compelled.T).keep(linked)
    beside = _Neighbours(chosen, n_variables)
    around = {
        v: _look_around(v, nodes, into, links, morals, linked, n_variables)
        for v, (nodes, into) in enumerate(zip(beside.nodes, beside.into, strict=True))
        if len(nodes)
    }
    flat, out = np.append(arrow.T.reshape(-1), 0.0), np.append(forbidden.T.reshape(-1), False)
    least = derive_all(flat, out, around)[:-1].reshape(2, -1).T
    return np.asarray(least / np.maximum(least + least[:, ::-1], 1.0))


def _look_around(
    v: int, nodes: Indices, compelled: Matrix, links: Listed, morals: Listed, linked: NDArray[np.bool_], d: int
) -> Neighbourhood:
    """What R1–R4 ask about a variable: arrows lie in the order of the pairs, then those back, then a place for none."""
    n, (one, other) = len(linked), np.broadcast_arrays(nodes[:, None], nodes)
    place, inner = links.find(np.full(len(nodes), v), nodes, d), links.find(one, other, d)
    is_linked = (inner >= 0) & linked[inner]
    absent = 1 - links.at(one, other, d)
    np.fill_diagonal(absent, 0.0)
    collider = np.minimum(np.minimum(compelled[:, None], compelled), morals.at(one, other, d)) * (absent > 0)
    return Neighbourhood(
        nodes,
        into=np.where(nodes < v, place, n + place),
        out=np.where(nodes < v, n + place, place),
        inner=np.where(is_linked, np.where(one < other, inner, n + inner), 2 * n),
        link=links.p[place],
        absent=absent,
        collider=collider,
        linked=is_linked,
    )


# ── the DAG ───────────────────────────────────────────────────────────────────────────────────────────────


def large_dag(links: Links, n_variables: int, known: Ways | None = None) -> Ways:
    """Direct every link without a cycle, as its direction is likelier where that can be: 1 for i → j, −1 for j → i.

    Known directions, which close no cycle, hold.

    Examples
    --------
    >>> i, j = np.array([0, 1, 0]), np.array([1, 2, 2])
    >>> forward = np.array([0.9, 0.8, 0.4])
    >>> links = Links(i, j, np.ones(3), forward, 1 - forward)
    >>> large_dag(links, 3).tolist()
    [1, 1, 1]
    >>> large_dag(links, 3, known=np.array([0, -1, 0], dtype=np.int8)).tolist()
    [1, -1, -1]
    """
    gain = links.p * (links.forward - links.backward)
    if known is not None:
        gain = np.where(known != 0, known * KNOWN, gain)
    chosen = np.where(gain >= 0, 1, -1).astype(np.int8)
    knots = [sorted(knot) for knot in _knots(*links.point(chosen)) if len(knot) > 1]
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
    if size > MOST_ORDERED:
        return _quick_order(a, b, gain, size)
    gain_kk = np.zeros((size, size))
    gain_kk[a, b], gain_kk[b, a] = gain, -gain
    return best_order(gain_kk)


def _quick_order(a: Indices, b: Indices, gain: Matrix, size: int) -> list[int]:
    """Who gains most goes first, parents by known arrows before their children."""
    beside: list[list[tuple[int, float]]] = [[] for _ in range(size)]
    for one, other, value in zip(a.tolist(), b.tolist(), gain.tolist(), strict=True):
        beside[one].append((other, value))
        beside[other].append((one, -value))
    net = [sum(value for _, value in around if abs(value) < KNOWN) for around in beside]
    n_known = [sum(value <= -KNOWN for _, value in around) for around in beside]  # parents that are left
    heap = [(-value, k) for k, value in enumerate(net) if not n_known[k]]
    order, is_left = list[int](), [True] * size
    heapq.heapify(heap)
    while heap:
        value, first = heapq.heappop(heap)
        if not is_left[first] or -value != net[first]:
            continue
        order.append(first)
        is_left[first] = False
        for other, gained in beside[first]:
            if abs(gained) < KNOWN:
                net[other] += gained  # what it would have lost by going behind
            else:
                n_known[other] -= gained > 0
            if is_left[other] and not n_known[other]:
                heapq.heappush(heap, (-net[other], other))
    return order
