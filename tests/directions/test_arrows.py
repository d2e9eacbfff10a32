"""Probabilities of arrows: as likely as the likeliest collider, or the weakest link of the best derivation."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from graphbam.directions.arrows import arrow_probabilities
from graphbam.directions.immoralities import Beliefs
from graphbam.graphs.graph import skeleton
from graphbam.graphs.knowledge import Knowledge
from graphbam.result import Result
from ingredients import SQUARE, complete, edges_of, few, forbidding, law, numbers, orient, p_of, unshielded


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


@pytest.mark.parametrize("seed", range(5))
def test_paths_agree_with_arrows_where_some_are_forbidden(seed):
    """A path is at least as likely as an arrow, and no likelier than that any arrow leaves or that none leads back."""
    rng = np.random.default_rng(seed)
    d, known = 6, Knowledge(tiers=[["v0", "v1"], ["v2", "v3"], ["v4"]])
    names = [f"v{k}" for k in range(d)]
    p_dd = rng.uniform(size=(d, d))
    links = np.triu(rng.uniform(size=(d, d)) ** 2, 1)
    classes = np.stack([1 - links - links.T, links + links.T, np.zeros((d, d))], -1)
    answers = {"directions": rng.uniform(size=(d, d)), "compelled": p_dd / 2, "ancestors": rng.uniform(size=(d, d))}
    result = Result(names, known.apply(names, classes), knowledge=known, **answers)
    arrow_dd = result.probabilities[..., 1] * result.directions
    assert (result.ancestors >= arrow_dd - 1e-12).all()
    assert (result.ancestors <= arrow_dd.sum(1)[:, None] + 1e-12).all()
    assert (result.ancestors <= 1 - arrow_dd.T + 1e-12).all()
    assert (result.ancestors[2:5, :2] == 0).all()
    assert np.allclose(dataclasses.replace(result).ancestors, result.ancestors, rtol=0, atol=1e-12)


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
