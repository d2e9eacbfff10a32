"""Greedy interventional equivalence search, by the package gies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix
from graphbam.benchmarks.baselines._isolation import isolated
from graphbam.benchmarks.baselines._targets import Environment, split_rows

LEAST_ROWS = 2
"""Environments with fewer rows than this have no covariance: they join the rows without a target."""


class Gies(Baseline):
    """GIES with the Gaussian BIC; without interventions GES with a turning phase."""

    name, title, kind = "gies", "GIES", "cpdag"
    package, module = "gies", "gies"
    reads_targets = True

    def fit(self, x_md: Matrix, *, seed: int, set_md: NDArray[np.bool_] | None = None) -> Answer:
        with isolated(seed):
            import gies

            parts = join_small(split_rows(x_md, set_md))
            found, _ = gies.fit_bic([part.x_md for part in parts], [list(part.targets) for part in parts])
            return Answer.graded((found != 0).astype(np.int8), x_md)


def join_small(parts: list[Environment]) -> list[Environment]:
    """Environments, those with too few rows joined into the one without targets."""
    small = [part.x_md for part in parts if not part.targets or len(part.x_md) < LEAST_ROWS]
    large = [part for part in parts if part.targets and len(part.x_md) >= LEAST_ROWS]
    return [*([Environment((), np.concatenate(small))] if small else []), *large]
