"""Probabilities of arrows: as likely as the likeliest collider, or the weakest link of the best derivation."""

from __future__ import annotations

import dataclasses
import itertools

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from graphbam.directions.arrows import arrow_probabilities
from graphbam.directions.immoralities import Beliefs
from graphbam.graphs.graph import edge_classes, reachable, skeleton
from graphbam.graphs.knowledge import Knowledge
from graphbam.inference import infer
from graphbam.result import Result
from ingredients import SQUARE, complete, edges_of, few, forbidding, law, numbers, orient, p_of, unshielded
from oracle import markov_classes, union


def test_an_arrow_is_as_likely_as_its_likeliest_collider():
    star = skeleton([[0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]])
    arrow_dd = arrow_probabilities(Beliefs(p_of(star), [(0, 3, 1, 0.75), (0, 3, 2, 0.5)]))
    assert arrow_dd[0, 3] == 0.75
    against = 0.5 * 0.75  # nobody claims 1 → 3 ← 2: the stronger arrow speaks for 3 → 2, the weaker one for 3 → 1
    assert arrow_dd[1, 3] == pytest.approx(0.75 * (1 - 0.5) / (1 - against))
    assert arrow_dd[2, 3] == pytest.approx(0.5 * (1 - 0.75) / (1 - against))
    assert arrow_dd[3, 1] == pytest.approx(0.5 * (1 - 0.75) / (1 - against))


def test_without_a_claim_the_likelier_common_neighbour_gets_more_of_the_moral_probability():
    p_dd3 = p_of(SQUARE)  # 0 and 2 have the common neighbours 1 and 3
    p_dd3[0, 2] = p_dd3[2, 0] = [0.2, 0.0, 0.8]
    p_dd3[0, 3] = p_dd3[3, 0] = [0.5, 0.5, 0.0]
    arrow_dd = arrow_probabilities(Beliefs(p_dd3))
    assert arrow_dd[0, 1] == pytest.approx(0.8 * 1 / 1.5)
    assert arrow_dd[2, 3] == pytest.approx(0.8 * 0.5 / 1.5)


@each(
    ("edges", "colliders", "arrow", "expected"),
    [
        # R1 twice, the second through an edge less likely than the collider
        ({(0, 2): 1, (1, 2): 1, (2, 3): 0.6, (3, 4): 1}, [(0, 2, 1, 0.9)], (3, 4), 0.6),
        # R1 weakened by what else could be a collider there
        ({(0, 2): 1, (1, 2): 1, (2, 3): 1}, [(0, 2, 1, 0.9), (0, 2, 3, 0.2), (1, 2, 3, 0.3)], (2, 3), (0.7, 0.3)),
        # R1, then R2: 2 → 3 → 4 and 2 — 4, which R1 gives as well; the missing 0 — 4 is unsure
        ({(0, 2): 1, (1, 2): 1, (2, 3): 1, (3, 4): 1, (2, 4): 1, (0, 4): 0.3}, [(0, 2, 1, 0.9)], (2, 4), 0.9),
        # R3: 1 → 3 ← 2 and 0 adjacent to all three
        ({(1, 3): 1, (2, 3): 1, (0, 1): 1, (0, 2): 1, (0, 3): 1}, [(1, 3, 2, 0.8)], (0, 3), 0.8),
        # R3 needs that 1 → 0 ← 2 is not the case, which for its part would speak for 3 → 0
        (
            {(1, 3): 1, (2, 3): 1, (0, 1): 1, (0, 2): 1, (0, 3): 1},
            [(1, 3, 2, 0.8), (1, 0, 2, 0.3)],
            (0, 3),
            (0.7, 0.2),
        ),
    ],
)
def test_a_derived_arrow_is_as_likely_as_its_weakest_link(edges, colliders, arrow, expected):
    p_dd3 = p_of(np.zeros((5, 5)))
    for (i, j), p in edges.items():
        p_dd3[i, j] = p_dd3[j, i] = [1 - p, p, 0.0]
    arrow_dd = arrow_probabilities(Beliefs(p_dd3, colliders))
    if isinstance(expected, tuple):
        p, q = expected  # for and against
        expected = p * (1 - q) / (1 - p * q)
    assert arrow_dd[arrow] == pytest.approx(expected)


def test_rule_4_carries_knowledge():
    """The kite of `test_equivalence`: from 3 → 2 follows 2 → 1 (R1), then 0 → 1 (R4 only)."""
    kite = skeleton([[0, 1, 1, 1], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
    result = orient(kite, forbidden=forbidding(4, [(3, 2)]), unclaimed=0.0)
    is_arrow = (result.adjacency - result.adjacency.T) > 0
    assert edges_of(is_arrow) == [(0, 1), (2, 1), (3, 2)]
    assert (result.arrow_dd == is_arrow).all()


def exclude(graph, first, second):
    """Whether two arrows and certain paths between them close a circle."""
    (x, y), (u, v) = first, second
    return (y == u or nx.has_path(graph, y, u)) and (v == x or nx.has_path(graph, v, x))


def check_paths(knowledge, names, path, arrow):
    """All that must hold of paths and arrows, given as (i, j) → probability, of pairs that are there.

    Likely links with known directions may exclude each other; nothing is said of their arrows.
    """
    certain = nx.DiGraph()
    certain.add_nodes_from(range(len(names)))
    place = {name: k for k, name in enumerate(names)}
    certain.add_edges_from((place[a], place[b]) for a, b in (knowledge.arrows() if knowledge else ()))
    assert all(0 <= p <= 1 and p + path[j, i] <= 1 + 1e-11 for (i, j), p in path.items())
    leads = {(a, b) for a in certain for b in nx.descendants(certain, a)}
    for a, b in leads & path.keys():
        assert path[a, b] == 1
        assert path[b, a] == 0
    for (a, b), c in itertools.product(leads, certain):
        assert path.get((b, c), 0) <= path.get((a, c), 1) + 1e-11
        assert path.get((c, a), 0) <= path.get((c, b), 1) + 1e-11
    tier = knowledge.tier_of if knowledge else {}
    assert all(path[i, j] == 0 for i, j in path if tier.get(names[i], -1) > tier.get(names[j], 9) >= 0)
    shut = [(one, two) for one, two in itertools.combinations(arrow, 2) if exclude(certain, one, two)]
    is_forced = {(i, j) for i, j in arrow if knowledge and knowledge.forbids(names[j], names[i])}
    clash = {e for pair in shut if is_forced.issuperset(pair) and sum(map(arrow.get, pair)) > 1 for e in pair}
    assert all(arrow[one] + arrow[two] <= 1 + 1e-11 for one, two in shut if not clash & {one, two})
    assert all(path[e] >= arrow[e] - 1e-11 for e in arrow if e not in clash)


@law
@given(numbers, st.integers(2, 7), st.booleans())
def test_paths_agree_with_each_other_with_arrows_and_with_knowledge(draw, d, is_known):
    whole, listed = draw.answers(d, is_known)
    every = edges_of(complete(d))
    arrow_dd = whole.probabilities[..., 1] * whole.directions
    check_paths(whole.knowledge, whole.names, {e: whole.ancestors[e] for e in every}, {e: arrow_dd[e] for e in every})
    link, pairs = listed.probabilities[:, 1], [tuple(pair) for pair in listed.pairs.tolist()]
    arrow = dict(zip(pairs, link * listed.directions, strict=True))
    arrow |= dict(zip([e[::-1] for e in pairs], link * (1 - listed.directions), strict=True))
    path = dict(zip(pairs, listed.ancestors[:, 0], strict=True))
    path |= dict(zip([e[::-1] for e in pairs], listed.ancestors[:, 1], strict=True))
    check_paths(whole.knowledge, whole.names, path, arrow)
    for one in (whole, listed):
        for name in ("directions", "compelled", "ancestors"):
            assert np.allclose(getattr(dataclasses.replace(one), name), getattr(one, name), rtol=0, atol=1e-14), name


@law
@given(numbers, st.integers(2, 7))
def test_paths_change_only_where_a_law_is_broken(draw, d):
    whole, _ = draw.answers(d, knowledge=False)
    said_dd, arrow_dd = draw(d, d) * complete(d), whole.probabilities[..., 1] * whole.directions
    kept_dd = dataclasses.replace(whole, ancestors=said_dd).ancestors
    is_fine = (said_dd >= arrow_dd) & (said_dd + said_dd.T <= 1)
    assert (kept_dd == said_dd)[is_fine & is_fine.T].all()


def test_a_required_arrow_leaves_no_likely_circle():
    way_dd = np.array([[0, 0.01, 0.99], [0.99, 0, 0.01], [0.01, 0.99, 0]])  # 0 → 2 → 1 → 0
    answers = {"directions": way_dd, "compelled": way_dd, "ancestors": 1.0 * (way_dd > 0.5)}
    result = Result(("a", "b", "c"), p_of(complete(3)), knowledge=Knowledge(required=["a -> c"]), **answers)
    assert result.directions[2, 1] == pytest.approx(0.5)
    assert result.directions[1, 0] == pytest.approx(0.5)
    assert result.ancestors[2, 1] + result.ancestors[1, 0] <= 1


def ways_of(listed):
    """Directions of listed pairs as (i, j, of i → j, that the CPDAG has it), both ways."""
    for (i, j), p, (forward, backward) in zip(listed.pairs.tolist(), listed.directions, listed.compelled, strict=True):
        yield from ((i, j, p, forward), (j, i, 1 - p, backward))


@law
@given(numbers, st.integers(2, 7))
def test_no_arrow_runs_against_knowledge_be_its_link_forbidden_or_not(draw, d):
    whole, listed = draw.answers(d)
    knowledge, places = whole.knowledge, dict(enumerate(whole.names))
    two_step = Result(whole.names, whole.probabilities, knowledge=knowledge, colliders=draw.claims(complete(d)))
    assert np.allclose(whole.directions + whole.directions.T, complete(d), rtol=0, atol=1e-15)
    said = [(i, j, whole.arrow_probabilities[i, j], whole.compelled[i, j]) for i, j in edges_of(complete(d))]
    for i, j, arrow, compelled in (*said, *ways_of(listed)):
        a, b = places[i], places[j]
        tiers = knowledge.tier_of
        is_back = a in tiers and b in tiers and tiers[a] > tiers[b]
        if is_back or (b, a) in knowledge.arrows() or (knowledge.forbids(a, b) and not knowledge.forbids(b, a)):
            assert arrow == compelled == two_step.arrow_probabilities[i, j] == 0, (a, b)


def test_two_certain_opposites_cancel():
    path = skeleton(np.eye(4, k=1, dtype=np.int8))
    arrow_dd = arrow_probabilities(Beliefs(p_of(path), [(0, 1, 2, 1.0), (1, 2, 3, 1.0)]))
    assert arrow_dd[1, 2] == arrow_dd[2, 1] == 0.5


@few
@given(numbers, st.integers(3, 8))
def test_stronger_claims_never_weaken_an_arrow_into_their_child(draw, d):
    adj = draw.graph(d)
    if not (triples := unshielded(adj)):
        return
    triple = triples[draw.rng.integers(len(triples))]
    weak, strong = (orient(adj, [(*triple, p)], unclaimed=0.0).arrow_dd for p in (0.4, 0.9))
    assert weak[triple[0], triple[1]] < strong[triple[0], triple[1]]


def test_a_known_direction_implies_what_it_implies_in_the_class():
    """Where the network is sure, the graph is all that the DAGs of the class with the known arrow have in common."""
    rng, n_open = np.random.default_rng(0), 0
    for members in markov_classes(4):
        cpdag, dag = union(members), members[0]
        for i, j in np.argwhere(dag):
            p_dd3 = np.eye(3)[edge_classes(dag)] * 0.94 + 0.02
            compelled_dd = np.where((cpdag > 0) & (cpdag.T == 0), 0.97, 0.01 * rng.random((4, 4)))  # else open
            known, half_dd = Knowledge(required=[("abcd"[i], "->", "abcd"[j])]), np.full((4, 4), 0.5)
            told = {"directions": half_dd, "compelled": compelled_dd, "ancestors": np.full((4, 4), 0.3)}
            result = Result(tuple("abcd"), p_dd3, **told, knowledge=known)
            wanted = union([other for other in members if other[i, j]])
            assert np.array_equal(result.cpdag().adjacency > 0, wanted > 0), (dag, i, j)
            drawn = (wanted > 0) & (wanted.T == 0)
            assert (result.compelled_probabilities[drawn] > 0.9).all()
            assert (result.arrow_probabilities[drawn] > 0.9).all()
            assert (result.ancestors[reachable(drawn)] > 0.8).all()
            assert (result.ancestors[reachable(drawn).T] < 0.1).all()
            is_open = (wanted > 0) & (wanted.T > 0)
            assert np.allclose(result.arrow_probabilities[is_open], 0.5, atol=0.05)
            again = Result.from_dict(result.to_dict())
            assert np.array_equal(again.compelled, result.compelled)
            for name in ("directions", "ancestors"):
                assert np.allclose(getattr(again, name), getattr(result, name), rtol=0, atol=1e-14), name
            n_open += bool((wanted != cpdag).any())
    assert n_open > 50  # or little was tried


def test_what_an_experiment_decides_implies_what_follows():
    """a → b → c, and only a was set: nothing but a → b is told, and b → c follows: they have no common child."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        a, b, c = rng.normal(size=(3, 400))
        was_set = np.arange(400) < 200
        a[was_set] *= 1.5
        b = a + 0.7 * b
        frame = pd.DataFrame({"a": a, "b": b, "c": b + 0.7 * c, "set": np.where(was_set, "a", "")})
        result = infer(frame, interventions="set")
        assert result.cpdag().directed_edges() == [("a", "b"), ("b", "c")]


def test_directions_and_paths_follow_what_an_experiment_decides():
    p_dd3 = np.full((3, 3, 3), [0.97, 0.02, 0.01])
    p_dd3[[0, 1, 1, 2], [1, 0, 2, 1]] = [0.01, 0.99, 0.0]
    way_dd = np.array([[0.5, 0.96, 0.5], [0.04, 0.5, 0.4], [0.5, 0.6, 0.5]])
    was_set = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=bool)
    told = {"compelled": np.zeros((3, 3)), "ancestors": np.full((3, 3), 0.1), "experiments": was_set}
    result = Result(tuple("abc"), p_dd3, directions=way_dd, **told)
    assert result.cpdag().directed_edges() == [("a", "b"), ("b", "c")]
    assert result.arrow_probabilities[1, 2] == pytest.approx(0.96)
    assert result.compelled_probabilities[1, 2] == pytest.approx(0.96)
    assert result.ancestors[1, 2] == pytest.approx(0.96 * 0.99)
    assert result.table().set_index(["a", "b"]).loc[("b", "c"), "forward"] == pytest.approx(0.96)
    assert "b → c 0.96" in str(result.why("b", "c"))
    assert np.array_equal(Result.from_dict(result.to_dict()).ancestors, result.ancestors)
