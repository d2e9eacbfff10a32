"""Columns in two narrow peaks are stretched for the network to see what is within these."""

import numpy as np
import pytest
import torch

import graphbam as gb
from cases import each
from graphbam.tables.peaks import REACH, WIDTH, find_peaks, widen
from graphbam.tables.standard import standardise


def switches(d, width=0.003, share=0.5, n_rows=200):
    rng = np.random.default_rng(d)
    return (rng.random((n_rows, d)) < share) + width * rng.normal(size=(n_rows, d))


def as_batch(*tables):
    return standardise(torch.from_numpy(np.stack(tables))).float()


@each("d, width", [(100, 0.001), (100, 1e-7), (150, 0.004)])
def test_columns_that_have_nothing_to_do_with_each_other_get_no_links(d, width):
    """Left as they are, all pairs are linked, or none ever is."""
    result = gb.infer(switches(d, width), directions="none", progress=False)
    assert len(result.skeleton().undirected_edges()) < 0.01 * d * (d - 1) / 2
    assert 0 < result.expected_links < 2 * d
    assert any("in two narrow peaks" in change for change in result.changes)


def test_a_few_cells_beside_two_levels_are_no_other_table():
    """Left as they are, all pairs are linked: with cells that differ a little, two levels are two no longer."""
    x_md = switches(100, 0.0, n_rows=400)
    x_md[np.random.default_rng(1).random(x_md.shape) < 0.01] += 0.001
    assert len(gb.infer(x_md, directions="none", progress=False).skeleton().undirected_edges()) < 50


def test_missing_cells_do_not_hide_peaks():
    x_md = switches(100)
    x_md[np.random.default_rng(1).random(x_md.shape) < 0.01] = np.nan
    assert len(gb.infer(x_md, directions="none", progress=False).skeleton().undirected_edges()) < 50


def test_a_link_within_the_peaks_is_found():
    rng = np.random.default_rng(0)
    within_md = rng.normal(size=(300, 12))
    within_md[:, 1] = 0.8 * within_md[:, 0] + 0.6 * within_md[:, 1]
    x_md = (rng.random((300, 12)) < 0.5) + 0.002 * within_md
    result = gb.infer(x_md, directions="none", progress=False)
    assert result.skeleton().undirected_edges() == [("x0", "x1")]


@each(
    "x_md",
    [
        switches(40, 0.0),
        switches(40, 0.02),
        switches(40, share=0.05),
        np.random.default_rng(1).normal(size=(200, 20)),
        np.random.default_rng(1).integers(3, size=(200, 20)) + 0.001 * np.random.default_rng(2).normal(size=(200, 20)),
        np.where(np.arange(200)[:, None] == 7, 1e6, np.random.default_rng(1).normal(size=(200, 20))),
    ],
    ids=["two levels", "wide enough", "one peak rare", "normal", "three peaks", "one far out"],
)
def test_other_tables_stay_as_they_are(x_md):
    x_bmd = as_batch(x_md)
    assert widen(x_bmd) is x_bmd
    assert not find_peaks(x_md).any()


def test_the_order_of_values_stays_and_peaks_get_their_width():
    x_bmd = as_batch(switches(20, share=0.3))
    y_bmd = widen(x_bmd)
    assert torch.equal(y_bmd.argsort(dim=1), x_bmd.argsort(dim=1))
    for y_m in y_bmd[0].numpy().T:
        peaks = y_m[y_m > y_m.mean()], y_m[y_m <= y_m.mean()]
        assert np.concatenate([peak - peak.mean() for peak in peaks]).std() == pytest.approx(WIDTH, rel=0.1)


def test_a_cell_between_the_peaks_stays_near_its_own():
    x_md = switches(1)
    x_md[0] = 0.05
    y_m = widen(as_batch(x_md))[0, :, 0].numpy()
    assert y_m[0] == pytest.approx(np.median(y_m[x_md[:, 0] < 0.5]) + REACH, abs=0.01)


def test_cells_that_were_filled_in_stay():
    x_bmd = as_batch(switches(5))
    missing_bmd = torch.rand(x_bmd.shape, generator=torch.Generator().manual_seed(0)) < 0.1
    x_bmd[missing_bmd] = 0.1
    y_bmd = widen(x_bmd, missing_bmd)
    assert (y_bmd[missing_bmd] == x_bmd[missing_bmd]).all()
    assert (y_bmd != x_bmd)[~missing_bmd].float().mean() > 0.9
    assert widen(x_bmd) is x_bmd


def test_each_table_of_a_batch_is_looked_at_by_itself_and_the_input_is_left_alone():
    x_bmd = as_batch(switches(10), np.random.default_rng(1).normal(size=(200, 10)))
    kept = x_bmd.clone()
    y_bmd = widen(x_bmd)
    assert torch.equal(x_bmd, kept)
    assert torch.equal(y_bmd[1], x_bmd[1])
    assert torch.equal(y_bmd[0], widen(x_bmd[:1])[0])
