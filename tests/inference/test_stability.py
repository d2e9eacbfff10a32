"""How often links are found again in resamples."""

from __future__ import annotations

import numpy as np

import graphbam as gb
from graphbam.inference.stability import draw_resamples
from standins import PartialCorrelation, Spy


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


def test_no_row_is_drawn_twice_into_a_resample():
    rows = draw_resamples(np.random.default_rng(0), 50, 40)
    assert all(len(set(row)) == len(row) == 25 for row in rows.tolist())
    assert len({tuple(sorted(row)) for row in rows.tolist()}) == 50
    assert draw_resamples(np.random.default_rng(0), 2, 2).shape == (2, 2)
