"""From probabilities to a CPDAG that is one, whatever the numbers.

Two kinds of evidence come in. Edge probabilities say for each pair how likely *none*, *skeleton* and *moral* are;
collider claims say for a pair a, b and a common neighbour c how likely a → c ← b is. They may contradict each
other, and mostly do. The way out is to build a DAG first and to complete it afterwards: ::

    p_dd3 ── structures ──▸ second network ──▸ colliders
      │                                           │
      └────────────────── decide ─────────────────┘      choose a skeleton, then
                             │
         accept colliders, likeliest first ▸ direct the rest, cheapest sink first ▸ DAG ▸ CPDAG

The CPDAG of a DAG is always valid; the evidence only decides which DAG it is. If some DAG has exactly the
accepted colliders, that DAG's CPDAG results.

Everything is by index: variables are 0 … d−1. Prior knowledge comes as *forbidden arrows*, a (d, d) matrix of
booleans or a function of two indices; to require i → j is to forbid j → i on an edge that exists. With names:

>>> from graphbam.knowledge import Knowledge
>>> names, known = ["dose", "age", "effect"], Knowledge(required=["dose -> effect"])
>>> forbidden = [[known.forbids(a, b) or (b, a) in known.arrows() for b in names] for a in names]

Intended use, with `collider_net` as the second network:

>>> import numpy as np
>>> def collider_net(asked):  # one probability for each candidate
...     return [np.full(len(s.candidates), 0.9) for s in asked]
>>> p_dd3 = np.full((3, 3, 3), [0.1, 0.9, 0.0])
>>> p_dd3[0, 1] = p_dd3[1, 0] = [0.1, 0.0, 0.9]
>>> asked = structures(p_dd3)
>>> decided = decide(p_dd3, claim_table(asked, collider_net(asked)))
>>> decided.adjacency  # 0 → 2 ← 1
array([[0, 0, 1],
       [0, 0, 1],
       [0, 0, 0]], dtype=int8)
>>> float(decided.arrow_probability_dd[0, 2])
0.9
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphbam.edges import choose_pairs, tidy_probabilities
from graphbam.errors import ConfigError, GraphError, KnowledgeError
from graphbam.graph import (
    MORAL,
    SKELETON,
    check_adjacency,
    consistent_extension,
    dag_to_cpdag,
    is_dag,
    skeleton,
    topological_order,
)
from graphbam.meek import close_under_meek

__all__ = [
    "Orientation",
    "Structure",
    "arrow_probabilities",
    "claim_table",
    "decide",
    "expected_shd",
    "orient",
    "sample_dags",
    "structures",
    "to_dag",
]

BoolMatrix: TypeAlias = NDArray[np.bool_]
Matrix: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]
Triple: TypeAlias = tuple[int, int, int]
Forbidden: TypeAlias = ArrayLike | Callable[[int, int], bool]

CLAIM = np.dtype([("a", np.int64), ("c", np.int64), ("b", np.int64), ("probability", np.float64)])
"""One collider claim: how likely a → c ← b is."""

SUPPORT_FROM = 0.2
"""Edges less likely than this have no arrows, and take no part in deriving others …"""

FOLLOWED_FROM = 0.02
"""… and neither do arrows less likely than this: many pairs, and next to nothing to learn from them."""

MOST_LEVELS = 16
"""Number of thresholds on edges that `decide` looks at …"""

MOST_STRICTNESSES = 6
"""… and on colliders, beyond 0.5 and "none at all"."""

MOST_BURDENS = 16
"""Number of edges not worth their cost that it tries to leave out one by one."""

FEW_MEMBERS = 200
"""Parts of a class with at most so many DAGs are listed, so that `sample_dags` draws from them uniformly."""


@dataclass(frozen=True, eq=False)
class Orientation:
    """A graph with directions, and how sure they are."""

    adjacency: NDArray[np.int8]
    """Shape (d, d), convention of `graphbam.graph`: a CPDAG, with knowledge a maximally directed graph."""
    arrow_probability_dd: Matrix
    """Shape (d, d): probability of i → j given that i and j are adjacent; see `arrow_probabilities`."""


# ── what the second network is asked ──────────────────────────────────────────────────────────────────────


class Structure(NamedTuple):
    """A moralized pair a < b and the variables around it."""

    a: int
    b: int
    candidates: Indices
    """Variables adjacent to both: the possible common children."""
    neighbours: Indices
    """Other variables adjacent to exactly one of the two."""


def structures(
    p_dd3: ArrayLike, threshold: float = 0.5, moral_threshold: float | None = None, skeleton_dd: ArrayLike | None = None
) -> list[Structure]:
    """List the moralized pairs, with the candidates for their common child.

    Parameters
    ----------
    p_dd3 : array_like, shape (d, d, 3)
        Probabilities of none · skeleton · moral.
    threshold : float
        Smallest probability of an edge of the skeleton.
    moral_threshold : float, optional
        Smallest moral probability of a pair; `threshold` if not given. It may be linked with some probability too.
    skeleton_dd : array_like, shape (d, d), optional
        The skeleton itself, instead of `threshold`; its pairs are never moral.

    Returns
    -------
    list of Structure
        In increasing order of (a, b). Pairs without candidate are left out: there is nothing to ask.

    Notes
    -----
    `decide` looks at several skeletons. A lower `threshold` gives candidates for the larger ones as well;
    claims that do not fit a skeleton are passed over there.

    Examples
    --------
    >>> p_dd3 = np.full((4, 4, 3), [0.9, 0.1, 0.0])
    >>> for a, b in [(0, 2), (1, 2), (1, 3)]:
    ...     p_dd3[a, b] = p_dd3[b, a] = [0.1, 0.9, 0.0]
    >>> p_dd3[0, 1] = p_dd3[1, 0] = [0.2, 0.0, 0.8]
    >>> structures(p_dd3)
    [Structure(a=0, b=1, candidates=array([2]), neighbours=array([3]))]
    """
    p_dd3 = _read_probabilities(p_dd3)
    adjacent = _skeleton_at(p_dd3, threshold) if skeleton_dd is None else _read_skeleton(skeleton_dd, len(p_dd3))
    least = threshold if moral_threshold is None else moral_threshold
    is_moral = _symmetric(choose_pairs(p_dd3[..., MORAL][np.triu_indices(len(p_dd3), 1)], least), len(p_dd3))
    if skeleton_dd is not None:
        is_moral &= ~adjacent
    a, b = np.nonzero(np.triu(is_moral))
    worth_asking = (adjacent[a] & adjacent[b]).any(axis=1)
    a, b = a[worth_asking], b[worth_asking]
    beside_one = adjacent[a] ^ adjacent[b]
    beside_one[np.arange(len(a)), a] = beside_one[np.arange(len(b)), b] = False
    candidates, neighbours = _rows(adjacent[a] & adjacent[b]), _rows(beside_one)
    return [Structure(*row) for row in zip(a.tolist(), b.tolist(), candidates, neighbours, strict=True)]


def _rows(marked: BoolMatrix) -> list[Indices]:
    """Indices of the True entries of each row."""
    row, column = np.nonzero(marked)
    return np.split(column, np.searchsorted(row, np.arange(1, len(marked)))) if len(marked) else []


def claim_table(asked: Iterable[Structure], probabilities: Iterable[ArrayLike]) -> NDArray[np.void]:
    """Put the second network's answers into one table of claims.

    Parameters
    ----------
    asked : iterable of Structure
        What was asked.
    probabilities : iterable of array_like
        For each structure one probability for each candidate, in the same order.

    Returns
    -------
    structured ndarray
        Rows (a, c, b, probability), as `orient` and `decide` take them.

    Examples
    --------
    >>> claim_table([Structure(0, 1, np.array([2, 5]), np.array([3]))], [[0.75, 0.5]]).tolist()
    [(0, 2, 1, 0.75), (0, 5, 1, 0.5)]
    """
    rows = [
        (s.a, c, s.b, p)
        for s, answers in zip(asked, probabilities, strict=True)
        for c, p in zip(s.candidates.tolist(), np.asarray(answers, dtype=float).tolist(), strict=True)
    ]
    return np.array(rows, dtype=CLAIM)


# ── doors ─────────────────────────────────────────────────────────────────────────────────────────────────


def _read_probabilities(p_dd3: ArrayLike) -> Matrix:
    p = np.asarray(p_dd3, dtype=float)
    return tidy_probabilities(p, len(p) if p.ndim else 0)


def _read_skeleton(skeleton_dd: ArrayLike, n_variables: int | None = None) -> BoolMatrix:
    edges = skeleton(skeleton_dd).astype(bool)
    if n_variables is not None and len(edges) != n_variables:
        raise GraphError(f"the skeleton has {len(edges)} variables, the probabilities {n_variables}; give equal sizes.")
    return edges


def _read_claims(colliders: Any, n_variables: int) -> NDArray[np.void]:
    """Return the claims as a structured array with a < b, or say what is wrong with one."""
    rows = [tuple(row) for row in colliders] if colliders is not None else []
    for k, row in enumerate(rows):
        if len(row) != 4:
            raise GraphError(f"collider {k} has {len(row)} entries; it must be (a, c, b, probability).")
        if len({int(i) for i in row[:3] if i == int(i) and 0 <= i < n_variables}) < 3:
            raise GraphError(
                f"collider {k} is {row[:3]}; (a, c, b) must be three different numbers from 0 to {n_variables - 1}."
            )
        if not 0 <= row[3] <= 1:
            raise GraphError(f"collider {k} has probability {row[3]}; it must lie between 0 and 1.")
    return np.array([(min(a, b), c, max(a, b), p) for a, c, b, p in rows], dtype=CLAIM)


def _read_forbidden(knowledge: Forbidden | None, n_variables: int) -> BoolMatrix:
    """Return the forbidden arrows as a matrix: True at [i, j] excludes i → j."""
    if knowledge is None:
        return np.zeros((n_variables, n_variables), dtype=bool)
    if callable(knowledge):
        matrix = np.array([[bool(knowledge(i, j)) for j in range(n_variables)] for i in range(n_variables)], dtype=bool)
    else:
        matrix = np.array(knowledge, dtype=bool)
    if matrix.shape != (n_variables, n_variables):
        raise KnowledgeError(
            f"the matrix of forbidden arrows has shape {matrix.shape}; "
            f"{n_variables} variables need {(n_variables, n_variables)}."
        )
    np.fill_diagonal(matrix, False)
    return matrix


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


def _symmetric(p_n: NDArray[Any], n_variables: int) -> NDArray[Any]:
    """Matrix with the given values above the diagonal, mirrored below."""
    matrix = np.zeros((n_variables, n_variables), dtype=p_n.dtype)
    matrix[np.triu_indices(n_variables, 1)] = p_n
    return matrix | matrix.T


def _skeleton_at(p_dd3: Matrix, threshold: float = 0.5, fdr: float | None = None) -> BoolMatrix:
    d = len(p_dd3)
    return _symmetric(choose_pairs(p_dd3[..., SKELETON][np.triu_indices(d, 1)], threshold, fdr), d)


# ── evidence ──────────────────────────────────────────────────────────────────────────────────────────────


class _Evidence:
    """How likely each a → c ← b is: as claimed, or the share of c in the moral probability of a, b.

    A pair a, b that is moral with probability m has a common child. Without a claim, c is that child with
    probability m · s_c / Σ s, where s_c = p(a — c) · p(b — c) and the sum runs over all variables.
    """

    def __init__(self, edge_dd: Matrix, moral_dd: Matrix, claims: NDArray[np.void]) -> None:
        self.edge_dd, self.moral_dd, self.claims = edge_dd, moral_dd, np.sort(claims, order="probability")
        both_dd = edge_dd @ edge_dd
        self._share_dd = np.divide(moral_dd, both_dd, out=np.zeros_like(both_dd), where=both_dd > 0)
        order = np.argsort(self.claims["c"], kind="stable")  # of equal claims the largest comes last, and counts
        ends = np.searchsorted(self.claims["c"][order], np.arange(len(edge_dd) + 1))
        self._claims_at = [self.claims[order[i:j]] for i, j in pairwise(ends)]

    def __len__(self) -> int:
        return len(self.edge_dd)

    def colliders_at(self, c: int, nodes: Indices) -> Matrix:
        """Probability of nodes[i] → c ← nodes[j] at [i, j], as far as the two are not adjacent."""
        p_n = self.edge_dd[c, nodes]
        q_nn = np.minimum(self._share_dd[np.ix_(nodes, nodes)] * (p_n[:, None] * p_n), 1.0)
        place = np.full(len(self), -1)
        place[nodes] = np.arange(len(nodes))
        claims = self._claims_at[c]
        i, j = place[claims["a"]], place[claims["b"]]
        known = (i >= 0) & (j >= 0)
        q_nn[i[known], j[known]] = q_nn[j[known], i[known]] = claims["probability"][known]
        np.fill_diagonal(q_nn, 0.0)
        return q_nn


def _evidence_of_skeleton(adjacent: BoolMatrix, colliders: Any, unclaimed: float) -> _Evidence:
    if not 0 <= unclaimed <= 1:
        raise ConfigError(f"unclaimed={unclaimed} is not a probability; pass a number between 0 and 1.")
    moral_dd = np.where(adjacent, 0.0, unclaimed)
    np.fill_diagonal(moral_dd, 0.0)
    return _Evidence(adjacent.astype(float), moral_dd, _read_claims(colliders, len(adjacent)))


# ── from a skeleton to a CPDAG ────────────────────────────────────────────────────────────────────────────


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

    Notes
    -----
    Each v-structure is worth its log-odds, log p/(1 − p), less those of `accept` where that is below ½.

    1. Claims are accepted from the likeliest down, each if its arrows close no cycle with those before it
       and if the v-structures it adds (with earlier arrows into the same child there may be several) are
       together no loss.
    2. The remaining edges are directed into one sink after another, as `consistent_extension` does. Where no
       sink is free of new v-structures, the one whose new v-structures are worth most is taken.
    Any choice here ends in a DAG, and its CPDAG is returned. Ties are broken by index; otherwise the order
    of the variables does not matter.

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
    adjacent = _read_skeleton(skeleton_dd)
    forbidden = _read_forbidden(knowledge, len(adjacent))
    evidence = _evidence_of_skeleton(adjacent, colliders, unclaimed)
    (adjacency,) = _orient(adjacent, evidence, forbidden, [accept])
    return Orientation(adjacency, _believe(evidence, forbidden))


def _orient(
    adjacent: BoolMatrix, evidence: _Evidence, forbidden: BoolMatrix, accepts: Sequence[float]
) -> list[NDArray[np.int8]]:
    """Direct one skeleton, once for each threshold on colliders."""
    known = _known_arrows(adjacent, forbidden)
    board = _Board(adjacent, evidence, even=min(0.5, *accepts))
    return [_complete(_find_dag(board, known, accept), known) for accept in accepts]


def _complete(dag: BoolMatrix, known: BoolMatrix) -> NDArray[np.int8]:
    cpdag = dag_to_cpdag(dag)
    return close_under_meek(cpdag & ~known.T) if (cpdag & known.T).any() else cpdag


class _Board:
    """A skeleton, and around each variable c the v-structures it could be the child of.

    Parents of c are a vector of 0 and 1 over `nodes[c]`; a quadratic form then counts or values v-structures.
    One with the probability `even` is worth nothing, neither good nor bad.
    """

    def __init__(self, adjacent: BoolMatrix, evidence: _Evidence, even: float = 0.5) -> None:
        self.adjacent = adjacent
        self.nodes: list[Indices] = [np.flatnonzero(row) for row in adjacent]
        self.probability: list[Matrix] = [evidence.colliders_at(c, nodes) for c, nodes in enumerate(self.nodes)]
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
    parents, reaches = board.parents(known, ()), _reachable(known)
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


def _reachable(arrows: BoolMatrix) -> BoolMatrix:
    """True at [i, j] if arrows lead from i to j, or i is j."""
    reaches = np.eye(len(arrows), dtype=bool)
    for node in topological_order(arrows)[::-1]:
        reaches[node] |= reaches[arrows[node]].any(axis=0)
    return reaches


class _Elimination:
    """Take sinks away, each with all its remaining edges pointing at it, until a whole DAG is told.

    A sink is *free* if that adds no v-structure to those of the given arrows. Once free, it stays so, and which
    free one goes first makes no difference to the v-structures: free ones go first, and if a DAG
    with just the given v-structures exists, there is always one [1]_. Else the one whose new v-structures are
    worth most has to go.

    .. [1] Dor and Tarsi; see `graphbam.graph.consistent_extension`.
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


# ── how sure each arrow is ────────────────────────────────────────────────────────────────────────────────


def arrow_probabilities(p_dd3: ArrayLike, colliders: Any = None, knowledge: Forbidden | None = None) -> Matrix:
    """Probability of each arrow, given that its edge exists.

    Parameters
    ----------
    p_dd3 : array_like, shape (d, d, 3)
        Probabilities of none · skeleton · moral.
    colliders, knowledge
        As in `orient`.

    Returns
    -------
    ndarray, shape (d, d)
        At [i, j] the probability of i → j given that i and j are adjacent; [i, j] and [j, i] sum to at most
        one, and what is missing is the probability that the direction stays open.

    Notes
    -----
    The definition, from strong to weak:

    - Known directions have probability 1, their opposites 0.
    - a → c has the largest probability of any v-structure a → c ← b: the claim, or, where there is none, the
      share of c in the moral probability of a, b. An arrow in one of several v-structures is at least as
      likely as each of them, and no more follows without knowing how they depend on each other.
    - An arrow that R1–R4 imply has the probability of the weakest link of its derivation, and of the best
      derivation if there are several. Links are the arrows and edges it uses, the edges it needs to be
      absent, and the v-structures it needs not to be there. In R1, where a → b and a → b ← c would
      contradict the conclusion b → c, the link is the probability of the first less that of the second.
    - Evidence for both directions is weighed as if the two were independent, given that not both are true:
      strong evidence p and weak evidence q against it become p (1 − q) / (1 − p q) and
      q (1 − p) / (1 − p q).
    - Edges less likely than 0.2 have no arrows and take part in no derivation, arrows below 0.02 in none.

    Examples
    --------
    In 0 → 2 ← 1, 2 — 3 the last edge is directed by R1; its derivation is no stronger than the collider:

    >>> p_dd3 = np.full((4, 4, 3), [1.0, 0.0, 0.0])
    >>> p_dd3[2, :] = p_dd3[:, 2] = [0.0, 1.0, 0.0]
    >>> arrow_probabilities(p_dd3, [(0, 2, 1, 0.75)])
    array([[0.  , 0.  , 0.75, 0.  ],
           [0.  , 0.  , 0.75, 0.  ],
           [0.  , 0.  , 0.  , 0.75],
           [0.  , 0.  , 0.  , 0.  ]])
    """
    p_dd3 = _read_probabilities(p_dd3)
    return _believe(_evidence_of(p_dd3, colliders), _read_forbidden(knowledge, len(p_dd3)))


def _evidence_of(p_dd3: Matrix, colliders: Any) -> _Evidence:
    return _Evidence(p_dd3[..., SKELETON], p_dd3[..., MORAL], _read_claims(colliders, len(p_dd3)))


class _Neighbourhood(NamedTuple):
    """What the rules need to know around one variable."""

    nodes: Indices
    collider: Matrix
    """Probability of nodes[i] → variable ← nodes[j]."""
    absent: Matrix
    """Probability that nodes[i] and nodes[j] are not adjacent; 0 on the diagonal."""


def _believe(evidence: _Evidence, forbidden: BoolMatrix, least: float = SUPPORT_FROM) -> Matrix:
    """Strongest derivation of each arrow, a fixed point that is reached from below."""
    linked = evidence.edge_dd >= least
    around = [_neighbourhood(evidence, c, np.flatnonzero(linked[c])) for c in range(len(evidence))]
    arrow_dd = np.zeros(linked.shape)
    for c, (nodes, collider, _) in enumerate(around):
        arrow_dd[nodes, c] = collider.max(axis=1, initial=0.0)
    known = linked & forbidden.T & ~forbidden
    while True:
        arrow_dd[known], arrow_dd[forbidden] = 1.0, 0.0
        before = arrow_dd.copy()
        for variable, neighbourhood in enumerate(around):
            _derive(arrow_dd, evidence.edge_dd, linked, variable, neighbourhood)
        arrow_dd[forbidden] = 0.0
        if np.array_equal(before, arrow_dd):
            return _not_both(arrow_dd)


def _not_both(arrow_dd: Matrix) -> Matrix:
    """Condition two independent events, i → j and j → i, on not both being the case."""
    alone, either = arrow_dd * (1 - arrow_dd.T), 1 - arrow_dd * arrow_dd.T
    return np.divide(alone, either, out=np.full_like(alone, 0.5), where=either > 0)


def _neighbourhood(evidence: _Evidence, c: int, nodes: Indices) -> _Neighbourhood:
    absent = 1 - evidence.edge_dd[np.ix_(nodes, nodes)]
    np.fill_diagonal(absent, 0.0)
    return _Neighbourhood(nodes, evidence.colliders_at(c, nodes) * (absent > 0), absent)


def _derive(arrow_dd: Matrix, edge_dd: Matrix, linked: BoolMatrix, v: int, neighbourhood: _Neighbourhood) -> None:
    """Raise the arrows that R1–R4 imply around v, which is b in R1 and R2 and a in R3 and R4 (see `meek`)."""
    nodes, collider, absent = neighbourhood
    if not len(nodes):
        return
    block = np.ix_(nodes, nodes)
    into = _followed(np.minimum(arrow_dd[nodes, v], edge_dd[nodes, v]))
    out = _followed(np.minimum(arrow_dd[v, nodes], edge_dd[v, nodes]))
    by_r1 = np.minimum(into[:, None] - collider, absent).max(axis=0)
    by_r2 = np.where(linked[block], np.minimum(into[:, None], out), 0.0)
    arrow_dd[block] = np.maximum(arrow_dd[block], by_r2)
    inner = _followed(np.minimum(np.minimum(arrow_dd[block], edge_dd[block]), edge_dd[v, nodes][:, None]))
    arrow_dd[v, nodes] = np.maximum(np.maximum(arrow_dd[v, nodes], by_r1), _by_cases(inner, collider, absent))


def _followed(arrows: Matrix) -> Matrix:
    return np.where(arrows >= FOLLOWED_FROM, arrows, 0.0)


def _by_cases(inner: Matrix, collider: Matrix, absent: Matrix) -> Matrix:
    """R3 and R4: what arrows among the neighbours of a, `inner`, say about the edges of a itself."""
    tails = inner.any(axis=1)
    if not tails.any():
        return np.zeros(len(inner))
    first = inner[tails]
    passage = np.minimum(absent, 1 - collider)[tails]
    by_r3 = np.minimum(first, _max_min(passage[:, tails], first))
    by_r4 = np.minimum(passage, _max_min(first[:, tails], first))
    return np.asarray(np.maximum(by_r3, by_r4).max(axis=0))


def _max_min(first: Matrix, second: Matrix) -> Matrix:
    """Matrix product with maximum for sum and minimum for product: the best of all weakest links."""
    if len(first) * second.size <= 100_000:
        return np.asarray(np.minimum(first[:, :, None], second).max(axis=1))
    return np.array([np.minimum(row[:, None], second).max(axis=0) for row in first])


# ── decisions ─────────────────────────────────────────────────────────────────────────────────────────────


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
        Sum over the pairs of the probability that the pair's edge is wrong in any way. With p for skeleton
        these are p for no edge, 1 − p · arrow[i, j] for i → j and
        1 − p · (1 − arrow[i, j] − arrow[j, i]) for i — j.

    Examples
    --------
    >>> p_dd3 = np.full((2, 2, 3), [0.25, 0.75, 0.0])
    >>> arrow_dd = [[0, 0.5], [0, 0]]
    >>> [expected_shd(g, p_dd3, arrow_dd) for g in ([[0, 0], [0, 0]], [[0, 1], [0, 0]], [[0, 1], [1, 0]])]
    [0.75, 0.625, 0.625]
    """
    p_dd3, edges = _read_probabilities(p_dd3), check_adjacency(graph)
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
    objective: str = "shd",
    *,
    threshold: float = 0.5,
    fdr: float = 0.1,
    knowledge: Forbidden | None = None,
) -> Orientation:
    """Choose a graph with directions.

    Parameters
    ----------
    p_dd3 : array_like, shape (d, d, 3)
        Calibrated probabilities of none · skeleton · moral, knowledge about edges already enforced in them.
    colliders : iterable of (a, c, b, probability), optional
        Claims of the second network. Triples without claim are judged by the moral probability of their ends.
    objective : {"shd", "fdr", "threshold"}
        ``"shd"``: the smallest expected structural Hamming distance (`expected_shd`) among many graphs;
        ``"fdr"``: as many edges as possible with at most a share `fdr` of wrong ones to be expected, among
        all edges and among the arrows;
        ``"threshold"``: edges and colliders with probability `threshold` or more, as in the paper.
    threshold, fdr : float
        For the objectives of the same name.
    knowledge : array_like, shape (d, d), or function of (i, j), optional
        True where the arrow i → j is forbidden. Pairs with both directions forbidden are not adjacent. If
        the edges with only one permitted direction close a cycle, the least likely of them is left out.

    Returns
    -------
    Orientation
        As `orient` returns it, with `arrow_probabilities`.

    Raises
    ------
    KnowledgeError
        If certain edges (probability 1) leave no DAG that avoids the forbidden arrows.

    Notes
    -----
    ``"shd"`` looks at skeletons of up to 16 levels of probability, spread over the distinct ones from 0.25 on,
    with 0.5 added; at the best of them also at stricter levels for colliders; and then leaves out, as long as
    that helps, edges that cost more as they are marked than if they were absent: all of them, or those whose
    absence helps by itself. The graph of the certain edges alone, mostly the empty graph, is one of the
    candidates, and by the same probabilities it is never worse than the empty graph. Hence neither is the result.

    ``"fdr"`` counts an arrow as right if the edge exists and points that way. The arrows of a CPDAG cannot be
    taken back one by one, and a skeleton with long cycles has some in any case. So the target for arrows is met
    by stricter levels for colliders, and by leaving out the edges with the least sure arrows; of the graphs
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
    >>> int(decide(p_dd3, [(0, 2, 1, 0.1)], "fdr").adjacency.sum())
    0
    """
    p_dd3 = _read_probabilities(p_dd3)
    least = min(SUPPORT_FROM, threshold) if objective == "threshold" else SUPPORT_FROM
    choice = _Choice(p_dd3, _evidence_of(p_dd3, colliders), _read_forbidden(knowledge, len(p_dd3)), least)
    if objective == "threshold":
        (adjacency,) = choice.graphs(_skeleton_at(p_dd3, threshold), [threshold])
    elif objective == "fdr":
        adjacency = choice.controlled(fdr)
    elif objective == "shd":
        adjacency = choice.nearest()
    else:
        raise ConfigError(f"objective={objective!r} is unknown; choose from 'shd', 'fdr', 'threshold'.")
    return Orientation(adjacency, choice.arrow_dd)


class _Choice:
    """The graphs that `decide` looks at, and what is expected of them."""

    def __init__(self, p_dd3: Matrix, evidence: _Evidence, forbidden: BoolMatrix, least: float) -> None:
        self.p_dd3, self.p_dd = p_dd3, p_dd3[..., SKELETON]
        self.evidence, self.forbidden = evidence, forbidden
        self.arrow_dd = _believe(evidence, forbidden, least)

    def graphs(self, adjacent: BoolMatrix, accepts: Sequence[float] = (0.5,)) -> list[NDArray[np.int8]]:
        """One graph for each threshold on colliders, with a skeleton from which the impossible is left out."""
        possible = adjacent & ~(self.forbidden & self.forbidden.T)
        possible = _break_cycles(possible, self.p_dd, self.forbidden)
        return _orient(possible, self.evidence, self.forbidden, accepts)

    def cost(self, graph: NDArray[np.int8]) -> float:
        return float(np.triu(_expected_cost(graph > 0, self.p_dd, self.arrow_dd), 1).sum())

    def levels(self) -> list[float]:
        """Thresholds on edges, from low to high; the last one keeps only certain edges."""
        distinct = _spread(np.unique(self.p_dd[self.p_dd >= 0.25]), MOST_LEVELS)
        return sorted({0.5, *distinct, 1.0})

    def strictnesses(self) -> list[float]:
        """Thresholds on colliders, from low to high; the last one accepts none."""
        claimed = self.evidence.claims["probability"]
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

    def controlled(self, fdr: float) -> NDArray[np.int8]:
        """Most edges, then most arrows, that keep the target."""
        largest = _skeleton_at(self.p_dd3, fdr=fdr)
        graphs = [self._with_sure_arrows(largest, accept, fdr) for accept in self.strictnesses()]
        return max(graphs, key=lambda graph: ((graph | graph.T).sum(), -graph.sum()))

    def _with_sure_arrows(self, adjacent: BoolMatrix, accept: float, fdr: float) -> NDArray[np.int8]:
        """Leave out the least sure edges and the edges with the least sure arrows until both keep the target."""
        while True:
            (graph,) = self.graphs(adjacent, [accept])
            adjacent = (graph | graph.T) > 0
            unsure = _unsure(np.triu(adjacent), self.p_dd, fdr)
            unsure |= _unsure((graph > 0) & (graph.T == 0), self.p_dd * self.arrow_dd, fdr)
            unsure &= self.p_dd < 1
            if not unsure.any():
                return graph
            adjacent &= ~(unsure | unsure.T)


def _unsure(chosen: BoolMatrix, p_dd: Matrix, fdr: float) -> BoolMatrix:
    """Mark the entries that have to go for the others to keep the target."""
    unsure = np.zeros_like(chosen)
    unsure[chosen] = ~choose_pairs(p_dd[chosen], fdr=fdr)
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
    kept = arrows & (p_dd >= 1)  # certain edges stay; if they close a cycle, `_known_arrows` says so
    if not is_dag(kept):
        return adjacent
    reaches = _reachable(kept)
    result = adjacent.copy()
    for k in np.lexsort((j, i, -p_dd[i, j])):
        if reaches[j[k], i[k]]:
            result[i[k], j[k]] = result[j[k], i[k]] = False
        else:
            reaches[reaches[:, i[k]]] |= reaches[j[k]]
    return result


# ── DAGs of a CPDAG ───────────────────────────────────────────────────────────────────────────────────────


def to_dag(cpdag: ArrayLike) -> NDArray[np.int8]:
    """Direct the undirected edges, without a cycle or a new v-structure: one DAG out of the class.

    The same as `graphbam.graph.consistent_extension`; always the same DAG. For others see `sample_dags`.

    Examples
    --------
    >>> to_dag([[0, 1], [1, 0]])
    array([[0, 0],
           [1, 0]], dtype=int8)
    """
    return consistent_extension(cpdag)


def sample_dags(cpdag: ArrayLike, n: int, rng: np.random.Generator) -> NDArray[np.int8]:
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
    Parts joined by undirected edges are independent of each other. A part with at most 200 members (all trees
    of up to 200 variables, all of up to five) is listed and drawn from uniformly. In a larger part a random
    undirected edge is given a random direction and R1–R4 are applied, until none is left; every member can
    come out, but not all with the same probability.

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


def _undirected_parts(pdag: NDArray[np.int8]) -> Iterator[Indices]:
    """Yield the variables of each part that undirected edges join; R1–R4 never reach from one to another."""
    links = (pdag & pdag.T) > 0
    todo = links.any(axis=0)
    while todo.any():
        part = np.zeros(len(pdag), dtype=bool)
        part[todo.argmax()] = True
        while not np.array_equal(part, grown := part | links[part].any(axis=0)):
            part = grown
        todo &= ~part
        yield np.flatnonzero(part)


def _members(pdag: NDArray[np.int8]) -> Iterator[NDArray[np.int8]]:
    """Yield all DAGs of a closed graph: as the rules are complete, each open edge may still go either way."""
    links = np.argwhere(pdag & pdag.T)
    if not len(links):
        yield pdag
        return
    a, b = links[0]
    yield from _members(_directed(pdag, a, b))
    yield from _members(_directed(pdag, b, a))


def _random_member(pdag: NDArray[np.int8], rng: np.random.Generator) -> NDArray[np.int8]:
    while len(links := np.argwhere(pdag & pdag.T)):
        pdag = _directed(pdag, *links[rng.integers(len(links))])
    return pdag


def _directed(pdag: NDArray[np.int8], tail: int, head: int) -> NDArray[np.int8]:
    """Direct one undirected edge, and all that follow."""
    result = pdag.copy()
    result[head, tail] = 0
    return close_under_meek(result)
