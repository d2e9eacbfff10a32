"""Graphical lasso: a sparse precision matrix."""

from __future__ import annotations

import numpy as np

from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix, correlate_precision
from graphbam.benchmarks.baselines._isolation import isolated


class Glasso(Baseline):
    """Graphical lasso with the penalty chosen by five-fold cross-validation; the graph: entries that are not zero."""

    name, title, kind = "glasso", "Graphical lasso", "undirected"
    package, module = "scikit-learn", "sklearn"

    def skip(self, n_samples: int, n_variables: int) -> str | None:
        """Every fold needs two samples."""
        few = "five-fold cross-validation needs ten samples" if n_samples < 10 else None
        return super().skip(n_samples, n_variables) or few

    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        """Score pairs by |partial correlation|."""
        with isolated(seed):
            from sklearn.covariance import GraphicalLassoCV

            precision_dd = GraphicalLassoCV().fit(x_md).precision_
        strength_dd = correlate_precision(precision_dd)
        return Answer((strength_dd > 0).astype(np.int8), strength_dd)
