"""Partial correlations: what a linear look at each pair given all others can see."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbam.benchmarks.baselines._base import (
    Answer,
    Baseline,
    Matrix,
    correlate_precision,
    partial_correlations,
    without_constants,
)
from graphbam.benchmarks.baselines._isolation import isolated


class PartialCorrelation(Baseline):
    """|Partial correlation| from a covariance shrunk after Ledoit and Wolf.

    The graph: pairs that pass Fisher's z test with false discoveries held at 5 % after Benjamini and Hochberg.
    """

    name, title, kind = "partial-correlation", "Partial correlation", "undirected"
    package, module = "scikit-learn", "sklearn"

    def __init__(self, *, fdr: float = 0.05) -> None:
        self.fdr = fdr

    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        """Measure, then test."""
        with isolated(seed):
            strength_dd = self.measure(x_md)
            return Answer(link_pairs(strength_dd, len(x_md), self.fdr), strength_dd)

    def measure(self, x_md: Matrix) -> Matrix:
        """|Partial correlation| of all pairs, (D, D)."""
        return partial_correlations(x_md)


class NormalScores(PartialCorrelation):
    """The same on normal scores of the ranks, with a ridge on the correlation: monotone bends and outliers vanish."""

    name, title = "partial-correlation-normal-scores", "Partial correlation, normal scores"
    package, module = "scipy", "scipy"

    def __init__(self, *, ridge: float = 0.1, fdr: float = 0.05) -> None:
        super().__init__(fdr=fdr)
        self.ridge = ridge

    @without_constants
    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        """Among columns that vary: the rank of a constant is in the middle, and has no score."""
        return super().fit(x_md, seed=seed)

    def measure(self, x_md: Matrix) -> Matrix:
        """|Partial correlation| of all pairs, (D, D)."""
        from scipy.stats import norm, rankdata

        z_md = norm.ppf((rankdata(x_md, axis=0) - 0.5) / len(x_md))
        correlation_dd = np.corrcoef(z_md, rowvar=False)
        return correlate_precision(np.linalg.inv(correlation_dd + self.ridge * np.eye(x_md.shape[1])))


def link_pairs(strength_dd: Matrix, n_samples: int, fdr: float) -> NDArray[np.int8]:
    """Pairs whose partial correlation is not zero: Fisher's z, then Benjamini and Hochberg over all pairs.

    A pair given all others leaves M − D − 1 degrees of freedom. Where there are none, the test is held at one, and
    finds next to nothing.

    Examples
    --------
    >>> link_pairs(np.array([[0, 0.5, 0.1], [0.5, 0, 0], [0.1, 0, 0]]), n_samples=100, fdr=0.05)
    array([[0, 1, 0],
           [1, 0, 0],
           [0, 0, 0]], dtype=int8)
    """
    from scipy.stats import false_discovery_control, norm

    n_variables = len(strength_dd)
    upper = np.triu_indices(n_variables, 1)
    z = np.arctanh(np.minimum(strength_dd[upper], 1 - 1e-12)) * np.sqrt(max(n_samples - n_variables - 1, 1))
    graph_dd = np.zeros((n_variables, n_variables), np.int8)
    graph_dd[upper] = false_discovery_control(2 * norm.sf(z)) <= fdr
    return graph_dd | graph_dd.T
