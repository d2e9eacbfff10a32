"""Hidden variables, cells that were set, and cells that are missing."""

import dataclasses

import pytest
import torch

from cases import each
from graphbam.simulation import SimulationConfig, sample_tables
from graphbam.simulation.cells import choose_shown, draw_extra, draw_observed
from graphbam.simulation.graphs import sample_dags
from graphbam.simulation.plan import plan_tables
from graphbam.simulation.values import run_plan
from graphbam.tables.standard import standardise

SHAPE = {"n_tables": 40, "n_variables": 6, "n_samples": 400}
LINEAR = SimulationConfig.paper().narrow(mechanism="linear", noise="gaussian", degree=2, noise_share=(0.3, 0.4))


def correlations(tables):
    r_bdd = tables.x_bmd.mT @ tables.x_bmd / tables.x_bmd.shape[1]
    r_bdd.diagonal(dim1=1, dim2=2).zero_()
    return r_bdd.abs()


# ── hidden variables ────────────────────────────────────────────────────────────────────────────────────────


def test_variables_with_children_are_hidden_first(rng):
    adj_bee = sample_dags(rng, ["erdos-renyi"] * 300, torch.full((300,), 3.0), 12)
    shown_bd = choose_shown(rng, adj_bee, 6, torch.zeros(300, 12, dtype=torch.bool))
    busy_be = adj_bee.sum(2) > 1
    assert (busy_be.gather(1, shown_bd).float().mean() < 0.7 * busy_be.float().mean()).item()
    never_be = torch.arange(12).expand(300, -1) < 3
    assert choose_shown(rng, adj_bee, 6, never_be).min() == 3
    assert all(len(set(row)) == 6 for row in shown_bd.tolist())


@each("n_shown", [2, 20, 100])
def test_few_or_many_variables_are_hidden(rng, n_shown):
    extra = [draw_extra(rng, n_shown) for _ in range(500)]
    assert min(extra) == 1
    most = max(extra) / (max(extra) + n_shown)
    assert most > {2: 0.85, 20: 0.5, 100: 0.4}[n_shown]


def test_hidden_variables_leave_traces_where_labels_say_so(rng):
    """Columns without any path between them, hidden causes included, are independent."""
    tables = run_plan(plan_tables(rng, LINEAR, **SHAPE | {"n_samples": 2000}, n_hidden=6))
    assert tables.x_bmd.shape == (40, 2000, 6)
    assert tables.hidden_bdd.sum() > 40
    assert (tables.hidden_bdd == tables.hidden_bdd.mT).all()
    before = tables.ancestors_bdd.bool() | torch.eye(6, dtype=torch.bool)
    link = tables.hidden_bdd.bool() | torch.eye(6, dtype=torch.bool)
    related = (
        before.mT.float() @ link.float() @ before.float()
    ) > 0  # from a common ancestor, or a joined pair of them
    r_bdd = correlations(tables)
    assert r_bdd[~related].max() < 0.12
    only_hidden = (tables.hidden_bdd == 1) & (tables.dag_bdd + tables.dag_bdd.mT == 0)
    assert r_bdd[only_hidden].mean() > 0.15


def test_tables_without_hidden_variables_have_none(rng):
    config = dataclasses.replace(LINEAR, hidden=0.5)
    tables = sample_tables(rng, config, **SHAPE)
    has_hidden_b = tables.hidden_bdd.flatten(1).any(1)
    assert 5 < has_hidden_b.sum() < 25
    plain = sample_tables(rng, dataclasses.replace(config, hidden=0.0), **SHAPE)
    assert not plain.hidden_bdd.any()


# ── interventions ───────────────────────────────────────────────────────────────────────────────────────────


def test_cells_that_are_set_ignore_or_bend_their_parents_and_reach_their_children():
    config = dataclasses.replace(LINEAR, interventions=1.0)
    plain, done = (sample_tables(torch.Generator().manual_seed(0), c, **SHAPE) for c in (LINEAR, config))
    assert torch.equal(plain.dag_bdd, done.dag_bdd)
    assert plain.set_bmd is None
    assert done.set_bmd.dtype == torch.bool
    share_b = done.set_bmd.any(2).float().mean(1)
    assert share_b.min() < 0.15
    assert share_b.max() > 0.8
    # a table changes where a variable was set or an ancestor of it was, and nowhere else (but for its scale)
    for plain_md, done_md, set_md, before_dd in zip(
        plain.x_bmd, done.x_bmd, done.set_bmd, done.ancestors_bdd.bool(), strict=True
    ):
        touched_md = set_md | (set_md.float() @ before_dd.float() > 0)
        for j in (~touched_md.any(0)).nonzero()[:, 0].tolist():
            torch.testing.assert_close(plain_md[:, j], done_md[:, j])


def test_perfect_interventions_cut_the_arrows_into_their_target(rng):
    """Where all values of a table ignore the parents, the set cells of a child do not follow them."""
    config = dataclasses.replace(LINEAR, interventions=1.0)
    tables = sample_tables(rng, config, **SHAPE | {"n_tables": 150, "n_samples": 1000})
    follows = []
    for x_md, set_md, dag_dd in zip(tables.x_bmd, tables.set_bmd, tables.dag_bdd, strict=True):
        for i, j in dag_dd.nonzero().tolist():
            alone_m = set_md[:, j] & ~set_md[:, i]
            if alone_m.sum() > 100 and dag_dd[:, j].sum() == 1:
                pair = x_md[alone_m][:, [i, j]].T
                follows.append(torch.corrcoef(pair)[0, 1].abs().nan_to_num().item())
    assert len(follows) > 20
    low = sum(r < 0.25 for r in follows) / len(follows)
    assert 0.3 < low < 0.8  # three kinds of six ignore the parents


# ── missing cells ───────────────────────────────────────────────────────────────────────────────────────────


def test_missing_cells_say_nothing_and_others_are_standardised(rng):
    tables = sample_tables(rng, dataclasses.replace(LINEAR, missing=0.6, robust=True), **SHAPE)
    gone_bmd = ~tables.observed_bmd
    assert (tables.x_bmd[gone_bmd] == 0).all()
    has_gap_b = gone_bmd.flatten(1).any(1)
    assert 0.3 < has_gap_b.float().mean() < 0.8
    n_bd = tables.observed_bmd.sum(1)
    mean_bd = tables.x_bmd.sum(1) / n_bd
    assert mean_bd.abs().max() < 1e-4
    torch.testing.assert_close(tables.x_bmd.square().sum(1) / n_bd, torch.ones_like(mean_bd), atol=1e-3, rtol=0)
    assert n_bd.min() >= 0.3 * 400


def test_complete_tables_are_what_they_would_be_without_missing_cells():
    plain, gaps = (
        sample_tables(torch.Generator().manual_seed(0), dataclasses.replace(LINEAR, missing=m), **SHAPE)
        for m in (0.0, 0.5)
    )
    for x_md, y_md, seen_md in zip(plain.x_bmd, gaps.x_bmd, gaps.observed_bmd, strict=True):
        for j in seen_md.all(0).nonzero()[:, 0].tolist():
            torch.testing.assert_close(x_md[:, j], y_md[:, j])


def test_cells_are_missing_for_four_reasons(rng):
    """By chance, by another column, by their own value and in blocks: each leaves its own trace."""
    x_bdm = torch.randn(400, 4, 300, generator=rng)
    gone_bdm = ~draw_observed(rng, x_bdm)
    own = (x_bdm * gone_bdm).sum((1, 2)) / gone_bdm.sum((1, 2)).clamp(min=1)
    runs = (gone_bdm[..., 1:] & gone_bdm[..., :-1]).sum((1, 2)) / gone_bdm.sum((1, 2)).clamp(min=1)
    assert 0.1 < (own.abs() > 0.8).float().mean() < 0.4
    assert 0.1 < (runs > 0.8).float().mean() < 0.4
    assert gone_bdm.float().mean(2).max() < 0.7


@pytest.mark.parametrize("robust", [True, False])
def test_standardising_by_observed_cells_is_standardising_what_is_left(rng, robust):
    x_nm = torch.randn(5, 60, generator=rng).exp()
    seen_nm = torch.rand(5, 60, generator=rng) < 0.7
    ours_nm = standardise(torch.where(seen_nm, x_nm, torch.nan), robust=robust, axis=-1, observed=seen_nm)
    for x_m, seen_m, ours_m in zip(x_nm, seen_nm, ours_nm, strict=True):
        torch.testing.assert_close(ours_m[seen_m], standardise(x_m[seen_m][None], robust=robust, axis=-1)[0])
        assert (ours_m[~seen_m] == 0).all()
    everything = torch.ones_like(seen_nm)
    torch.testing.assert_close(
        standardise(x_nm, robust=robust, axis=-1, observed=everything), standardise(x_nm, robust=robust, axis=-1)
    )
