"""Max–min parents and children, by pybnesian."""

from __future__ import annotations

import numpy as np
import pandas as pd

from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix
from graphbam.benchmarks.baselines._isolation import isolated


class Mmpc(Baseline):
    """MMPC with tests of linear correlation at level 0.05; directions, a by-product, are dropped."""

    name, title, kind = "mmpc", "MMPC", "undirected"
    package, module = "pybnesian", "pybnesian"

    def __init__(self, *, alpha: float = 0.05) -> None:
        self.alpha = alpha

    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        graph_dd = np.zeros((x_md.shape[1],) * 2, np.int8)
        with isolated(seed):
            import pybnesian

            frame = pd.DataFrame(x_md, columns=[str(k) for k in range(x_md.shape[1])])
            found = pybnesian.MMPC().estimate(pybnesian.LinearCorrelation(frame), alpha=self.alpha)
            for a, b in [*found.edges(), *found.arcs()]:  # it has directed what is part of a v-structure
                graph_dd[int(a), int(b)] = graph_dd[int(b), int(a)] = 1
            return Answer.graded(graph_dd, x_md)
