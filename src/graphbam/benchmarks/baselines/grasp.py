"""Greedy relaxation of the sparsest permutation, by causal-learn."""

from __future__ import annotations

from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix
from graphbam.benchmarks.baselines._causal_learn import read_graph
from graphbam.benchmarks.baselines._isolation import isolated


class Grasp(Baseline):
    """GRaSP with the package's penalty, four times that of the BIC: 2 log M for each parameter."""

    name, title, kind = "grasp", "GRaSP", "cpdag"
    package, module = "causal-learn", "causallearn"

    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        with isolated(seed):
            from causallearn.search.PermutationBased.GRaSP import grasp

            graph_dd = read_graph(grasp(x_md, verbose=False))
            return Answer.graded(graph_dd, x_md)
