"""Directions: what the second network is asked, and what comes of its answers."""

from __future__ import annotations

import numpy as np
import pytest

import graphbam as gb
from cases import SEEDS, each
from graphbam.directions.immoralities import OBVIOUS_FROM, pairs_to_ask
from graphbam.graphs.equivalence import is_cpdag
from graphbam.nn.cpu import has_bfloat16
from standins import Contrast, PartialCorrelation, arrows_of

TRUTH = [("a", "c"), ("b", "c"), ("c", "d"), ("d", "e")]


def test_obvious_pairs_are_not_asked_about_and_get_their_arrows_all_the_same(collider_frame, monkeypatch):
    monkeypatch.setattr("graphbam.directions.immoralities.OBVIOUS_FROM", OBVIOUS_FROM)
    result = gb.infer(collider_frame, colliders=Contrast())
    assert result.probabilities[0, 1, 2] >= OBVIOUS_FROM  # a and b, by their child c
    assert (0, 1) not in {(claim["a"], claim["b"]) for claim in result.colliders}
    assert set(TRUTH) <= set(result.cpdag().directed_edges())


def test_only_sure_pairs_with_one_candidate_are_obvious():
    p_dd3 = np.full((5, 5, 3), [1.0, 0.0, 0.0])
    for a, b in [(0, 2), (1, 2), (1, 3), (4, 3), (0, 4)]:
        p_dd3[a, b] = p_dd3[b, a] = [0.0, 1.0, 0.0]
    for a, b, moral in [(0, 1, OBVIOUS_FROM), (1, 4, OBVIOUS_FROM - 0.01)]:
        p_dd3[a, b] = p_dd3[b, a] = [1 - moral, 0.0, moral]
    assert np.argwhere(np.triu(pairs_to_ask(p_dd3).pairs_dd)).tolist() == [[1, 4]]
    p_dd3[1, 4] = p_dd3[4, 1] = [0.0, 1.0, 0.0]  # now 2 and 4 are both neighbours of 0 and 1
    assert np.argwhere(np.triu(pairs_to_ask(p_dd3).pairs_dd)).tolist() == [[0, 1]]


def test_the_right_directions_are_found(collider_frame):
    result = gb.infer(collider_frame, colliders=Contrast())
    nearest = result.cpdag(objective="shd")
    assert sorted(nearest.directed_edges()) == TRUTH
    assert nearest.undirected_edges() == []


@pytest.mark.parametrize("seed", SEEDS)
def test_any_table_gives_a_cpdag(weights, colliders, seed):
    x_md = np.random.default_rng(seed).normal(size=(60, 7)).cumsum(axis=1)
    result = gb.infer(x_md, weights=weights, colliders=colliders)
    assert all(is_cpdag(result.cpdag(**cut).adjacency) for cut in ({}, {"fdr": 0.1}, {"threshold": 0.5}))


@each("settings", [{}, {"max_rows": 200}, {"max_rows": 150, "large": "average"}])
def test_column_and_row_order_do_not_change_directions(collider_frame, colliders, settings):
    first = gb.infer(collider_frame, colliders=colliders, **settings)
    shuffled = collider_frame[list("fdbeca")].sample(frac=1, random_state=1)
    second = gb.infer(shuffled, colliders=colliders, **settings)
    assert len(first.colliders)
    assert arrows_of(first).keys() == arrows_of(second).keys()
    assert arrows_of(first) == pytest.approx(arrows_of(second), abs=0.03 if has_bfloat16() else 2e-3)


def test_coded_and_constant_columns_keep_their_names(collider_frame):
    text = collider_frame["a"].map(lambda value: "low" if value < -0.5 else "mid" if value < 0.5 else "top")
    odd = collider_frame.assign(k=1.0, a=text)[list("kbcaedf")]
    settings = {"encode": {"a": ["low", "mid", "top"]}, "colliders": Contrast()}
    result, without = gb.infer(odd, **settings), gb.infer(odd.drop(columns="k"), **settings)
    named = {tuple(result.names[k] for k in (a, c, b)) for a, c, b, _ in result.colliders.tolist()}
    assert named == {tuple(without.names[k] for k in (a, c, b)) for a, c, b, _ in without.colliders.tolist()}
    assert ("b", "c", "a") in named
    assert not [triple for triple in named if "k" in triple]
    assert arrows_of(result) == arrows_of(without)
    coded = odd.replace({"a": {"low": 0.0, "mid": 1.0, "top": 2.0}})
    for a, c, b, p in result.colliders.tolist():
        r_ab, r_ac, r_bc = (coded[result.names[i]].astype(float).corr(coded[result.names[j]].astype(float))
                            for i, j in ((a, b), (a, c), (b, c)))  # fmt: skip
        assert p == pytest.approx(float(Contrast._judge(r_ab, r_ac, r_bc)), abs=0.02)


def test_knowledge_decides_what_is_asked_and_what_comes_out(collider_frame):
    plain, told = Contrast(), Contrast()
    gb.infer(collider_frame, colliders=plain)
    result = gb.infer(collider_frame, colliders=told, required=["a -- b"], tiers=[["e"], ["d"]])
    asked = [{columns[:2] for columns in each.asked} for each in (plain, told)]
    assert (0, 1) in asked[0]
    assert (0, 1) not in asked[1]
    assert ("e", "d") in result.cpdag().directed_edges()


def test_a_required_edge_to_a_constant_column_is_no_question(collider_frame):
    spy = Contrast()
    result = gb.infer(collider_frame.assign(k=0.0), colliders=spy, required=["k -> c"])
    assert max(map(max, spy.asked)) < 6
    assert ("k", "c") in result.cpdag().directed_edges()


def test_draws_are_averaged_and_long_tables_cut(collider_frame, monkeypatch):
    spy = Contrast()
    result = gb.infer(collider_frame, colliders=spy, max_rows=150, large="average")
    assert {rows for rows, _ in spy.shapes} == {133}
    assert len(spy.answers) == 3
    np.testing.assert_allclose(np.sort(result.colliders["probability"]), np.sort(np.mean(spy.answers, axis=0)))
    monkeypatch.setattr("graphbam.inference.answers.MOST_ROWS", 90)
    spy = Contrast()
    result = gb.infer(collider_frame, colliders=spy)
    assert spy.shapes == [(90, 6)]
    assert "directions are judged from 90 of 400 rows, all that the second network takes" in result.changes


def test_many_tables_get_the_directions_of_one_by_one(collider_frame, colliders):
    tables = [collider_frame, collider_frame[list("abcd")], collider_frame.head(300), -collider_frame]
    for settings in ({}, {"max_rows": 150, "large": "average"}):
        settings |= {"weights": PartialCorrelation(), "colliders": colliders}
        for one, table in zip(gb.infer_many(tables, **settings), tables, strict=True):
            alone = gb.infer(table, **settings)
            assert len(one.colliders)
            assert arrows_of(one).keys() == arrows_of(alone).keys()
            np.testing.assert_allclose(one.colliders["probability"], alone.colliders["probability"], atol=1e-4)


def test_no_moral_pair_no_question(colliders):
    x_md = np.random.default_rng(0).normal(size=(200, 4))
    result = gb.infer(x_md, colliders=colliders)
    assert len(result.colliders) == 0
    assert result.cpdag().adjacency.sum() == 0
    assert result.arrows().empty


def test_progress_tells_of_directions(collider_frame, toy_colliders, monkeypatch):
    monkeypatch.setattr("graphbam.inference.networks.CELLS_AT_ONCE", collider_frame.size)
    told = []
    gb.infer(collider_frame, colliders=toy_colliders, stability=3, progress=lambda *both: told.append(both))
    shares = [share for share, _ in told]
    assert shares == sorted(shares)
    assert len(set(shares)) == len(shares) - 1  # the last resample, and "done"
    assert any(sentence.startswith("directions, ") and "less than a second" in sentence for _, sentence in told)
