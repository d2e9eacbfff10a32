"""The empty graph: what every distance and score must be read against."""

from __future__ import annotations

import numpy as np

from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix


class Zero(Baseline):
    """No edge at all, and no preference."""

    name, title, kind = "zero", "Zero graph", "undirected"

    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        """Answer without looking."""
        n_variables = x_md.shape[1]
        return Answer(np.zeros((n_variables, n_variables), np.int8), np.zeros((n_variables, n_variables)))
