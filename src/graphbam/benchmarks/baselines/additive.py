r"""Additive regressions of any variable of a table on any others, all from one Gram matrix.

Variable j is modelled as Σ_i f_i(x_i) + noise over its parents i, each f_i a smooth function with a fixed number of
effective degrees of freedom (`graphbam.benchmarks.baselines.splines`). With B the spline columns of all parents,
G = BᵀB, Λ the diagonal penalty and A = G + Λ,

.. math::  P = \min_\beta \|x_j - B\beta\|^2 + \beta^\top \Lambda \beta = \|x_j\|^2 - x_j^\top B A^{-1} B^\top x_j ,

so that −n/2 · log P is, up to a constant, the penalised Gaussian log-likelihood with the variance maximised out. P
never rises when a parent is added, and by how much it falls follows from a Schur complement of A.

That fall is also the statistic by which a term is tested: with V = A⁻¹ it is β_iᵀ V_ii⁻¹ β_i, and if f_i = 0 it is
distributed as σ² Σ w_k χ²₁ with w the eigenvalues of V_ii⁻¹ (VGV)_ii. Two moments match it to a scaled χ²
(Satterthwaite), and the estimate of σ² from the residuals, which have n − 1 − tr(2VG − VGVG) degrees of freedom, makes
an F distribution of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphbam.benchmarks.baselines._base import Matrix
from graphbam.benchmarks.baselines.splines import expand, smoothing

RIDGE = 1e-8
"""Added to every penalty, so that two equal columns may stand in one regression."""

Variables = Sequence[int] | NDArray[np.int64]


class AdditiveModel:
    """Penalised additive regressions among the columns of one standardised table.

    Parameters
    ----------
    x_md : ndarray, shape (M, D)
        The table.
    n_knots : int, optional
        Knots per variable; None: one for ten samples, but 3 to 10.
    share : float
        Effective degrees of freedom of a term, as a share of its ``n_knots − 1`` columns.

    Examples
    --------
    >>> x = np.linspace(-1.7, 1.7, 60)
    >>> model = AdditiveModel(np.stack([x, x**2 - 1], axis=1))
    >>> model.loss(1, [0]) < 0.05 * model.loss(1, [])
    True
    """

    def __init__(self, x_md: Matrix, *, n_knots: int | None = None, share: float = 2 / 3) -> None:
        self.x_md = x_md - x_md.mean(axis=0)
        self.n_samples, self.n_variables = x_md.shape
        self.splines = expand(x_md, n_knots or min(max(self.n_samples // 10, 3), 10))
        self.n_columns = self.splines.n_columns
        self._basis_mc = self.splines.basis_mdk.reshape(self.n_samples, -1)
        self._penalty_c = smoothing(self.splines.bend_dk, share * self.n_columns).ravel() + RIDGE
        self._gram_cc = self._basis_mc.T @ self._basis_mc
        self._cross_cd = self._basis_mc.T @ self.x_md

    def loss(self, target: int, parents: Variables) -> float:
        """Penalised residual sum of squares P."""
        columns = self._columns(parents)
        explained = self._cross_cd[columns, target] @ self._coefficients(target, columns)
        return float(self.x_md[:, target] @ self.x_md[:, target] - explained)

    def residual(self, target: int, parents: Variables) -> Matrix:
        """What the parents leave of the target, (M,)."""
        columns = self._columns(parents)
        return np.asarray(self.x_md[:, target] - self._basis_mc[:, columns] @ self._coefficients(target, columns))

    def improvements(self, target: int, parents: Variables, candidates: Variables) -> Matrix:
        """By how much the loss falls when each candidate alone joins the parents, (C,)."""
        old, new = self._columns(parents), self._columns(candidates)
        shape = (-1, len(candidates), self.n_columns)
        joint_pc = self._gram_cc[np.ix_(old, new)]
        solved_pc = np.linalg.solve(self._normal(old), np.column_stack([joint_pc, self._cross_cd[old, target]]))
        pull_ck = (self._cross_cd[new, target] - joint_pc.T @ solved_pc[:, -1]).reshape(shape[1:])
        shadow_ckl = np.einsum("pck,pcl->ckl", joint_pc.reshape(shape), solved_pc[:, :-1].reshape(shape))
        alone_ckl = np.stack([self._normal(self._columns([c])) for c in candidates])
        solved_ck = np.linalg.solve(alone_ckl - shadow_ckl, pull_ck[..., None])[..., 0]
        return np.asarray((pull_ck * solved_ck).sum(axis=1))

    def p_values(self, target: int, parents: Variables) -> Matrix:
        """Probability, for each parent, of so large an improvement if its term were zero, (P,)."""
        from scipy.stats import f as f_distribution

        columns = self._columns(parents)
        v_cc = np.linalg.inv(self._normal(columns))
        hat_cc = v_cc @ self._gram_cc[np.ix_(columns, columns)]
        beta_c, spread_cc = v_cc @ self._cross_cd[columns, target], hat_cc @ v_cc
        rest_m = self.x_md[:, target] - self._basis_mc[:, columns] @ beta_c
        freedom = max(self.n_samples - 1 - np.trace(2 * hat_cc - hat_cc @ hat_cc), 1.0)
        result = np.ones(len(parents))
        for p in range(len(parents)):
            term = slice(p * self.n_columns, (p + 1) * self.n_columns)
            weight_kk = np.linalg.solve(v_cc[term, term], spread_cc[term, term])
            improvement = beta_c[term] @ np.linalg.solve(v_cc[term, term], beta_c[term])
            first, second = np.trace(weight_kk), np.trace(weight_kk @ weight_kk)
            ratio = improvement / first / (rest_m @ rest_m / freedom)
            result[p] = f_distribution.sf(ratio, first**2 / second, freedom)
        return result

    def _columns(self, variables: Variables) -> NDArray[np.int64]:
        start = np.asarray(variables, dtype=np.int64)[:, None] * self.n_columns
        return (start + np.arange(self.n_columns)).ravel()

    def _normal(self, columns: NDArray[np.int64]) -> Matrix:
        return np.asarray(self._gram_cc[np.ix_(columns, columns)] + np.diag(self._penalty_c[columns]))

    def _coefficients(self, target: int, columns: NDArray[np.int64]) -> Matrix:
        return np.linalg.solve(self._normal(columns), self._cross_cd[columns, target])
