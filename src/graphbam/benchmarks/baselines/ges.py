"""Greedy equivalence search, by causal-learn."""

from __future__ import annotations

from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix
from graphbam.benchmarks.baselines._causal_learn import read_graph
from graphbam.benchmarks.baselines._isolation import isolated


class Ges(Baseline):
    """GES with the Gaussian BIC: ½ log M for each parameter."""

    name, title, kind = "ges", "GES", "cpdag"
    package, module = "causal-learn", "causallearn"

    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        with isolated(seed):
            from causallearn.search.ScoreBased.GES import ges

            graph_dd = read_graph(ges(x_md, "local_score_BIC")["G"])
            return Answer.graded(graph_dd, x_md)
