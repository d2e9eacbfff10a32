"""Evidence of both networks, weighed."""

import numpy as np
import pytest

from graphbam.directions.evidence import LEAST, TERMS, describe_claims, weigh_claims
from graphbam.directions.immoralities import CLAIM

ALONE = {"offset": 0.0, "child": 1.0, "moral": 0.0, "links": 0.0, "candidates": 0.0}
"""Weights that leave the word to the collider network."""


@pytest.fixture
def claims():
    return np.array([(0, 2, 1, 0.3), (0, 3, 1, 0.8), (1, 3, 2, 0.6)], dtype=CLAIM)


@pytest.fixture
def p_dd3():
    p_dd3 = np.random.default_rng(0).dirichlet([1, 1, 1], (4, 4))
    return (p_dd3 + p_dd3.swapaxes(0, 1)) / 2


def test_features_by_hand(claims, p_dd3):
    features = describe_claims(claims, p_dd3)
    assert features.shape == (3, len(TERMS))
    links = p_dd3[0, 3, 1] * p_dd3[1, 3, 1]
    moral = p_dd3[0, 1, 2]
    expected = [1, np.log(4), np.log(moral / (1 - moral)), np.log(links / (1 - links)), np.log(2)]
    np.testing.assert_allclose(features[1], expected)
    assert features[2, -1] == 0  # the only candidate of its pair


def test_the_network_alone_keeps_its_word(claims, p_dd3):
    np.testing.assert_allclose(weigh_claims(claims, p_dd3, ALONE)["probability"], claims["probability"])
    assert weigh_claims(claims, p_dd3, None) is claims


@pytest.mark.parametrize("term", ["child", "moral", "links"])
def test_more_evidence_makes_a_claim_likelier(claims, p_dd3, term):
    before = weigh_claims(claims, p_dd3, ALONE | {"moral": 0.5, "links": 0.5})["probability"]
    surer, p_more = claims.copy(), p_dd3.copy()
    if term == "child":
        surer["probability"] += 0.1
    else:
        p_more[..., 2 if term == "moral" else 1] += 0.05
    after = weigh_claims(surer, p_more, ALONE | {"moral": 0.5, "links": 0.5})["probability"]
    assert (after > before).all()


def test_certainty_stays_finite_and_order_does_not_matter(claims, p_dd3):
    weights = dict.fromkeys(TERMS, 0.7)
    sure = claims.copy()
    sure["probability"] = [0, 1, 0.5]
    p = weigh_claims(sure, np.round(p_dd3), weights)["probability"]
    assert np.isfinite(p).all()
    assert ((p > 0) & (p < 1)).all()
    assert describe_claims(sure, p_dd3)[1, 1] == pytest.approx(np.log((1 - LEAST) / LEAST))
    np.testing.assert_array_equal(weigh_claims(sure[::-1], np.round(p_dd3), weights)["probability"], p[::-1])


def test_no_claims_are_no_trouble(p_dd3):
    assert len(weigh_claims(np.array([], dtype=CLAIM), p_dd3, ALONE)) == 0
