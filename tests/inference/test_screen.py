"""The screen finds what a network could find, and every column has a neighbourhood."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import graphbam as gb
from cases import SEEDS, each
from graphbam.inference import screen
from graphbam.inference.screen import Candidates, find_candidates, group_columns, largest_products, view_columns
from graphbam.tables.standard import standardise


def candidates_of(x_md, **settings):
    found = find_candidates(standardise(torch.from_numpy(x_md)).float(), **settings)
    return found, set(zip(found.i.tolist(), found.j.tolist(), strict=True))


@pytest.mark.parametrize("seed", SEEDS)
@each("mechanism", ["linear", "cosine", "square"])
def test_links_of_every_kind_are_candidates(mechanism, seed):
    graph, x_md = gb.simulate(n_variables=250, n_samples=400, mechanism=mechanism, degree=2, seed=seed)
    _, pairs = candidates_of(x_md)
    links = {(int(min(i, j)), int(max(i, j))) for i, j in np.argwhere(graph.adjacency)}
    assert len(links & pairs) >= 0.95 * len(links)
    assert len(pairs) <= screen.MOST_CANDIDATES * 250


@each("n_at_once", [10**9, 1500])
def test_every_pair_is_counted_once(monkeypatch, n_at_once):
    monkeypatch.setattr(screen, "CELLS_AT_ONCE", n_at_once)
    found, _ = candidates_of(np.random.default_rng(0).normal(size=(60, 50)))
    assert found.census.sum() == 50 * 49 / 2


def test_a_hub_keeps_all_its_children():
    rng = np.random.default_rng(0)
    x_md = rng.normal(size=(300, 120))
    x_md[:, 1:100] += x_md[:, :1]
    _, pairs = candidates_of(x_md, most=10)
    assert {(0, k) for k in range(1, 100)} <= pairs


@each("share", [0.5, 0.1, 0.02])
def test_columns_of_two_values_are_as_strong_as_their_correlation(share):
    x_md = torch.from_numpy(np.random.default_rng(0).random((500, 30)) < share).float()
    views_vmd = view_columns(x_md)
    assert torch.allclose(largest_products(views_vmd, views_vmd), x_md.T.corrcoef().abs(), atol=1e-4)


@each("draw", [lambda rng: rng.integers(0, 4, (200, 20)), lambda rng: rng.normal(size=(200, 20))])
def test_views_follow_the_values_and_not_the_order_of_rows(draw):
    rng = np.random.default_rng(1)
    x_md, order = torch.from_numpy(draw(rng)).float(), torch.from_numpy(rng.permutation(200))
    views_vmd = view_columns(x_md)
    assert torch.allclose(view_columns(x_md[order]), views_vmd[:, order], atol=1e-6)
    is_equal_mmd = x_md[:, None] == x_md[None]
    assert ((views_vmd[0][:, None] == views_vmd[0][None]) == is_equal_mmd).all()


def test_pairs_are_ordered_and_named_once_whatever_is_held_at_a_time(monkeypatch):
    x_md = np.random.default_rng(0).normal(size=(100, 40))
    whole, _ = candidates_of(x_md)
    monkeypatch.setattr(screen, "CELLS_AT_ONCE", 400)
    parts, _ = candidates_of(x_md)
    assert (whole.i < whole.j).all()
    assert (np.diff(whole.keys(40)) > 0).all()
    assert np.isin(whole.keys(40), parts.keys(40)).mean() > 0.99  # 1 is the mean of other rows


@each("n_variables, core, size", [(1, 4, 9), (10, 4, 4), (100, 7, 20), (37, 50, 60)])
def test_every_column_is_in_one_core_and_no_neighbourhood_is_too_large(n_variables, core, size):
    rng = np.random.default_rng(n_variables)
    i, j = np.triu_indices(n_variables, 1)
    chosen = rng.random(len(i)) < 0.1
    found = Candidates(i[chosen], j[chosen], rng.random(chosen.sum()).astype(np.float32))
    hoods = group_columns(found, n_variables, core, size)
    assert sorted(np.concatenate([hood.core for hood in hoods]).tolist()) == list(range(n_variables))
    for hood in hoods:
        assert len(set(hood.columns.tolist())) == len(hood.columns) <= size
        assert len(hood.core) <= core
