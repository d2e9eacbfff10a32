"""Greedy hill climbing over DAGs, by pybnesian."""

from __future__ import annotations

import numpy as np
import pandas as pd

from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix
from graphbam.benchmarks.baselines._isolation import isolated


class HillClimbing(Baseline):
    """Add, remove and turn single arrows while the Gaussian BIC rises, from the empty graph."""

    name, title, kind = "hill-climbing", "Hill climbing", "dag"
    package, module = "pybnesian", "pybnesian"

    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        graph_dd = np.zeros((x_md.shape[1],) * 2, np.int8)
        with isolated(seed):
            import pybnesian

            frame = pd.DataFrame(x_md, columns=[str(k) for k in range(x_md.shape[1])])
            found = pybnesian.hc(frame, bn_type=pybnesian.GaussianNetworkType(), score="bic")
            for a, b in found.arcs():
                graph_dd[int(a), int(b)] = 1
            return Answer.graded(graph_dd, x_md)
