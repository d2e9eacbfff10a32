"""Claims and what is believed without them, by definition; whatever is wrong with them is said."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given

from graphbam.directions.cpdag import decide
from graphbam.directions.immoralities import read_beliefs, read_probabilities
from graphbam.directions.orientation import orient
from graphbam.errors import GraphError, KnowledgeError
from graphbam.graphs.knowledge import Knowledge
from ingredients import CHAIN, complete, few, numbers, sizes


@few
@given(numbers, sizes)
def test_beliefs_by_their_definition(draw, d):
    p_dd3 = read_probabilities(draw.probabilities(d))
    claims = draw.claims(complete(d), fitting=False)
    claimed = {}
    for a, c, b, p in claims:
        claimed[frozenset((a, b)), c] = max(p, claimed.get((frozenset((a, b)), c), 0.0))
    edge_dd, moral_dd = p_dd3[..., 1], p_dd3[..., 2]
    found = [read_beliefs(p_dd3, claims).colliders_at(c, np.delete(np.arange(d), c)) for c in range(d)]
    for a, c, b in itertools.permutations(range(d), 3):
        total = sum(edge_dd[a, k] * edge_dd[b, k] for k in range(d))
        share = moral_dd[a, b] * edge_dd[a, c] * edge_dd[b, c] / total if total else 0.0
        expected = claimed.get((frozenset((a, b)), c), share)
        assert found[c][a - (a > c), b - (b > c)] == pytest.approx(expected)


def test_of_equal_triples_the_largest_claim_counts():
    for claims in ([(0, 1, 2, 0.2), (2, 1, 0, 0.9)], [(2, 1, 0, 0.9), (0, 1, 2, 0.2)]):
        result = orient(CHAIN, claims)
        assert result.adjacency.tolist() == [[0, 1, 0], [0, 0, 0], [0, 1, 0]]
        assert result.arrow_probability_dd[0, 1] == 0.9


def test_knowledge_in_words_becomes_forbidden_arrows():
    names = ["a", "b", "c"]
    known = Knowledge(required=["b -> a"], tiers=[["b"], ["c"]])
    forbidden = [[known.forbids(x, y) or (y, x) in known.arrows() for y in names] for x in names]
    assert orient(complete(3), knowledge=forbidden).adjacency.tolist() == [[0, 0, 1], [1, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: orient(CHAIN, [(0, 1, 2)]), GraphError, r"collider 0 has 3 entries; it must be \(a, c, b, prob"),
        (lambda: orient(CHAIN, [(0, 1, 3, 0.5)]), GraphError, r"collider 0 is \(0, 1, 3\).*from 0 to 2"),
        (lambda: orient(CHAIN, [(0, 1, 0, 0.5)]), GraphError, "three different numbers"),
        (lambda: orient(CHAIN, [(0, 1, 2, 1.5)]), GraphError, "probability 1.5; it must lie between 0 and 1"),
        (lambda: orient(CHAIN, [(0, 1, 2, np.nan)]), GraphError, "probability nan"),
        (lambda: orient(CHAIN, knowledge=np.zeros((2, 2))), KnowledgeError, r"shape \(2, 2\); 3 variables need"),
        (lambda: decide(np.zeros((3, 3, 2))), GraphError, "shape"),
    ],
)
def test_mistakes_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
