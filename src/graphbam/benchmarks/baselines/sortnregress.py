"""R²-SortnRegress: how far the mere predictability of variables gives their order away.

After Reisach and others (2023): in many simulated worlds a variable is the easier to predict from all others, the later
it comes. A method that is no better than this one has learnt the simulator, not the causes.
"""

from __future__ import annotations

import numpy as np

from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix, without_constants
from graphbam.benchmarks.baselines._isolation import isolated

RIDGE = 1e-9
"""Added to correlations of one, so that copies of a column may stand in one table."""


class SortnRegress(Baseline):
    """Order variables by R² on all others, then regress each on those before it: lasso, penalty chosen by BIC."""

    name, title, kind = "sortnregress", "R²-SortnRegress", "dag"
    package, module = "scikit-learn", "sklearn"

    def skip(self, n_samples: int, n_variables: int) -> str | None:
        """Least squares on all variables leave nothing to estimate the noise from."""
        few = "regression on all others needs more samples than variables" if n_samples <= n_variables else None
        return super().skip(n_samples, n_variables) or few

    @without_constants
    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        graph_dd = np.zeros((x_md.shape[1],) * 2, np.int8)
        with isolated(seed):
            from sklearn.linear_model import LassoLarsIC

            order = np.argsort(explained_variance(x_md), kind="stable")
            for place, target in enumerate(order[1:], start=1):
                before = order[:place]
                graph_dd[before, target] = LassoLarsIC("bic").fit(x_md[:, before], x_md[:, target]).coef_ != 0
            return Answer.graded(graph_dd, x_md)


class VarSortnRegress(SortnRegress):
    """The same in order of variance (Reisach and others 2021). There is none: tables come standardised."""

    name, title = "var-sortnregress", "Var-SortnRegress"

    def skip(self, n_samples: int, n_variables: int) -> str | None:
        """All variances are one."""
        return "the order of variances is that of units of measurement, and tables of the benchmark are standardised"


def explained_variance(x_md: Matrix) -> Matrix:
    """R² of each variable regressed on all others, (D,), from the inverse of the correlation matrix; of copies one.

    Examples
    --------
    >>> explained_variance(np.array([[0, 0], [1, 2], [2, 1]])).round(2)
    array([0.25, 0.25])
    """
    corr_dd = np.corrcoef(x_md, rowvar=False) + RIDGE * np.eye(x_md.shape[1])
    return np.asarray(1 - 1 / np.linalg.inv(corr_dd).diagonal())
