"""The PC algorithm with four tests of conditional independence, by causal-learn."""

from __future__ import annotations

from typing import Any, ClassVar

from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix
from graphbam.benchmarks.baselines._causal_learn import read_graph
from graphbam.benchmarks.baselines._isolation import isolated


class Pc(Baseline):
    """Stable PC with Fisher's z at level 0.05."""

    name, title, kind = "pc", "PC", "cpdag"
    package, module = "causal-learn", "causallearn"
    test: ClassVar[str] = "fisherz"
    """Name of the test in causal-learn."""
    test_settings: ClassVar[dict[str, Any]] = {}

    def __init__(self, *, alpha: float = 0.05) -> None:
        self.alpha = alpha

    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        with isolated(seed):
            from causallearn.search.ConstraintBased.PC import pc

            found = pc(x_md, self.alpha, self.test, show_progress=False, **self.test_settings)
            graph_dd = read_graph(found.G)
            return Answer.graded(graph_dd, x_md)


class PcKci(Pc):
    """PC with the kernel-based test of Zhang and others: sees bends of any kind, at cubic cost in the samples."""

    name, title, test = "pc-kci", "PC, KCI", "kci"


class PcRcit(Pc):
    """PC with the randomised kernel test of Strobl and others."""

    name, title, test = "pc-rcit", "PC, RCIT", "rcit"


class PcRcot(PcRcit):
    """PC with their lighter variant, which leaves the conditioning set out of the second variable's features."""

    name, title = "pc-rcot", "PC, RCoT"
    test_settings: ClassVar[dict[str, Any]] = {"rcit": False}
