"""Claims: how likely a → c ← b is, and what is believed of it where nobody claims anything.

The collider network claims of a pair a, b and a common neighbour c that c is their child. Of several claims for one
triple the largest counts. A pair that is moral with probability m has a common child in any case; without a claim, c
is that child with probability

    m · s_c / Σ s,    s_c = p(a — c) · p(b — c),

where p are the probabilities of edges and the sum runs over all variables.

Everything is by index: variables are 0 … d−1. Prior knowledge comes as *forbidden arrows*, a (d, d) matrix of
booleans or a function of two indices; to require i → j is to forbid j → i on an edge that exists. With names:

>>> from graphbam.graphs.knowledge import Knowledge
>>> names, known = ["dose", "age", "effect"], Knowledge(required=["dose -> effect"])
>>> forbidden = [[known.forbids(a, b) or (b, a) in known.arrows() for b in names] for a in names]

What comes into `questions`, `arrows`, `orientation` and `decisions` is read and checked here.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphbam.errors import GraphError, KnowledgeError
from graphbam.graphs.cut import tidy_probabilities
from graphbam.graphs.graph import MORAL, SKELETON, BoolMatrix, Matrix

__all__ = [
    "CLAIM",
    "Beliefs",
    "read_beliefs",
    "read_claims",
    "read_forbidden",
    "read_probabilities",
]

Indices: TypeAlias = NDArray[np.int64]
Forbidden: TypeAlias = ArrayLike | Callable[[int, int], bool]

CLAIM = np.dtype([("a", np.int64), ("c", np.int64), ("b", np.int64), ("probability", np.float64)])
"""One claim: how likely a → c ← b is."""


# ── doors ─────────────────────────────────────────────────────────────────────────────────────────────────


def read_probabilities(p_dd3: ArrayLike) -> Matrix:
    """Return probabilities of none · skeleton · moral, exactly symmetric and with sums of one."""
    p = np.asarray(p_dd3, dtype=float)
    return tidy_probabilities(p, len(p) if p.ndim else 0)


def read_claims(colliders: Any, n_variables: int) -> NDArray[np.void]:
    """Return the claims as a structured array with a < b, or say what is wrong with one.

    Examples
    --------
    >>> read_claims([(1, 2, 0, 0.75)], 3).tolist()
    [(0, 2, 1, 0.75)]
    """
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


def read_forbidden(knowledge: Forbidden | None, n_variables: int) -> BoolMatrix:
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


# ── beliefs ───────────────────────────────────────────────────────────────────────────────────────────────


class Beliefs:
    """How likely each edge is, and each a → c ← b: as claimed, or the share of c in the moral probability of a, b.

    Examples
    --------
    >>> edge_dd, moral_dd = np.ones((4, 4)) - np.eye(4), np.zeros((4, 4))
    >>> edge_dd[0, 1] = edge_dd[1, 0] = 0.0
    >>> moral_dd[0, 1] = moral_dd[1, 0] = 0.75
    >>> beliefs = Beliefs(edge_dd, moral_dd, read_claims([(0, 2, 1, 0.5)], 4))
    >>> [float(beliefs.colliders_at(c, np.array([0, 1]))[0, 1]) for c in (2, 3)]
    [0.5, 0.375]
    """

    def __init__(self, edge_dd: Matrix, moral_dd: Matrix, claims: NDArray[np.void]) -> None:
        self.edge_dd, self.claims = edge_dd, np.sort(claims, order="probability")
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


def read_beliefs(p_dd3: Matrix, colliders: Any) -> Beliefs:
    """Return what probabilities, already read, and claims say together."""
    return Beliefs(p_dd3[..., SKELETON], p_dd3[..., MORAL], read_claims(colliders, len(p_dd3)))
