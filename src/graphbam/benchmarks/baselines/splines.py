r"""Smooth functions of one variable, as columns of numbers that behave.

A natural cubic spline with K knots is fixed by its K values there, so that knots at data values give columns of full
rank. Bending costs ∫ f″(t)² dt. For each variable we take the K − 1 combinations B that sum to zero over the samples
and make both the Gram matrix and the cost of bending diagonal,

.. math::  B^\top B = I, \qquad \textstyle\int (B\beta)''^2 = \sum_k b_k \beta_k^2, \qquad 0 = b_1 < b_2 < \dots

(Demmler and Reinsch, 1975): the first column is the variable itself, the next ones are ever more wiggly. Penalised
least squares with weight λ then shrinks coefficient k by 1 / (1 + λ b_k), and the shrinkages sum to the effective
degrees of freedom (Green and Silverman, *Nonparametric Regression and Generalized Linear Models*, 1994).
"""

from __future__ import annotations

import dataclasses

import numpy as np

from graphbam.benchmarks.baselines._base import Matrix

NEVER = 1e16
"""Cost of bending of a column that is not there."""


@dataclasses.dataclass(frozen=True, eq=False)
class Splines:
    """Spline columns of all D variables, K − 1 each; those with few distinct values have zeros at the end."""

    basis_mdk: Matrix
    bend_dk: Matrix

    @property
    def n_columns(self) -> int:
        """Columns per variable."""
        return self.bend_dk.shape[1]


def expand(x_md: Matrix, n_knots: int = 10) -> Splines:
    """Spline columns of every variable of a table.

    Examples
    --------
    >>> splines = expand(np.array([[-1.0], [0.0], [1.0], [4.0]]), n_knots=3)
    >>> splines.basis_mdk.shape
    (4, 1, 2)
    """
    n_samples, n_variables = x_md.shape
    basis_mdk = np.zeros((n_samples, n_variables, n_knots - 1))
    bend_dk = np.full((n_variables, n_knots - 1), NEVER)
    for i, x_m in enumerate(x_md.T):
        basis_mk, bend_k = natural_splines(x_m, n_knots)
        basis_mdk[:, i, : len(bend_k)], bend_dk[i, : len(bend_k)] = basis_mk, bend_k
    return Splines(basis_mdk, bend_dk)


def natural_splines(x_m: Matrix, n_knots: int) -> tuple[Matrix, Matrix]:
    """Centred orthonormal natural cubic splines of one variable, from straight to wiggly, and their costs of bending.

    Knots are spread evenly over the ranks of the distinct values. Costs are relative to that of the first bent column.
    """
    from scipy.interpolate import CubicSpline

    distinct = np.unique(x_m.round(6))  # values of a standardised column that differ by rounding only are one knot
    knots = distinct[np.linspace(0, len(distinct) - 1, min(n_knots, len(distinct))).round().astype(int)]
    cardinal = CubicSpline(knots, np.eye(len(knots)), bc_type="natural")
    values_mk = cardinal(x_m)
    left_mk, size_k, right_kk = np.linalg.svd(values_mk - values_mk.mean(axis=0), full_matrices=False)
    left_mk, back_kk = left_mk[:, :-1], right_kk[:-1].T / size_k[:-1]  # the last direction is the constant
    bend_k, turn_kk = np.linalg.eigh(back_kk.T @ bending(knots, cardinal(knots, 2)) @ back_kk)
    bend_k[0] = 0.0  # a straight line, up to rounding
    return left_mk @ turn_kk, bend_k / bend_k[1] if len(bend_k) > 1 else bend_k


def bending(knots: Matrix, second_kk: Matrix) -> Matrix:
    """∫ f″ g″ of functions whose second derivatives are linear between knots and given there, one function a column.

    Examples
    --------
    >>> bending(np.array([0.0, 1.0, 3.0]), np.array([[0.0], [6.0], [0.0]]))  # 36 · (1 + 2) / 3
    array([[36.]])
    """
    gap = np.diff(knots)
    start, end = second_kk[:-1], second_kk[1:]
    both = start + end
    return np.asarray((both.T * gap @ both + start.T * gap @ start + end.T * gap @ end) / 6)


def smoothing(bend_dk: Matrix, freedom: float) -> Matrix:
    """Penalties λ b_k, (D, K − 1), that leave each variable `freedom` effective degrees, straight line included.

    A variable that has fewer columns keeps them all.

    Examples
    --------
    >>> penalty_dk = smoothing(np.array([[0.0, 1.0, 9.0]]), freedom=2.0)
    >>> float((1 / (1 + penalty_dk)).sum().round(6))
    2.0
    """
    low_d1, high_d1 = np.full((len(bend_dk), 1), -8.0), np.full((len(bend_dk), 1), 8.0)  # log10 λ
    for _ in range(50):
        middle_d1 = (low_d1 + high_d1) / 2
        too_free_d1 = (1 / (1 + 10.0**middle_d1 * bend_dk)).sum(axis=1, keepdims=True) > freedom
        low_d1[too_free_d1], high_d1[~too_free_d1] = middle_d1[too_free_d1], middle_d1[~too_free_d1]
    return np.asarray(10.0**high_d1 * bend_dk)
