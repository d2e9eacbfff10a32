"""Rivals for one kind of answer: hidden causes, interventions, pairs, missing cells."""

import numpy as np
import pytest

from graphbam.benchmarks.baselines import load_baseline
from graphbam.benchmarks.baselines._targets import Environment
from graphbam.benchmarks.baselines.fci import separate_by_parents
from graphbam.benchmarks.baselines.gies import join_small
from graphbam.graphs.graph import ancestors, skeleton
from oracle import random_dag


def standardise(x_md):
    return (x_md - x_md.mean(axis=0)) / x_md.std(axis=0)


# ── hidden causes ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def confounded():
    """0 → 2 ← hidden → 3 ← 1; uniform noise."""
    a, b, hidden, *noise = np.random.default_rng(0).uniform(-1, 1, (5, 400))
    return standardise(np.stack([a, b, a + hidden + 0.3 * noise[0], b + hidden + 0.3 * noise[1]], axis=1))


@pytest.mark.parametrize("name", ["fci", "gfci", "cam-uv"])
def test_the_hidden_cause_is_suspected_first(name, confounded):
    answer = load_baseline(name).fit(confounded, seed=0)
    np.testing.assert_array_equal(answer.hidden_dd, answer.hidden_dd.T)
    assert np.argmax(np.triu(answer.hidden_dd)) == 2 * 4 + 3
    assert (answer.graph_dd[[0, 1], [2, 3]] == 1).all()
    assert not answer.graph_dd[[2, 3], [0, 1]].any()


def test_rcd_finds_a_chain_and_suspects_nothing():
    a, b, c, d = np.random.default_rng(0).uniform(-1, 1, (4, 400))
    b = 0.9 * a + 0.5 * b
    answer = load_baseline("rcd").fit(standardise(np.stack([0.9 * b + 0.5 * c, d, a, b], axis=1)), seed=0)
    assert np.argwhere(answer.graph_dd).tolist() == [[2, 3], [3, 0]]
    assert answer.hidden_dd.max() < 1


@pytest.mark.parametrize("seed", range(3))
def test_parents_of_the_later_variable_separate(seed):
    """In any DAG: by d-separation in the moral graph of ancestors, an oracle of its own."""
    dag_dd = random_dag(np.random.default_rng(seed), 7, 3)
    apart = separate_by_parents(dag_dd)
    assert {pair for pair in apart if pair[0] != pair[1]} == {
        (int(i), int(j)) for i, j in np.argwhere(skeleton(dag_dd) == 0) if i != j
    }
    assert all(is_separated(dag_dd, i, j, given) for (i, j), given in apart.items())


def is_separated(dag_dd, i, j, given):
    above_dd = ancestors(dag_dd)
    kept = [k for k in range(len(dag_dd)) if above_dd[k, [i, j, *given]].any()]
    small_dd = dag_dd[np.ix_(kept, kept)]
    joined_dd = (small_dd + small_dd.T + small_dd @ small_dd.T) > 0
    blocked = [kept.index(k) for k in given]
    joined_dd[blocked] = joined_dd[:, blocked] = False
    reach_dd = np.linalg.matrix_power(joined_dd.astype(float) + np.eye(len(kept)), len(kept))
    return reach_dd[kept.index(i), kept.index(j)] == 0


# ── interventions ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def experiment():
    """0 → 1 → 2, linear and Gaussian: rows without a target, with the first variable set, with the second set."""
    rng, rows = np.random.default_rng(0), []
    for target in (None, 0, 1):
        noise = rng.normal(size=(3, 200))
        x = 2 * noise[0] if target == 0 else noise[0]
        y = 2 * noise[1] if target == 1 else 0.9 * x + 0.5 * noise[1]
        rows.append(np.stack([x, y, 0.9 * y + 0.5 * noise[2]], axis=1))
    set_md = np.zeros((600, 3), bool)
    set_md[200:400, 0] = set_md[400:, 1] = True
    return standardise(np.concatenate(rows)), set_md


@pytest.mark.parametrize("name", ["gies", "ut-igsp", "graphbam"])
def test_known_targets_direct_what_rows_alone_cannot(name, experiment):
    x_md, set_md = experiment
    method = load_baseline(name)
    assert method.reads_targets
    arrows = method.fit(x_md, seed=0, set_md=set_md).graph_dd
    np.testing.assert_array_equal(arrows, [[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    np.testing.assert_array_equal(method.fit(x_md[:200], seed=0).graph_dd, skeleton(arrows))


def test_without_rows_to_compare_with_there_is_no_search(experiment):
    x_md, set_md = experiment
    with pytest.raises(ValueError, match="0 rows without a target"):
        load_baseline("ut-igsp").fit(x_md[200:], seed=0, set_md=set_md[200:])


def test_single_rows_join_those_without_a_target():
    parts = [Environment((), np.zeros((3, 2))), Environment((0,), np.ones((1, 2))), Environment((1,), np.ones((4, 2)))]
    assert [(part.targets, len(part.x_md)) for part in join_small(parts)] == [((), 4), ((1,), 4)]


# ── pairs ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("name", "bend"), [("anm", np.tanh), ("reci", np.square), ("igci", np.exp), ("pnl", np.sin)])
def test_the_cause_is_found_and_the_order_of_columns_does_not_matter(name, bend):
    rng = np.random.default_rng(1)
    cause = rng.uniform(-2, 2, 150)
    noise = 0 if name == "igci" else 0.3 * rng.normal(size=150)
    x_m2 = standardise(np.stack([cause, bend(cause) + noise], axis=1))
    method = load_baseline(name)
    assert "two variables" in method.skip(200, 3)
    forward, backward = (method.fit(table, seed=0).score_dd[0, 1] for table in (x_m2, x_m2[:, ::-1]))
    assert forward > 0
    assert backward == pytest.approx(-forward, rel=1e-3)


# ── missing cells ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["pc-test-wise", "ges-test-wise", "pc-imputed", "boss-imputed", "graphbam-imputed"])
def test_gaps_do_not_hide_a_collider(name):
    rng = np.random.default_rng(4)
    x_md = rng.standard_normal((500, 4))
    x_md[:, 2] += x_md[:, 0] - x_md[:, 1]
    x_md[:, 3] += x_md[:, 2]
    gappy_md = np.where(rng.random(x_md.shape) < 0.1, np.nan, standardise(x_md))
    method = load_baseline(name)
    assert method.reads_gaps
    answer = method.fit(gappy_md, seed=0)
    assert np.argwhere(answer.graph_dd).tolist() == [[0, 2], [1, 2], [2, 3]]
    assert np.isfinite(answer.score_dd).all()


def test_a_complete_table_is_answered_as_without_imputation():
    x_md = standardise(np.random.default_rng(0).normal(size=(60, 4)).cumsum(axis=1))
    for name, plain in (("pc-imputed", "pc"), ("pc-test-wise", "pc"), ("ges-test-wise", "ges")):
        first, second = (load_baseline(word).fit(x_md, seed=0) for word in (name, plain))
        np.testing.assert_array_equal(first.score_dd, second.score_dd)
