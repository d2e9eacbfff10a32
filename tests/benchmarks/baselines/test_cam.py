"""CAM: what each of its steps promises, and what it finds in additive worlds."""

import numpy as np
import pytest

from cases import SEEDS, each
from graphbam.benchmarks.baselines.additive import AdditiveModel
from graphbam.benchmarks.baselines.cam import Cam, CamUnpruned, grow, screen
from graphbam.graphs.graph import is_dag, skeleton


def standardise(x_md):
    return (x_md - x_md.mean(axis=0)) / x_md.std(axis=0)


def additive_world(seed, n_variables=10, n_samples=200):
    """Random DAG of degree 2.5; each edge straight, cosine or square; table and DAG, columns shuffled."""
    rng = np.random.default_rng(seed)
    dag_dd = np.triu(rng.random((n_variables, n_variables)) < 2.5 / (n_variables - 1), 1)
    x_md = rng.standard_normal((n_samples, n_variables))
    for j in range(n_variables):
        for i in np.flatnonzero(dag_dd[:, j]):
            shape = [np.array, lambda z: np.cos(2 * z), np.square][rng.integers(3)]
            x_md[:, j] += rng.uniform(0.5, 1.5) * rng.choice([-1, 1]) * shape(x_md[:, i])
        x_md[:, j] = standardise(x_md[:, j])
    order = rng.permutation(n_variables)
    return x_md[:, order], dag_dd[np.ix_(order, order)].astype(np.int8)


def f1(graph_dd, dag_dd):
    found, true = skeleton(graph_dd), skeleton(dag_dd)
    return 2 * (found & true).sum() / (found.sum() + true.sum())


@pytest.fixture(scope="module")
def world():
    x_md, dag_dd = additive_world(3, n_variables=15)
    model = AdditiveModel(x_md)
    return model, screen(model), dag_dd


# ── screening ─────────────────────────────────────────────────────────────────────────────────────────────


def test_screening_keeps_at_most_ten_and_misses_no_clear_parent(world):
    _, allowed_dd, dag_dd = world
    assert 1 <= allowed_dd.sum(axis=0).min() <= allowed_dd.sum(axis=0).max() <= 10
    assert not allowed_dd.diagonal().any()
    assert allowed_dd[dag_dd == 1].all()


def test_screening_limit_counts(world):
    model, *_ = world
    assert screen(model, most=3).sum(axis=0).max() <= 3


# ── growing ───────────────────────────────────────────────────────────────────────────────────────────────


def grow_slowly(model, allowed_dd):
    """The same search from its definition: every arrow, every loss and every cycle anew in each step."""
    graph_dd, order = np.zeros(allowed_dd.shape, np.int8), []
    while True:
        best = None
        for i, j in np.argwhere(allowed_dd & (graph_dd == 0)):
            graph_dd[i, j] = 1
            if is_dag(graph_dd):
                with_i = np.flatnonzero(graph_dd[:, j])
                gain = np.log(model.loss(j, with_i[with_i != i]) / model.loss(j, with_i))
                best = max(best or (-1.0, i, j), (gain, i, j))
            graph_dd[i, j] = 0
        if best is None:
            return order
        graph_dd[best[1], best[2]] = 1
        order.append(best)


@pytest.mark.parametrize("seed", SEEDS)
def test_growing_follows_its_definition(seed):
    model = AdditiveModel(additive_world(seed, n_variables=5, n_samples=60)[0])
    allowed_dd = np.random.default_rng(seed).random((5, 5)) < 0.7
    np.fill_diagonal(allowed_dd, False)
    gain_dd, slow = grow(model, allowed_dd), grow_slowly(model, allowed_dd)
    assert {tuple(edge) for edge in np.argwhere(gain_dd >= 0).tolist()} == {(i, j) for _, i, j in slow}
    np.testing.assert_allclose([gain_dd[i, j] for _, i, j in slow], [gain for gain, _, _ in slow], atol=1e-6)


def test_grown_graph_is_a_largest_dag_within_the_screen(world):  # law
    model, allowed_dd, _ = world
    graph_dd = grow(model, allowed_dd) >= 0
    assert is_dag(graph_dd)
    assert not (graph_dd & ~allowed_dd).any()
    for i, j in np.argwhere(allowed_dd & ~graph_dd):
        more_dd = graph_dd.copy()
        more_dd[i, j] = True
        assert not is_dag(more_dd)


# ── the whole ─────────────────────────────────────────────────────────────────────────────────────────────


def test_additive_worlds_are_found():
    """Far above what methods for straight lines reach here, and pruning is what makes the difference."""
    pruned, unpruned = [], []
    for seed in range(4):
        x_md, dag_dd = additive_world(seed)
        pruned.append(f1(Cam().fit(x_md, seed=0).graph_dd, dag_dd))
        unpruned.append(f1(CamUnpruned().fit(x_md, seed=0).graph_dd, dag_dd))
    assert np.mean(pruned) > 0.85
    assert np.mean(unpruned) < 0.65


@each("shape", [np.tanh, np.square, lambda z: np.cos(2 * z)], ids=["tanh", "square", "cosine"])
def test_direction_of_a_bent_effect_is_found(shape):
    rng = np.random.default_rng(0)
    for _ in range(5):
        x_m = 1.5 * rng.standard_normal(300)
        y_m = 2 * shape(x_m) + 0.5 * rng.standard_normal(300)
        graph_dd = Cam().fit(standardise(np.stack([y_m, x_m], axis=1)), seed=0).graph_dd
        np.testing.assert_array_equal(graph_dd, [[0, 0], [1, 0]])


@pytest.mark.parametrize("method", [Cam(), CamUnpruned()])
def test_order_of_columns_only_relabels(method):  # law
    x_md, _ = additive_world(5)
    order = np.random.default_rng(0).permutation(10)
    plain, moved = method.fit(x_md, seed=0), method.fit(x_md[:, order], seed=0)
    there = np.ix_(order, order)
    np.testing.assert_array_equal(moved.graph_dd, plain.graph_dd[there])
    np.testing.assert_allclose(moved.score_dd, plain.score_dd[there], atol=1e-6)


def test_pruned_arrows_are_some_of_the_grown_ones_and_lead_the_ranking():
    x_md, _ = additive_world(6)
    pruned, grown = Cam().fit(x_md, seed=0), CamUnpruned().fit(x_md, seed=0)
    assert 0 < pruned.graph_dd.sum() < grown.graph_dd.sum()
    assert (pruned.graph_dd <= grown.graph_dd).all()
    for answer in (pruned, grown):
        assert answer.score_dd[answer.graph_dd == 1].min() > answer.score_dd[answer.graph_dd == 0].max()


def test_pruning_is_as_strict_as_asked():
    x_md = np.random.default_rng(0).standard_normal((100, 8))
    strict, lenient = (Cam(alpha=alpha).fit(standardise(x_md), seed=0).graph_dd for alpha in (1e-3, 0.5))
    assert strict.sum() < lenient.sum()
    assert (strict <= lenient).all()


@each("n_samples", [20, 45, 300])
def test_awkward_tables_have_finite_answers(n_samples):
    """Copies, counts, two values, one far outlier, and hardly more samples than columns."""
    rng = np.random.default_rng(1)
    x_md = rng.standard_normal((n_samples, 14))
    x_md[:, 1] = x_md[:, 0]
    x_md[:, 2] = rng.poisson(1.0, n_samples)
    x_md[:, 3] = x_md[:, 4] > 0
    x_md[0, 5] = 1e4
    x_md[:, 6] = 2 * x_md[:, 5] - x_md[:, 0]
    for method in (Cam(), CamUnpruned()):
        answer = method.fit(standardise(x_md), seed=0)
        assert is_dag(answer.graph_dd)
        assert skeleton(answer.graph_dd)[0, 1]


def test_too_few_samples_are_a_reason():
    assert "20 samples" in Cam().skip(19, 5)
    assert Cam().skip(20, 5) is None
