"""Extremely randomised trees: each variable regressed on all others, in the manner of GENIE3."""

from __future__ import annotations

import numpy as np

from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix
from graphbam.benchmarks.baselines._isolation import isolated


class ExtraTrees(Baseline):
    """Share of the explained variance that trees credit to each variable; of the two ways of a pair the larger.

    The graph: pairs credited more than twice an equal share, 2 / (D − 1). There is no customary threshold.
    """

    name, title, kind = "extra-trees", "Extra trees", "undirected"
    package, module = "scikit-learn", "sklearn"

    def __init__(self, *, n_trees: int = 100, shares: float = 2.0) -> None:
        self.n_trees, self.shares = n_trees, shares

    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        """Regress; to be a good predictor is no direction, hence scores are symmetric."""
        with isolated(seed):
            credit_dd = self.measure(x_md, seed)
        score_dd = np.maximum(credit_dd, credit_dd.T)
        return Answer((score_dd > self.shares / (len(score_dd) - 1)).astype(np.int8), score_dd)

    def measure(self, x_md: Matrix, seed: int) -> Matrix:
        """Credit of variable i for variable j at [i, j], (D, D); columns sum to one."""
        from sklearn.ensemble import ExtraTreesRegressor

        everyone = np.arange(x_md.shape[1])
        credit_dd = np.zeros((len(everyone), len(everyone)))
        for target in everyone:
            others = everyone[everyone != target]
            trees = ExtraTreesRegressor(self.n_trees, random_state=seed).fit(x_md[:, others], x_md[:, target])
            credit_dd[others, target] = trees.feature_importances_
        return credit_dd
