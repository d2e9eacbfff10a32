"""Markov equivalence, Meek's rules and the DAGs of a class, against loops and enumeration of all DAGs."""

from __future__ import annotations

import itertools
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each, examples
from graphbam.errors import GraphError, KnowledgeError
from graphbam.graphs import equivalence as meek
from graphbam.graphs.equivalence import (
    apply_knowledge,
    close_under_meek,
    consistent_extension,
    dag_to_cpdag,
    is_cpdag,
    rule_1,
    rule_2,
    rule_3,
    rule_4,
    sample_dags,
)
from graphbam.graphs.graph import directed_part, is_dag, skeleton, undirected_part, v_structures
from ingredients import SQUARE, complete, few
from oracle import acyclic, all_dags, all_pdags, dags, loop_v_structures, markov_classes, random_dag, union

law = examples(20, 40)

PAIRS = Path(__file__).resolve().parents[3] / "shared" / "data" / "dag_cpdag_pairs" / "grandag_pairs.npz"

CYCLE = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=np.int8)

# 0 — 2 is the chord of the square 0 — 1 — 2 — 3 — 0; from 3 → 2 follows 2 → 1 (R1), then 0 → 1 (R4 only).
KITE = skeleton([[0, 1, 1, 1], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])


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


@pytest.mark.parametrize(
    ("adj", "message"),
    [(CYCLE, "it has the cycle"), (SQUARE, "among variables 0, 1, 2, 3 makes a cycle or a new v-structure")],
)
def test_a_graph_without_extension_says_why(adj, message):
    with pytest.raises(GraphError, match=message):
        consistent_extension(adj)


# ── rule by rule ──────────────────────────────────────────────────────────────────────────────────────────


def arrow(adj, i, j):
    return adj[i, j] and not adj[j, i]


def link(adj, i, j):
    return adj[i, j] and adj[j, i]


def apart(adj, i, j):
    return not adj[i, j] and not adj[j, i]


PATTERNS = {
    rule_1: (3, lambda g, b, c, a: arrow(g, a, b) and link(g, b, c) and apart(g, a, c)),
    rule_2: (3, lambda g, a, c, b: arrow(g, a, b) and arrow(g, b, c) and link(g, a, c)),
    rule_3: (
        4,
        lambda g, a, b, c, d: (
            all(link(g, a, k) for k in (b, c, d)) and arrow(g, c, b) and arrow(g, d, b) and apart(g, c, d)
        ),
    ),
    rule_4: (
        4,
        lambda g, a, b, c, d: (
            all(link(g, a, k) for k in (b, c, d)) and arrow(g, d, c) and arrow(g, c, b) and apart(g, d, b)
        ),
    ),
}


@each("rule", PATTERNS)
def test_a_rule_fires_exactly_on_its_pattern(rule):
    """Over all 4096 graphs of four variables; a pattern's first two variables are the arrow it forces."""
    size, pattern = PATTERNS[rule]
    fired = 0
    for adj in all_pdags(4):
        expected = {nodes[:2] for nodes in itertools.permutations(range(4), size) if pattern(adj, *nodes)}
        found = {(int(i), int(j)) for i, j in np.argwhere(rule(adj))}
        assert found == expected, adj
        fired += bool(found)
    assert fired


@each("rule", PATTERNS)
def test_a_rule_sees_patterns_inside_larger_graphs(rule):
    size, pattern = PATTERNS[rule]
    rng = np.random.default_rng(4)
    for _ in range(40):
        adj = np.triu(rng.random((7, 7)) < 0.6, 1) | np.tril(rng.random((7, 7)) < 0.5, -1)
        expected = {nodes[:2] for nodes in itertools.permutations(range(7), size) if pattern(adj, *nodes)}
        assert {(int(i), int(j)) for i, j in np.argwhere(rule(adj))} == expected


# ── to the fixed point ────────────────────────────────────────────────────────────────────────────────────


def pattern_of(dag):
    """Skeleton with only the v-structures directed."""
    adj = (dag | dag.T).copy()
    for a, c, b in v_structures(dag):
        adj[c, a] = adj[c, b] = 0
    return adj


def test_skeleton_and_v_structures_close_to_every_small_cpdag():
    for members in markov_classes(4):
        np.testing.assert_array_equal(close_under_meek(pattern_of(members[0])), union(members))


@law
@given(dags(max_degree=12))
def test_closing_and_labelling_agree_on_large_graphs(dag):
    """Two unrelated algorithms: rules to the fixed point, and labels in topological order."""
    np.testing.assert_array_equal(close_under_meek(pattern_of(dag)), dag_to_cpdag(dag))


def test_closing_twice_changes_nothing():
    for adj in all_pdags(3):
        try:
            closed = close_under_meek(adj)
        except GraphError:
            continue
        np.testing.assert_array_equal(close_under_meek(closed), closed)


def test_closing_leaves_its_argument_alone():
    adj = np.array([[0, 1, 0], [0, 0, 1], [0, 1, 0]])
    before = adj.copy()
    close_under_meek(adj)
    np.testing.assert_array_equal(adj, before)


def test_arrows_that_force_both_directions_are_named():
    """In 0 → 1 — 2 ← 3, R1 forces 1 → 2 and 2 → 1."""
    adj = [[0, 1, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 1, 0]]
    with pytest.raises(GraphError, match="force both 1 → 2 and 2 → 1"):
        close_under_meek(adj)


# ── background knowledge ──────────────────────────────────────────────────────────────────────────────────


def agrees(dag, required, forbidden):
    return all(dag[i, j] for i, j in required) and not any(dag[i, j] for i, j in forbidden)


def check_against_enumeration(members, required=(), forbidden=()):
    """An edge is directed exactly if all members that agree with the knowledge agree on it."""
    agreeing = [dag for dag in members if agrees(dag, required, forbidden)]
    if agreeing:
        result = apply_knowledge(union(members), required, forbidden)
        np.testing.assert_array_equal(result, union(agreeing))
    else:
        with pytest.raises(KnowledgeError):
            apply_knowledge(union(members), required, forbidden)
    return bool(agreeing)


def test_one_piece_of_knowledge_on_every_cpdag_of_four_variables():
    outcomes = set()
    for members in markov_classes(4):
        for pair in itertools.permutations(range(4), 2):
            outcomes.add(("required", check_against_enumeration(members, required=[pair])))
            outcomes.add(("forbidden", check_against_enumeration(members, forbidden=[pair])))
    assert len(outcomes) == 4  # both kinds were accepted and refused


def test_several_pieces_on_cpdags_of_four_variables():
    rng = np.random.default_rng(0)
    pairs = list(itertools.permutations(range(4), 2))
    for members in markov_classes(4):
        edges = [tuple(map(int, edge)) for edge in np.argwhere(union(members))]
        for _ in range(4):
            required = [edges[k] for k in rng.integers(len(edges), size=min(len(edges), 2))]
            forbidden = [pairs[k] for k in rng.integers(12, size=rng.integers(3))]
            check_against_enumeration(members, required, forbidden)


def equivalent_dags(dag):
    """All orientations of the skeleton without cycle and with the v-structures of `dag`."""
    edges = np.argwhere(np.triu(dag | dag.T))
    wanted, found = loop_v_structures(dag), []
    for flips in itertools.product([False, True], repeat=len(edges)):
        other = np.zeros_like(dag)
        for (i, j), flip in zip(edges, flips, strict=True):
            other[(j, i) if flip else (i, j)] = 1
        if loop_v_structures(other) == wanted and acyclic(other):
            found.append(other)
    return found


def test_skeleton_and_v_structures_decide_equivalence():
    """The enumeration used for five variables finds the classes that d-separation finds for four."""
    class_of = {dag.tobytes(): k for k, members in enumerate(markov_classes(4)) for dag in members}
    for dag in all_dags(4)[::11]:
        members = markov_classes(4)[class_of[dag.tobytes()]]
        assert {d.tobytes() for d in equivalent_dags(dag)} == {d.tobytes() for d in members}


def five_variable_classes():
    """Eight-edge chordal classes and random ones: large classes, in which rules chain."""
    chordal = np.triu(np.ones((5, 5), dtype=np.int8), 1)
    chordal[0, 4] = chordal[1, 4] = 0
    yield equivalent_dags(chordal)
    rng = np.random.default_rng(1)
    for _ in range(30):
        yield equivalent_dags(random_dag(rng, 5, 3))


def test_knowledge_on_five_variables():
    rng = np.random.default_rng(2)
    for members in five_variable_classes():
        for _ in range(25):
            truth = members[rng.integers(len(members))]
            edges = [tuple(map(int, edge)) for edge in np.argwhere(truth)]
            if not edges:
                continue
            chosen = [edges[k] for k in rng.permutation(len(edges))[: rng.integers(1, 4)]]
            assert check_against_enumeration(members, required=chosen)
            assert check_against_enumeration(members, chosen[:1], forbidden=[(j, i) for i, j in chosen[1:]])


def test_rule_4_is_needed_for_knowledge(monkeypatch):
    """On the kite R1–R3 leave 0 — 1 undirected although both extensions direct it."""
    members = [dag for dag in all_dags(4) if (dag | dag.T == KITE).all() and not loop_v_structures(dag)]
    check_against_enumeration(members, required=[(3, 2)])
    assert apply_knowledge(KITE, required=[(3, 2)])[1, 0] == 0
    monkeypatch.setattr(meek, "RULES", meek.RULES[:3])
    assert apply_knowledge(KITE, required=[(3, 2)])[1, 0] == 1


@law
@given(dags(max_d=60, max_degree=6), st.randoms(use_true_random=False))
def test_true_knowledge_keeps_the_truth_possible(dag, random):
    cpdag = dag_to_cpdag(dag)
    edges = [tuple(map(int, edge)) for edge in np.argwhere(dag)]
    known = random.sample(edges, len(edges) // 4)
    result = apply_knowledge(cpdag, known[::2], [(j, i) for i, j in known[1::2]])
    assert not (dag & ~result).any()
    assert not (result & ~cpdag).any()
    assert all(not result[j, i] for i, j in known)
    np.testing.assert_array_equal(apply_knowledge(result), result)
    np.testing.assert_array_equal(apply_knowledge(cpdag, required=edges), dag)
    for i, j in np.argwhere(undirected_part(result))[:6]:  # complete: each direction is still possible
        extension = consistent_extension(apply_knowledge(result, required=[(i, j)]))
        assert is_dag(extension)
        assert extension[i, j]
        np.testing.assert_array_equal(dag_to_cpdag(extension), cpdag)


# ── refusals name the culprit ─────────────────────────────────────────────────────────────────────────────

COLLIDER = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]])
CHAIN = skeleton([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
TRIANGLE = skeleton([[0, 1, 1], [0, 0, 1], [0, 0, 0]])


@each(
    ("cpdag", "required", "forbidden", "message"),
    [
        (COLLIDER, [(2, 0)], [], "required 2 → 0: the opposite arrow already follows from the given graph"),
        (COLLIDER, [], [(0, 2)], "forbidden 0 → 2: that arrow already follows from the given graph"),
        (COLLIDER, [(0, 1)], [], "required 0 → 1: the graph has no edge there"),
        (CHAIN, [(0, 1), (1, 0)], [], r"required 1 → 0: .* other knowledge \(required 0 → 1\)"),
        (CHAIN, [(0, 1)], [(0, 1)], r"forbidden 0 → 1: that arrow .* \(required 0 → 1\)"),
        (CHAIN, [], [(0, 1), (1, 0)], r"forbidden 1 → 0: that arrow .* \(forbidden 0 → 1\)"),
        (CHAIN, [(0, 1), (2, 1)], [], r"required 2 → 1: .* \(required 0 → 1\)"),  # a new v-structure
        (TRIANGLE, [(0, 1), (1, 2), (2, 0)], [], r"required 2 → 0: .* \(required 0 → 1, required 1 → 2\)"),
        (CHAIN, [(0, 3)], [], r"required \(0, 3\) is not a pair of variables; .* from 0 to 2"),
        (CHAIN, [], [(1, 1)], r"forbidden \(1, 1\) is not a pair of variables"),
        (CHAIN, [(-1, 0)], [], r"required \(-1, 0\) is not a pair of variables"),
        (CHAIN, [(0, 1, 2)], [], r"required \(0, 1, 2\) is not a pair of variables"),
    ],
)
def test_contradictions_name_the_culprit(cpdag, required, forbidden, message):
    with pytest.raises(KnowledgeError, match=message):
        apply_knowledge(cpdag, required, forbidden)


def test_messages_use_names():
    with pytest.raises(KnowledgeError, match="required wet → rain"):
        apply_knowledge(COLLIDER, required=[(2, 0)], names=["rain", "sprinkler", "wet"])
    with pytest.raises(KnowledgeError, match="2 names for 3 variables"):
        apply_knowledge(COLLIDER, names=["rain", "sprinkler"])


def test_forbidding_what_is_not_there_says_nothing():
    np.testing.assert_array_equal(apply_knowledge(COLLIDER, forbidden=[(0, 1), (1, 0), (2, 0)]), COLLIDER)


def test_knowledge_needs_a_graph_that_stands_for_something():
    with pytest.raises(GraphError, match="No DAG extends"):
        apply_knowledge([[0, 1, 0], [0, 0, 1], [1, 0, 0]], required=[(0, 1)])


def test_knowledge_leaves_its_argument_alone():
    cpdag = CHAIN.copy()
    apply_knowledge(cpdag, required=[(0, 1)])
    np.testing.assert_array_equal(cpdag, CHAIN)


# ── the DAGs of a class ───────────────────────────────────────────────────────────────────────────────────


def test_samples_are_uniform_over_every_small_class():
    rng = np.random.default_rng(0)
    for members in markov_classes(4):
        known = {dag.tobytes(): 0 for dag in members}
        draws = 60 * len(members)
        for dag in sample_dags(union(members), draws, rng):
            known[dag.tobytes()] += 1  # KeyError: not a member
        counts = np.array(list(known.values()))
        assert ((counts - 60) ** 2 / 60).sum() < len(members) + 6 * np.sqrt(2 * len(members)) + 10


@few
@given(dags(max_d=30, max_degree=4), st.integers(0, 2**32))
def test_samples_belong_to_the_class(dag, seed):
    cpdag = dag_to_cpdag(dag)
    for sample in sample_dags(cpdag, 3, np.random.default_rng(seed)):
        np.testing.assert_array_equal(dag_to_cpdag(sample), cpdag)
    np.testing.assert_array_equal(dag_to_cpdag(consistent_extension(cpdag)), cpdag)


def test_large_cliques_are_sampled_too():
    samples = sample_dags(complete(7), 200, np.random.default_rng(0))
    assert all(is_dag(dag) for dag in samples)
    assert len({dag.tobytes() for dag in samples}) > 150
    np.testing.assert_allclose(samples.mean(axis=0)[np.triu_indices(7, 1)], 0.5, atol=0.15)


def test_samples_keep_known_arrows():
    graph = apply_knowledge(complete(4), required=[(2, 0), (3, 0)])
    samples = sample_dags(graph, 50, np.random.default_rng(1))
    assert samples[:, 2, 0].all()
    assert samples[:, 3, 0].all()
    assert len({dag.tobytes() for dag in samples}) == 24 // 3  # 0 comes after both 2 and 3 in a third of all orders


def test_a_graph_without_extension_is_refused():
    with pytest.raises(GraphError, match="No DAG extends"):
        sample_dags(SQUARE, 1, np.random.default_rng(0))
