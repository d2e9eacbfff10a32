"""How often links are found again in resamples."""

from __future__ import annotations

import numpy as np

import graphbam as gb
from graphbam.inference.stability import draw_resamples
from graphbam.nn.weights import load_colliders
from standins import Contrast, PartialCorrelation, Spy


def test_stability_is_a_share_and_high_for_strong_links(frame):
    result = gb.infer(frame, weights=PartialCorrelation(), stability=40)
    table = result.table().set_index(["a", "b"])["stability"]
    assert ((table >= 0) & (table <= 1)).all()
    assert table["a", "b"] == 1.0
    assert table["a", "e"] < 0.3
    assert np.array_equal(result.stability, result.stability.T)
    assert (result.stability.diagonal() == 0).all()


def test_stability_runs_in_batches(frame, monkeypatch):
    whole, cut = Spy(), Spy()
    first = gb.infer(frame, weights=whole, stability=10)
    monkeypatch.setattr("graphbam.inference.networks.CELLS_AT_ONCE", 3 * frame.size)
    second = gb.infer(frame, weights=cut, stability=10)
    assert [s[0] for s in whole.shapes] == [1, 10]
    assert [s[0] for s in cut.shapes] == [1, 3, 3, 3, 1]
    assert np.array_equal(first.stability, second.stability)


def collider_table(n_rows=200):
    """a → c ← b, and d, which follows c."""
    a, b, *noise = np.random.default_rng(0).normal(size=(4, n_rows))
    c = a + b + 0.5 * noise[0]
    return {"a": a, "b": b, "c": c, "d": c + noise[1]}


def test_arrows_have_a_stability_of_their_own():
    result = gb.infer(collider_table(), colliders=load_colliders("colliders"), stability=5)
    share_dd, place = result.arrow_stability, {name: k for k, name in enumerate(result.names)}
    assert share_dd[place["a"], place["c"]] > 0.8
    assert share_dd[place["c"], place["a"]] < 0.2
    assert (share_dd + share_dd.T <= result.stability + 1e-12).all()  # an arrow is a link, and points one way
    table = result.table().set_index(["a", "b"])
    assert table.loc[("a", "c"), "stable_forward"] == share_dd[place["a"], place["c"]]
    assert "of the resamples, drawn as a → c in" in str(result.why("a", "c"))
    again = gb.Result.from_dict(result.to_dict())
    assert np.array_equal(again.arrow_stability, share_dd)


def test_arrows_are_counted_as_the_graph_of_a_resample_draws_them(monkeypatch):
    """Every resample is the table itself: shares are 0 or 1, and those of its graph."""
    monkeypatch.setattr(
        "graphbam.inference.stability.draw_resamples", lambda rng, n, n_rows: np.tile(np.arange(n_rows), (n, 1))
    )
    settings = {"weights": PartialCorrelation(), "colliders": Contrast(), "stability": 3}
    for known in ({}, {"tiers": [["d"], ["c"]]}, {"forbidden": ["a -- c"]}, {"required": ["d -> a"]}):
        result = gb.infer(collider_table(), **settings, **known)
        arrows = result.cpdag().adjacency & ~result.cpdag().adjacency.T.astype(bool)
        assert np.array_equal(result.arrow_stability, arrows)
        assert np.array_equal(result.stability, result.skeleton().adjacency)


def test_the_second_network_is_asked_about_few_resamples(monkeypatch):
    monkeypatch.setattr("graphbam.inference.stability.MOST_ASKED", 2)
    colliders = Contrast()
    result = gb.infer(collider_table(), weights=PartialCorrelation(), colliders=colliders, stability=6)
    assert len(colliders.answers) == 3  # the table, and two resamples
    assert set(np.unique(result.arrow_stability)) <= {0.0, 0.5, 1.0}
    assert np.array_equal(result.stability, gb.infer(
        collider_table(), weights=PartialCorrelation(), colliders=None, stability=6).stability)  # fmt: skip


def test_without_directions_arrows_have_no_stability():
    result = gb.infer(collider_table(), weights=PartialCorrelation(), colliders=None, stability=3)
    assert result.arrow_stability is None
    assert "stable_forward" not in result.table()


def test_no_row_is_drawn_twice_into_a_resample():
    rows = draw_resamples(np.random.default_rng(0), 50, 40)
    assert all(len(set(row)) == len(row) == 25 for row in rows.tolist())
    assert len({tuple(sorted(row)) for row in rows.tolist()}) == 50
    assert draw_resamples(np.random.default_rng(0), 2, 2).shape == (2, 2)
