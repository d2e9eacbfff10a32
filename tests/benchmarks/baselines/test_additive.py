"""Splines and additive regressions: laws, and agreement with scipy and with brute force."""

import itertools

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.interpolate import CubicSpline, make_smoothing_spline

from cases import each
from graphbam.benchmarks.baselines.additive import AdditiveModel
from graphbam.benchmarks.baselines.splines import expand, natural_splines, smoothing


def standardise(x_md):
    return (x_md - x_md.mean(axis=0)) / x_md.std(axis=0)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    x_md = rng.standard_normal((80, 6))
    x_md[:, 3] += np.cos(2 * x_md[:, 0]) + x_md[:, 1] ** 2
    x_md[:, 4] = rng.integers(3, size=80)
    x_md[:, 5] = x_md[:, 0]  # twice the same column
    return standardise(x_md)


# ── splines ───────────────────────────────────────────────────────────────────────────────────────────────


def test_columns_are_centred_and_orthonormal(table):
    splines = expand(table)
    for i in (0, 1, 2, 3, 5):
        basis_mk = splines.basis_mdk[:, i]
        np.testing.assert_allclose(basis_mk.T @ basis_mk, np.eye(9), atol=1e-9)
        np.testing.assert_allclose(basis_mk.sum(axis=0), 0, atol=1e-9)
    assert (np.diff(splines.bend_dk[0]) > 0).all()


def test_first_column_is_the_variable_and_bends_for_free(table):
    splines = expand(table)
    for i in range(table.shape[1]):
        column_m = splines.basis_mdk[:, i, 0]
        np.testing.assert_allclose(np.abs(column_m) * np.sqrt(len(table)), np.abs(table[:, i]), atol=1e-6)
        assert splines.bend_dk[i, 0] == 0


def test_every_natural_spline_with_these_knots_is_a_combination():
    rng = np.random.default_rng(1)
    x_m = np.sort(rng.standard_normal(50)).round(6)
    knots = x_m[np.linspace(0, 49, 7).round().astype(int)]
    wanted_m = CubicSpline(knots, rng.standard_normal(7), bc_type="natural")(x_m)
    basis_mk, _ = natural_splines(x_m, 7)
    centred_m = wanted_m - wanted_m.mean()
    np.testing.assert_allclose(basis_mk @ (basis_mk.T @ centred_m), centred_m, atol=1e-9)


def test_shrunken_fit_is_the_smoothing_spline_of_scipy():
    rng = np.random.default_rng(2)
    x_m, y_m, lam = np.sort(rng.uniform(-2, 2, 9)).round(6), rng.standard_normal(9), 0.3
    basis_mk, bend_k = natural_splines(x_m, 9)
    curve = CubicSpline(x_m, basis_mk[:, 1], bc_type="natural")
    unit = sum(quad(lambda t: curve(t, 2) ** 2, a, b)[0] for a, b in itertools.pairwise(x_m))
    ours_m = y_m.mean() + basis_mk @ (basis_mk.T @ y_m / (1 + lam * unit * bend_k))
    np.testing.assert_allclose(ours_m, make_smoothing_spline(x_m, y_m, lam=lam)(x_m), atol=1e-8)


def test_variables_with_few_values_have_few_columns():
    x_m = np.tile([0.0, 1.0, 5.0], 10)
    splines = expand(np.stack([x_m, x_m > 0], axis=1).astype(float), n_knots=6)
    np.testing.assert_array_equal((splines.basis_mdk != 0).any(axis=0).sum(axis=1), [2, 1])
    assert (splines.bend_dk[:, 2:] > 1e9).all()


@each("freedom", [1.5, 3.0, 6.0, 8.5])
def test_smoothing_leaves_the_degrees_of_freedom_it_was_asked_for(table, freedom):
    left_d = (1 / (1 + smoothing(expand(table).bend_dk, freedom))).sum(axis=1)
    np.testing.assert_allclose(left_d[:4], freedom, rtol=1e-6)
    assert left_d[4] == pytest.approx(min(freedom, 2.0), abs=1e-5)  # three values: two columns


# ── regressions ───────────────────────────────────────────────────────────────────────────────────────────


def penalised_least_squares(x_md, target, parents):
    """Coefficients by stacking the penalty below the columns, and the loss."""
    splines = expand(x_md, 8)
    penalty_dk = smoothing(splines.bend_dk, 2 / 3 * 7)
    basis_mc = splines.basis_mdk[:, parents].reshape(len(x_md), -1)
    rows_mc = np.vstack([basis_mc, np.diag(np.sqrt(penalty_dk[parents].ravel()))])
    right_m = np.concatenate([x_md[:, target], np.zeros(basis_mc.shape[1])])
    beta_c = np.linalg.lstsq(rows_mc, right_m, rcond=1e-10)[0]
    return basis_mc @ beta_c, ((right_m - rows_mc @ beta_c) ** 2).sum()


@each("parents", [[0], [2, 1], [0, 1, 2, 4], [0, 5]])
def test_fit_is_penalised_least_squares(table, parents):
    model = AdditiveModel(table, n_knots=8)
    fitted_m, loss = penalised_least_squares(table, 3, parents)
    np.testing.assert_allclose(table[:, 3] - model.residual(3, parents), fitted_m, atol=1e-6)
    assert model.loss(3, parents) == pytest.approx(loss, rel=1e-7)


@each("parents", [[], [0], [0, 1], [2, 4, 0]])
def test_improvement_is_the_fall_of_the_loss_and_never_negative(table, parents):  # law
    model = AdditiveModel(table)
    candidates = [i for i in range(6) if i != 3 and i not in parents]
    falls = model.improvements(3, parents, candidates)
    expected = [model.loss(3, parents) - model.loss(3, [*parents, i]) for i in candidates]
    np.testing.assert_allclose(falls, expected, atol=1e-6)
    assert (falls > -1e-9).all()


def test_straight_lines_are_fitted_exactly():  # law
    rng = np.random.default_rng(3)
    x_md = rng.standard_normal((60, 3))
    x_md[:, 2] = 2 * x_md[:, 0] - x_md[:, 1]
    model = AdditiveModel(standardise(x_md))
    assert np.abs(model.residual(2, [0, 1])).max() < 1e-6


def test_p_values_of_straight_terms_are_those_of_linear_regression():
    rng = np.random.default_rng(4)
    x_md = standardise(rng.standard_normal((40, 3)) + 0.4 * rng.standard_normal((40, 1)))
    ours = AdditiveModel(x_md, n_knots=2, share=1.0).p_values(2, [0, 1])
    beta, *_ = np.linalg.lstsq(x_md[:, :2], x_md[:, 2], rcond=None)
    rest = x_md[:, 2] - x_md[:, :2] @ beta
    spread = np.sqrt(rest @ rest / 37 * np.linalg.inv(x_md[:, :2].T @ x_md[:, :2]).diagonal())
    np.testing.assert_allclose(ours, 2 * stats.t.sf(np.abs(beta / spread), 37), rtol=1e-5)


def test_p_values_of_terms_that_are_not_there_are_uniform():  # law
    rng = np.random.default_rng(5)
    p = []
    for _ in range(150):
        x_md = rng.standard_normal((100, 5))
        x_md[:, 4] += x_md[:, 0] ** 2
        p.append(AdditiveModel(standardise(x_md)).p_values(4, [0, 1, 2, 3]))
    truth, nothing = np.array(p)[:, 0], np.array(p)[:, 1:].ravel()
    assert truth.max() < 0.01
    assert stats.kstest(nothing, "uniform").pvalue > 0.01
    assert (nothing < 0.01).mean() < 0.03
