"""NOTEARS with a small network for each variable, by gcastle."""

from __future__ import annotations

from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix, keep_acyclic
from graphbam.benchmarks.baselines._castle import import_castle
from graphbam.benchmarks.baselines._isolation import isolated


class NotearsMlp(Baseline):
    """NOTEARS-MLP, ten hidden units; the graph: norms of input weights above 0.3, the package's threshold."""

    name, title, kind = "notears-mlp", "NOTEARS-MLP", "dag"
    package, module = "gcastle", "castle"

    def __init__(self, *, max_iter: int = 100, threshold: float = 0.3) -> None:
        self.max_iter, self.threshold = max_iter, threshold

    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        with isolated(seed):
            model = import_castle().NotearsNonlinear(max_iter=self.max_iter)
            model.learn(x_md)
            graph_dd = keep_acyclic(model.weight_causal_matrix, self.threshold)
            return Answer.graded(graph_dd, x_md)
