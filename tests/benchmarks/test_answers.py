"""What a result says is held against the truth of each pair, and against nothing else."""

import dataclasses

import numpy as np
import pytest

from graphbam.benchmarks.answers import ANSWERS, collect_claims, join_claims, lean, score_result
from graphbam.benchmarks.cases import Problem
from graphbam.errors import GraphError
from graphbam.graphs.equivalence import dag_to_cpdag
from graphbam.graphs.graph import ancestors, directed_part, edge_classes
from graphbam.graphs.metrics import auroc, average_precision
from graphbam.result import Result
from oracle import random_dag

D = 8


@pytest.fixture
def problem():
    """A DAG and a table of which everything is known."""
    rng = np.random.default_rng(1)
    return Problem(rng.normal(size=(20, D)), random_dag(rng, D, 3), True, hidden_dd=np.zeros((D, D), np.int8))


@pytest.fixture
def wild():
    """A result that says anything at all."""
    rng = np.random.default_rng(2)
    p_dd3 = rng.dirichlet(np.ones(3), size=(D, D))
    p_dd3 = (p_dd3 + p_dd3.swapaxes(0, 1)) / 2
    said = rng.random((4, D, D))
    turned = said + said.swapaxes(1, 2)
    return Result(
        names_of(D),
        p_dd3,
        directions=said[0] / turned[0],
        compelled=said[1] / (1 + turned[1]),
        hidden_causes=turned[2] / 2,
        ancestors=said[3],
    )


def names_of(n):
    return tuple(f"v{k}" for k in range(n))


def tell_truth(problem, hidden_dd=None):
    """A result that knows everything and is sure of it."""
    dag = problem.adjacency
    p_dd3 = np.eye(3)[edge_classes(dag)]
    either = (1 - dag - dag.T) / 2
    return Result(
        names_of(len(dag)),
        p_dd3,
        directions=dag + either,
        compelled=directed_part(dag_to_cpdag(dag)).astype(float),
        hidden_causes=problem.hidden_dd.astype(float),
        ancestors=ancestors(dag).astype(float),
    )


def test_who_says_the_truth_scores_best_everywhere(problem):
    hidden_dd = np.zeros((D, D), np.int8)
    hidden_dd[[0, 3], [3, 0]] = 1
    scores = score_result(tell_truth(problem), problem)
    for name in ("directed_ap", "directed_auroc", "direction_right", "direction_sure", "direction_right_where_sure"):
        assert scores[name] == 1, name
    assert (scores["cpdag_over_empty"], scores["dag_over_empty"], scores["false_at_0.05"]) == (0, 0, 0)
    assert (scores["skeleton_ap"], scores["moral_ap"], scores["ancestor_auroc"]) == (1, 1, 1)
    assert scores["hidden_auroc"] is None  # nothing is hidden here
    confounded = dataclasses.replace(problem, hidden_dd=hidden_dd, is_dag=False)
    scores = score_result(tell_truth(confounded), confounded)
    assert (scores["hidden_auroc"], scores["hidden_ap"]) == (1, 1)
    assert not {"cpdag_over_empty", "dag_over_empty", "moral_ap"} & set(scores)


def test_what_an_experiment_directs_is_no_mistake(problem):
    """A chain that can be turned round, and its first variable set in one row: who directs it is right."""
    chain = dataclasses.replace(problem, adjacency=np.eye(D, k=1, dtype=np.int8))
    is_set_d = np.arange(D) == 0
    told = dataclasses.replace(tell_truth(chain), experiments=is_set_d[:, None] != is_set_d)
    assert score_result(told, chain)["cpdag_over_empty"] == 1
    known = dataclasses.replace(chain, set_md=is_set_d & (np.arange(20) == 3)[:, None])
    assert score_result(told, known)["cpdag_over_empty"] == score_result(told, known)["shd"] == 0


def test_claims_are_what_was_said_of_each_pair(problem, wild):
    dag, claims = problem.adjacency, collect_claims(wild, problem)
    assert tuple(claims) == ANSWERS
    pairs = [(i, j) for i in range(D) for j in range(i + 1, D)]
    linked = [(i, j) for i, j in pairs if dag[i, j] or dag[j, i]]
    compelled_dd = directed_part(dag_to_cpdag(dag))
    for name, places, truth_dd, said_dd in (
        ("link", pairs, dag + dag.T, wild.probabilities[..., 1]),
        ("moral", pairs, edge_classes(dag) == 2, wild.probabilities[..., 2]),
        ("hidden", pairs, problem.hidden_dd, wild.hidden_causes),
        ("direction", [*linked, *((j, i) for i, j in linked)], dag, wild.arrow_probabilities),
        ("compelled", [*linked, *((j, i) for i, j in linked)], compelled_dd, wild.compelled_probabilities),
        ("ancestor", [*pairs, *((j, i) for i, j in pairs)], ancestors(dag), wild.ancestors),
    ):
        expected = sorted((bool(truth_dd[place]), float(said_dd[place])) for place in places)
        found = sorted(zip(claims[name].truth_n.tolist(), claims[name].p_n.tolist(), strict=True))
        np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=name)


def test_arrows_are_ranked_by_link_times_direction(problem, wild):
    off_diagonal = ~np.eye(D, dtype=bool)
    score = (wild.probabilities[..., 1] * wild.arrow_probabilities)[off_diagonal]
    truth = problem.adjacency[off_diagonal]
    scores = score_result(wild, problem)
    assert scores["directed_ap"] == pytest.approx(average_precision(truth, score))
    assert scores["directed_auroc"] == pytest.approx(auroc(truth, score))


def test_what_two_steps_leave_open_leans_neither_way():
    p_dd3 = np.full((3, 3, 3), [0.1, 0.9, 0.0])
    p_dd3[0, 1] = p_dd3[1, 0] = [0.1, 0.0, 0.9]
    result = Result(("a", "b", "c"), p_dd3, colliders=[(0, 2, 1, 0.8)])
    assert result.arrow_probabilities[0, 2] + result.arrow_probabilities[2, 0] < 1
    np.testing.assert_allclose(lean(result) + lean(result).T, 1)
    assert lean(result)[0, 2] > 0.5


def test_nothing_is_scored_that_was_not_said_or_is_not_known(problem, wild):
    silent = Result(wild.names, wild.probabilities)
    assert set(collect_claims(silent, problem)) == {"link", "moral"}
    assert not {"directed_ap", "dag_over_empty", "hidden_ap", "ancestor_auroc"} & set(score_result(silent, problem))
    undirected = dataclasses.replace(problem, is_dag=False, is_directed=False, hidden_dd=None)
    assert set(collect_claims(wild, undirected)) == {"link"}
    assert "directed_ap" not in score_result(wild, undirected)


def test_graphs_with_loops_have_directions_but_no_ancestors(wild):
    loop = np.roll(np.eye(D, dtype=np.int8), 1, axis=1)
    cyclic = Problem(np.zeros((5, D)), loop, False)
    assert set(collect_claims(wild, cyclic)) == {"link", "direction"}
    assert {"directed_ap", "direction_right"} < set(score_result(wild, cyclic))


def test_claims_of_many_tables_are_joined_answer_by_answer(problem, wild):
    claims = collect_claims(wild, problem)
    joined = join_claims([claims, {"link": claims["link"]}])
    assert len(joined["link"].p_n) == 2 * len(claims["link"].p_n)
    assert len(joined["hidden"].p_n) == len(claims["hidden"].p_n)
    assert join_claims([]) == {}


def test_a_result_about_other_variables_is_refused(problem, wild):
    with pytest.raises(GraphError, match="about 8 variables, the table has 3"):
        collect_claims(wild, dataclasses.replace(problem, adjacency=np.zeros((3, 3), np.int8)))
