"""Structural agnostic model: adversarial networks, one per variable, by cdt."""

from __future__ import annotations

import numpy as np
import pandas as pd

from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix, grade, keep_acyclic
from graphbam.benchmarks.baselines._isolation import isolated
from graphbam.graphs.graph import moral_graph


class Sam(Baseline):
    """SAM, one run on the CPU (the package's default is eight, averaged); the graph: weights above 0.5."""

    name, title, kind = "sam", "SAM", "dag"
    package, module = "cdt", "cdt"

    def __init__(self, *, train_epochs: int = 3000, test_epochs: int = 1000, threshold: float = 0.5) -> None:
        self.train_epochs, self.test_epochs, self.threshold = train_epochs, test_epochs, threshold

    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        """Train; pairs are scored by the probabilities of their gates."""
        import networkx as nx

        with isolated(seed):
            from cdt.causality.graph import SAM

            epochs = {"train_epochs": self.train_epochs, "test_epochs": self.test_epochs}
            frame = pd.DataFrame(x_md)
            found = SAM(nruns=1, njobs=1, gpus=0, verbose=False, **epochs).predict(frame)
        weight_dd = nx.to_numpy_array(found, nodelist=list(frame.columns))
        graph_dd = keep_acyclic(weight_dd, self.threshold)
        return Answer(graph_dd, weight_dd, grade(moral_graph(graph_dd), np.maximum(weight_dd, weight_dd.T)))
