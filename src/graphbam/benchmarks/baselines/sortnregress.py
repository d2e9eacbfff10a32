"""R²-SortnRegress: how far the mere predictability of variables gives their order away.

After Reisach and others (2023): in many simulated worlds a variable is the easier to predict from all others, the later
it comes. A method that is no better than this one has learnt the simulator, not the causes.

As in their package CausalDisco, the regression on those before is an adaptive lasso (Zou 2006): each column is weighted
by the size of its coefficient in least squares, so that weak ones pay more.
"""

from __future__ import annotations

import numpy as np

from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix, without_constants
from graphbam.benchmarks.baselines._isolation import isolated

RIDGE = 1e-9
"""Added to correlations of one, so that copies of a column may stand in one table."""


class SortnRegress(Baseline):
    """Order variables by R² on all others, then regress each on those before it: adaptive lasso, penalty by BIC."""

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
            order = np.argsort(explained_variance(x_md), kind="stable")
            for place, target in enumerate(order[1:], start=1):
                before = order[:place]
                graph_dd[before, target] = adaptive_lasso(x_md[:, before], x_md[:, target]) != 0
            return Answer.graded(graph_dd, x_md)


class VarSortnRegress(SortnRegress):
    """The same in order of variance (Reisach and others 2021). There is none: tables come standardised."""

    name, title = "var-sortnregress", "Var-SortnRegress"

    def skip(self, n_samples: int, n_variables: int) -> str | None:
        """All variances are one."""
        return "the order of variances is that of units of measurement, and tables of the benchmark are standardised"


def adaptive_lasso(x_md: Matrix, y_m: Matrix) -> Matrix:
    """Coefficients of y on x, (D,): a lasso, with the penalty of the lowest BIC, on columns weighted by least squares.

    Examples
    --------
    >>> x_md = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
    >>> adaptive_lasso(x_md, x_md @ [2.0, 0.02] + [0.1, -0.1, -0.1, 0.1]) != 0
    array([ True, False])
    """
    from sklearn.linear_model import LassoLarsIC, LinearRegression

    weight_d = np.abs(LinearRegression().fit(x_md, y_m).coef_)
    return np.asarray(weight_d * LassoLarsIC("bic").fit(x_md * weight_d, y_m).coef_)


def explained_variance(x_md: Matrix) -> Matrix:
    """R² of each variable regressed on all others, (D,), from the inverse of the correlation matrix; of copies one.

    Examples
    --------
    >>> explained_variance(np.array([[0, 0], [1, 2], [2, 1]])).round(2)
    array([0.25, 0.25])
    """
    corr_dd = np.corrcoef(x_md, rowvar=False) + RIDGE * np.eye(x_md.shape[1])
    return np.asarray(1 - 1 / np.linalg.inv(corr_dd).diagonal())
