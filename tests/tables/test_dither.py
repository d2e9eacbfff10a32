"""Noise on tables of nothing but columns with two levels."""

import numpy as np
import pytest
import torch

import graphbam as gb
from cases import each
from graphbam.tables.dither import AMOUNT, dither, find_levels
from graphbam.tables.standard import standardise


def coins(d, share=0.5, n_rows=300):
    return (np.random.default_rng(d).random((n_rows, d)) < share).astype(float)


def as_batch(*tables):
    return standardise(torch.from_numpy(np.stack(tables))).float()


@each("d, share", [(40, 0.5), (100, 0.5), (100, 0.42), (200, 0.5), (200, 0.2)])
def test_columns_that_have_nothing_to_do_with_each_other_get_no_links(d, share):
    """Without noise, of 100 columns and more that are one in half of the rows all pairs are linked, or none ever is."""
    result = gb.infer(coins(d, share), directions="none", progress=False)
    assert len(result.skeleton().undirected_edges()) < 0.01 * d * (d - 1) / 2
    assert any("columns of two levels" in change for change in result.changes)


@each("d, gaps, shown", [(120, 0.002, True), (120, 0.3, False), (200, 0.01, True), (200, 0.1, True)])
def test_cells_that_were_filled_in_are_no_levels(d, gaps, shown):
    """Filled in, a column has more than two values; without noise, one cell in a hundred missing made all links."""
    x_md, rng = coins(d), np.random.default_rng(1)
    x_md[rng.random(x_md.shape) < gaps] = np.nan
    result = gb.infer(x_md, directions="none", progress=False)
    assert len(result.skeleton().undirected_edges()) < 0.01 * d * (d - 1) / 2
    assert any("columns of two levels" in change for change in result.changes) == shown


def test_a_few_columns_of_three_levels_do_not_help():
    """Without noise, a fifth of them left two thirds of unrelated pairs linked, a tenth nearly all."""
    x_md = coins(200, n_rows=500)
    x_md[:, :40] = np.random.default_rng(1).integers(3, size=(500, 40))
    assert find_levels(x_md).tolist() == [False] * 40 + [True] * 160
    assert len(gb.infer(x_md, directions="none", progress=False).skeleton().undirected_edges()) < 200


def test_a_link_between_columns_of_two_levels_is_found():
    x_md = coins(100)
    x_md[:, 1] = np.where(np.random.default_rng(1).random(300) < 0.1, 1 - x_md[:, 0], x_md[:, 0])
    found = gb.infer(x_md, directions="none", progress=False).skeleton().undirected_edges()
    assert ("x0", "x1") in found
    assert len(found) <= 3


@each(
    "x_md",
    [
        coins(14),
        coins(100, 0.3),
        coins(200, 0.1),
        coins(100) + 0.05 * np.random.default_rng(1).normal(size=(300, 100)),
        np.column_stack([coins(100), np.random.default_rng(1).normal(size=(300, 15))]),
        np.column_stack([coins(100), np.random.default_rng(1).integers(3, size=(300, 40)).astype(float)]),
        np.random.default_rng(1).integers(3, size=(300, 60)).astype(float),
    ],
    ids=["few", "uneven", "rare ones", "with noise already", "beside others", "beside many of three", "three levels"],
)
def test_other_tables_stay_as_they_are(x_md):
    x_bmd = as_batch(x_md)
    assert dither(x_bmd) is x_bmd
    assert not find_levels(x_md).any()


def test_noise_is_small_and_depends_on_the_column_alone():
    x_md = coins(50)
    x_md[:, 7] = np.random.default_rng(1).normal(size=300)
    x_bmd, order = as_batch(x_md), np.random.default_rng(2).permutation(50)
    y_bmd = dither(x_bmd)
    assert torch.equal(dither(x_bmd[..., order]), y_bmd[..., order])
    assert torch.equal(y_bmd[..., 7], x_bmd[..., 7])
    noise_md = np.delete((y_bmd - x_bmd)[0].numpy(), 7, axis=1)
    assert noise_md.std() == pytest.approx(AMOUNT, rel=0.05)
    assert np.abs(np.corrcoef(noise_md.T) - np.eye(49)).max() < 0.25


def test_each_table_of_a_batch_is_looked_at_by_itself():
    x_bmd = as_batch(coins(40), np.random.default_rng(1).normal(size=(300, 40)))
    y_bmd = dither(x_bmd)
    assert torch.equal(y_bmd[1], x_bmd[1])
    assert torch.equal(y_bmd[0], dither(x_bmd[:1])[0])
    assert not torch.equal(y_bmd[0], x_bmd[0])


def test_rows_columns_and_units_do_not_matter():
    x_md = coins(40)
    rng = np.random.default_rng(3)
    rows, columns = rng.permutation(300), rng.permutation(40)
    plain, other = (gb.infer(t, directions="none", progress=False) for t in (x_md, 5 + 2 * x_md[np.ix_(rows, columns)]))
    assert np.allclose(other.probabilities, plain.probabilities[np.ix_(columns, columns)], atol=0.02)
