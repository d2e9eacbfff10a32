"""Immoralities: two variables without a link that have a common child, a → c ← b.

    p_dd3 ── pairs_to_ask ──▸ second network ──▸ combine ──▸ immoralities ──▸ Beliefs

The first network says which pairs may be *moral*, linked through a common child only. The second one is asked which of
their common neighbours, the *candidates*, is that child. It looks at a pair and its neighbourhood and knows nothing of
the first network's probabilities. Whether c is a common child of a and b depends on both, so what counts is

    logit P = offset + child · logit p_c + moral · logit p_ab + links · logit p_ac p_bc + candidates · log k

with p_c from the second network, p_ab the probability that a and b are moral, p_ac and p_bc those of the links, and
k the number of candidates of the pair. The five numbers are fitted on simulated tables
(`graphbam.training.calibration.fit_evidence`) and travel in the header of collider weights.

Where nobody was asked, a pair that is moral with probability m has a common child in any case: c is that child with
probability

    m · s_c / Σ s,    s_c = p(a — c) · p(b — c),

where p are the probabilities of links and the sum runs over all variables.

Everything is by index: variables are 0 … d−1. Prior knowledge comes as *forbidden arrows*, a (d, d) matrix of
booleans or a function of two indices; to require i → j is to forbid j → i on a link that exists. With names:

>>> from graphbam.graphs.knowledge import Knowledge
>>> names, known = ["dose", "age", "effect"], Knowledge(required=["dose -> effect"])
>>> forbidden = [[known.forbids(a, b) for b in names] for a in names]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphbam.errors import GraphError, KnowledgeError
from graphbam.graphs.cut import tidy_probabilities
from graphbam.graphs.graph import MORAL, SKELETON, BoolMatrix, Indices, Matrix

__all__ = [
    "IMMORALITY",
    "LINKED_FROM",
    "MORAL_FROM",
    "OBVIOUS_FROM",
    "TERMS",
    "Asked",
    "Beliefs",
    "combine",
    "describe",
    "pairs_to_ask",
    "read_forbidden",
    "read_immoralities",
    "read_probabilities",
]

Immoralities: TypeAlias = NDArray[np.void]
Forbidden: TypeAlias = ArrayLike | Callable[[int, int], bool]

IMMORALITY = np.dtype([("a", np.int64), ("c", np.int64), ("b", np.int64), ("probability", np.float64)])
"""One row of the table: how likely a → c ← b is."""

LINKED_FROM = 0.5
"""The second network is asked about common neighbours linked with at least this probability, in training too, …"""

MORAL_FROM = 0.1
"""… of pairs that are moral with at least this one, be they linked or not, …"""

OBVIOUS_FROM = 0.9
"""… except pairs moral with at least this one that have a single common neighbour: there the first network alone was
nearer to the truth (docs/training.md), and on tables of 100 variables and 500 rows it is two questions in three."""

TERMS = ("offset", "child", "moral", "links", "candidates")
"""Names of the weights of evidence, in the order of `describe`."""

LEAST = 1e-3
"""Probabilities nearer to 0 or 1 than this count as this near: nobody is surer than that."""


# ── what to ask ───────────────────────────────────────────────────────────────────────────────────────────


class Asked(NamedTuple):
    """What the second network is asked about one table: two symmetric matrices of booleans, shape (d, d)."""

    links_dd: BoolMatrix
    """Which variables are taken for neighbours."""
    pairs_dd: BoolMatrix
    """Which pairs may have a common child among their common neighbours."""


def pairs_to_ask(p_dd3: Matrix) -> Asked:
    """Pairs that may be moral and have a common neighbour, by edge probabilities with prior knowledge in them.

    Parameters
    ----------
    p_dd3 : ndarray, shape (d, d, 3)
        Probabilities of none · skeleton · moral.

    Examples
    --------
    >>> p_dd3 = np.full((4, 4, 3), [0.9, 0.1, 0.0])
    >>> for a, b in [(0, 2), (1, 2), (1, 3)]:
    ...     p_dd3[a, b] = p_dd3[b, a] = [0.1, 0.9, 0.0]
    >>> p_dd3[0, 1] = p_dd3[1, 0] = [0.2, 0.0, 0.8]
    >>> np.argwhere(pairs_to_ask(p_dd3).pairs_dd).tolist()  # 2 may be their child
    [[0, 1], [1, 0]]
    """
    links_dd = p_dd3[..., SKELETON] >= LINKED_FROM
    np.fill_diagonal(links_dd, False)
    moral_dd, around_dd = p_dd3[..., MORAL], links_dd.astype(np.float32)
    n_candidates_dd = around_dd @ around_dd
    pairs_dd = (moral_dd >= MORAL_FROM) & (n_candidates_dd > 0)
    pairs_dd &= (moral_dd < OBVIOUS_FROM) | (n_candidates_dd > 1)
    np.fill_diagonal(pairs_dd, False)
    return Asked(links_dd, pairs_dd)


# ── what was answered ─────────────────────────────────────────────────────────────────────────────────────


def describe(triples_n3: Indices, p_n: Matrix, p_dd3: Matrix) -> Matrix:
    """What is known of each triple, shape (N, 5), in the order of `TERMS`.

    Parameters
    ----------
    triples_n3 : ndarray of int64, shape (N, 3)
        Rows (a, c, b): the candidate c of the pair a, b. All candidates of a pair are there.
    p_n : ndarray, shape (N,)
        How likely the second network holds each for a → c ← b.
    p_dd3 : ndarray, shape (d, d, 3)
        Probabilities of none · skeleton · moral.
    """
    a, c, b = triples_n3.T
    _, which, count = np.unique(triples_n3[:, [0, 2]], axis=0, return_inverse=True, return_counts=True)
    links_n = p_dd3[a, c, SKELETON] * p_dd3[b, c, SKELETON]
    logits = [_logit(p) for p in (p_n, p_dd3[a, b, MORAL], links_n)]
    return np.stack([np.ones(len(p_n)), *logits, np.log(count[which.reshape(-1)])], axis=1)


def combine(
    triples_n3: Indices, p_n: Matrix, p_dd3: Matrix, weights: Mapping[str, float] | None = None
) -> Immoralities:
    """Immoralities with the probabilities that follow from both networks; without weights, from the second alone.

    Parameters
    ----------
    triples_n3, p_n, p_dd3
        As in `describe`.
    weights : mapping from `TERMS` to float, optional
        How to weigh what is known.

    Returns
    -------
    structured ndarray, shape (N,)
        Of type `IMMORALITY`, in increasing order of (a, b, c).

    Examples
    --------
    >>> p_dd3 = np.full((3, 3, 3), [0.0, 0.1, 0.9])
    >>> weights = {"offset": 0, "child": 1, "moral": 1, "links": 0, "candidates": 0}
    >>> combine(np.array([[0, 2, 1]]), np.array([0.5]), p_dd3, weights)["probability"].round(6).tolist()
    [0.9]
    """
    table = np.empty(len(p_n), dtype=IMMORALITY)
    table["a"], table["c"], table["b"] = triples_n3.T
    table["probability"] = p_n
    if weights is not None and len(table):
        logit_n = describe(triples_n3, p_n, p_dd3) @ np.array([float(weights[term]) for term in TERMS])
        table["probability"] = 1 / (1 + np.exp(-logit_n))
    return np.sort(table, order=("a", "b", "c"))


def _logit(p: Matrix) -> Matrix:
    p = np.clip(p, LEAST, 1 - LEAST)
    return np.log(p / (1 - p))


# ── doors ─────────────────────────────────────────────────────────────────────────────────────────────────


def read_probabilities(p_dd3: ArrayLike) -> Matrix:
    """Return probabilities of none · skeleton · moral, exactly symmetric and with sums of one."""
    p = np.asarray(p_dd3, dtype=float)
    return tidy_probabilities(p, len(p) if p.ndim else 0)


def read_immoralities(rows: Any, n_variables: int) -> Immoralities:
    """Return rows (a, c, b, probability) as a table of type `IMMORALITY` with a < b, or say what is wrong with one.

    Examples
    --------
    >>> read_immoralities([(1, 2, 0, 0.75)], 3).tolist()
    [(0, 2, 1, 0.75)]
    """
    rows = [tuple(row) for row in rows] if rows is not None else []
    for k, row in enumerate(rows):
        if len(row) != 4:
            raise GraphError(f"collider {k} has {len(row)} entries; it must be (a, c, b, probability).")
        if len({int(i) for i in row[:3] if i == int(i) and 0 <= i < n_variables}) < 3:
            raise GraphError(
                f"collider {k} is {row[:3]}; (a, c, b) must be three different numbers from 0 to {n_variables - 1}."
            )
        if not 0 <= row[3] <= 1:
            raise GraphError(f"collider {k} has probability {row[3]}; it must lie between 0 and 1.")
    return np.array([(min(a, b), c, max(a, b), p) for a, c, b, p in rows], dtype=IMMORALITY)


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
    """All that is known of the directions of a table: links, immoralities, forbidden arrows.

    Parameters
    ----------
    p_dd3 : array_like, shape (d, d, 3)
        Probabilities of none · skeleton · moral, knowledge about links already enforced in them.
    immoralities : iterable of (a, c, b, probability), optional
        What the second network said, both networks combined. Of several rows for one triple the largest counts.
    forbidden : array_like, shape (d, d), or function of (i, j), optional
        True where the arrow i → j is forbidden.

    Examples
    --------
    >>> p_dd3 = np.full((4, 4, 3), [0.0, 1.0, 0.0])
    >>> p_dd3[0, 1] = p_dd3[1, 0] = [0.25, 0.0, 0.75]
    >>> beliefs = Beliefs(p_dd3, [(0, 2, 1, 0.5)])
    >>> [float(beliefs.immoral_at(c, np.array([0, 1]))[0, 1]) for c in (2, 3)]  # as said; half of 0.75
    [0.5, 0.375]
    """

    def __init__(self, p_dd3: ArrayLike, immoralities: Any = None, forbidden: Forbidden | None = None) -> None:
        p_dd3 = read_probabilities(p_dd3)
        self.p_dd = p_dd3[..., SKELETON]
        self.forbidden = read_forbidden(forbidden, len(p_dd3))
        self.immoralities = np.sort(read_immoralities(immoralities, len(p_dd3)), order="probability")
        both_dd = self.p_dd @ self.p_dd
        self._share_dd = np.divide(p_dd3[..., MORAL], both_dd, out=np.zeros_like(both_dd), where=both_dd > 0)
        children = self.immoralities["c"]
        order = np.argsort(children, kind="stable")  # of equal triples the largest comes last, and counts
        ends = np.searchsorted(children[order], np.arange(len(self) + 1))
        self._at = [self.immoralities[order[i:j]] for i, j in pairwise(ends)]

    def __len__(self) -> int:
        return len(self.p_dd)

    def immoral_at(self, c: int, nodes: Indices) -> Matrix:
        """Probability of nodes[i] → c ← nodes[j] at [i, j], as far as the two are not adjacent."""
        p_n = self.p_dd[c, nodes]
        q_nn = np.minimum(self._share_dd[np.ix_(nodes, nodes)] * (p_n[:, None] * p_n), 1.0)
        place = np.full(len(self), -1)
        place[nodes] = np.arange(len(nodes))
        said = self._at[c]
        i, j = place[said["a"]], place[said["b"]]
        known = (i >= 0) & (j >= 0)
        q_nn[i[known], j[known]] = q_nn[j[known], i[known]] = said["probability"][known]
        np.fill_diagonal(q_nn, 0.0)
        return q_nn
