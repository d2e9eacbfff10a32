"""Best order score search, by causal-learn."""

from __future__ import annotations

from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix
from graphbam.benchmarks.baselines._causal_learn import read_graph
from graphbam.benchmarks.baselines._isolation import isolated


class Boss(Baseline):
    """BOSS with the package's penalty, four times that of the BIC: 2 log M for each parameter."""

    name, title, kind = "boss", "BOSS", "cpdag"
    package, module = "causal-learn", "causallearn"

    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        with isolated(seed):
            from causallearn.search.PermutationBased.BOSS import boss

            graph_dd = read_graph(boss(x_md, verbose=False))
            return Answer.graded(graph_dd, x_md)
