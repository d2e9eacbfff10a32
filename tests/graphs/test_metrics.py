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
    ancestor_distance,
    audrc,
    auroc,
    average_precision,
    expected_calibration_error,
    f1,
    false_share,
    judge_directions,
    ordered_values,
    pair_values,
    precision_recall,
    reliability,
    shd,
    shd_over_empty,
    sid,
    skeleton_average_precision,
    skeleton_shd,
    weighted_accuracy,
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
    for distance in (shd, skeleton_shd, shd_over_empty, sid, ancestor_distance):
        with pytest.raises(GraphError, match="3 variables, the other 4"):
            distance(np.zeros((3, 3)), np.zeros((4, 4)))


def test_distance_over_empty_is_zero_for_the_truth_and_one_for_no_answer(rng):
    for graph in (random_dag(rng, 12, 3), dag_to_cpdag(random_dag(rng, 12, 3))):
        empty = np.zeros_like(graph)
        assert (shd_over_empty(graph, graph), shd_over_empty(graph, empty)) == (0.0, 1.0)
        assert np.isnan(shd_over_empty(empty, graph))


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


@each("distance", [sid, ancestor_distance])
def test_distances_between_effects_say_how_to_get_their_package(monkeypatch, distance):
    monkeypatch.setitem(sys.modules, "gadjid", None)
    with pytest.raises(ImportError, match=r"pip install 'graphbam\[benchmark\]'"):
        distance(COLLIDER, COLLIDER)


def test_ancestor_distance_follows_its_definition():
    """No way down from i in the guess: no effect is claimed; else the ancestors of i in the guess are adjusted for."""
    pytest.importorskip("gadjid")
    for true, guess in itertools.product(all_dags(3), repeat=2):
        mistakes = 0
        for i, j in itertools.permutations(range(3), 2):
            above = {k for k in range(3) if i in descendants(guess, k)} - {i}
            is_claimed = j in descendants(guess, i)
            mistakes += not adjusts(true, i, j, above) if is_claimed else j in descendants(true, i)
        assert ancestor_distance(true, guess) == pytest.approx(mistakes / 6)


def test_ancestor_distance_reads_cpdags():
    """Nothing is known of the effects in an open chain, all of those in its DAG; other graphs are refused."""
    pytest.importorskip("gadjid")
    chain = np.eye(3, k=1, dtype=int)
    open_chain = dag_to_cpdag(chain)
    assert ancestor_distance(open_chain, open_chain) == 0
    assert ancestor_distance(chain, open_chain) == ancestor_distance(chain, open_chain[::-1, ::-1]) == 1
    assert ancestor_distance(dag_to_cpdag(COLLIDER), COLLIDER) == ancestor_distance([[0]], [[0]]) == 0
    with pytest.raises(GraphError, match="Neither a DAG nor a CPDAG: it has the cycle"):
        ancestor_distance(chain, np.roll(np.eye(3), 1, 0))


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


@law
@given(st.data(), st.integers(2, 60), st.integers(1, 6))
def test_auroc_is_the_share_of_pairs_in_the_right_order(data, n, levels):
    truth = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    truth[:2] = True, False
    score = np.array(data.draw(st.lists(st.integers(0, levels), min_size=n, max_size=n)))
    gap = score[truth][:, None] - score[~truth]
    assert auroc(truth, score) == pytest.approx(((gap > 0) + (gap == 0) / 2).mean(), rel=1e-12)
    assert auroc(truth, -score) == pytest.approx(1 - auroc(truth, score), rel=1e-12)
    assert auroc(~truth, score) == auroc(truth, -score)


def test_auroc_of_one_class_is_not_defined():
    assert np.isnan(auroc([1, 1], [0.1, 0.2]))
    assert np.isnan(auroc([0, 0], [0.1, 0.2]))


def test_ordered_pairs_come_row_by_row(rng):
    square = rng.normal(size=(5, 5))
    assert ordered_values(square).tolist() == [square[i, j] for i, j in itertools.permutations(range(5), 2)]


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


def test_the_calibration_error_is_the_mean_gap_of_the_reliability_diagram(rng):
    said = rng.random(300)
    seen = rng.random(300) < said**2
    points = reliability(seen, said, bins=7)
    assert points.number.sum() == 300
    assert points.said @ points.number == pytest.approx(said.sum())
    assert points.seen @ points.number == pytest.approx(seen.sum())
    gaps = np.abs(points.said - points.seen) @ points.number / 300
    assert expected_calibration_error(seen, said, bins=7) == pytest.approx(gaps)
    assert len(reliability([0, 1], [0.1, 0.95], bins=10).said) == 2  # empty bins have no point


def test_the_false_share_is_what_precision_lacks(rng):
    truth, guess = rng.random(50) < 0.5, rng.random(50) < 0.5
    assert false_share(truth, guess) == pytest.approx(1 - precision_recall(truth, guess)[0])
    assert np.isnan(false_share(truth, np.zeros(50)))


# ── directions ────────────────────────────────────────────────────────────────────────────────────────────


def test_directions_are_judged_on_true_links_alone(rng):
    dag = random_dag(rng, 10, 3)
    said = rng.random((10, 10))
    arrow = said / (said + said.T)
    links = np.argwhere(dag)
    found = judge_directions(dag, arrow, sure_from=0.7)
    right = [arrow[i, j] > 0.5 for i, j in links]
    sure = [max(arrow[i, j], arrow[j, i]) >= 0.7 for i, j in links]
    assert found.n_links == len(links)
    assert (found.right, found.sure) == (np.mean(right), np.mean(sure))
    assert found.right_where_sure == np.mean(np.array(right)[sure])
    assert judge_directions(dag, np.where(skeleton(dag), arrow, np.nan), sure_from=0.7) == found
    assert judge_directions(dag.T, arrow.T, sure_from=0.7) == found
    assert judge_directions(dag, arrow.T).right == pytest.approx(1 - found.right)


def test_even_directions_are_half_right_and_undirected_links_do_not_count():
    assert judge_directions(COLLIDER, np.full((3, 3), 0.5))[:3] == (2, 0.5, 0.0)
    nothing = judge_directions(COLLIDER | COLLIDER.T, np.eye(3))
    assert nothing.n_links == 0
    assert np.isnan(nothing[1:]).all()


# ── cause–effect pairs ────────────────────────────────────────────────────────────────────────────────────


def test_pairs_are_judged_as_by_definition(rng):
    forward, weight = rng.random(40) < 0.5, rng.random(40) + 0.1
    score = rng.permutation(np.arange(1, 41)) * rng.choice([-1.0, 1.0], 40)
    order = sorted(range(40), key=lambda k: -abs(score[k]))
    hits = [weight[k] * ((score[k] > 0) == forward[k]) for k in order]
    curve = [sum(hits[: k + 1]) / sum(weight[order[: k + 1]]) for k in range(40)]
    assert audrc(forward, score, weight) == pytest.approx(np.mean(curve))
    assert weighted_accuracy(forward, score, weight) == pytest.approx(curve[-1])


def test_swapped_columns_change_nothing_and_turned_scores_everything(rng):
    forward, score = rng.random(30) < 0.5, rng.integers(-3, 4, 30)
    swap = rng.random(30) < 0.5
    for judge in (weighted_accuracy, audrc):
        told = judge(forward, score)
        assert judge(forward ^ swap, np.where(swap, -score, score)) == pytest.approx(told)
        assert judge(forward, -score) == pytest.approx(1 - told)
        p = rng.permutation(30)
        assert judge(forward[p], score[p]) == pytest.approx(told)
        assert judge(forward, np.zeros(30)) == 0.5


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
        (lambda: reliability([0, 1], [0.1, -0.5]), "probability is -0.5 at entry 1"),
        (lambda: judge_directions(EMPTY, np.ones((2, 2))), r"arrow has shape \(2, 2\), the graph \(3, 3\)"),
        (lambda: weighted_accuracy([1, 0], [1, 1], [1, 0]), "weight is 0.0 at entry 1; it must be positive"),
        (lambda: audrc([1, 0], [1, 1], [1]), "2 true values but 1 guesses"),
        (lambda: ordered_values([1, 2]), r"matrix has shape \(2,\); it must be square"),
        (lambda: pair_values([1, 2]), r"matrix has shape \(2,\); it must be square"),
    ],
)
def test_bad_input_is_refused_with_its_place(call, message):
    with pytest.raises(GraphError, match=message):
        call()


def test_bins_are_at_least_one():
    with pytest.raises(ConfigError, match="bins=0"):
        expected_calibration_error([0, 1], [0.1, 0.2], bins=0)
