"""A graded score for methods that answer with a graph alone, so that they can be ranked like the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Matrix = NDArray[np.float64]


def partial_correlations(x_md: Matrix) -> Matrix:
    """|Partial correlation| of all pairs, (D, D), from a covariance shrunk after Ledoit and Wolf."""
    from sklearn.covariance import ledoit_wolf

    return correlate_precision(np.linalg.inv(ledoit_wolf(x_md)[0]))


def correlate_precision(precision_dd: Matrix) -> Matrix:
    """|Partial correlation| from a precision matrix; zero on the diagonal.

    Examples
    --------
    >>> correlate_precision(np.array([[4.0, 1.0], [1.0, 1.0]]))
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    scale = np.sqrt(np.clip(precision_dd.diagonal(), 1e-12, None))
    strength_dd = np.abs(precision_dd) / np.outer(scale, scale)
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
