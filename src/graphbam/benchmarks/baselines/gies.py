"""Greedy interventional equivalence search, by the package gies."""

from __future__ import annotations

import numpy as np

from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix
from graphbam.benchmarks.baselines._isolation import isolated


class Gies(Baseline):
    """GIES without interventions: GES with a turning phase, same BIC."""

    name, title, kind = "gies", "GIES", "cpdag"
    package, module = "gies", "gies"

    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        with isolated(seed):
            import gies

            graph_dd = (gies.fit_bic([x_md], [[]])[0] != 0).astype(np.int8)
            return Answer.graded(graph_dd, x_md)
