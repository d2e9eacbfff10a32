"""A graded score for methods that answer with a graph alone, so that they can be ranked like the others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Matrix = NDArray[np.float64]


def partial_correlations(x_md: Matrix) -> Matrix:
    """|Partial correlation| of all pairs, (D, D), from a covariance shrunk after Ledoit and Wolf."""
    from sklearn.covariance import ledoit_wolf

    return correlate_precision(np.linalg.inv(ledoit_wolf(x_md)[0]))


def correlate_precision(precision_dd: NDArray[np.floating[Any]]) -> Matrix:
    """|Partial correlation| from a precision matrix; exactly symmetric, zero on the diagonal.

    Examples
    --------
    >>> correlate_precision(np.array([[4.0, 1.0], [1.0, 1.0]]))
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    scale = np.sqrt(np.clip(precision_dd.diagonal(), 1e-12, None))
    strength_dd = np.abs(precision_dd + precision_dd.T) / 2 / np.outer(scale, scale)  # solvers differ in the last digit
    np.fill_diagonal(strength_dd, 0.0)
    return np.minimum(strength_dd, 1.0)


def grade(graph_dd: ArrayLike, strength_dd: ArrayLike) -> Matrix:
    """Scores of marks: those of the graph first (1 to 2), the rest after (0 to 1), each ordered by strength.

    Pairs that the graph leaves open, or joins without direction, score alike both ways; the tail of an arrow scores
    with the absent marks.

    Examples
    --------
    >>> grade([[0, 1], [0, 0]], [[0, 0.25], [0.25, 0]])
    array([[0.  , 1.25],
           [0.25, 0.  ]])
    """
    score_dd = np.asarray(graph_dd, float) + np.clip(np.asarray(strength_dd, float), 0.0, 1.0)
    np.fill_diagonal(score_dd, 0.0)
    return score_dd


def keep_acyclic(weight_dd: ArrayLike, threshold: float) -> NDArray[np.int8]:
    """The DAG of the weights above a threshold: taken in order of size, leaving out those that would close a cycle.

    For methods whose penalty drives cycles out without a guarantee: of i ⇄ j the larger weight stays.

    Examples
    --------
    >>> keep_acyclic([[0, 0.9, 0], [0.6, 0, 0.8], [0.7, 0.2, 0]], threshold=0.3)
    array([[0, 1, 0],
           [0, 0, 1],
           [0, 0, 0]], dtype=int8)
    """
    size_dd = np.abs(np.asarray(weight_dd, float))
    graph_dd = np.zeros(size_dd.shape, np.int8)
    reaches_dd = np.eye(len(size_dd), dtype=bool)  # [i, j]: a path leads from i to j
    chosen = np.argwhere(size_dd > threshold)
    for i, j in chosen[np.argsort(-size_dd[*chosen.T], kind="stable")]:
        if not reaches_dd[j, i]:
            graph_dd[i, j] = 1
            reaches_dd |= np.outer(reaches_dd[:, i], reaches_dd[j])
    return graph_dd
