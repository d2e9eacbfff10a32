"""NOTEARS, by gcastle."""

from __future__ import annotations

from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix, keep_acyclic
from graphbam.benchmarks.baselines._castle import import_castle
from graphbam.benchmarks.baselines._isolation import isolated


class Notears(Baseline):
    """Linear NOTEARS with the package's settings; the graph: weights above 0.3."""

    name, title, kind = "notears", "NOTEARS", "dag"
    package, module = "gcastle", "castle"

    def __init__(self, *, threshold: float = 0.3) -> None:
        self.threshold = threshold

    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        with isolated(seed):
            model = import_castle().Notears()
            model.learn(x_md)
            graph_dd = keep_acyclic(model.weight_causal_matrix, self.threshold)
            return Answer.graded(graph_dd, x_md)
