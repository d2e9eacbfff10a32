"""DAG-GNN: a variational autoencoder with the graph between its halves, by gcastle."""

from __future__ import annotations

import numpy as np

from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix, keep_acyclic
from graphbam.benchmarks.baselines._castle import import_castle
from graphbam.benchmarks.baselines._isolation import isolated


class DagGnn(Baseline):
    """DAG-GNN with the package's settings; the graph: weights above 0.3."""

    name, title, kind = "dag-gnn", "DAG-GNN", "dag"
    package, module = "gcastle", "castle"

    def __init__(self, *, epochs: int = 300, max_iter: int = 100, threshold: float = 0.3) -> None:
        self.epochs, self.max_iter, self.threshold = epochs, max_iter, threshold

    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        with isolated(seed):
            model = import_castle().DAG_GNN(epochs=self.epochs, k_max_iter=self.max_iter, seed=seed % 2**32)
            model.learn(x_md)
            weight_dd = np.sinh(3 * model.encoder.adj_A.detach().numpy())  # as the encoder reads it
            graph_dd = keep_acyclic(weight_dd, self.threshold)
            return Answer.graded(graph_dd, x_md)
