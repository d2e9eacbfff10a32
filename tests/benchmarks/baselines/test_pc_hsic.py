"""PC-HSIC: the test against full kernel matrices and against its own level, and the graphs it leads to."""

import numpy as np
import pytest
from scipy import stats

from cases import each
from graphbam.benchmarks.baselines.pc_hsic import PcHsic, ResidualTest, centred_kernel, factorise, hsic_p_value
from graphbam.graphs.graph import skeleton


def standardise(x_md):
    return (x_md - x_md.mean(axis=0)) / x_md.std(axis=0)


def full_kernel(u_m):
    """The centred kernel matrix, entry by entry."""
    k_mm = np.exp(-((u_m[:, None] - u_m) ** 2) / 2)
    centre_mm = np.eye(len(u_m)) - 1 / len(u_m)
    return centre_mm @ k_mm @ centre_mm


def p_value(u_m, v_m):
    return hsic_p_value(centred_kernel(u_m), centred_kernel(v_m))


@pytest.fixture
def bent_chain():
    """0 → 1 → 2 by squares, and 3 alone."""
    rng = np.random.default_rng(0)
    x_md = rng.standard_normal((300, 4))
    x_md[:, 1] = x_md[:, 0] ** 2 + 0.4 * x_md[:, 1]
    x_md[:, 2] = standardise(x_md[:, 1]) ** 2 + 0.4 * x_md[:, 2]
    return standardise(x_md)


# ── the criterion ─────────────────────────────────────────────────────────────────────────────────────────


@each("draw", ["standard_normal", "standard_cauchy", "standard_exponential"])
def test_factors_multiply_to_the_kernel(draw):
    u_m = standardise(getattr(np.random.default_rng(0), draw)(150))
    factor_mr = factorise(u_m, tolerance=1e-6)
    np.testing.assert_allclose(factor_mr @ factor_mr.T, np.exp(-((u_m[:, None] - u_m) ** 2) / 2), atol=2e-4)
    assert factor_mr.shape[1] < 40


def test_p_value_is_that_of_full_matrices():
    u_m, v_m = standardise(np.random.default_rng(3).standard_normal((120, 2))).T
    k_mm, l_mm = full_kernel(u_m), full_kernel(v_m)
    mean = np.trace(k_mm) * np.trace(l_mm) / 120**2
    variance = 2 * (k_mm**2).sum() * (l_mm**2).sum() / 120**4
    expected = stats.gamma.sf(np.trace(k_mm @ l_mm) / 120, mean**2 / variance, scale=variance / mean)
    assert p_value(u_m, v_m) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("n_samples", [50, 200])
def test_p_values_of_independent_variables_are_uniform(n_samples):  # law
    rng = np.random.default_rng(n_samples)
    p = [p_value(rng.standard_normal(n_samples), rng.exponential(size=n_samples)) for _ in range(400)]
    assert stats.kstest(p, "uniform").pvalue > 0.01
    assert 0.02 < np.mean(np.array(p) < 0.05) < 0.09


@each("scale", [1e-3, 1.0, 1e3])
def test_units_do_not_matter_and_uncorrelated_dependence_is_seen(scale):
    u_m = np.linspace(-2, 2, 101)
    v_m = u_m**2
    assert abs(np.corrcoef(u_m, v_m)[0, 1]) < 1e-9
    assert p_value(scale * u_m, v_m) == pytest.approx(p_value(u_m, v_m), abs=1e-9)
    assert p_value(scale * u_m, v_m) < 1e-9


def test_nothing_is_independent_of_everything():
    assert p_value(np.zeros(30), np.arange(30.0)) == 1.0


# ── the conditional test ──────────────────────────────────────────────────────────────────────────────────


def test_middle_of_a_bent_chain_separates_its_ends(bent_chain):
    test = ResidualTest(bent_chain, alpha=0.05)
    assert test(0, 1, ()) < 1e-6
    assert test(0, 2) < 1e-3
    assert test(1, 2, (0,)) < 1e-4
    assert test(0, 2, (1,)) > 0.05
    assert test(0, 3, (1, 2)) > 0.05


def test_both_orders_are_one_test(bent_chain):
    one, other = ResidualTest(bent_chain, alpha=0.05), ResidualTest(bent_chain, alpha=0.05)
    assert one(1, 2, (3, 0)) == other(2, 1, (0, 3))
    np.testing.assert_array_equal(one.p_dd, one.p_dd.T)
    assert one.p_dd[1, 2] == one(2, 1, (0, 3))


def test_a_separated_pair_is_asked_no_more(bent_chain):
    test = ResidualTest(bent_chain, alpha=0.05)
    p = test(0, 3, ())
    assert p > 0.05
    assert test(3, 0, (1,)) == 0.0
    assert test.p_dd[0, 3] == p


# ── graphs ────────────────────────────────────────────────────────────────────────────────────────────────


def test_bent_chain_is_found(bent_chain):
    graph_dd = PcHsic().fit(bent_chain, seed=0).graph_dd
    assert sorted(map(tuple, np.argwhere(graph_dd).tolist())) == [(0, 1), (1, 0), (1, 2), (2, 1)]


def test_bent_collider_is_directed():
    rng = np.random.default_rng(1)
    x_md = rng.standard_normal((300, 3))
    x_md[:, 2] = np.cos(2 * x_md[:, 0]) + x_md[:, 1] ** 2 + 0.3 * x_md[:, 2]
    answer = PcHsic().fit(standardise(x_md), seed=0)
    np.testing.assert_array_equal(answer.graph_dd, [[0, 0, 1], [0, 0, 1], [0, 0, 0]])
    assert answer.moral_dd[0, 1] == answer.score_dd[[0, 1], 2].min() > answer.score_dd[0, 1]  # its parents are married


def test_graph_comes_first_and_evidence_orders(bent_chain):
    answer = PcHsic().fit(bent_chain, seed=0)
    assert answer.score_dd[answer.graph_dd == 1].min() > 1 > answer.score_dd[answer.graph_dd == 0].max()
    np.testing.assert_array_equal(answer.score_dd, answer.score_dd.T)  # no arrow in this graph
    assert answer.score_dd[0, 2] != answer.score_dd[0, 3]


def test_order_of_columns_only_relabels_the_skeleton():  # law
    rng = np.random.default_rng(2)
    x_md = rng.standard_normal((150, 8))
    for j in range(1, 8):
        x_md[:, j] += np.cos(2 * x_md[:, j - 1]) + (x_md[:, j // 2] ** 2 if j > 2 else 0)
        x_md[:, j] = standardise(x_md[:, j])
    order = rng.permutation(8)
    plain, moved = (PcHsic().fit(standardise(x), seed=0).graph_dd for x in (x_md, x_md[:, order]))
    assert plain.sum() > 5
    np.testing.assert_array_equal(skeleton(moved), skeleton(plain)[np.ix_(order, order)])


def test_noise_has_few_edges_and_the_level_counts():
    tables = [np.random.default_rng(seed).standard_normal((100, 8)) for seed in range(6)]
    strict, lenient = (
        sum(skeleton(PcHsic(alpha=alpha).fit(standardise(x_md), seed=0).graph_dd).sum() / 2 for x_md in tables)
        for alpha in (0.01, 0.2)
    )
    assert strict < 6  # of 168 pairs
    assert strict < lenient


@pytest.mark.parametrize("n_samples", [20, 100])
def test_awkward_tables_have_finite_answers(n_samples):
    rng = np.random.default_rng(1)
    x_md = rng.standard_normal((n_samples, 7))
    x_md[:, 1] = x_md[:, 0]
    x_md[:, 2] = rng.poisson(1.0, n_samples)
    x_md[:, 3] = x_md[:, 4] > 0
    x_md[0, 5] = 1e4
    answer = PcHsic().fit(standardise(x_md), seed=0)
    assert skeleton(answer.graph_dd)[0, 1]
    assert skeleton(answer.graph_dd)[3, 4]


def test_too_few_samples_are_a_reason():
    assert "20 samples" in PcHsic().skip(19, 5)
    assert PcHsic().skip(20, 5) is None
