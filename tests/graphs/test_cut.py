"""Which pairs a cut chooses: the largest set that a false-discovery target allows."""

import numpy as np
import pytest

from graphbam.graphs.cut import choose_pairs


@pytest.mark.parametrize("fdr", [0.05, 0.2, 0.5, 0.9])
@pytest.mark.parametrize("seed", range(5))
def test_false_discovery_sets_are_the_largest_allowed(fdr, seed):
    p = np.random.default_rng(seed).beta(0.5, 0.5, size=40)
    chosen = choose_pairs(p, fdr=fdr)
    ranked = np.sort(p)[::-1]
    allowed = [k for k in range(1, 41) if np.mean(1 - ranked[:k]) <= fdr]  # by the definition
    assert chosen.sum() == max(allowed, default=0)
    assert p[chosen].min(initial=1) >= p[~chosen].max(initial=0)


def test_equal_probabilities_stand_or_fall_together():
    p = np.array([0.9, 0.8, 0.8, 0.8])
    assert choose_pairs(p, fdr=0.15).tolist() == [True, False, False, False]
    assert choose_pairs(p, fdr=0.18).all()


def test_impossible_pairs_are_never_chosen():
    assert choose_pairs(np.array([1.0, 0.0]), fdr=0.9).tolist() == [True, False]
