"""Meek's four rules: which undirected edges are decided by the directed ones.

Each rule looks for one pattern and returns the arrows it forces, because the other direction would close a
cycle or add a v-structure [1]_. R1–R3 turn a skeleton with its v-structures into the CPDAG; R4 is needed once
background knowledge has directed further edges. Together they are complete: every edge they leave undirected
can still point either way. Adjacency matrices follow the convention in `graphbam.graphs.graph`.

References
----------
.. [1] Meek, Causal inference and causal explanation with background knowledge, UAI 1995.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphbam.errors import GraphError, KnowledgeError
from graphbam.graphs.graph import check_adjacency, consistent_extension

__all__ = ["apply_knowledge", "close_under_meek", "rule_1", "rule_2", "rule_3", "rule_4"]

BoolMatrix = NDArray[np.bool_]
Arrow = tuple[int, int]


# ── the rules ─────────────────────────────────────────────────────────────────────────────────────────────


def rule_1(pdag: ArrayLike) -> BoolMatrix:
    """R1: from a → b — c with a, c not adjacent follows b → c, or b would be a new collider.

    Parameters
    ----------
    pdag : array_like, shape (d, d)
        A partially directed graph.

    Returns
    -------
    ndarray of bool, shape (d, d)
        True at [b, c] for each undirected edge that must become b → c. The other rules return the same.

    Examples
    --------
    >>> np.argwhere(rule_1([[0, 1, 0], [0, 0, 1], [0, 1, 0]])).tolist()  # 0 → 1 — 2
    [[1, 2]]
    """
    arrows, links, apart = _parts(pdag)
    return links & _joined(arrows.T, apart)


def rule_2(pdag: ArrayLike) -> BoolMatrix:
    """R2: from a → b → c and a — c follows a → c, or there would be a cycle.

    Examples
    --------
    >>> np.argwhere(rule_2([[0, 1, 1], [0, 0, 1], [1, 0, 0]])).tolist()  # 0 → 1 → 2, 0 — 2
    [[0, 2]]
    """
    arrows, links, _ = _parts(pdag)
    return links & _joined(arrows, arrows)


def rule_3(pdag: ArrayLike) -> BoolMatrix:
    """R3: from a — c → b, a — d → b and a — b with c, d not adjacent follows a → b.

    With b → a, both c → a and d → a would be needed against cycles, and a would be a new collider.

    Examples
    --------
    >>> pdag = [[0, 1, 1, 1], [1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0]]  # a, b, c, d = 0, 1, 2, 3
    >>> np.argwhere(rule_3(pdag)).tolist()
    [[0, 1]]
    """
    arrows, links, apart = _parts(pdag)
    a, b = np.nonzero(links)
    between = links[a] & arrows[:, b].T  # row e holds all c with a — c → b, for the e-th undirected edge
    return _arrows_at(links.shape, a, b, _joined(between, apart) & between)


def rule_4(pdag: ArrayLike) -> BoolMatrix:
    """R4: from a — d → c → b, a — c and a — b with d, b not adjacent follows a → b.

    With b → a, both c → a and d → a would be needed against cycles, and d → a ← b would be a new v-structure.

    Examples
    --------
    >>> pdag = [[0, 1, 1, 1], [1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0]]  # a, b, c, d = 0, 1, 2, 3
    >>> np.argwhere(rule_4(pdag)).tolist()
    [[0, 1]]
    """
    arrows, links, apart = _parts(pdag)
    a, b = np.nonzero(links)
    first = links[a] & apart[:, b].T  # row e holds all d with a — d and d, b not adjacent
    second = links[a] & arrows[:, b].T  # row e holds all c with a — c → b
    return _arrows_at(links.shape, a, b, _joined(first, arrows) & second)


RULES = (rule_1, rule_2, rule_3, rule_4)


def _parts(pdag: ArrayLike) -> tuple[BoolMatrix, BoolMatrix, BoolMatrix]:
    """Split into directed edges, undirected edges and pairs that are not adjacent."""
    edges = check_adjacency(pdag)
    apart = ~(edges | edges.T)
    np.fill_diagonal(apart, False)
    return edges & ~edges.T, edges & edges.T, apart


def _joined(first: BoolMatrix, second: BoolMatrix) -> BoolMatrix:
    """True at [i, k] if first[i, j] and second[j, k] for some j; floats reach the fast matrix product."""
    return (first.astype(np.float32) @ second.astype(np.float32)) > 0


def _arrows_at(shape: tuple[int, ...], a: NDArray[np.intp], b: NDArray[np.intp], found: BoolMatrix) -> BoolMatrix:
    """Place an arrow a → b for each row of `found` with anything in it."""
    arrows = np.zeros(shape, dtype=bool)
    arrows[a, b] = found.any(axis=1)
    return arrows


# ── to the fixed point ────────────────────────────────────────────────────────────────────────────────────


def close_under_meek(pdag: ArrayLike) -> NDArray[np.int8]:
    """Apply R1–R4 until nothing changes.

    Parameters
    ----------
    pdag : array_like, shape (d, d)
        A partially directed graph that holds all its v-structures as directed edges.

    Returns
    -------
    ndarray of int8, shape (d, d)
        The same graph with every edge directed that the rules decide. If some DAG extends `pdag`, these are
        all edges on which its extensions agree; `graphbam.graphs.graph.consistent_extension` finds out whether one
        does.

    Raises
    ------
    GraphError
        If the rules force both directions of one edge, so that no DAG extends the graph.

    Examples
    --------
    >>> close_under_meek([[0, 1, 0], [0, 0, 1], [0, 1, 0]])  # 0 → 1 — 2
    array([[0, 1, 0],
           [0, 0, 1],
           [0, 0, 0]], dtype=int8)
    """
    edges = check_adjacency(pdag)
    while (forced := _forced(edges)) is not None:
        _refuse_conflict(forced)
        edges &= ~forced.T
    return edges.astype(np.int8)


def _forced(edges: BoolMatrix) -> BoolMatrix | None:
    """Return what the first rule with anything to say forces, or None."""
    return next((forced for rule in RULES if (forced := rule(edges)).any()), None)


def _refuse_conflict(forced: BoolMatrix) -> None:
    both = np.argwhere(forced & forced.T)
    if len(both):
        a, b = both[0]
        raise GraphError(
            f"The directed edges force both {a} → {b} and {b} → {a}, so no DAG extends this graph; "
            f"remove that edge or one of the arrows near it."
        )


# ── background knowledge ──────────────────────────────────────────────────────────────────────────────────


def apply_knowledge(
    cpdag: ArrayLike,
    required: Iterable[Arrow] = (),
    forbidden: Iterable[Arrow] = (),
    names: Sequence[str] | None = None,
) -> NDArray[np.int8]:
    """Direct the edges that background knowledge decides, and all that follow.

    Parameters
    ----------
    cpdag : array_like, shape (d, d)
        A CPDAG, or any graph with a consistent extension.
    required : iterable of (int, int)
        Pairs (i, j): the edge between i and j points at j. It must exist.
    forbidden : iterable of (int, int)
        Pairs (i, j): no arrow from i to j. Says nothing where i and j are not adjacent.
    names : sequence of str, optional
        Names of the variables, for messages.

    Returns
    -------
    ndarray of int8, shape (d, d)
        The maximally directed graph: an edge is directed if all DAGs that `cpdag` stands for, and that agree
        with the knowledge, agree on it.

    Raises
    ------
    GraphError
        If no DAG extends `cpdag`.
    KnowledgeError
        If no such DAG agrees with the knowledge. The message names the first claim, required ones before
        forbidden ones, that those before it rule out.

    Notes
    -----
    Claims are added one at a time and R1–R4 applied after each. As the rules are complete, an edge that is
    still undirected may point either way. So a contradiction can only show as an arrow already set against
    the next claim; cycles and new v-structures cannot arise unnoticed.

    Examples
    --------
    >>> chain = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]  # 0 — 1 — 2
    >>> apply_knowledge(chain, required=[(0, 1)])
    array([[0, 1, 0],
           [0, 0, 1],
           [0, 0, 0]], dtype=int8)
    >>> apply_knowledge(chain, required=[(0, 1)], forbidden=[(1, 2)], names=["age", "dose", "effect"])
    Traceback (most recent call last):
    graphbam.errors.KnowledgeError: forbidden dose → effect: that arrow already follows from other knowledge \
(required age → dose); drop or correct one of these.
    """
    consistent_extension(cpdag)  # raises if the graph itself stands for nothing
    given = close_under_meek(cpdag)
    labels = _labels(names, len(given))
    claims = [*_claims("required", required, labels), *_claims("forbidden", forbidden, labels)]
    graph, used = given, list[str]()
    for claim in claims:
        _refuse_contradiction(claim, graph, given, used)
        if graph[claim.head, claim.tail]:
            graph = _direct(graph, claim)
            used.append(claim.text)
    return graph


class _Claim(NamedTuple):
    """An edge, if there is one, points from `tail` to `head`."""

    text: str
    tail: int
    head: int
    needs_edge: bool


def _claims(kind: str, pairs: Iterable[Arrow], labels: Sequence[str]) -> list[_Claim]:
    """Turn pairs into claims: to forbid i → j is to say that an edge, if any, points from j to i."""
    claims = []
    for pair in pairs:
        i, j = _check_pair(kind, pair, len(labels))
        text = f"{kind} {labels[i]} → {labels[j]}"
        claims.append(_Claim(text, i, j, True) if kind == "required" else _Claim(text, j, i, False))
    return claims


def _check_pair(kind: str, pair: Arrow, n_variables: int) -> Arrow:
    indices = [index for index in pair if 0 <= index < n_variables]
    if len(pair) != 2 or len(set(indices)) != 2:
        raise KnowledgeError(
            f"{kind} {tuple(pair)} is not a pair of variables; give two different numbers from 0 to {n_variables - 1}."
        )
    return indices[0], indices[1]


def _direct(graph: NDArray[np.int8], claim: _Claim) -> NDArray[np.int8]:
    """Direct one undirected edge, and all that follow."""
    directed = graph.copy()
    directed[claim.head, claim.tail] = 0
    return close_under_meek(directed)


def _refuse_contradiction(claim: _Claim, graph: NDArray[np.int8], given: NDArray[np.int8], used: Sequence[str]) -> None:
    """Say why a claim cannot hold: no edge, an arrow of the given graph, or one that other claims imply."""
    text, tail, head, needs_edge = claim
    adjacent = bool(graph[tail, head] or graph[head, tail])
    if needs_edge and not adjacent:
        raise KnowledgeError(f"{text}: the graph has no edge there; add the edge or drop the claim.")
    if graph[tail, head] or not adjacent:
        return
    arrow = "the opposite arrow" if needs_edge else "that arrow"
    if not given[tail, head]:
        raise KnowledgeError(
            f"{text}: {arrow} already follows from the given graph; drop the claim or correct the graph."
        )
    before = ", ".join(used[:5]) + (", …" if len(used) > 5 else "")
    raise KnowledgeError(
        f"{text}: {arrow} already follows from other knowledge ({before}); drop or correct one of these."
    )


def _labels(names: Sequence[str] | None, n_variables: int) -> Sequence[str]:
    if names is None:
        return [str(i) for i in range(n_variables)]
    if len(names) != n_variables:
        raise KnowledgeError(f"{len(names)} names for {n_variables} variables; pass one name for each.")
    return names
