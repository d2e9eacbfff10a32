"""Extremely randomised trees: each variable regressed on all others, in the manner of GENIE3."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from graphbam.benchmarks.baselines._base import Answer, Baseline, Kind, Matrix, keep_acyclic, marry
from graphbam.benchmarks.baselines._isolation import isolated


class ExtraTrees(Baseline):
    """Share of the explained variance that trees credit to each variable; of the two ways of a pair the larger.

    The graph: pairs credited more than twice an equal share, 2 / (D − 1). There is no customary threshold.
    """

    name, title = "extra-trees", "Extra trees"
    kind: ClassVar[Kind] = "undirected"
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
        everyone = np.arange(x_md.shape[1])
        credit_dd = np.zeros((len(everyone), len(everyone)))
        for target in everyone:
            others = everyone[everyone != target]
            trees = self.make_trees(seed).fit(x_md[:, others], x_md[:, target])
            credit_dd[others, target] = trees.feature_importances_
        return credit_dd

    def make_trees(self, seed: int) -> Any:
        """Trees of the package, not yet fitted."""
        from sklearn.ensemble import ExtraTreesRegressor

        return ExtraTreesRegressor(self.n_trees, random_state=seed)


class Genie3(ExtraTrees):
    """GENIE3 (Huynh-Thu and others 2010): random forests that try √(D − 1) variables per split; regulator → target."""

    name, title = "genie3", "GENIE3"
    kind = "dag"

    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        """Regress; credit is taken for a direction, as the method's authors do."""
        with isolated(seed):
            credit_dd = self.measure(x_md, seed)
        graph_dd = keep_acyclic(credit_dd, self.shares / (len(credit_dd) - 1))
        return Answer(graph_dd, credit_dd, marry(graph_dd, credit_dd))

    def make_trees(self, seed: int) -> Any:
        """Forest of the package, not yet fitted."""
        from sklearn.ensemble import RandomForestRegressor

        return RandomForestRegressor(self.n_trees, max_features="sqrt", random_state=seed)
