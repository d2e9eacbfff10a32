"""Models of noise that reckon with hidden common causes, by the package lingam."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix, grade, keep_acyclic, partial_correlations
from graphbam.benchmarks.baselines._isolation import isolated
from graphbam.graphs.graph import moral_graph


class Rcd(Baseline):
    """Repetitive causal discovery: linear effects, noise that is not Gaussian (Maeda and Shimizu 2020)."""

    name, title, kind = "rcd", "RCD", "dag"
    package, module = "lingam", "lingam"

    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        with isolated(seed):
            return answer_effects(self.make_model().fit(x_md).adjacency_matrix_.T, x_md)  # theirs is [child, parent]

    def make_model(self) -> Any:
        """Model of the package, not yet fitted."""
        import lingam

        return lingam.RCD()


class CamUv(Rcd):
    """Causal additive models with unobserved variables (Maeda and Shimizu 2021)."""

    name, title = "cam-uv", "CAM-UV"

    def make_model(self) -> Any:
        """Model of the package, not yet fitted."""
        import lingam

        return lingam.CAMUV()


def answer_effects(effect_dd: Matrix, x_md: Matrix) -> Answer:
    """Effects of i on j, NaN for pairs with a hidden cause, as an answer; ranks by |partial correlation| as elsewhere.

    A pair with a hidden cause is no link: these models say that nothing else joins it.

    Examples
    --------
    >>> x_md = np.random.default_rng(0).normal(size=(50, 3))
    >>> answer = answer_effects(np.array([[0, 0.5, np.nan], [0, 0, 0], [np.nan, 0, 0]]), x_md)
    >>> answer.graph_dd.tolist(), answer.hidden_dd.astype(int).tolist()
    ([[0, 1, 0], [0, 0, 0], [0, 0, 0]], [[0, 0, 1], [0, 0, 0], [1, 0, 0]])
    """
    is_hidden_dd = np.isnan(effect_dd) | np.isnan(effect_dd.T)
    graph_dd = keep_acyclic(np.where(is_hidden_dd, 0.0, effect_dd), 0.0)
    strength_dd = np.clip(partial_correlations(x_md), 0.0, 0.999)
    moral_dd = grade(moral_graph(graph_dd), strength_dd)
    return Answer(graph_dd, grade(graph_dd, strength_dd), moral_dd, hidden_dd=is_hidden_dd + strength_dd)
