"""Markov equivalence: the DAGs that fit the same tables, the CPDAG that stands for them, and the way back.

Meek's four rules say which undirected edges are decided by the directed ones. Each looks for one pattern and returns
the arrows it forces, because the other direction would close a cycle or add a v-structure [1]_. R1–R3 turn a skeleton
with its v-structures into the CPDAG; R4 is needed once background knowledge has directed further edges. Together they
are complete: every edge they leave undirected can still point either way.

A DAG *extends* a partially directed graph if it keeps the arrows and directs the undirected edges without a cycle or a
new v-structure. Adjacency matrices follow the convention in `graphbam.graphs.graph`.

References
----------
.. [1] Meek, Causal inference and causal explanation with background knowledge, UAI 1995.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphbam.errors import GraphError, KnowledgeError
from graphbam.graphs.graph import Adjacency, BoolMatrix, check_adjacency, find_obstacle, topological_order

__all__ = [
    "apply_knowledge",
    "close_under_meek",
    "consistent_extension",
    "dag_to_cpdag",
    "direct_told",
    "is_cpdag",
    "rule_1",
    "rule_2",
    "rule_3",
    "rule_4",
    "sample_dags",
]

Arrow: TypeAlias = tuple[int, int]


# ── DAGs and their classes ────────────────────────────────────────────────────────────────────────────────────


def dag_to_cpdag(dag: ArrayLike) -> Adjacency:
    """Complete a DAG to the CPDAG of its Markov equivalence class.

    Parameters
    ----------
    dag : array_like, shape (d, d)
        A DAG.

    Returns
    -------
    ndarray of int8, shape (d, d)
        An edge is directed if all DAGs of the class agree on it, and undirected otherwise.

    Raises
    ------
    GraphError
        If `dag` is not a DAG.

    Notes
    -----
    Labels all edges into a variable at once, variable after variable in topological order; the latest parent
    decides [1]_. Time O(d²).

    References
    ----------
    .. [1] Chickering, A transformational characterization of equivalent Bayesian network structures,
       UAI 1995.

    Examples
    --------
    In 0 → 2 ← 1, 2 → 3 everything is compelled; in 0 → 1 → 2 nothing is:

    >>> dag_to_cpdag([[0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
    array([[0, 0, 1, 0],
           [0, 0, 1, 0],
           [0, 0, 0, 1],
           [0, 0, 0, 0]], dtype=int8)
    >>> dag_to_cpdag([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    array([[0, 1, 0],
           [1, 0, 1],
           [0, 1, 0]], dtype=int8)
    """
    edges = check_adjacency(dag)
    order = topological_order(edges)
    reversible = edges & ~_compelled(edges, order)
    return (edges | reversible.T).astype(np.int8)


def _compelled(edges: BoolMatrix, order: NDArray[np.int64]) -> BoolMatrix:
    """Mark the edges that point the same way in every equivalent DAG."""
    compelled = np.zeros_like(edges)
    for child in order:
        parents = edges[:, child]
        if not parents.any():
            continue
        latest = order[parents[order]][-1]
        inherited = compelled[:, latest]  # arrows that are known to point into the latest parent
        unmarried = parents & ~edges[:, latest]
        unmarried[latest] = False
        if unmarried.any() or (inherited & ~parents).any():
            compelled[:, child] = parents
        else:
            compelled[:, child] = inherited
    return compelled


def consistent_extension(pdag: ArrayLike) -> Adjacency:
    """Direct the undirected edges so that a DAG results and no v-structure is added.

    Parameters
    ----------
    pdag : array_like, shape (d, d)
        A partially directed graph, such as a CPDAG.

    Returns
    -------
    ndarray of int8, shape (d, d)
        A DAG with the same skeleton, the same v-structures and all directed edges of `pdag`.

    Raises
    ------
    GraphError
        If there is no such DAG; the message names the variables that remain unresolved.

    Notes
    -----
    Takes sinks away one by one [1]_. Being a possible sink depends on neighbours only and is never lost, so
    after each step only the neighbours of the last sink are looked at again.

    References
    ----------
    .. [1] Dor and Tarsi, A simple algorithm to construct a consistent extension of a partially oriented
       graph, UCLA technical report R-185, 1992.

    Examples
    --------
    >>> consistent_extension([[0, 1, 0], [1, 0, 1], [0, 1, 0]])  # 0 — 1 — 2, and 0 → 1 ← 2 is not allowed
    array([[0, 0, 0],
           [1, 0, 0],
           [0, 1, 0]], dtype=int8)
    """
    edges = check_adjacency(pdag)
    dag, remaining = _remove_sinks(edges)
    if len(remaining):
        raise GraphError(f"No DAG extends this graph: {_describe_deadlock(edges, remaining)}.")
    return dag.astype(np.int8)


def _remove_sinks(edges: BoolMatrix) -> tuple[BoolMatrix, NDArray[np.int64]]:
    """Direct edges into one possible sink after another; return the result and the variables left over."""
    dag, rest = edges.copy(), edges.copy()
    waiting = list(range(len(edges)))[::-1]
    left = np.ones(len(edges), dtype=bool)
    while waiting:
        sink = waiting.pop()
        if not left[sink] or not _can_be_sink(rest, sink):
            continue
        left[sink] = False
        dag[sink] &= ~rest[sink]
        waiting.extend(np.flatnonzero(rest[:, sink]).tolist())
        rest[sink] = rest[:, sink] = False
    return dag, np.flatnonzero(left)


def _can_be_sink(edges: BoolMatrix, node: int) -> bool:
    """Tell whether all edges of `node` can point at it without adding a v-structure."""
    outgoing, incoming = edges[node], edges[:, node]
    if (outgoing & ~incoming).any():
        return False
    linked, around = np.flatnonzero(outgoing), np.flatnonzero(incoming)
    block = np.ix_(linked, around)
    return bool((edges[block] | edges.T[block] | (linked[:, None] == around)).all())


def _describe_deadlock(edges: BoolMatrix, remaining: NDArray[np.int64]) -> str:
    if obstacle := find_obstacle(edges & ~edges.T):
        return obstacle
    some = ", ".join(map(str, remaining[:8])) + (", …" if len(remaining) > 8 else "")
    return (
        f"every way to direct the undirected edges among variables {some} makes a cycle or a new "
        "v-structure; remove or direct edges there"
    )


def is_cpdag(adj: ArrayLike) -> bool:
    """Tell whether a graph stands for a whole Markov equivalence class.

    Parameters
    ----------
    adj : array_like, shape (d, d)
        Any graph.

    Returns
    -------
    bool
        True if `adj` is what `dag_to_cpdag` makes of some DAG.

    Examples
    --------
    >>> is_cpdag([[0, 1], [1, 0]]), is_cpdag([[0, 1], [0, 0]])
    (True, False)
    """
    edges = check_adjacency(adj)
    dag, remaining = _remove_sinks(edges)
    return not len(remaining) and bool(np.array_equal(dag_to_cpdag(dag), edges))


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


def close_under_meek(pdag: ArrayLike) -> Adjacency:
    """Apply R1–R4 until nothing changes.

    Parameters
    ----------
    pdag : array_like, shape (d, d)
        A partially directed graph that holds all its v-structures as directed edges.

    Returns
    -------
    ndarray of int8, shape (d, d)
        The same graph with every edge directed that the rules decide. If some DAG extends `pdag`, these are
        all edges on which its extensions agree; `consistent_extension` finds out whether one does.

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


def direct_told(dag: ArrayLike, told_dd: NDArray[np.bool_]) -> Adjacency:
    """The CPDAG of a DAG, with its own arrows where they are told as well, and all that follows from these.

    Where the links are told of which an experiment set one end without the other, this is the class of DAGs that the
    experiment cannot tell from this one (Hauser and Bühlmann, 2012).

    Examples
    --------
    >>> chain, told = np.diag([1, 1], 1), np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=bool)
    >>> direct_told(chain, told).tolist(), direct_told(chain, ~told & False).tolist()
    ([[0, 1, 0], [0, 0, 1], [0, 0, 0]], [[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    """
    return close_under_meek(np.where(told_dd, dag, dag_to_cpdag(dag)))


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
) -> Adjacency:
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
            graph = _direct(graph, claim.tail, claim.head)
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


def _refuse_contradiction(claim: _Claim, graph: Adjacency, given: Adjacency, used: Sequence[str]) -> None:
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


# ── the DAGs of a class ───────────────────────────────────────────────────────────────────────────────────────────


FEW_MEMBERS = 200
"""Parts of a class with at most so many DAGs are listed, so that `sample_dags` draws from them uniformly."""


def sample_dags(cpdag: ArrayLike, n: int, rng: np.random.Generator) -> Adjacency:
    """Draw DAGs from those that a graph stands for.

    Parameters
    ----------
    cpdag : array_like, shape (d, d)
        A CPDAG, or a graph made of one by background knowledge.
    n : int
        Number of DAGs.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of int8, shape (n, d, d)
        Consistent extensions of `cpdag`, drawn with replacement.

    Raises
    ------
    GraphError
        If no DAG extends `cpdag`.

    Notes
    -----
    Parts joined by undirected edges are independent: whatever is chosen in one, R1–R4 never reach another. As the
    rules are complete, to choose one direction, to apply them, and to go on until all edges are directed ends in an
    extension, and leads to each. A part with at most 200 members (all trees of up to 200 variables, all of up to
    five) is listed and drawn from uniformly. In a larger part a random undirected edge is given a random direction and
    R1–R4 are applied, until none is left; every member can come out, but not all with the same probability.

    Examples
    --------
    >>> dags = sample_dags([[0, 1], [1, 0]], 1000, np.random.default_rng(0))
    >>> dags.shape, bool(450 < dags[:, 0, 1].sum() < 550)
    ((1000, 2, 2), True)
    """
    consistent_extension(cpdag)  # raises if the graph stands for nothing
    closed = close_under_meek(cpdag)
    dags = np.repeat(closed[None], n, axis=0)
    for nodes in _undirected_parts(closed):
        block = np.ix_(nodes, nodes)
        part = closed[block]
        members = list(islice(_members(part), FEW_MEMBERS + 1))
        for dag in dags:
            few = len(members) <= FEW_MEMBERS
            dag[block] = members[rng.integers(len(members))] if few else _random_member(part, rng)
    return dags


def _undirected_parts(pdag: Adjacency) -> Iterator[NDArray[np.int64]]:
    """Yield the variables of each part that undirected edges join."""
    links = (pdag & pdag.T) > 0
    todo = links.any(axis=0)
    while todo.any():
        part = np.zeros(len(pdag), dtype=bool)
        part[todo.argmax()] = True
        while not np.array_equal(part, grown := part | links[part].any(axis=0)):
            part = grown
        todo &= ~part
        yield np.flatnonzero(part)


def _members(pdag: Adjacency) -> Iterator[Adjacency]:
    """Yield all DAGs that a closed graph stands for."""
    links = np.argwhere(pdag & pdag.T)
    if not len(links):
        yield pdag
        return
    a, b = links[0]
    yield from _members(_direct(pdag, a, b))
    yield from _members(_direct(pdag, b, a))


def _random_member(pdag: Adjacency, rng: np.random.Generator) -> Adjacency:
    while len(links := np.argwhere(pdag & pdag.T)):
        pdag = _direct(pdag, *links[rng.integers(len(links))])
    return pdag


def _direct(pdag: Adjacency, tail: int, head: int) -> Adjacency:
    """Direct one undirected edge, and all that follow."""
    result = pdag.copy()
    result[head, tail] = 0
    return close_under_meek(result)
