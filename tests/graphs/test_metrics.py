"""Metrics, against scikit-learn and against their definitions spelt out."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import SEEDS, each, examples
from graphbam.errors import ConfigError, GraphError
from graphbam.graphs.equivalence import dag_to_cpdag
from graphbam.graphs.graph import moral_graph, skeleton
from graphbam.graphs.metrics import (
    accuracy,
    average_precision,
    expected_calibration_error,
    f1,
    pair_values,
    precision_recall,
    shd,
    sid,
    skeleton_average_precision,
    skeleton_shd,
)
from oracle import all_dags, all_pdags, descendants, is_open, random_dag, simple_paths

law = examples(100, 200)

COLLIDER = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]])
FORK = COLLIDER.T
EMPTY = np.zeros((3, 3))


@pytest.fixture(params=SEEDS)
def rng(request):
    return np.random.default_rng(request.param)


# ── structural Hamming distance ───────────────────────────────────────────────────────────────────────────


def test_shd_counts_pairs_whose_marks_differ():
    graphs = list(all_pdags(3))
    for a, b in itertools.product(graphs, repeat=2):
        marks = [((a[i, j], a[j, i]), (b[i, j], b[j, i])) for i, j in itertools.combinations(range(3), 2)]
        assert shd(a, b) == sum(first != second for first, second in marks)
        assert skeleton_shd(a, b) == sum(any(first) != any(second) for first, second in marks)


def test_shd_is_a_distance(rng):
    a, b, c = (dag_to_cpdag(random_dag(rng, 30, 4)) for _ in range(3))
    assert shd(a, a) == 0
    assert shd(a, b) == shd(b, a) > 0
    assert shd(a, c) <= shd(a, b) + shd(b, c)
    assert shd(a, np.zeros_like(a)) == skeleton(a).sum() // 2
    assert skeleton_shd(a, b) <= shd(a, b)


def test_graphs_of_different_size_are_refused():
    for distance in (shd, skeleton_shd, sid):
        with pytest.raises(GraphError, match="3 variables, the other 4"):
            distance(np.zeros((3, 3)), np.zeros((4, 4)))


# ── structural intervention distance ──────────────────────────────────────────────────────────────────────


def adjusts(true, i, j, chosen):
    """Adjustment criterion: the set holds nothing below the causal paths and blocks all other paths."""
    paths = list(simple_paths(true, i, j))
    causal = [path for path in paths if all(true[a, b] for a, b in itertools.pairwise(path))]
    below_causal = {below for path in causal for node in path[1:] for below in descendants(true, node)}
    others = [path for path in paths if path not in causal]
    return not below_causal & chosen and not any(is_open(true, path, chosen) for path in others)


def sid_by_definition(true, guess):
    mistakes = 0
    for i, j in itertools.permutations(range(len(true)), 2):
        parents = set(np.flatnonzero(guess[:, i]).tolist())
        if j in parents:
            mistakes += j in descendants(true, i)
        else:
            mistakes += not adjusts(true, i, j, parents)
    return mistakes


def test_sid_follows_its_definition_in_our_direction():
    pytest.importorskip("gadjid")
    assert (sid(COLLIDER, EMPTY), sid(FORK, EMPTY)) == (2, 4)
    for true, guess in itertools.product(all_dags(3), repeat=2):
        assert sid(true, guess) == sid_by_definition(true, guess)


def test_sid_of_single_variables_is_zero():
    pytest.importorskip("gadjid")
    assert sid([[0]], [[0]]) == 0


def test_sid_wants_dags():
    with pytest.raises(GraphError, match="0 — 1 is undirected; choose a direction"):
        sid([[0, 1], [0, 0]], [[0, 1], [1, 0]])


def test_sid_says_how_to_get_its_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "gadjid", None)
    with pytest.raises(ImportError, match=r"pip install 'graphbam\[benchmark\]'"):
        sid(COLLIDER, COLLIDER)


# ── ranking ───────────────────────────────────────────────────────────────────────────────────────────────


@law
@given(st.data(), st.integers(1, 60), st.integers(1, 6))
def test_average_precision_is_that_of_scikit_learn(data, n, levels):
    """Few distinct scores, hence many ties."""
    sklearn_metrics = pytest.importorskip("sklearn.metrics")
    truth = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    truth[data.draw(st.integers(0, n - 1))] = True
    score = np.array(data.draw(st.lists(st.integers(0, levels), min_size=n, max_size=n))) / levels
    expected = sklearn_metrics.average_precision_score(truth, score)
    assert average_precision(truth, score) == pytest.approx(expected, rel=1e-12)


def test_average_precision_of_a_thousand_random_scores(rng):
    sklearn_metrics = pytest.importorskip("sklearn.metrics")
    truth = rng.random(1000) < 0.1
    score = rng.random(1000) + truth
    for ranked in (score, score.round(1), np.zeros(1000), -score, score.astype(np.float32)):
        expected = sklearn_metrics.average_precision_score(truth, ranked)
        assert average_precision(truth, ranked) == pytest.approx(expected, rel=1e-12)


def test_the_order_of_ties_does_not_matter(rng):
    truth, score = rng.random(200) < 0.3, rng.integers(4, size=200)
    p = rng.permutation(200)
    assert average_precision(truth[p], score[p]) == pytest.approx(average_precision(truth, score), rel=1e-12)


def test_nothing_true_gives_zero():
    assert average_precision([0, 0], [0.1, 0.2]) == 0.0
    assert skeleton_average_precision(EMPTY, np.ones((3, 3))) == 0.0


def test_skeleton_average_precision_takes_each_pair_once(rng):
    dag = random_dag(rng, 12, 3)
    score = rng.random((12, 12)).round(1)
    pairs = list(itertools.combinations(range(12), 2))
    truth = [int(dag[i, j] or dag[j, i]) for i, j in pairs]
    mean = [(score[i, j] + score[j, i]) / 2 for i, j in pairs]
    assert skeleton_average_precision(dag, score) == average_precision(truth, mean)
    assert skeleton_average_precision(dag_to_cpdag(dag), score.T) == average_precision(truth, mean)
    assert skeleton_average_precision(dag, skeleton(dag)) == 1.0
    np.testing.assert_array_equal(pair_values(skeleton(dag)), truth)


def test_skeleton_average_precision_ignores_the_diagonal():
    score = np.full((3, 3), 0.5)
    np.fill_diagonal(score, np.nan)
    assert skeleton_average_precision(COLLIDER, score) == pytest.approx(2 / 3)
    assert skeleton_average_precision(moral_graph(COLLIDER), score) == 1.0


# ── decisions ─────────────────────────────────────────────────────────────────────────────────────────────


def test_decisions_are_judged_as_by_scikit_learn(rng):
    judge = pytest.importorskip("sklearn.metrics")
    for threshold in (-1, 0.2, 0.5, 0.9, 2):
        truth, guess = rng.random((6, 7)) < 0.3, rng.random((6, 7)) > threshold
        flat = truth.ravel(), guess.ravel()
        assert precision_recall(truth, guess) == (
            judge.precision_score(*flat, zero_division=0),
            judge.recall_score(*flat, zero_division=0),
        )
        assert f1(truth, guess) == pytest.approx(judge.f1_score(*flat, zero_division=0), rel=1e-12)
        assert accuracy(truth, guess) == judge.accuracy_score(*flat)


def test_accuracy_counts_classes(rng):
    truth, guess = rng.integers(3, size=50), rng.integers(3, size=50)
    assert accuracy(truth, guess) == sum(t == g for t, g in zip(truth, guess, strict=True)) / 50


def test_calibration_error_follows_its_definition(rng):
    said = np.append(rng.random(500), [0.0, 1.0, 0.2, 0.4])
    seen = rng.random(504) < said**2
    for bins in (1, 5, 15):
        total = 0.0
        for k in range(bins):
            low, high = np.linspace(0, 1, bins + 1)[k : k + 2]
            inside = (said > low) & (said <= high) | ((k == 0) & (said == 0))
            if inside.any():
                total += inside.mean() * abs(said[inside].mean() - seen[inside].mean())
        assert expected_calibration_error(seen, said, bins) == pytest.approx(total, rel=1e-10)


def test_calibration_bins_are_closed_on_the_right():
    assert expected_calibration_error([1, 0], [0.5, 0.9], bins=2) == pytest.approx((0.5 + 0.9) / 2)


def test_honest_probabilities_are_calibrated_and_bold_ones_are_not():
    rng = np.random.default_rng(0)
    said = rng.random(50_000)
    seen = rng.random(50_000) < said
    assert expected_calibration_error(seen, said) < 0.01
    assert expected_calibration_error(seen, said > 0.5) == pytest.approx(0.25, abs=0.01)
    assert expected_calibration_error([0, 0], [1, 1]) == 1.0


# ── the door ──────────────────────────────────────────────────────────────────────────────────────────────


@each(
    ("call", "message"),
    [
        (lambda: average_precision([0, 1], [0.1]), "2 true values but 1 guesses"),
        (lambda: average_precision([0, 2], [0.1, 0.2]), "truth is 2 at entry 1; it must be 0 or 1"),
        (lambda: average_precision([0, 1], [0.1, np.nan]), "score is nan at entry 1; replace it"),
        (lambda: average_precision([], []), "nothing to compare"),
        (lambda: accuracy([], []), "nothing to compare"),
        (lambda: f1([0, 1], [0, 0.4]), "guess is 0.4 at entry 1"),
        (
            lambda: skeleton_average_precision(EMPTY, np.ones((2, 2))),
            r"score has shape \(2, 2\), the graph \(3, 3\)",
        ),
        (lambda: expected_calibration_error([0, 1], [0.1, 1.5]), "probability is 1.5 at entry 1"),
        (lambda: pair_values([1, 2]), r"matrix has shape \(2,\); it must be square"),
    ],
)
def test_bad_input_is_refused_with_its_place(call, message):
    with pytest.raises(GraphError, match=message):
        call()


def test_bins_are_at_least_one():
    with pytest.raises(ConfigError, match="bins=0"):
        expected_calibration_error([0, 1], [0.1, 0.2], bins=0)
