"""What a plan promises: every family is drawn, parents come first, groups cover all rows."""

import dataclasses

import pytest
import torch

from cases import each
from graphbam.errors import ConfigError
from graphbam.simulation import MECHANISMS, NOISES, UNSEEN, SimulationConfig, plan_tables, run_plan, sample_tables

SMALL = {"n_tables": 8, "n_variables": 6, "n_samples": 30}


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_a_plan_is_reusable():
    plan = plan_tables(generator(), SimulationConfig.broad(), **SMALL)
    assert torch.equal(run_plan(plan).x_bmd, run_plan(plan).x_bmd)


def test_pooled_shares_differ_more_between_than_within_tables(rng):
    broad = SimulationConfig.broad()
    shape = {"n_tables": 200, "n_variables": 20, "n_samples": 2}
    plan = plan_tables(rng, broad, **shape)
    share_bd = plan.share_n[plan.row_bd]
    assert broad.noise_share[0] <= share_bd.min()
    assert share_bd.max() <= broad.noise_share[1]
    assert share_bd.mean(1).std() > 0.1
    plan = plan_tables(rng, SimulationConfig.paper(), **shape)
    assert plan.share_n[plan.row_bd].mean(1).std() < 0.05


def test_broad_draws_every_seen_family_and_no_unseen_one(rng):
    plan = plan_tables(rng, SimulationConfig.broad(), n_tables=400, n_variables=10, n_samples=2)
    seen = {group.mechanism for level in plan.levels for group in level.groups}
    assert seen == set(MECHANISMS) - set(UNSEEN)
    assert set(plan.noises) == set(NOISES)
    assert {name for name, rows in plan.effects.items() if not len(rows)} == {"sluggish", "confounded"}


def test_a_family_is_drawn_for_each_table_or_for_each_node(rng):
    config = SimulationConfig(mechanisms={"linear": 1.0, "sine": 1.0}, noises={"gaussian": 1.0, "uniform": 1.0})
    shape = {"n_tables": 60, "n_variables": 30, "n_samples": 2}

    def count_mixed(config):
        plan = plan_tables(rng, config, **shape)
        kind_n = torch.full_like(plan.n_parents_n, -1)  # roots have no mechanism
        for group in (group for level in plan.levels for group in level.groups):
            kind_n[group.start : group.stop] = ["linear", "sine"].index(group.mechanism)
        noise_n = torch.zeros_like(kind_n)
        noise_n[plan.noises["uniform"]] = 1
        mechanisms = sum(len(set(kinds) - {-1}) > 1 for kinds in kind_n[plan.row_bd].tolist())
        return mechanisms, sum(len(set(kinds)) > 1 for kinds in noise_n[plan.row_bd].tolist())

    assert count_mixed(config) == (0, 0)
    assert min(count_mixed(dataclasses.replace(config, per_node_mechanisms=1.0, per_node_noises=1.0))) > 50
    half = dataclasses.replace(config, per_node_mechanisms=0.5, per_node_noises=0.5)
    assert all(15 < count < 45 for count in count_mixed(half))


def test_rows_come_after_their_parents_and_groups_cover_them(rng):
    config = dataclasses.replace(SimulationConfig.broad(), sluggish=0.2)
    plan = plan_tables(rng, config, n_tables=50, n_variables=30, n_samples=400)
    slots = torch.arange(plan.parents_np.shape[1]) < plan.n_parents_n[:, None]
    for level in plan.levels:
        rows = slice(level.start, level.stop)
        assert (plan.parents_np[rows][slots[rows]] < level.start).all()
        covered = [row for group in level.groups for row in range(group.start, group.stop)]
        assert covered == (list(range(level.start, level.stop)) if level.start else [])
        for group in level.groups:
            assert plan.n_parents_n[group.start : group.stop].max() <= group.n_slots
        for name, part in (("discrete", level.discrete), ("sluggish", level.sluggish)):
            in_level = [row for row in plan.effects[name].tolist() if level.start <= row < level.stop]
            assert plan.effects[name][part].tolist() == in_level


@each(
    ("changes", "message"),
    [
        ({"n_tables": 0}, "n_tables=0 is too few; use at least 1"),
        ({"n_variables": 1}, "n_variables=1 is too few; use at least 2"),
        ({"n_samples": 1}, "n_samples=1 is too few; use at least 2"),
    ],
)
def test_impossible_shapes_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        sample_tables(generator(), SimulationConfig.paper(), **(SMALL | changes))


def test_impossible_degrees_are_refused():
    with pytest.raises(ConfigError, match=r"degree=7 is impossible with n_variables=6: .* at most 5"):
        sample_tables(generator(), SimulationConfig.paper().narrow(degree=7), **SMALL)


def test_leaning_shares_are_small_more_often(rng):
    shape = {"n_tables": 200, "n_variables": 20, "n_samples": 2}
    plain = dataclasses.replace(SimulationConfig.broad(), noise_share_lean=1.0)
    leaning = dataclasses.replace(plain, noise_share_lean=3.0)
    shares = [plan_tables(rng, config, **shape).share_n for config in (plain, leaning)]
    assert shares[1].median() < 0.5 * shares[0].median()
    assert shares[1].max() <= plain.noise_share[1]


@pytest.mark.parametrize("seed", range(3))
def test_one_more_hidden_variable_behind_columns_of_a_world_that_hides_others(seed):
    """Only columns that are shown share it, and every pair of them is labelled so."""
    config = dataclasses.replace(SimulationConfig.preset("broad-1"), hidden=1.0, confounded=1.0)
    tables = sample_tables(torch.Generator().manual_seed(seed), config, n_tables=12, n_variables=5, n_samples=40)
    assert torch.isfinite(tables.x_bmd).all()
    assert (tables.hidden_bdd == 1).any()
