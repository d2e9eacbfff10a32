"""From a skeleton to CPDAGs: valid whatever the claims, exact with true ones, conflicts settled by probability.

The oracle is enumeration: all DAGs and Markov classes of four variables, as `test_graph` lists them.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbam.directions.orientation import orient
from graphbam.errors import ConfigError, KnowledgeError
from graphbam.graphs.equivalence import apply_knowledge, consistent_extension, dag_to_cpdag, is_cpdag
from graphbam.graphs.graph import skeleton, v_structures
from ingredients import CHAIN, SQUARE, complete, edges_of, few, forbidding, law, numbers, ring, sizes, unshielded
from oracle import dags, markov_classes, union


def with_true_claims(dag):
    """Every unshielded triple of the skeleton, with probability 1 if it is a v-structure and 0 if not."""
    true = {tuple(row) for row in v_structures(dag).tolist()}
    return [(*triple, float(triple in true)) for triple in unshielded(skeleton(dag))]


# ── valid whatever the claims ──────────────────────────────────────────────────────────────────────────


@settings(max_examples=1500, deadline=None, database=None)
@given(numbers, sizes, st.booleans(), st.sampled_from([0.0, 0.3, 0.5, 0.9, np.inf]))
def test_orienting_any_skeleton_by_any_claims_gives_a_cpdag(draw, d, fitting, accept):
    adj = draw.graph(d)
    result = orient(adj, draw.claims(adj, fitting), accept=accept)
    assert is_cpdag(result.adjacency)
    np.testing.assert_array_equal(skeleton(result.adjacency), skeleton(adj))
    p = result.arrow_probability_dd
    assert np.isfinite(p).all()
    assert p.min() >= 0
    assert (p + p.T).max() <= 1 + 1e-12
    assert not p[adj == 0].any()


@pytest.mark.parametrize("d", [4, 5, 6, 7])
@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
def test_rings_are_directed_with_contradictory_claims(d, p):
    """A collider claimed everywhere on a ring: no two neighbours can both be one."""
    result = orient(ring(d), [(*triple, p) for triple in unshielded(ring(d))])
    assert is_cpdag(result.adjacency)
    n_colliders = len(v_structures(result.adjacency))
    assert n_colliders == (1 if p == 0 else d // 2) or (p > 0 and 1 <= n_colliders <= d // 2)


# ── exact with true claims ─────────────────────────────────────────────────────────────────────────────


def test_true_claims_give_the_true_cpdag_of_every_small_dag():
    for members in markov_classes(4):
        for dag in members:
            result = orient(skeleton(dag), with_true_claims(dag))
            np.testing.assert_array_equal(result.adjacency, union(members))
            is_arrow = (result.adjacency - result.adjacency.T) > 0
            assert (result.arrow_probability_dd[is_arrow] >= 0.98).all()


@few
@given(dags(max_degree=5))
def test_true_claims_give_the_true_cpdag_of_large_dags(dag):
    result = orient(skeleton(dag), [(*row, 1.0) for row in v_structures(dag).tolist()])
    np.testing.assert_array_equal(result.adjacency, dag_to_cpdag(dag))


@few
@given(dags(max_d=30, max_degree=4), st.integers(0, 2**32))
def test_weak_false_claims_change_nothing(dag, seed):
    rng = np.random.default_rng(seed)
    claims = [(*triple, rng.uniform(0.6, 1) if p else rng.uniform(0, 0.4)) for *triple, p in with_true_claims(dag)]
    rng.shuffle(claims)
    np.testing.assert_array_equal(orient(skeleton(dag), claims).adjacency, dag_to_cpdag(dag))


# ── conflicts are settled by probability ───────────────────────────────────────────────────────────────


def test_the_likelier_of_two_contradictory_claims_wins():
    path = skeleton(np.eye(4, k=1, dtype=np.int8))
    for p, q in ((0.9, 0.7), (0.7, 0.9)):
        result = orient(path, [(0, 1, 2, p), (1, 2, 3, q)])
        assert v_structures(result.adjacency).tolist() == ([[0, 1, 2]] if p > q else [[1, 2, 3]])


def test_a_claim_that_drags_along_unlikely_colliders_is_refused():
    """With 0 → 3 ← 1 in place, 2 → 3 would make 2 a co-parent of both 0 and 1."""
    star = np.zeros((5, 5), dtype=np.int8)
    star[3, [0, 1, 2, 4]] = star[[0, 1, 2, 4], 3] = 1
    claims = [(0, 3, 1, 0.9), (2, 3, 4, 0.6), (0, 3, 2, 0.1)]
    assert v_structures(orient(star, claims).adjacency).tolist() == [[0, 3, 1]]
    agreeing = [(a, 3, b, 0.6) for a, b in itertools.combinations([0, 1, 2, 4], 2)]
    assert len(v_structures(orient(star, agreeing).adjacency)) == 6


def test_a_ring_without_accepted_claims_breaks_where_it_is_likeliest():
    for k, triple in enumerate(unshielded(SQUARE)):
        claims = [(*other, 0.3 if i == k else 0.1) for i, other in enumerate(unshielded(SQUARE))]
        assert v_structures(orient(SQUARE, claims).adjacency).tolist() == [list(triple)]


def eliminate_by_definition(adj, claims):
    """Step 2 of `orient` without any arrows given, everything counted anew at every step."""
    odds = {(a, c, b): np.log(p / (1 - p)) for a, c, b, p in claims}
    left, dag = set(range(len(adj))), np.zeros_like(adj)
    while left:
        new = {c: [t for t in odds if t[1] == c and t[0] in left and t[2] in left] for c in left}
        sink = min(left, key=lambda c: (len(new[c]) > 0, -sum(odds[t] for t in new[c])))
        left.remove(sink)
        dag[[i for i in left if adj[i, sink]], sink] = 1
    return dag_to_cpdag(dag)


@law
@given(numbers, st.integers(4, 9))
def test_sinks_are_taken_in_the_order_of_the_definition(draw, d):
    adj = draw.graph(d)
    claims = [(*triple, draw.rng.uniform(0.05, 0.95)) for triple in unshielded(adj)]
    np.testing.assert_array_equal(orient(adj, claims, accept=np.inf).adjacency, eliminate_by_definition(adj, claims))


def test_claims_that_do_not_fit_the_skeleton_are_passed_over():
    claims = [(0, 2, 1, 1.0), (1, 0, 2, 1.0)]
    np.testing.assert_array_equal(orient(CHAIN, claims).adjacency, CHAIN)
    np.testing.assert_array_equal(orient(complete(3), [(0, 1, 2, 1.0)]).adjacency, complete(3))


def test_accept_is_a_threshold_on_either_side_of_one_half():
    collider = [[0, 1, 0], [0, 0, 0], [0, 1, 0]]
    for p, accept, is_accepted in [
        (0.5, 0.5, True),
        (0.49, 0.5, False),
        (0.3, 0.3, True),
        (0.29, 0.3, False),
        (0.8, 0.9, False),
        (1.0, np.inf, False),
    ]:
        expected = collider if is_accepted else CHAIN.tolist()
        assert orient(CHAIN, [(0, 1, 2, p)], accept=accept).adjacency.tolist() == expected, (p, accept)


@law
@given(numbers, st.integers(2, 9), st.integers(0, 2**32))
def test_order_of_variables_and_claims_does_not_matter(draw, d, seed):
    """With a different probability for every triple; ties have to be broken by something."""
    rng = np.random.default_rng(seed)
    adj, new = draw.graph(d), rng.permutation(d)
    triples = unshielded(adj)
    p = (rng.permutation(len(triples)) + 0.5) / max(len(triples), 1)
    claims = [(*triple, float(q)) for triple, q in zip(triples, p, strict=True)]
    moved = [(int(new[b]), int(new[c]), int(new[a]), q) for a, c, b, q in claims]
    rng.shuffle(moved)
    moved_adj = np.zeros_like(adj)
    moved_adj[np.ix_(new, new)] = adj
    first, second = orient(adj, claims), orient(moved_adj, moved)
    np.testing.assert_array_equal(second.adjacency[np.ix_(new, new)], first.adjacency)
    np.testing.assert_allclose(
        second.arrow_probability_dd[np.ix_(new, new)], first.arrow_probability_dd, rtol=0, atol=1e-12
    )


# ── knowledge ──────────────────────────────────────────────────────────────────────────────────────────


@law
@given(numbers, st.integers(2, 9))
def test_required_arrows_always_appear_and_the_rest_stays_valid(draw, d):
    adj, order = draw.graph(d), draw.rng.permutation(d)
    possible = [(i, j) for i, j in edges_of(adj) if order[i] < order[j]]
    required = [edge for edge in possible if draw.rng.random() < 0.3]
    forbidden = forbidding(d, required)
    result = orient(adj, draw.claims(adj), knowledge=forbidden)
    assert all(result.adjacency[i, j] and not result.adjacency[j, i] for i, j in required)
    assert all(result.arrow_probability_dd[i, j] == 1 for i, j in required)
    dag = consistent_extension(result.adjacency)
    expected = apply_knowledge(dag_to_cpdag(dag), required)
    np.testing.assert_array_equal(result.adjacency, expected)  # maximally directed, and no further
    by_function = orient(adj, draw.claims(adj), knowledge=lambda i, j: (j, i) in required)
    assert all(by_function.adjacency[i, j] and not by_function.adjacency[j, i] for i, j in required)


def test_true_knowledge_adds_arrows_to_the_true_cpdag():
    for members in markov_classes(4)[::5]:
        for dag in members:
            for edge in edges_of(dag):
                result = orient(skeleton(dag), with_true_claims(dag), forbidding(4, [edge]))
                agreeing = [other for other in members if other[edge]]
                np.testing.assert_array_equal(result.adjacency, union(agreeing))


# ── refusals ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: orient(CHAIN, unclaimed=2), ConfigError, "unclaimed=2 is not a probability"),
        (lambda: orient(CHAIN, knowledge=np.ones((3, 3))), KnowledgeError, "0 — 1 is an edge, but both"),
        (
            lambda: orient(complete(3), knowledge=forbidding(3, [(0, 1), (1, 2), (2, 0)])),
            KnowledgeError,
            "no DAG with this skeleton.*cycle",
        ),
    ],
)
def test_mistakes_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
