"""Graph vocabulary, against definitions spelt out with loops and d-separation.

The oracle here shares nothing with the package: two DAGs are equivalent if they have the same d-separations,
found by walking over paths, and a CPDAG is the union of the DAGs of one class.
"""

from __future__ import annotations

import copy
import itertools
import pickle
import time
from collections import defaultdict
from functools import cache
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbam.errors import GraphError
from graphbam.graphs.graph import (
    Graph,
    check_adjacency,
    consistent_extension,
    dag_to_cpdag,
    directed_part,
    edge_classes,
    is_cpdag,
    is_dag,
    moral_graph,
    skeleton,
    topological_order,
    undirected_part,
    v_structures,
)

PAIRS = Path(__file__).resolve().parents[3] / "shared" / "data" / "dag_cpdag_pairs" / "grandag_pairs.npz"

COLLIDER = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]], dtype=np.int8)
CHAIN = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=np.int8)
CYCLE = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=np.int8)
SQUARE = skeleton([[0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])  # undirected, no chord


# ── the oracle ────────────────────────────────────────────────────────────────────────────────────────────


def acyclic(dag):
    """By definition: no power of the adjacency matrix returns to where it started."""
    power = np.eye(len(dag), dtype=int)
    for _ in range(len(dag)):
        power = power @ dag
        if power.trace():
            return False
    return True


def all_pdags(d):
    """Every graph: each pair has no edge, one of two arrows, or an undirected edge."""
    pairs = list(itertools.combinations(range(d), 2))
    for marks in itertools.product([(0, 0), (1, 0), (0, 1), (1, 1)], repeat=len(pairs)):
        adj = np.zeros((d, d), dtype=np.int8)
        for (i, j), (there, back) in zip(pairs, marks, strict=True):
            adj[i, j], adj[j, i] = there, back
        yield adj


@cache
def all_dags(d):
    return [adj for adj in all_pdags(d) if not (adj & adj.T).any() and acyclic(adj)]


def simple_paths(dag, start, end):
    """All paths without repeated variables, whatever the arrows' directions."""
    stack = [[start]]
    while stack:
        path = stack.pop()
        if path[-1] == end:
            yield path
            continue
        stack.extend([*path, k] for k in range(len(dag)) if k not in path and (dag[path[-1], k] or dag[k, path[-1]]))


def descendants(dag, node):
    seen, stack = {node}, [node]
    while stack:
        new = set(np.flatnonzero(dag[stack.pop()])) - seen
        seen |= new
        stack.extend(new)
    return seen


def is_open(dag, path, given_set):
    for before, middle, after in zip(path, path[1:], path[2:], strict=False):
        if dag[before, middle] and dag[after, middle]:
            if not descendants(dag, middle) & given_set:
                return False
        elif middle in given_set:
            return False
    return True


def d_separations(dag):
    """All statements "i and j are separated by S" that hold, as a set that can be compared."""
    statements = set()
    for i, j in itertools.combinations(range(len(dag)), 2):
        paths = list(simple_paths(dag, i, j))
        others = [k for k in range(len(dag)) if k not in (i, j)]
        for size in range(len(others) + 1):
            for chosen in itertools.combinations(others, size):
                if not any(is_open(dag, path, set(chosen)) for path in paths):
                    statements.add((i, j, chosen))
    return frozenset(statements)


@cache
def markov_classes(d):
    """DAGs of d variables, grouped by their d-separations."""
    classes = defaultdict(list)
    for dag in all_dags(d):
        classes[d_separations(dag)].append(dag)
    return list(classes.values())


def union(dags):
    return np.bitwise_or.reduce(dags)


def loop_v_structures(adj):
    """(a, c, b) with a → c ← b, a < b, and no edge between a and b."""

    def arrow(i, j):
        return adj[i, j] and not adj[j, i]

    return {
        (a, c, b)
        for c in range(len(adj))
        for a, b in itertools.combinations(range(len(adj)), 2)
        if arrow(a, c) and arrow(b, c) and not adj[a, b] and not adj[b, a]
    }


def random_dag(rng, d, degree):
    """Erdős–Rényi in a random order."""
    upper = np.triu(rng.random((d, d)) < degree / max(d - 1, 1), k=1)
    order = rng.permutation(d)
    return upper[np.ix_(order, order)].astype(np.int8)


@st.composite
def dags(draw, max_d=200, max_degree=8):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d = draw(st.integers(0, max_d) | st.integers(0, 12))
    return random_dag(rng, d, draw(st.floats(0, max_degree)))


law = settings(max_examples=120, deadline=None, database=None)


# ── the oracle is sound ───────────────────────────────────────────────────────────────────────────────────


def test_the_oracle_counts_graphs_as_the_literature_does():
    assert [len(all_dags(d)) for d in (1, 2, 3, 4)] == [1, 3, 25, 543]
    assert [len(markov_classes(d)) for d in (1, 2, 3, 4)] == [1, 2, 11, 185]


# ── Markov equivalence ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_cpdag_of_every_small_dag_is_the_union_of_its_class(d):
    for members in markov_classes(d):
        for dag in members:
            np.testing.assert_array_equal(dag_to_cpdag(dag), union(members))


def test_is_cpdag_knows_every_partially_directed_graph_of_four_variables():
    cpdags = {union(members).tobytes() for members in markov_classes(4)}
    wrong = [adj for adj in all_pdags(4) if is_cpdag(adj) != (adj.tobytes() in cpdags)]
    assert not wrong, wrong[0]


def test_consistent_extension_exists_exactly_when_a_dag_qualifies():
    """Over all 4096 graphs: same skeleton, same v-structures, all arrows kept."""
    by_skeleton = defaultdict(list)
    for dag in all_dags(4):
        by_skeleton[(dag | dag.T).tobytes()].append((dag, loop_v_structures(dag)))
    for pdag in all_pdags(4):
        wanted = loop_v_structures(pdag)
        allowed = {
            dag.tobytes()
            for dag, colliders in by_skeleton[(pdag | pdag.T).tobytes()]
            if colliders == wanted and not (dag & ~pdag).any()
        }
        if allowed:
            assert consistent_extension(pdag).tobytes() in allowed
        else:
            with pytest.raises(GraphError, match="No DAG extends"):
                consistent_extension(pdag)


@pytest.mark.skipif(not PAIRS.exists(), reason=f"reference pairs are not at {PAIRS}")
def test_cpdags_of_a_third_party():
    with np.load(PAIRS) as stored:
        settings_ = sorted(key.removesuffix("_dag") for key in stored.files if key.endswith("_dag"))
        pairs = [(d, c) for s in settings_ for d, c in zip(stored[f"{s}_dag"], stored[f"{s}_cpdag"], strict=True)]
    assert len(pairs) == 237
    for dag, cpdag in pairs:
        np.testing.assert_array_equal(dag_to_cpdag(dag), cpdag)
        assert is_cpdag(cpdag)


@law
@given(dags())
def test_cpdags_are_cpdags_and_extend_into_their_class(dag):
    cpdag = dag_to_cpdag(dag)
    assert is_cpdag(cpdag)
    extension = consistent_extension(cpdag)
    assert is_dag(extension)
    assert not (extension & ~cpdag).any()
    np.testing.assert_array_equal(skeleton(extension), skeleton(dag))
    np.testing.assert_array_equal(v_structures(extension), v_structures(dag))
    np.testing.assert_array_equal(dag_to_cpdag(extension), cpdag)


@law
@given(dags(), st.randoms(use_true_random=False))
def test_renaming_variables_only_relabels(dag, random):
    p = np.array(random.sample(range(len(dag)), len(dag)), dtype=int)
    mix = np.ix_(p, p)
    for function in (dag_to_cpdag, moral_graph, edge_classes, skeleton):
        np.testing.assert_array_equal(function(dag[mix]), function(dag)[mix])


@law
@given(dags())
def test_an_edge_of_a_cpdag_is_directed_only_if_it_was(dag):
    cpdag = dag_to_cpdag(dag)
    assert not (directed_part(cpdag) & ~dag).any()
    np.testing.assert_array_equal(v_structures(cpdag), v_structures(dag))


def test_completing_two_hundred_variables_is_quick():
    dag = random_dag(np.random.default_rng(0), 200, 5)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        dag_to_cpdag(dag)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.1


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


@pytest.mark.parametrize(
    ("adj", "message"),
    [
        (CYCLE, r"the cycle (0 → 1 → 2 → 0|1 → 2 → 0 → 1|2 → 0 → 1 → 2); remove"),
        ([[0, 1], [1, 0]], "0 — 1 is undirected; choose a direction"),
    ],
)
@pytest.mark.parametrize("function", [topological_order, dag_to_cpdag])
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


@pytest.mark.parametrize(
    ("adj", "message"),
    [(CYCLE, "it has the cycle"), (SQUARE, "among variables 0, 1, 2, 3 makes a cycle or a new v-structure")],
)
def test_a_graph_without_extension_says_why(adj, message):
    with pytest.raises(GraphError, match=message):
        consistent_extension(adj)


# ── the door ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("adj", "message"),
    [
        (np.zeros((2, 3)), r"shape \(2, 3\); it must be square"),
        (np.zeros(4), r"shape \(4,\); it must be square"),
        ([[0, 2], [0, 0]], r"adjacency\[0, 1\] is 2; entries must be 0 or 1"),
        ([[0, 0], [np.nan, 0]], r"adjacency\[1, 0\] is nan"),
        ([[0, 1], [0, 1]], r"adjacency\[1, 1\] is 1: a variable cannot point at itself"),
    ],
)
@pytest.mark.parametrize("function", [check_adjacency, skeleton, dag_to_cpdag, is_dag, is_cpdag, edge_classes])
def test_bad_matrices_are_refused_at_the_door(function, adj, message):
    with pytest.raises(GraphError, match=message):
        function(adj)


@pytest.mark.parametrize("kind", [bool, np.int8, int, float, np.uint8])
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


@pytest.mark.parametrize(
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
