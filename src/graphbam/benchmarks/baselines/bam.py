"""graphbam itself, through the same door as everyone else."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix
from graphbam.benchmarks.baselines._isolation import isolated
from graphbam.estimator import Weights, infer, open_weights
from graphbam.graph import NONE, SKELETON
from graphbam.weights import list_weights


class Bam(Baseline):
    """Edge probabilities from one forward pass; the graph holds the pairs with probability 0.5 or more."""

    name, title, kind = "graphbam", "graphbam", "undirected"
    weights: ClassVar[str] = "edges"
    """Name of weights inside the package."""

    def __init__(self, *, device: str = "cpu") -> None:
        self.device = device

    def skip(self, n_samples: int, n_variables: int) -> str | None:
        """Weights may not be part of the package."""
        if self.weights in list_weights():
            return None
        return f"weights {self.weights!r} are not in the package, which has {', '.join(list_weights())}"

    @cached_property
    def _loaded(self) -> Weights:
        return open_weights(self.weights, self.device)

    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        """Infer the skeleton; no directions, hence scores are symmetric."""
        with isolated(seed):
            result = infer(x_md, weights=self._loaded, seed=seed)
        p_dd3 = result.probabilities
        return Answer(result.skeleton(0.5).adjacency, p_dd3[..., SKELETON], 1 - p_dd3[..., NONE])


class BamPaper(Bam):
    """The same, with weights trained as in the paper."""

    name, title = "graphbam-paper", "BAM, as in the paper"
    weights = "edges-paper"
