"""The DAG to state: given links directed without a cycle, each as its direction is likelier where that can be.

A DAG with given links is judged by the structural Hamming distance to expect between it and the true DAG, which is the
sum over the links of 1 − p · d[i, j], with p for the link and d for its direction. So the choice maximises the sum of
p · d[i, j] over the arrows drawn. Links that take part in no cycle of likelier arrows get those. Within each knot of
such cycles (a strongly connected component) an order of the variables is looked for: the best one where the knot has up
to twelve variables; beyond, a good one, improved by moving one variable at a time as long as that helps.
"""

from __future__ import annotations

import numpy as np

from graphbam.errors import KnowledgeError
from graphbam.graphs.graph import Adjacency, BoolMatrix, Indices, Matrix, is_dag, reachable

__all__ = ["best_order", "nearest_dag", "worth_drawing"]

MOST_EXACT = 12
"""Variables of a knot up to which every order is looked at."""

KNOWN = 1e6
"""Worth of an arrow whose reverse is forbidden: more than all others together."""


def nearest_dag(links_dd: BoolMatrix, p_dd: Matrix, direction_dd: Matrix, forbidden_dd: BoolMatrix) -> Adjacency:
    """Direct given links so that the distance to the true DAG is expected to be small; acyclic whatever is believed.

    Parameters
    ----------
    links_dd : ndarray of bool, shape (d, d)
        The links, symmetric.
    p_dd : ndarray, shape (d, d)
        Probability that i and j are adjacent.
    direction_dd : ndarray, shape (d, d)
        Probability of i → j given that they are; with its transpose it sums to one.
    forbidden_dd : ndarray of bool, shape (d, d)
        Arrows that must not be drawn.

    Raises
    ------
    KnowledgeError
        If no DAG with these links avoids the forbidden arrows.

    Examples
    --------
    A cycle of likely arrows is broken where least is lost:

    >>> direction_dd = np.array([[0.5, 0.9, 0.4], [0.1, 0.5, 0.8], [0.6, 0.2, 0.5]])
    >>> links_dd = ~np.eye(3, dtype=bool)
    >>> nearest_dag(links_dd, links_dd * 0.9, direction_dd, np.zeros((3, 3), dtype=bool))
    array([[0, 1, 1],
           [0, 0, 1],
           [0, 0, 0]], dtype=int8)
    """
    known_dd = links_dd & forbidden_dd.T
    if (links_dd & forbidden_dd & forbidden_dd.T).any() or not is_dag(known_dd):
        raise KnowledgeError("the forbidden arrows leave no DAG with these links; remove or allow one of them.")
    gain_dd = np.where(links_dd, p_dd * (direction_dd - direction_dd.T), 0.0)
    gain_dd = np.where(known_dd, KNOWN, np.where(known_dd.T, -KNOWN, gain_dd))
    wanted_dd = links_dd & ((gain_dd > 0) | ((gain_dd == 0) & np.triu(links_dd)))
    reaches_dd = reachable(wanted_dd)
    knots_dd = reaches_dd & reaches_dd.T
    dag_dd = wanted_dd & ~knots_dd
    for knot in _knots(knots_dd):
        order = best_order(gain_dd[np.ix_(knot, knot)])
        rank = np.empty(len(knot), dtype=int)
        rank[order] = np.arange(len(knot))
        dag_dd[np.ix_(knot, knot)] = links_dd[np.ix_(knot, knot)] & (rank[:, None] < rank)
    return dag_dd.astype(np.int8)


def worth_drawing(links_dd: BoolMatrix, p_dd: Matrix, direction_dd: Matrix) -> BoolMatrix:
    """Links that bring a DAG nearer to the truth than their absence: expected to be wrong with 1 − p d, and with p.

    Examples
    --------
    >>> p_dd, direction_dd = np.array([[0, 0.55], [0.55, 0]]), np.array([[0.5, 0.7], [0.3, 0.5]])
    >>> bool(worth_drawing(p_dd > 0.5, p_dd, direction_dd)[0, 1]), bool(worth_drawing(p_dd > 0.5, p_dd, p_dd > 0)[0, 1])
    (False, True)
    """
    return np.asarray(links_dd & (p_dd * (1 + np.maximum(direction_dd, direction_dd.T)) >= 1))


def _knots(knots_dd: BoolMatrix) -> list[Indices]:
    """Variables that lie on common cycles, as groups of two or more."""
    leaders = np.where(knots_dd.any(axis=1), knots_dd.argmax(axis=1), -1)
    return [np.flatnonzero(knots_dd[k]) for k in np.unique(leaders[leaders >= 0])]


def best_order(gain_kk: Matrix) -> list[int]:
    """An order of the variables of a knot in which the arrows from earlier to later ones gain most."""
    return _exact_order(gain_kk) if len(gain_kk) <= MOST_EXACT else _good_order(gain_kk)


def _exact_order(gain_kk: Matrix) -> list[int]:
    """The best of all orders: for every set of variables, the best way to put them first, from small sets to large."""
    k = len(gain_kk)
    sets = np.arange(1 << k)
    members = ((sets[:, None] >> np.arange(k)) & 1).astype(float)
    into = members @ gain_kk  # what a variable gains when exactly these come before it
    best, last = np.full(1 << k, -np.inf), np.zeros(1 << k, dtype=int)
    best[0] = 0.0
    for n in range(1, k + 1):
        some = sets[members.sum(axis=1) == n]
        for v in range(k):
            with_v = some[(some >> v) & 1 == 1]
            before = with_v ^ (1 << v)
            value = best[before] + into[before, v]
            better = value > best[with_v] + 1e-12
            best[with_v[better]], last[with_v[better]] = value[better], v
    order, rest = [], (1 << k) - 1
    while rest:
        order.append(int(last[rest]))
        rest ^= 1 << order[-1]
    return order[::-1]


def _good_order(gain_kk: Matrix) -> list[int]:
    """Who gains most goes first, parents by known arrows before their children; then one at a time is moved."""
    order = list[int]()
    known_kk = gain_kk >= KNOWN
    net, n_known = gain_kk.sum(axis=1), known_kk.sum(axis=0)  # over those that are left
    is_left = np.ones(len(gain_kk), dtype=bool)
    while is_left.any():
        first = int(np.where(is_left & (n_known == 0), net.round(9), -np.inf).argmax())  # so that ties are ties
        order.append(first)
        is_left[first] = False
        net, n_known = net - gain_kk[:, first], n_known - known_kk[first]
    for _ in range(len(order)):
        moved = [_move(gain_kk, order, v) for v in list(order)]
        if not any(moved):
            break
    return order


def _move(gain_kk: Matrix, order: list[int], v: int) -> bool:
    """Put one variable where it gains most among the others; whether it moved."""
    place = order.index(v)
    others = order[:place] + order[place + 1 :]
    steps = np.cumsum(gain_kk[others, v] - gain_kk[v, others])
    gains = np.concatenate([[0.0], steps]).round(9)  # behind 0, 1, … of the others
    best = int(gains.argmax())
    if gains[best] <= gains[place] + 1e-9:
        return False
    order[:] = [*others[:best], v, *others[best:]]
    return True
