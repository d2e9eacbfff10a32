"""graphbam itself, through the same door as everyone else."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from graphbam.benchmarks.baselines._base import Answer, Baseline, Kind, Matrix
from graphbam.benchmarks.baselines._isolation import isolated
from graphbam.benchmarks.baselines._weights import FOLDER, explain_absence, find_weights
from graphbam.graphs.graph import NONE, SKELETON
from graphbam.inference.journey import infer
from graphbam.inference.networks import Colliders, Weights, open_colliders, open_weights, reads_marks
from graphbam.inference.settings import Directions
from graphbam.nn.weights import list_weights
from graphbam.result import Result


class Bam(Baseline):
    """What a user gets without settings: links with probability 0.5 or more, and the CPDAG nearest in expectation."""

    name, title = "graphbam", "graphbam"
    kind: ClassVar[Kind] = "cpdag"
    reads_targets, reads_gaps = True, True
    directions: ClassVar[Directions] = "one-pass"
    weights: ClassVar[str] = "edges"
    colliders: ClassVar[str | None] = None
    """Names of weights inside the package; the second ones are for two steps."""

    def __init__(self, *, device: str = "cpu") -> None:
        self.device = device

    def skip(self, n_samples: int, n_variables: int) -> str | None:
        """Weights may not be part of the package."""
        missing = [repr(name) for name in (self.weights, self.colliders) if name and name not in list_weights()]
        if not missing:
            return None
        return f"weights {' and '.join(missing)} are not in the package, which has {', '.join(list_weights())}"

    @cached_property
    def _loaded(self) -> tuple[Weights, Colliders | None]:
        return open_weights(self.weights, self.device), open_colliders(self.colliders, self.device)

    def fit(self, x_md: Matrix, *, seed: int, set_md: NDArray[np.bool_] | None = None) -> Answer:
        """All that the network, or the two, have to say; columns with many gaps stay."""
        with isolated(seed):  # the loading too: a network draws first weights before it gets those of the file
            weights, colliders = self._loaded
            set_md = set_md if reads_marks(weights) else None
            result = infer(
                x_md, weights=weights, colliders=colliders, directions=self.directions, seed=seed, missing="impute",
                interventions=set_md,
            )  # fmt: skip
        return answer_from(result)


def answer_from(result: Result) -> Answer:
    """The benchmark's view of a result; undirected where nobody was asked for directions.

    A mark from i to j is in the CPDAG unless i and j are not adjacent, or the arrow points the other way. Graphs are
    compared by their distance, so the graph is the one chosen for that.
    """
    p_dd3, links_dd = result.probabilities, result.skeleton(0.5).adjacency
    link_dd, moral_dd = p_dd3[..., SKELETON], 1 - p_dd3[..., NONE]
    if not result.has_directions:
        return Answer(links_dd, link_dd, moral_dd)
    mark_dd, lean_dd = link_dd * (1 - result.compelled_probabilities.T), lean(result)
    cpdag_dd, dag_dd = result.cpdag(objective="shd").adjacency, result.dag(objective="shd").adjacency
    return Answer(
        cpdag_dd, mark_dd, moral_dd, links_dd, link_dd, arrow_dd=link_dd * lean_dd, lean_dd=lean_dd, dag_dd=dag_dd,
        hidden_dd=result.hidden_causes,
    )  # fmt: skip


def lean(result: Result) -> Matrix:
    """How likely i → j is rather than j → i, given a link, shape (D, D); each has half of what a result leaves open."""
    arrow_dd = result.arrow_probabilities
    return np.asarray(arrow_dd + (1 - arrow_dd - arrow_dd.T) / 2)


class BamTwoStep(Bam):
    """The same links, with directions as in the paper: a second network finds common children."""

    name, title = "graphbam-two-step", "graphbam, two steps"
    directions = "two-step"
    colliders = "colliders"


class BamPaper(Bam):
    """The same network and data as in the paper; links only."""

    name, title = "graphbam-paper", "BAM, as in the paper"
    kind = "undirected"
    directions = "none"
    weights = "edges-paper"

    def skip(self, n_samples: int, n_variables: int) -> str | None:
        """Its weights are for comparison only."""
        return None if find_weights(self.weights) else explain_absence(self.weights)

    @cached_property
    def _loaded(self) -> tuple[Weights, Colliders | None]:
        return open_weights(FOLDER / f"{self.weights}.safetensors", self.device), None
