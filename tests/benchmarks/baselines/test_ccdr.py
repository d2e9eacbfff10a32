"""CCDr: every step against the objective written out, every graph acyclic, and linear worlds found."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from cases import SEEDS, each
from graphbam.benchmarks.baselines.ccdr import GAMMA, Ccdr, Descent, choose, log_likelihood, lowers, shrink, walk_path
from graphbam.graphs.graph import is_dag, skeleton


def standardise(x_md):
    return (x_md - x_md.mean(axis=0)) / x_md.std(axis=0)


def linear_world(seed, n_variables=8, n_samples=200):
    """Random DAG, straight effects, Gaussian noise; standardised table and DAG, columns shuffled."""
    rng = np.random.default_rng(seed)
    dag_dd = np.triu(rng.random((n_variables, n_variables)) < 2.5 / (n_variables - 1), 1)
    x_md = rng.standard_normal((n_samples, n_variables))
    for j in range(n_variables):
        weight_d = rng.uniform(0.4, 1.0, n_variables) * rng.choice([-1, 1], n_variables)
        x_md[:, j] = standardise(x_md[:, j] + x_md @ (weight_d * dag_dd[:, j] * (np.arange(n_variables) < j)))
    order = rng.permutation(n_variables)
    return x_md[:, order], dag_dd[np.ix_(order, order)].astype(np.int8)


def penalty(size, lam):
    return np.where(size < GAMMA * lam, lam * size - size**2 / (2 * GAMMA), GAMMA * lam**2 / 2)


def objective(x_md, phi_dd, rho_d, lam):
    """Q from its definition, on the table itself."""
    unit_md = x_md / np.linalg.norm(x_md, axis=0)
    rest_md = unit_md * rho_d - unit_md @ phi_dd
    return -len(x_md) * np.log(rho_d).sum() + (rest_md**2).sum() / 2 + penalty(np.abs(phi_dd), lam).sum()


@pytest.fixture(params=SEEDS)
def descent(request):
    """A table, and a descent on it that is half way, at a weight that allows many edges."""
    x_md, _ = linear_world(request.param)
    halfway = Descent(np.corrcoef(x_md.T), len(x_md))
    halfway.sweep(0.2 * np.sqrt(len(x_md)))
    return x_md, halfway, 0.1 * np.sqrt(len(x_md))


# ── single steps ──────────────────────────────────────────────────────────────────────────────────────────


@each("z", [-5.0, -1.7, -0.4, 0.0, 0.99, 1.01, 1.9, 2.1, 30.0])
def test_shrinking_minimises_over_one_coefficient(z):
    def cost(phi):
        return phi**2 / 2 - z * phi + float(penalty(abs(phi), 1.0))

    found = minimize_scalar(cost, bounds=(-40, 40), method="bounded", options={"xatol": 1e-9})
    phi = shrink(z, 1.0)
    assert cost(phi) <= found.fun + 1e-9
    assert lowers(phi, z, 1.0) == pytest.approx(-cost(phi))


def test_no_step_raises_the_objective(descent):  # law
    x_md, state, lam = descent
    for i, j in itertools.combinations(range(8), 2):
        before = objective(x_md, state.phi_dd, state.rho_d, lam)
        state.step(i, j, lam)
        between = objective(x_md, state.phi_dd, state.rho_d, lam)
        state.rescale()
        assert objective(x_md, state.phi_dd, state.rho_d, lam) <= between + 1e-9 <= before + 2e-9
        assert is_dag(state.phi_dd != 0)


def test_a_step_is_the_best_one_without_a_cycle(descent):
    """Against a grid over both coefficients, one of them zero, cycles left out."""
    x_md, state, lam = descent
    for i, j in itertools.combinations(range(8), 2):
        rival_dd, best = state.phi_dd.copy(), np.inf
        for (a, b), value in itertools.product([(i, j), (j, i)], np.linspace(-15, 15, 41)):
            rival_dd[a, b], rival_dd[b, a] = value, 0.0
            if is_dag(rival_dd != 0):
                best = min(best, objective(x_md, rival_dd, state.rho_d, lam))
        state.step(i, j, lam)
        assert objective(x_md, state.phi_dd, state.rho_d, lam) <= best + 1e-9


def test_best_scale_has_no_slope(descent):
    x_md, state, lam = descent
    state.rescale()
    for direction_d in np.eye(8):
        around = [objective(x_md, state.phi_dd, state.rho_d + h * direction_d, lam) for h in (-1e-4, 0, 1e-4)]
        assert around[1] <= min(around) + 1e-9


def test_pull_stays_in_step(descent):
    x_md, state, lam = descent
    state.sweep(lam)
    unit_md = x_md / np.linalg.norm(x_md, axis=0)
    np.testing.assert_allclose(state.pull_dd, unit_md.T @ (unit_md * state.rho_d - unit_md @ state.phi_dd), atol=1e-9)


def test_passing_over_empty_pairs_changes_nothing(descent):
    _, state, lam = descent
    slow = Descent(state.corr_dd, state.n_samples)
    quick = Descent(state.corr_dd, state.n_samples)
    for _ in range(3):
        quick.sweep(lam)
        slow.rescale()
        for i, j in itertools.combinations(range(8), 2):
            slow.step(i, j, lam)
        np.testing.assert_allclose(quick.phi_dd, slow.phi_dd, atol=1e-12)


def test_after_a_run_no_pair_moves(descent):  # law
    _, state, lam = descent
    assert state.run(lam, tolerance=1e-8)
    state.rescale()
    assert max(state.step(i, j, lam) for i, j in itertools.combinations(range(8), 2)) < 1e-4


# ── the path and the choice on it ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", SEEDS)
def test_path_grows_from_the_empty_graph_and_is_acyclic(seed):  # law
    x_md, _ = linear_world(seed, n_variables=12, n_samples=60)
    path = list(walk_path(np.corrcoef(x_md.T), 60))
    n_edges = [int((beta_dd != 0).sum()) for beta_dd in path]
    assert n_edges[0] == 0
    assert n_edges[-1] > 20
    assert sum(np.diff(n_edges) < 0) <= 1  # concave penalties give edges back now and then
    assert all(is_dag(beta_dd != 0) for beta_dd in path)


def test_path_of_two_variables_is_known():
    """Alone, x pulls at y with √n |r|: the edge enters there, and is the regression line once past γλ."""
    x_md = standardise(np.array([[0.0, 0.5], [1.0, 0.2], [2.0, 2.0], [3.0, 1.0], [4.0, 3.5]] * 8))
    r = np.corrcoef(x_md.T)[0, 1]
    for lam, beta_dd in zip(np.sqrt(40) * np.linspace(1, 1e-3, 20), walk_path(np.corrcoef(x_md.T), 40), strict=True):
        assert (beta_dd != 0).sum() == (lam < np.sqrt(40) * r)
    assert beta_dd[0, 1] == pytest.approx(r, abs=1e-3)


def test_path_ends_when_it_is_crowded():
    x_md = np.random.default_rng(0).standard_normal((30, 25))
    path = list(walk_path(np.corrcoef(x_md.T), 30))
    assert len(path) < 20
    assert max((beta_dd != 0).sum() for beta_dd in path) <= 250


def test_likelihood_of_a_full_graph_is_that_of_the_covariance():
    corr_dd = np.corrcoef(linear_world(0)[0].T)
    full_dd = np.triu(np.ones((8, 8)), 1)
    assert log_likelihood(full_dd, corr_dd, 200) == pytest.approx(-100 * np.linalg.slogdet(corr_dd)[1])
    assert log_likelihood(np.zeros((8, 8)), corr_dd, 200) == 0


def test_equivalent_graphs_are_equally_likely():  # law
    corr_dd = np.corrcoef(linear_world(1)[0][:, :3].T)
    chain_dd = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    assert log_likelihood(chain_dd, corr_dd, 50) == pytest.approx(log_likelihood(chain_dd.T, corr_dd, 50))


def test_last_step_that_pays_is_chosen():
    """Of a path that first adds a true edge, then nothing, then another true one, then a false one."""
    rng = np.random.default_rng(0)
    x_md = rng.standard_normal((500, 4))
    x_md[:, 1] += x_md[:, 0]
    x_md[:, 2] += x_md[:, 1]
    edges = [[], [(0, 1)], [(0, 1)], [(0, 1), (1, 2)], [(0, 1), (1, 2), (0, 3)]]
    path = [np.array([[float((i, j) in some) for j in range(4)] for i in range(4)]) for some in edges]
    corr_dd = np.corrcoef(x_md.T)
    assert choose(path, corr_dd, 500) == 3
    assert choose(path, corr_dd, 500, least=0.0) == 4
    assert choose(path[:1], corr_dd, 500) == 0


# ── the whole ─────────────────────────────────────────────────────────────────────────────────────────────


def test_linear_worlds_are_found():
    scores = []
    for seed in range(6):
        x_md, dag_dd = linear_world(seed, n_variables=12)
        found, true = skeleton(Ccdr().fit(x_md, seed=0).graph_dd), skeleton(dag_dd)
        scores.append(2 * (found & true).sum() / (found.sum() + true.sum()))
    assert np.mean(scores) > 0.8


@each("n_samples", [10, 25, 300])
def test_awkward_tables_have_finite_answers(n_samples):
    """Copies, two values, an exact sum, and fewer samples than variables."""
    x_md = np.random.default_rng(1).standard_normal((n_samples, 14))
    x_md[:, 1] = x_md[:, 0]
    x_md[:, 3] = x_md[:, 4] > np.median(x_md[:, 4])
    x_md[:, 6] = 2 * x_md[:, 5] - x_md[:, 0]
    answer = Ccdr().fit(standardise(x_md), seed=0)
    assert is_dag(answer.graph_dd)
    assert skeleton(answer.graph_dd)[0, 1]


def test_too_few_samples_are_a_reason():
    assert "10 samples" in Ccdr().skip(9, 5)
    assert Ccdr().skip(10, 5) is None
