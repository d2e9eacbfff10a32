"""Graphs as small integer matrices, and the questions asked of them.

The convention, stated here once and used everywhere: an adjacency matrix of d variables has shape (d, d),
holds only 0 and 1, has a zero diagonal, and

=============  =============  ==============================
``adj[i, j]``  ``adj[j, i]``  between variables i and j
=============  =============  ==============================
0              0              no edge
1              0              i → j, directed
1              1              i — j, undirected
=============  =============  ==============================

A *DAG* has directed edges only and no cycle. A *PDAG* mixes directed and undirected edges. A *CPDAG* is the
PDAG that stands for all DAGs with the same conditional independences: an edge is directed where they all
agree. A *v-structure* is a → c ← b where a and b are not adjacent.

Functions take anything that converts to such a matrix and return new int8 arrays; `Graph` adds names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphbam.errors import GraphError

__all__ = [
    "Graph",
    "ancestors",
    "check_adjacency",
    "d_separated",
    "directed_part",
    "edge_classes",
    "find_obstacle",
    "is_dag",
    "moral_graph",
    "skeleton",
    "topological_order",
    "undirected_part",
    "v_structures",
]

NONE, SKELETON, MORAL = 0, 1, 2
"""The three edge classes: no edge, adjacent, and not adjacent but with a common child."""

Vector: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]
Matrix: TypeAlias = NDArray[np.float64]
BoolMatrix: TypeAlias = NDArray[np.bool_]
Adjacency: TypeAlias = NDArray[np.int8]


# ── the door ──────────────────────────────────────────────────────────────────────────────────────────────


def check_adjacency(adj: ArrayLike) -> BoolMatrix:
    """Return `adj` as a boolean matrix, or say what is wrong with it.

    Parameters
    ----------
    adj : array_like, shape (d, d)
        Numbers or booleans, each 0 or 1, with a zero diagonal.

    Returns
    -------
    ndarray of bool, shape (d, d)
        A copy.

    Raises
    ------
    GraphError
        If the matrix is not square, holds another value, or has a variable pointing at itself.

    Examples
    --------
    >>> check_adjacency([[0, 1], [0, 0]])
    array([[False,  True],
           [False, False]])
    >>> check_adjacency([[0, 0.3], [0, 0]])
    Traceback (most recent call last):
    graphbam.errors.GraphError: adjacency[0, 1] is 0.3; entries must be 0 or 1: apply a threshold first.
    """
    matrix = np.asarray(adj)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise GraphError(f"adjacency has shape {matrix.shape}; it must be square: one row and one column each.")
    if matrix.dtype.kind in "US":
        raise GraphError(f"adjacency holds text (first: {matrix.flat[0]!r}); entries must be the numbers 0 or 1.")
    edges: BoolMatrix = np.equal(matrix, 1)
    strange = np.argwhere(~edges & (matrix != 0))
    if len(strange):
        i, j = strange[0]
        raise GraphError(f"adjacency[{i}, {j}] is {matrix[i, j]}; entries must be 0 or 1: apply a threshold first.")
    if edges.diagonal().any():
        i = int(edges.diagonal().argmax())
        raise GraphError(f"adjacency[{i}, {i}] is 1: a variable cannot point at itself; clear the diagonal.")
    return edges


# ── parts of a graph ──────────────────────────────────────────────────────────────────────────────────────


def directed_part(adj: ArrayLike) -> Adjacency:
    """Keep only the directed edges.

    Examples
    --------
    >>> directed_part([[0, 1, 0], [1, 0, 1], [0, 0, 0]])  # 0 — 1 → 2
    array([[0, 0, 0],
           [0, 0, 1],
           [0, 0, 0]], dtype=int8)
    """
    edges = check_adjacency(adj)
    return (edges & ~edges.T).astype(np.int8)


def undirected_part(adj: ArrayLike) -> Adjacency:
    """Keep only the undirected edges.

    Examples
    --------
    >>> undirected_part([[0, 1, 0], [1, 0, 1], [0, 0, 0]])  # 0 — 1 → 2
    array([[0, 1, 0],
           [1, 0, 0],
           [0, 0, 0]], dtype=int8)
    """
    edges = check_adjacency(adj)
    return (edges & edges.T).astype(np.int8)


def skeleton(adj: ArrayLike) -> Adjacency:
    """Forget all directions.

    Parameters
    ----------
    adj : array_like, shape (d, d)
        Any graph.

    Returns
    -------
    ndarray of int8, shape (d, d)
        Symmetric: 1 where two variables are adjacent.

    Examples
    --------
    >>> skeleton([[0, 1], [0, 0]])
    array([[0, 1],
           [1, 0]], dtype=int8)
    """
    edges = check_adjacency(adj)
    return (edges | edges.T).astype(np.int8)


def edge_classes(dag: Any) -> Any:
    """Sort every pair of variables into one of three classes.

    Parameters
    ----------
    dag : array_like, shape (d, d), or torch tensor, shape (..., d, d)
        A DAG, or a batch of them as a tensor, which is not checked. A CPDAG gives the same answer as each of its DAGs,
        since they share all v-structures.

    Returns
    -------
    ndarray of int8 or tensor of int64, of the same shape
        Symmetric with zero diagonal: 1 where two variables are adjacent (*skeleton*), 2 where they are not
        but have a common child (*moral*), 0 elsewhere (*none*).

    Examples
    --------
    The parents 0 and 1 of a collider are not adjacent, but the child 2 marries them:

    >>> edge_classes([[0, 0, 1], [0, 0, 1], [0, 0, 0]])
    array([[0, 2, 1],
           [2, 0, 1],
           [1, 1, 0]], dtype=int8)
    """
    is_tensor = hasattr(dag, "detach")
    edges = dag > 0 if is_tensor else check_adjacency(dag)
    back = edges.swapaxes(-1, -2)
    adjacent = edges | back
    arrows = 1.0 * (edges & ~back)  # floats, because only they reach the fast matrix product
    married = (arrows @ arrows.swapaxes(-1, -2) > 0) & ~adjacent
    classes = SKELETON * adjacent + MORAL * married
    everyone = list(range(edges.shape[-1]))
    classes[..., everyone, everyone] = NONE  # every parent has a child in common with itself
    return classes if is_tensor else classes.astype(np.int8)


def moral_graph(dag: ArrayLike) -> Adjacency:
    """Marry all parents of a common child, then forget all directions.

    Parameters
    ----------
    dag : array_like, shape (d, d)
        A DAG or its CPDAG: both have the same moral graph.

    Returns
    -------
    ndarray of int8, shape (d, d)
        Symmetric: the skeleton and one edge more for each pair of parents that were not adjacent.

    Examples
    --------
    >>> moral_graph([[0, 0, 1], [0, 0, 1], [0, 0, 0]])
    array([[0, 1, 1],
           [1, 0, 1],
           [1, 1, 0]], dtype=int8)
    """
    return np.asarray(edge_classes(check_adjacency(dag)) != NONE, dtype=np.int8)


def v_structures(adj: ArrayLike) -> NDArray[np.int64]:
    """List all a → c ← b with a and b not adjacent.

    Parameters
    ----------
    adj : array_like, shape (d, d)
        Any graph; only its directed edges form v-structures.

    Returns
    -------
    ndarray of int64, shape (n, 3)
        Rows (a, c, b) with the collider in the middle and a < b, in increasing order.

    Examples
    --------
    >>> v_structures([[0, 0, 1], [0, 0, 1], [0, 0, 0]])
    array([[0, 2, 1]])
    """
    edges = check_adjacency(adj)
    arrows, apart = edges & ~edges.T, np.triu(~(edges | edges.T), k=1)
    found = [np.empty((0, 3), dtype=np.int64)]
    for c in range(len(edges)):
        parents = np.flatnonzero(arrows[:, c])
        a, b = parents[np.argwhere(apart[np.ix_(parents, parents)]).T]
        found.append(np.stack([a, np.full_like(a, c), b], axis=1))
    return np.unique(np.concatenate(found), axis=0)  # unique already; this sorts the rows


# ── order and cycles ──────────────────────────────────────────────────────────────────────────────────────


def is_dag(adj: ArrayLike) -> bool:
    """Tell whether all edges are directed and none of them closes a cycle.

    Examples
    --------
    >>> is_dag([[0, 1], [0, 0]]), is_dag([[0, 1], [1, 0]])
    (True, False)
    """
    edges = check_adjacency(adj)
    return len(_peel_sources(edges)) == len(edges)


def topological_order(adj: ArrayLike) -> NDArray[np.int64]:
    """Order the variables so that parents come before their children.

    Parameters
    ----------
    adj : array_like, shape (d, d)
        A DAG.

    Returns
    -------
    ndarray of int64, shape (d,)
        The variables in layers: those without parents, then those whose parents have been named, and so on.

    Raises
    ------
    GraphError
        If the graph has an undirected edge or a cycle; the message names one.

    Examples
    --------
    >>> topological_order([[0, 0, 0], [1, 0, 0], [1, 1, 0]])
    array([2, 1, 0])
    """
    edges = check_adjacency(adj)
    order = _peel_sources(edges)
    if len(order) < len(edges):
        raise GraphError(f"Not a DAG: {find_obstacle(edges)}.")
    return order


def ancestors(dag: ArrayLike) -> BoolMatrix:
    """Who comes before whom.

    Parameters
    ----------
    dag : array_like, shape (d, d)
        A DAG.

    Returns
    -------
    ndarray of bool, shape (d, d)
        True at [i, j] if arrows lead from i to j, or i is j.

    Examples
    --------
    >>> ancestors([[0, 1, 0], [0, 0, 1], [0, 0, 0]]).astype(int)
    array([[1, 1, 1],
           [0, 1, 1],
           [0, 0, 1]])
    """
    edges = check_adjacency(dag)
    before = np.eye(len(edges), dtype=bool)
    for node in topological_order(edges)[::-1]:
        before[node] |= before[edges[node]].any(axis=0)
    return before


def reachable(arrows_dd: BoolMatrix) -> BoolMatrix:
    """Whether a path of one arrow or more leads from i to j; unlike in `ancestors`, there may be cycles.

    Examples
    --------
    >>> reachable(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=bool)).astype(int)
    array([[0, 1, 1],
           [0, 0, 1],
           [0, 0, 0]])
    """
    reaches_dd = np.asarray(arrows_dd, dtype=bool)
    while True:
        steps_dd = reaches_dd.astype(np.float32)
        further_dd = reaches_dd | (steps_dd @ steps_dd > 0)
        if np.array_equal(further_dd, reaches_dd):
            return reaches_dd
        reaches_dd = further_dd


def d_separated(dag: ArrayLike, a: int, b: int, given: Iterable[int] = ()) -> bool:
    """Whether a DAG says that two variables are independent given others.

    They are if no path joins them in the moral graph of the two, the given ones and all their ancestors, once the given
    ones are taken out.

    Examples
    --------
    In 0 → 2 ← 1 the two causes are independent, until their child is known:

    >>> collider = [[0, 0, 1], [0, 0, 1], [0, 0, 0]]
    >>> d_separated(collider, 0, 1), d_separated(collider, 0, 1, [2])
    (True, False)
    """
    edges, held = check_adjacency(dag), list(given)
    concerned = np.asarray(ancestors(edges)[:, [a, b, *held]].any(axis=1))
    edges = edges & concerned & concerned[:, None]
    joined = edges | edges.T | (edges.astype(np.int64) @ edges.T.astype(np.int64) > 0)
    joined[held] = joined[:, held] = False
    reached = np.zeros(len(edges), dtype=bool)
    reached[a] = True
    while not np.array_equal(reached, grown := reached | joined[reached].any(axis=0)):
        reached = grown
    return not reached[b]


def find_obstacle(adj: ArrayLike) -> str | None:
    """Say what keeps a graph from being a DAG; None if nothing does.

    Examples
    --------
    >>> find_obstacle([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    'it has the cycle 0 → 1 → 2 → 0; remove one of these edges'
    """
    edges = check_adjacency(adj)
    both = np.argwhere(edges & edges.T)
    if len(both):
        return f"{both[0][0]} — {both[0][1]} is undirected; choose a direction, e.g. with consistent_extension"
    order = _peel_sources(edges)
    if len(order) == len(edges):
        return None
    return f"it has the cycle {' → '.join(map(str, _find_cycle(edges, order)))}; remove one of these edges"


def _peel_sources(edges: BoolMatrix) -> NDArray[np.int64]:
    """Take variables without parents away, layer by layer, as long as there are any."""
    waiting_for = edges.sum(axis=0)
    order: list[int] = []
    layer = np.flatnonzero(waiting_for == 0)
    while len(layer):
        order.extend(layer.tolist())
        waiting_for -= edges[layer].sum(axis=0)
        waiting_for[layer] = -1
        layer = np.flatnonzero(waiting_for == 0)
    return np.array(order, dtype=np.int64)


def _find_cycle(edges: BoolMatrix, order: NDArray[np.int64]) -> list[int]:
    """Walk from child to parent outside `order`, where every variable has a parent, until the walk closes."""
    outside = np.ones(len(edges), dtype=bool)
    outside[order] = False
    walk = [int(outside.argmax())]
    while walk[-1] not in walk[:-1]:
        walk.append(int((edges[:, walk[-1]] & outside).argmax()))
    return walk[walk.index(walk[-1]) :][::-1]


# ── a graph with names ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """Variables with names, and the edges between them.

    Parameters
    ----------
    names : iterable of str
        One name for each variable, no two alike; kept as a tuple.
    adjacency : array_like, shape (d, d)
        Edges, in the convention of this module; kept as a read-only int8 copy.

    Raises
    ------
    GraphError
        If the adjacency is not one, or the names are not unique or not d in number.

    Examples
    --------
    >>> graph = Graph(["rain", "sprinkler", "wet"], [[0, 0, 1], [0, 0, 1], [0, 0, 0]])
    >>> graph
    Graph(3 variables: rain → wet, sprinkler → wet)
    >>> graph.moral_graph().undirected_edges()
    [('rain', 'sprinkler'), ('rain', 'wet'), ('sprinkler', 'wet')]
    """

    names: tuple[str, ...]
    adjacency: Adjacency

    def __post_init__(self) -> None:
        adjacency = check_adjacency(self.adjacency).astype(np.int8)
        adjacency.setflags(write=False)
        object.__setattr__(self, "adjacency", adjacency)
        object.__setattr__(self, "names", _check_names(self.names, len(adjacency)))

    @property
    def n_variables(self) -> int:
        """Number d of variables."""
        return len(self.names)

    def directed_edges(self) -> list[tuple[str, str]]:
        """List (cause, effect) for each directed edge.

        Examples
        --------
        >>> Graph(["a", "b", "c"], [[0, 1, 0], [0, 0, 1], [0, 1, 0]]).directed_edges()  # a → b — c
        [('a', 'b')]
        """
        return self._named(directed_part(self.adjacency))

    def undirected_edges(self) -> list[tuple[str, str]]:
        """List each undirected edge once, in the order of the names.

        Examples
        --------
        >>> Graph(["a", "b", "c"], [[0, 1, 0], [0, 0, 1], [0, 1, 0]]).undirected_edges()  # a → b — c
        [('b', 'c')]
        """
        return self._named(np.triu(undirected_part(self.adjacency)))

    def _named(self, edges: Adjacency) -> list[tuple[str, str]]:
        return [(self.names[i], self.names[j]) for i, j in np.argwhere(edges)]

    def is_dag(self) -> bool:
        """Tell whether all edges are directed and none closes a cycle."""
        return is_dag(self.adjacency)

    def skeleton(self) -> Graph:
        """Forget all directions."""
        return Graph(self.names, skeleton(self.adjacency))

    def moral_graph(self) -> Graph:
        """Marry the parents of common children and forget all directions."""
        return Graph(self.names, moral_graph(self.adjacency))

    def to_cpdag(self) -> Graph:
        """Give the CPDAG of the equivalence class this graph belongs to.

        A DAG is completed; a CPDAG stays as it is; of another partially directed graph a consistent extension
        is taken first.

        Raises
        ------
        GraphError
            If the graph has a cycle, or no DAG extends it.

        Examples
        --------
        >>> Graph(["a", "b", "c"], [[0, 1, 0], [0, 0, 1], [0, 0, 0]]).to_cpdag()
        Graph(3 variables: a — b, b — c)
        """
        from graphbam.graphs.equivalence import consistent_extension, dag_to_cpdag

        return Graph(self.names, dag_to_cpdag(consistent_extension(self.adjacency)))

    def to_dag(self) -> Graph:
        """Direct the undirected edges without a cycle or a new v-structure; always the same DAG.

        Raises
        ------
        GraphError
            If no DAG extends the graph.

        Examples
        --------
        >>> Graph(["a", "b", "c"], [[0, 1, 0], [1, 0, 1], [0, 1, 0]]).to_dag()
        Graph(3 variables: b → a, c → b)
        """
        from graphbam.graphs.equivalence import consistent_extension

        return Graph(self.names, consistent_extension(self.adjacency))

    def to_networkx(self) -> Any:
        """Convert to networkx.

        Returns
        -------
        networkx.DiGraph or networkx.Graph
            A ``DiGraph`` if any edge is directed, with both arcs for an undirected edge; else a ``Graph``.

        Examples
        --------
        >>> Graph(["a", "b"], [[0, 1], [0, 0]]).to_networkx().edges
        OutEdgeView([('a', 'b')])
        """
        import networkx as nx

        kind = nx.DiGraph if directed_part(self.adjacency).any() else nx.Graph
        result = kind()
        result.add_nodes_from(self.names)
        result.add_edges_from(self._named(self.adjacency))
        return result

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return self.names == other.names and np.array_equal(self.adjacency, other.adjacency)

    def __hash__(self) -> int:
        return hash((self.names, self.adjacency.tobytes()))

    def __reduce__(self) -> tuple[type[Graph], tuple[tuple[str, ...], Adjacency]]:
        return Graph, (self.names, self.adjacency)  # rebuilt by the constructor, so a copy is read-only too

    def _repr_html_(self) -> str:
        from graphbam.output.report import render_graph_card

        return render_graph_card(self)

    def __repr__(self) -> str:
        edges = [f"{a} → {b}" for a, b in self.directed_edges()]
        edges += [f"{a} — {b}" for a, b in self.undirected_edges()]
        shown = edges[:8] + ([f"… {len(edges) - 8} more"] if len(edges) > 8 else [])
        return one_line(f"Graph({self.n_variables} variables: {', '.join(shown) or 'no edges'})")


def one_line(text: str) -> str:
    r"""A name or a sentence on one line: line breaks, and blanks beside them, become a blank.

    Examples
    --------
    >>> one_line("dose  \r\n[mg]")
    'dose [mg]'
    """
    return re.sub(r"\s*[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]\s*", " ", text)


def _check_names(names: Iterable[str], n_variables: int) -> tuple[str, ...]:
    """Return the names as a tuple, or say what is wrong with them."""
    if isinstance(names, str):
        raise GraphError(f"names is the text {names!r}; pass a list with one name for each variable.")
    result = tuple(names)
    for i, name in enumerate(result):
        if not isinstance(name, str):
            raise GraphError(f"names[{i}] is {name!r}, not text; convert it with str().")
    if len(result) != n_variables:
        raise GraphError(f"{len(result)} names for {n_variables} variables; pass one name for each row.")
    if len(set(result)) < len(result):
        twice = next(name for i, name in enumerate(result) if name in result[:i])
        raise GraphError(f"the name {twice!r} is used {result.count(twice)} times; rename all but one.")
    return result
