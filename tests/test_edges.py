"""Results: thresholds, false-discovery targets, ranking, suspected children, round trips."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from graphbam.edges import Failure, OrientationMissingError, Result, choose_pairs, suspect_children
from graphbam.errors import ConfigError, GraphbamError, GraphError
from graphbam.knowledge import Knowledge

D = 6
NAMES = tuple("abcdef")


@pytest.fixture(params=range(3))
def result(request):
    p = np.random.default_rng(request.param).dirichlet([2, 1, 0.5], size=(D, D))
    return Result(NAMES, p)


def test_probabilities_are_a_proper_answer(result):
    p = result.probabilities
    assert np.array_equal(p, p.transpose(1, 0, 2))
    assert np.allclose(p.sum(axis=-1), 1, atol=1e-14)
    assert np.array_equal(p[range(D), range(D)], np.tile([1.0, 0.0, 0.0], (D, 1)))
    with pytest.raises(ValueError, match="read-only"):
        p[0, 1] = 0


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.9])
def test_graphs_hold_the_pairs_above_the_threshold(result, threshold):
    p = result.probabilities
    assert np.array_equal(result.skeleton(threshold).adjacency, p[..., 1] >= threshold)
    assert np.array_equal(result.moral_graph(threshold).adjacency, p[..., 1] + p[..., 2] >= threshold)
    assert (result.moral_graph(threshold).adjacency >= result.skeleton(threshold).adjacency).all()


def test_certain_edges_survive_every_threshold(result):
    p = Knowledge(required=["a -- b"], forbidden=["c -- d"]).apply(NAMES, result.probabilities)
    sure = Result(NAMES, p)
    assert sure.probabilities[0, 1, 1] == 1.0
    assert sure.skeleton(1.0).undirected_edges() == [("a", "b")]
    assert ("c", "d") not in sure.skeleton(1e-12).undirected_edges()


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


@pytest.mark.parametrize("cut", [{"threshold": 0.0}, {"threshold": 1.1}, {"fdr": 0.0}, {"fdr": 1.0}])
def test_cuts_outside_their_range_are_refused(result, cut):
    with pytest.raises(ConfigError, match="pass a number"):
        result.skeleton(**cut)


def test_table_is_ranked_and_complete(result):
    table = result.table()
    assert list(table.columns) == ["a", "b", "skeleton", "moral", "none", "via"]
    assert len(table) == D * (D - 1) / 2
    assert table["skeleton"].is_monotonic_decreasing
    place = {name: k for k, name in enumerate(NAMES)}
    for row in table.itertuples():
        assert row.skeleton == result.probabilities[place[row.a], place[row.b], 1]


def test_stability_is_a_column_when_known(result):
    with_it = Result(NAMES, result.probabilities, stability=np.full((D, D), 0.25))
    assert (with_it.table()["stability"] == 0.25).all()


def test_the_common_child_of_a_collider_is_suspected():
    p = np.tile([0.97, 0.03, 0.0], (5, 5, 1))
    for i, j in [(0, 3), (1, 3)]:  # a → d ← b
        p[i, j] = p[j, i] = [0.05, 0.95, 0.0]
    p[0, 1] = p[1, 0] = [0.2, 0.1, 0.7]
    result = Result(tuple("abcde"), p)
    table = result.table().set_index(["a", "b"])
    assert table.loc[("a", "b"), "via"] == "d"
    assert (table["via"] != "").sum() == 1
    assert "common child: d?" in result.summary()


def test_two_variables_have_no_common_child():
    p = np.tile([0.2, 0.2, 0.6], (2, 2, 1))
    assert (suspect_children(p) == -1).all()
    assert Result(("a", "b"), p).table()["via"].tolist() == [""]


def test_directions_are_refused_for_now(result):
    with pytest.raises(OrientationMissingError, match="orientation network is not part of this version"):
        result.cpdag()
    assert issubclass(OrientationMissingError, GraphbamError)


def test_summary_tells_what_was_done(result):
    told = Result(NAMES, result.probabilities, changes=("row 3 left out",), warnings=("few rows",), source="t.csv")
    text = told.summary()
    for part in ("t.csv: 6 variables", "row 3 left out", "few rows"):
        assert part in text


@pytest.mark.parametrize("copy", [
    lambda r: Result.from_dict(json.loads(json.dumps(r.to_dict()))),
    lambda r: pickle.loads(pickle.dumps(r)),
], ids=["json", "pickle"])  # fmt: skip
def test_round_trips(result, copy):
    full = Result(
        NAMES, result.probabilities, ("x",), ("y",), {"verdict": None, "features": {"n": np.float64(2)}},
        np.eye(D), Knowledge(["a -- b"]), "t.csv", {"seed": 0},
    )  # fmt: skip
    again = copy(full)
    assert np.allclose(again.probabilities, full.probabilities, atol=1e-15)
    assert again.to_dict() | {"probabilities": 0} == full.to_dict() | {"probabilities": 0}


@pytest.mark.parametrize("p", [np.zeros((2, 2, 3)) - 1, np.full((2, 2, 3), np.nan), np.ones((3, 3, 3))])
def test_improper_probabilities_are_refused(p):
    with pytest.raises(GraphError, match="probabilities"):
        Result(("a", "b"), p)


def test_a_failure_is_falsy():
    assert not Failure("t.csv", "is empty")
