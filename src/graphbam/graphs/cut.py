"""Probabilities of none · skeleton · moral for every pair: how they are made exact, and which pairs a cut chooses."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphbam.errors import ConfigError, GraphError
from graphbam.graphs.graph import Matrix


def tidy_probabilities(p_dd3: ArrayLike, n_variables: int) -> Matrix:
    """Make probabilities exactly symmetric, sum to one, with a diagonal of (1, 0, 0); read-only.

    Examples
    --------
    >>> tidy_probabilities([[[0, 1, 0], [0, 3, 1]], [[0, 3, 1], [1, 1, 1]]], 2).tolist()[0]
    [[1.0, 0.0, 0.0], [0.0, 0.75, 0.25]]
    """
    result: Matrix = np.array(p_dd3, dtype=np.float64)
    if result.shape != (n_variables, n_variables, 3):
        raise GraphError(
            f"probabilities have shape {result.shape}; {n_variables} names need {(n_variables, n_variables, 3)}."
        )
    result[np.arange(n_variables), np.arange(n_variables)] = [1.0, 0.0, 0.0]
    if not np.isfinite(result).all() or (result < 0).any():
        raise GraphError("probabilities hold values that are negative or not finite; the network gave no answer.")
    result = (result + result.transpose(1, 0, 2)) / 2
    result /= result.sum(axis=-1, keepdims=True)
    result.setflags(write=False)
    return result


def choose_pairs(p_n: Matrix, threshold: float = 0.5, fdr: float | None = None) -> NDArray[np.bool_]:
    """Choose the pairs above a threshold, or the largest set that keeps a false-discovery target.

    With calibrated probabilities a chosen pair is wrong with probability 1 − p, so the expected share of
    wrong ones in a set is the mean of 1 − p. Pairs with equal probability are taken together or not at all.

    Parameters
    ----------
    p_n : ndarray, shape (N,)
        Probabilities of the pairs.
    threshold : float
        In (0, 1]; used without `fdr`.
    fdr : float, optional
        In (0, 1): the target.

    Examples
    --------
    >>> choose_pairs(np.array([0.99, 0.8, 0.6, 0.1]), fdr=0.15).tolist()
    [True, True, False, False]
    """
    if fdr is None:
        if not 0 < threshold <= 1:
            raise ConfigError(f"threshold={threshold} is not a probability of an edge; pass a number in (0, 1].")
        return np.asarray(p_n >= threshold)
    if not 0 < fdr < 1:
        raise ConfigError(f"fdr={fdr} is not a share of false discoveries; pass a number between 0 and 1.")
    levels, counts = np.unique(p_n, return_counts=True)
    levels, counts = levels[::-1], counts[::-1]
    expected = np.cumsum((1 - levels) * counts) / np.cumsum(counts)
    good = (expected <= fdr) & (levels > 0)
    return np.asarray(p_n >= levels[good][-1]) if good.any() else np.zeros(len(p_n), dtype=bool)
