"""Scores of hand-made answers, worked out by hand."""

import dataclasses

import numpy as np
import pytest

from cases import each
from graphbam.benchmarks.baselines._base import Answer, grade
from graphbam.benchmarks.cases import Problem
from graphbam.benchmarks.scores import (
    CPDAG_COLUMNS,
    DAG_COLUMNS,
    DIRECTED_COLUMNS,
    MORAL_COLUMNS,
    SKELETON_COLUMNS,
    score_answer,
)
from graphbam.errors import GraphError
from graphbam.graphs.graph import skeleton


def adjacency(d, *edges):
    adj = np.zeros((d, d), np.int8)
    for i, j in edges:
        adj[i, j] = 1
    return adj


def problem(d, *edges, is_dag=True):
    return Problem(np.zeros((3, d)), adjacency(d, *edges), is_dag)


def answer(graph_dd, score_dd=None, moral_dd=None):
    return Answer(graph_dd, graph_dd.astype(float) if score_dd is None else score_dd, moral_dd)


COLLIDER = problem(4, (0, 2), (1, 2), (2, 3))
"""0 → 2 ← 1, 2 → 3: all compelled; 0 and 1 are married."""
CHAIN = problem(3, (0, 1), (1, 2))
"""0 → 1 → 2: nothing is compelled."""


@pytest.mark.parametrize("kind", ["cpdag", "dag"])
def test_the_truth_scores_best_everywhere(kind):
    scores = score_answer(answer(COLLIDER.adjacency), COLLIDER, kind)
    assert set(scores) == {*SKELETON_COLUMNS, *MORAL_COLUMNS, *CPDAG_COLUMNS, *DIRECTED_COLUMNS, *DAG_COLUMNS}
    ends = ("ap", "f1", "precision", "recall", "accuracy", "auroc", "right")
    perfect = {name: 1.0 for name in scores if name.endswith(ends)} | dict.fromkeys(DAG_COLUMNS, 0)
    perfect["moral_ap"] = scores["moral_ap"]  # the scores say nothing of married parents
    assert scores == perfect | {"skeleton_shd": 0, "n_found": 3, "shd": 0, "empty_shd": 3}


def test_the_empty_graph_is_the_floor():
    scores = score_answer(answer(adjacency(4)), COLLIDER, "cpdag")
    assert scores["shd"] == scores["empty_shd"] == scores["skeleton_shd"] == 3
    assert scores["skeleton_accuracy"] == 0.5
    assert scores["skeleton_ap"] == 0.5  # all tied: the share of true pairs
    assert scores["cpdag_ap"] == 0.25
    assert (scores["skeleton_precision"], scores["skeleton_recall"], scores["skeleton_f1"]) == (None, 0.0, 0.0)
    assert (scores["arrow_precision"], scores["arrow_recall"], scores["n_found"]) == (None, 0.0, 0)


def test_counts_of_a_mixed_answer():
    """0 → 2 found, 1 — 2 without direction, 3 → 2 reversed, 0 — 1 too many."""
    graph_dd = adjacency(4, (0, 2), (1, 2), (2, 1), (3, 2), (0, 1), (1, 0))
    scores = score_answer(answer(graph_dd), COLLIDER, "cpdag")
    assert (scores["shd"], scores["skeleton_shd"], scores["n_found"]) == (3, 1, 4)
    assert (scores["skeleton_precision"], scores["skeleton_recall"]) == (0.75, 1.0)
    assert scores["skeleton_f1"] == pytest.approx(6 / 7)
    assert (scores["arrow_precision"], scores["arrow_recall"]) == (0.5, pytest.approx(1 / 3))
    assert scores["cpdag_ap"] == pytest.approx(2 / 3 * 2 / 6 + 1 / 3 * 3 / 12)  # six tied marks, then the other six


def test_a_dag_is_judged_by_its_class():
    """0 ← 1 ← 2 and 0 → 1 → 2 are the same to a table; 0 → 1 ← 2 is not."""
    reversed_chain = answer(adjacency(3, (1, 0), (2, 1)))
    scores = score_answer(reversed_chain, CHAIN, "dag")
    assert (scores["shd"], scores["cpdag_ap"], scores["arrow_precision"], scores["arrow_recall"]) == (
        0,
        1.0,
        None,
        None,
    )
    assert score_answer(reversed_chain, CHAIN, "cpdag")["shd"] == 2
    collider = score_answer(answer(adjacency(3, (0, 1), (2, 1))), CHAIN, "dag")
    assert (collider["shd"], collider["skeleton_shd"], collider["arrow_precision"]) == (2, 0, 0.0)


def test_links_that_an_experiment_directs_are_judged_by_direction():
    """A row of the chain 0 → 1 → 2 set its first variable: 0 → 1 can be told, and 1 → 2 follows."""
    told = dataclasses.replace(CHAIN, set_md=np.array([[True, False, False], [False] * 3, [True] * 3]))
    right, open_chain = answer(CHAIN.adjacency), answer(skeleton(CHAIN.adjacency))
    for kind in ("cpdag", "dag"):
        scores = score_answer(right, told, kind)
        assert (scores["shd"], scores["arrow_precision"], scores["arrow_recall"], scores["cpdag_ap"]) == (0, 1, 1, 1)
    assert score_answer(answer(CHAIN.adjacency.T), told, "dag")["shd"] == 2
    assert (score_answer(open_chain, told, "cpdag")["shd"], score_answer(open_chain, CHAIN, "cpdag")["shd"]) == (2, 0)
    together = dataclasses.replace(CHAIN, set_md=np.ones((1, 3), bool))
    assert score_answer(open_chain, together, "cpdag")["shd"] == 0  # all set at once tells nothing


def test_cyclic_answers_are_scored_as_they_are():
    scores = score_answer(answer(adjacency(3, (0, 1), (1, 2), (2, 0))), CHAIN, "dag")
    assert (scores["shd"], scores["n_found"]) == (3, 3)


def test_an_arrow_ranks_with_the_edges_in_the_skeleton():
    """A weak arrow of the graph comes before a strong pair that the graph leaves out."""
    strength_dd = np.array([[0, 0.1, 0.9], [0.1, 0, 0.8], [0.9, 0.8, 0]])
    graded = answer(adjacency(3, (0, 1)), grade(adjacency(3, (0, 1)), strength_dd))
    assert score_answer(graded, problem(3, (0, 1)), "dag")["skeleton_ap"] == 1.0


def test_the_moral_graph_has_scores_of_its_own_and_parents_are_married():
    both = adjacency(4, (0, 2), (2, 0), (1, 2), (2, 1), (2, 3), (3, 2))
    moral_dd = both + 0.5 * adjacency(4, (0, 1), (1, 0))
    undirected = score_answer(answer(both, moral_dd=moral_dd), COLLIDER, "undirected")
    assert set(undirected) == {*SKELETON_COLUMNS, *MORAL_COLUMNS}
    assert (undirected["moral_ap"], undirected["moral_f1"]) == (1.0, pytest.approx(6 / 7))
    assert score_answer(answer(both), COLLIDER, "undirected")["moral_ap"] == pytest.approx(3 / 4 + 1 / 4 * 4 / 6)
    assert score_answer(answer(COLLIDER.adjacency), COLLIDER, "cpdag")["moral_f1"] == 1.0


def test_without_a_dag_the_skeleton_and_directions_are_judged():
    cyclic = problem(3, (0, 1), (1, 0), (1, 2), is_dag=False)
    scores = score_answer(answer(cyclic.adjacency), cyclic, "cpdag")
    assert set(scores) == {*SKELETON_COLUMNS, *DIRECTED_COLUMNS}
    assert [scores[name] for name in DIRECTED_COLUMNS] == [1, 1, 1]
    undirected = dataclasses.replace(cyclic, is_directed=False)
    assert set(score_answer(answer(cyclic.adjacency), undirected, "cpdag")) == set(SKELETON_COLUMNS)


def test_arrows_rank_before_links_without_a_direction():
    """Of the chain 0 → 1 → 2, the first link is directed and weak, the second open and strong."""
    graph_dd, strength_dd = adjacency(3, (0, 1), (1, 2), (2, 1)), np.full((3, 3), 0.5)
    strength_dd[1, 2] = strength_dd[2, 1] = 0.9
    scores = score_answer(answer(graph_dd, grade(graph_dd, strength_dd)), CHAIN, "cpdag")
    assert scores["directed_ap"] == pytest.approx(1 / 2 + 1 / 2 * 2 / 3)  # the arrow, then two of which one is right
    assert scores["direction_right"] == 0.75  # an open link counts half


def test_a_class_is_judged_by_a_dag_that_it_stands_for():
    open_chain = score_answer(answer(skeleton(CHAIN.adjacency)), CHAIN, "cpdag")
    assert open_chain["dag_shd"] in (0, 1, 2)  # one of three
    named = Answer(skeleton(CHAIN.adjacency), np.zeros((3, 3)), dag_dd=CHAIN.adjacency)
    assert [score_answer(named, CHAIN, "cpdag")[name] for name in DAG_COLUMNS] == [0, 0]
    cyclic = score_answer(answer(adjacency(3, (0, 1), (1, 2), (2, 0))), CHAIN, "cpdag")
    assert [cyclic[name] for name in DAG_COLUMNS] == [None, None]


def test_hidden_causes_are_judged_where_they_are_known_and_spoken_of():
    hidden_dd = adjacency(3, (0, 2), (2, 0))
    known = dataclasses.replace(CHAIN, hidden_dd=hidden_dd, is_dag=False)
    said = Answer(CHAIN.adjacency, np.zeros((3, 3)), hidden_dd=np.array([[0, 0.1, 0.3], [0.1, 0, 0.5], [0.3, 0.5, 0]]))
    scores = score_answer(said, known, "dag")
    assert (scores["hidden_auroc"], scores["hidden_ap"]) == (0.5, 0.5)
    assert "hidden_ap" not in score_answer(said, CHAIN, "dag")
    assert "hidden_ap" not in score_answer(answer(CHAIN.adjacency), known, "dag")


@pytest.mark.parametrize(("lean", "score"), [([[0, 0.2], [0.9, 0]], 0.7), ([[0, 0.9], [0.2, 0]], -0.7)])
def test_a_pair_is_scored_by_how_clearly_its_cause_is_named(lean, score):
    pair = dataclasses.replace(problem(2, (1, 0)), weight=0.25)
    said = Answer(adjacency(2), np.zeros((2, 2)), lean_dd=np.array(lean))
    scores = score_answer(said, pair, "cpdag")
    assert (scores["pair_score"], scores["pair_weight"]) == (pytest.approx(score), 0.25)


def test_without_true_edges_rankings_are_not_defined():
    scores = score_answer(answer(adjacency(3, (0, 1))), problem(3), "cpdag")
    undefined = {name for name, score in scores.items() if score is None}
    assert undefined == {
        "skeleton_ap", "skeleton_f1", "skeleton_recall", "moral_ap", "moral_f1", "cpdag_ap", "arrow_recall",
        *DIRECTED_COLUMNS,
    }  # fmt: skip
    assert (scores["skeleton_shd"], scores["arrow_precision"]) == (1, 0.0)


@each(
    ("wrong", "message"),
    [
        (Answer(adjacency(2), np.zeros((2, 2))), "graph_dd is no matrix of 3 × 3"),
        (Answer(adjacency(3), None), "score_dd is no matrix of 3 × 3"),
        (adjacency(3), "fit returned ndarray"),
    ],
)
def test_what_is_no_answer_is_refused(wrong, message):
    with pytest.raises(GraphError, match=message):
        score_answer(wrong, CHAIN, "cpdag")


def test_links_decided_apart_are_judged_apart():
    """Directions keep their own graph and scores: only the columns of the skeleton change."""
    empty, flat, links = adjacency(4), np.zeros((4, 4)), skeleton(COLLIDER.adjacency)
    apart = score_answer(Answer(empty, flat, links_dd=links, link_score_dd=links.astype(float)), COLLIDER, "cpdag")
    joined = score_answer(Answer(empty, flat), COLLIDER, "cpdag")
    assert (apart["skeleton_ap"], apart["skeleton_f1"], apart["skeleton_shd"]) == (1, 1, 0)
    assert {name: apart[name] for name in CPDAG_COLUMNS} == {name: joined[name] for name in CPDAG_COLUMNS}
    assert joined["skeleton_f1"] == 0
