"""Graph vocabulary, against definitions spelt out with loops and d-separation."""

from __future__ import annotations

import copy
import itertools
import pickle

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cases import each, examples
from graphbam.errors import GraphError
from graphbam.graphs.equivalence import consistent_extension, dag_to_cpdag, is_cpdag
from graphbam.graphs.graph import (
    Graph,
    ancestors,
    check_adjacency,
    d_separated,
    directed_part,
    edge_classes,
    is_dag,
    moral_graph,
    reachable,
    skeleton,
    topological_order,
    undirected_part,
    v_structures,
)
from oracle import (
    acyclic,
    all_dags,
    all_pdags,
    d_separations,
    dags,
    descendants,
    loop_v_structures,
    markov_classes,
    random_dag,
    union,
)

COLLIDER = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]], dtype=np.int8)
CHAIN = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=np.int8)
CYCLE = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=np.int8)
law = examples(60, 120)


# ── parts and labels ──────────────────────────────────────────────────────────────────────────────────────


@law
@given(dags(max_d=25))
def test_edge_classes_follow_their_definition(dag):
    expected = np.zeros_like(dag)
    for i, j in itertools.permutations(range(len(dag)), 2):
        if dag[i, j] or dag[j, i]:
            expected[i, j] = 1
        elif any(dag[i, k] and dag[j, k] for k in range(len(dag))):
            expected[i, j] = 2
    classes = edge_classes(dag)
    assert classes.dtype == np.int8
    np.testing.assert_array_equal(classes, expected)
    np.testing.assert_array_equal(moral_graph(dag), (expected > 0).astype(int))
    np.testing.assert_array_equal(skeleton(dag), (expected == 1).astype(int))


def test_edge_classes_of_a_batch_of_tensors_are_those_of_each_graph():
    dags_bdd = np.stack([random_dag(np.random.default_rng(seed), 12, 3) for seed in range(8)])
    classes_bdd = edge_classes(torch.from_numpy(dags_bdd))
    assert classes_bdd.dtype == torch.int64
    np.testing.assert_array_equal(classes_bdd.numpy(), np.stack([edge_classes(dag) for dag in dags_bdd]))
    assert set(classes_bdd.unique().tolist()) == {0, 1, 2}


@pytest.mark.parametrize("d", [3, 4])
def test_equivalent_dags_and_their_cpdag_share_labels(d):
    for members in markov_classes(d):
        for dag in members:
            np.testing.assert_array_equal(edge_classes(dag), edge_classes(union(members)))


def test_v_structures_of_every_graph_of_four_variables():
    for adj in all_pdags(4):
        rows = v_structures(adj)
        assert [tuple(row) for row in rows.tolist()] == sorted(loop_v_structures(adj))
    assert v_structures(CHAIN).shape == (0, 3)


def test_parts_add_up():
    for adj in all_pdags(3):
        np.testing.assert_array_equal(directed_part(adj) + undirected_part(adj), adj)
        assert not (directed_part(adj) & directed_part(adj).T).any()
        np.testing.assert_array_equal(undirected_part(adj), undirected_part(adj).T)


@law
@given(dags(), st.randoms(use_true_random=False))
def test_renaming_variables_only_relabels(dag, random):
    p = np.array(random.sample(range(len(dag)), len(dag)), dtype=int)
    mix = np.ix_(p, p)
    for function in (dag_to_cpdag, moral_graph, edge_classes, skeleton):
        np.testing.assert_array_equal(function(dag[mix]), function(dag)[mix])


# ── order and cycles ──────────────────────────────────────────────────────────────────────────────────────


def test_is_dag_knows_every_graph_of_four_variables():
    for adj in all_pdags(4):
        assert is_dag(adj) == acyclic(adj)


@law
@given(dags())
def test_parents_come_first(dag):
    position = np.argsort(topological_order(dag))
    parent, child = np.nonzero(dag)
    assert (position[parent] < position[child]).all()
    assert sorted(position.tolist()) == list(range(len(dag)))


@law
@given(dags(max_d=25))
def test_ancestors_by_walking(dag):
    before = ancestors(dag)
    for node in range(len(dag)):
        assert set(np.flatnonzero(before[node])) == descendants(dag, node)


@each(
    ("adj", "message"),
    [
        (CYCLE, r"the cycle (0 → 1 → 2 → 0|1 → 2 → 0 → 1|2 → 0 → 1 → 2); remove"),
        ([[0, 1], [1, 0]], "0 — 1 is undirected; choose a direction"),
    ],
)
@each("function", [topological_order, dag_to_cpdag])
def test_what_is_no_dag_is_named(function, adj, message):
    with pytest.raises(GraphError, match=message):
        function(adj)


def test_a_named_cycle_is_one_of_the_graph():
    """The cycle 3 → 4 → 5 → 3 hangs between a source and a sink that are not part of it."""
    adj = np.zeros((7, 7), dtype=int)
    adj[[0, 3, 4, 5, 5, 6], [3, 4, 5, 3, 6, 1]] = 1
    with pytest.raises(GraphError) as caught:
        topological_order(adj)
    cycle = [int(word) for word in str(caught.value).split("cycle ")[1].split(";")[0].split(" → ")]
    assert cycle[0] == cycle[-1]
    assert set(cycle) == {3, 4, 5}
    assert all(adj[i, j] for i, j in itertools.pairwise(cycle))


# ── the door ──────────────────────────────────────────────────────────────────────────────────────────────


@each(
    ("adj", "message"),
    [
        (np.zeros((2, 3)), r"shape \(2, 3\); it must be square"),
        (np.zeros(4), r"shape \(4,\); it must be square"),
        ([[0, 2], [0, 0]], r"adjacency\[0, 1\] is 2; entries must be 0 or 1"),
        ([["0", "1"], ["0", "0"]], "holds text .*entries must be the numbers 0 or 1"),
        ([[0, 0], [np.nan, 0]], r"adjacency\[1, 0\] is nan"),
        ([[0, 1], [0, 1]], r"adjacency\[1, 1\] is 1: a variable cannot point at itself"),
    ],
)
@each("function", [check_adjacency, skeleton, dag_to_cpdag, is_dag, is_cpdag, edge_classes])
def test_bad_matrices_are_refused_at_the_door(function, adj, message):
    with pytest.raises(GraphError, match=message):
        function(adj)


@each("kind", [bool, np.int8, int, float, np.uint8])
def test_any_kind_of_number_is_welcome_and_left_alone(kind):
    adj = CHAIN.astype(kind)
    before = adj.copy()
    for function in (skeleton, moral_graph, edge_classes, dag_to_cpdag, consistent_extension, directed_part):
        result = function(adj)
        assert result.dtype == np.int8
        np.testing.assert_array_equal(result, function(CHAIN))
    np.testing.assert_array_equal(adj, before)


def test_no_variables_are_a_graph_too():
    empty = np.zeros((0, 0))
    assert is_dag(empty)
    assert is_cpdag(empty)
    assert dag_to_cpdag(empty).shape == (0, 0)
    assert v_structures(empty).shape == (0, 3)


# ── Graph ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def mixed():
    return Graph(("a", "b", "c", "d"), [[0, 1, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 1, 0, 0]])


def test_graph_lists_its_edges_by_name(mixed):
    assert mixed.n_variables == 4
    assert mixed.directed_edges() == [("a", "b"), ("d", "b")]
    assert mixed.undirected_edges() == [("b", "c")]
    assert repr(mixed) == "Graph(4 variables: a → b, d → b, b — c)"
    assert repr(Graph(["x"], [[0]])) == "Graph(1 variables: no edges)"


def test_a_large_graph_has_a_short_repr():
    graph = Graph([f"v{i}" for i in range(50)], np.triu(np.ones((50, 50)), 1))
    assert repr(graph).endswith("v0 → v8, … 1217 more)")


def test_graph_cannot_be_changed(mixed):
    source = CHAIN.copy()
    graph = Graph(["a", "b", "c"], source)
    source[0, 2] = 1
    assert graph.adjacency[0, 2] == 0
    for some in (graph, copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        with pytest.raises(ValueError, match="read-only"):
            some.adjacency[0, 2] = 1
    with pytest.raises(AttributeError):
        mixed.names = ("x",)


def test_graphs_are_equal_by_value(mixed):
    same = Graph(list("abcd"), mixed.adjacency.astype(float))
    assert mixed == same
    assert len({mixed, same, pickle.loads(pickle.dumps(mixed))}) == 1
    assert mixed != Graph(list("abce"), mixed.adjacency)
    assert mixed != mixed.skeleton()
    assert mixed != "abcd"


def test_graph_answers_as_the_functions_do():
    names = ("a", "b", "c", "d")
    for members in markov_classes(4)[::7]:
        cpdag = Graph(names, union(members))
        for dag in members:
            graph = Graph(names, dag)
            assert graph.is_dag()
            assert graph.to_cpdag() == cpdag == cpdag.to_cpdag()
            assert graph.skeleton() == Graph(names, dag | dag.T) == cpdag.skeleton()
            assert graph.moral_graph() == Graph(names, moral_graph(dag)) == cpdag.moral_graph()


def test_networkx_sees_the_same_graph(mixed):
    both = mixed.to_networkx()
    assert isinstance(both, nx.DiGraph)
    assert set(both.edges) == {("a", "b"), ("d", "b"), ("b", "c"), ("c", "b")}
    undirected = mixed.skeleton().to_networkx()
    assert not undirected.is_directed()
    assert undirected.number_of_edges() == 3
    assert list(Graph(["x", "y"], np.zeros((2, 2))).to_networkx().nodes) == ["x", "y"]
    dag = random_dag(np.random.default_rng(1), 30, 4)
    back = nx.to_numpy_array(Graph([f"v{i}" for i in range(30)], dag).to_networkx())
    np.testing.assert_array_equal(back, dag)


@each(
    ("names", "message"),
    [
        (["a", "b"], "2 names for 3 variables"),
        (["a", "b", "a"], "the name 'a' is used 2 times"),
        (["a", "b", 3], r"names\[2\] is 3, not text"),
        ("abc", "names is the text 'abc'; pass a list"),
    ],
)
def test_bad_names_are_refused(names, message):
    with pytest.raises(GraphError, match=message):
        Graph(names, CHAIN)


def test_graph_refuses_what_is_no_adjacency():
    with pytest.raises(GraphError, match="square"):
        Graph(["a"], np.zeros((1, 2)))
    with pytest.raises(GraphError, match="cycle"):
        Graph(["a", "b", "c"], CYCLE).to_cpdag()


# ── independence ──────────────────────────────────────────────────────────────────────────────────────────


def test_d_separation_is_that_of_open_paths():
    for dag in all_dags(4)[::9]:
        found = set()
        for i, j in itertools.combinations(range(4), 2):
            others = [k for k in range(4) if k not in (i, j)]
            for size in range(3):
                found |= {(i, j, held) for held in itertools.combinations(others, size) if d_separated(dag, i, j, held)}
        assert {(i, j, tuple(sorted(held))) for i, j, held in d_separations(dag)} == found
        assert all(d_separated(dag, j, i, held) for i, j, held in found)


@examples(30, 300)
@given(st.integers(0, 10**6), st.integers(2, 8))
def test_reachable_is_the_sum_of_all_powers(seed, d):
    arrows = np.random.default_rng(seed).random((d, d)) < 0.3
    powers = sum(np.linalg.matrix_power(arrows.astype(float), k) for k in range(1, d + 1))
    assert np.array_equal(reachable(arrows), powers > 0)
