"""DAGMA: weights of a linear model under a log-determinant that vanishes for DAGs, by the package dagma."""

from __future__ import annotations

from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix, keep_acyclic
from graphbam.benchmarks.baselines._isolation import isolated


class Dagma(Baseline):
    """Linear DAGMA with squared loss; the graph: weights above 0.3, the package's threshold."""

    name, title, kind = "dagma", "DAGMA", "dag"
    package, module = "dagma", "dagma"

    def __init__(self, *, penalty: float = 0.02, threshold: float = 0.3) -> None:
        self.penalty, self.threshold = penalty, threshold

    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        with isolated(seed):
            from dagma.linear import DagmaLinear

            weight_dd = DagmaLinear("l2").fit(
                x_md.copy(),  # it centres in place …
                lambda1=self.penalty,
                w_threshold=self.threshold,
                s=[1.0, 0.9, 0.8, 0.7, 0.6],  # … and adapts this list, were it the default, for all time
            )
            graph_dd = keep_acyclic(weight_dd, 0.0)
            return Answer.graded(graph_dd, x_md)
