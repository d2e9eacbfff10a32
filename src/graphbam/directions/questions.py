"""Questions to the collider network, and its answers as claims.

A *question* is a pair a < b that may be moral: not adjacent, but with a common child. Its *candidates*, the variables
adjacent to both, are the possible children; its *neighbours* are adjacent to exactly one of the two, and help to judge.
The answer is one probability of a → c ← b for each candidate c.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphbam.directions.immoralities import CLAIM, Indices, read_probabilities
from graphbam.errors import GraphError
from graphbam.graphs.cut import Cut
from graphbam.graphs.graph import MORAL, SKELETON, BoolMatrix, skeleton

__all__ = ["Question", "claim_table", "find_questions"]


class Question(NamedTuple):
    """A pair a < b that may have a common child, and the variables around it."""

    a: int
    b: int
    candidates: Indices
    """Variables adjacent to both: the possible common children."""
    neighbours: Indices
    """Other variables adjacent to exactly one of the two."""


def find_questions(
    p_dd3: ArrayLike, threshold: float = 0.5, moral_threshold: float | None = None, skeleton_dd: ArrayLike | None = None
) -> list[Question]:
    """List the moral pairs, with the candidates for their common child.

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
    list of Question
        In increasing order of (a, b). Pairs without candidate are left out: there is nothing to ask.

    Notes
    -----
    `graphbam.directions.cpdag.decide` looks at several skeletons. A lower `threshold` gives candidates for larger ones
    as well; claims that do not fit a skeleton are passed over there.

    Examples
    --------
    >>> p_dd3 = np.full((4, 4, 3), [0.9, 0.1, 0.0])
    >>> for a, b in [(0, 2), (1, 2), (1, 3)]:
    ...     p_dd3[a, b] = p_dd3[b, a] = [0.1, 0.9, 0.0]
    >>> p_dd3[0, 1] = p_dd3[1, 0] = [0.2, 0.0, 0.8]
    >>> find_questions(p_dd3)
    [Question(a=0, b=1, candidates=array([2]), neighbours=array([3]))]
    """
    p_dd3 = read_probabilities(p_dd3)
    if skeleton_dd is None:
        adjacent = Cut(threshold).links(p_dd3[..., SKELETON])
    else:
        adjacent = _read_skeleton(skeleton_dd, len(p_dd3))
    is_moral = Cut(threshold if moral_threshold is None else moral_threshold).links(p_dd3[..., MORAL])
    if skeleton_dd is not None:
        is_moral &= ~adjacent
    a, b = np.nonzero(np.triu(is_moral))
    worth_asking = (adjacent[a] & adjacent[b]).any(axis=1)
    a, b = a[worth_asking], b[worth_asking]
    beside_one = adjacent[a] ^ adjacent[b]
    beside_one[np.arange(len(a)), a] = beside_one[np.arange(len(b)), b] = False
    candidates, neighbours = _rows(adjacent[a] & adjacent[b]), _rows(beside_one)
    return [Question(*row) for row in zip(a.tolist(), b.tolist(), candidates, neighbours, strict=True)]


def _read_skeleton(skeleton_dd: ArrayLike, n_variables: int) -> BoolMatrix:
    edges = skeleton(skeleton_dd).astype(bool)
    if len(edges) != n_variables:
        raise GraphError(f"the skeleton has {len(edges)} variables, the probabilities {n_variables}; give equal sizes.")
    return edges


def _rows(marked: BoolMatrix) -> list[Indices]:
    """Indices of the True entries of each row."""
    row, column = np.nonzero(marked)
    return np.split(column, np.searchsorted(row, np.arange(1, len(marked)))) if len(marked) else []


def claim_table(asked: Iterable[Question], probabilities: Iterable[ArrayLike]) -> NDArray[np.void]:
    """Put the collider network's answers into one table of claims.

    Parameters
    ----------
    asked : iterable of Question
        What was asked.
    probabilities : iterable of array_like
        For each question one probability for each candidate, in the same order.

    Returns
    -------
    structured ndarray
        Rows (a, c, b, probability), as `graphbam.directions.cpdag.decide` takes them.

    Examples
    --------
    >>> claim_table([Question(0, 1, np.array([2, 5]), np.array([3]))], [[0.75, 0.5]]).tolist()
    [(0, 2, 1, 0.75), (0, 5, 1, 0.5)]
    """
    rows = [
        (one.a, c, one.b, p)
        for one, answers in zip(asked, probabilities, strict=True)
        for c, p in zip(one.candidates.tolist(), np.asarray(answers, dtype=float).tolist(), strict=True)
    ]
    return np.array(rows, dtype=CLAIM)
