"""Immoralities: which are asked about, how both networks are combined, and what is believed without asking."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given

from cases import each
from graphbam.directions.immoralities import (
    IMMORALITY,
    LEAST,
    LINKED_FROM,
    MORAL_FROM,
    OBVIOUS_FROM,
    TERMS,
    Beliefs,
    combine,
    describe,
    pairs_to_ask,
    read_probabilities,
)
from graphbam.errors import GraphError, KnowledgeError
from graphbam.graphs.graph import edge_classes, v_structures
from graphbam.graphs.knowledge import Knowledge
from ingredients import CHAIN, certain, complete, few, law, numbers, orient, p_of, sizes
from oracle import all_dags

ALONE = {"offset": 0.0, "child": 1.0, "moral": 0.0, "links": 0.0, "candidates": 0.0}
"""Weights that leave the word to the second network."""


# ── what to ask ───────────────────────────────────────────────────────────────────────────────────────────


@law
@given(numbers, sizes)
def test_pairs_to_ask_by_their_definition(draw, d):
    p_dd3 = read_probabilities(draw.probabilities(d))
    asked = pairs_to_ask(p_dd3)
    for a, b in itertools.permutations(range(d), 2):
        linked = [c for c in range(d) if min(p_dd3[a, c, 1], p_dd3[b, c, 1]) >= LINKED_FROM]
        is_obvious = len(linked) == 1 and p_dd3[a, b, 2] >= OBVIOUS_FROM
        assert asked.pairs_dd[a, b] == (p_dd3[a, b, 2] >= MORAL_FROM and bool(linked) and not is_obvious)
        assert asked.links_dd[a, b] == (p_dd3[a, b, 1] >= LINKED_FROM)
    assert not asked.pairs_dd.diagonal().any()
    assert not asked.links_dd.diagonal().any()


def test_every_v_structure_is_asked_about_where_it_is_not_obvious():
    for dag in all_dags(4):
        links_dd, pairs_dd = pairs_to_ask(certain(edge_classes(dag)))
        for a, c, b in v_structures(dag).tolist():
            assert links_dd[a, c]
            assert links_dd[b, c]
            assert pairs_dd[a, b] == ((links_dd[a] & links_dd[b]).sum() > 1)


# ── what was answered ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def triples():
    return np.array([(0, 2, 1), (0, 3, 1), (1, 3, 2)])


@pytest.fixture
def said():
    return np.array([0.3, 0.8, 0.6])


@pytest.fixture
def p_dd3():
    p_dd3 = np.random.default_rng(0).dirichlet([1, 1, 1], (4, 4))
    return (p_dd3 + p_dd3.swapaxes(0, 1)) / 2


def test_features_by_hand(triples, said, p_dd3):
    features = describe(triples, said, p_dd3)
    assert features.shape == (3, len(TERMS))
    links = p_dd3[0, 3, 1] * p_dd3[1, 3, 1]
    moral = p_dd3[0, 1, 2]
    expected = [1, np.log(4), np.log(moral / (1 - moral)), np.log(links / (1 - links)), np.log(2)]
    np.testing.assert_allclose(features[1], expected)
    assert features[2, -1] == 0  # the only candidate of its pair


def test_the_network_alone_keeps_its_word(triples, said, p_dd3):
    for weights in (ALONE, None):
        table = combine(triples, said, p_dd3, weights)
        assert table.dtype == IMMORALITY
        np.testing.assert_allclose(table["probability"], said)
        assert np.stack([table["a"], table["c"], table["b"]], axis=1).tolist() == triples.tolist()


@each("term", ["child", "moral", "links"])
def test_more_evidence_makes_an_immorality_likelier(triples, said, p_dd3, term):
    weights = ALONE | {"moral": 0.5, "links": 0.5}
    before = combine(triples, said, p_dd3, weights)["probability"]
    p_more = p_dd3.copy()
    if term != "child":
        p_more[..., 2 if term == "moral" else 1] += 0.05
    after = combine(triples, said + 0.1 * (term == "child"), p_more, weights)["probability"]
    assert (after > before).all()


def test_certainty_stays_finite_and_order_does_not_matter(triples, p_dd3):
    weights, sure = dict.fromkeys(TERMS, 0.7), np.array([0.0, 1.0, 0.5])
    table = combine(triples, sure, np.round(p_dd3), weights)
    assert np.isfinite(table["probability"]).all()
    assert ((table["probability"] > 0) & (table["probability"] < 1)).all()
    assert describe(triples, sure, p_dd3)[1, 1] == pytest.approx(np.log((1 - LEAST) / LEAST))
    np.testing.assert_array_equal(combine(triples[::-1], sure[::-1], np.round(p_dd3), weights), table)


def test_nothing_asked_is_no_trouble(p_dd3):
    assert len(combine(np.empty((0, 3), dtype=np.int64), np.empty(0), p_dd3, ALONE)) == 0


# ── beliefs ───────────────────────────────────────────────────────────────────────────────────────────────


@few
@given(numbers, sizes)
def test_beliefs_by_their_definition(draw, d):
    p_dd3 = read_probabilities(draw.probabilities(d))
    rows = draw.claims(complete(d), fitting=False)
    said = {}
    for a, c, b, p in rows:
        said[frozenset((a, b)), c] = max(p, said.get((frozenset((a, b)), c), 0.0))
    edge_dd, moral_dd = p_dd3[..., 1], p_dd3[..., 2]
    found = [Beliefs(p_dd3, rows).immoral_at(c, np.delete(np.arange(d), c)) for c in range(d)]
    for a, c, b in itertools.permutations(range(d), 3):
        total = sum(edge_dd[a, k] * edge_dd[b, k] for k in range(d))
        share = moral_dd[a, b] * edge_dd[a, c] * edge_dd[b, c] / total if total else 0.0
        expected = said.get((frozenset((a, b)), c), share)
        assert found[c][a - (a > c), b - (b > c)] == pytest.approx(expected)


def test_of_equal_triples_the_largest_counts():
    for rows in ([(0, 1, 2, 0.2), (2, 1, 0, 0.9)], [(2, 1, 0, 0.9), (0, 1, 2, 0.2)]):
        result = orient(CHAIN, rows)
        assert result.adjacency.tolist() == [[0, 1, 0], [0, 0, 0], [0, 1, 0]]
        assert result.arrow_dd[0, 1] == 0.9


def test_knowledge_in_words_becomes_forbidden_arrows():
    names = ["a", "b", "c"]
    known = Knowledge(required=["b -> a"], tiers=[["b"], ["c"]])
    forbidden = [[known.forbids(x, y) or (y, x) in known.arrows() for y in names] for x in names]
    assert orient(complete(3), forbidden=forbidden).adjacency.tolist() == [[0, 0, 1], [1, 0, 1], [1, 0, 0]]


@each(
    ("rows", "forbidden", "error", "message"),
    [
        ([(0, 1, 2)], None, GraphError, r"collider 0 has 3 entries; it must be \(a, c, b, prob"),
        ([(0, 1, 3, 0.5)], None, GraphError, r"collider 0 is \(0, 1, 3\).*from 0 to 2"),
        ([(0, 1, 0, 0.5)], None, GraphError, "three different numbers"),
        ([(0, 1, 2, 1.5)], None, GraphError, "probability 1.5; it must lie between 0 and 1"),
        ([(0, 1, 2, np.nan)], None, GraphError, "probability nan"),
        (None, np.zeros((2, 2)), KnowledgeError, r"shape \(2, 2\); 3 variables need"),
    ],
)
def test_mistakes_are_named(rows, forbidden, error, message):
    with pytest.raises(error, match=message):
        Beliefs(p_of(CHAIN), rows, forbidden)
    with pytest.raises(GraphError, match="shape"):
        Beliefs(np.zeros((3, 3, 2)))
