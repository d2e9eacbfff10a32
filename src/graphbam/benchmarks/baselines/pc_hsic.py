r"""PC-HSIC: the PC algorithm with a kernel test on residuals, after Tillman, Gretton and Spirtes, NIPS 22 (2009).

Are x and y independent given S? Take from both what an additive spline regression on S explains
(`graphbam.benchmarks.baselines.additive`), then ask whether the residuals u and v are independent. The Hilbert–Schmidt
independence criterion of Gretton and others (NIPS 20, 2007) is, with centred kernel matrices K of u and L of v,

.. math::  T = \tfrac1n \operatorname{tr}(KL), \qquad
           \mathrm{E}\,T \approx \tfrac1{n^2} \operatorname{tr} K \operatorname{tr} L, \qquad
           \mathrm{Var}\,T \approx \tfrac2{n^4} \operatorname{tr} K^2 \operatorname{tr} L^2

under independence, where a gamma distribution with these moments stands for that of T.

A Gaussian kernel on the line has few eigenvalues that count: pivoted Cholesky (Fine and Scheinberg, JMLR 2, 2001) gives
K ≈ F Fᵀ with some ten columns, and all traces become products of narrow matrices, in time linear in the samples.

What differs from the R package kpcalg: residuals are brought to unit variance, since a kernel wider than the residuals
sees nothing but their correlation, which the regression has removed; the kernel is exp(−(u − u′)²/2); the moments are
those above; and smooth terms have fixed degrees of freedom.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix, grade, marry, without_constants
from graphbam.benchmarks.baselines._causal_learn import read_graph
from graphbam.benchmarks.baselines._isolation import isolated
from graphbam.benchmarks.baselines.additive import AdditiveModel

STORE = 2**28
"""Bytes of kernels that are kept for later tests."""


class PcHsic(Baseline):
    """Stable PC of causal-learn with the HSIC of additive residuals at level 0.05."""

    name, title, kind = "pc-hsic", "PC, HSIC", "cpdag"
    package, module = "causal-learn", "causallearn"

    def __init__(self, *, alpha: float = 0.05) -> None:
        self.alpha = alpha

    def skip(self, n_samples: int, n_variables: int) -> str | None:
        """A spline of three knots for each of a few variables."""
        few = "regression on several variables needs 20 samples" if n_samples < 20 else None
        return super().skip(n_samples, n_variables) or few

    @without_constants
    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        """The graph first, every part ranked by the largest p-value that a pair was given."""
        with isolated(seed):
            from causallearn.utils.PCUtils import Meek, SkeletonDiscovery, UCSepset

            test = ResidualTest(x_md, self.alpha)
            found = SkeletonDiscovery.skeleton_discovery(x_md, self.alpha, test, show_progress=False)
            found.set_ind_test(None)  # the next steps copy what they get, and would copy every kernel
            found = Meek.meek(UCSepset.uc_sepset(found, priority=2))
            evidence_dd = -np.log10(np.maximum(test.p_dd, 1e-300))
            graph_dd = read_graph(found.G)
            score_dd = grade(graph_dd, evidence_dd / (1 + evidence_dd))
            return Answer(graph_dd, score_dd, marry(graph_dd, score_dd))


class Kernel(NamedTuple):
    """A centred kernel matrix K = F Fᵀ, and what the null distribution needs of it."""

    factor_mr: Matrix
    trace: float
    trace_of_square: float


class ResidualTest:
    """Test of conditional independence in the form that causal-learn calls.

    After the first set that separates two variables it answers 0 for them: PC asks no more of a pair, whereas
    causal-learn would go through all sets of that size and take their union for the separating one.
    """

    method = "residual-hsic"

    def __init__(self, x_md: Matrix, alpha: float) -> None:
        self.model, self.alpha = AdditiveModel(x_md), alpha
        self.p_dd = np.zeros((x_md.shape[1], x_md.shape[1]))
        """Largest p-value of each pair so far."""
        bytes_each = 8 * 20 * len(x_md)
        self._kernel = lru_cache(max(STORE // bytes_each, 2 * x_md.shape[1]))(self._make_kernel)
        self._p_value = lru_cache(None)(self._compute)

    def __call__(self, x: int, y: int, given: tuple[int, ...] | None = None) -> float:
        """P-value of x ⟂ y | given."""
        x, y = sorted((int(x), int(y)))
        if self.p_dd[x, y] > self.alpha:
            return 0.0
        p = self._p_value(x, y, tuple(sorted(int(z) for z in given or ())))
        self.p_dd[x, y] = self.p_dd[y, x] = max(p, self.p_dd[x, y])
        return p

    def _compute(self, x: int, y: int, given: tuple[int, ...]) -> float:
        return hsic_p_value(self._kernel(x, given), self._kernel(y, given))

    def _make_kernel(self, x: int, given: tuple[int, ...]) -> Kernel:
        return centred_kernel(self.model.residual(x, given))


def centred_kernel(u_m: Matrix) -> Kernel:
    """Gaussian kernel matrix of standardised values, centred, in factors."""
    factor_mr = factorise((u_m - u_m.mean()) / max(u_m.std(), 1e-12))
    factor_mr -= factor_mr.mean(axis=0)
    gram_rr = factor_mr.T @ factor_mr
    return Kernel(factor_mr, float(np.trace(gram_rr)), float((gram_rr**2).sum()))


def factorise(u_m: Matrix, *, tolerance: float = 1e-3) -> Matrix:
    """Factor F, (M, R), of exp(−(u − u′)²/2) by pivoted Cholesky: what is missing has a mean diagonal below tolerance.

    Examples
    --------
    >>> factorise(np.array([0.0, 3.0, 0.0])).round(3)
    array([[1.   , 0.   ],
           [0.011, 1.   ],
           [1.   , 0.   ]])
    """
    columns_rm = np.empty((0, len(u_m)))
    missing_m = np.ones(len(u_m))
    while missing_m.mean() > tolerance:
        pivot = int(missing_m.argmax())
        column_m = np.exp(-((u_m - u_m[pivot]) ** 2) / 2) - columns_rm[:, pivot] @ columns_rm
        column_m /= np.sqrt(missing_m[pivot])
        columns_rm = np.vstack([columns_rm, column_m])
        missing_m = np.maximum(missing_m - column_m**2, 0.0)
    return columns_rm.T.copy()


def hsic_p_value(one: Kernel, other: Kernel) -> float:
    """Probability of so large a criterion if the variables behind two kernels were independent."""
    from scipy.special import gammaincc

    n = len(one.factor_mr)
    criterion = ((one.factor_mr.T @ other.factor_mr) ** 2).sum() / n
    mean = one.trace * other.trace / n**2
    variance = 2 * one.trace_of_square * other.trace_of_square / n**4
    if not variance:  # nothing is left of one variable, and nothing is independent of everything
        return 1.0
    return float(gammaincc(mean**2 / variance, criterion * mean / variance))
