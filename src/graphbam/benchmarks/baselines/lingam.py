"""Linear non-Gaussian models, by the package lingam."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix
from graphbam.benchmarks.baselines._isolation import isolated


class Lingam(Baseline):
    """LiNGAM by independent component analysis; edges that the adaptive lasso keeps."""

    name, title, kind = "lingam", "LiNGAM", "dag"
    package, module = "lingam", "lingam"

    def skip(self, n_samples: int, n_variables: int) -> str | None:
        """The lasso that prunes needs an estimate of the noise."""
        few = "pruning by regression needs more samples than variables" if n_samples <= n_variables else None
        return super().skip(n_samples, n_variables) or few

    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        with isolated(seed):
            effect_dd = self.make_model(seed).fit(x_md).adjacency_matrix_
            graph_dd = (effect_dd.T != 0).astype(np.int8)  # theirs is [child, parent]
            return Answer.graded(graph_dd, x_md)

    def make_model(self, seed: int) -> Any:
        """Model of the package, not yet fitted."""
        import lingam

        return lingam.ICALiNGAM(random_state=seed)


class DirectLingam(Lingam):
    """LiNGAM that finds the order directly: the variable most independent of its residuals comes first."""

    name, title = "direct-lingam", "DirectLiNGAM"

    def make_model(self, seed: int) -> Any:
        """Model of the package, not yet fitted."""
        import lingam

        return lingam.DirectLiNGAM(random_state=seed)
