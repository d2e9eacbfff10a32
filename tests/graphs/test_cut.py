"""Which pairs a cut chooses: those above a threshold, or the largest set that a false-discovery target allows."""

import numpy as np
import pytest

from cases import each
from graphbam.errors import ConfigError
from graphbam.graphs.cut import Cut


@each("fdr", [0.05, 0.2, 0.5, 0.9])
@each("seed", range(5))
def test_false_discovery_sets_are_the_largest_allowed(fdr, seed):
    p = np.random.default_rng(seed).beta(0.5, 0.5, size=40)
    chosen = Cut(fdr=fdr).choose(p)
    ranked = np.sort(p)[::-1]
    allowed = [k for k in range(1, 41) if np.mean(1 - ranked[:k]) <= fdr]  # by the definition
    assert chosen.sum() == max(allowed, default=0)
    assert p[chosen].min(initial=1) >= p[~chosen].max(initial=0)


def test_equal_probabilities_stand_or_fall_together():
    p = np.array([0.9, 0.8, 0.8, 0.8])
    assert Cut(fdr=0.15).choose(p).tolist() == [True, False, False, False]
    assert Cut(fdr=0.18).choose(p).all()


def test_impossible_pairs_are_never_chosen():
    assert Cut(fdr=0.9).choose(np.array([1.0, 0.0])).tolist() == [True, False]


@each("seed", range(20))
def test_a_looser_cut_keeps_what_a_stricter_one_chose(seed):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.3, 0.5, size=60).round(rng.integers(1, 6))
    for kind, levels in (("fdr", [0.01, 0.05, 0.1, 0.3, 0.8]), ("threshold", [0.9, 0.5, 0.2])):
        chosen = np.array([Cut(**{kind: level}).choose(p) for level in levels])
        assert (chosen[:-1] <= chosen[1:]).all()


def test_nothing_given_is_one_half_and_cuts_say_what_they_are():
    assert Cut() == Cut.read() == Cut(threshold=0.5)
    assert Cut(objective="shd").choose(np.array([0.5, 0.4])).tolist() == [True, False]
    cuts = [Cut(), Cut(threshold=0.25), Cut(fdr=0.05), Cut(objective="shd")]
    assert [str(cut) for cut in cuts] == [
        "at p ≥ 0.5", "at p ≥ 0.25", "with at most 5 % expected false", "with the fewest expected errors",
    ]  # fmt: skip
    assert [Cut(**cut.to_dict()) for cut in cuts] == cuts


def test_links_are_a_symmetric_choice_among_pairs():
    p = np.array([[1, 0.9, 0.2], [0.9, 1, 0.5], [0.2, 0.5, 1]])
    assert Cut().links(p).tolist() == [[False, True, False], [True, False, True], [False, True, False]]
    assert Cut(fdr=0.15).links(p).sum() == 2


@each(
    ("given", "meant"),
    [((), Cut()), ((0.7,), Cut(threshold=0.7)), ((1,), Cut(threshold=1.0)), ((Cut(fdr=0.2),), Cut(fdr=0.2))],
)
def test_a_plain_number_is_a_threshold(given, meant):
    assert Cut.read(*given) == meant
    assert Cut.read(threshold=meant.threshold, fdr=meant.fdr) == meant


@each(
    ("call", "says"),
    [
        (lambda: Cut(threshold=0.5, fdr=0.1), "threshold and fdr were both given"),
        (lambda: Cut.read(threshold=0.5, fdr=0.1), "threshold and fdr were both given"),
        (lambda: Cut.read(0.5, fdr=0.1), "0.5 was given, and another setting as well"),
        (lambda: Cut.read(Cut(fdr=0.1), threshold=0.5), "was given, and another setting as well"),
        (lambda: Cut.read(Cut(), objective="shd"), "was given, and another setting as well"),
        (lambda: Cut(fdr="5%"), "fdr='5%' is not a number"),
        (lambda: Cut.read("half"), "threshold='half' is not a number"),
        (lambda: Cut.read([0.5]), "threshold=.* is not a number"),
        (lambda: Cut(threshold=0.0), "threshold=0.0 is not a probability"),
        (lambda: Cut(threshold=1.1), "threshold=1.1"),
        (lambda: Cut(fdr=0.0), "fdr=0.0 is not a share"),
        (lambda: Cut(fdr=1.0), "fdr=1.0"),
        (lambda: Cut(objective="best"), "objective='best' is unknown; choose from 'links', 'shd'"),
        (
            lambda: Cut(threshold=0.5, objective="shd"),
            "objective='shd' chooses the links itself",
        ),
    ],
)
def test_cuts_that_make_no_sense_are_refused(call, says):
    with pytest.raises(ConfigError, match=says):
        call()
