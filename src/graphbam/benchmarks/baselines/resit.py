"""Regression with subsequent independence tests, by the package lingam."""

from __future__ import annotations

from typing import Any

from graphbam.benchmarks.baselines._base import Baseline
from graphbam.benchmarks.baselines.lingam import Lingam


class Resit(Lingam):
    """RESIT (Peters and others 2014): whoever is most independent of the rest's residuals comes last; by forests."""

    name, title = "resit", "RESIT"

    def __init__(self, *, n_trees: int = 30, alpha: float = 0.01) -> None:
        self.n_trees, self.alpha = n_trees, alpha

    def skip(self, n_samples: int, n_variables: int) -> str | None:
        """Any shape will do: its pruning is by tests of independence, not by the lasso of LiNGAM."""
        return Baseline.skip(self, n_samples, n_variables)

    def make_model(self, seed: int) -> Any:
        """Model of the package, not yet fitted."""
        import lingam
        from sklearn.ensemble import RandomForestRegressor

        forest = RandomForestRegressor(self.n_trees, max_depth=5, random_state=seed)
        return lingam.RESIT(regressor=forest, random_state=seed, alpha=self.alpha)
